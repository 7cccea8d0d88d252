//! Locking reads under DataFusion. What a scan with FOR UPDATE or FOR SHARE is to read are the latest committed rows, locked. Two ways:
//!
//! - The scan runs first, here, row by row, and its rows take its place in the plan. Of joined tables one after the other: `lock_joins`.
//! - Where every scan of the plan locks, those in share mode (SERIALIZABLE, what INSERT … SELECT reads) lock their ranges first and then run as any
//!   other scan, in parallel if need be, under a snapshot taken after: nobody can have changed what it shows.

use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Instant;

use futures::future::BoxFuture;
use highkey_table::{Direction, IndexDef, KeyRange, LockMode, LockWaitPolicy, LockingScan, Row, RowUse, SemiConsistent, Stage, Table};
use highkey_types::{MySqlError, Value};

use super::subqueries::{has_lock, sort_members};
use super::target::{Target, to_session};
use crate::bind::ROW_KEY;
use crate::expr::{self, EvalContext};
use crate::measure::{Actual, Figures, Line};
use crate::parse::ast::LockWait;
use crate::plan::{self, Expr, ExprKind, ExprType, IndexChoice, LockSpec, Rel, RelKind};
use crate::prepared::{CursorRows, file_error};
use crate::session::{ResultSink, Session};

pub(crate) fn lock_mode(lock: LockSpec) -> LockMode {
    if lock.exclusive { LockMode::Exclusive } else { LockMode::Shared }
}

pub(crate) fn lock_policy(wait: LockWait) -> LockWaitPolicy {
    match wait {
        LockWait::Wait => LockWaitPolicy::Wait,
        LockWait::NoWait => LockWaitPolicy::NoWait,
        LockWait::SkipLocked => LockWaitPolicy::SkipLocked,
    }
}

/// How rows to lock are found: an index and its ranges, with what is left to check.
pub(crate) struct Access {
    pub index: usize,
    pub ranges: Vec<KeyRange>,
    /// Each range is a whole unique key.
    pub unique: bool,
    pub residual: Option<Expr>,
}

impl Access {
    /// The index that leads to the rows; `None`: all are read.
    pub(crate) fn used(&self) -> Option<usize> {
        let all = self.index == 0 && self.ranges.iter().any(is_whole);
        (!all).then_some(self.index)
    }
}

fn is_whole(range: &KeyRange) -> bool {
    matches!((&range.lower, &range.upper), (Bound::Unbounded, Bound::Unbounded))
}

/// Statements over fewer rows do not say how far they are.
const ROWS_UNTOLD: u64 = 1000;

/// Rows being locked one after the other.
pub(crate) enum LockingRows {
    Scan(LockingScan),
    /// A whole unique key, until it is taken.
    Key { table: Arc<Table>, index: usize, key: Option<Vec<Value>>, mode: LockMode, policy: LockWaitPolicy },
}

impl Session {
    /// The best index for a condition over a row whose field i is table column `columns[i]`; the whole table if none answers.
    pub(crate) fn access(&mut self, table: &Arc<Table>, columns: &[usize], choice: &IndexChoice, filter: Option<&Expr>) -> Result<Access, MySqlError> {
        if filter.is_some_and(Expr::is_never) {
            return Ok(Access { index: 0, ranges: Vec::new(), unique: false, residual: filter.cloned() });
        }
        let sorted = filter.and_then(|filter| sorted_lists(filter, &mut self.state));
        let filter = sorted.as_ref().or(filter);
        if let Some(filter) = filter
            && let Some(best) = plan::best_access(filter, table.def(), columns, choice)
        {
            let ranges = plan::key_ranges(&best, table.def(), &mut self.state)?;
            return Ok(Access { index: best.index, ranges, unique: best.unique, residual: best.residual });
        }
        Ok(Access { index: 0, ranges: vec![KeyRange::all()], unique: false, residual: filter.cloned() })
    }

    /// The table without the partitions in which no row satisfies the condition; see `plan::pruned`.
    pub(crate) fn pruned(&self, table: &Arc<Table>, columns: &[usize], filter: Option<&Expr>) -> Result<Arc<Table>, MySqlError> {
        match filter {
            // What its constants warn of is told where the rows are read.
            Some(filter) if table.is_partitioned() && !filter.has_subquery() => plan::pruned(table, filter, columns, &mut self.state.clone()),
            _ => Ok(table.clone()),
        }
    }

    /// `sql_safe_updates`: what changes rows of a table finds them by an index or has a LIMIT. Error 1175 otherwise.
    pub(crate) fn check_safe_change(&self, table: &Table, choice: &IndexChoice, filter: Option<&Expr>, limit: Option<&Expr>) -> Result<(), MySqlError> {
        if limit.is_some() || !self.state.variables.bool("sql_safe_updates") {
            return Ok(());
        }
        let columns: Vec<usize> = (0..table.columns().len()).collect();
        match filter.and_then(|filter| plan::best_access(filter, table.def(), &columns, choice)) {
            Some(_) => Ok(()),
            None => Err(highkey_types::errors::update_without_key_in_safe_mode()),
        }
    }

    /// Locks what a plan's scans are to lock. True: the plan is to be read under a snapshot taken now. Otherwise every scan that locks has been
    /// replaced by its rows, those of subqueries too.
    pub(crate) async fn lock_plan(&mut self, rel: &mut Rel) -> Result<bool, MySqlError> {
        let latest = self.locks_gaps() && all_lock(rel);
        let mut ctes = HashMap::new();
        locking_ctes(rel, &mut ctes);
        self.lock_joins(rel).await?;
        if latest {
            let mut scans = Vec::new();
            scans_to_lock(rel, false, &mut scans);
            for scan in &scans {
                self.lock_ahead(scan).await?;
            }
            forget_shared(rel);
        } else {
            self.materialise_in_subqueries(rel).await?;
        }
        self.materialise_locked(rel).await?;
        if !ctes.is_empty() {
            keep_locked(rel, &mut ctes);
            put_locked(rel, &ctes);
        }
        Ok(latest)
    }

    /// Locks what a scan will read.
    async fn lock_ahead(&mut self, scan: &ScanToLock) -> Result<(), MySqlError> {
        let access = self.access(&scan.table, &scan.columns, &scan.indexes, scan.filter.as_ref())?;
        let (mode, policy) = (lock_mode(scan.lock), lock_policy(scan.lock.wait));
        for range in &access.ranges {
            // A range of the clustered index is locked as one; a whole key, and rows found by another index, one by one.
            if shares(scan.lock) && self.locks_gaps() && access.index == 0 && !(access.unique && whole_key(range, &scan.table.def().indexes[access.index]).is_some()) {
                scan.table.share_range(self.txn(), range).await?;
                continue;
            }
            let mut rows = self.locking_rows(&scan.table, &access, range, mode, policy);
            while !self.next_locked(&mut rows, 1024).await?.is_empty() {}
        }
        Ok(())
    }

    /// Replaces the locking scans of subqueries by the rows that they lock: of those that depend on a row around them whatever they may want.
    async fn materialise_in_subqueries(&mut self, rel: &mut Rel) -> Result<(), MySqlError> {
        let mut scans = Vec::new();
        each_locking_scan_in_subqueries(rel, &mut |scan, filter| {
            let RelKind::Scan { table, columns, indexes, lock: Some(lock), .. } = &scan.kind else { return };
            let filter = filter.filter(|f| !f.has_subquery() && !has_outer(f)).cloned();
            let types: Vec<ExprType> = scan.fields.iter().map(|field| field.ty.clone()).collect();
            scans.push((ScanToLock { table: table.clone(), columns: columns.clone(), indexes: indexes.clone(), filter, lock: *lock }, types));
        });
        let mut locked = Vec::with_capacity(scans.len());
        for (scan, types) in &scans {
            let rows = self.locked_rows(&scan.table, &scan.columns, &scan.indexes, scan.filter.as_ref(), scan.lock).await?;
            let literals = |values: Vec<Value>| values.into_iter().zip(types).map(|(value, ty)| Expr::literal(value, ty.clone())).collect();
            locked.push(rows.iter().map(|row| literals(self.project(&scan.table, row, &scan.columns))).collect::<Vec<Vec<Expr>>>());
        }
        // In the same order.
        let mut locked = locked.into_iter();
        each_locking_scan_in_subqueries(rel, &mut |scan, _| {
            if let Some(rows) = locked.next() {
                scan.kind = RelKind::Values { rows };
            }
        });
        Ok(())
    }

    /// Replaces every locking scan of a plan by the rows it locks.
    fn materialise_locked<'a>(&'a mut self, rel: &'a mut Rel) -> BoxFuture<'a, Result<(), MySqlError>> {
        Box::pin(self.materialise(rel))
    }

    async fn materialise(&mut self, rel: &mut Rel) -> Result<(), MySqlError> {
        // The filter directly above a scan says which of its rows are to be locked.
        let filtered = match &rel.kind {
            RelKind::Filter { input, predicate } if is_locking_scan(input) && !predicate.has_subquery() => Some(predicate.clone()),
            _ => None,
        };
        if let Some(predicate) = filtered {
            let RelKind::Filter { input, .. } = &mut rel.kind else { return Ok(()) };
            return self.lock_scan(input, Some(&predicate)).await;
        }
        if is_locking_scan(rel) {
            return self.lock_scan(rel, None).await;
        }
        for input in rel.inputs_mut() {
            self.materialise_locked(input).await?;
        }
        Ok(())
    }

    pub(super) async fn lock_scan(&mut self, rel: &mut Rel, filter: Option<&Expr>) -> Result<(), MySqlError> {
        let RelKind::Scan { table, alias, columns, indexes, lock: Some(lock), .. } = &rel.kind else { return Ok(()) };
        let (table, alias, columns, indexes, lock) = (table.clone(), alias.clone(), columns.clone(), indexes.clone(), *lock);
        let began = self.profile.is_some().then(Instant::now);
        let mut rows = self.rows_to_keep();
        self.lock_rows(&table, &columns, &indexes, filter, lock, &mut Locked::Values(&mut rows)).await?;
        let rows = rows.finish().map_err(|e| file_error(&e))?;
        if let (Some(profile), Some(began)) = (&self.profile, began) {
            let all = began.elapsed();
            let actual = Actual { loops: 1, rows: rows.count() as u64, first: all, all };
            profile.add_before(vec![Line { figures: Figures::Known(actual), ..Line::new(0, format!("Locking read of {alias}")) }]);
        }
        rel.kind = RelKind::Kept { rows };
        Ok(())
    }

    /// The columns of a row that a scan puts out, as expressions see them.
    fn project(&self, table: &Table, row: &Row, columns: &[usize]) -> Vec<Value> {
        columns
            .iter()
            .map(|&c| {
                if c == ROW_KEY {
                    return Value::Bytes(row.key().to_vec());
                }
                let mut value = row.value(c);
                if matches!(table.columns()[c].ty.kind, highkey_types::TypeKind::Timestamp(_)) {
                    to_session(&mut value, &self.state.config.time_zone);
                }
                value
            })
            .collect()
    }

    /// Starts locking the rows of one range, in any order. A whole unique key is locked by itself; without such a row, the gap where it would be.
    pub(crate) fn locking_rows(&mut self, table: &Arc<Table>, access: &Access, range: &KeyRange, mode: LockMode, policy: LockWaitPolicy) -> LockingRows {
        if access.unique
            && let Some(key) = whole_key(range, &table.def().indexes[access.index])
        {
            return LockingRows::Key { table: table.clone(), index: access.index, key: Some(key.to_vec()), mode, policy };
        }
        LockingRows::Scan(table.scan_locking(self.txn(), access.index, range, Direction::Forward, mode, policy).in_any_order())
    }

    /// Counts what was read of a range of an access. `before`: the rows that the statement had read when it was begun; `ended`: it was seen that there are no
    /// more.
    pub(crate) fn note_range(&mut self, table: &Table, access: &Access, range: &KeyRange, rows: &LockingRows, before: u64, ended: bool) {
        let read = self.state.process.rows_examined().saturating_sub(before);
        let used = match rows {
            LockingRows::Key { .. } => 1,
            LockingRows::Scan(_) => read,
        };
        table.count_use(access.used(), RowUse::Fetch, used);
        let work = &mut self.state.work;
        let whole = access.index == 0 && is_whole(range);
        match rows {
            LockingRows::Key { .. } => work.read_key += 1,
            LockingRows::Scan(_) if whole => work.read_table(read, ended),
            LockingRows::Scan(_) => work.read_range(range, false, read, ended),
        }
    }

    /// The next locked rows, at most `max`; none at the end.
    pub(crate) async fn next_locked(&mut self, rows: &mut LockingRows, max: usize) -> Result<Vec<Row>, MySqlError> {
        let began = self.profile.is_some().then(Instant::now);
        let locked: Vec<Row> = match rows {
            LockingRows::Scan(scan) => scan.collect(self.txn(), max).await?,
            LockingRows::Key { table, index, key, mode, policy } => match key.take() {
                Some(key) => {
                    self.txn().breathe(1).await?;
                    table.lock_get(self.txn(), *index, &key, *mode, *policy).await?.into_iter().collect()
                }
                None => Vec::new(),
            },
        };
        self.note_read(locked.len() as u64);
        self.tell_read(began, locked.len());
        Ok(locked)
    }

    /// EXPLAIN ANALYZE is told of rows that were read since.
    fn tell_read(&self, began: Option<Instant>, rows: usize) {
        if let (Some(profile), Some(began)) = (&self.profile, began) {
            profile.changing().read(began.elapsed(), rows);
        }
    }

    /// The same of a row that was asked for conditions.
    fn tell_asked(&self, began: Option<Instant>, wanted: bool) {
        if let (Some(profile), Some(began)) = (&self.profile, began) {
            profile.changing().asked(began.elapsed(), wanted);
        }
    }

    /// The next row that satisfies the condition, locked; for `unlocks_unwanted`. Those before it that do not are unlocked again. `semi_consistent`: an UPDATE's,
    /// which asks a row that somebody else has by its last committed version before it waits for it.
    pub(crate) async fn next_wanted(&mut self, target: &Target, condition: Option<&Expr>, rows: &mut LockingRows, semi_consistent: bool) -> Result<Option<Row>, MySqlError> {
        loop {
            self.state.process.check()?;
            let locked = match rows {
                LockingRows::Scan(scan) if semi_consistent => {
                    let began = self.profile.is_some().then(Instant::now);
                    let Some(next) = scan.next_semi_consistent(self.txn()).await? else { return Ok(None) };
                    self.note_read(1);
                    self.tell_read(began, 1);
                    match next {
                        SemiConsistent::Locked(row) => Some(row),
                        SemiConsistent::Committed(row) if !self.is_wanted(target, condition, &row)? => None,
                        SemiConsistent::Committed(row) => scan.wait_for(self.txn(), &row).await?,
                    }
                }
                _ => match self.next_locked(rows, 1).await?.pop() {
                    Some(row) => Some(row),
                    None => return Ok(None),
                },
            };
            let Some(row) = locked else { continue };
            if self.is_wanted(target, condition, &row)? {
                return Ok(Some(row));
            }
            target.table.unlock(self.txn(), &row);
        }
    }

    /// Says how far a statement is that finds its rows one after the other. `before`: the rows that it had read when it began to; `limit`: as many
    /// are enough.
    pub(crate) fn tell_met(&self, table: &Table, access: &Access, stage: Stage, before: u64, limit: Option<u64>) {
        let met = self.state.process.rows_examined().saturating_sub(before);
        if met < ROWS_UNTOLD {
            return;
        }
        let progress = self.state.process.progress();
        if progress.stage() != stage {
            let rows: Result<u64, MySqlError> = access.ranges.iter().map(|range| table.estimate_range(access.index, range)).sum();
            let enough = limit.filter(|_| access.residual.is_none()).unwrap_or(u64::MAX);
            // Without an estimate nobody knows.
            progress.enter(stage, rows.unwrap_or(0).min(enough));
        }
        progress.set_done(met);
    }

    /// Says how far a statement is that has found all its rows: so many of them are changed.
    pub(crate) fn tell_changed(&self, changed: usize, found: usize) {
        if (found as u64) < ROWS_UNTOLD {
            return;
        }
        let progress = self.state.process.progress();
        if progress.stage() != Stage::ChangingRows {
            progress.enter(Stage::ChangingRows, found as u64);
        }
        progress.set_done(changed as u64);
    }

    /// Whether a row of a table satisfies a condition over all its columns.
    pub(crate) fn is_wanted(&mut self, target: &Target, condition: Option<&Expr>, row: &Row) -> Result<bool, MySqlError> {
        let Some(condition) = condition else { return Ok(true) };
        let began = self.profile.is_some().then(Instant::now);
        let mut seen = row.values();
        target.to_session(&mut seen, &self.state.config.time_zone);
        let wanted = expr::eval_condition(condition, &seen, &mut self.state)?;
        self.state.check_strict()?;
        self.tell_asked(began, wanted);
        Ok(wanted)
    }

    /// As `is_wanted`, of one of many rows: what is asked of each may take long.
    pub(crate) async fn is_one_wanted(&mut self, target: &Target, condition: Option<&Expr>, row: &Row) -> Result<bool, MySqlError> {
        if condition.is_some() {
            self.txn().breathe(1).await?;
        }
        self.is_wanted(target, condition, row)
    }

    /// Whether a row that turns out not to satisfy the condition is unlocked again: READ COMMITTED and READ UNCOMMITTED. Rows are then to be locked and
    /// looked at one by one: what a change before has locked by its own right must not be taken for a row of the scan.
    pub(crate) fn unlocks_unwanted(&self, access: &Access) -> bool {
        access.residual.is_some() && !self.locks_gaps()
    }

    /// Locks the rows that satisfy `filter`, which is over `columns`.
    pub(crate) async fn locked_rows(
        &mut self,
        table: &Arc<Table>,
        columns: &[usize],
        choice: &IndexChoice,
        filter: Option<&Expr>,
        lock: LockSpec,
    ) -> Result<Vec<Row>, MySqlError> {
        let mut rows = Vec::new();
        self.lock_rows(table, columns, choice, filter, lock, &mut Locked::Rows(&mut rows)).await?;
        Ok(rows)
    }

    async fn lock_rows(
        &mut self,
        table: &Arc<Table>,
        columns: &[usize],
        choice: &IndexChoice,
        filter: Option<&Expr>,
        lock: LockSpec,
        locked: &mut Locked<'_>,
    ) -> Result<(), MySqlError> {
        let access = self.access(table, columns, choice, filter)?;
        let unlocks = self.unlocks_unwanted(&access);
        for range in &access.ranges {
            let before = self.state.process.rows_examined();
            let mut scan = self.locking_rows(table, &access, range, lock_mode(lock), lock_policy(lock.wait));
            loop {
                let rows = self.next_locked(&mut scan, if unlocks { 1 } else { 1024 }).await?;
                if rows.is_empty() {
                    break;
                }
                for row in rows {
                    let began = self.profile.is_some().then(Instant::now);
                    let keep = match &access.residual {
                        None => true,
                        Some(condition) => {
                            self.txn().breathe(1).await?;
                            let values = self.project(table, &row, columns);
                            expr::eval_condition(condition, &values, &mut self.state)?
                        }
                    };
                    self.tell_asked(began, keep);
                    if keep {
                        match locked {
                            Locked::Rows(rows) => rows.push(row),
                            Locked::Values(kept) => {
                                kept.row(&self.project(table, &row, columns));
                                if kept.wants_flush() {
                                    kept.flush().await.map_err(|e| file_error(&e))?;
                                }
                            }
                        }
                    } else if unlocks {
                        table.unlock(self.txn(), &row);
                    }
                }
            }
            self.note_range(table, &access, range, &scan, before, true);
        }
        Ok(())
    }
}

/// What becomes of rows that were locked.
enum Locked<'a> {
    Rows(&'a mut Vec<Row>),
    /// The columns that were asked for are kept.
    Values(&'a mut CursorRows),
}

/// A shorter list is as well searched member by member.
const LONG_LIST: usize = 32;

/// The condition with its long lists of literals sorted: they are searched then, and more of them looked up by an index. None if there are none.
fn sorted_lists(filter: &Expr, cx: &mut dyn EvalContext) -> Option<Expr> {
    let is_long = |e: &Expr| matches!(&e.kind, ExprKind::In { list, sorted: false, .. } if list.len() > LONG_LIST && list.iter().all(|item| item.as_literal().is_some()));
    let mut any = false;
    filter.walk(&mut |e| any |= is_long(e));
    let mut own = any.then(|| filter.clone())?;
    own.walk_mut(&mut |e| {
        if !is_long(e) {
            return;
        }
        let ExprKind::In { list, by, sorted, .. } = &mut e.kind else { return };
        let Some(ty) = list.iter().find(|item| !item.ty.is_null_type()).map(|item| item.ty.clone()) else { return };
        let same = list.iter().all(|item| item.ty.is_null_type() || item.ty.ty.kind == ty.ty.kind);
        let mut values: Vec<Value> = list.iter().filter_map(|item| item.as_literal().cloned()).collect();
        if same && sort_members(&mut values, *by, cx) {
            *list = values.into_iter().map(|value| Expr::literal(value, ty.clone())).collect();
            *sorted = true;
        }
    });
    Some(own)
}

/// The values of a range that is one whole key.
pub(crate) fn whole_key<'r>(range: &'r KeyRange, index: &IndexDef) -> Option<&'r [Value]> {
    match (&range.lower, &range.upper) {
        // A value that no key can be compared with leaves the parts from there on open.
        (Bound::Included(lower), Bound::Included(upper)) if lower == upper && lower.len() == index.parts.len() => Some(lower),
        _ => None,
    }
}

/// A scan whose rows are locked before it runs.
struct ScanToLock {
    table: Arc<Table>,
    columns: Vec<usize>,
    indexes: IndexChoice,
    /// What the plan wants of its rows, if that is known without another row.
    filter: Option<Expr>,
    lock: LockSpec,
}

fn shares(lock: LockSpec) -> bool {
    !lock.exclusive && lock.wait == LockWait::Wait
}

/// Whether all scans of a plan lock, those of its subqueries too.
fn all_lock(rel: &Rel) -> bool {
    let mut all = own_scans_lock(rel);
    rel.for_each_expr(&mut |e, _| {
        if let ExprKind::Subquery(subquery) = &e.kind {
            all &= own_scans_lock(&subquery.plan);
        }
    });
    all
}

fn own_scans_lock(rel: &Rel) -> bool {
    !matches!(rel.kind, RelKind::Scan { lock: None, .. }) && rel.inputs().into_iter().all(own_scans_lock)
}

/// The scans to be locked ahead, where the plan is read under a later snapshot: those of subqueries, and all that share.
fn scans_to_lock(rel: &Rel, in_subquery: bool, found: &mut Vec<ScanToLock>) {
    own_scans_to_lock(rel, None, &|lock| in_subquery || shares(lock), found);
    rel.for_each_root(&mut |root| {
        root.walk(&mut |e| {
            if let ExprKind::Subquery(subquery) = &e.kind {
                scans_to_lock(&subquery.plan, true, found);
            }
        });
    });
}

/// The locking scans of a plan's subqueries and of theirs, always in one order, each with the condition directly above it.
fn each_locking_scan_in_subqueries(rel: &mut Rel, f: &mut dyn FnMut(&mut Rel, Option<&Expr>)) {
    rel.for_each_root_mut(&mut |root| {
        root.walk_mut(&mut |e| {
            if let ExprKind::Subquery(subquery) = &mut e.kind {
                each_own_locking_scan(&mut subquery.plan, None, f);
                each_locking_scan_in_subqueries(&mut subquery.plan, f);
            }
        });
    });
}

fn each_own_locking_scan(rel: &mut Rel, filter: Option<&Expr>, f: &mut dyn FnMut(&mut Rel, Option<&Expr>)) {
    if is_locking_scan(rel) {
        return f(rel, filter);
    }
    if let RelKind::Filter { input, predicate } = &mut rel.kind {
        return each_own_locking_scan(input, Some(&*predicate), f);
    }
    for input in rel.inputs_mut() {
        each_own_locking_scan(input, None, f);
    }
}

fn own_scans_to_lock(rel: &Rel, filter: Option<&Expr>, wanted: &dyn Fn(LockSpec) -> bool, found: &mut Vec<ScanToLock>) {
    match &rel.kind {
        RelKind::Scan { table, columns, indexes, lock: Some(lock), .. } if wanted(*lock) => {
            let filter = filter.filter(|f| !f.has_subquery() && !has_outer(f)).cloned();
            found.push(ScanToLock { table: table.clone(), columns: columns.clone(), indexes: indexes.clone(), filter, lock: *lock });
        }
        RelKind::Filter { input, predicate } => own_scans_to_lock(input, Some(predicate), wanted, found),
        _ => rel.inputs().into_iter().for_each(|input| own_scans_to_lock(input, None, wanted, found)),
    }
}

pub(super) fn has_outer(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |e| found |= matches!(e.kind, ExprKind::Outer { .. }));
    found
}

/// The scans that have been locked ahead run as those without a lock.
fn forget_shared(rel: &mut Rel) {
    if let RelKind::Scan { lock, .. } = &mut rel.kind {
        *lock = lock.filter(|lock| !shares(*lock));
    }
    rel.inputs_mut().into_iter().for_each(forget_shared);
}

/// The common table expressions of a plan, but for its subqueries, that lock rows.
fn locking_ctes(rel: &Rel, found: &mut HashMap<usize, Option<Rel>>) {
    if let RelKind::MaterializedCte { id, plan, .. } = &rel.kind
        && has_lock(plan)
    {
        found.insert(*id, None);
    }
    rel.inputs().into_iter().for_each(|input| locking_ctes(input, found));
}

/// Keeps their plans, which have the rows that were locked.
fn keep_locked(rel: &Rel, found: &mut HashMap<usize, Option<Rel>>) {
    if let RelKind::MaterializedCte { id, plan, .. } = &rel.kind
        && let Some(kept) = found.get_mut(id)
    {
        kept.get_or_insert_with(|| plan.as_ref().clone());
    }
    rel.inputs().into_iter().for_each(|input| keep_locked(input, found));
}

/// Puts them into subqueries: a common table expression has the same rows everywhere, whoever reads it first.
fn put_locked(rel: &mut Rel, locked: &HashMap<usize, Option<Rel>>) {
    rel.for_each_root_mut(&mut |root| {
        root.walk_mut(&mut |e| {
            if let ExprKind::Subquery(subquery) = &mut e.kind {
                put_own_locked(&mut subquery.plan, locked);
                put_locked(&mut subquery.plan, locked);
            }
        });
    });
}

fn put_own_locked(rel: &mut Rel, locked: &HashMap<usize, Option<Rel>>) {
    if let RelKind::MaterializedCte { id, plan, .. } = &mut rel.kind
        && let Some(Some(rows)) = locked.get(&*id)
    {
        **plan = rows.clone();
    }
    rel.inputs_mut().into_iter().for_each(|input| put_own_locked(input, locked));
}

fn is_locking_scan(rel: &Rel) -> bool {
    matches!(rel.kind, RelKind::Scan { lock: Some(_), .. })
}
