//! A disk in memory that fails as disks do: a crash keeps what was synced, and of the rest any sectors in any combination.

use super::{Disk, DiskFile, Rng, SeededRng};
use crate::error::{Error, Result};
use crate::sync::Arc;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Weak;

/// How a simulated disk behaves; all of it follows from the seed.
#[derive(Clone, Debug)]
pub struct SimConfig {
    pub seed: u64,
    /// What is written or lost as one: 512 or 4096 bytes.
    pub sector: usize,
    /// Bytes that all files together may have allocated; more is `OutOfSpace`.
    pub capacity: u64,
}

impl Default for SimConfig {
    fn default() -> SimConfig {
        SimConfig { seed: 0, sector: 512, capacity: u64::MAX }
    }
}

/// A simulated disk. Clones share it.
#[derive(Clone)]
pub struct SimDisk(Arc<Shared>);

struct Shared {
    config: SimConfig,
    rng: SeededRng,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    files: Vec<FileState>,
    /// What a directory listing shows now, and after a crash.
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    /// Changes of the directory since it was synced, in order.
    name_changes: Vec<NameChange>,
    /// Calls that change something, counted.
    changes: u64,
    /// The call from which on everything fails: the power is off.
    power_off_at: Option<u64>,
    off: bool,
    /// Calls that fail once, with this error.
    fail_at: Option<(u64, Error)>,
    /// Reads until one that fails.
    reads_left: Option<u64>,
    locked: Weak<()>,
}

#[derive(Clone)]
enum NameChange {
    Create(String, usize),
    Rename(String, String),
    Remove(String),
}

#[derive(Default, Clone)]
struct FileState {
    now: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Pending>,
}

#[derive(Clone)]
enum Pending {
    Write(u64, Vec<u8>),
    Length(u64),
}

impl SimDisk {
    /// An empty disk.
    pub fn new(config: SimConfig) -> SimDisk {
        let rng = SeededRng::new(config.seed);
        SimDisk(Arc::new(Shared { config, rng, state: Mutex::default() }))
    }

    /// How many changing calls (write, sync, allocate, create, rename, remove …) there were.
    pub fn changes(&self) -> u64 {
        self.0.state.lock().changes
    }

    /// Turns the power off at the changing call number `n` (counted from the first): it and everything after it fail.
    pub fn power_off_at(&self, n: u64) {
        self.0.state.lock().power_off_at = Some(n);
    }

    /// Whether the power has failed: every call fails.
    pub fn is_off(&self) -> bool {
        self.0.state.lock().off
    }

    /// The changing call number `n` fails with `error`, doing nothing.
    pub fn fail_at(&self, n: u64, error: Error) {
        self.0.state.lock().fail_at = Some((n, error));
    }

    /// The read number `n` from now, counted from 1, fails; those behind it do not. `None`: none does. True if there was one to fail still.
    pub fn fail_read_in(&self, n: Option<u64>) -> bool {
        std::mem::replace(&mut self.0.state.lock().reads_left, n).is_some()
    }

    /// What the disk holds after a power failure now: all that was synced, and any part of what was not.
    pub fn crash(&self) -> SimDisk {
        let state = self.0.state.lock();
        let rng = &self.0.rng;
        let mut after = State::default();
        for file in &state.files {
            let mut image = file.durable.clone();
            for pending in &file.pending {
                survive(pending, &mut image, rng, self.0.config.sector);
            }
            after.files.push(FileState { now: image.clone(), durable: image, pending: Vec::new() });
        }
        after.names = state.durable_names.clone();
        let kept = rng.below(state.name_changes.len() as u64 + 1) as usize;
        for change in &state.name_changes[..kept] {
            change.apply(&mut after.names);
        }
        after.durable_names = after.names.clone();
        let config = SimConfig { seed: rng.next(), ..self.0.config.clone() };
        let rng = SeededRng::new(config.seed);
        SimDisk(Arc::new(Shared { config, rng, state: Mutex::new(after) }))
    }

    /// Flips a bit of a file, as an aging disk does.
    pub fn flip_bit(&self, name: &str, byte: u64, bit: u8) {
        let mut state = self.0.state.lock();
        let file = state.names[name];
        state.files[file].now[byte as usize] ^= 1 << bit;
        state.files[file].durable[byte as usize] ^= 1 << bit;
    }
}

/// Keeps a write whole, loses it, or keeps some of its sectors.
fn survive(pending: &Pending, image: &mut Vec<u8>, rng: &dyn Rng, sector: usize) {
    let fate = rng.below(4);
    match pending {
        Pending::Length(len) => {
            if fate > 0 {
                image.resize(*len as usize, 0);
            }
        }
        Pending::Write(_, _) if fate == 0 => {}
        Pending::Write(at, data) => {
            let mut done = 0;
            while done < data.len() {
                let start = *at as usize + done;
                let n = (sector - start % sector).min(data.len() - done);
                if fate == 1 || rng.below(2) == 0 {
                    put(image, start, &data[done..done + n]);
                }
                done += n;
            }
        }
    }
}

fn put(image: &mut Vec<u8>, at: usize, data: &[u8]) {
    if image.len() < at + data.len() {
        image.resize(at + data.len(), 0);
    }
    image[at..at + data.len()].copy_from_slice(data);
}

impl Pending {
    fn apply(&self, image: &mut Vec<u8>) {
        match self {
            Pending::Write(at, data) => put(image, *at as usize, data),
            Pending::Length(len) => image.resize(*len as usize, 0),
        }
    }
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            NameChange::Create(name, file) => {
                names.insert(name.clone(), *file);
            }
            NameChange::Rename(from, to) => {
                if let Some(file) = names.remove(from) {
                    names.insert(to.clone(), file);
                }
            }
            NameChange::Remove(name) => {
                names.remove(name);
            }
        }
    }
}

impl State {
    /// Counts a changing call; fails if its time has come.
    fn change(&mut self) -> Result<()> {
        self.alive()?;
        self.changes += 1;
        if self.power_off_at.is_some_and(|n| self.changes >= n) {
            self.off = true;
            return self.alive();
        }
        match self.fail_at.take_if(|(n, _)| self.changes >= *n) {
            Some((_, error)) => Err(error),
            None => Ok(()),
        }
    }

    fn alive(&self) -> Result<()> {
        if self.off { Err(Error::io("simulated disk", std::io::Error::other("the power is off"))) } else { Ok(()) }
    }

    fn name_change(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.name_changes.push(change);
    }

    fn find(&self, name: &str) -> Result<usize> {
        let missing = || Error::io(format!("cannot open {name}"), std::io::ErrorKind::NotFound.into());
        self.names.get(name).copied().ok_or_else(missing)
    }

    /// Bytes allocated by all files that still have a name.
    fn used(&self) -> u64 {
        self.names.values().map(|f| self.files[*f].now.len() as u64).sum()
    }
}

impl Disk for SimDisk {
    fn open(&self, name: &str, create: bool) -> Result<Arc<dyn DiskFile>> {
        let mut state = self.0.state.lock();
        state.alive()?;
        let file = match state.find(name) {
            Ok(file) => file,
            Err(e) if !create => return Err(e),
            Err(_) => {
                state.change()?;
                state.files.push(FileState::default());
                let file = state.files.len() - 1;
                state.name_change(NameChange::Create(name.to_string(), file));
                file
            }
        };
        Ok(Arc::new(SimFile { disk: self.clone(), file }))
    }

    fn list(&self) -> Result<Vec<String>> {
        let state = self.0.state.lock();
        state.alive()?;
        Ok(state.names.keys().cloned().collect())
    }

    fn exists(&self, name: &str) -> Result<bool> {
        let state = self.0.state.lock();
        state.alive()?;
        Ok(state.names.contains_key(name))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let mut state = self.0.state.lock();
        state.change()?;
        state.find(from)?;
        state.name_change(NameChange::Rename(from.to_string(), to.to_string()));
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<()> {
        let mut state = self.0.state.lock();
        state.change()?;
        state.find(name)?;
        state.name_change(NameChange::Remove(name.to_string()));
        Ok(())
    }

    fn sync_dir(&self) -> Result<()> {
        let mut state = self.0.state.lock();
        state.change()?;
        state.durable_names = state.names.clone();
        state.name_changes.clear();
        Ok(())
    }

    fn lock(&self) -> Result<Box<dyn Send + Sync>> {
        let mut state = self.0.state.lock();
        state.alive()?;
        if state.locked.upgrade().is_some() {
            return Err(Error::InUse("the simulated disk".to_string()));
        }
        let lock = Arc::new(());
        state.locked = Arc::downgrade(&lock);
        Ok(Box::new(lock))
    }
}

struct SimFile {
    disk: SimDisk,
    file: usize,
}

impl DiskFile for SimFile {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<usize> {
        let mut state = self.disk.0.state.lock();
        state.alive()?;
        if let Some(left) = &mut state.reads_left {
            *left -= 1;
            if *left == 0 {
                state.reads_left = None;
                return Err(Error::io("simulated disk", std::io::Error::other("a sector cannot be read")));
            }
        }
        let data = &state.files[self.file].now;
        let from = (offset as usize).min(data.len());
        let n = out.len().min(data.len() - from);
        out[..n].copy_from_slice(&data[from..from + n]);
        Ok(n)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        let mut state = self.disk.0.state.lock();
        state.change()?;
        let grown = (offset + data.len() as u64).saturating_sub(state.files[self.file].now.len() as u64);
        if state.used() + grown > self.disk.0.config.capacity {
            return Err(Error::OutOfSpace);
        }
        let file = &mut state.files[self.file];
        put(&mut file.now, offset as usize, data);
        file.pending.push(Pending::Write(offset, data.to_vec()));
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        let mut state = self.disk.0.state.lock();
        let done = state.change();
        let off = state.off;
        let file = &mut state.files[self.file];
        match &done {
            Ok(()) => {
                let pending = std::mem::take(&mut file.pending);
                pending.iter().for_each(|pending| pending.apply(&mut file.durable));
            }
            // As Linux: what could not be written counts as written, and is seen as long as it stays in memory.
            Err(_) if !off => file.pending.clear(),
            Err(_) => {}
        }
        done
    }

    fn uncache(&self) {
        let mut state = self.disk.0.state.lock();
        let file = &mut state.files[self.file];
        file.now.clone_from(&file.durable);
        file.pending.iter().for_each(|pending| pending.apply(&mut file.now));
    }

    fn allocate(&self, len: u64) -> Result<()> {
        let mut state = self.disk.0.state.lock();
        let old = state.files[self.file].now.len() as u64;
        if len <= old {
            return state.alive();
        }
        state.change()?;
        if state.used() + (len - old) > self.disk.0.config.capacity {
            return Err(Error::OutOfSpace);
        }
        let file = &mut state.files[self.file];
        file.now.resize(len as usize, 0);
        file.pending.push(Pending::Length(len));
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        let state = self.disk.0.state.lock();
        state.alive()?;
        Ok(state.files[self.file].now.len() as u64)
    }

    fn truncate(&self, len: u64) -> Result<()> {
        let mut state = self.disk.0.state.lock();
        state.change()?;
        let file = &mut state.files[self.file];
        file.now.truncate(len as usize);
        file.pending.push(Pending::Length(len));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_keeps_what_was_synced_and_any_part_of_the_rest() {
        let (mut whole, mut torn, mut lost) = (0, 0, 0);
        for seed in 0..200 {
            let disk = SimDisk::new(SimConfig { seed, ..SimConfig::default() });
            let file = disk.open("a", true).unwrap();
            file.write_at(0, &[1; 4096]).unwrap();
            file.sync().unwrap();
            disk.sync_dir().unwrap();
            file.write_at(0, &[2; 4096]).unwrap();
            let after = disk.crash();
            let mut data = [0; 4096];
            after.open("a", false).unwrap().read_at(0, &mut data).unwrap();
            let twos = data.iter().filter(|b| **b == 2).count();
            assert!(twos % 512 == 0 && data.iter().all(|b| *b == 1 || *b == 2));
            match twos {
                0 => lost += 1,
                4096 => whole += 1,
                _ => torn += 1,
            }
        }
        assert!(whole > 0 && torn > 0 && lost > 0);
    }

    #[test]
    fn names_are_durable_after_sync_dir_only() {
        let disk = SimDisk::new(SimConfig { seed: 1, ..SimConfig::default() });
        disk.open("a", true).unwrap();
        disk.sync_dir().unwrap();
        disk.rename("a", "b").unwrap();
        assert!(disk.exists("b").unwrap() && !disk.exists("a").unwrap());
        let after = disk.crash();
        assert!(after.exists("a").unwrap() != after.exists("b").unwrap());
    }

    #[test]
    fn power_goes_off_at_the_nth_change() {
        let disk = SimDisk::new(SimConfig::default());
        let file = disk.open("a", true).unwrap();
        disk.power_off_at(3);
        file.write_at(0, b"x").unwrap();
        assert!(file.sync().is_err() && file.write_at(0, b"y").is_err() && disk.list().is_err());
    }
}
