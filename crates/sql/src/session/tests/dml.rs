//! INSERT, UPDATE, DELETE and LOAD DATA.

use super::{Answer, Collector, Server, table};

#[tokio::test]
async fn insert_reports_ids_counts_and_errors() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a INT NOT NULL DEFAULT 7, b VARCHAR(5), UNIQUE KEY u (b))").await;
    let ok = c.ok("INSERT INTO t (b) VALUES ('x'), ('y')").await;
    assert_eq!((ok.affected_rows, ok.last_insert_id, ok.info.as_str()), (2, 1, "Records: 2  Duplicates: 0  Warnings: 0"));
    assert_eq!(c.value("SELECT LAST_INSERT_ID()").await, "1");
    assert_eq!(c.error("INSERT INTO t (b) VALUES ('z'), ('X')").await, (1062, "Duplicate entry 'X' for key 'u'".into()));
    assert_eq!(c.rows("SELECT id, a, b FROM t ORDER BY id").await, table("1 7 x|2 7 y"));
    assert_eq!(c.error("INSERT INTO t (a) VALUES (NULL)").await.0, 1048);
    assert_eq!(c.error("INSERT INTO t (b) VALUES ('toolong')").await.0, 1406);
    let ok = c.ok("INSERT IGNORE INTO t (id, b) VALUES (10, 'x'), (11, 'w')").await;
    assert_eq!((ok.affected_rows, ok.warnings), (1, 1));
    assert_eq!(c.rows("SHOW WARNINGS").await[0][..2], ["Warning".to_owned(), "1062".to_owned()]);
    let ok = c.ok("INSERT INTO t (id, b) VALUES (11, 'v') ON DUPLICATE KEY UPDATE a = a + 1, b = VALUES(b)").await;
    assert_eq!(ok.affected_rows, 2);
    assert_eq!(c.rows("SELECT a, b FROM t WHERE id = 11").await, table("8 v"));
    let ok = c.ok("REPLACE INTO t (id, a, b) VALUES (1, 9, 'v')").await;
    assert_eq!(ok.affected_rows, 3);
    assert_eq!(c.rows("SELECT * FROM t ORDER BY id").await, table("1 9 v|2 7 y"));
}

#[tokio::test]
async fn update_and_delete_by_key_range_and_order() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, k INT, c CHAR(10), KEY k (k))").await;
    c.ok("INSERT INTO t VALUES (1,10,'a'),(2,20,'b'),(3,30,'c'),(4,40,'d'),(5,50,'e')").await;
    let ok = c.ok("UPDATE t SET k = k + 1 WHERE id = 3").await;
    assert_eq!((ok.affected_rows, ok.info.as_str()), (1, "Rows matched: 1  Changed: 1  Warnings: 0"));
    let ok = c.ok("UPDATE t SET k = 31 WHERE id IN (3, 99)").await;
    assert_eq!((ok.affected_rows, ok.info.as_str()), (0, "Rows matched: 1  Changed: 0  Warnings: 0"));
    // Rows move up the index that finds them, and are met once all the same.
    assert_eq!(c.ok("UPDATE t SET k = k + 100 WHERE k > 0").await.affected_rows, 5);
    assert_eq!(c.rows("SELECT k FROM t ORDER BY id").await, table("110|120|131|140|150"));
    assert_eq!(c.ok("UPDATE t SET id = id + 10 ORDER BY id DESC LIMIT 2").await.affected_rows, 2);
    assert_eq!(c.rows("SELECT id FROM t ORDER BY id").await, table("1|2|3|14|15"));
    assert_eq!(c.error("UPDATE t SET id = 1 WHERE id = 2").await.0, 1062);
    assert_eq!(c.ok("DELETE FROM t WHERE id BETWEEN 2 AND 14").await.affected_rows, 3);
    assert_eq!(c.ok("DELETE FROM t ORDER BY k DESC LIMIT 1").await.affected_rows, 1);
    assert_eq!(c.rows("SELECT id, k FROM t").await, table("1 110"));
    // Assignments see the ones before them.
    c.ok("UPDATE t SET k = 1, c = k").await;
    assert_eq!(c.rows("SELECT k, c FROM t").await, table("1 1"));
}

#[tokio::test]
async fn defaults_generated_columns_and_checks() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (a INT, b INT DEFAULT (1 + 2), g INT AS (a * 2) VIRTUAL, s INT AS (g + b) STORED, CHECK (a < 100), ts TIMESTAMP DEFAULT CURRENT_TIMESTAMP)").await;
    c.ok("INSERT INTO t (a) VALUES (5)").await;
    assert_eq!(c.rows("SELECT a, b, g, s FROM t").await, table("5 3 10 13"));
    assert_eq!(c.error("INSERT INTO t (a) VALUES (100)").await, (3819, "Check constraint 't_chk_1' is violated.".into()));
    assert_eq!(c.error("INSERT INTO t (a, g) VALUES (1, 2)").await.0, 3105);
    c.ok("UPDATE t SET a = 6").await;
    assert_eq!(c.rows("SELECT a, b, g, s FROM t").await, table("6 3 12 15"));
    assert_eq!(c.error("UPDATE t SET a = 1000").await.0, 3819);
    c.ok("CREATE TABLE n (a INT NOT NULL, b INT)").await;
    assert_eq!(c.error("INSERT INTO n (b) VALUES (1)").await, (1364, "Field 'a' doesn't have a default value".into()));
    c.ok("SET sql_mode = ''").await;
    assert_eq!(c.ok("INSERT INTO n (b) VALUES (1)").await.warnings, 1);
    assert_eq!(c.rows("SELECT * FROM n").await, table("0 1"));
}

#[tokio::test]
async fn timestamps_are_kept_in_utc() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("SET time_zone = '+02:00'").await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, ts TIMESTAMP NULL, KEY (ts))").await;
    c.ok("INSERT INTO t VALUES (1, '2024-01-01 12:00:00')").await;
    assert_eq!(c.value("SELECT ts FROM t").await, "2024-01-01 12:00:00");
    c.ok("SET time_zone = '+00:00'").await;
    assert_eq!(c.value("SELECT ts FROM t").await, "2024-01-01 10:00:00");
    assert_eq!(c.value("SELECT id FROM t WHERE ts = '2024-01-01 10:00:00'").await, "1");
    c.ok("UPDATE t SET id = 2").await;
    assert_eq!(c.value("SELECT ts FROM t").await, "2024-01-01 10:00:00");
}

/// In the hour that the end of daylight saving repeats two keys look alike: what a query has found is changed, and no other row.
#[tokio::test]
async fn keys_of_a_repeated_hour_are_two() {
    let server = Server::new();
    let mut c = server.client().await;
    for executor in ["AUTO", "DATAFUSION"] {
        c.ok(&format!("SET highkey_executor = '{executor}'")).await;
        c.ok("SET time_zone = '+00:00'").await;
        c.ok("CREATE TABLE t (ts TIMESTAMP PRIMARY KEY, v INT)").await;
        c.ok("INSERT INTO t VALUES ('2024-10-27 00:30:00', 1), ('2024-10-27 01:30:00', 2)").await;
        c.ok("CREATE TABLE p (a INT, ts TIMESTAMP(3), v INT, PRIMARY KEY (a, ts))").await;
        c.ok("INSERT INTO p VALUES (1, '2024-10-27 00:30:00.5', 1), (1, '2024-10-27 01:30:00.5', 2)").await;
        c.ok("CREATE TABLE u (id INT PRIMARY KEY, w INT)").await;
        c.ok("INSERT INTO u VALUES (1, 1), (2, 2), (3, 3)").await;
        c.ok("SET time_zone = 'Europe/Berlin'").await;
        assert_eq!(c.rows("SELECT DATE_FORMAT(ts, '%H:%i') FROM t").await, table("02:30|02:30"));
        assert_eq!(c.rows("SELECT COUNT(*) FROM t GROUP BY ts, v").await, table("1|1"), "{executor}");
        assert_eq!(c.ok("UPDATE t JOIN u ON u.w = t.v SET t.v = t.v + 10").await.affected_rows, 2, "{executor}");
        assert_eq!(c.ok("UPDATE t SET v = v + 10 WHERE EXISTS (SELECT 1 FROM u WHERE u.w + 10 = t.v AND u.id = 2)").await.affected_rows, 1, "{executor}");
        assert_eq!(c.ok("UPDATE t SET v = v + 10 WHERE EXISTS (SELECT 1 FROM u WHERE u.w + 10 = t.v AND u.id = 1)").await.affected_rows, 1, "{executor}");
        // Nothing is found of t.
        assert_eq!(c.ok("UPDATE u LEFT JOIN t ON t.v = u.w SET t.v = 5, u.w = u.w + 1").await.affected_rows, 3, "{executor}");
        assert_eq!(c.ok("DELETE FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id + 20 = t.v AND u.id = 1)").await.affected_rows, 1, "{executor}");
        assert_eq!(c.ok("DELETE p FROM p JOIN u ON u.id = p.v WHERE u.id = 2").await.affected_rows, 1, "{executor}");
        c.ok("SET time_zone = '+00:00'").await;
        assert_eq!(c.rows("SELECT DATE_FORMAT(ts, '%H:%i'), v FROM t").await, table("01:30 22"), "{executor}");
        assert_eq!(c.rows("SELECT DATE_FORMAT(ts, '%H:%i'), v FROM p").await, table("00:30 1"), "{executor}");
        c.ok("DROP TABLE t, p, u").await;
    }
}

#[tokio::test]
async fn source_000_copies_exactly() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t1 (c1 int invisible auto_increment primary key, c2 int, str1 int DEFAULT(100) NOT NULL, str2 varchar(512) CHARACTER SET latin1 DEFAULT(repeat('a',8)) NOT NULL) engine=InnoDB").await;
    c.ok("CREATE TABLE t2 LIKE t1").await;
    c.ok("INSERT INTO t1 (c2) VALUES (1),(2),(3)").await;
    for _ in 0..10 {
        c.ok("INSERT INTO t1 (c2) SELECT c2 FROM t1").await;
    }
    let ok = c.ok("INSERT INTO t2 SELECT * FROM t1").await;
    assert_eq!(ok.affected_rows, 3072);
    assert_eq!(ok.info, "Records: 3072  Duplicates: 0  Warnings: 0");
    assert_eq!(c.value("SELECT COUNT(*) FROM t2").await, "3072");
    assert_eq!(c.rows("SELECT c2, str1, str2 FROM t2 WHERE c1 = 1").await, table("1 100 aaaaaaaa"));
    assert_eq!(c.rows("SELECT MIN(c1) FROM t2").await, table("1"));
}

#[tokio::test]
async fn load_data_and_outfile() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(10), b INT)").await;
    let mut sink = Collector { file: b"1|x|10\n2|\\N|20\n3|z|30\n".to_vec(), ..Collector::default() };
    c.session.execute(b"LOAD DATA LOCAL INFILE 'f' INTO TABLE t FIELDS TERMINATED BY '|' (id, @a, b) SET a = UPPER(@a), b = b + 1", &mut sink).await.unwrap();
    match &sink.answers[0] {
        Answer::Ok(ok) => assert_eq!(ok.info, "Records: 3  Deleted: 0  Skipped: 0  Warnings: 0"),
        other => panic!("{other:?}"),
    }
    assert_eq!(c.rows("SELECT * FROM t").await, table("1 X 11|2 NULL 21|3 Z 31"));
    // LOCAL skips duplicates with a warning each.
    let mut sink = Collector { file: b"3|q|1\n4|w|1\n".to_vec(), ..Collector::default() };
    c.session.execute(b"LOAD DATA LOCAL INFILE 'f' INTO TABLE t FIELDS TERMINATED BY '|'", &mut sink).await.unwrap();
    match &sink.answers[0] {
        Answer::Ok(ok) => assert_eq!((ok.info.as_str(), ok.affected_rows), ("Records: 2  Deleted: 0  Skipped: 1  Warnings: 1", 1)),
        other => panic!("{other:?}"),
    }
    assert_eq!(c.error("LOAD DATA INFILE 'missing' INTO TABLE t").await.0, 13);
}

/// Lines that bring a number and lines that ask for one, as MySQL 8.0.12 numbers them.
#[tokio::test]
async fn load_data_numbers_lines_behind_given_ones() {
    let server = Server::new();
    let mut c = server.client().await;
    // Read in blocks, twice, and line by line.
    for (name, format) in [("t", ""), ("u", "FIELDS OPTIONALLY ENCLOSED BY '\"'"), ("v", "CHARACTER SET gbk")] {
        c.ok(&format!("CREATE TABLE {name} (id INT PRIMARY KEY AUTO_INCREMENT, c CHAR(2))")).await;
        let file = b"\\N\ta\n5\tb\n\\N\tc\n3\td\n\\N\te\n100\tf\n\\N\tg\n0\th\n-4\ti\n\\N\tj\n";
        let mut sink = Collector { file: file.to_vec(), ..Collector::default() };
        c.session.execute(format!("LOAD DATA LOCAL INFILE 'f' INTO TABLE {name} {format}").as_bytes(), &mut sink).await.unwrap();
        let rows = c.rows(&format!("SELECT * FROM {name}")).await;
        assert_eq!(rows, table("-4 i|1 a|3 d|5 b|6 c|7 e|100 f|101 g|102 h|103 j"), "{name}");
    }
}

/// Character sets of the file, and bytes that are no text in them, as MySQL 8.0.12 takes them.
#[tokio::test]
async fn load_data_of_character_sets() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (i INT, l VARCHAR(20) CHARACTER SET latin1, u VARCHAR(20) CHARACTER SET utf8mb4, b VARBINARY(20))").await;
    let mut load = async |file: &[u8], rest: &str| {
        let mut sink = Collector { file: file.to_vec(), ..Collector::default() };
        let statement = format!("LOAD DATA LOCAL INFILE 'f' INTO TABLE t CHARACTER SET {rest}");
        c.session.execute(statement.as_bytes(), &mut sink).await.unwrap();
        let error = match &sink.answers[0] {
            Answer::Error(e) => format!("{} {}", e.code, e.message),
            _ => String::new(),
        };
        let rows = c.rows("SELECT CONCAT_WS('|', i, HEX(l), HEX(u), HEX(b)) FROM t").await.concat().join(" ");
        c.ok("TRUNCATE t").await;
        (error, rows)
    };
    let good = |rows: &str| (String::new(), rows.to_owned());
    let invalid = || ("1300 Invalid utf8mb4 character string: 'a'".to_owned(), String::new());
    for target in ["(i, l)", "(i, u)", "(i, @x)", "(i, @x) SET b = @x"] {
        assert_eq!(load(b"1\ta\xffb\n2\tx\n", &format!("utf8mb4 {target}")).await, invalid(), "{target}");
    }
    assert_eq!(load(b"1\t\xe4\n", "latin1 (i, l)").await, good("1|E4"));
    assert_eq!(load(b"1\t\xe4\n", "latin1 (i, u)").await, good("1|C3A4"));
    assert_eq!(load(b"1\t\xe4\n", "latin1 (i, @x) SET l = @x, u = @x, b = @x").await, good("1|E4|C3A4|E4"));
    assert_eq!(load(b"1\t\xc3\xa4\n", "utf8mb4 (i, @x) SET l = @x, u = @x, b = @x").await, good("1|E4|C3A4|C3A4"));
    assert_eq!(load(b"1\t\xc3\xa4\n", "binary (i, @x) SET l = @x, u = @x, b = @x").await, good("1|C3A4|C3A4|C3A4"));
    assert_eq!(load(b"1\t\xc3\xa4\n", "binary (i, l)").await, good("1|C3A4"));
    assert_eq!(load(b"1\t\xe4\n", "binary (i, b)").await, good("1|E4"));
}

/// Fields that are neither terminated nor enclosed, as MySQL 8.0.12 cuts and warns.
#[tokio::test]
async fn load_data_of_fixed_fields() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (i INT, t VARCHAR(5) CHARACTER SET latin1, n SMALLINT NOT NULL DEFAULT 7, d DATE)").await;
    let mut load = async |file: &[u8], rest: &str| {
        let mut sink = Collector { file: file.to_vec(), ..Collector::default() };
        let statement = format!("LOAD DATA LOCAL INFILE 'f' INTO TABLE t FIELDS TERMINATED BY '' ENCLOSED BY '' {rest}");
        c.session.execute(statement.as_bytes(), &mut sink).await.unwrap();
        let warnings: Vec<_> = c.rows("SHOW WARNINGS").await.into_iter().map(|w| format!("{} {}", w[1], w[2])).collect();
        let rows = c.rows("SELECT CONCAT_WS('|', i, t, n, d) FROM t").await.concat();
        c.ok("TRUNCATE t").await;
        (rows, warnings)
    };
    let (rows, warnings) = load(b"1          hello72    2024-02-03\n2\n3          ab\\ncd 5    2024-02-03too long\n\n4          \\N\n5          abcde99    2024-02-03", "").await;
    assert_eq!(rows, ["1|hello|72|2024-02-03", "2||7|0000-00-00", "3|ab\ncd|5|2024-02-03", "0||7|0000-00-00", "4|N|7|0000-00-00", "5|abcde|99|2024-02-03"]);
    let few = |row: u32, times| vec![format!("1261 Row {row} doesn't contain data for all columns"); times];
    let much = vec!["1262 Row 3 was truncated; it contained more data than there were input columns".to_owned()];
    assert_eq!(warnings, [few(2, 3), much, few(4, 4), few(5, 2)].concat());
    let (rows, warnings) = load(b"xx0          head\nnothing\nabcxx1          heyyy\nxx2          heyyx  more\n", "LINES STARTING BY 'xx' TERMINATED BY '\n' IGNORE 1 LINES (i, t) SET d = '2020-01-01'").await;
    assert_eq!(rows, ["1|heyyy|7|2020-01-01", "2|heyyx|7|2020-01-01"]);
    assert_eq!(warnings, ["1262 Row 2 was truncated; it contained more data than there were input columns"]);
    let (rows, warnings) = load(b"1          hello 7    2024-02-032          hell x8    2024-02-04", "LINES TERMINATED BY ''").await;
    assert_eq!(rows, ["1|hello|7|2024-02-03", "2|hell |0|2024-02-04"]);
    assert_eq!(warnings, ["1366 Incorrect integer value: 'x8    ' for column 'n' at row 2"]);
    let load = "LOAD DATA LOCAL INFILE 'f' INTO TABLE t FIELDS TERMINATED BY '' ENCLOSED BY ''";
    assert_eq!(c.error(&format!("{load} (i, @a)")).await.0, 1409);
    c.ok("ALTER TABLE t ADD COLUMN b TEXT").await;
    assert_eq!(c.error(&format!("{load} LINES TERMINATED BY ''")).await.0, 1084);
    // The same way out: NULL is spaces.
    c.ok("CREATE TABLE o (a INT, b TINYINT(1), v VARCHAR(3), n DECIMAL(7,2))").await;
    c.ok("INSERT INTO o VALUES (1, 2, 'é', 1.5), (NULL, -3, NULL, -12345.67)").await;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("o");
    c.ok(&format!("SELECT * FROM o INTO OUTFILE '{}' FIELDS TERMINATED BY '' ENCLOSED BY ''", path.display())).await;
    let expected = "1          2   é          1.50     \n           -3              -12345.67\n";
    assert_eq!(std::fs::read_to_string(path).unwrap(), expected);
}

/// As MySQL 8.0.12 does it.
#[tokio::test]
async fn load_data_of_too_few_fields() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT NOT NULL DEFAULT 5, v VARCHAR(5) NOT NULL DEFAULT 'q', d DATE NOT NULL DEFAULT '2020-01-01', e ENUM('x', 'y') NOT NULL DEFAULT 'y', k INT DEFAULT 7, o INT, s TIMESTAMP NOT NULL DEFAULT '2001-01-01', z INT NOT NULL)").await;
    let mut sink = Collector { file: b"1\t8\n2\n3\t6\tabc\n".to_vec(), ..Collector::default() };
    c.session.execute(b"LOAD DATA LOCAL INFILE 'f' INTO TABLE t", &mut sink).await.unwrap();
    let warnings = c.rows("SHOW WARNINGS").await;
    assert!(warnings.len() == 21 && warnings.iter().all(|warning| warning[1] == "1261"), "{warnings:?}");
    let rows = c.rows("SELECT id, n, v, d, e + 0, k, o, s > '2002-01-01', z FROM t ORDER BY id").await;
    assert_eq!(rows, [["1", "8", "", "0000-00-00", "0", "0", "NULL", "1", "0"], ["2", "0", "", "0000-00-00", "0", "0", "NULL", "1", "0"], ["3", "6", "abc", "0000-00-00", "0", "0", "NULL", "1", "0"]]);
}

#[tokio::test]
async fn a_rejected_statement_leaves_no_rows() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY)").await;
    c.ok("BEGIN").await;
    c.ok("INSERT INTO t VALUES (1)").await;
    assert_eq!(c.error("INSERT INTO t VALUES (2), (3), (1)").await.0, 1062);
    c.ok("COMMIT").await;
    assert_eq!(c.rows("SELECT id FROM t").await, table("1"));
}

#[tokio::test]
async fn an_expression_may_begin_with_a_subquery_in_parentheses() {
    let server = Server::new();
    let mut c = server.client().await;
    assert_eq!(c.value("SELECT ((SELECT 1) + 1)").await, "2");
    assert_eq!(c.value("SELECT 5 WHERE ((SELECT MAX(a) FROM (SELECT 2 AS a) t) IN (1, 2))").await, "5");
    assert_eq!(c.value("SELECT (((SELECT 3)))").await, "3");
    assert_eq!(c.value("SELECT COUNT(*) FROM ((SELECT 1 AS a) UNION ALL (SELECT 2)) t").await, "2");
    assert_eq!(c.error("SELECT ((SELECT 1) + )").await.0, 1064);
}
