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

#[test]
fn what_an_index_was_made_with_survives_a_reopen() {
    let disk = disk(11);
    let db = open(&disk);
    create_schema(&db, "s").unwrap();
    let rules = |parser, stopwords| Arc::new(WordRules { parser, stopwords });
    let list = StopwordList::new(Collation::by_name("utf8mb4_bin").unwrap(), vec!["apple".into(), "東".into()]);
    let spec = |name, parser, stopwords| IndexSpec { words: rules(parser, stopwords), ..IndexSpec::new(IndexKind::FullText, Some(name), &[1]) };
    let pairs = spec("pairs", WordParser::Ngram { chars: 2 }, Stopwords::Listed(list.clone()));
    let short = spec("short", WordParser::Runs { chars_min: 1, chars_max: 10 }, Stopwords::None);
    let specs = vec![IndexSpec::primary(&[0]), pairs.clone(), short.clone(), IndexSpec::new(IndexKind::FullText, Some("usual"), &[1])];
    let created = create(&db, "t", vec![int("id").not_null(), varchar("v", 200)], specs);
    fill(&db, &created, vec![vec![i(1), t("東京 the a")], vec![i(2), t("京都 apple")]]);
    db.shutdown().unwrap();
    drop((created, db));
    let db = open(&disk);
    let table = common::table(&db, "t");
    let made_with: Vec<_> = table.indexes()[1..].iter().map(|index| index.words.clone()).collect();
    assert_eq!(made_with, [pairs.words, short.words, WordRules::usual()]);
    fill(&db, &table, vec![vec![i(3), t("the apple 京都府 東京")]]);
    let holders = |index: &str, word: &str| {
        let snapshot = db.begin(Isolation::ReadCommitted).snapshot();
        let index = table.def().index(index).unwrap();
        table.rows_with_word(&snapshot, index, &word_key(Collation::utf8mb4(), word), false, usize::MAX, &|| false).unwrap().entries
    };
    let counts = |word: &str| ["pairs", "short", "usual"].map(|index| holders(index, word));
    assert_eq!(counts("京都"), [2, 1, 0]);
    assert_eq!(counts("東京"), [0, 2, 0]);
    assert_eq!(counts("the"), [0, 2, 0]);
    assert_eq!(counts("pp"), [2, 0, 0]);
    assert_eq!(counts("apple"), [0, 2, 2]);
    assert_eq!(counts("a"), [0, 1, 0]);
    check(&db);
}

/// In one load: the words of the others go, also where they are the same, and in the order of the keys or not, in memory or in files.
#[test]
fn of_rows_with_one_key_the_words_of_the_one_that_stays_are_there() {
    let text = |id: i64, chunk: i64| format!("{} chunk{chunk} only{chunk}x{id} both{}", "filler words ".repeat(12), id % 7);
    let rows = |chunk: i64, ids: std::ops::Range<i64>| ids.map(|id| note(id, &text(id, chunk), &text(id, chunk))).collect::<Vec<_>>();
    for (mode, first, second) in [(OnDuplicate::Replace, 1500, 3000), (OnDuplicate::Ignore, 3000, 1500)] {
        for memory in [64 << 20, 1 << 16] {
            let db = database();
            let table = notes(&db);
            block_on(async {
                let mut txn = db.begin(Isolation::RepeatableRead);
                assert!(txn.open(&table).await.unwrap());
                let mut bulk = table.bulk_insert(&mut txn, mode, memory).unwrap();
                for chunk in [rows(1, 0..3000), rows(2, 1500..4500)] {
                    let mut encoded = EncodedRows::new();
                    chunk.iter().for_each(|row| encoded.push_with(|out| table.layout().encode(row, out)));
                    bulk.add(&mut txn, table.prepare_rows(encoded)).await.unwrap();
                }
                bulk.finish(&mut txn).await.unwrap();
                txn.commit().await.unwrap();
            });
            assert_eq!((ids(&db, &table, "chunk1").len(), ids(&db, &table, "chunk2").len()), (first, second), "{mode:?}, {memory}");
            assert_eq!(ids(&db, &table, "filler").len(), 4500);
            let stays = if mode == OnDuplicate::Replace { 2 } else { 1 };
            assert_eq!(ids(&db, &table, &format!("only{stays}x2000")), [2000]);
            assert!(ids(&db, &table, &format!("only{}x2000", 3 - stays)).is_empty());
            check(&db);
        }
    }
}
