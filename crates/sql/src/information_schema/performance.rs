//! What performance_schema is set up for: the setup_ tables and performance_timers. Nothing of it can be switched.

use highkey_table::Stage;
use highkey_types::Value;

use super::rows::t;
use super::{io, usage};
use crate::session::{SessionState, StatusCounter, stage_name};

/// MySQL's consumers: the present stage, statement and transaction of each connection, the statements that it ran last and the digests of statements are kept, no waits.
pub(super) fn consumers() -> Vec<Vec<Value>> {
    let consumers = [
        ("events_stages_current", "YES"),
        ("events_stages_history", "NO"),
        ("events_stages_history_long", "NO"),
        ("events_statements_current", "YES"),
        ("events_statements_history", "YES"),
        ("events_statements_history_long", "NO"),
        ("events_transactions_current", "YES"),
        ("events_transactions_history", "NO"),
        ("events_transactions_history_long", "NO"),
        ("events_waits_current", "NO"),
        ("events_waits_history", "NO"),
        ("events_waits_history_long", "NO"),
        ("global_instrumentation", "YES"),
        ("thread_instrumentation", "YES"),
        ("statements_digest", "YES"),
    ];
    consumers.into_iter().map(|(name, enabled)| vec![t(name), t(enabled)]).collect()
}

/// The stages that events_stages_current shows, whose beginnings are not kept, statements, transactions, and what waits are summed up.
pub(super) fn instruments() -> Vec<Vec<Value>> {
    let row = |stage: Stage| {
        let (name, unit) = stage_name(stage);
        vec![t(format!("stage/sql/{name}")), t("YES"), t("NO"), t(if unit.is_empty() { "" } else { "progress" }), Value::Int(0), Value::Null]
    };
    let timed = |name: &str, properties: &str| vec![t(name), t("YES"), t("YES"), t(properties), Value::Int(0), Value::Null];
    let whole = [timed("statement/com/Execute", ""), timed("statement/com/Query", "mutable"), timed("transaction", "")];
    let statements = StatusCounter::commands().chain(["error"]).map(|command| timed(&format!("statement/sql/{command}"), ""));
    let waits = io::INSTRUMENTS.into_iter().map(|(name, is_timed)| vec![t(name), t("YES"), t(if is_timed { "YES" } else { "NO" }), t(""), Value::Int(0), Value::Null]);
    Stage::ALL.into_iter().map(row).chain(statements).chain(whole).chain(waits).collect()
}

/// The tables whose use is counted. Of stored programs nothing is.
pub(super) fn objects() -> Vec<Vec<Value>> {
    let row = |schema: &str, counted: &str| vec![t("TABLE"), t(schema), t("%"), t(counted), t("NO")];
    vec![row("mysql", "NO"), row("performance_schema", "NO"), row("information_schema", "NO"), row("%", "YES")]
}

/// TRUNCATE TABLE of performance_schema's sums, which begin anew then. False: it is no such table.
pub(crate) fn truncate(state: &SessionState, name: &str) -> bool {
    match &*name.to_ascii_lowercase() {
        "events_statements_summary_by_digest" => state.instance.digests().clear(),
        "events_statements_history" => state.instance.processes().all().iter().for_each(|process| process.history().clear()),
        name if name.starts_with("events_statements_summary_") && name.ends_with("_by_event_name") => state.instance.processes().forget_ran(),
        "file_summary_by_event_name" | "file_summary_by_instance" => state.instance.database().engine().disk().clear_usage(),
        "table_io_waits_summary_by_index_usage" | "table_io_waits_summary_by_table" => usage::clear(state),
        _ => return false,
    }
    true
}

/// Everybody's statements are summed up.
pub(super) fn actors() -> Vec<Vec<Value>> {
    vec![vec![t("%"), t("%"), t("%"), t("YES"), t("YES")]]
}

/// The clock that times are taken with. What a look at it costs is not measured.
pub(super) fn timers() -> Vec<Vec<Value>> {
    vec![vec![t("NANOSECOND"), Value::Int(1_000_000_000), Value::Int(1), Value::Null]]
}
