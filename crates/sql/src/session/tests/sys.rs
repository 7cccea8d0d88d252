//! The schema sys, as far as MySQL has other answers. The rest is in `tests/golden/sys_schema.sql`.

use super::{Answer, Server, table};

/// What a view says that it is can be said again.
#[tokio::test]
async fn every_view_can_be_read_and_shown() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (a INT PRIMARY KEY, b INT, KEY (b), KEY both_of (b, a))").await;
    let views = c.rows("SELECT table_name FROM information_schema.tables WHERE table_schema = 'sys' AND table_type = 'VIEW'").await;
    assert_eq!(views.len(), 100);
    for view in views.iter().map(|row| &row[0]) {
        c.rows(&format!("SELECT * FROM sys.`{view}`")).await;
        let columns = c.rows(&format!("DESCRIBE sys.`{view}`")).await;
        assert!(!columns.is_empty(), "{view}");
    }
    let defined = c.rows("SELECT table_name FROM information_schema.views WHERE table_schema = 'sys'").await;
    assert_eq!(defined.len(), 100);
    for view in defined.iter().map(|row| &row[0]) {
        let shown = c.rows(&format!("SHOW CREATE VIEW sys.`{view}`")).await[0][1].clone();
        let head = format!("CREATE ALGORITHM=UNDEFINED DEFINER=`mysql.sys`@`localhost` SQL SECURITY INVOKER VIEW `sys`.`{view}` AS ");
        let text = shown.strip_prefix(&head).unwrap_or_else(|| panic!("{shown}"));
        c.ok(&format!("CREATE OR REPLACE SQL SECURITY INVOKER VIEW again AS {text}")).await;
        assert_eq!(c.rows("DESCRIBE again").await, c.rows(&format!("DESCRIBE sys.`{view}`")).await, "{view}");
    }
}

#[tokio::test]
async fn every_routine_can_be_shown() {
    let server = Server::new();
    let mut c = server.client().await;
    let routines = c.rows("SELECT routine_type, routine_name FROM information_schema.routines WHERE routine_schema = 'sys' ORDER BY 2").await;
    assert_eq!(routines.len(), 29);
    for routine in &routines {
        let shown = c.rows(&format!("SHOW CREATE {} sys.{}", routine[0], routine[1])).await;
        assert!(shown[0][2].starts_with("CREATE DEFINER=`mysql.sys`@`localhost`"), "{shown:?}");
    }
    assert_eq!(c.rows("SHOW FUNCTION STATUS WHERE Db = 'sys'").await.len() + c.rows("SHOW PROCEDURE STATUS WHERE Db = 'sys'").await.len(), routines.len());
}

#[tokio::test]
async fn nobody_changes_it() {
    let server = Server::new();
    let mut c = server.client().await;
    for statement in [
        "DROP VIEW sys.version",
        "CREATE OR REPLACE VIEW sys.version AS SELECT 1",
        "CREATE VIEW sys.another AS SELECT 1",
        "DROP FUNCTION sys.format_time",
        "DROP FUNCTION IF EXISTS sys.another",
        "ALTER FUNCTION sys.format_time COMMENT 'x'",
        "DROP PROCEDURE sys.table_exists",
        "CREATE FUNCTION sys.another() RETURNS INT NO SQL RETURN 1",
        "DROP TABLE sys.sys_config",
        "DROP DATABASE sys",
    ] {
        assert_eq!(c.error(statement).await.0, 3552, "{statement}");
    }
    assert!(matches!(c.run("UPDATE sys.sys_config SET value = 1").await, Answer::Error(_)));
    assert!(matches!(c.run("DELETE FROM sys.statement_analysis").await, Answer::Error(_)));
    assert_eq!(c.rows("SELECT sys_version FROM sys.version").await, table("2.0.0"));
}

/// A dump drops what is there and makes it: that leaves the schema as it is.
#[tokio::test]
async fn a_restore_leaves_it_as_it_is() {
    let server = Server::new();
    let mut c = server.client().await;
    let version = c.rows("SHOW CREATE VIEW sys.version").await;
    for statement in [
        "DROP TABLE IF EXISTS sys.version",
        "DROP VIEW IF EXISTS sys.version, sys.metrics",
        "CREATE ALGORITHM=MERGE DEFINER=`mysql.sys`@`localhost` SQL SECURITY INVOKER VIEW sys.version AS SELECT 1 AS sys_version",
        "DROP FUNCTION IF EXISTS sys.format_time",
        "CREATE FUNCTION sys.Format_time() RETURNS INT NO SQL RETURN 1",
        "DROP PROCEDURE IF EXISTS sys.ps_setup_save",
        "CREATE PROCEDURE sys.ps_setup_save() SELECT 1",
    ] {
        c.ok(statement).await;
        assert_eq!(c.rows("SHOW WARNINGS").await, [["Note", "3552", "Access to system schema 'sys' is rejected."]], "{statement}");
    }
    assert_eq!(c.rows("SHOW CREATE VIEW sys.version").await, version);
    assert_eq!(c.error("CALL sys.ps_setup_save()").await.0, 1305);
    assert_eq!(c.error("DROP VIEW IF EXISTS sys.version, sys.another").await.0, 3552);
}

#[tokio::test]
async fn its_settings_can_be_restored() {
    let server = Server::new();
    let mut c = server.client().await;
    let made = c.rows("SHOW CREATE TABLE sys.sys_config").await[0][1].clone();
    c.ok("USE sys").await;
    c.ok("DROP TABLE IF EXISTS sys_config").await;
    c.ok(&made).await;
    c.ok("LOCK TABLES sys_config WRITE").await;
    c.ok("ALTER TABLE sys_config DISABLE KEYS").await;
    c.ok("INSERT INTO sys_config (variable, value) VALUES ('statement_truncate_len', '32')").await;
    c.ok("UNLOCK TABLES").await;
    c.ok("CREATE TRIGGER sys_config_insert_set_user BEFORE INSERT ON sys_config FOR EACH ROW SET NEW.set_by = USER()").await;
    assert_eq!(c.rows("SELECT variable, value FROM sys_config").await, table("statement_truncate_len 32"));
    assert_eq!(c.rows("SHOW TABLES LIKE 'sys_config'").await.len(), 1);
    c.ok("DROP TABLE sys_config").await;
    assert_eq!(c.rows("SELECT COUNT(*) FROM sys_config").await, table("6"));
}

#[tokio::test]
async fn a_users_view_reads_it_under_lock_tables() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE VIEW v AS SELECT sys_version FROM sys.version").await;
    c.ok("CREATE TABLE t (a INT)").await;
    c.ok("LOCK TABLES v READ, sys.statement_analysis READ, t WRITE").await;
    assert_eq!(c.rows("SELECT * FROM v").await, table("2.0.0"));
    c.ok("INSERT INTO t VALUES (1)").await;
    c.rows("SELECT * FROM sys.statement_analysis").await;
    assert_eq!(c.error("SELECT * FROM sys.metrics").await.0, 1100);
    c.ok("UNLOCK TABLES").await;
}

/// Answers of MySQL 8.0.12.
#[tokio::test]
async fn its_readers_need_what_is_below_it() {
    let server = Server::new();
    let mut root = server.connect();
    root.ok("CREATE USER u@localhost").await;
    root.ok("GRANT SELECT ON sys.* TO u@localhost").await;
    let mut u = server.connect_as("u");
    assert_eq!(u.rows("SELECT sys_version FROM sys.version").await, table("2.0.0"));
    assert_eq!(u.rows("SELECT * FROM sys.schema_redundant_indexes").await, table(""));
    assert_eq!(u.error("SELECT * FROM sys.x$statement_analysis").await.0, 1356);
    assert_eq!(u.error("SELECT sys.format_bytes(1)").await.0, 1370);
    assert_eq!(u.error("CALL sys.ps_setup_show_enabled_consumers()").await.0, 1370);
    assert_eq!(u.error("SHOW CREATE VIEW sys.version").await.0, 1142);
    assert_eq!(u.rows("DESCRIBE sys.host_summary").await.len(), 12);
    u.ok("SET div_precision_increment = 9").await;
    let latency = "SELECT numeric_scale FROM information_schema.columns WHERE table_schema = 'sys' AND table_name = 'x$user_summary' AND column_name = 'statement_avg_latency'";
    assert_eq!(u.value(latency).await, "4");
    root.ok("GRANT SELECT ON performance_schema.* TO u@localhost").await;
    u.rows("SELECT * FROM sys.x$statement_analysis").await;
    assert_eq!(u.error("SELECT * FROM sys.statement_analysis").await.0, 1356);
    root.ok("GRANT EXECUTE ON FUNCTION sys.format_time TO u@localhost").await;
    root.ok("GRANT EXECUTE ON sys.* TO u@localhost").await;
    u.rows("SELECT * FROM sys.statement_analysis").await;
    assert_eq!(u.value("SELECT sys.format_bytes(1)").await, "1 bytes");
}

/// Answers of MySQL 8.0.12.
#[tokio::test]
async fn what_clients_say_of_themselves_is_seen_by_their_users() {
    let server = Server::new();
    let mut root = server.connect();
    root.ok("CREATE USER u@localhost").await;
    root.session.process().set_attributes(vec![("program_name".into(), "of_root".into())]);
    let other = server.connect_as("u");
    other.session.process().set_attributes(vec![("program_name".into(), "of_u".into())]);
    let mut u = server.connect_as("u");
    assert_eq!(u.rows("SELECT attr_value FROM performance_schema.session_account_connect_attrs").await, table("of_u"));
    assert_eq!(u.error("SELECT attr_value FROM performance_schema.session_connect_attrs").await.0, 1142);
    assert_eq!(root.rows("SELECT attr_value FROM performance_schema.session_connect_attrs ORDER BY 1").await, table("of_root|of_u"));
}

#[tokio::test]
async fn statements_and_sessions_are_told_of() {
    let server = Server::new();
    let mut c = server.client().await;
    for n in 0..3 {
        c.rows(&format!("SELECT {n} AS found")).await;
    }
    assert_eq!(c.rows("SELECT query, db, exec_count, err_count, rows_sent, rows_sent_avg FROM sys.statement_analysis WHERE query LIKE '%`found`'").await, [["SELECT ? AS `found`", "d", "3", "0", "3", "1"]]);
    let latencies = c.rows("SELECT total_latency FROM sys.x$statement_analysis").await;
    let latencies: Vec<u64> = latencies.iter().map(|row| row[0].parse().unwrap()).collect();
    assert!(latencies.len() > 2 && latencies.is_sorted_by(|a, b| a >= b), "{latencies:?}");
    c.error("SELECT nosuch AS found").await;
    assert_eq!(c.value("SELECT errors FROM sys.statements_with_errors_or_warnings WHERE query LIKE 'SELECT `nosuch`%'").await, "1");

    drop(server.connect());
    let mut other = server.connect();
    for (name, account) in [("accounts", "root localhost"), ("users", "root"), ("hosts", "localhost")] {
        assert_eq!(c.rows(&format!("SELECT * FROM performance_schema.{name}")).await, table(&format!("{account} 2 3")), "{name}");
    }
    assert_eq!(c.rows("SELECT user, current_connections, total_connections, unique_hosts FROM sys.user_summary").await, table("root 2 3 1"));
    assert_eq!(c.rows("SELECT conn_id = CONNECTION_ID(), user, db, command FROM sys.session ORDER BY conn_id").await, table("1 root@localhost d Query|0 root@localhost NULL Sleep"));
    other.ok("CREATE TABLE d.t (a INT)").await;
    other.ok("BEGIN").await;
    other.ok("INSERT INTO d.t VALUES (1)").await;
    let session = "SELECT trx_state, trx_autocommit, trx_latency IS NULL, statement_latency IS NULL FROM sys.session WHERE conn_id";
    assert_eq!(c.rows(&format!("{session} <> CONNECTION_ID()")).await, table("ACTIVE NO 0 1"));
    assert_eq!(c.rows(&format!("{session} = CONNECTION_ID()")).await[0][3], "0");
    let last = "SELECT last_statement, rows_affected, last_statement_latency IS NULL, current_statement FROM sys.session WHERE conn_id <> CONNECTION_ID()";
    assert_eq!(c.rows(last).await, [["INSERT INTO d.t VALUES (1)", "1", "0", "NULL"]]);
    other.ok("COMMIT").await;
    assert_eq!(c.rows(&format!("{session} <> CONNECTION_ID()")).await, table("NULL NULL 1 1"));
    drop(other);

    c.session.process().set_tls("TLSv1.3", "TLS13_AES_256_GCM_SHA384");
    assert_eq!(c.rows("SELECT ssl_version, ssl_cipher, ssl_sessions_reused FROM sys.session_ssl_status").await, table("TLSv1.3 TLS13_AES_256_GCM_SHA384 0"));
    c.session.process().set_attributes(vec![("program_name".into(), "here".into()), ("_pid".into(), "7".into()), ("long".into(), "x".repeat(600))]);
    assert_eq!(c.rows("SELECT pid, program_name FROM sys.session WHERE conn_id = CONNECTION_ID()").await, table("7 here"));
    assert_eq!(c.rows("SELECT attr_name FROM performance_schema.session_account_connect_attrs ORDER BY 1").await, table("_pid|program_name"));

    assert_eq!(c.value("SELECT PS_THREAD_ID(CONNECTION_ID()) = PS_CURRENT_THREAD_ID()").await, "1");
    assert_eq!(c.rows("SELECT PS_THREAD_ID(4294967296), PS_THREAD_ID(NULL)").await, table("NULL NULL"));
    let counted = c.value("SELECT variable_value FROM performance_schema.status_by_thread WHERE thread_id = PS_CURRENT_THREAD_ID() AND variable_name = 'Com_select'").await;
    assert!(counted.parse::<u64>().unwrap() > 3, "{counted}");
}
