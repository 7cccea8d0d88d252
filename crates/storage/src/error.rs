//! What can go wrong below SQL.

use crate::ids::PageId;
use std::io;

/// An error of the storage engine. Expected outcomes (a conflict, a duplicate) are values, not errors.
#[derive(Debug, Clone)]
pub enum Error {
    /// The disk is full (or a quota is); nothing was changed. MySQL's 1114.
    OutOfSpace,
    /// The log holds as much as it may, pinned by an open transaction; nothing was changed. MySQL's 1114.
    LogFull,
    /// Bytes on disk, or a structure, are not what was written.
    Corrupt { page: Option<PageId>, what: String },
    /// Another process has the data directory open.
    InUse(String),
    /// The data directory is not one this version can open.
    Unusable(String),
    /// A failed read, or a failed operation outside the critical paths.
    Io { what: String, kind: io::ErrorKind, message: String },
    /// The engine has stopped: an earlier write failed or a broken invariant was found. Only reopening helps.
    Stopped,
    /// No such index.
    NoSuchIndex(crate::ids::IndexId),
    /// A key or value is longer than the engine can store.
    TooLarge { what: &'static str, size: usize, max: usize },
}

/// What operations of the engine give.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Bytes of a page that cannot be right.
    pub fn corrupt(page: PageId, what: impl Into<String>) -> Error {
        Error::Corrupt { page: Some(page), what: what.into() }
    }
    /// Bytes of another file that cannot be right; `what` names it.
    pub fn corrupt_file(what: impl Into<String>) -> Error {
        Error::Corrupt { page: None, what: what.into() }
    }
    /// Names an operating system error; a full disk or quota becomes `OutOfSpace`.
    pub fn io(what: impl Into<String>, error: io::Error) -> Error {
        match error.raw_os_error() {
            Some(libc::ENOSPC) | Some(libc::EDQUOT) => Error::OutOfSpace,
            _ if error.kind() == io::ErrorKind::StorageFull => Error::OutOfSpace,
            _ => Error::Io { what: what.into(), kind: error.kind(), message: error.to_string() },
        }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::OutOfSpace => write!(f, "no space left on the device"),
            Error::LogFull => write!(f, "the redo log is full: an open transaction holds its oldest part"),
            Error::Corrupt { page: Some(page), what } => write!(f, "page {page} is corrupt: {what}"),
            Error::Corrupt { page: None, what } => write!(f, "corrupt: {what}"),
            Error::InUse(what) => write!(f, "{what} is in use by another process"),
            Error::Unusable(what) => write!(f, "{what}"),
            Error::Io { what, message, .. } => write!(f, "{what}: {message}"),
            Error::Stopped => write!(f, "the storage engine has stopped after a failed write"),
            Error::NoSuchIndex(id) => write!(f, "index {id} does not exist"),
            Error::TooLarge { what, size, max } => write!(f, "{what} of {size} bytes exceeds {max}"),
        }
    }
}

impl std::error::Error for Error {}
