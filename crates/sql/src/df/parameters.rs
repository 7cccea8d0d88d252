//! Constants that a kept plan is made without, so that it serves for other values of them.
//!
//! They are operands of comparisons (`plan::for_each_operand`), and functions without arguments in DataFusion's plan: [`Parameter`]. While the plan is made these have
//! no value, so that nothing is folded or left out for it. An execution has them in the forms in which they are compared, and scans make ranges of them.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use parking_lot::Mutex;

use super::context::Owner;
use super::kept::PlanSlot;
use super::lower::KeyForm;
use super::wrapped::any_arguments;
use crate::plan::{Expr, ExprKind, Rel, for_each_operand, operand_number, operand_parameter};

/// A parameter of the plan, in a form in which it is compared.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Key {
    /// As [`ExprKind::Param`] has it.
    pub parameter: usize,
    pub form: KeyForm,
    pub data_type: DataType,
}

/// What an execution knows of the constants that its plan is made without.
#[derive(Default)]
pub(super) struct Parameters {
    /// Whose plan it is; none if there are no such constants.
    slot: Option<Arc<PlanSlot>>,
    /// All operands of the query, with the values that they have now.
    operands: Vec<Expr>,
    keys: Mutex<Vec<(Key, ScalarValue)>>,
    /// The plan has been made: its parameters have values.
    known: AtomicBool,
}

impl Parameters {
    /// Those of a query whose plan `slot` has, or will have.
    pub fn of(slot: Option<&Arc<PlanSlot>>, rel: &Rel) -> Parameters {
        let Some(slot) = slot.filter(|slot| slot.is_open()) else { return Parameters::default() };
        let mut operands = Vec::new();
        for_each_operand(&mut rel.clone(), &mut |operand| operands.push(operand.clone()));
        Parameters { slot: Some(slot.clone()), operands, ..Parameters::default() }
    }

    /// There are some, and as far as is known a plan can be made without their values.
    pub fn are_open(&self) -> bool {
        self.slot.as_ref().is_some_and(|slot| slot.is_open())
    }

    /// The plan depends on their values: it is made for these.
    pub fn close(&self) {
        if let Some(slot) = &self.slot {
            slot.close();
        }
    }

    /// The query with parameters in place of these constants, of which nothing is known from now on.
    pub fn opened(&self, rel: &Rel) -> Rel {
        self.known.store(false, Ordering::Relaxed);
        self.keys.lock().clear();
        let mut rel = rel.clone();
        let open = self.slot.as_ref().map_or(&[][..], |slot| slot.open());
        let mut number = 0;
        for_each_operand(&mut rel, &mut |operand| {
            if open.contains(&number) {
                operand.kind = operand_parameter(number);
            }
            number += 1;
        });
        rel
    }

    /// The constant that a parameter stands for now.
    pub fn written(&self, parameter: usize) -> Option<&Expr> {
        self.operands.get(operand_number(parameter)?)
    }

    /// `expr` with the constants that its parameters stand for now.
    pub fn put_into(&self, expr: &Expr) -> Expr {
        let mut expr = expr.clone();
        expr.walk_mut(&mut |e| {
            if let ExprKind::Param(parameter) = e.kind
                && let Some(constant) = self.written(parameter)
            {
                *e = constant.clone();
            }
        });
        expr
    }

    /// The forms in which the plan compares them; none if it was made for these values.
    pub fn keys(&self) -> Vec<Key> {
        if !self.are_open() {
            return Vec::new();
        }
        self.keys.lock().iter().map(|(key, _)| key.clone()).collect()
    }

    /// What a parameter is now in a form in which it is compared.
    pub fn add(&self, key: Key, value: ScalarValue) {
        let mut keys = self.keys.lock();
        if !keys.iter().any(|(known, _)| *known == key) {
            keys.push((key, value));
        }
    }

    /// The plan has been made, and is executed now.
    pub fn know(&self) {
        self.known.store(true, Ordering::Release);
    }

    fn value(&self, key: &Key) -> Result<ScalarValue> {
        let keys = self.keys.lock();
        match keys.iter().find(|(known, _)| known == key) {
            Some((_, value)) => Ok(value.clone()),
            None => exec_err!("a parameter without a value"),
        }
    }
}

/// A condition with constants in place of parameters. While a plan is made, that is for estimates.
pub(super) fn with_constants(condition: Arc<dyn PhysicalExpr>) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
    condition.transform_up(|part| {
        let function = part.downcast_ref::<ScalarFunctionExpr>();
        let parameter = function.and_then(|function| function.fun().inner().downcast_ref::<Parameter>());
        Ok(match parameter.map(Parameter::constant).transpose()? {
            Some(value) => Transformed::yes(Arc::new(Literal::new(value)) as Arc<dyn PhysicalExpr>),
            None => Transformed::no(part),
        })
    })
}

/// Some part of it is a parameter of the plan. (Those of a statement that was bound with its parameters left open are constants here.)
pub(super) fn has_parameter(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |e| found |= matches!(e.kind, ExprKind::Param(parameter) if operand_number(parameter).is_some()));
    found
}

/// A parameter as a function without arguments, which fails while its query is planned: it stays where it is then, and DataFusion takes nothing of it for known.
#[derive(Debug)]
pub(super) struct Parameter {
    /// Tells it from the others of its plan.
    name: String,
    key: Key,
    owner: Arc<Owner>,
    signature: Signature,
}

impl Parameter {
    pub fn udf(key: Key, owner: Arc<Owner>) -> Arc<ScalarUDF> {
        let name = format!("parameter#{}#{:?}", key.parameter, key.form);
        Arc::new(ScalarUDF::new_from_impl(Parameter { name, key, owner, signature: any_arguments(0, Volatility::Immutable) }))
    }

    /// Its value in this execution, or in the one that the plan is made for.
    fn constant(&self) -> Result<ScalarValue> {
        self.owner.shared()?.parameters.value(&self.key)
    }
}

impl PartialEq for Parameter {
    fn eq(&self, other: &Parameter) -> bool {
        self.name == other.name
    }
}

impl Eq for Parameter {}

impl Hash for Parameter {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Parameter {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.key.data_type.clone())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(&self.name, self.key.data_type.clone(), false)))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if !self.owner.shared()?.parameters.known.load(Ordering::Acquire) {
            return exec_err!("a parameter has no value yet");
        }
        Ok(ColumnarValue::Scalar(self.constant()?))
    }
}
