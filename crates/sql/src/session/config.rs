//! The session's variables that statements look at all the time, as typed fields. Recomputed whenever SET changed one.

use std::time::Duration;

use highkey_binlog::RowImage;
use highkey_binlog::transaction::flags2;
use highkey_table::{EventSource, Isolation};
use highkey_types::{Charset, Collation, SqlMode, TimeZone};

use crate::df::ParallelSettings;
use crate::parse::ParseOptions;
use crate::plan::PqHint;
use crate::prepared::StatementPatterns;
use crate::variables::{SqlModes, Values};

/// Typed mirror of the session's variables.
#[derive(Clone, Debug)]
pub struct Config {
    pub autocommit: bool,
    pub modes: SqlModes,
    /// The bits that conversions look at.
    pub sql_mode: SqlMode,
    pub strict: bool,
    pub parse: ParseOptions,
    pub time_zone: TimeZone,
    pub collation_connection: &'static Collation,
    /// `default_collation_for_utf8mb4`: what that character set alone means.
    pub utf8mb4: &'static Collation,
    /// `explicit_defaults_for_timestamp`.
    pub explicit_timestamps: bool,
    pub charset_client: Charset,
    /// `None`: results are sent in the columns' own character sets.
    pub charset_results: Option<Charset>,
    pub isolation: Isolation,
    pub read_only: bool,
    pub lock_wait_timeout: Duration,
    pub metadata_timeout: Duration,
    pub rollback_on_timeout: bool,
    pub max_error_count: usize,
    pub sql_notes: bool,
    pub auto_increment_increment: u64,
    pub auto_increment_offset: u64,
    /// Milliseconds, 0 for none.
    pub max_execution_time_ms: u64,
    pub div_precision_increment: u8,
    pub group_concat_max_len: u64,
    /// `None` is unlimited.
    pub select_limit: Option<u64>,
    pub completion_type: CompletionType,
    pub max_allowed_packet: u64,
    pub wait_timeout: Duration,
    pub interactive_timeout: Duration,
    pub net_write_timeout: Duration,
    pub cte_max_recursion_depth: u64,
    /// `SET timestamp`: microseconds, `None` is the clock.
    pub timestamp_micros: Option<i64>,
    pub long_query_time: Duration,
    pub executor: Executor,
    pub patterns: StatementPatterns,
    /// Without hints.
    pub parallel: ParallelSettings,
    /// Foreign keys are checked and their actions carried out.
    pub foreign_key_checks: bool,
    /// `innodb_ddl_threads`.
    pub ddl_threads: usize,
    /// `innodb_ddl_buffer_size`: bytes.
    pub ddl_memory: usize,
    /// `sql_log_bin`.
    pub sql_log_bin: bool,
    /// `binlog_rows_query_log_events`.
    pub rows_query: bool,
    /// What the binary log's events say of the session, without what changes from statement to statement.
    pub events: EventSource,
}

/// `highkey_executor`: what runs SELECT, and what finds the rows that UPDATE and DELETE change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Executor {
    /// Whichever is the faster one.
    Auto,
    /// The fast path for all that it can run, however slowly.
    Fast,
    /// DataFusion for all that it can run.
    DataFusion,
}

/// What COMMIT and ROLLBACK do after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionType {
    NoChain,
    Chain,
    Release,
}

impl Config {
    pub fn of(values: &Values) -> Config {
        let modes = SqlModes::parse(&values.text("sql_mode")).unwrap_or_default();
        let charset = |name: &str| Charset::by_name(&values.text(name)).unwrap_or(Charset::Utf8mb4);
        Config {
            autocommit: values.bool("autocommit"),
            modes,
            sql_mode: modes.conversions(),
            strict: modes.has(SqlModes::STRICT),
            parse: parse_options(modes),
            time_zone: TimeZone::parse(&values.text("time_zone")).unwrap_or_else(TimeZone::system),
            collation_connection: Collation::by_name(&values.text("collation_connection")).unwrap_or_else(Collation::utf8mb4),
            utf8mb4: Collation::by_name(&values.text("default_collation_for_utf8mb4")).unwrap_or_else(Collation::utf8mb4),
            explicit_timestamps: values.bool("explicit_defaults_for_timestamp"),
            charset_client: charset("character_set_client"),
            charset_results: (!values.is_null("character_set_results")).then(|| charset("character_set_results")),
            isolation: match values.text("transaction_isolation").as_str() {
                "READ-UNCOMMITTED" => Isolation::ReadUncommitted,
                "READ-COMMITTED" => Isolation::ReadCommitted,
                "SERIALIZABLE" => Isolation::Serializable,
                _ => Isolation::RepeatableRead,
            },
            read_only: values.bool("transaction_read_only"),
            lock_wait_timeout: Duration::from_secs(values.u64("innodb_lock_wait_timeout")),
            metadata_timeout: Duration::from_secs(values.u64("lock_wait_timeout")),
            rollback_on_timeout: values.bool("innodb_rollback_on_timeout"),
            max_error_count: values.u64("max_error_count") as usize,
            sql_notes: values.bool("sql_notes"),
            auto_increment_increment: values.u64("auto_increment_increment").max(1),
            auto_increment_offset: values.u64("auto_increment_offset").max(1),
            max_execution_time_ms: values.u64("max_execution_time"),
            div_precision_increment: values.u64("div_precision_increment") as u8,
            group_concat_max_len: values.u64("group_concat_max_len"),
            select_limit: Some(values.u64("sql_select_limit")).filter(|n| *n != u64::MAX),
            completion_type: match values.text("completion_type").as_str() {
                "CHAIN" => CompletionType::Chain,
                "RELEASE" => CompletionType::Release,
                _ => CompletionType::NoChain,
            },
            max_allowed_packet: values.u64("max_allowed_packet"),
            wait_timeout: Duration::from_secs(values.u64("wait_timeout")),
            interactive_timeout: Duration::from_secs(values.u64("interactive_timeout")),
            net_write_timeout: Duration::from_secs(values.u64("net_write_timeout")),
            cte_max_recursion_depth: values.u64("cte_max_recursion_depth"),
            timestamp_micros: Some(values.f64("timestamp")).filter(|t| *t > 0.0).map(|t| (t * 1e6) as i64),
            long_query_time: Duration::from_secs_f64(values.f64("long_query_time")),
            executor: match values.text("highkey_executor").as_str() {
                "FAST" => Executor::Fast,
                "DATAFUSION" => Executor::DataFusion,
                _ => Executor::Auto,
            },
            patterns: match values.text("highkey_statement_patterns").as_str() {
                "OFF" => StatementPatterns::Off,
                "ALWAYS" => StatementPatterns::Always,
                _ => StatementPatterns::Auto,
            },
            parallel: ParallelSettings {
                enabled: values.bool("force_parallel_execute"),
                default_degree: values.u64("parallel_default_dop") as usize,
                cost_threshold: values.u64("parallel_cost_threshold"),
                // Global only: read when a query starts.
                max_workers: 0,
                queue_timeout: Duration::from_millis(values.u64("parallel_queue_timeout")),
                hint: PqHint::Unset,
                ordered: false,
            },
            foreign_key_checks: values.bool("foreign_key_checks"),
            ddl_threads: values.u64("innodb_ddl_threads") as usize,
            ddl_memory: values.u64("innodb_ddl_buffer_size") as usize,
            sql_log_bin: values.bool("sql_log_bin"),
            rows_query: values.bool("binlog_rows_query_log_events"),
            events: event_source(values, modes),
        }
    }
}

/// How text is read under these modes.
pub fn parse_options(modes: SqlModes) -> ParseOptions {
    ParseOptions {
        ansi_quotes: modes.has(SqlModes::ANSI_QUOTES),
        pipes_as_concat: modes.has(SqlModes::PIPES_AS_CONCAT),
        no_backslash_escapes: modes.has(SqlModes::NO_BACKSLASH_ESCAPES),
        high_not_precedence: modes.has(1 << 29),
        ignore_space: modes.has(8),
        real_as_float: modes.has(1),
    }
}

fn event_source(values: &Values, modes: SqlModes) -> EventSource {
    let mut flags = 0;
    for (name, flag) in [("foreign_key_checks", flags2::NO_FOREIGN_KEY_CHECKS), ("unique_checks", flags2::RELAXED_UNIQUE_CHECKS)] {
        if !values.bool(name) {
            flags |= flag;
        }
    }
    let collation = |name: &str| Collation::by_name(&values.text(name)).map_or(0, |c| c.id);
    EventSource {
        sql_mode: modes.0,
        flags2: flags,
        // Texts in the binary log are UTF-8, whatever the client's character set was.
        charset: (UTF8MB4_GENERAL_CI, collation("collation_connection"), collation("collation_server")),
        time_zone: values.text("time_zone").as_str().into(),
        default_collation_for_utf8mb4: collation("default_collation_for_utf8mb4"),
        auto_increment: (values.u64("auto_increment_increment") as u16, values.u64("auto_increment_offset") as u16),
        row_image: match values.text("binlog_row_image").as_str() {
            "MINIMAL" => RowImage::Minimal,
            "NOBLOB" => RowImage::NoBlob,
            _ => RowImage::Full,
        },
        ..EventSource::default()
    }
}

/// A collation that MySQL of every version and MariaDB know by this number.
const UTF8MB4_GENERAL_CI: u16 = 45;
