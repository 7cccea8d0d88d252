//! Loops, branches and labels: jumps between the steps of a body.

use highkey_types::errors;

use super::{Label, same};
use crate::parse::ast::*;
use crate::parse::parser::{Parser, Result};

impl Parser<'_> {
    /// LOOP, WHILE and REPEAT.
    pub(super) fn loops(&mut self, label: Option<String>) -> Result<()> {
        self.open_label(label.clone(), true);
        let start = self.routine().next();
        match self.any_kw(&["LOOP", "WHILE", "REPEAT"]) {
            Some("LOOP") => {
                self.branch(&["END"])?;
                self.expect_kw("END")?;
                self.expect_kw("LOOP")?;
                self.routine().push(Instruction::Jump(start));
            }
            Some("WHILE") => {
                let condition = self.routine_expr()?;
                self.expect_kw("DO")?;
                let check = self.routine().push(Instruction::JumpUnless { condition, to: 0, resume: 0 });
                self.branch(&["END"])?;
                self.expect_kw("END")?;
                self.expect_kw("WHILE")?;
                let routine = self.routine();
                routine.push(Instruction::Jump(start));
                routine.land(check);
                routine.resume_here(&[check]);
            }
            _ => {
                self.branch(&["UNTIL"])?;
                self.expect_kw("UNTIL")?;
                let condition = self.routine_expr()?;
                self.expect_kw("END")?;
                self.expect_kw("REPEAT")?;
                let routine = self.routine();
                let check = routine.push(Instruction::JumpUnless { condition, to: start, resume: 0 });
                routine.resume_here(&[check]);
            }
        }
        self.close_label();
        self.end_label(label.as_deref())
    }

    pub(super) fn if_steps(&mut self) -> Result<()> {
        let (mut checks, mut ends) = (Vec::new(), Vec::new());
        self.expect_kw("IF")?;
        loop {
            let condition = self.routine_expr()?;
            self.expect_kw("THEN")?;
            let check = self.routine().push(Instruction::JumpUnless { condition, to: 0, resume: 0 });
            checks.push(check);
            self.branch(&["ELSEIF", "ELSE", "END"])?;
            let more = self.is_any_kw(&["ELSEIF", "ELSE"]);
            let routine = self.routine();
            if more {
                ends.push(routine.push(Instruction::Jump(0)));
            }
            routine.land(check);
            if !self.kw("ELSEIF") {
                break;
            }
        }
        if self.kw("ELSE") {
            self.branch(&["END"])?;
        }
        self.expect_kw("END")?;
        self.expect_kw("IF")?;
        let routine = self.routine();
        ends.into_iter().for_each(|end| routine.land(end));
        routine.resume_here(&checks);
        Ok(())
    }

    /// At least one statement.
    fn branch(&mut self, words: &[&str]) -> Result<()> {
        self.step()?;
        self.semicolon()?;
        self.steps_until(words)
    }

    pub(super) fn case_steps(&mut self) -> Result<()> {
        let (mut checks, mut ends) = (Vec::new(), Vec::new());
        self.expect_kw("CASE")?;
        let operand = if self.is_kw("WHEN") {
            None
        } else {
            let value = self.routine_expr()?;
            let routine = self.routine();
            routine.program.variables.push(Variable { name: "CASE".to_string(), ty: None });
            let variable = routine.program.variables.len() - 1;
            checks.push(routine.push(Instruction::Set { variable, value, resume: None }));
            Some(variable)
        };
        if !self.is_kw("WHEN") {
            return self.fail();
        }
        while self.kw("WHEN") {
            let (condition, locals) = self.with_locals(|p| match operand {
                None => p.expr(),
                Some(variable) => {
                    let start = p.start();
                    let kind = p.local_parameter(variable);
                    let left = Box::new(Expr { kind, span: Span { start, end: start } });
                    let right = Box::new(p.expr()?);
                    Ok(Expr { kind: ExprKind::Binary { op: BinaryOp::Eq, left, right }, span: p.span_from(start) })
                }
            })?;
            self.expect_kw("THEN")?;
            let condition = Box::new(RoutineExpr { expr: condition, locals });
            let check = self.routine().push(Instruction::JumpUnless { condition, to: 0, resume: 0 });
            checks.push(check);
            self.branch(&["WHEN", "ELSE", "END"])?;
            let routine = self.routine();
            ends.push(routine.push(Instruction::Jump(0)));
            routine.land(check);
        }
        if self.kw("ELSE") {
            self.branch(&["END"])?;
        } else {
            self.routine().push(Instruction::CaseNotFound);
        }
        self.expect_kw("END")?;
        self.expect_kw("CASE")?;
        let routine = self.routine();
        ends.into_iter().for_each(|end| routine.land(end));
        routine.resume_here(&checks);
        Ok(())
    }

    /// LEAVE and ITERATE.
    pub(super) fn leave_step(&mut self) -> Result<()> {
        let iterates = self.any_kw(&["LEAVE", "ITERATE"]) == Some("ITERATE");
        let name = self.ident()?;
        let routine = self.routine();
        let Some(at) = routine.label(&name, iterates) else {
            return Err(errors::sp_lilabel_mismatch(if iterates { "ITERATE" } else { "LEAVE" }, name));
        };
        let Label { handlers, cursors, start, .. } = routine.labels[at];
        routine.leave(handlers, cursors);
        match start.filter(|_| iterates) {
            Some(start) => {
                routine.push(Instruction::Jump(start));
            }
            None => {
                let jump = routine.push(Instruction::Jump(0));
                routine.labels[at].leaves.push(jump);
            }
        }
        Ok(())
    }

    pub(super) fn end_label(&mut self, label: Option<&str>) -> Result<()> {
        if !self.is_ident() {
            return Ok(());
        }
        let end = self.ident()?;
        match label {
            Some(label) if same(label, &end) => Ok(()),
            _ => Err(errors::sp_label_mismatch(end)),
        }
    }

    pub(super) fn open_label(&mut self, name: Option<String>, is_loop: bool) {
        let routine = self.routine();
        let start = is_loop.then(|| routine.next());
        let (handlers, cursors) = (routine.program.handlers.len(), routine.program.cursors.len());
        routine.labels.push(Label { barrier: false, name, start, handlers, cursors, leaves: Vec::new() });
    }

    /// What leaves it goes on here.
    pub(super) fn close_label(&mut self) {
        let routine = self.routine();
        if let Some(label) = routine.labels.pop() {
            label.leaves.into_iter().for_each(|jump| routine.land(jump));
        }
    }
}
