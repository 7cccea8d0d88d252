//! Versions on their way to disk: what is in the maps is frozen, written to a run, and read from there; runs become one when they are many, and go
//! when nobody needs any of their versions.

use std::ops::{ControlFlow, Range};
use std::sync::OnceLock;

use super::needs::{Everything, Needs};
use super::version_run::{Merge, Run, RunWriter, Sieve};
use super::versions::{Chain, Chains, Entry, SHARDS, ShardSet, Version, VersionStore, row_memory};
use crate::error::Result;
use crate::ids::TxnId;
use crate::sync::{Arc, AtomicU64, Ordering};

/// Bytes that are taken out of the maps at once, about: who waits for room waits for no more than these to be written.
const SLICE: usize = if cfg!(test) { 64 << 10 } else { 64 << 20 };
/// So many runs of about the same size become one.
const MERGED: usize = 8;
/// Runs of one size: the largest has at most so many times the bytes of the smallest.
const SAME_SIZE: u64 = 4;
/// Past so many, those that are smallest together become one whatever their sizes.
const RUNS_MAX: usize = 64;

/// What is below the maps. Nothing of it changes, but that it goes as a whole.
#[derive(Clone)]
pub(crate) enum Level {
    /// Taken out of the maps, to be written.
    Frozen(Arc<Frozen>),
    Run(Arc<Run>),
}

impl Level {
    pub fn len(&self) -> u64 {
        match self {
            Level::Frozen(frozen) => frozen.len.load(Ordering::Relaxed),
            Level::Run(run) => run.len(),
        }
    }

    /// Bytes of memory by which what is on disk is found.
    pub fn index_memory(&self) -> usize {
        match self {
            Level::Frozen(_) => 0,
            Level::Run(run) => run.memory(),
        }
    }

    fn is_frozen(&self, frozen: &Arc<Frozen>) -> bool {
        matches!(self, Level::Frozen(f) if Arc::ptr_eq(f, frozen))
    }

    fn is_run(&self, run: &Arc<Run>) -> bool {
        matches!(self, Level::Run(r) if Arc::ptr_eq(r, run))
    }
}

/// The chains of some maps: of each shard another moment's.
pub(crate) struct Frozen {
    shards: Vec<OnceLock<Chains>>,
    len: AtomicU64,
    /// Who had committed at this timestamp had done so before they were taken: nothing that it replaced was taken back since (V6).
    settled: u64,
}

impl Frozen {
    /// Shows `f` the versions of a row, newest first, until it breaks off.
    pub fn visit(&self, shard: usize, row: &[u8], f: &mut impl FnMut(Entry) -> ControlFlow<()>) -> ControlFlow<()> {
        let chain = self.shards[shard].get().and_then(|chains| chains.get(row));
        chain.into_iter().flatten().try_for_each(|version| f(version.entry()))
    }

    fn chains(&self) -> impl Iterator<Item = (&[u8], &Chain)> {
        self.shards.iter().filter_map(OnceLock::get).flatten().map(|(row, chain)| (&**row, chain))
    }

    fn memory(&self) -> usize {
        self.chains().map(|(row, chain)| memory_of(row, chain)).sum()
    }

    fn shards(&self) -> ShardSet {
        (0..SHARDS).filter(|shard| self.shards[*shard].get().is_some_and(|chains| !chains.is_empty())).fold(0, |set, shard| set | 1 << shard)
    }
}

fn memory_of(row: &[u8], chain: &Chain) -> usize {
    row_memory(row) + chain.iter().map(Version::memory).sum::<usize>()
}

/// The merge under way.
#[derive(Default)]
pub(crate) struct Merging {
    merge: Option<Merge>,
    /// None is begun while there are so many levels: one has failed.
    failed_at: usize,
}

/// Where among the levels something goes.
enum Place {
    Newest,
    Oldest,
}

impl VersionStore {
    /// Whoever is to add to it spills first.
    pub fn is_full(&self) -> bool {
        self.in_maps_and_frozen() > self.budget
    }

    pub fn has_to_spill(&self) -> bool {
        // The other half is for what comes while the first is written.
        self.memory.load(Ordering::Relaxed) > self.budget / 2 || self.frozen.load(Ordering::Relaxed) > 0
    }

    /// Whether anything is below the maps.
    pub fn has_levels(&self) -> bool {
        self.has_levels.load(Ordering::Relaxed)
    }

    /// Moves a slice of what is in the maps to disk if that has half of the budget, leaving out what nobody needs.
    /// On an error it stays in memory until the next call. Waits for whoever else does it.
    pub fn spill(&self, needs: &impl Needs) -> Result<()> {
        let mut next = self.spilling.lock();
        // What could not be written. The oldest first: they may be many only after a crash.
        let left: Vec<_> = self.levels().iter().rev().filter_map(|level| if let Level::Frozen(frozen) = level { Some(frozen.clone()) } else { None }).collect();
        for frozen in left {
            self.write(&frozen, needs)?;
        }
        if self.memory.load(Ordering::Relaxed) > self.budget / 2 {
            let frozen = self.freeze(Place::Newest, &mut next, SLICE, needs.taken_at());
            self.write(&frozen, needs)?;
        }
        Ok(())
    }

    /// At open, after `push_oldest`: as `spill`, below all that was spilled before. `all`: once the last version is pushed, whatever there is if
    /// anything was spilled, so that the maps are above the rest from there on.
    pub fn spill_oldest(&self, all: bool) -> Result<()> {
        let mut next = self.spilling.lock();
        if self.memory.load(Ordering::Relaxed) > self.budget / 2 || (all && self.has_levels()) {
            let frozen = self.freeze(Place::Oldest, &mut next, usize::MAX, 0);
            self.write(&frozen, &Everything)?;
        }
        Ok(())
    }

    fn levels(&self) -> Arc<[Level]> {
        self.levels.read().clone()
    }

    fn change_levels(&self, change: impl FnOnce(&mut Vec<Level>)) {
        let mut levels = self.levels.write();
        let mut new = levels.to_vec();
        change(&mut new);
        self.has_levels.store(!new.is_empty(), Ordering::Relaxed);
        let old = std::mem::replace(&mut *levels, new.into());
        // Files are removed with nothing held.
        drop(levels);
        drop(old);
    }

    /// Takes maps' content out, from that of shard `next` on, until it has so many bytes.
    fn freeze(&self, place: Place, next: &mut usize, bytes: usize, settled: u64) -> Arc<Frozen> {
        let frozen = Arc::new(Frozen { shards: (0..SHARDS).map(|_| OnceLock::new()).collect(), len: AtomicU64::new(0), settled });
        // First: who does not find a version in its map any more finds it here.
        self.change_levels(|levels| {
            let at = match place {
                Place::Newest => 0,
                Place::Oldest => levels.len(),
            };
            levels.insert(at, Level::Frozen(frozen.clone()));
        });
        let (mut len, mut memory) = (0, 0);
        for _ in 0..SHARDS {
            let shard = *next;
            *next = (shard + 1) % SHARDS;
            let mut map = self.shards[shard].lock();
            let taken = frozen.shards[shard].set(std::mem::take(&mut *map));
            debug_assert!(taken.is_ok(), "each shard is taken once");
            drop(map);
            let chains = frozen.shards[shard].get().into_iter().flatten();
            for (row, chain) in chains {
                len += chain.len() as u64;
                memory += memory_of(row, chain);
            }
            if memory >= bytes {
                break;
            }
        }
        frozen.len.store(len, Ordering::Relaxed);
        self.count.fetch_sub(len, Ordering::Relaxed);
        self.frozen.fetch_add(memory, Ordering::Relaxed);
        self.memory.fetch_sub(memory, Ordering::Relaxed);
        frozen
    }

    /// Puts a run in the place of what is frozen.
    fn write(&self, frozen: &Arc<Frozen>, needs: &impl Needs) -> Result<()> {
        let mut rows: Vec<(&[u8], &Chain)> = frozen.chains().collect();
        rows.sort_unstable_by_key(|(row, _)| *row);
        let mut sieve = Sieve::new(RunWriter::new(self.scratch.clone(), frozen.shards(), frozen.settled));
        for (row, chain) in rows {
            for version in chain {
                sieve.add(row, version.entry(), frozen.settled, needs)?;
            }
        }
        let run = sieve.finish()?.map(|run| Level::Run(Arc::new(run)));
        self.change_levels(|levels| {
            let at = levels.iter().position(|level| level.is_frozen(frozen)).expect("only this takes it away");
            levels.splice(at..=at, run);
        });
        self.frozen.fetch_sub(frozen.memory(), Ordering::Relaxed);
        Ok(())
    }

    /// Drops the runs of which nobody needs anything: all who replaced their versions are over, which ids below `low_water` are.
    pub fn drop_runs(&self, low_water: TxnId, needs: &impl Needs) {
        let levels = self.levels();
        // Looked at without the list's lock: who is over stays so.
        let gone: Vec<&Arc<Run>> = levels
            .iter()
            .filter_map(|level| match level {
                Level::Run(run) if run.is_over(low_water, |by| needs.is_over(by)) => Some(run),
                _ => None,
            })
            .collect();
        if !gone.is_empty() {
            self.change_levels(|levels| levels.retain(|level| !gone.iter().any(|run| level.is_run(run))));
            let mut merging = self.merging.lock();
            let left = self.levels();
            if merging.merge.as_ref().is_some_and(|merge| !merge.inputs.iter().any(|input| left.iter().any(|level| level.is_run(input)))) {
                merging.merge = None;
            }
        }
    }

    /// Merges about `versions` versions of runs that are many. True if there is more to do.
    pub fn merge(&self, versions: usize, needs: &impl Needs) -> Result<bool> {
        let mut merging = self.merging.lock();
        let mut merge = match merging.merge.take() {
            Some(merge) => merge,
            None => {
                let levels = self.levels();
                if levels.len() == merging.failed_at {
                    return Ok(false);
                }
                match runs_to_merge(&levels) {
                    Some(inputs) => Merge::new(inputs, self.scratch.clone()),
                    None => return Ok(false),
                }
            }
        };
        let outcome = match merge.advance(versions, needs) {
            Ok(false) => {
                merging.merge = Some(merge);
                return Ok(true);
            }
            Ok(true) => merge.finish(),
            Err(error) => Err(error),
        };
        match outcome {
            Ok((inputs, run)) => {
                merging.failed_at = 0;
                self.put_merged(&inputs, run);
                Ok(true)
            }
            Err(error) => {
                merging.failed_at = self.levels().len();
                Err(error)
            }
        }
    }

    /// Puts a run in the place of those that it was made of, as far as they are there still.
    fn put_merged(&self, inputs: &[Arc<Run>], run: Option<Run>) {
        let run = run.map(|run| Level::Run(Arc::new(run)));
        self.change_levels(|levels| {
            let is_input = |level: &Level| inputs.iter().any(|input| level.is_run(input));
            // They follow each other: new levels come before all others.
            if let Some(at) = levels.iter().position(is_input) {
                levels.retain(|level| !is_input(level));
                levels.splice(at..at, run);
            }
        });
    }
}

/// Runs that follow each other and are to become one, newest first.
fn runs_to_merge(levels: &[Level]) -> Option<Vec<Arc<Run>>> {
    let mut runs = Vec::new();
    for level in levels {
        match level {
            Level::Run(run) => runs.push(run.clone()),
            // Nothing is merged across what is not written yet.
            Level::Frozen(_) => runs.clear(),
        }
    }
    let window = |at: usize| -> Range<usize> { at..at + MERGED };
    let windows = (0..(runs.len() + 1).saturating_sub(MERGED)).map(window);
    let same_size = |range: &Range<usize>| {
        let bytes = || runs[range.clone()].iter().map(|run| run.bytes());
        bytes().max() <= bytes().min().map(|least| least * SAME_SIZE)
    };
    let range = match windows.clone().find(same_size) {
        Some(range) => range,
        None if runs.len() > RUNS_MAX => windows.min_by_key(|range| runs[range.clone()].iter().map(|run| run.bytes()).sum::<u64>())?,
        None => return None,
    };
    Some(runs[range].to_vec())
}
