//! Stored functions, as far as golden answers cannot show it: KILL, the account that they run as, privileges, the binary log, threads.

use super::{Client, Server, table};

#[tokio::test]
async fn rights_are_the_definers_or_the_invokers() {
    let server = Server::new();
    let mut root = server.client().await;
    root.ok("CREATE TABLE secret (a INT)").await;
    root.ok("INSERT INTO secret VALUES (42)").await;
    root.ok("CREATE FUNCTION lent() RETURNS INT RETURN (SELECT a FROM secret)").await;
    root.ok("CREATE FUNCTION own() RETURNS INT SQL SECURITY INVOKER RETURN (SELECT a FROM secret)").await;
    root.ok("CREATE FUNCTION who() RETURNS VARCHAR(100) RETURN CONCAT(USER(), ' ', CURRENT_USER())").await;
    root.ok("CREATE PROCEDURE lent() SET @p = 1").await;
    root.ok("CREATE USER u@localhost").await;
    let mut client = server.connect_as("u");
    assert_eq!(client.error("SELECT d.lent()").await, (1370, "execute command denied to user 'u'@'localhost' for routine 'd.lent'".into()));
    assert_eq!(client.error("SELECT d.nosuch()").await.0, 1370);
    root.ok("GRANT EXECUTE ON FUNCTION d.lent TO u@localhost").await;
    root.ok("GRANT EXECUTE ON FUNCTION d.own TO u@localhost").await;
    root.ok("GRANT EXECUTE ON FUNCTION d.who TO u@localhost").await;
    assert_eq!(client.value("SELECT d.lent()").await, "42");
    assert_eq!(client.value("SELECT d.who()").await, "u@localhost root@localhost");
    assert_eq!(client.error("SELECT d.own()").await.0, 1142);
    // The invoker of a function inside of a function is who that one runs as, in its queries too.
    let seen = "SELECT COUNT(*) INTO v FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'd' AND TABLE_NAME = 'secret'";
    root.ok(&format!("CREATE FUNCTION seen() RETURNS INT SQL SECURITY INVOKER BEGIN DECLARE v INT; {seen}; RETURN v; END")).await;
    root.ok("CREATE FUNCTION lent_seen() RETURNS INT RETURN seen()").await;
    root.ok("GRANT EXECUTE ON FUNCTION d.seen TO u@localhost").await;
    root.ok("GRANT EXECUTE ON FUNCTION d.lent_seen TO u@localhost").await;
    assert_eq!(client.rows("SELECT d.seen(), d.lent_seen(), d.seen()").await, table("0 1 0"));
    // A procedure of the same name is another routine.
    assert_eq!(client.error("CALL d.lent()").await.0, 1370);
    assert_eq!(client.error("DROP FUNCTION d.lent").await.0, 1370);
    assert_eq!(client.error("CREATE FUNCTION d.mine() RETURNS INT RETURN 1").await.0, 1044);
    let grants = root.rows("SHOW GRANTS FOR u@localhost").await;
    assert!(grants.contains(&vec!["GRANT EXECUTE ON FUNCTION `d`.`lent` TO `u`@`localhost`".to_owned()]), "{grants:?}");
    root.ok("REVOKE EXECUTE ON FUNCTION d.lent FROM u@localhost").await;
    assert_eq!(client.error("SELECT d.lent()").await.0, 1370);
    root.ok("GRANT CREATE ROUTINE ON d.* TO u@localhost").await;
    client.ok("CREATE FUNCTION d.mine() RETURNS INT RETURN 7").await;
    assert_eq!(client.value("SELECT d.mine()").await, "7");
    client.ok("DROP FUNCTION d.mine").await;
}

#[tokio::test]
async fn what_is_dropped_or_altered_is_another_one_at_once() {
    let server = Server::new();
    let (mut a, mut b) = (server.client().await, server.client().await);
    a.ok("CREATE TABLE t (a INT PRIMARY KEY)").await;
    a.ok("INSERT INTO t VALUES (1), (2)").await;
    a.ok("CREATE FUNCTION f(x INT) RETURNS INT DETERMINISTIC RETURN x").await;
    b.ok("PREPARE s FROM 'SELECT a FROM t WHERE a = f(1)'").await;
    b.ok("PREPARE i FROM 'INSERT INTO t VALUES (f(9))'").await;
    for _ in 0..3 {
        assert_eq!(b.rows("EXECUTE s").await, table("1"));
    }
    a.ok("DROP FUNCTION f").await;
    assert_eq!(b.error("EXECUTE s").await, (1305, "FUNCTION d.f does not exist".into()));
    a.ok("CREATE FUNCTION f(x INT) RETURNS INT DETERMINISTIC RETURN x + 1").await;
    assert_eq!(b.rows("EXECUTE s").await, table("2"));
    b.ok("EXECUTE i").await;
    assert_eq!(b.rows("SELECT MAX(a) FROM t").await, table("10"));
    b.ok("CREATE VIEW v AS SELECT a FROM t WHERE f(a) < 100 WITH CHECK OPTION").await;
    b.ok("PREPARE c FROM 'INSERT INTO v VALUES (?)'").await;
    for n in 20..23 {
        b.ok(&format!("SET @n = {n}")).await;
        b.ok("EXECUTE c USING @n").await;
    }
    a.ok("DROP FUNCTION f").await;
    a.ok("CREATE FUNCTION f(x INT) RETURNS INT DETERMINISTIC RETURN x + 100").await;
    b.ok("SET @n = 23").await;
    assert_eq!(b.error("EXECUTE c USING @n").await.0, 1369);
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_ends_a_function_whatever_its_handlers_say() {
    let server = Server::new();
    let mut client = server.client().await;
    client.ok("CREATE FUNCTION f() RETURNS INT BEGIN DECLARE i INT DEFAULT 0; DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END; WHILE TRUE DO SET i = 1; END WHILE; RETURN 1; END").await;
    assert_eq!(client.error_when_killed("SELECT f()").await.0, 1317);
    assert_eq!(client.value("SELECT 1").await, "1");
}

/// A condition that searches the whole document for each of its nodes.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_search_in_xml_is_killed() {
    let server = Server::new();
    let mut client = server.client().await;
    assert_eq!(client.error_when_killed("SELECT EXTRACTVALUE(REPEAT('<a></a>', 30000), 'count(//a[count(//a) = 1])')").await.0, 1317);
    assert_eq!(client.value("SELECT 1").await, "1");
}

/// Each point with each other one.
#[tokio::test(flavor = "multi_thread")]
async fn a_distance_of_many_points_is_killed() {
    let server = Server::new();
    let mut client = server.client().await;
    let points = "ST_GEOMFROMTEXT(CONCAT('MULTIPOINT(', REPEAT('0 0,', 50000), '1 1)'))";
    assert_eq!(client.error_when_killed(&format!("SELECT ST_DISTANCE({points}, {points})")).await.0, 1317);
    assert_eq!(client.value("SELECT 1").await, "1");
}

/// What would take a stack of as many levels as points, and memory of all places where lines meet.
#[tokio::test(flavor = "multi_thread")]
async fn lines_of_many_points_end_in_an_answer_or_an_error() {
    let server = Server::new();
    let mut client = server.client().await;
    client.ok("SET @n = 20000").await;
    client.ok("SET @zigzag = ST_GEOMFROMTEXT(CONCAT('LINESTRING(', REPEAT('0 0,1 1,', @n), '0 0)'))").await;
    assert_eq!(client.value("SELECT ST_NUMPOINTS(ST_SIMPLIFY(@zigzag, 2))").await, "2");
    assert_eq!(client.error("SELECT ST_INTERSECTS(@zigzag, @zigzag)").await.0, 1235);
    assert_eq!(client.value("SELECT ST_INTERSECTS(@zigzag, POINT(3, 3))").await, "0");
}

/// What MySQL 8.0.12 answers.
#[tokio::test]
async fn nothing_stands_for_a_geometry_and_none_is_infinite() {
    let server = Server::new();
    let mut client = server.client().await;
    client.ok("SET sql_mode = ''").await;
    client.ok("CREATE TABLE t (a INT, g POINT)").await;
    client.ok("INSERT INTO t VALUES (1, NULL)").await;
    assert_eq!(client.error("ALTER TABLE t MODIFY g POINT NOT NULL").await.0, 1138);
    client.ok("UPDATE t SET g = POINT(1, 1)").await;
    assert_eq!(client.error("ALTER TABLE t ADD h POLYGON NOT NULL").await.0, 1138);
    client.ok("ALTER TABLE t MODIFY g POINT NOT NULL").await;
    assert_eq!(client.error("UPDATE t SET g = NULL").await.0, 3673);
    assert_eq!(client.error("INSERT INTO t VALUES (1, NULL), (2, NULL)").await.0, 3673);
    let overflow = client.error("SELECT ST_LENGTH(ST_GEOMFROMTEXT('LINESTRING(-1e308 0,1e308 0)'))").await;
    assert_eq!(overflow, (1690, "Length value is out of range in 'st_length'".into()));
    assert_eq!(client.error("SELECT ST_AREA(ST_GEOMFROMTEXT('POLYGON((-1e308 -1e308,1e308 -1e308,1e308 1e308,-1e308 -1e308))'))").await.0, 3037);
    assert_eq!(client.error("SELECT ST_DISTANCE(POINT(-1e308, 0), POINT(1e308, 0))").await.0, 3037);
    let overflow = client.error("SELECT ST_DISTANCE_SPHERE(POINT(0, 0), POINT(180, 0), 1e308)").await;
    assert_eq!(overflow, (3049, "Overflow error error: INFINITY in function st_distance_sphere.".into()));
    assert_eq!(client.error("SELECT POINT(1, 1) BETWEEN POINT(0, 0) AND POINT(2, 2)").await, (1210, "Incorrect arguments to between".into()));
    let simpler = "SELECT ST_ASTEXT(ST_SIMPLIFY(ST_GEOMFROMTEXT('LINESTRING(0 0,0 1,1 1,1 2,2 2)'), 0.5))";
    assert_eq!(client.value(simpler).await, "LINESTRING(0 0,0 1,2 2)");
}

#[tokio::test]
async fn all_threads_of_a_query_call_functions() {
    let server = Server::new();
    let mut client = server.client().await;
    client.ok("CREATE TABLE t (a INT PRIMARY KEY, b INT)").await;
    client.ok("INSERT INTO t WITH RECURSIVE n AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM n WHERE a < 700) SELECT a, a % 7 FROM n").await;
    client.ok("CREATE FUNCTION f(x INT) RETURNS INT DETERMINISTIC BEGIN DECLARE s, i INT DEFAULT 0; WHILE i < x DO SET i = i + 1, s = s + i; END WHILE; RETURN s; END").await;
    client.ok("CREATE FUNCTION counted(x INT) RETURNS INT DETERMINISTIC RETURN (SELECT COUNT(*) FROM t i WHERE i.b = x)").await;
    client.ok("CREATE FUNCTION asks(x INT) RETURNS INT NO SQL BEGIN IF x > 2 THEN SIGNAL SQLSTATE '45000'; END IF; SET @asked = @asked + 1; RETURN 1; END").await;
    for executor in ["AUTO", "FAST", "DATAFUSION"] {
        client.ok(&format!("SET highkey_executor = {executor}")).await;
        assert_eq!(client.rows("SELECT SUM(f(b)), COUNT(*) FROM t WHERE f(b) > 3").await, table("5200 400"), "{executor}");
        assert_eq!(client.rows("SELECT a, counted(b) FROM t WHERE a < 3 ORDER BY a").await, table("1 100|2 100"), "{executor}");
        assert_eq!(client.rows("SELECT b, SUM(f(b)) FROM t GROUP BY b ORDER BY SUM(f(b)) DESC LIMIT 1").await, table("6 2100"), "{executor}");
        // Of rows that the conditions before it decide none is asked.
        for (condition, rows) in [("b < 3 AND asks(b) = 1", "300"), ("b > 2 OR asks(b) = 1", "700"), ("b < 3 AND asks(b) = 1 AND (a > 7 OR counted(b) = 100)", "300")] {
            client.ok("SET @asked = 0").await;
            assert_eq!(client.value(&format!("SELECT COUNT(*) FROM t WHERE {condition}")).await, rows, "{executor} {condition}");
            assert_eq!(client.value("SELECT @asked").await, "300", "{executor} {condition}");
        }
    }
}

#[tokio::test]
async fn calls_without_a_row_are_made_before() {
    let server = Server::new();
    let mut client = server.client().await;
    client.ok("CREATE TABLE t (a INT PRIMARY KEY, b INT)").await;
    client.ok("INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)").await;
    client.ok("CREATE FUNCTION of_b(x INT) RETURNS INT DETERMINISTIC READS SQL DATA RETURN (SELECT a FROM t WHERE b = x)").await;
    client.ok("CREATE FUNCTION several(x INT) RETURNS INT DETERMINISTIC READS SQL DATA BEGIN DECLARE v INT; SELECT a INTO v FROM t; RETURN v; END").await;
    assert_eq!(client.rows("SELECT b FROM t WHERE a = of_b(20)").await, table("20"));
    assert_eq!(client.rows("SELECT a, (SELECT i.b FROM t i WHERE i.a = of_b(30)) FROM t WHERE a < of_b(of_b(20) * 10) + 1 ORDER BY a").await, table("1 30|2 30"));
    // One that fails is an error if some row needs it.
    assert_eq!(client.rows("SELECT several(1) FROM t WHERE a < 0").await, Vec::<Vec<String>>::new());
    assert_eq!(client.error("SELECT several(1) FROM t WHERE a < 2").await.0, 1172);
}

#[tokio::test]
async fn a_function_reads_as_its_statement_does() {
    let server = Server::new();
    let (mut a, mut b) = (server.client().await, server.client().await);
    a.ok("CREATE TABLE t (a INT PRIMARY KEY, b INT)").await;
    a.ok("CREATE TABLE u (a INT PRIMARY KEY, b INT)").await;
    a.ok("INSERT INTO t VALUES (1, 10), (2, 20)").await;
    a.ok("CREATE FUNCTION f() RETURNS INT BEGIN DECLARE v INT; SELECT SUM(b) INTO v FROM t; RETURN v; END").await;
    a.ok("CREATE FUNCTION up_to(x INT) RETURNS INT RETURN (SELECT MAX(b) FROM t WHERE a <= x)").await;
    a.ok("START TRANSACTION").await;
    assert_eq!(a.value("SELECT f()").await, "30");
    b.ok("INSERT INTO t VALUES (3, 30)").await;
    assert_eq!(b.value("SELECT f()").await, "60");
    assert_eq!(a.value("SELECT f()").await, "30");
    a.ok("UPDATE t SET b = 11 WHERE a = 1").await;
    assert_eq!(a.value("SELECT f()").await, "31");
    a.ok("INSERT INTO u VALUES (1, f()), (2, f() + 1)").await;
    a.ok("UPDATE u SET b = b + f() WHERE b <= f()").await;
    assert_eq!(a.rows("SELECT * FROM u ORDER BY a").await, table("1 62|2 32"));
    a.ok("INSERT INTO u VALUES (2, 0) ON DUPLICATE KEY UPDATE b = up_to(a)").await;
    assert_eq!(a.rows("SELECT * FROM u ORDER BY a").await, table("1 62|2 20"));
    // What it reads may not be changed by who calls it.
    assert_eq!(a.error("UPDATE t SET b = f()").await.0, 1235);
    assert_eq!(a.error("INSERT INTO t VALUES (9, f())").await.0, 1235);
    assert_eq!(a.error("DELETE FROM t WHERE b = f()").await.0, 1235);
    a.ok("ROLLBACK").await;
    assert_eq!(a.value("SELECT f()").await, "60");
}

/// A table of numbers, one of what has been done, and functions that write to them.
async fn changing(client: &mut Client) {
    client.ok("CREATE TABLE seq (n VARCHAR(10) PRIMARY KEY, id INT)").await;
    client.ok("INSERT INTO seq VALUES ('a', 0)").await;
    client.ok("CREATE TABLE log (i INT AUTO_INCREMENT PRIMARY KEY, t VARCHAR(50))").await;
    client.ok("CREATE TABLE t (a INT PRIMARY KEY, b INT)").await;
    client.ok("INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)").await;
    client.ok("CREATE FUNCTION nx() RETURNS INT BEGIN UPDATE seq SET id = LAST_INSERT_ID(id + 1) WHERE n = 'a'; RETURN LAST_INSERT_ID(); END").await;
    client.ok("CREATE FUNCTION lg(x VARCHAR(50)) RETURNS INT BEGIN INSERT INTO log (t) VALUES (x); RETURN LAST_INSERT_ID(); END").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_that_change_tables_are_called_row_by_row() {
    let server = Server::new();
    let mut client = server.client().await;
    changing(&mut client).await;
    for executor in ["AUTO", "FAST", "DATAFUSION"] {
        client.ok(&format!("SET highkey_executor = {executor}")).await;
        client.ok("UPDATE seq SET id = 0").await;
        assert_eq!(client.rows("SELECT nx(), a, nx() FROM t ORDER BY a").await, table("1 1 2|3 2 4|5 3 6"), "{executor}");
        assert_eq!(client.rows("SELECT nx() FROM t LIMIT 1").await, table("7"), "{executor}");
        assert_eq!(client.rows("SELECT a FROM t WHERE nx() > 8 ORDER BY a").await, table("2|3"), "{executor}");
        assert_eq!(client.value("SELECT id FROM seq").await, "10", "{executor}");
    }
}

#[tokio::test]
async fn what_a_function_changed_goes_with_its_statement() {
    let server = Server::new();
    let (mut a, mut b) = (server.client().await, server.client().await);
    changing(&mut a).await;
    a.ok("CREATE FUNCTION bad(x INT) RETURNS INT BEGIN INSERT INTO log (t) VALUES (x); IF x > 2 THEN SIGNAL SQLSTATE '45000'; END IF; RETURN x; END").await;
    assert_eq!(a.error("SELECT bad(a) FROM t").await.0, 1644);
    assert_eq!(b.value("SELECT COUNT(*) FROM log").await, "0");
    a.ok("START TRANSACTION").await;
    assert_eq!(a.value("SELECT lg('kept') > 0").await, "1");
    assert_eq!(a.error("SELECT bad(a) FROM t").await.0, 1644);
    assert_eq!(a.error("SET @x = bad(2) + bad(3)").await.0, 1644);
    assert_eq!(a.rows("SELECT t FROM log").await, table("kept"));
    assert_eq!(b.value("SELECT COUNT(*) FROM log").await, "0");
    a.ok("COMMIT").await;
    assert_eq!(b.rows("SELECT t FROM log").await, table("kept"));
    // In autocommit mode the SELECT commits.
    assert_eq!(a.value("SELECT nx()").await, "1");
    assert_eq!(b.value("SELECT id FROM seq").await, "1");
}

/// MySQL 8.0.12 changes the row as it was found, and leaves its index corrupt.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_a_function_has_changed_by_a_foreign_key_is_looked_up_again() {
    let server = Server::new();
    let mut client = server.client().await;
    for sql in [
        "CREATE TABLE parent (id INT PRIMARY KEY)",
        "CREATE TABLE child (id INT PRIMARY KEY, pid INT, b INT, KEY k (pid), FOREIGN KEY (pid) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE CASCADE)",
        "CREATE FUNCTION gone(x INT) RETURNS INT BEGIN DELETE FROM parent WHERE id = x; RETURN 99; END",
        "CREATE FUNCTION moved(x INT) RETURNS INT BEGIN UPDATE parent SET id = id + 10 WHERE id = x; RETURN 99; END",
        "INSERT INTO parent VALUES (1), (2), (3), (4)",
        "INSERT INTO child VALUES (1, 1, 10), (2, 2, 20), (3, 3, 30), (4, 4, 40)",
        "UPDATE child SET b = gone(pid) WHERE id = 1",
        "UPDATE child SET b = moved(pid) WHERE id = 2",
        "INSERT INTO child VALUES (3, 3, 0) ON DUPLICATE KEY UPDATE b = moved(3)",
        "INSERT INTO child VALUES (4, 4, 0) ON DUPLICATE KEY UPDATE b = gone(4)",
    ] {
        client.ok(sql).await;
    }
    assert_eq!(client.rows("SELECT * FROM child ORDER BY id").await, table("2 12 99|3 13 99"));
    assert_eq!(client.rows("SELECT id FROM child FORCE INDEX (k) WHERE pid > 0 ORDER BY pid").await, table("2|3"));
    assert_eq!(client.rows("CHECK TABLE child").await[0][3], "OK");
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_ends_a_function_that_changes_tables() {
    let server = Server::new();
    let mut client = server.client().await;
    changing(&mut client).await;
    let endless = "DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END; INSERT INTO log (t) VALUES ('x'); WHILE TRUE DO SET @i = 1; END WHILE; RETURN 1;";
    client.ok(&format!("CREATE FUNCTION f(x INT) RETURNS INT BEGIN {endless} END")).await;
    for sql in ["SELECT f(a) FROM t", "DO f(1)", "INSERT INTO seq VALUES ('b', f(2))"] {
        assert_eq!(client.error_when_killed(sql).await.0, 1317, "{sql}");
    }
    assert_eq!(client.value("SELECT COUNT(*) FROM log").await, "0");
    // Queries are timed, but for those that change something.
    client.ok("CREATE FUNCTION slow(x INT) RETURNS INT BEGIN DECLARE v INT; SELECT id INTO v FROM seq FOR UPDATE; DO SLEEP(0.2); RETURN 1; END").await;
    client.ok("CREATE FUNCTION slow_log(x INT) RETURNS INT BEGIN INSERT INTO log (t) VALUES (x); DO SLEEP(0.1); RETURN 1; END").await;
    client.ok("SET max_execution_time = 50").await;
    assert_eq!(client.error("SELECT slow(a) FROM t").await.0, 3024);
    assert_eq!(client.rows("SELECT slow_log(a) FROM t").await, table("1|1|1"));
    client.ok("SET max_execution_time = 0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_sessions_wait_for_the_rows_that_functions_lock() {
    let server = Server::new();
    let mut client = server.client().await;
    changing(&mut client).await;
    client.ok("CREATE FUNCTION sums() RETURNS INT BEGIN DECLARE v INT; SET v = nx(); SELECT SUM(x.b) + v INTO v FROM t x JOIN t y ON x.b = y.b; RETURN v; END").await;
    let calls = (0..16).map(|_| {
        let mut client = server.connect();
        tokio::spawn(async move {
            client.ok("USE d").await;
            for _ in 0..5 {
                client.value("SELECT SUM(sums()) > 0 FROM t x JOIN t y ON x.b = y.b").await;
            }
        })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap();
    }
    assert_eq!(client.value("SELECT id FROM seq").await, (16 * 5 * 3).to_string());
}

#[tokio::test]
async fn functions_change_tables_as_their_definer() {
    let server = Server::new();
    let mut root = server.client().await;
    changing(&mut root).await;
    root.ok("CREATE FUNCTION own() RETURNS INT SQL SECURITY INVOKER BEGIN INSERT INTO log (t) VALUES ('own'); RETURN 1; END").await;
    root.ok("CREATE USER u@localhost").await;
    root.ok("GRANT EXECUTE ON d.* TO u@localhost").await;
    let mut client = server.connect_as("u");
    assert_eq!(client.value("SELECT d.nx()").await, "1");
    assert_eq!(client.error("SELECT d.own()").await.0, 1142);
    client.ok("SET @x = d.nx()").await;
    assert_eq!(client.error("UPDATE d.seq SET id = 0").await.0, 1142);
    root.ok("GRANT INSERT ON d.log TO u@localhost").await;
    assert_eq!(client.value("SELECT d.own()").await, "1");
    assert_eq!(root.value("SELECT id FROM seq").await, "2");
    root.ok("SET GLOBAL super_read_only = 1").await;
    assert_eq!(root.error("SELECT nx()").await.0, 1290);
    assert_eq!(root.error("SET @x = nx()").await.0, 1290);
    root.ok("SET GLOBAL super_read_only = 0").await;
    root.ok("SET GLOBAL read_only = 0").await;
}

#[tokio::test]
async fn explain_calls_no_function() {
    let server = Server::new();
    let mut client = server.client().await;
    changing(&mut client).await;
    for sql in ["SELECT nx()", "SELECT nx() FROM t WHERE nx() > 0", "UPDATE t SET b = nx()", "DELETE FROM t WHERE nx() > 0", "INSERT INTO t SELECT nx() + 10, 1 FROM seq"] {
        client.rows(&format!("EXPLAIN {sql}")).await;
    }
    assert_eq!(client.value("SELECT id FROM seq").await, "0");
}

#[tokio::test]
async fn columns_that_call_functions_which_change_tables_are_refused() {
    let server = Server::new();
    let mut client = server.client().await;
    changing(&mut client).await;
    for sql in ["CREATE TABLE x (a INT, b INT AS (nx()))", "CREATE TABLE x (a INT DEFAULT (nx()))", "CREATE TABLE x (a INT CHECK (a > nx()))"] {
        client.error(sql).await;
    }
    // What does not evaluate in the session yet says so.
    client.ok("CREATE VIEW v AS SELECT a, b FROM t WHERE a > nx() * 0 WITH CHECK OPTION").await;
    assert_eq!(client.error("INSERT INTO v VALUES (9, 9)").await.0, 1235);
    assert_eq!(client.value("SELECT id FROM seq").await, "0");
}

/// The bytes are those of MySQL 8.0.12.
#[tokio::test]
async fn a_geometry_cast_to_text_keeps_its_bytes() {
    let server = Server::new();
    let mut c = server.client().await;
    let bytes = "000000000101000000000000000000F03F0000000000000040";
    c.ok("CREATE TABLE g (g POINT)").await;
    c.ok("INSERT INTO g VALUES (ST_GEOMFROMTEXT('POINT(1 2)'))").await;
    assert_eq!(c.value("SELECT HEX(CAST(g AS CHAR)) FROM g").await, bytes);
    assert_eq!(c.value("SELECT HEX(CONVERT(ST_GEOMFROMTEXT('POINT(1 2)'), CHAR))").await, bytes);
    assert_eq!(c.value("SELECT CAST(g AS CHAR) = g FROM g").await, "1");
}
