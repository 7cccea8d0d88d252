//! Plans that are kept between executions of a statement.
//!
//! For small tables a query is planned for much longer than it runs. What is kept is the physical plan as DataFusion made it. It is never executed: each
//! execution takes a copy of it whose operators have a state of their own and whose scans are cut anew, and adds what is added to every plan (`super::ready`).
//! Its functions and scans know the query by their [`Owner`], so that the plan holds no snapshot and nothing of a session while nobody executes it.
//!
//! Who keeps the slot answers for it that the query is the same, to its constants, under the same variables, that its tables are defined as they were, and
//! that planning it again would warn of nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_plan::ExecutionPlan;
use parking_lot::Mutex;

use super::context::{Owner, Shared};
use super::parallel::OrderWatch;
use super::scan::ScanExec;
use super::{Physical, Planned, ready};

/// Where a statement keeps the plan of its query. Whoever executes it takes it out: an execution beside that one finds none, and plans for itself.
#[derive(Default)]
pub struct PlanSlot {
    plan: Mutex<Option<KeptPlan>>,
    used: AtomicBool,
}

impl PlanSlot {
    /// There is a plan for the next execution.
    pub fn is_full(&self) -> bool {
        self.plan.lock().is_some()
    }

    /// The last execution was by the plan that was kept. Known once, when it has ended.
    pub fn was_used(&self) -> bool {
        self.used.swap(false, Ordering::Relaxed)
    }

    pub(super) fn take(&self) -> Option<KeptPlan> {
        self.plan.lock().take()
    }

    pub(super) fn put(&self, plan: KeptPlan, used: bool) {
        *self.plan.lock() = Some(plan);
        self.used.store(used, Ordering::Relaxed);
    }
}

/// A plan that nobody executes.
pub(super) struct KeptPlan {
    planned: Planned,
    in_order: bool,
    pub owner: Arc<Owner>,
    /// Its operators watch by it.
    pub order: OrderWatch,
}

impl KeptPlan {
    /// Keeps a plan that was just made, if it may be executed again: `None` otherwise.
    pub fn of(planned: &Planned, shared: &Shared) -> Option<KeptPlan> {
        // Later attempts have plans of another kind.
        (!shared.is_for_once() && shared.attempt() == 0)
            .then(|| KeptPlan { planned: planned.clone(), in_order: shared.in_order(), owner: shared.owner.clone(), order: shared.order.clone() })
    }

    /// The plan for an execution, whose `shared` was made for it. `None` if another is needed: it has another number of threads now, or memory has another limit.
    pub async fn ready(&self, shared: &Arc<Shared>) -> Result<Option<Physical>> {
        let Planned { cost, planning, .. } = self.planned;
        shared.check_killed()?;
        if shared.in_order() != self.in_order || !Arc::ptr_eq(&shared.engine.state(planning), &self.planned.state) {
            return Ok(None);
        }
        let mut planned = self.planned.clone();
        if planned.degree.is_some() {
            let degree = shared.degree(cost, true).await;
            if shared.threads(degree) != planning.degree {
                return Ok(None);
            }
            planned.degree = Some(degree);
        }
        Ok(Some(ready(shared, planned.anew()?, true).await?))
    }
}

impl Planned {
    /// The plan for an execution of its own.
    pub fn anew(self) -> Result<Planned> {
        let physical = self.physical.transform_up(|node| {
            let fresh = match node.downcast_ref::<ScanExec>() {
                Some(scan) => Arc::new(scan.anew()?) as Arc<dyn ExecutionPlan>,
                None => node.reset_state()?,
            };
            Ok(Transformed::yes(fresh))
        });
        Ok(Planned { physical: physical.data()?, ..self })
    }
}
