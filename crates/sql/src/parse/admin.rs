//! Transactions, prepared statements in text, users and privileges, and statements to the server.

use highkey_table::RoutineKind;

use super::ast::*;
use super::lexer::Tok;
use super::parser::{Parser, Result, unsupported};

impl Parser<'_> {
    pub(super) fn transaction(&mut self) -> Result<Statement> {
        let word = self.word().unwrap_or_default().to_ascii_uppercase();
        self.advance();
        match word.as_str() {
            "BEGIN" => {
                self.kw("WORK");
                Ok(Statement::Begin { consistent_snapshot: false, access: None })
            }
            "START" => self.start_transaction(),
            "COMMIT" => {
                let (chain, release) = self.completion()?;
                Ok(Statement::Commit { chain, release })
            }
            "ROLLBACK" => {
                self.kw("WORK");
                if self.kw("TO") {
                    self.kw("SAVEPOINT");
                    return Ok(Statement::RollbackTo(self.ident()?));
                }
                let (chain, release) = self.completion()?;
                Ok(Statement::Rollback { chain, release })
            }
            "SAVEPOINT" => Ok(Statement::Savepoint(self.ident()?)),
            "RELEASE" => {
                self.expect_kw("SAVEPOINT")?;
                Ok(Statement::ReleaseSavepoint(self.ident()?))
            }
            "LOCK" => {
                if self.kw("INSTANCE") {
                    self.expect_kw("FOR")?;
                    self.expect_kw("BACKUP")?;
                    return Ok(Statement::LockInstance);
                }
                if self.any_kw(&["TABLES", "TABLE"]).is_none() {
                    return self.fail();
                }
                Ok(Statement::LockTables(self.list(|p| {
                    let name = p.object_name()?;
                    let alias = p.alias(false)?;
                    let low = p.kw("LOW_PRIORITY");
                    let write = match p.any_kw(&["READ", "WRITE"]) {
                        Some("WRITE") => true,
                        Some(_) if !low => {
                            p.kw("LOCAL");
                            false
                        }
                        _ => return p.fail(),
                    };
                    Ok(TableLock { name, alias, write, low_priority: low })
                })?))
            }
            "UNLOCK" => {
                if self.kw("INSTANCE") {
                    return Ok(Statement::UnlockInstance);
                }
                if self.any_kw(&["TABLES", "TABLE"]).is_none() {
                    return self.fail();
                }
                Ok(Statement::UnlockTables)
            }
            _ => self.xa(),
        }
    }

    fn start_transaction(&mut self) -> Result<Statement> {
        if self.is_any_kw(&["SLAVE", "REPLICA"]) {
            return self.start_replica();
        }
        if self.is_kw("GROUP_REPLICATION") {
            return unsupported("group replication");
        }
        self.expect_kw("TRANSACTION")?;
        let (mut consistent_snapshot, mut access) = (false, None);
        if !self.at_end() {
            let mut contradicts = false;
            loop {
                if self.kws(&["WITH", "CONSISTENT", "SNAPSHOT"]) {
                    consistent_snapshot = true;
                } else if let Some(mode) = self.access_mode() {
                    contradicts |= access.replace(mode).is_some_and(|before| before != mode);
                } else {
                    return self.fail();
                }
                if !self.sym(",") {
                    break;
                }
            }
            if contradicts {
                return self.fail();
            }
        }
        Ok(Statement::Begin { consistent_snapshot, access })
    }

    pub(super) fn access_mode(&mut self) -> Option<AccessMode> {
        if self.kws(&["READ", "ONLY"]) {
            Some(AccessMode::ReadOnly)
        } else if self.kws(&["READ", "WRITE"]) {
            Some(AccessMode::ReadWrite)
        } else {
            None
        }
    }

    /// `[WORK] [AND [NO] CHAIN] [[NO] RELEASE]`.
    fn completion(&mut self) -> Result<(bool, bool)> {
        self.kw("WORK");
        let mut chain = false;
        if self.kw("AND") {
            chain = !self.kw("NO");
            self.expect_kw("CHAIN")?;
        }
        let release = if self.kws(&["NO", "RELEASE"]) { false } else { self.kw("RELEASE") };
        Ok((chain, release))
    }

    pub(super) fn prepared(&mut self) -> Result<Statement> {
        let word = self.word().unwrap_or_default().to_ascii_uppercase();
        self.advance();
        match word.as_str() {
            "PREPARE" => {
                let name = self.ident()?;
                self.expect_kw("FROM")?;
                let source = match self.peek().clone() {
                    Tok::UserVar(variable) => {
                        self.advance();
                        PrepareSource::Variable(variable)
                    }
                    _ => PrepareSource::Text(self.string()?),
                };
                Ok(Statement::Prepare { name, source })
            }
            "EXECUTE" => {
                let name = self.ident()?;
                let mut using = Vec::new();
                if self.kw("USING") {
                    using = self.list(|p| match p.peek().clone() {
                        Tok::UserVar(variable) => {
                            p.advance();
                            Ok(variable)
                        }
                        _ => p.fail(),
                    })?;
                }
                Ok(Statement::Execute { name, using })
            }
            _ => {
                self.expect_kw("PREPARE")?;
                Ok(Statement::Deallocate(self.ident()?))
            }
        }
    }

    /// Which roles SET ROLE and SET DEFAULT ROLE mean; the latter's are lasting ones.
    pub(super) fn role_choice(&mut self, lasting: bool) -> Result<RoleChoice> {
        if self.kw("NONE") {
            return Ok(RoleChoice::None);
        }
        if self.kw("ALL") {
            return Ok(if !lasting && self.kw("EXCEPT") { RoleChoice::AllExcept(self.list(Self::role_name)?) } else { RoleChoice::All });
        }
        if !lasting && self.kw("DEFAULT") {
            return Ok(RoleChoice::Default);
        }
        Ok(RoleChoice::These(self.list(Self::role_name)?))
    }

    pub(super) fn grant(&mut self) -> Result<Statement> {
        self.expect_kw("GRANT")?;
        let mut grant = self.privileges("TO")?;
        if self.kw("WITH") {
            self.expect_kw(if grant.roles.is_empty() { "GRANT" } else { "ADMIN" })?;
            self.expect_kw("OPTION")?;
            grant.grant_option = true;
        }
        Ok(Statement::Grant(Box::new(grant)))
    }

    pub(super) fn revoke(&mut self) -> Result<Statement> {
        self.expect_kw("REVOKE")?;
        Ok(Statement::Revoke(Box::new(self.privileges("FROM")?)))
    }

    fn privileges(&mut self, direction: &str) -> Result<Grant> {
        let mut grant = Grant { privileges: Vec::new(), roles: Vec::new(), on: None, proxied: None, routine: None, users: Vec::new(), grant_option: false };
        if self.is_kw("PROXY") && self.is_kw_at(1, "ON") {
            self.advance();
            self.advance();
            grant.proxied = Some(self.user_name()?);
            self.expect_kw(direction)?;
            grant.users = self.list(Self::user_name)?;
            return Ok(grant);
        }
        let start = self.position();
        // Only what stands behind them tells roles from dynamic privileges.
        if let Ok(roles) = self.list(Self::role_name)
            && self.kw(direction)
        {
            grant.roles = roles;
            grant.users = self.list(Self::user_name)?;
            return Ok(grant);
        }
        self.rewind(start);
        loop {
            let mut privilege = String::new();
            while let Some(word) = self.word() {
                if word.eq_ignore_ascii_case("ON") || word.eq_ignore_ascii_case(direction) {
                    break;
                }
                if !privilege.is_empty() {
                    privilege.push(' ');
                }
                privilege.push_str(&word.to_ascii_uppercase());
                self.advance();
            }
            if privilege.is_empty() {
                return self.fail();
            }
            if privilege == "GRANT OPTION" {
                grant.grant_option = true;
            }
            let columns = if self.is_sym("(") { self.parenthesised_list(Self::ident)? } else { Vec::new() };
            grant.privileges.push(GrantedPrivilege { name: privilege, columns });
            if !self.sym(",") {
                break;
            }
        }
        if self.kw("ON") {
            grant.routine = match self.any_kw(&["PROCEDURE", "FUNCTION", "TABLE"]) {
                Some("PROCEDURE") => Some(RoutineKind::Procedure),
                Some("FUNCTION") => Some(RoutineKind::Function),
                _ => None,
            };
            let first = if self.sym("*") { None } else { Some(self.ident()?) };
            grant.on = Some(if self.sym(".") {
                (first, if self.sym("*") { None } else { Some(self.ident_after_dot()?) })
            } else if first.is_some() {
                // A table of the current schema.
                (Some(String::new()), first)
            } else {
                (Some(String::new()), None)
            });
        } else {
            let names: Vec<&str> = grant.privileges.iter().map(|privilege| privilege.name.as_str()).collect();
            if direction != "FROM" || !matches!(names.as_slice(), ["ALL" | "ALL PRIVILEGES", "GRANT OPTION"]) {
                return self.fail();
            }
        }
        self.expect_kw(direction)?;
        grant.users = self.list(Self::user_name)?;
        Ok(grant)
    }

    /// INSTALL PLUGIN name SONAME 'file', UNINSTALL PLUGIN name.
    pub(super) fn plugin(&mut self) -> Result<Statement> {
        let install = self.kw("INSTALL");
        if !install {
            self.advance();
        }
        if self.is_kw("COMPONENT") {
            return unsupported("components");
        }
        self.expect_kw("PLUGIN")?;
        let name = self.ident()?;
        if install {
            self.expect_kw("SONAME")?;
            self.string()?;
        }
        Ok(Statement::Plugin { install, name })
    }

    pub(super) fn admin(&mut self) -> Result<Statement> {
        let word = self.word().unwrap_or_default().to_ascii_uppercase();
        self.advance();
        match word.as_str() {
            "KILL" => {
                let query_only = match self.any_kw(&["QUERY", "CONNECTION"]) {
                    Some(kind) => kind == "QUERY",
                    None => false,
                };
                Ok(Statement::Kill { query_only, id: self.expr()? })
            }
            "FLUSH" => self.flush(),
            "SHUTDOWN" => Ok(Statement::Shutdown),
            "RESET" if self.kw("MASTER") || self.kws(&["BINARY", "LOGS", "AND", "GTIDS"]) => {
                let first = if self.kw("TO") { self.integer()? } else { 1 };
                Ok(Statement::ResetBinaryLogs { first })
            }
            "RESET" => {
                if self.is_any_kw(&["REPLICA", "SLAVE"]) {
                    return self.reset_replica();
                }
                if self.word().is_none() {
                    return self.fail();
                }
                while self.word().is_some() {
                    self.advance();
                }
                Ok(Statement::Reset)
            }
            "PURGE" => {
                if self.any_kw(&["BINARY", "MASTER"]).is_none() {
                    return self.fail();
                }
                self.expect_kw("LOGS")?;
                if self.kw("TO") {
                    return Ok(Statement::PurgeBinaryLogsTo(self.string()?));
                }
                self.expect_kw("BEFORE")?;
                Ok(Statement::PurgeBinaryLogsBefore(self.expr()?))
            }
            _ => self.maintenance(&word),
        }
    }

    fn flush(&mut self) -> Result<Statement> {
        self.any_kw(&["NO_WRITE_TO_BINLOG", "LOCAL"]);
        if self.any_kw(&["TABLES", "TABLE"]).is_some() {
            let names = if self.is_ident() { self.list(Self::object_name)? } else { Vec::new() };
            let read_lock = self.kws(&["WITH", "READ", "LOCK"]);
            let for_export = !read_lock && self.kws(&["FOR", "EXPORT"]);
            return Ok(Statement::Flush(vec![Flush::Tables { names, read_lock, for_export }]));
        }
        let items = self.list(|p| {
            let Some(word) = p.word() else { return p.fail() };
            let word = word.to_ascii_uppercase();
            p.advance();
            Ok(match word.as_str() {
                "PRIVILEGES" => Flush::Privileges,
                "STATUS" => Flush::Status,
                "LOGS" => Flush::Logs(None),
                "BINARY" | "ENGINE" | "ERROR" | "GENERAL" | "RELAY" | "SLOW" => {
                    p.expect_kw("LOGS")?;
                    Flush::Logs(Some(word))
                }
                "HOSTS" | "USER_RESOURCES" | "OPTIMIZER_COSTS" | "DES_KEY_FILE" => Flush::Other(word),
                _ => {
                    p.rewind(p.position() - 1);
                    return p.fail();
                }
            })
        })?;
        Ok(Statement::Flush(items))
    }

    fn maintenance(&mut self, word: &str) -> Result<Statement> {
        let operation = match word {
            "CHECK" => Maintenance::Check,
            "ANALYZE" => Maintenance::Analyze,
            "OPTIMIZE" => Maintenance::Optimize,
            "REPAIR" => Maintenance::Repair,
            _ => Maintenance::Checksum,
        };
        let local = self.any_kw(&["NO_WRITE_TO_BINLOG", "LOCAL"]).is_some();
        if self.any_kw(&["TABLE", "TABLES"]).is_none() {
            return self.fail();
        }
        let tables = self.list(Self::object_name)?;
        if operation == Maintenance::Analyze
            && let Some(verb) = self.any_kw(&["UPDATE", "DROP"])
        {
            return self.histogram(verb == "UPDATE", tables, local);
        }
        let mut options: Vec<String> = local.then(|| "LOCAL".to_string()).into_iter().collect();
        while let Some(option) = self.any_kw(&["FOR", "UPGRADE", "QUICK", "FAST", "MEDIUM", "EXTENDED", "CHANGED", "USE_FRM"]) {
            options.push(option.to_string());
        }
        Ok(Statement::Maintain { operation, tables, options })
    }

    /// ANALYZE TABLE … {UPDATE | DROP} …
    fn histogram(&mut self, update: bool, tables: Vec<ObjectName>, local: bool) -> Result<Statement> {
        self.expect_kw("HISTOGRAM")?;
        self.expect_kw("ON")?;
        let columns = self.list(Self::ident)?;
        let mut buckets = None;
        if update && self.kw("WITH") {
            buckets = Some(self.integer()?);
            self.expect_kw("BUCKETS")?;
        }
        Ok(Statement::Histogram(HistogramChange { tables, columns, update, buckets, local }))
    }
}
