//! CHANGE REPLICATION …, START, STOP and RESET REPLICA: the server's replica does them.

use super::{Failure, Outcome};
use crate::parse::ast::{ReplicaAction, ReplicaStatement};
use crate::session::{Session, error};

impl Session {
    pub(crate) async fn replica(&mut self, statement: &ReplicaStatement) -> Result<Outcome, Failure> {
        let Some(replica) = self.state.instance.replica() else {
            return Err(error::not_supported("replication without a server").into());
        };
        if matches!(statement.action, ReplicaAction::Stop(_)) && self.state.locks.has_tables() {
            // What is applied may wait for the tables.
            return Err(highkey_types::errors::lock_or_active_transaction().into());
        }
        for warning in replica.execute(statement).await? {
            self.state.push_warning(warning);
        }
        Ok(Outcome::ok())
    }
}
