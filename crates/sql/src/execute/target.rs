//! A table that rows are written to: defaults, generated columns, NOT NULL, CHECK, and the two forms of a TIMESTAMP.
//!
//! Rows are in stored form (TIMESTAMP in UTC); expressions see them in the session's form (TIMESTAMP in the session's time zone).

use std::sync::Arc;

use highkey_table::{ColumnDef, Default, Table, TableDef, TriggerEvent};
use highkey_types::{ColumnType, Date, DateTime, Decimal, MySqlError, Time, TimeZone, TypeKind, Value};

use crate::bind::{AssignedValue, TableExprs, ViewCheck};
use crate::expr;
use crate::routine::TableTriggers;
use crate::session::{SessionState, error, error::err};

/// A table with what its rows need.
pub struct Target {
    pub table: Arc<Table>,
    /// CHECK OPTION of the view that rows are written through.
    pub check: Option<Arc<ViewCheck>>,
    /// What runs with its rows, where a statement of a session changes them.
    pub(crate) triggers: Option<Arc<TableTriggers>>,
    /// What is assigned to a row that is there calls functions which the session runs: the row may not be as it was found.
    pub(crate) calls: bool,
    rules: RowRules,
}

impl Target {
    pub fn new(table: &Arc<Table>, state: &SessionState) -> Result<Target, MySqlError> {
        let exprs = state.instance.exprs().get(table.def(), state)?;
        Ok(Target { table: table.clone(), check: None, triggers: None, calls: false, rules: RowRules::new(table.def().clone(), exprs) })
    }

    /// The table as it is written through a view with this CHECK OPTION.
    pub fn through(table: &Arc<Table>, check: Option<&Arc<ViewCheck>>, state: &SessionState) -> Result<Target, MySqlError> {
        Ok(Target { check: check.cloned(), ..Target::new(table, state)? })
    }

    /// A change of a row runs triggers.
    pub(crate) fn runs(&self, event: TriggerEvent) -> bool {
        self.triggers.as_ref().is_some_and(|triggers| triggers.has(event))
    }

    /// Triggers look at a row before it is changed, and may change it: that it has no NULL where none may be is asked behind them.
    pub(crate) fn runs_before(&self, event: TriggerEvent) -> bool {
        self.triggers.as_ref().is_some_and(|triggers| triggers.has_before(event))
    }

    /// Something is asked or computed of each row: a generated column, a CHECK, a CHECK OPTION.
    pub fn computes(&self) -> bool {
        self.check.is_some() || self.rules.computes()
    }

    /// CHECK constraints, then CHECK OPTION. False: violated under IGNORE, the row is to be left out (a warning tells).
    pub fn check_constraints(&self, state: &mut SessionState, row: &[Value], ignore: bool) -> Result<bool, MySqlError> {
        if !self.rules.check_constraints(state, row, ignore)? {
            return Ok(false);
        }
        let Some(check) = &self.check else { return Ok(true) };
        let seen = self.session_row(row, &state.config.time_zone);
        if expr::eval_condition(&check.condition, &seen, state)? {
            return Ok(true);
        }
        let error = err(1369, format!("CHECK OPTION failed '{}'", check.view));
        if !ignore {
            return Err(error);
        }
        state.push_ignored(error);
        Ok(false)
    }
}

impl std::ops::Deref for Target {
    type Target = RowRules;

    fn deref(&self) -> &RowRules {
        &self.rules
    }
}

/// What a definition demands of rows, whether its table exists already or is to be.
pub struct RowRules {
    def: Arc<TableDef>,
    /// Bound expressions of the definition, if it has any.
    pub exprs: Option<Arc<TableExprs>>,
    /// Positions of TIMESTAMP columns.
    pub timestamps: Vec<usize>,
    has_generated: bool,
}

impl RowRules {
    pub fn new(def: Arc<TableDef>, exprs: Option<Arc<TableExprs>>) -> RowRules {
        let timestamps = (0..def.columns.len()).filter(|&i| matches!(def.columns[i].ty.kind, TypeKind::Timestamp(_))).collect();
        let has_generated = def.columns.iter().any(|c| c.generated.is_some());
        RowRules { def, exprs, timestamps, has_generated }
    }

    /// Something is computed of each row: a generated column, a CHECK.
    pub fn computes(&self) -> bool {
        self.has_generated || self.exprs.as_ref().is_some_and(|e| !e.checks.is_empty())
    }

    pub fn columns(&self) -> &[ColumnDef] {
        &self.def.columns
    }

    /// A stored row as expressions see it.
    pub fn session_row(&self, row: &[Value], zone: &TimeZone) -> Vec<Value> {
        let mut seen = row.to_vec();
        self.to_session(&mut seen, zone);
        seen
    }

    /// As `session_row`, in place.
    pub fn to_session(&self, row: &mut [Value], zone: &TimeZone) {
        for &i in &self.timestamps {
            to_session(&mut row[i], zone);
        }
    }

    /// A value for a column, converted as assignment converts. NULL passes; `check_row` has the last word about it.
    pub fn store(&self, state: &mut SessionState, column: usize, value: Value, ignore: bool, row: u64) -> Result<Value, MySqlError> {
        let def = &self.columns()[column];
        state.check_strict()?;
        if def.ty.kind == TypeKind::Json {
            // Only of JSON errors tell the table too.
            return state.store(value, &def.ty, &format!("{}.{}", self.def.name, def.name), ignore, row);
        }
        state.store(value, &def.ty, &def.name, ignore, row)
    }

    /// The default of a column, in stored form. Error 1364 for one that has none and cannot be NULL.
    /// `row`: what an expression default sees, in stored form.
    pub fn default(&self, state: &mut SessionState, column: usize, row: &[Value], ignore: bool, number: u64) -> Result<Value, MySqlError> {
        let def = &self.columns()[column];
        match &def.default {
            Default::Literal(value) => Ok(value.clone()),
            Default::CurrentTimestamp(fsp) => self.now(state, column, *fsp, ignore, number),
            Default::Expr(_) => {
                let exprs = self.exprs.clone().ok_or_else(|| error::internal("expression default"))?;
                let bound = exprs.defaults[column].as_ref().ok_or_else(|| error::internal("expression default"))?;
                let value = if bound.columns().is_empty() {
                    expr::eval(bound, row, state)?
                } else {
                    let seen = self.session_row(row, &state.config.time_zone);
                    expr::eval(bound, &seen, state)?
                };
                self.store(state, column, value, ignore, number)
            }
            Default::None if def.auto_increment || def.nullable || def.generated.is_some() => Ok(Value::Null),
            Default::None | Default::Dropped => {
                if let TypeKind::Enum(members) = &def.ty.kind
                    && let Some(first) = members.first()
                {
                    return Ok(if def.nullable { Value::Null } else { Value::Enum(1, first.clone()) });
                }
                let missing = error::no_default_for_field(&def.name);
                if state.strict() && !ignore || def.ty.is_geometry() && !def.nullable {
                    return Err(missing);
                }
                state.push_ignored(missing);
                Ok(if def.nullable { Value::Null } else { implicit_default(&def.ty) })
            }
        }
    }

    /// CURRENT_TIMESTAMP for a column.
    pub fn now(&self, state: &mut SessionState, column: usize, fsp: u8, ignore: bool, number: u64) -> Result<Value, MySqlError> {
        let now = crate::expr::EvalContext::now(state).truncate(fsp);
        self.store(state, column, Value::DateTime(now), ignore, number)
    }

    /// Computes the generated columns of a row, in column order.
    pub fn generate(&self, state: &mut SessionState, row: &mut [Value], ignore: bool, number: u64) -> Result<(), MySqlError> {
        if !self.has_generated {
            return Ok(());
        }
        let exprs = self.exprs.clone().ok_or_else(|| error::internal("generated column"))?;
        for (column, bound) in exprs.generated.iter().enumerate() {
            let Some(bound) = bound else { continue };
            let value = if self.timestamps.is_empty() {
                expr::eval(bound, row, state)?
            } else {
                let seen = self.session_row(row, &state.config.time_zone);
                expr::eval(bound, &seen, state)?
            };
            row[column] = self.store(state, column, value, ignore, number)?;
        }
        Ok(())
    }

    /// NULL means the present time in this column, which takes no NULL: a TIMESTAMP while `explicit_defaults_for_timestamp` is off.
    pub fn takes_null_for_now(&self, state: &SessionState, column: usize) -> bool {
        let def = &self.columns()[column];
        matches!(def.ty.kind, TypeKind::Timestamp(_)) && !def.nullable && !state.config.explicit_timestamps
    }

    /// NULL in a NOT NULL column: the present time in some (`takes_null_for_now`), else error 1048, or the implicit default where MySQL is lenient.
    pub fn check_null(&self, state: &mut SessionState, column: usize, value: &mut Value, lenient: bool) -> Result<(), MySqlError> {
        let def = &self.columns()[column];
        if !value.is_null() || def.nullable {
            return Ok(());
        }
        if def.ty.is_geometry() {
            return Err(highkey_types::errors::bad_null_error_not_ignored(&def.name));
        }
        if let TypeKind::Timestamp(fsp) = def.ty.kind
            && self.takes_null_for_now(state, column)
        {
            *value = self.now(state, column, fsp, true, 1)?;
            return Ok(());
        }
        let error = err(1048, format!("Column '{}' cannot be null", def.name));
        if !lenient {
            return Err(error);
        }
        state.push_ignored(error);
        *value = given_null(&def.ty);
        Ok(())
    }

    /// CHECK constraints. False: violated under IGNORE, the row is to be left out (a warning tells).
    pub fn check_constraints(&self, state: &mut SessionState, row: &[Value], ignore: bool) -> Result<bool, MySqlError> {
        let Some(exprs) = &self.exprs else { return Ok(true) };
        if exprs.checks.is_empty() {
            return Ok(true);
        }
        let exprs = exprs.clone();
        let seen = self.session_row(row, &state.config.time_zone);
        for (name, condition) in &exprs.checks {
            let value = expr::eval(condition, &seen, state)?;
            let violated = !value.is_null() && state.with_cast(|cx| highkey_types::cast::to_bool(&value, cx)) == Some(false);
            if violated {
                let error = error::check_violated(name);
                if !ignore {
                    return Err(error);
                }
                state.push_ignored(error);
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A value that a statement gives for a column: for a generated one only DEFAULT is allowed.
    pub fn check_generated(&self, column: usize, value: &AssignedValue) -> Result<(), MySqlError> {
        let def = &self.columns()[column];
        if def.generated.is_some() && !matches!(value, AssignedValue::Default) {
            return Err(error::generated_not_allowed(&def.name, &self.def.name));
        }
        Ok(())
    }
}

/// A stored TIMESTAMP as expressions see it.
pub fn to_session(value: &mut Value, zone: &TimeZone) {
    if let Value::DateTime(utc) = value
        && !utc.is_zero()
    {
        *utc = zone.from_utc(utc);
    }
}

/// What non-strict MySQL puts where NULL was given.
pub fn given_null(ty: &ColumnType) -> Value {
    match ty.kind {
        // It is no member.
        TypeKind::Enum(_) => Value::Enum(0, "".into()),
        _ => implicit_default(ty),
    }
}

/// What non-strict MySQL puts where there is no value: zero, the empty string, the first member.
pub fn implicit_default(ty: &ColumnType) -> Value {
    match &ty.kind {
        TypeKind::TinyInt | TypeKind::SmallInt | TypeKind::MediumInt | TypeKind::Int | TypeKind::BigInt => {
            if ty.unsigned { Value::UInt(0) } else { Value::Int(0) }
        }
        TypeKind::Year | TypeKind::Bit(_) => Value::UInt(0),
        TypeKind::Decimal { scale, .. } => Value::Decimal(Decimal::from_i128(0, *scale)),
        TypeKind::Float => Value::Float(0.0),
        TypeKind::Double => Value::Double(0.0),
        TypeKind::Date => Value::Date(Date::default()),
        TypeKind::DateTime(_) | TypeKind::Timestamp(_) => Value::DateTime(DateTime::default()),
        TypeKind::Time(_) => Value::Time(Time::default()),
        TypeKind::Enum(members) => members.first().map_or(Value::Null, |m| Value::Enum(1, m.clone())),
        TypeKind::Set(_) => Value::Set(0, "".into()),
        TypeKind::Json => Value::Json("null".into()),
        TypeKind::Binary(n) => Value::Bytes(vec![0; *n as usize]),
        // No geometry is one: NOT NULL has the last word.
        TypeKind::Geometry(_) => Value::Null,
        _ if ty.is_binary() => Value::Bytes(Vec::new()),
        TypeKind::Null => Value::Null,
        _ => Value::Text("".into()),
    }
}

