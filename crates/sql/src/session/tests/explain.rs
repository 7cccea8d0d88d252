//! EXPLAIN FORMAT=JSON and EXPLAIN FOR CONNECTION.

use highkey_types::Value;
use highkey_types::json::{self, Json};

use super::{Client, Collector, Server};

/// The value at a path of names and positions, as text; empty if there is none.
async fn at(c: &mut Client, sql: &str, paths: &[&str]) -> Vec<String> {
    let text = c.value(&format!("EXPLAIN FORMAT=JSON {sql}")).await;
    let parsed = json::parse(&text).unwrap_or_else(|e| panic!("{text}: {e:?}"));
    let find = |path: &&str| {
        let mut value = Some(&parsed);
        for step in std::iter::once("query_block").chain(path.split('/')) {
            value = match value {
                Some(Json::Object(members)) => members.iter().find(|(name, _)| **name == *step).map(|(_, value)| value),
                Some(Json::Array(items)) => step.parse::<usize>().ok().and_then(|i| items.get(i)),
                _ => None,
            };
        }
        value.map_or(String::new(), json::to_text)
    };
    paths.iter().map(find).collect()
}

async fn client(server: &Server) -> Client {
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(10), c INT, KEY kb (b))").await;
    c.ok("CREATE TABLE u (a INT, z INT, KEY ka (a))").await;
    c.ok("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)").await;
    c.ok("INSERT INTO u VALUES (1, 1), (2, 2), (3, 3), (1, 5)").await;
    c
}

#[tokio::test]
async fn json_has_mysqls_shape() {
    let server = Server::new();
    let mut c = client(&server).await;
    let found = at(&mut c, "SELECT b FROM t WHERE a = 2 AND c > 1", &["select_id", "table/access_type", "table/key", "table/rows_examined_per_scan", "table/attached_condition", "table/used_columns"]).await;
    let condition = r#""((`d`.`t`.`a` = 2) and (`d`.`t`.`c` > 1))""#;
    assert_eq!(found, ["1", r#""const""#, r#""PRIMARY""#, "1", condition, r#"["a", "b", "c"]"#]);
    let grouped = "SELECT t.a, COUNT(*) FROM t JOIN u ON u.a = t.a WHERE t.c > 1 AND u.z = 2 GROUP BY t.a ORDER BY 2";
    let joined = "ordering_operation/grouping_operation/nested_loop";
    let paths = [0, 1].map(|i| format!("{joined}/{i}/table/attached_condition"));
    let found = at(&mut c, grouped, &[&paths[0], &paths[1], "ordering_operation/using_filesort"]).await;
    assert_eq!(found, [r#""(`d`.`t`.`c` > 1)""#, r#""((`d`.`u`.`a` = `d`.`t`.`a`) and (`d`.`u`.`z` = 2))""#, "true"]);
    let outer = "SELECT t.a FROM t LEFT JOIN u ON u.a = t.a AND u.z = 1 AND t.c = 2 WHERE t.b = 'x' AND u.z IS NULL";
    let found = at(&mut c, outer, &["nested_loop/0/table/key", "nested_loop/1/table/attached_condition"]).await;
    assert_eq!(found[0], r#""kb""#);
    assert!(found[1].contains("`d`.`t`.`c` = 2") && found[1].contains("is null"), "{found:?}");
    let union = at(&mut c, "SELECT a FROM t UNION SELECT z FROM u ORDER BY 1", &["union_result/table_name", "union_result/query_specifications/1/query_block/select_id"]).await;
    assert_eq!(union, [r#""<union1,2>""#, "2"]);
    let subquery = "SELECT (SELECT MAX(z) FROM u WHERE u.a = t.a) FROM t WHERE c IN (SELECT z FROM u)";
    let found = at(&mut c, subquery, &["select_list_subqueries/0/dependent", "table/attached_subqueries/0/query_block/table/table_name"]).await;
    assert_eq!(found, ["true", r#""u""#]);
    let found = at(&mut c, "SELECT s.n FROM (SELECT COUNT(*) AS n FROM u GROUP BY a) s JOIN t ON t.a = s.n", &["nested_loop/0/table/materialized_from_subquery/query_block/grouping_operation/table/table_name"]).await;
    assert_eq!(found, [r#""u""#]);
    assert_eq!(at(&mut c, "SELECT 1", &["message"]).await, [r#""No tables used""#]);
    assert_eq!(at(&mut c, "UPDATE t SET c = 1 WHERE b = 'a'", &["table/update", "table/key"]).await, ["true", r#""kb""#]);
    assert_eq!(at(&mut c, "INSERT INTO t SELECT z, z, z FROM u", &["table/insert", "insert_from/table/table_name"]).await, ["true", r#""u""#]);
}

#[tokio::test]
async fn json_of_analyze_has_what_was_done() {
    let server = Server::new();
    let mut c = many(&server).await;
    for executor in ["FAST", "DATAFUSION"] {
        c.ok(&format!("SET highkey_executor = {executor}")).await;
        let text = c.value("EXPLAIN ANALYZE FORMAT=JSON SELECT id FROM many WHERE c < 5").await;
        let parsed = json::parse(&text).unwrap_or_else(|e| panic!("{text}: {e:?}"));
        let Json::Object(members) = &parsed else { panic!("{text}") };
        let member = |name: &str| members.iter().find(|(known, _)| **known == *name).map(|(_, value)| json::to_text(value));
        assert_eq!((member("actual_rows").as_deref(), member("actual_loops").as_deref()), (Some("5"), Some("1")), "{text}");
        assert!(member("actual_last_row_ms").is_some() && member("time").is_some_and(|time| time.contains("cpu: ")), "{text}");
        let inputs = member("inputs").unwrap_or_default();
        assert!(inputs.contains(r#""operation": "Filter: (many.c < 5)""#) && inputs.contains(r#""actual_rows": 500"#), "{text}");
        assert!(inputs.contains(r#""operation": "Table scan on many""#) && inputs.contains(r#""estimated_rows": 500"#), "{text}");
    }
}

/// The lines, each from `table` on, without `partitions`; NULL is `-`.
async fn lines(c: &mut Client, sql: &str) -> Vec<String> {
    let rows = c.rows(&format!("EXPLAIN {sql}")).await;
    let line = |row: &Vec<String>| (2..12).filter(|i| *i != 3).map(|i| if row[i] == "NULL" { "-" } else { row[i].as_str() }).collect::<Vec<_>>().join(" ");
    rows.iter().map(line).collect()
}

/// 500 rows in `many`, ten for each `a`.
async fn many(server: &Server) -> Client {
    let mut c = client(server).await;
    c.ok("CREATE TABLE many (id INT PRIMARY KEY, a INT NOT NULL, b VARCHAR(10), c INT, KEY ka (a), KEY kbc (b, c))").await;
    let rows: Vec<String> = (0..500).map(|i| format!("({i}, {}, 'b{}', {i})", i / 10, i % 7)).collect();
    c.ok(&format!("INSERT INTO many VALUES {}", rows.join(", "))).await;
    c
}

#[tokio::test]
async fn the_fast_path_shows_the_index_that_it_reads() {
    let server = Server::new();
    let mut c = many(&server).await;
    for (condition, line) in [
        ("WHERE id = 5", "many const PRIMARY PRIMARY 4 const 1 100.00 -"),
        ("WHERE id IN (1, 2, 3) AND a = 4", "many range PRIMARY,ka PRIMARY 4 - 3 33.33 Using where"),
        ("WHERE c = 1", "many ALL - - - - 500 10.00 Using where"),
        ("WHERE id IS NULL", "- - - - - - - - Impossible WHERE"),
        ("LIMIT 0", "- - - - - - - - Zero limit"),
        ("ORDER BY id", "many index - PRIMARY 4 - 500 100.00 -"),
        ("ORDER BY a LIMIT 3", "many index - ka 4 - 3 100.00 -"),
        ("ORDER BY a DESC LIMIT 2, 3", "many index - ka 4 - 5 100.00 Backward index scan"),
        ("ORDER BY c LIMIT 3", "many ALL - - - - 500 100.00 Using filesort"),
    ] {
        assert_eq!(lines(&mut c, &format!("SELECT * FROM many {condition}")).await, [line], "{condition}");
    }
    // What is read is an estimate.
    for (condition, begins) in [
        ("WHERE a = 5", "many ref ka ka 4 const "),
        ("WHERE b = 'b1'", "many ref kbc kbc 43 const "),
        ("WHERE b = 'b1' AND c = 8", "many ref kbc kbc 48 const,const "),
        ("WHERE b = 'b1' AND c > 8", "many range kbc kbc 48 - "),
        ("WHERE id > 490", "many range PRIMARY PRIMARY 4 - "),
    ] {
        let found = lines(&mut c, &format!("SELECT * FROM many {condition}")).await;
        assert!(found.len() == 1 && found[0].starts_with(begins), "{condition}: {found:?}");
    }
    for sql in ["SELECT COUNT(*) FROM many", "SELECT MAX(a) FROM many"] {
        assert_eq!(lines(&mut c, sql).await, ["- - - - - - - - Select tables optimized away"], "{sql}");
    }
    assert_eq!(lines(&mut c, "SELECT * FROM t x, u y").await.len(), 2);
    let tree = c.value("EXPLAIN FORMAT=TREE SELECT c FROM many WHERE id = 4 ORDER BY id").await;
    let expected = [
        "-> Fast path",
        "    -> Project: many.c  (cost=0.10 rows=1)",
        "        -> Project: many.c, many.id  (cost=0.10 rows=1)",
        "            -> Single-row index lookup on many using PRIMARY (id=4)  (cost=0.10 rows=1)",
    ];
    assert_eq!(tree.lines().collect::<Vec<_>>(), expected);
    let tree = c.value("EXPLAIN FORMAT=TREE SELECT c, COUNT(*) FROM many WHERE c = 1 GROUP BY c").await;
    let estimates: Vec<&str> = tree.lines().map(|line| line.split_once("  (cost=").map_or("", |(_, estimate)| estimate)).collect();
    // How many groups there are is not known.
    assert_eq!(estimates, ["", "", "", "50.00 rows=50)", "50.00 rows=500)"], "{tree}");
}

#[tokio::test]
async fn blocks_have_numbers() {
    let server = Server::new();
    let mut c = many(&server).await;
    let ids = async |c: &mut Client, sql: &str| {
        let rows = c.rows(&format!("EXPLAIN {sql}")).await;
        rows.iter().map(|row| format!("{} {} {}", row[0], row[1], row[2])).collect::<Vec<_>>()
    };
    let all = "SELECT (SELECT MAX(z) FROM u WHERE u.a = t.a), d.k FROM (SELECT a, COUNT(*) k FROM many GROUP BY a) d JOIN t ON t.a = d.a WHERE t.c < (SELECT COUNT(*) FROM many)";
    let found = ids(&mut c, all).await;
    assert_eq!(found, ["1 PRIMARY <derived3>", "1 PRIMARY t", "4 SUBQUERY many", "3 DERIVED many", "2 DEPENDENT SUBQUERY u"]);
    let recursive = "WITH RECURSIVE q AS (SELECT 1 i UNION ALL SELECT i + 1 FROM q WHERE i < 5) SELECT q.i, t.a FROM q JOIN t ON t.a = q.i";
    assert_eq!(ids(&mut c, recursive).await, ["1 PRIMARY <derived2>", "1 PRIMARY t", "2 DERIVED NULL", "3 UNION q"]);
    assert_eq!(ids(&mut c, "VALUES ROW(1, 2)").await, ["1 SIMPLE NULL"]);
    assert_eq!(ids(&mut c, "SELECT * FROM (VALUES ROW(1, 2)) v JOIN t").await.last().unwrap(), "2 DERIVED NULL");
    let inserted = "INSERT INTO t (a) SELECT 1 UNION SELECT 2 ON DUPLICATE KEY UPDATE c = (SELECT MAX(z) FROM u)";
    assert_eq!(ids(&mut c, inserted).await, ["1 INSERT t", "1 PRIMARY NULL", "2 UNION NULL", "NULL UNION RESULT <union1,2>", "3 SUBQUERY u"]);
    for sorted in ["RANK() OVER (ORDER BY (SELECT MAX(z) FROM u WHERE u.a = t.a))", "GROUP_CONCAT(b ORDER BY (SELECT MAX(z) FROM u WHERE u.a = t.a))"] {
        assert_eq!(ids(&mut c, &format!("SELECT {sorted} FROM t")).await, ["1 PRIMARY t", "2 DEPENDENT SUBQUERY u"], "{sorted}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datafusions_joins_and_threads_are_shown() {
    let server = Server::new();
    let mut c = many(&server).await;
    c.ok("SET highkey_executor = 'DATAFUSION', parallel_cost_threshold = 0, force_parallel_execute = ON, parallel_default_dop = 2").await;
    let joined = lines(&mut c, "SELECT COUNT(*) FROM many x JOIN many y ON y.c = x.c").await;
    assert!(joined[1].ends_with("Using where; Using join buffer (hash join)"), "{joined:?}");
    assert!(joined.iter().all(|line| line.contains(" ALL ")), "{joined:?}");
    let grouped = lines(&mut c, "SELECT c % 7, COUNT(*) FROM many GROUP BY 1").await;
    assert!(grouped[0].ends_with("Using temporary"), "{grouped:?}");
    let serial = lines(&mut c, "SELECT /*+ NO_PQ */ c % 7, COUNT(*) FROM many GROUP BY 1").await;
    assert_eq!(serial, ["many ALL - - - - 500 100.00 Using temporary"]);
}

#[tokio::test]
async fn datafusions_lines_name_tables_constants_and_functions() {
    let server = Server::new();
    let mut c = many(&server).await;
    c.ok("SET highkey_executor = 'DATAFUSION'").await;
    let grouped = "SELECT b, SUM(c) FROM many WHERE b LIKE '%3%' AND c > 7 AND b <> 'it''s' GROUP BY b ORDER BY 2 DESC LIMIT 3";
    let tree = c.value(&format!("EXPLAIN FORMAT=TREE {grouped}")).await;
    for part in ["(many.b like '%3%')", "(many.c > 7)", "(many.b <> 'it''s')", "sum(many.c)", "Sort: sum(many.c) DESC, limit input to 3 row(s) per chunk"] {
        assert!(tree.contains(part), "{part}: {tree}");
    }
    assert!(!tree.contains('#') && !tree.contains("agg") && !tree.contains("key"), "{tree}");
    let tree = c.value("EXPLAIN FORMAT=TREE SELECT x.id, y.id FROM many x JOIN many y ON y.c = x.c AND y.id <> x.a WHERE x.b = 'b3'").await;
    assert!(tree.contains("Inner hash join (") && [", extra conditions: (y.id <> x.a)", ", extra conditions: (x.a <> y.id)"].iter().any(|part| tree.contains(part)) && tree.contains("-> Hash\n"), "{tree}");
    assert!(tree.contains("(x.b = 'b3')"), "{tree}");
    let tree = c.value("EXPLAIN FORMAT=TREE SELECT id, RANK() OVER (PARTITION BY b ORDER BY c DESC) FROM many").await;
    assert!(tree.contains("Window aggregate: rank() OVER (PARTITION BY many.b ORDER BY many.c DESC)"), "{tree}");
}

#[tokio::test]
async fn what_writes_shows_how_it_finds_its_rows() {
    let server = Server::new();
    let mut c = many(&server).await;
    assert_eq!(lines(&mut c, "UPDATE many SET c = 1 WHERE id = 5").await, ["many const PRIMARY PRIMARY 4 const 1 100.00 -"]);
    assert_eq!(lines(&mut c, "DELETE FROM many WHERE id IN (1, 2) AND c = 1").await, ["many range PRIMARY PRIMARY 4 - 2 50.00 Using where"]);
    let changed = c.rows("EXPLAIN UPDATE many JOIN t ON t.a = many.id SET many.c = 1").await;
    let mut kinds: Vec<[&str; 2]> = changed.iter().map(|row| [row[1].as_str(), row[2].as_str()]).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, [["SIMPLE", "t"], ["UPDATE", "many"]]);
    // A derived table that is called as the table of the view is not changed.
    c.ok("CREATE VIEW w AS SELECT * FROM t").await;
    let changed = c.rows("EXPLAIN UPDATE w JOIN (SELECT a, COUNT(*) AS n FROM u GROUP BY a) t ON t.a = w.a SET w.c = t.n").await;
    let mut kinds: Vec<[&str; 2]> = changed.iter().map(|row| [row[1].as_str(), row[2].as_str()]).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, [["DERIVED", "u"], ["PRIMARY", "<derived2>"], ["UPDATE", "t"]]);
    let subquery = c.rows("EXPLAIN UPDATE t SET c = (SELECT MAX(z) FROM u WHERE u.a = t.a) WHERE a = 1").await;
    assert_eq!(subquery.iter().map(|row| format!("{} {} {} {}", row[0], row[1], row[2], row[8])).collect::<Vec<_>>(), ["1 UPDATE t const", "2 DEPENDENT SUBQUERY u d.t.a"]);
    let tree = c.value("EXPLAIN FORMAT=TREE UPDATE many SET c = 1 WHERE id = 5 AND c = 2").await;
    assert_eq!(tree, "-> UPDATE many\n    -> Filter: ((many.id = 5) and (many.c = 2))  (cost=0.10 rows=1)\n        -> Single-row index lookup on many using PRIMARY (id=5)  (cost=0.10 rows=1)\n");
    let tree = c.value("EXPLAIN FORMAT=TREE DELETE FROM many WHERE c = 1 ORDER BY id LIMIT 2").await;
    let expected = [
        "-> DELETE many",
        "    -> Sort: many.id, limit input to 2 row(s) per chunk  (cost=50.00 rows=50)",
        "        -> Filter: (many.c = 1)  (cost=50.00 rows=50)",
        "            -> Table scan on many  (cost=50.00 rows=500)",
    ];
    assert_eq!(tree.lines().collect::<Vec<_>>(), expected);
    let before = c.value("EXPLAIN FORMAT=TREE DELETE FROM t WHERE c IN (SELECT z FROM u)").await;
    assert!(before.starts_with("-> DELETE t\n    -> Filter: (t.c in (subquery))") && before.contains("\n-> Subquery: "), "{before}");
    for changed in ["DELETE FROM t", "UPDATE t SET c = 1"] {
        let joined = c.value(&format!("EXPLAIN FORMAT=TREE {changed} WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a)")).await;
        assert!(joined.contains("semijoin") && (joined.contains("(u.a = t.a)") || joined.contains("(t.a = u.a)")), "{joined}");
    }
    let computed = c.value("EXPLAIN FORMAT=TREE UPDATE t SET c = (SELECT MAX(z) FROM u WHERE u.a = t.a)").await;
    assert!(computed.starts_with("-> UPDATE t\n") && computed.contains("max(u.z)"), "{computed}");
    let paths = ["ordering_operation/using_filesort", "ordering_operation/table/delete", "ordering_operation/table/access_type"];
    assert_eq!(at(&mut c, "DELETE FROM many WHERE c = 1 ORDER BY b LIMIT 2", &paths).await, ["true", "true", r#""ALL""#]);
    assert_eq!(at(&mut c, "UPDATE t SET c = (SELECT MAX(z) FROM u)", &["update_value_subqueries/0/query_block/select_id"]).await, ["2"]);
}

#[tokio::test]
async fn json_tells_costs_of_the_rows_that_are_read() {
    let server = Server::new();
    let mut c = many(&server).await;
    let cost = ["cost_info/query_cost", "table/cost_info/read_cost", "table/cost_info/eval_cost", "table/cost_info/prefix_cost", "table/rows_produced_per_join"];
    assert_eq!(at(&mut c, "SELECT * FROM many WHERE c = 1", &cost).await, [r#""50.00""#, r#""45.00""#, r#""5.00""#, r#""50.00""#, "50"]);
    assert_eq!(at(&mut c, "SELECT * FROM many WHERE id IS NULL", &["message", "cost_info"]).await, [r#""Impossible WHERE""#, ""]);
    let key = ["table/possible_keys", "table/used_key_parts", "table/key_length", "table/ref"];
    let found = at(&mut c, "SELECT * FROM many WHERE b = 'b1' AND c = 8", &key).await;
    assert_eq!(found, [r#"["kbc"]"#, r#"["b", "c"]"#, r#""48""#, r#"["const", "const"]"#]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_connection_runs_is_explained() {
    let server = Server::new();
    let (mut c, mut busy) = (client(&server).await, server.client().await);
    let id = busy.session.process().id();
    assert_eq!(c.error(&format!("EXPLAIN FOR CONNECTION {id}")).await.0, 3012);
    assert_eq!(c.error("EXPLAIN FOR CONNECTION 999999").await.0, 1094);
    let running = tokio::spawn(async move {
        busy.run("SELECT SLEEP(60) FROM t WHERE a = 2").await;
    });
    while c.value(&format!("SELECT COUNT(*) FROM information_schema.processlist WHERE id = {id} AND state = 'User sleep'")).await == "0" {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    // From a session that has no database of its own.
    let mut other = server.connect();
    assert_eq!(other.rows(&format!("EXPLAIN FOR CONNECTION {id}")).await[0][6], "PRIMARY");
    assert!(other.value(&format!("EXPLAIN FORMAT=JSON FOR CONNECTION {id}")).await.contains("query_block"));
    c.ok(&format!("KILL QUERY {id}")).await;
    running.await.unwrap();
}

/// With the values that it has been given.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prepared_statement_that_another_connection_runs_is_explained() {
    let server = Server::new();
    let (mut c, mut busy) = (client(&server).await, server.client().await);
    let id = busy.session.process().id();
    busy.ok("SET @a = 2, @n = 1").await;
    busy.ok("PREPARE s FROM 'SELECT SLEEP(60) FROM t WHERE a = ? LIMIT ?'").await;
    let statement = busy.session.prepare(b"SELECT SLEEP(60) FROM t WHERE a = ? LIMIT ?").await.unwrap().id;
    let waits = format!("SELECT COUNT(*) FROM information_schema.processlist WHERE id = {id} AND state = 'User sleep'");
    for binary in [true, false] {
        let running = tokio::spawn(async move {
            if binary {
                let mut sink = Collector::default();
                busy.session.execute_prepared(statement, &[Value::Int(2), Value::UInt(1)], false, &mut sink).await.unwrap();
            } else {
                busy.run("EXECUTE s USING @a, @n").await;
            }
            busy
        });
        while c.value(&waits).await == "0" {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        let mut other = server.connect();
        assert_eq!(other.rows(&format!("EXPLAIN FOR CONNECTION {id}")).await[0][6], "PRIMARY");
        other.ok("SET highkey_executor = 'DATAFUSION'").await;
        let tree = other.value(&format!("EXPLAIN FORMAT=TREE FOR CONNECTION {id}")).await;
        assert!(tree.starts_with("-> "), "{tree}");
        // What the asking session has prepared is its own.
        other.ok("SET @x = 7").await;
        other.ok("PREPARE own FROM 'SELECT ? + 1'").await;
        assert_eq!(other.value("EXECUTE own USING @x").await, "8");
        c.ok(&format!("KILL QUERY {id}")).await;
        busy = running.await.unwrap();
    }
}

/// Notes of MySQL 8.0.12, where it has replaced nothing by what it knows of the rows.
#[tokio::test]
async fn a_note_shows_what_names_mean() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(10), c DECIMAL(5,2), KEY (b))").await;
    c.ok("CREATE TABLE n (a INT, b VARCHAR(10), KEY kn (a))").await;
    c.ok("INSERT INTO t VALUES (1, 'x', 1), (2, 'y', 2)").await;
    c.ok("INSERT INTO n VALUES (1, 'x'), (2, 'y'), (3, 'z')").await;
    let recorded = [
        (
            "SELECT * FROM n",
            "/* select#1 */ select `d`.`n`.`a` AS `a`,`d`.`n`.`b` AS `b` from `d`.`n`",
        ),
        (
            "SELECT a AS x, b y, a + 1, -a, IFNULL(b, 'q') FROM n WHERE a BETWEEN 1 AND 2 OR NOT (b = 'x' OR a IS NULL) OR a IN (1, 2)",
            "/* select#1 */ select `d`.`n`.`a` AS `x`,`d`.`n`.`b` AS `y`,(`d`.`n`.`a` + 1) AS `a + 1`,-(`d`.`n`.`a`) AS `-a`,ifnull(`d`.`n`.`b`,'q') AS `IFNULL(b, 'q')` from `d`.`n` where ((`d`.`n`.`a` between 1 and 2) or ((`d`.`n`.`b` <> 'x') and (`d`.`n`.`a` is not null)) or (`d`.`n`.`a` in (1,2)))",
        ),
        (
            "SELECT n.a FROM t JOIN n",
            "/* select#1 */ select `d`.`n`.`a` AS `a` from `d`.`t` join `d`.`n`",
        ),
        (
            "SELECT t.a, m.b FROM t, n m WHERE t.c > 1 AND m.b LIKE 'x%' LIMIT 2, 3",
            "/* select#1 */ select `d`.`t`.`a` AS `a`,`d`.`m`.`b` AS `b` from `d`.`t` join `d`.`n` `m` where ((`d`.`t`.`c` > 1) and (`d`.`m`.`b` like 'x%')) limit 2,3",
        ),
        (
            "SELECT t.a FROM t JOIN n ON t.c > n.a WHERE n.b <> 'q' AND t.b LIKE 'x%'",
            "/* select#1 */ select `d`.`t`.`a` AS `a` from `d`.`t` join `d`.`n` where ((`d`.`n`.`b` <> 'q') and (`d`.`t`.`b` like 'x%') and (`d`.`t`.`c` > `d`.`n`.`a`))",
        ),
        (
            "SELECT t.a FROM t LEFT JOIN n ON n.a = t.a",
            "/* select#1 */ select `d`.`t`.`a` AS `a` from `d`.`t` left join `d`.`n` on((`d`.`n`.`a` = `d`.`t`.`a`)) where 1",
        ),
        (
            "SELECT DISTINCT b, COUNT(DISTINCT a) FROM n GROUP BY b WITH ROLLUP HAVING COUNT(*) > 1 ORDER BY b",
            "/* select#1 */ select distinct `d`.`n`.`b` AS `b`,count(distinct `d`.`n`.`a`) AS `COUNT(DISTINCT a)` from `d`.`n` group by `d`.`n`.`b` with rollup having (count(0) > 1) order by `d`.`n`.`b`",
        ),
        (
            "SELECT x.a, COUNT(*) AS k FROM n x GROUP BY x.a HAVING k > 1 ORDER BY k",
            "/* select#1 */ select `d`.`x`.`a` AS `a`,count(0) AS `k` from `d`.`n` `x` group by `d`.`x`.`a` having (`k` > 1) order by `k`",
        ),
        (
            "SELECT * FROM (SELECT a, COUNT(*) c FROM n GROUP BY a) x WHERE c > 1",
            "/* select#1 */ select `x`.`a` AS `a`,`x`.`c` AS `c` from (/* select#2 */ select `d`.`n`.`a` AS `a`,count(0) AS `c` from `d`.`n` group by `d`.`n`.`a`) `x` where (`x`.`c` > 1)",
        ),
        (
            "SELECT b FROM n WHERE a > 1 UNION ALL SELECT b FROM t WHERE c > 1 ORDER BY b LIMIT 1",
            "/* select#1 */ select `d`.`n`.`b` AS `b` from `d`.`n` where (`d`.`n`.`a` > 1) union all /* select#2 */ select `d`.`t`.`b` AS `b` from `d`.`t` where (`d`.`t`.`c` > 1) order by `b` limit 1",
        ),
        (
            "SELECT n.a, (SELECT MAX(c) FROM t) m FROM n WHERE b IN ('x', 'z')",
            "/* select#1 */ select `d`.`n`.`a` AS `a`,(/* select#2 */ select max(`d`.`t`.`c`) from `d`.`t`) AS `m` from `d`.`n` where (`d`.`n`.`b` in ('x','z'))",
        ),
        (
            "SELECT a FROM n WHERE 1",
            "/* select#1 */ select `d`.`n`.`a` AS `a` from `d`.`n` where 1",
        ),
        (
            "SELECT 'abc', 1.5, NULL, CONCAT(b, 'it''s') FROM n WHERE b <> 'it''s'",
            "/* select#1 */ select 'abc' AS `abc`,1.5 AS `1.5`,NULL AS `NULL`,concat(`d`.`n`.`b`,'it\\'s') AS `CONCAT(b, 'it''s')` from `d`.`n` where (`d`.`n`.`b` <> 'it\\'s')",
        ),
        (
            "SELECT n.* FROM n IGNORE INDEX (kn) WHERE a > 0",
            "/* select#1 */ select `d`.`n`.`a` AS `a`,`d`.`n`.`b` AS `b` from `d`.`n` IGNORE INDEX (`kn`) where (`d`.`n`.`a` > 0)",
        ),
        (
            "WITH q AS (SELECT a, COUNT(*) FROM n GROUP BY a) SELECT * FROM q WHERE a > 1",
            "with `q` as (/* select#2 */ select `d`.`n`.`a` AS `a`,count(0) AS `COUNT(*)` from `d`.`n` group by `d`.`n`.`a`) /* select#1 */ select `q`.`a` AS `a`,`q`.`COUNT(*)` AS `COUNT(*)` from `q` where (`q`.`a` > 1)",
        ),
        (
            "SELECT CASE WHEN a = 1 THEN 'x' ELSE b END AS e, a DIV 2, a MOD 2 FROM n",
            "/* select#1 */ select (case when (`d`.`n`.`a` = 1) then 'x' else `d`.`n`.`b` end) AS `e`,(`d`.`n`.`a` DIV 2) AS `a DIV 2`,(`d`.`n`.`a` % 2) AS `a MOD 2` from `d`.`n`",
        ),
        (
            "SELECT 1",
            "/* select#1 */ select 1 AS `1`",
        ),
        (
            "SELECT /*+ QB_NAME(q) NO_BNL(@q n) NO_ICP(n kn) MAX_EXECUTION_TIME(9000) */ n.a FROM t JOIN n",
            "/* select#1 */ select /*+ QB_NAME(`q`) MAX_EXECUTION_TIME(9000) NO_BNL(`n`@`q`) NO_ICP(`n`@`q` `kn`) */ `d`.`n`.`a` AS `a` from `d`.`t` join `d`.`n`",
        ),
        (
            "SELECT /*+ JOIN_PREFIX(n) SEMIJOIN(FIRSTMATCH) BKA(n, t) MRR(n) */ n.a FROM t, n",
            "/* select#1 */ select /*+ SEMIJOIN(@`select#1` FIRSTMATCH) JOIN_PREFIX(@`select#1` `n`) BKA(`n`@`select#1`) MRR(`n`@`select#1`) BKA(`t`@`select#1`) */ `d`.`n`.`a` AS `a` from `d`.`t` join `d`.`n`",
        ),
        (
            "SELECT a FROM n UNION ALL SELECT /*+ NO_ICP(t) */ a FROM t",
            "/* select#1 */ select /*+ NO_ICP(`t`@`select#2`) */ `d`.`n`.`a` AS `a` from `d`.`n` union all /* select#2 */ select `d`.`t`.`a` AS `a` from `d`.`t`",
        ),
    ];
    for (sql, note) in recorded {
        c.rows(&format!("EXPLAIN {sql}")).await;
        assert_eq!(c.rows("SHOW WARNINGS").await, [["Note", "1003", note]], "{sql}");
    }
    // What has no such form is explained all the same.
    c.rows("EXPLAIN SELECT @v FROM n").await;
    assert!(c.rows("SHOW WARNINGS").await.is_empty());
}

/// NOT IN is an antijoin where nothing can be NULL; that COALESCE has seen to it counts, whatever its type says.
#[tokio::test]
async fn not_in_of_coalesce_is_an_antijoin() {
    let server = Server::new();
    let mut c = server.client().await;
    for (table, rows) in [("t", "(1), (2), (NULL)"), ("u", "(2), (3), (NULL)")] {
        c.ok(&format!("CREATE TABLE {table} (a INT)")).await;
        c.ok(&format!("INSERT INTO {table} VALUES {rows}")).await;
    }
    c.ok("SET highkey_executor = 'DATAFUSION'").await;
    let known = "SELECT COUNT(*) FROM t WHERE COALESCE(a, 0) NOT IN (SELECT COALESCE(a, 0) FROM u)";
    let unknown = "SELECT COUNT(*) FROM t WHERE COALESCE(a, 0) NOT IN (SELECT a FROM u)";
    for (sql, is_joined, count) in [(known, true, "1"), (unknown, false, "0")] {
        let tree = c.value(&format!("EXPLAIN FORMAT=TREE {sql}")).await;
        assert_eq!(tree.contains("antijoin"), is_joined, "{tree}");
        assert_eq!(c.value(sql).await, count, "{sql}");
    }
}
