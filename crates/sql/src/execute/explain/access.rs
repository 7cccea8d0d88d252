//! How a table is read.

use std::sync::Arc;

use highkey_table::{IndexDef, KeyRange, Table};
use highkey_types::{MySqlError, Str};

use crate::df::ShownScan;
use crate::fast::{JoinStep, rows_of};
use crate::full_text::{Search, search_of_condition};
use crate::plan::{self, CompareOp, Expr, ExprKind, Field, IndexAccess, IndexChoice, Row};
use crate::session::Session;

/// What is known of a table before its access is chosen.
pub(super) struct Scanned<'a> {
    pub table: &'a Arc<Table>,
    pub choice: &'a IndexChoice,
    /// As `plan::Row` has them: the row is that of all tables of the query block.
    pub columns: &'a [usize],
    /// All conditions on it, those with tables that are read later too.
    pub conditions: &'a [&'a Expr],
    /// Those that are known once it is read.
    pub decided: &'a [&'a Expr],
    /// Of the row, and of the rows around the block, the nearest last.
    pub fields: &'a [Field],
    pub outers: &'a [Vec<Field>],
}

/// Who has chosen the access.
pub(super) enum Chosen<'a> {
    /// Nobody yet: the one that answers most.
    Best,
    /// The fast path for one table: an index, the ranges of it that are read, whether backward, and whether for its order.
    Single { index: usize, access: Option<&'a IndexAccess>, backward: bool, ordered: bool, covering: bool },
    /// The fast path's loops.
    Step(&'a JoinStep<'a>),
    /// DataFusion's scan.
    Scan(&'a ShownScan),
}

/// How a table is read.
pub(super) struct Access {
    /// const, eq_ref, ref, fulltext, range, index or ALL.
    pub kind: &'static str,
    /// Names of the partitions that are read, if the table has any.
    pub partitions: Vec<Str>,
    /// Names of the indexes that could find the rows.
    pub possible: Vec<String>,
    pub key: Option<AccessKey>,
    /// Rows that are read for each row of the tables before, as far as it is known.
    pub rows: Option<u64>,
    /// The share of them that the rest of the conditions keeps.
    pub filtered: f64,
    /// Part of the conditions is not answered by the index.
    pub residual: bool,
    /// No row can satisfy the conditions.
    pub is_empty: bool,
    /// The index is read from its end.
    pub backward: bool,
    /// The entries of the index are enough: no row is looked at.
    pub covering: bool,
}

/// The index that is read.
pub(super) struct AccessKey {
    pub name: String,
    /// The columns that are used.
    pub parts: Vec<String>,
    /// Bytes of them at most.
    pub length: u64,
    /// What the columns are compared with, if they are equal to something.
    pub refs: Vec<String>,
    /// The same as FORMAT=TREE writes it: ` (a=5)`.
    pub lookup: String,
}

impl Access {
    /// All rows of something that is no base table, of which those are kept that satisfy `conditions`.
    pub fn all(rows: Option<u64>, conditions: &[&Expr]) -> Access {
        let share: f64 = conditions.iter().map(|condition| guess(condition)).product();
        let filtered = share.max(1.0 / rows.unwrap_or(1) as f64);
        Access { kind: "ALL", partitions: Vec::new(), possible: Vec::new(), key: None, rows, filtered, residual: !conditions.is_empty(), is_empty: false, backward: false, covering: false }
    }
}

impl Session {
    pub(super) fn access_to(&mut self, scanned: &Scanned<'_>, chosen: Chosen<'_>) -> Result<Access, MySqlError> {
        let Scanned { table, choice, columns, conditions, decided, .. } = *scanned;
        let def = table.def();
        let total = table.row_count_estimate()?.max(1);
        table.statistics(self.txn())?;
        let is_own = |field: usize| columns.get(field).is_some_and(|column| *column < def.columns.len());
        let joined = |e: &Expr| e.is_known_given(&|field| !is_own(field));
        let with_others = Row { table: def, columns, known: &joined };
        let alone = Row { table: def, columns, known: &Expr::is_known };
        let all = || 0..def.indexes.len();
        let lookups: &[usize] = if let Chosen::Scan(scan) = &chosen { &scan.lookups } else { &[] };
        let plain: Vec<&Expr> = conditions.iter().copied().filter(|condition| search_of_condition(condition).is_none()).collect();
        let mut possible: Vec<String> = all()
            .filter(|i| choice.finds(*i) && (lookups.contains(i) || with_others.access(&plain, *i).is_some()))
            .map(|i| def.indexes[i].name.to_string())
            .collect();
        let search = searched(table, decided, &is_own);
        possible.extend(search.filter(|search| search.finds_rows()).map(|search| search.index_name().to_owned()));
        let found: Option<IndexAccess> = match &chosen {
            Chosen::Best => all().filter(|i| choice.finds(*i)).filter_map(|i| alone.access(decided, i)).reduce(|best, next| {
                let rank = |a: &IndexAccess| (a.unique, a.equalities, a.matched);
                if rank(&next) > rank(&best) { next } else { best }
            }),
            Chosen::Single { access, .. } => access.cloned(),
            Chosen::Step(step) => step.key.and_then(|(index, _)| def.indexes.iter().position(|i| i.name == index.name)).and_then(|i| with_others.access(decided, i)),
            Chosen::Scan(scan) => scan.index.and_then(|i| alone.access(decided, i)),
        };
        let mut rows = total;
        let left = self.pruned(table, columns, Expr::and(decided.iter().map(|condition| (*condition).clone())).as_ref())?;
        let mut partitions = left.partitions_read(0, &[KeyRange::all()]);
        let mut is_empty = false;
        if let Some(found) = &found {
            rows = rows_of(table, Some(found)).round() as u64;
            // The values of other rows are not known.
            if found.bounds().all(plan::is_fixed)
                && let Ok(ranges) = plan::key_ranges(found, def, &mut self.state)
            {
                is_empty = ranges.is_empty();
                partitions = left.partitions_read(found.index, &ranges);
                if !found.unique {
                    let counts = ranges.iter().map(|range| table.estimate_range(found.index, range));
                    rows = counts.sum::<Result<u64, MySqlError>>()?;
                }
            }
        }
        let residual: Vec<&Expr> = match &found {
            Some(found) => found.residual.as_ref().map_or(Vec::new(), |residual| residual.conjuncts().iter().collect()),
            None => decided.to_vec(),
        };
        let (own, tying): (Vec<&Expr>, Vec<&Expr>) = residual.iter().copied().partition(|c| c.columns().iter().all(|field| is_own(*field)));
        let own = Expr::and(own.into_iter().cloned());
        let share = own.map_or(1.0, |own| plan::selectivity(&own, table, columns, &mut self.state)) * tying.into_iter().map(guess).product::<f64>();
        let (mut kind, whole) = match &found {
            Some(found) if found.unique && found.ranges.len() == 1 => (if found.bounds().all(plan::is_fixed) { "const" } else { "eq_ref" }, None),
            Some(found) if found.equalities == found.matched && found.ranges.len() == 1 => ("ref", None),
            Some(_) => ("range", None),
            None => match &chosen {
                Chosen::Single { index, backward, ordered, .. } if *index != 0 || *backward || *ordered && !def.indexes[0].parts.is_empty() => ("index", Some(*index)),
                Chosen::Scan(ShownScan { entries: Some(index), .. }) => ("index", Some(*index)),
                _ => ("ALL", None),
            },
        };
        let mut key = match (&found, whole) {
            (Some(found), _) => Some(key_of(scanned, &def.indexes[found.index], found.matched.max(1), kind, Some(found))),
            (None, Some(index)) => Some(key_of(scanned, &def.indexes[index], def.indexes[index].parts.len(), kind, None)),
            (None, None) => None,
        };
        let mut has_residual = !residual.is_empty();
        let backward = matches!(&chosen, Chosen::Single { backward: true, .. });
        let covering = match &chosen {
            Chosen::Single { covering, .. } => *covering,
            Chosen::Step(step) => step.covering,
            Chosen::Scan(scan) => scan.covering,
            Chosen::Best => false,
        };
        match chosen {
            Chosen::Step(step) => {
                kind = step.kind;
                rows = step.rows;
                has_residual = step.residual;
                key = step.key.map(|(index, parts)| AccessKey { refs: step.refs.clone(), ..key_of(scanned, index, parts, kind, None) });
            }
            Chosen::Scan(ShownScan { index: Some(index), rows: estimate, .. }) => {
                rows = if kind == "const" { 1 } else { *estimate };
                if found.is_none() {
                    kind = "range";
                    key = Some(key_of(scanned, &def.indexes[*index], 1, kind, None));
                }
            }
            Chosen::Scan(ShownScan { index: None, rows: estimate, .. }) => rows = *estimate,
            Chosen::Best | Chosen::Single { .. } => {}
        }
        // The rows that a search finds are looked up by their primary keys; what finds them is its index.
        if let Some(search) = search.filter(|search| search.finds_rows() && !alone.access(&plain, 0).is_some_and(|access| access.unique)) {
            (kind, rows, has_residual, is_empty) = ("fulltext", 1, true, false);
            key = Some(AccessKey { name: search.index_name().to_owned(), parts: Vec::new(), length: 0, refs: vec!["const".to_owned()], lookup: String::new() });
        }
        let rows = rows.max(1);
        // At least one row is expected.
        let filtered = share.max(1.0 / rows as f64).min(1.0);
        Ok(Access { kind, partitions: partitions.unwrap_or_default(), possible, key, rows: Some(rows), filtered, residual: has_residual, is_empty, backward, covering })
    }
}

/// The search of this table that a condition asks for.
fn searched<'e>(table: &Table, conditions: &[&'e Expr], is_own: &dyn Fn(usize) -> bool) -> Option<&'e Search> {
    conditions.iter().copied().find_map(|condition| {
        let (search, columns) = search_of_condition(condition)?;
        let own = columns.iter().all(|column| column.as_column().is_some_and(is_own));
        (own && search.table().id() == table.id()).then_some(&**search)
    })
}

/// The share of rows that satisfy a condition of which nothing is known: MySQL's COND_FILTER_* (sql_const.h).
fn guess(condition: &Expr) -> f64 {
    match &condition.kind {
        _ if condition.has_subquery() => 1.0,
        ExprKind::Compare { op: CompareOp::Eq | CompareOp::NullSafeEq, .. } => 0.1,
        ExprKind::Compare { op: CompareOp::Ne, .. } => 0.9,
        ExprKind::Compare { .. } => 0.3333,
        _ => 1.0,
    }
}

fn key_of(scanned: &Scanned<'_>, index: &IndexDef, parts: usize, kind: &str, found: Option<&IndexAccess>) -> AccessKey {
    let columns = &scanned.table.def().columns;
    let used = || index.parts.iter().take(parts);
    let equal = matches!(kind, "const" | "eq_ref" | "ref");
    AccessKey {
        name: index.name.to_string(),
        parts: used().map(|part| columns[part.column].name.to_string()).collect(),
        length: used()
            .map(|part| {
                let column = &columns[part.column];
                let char_bytes = if column.ty.is_text() { column.ty.charset().max_bytes() as u64 } else { 1 };
                let bytes = part.prefix.map_or(column.ty.max_bytes(), |chars| u64::from(chars) * char_bytes);
                // Strings of varying length begin with it.
                let varies = matches!(column.ty.kind, highkey_types::TypeKind::VarChar(_) | highkey_types::TypeKind::VarBinary(_)) || column.ty.is_blob();
                bytes + if varies { 2 } else { 0 } + u64::from(column.nullable)
            })
            .sum(),
        refs: match found.and_then(|found| found.ranges.first()) {
            Some(range) if equal => range.prefix.iter().map(|e| named(e, scanned.fields, scanned.outers)).collect(),
            _ => Vec::new(),
        },
        lookup: match found {
            Some(found) if equal => plan::describe_lookup(found, scanned.table.def(), scanned.fields),
            _ => String::new(),
        },
    }
}

/// What an index is asked for: a column of another table, a constant, or something made of columns.
fn named(expr: &Expr, fields: &[Field], outers: &[Vec<Field>]) -> String {
    let field = match &expr.kind {
        ExprKind::Column(index) => fields.get(*index),
        ExprKind::Outer { depth, index } => outers.len().checked_sub(*depth).and_then(|at| outers[at].get(*index)),
        _ if plan::is_fixed(expr) => return "const".to_owned(),
        _ => None,
    };
    match field {
        Some(field) if field.table.is_empty() => "func".to_owned(),
        Some(field) if field.schema.is_empty() => format!("{}.{}", field.table, field.name),
        Some(field) => format!("{}.{}.{}", field.schema, field.table, field.name),
        None => "func".to_owned(),
    }
}
