//! What statements cost, summed over those that differ in their values only: `performance_schema.events_statements_summary_by_digest`.
//!
//! A statement that is prepared, or comes again word for word, keeps its [`Digest`] with it; any other is looked up by its digest text. One
//! mutex guards the sums of a digest until two sessions meet at it; from then on they have several copies of the sums, added up when read.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use ahash::AHashMap;
use highkey_table::{CommitSyncs, TimeSplit, WaitKind};
use highkey_types::Str;
use parking_lot::{Mutex, RwLock};
use sha2::{Digest as _, Sha256};

use super::history::KindSums;
use super::work::Work;
use crate::df::SerialReason;

/// Bytes of a sample that are kept (`performance_schema_max_sql_text_length`).
const SAMPLE_BYTES: usize = 1024;
/// A sample is replaced by the next statement once it is this old (`performance_schema_max_digest_sample_age`).
const SAMPLE_MICROS: i64 = 60_000_000;
const COPIES: usize = 4;

/// A statement that has a word of these in its text, be it in a string, may have a password beside it. In lower case.
const SECRET: [&str; 2] = ["password", "identified"];

/// One execution of a statement. Times in nanoseconds.
pub struct Execution<'a> {
    pub session: u64,
    pub time: &'a TimeSplit,
    pub failed: bool,
    pub warnings: u64,
    pub rows_affected: u64,
    pub rows_sent: u64,
    pub rows_examined: u64,
    /// A query of it ran on several threads.
    pub parallel: bool,
    /// By [`SerialReason`]: one stayed on one thread for it.
    pub serial: [bool; SerialReason::ALL.len()],
    pub work: Work,
    /// When it ended, microseconds since 1970.
    pub ended_micros: i64,
    pub text: &'a str,
}

/// Executions summed up. Times in nanoseconds, moments in microseconds since 1970.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    /// What statements of one kind are summed up by too.
    pub all: KindSums,
    /// Executions of which a query ran on several threads.
    pub parallel: u64,
    /// By [`SerialReason`]: executions of which one stayed on one thread for it.
    pub serial: [u64; SerialReason::ALL.len()],
    pub cpu: u64,
    /// Of the binary log's events.
    pub binlog_bytes: u64,
    pub syncs: CommitSyncs,
    /// By [`WaitKind`].
    pub waits: [u64; WaitKind::ALL.len()],
    pub first_seen: i64,
    pub last_seen: i64,
    /// The slowest of the last minute or so: its text unless it may hold a password, when it ended, how long it was.
    pub sample: (Option<Str>, i64, u64),
    histogram: Histogram,
}

impl Sums {
    /// Of one execution, but for its sample and its place in the histogram.
    fn of(execution: &Execution<'_>) -> Sums {
        let time = execution.time;
        Sums {
            all: KindSums::of_execution(execution),
            parallel: u64::from(execution.parallel),
            serial: execution.serial.map(u64::from),
            cpu: time.cpu,
            binlog_bytes: time.binlog_bytes,
            syncs: time.syncs,
            waits: time.waits.map(|wait| wait.nanos),
            first_seen: execution.ended_micros - (time.elapsed / 1000) as i64,
            last_seen: execution.ended_micros,
            ..Sums::default()
        }
    }

    fn add(&mut self, execution: &Execution<'_>) {
        let (elapsed, ended) = (execution.time.elapsed, execution.ended_micros);
        self.add_sums(&Sums::of(execution));
        self.histogram.add(elapsed);
        if elapsed > self.sample.2 || ended - self.sample.1 > SAMPLE_MICROS {
            self.sample = (sample(execution.text), ended, elapsed);
        }
    }

    fn merge(&mut self, other: &Sums) {
        if other.all.count == 0 {
            return;
        }
        self.add_sums(other);
        if other.sample.2 > self.sample.2 {
            self.sample = other.sample.clone();
        }
        self.histogram.merge(&other.histogram);
    }

    /// All but the sample and the histogram.
    fn add_sums(&mut self, other: &Sums) {
        let first = self.all.count == 0;
        self.all.add(&other.all);
        self.parallel += other.parallel;
        for (sum, serial) in self.serial.iter_mut().zip(&other.serial) {
            *sum += serial;
        }
        self.cpu += other.cpu;
        self.binlog_bytes += other.binlog_bytes;
        self.syncs.add(other.syncs);
        for (sum, wait) in self.waits.iter_mut().zip(&other.waits) {
            *sum += wait;
        }
        self.first_seen = if first { other.first_seen } else { self.first_seen.min(other.first_seen) };
        self.last_seen = self.last_seen.max(other.last_seen);
    }

    /// A time that this part of the executions did not exceed, up to an eighth too long.
    pub fn quantile(&self, part: f64) -> u64 {
        self.histogram.quantile(part).min(self.all.wait_max)
    }
}

/// The beginning of a statement's text; none if it may hold a password. The word comes before the password, so what is cut off is not asked.
fn sample(text: &str) -> Option<Str> {
    let text = &text[..text.floor_char_boundary(SAMPLE_BYTES)];
    (!may_hold_secret(text)).then(|| Str::from(text))
}

/// A text with a word of those that stand beside passwords.
pub(super) fn may_hold_secret(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    SECRET.iter().any(|word| memchr::memmem::find(lower.as_bytes(), word.as_bytes()).is_some())
}

/// Counts by the time they took: eight classes between a power of two and the next.
#[derive(Clone, Debug)]
struct Histogram(Box<[u32; CLASSES]>);

const CLASSES: usize = 264;

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram(Box::new([0; CLASSES]))
    }
}

/// The class of a time. Below eight units of 1024 ns there is one for each.
fn class(nanos: u64) -> usize {
    let n = nanos >> 10;
    if n < 8 {
        return n as usize;
    }
    let power = n.ilog2();
    (((power - 2) * 8) as usize + ((n >> (power - 3)) & 7) as usize).min(CLASSES - 1)
}

/// The first time that is beyond a class, in nanoseconds.
fn class_end(class: usize) -> u64 {
    let next = class as u64 + 1;
    if next < 16 { next << 10 } else { (8 + next % 8) << (next / 8 - 1) << 10 }
}

impl Histogram {
    fn add(&mut self, nanos: u64) {
        let count = &mut self.0[class(nanos)];
        *count = count.saturating_add(1);
    }

    fn merge(&mut self, other: &Histogram) {
        for (count, more) in self.0.iter_mut().zip(other.0.iter()) {
            *count = count.saturating_add(*more);
        }
    }

    fn quantile(&self, part: f64) -> u64 {
        let all: u64 = self.0.iter().map(|n| u64::from(*n)).sum();
        let wanted = (all as f64 * part).ceil() as u64;
        let mut seen = 0;
        for (class, count) in self.0.iter().enumerate() {
            seen += u64::from(*count);
            if seen >= wanted {
                return class_end(class);
            }
        }
        0
    }
}

/// The statements of one database that are one without their values.
pub struct Digest {
    /// The current database when they ran.
    pub schema: Option<Str>,
    /// `None`: those that found the table full.
    pub text: Option<Box<str>>,
    /// SHA-256 of the text, in hexadecimal.
    pub hash: Option<String>,
    /// Table contents that it is part of: see `Digests::era`.
    era: u64,
    met: AtomicBool,
    sums: [OnceLock<Mutex<Sums>>; COPIES],
}

impl Digest {
    fn new(schema: Option<Str>, text: Option<Box<str>>, era: u64) -> Digest {
        let hash = text.as_deref().map(hash);
        Digest { schema, text, hash, era, met: AtomicBool::new(false), sums: Default::default() }
    }

    fn add(&self, execution: &Execution<'_>) {
        if !self.met.load(Ordering::Relaxed) {
            if let Some(mut sums) = self.sums[0].get_or_init(Mutex::default).try_lock() {
                sums.add(execution);
                return;
            }
            self.met.store(true, Ordering::Relaxed);
        }
        self.sums[execution.session as usize % COPIES].get_or_init(Mutex::default).lock().add(execution);
    }

    pub fn sums(&self) -> Sums {
        let mut all = Sums::default();
        for sums in self.sums.iter().filter_map(OnceLock::get) {
            all.merge(&sums.lock());
        }
        all
    }
}

/// The digest of a digest text.
pub fn hash(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Where a statement that runs again keeps its digest.
#[derive(Default)]
pub struct KeptDigest(Mutex<Option<Arc<Digest>>>);

/// All digests of an instance.
pub struct Digests {
    /// `performance_schema_digests_size`: rows, that of the statements that found the table full among them; 0 turns it off.
    size: usize,
    /// Grows when the table is emptied.
    era: AtomicU64,
    table: RwLock<Table>,
    lost: AtomicU64,
}

#[derive(Default)]
struct Table {
    /// By schema, then by digest text.
    by_schema: AHashMap<Option<Str>, AHashMap<Box<str>, Arc<Digest>>>,
    count: usize,
    rest: Option<Arc<Digest>>,
}

impl Table {
    fn get(&self, schema: &Option<Str>, text: &str) -> Option<&Arc<Digest>> {
        self.by_schema.get(schema)?.get(text)
    }
}

impl Digests {
    pub fn new(size: u64) -> Digests {
        Digests { size: size as usize, era: AtomicU64::new(0), table: RwLock::default(), lost: AtomicU64::new(0) }
    }

    pub fn is_off(&self) -> bool {
        self.size == 0
    }

    /// Statements that found the table full.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// An execution of a statement with this digest text.
    pub fn add(&self, schema: &Option<Str>, text: &str, execution: &Execution<'_>) {
        {
            let table = self.table.read();
            let rest = || table.rest.as_ref().filter(|_| table.count + 1 >= self.size);
            if let Some(digest) = table.get(schema, text).or_else(rest) {
                self.add_to(digest, execution);
                return;
            }
        }
        self.add_to(&self.find(schema, text), execution);
    }

    fn add_to(&self, digest: &Digest, execution: &Execution<'_>) {
        if digest.text.is_none() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        digest.add(execution);
    }

    /// As `add`, of a statement that keeps its digest.
    pub fn add_kept(&self, kept: &KeptDigest, schema: &Option<Str>, text: &str, execution: &Execution<'_>) {
        let mut kept = kept.0.lock();
        let current = kept.as_ref().is_some_and(|d| d.era == self.era.load(Ordering::Relaxed) && (d.text.is_none() || d.schema == *schema));
        if !current {
            *kept = Some(self.find(schema, text));
        }
        if let Some(digest) = &*kept {
            self.add_to(digest, execution);
        }
    }

    /// The digest, made if there is room for it.
    fn find(&self, schema: &Option<Str>, text: &str) -> Arc<Digest> {
        let mut table = self.table.write();
        if let Some(digest) = table.get(schema, text) {
            return digest.clone();
        }
        let era = self.era.load(Ordering::Relaxed);
        if table.count + 1 >= self.size {
            return table.rest.get_or_insert_with(|| Arc::new(Digest::new(None, None, era))).clone();
        }
        table.count += 1;
        let digest = Arc::new(Digest::new(schema.clone(), Some(text.into()), era));
        table.by_schema.entry(schema.clone()).or_default().insert(text.into(), digest.clone());
        digest
    }

    /// TRUNCATE TABLE.
    pub fn clear(&self) {
        let mut table = self.table.write();
        self.era.fetch_add(1, Ordering::Relaxed);
        *table = Table::default();
    }

    /// Those of statements that found the table full come first, as in MySQL.
    pub fn all(&self) -> Vec<Arc<Digest>> {
        let table = self.table.read();
        table.rest.iter().chain(table.by_schema.values().flat_map(|by_text| by_text.values())).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use highkey_table::WaitSum;

    fn run(digests: &Digests, session: u64, text: &str, micros: u64) {
        let mut time = TimeSplit { elapsed: micros * 1000, cpu: micros * 400, ..TimeSplit::default() };
        time.waits[WaitKind::Log as usize] = WaitSum { count: 1, nanos: micros * 600 };
        let execution = Execution {
            session,
            time: &time,
            failed: micros == 7,
            warnings: 2,
            rows_affected: 1,
            rows_sent: 3,
            rows_examined: 5,
            parallel: micros > 90,
            serial: SerialReason::ALL.map(|reason| reason == SerialReason::Cost),
            work: Work { select_scan: 1, sort_rows: 3, no_index_used: 1, ..Work::default() },
            ended_micros: 1_000_000 + micros as i64,
            text: &format!("{text} {micros}"),
        };
        digests.add(&Some("d".into()), text, &execution);
    }

    #[test]
    fn classes_meet_and_are_narrow() {
        let mut last = 0;
        for class_of in 0..CLASSES {
            let end = class_end(class_of);
            assert!(end > last && class(last) == class_of && class(end - 1) == class_of, "{class_of}: {last} to {end}");
            assert!(end - last <= (last / 8).max(1024));
            last = end;
        }
        assert_eq!(class(u64::MAX), CLASSES - 1);
    }

    #[test]
    fn executions_are_summed() {
        let digests = Digests::new(10);
        for micros in 1..=100 {
            run(&digests, micros, "a", micros);
        }
        let all = digests.all();
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].hash.as_deref(), Some("ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"), "SHA-256 of 'a'");
        let sums = all[0].sums();
        let all = sums.all;
        assert_eq!((all.count, all.errors, all.warnings, all.rows_affected, all.rows_sent, all.rows_examined), (100, 1, 200, 100, 300, 500));
        assert_eq!((sums.parallel, sums.serial), (10, SerialReason::ALL.map(|reason| if reason == SerialReason::Cost { 100 } else { 0 })));
        assert_eq!(all.work, Work { select_scan: 100, sort_rows: 300, no_index_used: 100, ..Work::default() }.columns());
        assert_eq!((all.wait, all.wait_min, all.wait_max), (5_050_000, 1000, 100_000));
        assert_eq!((sums.cpu, sums.waits[WaitKind::Log as usize]), (2_020_000, 3_030_000));
        assert_eq!((sums.first_seen, sums.last_seen), (1_000_000, 1_000_100));
        assert_eq!((sums.sample.0.as_deref(), sums.sample.2), (Some("a 100"), 100_000));
        let median = sums.quantile(0.5);
        assert!((50_000..=56_250).contains(&median), "{median}");
        assert_eq!(sums.quantile(0.999), 100_000);
    }

    #[test]
    fn sessions_that_meet_lose_nothing() {
        let digests = Digests::new(10);
        std::thread::scope(|s| {
            for session in 0..8 {
                let digests = &digests;
                s.spawn(move || (0..1000).for_each(|_| run(digests, session, "a", 10)));
            }
        });
        let sums = digests.all()[0].sums();
        assert_eq!((sums.all.count, sums.all.wait, sums.all.rows_sent), (8000, 80_000_000, 24_000));
        assert_eq!(sums.quantile(0.95), 10_000);
    }

    #[test]
    fn a_full_table_has_one_row_for_the_rest() {
        let digests = Digests::new(3);
        for text in ["a", "b", "c", "d", "a"] {
            run(&digests, 1, text, 10);
        }
        let counts = |digests: &Digests| {
            let mut counts: Vec<_> = digests.all().iter().map(|d| (d.text.as_deref().map(str::to_owned), d.sums().all.count)).collect();
            counts.sort();
            counts
        };
        assert_eq!(counts(&digests), [(None, 2), (Some("a".to_owned()), 2), (Some("b".to_owned()), 1)]);
        assert_eq!(digests.lost(), 2);
        digests.clear();
        run(&digests, 1, "c", 10);
        assert_eq!(counts(&digests), [(Some("c".to_owned()), 1)]);
    }

    #[test]
    fn passwords_are_not_kept() {
        for text in [
            "SET PASSWORD = 'x'",
            "set `Password`='x'",
            "PREPARE s FROM 'ALTER USER u IDENTIFIED BY ''x'''",
            "SET @s = \"alter user u identified by 'x'\"",
            "SELEC 1, 'set password = x'",
        ] {
            assert_eq!(sample(text), None, "{text}");
        }
        assert_eq!(sample("SELECT 'pass word'").as_deref(), Some("SELECT 'pass word'"));
        assert_eq!(sample(&"é".repeat(1000)).map(|text| text.len()), Some(1024));
    }
}
