//! SET_VAR hints: system variables that have another value while one statement runs.

use std::sync::Arc;

use highkey_types::{Level, Value, Warning, errors};

use super::state::clock_micros;
use super::{Session, error};
use crate::parse::ast::{SetVarHint, SetVarValue};
use crate::variables::{self, VarId, VarValue};

/// What the hints of the running statement have changed, as it was before.
#[derive(Default)]
pub(super) struct Unhinted {
    variables: Vec<(VarId, VarValue)>,
    /// Of `insert_id`, which is no stored value.
    next_insert_id: Option<Option<u64>>,
}

impl Session {
    /// Warns of hints that cannot be read or set nothing: where the statement is read, to be run or to be prepared.
    pub(crate) fn note_set_vars(&mut self, hints: &[Result<SetVarHint, String>]) {
        for (at, hint) in hints.iter().enumerate() {
            let warning = match hint {
                Ok(hint) => hinted(hint, &hints[..at]).err(),
                Err(message) => Some(error::warning(1064, message.clone())),
            };
            if let Some(warning) = warning {
                self.state.push_warning(warning);
            }
        }
    }

    /// Sets what the hints of the statement say, until `end_set_vars`. A value that a variable cannot have is a warning.
    pub(crate) fn begin_set_vars(&mut self, hints: &[Result<SetVarHint, String>]) {
        let mut changed = false;
        for (at, hint) in hints.iter().enumerate() {
            let Ok(hint) = hint else { continue };
            let Ok(id) = hinted(hint, &hints[..at]) else { continue };
            let value = match &hint.value {
                SetVarValue::Number(n) => Value::UInt(*n),
                SetVarValue::Text(text) => Value::text(text.as_str()),
            };
            let mut warnings = Vec::new();
            let converted = variables::convert(id, &value, &mut warnings);
            self.state.push_warnings(&mut warnings);
            match converted {
                Ok(value) if id.definition().name == "insert_id" => {
                    let VarValue::UInt(number) = value else { continue };
                    self.unhinted.next_insert_id = Some(self.state.next_insert_id.replace(number));
                }
                Ok(value) => {
                    self.unhinted.variables.push((id, self.state.variables.get(id).clone()));
                    Arc::make_mut(&mut self.state.variables).set(id, value);
                    changed = true;
                }
                Err(e) => self.state.push_ignored(e),
            }
        }
        if changed {
            let clock = self.unhinted.variables.iter().any(|(id, _)| id.definition().name == "timestamp");
            self.refresh_hinted(clock);
        }
    }

    /// The statement is over: its hints are, too.
    pub(crate) fn end_set_vars(&mut self) {
        if let Some(before) = self.unhinted.next_insert_id.take() {
            self.state.next_insert_id = before;
        }
        if self.unhinted.variables.is_empty() {
            return;
        }
        let values = Arc::make_mut(&mut self.state.variables);
        let mut clock = false;
        for (id, value) in self.unhinted.variables.drain(..) {
            clock |= id.definition().name == "timestamp";
            values.set(id, value);
        }
        self.refresh_hinted(clock);
    }

    /// Brings up to date what follows from the variables. `clock`: `timestamp` is one of those that have changed.
    fn refresh_hinted(&mut self, clock: bool) {
        self.state.refresh();
        if clock {
            self.state.now_micros = self.state.config.timestamp_micros.unwrap_or_else(clock_micros);
        }
    }
}

/// The variable that a hint sets, or the warning that it sets none. Of several hints about a variable the first counts; these are `earlier`.
fn hinted(hint: &SetVarHint, earlier: &[Result<SetVarHint, String>]) -> Result<VarId, Warning> {
    let warning = |e: highkey_types::MySqlError| e.into_warning(Level::Warning);
    let id = variables::find(&hint.name).ok_or_else(|| warning(errors::unresolved_hint_name(format_args!("'{}'", hint.name), "SET_VAR")))?;
    if !variables::is_hintable(id) {
        return Err(warning(errors::not_hint_updatable_variable(format_args!("'{}'", hint.name))));
    }
    if earlier.iter().flatten().any(|other| variables::find(&other.name) == Some(id)) {
        // With a space for the query block that other hints name.
        return Err(warning(errors::warn_conflicting_hint(format_args!("SET_VAR({}={}) ", id.definition().name, hint.value))));
    }
    Ok(id)
}
