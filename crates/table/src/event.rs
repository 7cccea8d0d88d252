//! Events: a body's text under a name, and when it runs. What the text means, and who runs it, is for the layer above.

use std::time::SystemTime;

use highkey_types::{Charset, Collation, IntervalUnit, Str};

/// When an event runs. Moments are in seconds since 1970, UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventSchedule {
    /// Once.
    At(i64),
    /// At `starts` and again and again until `ends`. `count` is in the last part of the unit: days for WEEK, months for QUARTER and YEAR_MONTH, minutes for
    /// HOUR_MINUTE.
    Every { count: u32, unit: IntervalUnit, starts: i64, ends: Option<i64> },
}

/// Whether an event runs. Catalog records have the variants by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[allow(missing_docs)]
pub enum EventStatus {
    Enabled,
    Disabled,
    /// It runs on the source that this server replicates from.
    SlavesideDisabled,
}

impl EventStatus {
    /// As lists name it.
    pub fn name(self) -> &'static str {
        match self {
            EventStatus::Enabled => "ENABLED",
            EventStatus::Disabled => "DISABLED",
            EventStatus::SlavesideDisabled => "SLAVESIDE_DISABLED",
        }
    }
}

/// A committed event. Immutable: DDL makes a new one, and so does the scheduler when it runs.
#[derive(Clone, Debug)]
pub struct EventDef {
    pub schema: Str,
    /// As it was written; it compares without case.
    pub name: Str,
    pub body: Str,
    pub schedule: EventSchedule,
    /// `time_zone` when the schedule was made: its wall clock counts the interval, and the body runs in it.
    pub time_zone: Str,
    pub status: EventStatus,
    /// ON COMPLETION PRESERVE: it stays when it does not run any more.
    pub preserve: bool,
    pub comment: Str,
    /// DEFINER: user and host.
    pub definer: (Str, Str),
    /// The bits of `sql_mode` when the body was made.
    pub sql_mode: u64,
    /// `character_set_client` likewise.
    pub charset: Charset,
    /// `collation_connection` likewise.
    pub collation: &'static Collation,
    /// The schema's collation likewise.
    pub schema_collation: &'static Collation,
    /// `server_id` of the server where it was made.
    pub originator: u32,
    pub created_at: SystemTime,
    pub altered_at: SystemTime,
    /// When it began to run last, in seconds since 1970, UTC.
    pub last_executed: Option<i64>,
}
