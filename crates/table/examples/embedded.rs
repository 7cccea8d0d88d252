//! The engine inside another program: make a table, insert, read by key and by range, and find it all again.
//!
//! `cargo run -p highkey-table --example embedded -- [directory]`

use highkey_table::*;
use highkey_types::{Collation, ColumnType, TypeKind, Value};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args().nth(1).map_or_else(|| std::env::temp_dir().join("highkey-embedded"), Into::into);
    let db = Database::open(&directory, Options::default())?;

    if db.catalog().schema("shop").is_none() {
        let cx = DdlContext::default();
        let schema = SchemaDef { name: "shop".into(), collation: Collation::utf8mb4() };
        block_on(db.create_schema(&cx, schema))?;
        let columns = vec![
            ColumnDef::new("id", ColumnType::bigint()).auto_increment(),
            ColumnDef::new("name", ColumnType::with_collation(TypeKind::VarChar(50), Collation::utf8mb4())).not_null(),
            ColumnDef::new("price", ColumnType::new(TypeKind::Int)),
        ];
        let indexes = vec![IndexSpec::primary(&[0]), IndexSpec::unique("name", &[1])];
        block_on(db.create_table(&cx, TableSpec::new("shop", "item", columns, indexes)))?;
        println!("made shop.item in {}", directory.display());
    }

    let table = db.catalog().table("shop", "item")?;
    let first = table.reserve(3, 1, 1)?.first as i64;
    let rows: Vec<_> = (first..first + 3)
        .map(|id| vec![Value::Int(id), Value::text(format!("item {id}")), Value::Int(id * 100)])
        .collect();
    block_on(async {
        let mut txn = db.begin(Isolation::RepeatableRead);
        txn.open(&table).await?;
        table.insert(&mut txn, &rows, OnDuplicate::Error).await?;
        txn.commit().await
    })?;

    let mut txn = db.begin(Isolation::RepeatableRead);
    let by_name = table.get(&mut txn, 1, &[Value::text(format!("ITEM {first}"))])?;
    println!("by name, whatever its case: {:?}", by_name.map(|row| row.values()));
    let mut scan = table.scan(&mut txn, 0, &KeyRange::all(), Direction::Backward)?;
    let mut batch = RowBatch::new();
    while scan.next_batch(&mut batch)? {
        for row in 0..batch.len() {
            println!("{:?}", batch.values(row));
        }
    }
    drop((scan, txn));
    db.shutdown()?;
    Ok(())
}
