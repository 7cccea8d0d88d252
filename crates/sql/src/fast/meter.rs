//! EXPLAIN ANALYZE of the fast path: rows are pushed from the source through the stages, so the time between two looks at the clock is that of whoever had
//! the row. What MySQL tells of an operator is its own time and that of the operators below it.

use std::time::{Duration, Instant};

use crate::measure::Actual;

/// The nodes of a level of the loops, or of a source that is no join. Those of the levels stand one behind the other, then one node for each stage.
pub(crate) const SCAN: usize = 0;
/// The conditions on the rows that a level reads.
pub(crate) const FILTER: usize = 1;
/// A level joined with those before it.
pub(super) const JOIN: usize = 2;
pub(crate) const LEVEL_NODES: usize = 3;

/// What the nodes of a running query have done.
pub(super) struct Meter {
    nodes: Vec<Node>,
    /// Of how many levels.
    levels: usize,
    /// When the clock was looked at.
    last: Instant,
}

#[derive(Clone, Default)]
struct Node {
    own: Duration,
    loops: u64,
    rows: u64,
    first: Duration,
    /// Its time when this execution began, as long as that has given no row.
    began: Option<Duration>,
}

impl Meter {
    pub fn new(levels: usize, stages: usize) -> Meter {
        let mut meter = Meter { nodes: vec![Node::default(); levels * LEVEL_NODES + stages], levels, last: Instant::now() };
        for node in (0..levels).map(|level| level * LEVEL_NODES + JOIN).chain(levels * LEVEL_NODES..meter.nodes.len()) {
            meter.begin(node);
        }
        meter
    }

    /// The node of a stage.
    pub fn stage(&self, stage: usize) -> usize {
        self.levels * LEVEL_NODES + stage
    }

    fn begin(&mut self, node: usize) {
        let began = self.time(node);
        let node = &mut self.nodes[node];
        node.loops += 1;
        node.began = Some(began);
    }

    fn end(&mut self, node: usize) {
        if let Some(began) = self.nodes[node].began.take() {
            let time = self.time(node);
            self.nodes[node].first += time.saturating_sub(began);
        }
    }

    /// A level is read, for a row of those before it.
    pub fn enter(&mut self, level: usize) {
        self.begin(level * LEVEL_NODES + SCAN);
        self.begin(level * LEVEL_NODES + FILTER);
    }

    /// It has been.
    pub fn leave(&mut self, level: usize) {
        self.end(level * LEVEL_NODES + SCAN);
        self.end(level * LEVEL_NODES + FILTER);
    }

    /// The time since the last look was a node's.
    pub fn lap(&mut self, node: usize) {
        let now = Instant::now();
        self.nodes[node].own += now.saturating_duration_since(self.last);
        self.last = now;
    }

    /// It was nobody's.
    pub fn skip(&mut self) {
        self.last = Instant::now();
    }

    /// A node gives rows.
    pub fn rows(&mut self, node: usize, rows: u64) {
        self.nodes[node].rows += rows;
        if rows > 0 {
            self.end(node);
        }
    }

    /// The time of a node and of those below it.
    fn time(&self, node: usize) -> Duration {
        let level = node / LEVEL_NODES;
        let reads_level = level < self.levels && node % LEVEL_NODES != JOIN;
        let first = if reads_level { level * LEVEL_NODES } else { 0 };
        self.nodes[first..=node].iter().map(|node| node.own).sum()
    }

    /// What all nodes have done.
    pub fn finish(mut self) -> Vec<Actual> {
        (0..self.nodes.len()).for_each(|node| self.end(node));
        let actual = |(at, node): (usize, &Node)| Actual { loops: node.loops, rows: node.rows, first: node.first, all: self.time(at) };
        self.nodes.iter().enumerate().map(actual).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_all_below() {
        let mut meter = Meter::new(2, 1);
        let spend = |meter: &mut Meter, node: usize, millis: u64| meter.nodes[node].own += Duration::from_millis(millis);
        meter.enter(0);
        spend(&mut meter, SCAN, 1);
        meter.rows(SCAN, 1);
        spend(&mut meter, FILTER, 2);
        meter.rows(FILTER, 1);
        for rows in [0, 1] {
            meter.enter(1);
            spend(&mut meter, LEVEL_NODES + SCAN, 4);
            meter.rows(LEVEL_NODES + SCAN, rows);
            spend(&mut meter, LEVEL_NODES + SCAN, 8);
            meter.leave(1);
        }
        meter.rows(LEVEL_NODES + JOIN, 1);
        let stage = meter.stage(0);
        spend(&mut meter, stage, 16);
        meter.rows(stage, 1);
        meter.leave(0);
        let told: Vec<_> = meter.finish().iter().map(|a| (a.loops, a.rows, a.first.as_millis(), a.all.as_millis())).collect();
        assert_eq!(told[SCAN], (1, 1, 1, 1));
        assert_eq!(told[FILTER], (1, 1, 3, 3));
        assert_eq!(told[LEVEL_NODES + SCAN], (2, 1, 16, 24));
        assert_eq!(told[LEVEL_NODES + JOIN], (1, 1, 27, 27));
        assert_eq!(told[stage], (1, 1, 43, 43));
    }
}
