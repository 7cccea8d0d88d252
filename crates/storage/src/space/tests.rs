//! Allocation through the log.

use super::{EXTENT_PAGES, PageRun, SEGMENT_PAGES};
use crate::buffer::Writer;
use crate::disk::{FileDisk, SimConfig, SimDisk};
use crate::error::Error;
use crate::ids::{IndexId, PageId};
use crate::page::{PageType, redo};
use crate::recovery::Store;
use crate::recovery::tests::{NoTransactions, open, small_options};
use std::collections::BTreeSet;

fn tree(store: &Store, n: u32) -> PageId {
    let mut scope = store.pool.scope(Writer::System).unwrap();
    let root = store.space.create_tree(&mut scope, IndexId(n)).unwrap();
    let mut page = store.pool.fix_new(root).unwrap();
    scope.apply(&mut page, redo::INIT, &redo::init_payload(PageType::Overflow, 0, 0, IndexId(n))).unwrap();
    scope.commit().unwrap();
    root
}

#[test]
fn more_trees_than_a_directory_page_holds() {
    let disk = SimDisk::new(SimConfig::default());
    let store = open(&disk, &small_options()).unwrap();
    // Their pages would fill a gigabyte: drop most as they come, keep the slots taken by every 50th.
    let mut kept = BTreeSet::new();
    for _ in 0..1100 {
        let id = store.space.next_index_id();
        tree(&store, id.0);
        if id.0 % 50 == 0 {
            kept.insert(id);
        } else {
            let mut scope = store.pool.scope(Writer::System).unwrap();
            store.space.drop_tree(&mut scope, id).unwrap();
            scope.commit().unwrap();
        }
    }
    assert_eq!(store.space.trees(), kept.iter().copied().collect::<Vec<_>>());
    assert!(store.space.usage().0 < 60);
    store.wal.flush().unwrap();
    drop(store);
    let store = open(&disk.crash(), &small_options()).unwrap();
    assert_eq!(store.space.trees(), kept.into_iter().collect::<Vec<_>>());
    assert_eq!(store.space.next_index_id(), IndexId(1101));
    assert!(store.space.check_maps().unwrap().is_empty());
}

#[test]
fn runs_are_consecutive_and_freed_whole() {
    let disk = SimDisk::new(SimConfig::default());
    let store = open(&disk, &small_options()).unwrap();
    tree(&store, 1);
    let mut taken = BTreeSet::from_iter(store.space.pages_of(IndexId(1)));
    let mut runs = Vec::new();
    for want in [1u32, 2, 63, 64, 65, 200, 1000] {
        let mut left = want;
        while left > 0 {
            let mut scope = store.pool.scope(Writer::System).unwrap();
            let run = store.space.allocate_run(&mut scope, IndexId(1), left).unwrap();
            scope.commit().unwrap();
            assert!(run.pages >= 1 && run.pages <= left);
            for i in 0..run.pages as u64 {
                let page = PageId(run.first.0 + i);
                assert!(taken.insert(page) && page.0 % SEGMENT_PAGES != 0, "{page} is taken once and is no map");
            }
            left -= run.pages;
            runs.push(run);
        }
    }
    assert_eq!(store.space.pages_of(IndexId(1)), taken.iter().copied().collect::<Vec<_>>());
    assert!(runs.len() < 12);
    assert!(store.space.check_maps().unwrap().is_empty());
    let report = store.space.compare(IndexId(1), taken.iter().copied().skip(1));
    assert_eq!(report.orphans.len(), 1);
    for run in runs {
        let mut scope = store.pool.scope(Writer::System).unwrap();
        store.space.free_run(&mut scope, run).unwrap();
        assert!(store.space.pages_of(IndexId(1)).contains(&run.first), "not before the commit");
        scope.commit().unwrap();
    }
    assert_eq!(store.space.pages_of(IndexId(1)).len(), 1);
    assert!(store.space.check_maps().unwrap().is_empty());
    let (all, free) = store.space.usage();
    assert_eq!(all - free, 2);
    let twice = PageRun { first: PageId(EXTENT_PAGES * 3), pages: 1 };
    let mut scope = store.pool.scope(Writer::System).unwrap();
    assert!(store.space.free_run(&mut scope, twice).is_err());
}

/// A long value finds room on a full disk as long as there are pages, wherever they are.
#[test]
fn on_a_full_disk_runs_are_made_of_what_is_left() {
    let disk = SimDisk::new(SimConfig { capacity: 8 << 20, ..SimConfig::default() });
    let store = open(&disk, &small_options()).unwrap();
    tree(&store, 1);
    let take = |pages| {
        let mut scope = store.pool.scope(Writer::System).unwrap();
        let run = store.space.allocate_run(&mut scope, IndexId(1), pages)?;
        scope.commit().unwrap();
        Ok::<PageRun, Error>(run)
    };
    while take(EXTENT_PAGES as u32).is_ok() {}
    while take(1).is_ok() {}
    let taken = store.space.pages_of(IndexId(1));
    let mut scope = store.pool.scope(Writer::System).unwrap();
    // One page, then two beside each other.
    for n in [20, 30, 31] {
        store.space.free(&mut scope, taken[n]).unwrap();
    }
    scope.commit().unwrap();
    assert_eq!(take(16).unwrap(), PageRun { first: taken[30], pages: 2 });
    assert_eq!(take(16).unwrap(), PageRun { first: taken[20], pages: 1 });
    assert!(matches!(take(16), Err(Error::OutOfSpace)));
    assert_eq!(store.space.pages_of(IndexId(1)), taken);
}

/// What is set aside for a tree whose making fails, before or behind its first page, is anybody's.
#[test]
fn extents_of_a_tree_that_is_not_made_are_free_again() {
    let disk = SimDisk::new(SimConfig::default());
    let store = open(&disk, &small_options()).unwrap();
    let before = store.space.usage();
    drop(store.space.reserve(IndexId(9), 1).unwrap());
    assert_eq!(store.space.usage(), before);
    let reserved = store.space.reserve(IndexId(9), 1).unwrap();
    let mut scope = store.pool.scope(Writer::System).unwrap();
    store.space.create_tree(&mut scope, IndexId(9)).unwrap();
    drop(scope);
    drop(reserved);
    assert_eq!(store.space.usage(), before);
    tree(&store, 9);
    assert_eq!(store.space.usage().1, before.1 - 1);
    assert!(store.space.check_maps().unwrap().is_empty());
}

/// The error may be of pages that others have written to the file, and who would not be told of it again.
#[test]
fn a_longer_file_that_cannot_be_synced_stops_the_engine() {
    let disk = SimDisk::new(SimConfig::default());
    let store = open(&disk, &small_options()).unwrap();
    // The file is made longer, then synced.
    disk.fail_at(disk.changes() + 1, Error::io("extend", std::io::Error::other("no reason")));
    assert!(matches!(store.space.grow(1), Err(Error::Io { .. })));
    assert!(!store.is_stopped());
    disk.fail_at(disk.changes() + 2, Error::io("sync", std::io::Error::other("bad sector")));
    assert!(matches!(store.space.grow(1), Err(Error::Stopped)));
    assert!(store.is_stopped());
}

#[test]
fn a_dropping_mark_survives_and_leads_to_the_drop() {
    let disk = SimDisk::new(SimConfig::default());
    let store = open(&disk, &small_options()).unwrap();
    tree(&store, 1);
    tree(&store, 2);
    let mut scope = store.pool.scope(Writer::Commit { id: crate::ids::TxnId(5), prev_lsn: Default::default() }).unwrap();
    store.space.mark_dropping(&mut scope, IndexId(1)).unwrap();
    let (lsn, _) = scope.commit_transaction(&[], |_| 1).unwrap();
    store.wal.wait_durable(lsn).wait().unwrap();
    drop(store);
    let store = open(&disk.crash(), &small_options()).unwrap();
    assert_eq!((store.space.trees(), store.space.dropping()), (vec![IndexId(2)], vec![IndexId(1)]));
    let mut scope = store.pool.scope(Writer::System).unwrap();
    store.space.drop_tree(&mut scope, IndexId(1)).unwrap();
    store.space.drop_tree(&mut scope, IndexId(77)).unwrap();
    scope.commit().unwrap();
    assert!(store.space.dropping().is_empty() && store.space.root(IndexId(1)).is_none());
    assert!(store.space.check_maps().unwrap().is_empty());
}

#[test]
fn a_second_segment() {
    // The file system's files: this needs a gigabyte of (unwritten) blocks, not of memory.
    let dir = tempfile::tempdir().unwrap();
    let open = || {
        let disk = std::sync::Arc::new(FileDisk::open(dir.path()).unwrap());
        Store::open(disk, &small_options(), &mut |_| {}).unwrap().0
    };
    let store = open();
    store.start(std::sync::Arc::new(NoTransactions));
    tree(&store, 1);
    // Taken but never written: only the maps and the file's length grow.
    let mut left = SEGMENT_PAGES as u32 + 300;
    let mut pages = 0;
    while left > 0 {
        let mut scope = store.pool.scope(Writer::System).unwrap();
        let run = store.space.allocate_run(&mut scope, IndexId(1), left.min(20000)).unwrap();
        scope.commit().unwrap();
        assert_eq!(run.first.0 / SEGMENT_PAGES, (run.first.0 + run.pages as u64 - 1) / SEGMENT_PAGES);
        left -= run.pages;
        pages += run.pages as usize;
    }
    assert_eq!(store.space.pages_of(IndexId(1)).len(), pages + 1);
    assert!(store.space.check_maps().unwrap().is_empty());
    store.shutdown().unwrap();
    drop(store);
    let store = open();
    assert_eq!(store.space.pages_of(IndexId(1)).len(), pages + 1);
    assert!(store.space.check_maps().unwrap().is_empty());
}
