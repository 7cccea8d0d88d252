//! Statements summed up by what they are: the events_statements_summary_…_by_event_name of performance_schema. Those that nobody has run have no row.

use std::collections::BTreeMap;

use highkey_types::Value;

use super::rows::{t, u};
use crate::session::SessionState;
use crate::session::history::KindSums;

/// `table`: whose sums they are. Of threads that are gone there are none.
pub(super) fn by_event_name(state: &SessionState, table: &str) -> Vec<Vec<Value>> {
    let (by_thread, by_user, by_host) = match table {
        "events_statements_summary_by_thread_by_event_name" => (true, false, false),
        "events_statements_summary_by_account_by_event_name" => (false, true, true),
        "events_statements_summary_by_user_by_event_name" => (false, true, false),
        "events_statements_summary_by_host_by_event_name" => (false, false, true),
        _ => (false, false, false),
    };
    let mut sums: BTreeMap<(Option<u64>, Option<String>, Option<String>, String), KindSums> = BTreeMap::new();
    for ran in state.instance.processes().ran() {
        if by_thread && ran.id.is_none() {
            continue;
        }
        for (kind, of_kind) in &ran.kinds {
            let key = (ran.id.filter(|_| by_thread), by_user.then(|| ran.user.clone()), by_host.then(|| ran.host.clone()), kind.event());
            sums.entry(key).or_default().add(of_kind);
        }
    }
    // The server's own have neither user nor host.
    let named = |name: String| if name.is_empty() { Value::Null } else { t(name) };
    let row = |((id, user, host, event), sum): ((Option<u64>, Option<String>, Option<String>, String), KindSums)| {
        let mut row: Vec<Value> = id.map(u).into_iter().chain(user.into_iter().chain(host).map(named)).collect();
        row.push(t(event));
        row.extend(cells(&sum));
        row
    };
    sums.into_iter().map(row).collect()
}

/// From COUNT_STAR to SUM_NO_GOOD_INDEX_USED.
pub(super) fn cells(sum: &KindSums) -> Vec<Value> {
    let picos = |nanos: u64| u(nanos.saturating_mul(1000));
    let mut cells = vec![u(sum.count), picos(sum.wait), picos(sum.wait_min), picos(sum.wait / sum.count.max(1)), picos(sum.wait_max), picos(sum.locked)];
    cells.extend([sum.errors, sum.warnings, sum.rows_affected, sum.rows_sent, sum.rows_examined].map(u));
    cells.extend(sum.work.map(u));
    cells
}
