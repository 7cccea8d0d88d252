//! CREATE, ALTER and DROP VIEW.

use std::sync::Arc;

use highkey_storage::Isolation;
use highkey_types::MySqlError;

use super::table::refuse_system_schema;
use super::{DdlContext, TableName, spec};
use crate::catalog::{keys, stored_record};
use crate::database::Database;
use crate::error;
use crate::high_water;
use crate::view::{View, ViewDef};

impl Database {
    /// Makes a view; `replace` one of the same name, if there is one. `must_exist`: ALTER VIEW.
    /// Errors: 1049, 1050, 1059, 1146, 1347, 3552.
    pub async fn create_view(self: &Arc<Self>, cx: &DdlContext, def: ViewDef, replace: bool, must_exist: bool) -> Result<(), MySqlError> {
        refuse_system_schema(&def.schema)?;
        spec::check_name(&def.name)?;
        let _locks = self.lock_tables(cx, vec![(def.schema.clone(), def.name.clone())]).await?;
        let catalog = self.catalog();
        if catalog.schema(&def.schema).is_none() {
            return Err(error::unknown_schema(&def.schema));
        }
        if catalog.find_table(&def.schema, &def.name).is_some() {
            return Err(if replace { error::not_a(&def.schema, &def.name, "VIEW") } else { error::table_exists(&def.name) });
        }
        let old = catalog.find_view(&def.schema, &def.name);
        match &old {
            Some(_) if !replace => return Err(error::table_exists(&def.name)),
            None if must_exist => return Err(error::no_such_table(&def.schema, &def.name)),
            _ => {}
        }
        let mut txn = self.engine().begin(Isolation::ReadCommitted);
        high_water::put(&mut txn, self.catalog_index(), &keys::view(&def.schema, &def.name), &stored_record::encode_view(&def))?;
        cx.commit(self, txn)?;
        let lock = self.metadata_locks.lock_of(&def.schema, &def.name);
        self.publish(|catalog, _| {
            if let Some(old) = &old {
                old.retire();
            }
            catalog.put_view(Arc::new(View::new(def, lock)));
        });
        Ok(())
    }

    /// Drops views, all or none. With `if_exists` missing ones are returned, else they are error 1051. Error 1347 for a table.
    pub async fn drop_views(self: &Arc<Self>, cx: &DdlContext, names: &[TableName], if_exists: bool) -> Result<Vec<TableName>, MySqlError> {
        for (schema, _) in names {
            refuse_system_schema(schema)?;
        }
        let _locks = self.lock_tables(cx, names.to_vec()).await?;
        let catalog = self.catalog();
        let mut views: Vec<Arc<View>> = Vec::new();
        let mut missing = Vec::new();
        for (schema, name) in names {
            match catalog.find_view(schema, name) {
                Some(view) => views.push(view),
                None if catalog.find_table(schema, name).is_some() => return Err(error::not_a(schema, name, "VIEW")),
                None => missing.push((schema.clone(), name.clone())),
            }
        }
        if !missing.is_empty() && !if_exists {
            let names: Vec<_> = missing.iter().map(|(schema, name)| format!("{schema}.{name}")).collect();
            return Err(error::unknown_tables(&names.join(",")));
        }
        let mut txn = self.engine().begin(Isolation::ReadCommitted);
        for view in &views {
            high_water::remove(&mut txn, self.catalog_index(), &keys::view(&view.def().schema, &view.def().name))?;
        }
        cx.commit(self, txn)?;
        self.publish(|catalog, _| {
            for view in &views {
                catalog.remove_view(&view.def().schema, &view.def().name);
                view.retire();
            }
        });
        Ok(missing)
    }
}
