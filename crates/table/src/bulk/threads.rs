//! Pieces of one statement's work in several threads.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use highkey_storage::{Waits, for_helpers, lower_priority};
use parking_lot::Mutex;

/// Of `threads`, how many are of use for so many tasks on this machine: at least one.
pub(crate) fn useful_threads(threads: usize, tasks: usize) -> usize {
    let wanted = threads.min(tasks);
    if wanted < 2 { 1 } else { thread::available_parallelism().map_or(1, |cores| wanted.min(cores.get())) }
}

/// Does every task, in this thread and up to `threads` - 1 others, which give way to sessions. The results are in the order of the tasks; an error is that of the first task that has
/// one, as if they were done one after the other. Apart from the task `work` gets its place, and a question to be asked now and then: whether a task before
/// it has failed, so that nobody wants its result.
pub(crate) fn side_by_side<T: Send, R: Send, E: Send>(
    threads: usize,
    tasks: Vec<T>,
    work: impl Fn(usize, T, &dyn Fn() -> bool) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let helpers = useful_threads(threads, tasks.len()) - 1;
    let failed = AtomicUsize::new(usize::MAX);
    let queue = Mutex::new(tasks.into_iter().enumerate());
    let results = Mutex::new(Vec::new());
    let do_tasks = || {
        loop {
            let next = queue.lock().next();
            let Some((n, task)) = next else { return };
            // All before it are in somebody's hands, who goes on with them.
            let in_vain = || failed.load(Ordering::Relaxed) < n;
            if in_vain() {
                return;
            }
            let result = work(n, task, &in_vain);
            if result.is_err() {
                failed.fetch_min(n, Ordering::Relaxed);
            }
            results.lock().push((n, result));
        }
    };
    let waits = Waits::current();
    let (waits, do_tasks) = (&waits, &do_tasks);
    thread::scope(|scope| {
        let mut spawned = Vec::new();
        for _ in 0..helpers {
            let help = move || {
                lower_priority();
                match waits {
                    Some(waits) => waits.work(do_tasks),
                    None => do_tasks(),
                }
            };
            // If the system has no thread to give, there are fewer.
            spawned.extend(thread::Builder::new().name("hk-build".into()).spawn_scoped(scope, help).ok());
        }
        do_tasks();
        for_helpers(|| {
            for helper in spawned {
                if let Err(panic) = helper.join() {
                    resume_unwind(panic);
                }
            }
        });
    });
    let mut results = results.into_inner();
    results.sort_unstable_by_key(|(n, _)| *n);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn results_come_in_order_and_the_first_error_counts() {
        for threads in [0, 1, 2, 5] {
            let doubled = side_by_side(threads, (0..100).collect(), |n, task: u64, _| Ok::<_, ()>((n, task * 2))).unwrap();
            assert_eq!(doubled, (0..100).map(|n| (n as usize, n * 2)).collect::<Vec<_>>());
            let odd = side_by_side(threads, (0..100).collect(), |_, task: u64, _| if task % 10 == 7 { Err(task) } else { Ok(()) });
            assert_eq!(odd, Err(7));
            assert_eq!(side_by_side(threads, Vec::<()>::new(), |_, (), _| Err::<(), _>("nobody calls it")), Ok(Vec::new()));
        }
    }

    #[test]
    fn who_works_in_vain_is_told() {
        if useful_threads(2, 2) < 2 {
            return;
        }
        let begun = AtomicBool::new(false);
        let done: Result<Vec<()>, &str> = side_by_side(2, vec![0, 1], |_, task, in_vain| {
            if task == 0 {
                while !begun.load(Ordering::SeqCst) {
                    thread::yield_now();
                }
                return Err("the first");
            }
            begun.store(true, Ordering::SeqCst);
            while !in_vain() {
                thread::yield_now();
            }
            Err("the second")
        });
        assert_eq!(done, Err("the first"));
    }
}
