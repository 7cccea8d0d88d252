//! The binder's state, and the resolution of names through the queries around an expression.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use highkey_table::{Privileges, RoutineDef, Table, View};
use highkey_types::{Collation, MySqlError, Str, Value};

use super::fold::Folder;
use super::hints::HintedBlock;
use super::privileges::Below;
use super::scope::{Clause, Scope};
use super::view::Conditions;
use super::{BindContext, errors};
use crate::parse::ast::{self, ColumnRef, OptimizerHint};
use crate::parse::print::ResolvedNames;
use crate::plan::{Expr, ExprKind, ExprType, Rel};
use crate::routine::StoredFunction;
use crate::stack;

pub(super) type Result<T> = std::result::Result<T, MySqlError>;

/// A common table expression in scope.
pub(super) struct CteBinding {
    pub name: String,
    pub rel: Rel,
    /// How many queries enclosed its definition.
    pub level: usize,
}

/// Binds one statement.
pub(super) struct Binder<'a> {
    pub cx: &'a dyn BindContext,
    pub folder: Folder<'a>,
    /// Queries being bound, outermost first.
    pub scopes: Vec<Scope>,
    pub ctes: Vec<CteBinding>,
    /// The number of the next recursion, or common table expression that is made once.
    pub next_cte: usize,
    pub locking: bool,
    /// The one table that the statement changes, with its alias: subqueries may not read it.
    pub changing: Option<(Arc<Table>, Str)>,
    /// It puts rows into it that it names one by one: subqueries may read the table by another name. The alias is the table's name, or a view's.
    pub inserting: bool,
    /// The verb of the statement, for errors about views.
    pub operation: &'static str,
    /// Views met so far, those inside views too.
    pub views: Vec<Arc<View>>,
    /// Schema and name of the views that are being expanded, or defined, outermost first.
    pub expanding: Vec<(Str, Str)>,
    /// The first of `expanding` is a view that does not exist yet as it is bound.
    pub defining: bool,
    /// FROM is to give the base tables of its views too.
    pub exposing: bool,
    /// Conditions of views given so.
    pub exposed: Vec<Conditions>,
    /// There was a derived table or a view: the plan is to be made one with it.
    pub merges: bool,
    /// The user variables that LOAD DATA fills from its file, in lower case, and the collation of what they get.
    pub loaded: Option<(Vec<Str>, &'static Collation)>,
    /// What names have been found to be, for a view's text.
    pub names: Option<Box<ResolvedNames>>,
    /// Names ask for nothing of the account.
    pub trusted: bool,
    /// The query to be bound next is EXISTS's: see `Scope::star_unread`.
    pub star_unread: bool,
    /// The query to be bound next is of IN, EXISTS, ANY or ALL: see `Scope::groups_unread`.
    pub groups_unread: bool,
    /// Any of these lets FROM name a table; what of it may be read is asked for each column.
    pub readable: Privileges,
    /// What the account may do with all the tables that an exposed view reads: see `Below`.
    pub granted: Privileges,
    /// The same of the view that was bound last.
    pub granted_below: Privileges,
    /// The views that have been exposed.
    pub below: Vec<Below>,
    /// The query blocks with hints, and blocks below blocks with hints that name one.
    pub hinted: Vec<HintedBlock>,
    /// The hints of the blocks around the current one that name a block.
    pub hints_around: Vec<OptimizerHint>,
    /// The stored functions whose bodies are being bound, outermost first.
    pub calling: Vec<Arc<RoutineDef>>,
    /// Those that have been bound for the statement.
    pub called: Rc<RefCell<Vec<Arc<StoredFunction>>>>,
    /// How many bodies of stored functions have been bound for it.
    pub bodies: Rc<Cell<usize>>,
    /// What the result of the call that is bound next is called, if not by the function's name.
    pub result_name: Option<Str>,
    /// The operands around the current expression that are computed once: where each is written, and what stands for it.
    pub once: Vec<(usize, Expr)>,
    /// How many there have been.
    pub next_once: usize,
    /// How many queries are around the FROM that is being bound.
    pub from_depth: usize,
    /// How many of the expressions around the current one are being bound once more.
    repeating: usize,
    /// Expressions bound once more.
    repeated: usize,
    /// Operators of the plans that names of common table expressions and views have stood for.
    copied: usize,
}

/// Copies of expressions, and of operators, that a statement may be made of: some copies in each other soon take all memory.
const MOST_REPEATED: usize = 1 << 19;
const MOST_COPIED: usize = 1 << 15;
/// Levels of operators that names may add up to.
const MOST_LEVELS: usize = 2000;

impl<'a> Binder<'a> {
    pub fn new(cx: &'a dyn BindContext) -> Binder<'a> {
        Binder {
            cx,
            folder: Folder::new(cx),
            scopes: Vec::new(),
            ctes: Vec::new(),
            next_cte: 0,
            locking: false,
            changing: None,
            inserting: false,
            operation: "SELECT",
            views: Vec::new(),
            expanding: Vec::new(),
            defining: false,
            exposing: false,
            exposed: Vec::new(),
            merges: false,
            loaded: None,
            names: None,
            trusted: false,
            star_unread: false,
            groups_unread: false,
            readable: Privileges::SELECT,
            granted: Privileges::ALL,
            granted_below: Privileges::ALL,
            below: Vec::new(),
            hinted: Vec::new(),
            hints_around: Vec::new(),
            calling: Vec::new(),
            called: Rc::default(),
            bodies: Rc::default(),
            result_name: None,
            once: Vec::new(),
            next_once: 0,
            from_depth: 0,
            repeating: 0,
            repeated: 0,
            copied: 0,
        }
    }

    /// Runs `bind`, which binds these once more. Error 1436 if such copies in each other become too many; nothing is in a name or a constant.
    pub fn again<T>(&mut self, exprs: &[ast::Expr], bind: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let is_copy = exprs.iter().any(|e| !matches!(e.kind, ast::ExprKind::Column(_) | ast::ExprKind::Literal(_) | ast::ExprKind::Param(_) | ast::ExprKind::UserVar(_)));
        self.repeating += usize::from(is_copy);
        let bound = bind(self);
        self.repeating -= usize::from(is_copy);
        bound
    }

    /// An expression is bound.
    pub fn count_expr(&mut self) -> Result<()> {
        if self.repeating > 0 {
            self.repeated += 1;
            if self.repeated > MOST_REPEATED {
                return Err(stack::overrun());
            }
        }
        Ok(())
    }

    /// A name stands for this plan: error 1436 if names that stand for names come to too many or too high ones.
    pub fn count_copy(&mut self, rel: &Rel) -> Result<()> {
        let (operators, levels) = rel.size();
        self.copied += operators;
        if self.copied > MOST_COPIED || levels > MOST_LEVELS { Err(stack::overrun()) } else { Ok(()) }
    }

    /// The query being bound; outside of any query an empty one.
    pub fn scope(&mut self) -> &mut Scope {
        if self.scopes.is_empty() {
            self.scopes.push(Scope::default());
        }
        self.scopes.last_mut().expect("a scope was pushed")
    }

    /// Runs `f` with `scope` as the innermost query.
    pub fn within<T>(&mut self, scope: Scope, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<(T, Scope)> {
        self.scopes.push(scope);
        let result = f(self);
        let scope = self.scopes.pop().expect("pushed above");
        result.map(|value| (value, scope))
    }

    /// The expression that a column name means: a field, an alias, or a field of an enclosing query.
    pub fn column(&mut self, name: &ColumnRef) -> Result<Expr> {
        let clause = self.scope().clause().name();
        let innermost = self.scopes.len() - 1;
        for (depth, scope) in self.scopes.iter().rev().enumerate() {
            debug_assert!(depth <= innermost);
            if scope.beside.is_some_and(|beside| !beside.open) {
                continue;
            }
            if depth == 0 && scope.aliases_first {
                let Some(expr) = scope.find_chosen(name)? else { continue };
                if let Some(field) = expr.as_column().and_then(|index| scope.from.fields.get(index)) {
                    self.check_field(Privileges::SELECT, field)?;
                }
                return Ok(expr);
            }
            if let Some(index) = scope.find(name)? {
                if self.is_named_beside(name, depth) {
                    return Err(errors::ambiguous_column(&name.to_string(), clause));
                }
                self.check_field(Privileges::SELECT, &scope.from.fields[index])?;
                let ty = scope.from.fields[index].ty.clone();
                let kind = if depth == 0 { ExprKind::Column(index) } else { ExprKind::Outer { depth, index } };
                return Ok(Expr { kind, ty });
            }
            if depth == 0
                && !scope.in_aggregate
                && let Some(expr) = scope.find_alias(name)?
            {
                return Ok(expr);
            }
        }
        if clause != Clause::Having.name() {
            self.check_unknown(name)?;
        }
        Err(errors::unknown_column(&name.to_string(), clause))
    }

    /// The tables beside are in several scopes: true if one further out than the one at `depth`, of the same FROM, has a column of that name, too.
    fn is_named_beside(&self, name: &ColumnRef, depth: usize) -> bool {
        let mut outwards = self.scopes.iter().rev().skip(depth);
        let Some(from) = outwards.next().and_then(|scope| scope.beside) else { return false };
        outwards.take_while(|scope| scope.beside == Some(from)).any(|scope| !matches!(scope.find(name), Ok(None)))
    }

    /// The n-th parameter: its value as a literal if it is known, else a parameter that its context types.
    pub fn param(&mut self, index: usize) -> Expr {
        if let Some((variable, ty)) = self.cx.local(index) {
            let depth = self.scopes.len().saturating_sub(1);
            let kind = if depth == 0 { ExprKind::Column(variable) } else { ExprKind::Outer { depth, index: variable } };
            return Expr { kind, ty: ty.clone() };
        }
        match self.cx.params().and_then(|values| values.get(index)) {
            Some(value) => {
                let ty = self.cx.declared_type(index).cloned().unwrap_or_else(|| super::literal::type_of(value, self.cx.collation()));
                Expr::literal(value.clone(), ty)
            }
            None => {
                let ty = self.cx.param_type(index).cloned().unwrap_or_else(ExprType::null);
                Expr { kind: ExprKind::Param(index), ty }
            }
        }
    }

    /// A bound string constant.
    pub fn text(&self, text: &str) -> Expr {
        let length = text.chars().count() as u32;
        Expr::literal(Value::Text(Str::from(text)), ExprType::text(length, self.cx.collation(), false))
    }
}
