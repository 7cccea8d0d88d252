//! Expressions, by MySQL's precedence: `:=`, OR, XOR, AND, NOT, comparison, `|`, `&`, shifts, `+ -`, `* / % DIV MOD`,
//! `^`, prefix operators, COLLATE.

use super::ast::*;
use super::lexer::Tok;
use super::parser::{Parser, Result};

impl Parser<'_> {
    /// An expression.
    pub(super) fn expr(&mut self) -> Result<Expr> {
        // The rows of a long INSERT: what is a literal and nothing else is not looked at by every level of precedence.
        let is_literal = matches!(self.peek(), Tok::Int(_) | Tok::Decimal | Tok::Float | Tok::Str { .. } | Tok::Hex(_) | Tok::Bit(_));
        if is_literal && (self.is_sym_at(1, ",") || self.is_sym_at(1, ")")) {
            return self.apart(Self::primary);
        }
        self.deeper(Self::or_expr)
    }

    /// An expression of operands that were parsed at this depth, one level above them.
    pub(super) fn make(&mut self, kind: ExprKind, start: usize) -> Expr {
        self.height += 1;
        Expr { kind, span: self.span_from(start) }
    }

    fn binary(&mut self, op: BinaryOp, left: Expr, right: Expr) -> Expr {
        let start = left.span.start;
        self.make(ExprKind::Binary { op, left: Box::new(left), right: Box::new(right) }, start)
    }

    fn or_expr(&mut self) -> Result<Expr> {
        let first = self.xor_expr()?;
        let mut others = Vec::new();
        while self.kw("OR") || (!self.options.pipes_as_concat && self.sym("||")) {
            others.push(self.apart(Self::xor_expr)?);
        }
        Ok(self.connected(BinaryOp::Or, first, others))
    }

    fn xor_expr(&mut self) -> Result<Expr> {
        let mut left = self.and_expr()?;
        while self.kw("XOR") {
            let right = self.apart(Self::and_expr)?;
            left = self.binary(BinaryOp::Xor, left, right);
            self.check_height()?;
        }
        Ok(left)
    }

    fn and_expr(&mut self) -> Result<Expr> {
        let first = self.not_expr()?;
        let mut others = Vec::new();
        while self.kw("AND") || self.sym("&&") {
            others.push(self.apart(Self::not_expr)?);
        }
        Ok(self.connected(BinaryOp::And, first, others))
    }

    fn connected(&mut self, op: BinaryOp, first: Expr, others: Vec<Expr>) -> Expr {
        // Levels that `balanced` adds.
        self.height += others.len().checked_ilog2().map_or(0, |log| log as usize + 1);
        balanced(op, first, others)
    }

    fn not_expr(&mut self) -> Result<Expr> {
        let start = self.start();
        if self.is_kw("NOT") && !self.options.high_not_precedence {
            self.advance();
            let expr = self.deeper(Self::not_expr)?;
            return Ok(self.make(ExprKind::Unary { op: UnaryOp::Not, expr: Box::new(expr) }, start));
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<Expr> {
        let mut left = self.predicate()?;
        let start = left.span.start;
        loop {
            self.check_height()?;
            if self.kw("IS") {
                let negated = self.kw("NOT");
                let expr = Box::new(left);
                let kind = match self.any_kw(&["NULL", "TRUE", "FALSE", "UNKNOWN"]) {
                    Some("NULL") => ExprKind::IsNull { expr, negated },
                    Some("TRUE") => ExprKind::IsBool { expr, value: Some(true), negated },
                    Some("FALSE") => ExprKind::IsBool { expr, value: Some(false), negated },
                    Some(_) => ExprKind::IsBool { expr, value: None, negated },
                    None => return self.fail(),
                };
                left = self.make(kind, start);
                continue;
            }
            let Some(op) = self.comparison_operator() else { return Ok(left) };
            let quantifier = match () {
                _ if self.is_any_kw(&["ANY", "SOME"]) && self.is_sym_at(1, "(") => Some(Quantifier::Any),
                _ if self.is_kw("ALL") && self.is_sym_at(1, "(") => Some(Quantifier::All),
                _ => None,
            };
            if let Some(quantifier) = quantifier {
                self.advance();
                self.expect_sym("(")?;
                let query = Box::new(self.query()?);
                self.expect_sym(")")?;
                left = self.make(ExprKind::Quantified { op, quantifier, expr: Box::new(left), query }, start);
            } else {
                let right = self.apart(Self::predicate)?;
                left = self.binary(op, left, right);
            }
        }
    }

    fn comparison_operator(&mut self) -> Option<BinaryOp> {
        let Tok::Sym(symbol) = self.peek() else { return None };
        let op = match *symbol {
            "=" => BinaryOp::Eq,
            "<=>" => BinaryOp::NullSafeEq,
            "<>" | "!=" => BinaryOp::Ne,
            "<" => BinaryOp::Lt,
            "<=" => BinaryOp::Le,
            ">" => BinaryOp::Gt,
            ">=" => BinaryOp::Ge,
            _ => return None,
        };
        self.advance();
        Some(op)
    }

    fn predicate(&mut self) -> Result<Expr> {
        let left = self.bit_expr(0)?;
        if !matches!(self.peek(), Tok::Word { .. }) {
            return Ok(left);
        }
        let start = left.span.start;
        let negated = self.is_kw("NOT") && ["IN", "BETWEEN", "LIKE", "REGEXP", "RLIKE"].iter().any(|k| self.is_kw_at(1, k));
        if negated {
            self.advance();
        }
        let expr = Box::new(left);
        let kind = match self.any_kw(&["IN", "BETWEEN", "LIKE", "REGEXP", "RLIKE"]) {
            Some("IN") => {
                self.expect_sym("(")?;
                let kind = if self.query_follows() && self.parentheses_hold_queries() {
                    ExprKind::InQuery { expr, query: Box::new(self.query()?), negated }
                } else {
                    ExprKind::InList { expr, list: self.list(Self::expr)?, negated }
                };
                self.expect_sym(")")?;
                kind
            }
            Some("BETWEEN") => {
                let low = Box::new(self.apart(|p| p.bit_expr(0))?);
                self.expect_kw("AND")?;
                let high = Box::new(self.deeper(Self::predicate)?);
                ExprKind::Between { expr, low, high, negated }
            }
            Some("LIKE") => {
                let pattern = Box::new(self.apart(|p| p.bit_expr(0))?);
                let escape = if self.kw("ESCAPE") { Some(Box::new(self.apart(Self::unary)?)) } else { None };
                ExprKind::Like { expr, pattern, escape, negated }
            }
            Some(_) => ExprKind::Regexp { expr, pattern: Box::new(self.apart(|p| p.bit_expr(0))?), negated },
            None if self.kws(&["SOUNDS", "LIKE"]) => ExprKind::SoundsLike { left: expr, right: Box::new(self.apart(|p| p.bit_expr(0))?) },
            None if self.is_kw("MEMBER") && (self.is_kw_at(1, "OF") || self.is_sym_at(1, "(")) => {
                self.advance();
                self.kw("OF");
                self.expect_sym("(")?;
                let array = Box::new(self.expr()?);
                self.expect_sym(")")?;
                ExprKind::MemberOf { value: expr, array }
            }
            None => return Ok(*expr),
        };
        Ok(self.make(kind, start))
    }

    /// Binary operators above comparison; `level` is the least binding strength accepted.
    pub(super) fn bit_expr(&mut self, level: u8) -> Result<Expr> {
        let mut left = self.unary()?;
        loop {
            self.check_height()?;
            let (op, strength) = match self.peek() {
                Tok::Sym("|") => (BinaryOp::BitOr, 1),
                Tok::Sym("&") => (BinaryOp::BitAnd, 2),
                Tok::Sym("<<") => (BinaryOp::Shl, 3),
                Tok::Sym(">>") => (BinaryOp::Shr, 3),
                Tok::Sym("+") => (BinaryOp::Add, 4),
                Tok::Sym("-") => (BinaryOp::Sub, 4),
                Tok::Sym("*") => (BinaryOp::Mul, 5),
                Tok::Sym("/") => (BinaryOp::Div, 5),
                Tok::Sym("%") => (BinaryOp::Mod, 5),
                Tok::Word { .. } if self.is_kw("DIV") => (BinaryOp::IntDiv, 5),
                Tok::Word { .. } if self.is_kw("MOD") => (BinaryOp::Mod, 5),
                Tok::Sym("^") => (BinaryOp::BitXor, 6),
                _ => return Ok(left),
            };
            if strength <= level {
                return Ok(left);
            }
            self.advance();
            if strength == 4 && self.is_kw("INTERVAL") && !self.interval_is_function() {
                left = self.interval_after(left, op == BinaryOp::Sub)?;
                continue;
            }
            let right = self.deeper(|p| p.bit_expr(strength))?;
            left = self.binary(op, left, right);
        }
    }

    /// `INTERVAL(a, b, …)` is a function; `INTERVAL (a) DAY` is not: only what follows the parenthesis tells.
    pub(super) fn interval_is_function(&self) -> bool {
        self.is_sym_at(1, "(") && self.closing(1).is_some_and(|end| self.word_at(end + 1).and_then(IntervalUnit::by_name).is_none())
    }

    fn interval_after(&mut self, date: Expr, subtract: bool) -> Result<Expr> {
        let start = date.span.start;
        let (value, unit) = self.interval()?;
        Ok(self.make(ExprKind::DateArith { date: Box::new(date), value: Box::new(value), unit, subtract }, start))
    }

    /// `INTERVAL expr unit`.
    pub(super) fn interval(&mut self) -> Result<(Expr, IntervalUnit)> {
        self.expect_kw("INTERVAL")?;
        let value = self.expr()?;
        Ok((value, self.interval_unit()?))
    }

    pub(super) fn interval_unit(&mut self) -> Result<IntervalUnit> {
        let word = self.word().unwrap_or_default();
        let word = word.get(..8).filter(|p| p.eq_ignore_ascii_case("SQL_TSI_")).map_or(word, |_| &word[8..]);
        match IntervalUnit::by_name(word) {
            Some(unit) => {
                self.advance();
                Ok(unit)
            }
            None => self.fail(),
        }
    }

    pub(super) fn unary(&mut self) -> Result<Expr> {
        let start = self.start();
        let op = match self.peek() {
            Tok::Sym("-") => UnaryOp::Minus,
            Tok::Sym("+") => UnaryOp::Plus,
            Tok::Sym("~") => UnaryOp::BitNot,
            Tok::Sym("!") => UnaryOp::Not,
            Tok::Word { .. } if self.is_kw("NOT") && self.options.high_not_precedence => UnaryOp::Not,
            Tok::Word { .. } if self.is_kw("BINARY") => UnaryOp::Binary,
            _ => return self.postfix(),
        };
        self.advance();
        let expr = Box::new(self.deeper(Self::unary)?);
        Ok(self.make(ExprKind::Unary { op, expr }, start))
    }

    fn postfix(&mut self) -> Result<Expr> {
        let mut expr = self.primary()?;
        let start = expr.span.start;
        loop {
            self.check_height()?;
            if self.kw("COLLATE") {
                let collation = self.name_or_string()?;
                expr = self.make(ExprKind::Collate { expr: Box::new(expr), collation }, start);
            } else if self.options.pipes_as_concat && self.sym("||") {
                let right = self.deeper(Self::unary)?;
                expr = self.binary(BinaryOp::Concat, expr, right);
            } else if self.is_sym("->") || self.is_sym("->>") {
                let op = if self.is_sym("->") { BinaryOp::JsonExtract } else { BinaryOp::JsonUnquote };
                self.advance();
                let at = self.start();
                let value = self.text()?;
                let path = self.apart(|p| p.make(ExprKind::Literal(Literal::String { value, introducer: None }), at));
                expr = self.binary(op, expr, path);
            } else {
                return Ok(expr);
            }
        }
    }

    /// `(SELECT`, `((SELECT`, `(WITH`, `(TABLE`, `(VALUES ROW` ahead, the first parenthesis taken already.
    pub(super) fn query_follows(&self) -> bool {
        let ahead = self.parentheses();
        self.is_kw_at(ahead, "SELECT")
            || self.is_kw_at(ahead, "WITH")
            || (self.is_kw_at(ahead, "TABLE") && ahead == 0)
            || (self.is_kw_at(ahead, "VALUES") && self.is_kw_at(ahead + 1, "ROW"))
    }

    /// A subquery and its closing parenthesis; `None`, and nothing taken, if an expression is there that may begin with one:
    /// `((SELECT 1) + 1)`.
    fn subquery_in_parentheses(&mut self) -> Result<Option<Query>> {
        if !self.query_follows() || !self.parentheses_hold_queries() {
            return Ok(None);
        }
        let query = self.query()?;
        self.expect_sym(")")?;
        Ok(Some(query))
    }

    /// Behind each of the parentheses that open here stands what may stand behind a query. (Trying it out would parse what is nested in such parentheses
    /// twice at each level.)
    fn parentheses_hold_queries(&self) -> bool {
        let opened = self.parentheses();
        // Of those, so many are open still.
        let mut open = opened;
        let (mut depth, mut ahead) = (opened, opened);
        while open > 0 {
            match self.peek_at(ahead) {
                Tok::Sym("(") => depth += 1,
                Tok::Sym(")") => {
                    depth -= 1;
                    if depth < open {
                        open = depth;
                        if !self.follows_query(ahead + 1) {
                            return false;
                        }
                    }
                }
                Tok::End => return true,
                _ => {}
            }
            ahead += 1;
        }
        true
    }

    /// The token `ahead` may stand behind a query in parentheses.
    pub(super) fn follows_query(&self, ahead: usize) -> bool {
        self.is_sym_at(ahead, ")") || ["UNION", "INTERSECT", "EXCEPT", "ORDER", "LIMIT", "FOR", "LOCK"].iter().any(|k| self.is_kw_at(ahead, k))
    }

    pub(super) fn primary(&mut self) -> Result<Expr> {
        let start = self.start();
        if let Tok::Str { national, .. } = *self.peek() {
            let value = self.text()?;
            return Ok(self.make(ExprKind::Literal(Literal::String { value, introducer: national.then(|| "utf8".to_string()) }), start));
        }
        let kind = match self.peek().clone() {
            Tok::Int(n) => {
                self.advance();
                ExprKind::Literal(Literal::Int(n))
            }
            Tok::Decimal | Tok::Float => {
                let float = *self.peek() == Tok::Float;
                self.advance();
                let text = self.sql[start..self.previous_end()].to_string();
                ExprKind::Literal(if float { Literal::Float(text) } else { Literal::Decimal(text) })
            }
            Tok::Hex(value) => {
                self.advance();
                ExprKind::Literal(Literal::Hex { value, introducer: None })
            }
            Tok::Bit(value) => {
                self.advance();
                ExprKind::Literal(Literal::Bit(value))
            }
            // Inside a routine they would be its variables.
            Tok::Param if self.routine.is_some() => return self.fail(),
            Tok::Param => {
                self.advance();
                self.params += 1;
                ExprKind::Param(self.params - 1)
            }
            Tok::UserVar(name) => {
                self.advance();
                if self.sym(":=") {
                    ExprKind::Assign { name, value: Box::new(self.expr()?) }
                } else {
                    ExprKind::UserVar(name)
                }
            }
            Tok::AtAt => {
                let (scope, name) = self.system_variable()?;
                ExprKind::SystemVar { scope, name }
            }
            Tok::Sym("(") => {
                self.advance();
                if let Some(query) = self.subquery_in_parentheses()? {
                    ExprKind::Subquery(Box::new(query))
                } else {
                    let mut items = self.list(Self::expr)?;
                    self.expect_sym(")")?;
                    if items.len() == 1 {
                        let inner = items.pop().expect("one item");
                        // A literal is named without its parentheses.
                        let span = if matches!(inner.kind, ExprKind::Literal(_)) { inner.span } else { self.span_from(start) };
                        return Ok(Expr { kind: inner.kind, span });
                    }
                    ExprKind::Row(items)
                }
            }
            Tok::Sym("{") => {
                self.advance();
                let escape = self.ident()?;
                let expr = self.expr()?;
                self.expect_sym("}")?;
                match (escape.to_ascii_lowercase().as_str(), &expr.kind) {
                    ("d", ExprKind::Literal(Literal::String { value, .. })) => ExprKind::Literal(Literal::Date(value.to_string())),
                    ("t", ExprKind::Literal(Literal::String { value, .. })) => ExprKind::Literal(Literal::Time(value.to_string())),
                    ("ts", ExprKind::Literal(Literal::String { value, .. })) => ExprKind::Literal(Literal::Timestamp(value.to_string())),
                    _ => expr.kind,
                }
            }
            Tok::Word { .. } | Tok::Quoted(_) => return self.word_primary(start),
            _ => return self.fail(),
        };
        Ok(self.make(kind, start))
    }

    /// `@@[GLOBAL.|SESSION.|LOCAL.]name[.part]`.
    pub(super) fn system_variable(&mut self) -> Result<(Option<VariableScope>, String)> {
        self.advance();
        let mut scope = None;
        if self.is_sym_at(1, ".") {
            scope = match self.word().unwrap_or_default().to_ascii_uppercase().as_str() {
                "GLOBAL" => Some(VariableScope::Global),
                "SESSION" | "LOCAL" => Some(VariableScope::Session),
                "PERSIST" => Some(VariableScope::Persist),
                "PERSIST_ONLY" => Some(VariableScope::PersistOnly),
                _ => None,
            };
            if scope.is_some() {
                self.advance();
                self.advance();
            }
        }
        let mut name = self.ident_after_dot()?.to_ascii_lowercase();
        while self.sym(".") {
            name.push('.');
            name.push_str(&self.ident_after_dot()?.to_ascii_lowercase());
        }
        Ok((scope, name))
    }

    fn word_primary(&mut self, start: usize) -> Result<Expr> {
        let word = self.word().map(str::to_ascii_uppercase).unwrap_or_default();
        let call = self.is_sym_at(1, "(");
        let string_next = matches!(self.peek_at(1), Tok::Str { .. });
        // Words that start a special form whatever follows.
        match word.as_str() {
            "NULL" | "TRUE" | "FALSE" => {
                self.advance();
                let literal = match word.as_str() {
                    "NULL" => Literal::Null,
                    other => Literal::Bool(other == "TRUE"),
                };
                return Ok(self.make(ExprKind::Literal(literal), start));
            }
            "CASE" => return self.case(start),
            "EXISTS" if call => {
                self.advance();
                self.advance();
                let query = Box::new(self.query()?);
                self.expect_sym(")")?;
                return Ok(self.make(ExprKind::Exists { query, negated: false }, start));
            }
            "INTERVAL" if !self.interval_is_function() => {
                let (value, unit) = self.interval()?;
                self.expect_sym("+")?;
                let date = self.deeper(|p| p.bit_expr(4))?;
                return Ok(self.make(ExprKind::DateArith { date: Box::new(date), value: Box::new(value), unit, subtract: false }, start));
            }
            "MATCH" => return self.match_against(start),
            "DATE" | "TIME" | "TIMESTAMP" if string_next => {
                self.advance();
                let text = self.string()?;
                let literal = match word.as_str() {
                    "DATE" => Literal::Date(text),
                    "TIME" => Literal::Time(text),
                    _ => Literal::Timestamp(text),
                };
                return Ok(self.make(ExprKind::Literal(literal), start));
            }
            "CURRENT_DATE" | "CURRENT_TIME" | "CURRENT_TIMESTAMP" | "LOCALTIME" | "LOCALTIMESTAMP" | "UTC_DATE" | "UTC_TIME" | "UTC_TIMESTAMP"
            | "CURRENT_USER" => {
                let name = self.word().unwrap_or_default().to_string();
                self.advance();
                let mut args = Vec::new();
                if self.sym("(") && !self.sym(")") {
                    args.push(self.expr()?);
                    self.expect_sym(")")?;
                }
                return Ok(self.make(ExprKind::Function(FunctionCall { name: ObjectName { schema: None, name }, args }), start));
            }
            "ROW" if call => {
                self.advance();
                let items = self.parenthesised_list(Self::expr)?;
                return Ok(self.make(ExprKind::Row(items), start));
            }
            "DEFAULT" => {
                self.advance();
                let column = if self.sym("(") {
                    let column = self.column_ref()?;
                    self.expect_sym(")")?;
                    Some(column)
                } else {
                    None
                };
                return Ok(self.make(ExprKind::Default(column), start));
            }
            "VALUES" if call => {
                self.advance();
                self.advance();
                let column = self.column_ref()?;
                self.expect_sym(")")?;
                return Ok(self.make(ExprKind::Values(column), start));
            }
            _ => {}
        }
        if let Some(charset) = word.strip_prefix('_')
            && highkey_types::Charset::by_name(charset).is_some()
            && matches!(self.peek_at(1), Tok::Str { .. } | Tok::Hex(_) | Tok::Bit(_))
        {
            self.advance();
            let introducer = Some(charset.to_ascii_lowercase());
            let literal = match self.peek().clone() {
                Tok::Hex(value) | Tok::Bit(value) => {
                    self.advance();
                    Literal::Hex { value, introducer }
                }
                _ => Literal::String { value: self.text()?, introducer },
            };
            return Ok(self.make(ExprKind::Literal(literal), start));
        }
        if call && let Some(special) = self.special_function(&word, start)? {
            return Ok(special);
        }
        if call && (self.is_ident() || FUNCTION_WORDS.contains(&word.as_str())) {
            let name = match self.peek() {
                Tok::Quoted(name) => name.clone(),
                _ => self.word().unwrap_or_default().to_string(),
            };
            self.advance();
            let args = self.arguments()?;
            return Ok(self.make(ExprKind::Function(FunctionCall { name: ObjectName { schema: None, name }, args }), start));
        }
        let column = self.column_ref()?;
        if self.is_sym("(") && column.schema.is_none() && column.table.is_some() {
            let args = self.arguments()?;
            let name = ObjectName { schema: column.table, name: column.column };
            return Ok(self.make(ExprKind::Function(FunctionCall { name, args }), start));
        }
        if !self.of_one_table
            && let Some(kind) = self.row_column(&column)?
        {
            return Ok(self.make(kind, start));
        }
        let column = if self.of_one_table { ColumnRef { schema: None, table: None, column: column.column } } else { column };
        if !self.of_one_table
            && column.table.is_none()
            && let Some(variable) = self.local_named(&column.column)
        {
            let kind = self.local_parameter(variable);
            return Ok(self.make(kind, start));
        }
        Ok(self.make(ExprKind::Column(column), start))
    }

    /// `[[schema.]table.]column`.
    pub(super) fn column_ref(&mut self) -> Result<ColumnRef> {
        let mut parts = vec![self.ident()?];
        while parts.len() < 3 && self.is_sym(".") && !self.is_sym_at(1, "*") {
            self.advance();
            parts.push(self.ident_after_dot()?);
        }
        let column = parts.pop().unwrap_or_default();
        let table = parts.pop();
        Ok(ColumnRef { schema: parts.pop(), table, column })
    }

    /// MATCH, from its name on. The columns' parentheses may be left out.
    fn match_against(&mut self, start: usize) -> Result<Expr> {
        self.advance();
        let column = |p: &mut Self| -> Result<Expr> {
            let start = p.start();
            let name = p.column_ref()?;
            Ok(p.make(ExprKind::Column(name), start))
        };
        let columns = if self.is_sym("(") { self.parenthesised_list(column)? } else { self.list(column)? };
        self.expect_kw("AGAINST")?;
        self.expect_sym("(")?;
        let query = self.deeper(|p| p.bit_expr(0))?;
        let mut mode = MatchMode::NaturalLanguage;
        let mut expands = true;
        if self.kw("IN") {
            if self.kw("BOOLEAN") {
                mode = MatchMode::Boolean;
                expands = false;
            } else {
                self.expect_kw("NATURAL")?;
                self.expect_kw("LANGUAGE")?;
            }
            self.expect_kw("MODE")?;
        }
        if expands && self.kw("WITH") {
            self.expect_kw("QUERY")?;
            self.expect_kw("EXPANSION")?;
            mode = MatchMode::QueryExpansion;
        }
        self.expect_sym(")")?;
        Ok(self.make(ExprKind::Match(Box::new(MatchCall { columns, query, mode })), start))
    }

    fn arguments(&mut self) -> Result<Vec<Expr>> {
        self.expect_sym("(")?;
        if self.sym(")") {
            return Ok(Vec::new());
        }
        let args = self.list(Self::expr)?;
        self.expect_sym(")")?;
        Ok(args)
    }

    fn case(&mut self, start: usize) -> Result<Expr> {
        self.advance();
        let operand = if self.is_kw("WHEN") { None } else { Some(Box::new(self.expr()?)) };
        let mut branches = Vec::new();
        while self.kw("WHEN") {
            let when = self.expr()?;
            self.expect_kw("THEN")?;
            branches.push((when, self.expr()?));
        }
        if branches.is_empty() {
            return self.fail();
        }
        let otherwise = if self.kw("ELSE") { Some(Box::new(self.expr()?)) } else { None };
        self.expect_kw("END")?;
        Ok(self.make(ExprKind::Case { operand, branches, otherwise }, start))
    }
}

/// AND or OR of many operands as a tree of logarithmic depth: they associate, and generated statements chain thousands.
fn balanced(op: BinaryOp, first: Expr, mut others: Vec<Expr>) -> Expr {
    if others.is_empty() {
        return first;
    }
    let mut right = others.split_off(others.len() / 2).into_iter();
    let middle = right.next().expect("the larger half of some");
    let right = balanced(op, middle, right.collect());
    let left = balanced(op, first, others);
    let span = Span { start: left.span.start, end: right.span.end };
    Expr { kind: ExprKind::Binary { op, left: Box::new(left), right: Box::new(right) }, span }
}

/// Reserved words that are function names too.
const FUNCTION_WORDS: &[&str] = &[
    "IF", "LEFT", "RIGHT", "REPLACE", "INSERT", "REPEAT", "MOD", "DATABASE", "SCHEMA", "INTERVAL", "GROUPING", "TRUNCATE", "CHARSET", "UTC_DATE",
    "UTC_TIME", "UTC_TIMESTAMP",
];
