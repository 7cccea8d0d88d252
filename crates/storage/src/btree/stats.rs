//! What a tree counts of its splits, merges and waits.

use crate::sync::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The counters of one tree, or of several together.
        #[derive(Debug, Default)]
        pub(crate) struct TreeStats { $($(#[$doc])* pub $name: AtomicU64,)* }

        /// What a tree counted since it was opened.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct TreeCounters { $($(#[$doc])* pub $name: u64,)* }

        impl TreeStats {
            pub fn counters(&self) -> TreeCounters {
                TreeCounters { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }

        impl TreeCounters {
            /// (name, value) of all.
            pub fn all(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)*]
            }
            pub fn add(&mut self, other: &TreeCounters) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

counters! {
    /// A new page behind a full one; nothing moved.
    splits_append,
    /// Cut at a sequential run in mid page.
    splits_run,
    /// Late arrivals filled an appended page: what was over 15/16 opened the next.
    splits_slack,
    /// As `splits_append`, at the left end.
    splits_descending,
    /// One page made two halves.
    splits_even,
    splits_two_to_three,
    splits_inner,
    splits_root,
    /// Records moved between siblings: a full leaf evened out, or one filled by a compaction.
    shares,
    /// Of these, those that left the left page 15/16 full because appends go on to the right.
    shares_slack,
    merges,
    root_collapses,
    /// Descents begun again because a page changed under them.
    restarts,
    /// Pages reached by a right link.
    moves_right,
    /// Downlinks posted.
    downlinks,
    /// Splits finished by another writer than the one that began them.
    splits_finished,
    /// Latches taken in the class of structure modifications, and those that had to be waited for.
    smo_latches,
    smo_waits,
    /// Changes that found their leaf by the cursor's hint, and those that descended.
    hint_hits,
    hint_misses,
}

impl TreeCounters {
    /// Splits of every kind.
    pub fn splits(&self) -> u64 {
        self.splits_append
            + self.splits_run
            + self.splits_slack
            + self.splits_descending
            + self.splits_even
            + self.splits_two_to_three
            + self.splits_inner
            + self.splits_root
    }
}
