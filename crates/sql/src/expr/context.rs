//! What an expression may ask of the session that evaluates it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use highkey_table::RoutineDef;
use highkey_types::{Collation, DateTime, Level, MySqlError, SqlMode, Str, TimeZone, Value, Warning, errors};

use crate::functions::FuncId;
use crate::parse::ParseOptions;
use crate::parse::ast::VariableScope;
use crate::plan::{Rel, Subquery};
use crate::routine::StoredFunction;

/// The surroundings of an evaluation. All methods answer for the statement that is running.
///
/// Implemented by the session for the fast path and by DataFusion's lowering for its kernels. Everything that has a
/// default is optional: an implementation that lacks it gives the error or the neutral answer described.
pub trait EvalContext {
    /// sql_mode's bits that conversions look at.
    fn sql_mode(&self) -> SqlMode;
    /// sql_mode's bits that change how text is read.
    fn parse_options(&self) -> ParseOptions {
        ParseOptions::default()
    }
    /// The session's time zone.
    fn time_zone(&self) -> &TimeZone;
    /// The statement's start in microseconds since 1970 UTC (what NOW() shows; `SET timestamp` changes it).
    fn now_micros(&self) -> i64;
    /// Raises a warning.
    fn warn(&mut self, warning: Warning);
    /// A warning of a stored function, whose own sql_mode has decided that it is none but that.
    fn warn_from_function(&mut self, warning: Warning) {
        self.warn(warning);
    }
    /// Strict DML: some warnings end the statement (`is_strict_error`), so that nothing may be evaluated that a row does not need.
    fn warnings_are_errors(&self) -> bool {
        false
    }
    /// sql_mode is strict.
    fn is_strict(&self) -> bool {
        true
    }
    /// Value of the n-th parameter.
    fn param(&self, index: usize) -> Result<Value, MySqlError> {
        let _ = index;
        Err(MySqlError::with_message(1210, "Incorrect arguments to EXECUTE"))
    }
    /// Value of `@name` (lower case).
    fn user_var(&self, name: &str) -> Value {
        let _ = name;
        Value::Null
    }
    /// Assigns `@name`; `collation` is that of its text.
    fn set_user_var(&mut self, name: &Str, value: Value, collation: &'static Collation) -> Result<(), MySqlError> {
        let _ = (name, value, collation);
        Err(MySqlError::with_message(1235, "This version of MySQL doesn't yet support 'user variable assignment here'"))
    }
    /// Value of `@@[scope.]name` (lower case).
    fn system_var(&self, scope: Option<VariableScope>, name: &str) -> Result<Value, MySqlError> {
        let _ = scope;
        Err(MySqlError::with_message(1193, format!("Unknown system variable '{name}'")))
    }
    /// A field of an enclosing query's row.
    fn outer(&self, depth: usize, index: usize) -> Result<Value, MySqlError> {
        let _ = (depth, index);
        Err(crate::plan::unresolved("outer reference"))
    }
    /// Runs a subquery for the row; truth values as integers.
    fn subquery(&mut self, subquery: &Subquery, row: &[Value]) -> Result<Value, MySqlError> {
        let _ = (subquery, row);
        Err(crate::plan::unresolved("subquery"))
    }
    /// The rows of a query of the stored function `of`, which depends on no enclosing row, and what it warned of. It is run as the definer of `account`, or as
    /// whoever runs the statement if that function says SQL SECURITY INVOKER.
    fn rows(&mut self, query: Rel, of: &RoutineDef, account: &RoutineDef) -> Result<(Vec<Vec<Value>>, Raised), MySqlError> {
        let _ = (query, of, account);
        Err(crate::plan::unresolved("query of a stored function"))
    }
    /// The value of a stored function that the session runs (`StoredFunction::runs_in_session`), of arguments as its parameters have them; errors call it `result`.
    fn call_in_session(&mut self, function: &Arc<StoredFunction>, result: &str, args: Vec<Value>) -> Result<Value, MySqlError> {
        let _ = (function, result, args);
        Err(crate::plan::unresolved("call of a stored function"))
    }
    /// The values of `ExprKind::Once` that are being asked for, with their numbers, innermost last.
    fn kept(&mut self) -> Option<&mut Vec<(usize, Value)>> {
        None
    }
    /// DATABASE().
    fn database(&self) -> Option<Str> {
        None
    }
    /// USER(): who the client said it is, `user@host`.
    fn user(&self) -> Str {
        Str::from("root@localhost")
    }
    /// CURRENT_USER(): the account it got.
    fn current_user(&self) -> Str {
        self.user()
    }
    /// CURRENT_ROLE(): the active roles, NONE for none.
    fn current_role(&self) -> Str {
        Str::from("NONE")
    }
    /// CONNECTION_ID().
    fn connection_id(&self) -> u64 {
        0
    }
    /// There is a connection of that number.
    fn has_connection(&self, _id: u64) -> bool {
        false
    }
    /// VERSION().
    fn version(&self) -> Str {
        Str::from("8.0.12")
    }
    /// LAST_INSERT_ID().
    fn last_insert_id(&self) -> u64 {
        0
    }
    /// LAST_INSERT_ID(expr).
    fn set_last_insert_id(&mut self, id: u64) {
        let _ = id;
    }
    /// FOUND_ROWS().
    fn found_rows(&self) -> u64 {
        0
    }
    /// ROW_COUNT().
    fn row_count(&self) -> i64 {
        -1
    }
    /// max_allowed_packet: longer results are NULL with warning 1301.
    fn max_allowed_packet(&self) -> usize {
        64 << 20
    }
    /// A random number in [0, 1) of the session's generator: RAND() without a seed.
    fn random(&mut self) -> f64 {
        rand::random::<f64>()
    }
    /// State of the generator of the call of RAND(seed) at `site` (its address in the plan), kept for the statement.
    fn random_state(&mut self, site: usize) -> &mut Option<(u32, u32)>;
    /// Sleeps; `true` if it was interrupted.
    fn sleep(&mut self, duration: Duration) -> Result<bool, MySqlError> {
        std::thread::sleep(duration);
        Ok(false)
    }
    /// GET_LOCK, RELEASE_LOCK, RELEASE_ALL_LOCKS, IS_FREE_LOCK, IS_USED_LOCK: name in upper case and arguments.
    fn user_lock(&mut self, function: &str, args: &[Value]) -> Result<Value, MySqlError> {
        let _ = (function, args);
        Err(MySqlError::with_message(1235, "This version of MySQL doesn't yet support 'user-level locks here'"))
    }
    /// WAIT_FOR_EXECUTED_GTID_SET, MASTER_POS_WAIT, WAIT_UNTIL_SQL_THREAD_AFTER_GTIDS.
    fn wait_for_replication(&mut self, func: FuncId, args: &[Value]) -> Result<Value, MySqlError> {
        let _ = args;
        Err(MySqlError::with_message(1235, format!("This version of MySQL doesn't yet support '{} here'", func.name())))
    }
    /// LOAD_FILE: `None` if it may not or cannot be read.
    fn load_file(&mut self, path: &str) -> Option<Vec<u8>> {
        let _ = path;
        None
    }
    /// server_uuid's node part for UUID(): any six bytes that stay the same.
    fn node_id(&self) -> [u8; 6] {
        [0x02, 0x48, 0x4b, 0x00, 0x00, 0x01]
    }
    /// NOW() as a wall clock in the session's zone.
    fn now(&self) -> DateTime {
        let utc = DateTime::from_micros(self.now_micros()).unwrap_or_default();
        self.time_zone().from_utc(&utc)
    }
}

/// For how long an evaluation keeps its thread, and for how long it then lets it go.
const TURN: Duration = Duration::from_millis(10);
const PAUSE: Duration = Duration::from_micros(100);

/// The turn of a long evaluation on its thread.
pub(crate) struct Turn(Instant);

impl Turn {
    pub fn begin() -> Turn {
        Turn(Instant::now())
    }

    /// Where the turn is over, others may have the thread, KILL among them: error 1317.
    pub fn pass(&mut self, cx: &mut dyn EvalContext) -> Result<(), MySqlError> {
        if self.0.elapsed() >= TURN {
            if cx.sleep(PAUSE)? {
                return Err(errors::query_interrupted());
            }
            self.0 = Instant::now();
        }
        Ok(())
    }
}

/// The surroundings of a query, of which each of its threads has a copy.
pub trait SharedContext: EvalContext + Send {
    /// A copy without warnings. What it assigns, the original does not see.
    fn copy(&self) -> Box<dyn SharedContext>;
    /// What was raised since the last time.
    fn take_raised(&mut self) -> Raised;
    /// Adds what copies raised.
    fn add_raised(&mut self, raised: Raised);
}

/// Warnings on their way from where they were raised to the statement's list.
#[derive(Clone, Debug, Default)]
pub struct Raised {
    /// As many as the list may have.
    pub first: Vec<Warning>,
    /// How many there were.
    pub all: u64,
    /// How many of them are errors.
    pub errors: u64,
    /// The first that strict DML makes an error; it is none of the others.
    pub strict: Option<MySqlError>,
}

impl Raised {
    pub fn is_empty(&self) -> bool {
        self.all == 0 && self.strict.is_none()
    }

    /// These, and then those.
    pub fn append(&mut self, mut then: Raised) {
        self.first.append(&mut then.first);
        self.all += then.all;
        self.errors += then.errors;
        self.strict = self.strict.take().or(then.strict);
    }
}

/// Whether strict DML takes a warning of an expression for an error, as MySQL does: values that were cut, that are out of range, that a function
/// cannot take, and divisions by zero.
pub fn is_strict_error(warning: &Warning) -> bool {
    warning.level == Level::Warning && matches!(warning.code, 1260 | 1264 | 1292 | 1301 | 1365 | 1411 | 1441 | 3020 | 3155 | 3156)
}
