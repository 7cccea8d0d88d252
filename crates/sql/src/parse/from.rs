//! FROM: tables, derived tables, joins and index hints.

use super::ast::*;
use super::parser::{Parser, Result};

/// Tables of one FROM.
const MAX_TABLES: usize = 61;

impl Parser<'_> {
    /// A table reference with its joins.
    pub(super) fn table_ref(&mut self) -> Result<TableRef> {
        self.deeper(|p| {
            let mut left = p.table_factor()?;
            while let Some((kind, natural)) = p.join_operator()? {
                let right = p.table_factor()?;
                // `a JOIN b JOIN c ON x ON y`: a following join with its own ON belongs to the right side.
                let right = p.nested_right(right, kind, natural)?;
                let condition = if natural {
                    JoinCondition::Natural { at: p.previous_end() }
                } else if p.kw("ON") {
                    JoinCondition::On(p.expr()?)
                } else if p.kw("USING") {
                    JoinCondition::Using { at: p.start(), columns: p.parenthesised_list(Self::ident)? }
                } else if matches!(kind, JoinKind::Left | JoinKind::Right) {
                    return p.fail();
                } else {
                    JoinCondition::None
                };
                left = TableRef::Join { kind, left: Box::new(left), right: Box::new(right), condition };
            }
            Ok(left)
        })
    }

    /// After the right operand of a join that still waits for its ON: joins that come first and have one of their own.
    fn nested_right(&mut self, mut right: TableRef, kind: JoinKind, natural: bool) -> Result<TableRef> {
        let waits = !natural && matches!(kind, JoinKind::Left | JoinKind::Right);
        if !waits || self.is_kw("ON") || self.is_kw("USING") {
            return Ok(right);
        }
        while let Some((kind, natural)) = self.join_operator()? {
            let inner = self.table_factor()?;
            let inner = self.nested_right(inner, kind, natural)?;
            let condition = if natural {
                JoinCondition::Natural { at: self.previous_end() }
            } else if self.kw("ON") {
                JoinCondition::On(self.expr()?)
            } else if self.kw("USING") {
                JoinCondition::Using { at: self.start(), columns: self.parenthesised_list(Self::ident)? }
            } else {
                JoinCondition::None
            };
            right = TableRef::Join { kind, left: Box::new(right), right: Box::new(inner), condition };
            if self.is_kw("ON") || self.is_kw("USING") {
                break;
            }
        }
        Ok(right)
    }

    fn join_operator(&mut self) -> Result<Option<(JoinKind, bool)>> {
        if self.kw("STRAIGHT_JOIN") {
            return Ok(Some((JoinKind::Straight, false)));
        }
        let natural = self.kw("NATURAL");
        let side = if natural || self.is_any_kw(&["LEFT", "RIGHT"]) { self.any_kw(&["LEFT", "RIGHT"]) } else { None };
        let kind = match side {
            Some(side) => {
                self.kw("OUTER");
                self.expect_kw("JOIN")?;
                if side == "LEFT" { JoinKind::Left } else { JoinKind::Right }
            }
            None if self.is_any_kw(&["INNER", "CROSS"]) => {
                self.advance();
                self.expect_kw("JOIN")?;
                JoinKind::Inner
            }
            None if self.kw("JOIN") => JoinKind::Inner,
            None if natural => return self.fail(),
            None => return Ok(None),
        };
        Ok(Some((kind, natural)))
    }

    fn table_factor(&mut self) -> Result<TableRef> {
        let lateral = self.kw("LATERAL");
        if self.sym("(") {
            if self.query_follows() && (lateral || self.parenthesis_is_query()) {
                let query = Box::new(self.query()?);
                self.expect_sym(")")?;
                let Some(alias) = self.alias(false)? else {
                    return Err(highkey_types::MySqlError::with_message(1248, "Every derived table must have its own alias"));
                };
                let columns = if self.is_sym("(") { self.parenthesised_list(Self::ident)? } else { Vec::new() };
                self.count_table()?;
                return Ok(TableRef::Derived { lateral, query, alias, columns });
            }
            if lateral {
                return self.fail();
            }
            let mut tables = self.list(Self::table_ref)?;
            self.expect_sym(")")?;
            // `(a JOIN b)` stays in its parentheses: a view's text tells it from `a, b` by them.
            let alone = tables.len() == 1 && !matches!(tables[0], TableRef::Join { condition: JoinCondition::None, .. });
            return Ok(if alone { tables.pop().expect("one table") } else { TableRef::List(tables) });
        }
        if lateral {
            return self.fail();
        }
        if self.is_kw("JSON_TABLE") && self.is_sym_at(1, "(") {
            return self.json_table();
        }
        let name = self.object_name()?;
        let partitions = if self.kw("PARTITION") { self.parenthesised_list(Self::ident)? } else { Vec::new() };
        let alias = self.alias(false)?;
        let mut index_hints = Vec::new();
        while let Some(hint) = self.index_hint()? {
            index_hints.push(hint);
            self.sym_before_hint();
        }
        self.count_table()?;
        Ok(TableRef::Table { name, alias, partitions, index_hints })
    }

    /// Error 1116 for more tables in a FROM than MySQL joins.
    pub(super) fn count_table(&mut self) -> Result<()> {
        self.tables += 1;
        if self.tables > MAX_TABLES {
            return Err(highkey_types::errors::too_many_tables(MAX_TABLES));
        }
        Ok(())
    }

    /// `((SELECT …) UNION …) alias` against `((a JOIN b) JOIN c)`: a parenthesis that encloses a query.
    fn parenthesis_is_query(&self) -> bool {
        // What follows the inner parenthesis tells: an alias means a derived table inside a join list.
        !self.is_sym("(") || self.closing(0).is_none_or(|end| self.follows_query(end + 1))
    }

    fn sym_before_hint(&mut self) {
        if self.is_sym(",") && ["USE", "FORCE", "IGNORE"].iter().any(|k| self.is_kw_at(1, k)) {
            self.advance();
        }
    }

    fn index_hint(&mut self) -> Result<Option<IndexHint>> {
        if !(self.is_kw_at(1, "INDEX") || self.is_kw_at(1, "KEY")) {
            return Ok(None);
        }
        let kind = match self.any_kw(&["USE", "FORCE", "IGNORE"]) {
            Some("USE") => IndexHintKind::Use,
            Some("FORCE") => IndexHintKind::Force,
            Some(_) => IndexHintKind::Ignore,
            None => return Ok(None),
        };
        self.advance();
        let purpose = if self.kw("FOR") {
            Some(match self.any_kw(&["JOIN", "ORDER", "GROUP"]) {
                Some("JOIN") => "JOIN".to_string(),
                Some(word) => {
                    self.expect_kw("BY")?;
                    format!("{word} BY")
                }
                None => return self.fail(),
            })
        } else {
            None
        };
        self.expect_sym("(")?;
        let indexes = if self.is_sym(")") { Vec::new() } else { self.list(|p| if p.is_kw("PRIMARY") { p.ident_after_dot() } else { p.ident() })? };
        self.expect_sym(")")?;
        Ok(Some(IndexHint { kind, purpose, indexes }))
    }
}
