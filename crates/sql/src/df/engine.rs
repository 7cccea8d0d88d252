//! The threads, memory and spill space that queries share.

use std::path::PathBuf;
use std::sync::Arc;

use datafusion::execution::SessionStateBuilder;
use datafusion::execution::context::SessionState;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::optimizer::{Optimizer, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::prelude::SessionConfig;
use tokio::runtime::{Builder, Runtime};

use super::append::UnionInOrder;

/// Rows per batch.
pub(super) const BATCH_ROWS: usize = 8192;

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
        let disk = DiskManagerBuilder::default().with_mode(DiskManagerMode::Directories(vec![options.spill_dir]));
        let environment = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(FairSpillPool::new(options.memory_bytes)))
            .with_disk_manager_builder(disk)
            .build_arc()
            .map_err(std::io::Error::other)?;
        let mut config = SessionConfig::new().with_target_partitions(1).with_batch_size(BATCH_ROWS);
        let settings = config.options_mut();
        // Names are generated and unique; types are final. A rule that fails is our bug and must be heard of.
        settings.optimizer.skip_failed_rules = false;
        settings.optimizer.prefer_hash_join = true;
        settings.execution.collect_statistics = true;
        let state = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(environment)
            .with_analyzer_rules(Vec::new())
            .with_optimizer_rules(optimizer_rules())
            .with_physical_optimizer_rules(physical_rules())
            .build();
        Ok(Arc::new(QueryEngine { runtime: Some(runtime), state: Arc::new(state) }))
    }

    pub(super) fn state(&self) -> &Arc<SessionState> {
        &self.state
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

fn physical_rules() -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> = vec![Arc::new(UnionInOrder)];
    rules.extend(PhysicalOptimizer::new().rules);
    rules
}

/// Queries give way to transactions. A system that refuses leaves the thread as it is.
fn lower_priority() {
    // On Linux, process 0 is the calling thread.
    let _ = rustix::process::setpriority_process(None, 5);
}
