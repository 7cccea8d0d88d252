//! What statements cost and waited for: events_statements_summary_by_digest and HIGHKEY_LATCH_WAITS. Times are in picoseconds, as performance_schema
//! has them.

use highkey_table::{LatchWaits, WaitKind};
use highkey_types::{DateTime, Value};

use super::rows::{t, u};
use super::statements;
use crate::session::{SessionState, Sums};
use crate::show;

fn picos(nanos: u64) -> Value {
    u(nanos.saturating_mul(1000))
}

/// One row per schema and digest, and one without either for the statements that found the table full. What this server does not count, or does not do
/// (temporary tables, merge passes), is 0.
pub(super) fn digests(state: &SessionState) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for digest in state.instance.digests().all() {
        let sums = digest.sums();
        if sums.all.count > 0 {
            let mut row = vec![text(digest.schema.as_deref()), text(digest.hash.as_deref()), text(digest.text.as_deref())];
            row.extend(cells(state, &sums));
            rows.push(row);
        }
    }
    rows
}

fn text(text: Option<&str>) -> Value {
    text.map_or(Value::Null, t)
}

fn cells(state: &SessionState, sums: &Sums) -> Vec<Value> {
    let moment = |micros: i64| Value::DateTime(state.config.time_zone.from_utc(&DateTime::from_micros(micros).unwrap_or_default()));
    let wait = |kind: WaitKind| sums.waits[kind as usize];
    let mut row = statements::cells(&sums.all);
    row.extend([moment(sums.first_seen), moment(sums.last_seen)]);
    row.extend([0.95, 0.99, 0.999].map(|part| picos(sums.quantile(part))));
    let (sample, seen, time) = &sums.sample;
    row.extend([text(sample.as_deref()), moment(*seen), picos(*time), picos(sums.cpu)]);
    row.extend([WaitKind::Latch, WaitKind::RowLock, WaitKind::Log, WaitKind::PageRead, WaitKind::PageWrite].map(|kind| picos(wait(kind))));
    row.extend([u(sums.binlog_bytes), u(sums.syncs.count), u(sums.syncs.commits), picos(sums.syncs.nanos), u(sums.parallel)]);
    // By SerialReason.
    row.extend(sums.serial.map(u));
    row
}

/// One row per index and class of latch that a statement has waited for. The engine's own indexes and pages are of no table.
pub(super) fn latches(state: &SessionState) -> Vec<Vec<Value>> {
    latch_rows(state, &state.instance.database().engine().stats().latch_waits)
}

/// What commits cost in the log: a row per figure and power of two that there were values of. SUM and MAX are the figure's.
pub(super) fn commit_anatomy(state: &SessionState) -> Vec<Vec<Value>> {
    let cost = state.instance.database().engine().stats().commits_cost;
    let figures =
        [("group size", "commits", cost.group_size), ("sync time", "us", cost.sync_us), ("log wait", "us", cost.wait_us), ("binlog events", "bytes", cost.binlog_bytes)];
    let mut rows = Vec::new();
    for (measure, unit, figure) in figures {
        rows.extend(figure.buckets.iter().map(|b| vec![t(measure), t(unit), u(b.low), u(b.high), u(b.count), u(figure.sum), u(figure.max)]));
    }
    rows
}

pub(crate) fn latch_rows(state: &SessionState, waits: &[LatchWaits]) -> Vec<Vec<Value>> {
    let names = show::index_names(state);
    waits
        .iter()
        .map(|latch| {
            let index = latch.place.index.0;
            let mut row = match names.get(&index) {
                Some(names) => names.iter().map(t).collect(),
                None => vec![Value::Null; 3],
            };
            let class = latch.place.to_string();
            let (page, mode) = class.split_once(' ').unwrap_or((&class, ""));
            row.extend([u(index), t(page), t(mode), u(latch.sum.count), picos(latch.sum.nanos)]);
            row
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_columns_of_mysql_come_first() {
        let table = super::super::find("performance_schema", "events_statements_summary_by_digest").unwrap();
        let names: Vec<&str> = table.columns.iter().map(|(name, ..)| &**name).collect();
        assert_eq!(names.len(), 52);
        assert_eq!((names[14], names[26], names[34]), ("SUM_CREATED_TMP_DISK_TABLES", "SUM_NO_GOOD_INDEX_USED", "QUERY_SAMPLE_TIMER_WAIT"));
        assert!(names[35..].iter().all(|name| name.starts_with("HIGHKEY_")));
    }
}
