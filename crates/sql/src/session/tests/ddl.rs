//! Data definition: what it reports, and who waits for whom.

use super::{Client, Server, table};

#[tokio::test]
async fn create_and_drop_report_what_mysql_reports() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (a INT)").await;
    assert_eq!(c.error("CREATE TABLE t (a INT)").await, (1050, "Table 't' already exists".into()));
    assert_eq!(c.ok("CREATE TABLE IF NOT EXISTS t (a INT)").await.warnings, 1);
    assert_eq!(c.error("DROP TABLE nope").await, (1051, "Unknown table 'd.nope'".into()));
    assert_eq!(c.ok("DROP TABLE IF EXISTS nope").await.warnings, 1);
    assert_eq!(c.error("SELECT * FROM nope").await, (1146, "Table 'd.nope' doesn't exist".into()));
    assert_eq!(c.error("CREATE DATABASE d").await.0, 1007);
    assert_eq!(c.error("USE nope").await, (1049, "Unknown database 'nope'".into()));
    assert_eq!(c.error("CREATE TABLE x (a INT, A INT)").await.0, 1060);
    assert_eq!(c.error("CREATE TABLE x (a INT AUTO_INCREMENT)").await.0, 1075);
    assert_eq!(c.error("CREATE TABLE x (a INT NOT NULL DEFAULT NULL)").await.0, 1067);
    assert_eq!(c.error("CREATE TABLE x (a VARCHAR(70000))").await.0, 1074);
    assert_eq!(c.error("CREATE TABLE x (a TEXT, KEY (a))").await.0, 1170);
    assert_eq!(c.error("CREATE TABLE x (a INT, b INT, FOREIGN KEY (a) REFERENCES t (a))").await.0, 1822);
    c.ok("INSERT INTO t VALUES (1)").await;
    c.ok("TRUNCATE t").await;
    assert_eq!(c.value("SELECT COUNT(*) FROM t").await, "0");
    c.ok("RENAME TABLE t TO u").await;
    assert_eq!(c.rows("SHOW TABLES").await, table("u"));
    c.ok("DROP DATABASE d").await;
    assert_eq!(c.error("SHOW TABLES").await.0, 1046);
}

/// Errors whose texts name what they are about.
#[tokio::test]
async fn errors_name_the_column() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE g (a INT, b INT AS (a + 1), c INT)").await;
    assert_eq!(c.error("ALTER TABLE g DROP COLUMN a").await, (3108, "Column 'a' has a generated column dependency.".into()));
    let unselected = "Expression #1 of ORDER BY clause is not in SELECT list, references column 'd.g.c' which is not in SELECT list; this is incompatible with DISTINCT";
    assert_eq!(c.error("SELECT DISTINCT a FROM g ORDER BY c").await, (3065, unselected.into()));
    assert_eq!(c.error("SELECT DISTINCT a FROM g ORDER BY a + c").await, (3065, unselected.into()));
    let aggregate = "Expression #2 of ORDER BY clause is not in SELECT list, contains aggregate function; this is incompatible with DISTINCT";
    assert_eq!(c.error("SELECT DISTINCT a FROM g GROUP BY a, c ORDER BY a, SUM(b)").await, (3066, aggregate.into()));
}

#[tokio::test]
async fn show_create_table_is_mysqls() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("create table t (id int unsigned not null auto_increment primary key, a varchar(20) not null default 'x\\'y', b decimal(10,2) default 1.5, c datetime(3) default current_timestamp(3) on update current_timestamp(3), d enum('a','b') collate utf8mb4_bin default 'a', g text, h bit(3) default b'101', i timestamp null, k varchar(10) character set latin1 default null comment 'it''s', m double default 1e10, n date default '2020-01-01', unique key u (a,b desc), key g (g(10)), key kk (k) comment 'hi' ) auto_increment=100 comment='tc'").await;
    let text = &c.rows("SHOW CREATE TABLE t").await[0][1];
    let expected = "CREATE TABLE `t` (
  `id` int unsigned NOT NULL AUTO_INCREMENT,
  `a` varchar(20) NOT NULL DEFAULT 'x''y',
  `b` decimal(10,2) DEFAULT '1.50',
  `c` datetime(3) DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3),
  `d` enum('a','b') CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT 'a',
  `g` text,
  `h` bit(3) DEFAULT b'101',
  `i` timestamp NULL DEFAULT NULL,
  `k` varchar(10) CHARACTER SET latin1 COLLATE latin1_swedish_ci DEFAULT NULL COMMENT 'it''s',
  `m` double DEFAULT '10000000000',
  `n` date DEFAULT '2020-01-01',
  PRIMARY KEY (`id`),
  UNIQUE KEY `u` (`a`,`b` DESC),
  KEY `g` (`g`(10)),
  KEY `kk` (`k`) COMMENT 'hi'
) ENGINE=InnoDB AUTO_INCREMENT=100 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci COMMENT='tc'";
    assert_eq!(text, expected);
    // What it says makes the same table again.
    let again = text.replace("`t`", "`t2`");
    c.ok(&again).await;
    assert_eq!(c.rows("SHOW CREATE TABLE t2").await[0][1], again);
}

/// As of MySQL 8.0: a column remembers that its character set or collation was written, through CONVERT TO, too.
#[tokio::test]
async fn show_create_table_names_collations_that_were_written() {
    let server = Server::new();
    let mut c = server.client().await;
    let lines = async |c: &mut Client| c.rows("SHOW CREATE TABLE t").await[0][1].lines().skip(1).map(|line| line.trim().to_owned()).collect::<Vec<_>>();
    c.ok("CREATE TABLE t (a VARCHAR(9) CHARACTER SET utf8mb4, b VARCHAR(9), c ENUM('x') COLLATE utf8mb4_0900_ai_ci)").await;
    let made = [
        "`a` varchar(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci DEFAULT NULL,",
        "`b` varchar(9) DEFAULT NULL,",
        "`c` enum('x') CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci DEFAULT NULL",
        ") ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci",
    ];
    assert_eq!(lines(&mut c).await, made);
    c.ok("CREATE TABLE u LIKE t").await;
    c.ok("ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci").await;
    let converted = [
        "`a` varchar(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci DEFAULT NULL,",
        "`b` varchar(9) COLLATE utf8mb4_general_ci DEFAULT NULL,",
        "`c` enum('x') CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci DEFAULT NULL",
        ") ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci",
    ];
    assert_eq!(lines(&mut c).await, converted);
    // Unwritten, a character set's default collation is not named, but for that of utf8mb4.
    c.ok("ALTER TABLE t CONVERT TO CHARACTER SET latin1").await;
    c.ok("ALTER TABLE t DEFAULT CHARACTER SET latin2").await;
    c.ok("ALTER TABLE t MODIFY c ENUM('x')").await;
    let moved = [
        "`a` varchar(9) CHARACTER SET latin1 COLLATE latin1_swedish_ci DEFAULT NULL,",
        "`b` varchar(9) CHARACTER SET latin1 DEFAULT NULL,",
        "`c` enum('x') DEFAULT NULL",
        ") ENGINE=InnoDB DEFAULT CHARSET=latin2",
    ];
    assert_eq!(lines(&mut c).await, moved);
    c.ok("DROP TABLE t").await;
    c.ok("RENAME TABLE u TO t").await;
    c.ok("ALTER TABLE t DEFAULT CHARACTER SET latin1").await;
    let copied = [
        made[0],
        "`b` varchar(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci DEFAULT NULL,",
        made[2],
        ") ENGINE=InnoDB DEFAULT CHARSET=latin1",
    ];
    assert_eq!(lines(&mut c).await, copied);
}

#[tokio::test]
async fn alter_table_changes_rows_and_keys() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(10))").await;
    c.ok("INSERT INTO t VALUES (1, '10'), (2, '20')").await;
    c.ok("ALTER TABLE t ADD COLUMN c INT NOT NULL DEFAULT 5 AFTER a, ADD INDEX kb (b)").await;
    assert_eq!(c.rows("SELECT * FROM t").await, table("1 5 10|2 5 20"));
    c.ok("ALTER TABLE t MODIFY b INT").await;
    assert_eq!(c.rows("SELECT * FROM t WHERE b = 20").await, table("2 5 20"));
    c.ok("ALTER TABLE t CHANGE c cc BIGINT, DROP PRIMARY KEY, ADD PRIMARY KEY (b)").await;
    assert_eq!(c.rows("SELECT * FROM t ORDER BY b DESC").await, table("2 5 20|1 5 10"));
    assert_eq!(c.error("ALTER TABLE t DROP COLUMN nope").await.0, 1091);
    assert_eq!(c.error("ALTER TABLE t ADD UNIQUE KEY (cc)").await.0, 1062);
    c.ok("ALTER TABLE t DROP COLUMN cc, RENAME TO s").await;
    assert_eq!(c.rows("SELECT * FROM s").await, table("1 10|2 20"));
    assert_eq!(c.error("ALTER TABLE s ADD CHECK (a > 1)").await.0, 3819);
    c.ok("CREATE UNIQUE INDEX ua ON s (a)").await;
    assert_eq!(c.error("INSERT INTO s VALUES (1, 30)").await.0, 1062);
    c.ok("DROP INDEX ua ON s").await;
    c.ok("INSERT INTO s VALUES (1, 30)").await;
    c.ok("ALTER TABLE s ADD id INT AUTO_INCREMENT UNIQUE FIRST").await;
    assert_eq!(c.rows("SELECT id FROM s ORDER BY id").await, table("1|2|3"));
    assert_eq!(c.rows("CHECK TABLE s").await, table("d.s check status OK"));
}

/// Waits until the session of that id waits for a metadata lock.
async fn waits_for_a_name(c: &mut super::Client, id: u64) {
    let sql = format!("SELECT COUNT(*) FROM information_schema.processlist WHERE id = {id} AND state LIKE 'Waiting for table metadata lock%'");
    let since = std::time::Instant::now();
    while c.value(&sql).await != "1" {
        assert!(since.elapsed().as_secs() < 60, "it does not wait");
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_that_is_filled_keeps_its_sources_as_they_are() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE src (a INT)").await;
    c.ok("INSERT INTO src VALUES (1), (2), (3)").await;
    c.ok("SET lock_wait_timeout = 1").await;
    for (sql, name_is_taken) in [("CREATE TABLE made SELECT a FROM src", false), ("CREATE TABLE IF NOT EXISTS made SELECT a FROM src", true)] {
        let mut maker = server.client().await;
        let id = maker.value("SELECT CONNECTION_ID()").await.parse().unwrap();
        // Somebody has the name of a table that is not there yet.
        let database = server.instance.database();
        let mut holder = database.begin(highkey_table::Isolation::RepeatableRead);
        let columns = vec![highkey_table::ColumnDef::new("other", highkey_types::ColumnType::bigint())];
        let spec = highkey_table::TableSpec::new("d", "made", columns, vec![]);
        holder.create_table(&highkey_table::DdlContext::default(), spec).await.unwrap();
        let made = tokio::spawn(async move {
            let summary = maker.ok(sql).await;
            (summary, maker.rows("SHOW WARNINGS").await)
        });
        waits_for_a_name(&mut c, id).await;
        assert_eq!(c.error("TRUNCATE TABLE src").await.0, 1205);
        if name_is_taken {
            holder.commit().await.unwrap();
            let (summary, warnings) = made.await.unwrap();
            assert_eq!((summary.affected_rows, warnings[0][1].as_str()), (0, "1050"));
            assert_eq!(c.rows("SHOW COLUMNS FROM made").await[0][0], "other");
        } else {
            holder.rollback().await.unwrap();
            assert_eq!(made.await.unwrap().0.affected_rows, 3);
            assert_eq!(c.rows("SELECT * FROM made ORDER BY a").await, table("1|2|3"));
        }
        c.ok("DROP TABLE made").await;
        c.ok("ALTER TABLE src ADD COLUMN extra INT").await;
        c.ok("ALTER TABLE src DROP COLUMN extra").await;
    }
    assert_eq!(c.rows("CHECK TABLE src").await, table("d.src check status OK"));
}

#[tokio::test(flavor = "multi_thread")]
async fn several_threads_build_indexes() {
    let server = Server::new();
    let mut c = server.client().await;
    assert_eq!(c.rows("SELECT @@innodb_ddl_threads, @@innodb_ddl_buffer_size").await, table("4 268435456"));
    assert_eq!(c.ok("SET innodb_ddl_threads = 3, innodb_ddl_buffer_size = 65536, cte_max_recursion_depth = 100000").await.warnings, 0);
    c.ok("CREATE TABLE t (a INT PRIMARY KEY, b INT, c VARCHAR(200))").await;
    let rows = "WITH RECURSIVE r AS (SELECT 1 n UNION ALL SELECT n + 1 FROM r WHERE n < 8000) SELECT n, n * 7919 % 8009, LPAD(n * 13 % 8009, 150, 'x') FROM r";
    c.ok(&format!("INSERT INTO t {rows}")).await;
    c.ok("ALTER TABLE t ADD UNIQUE (b), ADD INDEX (c), ADD UNIQUE bc (b, c)").await;
    assert_eq!(c.rows("CHECK TABLE t").await, table("d.t check status OK"));
    assert_eq!(c.value("SELECT a FROM t WHERE b = 7919").await, "1");
    // A load into an empty table with these indexes.
    c.ok("CREATE TABLE u LIKE t").await;
    assert_eq!(c.ok("INSERT INTO u SELECT * FROM t").await.affected_rows, 8000);
    assert_eq!(c.rows("CHECK TABLE u").await, table("d.u check status OK"));
}

#[tokio::test]
async fn engines_of_mysql_become_ours() {
    let server = Server::new();
    let mut c = server.client().await;
    for engine in ["MyISAM", "memory", "HEAP", "'CSV'", "ARCHIVE", "BLACKHOLE", "MRG_MYISAM"] {
        c.ok(&format!("CREATE TABLE e (id INT) ENGINE={engine}")).await;
        assert_eq!(c.rows("SHOW WARNINGS").await, [["Warning", "1266", "Using storage engine InnoDB for table 'e'"]], "{engine}");
        c.ok("ALTER TABLE e ENGINE=InnoDB").await;
        assert!(c.rows("SHOW WARNINGS").await.is_empty(), "{engine}");
        c.ok(&format!("ALTER TABLE e ENGINE={engine}, ADD v INT")).await;
        assert_eq!(c.rows("SHOW WARNINGS").await, [["Warning", "1266", "Using storage engine InnoDB for table 'e'"]], "{engine}");
        assert_eq!(c.rows("SELECT engine FROM information_schema.tables WHERE table_name = 'e'").await, [["InnoDB"]]);
        c.ok("DROP TABLE e").await;
    }
    assert_eq!(c.error("CREATE TABLE e (id INT) ENGINE=FEDERATED").await.0, 1286);
    c.ok("SET default_storage_engine = MyISAM").await;
    assert_eq!(c.value("SELECT @@default_storage_engine").await, "InnoDB");
}

/// As of MySQL 8.0.12: an argument that is never NULL does not make COALESCE so, and of IFNULL only the second one counts.
#[tokio::test]
async fn columns_made_of_coalesce_take_null_if_an_argument_does() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (a INT, b INT NOT NULL)").await;
    c.ok("CREATE TABLE s SELECT IFNULL(a, 1) v, COALESCE(a, 1) w, COALESCE(b, a) x, COALESCE(b, 1) y, IFNULL(b, a) z FROM t").await;
    let columns = "SELECT column_name, is_nullable FROM information_schema.columns WHERE table_schema = 'd' AND table_name = 's' ORDER BY 1";
    assert_eq!(c.rows(columns).await, table("v NO|w YES|x YES|y NO|z YES"));
}
