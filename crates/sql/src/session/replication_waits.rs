//! Functions that wait until transactions of elsewhere are here: WAIT_FOR_EXECUTED_GTID_SET, MASTER_POS_WAIT, WAIT_UNTIL_SQL_THREAD_AFTER_GTIDS.

use std::time::Duration;

use highkey_types::{MySqlError, Value, cast, errors};

use super::SessionState;
use crate::functions::{FuncId, gtid_set};
use crate::replica::{ReplicaStatus, ThreadState};

/// How a wait came to its end.
enum Waited<T> {
    Done(T),
    TimedOut,
}

impl SessionState {
    /// None of the arguments is NULL but those of WAIT_FOR_EXECUTED_GTID_SET.
    pub(super) fn replication_wait(&mut self, func: FuncId, args: &[Value]) -> Result<Value, MySqlError> {
        match func {
            FuncId::WaitForExecutedGtidSet => self.wait_for_executed(args),
            FuncId::MasterPosWait => self.wait_for_position(args),
            _ => self.wait_for_applier(args),
        }
    }

    /// 0: all of the set is executed; 1: it took too long. Errors 1210, 1317, 1772, 3062.
    fn wait_for_executed(&mut self, args: &[Value]) -> Result<Value, MySqlError> {
        if !args[0].is_null() && self.instance.global_text("gtid_mode") == "OFF" {
            return Err(errors::gtid_mode_off("use WAIT_FOR_EXECUTED_GTID_SET"));
        }
        let set = gtid_set(&args[0])?;
        let limit = self.limit(args.get(1), "WAIT_FOR_EXECUTED_GTID_SET.")?;
        let binlog = self.instance.database().binlog().cloned();
        if let Some(binlog) = &binlog {
            binlog.catch_up()?;
        }
        let executed = || match &binlog {
            Some(binlog) => binlog.has_executed_all(&set),
            None => set.is_empty(),
        };
        Ok(Value::bool(matches!(self.wait_until("Waiting for GTID to be committed", limit, || executed().then_some(()))?, Waited::TimedOut)))
    }

    /// How often the applier was seen to have gone on before it had reached a position of the source's files; -1: it took too long; NULL: it does not run.
    fn wait_for_position(&mut self, args: &[Value]) -> Result<Value, MySqlError> {
        let limit = self.limit(args.get(2), "MASTER_POS_WAIT.")?;
        let file = cast::to_str(&args[0]).unwrap_or_default();
        let offset = self.with_cast(|cx| cast::to_u64(&args[1], cx)).unwrap_or(0);
        let Some((_, Ok(number))) = file.rsplit_once('.').map(|(base, number)| (base, number.parse::<u64>())) else { return Ok(Value::Null) };
        // Files go on in the order of their numbers.
        let reached = move |status: &ReplicaStatus| {
            let at = status.applied_file.rsplit_once('.').and_then(|(_, at)| at.parse::<u64>().ok());
            at.is_some_and(|at| (at, status.applied_position) >= (number, offset))
        };
        self.wait_while_applied(limit, args.get(3), reached)
    }

    /// As `wait_for_position`, for a set of GTIDs.
    fn wait_for_applier(&mut self, args: &[Value]) -> Result<Value, MySqlError> {
        let set = gtid_set(&args[0])?;
        let limit = self.limit(args.get(1), "WAIT_UNTIL_SQL_THREAD_AFTER_GTIDS.")?;
        let Some(binlog) = self.instance.database().binlog().cloned().filter(|_| self.instance.global_text("gtid_mode") != "OFF") else { return Ok(Value::Null) };
        binlog.catch_up()?;
        self.wait_while_applied(limit, args.get(2), move |_| binlog.has_executed_all(&set))
    }

    fn wait_while_applied(&mut self, limit: Option<Duration>, channel: Option<&Value>, reached: impl Fn(&ReplicaStatus) -> bool) -> Result<Value, MySqlError> {
        let named = channel.and_then(cast::to_str).is_some_and(|name| !name.is_empty());
        let Some(replica) = self.instance.replica().filter(|_| !named) else { return Ok(Value::Null) };
        let mut steps = 0;
        let mut last = None;
        let outcome = self.wait_until("Waiting for the slave SQL thread to advance position", limit, || {
            let Some(status) = replica.status().filter(|status| status.applier == ThreadState::Yes) else { return Some(Value::Null) };
            if reached(&status) {
                return Some(Value::Int(steps + i64::from(last.is_some())));
            }
            let at = Some((status.applied_file, status.applied_position));
            steps += i64::from(last.is_some() && last != at);
            last = at;
            None
        })?;
        Ok(match outcome {
            Waited::Done(value) => value,
            Waited::TimedOut => Value::Int(-1),
        })
    }

    /// How long to wait: for ever if it is not said, NULL or 0. Error 1210 if it is negative.
    fn limit(&mut self, seconds: Option<&Value>, function: &str) -> Result<Option<Duration>, MySqlError> {
        let Some(seconds) = seconds.and_then(|seconds| self.with_cast(|cx| cast::to_f64(seconds, cx))) else { return Ok(None) };
        if seconds < 0.0 {
            return Err(errors::wrong_arguments(function));
        }
        Ok((seconds > 0.0).then(|| Duration::from_secs_f64(seconds.min(31_536_000.0))))
    }

    /// Looks until there is an outcome. Errors 1317 and 3024 if the statement is to end.
    fn wait_until<T>(&mut self, state: &'static str, limit: Option<Duration>, mut look: impl FnMut() -> Option<T>) -> Result<Waited<T>, MySqlError> {
        let mut outcome = None;
        let interrupted = self.pause(state, limit, || {
            outcome = look();
            outcome.is_some()
        });
        if interrupted {
            self.process.check()?;
            return Err(errors::query_interrupted());
        }
        Ok(outcome.map_or(Waited::TimedOut, Waited::Done))
    }
}
