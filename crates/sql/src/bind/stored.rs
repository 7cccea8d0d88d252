//! Calls of stored functions, and what their bodies come to.
//!
//! The variables of a function are the fields of a row around everything in its body: an expression reads them as columns, a query as those of an
//! enclosing row.

use std::sync::Arc;

use highkey_table::{Privileges, RoutineDef, RoutineKind, Table, View};
use highkey_types::{Collation, ColumnType, MySqlError, SqlMode, Str, Value};

use super::binder::{Binder, Result};
use super::context::ask_around;
use super::scope::{Clause, FromScope, Scope};
use super::{BindContext, errors};
use crate::parse::ast::{self, FunctionCall, Information, Instruction, Program, RoutineStatement, SetItem, Statement};
use crate::plan::{Expr, ExprKind, ExprType, Rel};
use crate::privileges::Access;
use crate::routine::{self, Body, Code, StoredFunction};
use crate::stack;
use crate::variables::SqlModes;

/// Functions in each other.
const MOST_CALLS: usize = 64;
/// Bodies that are bound for a statement. Functions that call each other are bound again for each way to them.
const MOST_BODIES: usize = 10_000;

/// The surroundings of a function's body: what its names and literals mean is the function's.
struct FunctionContext<'a> {
    cx: &'a dyn BindContext,
    def: &'a RoutineDef,
    modes: SqlModes,
    /// What the function's definer may do; `None`: everything.
    definer: Option<Arc<Access>>,
    /// The variables that the parameters of the present expression are.
    locals: Vec<(usize, ExprType)>,
}

impl BindContext for FunctionContext<'_> {
    ask_around!();

    fn temporary_table(&self, schema: &str, name: &str) -> Option<Arc<Table>> {
        self.cx.temporary_table(schema, name)
    }

    fn check_locked_as(&self, schema: &str, name: &str, alias: &str, write: bool) -> Result<()> {
        self.cx.check_locked_as(schema, name, alias, write)
    }

    fn current_schema(&self) -> Option<Str> {
        Some(self.def.schema.clone())
    }

    fn collation(&self) -> &'static Collation {
        self.def.collation
    }

    fn sql_mode(&self) -> SqlMode {
        self.modes.conversions()
    }

    fn only_full_group_by(&self) -> bool {
        self.modes.has(SqlModes::ONLY_FULL_GROUP_BY)
    }

    fn local(&self, index: usize) -> Option<(usize, &ExprType)> {
        self.locals.get(index).map(|(variable, ty)| (*variable, ty))
    }

    fn strict(&self) -> bool {
        self.modes.has(SqlModes::STRICT)
    }

    fn access(&self) -> Option<&Access> {
        if self.def.invoker { self.cx.access() } else { self.definer.as_deref() }
    }
}

impl Binder<'_> {
    /// A call of a stored function. Errors 1305, 1318, 1370 and 1449.
    pub fn stored_function(&mut self, schema: &Str, call: &FunctionCall, result_name: Option<Str>) -> Result<Expr> {
        let name = &call.name.name;
        if let Some(access) = self.cx.access().filter(|_| !self.trusted) {
            access.check_routine(Privileges::EXECUTE, RoutineKind::Function, schema, name)?;
        }
        let def = self.cx.function(schema, name).ok_or_else(|| errors::unknown_function(schema, name))?;
        if let Some(names) = self.names.as_mut().filter(|_| call.name.schema.is_none()) {
            names.stored.insert(name.to_ascii_lowercase());
        }
        let function = self.bind_function(&def)?;
        if function.parameters() != call.args.len() {
            let kind = RoutineKind::Function.name();
            return Err(highkey_types::errors::sp_wrong_no_of_args(kind, format!("{schema}.{name}"), function.parameters(), call.args.len()));
        }
        let args = call.args.iter().map(|arg| self.expr(arg)).collect::<Result<Vec<_>>>()?;
        let ty = function.result();
        let name = result_name.unwrap_or_else(|| name.as_str().into());
        Ok(Expr { kind: ExprKind::Stored { function, name, args }, ty })
    }

    fn bind_function(&mut self, def: &Arc<RoutineDef>) -> Result<Arc<StoredFunction>> {
        // What is bound as its invoker may do depends on the place: only those that the statement itself calls are kept.
        let here = self.calling.is_empty() && self.expanding.is_empty();
        let known = self.called.borrow().iter().find(|function| function.is_of(def) && (here || !def.invoker)).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let program = routine::program(def)?;
        let returns = routine::returned_type(&program, def)?;
        if self.calling.iter().any(|caller| caller.schema == def.schema && caller.name == def.name) {
            return Ok(Arc::new(StoredFunction::new(def.clone(), program.parameters.len(), returns, None)));
        }
        if self.calling.len() >= MOST_CALLS || self.bodies.get() >= MOST_BODIES {
            return Err(stack::overrun());
        }
        let (user, host) = (&*def.definer.0, &*def.definer.1);
        if !def.invoker && !self.cx.has_account(user, host) {
            return Err(highkey_types::errors::no_such_user(user, host));
        }
        let definer = if def.invoker { None } else { self.cx.access_of(user, host) };
        if let Some(access) = &definer {
            // As in MySQL the definer has to have the right, too.
            access.check_routine(Privileges::EXECUTE, RoutineKind::Function, &def.schema, &def.name)?;
        }
        let types = routine::variable_types(&program.variables, def)?;
        self.bodies.set(self.bodies.get() + 1);
        let parameters = program.parameters.len();
        self.calling.push(def.clone());
        let body = self.function_body(def, program, types, definer);
        self.calling.pop();
        // One that stands in itself depends on the place, too.
        let elsewhere = (here || !def.invoker) && !body.calls_caller();
        let function = Arc::new(StoredFunction::new(def.clone(), parameters, returns, Some(body)));
        if elsewhere {
            self.called.borrow_mut().push(function.clone());
        }
        Ok(function)
    }

    fn function_body(&self, def: &RoutineDef, program: Program, types: Vec<Option<ColumnType>>, definer: Option<Arc<Access>>) -> Body {
        let modes = SqlModes::of_known_bits(def.sql_mode);
        if program.in_session {
            // The session binds it, step by step.
            return Body::new(program, Vec::new(), Vec::new(), types, Vec::new(), modes);
        }
        let mut cx = FunctionContext { cx: self.cx, def, modes, definer, locals: Vec::new() };
        let mut variables: Vec<ExprType> = types.iter().map(routine::expr_type).collect();
        let mut views = Vec::new();
        let mut code = Vec::with_capacity(program.steps.len());
        for step in &program.steps {
            let bound = match &step.instruction {
                Instruction::Set { variable, value, .. } => {
                    cx.locals = locals(&value.locals, &variables);
                    let bound = self.in_body(&cx, &mut views, |binder| binder.expr(&value.expr));
                    if let (None, Ok(bound)) = (&types[*variable], &bound) {
                        variables[*variable] = bound.ty.clone().with_nullable(true);
                    }
                    bound.map(Code::Expr)
                }
                Instruction::JumpUnless { condition: value, .. } | Instruction::Return(value) => {
                    cx.locals = locals(&value.locals, &variables);
                    self.in_body(&cx, &mut views, |binder| binder.expr(&value.expr)).map(Code::Expr)
                }
                Instruction::Run(run) => {
                    cx.locals = locals(&run.locals, &variables);
                    self.in_body(&cx, &mut views, |binder| binder.function_step(run))
                }
                Instruction::SelectInto { query, .. } => {
                    cx.locals = locals(&query.locals, &variables);
                    self.in_body(&cx, &mut views, |binder| binder.function_query(query)).map(|rel| Code::Query(two_rows(rel)))
                }
                _ => Ok(Code::Nothing),
            };
            // As in MySQL what is wrong with a step is its error when it comes to it.
            code.push(bound.unwrap_or_else(Code::Fails));
        }
        let mut cursors = Vec::with_capacity(program.cursors.len());
        for cursor in &program.cursors {
            cx.locals = locals(&cursor.locals, &variables);
            cursors.push(self.in_body(&cx, &mut views, |binder| binder.function_query(cursor)));
        }
        Body::new(program, code, cursors, types, views, modes)
    }

    /// Binds something of a body, and adds the views that it names.
    fn in_body<T>(&self, cx: &FunctionContext<'_>, views: &mut Vec<Arc<View>>, bind: impl FnOnce(&mut Binder<'_>) -> Result<T>) -> Result<T> {
        let mut binder = Binder::new(cx);
        binder.calling.clone_from(&self.calling);
        binder.called = self.called.clone();
        binder.bodies = self.bodies.clone();
        let variables = Scope { clause: Some(Clause::Values), ..Scope::new(FromScope::of(Vec::new())) };
        let bound = binder.within(variables, bind).map(|(bound, _)| bound);
        views.append(&mut binder.views);
        bound
    }

    fn function_step(&mut self, run: &RoutineStatement) -> Result<Code> {
        let exprs: Vec<&ast::Expr> = match &run.statement {
            Statement::Do(exprs) => exprs.iter().collect(),
            Statement::Signal(signal) => signal.items.iter().map(|(_, value)| value).collect(),
            Statement::GetDiagnostics(get) => match &get.information {
                Information::Condition { number, .. } => vec![number],
                Information::Statement(_) => Vec::new(),
            },
            Statement::Set(items) => match items.as_slice() {
                [SetItem::User { name, value }] => return Ok(Code::Assign(name.to_lowercase().into(), self.expr(value)?)),
                _ => return Err(not_in_function()),
            },
            _ => return Err(not_in_function()),
        };
        exprs.into_iter().map(|expr| self.expr(expr)).collect::<Result<Vec<_>>>().map(Code::Exprs)
    }

    fn function_query(&mut self, query: &RoutineStatement) -> Result<Rel> {
        let Statement::Query(query) = &query.statement else { return Err(not_in_function()) };
        self.subquery_plan(query)
    }
}

fn locals(locals: &[usize], variables: &[ExprType]) -> Vec<(usize, ExprType)> {
    locals.iter().map(|local| (*local, variables[*local].clone())).collect()
}

/// Nobody needs more rows: the second is error 1172.
fn two_rows(rel: Rel) -> Rel {
    rel.limit(None, Some(Expr::literal(Value::UInt(2), ExprType::ubigint(false))))
}

fn not_in_function() -> MySqlError {
    highkey_types::errors::not_supported_yet("this statement in stored functions")
}
