//! Eviction, broken pages, and threads on guards.

use super::{Access, LatchClass, Writer};
use crate::disk::{Disk, SimConfig, SimDisk};
use crate::error::Error;
use crate::ids::{IndexId, PageId};
use crate::page::{PAGE_SIZE, PageType, header, redo};
use crate::recovery::Store;
use crate::recovery::tests::{open, small_options};
use crate::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

fn put(store: &Store, id: PageId, at: usize, n: u64, class: LatchClass) {
    let mut scope = store.pool.scope(Writer::System).unwrap();
    let mut page = store.pool.fix_exclusive(id, class).unwrap();
    let mut payload = Vec::from((at as u16).to_le_bytes());
    payload.extend_from_slice(&n.to_le_bytes());
    scope.apply(&mut page, redo::BYTES, &payload).unwrap();
    scope.commit().unwrap();
}

fn make(store: &Store, count: usize) -> Vec<PageId> {
    (0..count)
        .map(|_| {
            let mut scope = store.pool.scope(Writer::System).unwrap();
            let index = IndexId(1);
            let id = match store.space.root(index) {
                None => store.space.create_tree(&mut scope, index).unwrap(),
                Some(_) => store.space.allocate(&mut scope, index).unwrap(),
            };
            let mut page = store.pool.fix_new(id).unwrap();
            scope.apply(&mut page, redo::INIT, &redo::init_payload(PageType::Overflow, 0, 0, index)).unwrap();
            scope.commit().unwrap();
            id
        })
        .collect()
}

#[test]
fn a_database_larger_than_the_pool() {
    let disk = SimDisk::new(SimConfig::default());
    let store = open(&disk, &small_options()).unwrap();
    let pages = make(&store, 500);
    for (i, id) in pages.iter().enumerate() {
        put(&store, *id, 200, i as u64, LatchClass::Ordinary);
    }
    for (i, id) in pages.iter().enumerate().rev() {
        assert_eq!(header::get_u64(&store.pool.fix_shared(*id).unwrap(), 200), i as u64);
    }
    assert!(store.counters().evictions.get() > 800);
    assert!(store.counters().foreground_writes.get() > 0);
}

#[test]
fn what_was_kept_of_evicted_pages_is_known_to_be_true_without_reading_them() {
    let disk = SimDisk::new(SimConfig::default());
    let store = open(&disk, &small_options()).unwrap();
    let pages = make(&store, 500);
    store.clean(1000).unwrap();
    let versions: Vec<(PageId, u64)> = pages.iter().map(|id| (*id, store.pool.fix_shared(*id).unwrap().version())).collect();
    // Once more: now each has been away.
    for id in &pages {
        store.pool.fix_shared(*id).unwrap();
    }
    assert!(pages.iter().any(|id| !store.pool.is_resident(*id)));
    let read = store.counters().pages_read.get();
    assert!(versions.iter().all(|(id, version)| store.pool.has_version(*id, *version).unwrap()));
    assert_eq!(store.counters().pages_read.get(), read);
    put(&store, pages[7], 200, 1, LatchClass::Ordinary);
    store.clean(1000).unwrap();
    for id in &pages {
        store.pool.fix_shared(*id).unwrap();
    }
    for (id, version) in versions {
        assert_eq!(store.pool.has_version(id, version).unwrap(), id != pages[7], "page {}", id.0);
    }
}

#[test]
fn scans_do_not_evict_what_is_used() {
    let disk = SimDisk::new(SimConfig::default());
    let store = open(&disk, &small_options()).unwrap();
    let pages = make(&store, 400);
    store.clean(1000).unwrap();
    let (hot, cold) = pages.split_at(20);
    let mut misses = 0;
    for id in cold {
        for id in hot {
            if !store.pool.is_resident(*id) {
                misses += 1;
            }
            drop(store.pool.fix_shared(*id).unwrap());
        }
        drop(store.pool.fix_shared_as(*id, Access::Scan).unwrap());
    }
    assert!(misses <= 40, "{misses} hot pages were evicted by a scan");
}

#[test]
fn a_flipped_bit_is_noticed_and_names_the_page() {
    let disk = SimDisk::new(SimConfig::default());
    let store = open(&disk, &small_options()).unwrap();
    let pages = make(&store, 3);
    store.shutdown().unwrap();
    drop(store);
    disk.flip_bit("pages.000", pages[1].0 * PAGE_SIZE as u64 + 5000, 3);
    let store = open(&disk, &small_options()).unwrap();
    assert!(store.pool.fix_shared(pages[0]).is_ok());
    for _ in 0..2 {
        match store.pool.fix_shared(pages[1]) {
            Err(Error::Corrupt { page, .. }) => assert_eq!(page, Some(pages[1])),
            _ => panic!("the page is broken"),
        }
    }
    assert!(matches!(store.pool.fix_shared(PageId(3000)), Err(Error::Corrupt { .. })), "never written");
    assert!(matches!(store.pool.fix_shared(PageId(u64::MAX / 2)), Err(Error::Corrupt { .. })), "out of range");
    // A page written to the wrong place is noticed too.
    let file = disk.open("pages.000", false).unwrap();
    let mut bytes = vec![0; PAGE_SIZE];
    file.read_at(pages[0].0 * PAGE_SIZE as u64, &mut bytes).unwrap();
    file.write_at(pages[2].0 * PAGE_SIZE as u64, &bytes).unwrap();
    assert!(matches!(store.pool.fix_shared(pages[2]), Err(Error::Corrupt { .. })));
}

#[test]
fn a_scope_given_up_stops_the_engine() {
    let disk = SimDisk::new(SimConfig::default());
    let store = open(&disk, &small_options()).unwrap();
    let id = make(&store, 1)[0];
    let mut scope = store.pool.scope(Writer::System).unwrap();
    let mut page = store.pool.fix_exclusive(id, LatchClass::Ordinary).unwrap();
    scope.apply(&mut page, redo::BYTES, &[200, 0, 1]).unwrap();
    drop(scope);
    drop(page);
    assert!(store.is_stopped());
    assert!(matches!(store.pool.scope(Writer::System), Err(Error::Stopped)));
    // Nobody is shown the change.
    assert!(matches!(store.pool.fix_shared(id), Err(Error::Stopped)));
    assert!(matches!(store.pool.fix_exclusive(id, LatchClass::Ordinary), Err(Error::Stopped)));
}

#[test]
fn an_empty_scope_gives_its_pages_back() {
    let disk = SimDisk::new(SimConfig::default());
    let store = open(&disk, &small_options()).unwrap();
    make(&store, 1);
    let mut scope = store.pool.scope(Writer::System).unwrap();
    let a = store.space.allocate(&mut scope, IndexId(1)).unwrap();
    drop(scope);
    let mut scope = store.pool.scope(Writer::System).unwrap();
    assert_eq!(store.space.allocate(&mut scope, IndexId(1)).unwrap(), a);
    drop(scope);
    assert!(store.space.check_maps().unwrap().is_empty());
}

/// Two numbers of a page always agree for whoever holds a latch or validates a version, while threads of both classes
/// change them and other pages are read in and evicted.
#[test]
fn latches_exclude_under_load() {
    let disk = SimDisk::new(SimConfig::default());
    let store = open(&disk, &small_options()).unwrap();
    let pages = Arc::new(make(&store, 120));
    let stop = Arc::new(AtomicBool::new(false));
    let (written, validated) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|s| {
        for t in 0..3u64 {
            let (store, pages, stop, written) = (&store, &pages, &stop, &written);
            s.spawn(move || {
                let mut n = t;
                while !stop.load(Ordering::Relaxed) {
                    n = n.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    let id = pages[if n >> 60 < 12 { 0 } else { (n >> 33) as usize % pages.len() }];
                    let class = if t == 0 { LatchClass::Smo } else { LatchClass::Ordinary };
                    let mut scope = store.pool.scope(Writer::System).unwrap();
                    let mut page = store.pool.fix_exclusive(id, class).unwrap();
                    let next = header::get_u64(&page, 400) + 1;
                    assert_eq!(header::get_u64(&page, 8000), next - 1);
                    for at in [400u16, 8000] {
                        let mut p = Vec::from(at.to_le_bytes());
                        p.extend_from_slice(&next.to_le_bytes());
                        scope.apply(&mut page, redo::BYTES, &p).unwrap();
                    }
                    scope.commit().unwrap();
                    drop(page);
                    written.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for t in 0..3u64 {
            let (store, pages, stop, validated) = (&store, &pages, &stop, &validated);
            s.spawn(move || {
                let mut n = t;
                while !stop.load(Ordering::Relaxed) {
                    n = n.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    let id = pages[if n >> 60 < 12 { 0 } else { (n >> 33) as usize % pages.len() }];
                    if t == 0 {
                        let page = store.pool.fix_shared(id).unwrap();
                        assert_eq!(header::get_u64(&page, 400), header::get_u64(&page, 8000));
                    } else {
                        let page = store.pool.optimistic(id).unwrap();
                        let (a, b) = (page.u64(400), page.u64(8000));
                        if page.validate() {
                            assert_eq!(a, b);
                            validated.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
        std::thread::sleep(std::time::Duration::from_millis(700));
        stop.store(true, Ordering::Relaxed);
    });
    let total: u64 = pages.iter().map(|id| header::get_u64(&store.pool.fix_shared(*id).unwrap(), 400)).sum();
    assert_eq!(total, written.into_inner());
    assert!(validated.into_inner() > 0);
}

#[test]
fn optimistic_reads_see_what_guards_see() {
    let disk = SimDisk::new(SimConfig::default());
    let store = open(&disk, &small_options()).unwrap();
    let id = make(&store, 1)[0];
    for i in 0..20 {
        put(&store, id, 301 + i * 8, 0x0102_0304_0506_0708u64.rotate_left(i as u32 * 8), LatchClass::Ordinary);
    }
    let seen = store.pool.optimistic(id).unwrap();
    let page = store.pool.fix_shared(id).unwrap();
    let mut copy = Vec::new();
    for at in 295..460 {
        assert_eq!(seen.u8(at), page[at]);
        assert_eq!(seen.u16(at), header::get_u16(&page, at));
        assert_eq!(seen.u64(at), header::get_u64(&page, at));
        for len in [0, 1, 5, 8, 30] {
            seen.copy(at, len, &mut copy);
            assert_eq!(copy, page[at..at + len]);
            for other in [&page[300..320], &page[at..at + 3], b""] {
                assert_eq!(seen.compare(at, len, other), page[at..at + len].cmp(other));
            }
        }
    }
    seen.copy(PAGE_SIZE - 3, 100, &mut copy);
    assert_eq!(copy.len(), 3);
    let _ = (seen.u64(usize::MAX / 2), seen.u16(PAGE_SIZE));
    drop(page);
    assert!(seen.validate());
    put(&store, id, 300, 1, LatchClass::Ordinary);
    assert!(!seen.validate());
}
