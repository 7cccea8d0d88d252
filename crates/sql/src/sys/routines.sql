-- The routines of sys. Statements are apart by empty lines; every routine is SQL SECURITY INVOKER and of mysql.sys@localhost.

CREATE FUNCTION sys.extract_schema_from_file_name(path VARCHAR(512)) RETURNS VARCHAR(64)
    NO SQL DETERMINISTIC COMMENT 'The schema that a table''s file is of: the folder that it is in.'
RETURN LEFT(SUBSTRING_INDEX(SUBSTRING_INDEX(REPLACE(path, '\\', '/'), '/', -2), '/', 1), 64);

CREATE FUNCTION sys.extract_table_from_file_name(path VARCHAR(512)) RETURNS VARCHAR(64)
    NO SQL DETERMINISTIC COMMENT 'The table that a file is of: the file''s name without its ending.'
RETURN LEFT(SUBSTRING_INDEX(REPLACE(SUBSTRING_INDEX(REPLACE(path, '\\', '/'), '/', -1), '@0024', '$'), '.', 1), 64);

CREATE FUNCTION sys.format_bytes(bytes TEXT) RETURNS TEXT
    NO SQL DETERMINISTIC COMMENT 'A number of bytes in the greatest unit that it has one of.'
RETURN CASE
    WHEN bytes IS NULL THEN NULL
    WHEN bytes >= 1125899906842624 THEN CONCAT(CAST(bytes / 1125899906842624 AS DECIMAL(40, 2)), ' PiB')
    WHEN bytes >= 1099511627776 THEN CONCAT(CAST(bytes / 1099511627776 AS DECIMAL(40, 2)), ' TiB')
    WHEN bytes >= 1073741824 THEN CONCAT(CAST(bytes / 1073741824 AS DECIMAL(40, 2)), ' GiB')
    WHEN bytes >= 1048576 THEN CONCAT(CAST(bytes / 1048576 AS DECIMAL(40, 2)), ' MiB')
    WHEN bytes >= 1024 THEN CONCAT(CAST(bytes / 1024 AS DECIMAL(40, 2)), ' KiB')
    ELSE CONCAT(ROUND(bytes, 0), ' bytes')
END;

CREATE FUNCTION sys.format_path(in_path VARCHAR(512)) RETURNS VARCHAR(512) CHARSET utf8
    NO SQL DETERMINISTIC COMMENT 'A path whose beginning is the value of a variable, with the variable''s name for it.'
RETURN CASE
    WHEN in_path LIKE CONCAT(TRIM(TRAILING '/' FROM @@global.datadir), '/%') THEN REPLACE(in_path, TRIM(TRAILING '/' FROM @@global.datadir), '@@datadir')
    WHEN in_path LIKE CONCAT(TRIM(TRAILING '/' FROM @@global.tmpdir), '/%') THEN REPLACE(in_path, TRIM(TRAILING '/' FROM @@global.tmpdir), '@@tmpdir')
    WHEN in_path LIKE CONCAT(TRIM(TRAILING '/' FROM NULLIF(@@global.innodb_data_home_dir, '')), '/%')
        THEN REPLACE(in_path, TRIM(TRAILING '/' FROM @@global.innodb_data_home_dir), '@@innodb_data_home_dir')
    WHEN in_path LIKE CONCAT(TRIM(TRAILING '/' FROM NULLIF(@@global.innodb_log_group_home_dir, '')), '/%')
        THEN REPLACE(in_path, TRIM(TRAILING '/' FROM @@global.innodb_log_group_home_dir), '@@innodb_log_group_home_dir')
    WHEN in_path LIKE CONCAT(TRIM(TRAILING '/' FROM NULLIF(@@global.innodb_undo_directory, '')), '/%')
        THEN REPLACE(in_path, TRIM(TRAILING '/' FROM @@global.innodb_undo_directory), '@@innodb_undo_directory')
    WHEN in_path LIKE CONCAT(TRIM(TRAILING '/' FROM NULLIF(@@global.basedir, '')), '/%')
        THEN REPLACE(in_path, TRIM(TRAILING '/' FROM @@global.basedir), '@@basedir')
    ELSE in_path
END;

CREATE FUNCTION sys.format_statement(statement LONGTEXT) RETURNS LONGTEXT
    NO SQL DETERMINISTIC COMMENT 'A statement in one line and, if it has more characters than @sys.statement_truncate_len (64), without its middle.'
BEGIN
    DECLARE length_max INT DEFAULT COALESCE(@sys.statement_truncate_len, 64);
    IF CHAR_LENGTH(statement) > length_max THEN
        SET statement = CONCAT(LEFT(statement, (length_max + 1) DIV 2 - 2), ' ... ', RIGHT(statement, (length_max + 1) DIV 2 - 2));
    END IF;
    RETURN REPLACE(statement, '\n', ' ');
END;

CREATE FUNCTION sys.format_time(picoseconds TEXT) RETURNS TEXT
    NO SQL DETERMINISTIC COMMENT 'A time in the greatest unit that it has one of.'
RETURN CASE
    WHEN picoseconds IS NULL THEN NULL
    WHEN picoseconds >= 604800000000000000 THEN CONCAT(CAST(picoseconds / 604800000000000000 AS DECIMAL(40, 2)), ' w')
    WHEN picoseconds >= 86400000000000000 THEN CONCAT(CAST(picoseconds / 86400000000000000 AS DECIMAL(40, 2)), ' d')
    WHEN picoseconds >= 3600000000000000 THEN CONCAT(CAST(picoseconds / 3600000000000000 AS DECIMAL(40, 2)), ' h')
    WHEN picoseconds >= 60000000000000 THEN CONCAT(CAST(picoseconds / 60000000000000 AS DECIMAL(40, 2)), ' m')
    WHEN picoseconds >= 1000000000000 THEN CONCAT(CAST(picoseconds / 1000000000000 AS DECIMAL(40, 2)), ' s')
    WHEN picoseconds >= 1000000000 THEN CONCAT(CAST(picoseconds / 1000000000 AS DECIMAL(40, 2)), ' ms')
    WHEN picoseconds >= 1000000 THEN CONCAT(CAST(picoseconds / 1000000 AS DECIMAL(40, 2)), ' us')
    WHEN picoseconds >= 1000 THEN CONCAT(CAST(picoseconds / 1000 AS DECIMAL(40, 2)), ' ns')
    ELSE CONCAT(picoseconds, ' ps')
END;

CREATE FUNCTION sys.list_add(in_list TEXT, in_add_value TEXT) RETURNS TEXT
    DETERMINISTIC COMMENT 'A list with one more value behind a comma.'
BEGIN
    IF in_add_value IS NULL THEN
        SIGNAL SQLSTATE '02200' SET MESSAGE_TEXT = 'Function sys.list_add: in_add_value input variable should not be NULL', MYSQL_ERRNO = 1138;
    END IF;
    IF in_list IS NULL OR in_list = '' THEN
        RETURN in_add_value;
    END IF;
    RETURN CONCAT(TRIM(BOTH ',' FROM TRIM(in_list)), ',', in_add_value);
END;

CREATE FUNCTION sys.list_drop(in_list TEXT, in_drop_value TEXT) RETURNS TEXT
    DETERMINISTIC COMMENT 'A list without a value.'
BEGIN
    IF in_drop_value IS NULL THEN
        SIGNAL SQLSTATE '02200' SET MESSAGE_TEXT = 'Function sys.list_drop: in_drop_value input variable should not be NULL', MYSQL_ERRNO = 1138;
    END IF;
    RETURN TRIM(BOTH ',' FROM REPLACE(REPLACE(CONCAT(',', in_list), CONCAT(',', in_drop_value), ''), CONCAT(', ', in_drop_value), ''));
END;

CREATE FUNCTION sys.ps_is_account_enabled(in_host VARCHAR(60), in_user VARCHAR(32)) RETURNS ENUM('YES', 'NO')
    READS SQL DATA DETERMINISTIC COMMENT 'What connections of an account do is instrumented.'
RETURN IF(EXISTS (SELECT 1 FROM performance_schema.setup_actors AS a WHERE a.enabled = 'YES' AND (a.host = '%' OR a.host = in_host) AND (a.user = '%' OR a.user = in_user)), 'YES', 'NO');

CREATE FUNCTION sys.ps_is_consumer_enabled(in_consumer VARCHAR(64)) RETURNS ENUM('YES', 'NO')
    READS SQL DATA DETERMINISTIC COMMENT 'A consumer is enabled, and so are those without which it gets nothing.'
BEGIN
    IF in_consumer IS NULL THEN
        RETURN NULL;
    END IF;
    IF NOT EXISTS (SELECT 1 FROM performance_schema.setup_consumers AS c WHERE c.name = in_consumer) THEN
        SET @sys.message = CONCAT('Invalid argument error: ', in_consumer, ' in function sys.ps_is_consumer_enabled.');
        SIGNAL SQLSTATE 'HY000' SET MESSAGE_TEXT = @sys.message, MYSQL_ERRNO = 3047;
    END IF;
    RETURN IF(EXISTS (
        SELECT 1 FROM performance_schema.setup_consumers AS c
        WHERE c.enabled = 'NO' AND (c.name IN (in_consumer, 'global_instrumentation')
            OR c.name = 'thread_instrumentation' AND in_consumer NOT IN ('global_instrumentation', 'statements_digest')
            OR c.name = CONCAT(SUBSTRING_INDEX(in_consumer, '_history', 1), '_current'))), 'NO', 'YES');
END;

CREATE FUNCTION sys.ps_is_instrument_default_enabled(in_instrument VARCHAR(128)) RETURNS ENUM('YES', 'NO')
    READS SQL DATA DETERMINISTIC COMMENT 'An instrument is enabled if nobody says otherwise. Nobody can.'
RETURN IFNULL((SELECT i.enabled FROM performance_schema.setup_instruments AS i WHERE i.name = in_instrument), 'NO');

CREATE FUNCTION sys.ps_is_instrument_default_timed(in_instrument VARCHAR(128)) RETURNS ENUM('YES', 'NO')
    READS SQL DATA DETERMINISTIC COMMENT 'An instrument is timed if nobody says otherwise. Nobody can.'
RETURN IFNULL((SELECT i.timed FROM performance_schema.setup_instruments AS i WHERE i.name = in_instrument), 'NO');

CREATE FUNCTION sys.ps_is_thread_instrumented(in_connection_id BIGINT UNSIGNED) RETURNS ENUM('YES', 'NO', 'UNKNOWN')
    READS SQL DATA COMMENT 'What a connection does is instrumented.'
BEGIN
    IF in_connection_id IS NULL THEN
        RETURN NULL;
    END IF;
    RETURN IFNULL((SELECT t.instrumented FROM performance_schema.threads AS t WHERE t.processlist_id = in_connection_id), 'UNKNOWN');
END;

CREATE FUNCTION sys.ps_thread_account(in_thread_id BIGINT UNSIGNED) RETURNS TEXT
    READS SQL DATA COMMENT 'User and host of a thread.'
RETURN (SELECT IF(t.type = 'FOREGROUND', CONCAT(t.processlist_user, '@', t.processlist_host), t.type) FROM performance_schema.threads AS t WHERE t.thread_id = in_thread_id);

CREATE FUNCTION sys.ps_thread_id(in_connection_id BIGINT UNSIGNED) RETURNS BIGINT UNSIGNED
    READS SQL DATA COMMENT 'The thread of a connection; of NULL, that of this one.'
RETURN (SELECT t.thread_id FROM performance_schema.threads AS t WHERE t.processlist_id = IFNULL(in_connection_id, CONNECTION_ID()));

CREATE FUNCTION sys.quote_identifier(in_identifier TEXT) RETURNS TEXT
    NO SQL DETERMINISTIC COMMENT 'A name in backticks.'
RETURN CONCAT('`', REPLACE(in_identifier, '`', '``'), '`');

CREATE FUNCTION sys.sys_get_config(in_variable_name VARCHAR(128), in_default_value VARCHAR(128)) RETURNS VARCHAR(128)
    READS SQL DATA DETERMINISTIC COMMENT 'A value of sys_config, or the default if it has none.'
RETURN IFNULL((SELECT c.value FROM sys.sys_config AS c WHERE c.variable = in_variable_name), in_default_value);

CREATE FUNCTION sys.version_major() RETURNS TINYINT UNSIGNED
    NO SQL COMMENT 'The first number of the version.'
RETURN SUBSTRING_INDEX(SUBSTRING_INDEX(VERSION(), '-', 1), '.', 1);

CREATE FUNCTION sys.version_minor() RETURNS TINYINT UNSIGNED
    NO SQL COMMENT 'The second number of the version.'
RETURN SUBSTRING_INDEX(SUBSTRING_INDEX(SUBSTRING_INDEX(VERSION(), '-', 1), '.', 2), '.', -1);

CREATE FUNCTION sys.version_patch() RETURNS TINYINT UNSIGNED
    NO SQL COMMENT 'The third number of the version.'
RETURN SUBSTRING_INDEX(SUBSTRING_INDEX(VERSION(), '-', 1), '.', -1);

CREATE PROCEDURE sys.create_synonym_db(IN in_db_name VARCHAR(64), IN in_synonym VARCHAR(64))
    MODIFIES SQL DATA COMMENT 'Makes a database with a view of each table and view of another one.'
BEGIN
    DECLARE done BOOLEAN DEFAULT FALSE;
    DECLARE made INT DEFAULT 0;
    DECLARE table_name_of VARCHAR(64);
    DECLARE tables_of CURSOR FOR SELECT t.table_name FROM information_schema.tables AS t WHERE t.table_schema = in_db_name ORDER BY t.table_name;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET done = TRUE;
    IF NOT EXISTS (SELECT 1 FROM information_schema.schemata AS s WHERE s.schema_name = in_db_name) THEN
        SET @sys.message = CONCAT('Unknown database ', in_db_name);
        SIGNAL SQLSTATE 'HY000' SET MESSAGE_TEXT = @sys.message;
    END IF;
    IF EXISTS (SELECT 1 FROM information_schema.schemata AS s WHERE s.schema_name = in_synonym) THEN
        SET @sys.message = CONCAT('Can''t create database ', in_synonym, '; database exists');
        SIGNAL SQLSTATE 'HY000' SET MESSAGE_TEXT = @sys.message;
    END IF;
    SET @sys.statement = CONCAT('CREATE DATABASE ', sys.quote_identifier(in_synonym));
    PREPARE sys_synonym FROM @sys.statement;
    EXECUTE sys_synonym;
    OPEN tables_of;
    copies: LOOP
        FETCH tables_of INTO table_name_of;
        IF done THEN
            LEAVE copies;
        END IF;
        SET @sys.statement = CONCAT('CREATE SQL SECURITY INVOKER VIEW ', sys.quote_identifier(in_synonym), '.', sys.quote_identifier(table_name_of),
                                    ' AS SELECT * FROM ', sys.quote_identifier(in_db_name), '.', sys.quote_identifier(table_name_of));
        PREPARE sys_synonym FROM @sys.statement;
        EXECUTE sys_synonym;
        SET made = made + 1;
    END LOOP;
    CLOSE tables_of;
    DEALLOCATE PREPARE sys_synonym;
    SELECT CONCAT('Created ', made, ' view', IF(made = 1, '', 's'), ' in the ', sys.quote_identifier(in_synonym), ' database') AS summary;
END;

CREATE PROCEDURE sys.execute_prepared_stmt(IN in_query LONGTEXT)
    READS SQL DATA COMMENT 'Runs a statement that is given as text.'
BEGIN
    IF in_query IS NULL OR LENGTH(in_query) < 4 THEN
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'The @sys.execute_prepared_stmt.sql must contain a query';
    END IF;
    SET @sys.execute_prepared_stmt.sql = in_query;
    PREPARE sys_execute FROM @sys.execute_prepared_stmt.sql;
    EXECUTE sys_execute;
    DEALLOCATE PREPARE sys_execute;
    SET @sys.execute_prepared_stmt.sql = NULL;
END;

CREATE PROCEDURE sys.ps_setup_show_disabled(IN in_show_instruments TINYINT(1), IN in_show_threads TINYINT(1))
    READS SQL DATA COMMENT 'What performance_schema is not set up for.'
BEGIN
    SELECT @@performance_schema AS performance_schema_enabled;
    SELECT CONCAT('''', a.user, '''@''', a.host, '''') AS disabled_users FROM performance_schema.setup_actors AS a WHERE a.enabled = 'NO' ORDER BY disabled_users;
    SELECT o.object_type AS object_type, CONCAT(o.object_schema, '.', o.object_name) AS objects, o.enabled AS enabled, o.timed AS timed
    FROM performance_schema.setup_objects AS o WHERE o.enabled = 'NO' ORDER BY object_type, objects;
    CALL sys.ps_setup_show_disabled_consumers();
    IF in_show_threads THEN
        SELECT IF(t.name = 'thread/sql/one_connection', CONCAT(t.processlist_user, '@', t.processlist_host), REPLACE(t.name, 'thread/', '')) AS disabled_threads, t.type AS thread_type
        FROM performance_schema.threads AS t WHERE t.instrumented = 'NO' ORDER BY disabled_threads;
    END IF;
    IF in_show_instruments THEN
        CALL sys.ps_setup_show_disabled_instruments();
    END IF;
END;

CREATE PROCEDURE sys.ps_setup_show_disabled_consumers()
    READS SQL DATA DETERMINISTIC COMMENT 'The consumers that are not enabled.'
SELECT c.name AS disabled_consumers FROM performance_schema.setup_consumers AS c WHERE c.enabled = 'NO' ORDER BY disabled_consumers;

CREATE PROCEDURE sys.ps_setup_show_disabled_instruments()
    READS SQL DATA DETERMINISTIC COMMENT 'The instruments that are not enabled.'
SELECT i.name AS disabled_instruments, i.timed AS timed FROM performance_schema.setup_instruments AS i WHERE i.enabled = 'NO' ORDER BY disabled_instruments;

CREATE PROCEDURE sys.ps_setup_show_enabled(IN in_show_instruments TINYINT(1), IN in_show_threads TINYINT(1))
    READS SQL DATA DETERMINISTIC COMMENT 'What performance_schema is set up for.'
BEGIN
    SELECT @@performance_schema AS performance_schema_enabled;
    SELECT CONCAT('''', a.user, '''@''', a.host, '''') AS enabled_users FROM performance_schema.setup_actors AS a WHERE a.enabled = 'YES' ORDER BY enabled_users;
    SELECT o.object_type AS object_type, CONCAT(o.object_schema, '.', o.object_name) AS objects, o.enabled AS enabled, o.timed AS timed
    FROM performance_schema.setup_objects AS o WHERE o.enabled = 'YES' ORDER BY object_type, objects;
    CALL sys.ps_setup_show_enabled_consumers();
    IF in_show_threads THEN
        SELECT IF(t.name = 'thread/sql/one_connection', CONCAT(t.processlist_user, '@', t.processlist_host), REPLACE(t.name, 'thread/', '')) AS enabled_threads, t.type AS thread_type
        FROM performance_schema.threads AS t WHERE t.instrumented = 'YES' ORDER BY enabled_threads;
    END IF;
    IF in_show_instruments THEN
        CALL sys.ps_setup_show_enabled_instruments();
    END IF;
END;

CREATE PROCEDURE sys.ps_setup_show_enabled_consumers()
    READS SQL DATA DETERMINISTIC COMMENT 'The consumers that are enabled.'
SELECT c.name AS enabled_consumers FROM performance_schema.setup_consumers AS c WHERE c.enabled = 'YES' ORDER BY enabled_consumers;

CREATE PROCEDURE sys.ps_setup_show_enabled_instruments()
    READS SQL DATA DETERMINISTIC COMMENT 'The instruments that are enabled.'
SELECT i.name AS enabled_instruments, i.timed AS timed FROM performance_schema.setup_instruments AS i WHERE i.enabled = 'YES' ORDER BY enabled_instruments;

CREATE PROCEDURE sys.table_exists(IN in_db VARCHAR(64), IN in_table VARCHAR(64), OUT out_exists ENUM('', 'BASE TABLE', 'VIEW', 'TEMPORARY'))
    COMMENT 'What kind of table has a name: BASE TABLE, VIEW, TEMPORARY, or none.'
BEGIN
    DECLARE is_there BOOLEAN DEFAULT FALSE;
    DECLARE CONTINUE HANDLER FOR 1050 SET is_there = TRUE;
    IF in_db NOT IN ('mysql', 'sys') THEN
        SET @sys.statement = CONCAT('CREATE TEMPORARY TABLE ', sys.quote_identifier(in_db), '.', sys.quote_identifier(in_table), ' (id INT PRIMARY KEY)');
        PREPARE sys_table_exists FROM @sys.statement;
        EXECUTE sys_table_exists;
        IF NOT is_there THEN
            SET @sys.statement = CONCAT('DROP TEMPORARY TABLE ', sys.quote_identifier(in_db), '.', sys.quote_identifier(in_table));
            PREPARE sys_table_exists FROM @sys.statement;
            EXECUTE sys_table_exists;
        END IF;
        DEALLOCATE PREPARE sys_table_exists;
    END IF;
    IF is_there THEN
        SET out_exists = 'TEMPORARY';
    ELSE
        SET out_exists = IFNULL((SELECT t.table_type FROM information_schema.tables AS t WHERE t.table_schema = in_db AND t.table_name = in_table), '');
    END IF;
END;
