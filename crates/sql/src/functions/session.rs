//! Functions that answer about the session and the server, or act on them.

use std::time::Duration;

use highkey_types::{MySqlError, Value};

use super::FuncId;
use super::call::Result;
use crate::expr::EvalContext;
use crate::expr::convert::{to_f64, to_u64};

pub(super) fn function(func: FuncId, args: &[Value], cx: &mut dyn EvalContext) -> Result<Value> {
    use FuncId as F;
    Ok(match func {
        // A thread of performance_schema is a connection.
        F::ConnectionId | F::PsCurrentThreadId => Value::UInt(cx.connection_id()),
        F::PsThreadId => to_u64(&args[0], cx).filter(|id| cx.has_connection(*id)).map_or(Value::Null, Value::UInt),
        F::CurrentRole => Value::Text(cx.current_role()),
        F::CurrentUser => Value::Text(cx.current_user()),
        F::User => Value::Text(cx.user()),
        F::Database => cx.database().map_or(Value::Null, Value::Text),
        F::Version => Value::Text(cx.version()),
        F::FoundRows => Value::UInt(cx.found_rows()),
        F::RowCount => Value::Int(cx.row_count()),
        F::LastInsertId => match args.first() {
            None => Value::UInt(cx.last_insert_id()),
            Some(value) => {
                let id = to_u64(value, cx);
                cx.set_last_insert_id(id.unwrap_or(0));
                id.map_or(Value::Null, Value::UInt)
            }
        },
        F::Sleep => {
            let seconds = to_f64(&args[0], cx).filter(|s| *s >= 0.0);
            let Some(seconds) = seconds else { return Err(MySqlError::with_message(1210, "Incorrect arguments to sleep.")) };
            let interrupted = cx.sleep(Duration::from_secs_f64(seconds.min(f64::from(u32::MAX))))?;
            Value::bool(interrupted)
        }
        F::GetLock | F::IsFreeLock | F::IsUsedLock | F::ReleaseLock | F::ReleaseAllLocks => cx.user_lock(func.name(), args)?,
        F::Benchmark => Value::Int(0),
        F::NameConst => args[1].clone(),
        F::FormatBytes => scaled(to_f64(&args[0], cx).unwrap_or(0.0), 1024.0, &["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]),
        _ => {
            let picos = to_f64(&args[0], cx).unwrap_or(0.0);
            match picos.abs() {
                n if n < 1e15 / 1e3 * 60.0 => scaled(picos, 1000.0, &["ps", "ns", "us", "ms", "s"]),
                n if n < 3.6e15 => Value::from(format!("{:.2} min", picos / 6e13)),
                n if n < 8.64e16 => Value::from(format!("{:.2} h", picos / 3.6e15)),
                _ => Value::from(format!("{:.2} d", picos / 8.64e16)),
            }
        }
    })
}

fn scaled(mut n: f64, step: f64, units: &[&str]) -> Value {
    let mut unit = 0;
    while n.abs() >= step && unit + 1 < units.len() {
        n /= step;
        unit += 1;
    }
    Value::from(if unit == 0 { format!("{n:4.0} {}", units[0]) } else { format!("{n:4.2} {}", units[unit]) })
}
