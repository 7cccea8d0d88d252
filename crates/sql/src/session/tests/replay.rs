//! BINLOG statements: what `mysqlbinlog` and `mariadb-binlog` print, replayed.

use super::{Client, Server};

/// MySQL 8.0.12's log of changes of `d.t` (id INT PRIMARY KEY, v VARCHAR(20), b LONGBLOB): its format description.
const MYSQL_FORMAT: &str = "WgoDaw8FAAAAeAAAAHwAAAAAAAQAOC4wLjEyAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA \
    AAAAAAAAAAAAAAAAAABaCgNrEwANAAgAAAAABAAEAAAAYAAEGggAAAAICAgCAAAACgoKKioAEjQA \
    CgFbTwK/";
/// INSERT INTO t VALUES (1,'a','x'),(2,'b','y')
const MYSQL_INSERT: &str = "WwoDaxMFAAAANwAAAPYCAAAAAFUAAAAAAAEAAWQAAXQAAwMP/ANQAAQGAQEAAwT8/wA/+RnD0g== \
    WwoDax4FAAAAOwAAADEDAAAAAFUAAAAAAAEAAgAD/wABAAAAAWEBAAAAeAACAAAAAWIBAAAAeY3E \
    HwE=";
/// UPDATE t SET v = 'c'
const MYSQL_UPDATE: &str = "WwoDaxMFAAAANwAAACMEAAAAAFUAAAAAAAEAAWQAAXQAAwMP/ANQAAQGAQEAAwT8/wA/JdsTEw== \
    WwoDax8FAAAAVAAAAHcEAAAAAFUAAAAAAAEAAgAD//8AAQAAAAFhAQAAAHgAAQAAAAFjAQAAAHgA \
    AgAAAAFiAQAAAHkAAgAAAAFjAQAAAHnsiv15";
/// DELETE FROM t WHERE id = 2
const MYSQL_DELETE: &str = "WwoDaxMFAAAANwAAAK4EAAAAAFUAAAAAAAEAAWQAAXQAAwMP/ANQAAQGAQEAAwT8/wA/tamK3w== \
    WwoDayAFAAAALwAAAN0EAAAAAFUAAAAAAAEAAgAD/wACAAAAAWMBAAAAeQUhK4I=";
/// The same of MariaDB 10.11.
const MARIADB_FORMAT: &str = "WgoDaw8GAAAA/AAAAAABAAAAAAQAMTAuMTEuMTktTWFyaWFEQi0wK2RlYjEydTEtbG9nAAAAAAAA \
    AAAAAAAAAAAAAAAAAABaCgNrEzgNAAgAEgAEBAQEEgAA5AAEGggAAAAICAgCAAAACgoKAAAAAAAA \
    CgoKAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA \
    AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA \
    AAAAAAAAAAAEEwQADQgICAoKCgEOKl0Y";
const MARIADB_INSERT: &str = "WwoDaxMGAAAALgAAABwDAAAAABIAAAAAAAEAAWQAAXQAAwMP/ANQAAQG6xRy1g== \
    WwoDaxcGAAAAOQAAAFUDAAAAABIAAAAAAAEAAwf4AQAAAAFhAQAAAHj4AgAAAAFiAQAAAHl9MjVu";
const MARIADB_UPDATE: &str = "WwoDaxMGAAAALgAAAPUDAAAAABIAAAAAAAEAAWQAAXQAAwMP/ANQAAQGX1eaVg== \
    WwoDaxgGAAAAUgAAAEcEAAAAABIAAAAAAAEAAwcH+AEAAAABYQEAAAB4+AEAAAABYwEAAAB4+AIA \
    AAABYgEAAAB5+AIAAAABYwEAAAB56UQY1g==";
const MARIADB_DELETE: &str = "WwoDaxMGAAAALgAAAKQEAAAAABIAAAAAAAEAAWQAAXQAAwMP/ANQAAQG+s7twQ== \
    WwoDaxkGAAAALQAAANEEAAAAABIAAAAAAAEAAwf4AgAAAAFjAQAAAHkV+MX7";

async fn server() -> (Server, Client) {
    let server = Server::with(|settings| {
        settings.set("log_bin", Some("ON")).unwrap();
    });
    let mut client = server.client().await;
    client.ok("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20), b LONGBLOB)").await;
    (server, client)
}

fn binlog(text: &str) -> String {
    format!("BINLOG '\n{text}\n'")
}

const ROWS: &str = "SELECT CONCAT(id, v, b) FROM t";

#[tokio::test]
async fn events_change_rows() {
    for [format, insert, update, delete] in
        [[MYSQL_FORMAT, MYSQL_INSERT, MYSQL_UPDATE, MYSQL_DELETE], [MARIADB_FORMAT, MARIADB_INSERT, MARIADB_UPDATE, MARIADB_DELETE]]
    {
        let (_server, mut c) = server().await;
        c.ok(&binlog(format)).await;
        c.ok(&binlog(insert)).await;
        assert_eq!(c.rows(ROWS).await, [["1ax"], ["2by"]]);
        // They are a part of the session's transaction, and a statement of it.
        c.ok("BEGIN").await;
        c.ok(&binlog(update)).await;
        assert_eq!(c.rows(ROWS).await, [["1cx"], ["2cy"]]);
        assert_eq!(c.error(&binlog(insert)).await.0, 1062);
        assert_eq!(c.rows(ROWS).await, [["1cx"], ["2cy"]]);
        c.ok("ROLLBACK").await;
        assert_eq!(c.rows(ROWS).await, [["1ax"], ["2by"]]);
        c.ok("DELETE FROM t WHERE id = 2").await;
        assert_eq!(c.error(&binlog(update)).await.0, 1032);
        assert_eq!(c.rows(ROWS).await, [["1ax"]], "a statement is done or not");
        c.ok("INSERT INTO t VALUES (2, 'c', 'y')").await;
        c.ok(&binlog(delete)).await;
        assert_eq!(c.rows(ROWS).await, [["1ax"]]);
        // All in one statement, each text with its own padding, and in pieces as MariaDB's programs write a long one.
        c.ok("TRUNCATE TABLE t").await;
        c.ok(&binlog(&[format, insert, update].join("\n"))).await;
        let (first, second) = delete.split_at(21);
        c.ok(&format!("SET @a = '{first}', @b = '{second}'")).await;
        c.ok("BINLOG @a, @b").await;
        assert_eq!(c.rows(ROWS).await, [["1cx"]]);
        assert_eq!(c.value("SELECT CONCAT_WS('', @a, @b)").await, "");
        assert_eq!(c.error("BINLOG @a, @b").await.0, 1232);
        // Our own log tells of them as of all rows.
        let events = c.rows("SHOW BINLOG EVENTS").await;
        assert_eq!(events.iter().filter(|e| e[2].ends_with("_rows")).count(), 7, "{events:?}");
    }
}

/// As MySQL 8.0.12 answers.
#[tokio::test]
async fn what_is_refused() {
    let (server, mut c) = server().await;
    for (sql, code) in [
        (binlog(MYSQL_INSERT), 1609),
        ("BINLOG ''".into(), 1149),
        ("BINLOG 'abc'".into(), 1575),
        ("BINLOG '!!!!'".into(), 1575),
        ("BINLOG 'YWJj'".into(), 1575),
        // The beginning of an event.
        (binlog(&MYSQL_FORMAT.replace(' ', "")[..40]), 1575),
        ("BINLOG 1".into(), 1064),
        ("BINLOG @a, @b, @c".into(), 1064),
        // A rotation: no row event.
        ("BINLOG 'AAAAAAQBAAAAKwAAAAAAAAAgAAQAAAAAAAAAYmlubG9nLjAwMDAwMgAAAAA='".into(), 1730),
    ] {
        assert_eq!(c.error(&sql).await.0, code, "{sql}");
    }
    c.ok(&binlog(MYSQL_FORMAT)).await;
    // A bit of a row, under the checksum.
    let insert: String = MYSQL_INSERT.split_whitespace().collect();
    let damaged = insert.replacen("AWEBAAAAeA", "AWIBAAAAeA", 1);
    assert_ne!(damaged, insert);
    assert_eq!(c.error(&binlog(&damaged)).await.0, 1594);
    for (begin, code, end) in [("START TRANSACTION READ ONLY", 1792, "COMMIT"), ("LOCK TABLES t READ", 1099, "UNLOCK TABLES")] {
        c.ok(begin).await;
        assert_eq!(c.error(&binlog(&insert)).await.0, code, "{begin}");
        c.ok(end).await;
    }
    c.ok("XA START 'a'").await;
    c.ok("XA END 'a'").await;
    assert_eq!(c.error(&binlog(&insert)).await.0, 1399);
    c.ok("XA ROLLBACK 'a'").await;
    // A format description is the session's.
    let mut other = server.client().await;
    assert_eq!(other.error(&binlog(&insert)).await.0, 1609);
    c.ok("ALTER TABLE t MODIFY id BIGINT").await;
    assert_eq!(c.error(&binlog(&insert)).await.0, 1677);
    c.ok("RENAME TABLE t TO s").await;
    assert_eq!(c.error(&binlog(&insert)).await.0, 1146);
    assert_eq!(c.rows("SELECT * FROM s").await.len(), 0);
    assert_eq!(c.value("SELECT VARIABLE_VALUE FROM performance_schema.global_status WHERE VARIABLE_NAME = 'Com_binlog'").await, "15");
    // A table map is for its own statement. MySQL passes over the rows; they are not to be lost here without a word.
    c.ok("ALTER TABLE s RENAME TO t, MODIFY id INT").await;
    let bytes = crate::functions::from_base64(insert.as_bytes(), true).unwrap();
    let size = u32::from_le_bytes(bytes[9..13].try_into().unwrap()) as usize;
    for events in [&bytes[..size], &bytes[size..]] {
        let hex: String = events.iter().map(|byte| format!("{byte:02x}")).collect();
        let text = c.value(&format!("SELECT TO_BASE64(X'{hex}')")).await;
        if events.len() == size {
            c.ok(&binlog(&text)).await;
        } else {
            assert_eq!(c.error(&binlog(&text)).await.0, 1594);
        }
    }
    assert_eq!(c.rows("SELECT * FROM t").await.len(), 0);
    c.ok(&binlog(&insert)).await;
    assert_eq!(c.rows("SELECT * FROM t").await.len(), 2);
}

/// What those programs print around the events.
#[tokio::test]
async fn the_settings_of_another_server() {
    let (_server, mut c) = server().await;
    for sql in [
        "/*!50530 SET @@SESSION.PSEUDO_SLAVE_MODE=1*/",
        "/*!40019 SET @@session.max_delayed_threads=0*/",
        "SET @@session.pseudo_thread_id=77",
        "SET @@session.foreign_key_checks=1, @@session.sql_auto_is_null=0, @@session.unique_checks=1, @@session.autocommit=1, @@session.check_constraint_checks=1, @@session.sql_if_exists=0, @@session.explicit_defaults_for_timestamp=1, @@session.system_versioning_insert_history=0/*!*/",
        "SET @@session.sql_mode=1411383296/*!*/",
        "SET @@session.character_set_client=utf8mb3,@@session.collation_connection=33,@@session.collation_server=8",
        "SET @@session.lc_time_names=0",
        "SET @@session.collation_database=DEFAULT",
        "/*!80014 SET @@session.original_server_version=80014*//*!*/",
        "/*!80014 SET @@session.immediate_server_version=80014*//*!*/",
        "/*!80001 SET @@session.original_commit_timestamp=1700000000123456*//*!*/",
        "/*!80011 SET @@session.default_collation_for_utf8mb4=255*//*!*/",
        "/*!80013 SET @@session.sql_require_primary_key=0*//*!*/",
        "/*!80016 SET @@session.default_table_encryption=0*//*!*/",
        "/*!*/",
        "/*M!100001 SET @@session.gtid_seq_no=1*/",
        "# a line",
    ] {
        c.ok(sql).await;
    }
    assert_eq!(c.error("").await.0, 1065);
    assert_eq!(c.value("SELECT @@sql_mode").await, "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION");
    assert_eq!(c.value("SELECT @@pseudo_thread_id").await, "77");
    c.ok("SET @@session.sql_mode=DEFAULT").await;
    // What is prepared is let go, and the session goes on.
    for sql in ["XA START 'a'", "INSERT INTO t VALUES (1, '', '')", "XA END 'a'", "XA PREPARE 'a'", "INSERT INTO t VALUES (2, '', '')", "XA COMMIT 'a'"] {
        c.ok(sql).await;
    }
    assert_eq!(c.value("SELECT COUNT(*) FROM t").await, "2");
    c.ok("SET @@session.pseudo_slave_mode=0").await;
    assert_eq!(c.error("SET @@session.sql_mode=1411383296").await.0, 1231);
    assert_eq!(c.error("SET @@session.lc_time_names=9999").await.0, 1649);
}
