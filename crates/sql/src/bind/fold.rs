//! Constant folding: what literals alone decide is decided at bind time, unless it would warn or fail, or depends on the time or on more of the session.

use std::cell::Cell;
use std::time::Duration;

use highkey_types::cast::{self, CastContext};
use highkey_types::{Collation, Date, DateTime, MySqlError, SqlMode, TimeZone, Value, Warning};

use super::BindContext;
use crate::expr::{EvalContext, eval};
use crate::functions::FuncId;
use crate::parse::ast::VariableScope;
use crate::plan::{Expr, ExprKind};

/// Folds under the settings of the binding session.
pub(super) struct Folder<'a> {
    cx: &'a dyn BindContext,
}

/// The evaluator's surroundings when there is no execution yet.
struct Surroundings<'a> {
    cx: &'a dyn BindContext,
    warnings: usize,
    random: Option<(u32, u32)>,
    /// What was evaluated depends on the time, as a TIME that becomes a date does, or on a variable.
    asked: Cell<bool>,
}

impl EvalContext for Surroundings<'_> {
    fn sql_mode(&self) -> SqlMode {
        self.cx.sql_mode()
    }

    fn time_zone(&self) -> &TimeZone {
        self.cx.time_zone()
    }

    fn now_micros(&self) -> i64 {
        self.asked.set(true);
        0
    }

    fn system_var(&self, scope: Option<VariableScope>, name: &str) -> Result<Value, MySqlError> {
        self.asked.set(true);
        self.cx.system_var(scope, name)
    }

    /// The least: what may be too long for whoever executes it warns here.
    fn max_allowed_packet(&self) -> usize {
        1024
    }

    fn warn(&mut self, _: Warning) {
        self.warnings += 1;
    }

    fn random_state(&mut self, _: usize) -> &mut Option<(u32, u32)> {
        &mut self.random
    }

    /// What takes long is left to whoever executes it, and can be killed there.
    fn sleep(&mut self, _: Duration) -> Result<bool, MySqlError> {
        Ok(true)
    }
}

impl<'a> Folder<'a> {
    pub fn new(cx: &'a dyn BindContext) -> Folder<'a> {
        Folder { cx }
    }

    /// collation_connection.
    pub fn collation(&self) -> &'static Collation {
        self.cx.collation()
    }

    /// The present value of a user variable, by its name in lower case; `None` if it was never set.
    pub fn user_var(&self, name: &str) -> Option<Value> {
        self.cx.user_var(name).map(|(value, _)| value)
    }

    /// The literal that `expr` is, if it is made of literals, neither fails nor warns and asks neither what time it is nor for variables; else itself.
    pub fn fold(&self, expr: Expr) -> Expr {
        if matches!(expr.kind, ExprKind::Literal(_)) || expr.children().iter().any(|c| !matches!(c.kind, ExprKind::Literal(_))) || !expr.is_foldable() {
            return expr;
        }
        // A quotient has digits beyond its type that the operators around it see.
        if matches!(&expr.kind, ExprKind::Call { func: FuncId::Div, .. }) {
            return expr;
        }
        let mut surroundings = Surroundings { cx: self.cx, warnings: 0, random: None, asked: Cell::new(false) };
        match eval(&expr, &[], &mut surroundings) {
            // Of COALESCE a string becomes a number without the warning that a literal gives.
            Ok(Value::Text(text)) if matches!(&expr.kind, ExprKind::Call { func: FuncId::Coalesce, .. }) && text.parse::<f64>().is_err() => expr,
            Ok(value) if surroundings.warnings == 0 && !surroundings.asked.get() => {
                // A table made of it has a column that may be NULL.
                let nullable = value.is_null() || expr.ty.ty.is_geometry() && expr.ty.nullable;
                Expr { kind: ExprKind::Literal(value), ty: expr.ty.with_nullable(nullable) }
            }
            _ => expr,
        }
    }

    /// A conversion at bind time; `None` if it would warn.
    pub fn quietly<T>(&self, convert: impl FnOnce(&mut CastContext<'_>) -> Option<T>) -> Option<T> {
        let (value, warns) = self.heard(convert);
        value.filter(|_| !warns)
    }

    /// The moment as which a string compares (`expr::moment`), and whether that warns; `None` if it is no date.
    pub fn moment(&self, value: &Value) -> Option<(DateTime, bool)> {
        let (moment, warns) = self.heard(|cx| {
            cx.mode.allow_invalid_dates = true;
            cast::to_datetime(value, cx)
        });
        moment.map(|moment| (moment, warns))
    }

    /// A conversion, and whether it warns.
    fn heard<T>(&self, convert: impl FnOnce(&mut CastContext<'_>) -> T) -> (T, bool) {
        let mut warnings = Vec::new();
        let mut cx = CastContext { warnings: &mut warnings, mode: self.cx.sql_mode(), today: Date::default(), time_zone: self.cx.time_zone() };
        let value = convert(&mut cx);
        (value, !warnings.is_empty())
    }
}
