//! What EXPLAIN ANALYZE measures: rows and time of each operator of the queries that a statement runs, on either executor.
//!
//! The time of an operator has that of the operators below it in it, as MySQL's: it passes while somebody waits for a row of it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

/// What an operator has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Actual {
    /// How often it was executed, from its first row to its last.
    pub loops: u64,
    /// Of all executions together.
    pub rows: u64,
    /// Until it had its first row, summed over the executions.
    pub first: Duration,
    /// Until it had all of them, summed likewise.
    pub all: Duration,
}

impl fmt::Display for Actual {
    /// As MySQL writes it: the average of the executions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.loops == 0 {
            return f.write_str("(never executed)");
        }
        let loops = self.loops as f64;
        let ms = |time: Duration| time.as_secs_f64() * 1e3 / loops;
        write!(f, "(actual time={:.3}..{:.3} rows={:.0} loops={})", ms(self.first), ms(self.all), self.rows as f64 / loops, self.loops)
    }
}

/// What an operator does, told by its workers.
#[derive(Debug, Default)]
pub struct Measure(Mutex<Shares>);

#[derive(Debug, Default)]
struct Shares {
    /// How often each partition was executed.
    executions: Vec<u64>,
    workers: Vec<Share>,
}

/// One worker's.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    rows: u64,
    first: Duration,
    all: Duration,
    /// Of a scan: rows that it has read, and how long it asked them for conditions.
    read: u64,
    filtering: Duration,
}

impl Shares {
    fn of(&mut self, worker: usize) -> &mut Share {
        if self.workers.len() <= worker {
            self.workers.resize(worker + 1, Share::default());
        }
        &mut self.workers[worker]
    }

    fn begin(&mut self, partition: usize, times: u64) {
        if self.executions.len() <= partition {
            self.executions.resize(partition + 1, 0);
        }
        self.executions[partition] += times;
    }

    /// Rows of all workers, and the time of the slowest one.
    fn actual(&self, rows: impl Fn(&Share) -> u64, time: impl Fn(&Share) -> Duration) -> Actual {
        let slowest = self.workers.iter().copied().max_by_key(&time).unwrap_or_default();
        let all = time(&slowest);
        Actual {
            loops: self.executions.iter().copied().max().unwrap_or(0),
            rows: self.workers.iter().map(rows).sum(),
            first: slowest.first.min(all),
            all,
        }
    }
}

impl Measure {
    /// One of its partitions is executed.
    pub fn begin(&self, partition: usize) {
        self.0.lock().begin(partition, 1);
    }

    /// A worker was asked for rows, for so long. `is_first`: it had none before in this execution.
    pub fn add(&self, worker: usize, time: Duration, rows: usize, is_first: bool) {
        let mut shares = self.0.lock();
        let share = shares.of(worker);
        share.rows += rows as u64;
        share.all += time;
        if is_first {
            share.first += time;
        }
    }

    /// As `add`, of what one thread does once.
    fn add_rows(&self, time: Duration, rows: usize) {
        let mut shares = self.0.lock();
        if shares.executions.is_empty() {
            shares.begin(0, 1);
        }
        let share = shares.of(0);
        if share.rows == 0 {
            share.first += time;
        }
        share.rows += rows as u64;
        share.all += time;
    }

    /// A worker of a scan has read rows and asked them for conditions.
    pub fn add_read(&self, worker: usize, rows: usize, filtering: Duration) {
        let mut shares = self.0.lock();
        let share = shares.of(worker);
        share.read += rows as u64;
        share.filtering += filtering;
    }

    /// The worker has had a row.
    pub fn has_rows(&self, worker: usize) -> bool {
        self.0.lock().of(worker).rows > 0
    }

    /// Adds what another run of the same has done.
    fn absorb(&self, other: &Measure) {
        // A common table expression that several runs might have made is in the lines of each.
        if std::ptr::eq(self, other) {
            return;
        }
        let other = other.0.lock();
        let mut own = self.0.lock();
        other.executions.iter().enumerate().for_each(|(partition, times)| own.begin(partition, *times));
        for (worker, share) in other.workers.iter().enumerate() {
            let sum = own.of(worker);
            sum.rows += share.rows;
            sum.first += share.first;
            sum.all += share.all;
            sum.read += share.read;
            sum.filtering += share.filtering;
        }
    }

    /// What came out of it.
    pub fn actual(&self) -> Actual {
        self.0.lock().actual(|share| share.rows, |share| share.all)
    }

    /// What a scan has read, before its conditions.
    fn actual_read(&self) -> Actual {
        self.0.lock().actual(|share| share.read, |share| share.all.saturating_sub(share.filtering))
    }
}

/// What a line of a plan tells besides its text.
#[derive(Clone, Debug)]
pub enum Figures {
    None,
    Known(Actual),
    /// Of an operator.
    Of(Arc<Measure>),
    /// Of a scan, before the conditions that it evaluates.
    Read(Arc<Measure>),
}

/// A line of a plan.
#[derive(Clone, Debug)]
pub struct Line {
    pub depth: usize,
    pub text: String,
    pub figures: Figures,
}

impl Line {
    /// Without figures.
    pub fn new(depth: usize, text: impl Into<String>) -> Line {
        Line { depth, text: text.into(), figures: Figures::None }
    }

    /// So much further inside.
    pub fn inside(self, depth: usize) -> Line {
        Line { depth: self.depth + depth, ..self }
    }

    /// What it tells, if it is of something that has been executed.
    pub fn actual(&self) -> Option<Actual> {
        match &self.figures {
            Figures::None => None,
            Figures::Known(actual) => Some(*actual),
            Figures::Of(measure) => Some(measure.actual()),
            Figures::Read(measure) => Some(measure.actual_read()),
        }
    }

    /// Its text up to what may differ from one run to the next.
    fn head(&self) -> &str {
        self.text.split([':', '(']).next().unwrap_or_default()
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:indent$}-> {}", "", self.text, indent = self.depth * 4)?;
        match self.actual() {
            // Behind the estimates.
            Some(actual) if self.text.contains("  (cost=") => write!(f, " {actual}"),
            Some(actual) => write!(f, "  {actual}"),
            None => Ok(()),
        }
    }
}

/// What EXPLAIN ANALYZE is told by the queries of the statement that it runs. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Profile(Arc<Mutex<Gathered>>);

#[derive(Debug, Default)]
struct Gathered {
    /// What ran before the query.
    before: Vec<Vec<Line>>,
    query: Vec<Line>,
    /// What ran for the query or for its rows, by its number.
    subqueries: Vec<(usize, Vec<Line>)>,
    /// For UPDATE and DELETE that find their rows by themselves.
    changing: Changing,
}

/// What UPDATE and DELETE of one table do to find their rows.
#[derive(Clone, Debug, Default)]
pub struct Changing {
    pub scan: Arc<Measure>,
    pub filter: Arc<Measure>,
    pub sort: Arc<Measure>,
}

impl Changing {
    /// Rows have been read.
    pub fn read(&self, time: Duration, rows: usize) {
        self.scan.add_rows(time, rows);
        self.filter.add_rows(time, 0);
        self.sort.add_rows(time, 0);
    }

    /// A row has been asked whether it is wanted.
    pub fn asked(&self, time: Duration, wanted: bool) {
        self.filter.add_rows(time, usize::from(wanted));
        self.sort.add_rows(time, 0);
    }

    /// All rows have been sorted.
    pub fn sorted(&self, time: Duration, rows: usize) {
        self.sort.add_rows(time, rows);
    }
}

/// Plans of subqueries that are told: a recursion in a subquery that runs for each row has one for each.
const MOST_SUBQUERIES: usize = 100;

impl Profile {
    /// An attempt at a query begins: what another one has done is not told.
    pub fn start_over(&self) {
        let mut gathered = self.0.lock();
        gathered.query.clear();
        gathered.subqueries.clear();
    }

    /// The statement's query.
    pub fn set_query(&self, lines: Vec<Line>) {
        self.0.lock().query = lines;
    }

    /// A subquery of the query has run, perhaps not for the first time.
    pub fn add_subquery(&self, number: usize, lines: Vec<Line>) {
        let mut gathered = self.0.lock();
        for (known, sums) in &gathered.subqueries {
            let alike = sums.iter().zip(&lines).all(|(a, b)| a.depth == b.depth && a.head() == b.head());
            if *known == number && sums.len() == lines.len() && alike {
                for (sum, line) in sums.iter().zip(&lines) {
                    // What a scan has read is with what came out of it.
                    if let (Figures::Of(sum), Figures::Of(run)) = (&sum.figures, &line.figures) {
                        sum.absorb(run);
                    }
                }
                return;
            }
        }
        if gathered.subqueries.len() < MOST_SUBQUERIES {
            gathered.subqueries.push((number, lines));
        }
    }

    /// Something has been read before the query.
    pub fn add_before(&self, lines: Vec<Line>) {
        self.0.lock().before.push(lines);
    }

    /// A query of its own ran for a subquery before.
    pub fn add_query_before(&self, other: &Profile) {
        let Gathered { before, mut query, subqueries, .. } = std::mem::take(&mut *other.0.lock());
        if let Some(first) = query.first_mut() {
            first.text.insert_str(0, "Subquery: ");
        }
        let mut gathered = self.0.lock();
        gathered.before.extend(before);
        gathered.before.push(query);
        gathered.before.extend(subqueries.into_iter().map(|(_, lines)| lines));
    }

    /// What UPDATE and DELETE of one table tell.
    pub fn changing(&self) -> Changing {
        self.0.lock().changing.clone()
    }

    /// The lines of the query, if one ran, and of whatever else did beside it.
    pub fn take(&self) -> (Vec<Line>, Vec<Line>) {
        let Gathered { before, query, subqueries, .. } = std::mem::take(&mut *self.0.lock());
        let ran = |lines: &Vec<Line>| lines.iter().any(|line| line.actual().is_some_and(|actual| actual.loops > 0));
        let beside = before.into_iter().chain(subqueries.into_iter().map(|(_, lines)| lines)).filter(ran);
        (query, beside.flatten().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn figures_are_averages_of_the_executions() {
        let actual = Actual { loops: 4, rows: 9, first: ms(2), all: ms(10) };
        assert_eq!(actual.to_string(), "(actual time=0.500..2.500 rows=2 loops=4)");
        assert_eq!(Actual::default().to_string(), "(never executed)");
        let line = |text: &str| Line { figures: Figures::Known(actual), ..Line::new(1, text) };
        assert_eq!(line("Sort: a").to_string(), "    -> Sort: a  (actual time=0.500..2.500 rows=2 loops=4)");
        assert_eq!(line("Table scan on t  (cost=1.00 rows=9)").to_string(), "    -> Table scan on t  (cost=1.00 rows=9) (actual time=0.500..2.500 rows=2 loops=4)");
        assert_eq!(Line::new(0, "Filter: b").to_string(), "-> Filter: b");
    }

    #[test]
    fn workers_have_their_rows_together_and_the_time_of_the_slowest() {
        let measure = Measure::default();
        for partition in 0..3 {
            measure.begin(partition);
        }
        measure.add(0, ms(3), 5, true);
        measure.add(2, ms(2), 0, true);
        measure.add(2, ms(7), 7, true);
        measure.add(2, ms(1), 2, false);
        assert_eq!(measure.actual(), Actual { loops: 1, rows: 14, first: ms(9), all: ms(10) });
        measure.add_read(0, 50, ms(1));
        measure.add_read(2, 60, ms(4));
        assert_eq!(measure.actual_read(), Actual { loops: 1, rows: 110, first: ms(6), all: ms(6) });
        assert!(measure.has_rows(2) && !measure.has_rows(1));
    }

    #[test]
    fn runs_of_a_subquery_are_one_if_they_are_alike() {
        let run = |rows: usize, text: &str| {
            let measure = Arc::new(Measure::default());
            measure.begin(0);
            measure.add(0, ms(1), rows, true);
            vec![Line { figures: Figures::Of(measure), ..Line::new(0, text) }]
        };
        let profile = Profile::default();
        profile.set_query(run(1, "Query"));
        profile.add_subquery(7, run(1, "Filter: (a = 1)"));
        profile.add_subquery(7, run(2, "Filter: (a = 2)"));
        profile.add_subquery(7, run(4, "Table scan on t"));
        profile.add_subquery(8, run(8, "Filter: (a = 1)"));
        profile.add_subquery(9, vec![Line { figures: Figures::Of(Arc::default()), ..Line::new(0, "Zero rows") }]);
        // Twice the same: nothing is counted twice.
        let shared = run(16, "Table scan on c");
        profile.add_subquery(10, shared.clone());
        profile.add_subquery(10, shared);
        let (query, beside) = profile.take();
        let told = |lines: Vec<Line>| lines.iter().map(|line| line.actual().map(|actual| (actual.rows, actual.loops)).unwrap()).collect::<Vec<_>>();
        assert_eq!((told(query), told(beside)), (vec![(1, 1)], vec![(3, 2), (4, 1), (8, 1), (16, 1)]));
        profile.add_subquery(7, run(1, "Filter"));
        profile.start_over();
        assert!(profile.take().1.is_empty());
        for number in 0..2 * MOST_SUBQUERIES {
            profile.add_subquery(number, run(1, "Recursion"));
        }
        assert_eq!(profile.take().1.len(), MOST_SUBQUERIES);
    }
}
