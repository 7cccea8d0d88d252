//! Expressions: values in the Arrow form of their type, conditions as Boolean, keys that compare as MySQL compares.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::{Case, Cast, InList, ScalarFunction};
use datafusion::logical_expr::{Expr as DfExpr, Operator, ScalarUDF, binary_expr, lit};
use highkey_types::{Collation, ColumnType, TypeKind, Value};

use super::guard::holds_subquery;
use super::{Lowerer, Scope};
use crate::df::kernel::{Arithmetic, DatePart, Kernel, KernelFunction};
use crate::df::parameters::{Key, Parameter};
use crate::df::repr::{DECIMAL128_DIGITS, Repr, scalar};
use crate::df::text::LikePattern;
use crate::df::wrapped::Wrapped;
use crate::functions::FuncId;
use crate::plan::{CompareBy, CompareOp, Expr, ExprKind, ExprType, operand_number};

/// Expressions of more levels, and AND and OR of more parts, are the row evaluator's as a whole. DataFusion needs time with the square of their size or
/// worse to plan them, and stack that nobody guards to drop them.
const NATIVE_LEVELS: usize = 64;
const NATIVE_PARTS: usize = 256;

/// The Arrow form that two operands are brought to so that Arrow's comparison is MySQL's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::df) enum KeyForm {
    /// Values of this representation as they are.
    Plain(Repr),
    Double,
    /// Sort keys of text under the collation.
    Text(&'static Collation),
    /// Keys of JSON values.
    Json,
}

pub(in crate::df) fn apply(udf: Arc<ScalarUDF>, args: Vec<DfExpr>) -> DfExpr {
    DfExpr::ScalarFunction(ScalarFunction::new_udf(udf, args))
}

fn kernel(kernel: Kernel, args: Vec<DfExpr>) -> Result<DfExpr> {
    let constants: Option<Vec<ScalarValue>> = args
        .iter()
        .map(|a| match a {
            DfExpr::Literal(value, _) => Some(value.clone()),
            _ => None,
        })
        .collect();
    if let Some(constants) = constants
        && let Some(value) = KernelFunction::constant(&kernel, &constants)?
    {
        return Ok(literal(value));
    }
    Ok(apply(KernelFunction::udf(kernel, None), args))
}

pub(in crate::df) fn literal(value: ScalarValue) -> DfExpr {
    DfExpr::Literal(value, None)
}

fn truth_as_int(condition: DfExpr) -> DfExpr {
    match condition {
        DfExpr::Literal(ScalarValue::Boolean(truth), _) => literal(ScalarValue::Int64(truth.map(i64::from))),
        other => DfExpr::Cast(Cast::new(Box::new(other), DataType::Int64)),
    }
}

pub(super) fn typed_null(ty: &ColumnType) -> DfExpr {
    literal(scalar(&Value::Null, ty))
}

impl Lowerer {
    /// `expr` in the form of its own type.
    pub fn value(&self, expr: &Expr, scope: &Scope) -> Result<DfExpr> {
        match &expr.kind {
            _ if expr.is_taller_than(NATIVE_LEVELS) => self.wrapped(expr, scope, false),
            ExprKind::Column(index) => Ok(scope.exprs[*index].clone()),
            ExprKind::Outer { depth, index } => Ok(literal(scalar(&self.outer_value(*depth, *index)?, &expr.ty.ty))),
            ExprKind::Literal(value) => {
                let constant = scalar(value, &expr.ty.ty);
                self.shared.note_constant(&constant, expr);
                Ok(literal(constant))
            }
            ExprKind::Param(parameter) if operand_number(*parameter).is_some() => self.value(&self.settled(*parameter)?, scope),
            kind if kind.is_predicate() && Repr::of(&expr.ty.ty) == Repr::Int => Ok(truth_as_int(self.condition(expr, scope)?)),
            // DataFusion tries what a WHEN comes to while it plans, which must do nothing.
            ExprKind::Case { .. } if !expr.is_repeatable() && !holds_subquery(expr) => self.wrapped(expr, scope, false),
            ExprKind::Case { branches, otherwise } => {
                let when_then = branches
                    .iter()
                    .map(|(when, then)| Ok((Box::new(self.condition(when, scope)?), Box::new(self.value_as(then, &expr.ty.ty, scope)?))))
                    .collect::<Result<Vec<_>>>()?;
                let otherwise = match otherwise {
                    Some(otherwise) => self.value_as(otherwise, &expr.ty.ty, scope)?,
                    None => typed_null(&expr.ty.ty),
                };
                Ok(DfExpr::Case(Case::new(None, when_then, Some(Box::new(otherwise)))))
            }
            ExprKind::Cast(inner) => match self.native_cast(inner, &expr.ty.ty, scope)? {
                Some(cast) => Ok(cast),
                None => self.wrapped(expr, scope, false),
            },
            ExprKind::Call { func, args } => match self.native_call(*func, args, expr, scope)? {
                Some(call) => Ok(call),
                None => self.wrapped(expr, scope, false),
            },
            ExprKind::Subquery(sub) => self.subquery(sub, &expr.ty, scope),
            _ => self.wrapped(expr, scope, false),
        }
    }

    /// `expr` in the form of `ty`, which its own type converts to without loss.
    pub fn value_as(&self, expr: &Expr, ty: &ColumnType, scope: &Scope) -> Result<DfExpr> {
        if expr.ty.is_null_type() {
            if let Some(Value::Null) = expr.as_literal() {
                return Ok(typed_null(ty));
            }
        } else if Repr::of(&expr.ty.ty) == Repr::of(ty) && members(&expr.ty.ty) == members(ty) {
            return self.value(expr, scope);
        }
        let cast = Expr { kind: ExprKind::Cast(Box::new(expr.clone())), ty: ExprType { ty: ty.clone(), ..expr.ty.clone() } };
        self.value(&cast, scope)
    }

    /// `expr` as a condition: true, false or NULL.
    pub fn condition(&self, expr: &Expr, scope: &Scope) -> Result<DfExpr> {
        match &expr.kind {
            _ if expr.is_taller_than(NATIVE_LEVELS) => self.wrapped(expr, scope, true),
            ExprKind::And(parts) | ExprKind::Or(parts) if parts.len() > NATIVE_PARTS || self.must_stop_early(parts) => self.wrapped(expr, scope, true),
            ExprKind::And(parts) => self.connect(parts, Operator::And, scope),
            ExprKind::Or(parts) => self.connect(parts, Operator::Or, scope),
            ExprKind::Not(inner) => Ok(DfExpr::Not(Box::new(self.condition(inner, scope)?))),
            ExprKind::IsNull { expr: inner, negated } => {
                let value = Box::new(self.value(inner, scope)?);
                Ok(if *negated { DfExpr::IsNotNull(value) } else { DfExpr::IsNull(value) })
            }
            ExprKind::IsTruth { expr: inner, value, negated } => {
                let truth = Box::new(self.condition(inner, scope)?);
                Ok(match (value, negated) {
                    (true, false) => DfExpr::IsTrue(truth),
                    (true, true) => DfExpr::IsNotTrue(truth),
                    (false, false) => DfExpr::IsFalse(truth),
                    (false, true) => DfExpr::IsNotFalse(truth),
                })
            }
            ExprKind::Compare { op, by, left, right } => match self.native_compare(*op, *by, left, right, scope)? {
                Some(comparison) => Ok(comparison),
                None => self.wrapped(expr, scope, true),
            },
            ExprKind::In { list, by, .. } if self.must_stop_at_member(list, *by) => self.wrapped(expr, scope, true),
            ExprKind::In { expr: left, list, by, negated, .. } => match self.native_in(left, list, *by, *negated, scope)? {
                Some(membership) => Ok(membership),
                None => self.wrapped(expr, scope, true),
            },
            ExprKind::Like { expr: text, pattern, escape, collation, negated } => {
                let (Repr::Text, Some(Value::Text(pattern))) = (Repr::of(&text.ty.ty), pattern.as_literal()) else {
                    return self.wrapped(expr, scope, true);
                };
                let pattern = Arc::new(LikePattern::new(pattern, *escape, collation));
                let like = kernel(Kernel::Like(pattern), vec![self.value(text, scope)?])?;
                Ok(if *negated { DfExpr::Not(Box::new(like)) } else { like })
            }
            ExprKind::Literal(value) => Ok(match value {
                Value::Null => literal(ScalarValue::Boolean(None)),
                Value::Int(v) => lit(*v != 0),
                Value::UInt(v) => lit(*v != 0),
                _ => return self.number_condition(expr, scope),
            }),
            _ => self.number_condition(expr, scope),
        }
    }

    /// Conditions that all have to be true. Those behind very many are one; equalities, which joins find rows by, are not among them if that can be.
    pub fn conditions<'e>(&self, conjuncts: impl IntoIterator<Item = &'e Expr>, scope: &Scope) -> Result<Vec<DfExpr>> {
        let mut conjuncts: Vec<&Expr> = conjuncts.into_iter().collect();
        let mut others = Vec::new();
        if conjuncts.len() > NATIVE_PARTS {
            conjuncts.sort_by_key(|c| !matches!(c.kind, ExprKind::Compare { op: CompareOp::Eq, .. }));
            others = conjuncts.split_off(NATIVE_PARTS);
        }
        let mut conditions = conjuncts.into_iter().map(|c| self.condition(c, scope)).collect::<Result<Vec<_>>>()?;
        if let Some(others) = Expr::and(others.into_iter().cloned()) {
            conditions.push(self.wrapped(&others, scope, true)?);
        }
        Ok(conditions)
    }

    /// The truth of a value: numbers other than zero.
    fn number_condition(&self, expr: &Expr, scope: &Scope) -> Result<DfExpr> {
        let zero = match Repr::of(&expr.ty.ty) {
            Repr::Int => ScalarValue::Int64(Some(0)),
            Repr::UInt | Repr::Set => ScalarValue::UInt64(Some(0)),
            Repr::Enum => ScalarValue::UInt16(Some(0)),
            Repr::Decimal(scale) => ScalarValue::Decimal128(Some(0), DECIMAL128_DIGITS, scale as i8),
            Repr::Double => {
                let value = kernel(Kernel::DoubleKey, vec![self.value(expr, scope)?])?;
                return Ok(binary_expr(value, Operator::NotEq, lit(0.0)));
            }
            _ => {
                let not = |e: Expr| {
                    let nullable = e.ty.nullable;
                    Expr { kind: ExprKind::Not(Box::new(e)), ty: ExprType::boolean(nullable) }
                };
                return self.wrapped(&not(not(expr.clone())), scope, true);
            }
        };
        Ok(binary_expr(self.value(expr, scope)?, Operator::NotEq, literal(zero)))
    }

    fn connect(&self, parts: &[Expr], op: Operator, scope: &Scope) -> Result<DfExpr> {
        let mut conditions = parts.iter().map(|p| self.condition(p, scope));
        let first = conditions.next().unwrap_or_else(|| Ok(lit(op == Operator::And)))?;
        conditions.try_fold(first, |all, next| Ok(binary_expr(all, op, next?)))
    }

    pub fn native_compare(&self, op: CompareOp, by: CompareBy, left: &Expr, right: &Expr, scope: &Scope) -> Result<Option<DfExpr>> {
        if left.has_hidden_digits() || right.has_hidden_digits() {
            return Ok(None);
        }
        let Some(form) = key_form(by, &[self.as_written(left), self.as_written(right)]) else { return Ok(None) };
        let operator = operator(op);
        Ok(Some(binary_expr(self.key(left, form, scope)?, operator, self.key(right, form, scope)?)))
    }

    fn native_in(&self, left: &Expr, list: &[Expr], by: CompareBy, negated: bool, scope: &Scope) -> Result<Option<DfExpr>> {
        let operands: Vec<&Expr> = std::iter::once(left).chain(list).collect();
        if operands.iter().any(|operand| operand.has_hidden_digits()) {
            return Ok(None);
        }
        let Some(form) = key_form(by, &operands) else { return Ok(None) };
        let needle = self.key(left, form, scope)?;
        let list = list.iter().map(|e| self.key(e, form, scope)).collect::<Result<Vec<_>>>()?;
        if list.iter().all(|e| matches!(e, DfExpr::Literal(..))) {
            return Ok(Some(DfExpr::InList(InList::new(Box::new(needle), list, negated))));
        }
        let any = list.into_iter().map(|e| binary_expr(needle.clone(), Operator::Eq, e)).reduce(|a, b| binary_expr(a, Operator::Or, b));
        Ok(any.map(|any| if negated { DfExpr::Not(Box::new(any)) } else { any }))
    }

    /// The constant that a parameter stands for now, or else `expr` itself.
    fn as_written<'e>(&'e self, expr: &'e Expr) -> &'e Expr {
        match expr.kind {
            ExprKind::Param(parameter) => self.shared.parameters.written(parameter).unwrap_or(expr),
            _ => expr,
        }
    }

    /// The same of a parameter where it is not compared: the plan depends on its value.
    fn settled(&self, parameter: usize) -> Result<Expr> {
        self.shared.parameters.close();
        match self.shared.parameters.written(parameter) {
            Some(constant) => Ok(constant.clone()),
            None => datafusion::common::plan_err!("no operand is parameter {parameter}"),
        }
    }

    /// A parameter in a form of comparison; `None` if it is not known before it is needed.
    pub fn parameter_value(&self, parameter: usize, form: KeyForm) -> Result<Option<ScalarValue>> {
        let Some(constant) = self.shared.parameters.written(parameter) else { return Ok(None) };
        Ok(match self.key(constant, form, &Scope::empty())? {
            DfExpr::Literal(value, _) if !value.is_null() => Some(value),
            _ => None,
        })
    }

    /// `expr` in a form of comparison.
    pub fn key(&self, expr: &Expr, form: KeyForm, scope: &Scope) -> Result<DfExpr> {
        if let ExprKind::Param(parameter) = expr.kind
            && operand_number(parameter).is_some()
        {
            let Some(value) = self.parameter_value(parameter, form)? else { return self.key(&self.settled(parameter)?, form, scope) };
            let key = Key { parameter, form, data_type: value.data_type() };
            self.shared.parameters.add(key.clone(), value);
            return Ok(apply(Parameter::udf(key, self.shared.owner.clone()), Vec::new()));
        }
        let key = self.key_of(expr, form, scope)?;
        if let (DfExpr::Literal(constant, _), Some(_)) = (&key, expr.as_literal()) {
            self.shared.note_constant(constant, expr);
        }
        Ok(key)
    }

    fn key_of(&self, expr: &Expr, form: KeyForm, scope: &Scope) -> Result<DfExpr> {
        let nothing = expr.ty.is_null_type() && matches!(expr.as_literal(), Some(Value::Null));
        match form {
            KeyForm::Plain(repr) => {
                let target = plain_type(repr);
                if nothing {
                    return Ok(typed_null(&target));
                }
                let own = Repr::of(&expr.ty.ty);
                if own == repr {
                    return self.value(expr, scope);
                }
                match (own, repr) {
                    // As the row evaluator reads it: a string that is no date is the zero date, so that joins find rows by it.
                    (Repr::Text | Repr::Bytes | Repr::Enum | Repr::Set, Repr::DateTime) => {
                        let ty = ExprType::column(target, expr.ty.nullable);
                        self.value(&Expr::call(FuncId::ComparedMoment, vec![expr.clone()], ty), scope)
                    }
                    (Repr::Int | Repr::UInt | Repr::Decimal(_) | Repr::WideDecimal(_), Repr::Decimal(_) | Repr::WideDecimal(_)) => {
                        kernel(Kernel::ToDecimal(own, repr), vec![self.value(expr, scope)?])
                    }
                    _ => self.value_as(expr, &target, scope),
                }
            }
            KeyForm::Double => {
                if nothing {
                    return Ok(literal(ScalarValue::Float64(None)));
                }
                let value = self.value_as(expr, &ColumnType::double(), scope)?;
                kernel(Kernel::DoubleKey, vec![value])
            }
            KeyForm::Text(collation) => {
                if nothing {
                    return Ok(literal(ScalarValue::BinaryView(None)));
                }
                let value = match Repr::of(&expr.ty.ty) {
                    Repr::Text | Repr::Bytes | Repr::Json => self.value(expr, scope)?,
                    _ => self.value_as(expr, &ColumnType::with_collation(TypeKind::LongText, text_collation(collation)), scope)?,
                };
                kernel(Kernel::SortKey(collation), vec![value])
            }
            KeyForm::Json => {
                if nothing {
                    return Ok(literal(ScalarValue::BinaryView(None)));
                }
                kernel(Kernel::JsonKey, vec![self.value(expr, scope)?])
            }
        }
    }

    /// `expr` as a key of GROUP BY, DISTINCT and PARTITION BY: equal exactly when MySQL takes the values for the same.
    pub fn group_key(&self, expr: &Expr, scope: &Scope) -> Result<DfExpr> {
        let value = self.value(expr, scope)?;
        Ok(match own_key(&expr.ty.ty) {
            Some(key) => kernel(key, vec![value])?,
            None => value,
        })
    }

    /// `expr` as a key of ORDER BY.
    pub fn order_key(&self, expr: &Expr, scope: &Scope) -> Result<DfExpr> {
        self.group_key(expr, scope)
    }

    /// Casts that are a change of Arrow's form at most.
    fn native_cast(&self, inner: &Expr, ty: &ColumnType, scope: &Scope) -> Result<Option<DfExpr>> {
        if let Some(Value::Null) = inner.as_literal() {
            return Ok(Some(typed_null(ty)));
        }
        if inner.has_hidden_digits() {
            return Ok(None);
        }
        let (from, to) = (Repr::of(&inner.ty.ty), Repr::of(ty));
        let whole_digits = |ty: &ExprType| ty.decimal_digits().0;
        let target = ExprType::new(ty.clone());
        let number = matches!(from, Repr::Int | Repr::UInt | Repr::Decimal(_) | Repr::WideDecimal(_));
        Ok(match to {
            _ if inner.ty.is_null_type() => None,
            Repr::Int | Repr::UInt if from == to && !matches!(ty.kind, TypeKind::Year | TypeKind::Bit(_)) && !matches!(inner.ty.ty.kind, TypeKind::Bit(_)) => {
                Some(self.value(inner, scope)?)
            }
            Repr::Decimal(_) | Repr::WideDecimal(_) if number && whole_digits(&target) >= whole_digits(&inner.ty) => {
                let value = self.value(inner, scope)?;
                Some(if from == to { value } else { kernel(Kernel::ToDecimal(from, to), vec![value])? })
            }
            Repr::Double if ty.kind == TypeKind::Double && ty.float_digits.is_none() => match from {
                Repr::Double => Some(self.value(inner, scope)?),
                _ if number => Some(kernel(Kernel::ToDouble(from), vec![self.value(inner, scope)?])?),
                _ => None,
            },
            Repr::DateTime if from == Repr::Date => Some(kernel(Kernel::DateToDateTime, vec![self.value(inner, scope)?])?),
            Repr::DateTime | Repr::Time if from == to && ty.fsp() >= inner.ty.ty.fsp() => Some(self.value(inner, scope)?),
            Repr::Date | Repr::Json if from == to => Some(self.value(inner, scope)?),
            Repr::Text | Repr::Bytes
                if from == to
                    && !matches!(ty.kind, TypeKind::Binary(_))
                    && ty.charset() == inner.ty.ty.charset()
                    && target.char_length() >= inner.ty.char_length() =>
            {
                Some(self.value(inner, scope)?)
            }
            _ => None,
        })
    }

    fn native_call(&self, func: FuncId, args: &[Expr], expr: &Expr, scope: &Scope) -> Result<Option<DfExpr>> {
        let Some(chosen) = native_kernel(func, args, expr) else {
            return self.native_coalesce(func, args, expr, scope);
        };
        // The only one that is no constant of the kernel's.
        let single = match chosen {
            Kernel::Part(..) => Some(args.len() - 1),
            Kernel::Substring { .. } => Some(0),
            _ => None,
        };
        let operands = single.map_or(args, |i| std::slice::from_ref(&args[i]));
        let lowered = operands.iter().map(|a| self.value(a, scope)).collect::<Result<Vec<_>>>()?;
        let constant = lowered.iter().all(|a| matches!(a, DfExpr::Literal(..)));
        if constant {
            // Evaluated as an expression, so that an error is worded by it.
            return Ok(None);
        }
        // The same call over the kernel's own arguments, for what it declines.
        let rebased = Expr {
            kind: ExprKind::Call {
                func,
                args: args
                    .iter()
                    .enumerate()
                    .map(|(i, a)| match single {
                        Some(single) if i != single => a.clone(),
                        Some(_) => Expr::column(0, a.ty.clone()),
                        None => Expr::column(i, a.ty.clone()),
                    })
                    .collect(),
            },
            ty: expr.ty.clone(),
        };
        let types = operands.iter().map(|a| a.ty.ty.clone()).collect();
        let fallback = Arc::new(Wrapped::new(rebased, types, false, &self.shared));
        Ok(Some(apply(KernelFunction::udf(chosen, Some(fallback)), lowered)))
    }

    fn native_coalesce(&self, func: FuncId, args: &[Expr], expr: &Expr, scope: &Scope) -> Result<Option<DfExpr>> {
        // All but the last stand twice in what is made of them.
        let Some((_, repeated)) = args.split_last().filter(|_| func == FuncId::Coalesce) else { return Ok(None) };
        if args.iter().any(|a| !a.is_steady()) || repeated.iter().any(Expr::has_subquery) {
            return Ok(None);
        }
        let values = args.iter().map(|a| self.value_as(a, &expr.ty.ty, scope)).collect::<Result<Vec<_>>>()?;
        let Some((last, firsts)) = values.split_last() else { return Ok(None) };
        if firsts.is_empty() {
            return Ok(Some(last.clone()));
        }
        let branches = firsts.iter().map(|v| (Box::new(DfExpr::IsNotNull(Box::new(v.clone()))), Box::new(v.clone()))).collect();
        Ok(Some(DfExpr::Case(Case::new(None, branches, Some(Box::new(last.clone()))))))
    }

    /// Any expression, by the row evaluator. Columns and subqueries become arguments, enclosing rows constants.
    pub fn wrapped(&self, expr: &Expr, scope: &Scope, condition: bool) -> Result<DfExpr> {
        let mut arguments = Arguments { lowerer: self, scope, exprs: Vec::new(), types: Vec::new(), columns: Vec::new(), error: None };
        let mut rebased = expr.clone();
        arguments.rebase(&mut rebased);
        if let Some(error) = arguments.error {
            return Err(error);
        }
        let (exprs, types) = (arguments.exprs, arguments.types);
        let wrapped = Wrapped::new(rebased, types, condition, &self.shared);
        // What fails does so when its value is needed, if ever.
        if exprs.is_empty()
            && !wrapped.is_volatile()
            && let Ok(value) = wrapped.constant()
        {
            return Ok(literal(value));
        }
        Ok(apply(wrapped.udf(), exprs))
    }

    pub fn outer_value(&self, depth: usize, index: usize) -> Result<Value> {
        let row = self.outer.len().checked_sub(depth).and_then(|i| self.outer.get(i));
        match row.and_then(|row| row.get(index)) {
            Some(value) => Ok(value.clone()),
            None => datafusion::common::plan_err!("no enclosing row {depth} with a column {index}"),
        }
    }

    /// `expr` with the enclosing rows' values in it, and those of parameters; `None` if it refers to a row that is not known.
    pub fn with_outer_values(&self, expr: &Expr) -> Option<Expr> {
        let mut expr = expr.clone();
        let mut known = true;
        expr.walk_mut(&mut |e| match e.kind {
            ExprKind::Outer { depth, index } => match self.outer_value(depth, index) {
                Ok(value) => e.kind = ExprKind::Literal(value),
                Err(_) => known = false,
            },
            ExprKind::Param(parameter) if operand_number(parameter).is_some() => match self.shared.parameters.written(parameter) {
                Some(constant) => *e = constant.clone(),
                None => known = false,
            },
            _ => {}
        });
        known.then_some(expr)
    }
}

/// The arguments that a wrapped expression is given.
struct Arguments<'a> {
    lowerer: &'a Lowerer,
    scope: &'a Scope,
    exprs: Vec<DfExpr>,
    types: Vec<ColumnType>,
    /// The columns that are arguments already.
    columns: Vec<(usize, usize)>,
    error: Option<datafusion::common::DataFusionError>,
}

impl Arguments<'_> {
    fn rebase(&mut self, expr: &mut Expr) {
        match &expr.kind {
            ExprKind::Column(index) => {
                let index = *index;
                let position = match self.columns.iter().find(|(column, _)| *column == index) {
                    Some((_, position)) => *position,
                    None => {
                        self.exprs.push(self.scope.exprs[index].clone());
                        self.types.push(self.scope.types[index].ty.clone());
                        self.columns.push((index, self.exprs.len() - 1));
                        self.exprs.len() - 1
                    }
                };
                expr.kind = ExprKind::Column(position);
            }
            ExprKind::Outer { depth, index } => match self.lowerer.outer_value(*depth, *index) {
                Ok(value) => expr.kind = ExprKind::Literal(value),
                Err(error) => self.error = Some(error),
            },
            ExprKind::Param(parameter) if operand_number(*parameter).is_some() => match self.lowerer.settled(*parameter) {
                Ok(constant) => *expr = constant,
                Err(error) => self.error = Some(error),
            },
            ExprKind::Subquery(sub) => match self.lowerer.subquery(sub, &expr.ty, self.scope) {
                Ok(lowered) => {
                    self.exprs.push(lowered);
                    self.types.push(expr.ty.ty.clone());
                    expr.kind = ExprKind::Column(self.exprs.len() - 1);
                }
                Err(error) => self.error = Some(error),
            },
            _ => expr.children_mut().into_iter().for_each(|child| self.rebase(child)),
        }
    }
}

fn members(ty: &ColumnType) -> Option<&[highkey_types::Str]> {
    match &ty.kind {
        TypeKind::Enum(members) | TypeKind::Set(members) => Some(members),
        _ => None,
    }
}

fn operator(op: CompareOp) -> Operator {
    match op {
        CompareOp::Eq => Operator::Eq,
        CompareOp::NullSafeEq => Operator::IsNotDistinctFrom,
        CompareOp::Ne => Operator::NotEq,
        CompareOp::Lt => Operator::Lt,
        CompareOp::Le => Operator::LtEq,
        CompareOp::Gt => Operator::Gt,
        CompareOp::Ge => Operator::GtEq,
    }
}

/// The kernel that makes a column of this type its own key; `None` if it is one already.
pub(in crate::df) fn own_key(ty: &ColumnType) -> Option<Kernel> {
    match Repr::of(ty) {
        Repr::Text => Some(Kernel::SortKey(ty.collation)),
        Repr::Json => Some(Kernel::JsonKey),
        Repr::Double => Some(Kernel::DoubleKey),
        _ => None,
    }
}

/// Equal keys of this type may stand for values that are not the same: texts, and numbers inside JSON.
pub(in crate::df) fn key_hides_value(ty: &ColumnType) -> bool {
    matches!(own_key(ty), Some(Kernel::SortKey(_) | Kernel::JsonKey))
}

/// A collation for text whatever the comparison's is: `binary` is not one.
fn text_collation(collation: &'static Collation) -> &'static Collation {
    if collation.charset == highkey_types::Charset::Binary { Collation::utf8mb4() } else { collation }
}

/// The MySQL type of a plain comparison form.
fn plain_type(repr: Repr) -> ColumnType {
    match repr {
        Repr::UInt => ColumnType::ubigint(),
        Repr::Decimal(scale) => ColumnType::decimal(DECIMAL128_DIGITS, scale),
        Repr::WideDecimal(scale) => ColumnType::decimal(65, scale),
        Repr::Double => ColumnType::double(),
        Repr::Bytes => ColumnType::new(TypeKind::LongBlob),
        Repr::Date => ColumnType::new(TypeKind::Date),
        Repr::DateTime => ColumnType::new(TypeKind::DateTime(6)),
        Repr::Time => ColumnType::new(TypeKind::Time(6)),
        _ => ColumnType::bigint(),
    }
}

/// The form in which `operands` compare; `None` if only the row evaluator knows.
pub(in crate::df) fn key_form(by: CompareBy, operands: &[&Expr]) -> Option<KeyForm> {
    let operands: Vec<&Expr> = operands.iter().copied().filter(|e| !matches!(e.as_literal(), Some(Value::Null))).collect();
    let types: Vec<&ExprType> = operands.iter().map(|e| &e.ty).collect();
    if types.iter().any(|t| t.is_null_type()) {
        return None;
    }
    match by {
        CompareBy::Int => {
            let unsigned = |e: &&Expr| match e.as_literal() {
                Some(Value::Int(v)) => *v >= 0,
                _ => Repr::of(&e.ty.ty) == Repr::UInt,
            };
            let signed = |e: &&Expr| match e.as_literal() {
                Some(Value::UInt(v)) => i64::try_from(*v).is_ok(),
                _ => Repr::of(&e.ty.ty) != Repr::UInt,
            };
            Some(KeyForm::Plain(match () {
                _ if operands.iter().all(signed) => Repr::Int,
                _ if operands.iter().all(unsigned) => Repr::UInt,
                _ if operands.iter().all(|e| matches!(Repr::of(&e.ty.ty), Repr::Int | Repr::UInt)) => Repr::Decimal(0),
                _ => return None,
            }))
        }
        CompareBy::Decimal => {
            let whole = types.iter().map(|t| t.decimal_digits().0).max().unwrap_or(0);
            let scale = types.iter().map(|t| t.decimal_digits().1).max().unwrap_or(0);
            let known = types.iter().all(|t| matches!(Repr::of(&t.ty), Repr::Int | Repr::UInt | Repr::Decimal(_) | Repr::WideDecimal(_)));
            known.then_some(KeyForm::Plain(if whole + scale <= u32::from(DECIMAL128_DIGITS) {
                Repr::Decimal(scale as u8)
            } else {
                Repr::WideDecimal(scale as u8)
            }))
        }
        CompareBy::Double => Some(KeyForm::Double),
        CompareBy::Text(collation) => {
            if collation.charset == highkey_types::Charset::Binary && types.iter().all(|t| Repr::of(&t.ty) == Repr::Bytes) {
                Some(KeyForm::Plain(Repr::Bytes))
            } else {
                Some(KeyForm::Text(collation))
            }
        }
        // A string may have a time of day.
        CompareBy::Date if types.iter().all(|t| !t.ty.is_string()) => Some(KeyForm::Plain(Repr::Date)),
        CompareBy::Date | CompareBy::DateTime => Some(KeyForm::Plain(Repr::DateTime)),
        // A string that is no time equals none.
        CompareBy::Time => types.iter().all(|t| !t.ty.is_string()).then_some(KeyForm::Plain(Repr::Time)),
        CompareBy::Json => types.iter().all(|t| Repr::of(&t.ty) == Repr::Json).then_some(KeyForm::Json),
        CompareBy::Dynamic => None,
    }
}

/// The kernel for a call, if its types are ones that it computes as MySQL does.
fn native_kernel(func: FuncId, args: &[Expr], expr: &Expr) -> Option<Kernel> {
    let part = match func {
        FuncId::Year => Some(DatePart::Year),
        FuncId::Quarter => Some(DatePart::Quarter),
        FuncId::Month => Some(DatePart::Month),
        FuncId::DayOfMonth => Some(DatePart::Day),
        FuncId::Extract => match args[0].as_literal()? {
            Value::Text(unit) => match unit.to_ascii_uppercase().as_str() {
                "YEAR" => Some(DatePart::Year),
                "QUARTER" => Some(DatePart::Quarter),
                "MONTH" => Some(DatePart::Month),
                "DAY" => Some(DatePart::Day),
                "HOUR" => Some(DatePart::Hour),
                "MINUTE" => Some(DatePart::Minute),
                "SECOND" => Some(DatePart::Second),
                "YEAR_MONTH" => Some(DatePart::YearMonth),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    let output = Repr::of(&expr.ty.ty);
    if let Some(part) = part {
        let from = Repr::of(&args.last()?.ty.ty);
        return (matches!(from, Repr::Date | Repr::DateTime) && output == Repr::Int).then_some(Kernel::Part(part, from));
    }
    if matches!(func, FuncId::Substring | FuncId::Left) {
        let constant = |i: usize| match args.get(i)?.as_literal()? {
            Value::Int(n) => usize::try_from(*n).ok(),
            _ => None,
        };
        // SUBSTRING counts from 1; whatever begins at 0 is empty, and below it counts from the end.
        let (from, count) = match (func, args.len()) {
            (FuncId::Left, _) => (0, constant(1)?),
            (_, 2) => (constant(1)?.checked_sub(1)?, usize::MAX),
            _ => (constant(1)?.checked_sub(1)?, constant(2)?),
        };
        let text = Repr::of(&args[0].ty.ty) == Repr::Text && output == Repr::Text;
        return text.then_some(Kernel::Substring { from, count });
    }
    let op = match func {
        FuncId::Add => Arithmetic::Add,
        FuncId::Sub => Arithmetic::Sub,
        FuncId::Mul => Arithmetic::Mul,
        FuncId::Div => Arithmetic::Div,
        FuncId::IntDiv => Arithmetic::IntDiv,
        FuncId::Mod => Arithmetic::Mod,
        _ => return None,
    };
    let [left, right] = [&args[0].ty, &args[1].ty];
    if args.iter().any(Expr::has_hidden_digits) {
        return None;
    }
    if left.is_null_type() || right.is_null_type() {
        return None;
    }
    // FLOAT has its own rounding in the evaluator.
    let float = |t: &ExprType| t.ty.kind == TypeKind::Float;
    if float(left) || float(right) || float(&expr.ty) {
        return None;
    }
    let (l, r) = (Repr::of(&left.ty), Repr::of(&right.ty));
    let exact = |r: Repr| matches!(r, Repr::Int | Repr::UInt | Repr::Decimal(_) | Repr::WideDecimal(_));
    let number = |r: Repr| exact(r) || r == Repr::Double;
    let fits = match output {
        Repr::Double => number(l) && number(r) && matches!(op, Arithmetic::Add | Arithmetic::Sub | Arithmetic::Mul | Arithmetic::Div),
        Repr::Int | Repr::UInt => match op {
            Arithmetic::Add | Arithmetic::Sub | Arithmetic::Mul => matches!((l, r), (Repr::Int | Repr::UInt, Repr::Int | Repr::UInt)),
            Arithmetic::IntDiv | Arithmetic::Mod => l == output && r == output,
            Arithmetic::Div => false,
        },
        Repr::Decimal(scale) | Repr::WideDecimal(scale) => {
            let (a, b) = (scale_of(l), scale_of(r));
            exact(l)
                && exact(r)
                && match op {
                    Arithmetic::Add | Arithmetic::Sub => scale >= a.max(b),
                    Arithmetic::Mul => scale == a + b,
                    _ => false,
                }
        }
        _ => false,
    };
    fits.then_some(Kernel::Arithmetic { op, left: l, right: r, output })
}

fn scale_of(repr: Repr) -> u8 {
    match repr {
        Repr::Decimal(scale) | Repr::WideDecimal(scale) => scale,
        _ => 0,
    }
}
