//! Which processor a thread is on.

use std::mem::{MaybeUninit, size_of};

use libc::cpu_set_t;

/// The processor that the calling thread is on; `None` where the system does not tell.
pub fn processor() -> Option<usize> {
    // SAFETY: it takes nothing.
    usize::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// Moves the calling thread to a processor that is none of these, if it may run on one. Later it may be moved to any that it could run on before.
pub fn leave_processors(occupied: &[usize]) {
    let mut allowed = MaybeUninit::<cpu_set_t>::zeroed();
    // SAFETY: the set is as long as is said, and all zeros are a set.
    let allowed = unsafe {
        if libc::sched_getaffinity(0, size_of::<cpu_set_t>(), allowed.as_mut_ptr()) != 0 {
            return;
        }
        allowed.assume_init()
    };
    let mut free = allowed;
    // SAFETY: numbers are within the set.
    unsafe {
        for processor in occupied.iter().filter(|processor| **processor < 8 * size_of::<cpu_set_t>()) {
            libc::CPU_CLR(*processor, &mut free);
        }
        if libc::CPU_COUNT(&free) > 0 && libc::sched_setaffinity(0, size_of::<cpu_set_t>(), &free) == 0 {
            libc::sched_setaffinity(0, size_of::<cpu_set_t>(), &allowed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_leaves_processors_while_there_are_others() {
        let all: Vec<usize> = (0..1024).collect();
        let here = processor().expect("Linux tells");
        leave_processors(&all);
        leave_processors(&[usize::MAX]);
        if std::thread::available_parallelism().unwrap().get() > 1 {
            // Nothing keeps it there, but a move back takes far longer than the question.
            let left = (0..100).any(|_| {
                let here = processor().unwrap();
                leave_processors(&[here]);
                processor().unwrap() != here
            });
            assert!(left, "it stays on {here}");
        }
    }
}
