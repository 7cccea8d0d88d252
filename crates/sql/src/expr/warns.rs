//! Which expressions may warn. In strict DML a warning ends the statement: what may warn waits until a row needs it.

use highkey_types::{ColumnType, TypeKind};

use super::{SharedContext, eval};
use crate::functions::FuncId;
use crate::plan::{CompareBy, Expr, ExprKind, ExprType};

/// Tells whether an expression may warn or fail for some row. What depends on no row is evaluated to see, in a copy of the session's surroundings.
pub struct Warns {
    cx: Box<dyn SharedContext>,
}

impl Warns {
    /// `cx` hears nothing of it.
    pub fn new(cx: &dyn SharedContext) -> Warns {
        Warns { cx: cx.copy() }
    }

    /// The value of `expr`.
    pub fn value(&mut self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Literal(_) | ExprKind::Column(_) | ExprKind::UserVar(_) | ExprKind::Match { .. } => false,
            _ if expr.is_constant() => self.constant(expr),
            ExprKind::Call { func, args } => !is_harmless(*func, args) || args.iter().any(|arg| self.value(arg)),
            ExprKind::Cast(inner) => !is_widening(&inner.ty.ty, &expr.ty.ty) || self.value(inner),
            ExprKind::Compare { by, left, right, .. } => self.compared(*by, left) || self.compared(*by, right),
            ExprKind::In { expr, list, by, .. } => self.compared(*by, expr) || list.iter().any(|item| self.compared(*by, item)),
            ExprKind::And(parts) | ExprKind::Or(parts) => parts.iter().any(|part| self.condition(part)),
            ExprKind::Not(inner) | ExprKind::IsTruth { expr: inner, .. } => self.condition(inner),
            ExprKind::IsNull { expr: inner, .. } => self.value(inner),
            ExprKind::Like { expr, pattern, .. } => self.value(expr) || self.value(pattern),
            ExprKind::Case { branches, otherwise } => {
                branches.iter().any(|(when, then)| self.condition(when) || self.value(then)) || otherwise.as_ref().is_some_and(|e| self.value(e))
            }
            _ => true,
        }
    }

    /// The truth of `expr`.
    pub fn condition(&mut self, expr: &Expr) -> bool {
        self.converted(expr, ColumnType::double())
    }

    /// `expr` as the operand of a comparison.
    pub fn compared(&mut self, by: CompareBy, expr: &Expr) -> bool {
        match by {
            CompareBy::Text(_) => self.value(expr),
            CompareBy::Date | CompareBy::DateTime => self.converted(expr, ColumnType::new(TypeKind::DateTime(6))),
            CompareBy::Time => self.converted(expr, ColumnType::new(TypeKind::Time(6))),
            _ => self.converted(expr, ColumnType::double()),
        }
    }

    /// The value of `expr`, a text converted to `ty`.
    fn converted(&mut self, expr: &Expr, ty: ColumnType) -> bool {
        if !expr.ty.ty.is_text() && !expr.ty.ty.is_binary() {
            return self.value(expr);
        }
        !expr.is_constant() || self.constant(&Expr { kind: ExprKind::Cast(Box::new(expr.clone())), ty: ExprType::new(ty) })
    }

    fn constant(&mut self, expr: &Expr) -> bool {
        let fails = eval(expr, &[], &mut *self.cx).is_err();
        !self.cx.take_raised().is_empty() || fails
    }
}

/// It takes every value of such arguments without a word.
fn is_harmless(func: FuncId, args: &[Expr]) -> bool {
    use FuncId::*;
    match func {
        Coalesce | CharLength | IsNullFunc | Length | Lower | Ltrim | Rtrim | TrimBoth | TrimLeading | TrimTrailing | Upper => true,
        Left | Right | Substring => args.iter().skip(1).all(|arg| arg.ty.ty.is_integer()),
        DateFunc | DayOfMonth | Extract | Month | Quarter | Year => args.last().is_some_and(|arg| arg.ty.ty.is_temporal()),
        _ => false,
    }
}

/// Every value of the one type is a value of the other.
fn is_widening(from: &ColumnType, to: &ColumnType) -> bool {
    match to.kind {
        TypeKind::Double => from.is_number(),
        TypeKind::LongText => from.is_text() && from.collation.charset == to.collation.charset,
        _ => false,
    }
}
