//! The threads, memory and spill space that queries share.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use datafusion::common::config::ConfigNonZeroUsize;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::context::SessionState;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::optimizer::{Optimizer, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::prelude::SessionConfig;
use highkey_table::lower_priority;
use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;

use super::LOOK_FOR_KILL;
use super::append::UnionInOrder;
use super::awake::Awake;
use super::build_side::BuildSmallerSide;
use super::memory::{MemoryUse, OWN_AT_ONCE, OWN_BYTES, OwnMemory, QueryMemory};
use super::merge_join::JoinsBySorting;
use super::constants::ForgetConstants;
use super::deal::DealProbes;
use super::give_way::GiveWay;
use super::helpers::count_helpers;
use super::parallel::Workers;
use super::scan::{CacheUsage, ColumnCache};
use super::ties::BreakTies;

/// Rows per batch.
pub(super) const BATCH_ROWS: usize = 8192;
/// The same for plans that spill: the least that an operator needs is a batch or two, of each file that it merges. If the first is too much, the rows are long.
pub(super) const SPILLING_BATCH_ROWS: [usize; 2] = [1024, 32];
/// Parts of the memory that an operator which can spill gets one of; fewer bytes where everything spills: merge joins have two sorts each, all of them
/// alive at once.
const SHARES: usize = 2;
const SMALL_SHARES: usize = 16;
/// How long a query waits for memory of its own while others have theirs.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Bytes of a join's table for each row of its build side when it is an array over the range of their keys: about what the row itself takes.
const DIRECT_BYTES_FOR_EACH: f64 = 128.0;
/// Such an array may be this part of the memory for any rows, but has room for so many keys at least and at most.
const DIRECT_PART: usize = 256;
const LEAST_DIRECT: usize = 1 << 10;
const MOST_DIRECT: usize = 1 << 20;

/// Threads that may block. A worker of a copy holds one while it waits for its session, which may be waiting for another worker: with fewer of them than
/// `parallel_max_threads` allows twice over, copies could wait for one another for ever. None is there before it is needed.
const MOST_BLOCKING: usize = 1 << 18;

/// What an engine is given.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    pub threads: usize,
    /// `parallel_memory_limit`: bytes for sorting, grouping and joining of all queries together; beyond it they spill.
    pub memory_bytes: usize,
    /// `highkey_temp_space_limit`: bytes of spill files of all queries together; one that needs more fails.
    pub temp_bytes: u64,
    /// `highkey_column_cache_size`: bytes of decoded columns that scans keep for the next ones; 0 keeps none.
    pub column_cache_bytes: usize,
    /// A directory for spill files; what an earlier process left in it is removed.
    pub spill_dir: PathBuf,
}

/// Runs queries on threads of its own, so that a report does not keep commits waiting.
pub struct QueryEngine {
    runtime: Option<Runtime>,
    memory: QueryMemory,
    config: SessionConfig,
    environment: Arc<RuntimeEnv>,
    /// The same memory in small shares, for plans that spill whatever they keep.
    small_shares: Arc<RuntimeEnv>,
    /// Places of queries that have memory of their own.
    own_places: Arc<Semaphore>,
    states: Mutex<HashMap<Planning, Arc<SessionState>>>,
    workers: Arc<Workers>,
    give_way: Arc<GiveWay>,
    columns: ColumnCache,
    spill_dir: PathBuf,
    /// `highkey_temp_space_limit`.
    temp_limit: AtomicU64,
    /// What files have of it that are not DataFusion's.
    temp_beside: AtomicU64,
}

/// How a query is planned and executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Planning {
    /// Partitions of every operator that can have several.
    pub degree: usize,
    /// How often memory ran out: then operators that spill, and ever smaller batches.
    pub spilling: usize,
    /// It has windows.
    pub windows: bool,
    /// Batches have one row: it is done with before the next.
    pub by_row: bool,
    /// In memory of its own ([`OwnMemory`]).
    pub own_memory: bool,
}

impl QueryEngine {
    pub fn new(options: EngineOptions) -> std::io::Result<Arc<QueryEngine>> {
        if options.spill_dir.exists() {
            std::fs::remove_dir_all(&options.spill_dir)?;
        }
        std::fs::create_dir_all(&options.spill_dir)?;
        let workers: Arc<Workers> = Arc::default();
        let give_way = GiveWay::new(workers.clone());
        let threads = options.threads.max(1);
        let awake = Arc::new(Awake::of(threads));
        let (started, parked, unparked, sessions) = (awake.clone(), awake.clone(), awake, give_way.clone());
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .max_blocking_threads(MOST_BLOCKING)
            .thread_name("highkey-query")
            // Plans of many levels are made, run and dropped by functions that call themselves. What is not used takes no memory.
            .thread_stack_size(32 << 20)
            // Queries give way to transactions.
            .on_thread_start(move || {
                lower_priority();
                started.begins();
            })
            .on_thread_park(move || parked.sleeps())
            .on_thread_unpark(move || unparked.wakes(!sessions.sessions_work()))
            .enable_all()
            .build()?;
        let memory = QueryMemory::new(options.memory_bytes, SHARES);
        let disk = DiskManagerBuilder::default()
            .with_mode(DiskManagerMode::Directories(vec![options.spill_dir.clone()]))
            .with_max_temp_directory_size(options.temp_bytes);
        let environment =
            RuntimeEnvBuilder::new().with_memory_pool(Arc::new(memory.clone())).with_disk_manager_builder(disk).build().map_err(std::io::Error::other)?;
        // The same files, so that their space is counted together.
        let small_shares = RuntimeEnv { memory_pool: Arc::new(memory.for_spilling(SMALL_SHARES)), ..environment.clone() };
        let (environment, small_shares) = (Arc::new(environment), Arc::new(small_shares));
        let mut config = SessionConfig::new();
        let settings = config.options_mut();
        // Names are generated and unique; types are final. A rule that fails is our bug and must be heard of.
        settings.optimizer.skip_failed_rules = false;
        settings.optimizer.prefer_hash_join = true;
        // Filters that joins, sorts and extremes make of what they have seen: looking each row up in a join's table before the join does it
        // costs a third more time in TPC-H, and which of equal rows a sort keeps would depend on the threads' speed.
        settings.optimizer.enable_dynamic_filter_pushdown = false;
        settings.optimizer.enable_join_dynamic_filter_pushdown = false;
        settings.optimizer.enable_topk_dynamic_filter_pushdown = false;
        settings.optimizer.enable_aggregate_dynamic_filter_pushdown = false;
        // Exchanges between a sort and what is computed of its rows would lose their order, which DataFusion guards directly above the sort only.
        // Scans are cut into pieces of their own.
        settings.optimizer.enable_round_robin_repartition = false;
        settings.execution.collect_statistics = true;
        // An exchange that spills writes a file for each batch: of files that several workers write to, its reader would wait for the first to end,
        // while the batch that it was told of is in another, and the workers for the reader.
        settings.execution.max_spill_file_size_bytes = ConfigNonZeroUsize::try_new(1).expect("1 is not 0");
        // A join by an integer finds rows by the key itself where a table of so many bytes for each row will do.
        settings.execution.perfect_hash_join_min_key_density = 4.0 / DIRECT_BYTES_FOR_EACH;
        // It fails where a CASE's condition excludes NULLs, which logical plans see and physical ones do not.
        settings.execution.skip_physical_aggregate_schema_check = true;
        count_helpers();
        Ok(Arc::new(QueryEngine {
            runtime: Some(runtime),
            memory,
            config,
            environment,
            small_shares,
            own_places: Arc::new(Semaphore::new(OWN_AT_ONCE)),
            states: Mutex::default(),
            give_way,
            workers,
            columns: ColumnCache::new(options.column_cache_bytes),
            spill_dir: options.spill_dir,
            temp_limit: AtomicU64::new(options.temp_bytes),
            temp_beside: AtomicU64::new(0),
        }))
    }

    /// The planner, optimizer and memory for plans of a kind.
    pub(super) fn state(&self, planning: Planning) -> Arc<SessionState> {
        self.states.lock().entry(planning).or_insert_with(|| Arc::new(self.new_state(planning))).clone()
    }

    fn new_state(&self, Planning { degree, spilling, windows, by_row, own_memory }: Planning) -> SessionState {
        let batch_rows = match spilling.checked_sub(1) {
            _ if by_row => 1,
            Some(times) => SPILLING_BATCH_ROWS[times.min(SPILLING_BATCH_ROWS.len() - 1)],
            None => BATCH_ROWS,
        };
        let spilling = spilling > 0;
        let memory = if own_memory { OWN_BYTES } else { self.memory.limit() };
        let mut config = self.config.clone().with_target_partitions(degree).with_batch_size(batch_rows);
        // And whatever the rows are where it is a small part of the memory.
        config.options_mut().execution.perfect_hash_join_small_build_threshold = (memory / DIRECT_PART / 4).clamp(LEAST_DIRECT, MOST_DIRECT);
        // What a sort keeps back for merging its spilled runs; DataFusion's 10 MB would be all of a small pool.
        config.options_mut().execution.sort_spill_reservation_bytes = (memory / 64).min(10 << 20);
        if spilling {
            // Batches that are sorted as one give texts that point into all of them: each batch of the result is counted with the buffers of all.
            config.options_mut().execution.sort_in_place_threshold_bytes = 0;
        }
        SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(if spilling { self.small_shares.clone() } else { self.environment.clone() })
            .with_analyzer_rules(Vec::new())
            .with_optimizer_rules(optimizer_rules())
            .with_physical_optimizer_rules(physical_rules(spilling, windows))
            .build()
    }

    /// Where queries count what they keep.
    pub(super) fn memory_pool(&self) -> &Arc<dyn MemoryPool> {
        &self.environment.memory_pool
    }

    /// Memory for one query alone, which others have left none. Where too many have some of their own it waits for one of them to end: `None` if that takes too
    /// long, or until `is_killed`.
    pub(super) async fn own_memory(&self, is_killed: impl Fn() -> bool) -> Option<OwnMemory> {
        let until = Instant::now() + LONGEST_WAIT;
        loop {
            match tokio::time::timeout(LOOK_FOR_KILL, self.own_places.clone().acquire_owned()).await {
                Ok(place) => return Some(OwnMemory::new(&self.memory, SMALL_SHARES, &self.environment, place.ok()?)),
                Err(_) if is_killed() || Instant::now() > until => return None,
                Err(_) => {}
            }
        }
    }

    /// `parallel_memory_limit` and `highkey_temp_space_limit` as they are now; for the queries that run, too.
    pub(crate) fn set_limits(&self, memory_bytes: usize, temp_bytes: u64) {
        if self.memory.set_limit(memory_bytes) != memory_bytes {
            self.states.lock().clear();
        }
        self.temp_limit.store(temp_bytes, Ordering::Relaxed);
        self.share_temp();
    }

    /// DataFusion's files may have what the others have not.
    fn share_temp(&self) {
        let left = self.temp_limit.load(Ordering::Relaxed).saturating_sub(self.temp_beside.load(Ordering::Relaxed));
        // It fails where spilling is disabled, which it is not.
        let _ = self.environment.disk_manager.set_max_temp_directory_size(left);
    }

    /// Counts bytes of a file that is not DataFusion's; false, and they are not, if all files together would have too many.
    pub(super) fn take_temp(&self, bytes: u64) -> bool {
        let beside = self.temp_beside.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if beside.saturating_add(self.environment.disk_manager.used_disk_space()) > self.temp_limit.load(Ordering::Relaxed) {
            self.temp_beside.fetch_sub(bytes, Ordering::Relaxed);
            return false;
        }
        self.share_temp();
        true
    }

    pub(super) fn give_temp_back(&self, bytes: u64) {
        if bytes > 0 {
            self.temp_beside.fetch_sub(bytes, Ordering::Relaxed);
            self.share_temp();
        }
    }

    /// `PQ_temp_used`: bytes of spill files, and of those in which rows wait for sessions.
    pub(crate) fn temp_bytes(&self) -> u64 {
        self.environment.disk_manager.used_disk_space() + self.temp_beside.load(Ordering::Relaxed)
    }

    /// The workers of parallel queries.
    pub(crate) fn workers(&self) -> &Arc<Workers> {
        &self.workers
    }

    /// What makes queries give way to sessions.
    pub(crate) fn give_way(&self) -> &Arc<GiveWay> {
        &self.give_way
    }

    pub(super) fn columns(&self) -> &ColumnCache {
        &self.columns
    }

    /// What is kept of columns, and how often it was of use.
    pub(crate) fn column_cache_usage(&self) -> CacheUsage {
        self.columns.usage()
    }

    /// Where files of rows are that are too many for memory.
    pub(crate) fn spill_dir(&self) -> &Path {
        &self.spill_dir
    }

    /// What queries know of their memory.
    pub(crate) fn memory(&self) -> MemoryUse {
        self.memory.in_use()
    }

    pub(crate) fn handle(&self) -> &tokio::runtime::Handle {
        self.runtime.as_ref().expect("taken only by drop").handle()
    }
}

impl Drop for QueryEngine {
    fn drop(&mut self) {
        self.give_way.stop();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// DataFusion's rules without those for subqueries, of which `lower` has made joins with MySQL's NULLs, and without the one that would put joined tables
/// back into the order of FROM.
fn optimizer_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    const OURS: [&str; 5] =
        ["decorrelate_predicate_subquery", "scalar_subquery_to_join", "decorrelate_lateral_join", "rewrite_set_comparison", "eliminate_cross_join"];
    Optimizer::new().rules.into_iter().filter(|rule| !OURS.contains(&rule.name())).collect()
}

fn physical_rules(merge_joins: bool, windows: bool) -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> = vec![Arc::new(UnionInOrder), Arc::new(ForgetConstants), Arc::new(BreakTies)];
    if merge_joins {
        rules.push(Arc::new(JoinsBySorting));
    }
    // It takes an aggregation by a constant for a row even where there is nothing to aggregate, and COUNT of it for 1; nothing else here has
    // exact statistics.
    // Joins and filters that leave out columns forget which were constant; a window whose sort was left out for it would then find its rows unsorted.
    let unwanted = |name: &str| name == "aggregate_statistics" || windows && name == "ProjectionPushdown";
    let others = PhysicalOptimizer::new().rules.into_iter().filter(|rule| !unwanted(rule.name()));
    for rule in others {
        let chooses_sides = rule.name() == "join_selection";
        rules.push(rule);
        if chooses_sides {
            rules.push(Arc::new(BuildSmallerSide));
            rules.push(Arc::new(DealProbes));
        }
    }
    rules
}
