//! Name resolution: which field a column name means, here or in an enclosing query.

use highkey_types::MySqlError;

use super::errors;
use crate::parse::ast::ColumnRef;
use crate::plan::{Aggregate, Expr, ExprKind, Field, Subquery, WindowExpr};

/// The clause being bound: it is named in errors and decides what is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clause {
    FieldList,
    On,
    Where,
    Group,
    Having,
    Order,
    Partition,
    Values,
    /// The document of JSON_TABLE.
    TableFunction,
    Other,
}

impl Clause {
    pub fn name(self) -> &'static str {
        match self {
            Clause::FieldList | Clause::Values | Clause::Other => "field list",
            Clause::On => "on clause",
            Clause::Where => "where clause",
            Clause::Group => "group statement",
            Clause::Having => "having clause",
            Clause::Order => "order clause",
            Clause::Partition => "window partition by",
            Clause::TableFunction => "a table function argument",
        }
    }

    fn allows_aggregates(self) -> bool {
        matches!(self, Clause::FieldList | Clause::Having | Clause::Order | Clause::Partition)
    }

    fn allows_windows(self) -> bool {
        matches!(self, Clause::FieldList | Clause::Order)
    }
}

/// What FROM makes visible.
#[derive(Debug, Clone, Default)]
pub(super) struct FromScope {
    pub fields: Vec<Field>,
    /// Positions in the order of `*`; columns joined by USING come once.
    pub star: Vec<usize>,
    /// Positions that only a qualified name finds (the other side of USING).
    pub hidden: Vec<usize>,
}

impl FromScope {
    pub fn of(fields: Vec<Field>) -> FromScope {
        FromScope { star: (0..fields.len()).collect(), fields, hidden: Vec::new() }
    }
}

/// The tables of a FROM that stand before one that is being bound, which may name their columns if it is LATERAL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Beside {
    /// How many queries are around that FROM.
    pub from: usize,
    /// What is being bound is LATERAL.
    pub open: bool,
}

/// One query's names while it is being bound.
#[derive(Debug, Default)]
pub(super) struct Scope {
    pub from: FromScope,
    /// It is no query: tables beside the one that is being bound.
    pub beside: Option<Beside>,
    pub clause: Option<Clause>,
    /// Select aliases, when the clause sees them.
    pub aliases: Vec<(String, Expr)>,
    /// Aggregates met so far.
    pub aggregates: Vec<Aggregate>,
    /// Window functions met so far.
    pub windows: Vec<WindowExpr>,
    /// Named windows.
    pub named_windows: Vec<(String, crate::parse::ast::WindowSpec)>,
    /// Those of them that something uses.
    pub used_windows: Vec<String>,
    /// Inside an aggregate's or window function's arguments.
    pub in_aggregate: bool,
    /// GROUP BY expressions, for GROUPING().
    pub groups: Vec<Expr>,
    /// It has GROUP BY without ROLLUP: its aggregates are kept in rows of groups.
    pub grouped: bool,
    pub rollup: bool,
    /// It has a GROUP BY: these columns of ENUM and SET keep their type in MIN and MAX.
    pub kept_members: Vec<usize>,
    /// Nothing of what its `*` stands for is read.
    pub star_unread: bool,
    /// The query is asked which rows it has, not how many: GROUP BY without aggregates chooses none of them, and MySQL forgets it.
    pub groups_unread: bool,
    /// HAVING: names mean what is grouped or selected, outside of aggregates.
    pub aliases_first: bool,
    /// The row of ON DUPLICATE KEY UPDATE's VALUES(): first position of the new row.
    pub values_base: Option<usize>,
}

impl Scope {
    pub fn new(from: FromScope) -> Scope {
        Scope { from, ..Scope::default() }
    }

    pub fn clause(&self) -> Clause {
        self.clause.unwrap_or(Clause::Other)
    }

    pub fn check_aggregate(&self) -> Result<(), MySqlError> {
        if self.in_aggregate || !self.clause().allows_aggregates() { Err(errors::invalid_group_use()) } else { Ok(()) }
    }

    pub fn check_window(&self, name: &str) -> Result<(), MySqlError> {
        if self.in_aggregate || !self.clause().allows_windows() {
            return Err(MySqlError::with_message(3593, format!("You cannot use the window function '{}' in this context.'", name.to_ascii_lowercase())));
        }
        Ok(())
    }

    /// The fields of FROM that `name` may mean.
    fn named(&self, name: &ColumnRef) -> impl Iterator<Item = usize> {
        let means = move |i: usize, field: &Field| {
            same_name(&field.name, &name.column)
                && match (&name.table, &name.schema) {
                    (None, _) => !self.from.hidden.contains(&i),
                    (Some(table), _) if !same_table(&field.table, table) => false,
                    (Some(_), Some(schema)) => field.schema.is_empty() || same_table(&field.schema, schema),
                    (Some(_), None) => true,
                }
        };
        self.from.fields.iter().enumerate().filter(move |(i, field)| means(*i, field)).map(|(i, _)| i)
    }

    /// The field that `name` means in FROM: none, one, or error 1052.
    pub fn find(&self, name: &ColumnRef) -> Result<Option<usize>, MySqlError> {
        let mut named = self.named(name);
        match (named.next(), named.next()) {
            (Some(_), Some(_)) => Err(errors::ambiguous_column(&name.to_string(), self.clause().name())),
            (found, _) => Ok(found),
        }
    }

    /// What `name` means in HAVING: what is grouped by it, what is selected as it, or a column that is selected under another name.
    pub fn find_chosen(&self, name: &ColumnRef) -> Result<Option<Expr>, MySqlError> {
        let column = |index: usize| Expr::column(index, self.from.fields[index].ty.clone());
        let mut grouped = self.named(name).filter(|&index| self.groups.iter().any(|group| group.as_column() == Some(index)));
        match (grouped.next(), grouped.next()) {
            (Some(_), Some(_)) => return Err(errors::ambiguous_column(&name.to_string(), self.clause().name())),
            (Some(index), None) => return Ok(Some(column(index))),
            (None, _) => {}
        }
        if !self.in_aggregate
            && let Some(expr) = self.find_alias(name)?
        {
            let mut of_window = false;
            expr.walk(&mut |e| of_window |= matches!(e.kind, ExprKind::WindowRef(_)));
            return if of_window { Err(highkey_types::errors::window_invalid_window_func_alias_use(&name.column)) } else { Ok(Some(expr)) };
        }
        let mut selected = self.named(name).filter(|&index| self.aliases.iter().any(|(_, expr)| expr.as_column() == Some(index)));
        match (selected.next(), selected.next()) {
            (Some(_), Some(_)) => Err(errors::ambiguous_column(&name.to_string(), self.clause().name())),
            (found, _) => Ok(found.map(column)),
        }
    }

    /// The select alias that `name` means: the first that is no column, or else error 1052 if several columns differ.
    pub fn find_alias(&self, name: &ColumnRef) -> Result<Option<Expr>, MySqlError> {
        if name.table.is_some() {
            return Ok(None);
        }
        let mut found: Option<&Expr> = None;
        for (alias, expr) in &self.aliases {
            if same_name(alias, &name.column) {
                if !is_column(expr) {
                    return Ok(Some(expr.clone()));
                }
                if found.is_some_and(|before| !same_expr(before, expr)) {
                    return Err(errors::ambiguous_column(&name.column, self.clause().name()));
                }
                found = Some(expr);
            }
        }
        Ok(found.cloned())
    }
}

/// A column of this query or of one around it.
pub(super) fn is_column(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Column(_) | ExprKind::Outer { .. })
}

/// Column names and aliases compare without case.
pub(super) fn same_name(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b) || (!(a.is_ascii() && b.is_ascii()) && a.to_lowercase() == b.to_lowercase())
}

/// Table names and aliases compare as lower_case_table_names=0 says: exactly.
pub(super) fn same_table(a: &str, b: &str) -> bool {
    a == b || (a.eq_ignore_ascii_case("information_schema") && b.eq_ignore_ascii_case("information_schema"))
}

/// Two expressions are the same computation on the same row, and compare under the same collation.
pub(super) fn same_expr(a: &Expr, b: &Expr) -> bool {
    use std::mem::discriminant;
    if discriminant(&a.kind) != discriminant(&b.kind) || a.ty.ty.collation.id != b.ty.ty.collation.id {
        return false;
    }
    let own = match (&a.kind, &b.kind) {
        (ExprKind::Column(x), ExprKind::Column(y)) | (ExprKind::Param(x), ExprKind::Param(y)) => x == y,
        (ExprKind::AggregateRef(x), ExprKind::AggregateRef(y)) | (ExprKind::WindowRef(x), ExprKind::WindowRef(y)) => x == y,
        (ExprKind::Outer { depth: d, index: i }, ExprKind::Outer { depth: e, index: j }) => (d, i) == (e, j),
        (ExprKind::Literal(x), ExprKind::Literal(y)) => x == y && a.ty.ty.kind == b.ty.ty.kind,
        (ExprKind::UserVar(x), ExprKind::UserVar(y)) => x == y,
        (ExprKind::SystemVar { scope: s, name: x }, ExprKind::SystemVar { scope: t, name: y }) => (s, x) == (t, y),
        (ExprKind::Call { func: f, .. }, ExprKind::Call { func: g, .. }) => f == g && !f.is_volatile(),
        // As in MySQL, whatever else it depends on.
        (ExprKind::Stored { function: f, .. }, ExprKind::Stored { function: g, .. }) => f.is_same(g),
        (ExprKind::Match { search: x, .. }, ExprKind::Match { search: y, .. }) => x.is_same(y),
        (ExprKind::Compare { op: o, by: x, .. }, ExprKind::Compare { op: p, by: y, .. }) => o == p && x == y,
        (ExprKind::IsNull { negated: x, .. }, ExprKind::IsNull { negated: y, .. }) => x == y,
        (ExprKind::IsTruth { value: v, negated: x, .. }, ExprKind::IsTruth { value: w, negated: y, .. }) => (v, x) == (w, y),
        (ExprKind::In { by: x, negated: m, .. }, ExprKind::In { by: y, negated: n, .. }) => x == y && m == n,
        (ExprKind::Like { escape: x, negated: m, collation: c, .. }, ExprKind::Like { escape: y, negated: n, collation: d, .. }) => {
            x == y && m == n && c.id == d.id
        }
        (ExprKind::Case { otherwise: x, .. }, ExprKind::Case { otherwise: y, .. }) => x.is_some() == y.is_some(),
        (ExprKind::Cast(_), ExprKind::Cast(_)) => a.ty.ty == b.ty.ty,
        // Each binding has numbers of its own.
        (ExprKind::Once { .. }, ExprKind::Once { .. }) | (ExprKind::Kept(_), ExprKind::Kept(_)) => true,
        (ExprKind::And(_), _) | (ExprKind::Or(_), _) | (ExprKind::Not(_), _) => true,
        (ExprKind::Subquery(x), ExprKind::Subquery(y)) => same_subquery(x, y),
        // Assignments are never taken for the same.
        _ => false,
    };
    let (left, right) = (a.children(), b.children());
    own && left.len() == right.len() && left.iter().zip(right).all(|(x, y)| same_expr(x, y))
}

/// One bound twice, or copied: equal to the last detail, and with one answer for a row.
fn same_subquery(a: &Subquery, b: &Subquery) -> bool {
    // Its common table expressions have other numbers each time.
    let text = |sub: &Subquery| {
        let mut sub = sub.clone();
        sub.plan.inline_lone_ctes();
        format!("{sub:?}")
    };
    !a.plan.is_volatile() && text(a) == text(b)
}
