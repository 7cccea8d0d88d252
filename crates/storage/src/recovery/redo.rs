//! Redo: scan the log from the checkpoint, find who was open, apply every page's operations in parallel.

use super::{Loser, Recovered};
use crate::buffer::BufferPool;
use crate::error::{Error, Result};
use crate::ids::{Lsn, PageId, TxnId};
use crate::page::{header, redo as page_redo};
use crate::sync::thread;
use crate::wal::{Control, Evidence, Kind, Record, Remains, Wal};
use ahash::AHashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Records kept in memory at once.
const CHUNK_BYTES: u64 = 32 << 20;

/// What the first pass learns.
#[derive(Default)]
struct Analysis {
    open: AHashMap<TxnId, Loser>,
    /// The last record that makes the page anew: nothing before it matters.
    initialised: AHashMap<PageId, Lsn>,
    next_txn_id: TxnId,
    max_ts: u64,
    records: u64,
    end: Lsn,
}

pub(super) fn recover(
    wal: &Wal,
    pool: &BufferPool,
    control: &Control,
    newest_copy: Lsn,
    visit: &mut dyn FnMut(&Record),
) -> Result<(Recovered, Remains)> {
    wal.check_files(control.redo_lsn)?;
    let found = analyse(wal, control, visit)?;
    let known = [
        Evidence { durable: control.durable, source: "the control file" },
        Evidence { durable: Lsn(newest_copy.0.saturating_add(1)), source: "a page in the doublewrite file" },
    ];
    // Before redo evicts a page, the log that it has seen is durable. A page newer than that is refused when it is read.
    let remains = wal.resume_at(found.end, &known)?;
    let pages_redone = redo_all(wal, pool, control.redo_lsn, &found)?;
    let mut losers: Vec<Loser> = found.open.into_values().collect();
    losers.sort_by_key(|l| l.first_lsn);
    let recovered = Recovered {
        losers,
        next_txn_id: found.next_txn_id,
        max_ts: found.max_ts,
        created: false,
        clean: found.records == 0,
        records_scanned: found.records,
        pages_redone,
        pages_restored: 0,
    };
    Ok((recovered, remains))
}

fn analyse(wal: &Wal, control: &Control, visit: &mut dyn FnMut(&Record)) -> Result<Analysis> {
    let mut a = Analysis { next_txn_id: control.next_txn_id, max_ts: control.max_ts, ..Analysis::default() };
    let mut scan = wal.scan(control.redo_lsn);
    while let Some(record) = scan.next()? {
        a.records += 1;
        if record.txn.0 != 0 {
            a.next_txn_id = a.next_txn_id.max(TxnId(record.txn.0 + 1));
        }
        match record.kind {
            Kind::Data | Kind::Clr => {
                let lsn = record.lsn;
                let open = a.open.entry(record.txn);
                open.and_modify(|l| l.last_lsn = lsn).or_insert(Loser { id: record.txn, first_lsn: lsn, last_lsn: lsn, prepared: None });
            }
            Kind::Commit => {
                a.max_ts = a.max_ts.max(record.commit_ts());
                a.open.remove(&record.txn);
            }
            Kind::Abort => {
                a.open.remove(&record.txn);
            }
            Kind::Prepare => {
                let (lsn, (first, _)) = (record.lsn, record.prepared());
                let begun = if first.is_none() { lsn } else { first };
                let loser = a.open.entry(record.txn).or_insert(Loser { id: record.txn, first_lsn: begun, last_lsn: lsn, prepared: None });
                if !first.is_none() {
                    // A copy: what came before it is not needed any more.
                    loser.first_lsn = first;
                }
                (loser.last_lsn, loser.prepared) = (lsn, Some(lsn));
            }
            Kind::RollBack => {
                if let Some(loser) = a.open.get_mut(&record.txn) {
                    (loser.last_lsn, loser.prepared) = (record.lsn, None);
                }
            }
            Kind::System | Kind::Events | Kind::Undo => {}
        }
        for part in record.parts() {
            let (page, op, _) = part?;
            if page_redo::is_initialising(op) {
                a.initialised.insert(page, record.lsn);
            }
        }
        visit(&record);
    }
    a.end = scan.at;
    Ok(a)
}

fn redo_all(wal: &Wal, pool: &BufferPool, start: Lsn, found: &Analysis) -> Result<u64> {
    let workers = thread::available_parallelism().map_or(1, |n| n.get()).min(16);
    let redone = AtomicU64::new(0);
    let mut scan = wal.scan(start);
    let mut finished = false;
    while !finished {
        let (mut records, mut bytes) = (Vec::new(), 0);
        while bytes < CHUNK_BYTES {
            match scan.next()? {
                Some(record) if record.lsn < found.end => {
                    bytes += record.end().0 - record.lsn.0;
                    records.push(record);
                }
                _ => {
                    finished = true;
                    break;
                }
            }
        }
        let mut by_page: AHashMap<PageId, Vec<(usize, u8, &[u8])>> = AHashMap::new();
        for (i, record) in records.iter().enumerate() {
            for part in record.parts() {
                let (page, op, payload) = part?;
                if found.initialised.get(&page).is_none_or(|lsn| *lsn <= record.lsn) {
                    by_page.entry(page).or_default().push((i, op, payload));
                }
            }
        }
        let mut pages: Vec<_> = by_page.into_iter().collect();
        pages.sort_unstable_by_key(|(page, _)| *page);
        let share = pages.len().div_ceil(workers).max(1);
        let records = &records;
        let redone = &redone;
        let results: Vec<Result<()>> = thread::scope(|scope| {
            let tasks: Vec<_> = pages
                .chunks(share)
                .map(|mine| scope.spawn(move || mine.iter().try_for_each(|(page, ops)| redo_page(pool, *page, ops, records, redone))))
                .collect();
            tasks.into_iter().map(|t| t.join().unwrap_or(Err(Error::Stopped))).collect()
        });
        results.into_iter().collect::<Result<()>>()?;
    }
    Ok(redone.into_inner())
}

/// Applies to one page what the page has not seen.
fn redo_page(pool: &BufferPool, id: PageId, ops: &[(usize, u8, &[u8])], records: &[Record], redone: &AtomicU64) -> Result<()> {
    let mut page = pool.fix_redo(id)?;
    let mut changed = false;
    // Written again also if it has seen all: the write that a failed sync was to make durable may be seen in memory, and be on no disk.
    if let (Some((first, ..)), true) = (ops.first(), header::page_type(&page) != 0) {
        pool.mark_redone(&page, records[*first].lsn);
    }
    for of_record in ops.chunk_by(|a, b| a.0 == b.0) {
        let lsn = records[of_record[0].0].lsn;
        if header::lsn(&page) >= lsn {
            continue;
        }
        for (_, op, payload) in of_record {
            let unformatted = header::page_type(&page) == 0;
            if unformatted && !page_redo::is_initialising(*op) {
                return Err(Error::corrupt(id, format!("torn or lost, and the log from {lsn} on does not make it anew")));
            }
            page_redo::apply(*op, page.bytes_mut(), payload)?;
            header::set_page_id(page.bytes_mut(), id);
        }
        header::set_lsn(page.bytes_mut(), lsn);
        pool.mark_redone(&page, lsn);
        changed = true;
    }
    if changed {
        redone.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}
