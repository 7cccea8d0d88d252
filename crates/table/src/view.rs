//! Views: a query's text under a name. What the text means is for the layer above.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use highkey_types::{Charset, Collation, Str};

use crate::metadata_lock::MetadataLock;

/// How a view is asked to be read. Catalog records have the variants by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[allow(missing_docs)]
pub enum ViewAlgorithm {
    Undefined,
    Merge,
    TempTable,
}

/// Which conditions rows that are written through a view have to satisfy. Catalog records have the variants by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum CheckOption {
    None,
    /// The view's own, and those of views below that have a check option themselves.
    Local,
    /// Those of all views below too.
    Cascaded,
}

/// A committed view definition. Immutable: DDL makes a new one.
#[derive(Clone, Debug)]
pub struct ViewDef {
    pub schema: Str,
    pub name: Str,
    /// Names of the columns, if the definition gave a list.
    pub columns: Vec<Str>,
    /// The query, every name in it qualified.
    pub text: Str,
    pub algorithm: ViewAlgorithm,
    pub check: CheckOption,
    /// DEFINER: user and host.
    pub definer: (Str, Str),
    /// SQL SECURITY INVOKER.
    pub invoker: bool,
    /// Rows can be changed through it.
    pub updatable: bool,
    /// `character_set_client` when it was made.
    pub charset: Charset,
    /// `collation_connection` when it was made: of its literals.
    pub collation: &'static Collation,
    pub created_at: SystemTime,
}

/// A view by one of its definitions. DDL replaces the `View`.
pub struct View {
    def: ViewDef,
    /// `None`: the server's own, which no DDL changes.
    pub(crate) lock: Option<Arc<MetadataLock>>,
    current: AtomicBool,
}

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "View({}.{})", self.def.schema, self.def.name)
    }
}

impl View {
    pub(crate) fn new(def: ViewDef, lock: Arc<MetadataLock>) -> View {
        View { def, lock: Some(lock), current: AtomicBool::new(true) }
    }

    /// A view that the layer above has of itself: the catalog knows nothing of it, and it stays as it is.
    pub fn built_in(def: ViewDef) -> View {
        View { def, lock: None, current: AtomicBool::new(true) }
    }

    /// Its definition, which never changes.
    pub fn def(&self) -> &ViewDef {
        &self.def
    }

    /// It is no record of the catalog.
    pub fn is_built_in(&self) -> bool {
        self.lock.is_none()
    }

    /// False once DDL has replaced or dropped this definition.
    pub fn is_current(&self) -> bool {
        self.current.load(Ordering::Acquire)
    }

    pub(crate) fn retire(&self) {
        self.current.store(false, Ordering::Release);
    }
}
