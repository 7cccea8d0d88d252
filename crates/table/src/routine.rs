//! Stored routines: a body's text under a name. What the text means is for the layer above.

use std::time::SystemTime;

use highkey_types::{Charset, Collation, Str};

/// What kind of routine it is. Names of different kinds do not meet. Catalog records have the variants by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[allow(missing_docs)]
pub enum RoutineKind {
    Procedure,
    Function,
    /// Kept with its table, not among the routines of its schema.
    Trigger,
}

impl RoutineKind {
    /// Those that privileges are granted on.
    pub const GRANTED: [RoutineKind; 2] = [RoutineKind::Procedure, RoutineKind::Function];

    /// As errors and lists name it.
    pub fn name(self) -> &'static str {
        match self {
            RoutineKind::Procedure => "PROCEDURE",
            RoutineKind::Function => "FUNCTION",
            RoutineKind::Trigger => "TRIGGER",
        }
    }
}

/// What a routine says of the data it uses. Nobody holds it to that. Catalog records have the variants by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[allow(missing_docs)]
pub enum DataAccess {
    ContainsSql,
    NoSql,
    ReadsSqlData,
    ModifiesSqlData,
}

impl DataAccess {
    /// As it is written in a definition.
    pub fn name(self) -> &'static str {
        match self {
            DataAccess::ContainsSql => "CONTAINS SQL",
            DataAccess::NoSql => "NO SQL",
            DataAccess::ReadsSqlData => "READS SQL DATA",
            DataAccess::ModifiesSqlData => "MODIFIES SQL DATA",
        }
    }
}

/// A committed routine. Immutable: DDL makes a new one.
#[derive(Clone, Debug)]
pub struct RoutineDef {
    pub kind: RoutineKind,
    pub schema: Str,
    /// As it was written; it compares without case.
    pub name: Str,
    /// What was written between the parentheses.
    pub parameters: Str,
    /// The type behind RETURNS, as it was written; empty for a procedure.
    pub returns: Str,
    pub body: Str,
    pub data_access: DataAccess,
    pub deterministic: bool,
    /// SQL SECURITY INVOKER.
    pub invoker: bool,
    pub comment: Str,
    /// DEFINER: user and host.
    pub definer: (Str, Str),
    /// The bits of `sql_mode` when it was made.
    pub sql_mode: u64,
    /// `character_set_client` when it was made.
    pub charset: Charset,
    /// `collation_connection` when it was made: of its literals.
    pub collation: &'static Collation,
    /// The schema's collation when it was made: of its variables.
    pub schema_collation: &'static Collation,
    pub created_at: SystemTime,
    pub altered_at: SystemTime,
}
