//! The abstract syntax of MySQL statements, as the parser hands them to the binder and to the session.
//!
//! Names are kept as written; expressions keep the byte span of their source text, because MySQL names result columns by it.

mod admin;
mod ddl;
mod dml;
mod event;
mod expr;
mod handler;
mod query;
mod replica;
mod routine;
mod xa;

use highkey_table::RoutineKind;

pub use admin::*;
pub use ddl::*;
pub use dml::*;
pub use event::*;
pub use expr::*;
pub use handler::*;
pub use query::*;
pub use replica::*;
pub use routine::*;
pub use xa::*;

/// A possibly qualified name of a table, index or routine: `[schema.]name`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ObjectName {
    /// The schema, when the statement names one.
    pub schema: Option<String>,
    /// The name itself, unquoted.
    pub name: String,
}

impl std::fmt::Display for ObjectName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.schema {
            Some(schema) => write!(f, "{schema}.{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// Programs that MySQL stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum StoredProgram {
    Procedure,
    Function,
    Trigger,
    Event,
}

/// One statement of the MySQL language.
#[derive(Debug, Clone)]
pub enum Statement {
    /// Only comments, which is answered OK, or only white space: error 1065.
    Empty { comment: bool },
    /// SELECT, TABLE, VALUES, WITH … and set operations of them.
    Query(Box<Query>),
    /// `DO expr, …`: evaluates and discards.
    Do(Vec<Expr>),
    /// INSERT and REPLACE.
    Insert(Box<Insert>),
    /// UPDATE of one or several tables.
    Update(Box<Update>),
    /// DELETE from one or several tables.
    Delete(Box<Delete>),
    /// LOAD DATA [LOCAL] INFILE.
    LoadData(Box<LoadData>),
    /// CREATE TABLE in its three forms.
    CreateTable(Box<CreateTable>),
    /// CREATE VIEW and ALTER VIEW.
    CreateView(Box<CreateView>),
    /// ALTER TABLE.
    AlterTable(Box<AlterTable>),
    /// DROP TABLE.
    DropTable(DropTable),
    /// RENAME TABLE a TO b, …
    RenameTable(Vec<(ObjectName, ObjectName)>),
    /// TRUNCATE [TABLE].
    TruncateTable(ObjectName),
    /// CREATE [UNIQUE] INDEX.
    CreateIndex(Box<CreateIndex>),
    /// DROP INDEX name ON table.
    DropIndex { name: String, table: ObjectName },
    /// CREATE DATABASE.
    CreateDatabase { if_not_exists: bool, name: String, options: DatabaseOptions },
    /// ALTER DATABASE; without a name it means the current one.
    AlterDatabase { name: Option<String>, options: DatabaseOptions },
    /// DROP DATABASE.
    DropDatabase { if_exists: bool, name: String },
    /// CREATE USER.
    CreateUser { if_not_exists: bool, users: Vec<UserSpec>, options: UserOptions },
    /// ALTER USER.
    AlterUser { if_exists: bool, users: Vec<UserSpec>, options: UserOptions },
    /// DROP USER.
    DropUser { if_exists: bool, users: Vec<UserName> },
    /// CREATE ROLE.
    CreateRole { if_not_exists: bool, roles: Vec<UserName> },
    /// DROP ROLE.
    DropRole { if_exists: bool, roles: Vec<UserName> },
    /// SET ROLE.
    SetRole(RoleChoice),
    /// SET DEFAULT ROLE, ALTER USER … DEFAULT ROLE.
    SetDefaultRole { roles: RoleChoice, users: Vec<UserName> },
    /// CREATE PROCEDURE and CREATE FUNCTION.
    CreateRoutine(Box<CreateRoutine>),
    /// CREATE TRIGGER.
    CreateTrigger(Box<CreateTrigger>),
    /// ALTER PROCEDURE and ALTER FUNCTION.
    AlterRoutine { kind: RoutineKind, name: ObjectName, characteristics: Characteristics },
    /// CALL.
    Call(Box<Call>),
    /// SIGNAL and RESIGNAL.
    Signal(Box<Signal>),
    /// GET DIAGNOSTICS.
    GetDiagnostics(Box<GetDiagnostics>),
    /// CREATE EVENT.
    CreateEvent(Box<CreateEvent>),
    /// ALTER EVENT.
    AlterEvent(Box<AlterEvent>),
    /// DROP PROCEDURE, FUNCTION, TRIGGER or EVENT.
    DropProgram { kind: StoredProgram, if_exists: bool, name: ObjectName },
    /// RENAME USER a TO b, …
    RenameUser(Vec<(UserName, UserName)>),
    /// SET PASSWORD [FOR user] = 'text'; without a user it means the connection's own.
    SetPassword { user: Option<UserName>, password: String },
    /// GRANT.
    Grant(Box<Grant>),
    /// REVOKE.
    Revoke(Box<Grant>),
    /// BEGIN and START TRANSACTION.
    Begin { consistent_snapshot: bool, access: Option<AccessMode> },
    /// COMMIT.
    Commit { chain: bool, release: bool },
    /// ROLLBACK of the whole transaction.
    Rollback { chain: bool, release: bool },
    /// SAVEPOINT name.
    Savepoint(String),
    /// ROLLBACK TO [SAVEPOINT] name.
    RollbackTo(String),
    /// RELEASE SAVEPOINT name.
    ReleaseSavepoint(String),
    /// XA ….
    Xa(XaStatement),
    /// INSTALL PLUGIN and UNINSTALL PLUGIN.
    Plugin { install: bool, name: String },
    /// BINLOG: events of a binary log in base64.
    Binlog(BinlogText),
    /// HANDLER.
    Handler(HandlerStatement),
    /// LOCK TABLES.
    LockTables(Vec<TableLock>),
    /// UNLOCK TABLES.
    UnlockTables,
    /// LOCK INSTANCE FOR BACKUP.
    LockInstance,
    /// UNLOCK INSTANCE.
    UnlockInstance,
    /// USE name.
    Use(String),
    /// SET of variables, NAMES, CHARACTER SET and TRANSACTION, in the order written.
    Set(Vec<SetItem>),
    /// PREPARE name FROM text.
    Prepare { name: String, source: PrepareSource },
    /// EXECUTE name USING @a, … (names without the sign).
    Execute { name: String, using: Vec<String> },
    /// DEALLOCATE PREPARE name.
    Deallocate(String),
    /// SHOW in all its forms.
    Show(Box<Show>),
    /// DESCRIBE table [column or pattern].
    Describe { table: ObjectName, column: Option<String> },
    /// EXPLAIN of a statement.
    Explain { format: ExplainFormat, analyze: bool, statement: Box<Statement> },
    /// EXPLAIN of what a connection runs.
    ExplainConnection { format: ExplainFormat, id: u64 },
    /// KILL; the id is an expression.
    Kill { query_only: bool, id: Expr },
    /// FLUSH.
    Flush(Vec<Flush>),
    /// CHECK, ANALYZE, OPTIMIZE, REPAIR and CHECKSUM TABLE.
    Maintain { operation: Maintenance, tables: Vec<ObjectName>, options: Vec<String> },
    /// ANALYZE TABLE … UPDATE HISTOGRAM, or … DROP HISTOGRAM.
    Histogram(HistogramChange),
    /// SHUTDOWN.
    Shutdown,
    /// RESET of something that there is not.
    Reset,
    /// PURGE BINARY LOGS TO 'name'.
    PurgeBinaryLogsTo(String),
    /// PURGE BINARY LOGS BEFORE datetime.
    PurgeBinaryLogsBefore(Expr),
    /// RESET MASTER, RESET BINARY LOGS AND GTIDS; `TO` the number of the first file.
    ResetBinaryLogs { first: u64 },
    /// CHANGE REPLICATION …, START, STOP and RESET REPLICA.
    Replica(Box<ReplicaStatement>),
}
