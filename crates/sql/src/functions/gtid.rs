//! Sets of GTIDs, and waits for them.

use highkey_binlog::GtidSet;
use highkey_types::{MySqlError, Value};

use super::FuncId;
use super::call::Result;
use crate::expr::EvalContext;
use crate::expr::convert::to_text;

pub(super) fn function(func: FuncId, args: &[Value], cx: &mut dyn EvalContext) -> Result<Value> {
    Ok(match func {
        FuncId::GtidSubset => Value::bool(set(&args[0])?.is_subset(&set(&args[1])?)),
        FuncId::GtidSubtract => {
            let mut left = set(&args[0])?;
            left.subtract(&set(&args[1])?);
            Value::from(left.to_string())
        }
        _ => cx.wait_for_replication(func, args)?,
    })
}

/// The set that a value is the text of. Error 1772, of NULL too.
pub(crate) fn set(value: &Value) -> Result<GtidSet> {
    let text = to_text(value);
    let set = text.as_deref().and_then(|text| text.parse().ok());
    set.ok_or_else(|| MySqlError::with_message(1772, format!("Malformed GTID set specification '{}'.", text.as_deref().unwrap_or("NULL"))))
}
