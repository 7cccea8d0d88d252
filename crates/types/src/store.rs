//! Assignment to a column: MySQL's conversions, ranges, roundings and messages.
//!
//! In strict mode what does not fit is an error; otherwise, and under IGNORE, the nearest value is stored with a
//! warning.  A loss that MySQL considers harmless (digits of a DECIMAL, the time of a DATE) is a note in every mode.

mod number;
mod text;
mod time;

use crate::errors::{self, MySqlError};
use crate::{ColumnType, Date, DateTime, TimeZone, TypeKind, Value, Warning, geometry};

/// The bits of sql_mode that conversions look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SqlMode {
    pub no_zero_date: bool,
    pub no_zero_in_date: bool,
    pub allow_invalid_dates: bool,
    pub pad_char_to_full_length: bool,
    pub time_truncate_fractional: bool,
    pub error_for_division_by_zero: bool,
    pub no_unsigned_subtraction: bool,
}

impl SqlMode {
    /// Dates are looked at even where a column's values go to another one of its type.
    pub fn checks_dates(&self) -> bool {
        self.no_zero_date || self.no_zero_in_date
    }

    /// Whether a stored value stays what it is in another column of its type: dates that the mode does not let into it do not. TIMESTAMP is in UTC.
    pub fn admits(&self, value: &Value) -> bool {
        match value {
            Value::Date(v) => time::is_admitted(DateTime::from(*v), self),
            Value::DateTime(v) => time::is_admitted(*v, self),
            _ => true,
        }
    }
}

/// The circumstances of an assignment.
pub struct StoreContext<'a> {
    /// STRICT_ALL_TABLES or STRICT_TRANS_TABLES.
    pub strict: bool,
    /// INSERT IGNORE and friends: errors become warnings.
    pub ignore: bool,
    pub mode: SqlMode,
    pub time_zone: &'a TimeZone,
    /// The statement's start in microseconds since 1970 UTC, as `SET timestamp` says: a TIME that is stored as a DATETIME is of its day.
    pub now_micros: i64,
    /// The `at row N` of messages, from 1.
    pub row: u64,
    pub warnings: &'a mut Vec<Warning>,
}

impl StoreContext<'_> {
    /// The date of a TIME that is stored as a DATETIME: that of the statement in the session's zone.
    fn today(&self) -> Date {
        DateTime::now_in(self.time_zone, self.now_micros).date
    }

    fn is_strict(&self) -> bool {
        self.strict && !self.ignore
    }

    /// The error in strict mode, a warning otherwise.
    fn fail(&mut self, error: MySqlError) -> Result<(), MySqlError> {
        if self.is_strict() {
            return Err(error);
        }
        self.warn(error);
        Ok(())
    }

    /// A warning that is not there yet for this assignment's row.
    fn warn(&mut self, error: MySqlError) {
        let warning = Warning::warning(error);
        if self.warnings.last() != Some(&warning) {
            self.warnings.push(warning);
        }
    }

    fn note(&mut self, error: MySqlError) {
        self.warnings.push(Warning::note(error));
    }

    fn out_of_range(&mut self, column: &str) -> Result<(), MySqlError> {
        self.fail(errors::warn_data_out_of_range(column, self.row))
    }

    fn data_truncated(&mut self, column: &str) -> Result<(), MySqlError> {
        self.fail(errors::warn_data_truncated(column, self.row))
    }

    /// 1406 in strict mode, 1265 otherwise.
    fn too_long(&mut self, column: &str) -> Result<(), MySqlError> {
        if self.is_strict() {
            return Err(errors::data_too_long(column, self.row));
        }
        self.warn(errors::warn_data_truncated(column, self.row));
        Ok(())
    }
}

/// Converts `value` to what the column `column` of type `ty` stores; NULL stays NULL.  A TIMESTAMP comes in the session's
/// zone and is stored in UTC.
pub fn store(value: Value, ty: &ColumnType, column: &str, cx: &mut StoreContext) -> Result<Value, MySqlError> {
    use TypeKind as K;
    let value = match (&ty.kind, value) {
        (K::TinyInt | K::SmallInt | K::MediumInt | K::Int | K::BigInt, Value::Json(json)) => number::of_json(&json, "INTEGER", column, cx)?,
        (K::Decimal { .. }, Value::Json(json)) => number::of_json(&json, "DECIMAL", column, cx)?,
        (K::Float | K::Double, Value::Json(json)) => number::of_json(&json, "DOUBLE", column, cx)?,
        (_, value) => value,
    };
    match (&ty.kind, &value) {
        (_, Value::Null) | (K::Null, _) => Ok(Value::Null),
        // What fits already, which is nearly everything.
        (K::BigInt, Value::Int(_)) if !ty.unsigned => Ok(value),
        (K::TinyInt | K::SmallInt | K::MediumInt | K::Int | K::BigInt, _) => number::integer(&value, ty, column, cx),
        (K::Decimal { precision, scale }, _) => number::decimal(&value, *precision, *scale, ty, column, cx),
        (K::Float | K::Double, _) => number::real(&value, ty, column, cx),
        (K::Bit(bits), _) => number::bit(&value, *bits, column, cx),
        (K::Year, _) => number::year(&value, column, cx),
        (K::Date, _) => time::date(&value, column, cx),
        (K::DateTime(fsp), _) => time::datetime(&value, *fsp, column, cx),
        (K::Timestamp(fsp), _) => time::timestamp(&value, *fsp, column, cx),
        (K::Time(fsp), _) => time::time(&value, *fsp, column, cx),
        (K::Enum(members), _) => text::enumeration(&value, members, ty, column, cx),
        (K::Set(members), _) => text::set(&value, members, ty, column, cx),
        (K::Json, _) => text::json(value, column),
        (K::Geometry(ty), _) => geometry::store(value, ty, column),
        (K::Binary(_) | K::VarBinary(_) | K::TinyBlob | K::Blob | K::MediumBlob | K::LongBlob, _) => {
            text::binary(value, ty, column, cx)
        }
        (K::Char(_) | K::VarChar(_) | K::TinyText | K::Text | K::MediumText | K::LongText, _) => {
            text::text(value, ty, column, cx)
        }
    }
}

#[cfg(test)]
mod tests;
