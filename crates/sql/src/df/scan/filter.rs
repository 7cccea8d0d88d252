//! The conditions that a scan evaluates itself: each on the columns that it reads, so that the others are made for the rows that are left.
//!
//! Columns that are kept are asked as they are packed: a condition on one of few different texts is evaluated once for each text of the block, and the
//! comparison of a number with a constant is one of their distances. Before that, what is known of the columns may say that no row satisfies them.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array};
use datafusion::arrow::compute::{and, filter, prep_null_mask_filter};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::cast::as_boolean_array;
use datafusion::common::tree_node::{TransformedResult, TreeNode};
use datafusion::common::Result;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};

use super::columns::Packed;
use super::span::{Demand, Span};
use crate::df::kernel::KernelFunction;
use crate::df::parameters::with_constants;

/// The conditions of a scan, all of which a row must satisfy.
pub(super) struct Filter {
    conditions: Vec<Condition>,
}

struct Condition {
    holds: Arc<dyn PhysicalExpr>,
    /// The scan's output columns that it reads, by position, and what they are.
    columns: Vec<usize>,
    schema: SchemaRef,
    /// It has functions: it is asked only about rows that satisfy the conditions before it.
    calls: bool,
    /// Some of them may raise errors and warnings.
    raises: bool,
    /// What it asks, where that shows.
    demand: Option<Demand>,
    /// It compares the only column that it reads with a number.
    bound: Option<(Operator, i128)>,
}

/// Conditions on columns that are made for them are asked about the rows that are left, if those are one in so many.
const FEW_LEFT: usize = 4;

/// Rows of a scan before its filter.
pub(super) trait Unfiltered {
    fn rows(&self) -> usize;
    /// An output column of the scan, all rows of it.
    fn whole(&self, column: usize) -> Result<ArrayRef>;
    /// Some of its rows.
    fn some(&self, column: usize, rows: &UInt32Array) -> Result<ArrayRef>;
    /// The column as it is kept, if it is, and if that is what the query sees.
    fn packed(&self, column: usize) -> Option<&Packed>;
    /// What is known of the column as the query sees it, without a look at the rows.
    fn span(&self, column: usize) -> Option<Span>;
    /// Columns are made of encoded rows: each value costs more than to ask about it.
    fn is_encoded(&self) -> bool;
}

/// Which rows of a batch are left.
pub(super) enum Selected {
    None,
    All,
    /// By their positions.
    Some(UInt32Array),
}

impl Filter {
    /// `conditions` are over `schema`, and are evaluated in this order.
    pub fn new(conditions: &[Arc<dyn PhysicalExpr>], schema: &SchemaRef) -> Result<Filter> {
        let conditions = conditions.iter().map(|condition| {
            let mut columns: Vec<usize> = collect_columns(condition).into_iter().map(|column| column.index()).collect();
            columns.sort_unstable();
            columns.dedup();
            let schema = Arc::new(schema.project(&columns)?);
            let holds = with_constants(reassign_expr_columns(condition.clone(), &schema)?).data()?;
            let calls = holds.exists(|part| Ok(part.downcast_ref::<ScalarFunctionExpr>().is_some()))?;
            let raises = calls && holds.exists(|part| Ok(part.downcast_ref::<ScalarFunctionExpr>().is_some_and(may_raise)))?;
            let demand = Demand::of(&holds, &schema, raises);
            let bound = demand.as_ref().and_then(Demand::bound);
            Ok(Condition { holds, columns, schema, calls, raises, demand, bound })
        });
        Ok(Filter { conditions: conditions.collect::<Result<_>>()? })
    }

    /// The columns that it reads.
    pub fn columns(&self) -> impl Iterator<Item = usize> {
        self.conditions.iter().flat_map(|condition| condition.columns.iter().copied())
    }

    /// Some of its conditions may raise errors and warnings.
    pub fn raises(&self) -> bool {
        self.conditions.iter().any(|condition| condition.raises)
    }

    /// True if what is known of the columns shows that no row is left, and that nothing would have been raised on the way.
    pub fn leaves_none(&self, from: &impl Unfiltered) -> bool {
        for condition in &self.conditions {
            let span = |column: usize| from.span(condition.columns[column]);
            let demand = condition.demand.as_ref();
            if demand.is_some_and(|demand| demand.is_never(&span)) {
                return true;
            }
            if condition.raises && demand.is_none_or(|demand| !demand.is_quiet(&span)) {
                // It is asked before the others.
                return false;
            }
        }
        false
    }

    pub fn select(&self, from: &impl Unfiltered) -> Result<Selected> {
        let mut left = Left { from, positions: None, mask: None, made: Vec::new() };
        for condition in &self.conditions {
            let holds = match left.by_packed(condition)? {
                Some(holds) => holds,
                None => {
                    if condition.calls || from.is_encoded() && left.rows_left() < from.rows() / FEW_LEFT {
                        left.narrow()?;
                    }
                    left.evaluate(condition)?
                }
            };
            let both = match left.mask.take() {
                Some(mask) => and(&mask, &holds)?,
                None => holds,
            };
            match both.true_count() {
                0 => return Ok(Selected::None),
                all if all == both.len() => {}
                _ => left.mask = Some(both),
            }
        }
        left.narrow()?;
        Ok(left.positions.map_or(Selected::All, Selected::Some))
    }
}

/// The rows that satisfy the conditions so far.
struct Left<'a, F> {
    from: &'a F,
    /// Those looked at, if not all.
    positions: Option<UInt32Array>,
    /// Which of them satisfy the conditions, if not all.
    mask: Option<BooleanArray>,
    /// Columns of them.
    made: Vec<(usize, ArrayRef)>,
}

impl<F: Unfiltered> Left<'_, F> {
    /// From now on only the rows are looked at that are left.
    fn narrow(&mut self) -> Result<()> {
        let Some(mask) = self.mask.take() else { return Ok(()) };
        self.made.clear();
        self.positions = Some(match self.positions.take() {
            None => UInt32Array::from_iter_values(mask.values().set_indices_u32()),
            Some(positions) => filter(&positions, &mask)?.as_primitive().clone(),
        });
        Ok(())
    }

    fn column(&mut self, column: usize) -> Result<ArrayRef> {
        if let Some((_, made)) = self.made.iter().find(|(i, _)| *i == column) {
            return Ok(made.clone());
        }
        let made = match &self.positions {
            None => self.from.whole(column)?,
            Some(positions) => self.from.some(column, positions)?,
        };
        self.made.push((column, made.clone()));
        Ok(made)
    }

    fn evaluate(&mut self, condition: &Condition) -> Result<BooleanArray> {
        let arrays = condition.columns.iter().map(|&column| self.column(column)).collect::<Result<Vec<_>>>()?;
        holds(condition, arrays, self.positions.as_ref().map_or(self.from.rows(), |positions| positions.len()))
    }

    fn rows_left(&self) -> usize {
        match (&self.mask, &self.positions) {
            (Some(mask), _) => mask.true_count(),
            (None, Some(positions)) => positions.len(),
            (None, None) => self.from.rows(),
        }
    }

    /// Without making the column; None if it is not packed in a way that helps.
    fn by_packed(&self, condition: &Condition) -> Result<Option<BooleanArray>> {
        let [column] = condition.columns[..] else { return Ok(None) };
        let Some(packed) = self.from.packed(column) else { return Ok(None) };
        let among = self.positions.as_ref().map(|positions| &positions.values()[..]);
        if let Some((op, constant)) = condition.bound {
            return Ok(packed.compared(op, constant, among).map(|mask| BooleanArray::new(mask, None)));
        }
        if condition.raises {
            return Ok(None);
        }
        let Some((codes, values)) = packed.dictionary(among) else { return Ok(None) };
        if condition.calls && self.rows_left() < values.len() {
            return Ok(None);
        }
        let of_values = holds(condition, vec![values.clone()], values.len())?;
        Ok(Some(BooleanArray::new(codes.holds(&of_values), None)))
    }
}

/// For which of `rows` rows the condition is true.
fn holds(condition: &Condition, arrays: Vec<ArrayRef>, rows: usize) -> Result<BooleanArray> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let batch = RecordBatch::try_new_with_options(condition.schema.clone(), arrays, &options)?;
    let holds = condition.holds.evaluate(&batch)?.into_array(rows)?;
    let holds = as_boolean_array(&holds)?;
    Ok(if holds.null_count() > 0 { prep_null_mask_filter(holds) } else { holds.clone() })
}

fn may_raise(function: &ScalarFunctionExpr) -> bool {
    function.fun().inner().downcast_ref::<KernelFunction>().is_none_or(KernelFunction::may_raise)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::HashMap;

    use datafusion::arrow::array::{Decimal128Array, Int32Array, Int64Array, StringViewArray, UInt16Array, UInt64Array};
    use datafusion::arrow::compute::take;
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::common::ScalarValue;
    use datafusion::physical_expr::expressions::{binary, col, in_list, is_not_null, is_null, lit};

    use super::*;

    /// Columns, as they are or as they are kept.
    struct Columns(Vec<ArrayRef>, HashMap<usize, Packed>);

    impl Columns {
        fn new(arrays: Vec<ArrayRef>, kept: bool) -> Columns {
            let packed = arrays.iter().enumerate().filter(|_| kept).map(|(i, array)| (i, Packed::of(array))).collect();
            Columns(arrays, packed)
        }
    }

    impl Unfiltered for Columns {
        fn rows(&self) -> usize {
            self.0[0].len()
        }
        fn whole(&self, column: usize) -> Result<ArrayRef> {
            Ok(self.0[column].clone())
        }
        fn some(&self, column: usize, rows: &UInt32Array) -> Result<ArrayRef> {
            Ok(take(&self.0[column], rows, None)?)
        }
        fn packed(&self, column: usize) -> Option<&Packed> {
            self.1.get(&column)
        }
        fn span(&self, column: usize) -> Option<Span> {
            self.1.get(&column).map(Packed::span)
        }
        fn is_encoded(&self) -> bool {
            false
        }
    }

    /// Columns that are made of rows: how many values of which were.
    struct Made(Vec<ArrayRef>, RefCell<Vec<(usize, usize)>>);

    impl Unfiltered for Made {
        fn rows(&self) -> usize {
            self.0[0].len()
        }
        fn whole(&self, column: usize) -> Result<ArrayRef> {
            self.1.borrow_mut().push((column, self.rows()));
            Ok(self.0[column].clone())
        }
        fn some(&self, column: usize, rows: &UInt32Array) -> Result<ArrayRef> {
            self.1.borrow_mut().push((column, rows.len()));
            Ok(take(&self.0[column], rows, None)?)
        }
        fn packed(&self, _: usize) -> Option<&Packed> {
            None
        }
        fn span(&self, _: usize) -> Option<Span> {
            None
        }
        fn is_encoded(&self) -> bool {
            true
        }
    }

    fn selected(filter: &Filter, columns: &impl Unfiltered) -> Vec<u32> {
        match filter.select(columns).unwrap() {
            Selected::None => Vec::new(),
            Selected::All => (0..columns.rows() as u32).collect(),
            Selected::Some(rows) => rows.values().to_vec(),
        }
    }

    #[test]
    fn conditions_are_anded_in_their_order() {
        let schema: SchemaRef = Arc::new(Schema::new(vec![Field::new("unused", DataType::Int64, true), Field::new("a", DataType::Int64, true)]));
        let compare = |op, n: i64| binary(col("a", &schema).unwrap(), op, lit(n), &schema).unwrap();
        let a: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(5), Some(7), Some(9)]));
        let select = |calls: bool, kept: bool, conditions: &[Arc<dyn PhysicalExpr>]| {
            let mut filter = Filter::new(conditions, &schema).unwrap();
            assert_eq!(filter.conditions[0].columns, [1]);
            filter.conditions.iter_mut().for_each(|c| c.calls = calls);
            selected(&filter, &Columns::new(vec![a.clone(), a.clone()], kept))
        };
        for (calls, kept) in [(false, false), (true, false), (false, true), (true, true)] {
            assert_eq!(select(calls, kept, &[compare(Operator::Gt, 1), compare(Operator::Lt, 9), compare(Operator::NotEq, 5)]), [3]);
            assert_eq!(select(calls, kept, &[compare(Operator::Gt, 1), compare(Operator::Gt, 4)]), [2, 3, 4]);
            assert!(select(calls, kept, &[compare(Operator::Gt, 5), compare(Operator::Lt, 5)]).is_empty());
        }
    }

    /// What is said of packed columns is what is said of the columns themselves.
    #[test]
    fn packed_columns_answer_as_the_columns_do() {
        let rows = 1000i64;
        let number = |i: i64| (i * 7919) % 300 - 40;
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from_iter_values((0..rows).map(number))),
            Arc::new(Int64Array::from_iter((0..rows).map(|i| (i % 5 != 0).then(|| number(i) << 20)))),
            Arc::new(UInt64Array::from_iter_values((0..rows).map(|i| u64::MAX - number(i).unsigned_abs()))),
            Arc::new(Int32Array::from_iter_values((0..rows).map(|i| number(i) as i32 * 1000))),
            Arc::new(UInt16Array::from_iter_values((0..rows).map(|i| number(i).unsigned_abs() as u16))),
            Arc::new(Decimal128Array::from_iter_values((0..rows).map(|i| i128::from(number(i)) << 30)).with_precision_and_scale(38, 2).unwrap()),
            Arc::new(Int64Array::from_iter_values((0..rows).map(|i| if i % 2 == 0 { i64::MIN + i } else { i64::MAX - i }))),
        ];
        let fields = arrays.iter().enumerate().map(|(i, a)| Field::new(format!("c{i}"), a.data_type().clone(), true));
        let schema: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let (plain, kept) = (Columns::new(arrays.clone(), false), Columns::new(arrays.clone(), true));
        use Operator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
        for (i, array) in arrays.iter().enumerate() {
            let column = col(&format!("c{i}"), &schema).unwrap();
            let mut constants: Vec<ScalarValue> = [0, 1, 17, 500].iter().map(|&row| ScalarValue::try_from_array(array, row).unwrap()).collect();
            if array.data_type() == &DataType::Int64 {
                constants.extend([i64::MIN, i64::MAX, 0, -41].map(|n| ScalarValue::Int64(Some(n))));
            }
            for op in [Eq, NotEq, Lt, LtEq, Gt, GtEq] {
                for constant in constants.iter().filter(|c| !c.is_null()) {
                    let condition = binary(column.clone(), op, lit(constant.clone()), &schema).unwrap();
                    let swapped = binary(lit(constant.clone()), op.swap().unwrap(), column.clone(), &schema).unwrap();
                    let some = binary(col("c0", &schema).unwrap(), Gt, lit(100i64), &schema).unwrap();
                    for conditions in [vec![condition.clone()], vec![swapped], vec![some, condition]] {
                        let mut filter = Filter::new(&conditions, &schema).unwrap();
                        assert!(filter.conditions.iter().all(|c| c.bound.is_some()));
                        let expected = selected(&filter, &plain);
                        assert_eq!(selected(&filter, &kept), expected, "{conditions:?}");
                        // Of the rows that others have left.
                        filter.conditions.iter_mut().for_each(|c| c.calls = true);
                        assert_eq!(selected(&filter, &kept), expected, "{conditions:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn few_texts_are_asked_once_each() {
        let text = |i: u32| ["MAIL", "SHIP", "a text that is longer than a view", ""][i as usize * 7 % 4];
        let schema: SchemaRef = Arc::new(Schema::new(vec![Field::new("a", DataType::Utf8View, true)]));
        let column = col("a", &schema).unwrap();
        let nulls = |i: u32, some: bool| (!some || i % 3 != 0).then(|| text(i));
        for some in [false, true] {
            let array: ArrayRef = Arc::new(StringViewArray::from_iter((0..500).map(|i| nulls(i, some))));
            let (plain, kept) = (Columns::new(vec![array.clone()], false), Columns::new(vec![array.clone()], true));
            assert!(matches!(&kept.1[&0], Packed::Dictionary { .. }));
            let view = |text: &str| lit(ScalarValue::Utf8View(Some(text.to_owned())));
            let conditions: [Arc<dyn PhysicalExpr>; 3] = [
                in_list(column.clone(), vec![view("SHIP"), view("")], &false, &schema).unwrap(),
                binary(column.clone(), Operator::NotEq, view("a text that is longer than a view"), &schema).unwrap(),
                datafusion::physical_expr::expressions::is_null(column.clone()).unwrap(),
            ];
            for condition in &conditions {
                let filter = Filter::new(std::slice::from_ref(condition), &schema).unwrap();
                assert_eq!(selected(&filter, &kept), selected(&filter, &plain), "{condition}");
            }
            let mut filter = Filter::new(&conditions[..2], &schema).unwrap();
            assert_eq!(selected(&filter, &kept), selected(&filter, &plain));
            filter.conditions.iter_mut().for_each(|c| c.calls = true);
            assert_eq!(selected(&filter, &kept), selected(&filter, &plain));
        }
    }

    /// Of fewer rows than there are texts the rows themselves are asked.
    #[test]
    fn texts_are_not_asked_for_few_rows() {
        let schema: SchemaRef = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true), Field::new("a", DataType::Utf8View, true)]));
        let texts: Vec<String> = (0..400).map(|i| format!("text {}", i % 40)).collect();
        let arrays: Vec<ArrayRef> = vec![Arc::new(Int64Array::from_iter_values(0..400)), Arc::new(StringViewArray::from_iter_values(&texts))];
        let (plain, kept) = (Columns::new(arrays.clone(), false), Columns::new(arrays, true));
        assert!(matches!(&kept.1[&1], Packed::Dictionary { .. }));
        let unlike = lit(ScalarValue::Utf8View(Some("text 3".to_owned())));
        for least in [0i64, 350, 361, 390, 400] {
            let conditions = [
                binary(col("n", &schema).unwrap(), Operator::GtEq, lit(least), &schema).unwrap(),
                binary(col("a", &schema).unwrap(), Operator::NotEq, unlike.clone(), &schema).unwrap(),
            ];
            for calls in [false, true] {
                let mut filter = Filter::new(&conditions, &schema).unwrap();
                filter.conditions[1].calls = calls;
                let left: Vec<u32> = (0..400).filter(|row| i64::from(*row) >= least && row % 40 != 3).collect();
                assert_eq!((selected(&filter, &plain), selected(&filter, &kept)), (left.clone(), left));
            }
        }
    }

    /// Conditions behind one that leaves few rows are asked about those.
    #[test]
    fn columns_of_encoded_rows_are_made_for_what_is_left() {
        let arrays: Vec<ArrayRef> = (0..3).map(|i| Arc::new(Int64Array::from_iter_values((0..1000).map(|row| row * (i + 1)))) as ArrayRef).collect();
        let schema: SchemaRef = Arc::new(Schema::new(["a", "b", "c"].map(|name| Field::new(name, DataType::Int64, true)).to_vec()));
        let compare = |name: &str, op, n: i64| binary(col(name, &schema).unwrap(), op, lit(n), &schema).unwrap();
        let ask = |conditions: &[Arc<dyn PhysicalExpr>]| {
            let made = Made(arrays.clone(), RefCell::default());
            let rows = selected(&Filter::new(conditions, &schema).unwrap(), &made);
            assert_eq!(rows, selected(&Filter::new(conditions, &schema).unwrap(), &Columns::new(arrays.clone(), true)));
            (rows.len(), made.1.into_inner())
        };
        let half = compare("a", Operator::Lt, 500);
        let few = compare("a", Operator::Lt, 20);
        let rest = compare("b", Operator::GtEq, 10);
        assert_eq!(ask(&[few, rest.clone(), compare("c", Operator::NotEq, 30)]), (14, vec![(0, 1000), (1, 20), (2, 15)]));
        assert_eq!(ask(&[half, rest.clone()]), (495, vec![(0, 1000), (1, 1000)]));
        assert_eq!(ask(&[compare("a", Operator::Lt, 0), rest]), (0, vec![(0, 1000)]));
    }

    /// What is known of columns never leaves out a row, and is enough where all values are on one side of a constant.
    #[test]
    fn blocks_are_passed_over_where_no_row_is_left() {
        use Operator::{And, Eq, Gt, GtEq, Lt, LtEq, NotEq, Or};
        let rows = 200i64;
        let nullable = |number: &dyn Fn(i64) -> i64| (0..rows).map(|i| (i % 3 != 0).then(|| number(i))).collect::<Int64Array>();
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from_iter_values((0..rows).map(|i| i % 50 - 20))),
            Arc::new(nullable(&|i| i % 40 - 60)),
            Arc::new(nullable(&|_| 7)),
            Arc::new(Int64Array::from(vec![None::<i64>; rows as usize])),
            Arc::new(UInt64Array::from_iter_values((0..rows).map(|i| u64::MAX - 100 + i as u64 % 50))),
            Arc::new(Int32Array::from_iter_values((0..rows).map(|i| 1_032_000 + i as i32))),
            Arc::new(Decimal128Array::from_iter_values((0..rows).map(|i| i128::from(i) * 101 - 30_000)).with_precision_and_scale(38, 2).unwrap()),
        ];
        let fields = arrays.iter().enumerate().map(|(i, a)| Field::new(format!("c{i}"), a.data_type().clone(), true));
        let schema: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let (plain, kept) = (Columns::new(arrays.clone(), false), Columns::new(arrays.clone(), true));
        let constant = |ty: &DataType, n: i128| match ty {
            DataType::Int64 => ScalarValue::Int64(Some(n as i64)),
            DataType::UInt64 => ScalarValue::UInt64(Some(n as u64)),
            DataType::Int32 => ScalarValue::Int32(Some(n as i32)),
            _ => ScalarValue::Decimal128(Some(n), 38, 2),
        };
        // Whether rows are left, and whether it is known before that none is.
        let ask = |conditions: &[Arc<dyn PhysicalExpr>]| {
            let filter = Filter::new(conditions, &schema).unwrap();
            let left = selected(&filter, &plain);
            assert_eq!(selected(&filter, &kept), left, "{conditions:?}");
            assert!(!filter.leaves_none(&plain), "nothing is known of these");
            let none = filter.leaves_none(&kept);
            assert!(!none || left.is_empty(), "{conditions:?}");
            (left.is_empty(), none)
        };
        for (i, array) in arrays.iter().enumerate() {
            let column = col(&format!("c{i}"), &schema).unwrap();
            let is = |op, n: i128| binary(column.clone(), op, lit(constant(array.data_type(), n)), &schema).unwrap();
            let span = kept.span(i).unwrap();
            let (least, greatest) = span.range.unwrap_or((0, 0));
            for n in [least - 1, least, least + 1, greatest - 1, greatest, greatest + 1] {
                for op in [Lt, LtEq, Gt, GtEq, NotEq] {
                    let (empty, none) = ask(&[is(op, n)]);
                    assert_eq!(empty, none, "c{i} {op} {n}");
                }
                let outside = !span.values || n < least || n > greatest;
                assert_eq!(ask(&[is(Eq, n)]).1, outside, "c{i} = {n}");
                let list = |numbers: &[i128]| {
                    let mut list: Vec<Arc<dyn PhysicalExpr>> = numbers.iter().map(|n| lit(constant(array.data_type(), *n))).collect();
                    list.push(lit(ScalarValue::try_from(array.data_type()).unwrap()));
                    in_list(column.clone(), list, &false, &schema).unwrap()
                };
                assert_eq!(ask(&[list(&[greatest + 5, n, least - 5])]).1, outside, "c{i} IN (.., {n}, ..)");
                // BETWEEN, and either of two.
                let between = binary(is(GtEq, n), And, is(LtEq, n + 1), &schema).unwrap();
                assert_eq!(ask(&[between]).1, !span.values || n + 1 < least || n > greatest, "c{i} from {n}");
                let either = binary(is(Lt, n), Or, is(Eq, greatest + 3), &schema).unwrap();
                assert_eq!(ask(&[either]).1, !span.values || n <= least, "c{i} < {n} or another");
            }
            assert_eq!(ask(&[is_null(column.clone()).unwrap()]), (!span.nulls, !span.nulls));
            assert_eq!(ask(&[is_not_null(column.clone()).unwrap()]), (!span.values, !span.values));
        }
        // One of two that nothing is known of.
        let unknown = binary(col("c0", &schema).unwrap(), NotEq, col("c1", &schema).unwrap(), &schema).unwrap();
        let never = binary(col("c0", &schema).unwrap(), Gt, lit(1000i64), &schema).unwrap();
        assert!(ask(&[binary(unknown.clone(), And, never.clone(), &schema).unwrap()]).1);
        assert!(!ask(&[binary(unknown.clone(), Or, never.clone(), &schema).unwrap()]).1);
        // What may raise something is asked, unless a condition before it leaves no row.
        let mut filter = Filter::new(&[unknown.clone(), never.clone()], &schema).unwrap();
        assert!(filter.leaves_none(&kept));
        filter.conditions[0].raises = true;
        assert!(filter.raises() && !filter.leaves_none(&kept));
        let mut filter = Filter::new(&[never, unknown], &schema).unwrap();
        filter.conditions[1].raises = true;
        assert!(filter.leaves_none(&kept));
    }

    /// Dates are compared as moments, and numbers with decimals, where MySQL does so.
    #[test]
    fn what_is_known_of_numbers_is_known_of_their_other_forms() {
        use crate::df::kernel::Kernel;
        use crate::df::repr::Repr;
        use datafusion::config::ConfigOptions;

        let arrays: Vec<ArrayRef> = vec![
            Arc::new(Int32Array::from_iter((0..300).map(|i| (i % 7 != 0).then_some(1_030_000 + i)))),
            Arc::new(Int64Array::from_iter_values((0..300).map(|i| i - 500))),
            Arc::new(Decimal128Array::from_iter_values((0..300).map(|i| i * 25 - 9_000)).with_precision_and_scale(38, 2).unwrap()),
        ];
        let fields = arrays.iter().enumerate().map(|(i, a)| Field::new(format!("c{i}"), a.data_type().clone(), true));
        let schema: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let kept = Columns::new(arrays.clone(), true);
        let form = |kernel: Kernel, column: usize| -> Arc<dyn PhysicalExpr> {
            let argument = col(&format!("c{column}"), &schema).unwrap();
            let call = ScalarFunctionExpr::try_new(KernelFunction::udf(kernel, None), vec![argument], &schema, Arc::new(ConfigOptions::new()));
            Arc::new(call.unwrap())
        };
        let decimal = |n: i128, scale: i8| ScalarValue::Decimal128(Some(n), 38, scale);
        let forms = [
            (form(Kernel::DateToDateTime, 0), [1_030_001, 1_030_299].map(|day: i64| ScalarValue::Int64(Some(day << 37))), false),
            (form(Kernel::ToDecimal(Repr::Int, Repr::Decimal(3)), 1), [-500_000, -201_000].map(|n| decimal(n, 3)), true),
            (form(Kernel::ToDecimal(Repr::Decimal(2), Repr::Decimal(4)), 2), [-900_000, -152_500].map(|n| decimal(n, 4)), true),
        ];
        for (number, [least, greatest], raises) in forms {
            for (op, constant, never) in [
                (Operator::Lt, &least, true),
                (Operator::LtEq, &least, false),
                (Operator::Eq, &least, false),
                (Operator::Gt, &greatest, true),
                (Operator::GtEq, &greatest, false),
            ] {
                let condition = binary(number.clone(), op, lit(constant.clone()), &schema).unwrap();
                let filter = Filter::new(std::slice::from_ref(&condition), &schema).unwrap();
                assert_eq!((filter.raises(), filter.leaves_none(&kept)), (raises, never), "{condition}");
                assert_eq!(selected(&filter, &kept).is_empty(), never, "{condition}");
            }
            // None of these raises anything: what is behind it may be looked at.
            let conditions = [
                binary(number.clone(), Operator::GtEq, lit(least), &schema).unwrap(),
                binary(col("c1", &schema).unwrap(), Operator::Gt, lit(0i64), &schema).unwrap(),
            ];
            assert!(Filter::new(&conditions, &schema).unwrap().leaves_none(&kept));
        }
    }
}
