//! INSERT, REPLACE, UPDATE, DELETE, LOAD DATA and the clauses of files.

use super::ast::*;
use super::lexer::Tok;
use super::parser::{Parser, Result, unsupported};

impl Parser<'_> {
    pub(super) fn insert(&mut self) -> Result<Statement> {
        let replace = self.is_kw("REPLACE");
        self.advance();
        let hints = self.hints();
        let mut delayed = false;
        while let Some(word) = self.any_kw(&["LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY"]) {
            delayed |= word == "DELAYED";
        }
        let ignore = !replace && self.kw("IGNORE");
        self.kw("INTO");
        let table = self.object_name()?;
        let partitions = self.partition_list()?;
        let mut insert = Insert {
            replace,
            delayed,
            ignore,
            hints,
            table,
            partitions,
            columns: None,
            source: InsertSource::Values(Vec::new()),
            row_alias: None,
            on_duplicate: Vec::new(),
        };
        if self.kw("SET") {
            let assignments = self.list(Self::assignment)?;
            let (columns, values) = assignments.into_iter().map(|a| (a.column, a.value)).unzip();
            insert.columns = Some(columns);
            insert.source = InsertSource::Values(vec![values]);
        } else {
            if self.is_sym("(") && !self.insert_query_follows() {
                self.advance();
                insert.columns = Some(if self.is_sym(")") { Vec::new() } else { self.list(Self::column_ref)? });
                self.expect_sym(")")?;
            }
            insert.source = match self.any_kw(&["VALUES", "VALUE"]) {
                Some(_) => {
                    let named = self.is_kw("ROW");
                    let mut width = 0;
                    let rows = self.list(|p| {
                        if named {
                            p.expect_kw("ROW")?;
                        }
                        let row = p.value_row(width)?;
                        width = row.len();
                        Ok(row)
                    })?;
                    InsertSource::Values(rows)
                }
                None => InsertSource::Query(Box::new(self.query()?)),
            };
        }
        if self.is_kw("AS") && !replace {
            self.advance();
            let alias = self.ident()?;
            let columns = if self.is_sym("(") { self.parenthesised_list(Self::ident)? } else { Vec::new() };
            insert.row_alias = Some((alias, columns));
        }
        if !replace && self.kws(&["ON", "DUPLICATE", "KEY", "UPDATE"]) {
            insert.on_duplicate = self.list(Self::assignment)?;
        }
        Ok(Statement::Insert(Box::new(insert)))
    }

    /// `INSERT INTO t (SELECT …)`: the parenthesis is a query, not a column list.
    fn insert_query_follows(&self) -> bool {
        let ahead = self.parentheses();
        self.is_kw_at(ahead, "SELECT") || self.is_kw_at(ahead, "WITH") || self.is_kw_at(ahead, "TABLE")
    }

    /// `width`: as many values as the row will have, if they are as many as those of the one before.
    fn value_row(&mut self, width: usize) -> Result<Vec<Expr>> {
        self.expect_sym("(")?;
        if self.sym(")") {
            return Ok(Vec::new());
        }
        let mut row = Vec::with_capacity(width);
        row.push(self.expr()?);
        while self.sym(",") {
            row.push(self.expr()?);
        }
        self.expect_sym(")")?;
        Ok(row)
    }

    fn partition_list(&mut self) -> Result<Vec<String>> {
        if self.kw("PARTITION") { self.parenthesised_list(Self::ident) } else { Ok(Vec::new()) }
    }

    /// `column = value`, also with `:=`.
    pub(super) fn assignment(&mut self) -> Result<Assignment> {
        let column = self.column_ref()?;
        if !self.sym("=") {
            self.expect_sym(":=")?;
        }
        Ok(Assignment { column, value: self.expr()? })
    }

    pub(super) fn update(&mut self, with: Option<With>) -> Result<Statement> {
        self.expect_kw("UPDATE")?;
        self.block_number();
        let hints = self.hints();
        self.kw("LOW_PRIORITY");
        let ignore = self.kw("IGNORE");
        let tables = self.list(Self::table_ref)?;
        self.expect_kw("SET")?;
        let assignments = self.list(Self::assignment)?;
        let filter = self.where_clause()?;
        let (order_by, limit) = self.order_and_limit()?;
        Ok(Statement::Update(Box::new(Update { with, hints, ignore, tables, assignments, filter, order_by, limit })))
    }

    fn where_clause(&mut self) -> Result<Option<Expr>> {
        if self.kw("WHERE") { self.expr().map(Some) } else { Ok(None) }
    }

    /// ORDER BY and LIMIT n.
    fn order_and_limit(&mut self) -> Result<(Vec<OrderItem>, Option<Limit>)> {
        let order_by = if self.kws(&["ORDER", "BY"]) { self.order_items()? } else { Vec::new() };
        let position = self.position();
        let limit = self.limit_clause()?;
        if limit.as_ref().is_some_and(|l| l.offset.is_some()) {
            self.rewind(position + 2);
            return self.fail();
        }
        Ok((order_by, limit))
    }

    pub(super) fn delete(&mut self, with: Option<With>) -> Result<Statement> {
        self.expect_kw("DELETE")?;
        self.block_number();
        let hints = self.hints();
        let mut ignore = false;
        while let Some(word) = self.any_kw(&["LOW_PRIORITY", "QUICK", "IGNORE"]) {
            ignore |= word == "IGNORE";
        }
        let mut delete =
            Delete { with, hints, ignore, targets: Vec::new(), tables: Vec::new(), filter: None, order_by: Vec::new(), limit: None };
        let from_first = self.kw("FROM");
        let position = self.position();
        if from_first {
            let name = self.object_name()?;
            // `DELETE FROM t [AS a] …` against `DELETE FROM t1, t2 USING …`.
            if !(self.is_sym(",") || self.is_sym(".") || self.is_kw("USING")) {
                let partitions = self.partition_list()?;
                let alias = self.alias(false)?;
                delete.tables = vec![TableRef::Table { name, alias, partitions, index_hints: Vec::new() }];
                delete.filter = self.where_clause()?;
                (delete.order_by, delete.limit) = self.order_and_limit()?;
                return Ok(Statement::Delete(Box::new(delete)));
            }
        }
        self.rewind(position);
        delete.targets = self.list(Self::delete_target)?;
        if from_first {
            self.expect_kw("USING")?;
        } else {
            self.expect_kw("FROM")?;
        }
        delete.tables = self.list(Self::table_ref)?;
        delete.filter = self.where_clause()?;
        Ok(Statement::Delete(Box::new(delete)))
    }

    /// `[schema.]table[.*]`.
    fn delete_target(&mut self) -> Result<ObjectName> {
        let first = self.ident()?;
        if !self.sym(".") || self.sym("*") {
            return Ok(ObjectName { schema: None, name: first });
        }
        let name = self.ident_after_dot()?;
        if self.sym(".") {
            self.expect_sym("*")?;
        }
        Ok(ObjectName { schema: Some(first), name })
    }

    pub(super) fn load(&mut self) -> Result<Statement> {
        self.expect_kw("LOAD")?;
        if self.is_any_kw(&["XML", "INDEX"]) {
            return unsupported(if self.is_kw("XML") { "LOAD XML" } else { "LOAD INDEX INTO CACHE" });
        }
        self.expect_kw("DATA")?;
        while self.any_kw(&["LOW_PRIORITY", "CONCURRENT"]).is_some() {}
        let local = self.kw("LOCAL");
        self.expect_kw("INFILE")?;
        let path = self.string()?;
        let duplicates = match self.any_kw(&["REPLACE", "IGNORE"]) {
            Some("REPLACE") => LoadDuplicates::Replace,
            Some(_) => LoadDuplicates::Ignore,
            None => LoadDuplicates::Error,
        };
        self.expect_kw("INTO")?;
        self.expect_kw("TABLE")?;
        let table = self.object_name()?;
        let partitions = self.partition_list()?;
        let charset = self.charset_clause()?;
        let format = self.file_format()?;
        let mut ignore_lines = 0;
        if self.kw("IGNORE") {
            ignore_lines = self.integer()?;
            if self.any_kw(&["LINES", "ROWS"]).is_none() {
                return self.fail();
            }
        }
        let mut targets = Vec::new();
        if self.sym("(") && !self.sym(")") {
            targets = self.list(|p| match p.peek() {
                Tok::UserVar(name) => {
                    let name = name.clone();
                    p.advance();
                    Ok(LoadTarget::Variable(name))
                }
                _ => Ok(LoadTarget::Column(p.column_ref()?.column)),
            })?;
            self.expect_sym(")")?;
        }
        let assignments = if self.kw("SET") { self.list(Self::assignment)? } else { Vec::new() };
        Ok(Statement::LoadData(Box::new(LoadData { local, path, duplicates, table, partitions, charset, format, ignore_lines, targets, assignments })))
    }

    /// `CHARACTER SET name`, if it is next.
    pub(super) fn charset_clause(&mut self) -> Result<Option<String>> {
        if self.kws(&["CHARACTER", "SET"]) || self.kws(&["CHAR", "SET"]) || self.kw("CHARSET") {
            self.sym("=");
            return self.name_or_string().map(Some);
        }
        Ok(None)
    }

    /// FIELDS … LINES …, each optional.
    pub(super) fn file_format(&mut self) -> Result<FileFormat> {
        let mut format = FileFormat::default();
        if self.any_kw(&["FIELDS", "COLUMNS"]).is_some() {
            let mut any = false;
            loop {
                let optionally = self.kw("OPTIONALLY");
                match self.any_kw(&["TERMINATED", "ENCLOSED", "ESCAPED"]) {
                    Some("TERMINATED") if !optionally => format.field_terminator = self.by_bytes()?,
                    Some("ENCLOSED") => {
                        format.enclosed_by = self.by_bytes()?;
                        format.optionally_enclosed = optionally;
                        self.check_single(&format.enclosed_by)?;
                    }
                    Some("ESCAPED") if !optionally => {
                        format.escaped_by = self.by_bytes()?;
                        format.says_escape = true;
                        self.check_single(&format.escaped_by)?;
                    }
                    None if any && !optionally => break,
                    _ => return self.fail(),
                }
                any = true;
            }
        }
        if self.kw("LINES") {
            let mut any = false;
            loop {
                match self.any_kw(&["STARTING", "TERMINATED"]) {
                    Some("STARTING") => format.line_prefix = self.by_bytes()?,
                    Some(_) => format.line_terminator = self.by_bytes()?,
                    None if any => break,
                    None => return self.fail(),
                }
                any = true;
            }
        }
        Ok(format)
    }

    fn check_single(&self, separator: &[u8]) -> Result<()> {
        if separator.len() > 1 {
            return Err(highkey_types::MySqlError::with_message(1083, "Field separator argument is not what is expected; check the manual"));
        }
        Ok(())
    }

    /// `BY 'text'`, also hexadecimal and binary literals.
    fn by_bytes(&mut self) -> Result<Vec<u8>> {
        self.expect_kw("BY")?;
        match self.peek().clone() {
            Tok::Hex(bytes) | Tok::Bit(bytes) => {
                self.advance();
                Ok(bytes)
            }
            _ => Ok(self.string()?.into_bytes()),
        }
    }
}
