//! The 22 queries of TPC-H as an application may send them: as text, prepared, with parameters, on one thread and on several.

use std::fmt::Display;

use highkey_types::Value;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator, RegionGenerator, SupplierGenerator,
};

use super::{Client, Server};

/// A hundredth of the smallest scale: 60,000 line items.
const SCALE: f64 = 0.01;

const TABLES: &str = "\
region: r_regionkey int NOT NULL, r_name char(25) NOT NULL, r_comment varchar(152), PRIMARY KEY (r_regionkey)
nation: n_nationkey int NOT NULL, n_name char(25) NOT NULL, n_regionkey int NOT NULL, n_comment varchar(152), PRIMARY KEY (n_nationkey), KEY (n_regionkey)
part: p_partkey int NOT NULL, p_name varchar(55) NOT NULL, p_mfgr char(25) NOT NULL, p_brand char(10) NOT NULL, p_type varchar(25) NOT NULL, p_size int NOT NULL, p_container char(10) NOT NULL, p_retailprice decimal(15,2) NOT NULL, p_comment varchar(23) NOT NULL, PRIMARY KEY (p_partkey)
supplier: s_suppkey int NOT NULL, s_name char(25) NOT NULL, s_address varchar(40) NOT NULL, s_nationkey int NOT NULL, s_phone char(15) NOT NULL, s_acctbal decimal(15,2) NOT NULL, s_comment varchar(101) NOT NULL, PRIMARY KEY (s_suppkey), KEY (s_nationkey)
partsupp: ps_partkey int NOT NULL, ps_suppkey int NOT NULL, ps_availqty int NOT NULL, ps_supplycost decimal(15,2) NOT NULL, ps_comment varchar(199) NOT NULL, PRIMARY KEY (ps_partkey, ps_suppkey), KEY (ps_suppkey)
customer: c_custkey int NOT NULL, c_name varchar(25) NOT NULL, c_address varchar(40) NOT NULL, c_nationkey int NOT NULL, c_phone char(15) NOT NULL, c_acctbal decimal(15,2) NOT NULL, c_mktsegment char(10) NOT NULL, c_comment varchar(117) NOT NULL, PRIMARY KEY (c_custkey), KEY (c_nationkey)
orders: o_orderkey bigint NOT NULL, o_custkey int NOT NULL, o_orderstatus char(1) NOT NULL, o_totalprice decimal(15,2) NOT NULL, o_orderdate date NOT NULL, o_orderpriority char(15) NOT NULL, o_clerk char(15) NOT NULL, o_shippriority int NOT NULL, o_comment varchar(79) NOT NULL, PRIMARY KEY (o_orderkey), KEY (o_custkey)
lineitem: l_orderkey bigint NOT NULL, l_partkey int NOT NULL, l_suppkey int NOT NULL, l_linenumber int NOT NULL, l_quantity decimal(15,2) NOT NULL, l_extendedprice decimal(15,2) NOT NULL, l_discount decimal(15,2) NOT NULL, l_tax decimal(15,2) NOT NULL, l_returnflag char(1) NOT NULL, l_linestatus char(1) NOT NULL, l_shipdate date NOT NULL, l_commitdate date NOT NULL, l_receiptdate date NOT NULL, l_shipinstruct char(25) NOT NULL, l_shipmode char(10) NOT NULL, l_comment varchar(44) NOT NULL, PRIMARY KEY (l_orderkey, l_linenumber), KEY (l_partkey, l_suppkey), KEY (l_suppkey)";

/// Each row as VALUES takes it, without dbgen's `|` at its end.
fn lines<T: Display>(rows: impl Iterator<Item = T>) -> Vec<String> {
    rows.map(|row| format!("('{}')", row.to_string().trim_end_matches('|').replace('|', "','"))).collect()
}

fn rows_of(table: &str) -> Vec<String> {
    match table {
        "region" => lines(RegionGenerator::new(SCALE, 1, 1).iter()),
        "nation" => lines(NationGenerator::new(SCALE, 1, 1).iter()),
        "part" => lines(PartGenerator::new(SCALE, 1, 1).iter()),
        "supplier" => lines(SupplierGenerator::new(SCALE, 1, 1).iter()),
        "partsupp" => lines(PartSuppGenerator::new(SCALE, 1, 1).iter()),
        "customer" => lines(CustomerGenerator::new(SCALE, 1, 1).iter()),
        "orders" => lines(OrderGenerator::new(SCALE, 1, 1).iter()),
        _ => lines(LineItemGenerator::new(SCALE, 1, 1).iter()),
    }
}

async fn load(server: &Server) -> Client {
    let mut c = server.client().await;
    for line in TABLES.lines() {
        let (name, columns) = line.split_once(": ").unwrap();
        c.ok(&format!("CREATE TABLE {name} ({columns})")).await;
        for rows in rows_of(name).chunks(1000) {
            c.ok(&format!("INSERT INTO {name} VALUES {}", rows.join(", "))).await;
        }
        c.rows(&format!("ANALYZE TABLE {name}")).await;
    }
    c
}

/// The query with `?` in place of its texts, but for those that are part of a literal, and the texts.
fn with_parameters(sql: &str) -> (String, Vec<Value>) {
    let (mut out, mut values) = (String::new(), Vec::new());
    for (i, part) in sql.split('\'').enumerate() {
        let literal = |before: &str| ["date ", "interval "].iter().any(|word| before.ends_with(word));
        match i % 2 {
            0 => out.push_str(part),
            _ if literal(&out) => out.push_str(&format!("'{part}'")),
            _ => {
                out.push('?');
                values.push(Value::text(part));
            }
        }
    }
    (out, values)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prepared_queries_answer_as_texts() {
    let server = Server::new();
    let mut c = load(&server).await;
    c.ok("SET parallel_cost_threshold = 0, parallel_default_dop = 2").await;
    let queries: Vec<&str> = include_str!("../../df/tests/tpch.sql").split(';').map(str::trim).filter(|q| !q.is_empty()).collect();
    assert_eq!(queries.len(), 22);
    let (mut rows, mut parameters) = (0, 0);
    for (i, sql) in queries.iter().enumerate() {
        let n = i + 1;
        c.ok("SET force_parallel_execute = OFF").await;
        let expected = c.rows(sql).await;
        rows += expected.len();
        let whole = c.session.prepare(sql.as_bytes()).await.unwrap().id;
        let (open, values) = with_parameters(sql);
        parameters += values.len();
        let open = c.session.prepare(open.as_bytes()).await.unwrap().id;
        for parallel in ["OFF", "ON"] {
            c.ok(&format!("SET force_parallel_execute = {parallel}")).await;
            assert_eq!(c.rows(sql).await, expected, "Q{n}, {parallel}");
            // Twice: the second time it is bound already.
            for _ in 0..2 {
                assert_eq!(c.rows_of(whole, &[]).await, expected, "Q{n} prepared, {parallel}");
                assert_eq!(c.rows_of(open, &values).await, expected, "Q{n} with parameters, {parallel}");
            }
        }
    }
    assert!(rows > 500 && parameters > 50, "{rows} rows, {parameters} parameters");
}
