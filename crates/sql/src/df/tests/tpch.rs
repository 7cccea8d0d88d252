//! The 22 queries of TPC-H bind, plan and run (over one row per table; the answers are checked elsewhere, on real data).

use highkey_types::{Collation, ColumnType, TypeKind};

use super::{Fixture, int};

fn texts() -> Vec<&'static str> {
    include_str!("tpch.sql").split(';').map(str::trim).filter(|q| !q.is_empty()).collect()
}

/// The eight tables, with one row each if `filled`.
fn tables(filled: bool) -> Fixture {
    let f = Fixture::new();
    let add = |name: &str, key: &[usize], columns: &[(&str, ColumnType)], row: &str| f.keyed_table(name, key, columns, if filled { row } else { "" });
    let c = |n: u32| ColumnType::with_collation(TypeKind::Char(n), Collation::utf8mb4());
    let v = |n: u32| ColumnType::varchar(n, Collation::utf8mb4());
    let d = || ColumnType::decimal(15, 2);
    let date = || ColumnType::new(TypeKind::Date);
    add("region", &[0], &[("r_regionkey", int()), ("r_name!", c(25)), ("r_comment", v(152))], "1|ASIA|x");
    add("nation", &[0], &[("n_nationkey", int()), ("n_name!", c(25)), ("n_regionkey!", int()), ("n_comment", v(152))], "1|GERMANY|1|x");
    add(
        "part",
        &[0],
        &[
            ("p_partkey", int()), ("p_name!", v(55)), ("p_mfgr!", c(25)), ("p_brand!", c(10)), ("p_type!", v(25)), ("p_size!", int()),
            ("p_container!", c(10)), ("p_retailprice!", d()), ("p_comment!", v(23)),
        ],
        "1|forest green|m|Brand#23|PROMO BRASS|15|MED BOX|10.00|x",
    );
    add(
        "supplier",
        &[0],
        &[
            ("s_suppkey", int()), ("s_name!", c(25)), ("s_address!", v(40)), ("s_nationkey!", int()), ("s_phone!", c(15)), ("s_acctbal!", d()),
            ("s_comment!", v(101)),
        ],
        "1|S|addr|1|13-1|5.00|x",
    );
    add(
        "partsupp",
        &[0, 1],
        &[("ps_partkey", int()), ("ps_suppkey!", int()), ("ps_availqty!", int()), ("ps_supplycost!", d()), ("ps_comment!", v(199))],
        "1|1|100|3.00|x",
    );
    add(
        "customer",
        &[0],
        &[
            ("c_custkey", int()), ("c_name!", v(25)), ("c_address!", v(40)), ("c_nationkey!", int()), ("c_phone!", c(15)), ("c_acctbal!", d()),
            ("c_mktsegment!", c(10)), ("c_comment!", v(117)),
        ],
        "1|C|addr|1|13-2|7.00|BUILDING|x",
    );
    add(
        "orders",
        &[0],
        &[
            ("o_orderkey", int()), ("o_custkey!", int()), ("o_orderstatus!", c(1)), ("o_totalprice!", d()), ("o_orderdate!", date()),
            ("o_orderpriority!", c(15)), ("o_clerk!", c(15)), ("o_shippriority!", int()), ("o_comment!", v(79)),
        ],
        "1|1|F|100.00|1994-02-01|1-URGENT|k|0|x",
    );
    add(
        "lineitem",
        &[0, 3],
        &[
            ("l_orderkey", int()), ("l_partkey!", int()), ("l_suppkey!", int()), ("l_linenumber!", int()), ("l_quantity!", d()), ("l_extendedprice!", d()),
            ("l_discount!", d()), ("l_tax!", d()), ("l_returnflag!", c(1)), ("l_linestatus!", c(1)), ("l_shipdate!", date()), ("l_commitdate!", date()),
            ("l_receiptdate!", date()), ("l_shipinstruct!", c(25)), ("l_shipmode!", c(10)), ("l_comment!", v(44)),
        ],
        "1|1|1|1|10.00|100.00|0.06|0.02|R|F|1994-03-01|1994-03-05|1994-03-09|NONE|MAIL|x",
    );
    f
}

#[test]
fn all_22_queries_run() {
    let f = tables(true);
    let texts = texts();
    assert_eq!(texts.len(), 22);
    for (i, text) in texts.iter().enumerate() {
        let rows = f.ask(text).unwrap_or_else(|e| panic!("query {}: {} {}", i + 1, e.code, e.message));
        match i + 1 {
            1 => assert_eq!(rows, [["R", "F", "10.00", "100.00", "94.0000", "95.880000", "10.000000", "100.000000", "0.060000", "1"]]),
            6 => assert_eq!(rows, [["6.0000"]]),
            14 => assert_eq!(rows.len(), 1),
            _ => {}
        }
    }
}

/// The same 22 over real data: `HIGHKEY_TPCH=DIR cargo test --release -p highkey-sql tpch_data -- --ignored --nocapture` reads DIR/*.tbl (as
/// `tpchgen-cli` writes them), writes the answers to DIR/answers and prints the times.
#[test]
#[ignore = "needs generated data"]
fn tpch_data() {
    use std::io::BufRead;
    use std::time::Instant;

    use highkey_table::{Isolation, OnDuplicate, block_on};

    let Ok(dir) = std::env::var("HIGHKEY_TPCH") else { return };
    let f = tables(false);
    for name in ["region", "nation", "part", "supplier", "partsupp", "customer", "orders", "lineitem"] {
        let started = Instant::now();
        let table = f.db.catalog().table("t", name).unwrap();
        let types: Vec<ColumnType> = table.columns().iter().map(|c| c.ty.clone()).collect();
        let lines = std::io::BufReader::new(std::fs::File::open(format!("{dir}/{name}.tbl")).unwrap()).lines();
        let mut rows = Vec::new();
        let mut count = 0;
        let insert = |rows: &mut Vec<Vec<highkey_types::Value>>| {
            let mut txn = f.db.begin(Isolation::RepeatableRead);
            block_on(table.insert(&mut txn, rows, OnDuplicate::Error)).unwrap();
            block_on(txn.commit()).unwrap();
            rows.clear();
        };
        for line in lines {
            rows.push(line.unwrap().split('|').zip(&types).map(|(cell, ty)| super::value(cell, ty)).collect());
            count += 1;
            if rows.len() == 20_000 {
                insert(&mut rows);
            }
        }
        insert(&mut rows);
        eprintln!("{name}: {count} rows, {:.1?}", started.elapsed());
    }
    std::fs::create_dir_all(format!("{dir}/answers")).unwrap();
    for (i, text) in texts().iter().enumerate() {
        let started = Instant::now();
        let rows = f.ask(text).unwrap_or_else(|e| panic!("query {}: {} {}", i + 1, e.code, e.message));
        eprintln!("query {}: {} rows, {:.0?}", i + 1, rows.len(), started.elapsed());
        let lines: Vec<String> = rows.iter().map(|row| row.join("|")).collect();
        std::fs::write(format!("{dir}/answers/{}.txt", i + 1), lines.join("\n")).unwrap();
    }
}
