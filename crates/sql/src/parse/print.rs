//! A query as MySQL writes it down: every name qualified, every column named, operators in parentheses, functions under one of their names.
//!
//! The text of a view is made so when it is created, from the names as the binder has resolved them, and read again whenever the view is used. Printing
//! what has been printed gives the same text, less the current schema where that is asked for (SHOW CREATE VIEW).

mod expr;

use std::collections::{HashMap, HashSet};

use highkey_types::{Charset, Str};

use super::ast::*;
use super::parser::Result;
use super::words::is_reserved;

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedColumn {
    /// Of a base table that is read under its own name.
    pub schema: Option<Str>,
    /// None for an alias of the select list.
    pub table: Option<Str>,
    pub column: Str,
}

/// What the binder has found the names of a text to be, by the byte where they stand.
#[derive(Debug, Default)]
pub struct ResolvedNames {
    pub columns: HashMap<usize, ResolvedColumn>,
    /// What `*` stands for.
    pub stars: HashMap<usize, Vec<ResolvedColumn>>,
    /// For EXPLAIN: the optimizer hints of a SELECT, by its number.
    pub hints: HashMap<u32, String>,
    /// The columns that USING and NATURAL compare.
    pub shared: HashMap<usize, Vec<(ResolvedColumn, ResolvedColumn)>>,
    /// The schema of tables named without one.
    pub schema: Option<Str>,
    /// Columns of tables that are read under another name have their schema before it, too.
    pub all_schemas: bool,
    /// Functions named without a schema that are stored ones of that schema, in lower case.
    pub stored: HashSet<String>,
    /// The character set of CAST(… AS CHAR) without one.
    pub charset: &'static str,
}

/// The longest name of a column.
const NAME_CHARS: usize = 64;

/// The query of a view that is made. Error 1351 if it has variables or parameters.
pub fn resolved(query: &Query, names: &ResolvedNames) -> Result<String> {
    Printer { names: Some(names), ..Printer::default() }.whole(query)
}

/// A query as EXPLAIN's note shows it: query blocks have numbers, and the conditions of inner joins are in WHERE. Error 1351 as `resolved`.
pub fn explained(query: &Query, names: &ResolvedNames) -> Result<String> {
    Printer { names: Some(names), blocks: Some(0), ..Printer::default() }.whole(query)
}

/// A view's query, which is written so already; names of `schema` are left without it.
pub fn shortened(query: &Query, schema: Option<&str>) -> Result<String> {
    Printer { hidden_schema: schema, ..Printer::default() }.whole(query)
}

/// An expression that the catalog keeps as text, which is read with the default sql_mode whatever mode it was written in.
pub fn expression(expr: &Expr) -> Result<String> {
    let mut printer = Printer::default();
    printer.expr(expr)?;
    Ok(printer.out)
}

/// The same as MySQL shows it: strings say their character set, which is that of the connection. Error 1351 as `resolved`.
pub fn stored(expr: &Expr, charset: Charset) -> Result<String> {
    let names = ResolvedNames { charset: charset.name(), ..ResolvedNames::default() };
    let mut printer = Printer { names: Some(&names), strings: Some(charset), ..Printer::default() };
    printer.expr(expr)?;
    Ok(printer.out)
}

/// The names of the columns of a view that is made.
pub fn column_names(query: &Query, names: &ResolvedNames) -> Result<Vec<String>> {
    let items = Printer { names: Some(names), ..Printer::default() }.query(query)?;
    Ok(items.into_iter().map(|(_, name)| name).collect())
}

/// An identifier in backticks.
pub fn quote(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

#[derive(Default)]
struct Printer<'n> {
    out: String,
    names: Option<&'n ResolvedNames>,
    hidden_schema: Option<&'n str>,
    /// The character set that strings without one say.
    strings: Option<Charset>,
    /// Common table expressions in scope.
    ctes: Vec<String>,
    /// The query that comes next is a subquery of an expression.
    in_expression: bool,
    /// For EXPLAIN, how many query blocks have begun.
    blocks: Option<u32>,
    /// The number of the block that comes next, where something is written before it.
    next_block: Option<u32>,
    /// For EXPLAIN, conditions of the present block's inner joins.
    on: Vec<String>,
    /// On the inner side of an outer join.
    in_outer: bool,
}

impl Printer<'_> {
    fn whole(mut self, query: &Query) -> Result<String> {
        self.query(query)?;
        Ok(self.out)
    }

    fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn name(&mut self, name: &str) {
        let quoted = quote(name);
        self.put(&quoted);
    }

    fn list<T>(&mut self, items: &[T], mut f: impl FnMut(&mut Self, &T) -> Result<()>) -> Result<()> {
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                self.put(",");
            }
            f(self, item)?;
        }
        Ok(())
    }

    fn names_in_parentheses(&mut self, names: &[String]) {
        let quoted: Vec<String> = names.iter().map(|n| quote(n)).collect();
        self.put(&format!("({})", quoted.join(",")));
    }

    /// Gives the elements of the (first) select list: what they are, and their names.
    fn query(&mut self, query: &Query) -> Result<Vec<(String, String)>> {
        crate::stack::ensure(|| self.query_here(query))
    }

    fn query_here(&mut self, query: &Query) -> Result<Vec<(String, String)>> {
        let visible = self.ctes.len();
        let block = self.next_block.take().or_else(|| self.begin_block());
        if let Some(with) = &query.with {
            self.put(if with.recursive { "with recursive " } else { "with " });
            for (i, cte) in with.ctes.iter().enumerate() {
                if i > 0 {
                    self.put(", ");
                }
                if with.recursive {
                    self.ctes.push(cte.name.clone());
                }
                self.name(&cte.name);
                if !cte.columns.is_empty() {
                    self.put(" ");
                    self.names_in_parentheses(&cte.columns);
                }
                self.put(" as (");
                self.query(&cte.query)?;
                self.put(")");
                if !with.recursive {
                    self.ctes.push(cte.name.clone());
                }
            }
            self.put(" ");
        }
        self.next_block = block;
        let items = self.body(&query.body, !query.order_by.is_empty())?;
        self.next_block = None;
        self.order_by(&query.order_by, &items, !matches!(query.body, QueryBody::Select(_)))?;
        if let Some(limit) = &query.limit {
            self.put(" limit ");
            if let Some(offset) = &limit.offset {
                self.expr(offset)?;
                self.put(",");
            }
            self.expr(&limit.count)?;
        }
        self.ctes.truncate(visible);
        Ok(items)
    }

    /// The number of a new query block, if they have numbers.
    fn begin_block(&mut self) -> Option<u32> {
        let blocks = self.blocks.as_mut()?;
        *blocks += 1;
        Some(*blocks)
    }

    /// `ordered`: ORDER BY may ask for names.
    fn body(&mut self, body: &QueryBody, ordered: bool) -> Result<Vec<(String, String)>> {
        match body {
            QueryBody::Select(select) => self.select(select, ordered),
            QueryBody::Nested(query) => {
                self.put("(");
                let items = self.query(query)?;
                self.put(")");
                Ok(items)
            }
            QueryBody::SetOperations { first, rest } => {
                let items = self.body(first, true)?;
                for SetOperand { op, all, body } in rest {
                    self.put(match op {
                        SetOperator::Union => " union ",
                        SetOperator::Intersect => " intersect ",
                        SetOperator::Except => " except ",
                    });
                    if *all {
                        self.put("all ");
                    }
                    self.body(body, true)?;
                }
                Ok(items)
            }
            QueryBody::Table(name) => {
                self.put("table ");
                self.table_name(name);
                Ok(Vec::new())
            }
            QueryBody::Values(rows) => {
                self.put("values ");
                self.list(rows, |p, row| {
                    p.put("row(");
                    p.list(row, Self::expr)?;
                    p.put(")");
                    Ok(())
                })?;
                Ok(Vec::new())
            }
        }
    }

    /// A query in an expression: its columns need no names of their own.
    fn subquery(&mut self, query: &Query) -> Result<()> {
        let outside = std::mem::replace(&mut self.in_expression, true);
        let result = self.query(query);
        self.in_expression = outside;
        result.map(|_| ())
    }

    /// What `f` writes, apart.
    fn apart(&mut self, f: impl FnOnce(&mut Self) -> Result<()>) -> Result<String> {
        let before = std::mem::take(&mut self.out);
        let result = f(self);
        let text = std::mem::replace(&mut self.out, before);
        result.map(|()| text)
    }

    fn select(&mut self, select: &Select, ordered: bool) -> Result<Vec<(String, String)>> {
        // Of this query only, not of those in its FROM.
        let in_expression = std::mem::take(&mut self.in_expression);
        let around = (std::mem::take(&mut self.on), std::mem::take(&mut self.in_outer));
        if let Some(block) = self.next_block.take().or_else(|| self.begin_block()) {
            self.put(&format!("/* select#{block} */ "));
        }
        self.put("select ");
        if let Some(hints) = self.names.and_then(|names| names.hints.get(&select.number)) {
            self.put(&format!("/*+ {hints} */ "));
        }
        if select.straight_join {
            self.put("straight_join ");
        }
        if select.distinct {
            self.put("distinct ");
        }
        if select.calc_found_rows {
            self.put("sql_calc_found_rows ");
        }
        let mut items: Vec<(String, String)> = Vec::new();
        for item in &select.items {
            match item {
                SelectItem::Star { at } | SelectItem::QualifiedStar { at, .. } => {
                    let columns = self.names.and_then(|n| n.stars.get(at)).cloned().unwrap_or_default();
                    for column in columns {
                        let text = self.apart(|p| {
                            p.resolved_column(&column);
                            Ok(())
                        })?;
                        items.push((text, column.column.to_string()));
                    }
                }
                SelectItem::Expr { expr, name, .. } => {
                    let text = self.apart(|p| p.expr(expr))?;
                    let unnamable = self.blocks.is_none() && (name.chars().count() > NAME_CHARS || name.ends_with(char::is_whitespace) || name.is_empty());
                    let name = if unnamable { format!("Name_exp_{}", items.len() + 1) } else { name.trim_start().to_owned() };
                    items.push((text, name));
                }
            }
        }
        // Nothing asks for the names of such a query's columns but its own clauses.
        let nameless = in_expression && select.group_by.is_empty() && select.having.is_none() && !ordered;
        let list: Vec<String> = items
            .iter()
            .map(|(text, name)| if nameless || in_expression && text.ends_with(&quote(name)) { text.clone() } else { format!("{text} AS {}", quote(name)) })
            .collect();
        self.put(&list.join(","));
        if !select.from.is_empty() {
            self.put(" from ");
            self.tables(&select.from)?;
        } else if select.filter.is_some() {
            self.put(" from DUAL ");
        }
        if self.blocks.is_some() {
            self.explained_filter(select)?;
        } else if let Some(filter) = &select.filter {
            self.put(" where ");
            self.expr(filter)?;
        }
        (self.on, self.in_outer) = around;
        if !select.group_by.is_empty() {
            self.put(" group by ");
            self.list(&select.group_by, |p, item| match (ordinal(&item.expr), &item.expr) {
                (Some(n), _) if n > 0 && n <= items.len() => {
                    p.put(&items[n - 1].0);
                    Ok(())
                }
                (_, expr) => p.expr(expr),
            })?;
            if select.rollup {
                self.put(" with rollup");
            }
        }
        if let Some(having) = &select.having {
            self.put(" having ");
            self.expr(having)?;
        }
        if !select.windows.is_empty() {
            self.put(" window ");
            self.list(&select.windows, |p, (name, spec)| {
                p.name(name);
                p.put(" AS ");
                p.window(spec)
            })?;
        }
        Ok(items)
    }

    /// WHERE, and behind it the conditions of inner joins.
    fn explained_filter(&mut self, select: &Select) -> Result<()> {
        let on = std::mem::take(&mut self.on);
        let mut conditions = Vec::new();
        if let Some(filter) = &select.filter {
            self.conjuncts(filter, &mut conditions)?;
        }
        conditions.extend(on);
        match conditions.as_slice() {
            [] if select.from.iter().any(joins_outer) => self.put(" where 1"),
            [] => {}
            [one] => self.put(&format!(" where {one}")),
            all => self.put(&format!(" where ({})", all.join(" and "))),
        }
        Ok(())
    }

    /// The operands of a chain of ANDs, apart.
    fn conjuncts(&mut self, condition: &Expr, texts: &mut Vec<String>) -> Result<()> {
        let mut parts = Vec::new();
        chain(BinaryOp::And, condition, &mut parts);
        for part in parts {
            texts.push(self.apart(|p| p.expr(part))?);
        }
        Ok(())
    }

    /// `united`: of a set operation, where a number stands for a name.
    fn order_by(&mut self, order_by: &[OrderItem], items: &[(String, String)], united: bool) -> Result<()> {
        if order_by.is_empty() {
            return Ok(());
        }
        self.put(" order by ");
        self.list(order_by, |p, item| {
            match ordinal(&item.expr) {
                Some(n) if n > 0 && n <= items.len() => {
                    let text = if united { quote(&items[n - 1].1) } else { items[n - 1].0.clone() };
                    p.put(&text);
                }
                _ => p.expr(&item.expr)?,
            }
            p.put(if item.desc { " desc" } else { "" });
            Ok(())
        })
    }

    fn tables(&mut self, tables: &[TableRef]) -> Result<()> {
        for (i, table) in tables.iter().enumerate() {
            if i > 0 {
                self.put(" join ");
            }
            self.table(table)?;
        }
        Ok(())
    }

    fn table_name(&mut self, name: &ObjectName) {
        let cte = name.schema.is_none() && self.ctes.contains(&name.name);
        let schema = match &name.schema {
            Some(schema) => Some(schema.as_str()),
            None if cte => None,
            None => self.names.and_then(|n| n.schema.as_deref()),
        };
        if let Some(schema) = schema.filter(|s| self.hidden_schema != Some(s)) {
            let schema = schema.to_owned();
            self.name(&schema);
            self.put(".");
        }
        self.name(&name.name);
    }

    fn table(&mut self, table: &TableRef) -> Result<()> {
        match table {
            TableRef::Table { name, alias, partitions, index_hints } => {
                self.table_name(name);
                if !partitions.is_empty() {
                    self.put(" PARTITION ");
                    self.names_in_parentheses(partitions);
                }
                if let Some(alias) = alias.as_ref().filter(|a| **a != name.name) {
                    self.put(" ");
                    self.name(alias);
                }
                for hint in index_hints {
                    self.put(match hint.kind {
                        IndexHintKind::Use => " USE INDEX ",
                        IndexHintKind::Force => " FORCE INDEX ",
                        IndexHintKind::Ignore => " IGNORE INDEX ",
                    });
                    if let Some(purpose) = &hint.purpose {
                        self.put(&format!("FOR {purpose} "));
                    }
                    self.names_in_parentheses(&hint.indexes);
                }
            }
            TableRef::Derived { lateral, query, alias, columns } => {
                self.put(if *lateral { "lateral (" } else { "(" });
                self.query(query)?;
                self.put(") ");
                self.name(alias);
                if !columns.is_empty() {
                    self.put(" ");
                    self.names_in_parentheses(columns);
                }
            }
            TableRef::JsonTable(table) => self.json_table(table)?,
            TableRef::List(tables) if tables.len() == 1 && self.names.is_some() => self.table(&tables[0])?,
            TableRef::List(tables) if self.blocks.is_some() && !self.in_outer => self.tables(tables)?,
            TableRef::List(tables) => {
                self.put("(");
                self.tables(tables)?;
                self.put(")");
            }
            TableRef::Join { kind, left, right, condition } => {
                // A RIGHT JOIN is the LEFT JOIN the other way round.
                let (first, word, second) = match kind {
                    JoinKind::Inner => (left, " join ", right),
                    JoinKind::Straight => (left, " straight_join ", right),
                    JoinKind::Left => (left, " left join ", right),
                    JoinKind::Right => (right, " left join ", left),
                };
                if self.blocks.is_some() && !self.in_outer {
                    return self.explained_join(first, word, second, condition, matches!(kind, JoinKind::Left | JoinKind::Right));
                }
                // In what is written so already, one without a condition has parentheses of its own, or it was a comma.
                let bare = self.names.is_none() && matches!(condition, JoinCondition::None);
                self.put(if bare { "" } else { "(" });
                self.table(first)?;
                self.put(word);
                self.table(second)?;
                match condition {
                    JoinCondition::None => {}
                    JoinCondition::On(on) => {
                        self.put(" on(");
                        self.expr(on)?;
                        self.put(")");
                    }
                    JoinCondition::Using { at, .. } | JoinCondition::Natural { at } => self.shared_columns(*at),
                }
                self.put(if bare { "" } else { ")" });
            }
        }
        Ok(())
    }

    fn json_table(&mut self, table: &JsonTable) -> Result<()> {
        self.put("json_table(");
        self.expr(&table.document)?;
        self.put(", ");
        self.string(&table.path);
        self.json_table_columns(&table.columns);
        self.put(") ");
        self.name(&table.alias);
        Ok(())
    }

    fn json_table_columns(&mut self, columns: &[JsonTableColumn]) {
        self.put(" columns (");
        for (i, column) in columns.iter().enumerate() {
            if i > 0 {
                self.put(", ");
            }
            let typed = |name: &str, written: &str, path: &str| {
                // Members of ENUM and SET stay as they are.
                let ty = if written.contains('\'') { written.to_owned() } else { written.to_lowercase() };
                format!("{} {ty} {path} ", plain_name(name))
            };
            match column {
                JsonTableColumn::Ordinality { name } => self.put(&format!("{} for ordinality", plain_name(name))),
                JsonTableColumn::Path { name, written, path, on_empty, on_error, .. } => {
                    self.put(&typed(name, written, "path"));
                    self.string(path);
                    self.json_table_otherwise(on_empty.as_ref(), "empty");
                    self.json_table_otherwise(on_error.as_ref(), "error");
                }
                JsonTableColumn::Exists { name, written, path, .. } => {
                    self.put(&typed(name, written, "exists path"));
                    self.string(path);
                }
                JsonTableColumn::Nested { path, columns } => {
                    self.put("nested path ");
                    self.string(path);
                    self.json_table_columns(columns);
                }
            }
        }
        self.put(")");
    }

    fn json_table_otherwise(&mut self, otherwise: Option<&JsonTableOtherwise>, on: &str) {
        match otherwise {
            None => {}
            // MySQL writes two spaces.
            Some(JsonTableOtherwise::Null) => self.put(&format!(" null on  {on}")),
            Some(JsonTableOtherwise::Error) => self.put(&format!(" error on  {on}")),
            Some(JsonTableOtherwise::Default(text)) => {
                self.put(" default ");
                self.string(text);
                self.put(&format!(" on {on}"));
            }
        }
    }

    /// A join without parentheses; one that is no outer join leaves its conditions for WHERE.
    fn explained_join(&mut self, first: &TableRef, word: &str, second: &TableRef, condition: &JoinCondition, outer: bool) -> Result<()> {
        self.table(first)?;
        self.put(word);
        self.in_outer = outer;
        self.table(second)?;
        self.in_outer = false;
        match condition {
            JoinCondition::None => {}
            JoinCondition::On(on) if outer => {
                self.put(" on(");
                self.expr(on)?;
                self.put(")");
            }
            JoinCondition::On(on) => {
                let mut conditions = std::mem::take(&mut self.on);
                self.conjuncts(on, &mut conditions)?;
                self.on = conditions;
            }
            JoinCondition::Using { at, .. } | JoinCondition::Natural { at } if outer => self.shared_columns(*at),
            JoinCondition::Using { at, .. } | JoinCondition::Natural { at } => {
                let equalities = self.shared_equalities(*at);
                self.on.extend(equalities);
            }
        }
        Ok(())
    }

    fn shared_columns(&mut self, at: usize) {
        match self.shared_equalities(at).as_slice() {
            [] => {}
            [one] => self.put(&format!(" on({one})")),
            all => self.put(&format!(" on(({}))", all.join(" and "))),
        }
    }

    /// What USING or NATURAL at this byte compares.
    fn shared_equalities(&mut self, at: usize) -> Vec<String> {
        let pairs = self.names.and_then(|n| n.shared.get(&at)).cloned().unwrap_or_default();
        let mut texts = Vec::with_capacity(pairs.len());
        for (left, right) in &pairs {
            let before = std::mem::take(&mut self.out);
            self.put("(");
            self.resolved_column(left);
            self.put(" = ");
            self.resolved_column(right);
            self.put(")");
            texts.push(std::mem::replace(&mut self.out, before));
        }
        texts
    }

    fn resolved_column(&mut self, column: &ResolvedColumn) {
        if let Some(schema) = column.schema.as_deref().filter(|s| self.hidden_schema != Some(s)) {
            self.name(schema);
            self.put(".");
        }
        if let Some(table) = &column.table {
            self.name(table);
            self.put(".");
        }
        self.name(&column.column);
    }

    fn column(&mut self, name: &ColumnRef, at: usize) {
        let written = || ResolvedColumn {
            schema: name.schema.as_deref().map(Str::from),
            table: name.table.as_deref().map(Str::from),
            column: Str::from(name.column.as_str()),
        };
        let column = self.names.and_then(|n| n.columns.get(&at)).cloned().unwrap_or_else(written);
        self.resolved_column(&column);
    }
}

/// The number that stands for an element of the select list.
fn ordinal(expr: &Expr) -> Option<usize> {
    expr.ordinal().and_then(|n| usize::try_from(n).ok())
}

/// The name of a column of JSON_TABLE, which MySQL does not quote; here one that could not be read without quotes is quoted.
fn plain_name(name: &str) -> String {
    let is_word = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') && !name.starts_with(|c: char| c.is_ascii_digit());
    if is_word && !is_reserved(name) { name.to_owned() } else { quote(name) }
}

fn joins_outer(table: &TableRef) -> bool {
    match table {
        TableRef::Join { kind, left, right, .. } => matches!(kind, JoinKind::Left | JoinKind::Right) || joins_outer(left) || joins_outer(right),
        TableRef::List(tables) => tables.iter().any(joins_outer),
        _ => false,
    }
}

/// The operands of a chain of ANDs or ORs.
fn chain<'e>(op: BinaryOp, expr: &'e Expr, parts: &mut Vec<&'e Expr>) {
    match &expr.kind {
        ExprKind::Binary { op: inner, left, right } if *inner == op => {
            chain(op, left, parts);
            chain(op, right, parts);
        }
        _ => parts.push(expr),
    }
}
