//! Which partition a row belongs to.

use highkey_types::{Collation, ColumnType, Date, TypeKind, Value};

use super::*;
use crate::def::{ColumnDef, TableSpec};
use crate::ddl::define;

fn def(columns: Vec<ColumnDef>) -> TableDef {
    define(&TableSpec::new("s", "t", columns, Vec::new())).unwrap()
}

fn int(name: &str) -> ColumnDef {
    ColumnDef::new(name, ColumnType::new(TypeKind::Int))
}

fn text(name: &str) -> ColumnDef {
    let collation = Collation::by_name("utf8mb4_0900_ai_ci").unwrap();
    ColumnDef::new(name, ColumnType::with_collation(TypeKind::VarChar(10), collation))
}

fn chooser(def: &TableDef, method: PartitionMethod, values: Vec<PartitionValues>) -> Result<Chooser, MySqlError> {
    let partition = |(n, values)| PartitionDef { name: format!("p{n}").into(), comment: "".into(), values, trees: Vec::new() };
    let partitions = values.into_iter().enumerate().map(partition).collect();
    Chooser::new(def, &Partitioning { method, partitions, numbered: false })
}

fn value(value: Value) -> ColumnLimit {
    ColumnLimit::Value { value, text: "".into() }
}

#[test]
fn tuples_are_compared_column_by_column() {
    let def = def(vec![int("a"), text("b")]);
    let method = PartitionMethod::RangeColumns(vec!["a".into(), "b".into()]);
    let limits = vec![
        PartitionValues::BelowColumns(vec![value(Value::Int(1)), value(Value::text("x"))]),
        PartitionValues::BelowColumns(vec![value(Value::Int(5)), ColumnLimit::MaxValue]),
        PartitionValues::BelowColumns(vec![ColumnLimit::MaxValue, ColumnLimit::MaxValue]),
    ];
    let chooser = chooser(&def, method, limits).unwrap();
    let of = |a: Value, b: Value| chooser.partition_of(&[a, b]).unwrap();
    assert_eq!(of(Value::Null, Value::Null), 0);
    assert_eq!(of(Value::Int(1), Value::text("w")), 0);
    assert_eq!(of(Value::Int(1), Value::text("X")), 1);
    assert_eq!(of(Value::Int(5), Value::text("zzz")), 1);
    assert_eq!(of(Value::Int(6), Value::Null), 2);
}

#[test]
fn limits_that_do_not_ascend_are_refused() {
    let def = def(vec![int("a"), int("b")]);
    let columns = || PartitionMethod::RangeColumns(vec!["a".into(), "b".into()]);
    let max = || PartitionValues::BelowColumns(vec![value(Value::Int(1)), ColumnLimit::MaxValue]);
    let one = |b: i64| PartitionValues::BelowColumns(vec![value(Value::Int(1)), value(Value::Int(b))]);
    assert!(chooser(&def, columns(), vec![one(3), max()]).is_ok());
    assert_eq!(chooser(&def, columns(), vec![max(), one(3)]).unwrap_err().code, 1493);
    assert_eq!(chooser(&def, columns(), vec![max(), max()]).unwrap_err().code, 1493);
    let list = PartitionMethod::List(PartitionExpr::Column("a".into()));
    let values = vec![PartitionValues::In(vec![Some(1), None]), PartitionValues::In(vec![None])];
    assert_eq!(chooser(&def, list, values).unwrap_err().code, 1495);
}

#[test]
fn expressions_have_the_values_of_sql() {
    let def = def(vec![int("a"), ColumnDef::new("d", ColumnType::new(TypeKind::Date))]);
    let position = |name: &str| Ok(def.column(name).unwrap());
    let eval = |expr: PartitionExpr, row: &[Value]| expr.resolve(&position).unwrap().eval(row);
    let a = || Box::new(PartitionExpr::Column("a".into()));
    let of_date = |call| PartitionExpr::Call(call, vec![PartitionExpr::Column("d".into())]);
    let day = [Value::Int(-7), Value::Date(Date::new(2000, 2, 29))];
    assert_eq!(eval(of_date(PartitionCall::ToDays), &day), Ok(Some(730_544)));
    assert_eq!(eval(of_date(PartitionCall::Year), &day), Ok(Some(2000)));
    assert_eq!(eval(of_date(PartitionCall::Quarter), &day), Ok(Some(1)));
    assert_eq!(eval(of_date(PartitionCall::DayOfWeek), &day), Ok(Some(3)));
    let zero = [Value::Null, Value::Date(Date::default())];
    assert_eq!(eval(of_date(PartitionCall::ToDays), &zero), Ok(None));
    assert_eq!(eval(of_date(PartitionCall::Year), &zero), Ok(Some(0)));
    let modulo = PartitionExpr::Binary(PartitionOperator::Modulo, a(), Box::new(PartitionExpr::Number(4)));
    assert_eq!(modulo.text(), "(`a` % 4)");
    assert_eq!(eval(modulo, &day), Ok(Some(-3)));
    let by_zero = PartitionExpr::Binary(PartitionOperator::Divide, a(), Box::new(PartitionExpr::Number(0)));
    assert_eq!(eval(by_zero, &day), Ok(None));
    let large = PartitionExpr::Binary(PartitionOperator::Multiply, Box::new(PartitionExpr::Number(i64::MAX)), Box::new(PartitionExpr::Number(i64::MAX)));
    assert_eq!(eval(large, &day).unwrap_err().code, 1690);
}

#[test]
fn linear_hashing_takes_lower_bits() {
    let places: Vec<usize> = [1, 2, 6, 7, 8, 14, 15, 23].into_iter().map(|value| linear_place(value, 6)).collect();
    assert_eq!(places, [1, 2, 2, 3, 0, 2, 3, 3]);
}
