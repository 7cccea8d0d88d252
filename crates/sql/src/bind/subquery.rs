//! Subqueries in expressions: scalars, EXISTS, IN, ANY and ALL.

use highkey_types::MySqlError;

use super::binder::{Binder, Result};
use super::compare::unify;
use super::errors;
use super::merge::members_as_text;
use crate::parse::ast::{self, BinaryOp};
use crate::plan::{CompareOp, Expr, ExprKind, ExprType, Subquery, SubqueryKind};

impl Binder<'_> {
    pub fn subquery(&self, kind: SubqueryKind, plan: crate::plan::Rel, ty: ExprType) -> Expr {
        let correlated = plan.is_correlated();
        Expr { kind: ExprKind::Subquery(Box::new(Subquery { kind, plan, correlated })), ty }
    }

    pub fn scalar_subquery(&mut self, query: &ast::Query) -> Result<Expr> {
        let plan = self.subquery_plan(query)?;
        let [field] = plan.fields.as_slice() else { return Err(errors::operand_columns(1)) };
        let ty = field.ty.clone().with_nullable(true);
        Ok(members_as_text(self.subquery(SubqueryKind::Scalar, plan, ty)))
    }

    pub fn in_query(&mut self, expr: &ast::Expr, query: &ast::Query, negated: bool) -> Result<Expr> {
        let mut exprs = match self.row(expr) {
            Some(items) => items.iter().map(|e| self.expr(e)).collect::<Result<Vec<_>>>()?,
            None => vec![self.expr(expr)?],
        };
        let plan = self.subquery_plan(query)?;
        if plan.fields.len() != exprs.len() {
            return Err(errors::operand_columns(exprs.len()));
        }
        let mut by = Vec::with_capacity(exprs.len());
        let mut nullable = false;
        for (expr, field) in exprs.iter_mut().zip(&plan.fields) {
            nullable |= expr.ty.nullable || field.ty.nullable;
            let mut other = Expr::column(usize::MAX, field.ty.clone());
            by.push(unify(expr, &mut other, &self.folder, "=")?);
        }
        Ok(self.subquery(SubqueryKind::In { exprs, by, negated }, plan, ExprType::boolean(nullable)))
    }

    pub fn quantified(&mut self, op: BinaryOp, quantifier: ast::Quantifier, expr: &ast::Expr, query: &ast::Query) -> Result<Expr> {
        match (op, quantifier) {
            (BinaryOp::Eq, ast::Quantifier::Any) => return self.in_query(expr, query, false),
            (BinaryOp::Ne, ast::Quantifier::All) => return self.in_query(expr, query, true),
            _ => {}
        }
        let op = match op {
            BinaryOp::Eq => CompareOp::Eq,
            BinaryOp::Ne => CompareOp::Ne,
            BinaryOp::Lt => CompareOp::Lt,
            BinaryOp::Le => CompareOp::Le,
            BinaryOp::Gt => CompareOp::Gt,
            BinaryOp::Ge => CompareOp::Ge,
            _ => return Err(MySqlError::with_message(1064, "You have an error in your SQL syntax: <=> cannot be quantified")),
        };
        let mut expr = self.expr(expr)?;
        let plan = self.subquery_plan(query)?;
        let [field] = plan.fields.as_slice() else { return Err(errors::operand_columns(1)) };
        let mut other = Expr::column(usize::MAX, field.ty.clone());
        let by = unify(&mut expr, &mut other, &self.folder, op.symbol())?;
        let nullable = expr.ty.nullable || field.ty.nullable;
        let kind = SubqueryKind::Quantified { op, all: quantifier == ast::Quantifier::All, expr: Box::new(expr), by };
        Ok(self.subquery(kind, plan, ExprType::boolean(nullable)))
    }
}
