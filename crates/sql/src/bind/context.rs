//! What the binder asks of the session.

use std::sync::Arc;

use highkey_table::{RoutineDef, Table, View};
use highkey_types::{Collation, MySqlError, SqlMode, Str, TimeZone, Value};

use crate::plan::{ExprType, VirtualTable};
use crate::privileges::Access;

/// A table that a name stands for.
#[derive(Clone)]
pub enum TableSource {
    /// A base table, or a temporary one.
    Base(Arc<Table>),
    /// A view.
    View(Arc<View>),
    /// A table whose rows the session makes.
    Virtual(Arc<VirtualTable>),
}

/// What a context around a stored object, which has the one around it as `cx`, takes from there.
macro_rules! ask_around {
    () => {
        fn table(&self, schema: &str, name: &str) -> std::result::Result<$crate::bind::TableSource, highkey_types::MySqlError> {
            self.cx.table(schema, name)
        }

        fn time_zone(&self) -> &highkey_types::TimeZone {
            self.cx.time_zone()
        }

        fn function(&self, schema: &str, name: &str) -> Option<std::sync::Arc<highkey_table::RoutineDef>> {
            self.cx.function(schema, name)
        }

        fn system_var(
            &self,
            scope: Option<$crate::parse::ast::VariableScope>,
            name: &str,
        ) -> std::result::Result<highkey_types::Value, highkey_types::MySqlError> {
            self.cx.system_var(scope, name)
        }

        fn user_var(&self, name: &str) -> Option<(highkey_types::Value, &'static highkey_types::Collation)> {
            self.cx.user_var(name)
        }

        fn utf8mb4_collation(&self) -> &'static highkey_types::Collation {
            self.cx.utf8mb4_collation()
        }

        fn div_precision_increment(&self) -> u8 {
            self.cx.div_precision_increment()
        }

        fn group_concat_max_len(&self) -> u64 {
            self.cx.group_concat_max_len()
        }

        fn has_account(&self, user: &str, host: &str) -> bool {
            self.cx.has_account(user, host)
        }

        fn access_of(&self, user: &str, host: &str) -> Option<std::sync::Arc<$crate::privileges::Access>> {
            self.cx.access_of(user, host)
        }
    };
}
pub(super) use ask_around;

/// The surroundings of binding.
pub trait BindContext {
    /// Finds a table that is not temporary: error 1146 if there is none, 1049 if there is no such schema.
    fn table(&self, schema: &str, name: &str) -> Result<TableSource, MySqlError>;
    /// The session's temporary table of that name, which hides whatever else has it. Views are bound without them.
    fn temporary_table(&self, _schema: &str, _name: &str) -> Option<Arc<Table>> {
        None
    }
    /// Under LOCK TABLES: error 1100 for a table that is not locked under this name, 1099 if it is to be changed and locked for reading.
    fn check_locked_as(&self, _schema: &str, _name: &str, _alias: &str, _write: bool) -> Result<(), MySqlError> {
        Ok(())
    }
    /// The current schema.
    fn current_schema(&self) -> Option<Str>;
    /// `collation_connection`: the collation of literals.
    fn collation(&self) -> &'static Collation;
    /// `default_collation_for_utf8mb4`: what that character set alone means.
    fn utf8mb4_collation(&self) -> &'static Collation {
        Collation::utf8mb4()
    }
    /// sql_mode's bits that conversions look at.
    fn sql_mode(&self) -> SqlMode;
    /// ONLY_FULL_GROUP_BY.
    fn only_full_group_by(&self) -> bool;
    /// The session's time zone.
    fn time_zone(&self) -> &TimeZone;
    /// Values of the parameters: `Some` binds them in as literals, `None` leaves `ExprKind::Param`s to be filled at execution.
    fn params(&self) -> Option<&[Value]> {
        None
    }
    /// Type of a parameter that is left open, `None` while no value has come.
    fn param_type(&self, _index: usize) -> Option<&ExprType> {
        None
    }
    /// Type of a parameter that is a variable of a routine.
    fn declared_type(&self, _index: usize) -> Option<&ExprType> {
        None
    }
    /// The variable that a parameter in the body of a stored function is, and its type: the variables are the outermost row.
    fn local(&self, _index: usize) -> Option<(usize, &ExprType)> {
        None
    }
    /// The stored function of that name.
    fn function(&self, _schema: &str, _name: &str) -> Option<Arc<RoutineDef>> {
        None
    }
    /// The current value of a system variable, for its type (error 1193 if unknown).
    fn system_var(&self, scope: Option<crate::parse::ast::VariableScope>, name: &str) -> Result<Value, MySqlError>;
    /// The current value of a user variable and the collation of its text, for its type; `None` if it was never set.
    fn user_var(&self, name: &str) -> Option<(Value, &'static Collation)>;
    /// There is such an account.
    fn has_account(&self, _user: &str, _host: &str) -> bool {
        true
    }
    /// What the one may do for whom the names are looked up: the session's account, or the definer of a view for what is in it. `None`: everything.
    fn access(&self) -> Option<&Access> {
        None
    }
    /// What the one may do who asks by EXPLAIN, which tells what is in views. `None`: everything, or the statement is none.
    fn explainer(&self) -> Option<&Access> {
        None
    }
    /// What an account may do; `None`: everything.
    fn access_of(&self, _user: &str, _host: &str) -> Option<Arc<Access>> {
        None
    }
    /// sql_mode is strict.
    fn strict(&self) -> bool {
        true
    }
    /// div_precision_increment.
    fn div_precision_increment(&self) -> u8 {
        4
    }
    /// group_concat_max_len.
    fn group_concat_max_len(&self) -> u64 {
        1024
    }
}
