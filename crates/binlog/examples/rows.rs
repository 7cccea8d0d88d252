//! How fast rows become events: sysbench's row (INT, INT, CHAR(120), CHAR(60)) with a primary key, one thread. Prints rows each second for
//! each kind of change, the worst and the best of five runs.

use std::time::Instant;

use highkey_binlog::{Bitmap, Column, PrimaryKeyPart, RowImage, RowMetadata, RowsKind, RowsWriter, Stamp, TableMap};
use highkey_types::{Collation, ColumnType, TypeKind, Value};

const ROWS: usize = 2_000_000;
/// Rows of a statement.
const BATCH: usize = 100;

fn main() {
    let int = ColumnType::new(TypeKind::Int);
    let (c, pad) = (TypeKind::Char(120), TypeKind::Char(60));
    let text = |kind| ColumnType::with_collation(kind, Collation::utf8mb4());
    let (c, pad) = (text(c), text(pad));
    let column = |name, ty, primary_key| Column { name, ty, nullable: false, primary_key, visible: true };
    let key = Some(PrimaryKeyPart { position: 0, prefix: 0 });
    let columns = [column("id", &int, key), column("k", &int, None), column("c", &c, None), column("pad", &pad, None)];
    let table = TableMap::new(1, "sbtest", "sbtest1", &columns, RowMetadata::Minimal);
    let digits = |len: usize| Value::text("0123456789-".repeat(11)[..len].to_owned());
    let row = |id: i64| [Value::Int(id), Value::Int(id * 7), digits(119), digits(59)];
    let rows: Vec<_> = (0..BATCH as i64).map(row).collect();
    let changed: Vec<_> = rows.iter().map(|row| [row[0].clone(), Value::Int(1), row[2].clone(), row[3].clone()]).collect();
    measure("insert", || insert(&table, &rows));
    measure("update, full images", || update(&table, RowImage::Full, &rows, &changed));
    measure("update, minimal images", || update(&table, RowImage::Minimal, &rows, &changed));
}

/// `run` writes [`ROWS`] rows and answers the bytes.
fn measure(name: &str, run: impl Fn() -> usize) {
    let mut rates: Vec<f64> = Vec::new();
    let mut bytes = 0;
    for _ in 0..5 {
        let start = Instant::now();
        bytes = run();
        rates.push(ROWS as f64 / start.elapsed().as_secs_f64() / 1e6);
    }
    rates.sort_by(f64::total_cmp);
    println!("{name}: {:.1} to {:.1} million rows/s, {} bytes a row", rates[0], rates[4], bytes / ROWS);
}

fn insert(table: &TableMap, rows: &[[Value; 4]]) -> usize {
    let (all, mut out, mut bytes) = (Bitmap::all(4), Vec::new(), 0);
    for _ in 0..ROWS / BATCH {
        out.clear();
        table.write(Stamp::default(), &mut out);
        let mut writer = RowsWriter::begin(RowsKind::Write, Stamp::default(), 0, table, &all, &all);
        rows.iter().for_each(|row| writer.push(row, &mut out));
        writer.finish(true, &mut out);
        bytes += out.len();
    }
    bytes
}

fn update(table: &TableMap, image: RowImage, rows: &[[Value; 4]], changed: &[[Value; 4]]) -> usize {
    let (before, mut after, mut out, mut bytes) = (image.before(table), Bitmap::none(4), Vec::new(), 0);
    for _ in 0..ROWS / BATCH {
        out.clear();
        table.write(Stamp::default(), &mut out);
        let mut writer = RowsWriter::begin(RowsKind::Update, Stamp::default(), 0, table, &before, &after);
        for (old, new) in rows.iter().zip(changed) {
            image.after(table, old, new, &mut after);
            writer.set_columns(&before, &after, &mut out);
            writer.push_update(old, new, &mut out);
        }
        writer.finish(true, &mut out);
        bytes += out.len();
    }
    bytes
}
