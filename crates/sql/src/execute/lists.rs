//! `number IN ('2x', '3')`: MySQL makes numbers of a list of literal strings before the statement begins, with a warning for each that is cut. Strict mode, which
//! makes such warnings errors, does not hear these yet.

use highkey_types::cast::{self, CastContext};
use highkey_types::{Date, Str, Value, Warning};

use crate::plan::{CompareBy, Expr, ExprKind, Rel};
use crate::session::SessionState;

/// A string of such a list would be cut.
pub(crate) fn has_cut_member(expr: &Expr, state: &SessionState) -> bool {
    let mut found = false;
    expr.walk(&mut |e| match &e.kind {
        ExprKind::In { list, by, .. } if is_text_list(list, *by) => found |= list.iter().any(|item| cut(item, state).is_some()),
        ExprKind::Subquery(subquery) => found |= plan_has_cut_member(&subquery.plan, state),
        _ => {}
    });
    found
}

/// The same of a plan.
pub(crate) fn plan_has_cut_member(rel: &Rel, state: &SessionState) -> bool {
    let mut found = false;
    rel.for_each_root(&mut |root| found = found || has_cut_member(root, state));
    found
}

/// Cuts the strings of such lists, and warns.
pub(crate) fn cut_members(expr: &mut Expr, state: &mut SessionState) {
    expr.walk_mut(&mut |e| match &mut e.kind {
        ExprKind::In { list, by, .. } => {
            let texts = is_text_list(list, *by);
            for item in list.iter_mut().filter(|_| texts) {
                if let Some((number, warnings)) = cut(item, state) {
                    item.kind = ExprKind::Literal(Value::Text(number));
                    warnings.into_iter().for_each(|warning| state.push_warning(warning));
                }
            }
        }
        ExprKind::Subquery(subquery) => cut_members_of_plan(&mut subquery.plan, state),
        _ => {}
    });
}

/// The same in a plan.
pub(crate) fn cut_members_of_plan(rel: &mut Rel, state: &mut SessionState) {
    rel.for_each_root_mut(&mut |root| cut_members(root, state));
}

fn is_text_list(list: &[Expr], by: CompareBy) -> bool {
    by == CompareBy::Double && list.len() > 1 && list.iter().all(|item| matches!(item.kind, ExprKind::Literal(Value::Text(_) | Value::Null)))
}

/// The number that a literal string begins with, as a string, and the warnings of cutting it; `None` if it is all of it.
fn cut(item: &Expr, state: &SessionState) -> Option<(Str, Vec<Warning>)> {
    let value = item.as_literal()?;
    let mut warnings = Vec::new();
    let mut cx = CastContext { warnings: &mut warnings, mode: state.config.sql_mode, today: Date::default(), time_zone: &state.config.time_zone };
    let number = cast::to_f64(value, &mut cx)?;
    (!warnings.is_empty()).then(|| (Str::from(number.to_string().as_str()), warnings))
}
