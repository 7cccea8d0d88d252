//! Damage to the log and the control file: everything acknowledged comes back, or the start is refused and nothing is erased.

use super::*;
use crate::buffer::restore_torn_pages;
use crate::disk::PageFiles;
use crate::space::PageRun;

/// How the database was left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Left {
    Crashed,
    /// Crashed, with a checkpoint after the last commit while pages still needed the log.
    CrashedAfterCheckpoint,
    ShutDown,
}

struct Base {
    disk: SimDisk,
    run: Run,
    /// The log from `redo` to `end` is needed, and the last group that was written begins at `last_group`.
    redo: u64,
    last_group: u64,
    end: u64,
    /// States durable before the last group.
    before_last: usize,
}

const SEGMENT: u64 = 64 << 10;

fn name(number: u64) -> String {
    format!("wal.{number:08}")
}

/// Eighty groups of one record each, over three log files.
fn base(left: Left) -> Base {
    let disk = SimDisk::new(SimConfig::default());
    let store = open(&disk, &small_options()).unwrap();
    let mut run = Run::new();
    run.add(&store, 1, 40).unwrap();
    run.flush(&store).unwrap();
    store.clean(100).unwrap();
    store.checkpoint().unwrap();
    let redo = store.control.last().redo_lsn.0;
    let (mut last_group, mut before_last) = (0, 0);
    for n in 0..80 {
        (last_group, before_last) = (store.wal.durable().0, run.durable);
        run.change(&store, 1, 1 + n % 2).unwrap();
        run.flush(&store).unwrap();
    }
    let end = store.wal.end().0;
    match left {
        Left::Crashed => {}
        Left::CrashedAfterCheckpoint => store.checkpoint().unwrap(),
        Left::ShutDown => store.shutdown().unwrap(),
    }
    assert!(left == Left::ShutDown || store.control.last().redo_lsn.0 == redo);
    assert!(redo < SEGMENT && end / SEGMENT >= 1 && last_group < end);
    drop(store);
    Base { disk, run, redo, last_group, end, before_last }
}

/// Opens and reads everything: the refusal's text, or `None` if one of the states from `run.durable` on is there.
fn outcome(disk: &SimDisk, run: &Run, options: &Options) -> Option<String> {
    match open(disk, options) {
        Ok(store) => {
            run.verify(&store);
            None
        }
        Err(e @ Error::Corrupt { .. }) => Some(e.to_string()),
        Err(e) => panic!("{e}"),
    }
}

fn log_files(disk: &SimDisk) -> Vec<(String, Vec<u8>)> {
    let names = disk.list().unwrap().into_iter().filter(|n| n.starts_with("wal."));
    let read = |name: String| {
        let file = disk.open(&name, false).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_at(0, &mut bytes).unwrap();
        (name, bytes)
    };
    names.map(read).collect()
}

/// The first log position that a refusal names.
fn position(said: &str) -> u64 {
    let from = said.find("log position ").unwrap_or_else(|| panic!("no position: {said}")) + "log position ".len();
    said[from..].split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
}

#[test]
fn a_flipped_bit_in_the_acknowledged_log_is_refused() {
    for left in [Left::Crashed, Left::CrashedAfterCheckpoint] {
        let mut base = base(left);
        for at in (base.redo..base.end).step_by(211).chain(base.end - 3..base.end) {
            let disk = base.disk.crash();
            disk.flip_bit(&name(at / SEGMENT), at % SEGMENT, (at % 8) as u8);
            let files = log_files(&disk);
            // The last group alone cannot be told from a torn write, unless a checkpoint has seen its end.
            let known = at < base.last_group || left == Left::CrashedAfterCheckpoint;
            base.run.durable = if known { base.run.states.len() } else { base.before_last };
            match outcome(&disk, &base.run, &small_options()) {
                Some(said) => {
                    assert!(known, "a torn write is no damage: {said}");
                    let found = position(&said);
                    assert!(found <= at && at - found < 4000, "byte {at} was damaged: {said}");
                    assert!(said.contains(&name(found / SEGMENT)), "{said}");
                    assert!(files == log_files(&disk), "nothing is erased");
                    // Whoever brings the bit back has lost nothing.
                    if at % 16 == 0 {
                        disk.flip_bit(&name(at / SEGMENT), at % SEGMENT, (at % 8) as u8);
                        assert_eq!(outcome(&disk, &base.run, &small_options()), None);
                    }
                }
                None => assert!(!known, "{left:?}: a flip at {at} went unnoticed"),
            }
        }
    }
}

#[test]
fn after_a_clean_shutdown_no_flip_in_the_log_matters() {
    let base = base(Left::ShutDown);
    for at in (64..base.end + 5000).step_by(977) {
        let disk = base.disk.crash();
        disk.flip_bit(&name(at / SEGMENT), at % SEGMENT, (at % 8) as u8);
        assert_eq!(outcome(&disk, &base.run, &small_options()), None);
    }
}

#[test]
fn a_log_file_that_is_gone_or_cut_off_is_noticed() {
    for left in [Left::Crashed, Left::CrashedAfterCheckpoint, Left::ShutDown] {
        let base = base(left);
        let redo = if left == Left::ShutDown { base.end } else { base.redo };
        for (file, bytes) in log_files(&base.disk) {
            let number: u64 = file["wal.".len()..].parse().unwrap();
            let last = log_files(&base.disk).last().unwrap().0 == file;
            for cut in [None, Some(0), Some(1), Some(SEGMENT / 2), Some(bytes.len() as u64 - 1)] {
                let disk = base.disk.crash();
                match cut {
                    Some(len) => {
                        let file = disk.open(&file, false).unwrap();
                        file.truncate(len).unwrap();
                        file.sync().unwrap();
                    }
                    None => {
                        disk.remove(&file).unwrap();
                        disk.sync_dir().unwrap();
                    }
                }
                let said = outcome(&disk, &base.run, &small_options());
                if (redo / SEGMENT..=base.end / SEGMENT).contains(&number) {
                    assert!(!last, "the next file has been made");
                    assert!(said.unwrap_or_else(|| panic!("{file} cut to {cut:?} went unnoticed")).contains(&file));
                } else if last || number < redo / SEGMENT {
                    assert_eq!(said, None, "{file} holds nothing that is needed");
                }
            }
        }
        // All that is needed, and what was prepared.
        let disk = base.disk.crash();
        for (file, _) in log_files(&disk) {
            disk.remove(&file).unwrap();
        }
        disk.sync_dir().unwrap();
        assert!(outcome(&disk, &base.run, &small_options()).is_some_and(|said| said.contains("is missing")));
    }
}

/// The last group is gone without a trace in the log, but a page of it was written.
#[test]
fn a_page_newer_than_the_log_is_refused() {
    for doublewrite in [true, false] {
        let options = Options { doublewrite, ..small_options() };
        let disk = SimDisk::new(SimConfig::default());
        let store = open(&disk, &options).unwrap();
        let mut run = Run::new();
        run.add(&store, 1, 10).unwrap();
        run.flush(&store).unwrap();
        store.clean(100).unwrap();
        store.checkpoint().unwrap();
        run.change(&store, 1, 1).unwrap();
        run.flush(&store).unwrap();
        let last_group = store.wal.end().0;
        run.change(&store, 1, 3).unwrap();
        run.flush(&store).unwrap();
        let zeros = vec![0; (store.wal.end().0 - last_group) as usize];
        store.clean(100).unwrap();
        drop(store);
        assert_eq!(outcome(&disk.crash(), &run, &options), None);
        let file = disk.open(&name(0), false).unwrap();
        file.write_at(last_group, &zeros).unwrap();
        file.sync().unwrap();
        let files = log_files(&disk);
        let said = outcome(&disk, &run, &options).expect("the pages are newer");
        assert!(said.contains(if doublewrite { "doublewrite" } else { "page " }), "{said}");
        assert!(files == log_files(&disk), "nothing is erased");
    }
}

#[test]
fn either_slot_of_the_control_file_may_be_lost() {
    let disk = SimDisk::new(SimConfig::default());
    let options = small_options();
    let store = open(&disk, &options).unwrap();
    let mut run = Run::new();
    run.add(&store, 1, 40).unwrap();
    run.flush(&store).unwrap();
    let new = disk.crash();
    while store.wal.end().0 < 3 * options.redo_log_capacity {
        run.change(&store, 1, 1).unwrap();
        run.states.truncate(1);
        run.committed();
    }
    run.flush(&store).unwrap();
    store.shutdown().unwrap();
    drop(store);
    for slot in [0, 4096] {
        for byte in 0..68 {
            // Just made, the other slot says the same.
            let disk = new.crash();
            disk.flip_bit("control", slot + byte, (byte % 8) as u8);
            let store = open(&disk, &options).unwrap();
            assert_eq!(store.space.pages_of(IndexId(1)).len(), 40);
        }
        // Later, the older slot asks for log that may have been let go.
        let damaged = disk.crash();
        damaged.flip_bit("control", slot + 30, 1);
        outcome(&damaged, &run, &options);
    }
    disk.flip_bit("control", 30, 1);
    disk.flip_bit("control", 4096 + 30, 1);
    assert!(outcome(&disk, &run, &options).is_some_and(|said| said.contains("control")));
}

/// A page was written through the doublewrite file, then made anew and written past it. Its copy must not come back.
#[test]
fn a_copy_does_not_outlive_a_newer_page() {
    let disk = SimDisk::new(SimConfig::default());
    let store = open(&disk, &small_options()).unwrap();
    let mut run = Run::new();
    run.add(&store, 1, 3).unwrap();
    store.clean(100).unwrap();
    run.change(&store, 1, 1).unwrap();
    store.clean(100).unwrap();
    let id = PageId(*run.model[&1].keys().next().unwrap());
    let mut scope = store.pool.scope(Writer::System).unwrap();
    let mut page = store.pool.fix_new(id).unwrap();
    scope.apply(&mut page, redo::INIT, &redo::init_payload(PageType::Overflow, 0, 0, IndexId(1))).unwrap();
    scope.apply(&mut page, redo::BYTES, &mark_payload(MARKS[0], 77)).unwrap();
    scope.commit().unwrap();
    drop(page);
    store.pool.write_out(&[PageRun { first: id, pages: 1 }]).unwrap();
    drop(store);
    disk.flip_bit("pages.000", id.0 * header::PAGE_SIZE as u64 + 5000, 1);
    let files = PageFiles::new(Arc::new(disk.clone()));
    assert_eq!(restore_torn_pages(&disk, &files).unwrap().pages, 1);
    let mut bytes = vec![0; header::PAGE_SIZE];
    files.read(id, &mut bytes).unwrap();
    assert_eq!(header::get_u64(&bytes, MARKS[0]), 77);
    // Without doublewrite no copy would be renewed.
    open(&disk, &Options { doublewrite: false, ..small_options() }).unwrap();
    assert!(!disk.exists("doublewrite").unwrap());
}
