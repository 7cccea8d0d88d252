//! JSON_TABLE().

use super::ast::*;
use super::lexer::Tok;
use super::parser::{Parser, Result};

impl Parser<'_> {
    /// The current token is JSON_TABLE, an opening parenthesis follows.
    pub(super) fn json_table(&mut self) -> Result<TableRef> {
        self.advance();
        self.expect_sym("(")?;
        let document = self.expr()?;
        self.expect_sym(",")?;
        let path = self.string()?;
        let columns = self.json_table_columns()?;
        self.expect_sym(")")?;
        let Some(alias) = self.alias(false)? else { return Err(highkey_types::errors::tf_must_have_alias()) };
        self.count_table()?;
        Ok(TableRef::JsonTable(Box::new(JsonTable { document, path, columns, alias })))
    }

    fn json_table_columns(&mut self) -> Result<Vec<JsonTableColumn>> {
        self.expect_kw("COLUMNS")?;
        self.deeper(|p| p.parenthesised_list(Self::json_table_column))
    }

    fn json_table_column(&mut self) -> Result<JsonTableColumn> {
        if self.is_kw("NESTED") && (self.is_kw_at(1, "PATH") || matches!(self.peek_at(1), Tok::Str { .. })) {
            self.advance();
            self.kw("PATH");
            let path = self.string()?;
            return Ok(JsonTableColumn::Nested { path, columns: self.json_table_columns()? });
        }
        let name = self.ident()?;
        if self.kws(&["FOR", "ORDINALITY"]) {
            return Ok(JsonTableColumn::Ordinality { name });
        }
        let start = self.start();
        let ty = self.data_type()?;
        let written = self.sql[start..self.previous_end()].to_owned();
        let exists = self.kw("EXISTS");
        self.expect_kw("PATH")?;
        let path = self.string()?;
        if exists {
            return Ok(JsonTableColumn::Exists { name, ty, written, path });
        }
        let (mut on_empty, mut on_error) = (None, None);
        while let Some(word) = self.any_kw(&["NULL", "ERROR", "DEFAULT"]) {
            let otherwise = match word {
                "NULL" => JsonTableOtherwise::Null,
                "ERROR" => JsonTableOtherwise::Error,
                _ => JsonTableOtherwise::Default(self.string()?),
            };
            self.expect_kw("ON")?;
            if on_empty.is_none() && self.kw("EMPTY") {
                on_empty = Some(otherwise);
            } else if on_error.is_none() && self.kw("ERROR") {
                on_error = Some(otherwise);
            } else {
                return self.fail();
            }
        }
        Ok(JsonTableColumn::Path { name, ty, written, path, on_empty, on_error })
    }
}
