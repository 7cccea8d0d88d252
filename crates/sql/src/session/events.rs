//! What the binary log is told of the session's statements, and what SHOW and variables tell of the binary log.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use highkey_binlog::RowMetadata;
use highkey_table::{Binlog, BinlogOptions, DdlContext, EventSource, GtidChoice, LoggedStatement, Privileges};
use highkey_types::{Collation, MySqlError, Str, Value};

use super::instance::Replica;
use super::{Session, SessionState, error};
use crate::parse::ast::{ColumnDef, DataTypeKind, ObjectName, Statement};
use crate::variables::Settings;

/// What the event of a statement says that is logged as its text, besides the session's variables.
#[derive(Default)]
pub(crate) struct TextFacts {
    /// The schemas that it changes, in its order, as far as MySQL tells of them.
    schemas: Vec<Str>,
    /// It may define TIMESTAMP columns.
    timestamps: bool,
}

impl TextFacts {
    /// Of a statement in the default schema `current`.
    pub fn of(statement: &Statement, current: Option<&Str>) -> TextFacts {
        use Statement::*;
        let named: Vec<&ObjectName> = match statement {
            CreateTable(create) if create.like.is_none() => vec![&create.name],
            AlterTable(alter) => vec![&alter.name],
            CreateView(view) => vec![&view.name],
            DropTable(drop) => drop.names.iter().collect(),
            RenameTable(renames) => renames.iter().flat_map(|(from, to)| [from, to]).collect(),
            CreateIndex(create) => vec![&create.table],
            DropIndex { table, .. } => vec![table],
            CreateRoutine(create) => vec![&create.name],
            CreateTrigger(create) => vec![&create.name],
            CreateEvent(create) => vec![&create.name],
            AlterEvent(alter) => std::iter::once(&alter.name).chain(&alter.renamed).collect(),
            AlterRoutine { name, .. } | DropProgram { name, .. } => vec![name],
            _ => Vec::new(),
        };
        let mut schemas: Vec<Str> = Vec::new();
        let mut add = |schema: Option<Str>| {
            if let Some(schema) = schema
                && !schemas.contains(&schema)
            {
                schemas.push(schema);
            }
        };
        for name in named {
            add(name.schema.as_deref().map(Str::from).or_else(|| current.cloned()));
        }
        match statement {
            CreateDatabase { name, .. } | DropDatabase { name, .. } => add(Some(name.as_str().into())),
            AlterDatabase { name, .. } => add(name.as_deref().map(Str::from).or_else(|| current.cloned())),
            CreateUser { .. } | AlterUser { .. } | DropUser { .. } | RenameUser(_) | SetPassword { .. } | Grant(_) | Revoke(_) | CreateRole { .. } | DropRole { .. } | SetDefaultRole { .. } => {
                add(Some("mysql".into()));
            }
            _ => {}
        }
        let is_timestamp = |column: &ColumnDef| matches!(column.ty.kind, DataTypeKind::Timestamp(_));
        let timestamps = match statement {
            CreateTable(create) => create.select.is_some() || create.columns.iter().any(is_timestamp),
            // Of the columns that there are, too.
            AlterTable(_) => true,
            _ => false,
        };
        TextFacts { schemas, timestamps }
    }
}

/// `original_commit_timestamp` of what comes from here.
const UNKNOWN_COMMIT_MICROS: u64 = 1 << 55;

/// The version of a server that does not say it, in MySQL's words.
const UNKNOWN_SERVER_VERSION: u32 = 999_999;

/// What the binary log needs of the system variables.
pub fn binlog_options(settings: &Settings) -> BinlogOptions {
    let mut numbers = super::VERSION.split(['.', '-']).map(|n| n.parse::<u32>().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    BinlogOptions {
        enabled: settings.bool("log_bin"),
        untouched: false,
        server_version: super::VERSION.to_owned(),
        version_number: next() * 10_000 + next() * 100 + next(),
        server_id: settings.u64("server_id") as u32,
        expire_seconds: settings.u64("binlog_expire_logs_seconds"),
        assigns_gtids: settings.text("gtid_mode").starts_with("ON"),
        full_metadata: settings.text("binlog_row_metadata") == "FULL",
        max_size: settings.u64("max_binlog_size"),
        max_cache_size: settings.u64("max_binlog_cache_size"),
        checksum: settings.text("binlog_checksum") == "CRC32",
    }
}

impl SessionState {
    /// The binary log, for statements about it. Error 1381 without one.
    pub(crate) fn binlog(&self) -> Result<&Arc<Binlog>, MySqlError> {
        self.instance.database().binlog().ok_or_else(|| error::err(1381, "You are not using binary logging"))
    }

    /// Global variables that are no stored value but something the server knows.
    pub(crate) fn global_only(&self, name: &str) -> Option<Value> {
        let binlog = self.instance.database().binlog()?;
        Some(match name {
            "gtid_executed" => {
                if let Err(e) = binlog.catch_up() {
                    tracing::warn!("the binary log cannot be brought up to date: {}", e.message);
                }
                Value::text(binlog.executed().to_string())
            }
            "gtid_purged" => Value::text(binlog.purged().to_string()),
            "gtid_owned" => {
                let owned: Vec<String> = binlog.owned().iter().map(|(uuid, number, connection)| format!("{uuid}:{number}#{connection}")).collect();
                Value::text(owned.join(",\n"))
            }
            _ => return None,
        })
    }
}

impl SessionState {
    /// When the transaction that is replayed was committed on the server that it comes from; `None`: it is this server's own.
    fn original_commit_micros(&self) -> Option<u64> {
        let micros = self.variables.u64("original_commit_timestamp");
        (micros != 0 && micros < UNKNOWN_COMMIT_MICROS && self.variables.bool("pseudo_slave_mode")).then_some(micros)
    }
}

impl Session {
    /// Error 1227 unless the account may read the binary log, as replicas do.
    pub fn check_follows(&mut self) -> Result<(), MySqlError> {
        self.state.refresh_access();
        self.state.check_global(Privileges::REPLICATION_SLAVE, "REPLICATION SLAVE")
    }

    /// COM_REGISTER_SLAVE: for SHOW REPLICAS, until the connection ends.
    pub fn register_replica(&self, server_id: u32, host: String, port: u16) {
        let uuid = ["replica_uuid", "slave_uuid"].iter().find_map(|name| self.user_variable(name));
        let uuid = uuid.and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default();
        let replica = Replica { server_id, host, port, uuid };
        self.state.instance.replicas().lock().insert(self.state.client.connection_id, replica);
    }

    /// The value of `@name`.
    pub fn user_variable(&self, name: &str) -> Option<Value> {
        self.state.user_vars.get(name).map(|(value, _)| value.clone())
    }

    /// What the events of the running statement's rows say; `None` if there are to be none.
    pub(crate) fn rows_source(&self) -> Option<EventSource> {
        self.gtid_source().filter(|_| self.state.config.sql_log_bin)
    }

    /// What the event of a statement says that is logged as its text; `None` if there is to be none. It is committed with it.
    pub(crate) fn event_source(&self) -> Option<EventSource> {
        let logged = self.state.config.sql_log_bin;
        // As in MySQL: what is not logged counts as executed all the same.
        let source = self.gtid_source().filter(|_| logged || self.gtid.is_owned())?;
        self.gtid.give();
        Some(EventSource { only_gtid: !logged, charset_database: self.own_collation_database(), ..source })
    }

    /// The id of `collation_database` if that has been set to another than the default schema's, else 0.
    fn own_collation_database(&self) -> u16 {
        let id = |name: &str| Collation::by_name(&self.state.variables.text(name)).map_or(0, |collation| collation.id);
        let usual = match &self.state.database {
            Some(name) => self.state.instance.database().catalog().schema(name).map(|schema| schema.collation.id),
            None => Some(id("collation_server")),
        };
        match id("collation_database") {
            own if usual.is_some_and(|usual| usual != own) => own,
            _ => 0,
        }
    }

    /// What the events say that give a GTID to a transaction, `sql_log_bin` or not.
    pub(crate) fn gtid_source(&self) -> Option<EventSource> {
        let state = &self.state;
        let binlog = state.instance.database().binlog()?;
        let settings = binlog.settings();
        let automatic = if settings.assigns_gtids.load(Ordering::Relaxed) { GtidChoice::Automatic } else { GtidChoice::Anonymous };
        let mut original_server_version = None;
        let (server_id, gtid, original_commit_micros) = match &self.replica {
            None => (settings.server_id.load(Ordering::Relaxed), self.gtid.choice(automatic), state.original_commit_micros()),
            Some(replica) => {
                let log = replica.log.as_ref()?;
                original_server_version = Some(log.server_version.unwrap_or(UNKNOWN_SERVER_VERSION));
                (log.server_id, log.gtid.map_or(automatic, |(uuid, number)| GtidChoice::Assigned(uuid, number)), log.committed_micros)
            }
        };
        Some(EventSource {
            server_id,
            original_commit_micros,
            original_server_version,
            thread_id: state.pseudo_thread_id() as u32,
            timestamp: (state.now_micros / 1_000_000) as u32,
            micros: (state.now_micros % 1_000_000) as u32,
            schema: state.database.clone().unwrap_or_default(),
            row_metadata: if settings.full_metadata.load(Ordering::Relaxed) { RowMetadata::Full } else { RowMetadata::Minimal },
            statement: state.config.rows_query.then(|| self.statement_text.clone()),
            gtid,
            explicit_defaults_for_timestamp: self.text_facts.timestamps.then_some(state.config.explicit_timestamps),
            schemas: self.text_facts.schemas.clone(),
            ..state.config.events.clone()
        })
    }

    /// For a DDL statement that is logged as it was written.
    pub(crate) fn ddl_context(&self) -> DdlContext {
        self.ddl_context_logging(self.statement_text.clone())
    }

    /// For a DDL statement that is logged as `text`.
    pub(crate) fn ddl_context_logging(&self, text: Str) -> DdlContext {
        let log = self.event_source().map(|source| Arc::new(LoggedStatement { source, text, told: self.gtid.told().clone() }));
        DdlContext { log, ..self.unlogged_ddl_context() }
    }

    /// For work that the binary log tells in another way.
    pub(crate) fn unlogged_ddl_context(&self) -> DdlContext {
        DdlContext {
            lock_wait_timeout: self.state.config.metadata_timeout,
            interrupt: self.state.process.flag(),
            progress: self.state.process.progress(),
            session: Some(self.state.locks.clone()),
            foreign_key_checks: self.state.config.foreign_key_checks,
            threads: self.state.config.ddl_threads,
            memory: self.state.config.ddl_memory,
            online_log: self.state.instance.globals().u64("innodb_online_alter_log_max_size") as usize,
            replica: self.replica.as_ref().and_then(|replica| replica.definition_record.clone()),
            ..DdlContext::default()
        }
    }
}
