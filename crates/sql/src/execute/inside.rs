//! Queries of stored functions: each is one of its own, under the snapshot of the statement that calls the function, and is waited for.

use std::sync::{Arc, mpsc};

use highkey_table::RoutineDef;
use highkey_types::{MySqlError, Value};

use super::query::query_context_of;
use super::subqueries::query_of;
use crate::df::{self, ParallelSettings, QueryContext};
use crate::expr::{Raised, SharedContext};
use crate::plan::{BoundQuery, PqHint, Rel};
use crate::routine;
use crate::session::{SessionState, blocking, error};

async fn all_rows(query: BoundQuery, cx: QueryContext) -> Result<Vec<Vec<Value>>, MySqlError> {
    let mut stream = df::query_inside(query, cx).await?;
    let mut rows = Vec::new();
    while let Some(some) = stream.next().await? {
        rows.extend(some.to_vec());
    }
    Ok(rows)
}

/// The rows of a query of the function `of`, and what it warned of; `account` as for `EvalContext::rows`. The thread that asks serves nobody else meanwhile.
pub(crate) fn rows_inside(state: &mut SessionState, query: Rel, of: &RoutineDef, account: &RoutineDef) -> Result<(Vec<Vec<Value>>, Raised), MySqlError> {
    let snapshot = state.reads.clone().ok_or_else(|| error::not_supported("functions that run queries in this statement"))?;
    let mut inside = state.clone();
    inside.take_raised();
    // What strict mode refuses is refused where values go into variables.
    inside.begin_changes(true);
    let settings = routine::settings(of, &state.instance.database().catalog());
    let variables = Arc::make_mut(&mut inside.variables);
    settings.into_iter().for_each(|(id, value)| variables.set(id, value));
    inside.refresh();
    inside.database = Some(of.schema.clone());
    if !account.invoker {
        let definer = inside.actor(&account.definer.0, &account.definer.1);
        inside.act_as(definer);
    }
    let parallel = ParallelSettings { hint: PqHint::Off, ..inside.config.parallel.clone() };
    let (cx, eval) = query_context_of(&inside, snapshot, parallel);
    let (tell, told) = mpsc::channel();
    state.instance.queries().handle().spawn(async move {
        // Who asked may be gone after a panic.
        let _ = tell.send(all_rows(query_of(query), cx).await);
    });
    // Without an answer it has panicked.
    let answer = blocking(|| told.recv()).unwrap_or_else(|_| Err(error::internal("query of a stored function")));
    let mut inside = eval.lock();
    state.user_vars.clone_from(&inside.user_vars);
    let raised = inside.take_raised();
    Ok((answer?, raised))
}
