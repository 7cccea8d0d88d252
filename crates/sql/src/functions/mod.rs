//! The scalar functions and operators of MySQL: what each is called, takes, returns (`table`, `typing`) and does.
//!
//! One implementation serves both ways to run a statement. See `README.md` of `expr`.

mod aes;
mod arith;
mod bits;
mod call;
mod compress;
mod datetime;
mod digest;
mod encode;
mod format_date;
mod gtid;
mod json;
mod json_schema;
mod json_table;
mod net;
mod number;
mod parse_date;
mod regexp;
mod search;
mod session;
mod spatial;
mod string;
mod table;
mod typing;
mod xml;

pub(crate) use arith::rounded;
pub(crate) use call::{Types, call};
pub(crate) use datetime::interval;
pub(crate) use encode::{from_base64, to_base64};
pub(crate) use gtid::set as gtid_set;
pub(crate) use json_table::{json_table_rows, json_table_value};
pub(crate) use json::{JSON_VALUE_DEFAULT, JSON_VALUE_ERROR, JSON_VALUE_NULL, invalid_json, json_of};
pub(crate) use number::rand;
pub use table::FuncId;
pub(crate) use spatial::wants_geometries;
pub(crate) use typing::{Typing, result_type};
