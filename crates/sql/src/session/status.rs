//! Status counters of the SQL layer and the server. Each connection has its own, so that nobody waits for another's processor to count; SHOW GLOBAL STATUS
//! adds them up.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $variant:ident => $name:literal,)*) => {
        /// A counter that statements or the server raise.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum StatusCounter { $($(#[$doc])* $variant,)* }

        const NAMES: &[&str] = &[$($name,)*];
    };
}

counters! {
    AbortedClients => "Aborted_clients",
    AbortedConnects => "Aborted_connects",
    BytesReceived => "Bytes_received",
    BytesSent => "Bytes_sent",
    Connections => "Connections",
    ConnectionErrorsAccept => "Connection_errors_accept",
    ConnectionErrorsMaxConnections => "Connection_errors_max_connections",
    MaxUsedConnections => "Max_used_connections",
    Questions => "Questions",
    Queries => "Queries",
    SlowQueries => "Slow_queries",
    SelectFastPath => "Highkey_select_fast_path",
    SelectDataFusion => "Highkey_select_datafusion",
    SelectKeptPlan => "Highkey_select_kept_plan",
    MaxExecutionTimeExceeded => "Max_execution_time_exceeded",
    FlushCommands => "Flush_commands",
    HandlerCommit => "Handler_commit",
    HandlerDelete => "Handler_delete",
    HandlerPrepare => "Handler_prepare",
    HandlerReadFirst => "Handler_read_first",
    HandlerReadKey => "Handler_read_key",
    HandlerReadLast => "Handler_read_last",
    HandlerReadNext => "Handler_read_next",
    HandlerReadPrev => "Handler_read_prev",
    HandlerReadRnd => "Handler_read_rnd",
    HandlerReadRndNext => "Handler_read_rnd_next",
    HandlerRollback => "Handler_rollback",
    HandlerSavepoint => "Handler_savepoint",
    HandlerSavepointRollback => "Handler_savepoint_rollback",
    HandlerUpdate => "Handler_update",
    HandlerWrite => "Handler_write",
    SelectFullJoin => "Select_full_join",
    SelectFullRangeJoin => "Select_full_range_join",
    SelectRange => "Select_range",
    SelectScan => "Select_scan",
    SortMergePasses => "Sort_merge_passes",
    SortRange => "Sort_range",
    SortRows => "Sort_rows",
    SortScan => "Sort_scan",
    CreatedTmpDiskTables => "Created_tmp_disk_tables",
    CreatedTmpFiles => "Created_tmp_files",
    CreatedTmpTables => "Created_tmp_tables",
    BinlogCacheDiskUse => "Binlog_cache_disk_use",
    BinlogCacheUse => "Binlog_cache_use",
    MaxExecutionTimeSet => "Max_execution_time_set",
    SslAccepts => "Ssl_accepts",
    SslFinishedAccepts => "Ssl_finished_accepts",
    ConnectAttributesLongest => "Performance_schema_session_connect_attrs_longest_seen",
    InnodbRowsRead => "Innodb_rows_read",
    InnodbRowsInserted => "Innodb_rows_inserted",
    InnodbRowsUpdated => "Innodb_rows_updated",
    InnodbRowsDeleted => "Innodb_rows_deleted",
    ComAdminCommands => "Com_admin_commands",
    ComAlterDb => "Com_alter_db",
    ComAlterEvent => "Com_alter_event",
    ComAlterFunction => "Com_alter_function",
    ComAlterProcedure => "Com_alter_procedure",
    ComAlterTable => "Com_alter_table",
    ComAlterUser => "Com_alter_user",
    ComAlterUserDefaultRole => "Com_alter_user_default_role",
    ComAnalyze => "Com_analyze",
    ComBegin => "Com_begin",
    ComBinlog => "Com_binlog",
    ComCallProcedure => "Com_call_procedure",
    ComChangeDb => "Com_change_db",
    ComChangeMaster => "Com_change_master",
    ComChangeReplFilter => "Com_change_repl_filter",
    ComCheck => "Com_check",
    ComChecksum => "Com_checksum",
    ComCommit => "Com_commit",
    ComCreateDb => "Com_create_db",
    ComCreateEvent => "Com_create_event",
    ComCreateIndex => "Com_create_index",
    ComCreateFunction => "Com_create_function",
    ComCreateProcedure => "Com_create_procedure",
    ComCreateRole => "Com_create_role",
    ComCreateTable => "Com_create_table",
    ComCreateTrigger => "Com_create_trigger",
    ComCreateUser => "Com_create_user",
    ComCreateView => "Com_create_view",
    ComDeallocSql => "Com_dealloc_sql",
    ComDelete => "Com_delete",
    ComDeleteMulti => "Com_delete_multi",
    ComDo => "Com_do",
    ComDropDb => "Com_drop_db",
    ComDropEvent => "Com_drop_event",
    ComDropFunction => "Com_drop_function",
    ComDropIndex => "Com_drop_index",
    ComDropProcedure => "Com_drop_procedure",
    ComDropRole => "Com_drop_role",
    ComDropTable => "Com_drop_table",
    ComDropTrigger => "Com_drop_trigger",
    ComDropUser => "Com_drop_user",
    ComDropView => "Com_drop_view",
    ComEmptyQuery => "Com_empty_query",
    ComExecuteSql => "Com_execute_sql",
    ComExplain => "Com_explain_other",
    ComFlush => "Com_flush",
    ComGetDiagnostics => "Com_get_diagnostics",
    ComGrant => "Com_grant",
    ComGrantRoles => "Com_grant_roles",
    ComHaClose => "Com_ha_close",
    ComHaOpen => "Com_ha_open",
    ComHaRead => "Com_ha_read",
    ComInsert => "Com_insert",
    ComInsertSelect => "Com_insert_select",
    ComInstallPlugin => "Com_install_plugin",
    ComKill => "Com_kill",
    ComLoad => "Com_load",
    ComLockInstance => "Com_lock_instance",
    ComLockTables => "Com_lock_tables",
    ComOptimize => "Com_optimize",
    ComPrepareSql => "Com_prepare_sql",
    ComPurge => "Com_purge",
    ComPurgeBeforeDate => "Com_purge_before_date",
    ComReleaseSavepoint => "Com_release_savepoint",
    ComRenameTable => "Com_rename_table",
    ComRenameUser => "Com_rename_user",
    ComRepair => "Com_repair",
    ComReplace => "Com_replace",
    ComReplaceSelect => "Com_replace_select",
    ComReset => "Com_reset",
    ComResignal => "Com_resignal",
    ComRevoke => "Com_revoke",
    ComRevokeAll => "Com_revoke_all",
    ComRevokeRoles => "Com_revoke_roles",
    ComRollback => "Com_rollback",
    ComRollbackToSavepoint => "Com_rollback_to_savepoint",
    ComSavepoint => "Com_savepoint",
    ComSelect => "Com_select",
    ComSetOption => "Com_set_option",
    ComSetPassword => "Com_set_password",
    ComSetRole => "Com_set_role",
    ComShowBinlogEvents => "Com_show_binlog_events",
    ComShowBinlogs => "Com_show_binlogs",
    ComShowCharsets => "Com_show_charsets",
    ComShowCollations => "Com_show_collations",
    ComShowCreateDb => "Com_show_create_db",
    ComShowCreateEvent => "Com_show_create_event",
    ComShowCreateFunc => "Com_show_create_func",
    ComShowCreateProc => "Com_show_create_proc",
    ComShowCreateTable => "Com_show_create_table",
    ComShowCreateTrigger => "Com_show_create_trigger",
    ComShowCreateUser => "Com_show_create_user",
    ComShowDatabases => "Com_show_databases",
    ComShowEngineLogs => "Com_show_engine_logs",
    ComShowEngineMutex => "Com_show_engine_mutex",
    ComShowEngineStatus => "Com_show_engine_status",
    ComShowErrors => "Com_show_errors",
    ComShowEvents => "Com_show_events",
    ComShowFields => "Com_show_fields",
    ComShowFunctionStatus => "Com_show_function_status",
    ComShowGrants => "Com_show_grants",
    ComShowKeys => "Com_show_keys",
    ComShowMasterStatus => "Com_show_master_status",
    ComShowOpenTables => "Com_show_open_tables",
    ComShowPlugins => "Com_show_plugins",
    ComShowPrivileges => "Com_show_privileges",
    ComShowProcedureStatus => "Com_show_procedure_status",
    ComShowProcesslist => "Com_show_processlist",
    ComShowProfile => "Com_show_profile",
    ComShowProfiles => "Com_show_profiles",
    ComShowRelaylogEvents => "Com_show_relaylog_events",
    ComShowSlaveHosts => "Com_show_slave_hosts",
    ComShowSlaveStatus => "Com_show_slave_status",
    ComShowStatus => "Com_show_status",
    ComShowStorageEngines => "Com_show_storage_engines",
    ComShowTableStatus => "Com_show_table_status",
    ComShowTables => "Com_show_tables",
    ComShowTriggers => "Com_show_triggers",
    ComShowVariables => "Com_show_variables",
    ComShowWarnings => "Com_show_warnings",
    ComShutdown => "Com_shutdown",
    ComSignal => "Com_signal",
    ComSlaveStart => "Com_slave_start",
    ComSlaveStop => "Com_slave_stop",
    ComStmtClose => "Com_stmt_close",
    ComStmtExecute => "Com_stmt_execute",
    ComStmtFetch => "Com_stmt_fetch",
    ComStmtPrepare => "Com_stmt_prepare",
    ComStmtReset => "Com_stmt_reset",
    ComStmtSendLongData => "Com_stmt_send_long_data",
    ComTruncate => "Com_truncate",
    ComUninstallPlugin => "Com_uninstall_plugin",
    ComUnlockInstance => "Com_unlock_instance",
    ComUnlockTables => "Com_unlock_tables",
    ComUpdate => "Com_update",
    ComUpdateMulti => "Com_update_multi",
    ComXaCommit => "Com_xa_commit",
    ComXaEnd => "Com_xa_end",
    ComXaPrepare => "Com_xa_prepare",
    ComXaRecover => "Com_xa_recover",
    ComXaRollback => "Com_xa_rollback",
    ComXaStart => "Com_xa_start",
}

impl StatusCounter {
    /// As SHOW STATUS names it.
    pub fn name(self) -> &'static str {
        NAMES[self as usize]
    }

    /// The kinds of statements that are counted, by what MySQL calls them behind `Com_`.
    pub fn commands() -> impl Iterator<Item = &'static str> {
        NAMES.iter().filter_map(|name| name.strip_prefix("Com_")).filter(|name| !name.starts_with("stmt_"))
    }

    /// SHOW SESSION STATUS gives the connection's own; of the others all that there are.
    fn is_of_session(name: &str) -> bool {
        let server = ["Aborted_", "Binlog_", "Connection", "Created_tmp_files", "Flush_commands", "Highkey_", "Innodb_", "Max_used_", "Performance_schema_", "Queries", "Ssl_"];
        !server.iter().any(|prefix| name.starts_with(prefix))
    }
}

/// The counters of a connection, or of the server.
pub struct Status {
    counters: Box<[AtomicU64]>,
}

impl Default for Status {
    fn default() -> Self {
        Status { counters: NAMES.iter().map(|_| AtomicU64::new(0)).collect() }
    }
}

impl Status {
    pub fn add(&self, counter: StatusCounter, n: u64) {
        self.counters[counter as usize].fetch_add(n, Ordering::Relaxed);
    }

    /// Raises it to `n`; false if it was that high.
    pub fn max(&self, counter: StatusCounter, n: u64) -> bool {
        self.counters[counter as usize].fetch_max(n, Ordering::Relaxed) < n
    }

    pub fn set(&self, counter: StatusCounter, n: u64) {
        self.counters[counter as usize].store(n, Ordering::Relaxed);
    }

    pub fn get(&self, counter: StatusCounter) -> u64 {
        self.counters[counter as usize].load(Ordering::Relaxed)
    }

    /// Adds every counter of another one.
    pub fn add_all(&self, other: &Status) {
        for (sum, counter) in self.counters.iter().zip(other.counters.iter()) {
            sum.fetch_add(counter.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Adds every counter to another one's and begins anew.
    pub fn move_into(&self, other: &Status) {
        for (sum, counter) in other.counters.iter().zip(self.counters.iter()) {
            sum.fetch_add(counter.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Name and value of the counters that a connection has for itself.
    pub fn of_session(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        NAMES.iter().zip(self.counters.iter()).filter(|(name, _)| StatusCounter::is_of_session(name)).map(|(name, counter)| (*name, counter.load(Ordering::Relaxed)))
    }

    /// Name and value of every counter; those that a connection has for itself are taken from `session`.
    pub fn all<'s>(&'s self, session: &'s Status) -> impl Iterator<Item = (&'static str, u64)> + 's {
        NAMES.iter().enumerate().map(move |(i, &name)| {
            let of = if StatusCounter::is_of_session(name) { session } else { self };
            (name, of.counters[i].load(Ordering::Relaxed))
        })
    }
}

/// What MySQL counts of things that there are none of here: statements that are refused before they run, functions that are not there. Always 0.
pub(crate) const NEVER: &[&str] = &[
    "Com_alter_instance", "Com_alter_resource_group", "Com_alter_server",
    "Com_alter_tablespace", "Com_assign_to_keycache", "Com_clone",
    "Com_create_resource_group", "Com_create_server", "Com_create_spatial_reference_system",
    "Com_create_udf", "Com_drop_resource_group", "Com_drop_server", "Com_drop_spatial_reference_system",
    "Com_group_replication_start", "Com_group_replication_stop", "Com_help",
    "Com_import", "Com_install_component", "Com_preload_keys", "Com_restart", "Com_set_resource_group",
    "Com_show_function_code", "Com_show_procedure_code", "Com_uninstall_component",
    "Connection_errors_internal", "Connection_errors_peer_address", "Connection_errors_select", "Connection_errors_tcpwrap", "Delayed_errors", "Delayed_insert_threads", "Delayed_writes", "Handler_discover", "Handler_mrr_init",
    "Innodb_truncated_status_writes", "Key_blocks_not_flushed", "Key_blocks_unused", "Key_blocks_used", "Key_read_requests", "Key_reads",
    "Key_write_requests", "Key_writes", "Locked_connects", "Max_execution_time_set_failed", "Not_flushed_delayed_rows", "Open_streams", "Performance_schema_accounts_lost",
    "Performance_schema_cond_classes_lost", "Performance_schema_cond_instances_lost", "Performance_schema_file_classes_lost",
    "Performance_schema_file_handles_lost", "Performance_schema_file_instances_lost", "Performance_schema_hosts_lost",
    "Performance_schema_index_stat_lost", "Performance_schema_locker_lost", "Performance_schema_memory_classes_lost",
    "Performance_schema_metadata_lock_lost", "Performance_schema_mutex_classes_lost", "Performance_schema_mutex_instances_lost",
    "Performance_schema_nested_statement_lost", "Performance_schema_prepared_statements_lost", "Performance_schema_program_lost",
    "Performance_schema_rwlock_classes_lost", "Performance_schema_rwlock_instances_lost", "Performance_schema_session_connect_attrs_lost",
    "Performance_schema_socket_classes_lost", "Performance_schema_socket_instances_lost", "Performance_schema_stage_classes_lost",
    "Performance_schema_statement_classes_lost", "Performance_schema_table_handles_lost", "Performance_schema_table_instances_lost",
    "Performance_schema_table_lock_stat_lost", "Performance_schema_thread_classes_lost", "Performance_schema_thread_instances_lost",
    "Performance_schema_users_lost", "Slave_open_temp_tables", "Slow_launch_threads", "Ssl_accept_renegotiates", "Ssl_callback_cache_hits", "Ssl_connect_renegotiates",
    "Select_range_check", "Tc_log_max_pages_used", "Tc_log_page_size", "Tc_log_page_waits",
    "Acl_cache_items_count", "Binlog_stmt_cache_disk_use", "Binlog_stmt_cache_use", "Com_stmt_reprepare", "Handler_external_lock", "Ongoing_anonymous_transaction_count",
    "Open_files", "Opened_files", "Table_open_cache_overflows",
    // The server asks clients for no certificate, is no client of its own, and counts no sessions that are resumed.
    "Ssl_client_connects", "Ssl_ctx_verify_depth", "Ssl_ctx_verify_mode", "Ssl_default_timeout", "Ssl_finished_connects", "Ssl_session_cache_hits", "Ssl_session_cache_misses",
    "Ssl_session_cache_overflows", "Ssl_session_cache_timeouts", "Ssl_sessions_reused", "Ssl_used_session_cache_entries", "Ssl_verify_depth", "Ssl_verify_mode",
];
