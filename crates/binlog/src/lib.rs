//! MySQL's binary log, as bytes: events, rows, GTID sets. It knows neither storage nor network, and does no I/O.
//!
//! Read in this order: [`event`] (what all events have; raw and sealed), [`control`] and [`transaction`] (events without
//! rows), [`TableMap`] and [`RowsWriter`] (rows), [`GtidSet`], [`FileReader`] and [`describe()`] (the way back).
//! `README.md` says how they go together.
#![forbid(unsafe_code)]

mod bitmap;
mod column;
pub mod control;
mod describe;
pub mod event;
mod gtid;
mod metadata;
mod reader;
mod record;
mod row;
pub mod rows;
mod table_map;
pub mod transaction;
pub mod xa;

pub use bitmap::Bitmap;
pub use column::{Column, PrimaryKeyPart};
pub use describe::describe;
pub use event::{EventType, Header, Stamp};
pub use gtid::{GtidError, GtidSet, Uuid};
pub use metadata::RowMetadata;
pub use reader::{FileEvent, FileReader, ReadError};
pub use record::RecordSum;
pub use row::json_len;
pub use rows::{RowImage, RowsKind, RowsWriter};
pub use table_map::TableMap;
pub use xa::Xid;
