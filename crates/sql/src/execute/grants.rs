//! GRANT and REVOKE.

use std::collections::BTreeMap;

use highkey_table::{DYNAMIC_PRIVILEGES, Grants, Privileges, RoutineKind, TableName};
use highkey_types::{MySqlError, errors};

use super::users::quoted_account;
use super::{Failure, Outcome};
use crate::information_schema;
use crate::parse::ast::Grant;
use crate::session::{Session, error};
use crate::show::quote;
use crate::sys;

/// What privileges are granted on.
enum Level {
    Global,
    /// A schema's name, or a pattern.
    Schema(String),
    Table(TableName),
    /// A procedure or function.
    Routine(RoutineKind, TableName),
}

/// What a statement grants or revokes.
struct Wanted {
    level: Level,
    privileges: Privileges,
    /// Privileges by column.
    columns: BTreeMap<String, Privileges>,
    dynamic: Vec<String>,
    /// GRANT OPTION is among the privileges, not behind WITH: it is for the dynamic privileges that the account has, too.
    option_of_all: bool,
}

impl Session {
    pub(crate) async fn grant(&mut self, grant: &Grant, granting: bool) -> Result<Outcome, Failure> {
        if !grant.roles.is_empty() {
            return self.grant_roles(grant, granting).await;
        }
        if let Some(proxied) = &grant.proxied {
            return self.grant_proxy(grant, proxied, granting).await;
        }
        let Some(on) = &grant.on else {
            return if granting { Err(errors::syntax_error().into()) } else { self.revoke_all(grant).await };
        };
        let wanted = self.wanted(grant, on, granting)?;
        self.check_grantor(&wanted)?;
        if granting {
            self.check_granted_on(&wanted)?;
        }
        let accounts: Vec<(String, String)> = grant.users.iter().map(|name| self.account_name(name)).collect();
        if granting && accounts.iter().any(|(user, host)| self.find_account(user, host).is_none()) {
            return Err(errors::cant_create_user_with_grant().into());
        }
        if !granting && self.replica.is_none() {
            self.check_revocable(&wanted, &accounts)?;
        }
        if wanted.privileges.has(Privileges::SUPER) && grant.privileges.iter().any(|privilege| privilege.name == "SUPER") {
            self.state.push_warning(error::warning(1287, "The SUPER privilege identifier is deprecated"));
        }
        // A replica may do again what a crash has left half done: then the others follow all the same.
        let mut first = Ok(());
        for (user, host) in accounts {
            let cx = self.account_context(statement(grant, &wanted.level, granting, &user, &host));
            let change = |grants: &mut Grants| if granting { wanted.add_to(grants) } else { wanted.take_from(grants, &user, &host) };
            let changed = self.state.instance.database().clone().change_grants(&cx, &user, &host, change).await;
            if self.replica.is_none() {
                changed?;
            } else {
                first = first.and(changed);
            }
        }
        first?;
        Ok(Outcome::ok())
    }

    /// What fails for one account takes nothing from the others. Errors 1141 and 1147 of the first.
    fn check_revocable(&self, wanted: &Wanted, accounts: &[(String, String)]) -> Result<(), MySqlError> {
        accounts.iter().try_for_each(|(user, host)| {
            let mut grants = match (self.find_account(user, host), &wanted.level) {
                (Some(account), _) => account.grants.clone(),
                (None, Level::Global) => return Err(errors::nonexisting_grant(user, host)),
                // Who is not there has been granted nothing: the error is that of the level.
                (None, _) => Grants::default(),
            };
            wanted.take_from(&mut grants, user, host)
        })
    }

    /// REVOKE ALL PRIVILEGES, GRANT OPTION FROM, which takes no roles: error 1269 if some account is not there; the others keep theirs, but on a replica.
    async fn revoke_all(&mut self, grant: &Grant) -> Result<Outcome, Failure> {
        self.state.check_global(Privileges::CREATE_USER, "CREATE USER")?;
        let accounts = grant.users.iter().map(|name| self.account_name(name));
        let (there, missing): (Vec<_>, Vec<_>) = accounts.partition(|(user, host)| self.find_account(user, host).is_some());
        let missing = !missing.is_empty();
        if missing && self.replica.is_none() {
            return Err(errors::revoke_grants().into());
        }
        for (user, host) in there {
            let cx = self.account_context(format!("REVOKE ALL PRIVILEGES, GRANT OPTION FROM {}", quoted_account(&user, &host)));
            let forget = |grants: &mut Grants| {
                let Grants { roles, administered, default_roles, proxied, proxied_grantable, .. } = std::mem::take(grants);
                *grants = Grants { roles, administered, default_roles, proxied, proxied_grantable, ..Grants::default() };
                Ok(())
            };
            self.state.instance.database().clone().change_grants(&cx, &user, &host, forget).await?;
        }
        if missing { Err(errors::revoke_grants().into()) } else { Ok(Outcome::ok()) }
    }

    fn grant_level(&self, on: &(Option<String>, Option<String>), routine: Option<RoutineKind>) -> Result<Level, MySqlError> {
        // `ON *` and `ON t` mean the current schema.
        let schema = |name: &str| if name.is_empty() { self.state.require_database().map(|schema| schema.to_string()) } else { Ok(name.to_owned()) };
        Ok(match on {
            (None, _) | (_, None) if routine.is_some() => return Err(errors::illegal_grant_for_table()),
            (None, None) => Level::Global,
            (None, Some(_)) => return Err(errors::syntax_error()),
            (Some(name), None) => Level::Schema(schema(name)?),
            (Some(name), Some(object)) => {
                let named: TableName = (schema(name)?.as_str().into(), object.as_str().into());
                routine.map_or(Level::Table(named.clone()), |kind| Level::Routine(kind, named))
            }
        })
    }

    /// What the names of privileges mean at their level. Errors 1144, 1149, 1221 and 3619 for what cannot be granted there.
    fn wanted(&self, grant: &Grant, on: &(Option<String>, Option<String>), granting: bool) -> Result<Wanted, MySqlError> {
        let mut wanted = Wanted { level: self.grant_level(on, grant.routine)?, privileges: Privileges::NONE, columns: BTreeMap::new(), dynamic: Vec::new(), option_of_all: false };
        let (is_global, of_level) = match &wanted.level {
            Level::Global => (true, Privileges::ALL),
            Level::Schema(_) => (false, Privileges::OF_SCHEMA),
            Level::Table(_) => (false, Privileges::OF_TABLE),
            Level::Routine(..) => (false, Privileges::OF_ROUTINE),
        };
        for privilege in &grant.privileges {
            let name = privilege.name.as_str();
            match Privileges::by_name(name) {
                _ if matches!(name, "ALL" | "ALL PRIVILEGES") => {
                    wanted.privileges = wanted.privileges.and(of_level);
                    if is_global {
                        // Who loses everything ON *.* may grant nothing of it either.
                        wanted.privileges = wanted.privileges.and(if granting { Privileges::NONE } else { Privileges::GRANT });
                        wanted.dynamic.extend(DYNAMIC_PRIVILEGES.iter().map(|name| (*name).to_owned()));
                    }
                }
                _ if name == "USAGE" => {}
                Some(bit) if bit == Privileges::GRANT && privilege.columns.is_empty() => {
                    wanted.privileges = wanted.privileges.and(bit);
                    wanted.option_of_all = true;
                }
                _ if name == "PROXY" => return Err(error::not_supported("PROXY")),
                Some(bit) if privilege.columns.is_empty() => wanted.privileges = wanted.privileges.and(bit),
                Some(bit) if Privileges::OF_COLUMN.has(bit) => {
                    for column in &privilege.columns {
                        let granted = wanted.columns.entry(column.clone()).or_default();
                        *granted = granted.and(bit);
                    }
                }
                Some(_) => return Err(errors::syntax_error()),
                None if !is_global => return Err(errors::illegal_privilege_level(name)),
                None if DYNAMIC_PRIVILEGES.contains(&name) => wanted.dynamic.push(name.to_owned()),
                // A source of a later version has others: they mean nothing here, but belong to the account.
                None if self.replica.is_some() && is_dynamic_name(name) => wanted.dynamic.push(name.to_owned()),
                None => return Err(errors::syntax_error()),
            }
        }
        if grant.grant_option {
            wanted.privileges = wanted.privileges.and(Privileges::GRANT);
        }
        let beyond = !wanted.privileges.without(of_level.and(Privileges::GRANT)).is_empty();
        let schema: Option<&str> = match &wanted.level {
            Level::Global => None,
            Level::Schema(schema) => Some(schema),
            Level::Table((schema, _)) | Level::Routine(_, (schema, _)) => Some(schema),
        };
        if let Some(schema) = schema.filter(|schema| schema.eq_ignore_ascii_case("information_schema")) {
            let client = &self.state.client;
            return Err(errors::dbaccess_denied_error(&client.account_user, &client.account_host, schema));
        }
        match &wanted.level {
            Level::Schema(_) if beyond => return Err(errors::wrong_usage("DB GRANT", "GLOBAL PRIVILEGES")),
            Level::Table(_) | Level::Routine(..) if beyond => return Err(errors::illegal_grant_for_table()),
            Level::Global | Level::Schema(_) | Level::Routine(..) if !wanted.columns.is_empty() => return Err(errors::illegal_grant_for_table()),
            _ => {}
        }
        Ok(wanted)
    }

    /// Who grants and revokes has what is granted, and GRANT OPTION for it.
    fn check_grantor(&self, wanted: &Wanted) -> Result<(), MySqlError> {
        let Some(access) = self.state.access() else { return Ok(()) };
        let needed = wanted.privileges.and(Privileges::GRANT);
        match &wanted.level {
            Level::Global => {
                // Dynamic privileges have GRANT OPTION of their own.
                if (!wanted.privileges.is_empty() || wanted.dynamic.is_empty()) && !access.global().has(needed) {
                    return Err(access.denied());
                }
                if !wanted.dynamic.iter().all(|name| access.may_grant_dynamic(name)) {
                    return Err(errors::specific_access_denied_error("GRANT OPTION"));
                }
                Ok(())
            }
            Level::Schema(pattern) if access.schema_pattern(pattern).has(needed) => Ok(()),
            Level::Schema(pattern) => Err(access.schema_denied(pattern)),
            Level::Table((schema, table)) => {
                access.check_table(needed, schema, table)?;
                let of_columns = wanted.columns.values().fold(Privileges::NONE, |all, privileges| all.and(*privileges));
                access.check_any_column(of_columns, schema, table)?;
                wanted.columns.iter().try_for_each(|(column, privileges)| access.check_column(*privileges, schema, table, column))
            }
            Level::Routine(kind, (schema, routine)) => access.check_routine(needed, *kind, schema, routine),
        }
    }

    /// Errors 1146 and 1054: what is granted on has to be there, unless it is CREATE.
    fn check_granted_on(&self, wanted: &Wanted) -> Result<(), MySqlError> {
        let catalog = self.state.instance.database().catalog();
        if let Level::Routine(kind, (schema, name)) = &wanted.level {
            return match sys::find_routine(&catalog, schema, *kind, name) {
                Some(_) => Ok(()),
                None => Err(errors::sp_does_not_exist(kind.name(), name)),
            };
        }
        let Level::Table((schema, name)) = &wanted.level else { return Ok(()) };
        let columns: Vec<String> = if let Some(table) = information_schema::find_shown(&catalog, schema, name) {
            table.columns.iter().map(|(name, ..)| name.to_string()).collect()
        } else if let Some(view) = sys::find_view(&catalog, schema, name) {
            // One that is no longer valid can be granted on as a whole.
            if wanted.columns.is_empty() {
                return Ok(());
            }
            super::view::columns(&self.state, &view)?.iter().map(|column| column.name.to_string()).collect()
        } else if let Some(table) = catalog.find_table(schema, name) {
            table.def().columns.iter().map(|column| column.name.to_string()).collect()
        } else if wanted.privileges.has(Privileges::CREATE) && wanted.columns.is_empty() {
            return Ok(());
        } else {
            return Err(errors::no_such_table(schema, name));
        };
        match wanted.columns.keys().find(|wanted| !columns.iter().any(|known| known.to_lowercase() == wanted.to_lowercase())) {
            Some(unknown) => Err(errors::bad_field_error(unknown, name)),
            None => Ok(()),
        }
    }
}

impl Wanted {
    fn add_to(&self, grants: &mut Grants) -> Result<(), MySqlError> {
        match &self.level {
            Level::Global => {
                grants.global = grants.global.and(self.privileges);
                let grantable = self.privileges.has(Privileges::GRANT);
                for name in &self.dynamic {
                    *grants.dynamic.entry(name.clone()).or_default() |= grantable;
                }
                if self.option_of_all {
                    grants.dynamic.values_mut().for_each(|grantable| *grantable = true);
                }
            }
            Level::Schema(pattern) => {
                let granted = grants.schemas.entry(pattern.clone()).or_default();
                *granted = granted.and(self.privileges);
            }
            Level::Table((schema, table)) => {
                let granted = grants.tables.entry(schema.to_string()).or_default().entry(table.to_string()).or_default();
                granted.table = granted.table.and(self.privileges);
                for (column, privileges) in &self.columns {
                    let name = known_column(&granted.columns, column);
                    let of_column = granted.columns.entry(name).or_default();
                    *of_column = of_column.and(*privileges);
                }
            }
            Level::Routine(kind, (schema, routine)) => {
                let granted = grants.routines_mut(*kind).entry(schema.to_string()).or_default().entry(routine.to_lowercase()).or_default();
                *granted = granted.and(self.privileges);
            }
        }
        Ok(())
    }

    /// Errors 1141 and 1147 if nothing has been granted there.
    fn take_from(&self, grants: &mut Grants, user: &str, host: &str) -> Result<(), MySqlError> {
        match &self.level {
            Level::Global => {
                grants.global = grants.global.without(self.privileges);
                for name in &self.dynamic {
                    grants.dynamic.remove(name);
                }
                if self.privileges.has(Privileges::GRANT) {
                    grants.dynamic.values_mut().for_each(|grantable| *grantable = false);
                }
            }
            Level::Schema(pattern) => {
                let granted = grants.schemas.get_mut(pattern).ok_or_else(|| errors::nonexisting_grant(user, host))?;
                *granted = granted.without(self.privileges);
            }
            Level::Table((schema, table)) => {
                let missing = || errors::nonexisting_table_grant(user, host, table);
                let granted = grants.tables.get_mut(&**schema).and_then(|tables| tables.get_mut(&**table)).ok_or_else(missing)?;
                for (column, privileges) in &self.columns {
                    let name = known_column(&granted.columns, column);
                    let of_column = granted.columns.get_mut(&name).ok_or_else(missing)?;
                    *of_column = of_column.without(*privileges);
                }
                granted.table = granted.table.without(self.privileges);
                // What is taken for the table is taken for its columns.
                granted.columns.values_mut().for_each(|of_column| *of_column = of_column.without(self.privileges));
            }
            Level::Routine(kind, (schema, routine)) => {
                let granted = grants.routines_mut(*kind).get_mut(&**schema).and_then(|routines| routines.get_mut(&routine.to_lowercase()));
                let granted = granted.ok_or_else(|| errors::nonexisting_proc_grant(user, host, routine))?;
                *granted = granted.without(self.privileges);
            }
        }
        Ok(())
    }
}

/// It looks like a dynamic privilege; static ones have names of several words or without an underscore.
fn is_dynamic_name(name: &str) -> bool {
    name.contains('_') && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
}

/// The column as it is among the grants, whatever its case.
fn known_column(columns: &BTreeMap<String, Privileges>, column: &str) -> String {
    columns.keys().find(|known| known.to_lowercase() == column.to_lowercase()).cloned().unwrap_or_else(|| column.to_owned())
}

/// The statement for one account: what the binary log tells.
fn statement(grant: &Grant, level: &Level, granting: bool, user: &str, host: &str) -> String {
    let privilege = |privilege: &crate::parse::ast::GrantedPrivilege| {
        let columns: Vec<String> = privilege.columns.iter().map(|column| quote(column)).collect();
        if columns.is_empty() { privilege.name.clone() } else { format!("{} ({})", privilege.name, columns.join(", ")) }
    };
    let privileges = grant.privileges.iter().map(privilege).collect::<Vec<_>>().join(", ");
    let on = match level {
        Level::Global => "*.*".to_owned(),
        Level::Schema(pattern) => format!("{}.*", quote(pattern)),
        Level::Table((schema, table)) => format!("{}.{}", quote(schema), quote(table)),
        Level::Routine(kind, (schema, routine)) => format!("{} {}.{}", kind.name(), quote(schema), quote(routine)),
    };
    let account = quoted_account(user, host);
    if granting {
        format!("GRANT {privileges} ON {on} TO {account}{}", if grant.grant_option { " WITH GRANT OPTION" } else { "" })
    } else {
        format!("REVOKE {privileges} ON {on} FROM {account}")
    }
}
