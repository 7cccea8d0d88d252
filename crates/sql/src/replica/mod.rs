//! The side of a replica that knows tables. See `README.md`.
//!
//! The server reads a source's binary log (it knows sockets); here is what its statements and status are to clients ([`ReplicaControl`]), and what applies
//! its transactions ([`Applier`]): row images become rows, everything else runs as a statement of an internal session.

mod applier;
mod control;
mod convert;
mod event;
mod image;
mod jsonb;
mod replay;
mod rows;
mod tolerance;
#[cfg(test)]
mod tests;

pub use applier::{Applier, BranchStatement, SourceTransaction, StatementContext};
pub use control::{ReplicaControl, ReplicaFailure, ReplicaFilter, ReplicaStatus, ReplicaTransaction, ReplicaWorker, ThreadState};
pub use event::{BodyReader, DUMMY_TABLE, Event, Query, TableMaps, kind as event_kind};
pub use image::SourceColumn;
pub use rows::{RowsChange, RowsKind, SourceTable};
pub(crate) use replay::{Replay, begins_with_format};
pub(crate) use control::{filters, performance_schema, repository, show_status};

pub use crate::parse::ast::{ReplicaAction, ReplicaStatement, ReplicaThreads, SourceOptions, SourceValue};
