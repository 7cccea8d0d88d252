//! A page alone: random operations against a sorted map, damaged payloads and pages.

use super::edit::Frame;
use super::layout::*;
use super::node::{Node, Trend};
use super::op::{self, Records, Reshape};
use super::read::Range;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;

/// Miri is some thousand times slower.
const SEEDS: u64 = if cfg!(miri) { 2 } else { 30 };
const OPERATIONS: usize = if cfg!(miri) { 25 } else { 600 };
const DAMAGES: usize = if cfg!(miri) { 100 } else { 20_000 };

type Model = BTreeMap<Vec<u8>, (u64, Vec<u8>)>;

fn new_page(low: &[u8], high: Option<&[u8]>, level: u8) -> Vec<u8> {
    let mut page = vec![0; PAGE_SIZE];
    let mut payload = Vec::new();
    let frame = Frame { low, high, right_link: if high.is_some() { 77 } else { 0 }, ..Frame::empty(5, 9, level) };
    op::format_payload(&mut payload, &frame, Records::None, Records::None).unwrap();
    // An inner page needs a first child; leaves begin empty.
    if level > 0 {
        op::format_payload(&mut payload, &frame, Records::Children(&[(low, 1000)]), Records::None).unwrap();
    }
    op::apply(op::FORMAT, &mut page, &payload).unwrap();
    page
}

fn random_key(rng: &mut StdRng, prefix: &[u8]) -> Vec<u8> {
    let mut key = prefix.to_vec();
    let len = match rng.random_range(0..10) {
        0 => 0,
        1..8 => rng.random_range(0..12),
        _ => rng.random_range(0..600),
    };
    key.extend((0..len).map(|_| b"ab\x00\xff"[rng.random_range(0..4)]));
    key
}

fn compare(page: &[u8], model: &Model) {
    let node = Node(page);
    node.verify().unwrap();
    assert_eq!(node.len(), model.len());
    for (i, (key, (meta, value))) in model.iter().enumerate() {
        let mut stored = Vec::new();
        node.key(i, &mut stored).unwrap();
        let record = node.record(i).unwrap();
        assert_eq!((&stored, record.meta, record.value), (key, *meta, value.as_slice()));
        assert_eq!(node.search(key).unwrap(), (i, true));
    }
}

#[test]
fn random_operations_match_a_sorted_map() {
    for seed in 0..SEEDS {
        let mut rng = StdRng::seed_from_u64(seed);
        let (low, high): (&[u8], Option<&[u8]>) = if seed % 2 == 0 { (b"ppppa", Some(b"ppppq")) } else { (b"", None) };
        let mut page = new_page(low, high, 0);
        let mut model = Model::new();
        let mut payload = Vec::new();
        for _ in 0..OPERATIONS {
            let key = random_key(&mut rng, if seed % 2 == 0 { b"ppppb" } else { b"" });
            let node = Node(&page);
            assert_eq!(node.range_of(&key).unwrap(), Range::Inside);
            let (slot, found) = node.search(&key).unwrap();
            assert_eq!(found, model.contains_key(&key), "seed {seed}");
            let prefix = node.prefix().unwrap().len();
            let len = rng.random_range(0..200);
            let value: Vec<u8> = (0..len).map(|_| rng.random()).collect();
            let meta: u64 = rng.random();
            match rng.random_range(0..10) {
                0..2 if found => {
                    op::remove_payload(&mut payload, slot);
                    op::apply(op::REMOVE, &mut page, &payload).unwrap();
                    model.remove(&key);
                }
                _ if found => {
                    if node.free() + model[&key].1.len() >= value.len() {
                        op::replace_payload(&mut payload, slot, meta, &value);
                        op::apply(op::REPLACE, &mut page, &payload).unwrap();
                        model.insert(key, (meta, value));
                    }
                }
                _ => {
                    if node.free() >= key.len() - prefix + LEAF_OVERHEAD + value.len() {
                        op::insert_payload(&mut payload, slot, 1);
                        op::push_leaf(&mut payload, &key[prefix..], meta, &value);
                        op::apply(op::INSERT, &mut page, &payload).unwrap();
                        model.insert(key, (meta, value));
                    } else if let Some(first) = model.keys().next().cloned() {
                        op::remove_payload(&mut payload, 0);
                        op::apply(op::REMOVE, &mut page, &payload).unwrap();
                        model.remove(&first);
                    }
                }
            }
            Node(&page).verify().unwrap_or_else(|e| panic!("seed {seed}: {e:?}"));
        }
        compare(&page, &model);
    }
}

#[test]
fn a_run_goes_in_at_once() {
    let mut page = new_page(b"k", Some(b"kz"), 0);
    let mut payload = Vec::new();
    op::insert_payload(&mut payload, 0, 3);
    for i in 0..3u8 {
        op::push_leaf(&mut payload, &[i], 7, &[i; 10]);
    }
    op::apply(op::INSERT, &mut page, &payload).unwrap();
    let node = Node(&page);
    assert_eq!(node.len(), 3);
    assert_eq!(node.trend(), Trend { last_slot: 2, run: 2, top: 0, bottom: 0 });
    assert_eq!(node.max_txn(), 7);
    let mut key = Vec::new();
    node.key(2, &mut key).unwrap();
    assert_eq!(key, [b'k', 2]);
}

#[test]
fn reshape_changes_prefix_and_carries_records() {
    let mut left = new_page(b"aa", Some(b"ab"), 0);
    let mut right = new_page(b"ab", Some(b"b"), 0);
    let mut payload = Vec::new();
    for (page, letter) in [(&mut left, b"aa"), (&mut right, b"ab")] {
        for i in 0..10u8 {
            let prefix = Node(page).prefix().unwrap().len();
            let key = [letter.as_slice(), &[i]].concat();
            let slot = Node(page).search(&key).unwrap().0;
            op::insert_payload(&mut payload, slot, 1);
            op::push_leaf(&mut payload, &key[prefix..], 3, b"v");
            op::apply(op::INSERT, page, &payload).unwrap();
        }
    }
    let source = right.clone();
    op::reshape_payload(
        &mut payload,
        &Reshape {
            keep: 2..10,
            flags: 0,
            right_link: 8,
            low: b"aa\x02",
            high: Some(b"b"),
            before: Records::None,
            after: Records::Of(Node(&source), 0, 5),
            trend: Trend::default(),
        },
    )
    .unwrap();
    op::apply(op::RESHAPE, &mut left, &payload).unwrap();
    let node = Node(&left);
    assert_eq!(node.len(), 13);
    assert_eq!(node.prefix().unwrap(), b"");
    let mut key = Vec::new();
    node.key(8, &mut key).unwrap();
    assert_eq!(key, b"ab\x00");
}

#[test]
fn inner_pages_find_children() {
    let mut page = new_page(b"m", Some(b"n"), 1);
    let mut payload = Vec::new();
    for (i, key) in [b"mb", b"md", b"mf"].iter().enumerate() {
        op::child_payload(&mut payload, i + 1, *key, 2000 + i as u64);
        op::apply(op::INSERT_CHILD, &mut page, &payload).unwrap();
    }
    let find = |key: &[u8]| super::read::child(page.as_slice(), super::read::child_slot(page.as_slice(), key).unwrap()).unwrap();
    assert_eq!([find(b"m"), find(b"ma"), find(b"mb"), find(b"mc"), find(b"mz")], [1000, 1000, 2000, 2000, 2002]);
    let below = |key: Option<&[u8]>| super::read::child_slot_below(page.as_slice(), key).unwrap();
    assert_eq!([below(Some(b"mb")), below(Some(b"mb\0")), below(Some(b"n")), below(None)], [0, 1, 3, 3]);
    assert_eq!(super::read::range_below(page.as_slice(), Some(b"m")).unwrap(), Range::Below);
    assert_eq!(super::read::range_below(page.as_slice(), Some(b"n")).unwrap(), Range::Inside);
    assert_eq!(super::read::range_below(page.as_slice(), Some(b"na")).unwrap(), Range::Above);
}

#[test]
fn damaged_payloads_and_pages_are_refused_not_followed() {
    let mut rng = StdRng::seed_from_u64(11);
    let mut page = new_page(b"a", Some(b"ab"), 0);
    let mut payload = Vec::new();
    for i in 0..40u8 {
        op::insert_payload(&mut payload, i as usize, 1);
        op::push_leaf(&mut payload, &[i, i], 1, &[i; 60]);
        op::apply(op::INSERT, &mut page, &payload).unwrap();
    }
    let mut shape = Vec::new();
    let reshape = Reshape {
        keep: 3..20,
        flags: 0,
        right_link: 4,
        low: b"a",
        high: Some(b"ab"),
        before: Records::None,
        after: Records::None,
        trend: Trend::default(),
    };
    op::reshape_payload(&mut shape, &reshape).unwrap();
    for _ in 0..DAMAGES {
        let mut bytes = if rng.random() { shape.clone() } else { payload.clone() };
        for _ in 0..rng.random_range(0..4) {
            let at = rng.random_range(0..bytes.len());
            bytes[at] = rng.random();
        }
        bytes.truncate(rng.random_range(0..=bytes.len()));
        let mut copy = page.clone();
        if rng.random() {
            for _ in 0..rng.random_range(1..6) {
                let at = if rng.random() { rng.random_range(4..HEADER_SIZE + 320) } else { rng.random_range(0..PAGE_SIZE) };
                copy[at] = rng.random();
            }
        }
        // No panic; whatever is accepted leaves a page that can be looked at.
        let _ = op::apply(rng.random_range(op::FORMAT..=op::SET_FLAGS), &mut copy, &bytes);
        let _ = Node(&copy).verify();
        let _ = Node(&copy).search(b"a\x05\x05");
        for i in 0..Node(&copy).len() {
            let _ = Node(&copy).record(i);
            let _ = Node(&copy).record_size(i);
        }
    }
}
