//! SHOW, DESCRIBE and EXPLAIN.

use super::ast::*;
use super::lexer::Tok;
use super::parser::{Parser, Result, unsupported};

impl Parser<'_> {
    pub(super) fn show(&mut self) -> Result<Statement> {
        self.expect_kw("SHOW")?;
        let what = self.show_what()?;
        let filter = if self.kw("LIKE") {
            Some(ShowFilter::Like(self.string()?))
        } else if self.kw("WHERE") {
            Some(ShowFilter::Where(self.expr()?))
        } else {
            None
        };
        Ok(Statement::Show(Box::new(Show { what, filter })))
    }

    fn show_what(&mut self) -> Result<ShowWhat> {
        // EXTENDED shows MySQL's hidden columns, of which there are none.
        self.kw("EXTENDED");
        let full = self.kw("FULL");
        let scope = if self.is_kw_at(1, "VARIABLES") || self.is_kw_at(1, "STATUS") {
            match self.any_kw(&["GLOBAL", "SESSION", "LOCAL"]) {
                Some("GLOBAL") => Some(VariableScope::Global),
                Some(_) => Some(VariableScope::Session),
                None => None,
            }
        } else {
            None
        };
        if self.word().is_none() {
            return self.fail();
        }
        let word = self.word().unwrap_or_default().to_ascii_uppercase();
        self.advance();
        Ok(match word.as_str() {
            "DATABASES" | "SCHEMAS" => ShowWhat::Databases,
            "TABLES" => ShowWhat::Tables { full, schema: self.from_schema()? },
            "OPEN" => {
                self.expect_kw("TABLES")?;
                ShowWhat::OpenTables { schema: self.from_schema()? }
            }
            "TABLE" => {
                self.expect_kw("STATUS")?;
                ShowWhat::TableStatus { schema: self.from_schema()? }
            }
            "COLUMNS" | "FIELDS" => ShowWhat::Columns { full, table: self.from_table()? },
            "INDEX" | "INDEXES" | "KEYS" => ShowWhat::Index { table: self.from_table()? },
            "CREATE" => self.show_create()?,
            "VARIABLES" => ShowWhat::Variables { scope },
            "STATUS" => ShowWhat::Status { scope },
            "COUNT" => {
                self.expect_sym("(")?;
                self.expect_sym("*")?;
                self.expect_sym(")")?;
                match self.any_kw(&["WARNINGS", "ERRORS"]) {
                    Some("WARNINGS") => ShowWhat::Warnings { count_only: true, limit: None },
                    Some(_) => ShowWhat::Errors { count_only: true, limit: None },
                    None => return self.fail(),
                }
            }
            "WARNINGS" => ShowWhat::Warnings { count_only: false, limit: self.limit_numbers()? },
            "ERRORS" => ShowWhat::Errors { count_only: false, limit: self.limit_numbers()? },
            "PROCESSLIST" => ShowWhat::ProcessList { full },
            "STORAGE" => {
                self.expect_kw("ENGINES")?;
                ShowWhat::Engines
            }
            "ENGINES" => ShowWhat::Engines,
            "ENGINE" => {
                let name = self.name_or_string()?;
                let what = self.any_kw(&["STATUS", "MUTEX", "LOGS"]).ok_or_else(|| self.error())?;
                ShowWhat::Engine { name, what: what.to_string() }
            }
            "CHARACTER" | "CHAR" => {
                self.expect_kw("SET")?;
                ShowWhat::CharacterSet
            }
            "CHARSET" => ShowWhat::CharacterSet,
            "COLLATION" => ShowWhat::Collation,
            "GRANTS" => {
                let user = if self.kw("FOR") { Some(self.user_name()?).filter(|u| !u.current) } else { None };
                let using = if self.kw("USING") { self.list(Self::role_name)? } else { Vec::new() };
                ShowWhat::Grants { user, using }
            }
            "PRIVILEGES" => ShowWhat::Privileges,
            "PLUGINS" => ShowWhat::Plugins,
            "TRIGGERS" => ShowWhat::Triggers { schema: self.from_schema()? },
            "EVENTS" => ShowWhat::Events { schema: self.from_schema()? },
            "PROCEDURE" | "FUNCTION" => {
                if self.is_kw("CODE") {
                    return unsupported("SHOW PROCEDURE CODE");
                }
                self.expect_kw("STATUS")?;
                if word == "PROCEDURE" { ShowWhat::ProcedureStatus } else { ShowWhat::FunctionStatus }
            }
            "BINARY" => {
                if self.kws(&["LOG", "STATUS"]) {
                    ShowWhat::BinaryLogStatus
                } else {
                    self.expect_kw("LOGS")?;
                    ShowWhat::BinaryLogs
                }
            }
            "MASTER" => match self.any_kw(&["STATUS", "LOGS"]) {
                Some("STATUS") => ShowWhat::BinaryLogStatus,
                Some(_) => ShowWhat::BinaryLogs,
                None => return self.fail(),
            },
            "BINLOG" => {
                self.expect_kw("EVENTS")?;
                let file = if self.kw("IN") { Some(self.string()?) } else { None };
                let from = if self.kw("FROM") { Some(self.integer()?) } else { None };
                ShowWhat::BinlogEvents { file, from, limit: self.limit_numbers()? }
            }
            "SLAVE" | "REPLICA" => match self.any_kw(&["STATUS", "HOSTS"]) {
                Some("STATUS") => ShowWhat::ReplicaStatus { old_names: word == "SLAVE", channel: self.for_channel()? },
                Some(_) => ShowWhat::Replicas,
                None => return self.fail(),
            },
            "REPLICAS" => ShowWhat::Replicas,
            "RELAYLOG" => {
                self.expect_kw("EVENTS")?;
                if self.kw("IN") {
                    self.string()?;
                }
                if self.kw("FROM") {
                    self.integer()?;
                }
                self.limit_numbers()?;
                ShowWhat::RelaylogEvents { channel: self.for_channel()? }
            }
            "PROFILES" => ShowWhat::Profiles,
            "PROFILE" => ShowWhat::Profile,
            _ => {
                self.rewind(self.position() - 1);
                return self.fail();
            }
        })
    }

    fn from_schema(&mut self) -> Result<Option<String>> {
        if self.any_kw(&["FROM", "IN"]).is_some() { self.ident().map(Some) } else { Ok(None) }
    }

    /// `FROM table [FROM schema]`.
    fn from_table(&mut self) -> Result<ObjectName> {
        if self.any_kw(&["FROM", "IN"]).is_none() {
            return self.fail();
        }
        let mut table = self.object_name()?;
        if let Some(schema) = self.from_schema()? {
            table.schema = Some(schema);
        }
        Ok(table)
    }

    fn show_create(&mut self) -> Result<ShowWhat> {
        let word = self.word().unwrap_or_default().to_ascii_uppercase();
        self.advance();
        Ok(match word.as_str() {
            "TABLE" => ShowWhat::CreateTable(self.object_name()?),
            "VIEW" => ShowWhat::CreateView(self.object_name()?),
            "DATABASE" | "SCHEMA" => {
                let if_not_exists = self.if_not_exists();
                ShowWhat::CreateDatabase { if_not_exists, name: self.ident()? }
            }
            "USER" => ShowWhat::CreateUser(self.user_name()?),
            "PROCEDURE" | "FUNCTION" | "TRIGGER" | "EVENT" => ShowWhat::CreateOther { kind: word, name: self.object_name()? },
            _ => {
                self.rewind(self.position() - 1);
                return self.fail();
            }
        })
    }

    fn limit_numbers(&mut self) -> Result<Option<(u64, u64)>> {
        if !self.kw("LIMIT") {
            return Ok(None);
        }
        let first = self.integer()?;
        if self.sym(",") {
            return Ok(Some((first, self.integer()?)));
        }
        let offset = if self.kw("OFFSET") { self.integer()? } else { 0 };
        Ok(Some((offset, first)))
    }

    /// DESCRIBE table and EXPLAIN statement are one verb.
    pub(super) fn describe(&mut self) -> Result<Statement> {
        self.advance();
        let mut analyze = false;
        let mut format = ExplainFormat::Traditional;
        loop {
            if self.is_kw("ANALYZE") && !self.at_end() {
                self.advance();
                analyze = true;
                format = ExplainFormat::Tree;
            } else if self.is_kw("FORMAT") && self.is_sym_at(1, "=") {
                self.advance();
                self.advance();
                let name = self.name_or_string()?;
                format = match name.to_ascii_uppercase().as_str() {
                    "TRADITIONAL" => ExplainFormat::Traditional,
                    "JSON" => ExplainFormat::Json,
                    "TREE" => ExplainFormat::Tree,
                    _ => {
                        return Err(highkey_types::MySqlError::with_message(1791, format!("Unknown EXPLAIN format name: '{name}'")));
                    }
                };
            } else if self.any_kw(&["EXTENDED", "PARTITIONS"]).is_none() {
                break;
            }
        }
        if self.kws(&["FOR", "CONNECTION"]) {
            if analyze {
                return unsupported("EXPLAIN ANALYZE FOR CONNECTION");
            }
            return Ok(Statement::ExplainConnection { format, id: self.integer()? });
        }
        if self.is_any_kw(&["SELECT", "INSERT", "REPLACE", "UPDATE", "DELETE", "WITH", "TABLE", "VALUES", "LOAD"]) || self.is_sym("(") {
            let statement = Box::new(self.statement()?);
            return Ok(Statement::Explain { format, analyze, statement });
        }
        let table = self.object_name()?;
        let column = match self.peek() {
            Tok::Str { .. } => Some(self.string()?),
            _ if self.is_ident() => Some(self.ident()?),
            _ => None,
        };
        Ok(Statement::Describe { table, column })
    }
}
