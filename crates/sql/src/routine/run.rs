//! The steps of a routine, one after the other, and the handlers that they jump to.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use highkey_types::{ColumnType, Level, MySqlError, Str, TypeKind, Value, Warning, errors};

use super::call::Caller;
use super::{Handled, Loaded, expr_type};
use crate::execute::{DiscardingSink, Failure, FirstRows, Outcome, keeps_diagnostics, refused_inside, to_session};
use crate::expr::{self, EvalContext};
use crate::parse::ast::{HandledCondition, Instruction, Program, Statement, Target};
use crate::plan::ExprType;
use crate::prepared::{OpenCursor, PreparedStatement, file_error};
use crate::session::{Column, LocalInfile, OkSummary, ResultSink, Session, StatusFlags, error};

/// For how long a routine keeps its thread from other tasks.
const TURN: Duration = Duration::from_millis(1);

/// A routine while it runs.
pub(super) struct Frame {
    /// Of the variables.
    pub values: Vec<Value>,
    pub types: Vec<ExprType>,
    /// The handlers that have been declared.
    visible: Vec<usize>,
    /// Those that are running, innermost last; as many of the session's `handled` are theirs.
    active: Vec<Active>,
    cursors: Vec<Option<OpenCursor>>,
    /// Of a function: the type of what it returns, and what errors call that.
    pub(super) result: Option<(ColumnType, Str)>,
    /// What it has returned.
    pub(super) returned: Option<Value>,
}

struct Active {
    handler: usize,
    /// Where CONTINUE goes on.
    resume: usize,
}

impl Frame {
    /// All variables NULL.
    pub fn new(loaded: &Loaded) -> Frame {
        Frame {
            values: vec![Value::Null; loaded.types.len()],
            types: loaded.types.iter().map(expr_type).collect(),
            visible: Vec::new(),
            active: Vec::new(),
            cursors: loaded.cursors.iter().map(|_| None).collect(),
            result: None,
            returned: None,
        }
    }
}

/// The caller's sink, and whether a result set has begun that has not ended.
struct Results<'a> {
    sink: &'a mut dyn ResultSink,
    open: bool,
}

#[async_trait]
impl ResultSink for Results<'_> {
    fn columns(&mut self, columns: &[Column]) {
        self.open = true;
        self.sink.columns(columns);
    }

    fn row(&mut self, row: &[Value]) {
        self.sink.row(row);
    }

    fn end(&mut self, summary: OkSummary) {
        self.open = false;
        self.sink.end(summary);
    }

    fn ok(&mut self, summary: OkSummary) {
        self.sink.ok(summary);
    }

    fn error(&mut self, error: &MySqlError) {
        self.sink.error(error);
    }

    fn wants_flush(&self) -> bool {
        self.sink.wants_flush()
    }

    async fn flush(&mut self) -> std::io::Result<()> {
        self.sink.flush().await
    }

    async fn local_infile(&mut self, name: &str) -> Result<Box<dyn LocalInfile + '_>, MySqlError> {
        self.sink.local_infile(name).await
    }
}

/// Steps that only say where to go on.
pub(super) fn only_jumps(instruction: &Instruction) -> bool {
    matches!(instruction, Instruction::Jump(_) | Instruction::Declare { .. } | Instruction::EndHandler { .. } | Instruction::Leave { .. })
}

/// The handler that a step in this scope has for a condition.
pub(super) fn handler_for(program: &Program, scope: usize, condition: &MySqlError, level: Level) -> Option<usize> {
    let mut scope = scope;
    loop {
        let block = &program.scopes[scope];
        // The most specific one: of equals the first.
        let mut found: Option<(u8, usize)> = None;
        for number in &block.handlers {
            for handled in &program.handlers[*number].conditions {
                let rank = match handled {
                    HandledCondition::Code(code) if *code == condition.code => 0,
                    HandledCondition::State(state) if *state == condition.sqlstate => 1,
                    HandledCondition::Warning if condition.sqlstate.is_warning() || level == Level::Warning => 2,
                    HandledCondition::NotFound if condition.sqlstate.is_not_found() => 2,
                    HandledCondition::Exception if condition.sqlstate.is_exception() && level == Level::Error => 2,
                    _ => continue,
                };
                if found.is_none_or(|(best, _)| rank < best) {
                    found = Some((rank, *number));
                }
            }
        }
        if let Some((_, number)) = found {
            return Some(number);
        }
        // What a handler does is nothing for those declared beside it.
        while program.scopes[scope].of_handler {
            scope = program.scopes[scope].parent?;
        }
        scope = program.scopes[scope].parent?;
    }
}

impl Session {
    /// Runs a routine to its end.
    pub(super) async fn run_steps(&mut self, loaded: &Loaded, frame: &mut Frame, sink: &mut dyn ResultSink) -> Result<(), Failure> {
        let mut results = Results { sink, open: false };
        let mut at = 0;
        let mut turn = Instant::now();
        while let Some(step) = loaded.program.steps.get(at) {
            self.state.process.check()?;
            if turn.elapsed() >= TURN {
                tokio::task::yield_now().await;
                turn = Instant::now();
            }
            if only_jumps(&step.instruction) {
                at = self.jump(frame, at, &step.instruction);
                continue;
            }
            let statement = loaded.statements[at].as_deref();
            let keeps = matches!(&step.instruction, Instruction::Run(run) if keeps_diagnostics(&run.statement));
            self.begin_step(statement, keeps);
            let before = self.state.diagnostics.conditions().len();
            let done = self.perform(loaded, frame, at, &mut results).await;
            let done = self.end_step(done).await;
            at = match done {
                Ok(next) => self.handle_warning(loaded, frame, at, before).unwrap_or(next),
                Err(Failure::Sql(e)) => match self.handle_error(loaded, frame, at, e) {
                    Ok(next) => {
                        if results.open {
                            let mut status = self.status_flags();
                            status.0 |= StatusFlags::MORE_RESULTS_EXISTS;
                            results.end(OkSummary { status, ..OkSummary::default() });
                        }
                        next
                    }
                    Err(e) => return Err(e.into()),
                },
                Err(other) => return Err(other),
            };
        }
        Ok(())
    }

    /// The opening bracket of a step, as that of a statement.
    fn begin_step(&mut self, statement: Option<&PreparedStatement>, keeps: bool) {
        if let Some(statement) = statement {
            self.statement_text = statement.text.clone();
        }
        self.about_conditions = keeps;
        if self.routines.is_nested() {
            return self.begin_nested_step(keeps);
        }
        self.state.begin_statement(keeps);
        self.transaction_begin_statement();
        self.gtid.begin_statement(self.transaction.is_open(self.state.config.autocommit));
    }

    /// The closing bracket: commits or undoes what is a transaction, or a part of one, by itself.
    async fn end_step(&mut self, done: Result<usize, Failure>) -> Result<usize, Failure> {
        let nested = self.routines.is_nested();
        let done = match done {
            done if nested => self.end_nested_step(done),
            Ok(next) => self.transaction_end_statement(Ok(())).await.map(|()| next).map_err(Failure::Sql),
            Err(Failure::Sql(e)) => {
                let e = self.name_interruption(e);
                self.transaction_end_statement(Err(e)).await.map(|()| 0).map_err(Failure::Sql)
            }
            // The whole statement's end is the end of these.
            Err(other) => Err(other),
        };
        if !nested {
            self.routines.settled = done.is_err();
        }
        self.end_set_vars();
        // EXECUTE of what was prepared elsewhere.
        self.leave_database();
        self.state.bind_params = false;
        self.state.params.clear();
        self.state.declared_types.clear();
        done
    }

    /// The parameters of the next statement, or expression, are these variables.
    pub(super) fn set_locals(&mut self, frame: &Frame, locals: &[usize]) {
        self.state.params.clear();
        self.state.params.extend(locals.iter().map(|local| frame.values[*local].clone()));
        self.state.declared_types.clear();
        self.state.declared_types.extend(locals.iter().map(|local| frame.types[*local].clone()));
    }

    /// Puts a value into a variable, converted as a column's. Errors 1264, 1366, 1406 and the like.
    pub(super) fn assign_local(&mut self, loaded: &Loaded, frame: &mut Frame, variable: usize, value: Value, ty: &ExprType) -> Result<(), MySqlError> {
        let Some(column) = &loaded.types[variable] else {
            frame.types[variable] = ty.clone().with_nullable(true);
            frame.values[variable] = value;
            return Ok(());
        };
        frame.values[variable] = self.converted(value, column, &loaded.program.variables[variable].name)?;
        Ok(())
    }

    /// A value as a variable or result of this type has it. Errors 1264, 1366, 1406 and the like.
    fn converted(&mut self, value: Value, ty: &ColumnType, name: &str) -> Result<Value, MySqlError> {
        let mut stored = self.state.store(value, ty, name, false, 1)?;
        if matches!(ty.kind, TypeKind::Timestamp(_)) {
            to_session(&mut stored, &self.state.config.time_zone);
        }
        Ok(stored)
    }

    fn jump(&mut self, frame: &mut Frame, at: usize, instruction: &Instruction) -> usize {
        match instruction {
            Instruction::Jump(to) => *to,
            Instruction::Declare { handler, after } => {
                frame.visible.push(*handler);
                *after
            }
            Instruction::EndHandler { to } => {
                let resume = frame.active.pop().map_or(at + 1, |active| active.resume);
                self.routines.handled.pop();
                self.state.diagnostics.clear();
                to.unwrap_or(resume)
            }
            Instruction::Leave { handlers, cursors } => {
                frame.visible.retain(|handler| !handlers.contains(handler));
                while frame.active.last().is_some_and(|active| handlers.contains(&active.handler)) {
                    frame.active.pop();
                    self.routines.handled.pop();
                }
                frame.cursors[cursors.clone()].iter_mut().for_each(|cursor| *cursor = None);
                at + 1
            }
            _ => at + 1,
        }
    }

    /// Does what a step does; where to go on.
    async fn perform(&mut self, loaded: &Loaded, frame: &mut Frame, at: usize, results: &mut Results<'_>) -> Result<usize, Failure> {
        let next = at + 1;
        match &loaded.program.steps[at].instruction {
            Instruction::Run(run) => {
                if self.routines.is_nested()
                    && let Some(e) = refused_inside(&run.statement, self.routines.nested_kind())
                {
                    return Err(e.into());
                }
                let outcome = match (&run.statement, &loaded.statements[at]) {
                    (Statement::Call(call), _) => {
                        self.count_statement(&run.statement);
                        self.call_inside(call, Caller::Routine { frame, loaded, locals: &run.locals }, results).await?
                    }
                    (Statement::GetDiagnostics(get), _) => {
                        self.count_statement(&run.statement);
                        self.set_locals(frame, &run.locals);
                        self.state.bind_params = true;
                        let values = self.diagnostics(get).await?;
                        for (target, value, ty) in values {
                            self.assign_target(loaded, frame, target, value, &ty)?;
                        }
                        // ROW_COUNT() stays.
                        return Ok(next);
                    }
                    (_, Some(statement)) => {
                        self.set_locals(frame, &run.locals);
                        if self.state.client.flags.multi_results {
                            self.run_prepared(statement, None, results).await?
                        } else {
                            match self.run_prepared(statement, None, &mut DiscardingSink::default()).await? {
                                done @ Outcome::Done { .. } => done,
                                _ => return Err(errors::sp_badselect(self.routine_name()).into()),
                            }
                        }
                    }
                    (_, None) => Outcome::ok(),
                };
                match outcome {
                    Outcome::Done { affected, .. } => self.state.row_count = affected as i64,
                    rows => self.answer(rows, true, results),
                }
                if results.wants_flush() {
                    results.flush().await?;
                }
                Ok(next)
            }
            Instruction::SelectInto { query, into } => {
                let Some(statement) = &loaded.statements[at] else { return Ok(next) };
                self.set_locals(frame, &query.locals);
                // The second is one too many.
                let mut row = FirstRows::new(2);
                let ran = self.run_prepared(statement, None, &mut row).await;
                row.ended(ran)?;
                if row.types.len() != into.len() {
                    return Err(error::wrong_number_of_columns_in_select().into());
                }
                self.state.row_count = 0;
                let count = row.rows.len();
                let Some(values) = row.rows.into_iter().next() else {
                    self.state.push_warning(Warning::warning(errors::sp_fetch_no_data()));
                    return Ok(next);
                };
                // As in MySQL they have the first row's values whatever comes behind it.
                for ((target, value), ty) in into.iter().zip(values).zip(&row.types) {
                    self.assign_target(loaded, frame, target, value, ty)?;
                }
                if count > 1 {
                    return Err(errors::too_many_rows().into());
                }
                self.state.row_count = 1;
                Ok(next)
            }
            Instruction::Set { variable, value, .. } => {
                self.set_locals(frame, &value.locals);
                self.state.bind_params = true;
                let assigned = match self.value_of(&value.expr).await {
                    Ok((value, ty)) => self.assign_local(loaded, frame, *variable, value, &ty).map_err(Failure::Sql),
                    Err(e) => Err(e),
                };
                if assigned.is_err() {
                    frame.values[*variable] = Value::Null;
                }
                assigned.map(|()| next)
            }
            Instruction::JumpUnless { condition, to, .. } => {
                self.set_locals(frame, &condition.locals);
                self.state.bind_params = true;
                let mut bound = self.bind_constant_and_open(&condition.expr).await?;
                self.resolve_calls(&mut bound).await?;
                self.resolve_subqueries(&mut bound).await?;
                Ok(if expr::eval_condition(&bound, &[], &mut self.state)? { next } else { *to })
            }
            Instruction::Return(value) => {
                // As in MySQL it has returned, if only NULL, even if that fails.
                frame.returned = Some(Value::Null);
                self.set_locals(frame, &value.locals);
                self.state.bind_params = true;
                let (value, _) = self.value_of(&value.expr).await?;
                if let Some((ty, name)) = &frame.result {
                    frame.returned = Some(self.converted(value, ty, name)?);
                }
                Ok(loaded.program.steps.len())
            }
            Instruction::Open(cursor) => {
                if frame.cursors[*cursor].is_some() {
                    return Err(errors::sp_cursor_already_open().into());
                }
                self.set_locals(frame, &loaded.program.cursors[*cursor].locals);
                let mut rows = self.rows_to_keep();
                match self.run_prepared(&loaded.cursors[*cursor], None, &mut rows).await {
                    // Not the client's: the rows go to a file.
                    Err(Failure::Io(e)) => return Err(file_error(&e).into()),
                    ran => ran?,
                };
                frame.cursors[*cursor] = Some(rows.open().map_err(|e| file_error(&e))?);
                Ok(next)
            }
            Instruction::Fetch { cursor, into } => {
                let open = frame.cursors[*cursor].as_mut().ok_or_else(errors::sp_cursor_not_open)?;
                if open.columns() != into.len() {
                    return Err(errors::sp_wrong_no_of_fetch_args().into());
                }
                let row = open.next_row().map_err(|e| file_error(&e))?.ok_or_else(errors::sp_fetch_no_data)?;
                for (variable, value) in into.iter().zip(row) {
                    self.assign_local(loaded, frame, *variable, value, &ExprType::null())?;
                }
                Ok(next)
            }
            Instruction::Close(cursor) => match frame.cursors[*cursor].take() {
                Some(_) => Ok(next),
                None => Err(errors::sp_cursor_not_open().into()),
            },
            Instruction::CaseNotFound => Err(errors::sp_case_not_found().into()),
            jump => Ok(self.jump(frame, at, jump)),
        }
    }

    fn assign_target(&mut self, loaded: &Loaded, frame: &mut Frame, target: &Target, value: Value, ty: &ExprType) -> Result<(), MySqlError> {
        match target {
            Target::User(name) => self.state.set_user_var(&name.to_lowercase().into(), value, ty.collation()),
            Target::Local(variable) => self.assign_local(loaded, frame, *variable, value, ty),
        }
    }

    /// Of the routine that runs.
    fn routine_name(&self) -> String {
        self.routines.running.last().map_or_else(String::new, |running| format!("{}.{}", running.schema, running.name))
    }

    /// Goes to the handler of the last warning that has one, of those behind the first `before`.
    fn handle_warning(&mut self, loaded: &Loaded, frame: &mut Frame, at: usize, before: usize) -> Option<usize> {
        let count = self.state.diagnostics.conditions().len();
        let has_handlers = !frame.visible.is_empty();
        let mut found = None;
        for index in (before..count).rev().filter(|_| has_handlers) {
            let condition = &self.state.diagnostics.conditions()[index];
            if condition.level == Level::Error {
                continue;
            }
            let sqlstate = self.state.diagnostics.state_and_items(index).map_or_else(|| errors::sqlstate(condition.code), |(state, _)| state);
            let error = MySqlError { code: condition.code, sqlstate, message: condition.message.clone() };
            let handler = handler_for(&loaded.program, loaded.program.steps[at].scope, &error, condition.level);
            if let Some(handler) = handler.filter(|handler| frame.visible.contains(handler)) {
                found = Some((handler, error));
                break;
            }
        }
        let (handler, error) = found?;
        Some(self.activate(loaded, frame, at, handler, error, true))
    }

    /// Goes to the error's handler, or gives it back. A KILL is for none.
    fn handle_error(&mut self, loaded: &Loaded, frame: &mut Frame, at: usize, error: MySqlError) -> Result<usize, MySqlError> {
        if self.state.process.check().is_err() {
            return Err(error);
        }
        // As in MySQL a deadlock, and a wait for a lock that was in vain, end the statement that the body runs inside of.
        if self.routines.is_nested() && !self.routines.settled && matches!(error.code, 1205 | 1213) {
            return Err(error);
        }
        let handler = handler_for(&loaded.program, loaded.program.steps[at].scope, &error, Level::Error);
        let Some(handler) = handler.filter(|handler| frame.visible.contains(handler)) else { return Err(error) };
        self.state.diagnostics.push_error(&error, self.state.config.max_error_count);
        self.state.row_count = -1;
        Ok(self.activate(loaded, frame, at, handler, error, false))
    }

    fn activate(&mut self, loaded: &Loaded, frame: &mut Frame, at: usize, handler: usize, error: MySqlError, is_warning: bool) -> usize {
        let resume = match &loaded.program.steps[at].instruction {
            Instruction::JumpUnless { resume, .. } | Instruction::Set { resume: Some(resume), .. } => *resume,
            _ => at + 1,
        };
        frame.active.push(Active { handler, resume });
        self.routines.handled.push(Handled { diagnostics: self.state.diagnostics.clone(), error, is_warning });
        loaded.program.handlers[handler].first
    }
}
