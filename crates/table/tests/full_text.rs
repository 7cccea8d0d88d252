//! FULLTEXT indexes: which rows have a word, whatever has become of them.

mod common;

use std::sync::Arc;

use common::*;
use highkey_table::*;
use highkey_types::{Collation, Value};

fn notes(db: &Arc<Database>) -> Arc<Table> {
    let columns = vec![int("id").not_null(), varchar("a", 200), varchar("b", 200)];
    create(db, "notes", columns, vec![IndexSpec::new(IndexKind::FullText, Some("words"), &[1, 2]), IndexSpec::primary(&[0])])
}

fn note(id: i64, a: &str, b: &str) -> Vec<Value> {
    vec![i(id), t(a), t(b)]
}

/// The ids of the rows that have the word, as the transaction sees them.
fn with_word(txn: &mut Transaction, table: &Arc<Table>, word: &str) -> Vec<i64> {
    let snapshot = txn.snapshot();
    let index = table.def().index("words").unwrap();
    let found = table.rows_with_word(&snapshot, index, &word_key(Collation::utf8mb4(), word), false, usize::MAX, &|| false).unwrap();
    found.keys.unwrap().iter().map(|key| table.row_at(&snapshot, key).unwrap().unwrap().value(0).as_i64().unwrap()).collect()
}

fn ids(db: &Arc<Database>, table: &Arc<Table>, word: &str) -> Vec<i64> {
    with_word(&mut db.begin(Isolation::ReadCommitted), table, word)
}

/// Changes the row with that id, or deletes it, in a transaction that is given back open.
fn change(db: &Arc<Database>, table: &Arc<Table>, id: i64, new: Option<Vec<Value>>) -> Transaction {
    block_on(async {
        let mut txn = db.begin(Isolation::RepeatableRead);
        assert!(txn.open(table).await.unwrap());
        let row = table.lock_get(&mut txn, 0, &[i(id)], LockMode::Exclusive, LockWaitPolicy::Wait).await.unwrap().unwrap();
        match new {
            Some(new) => assert!(table.update(&mut txn, &row, &new).await.unwrap()),
            None => table.delete(&mut txn, &row).await.unwrap(),
        }
        txn
    })
}

#[test]
fn an_index_of_words_comes_last_and_has_an_entry_a_word() {
    let db = database();
    let table = notes(&db);
    assert_eq!(table.indexes()[1].kind, IndexKind::FullText);
    fill(&db, &table, vec![note(1, "Red apple, red", "the pie"), note(2, "Äpple", "apple"), vec![i(3), NULL, t("of red wine")], vec![i(4), NULL, NULL]]);
    assert_eq!(ids(&db, &table, "apple"), [1, 2]);
    assert_eq!(ids(&db, &table, "RED"), [1, 3]);
    assert!(ids(&db, &table, "the").is_empty());
    assert!(ids(&db, &table, "app").is_empty());
    // Of the beginning of words; of too many only how many they are.
    let snapshot = db.begin(Isolation::ReadCommitted).snapshot();
    let beginning = |most| table.rows_with_word(&snapshot, 1, &word_key(Collation::utf8mb4(), "app"), true, most, &|| false).unwrap();
    assert_eq!((beginning(1).entries, beginning(1).keys), (2, None));
    assert_eq!(beginning(2).keys.map(|keys| keys.len()), Some(2));
    check(&db);
}

#[test]
fn entries_follow_their_rows() {
    let db = database();
    let table = notes(&db);
    fill(&db, &table, vec![note(1, "red apple", "sweet"), note(2, "green apple", "sour")]);
    let mut before = db.begin(Isolation::RepeatableRead);
    assert_eq!(with_word(&mut before, &table, "apple"), [1, 2]);
    let mut txn = change(&db, &table, 1, Some(note(1, "red cherry", "sweet")));
    // Its own at once, to others when it is committed.
    assert_eq!(with_word(&mut txn, &table, "cherry"), [1]);
    assert!(ids(&db, &table, "cherry").is_empty());
    block_on(txn.commit()).unwrap();
    assert_eq!(ids(&db, &table, "cherry"), [1]);
    assert_eq!(ids(&db, &table, "apple"), [2]);
    assert_eq!(with_word(&mut before, &table, "apple"), [1, 2]);
    // Another key, a deletion, and changes that are taken back.
    block_on(change(&db, &table, 1, Some(note(7, "red cherry", "sweet"))).commit()).unwrap();
    assert_eq!(ids(&db, &table, "sweet"), [7]);
    block_on(change(&db, &table, 2, None).commit()).unwrap();
    assert!(ids(&db, &table, "apple").is_empty());
    block_on(change(&db, &table, 7, None).rollback()).unwrap();
    assert_eq!(ids(&db, &table, "cherry"), [7]);
    drop(before);
    check(&db);
}

#[test]
fn replaced_and_ignored_rows_leave_no_words() {
    let db = database();
    let table = notes(&db);
    fill(&db, &table, vec![note(1, "first", "words")]);
    insert(&db, &table, vec![note(1, "second", "words"), note(2, "second", "too")], OnDuplicate::Ignore).unwrap();
    assert_eq!(ids(&db, &table, "second"), [2]);
    insert(&db, &table, vec![note(1, "third", "words"), note(3, "third", "too")], OnDuplicate::Replace).unwrap();
    assert_eq!(ids(&db, &table, "third"), [1, 3]);
    assert!(ids(&db, &table, "first").is_empty());
    check(&db);
}

#[test]
fn an_index_that_comes_later_has_the_words_of_all_rows() {
    let db = database();
    let table = create(&db, "notes", vec![int("id").not_null(), varchar("a", 200), varchar("b", 200)], vec![IndexSpec::primary(&[0])]);
    fill(&db, &table, (0..500).map(|id| note(id, &format!("word{}", id % 100), "common")).collect());
    let spec = IndexSpec::new(IndexKind::FullText, Some("words"), &[1, 2]);
    block_on(db.create_index(&DdlContext::default(), "s", "notes", spec)).unwrap();
    let table = common::table(&db, "notes");
    assert_eq!(ids(&db, &table, "word42"), [42, 142, 242, 342, 442]);
    assert_eq!(ids(&db, &table, "common").len(), 500);
    check(&db);
}
