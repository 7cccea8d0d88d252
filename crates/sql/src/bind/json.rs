//! Values inside JSON documents: what is true or false there, what a text is.

use highkey_types::{Charset, Collation, ColumnType, TypeKind};

use super::binder::{Binder, Result};
use crate::functions::{FuncId, JSON_VALUE_DEFAULT, JSON_VALUE_ERROR, JSON_VALUE_NULL};
use crate::parse::ast;
use crate::plan::{Coercibility, Expr, ExprKind, ExprType, SubqueryKind};

impl Binder<'_> {
    /// JSON_VALUE: the function's arguments are document and path, and for an empty and for a wrong result what to do and the value for it.
    pub fn json_value(&mut self, call: &ast::JsonValueCall) -> Result<Expr> {
        let (document, path) = (self.expr(&call.document)?, self.expr(&call.path)?);
        let binary = Collation::binary_of(Charset::Utf8mb4);
        let ty = match &call.returning {
            None => ExprType::text(512, binary, true).with_coercibility(Coercibility::Implicit),
            Some(returning) => {
                let mut ty = super::types::cast_type(returning, &document, self.cx.collation())?.with_nullable(true);
                if matches!(returning, ast::CastType::Char { charset: None, .. }) {
                    ty.ty.collation = binary;
                }
                ty
            }
        };
        let mut args = vec![document, path];
        for otherwise in [&call.on_empty, &call.on_error] {
            let (answer, value) = match otherwise {
                ast::JsonOtherwise::Null => (JSON_VALUE_NULL, Expr::null()),
                ast::JsonOtherwise::Error => (JSON_VALUE_ERROR, Expr::null()),
                ast::JsonOtherwise::Default(value) => {
                    let value = self.expr(value)?;
                    (JSON_VALUE_DEFAULT, self.folder.fold(Expr { kind: ExprKind::Cast(Box::new(value)), ty: ty.clone() }))
                }
            };
            args.extend([Expr::int(answer), value]);
        }
        Ok(self.folder.fold(Expr::call(FuncId::JsonValue, args, ty)))
    }
}

fn json(nullable: bool) -> ExprType {
    ExprType::column(ColumnType::new(TypeKind::Json), nullable)
}

/// TRUE, FALSE and conditions: true or false inside JSON, where 1 and 0 are other values. What only passes a condition's value on is a number.
fn is_truth(expr: &Expr) -> bool {
    expr.ty.truth
        && match &expr.kind {
            ExprKind::Literal(_) | ExprKind::Call { .. } => true,
            ExprKind::Subquery(subquery) => !matches!(subquery.kind, SubqueryKind::Scalar),
            kind => kind.is_predicate(),
        }
}

/// A condition as true or false; anything else as it is.
pub(super) fn truth_as_json(expr: Expr) -> Expr {
    if !is_truth(&expr) {
        return expr;
    }
    let ty = json(expr.ty.nullable);
    Expr::call(FuncId::JsonTruth, vec![expr], ty)
}

/// A value inside a JSON document: text is a JSON string there, not a document to be parsed.
pub(super) fn as_json(expr: Expr) -> Expr {
    let expr = truth_as_json(expr);
    if expr.ty.ty.kind == TypeKind::Json {
        return expr;
    }
    let ty = json(expr.ty.nullable);
    Expr::call(FuncId::JsonOf, vec![expr], ty)
}

/// Argument `i` of `func` is a value inside a document.
pub(super) fn takes_value(func: FuncId, i: usize) -> bool {
    match func {
        FuncId::JsonArray => true,
        FuncId::JsonObject => i % 2 == 1,
        FuncId::JsonSet | FuncId::JsonInsert | FuncId::JsonReplace | FuncId::JsonArrayAppend | FuncId::JsonArrayInsert => i > 0 && i % 2 == 0,
        _ => false,
    }
}

/// The arguments of `func` come in pairs, after a document if it takes one.
pub(super) fn is_unpaired(func: FuncId, count: usize) -> bool {
    match func {
        FuncId::JsonObject => count % 2 == 1,
        FuncId::JsonSet | FuncId::JsonInsert | FuncId::JsonReplace | FuncId::JsonArrayAppend | FuncId::JsonArrayInsert => count % 2 == 0,
        _ => false,
    }
}
