//! What accounts may do: answers of MySQL 8.0.12.

use super::*;

/// `ok`, or the error as the recording has it.
fn told(answer: &Answer) -> String {
    match answer {
        Answer::Error(MySqlError { code, message, .. }) => format!("{code} {message}"),
        _ => "ok".to_owned(),
    }
}

const RECORDED: [(&str, &str); 8] = [
    ("u", include_str!("privileges_u.recorded")),
    ("v", include_str!("privileges_v.recorded")),
    ("w", include_str!("privileges_w.recorded")),
    ("k", include_str!("privileges_k.recorded")),
    ("m", include_str!("privileges_m.recorded")),
    ("n", include_str!("privileges_n.recorded")),
    ("x", include_str!("privileges_x.recorded")),
    ("z", include_str!("privileges_z.recorded")),
];

/// Prepares a server as a recording says; the statements that follow there with their answers.
async fn recorded((user, text): (&str, &'static str)) -> (Server, Vec<(&'static str, &'static str)>) {
    let server = Server::new();
    let mut root = server.connect();
    let (setup, asked) = text.split_once(&format!("-- {user}\n")).unwrap();
    for sql in setup.lines().filter(|line| !line.starts_with('#') && !line.starts_with("--")) {
        root.ok(sql).await;
    }
    (server, asked.lines().map(|line| line.split_once(" => ").unwrap()).collect())
}

#[tokio::test]
async fn what_may_not_be_done_is_refused_as_by_mysql() {
    let mut others = Vec::new();
    for recording in RECORDED {
        let (server, asked) = recorded(recording).await;
        let mut client = server.connect_as(recording.0);
        for (sql, expected) in asked {
            let found = told(&client.run(sql).await);
            if found != expected {
                others.push(format!("{sql}\n  MySQL: {expected}\n  here:  {found}"));
            }
        }
    }
    assert!(others.is_empty(), "{}", others.join("\n"));
}

#[tokio::test]
async fn lists_leave_out_what_may_not_be_seen() {
    let (server, _) = recorded(RECORDED[0]).await;
    let mut u = server.connect_as("u");
    assert_eq!(u.rows("SHOW DATABASES").await, table("d|information_schema"));
    u.ok("USE d").await;
    assert_eq!(u.rows("SHOW TABLES").await, table("del|ins|s|t|upd|v|vbad|vi"));
    assert_eq!(
        u.rows("SHOW GRANTS").await.concat(),
        [
            "GRANT USAGE ON *.* TO `u`@`localhost`",
            "GRANT DELETE ON `d`.`del` TO `u`@`localhost`",
            "GRANT INSERT ON `d`.`ins` TO `u`@`localhost`",
            "GRANT SELECT (`id`), INSERT (`id`), UPDATE (`t_id`) ON `d`.`s` TO `u`@`localhost`",
            "GRANT SELECT ON `d`.`t` TO `u`@`localhost`",
            "GRANT UPDATE ON `d`.`upd` TO `u`@`localhost`",
            "GRANT SELECT ON `d`.`v` TO `u`@`localhost`",
            "GRANT SELECT, SHOW VIEW ON `d`.`vbad` TO `u`@`localhost`",
            "GRANT SELECT ON `d`.`vi` TO `u`@`localhost`",
        ]
    );
    let columns = "SELECT table_name, column_name, privileges FROM information_schema.columns WHERE table_schema = 'd' AND table_name IN ('del', 'hidden', 'ins', 's', 't', 'upd', 'v') ORDER BY 1, ordinal_position";
    let expected = "ins id insert|ins h insert|s id select,insert|s t_id update|t id select|t a select|t b select|upd id update|upd h update|upd i update|v id select|v h select";
    assert_eq!(u.rows(columns).await, table(expected));
    let tables = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema <> 'information_schema' AND table_schema <> 'performance_schema' ORDER BY 2";
    assert_eq!(u.rows(tables).await, table("d del|d ins|d s|d t|d upd|d v|d vbad|d vi"));
    assert_eq!(u.rows("SELECT table_name, view_definition <> '' FROM information_schema.views ORDER BY 1").await, table("v 0|vbad 1|vi 0"));
    assert_eq!(u.rows("SELECT * FROM information_schema.user_privileges").await, table("'u'@'localhost' def USAGE NO"));
    assert_eq!(
        u.rows("SELECT * FROM information_schema.column_privileges").await,
        table("'u'@'localhost' def d s id SELECT NO|'u'@'localhost' def d s id INSERT NO|'u'@'localhost' def d s t_id UPDATE NO")
    );
    assert_eq!(u.rows("SELECT table_name FROM information_schema.table_privileges WHERE privilege_type = 'DELETE'").await, table("del"));
    assert_eq!(u.value("SELECT LOAD_FILE('/etc/hostname')").await, "NULL");
    let _other = server.connect();
    assert_eq!(u.rows("SHOW PROCESSLIST").await.len(), 1);
}

#[tokio::test]
async fn grants_are_in_force_from_the_next_statement_on() {
    let server = Server::new();
    let mut root = server.client().await;
    root.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT)").await;
    root.ok("INSERT INTO t VALUES (1, 2)").await;
    root.ok("CREATE USER u@localhost").await;
    let mut u = server.connect_as("u");
    let denied = (1142, "SELECT command denied to user 'u'@'localhost' for table 't'".to_owned());
    let select = "SELECT a FROM d.t WHERE id = 1";
    assert_eq!(u.error(select).await, denied);
    root.ok("GRANT SELECT ON d.* TO u@localhost").await;
    // Often enough for its plan to be kept.
    for _ in 0..4 {
        assert_eq!(u.value(select).await, "2");
    }
    let prepared = u.session.prepare(select.as_bytes()).await.unwrap();
    let mut sink = Collector::default();
    u.session.execute_prepared(prepared.id, &[], false, &mut sink).await.unwrap();
    root.ok("REVOKE SELECT ON d.* FROM u@localhost").await;
    assert_eq!(u.error(select).await, denied);
    u.session.execute_prepared(prepared.id, &[], false, &mut sink).await.unwrap();
    assert_eq!(sink.answers.iter().map(told).collect::<Vec<_>>(), ["ok".to_owned(), format!("{} {}", denied.0, denied.1)]);
    // A view's definer may lose what the view lives by.
    root.ok("CREATE USER w@localhost").await;
    root.ok("GRANT SELECT ON d.t TO w@localhost").await;
    root.ok("CREATE DEFINER = w@localhost VIEW v AS SELECT id, a FROM t").await;
    root.ok("GRANT SELECT, UPDATE ON d.v TO u@localhost").await;
    let through = "SELECT a FROM d.v WHERE id = 1";
    for _ in 0..4 {
        assert_eq!(u.value(through).await, "2");
    }
    assert_eq!(u.error("UPDATE d.v SET a = 3").await.0, 1356);
    // What it may do with a column is enough for that one.
    root.ok("GRANT UPDATE (a) ON d.t TO w@localhost").await;
    assert_eq!(u.ok("UPDATE d.v SET a = 9").await.affected_rows, 1);
    assert_eq!(u.error("UPDATE d.v SET id = 9").await.0, 1356);
    assert_eq!(u.error("UPDATE d.v SET a = 1, id = 9").await.0, 1356);
    root.ok("UPDATE d.t SET a = 2").await;
    root.ok("GRANT UPDATE ON d.t TO w@localhost").await;
    assert_eq!(u.ok("UPDATE d.v SET a = 3").await.affected_rows, 1);
    root.ok("REVOKE ALL PRIVILEGES, GRANT OPTION FROM w@localhost").await;
    assert_eq!(u.error(through).await.0, 1356);
    root.ok("DROP USER u@localhost").await;
    assert_eq!(u.error("SELECT a FROM d.t").await, denied);
}

#[tokio::test]
async fn what_is_granted_is_shown_and_taken_away() {
    let server = Server::new();
    let mut c = server.client().await;
    for sql in [
        "CREATE TABLE t (id INT PRIMARY KEY)", "CREATE TABLE s (id INT PRIMARY KEY, t_id INT)", "CREATE USER u@localhost", "GRANT SELECT ON d.t TO u@localhost",
        "GRANT SELECT (id), UPDATE (t_id, id), INSERT ON d.s TO u@localhost", "GRANT SELECT, INSERT ON `e%`.* TO u@localhost WITH GRANT OPTION",
        "GRANT RELOAD, PROCESS ON *.* TO u@localhost", "GRANT SYSTEM_VARIABLES_ADMIN, BINLOG_ADMIN ON *.* TO u@localhost WITH GRANT OPTION", "GRANT CREATE ON d.nosuch TO u@localhost",
        "GRANT USAGE ON *.* TO u@localhost",
    ] {
        c.ok(sql).await;
    }
    assert_eq!(
        c.rows("SHOW GRANTS FOR u@localhost").await.concat(),
        [
            "GRANT RELOAD, PROCESS ON *.* TO `u`@`localhost` WITH GRANT OPTION",
            "GRANT BINLOG_ADMIN,SYSTEM_VARIABLES_ADMIN ON *.* TO `u`@`localhost` WITH GRANT OPTION",
            "GRANT SELECT, INSERT ON `e%`.* TO `u`@`localhost` WITH GRANT OPTION",
            "GRANT CREATE ON `d`.`nosuch` TO `u`@`localhost`",
            "GRANT SELECT (`id`), INSERT, UPDATE (`id`, `t_id`) ON `d`.`s` TO `u`@`localhost`",
            "GRANT SELECT ON `d`.`t` TO `u`@`localhost`",
        ]
    );
    for (sql, code, message) in [
        ("REVOKE UPDATE ON e.* FROM u@localhost", 1141, "There is no such grant defined for user 'u' on host 'localhost'"),
        ("REVOKE UPDATE ON d.other FROM u@localhost", 1147, "There is no such grant defined for user 'u' on host 'localhost' on table 'other'"),
        ("REVOKE UPDATE (id) ON d.t FROM u@localhost", 1147, "There is no such grant defined for user 'u' on host 'localhost' on table 't'"),
        ("REVOKE UPDATE ON *.* FROM nobody@localhost", 1141, "There is no such grant defined for user 'nobody' on host 'localhost'"),
        ("REVOKE ALL PRIVILEGES, GRANT OPTION FROM nobody@localhost", 1269, "Can't revoke all privileges for one or more of the requested users"),
        ("GRANT SELECT ON d.missing TO u@localhost", 1146, "Table 'd.missing' doesn't exist"),
        ("GRANT SELECT (zz) ON d.t TO u@localhost", 1054, "Unknown column 'zz' in 't'"),
        ("GRANT SELECT ON *.* TO nobody@localhost", 1410, "You are not allowed to create a user with GRANT"),
        ("GRANT RELOAD ON d.* TO u@localhost", 1221, "Incorrect usage of DB GRANT and GLOBAL PRIVILEGES"),
        ("GRANT RELOAD ON d.t TO u@localhost", 1144, "Illegal GRANT/REVOKE command; please consult the manual to see which privileges can be used"),
        ("GRANT BINLOG_ADMIN ON d.* TO u@localhost", 3619, "Illegal privilege level specified for BINLOG_ADMIN"),
        ("GRANT NONSENSE ON d.* TO u@localhost", 3619, "Illegal privilege level specified for NONSENSE"),
        ("GRANT SELECT (id) ON d.* TO u@localhost", 1144, "Illegal GRANT/REVOKE command; please consult the manual to see which privileges can be used"),
        ("GRANT SELECT ON information_schema.* TO u@localhost", 1044, "Access denied for user 'root'@'localhost' to database 'information_schema'"),
        ("SHOW GRANTS FOR nobody@localhost", 1141, "There is no such grant defined for user 'nobody' on host 'localhost'"),
    ] {
        assert_eq!(c.error(sql).await, (code, message.to_owned()), "{sql}");
    }
    c.ok("REVOKE INSERT, UPDATE ON d.s FROM u@localhost").await;
    c.ok("REVOKE GRANT OPTION ON `e%`.* FROM u@localhost").await;
    c.ok("RENAME USER u@localhost TO w@localhost").await;
    // What an account may do stays when its password changes.
    c.ok("ALTER USER w@localhost IDENTIFIED BY 'x'").await;
    assert_eq!(c.rows("SHOW GRANTS FOR w@localhost").await[2..5].concat(), ["GRANT SELECT, INSERT ON `e%`.* TO `w`@`localhost`", "GRANT CREATE ON `d`.`nosuch` TO `w`@`localhost`", "GRANT SELECT (`id`) ON `d`.`s` TO `w`@`localhost`"]);
    c.ok("REVOKE ALL PRIVILEGES, GRANT OPTION FROM w@localhost").await;
    assert_eq!(c.rows("SHOW GRANTS FOR w@localhost").await.concat(), ["GRANT USAGE ON *.* TO `w`@`localhost`"]);
    c.ok("GRANT ALL ON *.* TO w@localhost").await;
    c.ok("REVOKE SELECT ON *.* FROM w@localhost").await;
    let shown = c.rows("SHOW GRANTS FOR w@localhost").await.concat();
    assert!(shown[0].starts_with("GRANT INSERT, UPDATE, DELETE, CREATE, DROP, RELOAD, SHUTDOWN, PROCESS, FILE, REFERENCES, ") && shown[1].starts_with("GRANT BACKUP_ADMIN,BINLOG_ADMIN,"), "{shown:?}");
    c.ok("DROP USER w@localhost").await;
    assert_eq!(c.error("SHOW GRANTS FOR w@localhost").await.0, 1141);
}

/// Answers of MySQL 8.0.12.
#[tokio::test]
async fn who_administers_connections_passes_read_only_and_init_connect() {
    let server = Server::new();
    let mut root = server.client().await;
    root.ok("CREATE TABLE t (a INT)").await;
    root.ok("CREATE USER a@localhost").await;
    root.ok("CREATE USER u@localhost").await;
    root.ok("GRANT ALL ON d.* TO a@localhost, u@localhost").await;
    root.ok("GRANT CONNECTION_ADMIN ON *.* TO a@localhost").await;
    root.ok("SET GLOBAL init_connect = 'nonsense'").await;
    root.ok("SET GLOBAL read_only = ON").await;
    let (mut a, mut u) = (server.connect_as("a"), server.connect_as("u"));
    assert!(a.session.run_init_connect().await.is_ok() && root.session.run_init_connect().await.is_ok());
    assert!(u.session.run_init_connect().await.is_err());
    a.ok("INSERT INTO d.t VALUES (1)").await;
    root.ok("INSERT INTO t VALUES (2)").await;
    assert_eq!(u.error("INSERT INTO d.t VALUES (3)").await.0, 1290);
    root.ok("SET GLOBAL super_read_only = ON").await;
    assert_eq!(a.error("INSERT INTO d.t VALUES (4)").await.0, 1290);
    for name in ["default_collation_for_utf8mb4", "histogram_generation_max_mem_size", "sql_log_off"] {
        assert_eq!(u.error(&format!("SET {name} = DEFAULT")).await.0, 1227, "{name}");
    }
}

/// Answers of MySQL 8.0.12.
#[tokio::test]
async fn sys_shows_what_its_readers_may_see() {
    let server = Server::new();
    let mut root = server.connect();
    let lost = |view: &str| -> Result<(), (u16, String)> {
        let why = "references invalid table(s) or column(s) or function(s) or definer/invoker of view lack rights to use them";
        Err((1356, format!("View 'sys.{view}' {why}")))
    };
    let process = || -> Result<(), (u16, String)> { Err((1227, "Access denied; you need (at least one of) the PROCESS privilege(s) for this operation".to_owned())) };
    for (grants, waits, tables) in [
        (&["SELECT ON sys.*"][..], lost("innodb_lock_waits"), lost("schema_table_lock_waits")),
        (&["SELECT, PROCESS ON *.*"][..], lost("innodb_lock_waits"), lost("schema_table_lock_waits")),
        (&["SELECT, EXECUTE ON sys.*", "SELECT ON performance_schema.*"][..], process(), Ok(())),
        (&["SELECT, EXECUTE, PROCESS ON *.*"][..], Ok(()), Ok(())),
    ] {
        root.ok("CREATE USER u@localhost").await;
        for grant in grants {
            root.ok(&format!("GRANT {grant} TO u@localhost")).await;
        }
        let mut u = server.connect_as("u");
        for (view, expected) in [("innodb_lock_waits", waits), ("schema_table_lock_waits", tables)] {
            let found = match u.run(&format!("SELECT * FROM sys.{view}")).await {
                Answer::Error(e) => Err((e.code, e.message)),
                _ => Ok(()),
            };
            assert_eq!(found, expected, "{grants:?}");
        }
        root.ok("DROP USER u@localhost").await;
    }
}

/// Answers of MySQL 8.0.12.
#[tokio::test]
async fn the_engines_tables_tell_of_all_tables() {
    let server = Server::new();
    let mut root = server.connect();
    root.ok("CREATE DATABASE d").await;
    root.ok("CREATE TABLE d.t (a INT PRIMARY KEY)").await;
    root.ok("CREATE USER u@localhost").await;
    let mut u = server.connect_as("u");
    assert_eq!(u.error("SELECT * FROM information_schema.innodb_tables").await.0, 1227);
    assert_eq!(u.error("SELECT * FROM mysql.innodb_index_stats").await.0, 1142);
    root.ok("GRANT PROCESS ON *.* TO u@localhost").await;
    root.ok("GRANT SELECT ON mysql.* TO u@localhost").await;
    let mut u = server.connect_as("u");
    assert_eq!(u.rows("SELECT name FROM information_schema.innodb_tables WHERE name LIKE 'd/%'").await, [["d/t"]]);
    assert_eq!(u.rows("SELECT DISTINCT table_name FROM mysql.innodb_index_stats WHERE database_name = 'd'").await, [["t"]]);
    assert_eq!(u.rows("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'd'").await, [["0"]]);
}

/// Answers of MySQL 8.0.12.
#[tokio::test]
async fn what_fails_for_one_account_changes_none() {
    let server = Server::new();
    let mut root = server.connect();
    root.ok("CREATE USER a@localhost, b@localhost").await;
    root.ok("CREATE DATABASE d").await;
    root.ok("CREATE TABLE d.t (a INT)").await;
    root.ok("GRANT SELECT (a) ON d.t TO a@localhost").await;
    let granted = root.rows("SHOW GRANTS FOR a@localhost").await;
    let refused = [
        ("REVOKE SELECT (a) ON d.t FROM a@localhost, b@localhost", "1147 There is no such grant defined for user 'b' on host 'localhost' on table 't'"),
        ("REVOKE SELECT (a) ON d.t FROM nobody@localhost, b@localhost", "1147 There is no such grant defined for user 'nobody' on host 'localhost' on table 't'"),
        ("REVOKE SELECT ON d.* FROM a@localhost, nobody@localhost", "1141 There is no such grant defined for user 'a' on host 'localhost'"),
        ("REVOKE SELECT ON *.* FROM a@localhost, nobody@localhost", "1141 There is no such grant defined for user 'nobody' on host 'localhost'"),
        ("REVOKE ALL PRIVILEGES, GRANT OPTION FROM a@localhost, nobody@localhost", "1269 Can't revoke all privileges for one or more of the requested users"),
        ("RENAME USER b@localhost TO c@localhost, c@localhost TO a@localhost", "1396 Operation RENAME USER failed for 'c'@'localhost'"),
        ("RENAME USER n1@localhost TO c@localhost, n2@localhost TO d@localhost", "1396 Operation RENAME USER failed for 'n1'@'localhost','n2'@'localhost'"),
        ("RENAME USER a@localhost TO c@localhost, b@localhost TO c@localhost", "1396 Operation RENAME USER failed for 'b'@'localhost'"),
        ("RENAME USER a@localhost TO c@localhost, a@localhost TO d@localhost", "1396 Operation RENAME USER failed for 'a'@'localhost'"),
    ];
    for (sql, expected) in refused {
        assert_eq!(told(&root.run(sql).await), expected, "{sql}");
        assert_eq!(root.rows("SHOW GRANTS FOR a@localhost").await, granted, "{sql}");
        assert_eq!(root.rows("SELECT user FROM mysql.user WHERE user IN ('a', 'b', 'c', 'd') ORDER BY user").await, table("a|b"), "{sql}");
    }
    // Names that become free on the way.
    root.ok("RENAME USER a@localhost TO c@localhost, b@localhost TO a@localhost, c@localhost TO b@localhost").await;
    assert_eq!(root.rows("SHOW GRANTS FOR b@localhost").await.len(), 2);
}

#[tokio::test]
async fn sessions_begin_with_the_default_roles() {
    let server = Server::new();
    let mut root = server.client().await;
    root.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT)").await;
    root.ok("INSERT INTO t VALUES (1, 2)").await;
    root.ok("CREATE ROLE r, s").await;
    root.ok("CREATE USER u@localhost DEFAULT ROLE r").await;
    root.ok("GRANT SELECT ON d.t TO r").await;
    root.ok("GRANT s TO u@localhost").await;
    let select = "SELECT a FROM d.t WHERE id = 1";
    let mut u = server.connect_as("u");
    assert_eq!(u.value("SELECT CURRENT_ROLE()").await, "`r`@`%`");
    // Often enough for its plan to be kept, which holds for these roles only.
    for _ in 0..4 {
        assert_eq!(u.value(select).await, "2");
    }
    u.ok("SET ROLE s").await;
    assert_eq!(u.error(select).await.0, 1142);
    u.ok("SET ROLE ALL").await;
    assert_eq!(u.value("SELECT CURRENT_ROLE()").await, "`r`@`%`,`s`@`%`");
    assert_eq!(u.value(select).await, "2");
    u.ok("SET ROLE NONE").await;
    u.session.reset().await.unwrap();
    assert_eq!(u.value("SELECT CURRENT_ROLE()").await, "`r`@`%`");
    u.ok("SET ROLE NONE").await;
    let client = u.session.state.client.clone();
    u.session.change_user(client).await.unwrap();
    assert_eq!(u.value(select).await, "2");
    root.ok("SET DEFAULT ROLE NONE TO u@localhost").await;
    root.ok("SET GLOBAL activate_all_roles_on_login = ON").await;
    assert_eq!(server.connect_as("u").value("SELECT CURRENT_ROLE()").await, "`r`@`%`,`s`@`%`");
    root.ok("SET GLOBAL activate_all_roles_on_login = OFF").await;
    root.ok("SET GLOBAL mandatory_roles = 's,nobody'").await;
    let mut v = server.connect_as("u");
    assert_eq!(v.value("SELECT CURRENT_ROLE()").await, "NONE");
    v.ok("SET ROLE s").await;
    root.ok("GRANT SELECT ON d.t TO s").await;
    assert_eq!(v.value(select).await, "2");
    root.ok("SET GLOBAL mandatory_roles = ''").await;
    root.ok("REVOKE s FROM u@localhost").await;
    // The role has been taken away, which CURRENT_ROLE() does not tell.
    assert_eq!(v.error(select).await.0, 1142);
    assert_eq!(v.value("SELECT CURRENT_ROLE()").await, "`s`@`%`");
    // An account that is a role can be logged in to, a role that is made cannot.
    assert_eq!(root.rows("SELECT user FROM mysql.user WHERE account_locked = 'Y' AND user NOT LIKE 'mysql.%' ORDER BY 1").await, [["r"], ["s"]]);
}

/// What a routine has bound for its caller is not for who has the connection later.
#[tokio::test]
async fn routines_are_bound_anew_for_another_account() {
    let server = Server::new();
    let mut root = server.client().await;
    root.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT)").await;
    root.ok("INSERT INTO t VALUES (1, 1)").await;
    root.ok("CREATE PROCEDURE p() SQL SECURITY INVOKER UPDATE d.t SET a = a + 1 WHERE id = 1").await;
    root.ok("CREATE USER u@localhost, w@localhost").await;
    root.ok("GRANT EXECUTE ON d.* TO u@localhost, w@localhost").await;
    root.ok("GRANT SELECT, UPDATE ON d.t TO u@localhost").await;
    let mut u = server.connect_as("u");
    for _ in 0..3 {
        u.ok("CALL d.p()").await;
    }
    let client = ClientInfo { user: "w".into(), account_user: "w".into(), ..u.session.state.client.clone() };
    u.session.change_user(client).await.unwrap();
    assert_eq!(u.error("CALL d.p()").await.0, 1142);
    assert_eq!(root.value("SELECT a FROM t").await, "4");
}

/// A trigger acts as its definer, whose rights may change between its rows' statements.
#[tokio::test]
async fn triggers_follow_what_their_definer_may_do() {
    let server = Server::new();
    let mut root = server.client().await;
    root.ok("CREATE TABLE t (a INT)").await;
    root.ok("CREATE TABLE log (a INT)").await;
    root.ok("CREATE USER u@localhost, w@localhost").await;
    root.ok("GRANT SELECT, INSERT ON d.t TO u@localhost").await;
    root.ok("GRANT SELECT, TRIGGER ON d.t TO w@localhost").await;
    root.ok("GRANT INSERT ON d.log TO w@localhost").await;
    root.ok("CREATE DEFINER = w@localhost TRIGGER g AFTER INSERT ON t FOR EACH ROW INSERT INTO log VALUES (NEW.a)").await;
    let mut u = server.connect_as("u");
    for _ in 0..3 {
        u.ok("INSERT INTO d.t VALUES (1), (2)").await;
        assert_eq!(u.error("INSERT INTO d.log VALUES (1)").await.0, 1142);
    }
    root.ok("REVOKE INSERT ON d.log FROM w@localhost").await;
    assert_eq!(u.error("INSERT INTO d.t VALUES (3)").await.0, 1142);
    root.ok("GRANT INSERT ON d.log TO w@localhost").await;
    u.ok("INSERT INTO d.t VALUES (4)").await;
    assert_eq!(root.value("SELECT COUNT(*) FROM log").await, "7");
}

/// As in MySQL 8.0.12.
#[tokio::test]
async fn an_active_role_counts_while_the_account_has_it() {
    let server = Server::new();
    let mut root = server.client().await;
    root.ok("CREATE TABLE t (id INT PRIMARY KEY)").await;
    root.ok("CREATE ROLE r").await;
    root.ok("GRANT SELECT ON d.t TO r").await;
    root.ok("CREATE USER u@localhost").await;
    root.ok("GRANT r TO u@localhost").await;
    let mut u = server.connect_as("u");
    u.ok("SET ROLE r").await;
    let select = "SELECT id FROM d.t WHERE id = 1";
    let again = ["CREATE ROLE r", "GRANT SELECT ON d.t TO r", "GRANT r TO u@localhost"];
    // With its plan kept, too.
    for (lost, back) in [("REVOKE r FROM u@localhost", &again[2..]), ("DROP ROLE r", &again[..]), ("REVOKE SELECT ON d.t FROM r", &again[1..2])] {
        for _ in 0..4 {
            assert!(u.rows(select).await.is_empty());
        }
        root.ok(lost).await;
        assert_eq!(u.error(select).await.0, 1142, "{lost}");
        for sql in back {
            assert_eq!(u.error(select).await.0, 1142, "{sql}");
            root.ok(sql).await;
        }
    }
    assert!(u.rows(select).await.is_empty());
    root.ok("DROP USER u@localhost").await;
    assert_eq!(u.error(select).await.0, 1142);
    assert_eq!(u.error("SET ROLE r").await.0, 3530);
    u.ok("SET ROLE ALL").await;
    root.ok("CREATE USER u@localhost").await;
    root.ok("GRANT r TO u@localhost").await;
    assert_eq!(u.error(select).await.0, 1142);
}

/// MySQL 8.0.12 stops at the first SELECT.
#[tokio::test]
async fn a_view_reads_with_the_default_roles_of_its_definer() {
    let server = Server::new();
    let mut root = server.client().await;
    root.ok("CREATE TABLE t (id INT PRIMARY KEY)").await;
    root.ok("CREATE ROLE r").await;
    root.ok("CREATE USER w@localhost, u@localhost").await;
    root.ok("GRANT SELECT ON d.t TO r").await;
    root.ok("GRANT r TO w@localhost").await;
    root.ok("CREATE DEFINER = w@localhost VIEW v AS SELECT id FROM t").await;
    root.ok("GRANT SELECT ON d.v TO u@localhost").await;
    let mut u = server.connect_as("u");
    assert_eq!(u.error("SELECT * FROM d.v").await.0, 1356);
    root.ok("SET DEFAULT ROLE r TO w@localhost").await;
    assert!(u.rows("SELECT * FROM d.v").await.is_empty());
    root.ok("REVOKE r FROM w@localhost").await;
    assert_eq!(u.error("SELECT * FROM d.v").await.0, 1356);
}

/// As in releases after 8.0.12, which grants in circles.
#[tokio::test]
async fn no_role_is_its_own() {
    let server = Server::new();
    let mut root = server.connect();
    root.ok("CREATE ROLE a, b, c").await;
    root.ok("GRANT a TO b").await;
    root.ok("GRANT b TO c").await;
    let message = |account: &str, role: &str| format!("User account `{account}`@`%` is directly or indirectly granted to the role `{role}`@`%`. The GRANT would create a loop");
    assert_eq!(root.error("GRANT a TO a").await, (4027, message("a", "a")));
    assert_eq!(root.error("GRANT b TO a").await, (4027, message("a", "b")));
    assert_eq!(root.error("GRANT c TO a").await, (4027, message("a", "c")));
    root.ok("GRANT a TO c").await;
}

#[tokio::test]
async fn information_schema_tells_of_roles() {
    let server = Server::new();
    let mut root = server.client().await;
    root.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT)").await;
    root.ok("CREATE ROLE r, s, m").await;
    root.ok("CREATE USER u@localhost").await;
    root.ok("GRANT SELECT, UPDATE (a) ON d.t TO s").await;
    root.ok("GRANT s TO r WITH ADMIN OPTION").await;
    root.ok("GRANT r TO u@localhost").await;
    root.ok("SET DEFAULT ROLE r TO u@localhost").await;
    root.ok("SET GLOBAL mandatory_roles = 'm'").await;
    let mut u = server.connect_as("u");
    assert_eq!(
        u.rows("SELECT * FROM information_schema.applicable_roles ORDER BY role_name").await,
        table("u localhost u localhost m % NO NO YES|u localhost u localhost r % NO YES NO|u localhost r % s % YES NO NO")
    );
    assert_eq!(u.rows("SELECT role_name FROM information_schema.administrable_role_authorizations").await, table("s"));
    assert_eq!(u.rows("SELECT * FROM information_schema.enabled_roles").await, table("r % YES NO"));
    assert_eq!(u.rows("SELECT grantee, table_schema, table_name, privilege_type, is_grantable FROM information_schema.role_table_grants").await, table("s d t Select NO"));
    assert_eq!(u.rows("SELECT grantee, column_name, privilege_type FROM information_schema.role_column_grants").await, table("s a Update"));
    u.ok("SET ROLE NONE").await;
    assert!(u.rows("SELECT * FROM information_schema.role_table_grants").await.is_empty());
    assert!(u.rows("SELECT * FROM information_schema.enabled_roles").await.is_empty());
    assert!(u.rows("SELECT * FROM information_schema.role_routine_grants").await.is_empty());
}

#[test]
fn passwords_are_shown_to_nobody() {
    for (sql, shown) in [
        ("CREATE USER u IDENTIFIED BY 'x', v", Some("CREATE USER ... IDENTIFIED BY <secret>")),
        ("CREATE USER u", None),
        ("ALTER USER u IDENTIFIED WITH mysql_native_password BY 'x'", Some("ALTER USER ... IDENTIFIED BY <secret>")),
        ("ALTER USER u ACCOUNT LOCK", None),
        ("SET PASSWORD = 'x'", Some("SET PASSWORD = <secret>")),
        ("CHANGE MASTER TO MASTER_HOST = 'h', MASTER_PASSWORD = 'x'", Some("CHANGE REPLICATION SOURCE TO ... SOURCE_PASSWORD = <secret>")),
        ("START SLAVE", None),
        ("SELECT 'x'", None),
    ] {
        let parsed = crate::parse::parse_single(sql, crate::parse::ParseOptions::default()).unwrap();
        assert_eq!(crate::execute::masked(&parsed.statement), shown, "{sql}");
    }
}

/// As MySQL 8.0.12 has it, but for accounts whose hosts are equals.
#[tokio::test]
async fn logins_act_as_other_accounts_by_proxy() {
    let server = Server::new();
    let mut root = server.client().await;
    let acts_as = |host: &str| {
        let login = server.instance.account("prox", host).unwrap();
        server.instance.proxied_account(&login, host).map(|account| format!("{}@{}", account.user, account.host))
    };
    for statement in [
        "CREATE USER prox IDENTIFIED WITH mysql_native_password BY 'p', zzz, mmm@localhost, kkk@'127.0.0.%', far@'10.0.0.1'",
        "GRANT PROXY ON zzz TO prox",
        "GRANT PROXY ON gone TO prox",
        "GRANT PROXY ON far@'10.0.0.1' TO prox",
    ] {
        root.ok(statement).await;
    }
    assert_eq!(acts_as("127.0.0.1"), None);
    root.ok("SET GLOBAL check_proxy_users = ON").await;
    assert_eq!(acts_as("127.0.0.1"), None);
    root.ok("SET GLOBAL mysql_native_password_proxy_users = ON").await;
    assert_eq!(acts_as("127.0.0.1").unwrap(), "zzz@%");
    root.ok("GRANT PROXY ON kkk@'127.0.0.%' TO prox").await;
    assert_eq!(acts_as("127.0.0.1").unwrap(), "kkk@127.0.0.%");
    assert_eq!(acts_as("10.0.0.2").unwrap(), "zzz@%");
    root.ok("GRANT PROXY ON mmm@localhost TO prox").await;
    assert_eq!(acts_as("127.0.0.1").unwrap(), "mmm@localhost");
    // It goes by the user's name.
    root.ok("CREATE USER prox@'127.0.0.1' IDENTIFIED WITH mysql_native_password BY 'p'").await;
    assert_eq!(acts_as("127.0.0.1").unwrap(), "mmm@localhost");
    root.ok("ALTER USER prox@'127.0.0.1' IDENTIFIED WITH caching_sha2_password BY 'p'").await;
    assert_eq!(acts_as("127.0.0.1"), None);
    assert_eq!(root.rows("SELECT @@proxy_user, @@external_user").await, table("NULL NULL"));
    assert_eq!(root.error("SET proxy_user = 'x'").await.0, 1238);
    let client = ClientInfo {
        connection_id: server.instance.next_connection_id(),
        collation: 255,
        user: "prox".into(),
        client_host: "localhost".into(),
        account_user: "zzz".into(),
        account_host: "%".into(),
        proxy_user: Some("'prox'@'%'".into()),
        ..ClientInfo::default()
    };
    let mut c = Client { session: Session::new(server.instance.clone(), client) };
    assert_eq!(c.rows("SELECT USER(), CURRENT_USER(), @@proxy_user").await, table("prox@localhost zzz@% 'prox'@'%'"));
    assert_eq!(c.value("SHOW GRANTS").await, "GRANT USAGE ON *.* TO `zzz`@`%`");
    // The password is that of the login.
    let hash = |user: &str| server.instance.account(user, "10.0.0.2").unwrap().authentication_string;
    let (mut before, zzz) = (hash("prox"), hash("zzz"));
    for sql in ["SET PASSWORD = 'a'", "ALTER USER CURRENT_USER() IDENTIFIED BY 'b'", "ALTER USER prox IDENTIFIED BY 'c'", "SET PASSWORD FOR prox = 'd'"] {
        c.ok(sql).await;
        assert_ne!(hash("prox"), before, "{sql}");
        assert_eq!(hash("zzz"), zzz, "{sql}");
        before = hash("prox");
    }
    for sql in ["SET PASSWORD FOR zzz = 'e'", "SET PASSWORD FOR CURRENT_USER() = 'e'"] {
        assert_eq!(c.error(sql).await.0, 1044, "{sql}");
    }
    assert_eq!(c.error("ALTER USER zzz IDENTIFIED BY 'e'").await.0, 1227);
}

/// What a dump says of the accounts, statement by statement.
#[tokio::test]
async fn accounts_are_restored_from_a_dump() {
    let server = Server::new();
    let mut root = server.client().await;
    for statement in [
        "CREATE TABLE t (a INT, b INT)",
        "CREATE ROLE r",
        "CREATE USER u@'%' IDENTIFIED WITH mysql_native_password BY 'p' PASSWORD EXPIRE",
        "GRANT SELECT ON d.* TO u WITH GRANT OPTION",
        "GRANT UPDATE (a), DELETE ON d.t TO u",
        "GRANT BINLOG_ADMIN, PROCESS ON *.* TO u",
        "GRANT INSERT ON d.t TO r",
        "GRANT r TO u WITH ADMIN OPTION",
        "GRANT PROXY ON r TO u",
        "SET DEFAULT ROLE r TO u",
    ] {
        root.ok(statement).await;
    }
    let before = (root.rows("SHOW GRANTS FOR u").await, root.rows("SHOW CREATE USER u").await, root.rows("SHOW GRANTS FOR r").await);
    let tables = ["columns_priv", "db", "default_roles", "global_grants", "gtid_executed", "procs_priv", "proxies_priv", "role_edges", "slave_master_info", "tables_priv", "user"];
    let mut dump = Vec::new();
    for name in tables {
        let definition = root.rows(&format!("SHOW CREATE TABLE mysql.{name}")).await[0][1].clone();
        dump.extend([format!("DROP TABLE IF EXISTS `{name}`"), definition, format!("LOCK TABLES `{name}` WRITE"), format!("/*!40000 ALTER TABLE `{name}` DISABLE KEYS */")]);
        for row in root.rows(&format!("SELECT * FROM mysql.{name}")).await {
            let values: Vec<String> = row.iter().map(|value| if value == "NULL" { value.clone() } else { format!("'{value}'") }).collect();
            dump.push(format!("INSERT INTO `{name}` VALUES ({})", values.join(",")));
        }
        dump.extend([format!("/*!40000 ALTER TABLE `{name}` ENABLE KEYS */"), "UNLOCK TABLES".to_owned()]);
    }
    root.ok("DROP USER u, r").await;
    root.ok("CREATE USER gone").await;
    root.ok("SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'").await;
    root.ok("USE mysql").await;
    root.ok("CREATE TABLE IF NOT EXISTS slow_log (a INT)").await;
    assert_eq!(root.rows("SHOW WARNINGS").await, [["Note", "1050", "Table 'slow_log' already exists"]]);
    for statement in &dump {
        root.ok(statement).await;
    }
    assert_eq!(root.rows("SELECT user FROM user WHERE user IN ('u', 'r', 'gone') ORDER BY 1").await, table("r|u"));
    assert_eq!(root.rows("SHOW TABLES LIKE 'user'").await, table("user"));
    assert_eq!(root.rows("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'mysql' AND table_name = 'user'").await, table("1"));
    assert_eq!(root.error("SHOW GRANTS FOR u").await.0, 1141);
    root.ok("FLUSH PRIVILEGES").await;
    assert_eq!((root.rows("SHOW GRANTS FOR u").await, root.rows("SHOW CREATE USER u").await, root.rows("SHOW GRANTS FOR r").await), before);
    assert_eq!(root.error("SHOW GRANTS FOR gone").await.0, 1141);
    root.ok("GRANT SELECT ON d.t TO r").await;
    assert_eq!(root.rows("SELECT table_priv FROM mysql.tables_priv WHERE user = 'r'").await, table("Select,Insert"));
    assert_eq!(root.error("DROP TABLE mysql.user").await.0, 3552);
}

/// FLUSH PRIVILEGES that has tables to take is a statement about accounts.
#[tokio::test]
async fn accounts_are_not_restored_under_locks() {
    let server = Server::new();
    let mut root = server.client().await;
    root.ok("SET sql_mode = ''").await;
    root.ok("USE mysql").await;
    let definition = root.rows("SHOW CREATE TABLE user").await[0][1].clone();
    root.ok(&definition).await;
    root.ok("LOCK TABLES user READ").await;
    assert_eq!(root.error("FLUSH PRIVILEGES").await.0, 1100);
    root.ok("UNLOCK TABLES").await;
    root.ok("FLUSH TABLES WITH READ LOCK").await;
    assert_eq!(root.error("FLUSH PRIVILEGES").await.0, 1223);
    root.ok("UNLOCK TABLES").await;
    // The restore has not come to the rows.
    assert_eq!(root.error("FLUSH PRIVILEGES").await.0, 1728);
    assert!(!root.rows("SHOW GRANTS").await.is_empty());
    root.ok("DROP TABLE user").await;
    root.ok("FLUSH PRIVILEGES").await;
}

/// As MySQL 8.0.12 has them.
#[tokio::test]
async fn the_servers_own_accounts_are_told_of() {
    let server = Server::new();
    let mut c = server.client().await;
    let users = "SELECT user, select_priv, super_priv, account_locked FROM mysql.user WHERE user LIKE 'mysql.%' ORDER BY 1";
    assert_eq!(c.rows(users).await, table("mysql.infoschema Y N Y|mysql.session N Y Y|mysql.sys N N Y"));
    assert_eq!(c.rows("SELECT db, user, select_priv, trigger_priv FROM mysql.db ORDER BY 1").await, table("performance_schema mysql.session Y N|sys mysql.sys N Y"));
    assert_eq!(c.rows("SELECT db, user, table_name, table_priv FROM mysql.tables_priv ORDER BY 1").await, table("mysql mysql.session user Select|sys mysql.sys sys_config Select"));
    let dynamic = "SELECT priv, with_grant_option FROM mysql.global_grants WHERE user = 'mysql.session' ORDER BY 1";
    assert_eq!(c.rows(dynamic).await, table("PERSIST_RO_VARIABLES_ADMIN N|SYSTEM_VARIABLES_ADMIN N"));
}

/// Of the tables that a dump has.
#[tokio::test]
async fn the_servers_own_tables_have_definitions() {
    let server = Server::new();
    let mut c = server.client().await;
    let tables = c.rows("SELECT table_name, COUNT(*) FROM information_schema.columns WHERE table_schema = 'mysql' GROUP BY 1").await;
    assert_eq!(tables.len(), 26);
    c.ok("SET sql_mode = ''").await;
    for row in &tables {
        let shown = c.rows(&format!("SHOW CREATE TABLE mysql.`{}`", row[0])).await[0][1].clone();
        let copy = shown.replacen(&format!("`{}`", row[0]), "copy", 1);
        c.ok(&copy).await;
        let columns = "SELECT GROUP_CONCAT(column_name ORDER BY ordinal_position) FROM information_schema.columns WHERE";
        let of_copy = c.rows(&format!("{columns} table_schema = 'd' AND table_name = 'copy'")).await;
        assert_eq!(of_copy, c.rows(&format!("{columns} table_schema = 'mysql' AND table_name = '{}'", row[0])).await, "{}", row[0]);
        c.ok("DROP TABLE copy").await;
        assert_eq!(c.rows(&format!("SHOW TABLE STATUS FROM mysql LIKE '{}'", row[0])).await.len(), 1);
    }
}
