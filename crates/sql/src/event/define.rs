//! CREATE, ALTER and DROP EVENT, and the definitions in SQL.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use highkey_table::{EventDef, EventSchedule, EventStatus};
use highkey_types::{IntervalUnit, MySqlError, Str, Value, errors, string_literal};

use super::schedule::{count_of, interval_text, seconds_of, wall_clock};
use crate::execute::{BoundTables, Failure, Outcome};
use crate::expr;
use crate::expr::convert::{to_datetime, to_text};
use crate::functions;
use crate::parse::ast::{AlterEvent, CreateEvent, EventClauses, Expr, ObjectName, ScheduleClause};
use crate::parse::print::quote;
use crate::routine::check_event_body;
use crate::session::{Session, error};
use crate::variables::SqlModes;

/// Of so many parts an interval may be, at most.
const MAX_COUNT: u64 = 1_000_000_000;

impl Session {
    /// CREATE EVENT.
    pub(crate) async fn create_event(&mut self, create: &CreateEvent) -> Result<Outcome, Failure> {
        let schema = self.program_schema(&create.name)?;
        let name = checked_name(&create.name)?;
        let clauses = &create.clauses;
        let (Some(clause), Some(body)) = (&clauses.schedule, &clauses.body) else { return Err(error::internal("an event without schedule or body").into()) };
        let schedule = self.event_schedule(clause).await?;
        let database = self.state.instance.database().clone();
        let catalog = database.catalog();
        let schema_collation = catalog.schema(&schema).map(|schema| schema.collation).ok_or_else(|| error::bad_db(&schema))?;
        if catalog.event(&schema, name).is_some() {
            let there = errors::event_already_exists(name);
            if !create.if_not_exists {
                return Err(there.into());
            }
            self.state.note(there.code, there.message);
            return Ok(Outcome::ok());
        }
        self.check_server_writable()?;
        let mut status = clauses.status.unwrap_or(EventStatus::Enabled);
        let preserve = clauses.preserve.unwrap_or(false);
        if self.is_past(&schedule) {
            if !preserve {
                let past = errors::event_cannot_create_in_the_past();
                self.state.note(past.code, past.message);
                return Ok(Outcome::ok());
            }
            if status == EventStatus::Enabled {
                status = EventStatus::Disabled;
                self.note_disabled();
            }
        }
        let definer = self.definer_of_new(create.definer.as_ref());
        let now = self.now();
        let def = EventDef {
            schema,
            name: name.into(),
            body: body.as_str().into(),
            schedule,
            time_zone: self.state.config.time_zone.name().into(),
            status: self.status_here(status),
            preserve,
            comment: clauses.comment.as_deref().unwrap_or_default().into(),
            definer,
            sql_mode: self.state.config.modes.0,
            charset: self.state.config.charset_client,
            collation: self.state.config.collation_connection,
            schema_collation,
            originator: self.originator(),
            created_at: now,
            altered_at: now,
            last_executed: None,
        };
        check_event_body(&def)?;
        let text = format!("CREATE DEFINER={} EVENT {}{}", definer_text(&def), full_name(&def.schema, &def.name), all_clauses(&def));
        let cx = self.ddl_context_logging(text.into());
        database.create_event(&cx, def).await?;
        self.state.instance.event_changes().notify_one();
        Ok(Outcome::ok())
    }

    /// ALTER EVENT.
    pub(crate) async fn alter_event(&mut self, alter: &AlterEvent) -> Result<Outcome, Failure> {
        let schema = self.program_schema(&alter.name)?;
        let name = checked_name(&alter.name)?;
        let clauses = &alter.clauses;
        let renamed = match &alter.renamed {
            Some(renamed) => Some((self.program_schema(renamed)?, checked_name(renamed)?)),
            None => None,
        };
        if renamed.as_ref().is_some_and(|(to, to_name)| *to == schema && to_name.to_lowercase() == name.to_lowercase()) {
            return Err(errors::event_same_name().into());
        }
        let schedule = match &clauses.schedule {
            Some(clause) => Some(self.event_schedule(clause).await?),
            None => None,
        };
        let past = schedule.as_ref().is_some_and(|schedule| self.is_past(schedule));
        let database = self.state.instance.database().clone();
        let old = database.catalog().event(&schema, name).ok_or_else(|| errors::event_does_not_exist(name))?;
        self.check_server_writable()?;
        // On a replica nobody has said who alters it.
        let definer = if self.replica.is_some() && alter.definer.is_none() { old.definer.clone() } else { self.definer_of(alter.definer.as_ref()) };
        if past && !clauses.preserve.unwrap_or(old.preserve) {
            return Err(errors::event_cannot_alter_in_the_past().into());
        }
        let disabled = past && clauses.status.unwrap_or(EventStatus::Enabled) == EventStatus::Enabled;
        let status = if disabled { Some(EventStatus::Disabled) } else { clauses.status };
        let schema_collation = database.catalog().schema(&schema).map(|schema| schema.collation);
        let config = &self.state.config;
        let (time_zone, sql_mode, charset, collation) = (Str::from(config.time_zone.name()), config.modes.0, config.charset_client, config.collation_connection);
        let (originator, now, on_replica) = (self.originator(), self.now(), self.replica.is_some());
        let change = |def: &mut EventDef| {
            if let Some(schedule) = schedule {
                (def.schedule, def.time_zone, def.last_executed) = (schedule, time_zone.clone(), None);
            }
            if let Some(body) = &clauses.body {
                (def.body, def.sql_mode, def.charset, def.collation) = (body.as_str().into(), sql_mode, charset, collation);
                def.schema_collation = schema_collation.unwrap_or(def.schema_collation);
            }
            if let Some(comment) = &clauses.comment {
                def.comment = comment.as_str().into();
            }
            def.preserve = clauses.preserve.unwrap_or(def.preserve);
            def.status = if on_replica { EventStatus::SlavesideDisabled } else { status.unwrap_or(def.status) };
            (def.definer, def.originator, def.altered_at) = (definer.clone(), originator, now);
        };
        let mut altered = EventDef::clone(&old);
        change(&mut altered);
        if clauses.body.is_some() {
            check_event_body(&altered)?;
        }
        let to = renamed.as_ref().map(|(schema, name)| format!(" RENAME TO {}", full_name(schema, name)));
        let text = format!("ALTER DEFINER={} EVENT {}{}", definer_text(&altered), full_name(&schema, name), said_clauses(&altered, clauses, to, status, sql_mode));
        let cx = self.ddl_context_logging(text.into());
        let renamed = renamed.as_ref().map(|(schema, name)| (&**schema, *name));
        database.alter_event(&cx, (&schema, name), renamed, change).await?;
        if disabled {
            self.note_disabled();
        }
        self.state.instance.event_changes().notify_one();
        Ok(Outcome::ok())
    }

    /// DROP EVENT.
    pub(crate) async fn drop_event(&mut self, if_exists: bool, name: &ObjectName) -> Result<Outcome, Failure> {
        let schema = self.program_schema(name)?;
        let cx = self.ddl_context();
        let database = self.state.instance.database().clone();
        if database.catalog().event(&schema, &name.name).is_some() {
            self.check_server_writable()?;
        }
        match database.drop_event(&cx, (&schema, &name.name)).await {
            Ok(()) => {
                self.state.instance.event_changes().notify_one();
                Ok(Outcome::ok())
            }
            Err(e) if e.code == 1539 && if_exists => {
                let missing = errors::sp_does_not_exist("Event", &name.name);
                self.state.note(missing.code, missing.message);
                Ok(Outcome::ok())
            }
            Err(e) => Err(e.into()),
        }
    }

    /// What a source says runs on the source.
    fn status_here(&self, status: EventStatus) -> EventStatus {
        if self.replica.is_some() { EventStatus::SlavesideDisabled } else { status }
    }

    /// The server where the statement comes from.
    fn originator(&self) -> u32 {
        let source = self.replica.as_ref().and_then(|replica| replica.log).map(|source| source.server_id);
        source.unwrap_or_else(|| self.state.instance.global_u64("server_id") as u32)
    }

    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_micros(self.state.now_micros.max(0) as u64)
    }

    fn now_seconds(&self) -> i64 {
        self.state.now_micros.div_euclid(1_000_000)
    }

    /// Its last run would have been before the statement.
    fn is_past(&self, schedule: &EventSchedule) -> bool {
        match schedule {
            EventSchedule::At(last) | EventSchedule::Every { ends: Some(last), .. } => *last < self.now_seconds(),
            EventSchedule::Every { ends: None, .. } => false,
        }
    }

    fn note_disabled(&mut self) {
        let disabled = errors::event_exec_time_in_the_past();
        self.state.note(disabled.code, disabled.message);
    }

    /// The moments that ON SCHEDULE means. Errors: 1235, 1525, 1542, 1543, and those of the expressions.
    async fn event_schedule(&mut self, clause: &ScheduleClause) -> Result<EventSchedule, Failure> {
        let (count, unit, starts, ends) = match clause {
            ScheduleClause::At(at) => {
                let moment = self.event_moment(at).await?;
                return Ok(EventSchedule::At(moment.map_err(|value| errors::wrong_value("AT", value))?));
            }
            ScheduleClause::Every { count, unit, starts, ends } => (count, *unit, starts, ends),
        };
        let count = self.event_count(count, unit).await?;
        let starts = match starts {
            Some(starts) => self.event_moment(starts).await?.map_err(|value| errors::wrong_value("STARTS", value))?,
            None => self.now_seconds(),
        };
        let ends = match ends {
            Some(ends) => Some(self.event_moment(ends).await?.map_err(|_| errors::event_ends_before_starts())?),
            None => None,
        };
        if ends.is_some_and(|ends| ends <= starts) {
            return Err(errors::event_ends_before_starts().into());
        }
        Ok(EventSchedule::Every { count, unit, starts, ends })
    }

    async fn event_count(&mut self, ast: &Expr, unit: IntervalUnit) -> Result<u32, Failure> {
        if unit.has_micros() {
            return Err(errors::not_supported_yet("MICROSECOND").into());
        }
        let value = self.event_value(ast).await?;
        let interval = functions::interval(&value, unit, &mut self.state);
        let interval = interval.ok_or_else(|| errors::wrong_value("INTERVAL", to_text(&value).unwrap_or("NULL".into())))?;
        let count = count_of(&interval, unit);
        if interval.negative || count == 0 || count > MAX_COUNT {
            return Err(errors::event_interval_not_positive_or_too_big().into());
        }
        Ok(count as u32)
    }

    /// The moment that a value means, in seconds since 1970, UTC; or the text of one that means none.
    async fn event_moment(&mut self, ast: &Expr) -> Result<Result<i64, String>, Failure> {
        let value = self.event_value(ast).await?;
        let local = to_datetime(&value, &mut self.state);
        let moment = local.and_then(|local| seconds_of(&local, &self.state.config.time_zone));
        Ok(moment.ok_or_else(|| to_text(&value).unwrap_or("NULL".into()).into_owned()))
    }

    /// The value of an expression that reads no table. Error 1235 for one that does.
    async fn event_value(&mut self, ast: &Expr) -> Result<Value, Failure> {
        let mut bound = self.bind_constant_and_open(ast).await?;
        let mut tables = BoundTables::default();
        tables.collect_expr(&bound);
        if !tables.tables.is_empty() || !tables.views.is_empty() {
            return Err(errors::not_supported_yet("Usage of subqueries or stored function calls as part of this statement").into());
        }
        self.resolve_subqueries(&mut bound).await?;
        Ok(expr::eval(&bound, &[], &mut self.state)?)
    }
}

/// Errors 1059 and 1458.
fn checked_name(name: &ObjectName) -> Result<&str, MySqlError> {
    let name = name.name.as_str();
    if name.is_empty() || name.ends_with(' ') {
        return Err(errors::sp_wrong_name(name));
    }
    if name.chars().count() > 64 {
        return Err(error::too_long_ident(name));
    }
    Ok(name)
}

fn full_name(schema: &str, name: &str) -> String {
    format!("{}.{}", quote(schema), quote(name))
}

fn definer_text(def: &EventDef) -> String {
    format!("{}@{}", quote(&def.definer.0), quote(&def.definer.1))
}

/// The statement that would make the event, for SHOW CREATE EVENT.
pub(super) fn definition(def: &EventDef) -> String {
    format!("CREATE DEFINER={} EVENT {}{}", definer_text(def), quote(&def.name), all_clauses(def))
}

/// All that can be said of it, each behind a space.
fn all_clauses(def: &EventDef) -> String {
    let comment = if def.comment.is_empty() { String::new() } else { comment_clause(&def.comment, def.sql_mode) };
    schedule_clause(def) + &completion_clause(def) + status_clause(def.status) + &comment + &body_clause(def)
}

/// What an ALTER EVENT has said of it, `renamed` being a clause, as it is read under that `sql_mode`.
fn said_clauses(def: &EventDef, said: &EventClauses, renamed: Option<String>, status: Option<EventStatus>, sql_mode: u64) -> String {
    let clauses = [
        said.schedule.as_ref().map(|_| schedule_clause(def)),
        said.preserve.map(|_| completion_clause(def)),
        renamed,
        status.map(|status| status_clause(status).to_owned()),
        said.comment.as_ref().map(|comment| comment_clause(comment, sql_mode)),
        said.body.as_ref().map(|_| body_clause(def)),
    ];
    clauses.into_iter().flatten().collect()
}

fn schedule_clause(def: &EventDef) -> String {
    let shown = |moment| wall_clock(def, moment).format(0);
    match def.schedule {
        EventSchedule::At(at) => format!(" ON SCHEDULE AT '{}'", shown(at)),
        EventSchedule::Every { count, unit, starts, ends } => {
            let ends = ends.map_or_else(String::new, |ends| format!(" ENDS '{}'", shown(ends)));
            format!(" ON SCHEDULE EVERY {} STARTS '{}'{ends}", interval_text(count, unit), shown(starts))
        }
    }
}

fn completion_clause(def: &EventDef) -> String {
    format!(" ON COMPLETION{} PRESERVE", if def.preserve { "" } else { " NOT" })
}

fn status_clause(status: EventStatus) -> &'static str {
    match status {
        EventStatus::Enabled => " ENABLE",
        EventStatus::Disabled => " DISABLE",
        EventStatus::SlavesideDisabled => " DISABLE ON SLAVE",
    }
}

fn comment_clause(comment: &str, sql_mode: u64) -> String {
    // With quotes doubled, as it is read under any sql_mode.
    let literal = if SqlModes(sql_mode).has(SqlModes::NO_BACKSLASH_ESCAPES) { format!("'{}'", comment.replace('\'', "''")) } else { string_literal(comment) };
    format!(" COMMENT {literal}")
}

fn body_clause(def: &EventDef) -> String {
    format!(" DO {}", def.body)
}
