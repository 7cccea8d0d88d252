//! Names of CHECK constraints. MySQL 8.0.12 has no CHECK: these answers are the manual's ("CHECK Constraints", "ALTER TABLE", "CREATE TABLE … LIKE").

use super::{Client, Server};

async fn names(c: &mut Client, schema: &str) -> Vec<String> {
    let sql = format!("SELECT constraint_name FROM information_schema.check_constraints WHERE constraint_schema = '{schema}' ORDER BY 1");
    c.rows(&sql).await.into_iter().map(|mut row| row.swap_remove(0)).collect()
}

#[tokio::test]
async fn a_name_is_there_once_in_a_schema() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (a INT, CONSTRAINT small CHECK (a < 10), CHECK (a > 0))").await;
    let taken = |name: &str| (3822, format!("Duplicate check constraint name '{name}'."));
    assert_eq!(c.error("CREATE TABLE u (a INT, CONSTRAINT small CHECK (a < 5))").await, taken("small"));
    assert_eq!(c.error("CREATE TABLE u (a INT CONSTRAINT t_chk_1 CHECK (a < 5))").await, taken("t_chk_1"));
    c.ok("CREATE TABLE u (a INT CONSTRAINT large CHECK (a < 100))").await;
    assert_eq!(c.error("ALTER TABLE u ADD CONSTRAINT small CHECK (a < 5)").await, taken("small"));
    assert_eq!(c.error("ALTER TABLE u ADD COLUMN b INT CONSTRAINT small CHECK (b < 5)").await, taken("small"));
    assert_eq!(names(&mut c, "d").await, ["large", "small", "t_chk_1"]);
    // A temporary table is beside the others, and each schema has names of its own.
    c.ok("CREATE TEMPORARY TABLE x (a INT, CONSTRAINT small CHECK (a < 10))").await;
    c.ok("CREATE DATABASE other").await;
    c.ok("CREATE TABLE other.t (a INT, CONSTRAINT small CHECK (a < 10))").await;
    assert_eq!(c.error("RENAME TABLE other.t TO v").await, taken("small"));
    // What is gone is free.
    c.ok("ALTER TABLE t DROP CHECK small").await;
    c.ok("ALTER TABLE u ADD CONSTRAINT small CHECK (a < 5)").await;
    c.ok("DROP TABLE u").await;
    c.ok("RENAME TABLE other.t TO v").await;
    assert_eq!(names(&mut c, "d").await, ["small", "t_chk_1"]);
}

#[tokio::test]
async fn generated_names_follow_the_table() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (a INT, CHECK (a < 10), CONSTRAINT own CHECK (a > 0))").await;
    c.ok("RENAME TABLE t TO u").await;
    c.ok("CREATE TABLE t (a INT, CHECK (a < 20))").await;
    assert_eq!(names(&mut c, "d").await, ["own", "t_chk_1", "u_chk_1"]);
    c.ok("RENAME TABLE t TO x, u TO t, x TO u").await;
    assert_eq!(names(&mut c, "d").await, ["own", "t_chk_1", "u_chk_1"]);
    assert_eq!(c.error("INSERT INTO u VALUES (30)").await, (3819, "Check constraint 'u_chk_1' is violated.".into()));
    c.ok("ALTER TABLE u RENAME w, ADD CHECK (a <> 3)").await;
    assert_eq!(names(&mut c, "d").await, ["own", "t_chk_1", "w_chk_1", "w_chk_2"]);
    // They may meet a name that was given.
    c.ok("CREATE TABLE y (a INT, CHECK (a < 10), CONSTRAINT z_chk_1 CHECK (a > 0))").await;
    assert_eq!(c.error("RENAME TABLE y TO z").await.0, 3822);
    c.ok("DROP TABLE y").await;
    // A copy of the definition has names of its own.
    c.ok("CREATE TABLE copy LIKE t").await;
    assert_eq!(names(&mut c, "d").await, ["copy_chk_1", "copy_chk_2", "own", "t_chk_1", "w_chk_1", "w_chk_2"]);
}

#[tokio::test]
async fn expressions_are_shown_as_mysql_writes_them() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (a INT, b INT DEFAULT (1+2), s VARCHAR(10) DEFAULT (CONCAT('it''s', \"\\\\\")), g INT AS (a*2+b), CONSTRAINT k CHECK (a<10 AND s<>'x'), CHECK (JSON_VALID('[]')) NOT ENFORCED)").await;
    let made = c.rows("SHOW CREATE TABLE t").await.swap_remove(0).swap_remove(1);
    for line in [
        "`b` int DEFAULT ((1 + 2)),",
        "`s` varchar(10) DEFAULT (concat(_utf8mb4'it\\'s',_utf8mb4'\\\\')),",
        "`g` int GENERATED ALWAYS AS (((`a` * 2) + `b`)) VIRTUAL,",
        "CONSTRAINT `k` CHECK (((`a` < 10) and (`s` <> _utf8mb4'x'))),",
        "CONSTRAINT `t_chk_1` CHECK (json_valid(_utf8mb4'[]')) /*!80016 NOT ENFORCED */",
    ] {
        assert!(made.lines().any(|shown| shown.trim() == line), "{line}\n{made}");
    }
    let clauses = c.rows("SELECT check_clause FROM information_schema.check_constraints WHERE constraint_name = 'k'").await;
    assert_eq!(clauses, [["((`a` < 10) and (`s` <> _utf8mb4\\'x\\'))"]]);
    // What is shown makes the same table, which does the same.
    c.ok(&made.replacen("`t`", "`u`", 1).replace("`k`", "`l`").replace("t_chk", "u_chk")).await;
    let again = c.rows("SHOW CREATE TABLE u").await.swap_remove(0).swap_remove(1);
    assert_eq!(again.replacen("`u`", "`t`", 1).replace("`l`", "`k`").replace("u_chk", "t_chk"), made);
    c.ok("INSERT INTO u (a) VALUES (4)").await;
    assert_eq!(c.rows("SELECT * FROM u").await, [["4", "3", "it's\\", "11"]]);
}

#[tokio::test]
async fn what_is_kept_can_be_read_again() {
    let server = Server::new();
    let mut c = server.client().await;
    // Whatever qualifies a column, it is one of the table, which may get another name.
    c.ok("CREATE TABLE t (a INT, g INT AS (t.a + 1), CHECK (d.t.a < 10))").await;
    c.ok("RENAME TABLE t TO u").await;
    c.ok("INSERT INTO u (a) VALUES (3)").await;
    assert_eq!(c.rows("SELECT * FROM u").await, [["3", "4"]]);
    assert_eq!(c.error("INSERT INTO u (a) VALUES (30)").await, (3819, "Check constraint 'u_chk_1' is violated.".into()));
    // MEMBER OF binds less than other operators do.
    c.ok("CREATE TABLE m (j JSON, a INT AS ((1 MEMBER OF (j)) + 1), b INT AS (1 + (2 MEMBER OF (j))), CHECK ((3 MEMBER OF (j)) = 0))").await;
    c.ok("INSERT INTO m (j) VALUES ('[1]')").await;
    assert_eq!(c.rows("SELECT a, b FROM m").await, [["2", "1"]]);
    assert_eq!(c.error("CREATE TABLE v (a INT, g INT AS (VALUES(a)))").await.0, 3102);
}
