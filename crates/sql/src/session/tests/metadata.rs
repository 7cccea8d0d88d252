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
