//! CREATE, DROP and RENAME of schemas, tables and indexes.

use highkey_table::RoutineKind;

use super::ParseOptions;
use super::ast::*;
use super::lexer::Tok;
use super::parser::{Parser, Result, unsupported};

impl Parser<'_> {
    pub(super) fn create(&mut self) -> Result<Statement> {
        self.expect_kw("CREATE")?;
        let replace = self.kws(&["OR", "REPLACE"]);
        let attributes = self.view_attributes()?;
        if self.is_kw("VIEW") {
            return self.view(attributes, replace, false);
        }
        if replace || attributes.algorithm.is_some() || attributes.invoker.is_some() {
            return self.fail();
        }
        let temporary = self.kw("TEMPORARY");
        if temporary && !self.is_kw("TABLE") {
            return self.fail();
        }
        match self.word().unwrap_or_default().to_ascii_uppercase().as_str() {
            "TABLE" => {
                self.advance();
                self.create_table(temporary)
            }
            "DATABASE" | "SCHEMA" => {
                self.advance();
                let if_not_exists = self.if_not_exists();
                let name = self.ident()?;
                Ok(Statement::CreateDatabase { if_not_exists, name, options: self.database_options()? })
            }
            "UNIQUE" | "FULLTEXT" | "SPATIAL" | "INDEX" => self.create_index(),
            "USER" => {
                self.advance();
                self.create_user()
            }
            "PROCEDURE" => self.create_routine(RoutineKind::Procedure, attributes.definer),
            "FUNCTION" => self.create_routine(RoutineKind::Function, attributes.definer),
            "AGGREGATE" => unsupported("loadable functions"),
            "TRIGGER" => self.create_trigger(attributes.definer),
            "EVENT" => self.create_event(attributes.definer),
            "ROLE" => {
                self.advance();
                let if_not_exists = self.if_not_exists();
                Ok(Statement::CreateRole { if_not_exists, roles: self.list(Self::role_name)? })
            }
            "SERVER" => unsupported("CREATE SERVER"),
            "TABLESPACE" | "UNDO" | "LOGFILE" => unsupported("CREATE TABLESPACE"),
            "RESOURCE" => unsupported("CREATE RESOURCE GROUP"),
            _ => self.fail(),
        }
    }

    /// Character set and collation of a schema.
    pub(super) fn database_options(&mut self) -> Result<DatabaseOptions> {
        let mut options = DatabaseOptions::default();
        loop {
            let default = self.kw("DEFAULT");
            if let Some(charset) = self.charset_clause()? {
                options.charset = Some(charset);
            } else if self.kw("COLLATE") {
                self.sym("=");
                options.collation = Some(self.name_or_string()?);
            } else if self.kw("ENCRYPTION") {
                self.sym("=");
                if !self.string()?.eq_ignore_ascii_case("n") {
                    return unsupported("ENCRYPTION");
                }
            } else if default {
                return self.fail();
            } else {
                return Ok(options);
            }
        }
    }

    fn create_table(&mut self, temporary: bool) -> Result<Statement> {
        let if_not_exists = self.if_not_exists();
        let name = self.object_name()?;
        let mut table = CreateTable {
            temporary,
            if_not_exists,
            name,
            like: None,
            columns: Vec::new(),
            indexes: Vec::new(),
            checks: Vec::new(),
            foreign_keys: Vec::new(),
            options: TableOptions::default(),
            partition_by: None,
            select_duplicates: None,
            select: None,
        };
        if self.kw("LIKE") {
            table.like = Some(self.object_name()?);
            return Ok(Statement::CreateTable(Box::new(table)));
        }
        if self.is_sym("(") && self.is_kw_at(1, "LIKE") {
            self.advance();
            self.advance();
            table.like = Some(self.object_name()?);
            self.expect_sym(")")?;
            return Ok(Statement::CreateTable(Box::new(table)));
        }
        if self.is_sym("(") && !self.create_select_follows() {
            self.advance();
            loop {
                self.table_element(&mut table)?;
                if !self.sym(",") {
                    break;
                }
            }
            self.expect_sym(")")?;
        }
        table.options = self.table_options()?;
        if self.is_kw("PARTITION") {
            table.partition_by = Some(self.partition_by()?);
        }
        table.select_duplicates = match self.any_kw(&["IGNORE", "REPLACE"]) {
            Some("IGNORE") => Some(LoadDuplicates::Ignore),
            Some(_) => Some(LoadDuplicates::Replace),
            None => None,
        };
        let explicit = self.kw("AS");
        if explicit || self.is_any_kw(&["SELECT", "WITH", "VALUES", "TABLE"]) || self.is_sym("(") {
            table.select = Some(Box::new(self.query()?));
        } else if table.columns.is_empty() {
            if self.at_end() && !self.tokens_seen_parenthesis(&table) {
                return Err(highkey_types::MySqlError::with_message(1113, "A table must have at least 1 column"));
            }
            return self.fail();
        }
        Ok(Statement::CreateTable(Box::new(table)))
    }

    fn tokens_seen_parenthesis(&self, table: &CreateTable) -> bool {
        !(table.indexes.is_empty() && table.checks.is_empty() && table.foreign_keys.is_empty())
    }

    fn create_select_follows(&self) -> bool {
        let mut ahead = 0;
        while self.is_sym_at(ahead, "(") {
            ahead += 1;
        }
        self.is_kw_at(ahead, "SELECT") || self.is_kw_at(ahead, "WITH")
    }

    fn table_element(&mut self, table: &mut CreateTable) -> Result<()> {
        if let Some(element) = self.constraint_element()? {
            match element {
                Element::Index(index) => table.indexes.push(index),
                Element::Check(check) => table.checks.push(check),
                Element::ForeignKey(key) => table.foreign_keys.push(ForeignKeyDef { position: table.indexes.len(), ..key }),
            }
            return Ok(());
        }
        let name = self.ident()?;
        table.columns.push(self.column_def(name)?);
        Ok(())
    }

    /// An index, CHECK or FOREIGN KEY written as an element of its own.
    pub(super) fn constraint_element(&mut self) -> Result<Option<Element>> {
        let mut name = None;
        if self.kw("CONSTRAINT") && !self.is_any_kw(&["PRIMARY", "UNIQUE", "FOREIGN", "CHECK"]) {
            name = Some(self.ident()?);
        }
        let kind = match self.word().filter(|_| !matches!(self.peek(), Tok::Quoted(_))).unwrap_or_default().to_ascii_uppercase().as_str() {
            "PRIMARY" => {
                self.advance();
                self.expect_kw("KEY")?;
                IndexKind::Primary
            }
            "UNIQUE" => {
                self.advance();
                self.any_kw(&["INDEX", "KEY"]);
                IndexKind::Unique
            }
            "FULLTEXT" | "SPATIAL" => {
                let kind = if self.is_kw("FULLTEXT") { IndexKind::FullText } else { IndexKind::Spatial };
                self.advance();
                self.any_kw(&["INDEX", "KEY"]);
                kind
            }
            "INDEX" | "KEY" if name.is_none() => {
                self.advance();
                IndexKind::Ordinary
            }
            "CHECK" => return self.check_def(name).map(|check| Some(Element::Check(check))),
            "FOREIGN" => return self.foreign_key(name).map(|key| Some(Element::ForeignKey(key))),
            _ if name.is_some() => return self.fail(),
            _ => return Ok(None),
        };
        let mut index = IndexDef { kind, name, parts: Vec::new(), invisible: false, generated: false, comment: None, using: None, ngram: false };
        if self.is_ident() && !self.is_kw("USING") && !self.is_kw("TYPE") {
            let given = self.ident()?;
            if kind != IndexKind::Primary {
                index.name = Some(given);
            }
        }
        self.index_type(&mut index)?;
        index.parts = self.index_parts()?;
        self.index_options(&mut index)?;
        Ok(Some(Element::Index(index)))
    }

    fn index_type(&mut self, index: &mut IndexDef) -> Result<()> {
        if self.kw("USING") || self.kw("TYPE") {
            match self.any_kw(&["BTREE", "HASH", "RTREE"]) {
                Some("RTREE") => return unsupported("SPATIAL INDEX"),
                Some(using) => index.using = Some(using.to_string()),
                None => return self.fail(),
            }
        }
        Ok(())
    }

    fn index_parts(&mut self) -> Result<Vec<IndexPart>> {
        self.parenthesised_list(|p| {
            let (key, prefix) = if p.is_sym("(") {
                p.expr_text()?;
                (IndexKey::Expr, None)
            } else {
                (IndexKey::Column(p.ident()?), p.parenthesised_integer()?)
            };
            let desc = p.kw("DESC");
            if !desc {
                p.kw("ASC");
            }
            Ok(IndexPart { key, prefix, desc })
        })
    }

    fn index_options(&mut self, index: &mut IndexDef) -> Result<()> {
        loop {
            if self.kw("COMMENT") {
                index.comment = Some(self.string()?);
            } else if self.kw("VISIBLE") {
                index.invisible = false;
            } else if self.kw("INVISIBLE") {
                index.invisible = true;
            } else if self.kw("KEY_BLOCK_SIZE") {
                self.sym("=");
                self.integer()?;
            } else if self.is_any_kw(&["USING", "TYPE"]) && index.kind != IndexKind::FullText {
                self.index_type(index)?;
            } else if index.kind == IndexKind::FullText && self.kws(&["WITH", "PARSER"]) {
                let parser = self.ident()?;
                if !parser.eq_ignore_ascii_case("ngram") {
                    return Err(highkey_types::MySqlError::with_message(1128, format!("Function '{parser}' is not defined")));
                }
                index.ngram = true;
            } else {
                return Ok(());
            }
        }
    }

    /// `(expression)` over the columns of a table, with its text, without the parentheses. MySQL does not look at what its names are qualified by.
    pub(super) fn expr_text(&mut self) -> Result<ExprText> {
        self.expect_sym("(")?;
        let start = self.start();
        self.of_one_table = true;
        let expr = self.expr()?;
        self.of_one_table = false;
        let text = match self.options == ParseOptions::default() {
            true => self.sql[start..self.previous_end()].to_string(),
            false => super::print::expression(&expr)?,
        };
        self.expect_sym(")")?;
        Ok(ExprText { expr, text })
    }

    pub(super) fn check_def(&mut self, name: Option<String>) -> Result<CheckDef> {
        self.expect_kw("CHECK")?;
        let expr = self.expr_text()?;
        let enforced = !self.kws(&["NOT", "ENFORCED"]);
        if enforced {
            self.kw("ENFORCED");
        }
        Ok(CheckDef { name, expr, enforced })
    }

    fn foreign_key(&mut self, name: Option<String>) -> Result<ForeignKeyDef> {
        self.expect_kw("FOREIGN")?;
        self.expect_kw("KEY")?;
        let index_name = if self.is_ident() { Some(self.ident()?) } else { None };
        let columns = self.parenthesised_list(Self::ident)?;
        let references = self.references()?;
        Ok(ForeignKeyDef { name, index_name, columns, ..references })
    }

    /// REFERENCES …: a foreign key without its own columns.
    pub(super) fn references(&mut self) -> Result<ForeignKeyDef> {
        self.expect_kw("REFERENCES")?;
        let parent = self.object_name()?;
        let parent_columns = if self.is_sym("(") { self.parenthesised_list(Self::ident)? } else { Vec::new() };
        if self.kw("MATCH") && self.any_kw(&["FULL", "PARTIAL", "SIMPLE"]).is_none() {
            return self.fail();
        }
        let (mut on_delete, mut on_update) = (None, None);
        while self.is_kw("ON") && (self.is_kw_at(1, "DELETE") && on_delete.is_none() || self.is_kw_at(1, "UPDATE") && on_update.is_none()) {
            self.advance();
            let event = if self.kw("DELETE") {
                &mut on_delete
            } else {
                self.advance();
                &mut on_update
            };
            *event = Some(self.reference_action()?);
        }
        let or_default = |action: Option<ReferenceAction>| action.unwrap_or(ReferenceAction::NoAction);
        let (on_delete, on_update) = (or_default(on_delete), or_default(on_update));
        Ok(ForeignKeyDef { name: None, index_name: None, columns: Vec::new(), parent, parent_columns, on_delete, on_update, position: 0 })
    }

    fn reference_action(&mut self) -> Result<ReferenceAction> {
        if self.kws(&["SET", "NULL"]) {
            return Ok(ReferenceAction::SetNull);
        }
        if self.kws(&["SET", "DEFAULT"]) {
            return Ok(ReferenceAction::SetDefault);
        }
        if self.kws(&["NO", "ACTION"]) {
            return Ok(ReferenceAction::NoAction);
        }
        match self.any_kw(&["RESTRICT", "CASCADE"]) {
            Some("RESTRICT") => Ok(ReferenceAction::Restrict),
            Some(_) => Ok(ReferenceAction::Cascade),
            None => self.fail(),
        }
    }

    /// ENGINE=…, CHARSET=…, separated by blanks or commas.
    pub(super) fn table_options(&mut self) -> Result<TableOptions> {
        let mut options = TableOptions::default();
        while self.table_option(&mut options)? {
            if self.is_sym(",") && self.table_option_at(1) {
                self.advance();
            }
        }
        Ok(options)
    }

    /// Whether a table option starts at the token `ahead`.
    pub(super) fn table_option_at(&self, ahead: usize) -> bool {
        let Some(word) = self.word_at(ahead) else { return false };
        let word = word.to_ascii_uppercase();
        let next_is = |k: &str| self.is_kw_at(ahead + 1, k);
        match word.as_str() {
            "DEFAULT" => next_is("CHARACTER") || next_is("CHARSET") || next_is("COLLATE") || next_is("CHAR"),
            "CHARACTER" | "CHAR" => next_is("SET"),
            "DATA" | "INDEX" => next_is("DIRECTORY"),
            "UNION" => self.is_sym_at(ahead + 1, "=") || self.is_sym_at(ahead + 1, "("),
            "ENGINE" | "CHARSET" | "COLLATE" | "AUTO_INCREMENT" | "COMMENT" | "ROW_FORMAT" | "TYPE" => true,
            _ => OTHER_OPTIONS.contains(&word.as_str()),
        }
    }

    /// Reads one table option, if one is next.
    pub(super) fn table_option(&mut self, options: &mut TableOptions) -> Result<bool> {
        if !self.table_option_at(0) {
            return Ok(false);
        }
        self.kw("DEFAULT");
        if let Some(charset) = self.charset_clause()? {
            options.charset = Some(charset);
            return Ok(true);
        }
        let name = self.word().unwrap_or_default().to_ascii_uppercase();
        self.advance();
        if matches!(name.as_str(), "DATA" | "INDEX") {
            self.advance();
            self.sym("=");
            self.string()?;
            return unsupported("DATA DIRECTORY");
        }
        self.sym("=");
        match name.as_str() {
            "ENGINE" | "TYPE" => options.engine = Some(self.name_or_string()?),
            "COLLATE" => options.collation = Some(self.name_or_string()?),
            "AUTO_INCREMENT" => options.auto_increment = Some(self.integer()?),
            "COMMENT" => options.comment = Some(self.string()?),
            "ROW_FORMAT" => options.row_format = Some(self.name_or_string()?.to_ascii_uppercase()),
            "UNION" => return unsupported("the MERGE engine"),
            "ENCRYPTION" => {
                if !self.string()?.eq_ignore_ascii_case("n") {
                    return unsupported("ENCRYPTION");
                }
            }
            _ if !OTHER_OPTIONS.contains(&name.as_str()) => return self.fail(),
            _ => {
                let value = match self.peek() {
                    Tok::Int(n) => {
                        let n = n.to_string();
                        self.advance();
                        n
                    }
                    _ => self.name_or_string()?,
                };
                options.other.push((name, value));
            }
        }
        Ok(true)
    }

    fn create_index(&mut self) -> Result<Statement> {
        let kind = match self.any_kw(&["UNIQUE", "FULLTEXT", "SPATIAL"]) {
            Some("UNIQUE") => IndexKind::Unique,
            Some("FULLTEXT") => IndexKind::FullText,
            Some(_) => IndexKind::Spatial,
            None => IndexKind::Ordinary,
        };
        self.expect_kw("INDEX")?;
        let name = Some(self.ident()?);
        let mut index = IndexDef { kind, name, parts: Vec::new(), invisible: false, generated: false, comment: None, using: None, ngram: false };
        self.index_type(&mut index)?;
        self.expect_kw("ON")?;
        let table = self.object_name()?;
        index.parts = self.index_parts()?;
        self.index_options(&mut index)?;
        let (_, lock) = self.algorithm_and_lock()?;
        Ok(Statement::CreateIndex(Box::new(CreateIndex { index, table, lock })))
    }

    /// ALGORITHM=… and LOCK=…, in any order.
    pub(super) fn algorithm_and_lock(&mut self) -> Result<(Option<String>, Option<String>)> {
        let (mut algorithm, mut lock) = (None, None);
        loop {
            if self.kw("ALGORITHM") {
                self.sym("=");
                let given = self.any_kw(&["DEFAULT", "INSTANT", "INPLACE", "COPY"]).ok_or_else(|| self.error())?;
                algorithm = Some(given.to_string());
            } else if self.is_kw("LOCK") {
                self.advance();
                self.sym("=");
                let given = self.any_kw(&["DEFAULT", "NONE", "SHARED", "EXCLUSIVE"]).ok_or_else(|| self.error())?;
                lock = Some(given.to_string());
            } else {
                return Ok((algorithm, lock));
            }
        }
    }

    pub(super) fn drop(&mut self) -> Result<Statement> {
        self.expect_kw("DROP")?;
        let temporary = self.kw("TEMPORARY");
        let word = self.word().unwrap_or_default().to_ascii_uppercase();
        match word.as_str() {
            "TABLE" | "TABLES" | "VIEW" => {
                self.advance();
                let if_exists = self.if_exists();
                let names = self.list(Self::object_name)?;
                self.any_kw(&["RESTRICT", "CASCADE"]);
                Ok(Statement::DropTable(DropTable { temporary, view: word == "VIEW", if_exists, names }))
            }
            _ if temporary => self.fail(),
            "DATABASE" | "SCHEMA" => {
                self.advance();
                let if_exists = self.if_exists();
                Ok(Statement::DropDatabase { if_exists, name: self.ident()? })
            }
            "INDEX" => {
                self.advance();
                let name = if self.is_kw("PRIMARY") { self.ident_after_dot()? } else { self.ident()? };
                self.expect_kw("ON")?;
                let table = self.object_name()?;
                self.algorithm_and_lock()?;
                Ok(Statement::DropIndex { name, table })
            }
            "USER" => {
                self.advance();
                let if_exists = self.if_exists();
                Ok(Statement::DropUser { if_exists, users: self.list(Self::user_name)? })
            }
            "PREPARE" => {
                self.advance();
                Ok(Statement::Deallocate(self.ident()?))
            }
            "PROCEDURE" | "FUNCTION" | "TRIGGER" | "EVENT" => {
                self.advance();
                let if_exists = self.if_exists();
                let kind = match word.as_str() {
                    "PROCEDURE" => StoredProgram::Procedure,
                    "FUNCTION" => StoredProgram::Function,
                    "TRIGGER" => StoredProgram::Trigger,
                    _ => StoredProgram::Event,
                };
                Ok(Statement::DropProgram { kind, if_exists, name: self.object_name()? })
            }
            "ROLE" => {
                self.advance();
                let if_exists = self.if_exists();
                Ok(Statement::DropRole { if_exists, roles: self.list(Self::role_name)? })
            }
            "SERVER" | "TABLESPACE" | "UNDO" | "LOGFILE" | "RESOURCE" => unsupported(&format!("DROP {word}")),
            _ => self.fail(),
        }
    }

    pub(super) fn rename(&mut self) -> Result<Statement> {
        self.expect_kw("RENAME")?;
        if self.kw("USER") {
            return Ok(Statement::RenameUser(self.list(|p| {
                let from = p.user_name()?;
                p.expect_kw("TO")?;
                Ok((from, p.user_name()?))
            })?));
        }
        if self.any_kw(&["TABLE", "TABLES"]).is_none() {
            return self.fail();
        }
        Ok(Statement::RenameTable(self.list(|p| {
            let from = p.object_name()?;
            p.expect_kw("TO")?;
            Ok((from, p.object_name()?))
        })?))
    }
}

/// An element of a table definition that is not a column.
pub(super) enum Element {
    Index(IndexDef),
    Check(CheckDef),
    ForeignKey(ForeignKeyDef),
}

/// Table options that are accepted and change nothing here.
const OTHER_OPTIONS: &[&str] = &[
    "AUTOEXTEND_SIZE", "AVG_ROW_LENGTH", "CHECKSUM", "COMPRESSION", "CONNECTION", "DELAY_KEY_WRITE", "ENCRYPTION", "INSERT_METHOD", "KEY_BLOCK_SIZE", "MAX_ROWS",
    "MIN_ROWS", "PACK_KEYS", "PASSWORD", "SECONDARY_ENGINE", "STATS_AUTO_RECALC", "STATS_PERSISTENT", "STATS_SAMPLE_PAGES", "TABLESPACE",
];
