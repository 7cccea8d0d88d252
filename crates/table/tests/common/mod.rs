//! What the tests share: a database on a simulated disk, short definitions, short statements.
#![allow(dead_code)]

use std::sync::Arc;

use highkey_storage::{SimClock, SimConfig, SimDisk, SystemClock};
use highkey_table::*;
use highkey_types::{Collation, ColumnType, MySqlError, TypeKind, Value};

pub fn options() -> Options {
    Options {
        buffer_pool_bytes: 16 << 20,
        redo_log_capacity: 64 << 20,
        log_segment_bytes: 1 << 20,
        log_buffer_bytes: 1 << 20,
        abort_on_fatal: false,
        ..Options::default()
    }
}

/// Everything on the calling thread, so that a run is repeatable.
pub fn still_options() -> Options {
    Options { background: false, ..options() }
}

pub fn disk(seed: u64) -> SimDisk {
    SimDisk::new(SimConfig { seed, ..SimConfig::default() })
}

pub fn open(disk: &SimDisk) -> Arc<Database> {
    Database::open_on(Arc::new(disk.clone()), options(), Arc::new(SystemClock::new()), BinlogOptions::default()).unwrap()
}

pub fn try_open_still(disk: &SimDisk) -> Result<Arc<Database>, OpenError> {
    Database::open_on(Arc::new(disk.clone()), still_options(), Arc::new(SimClock::new()), BinlogOptions::default())
}

/// A database with the schema `s`.
pub fn database() -> Arc<Database> {
    let db = open(&disk(1));
    create_schema(&db, "s").unwrap();
    db
}

pub fn create_schema(db: &Arc<Database>, name: &str) -> Result<(), MySqlError> {
    let collation = Collation::by_name("utf8mb4_0900_ai_ci").unwrap();
    block_on(db.create_schema(&DdlContext::default(), SchemaDef { name: name.into(), collation }))
}

pub fn create(db: &Arc<Database>, name: &str, columns: Vec<ColumnDef>, indexes: Vec<IndexSpec>) -> Arc<Table> {
    try_create(db, name, columns, indexes).unwrap()
}

pub fn try_create(
    db: &Arc<Database>,
    name: &str,
    columns: Vec<ColumnDef>,
    indexes: Vec<IndexSpec>,
) -> Result<Arc<Table>, MySqlError> {
    block_on(db.create_table(&DdlContext::default(), TableSpec::new("s", name, columns, indexes)))
}

/// A view of the schema `s`.
pub fn view(name: &str, text: &str) -> ViewDef {
    ViewDef {
        schema: "s".into(),
        name: name.into(),
        columns: vec!["c".into()],
        text: text.into(),
        algorithm: ViewAlgorithm::Merge,
        check: CheckOption::Cascaded,
        definer: ("root".into(), "localhost".into()),
        invoker: true,
        updatable: true,
        charset: highkey_types::Charset::Utf8mb4,
        collation: Collation::utf8mb4(),
        created_at: std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_600_000_000),
    }
}

pub fn table(db: &Arc<Database>, name: &str) -> Arc<Table> {
    db.catalog().table("s", name).unwrap()
}

/// PARTITION BY RANGE (id): names and limits, of which `None` is MAXVALUE.
pub fn by_id(partitions: &[(&str, Option<i128>)]) -> Partitioning {
    let partition = |(name, limit): &(&str, Option<i128>)| PartitionDef {
        name: (*name).into(),
        comment: "".into(),
        values: PartitionValues::Below(*limit),
        trees: Vec::new(),
    };
    Partitioning {
        method: PartitionMethod::Range(PartitionExpr::Column("id".into())),
        partitions: partitions.iter().map(partition).collect(),
        numbered: false,
    }
}

pub fn int(name: &str) -> ColumnDef {
    ColumnDef::new(name, ColumnType::new(TypeKind::Int))
}

pub fn varchar(name: &str, chars: u32) -> ColumnDef {
    let collation = Collation::by_name("utf8mb4_0900_ai_ci").unwrap();
    ColumnDef::new(name, ColumnType::with_collation(TypeKind::VarChar(chars), collation))
}

pub fn longblob(name: &str) -> ColumnDef {
    ColumnDef::new(name, ColumnType::new(TypeKind::LongBlob))
}

pub fn i(value: i64) -> Value {
    Value::Int(value)
}

pub fn t(text: &str) -> Value {
    Value::text(text)
}

pub const NULL: Value = Value::Null;

/// Inserts and commits; on an error the transaction is rolled back.
pub fn insert(
    db: &Arc<Database>,
    table: &Arc<Table>,
    rows: Vec<Vec<Value>>,
    mode: OnDuplicate,
) -> Result<InsertReport, MySqlError> {
    block_on(async {
        let mut txn = db.begin(Isolation::RepeatableRead);
        assert!(txn.open(table).await?);
        let report = table.insert(&mut txn, &rows, mode).await?;
        txn.commit().await?;
        Ok(report)
    })
}

pub fn fill(db: &Arc<Database>, table: &Arc<Table>, rows: Vec<Vec<Value>>) {
    insert(db, table, rows, OnDuplicate::Error).unwrap();
}

/// All rows of a range in index order, in a transaction of its own.
pub fn rows(
    db: &Arc<Database>,
    table: &Arc<Table>,
    index: usize,
    range: &KeyRange,
    direction: Direction,
) -> Vec<Vec<Value>> {
    let mut txn = db.begin(Isolation::ReadCommitted);
    rows_in(&mut txn, table, index, range, direction)
}

pub fn rows_in(
    txn: &mut Transaction,
    table: &Arc<Table>,
    index: usize,
    range: &KeyRange,
    direction: Direction,
) -> Vec<Vec<Value>> {
    let mut scan = table.scan(txn, index, range, direction).unwrap();
    let mut batch = RowBatch::new();
    let mut all = Vec::new();
    while scan.next_batch(&mut batch).unwrap() {
        assert!(!batch.is_empty(), "a batch has rows until the end");
        all.extend((0..batch.len()).map(|row| batch.values(row)));
    }
    all
}

pub fn all(db: &Arc<Database>, table: &Arc<Table>) -> Vec<Vec<Value>> {
    rows(db, table, 0, &KeyRange::all(), Direction::Forward)
}

/// Under a snapshot, scans of secondary indexes give the same from their entries as from the rows, as far as the entries go, and count what they give.
pub fn compare_covering(table: &Arc<Table>, snapshot: &Snapshot) -> Result<(), MySqlError> {
    let key_and = |scan: Result<TableScan, MySqlError>, columns: &[usize]| -> Result<Vec<(Vec<u8>, Vec<Value>)>, MySqlError> {
        let (mut scan, mut batch, mut all) = (scan?, RowBatch::new(), Vec::new());
        while scan.next_batch(&mut batch)? {
            all.extend((0..batch.len()).map(|row| (batch.key(row).to_vec(), columns.iter().map(|c| batch.value(row, *c)).collect())));
        }
        Ok(all)
    };
    for index in (1..table.indexes().len()).filter(|i| table.indexes()[*i].kind != IndexKind::FullText) {
        let columns: Vec<usize> = (0..table.columns().len()).filter(|column| table.covers(index, &[*column])).collect();
        for direction in [Direction::Forward, Direction::Backward] {
            let scan = || table.scan_at(snapshot, index, &KeyRange::all(), direction);
            let rows = key_and(scan(), &columns)?;
            assert_eq!(key_and(scan().map(|scan| scan.of_columns(&columns)), &columns)?, rows, "index {index}, {direction:?}");
            let (mut counting, mut counted) = (scan()?, 0);
            while let Some(some) = counting.count_batch()? {
                counted += some;
            }
            assert_eq!(counted, rows.len() as u64, "index {index}, {direction:?}");
        }
    }
    Ok(())
}

/// CHECK TABLE on every table.
pub fn check(db: &Arc<Database>) {
    for table in db.catalog().all_tables() {
        let mut txn = db.begin(Isolation::ReadCommitted);
        let report = table.check(&mut txn, false).unwrap();
        assert!(report.is_ok(), "{}: {:?}", table.def().name, report.errors);
    }
}
