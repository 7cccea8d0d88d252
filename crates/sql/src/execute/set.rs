//! SET: system variables, user variables, NAMES, CHARACTER SET, TRANSACTION.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use highkey_types::{Charset, Collation, MySqlError, Value};

use super::{Failure, Outcome};
use crate::expr;
use crate::parse::ast::{self, AccessMode, IsolationLevel, SetItem, SetValue, VariableScope};
use crate::session::{Session, error, isolation};
use crate::variables::{self, Effect, Kind, Scope, SqlModes, VarId, VarValue};

/// An item of SET, evaluated and checked.
enum Change<'a> {
    /// A system variable; `None` is its default as it is by then.
    System { id: VarId, global: bool, value: Option<VarValue> },
    User { name: &'a str, value: Value, collation: &'static Collation },
    Names(&'static Collation),
    CharacterSet(Charset),
    Transaction { scope: Option<VariableScope>, isolation: Option<IsolationLevel>, access: Option<AccessMode> },
}

const STRICT_IN_PART: &str = "'NO_ZERO_DATE', 'NO_ZERO_IN_DATE' and 'ERROR_FOR_DIVISION_BY_ZERO' sql modes should be used with strict mode. They will be merged with strict mode in a future release.";
const SKIP_WITH_GTIDS: &str = "sql_slave_skip_counter can not be set when the server is running with @@GLOBAL.GTID_MODE = ON. Instead, for each transaction that you want to skip, generate an empty transaction with the same GTID as the transaction";

/// The character set of that name, in which a client can send statements.
fn client_charset(name: &str) -> Result<Charset, MySqlError> {
    match Charset::by_name(name) {
        Some(charset) if charset.min_bytes() > 1 => Err(error::wrong_value_for_var("character_set_client", charset.name())),
        Some(charset) => Ok(charset),
        None => Err(error::unknown_character_set(name)),
    }
}

impl Session {
    /// Every item is evaluated and checked before the first takes effect, as in MySQL: none does if one is wrong, and none sees another's.
    pub(crate) async fn set(&mut self, items: &[SetItem]) -> Result<Outcome, Failure> {
        for item in items {
            if let SetItem::System { scope, name, .. } = item {
                self.check_assignable(*scope, name)?;
            }
        }
        let mut changes = Vec::with_capacity(items.len());
        for item in items {
            match item {
                SetItem::System { scope, name, value } => changes.extend(self.system_change(*scope, name, value).await?),
                SetItem::User { name, value } => {
                    let (value, collation) = self.constant_and_collation(value).await?;
                    changes.push(Change::User { name, value, collation });
                }
                SetItem::Names { charset, collation } => changes.push(Change::Names(self.names_collation(charset.as_deref(), collation.as_deref())?)),
                SetItem::CharacterSet(charset) => {
                    let charset = charset.as_deref().map(client_charset).transpose()?;
                    changes.push(Change::CharacterSet(charset.unwrap_or(Charset::Utf8mb4)));
                }
                SetItem::Transaction { scope, isolation, access } => changes.push(Change::Transaction { scope: *scope, isolation: *isolation, access: *access }),
            }
        }
        for change in changes {
            match change {
                Change::System { id, global, value } => {
                    // DEFAULT of a character set is that of its collation.
                    let id = if value.is_none() { variables::collation_behind(id).unwrap_or(id) } else { id };
                    let value = value.unwrap_or_else(|| self.default_of(id, global));
                    if global { self.set_global(id, value)? } else { self.set_session(id, value).await? }
                }
                Change::User { name, value, collation } => {
                    self.state.user_vars.insert(name.to_lowercase().into(), (value, collation));
                }
                Change::Names(collation) => self.state.set_names(collation),
                Change::CharacterSet(charset) => self.set_character_set(charset),
                Change::Transaction { scope, isolation, access } => self.set_transaction(scope, isolation, access)?,
            }
        }
        Ok(Outcome::ok())
    }

    /// The value of an expression without columns.
    pub(crate) async fn constant(&mut self, ast: &ast::Expr) -> Result<Value, Failure> {
        Ok(self.constant_and_collation(ast).await?.0)
    }

    async fn constant_and_collation(&mut self, ast: &ast::Expr) -> Result<(Value, &'static Collation), Failure> {
        let mut bound = self.bind_constant_and_open(ast).await?;
        let collation = bound.ty.collation();
        self.resolve_calls(&mut bound).await?;
        self.resolve_subqueries(&mut bound).await?;
        Ok((expr::eval(&bound, &[], &mut self.state)?, collation))
    }

    fn check_assignable(&self, scope: Option<VariableScope>, name: &str) -> Result<VarId, MySqlError> {
        let id = variables::find(name).ok_or_else(|| error::unknown_system_variable(name))?;
        let definition = id.definition();
        if !definition.dynamic {
            return Err(error::read_only_variable(definition.name));
        }
        match (scope, definition.scope) {
            (Some(VariableScope::Global | VariableScope::Persist | VariableScope::PersistOnly), Scope::SessionOnly) => Err(error::local_variable(definition.name)),
            (None | Some(VariableScope::Session), Scope::Global) => Err(error::global_variable(definition.name)),
            (Some(VariableScope::Persist | VariableScope::PersistOnly), _) => Err(error::not_supported("SET PERSIST")),
            _ => Ok(id),
        }
    }

    /// `None`: there is nothing to change.
    async fn system_change(&mut self, scope: Option<VariableScope>, name: &str, value: &SetValue) -> Result<Option<Change<'static>>, Failure> {
        let id = self.check_assignable(scope, name)?;
        let definition = id.definition();
        let global = scope == Some(VariableScope::Global);
        let value = match value {
            SetValue::Default => None,
            SetValue::Word(word) => Some(self.convert(id, &Value::Text(word.as_str().into()))?),
            SetValue::Expr(expr) => {
                let value = match (self.constant(expr).await?, definition.kind) {
                    // Another server's log names modes that there are not here, which a replica leaves out too.
                    (Value::Int(bits @ 0..), Kind::SqlMode) if self.state.variables.bool("pseudo_slave_mode") => Value::text(SqlModes::of_known_bits(bits as u64).to_string()),
                    (Value::UInt(bits), Kind::SqlMode) if self.state.variables.bool("pseudo_slave_mode") => Value::text(SqlModes::of_known_bits(bits).to_string()),
                    (value, _) => value,
                };
                Some(self.convert(id, &value)?)
            }
        };
        if let (Kind::SqlMode, Some(VarValue::Text(text))) = (definition.kind, &value)
            && SqlModes::parse(text).is_ok_and(SqlModes::is_strict_in_part)
        {
            self.state.push_warning(error::warning(3135, STRICT_IN_PART));
        }
        match definition.effect {
            Effect::Real => {}
            Effect::Ignored => self.state.push_warning(error::warning(1287, format!("'{}' is accepted and has no effect in Highkey", definition.name))),
            Effect::Fact => {
                let current = if global { self.state.instance.globals().get(id).clone() } else { self.state.variables.get(id).clone() };
                if current != value.unwrap_or_else(|| self.default_of(id, global)) {
                    self.state.push_warning(error::warning(1287, format!("'{}' cannot be changed in Highkey", definition.name)));
                }
                return Ok(None);
            }
        }
        if matches!(definition.name, "innodb_ft_server_stopword_table" | "innodb_ft_user_stopword_table")
            && let Some(VarValue::Text(wanted)) = &value
            && self.state.stopword_table(wanted).is_none()
        {
            return Err(error::wrong_value_for_var(definition.name, wanted).into());
        }
        if definition.name == "default_collation_for_utf8mb4" {
            self.state.push_warning(error::warning(1681, "Updating 'default_collation_for_utf8mb4' is deprecated. It will be made read-only in a future release."));
        }
        if definition.name == "gtid_purged"
            && let Err(unkept) = self.state.binlog().map(drop)
        {
            // Nothing would keep it. With gtid_mode=OFF nobody asks for it either: what restores another server's dump goes on.
            if self.state.instance.global_text("gtid_mode") != "OFF" {
                return Err(unkept.into());
            }
            self.state.push_warning(error::warning(unkept.code, unkept.message));
        }
        if definition.name == "explicit_defaults_for_timestamp" {
            self.check_explicit_defaults(id, global, value.as_ref())?;
        }
        if definition.name == "sql_slave_skip_counter" && self.state.instance.global_text("gtid_mode") == "ON" {
            return Err(error::err(1858, SKIP_WITH_GTIDS).into());
        }
        if !global && self.routines.is_nested() {
            match definition.name {
                "sql_log_bin" => return Err(error::err(1695, "Cannot change the sql_log_bin inside a stored function or trigger").into()),
                "gtid_next" => return Err(highkey_types::errors::variable_not_settable_in_sf_or_trigger("gtid_next").into()),
                _ => {}
            }
        }
        if !global && definition.name == "sql_log_bin" && self.in_explicit_transaction() {
            return Err(error::err(1694, "Cannot modify @@session.sql_log_bin inside a transaction").into());
        }
        Ok(Some(Change::System { id, global, value }))
    }

    /// SET explicit_defaults_for_timestamp, which must not change within a transaction. Errors 1765, 1766.
    fn check_explicit_defaults(&mut self, id: VarId, global: bool, value: Option<&VarValue>) -> Result<(), MySqlError> {
        if value == Some(&VarValue::Bool(false)) {
            self.state.push_warning(error::warning(1287, "'explicit_defaults_for_timestamp' is deprecated and will be removed in a future release."));
        }
        // What programs print of a log sets it anywhere to what it is.
        if global || value == Some(self.state.variables.get(id)) {
            return Ok(());
        }
        if self.in_explicit_transaction() {
            return Err(highkey_types::errors::variable_not_settable_in_transaction("explicit_defaults_for_timestamp"));
        }
        if self.routines.is_nested() {
            return Err(highkey_types::errors::variable_not_settable_in_sf_or_trigger("explicit_defaults_for_timestamp"));
        }
        Ok(())
    }

    fn default_of(&self, id: VarId, global: bool) -> VarValue {
        if global || id.definition().scope == Scope::SessionOnly {
            return variables::Values::default().get(id).clone();
        }
        self.state.instance.globals().get(id).clone()
    }

    fn convert(&mut self, id: VarId, value: &Value) -> Result<VarValue, MySqlError> {
        // A bare ON or OFF may reach here as text, a number as a decimal of scale 0.
        let mut warnings = Vec::new();
        let converted = variables::convert(id, value, &mut warnings)?;
        self.state.push_warnings(&mut warnings);
        Ok(converted)
    }

    fn set_global(&mut self, id: VarId, value: VarValue) -> Result<(), MySqlError> {
        self.apply_to_engine(id, &value)?;
        self.state.instance.update_globals(|values| {
            values.set(id, value.clone());
            variables::couple(id, &value, values);
        });
        if id.definition().name == "event_scheduler" {
            self.state.instance.event_changes().notify_one();
        }
        if id.definition().name.starts_with("rpl_semi_sync_source_") {
            self.state.instance.apply_semi_sync();
        }
        if matches!(id.definition().name, "mandatory_roles" | "activate_all_roles_on_login") {
            // Who has them may do something else from now on.
            self.state.instance.database().note_accounts_changed();
        }
        Ok(())
    }

    /// Globals that the storage engine reads, and that admission does.
    fn apply_to_engine(&self, id: VarId, value: &VarValue) -> Result<(), MySqlError> {
        let engine = self.state.instance.database().engine();
        match (id.definition().name, value) {
            ("innodb_flush_log_at_trx_commit", VarValue::UInt(level)) => engine.set_flush_log_at_commit(*level as u8),
            ("innodb_fill_factor", VarValue::UInt(percent)) => engine.set_fill_factor(*percent as u8),
            ("innodb_io_capacity", VarValue::UInt(pages)) => engine.set_io_capacity((*pages).min(u32::MAX.into()) as u32),
            ("innodb_log_buffer_size", VarValue::UInt(bytes)) => engine.set_log_buffer_bytes(*bytes as usize),
            ("innodb_redo_log_capacity", VarValue::UInt(bytes)) => engine.set_redo_log_capacity(*bytes),
            ("innodb_spin_wait_delay", VarValue::UInt(delay)) => engine.set_spin_wait_delay(*delay as u32),
            ("innodb_thread_concurrency", VarValue::UInt(limit)) => self.state.instance.admission().set_limit(*limit as usize),
            ("innodb_deadlock_detect", VarValue::Bool(on)) => engine.set_deadlock_detect(*on),
            // Only the server's start decides that.
            ("event_scheduler", VarValue::Text(wanted)) if &**wanted == "DISABLED" => return Err(error::wrong_value_for_var("event_scheduler", wanted)),
            ("event_scheduler", _) if self.state.instance.global_text("event_scheduler") == "DISABLED" => {
                return Err(error::option_prevents("--event-scheduler=DISABLED or --skip-grant-tables"));
            }
            (name, value) => self.apply_to_binlog(name, value)?,
        }
        Ok(())
    }

    /// Globals that the binary log reads. Errors 1779, 1788, 3111.
    fn apply_to_binlog(&self, name: &str, value: &VarValue) -> Result<(), MySqlError> {
        let modes = ["OFF", "OFF_PERMISSIVE", "ON_PERMISSIVE", "ON"];
        if let ("gtid_mode", VarValue::Text(wanted)) = (name, value) {
            let current = self.state.instance.global_text("gtid_mode");
            let place = |mode: &str| modes.iter().position(|m| *m == mode).unwrap_or(0);
            if place(&current).abs_diff(place(wanted)) > 1 {
                return Err(highkey_types::errors::gtid_mode_can_only_change_one_step_at_a_time());
            }
            if &**wanted == "ON" && self.state.instance.global_text("enforce_gtid_consistency") != "ON" {
                return Err(error::err(3111, "SET @@GLOBAL.GTID_MODE = ON is not allowed because ENFORCE_GTID_CONSISTENCY is not ON."));
            }
        }
        if let ("enforce_gtid_consistency", VarValue::Text(wanted)) = (name, value)
            && &**wanted != "ON"
            && self.state.instance.global_text("gtid_mode") == "ON"
        {
            return Err(error::err(1779, variables::GTIDS_NEED_CONSISTENCY));
        }
        let Some(binlog) = self.state.instance.database().binlog() else { return Ok(()) };
        if let ("gtid_purged", VarValue::Text(text)) = (name, value) {
            if self.in_explicit_transaction() {
                return Err(highkey_types::errors::variable_not_settable_in_transaction("gtid_purged"));
            }
            let (add, set) = text.strip_prefix('+').map_or((false, &**text), |set| (true, set));
            let set = set.parse().map_err(|_| error::wrong_value_for_var("gtid_purged", text))?;
            return binlog.declare_purged(add, &set);
        }
        let settings = binlog.settings();
        match (name, value) {
            ("server_id", VarValue::UInt(id)) => settings.server_id.store(*id as u32, Ordering::Relaxed),
            ("max_binlog_size", VarValue::UInt(bytes)) => settings.max_size.store(*bytes, Ordering::Relaxed),
            ("max_binlog_cache_size", VarValue::UInt(bytes)) => settings.max_cache_size.store(*bytes, Ordering::Relaxed),
            ("binlog_expire_logs_seconds", VarValue::UInt(seconds)) => settings.expire_seconds.store(*seconds, Ordering::Relaxed),
            ("binlog_row_metadata", VarValue::Text(text)) => settings.full_metadata.store(&**text == "FULL", Ordering::Relaxed),
            ("gtid_mode", VarValue::Text(mode)) => settings.assigns_gtids.store(mode.starts_with("ON"), Ordering::Relaxed),
            ("binlog_checksum", VarValue::Text(kind)) => {
                settings.checksum.store(&**kind == "CRC32", Ordering::Relaxed);
                // A file's events all have one or none has.
                binlog.rotate()?;
            }
            _ => {}
        }
        Ok(())
    }

    async fn set_session(&mut self, id: VarId, value: VarValue) -> Result<(), MySqlError> {
        let name = id.definition().name;
        let number = match &value {
            VarValue::UInt(n) => *n,
            VarValue::Bool(b) => u64::from(*b),
            _ => 0,
        };
        match name {
            "last_insert_id" | "identity" => {
                self.state.last_insert_id = number;
                return Ok(());
            }
            "insert_id" => {
                self.state.next_insert_id = Some(number);
                return Ok(());
            }
            "gtid_next" => {
                let VarValue::Text(text) = &value else { return Err(error::wrong_type_for_var("gtid_next")) };
                self.set_gtid_next(text).await?;
                let text = self.gtid.text();
                Arc::make_mut(&mut self.state.variables).set(id, VarValue::Text(text.into()));
                return Ok(());
            }
            "transaction_isolation" | "transaction_read_only" if self.in_explicit_transaction() => {
                // Allowed: it is for transactions to come.
            }
            _ => {}
        }
        let was_autocommit = self.state.config.autocommit;
        if name == "autocommit" && !was_autocommit && number != 0 {
            self.check_outside_xa()?;
        }
        // A character set that is assigned again has its default collation again.
        if *self.state.variables.get(id) != value || variables::collation_behind(id).is_some() {
            let values = Arc::make_mut(&mut self.state.variables);
            values.set(id, value.clone());
            variables::couple(id, &value, values);
            self.state.refresh();
        }
        if name == "autocommit" && !was_autocommit && self.state.config.autocommit {
            self.autocommit_turned_on().await?;
        }
        Ok(())
    }

    fn in_explicit_transaction(&self) -> bool {
        self.transaction.is_open(self.state.config.autocommit)
    }

    /// The collation that SET NAMES asks for.
    fn names_collation(&self, charset: Option<&str>, collation: Option<&str>) -> Result<&'static Collation, MySqlError> {
        Ok(match (charset, collation) {
            (None, _) => Collation::by_name(&self.state.instance.globals().text("collation_connection")).unwrap_or_else(Collation::utf8mb4),
            (Some(charset), None) => Collation::default_among(client_charset(charset)?, self.state.config.utf8mb4),
            (Some(charset), Some(name)) => {
                let charset_found = client_charset(charset)?;
                let collation = Collation::by_name(name).ok_or_else(|| error::unknown_collation(name))?;
                if collation.charset != charset_found {
                    return Err(error::collation_charset_mismatch(name, charset));
                }
                collation
            }
        })
    }

    /// SET CHARACTER SET: client and results as named, the connection as the database.
    fn set_character_set(&mut self, charset: Charset) {
        let database = self.state.variables.text("collation_database");
        let values = Arc::make_mut(&mut self.state.variables);
        for name in ["character_set_client", "character_set_results"] {
            values.set(variables::find(name).expect("in the table"), VarValue::Text(charset.name().into()));
        }
        let id = variables::find("collation_connection").expect("in the table");
        let value = VarValue::Text(database.into());
        values.set(id, value.clone());
        variables::couple(id, &value, values);
        self.state.refresh();
    }

    fn set_transaction(&mut self, scope: Option<VariableScope>, level: Option<IsolationLevel>, access: Option<AccessMode>) -> Result<(), MySqlError> {
        let read_only = access.map(|a| a == AccessMode::ReadOnly);
        if scope.is_none() {
            return self.set_next_transaction(level.map(isolation), read_only);
        }
        let mut changes = Vec::new();
        if let Some(level) = level {
            let text = match level {
                IsolationLevel::ReadUncommitted => "READ-UNCOMMITTED",
                IsolationLevel::ReadCommitted => "READ-COMMITTED",
                IsolationLevel::RepeatableRead => "REPEATABLE-READ",
                IsolationLevel::Serializable => "SERIALIZABLE",
            };
            changes.push(("transaction_isolation", VarValue::Text(text.into())));
        }
        if let Some(read_only) = read_only {
            changes.push(("transaction_read_only", VarValue::Bool(read_only)));
        }
        for (name, value) in changes {
            let id = variables::find(name).expect("in the table");
            debug_assert!(matches!(id.definition().kind, Kind::Enum(_) | Kind::Bool));
            if scope == Some(VariableScope::Global) {
                self.state.instance.update_globals(|values| values.set(id, value));
            } else {
                Arc::make_mut(&mut self.state.variables).set(id, value);
            }
        }
        self.state.refresh();
        Ok(())
    }
}
