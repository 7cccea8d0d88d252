-- The views of sys. Statements are apart by empty lines; every view is SQL SECURITY INVOKER and of mysql.sys@localhost.
-- Those named x$… have figures as they are: bytes, and picoseconds. The view of the same name without x$ shows them to people.

CREATE VIEW sys.version AS
SELECT '2.0.0' AS sys_version, VERSION() AS mysql_version;

CREATE VIEW sys.ps_check_lost_instrumentation AS
SELECT variable_name, variable_value
FROM performance_schema.global_status
WHERE variable_name LIKE 'perf%lost' AND variable_value > 0;

CREATE VIEW sys.x$statement_analysis AS
SELECT digest_text AS query, schema_name AS db, IF(sum_no_index_used > 0 OR sum_no_good_index_used > 0, '*', '') AS full_scan, count_star AS exec_count,
       sum_errors AS err_count, sum_warnings AS warn_count, sum_timer_wait AS total_latency, max_timer_wait AS max_latency, avg_timer_wait AS avg_latency,
       sum_lock_time AS lock_latency, sum_rows_sent AS rows_sent, ROUND(IFNULL(sum_rows_sent / NULLIF(count_star, 0), 0)) AS rows_sent_avg,
       sum_rows_examined AS rows_examined, ROUND(IFNULL(sum_rows_examined / NULLIF(count_star, 0), 0)) AS rows_examined_avg,
       sum_rows_affected AS rows_affected, ROUND(IFNULL(sum_rows_affected / NULLIF(count_star, 0), 0)) AS rows_affected_avg,
       sum_created_tmp_tables AS tmp_tables, sum_created_tmp_disk_tables AS tmp_disk_tables, sum_sort_rows AS rows_sorted,
       sum_sort_merge_passes AS sort_merge_passes, digest, first_seen, last_seen
FROM performance_schema.events_statements_summary_by_digest
ORDER BY sum_timer_wait DESC;

CREATE VIEW sys.statement_analysis AS
SELECT sys.format_statement(x.query) AS query, x.db, x.full_scan, x.exec_count, x.err_count, x.warn_count,
       sys.format_time(x.total_latency) AS total_latency, sys.format_time(x.max_latency) AS max_latency, sys.format_time(x.avg_latency) AS avg_latency,
       sys.format_time(x.lock_latency) AS lock_latency, x.rows_sent, x.rows_sent_avg, x.rows_examined, x.rows_examined_avg, x.rows_affected,
       x.rows_affected_avg, x.tmp_tables, x.tmp_disk_tables, x.rows_sorted, x.sort_merge_passes, x.digest, x.first_seen, x.last_seen
FROM sys.x$statement_analysis AS x
ORDER BY x.total_latency DESC;

CREATE VIEW sys.x$statements_with_errors_or_warnings AS
SELECT digest_text AS query, schema_name AS db, count_star AS exec_count, sum_errors AS errors,
       IFNULL(sum_errors / NULLIF(count_star, 0), 0) * 100 AS error_pct, sum_warnings AS warnings,
       IFNULL(sum_warnings / NULLIF(count_star, 0), 0) * 100 AS warning_pct, first_seen, last_seen, digest
FROM performance_schema.events_statements_summary_by_digest
WHERE sum_errors > 0 OR sum_warnings > 0
ORDER BY sum_errors DESC, sum_warnings DESC;

CREATE VIEW sys.statements_with_errors_or_warnings AS
SELECT sys.format_statement(x.query) AS query, x.db, x.exec_count, x.errors, x.error_pct, x.warnings, x.warning_pct, x.first_seen, x.last_seen, x.digest
FROM sys.x$statements_with_errors_or_warnings AS x
ORDER BY x.errors DESC, x.warnings DESC;

CREATE VIEW sys.x$statements_with_full_table_scans AS
SELECT digest_text AS query, schema_name AS db, count_star AS exec_count, sum_timer_wait AS total_latency, sum_no_index_used AS no_index_used_count,
       sum_no_good_index_used AS no_good_index_used_count, ROUND(IFNULL(sum_no_index_used / NULLIF(count_star, 0), 0) * 100) AS no_index_used_pct,
       sum_rows_sent AS rows_sent, sum_rows_examined AS rows_examined, ROUND(sum_rows_sent / count_star) AS rows_sent_avg,
       ROUND(sum_rows_examined / count_star) AS rows_examined_avg, first_seen, last_seen, digest
FROM performance_schema.events_statements_summary_by_digest
WHERE (sum_no_index_used > 0 OR sum_no_good_index_used > 0) AND digest_text NOT LIKE 'SHOW%'
ORDER BY no_index_used_pct DESC, sum_timer_wait DESC;

CREATE VIEW sys.statements_with_full_table_scans AS
SELECT sys.format_statement(x.query) AS query, x.db, x.exec_count, sys.format_time(x.total_latency) AS total_latency, x.no_index_used_count,
       x.no_good_index_used_count, x.no_index_used_pct, x.rows_sent, x.rows_examined, x.rows_sent_avg, x.rows_examined_avg, x.first_seen, x.last_seen,
       x.digest
FROM sys.x$statements_with_full_table_scans AS x
ORDER BY x.no_index_used_pct DESC, x.total_latency DESC;

CREATE VIEW sys.x$ps_digest_avg_latency_distribution AS
SELECT COUNT(*) AS cnt, ROUND(avg_timer_wait / 1000000) AS avg_us
FROM performance_schema.events_statements_summary_by_digest
GROUP BY avg_us;

CREATE VIEW sys.x$ps_digest_95th_percentile_by_avg_us AS
SELECT here.avg_us AS avg_us,
       IFNULL(SUM(below.cnt) / NULLIF((SELECT COUNT(*) FROM performance_schema.events_statements_summary_by_digest), 0), 0) AS percentile
FROM sys.x$ps_digest_avg_latency_distribution AS here
JOIN sys.x$ps_digest_avg_latency_distribution AS below ON below.avg_us <= here.avg_us
GROUP BY here.avg_us
HAVING percentile > 0.95
ORDER BY percentile
LIMIT 1;

CREATE VIEW sys.x$statements_with_runtimes_in_95th_percentile AS
SELECT d.digest_text AS query, d.schema_name AS db, IF(d.sum_no_index_used > 0 OR d.sum_no_good_index_used > 0, '*', '') AS full_scan,
       d.count_star AS exec_count, d.sum_errors AS err_count, d.sum_warnings AS warn_count, d.sum_timer_wait AS total_latency,
       d.max_timer_wait AS max_latency, d.avg_timer_wait AS avg_latency, d.sum_rows_sent AS rows_sent,
       ROUND(IFNULL(d.sum_rows_sent / NULLIF(d.count_star, 0), 0)) AS rows_sent_avg, d.sum_rows_examined AS rows_examined,
       ROUND(IFNULL(d.sum_rows_examined / NULLIF(d.count_star, 0), 0)) AS rows_examined_avg, d.first_seen AS first_seen, d.last_seen AS last_seen,
       d.digest AS digest
FROM performance_schema.events_statements_summary_by_digest AS d
JOIN sys.x$ps_digest_95th_percentile_by_avg_us AS slow ON ROUND(d.avg_timer_wait / 1000000) >= slow.avg_us
ORDER BY d.avg_timer_wait DESC;

CREATE VIEW sys.statements_with_runtimes_in_95th_percentile AS
SELECT sys.format_statement(x.query) AS query, x.db, x.full_scan, x.exec_count, x.err_count, x.warn_count,
       sys.format_time(x.total_latency) AS total_latency, sys.format_time(x.max_latency) AS max_latency, sys.format_time(x.avg_latency) AS avg_latency,
       x.rows_sent, x.rows_sent_avg, x.rows_examined, x.rows_examined_avg, x.first_seen, x.last_seen, x.digest
FROM sys.x$statements_with_runtimes_in_95th_percentile AS x
ORDER BY x.avg_latency DESC;

CREATE VIEW sys.x$statements_with_sorting AS
SELECT digest_text AS query, schema_name AS db, count_star AS exec_count, sum_timer_wait AS total_latency, sum_sort_merge_passes AS sort_merge_passes,
       ROUND(IFNULL(sum_sort_merge_passes / NULLIF(count_star, 0), 0)) AS avg_sort_merges, sum_sort_scan AS sorts_using_scans,
       sum_sort_range AS sort_using_range, sum_sort_rows AS rows_sorted, ROUND(IFNULL(sum_sort_rows / NULLIF(count_star, 0), 0)) AS avg_rows_sorted,
       first_seen, last_seen, digest
FROM performance_schema.events_statements_summary_by_digest
WHERE sum_sort_rows > 0
ORDER BY sum_timer_wait DESC;

CREATE VIEW sys.statements_with_sorting AS
SELECT sys.format_statement(x.query) AS query, x.db, x.exec_count, sys.format_time(x.total_latency) AS total_latency, x.sort_merge_passes,
       x.avg_sort_merges, x.sorts_using_scans, x.sort_using_range, x.rows_sorted, x.avg_rows_sorted, x.first_seen, x.last_seen, x.digest
FROM sys.x$statements_with_sorting AS x
ORDER BY x.total_latency DESC;

CREATE VIEW sys.x$statements_with_temp_tables AS
SELECT digest_text AS query, schema_name AS db, count_star AS exec_count, sum_timer_wait AS total_latency, sum_created_tmp_tables AS memory_tmp_tables,
       sum_created_tmp_disk_tables AS disk_tmp_tables, ROUND(IFNULL(sum_created_tmp_tables / NULLIF(count_star, 0), 0)) AS avg_tmp_tables_per_query,
       ROUND(IFNULL(sum_created_tmp_disk_tables / NULLIF(sum_created_tmp_tables, 0), 0) * 100) AS tmp_tables_to_disk_pct, first_seen, last_seen, digest
FROM performance_schema.events_statements_summary_by_digest
WHERE sum_created_tmp_tables > 0
ORDER BY sum_created_tmp_disk_tables DESC, sum_created_tmp_tables DESC;

CREATE VIEW sys.statements_with_temp_tables AS
SELECT sys.format_statement(x.query) AS query, x.db, x.exec_count, sys.format_time(x.total_latency) AS total_latency, x.memory_tmp_tables,
       x.disk_tmp_tables, x.avg_tmp_tables_per_query, x.tmp_tables_to_disk_pct, x.first_seen, x.last_seen, x.digest
FROM sys.x$statements_with_temp_tables AS x
ORDER BY x.disk_tmp_tables DESC, x.memory_tmp_tables DESC;

CREATE VIEW sys.x$host_summary_by_file_io AS
SELECT IF(s.host IS NULL, 'background', s.host) AS host, SUM(s.count_star) AS ios, SUM(s.sum_timer_wait) AS io_latency
FROM performance_schema.events_waits_summary_by_host_by_event_name AS s
WHERE s.event_name LIKE 'wait/io/file/%'
GROUP BY s.host
ORDER BY io_latency DESC;

CREATE VIEW sys.host_summary_by_file_io AS
SELECT x.host, x.ios, sys.format_time(x.io_latency) AS io_latency
FROM sys.x$host_summary_by_file_io AS x
ORDER BY x.io_latency DESC;

CREATE VIEW sys.x$host_summary_by_file_io_type AS
SELECT IF(s.host IS NULL, 'background', s.host) AS host, s.event_name AS event_name, s.count_star AS total, s.sum_timer_wait AS total_latency, s.max_timer_wait AS max_latency
FROM performance_schema.events_waits_summary_by_host_by_event_name AS s
WHERE s.event_name LIKE 'wait/io/file%' AND s.count_star > 0
ORDER BY s.host, s.sum_timer_wait DESC;

CREATE VIEW sys.host_summary_by_file_io_type AS
SELECT x.host, x.event_name, x.total, sys.format_time(x.total_latency) AS total_latency, sys.format_time(x.max_latency) AS max_latency
FROM sys.x$host_summary_by_file_io_type AS x
ORDER BY x.host, x.total_latency DESC;

CREATE VIEW sys.x$host_summary_by_stages AS
SELECT IF(s.host IS NULL, 'background', s.host) AS host, s.event_name AS event_name, s.count_star AS total, s.sum_timer_wait AS total_latency, s.avg_timer_wait AS avg_latency
FROM performance_schema.events_stages_summary_by_host_by_event_name AS s
WHERE s.sum_timer_wait <> 0
ORDER BY s.host, s.sum_timer_wait DESC;

CREATE VIEW sys.host_summary_by_stages AS
SELECT x.host, x.event_name, x.total, sys.format_time(x.total_latency) AS total_latency, sys.format_time(x.avg_latency) AS avg_latency
FROM sys.x$host_summary_by_stages AS x
ORDER BY x.host, x.total_latency DESC;

CREATE VIEW sys.x$host_summary_by_statement_latency AS
SELECT IF(s.host IS NULL, 'background', s.host) AS host, SUM(s.count_star) AS total, SUM(s.sum_timer_wait) AS total_latency, MAX(s.max_timer_wait) AS max_latency,
       SUM(s.sum_lock_time) AS lock_latency, SUM(s.sum_rows_sent) AS rows_sent, SUM(s.sum_rows_examined) AS rows_examined,
       SUM(s.sum_rows_affected) AS rows_affected, SUM(s.sum_no_index_used) + SUM(s.sum_no_good_index_used) AS full_scans
FROM performance_schema.events_statements_summary_by_host_by_event_name AS s
GROUP BY s.host
ORDER BY total_latency DESC;

CREATE VIEW sys.host_summary_by_statement_latency AS
SELECT x.host, x.total, sys.format_time(x.total_latency) AS total_latency, sys.format_time(x.max_latency) AS max_latency,
       sys.format_time(x.lock_latency) AS lock_latency, x.rows_sent, x.rows_examined, x.rows_affected, x.full_scans
FROM sys.x$host_summary_by_statement_latency AS x
ORDER BY x.total_latency DESC;

CREATE VIEW sys.x$host_summary_by_statement_type AS
SELECT IF(s.host IS NULL, 'background', s.host) AS host, SUBSTRING_INDEX(s.event_name, '/', -1) AS statement, s.count_star AS total, s.sum_timer_wait AS total_latency,
       s.max_timer_wait AS max_latency, s.sum_lock_time AS lock_latency, s.sum_rows_sent AS rows_sent, s.sum_rows_examined AS rows_examined,
       s.sum_rows_affected AS rows_affected, s.sum_no_index_used + s.sum_no_good_index_used AS full_scans
FROM performance_schema.events_statements_summary_by_host_by_event_name AS s
WHERE s.sum_timer_wait <> 0
ORDER BY s.host, s.sum_timer_wait DESC;

CREATE VIEW sys.host_summary_by_statement_type AS
SELECT x.host, x.statement, x.total, sys.format_time(x.total_latency) AS total_latency, sys.format_time(x.max_latency) AS max_latency,
       sys.format_time(x.lock_latency) AS lock_latency, x.rows_sent, x.rows_examined, x.rows_affected, x.full_scans
FROM sys.x$host_summary_by_statement_type AS x
ORDER BY x.host, x.total_latency DESC;

CREATE VIEW sys.x$memory_by_host_by_current_bytes AS
SELECT IF(s.host IS NULL, 'background', s.host) AS host, SUM(s.current_count_used) AS current_count_used, SUM(s.current_number_of_bytes_used) AS current_allocated,
       IFNULL(SUM(s.current_number_of_bytes_used) / NULLIF(SUM(s.current_count_used), 0), 0) AS current_avg_alloc,
       MAX(s.current_number_of_bytes_used) AS current_max_alloc, SUM(s.sum_number_of_bytes_alloc) AS total_allocated
FROM performance_schema.memory_summary_by_host_by_event_name AS s
GROUP BY s.host
ORDER BY current_allocated DESC;

CREATE VIEW sys.memory_by_host_by_current_bytes AS
SELECT x.host, x.current_count_used, sys.format_bytes(x.current_allocated) AS current_allocated, sys.format_bytes(x.current_avg_alloc) AS current_avg_alloc,
       sys.format_bytes(x.current_max_alloc) AS current_max_alloc, sys.format_bytes(x.total_allocated) AS total_allocated
FROM sys.x$memory_by_host_by_current_bytes AS x
ORDER BY x.current_allocated DESC;

CREATE VIEW sys.x$host_summary AS
SELECT IF(a.host IS NULL, 'background', a.host) AS host, SUM(stmt.total) AS statements, SUM(stmt.total_latency) AS statement_latency,
       SUM(stmt.total_latency) / SUM(stmt.total) AS statement_avg_latency, SUM(stmt.full_scans) AS table_scans, SUM(io.ios) AS file_ios,
       SUM(io.io_latency) AS file_io_latency, SUM(a.current_connections) AS current_connections, SUM(a.total_connections) AS total_connections,
       COUNT(DISTINCT a.user) AS unique_users, SUM(mem.current_allocated) AS current_memory, SUM(mem.total_allocated) AS total_memory_allocated
FROM performance_schema.accounts AS a
LEFT JOIN sys.x$host_summary_by_statement_latency AS stmt ON IF(a.host IS NULL, 'background', a.host) = stmt.host
LEFT JOIN sys.x$host_summary_by_file_io AS io ON IF(a.host IS NULL, 'background', a.host) = io.host
LEFT JOIN sys.x$memory_by_host_by_current_bytes AS mem ON IF(a.host IS NULL, 'background', a.host) = mem.host
WHERE a.host IS NOT NULL
GROUP BY a.host
ORDER BY statement_latency DESC;

CREATE VIEW sys.host_summary AS
SELECT x.host, x.statements, sys.format_time(x.statement_latency) AS statement_latency,
       sys.format_time(ROUND(x.statement_avg_latency)) AS statement_avg_latency, x.table_scans, x.file_ios,
       sys.format_time(x.file_io_latency) AS file_io_latency, x.current_connections, x.total_connections, x.unique_users,
       sys.format_bytes(x.current_memory) AS current_memory, sys.format_bytes(x.total_memory_allocated) AS total_memory_allocated
FROM sys.x$host_summary AS x
ORDER BY x.statement_latency DESC;

CREATE VIEW sys.x$waits_by_host_by_latency AS
SELECT IF(s.host IS NULL, 'background', s.host) AS host, s.event_name AS event, s.count_star AS total, s.sum_timer_wait AS total_latency, s.avg_timer_wait AS avg_latency,
       s.max_timer_wait AS max_latency
FROM performance_schema.events_waits_summary_by_host_by_event_name AS s
WHERE s.event_name <> 'idle' AND s.sum_timer_wait > 0
ORDER BY s.host, s.sum_timer_wait DESC;

CREATE VIEW sys.waits_by_host_by_latency AS
SELECT x.host, x.event, x.total, sys.format_time(x.total_latency) AS total_latency, sys.format_time(x.avg_latency) AS avg_latency,
       sys.format_time(x.max_latency) AS max_latency
FROM sys.x$waits_by_host_by_latency AS x
ORDER BY x.host, x.total_latency DESC;

CREATE VIEW sys.x$user_summary_by_file_io AS
SELECT IF(s.user IS NULL, 'background', s.user) AS user, SUM(s.count_star) AS ios, SUM(s.sum_timer_wait) AS io_latency
FROM performance_schema.events_waits_summary_by_user_by_event_name AS s
WHERE s.event_name LIKE 'wait/io/file/%'
GROUP BY s.user
ORDER BY io_latency DESC;

CREATE VIEW sys.user_summary_by_file_io AS
SELECT x.user, x.ios, sys.format_time(x.io_latency) AS io_latency
FROM sys.x$user_summary_by_file_io AS x
ORDER BY x.io_latency DESC;

CREATE VIEW sys.x$user_summary_by_file_io_type AS
SELECT IF(s.user IS NULL, 'background', s.user) AS user, s.event_name AS event_name, s.count_star AS total, s.sum_timer_wait AS latency, s.max_timer_wait AS max_latency
FROM performance_schema.events_waits_summary_by_user_by_event_name AS s
WHERE s.event_name LIKE 'wait/io/file%' AND s.count_star > 0
ORDER BY s.user, s.sum_timer_wait DESC;

CREATE VIEW sys.user_summary_by_file_io_type AS
SELECT x.user, x.event_name, x.total, sys.format_time(x.latency) AS latency, sys.format_time(x.max_latency) AS max_latency
FROM sys.x$user_summary_by_file_io_type AS x
ORDER BY x.user, x.latency DESC;

CREATE VIEW sys.x$user_summary_by_stages AS
SELECT IF(s.user IS NULL, 'background', s.user) AS user, s.event_name AS event_name, s.count_star AS total, s.sum_timer_wait AS total_latency, s.avg_timer_wait AS avg_latency
FROM performance_schema.events_stages_summary_by_user_by_event_name AS s
WHERE s.sum_timer_wait <> 0
ORDER BY s.user, s.sum_timer_wait DESC;

CREATE VIEW sys.user_summary_by_stages AS
SELECT x.user, x.event_name, x.total, sys.format_time(x.total_latency) AS total_latency, sys.format_time(x.avg_latency) AS avg_latency
FROM sys.x$user_summary_by_stages AS x
ORDER BY x.user, x.total_latency DESC;

CREATE VIEW sys.x$user_summary_by_statement_latency AS
SELECT IF(s.user IS NULL, 'background', s.user) AS user, SUM(s.count_star) AS total, SUM(s.sum_timer_wait) AS total_latency, SUM(s.max_timer_wait) AS max_latency,
       SUM(s.sum_lock_time) AS lock_latency, SUM(s.sum_rows_sent) AS rows_sent, SUM(s.sum_rows_examined) AS rows_examined,
       SUM(s.sum_rows_affected) AS rows_affected, SUM(s.sum_no_index_used) + SUM(s.sum_no_good_index_used) AS full_scans
FROM performance_schema.events_statements_summary_by_user_by_event_name AS s
GROUP BY s.user
ORDER BY total_latency DESC;

CREATE VIEW sys.user_summary_by_statement_latency AS
SELECT x.user, x.total, sys.format_time(x.total_latency) AS total_latency, sys.format_time(x.max_latency) AS max_latency,
       sys.format_time(x.lock_latency) AS lock_latency, x.rows_sent, x.rows_examined, x.rows_affected, x.full_scans
FROM sys.x$user_summary_by_statement_latency AS x
ORDER BY x.total_latency DESC;

CREATE VIEW sys.x$user_summary_by_statement_type AS
SELECT IF(s.user IS NULL, 'background', s.user) AS user, SUBSTRING_INDEX(s.event_name, '/', -1) AS statement, s.count_star AS total, s.sum_timer_wait AS total_latency,
       s.max_timer_wait AS max_latency, s.sum_lock_time AS lock_latency, s.sum_rows_sent AS rows_sent, s.sum_rows_examined AS rows_examined,
       s.sum_rows_affected AS rows_affected, s.sum_no_index_used + s.sum_no_good_index_used AS full_scans
FROM performance_schema.events_statements_summary_by_user_by_event_name AS s
WHERE s.sum_timer_wait <> 0
ORDER BY s.user, s.sum_timer_wait DESC;

CREATE VIEW sys.user_summary_by_statement_type AS
SELECT x.user, x.statement, x.total, sys.format_time(x.total_latency) AS total_latency, sys.format_time(x.max_latency) AS max_latency,
       sys.format_time(x.lock_latency) AS lock_latency, x.rows_sent, x.rows_examined, x.rows_affected, x.full_scans
FROM sys.x$user_summary_by_statement_type AS x
ORDER BY x.user, x.total_latency DESC;

CREATE VIEW sys.x$memory_by_user_by_current_bytes AS
SELECT IF(s.user IS NULL, 'background', s.user) AS user, SUM(s.current_count_used) AS current_count_used, SUM(s.current_number_of_bytes_used) AS current_allocated,
       IFNULL(SUM(s.current_number_of_bytes_used) / NULLIF(SUM(s.current_count_used), 0), 0) AS current_avg_alloc,
       MAX(s.current_number_of_bytes_used) AS current_max_alloc, SUM(s.sum_number_of_bytes_alloc) AS total_allocated
FROM performance_schema.memory_summary_by_user_by_event_name AS s
GROUP BY s.user
ORDER BY current_allocated DESC;

CREATE VIEW sys.memory_by_user_by_current_bytes AS
SELECT x.user, x.current_count_used, sys.format_bytes(x.current_allocated) AS current_allocated, sys.format_bytes(x.current_avg_alloc) AS current_avg_alloc,
       sys.format_bytes(x.current_max_alloc) AS current_max_alloc, sys.format_bytes(x.total_allocated) AS total_allocated
FROM sys.x$memory_by_user_by_current_bytes AS x
ORDER BY x.current_allocated DESC;

CREATE VIEW sys.x$user_summary AS
SELECT IF(a.user IS NULL, 'background', a.user) AS user, SUM(stmt.total) AS statements, SUM(stmt.total_latency) AS statement_latency,
       IFNULL(SUM(stmt.total_latency) / NULLIF(SUM(stmt.total), 0), 0) AS statement_avg_latency, SUM(stmt.full_scans) AS table_scans, SUM(io.ios) AS file_ios,
       SUM(io.io_latency) AS file_io_latency, SUM(a.current_connections) AS current_connections, SUM(a.total_connections) AS total_connections,
       COUNT(DISTINCT a.host) AS unique_hosts, SUM(mem.current_allocated) AS current_memory, SUM(mem.total_allocated) AS total_memory_allocated
FROM performance_schema.accounts AS a
LEFT JOIN sys.x$user_summary_by_statement_latency AS stmt ON IF(a.user IS NULL, 'background', a.user) = stmt.user
LEFT JOIN sys.x$user_summary_by_file_io AS io ON IF(a.user IS NULL, 'background', a.user) = io.user
LEFT JOIN sys.x$memory_by_user_by_current_bytes AS mem ON IF(a.user IS NULL, 'background', a.user) = mem.user
GROUP BY a.user
ORDER BY statement_latency DESC;

CREATE VIEW sys.user_summary AS
SELECT x.user, x.statements, sys.format_time(x.statement_latency) AS statement_latency,
       sys.format_time(ROUND(x.statement_avg_latency)) AS statement_avg_latency, x.table_scans, x.file_ios,
       sys.format_time(x.file_io_latency) AS file_io_latency, x.current_connections, x.total_connections, x.unique_hosts,
       sys.format_bytes(x.current_memory) AS current_memory, sys.format_bytes(x.total_memory_allocated) AS total_memory_allocated
FROM sys.x$user_summary AS x
ORDER BY x.statement_latency DESC;

CREATE VIEW sys.x$waits_by_user_by_latency AS
SELECT IF(s.user IS NULL, 'background', s.user) AS user, s.event_name AS event, s.count_star AS total, s.sum_timer_wait AS total_latency, s.avg_timer_wait AS avg_latency,
       s.max_timer_wait AS max_latency
FROM performance_schema.events_waits_summary_by_user_by_event_name AS s
WHERE s.event_name <> 'idle' AND s.user IS NOT NULL AND s.sum_timer_wait > 0
ORDER BY s.user, s.sum_timer_wait DESC;

CREATE VIEW sys.waits_by_user_by_latency AS
SELECT x.user, x.event, x.total, sys.format_time(x.total_latency) AS total_latency, sys.format_time(x.avg_latency) AS avg_latency,
       sys.format_time(x.max_latency) AS max_latency
FROM sys.x$waits_by_user_by_latency AS x
ORDER BY x.user, x.total_latency DESC;

CREATE VIEW sys.x$memory_by_thread_by_current_bytes AS
SELECT t.thread_id AS thread_id, IF(t.processlist_id IS NULL, SUBSTRING_INDEX(t.name, '/', -1), CONCAT(t.processlist_user, '@', t.processlist_host)) AS user,
       SUM(s.current_count_used) AS current_count_used, SUM(s.current_number_of_bytes_used) AS current_allocated,
       IFNULL(SUM(s.current_number_of_bytes_used) / NULLIF(SUM(s.current_count_used), 0), 0) AS current_avg_alloc,
       MAX(s.current_number_of_bytes_used) AS current_max_alloc, SUM(s.sum_number_of_bytes_alloc) AS total_allocated
FROM performance_schema.memory_summary_by_thread_by_event_name AS s
JOIN performance_schema.threads AS t ON t.thread_id = s.thread_id
GROUP BY t.thread_id, user
ORDER BY current_allocated DESC;

CREATE VIEW sys.memory_by_thread_by_current_bytes AS
SELECT x.thread_id, x.user, x.current_count_used, sys.format_bytes(x.current_allocated) AS current_allocated,
       sys.format_bytes(x.current_avg_alloc) AS current_avg_alloc, sys.format_bytes(x.current_max_alloc) AS current_max_alloc,
       sys.format_bytes(x.total_allocated) AS total_allocated
FROM sys.x$memory_by_thread_by_current_bytes AS x
ORDER BY x.current_allocated DESC;

CREATE VIEW sys.x$memory_global_by_current_bytes AS
SELECT event_name, current_count_used AS current_count, current_number_of_bytes_used AS current_alloc,
       IFNULL(current_number_of_bytes_used / NULLIF(current_count_used, 0), 0) AS current_avg_alloc, high_count_used AS high_count,
       high_number_of_bytes_used AS high_alloc, IFNULL(high_number_of_bytes_used / NULLIF(high_count_used, 0), 0) AS high_avg_alloc
FROM performance_schema.memory_summary_global_by_event_name
WHERE current_number_of_bytes_used > 0
ORDER BY current_number_of_bytes_used DESC;

CREATE VIEW sys.memory_global_by_current_bytes AS
SELECT x.event_name, x.current_count, sys.format_bytes(x.current_alloc) AS current_alloc, sys.format_bytes(x.current_avg_alloc) AS current_avg_alloc,
       x.high_count, sys.format_bytes(x.high_alloc) AS high_alloc, sys.format_bytes(x.high_avg_alloc) AS high_avg_alloc
FROM sys.x$memory_global_by_current_bytes AS x
ORDER BY x.current_alloc DESC;

CREATE VIEW sys.x$memory_global_total AS
SELECT SUM(current_number_of_bytes_used) AS total_allocated
FROM performance_schema.memory_summary_global_by_event_name;

CREATE VIEW sys.memory_global_total AS
SELECT sys.format_bytes(x.total_allocated) AS total_allocated
FROM sys.x$memory_global_total AS x;

CREATE VIEW sys.x$waits_global_by_latency AS
SELECT event_name AS events, count_star AS total, sum_timer_wait AS total_latency, avg_timer_wait AS avg_latency, max_timer_wait AS max_latency
FROM performance_schema.events_waits_summary_global_by_event_name
WHERE event_name <> 'idle' AND sum_timer_wait > 0
ORDER BY sum_timer_wait DESC;

CREATE VIEW sys.waits_global_by_latency AS
SELECT x.events, x.total, sys.format_time(x.total_latency) AS total_latency, sys.format_time(x.avg_latency) AS avg_latency,
       sys.format_time(x.max_latency) AS max_latency
FROM sys.x$waits_global_by_latency AS x
ORDER BY x.total_latency DESC;

CREATE VIEW sys.x$wait_classes_global_by_avg_latency AS
SELECT SUBSTRING_INDEX(event_name, '/', 3) AS event_class, SUM(count_star) AS total, SUM(sum_timer_wait) AS total_latency,
       MIN(min_timer_wait) AS min_latency, IFNULL(SUM(sum_timer_wait) / NULLIF(SUM(count_star), 0), 0) AS avg_latency, MAX(max_timer_wait) AS max_latency
FROM performance_schema.events_waits_summary_global_by_event_name
WHERE sum_timer_wait > 0 AND event_name <> 'idle'
GROUP BY event_class
ORDER BY avg_latency DESC;

CREATE VIEW sys.wait_classes_global_by_avg_latency AS
SELECT x.event_class, x.total, sys.format_time(x.total_latency) AS total_latency, sys.format_time(x.min_latency) AS min_latency,
       sys.format_time(x.avg_latency) AS avg_latency, sys.format_time(x.max_latency) AS max_latency
FROM sys.x$wait_classes_global_by_avg_latency AS x
ORDER BY x.avg_latency DESC;

CREATE VIEW sys.x$wait_classes_global_by_latency AS
SELECT SUBSTRING_INDEX(event_name, '/', 3) AS event_class, SUM(count_star) AS total, SUM(sum_timer_wait) AS total_latency,
       MIN(min_timer_wait) AS min_latency, IFNULL(SUM(sum_timer_wait) / NULLIF(SUM(count_star), 0), 0) AS avg_latency, MAX(max_timer_wait) AS max_latency
FROM performance_schema.events_waits_summary_global_by_event_name
WHERE sum_timer_wait > 0 AND event_name <> 'idle'
GROUP BY event_class
ORDER BY total_latency DESC;

CREATE VIEW sys.wait_classes_global_by_latency AS
SELECT x.event_class, x.total, sys.format_time(x.total_latency) AS total_latency, sys.format_time(x.min_latency) AS min_latency,
       sys.format_time(x.avg_latency) AS avg_latency, sys.format_time(x.max_latency) AS max_latency
FROM sys.x$wait_classes_global_by_latency AS x
ORDER BY x.total_latency DESC;

CREATE VIEW sys.x$io_by_thread_by_latency AS
SELECT IF(t.processlist_id IS NULL, SUBSTRING_INDEX(t.name, '/', -1), CONCAT(t.processlist_user, '@', t.processlist_host)) AS user, SUM(s.count_star) AS total,
       SUM(s.sum_timer_wait) AS total_latency, MIN(s.min_timer_wait) AS min_latency, AVG(s.avg_timer_wait) AS avg_latency,
       MAX(s.max_timer_wait) AS max_latency, s.thread_id AS thread_id, t.processlist_id AS processlist_id
FROM performance_schema.events_waits_summary_by_thread_by_event_name AS s
LEFT JOIN performance_schema.threads AS t ON t.thread_id = s.thread_id
WHERE s.event_name LIKE 'wait/io/file/%' AND s.sum_timer_wait > 0
GROUP BY s.thread_id, t.processlist_id, user
ORDER BY total_latency DESC;

CREATE VIEW sys.io_by_thread_by_latency AS
SELECT x.user, x.total, sys.format_time(x.total_latency) AS total_latency, sys.format_time(x.min_latency) AS min_latency,
       sys.format_time(x.avg_latency) AS avg_latency, sys.format_time(x.max_latency) AS max_latency, x.thread_id, x.processlist_id
FROM sys.x$io_by_thread_by_latency AS x
ORDER BY x.total_latency DESC;

CREATE VIEW sys.x$io_global_by_file_by_bytes AS
SELECT file_name AS file, count_read, sum_number_of_bytes_read AS total_read, IFNULL(sum_number_of_bytes_read / NULLIF(count_read, 0), 0) AS avg_read,
       count_write, sum_number_of_bytes_write AS total_written, IFNULL(sum_number_of_bytes_write / NULLIF(count_write, 0), 0.00) AS avg_write,
       sum_number_of_bytes_read + sum_number_of_bytes_write AS total,
       IFNULL(ROUND(100 - sum_number_of_bytes_read / NULLIF(sum_number_of_bytes_read + sum_number_of_bytes_write, 0) * 100, 2), 0.00) AS write_pct
FROM performance_schema.file_summary_by_instance
ORDER BY total DESC;

CREATE VIEW sys.io_global_by_file_by_bytes AS
SELECT sys.format_path(x.file) AS file, x.count_read, sys.format_bytes(x.total_read) AS total_read, sys.format_bytes(x.avg_read) AS avg_read, x.count_write,
       sys.format_bytes(x.total_written) AS total_written, sys.format_bytes(x.avg_write) AS avg_write, sys.format_bytes(x.total) AS total, x.write_pct
FROM sys.x$io_global_by_file_by_bytes AS x
ORDER BY x.total DESC;

CREATE VIEW sys.x$io_global_by_file_by_latency AS
SELECT file_name AS file, count_star AS total, sum_timer_wait AS total_latency, count_read, sum_timer_read AS read_latency, count_write,
       sum_timer_write AS write_latency, count_misc, sum_timer_misc AS misc_latency
FROM performance_schema.file_summary_by_instance
ORDER BY sum_timer_wait DESC;

CREATE VIEW sys.io_global_by_file_by_latency AS
SELECT sys.format_path(x.file) AS file, x.total, sys.format_time(x.total_latency) AS total_latency, x.count_read,
       sys.format_time(x.read_latency) AS read_latency, x.count_write, sys.format_time(x.write_latency) AS write_latency, x.count_misc,
       sys.format_time(x.misc_latency) AS misc_latency
FROM sys.x$io_global_by_file_by_latency AS x
ORDER BY x.total_latency DESC;

CREATE VIEW sys.x$io_global_by_wait_by_bytes AS
SELECT SUBSTRING_INDEX(event_name, '/', -2) AS event_name, count_star AS total, sum_timer_wait AS total_latency, min_timer_wait AS min_latency,
       avg_timer_wait AS avg_latency, max_timer_wait AS max_latency, count_read, sum_number_of_bytes_read AS total_read,
       IFNULL(sum_number_of_bytes_read / NULLIF(count_read, 0), 0) AS avg_read, count_write, sum_number_of_bytes_write AS total_written,
       IFNULL(sum_number_of_bytes_write / NULLIF(count_write, 0), 0) AS avg_written,
       sum_number_of_bytes_write + sum_number_of_bytes_read AS total_requested
FROM performance_schema.file_summary_by_event_name
WHERE event_name LIKE 'wait/io/file/%' AND count_star > 0
ORDER BY total_requested DESC;

CREATE VIEW sys.io_global_by_wait_by_bytes AS
SELECT x.event_name, x.total, sys.format_time(x.total_latency) AS total_latency, sys.format_time(x.min_latency) AS min_latency,
       sys.format_time(x.avg_latency) AS avg_latency, sys.format_time(x.max_latency) AS max_latency, x.count_read,
       sys.format_bytes(x.total_read) AS total_read, sys.format_bytes(x.avg_read) AS avg_read, x.count_write,
       sys.format_bytes(x.total_written) AS total_written, sys.format_bytes(x.avg_written) AS avg_written,
       sys.format_bytes(x.total_requested) AS total_requested
FROM sys.x$io_global_by_wait_by_bytes AS x
ORDER BY x.total_requested DESC;

CREATE VIEW sys.x$io_global_by_wait_by_latency AS
SELECT SUBSTRING_INDEX(event_name, '/', -2) AS event_name, count_star AS total, sum_timer_wait AS total_latency, avg_timer_wait AS avg_latency,
       max_timer_wait AS max_latency, sum_timer_read AS read_latency, sum_timer_write AS write_latency, sum_timer_misc AS misc_latency, count_read,
       sum_number_of_bytes_read AS total_read, IFNULL(sum_number_of_bytes_read / NULLIF(count_read, 0), 0) AS avg_read, count_write,
       sum_number_of_bytes_write AS total_written, IFNULL(sum_number_of_bytes_write / NULLIF(count_write, 0), 0) AS avg_written
FROM performance_schema.file_summary_by_event_name
WHERE event_name LIKE 'wait/io/file/%' AND count_star > 0
ORDER BY sum_timer_wait DESC;

CREATE VIEW sys.io_global_by_wait_by_latency AS
SELECT x.event_name, x.total, sys.format_time(x.total_latency) AS total_latency, sys.format_time(x.avg_latency) AS avg_latency,
       sys.format_time(x.max_latency) AS max_latency, sys.format_time(x.read_latency) AS read_latency, sys.format_time(x.write_latency) AS write_latency,
       sys.format_time(x.misc_latency) AS misc_latency, x.count_read, sys.format_bytes(x.total_read) AS total_read,
       sys.format_bytes(x.avg_read) AS avg_read, x.count_write, sys.format_bytes(x.total_written) AS total_written,
       sys.format_bytes(x.avg_written) AS avg_written
FROM sys.x$io_global_by_wait_by_latency AS x
ORDER BY x.total_latency DESC;

CREATE VIEW sys.x$latest_file_io AS
SELECT IF(t.processlist_id IS NULL, CONCAT(SUBSTRING_INDEX(t.name, '/', -1), ':', e.thread_id), CONCAT(t.processlist_user, '@', t.processlist_host, ':', t.processlist_id)) AS thread,
       e.object_name AS file, e.timer_wait AS latency, e.operation AS operation, e.number_of_bytes AS requested
FROM performance_schema.events_waits_history_long AS e
JOIN performance_schema.threads AS t ON t.thread_id = e.thread_id
WHERE e.object_name IS NOT NULL AND e.event_name LIKE 'wait/io/file/%'
ORDER BY e.timer_start;

CREATE VIEW sys.latest_file_io AS
SELECT x.thread, sys.format_path(x.file) AS file, sys.format_time(x.latency) AS latency, x.operation, sys.format_bytes(x.requested) AS requested
FROM sys.x$latest_file_io AS x;

CREATE VIEW sys.x$innodb_buffer_stats_by_schema AS
SELECT IF(LOCATE('.', table_name) = 0, 'InnoDB System', REPLACE(SUBSTRING_INDEX(table_name, '.', 1), '`', '')) AS object_schema,
       SUM(IF(compressed_size = 0, 16384, compressed_size)) AS allocated, SUM(data_size) AS data, COUNT(page_number) AS pages,
       COUNT(IF(is_hashed = 'YES', 1, NULL)) AS pages_hashed, COUNT(IF(is_old = 'YES', 1, NULL)) AS pages_old,
       ROUND(IFNULL(SUM(number_records) / NULLIF(COUNT(DISTINCT index_name), 0), 0)) AS rows_cached
FROM information_schema.innodb_buffer_page
WHERE table_name IS NOT NULL
GROUP BY object_schema
ORDER BY allocated DESC;

CREATE VIEW sys.innodb_buffer_stats_by_schema AS
SELECT x.object_schema, sys.format_bytes(x.allocated) AS allocated, sys.format_bytes(x.data) AS data, x.pages, x.pages_hashed, x.pages_old, x.rows_cached
FROM sys.x$innodb_buffer_stats_by_schema AS x
ORDER BY x.allocated DESC;

CREATE VIEW sys.x$innodb_buffer_stats_by_table AS
SELECT IF(LOCATE('.', table_name) = 0, 'InnoDB System', REPLACE(SUBSTRING_INDEX(table_name, '.', 1), '`', '')) AS object_schema, REPLACE(SUBSTRING_INDEX(table_name, '.', -1), '`', '') AS object_name,
       SUM(IF(compressed_size = 0, 16384, compressed_size)) AS allocated, SUM(data_size) AS data, COUNT(page_number) AS pages,
       COUNT(IF(is_hashed = 'YES', 1, NULL)) AS pages_hashed, COUNT(IF(is_old = 'YES', 1, NULL)) AS pages_old,
       ROUND(IFNULL(SUM(number_records) / NULLIF(COUNT(DISTINCT index_name), 0), 0)) AS rows_cached
FROM information_schema.innodb_buffer_page
WHERE table_name IS NOT NULL
GROUP BY object_schema, object_name
ORDER BY allocated DESC;

CREATE VIEW sys.innodb_buffer_stats_by_table AS
SELECT x.object_schema, x.object_name, sys.format_bytes(x.allocated) AS allocated, sys.format_bytes(x.data) AS data, x.pages, x.pages_hashed, x.pages_old,
       x.rows_cached
FROM sys.x$innodb_buffer_stats_by_table AS x
ORDER BY x.allocated DESC;

CREATE VIEW sys.x$schema_index_statistics AS
SELECT object_schema AS table_schema, object_name AS table_name, index_name, count_fetch AS rows_selected, sum_timer_fetch AS select_latency,
       count_insert AS rows_inserted, sum_timer_insert AS insert_latency, count_update AS rows_updated, sum_timer_update AS update_latency,
       count_delete AS rows_deleted, sum_timer_delete AS delete_latency
FROM performance_schema.table_io_waits_summary_by_index_usage
WHERE index_name IS NOT NULL
ORDER BY sum_timer_wait DESC;

CREATE VIEW sys.schema_index_statistics AS
SELECT x.table_schema, x.table_name, x.index_name, x.rows_selected, sys.format_time(x.select_latency) AS select_latency, x.rows_inserted,
       sys.format_time(x.insert_latency) AS insert_latency, x.rows_updated, sys.format_time(x.update_latency) AS update_latency, x.rows_deleted,
       sys.format_time(x.delete_latency) AS delete_latency
FROM sys.x$schema_index_statistics AS x;

CREATE VIEW sys.x$schema_tables_with_full_table_scans AS
SELECT object_schema, object_name, count_read AS rows_full_scanned, sum_timer_wait AS latency
FROM performance_schema.table_io_waits_summary_by_index_usage
WHERE index_name IS NULL AND count_read > 0
ORDER BY count_read DESC;

CREATE VIEW sys.schema_tables_with_full_table_scans AS
SELECT x.object_schema, x.object_name, x.rows_full_scanned, sys.format_time(x.latency) AS latency
FROM sys.x$schema_tables_with_full_table_scans AS x
ORDER BY x.rows_full_scanned DESC;

CREATE VIEW sys.schema_unused_indexes AS
SELECT u.object_schema AS object_schema, u.object_name AS object_name, u.index_name AS index_name
FROM performance_schema.table_io_waits_summary_by_index_usage AS u
JOIN information_schema.statistics AS s ON s.table_schema = u.object_schema AND s.table_name = u.object_name AND s.index_name = u.index_name
WHERE u.index_name <> 'PRIMARY' AND u.count_star = 0 AND u.object_schema NOT IN ('mysql', 'performance_schema') AND s.non_unique = 1 AND s.seq_in_index = 1
ORDER BY u.object_schema, u.object_name;

CREATE VIEW sys.x$ps_schema_table_statistics_io AS
SELECT sys.extract_schema_from_file_name(f.file_name) AS table_schema, sys.extract_table_from_file_name(f.file_name) AS table_name,
       SUM(f.count_read) AS count_read, SUM(f.sum_number_of_bytes_read) AS sum_number_of_bytes_read, SUM(f.sum_timer_read) AS sum_timer_read,
       SUM(f.count_write) AS count_write, SUM(f.sum_number_of_bytes_write) AS sum_number_of_bytes_write, SUM(f.sum_timer_write) AS sum_timer_write,
       SUM(f.count_misc) AS count_misc, SUM(f.sum_timer_misc) AS sum_timer_misc
FROM performance_schema.file_summary_by_instance AS f
GROUP BY table_schema, table_name;

CREATE VIEW sys.x$schema_table_statistics AS
SELECT pst.object_schema AS table_schema, pst.object_name AS table_name, pst.sum_timer_wait AS total_latency, pst.count_fetch AS rows_fetched, pst.sum_timer_fetch AS fetch_latency,
       pst.count_insert AS rows_inserted, pst.sum_timer_insert AS insert_latency, pst.count_update AS rows_updated, pst.sum_timer_update AS update_latency,
       pst.count_delete AS rows_deleted, pst.sum_timer_delete AS delete_latency, io.count_read AS io_read_requests,
       io.sum_number_of_bytes_read AS io_read, io.sum_timer_read AS io_read_latency, io.count_write AS io_write_requests,
       io.sum_number_of_bytes_write AS io_write, io.sum_timer_write AS io_write_latency, io.count_misc AS io_misc_requests, io.sum_timer_misc AS io_misc_latency
FROM performance_schema.table_io_waits_summary_by_table AS pst
LEFT JOIN sys.x$ps_schema_table_statistics_io AS io ON pst.object_schema = io.table_schema AND pst.object_name = io.table_name
ORDER BY pst.sum_timer_wait DESC;

CREATE VIEW sys.schema_table_statistics AS
SELECT x.table_schema, x.table_name, sys.format_time(x.total_latency) AS total_latency, x.rows_fetched, sys.format_time(x.fetch_latency) AS fetch_latency,
       x.rows_inserted, sys.format_time(x.insert_latency) AS insert_latency, x.rows_updated, sys.format_time(x.update_latency) AS update_latency,
       x.rows_deleted, sys.format_time(x.delete_latency) AS delete_latency, x.io_read_requests, sys.format_bytes(x.io_read) AS io_read,
       sys.format_time(x.io_read_latency) AS io_read_latency, x.io_write_requests, sys.format_bytes(x.io_write) AS io_write,
       sys.format_time(x.io_write_latency) AS io_write_latency, x.io_misc_requests, sys.format_time(x.io_misc_latency) AS io_misc_latency
FROM sys.x$schema_table_statistics AS x
ORDER BY x.total_latency DESC;

CREATE VIEW sys.x$schema_table_statistics_with_buffer AS
SELECT pst.object_schema AS table_schema, pst.object_name AS table_name, pst.count_fetch AS rows_fetched, pst.sum_timer_fetch AS fetch_latency,
       pst.count_insert AS rows_inserted, pst.sum_timer_insert AS insert_latency, pst.count_update AS rows_updated, pst.sum_timer_update AS update_latency,
       pst.count_delete AS rows_deleted, pst.sum_timer_delete AS delete_latency, io.count_read AS io_read_requests,
       io.sum_number_of_bytes_read AS io_read, io.sum_timer_read AS io_read_latency, io.count_write AS io_write_requests,
       io.sum_number_of_bytes_write AS io_write, io.sum_timer_write AS io_write_latency, io.count_misc AS io_misc_requests, io.sum_timer_misc AS io_misc_latency,
       ibp.allocated AS innodb_buffer_allocated, ibp.data AS innodb_buffer_data, ibp.allocated - ibp.data AS innodb_buffer_free,
       ibp.pages AS innodb_buffer_pages, ibp.pages_hashed AS innodb_buffer_pages_hashed, ibp.pages_old AS innodb_buffer_pages_old,
       ibp.rows_cached AS innodb_buffer_rows_cached
FROM performance_schema.table_io_waits_summary_by_table AS pst
LEFT JOIN sys.x$ps_schema_table_statistics_io AS io ON pst.object_schema = io.table_schema AND pst.object_name = io.table_name
LEFT JOIN sys.x$innodb_buffer_stats_by_table AS ibp ON pst.object_schema = ibp.object_schema AND pst.object_name = ibp.object_name
ORDER BY pst.sum_timer_wait DESC;

CREATE VIEW sys.schema_table_statistics_with_buffer AS
SELECT x.table_schema, x.table_name, x.rows_fetched, sys.format_time(x.fetch_latency) AS fetch_latency, x.rows_inserted,
       sys.format_time(x.insert_latency) AS insert_latency, x.rows_updated, sys.format_time(x.update_latency) AS update_latency, x.rows_deleted,
       sys.format_time(x.delete_latency) AS delete_latency, x.io_read_requests, sys.format_bytes(x.io_read) AS io_read,
       sys.format_time(x.io_read_latency) AS io_read_latency, x.io_write_requests, sys.format_bytes(x.io_write) AS io_write,
       sys.format_time(x.io_write_latency) AS io_write_latency, x.io_misc_requests, sys.format_time(x.io_misc_latency) AS io_misc_latency,
       sys.format_bytes(x.innodb_buffer_allocated) AS innodb_buffer_allocated, sys.format_bytes(x.innodb_buffer_data) AS innodb_buffer_data,
       sys.format_bytes(x.innodb_buffer_free) AS innodb_buffer_free, x.innodb_buffer_pages, x.innodb_buffer_pages_hashed, x.innodb_buffer_pages_old,
       x.innodb_buffer_rows_cached
FROM sys.x$schema_table_statistics_with_buffer AS x;

CREATE VIEW sys.schema_auto_increment_columns AS
SELECT c.table_schema AS table_schema, c.table_name AS table_name, c.column_name AS column_name, c.data_type AS data_type, c.column_type AS column_type,
       LOCATE('unsigned', c.column_type) = 0 AS is_signed, LOCATE('unsigned', c.column_type) > 0 AS is_unsigned,
       CASE c.data_type WHEN 'tinyint' THEN 255 WHEN 'smallint' THEN 65535 WHEN 'mediumint' THEN 16777215 WHEN 'int' THEN 4294967295 WHEN 'bigint' THEN 18446744073709551615 END
           >> IF(LOCATE('unsigned', c.column_type) > 0, 0, 1) AS max_value,
       t.auto_increment AS auto_increment,
       t.auto_increment / (CASE c.data_type WHEN 'tinyint' THEN 255 WHEN 'smallint' THEN 65535 WHEN 'mediumint' THEN 16777215 WHEN 'int' THEN 4294967295 WHEN 'bigint' THEN 18446744073709551615 END
           >> IF(LOCATE('unsigned', c.column_type) > 0, 0, 1)) AS auto_increment_ratio
FROM information_schema.columns AS c
JOIN information_schema.tables AS t ON t.table_schema = c.table_schema AND t.table_name = c.table_name
WHERE c.table_schema NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema') AND t.table_type = 'BASE TABLE' AND c.extra = 'auto_increment'
ORDER BY auto_increment_ratio DESC, max_value;

CREATE VIEW sys.schema_object_overview AS
SELECT routine_schema AS db, routine_type AS object_type, COUNT(*) AS count FROM information_schema.routines GROUP BY routine_schema, routine_type
UNION ALL
SELECT table_schema, table_type, COUNT(*) FROM information_schema.tables GROUP BY table_schema, table_type
UNION ALL
SELECT table_schema, CONCAT('INDEX (', index_type, ')'), COUNT(*) FROM information_schema.statistics GROUP BY table_schema, index_type
UNION ALL
SELECT trigger_schema, 'TRIGGER', COUNT(*) FROM information_schema.triggers GROUP BY trigger_schema
UNION ALL
SELECT event_schema, 'EVENT', COUNT(*) FROM information_schema.events GROUP BY event_schema
ORDER BY db, object_type;

CREATE VIEW sys.x$schema_flattened_keys AS
SELECT s.table_schema AS table_schema, s.table_name AS table_name, s.index_name AS index_name, MAX(s.non_unique) AS non_unique,
       MAX(IF(s.sub_part IS NULL, 0, 1)) AS subpart_exists, GROUP_CONCAT(s.column_name ORDER BY s.seq_in_index SEPARATOR ',') AS index_columns
FROM information_schema.statistics AS s
WHERE s.index_type = 'BTREE' AND s.table_schema NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')
GROUP BY s.table_schema, s.table_name, s.index_name;

CREATE VIEW sys.schema_redundant_indexes AS
SELECT r.table_schema AS table_schema, r.table_name AS table_name, r.index_name AS redundant_index_name, r.index_columns AS redundant_index_columns,
       r.non_unique AS redundant_index_non_unique, d.index_name AS dominant_index_name, d.index_columns AS dominant_index_columns,
       d.non_unique AS dominant_index_non_unique, IF(r.subpart_exists OR d.subpart_exists, 1, 0) AS subpart_exists,
       CONCAT('ALTER TABLE `', r.table_schema, '`.`', r.table_name, '` DROP INDEX `', r.index_name, '`') AS sql_drop_index
FROM sys.x$schema_flattened_keys AS r
JOIN sys.x$schema_flattened_keys AS d ON r.table_schema = d.table_schema AND r.table_name = d.table_name
WHERE r.index_name <> d.index_name
  AND (r.index_columns = d.index_columns
           AND (r.non_unique > d.non_unique OR r.non_unique = d.non_unique AND IF(r.index_name = 'PRIMARY', '', r.index_name) > IF(d.index_name = 'PRIMARY', '', d.index_name))
       OR r.non_unique = 1 AND LOCATE(CONCAT(r.index_columns, ','), d.index_columns) = 1
       OR d.non_unique = 0 AND LOCATE(CONCAT(d.index_columns, ','), r.index_columns) = 1);

CREATE VIEW sys.x$processlist AS
SELECT t.thread_id AS thd_id, t.processlist_id AS conn_id,
       IF(t.name IN ('thread/sql/one_connection', 'thread/thread_pool/tp_one_connection'), CONCAT(t.processlist_user, '@', t.processlist_host), REPLACE(t.name, 'thread/', '')) AS user,
       t.processlist_db AS db, t.processlist_command AS command, t.processlist_state AS state, t.processlist_time AS time,
       t.processlist_info AS current_statement, IF(stmt.end_event_id IS NULL, stmt.timer_wait, NULL) AS statement_latency,
       IF(stmt.end_event_id IS NULL, ROUND(100 * (stage.work_completed / stage.work_estimated), 2), NULL) AS progress, stmt.lock_time AS lock_latency,
       stmt.rows_examined AS rows_examined, stmt.rows_sent AS rows_sent, stmt.rows_affected AS rows_affected, stmt.created_tmp_tables AS tmp_tables,
       stmt.created_tmp_disk_tables AS tmp_disk_tables, IF(stmt.no_good_index_used > 0 OR stmt.no_index_used > 0, 'YES', 'NO') AS full_scan,
       IF(stmt.end_event_id IS NOT NULL, stmt.sql_text, NULL) AS last_statement, IF(stmt.end_event_id IS NOT NULL, stmt.timer_wait, NULL) AS last_statement_latency,
       mem.current_allocated AS current_memory, wait.event_name AS last_wait,
       IF(wait.end_event_id IS NULL AND wait.event_name IS NOT NULL, 'Still Waiting', wait.timer_wait) AS last_wait_latency, wait.source AS source,
       trx.timer_wait AS trx_latency, trx.state AS trx_state, trx.autocommit AS trx_autocommit, pid.attr_value AS pid, program.attr_value AS program_name
FROM performance_schema.threads AS t
LEFT JOIN performance_schema.events_waits_current AS wait ON wait.thread_id = t.thread_id
LEFT JOIN performance_schema.events_stages_current AS stage ON stage.thread_id = t.thread_id
LEFT JOIN performance_schema.events_statements_current AS stmt ON stmt.thread_id = t.thread_id
LEFT JOIN performance_schema.events_transactions_current AS trx ON trx.thread_id = t.thread_id
LEFT JOIN sys.x$memory_by_thread_by_current_bytes AS mem ON mem.thread_id = t.thread_id
LEFT JOIN performance_schema.session_connect_attrs AS pid ON pid.processlist_id = t.processlist_id AND pid.attr_name = '_pid'
LEFT JOIN performance_schema.session_connect_attrs AS program ON program.processlist_id = t.processlist_id AND program.attr_name = 'program_name'
ORDER BY t.processlist_time DESC, last_wait_latency DESC;

CREATE VIEW sys.processlist AS
SELECT x.thd_id, x.conn_id, x.user, x.db, x.command, x.state, x.time, sys.format_statement(x.current_statement) AS current_statement,
       sys.format_time(x.statement_latency) AS statement_latency, x.progress, sys.format_time(x.lock_latency) AS lock_latency, x.rows_examined, x.rows_sent,
       x.rows_affected, x.tmp_tables, x.tmp_disk_tables, x.full_scan, sys.format_statement(x.last_statement) AS last_statement,
       sys.format_time(x.last_statement_latency) AS last_statement_latency, sys.format_bytes(x.current_memory) AS current_memory, x.last_wait,
       IF(x.last_wait_latency = 'Still Waiting', x.last_wait_latency, sys.format_time(x.last_wait_latency)) AS last_wait_latency, x.source,
       sys.format_time(x.trx_latency) AS trx_latency, x.trx_state, x.trx_autocommit, x.pid, x.program_name
FROM sys.x$processlist AS x
ORDER BY x.time DESC, x.last_wait_latency DESC;

CREATE VIEW sys.x$session AS
SELECT thd_id, conn_id, user, db, command, state, time, current_statement, statement_latency, progress, lock_latency, rows_examined, rows_sent,
       rows_affected, tmp_tables, tmp_disk_tables, full_scan, last_statement, last_statement_latency, current_memory, last_wait, last_wait_latency, source,
       trx_latency, trx_state, trx_autocommit, pid, program_name
FROM sys.x$processlist
WHERE conn_id IS NOT NULL AND command <> 'Daemon';

CREATE VIEW sys.session AS
SELECT thd_id, conn_id, user, db, command, state, time, current_statement, statement_latency, progress, lock_latency, rows_examined, rows_sent,
       rows_affected, tmp_tables, tmp_disk_tables, full_scan, last_statement, last_statement_latency, current_memory, last_wait, last_wait_latency, source,
       trx_latency, trx_state, trx_autocommit, pid, program_name
FROM sys.processlist
WHERE conn_id IS NOT NULL AND command <> 'Daemon';

CREATE VIEW sys.session_ssl_status AS
SELECT v.thread_id AS thread_id, v.variable_value AS ssl_version, c.variable_value AS ssl_cipher, r.variable_value AS ssl_sessions_reused
FROM performance_schema.status_by_thread AS v
LEFT JOIN performance_schema.status_by_thread AS c ON c.thread_id = v.thread_id AND c.variable_name = 'Ssl_cipher'
LEFT JOIN performance_schema.status_by_thread AS r ON r.thread_id = v.thread_id AND r.variable_name = 'Ssl_sessions_reused'
WHERE v.variable_name = 'Ssl_version';

CREATE VIEW sys.metrics AS
SELECT LOWER(variable_name) AS Variable_name, variable_value AS Variable_value, 'Global Status' AS Type, 'YES' AS Enabled
FROM performance_schema.global_status
UNION ALL
SELECT name, count, CONCAT('InnoDB Metrics - ', subsystem), IF(status = 'enabled', 'YES', 'NO')
FROM information_schema.innodb_metrics
WHERE name NOT IN (
    'lock_row_lock_time', 'lock_row_lock_time_avg', 'lock_row_lock_time_max', 'lock_row_lock_waits', 'buffer_pool_reads', 'buffer_pool_read_requests',
    'buffer_pool_write_requests', 'buffer_pool_wait_free', 'buffer_pool_read_ahead', 'buffer_pool_read_ahead_evicted', 'buffer_pool_pages_total',
    'buffer_pool_pages_misc', 'buffer_pool_pages_data', 'buffer_pool_bytes_data', 'buffer_pool_pages_dirty', 'buffer_pool_bytes_dirty',
    'buffer_pool_pages_free', 'buffer_pages_created', 'buffer_pages_written', 'buffer_pages_read', 'buffer_data_reads', 'buffer_data_written',
    'os_log_bytes_written', 'os_log_fsyncs', 'os_log_pending_fsyncs', 'os_log_pending_writes', 'log_waits', 'log_write_requests', 'log_writes', 'file_num_open_files', 'innodb_dblwr_pages_written',
    'innodb_dblwr_writes', 'innodb_page_size')
UNION ALL
SELECT 'memory_current_allocated', SUM(current_number_of_bytes_used), 'Performance Schema', 'YES'
FROM performance_schema.memory_summary_global_by_event_name
HAVING COUNT(*) > 0
UNION ALL
SELECT 'memory_total_allocated', SUM(sum_number_of_bytes_alloc), 'Performance Schema', 'YES'
FROM performance_schema.memory_summary_global_by_event_name
HAVING COUNT(*) > 0
UNION ALL
SELECT 'NOW()', NOW(3), 'System Time', 'YES'
UNION ALL
SELECT 'UNIX_TIMESTAMP()', ROUND(UNIX_TIMESTAMP(NOW(3)), 3), 'System Time', 'YES'
ORDER BY Type, Variable_name;

CREATE VIEW sys.x$innodb_lock_waits AS
SELECT wait_started, wait_age, wait_age_secs, locked_table, locked_table_schema, locked_table_name, locked_table_partition, locked_table_subpartition,
       locked_index, locked_type, waiting_trx_id, waiting_trx_started, waiting_trx_age, waiting_trx_rows_locked, waiting_trx_rows_modified, waiting_pid,
       waiting_query, waiting_lock_id, waiting_lock_mode, blocking_trx_id, blocking_pid, blocking_query, blocking_lock_id, blocking_lock_mode,
       blocking_trx_started, blocking_trx_age, blocking_trx_rows_locked, blocking_trx_rows_modified, sql_kill_blocking_query, sql_kill_blocking_connection
FROM performance_schema.highkey_row_lock_waits
ORDER BY wait_started;

CREATE VIEW sys.innodb_lock_waits AS
SELECT x.wait_started, x.wait_age, x.wait_age_secs, x.locked_table, x.locked_table_schema, x.locked_table_name, x.locked_table_partition,
       x.locked_table_subpartition, x.locked_index, x.locked_type, x.waiting_trx_id, x.waiting_trx_started, x.waiting_trx_age, x.waiting_trx_rows_locked,
       x.waiting_trx_rows_modified, x.waiting_pid, sys.format_statement(x.waiting_query) AS waiting_query, x.waiting_lock_id, x.waiting_lock_mode,
       x.blocking_trx_id, x.blocking_pid, sys.format_statement(x.blocking_query) AS blocking_query, x.blocking_lock_id, x.blocking_lock_mode,
       x.blocking_trx_started, x.blocking_trx_age, x.blocking_trx_rows_locked, x.blocking_trx_rows_modified, x.sql_kill_blocking_query,
       x.sql_kill_blocking_connection
FROM sys.x$innodb_lock_waits AS x
ORDER BY x.wait_started;

CREATE VIEW sys.x$schema_table_lock_waits AS
SELECT object_schema, object_name, waiting_thread_id, waiting_pid, waiting_account, waiting_lock_type, waiting_lock_duration, waiting_query,
       waiting_query_secs, waiting_query_rows_affected, waiting_query_rows_examined, blocking_thread_id, blocking_pid, blocking_account, blocking_lock_type,
       blocking_lock_duration, sql_kill_blocking_query, sql_kill_blocking_connection
FROM performance_schema.highkey_table_lock_waits;

CREATE VIEW sys.schema_table_lock_waits AS
SELECT x.object_schema, x.object_name, x.waiting_thread_id, x.waiting_pid, x.waiting_account, x.waiting_lock_type, x.waiting_lock_duration,
       sys.format_statement(x.waiting_query) AS waiting_query, x.waiting_query_secs, x.waiting_query_rows_affected, x.waiting_query_rows_examined,
       x.blocking_thread_id, x.blocking_pid, x.blocking_account, x.blocking_lock_type, x.blocking_lock_duration, x.sql_kill_blocking_query,
       x.sql_kill_blocking_connection
FROM sys.x$schema_table_lock_waits AS x;
