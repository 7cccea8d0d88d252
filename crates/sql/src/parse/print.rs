//! A query as MySQL writes it down: every name qualified, every column named, operators in parentheses, functions under one of their names.
//!
//! The text of a view is made so when it is created, from the names as the binder has resolved them, and read again whenever the view is used. Printing
//! what has been printed gives the same text, less the current schema where that is asked for (SHOW CREATE VIEW).

use std::collections::{HashMap, HashSet};

use highkey_types::{Charset, MySqlError, Str};

use super::ast::*;
use super::parser::Result;

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
                SelectItem::Expr { expr, name } => {
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
            TableRef::Derived { query, alias, columns, .. } => {
                self.put("(");
                self.query(query)?;
                self.put(") ");
                self.name(alias);
                if !columns.is_empty() {
                    self.put(" ");
                    self.names_in_parentheses(columns);
                }
            }
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

    fn expr(&mut self, expr: &Expr) -> Result<()> {
        crate::stack::ensure(|| self.expr_here(expr))
    }

    fn infix(&mut self, left: &Expr, operator: &str, right: &Expr) -> Result<()> {
        self.put("(");
        self.operand(left)?;
        self.put(operator);
        self.operand(right)?;
        self.put(")");
        Ok(())
    }

    /// An operand of something that is no AND, OR or NOT: forms that MySQL writes without parentheses get some.
    fn operand(&mut self, expr: &Expr) -> Result<()> {
        let bare = matches!(expr.kind, ExprKind::InQuery { negated: false, .. } | ExprKind::MemberOf { .. } | ExprKind::Quantified { .. });
        self.put(if bare { "(" } else { "" });
        self.expr(expr)?;
        self.put(if bare { ")" } else { "" });
        Ok(())
    }

    fn call(&mut self, name: &str, args: &[&Expr]) -> Result<()> {
        self.put(name);
        self.put("(");
        self.list(args, |p, arg| p.expr(arg))?;
        self.put(")");
        Ok(())
    }

    fn expr_here(&mut self, expr: &Expr) -> Result<()> {
        match &expr.kind {
            ExprKind::Literal(literal) => self.literal(literal),
            ExprKind::Column(name) => self.column(name, expr.span.start),
            ExprKind::Param(_) | ExprKind::UserVar(_) | ExprKind::SystemVar { .. } | ExprKind::Assign { .. } => {
                return Err(MySqlError::with_message(1351, "View's SELECT contains a variable or parameter"));
            }
            ExprKind::Default(_) | ExprKind::Values(_) => return Err(MySqlError::with_message(1351, "View's SELECT contains a variable or parameter")),
            ExprKind::Unary { op, expr } => match op {
                UnaryOp::Plus => self.expr(expr)?,
                UnaryOp::Minus | UnaryOp::BitNot => {
                    self.put(if *op == UnaryOp::Minus { "-(" } else { "~(" });
                    self.expr(expr)?;
                    self.put(")");
                }
                UnaryOp::Not => self.not(expr)?,
                UnaryOp::Binary => {
                    self.put("cast(");
                    self.expr(expr)?;
                    self.put(" as char charset binary)");
                }
            },
            ExprKind::Binary { op, left, right } => self.binary(*op, left, right)?,
            ExprKind::IsNull { expr, negated } | ExprKind::IsBool { expr, value: None, negated } => {
                if *negated {
                    self.put("(");
                    self.operand(expr)?;
                    self.put(" is not null)");
                } else {
                    self.call("isnull", &[expr])?;
                }
            }
            ExprKind::IsBool { expr, value: Some(value), negated } => {
                self.put("(");
                self.operand(expr)?;
                self.put(&format!(" is {}{})", if *negated { "not " } else { "" }, if *value { "true" } else { "false" }));
            }
            ExprKind::Between { expr, low, high, negated } => {
                self.put("(");
                self.operand(expr)?;
                self.put(if *negated { " not between " } else { " between " });
                self.operand(low)?;
                self.put(" and ");
                self.operand(high)?;
                self.put(")");
            }
            ExprKind::InList { expr, list, negated } => match list.as_slice() {
                [one] => self.infix(expr, if *negated { " <> " } else { " = " }, one)?,
                list => {
                    self.put("(");
                    self.operand(expr)?;
                    self.put(if *negated { " not in (" } else { " in (" });
                    self.list(list, Self::expr)?;
                    self.put("))");
                }
            },
            ExprKind::InQuery { expr, query, negated } => {
                self.put(if *negated { "(not(" } else { "" });
                self.operand(expr)?;
                self.put(" in (");
                self.subquery(query)?;
                self.put(if *negated { ")))" } else { ")" });
            }
            ExprKind::Like { expr, pattern, escape, negated } => {
                self.put(if *negated { "(not((" } else { "(" });
                self.operand(expr)?;
                self.put(" like ");
                self.operand(pattern)?;
                if let Some(escape) = escape {
                    self.put(" escape ");
                    self.expr(escape)?;
                }
                self.put(if *negated { ")))" } else { ")" });
            }
            ExprKind::Regexp { expr, pattern, negated } => {
                self.put(if *negated { "(not(" } else { "" });
                self.call("regexp_like", &[expr, pattern])?;
                self.put(if *negated { "))" } else { "" });
            }
            ExprKind::SoundsLike { left, right } => {
                self.put("(");
                self.call("soundex", &[left])?;
                self.put(" = ");
                self.call("soundex", &[right])?;
                self.put(")");
            }
            ExprKind::MemberOf { value, array } => {
                self.operand(value)?;
                self.put(" member of (");
                self.expr(array)?;
                self.put(")");
            }
            ExprKind::Exists { query, negated } => {
                self.put(if *negated { "(not(exists(" } else { "exists(" });
                self.subquery(query)?;
                self.put(if *negated { ")))" } else { ")" });
            }
            ExprKind::Subquery(query) => {
                self.put("(");
                self.subquery(query)?;
                self.put(")");
            }
            ExprKind::Quantified { op: BinaryOp::Eq, quantifier: Quantifier::Any, expr: left, query } => {
                return self.expr(&Expr { kind: ExprKind::InQuery { expr: left.clone(), query: query.clone(), negated: false }, span: expr.span });
            }
            ExprKind::Quantified { op: BinaryOp::Ne, quantifier: Quantifier::All, expr: left, query } => {
                return self.expr(&Expr { kind: ExprKind::InQuery { expr: left.clone(), query: query.clone(), negated: true }, span: expr.span });
            }
            ExprKind::Quantified { op, quantifier, expr, query } => {
                self.operand(expr)?;
                self.put(&format!(" {} {} (", symbol(*op), if *quantifier == Quantifier::Any { "any" } else { "all" }));
                self.subquery(query)?;
                self.put(")");
            }
            ExprKind::Case { operand, branches, otherwise } => {
                self.put("(case ");
                if let Some(operand) = operand {
                    self.expr(operand)?;
                    self.put(" ");
                }
                for (when, then) in branches {
                    self.put("when ");
                    self.expr(when)?;
                    self.put(" then ");
                    self.expr(then)?;
                    self.put(" ");
                }
                if let Some(otherwise) = otherwise {
                    self.put("else ");
                    self.expr(otherwise)?;
                    self.put(" ");
                }
                self.put("end)");
            }
            ExprKind::Cast { expr, ty } => {
                self.put("cast(");
                self.expr(expr)?;
                let charset = self.names.filter(|_| matches!(ty, CastType::Char { charset: None, .. })).map_or(String::new(), |n| format!(" charset {}", n.charset));
                self.put(&format!(" as {}{charset})", cast_type(ty)));
            }
            ExprKind::ConvertUsing { expr, charset } => {
                self.put("convert(");
                self.expr(expr)?;
                self.put(&format!(" using {})", charset.to_ascii_lowercase()));
            }
            ExprKind::Collate { expr, collation } => {
                self.put("(");
                self.operand(expr)?;
                self.put(&format!(" collate {})", collation.to_ascii_lowercase()));
            }
            ExprKind::DateArith { date, value, unit, subtract } => {
                self.put("(");
                self.operand(date)?;
                self.put(if *subtract { " - interval " } else { " + interval " });
                self.expr(value)?;
                self.put(&format!(" {})", unit.name().to_ascii_lowercase()));
            }
            ExprKind::Extract { unit, date } => {
                self.put(&format!("extract({} from ", unit.name().to_ascii_lowercase()));
                self.expr(date)?;
                self.put(")");
            }
            ExprKind::TimestampDiff { unit, from, to } => {
                self.put(&format!("timestampdiff({},", unit.name()));
                self.expr(from)?;
                self.put(",");
                self.expr(to)?;
                self.put(")");
            }
            ExprKind::Trim { side, what, text } => {
                self.put("trim(");
                match side {
                    TrimSide::Both if what.is_none() => {}
                    TrimSide::Both => self.put("both "),
                    TrimSide::Leading => self.put("leading "),
                    TrimSide::Trailing => self.put("trailing "),
                }
                if let Some(what) = what {
                    self.expr(what)?;
                    self.put(" ");
                }
                if what.is_some() || *side != TrimSide::Both {
                    self.put("from ");
                }
                self.expr(text)?;
                self.put(")");
            }
            ExprKind::Char { args, charset } => {
                self.put("char(");
                self.list(args, Self::expr)?;
                if let Some(charset) = charset {
                    self.put(&format!(" using {}", charset.to_ascii_lowercase()));
                }
                self.put(")");
            }
            ExprKind::WeightString { expr, cast } => {
                self.put("weight_string(");
                self.expr(expr)?;
                if let Some(ty) = cast {
                    self.put(&format!(" as {}", cast_type(ty)));
                }
                self.put(")");
            }
            ExprKind::GetFormat { kind, style } => {
                self.put(&format!("get_format({kind}, "));
                self.expr(style)?;
                self.put(")");
            }
            ExprKind::JsonValue(call) => {
                self.put("json_value(");
                self.expr(&call.document)?;
                self.put(",");
                self.expr(&call.path)?;
                if let Some(ty) = &call.returning {
                    self.put(&format!(" returning {}", cast_type(ty)));
                }
                self.json_otherwise(&call.on_empty, "empty")?;
                self.json_otherwise(&call.on_error, "error")?;
                self.put(")");
            }
            ExprKind::Function(function) => self.function(function)?,
            ExprKind::Aggregate(call) => self.aggregate(call)?,
            ExprKind::Row(items) => {
                self.put("(");
                self.list(items, Self::expr)?;
                self.put(")");
            }
        }
        Ok(())
    }

    /// NOT, brought down to comparisons.
    fn not(&mut self, expr: &Expr) -> Result<()> {
        let here = |kind: ExprKind| Expr { kind, span: expr.span };
        let not = |e: &Expr| Box::new(here(ExprKind::Unary { op: UnaryOp::Not, expr: Box::new(e.clone()) }));
        let negated = match &expr.kind {
            ExprKind::Binary { op, left, right } => match op {
                BinaryOp::And => Some(ExprKind::Binary { op: BinaryOp::Or, left: not(left), right: not(right) }),
                BinaryOp::Or => Some(ExprKind::Binary { op: BinaryOp::And, left: not(left), right: not(right) }),
                _ => opposite(*op).map(|op| ExprKind::Binary { op, left: left.clone(), right: right.clone() }),
            },
            ExprKind::IsNull { expr, negated } => Some(ExprKind::IsNull { expr: expr.clone(), negated: !negated }),
            ExprKind::IsBool { expr, value, negated } => Some(ExprKind::IsBool { expr: expr.clone(), value: *value, negated: !negated }),
            ExprKind::Between { expr, low, high, negated: false } => Some(ExprKind::Between { expr: expr.clone(), low: low.clone(), high: high.clone(), negated: true }),
            ExprKind::InList { expr, list, negated: false } => Some(ExprKind::InList { expr: expr.clone(), list: list.clone(), negated: true }),
            _ => None,
        };
        if let Some(kind) = negated {
            return self.expr(&here(kind));
        }
        self.put("(not(");
        self.expr(expr)?;
        self.put("))");
        Ok(())
    }

    fn binary(&mut self, op: BinaryOp, left: &Expr, right: &Expr) -> Result<()> {
        match op {
            BinaryOp::And | BinaryOp::Or => {
                let mut parts = Vec::new();
                chain(op, left, &mut parts);
                chain(op, right, &mut parts);
                self.put("(");
                for (i, part) in parts.into_iter().enumerate() {
                    if i > 0 {
                        self.put(if op == BinaryOp::And { " and " } else { " or " });
                    }
                    self.expr(part)?;
                }
                self.put(")");
                Ok(())
            }
            BinaryOp::Concat => self.call("concat", &[left, right]),
            BinaryOp::JsonExtract => self.call("json_extract", &[left, right]),
            BinaryOp::JsonUnquote => {
                self.put("json_unquote(");
                self.call("json_extract", &[left, right])?;
                self.put(")");
                Ok(())
            }
            op => self.infix(left, &format!(" {} ", symbol(op)), right),
        }
    }

    fn function(&mut self, function: &FunctionCall) -> Result<()> {
        let name = function.name.name.to_ascii_lowercase();
        let args: Vec<&Expr> = function.args.iter().collect();
        if function.name.schema.is_some() || self.names.is_some_and(|names| names.stored.contains(&name)) {
            let schema = function.name.schema.as_deref().or(self.names.and_then(|names| names.schema.as_deref()));
            let shown = schema.filter(|schema| Some(*schema) != self.hidden_schema).map_or(String::new(), |schema| format!("{}.", quote(schema)));
            return self.call(&format!("{shown}{}", quote(&function.name.name)), &args);
        }
        match (name.as_str(), args.as_slice()) {
            ("mod", [a, b]) => return self.infix(a, " % ", b),
            ("instr", [text, what]) => return self.call("locate", &[what, text]),
            ("date" | "time", [arg]) => {
                self.put("cast(");
                self.expr(arg)?;
                self.put(&format!(" as {name})"));
                return Ok(());
            }
            ("name_const", _) => return self.call("NAME_CONST", &args),
            ("round", [arg]) => {
                self.put("round(");
                self.expr(arg)?;
                self.put(",0)");
                return Ok(());
            }
            _ => {}
        }
        let name = SYNONYMS.iter().find(|(synonym, _)| *synonym == name).map_or(name.as_str(), |(_, name)| name);
        self.call(name, &args)
    }

    /// What JSON_VALUE answers instead.
    fn json_otherwise(&mut self, otherwise: &JsonOtherwise, on: &str) -> Result<()> {
        match otherwise {
            JsonOtherwise::Null => self.put(" null"),
            JsonOtherwise::Error => self.put(" error"),
            JsonOtherwise::Default(value) => {
                self.put(" default ");
                self.expr(value)?;
            }
        }
        self.put(&format!(" on {on}"));
        Ok(())
    }

    fn aggregate(&mut self, call: &AggregateCall) -> Result<()> {
        let name = call.name.to_ascii_lowercase();
        let name = SYNONYMS.iter().find(|(synonym, _)| *synonym == name).map_or(name.as_str(), |(_, name)| name);
        self.put(&format!("{name}("));
        if call.distinct && !matches!(name, "min" | "max") {
            self.put("distinct ");
        }
        if call.star {
            self.put("0");
        }
        self.list(&call.args, Self::expr)?;
        if name == "group_concat" {
            if !call.order_by.is_empty() {
                self.put(" order by ");
                self.list(&call.order_by, |p, item| {
                    p.expr(&item.expr)?;
                    p.put(if item.desc { " DESC" } else { " ASC" });
                    Ok(())
                })?;
            }
            self.put(" separator ");
            self.string(call.separator.as_deref().unwrap_or(","));
        }
        self.put(")");
        match &call.over {
            None => Ok(()),
            Some(Over::Named(name)) => {
                self.put(" OVER ");
                self.name(name);
                Ok(())
            }
            Some(Over::Spec(spec)) => {
                self.put(" OVER ");
                self.window(spec)
            }
        }
    }

    fn window(&mut self, spec: &WindowSpec) -> Result<()> {
        self.put("(");
        if let Some(base) = &spec.base {
            self.name(base);
            self.put(" ");
        }
        if !spec.partition_by.is_empty() {
            self.put("PARTITION BY ");
            self.list(&spec.partition_by, Self::expr)?;
            self.put(" ");
        }
        if !spec.order_by.is_empty() {
            self.put("ORDER BY ");
            self.list(&spec.order_by, |p, item| {
                p.expr(&item.expr)?;
                p.put(if item.desc { " desc" } else { "" });
                Ok(())
            })?;
            self.put(" ");
        }
        if let Some(frame) = &spec.frame {
            self.put(if frame.rows { "ROWS BETWEEN " } else { "RANGE BETWEEN " });
            self.frame_bound(&frame.start)?;
            self.put(" AND ");
            self.frame_bound(&frame.end)?;
        }
        self.put(") ");
        Ok(())
    }

    fn frame_bound(&mut self, bound: &FrameBound) -> Result<()> {
        let (expr, side) = match bound {
            FrameBound::UnboundedPreceding => (None, "UNBOUNDED PRECEDING"),
            FrameBound::CurrentRow => (None, "CURRENT ROW"),
            FrameBound::UnboundedFollowing => (None, "UNBOUNDED FOLLOWING"),
            FrameBound::Preceding(expr) => (Some(expr), " PRECEDING"),
            FrameBound::Following(expr) => (Some(expr), " FOLLOWING"),
        };
        match expr.map(|e| &e.kind) {
            None => {}
            Some(ExprKind::DateArith { value, unit, .. }) => {
                self.put("INTERVAL ");
                self.expr(value)?;
                self.put(&format!(" {} ", unit.name().to_ascii_lowercase()));
            }
            Some(_) => self.expr(expr.expect("there is one"))?,
        }
        self.put(side);
        Ok(())
    }

    fn string(&mut self, text: &str) {
        self.put("'");
        for c in text.chars() {
            match c {
                '\\' => self.put("\\\\"),
                '\'' => self.put("\\'"),
                '\n' => self.put("\\n"),
                '\r' => self.put("\\r"),
                '\0' => self.put("\\0"),
                '\u{1a}' => self.put("\\Z"),
                c => self.out.push(c),
            }
        }
        self.put("'");
    }

    fn bytes(&mut self, bytes: &[u8]) {
        let digits: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
        self.put(&if digits.is_empty() { "x''".to_owned() } else { format!("0x{digits}") });
    }

    fn literal(&mut self, literal: &Literal) {
        let introduced = |introducer: &Option<String>| introducer.as_ref().map(|name| format!("_{}", name.to_ascii_lowercase()));
        match literal {
            Literal::Null => self.put("NULL"),
            Literal::Bool(truth) => self.put(if *truth { "TRUE" } else { "FALSE" }),
            Literal::Int(n) => self.put(&n.to_string()),
            Literal::Decimal(text) | Literal::Float(text) => self.put(text),
            Literal::String { value, introducer } => {
                let said = self.strings.map(|charset| format!("_{}", charset_of(charset, value)));
                self.put(&introduced(introducer).or(said).unwrap_or_default());
                self.string(value);
            }
            Literal::Hex { value, introducer } => {
                if let Some(introducer) = introduced(introducer) {
                    self.put(&format!("{introducer} "));
                }
                self.bytes(value);
            }
            Literal::Bit(bytes) => self.bytes(bytes),
            Literal::Date(text) => {
                self.put("DATE");
                self.string(text);
            }
            Literal::Time(text) => {
                self.put("TIME");
                self.string(text);
            }
            Literal::Timestamp(text) => {
                self.put("TIMESTAMP");
                self.string(text);
            }
        }
    }
}

/// The name of the character set that a string of a connection says. Behind `_latin1` it would have the bytes that it has here.
fn charset_of(connection: Charset, text: &str) -> &'static str {
    match connection {
        Charset::Latin1 | Charset::Ascii if !text.is_ascii() => Charset::Utf8mb4.name(),
        Charset::Utf8mb3 => "utf8mb3",
        charset => charset.name(),
    }
}

/// The number that stands for an element of the select list.
fn ordinal(expr: &Expr) -> Option<usize> {
    match expr.kind {
        ExprKind::Literal(Literal::Int(n)) => usize::try_from(n).ok(),
        _ => None,
    }
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

fn opposite(op: BinaryOp) -> Option<BinaryOp> {
    Some(match op {
        BinaryOp::Eq => BinaryOp::Ne,
        BinaryOp::Ne => BinaryOp::Eq,
        BinaryOp::Lt => BinaryOp::Ge,
        BinaryOp::Le => BinaryOp::Gt,
        BinaryOp::Gt => BinaryOp::Le,
        BinaryOp::Ge => BinaryOp::Lt,
        _ => return None,
    })
}

fn symbol(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "+",
        BinaryOp::Sub => "-",
        BinaryOp::Mul => "*",
        BinaryOp::Div => "/",
        BinaryOp::IntDiv => "DIV",
        BinaryOp::Mod => "%",
        BinaryOp::BitAnd => "&",
        BinaryOp::BitOr => "|",
        BinaryOp::BitXor => "^",
        BinaryOp::Shl => "<<",
        BinaryOp::Shr => ">>",
        BinaryOp::And => "and",
        BinaryOp::Or => "or",
        BinaryOp::Xor => "xor",
        BinaryOp::Eq => "=",
        BinaryOp::NullSafeEq => "<=>",
        BinaryOp::Ne => "<>",
        BinaryOp::Lt => "<",
        BinaryOp::Le => "<=",
        BinaryOp::Gt => ">",
        BinaryOp::Ge => ">=",
        BinaryOp::Concat => "||",
        BinaryOp::JsonExtract => "->",
        BinaryOp::JsonUnquote => "->>",
    }
}

fn cast_type(ty: &CastType) -> String {
    let fsp = |name: &str, fsp: u8| if fsp == 0 { name.to_owned() } else { format!("{name}({fsp})") };
    let length = |n: &Option<u32>| n.map_or(String::new(), |n| format!("({n})"));
    match ty {
        CastType::Signed => "signed".to_owned(),
        CastType::Unsigned => "unsigned".to_owned(),
        CastType::Binary(n) => format!("char{} charset binary", length(n)),
        CastType::Char { length: n, charset: Some(charset) } => format!("char{} charset {}", length(n), charset.to_ascii_lowercase()),
        CastType::Char { length: n, charset: None } => format!("char{}", length(n)),
        CastType::Date => "date".to_owned(),
        CastType::DateTime(n) => fsp("datetime", *n),
        CastType::Time(n) => fsp("time", *n),
        CastType::Year => "year".to_owned(),
        CastType::Decimal { precision, scale } => format!("decimal({},{})", precision.unwrap_or(10), scale.unwrap_or(0)),
        CastType::Float => "float".to_owned(),
        CastType::Double => "double".to_owned(),
        CastType::Json => "json".to_owned(),
    }
}

/// Functions that MySQL writes under another name of theirs.
const SYNONYMS: &[(&str, &str)] = &[
    ("ceil", "ceiling"),
    ("character_length", "char_length"),
    ("current_date", "curdate"),
    ("current_time", "curtime"),
    ("current_timestamp", "now"),
    ("day", "dayofmonth"),
    ("lcase", "lower"),
    ("localtime", "now"),
    ("localtimestamp", "now"),
    ("mid", "substr"),
    ("octet_length", "length"),
    ("power", "pow"),
    ("schema", "database"),
    ("session_user", "user"),
    ("sha1", "sha"),
    ("stddev", "std"),
    ("stddev_pop", "std"),
    ("substring", "substr"),
    ("system_user", "user"),
    ("ucase", "upper"),
    ("var_pop", "variance"),
];
