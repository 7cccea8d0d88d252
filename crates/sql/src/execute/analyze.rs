//! EXPLAIN ANALYZE: the statement is run, its rows are thrown away, and its time is taken apart. What it changes stays changed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use highkey_table::{LatchWaits, TimeSplit, WaitKind, WaitSum};
use highkey_types::{MySqlError, Value};

use super::{Failure, Outcome};
use crate::measure::Actual;
use crate::parse::ast::Statement;
use crate::plan::BoundQuery;
use crate::session::{Column, LocalInfile, ResultSink, Session, SessionState, error};
use crate::show;

/// Counts rows. Only a file of the client's is asked for.
struct Counting<'a> {
    sink: &'a mut dyn ResultSink,
    rows: u64,
    first: Option<Instant>,
}

#[async_trait]
impl ResultSink for Counting<'_> {
    fn columns(&mut self, _columns: &[Column]) {}
    fn row(&mut self, _row: &[Value]) {
        self.rows += 1;
        self.first.get_or_insert_with(Instant::now);
    }
    async fn local_infile(&mut self, name: &str) -> Result<Box<dyn LocalInfile + '_>, MySqlError> {
        self.sink.local_infile(name).await
    }
}

impl Session {
    /// Runs a statement, and its commit if it is a transaction of its own: what it has done as a whole, and the lines that say where its time went. A query comes
    /// bound, with its tables open.
    pub(super) async fn analyze(
        &mut self,
        statement: &Statement,
        query: Option<BoundQuery>,
        began: Instant,
        sink: &mut dyn ResultSink,
    ) -> Result<(Actual, Vec<String>), Failure> {
        let holders = Arc::strong_count(&self.waits);
        let mut counting = Counting { sink, rows: 0, first: None };
        let outcome = match (statement, query) {
            (_, Some(bound)) => self.run_bound(&bound, None, &mut counting).await?,
            (Statement::Insert(insert), _) => self.insert(insert).await?,
            (Statement::Update(update), _) => self.update(update).await?,
            (Statement::Delete(delete), _) => self.delete(delete).await?,
            (Statement::LoadData(load), _) => self.load_data(load, &mut counting).await?,
            _ => return Err(error::not_supported("EXPLAIN ANALYZE of this statement").into()),
        };
        self.transaction_end_statement(Ok(())).await?;
        let elapsed = began.elapsed();
        self.until_helpers_end(holders).await;
        let time = self.waits.split(elapsed);
        let rows = match outcome {
            Outcome::Done { affected, .. } => affected,
            Outcome::Rows { .. } | Outcome::Cursor => counting.rows,
        };
        let first = counting.first.map_or(elapsed, |first| first.duration_since(began));
        Ok((Actual { loops: 1, rows, first, all: elapsed }, time_lines(&self.state, &time)))
    }

    /// Threads that work for the statement may have given their last rows just now, and tell at their end what they have done. `holders`: those who had
    /// the statement's waits before.
    async fn until_helpers_end(&mut self, holders: usize) {
        for _ in 0..LOOKS_FOR_HELPERS {
            if Arc::strong_count(&self.waits) <= holders {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Milliseconds that a thread may take to end at most.
const LOOKS_FOR_HELPERS: usize = 100;

fn ms(time: Duration) -> String {
    format!("{:.3}", time.as_secs_f64() * 1e3)
}

/// The six parts that a statement always has, those of the others that it has, and what remains; then what it has told the binary log.
fn time_lines(state: &SessionState, time: &TimeSplit) -> Vec<String> {
    let part = |name: &str, nanos: u64| format!("    {name}: {} ms", ms(Duration::from_nanos(nanos)));
    let wait = |name: &str, sum: WaitSum| part(name, sum.nanos) + &counted(sum.count);
    let mut lines = vec![format!("Time: {} ms", ms(Duration::from_nanos(time.elapsed))), part("cpu", time.cpu)];
    if time.cpu_helping > 0 {
        lines.push(format!("    {}", part("on other threads", time.cpu_helping)));
    }
    for kind in WaitKind::ALL {
        let sum = time.of(kind);
        if sum.count == 0 && matches!(kind, WaitKind::TableLock | WaitKind::Pause) {
            continue;
        }
        lines.push(wait(wait_name(kind), sum));
        if kind == WaitKind::Log && time.syncs.count > 0 {
            let commits = if time.syncs.commits == 1 { "commit" } else { "commits" };
            lines.push(format!("    {} for {} {commits}", part("sync", time.syncs.nanos), time.syncs.commits));
        }
        if kind == WaitKind::Latch && !time.latches.is_empty() {
            let names = show::index_names(state);
            lines.extend(time.latches.iter().map(|latch| format!("    {}", wait(&latch_name(&names, latch), latch.sum))));
        }
    }
    lines.push(part("other", time.other()));
    if time.binlog_bytes > 0 {
        lines.push(format!("Binary log: {} bytes", time.binlog_bytes));
    }
    lines
}

/// ` in 3 waits`.
pub(crate) fn counted(waits: u64) -> String {
    match waits {
        0 => String::new(),
        1 => " in 1 wait".to_owned(),
        n => format!(" in {n} waits"),
    }
}

/// A kind of wait as statements are told about it.
pub(crate) fn wait_name(kind: WaitKind) -> &'static str {
    match kind {
        WaitKind::Latch => "latch wait",
        WaitKind::RowLock => "row-lock wait",
        WaitKind::TableLock => "table-lock wait",
        WaitKind::Log => "log wait",
        WaitKind::PageRead => "page read",
        WaitKind::PageWrite => "page write",
        WaitKind::Pause => "pause",
    }
}

/// `d.t PRIMARY, leaf exclusive`; `names` as `show::index_names` has them.
pub(crate) fn latch_name(names: &HashMap<u32, [highkey_types::Str; 3]>, latch: &LatchWaits) -> String {
    let index = latch.place.index.0;
    let owner = match names.get(&index) {
        Some([schema, table, index]) => format!("{schema}.{table} {index}"),
        None if index == 0 => "the engine's own pages".to_owned(),
        None => format!("index {index}"),
    };
    format!("{owner}, {}", latch.place)
}
