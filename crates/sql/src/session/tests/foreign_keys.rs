//! Foreign keys between sessions, with their messages, and where golden answers cannot reach.

use std::time::Duration;

use super::{Client, Server, table};

/// A parent `p` with rows 1 to 3 and a child `c` that cascades deletes by `a` and refuses by `r`.
async fn family(c: &mut Client) {
    c.ok("CREATE TABLE p (id INT PRIMARY KEY, v VARCHAR(10) UNIQUE)").await;
    c.ok("CREATE TABLE c (id INT PRIMARY KEY, a INT, r VARCHAR(10), FOREIGN KEY (a) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE, CONSTRAINT refuses FOREIGN KEY (r) REFERENCES p (v))").await;
    c.ok("INSERT INTO p VALUES (1, 'a'), (2, 'b'), (3, 'c')").await;
}

#[tokio::test]
async fn errors_tell_the_constraint() {
    let server = Server::new();
    let mut c = server.client().await;
    family(&mut c).await;
    let child = "Cannot add or update a child row: a foreign key constraint fails (`d`.`c`, CONSTRAINT `c_ibfk_1` FOREIGN KEY (`a`) REFERENCES `p` (`id`) ON DELETE CASCADE ON UPDATE CASCADE)";
    assert_eq!(c.error("INSERT INTO c VALUES (1, 9, NULL)").await, (1452, child.into()));
    c.ok("INSERT INTO c VALUES (1, NULL, 'A')").await;
    let parent = "Cannot delete or update a parent row: a foreign key constraint fails (`d`.`c`, CONSTRAINT `refuses` FOREIGN KEY (`r`) REFERENCES `p` (`v`))";
    assert_eq!(c.error("DELETE FROM p").await, (1451, parent.into()));
    assert_eq!(c.error("DROP TABLE p").await, (3730, "Cannot drop table 'p' referenced by a foreign key constraint 'c_ibfk_1' on table 'c'.".into()));
    assert_eq!(c.error("TRUNCATE p").await, (1701, "Cannot truncate a table referenced in a foreign key constraint (`d`.`c`, CONSTRAINT `c_ibfk_1`)".into()));
    c.ok("CREATE DATABASE other").await;
    c.ok("CREATE TABLE other.x (a INT, FOREIGN KEY (a) REFERENCES d.p (id))").await;
    let elsewhere = c.error("INSERT INTO other.x VALUES (7)").await.1;
    assert!(elsewhere.ends_with("(`other`.`x`, CONSTRAINT `x_ibfk_1` FOREIGN KEY (`a`) REFERENCES `d`.`p` (`id`))"), "{elsewhere}");
    // What MySQL has refused with these errors since 8.0.13 and later; the golden answers are older.
    for (sql, code, message) in [
        ("CREATE TABLE x (a BIGINT, FOREIGN KEY (a) REFERENCES p (id))", 3780, "Referencing column 'a' and referenced column 'id' in foreign key constraint 'x_ibfk_1' are incompatible."),
        ("CREATE TABLE x (a INT UNSIGNED, CONSTRAINT u FOREIGN KEY (a) REFERENCES p (id))", 3780, "Referencing column 'a' and referenced column 'id' in foreign key constraint 'u' are incompatible."),
        ("CREATE TABLE x (a VARCHAR(9) COLLATE utf8mb4_bin, CONSTRAINT u FOREIGN KEY (a) REFERENCES p (v))", 3780, "Referencing column 'a' and referenced column 'v' in foreign key constraint 'u' are incompatible."),
        ("CREATE TABLE x (a INT NOT NULL, FOREIGN KEY (a) REFERENCES p (id) ON DELETE SET NULL)", 1830, "Column 'a' cannot be NOT NULL: needed in a foreign key constraint 'x_ibfk_1' SET NULL"),
        ("CREATE TABLE x (a INT CHECK (a > 0), CONSTRAINT f FOREIGN KEY (a) REFERENCES p (id) ON UPDATE CASCADE)", 3823, "Column 'a' cannot be used in a check constraint 'x_chk_1': needed in a foreign key constraint 'f' referential action."),
        ("CREATE TABLE x (a INT, FOREIGN KEY (a) REFERENCES p (id)) AS SELECT 1 AS a", 1235, ""),
        ("ALTER TABLE c DROP CONSTRAINT nothing", 3940, "Constraint 'nothing' does not exist."),
        ("ALTER TABLE c ADD CONSTRAINT c_ibfk_1 FOREIGN KEY (r) REFERENCES p (v)", 1826, "Duplicate foreign key constraint name 'c_ibfk_1'"),
        // The index that is made for it would have the name of another one.
        ("ALTER TABLE c ADD CONSTRAINT refuses FOREIGN KEY (a) REFERENCES p (id)", 1061, "Duplicate key name 'refuses'"),
        ("RENAME TABLE p TO q, nope TO r", 1146, "Table 'd.nope' doesn't exist"),
    ] {
        let (found, text) = c.error(sql).await;
        assert_eq!(found, code, "{sql}: {text}");
        assert!(message.is_empty() || text == message, "{sql}: {text}");
    }
    // An ENUM and a SET compare by number, as in MySQL.
    c.ok("CREATE TABLE ep (e ENUM('a', 'b') PRIMARY KEY, s SET('x', 'y'), UNIQUE KEY (s))").await;
    c.ok("CREATE TABLE ec (e ENUM('one', 'two', 'three'), s SET('v', 'w', 'z'), FOREIGN KEY (e) REFERENCES ep (e) ON UPDATE CASCADE, FOREIGN KEY (s) REFERENCES ep (s) ON UPDATE CASCADE)").await;
    c.ok("INSERT INTO ep VALUES ('a', 'x')").await;
    assert_eq!(c.error("INSERT INTO ec VALUES ('two', NULL)").await.0, 1452);
    c.ok("INSERT INTO ec VALUES ('one', 'v')").await;
    c.ok("UPDATE ep SET e = 'b', s = 'x,y'").await;
    assert_eq!(c.rows("SELECT * FROM ec").await, table("two v,w"));
    // DROP CONSTRAINT takes what has the name.
    c.ok("ALTER TABLE c DROP CONSTRAINT refuses").await;
    c.ok("INSERT INTO c VALUES (2, 2, 'whatever')").await;
    assert_eq!(c.error("DROP DATABASE d").await, (3730, "Cannot drop table 'p' referenced by a foreign key constraint 'x_ibfk_1' on table 'x'.".into()));
    c.ok("SET foreign_key_checks = 0").await;
    c.ok("DROP DATABASE d").await;
    c.ok("SET foreign_key_checks = 1").await;
    assert_eq!(c.error("INSERT INTO other.x VALUES (1)").await.0, 1452);
    c.ok("DROP DATABASE other").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_and_the_end_of_its_parent_wait_for_each_other() {
    let server = Server::new();
    let mut a = server.client().await;
    let mut b = server.client().await;
    family(&mut a).await;
    b.ok("SET innodb_lock_wait_timeout = 1").await;
    // Whoever has put a child in keeps the parent.
    a.ok("BEGIN").await;
    a.ok("INSERT INTO c VALUES (1, 1, NULL)").await;
    for refused in ["DELETE FROM p WHERE id = 1", "UPDATE p SET id = 9 WHERE id = 1"] {
        assert_eq!(b.error(refused).await.0, 1205, "{refused}");
    }
    // Others may reference it too, and what is no part of the key may change only after.
    b.ok("INSERT INTO c VALUES (2, 1, NULL)").await;
    a.ok("COMMIT").await;
    b.ok("DELETE FROM p WHERE id = 1").await;
    assert_eq!(b.rows("SELECT * FROM c").await, table(""));
    // A parent that goes: the child waits, and is refused or goes in.
    for (end, answer) in [("ROLLBACK", None), ("COMMIT", Some(1452))] {
        a.ok("BEGIN").await;
        a.ok("DELETE FROM p WHERE id = 2").await;
        assert_eq!(b.error("INSERT INTO c VALUES (5, 2, NULL)").await.0, 1205);
        let mut other = server.client().await;
        let waiting = tokio::spawn(async move {
            match other.run("INSERT INTO c VALUES (6, 2, NULL)").await {
                super::Answer::Error(e) => Some(e.code),
                _ => None,
            }
        });
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!waiting.is_finished());
        a.ok(end).await;
        assert_eq!(waiting.await.unwrap(), answer, "{end}");
        b.ok("DELETE FROM c").await;
    }
    // A parent that is not committed is none yet, and may become one.
    a.ok("BEGIN").await;
    a.ok("INSERT INTO p VALUES (7, 'x')").await;
    assert_eq!(b.error("INSERT INTO c VALUES (7, 7, NULL)").await.0, 1205);
    a.ok("COMMIT").await;
    b.ok("INSERT INTO c VALUES (7, 7, 'x')").await;
    // A child on its way out is waited for.
    a.ok("BEGIN").await;
    a.ok("DELETE FROM c").await;
    assert_eq!(b.error("UPDATE p SET v = 'y' WHERE id = 7").await.0, 1205);
    a.ok("ROLLBACK").await;
    assert_eq!(b.error("UPDATE p SET v = 'y' WHERE id = 7").await.0, 1451);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn definitions_wait_for_transactions_over_related_tables() {
    let server = Server::new();
    let mut a = server.client().await;
    let mut b = server.client().await;
    family(&mut a).await;
    b.ok("SET lock_wait_timeout = 1").await;
    a.ok("BEGIN").await;
    a.ok("INSERT INTO c VALUES (1, 1, 'a')").await;
    for sql in ["ALTER TABLE p DROP COLUMN v", "RENAME TABLE p TO q", "DROP TABLE c, p", "CREATE TABLE more (a INT, FOREIGN KEY (a) REFERENCES p (id))"] {
        assert_eq!(b.error(sql).await.0, 1205, "{sql}");
    }
    a.ok("ROLLBACK").await;
    // What a statement was prepared for is enforced as it is when it runs.
    a.ok("PREPARE gone FROM 'DELETE FROM p WHERE id = 3'").await;
    a.ok("PREPARE come FROM 'INSERT INTO c VALUES (3, 3, NULL)'").await;
    b.ok("CREATE TABLE more (a INT, FOREIGN KEY (a) REFERENCES p (id))").await;
    b.ok("INSERT INTO more VALUES (3)").await;
    assert_eq!(a.error("EXECUTE gone").await.0, 1451);
    b.ok("DROP TABLE more").await;
    a.ok("EXECUTE gone").await;
    assert_eq!(a.error("EXECUTE come").await.0, 1452);
    b.ok("ALTER TABLE c DROP FOREIGN KEY c_ibfk_1").await;
    a.ok("EXECUTE come").await;
    b.ok("RENAME TABLE p TO parent, c TO child").await;
    assert_eq!(b.error("INSERT INTO child VALUES (4, 4, 'no')").await.0, 1452);
    b.ok("INSERT INTO child VALUES (4, 4, 'a')").await;
    // LOCK TABLES of the child alone is enough to write it.
    a.ok("LOCK TABLES child WRITE").await;
    a.ok("INSERT INTO child VALUES (5, 5, 'b')").await;
    assert_eq!(a.error("INSERT INTO child VALUES (6, 5, 'none')").await.0, 1452);
    a.ok("UNLOCK TABLES").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_parent_is_made_again_from_its_child() {
    let server = Server::new();
    let (mut a, mut b) = (server.client().await, server.client().await);
    family(&mut a).await;
    a.ok("INSERT INTO c VALUES (1, 1, NULL), (2, 3, NULL)").await;
    a.ok("CREATE TABLE d (a INT)").await;
    a.ok("INSERT INTO d VALUES (1), (2), (3)").await;
    a.ok("SET foreign_key_checks = 0").await;
    a.ok("DROP TABLE p").await;
    a.ok("SET foreign_key_checks = 1").await;
    let made = a.ok("CREATE TABLE p (id INT PRIMARY KEY, v VARCHAR(10) UNIQUE) SELECT DISTINCT c.a AS id FROM d JOIN c USING (a)").await;
    assert_eq!(made.affected_rows, 2);
    b.ok("SET lock_wait_timeout = 1").await;
    for table in ["d", "c", "p"] {
        b.ok(&format!("ALTER TABLE {table} ADD COLUMN later INT")).await;
    }
    assert_eq!(b.error("INSERT INTO c (id, a) VALUES (3, 2)").await.0, 1452);
    b.ok("INSERT INTO c (id, a) VALUES (3, 3)").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_in_bulk_are_checked() {
    let server = Server::new();
    let mut c = server.client().await;
    family(&mut c).await;
    c.ok("CREATE TABLE many (id INT PRIMARY KEY, a INT, t VARCHAR(200), FOREIGN KEY (a) REFERENCES p (id))").await;
    let lines = |bad: Option<usize>| -> Vec<u8> {
        let line = |i: usize| format!("{i}\t{}\t{}\n", if Some(i) == bad { "77".into() } else if i % 10 == 0 { "\\N".into() } else { (i % 3 + 1).to_string() }, "x".repeat(150));
        (0..20_000).map(line).collect::<String>().into_bytes()
    };
    let file = tempfile::NamedTempFile::new().unwrap();
    let load = |ignore: &str| format!("LOAD DATA INFILE '{}' {ignore} INTO TABLE many", file.path().display());
    for bad in [0, 10_001, 19_999] {
        std::fs::write(file.path(), lines(Some(bad))).unwrap();
        assert_eq!(c.error(&load("")).await.0, 1452, "row {bad}");
        assert_eq!(c.value("SELECT COUNT(*) FROM many").await, "0");
        let loaded = c.ok(&load("IGNORE")).await;
        assert_eq!((loaded.affected_rows, loaded.warnings), (19_999, 1), "row {bad}");
        assert_eq!(c.rows("SHOW WARNINGS").await[0][1], "1452");
        c.ok("TRUNCATE many").await;
    }
    std::fs::write(file.path(), lines(None)).unwrap();
    assert_eq!(c.ok(&load("")).await.affected_rows, 20_000);
    c.ok("CREATE TABLE copy LIKE many").await;
    c.ok("ALTER TABLE copy ADD FOREIGN KEY (a) REFERENCES p (id), ADD FOREIGN KEY (id) REFERENCES many (id)").await;
    assert_eq!(c.ok("INSERT INTO copy SELECT * FROM many").await.affected_rows, 20_000);
    c.ok("DELETE FROM copy").await;
    assert_eq!(c.error("INSERT INTO copy SELECT id + 1, a, t FROM many").await.0, 1452);
    assert_eq!(c.value("SELECT COUNT(*) FROM copy").await, "0");
    assert_eq!(c.ok("INSERT IGNORE INTO copy SELECT id + 1, a, t FROM many").await.affected_rows, 19_999);
    // A row may have its parent before it in the same statement, not behind it.
    c.ok("CREATE TABLE tree (id INT PRIMARY KEY, parent INT, t VARCHAR(200), FOREIGN KEY (parent) REFERENCES tree (id))").await;
    assert_eq!(c.ok("INSERT INTO tree SELECT id, IF(id = 0, NULL, id - 1), t FROM many ORDER BY id").await.affected_rows, 20_000);
    c.ok("SET foreign_key_checks = 0").await;
    c.ok("DELETE FROM tree").await;
    c.ok("SET foreign_key_checks = 1").await;
    assert_eq!(c.error("INSERT INTO tree SELECT id, IF(id = 0, NULL, id - 1), t FROM many ORDER BY id DESC").await.0, 1452);
    // A large delete cascades, and is all or nothing.
    c.ok("CREATE TABLE leaf (id INT PRIMARY KEY, m INT, FOREIGN KEY (m) REFERENCES many (id) ON DELETE CASCADE)").await;
    c.ok("DROP TABLE copy").await;
    c.ok("INSERT INTO leaf SELECT id, id FROM many").await;
    c.ok("CREATE TABLE last (m INT, FOREIGN KEY (m) REFERENCES leaf (id))").await;
    c.ok("INSERT INTO last VALUES (19998)").await;
    assert_eq!(c.error("DELETE FROM many").await.0, 1451);
    assert_eq!(c.value("SELECT COUNT(*) FROM leaf").await, "20000");
    c.ok("DELETE FROM last").await;
    assert_eq!(c.ok("DELETE FROM many").await.affected_rows, 20_000);
    assert_eq!(c.value("SELECT COUNT(*) FROM leaf").await, "0");
    assert_eq!(c.rows("CHECK TABLE leaf, many").await.iter().map(|row| row[3].as_str()).collect::<Vec<_>>(), ["OK", "OK"]);
}

#[tokio::test]
async fn the_binary_log_tells_the_statements_own_rows_only() {
    let server = Server::with(|settings| settings.set("log_bin", Some("ON")).unwrap());
    let mut c = server.client().await;
    family(&mut c).await;
    c.ok("INSERT INTO c VALUES (1, 1, NULL), (2, 1, NULL)").await;
    let logged = |rows: Vec<Vec<String>>| -> Vec<String> {
        let rows = rows.iter().filter(|row| row[2].ends_with("_rows")).map(|row| format!("{} {}", row[2], row[5].split_once("flags: ").map_or("", |(_, flags)| flags)));
        rows.collect()
    };
    let before = logged(c.rows("SHOW BINLOG EVENTS").await).len();
    c.ok("UPDATE p SET id = 11 WHERE id = 1").await;
    c.ok("DELETE FROM p WHERE id = 11").await;
    assert_eq!(c.value("SELECT COUNT(*) FROM c").await, "0");
    assert_eq!(c.error("INSERT INTO c VALUES (3, 3, NULL), (4, 4, NULL)").await.0, 1452);
    assert_eq!(logged(c.rows("SHOW BINLOG EVENTS").await)[before..], ["Update_rows STMT_END_F", "Delete_rows STMT_END_F"]);
}
