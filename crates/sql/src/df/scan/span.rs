//! What is known of a block's columns without a look at their values, and conditions that no row of such a block can satisfy.

use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};

use crate::df::kernel::KernelFunction;

/// What is known of a column in some rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// The least and the greatest of its numbers (as Arrow has them), if it has numbers and that is known.
    pub range: Option<(i128, i128)>,
    /// Some row has a value, and some has NULL.
    pub values: bool,
    pub nulls: bool,
}

/// Whether `number op constant` is true for all numbers from `least` to `greatest`, or for none of them; `None` if neither is certain.
pub(super) fn decided(op: Operator, constant: i128, least: i128, greatest: i128) -> Option<bool> {
    let for_all = |op: Operator| match op {
        Operator::Eq => least == constant && greatest == constant,
        Operator::NotEq => constant < least || constant > greatest,
        Operator::Lt => greatest < constant,
        Operator::LtEq => greatest <= constant,
        Operator::Gt => least > constant,
        Operator::GtEq => least >= constant,
        _ => false,
    };
    if for_all(op) {
        return Some(true);
    }
    for_all(op.negate()?).then_some(false)
}

/// What a condition asks of numbers and of NULLs, as far as spans can answer it. Columns are positions in the condition's schema.
#[derive(Debug)]
pub(super) enum Demand {
    Compared(Number, Operator, i128),
    /// It is one of these, which ascend.
    OneOf(Number, Vec<i128>),
    Null(usize),
    NotNull(usize),
    /// Each of them has to be true.
    All(Box<[Demand; 2]>),
    /// One of them has to be true.
    Any(Box<[Demand; 2]>),
}

/// A column's number, so many times: as it is compared with one of another scale, or a date with a moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number {
    column: usize,
    times: i128,
}

/// What makes decimals of numbers declines none whose decimal has at most 38 digits.
const MOST: i128 = 10i128.pow(38) - 1;

impl Demand {
    /// Of a condition over `schema`. `None` if nothing is certain of it. One that `raises` errors or warnings has to be understood whole.
    pub fn of(condition: &Arc<dyn PhysicalExpr>, schema: &Schema, raises: bool) -> Option<Demand> {
        if let Some(binary) = condition.downcast_ref::<BinaryExpr>() {
            let both = matches!(binary.op(), Operator::And);
            if both || matches!(binary.op(), Operator::Or) {
                if raises {
                    return None;
                }
                let parts = (Demand::of(binary.left(), schema, false), Demand::of(binary.right(), schema, false));
                return match parts {
                    (Some(left), Some(right)) => Some(if both { Demand::All(Box::new([left, right])) } else { Demand::Any(Box::new([left, right])) }),
                    (Some(one), None) | (None, Some(one)) if both => Some(one),
                    _ => None,
                };
            }
            return compared(binary, schema);
        }
        if let Some(list) = condition.downcast_ref::<InListExpr>() {
            return one_of(list, schema);
        }
        if let Some(null) = condition.downcast_ref::<IsNullExpr>() {
            return null.arg().downcast_ref::<Column>().map(|column| Demand::Null(column.index()));
        }
        let not_null = condition.downcast_ref::<IsNotNullExpr>()?;
        not_null.arg().downcast_ref::<Column>().map(|column| Demand::NotNull(column.index()))
    }

    /// The column's own number is compared.
    pub fn bound(&self) -> Option<(Operator, i128)> {
        match self {
            Demand::Compared(Number { times: 1, .. }, op, constant) => Some((*op, *constant)),
            _ => None,
        }
    }

    /// It is true for no row of such columns, and to ask any of them raises nothing.
    pub fn is_never(&self, span: &impl Fn(usize) -> Option<Span>) -> bool {
        match self {
            Demand::Compared(number, op, constant) => number.is_never(span, |least, greatest| decided(*op, *constant, least, greatest) == Some(false)),
            Demand::OneOf(number, list) => number.is_never(span, |least, greatest| {
                let next = list.partition_point(|one| *one < least);
                list.get(next).is_none_or(|one| *one > greatest)
            }),
            Demand::Null(column) => span(*column).is_some_and(|span| !span.nulls),
            Demand::NotNull(column) => span(*column).is_some_and(|span| !span.values),
            Demand::All(parts) => parts.iter().any(|part| part.is_never(span)),
            Demand::Any(parts) => parts.iter().all(|part| part.is_never(span)),
        }
    }

    /// To ask any row of such columns raises nothing, of a condition that may raise something.
    pub fn is_quiet(&self, span: &impl Fn(usize) -> Option<Span>) -> bool {
        match self {
            Demand::Compared(number, ..) | Demand::OneOf(number, _) => span(number.column).is_some_and(|span| !span.values || number.range(span).is_some()),
            _ => false,
        }
    }
}

impl Number {
    /// The least and the greatest; `None` if they are not known, or some may have no such number.
    fn range(self, span: Span) -> Option<(i128, i128)> {
        let times = |end: i128| end.checked_mul(self.times).filter(|end| (-MOST..=MOST).contains(end));
        let (least, greatest) = span.range?;
        Some((times(least)?, times(greatest)?))
    }

    /// NULL is no number that anything could be true of.
    fn is_never(self, span: &impl Fn(usize) -> Option<Span>, of_range: impl Fn(i128, i128) -> bool) -> bool {
        span(self.column).is_some_and(|span| !span.values || self.range(span).is_some_and(|(least, greatest)| of_range(least, greatest)))
    }
}

/// `number op constant`, or the other way round, of one type.
fn compared(compares: &BinaryExpr, schema: &Schema) -> Option<Demand> {
    let (left, right) = (compares.left(), compares.right());
    let (op, number_of, literal) = match (left.downcast_ref::<Literal>(), right.downcast_ref::<Literal>()) {
        (None, Some(literal)) => (*compares.op(), left, literal),
        (Some(literal), None) => (compares.op().swap()?, right, literal),
        _ => return None,
    };
    use Operator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    if !matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq) || number_of.data_type(schema).ok()? != literal.value().data_type() {
        return None;
    }
    Some(Demand::Compared(number(number_of)?, op, constant(literal.value())?))
}

fn one_of(list: &InListExpr, schema: &Schema) -> Option<Demand> {
    if list.negated() {
        return None;
    }
    let (number, ty) = (number(list.expr())?, list.expr().data_type(schema).ok()?);
    let mut constants = Vec::with_capacity(list.len());
    for one in list.list() {
        let value = one.downcast_ref::<Literal>()?.value();
        if value.is_null() {
            // Nothing is equal to it.
            continue;
        }
        if value.data_type() != ty {
            return None;
        }
        constants.push(constant(value)?);
    }
    constants.sort_unstable();
    Some(Demand::OneOf(number, constants))
}

fn number(expr: &Arc<dyn PhysicalExpr>) -> Option<Number> {
    if let Some(column) = expr.downcast_ref::<Column>() {
        return Some(Number { column: column.index(), times: 1 });
    }
    let call = expr.downcast_ref::<ScalarFunctionExpr>()?;
    let [argument] = call.args() else { return None };
    let column = argument.downcast_ref::<Column>()?.index();
    let times = call.fun().inner().downcast_ref::<KernelFunction>()?.times()?;
    Some(Number { column, times })
}

fn constant(value: &ScalarValue) -> Option<i128> {
    Some(match *value {
        ScalarValue::Int64(value) => value?.into(),
        ScalarValue::UInt64(value) => value?.into(),
        ScalarValue::Int32(value) => value?.into(),
        ScalarValue::UInt16(value) => value?.into(),
        ScalarValue::Decimal128(value, ..) => value?,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const OPS: [Operator; 6] = [Operator::Eq, Operator::NotEq, Operator::Lt, Operator::LtEq, Operator::Gt, Operator::GtEq];

    fn holds(op: Operator, number: i128, constant: i128) -> bool {
        match op {
            Operator::Eq => number == constant,
            Operator::NotEq => number != constant,
            Operator::Lt => number < constant,
            Operator::LtEq => number <= constant,
            Operator::Gt => number > constant,
            _ => number >= constant,
        }
    }

    /// Exactly: with the least and the greatest among the numbers it is never left open what is certain.
    #[test]
    fn a_comparison_is_decided_where_all_numbers_agree() {
        for (least, greatest) in [(-3, 4), (-3, -3), (0, 1), (i128::from(i64::MIN), i128::from(u64::MAX))] {
            let near = |end: i128| end - 2..=end + 2;
            for constant in near(least).chain(near(greatest)) {
                for op in OPS {
                    let some: Vec<i128> = near(least).chain(near(greatest)).filter(|number| (least..=greatest).contains(number)).collect();
                    let answers: BTreeSet<bool> = some.iter().map(|number| holds(op, *number, constant)).collect();
                    let expected = if answers.len() == 1 { answers.first().copied() } else { None };
                    assert_eq!(decided(op, constant, least, greatest), expected, "{least}..{greatest} {op} {constant}");
                }
            }
        }
    }

    #[test]
    fn numbers_that_may_have_no_other_form_are_not_known() {
        let of = |range: (i128, i128)| Span { range: Some(range), values: true, nulls: false };
        let number = |times: i128| Number { column: 0, times };
        assert_eq!(number(100).range(of((-7, 12))), Some((-700, 1200)));
        assert_eq!(number(100).range(of((-7, MOST))), None);
        assert_eq!(number(2).range(of((-MOST, 0))), None);
        assert_eq!(number(1).range(of((-MOST, MOST))), Some((-MOST, MOST)));
        let only_nulls = |_: usize| Some(Span { range: None, values: false, nulls: true });
        assert!(Demand::Compared(number(100), Operator::NotEq, 5).is_never(&only_nulls));
        assert!(Demand::Compared(number(100), Operator::NotEq, 5).is_quiet(&only_nulls));
        let too_large = |_: usize| Some(of((0, MOST)));
        assert!(!Demand::Compared(number(100), Operator::Lt, -1).is_never(&too_large), "some row would raise an error");
        assert!(!Demand::Compared(number(100), Operator::Lt, -1).is_quiet(&too_large));
    }
}
