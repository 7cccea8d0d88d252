//! HANDLER statements.

use super::ast::*;
use super::parser::{Parser, Result};

impl Parser<'_> {
    pub(super) fn handler(&mut self) -> Result<Statement> {
        self.expect_kw("HANDLER")?;
        let table = self.object_name()?;
        if self.kw("OPEN") {
            return Ok(Statement::Handler(HandlerStatement::Open { table, alias: self.alias(false)? }));
        }
        // A handler's name has no schema.
        if table.schema.is_some() {
            return self.fail();
        }
        if self.kw("CLOSE") {
            return Ok(Statement::Handler(HandlerStatement::Close(table.name)));
        }
        self.expect_kw("READ")?;
        let (index, step) = self.handler_step()?;
        let condition = if self.kw("WHERE") { Some(self.expr()?) } else { None };
        let limit = self.limit_clause()?;
        Ok(Statement::Handler(HandlerStatement::Read(Box::new(HandlerRead { name: table.name, index, step, condition, limit }))))
    }

    /// Behind READ: FIRST and NEXT, or an index and where in it. Only an index is read backward.
    fn handler_step(&mut self) -> Result<(Option<String>, HandlerStep)> {
        match self.any_kw(&["FIRST", "NEXT"]) {
            Some("FIRST") => return Ok((None, HandlerStep::First)),
            Some(_) => return Ok((None, HandlerStep::Next)),
            None => {}
        }
        let index = self.ident()?;
        let step = match self.any_kw(&["FIRST", "NEXT", "PREV", "LAST"]) {
            Some("FIRST") => HandlerStep::First,
            Some("NEXT") => HandlerStep::Next,
            Some("PREV") => HandlerStep::Previous,
            Some(_) => HandlerStep::Last,
            None => HandlerStep::Key(self.handler_comparison()?, self.parenthesised_list(Self::expr)?),
        };
        Ok((Some(index), step))
    }

    fn handler_comparison(&mut self) -> Result<HandlerComparison> {
        use HandlerComparison::*;
        for (symbol, comparison) in [("=", Equal), (">=", AtLeast), (">", Above), ("<=", AtMost), ("<", Below)] {
            if self.sym(symbol) {
                return Ok(comparison);
            }
        }
        self.fail()
    }
}
