//! TRIGGERS, and what SHOW TRIGGERS and SHOW CREATE TRIGGER have of them.

use std::sync::Arc;

use highkey_table::{Privileges, Table, TriggerDef, TriggerEvent, TriggerTime};
use highkey_types::Value;

use super::rows::{t, u, wall_clock};
use crate::plan::Wanted;
use crate::session::SessionState;
use crate::variables::SqlModes;

/// In the order in which they are listed: those of an event and a time in the order in which they run.
const KINDS: [(TriggerEvent, TriggerTime); 6] = [
    (TriggerEvent::Insert, TriggerTime::Before),
    (TriggerEvent::Insert, TriggerTime::After),
    (TriggerEvent::Update, TriggerTime::Before),
    (TriggerEvent::Update, TriggerTime::After),
    (TriggerEvent::Delete, TriggerTime::Before),
    (TriggerEvent::Delete, TriggerTime::After),
];

/// The account sees the table's triggers.
pub fn are_seen(state: &SessionState, table: &Table) -> bool {
    let def = table.def();
    state.access().is_none_or(|access| access.table(&def.schema, &def.name).has(Privileges::TRIGGER))
}

/// A table's triggers, each with its place among those of its event and time, from 1.
fn listed(table: &Table) -> impl Iterator<Item = (u64, &TriggerDef)> {
    KINDS.into_iter().flat_map(move |(event, time)| (1..).zip(table.def().triggers_for(event, time)))
}

/// When a trigger was made, by whom and under which settings: the last columns of all lists.
fn circumstances(state: &SessionState, trigger: &TriggerDef) -> [Value; 6] {
    let def = &trigger.routine;
    let (user, host) = &def.definer;
    [
        Value::DateTime(wall_clock(state, def.created_at)),
        t(SqlModes(def.sql_mode).to_string()),
        t(format!("{user}@{host}")),
        t(def.charset.name()),
        t(def.collation.name),
        t(def.schema_collation.name),
    ]
}

/// Rows of SHOW TRIGGERS.
pub fn shown(state: &SessionState, schema: &str) -> Vec<Vec<Value>> {
    let tables = state.instance.database().catalog().tables(schema);
    let mut rows = Vec::new();
    for table in tables.iter().filter(|table| are_seen(state, table)) {
        for (_, trigger) in listed(table) {
            let def = &trigger.routine;
            let mut row = vec![
                t(&def.name),
                t(trigger.event.name()),
                t(&table.def().name),
                t(&def.body),
                t(trigger.time.name()),
            ];
            row.extend(circumstances(state, trigger));
            rows.push(row);
        }
    }
    rows
}

pub(super) fn rows(state: &SessionState, wanted: &Wanted) -> Vec<Vec<Value>> {
    super::rows::each_table(state, wanted, |state: &SessionState, table: &Arc<Table>, rows: &mut Vec<Vec<Value>>| {
        if !are_seen(state, table) {
            return;
        }
        for (order, trigger) in listed(table) {
            let def = &trigger.routine;
            let mut row = vec![
                t("def"),
                t(&def.schema),
                t(&def.name),
                t(trigger.event.name()),
                t("def"),
                t(&def.schema),
                t(&table.def().name),
                u(order),
                Value::Null,
                t(&def.body),
                t("ROW"),
                t(trigger.time.name()),
                Value::Null,
                Value::Null,
                t("OLD"),
                t("NEW"),
            ];
            row.extend(circumstances(state, trigger));
            rows.push(row);
        }
    })
}
