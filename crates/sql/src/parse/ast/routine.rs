//! Stored routines: their definitions, what their bodies come to, and conditions.

use std::ops::Range;

use highkey_table::{DataAccess, RoutineKind, TriggerEvent, TriggerPlace, TriggerTime};
use highkey_types::SqlState;

use super::{DataType, Expr, ObjectName, SetVarHint, Statement, UserName};

/// CREATE PROCEDURE and CREATE FUNCTION.
#[derive(Debug, Clone)]
pub struct CreateRoutine {
    /// Which of them.
    pub kind: RoutineKind,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// DEFINER.
    pub definer: Option<UserName>,
    /// Its name.
    pub name: ObjectName,
    /// The text between the parentheses.
    pub parameters: String,
    /// The text of the type behind RETURNS; empty for a procedure.
    pub returns: String,
    /// What is said of it.
    pub characteristics: Characteristics,
    /// The text of the body.
    pub body: String,
    /// What the body comes to.
    pub program: Program,
}

/// CREATE TRIGGER.
#[derive(Debug, Clone)]
pub struct CreateTrigger {
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// DEFINER.
    pub definer: Option<UserName>,
    /// Its name.
    pub name: ObjectName,
    /// BEFORE or AFTER.
    pub time: TriggerTime,
    /// INSERT, UPDATE or DELETE.
    pub event: TriggerEvent,
    /// Whose rows it is for.
    pub table: ObjectName,
    /// FOLLOWS and PRECEDES.
    pub place: TriggerPlace,
    /// The text of the body.
    pub body: String,
    /// What the body comes to.
    pub program: Program,
}

/// What a definition says of a routine, as far as it says something.
#[derive(Debug, Clone, Default)]
pub struct Characteristics {
    /// CONTAINS SQL and its like.
    pub data_access: Option<DataAccess>,
    /// [NOT] DETERMINISTIC.
    pub deterministic: Option<bool>,
    /// SQL SECURITY: INVOKER or DEFINER.
    pub invoker: Option<bool>,
    /// COMMENT.
    pub comment: Option<String>,
}

/// CALL.
#[derive(Debug, Clone)]
pub struct Call {
    /// The procedure.
    pub name: ObjectName,
    /// The arguments.
    pub args: Vec<Expr>,
}

/// The body of a routine as steps that follow each other, and what they name.
#[derive(Debug, Clone, Default)]
pub struct Program {
    /// The parameters: they are the first of the variables.
    pub parameters: Vec<ParameterMode>,
    /// What a function returns.
    pub returns: Option<DataType>,
    /// All variables, wherever they are declared.
    pub variables: Vec<Variable>,
    /// The steps.
    pub steps: Vec<Step>,
    /// The blocks and the bodies of handlers. The first is the routine itself.
    pub scopes: Vec<BlockScope>,
    /// All handlers.
    pub handlers: Vec<Handler>,
    /// The queries of all cursors.
    pub cursors: Vec<RoutineStatement>,
    /// Of a trigger: the variables that are columns of its row.
    pub row_columns: Vec<RowColumn>,
    /// Of a function: it takes the session to run it, since it changes tables, calls procedures, sets variables of the session or names a variable in LIMIT.
    pub in_session: bool,
    /// Of a function: it changes tables, or calls procedures, which may.
    pub changes: bool,
}

impl Program {
    /// The variable may be given another value: it is no column of a row that stays as it is.
    pub fn assigns(&self, variable: usize) -> bool {
        self.row_columns.iter().all(|column| column.variable != variable || column.assignable)
    }
}

/// NEW.column or OLD.column in a trigger.
#[derive(Debug, Clone)]
pub struct RowColumn {
    /// The variable that stands for it.
    pub variable: usize,
    /// NEW.
    pub new: bool,
    /// The column.
    pub column: String,
    /// It may be given another value: NEW of a BEFORE trigger.
    pub assignable: bool,
    /// SET gives it one.
    pub assigned: bool,
    /// Its value is asked.
    pub read: bool,
}

/// IN, OUT or INOUT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ParameterMode {
    In,
    Out,
    InOut,
}

/// A variable or parameter of a routine.
#[derive(Debug, Clone)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its type; `None`: that of whatever it is given (the operand of CASE).
    pub ty: Option<DataType>,
}

/// One step of a routine.
#[derive(Debug, Clone)]
pub struct Step {
    /// What it does.
    pub instruction: Instruction,
    /// The scope that it stands in, by number: the handlers of that one and of those around it are for it.
    pub scope: usize,
}

/// A scope of names and handlers.
#[derive(Debug, Clone)]
pub struct BlockScope {
    /// The one around it.
    pub parent: Option<usize>,
    /// It is the body of a handler: those declared beside it are not for it.
    pub of_handler: bool,
    /// The handlers declared in it, by number.
    pub handlers: Vec<usize>,
}

/// DECLARE … HANDLER.
#[derive(Debug, Clone)]
pub struct Handler {
    /// What it is for.
    pub conditions: Vec<HandledCondition>,
    /// The first step of its body.
    pub first: usize,
}

/// What a handler is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandledCondition {
    /// An error's number.
    Code(u16),
    /// SQLSTATE.
    State(SqlState),
    /// SQLWARNING.
    Warning,
    /// NOT FOUND.
    NotFound,
    /// SQLEXCEPTION.
    Exception,
}

/// What a step does. Steps are named by their numbers.
#[derive(Debug, Clone)]
pub enum Instruction {
    /// A statement like those outside of routines.
    Run(Box<RoutineStatement>),
    /// A query whose row goes into variables, some of the routine's among them. The statement is without INTO.
    SelectInto { query: Box<RoutineStatement>, into: Vec<Target> },
    /// SET and DECLARE … DEFAULT. `resume`: where a CONTINUE handler goes on, if not behind it.
    Set { variable: usize, value: Box<RoutineExpr>, resume: Option<usize> },
    /// Goes on at `to` unless the condition is true. `resume`: where a CONTINUE handler goes on.
    JumpUnless { condition: Box<RoutineExpr>, to: usize, resume: usize },
    /// RETURN: the end of a function.
    Return(Box<RoutineExpr>),
    /// Goes on there.
    Jump(usize),
    /// A handler is in force from here on; its body, up to `after`, is left out.
    Declare { handler: usize, after: usize },
    /// The end of a handler's body. `to`: where EXIT goes on; CONTINUE goes on behind what it was for.
    EndHandler { to: Option<usize> },
    /// Blocks are left: these handlers and cursors are no more.
    Leave { handlers: Range<usize>, cursors: Range<usize> },
    /// OPEN.
    Open(usize),
    /// FETCH.
    Fetch { cursor: usize, into: Vec<usize> },
    /// CLOSE.
    Close(usize),
    /// CASE without ELSE, and nothing of it fits.
    CaseNotFound,
}

/// A statement in a routine. Its parameters are variables of the routine.
#[derive(Debug, Clone)]
pub struct RoutineStatement {
    /// The statement.
    pub statement: Statement,
    /// Its text.
    pub text: String,
    /// The variable that each parameter is.
    pub locals: Vec<usize>,
    /// Its SET_VAR hints, as those of `Parsed`.
    pub set_vars: Vec<Result<SetVarHint, String>>,
}

/// An expression in a routine. Its parameters are variables of the routine.
#[derive(Debug, Clone)]
pub struct RoutineExpr {
    /// The expression.
    pub expr: Expr,
    /// The variable that each parameter is.
    pub locals: Vec<usize>,
}

/// What a value goes into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// `@name`, without the sign.
    User(String),
    /// A variable of the routine.
    Local(usize),
}

/// SIGNAL and RESIGNAL.
#[derive(Debug, Clone)]
pub struct Signal {
    /// RESIGNAL.
    pub again: bool,
    /// The condition; RESIGNAL may do without.
    pub state: Option<SqlState>,
    /// SET.
    pub items: Vec<(ConditionItem, Expr)>,
}

/// GET DIAGNOSTICS.
#[derive(Debug, Clone)]
pub struct GetDiagnostics {
    /// STACKED: of the condition that the handler runs for.
    pub stacked: bool,
    /// What is asked.
    pub information: Information,
}

/// What GET DIAGNOSTICS asks.
#[derive(Debug, Clone)]
pub enum Information {
    /// Of the statement.
    Statement(Vec<(Target, StatementItem)>),
    /// Of one condition, counted from 1.
    Condition { number: Expr, items: Vec<(Target, ConditionItem)> },
}

/// What is known of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum StatementItem {
    Number,
    RowCount,
}

/// What is known of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ConditionItem {
    ClassOrigin,
    SubclassOrigin,
    ConstraintCatalog,
    ConstraintSchema,
    ConstraintName,
    CatalogName,
    SchemaName,
    TableName,
    ColumnName,
    CursorName,
    MessageText,
    MysqlErrno,
    ReturnedSqlstate,
}

impl ConditionItem {
    /// All that SIGNAL can set, and RETURNED_SQLSTATE.
    pub const ALL: [ConditionItem; 13] = [
        ConditionItem::ClassOrigin,
        ConditionItem::SubclassOrigin,
        ConditionItem::ConstraintCatalog,
        ConditionItem::ConstraintSchema,
        ConditionItem::ConstraintName,
        ConditionItem::CatalogName,
        ConditionItem::SchemaName,
        ConditionItem::TableName,
        ConditionItem::ColumnName,
        ConditionItem::CursorName,
        ConditionItem::MessageText,
        ConditionItem::MysqlErrno,
        ConditionItem::ReturnedSqlstate,
    ];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            ConditionItem::ClassOrigin => "CLASS_ORIGIN",
            ConditionItem::SubclassOrigin => "SUBCLASS_ORIGIN",
            ConditionItem::ConstraintCatalog => "CONSTRAINT_CATALOG",
            ConditionItem::ConstraintSchema => "CONSTRAINT_SCHEMA",
            ConditionItem::ConstraintName => "CONSTRAINT_NAME",
            ConditionItem::CatalogName => "CATALOG_NAME",
            ConditionItem::SchemaName => "SCHEMA_NAME",
            ConditionItem::TableName => "TABLE_NAME",
            ConditionItem::ColumnName => "COLUMN_NAME",
            ConditionItem::CursorName => "CURSOR_NAME",
            ConditionItem::MessageText => "MESSAGE_TEXT",
            ConditionItem::MysqlErrno => "MYSQL_ERRNO",
            ConditionItem::ReturnedSqlstate => "RETURNED_SQLSTATE",
        }
    }
}
