//! Group keys that others determine: GROUP BY c_custkey, c_name, … where c_custkey is the customer's primary key. Rows are grouped by the others alone,
//! and each such group has the value of its first row, which is that of all.

use std::ops::Range;

use highkey_types::TypeKind;

use crate::plan::{CompareOp, Expr, ExprKind, JoinKind, Rel, RelKind};

/// A base table among the fields of a relation.
struct Source<'a> {
    fields: Range<usize>,
    table: &'a highkey_table::Table,
    columns: &'a [usize],
}

/// What is known of a relation's fields.
#[derive(Default)]
struct Known<'a> {
    sources: Vec<Source<'a>>,
    /// Integers that are equal in every row.
    equal: Vec<(usize, usize)>,
}

impl<'a> Known<'a> {
    fn add(&mut self, rel: &'a Rel, at: usize) {
        match &rel.kind {
            RelKind::Scan { table, columns, .. } => self.sources.push(Source { fields: at..at + columns.len(), table, columns }),
            RelKind::Filter { input, predicate } => {
                self.add(input, at);
                self.conditions(predicate, at);
            }
            RelKind::Join { kind, left, right, on } => {
                self.add(left, at);
                self.add(right, at + left.fields.len());
                // A left join's condition says nothing of rows without a partner: those have NULL for all of a table, its key too.
                if let (JoinKind::Inner | JoinKind::Straight, Some(on)) = (kind, on) {
                    self.conditions(on, at);
                }
            }
            _ => {}
        }
    }

    fn conditions(&mut self, condition: &Expr, at: usize) {
        for part in condition.conjuncts() {
            if let ExprKind::Compare { op: CompareOp::Eq, left, right, .. } = &part.kind
                && let (Some(a), Some(b)) = (left.as_column(), right.as_column())
                && left.ty.ty.is_integer()
                && right.ty.ty.is_integer()
            {
                self.equal.push((a + at, b + at));
            }
        }
    }

    /// True if `field` has one value for each combination of values of `kept`.
    fn determines(&self, kept: &[usize], field: usize) -> bool {
        let mut known = kept.to_vec();
        loop {
            let before = known.len();
            for &(a, b) in &self.equal {
                for (from, to) in [(a, b), (b, a)] {
                    if known.contains(&from) && !known.contains(&to) {
                        known.push(to);
                    }
                }
            }
            for source in &self.sources {
                if source.is_found_by(&known) {
                    let others: Vec<usize> = source.fields.clone().filter(|field| !known.contains(field)).collect();
                    known.extend(others);
                }
            }
            if known.contains(&field) {
                return true;
            }
            if known.len() == before {
                return false;
            }
        }
    }
}

impl Source<'_> {
    /// The fields are all columns of a unique key without NULL.
    fn is_found_by(&self, fields: &[usize]) -> bool {
        let has = |column: usize| self.columns.iter().position(|&c| c == column).is_some_and(|i| fields.contains(&(self.fields.start + i)));
        let def = self.table.def();
        // Two moments may look alike in the session's time zone.
        let tells = |column: usize| def.columns.get(column).is_some_and(|c| !c.nullable && !matches!(c.ty.kind, TypeKind::Timestamp(_)));
        let mut unique = def.indexes.iter().filter(|index| index.is_unique());
        unique.any(|index| index.parts.iter().all(|part| part.prefix.is_none() && tells(part.column) && has(part.column)))
    }
}

/// For each group whether the other ones that are not determine it.
pub(super) fn dependent(input: &Rel, groups: &[Expr]) -> Vec<bool> {
    let mut known = Known::default();
    known.add(input, 0);
    let mut dependent = vec![false; groups.len()];
    // Texts cost most to compare; of the others the first are kept.
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|&i| (groups[i].ty.ty.is_integer(), std::cmp::Reverse(i)));
    for i in order {
        let Some(field) = own_field(&groups[i], input) else { continue };
        let others = (0..groups.len()).filter(|&j| j != i && !dependent[j]);
        let kept: Vec<usize> = others.filter_map(|j| own_field(&groups[j], input)).collect();
        dependent[i] = known.determines(&kept, field);
    }
    dependent
}

/// The field that a group is. Under another collation than the field's own it is none: other texts are equal then.
fn own_field(group: &Expr, input: &Rel) -> Option<usize> {
    group.as_column().filter(|&field| {
        let own = &input.fields[field].ty.ty;
        !own.is_text() || own.collation.id == group.ty.ty.collation.id
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::df::tests::{Fixture, int, text};

    /// The positions of the groups that others determine.
    fn of(f: &Fixture, sql: &str) -> Vec<usize> {
        let bound = f.bind(sql).unwrap();
        let mut rel = &bound.rel;
        loop {
            if let RelKind::Aggregate { input, groups, .. } = &rel.kind {
                let dependent = dependent(input, groups);
                return (0..groups.len()).filter(|&i| dependent[i]).collect();
            }
            rel = rel.inputs()[0];
        }
    }

    #[test]
    fn a_key_determines_its_table() {
        let f = Fixture::new();
        f.table("c", &[("id", int()), ("s", text()), ("n", int())], "1|one|5\n2|two|5");
        f.table("o", &[("id", int()), ("c", int()), ("s", text())], "1|1|x\n2|1|y\n3|2|x\n4|NULL|z");
        let from = "c JOIN o ON o.c = c.id";
        assert_eq!(of(&f, "SELECT 1 FROM c GROUP BY s, id, n"), [0, 2]);
        assert_eq!(of(&f, "SELECT 1 FROM c GROUP BY s, n"), [0; 0]);
        assert_eq!(of(&f, &format!("SELECT 1 FROM {from} GROUP BY c.s, c.id, o.s")), [0]);
        // Through the join: o.id has one o.c, which is c.id.
        assert_eq!(of(&f, &format!("SELECT 1 FROM {from} GROUP BY c.s, c.id, o.id, o.s")), [0, 1, 3]);
        assert_eq!(of(&f, "SELECT 1 FROM c, o WHERE o.c = c.id GROUP BY o.c, c.s, o.s"), [1]);
        assert_eq!(of(&f, "SELECT 1 FROM c LEFT JOIN o ON o.c = c.id GROUP BY o.c, c.s, o.s"), [0; 0]);
        assert_eq!(of(&f, "SELECT 1 FROM c LEFT JOIN o ON o.c = c.id GROUP BY o.s, o.id, c.s, c.id"), [0, 2]);
        assert_eq!(of(&f, "SELECT 1 FROM c GROUP BY s, id + 0"), [0; 0]);
        // Under another collation a column is another one.
        assert_eq!(of(&f, "SELECT 1 FROM c GROUP BY s, s COLLATE utf8mb4_bin"), [0; 0]);
        // Twice the same column, and a key of nothing else.
        assert_eq!(of(&f, "SELECT 1 FROM c a JOIN c b ON a.n = b.n GROUP BY a.s, b.id, a.n"), [2]);
        f.check("SELECT c.s, c.id, o.s, COUNT(*) FROM c JOIN o ON o.c = c.id GROUP BY c.s, c.id, o.s ORDER BY 2, 3", "one|1|x|1;one|1|y|1;two|2|x|1");
        f.check("SELECT o.s, o.id, c.s, c.id, COUNT(*) FROM c LEFT JOIN o ON o.c = c.id AND o.s = 'y' GROUP BY o.s, o.id, c.s, c.id ORDER BY 4", "y|2|one|1|1;NULL|NULL|two|2|1");
    }
}
