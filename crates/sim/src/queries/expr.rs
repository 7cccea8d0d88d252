//! Random expressions, each of one class, over the columns in scope.
//!
//! Nothing here may depend on the order of rows or of evaluation: doubles are multiples of small powers of two, integers stay far from
//! overflow, and an expression knows whether its equal values are the same bytes (`exact`), because a group or DISTINCT shows any of them.

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use super::schema::{Class, Collation, Column, Literal, Table, literal, typed};

/// A table or subquery in FROM.
#[derive(Clone, Debug)]
pub struct Source {
    /// What stands before the alias: a name, or a query in parentheses.
    pub from: String,
    pub alias: String,
    pub columns: Vec<Column>,
    /// Columns that together are unique, if any are.
    pub key: Option<Vec<String>>,
    /// About how many rows it has.
    pub rows: f64,
}

impl Source {
    pub fn of(table: &Table, alias: String) -> Source {
        Source { from: table.name.clone(), alias, columns: table.columns.clone(), key: Some(table.key.clone()), rows: table.rows as f64 }
    }
}

#[derive(Clone, Debug)]
pub struct Expr {
    pub sql: String,
    pub class: Class,
    pub exact: bool,
    /// Of a column: a literal as its values are.
    pub literal: Option<Literal>,
}

impl Expr {
    /// Computed, and equal values are the same bytes.
    pub fn exact(class: Class, sql: String) -> Expr {
        Expr { sql, class, exact: true, literal: None }
    }
}

/// What expressions are made with.
pub struct Gen<'a> {
    pub rng: &'a mut StdRng,
    pub tables: &'a [Table],
    /// Only what MySQL 8.0.12 has.
    pub old: bool,
    /// Numbers the aliases of a query.
    pub aliases: usize,
    /// Names of WITH.
    pub ctes: Vec<Source>,
    /// Rows of a join that is worth its time.
    pub rows_max: f64,
}

/// Rows of a join over small tables; over large ones it may have some of those of the largest.
const ROWS_MAX: f64 = 30_000.0;

impl<'a> Gen<'a> {
    pub fn new(rng: &'a mut StdRng, tables: &'a [Table], old: bool) -> Gen<'a> {
        let largest = tables.iter().map(|t| t.rows as f64).fold(0.0, f64::max);
        Gen { rng, tables, old, aliases: 0, ctes: Vec::new(), rows_max: ROWS_MAX.max(largest * 2.0) }
    }
}

impl Gen<'_> {
    pub fn chance(&mut self, percent: u32) -> bool {
        self.rng.random_range(0..100) < percent
    }

    pub fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of.choose(self.rng).expect("something to choose from").clone()
    }

    pub fn number(&mut self, low: i64, high: i64) -> i64 {
        self.rng.random_range(low..=high)
    }

    pub fn alias(&mut self) -> String {
        self.aliases += 1;
        format!("s{}", self.aliases)
    }

    /// A class of some column in scope, mostly.
    pub fn class(&mut self, scope: &[Source]) -> Class {
        let source = self.pick(scope);
        self.pick(&source.columns).class
    }

    /// A column of the class.
    fn column(&mut self, class: Class, scope: &[Source]) -> Option<Expr> {
        let of: Vec<Expr> = scope
            .iter()
            .flat_map(|s| {
                s.columns.iter().filter(|c| c.class == class).map(|c| Expr {
                    sql: format!("{}.{}", s.alias, c.name),
                    class,
                    exact: c.exact,
                    literal: c.literal,
                })
            })
            .collect();
        of.choose(self.rng).cloned()
    }

    pub fn any_column(&mut self, scope: &[Source]) -> Expr {
        let class = self.class(scope);
        self.column(class, scope).expect("a class in scope has a column")
    }

    fn leaf(&mut self, class: Class, scope: &[Source]) -> Expr {
        let column = if self.chance(85) { self.column(class, scope) } else { None };
        column.unwrap_or_else(|| self.literal(class))
    }

    fn literal(&mut self, class: Class) -> Expr {
        let exact = !matches!(class, Class::Text(c) if c != Collation::Default && c != Collation::Bin);
        Expr { exact, ..Expr::exact(class, literal(class, self.rng)) }
    }

    pub fn expr(&mut self, class: Class, scope: &[Source], depth: u32) -> Expr {
        if depth == 0 || self.chance(30) {
            return self.leaf(class, scope);
        }
        // What every class has.
        if self.chance(25) {
            let (a, b) = (self.expr(class, scope, depth - 1), self.expr(class, scope, depth - 1));
            // A choice between an ENUM and a literal is a text.
            if class != Class::Enum {
                let sql = match self.number(0, 3) {
                    0 => format!("COALESCE({}, {})", a.sql, b.sql),
                    1 => format!("IFNULL({}, {})", a.sql, b.sql),
                    2 => format!("IF({}, {}, {})", self.cond(scope, depth - 1), a.sql, b.sql),
                    _ => format!(
                        "(CASE WHEN {} THEN {} WHEN {} THEN {} END)",
                        self.cond(scope, depth - 1),
                        a.sql,
                        self.cond(scope, depth - 1),
                        b.sql
                    ),
                };
                // MySQL does not give all of a CASE's decimals the same scale.
                let sql = if class == Class::Decimal { format!("CAST({sql} AS DECIMAL(40,6))") } else { sql };
                return Expr { sql, class, exact: a.exact && b.exact, literal: None };
            }
        }
        if self.chance(5) {
            return self.scalar(class, scope);
        }
        let d = depth - 1;
        let mut exact = true;
        let sql = match class {
            Class::Int => self.int(scope, d),
            Class::Unsigned | Class::Year => return self.leaf(class, scope),
            Class::Decimal => self.decimal(scope, d),
            Class::Double => self.double(scope, d),
            Class::Text(collation) => {
                exact = false;
                self.text(collation, scope, d)
            }
            Class::Date => self.date(scope, d),
            Class::DateTime => self.datetime(scope, d),
            Class::Binary | Class::Time | Class::Enum => return self.leaf(class, scope),
        };
        Expr { sql, class, exact, literal: None }
    }

    /// The text of an expression.
    fn sql(&mut self, class: Class, scope: &[Source], depth: u32) -> String {
        self.expr(class, scope, depth).sql
    }

    fn any_text(&mut self, scope: &[Source], depth: u32) -> String {
        let collation = self.pick(&[Collation::Default, Collation::Default, Collation::Bin, Collation::General, Collation::Latin]);
        self.sql(Class::Text(collation), scope, depth)
    }

    fn int(&mut self, scope: &[Source], d: u32) -> String {
        let small = self.number(2, 7);
        match self.number(0, 23) {
            0 | 1 => format!("({} + {})", self.sql(Class::Int, scope, d), self.sql(Class::Int, scope, d)),
            2 => format!("({} - {})", self.sql(Class::Int, scope, d), self.sql(Class::Int, scope, d)),
            3 => format!("({} * {small})", self.sql(Class::Int, scope, d)),
            4 => format!("({} DIV {small})", self.sql(Class::Int, scope, d)),
            5 => format!("({} % {small})", self.sql(Class::Int, scope, d)),
            6 => format!("ABS({})", self.sql(Class::Int, scope, d)),
            7 => format!("SIGN({})", self.sql(Class::Decimal, scope, d)),
            8 => format!("CHAR_LENGTH({})", self.any_text(scope, d)),
            9 => format!("LENGTH({})", self.any_text(scope, d)),
            10 => {
                let function = self.pick(&["YEAR", "MONTH", "DAYOFMONTH", "DAYOFWEEK", "DAYOFYEAR", "WEEKDAY", "QUARTER", "TO_DAYS"]);
                format!("{function}({})", self.sql(Class::Date, scope, d))
            }
            11 => format!("DATEDIFF({}, {})", self.sql(Class::Date, scope, d), self.sql(Class::DateTime, scope, d)),
            12 => {
                let unit = self.pick(&["DAY", "MONTH", "HOUR", "YEAR", "WEEK"]);
                format!("TIMESTAMPDIFF({unit}, {}, {})", self.sql(Class::DateTime, scope, d), self.sql(Class::DateTime, scope, d))
            }
            13 => format!("({})", self.cond(scope, d)),
            14 => format!("FLOOR({})", self.sql(Class::Decimal, scope, d)),
            15 => format!("CAST({} AS SIGNED)", self.sql(Class::Decimal, scope, d)),
            16 => format!("LOCATE('a', {})", self.any_text(scope, d)),
            17 => format!("NULLIF({}, {})", self.sql(Class::Int, scope, d), self.sql(Class::Int, scope, d)),
            18 => format!("{}({}, {})", self.pick(&["GREATEST", "LEAST"]), self.sql(Class::Int, scope, d), self.sql(Class::Int, scope, d)),
            19 => format!(
                "EXTRACT({} FROM {})",
                self.pick(&["YEAR", "MONTH", "DAY", "HOUR", "YEAR_MONTH"]),
                self.sql(Class::DateTime, scope, d)
            ),
            20 => format!("(-{})", self.sql(Class::Int, scope, d)),
            21 => format!("HOUR({})", self.sql(Class::Time, scope, d)),
            22 => format!("({} <=> {})", self.sql(Class::Int, scope, d), self.sql(Class::Decimal, scope, d)),
            _ => format!("MOD({}, {small})", self.sql(Class::Int, scope, d)),
        }
    }

    fn decimal(&mut self, scope: &[Source], d: u32) -> String {
        let digit = self.number(0, 2);
        match self.number(0, 11) {
            0 | 1 => format!("({} + {})", self.sql(Class::Decimal, scope, d), self.sql(Class::Decimal, scope, d)),
            2 => format!("({} - {})", self.sql(Class::Decimal, scope, d), self.sql(Class::Int, scope, d)),
            3 => format!("({} * {digit}.25)", self.sql(Class::Decimal, scope, d)),
            4 | 5 => {
                let quotient = match digit {
                    0 => format!("({} / {})", self.sql(Class::Int, scope, d), self.sql(Class::Int, scope, 0)),
                    _ => format!("({} / {digit}.5)", self.sql(Class::Decimal, scope, d)),
                };
                // How many more digits of it MySQL adds up depends on its temporary tables.
                if self.old { format!("CAST({quotient} AS DECIMAL(30,6))") } else { quotient }
            }
            6 => format!("ROUND({}, {digit})", self.sql(Class::Decimal, scope, d)),
            7 => format!("TRUNCATE({}, {digit})", self.sql(Class::Decimal, scope, d)),
            8 => format!("CAST({} AS DECIMAL(20,3))", self.sql(Class::Int, scope, d)),
            9 => format!("ABS({})", self.sql(Class::Decimal, scope, d)),
            10 => format!(
                "{}({}, {})",
                self.pick(&["GREATEST", "LEAST"]),
                self.sql(Class::Decimal, scope, d),
                self.sql(Class::Decimal, scope, d)
            ),
            _ => format!("NULLIF({}, {})", self.sql(Class::Decimal, scope, d), self.sql(Class::Decimal, scope, 0)),
        }
    }

    fn double(&mut self, scope: &[Source], d: u32) -> String {
        match self.number(0, 4) {
            0 => format!("({} + {})", self.sql(Class::Double, scope, d), self.sql(Class::Double, scope, d)),
            1 => format!("({} - {})", self.sql(Class::Double, scope, d), self.sql(Class::Double, scope, d)),
            2 => format!("ABS({})", self.sql(Class::Double, scope, d)),
            // Never -0: which of the two zeros is seen would depend on the order.
            3 => format!("({} * 0.5e0 + 0e0)", self.sql(Class::Double, scope, d)),
            _ => format!("({} + 0.25e0)", self.sql(Class::Int, scope, d)),
        }
    }

    fn text(&mut self, collation: Collation, scope: &[Source], d: u32) -> String {
        let class = Class::Text(collation);
        let number = self.number(1, 4);
        let free = collation == Collation::Default;
        match self.number(0, if free { 14 } else { 10 }) {
            0 => format!("CONCAT({}, '-')", self.sql(class, scope, d)),
            1 => format!("CONCAT({}, {})", self.sql(class, scope, d), self.sql(class, scope, d)),
            2 => format!("UPPER({})", self.sql(class, scope, d)),
            3 => format!("LOWER({})", self.sql(class, scope, d)),
            4 => format!("SUBSTRING({}, {number}, 2)", self.sql(class, scope, d)),
            5 => format!("{}({}, {number})", self.pick(&["LEFT", "RIGHT"]), self.sql(class, scope, d)),
            6 => format!("TRIM({})", self.sql(class, scope, d)),
            7 => format!("REPLACE({}, 'a', 'xy')", self.sql(class, scope, d)),
            8 => format!("REVERSE({})", self.sql(class, scope, d)),
            9 => format!("LPAD({}, {number}, '*')", self.sql(class, scope, d)),
            10 => format!("NULLIF({}, {})", self.sql(class, scope, d), self.sql(class, scope, 0)),
            11 => format!("CAST({} AS CHAR)", self.sql(Class::Int, scope, d)),
            12 => format!("DATE_FORMAT({}, '%Y/%m')", self.sql(Class::Date, scope, d)),
            13 => format!("CAST({} AS CHAR)", self.sql(Class::Decimal, scope, d)),
            _ => format!("HEX({})", self.any_text(scope, d)),
        }
    }

    fn date(&mut self, scope: &[Source], d: u32) -> String {
        let unit = self.pick(&["DAY", "MONTH", "YEAR", "WEEK"]);
        match self.number(0, 3) {
            0 => format!("({} + INTERVAL {} {unit})", self.sql(Class::Date, scope, d), self.number(-5, 20)),
            1 => format!("DATE({})", self.sql(Class::DateTime, scope, d)),
            2 => format!("LAST_DAY({})", self.sql(Class::Date, scope, d)),
            _ => format!("CAST({} AS DATE)", self.sql(Class::DateTime, scope, d)),
        }
    }

    fn datetime(&mut self, scope: &[Source], d: u32) -> String {
        match self.number(0, 2) {
            0 => format!(
                "({} + INTERVAL {} {})",
                self.sql(Class::DateTime, scope, d),
                self.number(-9, 50),
                self.pick(&["HOUR", "MINUTE", "DAY", "SECOND"])
            ),
            1 => format!("CAST({} AS DATETIME)", self.sql(Class::Date, scope, d)),
            _ => format!("CAST({} AS DATETIME(3))", self.sql(Class::DateTime, scope, d)),
        }
    }

    /// Two expressions that may be compared, and whose comparison is worth something.
    fn comparable(&mut self, scope: &[Source], depth: u32) -> (String, String) {
        const NUMBERS: [Class; 4] = [Class::Int, Class::Decimal, Class::Double, Class::Unsigned];
        let class = self.class(scope);
        let other = if NUMBERS.contains(&class) && self.chance(15) { self.pick(&NUMBERS) } else { class };
        let left = self.expr(class, scope, depth);
        let right = if self.chance(70) { self.literal_for(&left, other) } else { self.sql(other, scope, depth) };
        (left.sql, right)
    }

    /// A literal of this class that may be equal to the expression.
    fn literal_for(&mut self, expr: &Expr, class: Class) -> String {
        match expr.literal {
            Some(of_column) if class == expr.class => typed(class, &of_column(self.rng)),
            _ => literal(class, self.rng),
        }
    }

    /// A condition, in parentheses or a call.
    pub fn cond(&mut self, scope: &[Source], depth: u32) -> String {
        if depth > 0 && self.chance(30) {
            let (a, b) = (self.cond(scope, depth - 1), self.cond(scope, depth - 1));
            return match self.number(0, 6) {
                0..=2 => format!("({a} AND {b})"),
                3 | 4 => format!("({a} OR {b})"),
                5 => format!("(NOT {a})"),
                // MySQL 8.0.12 takes the others for a reason to make an outer join an inner one.
                _ if self.old => format!("({a} IS {})", self.pick(&["TRUE", "FALSE"])),
                _ => format!("({a} IS {})", self.pick(&["TRUE", "NOT TRUE", "FALSE", "NOT FALSE", "UNKNOWN"])),
            };
        }
        if depth > 0 && self.chance(12) {
            return self.subquery_condition(scope);
        }
        let d = depth.saturating_sub(1);
        match self.number(0, 10) {
            0..=4 => {
                let operator = self.pick(&["=", "<>", "<", "<=", ">", ">=", ">=", "<=", "<=>"]);
                let (a, b) = self.comparable(scope, d);
                format!("({a} {operator} {b})")
            }
            5 => format!("({} IS {}NULL)", self.any_column(scope).sql, self.pick(&["", "NOT "])),
            6 => {
                let class = self.class(scope);
                let a = self.expr(class, scope, d);
                let (b, c) = (self.literal_for(&a, class), self.literal_for(&a, class));
                format!("({} {}BETWEEN {b} AND {c})", a.sql, self.pick(&["", "NOT "]))
            }
            7 | 8 => {
                let class = self.class(scope);
                let a = self.expr(class, scope, d);
                let list: Vec<String> = (0..self.number(1, 6)).map(|_| self.literal_for(&a, class)).collect();
                format!("({} {}IN ({}))", a.sql, self.pick(&["", "NOT "]), list.join(", "))
            }
            9 => {
                let pattern = self.pick(&["a%", "%a%", "%e", "_o%", "A%", "%ss%", "b", "%", "a\\_b", "k1%"]);
                format!("({} {}LIKE '{pattern}')", self.any_text(scope, d), self.pick(&["", "", "NOT "]))
            }
            _ => {
                let (a, b) = (self.comparable(scope, 0), self.comparable(scope, 0));
                format!("(({}, {}) = ({}, {}))", a.0, b.0, a.1, b.1)
            }
        }
    }

    /// A table small enough to be read once for each row of the scope.
    fn inner(&mut self, scope: &[Source]) -> Source {
        let rows: f64 = scope.iter().map(|s| s.rows.max(1.0)).product();
        let small: Vec<&Table> = self.tables.iter().filter(|t| rows * t.rows as f64 <= 600_000.0).collect();
        let table = small.choose(self.rng).copied().unwrap_or_else(|| self.tables.iter().min_by_key(|t| t.rows).expect("tables"));
        let alias = self.alias();
        Source::of(table, alias)
    }

    /// The FROM and WHERE of a subquery, tied to the scope by an equality or not.
    fn inner_rows(&mut self, inner: &Source, scope: &[Source]) -> String {
        let mut conditions = Vec::new();
        if self.chance(70) {
            conditions.extend(self.tie(inner, scope));
        }
        if self.chance(50) {
            let mut both = scope.to_vec();
            both.push(inner.clone());
            let alone = [inner.clone()];
            let of: &[Source] = if self.chance(25) { &both } else { &alone };
            conditions.push(self.cond(of, 1));
        }
        let condition = if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) };
        format!("FROM {} {}{condition}", inner.from, inner.alias)
    }

    /// An equality between a column of one source and one of the others.
    pub fn tie(&mut self, inner: &Source, scope: &[Source]) -> Option<String> {
        let mut pairs = Vec::new();
        for column in &inner.columns {
            for source in scope {
                let other = source.columns.iter().filter(|c| c.class == column.class && c.class != Class::Enum);
                pairs.extend(other.map(|c| format!("({}.{} = {}.{})", inner.alias, column.name, source.alias, c.name)));
            }
        }
        pairs.choose(self.rng).cloned()
    }

    fn subquery_condition(&mut self, scope: &[Source]) -> String {
        let inner = self.inner(scope);
        let rows = self.inner_rows(&inner, scope);
        let alone = [inner];
        let class = self.class(&alone);
        if class == Class::Enum || self.chance(35) {
            return format!("({}EXISTS (SELECT 1 {rows}))", self.pick(&["", "NOT "]));
        }
        let item = self.column(class, &alone).expect("a class in scope has a column").sql;
        let left = self.sql(class, scope, 1);
        match self.number(0, 4) {
            0 | 1 => format!("({left} IN (SELECT {item} {rows}))"),
            2 => format!("({left} NOT IN (SELECT {item} {rows}))"),
            3 => format!("({left} {} ANY (SELECT {item} {rows}))", self.pick(&["=", "<", ">=", "<>"])),
            _ => format!("({left} {} ALL (SELECT {item} {rows}))", self.pick(&["<>", "<", ">="])),
        }
    }

    /// A subquery of one value.
    fn scalar(&mut self, class: Class, scope: &[Source]) -> Expr {
        let inner = self.inner(scope);
        let rows = self.inner_rows(&inner, scope);
        let alone = [inner];
        let item = match (class, self.column(class, &alone)) {
            (Class::Int, _) if self.chance(50) => "COUNT(*)".to_string(),
            (Class::Decimal, Some(column)) if self.chance(50) => format!("{}({})", self.pick(&["SUM", "AVG"]), column.sql),
            (Class::Enum, _) => return self.leaf(class, scope),
            (_, Some(column)) if column.exact => format!("{}({})", self.pick(&["MIN", "MAX"]), column.sql),
            _ => return self.leaf(class, scope),
        };
        Expr::exact(class, format!("(SELECT {item} {rows})"))
    }
}
