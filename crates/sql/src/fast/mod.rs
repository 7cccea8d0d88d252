//! The fast path: short queries over tables by their indexes, and over none, without DataFusion. See `README.md`.

mod aggregate;
mod compile;
mod join;
mod known;
mod meter;
mod run;

use std::sync::Arc;

use highkey_table::Table;
use highkey_types::{KeyPart, Value, cast::CastContext};

use compile::is_join;
use join::JoinSource;
use known::Answer;

pub(crate) use join::{JoinLine, JoinStep, rows_of};
pub(crate) use meter::{FILTER, LEVEL_NODES, SCAN};

use crate::measure::Actual;
use crate::plan::{Aggregate, Expr, IndexAccess, IndexChoice, LockSpec, Rel, RelKind, SortKey};
use crate::session::Reach;

/// A query that the fast path can run.
pub struct FastQuery {
    source: Source,
    stages: Vec<Stage>,
    /// Rows of the source after which a query with a stage that holds rows, or a join, is left to DataFusion.
    budget: u64,
    /// It is left to DataFusion where an index has very many rows for it, which shows when some have been read.
    may_leave: bool,
    /// A hint asks for workers.
    wants_workers: bool,
}

/// Where rows come from.
enum Source {
    /// Constant rows.
    Rows(Vec<Vec<Expr>>),
    /// Rows of a table, in the order of an index.
    Table(TableSource),
    /// Rows of several tables.
    Join(JoinSource),
    /// One row of aggregates that indexes know.
    Known { table: Arc<Table>, answers: Vec<Answer> },
}

struct TableSource {
    table: Arc<Table>,
    /// Output i is column `columns[i]`.
    columns: Vec<usize>,
    /// Which of them are TIMESTAMPs.
    timestamps: Vec<usize>,
    /// `None` reads all of `index`.
    access: Option<IndexAccess>,
    index: usize,
    /// What index hints leave.
    choice: IndexChoice,
    backward: bool,
    /// The order of the index is asked for.
    ordered: bool,
    /// What the index leaves to be checked.
    residual: Option<Expr>,
    lock: Option<LockSpec>,
    /// Outputs that `residual` reads, and others that stages read of the rows that satisfy it. Of a scan that locks nothing the rest is NULL.
    asked: Vec<usize>,
    later: Vec<usize>,
    /// The entries of the index have all that is asked of the rows: these columns of the table.
    covered: Option<Vec<usize>>,
    /// A hint asks for workers.
    shared: bool,
}

impl TableSource {
    fn reach(&self) -> Reach {
        reach(self.access.as_ref(), self.index != 0 || self.ordered)
    }

    /// The index that leads to the rows; `None`: all are read in no order.
    fn used(&self) -> Option<usize> {
        (self.reach() != Reach::Table).then_some(self.index)
    }
}

/// How an access, or reading all, comes to the rows of a table. `ordered`: in the order of an index.
fn reach(access: Option<&IndexAccess>, ordered: bool) -> Reach {
    match access {
        Some(access) if access.unique && access.ranges.len() == 1 => Reach::Key,
        Some(access) if access.equalities == access.matched && access.ranges.len() == 1 => Reach::Value,
        Some(_) => Reach::Ranges,
        None if ordered => Reach::Index,
        None => Reach::Table,
    }
}

/// How a query comes to its rows, as EXPLAIN shows it.
pub(crate) enum Reading<'a> {
    /// They are constants, or there are none.
    Constants,
    /// Indexes know the answer: how many entries they have, and what is at their ends.
    Counted,
    /// Those of one table that `access` finds, or all in the order of an index.
    /// `covering`: the entries of the index are enough.
    Table { index: usize, access: Option<&'a IndexAccess>, backward: bool, covering: bool },
    /// Those of several tables, in the order in which they are read.
    Join(Vec<JoinStep<'a>>),
}

impl FastQuery {
    /// How its rows are read.
    pub(crate) fn reading(&self) -> Reading<'_> {
        match &self.source {
            Source::Rows(_) => Reading::Constants,
            Source::Table(source) => Reading::Table { index: source.index, access: source.access.as_ref(), backward: source.backward, covering: source.covered.is_some() },
            Source::Join(join) => Reading::Join(join.steps()),
            Source::Known { .. } => Reading::Counted,
        }
    }

    /// Ranges of an index give the rows of its first table.
    fn reads_ranges(&self) -> bool {
        let first = match &self.source {
            Source::Table(source) => Some(source.reach()),
            Source::Join(join) => join.reaches().find(|reach| *reach != Reach::Key),
            Source::Rows(_) | Source::Known { .. } => None,
        };
        first == Some(Reach::Ranges)
    }

    /// The operators of the plan that it was compiled of which are stages of it, the outermost first, each with its node, then what they stand on. A sort that
    /// an index spares is none, nor is a condition that it answers; what is left of that is checked as rows are read.
    pub(crate) fn operators<'r>(&self, mut rel: &'r Rel) -> (Vec<(&'r Rel, usize)>, &'r Rel) {
        let mut found = Vec::new();
        let mut stages = &self.stages[..];
        let first = self.levels() * LEVEL_NODES;
        loop {
            let input = match &rel.kind {
                RelKind::Filter { predicate, .. } if predicate.is_never() => return (found, rel),
                _ if is_join(rel) => return (found, rel),
                RelKind::Filter { input, .. }
                | RelKind::Project { input, .. }
                | RelKind::Sort { input, .. }
                | RelKind::Limit { input, .. }
                | RelKind::Distinct { input }
                | RelKind::Aggregate { input, .. } => input,
                _ => return (found, rel),
            };
            // Stages that no operator asks for pick columns of a join.
            match stages.iter().rposition(|stage| stage.is_of(rel)) {
                Some(at) => {
                    found.push((rel, first + at));
                    stages = &stages[..at];
                }
                None if matches!(rel.kind, RelKind::Filter { .. }) && self.checks_rows() => found.push((rel, FILTER)),
                None => {}
            }
            rel = input;
        }
    }

    /// Loops that read rows; a source that is no join is one.
    fn levels(&self) -> usize {
        if let Source::Join(join) = &self.source { join.tables().count() } else { 1 }
    }

    fn checks_rows(&self) -> bool {
        matches!(&self.source, Source::Table(source) if source.residual.is_some())
    }

    /// The first line of EXPLAIN FORMAT=TREE: who runs it, and so why on one thread.
    pub(crate) fn headline(&self) -> &'static str {
        if self.wants_workers { "Fast path (serial, though PQ asks for workers)" } else { "Fast path" }
    }

    /// Rows are sorted: no index gives them in their order.
    pub(crate) fn sorts(&self) -> bool {
        self.stages.iter().any(|stage| matches!(stage, Stage::Sort(_)))
    }

    /// How EXPLAIN FORMAT=TREE shows its join, if it is one.
    pub(crate) fn describe_join(&self) -> Option<Vec<JoinLine>> {
        match &self.source {
            Source::Join(join) => Some(join.describe()),
            _ => None,
        }
    }
}

/// What happens to rows, bottom up.
enum Stage {
    Filter(Expr),
    Project(Vec<Expr>),
    Sort(Vec<SortKey>),
    Limit { offset: Option<Expr>, count: Option<Expr> },
    Distinct(Vec<KeyPart>),
    /// Without groups: exactly one row.
    Aggregate(Vec<Aggregate>),
    /// One row for each group: the groups, then the aggregates.
    Group { groups: Vec<Expr>, keys: Vec<KeyPart>, aggregates: Vec<Aggregate> },
}

impl FastQuery {
    /// It reads several tables: in which order, depends on the values of its conditions.
    pub fn is_join(&self) -> bool {
        matches!(self.source, Source::Join(_))
    }
}

impl Stage {
    /// It is what became of an operator of this kind.
    fn is_of(&self, rel: &Rel) -> bool {
        match self {
            Stage::Filter(_) => matches!(rel.kind, RelKind::Filter { .. }),
            Stage::Project(_) => matches!(rel.kind, RelKind::Project { .. }),
            Stage::Sort(_) => matches!(rel.kind, RelKind::Sort { .. }),
            Stage::Limit { .. } => matches!(rel.kind, RelKind::Limit { .. }),
            Stage::Distinct(_) => matches!(rel.kind, RelKind::Distinct { .. }),
            Stage::Aggregate(_) | Stage::Group { .. } => matches!(rel.kind, RelKind::Aggregate { .. }),
        }
    }

    /// Must see all rows before it gives one.
    fn blocks(&self) -> bool {
        matches!(self, Stage::Sort(_) | Stage::Aggregate(_) | Stage::Group { .. })
    }

    /// Remembers what it has seen.
    fn holds(&self) -> bool {
        self.blocks() || matches!(self, Stage::Distinct(_))
    }
}

/// How a run ended.
pub(crate) enum Progress {
    /// All rows are where they were to go: how many, and what was done for them if that is told.
    Done(u64, Vec<Actual>),
    /// Over the budget; nothing has left the fast path.
    TooLarge,
}

/// The order of sort keys: NULLs first, text by its collation.
pub fn compare_keys(a: &[Value], b: &[Value], keys: &[SortKey], cx: &mut CastContext) -> std::cmp::Ordering {
    for ((a, b), key) in a.iter().zip(b).zip(keys) {
        let order = match (a.is_null(), b.is_null()) {
            (true, true) => continue,
            (true, false) => std::cmp::Ordering::Less,
            (false, true) => std::cmp::Ordering::Greater,
            _ => order_values(a, b, key.expr.ty.collation(), cx),
        };
        let order = if key.desc { order.reverse() } else { order };
        if order.is_ne() {
            return order;
        }
    }
    std::cmp::Ordering::Equal
}

/// A sort key in the form that compares fastest: text becomes its collation's sort key once, instead of being compared weight by weight
/// with every other.
pub fn sort_form(value: Value, key: &SortKey) -> Value {
    match value {
        Value::Text(text) => {
            let mut bytes = Vec::new();
            key.expr.ty.collation().sort_key(text.as_bytes(), &mut bytes);
            Value::Bytes(bytes)
        }
        other => other,
    }
}

fn order_values(a: &Value, b: &Value, collation: &'static highkey_types::Collation, cx: &mut CastContext) -> std::cmp::Ordering {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::UInt(a), Value::UInt(b)) => a.cmp(b),
        (Value::Text(a), Value::Text(b)) => collation.compare(a.as_bytes(), b.as_bytes()),
        // Binary strings, and text that `sort_form` has brought into its collation's order.
        (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
        // ENUM and SET sort by number.
        (Value::Enum(a, _), Value::Enum(b, _)) => a.cmp(b),
        (Value::Set(a, _), Value::Set(b, _)) => a.cmp(b),
        _ => highkey_types::compare(a, b, collation, cx).unwrap_or(std::cmp::Ordering::Equal),
    }
}
