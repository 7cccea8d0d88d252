//! The conditions that a scan evaluates itself: each on the columns that it reads, so that the others are made for the rows that are left.
//!
//! Columns that are kept are asked as they are packed: a condition on one of few different texts is evaluated once for each text of the block, and the
//! comparison of a number with a constant is one of their distances.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array};
use datafusion::arrow::compute::{and, filter, prep_null_mask_filter};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::cast::as_boolean_array;
use datafusion::common::tree_node::{TransformedResult, TreeNode};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, Literal};
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};

use super::columns::Packed;
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
    /// It compares the only column that it reads with a number.
    bound: Option<(Operator, i128)>,
}

/// Rows of a scan before its filter.
pub(super) trait Unfiltered {
    fn rows(&self) -> usize;
    /// An output column of the scan, all rows of it.
    fn whole(&self, column: usize) -> Result<ArrayRef>;
    /// Some of its rows.
    fn some(&self, column: usize, rows: &UInt32Array) -> Result<ArrayRef>;
    /// The column as it is kept, if it is, and if that is what the query sees.
    fn packed(&self, column: usize) -> Option<&Packed>;
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
            let bound = bound(&holds, &schema);
            Ok(Condition { holds, columns, schema, calls, raises, bound })
        });
        Ok(Filter { conditions: conditions.collect::<Result<_>>()? })
    }

    pub fn select(&self, from: &impl Unfiltered) -> Result<Selected> {
        let mut left = Left { from, positions: None, mask: None, made: Vec::new() };
        for condition in &self.conditions {
            let holds = match left.by_packed(condition)? {
                Some(holds) => holds,
                None => {
                    if condition.calls {
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

/// `column op number`, or the other way round, of one type.
fn bound(holds: &Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> Option<(Operator, i128)> {
    let compares = holds.downcast_ref::<BinaryExpr>()?;
    let (op, column, literal) = match (compares.left().downcast_ref::<Column>(), compares.right().downcast_ref::<Column>()) {
        (Some(column), None) => (*compares.op(), column, compares.right().downcast_ref::<Literal>()?),
        (None, Some(column)) => (compares.op().swap()?, column, compares.left().downcast_ref::<Literal>()?),
        _ => return None,
    };
    use Operator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    if !matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq) || schema.field(column.index()).data_type() != &literal.value().data_type() {
        return None;
    }
    let number = match *literal.value() {
        ScalarValue::Int64(value) => value?.into(),
        ScalarValue::UInt64(value) => value?.into(),
        ScalarValue::Int32(value) => value?.into(),
        ScalarValue::UInt16(value) => value?.into(),
        ScalarValue::Decimal128(value, ..) => value?,
        _ => return None,
    };
    Some((op, number))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use datafusion::arrow::array::{Decimal128Array, Int32Array, Int64Array, StringViewArray, UInt16Array, UInt64Array};
    use datafusion::arrow::compute::take;
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::physical_expr::expressions::{binary, col, in_list, lit};

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
    }

    fn selected(filter: &Filter, columns: &Columns) -> Vec<u32> {
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
}
