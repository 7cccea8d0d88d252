//! Answers recorded from MySQL 8.0.12 (`recorded/record.py`), asked again here.

use highkey_table::{ColumnDef, DdlContext, IndexSpec, Isolation, OnDuplicate, TableSpec, block_on};
use highkey_types::{Collation, MySqlError};

use super::{Fixture, value};
use crate::bind::resolve_type;
use crate::parse::{ParseOptions, ast, parse_single};

/// The tables of `tables.txt`: a line with the name, one with the columns, then rows.
fn tables() -> Fixture {
    let f = Fixture::new();
    for block in include_str!("recorded/tables.txt").split("\n\n") {
        let mut lines = block.trim().lines();
        let name = lines.next().and_then(|l| l.strip_prefix("table ")).expect("a table's name");
        let columns = lines.next().expect("a table's columns").replace(" | ", ", ");
        let parsed = parse_single(&format!("CREATE TABLE {name} ({columns})"), ParseOptions::default()).unwrap();
        let ast::Statement::CreateTable(create) = parsed.statement else { panic!("not a table: {columns}") };
        let defs: Vec<ColumnDef> = create
            .columns
            .iter()
            .map(|c| {
                let def = ColumnDef::new(&c.name, resolve_type(&c.ty, Collation::utf8mb4(), Collation::utf8mb4(), &c.name).unwrap());
                if c.nullable == Some(false) { def.not_null() } else { def }
            })
            .collect();
        let types: Vec<_> = defs.iter().map(|d| d.ty.clone()).collect();
        let table = block_on(f.db.create_table(&DdlContext::default(), TableSpec::new("t", name, defs, vec![IndexSpec::primary(&[0])]))).unwrap();
        let rows: Vec<Vec<_>> = lines.map(|line| line.split('|').zip(&types).map(|(cell, ty)| value(cell, ty)).collect()).collect();
        let mut txn = f.db.begin(Isolation::RepeatableRead);
        block_on(table.insert(&mut txn, &rows, OnDuplicate::Error)).unwrap();
        block_on(txn.commit()).unwrap();
    }
    f
}

#[test]
fn answers_are_mysqls() {
    let f = tables();
    let mut wrong = Vec::new();
    let mut asked = 0;
    for block in include_str!("recorded/answers.txt").split("\n\n").filter(|b| !b.trim().is_empty()) {
        let (query, expected) = block.trim_start_matches('\n').split_once('\n').unwrap_or((block.trim(), ""));
        let expected: Vec<&str> = expected.lines().map(|l| l.strip_prefix("  ").unwrap_or(l)).collect();
        asked += 1;
        let lines = |answer: Result<Vec<Vec<String>>, MySqlError>| match answer {
            Ok(rows) => rows.iter().map(|row| row.join("|")).collect(),
            Err(error) => vec![format!("error {}", error.code)],
        };
        let got: Vec<String> = lines(f.ask(query));
        // Which of a group's spellings is shown depends on which row came first.
        let folded = |lines: Vec<String>| lines.iter().map(|l| l.to_lowercase()).collect::<Vec<_>>();
        let mut spilled = folded(lines(f.ask_spilling(query)));
        let mut sorted = folded(got.clone());
        if !query.contains("ORDER BY") {
            spilled.sort();
            sorted.sort();
        }
        if spilled != sorted {
            wrong.push(format!("{query}\n   hash joins:  {}\n   merge joins: {}", got.join(" ; "), spilled.join(" ; ")));
        }
        if got != expected {
            let detail = match f.ask(query) {
                Err(error) => error.message,
                Ok(_) => String::new(),
            };
            wrong.push(format!("{query}\n   MySQL: {}\n   here:  {} {detail}", expected.join(" ; "), got.join(" ; ")));
        }
    }
    assert!(asked > 150, "{asked} queries");
    assert!(wrong.is_empty(), "{} of {asked} answers differ:\n{}", wrong.len(), wrong.join("\n"));
}
