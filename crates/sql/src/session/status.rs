//! Status counters of the SQL layer and the server: relaxed atomics, summed at SHOW STATUS.

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
    ConnectionErrorsMaxConnections => "Connection_errors_max_connections",
    MaxUsedConnections => "Max_used_connections",
    Questions => "Questions",
    Queries => "Queries",
    SlowQueries => "Slow_queries",
    SelectFastPath => "Highkey_select_fast_path",
    SelectDataFusion => "Highkey_select_datafusion",
    MaxExecutionTimeExceeded => "Max_execution_time_exceeded",
    PreparedStmtCount => "Prepared_stmt_count",
    InnodbRowsRead => "Innodb_rows_read",
    InnodbRowsInserted => "Innodb_rows_inserted",
    InnodbRowsUpdated => "Innodb_rows_updated",
    InnodbRowsDeleted => "Innodb_rows_deleted",
    ComAdminCommands => "Com_admin_commands",
    ComAlterTable => "Com_alter_table",
    ComAlterUser => "Com_alter_user",
    ComAnalyze => "Com_analyze",
    ComBegin => "Com_begin",
    ComChangeDb => "Com_change_db",
    ComChangeMaster => "Com_change_master",
    ComChangeReplFilter => "Com_change_repl_filter",
    ComCheck => "Com_check",
    ComCommit => "Com_commit",
    ComCreateDb => "Com_create_db",
    ComCreateIndex => "Com_create_index",
    ComCreateTable => "Com_create_table",
    ComCreateView => "Com_create_view",
    ComCreateUser => "Com_create_user",
    ComDeallocSql => "Com_dealloc_sql",
    ComDelete => "Com_delete",
    ComDeleteMulti => "Com_delete_multi",
    ComDo => "Com_do",
    ComDropDb => "Com_drop_db",
    ComDropIndex => "Com_drop_index",
    ComDropTable => "Com_drop_table",
    ComDropView => "Com_drop_view",
    ComDropUser => "Com_drop_user",
    ComExecuteSql => "Com_execute_sql",
    ComExplain => "Com_explain_other",
    ComFlush => "Com_flush",
    ComGrant => "Com_grant",
    ComInstallPlugin => "Com_install_plugin",
    ComUninstallPlugin => "Com_uninstall_plugin",
    ComInsert => "Com_insert",
    ComInsertSelect => "Com_insert_select",
    ComKill => "Com_kill",
    ComLoad => "Com_load",
    ComLockTables => "Com_lock_tables",
    ComOptimize => "Com_optimize",
    ComPrepareSql => "Com_prepare_sql",
    ComReleaseSavepoint => "Com_release_savepoint",
    ComRenameTable => "Com_rename_table",
    ComReplace => "Com_replace",
    ComReplaceSelect => "Com_replace_select",
    ComReset => "Com_reset",
    ComRollback => "Com_rollback",
    ComRollbackToSavepoint => "Com_rollback_to_savepoint",
    ComSavepoint => "Com_savepoint",
    ComSelect => "Com_select",
    ComSetOption => "Com_set_option",
    ComShow => "Com_show_fields",
    ComShutdown => "Com_shutdown",
    ComSlaveStart => "Com_slave_start",
    ComSlaveStop => "Com_slave_stop",
    ComStmtClose => "Com_stmt_close",
    ComStmtExecute => "Com_stmt_execute",
    ComStmtPrepare => "Com_stmt_prepare",
    ComTruncate => "Com_truncate",
    ComUnlockTables => "Com_unlock_tables",
    ComUpdate => "Com_update",
    ComUpdateMulti => "Com_update_multi",
    ComBinlog => "Com_binlog",
    ComXaCommit => "Com_xa_commit",
    ComXaEnd => "Com_xa_end",
    ComXaPrepare => "Com_xa_prepare",
    ComXaRecover => "Com_xa_recover",
    ComXaRollback => "Com_xa_rollback",
    ComXaStart => "Com_xa_start",
}

/// The counters of one instance.
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

    pub fn max(&self, counter: StatusCounter, n: u64) {
        self.counters[counter as usize].fetch_max(n, Ordering::Relaxed);
    }

    pub fn get(&self, counter: StatusCounter) -> u64 {
        self.counters[counter as usize].load(Ordering::Relaxed)
    }

    /// Name and value of every counter.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        NAMES.iter().copied().zip(self.counters.iter().map(|c| c.load(Ordering::Relaxed)))
    }
}
