//! Statements about the session, users and the server.

use highkey_table::RoutineKind;

use super::{Expr, ObjectName};

/// Scopes of system variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum VariableScope {
    Global,
    Session,
    Persist,
    PersistOnly,
}

/// READ WRITE or READ ONLY.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum AccessMode {
    ReadWrite,
    ReadOnly,
}

/// Isolation levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum IsolationLevel {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// The value of SET variable = value.
#[derive(Debug, Clone)]
pub enum SetValue {
    /// DEFAULT.
    Default,
    /// An expression.
    Expr(Expr),
    /// A bare word such as ON, utf8mb4, ALL, BINARY: MySQL takes it as a string.
    Word(String),
}

/// One element of SET.
#[derive(Debug, Clone)]
pub enum SetItem {
    /// `[GLOBAL|SESSION|@@…] name = value`; without a scope it is SESSION.
    System { scope: Option<VariableScope>, name: String, value: SetValue },
    /// `@name = value`.
    User { name: String, value: Expr },
    /// SET NAMES charset [COLLATE collation]; `None` is DEFAULT.
    Names { charset: Option<String>, collation: Option<String> },
    /// SET CHARACTER SET charset; `None` is DEFAULT.
    CharacterSet(Option<String>),
    /// SET [GLOBAL|SESSION] TRANSACTION …; without a scope it is for the next transaction only.
    Transaction { scope: Option<VariableScope>, isolation: Option<IsolationLevel>, access: Option<AccessMode> },
}

/// 'user'@'host'; the host is `%` if not written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserName {
    /// CURRENT_USER() was written.
    pub current: bool,
    /// User part.
    pub user: String,
    /// Host part.
    pub host: String,
}

/// A user of CREATE or ALTER USER with its authentication.
#[derive(Debug, Clone)]
pub struct UserSpec {
    /// The user.
    pub name: UserName,
    /// IDENTIFIED WITH plugin.
    pub plugin: Option<String>,
    /// BY 'password'.
    pub password: Option<String>,
    /// AS 'authentication string'.
    pub hash: Option<Vec<u8>>,
    /// RANDOM PASSWORD.
    pub random_password: bool,
}

/// What follows the users of CREATE and ALTER USER.
#[derive(Debug, Clone, Default)]
pub struct UserOptions {
    /// ACCOUNT LOCK (true) or UNLOCK.
    pub account_lock: Option<bool>,
    /// PASSWORD EXPIRE.
    pub password_expire: bool,
    /// DEFAULT ROLE of CREATE USER.
    pub default_roles: Vec<UserName>,
    /// What follows REQUIRE, as it is written, words in upper case (NONE, SSL, X509 …).
    pub require: Vec<String>,
    /// Everything else that is an option, written the same way: kept for a note.
    pub other: Vec<String>,
}

/// A privilege of GRANT or REVOKE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantedPrivilege {
    /// Its name in upper case, with one space between words.
    pub name: String,
    /// The columns that it is for; empty: all that there are.
    pub columns: Vec<String>,
}

/// Which of an account's roles SET ROLE and SET DEFAULT ROLE mean.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum RoleChoice {
    None,
    All,
    AllExcept(Vec<UserName>),
    Default,
    These(Vec<UserName>),
}

/// GRANT and REVOKE.
#[derive(Debug, Clone)]
pub struct Grant {
    /// Privileges; none where roles are granted.
    pub privileges: Vec<GrantedPrivilege>,
    /// Roles; none where privileges are granted.
    pub roles: Vec<UserName>,
    /// ON: schema (`None` is `*`) and table (`None` is `*`).
    pub on: Option<(Option<String>, Option<String>)>,
    /// PROXY ON: the account as which one may act.
    pub proxied: Option<UserName>,
    /// ON PROCEDURE, ON FUNCTION: what `on` names is one.
    pub routine: Option<RoutineKind>,
    /// TO or FROM.
    pub users: Vec<UserName>,
    /// WITH GRANT OPTION (or ADMIN OPTION).
    pub grant_option: bool,
}

/// A table of LOCK TABLES.
#[derive(Debug, Clone)]
pub struct TableLock {
    /// The table.
    pub name: ObjectName,
    /// Under which name statements may use it; `None`: its own.
    pub alias: Option<String>,
    /// WRITE.
    pub write: bool,
    /// LOW_PRIORITY, which MySQL only warns of.
    pub low_priority: bool,
}

/// Text of PREPARE.
#[derive(Debug, Clone)]
pub enum PrepareSource {
    /// A string literal.
    Text(String),
    /// A user variable (without the sign).
    Variable(String),
}

/// Formats of EXPLAIN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ExplainFormat {
    Traditional,
    Json,
    Tree,
}

/// Verbs of table maintenance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Maintenance {
    Check,
    Analyze,
    Optimize,
    Repair,
    Checksum,
}

/// ANALYZE [LOCAL] TABLE … UPDATE HISTOGRAM ON … [WITH n BUCKETS], or … DROP HISTOGRAM ON ….
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct HistogramChange {
    pub tables: Vec<ObjectName>,
    pub columns: Vec<String>,
    pub update: bool,
    pub buckets: Option<u64>,
    /// The binary log is not told.
    pub local: bool,
}

/// What FLUSH flushes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Flush {
    Privileges,
    Status,
    /// LOGS, with the kind in upper case (BINARY, ENGINE …).
    Logs(Option<String>),
    /// TABLES [names] [WITH READ LOCK | FOR EXPORT].
    Tables { names: Vec<ObjectName>, read_lock: bool, for_export: bool },
    /// HOSTS, USER_RESOURCES, OPTIMIZER_COSTS …
    Other(String),
}

/// LIKE or WHERE of SHOW.
#[derive(Debug, Clone)]
pub enum ShowFilter {
    /// LIKE 'pattern'.
    Like(String),
    /// WHERE over the columns of the answer.
    Where(Expr),
}

/// SHOW with its filter.
#[derive(Debug, Clone)]
pub struct Show {
    /// What to show.
    pub what: ShowWhat,
    /// LIKE or WHERE.
    pub filter: Option<ShowFilter>,
}

/// The forms of SHOW.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub enum ShowWhat {
    Databases,
    Tables { full: bool, schema: Option<String> },
    OpenTables { schema: Option<String> },
    TableStatus { schema: Option<String> },
    Columns { full: bool, table: ObjectName },
    Index { table: ObjectName },
    CreateTable(ObjectName),
    CreateView(ObjectName),
    CreateDatabase { if_not_exists: bool, name: String },
    CreateUser(UserName),
    /// PROCEDURE, FUNCTION, TRIGGER, EVENT.
    CreateOther { kind: String, name: ObjectName },
    Variables { scope: Option<VariableScope> },
    Status { scope: Option<VariableScope> },
    /// LIMIT: (offset, count).
    Warnings { count_only: bool, limit: Option<(u64, u64)> },
    Errors { count_only: bool, limit: Option<(u64, u64)> },
    ProcessList { full: bool },
    Engines,
    /// ENGINE name STATUS | MUTEX | LOGS.
    Engine { name: String, what: String },
    CharacterSet,
    Collation,
    /// `None` is the connection's own; USING names the roles that are taken for active.
    Grants { user: Option<UserName>, using: Vec<UserName> },
    Privileges,
    Plugins,
    Triggers { schema: Option<String> },
    Events { schema: Option<String> },
    ProcedureStatus,
    FunctionStatus,
    BinaryLogs,
    /// MASTER STATUS, BINARY LOG STATUS.
    BinaryLogStatus,
    /// IN file FROM position LIMIT (offset, count).
    BinlogEvents { file: Option<String>, from: Option<u64>, limit: Option<(u64, u64)> },
    /// IN, FROM and LIMIT are read, and forgotten.
    RelaylogEvents { channel: Option<String> },
    /// SLAVE STATUS, REPLICA STATUS.
    ReplicaStatus { old_names: bool, channel: Option<String> },
    Replicas,
    Profiles,
    Profile,
}

impl ShowWhat {
    /// MySQL answers it by a SELECT of its own, whose rows FOUND_ROWS() counts.
    pub fn is_query(&self) -> bool {
        use ShowWhat::*;
        matches!(
            self,
            Databases | Tables { .. } | OpenTables { .. } | TableStatus { .. } | Columns { .. } | Index { .. } | Variables { .. } | Status { .. } | Engines | CharacterSet | Collation
                | Plugins | Triggers { .. } | Events { .. } | ProcedureStatus | FunctionStatus | Warnings { count_only: true, .. } | Errors { count_only: true, .. }
        )
    }
}
