//! An event's run: a session of its definer's, and one statement in it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use futures::FutureExt;
use highkey_table::{EventDef, Privileges};
use highkey_types::{MySqlError, errors};

use super::{ClientFlags, ClientInfo, Digested, Instance, Session};
use crate::execute::{DiscardingSink, Failure};
use crate::variables::{self, VarValue};

impl Session {
    /// A session for one run of an event.
    pub(crate) fn of_event(instance: Arc<Instance>, event: &EventDef) -> Session {
        let client = ClientInfo {
            connection_id: instance.next_connection_id(),
            user: "event_scheduler".into(),
            client_host: "localhost".into(),
            client_address: "localhost".into(),
            account_user: event.definer.0.to_string(),
            account_host: event.definer.1.to_string(),
            // Result sets go nowhere.
            flags: ClientFlags { multi_results: true, ..ClientFlags::default() },
            ..ClientInfo::default()
        };
        let mut session = Session::new(instance, client);
        session.state.process.set_user(&event.definer.0);
        let time_zone = variables::find("time_zone").expect("in the table");
        Arc::make_mut(&mut session.state.variables).set(time_zone, VarValue::Text(event.time_zone.clone()));
        session.state.refresh();
        session
    }

    /// Runs the event. Errors: 1044 and 1449 if its definer may not any more, and what ends its body.
    pub(crate) async fn run_event(&mut self, event: &EventDef) -> Result<(), MySqlError> {
        if self.state.instance.database().catalog().user(&event.definer.0, &event.definer.1).is_none() {
            return Err(errors::no_such_user(&event.definer.0, &event.definer.1));
        }
        if let Some(access) = self.state.access() {
            access.check_schema(Privileges::EVENT, &event.schema)?;
        }
        let waits = self.waits.clone();
        let run = std::pin::pin!(self.run_event_statement(event));
        waits.attend(run).await
    }

    async fn run_event_statement(&mut self, event: &EventDef) -> Result<(), MySqlError> {
        let started = Instant::now();
        self.begin_time(started);
        self.statement_text = event.body.clone();
        self.state.process.begin_statement("Connect", event.body.clone(), false, started);
        self.state.begin_statement(false);
        self.about_conditions = false;
        self.transaction_begin_statement();
        self.gtid.begin_statement(self.transaction.is_open(self.state.config.autocommit));
        self.schema_changed = false;
        let mut sink = DiscardingSink::default();
        let outcome = AssertUnwindSafe(self.run_event_body(event, &mut sink)).catch_unwind().await;
        let outcome = outcome.unwrap_or_else(|cause| Err(Failure::panicked(&*cause)));
        let left = self.leave(outcome, Digested::Text("", None), false, &mut sink).await;
        match (sink.error, left) {
            (Some(e), _) => Err(e),
            (None, Err(e)) => Err(super::error::internal(&e.to_string())),
            (None, Ok(_)) => Ok(()),
        }
    }
}
