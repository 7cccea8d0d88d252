//! Newtypes for the numbers that must not be mixed up.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $inner);
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

id!(
    /// A page's number in the instance-wide page-id space; its file offset follows from it. 0 is never a tree page.
    PageId(u64)
);
id!(
    /// A position in the log: the byte offset of a record's first byte in the endless stream. 0 means none.
    Lsn(u64)
);
id!(
    /// A transaction's number, 48 bits, given at its first write. 0 means none.
    TxnId(u64)
);
id!(
    /// A tree's number, never reused. 0 means none (a free extent).
    IndexId(u32)
);

impl IndexId {
    /// No tree's: stands for numbers where locks are named (`Txn::number_lock`).
    pub const NUMBERS: IndexId = IndexId(u32::MAX - 1);
}

impl PageId {
    /// No page: what links and hints hold that lead nowhere.
    pub const NONE: PageId = PageId(0);
    pub fn is_none(self) -> bool {
        self.0 == 0
    }
}

impl Lsn {
    /// Before the log: of a change that made no record.
    pub const NONE: Lsn = Lsn(0);
    pub fn is_none(self) -> bool {
        self.0 == 0
    }
}
