//! Triggers: routines that a table has for a kind of change. They are a part of its definition, and come and go with it.

use std::sync::Arc;

use crate::def::{TableDef, same_name};
use crate::routine::RoutineDef;

/// Which change of a row a trigger is for. Catalog records have the variants by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[allow(missing_docs)]
pub enum TriggerEvent {
    Insert,
    Update,
    Delete,
}

impl TriggerEvent {
    /// As definitions name it.
    pub fn name(self) -> &'static str {
        match self {
            TriggerEvent::Insert => "INSERT",
            TriggerEvent::Update => "UPDATE",
            TriggerEvent::Delete => "DELETE",
        }
    }
}

/// Whether a trigger runs before the row changes or after it. Catalog records have the variants by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[allow(missing_docs)]
pub enum TriggerTime {
    Before,
    After,
}

impl TriggerTime {
    /// As definitions name it.
    pub fn name(self) -> &'static str {
        match self {
            TriggerTime::Before => "BEFORE",
            TriggerTime::After => "AFTER",
        }
    }
}

/// A trigger of a table.
#[derive(Clone, Debug)]
pub struct TriggerDef {
    pub event: TriggerEvent,
    pub time: TriggerTime,
    /// Its name and body. Its schema is the table's.
    pub routine: Arc<RoutineDef>,
}

impl TriggerDef {
    /// Its name, in any case.
    pub fn is_named(&self, name: &str) -> bool {
        same_name(&self.routine.name, name)
    }
}

/// Where a new trigger goes among those of its event and time.
#[derive(Clone, Debug)]
pub enum TriggerPlace {
    /// Behind all of them.
    Last,
    /// FOLLOWS that one.
    Behind(String),
    /// PRECEDES that one.
    Before(String),
}

impl TableDef {
    /// The triggers for an event and a time, in the order in which they run.
    pub fn triggers_for(&self, event: TriggerEvent, time: TriggerTime) -> impl Iterator<Item = &TriggerDef> {
        self.triggers.iter().filter(move |trigger| trigger.event == event && trigger.time == time)
    }

    /// Whether a change of a row runs any trigger.
    pub fn has_triggers(&self, event: TriggerEvent) -> bool {
        self.triggers.iter().any(|trigger| trigger.event == event)
    }
}
