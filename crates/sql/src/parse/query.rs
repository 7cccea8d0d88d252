//! Queries: WITH, SELECT, VALUES, TABLE, set operations, FROM, ORDER BY, LIMIT, locks and INTO.

use highkey_types::errors;

use super::ast::*;
use super::lexer::Tok;
use super::parser::{Parser, Result, identifier, unsupported};

/// SELECTs in each other, as in MySQL.
const MAX_SELECTS: usize = 64;
/// INTERSECTs and EXCEPTs in a row: each works on what the one before it has left.
const MAX_SET_OPERATIONS: usize = 64;
/// Bytes of the name that a column without an alias has from its text, as in MySQL.
const MAX_NAME_BYTES: usize = 255;

/// As many whole characters of a text as name a column.
fn named_by(text: &str) -> String {
    let mut name = identifier(text);
    let mut end = name.len().min(MAX_NAME_BYTES);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.truncate(end);
    name
}

impl Parser<'_> {
    /// A query with WITH, ORDER BY, LIMIT, locks and INTO.
    pub(super) fn query(&mut self) -> Result<Query> {
        self.deeper(|p| {
            let with = p.with_clause()?;
            p.query_after_with(with)
        })
    }

    /// WITH … before SELECT, UPDATE or DELETE.
    pub(super) fn with_statement(&mut self) -> Result<Statement> {
        let with = self.with_clause()?;
        match self.word().unwrap_or_default().to_ascii_uppercase().as_str() {
            "UPDATE" => self.update(with),
            "DELETE" => self.delete(with),
            _ => Ok(Statement::Query(Box::new(self.query_after_with(with)?))),
        }
    }

    fn with_clause(&mut self) -> Result<Option<With>> {
        if !self.kw("WITH") {
            return Ok(None);
        }
        // The query behind it counts before those in it.
        let number = self.block_number();
        let recursive = self.kw("RECURSIVE");
        let ctes = self.list(|p| {
            let name = p.ident()?;
            let columns = if p.is_sym("(") { p.parenthesised_list(Self::ident)? } else { Vec::new() };
            p.expect_kw("AS")?;
            p.expect_sym("(")?;
            let query = p.query()?;
            p.expect_sym(")")?;
            Ok(Cte { name, columns, query })
        })?;
        self.next_block = Some(number);
        Ok(Some(With { recursive, ctes }))
    }

    /// The number of a query block that begins.
    pub(super) fn block_number(&mut self) -> u32 {
        self.next_block.take().unwrap_or_else(|| {
            self.blocks += 1;
            self.blocks
        })
    }

    fn query_after_with(&mut self, with: Option<With>) -> Result<Query> {
        let mut into = None;
        let body = self.set_operations(0, &mut into)?;
        let mut query = Query { with, body, order_by: Vec::new(), limit: None, locks: Vec::new(), into };
        if self.kws(&["ORDER", "BY"]) {
            query.order_by = self.order_items()?;
        }
        query.limit = self.limit_clause()?;
        if self.kws(&["PROCEDURE", "ANALYSE"]) {
            return unsupported("PROCEDURE ANALYSE");
        }
        loop {
            if self.is_kw("INTO") && query.into.is_none() {
                query.into = Some(self.into_clause()?);
            } else if let Some(lock) = self.lock_clause()? {
                query.locks.push(lock);
            } else {
                return Ok(query);
            }
        }
    }

    /// UNION and EXCEPT (level 0) bind less than INTERSECT (level 1).
    fn set_operations(&mut self, level: u8, into: &mut Option<Into>) -> Result<QueryBody> {
        let first = self.query_primary(into)?;
        let mut rest: Vec<SetOperand> = Vec::new();
        let mut nested = 0;
        loop {
            let (op, strength) = match () {
                _ if self.is_kw("UNION") => (SetOperator::Union, 1),
                _ if self.is_kw("EXCEPT") => (SetOperator::Except, 1),
                _ if self.is_kw("INTERSECT") => (SetOperator::Intersect, 2),
                _ => break,
            };
            if strength <= level {
                break;
            }
            nested += usize::from(op != SetOperator::Union);
            if nested > MAX_SET_OPERATIONS {
                return Err(errors::too_high_level_of_nesting_for_select());
            }
            self.advance();
            let all = self.kw("ALL");
            if !all {
                self.kw("DISTINCT");
            }
            let body = self.deeper(|p| p.set_operations(strength, into))?;
            rest.push(SetOperand { op, all, body });
        }
        Ok(if rest.is_empty() { first } else { QueryBody::SetOperations { first: Box::new(first), rest } })
    }

    fn query_primary(&mut self, into: &mut Option<Into>) -> Result<QueryBody> {
        if self.sym("(") {
            let query = self.query()?;
            self.expect_sym(")")?;
            return Ok(QueryBody::Nested(Box::new(query)));
        }
        if self.kw("VALUES") {
            let rows = self.list(|p| {
                p.expect_kw("ROW")?;
                p.parenthesised_list(Self::expr)
            })?;
            return Ok(QueryBody::Values(rows));
        }
        if self.kw("TABLE") {
            return Ok(QueryBody::Table(self.object_name()?));
        }
        self.expect_kw("SELECT")?;
        if self.selects >= MAX_SELECTS {
            return Err(errors::too_high_level_of_nesting_for_select());
        }
        self.selects += 1;
        let tables = std::mem::take(&mut self.tables);
        let select = self.select(into);
        self.tables = tables;
        self.selects -= 1;
        select
    }

    fn select(&mut self, into: &mut Option<Into>) -> Result<QueryBody> {
        let mut select = Select {
            number: self.block_number(),
            hints: self.hints(),
            distinct: false,
            calc_found_rows: false,
            straight_join: false,
            items: Vec::new(),
            from: Vec::new(),
            filter: None,
            group_by: Vec::new(),
            rollup: false,
            having: None,
            windows: Vec::new(),
        };
        loop {
            match self.any_kw(&[
                "DISTINCT",
                "DISTINCTROW",
                "ALL",
                "HIGH_PRIORITY",
                "STRAIGHT_JOIN",
                "SQL_SMALL_RESULT",
                "SQL_BIG_RESULT",
                "SQL_BUFFER_RESULT",
                "SQL_CACHE",
                "SQL_NO_CACHE",
                "SQL_CALC_FOUND_ROWS",
            ]) {
                Some("DISTINCT" | "DISTINCTROW") => select.distinct = true,
                Some("SQL_CALC_FOUND_ROWS") => select.calc_found_rows = true,
                Some("STRAIGHT_JOIN") => select.straight_join = true,
                Some(_) => {}
                None => break,
            }
        }
        select.items = self.list(Self::select_item)?;
        if self.is_kw("INTO") {
            *into = Some(self.into_clause()?);
        }
        if self.kw("FROM") && !self.kw("DUAL") {
            select.from = self.list(Self::table_ref)?;
        }
        if self.kw("WHERE") {
            select.filter = Some(self.expr()?);
        }
        if self.kws(&["GROUP", "BY"]) {
            select.group_by = self.order_items()?;
            select.rollup = self.kws(&["WITH", "ROLLUP"]);
        }
        if self.kw("HAVING") {
            select.having = Some(self.expr()?);
        }
        if self.kw("WINDOW") {
            select.windows = self.list(|p| {
                let name = p.ident()?;
                p.expect_kw("AS")?;
                Ok((name, p.window_spec()?))
            })?;
        }
        Ok(QueryBody::Select(Box::new(select)))
    }

    pub(super) fn hints(&mut self) -> Vec<OptimizerHint> {
        match self.peek() {
            Tok::Hint(hints) => {
                let hints = hints.clone();
                self.advance();
                hints
            }
            _ => Vec::new(),
        }
    }

    fn select_item(&mut self) -> Result<SelectItem> {
        let at = self.start();
        if self.sym("*") {
            return Ok(SelectItem::Star { at });
        }
        if self.is_ident() && self.is_sym_at(1, ".") {
            if self.is_sym_at(2, "*") {
                let name = self.ident()?;
                self.advance();
                self.advance();
                return Ok(SelectItem::QualifiedStar { name: ObjectName { schema: None, name }, at });
            }
            if self.is_sym_at(3, ".") && self.is_sym_at(4, "*") {
                let schema = Some(self.ident()?);
                self.advance();
                let name = self.ident_after_dot()?;
                self.advance();
                self.advance();
                return Ok(SelectItem::QualifiedStar { name: ObjectName { schema, name }, at });
            }
        }
        // A string of several pieces is named by the first one; an introducer may stand before it.
        let piece = match (self.peek(), self.peek_at(1)) {
            (Tok::Str { value, .. }, _) | (Tok::Word { .. }, Tok::Str { value, .. }) => Some(value.to_string()),
            _ => None,
        };
        let start = self.start();
        let expr = self.expr()?;
        let end = self.previous_end();
        let alias = self.alias(true)?;
        let aliased = alias.is_some();
        let name = match (&alias, &expr.kind) {
            (Some(alias), _) => alias.clone(),
            (None, ExprKind::Column(column)) => column.column.clone(),
            (None, ExprKind::Literal(Literal::String { value, .. })) => named_by(&piece.unwrap_or_else(|| value.to_string())),
            (None, ExprKind::Literal(Literal::Bool(truth))) => if *truth { "TRUE" } else { "FALSE" }.to_string(),
            (None, ExprKind::Literal(Literal::Null)) => "NULL".to_string(),
            (None, ExprKind::Literal(_)) => named_by(&self.sql[expr.span.start..expr.span.end]),
            (None, _) => named_by(&self.sql[start..end]),
        };
        Ok(SelectItem::Expr { expr, name, aliased })
    }

    /// `expr [ASC|DESC], …`.
    pub(super) fn order_items(&mut self) -> Result<Vec<OrderItem>> {
        self.list(|p| {
            let expr = p.expr()?;
            let desc = p.kw("DESC");
            if !desc {
                p.kw("ASC");
            }
            Ok(OrderItem { expr, desc })
        })
    }

    /// LIMIT in its three forms.
    pub(super) fn limit_clause(&mut self) -> Result<Option<Limit>> {
        if !self.kw("LIMIT") {
            return Ok(None);
        }
        let first = self.limit_value()?;
        if self.sym(",") {
            let count = self.limit_value()?;
            return Ok(Some(Limit { offset: Some(first), count }));
        }
        let offset = if self.kw("OFFSET") { Some(self.limit_value()?) } else { None };
        Ok(Some(Limit { offset, count: first }))
    }

    fn limit_value(&mut self) -> Result<Expr> {
        match self.peek() {
            Tok::Int(_) | Tok::Param => self.expr(),
            _ => match self.local() {
                Some(variable) if self.local_is_integer(variable) => {
                    self.limit_by_local();
                    self.expr()
                }
                Some(_) => Err(errors::wrong_spvar_type_in_limit()),
                None => self.fail(),
            },
        }
    }

    fn lock_clause(&mut self) -> Result<Option<LockClause>> {
        if self.kws(&["LOCK", "IN", "SHARE", "MODE"]) {
            return Ok(Some(LockClause { exclusive: false, of: Vec::new(), wait: LockWait::Wait }));
        }
        if !(self.is_kw("FOR") && (self.is_kw_at(1, "UPDATE") || self.is_kw_at(1, "SHARE"))) {
            return Ok(None);
        }
        self.advance();
        let exclusive = self.is_kw("UPDATE");
        self.advance();
        let of = if self.kw("OF") { self.list(|p| Ok(p.object_name()?.name))? } else { Vec::new() };
        let wait = if self.kw("NOWAIT") {
            LockWait::NoWait
        } else if self.kws(&["SKIP", "LOCKED"]) {
            LockWait::SkipLocked
        } else {
            LockWait::Wait
        };
        Ok(Some(LockClause { exclusive, of, wait }))
    }

    fn into_clause(&mut self) -> Result<Into> {
        self.expect_kw("INTO")?;
        if self.kw("DUMPFILE") {
            return Ok(Into::Dumpfile(self.string()?));
        }
        if self.kw("OUTFILE") {
            let path = self.string()?;
            let charset = self.charset_clause()?;
            return Ok(Into::Outfile { path, charset, format: self.file_format()? });
        }
        let targets = self.list(Self::target)?;
        let names = targets.iter().map(|target| if let Target::User(name) = target { Some(name.clone()) } else { None });
        Ok(match names.collect::<Option<Vec<_>>>() {
            Some(names) => Into::Variables(names),
            None => Into::Targets(targets),
        })
    }

    /// `( [base] [PARTITION BY …] [ORDER BY …] [frame] )`.
    pub(super) fn window_spec(&mut self) -> Result<WindowSpec> {
        self.expect_sym("(")?;
        let mut spec = WindowSpec::default();
        if self.is_ident() && !self.is_any_kw(&["PARTITION", "ORDER", "ROWS", "RANGE"]) {
            spec.base = Some(self.ident()?);
        }
        if self.kws(&["PARTITION", "BY"]) {
            spec.partition_by = self.list(Self::expr)?;
        }
        if self.kws(&["ORDER", "BY"]) {
            spec.order_by = self.order_items()?;
        }
        if self.is_kw("GROUPS") {
            return unsupported("GROUPS");
        }
        if let Some(unit) = self.any_kw(&["ROWS", "RANGE"]) {
            let (start, end) = if self.kw("BETWEEN") {
                let start = self.frame_bound()?;
                self.expect_kw("AND")?;
                (start, self.frame_bound()?)
            } else {
                let start = self.frame_bound()?;
                if matches!(start, FrameBound::UnboundedFollowing | FrameBound::Following(_)) {
                    // (MySQL points at the word.)
                    self.rewind(self.position() - 1);
                    return self.fail();
                }
                (start, FrameBound::CurrentRow)
            };
            spec.frame = Some(Frame { rows: unit == "ROWS", start, end });
            if self.kw("EXCLUDE") {
                return unsupported("EXCLUDE");
            }
        }
        self.expect_sym(")")?;
        Ok(spec)
    }

    fn frame_bound(&mut self) -> Result<FrameBound> {
        if self.kws(&["CURRENT", "ROW"]) {
            return Ok(FrameBound::CurrentRow);
        }
        if self.kw("UNBOUNDED") {
            return match self.any_kw(&["PRECEDING", "FOLLOWING"]) {
                Some("PRECEDING") => Ok(FrameBound::UnboundedPreceding),
                Some(_) => Ok(FrameBound::UnboundedFollowing),
                None => self.fail(),
            };
        }
        let start = self.start();
        let expr = if self.is_kw("INTERVAL") {
            let (value, unit) = self.interval()?;
            // An interval bound is carried as "value after nothing": DateArith over NULL.
            let date = Box::new(Expr { kind: ExprKind::Literal(Literal::Null), span: Span { start, end: start } });
            Expr { kind: ExprKind::DateArith { date, value: Box::new(value), unit, subtract: false }, span: self.span_from(start) }
        } else {
            self.window_count()?
        };
        match self.any_kw(&["PRECEDING", "FOLLOWING"]) {
            Some("PRECEDING") => Ok(FrameBound::Preceding(Box::new(expr))),
            Some(_) => Ok(FrameBound::Following(Box::new(expr))),
            None => self.fail(),
        }
    }
}
