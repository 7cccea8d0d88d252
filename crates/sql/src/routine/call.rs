//! CALL: arguments, whose rights, schema and modes the routine runs with, and what goes out again.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use highkey_table::{Catalog, Privileges, RoutineDef, RoutineKind};
use highkey_types::{MySqlError, Str, Value, errors};

use super::run::Frame;
use super::{Loaded, OutParameter, Running};
use crate::execute::{self, Failure, Outcome};
use crate::expr;
use crate::information_schema;
use crate::parse::ast::{self, Call, ExprKind, ParameterMode, Target};
use crate::plan::{ExprType, Field};
use crate::session::{OkSummary, ResultSink, Session, StatusFlags};
use crate::stack;
use crate::variables::{self, SqlModes, VarId, VarValue};

/// Routines in each other, whatever `max_sp_recursion_depth` says of each of them.
const MAX_RUNNING: usize = 1000;

/// Who calls.
pub(super) enum Caller<'a> {
    /// A statement of its own; its parameters are those of a prepared one.
    Session,
    /// A routine, with the variables that the statement's parameters are.
    Routine { frame: &'a mut Frame, loaded: &'a Loaded, locals: &'a [usize] },
}

/// Where the value of an OUT parameter goes.
enum Out {
    Target(Target),
    /// The `?` of that number.
    Parameter(usize),
}

/// Routines call each other: each is polled with the stack that a level may take.
pub(super) struct Level<'a, T>(pub BoxFuture<'a, T>);

impl<T> Future for Level<'_, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let future = self.0.as_mut();
        stack::ensure(|| future.poll(cx))
    }
}

/// The session's variables while a routine runs.
pub(crate) fn settings(def: &RoutineDef, catalog: &Catalog) -> [(VarId, VarValue); 6] {
    let schema_collation = catalog.schema(&def.schema).map_or(def.schema_collation, |schema| schema.collation);
    let wanted = [
        ("sql_mode", SqlModes::of_known_bits(def.sql_mode).to_string()),
        ("character_set_client", def.charset.name().to_owned()),
        ("character_set_connection", def.collation.charset.name().to_owned()),
        ("collation_connection", def.collation.name.to_owned()),
        ("character_set_database", schema_collation.charset.name().to_owned()),
        ("collation_database", schema_collation.name.to_owned()),
    ];
    wanted.map(|(name, value)| (variables::find(name).expect("in the table"), VarValue::Text(value.into())))
}

impl Session {
    /// CALL as a statement of its own.
    pub(crate) fn call<'a>(&'a mut self, call: &'a Call, sink: &'a mut dyn ResultSink) -> BoxFuture<'a, Result<Outcome, Failure>> {
        Box::pin(Level(Box::pin(self.call_from(call, Caller::Session, sink))))
    }

    /// CALL inside a routine.
    pub(super) fn call_inside<'a>(&'a mut self, call: &'a Call, caller: Caller<'a>, sink: &'a mut dyn ResultSink) -> BoxFuture<'a, Result<Outcome, Failure>> {
        Box::pin(Level(Box::pin(self.call_from(call, caller, sink))))
    }

    async fn call_from(&mut self, call: &Call, mut caller: Caller<'_>, sink: &mut dyn ResultSink) -> Result<Outcome, Failure> {
        self.routines.out_parameters.clear();
        let schema = self.state.schema_of(call.name.schema.as_deref())?;
        let kind = RoutineKind::Procedure;
        let name = format!("{schema}.{}", call.name.name);
        let loaded = self.load_routine(kind, &schema, &call.name.name)?.ok_or_else(|| errors::sp_does_not_exist(kind.name(), &name))?;
        if let Some(access) = self.state.access() {
            access.check_routine(Privileges::EXECUTE, kind, &schema, &call.name.name)?;
        }
        let parameters = &loaded.program.parameters;
        if parameters.len() != call.args.len() {
            return Err(errors::sp_wrong_no_of_args(kind.name(), &name, parameters.len(), call.args.len()).into());
        }
        self.check_recursion(&loaded.def)?;
        let (mut frame, outs) = self.arguments(&loaded, call, &mut caller, &name).await?;
        self.state.bind_params = false;
        self.state.declared_types.clear();
        let depth = self.routines.running.len();
        let ended = match self.enter_routine(&loaded.def) {
            Ok(()) => self.run_steps(&loaded, &mut frame, sink).await,
            Err(e) => Err(e.into()),
        };
        self.leave_routines(depth);
        self.about_conditions = false;
        ended?;
        self.assign_outs(&loaded, &frame, outs, caller)?;
        Ok(Outcome::affected(u64::try_from(self.state.row_count).unwrap_or(0)))
    }

    /// Error 1456, and 1436 for too many routines in each other.
    fn check_recursion(&self, def: &RoutineDef) -> Result<(), MySqlError> {
        let running = &self.routines.running;
        let depth = running.iter().filter(|other| other.kind == Some(def.kind) && other.schema == def.schema && other.name == def.name).count() as u64;
        let limit = self.state.variables.u64("max_sp_recursion_depth");
        if depth > limit {
            return Err(errors::sp_recursion_limit(limit, &def.name));
        }
        self.check_depth()
    }

    /// Error 1436 for too many routines in each other.
    pub(super) fn check_depth(&self) -> Result<(), MySqlError> {
        if self.routines.running.len() >= MAX_RUNNING { Err(stack::overrun()) } else { Ok(()) }
    }

    /// The variables of the routine as it begins, and where OUT parameters go. Error 1414.
    async fn arguments(&mut self, loaded: &Loaded, call: &Call, caller: &mut Caller<'_>, name: &str) -> Result<(Frame, Vec<(usize, Out)>), Failure> {
        let mut frame = Frame::new(loaded);
        let mut outs = Vec::new();
        if let Caller::Routine { frame, locals, .. } = caller {
            self.set_locals(frame, locals);
            self.state.bind_params = true;
        }
        for (at, (arg, mode)) in call.args.iter().zip(&loaded.program.parameters).enumerate() {
            if *mode != ParameterMode::In {
                let out = match (&arg.kind, &*caller) {
                    (ExprKind::UserVar(name), _) => Out::Target(Target::User(name.clone())),
                    (ExprKind::Param(index), Caller::Routine { loaded, locals, .. }) if loaded.program.assigns(locals[*index]) => Out::Target(Target::Local(locals[*index])),
                    (ExprKind::Param(index), Caller::Session) => Out::Parameter(*index),
                    _ => {
                        // What is in it may be wrong in another way.
                        self.bind_constant_and_open(arg).await?;
                        return Err(errors::sp_not_var_arg(at + 1, name).into());
                    }
                };
                outs.push((at, out));
            }
            if *mode != ParameterMode::Out {
                let (value, ty) = self.value_of(arg).await?;
                self.assign_local(loaded, &mut frame, at, value, &ty)?;
            }
        }
        Ok((frame, outs))
    }

    /// The value of an expression, whose parameters are set, as it goes into a variable.
    pub(super) async fn value_of(&mut self, ast: &ast::Expr) -> Result<(Value, ExprType), Failure> {
        let mut bound = self.bind_constant_and_open(ast).await?;
        let ty = bound.ty.clone();
        if bound.calls_session() {
            self.state.begin_changes(false);
            self.resolve_calls(&mut bound).await?;
        }
        self.resolve_subqueries(&mut bound).await?;
        self.state.begin_changes(false);
        let value = expr::eval(&bound, &[], &mut self.state)?;
        self.state.check_strict()?;
        Ok((value, ty))
    }

    /// From here on the session is where the routine is, with its modes and, unless it is the invoker's, its definer's rights. Errors 1370 and 1449:
    /// the session may be there all the same.
    pub(super) fn enter_routine(&mut self, def: &RoutineDef) -> Result<(), MySqlError> {
        let client = &self.state.client;
        let (user, host) = (&*def.definer.0, &*def.definer.1);
        let other = !def.invoker && (client.unrestricted || (client.account_user.as_str(), client.account_host.as_str()) != (user, host));
        if other && self.state.instance.database().catalog().user(user, host).is_none() {
            return Err(errors::no_such_user(user, host));
        }
        let mut running = Running {
            kind: Some(def.kind),
            schema: def.schema.clone(),
            name: def.name.clone(),
            database: self.state.database.clone(),
            own_database: self.own_database.take(),
            variables: Vec::new(),
            caller: None,
            handled: self.routines.handled.len(),
        };
        let values = settings(def, &self.state.instance.database().catalog());
        // What the routine sets of them goes with it, too.
        running.variables = values.iter().map(|(id, _)| (*id, self.state.variables.get(*id).clone())).collect();
        self.set_variables(values.into_iter());
        self.set_database(Some(def.schema.clone()));
        if other {
            let definer = self.state.actor(user, host);
            running.caller = Some(self.state.act_as(definer));
        }
        self.routines.running.push(running);
        // As in MySQL the definer has to have the right, too.
        match self.state.access() {
            // A trigger's is the right to have triggers on its table.
            Some(access) if other && def.kind != RoutineKind::Trigger => access.check_routine(Privileges::EXECUTE, def.kind, &def.schema, &def.name),
            _ => Ok(()),
        }
    }

    fn set_variables(&mut self, values: impl Iterator<Item = (VarId, VarValue)>) {
        let mut changed = false;
        for (id, value) in values {
            if *self.state.variables.get(id) != value {
                Arc::make_mut(&mut self.state.variables).set(id, value);
                changed = true;
            }
        }
        if changed {
            self.state.refresh();
        }
    }

    fn set_database(&mut self, database: Option<Str>) {
        if self.state.database != database {
            self.state.process.set_db(database.as_deref());
            self.state.database = database;
        }
    }

    /// Leaves all routines but the outermost `depth`: the session is again what it was before them.
    pub(crate) fn leave_routines(&mut self, depth: usize) {
        while self.routines.running.len() > depth {
            let Some(running) = self.routines.running.pop() else { return };
            self.set_variables(running.variables.into_iter());
            let catalog = self.state.instance.database().catalog();
            self.set_database(running.database.filter(|name| information_schema::is_virtual_schema(name) || catalog.schema(name).is_some()));
            self.own_database = running.own_database;
            if let Some(caller) = running.caller {
                self.state.act_again_as(caller);
            }
            self.routines.handled.truncate(running.handled);
            self.state.declared_types.clear();
        }
    }

    fn assign_outs(&mut self, loaded: &Loaded, frame: &Frame, outs: Vec<(usize, Out)>, mut caller: Caller<'_>) -> Result<(), MySqlError> {
        for (at, out) in outs {
            let (value, ty) = (frame.values[at].clone(), frame.types[at].clone());
            match (out, &mut caller) {
                (Out::Target(Target::User(name)), _) => {
                    self.state.user_vars.insert(name.to_lowercase().into(), (value, ty.collation()));
                }
                (Out::Target(Target::Local(variable)), Caller::Routine { frame, loaded, .. }) => self.assign_local(loaded, frame, variable, value, &ty)?,
                (Out::Parameter(index), _) => {
                    let name = loaded.program.variables[at].name.as_str().into();
                    self.routines.out_parameters.push(OutParameter { index, name, value, ty: ty.ty });
                }
                (Out::Target(Target::Local(_)), Caller::Session) => {}
            }
        }
        Ok(())
    }

    /// What a prepared CALL has given out through its parameters, as a result set before the OK, for clients that know what it is.
    pub(crate) fn send_out_parameters(&mut self, sink: &mut dyn ResultSink) {
        let outs = std::mem::take(&mut self.routines.out_parameters);
        if outs.is_empty() || !self.state.client.flags.ps_multi_results {
            return;
        }
        let (fields, row): (Vec<Field>, Vec<Value>) = outs.into_iter().map(|out| (Field::computed(out.name, ExprType::column(out.ty, true)), out.value)).unzip();
        let mut status = self.status_flags();
        status.0 |= StatusFlags::MORE_RESULTS_EXISTS | StatusFlags::PS_OUT_PARAMS;
        sink.announce(status);
        sink.columns(&execute::columns(&self.state, &fields));
        sink.row(&row);
        sink.end(OkSummary { status, ..OkSummary::default() });
    }
}
