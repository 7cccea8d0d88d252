//! One SELECT: FROM, WHERE, GROUP BY, HAVING, windows, the select list, DISTINCT, ORDER BY and LIMIT.

use highkey_types::{MySqlError, Str, Value};

use super::binder::{Binder, Result};
use super::group::{Grouping, Place, place_rollup_set};
use super::hints::{HintedBlock, JoinHints, choose_indexes, join_hints};
use super::join_order::ordered;
use super::merge::has_members;
use super::scope::{Clause, FromScope, Scope, is_column, same_expr, same_name};
use super::subquery::gives_one_row;
use super::{TableSource, errors};
use crate::full_text::search_of_condition;
use crate::parse::ast::{self, ExprKind as Ast, MatchMode, SelectItem};
use crate::plan::{Aggregate, AggregateFunc, Expr, ExprKind, ExprType, Field, JoinKind, Rel, RelKind, SortKey};

/// What sorts rows that no ORDER BY sorts: those of one table that MATCH finds come in the order of their rank, but in boolean mode.
fn best_first(from: &Rel, filter: Option<&Expr>) -> Option<Expr> {
    if !matches!(from.kind, RelKind::Scan { .. }) {
        return None;
    }
    filter?.conjuncts().iter().find_map(|condition| {
        let (search, columns) = search_of_condition(condition)?;
        let kind = ExprKind::Match { search: search.clone(), columns: columns.to_vec() };
        (search.mode() != MatchMode::Boolean).then(|| Expr { kind, ty: ExprType::double(true) })
    })
}

/// The tables of information_schema that MySQL has as views that it merges.
const MERGED_SCHEMA_VIEWS: &[&str] = &[
    "character_sets",
    "check_constraints",
    "collation_character_set_applicability",
    "collations",
    "column_statistics",
    "columns",
    "events",
    "parameters",
    "partitions",
    "referential_constraints",
    "routines",
    "schemata",
    "statistics",
    "tables",
    "triggers",
    "views",
];

/// SELECT STRAIGHT_JOIN: the tables are joined in the order in which FROM names them.
fn straighten(from: &mut Rel) {
    if let RelKind::Apply { input, .. } = &mut from.kind {
        return straighten(input);
    }
    let RelKind::Join { kind, left, right, .. } = &mut from.kind else { return };
    if *kind == JoinKind::Inner {
        *kind = JoinKind::Straight;
    }
    straighten(left);
    straighten(right);
}

/// What surrounds a SELECT in its query.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'q> {
    pub order_by: &'q [ast::OrderItem],
    pub limit: Option<&'q ast::Limit>,
    pub locks: &'q [ast::LockClause],
}

impl Binder<'_> {
    pub fn select(&mut self, select: &ast::Select, around: Surroundings<'_>) -> Result<Rel> {
        let star_unread = std::mem::take(&mut self.star_unread);
        let groups_unread = std::mem::take(&mut self.groups_unread);
        // Those of views mean nothing.
        let outer_hints = self.hints_around.len();
        let hints: &[ast::OptimizerHint] = if self.expanding.is_empty() { &select.hints } else { &[] };
        self.hints_around.extend(hints.iter().filter(|hint| hint.block.is_some()).cloned());
        let (mut from, names) = self.from_clause(&select.from, around.locks)?;
        let mut joins = JoinHints::default();
        if select.number > 0 && self.expanding.is_empty() && !(hints.is_empty() && self.hints_around.is_empty()) {
            let block = HintedBlock::new(select.number, hints, &from);
            let outer = &self.hints_around[..outer_hints];
            choose_indexes(&mut from, &block, outer);
            joins = join_hints(&block, outer);
            // A common table expression may be bound again.
            if !self.hinted.iter().any(|known| known.number == block.number) {
                self.hinted.push(block);
            }
        }
        if select.straight_join || joins.fixed {
            straighten(&mut from);
        }
        for lock in around.locks {
            for table in &lock.of {
                if !from.fields.iter().any(|f| super::scope::same_table(&f.table, table)) {
                    return Err(MySqlError::with_message(3568, format!("Unresolved table name `{table}` in locking clause.")));
                }
            }
        }
        for (i, (window, _)) in select.windows.iter().enumerate() {
            if select.windows[..i].iter().any(|(before, _)| same_name(before, window)) {
                return Err(highkey_types::errors::window_duplicate_name(window));
            }
        }
        let mut scope = Scope::new(names);
        scope.named_windows = select.windows.clone();
        scope.rollup = select.rollup;
        scope.star_unread = star_unread;
        scope.groups_unread = groups_unread;
        if !select.group_by.is_empty() {
            scope.kept_members = (0..from.fields.len()).filter(|&i| has_members(&from.fields[i].ty) && !from.is_of_merged(i)).collect();
        }
        let (rel, _) = self.within(scope, |binder| binder.select_in_scope(select, around, from, &joins))?;
        self.hints_around.truncate(outer_hints);
        Ok(rel)
    }

    fn in_clause<T>(&mut self, clause: Clause, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let before = self.scope().clause.replace(clause);
        let result = f(self);
        self.scope().clause = before;
        result
    }

    fn select_in_scope(&mut self, select: &ast::Select, around: Surroundings<'_>, mut rel: Rel, joins: &JoinHints) -> Result<Rel> {
        let filter = match &select.filter {
            Some(filter) => Some(self.in_clause(Clause::Where, |b| b.where_condition(filter))?),
            None => None,
        };
        self.scope().grouped = !select.group_by.is_empty() && !select.rollup;
        // GROUP BY first: GROUPING() in the select list looks at it. Aliases it names are bound on their own.
        let (items, fields) = if select.rollup {
            let groups = self.group_items(select, None)?;
            self.scope().groups = groups;
            self.select_items(select, &rel)?
        } else {
            let (items, fields) = self.select_items(select, &rel)?;
            let groups = self.group_items(select, Some((&items, &fields)))?;
            self.scope().groups = groups;
            (items, fields)
        };
        let mut items = items;
        let mut fields = fields;
        let scope = self.scope();
        let chooses = select.rollup || select.having.is_some() || !around.order_by.is_empty() || !scope.aggregates.is_empty() || !scope.windows.is_empty();
        if scope.groups_unread && !chooses {
            scope.groups.clear();
        }
        let aliases: Vec<(String, Expr)> = fields.iter().zip(&items).map(|(f, e)| (f.name.to_string(), e.clone())).collect();

        let mut having = None;
        if let Some(condition) = &select.having {
            self.scope().aliases = aliases.clone();
            self.scope().aliases_first = true;
            having = Some(self.in_clause(Clause::Having, |b| b.whole_condition(condition))?);
            self.scope().aliases_first = false;
        }
        let is_aggregate = |aggregate: &Aggregate| aggregate.func != AggregateFunc::AnyValue;
        let one_row = self.scope().groups.is_empty() && self.scope().aggregates.iter().any(is_aggregate);
        let (mut keys, mut selected) = self.order_keys(around.order_by, &items, &fields, &aliases)?;
        self.scope().aliases.clear();
        if one_row {
            // Nothing is to be sorted, whatever the keys are.
            keys.clear();
            selected.clear();
        } else if self.scope().groups.is_empty() {
            let aggregates = &self.scope().aggregates;
            let aggregated = |key: &SortKey| {
                let mut found = false;
                key.expr.walk(&mut |e| found |= matches!(e.kind, ExprKind::AggregateRef(index) if is_aggregate(&aggregates[index])));
                found
            };
            if let Some(at) = keys.iter().position(aggregated) {
                return Err(errors::aggregate_orders_rows(at + 1));
            }
        }

        if !select.windows.is_empty() {
            self.check_unused_windows()?;
        }
        let groups = std::mem::take(&mut self.scope().groups);
        let mut aggregates = std::mem::take(&mut self.scope().aggregates);
        let mut windows = std::mem::take(&mut self.scope().windows);
        if groups.is_empty() && !aggregates.is_empty() && aggregates.iter().all(|a| a.func == AggregateFunc::AnyValue) {
            // ANY_VALUE alone makes no group: it is its argument.
            let of_windows = windows.iter_mut().flat_map(|w| w.args.iter_mut().chain(&mut w.partition_by).chain(w.order_by.iter_mut().map(|k| &mut k.expr)));
            let all = items.iter_mut().chain(&mut having).chain(keys.iter_mut().map(|k| &mut k.expr)).chain(of_windows);
            for expr in all {
                expr.walk_mut(&mut |e| {
                    if let ExprKind::AggregateRef(index) = e.kind {
                        *e = aggregates[index].args[0].clone();
                    }
                });
            }
            aggregates.clear();
        }
        let plain = keys.is_empty() && groups.is_empty() && aggregates.is_empty() && windows.is_empty() && !select.distinct && having.is_none();
        if plain && self.scopes.len() == 1 && self.expanding.is_empty() && let Some(search) = best_first(&rel, filter.as_ref()) {
            keys.push(SortKey { expr: search, desc: true });
            selected.push(None);
        }
        // MySQL lets a view be made that only the other mode lets be used.
        let full_group_by = self.cx.only_full_group_by() && !self.defining;
        let asks = full_group_by && !(groups.is_empty() && aggregates.is_empty());
        let determined = if asks { self.determined(&groups, &rel, filter.as_ref(), select.rollup) } else { Vec::new() };
        rel = ordered(rel, filter, joins);

        let mut distinct = select.distinct;
        let is_grouped = !groups.is_empty() || !aggregates.is_empty() || !windows.is_empty();
        if !groups.is_empty() || !aggregates.is_empty() {
            let input_fields = rel.fields.clone();
            let mut grouping = Grouping {
                groups: &groups,
                aggregates,
                fields: &input_fields,
                full_group_by,
                rollup: select.rollup,
                determined,
            };
            for (i, item) in items.iter_mut().enumerate() {
                grouping.rewrite(item, Place { position: i + 1, clause: "SELECT list" })?;
            }
            if let Some(having) = &mut having {
                grouping.rewrite(having, Place { position: 1, clause: "HAVING clause" })?;
            }
            for (i, key) in keys.iter_mut().enumerate() {
                grouping.rewrite(&mut key.expr, Place { position: i + 1, clause: "ORDER BY clause" })?;
            }
            for window in &mut windows {
                let exprs = window.args.iter_mut().chain(&mut window.partition_by).chain(window.order_by.iter_mut().map(|k| &mut k.expr));
                for expr in exprs {
                    grouping.rewrite(expr, Place { position: 1, clause: "SELECT list" })?;
                }
            }
            let aggregates = grouping.aggregates;
            let rollup_set = groups.len() + aggregates.len();
            rel = aggregate_rel(rel, &groups, aggregates, select.rollup);
            let all = items.iter_mut().chain(&mut having).chain(keys.iter_mut().map(|k| &mut k.expr));
            for expr in all {
                place_rollup_set(expr, rollup_set);
            }
            for window in &mut windows {
                let exprs = window.args.iter_mut().chain(&mut window.partition_by).chain(window.order_by.iter_mut().map(|k| &mut k.expr));
                exprs.for_each(|e| place_rollup_set(e, rollup_set));
            }
            // Each group is a row, and another one than the others if all that it is grouped by is selected, under the collation that it is grouped by.
            let is_group = |item: &Expr, group: usize| item.as_column() == Some(group) && item.ty.ty.collation.id == groups[group].ty.ty.collation.id;
            distinct &= select.rollup || !(0..groups.len()).all(|group| items.iter().any(|item| is_group(item, group)));
        }
        if let Some(having) = having {
            rel = rel.filter(having);
        }
        if !windows.is_empty() {
            let base = rel.fields.len();
            let mut window_fields = rel.fields.clone();
            window_fields.extend(windows.iter().map(|w| Field::computed(super::aggregate::empty(), w.ty.clone())));
            rel = Rel { kind: RelKind::Window { input: Box::new(rel), windows }, fields: window_fields };
            for expr in items.iter_mut().chain(keys.iter_mut().map(|k| &mut k.expr)) {
                expr.walk_mut(&mut |e| {
                    if let ExprKind::WindowRef(index) = e.kind {
                        e.kind = ExprKind::Column(base + index);
                    }
                });
            }
        }
        for (field, item) in fields.iter_mut().zip(&items) {
            field.ty = item.ty.clone();
        }
        let keys: Vec<(SortKey, Option<usize>)> = keys.into_iter().zip(selected).collect();
        let numbers_rows = !is_grouped && !keys.is_empty() && items.iter().any(assigns_variable) && is_of_one_source(&rel);
        if !distinct && !select.calc_found_rows && (numbers_rows || items.iter().any(Expr::calls_session)) {
            return self.finish_row_by_row(rel, items, fields, keys, around.limit);
        }
        self.finish(rel, items, fields, keys, distinct, around.limit)
    }

    /// As `finish`, of a list that calls functions which the session runs, or assigns variables: as in MySQL it is computed of rows that are in their order, and only of those that
    /// LIMIT leaves. What ORDER BY names of it is computed before.
    fn finish_row_by_row(&mut self, rel: Rel, items: Vec<Expr>, fields: Vec<Field>, keys: Vec<(SortKey, Option<usize>)>, limit: Option<&ast::Limit>) -> Result<Rel> {
        let mut sorted: Vec<Expr> = rel.fields.iter().enumerate().map(|(i, field)| Expr::column(i, field.ty.clone())).collect();
        let mut sorted_fields = rel.fields.clone();
        let mut list = items.clone();
        let mut sort = Vec::new();
        for (key, named) in keys {
            if key.expr.is_constant() {
                continue;
            }
            let named = named.or_else(|| items.iter().position(|item| same_expr(item, &key.expr)));
            let expr = named.map_or(key.expr, |position| items[position].clone());
            let column = Expr::column(sorted.len(), expr.ty.clone());
            if let Some(position) = named {
                list[position] = column.clone();
            }
            sorted_fields.push(Field::computed(super::aggregate::empty(), expr.ty.clone()));
            sorted.push(expr);
            sort.push(SortKey { expr: column, desc: key.desc });
        }
        let rel = if sort.is_empty() { rel } else { rel.project(sorted, sorted_fields).sort(sort) };
        let rel = self.limit(rel, limit)?;
        Ok(rel.project(list, fields))
    }

    /// Projection, DISTINCT, ORDER BY and LIMIT over the bound select list. `keys`: with the element of the list that each one names, if it names one.
    fn finish(&mut self, rel: Rel, items: Vec<Expr>, fields: Vec<Field>, keys: Vec<(SortKey, Option<usize>)>, distinct: bool, limit: Option<&ast::Limit>) -> Result<Rel> {
        let width = items.len();
        let mut exprs = items;
        let mut outputs = fields;
        let mut sort = Vec::new();
        for (i, (key, named)) in keys.into_iter().enumerate() {
            if key.expr.is_constant() {
                continue;
            }
            let position = match named.or_else(|| exprs.iter().position(|e| same_expr(e, &key.expr))) {
                Some(position) => position,
                None if distinct => {
                    // An expression over selected columns sorts what is left of them.
                    let mut expr = key.expr.clone();
                    let columns = expr.columns();
                    let place = |c: usize| exprs.iter().position(|e| e.as_column() == Some(c));
                    if !expr.has_subquery() && !columns.is_empty() && columns.iter().all(|c| place(*c).is_some()) {
                        expr.map_columns(&mut |c| place(c).unwrap_or(c));
                        sort.push(SortKey { expr, desc: key.desc });
                        continue;
                    }
                    if self.cx.only_full_group_by() {
                        return Err(not_selected(&rel, &key.expr, i + 1, |c| place(c).is_some()));
                    }
                    outputs.push(Field::computed(super::aggregate::empty(), key.expr.ty.clone()));
                    exprs.push(key.expr.clone());
                    exprs.len() - 1
                }
                None => {
                    outputs.push(Field::computed(super::aggregate::empty(), key.expr.ty.clone()));
                    exprs.push(key.expr.clone());
                    exprs.len() - 1
                }
            };
            let expr = Expr::column(position, exprs[position].ty.clone());
            sort.push(SortKey { expr, desc: key.desc });
        }
        let mut rel = rel.project(exprs, outputs);
        if distinct {
            rel = if rel.fields.len() == width { rel.distinct() } else { distinct_beside(rel, width) };
        }
        rel = rel.sort(sort);
        rel = self.limit(rel, limit)?;
        Ok(rel.truncate(width))
    }

    fn note_star(&mut self, at: usize, fields: &[Field]) {
        if self.names.is_some() {
            let columns = fields.iter().map(|f| self.resolved(f)).collect();
            if let Some(names) = &mut self.names {
                names.stars.insert(at, columns);
            }
        }
    }

    /// Whether a column of FROM is named in the result as it was defined, however it is written: one of what MySQL merges, which are views, also those of
    /// information_schema, and derived tables. A view that is being defined names its columns as they are written.
    fn is_named_as_defined(&self, from: &Rel, index: usize) -> bool {
        let field = &from.fields[index];
        let source = (!field.schema.is_empty()).then(|| self.source_of(&field.schema, &field.org_table));
        match source {
            _ if self.defining => false,
            Some(Ok(TableSource::Base(_))) => false,
            Some(Ok(TableSource::Virtual(table))) => MERGED_SCHEMA_VIEWS.contains(&&*table.name),
            _ => from.is_of_merged(index),
        }
    }

    /// `from`: what FROM gives.
    pub fn select_items(&mut self, select: &ast::Select, from: &Rel) -> Result<(Vec<Expr>, Vec<Field>)> {
        let mut items = Vec::new();
        let mut fields = Vec::new();
        for item in &select.items {
            match item {
                SelectItem::Star { at } => {
                    let scope = self.scope();
                    if scope.from.fields.is_empty() {
                        return Err(MySqlError::with_message(1096, "No tables used"));
                    }
                    let from: &FromScope = &scope.from;
                    let before = fields.len();
                    for i in &from.star {
                        let field = from.fields[*i].clone();
                        items.push(Expr::column(*i, field.ty.clone()));
                        fields.push(field);
                    }
                    if !self.scope().star_unread {
                        self.check_star(&fields[before..])?;
                    }
                    self.note_star(*at, &fields[before..]);
                }
                SelectItem::QualifiedStar { name, at } => {
                    let scope = self.scope();
                    let before = items.len();
                    for (i, field) in scope.from.fields.iter().enumerate() {
                        let schema = name.schema.as_ref().is_none_or(|s| super::scope::same_table(s, &field.schema));
                        if super::scope::same_table(&field.table, &name.name) && schema && !field.invisible {
                            items.push(Expr::column(i, field.ty.clone()));
                            fields.push(field.clone());
                        }
                    }
                    if items.len() == before {
                        return Err(errors::unknown_table(&name.to_string()));
                    }
                    if !self.scope().star_unread {
                        self.check_star(&fields[before..])?;
                    }
                    self.note_star(*at, &fields[before..]);
                }
                SelectItem::Expr { expr, name, aliased } => {
                    self.result_name = matches!(expr.kind, Ast::Function(_)).then(|| Str::from(name.as_str()));
                    let bound = self.in_clause(Clause::FieldList, |b| b.expr(expr))?;
                    let field = match (&expr.kind, bound.as_column()) {
                        (Ast::Column(_), Some(index)) => {
                            let source = self.scope().from.fields[index].clone();
                            let defined = !aliased && *source.name != **name && self.is_named_as_defined(from, index);
                            let name = if defined { source.name.clone() } else { Str::from(name.as_str()) };
                            Field { name, invisible: false, ..source }
                        }
                        _ => Field::computed(name.as_str(), bound.ty.clone()),
                    };
                    items.push(bound);
                    fields.push(field);
                }
            }
        }
        Ok((items, fields))
    }

    /// GROUP BY: ordinals, columns of FROM, then aliases, then expressions.
    fn group_items(&mut self, select: &ast::Select, items: Option<(&[Expr], &[Field])>) -> Result<Vec<Expr>> {
        let mut groups: Vec<Expr> = Vec::new();
        for item in &select.group_by {
            let expr = match item.expr.ordinal() {
                Some(n) => self.selected(select, items, n, "group statement")?,
                None => self.group_expr(select, items, &item.expr)?,
            };
            let mut aggregated = false;
            expr.walk(&mut |e| aggregated |= matches!(e.kind, ExprKind::AggregateRef(_) | ExprKind::WindowRef(_)));
            if aggregated {
                return Err(MySqlError::with_message(1056, format!("Can't group on '{}'", item_name(&item.expr))));
            }
            // ROLLUP counts repeated expressions; otherwise once is enough, and constants group nothing.
            if select.rollup || !groups.iter().any(|g| same_expr(g, &expr)) {
                groups.push(expr);
            }
        }
        Ok(groups)
    }

    fn group_expr(&mut self, select: &ast::Select, items: Option<(&[Expr], &[Field])>, expr: &ast::Expr) -> Result<Expr> {
        if let Ast::Column(name) = &expr.kind
            && name.table.is_none()
            && self.scope().find(name)?.is_none()
        {
            for (i, item) in select.items.iter().enumerate() {
                if let SelectItem::Expr { name: alias, .. } = item
                    && same_name(alias, &name.column)
                {
                    let item = self.item_at(select, items, i)?;
                    self.note_column(expr.span.start, &item);
                    return Ok(item);
                }
            }
        }
        match self.in_clause(Clause::Group, |b| b.expr(expr)) {
            Err(unknown) if unknown.code == 1054 => self.group_of_aliases(select, items, expr, unknown),
            bound => bound,
        }
    }

    /// An expression over elements of the select list by their names, of which `unknown` is one, and columns.
    fn group_of_aliases(&mut self, select: &ast::Select, items: Option<(&[Expr], &[Field])>, expr: &ast::Expr, unknown: MySqlError) -> Result<Expr> {
        let mut aliases = Vec::new();
        for (i, item) in select.items.iter().enumerate() {
            if let SelectItem::Expr { name, .. } = item {
                let Ok(item) = self.item_at(select, items, i) else { return Err(unknown) };
                aliases.push((name.clone(), item));
            }
        }
        let before = std::mem::replace(&mut self.scope().aliases, aliases);
        let bound = self.in_clause(Clause::Group, |b| b.expr(expr));
        self.scope().aliases = before;
        bound
    }

    /// The expression of the n-th output column.
    fn selected(&mut self, select: &ast::Select, items: Option<(&[Expr], &[Field])>, n: u64, clause: &str) -> Result<Expr> {
        let count = items.map_or(select.items.len(), |(items, _)| items.len()) as u64;
        if n == 0 || n > count {
            return Err(errors::unknown_column(&n.to_string(), clause));
        }
        match items {
            Some((items, _)) => Ok(items[n as usize - 1].clone()),
            None => self.item_at(select, None, n as usize - 1),
        }
    }

    /// The bound expression of the i-th element of the select list.
    fn item_at(&mut self, select: &ast::Select, items: Option<(&[Expr], &[Field])>, i: usize) -> Result<Expr> {
        match (&select.items[i], items) {
            (SelectItem::Expr { name, .. }, Some((items, fields))) => match fields.iter().position(|f| same_name(&f.name, name)) {
                Some(position) => Ok(items[position].clone()),
                None => Err(errors::unknown_column(name, "group statement")),
            },
            (SelectItem::Expr { expr, .. }, None) => self.in_clause(Clause::Group, |b| b.expr(expr)),
            _ => Err(errors::unknown_column(&(i + 1).to_string(), "group statement")),
        }
    }

    /// ORDER BY: ordinals, aliases, then expressions over FROM that may name aliases too. Gives the elements of the select list that are named as well.
    fn order_keys(&mut self, order_by: &[ast::OrderItem], items: &[Expr], fields: &[Field], aliases: &[(String, Expr)]) -> Result<(Vec<SortKey>, Vec<Option<usize>>)> {
        let mut keys = Vec::new();
        let mut selected = Vec::new();
        self.scope().aliases = aliases.to_vec();
        for item in order_by {
            let named;
            let expr = if let Some(n) = item.expr.ordinal() {
                if n == 0 || n > items.len() as u64 {
                    return Err(errors::unknown_column(&n.to_string(), "order clause"));
                }
                named = Some(n as usize - 1);
                items[n as usize - 1].clone()
            } else if let Ast::Column(name) = &item.expr.kind
                && name.table.is_none()
                && let Some(position) = alias_position(&name.column, items, fields)?
            {
                self.note_column(item.expr.span.start, &items[position]);
                named = Some(position);
                items[position].clone()
            } else {
                named = None;
                self.in_clause(Clause::Order, |b| b.expr(&item.expr))?
            };
            keys.push(SortKey { expr, desc: item.desc });
            selected.push(named);
        }
        Ok((keys, selected))
    }

    /// LIMIT over `rel`.
    pub fn limit(&mut self, rel: Rel, limit: Option<&ast::Limit>) -> Result<Rel> {
        let Some(limit) = limit else { return Ok(rel) };
        let offset = limit.offset.as_ref().map(|e| self.limit_value(e)).transpose()?;
        let count = self.limit_value(&limit.count)?;
        Ok(rel.limit(offset, Some(count)))
    }

    pub fn limit_value(&mut self, expr: &ast::Expr) -> Result<Expr> {
        let ty = ExprType::ubigint(false);
        match &expr.kind {
            Ast::Literal(ast::Literal::Int(n)) => Ok(Expr::literal(Value::UInt(*n), ty)),
            Ast::Param(index) => match self.param(*index) {
                Expr { kind: ExprKind::Literal(value), .. } => {
                    let n = match value {
                        // A variable of a routine is taken as a number without a sign.
                        Value::Int(n) if self.cx.declared_type(*index).is_some() => Some(n as u64),
                        Value::Null if self.cx.declared_type(*index).is_some() => Some(0),
                        Value::Int(n) => u64::try_from(n).ok(),
                        Value::UInt(n) => Some(n),
                        Value::Text(text) => text.trim().parse().ok(),
                        _ => None,
                    };
                    let n = n.ok_or_else(|| errors::wrong_arguments("LIMIT"))?;
                    Ok(Expr::literal(Value::UInt(n), ty))
                }
                param => Ok(Expr { ty, ..param }),
            },
            _ => Err(errors::wrong_arguments("LIMIT")),
        }
    }
}

fn aggregate_rel(input: Rel, groups: &[Expr], aggregates: Vec<crate::plan::Aggregate>, rollup: bool) -> Rel {
    let mut fields: Vec<Field> = groups
        .iter()
        .map(|g| {
            let ty = g.ty.clone().with_nullable(g.ty.nullable || rollup);
            match g.as_column() {
                Some(index) => Field { ty, ..input.fields[index].clone() },
                None => Field::computed(super::aggregate::empty(), ty),
            }
        })
        .collect();
    fields.extend(aggregates.iter().map(|a| match (a.func, a.args.first().and_then(Expr::as_column)) {
        (AggregateFunc::AnyValue, Some(index)) => Field { ty: a.ty.clone(), ..input.fields[index].clone() },
        _ => Field::computed(super::aggregate::empty(), a.ty.clone()),
    }));
    if rollup {
        fields.push(Field::computed(super::aggregate::empty(), ExprType::ubigint(false)));
    }
    Rel { kind: RelKind::Aggregate { input: Box::new(input), groups: groups.to_vec(), aggregates, rollup }, fields }
}

fn assigns_variable(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |e| found |= matches!(e.kind, ExprKind::AssignUserVar { .. }));
    found
}

/// Rows of one table, beside which there may be derived tables of one row: MySQL sorts them before it computes the select list. Of more tables it may keep
/// what it has computed in a temporary table, and sort that.
fn is_of_one_source(rel: &Rel) -> bool {
    match &rel.kind {
        RelKind::Join { left, right, .. } => (gives_one_row(left) && is_of_one_source(right)) || (gives_one_row(right) && is_of_one_source(left)),
        RelKind::Filter { input, .. } => is_of_one_source(input),
        RelKind::Apply { .. } => false,
        _ => true,
    }
}

fn item_name(expr: &ast::Expr) -> String {
    match &expr.kind {
        Ast::Column(name) => name.column.clone(),
        Ast::Aggregate(call) => format!("{}(…)", call.name.to_lowercase()),
        _ => "expression".to_string(),
    }
}

/// The select list's element of that name: the first that is no column, or else error 1052 if several columns differ.
fn alias_position(name: &str, items: &[Expr], fields: &[Field]) -> Result<Option<usize>> {
    let mut found: Option<usize> = None;
    for (i, field) in fields.iter().enumerate() {
        if !same_name(&field.name, name) {
            continue;
        }
        if !is_column(&items[i]) {
            return Ok(Some(i));
        }
        match found {
            Some(before) if !same_expr(&items[before], &items[i]) => return Err(errors::ambiguous_column(name, "order clause")),
            Some(_) => {}
            None => found = Some(i),
        }
    }
    Ok(found)
}

/// What keeps a key from sorting what is DISTINCT: the first of its columns that is not selected.
fn not_selected(rel: &Rel, key: &Expr, position: usize, is_selected: impl Fn(usize) -> bool) -> MySqlError {
    let mut columns = Vec::new();
    key.walk(&mut |e| columns.extend(e.as_column().filter(|c| !is_selected(*c))));
    // Or one that a subquery reads.
    columns.extend(key.columns());
    match columns.first() {
        Some(&column) if is_aggregate(rel, column) => errors::order_aggregate_not_selected(position),
        column => errors::order_not_selected(position, &column.map_or(String::new(), |c| rel.fields[*c].full_name())),
    }
}

/// Whether a column of what the select list is evaluated over is an aggregate.
fn is_aggregate(rel: &Rel, column: usize) -> bool {
    match &rel.kind {
        RelKind::Filter { input, .. } | RelKind::Window { input, .. } => column < input.fields.len() && is_aggregate(input, column),
        RelKind::Aggregate { groups, aggregates, .. } => {
            column.checked_sub(groups.len()).and_then(|at| aggregates.get(at)).is_some_and(|aggregate| aggregate.func != AggregateFunc::AnyValue)
        }
        _ => false,
    }
}

/// `rel` without rows that are the same in their first `width` columns; of the others it has those of one of the rows. What ORDER BY means beside
/// DISTINCT where ONLY_FULL_GROUP_BY is off.
fn distinct_beside(rel: Rel, width: usize) -> Rel {
    let fields = rel.fields.clone();
    let column = |i: usize| Expr::column(i, fields[i].ty.clone());
    let any = |i: usize| Aggregate { func: AggregateFunc::AnyValue, distinct: false, args: vec![column(i)], order_by: Vec::new(), ty: fields[i].ty.clone().with_nullable(true) };
    let groups = (0..width).map(column).collect();
    let aggregates = (width..fields.len()).map(any).collect();
    Rel { kind: RelKind::Aggregate { input: Box::new(rel), groups, aggregates, rollup: false }, fields }
}
