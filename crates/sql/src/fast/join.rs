//! Joins by index: nested loops over tables in an order chosen by what each would read.
//!
//! Rows of the tables stand side by side in one row that fills up from level to level. A condition is checked at the first level at which all
//! its fields have their values, or is part of that level's access by an index.

use std::ops::Range;
use std::sync::Arc;

use highkey_table::{Direction, IndexDef, KeyRange, RowBatch, RowUse, Table, TableDef, TableScan, Transaction};
use highkey_types::{MySqlError, Str, TypeKind, Value};

use super::compile::{SMALL_TABLE, ordered_index};
use super::meter::{FILTER, JOIN, LEVEL_NODES, SCAN};
use super::reach;
use super::run::Run;
use crate::bind::ROW_KEY;
use crate::execute::{Destination, table_fields, to_session, whole_key};
use crate::expr;
use crate::plan::{self, CompareOp, Expr, ExprKind, Field, IndexAccess, IndexChoice, JoinGraph, JoinedTable, Rel, RelKind};
use crate::session::{Reach, Session, Work};

/// How many rows an access by constants would read, if that can be told now.
pub(crate) type Estimator<'a> = &'a mut dyn FnMut(&Arc<Table>, &IndexAccess) -> Option<f64>;

/// Tables joined by nested loops.
pub(super) struct JoinSource {
    /// Fields of the row.
    width: usize,
    levels: Vec<Level>,
    /// An estimate of the rows read in all.
    pub reads: f64,
    /// An estimate of the rows read after the first table, for each row of it.
    reads_for_each: f64,
}

/// One table of the loops.
struct Level {
    /// Its position among them.
    at: usize,
    table: Arc<Table>,
    alias: Str,
    /// Fields of the row that are this table's.
    fields: Range<usize>,
    /// What is read of them: (field, table column).
    columns: Vec<(usize, usize)>,
    /// Fields among them that are TIMESTAMPs.
    timestamps: Vec<usize>,
    /// What index hints leave.
    choice: IndexChoice,
    /// Its bounds read fields of the levels before. `None` reads all of `index`.
    access: Option<IndexAccess>,
    index: usize,
    backward: bool,
    /// What the index leaves to be checked of a row of this table.
    residual: Option<Expr>,
    /// The right side of a LEFT JOIN: where no row matches, one of NULLs goes on.
    outer: bool,
    /// For an outer level, the conditions on what goes on.
    after: Option<Expr>,
    /// It reads the same rows whatever the levels before have: they are read once.
    fixed: bool,
    /// An estimate of the rows that it reads for each row before it.
    reads: f64,
    /// The entries of the index have all that is read: these columns of the table.
    covered: Option<Vec<usize>>,
}

/// How one table of a join is read, as EXPLAIN shows it.
pub(crate) struct JoinStep<'a> {
    pub alias: &'a str,
    /// Where its fields begin in the row of all tables, which stand there as FROM names them.
    pub first_field: usize,
    /// const, eq_ref, ref, range, index or ALL.
    pub kind: &'static str,
    /// The index, and how many of its parts are used.
    pub key: Option<(&'a IndexDef, usize)>,
    /// What the parts are compared with, where they are equal to something.
    pub refs: Vec<String>,
    pub rows: u64,
    /// Conditions are checked on each row.
    pub residual: bool,
    /// Its rows are kept for all rows before it.
    pub buffered: bool,
    /// The entries of the index are enough.
    pub covering: bool,
}

/// A field of another table, as a table column.
const OTHER_TABLE: usize = usize::MAX - 1;

/// Levels in the order in which they are read, and what that costs.
#[derive(Clone)]
struct Order {
    placed: Vec<Placed>,
    reads: f64,
    reads_for_each: f64,
    first_rows: f64,
}

#[derive(Clone)]
struct Placed {
    table: usize,
    reads: f64,
    access: Option<IndexAccess>,
    /// Conditions that this level decides, by their position in the graph.
    conditions: Vec<usize>,
}

struct Planner<'a> {
    graph: &'a JoinGraph<'a>,
    /// For each table, the row as its conditions see it.
    columns: Vec<Vec<usize>>,
    /// Bounds and lists that conditions on other tables imply.
    implied: Vec<Expr>,
}

/// An order is begun with what is implied of its first table where it reads so many times fewer rows: else the table that the condition is written for is as good.
const FEWER_BY_IMPLIED: f64 = 2.0;

impl JoinSource {
    /// Chooses the order of the tables and their indexes; None if some table has neither an index for its conditions nor few rows.
    /// `needed`: fields of the row that the stages read.
    pub fn compile(graph: &JoinGraph<'_>, needed: &[usize], estimate: Estimator<'_>) -> Option<JoinSource> {
        let planner = Planner::new(graph)?;
        let best = planner.best_order(estimate)?;
        Some(planner.source(best, needed))
    }

    /// Reading starts at the table whose column `keys` are (fields of the row, true where descending), in an index that has their order; the levels keep it.
    pub fn compile_ordered(graph: &JoinGraph<'_>, needed: &[usize], keys: &[(usize, bool)], limited: bool, estimate: Estimator<'_>) -> Option<JoinSource> {
        let planner = Planner::new(graph)?;
        let first = graph.tables.iter().position(|t| keys.iter().all(|(field, _)| t.fields().contains(field)))?;
        let order = planner.order_from(first, false, f64::INFINITY, estimate)?;
        let mut source = planner.source(order, needed);
        source.follow(keys, limited).then_some(source)
    }

    /// Reads the first table in the order of `keys`, if an index of its has it and is the one that finds its rows.
    pub fn follow(&mut self, keys: &[(usize, bool)], limited: bool) -> bool {
        let level = &mut self.levels[0];
        if !keys.iter().all(|(field, _)| level.fields.contains(field)) {
            return false;
        }
        let keys: Vec<(usize, bool)> = keys.iter().map(|(field, desc)| (field - level.fields.start, *desc)).collect();
        // Scans have all columns in their order: field i of the table is its column i.
        let Some((index, backward)) = ordered_index(level.table.def(), &level.choice, level.access.as_ref(), &keys, limited) else { return false };
        (level.index, level.backward) = (index, backward);
        true
    }

    /// Leaves the rows of each table alone where the entries of its index have all that is read.
    pub fn cover(&mut self) {
        for level in &mut self.levels {
            let columns: Vec<usize> = level.columns.iter().map(|(_, column)| *column).collect();
            level.covered = level.table.covers(level.index, &columns).then_some(columns);
        }
    }

    /// The tables that it reads.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.levels.iter().map(|level| &level.table)
    }

    /// How it comes to the rows of each, in that order.
    pub fn reaches(&self) -> impl Iterator<Item = Reach> {
        self.levels.iter().map(Level::reach)
    }

    /// Its tables in the order in which they are read.
    pub fn steps(&self) -> Vec<JoinStep<'_>> {
        self.levels.iter().enumerate().map(|(at, level)| self.step(at, level)).collect()
    }

    fn step<'a>(&'a self, at: usize, level: &'a Level) -> JoinStep<'a> {
        let table: &TableDef = level.table.def();
        let (kind, matched) = match &level.access {
            Some(access) if access.unique && access.ranges.len() == 1 => (if at == 0 || level.fixed { "const" } else { "eq_ref" }, access.matched),
            Some(access) if access.equalities == access.matched && access.ranges.len() == 1 => ("ref", access.matched),
            Some(access) => ("range", access.matched),
            None if level.index != 0 || level.backward => ("index", table.indexes[level.index].parts.len()),
            None => ("ALL", 0),
        };
        let refs = match &level.access {
            Some(access) if kind != "range" => access.ranges[0].prefix.iter().map(|e| self.named(e)).collect(),
            _ => Vec::new(),
        };
        JoinStep {
            alias: &level.alias,
            first_field: level.fields.start,
            kind,
            key: (kind != "ALL").then(|| (&table.indexes[level.index], matched)),
            refs,
            rows: level.reads.round().max(1.0) as u64,
            residual: level.residual.is_some() || level.after.is_some(),
            buffered: level.fixed && kind != "const",
            covering: level.covered.is_some(),
        }
    }

    /// What an index is asked for: a column of another table, a constant, or something made of columns.
    fn named(&self, expr: &Expr) -> String {
        match expr.as_column() {
            Some(field) => {
                let level = self.levels.iter().find(|level| level.fields.contains(&field)).expect("a field belongs to a table");
                let def = level.table.def();
                format!("{}.{}.{}", def.schema, level.alias, def.columns[field - level.fields.start].name)
            }
            None if expr.columns().is_empty() => "const".to_owned(),
            None => "func".to_owned(),
        }
    }

    /// As EXPLAIN FORMAT=TREE prints it: the loops nest to the left.
    pub fn describe(&self) -> Vec<JoinLine> {
        let mut in_order: Vec<&Level> = self.levels.iter().collect();
        in_order.sort_by_key(|level| level.fields.start);
        let fields: Vec<Field> = in_order.into_iter().flat_map(|level| table_fields(&level.table, &level.alias).into_iter().take(level.fields.len())).collect();
        let mut lines = Vec::new();
        for (inside, level) in self.levels[1..].iter().rev().enumerate() {
            let kind = if level.outer { "left" } else { "inner" };
            lines.push(JoinLine { depth: inside, text: format!("Nested loop {kind} join"), node: level.node(JOIN) });
        }
        let last = self.levels.len() - 1;
        for level in &self.levels {
            // The two innermost stand side by side.
            let mut depth = last + 1 - level.at.max(1);
            if let Some(residual) = &level.residual {
                lines.push(JoinLine { depth, text: format!("Filter: {}", plan::describe_expr(residual, &fields)), node: level.node(FILTER) });
                depth += 1;
            }
            let lookup = level.access.as_ref().map_or(String::new(), |access| plan::describe_lookup(access, level.table.def(), &fields));
            lines.push(JoinLine { depth, text: self.step(level.at, level).describe(level.backward, &lookup), node: level.node(SCAN) });
        }
        lines
    }
}

/// A line of a join as EXPLAIN FORMAT=TREE prints it, and the node that it is of.
pub(crate) struct JoinLine {
    pub depth: usize,
    pub text: String,
    pub node: usize,
}

impl Level {
    fn reach(&self) -> Reach {
        reach(self.access.as_ref(), self.index != 0 || self.backward)
    }

    fn scan(&self, txn: &mut Transaction, range: &KeyRange, direction: Direction) -> Result<TableScan, MySqlError> {
        let scan = self.table.scan(txn, self.index, range, direction)?;
        Ok(match &self.covered {
            Some(columns) => scan.of_columns(columns),
            None => scan,
        })
    }

    /// So many of its rows were read, or looked up.
    fn count_read(&self, rows: u64) {
        let index = (self.reach() != Reach::Table).then_some(self.index);
        self.table.count_use(index, RowUse::Fetch, rows);
    }

    /// One of its nodes, by its position among them.
    fn node(&self, node: usize) -> usize {
        self.at * LEVEL_NODES + node
    }

    /// Counts what was read of a range. `ended`: it was seen that there is no more.
    fn note_read(&self, work: &mut Work, range: &KeyRange, rows: u64, ended: bool) {
        match self.reach() {
            Reach::Key => work.read_key += 1,
            Reach::Table => work.read_table(rows, ended),
            _ => work.read_range(range, self.backward, rows, ended),
        }
    }
}

impl JoinStep<'_> {
    /// As EXPLAIN FORMAT=TREE names the access. `lookup`: what the index is asked for.
    fn describe(&self, backward: bool, lookup: &str) -> String {
        let (alias, reverse) = (self.alias, if backward { " (reverse)" } else { "" });
        let Some((index, _)) = self.key else { return format!("Table scan on {alias}") };
        let (how, lookup, reverse) = match self.kind {
            "const" | "eq_ref" => ("Single-row index lookup", lookup, ""),
            "ref" => ("Index lookup", lookup, reverse),
            "range" => ("Index range scan", "", reverse),
            _ => ("Index scan", "", reverse),
        };
        format!("{how} on {alias} using {}{lookup}{reverse}", index.name)
    }
}

impl<'a> Planner<'a> {
    /// `None` if a table is locked, or read with its rows' keys.
    fn new(graph: &'a JoinGraph<'a>) -> Option<Planner<'a>> {
        let mut columns = Vec::with_capacity(graph.tables.len());
        for table in &graph.tables {
            let RelKind::Scan { columns: read, lock: None, .. } = &table.scan.kind else { return None };
            if read.iter().enumerate().any(|(i, column)| *column != i) || read.contains(&ROW_KEY) {
                return None;
            }
            let mut row = vec![OTHER_TABLE; graph.width()];
            for (field, column) in table.fields().zip(read) {
                row[field] = *column;
            }
            columns.push(row);
        }
        let mut implied = plan::implied_constants(&graph.conditions.iter().collect::<Vec<_>>());
        implied.retain(|condition| !matches!(condition.kind, ExprKind::Compare { op: CompareOp::Eq, .. }));
        Some(Planner { graph, columns, implied })
    }

    fn best_order(&self, estimate: Estimator<'_>) -> Option<Order> {
        let starts = if self.graph.straight { 1 } else { self.graph.tables.len() };
        let mut best: Option<Order> = None;
        for (first, implied) in (0..starts).map(|first| (first, false)).chain((0..starts).map(|first| (first, true))) {
            let bound = best.as_ref().map_or(f64::INFINITY, |best| best.reads);
            let bound = if implied { bound / FEWER_BY_IMPLIED } else { bound };
            if implied && !self.is_implied_of(first) {
                continue;
            }
            if let Some(order) = self.order_from(first, implied, bound, &mut *estimate)
                && order.reads < bound
            {
                best = Some(order);
            }
        }
        best
    }

    /// True if other tables' conditions say something of a table.
    fn is_implied_of(&self, table: usize) -> bool {
        self.implied.iter().any(|condition| self.is_about(condition, table))
    }

    fn is_about(&self, condition: &Expr, table: usize) -> bool {
        let fields = self.graph.tables[table].fields();
        condition.columns().iter().all(|field| fields.contains(field))
    }

    /// The order that begins with table `first`, by what is implied of it if that is `implied`, and goes on with the cheapest next one; None if it costs
    /// more than `bound`.
    fn order_from(&self, first: usize, implied: bool, bound: f64, estimate: Estimator<'_>) -> Option<Order> {
        let JoinGraph { tables, conditions, .. } = self.graph;
        if tables[first].on.is_some() {
            return None;
        }
        let mut has_value = vec![false; self.graph.width()];
        let mut decided = vec![false; conditions.len()];
        let mut is_placed = vec![false; tables.len()];
        let mut order = Order { placed: Vec::with_capacity(tables.len()), reads: 0.0, reads_for_each: 0.0, first_rows: 1.0 };
        let mut rows = 1.0;
        while order.placed.len() < tables.len() {
            let at = order.placed.len();
            let mut next: Option<(f64, f64, Placed)> = None;
            for table in 0..tables.len() {
                let in_turn = if at == 0 { table == first } else { !self.graph.straight || table == at };
                if is_placed[table] || !in_turn || !self.may_come(table, &has_value) {
                    continue;
                }
                let mut placed = self.place(table, &has_value, &decided, implied && at == 0);
                // To ask the tree for each value of a list takes as long as many rows do.
                let of_list = |access: &IndexAccess| access.ranges.len() > 1 && rows_of(scan_of(tables[table].scan).0, Some(access)) >= bound;
                if implied && at == 0 && placed.access.as_ref().is_some_and(of_list) {
                    return None;
                }
                let (read, passing) = self.rows_read(&placed, at == 0, &mut *estimate);
                placed.reads = read;
                // A table that is read once and kept costs little more for each row.
                let fixed = at > 0 && self.is_fixed(&placed);
                if fixed && read > SMALL_TABLE as f64 {
                    continue;
                }
                let cost = if fixed { read + rows * read / 8.0 } else { rows * read };
                // Outer tables take no row away: they come last.
                let better = next.as_ref().is_none_or(|(best, _, other)| (tables[table].on.is_some(), cost) < (tables[other.table].on.is_some(), *best));
                if better {
                    next = Some((cost, passing, placed));
                }
            }
            let (cost, passing, placed) = next?;
            order.reads += cost;
            if order.reads >= bound {
                return None;
            }
            rows *= passing;
            if at == 0 {
                order.first_rows = rows.max(1.0);
            } else {
                order.reads_for_each += cost / order.first_rows;
            }
            is_placed[placed.table] = true;
            tables[placed.table].fields().for_each(|field| has_value[field] = true);
            placed.conditions.iter().for_each(|c| decided[*c] = true);
            order.placed.push(placed);
        }
        Some(order)
    }

    /// What an outer table is matched by has its values.
    fn may_come(&self, table: usize, has_value: &[bool]) -> bool {
        let joined = &self.graph.tables[table];
        joined.on.as_ref().is_none_or(|on| on.iter().flat_map(Expr::columns).all(|field| has_value[field] || joined.fields().contains(&field)))
    }

    /// The best access to a table once some fields have their values; by what is implied of it, too, if that is `implied`.
    fn place(&self, table: usize, has_value: &[bool], decided: &[bool], implied: bool) -> Placed {
        let joined = &self.graph.tables[table];
        let fields = joined.fields();
        let decidable = |c: &Expr| c.columns().iter().all(|field| has_value[*field] || fields.contains(field));
        let conditions: Vec<usize> = (0..decided.len()).filter(|&c| !decided[c] && decidable(&self.graph.conditions[c])).collect();
        let mut about: Vec<&Expr> = match &joined.on {
            Some(on) => on.iter().collect(),
            None => conditions.iter().map(|c| &self.graph.conditions[*c]).collect(),
        };
        if implied {
            about.extend(self.implied.iter().filter(|condition| self.is_about(condition, table)));
        }
        let (table_def, choice) = scan_of(joined.scan);
        let known = |e: &Expr| e.is_known_given(&|field| has_value[field]);
        let row = plan::Row { table: table_def.def(), columns: &self.columns[table], known: &known };
        let rank = |a: &IndexAccess| (rows_of(table_def, Some(a)), !a.unique, std::cmp::Reverse(a.equalities), std::cmp::Reverse(a.matched));
        let accesses = (0..table_def.def().indexes.len()).filter(|i| choice.finds(*i)).filter_map(|i| row.access(&about, i));
        let access = accesses.reduce(|best, next| if rank(&next) < rank(&best) { next } else { best });
        Placed { table, reads: 0.0, access, conditions }
    }

    /// Its access and conditions read no field of another table's row.
    fn is_fixed(&self, placed: &Placed) -> bool {
        let fields = self.graph.tables[placed.table].fields();
        placed.access.as_ref().is_none_or(|access| access.bounds().all(|bound| bound.columns().iter().all(|field| fields.contains(field))))
    }

    /// Rows that are read at a level for each row before it, and how many go on.
    fn rows_read(&self, placed: &Placed, first: bool, estimate: Estimator<'_>) -> (f64, f64) {
        let joined = &self.graph.tables[placed.table];
        let (table, _) = scan_of(joined.scan);
        let known = placed.access.as_ref().filter(|access| first && !access.unique).and_then(|access| estimate(table, access));
        let read = known.unwrap_or_else(|| rows_of(table, placed.access.as_ref()));
        let residual = match &placed.access {
            Some(access) => access.residual.as_ref().map_or(&[][..], Expr::conjuncts).iter().collect(),
            None if joined.on.is_none() => placed.conditions.iter().map(|c| &self.graph.conditions[*c]).collect::<Vec<_>>(),
            None => Vec::new(),
        };
        // MySQL's guesses for what no index answers.
        let share: f64 = residual.iter().map(|c| if matches!(&c.kind, ExprKind::Compare { op: CompareOp::Eq, .. }) { 0.1 } else { 0.33 }).product();
        (read, if joined.on.is_some() { read.max(1.0) } else { (read * share).max(0.01) })
    }

    fn source(&self, order: Order, needed: &[usize]) -> JoinSource {
        let JoinGraph { tables, conditions, .. } = self.graph;
        let mut read = vec![false; self.graph.width()];
        let of_conditions = conditions.iter().chain(tables.iter().filter_map(|t| t.on.as_ref()).flatten()).flat_map(Expr::columns);
        needed.iter().copied().chain(of_conditions).for_each(|field| read[field] = true);
        let levels = order.placed.iter().enumerate().map(|(at, placed)| self.level(placed, at, &read)).collect();
        JoinSource { width: self.graph.width(), levels, reads: order.reads, reads_for_each: order.reads_for_each }
    }

    fn level(&self, placed: &Placed, at: usize, read: &[bool]) -> Level {
        let joined: &JoinedTable<'_> = &self.graph.tables[placed.table];
        let RelKind::Scan { table, alias, .. } = &joined.scan.kind else { unreachable!("the graph's tables are scans") };
        let decided = Expr::and(placed.conditions.iter().map(|c| self.graph.conditions[*c].clone()));
        let (residual, after) = match (&placed.access, &joined.on) {
            (Some(access), None) => (access.residual.clone(), None),
            (None, None) => (decided, None),
            (Some(access), Some(_)) => (access.residual.clone(), decided),
            (None, Some(on)) => (Expr::and(on.iter().cloned()), decided),
        };
        let columns: Vec<(usize, usize)> = joined.fields().filter(|field| read[*field]).map(|field| (field, field - joined.at)).collect();
        let timestamps = columns.iter().filter(|(_, column)| matches!(table.columns()[*column].ty.kind, TypeKind::Timestamp(_))).map(|(field, _)| *field).collect();
        Level {
            at,
            table: table.clone(),
            alias: alias.clone(),
            fields: joined.fields(),
            columns,
            timestamps,
            index: placed.access.as_ref().map_or(0, |access| access.index),
            choice: scan_of(joined.scan).1.clone(),
            access: placed.access.clone(),
            backward: false,
            residual,
            outer: joined.on.is_some(),
            after,
            fixed: at > 0 && self.is_fixed(placed),
            reads: placed.reads,
            covered: None,
        }
    }
}

fn scan_of(rel: &Rel) -> (&Arc<Table>, &IndexChoice) {
    let RelKind::Scan { table, indexes, .. } = &rel.kind else { unreachable!("the graph's tables are scans") };
    (table, indexes)
}

/// An estimate of the rows that an access reads, by the distinct values of the index.
pub(crate) fn rows_of(table: &Table, access: Option<&IndexAccess>) -> f64 {
    let total = table.row_count_estimate().unwrap_or(0).max(1) as f64;
    let Some(access) = access else { return total };
    let ranges = access.ranges.len() as f64;
    if access.unique {
        return ranges;
    }
    let statistics = table.cached_statistics();
    let distinct = |parts: usize| statistics.as_ref().and_then(|s| s.cardinality.get(access.index)?.get(parts.checked_sub(1)?).copied());
    let each = match (access.equalities, distinct(access.equalities)) {
        (0, _) => total,
        (_, Some(distinct)) => total / distinct.max(1) as f64,
        (parts, None) => total * 0.1_f64.powi(parts as i32),
    };
    // A third for a bound on the part after the equal ones.
    let each = if access.matched > access.equalities { each * 0.33 } else { each };
    (each * ranges).clamp(1.0, total)
}

/// What a level has while the query runs.
#[derive(Default)]
struct LevelState {
    batch: RowBatch,
    /// The rows of a level that is read once: values of its columns.
    kept: Option<Vec<Vec<Value>>>,
    /// Rows that were read of it, or looked up.
    read: u64,
}

impl Session {
    /// Joins. False: over the budget.
    pub(super) fn join(&mut self, source: &JoinSource, run: &mut Run<'_>, destination: &mut Destination<'_>) -> Result<bool, MySqlError> {
        if !run.stopped && !run.may_stop_early() && self.first_rows(&source.levels[0])? * source.reads_for_each > run.budget as f64 {
            return Ok(false);
        }
        let mut row = vec![Value::Null; source.width];
        let mut states: Vec<LevelState> = source.levels.iter().map(|_| LevelState::default()).collect();
        let done = self.level(&source.levels, &mut states, &mut row, run, destination);
        source.levels.iter().zip(&states).for_each(|(level, state)| level.count_read(state.read));
        done
    }

    /// An estimate of the rows that the first level reads, with the values that its bounds have now.
    fn first_rows(&mut self, level: &Level) -> Result<f64, MySqlError> {
        let Some(access) = level.access.as_ref().filter(|access| !access.unique) else { return Ok(1.0) };
        let mut rows = 0;
        for range in plan::key_ranges(access, level.table.def(), &mut self.state)? {
            rows += level.table.estimate_range(access.index, &range)?;
        }
        Ok(rows as f64)
    }

    /// The first of `levels` for the row so far, and for each row of it the others. False: over the budget.
    fn level(&mut self, levels: &[Level], states: &mut [LevelState], row: &mut Vec<Value>, run: &mut Run<'_>, destination: &mut Destination<'_>) -> Result<bool, MySqlError> {
        let Some((level, inner)) = levels.split_first() else {
            // What is computed of the row may take long.
            self.state.process.check()?;
            self.push(run, row.clone(), destination)?;
            return Ok(true);
        };
        let (state, inner_states) = states.split_first_mut().expect("one state for each level");
        let mut matched = false;
        run.enter(level.at);
        if level.fixed {
            let kept = match state.kept.take() {
                Some(kept) => kept,
                None => match self.read_once(level, &mut state.batch, row, run)? {
                    Some(kept) => kept,
                    None => return Ok(false),
                },
            };
            for values in &kept {
                for ((field, _), value) in level.columns.iter().zip(values) {
                    row[*field].clone_from(value);
                }
                run.met_again += 1;
                run.lap_row(level.node(SCAN));
                if !self.go_on(level, inner, inner_states, row, &mut matched, run, destination)? {
                    return Ok(false);
                }
                if run.stopped {
                    break;
                }
            }
            state.kept = Some(kept);
        } else {
            let mut batch = std::mem::take(&mut state.batch);
            let ranges = self.level_ranges(level, row)?;
            for range in ranges {
                if level.access.as_ref().is_some_and(|a| a.unique)
                    && let Some(key) = whole_key(&range, &level.table.def().indexes[level.index])
                {
                    run.scanned += 1;
                    state.read += 1;
                    self.state.work.read_key += 1;
                    let found = match &level.covered {
                        Some(columns) => level.table.get_columns(self.txn(), level.index, key, columns)?,
                        None => level.table.get(self.txn(), level.index, key)?,
                    };
                    if let Some(found) = found {
                        self.fill(level, row, |column| found.value(column));
                        run.lap_row(level.node(SCAN));
                        if !self.go_on(level, inner, inner_states, row, &mut matched, run, destination)? {
                            return Ok(false);
                        }
                    }
                    if run.stopped {
                        break;
                    }
                    continue;
                }
                let direction = if level.backward { Direction::Backward } else { Direction::Forward };
                let mut scan = level.scan(self.txn(), &range, direction)?;
                let mut rows = 0_u64;
                while !run.stopped && scan.next_batch(&mut batch)? {
                    for i in 0..batch.len() {
                        run.scanned += 1;
                        rows += 1;
                        self.fill(level, row, |column| batch.value(i, column));
                        run.lap_row(level.node(SCAN));
                        if !self.go_on(level, inner, inner_states, row, &mut matched, run, destination)? {
                            return Ok(false);
                        }
                        if run.stopped {
                            break;
                        }
                    }
                }
                level.note_read(&mut self.state.work, &range, rows, !run.stopped);
                state.read += rows;
                if run.stopped {
                    break;
                }
            }
            state.batch = batch;
        }
        run.lap(level.node(SCAN));
        run.leave(level.at);
        if level.outer && !matched && !run.stopped {
            row[level.fields.clone()].fill(Value::Null);
            return self.after(level, inner, inner_states, row, run, destination);
        }
        Ok(true)
    }

    /// A row of `level` that has been read: to the levels inside, if it satisfies what is asked of it.
    #[allow(clippy::too_many_arguments)]
    fn go_on(
        &mut self,
        level: &Level,
        inner: &[Level],
        states: &mut [LevelState],
        row: &mut Vec<Value>,
        matched: &mut bool,
        run: &mut Run<'_>,
        destination: &mut Destination<'_>,
    ) -> Result<bool, MySqlError> {
        if run.over_budget() {
            return Ok(false);
        }
        if (run.scanned + run.met_again) % KILL_EVERY == 0 {
            self.state.process.check()?;
        }
        if let Some(residual) = &level.residual {
            let wanted = expr::eval_condition(residual, row, &mut self.state)?;
            run.lap(level.node(FILTER));
            if !wanted {
                return Ok(true);
            }
            run.lap_row(level.node(FILTER));
        }
        *matched = true;
        self.after(level, inner, states, row, run, destination)
    }

    fn after(&mut self, level: &Level, inner: &[Level], states: &mut [LevelState], row: &mut Vec<Value>, run: &mut Run<'_>, destination: &mut Destination<'_>) -> Result<bool, MySqlError> {
        if let Some(after) = &level.after
            && !expr::eval_condition(after, row, &mut self.state)?
        {
            return Ok(true);
        }
        run.lap_row(level.node(JOIN));
        self.level(inner, states, row, run, destination)
    }

    fn level_ranges(&mut self, level: &Level, row: &[Value]) -> Result<Vec<KeyRange>, MySqlError> {
        let mut ranges = match &level.access {
            Some(access) => plan::key_ranges_for(access, level.table.def(), row, &mut self.state)?,
            None => vec![KeyRange::all()],
        };
        if level.backward {
            ranges.reverse();
        }
        Ok(ranges)
    }

    fn fill(&mut self, level: &Level, row: &mut [Value], value: impl Fn(usize) -> Value) {
        for (field, column) in &level.columns {
            row[*field] = value(*column);
        }
        for field in &level.timestamps {
            to_session(&mut row[*field], &self.state.config.time_zone);
        }
    }

    /// All rows of a level that depends on no other. `None`: over the budget.
    fn read_once(&mut self, level: &Level, batch: &mut RowBatch, row: &mut [Value], run: &mut Run<'_>) -> Result<Option<Vec<Vec<Value>>>, MySqlError> {
        let mut kept = Vec::new();
        for range in self.level_ranges(level, row)? {
            let mut scan = level.scan(self.txn(), &range, Direction::Forward)?;
            let mut rows = 0_u64;
            while scan.next_batch(batch)? {
                self.state.process.check()?;
                for i in 0..batch.len() {
                    run.scanned += 1;
                    rows += 1;
                    self.fill(level, row, |column| batch.value(i, column));
                    kept.push(level.columns.iter().map(|(field, _)| row[*field].clone()).collect());
                }
                if run.over_budget() {
                    return Ok(None);
                }
            }
            level.note_read(&mut self.state.work, &range, rows, true);
            level.count_read(rows);
        }
        Ok(Some(kept))
    }
}

/// Rows after which a look is taken at KILL.
const KILL_EVERY: u64 = 256;
