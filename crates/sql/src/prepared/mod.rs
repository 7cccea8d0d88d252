//! Prepared statements: COM_STMT_* by number, PREPARE and EXECUTE by name, and statements of the text protocol that come again.
//!
//! A statement is parsed once. SELECT, INSERT, UPDATE and DELETE are bound once too, with their parameters left open, and run as they are as long
//! as the tables are as they were and the session's settings that binding looks at have not changed. What DataFusion runs is planned with the values of its
//! parameters, and kept for other executions with the same ones, or with any that columns are compared with (`execute::KeptQueries`).
//!
//! It runs in the database that was the current one when it was prepared, as MySQL's do.

mod cursor;
mod patterns;

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use futures::future::BoxFuture;
use highkey_types::{Charset, MySqlError, Str, TypeKind, Value};
use parking_lot::Mutex;

use crate::bind::{self, BoundDelete, BoundInsert, BoundUpdate, RowValue};
use crate::execute::{self, BoundTables, Failure, KeptQueries, Outcome};
use crate::fast::FastQuery;
use crate::functions::FuncId;
use crate::parse::ast::{PrepareSource, RoutineStatement, Statement};
use crate::parse::{self, Parsed};
use crate::plan::{BoundQuery, CompareBy, Expr, ExprKind, ExprType, SubqueryKind};
use crate::session::{Executor, KeptDigest, PreparedInfo, ResultSink, Session, SessionState, StatusCounter, error, error::err};
use crate::show;

/// A prepared statement.
pub struct PreparedStatement {
    /// No other statement of the server has it.
    pub number: u64,
    pub text: Arc<str>,
    pub parsed: Parsed,
    pub params: usize,
    pub digest: KeptDigest,
    plan: Mutex<Option<Arc<CachedPlan>>>,
    /// Executions since its plan could not be kept; 0 before.
    bound_anew: AtomicU32,
    /// Its parameters are literals of a text: a plan that depends on their values is made with them. It runs in whatever database is the current one.
    from_text: bool,
    /// The current one when it was prepared.
    database: Option<Str>,
}

/// After that many executions without a kept plan it is seen whether one can be kept by now: the tables may have changed.
const TRY_AGAIN: u32 = 64;

pub use cursor::{CursorRows, KeptRows, OpenCursor, file_error};
pub use patterns::{CutText, Patterns, StatementPatterns};

impl PreparedStatement {
    /// Nobody has prepared it: it serves texts.
    pub fn is_pattern(&self) -> bool {
        self.from_text
    }

    fn new(text: Arc<str>, parsed: Parsed) -> PreparedStatement {
        static STATEMENTS: AtomicU64 = AtomicU64::new(0);
        let number = STATEMENTS.fetch_add(1, Ordering::Relaxed);
        PreparedStatement { number, text, params: parsed.params, parsed, digest: KeptDigest::default(), plan: Mutex::new(None), bound_anew: AtomicU32::new(0), from_text: false, database: None }
    }

    /// A statement of a routine, which runs in the routine's schema. Its parameters are the routine's variables.
    pub fn of_routine(statement: &RoutineStatement, schema: &Str) -> PreparedStatement {
        let text: Arc<str> = statement.text.as_str().into();
        let parsed = Parsed {
            statement: statement.statement.clone(),
            params: statement.locals.len(),
            text: 0..text.len(),
            next: None,
            digest: "".into(),
            set_vars: statement.set_vars.clone(),
        };
        PreparedStatement { database: Some(schema.clone()), ..PreparedStatement::new(text, parsed) }
    }
}

/// A bound statement, and what it was bound under.
struct CachedPlan {
    plan: Plan,
    /// Of the parameters: what comparisons and arithmetic do depends on them.
    types: Vec<ExprType>,
    /// See `narrow_charsets`.
    narrow: Vec<Vec<Charset>>,
    tables: BoundTables,
    settings: Settings,
}

enum Plan {
    Query(Box<BoundQuery>, Box<FastQuery>),
    Insert(BoundInsert),
    Update(BoundUpdate),
    Delete(BoundDelete),
}

/// What of the session binding looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    database: Option<Str>,
    modes: u64,
    /// `collation_connection`, and what the character set utf8mb4 alone means.
    collations: (u16, u16),
    isolation_locks: bool,
    select_limit: Option<u64>,
    division: u8,
    executor: Executor,
    /// Literals with an offset are folded under it.
    time_zone: Str,
    /// Binding has checked what the accounts, the session's and those of views, may do.
    accounts: u64,
    /// Names may mean other tables: `TemporaryTables::version`.
    temporary: u64,
}

impl Settings {
    pub(crate) fn of(session: &Session) -> Settings {
        let config = &session.state.config;
        Settings {
            database: session.state.database.clone(),
            modes: config.modes.0,
            collations: (config.collation_connection.id, config.utf8mb4.id),
            isolation_locks: session.reads_lock(),
            // As `Session::adjust` takes it.
            select_limit: config.select_limit.filter(|_| !session.in_routine()),
            division: config.div_precision_increment,
            executor: config.executor,
            time_zone: config.events.time_zone.clone(),
            accounts: session.state.access_version(),
            temporary: session.state.temporary.version(),
        }
    }
}

/// The prepared statements of one session.
#[derive(Default)]
pub struct PreparedStatements {
    next_id: u32,
    by_id: HashMap<u32, Arc<PreparedStatement>>,
    by_name: HashMap<String, Arc<PreparedStatement>>,
    cursors: HashMap<u32, OpenCursor>,
    /// Those on DataFusion, of texts that come again, too.
    pub kept: KeptQueries,
}

impl PreparedStatements {
    pub fn get(&self, id: u32) -> Option<Arc<PreparedStatement>> {
        self.by_id.get(&id).cloned()
    }

    fn add(&mut self, statement: Arc<PreparedStatement>) -> u32 {
        self.next_id += 1;
        self.by_id.insert(self.next_id, statement);
        self.next_id
    }

    /// False if there was none.
    pub fn close(&mut self, id: u32) -> bool {
        self.cursors.remove(&id);
        let closed = self.by_id.remove(&id);
        self.forget(closed)
    }

    /// As `close`, for one of PREPARE; `name` in lower case.
    fn close_named(&mut self, name: &str) -> bool {
        let closed = self.by_name.remove(name);
        self.forget(closed)
    }

    fn forget(&mut self, closed: Option<Arc<PreparedStatement>>) -> bool {
        let Some(statement) = closed else { return false };
        self.kept.forget(statement.number);
        true
    }

    /// Closes all; how many there were.
    pub fn clear(&mut self) -> usize {
        let count = self.by_id.len() + self.by_name.len();
        self.by_id.clear();
        self.by_name.clear();
        self.cursors.clear();
        self.kept = KeptQueries::default();
        count
    }

    pub fn open_cursor(&mut self, id: u32, cursor: OpenCursor) {
        self.cursors.insert(id, cursor);
    }

    /// The statement's cursor, which is closed unless it is opened again.
    pub fn take_cursor(&mut self, id: u32) -> Option<OpenCursor> {
        self.cursors.remove(&id)
    }

    pub fn close_cursor(&mut self, id: u32) {
        self.cursors.remove(&id);
    }
}

impl Session {
    fn parse_prepared(&self, text: &str) -> Result<Arc<PreparedStatement>, MySqlError> {
        let parsed = parse::parse_single(text, self.state.config.parse)?;
        match &parsed.statement {
            Statement::Empty { .. } => return Err(error::empty_query()),
            Statement::Explain { statement, .. } if matches!(**statement, Statement::LoadData(_)) => return Err(error::unsupported_ps()),
            Statement::Begin { .. } | Statement::Prepare { .. } | Statement::Execute { .. } | Statement::Deallocate(_) | Statement::LoadData(_) | Statement::LockTables(_) | Statement::UnlockTables | Statement::LockInstance | Statement::UnlockInstance | Statement::Use(_) | Statement::Xa(_) | Statement::Binlog(_) | Statement::Handler(_)
            | Statement::CreateRoutine(_) | Statement::CreateTrigger(_) | Statement::AlterRoutine { .. } | Statement::CreateEvent(_) | Statement::AlterEvent(_) | Statement::DropProgram { .. } | Statement::Signal(_) | Statement::GetDiagnostics(_)
            | Statement::CreateRole { .. } | Statement::DropRole { .. } => {
                return Err(error::unsupported_ps());
            }
            _ => {}
        }
        if parsed.params > 65_535 {
            return Err(err(1390, "Prepared statement contains too many placeholders"));
        }
        let limit = self.state.instance.global_u64("max_prepared_stmt_count");
        let open = self.state.instance.prepared_statements().load(Ordering::Relaxed);
        if open >= limit {
            return Err(err(1461, format!("Can't create more than max_prepared_stmt_count statements (current value: {limit})")));
        }
        Ok(Arc::new(PreparedStatement { database: self.state.database.clone(), ..PreparedStatement::new(text.into(), parsed) }))
    }

    /// Parses and binds; what COM_STMT_PREPARE answers.
    pub(crate) async fn prepare_text(&mut self, text: &str) -> Result<PreparedInfo, MySqlError> {
        let statement = self.parse_prepared(text)?;
        self.note_set_vars(&statement.parsed.set_vars);
        let columns = self.bind_prepared(&statement)?;
        let params = statement.params;
        let id = self.prepared.add(statement);
        self.prepared_count(1);
        Ok(PreparedInfo { id, params, columns, warnings: self.state.diagnostics.packet_count() })
    }

    /// Checks a statement by binding it; the columns of its result, empty if it has none.
    /// Nothing is opened: a prepared statement holds no locks.
    fn bind_prepared(&mut self, statement: &PreparedStatement) -> Result<Vec<crate::session::Column>, MySqlError> {
        self.state.bind_params = false;
        Ok(match &statement.parsed.statement {
            Statement::Query(query) => {
                let bound = bind::bind_query(query, &self.state)?;
                if bound.into.is_some() { Vec::new() } else { execute::columns(&self.state, bound.fields()) }
            }
            Statement::Insert(insert) => {
                bind::bind_insert(insert, &self.state)?;
                Vec::new()
            }
            Statement::Update(update) => {
                bind::bind_update(update, &self.state)?;
                Vec::new()
            }
            Statement::Delete(delete) => {
                bind::bind_delete(delete, &self.state)?;
                Vec::new()
            }
            Statement::Show(what) => execute::columns(&self.state.clone(), &show::show(&mut self.state, what)?.fields),
            Statement::Describe { table, column } => execute::columns(&self.state.clone(), &show::describe(&mut self.state, table, column.as_deref())?.fields),
            _ => Vec::new(),
        })
    }

    /// Runs a prepared statement with the parameters in `state.params`. `cursor`: keep a result set for that statement's COM_STMT_FETCH.
    pub(crate) async fn run_prepared(&mut self, statement: &PreparedStatement, cursor: Option<u32>, sink: &mut dyn ResultSink) -> Result<Outcome, Failure> {
        self.enter_database(statement);
        self.check_password(&statement.parsed.statement)?;
        self.begin_set_vars(&statement.parsed.set_vars);
        if self.check_gtid(&statement.parsed.statement, false)? {
            return Ok(Outcome::ok());
        }
        if let Some(plan) = self.cached_plan(statement).await? {
            self.count_prepared(&statement.parsed.statement);
            let instance = self.state.instance.clone();
            let admission = self.admission(&instance);
            return match &plan.plan {
                Plan::Query(bound, fast) => {
                    self.note_hints(&bound.hints);
                    admission.run(pin!(self.run_query(bound, Some(fast), cursor, sink))).await
                }
                Plan::Insert(bound) => admission.run(Box::pin(self.run_insert(bound)).as_mut()).await,
                Plan::Update(bound) => admission.run(Box::pin(self.run_update(bound)).as_mut()).await,
                Plan::Delete(bound) => admission.run(Box::pin(self.run_delete(bound)).as_mut()).await,
            };
        }
        // Everything else is bound with the parameters' values, as if they had been written in the text.
        self.state.bind_params = true;
        let outcome = match (&statement.parsed.statement, cursor) {
            (Statement::Query(query), Some(_)) => Box::pin(self.query_with_cursor(query, cursor, sink)).await,
            (Statement::Query(query), None) => Box::pin(self.run_with_values(statement, query, sink)).await,
            (other, _) => Box::pin(self.dispatch(other, sink)).await,
        };
        self.state.bind_params = false;
        outcome
    }

    /// Until `leave_database` the session is where the statement was prepared.
    fn enter_database(&mut self, statement: &PreparedStatement) {
        if statement.from_text || statement.database == self.state.database {
            return;
        }
        self.state.process.set_db(statement.database.as_deref());
        self.own_database = Some(std::mem::replace(&mut self.state.database, statement.database.clone()));
    }

    /// The session is in its own database again, if that is still there.
    pub(crate) fn leave_database(&mut self) {
        let Some(own) = self.own_database.take() else { return };
        let catalog = self.state.instance.database().catalog();
        self.state.database = own.filter(|name| catalog.schema(name).is_some());
        self.state.process.set_db(self.state.database.as_deref());
    }

    async fn query_with_cursor(&mut self, query: &parse::ast::Query, cursor: Option<u32>, sink: &mut dyn ResultSink) -> Result<Outcome, Failure> {
        let bound = self.bind_query(query).await?;
        self.run_bound(&bound, cursor, sink).await
    }

    fn count_prepared(&self, statement: &Statement) {
        use crate::session::StatusCounter as C;
        let counter = match statement {
            Statement::Query(_) => C::ComSelect,
            Statement::Insert(_) => C::ComInsert,
            Statement::Update(_) => C::ComUpdate,
            _ => C::ComDelete,
        };
        self.state.count(counter, 1);
    }

    /// The statement's plan with its tables opened: the one kept, or a new one. `None` for statements that are not kept bound.
    async fn cached_plan(&mut self, statement: &PreparedStatement) -> Result<Option<Arc<CachedPlan>>, MySqlError> {
        let anew = statement.bound_anew.load(Ordering::Relaxed);
        // DataFusion plans with the values of the parameters.
        if self.state.config.executor == Executor::DataFusion || (anew > 0 && statement.bound_anew.fetch_add(1, Ordering::Relaxed) % TRY_AGAIN != 0) {
            return Ok(None);
        }
        let settings = Settings::of(self);
        let collation = self.state.config.collation_connection;
        let types: Vec<ExprType> = match self.state.declared_types.as_slice() {
            [] => self.state.params.iter().map(|value| bind::param_type(value, collation)).collect(),
            declared => declared.to_vec(),
        };
        let kept = statement.plan.lock().clone();
        if let Some(kept) = kept
            && kept.settings == settings
            && kept.types == types
            && holds(&kept.narrow, &self.state.params)
            // It may use names that are not locked.
            && !self.state.locks.has_tables()
            && self.open_tables(&kept.tables).await?
        {
            return Ok(Some(kept));
        }
        self.state.bind_params = false;
        self.state.param_types = types;
        let plan = Box::pin(self.new_plan(statement, settings)).await;
        self.state.param_types = Vec::new();
        match plan {
            Ok(None) if anew == 0 => statement.bound_anew.store(1, Ordering::Relaxed),
            Ok(Some(_)) => statement.bound_anew.store(0, Ordering::Relaxed),
            _ => {}
        }
        plan
    }

    async fn new_plan(&mut self, statement: &PreparedStatement, settings: Settings) -> Result<Option<Arc<CachedPlan>>, MySqlError> {
        loop {
            let state = &self.state;
            let (plan, tables) = match &statement.parsed.statement {
                Statement::Query(query) => {
                    let mut bound = bind::bind_query(query, state)?;
                    self.adjust(&mut bound);
                    let Some(fast) = self.compile_fast(&bound)? else { return Ok(None) };
                    if statement.from_text && statement.params > 0 && fast.is_join() {
                        return Ok(None);
                    }
                    let tables = BoundTables::of_query(&bound);
                    (Plan::Query(Box::new(bound), Box::new(fast)), tables)
                }
                Statement::Insert(insert) if insert.partitions.is_empty() => {
                    let bound = bind::bind_insert(insert, state)?;
                    // A query inside is planned with the values of its parameters.
                    if matches!(bound.source, bind::BoundSource::Query(_)) {
                        return Ok(None);
                    }
                    let tables = execute::insert_tables(&bound);
                    (Plan::Insert(bound), tables)
                }
                Statement::Update(update) => {
                    let bound = bind::bind_update(update, state)?;
                    if !matches!(bound, BoundUpdate::Single(_)) {
                        return Ok(None);
                    }
                    let tables = execute::update_tables(&bound);
                    (Plan::Update(bound), tables)
                }
                Statement::Delete(delete) => {
                    let bound = bind::bind_delete(delete, state)?;
                    if !matches!(bound, BoundDelete::Single(_)) {
                        return Ok(None);
                    }
                    let tables = execute::delete_tables(&bound);
                    (Plan::Delete(bound), tables)
                }
                _ => return Ok(None),
            };
            // Subqueries may hold parameters, and are run with their values.
            if plan_has_subquery(&plan) || plan_depends_on_values(&plan) {
                return Ok(None);
            }
            let narrow = narrow_charsets(&plan);
            if !holds(&narrow, &self.state.params) {
                return Ok(None);
            }
            if self.open_tables(&tables).await? {
                let types = self.state.param_types.clone();
                let cached = Arc::new(CachedPlan { plan, types, narrow, tables, settings });
                *statement.plan.lock() = Some(cached.clone());
                return Ok(Some(cached));
            }
        }
    }

    /// PREPARE name FROM …
    pub(crate) async fn prepare_named(&mut self, name: &str, source: &PrepareSource) -> Result<Outcome, Failure> {
        let text = match source {
            PrepareSource::Text(text) => text.clone(),
            PrepareSource::Variable(variable) => match self.state.user_vars.get(variable.to_lowercase().as_str()) {
                Some((value, _)) => highkey_types::cast::to_str(value).map_or("NULL".to_owned(), |t| t.to_string()),
                None => "NULL".to_owned(),
            },
        };
        // As in MySQL this counts as what programs prepare and close, too.
        self.state.count(StatusCounter::ComStmtPrepare, 1);
        // One of the same name goes first, even if the new one is wrong.
        if self.prepared.close_named(&name.to_lowercase()) {
            self.state.count(StatusCounter::ComStmtClose, 1);
            self.prepared_count(-1);
        }
        let statement = self.parse_prepared(&text)?;
        self.note_set_vars(&statement.parsed.set_vars);
        self.bind_prepared(&statement)?;
        self.prepared.by_name.insert(name.to_lowercase(), statement);
        self.prepared_count(1);
        Ok(Outcome::Done { affected: 0, last_insert_id: 0, info: "Statement prepared".into() })
    }

    /// EXECUTE name USING @a, …
    ///
    /// Boxed: the statement inside is dispatched by what dispatched this one.
    pub(crate) fn execute_named<'a>(&'a mut self, name: &'a str, using: &'a [String], sink: &'a mut dyn ResultSink) -> BoxFuture<'a, Result<Outcome, Failure>> {
        Box::pin(self.run_named(name, using, sink))
    }

    async fn run_named(&mut self, name: &str, using: &[String], sink: &mut dyn ResultSink) -> Result<Outcome, Failure> {
        let Some(statement) = self.prepared.by_name.get(&name.to_lowercase()).cloned() else {
            return Err(error::unknown_stmt_handler(name, "EXECUTE").into());
        };
        if statement.params != using.len() {
            return Err(error::wrong_arguments("EXECUTE").into());
        }
        self.state.count(StatusCounter::ComStmtExecute, 1);
        self.state.params = using.iter().map(|v| self.state.user_vars.get(v.to_lowercase().as_str()).map_or(Value::Null, |(value, _)| value.clone())).collect();
        self.statement_text = statement.text.clone();
        self.state.process.set_prepared(&statement.text, &self.state.params);
        let outcome = self.run_prepared(&statement, None, sink).await?;
        for out in std::mem::take(&mut self.routines.out_parameters) {
            if let Some(name) = using.get(out.index) {
                self.state.user_vars.insert(name.to_lowercase().into(), (out.value, out.ty.collation));
            }
        }
        Ok(outcome)
    }

    /// DEALLOCATE PREPARE name.
    pub(crate) fn deallocate(&mut self, name: &str) -> Result<Outcome, Failure> {
        if !self.prepared.close_named(&name.to_lowercase()) {
            return Err(error::unknown_stmt_handler(name, "DEALLOCATE PREPARE").into());
        }
        self.state.count(StatusCounter::ComStmtClose, 1);
        self.prepared_count(-1);
        Ok(Outcome::ok())
    }
}

/// Other values than it was bound with may make another plan of the statement.
fn plan_depends_on_values(plan: &Plan) -> bool {
    let mut found = false;
    !each_expr(plan, &mut |e| found |= depends_on_values(e)) || found
}

/// For each parameter the character sets of texts that it meets, if they do not hold everything. A value that one of them cannot hold is an error there: then the statement is bound with its values.
fn narrow_charsets(plan: &Plan) -> Vec<Vec<Charset>> {
    let is_narrow = |e: &Expr| !e.ty.ty.charset().can_encode(char::MAX);
    let (mut params, mut some_narrow) = (false, false);
    each_expr(plan, &mut |e| {
        params |= matches!(e.kind, ExprKind::Param(_));
        some_narrow |= is_narrow(e);
    });
    let mut narrow: Vec<Vec<Charset>> = Vec::new();
    if !params || !some_narrow {
        return narrow;
    }
    each_expr(plan, &mut |e| {
        // What these join does not meet, and a parameter meets nothing in itself.
        if matches!(e.kind, ExprKind::And(_) | ExprKind::Or(_) | ExprKind::Param(_)) {
            return;
        }
        let (mut met, mut charsets) = (Vec::new(), Vec::new());
        e.walk(&mut |part| {
            if let ExprKind::Param(at) = part.kind {
                met.push(at);
            }
            if is_narrow(part) && !charsets.contains(&part.ty.ty.charset()) {
                charsets.push(part.ty.ty.charset());
            }
        });
        for at in met {
            if narrow.len() <= at {
                narrow.resize(at + 1, Vec::new());
            }
            for charset in &charsets {
                if !narrow[at].contains(charset) {
                    narrow[at].push(*charset);
                }
            }
        }
    });
    narrow
}

/// Whether the character sets hold the texts among the values that meet them.
fn holds(narrow: &[Vec<Charset>], values: &[Value]) -> bool {
    let held = |text: &str, charsets: &[Charset]| text.is_ascii() || text.chars().all(|c| charsets.iter().all(|charset| charset.can_encode(c)));
    narrow.iter().zip(values).all(|(charsets, value)| charsets.is_empty() || value.as_str().is_none_or(|text| held(text, charsets)))
}

/// Goes through the expressions of a plan; false: it is of a kind that is not kept.
fn each_expr(plan: &Plan, f: &mut dyn FnMut(&Expr)) -> bool {
    match plan {
        Plan::Query(bound, _) => bound.rel.for_each_expr(&mut |e, _| f(e)),
        Plan::Insert(bound) => {
            let rows = if let bind::BoundSource::Rows(rows) = &bound.source { rows.as_slice() } else { &[] };
            let values = rows.iter().flatten().filter_map(RowValue::expr);
            let checks = bound.check.iter().map(|check| &check.condition);
            values.chain(bound.on_duplicate.iter().filter_map(|(_, value)| value.expr())).chain(checks).for_each(|e| e.walk(&mut |e| f(e)));
        }
        Plan::Update(BoundUpdate::Single(single)) => single.exprs().for_each(|e| e.walk(&mut |e| f(e))),
        Plan::Delete(BoundDelete::Single(single)) => single.exprs().for_each(|e| e.walk(&mut |e| f(e))),
        Plan::Update(_) | Plan::Delete(_) => return false,
    }
    true
}

fn has_param(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |e| found |= matches!(e.kind, ExprKind::Param(_)));
    found
}

fn depends_on_values(e: &Expr) -> bool {
    match &e.kind {
        // Of the type of their value.
        ExprKind::UserVar(_) | ExprKind::SystemVar { .. } | ExprKind::AssignUserVar { .. } => true,
        // It may be another one by then.
        ExprKind::Stored { .. } => true,
        // The plan has the rows that it finds.
        ExprKind::Match { .. } => true,
        // A number that is rounded has as many digits as it is rounded to.
        ExprKind::Call { func: FuncId::Round | FuncId::Truncate, args } => args.get(1).is_some_and(has_param),
        // What is made of a text has the digits of seconds that the text has, or its format.
        ExprKind::Call { func, args } if func.has_seconds_of_text() => args.iter().any(has_param),
        ExprKind::Compare { by, left, right, .. } => is_converted(left, right, *by) || is_converted(right, left, *by),
        ExprKind::In { expr, list, by, .. } => list.iter().any(|item| is_converted(item, expr, *by) || is_converted(expr, item, *by)),
        ExprKind::Subquery(subquery) => {
            let selected = subquery.plan.selected().map(|(_, exprs)| exprs).unwrap_or_default();
            let converts = |(i, (expr, by)): (usize, (&Expr, &CompareBy))| {
                is_converted(expr, &Expr::column(i, subquery.plan.fields[i].ty.clone()), *by) || selected.get(i).is_some_and(|item| is_converted(item, expr, *by))
            };
            match &subquery.kind {
                SubqueryKind::In { exprs, by, .. } => exprs.iter().zip(by).enumerate().any(converts),
                SubqueryKind::Quantified { expr, by, .. } => converts((0, (&**expr, by))),
                SubqueryKind::Scalar | SubqueryKind::Exists { .. } | SubqueryKind::Rows => false,
            }
        }
        _ => false,
    }
}

/// A string that a number or a date is compared with says by its value how: '7' is an integer, '7x' is not. A number may stand for a year of the century,
/// for a date or for a time of day, which a date has too. Bytes beside a latin1 text are characters of that.
fn is_converted(param: &Expr, other: &Expr, by: CompareBy) -> bool {
    let text = param.ty.ty.is_string() && !matches!(by, CompareBy::Text(_));
    let stored = match other.ty.ty.kind {
        TypeKind::Year => true,
        TypeKind::Date | TypeKind::DateTime(_) | TypeKind::Timestamp(_) => param.ty.ty.is_number(),
        TypeKind::Time(_) => param.ty.ty.is_number() || matches!(param.ty.ty.kind, TypeKind::Date | TypeKind::DateTime(_) | TypeKind::Timestamp(_)),
        _ => false,
    };
    let bytes = param.ty.ty.is_string() && param.ty.ty.charset() == Charset::Binary && matches!(by, CompareBy::Text(collation) if collation.charset.is_recoded());
    matches!(param.kind, ExprKind::Param(_)) && (text || stored || bytes)
}

fn plan_has_subquery(plan: &Plan) -> bool {
    match plan {
        Plan::Query(..) => false,
        Plan::Insert(bound) => execute::insert_has_subquery(bound),
        Plan::Update(BoundUpdate::Single(s)) => {
            s.filter.iter().chain(s.assignments.iter().filter_map(|(_, v)| v.expr())).any(Expr::has_subquery)
        }
        Plan::Delete(BoundDelete::Single(s)) => s.filter.iter().any(Expr::has_subquery),
        _ => true,
    }
}

/// Keeps the trait bound honest: sessions move between threads, and so does what they keep.
const _: fn() = || {
    fn send<T: Send>() {}
    send::<PreparedStatements>();
    send::<SessionState>();
};
