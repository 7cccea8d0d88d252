//! Partitions: what PARTITION BY means for a table's columns, and ALTER TABLE of single partitions.

use std::sync::Arc;

use highkey_table::{
    ColumnDef, ColumnLimit, PartitionArgument, PartitionCall, PartitionDef, PartitionExpr, PartitionMethod, PartitionOperator, PartitionValues, Partitioning,
    RepartitionPlan, Table,
};
use highkey_types::{ColumnType, MySqlError, Str, TypeKind, Value, errors, string_literal};

use super::ddl::{blocking_ddl, done};
use super::table_spec::same_name;
use super::{Failure, Outcome};
use crate::parse::ast::{self, BinaryOp, ExprKind as Ast, PartitionAction, UnaryOp};
use crate::session::{ResultSink, Session, SessionState, error, error::err};
use crate::show::Answer;
use crate::variables::is_our_engine;
use crate::{bind, expr};

/// MySQL's limits.
const PARTITIONS_MAX: u64 = 8192;
const COMMENT_MAX: usize = 1024;
/// Of a partitioning expression. In the table's record a level is up to three of JSON, which is decoded to 128.
const LEVELS_MAX: usize = 32;

/// The partitions that PARTITION BY gives a table of these columns.
pub(super) fn partitioning(by: &ast::PartitionBy, columns: &[ColumnDef], state: &mut SessionState) -> Result<Partitioning, MySqlError> {
    let method = method(&by.method, columns)?;
    let mut found = Partitioning { method, partitions: Vec::new(), numbered: by.partitions.is_none() };
    match &by.partitions {
        Some(defs) => found.partitions = definitions(&found, defs, columns, state)?,
        None if found.lists_values() => {
            let what = if matches!(found.method, PartitionMethod::Range(_) | PartitionMethod::RangeColumns(_)) { "RANGE" } else { "LIST" };
            return Err(errors::partitions_must_be_defined_error(what));
        }
        None => {
            let count = by.count.unwrap_or(1);
            check_count(count)?;
            found.partitions = (0..count).map(|n| unnamed(n as usize)).collect();
        }
    }
    check_names(&found)?;
    Ok(found)
}

/// A partition that kept its default name and has no trees yet.
fn unnamed(n: usize) -> PartitionDef {
    PartitionDef { name: format!("p{n}").into(), comment: "".into(), values: PartitionValues::ByPlace, trees: Vec::new() }
}

/// Errors 1499, 1504.
fn check_count(count: u64) -> Result<(), MySqlError> {
    match count {
        0 => Err(err(1504, "Number of partitions = 0 is not an allowed value")),
        count if count > PARTITIONS_MAX => Err(err(1499, "Too many partitions (including subpartitions) were defined")),
        _ => Ok(()),
    }
}

/// Errors 1481, 1499, 1517.
fn check_names(partitioning: &Partitioning) -> Result<(), MySqlError> {
    let partitions = &partitioning.partitions;
    check_count(partitions.len() as u64)?;
    for (at, partition) in partitions.iter().enumerate() {
        if partitions[..at].iter().any(|other| same_name(&other.name, &partition.name)) {
            return Err(errors::same_name_partition(&partition.name));
        }
        if partition.values == PartitionValues::Below(None) && at + 1 < partitions.len() {
            return Err(errors::partition_maxvalue_error());
        }
    }
    Ok(())
}

fn method(ast: &ast::PartitionMethod, columns: &[ColumnDef]) -> Result<PartitionMethod, MySqlError> {
    Ok(match ast {
        ast::PartitionMethod::Range(expr) => PartitionMethod::Range(function(expr, columns)?),
        ast::PartitionMethod::List(expr) => PartitionMethod::List(function(expr, columns)?),
        ast::PartitionMethod::Hash { expr, linear } => PartitionMethod::Hash { expr: function(expr, columns)?, linear: *linear },
        ast::PartitionMethod::RangeColumns(names) => PartitionMethod::RangeColumns(column_list(names, columns, true)?),
        ast::PartitionMethod::ListColumns(names) => PartitionMethod::ListColumns(column_list(names, columns, true)?),
        ast::PartitionMethod::Key { columns: names, linear, algorithm } => {
            let algorithm = match algorithm {
                None | Some(2) => None,
                Some(1) => Some(1),
                Some(_) => return Err(err(1064, "ALGORITHM of KEY partitioning is 1 or 2")),
            };
            PartitionMethod::Key { columns: column_list(names, columns, false)?, linear: *linear, algorithm }
        }
    })
}

/// Columns as they are named in the table. `compared`: their values are compared with others. Errors 1488, 1502, 1652, 1659.
fn column_list(names: &[String], columns: &[ColumnDef], compared: bool) -> Result<Vec<Str>, MySqlError> {
    let mut found: Vec<Str> = Vec::new();
    for name in names {
        let column = columns.iter().find(|column| same_name(&column.name, name));
        let column = column.ok_or_else(|| err(1488, "Field in list of fields for partition function not found in table"))?;
        if column.ty.is_blob() {
            return Err(err(1502, "A BLOB field is not allowed in partition function"));
        }
        let comparable = column.ty.is_integer()
            || matches!(
                column.ty.kind,
                TypeKind::Date | TypeKind::DateTime(_) | TypeKind::Char(_) | TypeKind::VarChar(_) | TypeKind::Binary(_) | TypeKind::VarBinary(_)
            );
        if compared && !comparable {
            return Err(wrong_type(&column.name));
        }
        if found.iter().any(|known| same_name(known, name)) {
            return Err(errors::same_name_partition_field(name));
        }
        found.push(column.name.clone());
    }
    Ok(found)
}

fn wrong_type(column: &str) -> MySqlError {
    err(1659, format!("Field '{column}' is of a not allowed type for this type of partitioning"))
}

fn not_constant_enough() -> MySqlError {
    err(1486, "Constant, random or timezone-dependent expressions in (sub)partitioning function are not allowed")
}

/// A partitioning expression. Errors 1054, 1235, 1486, 1564, 1659.
fn function(ast: &ast::Expr, columns: &[ColumnDef]) -> Result<PartitionExpr, MySqlError> {
    let found = operand(ast, columns)?;
    if found.levels() > LEVELS_MAX {
        return Err(error::not_supported("a partitioning expression of more than 32 levels"));
    }
    let mut any = false;
    found.each_column(&mut |_: &String| any = true);
    if any { Ok(found) } else { Err(not_constant_enough()) }
}

fn operand(ast: &ast::Expr, columns: &[ColumnDef]) -> Result<PartitionExpr, MySqlError> {
    let both = |operator, left: &ast::Expr, right: &ast::Expr| -> Result<PartitionExpr, MySqlError> {
        Ok(PartitionExpr::Binary(operator, Box::new(operand(left, columns)?), Box::new(operand(right, columns)?)))
    };
    match &ast.kind {
        Ast::Literal(ast::Literal::Int(number)) => i64::try_from(*number).map(PartitionExpr::Number).map_err(|_| errors::partition_const_domain_error()),
        Ast::Column(name) => {
            let column = named(&name.column, columns)?;
            if column.ty.is_integer() { Ok(PartitionExpr::Column(column.name.to_string())) } else { Err(wrong_type(&column.name)) }
        }
        Ast::Unary { op: UnaryOp::Plus, expr } => operand(expr, columns),
        Ast::Unary { op: UnaryOp::Minus, expr } => Ok(PartitionExpr::Negate(Box::new(operand(expr, columns)?))),
        Ast::Binary { op: BinaryOp::Add, left, right } => both(PartitionOperator::Add, left, right),
        Ast::Binary { op: BinaryOp::Sub, left, right } => both(PartitionOperator::Subtract, left, right),
        Ast::Binary { op: BinaryOp::Mul, left, right } => both(PartitionOperator::Multiply, left, right),
        Ast::Binary { op: BinaryOp::IntDiv, left, right } => both(PartitionOperator::Divide, left, right),
        Ast::Binary { op: BinaryOp::Mod, left, right } => both(PartitionOperator::Modulo, left, right),
        Ast::Function(call) if call.name.schema.is_none() => match (&call.args[..], PartitionCall::by_name(&call.name.name)) {
            ([left, right], _) if call.name.name.eq_ignore_ascii_case("mod") => both(PartitionOperator::Modulo, left, right),
            (args, Some(called)) => {
                let (count, kind) = called.arguments();
                if args.len() != count {
                    return Err(errors::partition_function_is_not_allowed());
                }
                Ok(PartitionExpr::Call(called, args.iter().map(|arg| argument(arg, kind, columns)).collect::<Result<_, _>>()?))
            }
            _ => Err(errors::partition_function_is_not_allowed()),
        },
        Ast::Extract { .. } => Err(error::not_supported("EXTRACT in a partitioning expression")),
        _ => Err(errors::partition_function_is_not_allowed()),
    }
}

fn named<'a>(name: &str, columns: &'a [ColumnDef]) -> Result<&'a ColumnDef, MySqlError> {
    columns.iter().find(|column| same_name(&column.name, name)).ok_or_else(|| errors::bad_field_error(name, "partition function"))
}

/// Functions of dates and times are of columns, whose types say that no time zone matters.
fn argument(ast: &ast::Expr, kind: PartitionArgument, columns: &[ColumnDef]) -> Result<PartitionExpr, MySqlError> {
    if kind == PartitionArgument::Integer {
        return operand(ast, columns);
    }
    let Ast::Column(name) = &ast.kind else { return Err(not_constant_enough()) };
    let column = named(&name.column, columns)?;
    if fits(kind, &column.ty) { Ok(PartitionExpr::Column(column.name.to_string())) } else { Err(not_constant_enough()) }
}

fn fits(kind: PartitionArgument, ty: &ColumnType) -> bool {
    match kind {
        PartitionArgument::Integer => ty.is_integer(),
        PartitionArgument::Date => matches!(ty.kind, TypeKind::Date | TypeKind::DateTime(_)),
        PartitionArgument::Time => matches!(ty.kind, TypeKind::Time(_) | TypeKind::DateTime(_)),
        PartitionArgument::Timestamp => matches!(ty.kind, TypeKind::Timestamp(0)),
    }
}

/// The partitions that are written one by one. Errors 1178, 1479, 1480, 1563, 1566, 1567, 1653, 1654, 1697, 1793.
fn definitions(
    partitioning: &Partitioning,
    defs: &[ast::PartitionDef],
    columns: &[ColumnDef],
    state: &mut SessionState,
) -> Result<Vec<PartitionDef>, MySqlError> {
    let mut found = Vec::with_capacity(defs.len());
    for def in defs {
        if def.name.is_empty() || def.name.ends_with(' ') {
            return Err(errors::wrong_partition_name());
        }
        if def.engine.as_deref().is_some_and(|engine| !is_our_engine(engine)) {
            return Err(errors::check_not_implemented("native partitioning"));
        }
        let comment = def.comment.as_deref().unwrap_or_default();
        if comment.chars().count() > COMMENT_MAX {
            return Err(errors::too_long_table_partition_comment(&def.name, COMMENT_MAX));
        }
        let values = values(&partitioning.method, def, columns, state)?;
        found.push(PartitionDef { name: def.name.as_str().into(), comment: comment.into(), values, trees: Vec::new() });
    }
    Ok(found)
}

fn values(method: &PartitionMethod, def: &ast::PartitionDef, columns: &[ColumnDef], state: &mut SessionState) -> Result<PartitionValues, MySqlError> {
    use ast::PartitionValues as Written;
    let limits = |names: &[Str], tuple: &[ast::PartitionValue], state: &mut SessionState| {
        if tuple.len() != names.len() {
            return Err(errors::partition_column_list_error());
        }
        names.iter().zip(tuple).map(|(name, value)| limit(named(name, columns)?, value, state)).collect::<Result<Vec<_>, _>>()
    };
    match (method, &def.values) {
        (PartitionMethod::Range(_) | PartitionMethod::RangeColumns(_), Written::Unwritten) => Err(errors::partition_requires_values_error("RANGE", "LESS THAN")),
        (PartitionMethod::List(_) | PartitionMethod::ListColumns(_), Written::Unwritten) => Err(errors::partition_requires_values_error("LIST", "IN")),
        (PartitionMethod::Hash { .. } | PartitionMethod::Key { .. }, Written::Unwritten) => Ok(PartitionValues::ByPlace),
        (PartitionMethod::Range(_), Written::LessThanMax) => Ok(PartitionValues::Below(None)),
        (PartitionMethod::Range(expr), Written::LessThan(tuple)) => match &tuple[..] {
            [ast::PartitionValue::MaxValue] => Ok(PartitionValues::Below(None)),
            [ast::PartitionValue::Expr(text)] => match number(expr, &text.expr, &def.name, columns, state)? {
                Some(limit) => Ok(PartitionValues::Below(Some(limit))),
                None => Err(null_limit()),
            },
            _ => Err(errors::partition_column_list_error()),
        },
        (PartitionMethod::RangeColumns(names), Written::LessThanMax) if names.len() == 1 => Ok(PartitionValues::BelowColumns(vec![ColumnLimit::MaxValue])),
        (PartitionMethod::RangeColumns(_), Written::LessThanMax) => Err(errors::partition_column_list_error()),
        (PartitionMethod::RangeColumns(names), Written::LessThan(tuple)) => {
            let limits = limits(names, tuple, state)?;
            let null = limits.iter().any(|limit| matches!(limit, ColumnLimit::Value { value: Value::Null, .. }));
            if null { Err(null_limit()) } else { Ok(PartitionValues::BelowColumns(limits)) }
        }
        (PartitionMethod::List(expr), Written::In(tuples)) => {
            let mut values = Vec::with_capacity(tuples.len());
            for tuple in tuples {
                let [ast::PartitionValue::Expr(text)] = &tuple[..] else { return Err(errors::partition_column_list_error()) };
                values.push(number(expr, &text.expr, &def.name, columns, state)?);
            }
            Ok(PartitionValues::In(values))
        }
        (PartitionMethod::ListColumns(names), Written::In(tuples)) => {
            let tuples = tuples.iter().map(|tuple| limits(names, tuple, &mut *state)).collect::<Result<Vec<_>, _>>()?;
            Ok(PartitionValues::InColumns(tuples))
        }
        (_, Written::In(_)) => Err(err(1480, "Only LIST PARTITIONING can use VALUES IN in partition definition")),
        (_, Written::LessThan(_) | Written::LessThanMax) => Err(err(1480, "Only RANGE PARTITIONING can use VALUES LESS THAN in partition definition")),
    }
}

fn null_limit() -> MySqlError {
    err(1566, "Not allowed to use NULL value in VALUES LESS THAN")
}

/// The value of an expression without columns.
fn constant(ast: &ast::Expr, state: &mut SessionState) -> Result<Value, MySqlError> {
    if let Ast::Column(name) = &ast.kind {
        return Err(errors::bad_field_error(&name.column, "partition function"));
    }
    let bound = bind::bind_fields_expr(ast, &[], true, state)?;
    expr::eval(&bound, &[], state)
}

/// A value that a partitioning expression may have; `None` is NULL.
fn number(expr: &PartitionExpr, ast: &ast::Expr, partition: &str, columns: &[ColumnDef], state: &mut SessionState) -> Result<Option<i128>, MySqlError> {
    let value = match constant(ast, state)? {
        Value::Null => return Ok(None),
        Value::Int(value) => i128::from(value),
        Value::UInt(value) => i128::from(value),
        // UNIX_TIMESTAMP('2000-01-01') is an integer to MySQL.
        Value::Decimal(value) if matches!(ast.kind, Ast::Function(_)) => i128::from(value.to_i64().ok_or_else(errors::partition_const_domain_error)?),
        _ => return Err(err(1697, format!("VALUES value for partition '{partition:.64}' must have type INT"))),
    };
    let unsigned = matches!(expr, PartitionExpr::Column(name) if named(name, columns).is_ok_and(|column| column.ty.unsigned));
    if unsigned && value < 0 {
        return Err(errors::partition_const_domain_error());
    }
    Ok(Some(value))
}

/// A value of a column's type. Error 1654.
fn limit(column: &ColumnDef, written: &ast::PartitionValue, state: &mut SessionState) -> Result<ColumnLimit, MySqlError> {
    let ast::PartitionValue::Expr(written) = written else { return Ok(ColumnLimit::MaxValue) };
    let value = constant(&written.expr, state)?;
    let wrong = errors::wrong_type_column_value_error;
    let fits = match &value {
        Value::Null => return Ok(ColumnLimit::Value { value, text: "NULL".into() }),
        Value::Int(_) | Value::UInt(_) => column.ty.is_integer(),
        Value::Date(_) | Value::DateTime(_) => column.ty.is_temporal(),
        Value::Text(_) | Value::Bytes(_) => !column.ty.is_integer(),
        _ => false,
    };
    if !fits {
        return Err(wrong());
    }
    let mut bytes = Vec::new();
    let text: String = match &value {
        Value::Text(text) => string_literal(text),
        Value::Int(number) => number.to_string(),
        Value::UInt(number) => number.to_string(),
        value => {
            value.to_text(&column.ty, &mut bytes);
            string_literal(&String::from_utf8_lossy(&bytes))
        }
    };
    let value = super::ddl::store_exactly(state, value, column).map_err(|_| wrong())?;
    Ok(ColumnLimit::Value { value, text: text.into() })
}

/// A table whose columns change keeps its partitions where their limits mean the same of the new types. Errors 1054, 1235.
pub(super) fn check_columns(partitioning: &Partitioning, names: &[Str], old: &[ColumnDef], new: &[ColumnDef]) -> Result<(), MySqlError> {
    for name in names {
        let after = named(name, new)?;
        let Some(before) = old.iter().find(|column| same_name(&column.name, name)) else { continue };
        let (was, is) = (&before.ty, &after.ty);
        let by_key = matches!(partitioning.method, PartitionMethod::Key { .. }) && !is.is_blob();
        let wider_integer = was.is_integer() && is.is_integer() && was.unsigned == is.unsigned && is.max_bytes() >= was.max_bytes();
        let longer_text = matches!(
            (&was.kind, &is.kind),
            (TypeKind::Char(a), TypeKind::Char(b)) | (TypeKind::VarChar(a), TypeKind::VarChar(b)) | (TypeKind::VarBinary(a), TypeKind::VarBinary(b)) if a <= b
        ) && was.collation == is.collation;
        if was != is && !(by_key || wider_integer || longer_text) {
            return Err(error::not_supported("another type for a column by which the table is partitioned"));
        }
    }
    Ok(())
}

fn not_partitioned() -> MySqlError {
    errors::partition_mgmt_on_nonpartitioned()
}

fn wrong_list(action: &str) -> MySqlError {
    err(1507, format!("Error in list of partitions to {action}"))
}

fn remove_all() -> MySqlError {
    err(1508, "Cannot remove all partitions, use DROP TABLE instead")
}

/// Positions of the partitions that are named, ascending; of all.
fn positions(partitioning: &Partitioning, names: Option<&[String]>, unknown: impl Fn(&str) -> MySqlError) -> Result<Vec<usize>, MySqlError> {
    let Some(names) = names else { return Ok((0..partitioning.partitions.len()).collect()) };
    let mut found = Vec::with_capacity(names.len());
    for name in names {
        found.push(partitioning.position(name).ok_or_else(|| unknown(name))?);
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// What an action makes of the partitions of a table, and whether the rows of those that go are kept.
fn repartition(table: &Table, action: &PartitionAction, state: &mut SessionState) -> Result<(Partitioning, bool), MySqlError> {
    let def = table.def();
    let old = def.partitioning.as_ref().ok_or_else(not_partitioned)?;
    let mut new = old.clone();
    let start_anew = |partitions: &mut Vec<PartitionDef>| partitions.iter_mut().for_each(|partition| partition.trees.clear());
    let keep_rows = match action {
        PartitionAction::Add { partitions, .. } if old.lists_values() => {
            if partitions.is_empty() {
                let what = if matches!(old.method, PartitionMethod::Range(_) | PartitionMethod::RangeColumns(_)) { "RANGE" } else { "LIST" };
                return Err(errors::partitions_must_be_defined_error(what));
            }
            new.partitions.extend(definitions(old, partitions, &def.columns, state)?);
            false
        }
        PartitionAction::Add { count, partitions } => {
            match count {
                Some(0) => return Err(err(1514, "At least one partition must be added")),
                Some(count) => {
                    check_count(count.saturating_add(old.partitions.len() as u64))?;
                    let first = old.partitions.len();
                    new.partitions.extend((first..first + *count as usize).map(unnamed));
                }
                None => new.partitions.extend(definitions(old, partitions, &def.columns, state)?),
            }
            new.numbered &= count.is_some();
            start_anew(&mut new.partitions);
            true
        }
        PartitionAction::Drop(names) => {
            if !old.lists_values() {
                return Err(err(1512, "DROP PARTITION can only be used on RANGE/LIST partitions"));
            }
            let going = positions(old, Some(names), |_| wrong_list("DROP"))?;
            if going.len() == old.partitions.len() {
                return Err(remove_all());
            }
            going.iter().rev().for_each(|at| drop(new.partitions.remove(*at)));
            false
        }
        PartitionAction::Coalesce(count) => {
            if old.lists_values() {
                return Err(err(1509, "COALESCE PARTITION can only be used on HASH/KEY partitions"));
            }
            match *count {
                0 => return Err(err(1515, "At least one partition must be coalesced")),
                count if count >= old.partitions.len() as u64 => return Err(remove_all()),
                count => new.partitions.truncate(old.partitions.len() - count as usize),
            }
            start_anew(&mut new.partitions);
            true
        }
        PartitionAction::Reorganize { names, into } => {
            let going = positions(old, Some(names), |_| wrong_list("REORGANIZE"))?;
            let first = going[0];
            let coming = definitions(old, into, &def.columns, state)?;
            if going.iter().zip(first..).any(|(at, next)| *at != next) {
                return Err(err(1519, "When reorganizing a set of partitions they must be in consecutive order"));
            }
            if !old.lists_values() && coming.len() != going.len() {
                return Err(err(1510, "REORGANIZE PARTITION can only be used to reorganize partitions not to change their numbers"));
            }
            check_total_range(old, first + going.len(), &coming)?;
            drop(new.partitions.splice(first..first + going.len(), coming));
            new.numbered = false;
            true
        }
        PartitionAction::Truncate(names) => {
            for at in positions(old, names.as_deref(), |name| errors::unknown_partition(name, &def.name))? {
                new.partitions[at].trees.clear();
            }
            false
        }
        PartitionAction::Rebuild(names) => {
            for at in positions(old, names.as_deref(), |_| wrong_list("REBUILD"))? {
                new.partitions[at].trees.clear();
            }
            true
        }
        PartitionAction::Exchange { .. } | PartitionAction::Maintain { .. } => false,
    };
    check_names(&new)?;
    Ok((new, keep_rows))
}

/// Reorganised ranges end where they ended; those at the end of the table may end later. Error 1520.
fn check_total_range(old: &Partitioning, end: usize, coming: &[PartitionDef]) -> Result<(), MySqlError> {
    let (Some(before), Some(after)) = (end.checked_sub(1).and_then(|last| old.partitions.get(last)), coming.last()) else { return Ok(()) };
    let is_last = end == old.partitions.len();
    let same = match (&before.values, &after.values) {
        (PartitionValues::Below(Some(was)), PartitionValues::Below(Some(is))) => was == is || is_last && is > was,
        (PartitionValues::Below(Some(_)), PartitionValues::Below(None)) => is_last,
        (PartitionValues::Below(was), PartitionValues::Below(is)) => was == is,
        // Rows beyond the end of the last one have no partition then, which is an error of theirs.
        (PartitionValues::BelowColumns(was), PartitionValues::BelowColumns(is)) => is_last || was == is,
        _ => true,
    };
    if same { Ok(()) } else { Err(err(1520, "Reorganize of range partitions cannot change total ranges except for last partition where it can extend the range")) }
}

impl Session {
    /// An ALTER TABLE that is about single partitions, and nothing else.
    pub(super) async fn alter_partitions(
        &mut self,
        alter: &ast::AlterTable,
        action: &PartitionAction,
        sink: &mut dyn ResultSink,
    ) -> Result<Outcome, Failure> {
        if alter.actions.len() > 1 {
            return Err(error::not_supported("changes of single partitions beside others").into());
        }
        let (schema, name) = self.table_name(&alter.name)?;
        if let PartitionAction::Maintain { what, names, local } = action {
            return self.maintain_partitions((&schema, &name), what, names.as_deref(), *local, sink).await;
        }
        if self.state.temporary.find(&schema, &name).is_some() {
            return Err(not_partitioned().into());
        }
        self.check_base_table(&schema, &name)?;
        let database = self.state.instance.database().clone();
        if let PartitionAction::Exchange { partition, table, validate } = action {
            let other = self.table_name(table)?;
            if other == (schema.clone(), name.clone()) {
                return Err(errors::nonuniq_table(&name).into());
            }
            if self.state.temporary.find(&other.0, &other.1).is_some() {
                return Err(errors::partition_exchange_temp_table(&other.1).into());
            }
            self.check_base_table(&other.0, &other.1)?;
            let cx = self.ddl_context();
            blocking_ddl(database.exchange_partition(&cx, &(schema, name), partition, &other, *validate)).await?;
            return Ok(done(0, &self.state));
        }
        loop {
            let table = database.catalog().table(&schema, &name)?;
            let (partitioning, keep_rows) = repartition(&table, action, &mut self.state)?;
            let cx = self.ddl_context();
            let plan = RepartitionPlan { table: (schema.clone(), name.clone()), version: table.def().version, partitioning, keep_rows };
            match blocking_ddl(database.change_partitions(&cx, plan)).await {
                Ok(_) => return Ok(done(0, &self.state)),
                // Somebody else's DDL came between planning and locking.
                Err(e) if e.code == 1412 => self.state.process.check()?,
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// ANALYZE, CHECK, OPTIMIZE and REPAIR PARTITION: of the whole table, as MySQL does it for InnoDB where it does not for the partition alone. `local`: the
    /// binary log is not told.
    async fn maintain_partitions(
        &mut self,
        (schema, name): (&Str, &Str),
        what: &str,
        names: Option<&[String]>,
        local: bool,
        sink: &mut dyn ResultSink,
    ) -> Result<Outcome, Failure> {
        let shown = format!("{schema}.{name}");
        let op = what.to_ascii_lowercase();
        let mut rows = Vec::new();
        let mut line = |kind: &str, text: &str| rows.push(vec![Value::text(shown.as_str()), Value::text(op.as_str()), Value::text(kind), Value::text(text)]);
        let found: Result<Arc<Table>, MySqlError> = self.state.base_table(schema, name).and_then(|table| {
            let partitioning = table.def().partitioning.as_ref().ok_or_else(not_partitioned)?;
            positions(partitioning, names, |_| wrong_list(&shown))?;
            Ok(table)
        });
        let logged = found.is_ok() && what != "CHECK" && !local;
        match found {
            Err(e) => {
                line("Error", &e.message);
                line("status", "Operation failed");
            }
            Ok(table) => match what {
                "CHECK" => {
                    let checked = self.with_own_view(&table, |table, txn| table.check(txn, false)).await;
                    self.state.process.check()?;
                    let report = checked?;
                    report.errors.iter().for_each(|e| line("error", e));
                    line(if report.is_ok() { "status" } else { "error" }, if report.is_ok() { "OK" } else { "Corrupt" });
                }
                "ANALYZE" => {
                    self.with_own_view(&table, |table, txn| table.analyze(txn)).await?;
                    line("status", "OK");
                }
                "OPTIMIZE" => {
                    line("note", "Table does not support optimize on partitions. All partitions will be rebuilt and analyzed.");
                    self.compact(&table).await?;
                    line("status", "OK");
                }
                _ => line("status", "OK"),
            },
        }
        let outcome = self.send(Answer::new("Table s128;Op s10;Msg_type s10;Msg_text S", rows), false, sink).await?;
        if logged {
            self.log_maintenance().await?;
        }
        Ok(outcome)
    }
}
