//! SHOW and DESCRIBE.
//!
//! Each form makes an [`Answer`]: columns and rows. LIKE filters the column of names (the first one, but of routines, triggers and events), WHERE is any condition over its columns.

mod binlog;
mod create;
mod facts;
mod innodb;
mod tls;

use std::collections::BTreeSet;
use std::sync::Arc;

use highkey_table::{AccountName, DYNAMIC_PRIVILEGES, MetadataObject, RoutineKind, Table, UserDef, View};
use highkey_types::{Collation, Level, MySqlError, Str, Value};

use crate::bind;
use crate::event;
use crate::execute;
use crate::expr;
use crate::information_schema;
use crate::parse::ast::{ObjectName, Show, ShowFilter, ShowWhat, UserName, VariableScope};
use crate::plan::{ExprType, Field, VirtualTable};
use crate::privileges::{RoleSettings, column_cell, grant_statements, grants_with_roles, role_name};
use crate::replica;
use crate::routine;
use crate::session::error::{self, err};
use crate::session::SessionState;
use crate::sys;
use crate::variables::SqlModes;

pub(crate) use binlog::Events as BinlogEvents;
pub use create::definition;
pub use crate::parse::print::quote;
use facts::PRIVILEGES;
pub use facts::{TableSize, engines, hidden_key, index_names, index_rows, processes, schemas, seen_schemas, sees_process, sort_length, status_rows, table_size, variable_rows};

/// A result set made in memory.
pub struct Answer {
    pub fields: Vec<Field>,
    pub rows: Vec<Vec<Value>>,
}

impl Answer {
    /// `columns` as `information_schema::definitions` writes them: `Name s64;Other u?`.
    pub fn new(columns: &str, rows: Vec<Vec<Value>>) -> Answer {
        Answer { fields: fields(columns), rows }
    }
}

/// Fields of computed columns.
pub fn fields(columns: &str) -> Vec<Field> {
    columns
        .split(';')
        .map(|c| {
            let (name, ty, nullable) = information_schema::column(c);
            Field::computed(name, ExprType::column(ty, nullable))
        })
        .collect()
}

fn t(text: impl AsRef<str>) -> Value {
    Value::Text(text.as_ref().into())
}

fn u(n: impl Into<u64>) -> Value {
    Value::UInt(n.into())
}

/// Runs a SHOW.
pub fn show(state: &mut SessionState, show: &Show) -> Result<Answer, MySqlError> {
    state.check_show(show)?;
    let mut answer = make(state, &show.what, show.filter.as_ref())?;
    match &show.filter {
        None => {}
        Some(ShowFilter::Like(pattern)) => {
            // Tables and databases compare as file names do: with case.
            let collation = match show.what {
                ShowWhat::Tables { .. } | ShowWhat::TableStatus { .. } | ShowWhat::Databases => Collation::by_name("utf8mb4_bin").unwrap_or_else(Collation::utf8mb4),
                _ => Collation::by_name("utf8mb4_general_ci").unwrap_or_else(Collation::utf8mb4),
            };
            let named = match show.what {
                ShowWhat::ProcedureStatus | ShowWhat::FunctionStatus | ShowWhat::Events { .. } => 1,
                // By their tables.
                ShowWhat::Triggers { .. } => 2,
                _ => 0,
            };
            answer.rows.retain(|row| row[named].as_str().is_some_and(|s| collation.like(s.as_bytes(), pattern.as_bytes(), Some('\\'))));
        }
        Some(ShowFilter::Where(condition)) => {
            let bound = bind::bind_fields_expr(condition, &answer.fields, true, state)?;
            let mut kept = Vec::with_capacity(answer.rows.len());
            for row in answer.rows {
                if expr::eval_condition(&bound, &row, state)? {
                    kept.push(row);
                }
            }
            answer.rows = kept;
        }
    }
    Ok(answer)
}

fn make(state: &mut SessionState, what: &ShowWhat, filter: Option<&ShowFilter>) -> Result<Answer, MySqlError> {
    let like = match filter {
        Some(ShowFilter::Like(pattern)) => Some(pattern.as_str()),
        _ => None,
    };
    // The heading of SHOW TABLES and SHOW DATABASES carries the pattern.
    let heading = |name: String| match like {
        Some(pattern) => format!("{name} ({pattern})"),
        None => name,
    };
    Ok(match what {
        ShowWhat::Databases => {
            let rows = seen_schemas(state).into_iter().map(|(name, _)| vec![Value::Text(name)]).collect();
            renamed(Answer::new("Database s64", rows), heading("Database".into()))
        }
        ShowWhat::Tables { full, schema } => {
            let schema = known_schema(state, schema.as_deref())?;
            let rows = table_names(state, &schema).into_iter().map(|(name, kind)| if *full { vec![t(name), t(kind)] } else { vec![t(name)] }).collect();
            let columns = if *full { "Tables s64;Table_type s11" } else { "Tables s64" };
            renamed(Answer::new(columns, rows), heading(format!("Tables_in_{schema}")))
        }
        ShowWhat::OpenTables { schema } => {
            let schema = known_schema(state, schema.as_deref())?;
            let locks = state.instance.database().metadata_lock_reports();
            // Those that LOCK TABLES has: a statement's tables are in use only while it runs.
            let in_use = |name: &str| {
                let is_table = |object: &MetadataObject| matches!(object, MetadataObject::Table(of, table) if **of == *schema && **table == *name);
                Value::Int(locks.iter().filter(|lock| lock.is_granted && lock.is_of_session && is_table(&lock.object)).count() as i64)
            };
            let tables = state.instance.database().catalog().tables(&schema);
            let seen = tables.iter().filter(|table| state.sees_table(&schema, &table.def().name));
            let rows = seen.map(|table| vec![t(&schema), t(&table.def().name), in_use(&table.def().name), Value::Int(0)]).collect();
            Answer::new("Database s64;Table s64;In_use i;Name_locked i", rows)
        }
        ShowWhat::TableStatus { schema } => {
            let schema = known_schema(state, schema.as_deref())?;
            let catalog = state.instance.database().catalog();
            let mut rows: Vec<Vec<Value>> = catalog.tables(&schema).iter().map(|table| table_status(state, table)).collect();
            let of_server = information_schema::tables_of(&catalog, &schema);
            rows.extend(of_server.iter().filter(|table| information_schema::definition(table).is_some()).map(|table| server_table_status(state, table)));
            rows.extend(sys::views(&catalog, &schema).iter().map(|view| view_status(state, view)));
            rows.retain(|row| row[0].as_str().is_some_and(|name| state.sees_table(&schema, name)));
            rows.sort_by(|a, b| a[0].as_str().cmp(&b[0].as_str()));
            Answer::new(
                "Name s64;Engine s64?;Version u?;Row_format s10?;Rows u?;Avg_row_length u?;Data_length u?;Max_data_length u?;Index_length u?;Data_free u?;Auto_increment u?;Create_time d?;Update_time d?;Check_time d?;Collation s64?;Checksum u?;Create_options s255?;Comment s2048",
                rows,
            )
        }
        ShowWhat::Columns { full, table } => columns(state, table, *full)?,
        ShowWhat::Index { table } => index(state, table)?,
        ShowWhat::CreateTable(name) => {
            if let Some(view) = view(state, name)? {
                return Ok(create_view(state, &view));
            }
            if let Some(table) = server_table(state, name)?
                && let Some(text) = information_schema::definition(&table)
            {
                return Ok(Answer::new("Table s64;Create Table S", vec![vec![t(&table.name), t(text)]]));
            }
            let table = base_table(state, name)?;
            let text = create::table(state, &table);
            Answer::new("Table s64;Create Table S", vec![vec![t(&table.def().name), t(text)]])
        }
        ShowWhat::CreateView(name) => {
            if let Some(view) = view_of_name(state, name)? {
                return Ok(create_view(state, &view));
            }
            let table = base_table(state, name)?;
            return Err(err(1347, format!("'{}.{}' is not VIEW", table.def().schema, table.def().name)));
        }
        ShowWhat::CreateDatabase { if_not_exists, name } => {
            let schema = state.instance.database().catalog().schema(name).ok_or_else(|| error::bad_db(name))?;
            Answer::new("Database s64;Create Database s1024", vec![vec![t(&schema.name), t(create::database(&schema, *if_not_exists))]])
        }
        ShowWhat::CreateUser(user) => {
            let account = account(state, user)?;
            let heading = format!("CREATE USER for {}@{}", account.user, account.host);
            renamed(Answer::new("User s256", vec![vec![t(create::user(&account))]]), heading)
        }
        ShowWhat::CreateOther { kind, name } if kind == "PROCEDURE" => create_routine(state, RoutineKind::Procedure, name)?,
        ShowWhat::CreateOther { kind, name } if kind == "FUNCTION" => create_routine(state, RoutineKind::Function, name)?,
        ShowWhat::CreateOther { kind, name } if kind == "TRIGGER" => create_trigger(state, name)?,
        ShowWhat::CreateOther { kind, name } if kind == "EVENT" => event::create_event(state, name)?,
        ShowWhat::CreateOther { kind, name } => return Err(err(1305, format!("{kind} {} does not exist", name.name))),
        ShowWhat::Variables { scope } => {
            let global = *scope == Some(VariableScope::Global);
            Answer::new("Variable_name s64;Value s1024", variable_rows(state, global))
        }
        ShowWhat::Status { scope } => Answer::new("Variable_name s64;Value s1024", status_rows(state, *scope == Some(VariableScope::Global))),
        ShowWhat::Warnings { count_only: true, .. } => renamed(Answer::new("c u", vec![vec![u(state.diagnostics.count())]]), "@@session.warning_count".into()),
        ShowWhat::Errors { count_only: true, .. } => renamed(Answer::new("c u", vec![vec![u(state.diagnostics.error_count())]]), "@@session.error_count".into()),
        ShowWhat::Warnings { limit, .. } => conditions(state, *limit, false),
        ShowWhat::Errors { limit, .. } => conditions(state, *limit, true),
        ShowWhat::ProcessList { full } => {
            let rows = processes(state).into_iter().map(|p| p.into_row(*full)).collect();
            Answer::new("Id u;User s32;Host s261;db s64?;Command s16;Time I;State s64?;Info S?", rows)
        }
        ShowWhat::Engines => Answer::new("Engine s64;Support s8;Comment s80;Transactions s3?;XA s3?;Savepoints s3?", engines()),
        ShowWhat::Engine { name, what } => engine(state, name, what)?,
        ShowWhat::CharacterSet => {
            let mut all = highkey_types::Charset::ALL;
            all.sort_by_key(|c| c.name());
            let rows = all.iter().map(|c| vec![t(c.name()), t(c.description()), t(Collation::default_among(*c, state.config.utf8mb4).name), u(c.max_bytes() as u64)]).collect();
            Answer::new("Charset s64;Description s2048;Default collation s64;Maxlen n", rows)
        }
        ShowWhat::Collation => {
            let mut all: Vec<&Collation> = Collation::all().iter().collect();
            all.sort_by_key(|c| c.name);
            let is_default = |c: &Collation| c.id == Collation::default_among(c.charset, state.config.utf8mb4).id;
            let rows = all
                .into_iter()
                .map(|c| {
                    let pad = if c.pad_space { "PAD SPACE" } else { "NO PAD" };
                    vec![t(c.name), t(c.charset.name()), u(c.id), t(if is_default(c) { "Yes" } else { "" }), t("Yes"), u(sort_length(c)), t(pad)]
                })
                .collect();
            Answer::new("Collation s64;Charset s64;Id u;Default s3;Compiled s3;Sortlen n;Pad_attribute s9", rows)
        }
        ShowWhat::Grants { user, using } => grants(state, user.as_ref(), using)?,
        ShowWhat::Privileges => {
            let dynamic = DYNAMIC_PRIVILEGES.iter().map(|name| (*name, "Server Admin", ""));
            let rows = PRIVILEGES.iter().copied().chain(dynamic).map(|(name, context, comment)| vec![t(name), t(context), t(comment)]).collect();
            Answer::new("Privilege s32;Context s64;Comment s128", rows)
        }
        ShowWhat::Plugins => {
            let row = |name: &str, kind: &str| vec![t(name), t("ACTIVE"), t(kind), Value::Null, t("Apache-2.0")];
            let rows = vec![
                row("mysql_native_password", "AUTHENTICATION"),
                row("caching_sha2_password", "AUTHENTICATION"),
                row("InnoDB", "STORAGE ENGINE"),
                row("ngram", "FTPARSER"),
                row("rpl_semi_sync_source", "REPLICATION"),
                row("rpl_semi_sync_replica", "REPLICATION"),
            ];
            Answer::new("Name s64;Status s10;Type s80;Library s64?;License s80?", rows)
        }
        ShowWhat::Triggers { schema } => {
            let schema = known_schema(state, schema.as_deref())?;
            Answer::new(
                "Trigger s64;Event s6;Table s64;Statement S;Timing s6;Created d?;sql_mode s520;Definer s93;character_set_client s64;collation_connection s64;Database Collation s64",
                information_schema::triggers::shown(state, &schema),
            )
        }
        ShowWhat::Events { schema } => {
            let schema = state.schema_of(schema.as_deref())?;
            Answer::new(
                "Db s64;Name s64;Definer s93;Time zone s64;Type s9;Execute at d?;Interval value s256?;Interval field s18?;Starts d?;Ends d?;Status s18;Originator n;character_set_client s64;collation_connection s64;Database Collation s64",
                event::status(state, &schema),
            )
        }
        ShowWhat::ProcedureStatus | ShowWhat::FunctionStatus => Answer::new(
            "Db s64;Name s64;Type s9;Definer s93;Modified d;Created d;Security_type s7;Comment S;character_set_client s64;collation_connection s64;Database Collation s64",
            information_schema::routines::status(state, if matches!(what, ShowWhat::ProcedureStatus) { RoutineKind::Procedure } else { RoutineKind::Function }),
        ),
        ShowWhat::BinaryLogs => binlog::files(state)?,
        ShowWhat::BinaryLogStatus => binlog::status(state)?,
        // Their rows are read and sent in pieces (`BinlogEvents`).
        ShowWhat::BinlogEvents { .. } => binlog::relay_events(),
        ShowWhat::Replicas => binlog::replicas(state),
        ShowWhat::ReplicaStatus { channel: Some(name), .. } | ShowWhat::RelaylogEvents { channel: Some(name) } if !name.is_empty() => {
            return Err(err(3074, format!("Slave channel '{name}' does not exist.")));
        }
        ShowWhat::ReplicaStatus { old_names, .. } => replica::show_status(state, *old_names),
        ShowWhat::RelaylogEvents { .. } => binlog::relay_events(),
        ShowWhat::Profiles => Answer::new("Query_ID n;Duration D;Query s300", Vec::new()),
        ShowWhat::Profile => Answer::new("Status s30;Duration D", Vec::new()),
    })
}

/// The first column under another name.
fn renamed(mut answer: Answer, name: String) -> Answer {
    answer.fields[0].name = name.into();
    answer
}

/// DESCRIBE table [column | pattern].
pub fn describe(state: &mut SessionState, name: &ObjectName, column: Option<&str>) -> Result<Answer, MySqlError> {
    state.check_described(name)?;
    let mut answer = columns(state, name, false)?;
    if let Some(pattern) = column {
        let collation = Collation::by_name("utf8mb4_general_ci").unwrap_or_else(Collation::utf8mb4);
        answer.rows.retain(|row| row[0].as_str().is_some_and(|s| collation.like(s.as_bytes(), pattern.as_bytes(), Some('\\'))));
    }
    Ok(answer)
}

/// A schema's name as it was created, or 1049.
pub fn known_schema(state: &SessionState, schema: Option<&str>) -> Result<Str, MySqlError> {
    let name = state.schema_of(schema)?;
    schemas(state).into_iter().map(|(n, _)| n).find(|n| n == &name || information_schema::is_virtual_schema(&name) && n.eq_ignore_ascii_case(&name)).ok_or_else(|| error::bad_db(&name))
}

fn table_names(state: &SessionState, schema: &str) -> Vec<(String, &'static str)> {
    let catalog = state.instance.database().catalog();
    let mut names: Vec<(String, &'static str)> = catalog.tables(schema).iter().map(|t| (t.def().name.to_string(), "BASE TABLE")).collect();
    names.extend(sys::views(&catalog, schema).iter().map(|v| (v.def().name.to_string(), "VIEW")));
    names.extend(information_schema::tables_of(&catalog, schema).iter().map(|t| (information_schema::shown_name(t), information_schema::table_type(t))));
    names.retain(|(name, _)| state.sees_table(schema, name));
    names.sort();
    names
}

fn base_table(state: &SessionState, name: &ObjectName) -> Result<Arc<Table>, MySqlError> {
    let schema = state.schema_of(name.schema.as_deref())?;
    state.base_table(&schema, &name.name)
}

/// The table of the server's own that a name means, if it means one.
fn server_table(state: &SessionState, name: &ObjectName) -> Result<Option<Arc<VirtualTable>>, MySqlError> {
    let schema = state.schema_of(name.schema.as_deref())?;
    Ok(information_schema::find_shown(&state.instance.database().catalog(), &schema, &name.name).filter(|_| !state.is_temporary(name)))
}

/// The view that a name means, if it means one.
fn view(state: &SessionState, name: &ObjectName) -> Result<Option<Arc<View>>, MySqlError> {
    Ok(view_of_name(state, name)?.filter(|_| !state.is_temporary(name)))
}

/// The view of that name, be it hidden by a temporary table.
fn view_of_name(state: &SessionState, name: &ObjectName) -> Result<Option<Arc<View>>, MySqlError> {
    let schema = state.schema_of(name.schema.as_deref())?;
    Ok(sys::find_view(&state.instance.database().catalog(), &schema, &name.name))
}

fn create_view(state: &SessionState, view: &View) -> Answer {
    let def = view.def();
    let row = vec![t(&def.name), t(execute::view::definition(state, view)), t(def.charset.name()), t(def.collation.name)];
    Answer::new("View s64;Create View S;character_set_client s32;collation_connection s32", vec![row])
}

/// Error 1305 for one that is not there, or that the account does not see.
fn create_routine(state: &SessionState, kind: RoutineKind, name: &ObjectName) -> Result<Answer, MySqlError> {
    let schema = state.schema_of(name.schema.as_deref())?;
    let found = sys::find_routine(&state.instance.database().catalog(), &schema, kind, &name.name).filter(|def| routine::is_seen(state, def));
    let def = found.ok_or_else(|| highkey_types::errors::sp_does_not_exist(kind.name(), &name.name))?;
    let text = if routine::shows_body(state, &def) { t(routine::definition(&def)?) } else { Value::Null };
    let modes = SqlModes(def.sql_mode).to_string();
    let row = vec![t(&def.name), t(modes), text, t(def.charset.name()), t(def.collation.name), t(def.schema_collation.name)];
    let columns = if kind == RoutineKind::Function {
        "Function s64;sql_mode s520;Create Function S?;character_set_client s32;collation_connection s32;Database Collation s32"
    } else {
        "Procedure s64;sql_mode s520;Create Procedure S?;character_set_client s32;collation_connection s32;Database Collation s32"
    };
    Ok(Answer::new(columns, vec![row]))
}

/// Error 1360 for one that is not there, or whose table's triggers the account does not see.
fn create_trigger(state: &SessionState, name: &ObjectName) -> Result<Answer, MySqlError> {
    let schema = state.schema_of(name.schema.as_deref())?;
    let found = state.instance.database().catalog().trigger(&schema, &name.name).filter(|(table, _)| information_schema::triggers::are_seen(state, table));
    let (table, trigger) = found.ok_or_else(highkey_types::errors::trg_does_not_exist)?;
    let def = &trigger.routine;
    let modes = SqlModes(def.sql_mode).to_string();
    let created = Value::DateTime(information_schema::wall_clock(state, def.created_at));
    let text = routine::trigger_definition(table.def(), &trigger);
    let row = vec![t(&def.name), t(modes), t(text), t(def.charset.name()), t(def.collation.name), t(def.schema_collation.name), created];
    let columns = "Trigger s64;sql_mode s520;SQL Original Statement S;character_set_client s32;collation_connection s32;Database Collation s32;Created d?";
    Ok(Answer::new(columns, vec![row]))
}

fn view_status(state: &SessionState, view: &View) -> Vec<Value> {
    let mut row = vec![t(&view.def().name)];
    row.resize(17, Value::Null);
    row[11] = Value::DateTime(information_schema::wall_clock(state, view.def().created_at));
    row.push(t("VIEW"));
    row
}

/// How many rows a table of the server's own has is not known before they are made.
fn server_table_status(state: &SessionState, table: &VirtualTable) -> Vec<Value> {
    let mut row = vec![t(&table.name), t("InnoDB"), u(10u64), t("Dynamic")];
    row.extend((0..6).map(|_| u(0u64)));
    row.extend([Value::Null, Value::DateTime(information_schema::wall_clock(state, state.instance.started_at()))]);
    row.extend([Value::Null, Value::Null, t("utf8_bin"), Value::Null, t(""), t("")]);
    row
}

fn table_status(state: &SessionState, table: &Arc<Table>) -> Vec<Value> {
    let def = table.def();
    let size = table_size(state, table);
    vec![
        t(&def.name),
        t("InnoDB"),
        u(10u64),
        t(information_schema::row_format(def)),
        u(size.rows),
        u(size.average()),
        u(size.data_bytes),
        u(0u64),
        u(size.index_bytes),
        u(0u64),
        information_schema::auto_increment(table),
        Value::DateTime(information_schema::wall_clock(state, def.created_at)),
        information_schema::changed_at(state, table),
        Value::Null,
        t(def.collation.name),
        Value::Null,
        t(information_schema::create_options(def)),
        t(&def.comment),
    ]
}

fn columns(state: &SessionState, name: &ObjectName, full: bool) -> Result<Answer, MySqlError> {
    let schema = state.schema_of(name.schema.as_deref())?;
    let access = state.access().filter(|_| !state.is_temporary(name));
    let mut rows = Vec::new();
    let mut push = |column: &highkey_table::ColumnDef, key: &str| {
        let Some(privileges) = column_cell(access, &schema, &name.name, &column.name) else { return };
        let nullable = t(if column.nullable { "YES" } else { "NO" });
        let default = information_schema::column_default(column).map_or(Value::Null, t);
        let extra = t(information_schema::column_extra(column));
        if full {
            let collates = column.ty.is_text() || matches!(column.ty.kind, highkey_types::TypeKind::Enum(_) | highkey_types::TypeKind::Set(_));
            let collation = if collates { t(column.ty.collation.name) } else { Value::Null };
            rows.push(vec![t(&column.name), t(column.ty.to_string()), collation, nullable, t(key), default, extra, t(privileges), t(&column.comment)]);
        } else {
            rows.push(vec![t(&column.name), t(column.ty.to_string()), nullable, t(key), default, extra]);
        }
    };
    match information_schema::find_shown(&state.instance.database().catalog(), &schema, &name.name) {
        Some(table) => {
            for (name, ty, nullable) in &table.columns {
                let mut def = highkey_table::ColumnDef::new(name, ty.clone());
                def.nullable = *nullable;
                push(&def, "");
            }
        }
        None => match view(state, name)? {
            Some(view) => execute::view::columns(state, &view)?.iter().for_each(|column| push(column, "")),
            None => {
                let table = base_table(state, name)?;
                let def = table.def();
                let hidden = hidden_key(state, def);
                for (i, column) in def.columns.iter().enumerate().filter(|(i, _)| Some(*i) != hidden) {
                    push(column, information_schema::column_key(def, i));
                }
            }
        },
    }
    let columns = if full {
        "Field s64;Type S;Collation s64?;Null s3;Key s3;Default S?;Extra s256;Privileges s154;Comment S"
    } else {
        "Field s64;Type S;Null s3;Key s3;Default S?;Extra s256"
    };
    Ok(Answer::new(columns, rows))
}

fn index(state: &SessionState, name: &ObjectName) -> Result<Answer, MySqlError> {
    const COLUMNS: &str = "Table s64;Non_unique I;Key_name s64;Seq_in_index n;Column_name s64?;Collation s1?;Cardinality i?;Sub_part i?;Packed s64?;Null s3;Index_type s11;Comment s8;Index_comment s2048;Visible s3;Expression S?";
    if view(state, name)?.is_some() {
        return Ok(Answer::new(COLUMNS, Vec::new()));
    }
    let table = base_table(state, name)?;
    let def = table.def();
    let rows = index_rows(state, &table).into_iter().map(|row| std::iter::once(t(&def.name)).chain(row).collect()).collect();
    Ok(Answer::new(COLUMNS, rows))
}

fn conditions(state: &SessionState, limit: Option<(u64, u64)>, errors_only: bool) -> Answer {
    let (offset, count) = limit.unwrap_or((0, u64::MAX));
    let rows = state
        .diagnostics
        .conditions()
        .iter()
        .filter(|w| !errors_only || w.level == Level::Error)
        .skip(offset as usize)
        .take(usize::try_from(count).unwrap_or(usize::MAX))
        .map(|w| vec![t(w.level.name()), u(w.code), t(&w.message)])
        .collect();
    Answer::new("Level s7;Code n;Message s512", rows)
}

/// What an account may do; `None` is the session's own, with its active roles unless others are named.
fn grants(state: &SessionState, user: Option<&UserName>, using: &[UserName]) -> Result<Answer, MySqlError> {
    let own = UserName { current: true, user: String::new(), host: String::new() };
    let account = account(state, user.unwrap_or(&own))?;
    let (catalog, settings) = (state.instance.database().catalog(), RoleSettings::of(&state.instance.globals()));
    let active = if user.is_none() && using.is_empty() { state.active_roles().clone() } else { using.iter().map(role_name).collect() };
    let name = AccountName { user: account.user.clone(), host: account.host.clone() };
    execute::roles::check_available(&active, &settings.available(&catalog, &account), &name)?;
    let mut roles: BTreeSet<AccountName> = account.grants.roles.difference(&account.grants.administered).cloned().collect();
    if user.is_none() {
        roles.extend(settings.mandatory_of(&catalog, &account));
    }
    let mut granted = grants_with_roles(&catalog, &account, &active);
    granted.administered.extend(account.grants.administered.iter().cloned());
    let rows = grant_statements(&account, &granted, &roles).into_iter().map(|line| vec![t(line)]).collect();
    Ok(renamed(Answer::new("Grants s1024", rows), format!("Grants for {}@{}", account.user, account.host)))
}

/// The account that a user name means, or 1141.
fn account(state: &SessionState, user: &UserName) -> Result<Arc<UserDef>, MySqlError> {
    let (name, host) = if user.current { (&state.client.account_user, &state.client.account_host) } else { (&user.user, &user.host) };
    let users = state.instance.database().catalog().users();
    let found = users.into_iter().find(|a| a.user == *name && a.host.eq_ignore_ascii_case(host));
    found.ok_or_else(|| highkey_types::errors::nonexisting_grant(name, host))
}

/// SHOW ENGINE INNODB STATUS and PERFORMANCE_SCHEMA STATUS. There is nothing to say of MUTEX and LOGS.
fn engine(state: &SessionState, name: &str, what: &str) -> Result<Answer, MySqlError> {
    if name.eq_ignore_ascii_case("performance_schema") {
        let status = what.eq_ignore_ascii_case("status");
        // Of what MySQL's tables have room for, digests are kept here.
        let digests = [("events_statements_summary_by_digest.count", state.instance.global_u64("performance_schema_digests_size"))];
        let rows = digests.iter().filter(|_| status).map(|(name, n)| vec![t("performance_schema"), t(name), t(n.to_string())]).collect();
        return Ok(Answer::new("Type s18;Name s512;Status s21", rows));
    }
    if !name.eq_ignore_ascii_case("innodb") && !name.eq_ignore_ascii_case("highkey") {
        return Err(error::unknown_engine(name));
    }
    if !what.eq_ignore_ascii_case("status") {
        return Ok(Answer::new("Type s10;Name s512;Status s10", Vec::new()));
    }
    Ok(Answer::new("Type s10;Name s512;Status S", vec![vec![t("InnoDB"), t(""), t(innodb::monitor(state)?)]]))
}
