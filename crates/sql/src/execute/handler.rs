//! HANDLER: the rows of a table one after the other, by an index or in the table's own order.
//!
//! A handler is a name and a place. Nothing is held between statements: each READ reads under the transaction's view like a query, from where the one before has ended. When the session itself has changed
//! the definition, or given the name to another table, the handler is closed; when another one has, it begins anew with the table of the name. The own order of a table with partitions is that of its primary key here, where MySQL reads one partition after the other.

use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;
use std::sync::Arc;

use highkey_table::{Direction, IndexKind, KeyRange, Privileges, RowBatch, Table, TableId};
use highkey_types::{MySqlError, Str, StoreContext, Value, errors};

use super::query::BoundTables;
use super::{Failure, Outcome, columns};
use crate::bind;
use crate::expr;
use crate::information_schema;
use crate::parse::ast::{self, HandlerComparison, HandlerRead, HandlerStatement, HandlerStep, ObjectName};
use crate::plan::{Expr, ExprKind, Field};
use crate::session::{ResultSink, Session};

/// What a session has opened, by the name in lower case.
#[derive(Default)]
pub(crate) struct Handlers {
    open: BTreeMap<String, Handler>,
    /// The session has run statements that change definitions: see `Session::close_changed_handlers`.
    defined: bool,
}

struct Handler {
    schema: Str,
    table: Str,
    /// The definition that it was opened with, or has begun anew with.
    id: TableId,
    version: u64,
    /// `None`: nothing has been read.
    cursor: Option<Cursor>,
}

struct Cursor {
    /// The index that the place is in; `None`: the table's own order.
    order: Option<usize>,
    place: Place,
}

#[derive(Clone)]
enum Place {
    BeforeFirst,
    BehindLast,
    /// A row: its values in the index, and its clustered key.
    Row(Vec<Value>, Vec<u8>),
    /// Where rows with these values would be: there were none.
    Between(Vec<Value>),
}

/// Where a READ looks for rows.
struct Reading {
    direction: Direction,
    ranges: Vec<KeyRange>,
    /// Rows of the first range come behind the one with this clustered key.
    behind: Option<Vec<u8>>,
}

impl Handlers {
    /// FLUSH TABLES: each begins anew.
    pub(crate) fn rewind(&mut self) {
        self.open.values_mut().for_each(|handler| handler.cursor = None);
    }

    /// The session runs a statement that changes definitions.
    pub(crate) fn note_definition(&mut self) {
        self.defined = !self.open.is_empty();
    }
}

impl Session {
    pub(crate) async fn handler(&mut self, statement: &HandlerStatement, sink: &mut dyn ResultSink) -> Result<Outcome, Failure> {
        if self.state.locks.has_tables() {
            return Err(errors::lock_or_active_transaction().into());
        }
        self.close_changed_handlers();
        match statement {
            HandlerStatement::Open { table, alias } => {
                self.open_handler(table, alias.as_deref().unwrap_or(&table.name))?;
                Ok(Outcome::ok())
            }
            HandlerStatement::Close(name) => {
                self.handlers.open.remove(&name.to_lowercase()).ok_or_else(|| unknown(name))?;
                Ok(Outcome::ok())
            }
            HandlerStatement::Read(read) => self.read_handler(read, sink).await,
        }
    }

    /// Errors 1049, 1066, 1142, 1146, and 1347 for what is no table of the catalog.
    fn open_handler(&mut self, named: &ObjectName, name: &str) -> Result<(), MySqlError> {
        if self.handlers.open.contains_key(&name.to_lowercase()) {
            return Err(errors::nonuniq_table(name));
        }
        let schema = self.state.schema_of(named.schema.as_deref())?;
        if let Some(access) = self.state.access().filter(|_| !self.state.is_temporary(named)) {
            access.check_table(Privileges::SELECT, &schema, &named.name)?;
        }
        if information_schema::find_shown(&self.state.instance.database().catalog(), &schema, &named.name).is_some() {
            return Err(errors::wrong_object(&schema, &named.name, "BASE TABLE"));
        }
        self.check_base_table(&schema, &named.name)?;
        let table = self.state.base_table(&schema, &named.name)?;
        let def = table.def();
        let handler = Handler { schema, table: def.name.clone(), id: def.id, version: def.version, cursor: None };
        self.handlers.open.insert(name.to_lowercase(), handler);
        Ok(())
    }

    /// Closes the handlers of tables that are not what they were, if the session has changed definitions.
    fn close_changed_handlers(&mut self) {
        if std::mem::take(&mut self.handlers.defined) {
            let state = &self.state;
            self.handlers.open.retain(|_, handler| state.base_table(&handler.schema, &handler.table).is_ok_and(|table| handler.is_of(&table)));
        }
    }

    /// RENAME TABLE closes the handlers of the tables that it names, though they may have their names again in the end.
    pub(super) fn close_renamed_handlers(&mut self, renames: &[(ObjectName, ObjectName)]) {
        let state = &self.state;
        let is_of = |name: &ObjectName, handler: &Handler| {
            *name.name == *handler.table && state.schema_of(name.schema.as_deref()).is_ok_and(|schema| schema == handler.schema)
        };
        self.handlers.open.retain(|_, handler| !renames.iter().any(|(from, to)| is_of(from, handler) || is_of(to, handler)));
    }

    /// The table of an open handler. One that another session has changed is read from its beginning. Errors 1109, 1146.
    fn handler_table(&mut self, name: &str) -> Result<Arc<Table>, MySqlError> {
        let handler = self.handlers.open.get_mut(&name.to_lowercase()).ok_or_else(|| unknown(name))?;
        let table = self.state.base_table(&handler.schema, &handler.table)?;
        if !handler.is_of(&table) {
            (handler.id, handler.version, handler.cursor) = (table.def().id, table.def().version, None);
        }
        Ok(table)
    }

    /// Errors 1054, 1070, 1109, 1146, 1176, 1210.
    async fn read_handler(&mut self, read: &HandlerRead, sink: &mut dyn ResultSink) -> Result<Outcome, Failure> {
        let table = loop {
            let table = self.handler_table(&read.name)?;
            let mut tables = BoundTables::default();
            tables.add(&table, false);
            if self.open_tables(&tables).await? {
                break table;
            }
        };
        let def = table.def();
        let order = match &read.index {
            None => None,
            Some(name) => {
                let found = def.index(name).filter(|at| def.indexes[*at].kind != IndexKind::FullText);
                Some(found.ok_or_else(|| errors::key_does_not_exits(name, &read.name))?)
            }
        };
        // Index 0 has the rows in their own order.
        let index = order.unwrap_or(0);
        let fields = bind::table_fields(def, &read.name);
        let condition = match &read.condition {
            None => None,
            Some(condition) => Some(evaluable(bind::bind_fields_expr(condition, &fields, true, &self.state)?)?),
        };
        let (skipped, wanted) = match &read.limit {
            None => (0, 1),
            Some(limit) => {
                let skipped = match &limit.offset {
                    Some(offset) => count_of(&self.constant(offset).await?),
                    None => 0,
                };
                (skipped, count_of(&self.constant(&limit.count).await?))
            }
        };
        let key = match &read.step {
            HandlerStep::Key(_, values) => self.handler_key(&table, index, values)?,
            _ => Some(Vec::new()),
        };
        let cursor = self.handlers.open.get(&read.name.to_lowercase()).and_then(|handler| handler.cursor.as_ref());
        let place = cursor.filter(|cursor| cursor.order == order).map(|cursor| cursor.place.clone());
        let shown: Vec<usize> = (0..def.columns.len()).filter(|at| !def.columns[*at].invisible).collect();
        let shown_fields: Vec<Field> = shown.iter().map(|at| fields[*at].clone()).collect();
        sink.columns(&columns(&self.state, &shown_fields));
        // No row has NULL in a column that cannot have it.
        let Some(key) = key.filter(|_| wanted > 0) else { return Ok(Outcome::Rows { count: 0, found: true }) };
        let reading = reading(&read.step, key.clone(), place);
        let snapshot = self.txn().snapshot();
        let by_prefix = def.indexes[index].parts.iter().any(|part| part.prefix.is_some());
        // Where values are cut off, the second range has the rows of the first one again.
        let mut met: HashSet<Vec<u8>> = HashSet::new();
        let mut last: Option<(Vec<Value>, Vec<u8>)> = None;
        let (mut matching, mut sent, mut batch) = (0u64, 0u64, RowBatch::new());
        let mut full = false;
        'ranges: for (number, range) in reading.ranges.iter().enumerate() {
            let mut scan = table.scan_at(&snapshot, index, range, reading.direction)?;
            while scan.next_batch(&mut batch)? {
                self.state.process.check()?;
                self.note_read(batch.len() as u64);
                for at in 0..batch.len() {
                    let clustered = batch.key(at);
                    let passed = match &reading.behind {
                        Some(behind) if number == 0 && reading.direction == Direction::Forward => clustered <= behind.as_slice(),
                        Some(behind) if number == 0 => clustered >= behind.as_slice(),
                        _ => met.contains(clustered),
                    };
                    if by_prefix && number == 0 && reading.ranges.len() > 1 {
                        met.insert(clustered.to_vec());
                    }
                    if passed {
                        continue;
                    }
                    let values = batch.values(at);
                    let matches = match &condition {
                        Some(condition) => expr::eval_condition(condition, &values, &mut self.state)?,
                        None => true,
                    };
                    last = Some((key_values(&table, index, &values, clustered), clustered.to_vec()));
                    if !matches {
                        continue;
                    }
                    matching += 1;
                    if matching > skipped {
                        let row: Vec<Value> = shown.iter().map(|column| values[*column].clone()).collect();
                        sink.row(&row);
                        sent += 1;
                    }
                    if matching == skipped.saturating_add(wanted) {
                        full = true;
                        break 'ranges;
                    }
                }
                if sink.wants_flush() {
                    sink.flush().await?;
                }
                tokio::task::yield_now().await;
            }
        }
        let place = match (last, reading.direction) {
            (Some((values, clustered)), _) if full || is_equal(&read.step) => Place::Row(values, clustered),
            (None, _) if is_equal(&read.step) => Place::Between(key),
            (_, Direction::Forward) => Place::BehindLast,
            (_, Direction::Backward) => Place::BeforeFirst,
        };
        if let Some(handler) = self.handlers.open.get_mut(&read.name.to_lowercase()) {
            handler.cursor = Some(Cursor { order, place });
        }
        Ok(Outcome::Rows { count: sent, found: true })
    }

    /// The values of READ as the columns of the index have them; `None`: no row can. Errors 1070, 1210.
    fn handler_key(&mut self, table: &Table, index: usize, values: &[ast::Expr]) -> Result<Option<Vec<Value>>, MySqlError> {
        let def = table.def();
        let parts = &def.indexes[index].parts;
        if values.len() > parts.len() {
            return Err(errors::too_many_key_parts(parts.len()));
        }
        let mut key = Vec::with_capacity(values.len());
        for (value, part) in values.iter().zip(parts) {
            let column = &def.columns[part.column];
            let wrong = |e: MySqlError| if e.code == 1054 { errors::wrong_arguments("HANDLER ... READ") } else { e };
            let bound = evaluable(bind::bind_default(value, &column.ty, &self.state).map_err(wrong)?)?;
            let value = expr::eval(&bound, &[], &mut self.state)?;
            if value.is_null() && !column.nullable {
                return Ok(None);
            }
            if value.is_null() {
                key.push(value);
                continue;
            }
            // What does not fit is the nearest that does.
            let mut warnings = Vec::new();
            let config = &self.state.config;
            let mut cx = StoreContext {
                strict: false,
                ignore: false,
                mode: config.sql_mode,
                time_zone: &config.time_zone,
                now_micros: self.state.now_micros,
                row: 1,
                warnings: &mut warnings,
            };
            key.push(highkey_types::store(value, &column.ty, &column.name, &mut cx)?);
        }
        Ok(Some(key))
    }
}

impl Handler {
    /// The table is what it was opened with, or has begun anew with.
    fn is_of(&self, table: &Table) -> bool {
        (table.def().id, table.def().version) == (self.id, self.version)
    }
}

/// Error 1109: no handler of that name is open.
fn unknown(name: &str) -> MySqlError {
    errors::unknown_table(name, "HANDLER")
}

fn is_equal(step: &HandlerStep) -> bool {
    matches!(step, HandlerStep::Key(HandlerComparison::Equal, _))
}

/// Error 1235 for what only a query can evaluate.
fn evaluable(bound: Expr) -> Result<Expr, MySqlError> {
    let mut calls = false;
    bound.walk(&mut |e| calls |= matches!(e.kind, ExprKind::Stored { .. }));
    if calls || bound.has_subquery() { Err(errors::not_supported_yet("subqueries and stored functions in HANDLER")) } else { Ok(bound) }
}

/// Of LIMIT.
fn count_of(value: &Value) -> u64 {
    match value {
        Value::Int(n) => u64::try_from(*n).unwrap_or(0),
        Value::UInt(n) => *n,
        _ => 0,
    }
}

/// What finds a row again in an index: its values there, or the row id of a table without primary key.
fn key_values(table: &Table, index: usize, values: &[Value], clustered: &[u8]) -> Vec<Value> {
    let index = &table.def().indexes[index];
    match index.kind {
        IndexKind::RowId => vec![Value::Bytes(clustered.to_vec())],
        _ => index.parts.iter().map(|part| values[part.column].clone()).collect(),
    }
}

/// The ranges in which a READ looks, from the place that the one before has left.
fn reading(step: &HandlerStep, key: Vec<Value>, place: Option<Place>) -> Reading {
    use Bound::{Excluded, Included, Unbounded};
    let one = |direction, range| Reading { direction, ranges: vec![range], behind: None };
    let none = |direction| Reading { direction, ranges: Vec::new(), behind: None };
    let from = |lower| KeyRange { lower, upper: Unbounded };
    let to = |upper| KeyRange { lower: Unbounded, upper };
    match (step, place) {
        (HandlerStep::First, _) | (HandlerStep::Next, None | Some(Place::BeforeFirst)) => one(Direction::Forward, KeyRange::all()),
        (HandlerStep::Last, _) | (HandlerStep::Previous, None | Some(Place::BehindLast)) => one(Direction::Backward, KeyRange::all()),
        (HandlerStep::Next, Some(Place::BehindLast)) => none(Direction::Forward),
        (HandlerStep::Previous, Some(Place::BeforeFirst)) => none(Direction::Backward),
        (HandlerStep::Next, Some(Place::Between(values))) => one(Direction::Forward, from(Excluded(values))),
        (HandlerStep::Previous, Some(Place::Between(values))) => one(Direction::Backward, to(Excluded(values))),
        (HandlerStep::Next, Some(Place::Row(values, clustered))) => {
            let ranges = vec![KeyRange::prefix(&values), from(Excluded(values))];
            Reading { direction: Direction::Forward, ranges, behind: Some(clustered) }
        }
        (HandlerStep::Previous, Some(Place::Row(values, clustered))) => {
            let ranges = vec![KeyRange::prefix(&values), to(Excluded(values))];
            Reading { direction: Direction::Backward, ranges, behind: Some(clustered) }
        }
        (HandlerStep::Key(comparison, _), _) => match comparison {
            HandlerComparison::Equal => one(Direction::Forward, KeyRange::prefix(&key)),
            HandlerComparison::AtLeast => one(Direction::Forward, from(Included(key))),
            HandlerComparison::Above => one(Direction::Forward, from(Excluded(key))),
            HandlerComparison::AtMost => one(Direction::Backward, to(Included(key))),
            HandlerComparison::Below => one(Direction::Backward, to(Excluded(key))),
        },
    }
}
