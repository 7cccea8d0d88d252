//! Plans that are kept between executions of a statement.
//!
//! For small tables a query is planned for much longer than it runs. What is kept is the physical plan as DataFusion made it. It is never executed: each
//! execution takes a copy of it whose operators have a state of their own and whose scans are cut anew, and adds what is added to every plan (`super::ready`).
//! Its functions and scans know the query by their [`Owner`], so that the plan holds no snapshot and nothing of a session while nobody executes it.
//!
//! Who keeps the slot answers for it that the query is the same, to its constants but those that are left open (`super::parameters`), under the same variables, that its
//! tables are defined as they were, and that planning it again would warn of nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_plan::ExecutionPlan;
use parking_lot::Mutex;

use super::context::{Owner, Shared};
use super::lower::Lowerer;
use super::parallel::OrderWatch;
use super::parameters::Key;
use super::scan::ScanExec;
use super::{Physical, Planned, ready};

/// Where a statement keeps the plan of its query. Whoever executes it takes it out: an execution beside that one finds none, and plans for itself.
#[derive(Default)]
pub struct PlanSlot {
    plan: Mutex<Option<KeptPlan>>,
    used: AtomicBool,
    /// The operands of the query (`plan::for_each_operand`) whose values may be others the next time; by number.
    open: Vec<usize>,
    /// Its plan depends on them after all.
    closed: AtomicBool,
}

impl PlanSlot {
    /// For a plan that serves for any values of these operands.
    pub fn opening(open: Vec<usize>) -> PlanSlot {
        PlanSlot { open, ..PlanSlot::default() }
    }

    /// The operands that it was made for any values of.
    pub fn open(&self) -> &[usize] {
        &self.open
    }

    /// No plan of the query serves for other values than those that it was made for.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    pub(super) fn is_open(&self) -> bool {
        !self.open.is_empty() && !self.is_closed()
    }

    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

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
    /// Its parameters.
    keys: Vec<Key>,
}

impl KeptPlan {
    /// Keeps a plan that was just made, if it may be executed again: `None` otherwise.
    pub fn of(planned: &Planned, shared: &Shared) -> Option<KeptPlan> {
        // Later attempts have plans of another kind.
        (!shared.is_for_once() && shared.attempt() == 0).then(|| KeptPlan {
            planned: planned.clone(),
            in_order: shared.in_order(),
            owner: shared.owner.clone(),
            order: shared.order.clone(),
            keys: shared.parameters.keys(),
        })
    }

    /// The plan for an execution, whose `shared` was made for it. `None` if another is needed: it has another number of threads now, memory has another limit, or
    /// it was made for far fewer or far more rows.
    pub async fn ready(&self, shared: &Arc<Shared>) -> Result<Option<Physical>> {
        let Planned { cost, planning, .. } = self.planned;
        shared.check_killed()?;
        if shared.in_order() != self.in_order || !Arc::ptr_eq(&shared.engine.state(planning), &self.planned.state) {
            return Ok(None);
        }
        let lowerer = Lowerer::new(shared.clone());
        for key in &self.keys {
            match lowerer.parameter_value(key.parameter, key.form)? {
                Some(value) if value.data_type() == key.data_type => shared.parameters.add(key.clone(), value),
                _ => return Ok(None),
            }
        }
        let Some(mut planned) = self.planned.clone().anew()? else { return Ok(None) };
        if planned.degree.is_some() {
            let degree = shared.degree(cost, true).await;
            if shared.threads(degree) != planning.degree {
                return Ok(None);
            }
            planned.degree = Some(degree);
        }
        shared.parameters.know();
        Ok(Some(ready(shared, planned, true).await?))
    }
}

impl Planned {
    /// The plan for an execution of its own; `None` if its scans read far fewer or far more rows than it was made for.
    pub fn anew(self) -> Result<Option<Planned>> {
        let mut fits = true;
        let physical = self.physical.transform_up(|node| {
            let fresh = match node.downcast_ref::<ScanExec>().map(ScanExec::anew).transpose()? {
                Some(Some(scan)) => Arc::new(scan) as Arc<dyn ExecutionPlan>,
                Some(None) => {
                    fits = false;
                    return Ok(Transformed::no(node));
                }
                None => node.reset_state()?,
            };
            Ok(Transformed::yes(fresh))
        });
        let physical = physical.data()?;
        Ok(if fits { Some(Planned { physical, ..self }) } else { None })
    }
}
