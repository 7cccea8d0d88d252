//! Queries and the memory that others leave them.

use std::pin::pin;
use std::time::{Duration, Instant};

use datafusion::execution::memory_pool::MemoryConsumer;
use futures::FutureExt;
use highkey_types::{Collation, ColumnType};

use super::{Fixture, ParallelSettings, QueryContext, Shared, int};
use crate::df::engine::SPILLING_BATCH_ROWS;
use crate::df::memory::OWN_AT_ONCE;

const MEMORY: usize = 64 << 20;

/// A table of 15 MB.
fn filled() -> Fixture {
    let filler = "x".repeat(300);
    let rows: String = (0..50_000).map(|i| format!("{i}|{}|{filler}{i}\n", (i * 7919) % 50_000)).collect();
    let f = Fixture::with_memory(MEMORY);
    f.table("big", &[("id", int()), ("other", int()), ("t", ColumnType::varchar(400, Collation::utf8mb4()))], &rows);
    f
}

#[test]
fn a_query_works_while_others_have_all_memory() {
    let f = filled();
    let queries = [
        "SELECT COUNT(*), SUM(n) FROM (SELECT t, COUNT(*) n FROM big GROUP BY t) g",
        "SELECT COUNT(*), MAX(LENGTH(b.t)) FROM big a JOIN big b ON a.id = b.other",
        "SELECT COUNT(*), SUM(n) FROM (SELECT ROW_NUMBER() OVER (ORDER BY t DESC) n FROM big) w",
    ];
    let expected = queries.map(|sql| f.ask(sql).unwrap());
    let others = MemoryConsumer::new("others").register(f.engine.memory_pool());
    others.grow(MEMORY - (1 << 20));
    for (sql, expected) in queries.iter().zip(expected) {
        assert_eq!(f.ask(sql).unwrap(), expected, "{sql}");
    }
    assert!(f.engine.memory().refused > 0);
    let begun = Instant::now();
    while f.engine.memory().bytes > others.size() {
        assert!(begun.elapsed() < Duration::from_secs(5), "{} bytes stay in use", f.engine.memory().bytes);
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn rows_that_a_recursion_has_seen_are_counted() {
    let f = filled();
    f.check("WITH RECURSIVE r AS (SELECT id, t s FROM big WHERE id < 100 UNION SELECT id, CONCAT(s, 'y') FROM r WHERE LENGTH(s) < 310) SELECT COUNT(*) > 500 FROM r", "1");
    let others = MemoryConsumer::new("others").register(f.engine.memory_pool());
    others.grow(MEMORY / 2);
    f.check_error("WITH RECURSIVE r AS (SELECT id, CONCAT(t, t) s FROM big UNION SELECT id, CONCAT(s, 'y') FROM r WHERE LENGTH(s) < 620) SELECT COUNT(*) FROM r", 1038);
}

#[test]
fn who_waits_for_memory_of_its_own_keeps_no_workers() {
    let f = Fixture::new();
    let bound = f.bind("SELECT 1").unwrap();
    let parallel = ParallelSettings { enabled: true, default_degree: 2, max_workers: 4, ..ParallelSettings::serial() };
    let shared = Shared::new(QueryContext { parallel, ..f.context() }, &bound.rel, false, None);
    f.runtime.block_on(async {
        assert_eq!(shared.degree(1.0, true).await, Ok(2));
        for _ in SPILLING_BATCH_ROWS {
            assert!(shared.start_spilling().await);
        }
        assert_eq!(f.engine.workers().running(), 2);
        let mut others = Vec::new();
        for _ in 0..OWN_AT_ONCE {
            others.push(f.engine.own_memory(|| false).await.unwrap());
        }
        let mut waiting = pin!(shared.start_spilling());
        assert!(waiting.as_mut().now_or_never().is_none());
        assert_eq!(f.engine.workers().running(), 0);
        others.pop();
        assert!(waiting.await);
        assert!(shared.degree(1.0, true).await.is_err());
    });
}
