//! Query expressions: WITH, set operations, VALUES, TABLE, and what surrounds them.

use highkey_table::Privileges;
use highkey_types::errors::{
    cte_recursive_forbids_aggregation, cte_recursive_requires_nonrecursive_first, cte_recursive_requires_single_reference, cte_recursive_requires_union,
    not_supported_yet,
};
use highkey_types::{MySqlError, Str, TypeKind};

use super::binder::{Binder, CteBinding, Result};
use super::errors;
use super::from::rename;
use super::merge::{Rule, coerce, coerce_stored, merge};
use super::scope::{Clause, FromScope, Scope, same_name};
use super::select::Surroundings;
use crate::parse::ast::{self, ExprKind as Ast, QueryBody};
use crate::plan::{BoundQuery, Coercibility, Expr, ExprKind, ExprType, Field, IntoTarget, Rel, RelKind, SetOperator, SortKey};

impl Binder<'_> {
    /// A whole statement's query.
    pub fn statement_query(&mut self, query: &ast::Query) -> Result<BoundQuery> {
        let mut rel = self.query_expression(query)?;
        if self.next_cte > 0 {
            rel.inline_lone_ctes();
        }
        let rel = if self.merges { rel.merged() } else { rel };
        let into = match query.into.as_ref() {
            None => None,
            Some(ast::Into::Outfile { path, charset, format }) => Some(IntoTarget::Outfile { path: path.clone(), charset: charset.clone(), format: format.clone() }),
            Some(ast::Into::Dumpfile(path)) => Some(IntoTarget::Dumpfile(path.clone())),
            Some(ast::Into::Variables(names)) => Some(IntoTarget::Variables(names.iter().map(|n| Str::from(n.to_lowercase())).collect())),
            // A statement that is nothing but the query is without it here.
            Some(ast::Into::Targets(_)) => return Err(highkey_types::errors::not_supported_yet("variables of a routine in INTO of this statement")),
        };
        if let Some(IntoTarget::Variables(names)) = &into
            && names.len() != rel.fields.len()
        {
            return Err(MySqlError::with_message(1222, "The used SELECT statements have a different number of columns"));
        }
        let first = first_select(&query.body);
        let mut hints = first.map(|s| super::hints::hints(&s.hints, true)).unwrap_or_default();
        super::hints::resolve(&mut hints, &rel);
        hints.warnings.extend(super::hint_warnings::warnings(&mut self.hinted));
        Ok(BoundQuery {
            hints,
            calc_found_rows: first.is_some_and(|s| s.calc_found_rows),
            into,
            locking: self.locking,
            ordered: false,
            views: self.views.clone(),
            rel,
        })
    }

    /// A query inside an expression: one more query around what it names.
    pub fn subquery_plan(&mut self, query: &ast::Query) -> Result<Rel> {
        self.scope();
        let nested = self.scope().in_aggregate;
        self.scope().in_aggregate = false;
        let rel = self.query_expression(query);
        self.scope().in_aggregate = nested;
        rel
    }

    /// EXISTS asks for rows: nothing of what its `*` stands for is read.
    pub fn exists_plan(&mut self, query: &ast::Query) -> Result<Rel> {
        let plain = query.with.is_none() && query.order_by.is_empty();
        self.star_unread = plain && matches!(&query.body, QueryBody::Select(select) if select.group_by.is_empty() && select.having.is_none());
        let plan = self.rows_plan(query);
        self.star_unread = false;
        plan
    }

    /// A query that is asked which rows it has.
    pub fn rows_plan(&mut self, query: &ast::Query) -> Result<Rel> {
        self.groups_unread = query.with.is_none() && query.limit.is_none() && matches!(query.body, QueryBody::Select(_));
        let plan = self.subquery_plan(query);
        self.groups_unread = false;
        plan
    }

    /// A query with its WITH, ORDER BY and LIMIT.
    pub fn query_expression(&mut self, query: &ast::Query) -> Result<Rel> {
        crate::stack::ensure(|| {
            let visible = self.ctes.len();
            let exposing = std::mem::take(&mut self.exposing);
            let readable = std::mem::replace(&mut self.readable, Privileges::SELECT);
            let from_depth = std::mem::replace(&mut self.from_depth, self.scopes.len());
            let result = self.define_ctes(query.with.as_ref()).and_then(|()| self.query_body(query));
            self.exposing = exposing;
            self.readable = readable;
            self.from_depth = from_depth;
            self.ctes.truncate(visible);
            result
        })
    }

    fn query_body(&mut self, query: &ast::Query) -> Result<Rel> {
        let around = Surroundings { order_by: &query.order_by, limit: query.limit.as_ref(), locks: &query.locks };
        match &query.body {
            QueryBody::Select(select) => self.select(select, around),
            QueryBody::Table(name) => {
                let select = table_select(name);
                self.select(&select, around)
            }
            QueryBody::Nested(inner) if around.order_by.is_empty() && around.limit.is_none() && around.locks.is_empty() => self.query_expression(inner),
            body => {
                let rel = self.body(body, around.locks)?;
                self.order_and_limit(rel, around)
            }
        }
    }

    /// `locks`: what follows a set operation is about its last query, as in MySQL.
    fn body(&mut self, body: &QueryBody, locks: &[ast::LockClause]) -> Result<Rel> {
        let alone = Surroundings { order_by: &[], limit: None, locks };
        match body {
            QueryBody::Select(select) => self.select(select, alone),
            QueryBody::Table(name) => self.select(&table_select(name), alone),
            QueryBody::Nested(query) if locks.is_empty() => self.query_expression(query),
            QueryBody::Nested(query) => {
                let locks = query.locks.iter().chain(locks).cloned().collect();
                self.query_expression(&ast::Query { locks, ..(**query).clone() })
            }
            QueryBody::Values(rows) => self.values(rows),
            QueryBody::SetOperations { first, rest } => self.set_operations(first, rest, locks),
        }
    }

    /// Set operations from left to right; neighbouring UNIONs are one.
    fn set_operations(&mut self, first: &QueryBody, rest: &[ast::SetOperand], locks: &[ast::LockClause]) -> Result<Rel> {
        if rest.is_empty() {
            return self.body(first, locks);
        }
        let mut rel = self.body(first, &[])?;
        let mut at = 0;
        while at < rest.len() {
            let unions = rest[at..].iter().take_while(|operand| operand.op == SetOperator::Union).count();
            let operands = &rest[at..at + unions.max(1)];
            let mut inputs = vec![rel];
            for operand in operands {
                at += 1;
                let input = self.body(&operand.body, if at == rest.len() { locks } else { &[] })?;
                if input.fields.len() != inputs[0].fields.len() {
                    return Err(errors::column_count());
                }
                inputs.push(input);
            }
            // UNION DISTINCT drops the duplicates of all that stands before it.
            let distinct = operands.iter().rposition(|operand| !operand.all).map(|last| last + 2);
            rel = self.set_operation(operands[0].op, inputs, distinct.unwrap_or(0))?;
        }
        Ok(rel)
    }

    /// ORDER BY and LIMIT over a result whose columns are all there is to name.
    fn order_and_limit(&mut self, rel: Rel, around: Surroundings<'_>) -> Result<Rel> {
        let scope = Scope { clause: Some(Clause::Order), ..Scope::new(FromScope::of(unqualified(&rel.fields))) };
        let fields = rel.fields.clone();
        let (keys, _) = self.within(scope, |binder| {
            let mut keys = Vec::new();
            for (n, item) in around.order_by.iter().enumerate() {
                let expr = match item.expr.ordinal() {
                    Some(n) if n == 0 || n > fields.len() as u64 => return Err(errors::unknown_column(&n.to_string(), "order clause")),
                    Some(n) => Expr::column(n as usize - 1, fields[n as usize - 1].ty.clone()),
                    None => {
                        if let Ast::Column(name) = &item.expr.kind
                            && let Some(table) = &name.table
                        {
                            return Err(MySqlError::with_message(1250, format!("Table '{table}' from one of the SELECTs cannot be used in global ORDER clause")));
                        }
                        let expr = binder.expr(&item.expr)?;
                        let scope = binder.scope();
                        if !scope.aggregates.is_empty() || !scope.windows.is_empty() {
                            return Err(errors::aggregate_over_union(n + 1));
                        }
                        expr
                    }
                };
                keys.push(SortKey { expr, desc: item.desc });
            }
            Ok(keys)
        })?;
        let rel = rel.sort(keys.into_iter().filter(|k| !k.expr.is_constant()).collect());
        self.limit(rel, around.limit)
    }

    fn values(&mut self, rows: &[Vec<ast::Expr>]) -> Result<Rel> {
        let width = rows.first().map_or(0, Vec::len);
        let mut bound: Vec<Vec<Expr>> = Vec::with_capacity(rows.len());
        let scope = Scope { clause: Some(Clause::Values), ..Scope::default() };
        self.within(scope, |binder| {
            for row in rows {
                if row.len() != width {
                    return Err(MySqlError::with_message(1136, format!("Column count doesn't match value count at row {}", bound.len() + 1)));
                }
                bound.push(row.iter().map(|e| binder.expr(e)).collect::<Result<Vec<_>>>()?);
            }
            Ok(())
        })?;
        let mut types = Vec::with_capacity(width);
        for column in 0..width {
            let exprs: Vec<&Expr> = bound.iter().map(|row| &row[column]).collect();
            types.push(merge(&exprs, Rule::Union, self.cx.collation(), "values")?);
        }
        let rows = bound.into_iter().map(|row| row.into_iter().zip(&types).map(|(e, ty)| coerce(e, ty)).collect()).collect();
        let fields = types.into_iter().enumerate().map(|(i, ty)| Field::computed(format!("column_{i}"), ty)).collect();
        Ok(Rel { kind: RelKind::Values { rows }, fields })
    }

    /// All inputs brought to common types, named by the first one. The rows of the first `distinct` of them together are without duplicates.
    fn set_operation(&self, op: SetOperator, inputs: Vec<Rel>, distinct: usize) -> Result<Rel> {
        let mut fields: Vec<Field> = inputs[0].fields.iter().map(|field| Field::computed(field.name.clone(), field.ty.clone())).collect();
        for input in &inputs[1..] {
            for (i, (field, other)) in fields.iter_mut().zip(&input.fields).enumerate() {
                let (a, b) = (Expr::column(i, field.ty.clone()), Expr::column(i, other.ty.clone()));
                field.ty = merge(&[&a, &b], Rule::Union, self.cx.collation(), "UNION")?;
            }
        }
        for (at, field) in fields.iter().enumerate().filter(|(_, field)| field.ty.ty.is_text()) {
            let is_lost = |expr: &Expr| super::collation::is_lost(expr, field.ty.ty.charset());
            let loses = |input: &Rel| match &input.kind {
                RelKind::Values { rows } => rows.iter().any(|row| is_lost(&row[at])),
                _ => output(input, at).is_some_and(is_lost),
            };
            if inputs.iter().any(loses) {
                let operands: Vec<_> = inputs.iter().map(|input| super::collation::of(&input.fields[at].ty, self.cx.collation())).collect();
                return Err(errors::illegal_mix(&operands, "UNION"));
            }
        }
        if fields.iter().any(|field| field.ty.ty.is_text() && field.ty.coercibility == Coercibility::NoCollation) {
            return Err(highkey_types::errors::cant_aggregate_ncollations("UNION"));
        }
        let mut inputs: Vec<Rel> = inputs.into_iter().map(|input| conform(input, &fields)).collect();
        let operation = |all, inputs| Rel { kind: RelKind::SetOperation { op, all, inputs }, fields: fields.clone() };
        if distinct > 0 {
            let others = inputs.split_off(distinct);
            let first = operation(false, inputs);
            if others.is_empty() {
                return Ok(first);
            }
            inputs = vec![first];
            inputs.extend(others);
        }
        Ok(operation(true, inputs))
    }

    /// Binds the common table expressions of WITH and leaves them in scope.
    pub fn define_ctes(&mut self, with: Option<&ast::With>) -> Result<()> {
        let Some(with) = with else { return Ok(()) };
        for (i, cte) in with.ctes.iter().enumerate() {
            if with.ctes[..i].iter().any(|other| same_name(&other.name, &cte.name)) {
                return Err(errors::duplicate_alias(&cte.name));
            }
            let recursive = with.recursive && mentions(&cte.query.body, &cte.name);
            // As a derived table it is computed before anything changes.
            let changing = self.changing.take();
            let rel = if recursive { self.recursive_cte(cte) } else { self.query_expression(&cte.query) };
            self.changing = changing;
            let mut rel = rel?;
            rename(&mut rel, &cte.name, &cte.columns)?;
            if !is_merged(&cte.query, &rel) && !rel.is_correlated() && !rel.reads_recursion_around() && (!rel.is_written_out() || rel.is_volatile()) {
                rel = self.made_once(&cte.name, rel);
            }
            self.ctes.push(CteBinding { name: cte.name.clone(), rel, level: self.scopes.len() });
        }
        Ok(())
    }

    /// `rel` as what is made once. Where it is read in one place it is put there when the statement is bound (`Rel::inline_lone_ctes`).
    pub fn made_once(&mut self, name: &str, rel: Rel) -> Rel {
        let (id, fields) = (self.new_cte_id(), rel.fields.clone());
        Rel { kind: RelKind::MaterializedCte { id, name: Str::from(name), plan: Box::new(rel) }, fields }
    }

    fn new_cte_id(&mut self) -> usize {
        let id = self.next_cte;
        self.next_cte += 1;
        id
    }

    fn recursive_cte(&mut self, cte: &ast::Cte) -> Result<Rel> {
        let QueryBody::SetOperations { first, rest } = &cte.query.body else { return Err(cte_recursive_requires_union(&cte.name)) };
        let recursive = |operand: &ast::SetOperand| mentions(&operand.body, &cte.name);
        let (before, steps) = rest.split_at(rest.iter().position(recursive).unwrap_or(rest.len()));
        if steps.iter().any(|step| step.op != SetOperator::Union) {
            return Err(cte_recursive_requires_union(&cte.name));
        }
        if mentions(first, &cte.name) || steps.is_empty() || !steps.iter().all(recursive) {
            return Err(cte_recursive_requires_nonrecursive_first(&cte.name));
        }
        if steps.windows(2).any(|pair| !pair[0].all && pair[1].all) {
            return Err(not_supported_yet("recursive query blocks with UNION DISTINCT then UNION ALL, in recursive Common Table Expression"));
        }
        if steps.iter().any(|step| hides(&step.body, &cte.name)) {
            return Err(cte_recursive_requires_single_reference(&cte.name));
        }
        let distinct = steps.iter().any(|step| !step.all);
        let mut anchor = self.set_operations(first, before, &[])?;
        rename(&mut anchor, &cte.name, &cte.columns)?;
        for field in &mut anchor.fields {
            field.ty.nullable = true;
        }
        let fields: Vec<Field> = anchor.fields.iter().map(|f| Field::computed(f.name.clone(), f.ty.clone())).collect();
        let anchor = conform(anchor, &fields);
        let id = self.new_cte_id();
        let scan = Rel { kind: RelKind::CteScan { id, name: Str::from(cte.name.as_str()) }, fields: fields.clone() };
        let visible = self.ctes.len();
        self.ctes.push(CteBinding { name: cte.name.clone(), rel: scan, level: self.scopes.len() });
        let steps = steps.iter().map(|step| self.body(&step.body, &[])).collect::<Result<Vec<Rel>>>();
        self.ctes.truncate(visible);
        let steps = steps?;
        if steps.iter().any(|step| step.fields.len() != fields.len()) {
            return Err(errors::column_count());
        }
        if steps.iter().any(|step| aggregates(step, id)) {
            return Err(cte_recursive_forbids_aggregation(&cte.name));
        }
        if steps.iter().any(|step| readers(step, id) > 1) {
            return Err(cte_recursive_requires_single_reference(&cte.name));
        }
        let mut steps: Vec<Rel> = steps.into_iter().map(|step| conform(step, &fields)).collect();
        let step = match steps.len() {
            1 => steps.remove(0),
            _ => Rel { kind: RelKind::SetOperation { op: SetOperator::Union, all: true, inputs: steps }, fields: fields.clone() },
        };
        let kind = RelKind::RecursiveCte { id, anchor: Box::new(anchor), step: Box::new(step), distinct, strict: self.cx.strict() };
        let rel = Rel { kind, fields };
        let around = Surroundings { order_by: &cte.query.order_by, limit: cte.query.limit.as_ref(), locks: &[] };
        self.order_and_limit(rel, around)
    }
}

/// True if MySQL merges a common table expression with each query that names it: it only chooses rows and columns, and assigns no variable. What it computes
/// is then computed for each of them.
fn is_merged(query: &ast::Query, rel: &Rel) -> bool {
    let plain = match &query.body {
        QueryBody::Select(select) => !select.distinct && select.group_by.is_empty() && select.having.is_none() && !select.from.is_empty(),
        QueryBody::Table(_) => true,
        QueryBody::Nested(inner) => return query.limit.is_none() && is_merged(inner, rel),
        QueryBody::Values(_) | QueryBody::SetOperations { .. } => false,
    };
    if !plain || query.limit.is_some() {
        return false;
    }
    let assigns = rel.assigns_variables();
    let RelKind::Project { input, exprs } = &select_list(rel).kind else { return !assigns };
    let is_aggregate = |rel: &Rel| matches!(rel.kind, RelKind::Aggregate { .. } | RelKind::Window { .. });
    let grouped = is_aggregate(input) || matches!(&input.kind, RelKind::Filter { input, .. } if is_aggregate(input));
    // A subquery of the select list that reads the row would be evaluated for more rows than there are.
    let mut dependent = false;
    exprs.iter().for_each(|e| e.walk(&mut |e| dependent |= matches!(&e.kind, ExprKind::Subquery(sub) if sub.correlated)));
    !assigns && !grouped && !dependent
}

/// Below what orders the rows, and leaves out the columns that only ORDER BY needs.
fn select_list(rel: &Rel) -> &Rel {
    match &rel.kind {
        RelKind::Sort { input, .. } => select_list(input),
        RelKind::Project { input, .. } if matches!(input.kind, RelKind::Sort { .. }) => select_list(input),
        _ => rel,
    }
}

/// The expression in a query's select list that gives its column `at`: an order, DISTINCT and LIMIT are behind it, and what leaves out keys of the order that are not selected.
fn output(rel: &Rel, at: usize) -> Option<&Expr> {
    match &rel.kind {
        RelKind::Limit { input, .. } | RelKind::Sort { input, .. } | RelKind::Distinct { input } => output(input, at),
        RelKind::Project { input, exprs } => match exprs[at].as_column() {
            Some(column) if matches!(input.kind, RelKind::Limit { .. } | RelKind::Sort { .. }) => output(input, column),
            _ => Some(&exprs[at]),
        },
        _ => None,
    }
}

/// Longer strings of a UNION are kept in a BLOB by MySQL, which takes a number by what it shows.
const LONGEST_SHORT: u32 = 512;

/// `rel` with its columns converted to the types of `fields`.
fn conform(rel: Rel, fields: &[Field]) -> Rel {
    // Decimals of more than 38 digits are another thing in Arrow.
    let wide = |ty: &ExprType| matches!(ty.ty.kind, TypeKind::Decimal { precision, .. } if precision > 38);
    let conform = |(i, (from, to)): (usize, (&Field, &Field))| {
        let column = Expr::column(i, from.ty.clone());
        let expr = if to.ty.char_length() > LONGEST_SHORT { coerce(column.clone(), &to.ty) } else { coerce_stored(column.clone(), &to.ty) };
        if expr.as_column().is_some() && wide(&from.ty) != wide(&to.ty) { Expr { kind: ExprKind::Cast(Box::new(column)), ty: expr.ty } } else { expr }
    };
    let exprs: Vec<Expr> = rel.fields.iter().zip(fields).enumerate().map(conform).collect();
    if exprs.iter().all(|e| e.as_column().is_some()) {
        return Rel { fields: rel.fields.iter().zip(fields).map(|(from, to)| Field { ty: to.ty.clone().with_nullable(from.ty.nullable), ..to.clone() }).collect(), ..rel };
    }
    let fields = exprs.iter().zip(fields).map(|(e, f)| Field { ty: e.ty.clone(), ..f.clone() }).collect();
    match rel.kind {
        // A quotient is converted with all its digits.
        RelKind::Project { input, exprs: computed } if computed.iter().any(Expr::has_hidden_digits) => {
            let converted = computed.into_iter().zip(exprs).map(|(value, target)| if value.has_hidden_digits() { coerce(value, &target.ty) } else { placed(target, value) });
            let exprs = converted.collect();
            Rel { kind: RelKind::Project { input, exprs }, fields }
        }
        kind => Rel { kind, fields: rel.fields }.project(exprs, fields),
    }
}

/// A conversion of a column, of what the column is.
fn placed(conversion: Expr, value: Expr) -> Expr {
    match conversion.kind {
        ExprKind::Cast(of) => Expr { kind: ExprKind::Cast(Box::new(placed(*of, value))), ty: conversion.ty },
        _ => Expr { ty: conversion.ty, ..value },
    }
}

fn unqualified(fields: &[Field]) -> Vec<Field> {
    fields.iter().map(|f| Field { table: Str::from(""), ..f.clone() }).collect()
}

fn table_select(name: &ast::ObjectName) -> ast::Select {
    ast::Select {
        number: 0,
        hints: Vec::new(),
        distinct: false,
        calc_found_rows: false,
        straight_join: false,
        items: vec![ast::SelectItem::Star { at: 0 }],
        from: vec![ast::TableRef::Table { name: name.clone(), alias: None, partitions: Vec::new(), index_hints: Vec::new() }],
        filter: None,
        group_by: Vec::new(),
        rollup: false,
        having: None,
        windows: Vec::new(),
    }
}

fn first_select(body: &QueryBody) -> Option<&ast::Select> {
    match body {
        QueryBody::Select(select) => Some(select),
        QueryBody::Nested(query) => first_select(&query.body),
        QueryBody::SetOperations { first, .. } => first_select(first),
        QueryBody::Values(_) | QueryBody::Table(_) => None,
    }
}

/// Whether rows of the recursion `id` are grouped, or seen through a window.
fn aggregates(rel: &Rel, id: usize) -> bool {
    let is_aggregate = matches!(rel.kind, RelKind::Aggregate { .. } | RelKind::Window { .. });
    (is_aggregate && reads_recursion(rel, id)) || rel.inputs().iter().any(|input| aggregates(input, id))
}

/// Where the recursion `id` is read.
fn readers(rel: &Rel, id: usize) -> usize {
    let mut readers = 0;
    rel.for_each_operator(&mut |rel| readers += usize::from(matches!(&rel.kind, RelKind::CteScan { id: read, .. } if *read == id)));
    readers
}

fn reads_recursion(rel: &Rel, id: usize) -> bool {
    matches!(&rel.kind, RelKind::CteScan { id: read, .. } if *read == id) || rel.inputs().iter().any(|input| reads_recursion(input, id))
}

/// Whether a derived table of a query reads a table of that name.
fn hides(body: &QueryBody, name: &str) -> bool {
    fn in_table(table: &ast::TableRef, name: &str) -> bool {
        match table {
            ast::TableRef::Table { .. } | ast::TableRef::JsonTable(_) => false,
            ast::TableRef::Derived { query, .. } => mentions(&query.body, name),
            ast::TableRef::Join { left, right, .. } => in_table(left, name) || in_table(right, name),
            ast::TableRef::List(tables) => tables.iter().any(|t| in_table(t, name)),
        }
    }
    match body {
        QueryBody::Select(select) => select.from.iter().any(|t| in_table(t, name)),
        QueryBody::Nested(query) => hides(&query.body, name),
        QueryBody::SetOperations { first, rest } => hides(first, name) || rest.iter().any(|operand| hides(&operand.body, name)),
        QueryBody::Table(_) | QueryBody::Values(_) => false,
    }
}

/// Whether a query reads a table of that name in FROM.
fn mentions(body: &QueryBody, name: &str) -> bool {
    fn in_table(table: &ast::TableRef, name: &str) -> bool {
        match table {
            ast::TableRef::Table { name: table, .. } => table.schema.is_none() && same_name(&table.name, name),
            ast::TableRef::JsonTable(_) => false,
            ast::TableRef::Derived { query, .. } => mentions(&query.body, name),
            ast::TableRef::Join { left, right, .. } => in_table(left, name) || in_table(right, name),
            ast::TableRef::List(tables) => tables.iter().any(|t| in_table(t, name)),
        }
    }
    match body {
        QueryBody::Select(select) => select.from.iter().any(|t| in_table(t, name)),
        QueryBody::Nested(query) => mentions(&query.body, name),
        QueryBody::SetOperations { first, rest } => mentions(first, name) || rest.iter().any(|operand| mentions(&operand.body, name)),
        QueryBody::Table(table) => same_name(&table.name, name),
        QueryBody::Values(_) => false,
    }
}
