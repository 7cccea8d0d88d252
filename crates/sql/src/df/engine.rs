//! The threads, memory and spill space that queries share.

use std::path::PathBuf;
use std::sync::Arc;

use datafusion::execution::SessionStateBuilder;
use datafusion::execution::context::SessionState;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::optimizer::{Optimizer, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::prelude::SessionConfig;
use tokio::runtime::{Builder, Runtime};

use super::append::UnionInOrder;
use super::memory::QueryMemory;
use super::merge_join::JoinsBySorting;

/// Rows per batch.
const BATCH_ROWS: usize = 8192;
/// The same for plans that spill: the least that an operator needs is a batch or two.
const SPILLING_BATCH_ROWS: usize = 1024;
/// Bytes that a sort may always have, so that a tiny limit still lets it hold some batches.
const LEAST_SHARE: usize = 2 << 20;

/// What an engine is given.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    pub threads: usize,
    /// `parallel_memory_limit`: bytes for sorting, grouping and joining of all queries together; beyond it they spill.
    pub memory_bytes: usize,
    /// A directory for spill files; what an earlier process left in it is removed.
    pub spill_dir: PathBuf,
}

/// Runs queries on threads of its own, so that a report does not keep commits waiting.
pub struct QueryEngine {
    runtime: Option<Runtime>,
    state: Arc<SessionState>,
    /// Plans that spill whatever they keep; for queries that ran out of memory.
    spilling: Arc<SessionState>,
}

impl QueryEngine {
    pub fn new(options: EngineOptions) -> std::io::Result<Arc<QueryEngine>> {
        if options.spill_dir.exists() {
            std::fs::remove_dir_all(&options.spill_dir)?;
        }
        std::fs::create_dir_all(&options.spill_dir)?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(options.threads.max(1))
            .thread_name("highkey-query")
            .thread_stack_size(8 << 20)
            .on_thread_start(lower_priority)
            .enable_all()
            .build()?;
        let memory = QueryMemory::new(options.memory_bytes, options.memory_bytes / 2);
        // Merge joins have two sorts each, all of them alive at once.
        let small_shares = memory.with_share((options.memory_bytes / 16).max(LEAST_SHARE));
        let spill_dir = &options.spill_dir;
        let environment = |memory: QueryMemory| {
            let disk = DiskManagerBuilder::default().with_mode(DiskManagerMode::Directories(vec![spill_dir.clone()]));
            RuntimeEnvBuilder::new().with_memory_pool(Arc::new(memory)).with_disk_manager_builder(disk).build_arc().map_err(std::io::Error::other)
        };
        let (environment, small_shares) = (environment(memory)?, environment(small_shares)?);
        let mut config = SessionConfig::new().with_target_partitions(1);
        let settings = config.options_mut();
        // Names are generated and unique; types are final. A rule that fails is our bug and must be heard of.
        settings.optimizer.skip_failed_rules = false;
        settings.optimizer.prefer_hash_join = true;
        settings.execution.collect_statistics = true;
        // What a sort keeps back for merging its spilled runs; DataFusion's 10 MB would be all of a small pool.
        settings.execution.sort_spill_reservation_bytes = (options.memory_bytes / 64).min(10 << 20);
        let state = |merge_joins: bool| {
            SessionStateBuilder::new()
                .with_config(config.clone().with_batch_size(if merge_joins { SPILLING_BATCH_ROWS } else { BATCH_ROWS }))
                .with_runtime_env(if merge_joins { small_shares.clone() } else { environment.clone() })
                .with_analyzer_rules(Vec::new())
                .with_optimizer_rules(optimizer_rules())
                .with_physical_optimizer_rules(physical_rules(merge_joins))
                .build()
        };
        Ok(Arc::new(QueryEngine { runtime: Some(runtime), state: Arc::new(state(false)), spilling: Arc::new(state(true)) }))
    }

    /// How queries are planned and executed; `spilling` if memory ran out once.
    pub(super) fn state(&self, spilling: bool) -> &Arc<SessionState> {
        if spilling { &self.spilling } else { &self.state }
    }

    pub(super) fn handle(&self) -> &tokio::runtime::Handle {
        self.runtime.as_ref().expect("taken only by drop").handle()
    }
}

impl Drop for QueryEngine {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// DataFusion's rules without those for subqueries: `lower` has made joins of them, with MySQL's NULLs.
fn optimizer_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    const OURS: [&str; 4] = ["decorrelate_predicate_subquery", "scalar_subquery_to_join", "decorrelate_lateral_join", "rewrite_set_comparison"];
    Optimizer::new().rules.into_iter().filter(|rule| !OURS.contains(&rule.name())).collect()
}

fn physical_rules(merge_joins: bool) -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> = vec![Arc::new(UnionInOrder)];
    if merge_joins {
        rules.push(Arc::new(JoinsBySorting));
    }
    rules.extend(PhysicalOptimizer::new().rules);
    rules
}

/// Queries give way to transactions. A system that refuses leaves the thread as it is.
fn lower_priority() {
    // On Linux, process 0 is the calling thread.
    let _ = rustix::process::setpriority_process(None, 5);
}
