//! Events.

use highkey_table::EventStatus;

use super::{Expr, IntervalUnit, ObjectName, UserName};

/// CREATE EVENT.
#[derive(Debug, Clone)]
pub struct CreateEvent {
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// DEFINER.
    pub definer: Option<UserName>,
    /// Its name.
    pub name: ObjectName,
    /// What is said of it: a schedule and a body at least.
    pub clauses: EventClauses,
}

/// ALTER EVENT.
#[derive(Debug, Clone)]
pub struct AlterEvent {
    /// DEFINER.
    pub definer: Option<UserName>,
    /// Its name.
    pub name: ObjectName,
    /// RENAME TO.
    pub renamed: Option<ObjectName>,
    /// What is said of it.
    pub clauses: EventClauses,
}

/// What a definition says of an event, as far as it says something.
#[derive(Debug, Clone, Default)]
pub struct EventClauses {
    /// ON SCHEDULE.
    pub schedule: Option<ScheduleClause>,
    /// ON COMPLETION [NOT] PRESERVE.
    pub preserve: Option<bool>,
    /// ENABLE, DISABLE or DISABLE ON SLAVE.
    pub status: Option<EventStatus>,
    /// COMMENT.
    pub comment: Option<String>,
    /// The text behind DO.
    pub body: Option<String>,
}

/// ON SCHEDULE.
#[derive(Debug, Clone)]
pub enum ScheduleClause {
    /// AT.
    At(Box<Expr>),
    /// EVERY count unit [STARTS …] [ENDS …].
    Every { count: Box<Expr>, unit: IntervalUnit, starts: Option<Box<Expr>>, ends: Option<Box<Expr>> },
}
