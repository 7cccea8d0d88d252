//! Statements: one file per kind. See `README.md`.

mod admin;
mod alter_table;
mod analyze;
mod answer;
mod auto_values;
mod cascade;
mod collation;
mod create_table;
mod ddl;
mod delete;
mod explain;
mod grants;
mod handler;
mod histogram;
mod inside;
mod insert;
mod insert_select;
mod inserter;
mod kept;
mod late;
mod lists;
mod load_data;
mod lock_joins;
mod locking;
mod maintain;
mod outfile;
mod parallel_insert;
mod partitions;
mod proxies;
mod query;
mod replica;
pub(crate) mod roles;
mod set;
mod subqueries;
mod table_spec;
mod target;
mod triggers;
mod update;
mod users;
pub(crate) mod view;

use std::pin::pin;

use highkey_table::RoutineKind;
use highkey_types::{MySqlError, errors};

use crate::parse::ast::{HandlerStatement, Maintenance, ReplicaAction, SetItem, ShowWhat, Statement, StoredProgram, UserSpec, VariableScope, XaStatement};
use crate::session::{ResultSink, Session, StatusCounter, TextFacts, error};
use crate::show;
use crate::sys;

pub(crate) use analyze::{counted, latch_name, wait_name};
pub use answer::{DiscardingSink, columns};
pub(crate) use answer::{FirstRows, defined_columns, empty_value};
pub use query::BoundTables;
pub(crate) use create_table::has_generated_key;
pub(crate) use delete::delete_tables;
pub(crate) use handler::Handlers;
pub(crate) use inside::rows_inside;
pub(crate) use insert::{insert_has_subquery, insert_tables};
pub use kept::KeptQueries;
pub(crate) use locking::{lock_mode, lock_policy, whole_key};
pub(crate) use query::{Destination, table_fields};
pub(crate) use subqueries::{answered, query_of};
pub(crate) use target::{Target, to_session};
pub(crate) use update::update_tables;

/// Why a statement failed.
#[derive(Debug)]
pub enum Failure {
    Sql(MySqlError),
    /// A bug of ours: the statement's transaction is not to be trusted any more.
    Panic(MySqlError),
    /// The client is gone.
    Io(std::io::Error),
}

impl Failure {
    /// What a panic's message becomes.
    pub fn panicked(cause: &(dyn std::any::Any + Send)) -> Failure {
        let text = cause.downcast_ref::<String>().map(String::as_str).or_else(|| cause.downcast_ref::<&str>().copied()).unwrap_or("no message");
        tracing::error!("a statement panicked: {text}");
        Failure::Panic(error::err(1815, format!("Internal error: {text}")))
    }
}

impl From<MySqlError> for Failure {
    fn from(e: MySqlError) -> Failure {
        Failure::Sql(e)
    }
}

impl From<std::io::Error> for Failure {
    fn from(e: std::io::Error) -> Failure {
        Failure::Io(e)
    }
}

/// What a statement that succeeded is answered with.
#[derive(Debug)]
pub enum Outcome {
    /// Columns and `count` rows have gone to the sink; the end is to follow. `found`: FOUND_ROWS() gives the count.
    Rows { count: u64, found: bool },
    /// Columns have gone to the sink, the rows wait for COM_STMT_FETCH.
    Cursor,
    /// An OK packet.
    Done { affected: u64, last_insert_id: u64, info: String },
}

impl Outcome {
    /// A plain OK.
    pub fn ok() -> Outcome {
        Outcome::Done { affected: 0, last_insert_id: 0, info: String::new() }
    }

    pub fn affected(affected: u64) -> Outcome {
        Outcome::Done { affected, last_insert_id: 0, info: String::new() }
    }
}

/// Statements about the conditions of the one before leave them as they are.
pub fn keeps_diagnostics(statement: &Statement) -> bool {
    match statement {
        Statement::Show(show) => matches!(show.what, ShowWhat::Warnings { .. } | ShowWhat::Errors { .. }),
        Statement::GetDiagnostics(_) => true,
        Statement::Signal(signal) => signal.again,
        _ => false,
    }
}

/// Queries whose rows go to the client and nowhere else.
pub fn only_reads(statement: &Statement) -> bool {
    matches!(statement, Statement::Query(query) if query.into.is_none())
}

/// What is shown to others of a statement that holds a password, in place of its text. (A word of it keeps the text from the digests, too.)
pub fn masked(statement: &Statement) -> Option<&'static str> {
    let given = |users: &[UserSpec]| users.iter().any(|user| user.password.is_some());
    match statement {
        Statement::CreateUser { users, .. } if given(users) => Some("CREATE USER ... IDENTIFIED BY <secret>"),
        Statement::AlterUser { users, .. } if given(users) => Some("ALTER USER ... IDENTIFIED BY <secret>"),
        Statement::SetPassword { .. } => Some("SET PASSWORD = <secret>"),
        Statement::Replica(replica) => match &replica.action {
            ReplicaAction::ChangeSource(_) => Some("CHANGE REPLICATION SOURCE TO ... SOURCE_PASSWORD = <secret>"),
            ReplicaAction::Start { login, .. } if !login.is_empty() => Some("START REPLICA ... PASSWORD = <secret>"),
            _ => None,
        },
        _ => None,
    }
}

/// Statements that end the session's transaction before they run. CREATE and DROP TEMPORARY TABLE do not, other definitions of temporary tables do.
fn commits_first(statement: &Statement) -> bool {
    use Statement::*;
    match statement {
        CreateTable(create) => !create.temporary,
        DropTable(drop) => !drop.temporary,
        CreateView(_) | AlterTable(_) | RenameTable(_) | TruncateTable(_) | CreateIndex(_) | DropIndex { .. } | CreateDatabase { .. } | AlterDatabase { .. } | DropDatabase { .. } => true,
        CreateUser { .. } | AlterUser { .. } | DropUser { .. } | DropProgram { .. } | RenameUser(_) | SetPassword { .. } | Grant(_) | Revoke(_) => true,
        CreateRoutine(_) | AlterRoutine { .. } | CreateTrigger(_) | CreateEvent(_) | AlterEvent(_) => true,
        CreateRole { .. } | DropRole { .. } | SetDefaultRole { .. } => true,
        LockTables(_) => true,
        Maintain { operation, .. } => matches!(operation, Maintenance::Analyze | Maintenance::Optimize | Maintenance::Repair | Maintenance::Check),
        Flush(_) | Reset | ResetBinaryLogs { .. } | Replica(_) | Histogram(_) => true,
        _ => false,
    }
}

/// Why a statement may not stand in a body that runs inside of another statement: it answers a result set (error 1415), ends the transaction (1422), or is
/// made when it runs (1336). `kind`: what the body is of.
pub(crate) fn refused_inside(statement: &Statement, kind: &str) -> Option<MySqlError> {
    use Statement::*;
    Some(match statement {
        Query(query) if query.into.is_none() => errors::sp_no_retset(kind),
        Show(_) | Describe { .. } | Explain { .. } | ExplainConnection { .. } | Maintain { .. } | Histogram(_) => errors::sp_no_retset(kind),
        Prepare { .. } | Execute { .. } | Deallocate(_) => errors::stmt_not_allowed_in_sf_or_trg("Dynamic SQL"),
        Flush(_) => errors::stmt_not_allowed_in_sf_or_trg("FLUSH"),
        Reset | ResetBinaryLogs { .. } => errors::stmt_not_allowed_in_sf_or_trg("RESET"),
        Set(items) if items.iter().any(sets_autocommit) => errors::sp_cant_set_autocommit(),
        SetPassword { .. } => errors::sp_cant_set_autocommit(),
        CreateTable(create) if create.temporary && kind == "function" => error::not_supported("CREATE TEMPORARY TABLE in a function"),
        DropTable(drop) if drop.temporary && kind == "function" => error::not_supported("DROP TEMPORARY TABLE in a function"),
        Savepoint(_) | RollbackTo(_) | ReleaseSavepoint(_) if kind == "function" => error::not_supported("savepoints in a function"),
        Begin { .. } | Commit { .. } | Rollback { .. } | Xa(_) | UnlockTables => errors::commit_not_allowed_in_sf_or_trg(),
        other if commits_first(other) => errors::commit_not_allowed_in_sf_or_trg(),
        _ => return None,
    })
}

fn sets_autocommit(item: &SetItem) -> bool {
    matches!(item, SetItem::System { scope, name, .. } if *scope != Some(VariableScope::Global) && name.eq_ignore_ascii_case("autocommit"))
}

/// DDL is refused where transactions are READ ONLY and by a read-only server.
fn is_definition(statement: &Statement) -> bool {
    use Statement::*;
    matches!(
        statement,
        CreateTable(_) | DropTable(_) | CreateView(_) | AlterTable(_) | RenameTable(_) | TruncateTable(_) | CreateIndex(_) | DropIndex { .. } | CreateDatabase { .. }
            | AlterDatabase { .. } | DropDatabase { .. } | CreateUser { .. } | AlterUser { .. } | DropUser { .. } | RenameUser(_) | SetPassword { .. } | Grant(_) | Revoke(_)
            | CreateRoutine(_) | AlterRoutine { .. } | DropProgram { kind: StoredProgram::Procedure | StoredProgram::Function, .. }
            | CreateTrigger(_) | DropProgram { kind: StoredProgram::Trigger, .. }
            | CreateEvent(_) | AlterEvent(_) | DropProgram { kind: StoredProgram::Event, .. }
            | CreateRole { .. } | DropRole { .. } | SetDefaultRole { .. }
    )
}

/// As in MySQL: a server that is read-only refuses these once it is known that they would change something.
fn looks_first(statement: &Statement) -> bool {
    use Statement::*;
    match statement {
        CreateEvent(_) | AlterEvent(_) => true,
        DropProgram { kind, .. } => matches!(kind, StoredProgram::Event | StoredProgram::Procedure | StoredProgram::Function),
        _ => false,
    }
}

impl Session {
    /// Runs a statement.
    pub(crate) async fn dispatch(&mut self, statement: &Statement, sink: &mut dyn ResultSink) -> Result<Outcome, Failure> {
        if let Statement::CreateTrigger(create) = statement {
            crate::routine::check_body(&create.program)?;
        }
        self.check_password(statement)?;
        self.check_privileges(statement)?;
        let commits = commits_first(statement);
        self.check_xa(statement, commits)?;
        if self.check_gtid(statement, commits)? {
            return Ok(Outcome::ok());
        }
        self.text_facts = if commits { TextFacts::of(statement, self.state.database.as_ref()) } else { TextFacts::default() };
        if commits {
            let temporary = self.defines_temporary(statement);
            if is_definition(statement) && !temporary && !looks_first(statement) {
                self.check_server_writable()?;
            }
            // READ ONLY of the transaction that it ends is over then; that of the session is not.
            self.implicit_commit().await?;
            self.forget_next_transaction();
            if is_definition(statement) {
                self.check_transaction_writable()?;
                if !temporary {
                    self.check_definition(statement)?;
                    self.begin_definition_change().await?;
                }
            }
        }
        self.count_statement(statement);
        if is_definition(statement) {
            self.handlers.note_definition();
        }
        if sys::is_restore(&self.state, statement) {
            let e = errors::no_system_schema_access(sys::SCHEMA);
            self.state.note(e.code, e.message);
            return Ok(Outcome::ok());
        }
        let instance = self.state.instance.clone();
        let admission = self.admission(&instance);
        match statement {
            Statement::Empty { comment: false } => Err(error::empty_query().into()),
            Statement::Empty { comment: true } => Ok(Outcome::ok()),
            Statement::Query(query) => admission.run(pin!(self.query(query, sink))).await,
            Statement::Do(exprs) => self.do_exprs(exprs).await,
            Statement::Insert(insert) => admission.run(pin!(self.insert(insert))).await,
            Statement::Update(update) => admission.run(pin!(self.update(update))).await,
            Statement::Delete(delete) => admission.run(pin!(self.delete(delete))).await,
            Statement::LoadData(load) => admission.run(pin!(self.load_data(load, sink))).await,
            Statement::CreateTable(create) => self.create_table(create).await,
            Statement::CreateView(view) => self.create_view(view).await,
            Statement::AlterTable(alter) => self.alter_table(alter, sink).await,
            Statement::DropTable(drop) => self.drop_table(drop).await,
            Statement::RenameTable(renames) => {
                self.close_renamed_handlers(renames);
                self.rename_table(renames).await
            }
            Statement::TruncateTable(name) => self.truncate_table(name).await,
            Statement::CreateIndex(create) => self.create_index(create).await,
            Statement::DropIndex { name, table } => self.drop_index(name, table).await,
            Statement::CreateDatabase { if_not_exists, name, options } => self.create_database(*if_not_exists, name, options).await,
            Statement::AlterDatabase { name, options } => self.alter_database(name.as_deref(), options).await,
            Statement::DropDatabase { if_exists, name } => self.drop_database(*if_exists, name).await,
            Statement::CreateUser { if_not_exists, users, options } => self.create_user(*if_not_exists, users, options).await,
            Statement::AlterUser { if_exists, users, options } => self.alter_user(*if_exists, users, options).await,
            Statement::DropUser { if_exists, users } => self.drop_user("USER", *if_exists, users).await,
            Statement::CreateRole { if_not_exists, roles } => self.create_role(*if_not_exists, roles).await,
            Statement::DropRole { if_exists, roles } => self.drop_user("ROLE", *if_exists, roles).await,
            Statement::SetRole(choice) => self.set_role(choice),
            Statement::SetDefaultRole { roles, users } => self.set_default_role(roles, users).await,
            Statement::CreateRoutine(create) => self.create_routine(create).await,
            Statement::AlterRoutine { kind, name, characteristics } => self.alter_routine(*kind, name, characteristics).await,
            Statement::DropProgram { kind: StoredProgram::Procedure, if_exists, name } => self.drop_routine(RoutineKind::Procedure, *if_exists, name).await,
            Statement::DropProgram { kind: StoredProgram::Function, if_exists, name } => self.drop_routine(RoutineKind::Function, *if_exists, name).await,
            Statement::CreateTrigger(create) => self.create_trigger(create).await,
            Statement::DropProgram { kind: StoredProgram::Trigger, if_exists, name } => self.drop_trigger(*if_exists, name).await,
            Statement::CreateEvent(create) => self.create_event(create).await,
            Statement::AlterEvent(alter) => self.alter_event(alter).await,
            Statement::DropProgram { kind: StoredProgram::Event, if_exists, name } => self.drop_event(*if_exists, name).await,
            Statement::Call(call) => self.call(call, sink).await,
            Statement::Signal(signal) => self.signal(signal).await,
            Statement::GetDiagnostics(get) => self.get_diagnostics(get).await,
            Statement::RenameUser(renames) => self.rename_user(renames).await,
            Statement::SetPassword { user, password } => self.set_password(user.as_ref(), password).await,
            Statement::Grant(grant) => self.grant(grant, true).await,
            Statement::Revoke(grant) => self.grant(grant, false).await,
            Statement::Begin { consistent_snapshot, access } => {
                self.begin(*consistent_snapshot, *access).await?;
                Ok(Outcome::ok())
            }
            Statement::Commit { chain, release } => self.end(true, *chain, *release).await,
            Statement::Rollback { chain, release } => self.end(false, *chain, *release).await,
            Statement::Savepoint(name) => {
                self.savepoint(name);
                Ok(Outcome::ok())
            }
            Statement::RollbackTo(name) if self.routines.is_nested() => {
                self.rollback_nested_to(name)?;
                Ok(Outcome::ok())
            }
            Statement::RollbackTo(name) => {
                self.rollback_to(name).await?;
                Ok(Outcome::ok())
            }
            Statement::ReleaseSavepoint(name) => {
                self.release_savepoint(name)?;
                Ok(Outcome::ok())
            }
            Statement::Xa(statement) => self.xa(statement, sink).await,
            Statement::Binlog(text) => self.binlog(text).await,
            Statement::Plugin { install, name } => self.plugin(*install, name),
            Statement::Handler(statement) => self.handler(statement, sink).await,
            Statement::LockTables(locks) => self.lock_tables(locks).await,
            Statement::UnlockTables => self.unlock().await,
            Statement::LockInstance => self.lock_instance().await,
            Statement::UnlockInstance => {
                self.state.locks.unlock_instance();
                Ok(Outcome::ok())
            }
            Statement::Use(name) => {
                self.use_database(name)?;
                Ok(Outcome::ok())
            }
            Statement::Set(items) => self.set(items).await,
            Statement::Prepare { name, source } => self.prepare_named(name, source).await,
            Statement::Execute { name, using } => self.execute_named(name, using, sink).await,
            Statement::Deallocate(name) => self.deallocate(name),
            Statement::Show(show) => {
                let answer = show::show(&mut self.state, show)?;
                match &show.what {
                    ShowWhat::BinlogEvents { file, from, limit } => {
                        let events = show::BinlogEvents::open(&self.state, file.as_deref(), *from, *limit)?;
                        self.send_binlog_events(answer, events, show.what.is_query(), sink).await
                    }
                    what => self.send(answer, what.is_query(), sink).await,
                }
            }
            Statement::Describe { table, column } => {
                let answer = show::describe(&mut self.state, table, column.as_deref())?;
                self.send(answer, true, sink).await
            }
            Statement::Explain { format, analyze, statement } => {
                // What is run takes its turn as if it stood alone.
                if *analyze {
                    return admission.run(Box::pin(self.explain(*format, true, statement, Vec::new(), sink)).as_mut()).await;
                }
                let outcome = self.explain(*format, false, statement, Vec::new(), sink).await?;
                self.note_explained(statement);
                Ok(outcome)
            }
            Statement::ExplainConnection { format, id } => self.explain_connection(*format, *id, sink).await,
            Statement::Kill { query_only, id } => self.kill(*query_only, id),
            Statement::Flush(items) => self.flush(items).await,
            Statement::Histogram(histogram) => self.histogram(histogram, sink).await,
            Statement::Maintain { operation, tables, options } => {
                let outcome = self.maintain(*operation, tables, options, sink).await?;
                // CHECK and CHECKSUM leave nothing behind.
                let leaves = matches!(operation, Maintenance::Analyze | Maintenance::Optimize | Maintenance::Repair);
                if leaves && !options.iter().any(|option| option == "LOCAL") {
                    self.log_maintenance().await?;
                }
                Ok(outcome)
            }
            Statement::Shutdown => {
                self.state.instance.request_shutdown();
                Ok(Outcome::ok())
            }
            Statement::Replica(statement) => self.replica(statement).await,
            Statement::PurgeBinaryLogsTo(name) => {
                self.state.binlog()?.purge_to(name)?;
                Ok(Outcome::ok())
            }
            Statement::PurgeBinaryLogsBefore(time) => self.purge_binary_logs_before(time).await,
            Statement::ResetBinaryLogs { first } => {
                if self.state.locks.has_tables() {
                    return Err(highkey_types::errors::lock_or_active_transaction().into());
                }
                self.state.binlog()?.reset(*first)?;
                Ok(Outcome::ok())
            }
            Statement::Reset => Err(error::not_supported("RESET of this kind").into()),
        }
    }

    /// What plugins of MySQL do and is built in here is there already; it cannot be taken away.
    fn plugin(&mut self, install: bool, name: &str) -> Result<Outcome, Failure> {
        let built_in = ["rpl_semi_sync_source", "rpl_semi_sync_master", "rpl_semi_sync_replica", "rpl_semi_sync_slave"].iter().any(|known| known.eq_ignore_ascii_case(name));
        match (built_in, install) {
            (true, true) => {
                self.state.push_warning(error::warning(1287, format!("Plugin '{name}' is built into Highkey; its variables turn it on")));
                Ok(Outcome::ok())
            }
            (true, false) => Err(error::err(1619, "Built-in plugins cannot be deleted").into()),
            (false, true) => Err(error::not_supported("plugins").into()),
            (false, false) => Err(error::err(1305, format!("PLUGIN {name} does not exist")).into()),
        }
    }

    async fn end(&mut self, commit: bool, chain: bool, release: bool) -> Result<Outcome, Failure> {
        if self.end_transaction(commit, chain, release).await? {
            self.request_close();
        }
        Ok(Outcome::ok())
    }

    pub(crate) fn count_statement(&self, statement: &Statement) {
        self.state.count(counter_of(statement), 1);
    }
}

/// Under which of MySQL's names a statement is counted.
pub(crate) fn counter_of(statement: &Statement) -> StatusCounter {
    use StatusCounter as C;
    match statement {
        Statement::Empty { .. } => C::ComEmptyQuery,
        Statement::CreateRoutine(create) if create.kind == RoutineKind::Function => C::ComCreateFunction,
        Statement::CreateRoutine(_) => C::ComCreateProcedure,
        Statement::AlterRoutine { kind: RoutineKind::Function, .. } => C::ComAlterFunction,
        Statement::AlterRoutine { .. } => C::ComAlterProcedure,
        Statement::CreateTrigger(_) => C::ComCreateTrigger,
        Statement::CreateEvent(_) => C::ComCreateEvent,
        Statement::AlterEvent(_) => C::ComAlterEvent,
        Statement::Call(_) => C::ComCallProcedure,
        Statement::Signal(signal) if signal.again => C::ComResignal,
        Statement::Signal(_) => C::ComSignal,
        Statement::GetDiagnostics(_) => C::ComGetDiagnostics,
        Statement::DropProgram { kind, .. } => match kind {
            StoredProgram::Procedure => C::ComDropProcedure,
            StoredProgram::Function => C::ComDropFunction,
            StoredProgram::Trigger => C::ComDropTrigger,
            StoredProgram::Event => C::ComDropEvent,
        },
        Statement::Query(_) => C::ComSelect,
        Statement::Do(_) => C::ComDo,
        Statement::Insert(i) => match (&i.source, i.replace) {
            (crate::parse::ast::InsertSource::Values(_), false) => C::ComInsert,
            (crate::parse::ast::InsertSource::Values(_), true) => C::ComReplace,
            (_, false) => C::ComInsertSelect,
            (_, true) => C::ComReplaceSelect,
        },
        Statement::Update(u) if u.tables.len() == 1 => C::ComUpdate,
        Statement::Update(_) => C::ComUpdateMulti,
        Statement::Delete(d) if d.targets.is_empty() => C::ComDelete,
        Statement::Delete(_) => C::ComDeleteMulti,
        Statement::LoadData(_) => C::ComLoad,
        Statement::CreateTable(_) => C::ComCreateTable,
        Statement::CreateView(_) => C::ComCreateView,
        Statement::AlterTable(_) => C::ComAlterTable,
        Statement::DropTable(drop) if drop.view => C::ComDropView,
        Statement::DropTable(_) => C::ComDropTable,
        Statement::RenameTable(_) => C::ComRenameTable,
        Statement::TruncateTable(_) => C::ComTruncate,
        Statement::CreateIndex(_) => C::ComCreateIndex,
        Statement::DropIndex { .. } => C::ComDropIndex,
        Statement::CreateDatabase { .. } => C::ComCreateDb,
        Statement::AlterDatabase { .. } => C::ComAlterDb,
        Statement::DropDatabase { .. } => C::ComDropDb,
        Statement::CreateUser { .. } => C::ComCreateUser,
        Statement::AlterUser { .. } => C::ComAlterUser,
        Statement::SetPassword { .. } => C::ComSetPassword,
        Statement::RenameUser(_) => C::ComRenameUser,
        Statement::DropUser { .. } => C::ComDropUser,
        Statement::CreateRole { .. } => C::ComCreateRole,
        Statement::DropRole { .. } => C::ComDropRole,
        Statement::SetRole(_) => C::ComSetRole,
        Statement::SetDefaultRole { .. } => C::ComAlterUserDefaultRole,
        Statement::Grant(grant) if !grant.roles.is_empty() => C::ComGrantRoles,
        Statement::Grant(_) => C::ComGrant,
        Statement::Revoke(grant) if !grant.roles.is_empty() => C::ComRevokeRoles,
        Statement::Revoke(grant) if grant.on.is_none() && grant.proxied.is_none() => C::ComRevokeAll,
        Statement::Revoke(_) => C::ComRevoke,
        Statement::Begin { .. } => C::ComBegin,
        Statement::Commit { .. } => C::ComCommit,
        Statement::Rollback { .. } => C::ComRollback,
        Statement::Savepoint(_) => C::ComSavepoint,
        Statement::RollbackTo(_) => C::ComRollbackToSavepoint,
        Statement::ReleaseSavepoint(_) => C::ComReleaseSavepoint,
        Statement::Xa(statement) => match statement {
            XaStatement::Start { .. } => C::ComXaStart,
            XaStatement::End { .. } => C::ComXaEnd,
            XaStatement::Prepare(_) => C::ComXaPrepare,
            XaStatement::Commit { .. } => C::ComXaCommit,
            XaStatement::Rollback(_) => C::ComXaRollback,
            XaStatement::Recover { .. } => C::ComXaRecover,
        },
        Statement::Binlog(_) => C::ComBinlog,
        Statement::Plugin { install: true, .. } => C::ComInstallPlugin,
        Statement::Plugin { install: false, .. } => C::ComUninstallPlugin,
        Statement::Handler(HandlerStatement::Open { .. }) => C::ComHaOpen,
        Statement::Handler(HandlerStatement::Read(_)) => C::ComHaRead,
        Statement::Handler(HandlerStatement::Close(_)) => C::ComHaClose,
        Statement::LockTables(_) => C::ComLockTables,
        Statement::UnlockTables => C::ComUnlockTables,
        Statement::LockInstance => C::ComLockInstance,
        Statement::UnlockInstance => C::ComUnlockInstance,
        Statement::Use(_) => C::ComChangeDb,
        Statement::Set(_) => C::ComSetOption,
        Statement::Prepare { .. } => C::ComPrepareSql,
        Statement::Execute { .. } => C::ComExecuteSql,
        Statement::Deallocate(_) => C::ComDeallocSql,
        Statement::Show(show) => show_counter(&show.what),
        Statement::Describe { .. } => C::ComShowFields,
        Statement::Explain { .. } | Statement::ExplainConnection { .. } => C::ComExplain,
        Statement::Kill { .. } => C::ComKill,
        Statement::Flush(_) => C::ComFlush,
        Statement::PurgeBinaryLogsTo(_) => C::ComPurge,
        Statement::PurgeBinaryLogsBefore(_) => C::ComPurgeBeforeDate,
        Statement::Reset | Statement::ResetBinaryLogs { .. } => C::ComReset,
        Statement::Histogram(_) => C::ComAnalyze,
        Statement::Maintain { operation, .. } => match operation {
            Maintenance::Check => C::ComCheck,
            Maintenance::Analyze => C::ComAnalyze,
            Maintenance::Optimize => C::ComOptimize,
            Maintenance::Repair => C::ComRepair,
            Maintenance::Checksum => C::ComChecksum,
        },
        Statement::Shutdown => C::ComShutdown,
        Statement::Replica(statement) => match statement.action {
            ReplicaAction::ChangeSource(_) => C::ComChangeMaster,
            ReplicaAction::ChangeFilter(_) => C::ComChangeReplFilter,
            ReplicaAction::Start { .. } => C::ComSlaveStart,
            ReplicaAction::Stop(_) => C::ComSlaveStop,
            ReplicaAction::Reset { .. } => C::ComReset,
        },
    }
}

/// Under which of MySQL's names a SHOW is counted.
fn show_counter(what: &ShowWhat) -> StatusCounter {
    use StatusCounter as C;
    match what {
        ShowWhat::Databases => C::ComShowDatabases,
        ShowWhat::Tables { .. } => C::ComShowTables,
        ShowWhat::OpenTables { .. } => C::ComShowOpenTables,
        ShowWhat::TableStatus { .. } => C::ComShowTableStatus,
        ShowWhat::Columns { .. } => C::ComShowFields,
        ShowWhat::Index { .. } => C::ComShowKeys,
        ShowWhat::CreateTable(_) | ShowWhat::CreateView(_) => C::ComShowCreateTable,
        ShowWhat::CreateDatabase { .. } => C::ComShowCreateDb,
        ShowWhat::CreateUser(_) => C::ComShowCreateUser,
        ShowWhat::CreateOther { kind, .. } => match kind.as_str() {
            "PROCEDURE" => C::ComShowCreateProc,
            "FUNCTION" => C::ComShowCreateFunc,
            "TRIGGER" => C::ComShowCreateTrigger,
            _ => C::ComShowCreateEvent,
        },
        ShowWhat::Variables { .. } => C::ComShowVariables,
        ShowWhat::Status { .. } => C::ComShowStatus,
        ShowWhat::Warnings { .. } => C::ComShowWarnings,
        ShowWhat::Errors { .. } => C::ComShowErrors,
        ShowWhat::ProcessList { .. } => C::ComShowProcesslist,
        ShowWhat::Engines => C::ComShowStorageEngines,
        ShowWhat::Engine { what, .. } => match what.as_str() {
            "MUTEX" => C::ComShowEngineMutex,
            "LOGS" => C::ComShowEngineLogs,
            _ => C::ComShowEngineStatus,
        },
        ShowWhat::CharacterSet => C::ComShowCharsets,
        ShowWhat::Collation => C::ComShowCollations,
        ShowWhat::Grants { .. } => C::ComShowGrants,
        ShowWhat::Privileges => C::ComShowPrivileges,
        ShowWhat::Plugins => C::ComShowPlugins,
        ShowWhat::Triggers { .. } => C::ComShowTriggers,
        ShowWhat::Events { .. } => C::ComShowEvents,
        ShowWhat::ProcedureStatus => C::ComShowProcedureStatus,
        ShowWhat::FunctionStatus => C::ComShowFunctionStatus,
        ShowWhat::BinaryLogs => C::ComShowBinlogs,
        ShowWhat::BinaryLogStatus => C::ComShowMasterStatus,
        ShowWhat::BinlogEvents { .. } => C::ComShowBinlogEvents,
        ShowWhat::RelaylogEvents { .. } => C::ComShowRelaylogEvents,
        ShowWhat::ReplicaStatus { .. } => C::ComShowSlaveStatus,
        ShowWhat::Replicas => C::ComShowSlaveHosts,
        ShowWhat::Profiles => C::ComShowProfiles,
        ShowWhat::Profile => C::ComShowProfile,
    }
}
