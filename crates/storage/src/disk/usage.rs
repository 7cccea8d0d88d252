//! What is read and written of each file, and how long that takes: for whoever looks after the server.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::counters::StripedCounts;
use crate::sync::{Arc, AtomicU64, Mutex, Ordering};

/// Calls of one kind. Times in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoSum {
    pub calls: u64,
    pub bytes: u64,
    pub nanos: u64,
    /// Of the shortest and the longest; 0 without any.
    pub nanos_min: u64,
    pub nanos_max: u64,
}

impl IoSum {
    /// Both together.
    #[must_use]
    pub fn with(self, other: IoSum) -> IoSum {
        let nanos_min = match (self.calls, other.calls) {
            (_, 0) => self.nanos_min,
            (0, _) => other.nanos_min,
            _ => self.nanos_min.min(other.nanos_min),
        };
        IoSum {
            calls: self.calls + other.calls,
            bytes: self.bytes + other.bytes,
            nanos: self.nanos + other.nanos,
            nanos_min,
            nanos_max: self.nanos_max.max(other.nanos_max),
        }
    }
}

/// What was done with a file since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileUsage {
    pub name: String,
    /// Handles that are open, now.
    pub open: u64,
    pub reads: IoSum,
    pub writes: IoSum,
    pub syncs: IoSum,
}

/// The files of a directory, and those that are gone: these together by their names before the first point.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskUsage {
    pub files: Vec<FileUsage>,
    pub gone: Vec<FileUsage>,
}

#[derive(Clone, Copy)]
pub(super) enum Io {
    Read,
    Write,
    Sync,
}

const KINDS: usize = 3;

/// The counters of a file.
pub(super) struct FileCounts {
    /// Calls, bytes and nanoseconds by [`Io`].
    sums: StripedCounts<{ 3 * KINDS }>,
    shortest: [AtomicU64; KINDS],
    longest: [AtomicU64; KINDS],
    open: AtomicU64,
}

impl Default for FileCounts {
    fn default() -> FileCounts {
        FileCounts {
            sums: StripedCounts::default(),
            shortest: std::array::from_fn(|_| AtomicU64::new(u64::MAX)),
            longest: std::array::from_fn(|_| AtomicU64::new(0)),
            open: AtomicU64::new(0),
        }
    }
}

impl FileCounts {
    /// A call that has begun then has ended, with so many bytes.
    pub fn note(&self, io: Io, bytes: usize, began: Instant) {
        let nanos = u64::try_from(began.elapsed().min(Duration::from_secs(1 << 30)).as_nanos()).unwrap_or(u64::MAX);
        let at = io as usize;
        self.sums.add(3 * at, 1);
        self.sums.add(3 * at + 1, bytes as u64);
        self.sums.add(3 * at + 2, nanos);
        // Records are rare: as a rule nothing is written here.
        if nanos < self.shortest[at].load(Ordering::Relaxed) {
            self.shortest[at].fetch_min(nanos, Ordering::Relaxed);
        }
        if nanos > self.longest[at].load(Ordering::Relaxed) {
            self.longest[at].fetch_max(nanos, Ordering::Relaxed);
        }
    }

    pub fn opened(&self) {
        self.open.fetch_add(1, Ordering::Relaxed);
    }

    pub fn closed(&self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    fn usage(&self, name: &str) -> FileUsage {
        let sums = self.sums.get().unwrap_or_default();
        let sum = |io: Io| {
            let at = io as usize;
            let calls = sums[3 * at];
            let nanos_min = if calls == 0 { 0 } else { self.shortest[at].load(Ordering::Relaxed) };
            IoSum { calls, bytes: sums[3 * at + 1], nanos: sums[3 * at + 2], nanos_min, nanos_max: self.longest[at].load(Ordering::Relaxed) }
        };
        FileUsage { name: name.to_owned(), open: self.open.load(Ordering::Relaxed), reads: sum(Io::Read), writes: sum(Io::Write), syncs: sum(Io::Sync) }
    }

    fn clear(&self) {
        self.sums.clear();
        for at in 0..KINDS {
            self.shortest[at].store(u64::MAX, Ordering::Relaxed);
            self.longest[at].store(0, Ordering::Relaxed);
        }
    }
}

/// The counters of a directory's files by name.
pub(super) struct Usages(Mutex<Known>);

#[derive(Default)]
struct Known {
    files: BTreeMap<String, Arc<FileCounts>>,
    gone: BTreeMap<String, FileUsage>,
}

impl Known {
    fn forget(&mut self, name: &str) {
        let Some(counts) = self.files.remove(name) else { return };
        let kind = name.split('.').next().unwrap_or(name);
        let (usage, sum) = (counts.usage(kind), self.gone.entry(kind.to_owned()).or_default());
        *sum = FileUsage {
            name: usage.name,
            open: 0,
            reads: sum.reads.with(usage.reads),
            writes: sum.writes.with(usage.writes),
            syncs: sum.syncs.with(usage.syncs),
        };
    }
}

impl Usages {
    pub fn new() -> Usages {
        Usages(Mutex::new(Known::default()))
    }

    pub fn of(&self, name: &str) -> Arc<FileCounts> {
        self.0.lock().files.entry(name.to_owned()).or_default().clone()
    }

    pub fn rename(&self, from: &str, to: &str) {
        let mut known = self.0.lock();
        known.forget(to);
        if let Some(counts) = known.files.remove(from) {
            known.files.insert(to.to_owned(), counts);
        }
    }

    pub fn remove(&self, name: &str) {
        self.0.lock().forget(name);
    }

    pub fn all(&self) -> DiskUsage {
        let known = self.0.lock();
        DiskUsage { files: known.files.iter().map(|(name, counts)| counts.usage(name)).collect(), gone: known.gone.values().cloned().collect() }
    }

    pub fn clear(&self) {
        let mut known = self.0.lock();
        known.files.values().for_each(|counts| counts.clear());
        known.gone.clear();
    }
}

#[cfg(test)]
mod tests {
    use crate::disk::{Disk, FileDisk};

    #[test]
    fn files_are_told_by_name_until_they_go() {
        let dir = tempfile::tempdir().unwrap();
        let disk = FileDisk::open(dir.path()).unwrap();
        let file = disk.open("wal.1", true).unwrap();
        file.write_at(0, &[1; 300]).unwrap();
        file.write_at(300, &[2; 200]).unwrap();
        file.sync().unwrap();
        let again = disk.open("wal.1", false).unwrap();
        assert_eq!(again.read_at(400, &mut [0; 1000]).unwrap(), 100);
        let usage = disk.usage();
        let told = &usage.files[0];
        assert_eq!((usage.files.len(), &*told.name, told.open), (1, "wal.1", 2));
        assert_eq!((told.reads.calls, told.reads.bytes, told.writes.calls, told.writes.bytes, told.syncs.calls), (1, 100, 2, 500, 1));
        assert!(told.writes.nanos >= told.writes.nanos_min + told.writes.nanos_max && told.writes.nanos_min > 0, "of two calls: {told:?}");
        drop(again);

        disk.rename("wal.1", "wal.2").unwrap();
        file.write_at(0, &[1; 10]).unwrap();
        let other = disk.open("wal.3", true).unwrap();
        other.write_at(0, &[1; 7]).unwrap();
        let usage = disk.usage();
        let names: Vec<(&str, u64, u64)> = usage.files.iter().map(|file| (&*file.name, file.open, file.writes.bytes)).collect();
        assert_eq!((names, usage.gone.len()), (vec![("wal.2", 1, 510), ("wal.3", 1, 7)], 0));
        drop((file, other));
        disk.remove("wal.2").unwrap();
        disk.remove("wal.3").unwrap();
        let usage = disk.usage();
        assert_eq!((usage.files.len(), usage.gone.len()), (0, 1));
        let gone = &usage.gone[0];
        assert_eq!((&*gone.name, gone.writes.calls, gone.writes.bytes, gone.reads.calls, gone.open), ("wal", 4, 517, 1, 0));
        disk.clear_usage();
        assert_eq!(disk.usage(), super::DiskUsage::default());
    }
}
