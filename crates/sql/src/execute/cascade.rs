//! What foreign keys' actions need of the session: generated columns of the rows that they change.

use std::collections::BTreeSet;
use std::sync::Arc;

use highkey_table::{Catalog, Generator, LockMode, LockWaitPolicy, Row, Table, TriggerEvent};
use highkey_types::{MySqlError, Value};
use parking_lot::Mutex;

use super::Failure;
use super::target::Target;
use crate::session::{Session, SessionState};

/// A copy of the session, that computes.
struct SessionGenerator(Mutex<SessionState>);

impl Generator for SessionGenerator {
    fn generate(&self, table: &Arc<Table>, row: &mut Vec<Value>) -> Result<(), MySqlError> {
        let mut state = self.0.lock();
        Target::new(table, &state)?.generate(&mut state, row, false, 1)
    }
}

/// Whether an action that a change of `table` may set off changes a row with generated columns.
fn may_generate(catalog: &Catalog, table: &Table) -> bool {
    let mut seen = BTreeSet::new();
    let changed = |table: &Table| -> Vec<_> {
        let acting = table.referencing().filter(|(_, key)| !key.on_delete.refuses() || !key.on_update.refuses());
        acting.filter_map(|((schema, name), _)| catalog.find_table(schema, name)).collect()
    };
    let mut waiting = changed(table);
    while let Some(child) = waiting.pop() {
        if seen.insert(child.id()) {
            if child.columns().iter().any(|column| column.generated.is_some()) {
                return true;
            }
            waiting.extend(changed(&child));
        }
    }
    false
}

impl Session {
    /// Before a statement's first change of `table`.
    pub(crate) fn prepare_cascades(&mut self, table: &Table) {
        if table.cascades() && may_generate(&self.state.instance.database().catalog(), table) {
            let generator = Arc::new(SessionGenerator(Mutex::new(self.state.clone())));
            self.txn().set_generator(generator);
        }
    }

    /// A row that a locking read gave before other rows of the table were changed: foreign keys' actions, or those of triggers, may have changed or deleted it.
    /// Those reach no row of a table with partitions (1506), of which the key alone does not tell a misplaced row from another one.
    pub(crate) async fn row_again(&mut self, table: &Arc<Table>, row: Row) -> Result<Option<Row>, MySqlError> {
        self.state.work.read_rnd += 1;
        self.state.work.read_key += 1;
        match !table.is_partitioned() && (table.cascades() || !table.def().triggers.is_empty()) {
            true => table.lock_found(self.txn(), row.key(), LockMode::Exclusive, LockWaitPolicy::Wait).await,
            false => Ok(Some(row)),
        }
    }

    /// Deletes a row. Under IGNORE one that is referenced stays, with a warning; MySQL counts it all the same.
    pub(crate) async fn delete_row(&mut self, target: &Target, row: &Row, ignore: bool) -> Result<(), Failure> {
        if target.runs(TriggerEvent::Delete) {
            return Box::pin(self.delete_with_triggers(target, row, ignore)).await;
        }
        self.delete_plainly(target, row, ignore).await.map(|_| ())
    }

    /// False: it stays.
    pub(super) async fn delete_plainly(&mut self, target: &Target, row: &Row, ignore: bool) -> Result<bool, Failure> {
        let (txn, state) = self.txn_and_state();
        match target.table.delete(txn, row).await {
            Ok(()) => Ok(true),
            Err(e) if ignore && e.code == 1451 => {
                state.push_ignored(e);
                Ok(false)
            }
            Err(e) => Err(e.into()),
        }
    }
}

/// How many rows a statement that changes them reads at once: one if changing one may change the next.
pub(crate) fn rows_at_once(table: &Table, few: bool) -> usize {
    if few || table.cascades() || !table.def().triggers.is_empty() { 1 } else { 256 }
}
