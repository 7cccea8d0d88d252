//! What a statement may ask of its session: the session without its transaction. The binder and the evaluator see it as their
//! contexts, while the transaction is borrowed beside it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use highkey_table::{AccountName, Privileges, RoutineDef, RoutineKind, SessionLocks, Snapshot, Table, TableName, WaitKind};
use highkey_types::{Charset, Collation, Level, MySqlError, SqlMode, StoreContext, Str, TimeZone, Value, Warning, cast::CastContext};

use super::config::Config;
use super::diagnostics::Diagnostics;
use super::error;
use super::instance::Instance;
use super::process::ProcessEntry;
use super::status::StatusCounter;
use super::temporary::TemporaryTables;
use super::work::Work;
use super::{ClientInfo, VERSION};
use crate::bind::{BindContext, TableSource};
use crate::execute;
use crate::expr::{EvalContext, Raised, SharedContext, is_strict_error};
use crate::functions::FuncId;
use crate::information_schema;
use crate::parse::ParseOptions;
use crate::parse::ast::VariableScope;
use crate::plan::{ExprType, Rel, Subquery};
use crate::privileges::{Access, RoleSettings, quoted_roles};
use crate::routine::{FunctionCalls, StoredFunction};
use crate::sys;
use crate::variables::{self, Scope, SqlModes, Values};

/// A session without its transaction and prepared statements. A query on other threads evaluates in a copy (`absorb` brings it back).
#[derive(Clone)]
pub struct SessionState {
    pub instance: Arc<Instance>,
    pub client: ClientInfo,
    pub process: Arc<ProcessEntry>,
    /// LOCK TABLES and the global read lock.
    pub locks: Arc<SessionLocks>,
    /// The session's values; shared with the global ones until the first SET.
    pub variables: Arc<Values>,
    pub config: Config,
    pub database: Option<Str>,
    /// By name in lower case: the value, and the collation of its text.
    pub user_vars: HashMap<Str, (Value, &'static Collation)>,
    pub diagnostics: Diagnostics,
    /// LAST_INSERT_ID(), as the statements before left it.
    pub last_insert_id: u64,
    /// LAST_INSERT_ID(expr) in the running statement.
    pub explicit_insert_id: Option<u64>,
    /// SET INSERT_ID: the next statement's auto-increment value.
    pub next_insert_id: Option<u64>,
    pub found_rows: u64,
    /// What the last LOCK TABLES has named; it holds as long as `locks.has_tables()`.
    pub locked_names: Vec<LockedName>,
    /// What runs is a body inside of a statement, which may use tables that LOCK TABLES has not named.
    pub in_body: bool,
    pub temporary: TemporaryTables,
    pub row_count: i64,
    /// Parameters of the running prepared statement.
    pub params: Vec<Value>,
    /// Their types, while a statement is bound that is kept for other values of these types.
    pub param_types: Vec<ExprType>,
    /// Their types where they are variables of a routine, which have types of their own; empty: by their values.
    pub declared_types: Vec<ExprType>,
    /// Bind parameters in as literals.
    pub bind_params: bool,
    /// Start of the running statement, microseconds since 1970 UTC.
    pub now_micros: i64,
    /// The running statement changes rows in strict mode: some of its warnings are errors (`is_strict_error`).
    strict_dml: bool,
    /// The first of them in such a statement. Who writes rows asks for it (`check_strict`).
    strict_error: Option<MySqlError>,
    /// Where the queries of stored functions read, in a statement that calls some with queries.
    pub reads: Option<Snapshot>,
    /// In the copy that a query evaluates in: how it asks the session for calls of functions which that runs.
    pub(crate) calls: Option<FunctionCalls>,
    /// No table may be read or changed: the state of the session's transaction in two phases.
    pub tables_refused: Option<&'static str>,
    random_states: HashMap<usize, Option<(u32, u32)>>,
    /// See `EvalContext::kept`.
    kept: Vec<(usize, Value)>,
    /// What the account may do; `None`: everything.
    access: Option<Arc<Access>>,
    /// Roles that have been made active. Those that the account has lost since count for nothing.
    active_roles: BTreeSet<AccountName>,
    /// The running statement is EXPLAIN.
    pub explaining: bool,
    /// What the running statement has done to come to its rows.
    pub work: Work,
    /// Of the accounts, as `access` was made of them.
    accounts_version: u64,
    /// Which `access` it is, of all that have been made.
    access_version: u64,
    /// How often one has been made.
    accesses_made: u64,
    /// Accounts that the session has acted as, for routines: as long as no account changes, what they may do is made once.
    acted_as: Vec<Actor>,
}

/// What the running statement's way to evaluate and to change depends on, while a body runs inside of it.
pub(super) struct Changing {
    strict_dml: bool,
    strict_error: Option<MySqlError>,
    random_states: HashMap<usize, Option<(u32, u32)>>,
    explaining: bool,
    reads: Option<Snapshot>,
}

/// As whom a session does what it does.
#[derive(Clone)]
pub(crate) struct Actor {
    user: String,
    host: String,
    unrestricted: bool,
    /// The active ones.
    roles: BTreeSet<AccountName>,
    made: Option<MadeAccess>,
}

/// What an actor may do, as it has been made, with the versions of `SessionState`.
#[derive(Clone)]
struct MadeAccess {
    access: Option<Arc<Access>>,
    accounts_version: u64,
    access_version: u64,
}

/// Actors that a session keeps.
const ACTED_AS_MAX: usize = 8;

impl SessionState {
    pub fn new(instance: Arc<Instance>, client: ClientInfo, process: Arc<ProcessEntry>) -> SessionState {
        let variables = instance.globals();
        let locks = instance.database().session_locks();
        process.set_lock_owner(locks.number());
        if let Some(connection_type) = client.connection_type() {
            process.set_connection_type(connection_type);
        }
        if let (Some(version), Some(cipher)) = (&client.tls_version, &client.tls_cipher) {
            process.set_tls(version, cipher);
        }
        let mut state = SessionState {
            config: Config::of(&variables),
            variables,
            locks,
            instance,
            client,
            process,
            database: None,
            user_vars: HashMap::new(),
            diagnostics: Diagnostics::default(),
            last_insert_id: 0,
            explicit_insert_id: None,
            next_insert_id: None,
            found_rows: 0,
            locked_names: Vec::new(),
            in_body: false,
            temporary: TemporaryTables::default(),
            row_count: 0,
            params: Vec::new(),
            param_types: Vec::new(),
            declared_types: Vec::new(),
            bind_params: false,
            now_micros: 0,
            strict_dml: false,
            strict_error: None,
            reads: None,
            calls: None,
            tables_refused: None,
            random_states: HashMap::new(),
            kept: Vec::new(),
            access: None,
            active_roles: BTreeSet::new(),
            explaining: false,
            work: Work::default(),
            accounts_version: 0,
            access_version: 0,
            accesses_made: 0,
            acted_as: Vec::new(),
        };
        state.activate_initial_roles();
        state.load_access();
        state.apply_client_collation();
        state
    }

    /// The handshake's collation sets client, results and connection, as SET NAMES would.
    fn apply_client_collation(&mut self) {
        let Some(collation) = Collation::by_id(self.client.collation) else { return };
        if collation.charset == Charset::Binary || collation.charset.min_bytes() > 1 {
            return;
        }
        if collation.id != self.config.collation_connection.id || self.config.charset_client != collation.charset {
            self.set_names(collation);
        }
    }

    /// SET NAMES.
    pub fn set_names(&mut self, collation: &'static Collation) {
        let charset = variables::VarValue::Text(collation.charset.name().into());
        let values = Arc::make_mut(&mut self.variables);
        for name in ["character_set_client", "character_set_results", "character_set_connection"] {
            values.set(variables::find(name).expect("in the table"), charset.clone());
        }
        values.set(variables::find("collation_connection").expect("in the table"), variables::VarValue::Text(collation.name.into()));
        self.refresh();
    }

    /// What the session's account may do; `None`: everything.
    pub fn access(&self) -> Option<&Access> {
        self.access.as_deref()
    }

    /// `init_connect` and `read_only` are not for its account: it has CONNECTION_ADMIN or SUPER.
    pub(super) fn administers_connections(&self) -> bool {
        self.access().is_none_or(|access| access.has_dynamic_or_super("CONNECTION_ADMIN"))
    }

    /// Another number if `access` may be another one; of the accounts of views' definers too.
    pub fn access_version(&self) -> u64 {
        self.access_version
    }

    /// What SET ROLE has made active, or the session has begun with.
    pub fn active_roles(&self) -> &BTreeSet<AccountName> {
        &self.active_roles
    }

    /// SET ROLE: `roles` are available to the account.
    pub fn set_active_roles(&mut self, roles: BTreeSet<AccountName>) {
        self.active_roles = roles;
        self.load_access();
    }

    fn activate_initial_roles(&mut self) {
        let catalog = self.instance.database().catalog();
        if let Some(account) = catalog.user(&self.client.account_user, &self.client.account_host) {
            self.active_roles = RoleSettings::of(&self.instance.globals()).initial(&catalog, &account);
        }
    }

    /// The account `user`@`host`, with the roles that its sessions begin with.
    pub(crate) fn actor(&self, user: &str, host: &str) -> Actor {
        let catalog = self.instance.database().catalog();
        let roles = catalog.user(user, host).map(|account| RoleSettings::of(&self.instance.globals()).initial(&catalog, &account)).unwrap_or_default();
        let known = self.acted_as.iter().find(|known| known.user == user && known.host == host && known.roles == roles);
        Actor { user: user.to_owned(), host: host.to_owned(), unrestricted: false, made: known.and_then(|known| known.made.clone()), roles }
    }

    /// From here on the session does what it does as another account. Returns as which until now.
    pub(crate) fn act_as(&mut self, actor: Actor) -> Actor {
        let client = &mut self.client;
        let before = Actor {
            user: std::mem::replace(&mut client.account_user, actor.user),
            host: std::mem::replace(&mut client.account_host, actor.host),
            unrestricted: std::mem::replace(&mut client.unrestricted, actor.unrestricted),
            roles: std::mem::replace(&mut self.active_roles, actor.roles),
            made: Some(MadeAccess { access: self.access.take(), accounts_version: self.accounts_version, access_version: self.access_version }),
        };
        match actor.made.filter(|made| made.accounts_version == self.instance.database().accounts_version()) {
            Some(made) => (self.access, self.accounts_version, self.access_version) = (made.access, made.accounts_version, made.access_version),
            None => self.load_access(),
        }
        before
    }

    /// The session goes back to being `caller`. Whom it has been for a routine is kept.
    pub(crate) fn act_again_as(&mut self, caller: Actor) {
        let definer = self.act_as(caller);
        self.acted_as.retain(|known| (&known.user, &known.host) != (&definer.user, &definer.host));
        if self.acted_as.len() == ACTED_AS_MAX {
            self.acted_as.remove(0);
        }
        self.acted_as.push(definer);
    }

    /// Grants are in force from the next statement on.
    pub fn refresh_access(&mut self) {
        if self.instance.database().accounts_version() != self.accounts_version {
            self.load_access();
        }
    }

    fn load_access(&mut self) {
        let database = self.instance.database();
        // Read before the accounts are: what changes between comes once more.
        self.accounts_version = database.accounts_version();
        self.accesses_made += 1;
        self.access_version = self.accesses_made;
        let (client, catalog) = (&self.client, database.catalog());
        self.access = if client.unrestricted {
            None
        } else {
            Access::of(&catalog, &client.account_user, &client.account_host, &client.client_host, |account| {
                if self.active_roles.is_empty() {
                    return BTreeSet::new();
                }
                let available = RoleSettings::of(&self.instance.globals()).available(&catalog, account);
                self.active_roles.intersection(&available).cloned().collect()
            })
        };
    }

    /// Takes over what a query changed in its copy of this state.
    pub fn absorb(&mut self, copy: &SessionState) {
        self.user_vars.clone_from(&copy.user_vars);
        self.diagnostics = copy.diagnostics.clone();
        self.last_insert_id = copy.last_insert_id;
        self.explicit_insert_id = copy.explicit_insert_id;
        self.absorb_strict_error(copy);
    }

    /// Takes over what ends the statement, if it was met in a copy of this state.
    pub fn absorb_strict_error(&mut self, copy: &SessionState) {
        if self.strict_error.is_none() {
            self.strict_error.clone_from(&copy.strict_error);
        }
    }

    /// The statement begins to change rows: in strict mode, unless IGNORE is said, what its expressions would warn of ends it.
    pub fn begin_changes(&mut self, ignore: bool) {
        self.strict_dml = self.strict() && !ignore;
    }

    /// The error that the statement's expressions have met since the last time.
    pub fn check_strict(&mut self) -> Result<(), MySqlError> {
        self.strict_error.take().map_or(Ok(()), Err)
    }

    /// After a variable changed.
    pub fn refresh(&mut self) {
        self.config = Config::of(&self.variables);
    }

    /// A new statement begins: its clock, and no conditions unless it is about them.
    pub fn begin_statement(&mut self, keep_diagnostics: bool) {
        self.now_micros = self.config.timestamp_micros.unwrap_or_else(clock_micros);
        self.refresh_access();
        self.explaining = false;
        self.reads = None;
        self.explicit_insert_id = None;
        self.strict_dml = false;
        self.strict_error = None;
        if !self.random_states.is_empty() {
            self.random_states.clear();
        }
        if !keep_diagnostics {
            self.diagnostics.clear();
        }
    }

    /// As `begin_statement`, of one that is a part of another and has its clock.
    pub(super) fn begin_part(&mut self, keep_diagnostics: bool) {
        let now = self.now_micros;
        self.begin_statement(keep_diagnostics);
        self.now_micros = now;
    }

    /// The running statement waits for others that are a part of it, until `take_up`.
    pub(super) fn put_aside(&mut self) -> Changing {
        Changing {
            strict_dml: self.strict_dml,
            strict_error: self.strict_error.take(),
            random_states: std::mem::take(&mut self.random_states),
            explaining: self.explaining,
            reads: self.reads.take(),
        }
    }

    /// The statement that has been put aside goes on.
    pub(super) fn take_up(&mut self, changing: Changing) {
        self.strict_dml = changing.strict_dml;
        self.strict_error = changing.strict_error;
        self.random_states = changing.random_states;
        self.explaining = changing.explaining;
        self.reads = changing.reads;
    }

    /// Adds to a counter of this connection.
    pub fn count(&self, counter: StatusCounter, n: u64) {
        self.process.status().add(counter, n);
    }

    pub fn push_warning(&mut self, warning: Warning) {
        self.diagnostics.push(warning, self.config.max_error_count, self.config.sql_notes);
    }

    pub fn push_warnings(&mut self, warnings: &mut Vec<Warning>) {
        for warning in warnings.drain(..) {
            self.push_warning(warning);
        }
    }

    pub fn note(&mut self, code: u16, message: impl Into<String>) {
        self.push_warning(Warning { level: Level::Note, code, message: message.into() });
    }

    /// An error that IGNORE turns into a warning.
    pub fn push_ignored(&mut self, error: MySqlError) {
        self.push_warning(error.into_warning(Level::Warning));
    }

    /// Converts a value for a column. `row` counts from 1.
    pub fn store(&mut self, value: Value, ty: &highkey_types::ColumnType, column: &str, ignore: bool, row: u64) -> Result<Value, MySqlError> {
        let mut warnings = Vec::new();
        let mut cx = StoreContext {
            strict: self.config.strict && !ignore,
            ignore,
            mode: self.config.sql_mode,
            time_zone: &self.config.time_zone,
            now_micros: self.now_micros,
            row,
            warnings: &mut warnings,
        };
        let stored = highkey_types::store(value, ty, column, &mut cx);
        if !warnings.is_empty() {
            self.push_warnings(&mut warnings);
        }
        stored
    }

    /// Runs a lenient conversion with this session's rules.
    pub fn with_cast<T>(&mut self, f: impl FnOnce(&mut CastContext) -> T) -> T {
        let mut warnings = Vec::new();
        let today = self.now().date;
        let result = f(&mut CastContext { warnings: &mut warnings, mode: self.config.sql_mode, today, time_zone: &self.config.time_zone });
        warnings.into_iter().for_each(|warning| self.warn(warning));
        result
    }

    pub fn strict(&self) -> bool {
        self.config.strict
    }

    pub fn mode(&self, bit: u64) -> bool {
        self.config.modes.has(bit)
    }

    /// Error 1399 where no table may be read or changed.
    pub fn check_tables_allowed(&self) -> Result<(), MySqlError> {
        self.tables_refused.map_or(Ok(()), |state| Err(highkey_types::errors::xaer_rmfail(state)))
    }

    /// The current database or error 1046.
    pub fn require_database(&self) -> Result<Str, MySqlError> {
        self.database.clone().ok_or_else(error::no_db)
    }

    /// The schema that a name means.
    pub fn schema_of(&self, schema: Option<&str>) -> Result<Str, MySqlError> {
        match schema {
            Some(schema) => Ok(schema.into()),
            None => self.require_database(),
        }
    }

    pub fn user_at_host(&self) -> Str {
        format!("{}@{}", self.client.user, self.client.client_host).into()
    }

    pub fn account(&self) -> Str {
        format!("{}@{}", self.client.account_user, self.client.account_host).into()
    }

    /// The value of a system variable as SELECT @@… gives it.
    pub fn system_variable(&self, scope: Option<VariableScope>, name: &str) -> Result<Value, MySqlError> {
        let id = variables::find(name).ok_or_else(|| error::unknown_system_variable(name))?;
        let definition = id.definition();
        match (scope, definition.scope) {
            (Some(VariableScope::Global), Scope::SessionOnly) => Err(err_not_global(definition.name)),
            (Some(VariableScope::Session), Scope::Global) => Err(err_not_session(definition.name)),
            (Some(VariableScope::Global), _) | (_, Scope::Global) => {
                Ok(self.global_only(definition.name).unwrap_or_else(|| variables::to_value(self.instance.globals().get(id))))
            }
            (_, Scope::SessionOnly) => Ok(self.session_only(definition.name).unwrap_or_else(|| variables::to_value(self.variables.get(id)))),
            _ => Ok(variables::to_value(self.variables.get(id))),
        }
    }

    /// The connection's number, or the one that the session says it had on another server.
    pub fn pseudo_thread_id(&self) -> u64 {
        match self.variables.u64("pseudo_thread_id") {
            0 => self.client.connection_id,
            id => id,
        }
    }

    /// Variables that are no stored value but a part of the session's state.
    pub fn session_only(&self, name: &str) -> Option<Value> {
        Some(match name {
            "last_insert_id" | "identity" => Value::UInt(self.last_insert_id),
            "insert_id" => Value::UInt(self.next_insert_id.unwrap_or(0)),
            "warning_count" => Value::UInt(self.diagnostics.previous_counts().0),
            "error_count" => Value::UInt(self.diagnostics.previous_counts().1),
            "pseudo_thread_id" => Value::UInt(self.pseudo_thread_id()),
            "timestamp" => Value::Double(self.now_micros as f64 / 1e6),
            "proxy_user" => self.client.proxy_user.as_deref().map_or(Value::Null, Value::text),
            // No plugin here knows users by other names than the server does.
            "external_user" => Value::Null,
            _ => return None,
        })
    }
}

fn err_not_global(name: &str) -> MySqlError {
    error::err(1238, format!("Variable '{name}' is a SESSION variable"))
}

fn err_not_session(name: &str) -> MySqlError {
    error::err(1238, format!("Variable '{name}' is a GLOBAL variable"))
}

/// Microseconds since 1970.
pub fn clock_micros() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros() as i64)
}

/// A table or view of LOCK TABLES, and the name under which statements may use it.
#[derive(Clone)]
pub struct LockedName {
    pub table: TableName,
    pub alias: Str,
    pub write: bool,
}

impl BindContext for SessionState {
    fn table(&self, schema: &str, name: &str) -> Result<TableSource, MySqlError> {
        self.check_tables_allowed()?;
        if let Some(table) = information_schema::find(schema, name)
            && (information_schema::is_virtual_schema(schema) || self.instance.database().catalog().find_table(&table.schema, &table.name).is_none())
        {
            return Ok(TableSource::Virtual(table));
        }
        if schema.eq_ignore_ascii_case("performance_schema") {
            return Err(error::no_such_table(&format!("performance_schema.{name}")));
        }
        if information_schema::is_virtual_schema(schema) {
            return Err(error::err(1109, format!("Unknown table '{}' in {}", name.to_uppercase(), schema.to_lowercase())));
        }
        let catalog = self.instance.database().catalog();
        let view = sys::find_view(&catalog, schema, name);
        if self.locks.has_tables() && !self.in_body && !view.as_ref().is_some_and(|view| view.is_built_in()) {
            self.locks.check_table(schema, name, false)?;
        }
        match view {
            Some(view) => Ok(TableSource::View(view)),
            None => Ok(TableSource::Base(catalog.table(schema, name)?)),
        }
    }

    fn temporary_table(&self, schema: &str, name: &str) -> Option<Arc<Table>> {
        self.temporary.find(schema, name).cloned()
    }

    fn check_locked_as(&self, schema: &str, name: &str, alias: &str, write: bool) -> Result<(), MySqlError> {
        if !self.locks.has_tables() || information_schema::is_virtual_schema(schema) || self.temporary.find(schema, name).is_some() {
            return Ok(());
        }
        let mut names = self.locked_names.iter().filter(|locked| *locked.table.0 == *schema && *locked.table.1 == *name).peekable();
        // What views read, and what has been renamed since, is locked under any name.
        let any = names.peek().is_none() && (self.in_body || self.locks.check_table(schema, name, false).is_ok());
        match names.find(|locked| *locked.alias == *alias) {
            Some(locked) if write && !locked.write => Err(highkey_types::errors::table_not_locked_for_write(alias)),
            None if !any => Err(highkey_types::errors::table_not_locked(alias)),
            _ => Ok(()),
        }
    }

    fn current_schema(&self) -> Option<Str> {
        self.database.clone()
    }

    fn has_account(&self, user: &str, host: &str) -> bool {
        self.instance.database().catalog().user(user, host).is_some()
    }

    fn access(&self) -> Option<&Access> {
        SessionState::access(self)
    }

    fn explainer(&self) -> Option<&Access> {
        SessionState::access(self).filter(|_| self.explaining)
    }

    fn access_of(&self, user: &str, host: &str) -> Option<Arc<Access>> {
        let catalog = self.instance.database().catalog();
        Access::of(&catalog, user, host, &self.client.client_host, |account| RoleSettings::of(&self.instance.globals()).initial(&catalog, account))
    }

    fn collation(&self) -> &'static Collation {
        self.config.collation_connection
    }

    fn utf8mb4_collation(&self) -> &'static Collation {
        self.config.utf8mb4
    }

    fn sql_mode(&self) -> SqlMode {
        self.config.sql_mode
    }

    fn only_full_group_by(&self) -> bool {
        self.mode(SqlModes::ONLY_FULL_GROUP_BY)
    }

    fn time_zone(&self) -> &TimeZone {
        &self.config.time_zone
    }

    fn params(&self) -> Option<&[Value]> {
        self.bind_params.then_some(&self.params[..])
    }

    fn param_type(&self, index: usize) -> Option<&ExprType> {
        self.param_types.get(index)
    }

    fn declared_type(&self, index: usize) -> Option<&ExprType> {
        self.declared_types.get(index)
    }

    fn function(&self, schema: &str, name: &str) -> Option<Arc<RoutineDef>> {
        sys::find_routine(&self.instance.database().catalog(), schema, RoutineKind::Function, name)
    }

    fn system_var(&self, scope: Option<VariableScope>, name: &str) -> Result<Value, MySqlError> {
        self.system_variable(scope, name)
    }

    fn user_var(&self, name: &str) -> Option<(Value, &'static Collation)> {
        self.user_vars.get(name).cloned()
    }

    fn strict(&self) -> bool {
        SessionState::strict(self)
    }

    fn div_precision_increment(&self) -> u8 {
        self.config.div_precision_increment
    }

    fn group_concat_max_len(&self) -> u64 {
        self.config.group_concat_max_len
    }
}

impl SharedContext for SessionState {
    fn copy(&self) -> Box<dyn SharedContext> {
        let mut copy = self.clone();
        copy.take_raised();
        Box::new(copy)
    }

    fn take_raised(&mut self) -> Raised {
        Raised { strict: self.strict_error.take(), ..self.diagnostics.take() }
    }

    fn add_raised(&mut self, mut raised: Raised) {
        let strict = raised.strict.take();
        self.strict_error = self.strict_error.take().or(strict);
        self.diagnostics.add(raised, self.config.max_error_count);
    }
}

impl EvalContext for SessionState {
    fn sql_mode(&self) -> SqlMode {
        self.config.sql_mode
    }

    fn parse_options(&self) -> ParseOptions {
        self.config.parse
    }

    fn time_zone(&self) -> &TimeZone {
        &self.config.time_zone
    }

    fn now_micros(&self) -> i64 {
        self.now_micros
    }

    fn warn(&mut self, warning: Warning) {
        if self.strict_dml && is_strict_error(&warning) {
            self.strict_error.get_or_insert_with(|| MySqlError::with_message(warning.code, warning.message));
        } else {
            self.push_warning(warning);
        }
    }

    fn warn_from_function(&mut self, warning: Warning) {
        self.push_warning(warning);
    }

    fn warnings_are_errors(&self) -> bool {
        self.strict_dml
    }

    fn is_strict(&self) -> bool {
        self.config.strict
    }

    fn param(&self, index: usize) -> Result<Value, MySqlError> {
        self.params.get(index).cloned().ok_or_else(|| error::wrong_arguments("EXECUTE"))
    }

    fn user_var(&self, name: &str) -> Value {
        self.user_vars.get(name).map_or(Value::Null, |(value, _)| value.clone())
    }

    fn set_user_var(&mut self, name: &Str, value: Value, collation: &'static Collation) -> Result<(), MySqlError> {
        self.user_vars.insert(name.clone(), (value, collation));
        Ok(())
    }

    fn system_var(&self, scope: Option<VariableScope>, name: &str) -> Result<Value, MySqlError> {
        self.system_variable(scope, name)
    }

    fn subquery(&mut self, _subquery: &Subquery, _row: &[Value]) -> Result<Value, MySqlError> {
        // Statements with subqueries go to DataFusion, or have them computed first (`execute::subqueries`).
        Err(error::internal("subquery"))
    }

    fn rows(&mut self, query: Rel, of: &RoutineDef, account: &RoutineDef) -> Result<(Vec<Vec<Value>>, Raised), MySqlError> {
        execute::rows_inside(self, query, of, account)
    }

    fn call_in_session(&mut self, function: &Arc<StoredFunction>, result: &str, args: Vec<Value>) -> Result<Value, MySqlError> {
        match self.calls.clone() {
            Some(calls) => calls.call(self, function, result, args),
            None => Err(error::not_supported("a stored function that does more than compute and read, in this place")),
        }
    }

    fn kept(&mut self) -> Option<&mut Vec<(usize, Value)>> {
        Some(&mut self.kept)
    }

    fn database(&self) -> Option<Str> {
        self.database.clone()
    }

    fn user(&self) -> Str {
        self.user_at_host()
    }

    fn current_user(&self) -> Str {
        self.account()
    }

    fn current_role(&self) -> Str {
        if self.active_roles.is_empty() { "NONE".into() } else { quoted_roles(&self.active_roles).into() }
    }

    fn connection_id(&self) -> u64 {
        self.client.connection_id
    }

    fn has_connection(&self, id: u64) -> bool {
        self.instance.processes().get(id).is_some()
    }

    fn version(&self) -> Str {
        VERSION.into()
    }

    fn last_insert_id(&self) -> u64 {
        self.last_insert_id
    }

    fn set_last_insert_id(&mut self, id: u64) {
        self.explicit_insert_id = Some(id);
        self.last_insert_id = id;
    }

    fn found_rows(&self) -> u64 {
        self.found_rows
    }

    fn row_count(&self) -> i64 {
        self.row_count
    }

    fn max_allowed_packet(&self) -> usize {
        self.config.max_allowed_packet as usize
    }

    fn random_state(&mut self, site: usize) -> &mut Option<(u32, u32)> {
        self.random_states.entry(site).or_default()
    }

    fn sleep(&mut self, duration: Duration) -> Result<bool, MySqlError> {
        let interrupted = self.pause("User sleep", Some(duration), || false);
        if interrupted && self.process.interruption() == super::process::Interruption::Timeout {
            return Err(error::query_timeout());
        }
        Ok(interrupted)
    }

    fn user_lock(&mut self, function: &str, args: &[Value]) -> Result<Value, MySqlError> {
        let name = match args.first() {
            Some(Value::Null) => None,
            Some(value) => highkey_types::cast::to_str(value),
            None => None,
        };
        let id = self.client.connection_id;
        let locks = self.instance.user_locks().clone();
        let bad_name = || error::err(4163, "Incorrect user-level lock name '%-.192s'.".replace("%-.192s", name.as_deref().unwrap_or("NULL")));
        if function == "RELEASE_ALL_LOCKS" {
            return Ok(Value::Int(locks.release_all(id) as i64));
        }
        let Some(name) = name.clone().filter(|n| !n.is_empty() && n.chars().count() <= 64) else { return Err(bad_name()) };
        let name = name.to_lowercase();
        match function {
            "GET_LOCK" => {
                let seconds = args.get(1).map_or(Some(0.0), |v| self.with_cast(|cx| highkey_types::cast::to_f64(v, cx))).unwrap_or(0.0);
                let process = self.process.clone();
                process.set_state("User lock");
                let timeout = if seconds < 0.0 { Duration::from_secs(31_536_000) } else { Duration::from_secs_f64(seconds.min(31_536_000.0)) };
                let got = blocking(|| {
                    let _pause = highkey_table::blocked(WaitKind::Pause);
                    locks.acquire(&name, id, timeout, &process.flag())
                });
                self.process.set_state("executing");
                self.process.check()?;
                Ok(Value::Int(i64::from(got)))
            }
            "RELEASE_LOCK" => Ok(locks.release(&name, id).map_or(Value::Null, |own| Value::Int(i64::from(own)))),
            "IS_FREE_LOCK" => Ok(Value::Int(i64::from(locks.owner(&name).is_none()))),
            _ => Ok(locks.owner(&name).map_or(Value::Null, Value::UInt)),
        }
    }

    fn wait_for_replication(&mut self, func: FuncId, args: &[Value]) -> Result<Value, MySqlError> {
        self.replication_wait(func, args)
    }

    fn load_file(&mut self, path: &str) -> Option<Vec<u8>> {
        self.check_global(Privileges::FILE, "FILE").ok()?;
        let path = super::files::resolve(self, path).ok()?;
        let bytes = std::fs::read(path).ok()?;
        (bytes.len() as u64 <= self.config.max_allowed_packet).then_some(bytes)
    }
}

impl SessionState {
    /// Waits until `done`, or for as long as `limit`. True if the statement was interrupted.
    pub(super) fn pause(&self, state: &'static str, limit: Option<Duration>, mut done: impl FnMut() -> bool) -> bool {
        self.process.set_state(state);
        let interrupted = blocking(|| {
            let _pause = highkey_table::blocked(WaitKind::Pause);
            let end = limit.map(|limit| Instant::now() + limit);
            loop {
                if self.process.flag().is_raised() {
                    return true;
                }
                let left = end.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
                if done() || left.is_zero() {
                    return false;
                }
                std::thread::sleep(left.min(Duration::from_millis(5)));
            }
        });
        self.process.set_state("executing");
        interrupted
    }
}

/// Runs something that blocks. On a worker of the server's runtime the other tasks move away first.
pub(crate) fn blocking<T>(f: impl FnOnce() -> T) -> T {
    super::admission::give_up_turn();
    match tokio::runtime::Handle::try_current() {
        Ok(handle) if handle.runtime_flavor() == tokio::runtime::RuntimeFlavor::MultiThread => tokio::task::block_in_place(f),
        _ => f(),
    }
}
