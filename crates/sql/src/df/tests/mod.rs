//! Whole queries: parsed, bound, lowered, executed over small tables.

mod ctes;
mod memory;
mod queries;
mod recorded;
mod subqueries;
mod tpch;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use highkey_table::{ColumnDef, Database, DdlContext, IndexSpec, Isolation, OnDuplicate, Options, SchemaDef, TableSpec, block_on};
use highkey_types::{Collation, ColumnType, DateTime, MySqlError, SqlMode, Str, TimeZone, TypeKind, Value, Warning};
use parking_lot::Mutex;

use datafusion::physical_plan::collect;

use super::context::Shared;
use super::error::to_mysql;
use super::stream::Rows;
use super::{EngineOptions, ParallelSettings, QueryContext, QueryEngine, explain, killed_error, physical, query};
use crate::bind::{BindContext, TableSource, bind_query};
use crate::expr::{EvalContext, Raised, SharedContext};
use crate::parse::{ParseOptions, ast, parse_single};
use crate::plan::{BoundQuery, Field};

/// A database with a schema `t`, and what a session would be.
pub(super) struct Fixture {
    pub db: Arc<Database>,
    engine: Arc<QueryEngine>,
    runtime: tokio::runtime::Runtime,
    _dir: tempfile::TempDir,
}

pub(super) fn int() -> ColumnType {
    ColumnType::new(TypeKind::Int)
}

pub(super) fn text() -> ColumnType {
    ColumnType::varchar(100, Collation::utf8mb4())
}

/// A column by name and type; a name that ends in `!` is NOT NULL.
fn column(name: &str, ty: ColumnType) -> ColumnDef {
    match name.strip_suffix('!') {
        Some(name) => ColumnDef::new(name, ty).not_null(),
        None => ColumnDef::new(name, ty),
    }
}

/// A value for a column from its text; `NULL` is NULL.
fn value(text: &str, ty: &ColumnType) -> Value {
    if text == "NULL" {
        return Value::Null;
    }
    let zone = TimeZone::utc();
    let mut warnings = Vec::new();
    let mut cx = highkey_types::StoreContext {
        strict: true,
        ignore: false,
        mode: SqlMode::default(),
        time_zone: &zone,
        now_micros: 0,
        row: 1,
        warnings: &mut warnings,
    };
    highkey_types::store(Value::text(text), ty, "c", &mut cx).expect("test data fits its column")
}

/// A cell as the text protocol sends it.
fn cell(value: &Value, ty: &ColumnType) -> String {
    let mut out = Vec::new();
    if value.to_text(ty, &mut out) { String::from_utf8_lossy(&out).into_owned() } else { "NULL".into() }
}

impl Fixture {
    pub fn new() -> Fixture {
        Fixture::with_memory(64 << 20)
    }

    pub fn with_memory(memory_bytes: usize) -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        let db = Database::open(dir.path().join("data"), Options::default()).unwrap();
        let engine = QueryEngine::new(EngineOptions { threads: 2, memory_bytes, temp_bytes: 1 << 30, column_cache_bytes: 16 << 20, spill_dir: dir.path().join("spill") }).unwrap();
        block_on(db.create_schema(&DdlContext::default(), SchemaDef { name: "t".into(), collation: Collation::utf8mb4() })).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Fixture { db, engine, runtime, _dir: dir }
    }

    /// Creates a table whose first column is the primary key, and fills it: rows are lines, cells are separated by `|`.
    pub fn table(&self, name: &str, columns: &[(&str, ColumnType)], rows: &str) {
        self.keyed_table(name, &[0], columns, rows);
    }

    pub fn keyed_table(&self, name: &str, key: &[usize], columns: &[(&str, ColumnType)], rows: &str) {
        let mut defs: Vec<ColumnDef> = columns.iter().map(|(name, ty)| column(name, ty.clone())).collect();
        key.iter().for_each(|&i| defs[i].nullable = false);
        let spec = TableSpec::new("t", name, defs, vec![IndexSpec::primary(key)]);
        let table = block_on(self.db.create_table(&DdlContext::default(), spec)).unwrap();
        let rows: Vec<Vec<Value>> = rows
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .map(|line| line.split('|').zip(columns).map(|(cell, (_, ty))| value(cell, ty)).collect())
            .collect();
        let mut txn = self.db.begin(Isolation::RepeatableRead);
        block_on(table.insert(&mut txn, &rows, OnDuplicate::Error)).unwrap();
        block_on(txn.commit()).unwrap();
    }

    pub fn bind(&self, sql: &str) -> Result<BoundQuery, MySqlError> {
        let parsed = parse_single(sql, ParseOptions::default())?;
        let ast::Statement::Query(query) = parsed.statement else { panic!("not a query: {sql}") };
        bind_query(&query, &Session { db: self.db.clone(), zone: TimeZone::utc() })
    }

    fn context(&self) -> QueryContext {
        QueryContext {
            examined: Arc::default(),
            activity: Arc::default(),
            engine: self.engine.clone(),
            snapshot: self.db.begin(Isolation::RepeatableRead).snapshot(),
            eval: Arc::new(Mutex::new(Eval { zone: TimeZone::utc(), warnings: Vec::new(), random: HashMap::new() })),
            virtual_rows: Arc::new(|_, _| Ok(Vec::new())),
            start_over: Arc::new(|| ()),
            killed: Arc::new(AtomicBool::new(false)),
            interruption: Arc::new(killed_error),
            profile: None,
            recursion_limit: 1000,
            group_concat_max_len: 1024,
            parallel: ParallelSettings::serial(),
            slot: None,
        }
    }

    /// The rows as text, NULL as `NULL`.
    pub fn ask(&self, sql: &str) -> Result<Vec<Vec<String>>, MySqlError> {
        let bound = self.bind(sql)?;
        let context = self.context();
        let types: Vec<ColumnType> = bound.fields().iter().map(|f| f.ty.ty.clone()).collect();
        self.runtime.block_on(async {
            let mut stream = query(bound, context).await?;
            let mut rows = Vec::new();
            while let Some(batch) = stream.next().await? {
                rows.extend(batch.to_vec().into_iter().map(|row| row.iter().zip(&types).map(|(value, ty)| cell(value, ty)).collect()));
            }
            Ok(rows)
        })
    }

    /// The same by a second attempt's plan: merge joins, small batches.
    pub fn ask_spilling(&self, sql: &str) -> Result<Vec<Vec<String>>, MySqlError> {
        let bound = self.bind(sql)?;
        let types: Vec<ColumnType> = bound.fields().iter().map(|f| f.ty.ty.clone()).collect();
        let fields: Arc<[Field]> = bound.fields().to_vec().into();
        let shared = Shared::new(self.context(), &bound.rel, false, None);
        assert!(self.runtime.block_on(shared.start_spilling()));
        let task = self.engine.handle().spawn(async move {
            let plan = physical(&shared, bound.rel, None).await?;
            let rows = collect(plan.physical, plan.context).await;
            shared.end();
            rows
        });
        let batches = self.runtime.block_on(task).unwrap().map_err(|e| to_mysql(&e))?;
        let rows = batches.into_iter().flat_map(|batch| Rows::new(batch, fields.clone()).to_vec());
        Ok(rows.map(|row| row.iter().zip(&types).map(|(value, ty)| cell(value, ty)).collect()).collect())
    }

    pub fn explain(&self, sql: &str) -> Result<Vec<String>, MySqlError> {
        let bound = self.bind(sql)?;
        let context = self.context();
        self.runtime.block_on(explain(bound, context)).map(|explained| explained.lines.iter().map(ToString::to_string).collect())
    }

    /// Asserts the answer: rows separated by `;`, cells by `|`.
    #[track_caller]
    pub fn check(&self, sql: &str, expected: &str) {
        let rows = self.ask(sql).unwrap_or_else(|e| panic!("{sql}: {} {}", e.code, e.message));
        let got: Vec<String> = rows.iter().map(|row| row.join("|")).collect();
        assert_eq!(got.join(";"), expected, "{sql}");
    }

    #[track_caller]
    pub fn check_error(&self, sql: &str, code: u16) {
        match self.ask(sql) {
            Err(error) => assert_eq!(error.code, code, "{sql}: {}", error.message),
            Ok(rows) => panic!("{sql}: no error, but {rows:?}"),
        }
    }
}

struct Session {
    db: Arc<Database>,
    zone: TimeZone,
}

impl BindContext for Session {
    fn table(&self, schema: &str, name: &str) -> Result<TableSource, MySqlError> {
        self.db.catalog().table(schema, name).map(TableSource::Base)
    }

    fn current_schema(&self) -> Option<Str> {
        Some("t".into())
    }

    fn collation(&self) -> &'static Collation {
        Collation::utf8mb4()
    }

    fn sql_mode(&self) -> SqlMode {
        SqlMode::default()
    }

    fn only_full_group_by(&self) -> bool {
        true
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

#[derive(Clone)]
struct Eval {
    zone: TimeZone,
    warnings: Vec<Warning>,
    random: HashMap<usize, Option<(u32, u32)>>,
}

impl SharedContext for Eval {
    fn copy(&self) -> Box<dyn SharedContext> {
        Box::new(Eval { warnings: Vec::new(), ..self.clone() })
    }

    fn take_raised(&mut self) -> Raised {
        Raised { all: self.warnings.len() as u64, first: std::mem::take(&mut self.warnings), errors: 0, strict: None }
    }

    fn add_raised(&mut self, raised: Raised) {
        self.warnings.extend(raised.first);
    }
}

impl EvalContext for Eval {
    fn sql_mode(&self) -> SqlMode {
        SqlMode::default()
    }

    fn time_zone(&self) -> &TimeZone {
        &self.zone
    }

    fn now_micros(&self) -> i64 {
        DateTime::default().to_micros().max(0)
    }

    fn warn(&mut self, warning: Warning) {
        self.warnings.push(warning);
    }

    fn random_state(&mut self, site: usize) -> &mut Option<(u32, u32)> {
        self.random.entry(site).or_default()
    }
}
