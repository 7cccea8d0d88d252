//! What statements ask of their account, other than for the tables that they read and change rows of: those the binder checks.

use highkey_table::{Privileges, RoutineKind};
use highkey_types::{MySqlError, errors};

use super::Access;
use crate::information_schema;
use crate::parse::ast::{
    AlterAction, CreateTable, CreateView, Flush, LoadDuplicates, Maintenance, ObjectName, PartitionAction, ReplicaAction, SetItem, Show, ShowWhat, Statement, StoredProgram, UserName, VariableScope, XaStatement,
};
use crate::session::{Session, SessionState};
use crate::show;
use crate::sys;

/// Session variables that ask for SYSTEM_VARIABLES_ADMIN.
const RESTRICTED: [&str; 12] = [
    "binlog_direct_non_transactional_updates", "binlog_format", "binlog_row_image", "binlog_rows_query_log_events", "default_collation_for_utf8mb4",
    "explicit_defaults_for_timestamp", "gtid_next", "histogram_generation_max_mem_size", "original_commit_timestamp", "pseudo_thread_id", "sql_log_bin", "sql_log_off",
];

impl SessionState {
    /// The schema and the table that a name means.
    fn named<'n>(&self, name: &'n ObjectName) -> Result<(String, &'n str), MySqlError> {
        Ok((self.schema_of(name.schema.as_deref())?.to_string(), name.name.as_str()))
    }

    /// Error 1142 for a table, or 1046 without a schema.
    fn check_named(&self, access: &Access, wanted: Privileges, name: &ObjectName) -> Result<(), MySqlError> {
        let (schema, table) = self.named(name)?;
        access.check_table(wanted, &schema, table)
    }

    /// As `check_named`, of a table that is used: with a temporary one everything may be done.
    fn check_used(&self, access: &Access, wanted: Privileges, name: &ObjectName) -> Result<(), MySqlError> {
        if self.is_temporary(name) { Ok(()) } else { self.check_named(access, wanted, name) }
    }

    fn is_own(&self, name: &UserName) -> bool {
        name.current || (name.user == self.client.account_user && name.host.eq_ignore_ascii_case(&self.client.account_host))
    }

    /// The account's password is the client's own.
    fn has_own_password(&self, name: &UserName) -> bool {
        let (user, host) = self.client.password_account();
        let (named_user, named_host) = if name.current { (&self.client.account_user, &self.client.account_host) } else { (&name.user, &name.host) };
        named_user == user && named_host.eq_ignore_ascii_case(host)
    }

    /// Error 1227 for a definer that is somebody else.
    fn check_definer(&self, access: &Access, definer: Option<&UserName>) -> Result<(), MySqlError> {
        if definer.is_none_or(|definer| self.is_own(definer)) { Ok(()) } else { access.check_dynamic("SET_USER_ID") }
    }

    /// As `check_definer`, of the session's account.
    pub(crate) fn check_may_define(&self, definer: Option<&UserName>) -> Result<(), MySqlError> {
        self.access().map_or(Ok(()), |access| self.check_definer(access, definer))
    }

    /// What SHOW and DESCRIBE ask for. Lists leave out what may not be seen, and ask for nothing.
    pub(crate) fn check_show(&self, show: &Show) -> Result<(), MySqlError> {
        let Some(access) = self.access() else { return Ok(()) };
        match &show.what {
            ShowWhat::Events { schema } => access.check_schema(Privileges::EVENT, &self.schema_of(schema.as_deref())?),
            ShowWhat::CreateOther { kind, name } if kind == "EVENT" => access.check_schema(Privileges::EVENT, &self.schema_of(name.schema.as_deref())?),
            ShowWhat::Tables { schema, .. } | ShowWhat::TableStatus { schema } | ShowWhat::Triggers { schema } => {
                let schema = self.schema_of(schema.as_deref())?;
                if access.sees_schema(&schema) { Ok(()) } else { Err(access.schema_denied(&schema)) }
            }
            ShowWhat::CreateDatabase { name, .. } if !access.sees_schema(name) => Err(access.schema_denied(name)),
            ShowWhat::Columns { table, .. } | ShowWhat::Index { table } => self.check_described(table),
            ShowWhat::CreateTable(name) if self.is_temporary(name) => Ok(()),
            ShowWhat::CreateTable(name) | ShowWhat::CreateView(name) => {
                let (schema, table) = self.named(name)?;
                if sys::find_view(&self.instance.database().catalog(), &schema, table).is_some() {
                    let seen = access.table(&schema, table);
                    return match (seen.has_any(Privileges::SELECT), seen.has(Privileges::SHOW_VIEW)) {
                        (true, true) => Ok(()),
                        (_, false) => Err(access.table_denied("SHOW VIEW", table)),
                        (false, true) => Err(access.table_denied("SELECT", table)),
                    };
                }
                // Columns do not do: the text shows all of them.
                if access.table(&schema, table).has_any(Privileges::OF_TABLE.and(Privileges::GRANT)) { Ok(()) } else { Err(access.table_denied("SHOW", table)) }
            }
            ShowWhat::CreateUser(user) if !self.is_own(user) => access.check_schema(Privileges::SELECT, "mysql"),
            ShowWhat::Grants { user: Some(user), .. } if !self.is_own(user) => access.check_table(Privileges::SELECT, "mysql", "user"),
            ShowWhat::Engine { .. } => access.check_global(Privileges::PROCESS, "PROCESS"),
            ShowWhat::BinaryLogs | ShowWhat::BinaryLogStatus | ShowWhat::ReplicaStatus { .. } => {
                access.check_global(Privileges::SUPER.and(Privileges::REPLICATION_CLIENT), "SUPER, REPLICATION CLIENT")
            }
            ShowWhat::BinlogEvents { .. } | ShowWhat::RelaylogEvents { .. } | ShowWhat::Replicas => access.check_global(Privileges::REPLICATION_SLAVE, "REPLICATION SLAVE"),
            _ => Ok(()),
        }
    }

    /// A table whose columns or indexes are shown: something may be done with it. Error 1142, be it there or not.
    pub(crate) fn check_described(&self, name: &ObjectName) -> Result<(), MySqlError> {
        let Some(access) = self.access() else { return Ok(()) };
        let (schema, table) = self.named(name)?;
        if self.is_temporary(name) || access.sees_table(&schema, table) { Ok(()) } else { Err(access.table_denied("SELECT", table)) }
    }

    /// Something may be done with the table: it is listed.
    pub(crate) fn sees_table(&self, schema: &str, table: &str) -> bool {
        self.access().is_none_or(|access| access.sees_table(schema, table))
    }

    /// Error 1227 unless the account has the privilege ON *.*; `name` is its name.
    pub(crate) fn check_global(&self, wanted: Privileges, name: &str) -> Result<(), MySqlError> {
        self.access().map_or(Ok(()), |access| access.check_global(wanted, name))
    }

    fn check_create_table(&self, access: &Access, create: &CreateTable) -> Result<(), MySqlError> {
        let (schema, table) = self.named(&create.name)?;
        if create.temporary {
            access.check_schema(Privileges::CREATE_TEMPORARY, &schema)?;
        } else {
            let mut wanted = if create.select.is_some() { Privileges::CREATE.and(Privileges::INSERT) } else { Privileges::CREATE };
            // It takes the place of a table of the server's own, which a restore drops first.
            if !create.if_not_exists && information_schema::find(&schema, table).is_some() {
                wanted = wanted.and(Privileges::DROP);
            }
            access.check_table(wanted, &schema, table)?;
        }
        if let Some(like) = create.like.as_ref().filter(|like| !self.is_temporary(like)) {
            let (schema, table) = self.named(like)?;
            access.check_any_column(Privileges::SELECT, &schema, table)?;
        }
        create.foreign_keys.iter().try_for_each(|key| self.check_parent(access, &schema, &key.parent))
    }

    /// The parent of a foreign key; without a schema it is the child's.
    fn check_parent(&self, access: &Access, schema: &str, parent: &ObjectName) -> Result<(), MySqlError> {
        let schema = parent.schema.as_deref().unwrap_or(schema);
        if access.table(schema, &parent.name).has(Privileges::REFERENCES) { Ok(()) } else { Err(access.table_denied("REFERENCES", &format!("{schema}.{}", parent.name))) }
    }

    fn check_create_view(&self, access: &Access, view: &CreateView) -> Result<(), MySqlError> {
        self.check_named(access, Privileges::CREATE_VIEW, &view.name)?;
        if view.replace || view.alter {
            self.check_named(access, Privileges::DROP, &view.name)?;
        }
        match &view.definer {
            Some(definer) if !self.is_own(definer) => access.check_dynamic("SET_USER_ID"),
            _ => Ok(()),
        }
    }

    fn check_set(&self, access: &Access, items: &[SetItem]) -> Result<(), MySqlError> {
        for item in items {
            let asks = match item {
                SetItem::System { scope: Some(VariableScope::Global | VariableScope::Persist | VariableScope::PersistOnly), .. } => true,
                SetItem::System { name, .. } => RESTRICTED.iter().any(|restricted| restricted.eq_ignore_ascii_case(name)),
                SetItem::Transaction { scope: Some(VariableScope::Global), .. } => true,
                _ => false,
            };
            if asks {
                access.check_dynamic("SYSTEM_VARIABLES_ADMIN")?;
            }
            if matches!(item, SetItem::System { name, .. } if name.eq_ignore_ascii_case("mandatory_roles")) && !access.has_dynamic_or_super("ROLE_ADMIN") {
                return Err(errors::specific_access_denied_error("ROLE_ADMIN, SUPER or SYSTEM_VARIABLES_ADMIN"));
            }
        }
        Ok(())
    }

    fn check_maintain(&self, access: &Access, operation: Maintenance, tables: &[ObjectName]) -> Result<(), MySqlError> {
        let wanted = match operation {
            Maintenance::Check | Maintenance::Checksum => Privileges::SELECT,
            _ => Privileges::SELECT.and(Privileges::INSERT),
        };
        tables.iter().filter(|name| !self.is_temporary(name)).try_for_each(|name| {
            let (schema, table) = self.named(name)?;
            access.check_any_column(wanted, &schema, table)
        })
    }
}

impl Session {
    /// What the statement asks for before it runs. The tables whose rows it reads and changes are checked as it is bound.
    pub(crate) fn check_privileges(&self, statement: &Statement) -> Result<(), MySqlError> {
        let state = &self.state;
        let Some(access) = state.access() else { return Ok(()) };
        let table = |wanted, name: &ObjectName| state.check_named(access, wanted, name);
        let used = |wanted, name: &ObjectName| state.check_used(access, wanted, name);
        let create_user = || access.check_global(Privileges::CREATE_USER, "CREATE USER");
        match statement {
            Statement::CreateTable(create) => state.check_create_table(access, create),
            Statement::CreateView(view) => state.check_create_view(access, view),
            Statement::AlterTable(alter) => {
                // The last one counts.
                let renamed = alter.actions.iter().rev().find_map(|action| if let AlterAction::RenameTable(name) = action { Some(name) } else { None });
                used(if renamed.is_some() { Privileges::ALTER.and(Privileges::DROP) } else { Privileges::ALTER }, &alter.name)?;
                for action in &alter.actions {
                    match action {
                        AlterAction::Partitions(PartitionAction::Drop(_) | PartitionAction::Truncate(_)) => used(Privileges::DROP, &alter.name)?,
                        AlterAction::Partitions(PartitionAction::Exchange { table: other, .. }) => {
                            let wanted = Privileges::ALTER.and(Privileges::INSERT).and(Privileges::CREATE).and(Privileges::DROP);
                            table(wanted, &alter.name)?;
                            table(wanted, other)?;
                        }
                        _ => {}
                    }
                }
                if let Some(name) = renamed {
                    table(Privileges::CREATE.and(Privileges::INSERT), name)?;
                }
                let (schema, _) = state.named(&alter.name)?;
                let mut parents = alter.actions.iter().filter_map(|action| if let AlterAction::AddForeignKey(key) = action { Some(&key.parent) } else { None });
                parents.try_for_each(|parent| state.check_parent(access, &schema, parent))
            }
            Statement::DropTable(drop) if drop.temporary => Ok(()),
            Statement::DropTable(drop) if drop.view => drop.names.iter().try_for_each(|name| table(Privileges::DROP, name)),
            Statement::DropTable(drop) => drop.names.iter().try_for_each(|name| used(Privileges::DROP, name)),
            Statement::RenameTable(renames) => renames.iter().try_for_each(|(from, to)| {
                table(Privileges::ALTER.and(Privileges::DROP), from)?;
                table(Privileges::CREATE.and(Privileges::INSERT), to)
            }),
            Statement::TruncateTable(name) => used(Privileges::DROP, name),
            Statement::CreateIndex(create) => used(Privileges::INDEX, &create.table),
            Statement::DropIndex { table: name, .. } => used(Privileges::INDEX, name),
            Statement::CreateDatabase { name, .. } => access.check_schema(Privileges::CREATE, name),
            Statement::AlterDatabase { name, .. } => access.check_schema(Privileges::ALTER, &state.schema_of(name.as_deref())?),
            Statement::DropDatabase { name, .. } => access.check_schema(Privileges::DROP, name),
            Statement::AlterUser { users, options, .. } => {
                let plain = options.account_lock.is_none() && !options.password_expire && options.require.is_empty() && options.other.is_empty();
                let own_password = |spec: &crate::parse::ast::UserSpec| {
                    (spec.name.current || state.has_own_password(&spec.name)) && spec.plugin.is_none() && (spec.password.is_some() || spec.hash.is_some())
                };
                if plain && users.iter().all(own_password) { Ok(()) } else { create_user() }
            }
            Statement::CreateUser { .. } | Statement::DropUser { .. } | Statement::RenameUser(_) => create_user(),
            Statement::CreateRole { .. } => access.check_global(Privileges::CREATE_USER.and(Privileges::CREATE_ROLE), "CREATE USER, CREATE ROLE"),
            Statement::DropRole { .. } => access.check_global(Privileges::CREATE_USER.and(Privileges::DROP_ROLE), "CREATE USER, DROP ROLE"),
            Statement::SetDefaultRole { users, .. } if users.iter().all(|user| state.is_own(user)) => Ok(()),
            Statement::SetDefaultRole { .. } => create_user(),
            Statement::SetPassword { user: Some(user), .. } if !state.has_own_password(user) => {
                if access.global().has(Privileges::CREATE_USER) { Ok(()) } else { access.check_schema(Privileges::UPDATE, "mysql") }
            }
            Statement::CreateRoutine(create) => {
                access.check_schema(Privileges::CREATE_ROUTINE, &state.schema_of(create.name.schema.as_deref())?)?;
                match &create.definer {
                    Some(definer) if !state.is_own(definer) => access.check_dynamic("SET_USER_ID"),
                    _ => Ok(()),
                }
            }
            Statement::CreateEvent(create) => {
                state.check_definer(access, create.definer.as_ref())?;
                access.check_schema(Privileges::EVENT, &state.schema_of(create.name.schema.as_deref())?)
            }
            Statement::AlterEvent(alter) => {
                state.check_definer(access, alter.definer.as_ref())?;
                let mut names = std::iter::once(&alter.name).chain(&alter.renamed);
                names.try_for_each(|name| access.check_schema(Privileges::EVENT, &state.schema_of(name.schema.as_deref())?))
            }
            Statement::AlterRoutine { kind, name, .. } => {
                access.check_routine(Privileges::ALTER_ROUTINE, *kind, &state.schema_of(name.schema.as_deref())?, &name.name)
            }
            Statement::DropProgram { kind: kind @ (StoredProgram::Procedure | StoredProgram::Function), name, .. } => {
                let kind = if *kind == StoredProgram::Procedure { RoutineKind::Procedure } else { RoutineKind::Function };
                access.check_routine(Privileges::ALTER_ROUTINE, kind, &state.schema_of(name.schema.as_deref())?, &name.name)
            }
            Statement::CreateTrigger(create) => {
                table(Privileges::TRIGGER, &create.table)?;
                state.check_definer(access, create.definer.as_ref())
            }
            Statement::DropProgram { kind: StoredProgram::Trigger, name, .. } => {
                let schema = state.schema_of(name.schema.as_deref())?;
                match state.instance.database().catalog().trigger(&schema, &name.name) {
                    Some((table, _)) => access.check_table(Privileges::TRIGGER, &schema, &table.def().name),
                    None => Ok(()),
                }
            }
            Statement::DropProgram { kind, name, .. } => {
                let schema = state.schema_of(name.schema.as_deref())?;
                let wanted = match kind {
                    StoredProgram::Trigger => Privileges::TRIGGER,
                    StoredProgram::Event => Privileges::EVENT,
                    StoredProgram::Procedure | StoredProgram::Function => Privileges::ALTER_ROUTINE,
                };
                access.check_schema(wanted, &schema)
            }
            Statement::LoadData(load) => {
                if !load.local && !access.global().has(Privileges::FILE) {
                    return Err(access.denied());
                }
                if state.is_temporary(&load.table) {
                    return Ok(());
                }
                let (schema, name) = state.named(&load.table)?;
                let wanted = if load.duplicates == LoadDuplicates::Replace { Privileges::INSERT.and(Privileges::DELETE) } else { Privileges::INSERT };
                access.check_any_column(wanted, &schema, name)
            }
            Statement::LockTables(locks) => locks.iter().filter(|lock| !state.is_temporary(&lock.name)).try_for_each(|lock| {
                let (schema, name) = state.named(&lock.name)?;
                if !information_schema::is_virtual_schema(&schema) && !access.table(&schema, name).has(Privileges::LOCK_TABLES) {
                    return Err(access.schema_denied(&schema));
                }
                access.check_any_column(Privileges::SELECT, &schema, name)
            }),
            Statement::Set(items) => state.check_set(access, items),
            Statement::Flush(items) => {
                access.check_global(Privileges::RELOAD, "RELOAD")?;
                let locked = items.iter().filter_map(|item| if let Flush::Tables { names, read_lock: true, .. } = item { Some(names) } else { None });
                locked.flatten().try_for_each(|name| {
                    let (schema, name) = state.named(name)?;
                    access.check_schema(Privileges::LOCK_TABLES, &schema)?;
                    access.check_table(Privileges::SELECT, &schema, name)
                })
            }
            Statement::Maintain { operation, tables, .. } => state.check_maintain(access, *operation, tables),
            Statement::Histogram(histogram) => state.check_maintain(access, Maintenance::Analyze, &histogram.tables),
            Statement::LockInstance | Statement::UnlockInstance if !access.has_dynamic("BACKUP_ADMIN") => Err(errors::specific_access_denied_error("BACKUP_ADMIN")),
            Statement::Shutdown => access.check_global(Privileges::SHUTDOWN, "SHUTDOWN"),
            Statement::Reset | Statement::ResetBinaryLogs { .. } => access.check_global(Privileges::RELOAD, "RELOAD"),
            Statement::PurgeBinaryLogsTo(_) | Statement::PurgeBinaryLogsBefore(_) | Statement::Binlog(_) => access.check_dynamic("BINLOG_ADMIN"),
            Statement::Replica(statement) => match &statement.action {
                ReplicaAction::Reset { .. } => access.check_global(Privileges::RELOAD, "RELOAD"),
                _ => access.check_dynamic("REPLICATION_SLAVE_ADMIN"),
            },
            Statement::Plugin { install: true, .. } => access.check_table(Privileges::INSERT, "mysql", "plugin"),
            Statement::Plugin { install: false, .. } => access.check_table(Privileges::DELETE, "mysql", "plugin"),
            Statement::Xa(XaStatement::Recover { .. }) if !access.has_dynamic("XA_RECOVER_ADMIN") => Err(highkey_types::errors::xaer_rmerr()),
            Statement::ExplainConnection { id, .. } => match state.instance.processes().get(*id) {
                // As if there were none.
                Some(process) if !show::sees_process(state, &process.snapshot().user) => Err(crate::session::error::err(1094, format!("Unknown thread id: {id}"))),
                _ => Ok(()),
            },
            Statement::Explain { statement, .. } => self.check_privileges(statement),
            // What they read and change is checked by the binder, what they show by `check_show`, accounts and grants by `grant`.
            _ => Ok(()),
        }
    }
}
