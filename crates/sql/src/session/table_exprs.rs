//! What tables' definitions hold as SQL text, bound once per definition: expression defaults, generated columns, CHECKs.

use std::collections::HashMap;
use std::sync::Arc;

use highkey_table::{Default as ColumnDefault, TableDef, TableId};
use highkey_types::MySqlError;
use parking_lot::RwLock;

use crate::bind::{self, BindContext, TableExprs};

/// By table; a definition of another version replaces the entry.
#[derive(Default)]
pub struct TableExprCache {
    bound: RwLock<HashMap<TableId, (u64, Option<Arc<TableExprs>>)>>,
}

impl TableExprCache {
    /// `None` if the table holds no expression at all, which is what most do.
    pub fn get(&self, def: &TableDef, cx: &dyn BindContext) -> Result<Option<Arc<TableExprs>>, MySqlError> {
        if let Some((version, exprs)) = self.bound.read().get(&def.id)
            && *version == def.version
        {
            return Ok(exprs.clone());
        }
        let any = !def.checks.is_empty() || def.columns.iter().any(|c| c.generated.is_some() || matches!(c.default, ColumnDefault::Expr(_)));
        let exprs = if any { Some(Arc::new(bind::bind_table_exprs(def, cx)?)) } else { None };
        self.bound.write().insert(def.id, (def.version, exprs.clone()));
        Ok(exprs)
    }

    /// A dropped table's entry goes.
    pub fn forget(&self, id: TableId) {
        self.bound.write().remove(&id);
    }
}
