//! Vectorised functions: what of MySQL's arithmetic and text agrees with a loop over Arrow arrays.
//!
//! A kernel may decline a batch (an overflow, a division by zero): then the same expression is evaluated row by row, which gives MySQL's
//! error or warning. So a kernel never has to word an error.

mod number;

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, BinaryViewBuilder, BooleanArray, GenericByteViewArray, PrimitiveArray, StringViewArray, StringViewBuilder,
    UInt32Array, make_view,
};
use datafusion::arrow::buffer::Buffer;
use datafusion::arrow::compute::{SortOptions, take};
use datafusion::arrow::datatypes::{ByteViewType, DataType, Float64Type, Int32Type, Int64Type};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, Expr as DfExpr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use highkey_types::{Collation, json};

use self::number::{arithmetic, to_decimals, to_doubles};
use super::repr::{Repr, unpack_date};
use super::text::LikePattern;
use super::wrapped::Wrapped;

/// A vectorised function of MySQL's values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kernel {
    /// Text to bytes that compare as the text does under the collation.
    SortKey(&'static Collation),
    /// JSON to bytes that compare as the values do.
    JsonKey,
    /// Doubles with one zero: Arrow's order tells -0 from 0.
    DoubleKey,
    /// A number as DOUBLE.
    ToDouble(Repr),
    /// An integer or decimal as a decimal of another form; rounds half away from zero.
    ToDecimal(Repr, Repr),
    /// DATE as DATETIME at midnight.
    DateToDateTime,
    /// DATE or DATETIME as microseconds since year 0: a key of RANGE frames.
    Micros(Repr),
    /// `left op right`.
    Arithmetic { op: Arithmetic, left: Repr, right: Repr, output: Repr },
    /// A part of a date or datetime.
    Part(DatePart, Repr),
    /// `text LIKE constant`.
    Like(Arc<LikePattern>),
    /// So many characters of a text behind so many.
    Substring { from: usize, count: usize },
    /// Several values as bytes, equal when they are; NULL if any is NULL.
    RowKey,
    /// Several values as bytes that order as ORDER BY would; true is descending.
    OrderKey(Vec<bool>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Arithmetic {
    Add,
    Sub,
    Mul,
    /// Doubles only.
    Div,
    /// Integers only.
    IntDiv,
    /// Integers only.
    Mod,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum DatePart {
    Year,
    Quarter,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    YearMonth,
}

impl Kernel {
    fn name(&self) -> &'static str {
        match self {
            Kernel::SortKey(_) => "sort_key",
            Kernel::JsonKey => "json_key",
            Kernel::DoubleKey => "double_key",
            Kernel::ToDouble(_) => "to_double",
            Kernel::ToDecimal(..) => "to_decimal",
            Kernel::DateToDateTime => "to_datetime",
            Kernel::Micros(_) => "to_micros",
            Kernel::Arithmetic { op, .. } => match op {
                Arithmetic::Add => "add",
                Arithmetic::Sub => "sub",
                Arithmetic::Mul => "mul",
                Arithmetic::Div => "div",
                Arithmetic::IntDiv => "int_div",
                Arithmetic::Mod => "mod",
            },
            Kernel::Part(part, _) => match part {
                DatePart::Year => "year",
                DatePart::Quarter => "quarter",
                DatePart::Month => "month",
                DatePart::Day => "day",
                DatePart::Hour => "hour",
                DatePart::Minute => "minute",
                DatePart::Second => "second",
                DatePart::YearMonth => "year_month",
            },
            Kernel::Like(_) => "like",
            Kernel::Substring { .. } => "substring",
            Kernel::RowKey => "row_key",
            Kernel::OrderKey(_) => "order_key",
        }
    }

    fn output(&self) -> DataType {
        match self {
            Kernel::SortKey(_) | Kernel::JsonKey | Kernel::RowKey | Kernel::OrderKey(_) => DataType::BinaryView,
            Kernel::DoubleKey | Kernel::ToDouble(_) => DataType::Float64,
            Kernel::ToDecimal(_, to) => to.data_type(),
            Kernel::DateToDateTime => Repr::DateTime.data_type(),
            Kernel::Arithmetic { output, .. } => output.data_type(),
            Kernel::Part(..) | Kernel::Micros(_) => DataType::Int64,
            Kernel::Like(_) => DataType::Boolean,
            Kernel::Substring { .. } => DataType::Utf8View,
        }
    }

    /// Whether there are batches that it declines.
    fn may_decline(&self) -> bool {
        matches!(self, Kernel::ToDecimal(..) | Kernel::Arithmetic { .. })
    }

    /// The result, or `None` to decline.
    fn run(&self, args: &[ColumnarValue], rows: usize) -> Result<Option<ArrayRef>> {
        let arrays = args.iter().map(|a| Operand::new(a)).collect::<Result<Vec<_>>>()?;
        let rows = if arrays.iter().all(|a| a.single) && !arrays.is_empty() { 1 } else { rows };
        Ok(match self {
            Kernel::SortKey(collation) => Some(sort_keys(&arrays[0].array, collation)),
            Kernel::JsonKey => Some(json_keys(&arrays[0].array)),
            Kernel::DoubleKey => Some(Arc::new(arrays[0].array.as_primitive::<Float64Type>().unary::<_, Float64Type>(|v| v + 0.0))),
            Kernel::ToDouble(from) => Some(Arc::new(to_doubles(&arrays[0].array, *from))),
            Kernel::ToDecimal(from, to) => to_decimals(&arrays[0].array, *from, *to),
            Kernel::DateToDateTime => Some(Arc::new(arrays[0].array.as_primitive::<Int32Type>().unary::<_, Int64Type>(|v| i64::from(v) << 37))),
            Kernel::Micros(from) => Some(Arc::new(micros(&arrays[0].array, *from))),
            Kernel::Arithmetic { op, left, right, output } => arithmetic(*op, (&arrays[0], *left), (&arrays[1], *right), *output, rows),
            Kernel::Part(part, from) => Some(Arc::new(parts(&arrays[0].array, *part, *from))),
            Kernel::Like(pattern) => Some(Arc::new(like(&arrays[0].array, pattern))),
            Kernel::Substring { from, count } => Some(Arc::new(substrings(&arrays[0].array, *from, *count))),
            Kernel::RowKey => Some(row_keys(args, rows, None)?),
            Kernel::OrderKey(descending) => Some(row_keys(args, rows, Some(descending))?),
        })
    }
}

/// A kernel as DataFusion's function.
#[derive(Debug)]
pub(super) struct KernelFunction {
    kernel: Kernel,
    signature: Signature,
    /// The same function row by row, for batches that the kernel declines.
    fallback: Option<Arc<Wrapped>>,
}

impl PartialEq for KernelFunction {
    fn eq(&self, other: &Self) -> bool {
        self.kernel == other.kernel
    }
}

impl Eq for KernelFunction {}

impl std::hash::Hash for KernelFunction {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.kernel.hash(state);
    }
}

impl KernelFunction {
    pub fn udf(kernel: Kernel, fallback: Option<Arc<Wrapped>>) -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::new_from_impl(KernelFunction { kernel, signature: Signature::variadic_any(Volatility::Immutable), fallback }))
    }

    /// Some values may raise errors and warnings.
    pub fn may_raise(&self) -> bool {
        self.kernel.may_decline()
    }

    /// By what the number of its argument is multiplied, if that is all that it does: as the numbers ascend, so do those that it makes of them.
    pub fn times(&self) -> Option<i128> {
        match self.kernel {
            Kernel::DateToDateTime => Some(1 << 37),
            Kernel::ToDecimal(from, to @ Repr::Decimal(_)) => number::decimal_times(from, to),
            _ => None,
        }
    }

    /// In MySQL's words, of arguments in words. What only changes the form of a value has none.
    pub fn worded(&self, args: &[String]) -> String {
        let first = args.first().map_or("", String::as_str);
        match &self.kernel {
            Kernel::Arithmetic { op, .. } => {
                let symbol = match op {
                    Arithmetic::Add => "+",
                    Arithmetic::Sub => "-",
                    Arithmetic::Mul => "*",
                    Arithmetic::Div => "/",
                    Arithmetic::IntDiv => "DIV",
                    Arithmetic::Mod => "%",
                };
                format!("({})", args.join(&format!(" {symbol} ")))
            }
            Kernel::Part(DatePart::YearMonth, _) => format!("extract(year_month from {first})"),
            Kernel::Part(..) => format!("{}({first})", self.kernel.name()),
            Kernel::Like(pattern) => format!("({first} like '{}')", pattern.pattern().replace('\'', "''")),
            Kernel::Substring { from, count } => format!("substr({first},{},{count})", from + 1),
            Kernel::OrderKey(descending) => {
                let key = |(arg, descending): (&String, &bool)| format!("{arg}{}", if *descending { " DESC" } else { "" });
                args.iter().zip(descending).map(key).collect::<Vec<_>>().join(", ")
            }
            Kernel::SortKey(_)
            | Kernel::JsonKey
            | Kernel::DoubleKey
            | Kernel::ToDouble(_)
            | Kernel::ToDecimal(..)
            | Kernel::DateToDateTime
            | Kernel::Micros(_)
            | Kernel::RowKey => args.join(","),
        }
    }

    /// Applies a kernel to constants, for literals known at planning.
    pub fn constant(kernel: &Kernel, args: &[ScalarValue]) -> Result<Option<ScalarValue>> {
        let args: Vec<ColumnarValue> = args.iter().cloned().map(ColumnarValue::Scalar).collect();
        kernel.run(&args, 1)?.map(|array| ScalarValue::try_from_array(&array, 0)).transpose()
    }
}

impl ScalarUDFImpl for KernelFunction {
    fn name(&self) -> &str {
        self.kernel.name()
    }

    /// Two kernels of one name over one argument are two columns: their parameters are part of what names the column.
    fn schema_name(&self, args: &[DfExpr]) -> Result<String> {
        let args: Vec<String> = args.iter().map(|arg| arg.schema_name().to_string()).collect();
        Ok(format!("{:?}({})", self.kernel, args.join(",")))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.kernel.output())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = !args.args.is_empty() && args.args.iter().all(|a| matches!(a, ColumnarValue::Scalar(_)));
        // The optimizer asks what a condition makes of NULL, by an argument that has no other type.
        let untyped = args.args.iter().any(|a| a.data_type() == DataType::Null);
        if untyped && self.fallback.is_none() {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from(args.return_field.data_type())?));
        }
        let computed = if untyped { None } else { self.kernel.run(&args.args, args.number_rows)? };
        let array = match computed {
            Some(array) => array,
            None => match &self.fallback {
                Some(wrapped) => wrapped.run(&args.args, if constant { 1 } else { args.number_rows })?,
                None => return datafusion::common::exec_err!("{} cannot be computed", self.kernel.name()),
            },
        };
        if constant { Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?)) } else { Ok(ColumnarValue::Array(array)) }
    }
}

/// An argument: a column, or one value for all rows.
struct Operand {
    array: ArrayRef,
    single: bool,
}

impl Operand {
    fn new(value: &ColumnarValue) -> Result<Operand> {
        Ok(match value {
            ColumnarValue::Array(array) => Operand { array: array.clone(), single: false },
            ColumnarValue::Scalar(scalar) => Operand { array: scalar.to_array_of_size(1)?, single: true },
        })
    }
}

/// Bytes of keys in one buffer at most.
const KEYS_TOGETHER: usize = 1 << 30;
/// Bytes that are in the view itself.
pub(super) const INLINE_BYTES: usize = 12;

/// What was found for texts that an array points to again and again, as it does to one of few different ones. A view is the text itself if it is short,
/// or else where it is: the same view in one array is the same text.
pub(super) struct Known<V>([(u128, V); 128]);

impl<V: Copy + Default> Known<V> {
    pub fn new() -> Known<V> {
        // No text has this length.
        Known([(u128::MAX, V::default()); 128])
    }

    #[inline(always)]
    pub fn get(&mut self, view: u128, find: impl FnOnce() -> V) -> V {
        let mixed = ((view ^ view >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let place = &mut self.0[(mixed >> 57) as usize];
        if place.0 != view {
            *place = (view, for_the_first_time(find));
        }
        place.1
    }
}

/// Apart from the loop over the rows.
#[inline(never)]
fn for_the_first_time<V>(find: impl FnOnce() -> V) -> V {
    find()
}

/// The keys of texts, computed once for those that the array points to again and again, as one of few different texts does.
fn sort_keys(array: &ArrayRef, collation: &Collation) -> ArrayRef {
    match array.as_string_view_opt() {
        Some(texts) => sort_keys_of(texts, |row| texts.value(row).as_bytes(), collation),
        None => {
            let texts = array.as_binary_view();
            sort_keys_of(texts, |row| texts.value(row), collation)
        }
    }
}

fn sort_keys_of<'a, T: ByteViewType>(texts: &'a GenericByteViewArray<T>, text: impl Fn(usize) -> &'a [u8], collation: &Collation) -> ArrayRef {
    let mut known = Known::new();
    let (mut keys, mut full): (Vec<u8>, Vec<Buffer>) = (Vec::new(), Vec::new());
    // A new array is looked through: it has each key that was computed, and rows are taken from it.
    let mut views: Vec<u128> = Vec::new();
    let mut place_of = |row: usize, view: u128| {
        known.get(view, || {
            let start = keys.len();
            collation.sort_key(text(row), &mut keys);
            views.push(make_view(&keys[start..], full.len() as u32, start as u32));
            if keys.len() - start <= INLINE_BYTES {
                keys.truncate(start);
            } else if keys.len() >= KEYS_TOGETHER {
                full.push(std::mem::take(&mut keys).into());
            }
            views.len() as u32 - 1
        })
    };
    let all = texts.views().iter().enumerate();
    let places: Vec<u32> = match texts.null_count() {
        0 => all.map(|(row, &view)| place_of(row, view)).collect(),
        _ => all.map(|(row, &view)| if texts.is_null(row) { 0 } else { place_of(row, view) }).collect(),
    };
    if !keys.is_empty() {
        full.push(keys.into());
    }
    // Each row has a place of its own.
    let in_place = views.len() == places.len();
    let computed = BinaryViewArray::new(views.into(), full, None);
    if in_place {
        return Arc::new(computed);
    }
    let places = UInt32Array::new(places.into(), texts.nulls().cloned());
    take(&computed, &places, None).expect("each place is one of the keys")
}

fn json_keys(array: &ArrayRef) -> ArrayRef {
    let texts = array.as_string_view();
    let mut out = BinaryViewBuilder::with_capacity(texts.len());
    let mut key = Vec::new();
    for text in texts {
        match text {
            Some(text) => {
                key.clear();
                json::push_key(&json::Json::of_normal(text), &mut key);
                out.append_value(&key);
            }
            None => out.append_null(),
        }
    }
    Arc::new(out.finish())
}

fn row_keys(args: &[ColumnarValue], rows: usize, order: Option<&[bool]>) -> Result<ArrayRef> {
    let arrays = ColumnarValue::values_to_arrays(args)?;
    let fields = arrays.iter().enumerate().map(|(i, a)| match order {
        Some(descending) => SortField::new_with_options(a.data_type().clone(), SortOptions { descending: descending[i], nulls_first: !descending[i] }),
        None => SortField::new(a.data_type().clone()),
    });
    let encoded = RowConverter::new(fields.collect())?.convert_columns(&arrays)?;
    let mut out = BinaryViewBuilder::with_capacity(rows);
    for (i, row) in encoded.iter().enumerate() {
        if order.is_none() && arrays.iter().any(|a| a.is_null(i)) { out.append_null() } else { out.append_value(row.as_ref()) }
    }
    Ok(Arc::new(out.finish()))
}

fn parts(array: &ArrayRef, part: DatePart, from: Repr) -> PrimitiveArray<Int64Type> {
    let of_date = move |packed: i64| {
        let (year, month, day) = (packed >> 9, packed >> 5 & 15, packed & 31);
        match part {
            DatePart::Year => year,
            DatePart::Quarter => (month + 2) / 3,
            DatePart::Month => month,
            DatePart::Day => day,
            DatePart::YearMonth => year * 100 + month,
            DatePart::Hour | DatePart::Minute | DatePart::Second => 0,
        }
    };
    if from == Repr::Date {
        return array.as_primitive::<Int32Type>().unary(move |v| of_date(i64::from(v)));
    }
    array.as_primitive::<Int64Type>().unary(move |v| match part {
        DatePart::Hour => v >> 32 & 31,
        DatePart::Minute => v >> 26 & 63,
        DatePart::Second => v >> 20 & 63,
        _ => of_date(v >> 37),
    })
}

fn micros(array: &ArrayRef, from: Repr) -> PrimitiveArray<Int64Type> {
    let day = |packed: i32| unpack_date(packed).to_days() * 86_400_000_000;
    if from == Repr::Date {
        return array.as_primitive::<Int32Type>().unary(day);
    }
    array.as_primitive::<Int64Type>().unary(|v| {
        let (hour, minute, second) = (v >> 32 & 31, v >> 26 & 63, v >> 20 & 63);
        day((v >> 37) as i32) + (hour * 3600 + minute * 60 + second) * 1_000_000 + (v & 0xf_ffff)
    })
}

/// An array's values in the form that is equal for equal values; see `lower::expr::own_key`.
pub(super) fn key_array(array: &ArrayRef, key: Option<Kernel>) -> Result<ArrayRef> {
    match key {
        None => Ok(array.clone()),
        Some(key) => Ok(key.run(&[ColumnarValue::Array(array.clone())], array.len())?.unwrap_or_else(|| array.clone())),
    }
}

fn like(array: &ArrayRef, pattern: &LikePattern) -> BooleanArray {
    let texts = array.as_string_view();
    let (mut known, mut folded) = (Known::new(), Vec::new());
    let matches = texts.views().iter().enumerate().map(|(row, &view)| texts.is_valid(row) && known.get(view, || pattern.matches(texts.value(row), &mut folded)));
    BooleanArray::new(matches.collect(), texts.nulls().cloned())
}

fn substrings(array: &ArrayRef, from: usize, count: usize) -> StringViewArray {
    let part = |text: &'_ str| -> (usize, usize) {
        let end = from.saturating_add(count);
        // Among ASCII a character is a byte.
        if text.as_bytes()[..end.min(text.len())].is_ascii() {
            return (from.min(text.len()), end.min(text.len()));
        }
        let at = |n: usize| text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
        (at(from), at(end))
    };
    let texts = array.as_string_view();
    let mut out = StringViewBuilder::with_capacity(texts.len());
    for text in texts {
        out.append_option(text.map(|text| {
            let (start, end) = part(text);
            &text[start..end]
        }));
    }
    out.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(all: &[Option<&str>]) -> ArrayRef {
        Arc::new(StringViewArray::from(all.to_vec()))
    }

    #[test]
    fn keys_of_repeated_texts_are_their_keys() {
        let words = ["b", "a", "B", "", "a text that is longer than a view", "a text that is longer than a View", "ä", "ß and ss"];
        let all: Vec<Option<&str>> = (0..1000).map(|i| (i % 11 != 3).then(|| words[i * i % words.len()])).collect();
        for collation in [Collation::utf8mb4(), Collation::by_name("utf8mb4_bin").unwrap()] {
            // Views of one text repeat where rows are taken of few.
            let few = texts(&words.map(Some));
            let picks: UInt32Array = (0..1000).map(|i| (i % 11 != 3).then_some((i * i % words.len()) as u32)).collect();
            for array in [texts(&all), take(&few, &picks, None).unwrap()] {
                let keys = sort_keys(&array, collation);
                for (row, text) in all.iter().enumerate() {
                    let mut key = Vec::new();
                    collation.sort_key(text.unwrap_or_default().as_bytes(), &mut key);
                    assert_eq!(keys.as_binary_view().is_valid(row).then(|| keys.as_binary_view().value(row)), text.map(|_| &key[..]), "{row}: {text:?}");
                }
            }
        }
    }

    #[test]
    fn substrings_count_characters() {
        let array = texts(&[Some("13-345"), Some("é€x"), Some(""), None, Some("aé€x")]);
        let parts = |from, count| substrings(&array, from, count).iter().map(|t| t.map(str::to_owned)).collect::<Vec<_>>();
        let some = |all: [&str; 4]| vec![Some(all[0].to_owned()), Some(all[1].to_owned()), Some(all[2].to_owned()), None, Some(all[3].to_owned())];
        assert_eq!(parts(0, 2), some(["13", "é€", "", "aé"]));
        assert_eq!(parts(2, usize::MAX), some(["-345", "x", "", "€x"]));
        assert_eq!(parts(1, 0), some(["", "", "", ""]));
        assert_eq!(parts(9, 1), some(["", "", "", ""]));
    }
}
