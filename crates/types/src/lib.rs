//! The values and types of MySQL, and nothing that stores or plans them.
//!
//! Read in this order: [`Value`] (what a cell holds), [`ColumnType`] (what a column admits), [`Collation`] (how text
//! compares), [`store()`] (assignment to a column), [`cast`] (lenient conversion in expressions), [`compare()`], then
//! the two codecs: [`encode_key`] for index keys and [`RowLayout`] for rows.  [`TextRowEncoder`] is the short way from a file's
//! fields to a row.  `README.md` has the byte tables.
#![forbid(unsafe_code)]

pub mod cast;
mod charset;
mod codec;
mod collation;
mod compare;
mod decimal;
pub mod errors;
mod format;
pub mod geometry;
pub mod json;
mod store;
mod temporal;
mod types;
mod value;

pub use charset::Charset;
pub use codec::{KeyPart, RowLayout, RowOfKeys, TextRowEncoder, encode_key, encode_key_part, encode_key_part_of_row, follows_from_key, key_part_len};
pub use collation::{AsciiCase, Collation};
pub use compare::{compare, null_safe_eq};
pub use decimal::{Decimal, I256, ParsedDecimal};
pub use errors::{Level, MySqlError, SqlState, Warning};
pub use geometry::{GeometryType, Shape};
pub use format::{display_text, double_to_fixed, double_to_string, float_to_string, string_literal};
pub use store::{SqlMode, StoreContext, store};
pub use temporal::{
    Date, DateRules, DateTime, Interval, IntervalUnit, ParsedDateTime, ParsedTime, Time, TimeZone, Trouble, UtcMoment,
    is_datetime_text, parse_datetime, parse_datetime_number, parse_time, parse_time_number,
};
pub use types::{ALL_DIGITS, ColumnType, TypeKind, column_flags, wire};
pub use value::{Str, Value};
