//! The SQL layer: a statement's way from its text to rows on a sink.
//!
//! Read in this order:
//! - [`Instance`] is what all sessions share: the database, global variables, the process list, counters, accounts.
//! - [`Session`] is one connection: `execute` takes a statement's bytes and answers into a [`ResultSink`].
//! - `parse` makes a `Statement` of the text, `bind` a plan of the statement (`plan`), typed as MySQL types it.
//! - `fast` runs what OLTP sends without leaving this crate; `df` runs everything else on DataFusion, and is
//!   the only folder that names it. `expr` and `functions` are the one evaluator that both use.
//! - `execute` has one file per kind of statement, `show` and `information_schema` answer about the server itself,
//!   `measure` has what EXPLAIN ANALYZE tells of operators, `full_text` what MATCH … AGAINST finds, `variables` is the one table of system variables, `prepared` keeps what was prepared, `routine` runs stored procedures, functions and triggers, `event` what is done at set times, `sys` has the views and routines of that schema, `privileges` says what an account may do.
#![forbid(unsafe_code)]
// The futures of statements within statements are deep.
#![recursion_limit = "256"]

mod bind;
mod df;
mod event;
mod execute;
mod expr;
mod fast;
mod full_text;
mod functions;
mod information_schema;
mod measure;
mod parse;
mod plan;
mod prepared;
mod privileges;
pub mod replica;
mod routine;
mod session;
mod show;
mod stack;
mod sys;
mod variables;

pub use event::run_events;
pub use session::{
    Account, ClientFlags, ClientInfo, Column, ColumnFlags, Instance, Interruption, LocalInfile, OkSummary, PreparedInfo, ProcessEntry, ProgressReport, ResultSink,
    ServerTls, Session, Status, StatusCounter, StatusFlags, VERSION, authentication_string, binlog_options, verify_caching_sha2,
};
pub use variables::{SettingError, Settings};
