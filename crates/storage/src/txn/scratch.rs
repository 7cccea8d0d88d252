//! The scratch file of spilled versions. Its content means nothing to the next open.

use crate::disk::{Disk, DiskFile};
use crate::error::{Error, Result};
use crate::sync::{Arc, Mutex};

const NAME: &str = "versions.tmp";
/// A file of so many bytes and more gives its space back when it is empty.
const KEPT_BYTES: u64 = 1 << 20;

/// Values appended one after the other. The file starts again from 0 whenever no value is left in it.
pub(crate) struct Scratch {
    disk: Arc<dyn Disk>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    file: Option<Arc<dyn DiskFile>>,
    end: u64,
    live: u64,
}

/// A value in the scratch file; dropping it gives its place up.
pub(crate) struct Spilled {
    scratch: Arc<Scratch>,
    file: Arc<dyn DiskFile>,
    offset: u64,
    len: usize,
}

impl Scratch {
    /// Removes what an earlier life left.
    pub fn new(disk: Arc<dyn Disk>) -> Scratch {
        // A file that cannot be removed only takes space, and is written over.
        if disk.exists(NAME).is_ok_and(|exists| exists)
            && let Err(e) = disk.remove(NAME)
        {
            tracing::warn!("cannot remove an old {NAME}: {e}");
        }
        Scratch { disk, state: Mutex::default() }
    }

    pub fn write(self: &Arc<Self>, value: &[u8]) -> Result<Arc<Spilled>> {
        let (file, offset) = {
            let mut state = self.state.lock();
            let file = match &state.file {
                Some(file) => file.clone(),
                None => state.file.insert(self.disk.open(NAME, true)?).clone(),
            };
            let offset = state.end;
            state.end += value.len() as u64;
            state.live += 1;
            (file, offset)
        };
        // Made before the write, so that a failed write gives the place up too.
        let spilled = Spilled { scratch: self.clone(), file, offset, len: value.len() };
        spilled.file.write_at(offset, value)?;
        Ok(Arc::new(spilled))
    }

    /// Bytes of the file in use, holes included.
    pub fn len(&self) -> u64 {
        self.state.lock().end
    }
}

impl Spilled {
    pub fn read(&self) -> Result<Vec<u8>> {
        let mut value = vec![0; self.len];
        if self.file.read_at(self.offset, &mut value)? != self.len {
            return Err(Error::corrupt_file(format!("{NAME} ends before {}", self.offset + self.len as u64)));
        }
        Ok(value)
    }
}

impl Drop for Spilled {
    fn drop(&mut self) {
        let mut state = self.scratch.state.lock();
        state.live -= 1;
        if state.live == 0 {
            // A file that cannot be cut is written over.
            if state.end >= KEPT_BYTES {
                let _ = self.file.truncate(0);
            }
            state.end = 0;
        }
    }
}
