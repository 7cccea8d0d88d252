//! Functions that the session runs: those that change tables, call procedures, set variables of the session, lock what they read or name a variable in LIMIT, and
//! those that call such a function.
//!
//! Their steps are run as a procedure's, inside of a statement (`session/nested.rs`). A query is evaluated on other threads, which have no session: they ask for
//! each call and wait for its answer. The session, which waits for the query's rows meanwhile, runs what is asked for.

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};

use futures::future::BoxFuture;
use highkey_table::RoutineDef;
use highkey_types::{Collation, MySqlError, Str, Value, errors};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::StoredFunction;
use super::call::Level;
use super::function::as_expression;
use super::run::Frame;
use crate::execute::{BoundTables, DiscardingSink, Failure, query_of};
use crate::expr::{EvalContext, Raised, eval};
use crate::plan::{Expr, ExprKind, Field, Rel};
use crate::session::{Session, SessionState, blocking};

type UserVars = HashMap<Str, (Value, &'static Collation)>;

/// A call that a thread of a query waits for.
pub(crate) struct FunctionCall {
    function: Arc<StoredFunction>,
    /// What errors call its value.
    result: Str,
    args: Vec<Value>,
    /// As what has been evaluated before has left them.
    user_vars: UserVars,
    last_insert_id: u64,
    answer: Sender<Answer>,
}

/// What comes of it.
struct Answer {
    value: Result<(Value, Raised), MySqlError>,
    user_vars: UserVars,
}

/// How the threads of a query ask for calls.
#[derive(Clone)]
pub(crate) struct FunctionCalls {
    calls: UnboundedSender<FunctionCall>,
    any: Arc<AtomicBool>,
}

impl FunctionCalls {
    pub fn channel() -> (FunctionCalls, UnboundedReceiver<FunctionCall>) {
        let (calls, asked) = unbounded_channel();
        (FunctionCalls { calls, any: Arc::default() }, asked)
    }

    /// There has been one. What it did cannot be done again.
    pub fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// The value of a call that something evaluated in `state` makes. The thread that asks serves nobody else meanwhile. Error 1317 if nobody wants the query's rows any more.
    pub fn call(&self, state: &mut SessionState, function: &Arc<StoredFunction>, result: &str, args: Vec<Value>) -> Result<Value, MySqlError> {
        self.any.store(true, Ordering::Relaxed);
        let (answer, answered) = channel();
        let (user_vars, last_insert_id) = (state.user_vars.clone(), state.last_insert_id);
        let call = FunctionCall { function: function.clone(), result: result.into(), args, user_vars, last_insert_id, answer };
        if self.calls.send(call).is_err() {
            return Err(errors::query_interrupted());
        }
        let answer = blocking(|| answered.recv()).map_err(|_| errors::query_interrupted())?;
        state.user_vars = answer.user_vars;
        let (value, raised) = answer.value?;
        raised.first.into_iter().for_each(|warning| state.warn_from_function(warning));
        Ok(value)
    }
}

impl Session {
    /// Waits for something of a query, and runs the functions that it calls meanwhile.
    pub(crate) async fn serve_calls<T>(&mut self, calls: &mut Option<UnboundedReceiver<FunctionCall>>, work: impl Future<Output = T>) -> Result<T, Failure> {
        let Some(calls) = calls else { return Ok(work.await) };
        let mut work = pin!(work);
        loop {
            let call = tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                Some(call) = calls.recv() => call,
            };
            self.answer_call(call).await?;
        }
    }

    async fn answer_call(&mut self, call: FunctionCall) -> Result<(), Failure> {
        self.state.user_vars = call.user_vars;
        let last_insert_id = std::mem::replace(&mut self.state.last_insert_id, call.last_insert_id);
        let called = self.call_function(&call.function, &call.result, call.args).await;
        self.state.last_insert_id = last_insert_id;
        let value = match called {
            Ok(answer) => Ok(answer),
            Err(Failure::Sql(e)) => Err(e),
            Err(other) => return Err(other),
        };
        // Who has asked may have ended.
        let _ = call.answer.send(Answer { value, user_vars: self.state.user_vars.clone() });
        Ok(())
    }

    /// A statement begins, its tables open, that calls functions which the session runs: its tables are out of their reach, and what they do is a part of it.
    /// Error 1424.
    pub(crate) fn begin_calls(&mut self, tables: &BoundTables) -> Result<(), MySqlError> {
        if tables.called.iter().any(|function| self.is_running(function.def())) {
            return Err(errors::sp_no_recursion());
        }
        self.routines.tables = tables.ids();
        self.begin_part_of_transaction();
        Ok(())
    }

    fn is_running(&self, def: &RoutineDef) -> bool {
        self.routines.running.iter().any(|running| running.kind == Some(def.kind) && running.schema == def.schema && running.name == def.name)
    }

    /// The value of a function, of arguments as its parameters have them, and what RETURN has raised. `result`: what errors call the value.
    pub(crate) fn call_function<'a>(&'a mut self, function: &'a StoredFunction, result: &'a str, args: Vec<Value>) -> BoxFuture<'a, Result<(Value, Raised), Failure>> {
        Box::pin(Level(Box::pin(self.run_function(function, result, args))))
    }

    async fn run_function(&mut self, function: &StoredFunction, result: &str, args: Vec<Value>) -> Result<(Value, Raised), Failure> {
        let def = function.def();
        let loaded = self.load_definition(def)?;
        let mut frame = Frame::new(&loaded);
        frame.result = Some((function.returns().clone(), result.into()));
        for (variable, value) in frame.values.iter_mut().zip(args) {
            *variable = value;
        }
        // ROW_COUNT() is that of the statement before, until the function has a statement.
        let row_count = self.state.row_count;
        let outer = self.begin_nested();
        self.state.row_count = row_count;
        let depth = self.routines.running.len();
        let ran = match self.check_depth().and_then(|()| self.enter_routine(def)) {
            Ok(()) => self.run_steps(&loaded, &mut frame, &mut DiscardingSink::default()).await,
            Err(e) => Err(e.into()),
        };
        self.leave_routines(depth);
        let raised = self.state.diagnostics.take();
        let settled = self.routines.settled;
        // Outside, the error is all that there is of its conditions.
        self.end_nested(outer, false);
        self.routines.settled = settled && ran.is_err();
        ran?;
        let value = frame.returned.ok_or_else(|| errors::sp_noreturnend(&def.name))?;
        Ok((as_expression(value), raised))
    }

    /// Calls of functions that the session runs become their values, and what is around them, too, in an expression of no row.
    pub(crate) fn resolve_calls<'a>(&'a mut self, expr: &'a mut Expr) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(self.resolve_calls_in(expr))
    }

    async fn resolve_calls_in(&mut self, expr: &mut Expr) -> Result<(), Failure> {
        if !expr.calls_session() {
            return Ok(());
        }
        let ty = expr.ty.clone();
        let value = match &mut expr.kind {
            ExprKind::Stored { function, name, args } if function.runs_in_session() => {
                let mut values = Vec::with_capacity(args.len());
                for arg in args {
                    self.resolve_calls(arg).await?;
                    self.resolve_subqueries(arg).await?;
                    values.push(eval(arg, &[], &mut self.state)?);
                }
                let values = function.arguments(values, &mut self.state)?;
                let (value, raised) = self.call_function(function, name, values).await?;
                raised.first.into_iter().for_each(|warning| self.state.warn_from_function(warning));
                value
            }
            // Which calls are made depends on the other operands.
            _ => {
                let query = query_of(Rel::dual().project(vec![expr.clone()], vec![Field::computed("", ty.clone())]));
                let rows = self.rows_of(&query).await?;
                rows.into_iter().flatten().next().unwrap_or(Value::Null)
            }
        };
        *expr = Expr::literal(value, ty);
        Ok(())
    }
}
