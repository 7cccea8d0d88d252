//! Partitioning expressions: arithmetic and functions of integers and dates over a row's values.

use highkey_types::{Date, MySqlError, Value};
use serde::{Deserialize, Serialize};

use crate::error;

/// A partitioning expression. `C` names a column: by its name in definitions, by its position when it is evaluated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum PartitionExpr<C = String> {
    Column(C),
    Number(i64),
    Negate(Box<PartitionExpr<C>>),
    Binary(PartitionOperator, Box<PartitionExpr<C>>, Box<PartitionExpr<C>>),
    Call(PartitionCall, Vec<PartitionExpr<C>>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PartitionOperator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

impl PartitionOperator {
    fn symbol(self) -> &'static str {
        match self {
            PartitionOperator::Add => "+",
            PartitionOperator::Subtract => "-",
            PartitionOperator::Multiply => "*",
            PartitionOperator::Divide => "DIV",
            PartitionOperator::Modulo => "%",
        }
    }
}

/// The functions that a partitioning expression may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PartitionCall {
    Abs,
    Ceiling,
    Floor,
    DateDiff,
    DayOfMonth,
    DayOfWeek,
    DayOfYear,
    Hour,
    Microsecond,
    Minute,
    Month,
    Quarter,
    Second,
    TimeToSec,
    ToDays,
    ToSeconds,
    UnixTimestamp,
    Weekday,
    Year,
    YearWeek,
}

/// What a function wants of its argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionArgument {
    Integer,
    /// DATE or DATETIME.
    Date,
    /// TIME or DATETIME.
    Time,
    Timestamp,
}

use PartitionCall::*;

const CALLS: [(&str, PartitionCall); 22] = [
    ("abs", Abs),
    ("ceiling", Ceiling),
    ("ceil", Ceiling),
    ("floor", Floor),
    ("to_days", ToDays),
    ("to_seconds", ToSeconds),
    ("datediff", DateDiff),
    ("dayofmonth", DayOfMonth),
    ("day", DayOfMonth),
    ("dayofweek", DayOfWeek),
    ("dayofyear", DayOfYear),
    ("hour", Hour),
    ("microsecond", Microsecond),
    ("minute", Minute),
    ("month", Month),
    ("quarter", Quarter),
    ("second", Second),
    ("time_to_sec", TimeToSec),
    ("unix_timestamp", UnixTimestamp),
    ("weekday", Weekday),
    ("year", Year),
    ("yearweek", YearWeek),
];

impl PartitionCall {
    pub fn by_name(name: &str) -> Option<PartitionCall> {
        CALLS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, call)| *call)
    }

    /// As definitions print it.
    pub fn name(self) -> &'static str {
        CALLS.iter().find(|(_, call)| *call == self).map_or("", |(name, _)| name)
    }

    /// How many arguments it has, and of what kind.
    pub fn arguments(self) -> (usize, PartitionArgument) {
        match self {
            Abs | Ceiling | Floor => (1, PartitionArgument::Integer),
            DateDiff => (2, PartitionArgument::Date),
            DayOfMonth | DayOfWeek | DayOfYear | Month | Quarter | ToDays | ToSeconds | Weekday | Year | YearWeek => (1, PartitionArgument::Date),
            Hour | Microsecond | Minute | Second | TimeToSec => (1, PartitionArgument::Time),
            UnixTimestamp => (1, PartitionArgument::Timestamp),
        }
    }
}

impl<C> PartitionExpr<C> {
    pub fn each_column(&self, visit: &mut impl FnMut(&C)) {
        match self {
            PartitionExpr::Column(column) => visit(column),
            PartitionExpr::Number(_) => {}
            PartitionExpr::Negate(inner) => inner.each_column(visit),
            PartitionExpr::Binary(_, left, right) => {
                left.each_column(visit);
                right.each_column(visit);
            }
            PartitionExpr::Call(_, args) => args.iter().for_each(|arg| arg.each_column(visit)),
        }
    }

    /// How deep it is: a column or a number is one level.
    pub fn levels(&self) -> usize {
        1 + match self {
            PartitionExpr::Column(_) | PartitionExpr::Number(_) => 0,
            PartitionExpr::Negate(inner) => inner.levels(),
            PartitionExpr::Binary(_, left, right) => left.levels().max(right.levels()),
            PartitionExpr::Call(_, args) => args.iter().map(PartitionExpr::levels).max().unwrap_or(0),
        }
    }
}

impl PartitionExpr {
    /// The same with the columns' positions. Error 1054.
    pub(crate) fn resolve(&self, position: &impl Fn(&str) -> Result<usize, MySqlError>) -> Result<PartitionExpr<usize>, MySqlError> {
        Ok(match self {
            PartitionExpr::Column(name) => PartitionExpr::Column(position(name)?),
            PartitionExpr::Number(number) => PartitionExpr::Number(*number),
            PartitionExpr::Negate(inner) => PartitionExpr::Negate(Box::new(inner.resolve(position)?)),
            PartitionExpr::Binary(operator, left, right) => PartitionExpr::Binary(*operator, Box::new(left.resolve(position)?), Box::new(right.resolve(position)?)),
            PartitionExpr::Call(call, args) => PartitionExpr::Call(*call, args.iter().map(|arg| arg.resolve(position)).collect::<Result<_, _>>()?),
        })
    }

    /// As SHOW CREATE TABLE prints it.
    pub fn text(&self) -> String {
        match self {
            PartitionExpr::Column(name) => format!("`{}`", name.replace('`', "``")),
            PartitionExpr::Number(number) => number.to_string(),
            PartitionExpr::Negate(inner) => format!("-({})", inner.text()),
            PartitionExpr::Binary(operator, left, right) => format!("({} {} {})", left.text(), operator.symbol(), right.text()),
            PartitionExpr::Call(call, args) => format!("{}({})", call.name(), args.iter().map(PartitionExpr::text).collect::<Vec<_>>().join(",")),
        }
    }
}

impl PartitionExpr<usize> {
    /// Its value for a row; `None` is NULL. Error 1690 where it is no 64-bit integer.
    pub(crate) fn eval(&self, row: &[Value]) -> Result<Option<i128>, MySqlError> {
        let value = match self {
            PartitionExpr::Column(column) => match &row[*column] {
                Value::Int(value) => Some(i128::from(*value)),
                Value::UInt(value) => Some(i128::from(*value)),
                _ => None,
            },
            PartitionExpr::Number(number) => Some(i128::from(*number)),
            PartitionExpr::Negate(inner) => inner.eval(row)?.map(|value| -value),
            PartitionExpr::Binary(operator, left, right) => match (left.eval(row)?, right.eval(row)?) {
                (Some(left), Some(right)) => match operator {
                    PartitionOperator::Add => Some(left + right),
                    PartitionOperator::Subtract => Some(left - right),
                    PartitionOperator::Multiply => Some(left.checked_mul(right).ok_or_else(error::partition_value_out_of_range)?),
                    // By zero: NULL.
                    PartitionOperator::Divide => left.checked_div(right),
                    PartitionOperator::Modulo => left.checked_rem(right),
                },
                _ => None,
            },
            PartitionExpr::Call(call, args) => call.eval(args, row)?,
        };
        match value {
            Some(value) if value < i128::from(i64::MIN) || value > i128::from(u64::MAX) => Err(error::partition_value_out_of_range()),
            value => Ok(value),
        }
    }

    /// It may be NULL for a value that is not.
    pub(crate) fn has_nulls(&self) -> bool {
        !matches!(self, PartitionExpr::Column(_) | PartitionExpr::Call(Year | UnixTimestamp, _))
    }

    /// It never goes down when its only column goes up, where it is not NULL.
    pub(crate) fn is_monotonic(&self) -> bool {
        match self {
            PartitionExpr::Column(_) => true,
            PartitionExpr::Call(Year | ToDays | ToSeconds | UnixTimestamp, args) => matches!(args[..], [PartitionExpr::Column(_)]),
            _ => false,
        }
    }
}

impl PartitionCall {
    fn eval(self, args: &[PartitionExpr<usize>], row: &[Value]) -> Result<Option<i128>, MySqlError> {
        if self.arguments().1 == PartitionArgument::Integer {
            let value = args[0].eval(row)?;
            return Ok(if self == Abs { value.map(i128::abs) } else { value });
        }
        let value = |at: usize| match &args[at] {
            PartitionExpr::Column(column) => &row[*column],
            _ => &NULL,
        };
        Ok(if self.arguments().1 == PartitionArgument::Time { self.of_time(value(0)) } else { self.of_dates(value(0), || value(1)) })
    }

    fn of_time(self, value: &Value) -> Option<i128> {
        let (hour, minute, second, micros) = match value {
            Value::Time(time) => (time.hours(), time.minutes(), time.seconds(), time.subsec_micros()),
            Value::DateTime(at) => (at.hour.into(), at.minute.into(), at.second.into(), at.micros),
            _ => return None,
        };
        let seconds = i128::from(hour) * 3600 + i128::from(minute) * 60 + i128::from(second);
        Some(match self {
            Hour => hour.into(),
            Minute => minute.into(),
            Second => second.into(),
            Microsecond => micros.into(),
            _ if matches!(value, Value::Time(time) if time.is_negative()) => -seconds,
            _ => seconds,
        })
    }

    fn of_dates<'a>(self, value: &Value, other: impl FnOnce() -> &'a Value) -> Option<i128> {
        let (date, seconds) = date_of(value)?;
        let days = i128::from(date.to_days());
        let whole = !date.has_zero_part();
        match self {
            Year => Some(date.year.into()),
            Month => Some(date.month.into()),
            DayOfMonth => Some(date.day.into()),
            Quarter => Some(i128::from(date.month.div_ceil(3))),
            ToDays => whole.then_some(days),
            ToSeconds => whole.then_some(days * 86_400 + seconds),
            Weekday => whole.then(|| i128::from(date.weekday())),
            DayOfWeek => whole.then(|| (i128::from(date.weekday()) + 1) % 7 + 1),
            DayOfYear => whole.then(|| date.day_of_year().into()),
            YearWeek => whole.then(|| {
                // Mode 0, in which every day belongs to a week of some year.
                let (year, week) = date.week(2);
                i128::from(year) * 100 + i128::from(week)
            }),
            // 0000-00-00 is 0; others are after 1970.
            UnixTimestamp => Some(if date.is_zero() { 0 } else { (days - EPOCH_DAYS) * 86_400 + seconds }),
            DateDiff => {
                let (other, _) = date_of(other())?;
                (whole && !other.has_zero_part()).then(|| days - i128::from(other.to_days()))
            }
            _ => None,
        }
    }
}

static NULL: Value = Value::Null;

/// `Date::to_days` of 1970-01-01.
const EPOCH_DAYS: i128 = 719_528;

/// The day, and the seconds since its midnight.
fn date_of(value: &Value) -> Option<(Date, i128)> {
    match value {
        Value::Date(date) => Some((*date, 0)),
        Value::DateTime(at) => Some((at.date, i128::from(at.hour) * 3600 + i128::from(at.minute) * 60 + i128::from(at.second))),
        _ => None,
    }
}
