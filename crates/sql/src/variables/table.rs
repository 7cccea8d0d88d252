//! The table of system variables. One line each: what it is called, who has a value of it, what it may be, what it starts as,
//! whether SET may change it, and whether anything here listens to it.

use super::{Definition, Effect::*, Kind::*, Scope::*};

const U32: u64 = u32::MAX as u64;
const U64: u64 = u64::MAX;
const YEAR: u64 = 31_536_000;
const TERNARY: &[&str] = &["OFF", "ON"];
const BLOCK_ENCRYPTION: &[&str] = &[
    "aes-128-ecb", "aes-192-ecb", "aes-256-ecb", "aes-128-cbc", "aes-192-cbc", "aes-256-cbc", "aes-128-cfb1", "aes-192-cfb1", "aes-256-cfb1",
    "aes-128-cfb8", "aes-192-cfb8", "aes-256-cfb8", "aes-128-cfb128", "aes-192-cfb128", "aes-256-cfb128", "aes-128-ofb", "aes-192-ofb", "aes-256-ofb",
];
const ISOLATION: &[&str] = &["READ-UNCOMMITTED", "READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE"];

macro_rules! variables {
    ($($name:literal $scope:ident $kind:expr, $default:literal, $dynamic:literal, $effect:expr;)*) => {
        pub(super) static DEFINITIONS: &[Definition] = &[
            $(Definition { name: $name, scope: $scope, kind: $kind, default: $default, dynamic: $dynamic, effect: $effect },)*
        ];
    };
}

// `Real`: read by this server. `Fact`: says something true that clients ask, changing it is refused or harmless. `Ignored`: accepted
// because scripts and configuration files set it; nothing here has a use for it, SET warns and SHOW VARIABLES leaves it out.
// "$name" defaults are filled in at start (host name, cores, memory, directory).
variables! {
    "activate_all_roles_on_login" Global Bool, "OFF", true, Real;
    "auto_increment_increment" Both UInt(1, 65535), "1", true, Real;
    "auto_increment_offset" Both UInt(1, 65535), "1", true, Real;
    "autocommit" Both Bool, "ON", true, Real;
    "automatic_sp_privileges" Global Bool, "ON", true, Real;
    "avoid_temporal_upgrade" Global Bool, "OFF", true, Ignored;
    "back_log" Global UInt(1, 65535), "512", false, Real;
    "basedir" Global Text, "", false, Fact;
    "big_tables" Both Bool, "OFF", true, Ignored;
    "bind_address" Global Text, "127.0.0.1", false, Real;
    "binlog_cache_size" Global UInt(4096, U64), "32768", true, Ignored;
    "binlog_checksum" Global Enum(&["NONE", "CRC32"]), "CRC32", true, Real;
    "binlog_error_action" Global Enum(&["IGNORE_ERROR", "ABORT_SERVER"]), "ABORT_SERVER", true, Ignored;
    "binlog_expire_logs_seconds" Global UInt(0, U32), "2592000", true, Real;
    "binlog_format" Both Enum(&["ROW"]), "ROW", true, Fact;
    "binlog_group_commit_sync_delay" Global UInt(0, 1_000_000), "0", true, Ignored;
    "binlog_group_commit_sync_no_delay_count" Global UInt(0, 100_000), "0", true, Ignored;
    "binlog_order_commits" Global Bool, "ON", true, Ignored;
    "binlog_row_image" Both Enum(&["MINIMAL", "NOBLOB", "FULL"]), "FULL", true, Real;
    "binlog_row_metadata" Global Enum(&["MINIMAL", "FULL"]), "MINIMAL", true, Real;
    "binlog_rows_query_log_events" Both Bool, "OFF", true, Real;
    "binlog_transaction_dependency_tracking" Global Enum(&["COMMIT_ORDER", "WRITESET", "WRITESET_SESSION"]), "COMMIT_ORDER", true, Ignored;
    "block_encryption_mode" Both Enum(BLOCK_ENCRYPTION), "aes-128-ecb", true, Real;
    "bulk_insert_buffer_size" Both UInt(0, U64), "8388608", true, Ignored;
    "character_set_client" Both Charset, "utf8mb4", true, Real;
    "character_set_connection" Both Charset, "utf8mb4", true, Real;
    "character_set_database" Both Charset, "utf8mb4", true, Real;
    "character_set_filesystem" Both Charset, "binary", true, Ignored;
    "character_set_results" Both NullableCharset, "utf8mb4", true, Real;
    "character_set_server" Both Charset, "utf8mb4", true, Real;
    "character_set_system" Global Text, "utf8mb3", false, Fact;
    "character_sets_dir" Global Text, "", false, Fact;
    "check_constraint_checks" Both Bool, "ON", true, Ignored;
    "check_proxy_users" Global Bool, "OFF", true, Real;
    "collation_connection" Both Collation, "utf8mb4_0900_ai_ci", true, Real;
    "collation_database" Both Collation, "utf8mb4_0900_ai_ci", true, Real;
    "collation_server" Both Collation, "utf8mb4_0900_ai_ci", true, Real;
    "completion_type" Both Enum(&["NO_CHAIN", "CHAIN", "RELEASE"]), "NO_CHAIN", true, Real;
    "concurrent_insert" Global Text, "AUTO", true, Ignored;
    "connect_timeout" Global UInt(2, YEAR), "10", true, Real;
    "core_file" Global Bool, "OFF", false, Ignored;
    "cte_max_recursion_depth" Both UInt(0, U32), "1000", true, Real;
    "datadir" Global Text, "", false, Real;
    "default_authentication_plugin" Global Enum(&["mysql_native_password", "caching_sha2_password"]), "caching_sha2_password", false, Real;
    "default_collation_for_utf8mb4" Both Collation, "utf8mb4_0900_ai_ci", true, Real;
    "default_password_lifetime" Global UInt(0, 65535), "0", true, Ignored;
    "default_storage_engine" Both Engine, "InnoDB", true, Fact;
    "default_table_encryption" Both Bool, "OFF", true, Ignored;
    "default_tmp_storage_engine" Both Engine, "InnoDB", true, Fact;
    "default_week_format" Both UInt(0, 7), "0", true, Real;
    "delay_key_write" Global Text, "ON", true, Ignored;
    "disconnect_on_expired_password" Global Bool, "ON", false, Ignored;
    "div_precision_increment" Both UInt(0, 30), "4", true, Real;
    "end_markers_in_json" Both Bool, "OFF", true, Ignored;
    "enforce_gtid_consistency" Global Enum(&["OFF", "ON", "WARN"]), "OFF", true, Real;
    "eq_range_index_dive_limit" Both UInt(0, U32), "200", true, Ignored;
    "error_count" SessionOnly UInt(0, U64), "0", false, Real;
    "event_scheduler" Global Enum(&["OFF", "ON", "DISABLED"]), "ON", true, Real;
    "expire_logs_days" Global UInt(0, 99), "0", true, Ignored;
    "explicit_defaults_for_timestamp" Both Bool, "ON", true, Real;
    "external_user" SessionOnly NullableText, "", false, Real;
    "flush" Global Bool, "OFF", true, Ignored;
    "flush_time" Global UInt(0, YEAR), "0", true, Ignored;
    "force_parallel_execute" Both Bool, "ON", true, Real;
    "foreign_key_checks" Both Bool, "ON", true, Real;
    "ft_boolean_syntax" Global Text, "+ -><()~*:\"\"&|", true, Fact;
    "ft_max_word_len" Global UInt(10, 84), "84", false, Fact;
    "ft_min_word_len" Global UInt(1, 84), "4", false, Fact;
    "ft_query_expansion_limit" Global UInt(0, 1000), "20", false, Fact;
    "ft_stopword_file" Global Text, "(built-in)", false, Fact;
    "general_log" Global Bool, "OFF", true, Ignored;
    "general_log_file" Global Text, "", true, Ignored;
    "group_concat_max_len" Both UInt(4, U64), "1024", true, Real;
    "gtid_executed" Global Text, "", false, Fact;
    "gtid_mode" Global Enum(&["OFF", "OFF_PERMISSIVE", "ON_PERMISSIVE", "ON"]), "OFF", true, Real;
    "gtid_next" SessionOnly Text, "AUTOMATIC", true, Real;
    "gtid_owned" Both Text, "", false, Fact;
    "gtid_purged" Global Text, "", true, Real;
    "have_compress" Global Text, "YES", false, Fact;
    "have_dynamic_loading" Global Text, "NO", false, Fact;
    "have_geometry" Global Text, "YES", false, Fact;
    "have_openssl" Global Text, "YES", false, Fact;
    "have_profiling" Global Text, "NO", false, Fact;
    "have_query_cache" Global Text, "NO", false, Fact;
    "have_rtree_keys" Global Text, "NO", false, Fact;
    "have_ssl" Global Text, "YES", false, Fact;
    "have_statement_timeout" Global Text, "YES", false, Fact;
    "have_symlink" Global Text, "DISABLED", false, Fact;
    "highkey_column_cache_size" Global UInt(0, i64::MAX as u64), "$memory_eighth", false, Real;
    "highkey_executor" Both Enum(&["AUTO", "FAST", "DATAFUSION"]), "AUTO", true, Real;
    "highkey_session_delay_limit" Global UInt(0, 1_000_000), "5000", true, Real;
    "highkey_statement_patterns" Both Enum(&["OFF", "AUTO", "ALWAYS"]), "AUTO", true, Real;
    "highkey_temp_space_limit" Global UInt(0, i64::MAX as u64), "107374182400", true, Real;
    "histogram_generation_max_mem_size" Both UInt(1_000_000, U64), "20000000", true, Real;
    "host_cache_size" Global UInt(0, 65536), "0", true, Ignored;
    "hostname" Global Text, "$hostname", false, Fact;
    "identity" SessionOnly UInt(0, U64), "0", true, Real;
    "immediate_server_version" SessionOnly UInt(0, 999_999), "999999", true, Ignored;
    "information_schema_stats_expiry" Both UInt(0, YEAR), "0", true, Ignored;
    "init_connect" Global Text, "", true, Real;
    "init_file" Global Text, "", false, Ignored;
    "innodb_adaptive_flushing" Global Bool, "ON", true, Ignored;
    "innodb_adaptive_flushing_lwm" Global UInt(0, 70), "10", true, Ignored;
    "innodb_adaptive_hash_index" Global Bool, "OFF", true, Ignored;
    "innodb_adaptive_hash_index_parts" Global UInt(1, 512), "8", false, Ignored;
    "innodb_autoextend_increment" Global UInt(1, 1000), "64", true, Ignored;
    "innodb_autoinc_lock_mode" Global UInt(0, 2), "2", false, Real;
    "innodb_buffer_pool_chunk_size" Global UInt(1_048_576, U64), "134217728", false, Ignored;
    "innodb_buffer_pool_dump_at_shutdown" Global Bool, "OFF", true, Ignored;
    "innodb_buffer_pool_dump_pct" Global UInt(1, 100), "25", true, Ignored;
    "innodb_buffer_pool_instances" Global UInt(1, 64), "1", false, Ignored;
    "innodb_buffer_pool_load_at_startup" Global Bool, "OFF", false, Ignored;
    "innodb_buffer_pool_size" Global UInt(5_242_880, i64::MAX as u64), "$memory_quarter", false, Real;
    "innodb_change_buffer_max_size" Global UInt(0, 50), "25", true, Ignored;
    "innodb_change_buffering" Global Enum(&["none", "inserts", "deletes", "changes", "purges", "all"]), "none", true, Ignored;
    "innodb_checksum_algorithm" Global Enum(&["crc32", "strict_crc32", "innodb", "strict_innodb", "none", "strict_none"]), "crc32", true, Ignored;
    "innodb_commit_concurrency" Global UInt(0, 1000), "0", true, Ignored;
    "innodb_concurrency_tickets" Global UInt(1, U32), "5000", true, Ignored;
    "innodb_data_file_path" Global Text, "", false, Ignored;
    "innodb_data_home_dir" Global Text, "", false, Ignored;
    "innodb_ddl_buffer_size" Both UInt(65_536, U32), "268435456", true, Real;
    "innodb_ddl_threads" Both UInt(1, 64), "4", true, Real;
    "innodb_deadlock_detect" Global Bool, "ON", true, Real;
    "innodb_dedicated_server" Global Bool, "OFF", false, Ignored;
    "innodb_default_row_format" Global Enum(&["redundant", "compact", "dynamic"]), "dynamic", true, Ignored;
    "innodb_doublewrite" Global Bool, "ON", false, Real;
    "innodb_doublewrite_files" Global UInt(2, 256), "2", false, Ignored;
    "innodb_doublewrite_pages" Global UInt(0, 512), "64", false, Ignored;
    "innodb_fast_shutdown" Global UInt(0, 2), "1", true, Ignored;
    "innodb_file_per_table" Global Bool, "OFF", true, Ignored;
    "innodb_fill_factor" Global UInt(10, 100), "100", true, Real;
    "innodb_flush_log_at_timeout" Global UInt(1, 2700), "1", true, Ignored;
    "innodb_flush_log_at_trx_commit" Global UInt(0, 2), "1", true, Real;
    "innodb_flush_method" Global Text, "O_DIRECT", false, Ignored;
    "innodb_flush_neighbors" Global UInt(0, 2), "0", true, Ignored;
    "innodb_flush_sync" Global Bool, "ON", true, Ignored;
    "innodb_flushing_avg_loops" Global UInt(1, 1000), "30", true, Ignored;
    "innodb_force_recovery" Global UInt(0, 6), "0", false, Ignored;
    "innodb_ft_cache_size" Global UInt(1_600_000, 80_000_000), "8000000", false, Ignored;
    "innodb_ft_enable_diag_print" Global Bool, "OFF", true, Ignored;
    "innodb_ft_enable_stopword" Both Bool, "ON", true, Real;
    "innodb_ft_max_token_size" Global UInt(10, 84), "84", false, Real;
    "innodb_ft_min_token_size" Global UInt(0, 16), "3", false, Real;
    "innodb_ft_num_word_optimize" Global UInt(1000, 10_000), "2000", true, Ignored;
    "innodb_ft_result_cache_limit" Global UInt(1_000_000, U32), "2000000000", true, Ignored;
    "innodb_ft_server_stopword_table" Global NullableText, "$null", true, Real;
    "innodb_ft_sort_pll_degree" Global UInt(1, 16), "2", false, Ignored;
    "innodb_ft_total_cache_size" Global UInt(32_000_000, 1_600_000_000), "640000000", false, Ignored;
    "innodb_ft_user_stopword_table" Both NullableText, "$null", true, Real;
    "innodb_io_capacity" Global UInt(100, U64), "200", true, Real;
    "innodb_io_capacity_max" Global UInt(100, U64), "2000", true, Ignored;
    "innodb_lock_wait_timeout" Both UInt(1, 1_073_741_824), "50", true, Real;
    "innodb_log_buffer_size" Global UInt(262_144, U32), "16777216", true, Real;
    "innodb_log_checksums" Global Bool, "ON", true, Ignored;
    "innodb_log_compressed_pages" Global Bool, "ON", true, Ignored;
    "innodb_log_file_size" Global UInt(4_194_304, U64), "50331648", false, Ignored;
    "innodb_log_files_in_group" Global UInt(2, 100), "2", false, Ignored;
    "innodb_log_group_home_dir" Global Text, "./", false, Ignored;
    "innodb_log_write_ahead_size" Global UInt(512, 16384), "8192", true, Ignored;
    "innodb_lru_scan_depth" Global UInt(100, U64), "1024", true, Ignored;
    "innodb_max_dirty_pages_pct" Global Double(0.0, 99.99), "90", true, Ignored;
    "innodb_max_dirty_pages_pct_lwm" Global Double(0.0, 99.99), "10", true, Ignored;
    "innodb_max_purge_lag" Global UInt(0, U64), "0", true, Ignored;
    "innodb_max_undo_log_size" Global UInt(10_485_760, U64), "1073741824", true, Ignored;
    "innodb_monitor_disable" Global Text, "", true, Ignored;
    "innodb_monitor_enable" Global Text, "", true, Ignored;
    "innodb_numa_interleave" Global Bool, "OFF", false, Ignored;
    "innodb_old_blocks_pct" Global UInt(5, 95), "37", true, Ignored;
    "innodb_old_blocks_time" Global UInt(0, U32), "1000", true, Ignored;
    "innodb_online_alter_log_max_size" Global UInt(65536, U64), "134217728", true, Real;
    "innodb_open_files" Global UInt(0, i64::MAX as u64), "4000", false, Ignored;
    "innodb_optimize_fulltext_only" Global Bool, "OFF", true, Ignored;
    "innodb_page_cleaners" Global UInt(1, 64), "1", false, Ignored;
    "innodb_page_size" Global UInt(4096, 65536), "16384", false, Fact;
    "innodb_parallel_read_threads" Both UInt(1, 256), "4", true, Ignored;
    "innodb_print_all_deadlocks" Global Bool, "OFF", true, Real;
    "innodb_purge_batch_size" Global UInt(1, 5000), "300", true, Ignored;
    "innodb_purge_threads" Global UInt(1, 32), "1", false, Ignored;
    "innodb_random_read_ahead" Global Bool, "OFF", true, Ignored;
    "innodb_read_ahead_threshold" Global UInt(0, 64), "56", true, Ignored;
    "innodb_read_io_threads" Global UInt(1, 64), "4", false, Ignored;
    "innodb_read_only" Global Bool, "OFF", false, Fact;
    "innodb_redo_log_capacity" Global UInt(8_388_608, 137_438_953_472), "1073741824", true, Real;
    "innodb_rollback_on_timeout" Global Bool, "OFF", true, Real;
    "innodb_rollback_segments" Global UInt(1, 128), "128", true, Ignored;
    "innodb_sort_buffer_size" Global UInt(65536, 67_108_864), "1048576", false, Ignored;
    "innodb_spin_wait_delay" Global UInt(0, 1000), "6", true, Real;
    "innodb_spin_wait_pause_multiplier" Global UInt(1, 100), "50", true, Ignored;
    "innodb_stats_auto_recalc" Global Bool, "ON", true, Ignored;
    "innodb_stats_method" Global Text, "nulls_equal", true, Ignored;
    "innodb_stats_on_metadata" Global Bool, "OFF", true, Ignored;
    "innodb_stats_persistent" Global Bool, "ON", true, Ignored;
    "innodb_stats_persistent_sample_pages" Global UInt(1, U64), "20", true, Ignored;
    "innodb_stats_transient_sample_pages" Global UInt(1, U64), "8", true, Ignored;
    "innodb_status_file" Global Bool, "OFF", false, Ignored;
    "innodb_status_output" Global Bool, "OFF", true, Ignored;
    "innodb_status_output_locks" Global Bool, "OFF", true, Ignored;
    "innodb_strict_mode" Both Bool, "ON", true, Ignored;
    "innodb_sync_array_size" Global UInt(1, 1024), "1", false, Ignored;
    "innodb_sync_spin_loops" Global UInt(0, U32), "30", true, Ignored;
    "innodb_table_locks" Both Bool, "ON", true, Ignored;
    "innodb_temp_data_file_path" Global Text, "", false, Ignored;
    "innodb_thread_concurrency" Global UInt(0, 1000), "0", true, Real;
    "innodb_thread_sleep_delay" Global UInt(0, 1_000_000), "10000", true, Ignored;
    "innodb_undo_directory" Global Text, "", false, Ignored;
    "innodb_undo_log_truncate" Global Bool, "ON", true, Ignored;
    "innodb_undo_tablespaces" Global UInt(2, 127), "2", true, Ignored;
    "innodb_use_native_aio" Global Bool, "OFF", false, Ignored;
    "innodb_version" Global Text, "$version", false, Fact;
    "innodb_write_io_threads" Global UInt(1, 64), "4", false, Ignored;
    "insert_id" SessionOnly UInt(0, U64), "0", true, Real;
    "interactive_timeout" Both UInt(1, YEAR), "28800", true, Real;
    "internal_tmp_disk_storage_engine" Global Text, "InnoDB", true, Ignored;
    "internal_tmp_mem_storage_engine" Both Text, "TempTable", true, Ignored;
    "join_buffer_size" Both UInt(128, U64), "262144", true, Ignored;
    "keep_files_on_create" Both Bool, "OFF", true, Ignored;
    "key_buffer_size" Global UInt(0, U64), "8388608", true, Ignored;
    "large_files_support" Global Bool, "ON", false, Fact;
    "large_pages" Global Bool, "OFF", false, Fact;
    "last_insert_id" SessionOnly UInt(0, U64), "0", true, Real;
    "lc_messages" Both Text, "en_US", true, Ignored;
    "lc_messages_dir" Global Text, "", false, Ignored;
    "lc_time_names" Both Locale, "en_US", true, Ignored;
    "license" Global Text, "Apache-2.0", false, Fact;
    "local_infile" Global Bool, "OFF", true, Real;
    "lock_wait_timeout" Both UInt(1, YEAR), "31536000", true, Real;
    "locked_in_memory" Global Bool, "OFF", false, Fact;
    "log_bin" Global Bool, "OFF", false, Real;
    "log_bin_basename" Global NullableText, "$null", false, Fact;
    "log_bin_index" Global NullableText, "$null", false, Fact;
    "log_bin_trust_function_creators" Global Bool, "OFF", true, Real;
    "log_error" Global Text, "stderr", false, Fact;
    "log_error_verbosity" Global UInt(1, 3), "2", true, Ignored;
    "log_output" Global Text, "FILE", true, Ignored;
    "log_queries_not_using_indexes" Global Bool, "OFF", true, Ignored;
    "log_slave_updates" Global Bool, "ON", false, Real;
    "log_slow_admin_statements" Global Bool, "OFF", true, Ignored;
    "log_timestamps" Global Enum(&["UTC", "SYSTEM"]), "UTC", true, Ignored;
    "long_query_time" Both Double(0.0, 31_536_000.0), "10.000000", true, Real;
    "low_priority_updates" Both Bool, "OFF", true, Ignored;
    "lower_case_file_system" Global Bool, "OFF", false, Fact;
    "lower_case_table_names" Global UInt(0, 0), "0", false, Fact;
    "mandatory_roles" Global Text, "", true, Real;
    "max_allowed_packet" Both UInt(1024, 1_073_741_824), "67108864", true, Real;
    "max_binlog_cache_size" Global UInt(4096, U64), "18446744073709547520", true, Real;
    "max_binlog_size" Global UInt(4096, 1_073_741_824), "1073741824", true, Real;
    "max_connect_errors" Global UInt(1, U64), "100", true, Ignored;
    "max_connections" Global UInt(1, 100_000), "151", true, Real;
    "max_delayed_threads" Both UInt(0, 16384), "20", true, Ignored;
    "max_digest_length" Global UInt(0, 1_048_576), "1024", false, Fact;
    "max_error_count" Both UInt(0, 65535), "1024", true, Real;
    "max_execution_time" Both UInt(0, U64), "0", true, Real;
    "max_heap_table_size" Both UInt(16384, U64), "16777216", true, Ignored;
    "max_join_size" Both UInt(1, U64), "18446744073709551615", true, Ignored;
    "max_length_for_sort_data" Both UInt(4, 8_388_608), "4096", true, Ignored;
    "max_points_in_geometry" Both UInt(3, 1_048_576), "65536", true, Ignored;
    "max_prepared_stmt_count" Global UInt(0, 4_194_304), "16382", true, Real;
    "max_seeks_for_key" Both UInt(1, U64), "18446744073709551615", true, Ignored;
    "max_sort_length" Both UInt(4, 8_388_608), "1024", true, Ignored;
    "max_sp_recursion_depth" Both UInt(0, 255), "0", true, Real;
    "max_user_connections" Both UInt(0, U32), "0", true, Ignored;
    "max_write_lock_count" Global UInt(1, U64), "18446744073709551615", true, Ignored;
    "min_examined_row_limit" Both UInt(0, U64), "0", true, Ignored;
    "myisam_sort_buffer_size" Both UInt(4096, U64), "8388608", true, Ignored;
    "mysql_native_password_proxy_users" Global Bool, "OFF", true, Real;
    "net_buffer_length" Both UInt(1024, 1_048_576), "16384", true, Real;
    "net_read_timeout" Both UInt(1, YEAR), "30", true, Real;
    "net_retry_count" Both UInt(1, U64), "10", true, Ignored;
    "net_write_timeout" Both UInt(1, YEAR), "60", true, Real;
    "new" Both Bool, "OFF", true, Ignored;
    "ngram_token_size" Global UInt(1, 10), "2", false, Real;
    "offline_mode" Global Bool, "OFF", true, Real;
    "old_alter_table" Both Bool, "OFF", true, Ignored;
    "open_files_limit" Global UInt(0, U32), "5000", false, Ignored;
    "optimizer_prune_level" Both UInt(0, 1), "1", true, Ignored;
    "optimizer_search_depth" Both UInt(0, 62), "62", true, Ignored;
    "optimizer_switch" Both Text, "", true, Ignored;
    "optimizer_trace" Both Text, "enabled=off,one_line=off", true, Ignored;
    "original_commit_timestamp" SessionOnly UInt(0, 1 << 55), "36028797018963968", true, Real;
    "original_server_version" SessionOnly UInt(0, 999_999), "999999", true, Ignored;
    "parallel_cost_threshold" Both UInt(0, U64), "1000", true, Real;
    "parallel_default_dop" Both UInt(0, 1024), "$cores", true, Real;
    "parallel_max_threads" Global UInt(0, 65535), "64", true, Real;
    "parallel_memory_limit" Global UInt(0, U64), "1073741824", true, Real;
    "parallel_queue_timeout" Both UInt(0, U32), "0", true, Real;
    "performance_schema" Global Bool, "ON", false, Fact;
    "performance_schema_digests_size" Global UInt(0, 1_048_576), "10000", false, Real;
    "performance_schema_events_statements_history_size" Global UInt(0, 1_024), "10", false, Real;
    "performance_schema_max_digest_length" Global UInt(0, 1_048_576), "1024", false, Fact;
    "performance_schema_max_digest_sample_age" Global UInt(0, 1_048_576), "60", false, Fact;
    "performance_schema_max_sql_text_length" Global UInt(0, 1_048_576), "1024", false, Fact;
    "pid_file" Global Text, "", false, Real;
    "plugin_dir" Global Text, "", false, Fact;
    "port" Global UInt(0, 65535), "3306", false, Real;
    "preload_buffer_size" Both UInt(1024, 1_073_741_824), "32768", true, Ignored;
    "print_identified_with_as_hex" Both Bool, "OFF", true, Ignored;
    "profiling" Both Bool, "OFF", true, Ignored;
    "progress_report_time" Both UInt(0, U32), "5", true, Real;
    "protocol_version" Global UInt(10, 10), "10", false, Fact;
    "proxy_user" SessionOnly NullableText, "", false, Real;
    "pseudo_slave_mode" SessionOnly Bool, "OFF", true, Real;
    "pseudo_thread_id" SessionOnly UInt(0, U64), "0", true, Real;
    "query_alloc_block_size" Both UInt(1024, U32), "8192", true, Ignored;
    "query_cache_limit" Global UInt(0, U64), "1048576", true, Ignored;
    "query_cache_size" Global UInt(0, U64), "0", true, Fact;
    "query_cache_type" Both Enum(TERNARY), "OFF", true, Fact;
    "query_prealloc_size" Both UInt(8192, U64), "8192", true, Ignored;
    "rand_seed1" SessionOnly UInt(0, U64), "0", true, Ignored;
    "rand_seed2" SessionOnly UInt(0, U64), "0", true, Ignored;
    "range_optimizer_max_mem_size" Both UInt(0, U64), "8388608", true, Ignored;
    "read_buffer_size" Both UInt(8192, 2_147_479_552), "131072", true, Ignored;
    "read_only" Global Bool, "OFF", true, Real;
    "read_rnd_buffer_size" Both UInt(1, 2_147_483_647), "262144", true, Ignored;
    "replicate_do_db" Global Text, "", false, Real;
    "replicate_do_table" Global Text, "", false, Real;
    "replicate_ignore_db" Global Text, "", false, Real;
    "replicate_ignore_table" Global Text, "", false, Real;
    "replicate_rewrite_db" Global Text, "", false, Real;
    "replicate_wild_do_table" Global Text, "", false, Real;
    "replicate_wild_ignore_table" Global Text, "", false, Real;
    "require_secure_transport" Global Bool, "OFF", true, Real;
    "resultset_metadata" SessionOnly Enum(&["NONE", "FULL"]), "FULL", true, Ignored;
    "rpl_semi_sync_replica_enabled" Global Bool, "OFF", true, Real;
    "rpl_semi_sync_replica_trace_level" Global UInt(0, U32), "32", true, Ignored;
    "rpl_semi_sync_source_enabled" Global Bool, "OFF", true, Real;
    "rpl_semi_sync_source_timeout" Global UInt(0, U32), "10000", true, Real;
    "rpl_semi_sync_source_trace_level" Global UInt(0, U32), "32", true, Ignored;
    "rpl_semi_sync_source_wait_for_replica_count" Global UInt(1, 65535), "1", true, Real;
    "rpl_semi_sync_source_wait_no_replica" Global Bool, "ON", true, Real;
    "rpl_semi_sync_source_wait_point" Global Enum(&["AFTER_SYNC", "AFTER_COMMIT"]), "AFTER_SYNC", true, Real;
    "secure_file_priv" Global NullableText, "$null", false, Real;
    "server_id" Global UInt(0, U32), "1", true, Real;
    "server_uuid" Global Text, "$uuid", false, Fact;
    "session_track_gtids" Both Enum(&["OFF", "OWN_GTID", "ALL_GTIDS"]), "OFF", true, Ignored;
    "session_track_schema" Both Bool, "ON", true, Real;
    "session_track_state_change" Both Bool, "OFF", true, Ignored;
    "session_track_system_variables" Both NullableText, "time_zone,autocommit,character_set_client,character_set_results,character_set_connection", true, Ignored;
    "session_track_transaction_info" Both Enum(&["OFF", "STATE", "CHARACTERISTICS"]), "OFF", true, Ignored;
    "sha256_password_proxy_users" Global Bool, "OFF", true, Ignored;
    "show_create_table_verbosity" Both Bool, "OFF", true, Ignored;
    "show_gipk_in_create_table_and_information_schema" Both Bool, "ON", true, Real;
    "show_old_temporals" Both Bool, "OFF", true, Ignored;
    "skip_external_locking" Global Bool, "ON", false, Fact;
    "skip_name_resolve" Global Bool, "ON", false, Fact;
    "skip_networking" Global Bool, "OFF", false, Real;
    "skip_show_database" Global Bool, "OFF", false, Ignored;
    "skip_slave_start" Global Bool, "OFF", false, Real;
    "slave_exec_mode" Global Enum(&["STRICT", "IDEMPOTENT"]), "STRICT", true, Real;
    "slave_net_timeout" Global UInt(1, YEAR), "60", true, Real;
    "slave_parallel_type" Global Enum(&["DATABASE", "LOGICAL_CLOCK"]), "LOGICAL_CLOCK", true, Fact;
    "slave_parallel_workers" Global UInt(0, 1024), "4", true, Real;
    "slave_preserve_commit_order" Global Bool, "ON", true, Fact;
    "slave_skip_errors" Global Text, "OFF", false, Real;
    "slave_transaction_retries" Global UInt(0, U64), "10", true, Real;
    "slave_type_conversions" Global Set(&["ALL_LOSSY", "ALL_NON_LOSSY", "ALL_UNSIGNED", "ALL_SIGNED"]), "", true, Real;
    "slow_launch_time" Global UInt(0, YEAR), "2", true, Ignored;
    "slow_query_log" Global Bool, "OFF", true, Ignored;
    "slow_query_log_file" Global Text, "", true, Ignored;
    "socket" Global Text, "", false, Real;
    "sort_buffer_size" Both UInt(32768, U64), "262144", true, Ignored;
    "sql_auto_is_null" Both Bool, "OFF", true, Ignored;
    "sql_big_selects" Both Bool, "ON", true, Ignored;
    "sql_buffer_result" Both Bool, "OFF", true, Ignored;
    "sql_generate_invisible_primary_key" Both Bool, "OFF", true, Real;
    "sql_if_exists" Both Bool, "OFF", true, Ignored;
    "sql_log_bin" SessionOnly Bool, "ON", true, Real;
    "sql_log_off" Both Bool, "OFF", true, Ignored;
    "sql_mode" Both SqlMode, "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION", true, Real;
    "sql_notes" Both Bool, "ON", true, Real;
    "sql_quote_show_create" Both Bool, "ON", true, Real;
    "sql_require_primary_key" Both Bool, "OFF", true, Real;
    "sql_safe_updates" Both Bool, "OFF", true, Real;
    "sql_select_limit" Both UInt(0, U64), "18446744073709551615", true, Real;
    "sql_slave_skip_counter" Global UInt(0, U32), "0", true, Real;
    "sql_warnings" Both Bool, "OFF", true, Real;
    "ssl_ca" Global Text, "", false, Real;
    "ssl_capath" Global Text, "", false, Ignored;
    "ssl_cert" Global Text, "", false, Real;
    "ssl_cipher" Global Text, "", false, Ignored;
    "ssl_key" Global Text, "", false, Real;
    "stored_program_cache" Global UInt(16, 524_288), "256", true, Real;
    "super_read_only" Global Bool, "OFF", true, Real;
    "sync_binlog" Global UInt(0, U32), "1", true, Fact;
    "system_time_zone" Global Text, "$time_zone", false, Fact;
    "system_versioning_insert_history" Both Bool, "OFF", true, Ignored;
    "table_definition_cache" Global UInt(400, 524_288), "2000", true, Ignored;
    "table_open_cache" Global UInt(1, 524_288), "4000", true, Ignored;
    "table_open_cache_instances" Global UInt(1, 64), "16", false, Ignored;
    "temptable_max_ram" Global UInt(2_097_152, U64), "1073741824", true, Ignored;
    "thread_cache_size" Global UInt(0, 16384), "9", true, Ignored;
    "thread_handling" Global Text, "tasks", false, Fact;
    "thread_stack" Global UInt(131_072, U64), "1048576", false, Ignored;
    "time_zone" Both TimeZone, "SYSTEM", true, Real;
    "timestamp" SessionOnly Double(0.0, 2_147_483_647.999999), "0", true, Real;
    "tls_version" Global Text, "TLSv1.2,TLSv1.3", false, Fact;
    "tmp_table_size" Both UInt(1024, U64), "16777216", true, Ignored;
    "tmpdir" Global Text, "/tmp", false, Ignored;
    "transaction_alloc_block_size" Both UInt(1024, 131_072), "8192", true, Ignored;
    "transaction_isolation" Both Enum(ISOLATION), "REPEATABLE-READ", true, Real;
    "transaction_prealloc_size" Both UInt(1024, 131_072), "4096", true, Ignored;
    "transaction_read_only" Both Bool, "OFF", true, Real;
    "unique_checks" Both Bool, "ON", true, Ignored;
    "updatable_views_with_limit" Both Bool, "ON", true, Ignored;
    "version" Global Text, "$version", false, Fact;
    "version_comment" Global Text, "Highkey (Apache-2.0)", false, Fact;
    "version_compile_machine" Global Text, "$machine", false, Fact;
    "version_compile_os" Global Text, "$os", false, Fact;
    "version_compile_zlib" Global Text, "1.2.11", false, Fact;
    "wait_timeout" Both UInt(1, YEAR), "28800", true, Real;
    "warning_count" SessionOnly UInt(0, U64), "0", false, Real;
    "windowing_use_high_precision" Both Bool, "ON", true, Ignored;
}

/// What SET_VAR hints may set: as in MySQL 8.0.12, and how queries of ours run.
pub(super) const HINTABLE: &[&str] = &[
    "auto_increment_increment", "auto_increment_offset", "big_tables", "bulk_insert_buffer_size", "cte_max_recursion_depth", "default_tmp_storage_engine",
    "div_precision_increment", "end_markers_in_json", "eq_range_index_dive_limit", "force_parallel_execute", "foreign_key_checks", "group_concat_max_len",
    "highkey_executor", "insert_id", "internal_tmp_mem_storage_engine", "join_buffer_size", "lock_wait_timeout", "max_error_count", "max_execution_time",
    "max_heap_table_size", "max_join_size", "max_length_for_sort_data", "max_points_in_geometry", "max_seeks_for_key", "max_sort_length",
    "optimizer_prune_level", "optimizer_search_depth", "optimizer_switch", "parallel_cost_threshold", "parallel_default_dop", "parallel_queue_timeout",
    "range_optimizer_max_mem_size", "read_buffer_size", "read_rnd_buffer_size", "sort_buffer_size", "sql_auto_is_null", "sql_big_selects", "sql_buffer_result",
    "sql_mode", "sql_safe_updates", "sql_select_limit", "timestamp", "tmp_table_size", "unique_checks", "updatable_views_with_limit",
    "windowing_use_high_precision",
];

/// Older names that still arrive from clients.
pub(super) const ALIASES: &[(&str, &str)] = &[
    ("tx_isolation", "transaction_isolation"),
    ("tx_read_only", "transaction_read_only"),
    ("storage_engine", "default_storage_engine"),
    ("sql_low_priority_updates", "low_priority_updates"),
    ("log_slow_queries", "slow_query_log"),
    ("pseudo_replica_mode", "pseudo_slave_mode"),
    ("log_replica_updates", "log_slave_updates"),
    ("replica_exec_mode", "slave_exec_mode"),
    ("replica_net_timeout", "slave_net_timeout"),
    ("replica_parallel_type", "slave_parallel_type"),
    ("replica_parallel_workers", "slave_parallel_workers"),
    ("replica_preserve_commit_order", "slave_preserve_commit_order"),
    ("replica_skip_errors", "slave_skip_errors"),
    ("replica_type_conversions", "slave_type_conversions"),
    ("sql_replica_skip_counter", "sql_slave_skip_counter"),
    ("replica_transaction_retries", "slave_transaction_retries"),
    ("rpl_semi_sync_master_enabled", "rpl_semi_sync_source_enabled"),
    ("rpl_semi_sync_master_timeout", "rpl_semi_sync_source_timeout"),
    ("rpl_semi_sync_master_trace_level", "rpl_semi_sync_source_trace_level"),
    ("rpl_semi_sync_master_wait_for_slave_count", "rpl_semi_sync_source_wait_for_replica_count"),
    ("rpl_semi_sync_master_wait_no_slave", "rpl_semi_sync_source_wait_no_replica"),
    ("rpl_semi_sync_master_wait_point", "rpl_semi_sync_source_wait_point"),
    ("rpl_semi_sync_slave_enabled", "rpl_semi_sync_replica_enabled"),
    ("rpl_semi_sync_slave_trace_level", "rpl_semi_sync_replica_trace_level"),
    ("skip_replica_start", "skip_slave_start"),
];
