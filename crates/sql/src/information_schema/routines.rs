//! ROUTINES and PARAMETERS, and what SHOW PROCEDURE STATUS and SHOW FUNCTION STATUS have of them.

use std::sync::Arc;

use highkey_table::{ColumnDef, RoutineDef, RoutineKind};
use highkey_types::{ColumnType, Value};

use super::rows::{t, type_cells, u, wall_clock};
use crate::parse::ast::ParameterMode;
use crate::routine;
use crate::session::SessionState;
use crate::sys;
use crate::variables::SqlModes;

/// Those that the account may see, by schema and name.
pub fn seen(state: &SessionState) -> Vec<Arc<RoutineDef>> {
    let catalog = state.instance.database().catalog();
    let all = catalog.schemas().into_iter().flat_map(|schema| sys::routines(&catalog, &schema.name));
    all.filter(|def| routine::is_seen(state, def)).collect()
}

fn definer(def: &RoutineDef) -> Value {
    t(format!("{}@{}", def.definer.0, def.definer.1))
}

fn security(def: &RoutineDef) -> Value {
    t(if def.invoker { "INVOKER" } else { "DEFINER" })
}

/// Of SHOW PROCEDURE STATUS and SHOW FUNCTION STATUS.
pub fn status(state: &SessionState, kind: RoutineKind) -> Vec<Vec<Value>> {
    let row = |def: Arc<RoutineDef>| {
        vec![
            t(&def.schema),
            t(&def.name),
            t(def.kind.name()),
            definer(&def),
            Value::DateTime(wall_clock(state, def.altered_at)),
            Value::DateTime(wall_clock(state, def.created_at)),
            security(&def),
            t(&def.comment),
            t(def.charset.name()),
            t(def.collation.name),
            t(def.schema_collation.name),
        ]
    };
    seen(state).into_iter().filter(|def| def.kind == kind).map(row).collect()
}

pub(super) fn routines(state: &SessionState) -> Vec<Vec<Value>> {
    let row = |def: Arc<RoutineDef>| {
        let body = if routine::shows_body(state, &def) { t(&def.body) } else { Value::Null };
        let mut row = vec![t(&def.name), t("def"), t(&def.schema), t(&def.name), t(def.kind.name())];
        match routine::returns(&def) {
            Ok(Some(ty)) => row.extend(described(&def.name, ty)),
            _ => {
                row.push(t(""));
                row.resize(14, Value::Null);
            }
        }
        row.extend([
            t("SQL"),
            body,
            Value::Null,
            t("SQL"),
            t("SQL"),
            t(if def.deterministic { "YES" } else { "NO" }),
            t(def.data_access.name()),
            Value::Null,
            security(&def),
            Value::DateTime(wall_clock(state, def.created_at)),
            Value::DateTime(wall_clock(state, def.altered_at)),
            t(SqlModes(def.sql_mode).to_string()),
            t(&def.comment),
            definer(&def),
            t(def.charset.name()),
            t(def.collation.name),
            t(def.schema_collation.name),
        ]);
        row
    };
    seen(state).into_iter().map(row).collect()
}

/// A type, from DATA_TYPE to DTD_IDENTIFIER.
fn described(name: &str, ty: ColumnType) -> impl Iterator<Item = Value> {
    type_cells(&ColumnDef::new(name, ty), "", "").into_iter().skip(1).take(9)
}

pub(super) fn parameters(state: &SessionState) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for def in seen(state) {
        if let Ok(Some(ty)) = routine::returns(&def) {
            let mut row = vec![t("def"), t(&def.schema), t(&def.name), u(0u64), Value::Null, Value::Null];
            row.extend(described(&def.name, ty));
            row.push(t(def.kind.name()));
            rows.push(row);
        }
        // One that cannot be read any more has none to show.
        for (at, (mode, name, ty)) in routine::parameters(&def).unwrap_or_default().into_iter().enumerate() {
            let mode = match mode {
                ParameterMode::In => "IN",
                ParameterMode::Out => "OUT",
                ParameterMode::InOut => "INOUT",
            };
            let mut row = vec![t("def"), t(&def.schema), t(&def.name), u(at as u64 + 1), t(mode), t(&name)];
            row.extend(described(&name, ty));
            row.push(t(def.kind.name()));
            rows.push(row);
        }
    }
    rows
}
