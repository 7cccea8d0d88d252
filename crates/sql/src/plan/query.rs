//! A bound query with what surrounds its plan.

use std::sync::Arc;

use highkey_table::View;

use super::{Field, Rel};
use crate::parse::ast::FileFormat;
use highkey_types::Str;

/// A query ready to run.
#[derive(Debug, Clone)]
pub struct BoundQuery {
    /// The plan; `rel.fields` are the result set's columns.
    pub rel: Rel,
    /// Hints of its first SELECT.
    pub hints: Hints,
    /// INTO.
    pub into: Option<IntoTarget>,
    /// The views that it reads through.
    pub views: Vec<Arc<View>>,
    /// Some scan locks rows.
    pub locking: bool,
    /// SQL_CALC_FOUND_ROWS: FOUND_ROWS() counts without the LIMIT, which is then the root of `rel`.
    pub calc_found_rows: bool,
    /// The order of its rows is seen, though nothing may ask for one: INSERT … SELECT gives out numbers in it.
    pub ordered: bool,
}

impl BoundQuery {
    /// The result set's columns.
    pub fn fields(&self) -> &[Field] {
        &self.rel.fields
    }
}

/// Where SELECT … INTO puts the rows.
#[derive(Debug, Clone)]
pub enum IntoTarget {
    /// A file of lines.
    Outfile { path: String, charset: Option<String>, format: FileFormat },
    /// A file of one row without any format.
    Dumpfile(String),
    /// User variables, names in lower case.
    Variables(Vec<Str>),
}

/// Optimizer hints that mean something here.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hints {
    /// PQ and NO_PQ.
    pub pq: PqHint,
    /// MAX_EXECUTION_TIME(ms).
    pub max_execution_time_ms: Option<u64>,
    /// Warnings to raise, by code: a hint that is malformed, unknown or about nothing is ignored (3126, 3128).
    pub warnings: Vec<(u16, String)>,
}

/// What PQ hints ask for. NO_PQ wins over PQ.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum PqHint {
    /// Nothing was asked.
    #[default]
    Unset,
    /// NO_PQ.
    Off,
    /// PQ, PQ(n), PQ(table n): workers (`None`: the default) and the tables whose scans are divided; none stands for all.
    On { workers: Option<u32>, tables: Vec<String> },
}

impl PqHint {
    /// Workers are asked for to read this table.
    pub fn shares(&self, alias: &str) -> bool {
        matches!(self, PqHint::On { workers, .. } if workers.is_none_or(|workers| workers > 1)) && self.divides(alias)
    }

    /// The scan of this table may be divided among workers.
    pub fn divides(&self, alias: &str) -> bool {
        match self {
            PqHint::On { tables, .. } => tables.is_empty() || tables.iter().any(|table| table == alias),
            _ => true,
        }
    }
}
