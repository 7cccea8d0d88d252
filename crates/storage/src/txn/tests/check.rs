//! Whose the pages are, as a check finds it.

use std::cell::Cell;

use super::*;
use crate::buffer::Writer;
use crate::progress::{Progress, Stage};
use crate::space::PageOwnership;

fn ownership(engine: &Engine, index: IndexId) -> Option<PageOwnership> {
    engine.check_until(index, &Progress::default(), &|| false).unwrap().unwrap().ownership
}

/// Rows on several levels, and values of several pages.
fn filled() -> (Engine, IndexId) {
    let (engine, t) = engine();
    for n in 0..300 {
        let long = "long".repeat(if n % 50 == 0 { 20_000 } else { 200 });
        given(&engine, t, &[(&format!("{n:04}"), &long)]);
    }
    purge_all(&engine);
    (engine, t)
}

#[test]
fn pages_that_nobody_uses_are_found() {
    let (engine, t) = filled();
    assert_eq!(ownership(&engine, t), Some(PageOwnership::default()));
    let mut scope = engine.store().pool.scope(Writer::System).unwrap();
    let page = engine.store().space.allocate(&mut scope, t).unwrap();
    scope.commit().unwrap();
    assert_eq!(ownership(&engine, t), Some(PageOwnership { orphans: vec![page], ..PageOwnership::default() }));
}

#[test]
fn pages_of_others_and_pages_used_twice_are_found() {
    let (engine, t) = filled();
    let other = new_index(&engine);
    given(&engine, other, &[("a", "1")]);
    purge_all(&engine);
    let pages = engine.check(t).unwrap().pages;
    let foreign = engine.check(other).unwrap().pages;
    let found = engine.store().space.compare(t, pages.iter().chain(&foreign).chain(&pages[..1]).copied());
    assert_eq!((found.foreign, found.doubled), (foreign, vec![pages[0]]));
}

/// Older versions have pages that no tree leads to.
#[test]
fn it_is_not_judged_while_somebody_writes() {
    let (engine, t) = filled();
    let long = "other".repeat(20_000);
    let mut txn = engine.begin(Isolation::RepeatableRead);
    put(&mut txn, t, "0000", &long);
    assert_eq!(ownership(&engine, t), None);
    commit(txn);
    purge_all(&engine);
    assert_eq!(ownership(&engine, t), Some(PageOwnership::default()));
}

#[test]
fn a_check_stops_and_counts_pages() {
    let (engine, t) = filled();
    let progress = Progress::default();
    let pages = engine.check_until(t, &progress, &|| false).unwrap().unwrap().pages.len() as u64;
    assert_eq!((progress.stage(), progress.done()), (Stage::CheckingPages, pages));
    let asked = Cell::new(0);
    let stop = || {
        asked.set(asked.get() + 1);
        asked.get() > 3
    };
    assert_eq!(engine.check_until(t, &progress, &stop).unwrap(), None);
    assert_eq!(progress.done(), 3);
}
