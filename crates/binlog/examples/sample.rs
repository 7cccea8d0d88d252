//! Writes a binary log of all column types for other programs to read (`scripts/binlog-readers.sh`): `sample FILE [mariadb]`. For MariaDB
//! it leaves out the tables with JSON and has utf8mb4_general_ci in place of utf8mb4_0900_ai_ci: its tools stop at both. Prints
//! the GTIDs and the number of changed rows.

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/common/sample.rs"]
mod sample;

use highkey_types::{Collation, TypeKind};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().expect("the file to write");
    let mut tables = common::tables();
    let mut collation = Collation::utf8mb4();
    if arguments.next().is_some_and(|reader| reader == "mariadb") {
        collation = Collation::by_name("utf8mb4_general_ci").expect("a known collation");
        tables.retain(|table| table.columns.iter().all(|column| column.ty.kind != TypeKind::Json));
        let unknown = Collation::utf8mb4();
        for column in tables.iter_mut().flat_map(|table| &mut table.columns).filter(|column| column.ty.collation.id == unknown.id) {
            column.definition = column.definition.replace(unknown.name, collation.name);
            column.ty.collation = collation;
        }
    }
    let (file, transactions) = sample::file("d", &tables, collation, true, highkey_binlog::RowMetadata::Full);
    std::fs::write(path, file).expect("writing the file");
    let changes: usize = tables.iter().map(|table| table.changes.len()).sum();
    println!("{}:1-{transactions} {changes}", sample::SERVER);
}
