//! CREATE, ALTER, DROP and RENAME USER, SET PASSWORD.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use highkey_table::{AccountName, DdlContext, Grants, UserDef};
use highkey_types::{MySqlError, errors, string_literal};

use super::{Failure, Outcome};
use crate::parse::ast::{Statement, UserName, UserOptions, UserSpec};
use crate::privileges::role_name;
use crate::variables::SqlModes;
use crate::session::{Session, authentication_string, check_plugin, error};

impl Session {
    /// The account that a name means: CURRENT_USER() is the connection's own.
    pub(super) fn account_name(&self, name: &UserName) -> (String, String) {
        if name.current {
            (self.state.client.account_user.clone(), self.state.client.account_host.clone())
        } else {
            (name.user.clone(), name.host.to_lowercase())
        }
    }

    /// One account is one transaction, and statements may name several: a replica's position goes with none of them. The binary log gets
    /// `text`.
    pub(super) fn account_context(&self, text: String) -> DdlContext {
        let cx = match self.replica {
            // The applier tells the statement as one.
            Some(_) => self.unlogged_ddl_context(),
            None => self.ddl_context_logging(text.into()),
        };
        let mut cx = DdlContext { replica: None, ..cx };
        if let Some(log) = cx.log.as_mut().map(Arc::make_mut) {
            // `quoted` escapes backslashes.
            log.source.sql_mode &= !SqlModes::NO_BACKSLASH_ESCAPES;
        }
        cx
    }

    /// The account that ALTER USER means: CURRENT_USER() is the one with the connection's own password.
    fn altered_account(&self, name: &UserName) -> (String, String) {
        if name.current { self.password_account() } else { self.account_name(name) }
    }

    fn password_account(&self) -> (String, String) {
        let (user, host) = self.state.client.password_account();
        (user.to_owned(), host.to_owned())
    }

    fn is_own(&self, user: &str, host: &str) -> bool {
        (user, host) == self.state.client.password_account()
    }

    /// Error 1820 if the account's password has expired and the statement does not change it. SET passes, which clients send first.
    pub(crate) fn check_password(&self, statement: &Statement) -> Result<(), MySqlError> {
        if !self.must_change_password() {
            return Ok(());
        }
        let is_own = |(user, host): (String, String)| self.is_own(&user, &host);
        let passes = match statement {
            Statement::Set(_) => true,
            Statement::SetPassword { user, .. } => user.as_ref().is_none_or(|name| is_own(self.account_name(name))),
            Statement::AlterUser { users, .. } => users.iter().all(|spec| is_own(self.altered_account(&spec.name)) && (spec.password.is_some() || spec.hash.is_some())),
            _ => false,
        };
        if passes { Ok(()) } else { Err(errors::must_change_password()) }
    }

    pub(super) fn find_account(&self, user: &str, host: &str) -> Option<Arc<UserDef>> {
        self.state.instance.database().catalog().user(user, host)
    }

    pub(crate) async fn create_user(&mut self, if_not_exists: bool, users: &[UserSpec], options: &UserOptions) -> Result<Outcome, Failure> {
        let named: Vec<AccountName> = options.default_roles.iter().map(role_name).collect();
        let roles: BTreeSet<AccountName> = named.iter().cloned().collect();
        let mut failed = Vec::new();
        let mut wanted = Vec::new();
        for spec in users {
            let (user, host) = self.account_name(&spec.name);
            if user.chars().count() > 32 {
                return Err(error::err(1470, format!("String '{user}' is too long for user name (should be no longer than 32)")).into());
            }
            if self.find_account(&user, &host).is_some() || wanted.iter().any(|def: &UserDef| def.user == user && def.host == host) {
                if if_not_exists {
                    self.state.note(3163, format!("Authorization ID '{user}'@'{host}' already exists."));
                    continue;
                }
                failed.push(format!("'{user}'@'{host}'"));
                continue;
            }
            let plugin = spec.plugin.clone().unwrap_or_else(|| self.state.instance.global_text("default_authentication_plugin"));
            let grants = Grants { roles: roles.clone(), default_roles: roles.clone(), ..Grants::default() };
            let mut def = UserDef { user, host, plugin, authentication_string: String::new(), password_expired: false, account_locked: false, grants };
            apply_authentication(&mut def, spec)?;
            apply_options(&mut def, options);
            // Who makes an account with roles grants them to it.
            for role in &named {
                if self.find_account(&role.user, &role.host).is_none() {
                    return Err(error::err(3162, format!("Authorization ID `{}`@`{}` does not exist.", role.user, role.host)).into());
                }
                self.check_role_grantor(std::slice::from_ref(role))?;
            }
            wanted.push(def);
        }
        let failed = self.failed("CREATE USER", &failed)?;
        self.note_options(options);
        for def in wanted {
            let cx = self.account_context(account_statement("CREATE", &def, &roles));
            self.state.instance.database().clone().create_user(&cx, def).await?;
        }
        failed.map_or(Ok(Outcome::ok()), |e| Err(e.into()))
    }

    pub(crate) async fn alter_user(&mut self, if_exists: bool, users: &[UserSpec], options: &UserOptions) -> Result<Outcome, Failure> {
        let mut failed = Vec::new();
        let mut wanted = Vec::new();
        for spec in users {
            let (user, host) = self.altered_account(&spec.name);
            let Some(existing) = self.find_account(&user, &host) else {
                if if_exists {
                    self.state.note(3162, format!("Authorization ID '{user}'@'{host}' does not exist."));
                } else {
                    failed.push(format!("'{user}'@'{host}'"));
                }
                continue;
            };
            // What fails for one account changes none.
            apply_spec(&mut (*existing).clone(), spec, options)?;
            wanted.push((user, host, spec));
        }
        let failed = self.failed("ALTER USER", &failed)?;
        self.note_options(options);
        for (user, host, spec) in wanted {
            self.alter_account(&user, &host, |def: &mut UserDef| apply_spec(def, spec, options)).await?;
        }
        failed.map_or(Ok(Outcome::ok()), |e| Err(e.into()))
    }

    /// Error 1396 for accounts that fail: what fails for one account changes none. A replica may do again what a crash has left half done: it has the error
    /// for when the others have followed.
    pub(super) fn failed(&self, operation: &str, accounts: &[String]) -> Result<Option<MySqlError>, MySqlError> {
        let cause = (!accounts.is_empty()).then(|| error::cannot_user(operation, &accounts.join(",")));
        match cause {
            Some(e) if self.replica.is_none() => Err(e),
            cause => Ok(cause),
        }
    }

    fn note_options(&mut self, options: &UserOptions) {
        let requires = options.require.iter().any(|w| w != "NONE");
        if requires || !options.other.is_empty() {
            let words: Vec<&str> = options.require.iter().chain(&options.other).map(String::as_str).collect();
            self.state.push_warning(error::warning(1235, format!("Account options without effect in Highkey: {}", words.join(" "))));
        }
    }

    /// DROP USER and DROP ROLE, which are the same for all accounts; `kind` is the one or the other. Error 3628 for a mandatory role.
    pub(crate) async fn drop_user(&mut self, kind: &str, if_exists: bool, users: &[UserName]) -> Result<Outcome, Failure> {
        self.check_not_mandatory(&users.iter().map(|name| self.account_of(name)).collect::<Vec<_>>())?;
        let mut failed = Vec::new();
        let mut wanted = Vec::new();
        for name in users {
            let account = self.account_name(name);
            let (user, host) = &account;
            match self.find_account(user, host).filter(|_| !wanted.contains(&account)) {
                Some(_) => wanted.push(account),
                None if if_exists => self.state.note(3162, format!("Authorization ID '{user}'@'{host}' does not exist.")),
                None => failed.push(format!("'{user}'@'{host}'")),
            }
        }
        let failed = self.failed(&format!("DROP {kind}"), &failed)?;
        for (user, host) in wanted {
            let cx = self.account_context(format!("DROP {kind} {}", quoted_account(&user, &host)));
            self.state.instance.database().clone().drop_user(&cx, &user, &host).await?;
        }
        failed.map_or(Ok(Outcome::ok()), |e| Err(e.into()))
    }

    pub(crate) async fn rename_user(&mut self, renames: &[(UserName, UserName)]) -> Result<Outcome, Failure> {
        let names: Vec<_> = renames.iter().map(|(from, to)| (self.account_name(from), self.account_name(to))).collect();
        self.check_no_roles(&names)?;
        if self.replica.is_none() {
            self.check_renames(&names)?;
        }
        // A replica may do again what a crash has left half done: then the others follow all the same.
        let mut first = Ok(());
        for ((user, host), (new_user, new_host)) in names {
            let cx = self.account_context(format!("RENAME USER {} TO {}", quoted_account(&user, &host), quoted_account(&new_user, &new_host)));
            let (from, to) = (AccountName { user, host }, AccountName { user: new_user, host: new_host });
            let renamed = self.state.instance.database().clone().rename_user(&cx, &from, &to).await;
            if self.replica.is_none() {
                renamed?;
            } else {
                first = first.and(renamed);
            }
        }
        first?;
        Ok(Outcome::ok())
    }

    /// Error 3532 for an account that others have as a role.
    fn check_no_roles(&self, names: &[((String, String), (String, String))]) -> Result<(), MySqlError> {
        let froms: Vec<AccountName> = names.iter().map(|((user, host), _)| AccountName { user: user.clone(), host: host.clone() }).collect();
        let holders = self.state.instance.database().catalog().users();
        let is_role = |name: &AccountName| holders.iter().any(|holder| holder.grants.names_role(name));
        if froms.iter().any(is_role) || self.check_not_mandatory(&froms).is_err() { Err(errors::rename_role()) } else { Ok(()) }
    }

    /// What fails for one account renames none. Error 1396 names those whose name there is not by then, or whose new one is taken.
    fn check_renames(&self, names: &[((String, String), (String, String))]) -> Result<(), MySqlError> {
        let mut failed = Vec::new();
        let mut changed: HashMap<&(String, String), bool> = HashMap::new();
        for (from, to) in names {
            let exists = |name: &(String, String)| changed.get(name).copied().unwrap_or_else(|| self.find_account(&name.0, &name.1).is_some());
            if exists(from) && !exists(to) {
                changed.extend([(from, false), (to, true)]);
            } else {
                failed.push(format!("'{}'@'{}'", from.0, from.1));
            }
        }
        if failed.is_empty() { Ok(()) } else { Err(error::cannot_user("RENAME USER", &failed.join(","))) }
    }

    pub(crate) async fn set_password(&mut self, user: Option<&UserName>, password: &str) -> Result<Outcome, Failure> {
        let (user, host) = user.map_or_else(|| self.password_account(), |name| self.account_name(name));
        if self.find_account(&user, &host).is_none() {
            return Err(error::err(1133, "Can't find any matching row in the user table").into());
        }
        let change = |def: &mut UserDef| -> Result<(), MySqlError> {
            def.authentication_string = authentication_string(&def.plugin, password)?;
            def.password_expired = false;
            Ok(())
        };
        self.alter_account(&user, &host, change).await?;
        Ok(Outcome::ok())
    }

    async fn alter_account(&mut self, user: &str, host: &str, change: impl FnOnce(&mut UserDef) -> Result<(), MySqlError>) -> Result<(), Failure> {
        let cx = self.account_context(String::new());
        let mut expired = false;
        // As the account is then: another session may have locked it meanwhile.
        let edit = |def: &mut UserDef| -> Result<String, MySqlError> {
            change(def)?;
            expired = def.password_expired;
            Ok(account_statement("ALTER", def, &BTreeSet::new()))
        };
        self.state.instance.database().clone().alter_user(&cx, user, host, edit).await?;
        if self.is_own(user, host) {
            // Other sessions of the account go on as they began.
            self.state.client.password_expired = expired;
        }
        Ok(())
    }
}

pub(super) fn quoted_account(user: &str, host: &str) -> String {
    format!("{}@{}", string_literal(user), string_literal(host))
}

/// The statement that makes an account what it is, with the password's hash and the default roles that it is made with: what the binary log tells.
fn account_statement(verb: &str, def: &UserDef, default_roles: &BTreeSet<AccountName>) -> String {
    let account = quoted_account(&def.user, &def.host);
    let mut text = format!("{verb} USER {account} IDENTIFIED WITH '{}' AS {}", def.plugin, string_literal(&def.authentication_string));
    if !default_roles.is_empty() {
        let roles: Vec<String> = default_roles.iter().map(|role| quoted_account(&role.user, &role.host)).collect();
        text.push_str(&format!(" DEFAULT ROLE {}", roles.join(", ")));
    }
    text.push_str(if def.password_expired { " PASSWORD EXPIRE" } else { "" });
    text.push_str(if def.account_locked { " ACCOUNT LOCK" } else { " ACCOUNT UNLOCK" });
    text
}

/// What ALTER USER says of an account.
fn apply_spec(def: &mut UserDef, spec: &UserSpec, options: &UserOptions) -> Result<(), MySqlError> {
    if let Some(plugin) = &spec.plugin
        && *plugin != def.plugin
    {
        def.plugin = plugin.clone();
        def.authentication_string = String::new();
    }
    if spec.password.is_some() || spec.hash.is_some() || spec.plugin.is_some() || spec.random_password {
        def.password_expired = false;
        apply_authentication(def, spec)?;
    }
    apply_options(def, options);
    Ok(())
}

fn apply_authentication(def: &mut UserDef, spec: &UserSpec) -> Result<(), MySqlError> {
    check_plugin(&def.plugin)?;
    if spec.random_password {
        return Err(error::not_supported("RANDOM PASSWORD"));
    }
    if let Some(password) = &spec.password {
        def.authentication_string = authentication_string(&def.plugin, password)?;
    }
    if let Some(hash) = &spec.hash {
        let text = String::from_utf8(hash.clone()).map_err(|_| error::err(1827, "The password hash doesn't have the expected format."))?;
        let fits = text.is_empty()
            || match def.plugin.as_str() {
                "mysql_native_password" => text.len() == 41 && text.starts_with('*') && text[1..].bytes().all(|b| b.is_ascii_hexdigit()),
                _ => text.len() == 70 && text.starts_with("$A$"),
            };
        if !fits {
            return Err(error::err(1827, "The password hash doesn't have the expected format."));
        }
        def.authentication_string = text;
    }
    Ok(())
}

fn apply_options(def: &mut UserDef, options: &UserOptions) {
    if let Some(locked) = options.account_lock {
        def.account_locked = locked;
    }
    if options.password_expire {
        def.password_expired = true;
    }
}
