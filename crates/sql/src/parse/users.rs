//! CREATE USER and ALTER USER.

use highkey_types::errors;

use super::ast::*;
use super::lexer::Tok;
use super::parser::{Parser, Result};

/// What WITH limits.
const LIMITS: [&str; 4] = ["MAX_QUERIES_PER_HOUR", "MAX_UPDATES_PER_HOUR", "MAX_CONNECTIONS_PER_HOUR", "MAX_USER_CONNECTIONS"];
/// What REQUIRE asks of a certificate.
const OF_CERTIFICATES: [&str; 3] = ["SUBJECT", "ISSUER", "CIPHER"];
/// The most logins that fail, and days that lock an account then.
const LOGINS_MAX: u64 = 32767;

impl Parser<'_> {
    pub(super) fn create_user(&mut self) -> Result<Statement> {
        let if_not_exists = self.if_not_exists();
        let users = self.list(|p| p.user_spec(false))?;
        let default_roles = if self.kws(&["DEFAULT", "ROLE"]) { self.list(Self::role_name)? } else { Vec::new() };
        let options = UserOptions { default_roles, ..self.account_options()? };
        Ok(Statement::CreateUser { if_not_exists, users, options })
    }

    pub(super) fn alter_user(&mut self) -> Result<Statement> {
        let if_exists = self.if_exists();
        // Who is connected gets a password, and nothing else.
        if self.is_kw("USER") && self.is_sym_at(1, "(") {
            self.advance();
            self.expect_sym("(")?;
            self.expect_sym(")")?;
            if !self.is_kw("IDENTIFIED") || !self.is_kw_at(1, "BY") {
                return self.fail();
            }
            let name = UserName { current: true, user: String::new(), host: String::new() };
            let users = vec![self.user_authentication(name, true)?];
            return Ok(Statement::AlterUser { if_exists, users, options: UserOptions::default() });
        }
        if let Some(statement) = self.alter_default_role()? {
            return Ok(statement);
        }
        let users = self.list(|p| p.user_spec(true))?;
        Ok(Statement::AlterUser { if_exists, users, options: self.account_options()? })
    }

    /// `user DEFAULT ROLE roles` of ALTER USER, which changes nothing else; `None` if that is not what follows.
    fn alter_default_role(&mut self) -> Result<Option<Statement>> {
        let start = self.position();
        let user = self.user_name();
        match user {
            Ok(user) if self.kws(&["DEFAULT", "ROLE"]) => Ok(Some(Statement::SetDefaultRole { roles: self.role_choice(true)?, users: vec![user] })),
            _ => {
                self.rewind(start);
                Ok(None)
            }
        }
    }

    fn user_spec(&mut self, alters: bool) -> Result<UserSpec> {
        let name = self.user_name()?;
        self.user_authentication(name, alters)
    }

    /// `alters`: there is an older password, of which something may be said.
    fn user_authentication(&mut self, name: UserName, alters: bool) -> Result<UserSpec> {
        let mut spec = UserSpec { name, plugin: None, password: None, hash: None, random_password: false };
        if !self.kw("IDENTIFIED") {
            if alters {
                self.kws(&["DISCARD", "OLD", "PASSWORD"]);
            }
            return Ok(spec);
        }
        if self.kw("WITH") {
            spec.plugin = Some(self.name_or_string()?);
        }
        if self.kw("BY") {
            if self.kws(&["RANDOM", "PASSWORD"]) {
                spec.random_password = true;
            } else {
                spec.password = Some(self.string()?);
            }
            if alters && self.kw("REPLACE") {
                self.string()?;
            }
        } else if spec.plugin.is_some() && self.kw("AS") {
            spec.hash = Some(match self.peek().clone() {
                Tok::Hex(bytes) => {
                    self.advance();
                    bytes
                }
                _ => self.string()?.into_bytes(),
            });
        } else if spec.plugin.is_none() {
            return self.fail();
        } else {
            return Ok(spec);
        }
        if alters {
            self.kws(&["RETAIN", "CURRENT", "PASSWORD"]);
        }
        Ok(spec)
    }

    /// `[REQUIRE …] [WITH limit …] [rule of passwords or lock …] [COMMENT 'text' | ATTRIBUTE 'text']`. Errors: 1225 and 1525 for what makes no sense.
    fn account_options(&mut self) -> Result<UserOptions> {
        let mut options = UserOptions::default();
        if self.kw("REQUIRE") {
            let start = self.position();
            self.tls_requirement()?;
            options.require = self.written_since(start);
        }
        let start = self.position();
        if self.kw("WITH") {
            loop {
                if self.any_kw(&LIMITS).is_none() || !matches!(self.peek(), Tok::Int(_) | Tok::Hex(_) | Tok::Decimal | Tok::Float) {
                    return self.fail();
                }
                self.advance();
                if !self.is_any_kw(&LIMITS) {
                    break;
                }
            }
        }
        options.other = self.written_since(start);
        loop {
            let start = self.position();
            if self.kw("ACCOUNT") {
                options.account_lock = Some(self.any_kw(&["LOCK", "UNLOCK"]).ok_or_else(|| self.error())? == "LOCK");
                continue;
            }
            if self.kws(&["PASSWORD", "EXPIRE"]) {
                // The last one counts: when a password expires, or that it has.
                options.password_expire = !self.lifetime()?;
                if options.password_expire {
                    continue;
                }
            } else if self.kw("PASSWORD") {
                self.password_rule()?;
            } else if self.kw("FAILED_LOGIN_ATTEMPTS") {
                self.of_failed_logins("FAILED_LOGIN_ATTEMPTS")?;
            } else if self.kw("PASSWORD_LOCK_TIME") {
                if !self.kw("UNBOUNDED") {
                    self.of_failed_logins("PASSWORD_LOCK_TIME")?;
                }
            } else {
                break;
            }
            options.other.extend(self.written_since(start));
        }
        let start = self.position();
        if self.any_kw(&["COMMENT", "ATTRIBUTE"]).is_some() {
            self.string()?;
        }
        options.other.extend(self.written_since(start));
        Ok(options)
    }

    /// What follows REQUIRE. Error 1225 for what is asked for twice.
    fn tls_requirement(&mut self) -> Result<()> {
        if self.any_kw(&["NONE", "SSL", "X509"]).is_some() {
            return Ok(());
        }
        let mut said = Vec::new();
        loop {
            let what = self.any_kw(&OF_CERTIFICATES).ok_or_else(|| self.error())?;
            self.string()?;
            if said.contains(&what) {
                return Err(errors::dup_argument(what));
            }
            said.push(what);
            if !self.kw("AND") && !self.is_any_kw(&OF_CERTIFICATES) {
                return Ok(());
            }
        }
    }

    /// What follows PASSWORD EXPIRE; false if nothing does: it has expired. Error 1525.
    fn lifetime(&mut self) -> Result<bool> {
        if self.any_kw(&["DEFAULT", "NEVER"]).is_some() {
            return Ok(true);
        }
        if !self.kw("INTERVAL") {
            return Ok(false);
        }
        let days = self.whole_number()?;
        self.expect_kw("DAY")?;
        if days == 0 || days > u64::from(u16::MAX) {
            return Err(errors::wrong_value("DAY", days));
        }
        Ok(true)
    }

    /// What follows PASSWORD and is about passwords to come.
    fn password_rule(&mut self) -> Result<()> {
        if self.kw("HISTORY") {
            if !self.kw("DEFAULT") {
                self.whole_number()?;
            }
        } else if self.kw("REUSE") {
            self.expect_kw("INTERVAL")?;
            if !self.kw("DEFAULT") {
                self.whole_number()?;
                self.expect_kw("DAY")?;
            }
        } else {
            self.expect_kw("REQUIRE")?;
            self.expect_kw("CURRENT")?;
            self.any_kw(&["DEFAULT", "OPTIONAL"]);
        }
        Ok(())
    }

    /// The number of an option about logins that fail. Error 1525.
    fn of_failed_logins(&mut self, option: &str) -> Result<()> {
        let n = self.whole_number()?;
        if n > LOGINS_MAX { Err(errors::wrong_value(option, n)) } else { Ok(()) }
    }

    fn whole_number(&mut self) -> Result<u64> {
        let n = match self.peek() {
            Tok::Int(n) => *n,
            Tok::Hex(bytes) => bytes.iter().fold(0u64, |n, byte| n.saturating_mul(256).saturating_add(u64::from(*byte))),
            Tok::Decimal | Tok::Float => return Err(self.error_saying("Only integers allowed as number here")),
            _ => return self.fail(),
        };
        self.advance();
        Ok(n)
    }
}
