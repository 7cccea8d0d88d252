//! Stopping: a failed log or data write, or a broken invariant, ends the engine, because the operating system may have
//! dropped what was written and nothing can be retried.

use crate::error::{Error, Result};
use crate::sync::{AtomicBool, Ordering};

/// Whether the engine still runs.
pub(crate) struct Fatal {
    stopped: AtomicBool,
    abort: bool,
}

impl Fatal {
    pub fn new(abort: bool) -> Fatal {
        Fatal { stopped: AtomicBool::new(false), abort }
    }

    /// Ends the process, or (when told not to abort) makes every later operation answer `Stopped`.
    pub fn stop(&self, what: &str) -> Error {
        if !self.stopped.swap(true, Ordering::SeqCst) {
            if self.abort {
                tracing::error!("fatal: {what}; stopping, recovery will run at the next start");
                eprintln!("highkey: fatal: {what}; stopping, recovery will run at the next start");
                std::process::abort();
            }
            tracing::debug!("fatal: {what}");
        }
        Error::Stopped
    }

    pub fn check(&self) -> Result<()> {
        if self.stopped.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
    }

    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}
