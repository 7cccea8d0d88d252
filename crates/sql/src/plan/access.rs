//! Which part of a condition an index answers: sargable ranges, for the fast path and for scans under DataFusion.
//!
//! An index is used by its leading parts: any number of equalities, then IN lists, then one range. Bounds stay
//! expressions, so that a prepared statement finds its access once; [`key_ranges`](super::key_ranges) evaluates them.

use std::ops::Bound;

use highkey_table::{IndexKind, TableDef};
use highkey_types::{ColumnType, TypeKind};

use super::{CompareBy, CompareOp, Expr, ExprKind, IndexChoice};
use crate::full_text::search_of_condition;

/// Ranges that one access may have: beyond that a scan with a filter is the better plan.
const MAX_RANGES: usize = 4096;

/// The same for the answer of a subquery of a statement that writes, which locks what it scans.
const MAX_SORTED_RANGES: usize = 1 << 16;

/// One range of an index: `prefix` equals the first parts, the bounds are on the next part.
#[derive(Debug, Clone)]
pub struct KeyRangeExpr {
    /// Constants for the leading parts.
    pub prefix: Vec<Expr>,
    /// For each of `prefix`: `true` where NULL is a value (`<=>`, IS NULL).
    pub null_matches: Vec<bool>,
    /// Lower bound of the part after the prefix.
    pub lower: Bound<Expr>,
    /// Upper bound of the part after the prefix.
    pub upper: Bound<Expr>,
}

/// How an index answers a condition.
#[derive(Debug, Clone)]
pub struct IndexAccess {
    /// Position in `TableDef::indexes`.
    pub index: usize,
    /// The ranges: disjoint once evaluated by [`key_ranges`](super::key_ranges).
    pub ranges: Vec<KeyRangeExpr>,
    /// At most one row for each range: all parts of a unique index are equal to constants that cannot be NULL.
    pub unique: bool,
    /// What remains to be checked on each row.
    pub residual: Option<Expr>,
    /// How many parts of the index the ranges restrict.
    pub matched: usize,
    /// How many of them by equality alone.
    pub equalities: usize,
}

impl IndexAccess {
    /// The expressions that it evaluates.
    pub fn bounds(&self) -> impl Iterator<Item = &Expr> {
        self.ranges.iter().flat_map(|range| {
            let ends = [&range.lower, &range.upper].into_iter().filter_map(|bound| match bound {
                Bound::Included(e) | Bound::Excluded(e) => Some(e),
                Bound::Unbounded => None,
            });
            range.prefix.iter().chain(ends)
        })
    }
}

/// A condition on one column.
enum Sarg<'a> {
    /// `exact`: every row with that key satisfies the condition.
    Equal { value: &'a Expr, null_matches: bool, exact: bool },
    /// One of these; the condition need not be asked again if `exact`. `most`: ranges that it may make.
    OneOf { values: Vec<&'a Expr>, exact: bool, most: usize },
    Lower(Bound<&'a Expr>),
    Upper(Bound<&'a Expr>),
}

/// How `index` can answer `filter`, which is over a row whose field i is table column `columns[i]`. `None`: not at all.
pub fn index_access(filter: &Expr, table: &TableDef, columns: &[usize], index: usize) -> Option<IndexAccess> {
    Row { table, columns, known: &Expr::is_known }.access(&filter.conjuncts().iter().collect::<Vec<_>>(), index)
}

/// The row that conditions are about: one of a table, or several tables' side by side.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    /// The table whose index is asked.
    pub table: &'a TableDef,
    /// Field i is the table's column `columns[i]`; a number that no column has stands for a field of another table.
    pub columns: &'a [usize],
    /// What has a value before the index is asked.
    pub known: &'a dyn Fn(&Expr) -> bool,
}

impl Row<'_> {
    /// How `index` can answer the conjunction of conditions over this row.
    pub fn access(self, conjuncts: &[&Expr], index: usize) -> Option<IndexAccess> {
        let def = &self.table.indexes[index];
        if def.kind == IndexKind::FullText || (def.invisible && index != 0) {
            return None;
        }
        if def.kind == IndexKind::RowId {
            return searched_rows(conjuncts, self);
        }
        let found = conjunction(conjuncts, self, index);
        if found.as_ref().is_some_and(|access| access.unique) {
            return found;
        }
        let searched = if index == 0 { searched_rows(conjuncts, self) } else { None };
        searched.or(found).or_else(|| disjunction(conjuncts, self, index))
    }
}

fn conjunction(conjuncts: &[&Expr], row: Row<'_>, index: usize) -> Option<IndexAccess> {
    let table = row.table;
    let def = &table.indexes[index];
    let mut used = vec![false; conjuncts.len()];
    let mut ranges = vec![KeyRangeExpr { prefix: Vec::new(), null_matches: Vec::new(), lower: Bound::Unbounded, upper: Bound::Unbounded }];
    let (mut matched, mut equalities, mut nulls) = (0, 0, false);
    'parts: for part in &def.parts {
        let ty = &table.columns[part.column].ty;
        // What an inexact part answers must be checked again.
        let exact = part.prefix.is_none() && !matches!(ty.kind, TypeKind::Float | TypeKind::Timestamp(_));
        let on_part = |i: usize| sarg(conjuncts[i], part.column, row, ty);
        for (i, taken) in used.iter_mut().enumerate() {
            match on_part(i) {
                Some(Sarg::Equal { value, null_matches, exact: as_compared }) => {
                    for range in &mut ranges {
                        range.prefix.push(value.clone());
                        range.null_matches.push(null_matches);
                    }
                    nulls |= null_matches;
                    *taken = exact && as_compared;
                }
                Some(Sarg::OneOf { values, exact: as_compared, most }) if ranges.len() * values.len() <= most => {
                    let extended = |range: &KeyRangeExpr| {
                        values
                            .iter()
                            .map(|value| {
                                let mut range = range.clone();
                                range.prefix.push((*value).clone());
                                range.null_matches.push(false);
                                range
                            })
                            .collect::<Vec<_>>()
                    };
                    ranges = ranges.iter().flat_map(extended).collect();
                    *taken = exact && as_compared;
                }
                _ => continue,
            }
            matched += 1;
            equalities += 1;
            continue 'parts;
        }
        if part.prefix.is_some() && ty.is_text() && !ty.collation.orders_prefixes() {
            break;
        }
        let (mut lower, mut upper) = (Bound::Unbounded, Bound::Unbounded);
        for (i, taken) in used.iter_mut().enumerate() {
            match on_part(i) {
                Some(Sarg::Lower(bound)) if matches!(lower, Bound::Unbounded) => {
                    lower = bound.cloned();
                    *taken = exact;
                }
                Some(Sarg::Upper(bound)) if matches!(upper, Bound::Unbounded) => {
                    upper = bound.cloned();
                    *taken = exact;
                }
                _ => {}
            }
        }
        if !matches!((&lower, &upper), (Bound::Unbounded, Bound::Unbounded)) {
            matched += 1;
            for range in &mut ranges {
                range.lower = lower.clone();
                range.upper = upper.clone();
            }
        }
        break;
    }
    if matched == 0 {
        return None;
    }
    let whole = equalities == def.parts.len() && def.parts.iter().all(|p| p.prefix.is_none());
    let residual = Expr::and(conjuncts.iter().zip(&used).filter(|(_, used)| !**used).map(|(e, _)| (*e).clone()));
    Some(IndexAccess { index, ranges, unique: def.is_unique() && whole && !nulls, residual, matched, equalities })
}

/// The rows that a full-text search has found, by their primary keys or row ids. The condition is asked again.
fn searched_rows(conjuncts: &[&Expr], row: Row<'_>) -> Option<IndexAccess> {
    let of_row = |columns: &[Expr], searched: &mut dyn Iterator<Item = usize>| {
        columns.iter().all(|column| column.as_column().and_then(|field| row.columns.get(field)).copied() == searched.next())
    };
    conjuncts.iter().find_map(|conjunct| {
        let (search, columns) = search_of_condition(conjunct)?;
        if search.table().def().id != row.table.id || !of_row(columns, &mut search.columns()) {
            return None;
        }
        let parts = row.table.indexes[0].parts.len().max(1);
        let range = |key: Vec<Expr>| KeyRangeExpr { prefix: key, null_matches: vec![false; parts], lower: Bound::Unbounded, upper: Bound::Unbounded };
        let ranges = search.found_rows()?.into_iter().map(range).collect();
        let residual = Expr::and(conjuncts.iter().map(|e| (*e).clone()));
        Some(IndexAccess { index: 0, ranges, unique: true, residual, matched: parts, equalities: parts })
    })
}

/// `a OR b` where every side has an access: their ranges together; the condition is checked again.
fn disjunction(conjuncts: &[&Expr], row: Row<'_>, index: usize) -> Option<IndexAccess> {
    for conjunct in conjuncts {
        let ExprKind::Or(sides) = &conjunct.kind else { continue };
        let accesses: Option<Vec<IndexAccess>> = sides.iter().map(|side| conjunction(&side.conjuncts().iter().collect::<Vec<_>>(), row, index)).collect();
        let Some(accesses) = accesses else { continue };
        let (matched, equalities) = (accesses.iter().map(|a| a.matched).min()?, accesses.iter().map(|a| a.equalities).min()?);
        let unique = accesses.iter().all(|a| a.unique);
        let ranges: Vec<KeyRangeExpr> = accesses.into_iter().flat_map(|a| a.ranges).collect();
        if ranges.len() > MAX_RANGES {
            continue;
        }
        let residual = Expr::and(conjuncts.iter().map(|e| (*e).clone()));
        return Some(IndexAccess { index, ranges, unique, residual, matched, equalities });
    }
    None
}

/// What a condition says about one column, if it compares the column with constants in the column's own domain.
fn sarg<'a>(condition: &'a Expr, column: usize, row: Row<'_>, ty: &ColumnType) -> Option<Sarg<'a>> {
    let is_column = |e: &Expr| e.as_column().is_some_and(|i| row.columns.get(i) == Some(&column));
    match &condition.kind {
        ExprKind::Compare { op, by, left, right } => {
            let (op, value) = match (is_column(left), is_column(right)) {
                (true, false) => (*op, &**right),
                (false, true) => (op.flip(), &**left),
                _ => return None,
            };
            if !(row.known)(value) {
                return None;
            }
            if op == CompareOp::Eq && is_number_in_text(*by, ty, value) {
                return Some(Sarg::Equal { value, null_matches: false, exact: false });
            }
            if !usable(*by, ty, matches!(op, CompareOp::Eq | CompareOp::NullSafeEq)) {
                return None;
            }
            Some(match op {
                CompareOp::Eq => Sarg::Equal { value, null_matches: false, exact: true },
                CompareOp::NullSafeEq => Sarg::Equal { value, null_matches: true, exact: true },
                CompareOp::Lt => Sarg::Upper(Bound::Excluded(value)),
                CompareOp::Le => Sarg::Upper(Bound::Included(value)),
                CompareOp::Gt => Sarg::Lower(Bound::Excluded(value)),
                CompareOp::Ge => Sarg::Lower(Bound::Included(value)),
                CompareOp::Ne => return None,
            })
        }
        ExprKind::IsNull { expr, negated: false } if is_column(expr) => {
            // The column itself has the type of the NULL that it equals.
            Some(Sarg::Equal { value: null_of(expr), null_matches: true, exact: true })
        }
        ExprKind::In { expr, list, by, negated: false, sorted } if is_column(expr) && list.iter().all(row.known) => {
            let exact = usable(*by, ty, true);
            let texts = || list.iter().all(|item| is_number_in_text(*by, ty, item) || item.ty.is_null_type());
            (exact || texts()).then(|| Sarg::OneOf { values: list.iter().collect(), exact, most: if *sorted { MAX_SORTED_RANGES } else { MAX_RANGES } })
        }
        _ => None,
    }
}

/// IS NULL as an equality needs a NULL that lives as long as the plan.
fn null_of(_: &Expr) -> &'static Expr {
    static NULL: std::sync::LazyLock<Expr> = std::sync::LazyLock::new(Expr::null);
    &NULL
}

/// A constant text against an integer column. As in MySQL the number at its start is looked up, and the row asked with the text itself: what
/// else the text has raises a warning only where there is such a row.
fn is_number_in_text(by: CompareBy, ty: &ColumnType, value: &Expr) -> bool {
    by == CompareBy::Double && ty.is_integer() && value.ty.ty.is_text() && value.is_constant()
}

/// The index orders its column as the comparison does.
pub(super) fn usable(by: CompareBy, ty: &ColumnType, equality: bool) -> bool {
    match &ty.kind {
        _ if ty.is_integer() => matches!(by, CompareBy::Int | CompareBy::Decimal),
        TypeKind::Year | TypeKind::Bit(_) => by == CompareBy::Int,
        TypeKind::Decimal { .. } => matches!(by, CompareBy::Decimal),
        TypeKind::Float | TypeKind::Double => by == CompareBy::Double,
        TypeKind::Date => matches!(by, CompareBy::Date | CompareBy::DateTime),
        TypeKind::DateTime(_) | TypeKind::Timestamp(_) => by == CompareBy::DateTime,
        TypeKind::Time(_) => by == CompareBy::Time,
        TypeKind::Enum(_) => equality && matches!(by, CompareBy::Text(c) if c.id == ty.collation.id),
        TypeKind::Set(_) | TypeKind::Json | TypeKind::Null => false,
        _ => matches!(by, CompareBy::Text(c) if c.id == ty.collation.id),
    }
}

/// The index that answers most of `filter`: unique first, then more equal parts, then a range, the clustered one at a tie.
pub fn best_access(filter: &Expr, table: &TableDef, columns: &[usize], choice: &IndexChoice) -> Option<IndexAccess> {
    preferred_access(filter, table, columns, choice, |_| true)
}

/// The same; of several that answer as much, one that is preferred.
pub fn preferred_access(
    filter: &Expr,
    table: &TableDef,
    columns: &[usize],
    choice: &IndexChoice,
    prefers: impl Fn(&IndexAccess) -> bool,
) -> Option<IndexAccess> {
    let accesses = (0..table.indexes.len()).filter(|index| choice.finds(*index)).filter_map(|index| index_access(filter, table, columns, index));
    accesses.reduce(|best, next| {
        let rank = |a: &IndexAccess| (a.unique, a.equalities, a.matched);
        let better = rank(&next) > rank(&best) || rank(&next) == rank(&best) && prefers(&next) && !prefers(&best);
        if better { next } else { best }
    })
}
