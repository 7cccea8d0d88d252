//! Bodies that run inside of a statement. What they do is a part of it: they have savepoints of their own, but the statement's transaction, clock
//! and view of the data. What the statement has begun, and what it will tell, is put aside meanwhile.

use std::sync::Arc;

use highkey_table::{Savepoints, StatementSavepoint, TableId};
use highkey_types::{MySqlError, Str, Value};

use super::admission::Admission;
use super::diagnostics::Diagnostics;
use super::set_var::Unhinted;
use super::state::Changing;
use super::{Instance, Session, StatusCounter, error};
use crate::execute::Failure;
use crate::measure::Profile;
use crate::plan::ExprType;

/// What a statement has put aside.
pub(crate) struct Outer {
    text: Str,
    params: Vec<Value>,
    param_types: Vec<ExprType>,
    declared_types: Vec<ExprType>,
    bind_params: bool,
    in_body: bool,
    diagnostics: Diagnostics,
    changing: Changing,
    last_insert_id: u64,
    explicit_insert_id: Option<u64>,
    next_insert_id: Option<u64>,
    found_rows: u64,
    row_count: i64,
    rows_sent: Option<u64>,
    about_conditions: bool,
    profile: Option<Profile>,
    unhinted: Unhinted,
    savepoint: Option<StatementSavepoint>,
    savepoints: Savepoints,
    tables: Arc<[TableId]>,
}

impl Session {
    /// From here on a body runs, until `end_nested`. The tables of the statement (`Routines::tables`) are not to be changed by it.
    pub(crate) fn begin_nested(&mut self) -> Outer {
        self.routines.in_use.push(self.routines.tables.clone());
        let savepoints = self.exchange_savepoints(Savepoints::default());
        let state = &mut self.state;
        Outer {
            text: self.statement_text.clone(),
            params: std::mem::take(&mut state.params),
            param_types: std::mem::take(&mut state.param_types),
            declared_types: std::mem::take(&mut state.declared_types),
            bind_params: std::mem::take(&mut state.bind_params),
            in_body: std::mem::replace(&mut state.in_body, true),
            diagnostics: std::mem::take(&mut state.diagnostics),
            changing: state.put_aside(),
            last_insert_id: state.last_insert_id,
            explicit_insert_id: state.explicit_insert_id.take(),
            next_insert_id: state.next_insert_id.take(),
            found_rows: state.found_rows,
            row_count: std::mem::take(&mut state.row_count),
            rows_sent: self.rows_sent.take(),
            about_conditions: self.about_conditions,
            profile: self.profile.take(),
            unhinted: std::mem::take(&mut self.unhinted),
            savepoint: self.transaction.statement.take(),
            savepoints,
            tables: self.routines.tables.clone(),
        }
    }

    /// The statement goes on. Warnings of the body are forgotten; if it has failed, its conditions are those of the statement, which fails too.
    pub(crate) fn end_nested(&mut self, outer: Outer, failed: bool) {
        self.routines.in_use.pop();
        self.routines.tables = outer.tables;
        self.statement_text = outer.text;
        self.rows_sent = outer.rows_sent;
        self.about_conditions = outer.about_conditions;
        self.profile = outer.profile;
        self.unhinted = outer.unhinted;
        self.transaction.statement = outer.savepoint;
        self.exchange_savepoints(outer.savepoints);
        let state = &mut self.state;
        state.params = outer.params;
        state.param_types = outer.param_types;
        state.declared_types = outer.declared_types;
        state.bind_params = outer.bind_params;
        state.in_body = outer.in_body;
        state.take_up(outer.changing);
        state.last_insert_id = outer.last_insert_id;
        state.explicit_insert_id = outer.explicit_insert_id;
        state.next_insert_id = outer.next_insert_id;
        state.found_rows = outer.found_rows;
        state.row_count = outer.row_count;
        if !failed {
            state.diagnostics = outer.diagnostics;
            self.routines.settled = false;
        }
    }

    /// The savepoints that names mean from here on; those that they meant before.
    fn exchange_savepoints(&mut self, savepoints: Savepoints) -> Savepoints {
        self.transaction.current.as_mut().map_or_else(Savepoints::default, |txn| txn.exchange_savepoints(savepoints))
    }

    /// ROLLBACK TO in such a body. Error 1305 of a savepoint that is not the body's own.
    pub(crate) fn rollback_nested_to(&mut self, name: &str) -> Result<(), Failure> {
        match &mut self.transaction.current {
            Some(txn) if txn.has_savepoint(name) => {
                self.state.count(StatusCounter::HandlerSavepointRollback, 1);
                txn.rollback_to(name).map_err(Failure::Panic)
            }
            _ => Err(error::savepoint_missing(name).into()),
        }
    }

    /// Whose turn the running statement waits for.
    pub(crate) fn admission<'i>(&self, instance: &'i Instance) -> &'i Admission {
        if self.routines.is_nested() { Admission::of_parts() } else { instance.admission() }
    }

    /// The opening bracket of a step of such a body.
    pub(crate) fn begin_nested_step(&mut self, keep_diagnostics: bool) {
        self.state.begin_part(keep_diagnostics);
        self.transaction.statement = None;
        self.routines.settled = false;
    }

    /// The closing bracket. As in MySQL what a failed step has done before stays done: it goes with the statement that it is a part of, if that fails, too. A step that may
    /// have ended within a row is undone. Whether the error ends the transaction is the statement's matter.
    pub(crate) fn end_nested_step(&mut self, done: Result<usize, Failure>) -> Result<usize, Failure> {
        let savepoint = self.transaction.statement.take();
        let e = match done {
            Err(Failure::Sql(e)) => self.name_interruption(e),
            other => return other,
        };
        if ends_within_row(&e)
            && let (Some(savepoint), Some(txn)) = (savepoint, &mut self.transaction.current)
            && let Err(half_done) = txn.rollback_to_statement(&savepoint)
        {
            return Err(Failure::Panic(half_done));
        }
        Err(Failure::Sql(e))
    }
}

/// The storage engine's own errors may come between a row and its index entries. The others come before a row or behind it, but for those that no handler takes.
fn ends_within_row(e: &MySqlError) -> bool {
    matches!(e.code, 1030 | 1071 | 1114 | 1118 | 1197 | 1712 | 1815)
}
