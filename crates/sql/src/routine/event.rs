//! The body of an event: that of a procedure without parameters.

use std::sync::Arc;

use futures::future::BoxFuture;
use highkey_table::{DataAccess, EventDef, RoutineDef, RoutineKind};
use highkey_types::MySqlError;

use super::run::Frame;
use super::{Loaded, program, variable_types};
use crate::execute::{Failure, Outcome};
use crate::session::{ResultSink, Session};

impl Session {
    /// Runs the body of an event, whose definer the session's account is.
    pub(crate) fn run_event_body<'a>(&'a mut self, event: &'a EventDef, sink: &'a mut dyn ResultSink) -> BoxFuture<'a, Result<Outcome, Failure>> {
        Box::pin(async move {
            let def = Arc::new(procedure(event));
            let loaded = Loaded::new(def.clone(), program(&def)?)?;
            let mut frame = Frame::new(&loaded);
            let entered = self.enter_routine(&def);
            if let Some(running) = self.routines.running.last_mut() {
                // It may call a procedure of its name.
                running.kind = None;
            }
            let ended = match entered {
                Ok(()) => self.run_steps(&loaded, &mut frame, sink).await,
                Err(e) => Err(e.into()),
            };
            self.leave_routines(0);
            ended.map(|()| Outcome::ok())
        })
    }
}

/// Errors of the types of its variables, as of columns.
pub(crate) fn check_event_body(event: &EventDef) -> Result<(), MySqlError> {
    let def = procedure(event);
    variable_types(&program(&def)?.variables, &def).map(drop)
}

fn procedure(event: &EventDef) -> RoutineDef {
    RoutineDef {
        kind: RoutineKind::Procedure,
        schema: event.schema.clone(),
        name: event.name.clone(),
        parameters: "".into(),
        returns: "".into(),
        body: event.body.clone(),
        data_access: DataAccess::ContainsSql,
        deterministic: false,
        invoker: true,
        comment: "".into(),
        definer: event.definer.clone(),
        sql_mode: event.sql_mode,
        charset: event.charset,
        collation: event.collation,
        schema_collation: event.schema_collation,
        created_at: event.created_at,
        altered_at: event.altered_at,
    }
}
