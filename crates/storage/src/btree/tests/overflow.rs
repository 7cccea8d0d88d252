//! Overflow values over the same simulated disk.

use super::{create, open, options};
use crate::buffer::Writer;
use crate::disk::{SimConfig, SimDisk};
use crate::error::Error;
use crate::overflow::{self, OverflowRef};

#[test]
fn values_of_every_length_come_back() {
    let disk = SimDisk::new(SimConfig::default());
    let store = open(&disk, &options(64, 16 << 20)).unwrap();
    let tree = create(&store).unwrap();
    let before = store.space.pages_of(tree.index());
    let page = 16288;
    for len in [0, 1, 9000, page - 1, page, page + 1, 16 * page, 16 * page + 1, 3_000_000] {
        let value: Vec<u8> = (0..len).map(|i| (i * 31 % 251) as u8).collect();
        let mut runs = Vec::new();
        let reference = overflow::write(&store.pool, &store.space, tree.index(), &value, &mut Writer::System, |run, undo| {
            runs.push(run);
            undo.push(1);
        })
        .unwrap();
        assert_eq!(OverflowRef::decode(&reference.encode()), Some(reference));
        let mut back = vec![9];
        overflow::read(&store.pool, reference, &mut back).unwrap();
        assert!(back[1..] == value, "{len} bytes");
        runs.reverse();
        assert_eq!(overflow::runs(&store.pool, reference).unwrap(), runs);
        let wrong = OverflowRef { length: reference.length + 1, ..reference };
        assert!(overflow::read(&store.pool, wrong, &mut back).is_err());
        for run in runs {
            overflow::free_run(&store.pool, &store.space, run, Writer::System).unwrap();
        }
        assert_eq!(store.space.pages_of(tree.index()), before);
    }
    assert!(overflow::read(&store.pool, OverflowRef { first: tree.root(), length: 5 }, &mut Vec::new()).is_err());
}

/// Others have nearly all frames in use: an answer for who writes, and not the end of the engine.
#[test]
fn a_value_for_which_there_are_no_frames_changes_nothing() {
    let disk = SimDisk::new(SimConfig::default());
    let store = open(&disk, &options(64, 16 << 20)).unwrap();
    let tree = create(&store).unwrap();
    let value = vec![7; 16 * 16288];
    let write = || overflow::write(&store.pool, &store.space, tree.index(), &value, &mut Writer::System, |_, _| {});
    for _ in 0..3 {
        write().unwrap();
    }
    let pages = store.space.pages_of(tree.index());
    let meeting = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let guards: Vec<_> = pages.iter().skip(1).map(|id| store.pool.fix_shared(*id).unwrap()).collect();
            assert_eq!(guards.len(), 48);
            meeting.wait();
            meeting.wait();
        });
        meeting.wait();
        let refused = write();
        meeting.wait();
        assert!(matches!(refused, Err(Error::Unusable(_))));
    });
    assert!(!store.is_stopped());
    assert_eq!(store.space.pages_of(tree.index()), pages);
    write().unwrap();
}

#[test]
fn values_survive_a_restart() {
    let disk = SimDisk::new(SimConfig::default());
    let options = options(64, 16 << 20);
    let value = vec![5; 700_000];
    let reference = {
        let store = open(&disk, &options).unwrap();
        let tree = create(&store).unwrap();
        let reference = overflow::write(&store.pool, &store.space, tree.index(), &value, &mut Writer::System, |_, _| {}).unwrap();
        store.wal.flush().unwrap();
        store.stop();
        reference
    };
    let store = open(&disk.crash(), &options).unwrap();
    let mut back = Vec::new();
    overflow::read(&store.pool, reference, &mut back).unwrap();
    assert!(back == value);
}
