//! Grants as the statements that would make them.

use std::collections::BTreeSet;

use highkey_table::{AccountName, Grants, Privileges, RoutineKind, UserDef};

use super::{Access, quoted_roles};
use crate::parse::print::quote;

/// `` `user`@`host` ``, as SHOW GRANTS names an account.
fn quoted(account: &UserDef) -> String {
    format!("{}@{}", quote(&account.user), quote(&account.host))
}

/// `'user'@'host'`, as information_schema names an account.
pub fn account(user: &str, host: &str) -> String {
    format!("'{user}'@'{host}'")
}

/// What may be done with a column, as SHOW FULL COLUMNS and information_schema say it; `None`: it is not to be seen.
pub fn column_cell(access: Option<&Access>, schema: &str, table: &str, column: &str) -> Option<String> {
    let granted = access.map_or(Privileges::OF_COLUMN, |access| access.column(schema, table, column).within(Privileges::OF_COLUMN));
    if granted.is_empty() { None } else { Some(granted.names().collect::<Vec<_>>().join(",").to_lowercase()) }
}

/// What SHOW GRANTS shows of an account that may do what `grants` say, its active roles among them, and has these roles to grant to nobody.
pub fn grant_statements(account: &UserDef, grants: &Grants, roles: &BTreeSet<AccountName>) -> Vec<String> {
    let grantee = quoted(account);
    let option = |on: bool| if on { " WITH GRANT OPTION" } else { "" };
    let list = |privileges: Privileges| {
        let names = privileges.without(Privileges::GRANT).names().collect::<Vec<_>>().join(", ");
        if names.is_empty() { "USAGE".to_owned() } else { names }
    };
    let all_or_list = |privileges: Privileges, all: Privileges| if privileges.has(all) { "ALL PRIVILEGES".to_owned() } else { list(privileges) };
    let mut lines = vec![format!("GRANT {} ON *.* TO {grantee}{}", list(grants.global), option(grants.global.has(Privileges::GRANT)))];
    for grantable in [false, true] {
        let names: Vec<&str> = grants.dynamic.iter().filter(|(_, with_option)| **with_option == grantable).map(|(name, _)| name.as_str()).collect();
        if !names.is_empty() {
            lines.push(format!("GRANT {} ON *.* TO {grantee}{}", names.join(","), option(grantable)));
        }
    }
    for (schema, privileges) in &grants.schemas {
        let granted = all_or_list(*privileges, Privileges::OF_SCHEMA);
        lines.push(format!("GRANT {granted} ON {}.* TO {grantee}{}", quote(schema), option(privileges.has(Privileges::GRANT))));
    }
    for (schema, tables) in &grants.tables {
        for (table, of_table) in tables {
            let granted = if of_table.columns.is_empty() {
                all_or_list(of_table.table, Privileges::OF_TABLE)
            } else {
                let of_columns = of_table.columns.values().fold(Privileges::NONE, |all, one| all.and(*one));
                let one = |name: &'static str| {
                    let bit = Privileges::by_name(name).unwrap_or_default();
                    let columns: Vec<String> = of_table.columns.iter().filter(|(_, granted)| granted.has(bit)).map(|(column, _)| quote(column)).collect();
                    // Of the whole table, and of columns beside it.
                    let whole = of_table.table.has(bit).then(|| name.to_owned());
                    let some = (!columns.is_empty()).then(|| format!("{name} ({})", columns.join(", ")));
                    whole.into_iter().chain(some)
                };
                of_table.table.and(of_columns).without(Privileges::GRANT).names().flat_map(one).collect::<Vec<_>>().join(", ")
            };
            lines.push(format!("GRANT {granted} ON {}.{} TO {grantee}{}", quote(schema), quote(table), option(of_table.table.has(Privileges::GRANT))));
        }
    }
    for kind in RoutineKind::GRANTED {
        for (schema, routines) in grants.routines(kind) {
            for (routine, granted) in routines {
                let on = format!("{} {}.{}", kind.name(), quote(schema), quote(routine));
                lines.push(format!("GRANT {} ON {on} TO {grantee}{}", list(*granted), option(granted.has(Privileges::GRANT))));
            }
        }
    }
    let mut proxied: Vec<&AccountName> = grants.proxied.iter().collect();
    // As MySQL orders accounts: those of one host first, everybody, who has no name, last.
    proxied.sort_by_key(|proxied| (proxied.user.is_empty(), proxied.host.contains('%')));
    for proxied in proxied {
        let of = self::account(&proxied.user, &proxied.host);
        let to = self::account(&account.user, &account.host);
        lines.push(format!("GRANT PROXY ON {of} TO {to}{}", option(grants.proxied_grantable.contains(proxied))));
    }
    for (roles, option) in [(roles, ""), (&grants.administered, " WITH ADMIN OPTION")] {
        if !roles.is_empty() {
            lines.push(format!("GRANT {} TO {grantee}{option}", quoted_roles(roles)));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use highkey_table::TableGrants;

    use super::*;

    /// As MySQL 8.0.12 shows them.
    #[test]
    fn grants_are_shown_by_level() {
        let mut grants = Grants { global: Privileges::RELOAD.and(Privileges::PROCESS).and(Privileges::GRANT), ..Grants::default() };
        grants.dynamic.insert("SYSTEM_VARIABLES_ADMIN".into(), true);
        grants.dynamic.insert("BINLOG_ADMIN".into(), true);
        grants.schemas.insert("e%".into(), Privileges::SELECT.and(Privileges::INSERT).and(Privileges::GRANT));
        grants.schemas.insert("d".into(), Privileges::OF_SCHEMA);
        let columns = [("id".to_owned(), Privileges::SELECT.and(Privileges::UPDATE)), ("t_id".to_owned(), Privileges::UPDATE)].into();
        let tables = grants.tables.entry("d".into()).or_default();
        tables.insert("t".into(), TableGrants { table: Privileges::OF_TABLE.and(Privileges::GRANT), ..TableGrants::default() });
        tables.insert("s".into(), TableGrants { table: Privileges::INSERT, columns });
        let role = |user: &str, host: &str| AccountName { user: user.into(), host: host.into() };
        grants.administered = [role("b", "%"), role("a", "localhost")].into();
        grants.proxied = [role("", ""), role("x", "%"), role("y", "localhost")].into();
        grants.proxied_grantable = [role("x", "%")].into();
        let user = UserDef {
            user: "u".into(),
            host: "localhost".into(),
            plugin: "mysql_native_password".into(),
            authentication_string: String::new(),
            password_expired: false,
            account_locked: false,
            grants,
        };
        assert_eq!(
            grant_statements(&user, &user.grants, &[role("c", "%")].into()),
            [
                "GRANT RELOAD, PROCESS ON *.* TO `u`@`localhost` WITH GRANT OPTION",
                "GRANT BINLOG_ADMIN,SYSTEM_VARIABLES_ADMIN ON *.* TO `u`@`localhost` WITH GRANT OPTION",
                "GRANT ALL PRIVILEGES ON `d`.* TO `u`@`localhost`",
                "GRANT SELECT, INSERT ON `e%`.* TO `u`@`localhost` WITH GRANT OPTION",
                "GRANT SELECT (`id`), INSERT, UPDATE (`id`, `t_id`) ON `d`.`s` TO `u`@`localhost`",
                "GRANT ALL PRIVILEGES ON `d`.`t` TO `u`@`localhost` WITH GRANT OPTION",
                "GRANT PROXY ON 'y'@'localhost' TO 'u'@'localhost'",
                "GRANT PROXY ON 'x'@'%' TO 'u'@'localhost' WITH GRANT OPTION",
                "GRANT PROXY ON ''@'' TO 'u'@'localhost'",
                "GRANT `c`@`%` TO `u`@`localhost`",
                "GRANT `a`@`localhost`,`b`@`%` TO `u`@`localhost` WITH ADMIN OPTION",
            ]
        );
    }
}
