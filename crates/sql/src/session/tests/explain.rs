//! EXPLAIN FORMAT=JSON and EXPLAIN FOR CONNECTION.

use highkey_types::json::{self, Json};

use super::{Client, Server};

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
    assert_eq!(found, [r#""(`d`.`t`.`c` > 1)""#, r#""((`d`.`u`.`z` = 2) and (`d`.`u`.`a` = `d`.`t`.`a`))""#, "true"]);
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
    assert_eq!(c.error("EXPLAIN ANALYZE FORMAT=JSON SELECT 1").await.0, 1235);
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
