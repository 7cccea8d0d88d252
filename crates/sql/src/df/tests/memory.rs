//! Queries and the memory that others leave them.

use std::time::{Duration, Instant};

use datafusion::execution::memory_pool::MemoryConsumer;
use highkey_types::{Collation, ColumnType};

use super::{Fixture, int};

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
