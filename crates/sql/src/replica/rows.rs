//! Row events: which row of ours a row image means, and what becomes of it.

use std::collections::HashMap;
use std::sync::Arc;

use highkey_table::{Direction, IndexKind, KeyRange, LockMode, LockWaitPolicy, OnDuplicate, Row, RowBatch, RowUse, Table};
use highkey_types::{MySqlError, Value};

use super::convert::Conversions;
use super::image::SourceColumn;
use super::tolerance::Tolerance;
use crate::execute::Target;
use crate::session::{Session, StatusCounter, error::err};

/// A table as a source's TABLE_MAP_EVENT tells it. The columns mean ours by position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceTable {
    pub schema: String,
    pub table: String,
    pub columns: Vec<SourceColumn>,
}

/// What a row event does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsKind {
    Write,
    Update,
    Delete,
}

impl RowsKind {
    /// As errors name the event.
    pub fn name(self) -> &'static str {
        match self {
            RowsKind::Write => "Write_rows",
            RowsKind::Update => "Update_rows",
            RowsKind::Delete => "Delete_rows",
        }
    }
}

/// One row event. Bitmaps have a bit per column of the table, the first in the lowest bit of the first byte.
#[derive(Clone, Copy, Debug)]
pub struct RowsChange<'a> {
    pub kind: RowsKind,
    pub table: &'a Arc<SourceTable>,
    /// Columns of the images before the change; empty for `Write`.
    pub before: &'a [u8],
    /// Columns of the images after the change; empty for `Delete`.
    pub after: &'a [u8],
    /// The images, one after the other.
    pub images: &'a [u8],
    /// The event says that foreign keys were not checked, and their actions not carried out.
    pub no_foreign_key_checks: bool,
}

/// A source's table and the table of ours that it means.
pub(super) struct Mapped {
    source: Arc<SourceTable>,
    target: Target,
    /// Of the source's columns that we have: those whose values are converted, and how.
    converted: Vec<bool>,
    conversions: Conversions,
}

/// A row image: the columns that it has, and the value of each of ours (NULL where it has none).
struct Image {
    present: Vec<bool>,
    values: Vec<Value>,
}

impl Image {
    fn is_whole(&self) -> bool {
        self.present.iter().all(|p| *p)
    }

    /// Takes the columns that it lacks from the image before the change.
    fn complete_with(&mut self, before: &Image) {
        for column in 0..self.values.len() {
            if !self.present[column] && before.present[column] {
                self.present[column] = true;
                self.values[column] = before.values[column].clone();
            }
        }
    }
}

/// The tables that row events of the present map mean; few, as transactions use few tables.
#[derive(Default)]
pub(super) struct MappedTables {
    tables: Vec<Mapped>,
    /// As the tables were opened.
    conversions: Conversions,
    pub tolerance: Arc<Tolerance>,
}

/// Tables remembered between two transactions.
const MAPPED_MAX: usize = 64;

impl MappedTables {
    /// Opens the table that a source's means, in the session's transaction. Errors: 1146, 1677, and those of metadata locks.
    async fn open(&mut self, session: &mut Session, source: &Arc<SourceTable>) -> Result<&Mapped, MySqlError> {
        let conversions = Conversions::parse(&session.state.instance.global_text("slave_type_conversions"));
        if conversions != self.conversions {
            self.tables.clear();
            self.conversions = conversions;
        }
        if let Some(at) = self.tables.iter().position(|m| Arc::ptr_eq(&m.source, source)) {
            if session.open_for_replica(&self.tables[at].target.table).await? {
                return Ok(&self.tables[at]);
            }
            self.tables.swap_remove(at);
        }
        let table = loop {
            let table = session.state.instance.database().catalog().table(&source.schema, &source.table)?;
            if session.open_for_replica(&table).await? {
                break table;
            }
        };
        let mut converted = Vec::with_capacity(source.columns.len());
        for (i, (theirs, ours)) in source.columns.iter().zip(table.columns()).enumerate() {
            let fits = theirs.fits(&ours.ty);
            converted.push(!fits);
            if !fits && !conversions.allow(theirs, &ours.ty) {
                let (theirs, ours) = (theirs.describe(), &ours.ty);
                return Err(err(
                    1677,
                    format!("Column {i} of table '{}.{}' cannot be converted from type '{theirs}' to type '{ours}'", source.schema, source.table),
                ));
            }
        }
        if self.tables.len() == MAPPED_MAX {
            self.tables.swap_remove(0);
        }
        self.tables.push(Mapped { source: source.clone(), target: Target::new(&table, &session.state)?, converted, conversions });
        Ok(self.tables.last().expect("pushed above"))
    }

    /// Applies a row event in the session's transaction. Errors: 1032 for a row that is not there, 1062, and those of `open`.
    pub(super) async fn apply(&mut self, session: &mut Session, change: &RowsChange<'_>) -> Result<(), MySqlError> {
        let tolerance = self.tolerance.clone();
        let mapped = self.open(session, change.table).await?;
        session.txn().set_foreign_key_checks(!change.no_foreign_key_checks);
        session.prepare_cascades(mapped.table());
        match change.kind {
            RowsKind::Write => mapped.insert(session, change, &tolerance).await,
            RowsKind::Update | RowsKind::Delete => mapped.change(session, change, &tolerance).await,
        }
    }
}

impl Mapped {
    fn table(&self) -> &Arc<Table> {
        &self.target.table
    }

    async fn insert(&self, session: &mut Session, change: &RowsChange<'_>, tolerance: &Tolerance) -> Result<(), MySqlError> {
        let mut images = change.images;
        let mut rows = Vec::new();
        // An image without columns has no bytes: then it is one row.
        while rows.is_empty() || !images.is_empty() {
            let mut image = self.image(change.after, &mut images)?;
            self.complete(session, &mut image)?;
            rows.push(image.values);
        }
        session.state.count(StatusCounter::HandlerWrite, rows.len() as u64);
        self.table().count_use(None, RowUse::Insert, rows.len() as u64);
        if !tolerance.is_strict() {
            let mode = if tolerance.idempotent { OnDuplicate::Replace } else { OnDuplicate::Error };
            for row in &rows {
                let before = tolerance.mark(session);
                let inserted = self.table().insert(session.txn(), std::slice::from_ref(row), mode).await;
                tolerance.settle(session, before, inserted.map(drop))?;
            }
            return Ok(());
        }
        let report = self.table().insert(session.txn(), &rows, OnDuplicate::Error).await?;
        debug_assert_eq!(report.inserted, rows.len() as u64);
        Ok(())
    }

    /// What an inserted row's image does not have: defaults, and generated columns.
    fn complete(&self, session: &mut Session, image: &mut Image) -> Result<(), MySqlError> {
        if image.is_whole() {
            return Ok(());
        }
        for column in 0..image.values.len() {
            let def = &self.target.columns()[column];
            if image.present[column] || def.generated.is_some() {
                continue;
            }
            image.values[column] = self.target.default(&mut session.state, column, &image.values, true, 1)?;
        }
        self.generate(session, image)
    }

    /// Computes generated columns if the image lacks any.
    fn generate(&self, session: &mut Session, image: &mut Image) -> Result<(), MySqlError> {
        let lacks = self.target.columns().iter().zip(&image.present).any(|(def, present)| def.generated.is_some() && !present);
        if lacks { self.target.generate(&mut session.state, &mut image.values, true, 1) } else { Ok(()) }
    }

    async fn change(&self, session: &mut Session, change: &RowsChange<'_>, tolerance: &Tolerance) -> Result<(), MySqlError> {
        let mut images = change.images;
        let mut wanted = Vec::new();
        while !images.is_empty() {
            let before = self.image(change.before, &mut images)?;
            let after = match change.kind {
                RowsKind::Update => Some(self.image(change.after, &mut images)?),
                _ => None,
            };
            wanted.push((before, after));
        }
        let Some((first, _)) = wanted.first() else { return Ok(()) };
        // It has columns only that we have not: every row would do.
        if !first.present.contains(&true) {
            return if tolerance.passes(1032) { Ok(()) } else { Err(self.not_found()) };
        }
        if let Some(index) = self.identifying_index(first) {
            self.table().count_use(Some(index), RowUse::Fetch, wanted.len() as u64);
            for (before, after) in wanted {
                let key: Vec<Value> = self.table().indexes()[index].parts.iter().map(|part| before.values[part.column].clone()).collect();
                let found = self.table().lock_get(session.txn(), index, &key, LockMode::Exclusive, LockWaitPolicy::Wait).await?;
                self.change_found(session, found, after, tolerance).await?;
            }
            return Ok(());
        }
        if let Some((index, parts)) = self.narrowing_index(first) {
            self.table().count_use(Some(index), RowUse::Fetch, wanted.len() as u64);
            for (before, after) in wanted {
                let key: Vec<Value> = self.table().indexes()[index].parts[..parts].iter().map(|part| before.values[part.column].clone()).collect();
                let found = self.find_in(session, index, &KeyRange::prefix(&key), &before).await?;
                self.change_found(session, found, after, tolerance).await?;
            }
            return Ok(());
        }
        let found = self.find_all(session, wanted, tolerance).await?;
        for (row, after) in found {
            self.change_found(session, Some(row), after, tolerance).await?;
        }
        Ok(())
    }

    /// Changes or deletes the row that was looked for. Error 1032 if it is not there.
    async fn change_found(&self, session: &mut Session, found: Option<Row>, after: Option<Image>, tolerance: &Tolerance) -> Result<(), MySqlError> {
        match found {
            Some(row) => {
                let before = tolerance.mark(session);
                let changed = self.change_row(session, row, after).await;
                tolerance.settle(session, before, changed)
            }
            None if tolerance.passes(1032) => Ok(()),
            None => Err(self.not_found()),
        }
    }

    async fn change_row(&self, session: &mut Session, old: Row, after: Option<Image>) -> Result<(), MySqlError> {
        let (counter, what) = if after.is_some() { (StatusCounter::HandlerUpdate, RowUse::Update) } else { (StatusCounter::HandlerDelete, RowUse::Delete) };
        session.state.count(counter, 1);
        self.table().count_use(self.table().index_of_changes(None), what, 1);
        let Some(mut after) = after else { return self.table().delete(session.txn(), &old).await };
        if !after.is_whole() {
            for (column, value) in old.values().into_iter().enumerate() {
                if !after.present[column] {
                    after.values[column] = value;
                }
            }
            self.generate(session, &mut after)?;
        }
        self.table().update(session.txn(), &old, &after.values).await.map(drop)
    }

    /// A unique index whose key the image has whole: the primary key, else one without NULLs.
    fn identifying_index(&self, image: &Image) -> Option<usize> {
        let columns = self.table().columns();
        self.table().indexes().iter().position(|index| {
            let whole = index.parts.iter().all(|part| image.present[part.column]);
            whole && (index.kind == IndexKind::Primary || index.kind == IndexKind::Unique && index.parts.iter().all(|part| !columns[part.column].nullable))
        })
    }

    /// The index of which the image has the most leading columns, and how many those are.
    fn narrowing_index(&self, image: &Image) -> Option<(usize, usize)> {
        let parts = |index: usize| self.table().indexes()[index].parts.iter().take_while(|part| image.present[part.column]).count();
        let of_values = |index: &usize| self.table().indexes()[*index].kind != IndexKind::FullText;
        (1..self.table().indexes().len()).filter(of_values).map(|index| (index, parts(index))).filter(|(_, parts)| *parts > 0).max_by_key(|(_, parts)| *parts)
    }

    /// The first row of a range that is as the image says, locked.
    async fn find_in(&self, session: &mut Session, index: usize, range: &KeyRange, before: &Image) -> Result<Option<Row>, MySqlError> {
        let wanted = self.comparable(&before.present, &before.values);
        let latest = session.txn().fresh_snapshot();
        let mut scan = self.table().scan_at(&latest, index, range, Direction::Forward)?;
        let mut batch = RowBatch::new();
        while scan.next_batch(&mut batch)? {
            for at in 0..batch.len() {
                if self.comparable_row(&before.present, batch.row(at)) == wanted
                    && let Some(row) = self.lock_found(session, batch.key(at), &before.present, &wanted).await?
                {
                    return Ok(Some(row));
                }
            }
        }
        Ok(None)
    }

    /// The rows of all images in one pass over the table, each locked, with what becomes of it in the end: the event may change a row that it has changed
    /// before. Of equal rows any is as good as another. Error 1032.
    async fn find_all(&self, session: &mut Session, wanted: Vec<(Image, Option<Image>)>, tolerance: &Tolerance) -> Result<Vec<(Row, Option<Image>)>, MySqlError> {
        let present = wanted[0].0.present.clone();
        let keys: Vec<Vec<u8>> = wanted.iter().map(|(before, _)| self.comparable(&present, &before.values)).collect();
        // By what they hold: how many are wanted, and those that are there.
        let mut rows: HashMap<&[u8], (usize, Vec<Row>)> = HashMap::with_capacity(keys.len());
        keys.iter().for_each(|key| rows.entry(key).or_default().0 += 1);
        let mut missing = keys.len();
        let latest = session.txn().fresh_snapshot();
        let mut scan = self.table().scan_at(&latest, 0, &KeyRange::all(), Direction::Forward)?;
        let mut batch = RowBatch::new();
        while missing > 0 && scan.next_batch(&mut batch)? {
            for at in 0..batch.len() {
                let key = self.comparable_row(&present, batch.row(at));
                let Some((_, found)) = rows.get_mut(&key[..]).filter(|(wanted, found)| found.len() < *wanted) else { continue };
                let Some(row) = self.lock_found(session, batch.key(at), &present, &key).await? else { continue };
                found.push(row);
                missing -= 1;
            }
        }
        let mut found: Vec<(Row, Option<Image>)> = Vec::with_capacity(keys.len());
        // What the rows hold that have been changed, where one that is missing may be one of them.
        let mut made: HashMap<Vec<u8>, Vec<usize>> = HashMap::new();
        for (key, (before, mut after)) in keys.iter().zip(wanted) {
            if let Some(after) = after.as_mut().filter(|_| missing > 0) {
                after.complete_with(&before);
            }
            let at = match rows.get_mut(&key[..]).and_then(|(_, rows)| rows.pop()) {
                Some(row) => {
                    found.push((row, after));
                    found.len() - 1
                }
                None => match made.get_mut(key).and_then(Vec::pop) {
                    Some(at) => {
                        // An image that tells only what changed says nothing of what an earlier one has changed.
                        if let (Some(after), Some(earlier)) = (after.as_mut(), found[at].1.as_ref()) {
                            after.complete_with(earlier);
                        }
                        found[at].1 = after;
                        at
                    }
                    None if tolerance.passes(1032) => continue,
                    None => return Err(self.not_found()),
                },
            };
            if let Some(after) = found[at].1.as_ref().filter(|_| missing > 0) {
                made.entry(self.comparable(&present, &after.values)).or_default().push(at);
            }
        }
        Ok(found)
    }

    /// Locks a row that a scan found; None if it has changed since.
    async fn lock_found(&self, session: &mut Session, key: &[u8], present: &[bool], wanted: &[u8]) -> Result<Option<Row>, MySqlError> {
        let row = self.table().lock_found(session.txn(), key, LockMode::Exclusive, LockWaitPolicy::Wait).await?;
        Ok(row.filter(|row| self.comparable_row(present, row.data()) == wanted))
    }

    /// Equal for rows that are equal in the columns of an image: the encoded row with NULL in the others.
    fn comparable(&self, present: &[bool], values: &[Value]) -> Vec<u8> {
        let mut bytes = Vec::new();
        if present.iter().all(|p| *p) {
            self.table().layout().encode(values, &mut bytes);
        } else {
            let masked: Vec<Value> = values.iter().zip(present).map(|(value, present)| if *present { value.clone() } else { Value::Null }).collect();
            self.table().layout().encode(&masked, &mut bytes);
        }
        bytes
    }

    fn comparable_row(&self, present: &[bool], row: &[u8]) -> Vec<u8> {
        if present.iter().all(|p| *p) { row.to_vec() } else { self.comparable(present, &self.table().layout().values(row)) }
    }

    fn not_found(&self) -> MySqlError {
        err(1032, format!("Can't find record in '{}'", self.table().def().name))
    }

    /// Takes one image from the front of `images`.
    fn image(&self, columns: &[u8], images: &mut &[u8]) -> Result<Image, MySqlError> {
        let ours = self.table().columns();
        let bit = |bits: &[u8], at: usize| bits.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1);
        let mut present: Vec<bool> = (0..self.source.columns.len()).map(|column| bit(columns, column)).collect();
        let count = present.iter().filter(|p| **p).count();
        let damaged = |what: &str| err(1594, format!("Relay log read failure: a row image of table '{}.{}': {what}", self.source.schema, self.source.table));
        if count == 0 && !images.is_empty() {
            return Err(damaged("it has no columns"));
        }
        let (nulls, rest) = images.split_at_checked(count.div_ceil(8)).ok_or_else(|| damaged("it ends in its NULL bits"))?;
        *images = rest;
        let mut values = vec![Value::Null; ours.len()];
        let mut number = 0;
        for (column, theirs) in self.source.columns.iter().enumerate() {
            if !present[column] {
                continue;
            }
            if !bit(nulls, number) {
                match ours.get(column) {
                    Some(def) => {
                        let decoded = match self.converted[column] {
                            false => theirs.decode(&def.ty, images),
                            true => theirs.convert(&def.ty, self.conversions, images),
                        };
                        values[column] = decoded.map_err(|what| damaged(&format!("column '{}': {what}", def.name)))?;
                    }
                    // We have fewer columns.
                    None => theirs.skip(images).map_err(|what| damaged(&format!("column {column}: {what}")))?,
                }
            }
            number += 1;
        }
        present.resize(ours.len(), false);
        Ok(Image { present, values })
    }
}
