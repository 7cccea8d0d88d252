//! CREATE and DROP TRIGGER: another definition of the table, whose rows stay.

use std::sync::Arc;

use highkey_storage::Isolation;
use highkey_types::{MySqlError, errors};

use super::DdlContext;
use super::routine::lock_name;
use super::table::refuse_system_schema;
use crate::database::Database;
use crate::def::TableDef;
use crate::error;
use crate::routine::RoutineKind;
use crate::table::Table;
use crate::trigger::{TriggerDef, TriggerPlace};

impl Database {
    /// Gives a table a trigger. Errors: 1049, 1146, 1347 for a view, 1359, 3011, 3552.
    pub async fn create_trigger(self: &Arc<Self>, cx: &DdlContext, table: &str, trigger: TriggerDef, place: &TriggerPlace) -> Result<(), MySqlError> {
        let (schema, name) = (&trigger.routine.schema, &trigger.routine.name);
        refuse_system_schema(schema)?;
        let _locks = self.lock_related(cx, vec![(schema.clone(), table.into()), lock_name(schema, RoutineKind::Trigger, name)], &[]).await?;
        let catalog = self.catalog();
        if catalog.find_view(schema, table).is_some() {
            return Err(error::not_a(schema, table, "BASE TABLE"));
        }
        let old = catalog.table(schema, table)?;
        if catalog.trigger(schema, name).is_some() {
            return Err(errors::trg_already_exists());
        }
        let mut triggers = old.def().triggers.clone();
        let find = |other: &str| {
            let found = triggers.iter().position(|known| known.is_named(other) && known.event == trigger.event && known.time == trigger.time);
            found.ok_or_else(|| error::no_referenced_trigger(other))
        };
        let at = match place {
            TriggerPlace::Last => triggers.len(),
            TriggerPlace::Behind(other) => find(other)? + 1,
            TriggerPlace::Before(other) => find(other)?,
        };
        triggers.insert(at, trigger);
        self.set_triggers(cx, &old, triggers)
    }

    /// Takes a trigger away. Errors: 1360, 3552.
    pub async fn drop_trigger(self: &Arc<Self>, cx: &DdlContext, schema: &str, name: &str) -> Result<(), MySqlError> {
        refuse_system_schema(schema)?;
        loop {
            let (table, _) = self.catalog().trigger(schema, name).ok_or_else(errors::trg_does_not_exist)?;
            let table_name = table.def().name.clone();
            let _locks = self.lock_related(cx, vec![(schema.into(), table_name.clone()), lock_name(schema, RoutineKind::Trigger, name)], &[]).await?;
            // The table may have another name by now.
            let (old, _) = self.catalog().trigger(schema, name).ok_or_else(errors::trg_does_not_exist)?;
            if old.def().name != table_name {
                continue;
            }
            let mut triggers = old.def().triggers.clone();
            triggers.retain(|trigger| !trigger.is_named(name));
            return self.set_triggers(cx, &old, triggers);
        }
    }

    fn set_triggers(&self, cx: &DdlContext, old: &Arc<Table>, triggers: Vec<TriggerDef>) -> Result<(), MySqlError> {
        let def = TableDef { version: old.def().version + 1, triggers, ..TableDef::clone(old.def()) };
        let mut txn = self.engine().begin(Isolation::ReadCommitted);
        self.write_table(&mut txn, &def)?;
        cx.commit(self, txn)?;
        self.publish(|catalog, _| self.replace_definitions(catalog, vec![(old.clone(), def)]));
        Ok(())
    }
}
