//! Source 003 without the SQL layer: rows of 190 bytes loaded into an empty table, their keys ascending or shuffled, in processor time.
//!
//! `cargo run --release -p highkey-table --example load_order -- [rows] [repeats] [kinds] [directory]`
//!
//! Kinds are `int` (a primary key of four bytes), `key` (the same and a secondary index) and `text` (a primary key of 20 characters, the first twelve of
//! them always the same). Blocks of 1 MiB are encoded and prepared one by one, added, and the load is finished: what the process spends on each, in ms, and
//! how long the end takes.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use highkey_table::{ColumnDef, Database, DdlContext, EncodedRows, IndexSpec, Isolation, OnDuplicate, Options, SchemaDef, TableSpec, block_on};
use highkey_types::{Collation, ColumnType, TypeKind, Value};
use rand::seq::SliceRandom;

/// As the server's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// As `BLOCK_BYTES` and `BULK_MEMORY` of `highkey-sql`.
const BLOCK_BYTES: usize = 1 << 20;
const MEMORY: usize = 256 << 20;
/// As the server says on machines of two cores.
const THREADS: usize = 2;

/// Processor time of all threads, also of those that have ended.
fn cpu_ms() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux counts it");
    let fields: Vec<&str> = stat.rsplit(") ").next().expect("fields").split(' ').collect();
    let ticks = |i: usize| fields[i].parse::<u64>().expect("a number");
    (ticks(11) + ticks(12)) * 10
}

fn main() {
    let mut args = std::env::args().skip(1);
    let rows: i64 = args.next().map_or(1_000_000, |n| n.parse().expect("rows"));
    let repeats: usize = args.next().map_or(3, |n| n.parse().expect("repeats"));
    let kinds = args.next().unwrap_or_else(|| "int,text".into());
    let directory = args.next().map_or_else(|| std::env::temp_dir().join("highkey-load-order"), PathBuf::from);
    let _ = std::fs::remove_dir_all(&directory);
    let options = Options { buffer_pool_bytes: 1 << 30, redo_log_capacity: 1 << 30, ..Options::default() };
    let db = Database::open(&directory, options).expect("the database opens");
    let schema = SchemaDef { name: "bulk".into(), collation: Collation::utf8mb4() };
    block_on(db.create_schema(&DdlContext::default(), schema)).expect("a schema");
    for kind in kinds.split(',') {
        for _ in 0..repeats {
            for shuffled in [false, true] {
                let [prepare, add, finish, end] = load(&db, kind, shuffled, rows);
                let order = if shuffled { "shuffled" } else { "ordered " };
                println!("{kind} {order} prepare {prepare} add {add} finish {finish} all {} the end takes {end}", prepare + add + finish);
            }
        }
    }
    db.shutdown().expect("a clean shutdown");
    let _ = std::fs::remove_dir_all(&directory);
}

fn load(db: &Arc<Database>, kind: &str, shuffled: bool, rows: i64) -> [u64; 4] {
    let text = kind == "text";
    let latin1 = Collation::by_name("latin1_swedish_ci").expect("latin1");
    let varchar = |n| ColumnType::with_collation(TypeKind::VarChar(n), latin1);
    let int = || ColumnType::new(TypeKind::Int);
    let types = [if text { varchar(20) } else { int() }, int(), varchar(120), varchar(60)];
    let columns = ["id", "k", "c", "pad"].into_iter().zip(types).map(|(name, ty)| ColumnDef::new(name, ty)).collect();
    let cx = DdlContext::default();
    let mut indexes = vec![IndexSpec::primary(&[0])];
    if kind == "key" {
        indexes.push(IndexSpec::ordinary("k", &[1]));
    }
    let table = block_on(db.create_table(&cx, TableSpec::new("bulk", "t", columns, indexes))).expect("a table");
    let mut ids: Vec<i64> = (0..rows).collect();
    if shuffled {
        ids.shuffle(&mut rand::rng());
    }
    let values = |id: i64| {
        let key = if text { Value::text(format!("customer no {id:08}").as_str()) } else { Value::Int(id) };
        [key, Value::Int(id % 1000), Value::text("ab".repeat(60).as_str()), Value::text("cd".repeat(30).as_str())]
    };
    let mut spent = [0; 4];
    block_on(async {
        let mut txn = db.begin(Isolation::RepeatableRead);
        txn.open(&table).await.expect("the table is there");
        let mut bulk = table.bulk_insert(&mut txn, OnDuplicate::Error, MEMORY).expect("a bulk insert");
        bulk.set_threads(THREADS);
        let mut encoded = Vec::new();
        for block in ids.chunks(BLOCK_BYTES / 200) {
            let mut rows = EncodedRows::with_room(BLOCK_BYTES);
            for id in block {
                encoded.clear();
                table.layout().encode(&values(*id), &mut encoded);
                rows.push_with(|out| out.extend_from_slice(&encoded));
            }
            let before = cpu_ms();
            let prepared = table.prepare_rows(rows);
            let between = cpu_ms();
            bulk.add(&mut txn, prepared).await.expect("rows go in");
            spent[0] += between - before;
            spent[1] += cpu_ms() - between;
        }
        let (before, begun) = (cpu_ms(), Instant::now());
        let report = bulk.finish(&mut txn).await.expect("rows are in");
        assert_eq!(report.inserted, rows as u64);
        txn.commit().await.expect("a commit");
        spent[2] = cpu_ms() - before;
        spent[3] = begun.elapsed().as_millis() as u64;
    });
    block_on(db.drop_tables(&cx, &[("bulk".into(), "t".into())], false)).expect("the table goes");
    spent
}
