//! Group commit under shuttle's schedules.

use super::{Draft, FIRST_LSN, Kind, Wal};
use crate::counters::Counters;
use crate::disk::{SimConfig, SimDisk};
use crate::fatal::Fatal;
use crate::ids::{Lsn, TxnId};
use crate::options::Options;
use crate::sync::{Arc, thread};
use std::future::Future;
use std::task::{Context, Waker};

fn append(wal: &Wal, n: u64) -> Lsn {
    let draft = Draft { kind: Kind::Commit, txn: TxnId(n), prev_lsn: Lsn::NONE, undo: &[], parts: &[], extra: &[7; 40] };
    wal.append(&draft, |_| n).unwrap().0
}

#[test]
fn every_waiter_is_served_whoever_gives_up() {
    shuttle::check_random(
        || {
            let options = Options {
                log_segment_bytes: 4096,
                log_buffer_bytes: 100,
                redo_log_capacity: 1 << 20,
                ..Options::default()
            };
            let disk = Arc::new(SimDisk::new(SimConfig::default()));
            let wal = Wal::open(disk, &options, Arc::new(Fatal::new(false)), Arc::new(Counters::default())).unwrap();
            wal.start_at(FIRST_LSN).unwrap();
            let wal = Arc::new(wal);
            let handles: Vec<_> = (0..4u64)
                .map(|n| {
                    let wal = wal.clone();
                    thread::spawn(move || {
                        let lsn = append(&wal, n);
                        if n == 3 {
                            // Polled once, then dropped: whoever it should have led must not wait for ever.
                            let mut wait = Box::pin(wal.wait_durable(lsn));
                            let _ = wait.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                            thread::yield_now();
                            return;
                        }
                        wal.wait_durable(lsn).wait().unwrap();
                        assert!(lsn < wal.durable());
                    })
                })
                .collect();
            handles.into_iter().for_each(|h| h.join().unwrap());
        },
        1000,
    );
}
