//! Stored procedures, as far as golden answers cannot show it: several results, KILL, the account that they run as, privileges.

use highkey_types::Value;

use super::{Answer, Collector, Server, table};
use crate::session::{ClientFlags, StatusFlags};

/// Kinds of the answers, with how many rows, and whether more follow.
fn shape(answers: &[Answer]) -> Vec<String> {
    let more = |status: StatusFlags| if status.has(StatusFlags::MORE_RESULTS_EXISTS) { "+" } else { "" };
    answers
        .iter()
        .map(|answer| match answer {
            Answer::Rows { rows, end, .. } => format!("{} rows{}", rows.len(), more(end.status)),
            Answer::Ok(ok) => format!("ok {}{}", ok.affected_rows, more(ok.status)),
            Answer::Error(e) => format!("error {}", e.code),
        })
        .collect()
}

#[tokio::test]
async fn a_call_answers_all_its_results_and_then_ok() {
    let server = Server::new();
    let mut client = server.client().await;
    client.ok("CREATE TABLE t (a INT PRIMARY KEY)").await;
    client.ok("CREATE PROCEDURE p() BEGIN SELECT 1; INSERT INTO t VALUES (1), (2); SELECT a FROM t; SELECT 1 FROM t WHERE a > 5; UPDATE t SET a = a + 10; END").await;
    let answers = client.run_all("CALL p(); SELECT 5").await;
    assert_eq!(shape(&answers), ["1 rows+", "2 rows+", "0 rows+", "ok 2+", "1 rows"]);
    client.ok("CREATE PROCEDURE q() BEGIN SELECT 1; INSERT INTO t VALUES (11); SELECT 2; END").await;
    assert_eq!(shape(&client.run_all("CALL q(); SELECT 5").await), ["1 rows+", "error 1062"]);
    client.ok("CREATE PROCEDURE r() BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION SELECT 'caught'; CALL q(); SELECT 3; END").await;
    assert_eq!(shape(&client.run_all("CALL r()").await), ["1 rows+", "1 rows+", "1 rows+", "ok 0"]);
}

#[tokio::test]
async fn a_body_is_not_cut_at_its_semicolons() {
    let server = Server::new();
    let mut client = server.client().await;
    let answers = client.run_all("CREATE PROCEDURE p() BEGIN SELECT ';' AS a; SELECT 2; END; CALL p(); CREATE PROCEDURE one() SELECT 7; CALL one()").await;
    assert_eq!(shape(&answers), ["ok 0+", "1 rows+", "1 rows+", "ok 0+", "ok 0+", "1 rows+", "ok 0"]);
    // What follows is read when its turn comes.
    let answers = client.run_all("CREATE PROCEDURE q() BEGIN END; SELECT 'unfinished").await;
    assert_eq!(shape(&answers), ["ok 0+", "error 1064"]);
    client.session.set_multi_statements(false);
    assert_eq!(shape(&client.run_all("CREATE PROCEDURE s() BEGIN SELECT 1; SELECT 2; END").await), ["ok 0"]);
    assert_eq!(client.error("CREATE PROCEDURE u() BEGIN SELECT 1; END; SELECT 2").await.0, 1064);
    assert_eq!(shape(&client.run_all("CALL s()").await), ["1 rows+", "1 rows+", "ok 0"]);
}

#[tokio::test]
async fn a_client_of_one_result_gets_none_of_a_procedure() {
    let server = Server::new();
    let mut client = server.client().await;
    client.ok("CREATE PROCEDURE p() BEGIN SELECT 1; END").await;
    client.ok("CREATE PROCEDURE q() SET @q = 1").await;
    let mut plain = server.connect_as("root");
    plain.ok("USE d").await;
    assert_eq!(plain.error("CALL p()").await.0, 1312);
    plain.ok("CALL q()").await;
}

#[tokio::test]
async fn the_values_of_out_parameters_are_a_result_of_the_binary_protocol() {
    let server = Server::new();
    let mut client = server.client().await;
    client.session.state.client.flags.ps_multi_results = true;
    client.ok("CREATE PROCEDURE p(IN a INT, OUT b INT, INOUT c VARCHAR(5)) BEGIN SELECT a; SET b = a + 1, c = CONCAT(c, 'x'); END").await;
    let prepared = client.session.prepare(b"CALL p(?, ?, ?)").await.unwrap();
    assert_eq!((prepared.params, prepared.columns.len()), (3, 0));
    let mut sink = Collector::default();
    client.session.execute_prepared(prepared.id, &[Value::Int(1), Value::Null, Value::text("c")], false, &mut sink).await.unwrap();
    assert_eq!(shape(&sink.answers), ["1 rows+", "1 rows+", "ok 0"]);
    let Answer::Rows { rows, end, .. } = &sink.answers[1] else { panic!("{:?}", sink.answers) };
    assert!(end.status.has(StatusFlags::PS_OUT_PARAMS));
    assert_eq!(rows[0], [Value::Int(2), Value::text("cx")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_ends_a_loop_whatever_its_handlers_say() {
    let server = Server::new();
    let mut client = server.client().await;
    client.ok("CREATE PROCEDURE p() BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END; WHILE TRUE DO SET @i = IFNULL(@i, 0) + 1; END WHILE; END").await;
    assert_eq!(client.error_when_killed("CALL p()").await.0, 1317);
    assert_eq!(client.value("SELECT 1").await, "1");
}

#[tokio::test]
async fn the_session_is_as_before_after_any_end() {
    let server = Server::new();
    let mut client = server.client().await;
    client.ok("CREATE DATABASE other").await;
    client.ok("CREATE USER definer").await;
    client.ok("GRANT EXECUTE ON other.* TO definer").await;
    client.ok("SET sql_mode = 'ANSI_QUOTES'").await;
    client.ok("CREATE DEFINER = definer PROCEDURE other.p(fails INT) BEGIN SET @seen = CONCAT_WS(' ', DATABASE(), CURRENT_USER(), @@sql_mode); IF fails THEN SIGNAL SQLSTATE '45000'; END IF; END").await;
    client.ok("SET sql_mode = ''").await;
    for fails in ["0", "1"] {
        client.run(&format!("CALL other.p({fails})")).await;
        assert_eq!(client.rows("SELECT DATABASE(), CURRENT_USER(), @@sql_mode, @seen").await, [["d", "root@localhost", "", "other definer@% ANSI_QUOTES"]]);
    }
    client.ok("DROP USER definer").await;
    assert_eq!(client.error("CALL other.p(0)").await.0, 1449);
    // The definer has to have the right, too.
    client.ok("CREATE USER definer").await;
    assert_eq!(client.error("CALL other.p(0)").await, (1370, "execute command denied to user 'definer'@'%' for routine 'other.p'".into()));
    assert_eq!(client.rows("SELECT DATABASE(), CURRENT_USER(), @@sql_mode").await, [["d", "root@localhost", ""]]);
}

#[tokio::test]
async fn an_error_that_a_routine_raises_ends_no_transaction() {
    let server = Server::new();
    let mut client = server.client().await;
    client.ok("CREATE TABLE t (a INT PRIMARY KEY)").await;
    client.ok("CREATE PROCEDURE raise() SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213").await;
    client.ok("CREATE PROCEDURE outer_one() CALL raise()").await;
    client.ok("START TRANSACTION").await;
    client.ok("INSERT INTO t VALUES (1)").await;
    for sql in ["SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213", "CALL raise()", "CALL outer_one()"] {
        assert_eq!(client.error(sql).await.0, 1213, "{sql}");
    }
    client.ok("COMMIT").await;
    assert_eq!(client.rows("SELECT a FROM t").await, table("1"));
}

#[tokio::test]
async fn roles_and_rights_stay_with_their_account() {
    let server = Server::new();
    let mut root = server.client().await;
    root.ok("CREATE TABLE secret (a INT)").await;
    root.ok("CREATE USER u@localhost, definer").await;
    root.ok("CREATE ROLE reader").await;
    root.ok("GRANT SELECT ON d.* TO reader").await;
    root.ok("GRANT reader TO definer").await;
    root.ok("GRANT EXECUTE ON d.* TO u@localhost, definer").await;
    // It takes on the role, ends in an error, and leaves a prepared statement.
    root.ok("CREATE DEFINER = definer PROCEDURE p() BEGIN SET ROLE reader; PREPARE s FROM 'SELECT COUNT(*) FROM d.secret'; EXECUTE s; SIGNAL SQLSTATE '45000'; END").await;
    let mut client = server.connect_with("u", ClientFlags { multi_results: true, ..ClientFlags::default() });
    assert_eq!(shape(&client.run_all("CALL d.p()").await), ["1 rows+", "error 1644"]);
    assert_eq!(client.rows("SELECT CURRENT_USER(), CURRENT_ROLE()").await, [["u@localhost", "NONE"]]);
    assert_eq!(client.error("EXECUTE s").await.0, 1142);
    assert_eq!(client.error("SELECT * FROM d.secret").await.0, 1142);
}

#[tokio::test]
async fn a_prepared_statement_has_its_limit_where_it_runs() {
    let server = Server::new();
    let mut client = server.client().await;
    client.ok("CREATE TABLE t (a INT PRIMARY KEY)").await;
    client.ok("INSERT INTO t VALUES (1), (2), (3)").await;
    client.ok("SET sql_select_limit = 1").await;
    client.ok("PREPARE s FROM 'SELECT a FROM t'").await;
    client.ok("CREATE PROCEDURE p() EXECUTE s").await;
    for _ in 0..2 {
        assert_eq!(client.rows("EXECUTE s").await.len(), 1);
        assert_eq!(shape(&client.run_all("CALL p()").await), ["3 rows+", "ok 0"]);
    }
}

#[tokio::test]
async fn rights_are_the_definers_or_the_invokers() {
    let server = Server::new();
    let mut root = server.client().await;
    root.ok("CREATE TABLE secret (a INT)").await;
    root.ok("INSERT INTO secret VALUES (42)").await;
    root.ok("CREATE PROCEDURE lent() SELECT a INTO @a FROM secret").await;
    root.ok("CREATE PROCEDURE own() SQL SECURITY INVOKER SELECT a INTO @a FROM secret").await;
    root.ok("CREATE USER u@localhost").await;
    let mut client = server.connect_as("u");
    assert_eq!(client.error("CALL d.lent()").await, (1370, "execute command denied to user 'u'@'localhost' for routine 'd.lent'".into()));
    root.ok("GRANT EXECUTE ON PROCEDURE d.lent TO u@localhost").await;
    root.ok("GRANT EXECUTE ON PROCEDURE d.own TO u@localhost").await;
    client.ok("CALL d.lent()").await;
    assert_eq!(client.value("SELECT @a").await, "42");
    assert_eq!(client.error("CALL d.own()").await.0, 1142);
    assert_eq!(client.error("SELECT a FROM d.secret").await.0, 1142);
    assert_eq!(client.error("DROP PROCEDURE d.lent").await.0, 1370);
    assert_eq!(client.error("CREATE PROCEDURE d.mine() SELECT 1").await.0, 1044);
    root.ok("GRANT CREATE ROUTINE ON d.* TO u@localhost").await;
    client.ok("CREATE PROCEDURE d.mine() SET @mine = 1").await;
    client.ok("CALL d.mine()").await;
    client.ok("DROP PROCEDURE d.mine").await;
    let grants = root.rows("SHOW GRANTS FOR u@localhost").await;
    assert!(!grants.iter().any(|line| line[0].contains("mine")), "{grants:?}");
    assert!(grants.contains(&vec!["GRANT EXECUTE ON PROCEDURE `d`.`lent` TO `u`@`localhost`".to_owned()]), "{grants:?}");
    root.ok("REVOKE EXECUTE ON PROCEDURE d.lent FROM u@localhost").await;
    assert_eq!(client.error("CALL d.lent()").await.0, 1370);
    assert_eq!(root.error("REVOKE EXECUTE ON PROCEDURE d.lent FROM u@localhost").await.0, 1403);
}

#[tokio::test]
async fn what_is_dropped_or_altered_is_another_one_at_once() {
    let server = Server::new();
    let (mut a, mut b) = (server.client().await, server.client().await);
    a.ok("CREATE PROCEDURE p() SET @p = 'old'").await;
    b.ok("CALL p()").await;
    a.ok("DROP PROCEDURE p").await;
    a.ok("CREATE PROCEDURE p() SET @p = 'new'").await;
    b.ok("CALL P()").await;
    assert_eq!(b.value("SELECT @p").await, "new");
    a.ok("DROP DATABASE d").await;
    assert_eq!(b.error("CALL d.p()").await.0, 1305);
}

#[tokio::test]
async fn max_execution_time_is_not_for_what_a_procedure_runs() {
    let server = Server::new();
    let mut client = server.client().await;
    client.ok("CREATE PROCEDURE p() SELECT SLEEP(0.05) INTO @slept").await;
    client.ok("SET max_execution_time = 1").await;
    client.ok("CALL p()").await;
    assert_eq!(client.value("SELECT @slept").await, "0");
}

#[tokio::test]
async fn statements_of_a_loop_keep_their_plans() {
    let server = Server::new();
    let mut client = server.client().await;
    client.ok("CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(20))").await;
    client.ok("CREATE PROCEDURE p(n INT) BEGIN DECLARE i INT DEFAULT 0; WHILE i < n DO SET i = i + 1; INSERT INTO t VALUES (i, CONCAT('b', i)); UPDATE t SET b = CONCAT(b, i) WHERE a = i; END WHILE; END").await;
    client.ok("CALL p(20)").await;
    assert_eq!(client.rows("SELECT COUNT(*), MIN(b), MAX(b) FROM t").await, table("20 b1010 b99"));
    client.ok("ALTER TABLE t MODIFY b VARCHAR(30) DEFAULT 'x', ADD c INT").await;
    assert_eq!(client.error("CALL p(20)").await.0, 1136);
}

#[tokio::test]
async fn diagnostics_are_of_the_statement_before() {
    let server = Server::new();
    let mut client = server.client().await;
    client.ok("CREATE TABLE t (a INT PRIMARY KEY)").await;
    client.error("SELECT 1 FROM nope").await;
    client.ok("GET DIAGNOSTICS CONDITION 1 @s = RETURNED_SQLSTATE, @e = MYSQL_ERRNO, @m = MESSAGE_TEXT").await;
    assert_eq!(client.rows("SELECT @s, @e, @m").await, [["42S02", "1146", "Table 'd.nope' doesn't exist"]]);
    client.ok("INSERT INTO t VALUES (1), (2)").await;
    client.ok("GET DIAGNOSTICS @n = NUMBER, @r = ROW_COUNT").await;
    assert_eq!(client.rows("SELECT @n, @r").await, table("0 2"));
    client.error("SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'mine', SCHEMA_NAME = 'here'").await;
    client.ok("GET DIAGNOSTICS CONDITION 1 @s = RETURNED_SQLSTATE, @c = CLASS_ORIGIN, @n = SCHEMA_NAME, @t = TABLE_NAME").await;
    assert_eq!(client.rows("SELECT @s, @c, @n, @t").await, [["45000", "", "here", ""]]);
    // A condition that is not there is one more.
    client.error("SIGNAL SQLSTATE '45000'").await;
    client.ok("GET DIAGNOSTICS CONDITION 2 @e = MYSQL_ERRNO").await;
    assert_eq!(client.rows("SHOW WARNINGS").await.len(), 2);
}

#[tokio::test]
async fn what_was_prepared_elsewhere_leaves_a_procedure_where_it_is() {
    let server = Server::new();
    let mut client = server.client().await;
    client.ok("CREATE DATABASE other").await;
    client.ok("PREPARE s FROM 'SELECT DATABASE() INTO @in'").await;
    client.ok("CREATE PROCEDURE other.p() BEGIN EXECUTE s; SET @after = DATABASE(); END").await;
    client.ok("USE other").await;
    client.ok("PREPARE c FROM 'CALL p()'").await;
    client.ok("USE d").await;
    client.ok("EXECUTE c").await;
    assert_eq!(client.rows("SELECT DATABASE(), @in, @after").await, table("d d other"));
}

#[tokio::test]
async fn what_is_listed_is_filtered_by_the_routines_name() {
    let server = Server::new();
    let mut client = server.client().await;
    client.ok("CREATE PROCEDURE one() COMMENT 'said' SELECT 1").await;
    client.ok("CREATE PROCEDURE two() SELECT 2").await;
    let rows = client.rows("SHOW PROCEDURE STATUS LIKE 'o%'").await;
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0][0].as_str(), rows[0][1].as_str(), rows[0][7].as_str()), ("d", "one", "said"));
    assert_eq!(client.rows("SHOW PROCEDURE STATUS WHERE Db = 'd'").await.len(), 2);
    assert!(client.rows("SHOW FUNCTION STATUS WHERE Db = 'd'").await.is_empty());
}

/// As MySQL 8.0.12 has it.
#[tokio::test]
async fn get_diagnostics_leaves_row_count_as_it_is() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE l (a INT PRIMARY KEY)").await;
    c.ok("INSERT INTO l VALUES (1), (2)").await;
    c.ok("GET DIAGNOSTICS @x = NUMBER, @y = ROW_COUNT").await;
    assert_eq!(c.rows("SELECT ROW_COUNT(), @x, @y").await, table("2 0 2"));
    c.error("INSERT INTO l VALUES (2)").await;
    c.ok("GET DIAGNOSTICS CONDITION 1 @e = MYSQL_ERRNO").await;
    assert_eq!(c.rows("SELECT ROW_COUNT(), @e").await, table("-1 1062"));
}
