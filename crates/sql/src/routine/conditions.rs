//! SIGNAL, RESIGNAL and GET DIAGNOSTICS.

use highkey_types::{Collation, ColumnType, Level, MySqlError, SqlState, Value, Warning, cast, errors};

use crate::execute::{Failure, Outcome};
use crate::parse::ast::{ConditionItem, GetDiagnostics, Information, Signal, StatementItem, Target};
use crate::plan::ExprType;
use crate::session::{Diagnostics, Session, SignalItems, error};

/// Characters of a MESSAGE_TEXT, and of the names.
const MESSAGE_MAX: usize = 128;
const NAME_MAX: usize = 64;

/// Puts number and text that SIGNAL gives into what it raises, and gives its other items. `cut`: warnings of texts that are too long, which strict mode makes
/// error 1648.
pub(super) fn raise_with(raised: &mut MySqlError, given: Vec<(ConditionItem, Value)>, strict: bool, cut: &mut Vec<Warning>) -> Result<SignalItems, MySqlError> {
    let mut fitting = |item: ConditionItem, text: &str, most: usize| {
        if text.chars().count() <= most {
            return Ok(text.to_owned());
        }
        if strict {
            return Err(errors::cond_item_too_long(item.name()));
        }
        cut.push(error::warning(1647, format!("Data truncated for condition item '{}'", item.name())));
        Ok(text.chars().take(most).collect())
    };
    let mut items = SignalItems::new();
    for (item, value) in given {
        let text = cast::to_str(&value).ok_or_else(|| errors::wrong_value_for_var(item.name(), "NULL"))?;
        match item {
            ConditionItem::MysqlErrno => {
                let number = text.parse::<u16>().ok().filter(|number| *number > 0);
                raised.code = number.ok_or_else(|| errors::wrong_value_for_var(item.name(), &*text))?;
            }
            ConditionItem::MessageText => raised.message = fitting(item, &text, MESSAGE_MAX)?,
            _ => items.push((item, fitting(item, &text, NAME_MAX)?)),
        }
    }
    Ok(items)
}

impl Session {
    /// SIGNAL and RESIGNAL: an error, or a warning.
    pub(crate) async fn signal(&mut self, signal: &Signal) -> Result<Outcome, Failure> {
        let (mut error, mut is_warning) = (None, false);
        if signal.again {
            let Some(handled) = self.handled() else { return Err(errors::resignal_without_active_handler().into()) };
            let diagnostics = handled.diagnostics.clone();
            (error, is_warning) = (Some(handled.error.clone()), handled.is_warning);
            self.state.diagnostics = diagnostics;
        }
        let mut raised = match (signal.state, error) {
            (None, Some(error)) => {
                self.state.diagnostics.forget_last();
                error
            }
            (Some(state), _) => {
                is_warning = state.is_warning();
                unnamed(state)
            }
            // The parser asks for one.
            (None, None) => return Ok(Outcome::ok()),
        };
        let mut given = Vec::with_capacity(signal.items.len());
        for (item, ast) in &signal.items {
            given.push((*item, self.constant(ast).await?));
        }
        let (strict, mut cut) = (self.state.strict(), Vec::new());
        let items = raise_with(&mut raised, given, strict, &mut cut);
        cut.into_iter().for_each(|warning| self.state.push_warning(warning));
        let items = items?;
        // The condition that is raised again stays the server's, if it was.
        let items = if signal.state.is_none() && items.is_empty() { None } else { Some(items) };
        if !is_warning {
            if let Some(items) = items {
                self.state.diagnostics.set_raised(items);
            }
            self.routines.settled = true;
            return Err(raised.into());
        }
        let warning = Warning { level: Level::Warning, code: raised.code, message: raised.message };
        self.state.diagnostics.push_signalled(warning, raised.sqlstate, items, self.state.config.max_error_count);
        Ok(Outcome::ok())
    }

    /// GET DIAGNOSTICS as a statement of its own: into user variables.
    pub(crate) async fn get_diagnostics(&mut self, get: &GetDiagnostics) -> Result<Outcome, Failure> {
        for (target, value, ty) in self.diagnostics(get).await? {
            if let Target::User(name) = target {
                self.state.user_vars.insert(name.to_lowercase().into(), (value, ty.collation()));
            }
        }
        Ok(Outcome::ok())
    }

    /// What GET DIAGNOSTICS asks. Error 3004; a condition that is not there is itself one more condition, and no error.
    pub(super) async fn diagnostics<'g>(&mut self, get: &'g GetDiagnostics) -> Result<Vec<(&'g Target, Value, ExprType)>, Failure> {
        let stacked = match (get.stacked, self.handled()) {
            (false, _) => None,
            (true, Some(handled)) => Some(handled.diagnostics.clone()),
            (true, None) => return Err(errors::get_stacked_da_without_active_handler().into()),
        };
        let (number, items) = match &get.information {
            Information::Statement(items) => {
                let diagnostics = stacked.as_ref().unwrap_or(&self.state.diagnostics);
                let answer = |(target, item): &'g (Target, StatementItem)| {
                    let value = match item {
                        StatementItem::Number => Value::Int(diagnostics.conditions().len() as i64),
                        StatementItem::RowCount => Value::Int(self.state.row_count),
                    };
                    (target, value, ExprType::bigint(true))
                };
                return Ok(items.iter().map(answer).collect());
            }
            Information::Condition { number, items } => (number, items),
        };
        let number = self.constant(number).await?;
        let at = self.state.with_cast(|cx| cast::to_i64(&number, cx)).and_then(|number| usize::try_from(number).ok()).and_then(|number| number.checked_sub(1));
        let diagnostics = stacked.as_ref().unwrap_or(&self.state.diagnostics);
        let found = at.and_then(|at| items.iter().map(|(target, item)| condition(diagnostics, at, *item).map(|(value, ty)| (target, value, ty))).collect::<Option<Vec<_>>>());
        match found {
            Some(values) => Ok(values),
            None => {
                self.state.diagnostics.push_error(&errors::da_invalid_condition_number(), self.state.config.max_error_count);
                Ok(Vec::new())
            }
        }
    }
}

/// The condition of a SQLSTATE that nothing more is said of.
pub(super) fn unnamed(state: SqlState) -> MySqlError {
    let error = if state.is_warning() {
        errors::signal_warn()
    } else if state.is_not_found() {
        errors::signal_not_found()
    } else {
        errors::signal_exception()
    };
    MySqlError { sqlstate: state, ..error }
}

/// An item of a condition; `None` if there is no such condition.
pub(super) fn condition(diagnostics: &Diagnostics, at: usize, item: ConditionItem) -> Option<(Value, ExprType)> {
    let condition = diagnostics.conditions().get(at)?;
    let (state, items) = diagnostics.state_and_items(at)?;
    let set = items.into_iter().flatten().find(|(set, _)| *set == item).map(|(_, text)| text.as_str());
    // SIGNAL says of no class who has made it.
    let made = |class: &'static str| if items.is_some() { "" } else { class };
    let text = match item {
        ConditionItem::MysqlErrno => return Some((Value::Int(i64::from(condition.code)), ExprType::bigint(true))),
        ConditionItem::MessageText => condition.message.as_str(),
        ConditionItem::ReturnedSqlstate => state.as_str(),
        ConditionItem::ClassOrigin => set.unwrap_or(made(if is_standard(state) { "ISO 9075" } else { "MySQL" })),
        ConditionItem::SubclassOrigin => set.unwrap_or(made(if is_standard(state) || state.as_str().ends_with("000") { "ISO 9075" } else { "MySQL" })),
        _ => set.unwrap_or_default(),
    };
    Some((Value::text(text), ExprType::column(ColumnType::varchar(MESSAGE_MAX as u32, Collation::utf8mb4()), true)))
}

/// The class of the SQLSTATE is one of those that the standard has for itself.
fn is_standard(state: SqlState) -> bool {
    matches!(state.as_bytes()[0], b'0'..=b'4' | b'A'..=b'H')
}
