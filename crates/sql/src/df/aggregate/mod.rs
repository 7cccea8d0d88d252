//! MySQL's aggregates as DataFusion UDAFs.
//!
//! An aggregate is a [`GroupState`]: the running state of all groups at once. Two adapters make it what DataFusion asks for, a
//! `GroupsAccumulator` (GROUP BY) and an `Accumulator` (no groups, window frames). DISTINCT is a state around another ([`distinct`]).

mod byte_bits;
mod concat;
mod distinct;
mod first;
mod minmax;
mod numeric;

use std::fmt::Debug;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, UInt64Array};
use datafusion::arrow::compute;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility};

use highkey_types::ColumnType;

use super::context::Owner;
use super::parallel::OrderWatch;
use super::repr::{Repr, scalar_at};

pub(super) use concat::Teller;
pub(super) use minmax::TextOrder;

/// What an aggregate computes. Arguments are prepared by `lower`: keys and texts arrive in the form that the state wants.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum AggregateKind {
    /// SUM and AVG of integers and decimals, exact. `(x)`
    Exact { input: Repr, mean: bool },
    /// SUM and AVG of doubles. `(x: Float64)`
    Double { mean: bool, watch: OrderWatch },
    /// The first row's value, NULL or not: ANY_VALUE, and the text that stands for a group. `(x)`
    First(OrderWatch),
    /// MIN and MAX of text under a collation and of JSON. `(x: Utf8View)`
    TextExtreme { order: TextOrder, max: bool, watch: OrderWatch },
    /// MIN and MAX of an ENUM or SET under its collation. `(x: UInt16 or UInt64)`
    MemberExtreme { ty: ColumnType, max: bool, watch: OrderWatch },
    /// MIN and MAX of doubles. `(x: Float64)`
    DoubleExtreme { max: bool, watch: OrderWatch },
    /// STD, STDDEV_SAMP, VAR_POP, VAR_SAMP. `(x: Float64)`
    Variance { sample: bool, root: bool },
    /// BIT_AND, BIT_OR, BIT_XOR. `(x: UInt64)`
    Bits(BitOperation),
    /// The same of byte strings; the result over no rows has `length` bytes. `(x: BinaryView)`
    ByteBits { operation: BitOperation, length: usize },
    /// GROUP_CONCAT. `(text: Utf8View, or BinaryView if binary, order: Binary or NULL)`
    Concat { separator: Arc<str>, max_bytes: u64, binary: bool, teller: Teller },
    /// JSON_ARRAYAGG. `(array: Utf8View, order: BinaryView)`; the array has the row's value as its only element.
    JsonArray,
    /// JSON_OBJECTAGG. `(key: Utf8View, array: Utf8View)`
    JsonObject,
    /// DISTINCT: the first argument is the key by which rows are the same; the others are the aggregate's own.
    Distinct(Box<AggregateKind>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum BitOperation {
    And,
    Or,
    Xor,
}

impl AggregateKind {
    fn name(&self) -> &'static str {
        match self {
            AggregateKind::Exact { mean: false, .. } | AggregateKind::Double { mean: false, .. } => "mysql_sum",
            AggregateKind::Exact { .. } | AggregateKind::Double { .. } => "mysql_avg",
            AggregateKind::First(_) => "any_value",
            AggregateKind::TextExtreme { max, .. } | AggregateKind::MemberExtreme { max, .. } | AggregateKind::DoubleExtreme { max, .. } => {
                if *max { "mysql_max" } else { "mysql_min" }
            }
            AggregateKind::Variance { root: true, .. } => "mysql_std",
            AggregateKind::Variance { .. } => "mysql_variance",
            AggregateKind::Bits(BitOperation::And) | AggregateKind::ByteBits { operation: BitOperation::And, .. } => "mysql_bit_and",
            AggregateKind::Bits(BitOperation::Or) | AggregateKind::ByteBits { operation: BitOperation::Or, .. } => "mysql_bit_or",
            AggregateKind::Bits(BitOperation::Xor) | AggregateKind::ByteBits { operation: BitOperation::Xor, .. } => "mysql_bit_xor",
            AggregateKind::Concat { .. } => "group_concat",
            AggregateKind::JsonArray => "json_arrayagg",
            AggregateKind::JsonObject => "json_objectagg",
            AggregateKind::Distinct(_) => "distinct",
        }
    }

    fn state(&self, inputs: &[DataType], output: &DataType) -> Result<Box<dyn GroupState>> {
        Ok(match self {
            AggregateKind::Exact { input, mean } => Box::new(numeric::ExactSum::new(*input, output, *mean)),
            AggregateKind::Double { mean, watch } => Box::new(numeric::DoubleSum::new(*mean, watch.clone())),
            AggregateKind::First(watch) => Box::new(first::First::new(inputs[0].clone(), watch.clone())),
            AggregateKind::TextExtreme { order, max, watch } => Box::new(minmax::TextExtreme::new(*order, *max, watch.clone())),
            AggregateKind::MemberExtreme { ty, max, watch } => Box::new(minmax::MemberExtreme::new(ty.clone(), *max, watch.clone())),
            AggregateKind::DoubleExtreme { max, watch } => Box::new(minmax::DoubleExtreme::new(*max, watch.clone())),
            AggregateKind::Variance { sample, root } => Box::new(numeric::Variance::new(*sample, *root)),
            AggregateKind::Bits(operation) => Box::new(numeric::Bits::new(*operation)),
            AggregateKind::ByteBits { operation, length } => Box::new(byte_bits::ByteBits::new(*operation, *length)),
            AggregateKind::Concat { separator, max_bytes, binary, teller } => {
                Box::new(concat::Concat::text(separator.clone(), *max_bytes, *binary, teller.clone()))
            }
            AggregateKind::JsonArray => Box::new(concat::Concat::json_array()),
            AggregateKind::JsonObject => Box::new(concat::Concat::json_object()),
            AggregateKind::Distinct(inner) => {
                // These run in order (`parallel`), so on one thread, where only what spills is a partial state.
                let in_order = matches!(**inner, AggregateKind::Concat { .. } | AggregateKind::Variance { .. });
                Box::new(distinct::Distinct::new(inner.state(&inputs[1..], output)?, inputs, in_order)?)
            }
        })
    }

    /// True if a row that leaves a window frame can be subtracted.
    fn can_retract(&self) -> bool {
        matches!(self, AggregateKind::Exact { .. })
    }
}

/// The running state of the groups `0..len` of one aggregate.
pub(super) trait GroupState: Send + Sync + Debug {
    /// Makes room for groups up to `len`; new groups are empty.
    fn resize(&mut self, len: usize);
    /// Adds row `i` of `args` to group `groups[i]`.
    fn update(&mut self, args: &[ArrayRef], groups: &[usize]) -> Result<()>;
    /// Adds partial states, made by `partial`, to groups. Where those are results: as if they were rows.
    fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()> {
        self.update(states, groups)
    }
    /// Takes rows out again; only for kinds that `can_retract`.
    fn retract(&mut self, _args: &[ArrayRef], _groups: &[usize]) -> Result<()> {
        unreachable!("only exact sums retract")
    }
    /// The results of the first `len` groups.
    fn evaluate(&mut self, len: usize) -> Result<ArrayRef>;
    /// The partial states of the first `len` groups: their results, if nothing else is said.
    fn partial(&mut self, len: usize) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.evaluate(len)?])
    }
    /// Forgets the first `len` groups; the others move down.
    fn forget(&mut self, len: usize);
    fn partial_types(&self) -> Vec<DataType>;
    fn bytes(&self) -> usize;
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Aggregate {
    kind: AggregateKind,
    output: DataType,
    owner: Arc<Owner>,
    signature: Signature,
}

impl Aggregate {
    pub fn udaf(kind: AggregateKind, output: DataType, owner: &Arc<Owner>) -> Arc<AggregateUDF> {
        let signature = Signature::variadic_any(Volatility::Immutable);
        Arc::new(AggregateUDF::new_from_impl(Aggregate { kind, output, owner: owner.clone(), signature }))
    }

    /// The function's name, and whether it is called with DISTINCT.
    pub fn shown(&self) -> (&'static str, bool) {
        match &self.kind {
            AggregateKind::Distinct(kind) => (kind.name(), true),
            kind => (kind.name(), false),
        }
    }

    /// The partial states of the same rows are the same as those of the other, of the same arguments.
    pub fn has_states_of(&self, other: &Aggregate) -> bool {
        match (&self.kind, &other.kind) {
            (AggregateKind::Exact { input: one, .. }, AggregateKind::Exact { input: other, .. }) => one == other,
            (AggregateKind::Double { watch: one, .. }, AggregateKind::Double { watch: other, .. }) => one == other,
            _ => false,
        }
    }

    fn fresh(&self, args: &AccumulatorArgs) -> Result<Box<dyn GroupState>> {
        let inputs: Vec<DataType> = args.expr_fields.iter().map(|f| f.data_type().clone()).collect();
        self.kind.state(&inputs, &self.output)
    }
}

impl AggregateUDFImpl for Aggregate {
    fn name(&self) -> &str {
        self.kind.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.output.clone())
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(OneGroup::new(self.fresh(&args)?, self.owner.clone())))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let inputs: Vec<DataType> = args.input_fields.iter().map(|f| f.data_type().clone()).collect();
        let types = self.kind.state(&inputs, &self.output)?.partial_types();
        Ok(types.into_iter().enumerate().map(|(i, ty)| Arc::new(Field::new(format!("{}[{i}]", args.name), ty, true))).collect())
    }

    /// Of a window frame without rows.
    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        if !matches!(self.kind, AggregateKind::Bits(_) | AggregateKind::ByteBits { .. }) {
            return ScalarValue::try_from(data_type);
        }
        let mut none = self.kind.state(&[], &self.output)?;
        none.resize(1);
        ScalarValue::try_from_array(&none.evaluate(1)?, 0)
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(ManyGroups { state: self.fresh(&args)?, template: (self.kind.clone(), input_types(&args), self.output.clone()), len: 0 }))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if self.kind.can_retract() {
            return self.accumulator(args);
        }
        let (kind, inputs, output) = (self.kind.clone(), input_types(&args), self.output.clone());
        Ok(Box::new(Replay { kind, inputs, output, owner: self.owner.clone(), rows: Vec::new() }))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

fn input_types(args: &AccumulatorArgs) -> Vec<DataType> {
    args.expr_fields.iter().map(|f| f.data_type().clone()).collect()
}

/// One aggregate of GROUP BY.
struct ManyGroups {
    state: Box<dyn GroupState>,
    template: (AggregateKind, Vec<DataType>, DataType),
    len: usize,
}

impl ManyGroups {
    fn resize(&mut self, len: usize) {
        if len > self.len {
            self.len = len;
            self.state.resize(len);
        }
    }

    fn emitted(&mut self, emit_to: EmitTo) -> usize {
        match emit_to {
            EmitTo::All => self.len,
            EmitTo::First(n) => n,
        }
    }

    fn forget(&mut self, len: usize) -> Result<()> {
        self.len -= len;
        if self.len > 0 {
            self.state.forget(len);
        } else {
            // Whoever spills counts on all of the memory.
            let (kind, inputs, output) = &self.template;
            self.state = kind.state(inputs, output)?;
        }
        Ok(())
    }
}

impl GroupsAccumulator for ManyGroups {
    fn update_batch(&mut self, values: &[ArrayRef], group_indices: &[usize], filter: Option<&BooleanArray>, total_num_groups: usize) -> Result<()> {
        self.resize(total_num_groups);
        match filter {
            None => self.state.update(values, group_indices),
            Some(filter) => {
                let rows: Vec<usize> = (0..filter.len()).filter(|&i| filter.is_valid(i) && filter.value(i)).collect();
                let indices = UInt64Array::from_iter_values(rows.iter().map(|&i| i as u64));
                let values = values.iter().map(|v| Ok(compute::take(v, &indices, None)?)).collect::<Result<Vec<_>>>()?;
                let groups: Vec<usize> = rows.iter().map(|&i| group_indices[i]).collect();
                self.state.update(&values, &groups)
            }
        }
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let len = self.emitted(emit_to);
        let result = self.state.evaluate(len)?;
        self.forget(len)?;
        Ok(result)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let len = self.emitted(emit_to);
        let result = self.state.partial(len)?;
        self.forget(len)?;
        Ok(result)
    }

    fn merge_batch(&mut self, values: &[ArrayRef], group_indices: &[usize], total_num_groups: usize) -> Result<()> {
        self.resize(total_num_groups);
        self.state.merge(values, group_indices)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let (kind, inputs, output) = &self.template;
        let rows = values[0].len();
        let mut each = ManyGroups { state: kind.state(inputs, output)?, template: self.template.clone(), len: 0 };
        each.update_batch(values, &(0..rows).collect::<Vec<_>>(), filter, rows)?;
        each.state.partial(rows)
    }

    fn size(&self) -> usize {
        self.state.bytes()
    }
}

/// One aggregate over everything, or over a window frame.
#[derive(Debug)]
struct OneGroup {
    state: Box<dyn GroupState>,
    /// Knows whether the query was killed. A window evaluates an aggregate for each row of a partition before it gives any: its input asks too seldom.
    owner: Arc<Owner>,
    zeros: Vec<usize>,
    /// The most bytes that the state has had: DataFusion counts what it grows by and never what it lets go.
    most: usize,
}

impl OneGroup {
    fn new(mut state: Box<dyn GroupState>, owner: Arc<Owner>) -> OneGroup {
        state.resize(1);
        OneGroup { state, owner, zeros: Vec::new(), most: 0 }
    }

    fn groups(&mut self, rows: usize) -> &[usize] {
        if self.zeros.len() < rows {
            self.zeros.resize(rows, 0);
        }
        &self.zeros[..rows]
    }
}

impl Accumulator for OneGroup {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.groups(values[0].len());
        self.state.update(values, &self.zeros[..values[0].len()])?;
        self.most = self.most.max(self.state.bytes());
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.owner.shared()?.check_killed()?;
        Ok(scalar_at(self.state.evaluate(1)?.as_ref(), 0))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.most
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(self.state.partial(1)?.iter().map(|a| scalar_at(a.as_ref(), 0)).collect())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.groups(states[0].len());
        self.state.merge(states, &self.zeros[..states[0].len()])?;
        self.most = self.most.max(self.state.bytes());
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.groups(values[0].len());
        self.state.retract(values, &self.zeros[..values[0].len()])
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }
}

/// A window frame that slides over an aggregate that cannot subtract: the frame's rows are kept and the aggregate is computed anew.
/// Quadratic in the frame, and exact for every aggregate.
#[derive(Debug)]
struct Replay {
    kind: AggregateKind,
    inputs: Vec<DataType>,
    output: DataType,
    owner: Arc<Owner>,
    /// The frame's rows, oldest first, as slices of the batches they came in.
    rows: Vec<Vec<ArrayRef>>,
}

impl Replay {
    /// The aggregate of the frame's rows.
    fn computed(&self) -> Result<OneGroup> {
        let mut group = OneGroup::new(self.kind.state(&self.inputs, &self.output)?, self.owner.clone());
        for chunk in &self.rows {
            group.update_batch(chunk)?;
        }
        Ok(group)
    }
}

impl Accumulator for Replay {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        if values[0].len() > 0 {
            self.rows.push(values.to_vec());
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.computed()?.evaluate()
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.rows.iter().flatten().map(|a| a.get_array_memory_size()).sum::<usize>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Accumulator::state(&mut self.computed()?)
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        unreachable!("window frames are not partial aggregates")
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let mut leaving = values[0].len();
        while leaving > 0 {
            let chunk = &mut self.rows[0];
            let len = chunk[0].len();
            if len <= leaving {
                leaving -= len;
                self.rows.remove(0);
            } else {
                chunk.iter_mut().for_each(|a| *a = a.slice(leaving, len - leaving));
                leaving = 0;
            }
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }
}
