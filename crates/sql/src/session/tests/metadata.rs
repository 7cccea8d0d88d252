//! What clients ask at connect, lists of what there is, accounts, counters.

use super::{Server, table};

#[tokio::test]
async fn what_clients_ask_at_connect() {
    let server = Server::new();
    let mut c = server.connect();
    assert!(c.value("select @@version").await.starts_with("8.0."));
    assert_eq!(c.rows("select @@version_comment limit 1").await.len(), 1);
    assert_eq!(c.rows("SELECT @@session.auto_increment_increment AS auto_increment_increment, @@tx_isolation, @@max_allowed_packet").await[0], ["1", "REPEATABLE-READ", "67108864"]);
    assert_eq!(c.rows("SHOW VARIABLES LIKE 'lower_case_%'").await, table("lower_case_file_system OFF|lower_case_table_names 0"));
    assert_eq!(c.rows("SHOW VARIABLES WHERE Variable_name = 'autocommit'").await, table("autocommit ON"));
    c.ok("SET NAMES utf8mb4 COLLATE utf8mb4_bin").await;
    assert_eq!(c.value("SELECT @@collation_connection").await, "utf8mb4_bin");
    c.ok("SET character_set_results = NULL, sql_mode = 'STRICT_TRANS_TABLES'").await;
    assert_eq!(c.error("SET nonsense = 1").await, (1193, "Unknown system variable 'nonsense'".into()));
    assert_eq!(c.error("SET max_connections = 5").await.0, 1229);
    assert_eq!(c.error("SET GLOBAL version = 'x'").await.0, 1238);
    assert_eq!(c.ok("SET GLOBAL innodb_adaptive_hash_index = ON").await.warnings, 1);
    c.ok("SET @a = 5, @b = 'x'").await;
    assert_eq!(c.rows("SELECT @a + 1, @b, @c").await, table("6 x NULL"));
    assert_eq!(c.rows("SHOW DATABASES").await, table("information_schema|mysql|performance_schema|sys"));
    assert_eq!(c.value("SELECT DATABASE()").await, "NULL");
    assert_eq!(c.value("SELECT CURRENT_USER()").await, "root@localhost");
}

#[tokio::test]
async fn columns_indexes_and_describe() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20) NOT NULL DEFAULT 'q', b INT UNIQUE, KEY (a, b))").await;
    assert_eq!(c.rows("DESC t").await, table("id int NO PRI NULL |a varchar(20) NO MUL q |b int YES UNI NULL "));
    let index: Vec<_> = c.rows("SHOW INDEX FROM t").await.into_iter().map(|r| format!("{} {} {}", r[2], r[3], r[4])).collect();
    assert_eq!(index, ["PRIMARY 1 id", "b 1 b", "a 1 a", "a 2 b"]);
    assert_eq!(c.rows("SHOW TABLES LIKE 't%'").await, table("t"));
    assert_eq!(c.rows("SHOW FULL TABLES").await, [vec!["t".to_owned(), "BASE TABLE".to_owned()]]);
    assert_eq!(c.rows("SHOW COUNT(*) WARNINGS").await, table("0"));
    assert_eq!(c.rows("SHOW ENGINES").await[0][..2], ["InnoDB", "DEFAULT"]);
    assert!(c.rows("SHOW PROCESSLIST").await.iter().any(|r| r[4] == "Query"));
}

#[tokio::test]
async fn users_are_made_and_altered() {
    let server = Server::new();
    let mut c = server.connect();
    assert!(server.instance.bootstrap_root().await.unwrap());
    c.ok("CREATE USER 'u'@'%' IDENTIFIED BY 'secret'").await;
    assert_eq!(c.error("CREATE USER u IDENTIFIED BY 'x'").await, (1396, "Operation CREATE USER failed for 'u'@'%'".into()));
    let account = server.instance.account("u", "10.1.2.3").unwrap();
    assert!(crate::verify_caching_sha2(&account.authentication_string, b"secret"));
    c.ok("ALTER USER u IDENTIFIED WITH mysql_native_password BY 'password'").await;
    assert_eq!(server.instance.account("u", "h").unwrap().authentication_string, b"*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19");
    c.ok("GRANT ALL PRIVILEGES ON *.* TO u").await;
    c.ok("SET PASSWORD FOR u = 'other'").await;
    c.ok("DROP USER u").await;
    assert!(server.instance.account("u", "h").is_none());
    assert!(server.instance.account("root", "127.0.0.1").is_some());
    assert!(server.instance.account("root", "10.0.0.1").is_none());
}

/// Answers of MySQL 8.0.12.
#[tokio::test]
async fn an_account_whose_password_has_expired_may_only_change_it() {
    let server = Server::new();
    let mut root = server.connect();
    root.ok("CREATE USER u IDENTIFIED BY 'secret' PASSWORD EXPIRE").await;
    root.ok("GRANT CREATE USER ON *.* TO u").await;
    assert!(server.instance.account("u", "h").unwrap().password_expired);
    let mut c = server.connect();
    c.session.state.client.account_user = "u".into();
    c.session.state.client.account_host = "%".into();
    c.session.state.client.password_expired = true;
    let refused = [
        "SELECT 1", "SELECT 2", "DO 1", "BEGIN", "ROLLBACK", "SHOW WARNINGS", "CREATE TABLE t (a INT)", "PREPARE s FROM 'SELECT 1'", "KILL 999999", "ALTER USER u ACCOUNT UNLOCK",
        "ALTER USER root@localhost IDENTIFIED BY 'x'", "ALTER USER u IDENTIFIED BY 'x', root@localhost IDENTIFIED BY 'x'", "SET PASSWORD FOR root@localhost = ''",
    ];
    for sql in refused {
        assert_eq!(c.error(sql).await, (1820, "You must reset your password using ALTER USER statement before executing this statement.".into()), "{sql}");
    }
    c.ok("SET NAMES utf8mb4").await;
    c.ok("ALTER USER u IDENTIFIED BY 'other'").await;
    assert_eq!(c.value("SELECT 1").await, "1");
    assert!(!server.instance.account("u", "h").unwrap().password_expired);
    // Its own session knows of it at once, another one not.
    c.ok("ALTER USER u PASSWORD EXPIRE").await;
    assert_eq!(c.error("SELECT 1").await.0, 1820);
    c.ok("SET PASSWORD = 'secret'").await;
    root.ok("ALTER USER u PASSWORD EXPIRE").await;
    assert_eq!(c.value("SELECT 1").await, "1");
}

/// What the manual of 8.0.30 says.
#[tokio::test]
async fn generated_primary_keys_are_shown_or_not() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("SET sql_generate_invisible_primary_key = ON").await;
    c.ok("CREATE TABLE g (v INT, KEY (v))").await;
    c.ok("CREATE TABLE own (my_row_id BIGINT UNSIGNED NOT NULL PRIMARY KEY, v INT)").await;
    c.ok("INSERT INTO g VALUES (1)").await;
    let schema = |what: &str, order: &str| format!("SELECT {what} WHERE table_schema = 'd' AND table_name = 'g' ORDER BY {order}");
    let columns = schema("column_name, ordinal_position FROM information_schema.columns", "2");
    let indexes = schema("index_name FROM information_schema.statistics", "1");
    let keys = schema("constraint_name FROM information_schema.key_column_usage", "1");
    let constraints = schema("constraint_name FROM information_schema.table_constraints", "1");
    assert!(c.rows("SHOW CREATE TABLE g").await[0][1].contains("`my_row_id` bigint unsigned NOT NULL /*!80023 INVISIBLE */ AUTO_INCREMENT,"));
    assert_eq!(c.rows("SHOW COLUMNS FROM g").await.len(), 2);
    assert_eq!(c.rows(&columns).await, table("my_row_id 1|v 2"));
    assert_eq!(c.rows(&indexes).await, table("PRIMARY|v"));
    assert_eq!((c.rows(&keys).await, c.rows(&constraints).await), (table("PRIMARY"), table("PRIMARY")));
    c.ok("SET show_gipk_in_create_table_and_information_schema = OFF").await;
    let made = "CREATE TABLE `g` (\n  `v` int DEFAULT NULL,\n  KEY `v` (`v`)\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci";
    assert_eq!(c.rows("SHOW CREATE TABLE g").await[0][1], made);
    assert_eq!(c.rows("SHOW COLUMNS FROM g").await, table("v int YES MUL NULL "));
    assert_eq!(c.rows("SHOW INDEX FROM g").await.len(), 1);
    assert_eq!(c.rows(&columns).await, table("v 2"));
    assert_eq!(c.rows(&indexes).await, table("v"));
    assert_eq!((c.rows(&keys).await, c.rows(&constraints).await), (table(""), table("")));
    // A key of the user's own by the same name is not one that was generated.
    assert_eq!(c.rows("SHOW COLUMNS FROM own").await.len(), 2);
    assert_eq!(c.value("SELECT my_row_id FROM g").await, "1");
}

#[tokio::test]
async fn the_log_and_its_writing_are_set_while_the_server_runs() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, s VARCHAR(1000))").await;
    for (name, value) in [("innodb_io_capacity", "100"), ("innodb_log_buffer_size", "262144"), ("innodb_redo_log_capacity", "8388608")] {
        c.ok(&format!("SET GLOBAL {name} = {value}")).await;
        assert_eq!(c.value("SHOW COUNT(*) WARNINGS").await, "0", "{name}");
        assert_eq!(c.rows(&format!("SHOW GLOBAL VARIABLES LIKE '{name}'")).await, table(&format!("{name} {value}")));
    }
    // More than the log may hold now.
    let rows = vec!["(REPEAT('x', 1000))"; 500].join(", ");
    for _ in 0..30 {
        c.ok(&format!("INSERT INTO t (s) VALUES {rows}")).await;
    }
    assert_eq!(c.value("SELECT COUNT(*) FROM t").await, "15000");
}

/// As the manual and the sources of 8.0.30 have it.
#[tokio::test]
async fn generated_primary_keys_stay_as_they_are() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("SET sql_generate_invisible_primary_key = ON").await;
    for (refused, code) in [
        ("CREATE TABLE t (my_row_id INT, v INT)", 4108),
        ("CREATE TABLE t (v INT, n INT AUTO_INCREMENT UNIQUE, my_row_id INT)", 4109),
        ("CREATE TABLE t (v INT) PARTITION BY HASH (v)", 1235),
    ] {
        assert_eq!(c.error(refused).await.0, code, "{refused}");
    }
    c.ok("CREATE TABLE g (v INT NOT NULL, w INT)").await;
    c.ok("CREATE TABLE own (id INT PRIMARY KEY)").await;
    let altering = (4110, "Altering generated invisible primary key column 'my_row_id' is not allowed.".to_owned());
    let another = "This version of MySQL doesn't yet support 'existing primary key drop without adding a new primary key. In @@sql_generate_invisible_primary_key=ON \
                   mode table should have a primary key. Please add a new primary key to be able to drop existing primary key.'";
    assert_eq!(c.error("ALTER TABLE own DROP PRIMARY KEY").await, (1235, another.to_owned()));
    assert_eq!(c.error("ALTER TABLE g DROP COLUMN my_row_id").await, (1235, another.to_owned()));
    for mode in ["ON", "OFF"] {
        c.ok(&format!("SET sql_generate_invisible_primary_key = {mode}")).await;
        assert_eq!(c.error("ALTER TABLE g DROP PRIMARY KEY, ADD PRIMARY KEY (v)").await.0, 4111, "{mode}");
        for change in [
            "CHANGE my_row_id id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT",
            "RENAME COLUMN my_row_id TO id",
            "MODIFY my_row_id INT UNSIGNED NOT NULL AUTO_INCREMENT",
            "MODIFY my_row_id BIGINT UNSIGNED NOT NULL",
            "MODIFY my_row_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT AFTER v",
        ] {
            assert_eq!(c.error(&format!("ALTER TABLE g {change}")).await, altering, "{mode} {change}");
        }
        assert_eq!(c.error("ALTER TABLE g PARTITION BY HASH (my_row_id)").await.0, 1235, "{mode}");
        c.ok("ALTER TABLE g ALTER COLUMN my_row_id SET VISIBLE").await;
        c.ok("ALTER TABLE g ALTER COLUMN my_row_id SET INVISIBLE").await;
    }
    // The user's own, or become it, is a column like any other.
    c.ok("CREATE TABLE seen (my_row_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, v INT NOT NULL)").await;
    c.ok("ALTER TABLE seen ADD COLUMN u INT FIRST").await;
    c.ok("ALTER TABLE seen MODIFY my_row_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT FIRST").await;
    c.ok("ALTER TABLE seen CHANGE my_row_id id INT UNSIGNED NOT NULL").await;
    c.ok("ALTER TABLE seen DROP PRIMARY KEY, ADD PRIMARY KEY (v)").await;
    c.ok("ALTER TABLE g ADD COLUMN u INT FIRST").await;
    let order = "SELECT GROUP_CONCAT(column_name ORDER BY ordinal_position) FROM information_schema.columns WHERE table_name = 'g'";
    assert_eq!(c.value(order).await, "my_row_id,u,v,w");
    c.ok("SET sql_generate_invisible_primary_key = ON").await;
    c.ok("ALTER TABLE g DROP COLUMN my_row_id, ADD PRIMARY KEY (v)").await;
    c.ok("SET sql_generate_invisible_primary_key = OFF").await;
    c.ok("ALTER TABLE g DROP PRIMARY KEY").await;
    assert_eq!(c.value(order).await, "u,v,w");
}

/// Answers of MySQL 8.0.12.
#[tokio::test]
async fn prepare_and_execute_count_twice() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("FLUSH STATUS").await;
    c.ok("PREPARE p FROM 'SELECT 1'").await;
    c.rows("EXECUTE p").await;
    c.rows("EXECUTE p").await;
    c.ok("PREPARE p FROM 'SELECT 2'").await;
    c.rows("EXECUTE p").await;
    c.ok("DEALLOCATE PREPARE p").await;
    assert_eq!(c.error("PREPARE q FROM 'SELEC 1'").await.0, 1064);
    assert_eq!(c.error("EXECUTE nosuch").await.0, 1243);
    let counted = "Com_dealloc_sql 1|Com_execute_sql 4|Com_prepare_sql 3|Com_select 3|Com_stmt_close 2|Com_stmt_execute 3|Com_stmt_prepare 3";
    let names = "'Com_dealloc_sql', 'Com_execute_sql', 'Com_prepare_sql', 'Com_select', 'Com_stmt_close', 'Com_stmt_execute', 'Com_stmt_prepare'";
    assert_eq!(c.rows(&format!("SHOW STATUS WHERE Variable_name IN ({names})")).await, table(counted));
}

/// Answers of MySQL 8.0.12.
#[tokio::test]
async fn a_session_has_counters_of_its_own() {
    let server = Server::new();
    let (mut c, mut other) = (server.client().await, server.client().await);
    let own = "SHOW STATUS WHERE Variable_name IN ('Com_flush', 'Com_select', 'Com_set_option', 'Com_show_status', 'Questions')";
    let global = "SHOW GLOBAL STATUS LIKE 'Com_select'";
    other.value("SELECT 1").await;
    c.ok("FLUSH STATUS").await;
    c.value("SELECT 1").await;
    c.ok("SET @a = 1").await;
    assert_eq!(c.rows(own).await, table("Com_flush 0|Com_select 1|Com_set_option 1|Com_show_status 1|Questions 3"));
    assert_eq!(other.rows("SHOW SESSION STATUS LIKE 'Com_select'").await, table("Com_select 1"));
    assert_eq!(c.rows(global).await, table("Com_select 2"));
    // What a session has counted stays when it begins anew or goes.
    c.ok("FLUSH STATUS").await;
    assert_eq!(c.rows("SHOW STATUS LIKE 'Com_select'").await, table("Com_select 0"));
    drop(other);
    assert_eq!(c.rows(global).await, table("Com_select 2"));
    let pattern = "variable_name IN ('Com_select', 'Max_used_connections', 'Com_show_status')";
    assert_eq!(c.rows(&format!("SELECT * FROM performance_schema.session_status WHERE {pattern}")).await, table("Com_select 1|Com_show_status 2|Max_used_connections 2"));
    assert_eq!(c.rows(&format!("SELECT * FROM performance_schema.global_status WHERE {pattern}")).await, table("Com_select 4|Com_show_status 5|Max_used_connections 2"));
    c.ok("FLUSH STATUS").await;
    assert_eq!(c.rows("SHOW STATUS LIKE 'Max_used_connections'").await, table("Max_used_connections 1"));
}

/// Answers of MySQL 8.0.12.
#[tokio::test]
async fn rows_that_statements_write_are_counted() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (a INT PRIMARY KEY, b INT)").await;
    c.ok("FLUSH STATUS").await;
    c.ok("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)").await;
    c.ok("INSERT IGNORE INTO t VALUES (1, 5)").await;
    c.ok("INSERT INTO t VALUES (1, 5) ON DUPLICATE KEY UPDATE b = 7").await;
    c.ok("UPDATE t SET b = 2").await;
    c.ok("DELETE FROM t WHERE a = 3").await;
    let handler = "SHOW STATUS WHERE Variable_name IN ('Handler_write', 'Handler_update', 'Handler_delete')";
    assert_eq!(c.rows(handler).await, table("Handler_delete 1|Handler_update 3|Handler_write 5"));
}

/// Runs a statement and says what it has done to come to its rows.
async fn work_of(c: &mut super::Client, statement: &str) -> String {
    c.ok("FLUSH STATUS").await;
    let _ = c.run(statement).await;
    let counted = "Variable_name LIKE 'Handler\\_read%' OR Variable_name LIKE 'Select\\_%' OR Variable_name LIKE 'Sort\\_%' OR Variable_name LIKE 'Created\\_%' OR Variable_name IN ('Handler_write', 'Handler_update', 'Handler_delete')";
    let rows = c.rows(&format!("SHOW STATUS WHERE ({counted}) AND Value <> '0'")).await;
    rows.iter().map(|row| format!("{} {}", row[0].replace("Handler_", ""), row[1])).collect::<Vec<_>>().join(", ")
}

/// Answers of MySQL 8.0.12.
#[tokio::test]
async fn the_way_to_rows_is_counted() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, k INT, u INT, c INT, KEY (k), UNIQUE KEY (u))").await;
    let rows: Vec<String> = (1..=20).map(|i| format!("({i}, {}, {i}, {})", i % 5, i % 4)).collect();
    c.ok(&format!("INSERT INTO t VALUES {}", rows.join(", "))).await;
    c.ok("CREATE TABLE w (id INT PRIMARY KEY, v INT)").await;
    for (statement, work) in [
        ("SELECT * FROM t WHERE id = 5", "read_key 1"),
        ("SELECT * FROM t WHERE id = 500", "read_key 1"),
        ("SELECT * FROM t WHERE k = 2", "read_key 1, read_next 4"),
        ("SELECT * FROM t WHERE k = 99", "read_key 1"),
        ("SELECT * FROM t WHERE u = 7", "read_key 1"),
        ("SELECT * FROM t WHERE id BETWEEN 3 AND 7", "read_key 1, read_next 5, Select_range 1"),
        ("SELECT * FROM t WHERE id > 15", "read_key 1, read_next 5, Select_range 1"),
        ("SELECT * FROM t WHERE id < 4", "read_first 1, read_key 1, read_next 3, Select_range 1"),
        ("SELECT * FROM t WHERE id IN (1, 5, 9)", "read_key 3, Select_range 1"),
        ("SELECT * FROM t WHERE k IN (1, 2)", "read_key 2, read_next 8, Select_range 1"),
        ("SELECT * FROM t WHERE id BETWEEN 3 AND 17 LIMIT 4", "read_key 1, read_next 3, Select_range 1"),
        ("SELECT * FROM t WHERE id BETWEEN 3 AND 7 ORDER BY id DESC", "read_key 1, read_prev 5, Select_range 1"),
        ("SELECT * FROM t WHERE id > 15 ORDER BY id DESC", "read_key 1, read_last 1, read_prev 5, Select_range 1"),
        ("SELECT * FROM t", "read_first 1, read_key 1, read_rnd_next 21, Select_scan 1"),
        ("SELECT * FROM t LIMIT 3", "read_first 1, read_key 1, read_rnd_next 3, Select_scan 1"),
        ("SELECT * FROM t ORDER BY id LIMIT 2, 3", "read_first 1, read_key 1, read_next 4, Select_scan 1"),
        ("SELECT * FROM t ORDER BY id DESC", "read_key 1, read_last 1, read_prev 20, Select_scan 1"),
        ("SELECT * FROM t WHERE c = 3", "read_first 1, read_key 1, read_rnd_next 21, Select_scan 1"),
        ("SELECT * FROM t ORDER BY c LIMIT 3", "read_first 1, read_key 1, read_rnd_next 21, Select_scan 1, Sort_rows 3, Sort_scan 1"),
        ("SELECT * FROM t WHERE id > 10 ORDER BY c", "read_key 1, read_next 10, Select_range 1, Sort_range 1, Sort_rows 10"),
        ("SELECT COUNT(*) FROM t", ""),
        ("SELECT MIN(id) FROM t", "read_first 1, read_key 1"),
        ("SELECT MAX(u) FROM t", "read_key 1, read_last 1"),
        ("SELECT * FROM w", "read_first 1, read_key 1, read_rnd_next 1, Select_scan 1"),
        ("SELECT * FROM t WHERE k = 2 FOR UPDATE", "read_key 1, read_next 4"),
        ("INSERT INTO w VALUES (2, 1), (3, 1), (4, 2)", "write 3"),
        ("INSERT INTO w VALUES (2, 5) ON DUPLICATE KEY UPDATE v = v + 1", "read_key 1, update 1, write 1"),
        ("UPDATE w SET v = 8 WHERE id = 2", "read_key 1, update 1"),
        ("UPDATE w SET v = 8 WHERE id = 2", "read_key 1"),
        ("UPDATE w SET v = v + 1", "read_first 1, read_key 1, read_rnd_next 4, update 3"),
        ("UPDATE w SET v = v + 1 WHERE id > 2", "read_key 1, read_next 2, update 2"),
        ("UPDATE w SET v = v + 1 ORDER BY v LIMIT 1", "read_first 1, read_key 2, read_rnd 1, read_rnd_next 4, update 1, Sort_rows 1, Sort_scan 1"),
        ("DELETE FROM w WHERE id = 3", "delete 1, read_key 1"),
        ("DELETE FROM w LIMIT 1", "delete 1, read_first 1, read_key 1, read_rnd_next 1"),
        ("DELETE FROM w", "delete 1, read_first 1, read_key 1, read_rnd_next 2"),
    ] {
        let mut expected: Vec<&str> = work.split(", ").collect();
        let found = work_of(&mut c, statement).await;
        let mut found: Vec<&str> = found.split(", ").collect();
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected, "{statement}");
    }
    // Joins and what DataFusion runs: a table scan each, whatever the order.
    for executor in ["fast", "datafusion"] {
        c.ok(&format!("SET highkey_executor = {executor}")).await;
        let join = work_of(&mut c, "SELECT * FROM t a JOIN t b ON b.c = a.c").await;
        assert_eq!(join, "read_first 2, read_key 2, read_rnd_next 42, Select_full_join 1, Select_scan 1", "{executor}");
    }
    let digest = "SELECT SUM_SELECT_FULL_JOIN, SUM_SELECT_SCAN, SUM_NO_INDEX_USED FROM performance_schema.events_statements_summary_by_digest WHERE DIGEST_TEXT LIKE '%`t` `a` JOIN%'";
    assert_eq!(c.rows(digest).await, table("2 2 2"));
    // The plan is not there any more, but what its operators counted is.
    let sorted = work_of(&mut c, "SELECT a.id, b.id FROM t a JOIN t b ON b.c = a.c ORDER BY a.id, b.id").await;
    assert!(sorted.contains("Sort_rows 100, Sort_scan 1"), "{sorted}");
}

#[tokio::test]
async fn reports_are_told_of_statements_that_begin_beside_them() {
    let server = Server::new();
    let mut c = server.client().await;
    let give_way = server.instance.queries().give_way();
    let before = give_way.begun_statements();
    c.ok("DO 1").await;
    assert_eq!(give_way.begun_statements(), before, "nobody asks");
    let reports = [(); 2].map(|()| give_way.begin(tokio::runtime::Handle::current()));
    c.ok("DO 1").await;
    c.ok("DO 2").await;
    let after = give_way.begun_statements();
    assert_eq!((after.0 - before.0, after.1 - before.1), (2, 1), "the first report's statement was before");
    drop(reports);
    c.ok("DO 3").await;
    assert_eq!(give_way.begun_statements(), after);
}

#[tokio::test]
async fn every_kind_of_statement_is_counted() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (a INT PRIMARY KEY)").await;
    c.ok("FLUSH STATUS").await;
    c.rows("SHOW TABLES").await;
    c.rows("SHOW CREATE TABLE t").await;
    c.rows("SHOW INDEX FROM t").await;
    c.rows("DESC t").await;
    c.rows("SHOW ENGINE INNODB STATUS").await;
    c.rows("CHECKSUM TABLE t").await;
    let counted = c.rows("SHOW STATUS WHERE Variable_name LIKE 'Com\\_%' AND Value > 0").await;
    let names: Vec<&str> = counted.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(names, ["Com_checksum", "Com_show_create_table", "Com_show_engine_status", "Com_show_fields", "Com_show_keys", "Com_show_status", "Com_show_tables"]);
    let all = c.rows("SHOW GLOBAL STATUS").await;
    assert!(all.is_sorted_by(|a, b| a[0] < b[0]), "by name, and each once");
}

async fn connection(c: &mut super::Client) -> u64 {
    c.value("SELECT CONNECTION_ID()").await.parse().unwrap()
}

#[tokio::test]
async fn threads_and_their_metadata_locks() {
    let server = Server::new();
    let (mut a, mut b, mut c) = (server.client().await, server.client().await, server.client().await);
    let (holder, waiter) = (connection(&mut a).await, connection(&mut b).await);
    a.ok("CREATE TABLE t (id INT PRIMARY KEY)").await;
    a.ok("INSERT INTO t VALUES (1)").await;
    let threads = "SELECT name, type, processlist_user, processlist_host, processlist_db, processlist_command, processlist_info, connection_type FROM performance_schema.threads WHERE thread_id";
    let idle = "thread/sql/one_connection FOREGROUND root localhost d Sleep NULL Socket";
    assert_eq!(c.rows(&format!("{threads} = {holder}")).await, table(idle));
    let locks = |thread: u64| {
        let columns = "object_type, object_name, lock_type, lock_duration, lock_status";
        format!("SELECT {columns} FROM performance_schema.metadata_locks WHERE owner_thread_id = {thread} AND object_type <> 'SCHEMA' ORDER BY object_type")
    };
    assert_eq!(c.rows(&locks(holder)).await, table(""));
    a.ok("BEGIN").await;
    a.rows("SELECT * FROM t").await;
    assert_eq!(c.rows(&locks(holder)).await, table("TABLE t SHARED_READ TRANSACTION GRANTED"));
    a.ok("INSERT INTO t VALUES (2)").await;
    assert_eq!(c.rows(&locks(holder)).await, table("TABLE t SHARED_WRITE TRANSACTION GRANTED"));
    let look = async {
        let waits = "SELECT object_schema, object_name, waiting_pid, waiting_account, waiting_lock_type, waiting_query, blocking_pid, blocking_lock_type, sql_kill_blocking_connection FROM sys.schema_table_lock_waits";
        let found = loop {
            let found = c.rows(waits).await;
            if !found.is_empty() {
                break found;
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(found.len(), 1);
        let expected = [
            "d".to_owned(), "t".into(), waiter.to_string(), "root@localhost".into(), "EXCLUSIVE".into(), "DROP TABLE t".into(), holder.to_string(), "SHARED_WRITE".into(),
            format!("KILL {holder}"),
        ];
        assert_eq!(found[0], expected);
        assert_eq!(c.rows(&locks(waiter)).await.last().unwrap().join(" "), "TABLE t EXCLUSIVE TRANSACTION PENDING");
        a.ok("COMMIT").await;
    };
    tokio::join!(b.ok("DROP TABLE t"), look);
    a.ok("CREATE TABLE t (id INT PRIMARY KEY)").await;
    a.ok("LOCK TABLES t READ").await;
    assert_eq!(c.rows(&locks(holder)).await, table("TABLE t SHARED_READ_ONLY TRANSACTION GRANTED"));
    a.ok("UNLOCK TABLES").await;
    a.ok("FLUSH TABLES WITH READ LOCK").await;
    assert_eq!(c.rows(&locks(holder)).await, table("COMMIT NULL SHARED EXPLICIT GRANTED|GLOBAL NULL SHARED EXPLICIT GRANTED"));
    a.ok("UNLOCK TABLES").await;
    assert_eq!(c.rows(&locks(holder)).await, table(""));
}

#[tokio::test]
async fn waits_for_rows_as_sys_shows_them() {
    let server = Server::new();
    let (mut a, mut b, mut c) = (server.client().await, server.client().await, server.client().await);
    let (holder, waiter) = (connection(&mut a).await, connection(&mut b).await);
    a.ok("CREATE TABLE t (id INT PRIMARY KEY, v INT)").await;
    a.ok("INSERT INTO t VALUES (1, 1), (2, 2)").await;
    a.ok("BEGIN").await;
    a.ok("UPDATE t SET v = 5 WHERE id = 1").await;
    let engine = server.instance.database().engine().clone();
    let look = async {
        while engine.stats().row_lock_current_waits == 0 {
            tokio::task::yield_now().await;
        }
        let columns = "locked_table, locked_index, locked_type, waiting_pid, waiting_query, waiting_lock_mode, blocking_pid, blocking_query, blocking_lock_mode, blocking_trx_rows_modified, sql_kill_blocking_query";
        let found = c.rows(&format!("SELECT {columns} FROM sys.innodb_lock_waits")).await;
        let whole = c.value("SELECT waiting_query FROM sys.x$innodb_lock_waits").await;
        a.ok("COMMIT").await;
        (found, whole)
    };
    let statement = "UPDATE t SET v = v + 1 WHERE id = 1 /* which makes of this one a long statement */ AND v < 100";
    let (_, (found, whole)) = tokio::join!(b.ok(statement), look);
    let expected = [
        "`d`.`t`".to_owned(),
        "PRIMARY".into(),
        "RECORD".into(),
        waiter.to_string(),
        "UPDATE t SET v = v + 1 WHERE i ...  long statement */ AND v < 100".into(),
        "X,REC_NOT_GAP".into(),
        holder.to_string(),
        "NULL".into(),
        "X,REC_NOT_GAP".into(),
        "1".into(),
        format!("KILL QUERY {holder}"),
    ];
    assert_eq!((found.len(), &found[0][..], whole.as_str()), (1, &expected[..], statement));
    assert_eq!(c.rows("SELECT * FROM sys.innodb_lock_waits").await, table(""));
}

#[tokio::test]
async fn the_servers_own_tables_are_listed() {
    let server = Server::new();
    let mut c = server.client().await;
    let listed = "SELECT CONCAT_WS(' ', table_schema, table_name, table_type, engine) FROM information_schema.tables WHERE table_name IN ('user', 'innodb_lock_waits', 'threads') ORDER BY 1";
    assert_eq!(c.rows(listed).await, [["mysql user BASE TABLE InnoDB"], ["performance_schema threads SYSTEM VIEW"], ["sys innodb_lock_waits VIEW"]]);
    let columns = "SELECT COUNT(*) > 40, COUNT(*) = SUM(table_schema = 'mysql') FROM information_schema.columns WHERE table_schema = 'mysql' AND table_name = 'user'";
    assert_eq!(c.rows(columns).await, table("1 1"));
    c.ok("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT, KEY (v))").await;
    c.ok("INSERT INTO t (v) VALUES (1), (2)").await;
    let space = "SELECT name, row_format, file_size >= 32768, file_size = allocated_size FROM information_schema.innodb_tablespaces WHERE name = 'd/t'";
    assert_eq!(c.rows(space).await, table("d/t Dynamic 1 1"));
    let stats = "SELECT stats_initialized, num_rows, clust_index_size > 0, other_index_size > 0, autoinc FROM information_schema.innodb_tablestats WHERE name = 'd/t'";
    assert_eq!(c.rows(stats).await, table("Initialized 2 1 1 3"));
    let pool = "SELECT pool_size = free_buffers + database_pages, pool_size > 0, number_pages_get > number_pages_read, hit_rate > 0, number_pages_created > 0 FROM information_schema.innodb_buffer_pool_stats";
    assert_eq!(c.rows(pool).await, table("1 1 1 1 1"));
    assert!(c.rows("SELECT * FROM mysql.slave_master_info").await.is_empty() && c.rows("SELECT * FROM mysql.gtid_executed").await.is_empty());
}

#[tokio::test]
async fn tables_tell_when_their_rows_were_changed() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, v INT)").await;
    c.ok("CREATE TABLE u (id INT PRIMARY KEY, v INT)").await;
    let changed = "SELECT table_name, update_time >= create_time FROM information_schema.tables WHERE table_schema = 'd' ORDER BY 1";
    assert_eq!(c.rows(changed).await, table("t NULL|u NULL"));
    c.ok("BEGIN").await;
    c.ok("INSERT INTO t VALUES (1, 1)").await;
    assert_eq!(c.rows(changed).await, table("t NULL|u NULL"));
    c.ok("COMMIT").await;
    assert_eq!(c.rows(changed).await, table("t 1|u NULL"));
    c.ok("INSERT INTO u VALUES (1, 1)").await;
    let status = c.rows("SHOW TABLE STATUS").await;
    assert!(status.iter().all(|row| row[12] >= row[11] && row[12] != "NULL"), "{status:?}");
}

#[tokio::test]
async fn an_update_in_place_is_a_change() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, v INT)").await;
    c.ok("INSERT INTO t VALUES (1, 1)").await;
    let changed = |server: &Server| server.instance.database().catalog().table("d", "t").unwrap().changed_at().unwrap();
    let before = changed(&server);
    while std::time::SystemTime::now() <= before + std::time::Duration::from_micros(1) {
        tokio::task::yield_now().await;
    }
    c.ok("UPDATE t SET v = 2").await;
    assert!(changed(&server) > before);
}

/// What another session does to its table lets a handler begin anew, what its own does closes it.
#[tokio::test]
async fn handlers_outlive_definitions_of_others() {
    let server = Server::new();
    let (mut a, mut b) = (server.client().await, server.client().await);
    a.ok("CREATE TABLE t (id INT PRIMARY KEY)").await;
    a.ok("INSERT INTO t VALUES (1), (2), (3)").await;
    a.ok("HANDLER t OPEN").await;
    assert_eq!(a.rows("HANDLER t READ NEXT LIMIT 2").await, [["1"], ["2"]]);
    b.ok("ALTER TABLE t ADD c INT").await;
    assert_eq!(a.rows("HANDLER t READ NEXT").await, [["1", "NULL"]]);
    b.ok("DROP TABLE t").await;
    assert_eq!(a.error("HANDLER t READ NEXT").await.0, 1146);
    b.ok("CREATE TABLE t (z INT)").await;
    b.ok("INSERT INTO t VALUES (7)").await;
    assert_eq!(a.rows("HANDLER t READ NEXT").await, [["7"]]);
    a.ok("ALTER TABLE t ADD c INT").await;
    assert_eq!(a.error("HANDLER t READ NEXT").await.0, 1109);
    // Away and back, in two statements or in one.
    for renames in [["RENAME TABLE t TO u", "RENAME TABLE u TO t"], ["RENAME TABLE t TO u, u TO t", "DO 1"]] {
        a.ok("HANDLER t OPEN").await;
        for sql in renames {
            a.ok(sql).await;
        }
        assert_eq!(a.error("HANDLER t READ NEXT").await.0, 1109, "{renames:?}");
    }
}

/// A literal that the column's character set cannot hold is error 1267, whatever the query that selects it does with its rows.
#[tokio::test]
async fn unions_refuse_literals_that_would_be_lost() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (a VARCHAR(9) CHARACTER SET latin1)").await;
    c.ok("INSERT INTO t VALUES ('é')").await;
    for lost in ["SELECT '漢'", "SELECT DISTINCT '漢' FROM t", "(SELECT '漢' FROM t LIMIT 1)", "(SELECT DISTINCT '漢' FROM t LIMIT 1)", "(SELECT '漢' FROM t ORDER BY a LIMIT 1)"] {
        assert_eq!(c.error(&format!("SELECT a FROM t UNION {lost}")).await.0, 1267, "{lost}");
        assert_eq!(c.error(&format!("{lost} UNION SELECT a FROM t")).await.0, 1267, "{lost}");
    }
    assert_eq!(c.rows("SELECT a FROM t UNION SELECT DISTINCT 'ä' FROM t ORDER BY a").await, table("é|ä"));
}

/// SET NAMES takes what utf8mb4 alone means, a character set that is assigned its own default, as in MySQL 8.0.
#[tokio::test]
async fn an_assigned_character_set_takes_its_default_collation() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("SET default_collation_for_utf8mb4 = utf8mb4_general_ci").await;
    c.ok("SET NAMES utf8mb4").await;
    assert_eq!(c.value("SELECT @@collation_connection").await, "utf8mb4_general_ci");
    c.ok("SET character_set_connection = utf8mb4").await;
    assert_eq!(c.value("SELECT @@collation_connection").await, "utf8mb4_0900_ai_ci");
    c.ok("SET GLOBAL collation_connection = utf8mb4_bin").await;
    c.ok("SET character_set_connection = DEFAULT").await;
    assert_eq!(c.rows("SELECT @@character_set_connection, @@collation_connection").await, table("utf8mb4 utf8mb4_bin"));
    c.ok("SET character_set_connection = latin1").await;
    assert_eq!(c.value("SELECT @@collation_connection").await, "latin1_swedish_ci");
    c.ok("SET character_set_connection = utf8mb4").await;
    assert_eq!(c.value("SELECT @@collation_connection").await, "utf8mb4_0900_ai_ci");
}
