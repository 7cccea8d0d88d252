//! Errors on their way through DataFusion: a MySQL error goes in as an external error and comes out as it was.

use datafusion::arrow::error::ArrowError;
use datafusion::common::DataFusionError;
use highkey_types::{MySqlError, SqlState};

/// A user's error inside DataFusion.
#[derive(Debug, Clone)]
struct UserError(MySqlError);

impl std::fmt::Display for UserError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for UserError {}

/// The memory pool refused, in words that no operator of DataFusion knows.
#[derive(Debug)]
struct OutOfMemory(String);

impl std::fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for OutOfMemory {}

/// Ends the attempt at a query whose operator would otherwise go on with less memory.
pub(super) fn out_of_memory(message: String) -> DataFusionError {
    DataFusionError::External(Box::new(OutOfMemory(message)))
}

/// The same of an error that an operator of DataFusion would know; any other as it is.
pub(super) fn final_refusal(error: DataFusionError) -> DataFusionError {
    match error.find_root() {
        DataFusionError::ResourcesExhausted(message) if !is_out_of_space(&error) => out_of_memory(message.clone()),
        _ => error,
    }
}

/// Wraps a MySQL error so that it survives DataFusion.
pub(super) fn user(error: MySqlError) -> DataFusionError {
    DataFusionError::External(Box::new(UserError(error)))
}

/// A value was refused, or a subquery has rows too many: it depends on the rows which error ends the query, and behind which warnings.
pub(super) fn is_of_rows(error: &DataFusionError) -> bool {
    user_error(error).is_some_and(|e| !matches!(e.code, 1317 | 1436 | 3024))
}

/// The user's error that is inside.
fn user_error(error: &DataFusionError) -> Option<&MySqlError> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(current) = cause {
        if let Some(UserError(error)) = current.downcast_ref() {
            return Some(error);
        }
        cause = match (current.downcast_ref::<DataFusionError>(), current.downcast_ref::<ArrowError>()) {
            (Some(DataFusionError::External(inner)), _) => Some(inner.as_ref()),
            (Some(DataFusionError::Context(_, inner)), _) => Some(inner.as_ref()),
            (Some(DataFusionError::Shared(inner)), _) => Some(inner.as_ref()),
            (Some(DataFusionError::ArrowError(inner, _)), _) => Some(inner.as_ref()),
            (_, Some(ArrowError::ExternalError(inner))) => Some(inner.as_ref()),
            _ => current.source(),
        };
    }
    None
}

/// What the client is told of a failed query.
pub(super) fn to_mysql(error: &DataFusionError) -> MySqlError {
    if let Some(error) = user_error(error) {
        return error.clone();
    }
    if is_out_of_space(error) {
        return MySqlError { code: 1114, sqlstate: SqlState::new("HY000"), message: "The table '#highkey_tmp' is full".into() };
    }
    if let Some(message) = refusal(error) {
        return MySqlError { code: 1038, sqlstate: SqlState::new("HY001"), message: format!("Out of memory for the query, consider increasing parallel_memory_limit: {message}") };
    }
    MySqlError { code: 1105, sqlstate: SqlState::new("HY000"), message: format!("Query execution failed: {}", first_line(&error.find_root().to_string())) }
}

/// The memory pool refused an operator that cannot spill.
pub(super) fn is_out_of_memory(error: &DataFusionError) -> bool {
    refusal(error).is_some() && !is_out_of_space(error)
}

/// What the memory pool said.
fn refusal(error: &DataFusionError) -> Option<&str> {
    match error.find_root() {
        DataFusionError::ResourcesExhausted(message) => Some(message.as_str()),
        DataFusionError::External(inner) => inner.downcast_ref::<OutOfMemory>().map(|refused| refused.0.as_str()),
        _ => None,
    }
}

/// Spill files have reached `highkey_temp_space_limit` or filled the disk. Writers of such files wrap errors of other kinds, so only the text tells.
fn is_out_of_space(error: &DataFusionError) -> bool {
    let text = error.to_string();
    text.contains("The used disk space during the spilling process has exceeded") || text.contains("No space left on device")
}

/// ER_SUBQUERY_NO_1_ROW.
pub(super) fn more_than_one_row() -> MySqlError {
    MySqlError { code: 1242, sqlstate: SqlState::new("21000"), message: "Subquery returns more than 1 row".into() }
}

/// ER_JSON_DOCUMENT_NULL_KEY.
pub(super) fn null_object_key() -> MySqlError {
    MySqlError { code: 3158, sqlstate: SqlState::new("22032"), message: "JSON documents may not contain NULL member names.".into() }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
