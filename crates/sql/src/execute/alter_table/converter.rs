//! Rows of the old definition as rows of the new one.

use std::sync::Arc;

use highkey_table::{AlterPlan, ColumnDef, Default, TableDef};
use highkey_types::{ColumnType, MySqlError, Str, TypeKind, Value};

use crate::bind;
use crate::execute::auto_values::number_value;
use crate::execute::target::{RowRules, implicit_default, to_session};
use crate::plan::{Expr, ExprKind};
use crate::session::{SessionState, error, error::err};
use crate::variables::SqlModes;

/// Turns rows of the old definition into rows of the new one.
pub(super) struct Converter {
    state: SessionState,
    rules: RowRules,
    old: Vec<ColumnDef>,
    from: Vec<Option<usize>>,
    strict: bool,
    row: u64,
    /// The next value of an AUTO_INCREMENT column that the statement adds.
    next_auto: u64,
    /// Added columns that may be filled otherwise by replicas, which run the statement: no row may need them.
    unsafe_columns: Vec<usize>,
}

impl Converter {
    /// `logged`: the statement's text goes to replicas.
    pub(super) fn new(state: &SessionState, old: &TableDef, plan: &AlterPlan, logged: bool) -> Result<Converter, MySqlError> {
        let def = TableDef {
            columns: plan.spec.columns.clone(),
            checks: plan.spec.checks.clone(),
            foreign_keys: Vec::new(),
            indexes: Vec::new(),
            name: plan.spec.name.clone(),
            collation: plan.spec.collation,
            ..old.clone()
        };
        let exprs = Arc::new(bind::bind_table_exprs(&def, state)?);
        let is_unsafe = |column: &usize| plan.columns[*column].is_none() && exprs.defaults[*column].as_ref().is_some_and(differs_on_replicas);
        let unsafe_columns = (0..def.columns.len()).filter(|column| logged && is_unsafe(column)).collect();
        Ok(Converter {
            state: state.clone(),
            rules: RowRules::new(Arc::new(def), Some(exprs)),
            old: old.columns.clone(),
            from: plan.columns.clone(),
            strict: state.strict(),
            row: 0,
            next_auto: 1,
            unsafe_columns,
        })
    }

    pub(super) fn convert(&mut self, old: Vec<Value>) -> Result<Vec<Value>, MySqlError> {
        self.row += 1;
        let zone = self.state.config.time_zone.clone();
        let width = self.rules.columns().len();
        let mut new = vec![Value::Null; width];
        for column in 0..width {
            let ty = &self.rules.columns()[column].ty;
            if let Some(from) = self.from[column] {
                let before = &self.old[from].ty;
                let mut value = old[from].clone();
                if before != ty {
                    if matches!(before.kind, TypeKind::Timestamp(_)) {
                        to_session(&mut value, &zone);
                    }
                    value = copied(value, before, ty);
                    // A binary string takes a text's bytes.
                    if ty.is_binary()
                        && let Value::Text(text) = &value
                    {
                        value = Value::Bytes(before.charset().encode(text).into_owned());
                    }
                    let shortens = is_short_string(&before.kind) && is_short_string(&ty.kind);
                    value = self.rules.store(&mut self.state, column, value, false, self.row).map_err(|e| match e.code {
                        // MySQL copies such strings without converting them, and says so when it cuts one.
                        1406 if shortens => err(1265, format!("Data truncated for column '{}' at row {}", self.rules.columns()[column].name, self.row)),
                        _ => e,
                    })?;
                }
                new[column] = value;
            }
        }
        for column in 0..width {
            if self.from[column].is_none() && self.rules.columns()[column].generated.is_none() {
                new[column] = self.added(column, &new)?;
            }
        }
        self.rules.generate(&mut self.state, &mut new, false, self.row)?;
        for column in 0..width {
            let def = &self.rules.columns()[column];
            if new[column].is_null() && !def.nullable {
                // Nothing stands for a geometry, in any mode.
                if def.ty.is_geometry() {
                    return Err(err(1138, "Invalid use of NULL value"));
                }
                if def.auto_increment {
                    new[column] = self.next_number(column);
                    continue;
                }
                // MySQL converts values only of another type; otherwise it checks them in place.
                let in_place = self.from[column].is_some_and(|from| self.old[from].ty == def.ty);
                let truncated = format!("Data truncated for column '{}' at row {}", def.name, self.row);
                match (self.strict, in_place) {
                    (true, true) => return Err(err(1138, "Invalid use of NULL value")),
                    (true, false) => return Err(err(1265, truncated)),
                    _ if self.rules.takes_null_for_now(&self.state, column) => {
                        self.rules.check_null(&mut self.state, column, &mut new[column], true)?;
                        continue;
                    }
                    _ => {}
                }
                new[column] = implicit_default(&def.ty);
                self.state.push_warning(error::warning(1265, truncated));
            }
        }
        self.rules.check_constraints(&mut self.state, &new, false)?;
        Ok(new)
    }

    /// The value of an added column.
    fn added(&mut self, column: usize, row: &[Value]) -> Result<Value, MySqlError> {
        let def = &self.rules.columns()[column];
        if def.auto_increment {
            return Ok(self.next_number(column));
        }
        if self.unsafe_columns.contains(&column) {
            return Err(err(1674, "Statement is unsafe because it uses a system function that may return a different value on the replica."));
        }
        match &def.default {
            Default::None if def.nullable => Ok(Value::Null),
            Default::None => {
                let value = implicit_default(&def.ty);
                let kind = match def.ty.kind {
                    TypeKind::Date => "date",
                    TypeKind::DateTime(_) | TypeKind::Timestamp(_) => "datetime",
                    _ => return Ok(value),
                };
                if self.strict && self.state.mode(SqlModes::NO_ZERO_DATE) {
                    let shown = highkey_types::cast::to_str(&value).unwrap_or_default();
                    return Err(err(1292, format!("Incorrect {kind} value: '{shown}' for column '{}' at row {}", def.name, self.row)));
                }
                Ok(value)
            }
            _ => self.rules.default(&mut self.state, column, row, false, self.row),
        }
    }

    fn next_number(&mut self, column: usize) -> Value {
        let n = self.next_auto;
        self.next_auto += 1;
        number_value(n, &self.rules.columns()[column].ty)
    }

    /// What it has warned of goes to the statement.
    pub(super) fn finish(self, state: &mut SessionState) {
        state.absorb(&self.state);
    }
}

/// A value as MySQL's ALTER TABLE hands it to a column of another type. A member is its number for a number, and keeps its text for anything else, whatever its
/// number becomes. A number is what its column shows for what is no number, so that it names the member of that text and not of that place.
fn copied(value: Value, before: &ColumnType, ty: &ColumnType) -> Value {
    let shown = |value: &Value| {
        let mut text = Vec::new();
        value.to_text(before, &mut text);
        text
    };
    match value {
        // What is no member is none of any others.
        Value::Enum(0, text) if matches!(ty.kind, TypeKind::Enum(_)) => Value::Enum(0, text),
        Value::Enum(number, _) if ty.is_number() => Value::UInt(u64::from(number)),
        Value::Set(bits, _) if ty.is_number() => Value::UInt(bits),
        Value::Enum(_, text) | Value::Set(_, text) => Value::Text(text),
        number if number.is_number() && !ty.is_number() => match before.kind {
            // Bits are bytes for a BLOB, digits for another string, and a number for the rest.
            TypeKind::Bit(_) if ty.is_blob() => Value::Bytes(shown(&number)),
            TypeKind::Bit(_) if ty.is_text() || ty.is_binary() => Value::Text(highkey_types::cast::to_str(&number).unwrap_or_default()),
            TypeKind::Bit(_) => number,
            _ => Value::Text(Str::from(String::from_utf8(shown(&number)).unwrap_or_default())),
        },
        other => other,
    }
}

/// Its value may be another one on a replica that runs the statement.
fn differs_on_replicas(expr: &Expr) -> bool {
    let mut differs = false;
    expr.walk(&mut |e| differs |= matches!(e.kind, ExprKind::Call { func, .. } if func.differs_on_replicas()));
    differs
}

fn is_short_string(kind: &TypeKind) -> bool {
    matches!(kind, TypeKind::Char(_) | TypeKind::VarChar(_) | TypeKind::Binary(_) | TypeKind::VarBinary(_))
}
