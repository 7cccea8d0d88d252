//! Opening: lock the directory, make or find the database, restore torn pages, redo the log, read the extent maps.

use super::{Recovered, Store, redo};
use crate::buffer::{BufferPool, Restored, remove_doublewrite, restore_torn_pages};
use crate::counters::Counters;
use crate::disk::{Disk, PageFiles};
use crate::error::{Error, Result};
use crate::fatal::Fatal;
use crate::ids::TxnId;
use crate::options::Options;
use crate::space::Space;
use crate::sync::{Arc, AtomicU32, Mutex};
use crate::wal::{Control, ControlFile, FIRST_LSN, Record, Wal};
use std::sync::OnceLock;

impl Store {
    /// Locks the directory, opens or makes the database, redoes the log. `visit` sees every record scanned, in order.
    /// Checkpoints begin with `start`.
    pub fn open(
        disk: Arc<dyn Disk>,
        options: &Options,
        visit: &mut dyn FnMut(&Record),
    ) -> Result<(Arc<Store>, Recovered)> {
        let lock = disk.lock()?;
        let mut options = options.clone();
        let control = match ControlFile::open(&*disk)? {
            Some(control) => control,
            None => begin_creation(&*disk, &options)?,
        };
        let last = control.last();
        // The log's files keep the size they were made with.
        options.log_segment_bytes = last.segment_bytes;
        if !last.complete {
            clear_unfinished(&*disk)?;
        }
        let fatal = Arc::new(Fatal::new(options.abort_on_fatal));
        let counters = Arc::new(Counters::default());
        let files = Arc::new(PageFiles::new(disk.clone()));
        let wal = Arc::new(Wal::open(disk.clone(), &options, fatal.clone(), counters.clone())?);
        let restored = if last.complete { restore_torn_pages(&*disk, &files)? } else { Restored::default() };
        if !options.doublewrite {
            remove_doublewrite(&*disk)?;
        }
        let pool =
            Arc::new(BufferPool::new(&disk, files, wal.clone(), &options, fatal.clone(), counters.clone())?);
        let mut recovered;
        let space;
        if last.complete {
            let remains;
            (recovered, remains) = redo::recover(&wal, &pool, &last, restored.newest, visit)?;
            space = Space::open(pool.clone())?;
            wal.start(last.redo_lsn, &remains)?;
        } else {
            wal.start_at(FIRST_LSN)?;
            space = Space::create(pool.clone())?;
            finish_creation(&wal, &pool, &control)?;
            recovered = Recovered { next_txn_id: TxnId(1), created: true, ..Recovered::default() };
        }
        control.double()?;
        recovered.pages_restored = restored.pages;
        let store = Arc::new(Store {
            disk,
            wal,
            pool,
            space: Arc::new(space),
            fatal,
            counters,
            io_capacity: AtomicU32::new(options.io_capacity),
            options,
            control,
            transactions: OnceLock::new(),
            checkpointing: Mutex::new(()),
            threads: Mutex::default(),
            _lock: lock,
        });
        Ok((store, recovered))
    }
}

/// A directory without a control file may hold nothing of ours: a lost control file is not an empty database.
fn begin_creation(disk: &dyn Disk, options: &Options) -> Result<ControlFile> {
    if let Some(name) = disk.list()?.iter().find(|n| n.starts_with("pages.") || n.starts_with("wal.")) {
        return Err(Error::Unusable(format!("the data directory has {name} but no control file")));
    }
    ControlFile::create(disk, Control { segment_bytes: options.log_segment_bytes, ..Control::default() })
}

/// Removes what an interrupted creation left.
fn clear_unfinished(disk: &dyn Disk) -> Result<()> {
    for name in disk.list()? {
        if name.starts_with("pages.") || name.starts_with("wal.") || name == "doublewrite" {
            disk.remove(&name)?;
        }
    }
    disk.sync_dir()
}

/// Everything is on disk before the control file says that the database is complete.
fn finish_creation(wal: &Wal, pool: &BufferPool, control: &ControlFile) -> Result<()> {
    wal.flush()?;
    while pool.write_oldest(usize::MAX, None)? > 0 {}
    control.write(Control {
        complete: true,
        redo_lsn: FIRST_LSN,
        next_txn_id: TxnId(1),
        max_ts: 0,
        durable: wal.durable(),
        ..control.last()
    })
}
