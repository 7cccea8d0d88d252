//! CREATE EVENT and ALTER EVENT. The body of an event is that of a procedure without parameters (`routine.rs`).

use highkey_table::EventStatus;

use super::ast::*;
use super::parser::{Parser, Result};

/// Whether a statement is a definition of an event, whose body may hold semicolons. `is`: its token of that number is the keyword.
pub(super) fn begins_event(is: impl Fn(usize, &str) -> bool) -> bool {
    // `DEFINER = user@host`, `DEFINER = CURRENT_USER()`.
    (is(0, "CREATE") || is(0, "ALTER")) && (is(1, "EVENT") || (is(1, "DEFINER") && (3..10).any(|at| is(at, "EVENT"))))
}

impl Parser<'_> {
    /// CREATE … EVENT, from there on.
    pub(super) fn create_event(&mut self, definer: Option<UserName>) -> Result<Statement> {
        self.expect_kw("EVENT")?;
        let if_not_exists = self.if_not_exists();
        let name = self.program_name()?;
        if !self.is_kw("ON") || !self.is_kw_at(1, "SCHEDULE") {
            return self.fail();
        }
        let mut clauses = self.schedule_clauses()?;
        self.other_clauses(&mut clauses)?;
        if clauses.body.is_none() {
            return self.fail();
        }
        Ok(Statement::CreateEvent(Box::new(CreateEvent { if_not_exists, definer, name, clauses })))
    }

    /// ALTER … EVENT, from there on.
    pub(super) fn alter_event(&mut self, definer: Option<UserName>) -> Result<Statement> {
        self.expect_kw("EVENT")?;
        let name = self.object_name()?;
        let start = self.position();
        let mut clauses = self.schedule_clauses()?;
        let renamed = if self.kws(&["RENAME", "TO"]) { Some(self.object_name()?) } else { None };
        self.other_clauses(&mut clauses)?;
        if self.position() == start {
            return self.fail();
        }
        Ok(Statement::AlterEvent(Box::new(AlterEvent { definer, name, renamed, clauses })))
    }

    /// `[ON SCHEDULE …] [ON COMPLETION …]`.
    fn schedule_clauses(&mut self) -> Result<EventClauses> {
        let mut clauses = EventClauses::default();
        if self.kws(&["ON", "SCHEDULE"]) {
            clauses.schedule = Some(self.event_schedule()?);
        }
        if self.kws(&["ON", "COMPLETION"]) {
            clauses.preserve = Some(!self.kw("NOT"));
            self.expect_kw("PRESERVE")?;
        }
        Ok(clauses)
    }

    /// What follows it: `[ENABLE | DISABLE [ON SLAVE]] [COMMENT …] [DO …]`.
    fn other_clauses(&mut self, clauses: &mut EventClauses) -> Result<()> {
        if self.kw("ENABLE") {
            clauses.status = Some(EventStatus::Enabled);
        } else if self.kw("DISABLE") {
            let elsewhere = self.kws(&["ON", "SLAVE"]) || self.kws(&["ON", "REPLICA"]);
            clauses.status = Some(if elsewhere { EventStatus::SlavesideDisabled } else { EventStatus::Disabled });
        }
        if self.kw("COMMENT") {
            clauses.comment = Some(self.string()?);
        }
        if self.kw("DO") {
            clauses.body = Some(self.event_body()?);
        }
        Ok(())
    }

    fn event_schedule(&mut self) -> Result<ScheduleClause> {
        if self.kw("AT") {
            return Ok(ScheduleClause::At(Box::new(self.expr()?)));
        }
        self.expect_kw("EVERY")?;
        let count = Box::new(self.expr()?);
        let unit = self.interval_unit()?;
        let starts = if self.kw("STARTS") { Some(Box::new(self.expr()?)) } else { None };
        let ends = if self.kw("ENDS") { Some(Box::new(self.expr()?)) } else { None };
        Ok(ScheduleClause::Every { count, unit, starts, ends })
    }
}
