//! Random queries, in parts, so that parts can be left out of one that fails.

use super::expr::{Expr, Gen, Source};
use super::schema::{Class, Collation, Column};

#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Each `name AS (query)`.
    pub with: Vec<String>,
    /// The first, and each other with the word before it.
    pub selects: Vec<(String, Select)>,
    pub order: Vec<String>,
    pub limit: Option<String>,
    /// ORDER BY leaves no two different rows in any order.
    pub total: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Select {
    pub distinct: bool,
    pub items: Vec<String>,
    pub from: String,
    pub joins: Vec<String>,
    pub conditions: Vec<String>,
    pub group: Vec<String>,
    pub rollup: bool,
    pub having: Vec<String>,
}

impl Select {
    fn sql(&self) -> String {
        let list =
            |word: &str, parts: &[String], by: &str| if parts.is_empty() { String::new() } else { format!(" {word} {}", parts.join(by)) };
        format!(
            "SELECT {}{} FROM {}{}{}{}{}{}",
            if self.distinct { "DISTINCT " } else { "" },
            self.items.join(", "),
            self.from,
            list("", &self.joins, " ").replace("  ", " "),
            list("WHERE", &self.conditions, " AND "),
            list("GROUP BY", &self.group, ", "),
            if self.rollup { " WITH ROLLUP" } else { "" },
            list("HAVING", &self.having, " AND "),
        )
    }
}

impl Query {
    /// The order of its rows can be told: ORDER BY leaves no choice, or they are given as they are read, in the order of a table.
    pub fn has_order(&self) -> bool {
        let sql = self.sql().replace(" UNION ALL ", " ");
        let loses_order = ["GROUP BY ", "DISTINCT ", " UNION ", " INTERSECT ", " EXCEPT ", " OVER ("];
        self.total || !loses_order.iter().any(|word| sql.contains(word))
    }

    pub fn sql(&self) -> String {
        let mut out = String::new();
        if !self.with.is_empty() {
            out = format!(
                "WITH {}{} ",
                if self.with.iter().any(|w| w.starts_with("r1 (")) { "RECURSIVE " } else { "" },
                self.with.join(", ")
            );
        }
        for (word, select) in &self.selects {
            out += &if word.is_empty() { select.sql() } else { format!(" {word} {}", select.sql()) };
        }
        if !self.order.is_empty() {
            out += &format!(" ORDER BY {}", self.order.join(", "));
        }
        if let Some(limit) = &self.limit {
            out += &format!(" LIMIT {limit}");
        }
        out
    }
}

/// A query with what its rows are, for one that stands around it.
struct Made {
    query: Query,
    columns: Vec<Column>,
    /// Numbers of the columns that together are unique.
    key: Option<Vec<usize>>,
    rows: f64,
}

impl Gen<'_> {
    pub fn query(&mut self) -> Query {
        let mut with = Vec::new();
        for number in 0..self.pick(&[0, 0, 0, 1, 2]) {
            let name = format!("q{number}");
            let made = self.select(1);
            with.push(format!("{name} AS ({})", made.query.sql()));
            let source = self.source_of(made, name.clone(), String::new());
            self.ctes.push(source);
        }
        if self.chance(6) {
            let end = self.number(1, 12);
            with.push(format!("r1 (n, m) AS (SELECT 1, 2.5 UNION ALL SELECT n + 1, m + 0.5 FROM r1 WHERE n < {end})"));
            let column = |name: &str, class| Column { name: name.into(), class, exact: true, literal: None };
            let columns = vec![column("n", Class::Int), column("m", Class::Decimal)];
            self.ctes.push(Source { from: "r1".into(), alias: String::new(), columns, key: Some(vec!["n".into()]), rows: end as f64 });
        }
        let mut made = if self.chance(12) { self.set_operation() } else { self.select(2) };
        made.query.with = with;
        made.query
    }

    fn source_of(&mut self, made: Made, from: String, alias: String) -> Source {
        let key = made.key.map(|key| key.iter().map(|&at| made.columns[at].name.clone()).collect());
        Source { from, alias, columns: made.columns, key, rows: made.rows }
    }

    /// One table, WITH name or subquery; one of no more than this many rows if there is one.
    fn source(&mut self, depth: u32, rows_max: f64) -> Source {
        let alias = self.alias();
        if depth > 1 && self.chance(15) {
            let made = self.select(depth - 1);
            if made.rows <= rows_max {
                let from = format!("({})", made.query.sql());
                return self.source_of(made, from, alias);
            }
        }
        let mut all: Vec<Source> = self.tables.iter().map(|t| Source::of(t, alias.clone())).collect();
        let ctes: Vec<Source> = self.ctes.iter().map(|c| Source { alias: alias.clone(), ..c.clone() }).collect();
        if !ctes.is_empty() && self.chance(50) {
            all = ctes;
        }
        let fitting: Vec<Source> = all.iter().filter(|s| s.rows <= rows_max).cloned().collect();
        match fitting.is_empty() {
            false => self.pick(&fitting),
            true => Source::of(self.tables.iter().min_by_key(|t| t.rows).expect("tables"), alias),
        }
    }

    /// FROM and WHERE.
    fn rows(&mut self, depth: u32, select: &mut Select) -> (Vec<Source>, f64) {
        let first = self.source(depth, f64::INFINITY);
        select.from = format!("{} {}", first.from, first.alias);
        let mut rows = first.rows.max(1.0);
        let mut scope = vec![first];
        for _ in 0..self.pick(&[0, 0, 1, 1, 2]) {
            // An equality leaves about a tenth of the pairs.
            let next = self.source(depth, self.rows_max * 10.0 / rows);
            let tie = self.tie(&next, &scope).filter(|_| rows * next.rows > self.rows_max / 20.0 || self.chance(70));
            if tie.is_none() && rows * next.rows > self.rows_max {
                break;
            }
            rows = (rows * next.rows / if tie.is_some() { 10.0 } else { 1.0 }).max(rows);
            let mut both = scope.clone();
            both.push(next.clone());
            let mut conditions: Vec<String> = tie.into_iter().collect();
            if self.chance(30) {
                conditions.push(self.cond(&both, 1));
            }
            let word = self.pick(&["JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN"]);
            select.joins.push(match conditions.is_empty() {
                true => format!("CROSS JOIN {} {}", next.from, next.alias),
                false => format!("{word} {} {} ON {}", next.from, next.alias, conditions.join(" AND ")),
            });
            scope = both;
        }
        for _ in 0..self.pick(&[0, 0, 1, 1, 2]) {
            let depth = self.pick(&[0, 1, 2]);
            let condition = self.cond(&scope, depth);
            select.conditions.push(condition);
        }
        (scope, rows)
    }

    /// The columns of all keys, if every source has one.
    fn key_of(&self, scope: &[Source]) -> Option<Vec<Expr>> {
        let mut all = Vec::new();
        for source in scope {
            for name in source.key.as_ref()? {
                let column = source.columns.iter().find(|c| &c.name == name)?;
                all.push(Expr {
                    sql: format!("{}.{}", source.alias, column.name),
                    class: column.class,
                    exact: column.exact,
                    literal: column.literal,
                });
            }
        }
        Some(all)
    }

    fn select(&mut self, depth: u32) -> Made {
        match self.number(0, 99) {
            0..40 => self.plain(depth),
            40..80 => self.grouped(depth),
            80..90 => self.windows(depth),
            _ => self.distinct(depth),
        }
    }

    /// The item's text with the name of its column, which is added to the columns.
    fn name(&mut self, expr: &Expr, columns: &mut Vec<Column>) -> String {
        let name = format!("d{}", columns.len());
        columns.push(Column { name: name.clone(), class: expr.class, exact: expr.exact, literal: expr.literal });
        format!("{} AS {name}", expr.sql)
    }

    /// LIMIT for one in three, with an ORDER BY that is total.
    fn limit(&mut self, query: &mut Query, key: &[String]) {
        for column in key {
            let direction = self.pick(&["", "", " DESC"]);
            query.order.push(format!("{column}{direction}"));
        }
        query.total = true;
        if self.chance(60) {
            let count = self.pick(&[1, 3, 10, 10, 100]);
            query.limit = Some(if self.chance(30) { format!("{count} OFFSET {}", self.number(0, 9)) } else { count.to_string() });
        }
    }

    fn plain(&mut self, depth: u32) -> Made {
        let mut select = Select::default();
        let (scope, rows) = self.rows(depth, &mut select);
        let mut columns = Vec::new();
        let mut key = None;
        // What stands around needs the key's columns.
        let exprs_of_key = self.key_of(&scope);
        if depth == 1
            && let Some(exprs) = &exprs_of_key
        {
            key = Some((0..exprs.len()).collect());
            for expr in exprs {
                let item = self.name(expr, &mut columns);
                select.items.push(item);
            }
        }
        for _ in 0..self.number(1, 4) {
            let class = self.class(&scope);
            let expr = self.expr(class, &scope, 2);
            // MySQL 8.0.12 does not fill constants with NULLs where their table is the inner one of an outer join.
            let expr = if depth == 1 && self.old && !reads_column(&expr, &scope) { self.any_column(&scope) } else { expr };
            let item = self.name(&expr, &mut columns);
            select.items.push(item);
        }
        let mut query = Query { selects: vec![(String::new(), select)], ..Query::default() };
        if let Some(exprs) = exprs_of_key.filter(|_| self.chance(40)) {
            let mut order: Vec<String> = Vec::new();
            if self.chance(60) {
                order.push(self.any_column(&scope).sql);
            }
            order.extend(exprs.into_iter().map(|e| e.sql));
            self.limit(&mut query, &order);
        }
        Made { query, columns, key, rows }
    }

    /// What has one spelling a value.
    fn exact(&mut self, expr: Expr) -> Expr {
        match expr.exact {
            true => expr,
            false => Expr::exact(Class::Text(Collation::Default), format!("HEX({})", expr.sql)),
        }
    }

    fn distinct(&mut self, depth: u32) -> Made {
        let mut select = Select { distinct: true, ..Select::default() };
        let (scope, rows) = self.rows(depth, &mut select);
        let mut columns = Vec::new();
        for _ in 0..self.number(1, 3) {
            let class = self.class(&scope);
            let expr = self.expr(class, &scope, 1);
            let expr = self.exact(expr);
            let item = self.name(&expr, &mut columns);
            select.items.push(item);
        }
        let key = Some((0..columns.len()).collect());
        let mut query = Query { selects: vec![(String::new(), select)], ..Query::default() };
        if self.chance(50) {
            let names: Vec<String> = columns.iter().map(|c| c.name.clone()).collect();
            self.limit(&mut query, &names);
        }
        Made { query, columns, key, rows }
    }

    fn aggregate(&mut self, scope: &[Source]) -> Expr {
        let made = self.any_aggregate(scope);
        // MySQL 8.0.12 counts a constant in the rows of a rollup wrongly now and then.
        if self.old && !reads_column(&made, scope) { Expr::exact(Class::Int, "COUNT(*)".to_string()) } else { made }
    }

    fn any_aggregate(&mut self, scope: &[Source]) -> Expr {
        let int = |sql| Expr::exact(Class::Int, sql);
        let decimal = |sql| Expr::exact(Class::Decimal, sql);
        let distinct = self.pick(&["", "", "DISTINCT "]);
        match self.number(0, 11) {
            0 | 1 => int("COUNT(*)".to_string()),
            2 | 3 => {
                let class = self.class(scope);
                int(format!("COUNT({distinct}{})", self.expr(class, scope, 1).sql))
            }
            4..=6 => {
                let class = self.pick(&[Class::Int, Class::Decimal]);
                let function = self.pick(&["SUM", "SUM", "AVG"]);
                decimal(format!("{function}({distinct}{})", self.expr(class, scope, 1).sql))
            }
            7 => {
                let function = self.pick(&["SUM", "AVG"]);
                Expr::exact(Class::Double, format!("{function}({})", self.expr(Class::Double, scope, 1).sql))
            }
            8 | 9 => {
                let class = self.class(scope);
                let expr = self.expr(class, scope, 1);
                let expr = self.exact(expr);
                // MIN and MAX of an ENUM are of its text.
                let class = if expr.class == Class::Enum { Class::Text(Collation::Default) } else { expr.class };
                Expr::exact(class, format!("{}({})", self.pick(&["MIN", "MAX"]), expr.sql))
            }
            10 => {
                // A number in ORDER BY would be a position.
                let expr = self.any_column(scope);
                let expr = self.exact(expr);
                let (direction, separator) = (self.pick(&["", " DESC"]), self.pick(&["", " SEPARATOR '|'", " SEPARATOR ''"]));
                let sql = format!("GROUP_CONCAT({distinct}{} ORDER BY {}{direction}{separator})", expr.sql, expr.sql);
                Expr::exact(Class::Text(Collation::Default), format!("HEX({sql})"))
            }
            _ => {
                let function = self.pick(&["BIT_AND", "BIT_OR", "BIT_XOR", "STDDEV_POP", "VAR_SAMP"]);
                let arg = self.expr(Class::Int, scope, 0).sql;
                match function.starts_with("BIT") {
                    true => Expr::exact(Class::Unsigned, format!("{function}({arg})")),
                    // The last digits depend on the order.
                    false => Expr::exact(Class::Double, format!("ROUND({function}({arg} % 1000), 3)")),
                }
            }
        }
    }

    fn grouped(&mut self, depth: u32) -> Made {
        let mut select = Select::default();
        let (scope, rows) = self.rows(depth, &mut select);
        let (mut columns, mut keys) = (Vec::new(), Vec::new());
        for _ in 0..self.pick(&[0, 1, 1, 2, 3]) {
            let expr = if self.chance(75) { self.any_column(&scope) } else { self.computed_key(&scope) };
            if select.group.contains(&expr.sql) {
                continue;
            }
            select.group.push(expr.sql.clone());
            // Of a group's spellings any may be shown.
            let shown = if expr.exact { expr } else { Expr::exact(Class::Text(Collation::Default), format!("MIN(HEX({}))", expr.sql)) };
            keys.push(columns.len());
            let item = self.name(&shown, &mut columns);
            select.items.push(item);
        }
        for _ in 0..self.number(1, 3) {
            let aggregate = self.aggregate(&scope);
            let item = self.name(&aggregate, &mut columns);
            select.items.push(item);
        }
        // MySQL 8.0.12 does not roll up what a merged derived table computes, and joins the NULLs of a rollup wrongly.
        let plain = depth > 1 && scope.iter().all(|source| self.tables.iter().any(|table| table.name == source.from));
        if !select.group.is_empty() && self.chance(15) && (plain || !self.old) {
            select.rollup = true;
            // NULL of a super-aggregate is not NULL of a group.
            let first = select.group[0].clone();
            let item = self.name(&Expr::exact(Class::Int, format!("GROUPING({first})")), &mut columns);
            select.items.push(item);
        }
        if self.chance(30) {
            let aggregate = self.aggregate(&scope);
            let condition = match aggregate.class {
                Class::Int | Class::Decimal | Class::Double | Class::Unsigned => {
                    format!("({} {} {})", aggregate.sql, self.pick(&[">", "<", "<>"]), self.number(-5, 20))
                }
                _ => format!("({} IS NOT NULL)", aggregate.sql),
            };
            select.having.push(condition);
        }
        let (grouped, rollup) = (!select.group.is_empty(), select.rollup);
        let mut query = Query { selects: vec![(String::new(), select)], ..Query::default() };
        if grouped && !rollup && self.chance(40) {
            let mut order: Vec<String> = Vec::new();
            if self.chance(50) {
                order.push(columns[keys.len()].name.clone());
            }
            order.extend(keys.iter().map(|&at| columns[at].name.clone()));
            self.limit(&mut query, &order);
        }
        let key = if rollup { None } else { Some(keys).filter(|_| grouped) };
        Made { query, columns, key, rows: if grouped { rows / 3.0 } else { 1.0 } }
    }

    /// Something computed of a column, without a subquery: MySQL must find it again in the list.
    fn computed_key(&mut self, scope: &[Source]) -> Expr {
        let column = self.any_column(scope);
        let (sql, class) = match column.class {
            Class::Int | Class::Unsigned | Class::Year => (format!("({} % 5)", column.sql), Class::Int),
            Class::Decimal => (format!("ROUND({}, 0)", column.sql), Class::Decimal),
            Class::Date | Class::DateTime => (format!("YEAR({})", column.sql), Class::Int),
            Class::Text(_) => (format!("CHAR_LENGTH({})", column.sql), Class::Int),
            _ => (format!("({} IS NULL)", column.sql), Class::Int),
        };
        Expr::exact(class, sql)
    }

    fn windows(&mut self, depth: u32) -> Made {
        let mut select = Select::default();
        let (scope, rows) = self.rows(depth, &mut select);
        let mut columns = Vec::new();
        let keys = self.key_of(&scope);
        for expr in keys.clone().unwrap_or_default() {
            let item = self.name(&expr, &mut columns);
            select.items.push(item);
        }
        let key = keys.as_ref().map(|keys| (0..keys.len()).collect());
        // MySQL 8.0.12 loses rows of several windows now and then.
        for _ in 0..self.number(1, if self.old { 1 } else { 3 }) {
            let expr = self.window(&scope, keys.as_deref());
            let item = self.name(&expr, &mut columns);
            select.items.push(item);
        }
        Made { query: Query { selects: vec![(String::new(), select)], ..Query::default() }, columns, key, rows }
    }

    /// With MIN and MAX, which MySQL 8.0.12 gets wrong now and then, as it does PERCENT_RANK.
    fn of_a_window(&self, functions: &[&'static str]) -> Vec<&'static str> {
        let more: &[&str] = if self.old { &[] } else { &["MIN", "MAX"] };
        [functions, more].concat()
    }

    /// A column; no ENUM for MySQL 8.0.12, whose windows take all of its members for peers.
    fn window_key(&mut self, scope: &[Source], keys: Option<&[Expr]>) -> String {
        let column = self.any_column(scope);
        match keys.and_then(|keys| keys.first()) {
            Some(key) if self.old && column.class == Class::Enum => key.sql.clone(),
            _ => column.sql,
        }
    }

    fn window(&mut self, scope: &[Source], keys: Option<&[Expr]>) -> Expr {
        let partition = if self.chance(60) { format!("PARTITION BY {}", self.window_key(scope, keys)) } else { String::new() };
        let by = self.window_key(scope, keys);
        let direction = self.pick(&["", " DESC"]);
        let peers = format!("{partition} ORDER BY {by}{direction}");
        let number = self.number(1, 4);
        let int = |sql| Expr::exact(Class::Int, sql);
        // Without a total order only what peers share may be asked for.
        let Some(keys) = keys.filter(|_| self.chance(70)) else {
            return match self.number(0, 4) {
                0 => int(format!("{}() OVER ({peers})", self.pick(&["RANK", "DENSE_RANK"]))),
                1 => Expr::exact(Class::Double, format!("{}() OVER ({peers})", self.pick(if self.old { &["CUME_DIST"] } else { &["PERCENT_RANK", "CUME_DIST"] }))),
                2 => int(format!("COUNT(*) OVER ({peers})")),
                3 => {
                    let arg = self.expr(Class::Decimal, scope, 1).sql;
                    Expr::exact(
                        Class::Decimal,
                        format!("{}({arg}) OVER ({})", self.pick(&["SUM", "AVG"]), self.pick(&[&peers, &partition])),
                    )
                }
                _ => {
                    let arg = self.expr(Class::Int, scope, 1).sql;
                    let functions = self.of_a_window(&["SUM", "COUNT"]);
                    int(format!("{}({arg}) OVER ({})", self.pick(&functions), self.pick(&[&peers, &partition])))
                }
            };
        };
        let total = format!("{peers}, {}", keys.iter().map(|k| k.sql.as_str()).collect::<Vec<_>>().join(", "));
        let class = self.class(scope);
        let value = self.expr(class, scope, 1);
        let frame = self.pick(&[
            "",
            " ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING",
            " ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
            " ROWS 3 PRECEDING",
            " ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING",
        ]);
        match self.number(0, 5) {
            0 => int(format!("ROW_NUMBER() OVER ({total})")),
            1 => int(format!("NTILE({number}) OVER ({total})")),
            2 => Expr { sql: format!("{}({}, {number}) OVER ({total})", self.pick(&["LAG", "LEAD"]), value.sql), ..value },
            3 => Expr { sql: format!("{}({}) OVER ({total}{frame})", self.pick(&["FIRST_VALUE", "LAST_VALUE"]), value.sql), ..value },
            4 => {
                let arg = self.expr(Class::Decimal, scope, 1).sql;
                let functions = self.of_a_window(&["SUM", "AVG"]);
                Expr::exact(Class::Decimal, format!("{}({arg}) OVER ({total}{frame})", self.pick(&functions)))
            }
            _ => {
                let arg = self.expr(Class::Int, scope, 1).sql;
                let functions = self.of_a_window(&["SUM", "COUNT"]);
                int(format!("{}({arg}) OVER ({total}{frame})", self.pick(&functions)))
            }
        }
    }

    /// SELECTs of the same classes.
    fn set_operation(&mut self) -> Made {
        const CLASSES: [Class; 6] =
            [Class::Int, Class::Decimal, Class::Text(Collation::Default), Class::Date, Class::DateTime, Class::Double];
        let classes: Vec<Class> = (0..self.number(1, 3)).map(|_| self.pick(&CLASSES)).collect();
        let words: &[&str] =
            if self.old { &["UNION", "UNION ALL"] } else { &["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"] };
        let (mut columns, mut rows) = (Vec::new(), 0.0);
        let mut query = Query::default();
        for number in 0..self.number(2, 3) {
            let mut select = Select { distinct: self.chance(20), ..Select::default() };
            let (scope, more) = self.rows(1, &mut select);
            rows += more;
            columns.clear();
            for &class in &classes {
                let expr = self.expr(class, &scope, 1);
                let expr = self.exact(expr);
                let item = self.name(&expr, &mut columns);
                select.items.push(item);
            }
            query.selects.push((if number == 0 { String::new() } else { self.pick(words).to_string() }, select));
        }
        if self.chance(50) {
            let numbers: Vec<String> = (1..=columns.len()).map(|n| n.to_string()).collect();
            self.limit(&mut query, &numbers);
        }
        Made { query, columns, key: None, rows }
    }
}

/// A column of the scope is part of the expression.
fn reads_column(expr: &Expr, scope: &[Source]) -> bool {
    scope.iter().any(|source| expr.sql.contains(&format!("{}.", source.alias)))
}
