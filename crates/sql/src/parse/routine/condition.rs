//! Conditions: the handlers that are for them, and the statements that raise them and ask for them.

use highkey_types::{SqlState, errors};

use super::Label;
use crate::parse::ast::*;
use crate::parse::lexer::Tok;
use crate::parse::parser::{Parser, Result};

impl Parser<'_> {
    /// DECLARE … HANDLER, behind its first word.
    pub(super) fn declare_handler(&mut self) -> Result<()> {
        let exit = self.any_kw(&["CONTINUE", "EXIT"]) == Some("EXIT");
        self.expect_kw("HANDLER")?;
        self.expect_kw("FOR")?;
        let conditions = self.list(Self::handled_condition)?;
        let routine = self.routine();
        for condition in &conditions {
            if routine.current().handled.contains(condition) {
                return Err(errors::sp_dup_handler());
            }
            routine.current().handled.push(*condition);
        }
        let number = routine.program.handlers.len();
        let declared = routine.push(Instruction::Declare { handler: number, after: 0 });
        routine.program.handlers.push(Handler { conditions, first: declared + 1 });
        let scope = routine.current().scope;
        routine.program.scopes[scope].handlers.push(number);
        routine.open_scope(true);
        routine.labels.push(Label { barrier: true, name: None, start: None, handlers: 0, cursors: 0, leaves: Vec::new() });
        self.step()?;
        let routine = self.routine();
        routine.labels.pop();
        routine.names.pop();
        let end = routine.push(Instruction::EndHandler { to: None });
        if exit {
            routine.current().exits.push(end);
        }
        routine.land(declared);
        Ok(())
    }

    fn handled_condition(&mut self) -> Result<HandledCondition> {
        if self.kw("SQLWARNING") {
            return Ok(HandledCondition::Warning);
        }
        if self.kw("SQLEXCEPTION") {
            return Ok(HandledCondition::Exception);
        }
        if self.kws(&["NOT", "FOUND"]) {
            return Ok(HandledCondition::NotFound);
        }
        if self.is_kw("SQLSTATE") || matches!(self.peek(), Tok::Int(_)) {
            return self.condition_value();
        }
        let name = self.ident()?;
        self.routine().condition(&name).ok_or_else(|| errors::sp_cond_mismatch(name))
    }

    /// An error's number, or SQLSTATE [VALUE] '…'.
    pub(super) fn condition_value(&mut self) -> Result<HandledCondition> {
        if let Tok::Int(number) = *self.peek() {
            self.advance();
            return match u16::try_from(number) {
                Ok(0) | Err(_) => Err(errors::wrong_value("CONDITION", number)),
                Ok(code) => Ok(HandledCondition::Code(code)),
            };
        }
        self.sqlstate().map(HandledCondition::State)
    }

    fn sqlstate(&mut self) -> Result<SqlState> {
        self.expect_kw("SQLSTATE")?;
        self.kw("VALUE");
        let text = self.string()?;
        SqlState::parse(&text).filter(|state| !state.is_success()).ok_or_else(|| errors::sp_bad_sqlstate(text))
    }

    /// SIGNAL and RESIGNAL.
    pub(in crate::parse) fn signal(&mut self) -> Result<Statement> {
        let again = self.any_kw(&["SIGNAL", "RESIGNAL"]) == Some("RESIGNAL");
        let state = if self.is_kw("SQLSTATE") {
            Some(self.sqlstate()?)
        } else if self.is_ident() {
            let name = self.ident()?;
            match self.routine.as_ref().and_then(|routine| routine.condition(&name)) {
                Some(HandledCondition::State(state)) => Some(state),
                Some(_) => return Err(errors::signal_bad_condition_type()),
                None => return Err(errors::sp_cond_mismatch(name)),
            }
        } else if again {
            None
        } else {
            return self.fail();
        };
        let mut items: Vec<(ConditionItem, Expr)> = Vec::new();
        if self.kw("SET") {
            loop {
                let item = self.condition_item()?;
                if item == ConditionItem::ReturnedSqlstate {
                    return self.fail();
                }
                if items.iter().any(|(other, _)| *other == item) {
                    return Err(errors::dup_signal_set(item.name()));
                }
                self.expect_sym("=")?;
                items.push((item, self.expr()?));
                if !self.sym(",") {
                    break;
                }
            }
        }
        Ok(Statement::Signal(Box::new(Signal { again, state, items })))
    }

    fn condition_item(&mut self) -> Result<ConditionItem> {
        let item = ConditionItem::ALL.into_iter().find(|item| self.is_kw(item.name())).ok_or_else(|| self.error())?;
        self.advance();
        Ok(item)
    }

    /// GET [CURRENT | STACKED] DIAGNOSTICS.
    pub(in crate::parse) fn get_diagnostics(&mut self) -> Result<Statement> {
        self.expect_kw("GET")?;
        let stacked = self.any_kw(&["CURRENT", "STACKED"]) == Some("STACKED");
        self.expect_kw("DIAGNOSTICS")?;
        let information = if self.kw("CONDITION") {
            let number = self.expr()?;
            let items = self.list(|p| {
                let target = p.assigned_target()?;
                Ok((target, p.condition_item()?))
            })?;
            Information::Condition { number, items }
        } else {
            Information::Statement(self.list(|p| {
                let target = p.assigned_target()?;
                match p.any_kw(&["NUMBER", "ROW_COUNT"]) {
                    Some("NUMBER") => Ok((target, StatementItem::Number)),
                    Some(_) => Ok((target, StatementItem::RowCount)),
                    None => p.fail(),
                }
            })?)
        };
        Ok(Statement::GetDiagnostics(Box::new(GetDiagnostics { stacked, information })))
    }

    /// `target =`.
    fn assigned_target(&mut self) -> Result<Target> {
        let target = self.target()?;
        self.expect_sym("=")?;
        Ok(target)
    }
}
