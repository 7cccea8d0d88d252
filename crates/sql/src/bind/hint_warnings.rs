//! What MySQL says of the optimizer hints of a statement: which of them are ignored, and, in EXPLAIN's note, which are not.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use highkey_table::Table;

use super::hints::{HintedBlock, IGNORED, Ordering, UNRESOLVED};
use crate::parse::ast::OptimizerHint;

/// The warnings of hints that are ignored: in the wrong place, about a query block and about a resource group that there is not.
const MISPLACED: u16 = 3125;
const UNKNOWN_BLOCK: u16 = 3127;
const NO_RESOURCE_GROUP: u16 = 3651;

/// The resource groups that MySQL always has.
const RESOURCE_GROUPS: [&str; 2] = ["SYS_default", "USR_default"];

/// The warning of MAX_EXECUTION_TIME that is no whole query's.
pub(super) fn misplaced_time() -> (u16, String) {
    (MISPLACED, "MAX_EXECUTION_TIME hint is supported by top-level standalone SELECT statements only".to_string())
}

/// MySQL's warnings about the hints of a statement's blocks.
pub(super) fn warnings(blocks: &mut [HintedBlock]) -> Vec<(u16, String)> {
    let Found { mut warnings, mut unresolved, .. } = judged(blocks);
    unresolved.sort_by_key(|(block, _)| *block);
    warnings.extend(unresolved.into_iter().map(|(_, text)| (UNRESOLVED, text)));
    warnings
}

/// The hints as EXPLAIN's note shows them, by the number of the block: the first has all but the names of the others. Those that are ignored are left out.
pub(super) fn printed(blocks: &mut [HintedBlock]) -> HashMap<u32, String> {
    let mut texts: HashMap<u32, Vec<String>> = HashMap::new();
    let found = judged(blocks);
    for (name, block) in &found.names {
        texts.entry(found.blocks[*block].number).or_default().push(format!("QB_NAME({})", quoted(name)));
    }
    let first = texts.entry(1).or_default();
    first.extend(found.statement.iter().map(|hint| if hint.args.is_empty() { hint.name.clone() } else { format!("{}({})", hint.name, hint.args.join(" ")) }));
    // The blocks have been judged from the last to the first.
    for block in (0..found.blocks.len()).rev() {
        let mut kept: Vec<&Kept> = found.kept.iter().filter(|kept| kept.block == block).collect();
        let mut tables: Vec<&str> = Vec::new();
        for table in kept.iter().filter_map(|kept| kept.table.as_deref()) {
            if !tables.contains(&table) {
                tables.push(table);
            }
        }
        let place = |kept: &Kept| kept.table.as_deref().map(|table| tables.iter().position(|known| *known == table));
        kept.sort_by_key(|&kept| (place(kept), kept.of_index(), kept.rank()));
        let label = quoted(&found.label(block));
        first.extend(kept.into_iter().map(|kept| kept.text(&label)));
    }
    texts.into_iter().filter(|(_, hints)| !hints.is_empty()).map(|(number, hints)| (number, hints.join(" "))).collect()
}

fn judged(blocks: &mut [HintedBlock]) -> Found<'_> {
    // Names are known to the blocks around the one that has them.
    blocks.sort_by_key(|block| std::cmp::Reverse(block.number));
    let blocks: &[HintedBlock] = blocks;
    let mut found = Found { blocks, ..Found::default() };
    for (at, block) in blocks.iter().enumerate() {
        block.hints.iter().for_each(|hint| found.judge(at, hint));
    }
    found
}

/// A hint that is not ignored.
struct Kept {
    name: String,
    block: usize,
    table: Option<String>,
    indexes: Vec<String>,
    /// What it says of its block.
    of_block: String,
}

impl Kept {
    /// About one index: those hints come behind those about the table.
    fn of_index(&self) -> bool {
        !self.indexes.is_empty() && self.rank() < INDEX_LISTS
    }

    /// Its place among those about the same.
    fn rank(&self) -> u8 {
        match self.name.strip_prefix("NO_").unwrap_or(&self.name) {
            "BKA" => 0,
            "BNL" | "HASH_JOIN" => 1,
            "ICP" => 2,
            "MRR" => 3,
            "RANGE_OPTIMIZATION" => 4,
            "SEMIJOIN" | "SUBQUERY" => 5,
            "MERGE" | "DERIVED_CONDITION_PUSHDOWN" => 6,
            "JOIN_ORDER" | "JOIN_PREFIX" | "JOIN_SUFFIX" | "JOIN_FIXED_ORDER" => 7,
            _ => INDEX_LISTS,
        }
    }

    /// `label`: of its block, quoted.
    fn text(&self, label: &str) -> String {
        let Some(table) = &self.table else { return format!("{}(@{label}{})", self.name, self.of_block) };
        let indexes: Vec<String> = self.indexes.iter().map(|index| quoted(index)).collect();
        let space = if indexes.is_empty() { "" } else { " " };
        format!("{}({}@{label}{space}{})", self.name, quoted(table), indexes.join(", "))
    }
}

/// The rank of hints that have several indexes at once.
const INDEX_LISTS: u8 = 8;

#[derive(Default)]
struct Found<'b> {
    blocks: &'b [HintedBlock],
    /// Hints of the whole statement.
    statement: Vec<&'b OptimizerHint>,
    kept: Vec<Kept>,
    warnings: Vec<(u16, String)>,
    /// By the number of the block, as they come last: names are looked up from the outer query to the inner ones, those of joins at the end.
    unresolved: Vec<(u32, String)>,
    /// Positions of blocks by their names.
    names: Vec<(&'b str, usize)>,
    /// What was said already, of which block, table and index.
    seen: HashSet<(String, usize, String, String)>,
    /// What was said of the joins of a block.
    orderings: Vec<(usize, Ordering)>,
}

impl<'b> Found<'b> {
    fn judge(&mut self, at: usize, hint: &'b OptimizerHint) {
        let blocks = self.blocks;
        let argument = hint.args.first().map_or("", String::as_str);
        match hint.name.as_str() {
            "PQ" | "NO_PQ" => return self.statement.push(hint),
            "MAX_EXECUTION_TIME" => {
                if blocks[at].number != 1 {
                    self.warnings.push(misplaced_time());
                } else if !self.statement.iter().any(|known| known.name == hint.name) {
                    self.statement.push(hint);
                }
                return;
            }
            "RESOURCE_GROUP" => {
                if !RESOURCE_GROUPS.contains(&argument) {
                    self.warnings.push((NO_RESOURCE_GROUP, format!("Resource Group '{argument}' does not exist.")));
                }
                return;
            }
            "QB_NAME" => {
                if self.names.iter().any(|(name, block)| *name == argument || *block == at) {
                    self.warnings.push((IGNORED, format!("Hint QB_NAME({}) is ignored as conflicting/duplicated", quoted(argument))));
                } else {
                    self.names.push((argument, at));
                }
                return;
            }
            _ => {}
        }
        let Some(target) = self.block(hint.block.as_deref(), at, hint) else { return };
        if let Some(ordering) = Ordering::of(hint) {
            if self.orderings.iter().any(|(block, before)| *block == target && ordering.conflicts(*before)) {
                let tables: Vec<String> = hint.tables.iter().map(|table| quoted(&table.name) + &of_block(table.block.as_deref())).collect();
                self.ignore(hint, "", "", &tables.join(","));
                return;
            }
            self.orderings.push((target, ordering));
            let mut resolved = true;
            for table in &hint.tables {
                let target = match &table.block {
                    Some(name) => self.names.iter().find(|(known, _)| *known == name.as_str()).map(|(_, block)| *block),
                    None => Some(target),
                };
                if target.is_some_and(|target| !blocks[target].tables.iter().any(|(alias, _)| **alias == *table.name)) {
                    self.unresolved.push((u32::MAX, format!("Unresolved name {} for {} hint", quoted(&table.name), hint.name)));
                    resolved = false;
                }
            }
            if resolved {
                let tables: Vec<String> = hint.tables.iter().map(|table| quoted(&table.name) + &of_block(table.block.as_deref())).collect();
                let of_block = if ordering == Ordering::Fixed { String::new() } else { format!(" {}", tables.join(",")) };
                self.keep(hint, target, None, Vec::new(), of_block);
            }
            return;
        }
        let group = match hint.name.strip_prefix("NO_").unwrap_or(&hint.name) {
            // A block has one of them.
            "SEMIJOIN" | "SUBQUERY" => {
                let strategies = if hint.args.is_empty() { String::new() } else { format!(" {}", hint.args.join(", ")) };
                if !self.seen.insert(("SUBQUERY".to_string(), target, String::new(), String::new())) {
                    self.ignore(hint, "", "", &strategies);
                } else {
                    self.keep(hint, target, None, Vec::new(), strategies);
                }
                return;
            }
            group => group.to_string(),
        };
        if hint.tables.is_empty() {
            if self.seen.insert((group, target, String::new(), String::new())) {
                self.keep(hint, target, None, Vec::new(), String::new());
            } else {
                self.ignore(hint, "", "", "");
            }
            return;
        }
        for table in &hint.tables {
            let Some(target) = (match &table.block {
                Some(_) => self.block(table.block.as_deref(), at, hint),
                None => Some(target),
            }) else {
                continue;
            };
            let none = [String::new()];
            let indexes: &[String] = if hint.args.is_empty() { &none } else { &hint.args };
            let mut kept = Vec::new();
            for index in indexes {
                if !self.seen.insert((group.clone(), target, table.name.clone(), index.clone())) {
                    let shown = quoted(&table.name) + &of_block(table.block.as_deref());
                    self.ignore(hint, &shown, index, "");
                    continue;
                }
                let known = blocks[target].tables.iter().find(|(alias, _)| **alias == *table.name);
                let has_index = |of: &Arc<Table>| of.def().indexes.iter().any(|known| known.name.eq_ignore_ascii_case(index));
                let shown = match known {
                    None => String::new(),
                    Some((_, of)) if index.is_empty() || of.as_ref().is_some_and(has_index) => {
                        kept.push(index.clone());
                        continue;
                    }
                    Some(_) => format!(" {}", quoted(index)),
                };
                let label = self.label(target);
                let text = format!("Unresolved name {}@{}{shown} for {} hint", quoted(&table.name), quoted(&label), hint.name);
                self.unresolved.push((blocks[target].number, text));
            }
            // One hint for each index, but for those that choose among indexes.
            let lists = matches!(group.as_str(), "INDEX_MERGE" | "SKIP_SCAN") || group.ends_with("INDEX");
            if lists && !kept.is_empty() {
                kept.retain(|index| !index.is_empty());
                self.keep(hint, target, Some(&table.name), kept, String::new());
            } else {
                for index in kept {
                    let index = if index.is_empty() { Vec::new() } else { vec![index] };
                    self.keep(hint, target, Some(&table.name), index, String::new());
                }
            }
        }
    }

    fn keep(&mut self, hint: &OptimizerHint, block: usize, table: Option<&str>, indexes: Vec<String>, of_block: String) {
        self.kept.push(Kept { name: hint.name.clone(), block, table: table.map(str::to_string), indexes, of_block });
    }

    /// The position of the block that is meant; its own without a name. One that is not known warns.
    fn block(&mut self, name: Option<&str>, own: usize, hint: &OptimizerHint) -> Option<usize> {
        let Some(name) = name else { return Some(own) };
        let known = self.names.iter().find(|(known, _)| *known == name).map(|(_, block)| *block);
        if known.is_none() {
            self.warnings.push((UNKNOWN_BLOCK, format!("Query block name {} is not found for {} hint", quoted(name), hint.name)));
        }
        known
    }

    fn label(&self, block: usize) -> String {
        let named = self.names.iter().find(|(_, known)| *known == block).map(|(name, _)| (*name).to_string());
        named.unwrap_or_else(|| format!("select#{}", self.blocks[block].number))
    }

    /// `table` comes quoted, `index` does not.
    fn ignore(&mut self, hint: &OptimizerHint, table: &str, index: &str, behind: &str) {
        let index = if index.is_empty() { String::new() } else { format!(" {}", quoted(index)) };
        let block = of_block(hint.block.as_deref());
        self.warnings.push((IGNORED, format!("Hint {}({block}{table}{index} {behind}) is ignored as conflicting/duplicated", hint.name)));
    }
}

fn quoted(name: &str) -> String {
    crate::show::quote(name)
}

/// `@name`; empty without a name.
fn of_block(name: Option<&str>) -> String {
    name.map_or(String::new(), |name| format!("@{}", quoted(name)))
}
