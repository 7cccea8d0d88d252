//! The binder and the evaluator against answers recorded from MySQL 8.0.12 (`expressions.tsv`: expression, value, type
//! on the wire, decimals, unsigned, warnings), and plans of queries over real tables.

mod fuzz;
mod json;
mod plans;

use std::collections::HashMap;
use std::sync::Arc;

use highkey_table::{ColumnDef, Database, DdlContext, IndexSpec, Options, SchemaDef, TableSpec, block_on};
use highkey_types::{Collation, ColumnType, MySqlError, SqlMode, Str, TimeZone, TypeKind, Value, Warning};

use super::*;
use crate::expr::{EvalContext, eval};
use crate::parse::{self, ParseOptions, ast};
use crate::plan::{ExprType, RelKind};

/// A session for binding and evaluating in tests.
pub(super) struct TestSession {
    pub db: Option<Arc<Database>>,
    pub zone: TimeZone,
    pub warnings: Vec<Warning>,
    pub random: HashMap<usize, Option<(u32, u32)>>,
    pub full_group_by: bool,
    _directory: Option<tempfile::TempDir>,
}

impl TestSession {
    pub fn without_tables() -> TestSession {
        TestSession { db: None, zone: TimeZone::utc(), warnings: Vec::new(), random: HashMap::new(), full_group_by: true, _directory: None }
    }

    /// Tables `t (id int primary key, a int, b varchar(20), c decimal(10,2), d date, key (a))` and
    /// `u (id int primary key, t_id int not null, name varchar(10), unique (name))`.
    pub fn with_tables() -> TestSession {
        let directory = tempfile::tempdir().unwrap();
        let db = Database::open(directory.path(), Options::default()).unwrap();
        let cx = DdlContext::default();
        block_on(db.create_schema(&cx, SchemaDef { name: "test".into(), collation: Collation::utf8mb4() })).unwrap();
        let text = |n| ColumnType::varchar(n, Collation::utf8mb4());
        let int = || ColumnType::new(TypeKind::Int);
        let columns = vec![
            ColumnDef::new("id", int()).not_null(),
            ColumnDef::new("a", int()),
            ColumnDef::new("b", text(20)),
            ColumnDef::new("c", ColumnType::decimal(10, 2)),
            ColumnDef::new("d", ColumnType::new(TypeKind::Date)),
        ];
        let indexes = vec![IndexSpec::primary(&[0]), IndexSpec::ordinary("a", &[1])];
        block_on(db.create_table(&cx, TableSpec::new("test", "t", columns, indexes))).unwrap();
        let columns = vec![ColumnDef::new("id", int()).not_null(), ColumnDef::new("t_id", int()).not_null(), ColumnDef::new("name", text(10))];
        let indexes = vec![IndexSpec::primary(&[0]), IndexSpec::unique("name", &[2])];
        block_on(db.create_table(&cx, TableSpec::new("test", "u", columns, indexes))).unwrap();
        TestSession { db: Some(db), _directory: Some(directory), ..TestSession::without_tables() }
    }

    pub fn query(&self, sql: &str) -> Result<crate::plan::BoundQuery, MySqlError> {
        match parse::parse_single(sql, ParseOptions::default())?.statement {
            ast::Statement::Query(query) => bind_query(&query, self),
            other => panic!("not a query: {other:?}"),
        }
    }
}

fn mode() -> SqlMode {
    SqlMode { no_zero_date: true, no_zero_in_date: true, error_for_division_by_zero: true, ..SqlMode::default() }
}

impl BindContext for TestSession {
    fn table(&self, schema: &str, name: &str) -> Result<TableSource, MySqlError> {
        let db = self.db.as_ref().ok_or_else(|| crate::session::error::no_such_table(&format!("{schema}.{name}")))?;
        db.catalog().table(schema, name).map(TableSource::Base)
    }

    fn current_schema(&self) -> Option<Str> {
        Some("test".into())
    }

    fn collation(&self) -> &'static Collation {
        Collation::utf8mb4()
    }

    fn sql_mode(&self) -> SqlMode {
        mode()
    }

    fn only_full_group_by(&self) -> bool {
        self.full_group_by
    }

    fn time_zone(&self) -> &TimeZone {
        &self.zone
    }

    fn system_var(&self, _: Option<ast::VariableScope>, name: &str) -> Result<Value, MySqlError> {
        Err(MySqlError::with_message(1193, format!("Unknown system variable '{name}'")))
    }

    fn user_var(&self, _: &str) -> Option<(Value, &'static Collation)> {
        None
    }
}

impl EvalContext for TestSession {
    fn sql_mode(&self) -> SqlMode {
        mode()
    }

    fn time_zone(&self) -> &TimeZone {
        &self.zone
    }

    fn now_micros(&self) -> i64 {
        1_600_000_000_123_456
    }

    fn warn(&mut self, warning: Warning) {
        self.warnings.push(warning);
    }

    fn random_state(&mut self, site: usize) -> &mut Option<(u32, u32)> {
        self.random.entry(site).or_default()
    }
}

/// The select list of a query without FROM.
fn bind_one(session: &TestSession, text: &str) -> Result<Expr, MySqlError> {
    let bound = session.query(&format!("SELECT {text}"))?;
    match bound.rel.kind {
        RelKind::Project { mut exprs, .. } => Ok(exprs.remove(0)),
        other => panic!("{text}: {other:?}"),
    }
}

fn shown(value: &Value, ty: &ExprType) -> String {
    let mut bytes = Vec::new();
    if !value.to_text(&ty.ty, &mut bytes) {
        return "\\N".to_string();
    }
    match String::from_utf8(bytes) {
        Ok(text) => text.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t").replace('\0', "\\0"),
        Err(e) => format!("hex:{}", e.as_bytes().iter().map(|b| format!("{b:02x}")).collect::<String>()),
    }
}

fn wire_name(ty: &ExprType) -> &'static str {
    use highkey_types::wire;
    match ty.ty.wire_type() {
        wire::LONGLONG => "longlong",
        wire::LONG => "long",
        wire::NEWDECIMAL => "newdecimal",
        wire::DOUBLE => "double",
        wire::VAR_STRING => "var_string",
        wire::STRING => "string",
        wire::DATE => "date",
        wire::TIME => "time",
        wire::DATETIME => "datetime",
        wire::YEAR => "year",
        wire::JSON => "json",
        wire::NULL => "null",
        wire::BLOB | wire::TINY_BLOB | wire::MEDIUM_BLOB | wire::LONG_BLOB => "blob",
        _ => "other",
    }
}

/// Answers that differ on purpose: 8.0.12's own oddities.
const DIFFERENT: &[&str] = &[
    // A negated constant below zero becomes DECIMAL.
    "-(-5)",
    // CASE and IF print an integer branch of a DECIMAL result without its fraction.
    "case when 1 then 1 else 2.5 end",
    // A negative length announces a BLOB.
    "rpad('hi',-1,'a')",
    "repeat('a',-1)",
    "space(-1)",
    // Two shortest texts are equally near; MySQL's algorithm takes the even one.
    "1e15+0.3",
    // A TIME literal and a string literal compare as strings; a TIME column compares as TIME.
    "time'10:00:00' = '10:00'",
    // 66 digits: one more than DECIMAL has.
    "99999999999999999999999999999999999999999999999999999999999999999 + 1",
    // The days of year 0.
    "to_days('0000-01-01')",
];

#[test]
fn expressions_as_mysql_answers_them() {
    let mut wrong = Vec::new();
    let mut total = 0;
    // A panic is one wrong answer; the list at the end names it.
    std::panic::set_hook(Box::new(|_| {}));
    for line in include_str!("expressions.tsv").lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [text, value, ty, ..] = fields.as_slice() else { continue };
        let text = text.replace("\\\\", "\\");
        if DIFFERENT.contains(&text.as_str()) {
            continue;
        }
        total += 1;
        let mut session = TestSession::without_tables();
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            bind_one(&session, &text).and_then(|expr| eval(&expr, &[], &mut session).map(|v| (shown(&v, &expr.ty), wire_name(&expr.ty))))
        }));
        let (got, got_ty) = match outcome {
            Ok(Ok((value, ty))) => (value, ty),
            Ok(Err(error)) => (format!("error:{}", error.code), ""),
            Err(_) => ("panic".to_string(), ""),
        };
        if got != *value {
            wrong.push(format!("{text}: {got}, MySQL says {value}"));
        } else if got_ty != *ty && !value.starts_with("error") {
            wrong.push(format!("{text}: {got} of type {got_ty}, MySQL says {ty}"));
        }
    }
    let _ = std::panic::take_hook();
    assert!(wrong.is_empty(), "{} of {total} differ:\n{}", wrong.len(), wrong.join("\n"));
}
