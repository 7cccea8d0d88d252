//! MySQL's binary log, as bytes: events, rows, GTID sets. It knows neither storage nor network, and does no I/O.
//!
//! Read in this order: [`event`] (what all events have; raw and sealed), [`control`] and [`transaction`] (events without
//! rows), [`TableMap`] and [`RowsWriter`] (rows), [`GtidSet`]. `README.md` says how they go together.
#![forbid(unsafe_code)]

mod bitmap;
pub mod control;
pub mod event;
mod gtid;
mod metadata;
mod row;
pub mod rows;
mod table_map;
pub mod transaction;

pub use bitmap::Bitmap;
pub use event::{EventType, Header, Stamp};
pub use gtid::{GtidError, GtidSet, Uuid};
pub use metadata::RowMetadata;
pub use rows::{RowImage, RowsKind, RowsWriter};
pub use table_map::{Column, PrimaryKeyPart, TableMap};
