//! MariaDB's progress reports: packets before a long statement's answer, from which its client draws a bar.
//!
//! A task beside the statement writes them, because a statement may keep its thread busy. Statement and task agree under one short lock on
//! who writes next: the task takes a sequence number and the stream together, and the first byte of the answer ends the reports for good. So
//! no report follows it, and the answer goes on with the number after the last report; one that is still being sent has the stream.

use std::sync::Arc;
use std::time::Duration;

use highkey_protocol::{PacketWriter, encode_progress};
use highkey_sql::{ProcessEntry, Session, StatusCounter};
use parking_lot::Mutex;
use tokio::io::AsyncWriteExt;
use tokio::sync::oneshot;

use super::wire::Wire;

/// What a command's reports need to know of its session.
pub struct Reporter {
    process: Arc<ProcessEntry>,
    interval: Duration,
}

impl Reporter {
    /// None: the session wants no reports (`progress_report_time` is 0).
    pub fn of(session: &Session) -> Option<Self> {
        let interval = session.progress_report_time();
        (!interval.is_zero()).then(|| Self { process: session.process().clone(), interval })
    }

    /// Begins to report. Until [`Reports::end`] nobody else writes to the wire.
    pub fn begin(&self, wire: &Wire) -> Reports {
        assert!(wire.writer.is_empty(), "what was written before a report is sent before it");
        let turn = Arc::new(Mutex::new(Turn { sequence: wire.writer.sequence(), answering: false }));
        let (end, mut ended) = oneshot::channel::<()>();
        let (process, interval) = (self.process.clone(), self.interval);
        let (stream, turns, write_timeout) = (wire.stream(), turn.clone(), wire.write_timeout);
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    biased;
                    _ = &mut ended => return,
                    () = tokio::time::sleep(interval) => {}
                }
                let Some(report) = process.progress_report() else { continue };
                let (mut open, bytes) = {
                    let mut turn = turns.lock();
                    if turn.answering {
                        return;
                    }
                    // Until the answer begins nobody else writes, but `watch.rs` may just be looking at it.
                    let Ok(open) = stream.try_lock() else { continue };
                    let mut packet = PacketWriter::default();
                    packet.set_sequence(turn.sequence);
                    packet.packet(|out| encode_progress(out, report.stage, report.stages, report.thousandths, &report.text));
                    turn.sequence = packet.sequence();
                    (open, packet.bytes().to_vec())
                };
                // Not cut short by the answer, which waits for the stream: half a packet would end the connection.
                let sent = async {
                    open.write_all(&bytes).await?;
                    open.flush().await
                };
                match tokio::time::timeout(write_timeout, sent).await {
                    Ok(Ok(())) => {}
                    // The answer meets the same error, or the same client that does not read.
                    _ => return,
                }
                process.status().add(StatusCounter::BytesSent, bytes.len() as u64);
            }
        });
        Reports { turn, _end: end }
    }
}

/// Reports of a statement that has not begun to answer.
pub struct Reports {
    turn: Arc<Mutex<Turn>>,
    /// Its end wakes the task.
    _end: oneshot::Sender<()>,
}

struct Turn {
    /// Of the next packet.
    sequence: u8,
    answering: bool,
}

impl Reports {
    /// Ends them; the answer's first packet has the returned sequence number.
    pub fn end(self) -> u8 {
        let mut turn = self.turn.lock();
        turn.answering = true;
        turn.sequence
    }
}
