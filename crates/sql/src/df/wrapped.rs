//! Any bound expression as a DataFusion function: evaluated row by row by the one evaluator that the fast path uses too.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanBuilder};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, Expr as DfExpr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use highkey_types::{ColumnType, Value};

use super::context::{Owner, Shared};
use super::error::user;
use super::repr::{ColumnBuilder, ColumnReader, data_type};
use crate::expr;
use crate::plan::{Expr, ExprKind, ExprType, Field, describe_expr};

/// After so many rows of a batch it is asked whether the query was killed: a row of a long text may take tens of milliseconds.
const ROWS_UNWATCHED: usize = 8;

/// An expression whose columns are the function's arguments.
#[derive(Debug)]
pub(super) struct Wrapped {
    id: usize,
    expr: Expr,
    arguments: Vec<ColumnType>,
    /// The result is truth as Arrow's Boolean instead of a value.
    condition: bool,
    owner: Arc<Owner>,
    /// At the query.
    attempt: usize,
    signature: Signature,
}

impl Wrapped {
    pub fn new(expr: Expr, arguments: Vec<ColumnType>, condition: bool, shared: &Shared) -> Wrapped {
        let volatility = if expr.is_steady() { Volatility::Immutable } else { Volatility::Volatile };
        let signature = any_arguments(arguments.len(), volatility);
        Wrapped { id: shared.next_id(), attempt: shared.attempt(), expr, arguments, condition, owner: shared.owner.clone(), signature }
    }

    /// The results for `rows` rows.
    pub fn run(&self, args: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let arrays = args
            .iter()
            .map(|arg| match arg {
                ColumnarValue::Array(array) => Ok((array.clone(), false)),
                ColumnarValue::Scalar(scalar) => Ok((scalar.to_array_of_size(1)?, true)),
            })
            .collect::<Result<Vec<(ArrayRef, bool)>>>()?;
        let readers: Vec<(ColumnReader, bool)> =
            arrays.iter().zip(&self.arguments).map(|((array, single), ty)| (ColumnReader::new(array.as_ref(), ty), *single)).collect();
        let mut row: Vec<Value> = readers.iter().map(|(reader, single)| if *single { reader.get(0) } else { Value::Null }).collect();
        let mut out = if self.condition { Output::Truth(BooleanBuilder::with_capacity(rows)) } else { Output::Values(ColumnBuilder::new(&self.expr.ty.ty, rows)) };
        // While a query is planned, functions are asked about constants and about NULLs that are no column's.
        let of_rows = arrays.iter().any(|(array, single)| !single && array.data_type() != &DataType::Null);
        let shared = self.owner.shared()?;
        shared.evaluate_wrapped(self.attempt, !of_rows && !self.is_volatile(), |cx| {
            for i in 0..rows {
                if i % ROWS_UNWATCHED == ROWS_UNWATCHED - 1 {
                    shared.check_killed()?;
                }
                for (value, (reader, single)) in row.iter_mut().zip(&readers) {
                    if !single {
                        *value = reader.get(i);
                    }
                }
                let result = expr::eval(&self.expr, &row, cx).map_err(user)?;
                match &mut out {
                    Output::Values(builder) => builder.push(&result),
                    Output::Truth(builder) => builder.append_option(truth(&result)),
                }
            }
            Ok::<_, DataFusionError>(())
        })?;
        // It may be false because of a KILL, and there may be no row behind.
        if self.condition && self.is_volatile() {
            shared.check_killed()?;
        }
        Ok(match &mut out {
            Output::Values(builder) => builder.finish(),
            Output::Truth(builder) => Arc::new(builder.finish()),
        })
    }

    /// In MySQL's words, of arguments in words.
    pub fn worded(&self, args: Vec<String>) -> String {
        let fields: Vec<Field> = args.into_iter().zip(&self.arguments).map(|(arg, ty)| Field::computed(arg, ExprType::column(ty.clone(), true))).collect();
        describe_expr(&self.expr, &fields)
    }

    pub fn is_volatile(&self) -> bool {
        self.signature.volatility == Volatility::Volatile
    }

    /// The value of an expression without arguments.
    pub fn constant(&self) -> Result<ScalarValue> {
        ScalarValue::try_from_array(&self.run(&[], 1)?, 0)
    }

    pub fn udf(self) -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::new_from_impl(self))
    }
}

/// DataFusion's word for "any arguments" does not include none.
pub(super) fn any_arguments(count: usize, volatility: Volatility) -> Signature {
    if count == 0 { Signature::nullary(volatility) } else { Signature::variadic_any(volatility) }
}

enum Output {
    Values(ColumnBuilder),
    Truth(BooleanBuilder),
}

/// The truth of a condition's value: conditions answer 0, 1 or NULL.
fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Null => None,
        Value::Int(v) => Some(*v != 0),
        Value::UInt(v) => Some(*v != 0),
        Value::Double(v) => Some(*v != 0.0),
        Value::Float(v) => Some(*v != 0.0),
        Value::Decimal(v) => Some(!v.is_zero()),
        _ => Some(true),
    }
}

impl PartialEq for Wrapped {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Wrapped {}

impl std::hash::Hash for Wrapped {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl ScalarUDFImpl for Wrapped {
    fn name(&self) -> &str {
        match &self.expr.kind {
            ExprKind::Call { func, .. } => func.name(),
            ExprKind::Compare { op, .. } => op.symbol(),
            ExprKind::Cast(_) => "cast",
            ExprKind::Like { .. } => "like",
            ExprKind::In { .. } => "in",
            _ => "eval",
        }
    }

    /// Two expressions of one name over one column are two columns, such as keys of a join.
    fn schema_name(&self, args: &[DfExpr]) -> Result<String> {
        let args: Vec<String> = args.iter().map(|arg| arg.schema_name().to_string()).collect();
        Ok(format!("{}#{}({})", self.name(), self.id, args.join(",")))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(if self.condition { DataType::Boolean } else { data_type(&self.expr.ty.ty) })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.owner.shared()?.check_killed()?;
        Ok(ColumnarValue::Array(self.run(&args.args, args.number_rows)?))
    }
}
