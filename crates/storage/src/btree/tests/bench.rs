//! Rates of one thread: `cargo test --release -p highkey-storage --lib btree::tests::bench -- --ignored --nocapture`.

use super::super::{BatchRows, Cursor, Decision, Direction, LeafScan, Place};
use super::{Rows, rig};
use crate::buffer::Writer;
use crate::ids::TxnId;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::SeedableRng;
use std::ops::Bound;
use std::time::Instant;

#[test]
#[ignore = "a measurement"]
fn rates() {
    const ROWS: u64 = 1_000_000;
    let mut shuffled: Vec<u64> = (0..ROWS).collect();
    shuffled.shuffle(&mut StdRng::seed_from_u64(1));
    for (name, keys) in [("ascending", (0..ROWS).collect()), ("random", shuffled)] {
        let rig = rig(20_000);
        let mut cursor = Cursor::new();
        let report = |what: &str, rows: u64, start: Instant| {
            let spent = start.elapsed();
            println!("{name:>9} {what:<8} {:>9.0} rows/s {:>6.0} ns/row", rows as f64 / spent.as_secs_f64(), spent.as_nanos() as f64 / rows as f64);
        };
        let start = Instant::now();
        for key in &keys {
            rig.tree
                .modify(&mut cursor, &key.to_be_bytes(), Writer::System, |_, change| {
                    change.value.extend_from_slice(&[7; 100]);
                    Decision::Put { txn: TxnId(1), flags: 0 }
                })
                .unwrap();
        }
        report("insert", ROWS, start);
        let start = Instant::now();
        let mut found = 0u64;
        for key in &keys {
            found += rig.tree.read(&key.to_be_bytes(), |record| record.map_or(0, |r| u64::from(r.value[0] == 7))).unwrap();
        }
        assert_eq!(found, ROWS);
        report("lookup", ROWS, start);
        let start = Instant::now();
        let mut scan = LeafScan::new(Bound::Unbounded, Bound::Unbounded, Direction::Forward);
        let mut rows = 0u64;
        while rig.tree.scan_leaf(&mut scan, |view| (0..view.len()).for_each(|i| rows += u64::from(view.record(i).value[0] == 7))).unwrap() {}
        assert_eq!(rows, ROWS);
        report("scan", ROWS, start);
        println!("          fill {:.3}, {:?}", rig.tree.check().unwrap().leaf_fill(), rig.tree.stats());
    }
    let rig = rig(20_000);
    let mut cursor = Cursor::new();
    let rows: Rows = (0..ROWS).map(|key| (key.to_be_bytes().to_vec(), vec![7; 100])).collect();
    let start = Instant::now();
    let mut at = 0;
    while at < rows.len() {
        let end = (at + 1000).min(rows.len());
        let put = |_, _: &Place, _: &mut Vec<u8>| Decision::Put { txn: TxnId(1), flags: 0 };
        at += rig.tree.modify_batch(&mut cursor, &rows, at..end, Writer::System, put).unwrap().done;
    }
    println!("    batch insert   {:>9.0} rows/s", ROWS as f64 / start.elapsed().as_secs_f64());
}
