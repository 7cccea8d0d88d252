//! Source 000 without the SQL layer: copies of encoded rows into one table by several streams at once.
//!
//! `cargo run --release -p highkey-table --example bulk_streams -- [kinds] [streams] [repeats] [megabytes] [directory]`
//!
//! Kinds are `narrow` (five ints), `medium` (512 bytes), `wide` (4 KiB) and `keyless` (narrow, without a primary key), `all` for all. For
//! n streams t1 holds the n-th of the rows, and each thread copies t1 into t2 as `INSERT ... SELECT` does: encoded rows with numbers
//! reserved in blocks that double, chunks of 4 MiB, one transaction. A figure is rows in t2 by the seconds from the first start to the
//! last commit; the median, how full the leaves are, and all figures. With COUNTERS in the environment the engine's counters follow.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use highkey_table::{
    BulkInsert, ColumnDef, Database, DdlContext, Direction, EncodedRows, IndexSpec, Isolation, KeyRange, OnDuplicate, Options, RowBatch,
    SchemaDef, Table, TableSpec, Transaction, block_on,
};
use highkey_types::{Collation, ColumnType, TypeKind, Value};

/// As the server's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// As `BULK_CHUNK_BYTES` and `BULK_MEMORY` of `highkey-sql`.
const CHUNK_BYTES: usize = 4 << 20;
const MEMORY: usize = 256 << 20;

fn main() {
    let mut args = std::env::args().skip(1);
    let kinds = args.next().unwrap_or_else(|| "all".into());
    let kinds = if kinds == "all" { "narrow,medium,wide,keyless".into() } else { kinds };
    let streams = args.next().unwrap_or_else(|| "1,2,6,10,16".into());
    let streams: Vec<usize> = streams.split(',').map(|n| n.parse().expect("numbers of streams")).collect();
    let repeats: usize = args.next().map_or(3, |n| n.parse().expect("repeats"));
    let megabytes: usize = args.next().map_or(60, |n| n.parse().expect("megabytes"));
    let directory = args.next().map_or_else(|| std::env::temp_dir().join("highkey-bulk-streams"), PathBuf::from);
    let _ = std::fs::remove_dir_all(&directory);
    let options = Options { buffer_pool_bytes: 1 << 30, redo_log_capacity: 1 << 30, ..Options::default() };
    let db = Database::open(&directory, options).expect("the database opens");
    let schema = SchemaDef { name: "bulk".into(), collation: Collation::utf8mb4() };
    block_on(db.create_schema(&DdlContext::default(), schema)).expect("a schema");
    for kind in kinds.split(',') {
        let mut figures = vec![Vec::new(); streams.len()];
        let mut fills = vec![0.0; streams.len()];
        for _ in 0..repeats {
            for (i, &streams) in streams.iter().enumerate() {
                let (rate, fill) = cell(&db, kind, streams, megabytes << 20);
                figures[i].push(rate);
                fills[i] = fill;
            }
        }
        for (i, &streams) in streams.iter().enumerate() {
            let all = &mut figures[i];
            all.sort_by(f64::total_cmp);
            println!("{kind:<8} {streams:>3} {:>10.0} rows/s  fill {:.3}  {all:.0?}", all[all.len() / 2], fills[i]);
        }
    }
    if std::env::var_os("COUNTERS").is_some() {
        for (name, count) in db.engine().stats().counters {
            println!("{name} {count}");
        }
    }
    db.shutdown().expect("a clean shutdown");
    let _ = std::fs::remove_dir_all(&directory);
}

fn spec(kind: &str, name: &str) -> TableSpec {
    let latin1 = Collation::by_name("latin1_swedish_ci").expect("latin1");
    let text = |n| ColumnType::with_collation(TypeKind::VarChar(n), latin1);
    let int = || ColumnType::new(TypeKind::Int);
    let types: Vec<ColumnType> = match kind {
        "narrow" | "keyless" => vec![int(); 5],
        "medium" => vec![int(), text(512)],
        "wide" => vec![int(), text(1024), text(1024), text(1024), text(1024)],
        other => panic!("no kind {other}"),
    };
    let mut columns: Vec<ColumnDef> = types.into_iter().enumerate().map(|(i, ty)| ColumnDef::new(&format!("c{}", i + 2), ty)).collect();
    let mut indexes = Vec::new();
    if kind != "keyless" {
        columns.insert(0, ColumnDef::new("c1", int()).auto_increment());
        indexes.push(IndexSpec::primary(&[0]));
    }
    TableSpec::new("bulk", name, columns, indexes)
}

/// A table with so many rows.
fn fill(db: &Arc<Database>, table: &Arc<Table>, rows: usize) {
    let values: Vec<Value> = table
        .columns()
        .iter()
        .map(|column| match column.ty.kind {
            TypeKind::VarChar(n) => Value::text("ab".repeat(n as usize / 2).as_str()),
            _ => Value::Int(100),
        })
        .collect();
    let mut row = Vec::new();
    table.layout().encode(&values, &mut row);
    block_on(async {
        let mut copy = Copy::begin(db, table).await;
        for _ in 0..rows {
            copy.push(&row);
            copy.flush(CHUNK_BYTES).await;
        }
        copy.finish().await;
    });
}

fn cell(db: &Arc<Database>, kind: &str, streams: usize, bytes: usize) -> (f64, f64) {
    let cx = DdlContext::default();
    let [source, target] = ["t1", "t2"].map(|name| block_on(db.create_table(&cx, spec(kind, name))).expect("a table"));
    let row = kind_bytes(kind);
    let rows = (bytes / row).max(streams) / streams;
    fill(db, &source, rows);
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..streams {
            scope.spawn(|| block_on(copy_table(db, &source, &target)));
        }
    });
    let seconds = started.elapsed().as_secs_f64();
    let levels = db.engine().levels(target.indexes()[0].id, &|| false).expect("levels").expect("nothing stops it");
    assert_eq!(levels[0].records as usize, rows * streams);
    let fill = levels[0].used_bytes as f64 / (levels[0].pages as f64 * 16384.0);
    block_on(db.drop_tables(&cx, &[("bulk".into(), "t1".into()), ("bulk".into(), "t2".into())], false)).expect("the tables go");
    ((rows * streams) as f64 / seconds, fill)
}

/// Bytes that a row takes in its leaf, about.
fn kind_bytes(kind: &str) -> usize {
    match kind {
        "medium" => 560,
        "wide" => 4130,
        _ => 56,
    }
}

async fn copy_table(db: &Arc<Database>, source: &Arc<Table>, target: &Arc<Table>) {
    let mut copy = Copy::begin(db, target).await;
    copy.txn.open(source).await.expect("the table is there");
    let mut scan = source.scan(&mut copy.txn, 0, &KeyRange::all(), Direction::Forward).expect("a scan");
    let mut leaf = RowBatch::new();
    while scan.next_batch(&mut leaf).expect("rows") {
        for i in 0..leaf.len() {
            copy.push(leaf.row(i));
        }
        copy.flush(CHUNK_BYTES).await;
    }
    copy.finish().await;
}

/// One statement that inserts encoded rows.
struct Copy {
    table: Arc<Table>,
    txn: Transaction,
    bulk: BulkInsert,
    encoded: EncodedRows,
    /// Numbers reserved, how many of them are left, and the size of the next block.
    next: u64,
    left: u64,
    block: u64,
    rows: u64,
}

impl Copy {
    async fn begin(db: &Arc<Database>, table: &Arc<Table>) -> Copy {
        let mut txn = db.begin(Isolation::RepeatableRead);
        txn.open(table).await.expect("the table is there");
        let bulk = table.bulk_insert(&mut txn, OnDuplicate::Error, MEMORY).expect("a bulk insert");
        Copy { table: table.clone(), txn, bulk, encoded: EncodedRows::new(), next: 0, left: 0, block: 1, rows: 0 }
    }

    fn push(&mut self, row: &[u8]) {
        let auto = self.table.auto_increment_column();
        if auto.is_some() && self.left == 0 {
            let reserved = self.table.reserve(self.block, 1, 1).expect("numbers");
            (self.next, self.left, self.block) = (reserved.first, reserved.count, (self.block * 2).min(65_536));
        }
        let (layout, next) = (self.table.layout(), self.next);
        self.encoded.push_with(|out| {
            let start = out.len();
            out.extend_from_slice(row);
            if let Some(column) = auto {
                layout.set_fixed(&mut out[start..], column, &Value::Int(next as i64));
            }
        });
        self.next += 1;
        self.left = self.left.saturating_sub(1);
        self.rows += 1;
    }

    /// Hands the rows to the table once there are `least` bytes of them.
    async fn flush(&mut self, least: usize) {
        if self.encoded.byte_len() >= least && !self.encoded.is_empty() {
            let rows = std::mem::take(&mut self.encoded);
            self.bulk.add(&mut self.txn, self.table.prepare_rows(rows)).await.expect("rows go in");
        }
    }

    async fn finish(mut self) {
        self.flush(0).await;
        let report = self.bulk.finish(&mut self.txn).await.expect("rows are in");
        assert_eq!(report.inserted, self.rows);
        self.txn.commit().await.expect("a commit");
    }
}
