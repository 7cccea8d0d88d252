//! GROUP BY, aggregates, ROLLUP, DISTINCT's grouping.
//!
//! Groups form by key (`group_key`). Where a key is not the value itself (text under a collation), the group's value is its first row's.

use std::sync::Arc;

use datafusion::arrow::array::{Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::Result;
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::functions_window::lead_lag::lag_udwf;
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::{AggregateFunction, Case, WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::logical_plan::{Aggregate as AggregatePlan, Sort as SortPlan, Window};
use datafusion::logical_expr::{
    AggregateUDF, Expr as DfExpr, LogicalPlan, LogicalPlanBuilder, Operator, SortExpr, WindowFrame, WindowFunctionDefinition, WindowUDF, binary_expr, lit,
};
use highkey_types::{ColumnType, TypeKind, Value, errors};

use super::dependent::dependent;
use super::expr::{apply, key_hides_value, typed_null};
use super::{Lowered, Lowerer, Projecting, Scope};
use crate::df::aggregate::{Aggregate as Udaf, AggregateKind, BitOperation, Teller, TextOrder};
use crate::df::error::user;
use crate::df::kernel::{Kernel, KernelFunction};
use crate::df::parallel::OrderWatch;
use crate::df::repr::{Repr, data_type};
use crate::functions::FuncId;
use crate::plan::{Aggregate, AggregateFunc, Expr, ExprKind, ExprType, Rel, SortKey};

/// A grouping column: what rows are grouped by and, if that is not the value itself, the value.
pub(in crate::df) struct GroupColumn {
    pub key: DfExpr,
    pub value: Option<DfExpr>,
    pub ty: ColumnType,
    /// The other columns determine the value: it is no key.
    pub dependent: bool,
}

/// A call of an aggregate, its arguments over the input.
pub(in crate::df) struct Call {
    pub udaf: Arc<AggregateUDF>,
    pub args: Vec<DfExpr>,
    pub distinct: bool,
    /// DISTINCT: the aggregate of rows of which no two have the same key. The key is the first argument; the others are the aggregate's own, or
    /// the key is where there are none.
    of_distinct: Option<Arc<AggregateUDF>>,
}

impl Call {
    fn new(udaf: Arc<AggregateUDF>, args: Vec<DfExpr>) -> Call {
        Call { udaf, args, distinct: false, of_distinct: None }
    }
}

/// A column of numbers: of each row among those of its group that have its key, or NULL.
struct Numbered {
    key: DfExpr,
    /// The column that `key` is.
    column: DfExpr,
    number: String,
}

impl Lowerer {
    pub fn aggregate(&self, input: &Rel, groups: &[Expr], aggregates: &[Aggregate], rollup: bool) -> Result<Lowered> {
        let lowered = self.rel(input, &[])?;
        let mut scope = Scope::of(input, &lowered);
        let plan = self.join_scalar_subqueries(lowered.plan, &mut scope, &mut [])?;
        let calls = aggregates.iter().map(|a| self.call(a.func, a.distinct, &a.args, &a.order_by, &a.ty, &scope)).collect::<Result<Vec<_>>>()?;
        let mut columns = groups.iter().map(|g| self.group_column(g, &scope)).collect::<Result<Vec<_>>>()?;
        if rollup && !groups.is_empty() {
            return self.roll_up(plan, columns, calls, groups);
        }
        for (column, dependent) in columns.iter_mut().zip(dependent(input, groups)) {
            column.dependent = dependent;
        }
        self.grouped(plan, columns, calls)
    }

    pub fn group_column(&self, expr: &Expr, scope: &Scope) -> Result<GroupColumn> {
        let value = self.value(expr, scope)?;
        let key = self.group_key(expr, scope)?;
        // A double's key is a double that equals it.
        Ok(GroupColumn { key, value: key_hides_value(&expr.ty.ty).then_some(value), ty: expr.ty.ty.clone(), dependent: false })
    }

    /// `plan` grouped; the columns are the groups' values, then the aggregates.
    pub fn grouped(&self, plan: LogicalPlan, groups: Vec<GroupColumn>, calls: Vec<Call>) -> Result<Lowered> {
        Ok(self.grouped_with_keys(plan, groups, calls)?.0)
    }

    /// The same, and the group keys in the groups' order.
    fn grouped_with_keys(&self, plan: LogicalPlan, groups: Vec<GroupColumn>, calls: Vec<Call>) -> Result<(Lowered, Vec<DfExpr>)> {
        let mut input = Projecting::default();
        let (mut keys, mut group_keys) = (Vec::new(), Vec::new());
        let mut aggregates = Vec::new();
        let mut columns = Vec::new();
        let mut add = |call: Call, args: Vec<DfExpr>, filter: Option<DfExpr>, hint: &str| {
            let name = self.shared.name(hint);
            let filter = filter.map(Box::new);
            let function = DfExpr::AggregateFunction(AggregateFunction::new_udf(call.udaf, args, call.distinct, filter, Vec::new(), None));
            aggregates.push(function.alias(name.clone()));
            Lowerer::named(name)
        };
        for group in groups {
            if group.dependent {
                let value = input.push(self, group.value.unwrap_or(group.key), "value");
                // All rows of the group have the same: their order does not show.
                let first = Udaf::udaf(AggregateKind::First(OrderWatch::default()), data_type(&group.ty), &self.shared.owner);
                columns.push(add(Call::new(first, Vec::new()), vec![value], None, "group"));
                continue;
            }
            let key = input.push(self, group.key, "key");
            group_keys.push(key.clone());
            match group.value {
                None => columns.push(key.clone()),
                Some(value) => {
                    let value = input.push(self, value, "value");
                    let output = data_type(&group.ty);
                    let first = Call::new(Udaf::udaf(AggregateKind::First(self.shared.order.clone()), output, &self.shared.owner), Vec::new());
                    columns.push(add(first, vec![value], None, "group"));
                }
            }
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        let argument = |input: &mut Projecting, arg: &DfExpr| match arg {
            DfExpr::Literal(..) => arg.clone(),
            _ => input.push(self, arg.clone(), "arg"),
        };
        let mut numbered: Vec<Numbered> = Vec::new();
        for mut call in calls {
            let Some(of_distinct) = call.of_distinct.take().filter(|_| self.shared.is_spilling()) else {
                let args = call.args.iter().map(|arg| argument(&mut input, arg)).collect();
                columns.push(add(call, args, None, "agg"));
                continue;
            };
            let key = &call.args[0];
            let at = numbered.iter().position(|known| known.key == *key).unwrap_or_else(|| {
                numbered.push(Numbered { key: key.clone(), column: input.push(self, key.clone(), "key"), number: self.shared.name("number") });
                numbered.len() - 1
            });
            let Numbered { column, number, .. } = &numbered[at];
            let own = &call.args[usize::from(call.args.len() > 1)..];
            let args = own.iter().map(|arg| if arg == key { column.clone() } else { argument(&mut input, arg) }).collect();
            let first = binary_expr(Lowerer::named(number.clone()), Operator::Eq, lit(1u64));
            let filter = first.and(DfExpr::IsNotNull(Box::new(column.clone())));
            columns.push(add(Call::new(of_distinct, Vec::new()), args, Some(filter), "agg"));
        }
        let plan = if input.is_empty() { plan } else { input.over(plan)? };
        let plan = self.with_numbers(plan, &keys, &numbered)?;
        let one_row = keys.is_empty();
        let plan = LogicalPlan::Aggregate(AggregatePlan::try_new(Arc::new(plan), keys, aggregates)?);
        // DataFusion moves a condition that reads no column below the aggregates, where it takes rows from them, but never the row that they give.
        let plan = if one_row { LogicalPlanBuilder::from(plan).limit(0, Some(1))?.build()? } else { plan };
        Ok((Lowered { plan, columns }, group_keys))
    }

    /// DISTINCT where memory ran out: `plan` with the numbers that tell which rows are the first of their group with a key. Rows are sorted by it, which
    /// spills, where the aggregate would keep all keys of a group. Where their order shows, they are numbered in it, and come back into it.
    fn with_numbers(&self, mut plan: LogicalPlan, groups: &[DfExpr], numbered: &[Numbered]) -> Result<LogicalPlan> {
        if numbered.is_empty() {
            return Ok(plan);
        }
        let among_equals = |key: &DfExpr, order: Vec<SortExpr>| {
            let mut partition = groups.to_vec();
            if !partition.contains(key) {
                partition.push(key.clone());
            }
            window(row_number_udwf(), Vec::new(), partition, order)
        };
        if !self.shared.in_order() {
            for Numbered { column, number, .. } in numbered {
                plan = windows(plan, vec![among_equals(column, Vec::new()).alias(number.clone())])?;
            }
            return Ok(plan);
        }
        let place = self.shared.name("place");
        let by_place = || vec![SortExpr::new(Lowerer::named(place.clone()), true, false)];
        plan = windows(plan, vec![window(row_number_udwf(), Vec::new(), Vec::new(), Vec::new()).alias(place.clone())])?;
        let mut own = Vec::new();
        for Numbered { column, number, .. } in numbered {
            let name = self.shared.name("number");
            plan = windows(plan, vec![among_equals(column, by_place()).alias(name.clone())])?;
            // The row's own number, from a window that needs its rows in their order: a mere sort below a grouping would be left out.
            own.push(window(lag_udwf(), vec![Lowerer::named(name), lit(0i64)], Vec::new(), by_place()).alias(number.clone()));
        }
        windows(plan, own)
    }

    /// ROLLUP in one pass: each row goes once into every level, and the level is a group key. Level k has the last k groups
    /// rolled up. The rows come in the groups' order, totals after what they sum, as MySQL's sorting gives them.
    fn roll_up(&self, plan: LogicalPlan, groups: Vec<GroupColumn>, calls: Vec<Call>, exprs: &[Expr]) -> Result<Lowered> {
        let count = groups.len();
        let level_name = self.shared.name("level");
        let schema = Arc::new(Schema::new(vec![Field::new(&level_name, DataType::Int64, false)]));
        let batch = RecordBatch::try_new(schema.clone(), vec![Arc::new(Int64Array::from_iter_values(0..=count as i64))])?;
        let table = MemTable::try_new(schema, vec![vec![batch]])?;
        let levels = LogicalPlanBuilder::scan(self.shared.name("levels"), provider_as_source(Arc::new(table)), None)?.build()?;
        let level = DfExpr::Column(levels.schema().columns()[0].clone());
        let plan = LogicalPlanBuilder::from(plan).cross_join(levels)?.build()?;
        let kept = |i: usize, value: DfExpr, null: DfExpr| {
            let condition = binary_expr(level.clone(), Operator::Lt, lit((count - i) as i64));
            DfExpr::Case(Case::new(None, vec![(Box::new(condition), Box::new(value))], Some(Box::new(null))))
        };
        let mut rolled: Vec<GroupColumn> = groups
            .into_iter()
            .enumerate()
            .map(|(i, group)| {
                let key_null = match key_hides_value(&group.ty) {
                    true => lit(datafusion::common::ScalarValue::BinaryView(None)),
                    false => typed_null(&group.ty),
                };
                GroupColumn {
                    key: kept(i, group.key, key_null),
                    value: group.value.map(|v| kept(i, v, typed_null(&group.ty))),
                    ty: group.ty,
                    dependent: false,
                }
            })
            .collect();
        rolled.push(GroupColumn { key: level, value: None, ty: ColumnType::bigint(), dependent: false });
        let (mut lowered, keys) = self.grouped_with_keys(plan, rolled, calls)?;
        let level = lowered.columns.remove(count);
        let rolled_up = |i: usize| binary_expr(level.clone(), Operator::GtEq, lit((count - i) as i64));
        let order = (0..count).flat_map(|i| [SortExpr::new(rolled_up(i), true, true), SortExpr::new(keys[i].clone(), true, true)]).collect();
        lowered.plan = LogicalPlan::Sort(SortPlan { expr: order, input: Arc::new(lowered.plan), fetch: None });
        // Bit i: group i is rolled up.
        let all = (1u64 << exprs.len()) - 1;
        let branches = (0..=count as i64)
            .map(|k| {
                let bits = all & !((1u64 << (count as i64 - k)) - 1);
                (Box::new(binary_expr(level.clone(), Operator::Eq, lit(k))), Box::new(lit(bits)))
            })
            .collect();
        lowered.columns.push(DfExpr::Case(Case::new(None, branches, Some(Box::new(lit(0u64))))));
        let mut out = Projecting::default();
        let columns = lowered.columns.into_iter().map(|c| out.push(self, c, "rolled_up")).collect();
        Ok(Lowered { plan: out.over(lowered.plan)?, columns })
    }

    /// An aggregate's function and its arguments in the form that it wants.
    pub fn call(&self, func: AggregateFunc, distinct: bool, args: &[Expr], order_by: &[SortKey], ty: &ExprType, scope: &Scope) -> Result<Call> {
        let output = data_type(&ty.ty);
        let own = |kind: AggregateKind, args: Vec<DfExpr>| Call::new(Udaf::udaf(kind, output.clone(), &self.shared.owner), args);
        let maybe_distinct = |kind: AggregateKind, values: Vec<DfExpr>| -> Result<Call> {
            if !distinct {
                return Ok(own(kind, values));
            }
            let mut all = vec![self.group_key(&args[0], scope)?];
            all.extend(values);
            let of_distinct = Some(Udaf::udaf(kind.clone(), output.clone(), &self.shared.owner));
            Ok(Call { of_distinct, ..own(AggregateKind::Distinct(Box::new(kind)), all) })
        };
        let double = |kind: AggregateKind| maybe_distinct(kind, vec![self.value_as(&args[0], &ColumnType::double(), scope)?]);
        Ok(match func {
            AggregateFunc::CountStar => Call::new(count_udaf(), vec![lit(1i64)]),
            AggregateFunc::Count if args.len() == 1 && !distinct => Call::new(count_udaf(), vec![self.value(&args[0], scope)?]),
            AggregateFunc::Count => {
                let keys = args.iter().map(|a| self.group_key(a, scope)).collect::<Result<Vec<_>>>()?;
                let key = if let [key] = &keys[..] { key.clone() } else { apply(KernelFunction::udf(Kernel::RowKey, None), keys) };
                Call { distinct, of_distinct: distinct.then(count_udaf), ..Call::new(count_udaf(), vec![key]) }
            }
            AggregateFunc::Sum | AggregateFunc::Avg => {
                let mean = func == AggregateFunc::Avg;
                match Repr::of(&args[0].ty.ty) {
                    _ if Repr::of(&ty.ty) == Repr::Double => double(AggregateKind::Double { mean, watch: self.shared.order.clone() })?,
                    input @ (Repr::Int | Repr::UInt | Repr::Decimal(_) | Repr::WideDecimal(_)) => {
                        maybe_distinct(AggregateKind::Exact { input, mean }, vec![self.value(&args[0], scope)?])?
                    }
                    _ => {
                        let input = match Repr::of(&ty.ty) {
                            Repr::Decimal(scale) => Repr::Decimal(scale),
                            _ => return Err(user(errors::not_supported_yet("SUM of this type"))),
                        };
                        maybe_distinct(AggregateKind::Exact { input, mean }, vec![self.value_as(&args[0], &ty.ty, scope)?])?
                    }
                }
            }
            AggregateFunc::Min | AggregateFunc::Max => {
                let max = func == AggregateFunc::Max;
                let value = self.value_as(&args[0], &ty.ty, scope)?;
                match Repr::of(&ty.ty) {
                    Repr::Text => own(AggregateKind::TextExtreme { order: TextOrder::Collation(ty.ty.collation), max, watch: self.shared.order.clone() }, vec![value]),
                    Repr::Json => own(AggregateKind::TextExtreme { order: TextOrder::Json, max, watch: self.shared.order.clone() }, vec![value]),
                    Repr::Enum | Repr::Set => own(AggregateKind::MemberExtreme { ty: ty.ty.clone(), max, watch: self.shared.order.clone() }, vec![value]),
                    Repr::Double => own(AggregateKind::DoubleExtreme { max, watch: self.shared.order.clone() }, vec![value]),
                    _ => Call::new(if max { max_udaf() } else { min_udaf() }, vec![value]),
                }
            }
            AggregateFunc::BitAnd | AggregateFunc::BitOr | AggregateFunc::BitXor => {
                let operation = match func {
                    AggregateFunc::BitAnd => BitOperation::And,
                    AggregateFunc::BitOr => BitOperation::Or,
                    _ => BitOperation::Xor,
                };
                match Repr::of(&ty.ty) {
                    Repr::Bytes => {
                        let length = args[0].ty.char_length() as usize;
                        maybe_distinct(AggregateKind::ByteBits { operation, length }, vec![self.value_as(&args[0], &ty.ty, scope)?])?
                    }
                    _ => maybe_distinct(AggregateKind::Bits(operation), vec![self.value_as(&args[0], &ColumnType::ubigint(), scope)?])?,
                }
            }
            AggregateFunc::StddevPop => double(AggregateKind::Variance { sample: false, root: true })?,
            AggregateFunc::StddevSamp => double(AggregateKind::Variance { sample: true, root: true })?,
            AggregateFunc::VarPop => double(AggregateKind::Variance { sample: false, root: false })?,
            AggregateFunc::VarSamp => double(AggregateKind::Variance { sample: true, root: false })?,
            AggregateFunc::GroupConcat => {
                let separator = match args.get(1).and_then(|s| s.as_literal()) {
                    Some(Value::Text(separator)) => separator.clone(),
                    _ => ",".into(),
                };
                let binary = Repr::of(&ty.ty) == Repr::Bytes;
                let kind = if binary { TypeKind::LongBlob } else { TypeKind::LongText };
                let text = ColumnType::with_collation(kind, ty.ty.collation);
                let mut values = vec![self.value_as(&args[0], &text, scope)?];
                values.extend(self.concat_order(order_by, scope)?);
                maybe_distinct(AggregateKind::Concat { separator, max_bytes: self.shared.group_concat_max_len, binary, teller: Teller::of(&self.shared) }, values)?
            }
            AggregateFunc::AnyValue => own(AggregateKind::First(self.shared.order.clone()), vec![self.value_as(&args[0], &ty.ty, scope)?]),
            AggregateFunc::JsonArrayAgg => {
                let mut values = vec![self.as_json_array(&args[0], scope)?];
                values.extend(self.concat_order(order_by, scope)?);
                own(AggregateKind::JsonArray, values)
            }
            AggregateFunc::JsonObjectAgg => {
                let text = ColumnType::with_collation(TypeKind::LongText, highkey_types::Collation::utf8mb4());
                own(AggregateKind::JsonObject, vec![self.value_as(&args[0], &text, scope)?, self.as_json_array(&args[1], scope)?])
            }
        })
    }

    /// The order of an aggregate's rows as one key.
    fn concat_order(&self, order_by: &[SortKey], scope: &Scope) -> Result<Option<DfExpr>> {
        if order_by.is_empty() {
            return Ok(None);
        }
        let keys = order_by.iter().map(|k| self.order_key(&k.expr, scope)).collect::<Result<Vec<_>>>()?;
        let descending = order_by.iter().map(|k| k.desc).collect();
        Ok(Some(apply(KernelFunction::udf(Kernel::OrderKey(descending), None), keys)))
    }

    /// A value as the JSON array of it: JSON_ARRAY knows how every type looks in JSON.
    fn as_json_array(&self, expr: &Expr, scope: &Scope) -> Result<DfExpr> {
        let ty = ExprType::new(ColumnType::new(TypeKind::Json));
        self.value(&Expr { kind: ExprKind::Call { func: FuncId::JsonArray, args: vec![expr.clone()] }, ty }, scope)
    }
}

fn window(function: Arc<WindowUDF>, args: Vec<DfExpr>, partition_by: Vec<DfExpr>, order_by: Vec<SortExpr>) -> DfExpr {
    let window_frame = WindowFrame::new((!order_by.is_empty()).then_some(false));
    DfExpr::WindowFunction(Box::new(WindowFunction {
        fun: WindowFunctionDefinition::WindowUDF(function),
        params: WindowFunctionParams { args, partition_by, order_by, window_frame, filter: None, null_treatment: None, distinct: false },
    }))
}

fn windows(plan: LogicalPlan, functions: Vec<DfExpr>) -> Result<LogicalPlan> {
    Ok(LogicalPlan::Window(Window::try_new(functions, Arc::new(plan))?))
}
