//! What conditions say together that none of them says alone.

use super::{CompareBy, CompareOp, Expr, ExprKind, ExprType};

/// What is asked of one column and known values.
struct Asked {
    column: usize,
    by: CompareBy,
    test: Test,
}

#[derive(Clone)]
enum Test {
    Compared(CompareOp, Expr),
    OneOf { list: Vec<Expr>, sorted: bool },
}

impl Asked {
    fn of(condition: &Expr) -> Option<Asked> {
        match &condition.kind {
            ExprKind::Compare { op, by, left, right } if !matches!(op, CompareOp::NullSafeEq | CompareOp::Ne) => match (left.as_column(), right.as_column()) {
                (Some(column), None) if right.is_known() => Some(Asked { column, by: *by, test: Test::Compared(*op, (**right).clone()) }),
                (None, Some(column)) if left.is_known() => Some(Asked { column, by: *by, test: Test::Compared(op.flip(), (**left).clone()) }),
                _ => None,
            },
            ExprKind::In { expr, list, by, negated: false, sorted } if list.iter().all(Expr::is_known) => {
                Some(Asked { column: expr.as_column()?, by: *by, test: Test::OneOf { list: list.clone(), sorted: *sorted } })
            }
            _ => None,
        }
    }

    /// The same as a condition on a column that is equal to it.
    fn on(&self, column: &Expr) -> Expr {
        let column = Box::new(column.clone());
        let kind = match self.test.clone() {
            Test::Compared(op, value) => ExprKind::Compare { op, by: self.by, left: column, right: Box::new(value) },
            Test::OneOf { list, sorted } => ExprKind::In { expr: column, list, by: self.by, negated: false, sorted },
        };
        Expr { kind, ty: ExprType::boolean(true) }
    }

    /// They are equalities both, or bound their columns from the same side.
    fn is_like(&self, other: &Asked) -> bool {
        let sort = |test: &Test| match test {
            Test::Compared(CompareOp::Lt | CompareOp::Le, _) => 1,
            Test::Compared(CompareOp::Gt | CompareOp::Ge, _) => 2,
            Test::Compared(..) => 0,
            Test::OneOf { .. } => 3,
        };
        sort(&self.test) == sort(&other.test)
    }
}

/// What equalities of columns say together with what is asked of one of them and constants: `a = 1 AND a = b` is about `b`, too, and so is `a < 9 AND a = b`.
/// Of a column of which such a thing is asked already nothing is added.
pub fn implied_constants(conditions: &[&Expr]) -> Vec<Expr> {
    let equality = |e: &&Expr| match &e.kind {
        ExprKind::Compare { op: CompareOp::Eq, by, left, right } if left.as_column().is_some() && right.as_column().is_some() => {
            Some((*by, (**left).clone(), (**right).clone()))
        }
        _ => None,
    };
    let ties: Vec<(CompareBy, Expr, Expr)> = conditions.iter().filter_map(equality).collect();
    if ties.is_empty() {
        return Vec::new();
    }
    let mut asked: Vec<Asked> = conditions.iter().filter_map(|condition| Asked::of(condition)).collect();
    let mut implied = Vec::new();
    let mut at = 0;
    while at < asked.len() {
        for (by, left, right) in &ties {
            let this = &asked[at];
            let other = match (left.as_column() == Some(this.column), right.as_column() == Some(this.column)) {
                (true, false) => right,
                (false, true) => left,
                _ => continue,
            };
            let Some(column) = other.as_column() else { continue };
            // Of integers an index looks up the number that a text begins with, to its last digit: doubles have fewer.
            let has_more_digits = *by == CompareBy::Double && other.ty.ty.is_integer();
            if has_more_digits || *by != this.by || asked.iter().any(|known| known.column == column && known.is_like(this)) {
                continue;
            }
            let next = Asked { column, by: *by, test: this.test.clone() };
            implied.push(next.on(other));
            asked.push(next);
        }
        at += 1;
    }
    implied
}
