//! What accounts may do, as the catalog keeps it. Who checks it is the SQL layer.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::routine::RoutineKind;

/// A set of static privileges. The bits are MySQL's; the catalog holds them, so that they stay as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Privileges(u32);

/// Names of the bits, the lowest first, as GRANT writes them; `GRANT` is GRANT OPTION.
const NAMES: [&str; 31] = [
    "SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "RELOAD", "SHUTDOWN", "PROCESS", "FILE", "GRANT", "REFERENCES", "INDEX", "ALTER", "SHOW DATABASES", "SUPER",
    "CREATE TEMPORARY TABLES", "LOCK TABLES", "EXECUTE", "REPLICATION SLAVE", "REPLICATION CLIENT", "CREATE VIEW", "SHOW VIEW", "CREATE ROUTINE", "ALTER ROUTINE", "CREATE USER",
    "EVENT", "TRIGGER", "CREATE TABLESPACE", "CREATE ROLE", "DROP ROLE",
];

impl Privileges {
    pub const NONE: Privileges = Privileges(0);
    pub const SELECT: Privileges = Privileges(1);
    pub const INSERT: Privileges = Privileges(1 << 1);
    pub const UPDATE: Privileges = Privileges(1 << 2);
    pub const DELETE: Privileges = Privileges(1 << 3);
    pub const CREATE: Privileges = Privileges(1 << 4);
    pub const DROP: Privileges = Privileges(1 << 5);
    pub const RELOAD: Privileges = Privileges(1 << 6);
    pub const SHUTDOWN: Privileges = Privileges(1 << 7);
    pub const PROCESS: Privileges = Privileges(1 << 8);
    pub const FILE: Privileges = Privileges(1 << 9);
    /// GRANT OPTION.
    pub const GRANT: Privileges = Privileges(1 << 10);
    pub const REFERENCES: Privileges = Privileges(1 << 11);
    pub const INDEX: Privileges = Privileges(1 << 12);
    pub const ALTER: Privileges = Privileges(1 << 13);
    pub const SHOW_DATABASES: Privileges = Privileges(1 << 14);
    pub const SUPER: Privileges = Privileges(1 << 15);
    pub const CREATE_TEMPORARY: Privileges = Privileges(1 << 16);
    pub const LOCK_TABLES: Privileges = Privileges(1 << 17);
    pub const EXECUTE: Privileges = Privileges(1 << 18);
    pub const REPLICATION_SLAVE: Privileges = Privileges(1 << 19);
    pub const REPLICATION_CLIENT: Privileges = Privileges(1 << 20);
    pub const CREATE_VIEW: Privileges = Privileges(1 << 21);
    pub const SHOW_VIEW: Privileges = Privileges(1 << 22);
    pub const CREATE_ROUTINE: Privileges = Privileges(1 << 23);
    pub const ALTER_ROUTINE: Privileges = Privileges(1 << 24);
    pub const CREATE_USER: Privileges = Privileges(1 << 25);
    pub const EVENT: Privileges = Privileges(1 << 26);
    pub const TRIGGER: Privileges = Privileges(1 << 27);
    pub const CREATE_ROLE: Privileges = Privileges(1 << 29);
    pub const DROP_ROLE: Privileges = Privileges(1 << 30);

    /// What can be granted for columns.
    pub const OF_COLUMN: Privileges = Privileges::SELECT.and(Privileges::INSERT).and(Privileges::UPDATE).and(Privileges::REFERENCES);
    /// What ALL means ON schema.table.
    pub const OF_TABLE: Privileges = Privileges::OF_COLUMN
        .and(Privileges::DELETE)
        .and(Privileges::CREATE)
        .and(Privileges::DROP)
        .and(Privileges::INDEX)
        .and(Privileges::ALTER)
        .and(Privileges::CREATE_VIEW)
        .and(Privileges::SHOW_VIEW)
        .and(Privileges::TRIGGER);
    /// What ALL means ON schema.*.
    pub const OF_SCHEMA: Privileges = Privileges::OF_TABLE
        .and(Privileges::CREATE_TEMPORARY)
        .and(Privileges::LOCK_TABLES)
        .and(Privileges::EXECUTE)
        .and(Privileges::CREATE_ROUTINE)
        .and(Privileges::ALTER_ROUTINE)
        .and(Privileges::EVENT);
    /// What ALL means ON PROCEDURE schema.name.
    pub const OF_ROUTINE: Privileges = Privileges::EXECUTE.and(Privileges::ALTER_ROUTINE);
    /// What ALL means ON *.*: everything but GRANT OPTION.
    pub const ALL: Privileges = Privileges((1u32 << NAMES.len()) - 1).without(Privileges::GRANT);

    /// Both together.
    pub const fn and(self, other: Privileges) -> Privileges {
        Privileges(self.0 | other.0)
    }

    /// What is in both.
    pub const fn within(self, other: Privileges) -> Privileges {
        Privileges(self.0 & other.0)
    }

    pub const fn without(self, other: Privileges) -> Privileges {
        Privileges(self.0 & !other.0)
    }

    /// All of `wanted` are there.
    pub const fn has(self, wanted: Privileges) -> bool {
        self.0 & wanted.0 == wanted.0
    }

    /// Some of `wanted` is there.
    pub const fn has_any(self, wanted: Privileges) -> bool {
        self.0 & wanted.0 != 0
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The privilege of that name in upper case.
    pub fn by_name(name: &str) -> Option<Privileges> {
        let name = match name {
            "GRANT OPTION" => "GRANT",
            // Not a privilege's name, but the set has it.
            "GRANT" => return None,
            name => name,
        };
        NAMES.iter().position(|known| *known == name).map(|bit| Privileges(1u32 << bit))
    }

    /// The privileges whose flags are set, in the order of MySQL's bits.
    pub(crate) fn of_flags(flags: impl Iterator<Item = bool>) -> Privileges {
        Privileges(flags.zip(0..NAMES.len()).fold(0, |bits, (on, bit)| bits | u32::from(on) << bit))
    }

    /// Which of the privileges are there, in the order of MySQL's bits.
    pub fn flags(self) -> impl Iterator<Item = bool> {
        (0..NAMES.len()).map(move |bit| self.0 & (1 << bit) != 0)
    }

    /// The names, in the order in which MySQL lists them.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES.iter().enumerate().filter(move |(bit, _)| self.0 & (1 << *bit) != 0).map(|(_, name)| *name)
    }
}

/// The dynamic privileges, all of them ON *.* only.
pub const DYNAMIC_PRIVILEGES: [&str; 13] = [
    "BACKUP_ADMIN", "BINLOG_ADMIN", "CONNECTION_ADMIN", "ENCRYPTION_KEY_ADMIN", "GROUP_REPLICATION_ADMIN", "PERSIST_RO_VARIABLES_ADMIN", "REPLICATION_SLAVE_ADMIN", "RESOURCE_GROUP_ADMIN",
    "RESOURCE_GROUP_USER", "ROLE_ADMIN", "SET_USER_ID", "SYSTEM_VARIABLES_ADMIN", "XA_RECOVER_ADMIN",
];

/// What an account is called. Any account can be granted to others as a role.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AccountName {
    pub user: String,
    pub host: String,
}

/// What has been granted on routines of one kind, by schema and by name in lower case.
pub type RoutineGrants = BTreeMap<String, BTreeMap<String, Privileges>>;

/// What one account may do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grants {
    /// ON *.*
    pub global: Privileges,
    /// Dynamic privileges; true: WITH GRANT OPTION.
    pub dynamic: BTreeMap<String, bool>,
    /// ON schema.*: by the schema's name, in which `%` and `_` stand for others.
    pub schemas: BTreeMap<String, Privileges>,
    /// ON schema.table, by both names.
    pub tables: BTreeMap<String, BTreeMap<String, TableGrants>>,
    /// ON PROCEDURE schema.name, by both names; that of the procedure in lower case.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub routines: RoutineGrants,
    /// ON FUNCTION schema.name, likewise.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub functions: RoutineGrants,
    /// Accounts whose privileges it may take on as roles.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub roles: BTreeSet<AccountName>,
    /// Those of `roles` that it may grant to others: WITH ADMIN OPTION.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub administered: BTreeSet<AccountName>,
    /// Roles that its sessions begin with. Mandatory ones need not be among `roles`.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub default_roles: BTreeSet<AccountName>,
    /// Accounts as which it may act: PROXY.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub proxied: BTreeSet<AccountName>,
    /// Those of `proxied` that it may grant to others: WITH GRANT OPTION.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub proxied_grantable: BTreeSet<AccountName>,
}

/// What one account may do with a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableGrants {
    /// With all of it.
    pub table: Privileges,
    /// By column. Names compare without case.
    pub columns: BTreeMap<String, Privileges>,
}

impl Grants {
    /// ALL ON *.* WITH GRANT OPTION: what the first account has, and every account of a database that was made when there was nothing else.
    pub fn all() -> Grants {
        Grants {
            global: Privileges::ALL.and(Privileges::GRANT),
            dynamic: DYNAMIC_PRIVILEGES.iter().map(|name| ((*name).to_owned(), true)).collect(),
            ..Grants::default()
        }
    }

    /// Adds what a role may do, and which roles it may grant. Which roles the account itself has stays.
    pub fn add_role(&mut self, role: &Grants) {
        self.global = self.global.and(role.global);
        for (name, grantable) in &role.dynamic {
            *self.dynamic.entry(name.clone()).or_default() |= *grantable;
        }
        for (schema, privileges) in &role.schemas {
            let granted = self.schemas.entry(schema.clone()).or_default();
            *granted = granted.and(*privileges);
        }
        for (schema, tables) in &role.tables {
            let granted = self.tables.entry(schema.clone()).or_default();
            for (table, of_role) in tables {
                let of_table = granted.entry(table.clone()).or_default();
                of_table.table = of_table.table.and(of_role.table);
                for (column, privileges) in &of_role.columns {
                    let of_column = of_table.columns.entry(column.clone()).or_default();
                    *of_column = of_column.and(*privileges);
                }
            }
        }
        for kind in RoutineKind::GRANTED {
            for (schema, routines) in role.routines(kind) {
                let granted = self.routines_mut(kind).entry(schema.clone()).or_default();
                for (routine, of_role) in routines {
                    let of_routine = granted.entry(routine.clone()).or_default();
                    *of_routine = of_routine.and(*of_role);
                }
            }
        }
        self.administered.extend(role.administered.iter().cloned());
    }

    /// What has been granted on routines of this kind.
    pub fn routines(&self, kind: RoutineKind) -> &RoutineGrants {
        match kind {
            // Nothing is granted on triggers.
            RoutineKind::Procedure | RoutineKind::Trigger => &self.routines,
            RoutineKind::Function => &self.functions,
        }
    }

    /// The same, to change.
    pub fn routines_mut(&mut self, kind: RoutineKind) -> &mut RoutineGrants {
        match kind {
            RoutineKind::Procedure | RoutineKind::Trigger => &mut self.routines,
            RoutineKind::Function => &mut self.functions,
        }
    }

    /// Takes a role away.
    pub fn remove_role(&mut self, role: &AccountName) {
        self.roles.remove(role);
        self.administered.remove(role);
        self.default_roles.remove(role);
    }

    /// The role is granted, or a default one.
    pub fn names_role(&self, role: &AccountName) -> bool {
        self.roles.contains(role) || self.default_roles.contains(role)
    }

    /// Forgets entries that grant nothing.
    pub fn tidy(&mut self) {
        self.schemas.retain(|_, privileges| !privileges.is_empty());
        for tables in self.tables.values_mut() {
            for grants in tables.values_mut() {
                grants.columns.retain(|_, privileges| !privileges.is_empty());
            }
            tables.retain(|_, grants| !grants.table.is_empty() || !grants.columns.is_empty());
        }
        self.tables.retain(|_, tables| !tables.is_empty());
        for kind in RoutineKind::GRANTED {
            let granted = self.routines_mut(kind);
            for routines in granted.values_mut() {
                routines.retain(|_, privileges| !privileges.is_empty());
            }
            granted.retain(|_, routines| !routines.is_empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_bits_belong_together() {
        assert_eq!(Privileges::by_name("CREATE VIEW"), Some(Privileges::CREATE_VIEW));
        assert_eq!(Privileges::by_name("GRANT OPTION"), Some(Privileges::GRANT));
        assert_eq!(Privileges::by_name("GRANT"), None);
        assert_eq!(Privileges::by_name("SHOW VIEW"), Some(Privileges::SHOW_VIEW));
        assert_eq!(Privileges::by_name("TRIGGER"), Some(Privileges::TRIGGER));
        assert_eq!(Privileges::SELECT.and(Privileges::GRANT).names().collect::<Vec<_>>(), ["SELECT", "GRANT"]);
        assert_eq!(Privileges::ALL.names().count(), 30);
        assert_eq!(Privileges::OF_SCHEMA.names().count(), 18);
        assert_eq!(Privileges::OF_TABLE.names().count(), 12);
        assert_eq!(Privileges::OF_COLUMN.names().collect::<Vec<_>>(), ["SELECT", "INSERT", "UPDATE", "REFERENCES"]);
    }

    #[test]
    fn an_account_without_grants_in_its_record_has_all() {
        let record = r#"{"user":"u","host":"%","plugin":"mysql_native_password","authentication_string":"","password_expired":false,"account_locked":false}"#;
        let user: crate::UserDef = serde_json::from_str(record).unwrap();
        assert_eq!(user.grants, Grants::all());
        let mut narrower = user.clone();
        narrower.grants = Grants::default();
        narrower.grants.schemas.insert("d%".into(), Privileges::SELECT);
        narrower.grants.tables.entry("d".into()).or_default().insert("t".into(), TableGrants { table: Privileges::NONE, columns: [("a".to_owned(), Privileges::UPDATE)].into() });
        let again: crate::UserDef = serde_json::from_slice(&serde_json::to_vec(&narrower).unwrap()).unwrap();
        assert_eq!(again, narrower);
    }

    #[test]
    fn records_tell_of_roles_where_there_are_some() {
        let role = AccountName { user: "r".into(), host: "%".into() };
        let without = serde_json::to_string(&Grants::default()).unwrap();
        assert!(!without.contains("role") && !without.contains("administered"), "{without}");
        assert_eq!(serde_json::from_str::<Grants>(&without).unwrap(), Grants::default());
        let mut grants = Grants { roles: [role.clone()].into(), administered: [role.clone()].into(), default_roles: [role.clone()].into(), ..Grants::default() };
        let again: Grants = serde_json::from_slice(&serde_json::to_vec(&grants).unwrap()).unwrap();
        assert_eq!(again, grants);
        assert!(grants.names_role(&role));
        grants.remove_role(&role);
        assert_eq!(grants, Grants::default());
    }

    #[test]
    fn a_role_adds_what_it_has() {
        let role = AccountName { user: "r".into(), host: "%".into() };
        let mut grants = Grants { global: Privileges::PROCESS, roles: [role.clone()].into(), ..Grants::default() };
        grants.dynamic.insert("BINLOG_ADMIN".into(), true);
        grants.tables.entry("d".into()).or_default().insert("t".into(), TableGrants { table: Privileges::SELECT, columns: BTreeMap::new() });
        let other = AccountName { user: "s".into(), host: "%".into() };
        let mut of_role = Grants { global: Privileges::RELOAD, roles: [other.clone()].into(), administered: [other.clone()].into(), ..Grants::default() };
        of_role.dynamic.insert("BINLOG_ADMIN".into(), false);
        of_role.schemas.insert("d".into(), Privileges::DROP);
        of_role.tables.entry("d".into()).or_default().insert("t".into(), TableGrants { table: Privileges::INSERT, columns: [("a".to_owned(), Privileges::UPDATE)].into() });
        grants.add_role(&of_role);
        assert_eq!(grants.global, Privileges::PROCESS.and(Privileges::RELOAD));
        assert!(grants.dynamic["BINLOG_ADMIN"]);
        assert_eq!(grants.schemas["d"], Privileges::DROP);
        assert_eq!(grants.tables["d"]["t"], TableGrants { table: Privileges::SELECT.and(Privileges::INSERT), columns: [("a".to_owned(), Privileges::UPDATE)].into() });
        assert_eq!((grants.roles, grants.administered), ([role].into(), [other].into()));
    }

    #[test]
    fn what_grants_nothing_goes() {
        let mut grants = Grants::default();
        grants.schemas.insert("d".into(), Privileges::NONE);
        grants.tables.entry("d".into()).or_default().insert("t".into(), TableGrants { table: Privileges::NONE, columns: [("a".to_owned(), Privileges::NONE)].into() });
        grants.tidy();
        assert_eq!(grants, Grants::default());
    }
}
