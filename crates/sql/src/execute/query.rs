//! SELECT: bound, its tables opened, run by the fast path or by DataFusion, sent to the client, a file or variables.

use std::sync::Arc;
use std::time::Duration;

use highkey_table::{Privileges, Snapshot, Table, TableId, View};
use highkey_types::{MySqlError, Value};
use parking_lot::Mutex;
use tokio::sync::mpsc::UnboundedReceiver;

use super::subqueries::settle_calls;
use super::answer::{CountedRows, FirstRows};
use super::{Failure, Outcome, answer, outfile};
use crate::bind;
use crate::df::{self, ParallelSettings, PlanSlot, QueryContext, RowStream, Rows, SerialReason};
use crate::fast::{FastQuery, Progress};
use crate::full_text::Search;
use crate::information_schema;
use crate::parse::ast;
use crate::plan::{self, BoundQuery, Expr, ExprKind, ExprType, Field, Hints, IndexAccess, IntoTarget, LockSpec, Rel, RelKind};
use crate::prepared::{CursorRows, KeptRows, OpenCursor, file_error};
use crate::routine::{FunctionCall, FunctionCalls, StoredFunction};
use crate::session::{Interruption, ResultSink, Session, SessionState, StatusCounter, error};

/// The base tables of a plan, those of its subqueries too, each once, and the views that it was bound through.
#[derive(Default)]
pub struct BoundTables {
    /// With whether the statement locks its rows.
    pub tables: Vec<(Arc<Table>, bool)>,
    /// The views that names stood for.
    pub views: Vec<Arc<View>>,
    /// Its full-text searches.
    searches: Vec<Arc<Search>>,
    /// Tables whose rows some scan locks.
    locked: Vec<TableId>,
    /// Tables that stored functions read; they are among `tables`.
    read_inside: Vec<Arc<Table>>,
    /// Some stored function runs queries.
    runs_inside: bool,
    /// Stored functions that the session runs. They open their tables themselves.
    pub called: Vec<Arc<StoredFunction>>,
}

impl BoundTables {
    pub fn of_query(query: &BoundQuery) -> BoundTables {
        let mut found = BoundTables::of(&query.rel);
        found.views.extend_from_slice(&query.views);
        found
    }

    pub fn of(rel: &Rel) -> BoundTables {
        let mut found = BoundTables::default();
        found.collect(rel);
        found
    }

    /// Of the query that finds the rows which a statement changes: `targets` are changed, whatever is locked on the way.
    pub fn changing<'t>(query: &BoundQuery, targets: impl Iterator<Item = &'t Arc<Table>>) -> BoundTables {
        let mut found = BoundTables::of_query(query);
        found.tables.iter_mut().for_each(|(_, write)| *write = false);
        targets.for_each(|table| found.add(table, true));
        found
    }

    pub fn one(table: &Arc<Table>, views: &[Arc<View>]) -> BoundTables {
        BoundTables { tables: vec![(table.clone(), true)], views: views.to_vec(), ..BoundTables::default() }
    }

    /// Which tables they are.
    pub fn ids(&self) -> Arc<[TableId]> {
        self.tables.iter().map(|(table, _)| table.id()).collect()
    }

    pub fn add(&mut self, table: &Arc<Table>, write: bool) {
        match self.tables.iter_mut().find(|(t, _)| Arc::ptr_eq(t, table)) {
            Some((_, w)) => *w |= write,
            None => self.tables.push((table.clone(), write)),
        }
    }

    pub fn collect(&mut self, rel: &Rel) {
        rel.for_each_operator(&mut |rel| {
            if let RelKind::Scan { table, lock, .. } = &rel.kind {
                self.add(table, lock.is_some_and(|l| l.exclusive));
                self.locked.extend(lock.map(|_| table.id()));
            }
        });
        let mut functions = Vec::new();
        rel.for_each_expr(&mut |e, _| {
            functions.extend(function_of(e));
            self.searches.extend(search_of(e));
        });
        functions.iter().for_each(|function| self.collect_function(function));
    }

    fn collect_function(&mut self, function: &Arc<StoredFunction>) {
        if function.runs_in_session() {
            self.called.push(function.clone());
            return;
        }
        if !function.runs_queries() {
            return;
        }
        let mut inside = BoundTables::default();
        function.queries().for_each(|query| inside.collect(query));
        function.exprs().for_each(|expr| inside.collect_expr(expr));
        for (table, _) in inside.tables {
            self.add(&table, false);
            self.read_inside.push(table);
        }
        self.searches.extend(inside.searches);
        self.views.extend(inside.views);
        self.views.extend_from_slice(function.views());
        self.runs_inside = true;
    }

    /// Those that are joined with others.
    fn collect_joined(&mut self, rel: &Rel) {
        match &rel.kind {
            RelKind::Join { .. } => self.collect(rel),
            _ => rel.inputs().into_iter().for_each(|input| self.collect_joined(input)),
        }
    }

    pub fn collect_expr(&mut self, expr: &Expr) {
        let (mut subqueries, mut functions) = (Vec::new(), Vec::new());
        expr.walk(&mut |e| {
            if let ExprKind::Subquery(subquery) = &e.kind {
                subqueries.push(&subquery.plan);
            }
            functions.extend(function_of(e));
            self.searches.extend(search_of(e));
        });
        for plan in subqueries {
            self.collect(plan);
        }
        functions.iter().for_each(|function| self.collect_function(function));
    }
}

/// The stored function that an expression itself is a call of.
fn function_of(expr: &Expr) -> Option<Arc<StoredFunction>> {
    match &expr.kind {
        ExprKind::Stored { function, .. } => Some(function.clone()),
        _ => None,
    }
}

/// The search of an expression that is one.
fn search_of(expr: &Expr) -> Option<Arc<Search>> {
    match &expr.kind {
        ExprKind::Match { search, .. } => Some(search.clone()),
        _ => None,
    }
}

/// Where a query's rows go.
pub(crate) enum Destination<'a> {
    Sink(&'a mut dyn ResultSink),
    /// INTO, INSERT … SELECT of another kind: all rows in memory.
    Memory(&'a mut Vec<Vec<Value>>),
}

/// What DataFusion is given of a session, for a query under a snapshot.
pub(crate) fn query_context_of(state: &SessionState, snapshot: Snapshot, parallel: ParallelSettings) -> (QueryContext, Arc<Mutex<SessionState>>) {
    state.instance.limit_queries();
    let eval = Arc::new(Mutex::new(state.clone()));
    let process = state.process.clone();
    let before = Arc::new(state.clone());
    let (virtual_state, virtual_eval) = (before.clone(), eval.clone());
    let anew = eval.clone();
    let cx = QueryContext {
        engine: state.instance.queries().clone(),
        snapshot,
        eval: eval.clone(),
        virtual_rows: Arc::new(move |table, wanted| {
            let mut warnings = Vec::new();
            let rows = information_schema::rows(&virtual_state, table, wanted, &mut warnings);
            virtual_eval.lock().push_warnings(&mut warnings);
            rows
        }),
        start_over: Arc::new(move || {
            let mut again = (*before).clone();
            again.calls = again.calls.filter(|calls| !calls.any());
            *anew.lock() = again;
        }),
        examined: process.examined_counter(),
        activity: process.queries().clone(),
        killed: process.killed_flag(),
        interruption: Arc::new(move || process.check().err().unwrap_or_else(df::killed_error)),
        recursion_limit: state.config.cte_max_recursion_depth,
        group_concat_max_len: state.config.group_concat_max_len,
        parallel,
        profile: None,
        slot: None,
    };
    (cx, eval)
}

impl Session {
    /// Opens the tables for this transaction: their definitions stay until it ends. False: a definition changed since binding.
    pub(crate) async fn open_tables(&mut self, tables: &BoundTables) -> Result<bool, MySqlError> {
        if !tables.tables.is_empty() {
            self.state.check_tables_allowed()?;
        }
        if self.routines.is_nested() {
            self.routines.check_unused(tables)?;
        }
        if self.state.locks.has_tables() {
            for (table, write) in tables.tables.iter().filter(|(table, _)| !table.is_temporary()) {
                let (schema, name) = (&table.def().schema, &table.def().name);
                if !self.state.in_body || self.state.locks.check_table(schema, name, false).is_ok() {
                    self.state.locks.check_table(schema, name, *write)?;
                }
            }
        }
        if tables.tables.iter().any(|(table, write)| *write && table.is_temporary()) {
            // What is prepared may outlive the session, and its tables.
            self.check_outside_xa()?;
        }
        if tables.tables.iter().any(|(table, write)| *write && !table.is_temporary()) {
            self.check_transaction_writable()?;
            self.begin_change(false).await?;
        }
        for view in &tables.views {
            if !self.txn().open_view(view).await? {
                return Ok(false);
            }
        }
        for (table, write) in &tables.tables {
            let txn = self.txn();
            let current = if *write { txn.open_to_write(table).await? } else { txn.open(table).await? };
            if !current {
                return Ok(false);
            }
        }
        if tables.runs_inside {
            let changed = |table: &Arc<Table>| tables.tables.iter().any(|(other, write)| *write && other.id() == table.id());
            if tables.read_inside.iter().any(changed) {
                return Err(highkey_types::errors::not_supported_yet("a change of a table that a stored function of the statement reads"));
            }
            self.state.reads = Some(self.txn().snapshot());
        }
        if !tables.called.is_empty() {
            self.begin_calls(tables)?;
        }
        if !tables.searches.is_empty() {
            let writes = tables.tables.iter().any(|(_, write)| *write);
            // Functions read under the statement's snapshot.
            let read_inside = |table: &Table| tables.read_inside.iter().any(|other| other.id() == table.id());
            self.settle_searches(&tables.searches, &|table| (writes || tables.locked.contains(&table.id())) && !read_inside(table))?;
        }
        Ok(true)
    }

    /// Binds a statement and opens its tables, again if DDL came between.
    pub(crate) async fn bind_and_open<B>(
        &mut self,
        bind: impl Fn(&SessionState) -> Result<B, MySqlError>,
        tables: impl Fn(&B) -> BoundTables,
    ) -> Result<B, MySqlError> {
        loop {
            let bound = bind(&self.state)?;
            if self.open_tables(&tables(&bound)).await? {
                return Ok(bound);
            }
        }
    }

    /// An expression of no row, for SET and DO, with the tables of its subqueries open.
    pub(crate) async fn bind_constant_and_open(&mut self, ast: &ast::Expr) -> Result<Expr, MySqlError> {
        let tables = |bound: &Expr| {
            let mut tables = BoundTables::default();
            tables.collect_expr(bound);
            tables
        };
        self.bind_and_open(|state| bind::bind_constant(ast, state), tables).await
    }

    /// SELECT and its relatives.
    pub(crate) async fn query(&mut self, query: &ast::Query, sink: &mut dyn ResultSink) -> Result<Outcome, Failure> {
        let bound = self.bind_query(query).await?;
        self.run_bound(&bound, None, sink).await
    }

    /// Runs a query as `bind_query` has bound it: on the fast path if that can. `cursor` as for `run_query`.
    pub(crate) async fn run_bound(&mut self, bound: &BoundQuery, cursor: Option<u32>, sink: &mut dyn ResultSink) -> Result<Outcome, Failure> {
        let fast = self.compile_fast(bound)?;
        self.run_query(bound, fast.as_ref(), cursor, sink).await
    }

    /// The query for the fast path, if that can run it and is the faster way.
    pub(crate) fn compile_fast(&mut self, bound: &BoundQuery) -> Result<Option<FastQuery>, MySqlError> {
        let mut tables = BoundTables::default();
        tables.collect_joined(&bound.rel);
        for (table, _) in &tables.tables {
            table.statistics(self.txn())?;
        }
        let state = &mut self.state;
        let executor = state.config.executor;
        // Not every value of a range may be known yet: then it is a guess.
        let mut estimate = |table: &Arc<Table>, access: &IndexAccess| -> Option<f64> {
            let ranges = plan::key_ranges(access, table.def(), state).ok()?;
            let rows: Result<u64, MySqlError> = ranges.iter().map(|range| table.estimate_range(access.index, range)).sum();
            Some(rows.ok()? as f64)
        };
        Ok(FastQuery::compile(bound, executor, &mut estimate))
    }

    /// Binds a query and opens its tables, again if DDL came between.
    pub(crate) async fn bind_query(&mut self, query: &ast::Query) -> Result<BoundQuery, MySqlError> {
        loop {
            let mut bound = bind::bind_query(query, &self.state)?;
            self.adjust(&mut bound);
            let tables = BoundTables::of_query(&bound);
            if self.open_tables(&tables).await? {
                self.note_hints(&bound.hints);
                return Ok(bound);
            }
        }
    }

    /// Warns of hints that are malformed or unknown.
    pub(crate) fn note_hints(&mut self, hints: &Hints) {
        for (code, warning) in &hints.warnings {
            self.state.push_warning(error::warning(*code, warning.clone()));
        }
    }

    /// What the session's settings add to a bound query.
    pub(crate) fn adjust(&mut self, bound: &mut BoundQuery) {
        if let Some(limit) = self.state.config.select_limit
            && !self.in_routine()
            && !matches!(bound.rel.kind, RelKind::Limit { .. })
            && bound.into.is_none()
        {
            let rel = std::mem::replace(&mut bound.rel, Rel::dual());
            bound.rel = rel.limit(None, Some(Expr::literal(Value::UInt(limit), ExprType::ubigint(false))));
        }
        if self.reads_lock() {
            bound.locking |= share_scans(&mut bound.rel);
        }
    }

    /// A query of a statement that writes: what it reads is locked in share mode where reads can lock gaps, so that the statement means the same to
    /// whoever repeats it in commit order. MySQL's rule.
    pub(crate) fn share_reads(&self, query: &mut BoundQuery) {
        if self.locks_gaps() {
            query.locking |= share_scans(&mut query.rel);
        }
    }

    /// Runs a bound query whose tables are open. `cursor` keeps the rows for COM_STMT_FETCH of that statement.
    pub(crate) async fn run_query(&mut self, bound: &BoundQuery, fast: Option<&FastQuery>, cursor: Option<u32>, sink: &mut dyn ResultSink) -> Result<Outcome, Failure> {
        let _timer = self.execution_timer(bound);
        if let Some(into) = &bound.into {
            return Box::pin(self.query_into(bound, fast, into)).await;
        }
        if let Some(id) = cursor {
            let cursor = self.keep_rows(bound, fast).await?;
            sink.columns(&answer::columns(&self.state, bound.fields()));
            self.prepared.open_cursor(id, cursor);
            return Ok(Outcome::Cursor);
        }
        if bound.calc_found_rows {
            return Box::pin(self.query_counting_all(bound, sink)).await;
        }
        let count = self.collect(bound, fast, &mut Destination::Sink(sink)).await?;
        Ok(Outcome::Rows { count, found: true })
    }

    /// Runs the query into a destination; how many rows.
    pub(crate) async fn collect(&mut self, bound: &BoundQuery, fast: Option<&FastQuery>, destination: &mut Destination<'_>) -> Result<u64, Failure> {
        if let Some(rows) = self.try_fast(bound, fast, destination).await? {
            return Ok(rows);
        }
        self.collect_planned(bound, None, destination).await
    }

    /// Runs the query to its end; its rows wait in memory, or in a file if they are more than a few. Error 1114 beyond `highkey_temp_space_limit`.
    pub(crate) async fn keep_rows(&mut self, bound: &BoundQuery, fast: Option<&FastQuery>) -> Result<OpenCursor, Failure> {
        Ok(self.kept_rows(bound, fast).await?.read())
    }

    /// Takes rows that are to wait, in the temporary space that there may be now.
    pub(crate) fn rows_to_keep(&self) -> CursorRows {
        let instance = &self.state.instance;
        instance.limit_queries();
        CursorRows::new(instance.queries().clone())
    }

    /// As `keep_rows`, to be read more than once.
    pub(crate) async fn kept_rows(&mut self, bound: &BoundQuery, fast: Option<&FastQuery>) -> Result<Arc<KeptRows>, Failure> {
        let mut rows = self.rows_to_keep();
        match self.collect(bound, fast, &mut Destination::Sink(&mut rows)).await {
            // Not the client's: the rows go to a file.
            Err(Failure::Io(e)) => return Err(file_error(&e).into()),
            collected => collected?,
        };
        Ok(rows.finish().map_err(|e| file_error(&e))?)
    }

    /// The rows of a query that finds what a statement changes.
    pub(crate) async fn rows_found_by(&mut self, bound: &BoundQuery) -> Result<Arc<KeptRows>, Failure> {
        let fast = self.compile_fast(bound)?;
        let rows = self.kept_rows(bound, fast.as_ref()).await?;
        self.state.check_strict()?;
        Ok(rows)
    }

    /// As `collect`, on DataFusion. `slot`: where its plan is kept.
    pub(crate) async fn collect_planned(&mut self, bound: &BoundQuery, slot: Option<Arc<PlanSlot>>, destination: &mut Destination<'_>) -> Result<u64, Failure> {
        self.state.count(StatusCounter::SelectDataFusion, 1);
        let mut stream = Box::pin(self.begin_query(bound.clone(), slot)).await?;
        let mut count = 0;
        if let Destination::Sink(sink) = destination {
            sink.columns(&answer::columns(&self.state, bound.fields()));
        }
        let outcome = loop {
            let rows = match self.next_rows(&mut stream).await {
                Ok(Some(rows)) => rows,
                Ok(None) => break Ok(()),
                Err(e) => break Err(e),
            };
            count += rows.len() as u64;
            match destination {
                Destination::Sink(sink) => {
                    let _ = rows.for_each(|row| {
                        sink.row(row);
                        Ok::<(), std::convert::Infallible>(())
                    });
                    if sink.wants_flush()
                        && let Err(e) = sink.flush().await
                    {
                        break Err(Failure::Io(e));
                    }
                }
                Destination::Memory(kept) => kept.extend(rows.to_vec()),
            }
        };
        stream.finish(&mut self.state);
        outcome?;
        Ok(count)
    }

    /// Runs the query on the fast path; how many rows. `None`: that is too much for one thread and rows of values. Nothing has been sent, DataFusion
    /// starts anew.
    pub(crate) async fn try_fast(&mut self, bound: &BoundQuery, fast: Option<&FastQuery>, destination: &mut Destination<'_>) -> Result<Option<u64>, Failure> {
        let Some(fast) = fast.filter(|fast| !(fast.shares_whole_table() && self.locks_gaps())) else { return Ok(None) };
        let lines = if self.profile.is_some() { self.fast_lines(fast, bound)? } else { Vec::new() };
        let diagnostics = self.state.diagnostics.clone();
        let read_before = self.state.process.rows_examined();
        match self.run_fast(fast, bound.fields(), destination).await? {
            Progress::Done(rows, measured) => {
                if let Some(profile) = &self.profile {
                    profile.set_query(lines.into_iter().map(|line| line.line(&measured)).collect());
                }
                self.state.count(StatusCounter::SelectFastPath, 1);
                self.note_serial(&bound.hints, self.state.process.rows_examined().saturating_sub(read_before));
                Ok(Some(rows))
            }
            Progress::TooLarge => {
                // Who starts anew warns anew.
                self.state.diagnostics = diagnostics;
                Ok(None)
            }
        }
    }

    /// The fast path has read so many rows. If they cost what several threads are for, it is why they were read by one.
    fn note_serial(&self, hints: &Hints, rows: u64) {
        let parallel = &self.state.config.parallel;
        if rows > 0 && rows as f64 * df::ROW_COST >= parallel.cost_threshold as f64 && parallel.wants_several(&hints.pq) {
            self.state.instance.queries().workers().stayed_serial(SerialReason::FastPath);
            self.state.process.queries().note_degree(Err(SerialReason::FastPath));
        }
    }

    /// Starts a query on DataFusion, once what it locks is locked.
    pub(crate) async fn stream(&mut self, bound: BoundQuery) -> Result<Running, Failure> {
        self.begin_query(bound, None).await
    }

    async fn begin_query(&mut self, mut bound: BoundQuery, slot: Option<Arc<PlanSlot>>) -> Result<Running, Failure> {
        if self.state.reads.is_some() {
            settle_calls(&mut bound.rel, &self.state);
        }
        let latest = bound.locking && self.lock_plan(&mut bound.rel).await?;
        let snapshot = if latest { self.txn().fresh_snapshot() } else { self.txn().snapshot() };
        let mut calls = None;
        if bound.rel.calls_session() {
            let (asking, asked) = FunctionCalls::channel();
            (self.state.calls, calls) = (Some(asking), Some(asked));
        }
        let (mut cx, eval) = self.query_context_with_eval(snapshot, &bound.hints);
        self.state.calls = None;
        cx.parallel.ordered = bound.ordered;
        cx.slot = slot;
        cx.activity.note_settings(&cx.parallel);
        let examined_before = self.state.process.rows_examined();
        match self.serve_calls(&mut calls, df::query(bound, cx)).await? {
            Ok(rows) => Ok(Running { rows, eval, calls, warnings_before: self.state.diagnostics.conditions().len(), examined_before }),
            Err(e) => {
                // Who waits for an answer has the state that it evaluates in.
                drop(calls);
                self.state.absorb(&eval.lock());
                Err(e.into())
            }
        }
    }

    /// The next rows of a query. Meanwhile the session runs the functions that it calls.
    async fn next_rows(&mut self, running: &mut Running) -> Result<Option<Rows>, Failure> {
        let Running { rows, calls, .. } = running;
        Ok(self.serve_calls(calls, rows.next()).await??)
    }

    /// Rows were read for the statement, whatever becomes of them.
    pub(crate) fn note_read(&self, rows: u64) {
        self.state.count(StatusCounter::InnodbRowsRead, rows);
        self.state.process.add_examined(rows);
    }

    /// What DataFusion is given of this session.
    pub(crate) fn query_context(&mut self, hints: &Hints) -> QueryContext {
        let snapshot = self.txn().snapshot();
        self.query_context_with_eval(snapshot, hints).0
    }

    fn query_context_with_eval(&mut self, snapshot: Snapshot, hints: &Hints) -> (QueryContext, Arc<Mutex<SessionState>>) {
        let parallel = self.parallel_settings(hints);
        let (mut cx, eval) = query_context_of(&self.state, snapshot, parallel);
        cx.profile = self.profile.clone();
        (cx, eval)
    }

    /// What the session and the hints of a statement ask of its queries.
    pub(crate) fn parallel_settings(&self, hints: &Hints) -> ParallelSettings {
        ParallelSettings {
            max_workers: self.state.instance.global_u64("parallel_max_threads") as usize,
            hint: hints.pq.clone(),
            ..self.state.config.parallel.clone()
        }
    }

    /// All rows of a query in memory, for statements that need them so.
    pub(crate) async fn rows_of(&mut self, bound: &BoundQuery) -> Result<Vec<Vec<Value>>, Failure> {
        let fast = self.compile_fast(bound)?;
        let mut rows = Vec::new();
        self.collect(bound, fast.as_ref(), &mut Destination::Memory(&mut rows)).await?;
        self.state.check_strict()?;
        Ok(rows)
    }

    /// The first rows of a query, `most` at most: it ends with the last of them.
    pub(crate) async fn first_rows_of(&mut self, bound: &BoundQuery, most: usize) -> Result<Vec<Vec<Value>>, Failure> {
        let fast = self.compile_fast(bound)?;
        let mut first = FirstRows::new(most);
        let ran = self.collect(bound, fast.as_ref(), &mut Destination::Sink(&mut first)).await;
        first.ended(ran)?;
        self.state.check_strict()?;
        Ok(first.rows)
    }

    /// SQL_CALC_FOUND_ROWS: everything is computed, the LIMIT at the root only hides.
    async fn query_counting_all(&mut self, bound: &BoundQuery, sink: &mut dyn ResultSink) -> Result<Outcome, Failure> {
        let (input, (offset, count)) = without_limit(bound.rel.clone());
        let offset = self.limit_value(offset.as_ref())?.unwrap_or(0);
        let count = self.limit_value(count.as_ref())?.unwrap_or(u64::MAX);
        let whole = BoundQuery { rel: input, calc_found_rows: false, ..bound.clone() };
        let fast = self.compile_fast(&whole)?;
        let mut counted = CountedRows::new(sink, offset, count);
        self.collect(&whole, fast.as_ref(), &mut Destination::Sink(&mut counted)).await?;
        self.rows_sent = Some(counted.sent);
        Ok(Outcome::Rows { count: counted.all, found: true })
    }

    /// The value of a LIMIT or OFFSET.
    pub(crate) fn limit_value(&mut self, expr: Option<&Expr>) -> Result<Option<u64>, MySqlError> {
        let Some(expr) = expr else { return Ok(None) };
        let value = crate::expr::eval(expr, &[], &mut self.state)?;
        match value {
            Value::UInt(n) => Ok(Some(n)),
            // A negative one is a variable's of a routine, which is taken as a number without a sign.
            Value::Int(n) if n >= 0 || !self.state.declared_types.is_empty() => Ok(Some(n as u64)),
            Value::Null => Ok(Some(0)),
            other => match self.state.with_cast(|cx| highkey_types::cast::to_i64(&other, cx)) {
                Some(n) if n >= 0 => Ok(Some(n as u64)),
                _ => Err(error::wrong_arguments("LIMIT")),
            },
        }
    }

    async fn query_into(&mut self, bound: &BoundQuery, fast: Option<&FastQuery>, into: &IntoTarget) -> Result<Outcome, Failure> {
        if !matches!(into, IntoTarget::Variables(_)) {
            self.state.check_global(Privileges::FILE, "FILE")?;
        }
        match into {
            IntoTarget::Variables(names) => {
                if names.len() != bound.fields().len() {
                    return Err(error::wrong_number_of_columns_in_select().into());
                }
                // The second is one too many.
                let mut first = FirstRows::new(2);
                let ran = self.collect(bound, fast, &mut Destination::Sink(&mut first)).await;
                first.ended(ran)?;
                let count = first.rows.len();
                let Some(row) = first.rows.into_iter().next() else {
                    self.state.push_warning(error::warning(1329, "No data - zero rows fetched, selected, or processed"));
                    return Ok(Outcome::ok());
                };
                // As in MySQL they have the first row's values whatever comes behind it.
                for ((name, value), field) in names.iter().zip(row).zip(bound.fields()) {
                    self.state.user_vars.insert(name.clone(), (value, field.ty.collation()));
                }
                if count > 1 {
                    return Err(error::too_many_rows().into());
                }
                Ok(Outcome::affected(1))
            }
            IntoTarget::Outfile { path, charset, format } => {
                let mut file = outfile::Outfile::create(&self.state, path, charset.as_deref(), format.clone(), bound.fields())?;
                let mut stream = self.stream(bound.clone()).await?;
                let outcome = async {
                    while let Some(rows) = self.next_rows(&mut stream).await? {
                        rows.for_each(|row| file.row(row))?;
                    }
                    Ok::<u64, Failure>(file.finish()?)
                }
                .await;
                stream.finish(&mut self.state);
                match outcome {
                    Ok(written) => Ok(Outcome::affected(written)),
                    Err(e) => {
                        file.remove();
                        Err(e)
                    }
                }
            }
            IntoTarget::Dumpfile(path) => {
                let rows = self.first_rows_of(&BoundQuery { into: None, ..bound.clone() }, 2).await?;
                if rows.len() > 1 {
                    return Err(error::too_many_rows().into());
                }
                outfile::dump(&self.state, path, rows.first().map_or(&[], |r| r.as_slice()), bound.fields())?;
                Ok(Outcome::affected(rows.len() as u64))
            }
        }
    }

    /// Ends the statement with 3024 after MAX_EXECUTION_TIME, unless it calls functions that change tables; stops counting when dropped.
    pub(crate) fn execution_timer(&self, bound: &BoundQuery) -> Option<ExecutionTimer> {
        let limit = bound.hints.max_execution_time_ms.unwrap_or(self.state.config.max_execution_time_ms);
        // Not for what a routine runs.
        if limit == 0 || self.in_routine() {
            return None;
        }
        let mut changes = false;
        bound.rel.for_each_expr(&mut |e, _| changes |= matches!(&e.kind, ExprKind::Stored { function, .. } if function.changes_tables()));
        if changes {
            return None;
        }
        self.state.count(StatusCounter::MaxExecutionTimeSet, 1);
        let process = self.state.process.clone();
        let task = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(limit)).await;
            process.interrupt(Interruption::Timeout);
        });
        Some(ExecutionTimer(task))
    }
}

/// See `Session::execution_timer`.
pub(crate) struct ExecutionTimer(tokio::task::JoinHandle<()>);

impl Drop for ExecutionTimer {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A query on DataFusion with the copy of the session's state that it evaluates in.
pub(crate) struct Running {
    pub rows: RowStream,
    eval: Arc<Mutex<SessionState>>,
    /// Where its threads ask for calls of functions that the session runs, if it makes some. Until this is dropped, or they have their answers, they keep `eval`.
    calls: Option<UnboundedReceiver<FunctionCall>>,
    warnings_before: usize,
    /// Rows that the statement had read before.
    examined_before: u64,
}

impl Running {
    /// Brings warnings, user variables and the like back into the session.
    pub fn finish(self, state: &mut SessionState) {
        self.count_read(state);
        drop(self.rows);
        drop(self.calls);
        state.process.queries().end();
        state.absorb(&self.eval.lock());
    }

    /// What ends a statement in strict mode, if the rows so far have met it.
    pub fn check_strict(&self) -> Result<(), MySqlError> {
        self.eval.lock().check_strict()
    }

    /// As `finish`, for a statement that has raised warnings of its own meanwhile.
    pub fn finish_keeping_warnings(self, state: &mut SessionState) {
        self.count_read(state);
        drop(self.rows);
        drop(self.calls);
        state.process.queries().end();
        let copy = self.eval.lock();
        state.user_vars.clone_from(&copy.user_vars);
        state.absorb_strict_error(&copy);
        let known = self.warnings_before;
        for warning in copy.diagnostics.conditions().iter().skip(known) {
            state.push_warning(warning.clone());
        }
    }

    fn count_read(&self, state: &mut SessionState) {
        let read = state.process.rows_examined() - self.examined_before;
        state.count(StatusCounter::InnodbRowsRead, read);
        let work = state.process.queries().take_work(read);
        state.work.add(&work);
    }
}

/// Makes all scans that do not lock yet lock in share mode, those of subqueries too; true if there was one.
fn share_scans(rel: &mut Rel) -> bool {
    let mut any = share_own_scans(rel);
    rel.for_each_root_mut(&mut |root| {
        root.walk_mut(&mut |e| {
            if let ExprKind::Subquery(subquery) = &mut e.kind {
                any |= share_scans(&mut subquery.plan);
            }
        });
    });
    any
}

fn share_own_scans(rel: &mut Rel) -> bool {
    let mut any = false;
    if let RelKind::Scan { lock, .. } = &mut rel.kind {
        lock.get_or_insert(LockSpec { exclusive: false, wait: ast::LockWait::Wait });
        any = true;
    }
    rel.inputs_mut().into_iter().fold(any, |any, input| share_own_scans(input) | any)
}

/// Fields for a plan's output, by table column.
pub(crate) fn table_fields(table: &Table, alias: &str) -> Vec<Field> {
    let def = table.def();
    def.columns
        .iter()
        .map(|c| Field {
            name: c.name.clone(),
            table: alias.into(),
            schema: def.schema.clone(),
            org_table: def.name.clone(),
            org_name: c.name.clone(),
            ty: ExprType::column(c.ty.clone(), c.nullable),
            flags: 0,
            invisible: c.invisible,
        })
        .collect()
}

/// A query without the LIMIT at its root, above which columns that only ORDER BY needs may be left out; and that LIMIT's OFFSET and count.
fn without_limit(rel: Rel) -> (Rel, (Option<Expr>, Option<Expr>)) {
    let Rel { kind, fields } = rel;
    match kind {
        RelKind::Limit { input, offset, count } => (*input, (offset, count)),
        RelKind::Project { input, exprs } if hides_columns(&exprs, &input) => {
            let (input, limit) = without_limit(*input);
            (input.project(exprs, fields), limit)
        }
        kind => (Rel { kind, fields }, (None, None)),
    }
}

/// A projection that only leaves out the nameless columns at the end which ORDER BY needs: no part of the query as it was written.
fn hides_columns(exprs: &[Expr], input: &Rel) -> bool {
    let same = exprs.iter().enumerate().all(|(i, e)| e.as_column() == Some(i));
    same && exprs.len() < input.fields.len() && input.fields[exprs.len()..].iter().all(|field| field.name.is_empty())
}
