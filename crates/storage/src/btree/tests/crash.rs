//! The power goes off at every write: what was durable is there, nothing else is half there, and the tree goes on.

use super::super::{BTree, BatchRows, Cursor, Decision, Place};
use super::{Rows, checked, create, open, options, reopen};
use crate::buffer::Writer;
use crate::disk::{SimConfig, SimDisk};
use crate::error::{Error, Result};
use crate::ids::{IndexId, TxnId};
use crate::options::Options;
use crate::progress::Progress;
use crate::recovery::Store;
use crate::sync::{Arc, Ordering};
use std::collections::BTreeMap;

/// Row number to the byte that fills its value.
type Model = BTreeMap<u64, u8>;

/// What a script did and how much of it is known durable.
struct Run {
    states: Vec<Model>,
    durable: usize,
    index: Option<IndexId>,
    disk: SimDisk,
    /// Changes of the disk before the part that the script is about.
    before: u64,
}

impl Run {
    fn new(disk: &SimDisk) -> Run {
        Run { states: vec![Model::new()], durable: 0, index: None, disk: disk.clone(), before: 0 }
    }
    fn step(&mut self, store: &Store, change: impl FnOnce(&mut Model), durable: bool) -> Result<()> {
        let mut model = self.states.last().unwrap().clone();
        change(&mut model);
        self.states.push(model);
        if durable {
            store.wal.flush()?;
            self.durable = self.states.len() - 1;
        }
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum Script {
    /// Leaf splits, root splits and shares, by rows of a quarter page.
    Grow,
    /// As `Grow`, but no split gets its second step until the end.
    Interrupted,
    /// Grows, then shrinks: merges and the collapse of the root.
    Shrink,
    /// Batches that ascend: leaves opened with all their rows.
    Batches,
    /// As `Batches`, but no split gets its second step until the end.
    InterruptedBatches,
    /// Grows over several extents, loses most of its rows here and there, and is compacted: leaves and inner pages take over their siblings, are
    /// filled from them, and move into gaps.
    Compact,
}

/// Long keys make inner pages split as well; every third ascends, so all kinds of split happen.
fn key(i: u64) -> Vec<u8> {
    let mut key = vec![b'k'; 700];
    let order = if i % 3 == 0 { u64::MAX / 2 + i } else { i.wrapping_mul(0x9E37_79B9_7F4A_7C15) };
    key[..8].copy_from_slice(&order.to_be_bytes());
    key[8..16].copy_from_slice(&i.to_be_bytes());
    key
}

fn script(store: &Arc<Store>, run: &mut Run, script: Script) -> Result<()> {
    let tree = create(store)?;
    store.wal.flush()?;
    run.index = Some(tree.index());
    if let Script::Interrupted | Script::InterruptedBatches = script {
        tree.inner.interrupt.store(1, Ordering::Relaxed);
    }
    if let Script::Batches | Script::InterruptedBatches = script {
        return batches(store, run, &tree);
    }
    if let Script::Compact = script {
        return compact(store, run, &tree);
    }
    let mut cursor = Cursor::new();
    let rows = 40;
    for i in 0..rows {
        let value = vec![i as u8; 2500];
        tree.put(&mut cursor, &key(i), &value)?;
        run.step(store, |model| _ = model.insert(i, i as u8), i % 5 == 0)?;
        if i % 16 == 7 {
            store.clean(4)?;
        }
        if i == 20 {
            store.checkpoint()?;
        }
    }
    if let Script::Shrink = script {
        for i in 0..rows {
            tree.delete(&mut cursor, &key(i))?;
            run.step(store, |model| _ = model.remove(&i), i % 5 == 0)?;
        }
    }
    store.wal.flush()?;
    run.durable = run.states.len() - 1;
    Ok(())
}

fn compact(store: &Arc<Store>, run: &mut Run, tree: &BTree) -> Result<()> {
    let mut cursor = Cursor::new();
    for i in 0..300 {
        tree.put(&mut cursor, &key(i), &vec![i as u8; 4000])?;
        run.step(store, |model| _ = model.insert(i, i as u8), false)?;
    }
    for i in (0..300).filter(|i| i % 5 > 1) {
        // A little of each row stays for a while, so that no page is merged because it is empty.
        tree.put(&mut cursor, &key(i), &[i as u8; 1200])?;
    }
    for i in (0..300).filter(|i| i % 5 > 2) {
        tree.delete(&mut cursor, &key(i))?;
        run.step(store, |model| _ = model.remove(&i), false)?;
    }
    store.checkpoint()?;
    run.step(store, |_| {}, true)?;
    run.before = run.disk.changes();
    let before = tree.stats().counters();
    let (extents, steps, failed) = (store.space.size(tree.index()).unwrap().0, std::cell::Cell::new(0), std::cell::Cell::new(false));
    let done = tree.compact(100, &Progress::default(), &|| {
        // Pages reach the disk, and the log, at several places of the work.
        steps.set(steps.get() + 1);
        failed.set(steps.get() % 16 == 0 && store.clean(2).is_err() || steps.get() % 24 == 0 && store.wal.flush().is_err());
        failed.get()
    })?;
    let after = tree.stats().counters();
    assert!(done || failed.get(), "nothing but a failing disk ends the work early");
    assert!(!done || after.merges > before.merges + 5 && after.shares > before.shares + 3, "{before:?} {after:?}");
    assert!(!done || store.space.size(tree.index()).unwrap().0 < extents, "an extent became free");
    store.wal.flush()
}

/// Rows of a third of a page, whose keys ascend.
fn batches(store: &Arc<Store>, run: &mut Run, tree: &BTree) -> Result<()> {
    let mut cursor = Cursor::new();
    let ids: Vec<u64> = (0..30).map(|i| i * 3).collect();
    for (n, ids) in ids.chunks(7).enumerate() {
        let rows: Rows = ids.iter().map(|i| (key(*i), vec![*i as u8; 4000])).collect();
        let mut at = 0;
        while at < rows.len() {
            let put = |_, _: &Place, _: &mut Vec<u8>| Decision::Put { txn: TxnId(1), flags: 0 };
            let done = tree.modify_batch(&mut cursor, &rows, at..rows.len(), Writer::System, put)?.done;
            // Each record by itself is there or not.
            let insert = |model: &mut Model| model.extend(ids[at..at + done].iter().map(|i| (*i, *i as u8)));
            run.step(store, insert, at == 0)?;
            at += done;
        }
        store.clean(4)?;
        if n == 2 {
            store.checkpoint()?;
        }
    }
    assert!(tree.stats().counters().splits_append > 5 && run.states.len() < 20, "leaves are opened with their rows: {:?}", tree.stats());
    store.wal.flush()?;
    run.durable = run.states.len() - 1;
    Ok(())
}

/// After recovery: a legal tree with one of the states from the last durable one on; then it is used on.
fn verify(disk: &SimDisk, options: &Options, run: &Run, what: &str) -> usize {
    let store = open(disk, options).unwrap_or_else(|e| panic!("{what}: {e}"));
    let Some(index) = run.index else { return 0 };
    let tree: BTree = reopen(&store, index).unwrap();
    let found: Model = tree.all().unwrap().into_iter().map(|(k, v)| (u64::from_be_bytes(k[8..16].try_into().unwrap()), v[0])).collect();
    let at = run.states.iter().rposition(|state| *state == found).unwrap_or_else(|| panic!("{what}: a state that never was"));
    assert!(run.states[run.durable..].contains(&found), "{what}: state {at}, but {} was durable", run.durable);
    let report = checked(&store, &tree);
    let mut cursor = Cursor::new();
    for round in 0..2 {
        for i in 0..90 {
            tree.put(&mut cursor, &key(i), &[round; 1000]).unwrap();
        }
    }
    let after = checked(&store, &tree);
    assert_eq!(after.records as usize, 90 + found.range(90..).count(), "{what}");
    assert_eq!(after.incomplete_splits, 0, "{what}: writers finish splits that the crash interrupted");
    report.incomplete_splits as usize
}

/// The power goes off at every write of the script, on disks that tear at 512 bytes and at 4 KiB. How many incomplete splits were found.
fn crash_everywhere(kind: Script) -> usize {
    let options = options(64, 4 << 20);
    let whole = SimDisk::new(SimConfig::default());
    let before;
    {
        let store = open(&whole, &options).unwrap();
        let mut run = Run::new(&whole);
        script(&store, &mut run, kind).unwrap();
        before = run.before;
    }
    let total = whole.changes();
    let mut interrupted = 0;
    for n in before + 1..=total {
        for sector in [512, 4096] {
            let disk = SimDisk::new(SimConfig { seed: n, sector, ..SimConfig::default() });
            disk.power_off_at(n);
            let mut run = Run::new(&disk);
            if let Ok(store) = open(&disk, &options) {
                let _ = script(&store, &mut run, kind);
                store.stop();
            }
            assert!(disk.is_off(), "write {n} of {total} is reached");
            interrupted += verify(&disk.crash(), &options, &run, &format!("power off at {n} of {total}, sectors of {sector}"));
        }
    }
    interrupted
}

#[test]
fn crash_at_every_write_while_splitting() {
    crash_everywhere(Script::Grow);
}

#[test]
fn crash_between_the_steps_of_splits() {
    assert!(crash_everywhere(Script::Interrupted) > 0, "some crash must have come between the steps");
}

#[test]
fn crash_at_every_write_of_batches() {
    crash_everywhere(Script::Batches);
    assert!(crash_everywhere(Script::InterruptedBatches) > 0, "some crash must have come between the steps");
}

#[test]
fn crash_at_every_write_while_merging() {
    crash_everywhere(Script::Shrink);
}

#[test]
fn crash_at_every_write_while_compacting() {
    crash_everywhere(Script::Compact);
}

#[test]
fn a_call_that_fails_leaves_the_tree_or_stops_it() {
    let options = options(64, 4 << 20);
    let whole = SimDisk::new(SimConfig::default());
    script(&open(&whole, &options).unwrap(), &mut Run::new(&whole), Script::Shrink).unwrap();
    let total = whole.changes();
    for n in 1..=total {
        let disk = SimDisk::new(SimConfig { seed: n, ..SimConfig::default() });
        disk.fail_at(n, Error::io("simulated", std::io::Error::other("simulated failure")));
        let mut run = Run::new(&disk);
        if let Ok(store) = open(&disk, &options) {
            let _ = script(&store, &mut run, Script::Shrink);
            store.stop();
        }
        verify(&disk.crash(), &options, &run, &format!("call {n} of {total} failed"));
    }
}

#[test]
fn a_full_disk_refuses_rows_and_keeps_the_tree() {
    let disk = SimDisk::new(SimConfig { capacity: 10 << 20, ..SimConfig::default() });
    let store = open(&disk, &options(200, 1 << 20)).unwrap();
    let tree = create(&store).unwrap();
    let mut cursor = Cursor::new();
    let mut rows = 0u64;
    let error = loop {
        match tree.put(&mut cursor, &key(rows), &[9; 2000]) {
            Ok(_) => rows += 1,
            Err(e) => break e,
        }
        assert!(rows < 20_000, "10 MiB hold no 20,000 rows of 2 kB");
    };
    println!("{rows} rows, {:?}", store.counters());
    assert!(matches!(error, Error::OutOfSpace), "{error}");
    assert_eq!(checked(&store, &tree).records, rows);
    // Removing makes room again.
    for i in 0..rows {
        tree.delete(&mut cursor, &key(i)).unwrap();
    }
    for i in 0..100 {
        tree.put(&mut cursor, &key(i), &[9; 2000]).unwrap();
    }
    checked(&store, &tree);
}
