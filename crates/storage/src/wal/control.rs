//! The control file: where the last checkpoint is. Two slots written in turn, each with a checksum, so that one is always whole.

use crate::disk::{Disk, DiskFile};
use crate::error::{Error, Result};
use crate::ids::{Lsn, TxnId};
use crate::sync::{Arc, Mutex};

const MAGIC: &[u8; 8] = b"HIGHKEY2";
/// Apart by more than a disk tears.
const SLOT_BYTES: u64 = 4096;
const CONTENT: usize = 68;
const NAME: &str = "control";

/// What a checkpoint says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Control {
    pub sequence: u64,
    /// False while the database is being made: then there is nothing in it yet.
    pub complete: bool,
    /// Redo begins here; the log is kept from here.
    pub redo_lsn: Lsn,
    pub next_txn_id: TxnId,
    pub max_ts: u64,
    pub segment_bytes: u64,
    /// The log before this was durable then; after a clean shutdown, all of it.
    pub durable: Lsn,
}

pub(crate) struct ControlFile {
    file: Arc<dyn DiskFile>,
    last: Mutex<Control>,
    /// Both slots were found whole and of a complete database.
    doubled: bool,
}

impl ControlFile {
    /// `None`: there is no control file.
    pub fn open(disk: &dyn Disk) -> Result<Option<ControlFile>> {
        if !disk.exists(NAME)? {
            return Ok(None);
        }
        let file = disk.open(NAME, false)?;
        // As the log's files: see `Segments::open`.
        file.uncache();
        let mut best: Option<Control> = None;
        let (mut complete, mut other_version) = (0, false);
        for slot in 0..2 {
            let mut bytes = [0; CONTENT];
            let got = file.read_at(slot * SLOT_BYTES, &mut bytes)?;
            other_version |= bytes[..7] == MAGIC[..7] && bytes[7] != MAGIC[7];
            if got == CONTENT && let Some(control) = parse(&bytes) {
                complete += control.complete as u32;
                best = best.filter(|b| b.sequence > control.sequence).or(Some(control));
            }
        }
        match best {
            Some(last) => Ok(Some(ControlFile { file, last: Mutex::new(last), doubled: complete == 2 })),
            None if other_version => Err(Error::Unusable("the data directory was made by another version".to_string())),
            // Made, but its first write was lost or torn: nothing else had been made yet.
            None if disk.list()?.iter().all(|n| !n.starts_with("pages.") && !n.starts_with("wal.")) => Ok(None),
            None => Err(Error::corrupt_file("the control file has no valid checkpoint")),
        }
    }

    pub fn create(disk: &dyn Disk, first: Control) -> Result<ControlFile> {
        let file = disk.open(NAME, true)?;
        let control = ControlFile { file, last: Mutex::new(Control::default()), doubled: false };
        control.write(first)?;
        disk.sync_dir()?;
        Ok(control)
    }

    pub fn last(&self) -> Control {
        *self.last.lock()
    }

    /// After recovery: makes sure that either slot can be lost. What an incomplete or broken slot could say, alone, is that there is
    /// no database.
    pub fn double(&self) -> Result<()> {
        if self.doubled { Ok(()) } else { self.write(self.last()) }
    }

    /// Durably replaces the older slot.
    pub fn write(&self, mut control: Control) -> Result<()> {
        let mut last = self.last.lock();
        control.sequence = last.sequence + 1;
        let mut page = vec![0; SLOT_BYTES as usize];
        page[..CONTENT].copy_from_slice(&bytes_of(&control));
        self.file.write_at((control.sequence % 2) * SLOT_BYTES, &page)?;
        self.file.sync()?;
        *last = control;
        Ok(())
    }
}

fn bytes_of(c: &Control) -> [u8; CONTENT] {
    let mut b = [0; CONTENT];
    b[..8].copy_from_slice(MAGIC);
    b[8..16].copy_from_slice(&c.sequence.to_le_bytes());
    b[16] = c.complete as u8;
    b[24..32].copy_from_slice(&c.redo_lsn.0.to_le_bytes());
    b[32..40].copy_from_slice(&c.next_txn_id.0.to_le_bytes());
    b[40..48].copy_from_slice(&c.max_ts.to_le_bytes());
    b[48..56].copy_from_slice(&c.segment_bytes.to_le_bytes());
    b[56..64].copy_from_slice(&c.durable.0.to_le_bytes());
    let crc = crc32c::crc32c(&b[..64]);
    b[64..].copy_from_slice(&crc.to_le_bytes());
    b
}

fn parse(b: &[u8; CONTENT]) -> Option<Control> {
    let u64_at = |at: usize| u64::from_le_bytes(b[at..at + 8].try_into().expect("8 bytes"));
    if &b[..8] != MAGIC || crc32c::crc32c(&b[..64]) != u32::from_le_bytes(b[64..].try_into().expect("4 bytes")) {
        return None;
    }
    Some(Control {
        sequence: u64_at(8),
        complete: b[16] == 1,
        redo_lsn: Lsn(u64_at(24)),
        next_txn_id: TxnId(u64_at(32)),
        max_ts: u64_at(40),
        segment_bytes: u64_at(48),
        durable: Lsn(u64_at(56)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{SimConfig, SimDisk};

    #[test]
    fn the_newest_whole_slot_wins() {
        let disk = SimDisk::new(SimConfig::default());
        assert!(ControlFile::open(&disk).unwrap().is_none());
        let file = ControlFile::create(&disk, Control { redo_lsn: Lsn(1), ..Control::default() }).unwrap();
        file.write(Control { redo_lsn: Lsn(2), ..Control::default() }).unwrap();
        file.write(Control { redo_lsn: Lsn(3), ..Control::default() }).unwrap();
        assert_eq!(ControlFile::open(&disk).unwrap().unwrap().last().redo_lsn, Lsn(3));
        disk.open(NAME, false).unwrap().write_at(SLOT_BYTES + 30, &[0xff; 4]).unwrap();
        assert_eq!(ControlFile::open(&disk).unwrap().unwrap().last().redo_lsn, Lsn(2));
        disk.open(NAME, false).unwrap().write_at(30, &[0xff; 4]).unwrap();
        assert!(ControlFile::open(&disk).unwrap().is_none(), "nothing else was made");
        disk.open("pages.000", true).unwrap();
        assert!(matches!(ControlFile::open(&disk), Err(Error::Corrupt { .. })));
    }
}
