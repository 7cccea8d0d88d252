//! HANDLER.

use super::{Expr, Limit, ObjectName};

/// A HANDLER statement.
#[derive(Debug, Clone)]
pub enum HandlerStatement {
    /// HANDLER table OPEN [[AS] alias].
    Open { table: ObjectName, alias: Option<String> },
    /// HANDLER name READ.
    Read(Box<HandlerRead>),
    /// HANDLER name CLOSE.
    Close(String),
}

/// What HANDLER … READ reads.
#[derive(Debug, Clone)]
pub struct HandlerRead {
    /// The handler's name: the alias, or the table's name.
    pub name: String,
    /// By this index; `None`: in the table's own order.
    pub index: Option<String>,
    /// Where it begins, and in which direction it goes on.
    pub step: HandlerStep,
    /// WHERE.
    pub condition: Option<Expr>,
    /// LIMIT; one row without.
    pub limit: Option<Limit>,
}

/// Where a READ begins.
#[derive(Debug, Clone)]
pub enum HandlerStep {
    First,
    Next,
    Previous,
    Last,
    /// With rows whose first columns of the index compare so.
    Key(HandlerComparison, Vec<Expr>),
}

/// How the columns of an index compare with values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandlerComparison {
    Equal,
    AtLeast,
    Above,
    AtMost,
    Below,
}
