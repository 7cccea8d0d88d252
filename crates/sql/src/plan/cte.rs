//! Common table expressions that are made once: which of them a statement needs as such.

use std::collections::HashMap;

use super::{ExprKind, Rel, RelKind};
use crate::stack;

impl Rel {
    /// It reads the rows of a recursion around it.
    pub fn reads_recursion_around(&self) -> bool {
        let (mut own, mut read) = (Vec::new(), Vec::new());
        self.for_each_operator(&mut |rel| match &rel.kind {
            RelKind::RecursiveCte { id, .. } => own.push(*id),
            RelKind::CteScan { id, .. } => read.push(*id),
            _ => {}
        });
        read.iter().any(|id| !own.contains(id))
    }

    /// It may be the first to ask for rows that are made once for all who read them.
    pub fn makes_shared_rows(&self) -> bool {
        let mut shared = false;
        self.for_each_operator(&mut |rel| shared |= matches!(rel.kind, RelKind::MaterializedCte { .. }));
        shared
    }

    /// It reads no table and makes no rows in rounds: what it gives is written in it.
    pub fn is_written_out(&self) -> bool {
        let mut written = true;
        self.for_each_operator(&mut |rel| written &= !matches!(rel.kind, RelKind::Scan { .. } | RelKind::Virtual { .. } | RelKind::RecursiveCte { .. }));
        written
    }

    /// An expression in it assigns a variable, or may give another value each time.
    pub fn is_volatile(&self) -> bool {
        let mut volatile = false;
        self.for_each_expr(&mut |e, _| volatile |= e.is_volatile_itself());
        volatile
    }

    /// An expression in it assigns a user variable.
    pub fn assigns_variables(&self) -> bool {
        let mut assigns = false;
        self.for_each_expr(&mut |e, _| assigns |= matches!(e.kind, ExprKind::AssignUserVar { .. }));
        assigns
    }

    /// Puts the plans of common table expressions that are read in one place only in that place, so that conditions there reach their tables. One that is
    /// volatile stays what it is: the place may be read more than once.
    pub fn inline_lone_ctes(&mut self) {
        let mut readers = HashMap::new();
        count_readers(self, 1, &mut readers);
        if !readers.is_empty() {
            inline(self, &readers);
        }
    }
}

/// Counts the places where each is read; one that is read `times`. Those inside another one are counted once, however often that one is read.
fn count_readers(rel: &Rel, times: usize, readers: &mut HashMap<usize, usize>) {
    stack::ensure(|| {
        rel.own_roots(&mut |root| {
            root.walk(&mut |e| {
                if let ExprKind::Subquery(sub) = &e.kind {
                    count_readers(&sub.plan, times, readers);
                }
            });
        });
        match &rel.kind {
            RelKind::MaterializedCte { id, plan, .. } => {
                let count = readers.entry(*id).or_default();
                let is_known = *count > 0;
                *count += times;
                if !is_known {
                    count_readers(plan, 1, readers);
                }
            }
            RelKind::RecursiveCte { anchor, step, .. } => {
                count_readers(anchor, times, readers);
                // In each round.
                count_readers(step, 2, readers);
            }
            _ => rel.inputs().into_iter().for_each(|input| count_readers(input, times, readers)),
        }
    });
}

fn inline(rel: &mut Rel, readers: &HashMap<usize, usize>) {
    stack::ensure(|| {
        while let RelKind::MaterializedCte { id, plan, .. } = &mut rel.kind
            && readers.get(&*id) == Some(&1)
            && !plan.is_volatile()
        {
            let plan = std::mem::replace(&mut **plan, Rel::dual());
            rel.kind = plan.kind;
        }
        rel.own_roots_mut(&mut |root| {
            root.walk_mut(&mut |e| {
                if let ExprKind::Subquery(sub) = &mut e.kind {
                    inline(&mut sub.plan, readers);
                }
            });
        });
        for input in rel.inputs_mut() {
            inline(input, readers);
        }
    });
}
