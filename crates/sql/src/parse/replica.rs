//! CHANGE REPLICATION SOURCE, CHANGE REPLICATION FILTER, START, STOP and RESET REPLICA, in their old words too.

use super::ast::*;
use super::lexer::Tok;
use super::parser::{Parser, Result};

const BOTH: ReplicaThreads = ReplicaThreads { io: true, sql: true };

impl Parser<'_> {
    /// After CHANGE.
    pub(super) fn change_replication(&mut self) -> Result<Statement> {
        let action = if self.kws(&["REPLICATION", "FILTER"]) {
            ReplicaAction::ChangeFilter(self.list(Self::replication_filter)?)
        } else if self.kws(&["REPLICATION", "SOURCE", "TO"]) || self.kws(&["MASTER", "TO"]) {
            ReplicaAction::ChangeSource(self.list(Self::source_option)?)
        } else {
            return self.fail();
        };
        self.about_channel(action)
    }

    /// After START, at REPLICA or SLAVE.
    pub(super) fn start_replica(&mut self) -> Result<Statement> {
        self.advance();
        let threads = self.replica_threads()?;
        let until = if self.kw("UNTIL") { self.list(Self::until_condition)? } else { Vec::new() };
        let mut login = Vec::new();
        while self.is_any_kw(&["USER", "PASSWORD", "DEFAULT_AUTH", "PLUGIN_DIR"]) {
            login.push(self.source_option()?);
        }
        self.about_channel(ReplicaAction::Start { threads, until, login })
    }

    /// After STOP.
    pub(super) fn stop_replica(&mut self) -> Result<Statement> {
        if self.any_kw(&["REPLICA", "SLAVE"]).is_none() {
            return self.fail();
        }
        let threads = self.replica_threads()?;
        self.about_channel(ReplicaAction::Stop(threads))
    }

    /// After RESET, at REPLICA or SLAVE.
    pub(super) fn reset_replica(&mut self) -> Result<Statement> {
        self.advance();
        let all = self.kw("ALL");
        self.about_channel(ReplicaAction::Reset { all })
    }

    fn about_channel(&mut self, action: ReplicaAction) -> Result<Statement> {
        let channel = self.for_channel()?;
        Ok(Statement::Replica(Box::new(ReplicaStatement { action, channel })))
    }

    /// `FOR CHANNEL name`, if it is next.
    pub(super) fn for_channel(&mut self) -> Result<Option<String>> {
        if self.kws(&["FOR", "CHANNEL"]) { self.name_or_string().map(Some) } else { Ok(None) }
    }

    /// `[thread [, thread]]`; none means both.
    fn replica_threads(&mut self) -> Result<ReplicaThreads> {
        let mut threads = ReplicaThreads { io: false, sql: false };
        if !self.is_any_kw(&["IO_THREAD", "RELAY_THREAD", "SQL_THREAD"]) {
            return Ok(BOTH);
        }
        loop {
            match self.any_kw(&["IO_THREAD", "RELAY_THREAD", "SQL_THREAD"]) {
                Some("SQL_THREAD") => threads.sql = true,
                Some(_) => threads.io = true,
                None => return self.fail(),
            }
            if !self.sym(",") {
                return Ok(threads);
            }
        }
    }

    /// `NAME = value`.
    fn source_option(&mut self) -> Result<(String, SourceValue)> {
        let name = self.option_name()?;
        self.expect_sym("=")?;
        Ok((name, self.source_value()?))
    }

    fn until_condition(&mut self) -> Result<(String, SourceValue)> {
        if self.kw("SQL_AFTER_MTS_GAPS") {
            return Ok(("SQL_AFTER_MTS_GAPS".into(), SourceValue::Word(String::new())));
        }
        self.source_option()
    }

    /// A word in its new form.
    fn option_name(&mut self) -> Result<String> {
        let Some(word) = self.word() else { return self.fail() };
        let name = word.to_ascii_uppercase();
        self.advance();
        Ok(match name.strip_prefix("MASTER_") {
            Some("PUBLIC_KEY_PATH") => "SOURCE_PUBLIC_KEY_PATH".into(),
            Some(rest) => format!("SOURCE_{rest}"),
            None if name == "GET_MASTER_PUBLIC_KEY" => "GET_SOURCE_PUBLIC_KEY".into(),
            None => name,
        })
    }

    fn source_value(&mut self) -> Result<SourceValue> {
        match self.peek() {
            Tok::Str { .. } => {
                let text = self.string()?;
                // PRIVILEGE_CHECKS_USER = 'user'@'host'.
                if let Tok::UserVar(host) = self.peek() {
                    let account = format!("{text}@{host}");
                    self.advance();
                    return Ok(SourceValue::Text(account));
                }
                Ok(SourceValue::Text(text))
            }
            Tok::Int(_) | Tok::Decimal | Tok::Float => {
                let start = self.start();
                self.advance();
                Ok(SourceValue::Number(self.sql[start..self.previous_end()].to_string()))
            }
            Tok::Sym("(") => {
                self.advance();
                let list = if self.is_sym(")") { Vec::new() } else { self.list(Self::integer)? };
                self.expect_sym(")")?;
                Ok(SourceValue::List(list))
            }
            Tok::Word { .. } => Ok(SourceValue::Word(self.ident_after_dot()?)),
            _ => self.fail(),
        }
    }

    /// `REPLICATE_DO_DB = (a, b)`.
    fn replication_filter(&mut self) -> Result<(String, Vec<String>)> {
        let name = self.option_name()?;
        self.expect_sym("=")?;
        self.expect_sym("(")?;
        if self.sym(")") {
            return Ok((name, Vec::new()));
        }
        let items = match name.as_str() {
            "REPLICATE_DO_DB" | "REPLICATE_IGNORE_DB" => self.list(Self::ident)?,
            "REPLICATE_DO_TABLE" | "REPLICATE_IGNORE_TABLE" => self.list(|p| match p.object_name()? {
                ObjectName { schema: Some(schema), name } => Ok(format!("{schema}.{name}")),
                _ => p.fail(),
            })?,
            "REPLICATE_WILD_DO_TABLE" | "REPLICATE_WILD_IGNORE_TABLE" => self.list(Self::string)?,
            "REPLICATE_REWRITE_DB" => self.list(|p| {
                let pair = p.parenthesised_list(Self::ident)?;
                if pair.len() == 2 { Ok(format!("{}->{}", pair[0], pair[1])) } else { p.fail() }
            })?,
            _ => return self.fail(),
        };
        self.expect_sym(")")?;
        Ok((name, items))
    }
}
