//! Constants that columns are compared with: a plan may be made that holds for other values of them, too.
//!
//! Such an operand is a literal of a kind of which no value changes how it is compared. Two queries are alike if they are the same but for the values of their operands.

use std::mem::discriminant;
use std::sync::Arc;

use highkey_types::Value;

use super::{CompareBy, Expr, ExprKind, Rel, RelKind, SubqueryKind};
use crate::stack;

/// Operands are numbered as parameters that no statement has.
const FIRST: usize = usize::MAX / 2;

/// The parameter that stands for the n-th operand of a query.
pub fn operand_parameter(number: usize) -> ExprKind {
    ExprKind::Param(FIRST + number)
}

/// The number of the operand that a parameter stands for.
pub fn operand_number(parameter: usize) -> Option<usize> {
    parameter.checked_sub(FIRST)
}

/// Calls `f` on each operand of a query and of the subqueries in it; in the same order for each query that is like it.
pub fn for_each_operand(rel: &mut Rel, f: &mut dyn FnMut(&mut Expr)) {
    rel.for_each_root_mut(&mut |root| operands_in(root, f));
}

fn operands_in(expr: &mut Expr, f: &mut dyn FnMut(&mut Expr)) {
    stack::ensure(|| {
        match &mut expr.kind {
            ExprKind::Compare { by, left, right, .. } => match side(*by, left, right) {
                Some(Side::Left) => f(left.as_mut()),
                Some(Side::Right) => f(right.as_mut()),
                None => {}
            },
            ExprKind::Subquery(subquery) => for_each_operand(&mut subquery.plan, f),
            _ => {}
        }
        expr.children_mut().into_iter().for_each(|child| operands_in(child, f));
    });
}

/// The numbers of the operands whose values differ between two queries that are alike.
pub fn differing_operands(a: &mut Rel, b: &mut Rel) -> Vec<usize> {
    let values = |rel: &mut Rel| {
        let mut values = Vec::new();
        for_each_operand(rel, &mut |operand| values.push(format!("{:?}", operand.kind)));
        values
    };
    let (a, b) = (values(a), values(b));
    (0..a.len()).filter(|&i| a.get(i) != b.get(i)).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// Which side of a comparison is an operand.
fn side(by: CompareBy, left: &Expr, right: &Expr) -> Option<Side> {
    let beside = |constant: &Expr, compared: &Expr| is_operand(by, constant) && !compared.columns().is_empty();
    match (beside(right, left), beside(left, right)) {
        (true, _) => Some(Side::Right),
        (false, true) => Some(Side::Left),
        (false, false) => None,
    }
}

/// A constant whose value does not say how it is compared. Of an integer that may be taken for one with a sign and for one without.
fn is_operand(by: CompareBy, constant: &Expr) -> bool {
    let ExprKind::Literal(value) = &constant.kind else { return false };
    match (by, value) {
        (CompareBy::Int, Value::Int(n)) => *n >= 0,
        (CompareBy::Int, Value::UInt(n)) => i64::try_from(*n).is_ok(),
        (CompareBy::Double, Value::Int(_) | Value::UInt(_) | Value::Decimal(_) | Value::Double(_)) => true,
        (CompareBy::Decimal, Value::Decimal(_)) | (CompareBy::Date, Value::Date(_)) | (CompareBy::DateTime, Value::Date(_) | Value::DateTime(_)) => true,
        (CompareBy::Text(_), Value::Text(_)) => constant.ty.ty.is_text(),
        _ => false,
    }
}

/// Two operands that a comparison takes for the same kind of value: of one type, to its digits; of texts the length does not count.
fn are_alike(a: &Expr, b: &Expr) -> bool {
    let (Some(x), Some(y)) = (a.as_literal(), b.as_literal()) else { return false };
    let texts = || {
        let collations = a.ty.ty.collation.id == b.ty.ty.collation.id && a.ty.coercibility == b.ty.coercibility;
        matches!((x, y), (Value::Text(_), Value::Text(_))) && collations && discriminant(&a.ty.ty.kind) == discriminant(&b.ty.ty.kind)
    };
    discriminant(x) == discriminant(y) && (a.ty == b.ty || texts())
}

/// The queries are the same, to the last constant, but for the values of their operands. Not told, and taken for different, are those with rarer operators.
pub fn is_alike(a: &Rel, b: &Rel) -> bool {
    stack::ensure(|| {
        is_same_operator(&a.kind, &b.kind)
            && a.fields == b.fields
            && all_alike(&roots(&a.kind), &roots(&b.kind))
            && a.inputs().len() == b.inputs().len()
            && a.inputs().into_iter().zip(b.inputs()).all(|(a, b)| is_alike(a, b))
    })
}

/// The same operator, whatever its expressions and inputs are.
fn is_same_operator(a: &RelKind, b: &RelKind) -> bool {
    use RelKind::{Aggregate, Distinct, Filter, Join, Limit, Project, Scan, SetOperation, Sort, Values};
    match (a, b) {
        (
            Scan { table, alias, columns, indexes, lock },
            Scan { table: other_table, alias: other_alias, columns: other_columns, indexes: other_indexes, lock: other_lock },
        ) => Arc::ptr_eq(table, other_table) && alias == other_alias && columns == other_columns && indexes == other_indexes && lock == other_lock,
        (Values { rows: a }, Values { rows: b }) => a.iter().map(Vec::len).eq(b.iter().map(Vec::len)),
        (Filter { .. }, Filter { .. }) | (Project { .. }, Project { .. }) | (Distinct { .. }, Distinct { .. }) => true,
        (Join { kind: a, .. }, Join { kind: b, .. }) => a == b,
        (
            Aggregate { groups, aggregates, rollup, .. },
            Aggregate { groups: other_groups, aggregates: other_aggregates, rollup: other_rollup, .. },
        ) => {
            let same = |(a, b): (&super::Aggregate, &super::Aggregate)| {
                let descending = |aggregate: &super::Aggregate| aggregate.order_by.iter().map(|key| key.desc).collect::<Vec<_>>();
                a.func == b.func && a.distinct == b.distinct && a.ty == b.ty && a.args.len() == b.args.len() && descending(a) == descending(b)
            };
            groups.len() == other_groups.len()
                && rollup == other_rollup
                && aggregates.len() == other_aggregates.len()
                && aggregates.iter().zip(other_aggregates).all(same)
        }
        (Sort { keys: a, .. }, Sort { keys: b, .. }) => a.iter().map(|key| key.desc).eq(b.iter().map(|key| key.desc)),
        (Limit { offset, count, .. }, Limit { offset: other_offset, count: other_count, .. }) => {
            offset.is_some() == other_offset.is_some() && count.is_some() == other_count.is_some()
        }
        (SetOperation { op, all, .. }, SetOperation { op: other_op, all: other_all, .. }) => op == other_op && all == other_all,
        _ => false,
    }
}

/// The expressions of an operator that `is_same_operator` knows.
fn roots(kind: &RelKind) -> Vec<&Expr> {
    match kind {
        RelKind::Values { rows } => rows.iter().flatten().collect(),
        RelKind::Filter { predicate, .. } => vec![predicate],
        RelKind::Project { exprs, .. } => exprs.iter().collect(),
        RelKind::Join { on, .. } => on.iter().collect(),
        RelKind::Aggregate { groups, aggregates, .. } => {
            let of_aggregates = aggregates.iter().flat_map(|aggregate| aggregate.args.iter().chain(aggregate.order_by.iter().map(|key| &key.expr)));
            groups.iter().chain(of_aggregates).collect()
        }
        RelKind::Sort { keys, .. } => keys.iter().map(|key| &key.expr).collect(),
        RelKind::Limit { offset, count, .. } => offset.iter().chain(count).collect(),
        _ => Vec::new(),
    }
}

fn all_alike(a: &[&Expr], b: &[&Expr]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_alike_expr(a, b))
}

fn is_alike_expr(a: &Expr, b: &Expr) -> bool {
    stack::ensure(|| {
        if a.ty != b.ty {
            return false;
        }
        if let (
            ExprKind::Compare { op, by, left, right },
            ExprKind::Compare { op: other_op, by: other_by, left: other_left, right: other_right },
        ) = (&a.kind, &b.kind)
        {
            let operand = side(*by, left, right);
            return op == other_op
                && by == other_by
                && operand == side(*by, other_left, other_right)
                && match operand {
                    Some(Side::Left) => are_alike(left, other_left) && is_alike_expr(right, other_right),
                    Some(Side::Right) => is_alike_expr(left, other_left) && are_alike(right, other_right),
                    None => is_alike_expr(left, other_left) && is_alike_expr(right, other_right),
                };
        }
        is_same_node(&a.kind, &b.kind) && all_alike(&a.children(), &b.children())
    })
}

/// The same but for what it is made of.
fn is_same_node(a: &ExprKind, b: &ExprKind) -> bool {
    use ExprKind::{And, Call, Case, Cast, Column, In, IsNull, IsTruth, Like, Literal, Not, Or, Outer, Subquery};
    match (a, b) {
        (Column(a), Column(b)) => a == b,
        (Outer { depth, index }, Outer { depth: other_depth, index: other_index }) => depth == other_depth && index == other_index,
        // 1.0 is not 1.00.
        (Literal(a), Literal(b)) => format!("{a:?}") == format!("{b:?}"),
        (Call { func: a, .. }, Call { func: b, .. }) => a == b,
        (And(_), And(_)) | (Or(_), Or(_)) | (Not(_), Not(_)) | (Cast(_), Cast(_)) => true,
        (IsNull { negated: a, .. }, IsNull { negated: b, .. }) => a == b,
        (IsTruth { value, negated, .. }, IsTruth { value: other_value, negated: other_negated, .. }) => value == other_value && negated == other_negated,
        (In { by, negated, sorted, .. }, In { by: other_by, negated: other_negated, sorted: other_sorted, .. }) => {
            by == other_by && negated == other_negated && sorted == other_sorted
        }
        (Like { escape, collation, negated, .. }, Like { escape: other_escape, collation: other_collation, negated: other_negated, .. }) => {
            escape == other_escape && collation.id == other_collation.id && negated == other_negated
        }
        (Case { otherwise: a, .. }, Case { otherwise: b, .. }) => a.is_some() == b.is_some(),
        (Subquery(a), Subquery(b)) => a.correlated == b.correlated && is_asked_the_same(&a.kind, &b.kind) && is_alike(&a.plan, &b.plan),
        _ => false,
    }
}

fn is_asked_the_same(a: &SubqueryKind, b: &SubqueryKind) -> bool {
    use SubqueryKind::{Exists, In, Quantified, Scalar};
    match (a, b) {
        (Scalar, Scalar) => true,
        (Exists { negated: a }, Exists { negated: b }) => a == b,
        (In { by, negated, .. }, In { by: other_by, negated: other_negated, .. }) => by == other_by && negated == other_negated,
        (Quantified { op, all, by, own, .. }, Quantified { op: other_op, all: other_all, by: other_by, own: other_own, .. }) => {
            op == other_op && all == other_all && by == other_by && own == other_own
        }
        _ => false,
    }
}
