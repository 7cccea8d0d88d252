//! Stored functions: what a body comes to, and its steps, which run inside of an expression.
//!
//! A function is evaluated wherever expressions are, on the threads of a query too. What it asks of the session it asks of the surroundings of that expression;
//! one that takes the whole session is run by that (`in_session.rs`).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use highkey_table::{RoutineDef, View};
use highkey_types::{ColumnType, Level, MySqlError, SqlMode, Str, StoreContext, TimeZone, TypeKind, Value, Warning, errors};

use super::Handled;
use super::conditions::{condition, raise_with, unnamed};
use super::run::{handler_for, only_jumps};
use crate::execute::{answered, keeps_diagnostics, to_session};
use crate::expr::{self, EvalContext, Raised, Turn, convert, is_strict_error};
use crate::functions::FuncId;
use crate::parse::ParseOptions;
use crate::parse::ast::{GetDiagnostics, Information, Instruction, Program, Signal, Statement, StatementItem, Target, VariableScope};
use crate::plan::{Coercibility, Expr, ExprKind, ExprType, Rel, RelKind, Subquery, SubqueryKind};
use crate::session::{Diagnostics, error, parse_options};
use crate::variables::SqlModes;

type Result<T> = std::result::Result<T, MySqlError>;

/// `max_error_count` for the conditions inside of a function.
const CONDITIONS_MAX: usize = 1024;

/// So many steps are made before it is seen whether others want the thread.
const STEPS_UNWATCHED: u32 = 64;

/// A function, bound for a statement that calls it.
pub struct StoredFunction {
    def: Arc<RoutineDef>,
    parameters: usize,
    returns: ColumnType,
    /// `None` for a call inside of the function itself: error 1424 if it comes to that.
    body: Option<Body>,
}

impl std::fmt::Debug for StoredFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.def.schema, self.def.name)
    }
}

/// What the body of a function comes to.
pub struct Body {
    program: Program,
    /// By step.
    code: Vec<Code>,
    cursors: Vec<Result<Rel>>,
    /// Of the variables; `None` for those that take the type of what they are given.
    types: Vec<Option<ColumnType>>,
    /// The views that its queries name.
    views: Vec<Arc<View>>,
    modes: SqlModes,
    /// It assigns user variables, reads them, or gives another value each time.
    has_effects: bool,
    runs_queries: bool,
    calls_caller: bool,
    /// The session runs it: the steps here are not.
    in_session: bool,
    changes: bool,
}

/// What a step of a function needs besides its instruction.
pub enum Code {
    /// Nothing.
    Nothing,
    /// A value or condition.
    Expr(Expr),
    /// The expressions of DO, SIGNAL and GET DIAGNOSTICS.
    Exprs(Vec<Expr>),
    /// SET of the user variable of that name in lower case.
    Assign(Str, Expr),
    /// The query of SELECT … INTO.
    Query(Rel),
    /// There is something wrong with it.
    Fails(MySqlError),
}

impl Code {
    fn exprs(&self) -> &[Expr] {
        match self {
            Code::Expr(expr) | Code::Assign(_, expr) => std::slice::from_ref(expr),
            Code::Exprs(exprs) => exprs,
            Code::Nothing | Code::Query(_) | Code::Fails(_) => &[],
        }
    }
}

impl Body {
    /// `cursors`: the queries of all cursors. `modes`: sql_mode.
    pub fn new(program: Program, code: Vec<Code>, cursors: Vec<Result<Rel>>, types: Vec<Option<ColumnType>>, views: Vec<Arc<View>>, modes: SqlModes) -> Body {
        let (in_session, mut changes) = (program.in_session, program.changes);
        let mut body = Body { program, code, cursors, types, views, modes, has_effects: false, runs_queries: false, calls_caller: false, in_session, changes };
        let (mut effects, mut queries, mut calls_caller) = (in_session, in_session || body.queries().next().is_some(), false);
        let mut in_session = in_session || body.locks_rows();
        let mut note = |e: &Expr| {
            queries |= e.runs_query_itself();
            in_session |= e.calls_session_itself();
            changes |= matches!(&e.kind, ExprKind::Stored { function, .. } if function.changes_tables());
            effects |= match &e.kind {
                ExprKind::UserVar(_) => true,
                ExprKind::Kept(_) => false,
                ExprKind::Stored { function, .. } => function.body.as_ref().is_some_and(|body| body.has_effects),
                _ => e.is_volatile_itself(),
            };
            calls_caller |= matches!(&e.kind, ExprKind::Stored { function, .. } if function.body.as_ref().is_none_or(|body| body.calls_caller));
        };
        for expr in body.exprs() {
            expr.walk(&mut |e| {
                note(e);
                if let ExprKind::Subquery(subquery) = &e.kind {
                    subquery.plan.for_each_expr(&mut |e, _| note(e));
                }
            });
        }
        for query in body.queries() {
            query.for_each_expr(&mut |e, _| note(e));
        }
        effects |= body.code.iter().any(|code| matches!(code, Code::Assign(..)));
        effects |= body.program.steps.iter().any(|step| match &step.instruction {
            Instruction::SelectInto { into, .. } => into.iter().any(|target| matches!(target, Target::User(_))),
            Instruction::Run(run) => matches!(run.statement, Statement::GetDiagnostics(_)),
            _ => false,
        });
        body.has_effects = effects || in_session;
        body.runs_queries = queries || in_session;
        body.calls_caller = calls_caller;
        body.in_session = in_session;
        body.changes = changes;
        body
    }

    /// Some query in it is a locking read.
    fn locks_rows(&self) -> bool {
        let mut locks = false;
        let mut note = |rel: &Rel| rel.for_each_operator(&mut |rel| locks |= matches!(rel.kind, RelKind::Scan { lock: Some(_), .. }));
        self.queries().for_each(&mut note);
        for expr in self.exprs() {
            expr.walk(&mut |e| {
                if let ExprKind::Subquery(subquery) = &e.kind {
                    note(&subquery.plan);
                }
            });
        }
        locks
    }

    /// Some call inside is of a function that is being bound.
    pub fn calls_caller(&self) -> bool {
        self.calls_caller
    }

    fn exprs(&self) -> impl Iterator<Item = &Expr> {
        self.code.iter().flat_map(Code::exprs)
    }

    fn queries(&self) -> impl Iterator<Item = &Rel> {
        let selects = self.code.iter().filter_map(|code| if let Code::Query(rel) = code { Some(rel) } else { None });
        selects.chain(self.cursors.iter().filter_map(|cursor| cursor.as_ref().ok()))
    }
}

impl StoredFunction {
    pub fn new(def: Arc<RoutineDef>, parameters: usize, returns: ColumnType, body: Option<Body>) -> StoredFunction {
        StoredFunction { def, parameters, returns, body }
    }

    pub fn name(&self) -> &str {
        &self.def.name
    }

    pub fn parameters(&self) -> usize {
        self.parameters
    }

    /// It is this definition's.
    pub fn is_of(&self, def: &Arc<RoutineDef>) -> bool {
        Arc::ptr_eq(&self.def, def)
    }

    pub fn is_same(&self, other: &StoredFunction) -> bool {
        Arc::ptr_eq(&self.def, &other.def)
    }

    /// The type of a call.
    pub fn result(&self) -> ExprType {
        match self.returns.kind {
            // As in MySQL its value is a DOUBLE.
            TypeKind::Float => ExprType::double(true),
            _ if self.returns.is_string() => ExprType::column(self.returns.clone(), true).with_coercibility(Coercibility::Coercible),
            _ => ExprType::column(self.returns.clone(), true),
        }
    }

    /// It may give another value each time, or do something.
    pub fn is_volatile(&self) -> bool {
        !self.def.deterministic || self.body.as_ref().is_none_or(|body| body.has_effects || body.runs_queries)
    }

    /// Nothing but its result comes of a call, and nothing but its arguments and tables goes into it, whatever its definition says.
    pub fn is_pure(&self) -> bool {
        self.body.as_ref().is_some_and(|body| !body.has_effects)
    }

    /// It runs queries, and gives the same value for the same arguments throughout a statement, as its definition says.
    pub fn is_settled(&self) -> bool {
        self.def.deterministic && self.runs_queries() && self.is_pure()
    }

    pub fn runs_queries(&self) -> bool {
        self.body.as_ref().is_some_and(|body| body.runs_queries)
    }

    /// The session runs it, not the evaluator.
    pub fn runs_in_session(&self) -> bool {
        self.body.as_ref().is_some_and(|body| body.in_session)
    }

    /// It changes tables, or calls procedures, which may.
    pub fn changes_tables(&self) -> bool {
        self.body.as_ref().is_some_and(|body| body.changes)
    }

    pub fn def(&self) -> &Arc<RoutineDef> {
        &self.def
    }

    /// The type of its value before that is one of an expression (`result`).
    pub fn returns(&self) -> &ColumnType {
        &self.returns
    }

    /// The expressions in its body, but those of `queries`.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        self.body.iter().flat_map(Body::exprs)
    }

    /// The queries in its body that are statements, or cursors.
    pub fn queries(&self) -> impl Iterator<Item = &Rel> {
        self.body.iter().flat_map(Body::queries)
    }

    /// The views that are named in its body.
    pub fn views(&self) -> &[Arc<View>] {
        self.body.as_ref().map_or(&[], |body| &body.views)
    }

    /// Arguments as its parameters have them. Errors 1264, 1366, 1406 and the like, and 1424 of a call inside of itself.
    pub fn arguments(&self, args: Vec<Value>, cx: &mut dyn EvalContext) -> Result<Vec<Value>> {
        let Some(body) = &self.body else { return Err(errors::sp_no_recursion()) };
        let mut values = Vec::with_capacity(args.len());
        for (at, value) in args.into_iter().enumerate() {
            values.push(match &body.types[at] {
                Some(ty) => stored(value, ty, &body.program.variables[at].name, cx)?,
                None => value,
            });
        }
        Ok(values)
    }

    /// Its value. `result`: what errors call that.
    pub fn call(self: &Arc<Self>, result: &str, args: Vec<Value>, cx: &mut dyn EvalContext) -> Result<Value> {
        let args = self.arguments(args, cx)?;
        let Some(body) = &self.body else { return Err(errors::sp_no_recursion()) };
        if body.in_session {
            return cx.call_in_session(self, result, args);
        }
        let mut frame = Frame::new(body);
        for (variable, value) in frame.values.iter_mut().zip(args) {
            *variable = value;
        }
        let row_count = cx.row_count();
        let mut inside = Inside {
            cx,
            function: self,
            body,
            diagnostics: Diagnostics::default(),
            strict: false,
            strict_error: None,
            last_insert_id: None,
            row_count,
            random_states: HashMap::new(),
            kept: Vec::new(),
        };
        let value = inside.run(&mut frame, result)?;
        // What is left to be told is what RETURN has raised.
        let raised = inside.diagnostics.take();
        raised.first.into_iter().for_each(|warning| inside.cx.warn_from_function(warning));
        Ok(as_expression(value))
    }
}

/// The value of a call, of what it has returned.
pub(super) fn as_expression(value: Value) -> Value {
    match value {
        Value::Float(value) => Value::Double(f64::from(value)),
        value => value,
    }
}

/// A value as a variable, parameter or result of this type has it. Errors 1264, 1366, 1406 and the like.
fn stored(value: Value, ty: &ColumnType, name: &str, cx: &mut dyn EvalContext) -> Result<Value> {
    let time_zone = cx.time_zone().clone();
    let mut warnings = Vec::new();
    let mut store = StoreContext {
        strict: cx.is_strict(),
        ignore: false,
        mode: cx.sql_mode(),
        time_zone: &time_zone,
        now_micros: cx.now_micros(),
        row: 1,
        warnings: &mut warnings,
    };
    let stored = highkey_types::store(value, ty, name, &mut store);
    warnings.into_iter().for_each(|warning| cx.warn(warning));
    let mut stored = stored?;
    if matches!(ty.kind, TypeKind::Timestamp(_)) {
        to_session(&mut stored, &time_zone);
    }
    Ok(stored)
}

/// A function while it runs.
struct Frame {
    /// Of the variables.
    values: Vec<Value>,
    /// The handlers that have been declared.
    visible: Vec<usize>,
    /// Those that are running, innermost last: which, where CONTINUE goes on, and for what.
    active: Vec<(usize, usize, Handled)>,
    cursors: Vec<Option<std::vec::IntoIter<Vec<Value>>>>,
    returned: Option<Value>,
}

impl Frame {
    fn new(body: &Body) -> Frame {
        Frame {
            values: vec![Value::Null; body.types.len()],
            visible: Vec::new(),
            active: Vec::new(),
            cursors: body.cursors.iter().map(|_| None).collect(),
            returned: None,
        }
    }
}

/// The surroundings inside of a function: those of the call, but for what is the function's.
struct Inside<'a> {
    cx: &'a mut dyn EvalContext,
    function: &'a StoredFunction,
    body: &'a Body,
    /// Of the present step.
    diagnostics: Diagnostics,
    /// Some warnings of what is evaluated are errors.
    strict: bool,
    strict_error: Option<MySqlError>,
    last_insert_id: Option<u64>,
    row_count: i64,
    random_states: HashMap<usize, Option<(u32, u32)>>,
    kept: Vec<(usize, Value)>,
}

impl Inside<'_> {
    fn run(&mut self, frame: &mut Frame, result: &str) -> Result<Value> {
        let body = self.body;
        let (mut at, mut made) = (0, 0u32);
        let mut turn = Turn::begin();
        while let Some(step) = body.program.steps.get(at) {
            made = made.wrapping_add(1);
            if made % STEPS_UNWATCHED == 0 {
                turn.pass(&mut *self.cx)?;
            }
            if only_jumps(&step.instruction) {
                at = self.jump(frame, at);
                continue;
            }
            let keeps = matches!(&step.instruction, Instruction::Run(run) if keeps_diagnostics(&run.statement));
            if !keeps {
                self.diagnostics.clear();
            }
            let before = self.diagnostics.conditions().len();
            at = match self.perform(frame, at, result) {
                Ok(next) => self.handle_warning(frame, at, before).unwrap_or(next),
                Err(error) => self.handle_error(frame, at, error)?,
            };
        }
        frame.returned.take().ok_or_else(|| errors::sp_noreturnend(&self.function.def.name))
    }

    /// Does what a step does; where to go on.
    fn perform(&mut self, frame: &mut Frame, at: usize, result: &str) -> Result<usize> {
        let (body, function) = (self.body, self.function);
        let next = at + 1;
        match (&body.program.steps[at].instruction, &body.code[at]) {
            (_, Code::Fails(error)) => Err(error.clone()),
            (Instruction::Set { variable, .. }, Code::Expr(expr)) => {
                let assigned = self.value(expr, frame, true).and_then(|value| self.assign(frame, *variable, value));
                if assigned.is_err() {
                    frame.values[*variable] = Value::Null;
                }
                assigned.map(|()| next)
            }
            (Instruction::JumpUnless { to, .. }, Code::Expr(expr)) => {
                let holds = self.with_answers(expr, frame, expr::eval_condition)?;
                Ok(if holds { next } else { *to })
            }
            (Instruction::Return(_), Code::Expr(expr)) => {
                // As in MySQL it has returned, if only NULL, even if that fails.
                frame.returned = Some(Value::Null);
                let value = self.value(expr, frame, true)?;
                frame.returned = Some(stored(value, &function.returns, result, self)?);
                Ok(body.program.steps.len())
            }
            (Instruction::Run(_), Code::Assign(name, expr)) => {
                let value = self.value(expr, frame, true)?;
                self.cx.set_user_var(name, value, expr.ty.collation())?;
                Ok(next)
            }
            (Instruction::Run(run), Code::Exprs(exprs)) => {
                match &run.statement {
                    Statement::Signal(signal) => self.signal(signal, exprs, frame)?,
                    Statement::GetDiagnostics(get) => self.get_diagnostics(get, exprs, frame)?,
                    _ => {
                        for expr in exprs {
                            self.value(expr, frame, false)?;
                        }
                    }
                }
                Ok(next)
            }
            (Instruction::SelectInto { into, .. }, Code::Query(query)) => {
                if query.fields.len() != into.len() {
                    return Err(error::wrong_number_of_columns_in_select());
                }
                let rows = self.rows_for(query, frame)?;
                self.row_count = 0;
                let count = rows.len();
                let Some(values) = rows.into_iter().next() else {
                    self.warn(Warning::warning(errors::sp_fetch_no_data()));
                    return Ok(next);
                };
                // As in MySQL they have the first row's values whatever comes behind it.
                for ((target, value), field) in into.iter().zip(values).zip(&query.fields) {
                    self.assign_target(frame, target, value, &field.ty)?;
                }
                if count > 1 {
                    return Err(errors::too_many_rows());
                }
                self.row_count = 1;
                Ok(next)
            }
            (Instruction::Open(cursor), _) => {
                if frame.cursors[*cursor].is_some() {
                    return Err(errors::sp_cursor_already_open());
                }
                let query = body.cursors[*cursor].as_ref().map_err(MySqlError::clone)?;
                frame.cursors[*cursor] = Some(self.rows_for(query, frame)?.into_iter());
                Ok(next)
            }
            (Instruction::Fetch { cursor, into }, _) => {
                let rows = frame.cursors[*cursor].as_mut().ok_or_else(errors::sp_cursor_not_open)?;
                if body.cursors[*cursor].as_ref().is_ok_and(|query| query.fields.len() != into.len()) {
                    return Err(errors::sp_wrong_no_of_fetch_args());
                }
                let row = rows.next().ok_or_else(errors::sp_fetch_no_data)?;
                for (variable, value) in into.iter().zip(row) {
                    self.assign(frame, *variable, value)?;
                }
                Ok(next)
            }
            (Instruction::Close(cursor), _) => match frame.cursors[*cursor].take() {
                Some(_) => Ok(next),
                None => Err(errors::sp_cursor_not_open()),
            },
            (Instruction::CaseNotFound, _) => Err(errors::sp_case_not_found()),
            _ => Ok(next),
        }
    }

    fn jump(&mut self, frame: &mut Frame, at: usize) -> usize {
        match &self.body.program.steps[at].instruction {
            Instruction::Jump(to) => *to,
            Instruction::Declare { handler, after } => {
                frame.visible.push(*handler);
                *after
            }
            Instruction::EndHandler { to } => {
                let resume = frame.active.pop().map_or(at + 1, |(_, resume, _)| resume);
                self.diagnostics.clear();
                to.unwrap_or(resume)
            }
            Instruction::Leave { handlers, cursors } => {
                frame.visible.retain(|handler| !handlers.contains(handler));
                while frame.active.last().is_some_and(|(handler, ..)| handlers.contains(handler)) {
                    frame.active.pop();
                }
                frame.cursors[cursors.clone()].iter_mut().for_each(|cursor| *cursor = None);
                at + 1
            }
            _ => at + 1,
        }
    }

    /// Goes to the handler of the last warning that has one, of those behind the first `before`.
    fn handle_warning(&mut self, frame: &mut Frame, at: usize, before: usize) -> Option<usize> {
        if frame.visible.is_empty() {
            return None;
        }
        let scope = self.body.program.steps[at].scope;
        for index in (before..self.diagnostics.conditions().len()).rev() {
            let condition = &self.diagnostics.conditions()[index];
            if condition.level == Level::Error {
                continue;
            }
            let sqlstate = self.diagnostics.state_and_items(index).map_or_else(|| errors::sqlstate(condition.code), |(state, _)| state);
            let error = MySqlError { code: condition.code, sqlstate, message: condition.message.clone() };
            let handler = handler_for(&self.body.program, scope, &error, condition.level).filter(|handler| frame.visible.contains(handler));
            if let Some(handler) = handler {
                return Some(self.activate(frame, at, handler, error, true));
            }
        }
        None
    }

    /// Goes to the error's handler, or gives it back. A KILL is for none.
    fn handle_error(&mut self, frame: &mut Frame, at: usize, error: MySqlError) -> Result<usize> {
        let interrupted = matches!(error.code, 1317 | 3024) && self.cx.sleep(Duration::ZERO).unwrap_or(true);
        let handler = handler_for(&self.body.program, self.body.program.steps[at].scope, &error, Level::Error);
        let Some(handler) = handler.filter(|handler| !interrupted && frame.visible.contains(handler)) else { return Err(error) };
        self.diagnostics.push_error(&error, CONDITIONS_MAX);
        self.row_count = -1;
        Ok(self.activate(frame, at, handler, error, false))
    }

    fn activate(&mut self, frame: &mut Frame, at: usize, handler: usize, error: MySqlError, is_warning: bool) -> usize {
        let resume = match &self.body.program.steps[at].instruction {
            Instruction::JumpUnless { resume, .. } | Instruction::Set { resume: Some(resume), .. } => *resume,
            _ => at + 1,
        };
        frame.active.push((handler, resume, Handled { diagnostics: self.diagnostics.clone(), error, is_warning }));
        self.body.program.handlers[handler].first
    }

    /// The value of an expression. `strict`: in strict mode what conversions in it warn of is an error.
    fn value(&mut self, expr: &Expr, frame: &Frame, strict: bool) -> Result<Value> {
        let strict = strict && self.is_strict();
        let around = std::mem::replace(&mut self.strict, strict);
        let value = self.with_answers(expr, frame, expr::eval);
        self.strict = around;
        let strict_error = self.strict_error.take();
        let value = value?;
        strict_error.map_or(Ok(value), Err)
    }

    /// Evaluates an expression over the variables, its subqueries replaced by their answers.
    fn with_answers<T>(&mut self, expr: &Expr, frame: &Frame, evaluate: impl FnOnce(&Expr, &[Value], &mut dyn EvalContext) -> Result<T>) -> Result<T> {
        if !expr.has_subquery() {
            return evaluate(expr, &frame.values, self);
        }
        let mut own = expr.clone();
        own.bind_outer_row(&frame.values);
        self.answer(&mut own)?;
        evaluate(&own, &frame.values, self)
    }

    fn answer(&mut self, expr: &mut Expr) -> Result<()> {
        for child in expr.children_mut() {
            self.answer(child)?;
        }
        if matches!(expr.kind, ExprKind::Subquery(_))
            && let ExprKind::Subquery(subquery) = std::mem::replace(&mut expr.kind, ExprKind::Literal(Value::Null))
        {
            let types: Vec<ExprType> = subquery.plan.fields.iter().map(|field| field.ty.clone()).collect();
            let rows = self.rows_of(subquery.plan)?;
            *expr = answered(subquery.kind, rows, &types, expr.ty.clone(), self)?;
        }
        Ok(())
    }

    /// The rows of a query over the variables.
    fn rows_for(&mut self, query: &Rel, frame: &Frame) -> Result<Vec<Vec<Value>>> {
        let subquery = Subquery { kind: SubqueryKind::Exists { negated: false }, plan: query.clone(), correlated: true, failed: None };
        let mut holder = Expr { kind: ExprKind::Subquery(Box::new(subquery)), ty: ExprType::null() };
        holder.bind_outer_row(&frame.values);
        match holder.kind {
            ExprKind::Subquery(subquery) => self.rows_of(subquery.plan),
            _ => Ok(Vec::new()),
        }
    }

    fn rows_of(&mut self, query: Rel) -> Result<Vec<Vec<Value>>> {
        let def = &self.function.def;
        let (rows, raised) = self.cx.rows(query, def, def)?;
        if let Some(error) = raised.strict {
            return Err(error);
        }
        raised.first.into_iter().for_each(|warning| self.warn(warning));
        Ok(rows)
    }

    /// Puts a value into a variable, converted as a column's.
    fn assign(&mut self, frame: &mut Frame, variable: usize, value: Value) -> Result<()> {
        let body = self.body;
        frame.values[variable] = match &body.types[variable] {
            Some(ty) => stored(value, ty, &body.program.variables[variable].name, self)?,
            None => value,
        };
        Ok(())
    }

    fn assign_target(&mut self, frame: &mut Frame, target: &Target, value: Value, ty: &ExprType) -> Result<()> {
        match target {
            Target::User(name) => self.cx.set_user_var(&name.to_lowercase().into(), value, ty.collation()),
            Target::Local(variable) => self.assign(frame, *variable, value),
        }
    }

    /// SIGNAL and RESIGNAL: an error, or a warning. `values`: of the items.
    fn signal(&mut self, signal: &Signal, values: &[Expr], frame: &Frame) -> Result<()> {
        let handled = frame.active.last().map(|(.., handled)| handled);
        let (mut raised, mut is_warning) = match (signal.again, handled, signal.state) {
            (true, None, _) => return Err(errors::resignal_without_active_handler()),
            (true, Some(handled), state) => {
                self.diagnostics = handled.diagnostics.clone();
                if state.is_none() {
                    self.diagnostics.forget_last();
                }
                (handled.error.clone(), handled.is_warning)
            }
            (false, _, Some(state)) => (unnamed(state), state.is_warning()),
            // The parser asks for one.
            (false, _, None) => return Ok(()),
        };
        if let (true, Some(state)) = (signal.again, signal.state) {
            (raised, is_warning) = (unnamed(state), state.is_warning());
        }
        let mut given = Vec::with_capacity(values.len());
        for ((item, _), value) in signal.items.iter().zip(values) {
            given.push((*item, self.value(value, frame, false)?));
        }
        let (strict, mut cut) = (self.is_strict(), Vec::new());
        let items = raise_with(&mut raised, given, strict, &mut cut);
        cut.into_iter().for_each(|warning| self.warn(warning));
        let items = items?;
        let items = if signal.state.is_none() && items.is_empty() { None } else { Some(items) };
        if !is_warning {
            if let Some(items) = items {
                self.diagnostics.set_raised(items);
            }
            return Err(raised);
        }
        let warning = Warning { level: Level::Warning, code: raised.code, message: raised.message };
        self.diagnostics.push_signalled(warning, raised.sqlstate, items, CONDITIONS_MAX);
        Ok(())
    }

    /// GET DIAGNOSTICS. `values`: the number of the condition.
    fn get_diagnostics(&mut self, get: &GetDiagnostics, values: &[Expr], frame: &mut Frame) -> Result<()> {
        let stacked = match (get.stacked, frame.active.last()) {
            (false, _) => None,
            (true, Some((.., handled))) => Some(handled.diagnostics.clone()),
            (true, None) => return Err(errors::get_stacked_da_without_active_handler()),
        };
        let items = match &get.information {
            Information::Statement(items) => {
                for (target, item) in items {
                    let value = match item {
                        StatementItem::Number => Value::Int(stacked.as_ref().unwrap_or(&self.diagnostics).conditions().len() as i64),
                        StatementItem::RowCount => Value::Int(self.row_count),
                    };
                    self.assign_target(frame, target, value, &ExprType::bigint(true))?;
                }
                return Ok(());
            }
            Information::Condition { items, .. } => items,
        };
        let number = match values.first() {
            Some(number) => self.value(number, frame, false)?,
            None => Value::Null,
        };
        let at = convert::to_i64(&number, self).and_then(|number| usize::try_from(number).ok()).and_then(|number| number.checked_sub(1));
        let diagnostics = stacked.as_ref().unwrap_or(&self.diagnostics);
        let found = at.and_then(|at| items.iter().map(|(_, item)| condition(diagnostics, at, *item)).collect::<Option<Vec<_>>>());
        let Some(found) = found else {
            self.diagnostics.push_error(&errors::da_invalid_condition_number(), CONDITIONS_MAX);
            return Ok(());
        };
        for ((target, _), (value, ty)) in items.iter().zip(found) {
            self.assign_target(frame, target, value, &ty)?;
        }
        Ok(())
    }
}

impl EvalContext for Inside<'_> {
    fn sql_mode(&self) -> SqlMode {
        self.body.modes.conversions()
    }

    fn parse_options(&self) -> ParseOptions {
        parse_options(self.body.modes)
    }

    fn time_zone(&self) -> &TimeZone {
        self.cx.time_zone()
    }

    fn now_micros(&self) -> i64 {
        self.cx.now_micros()
    }

    fn warn(&mut self, warning: Warning) {
        if self.strict && is_strict_error(&warning) {
            self.strict_error.get_or_insert_with(|| MySqlError::with_message(warning.code, warning.message));
        } else {
            self.diagnostics.push(warning, CONDITIONS_MAX, true);
        }
    }

    fn warn_from_function(&mut self, warning: Warning) {
        self.diagnostics.push(warning, CONDITIONS_MAX, true);
    }

    fn warnings_are_errors(&self) -> bool {
        self.strict
    }

    fn is_strict(&self) -> bool {
        self.body.modes.has(SqlModes::STRICT)
    }

    fn user_var(&self, name: &str) -> Value {
        self.cx.user_var(name)
    }

    fn set_user_var(&mut self, name: &Str, value: Value, collation: &'static highkey_types::Collation) -> Result<()> {
        self.cx.set_user_var(name, value, collation)
    }

    fn system_var(&self, scope: Option<VariableScope>, name: &str) -> Result<Value> {
        match name {
            "sql_mode" if scope != Some(VariableScope::Global) => Ok(Value::text(self.body.modes.to_string())),
            _ => self.cx.system_var(scope, name),
        }
    }

    fn rows(&mut self, query: Rel, of: &RoutineDef, account: &RoutineDef) -> Result<(Vec<Vec<Value>>, Raised)> {
        // The invoker of a function that is called in this one is who this one runs as.
        let account = if account.invoker { &*self.function.def } else { account };
        self.cx.rows(query, of, account)
    }

    fn kept(&mut self) -> Option<&mut Vec<(usize, Value)>> {
        Some(&mut self.kept)
    }

    fn database(&self) -> Option<Str> {
        Some(self.function.def.schema.clone())
    }

    fn user(&self) -> Str {
        self.cx.user()
    }

    fn current_user(&self) -> Str {
        let def = &self.function.def;
        if def.invoker { self.cx.current_user() } else { format!("{}@{}", def.definer.0, def.definer.1).into() }
    }

    fn current_role(&self) -> Str {
        self.cx.current_role()
    }

    fn connection_id(&self) -> u64 {
        self.cx.connection_id()
    }

    fn has_connection(&self, id: u64) -> bool {
        self.cx.has_connection(id)
    }

    fn version(&self) -> Str {
        self.cx.version()
    }

    fn last_insert_id(&self) -> u64 {
        self.last_insert_id.unwrap_or_else(|| self.cx.last_insert_id())
    }

    fn set_last_insert_id(&mut self, id: u64) {
        // Outside it stays what it was.
        self.last_insert_id = Some(id);
    }

    fn found_rows(&self) -> u64 {
        self.cx.found_rows()
    }

    fn row_count(&self) -> i64 {
        self.row_count
    }

    fn max_allowed_packet(&self) -> usize {
        self.cx.max_allowed_packet()
    }

    fn random(&mut self) -> f64 {
        self.cx.random()
    }

    fn random_state(&mut self, site: usize) -> &mut Option<(u32, u32)> {
        self.random_states.entry(site).or_default()
    }

    fn sleep(&mut self, duration: Duration) -> Result<bool> {
        self.cx.sleep(duration)
    }

    fn user_lock(&mut self, function: &str, args: &[Value]) -> Result<Value> {
        self.cx.user_lock(function, args)
    }

    fn wait_for_replication(&mut self, func: FuncId, args: &[Value]) -> Result<Value> {
        self.cx.wait_for_replication(func, args)
    }

    fn load_file(&mut self, path: &str) -> Option<Vec<u8>> {
        self.cx.load_file(path)
    }

    fn node_id(&self) -> [u8; 6] {
        self.cx.node_id()
    }
}
