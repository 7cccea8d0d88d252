//! CREATE, ALTER and DROP of events, and what is kept of their runs.

use std::sync::Arc;
use std::time::Duration;

use highkey_storage::Isolation;
use highkey_types::{MySqlError, errors};

use super::DdlContext;
use super::table::{TableName, refuse_system_schema};
use crate::catalog::{keys, stored_record};
use crate::database::Database;
use crate::error;
use crate::event::{EventDef, EventStatus};
use crate::high_water;

/// The metadata lock of an event; no table has such a name.
fn lock_name(schema: &str, name: &str) -> TableName {
    (schema.into(), format!("EVENT {}\0", name.to_lowercase()).into())
}

impl Database {
    /// Makes an event. Errors: 1049, 1537, 3552.
    pub async fn create_event(self: &Arc<Self>, cx: &DdlContext, def: EventDef) -> Result<(), MySqlError> {
        refuse_system_schema(&def.schema)?;
        let _locks = self.lock_tables(cx, vec![lock_name(&def.schema, &def.name)]).await?;
        self.check_event_name(&def.schema, &def.name)?;
        self.store_event(cx, None, def)
    }

    /// Gives an event another definition, and the name `renamed`. Errors: 1049, 1537, 1539, 3552.
    pub async fn alter_event(
        self: &Arc<Self>,
        cx: &DdlContext,
        (schema, name): (&str, &str),
        renamed: Option<(&str, &str)>,
        change: impl FnOnce(&mut EventDef),
    ) -> Result<(), MySqlError> {
        let mut names = vec![lock_name(schema, name)];
        names.extend(renamed.map(|(schema, name)| lock_name(schema, name)));
        let _locks = self.lock_tables(cx, names).await?;
        let old = self.catalog().event(schema, name).ok_or_else(|| errors::event_does_not_exist(name))?;
        let mut def = EventDef::clone(&old);
        if let Some((schema, name)) = renamed {
            refuse_system_schema(schema)?;
            self.check_event_name(schema, name)?;
            (def.schema, def.name) = (schema.into(), name.into());
        }
        change(&mut def);
        self.store_event(cx, renamed.and(Some(&old)), def)
    }

    /// Drops an event. Error 1539.
    pub async fn drop_event(self: &Arc<Self>, cx: &DdlContext, (schema, name): (&str, &str)) -> Result<(), MySqlError> {
        let _locks = self.lock_tables(cx, vec![lock_name(schema, name)]).await?;
        if self.catalog().event(schema, name).is_none() {
            return Err(errors::event_does_not_exist(name));
        }
        let mut txn = self.engine().begin(Isolation::ReadCommitted);
        high_water::remove(&mut txn, self.catalog_index(), &keys::event(schema, name))?;
        cx.commit(self, txn)?;
        self.publish(|catalog, _| catalog.remove_event(schema, name));
        Ok(())
    }

    /// The event begins to run, or has come to its end: notes when it ran last, and its status. `None`: it is another one by now, or gone. The binary log is
    /// not told, as it is not by MySQL. `patience`: for how long it may wait for others who have the event, or its schema. Errors: 1205, 1213.
    pub async fn note_event_run(
        self: &Arc<Self>,
        event: &Arc<EventDef>,
        last_executed: Option<i64>,
        status: EventStatus,
        patience: Duration,
    ) -> Result<Option<Arc<EventDef>>, MySqlError> {
        let cx = DdlContext { lock_wait_timeout: patience, ..DdlContext::default() };
        let _locks = self.lock_tables(&cx, vec![lock_name(&event.schema, &event.name)]).await?;
        if !self.catalog().event(&event.schema, &event.name).is_some_and(|current| Arc::ptr_eq(&current, event)) {
            return Ok(None);
        }
        let def = Arc::new(EventDef { last_executed, status, ..EventDef::clone(event) });
        let mut txn = self.engine().begin(Isolation::ReadCommitted);
        high_water::put(&mut txn, self.catalog_index(), &keys::event(&def.schema, &def.name), &stored_record::encode_event(&def))?;
        cx.commit_unlogged(txn)?;
        self.publish(|catalog, _| catalog.put_event(def.clone()));
        Ok(Some(def))
    }

    /// An event may come to have this name.
    fn check_event_name(&self, schema: &str, name: &str) -> Result<(), MySqlError> {
        let catalog = self.catalog();
        if catalog.schema(schema).is_none() {
            return Err(error::unknown_schema(schema));
        }
        if catalog.event(schema, name).is_some() {
            return Err(errors::event_already_exists(name));
        }
        Ok(())
    }

    /// `renamed`: the event of another name that it is in place of.
    fn store_event(&self, cx: &DdlContext, renamed: Option<&Arc<EventDef>>, def: EventDef) -> Result<(), MySqlError> {
        let mut txn = self.engine().begin(Isolation::ReadCommitted);
        if let Some(old) = renamed {
            high_water::remove(&mut txn, self.catalog_index(), &keys::event(&old.schema, &old.name))?;
        }
        high_water::put(&mut txn, self.catalog_index(), &keys::event(&def.schema, &def.name), &stored_record::encode_event(&def))?;
        cx.commit(self, txn)?;
        self.publish(|catalog, _| {
            if let Some(old) = renamed {
                catalog.remove_event(&old.schema, &old.name);
            }
            catalog.put_event(Arc::new(def));
        });
        Ok(())
    }
}
