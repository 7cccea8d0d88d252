//! The binary log's files on the disk: `binlog.000001` and so on, and the index, which lists them.

use highkey_storage::{Disk, Error, Result};

/// The files' common name.
pub(crate) const BASE: &str = "binlog";
const INDEX: &str = "binlog.index";
const INDEX_NEW: &str = "binlog.index.new";

pub(crate) fn name_of(number: u64) -> String {
    format!("{BASE}.{number:06}")
}

/// The number in a file's name.
pub fn number_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(BASE)?.strip_prefix('.')?;
    if digits.len() < 6 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

/// The numbers that the index lists, in order; none without an index.
pub(crate) fn read_index(disk: &dyn Disk) -> Result<Vec<u64>> {
    if !disk.exists(INDEX)? {
        return Ok(Vec::new());
    }
    let file = disk.open(INDEX, false)?;
    let mut bytes = vec![0; file.len()? as usize];
    let got = file.read_at(0, &mut bytes)?;
    bytes.truncate(got);
    let text = String::from_utf8_lossy(&bytes);
    let mut numbers = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let name = line.strip_prefix("./").unwrap_or(line);
        let number = number_of(name).filter(|n| numbers.last().is_none_or(|last| last < n));
        numbers.push(number.ok_or_else(|| Error::corrupt_file(format!("{INDEX} has a line '{line}'")))?);
    }
    Ok(numbers)
}

/// Replaces the index, durably and at once.
pub(crate) fn write_index(disk: &dyn Disk, numbers: &[u64]) -> Result<()> {
    let text: String = numbers.iter().map(|n| format!("./{}\n", name_of(*n))).collect();
    let file = disk.open(INDEX_NEW, true)?;
    file.truncate(0)?;
    file.write_at(0, text.as_bytes())?;
    file.sync()?;
    drop(file);
    disk.rename(INDEX_NEW, INDEX)?;
    disk.sync_dir()
}

/// Removes files of the binary log that the index does not list: a crash kept them from being removed, or from being finished.
pub(crate) fn remove_unlisted(disk: &dyn Disk, listed: &[u64]) -> Result<()> {
    let unlisted = |name: &String| number_of(name).is_some_and(|n| !listed.contains(&n));
    remove(disk, disk.list()?.into_iter().filter(unlisted))
}

/// Removes those of the files that there are.
pub(crate) fn remove(disk: &dyn Disk, names: impl IntoIterator<Item = String>) -> Result<()> {
    let mut any = false;
    for name in names {
        if disk.exists(&name)? {
            disk.remove(&name)?;
            any = true;
        }
    }
    if any { disk.sync_dir() } else { Ok(()) }
}
