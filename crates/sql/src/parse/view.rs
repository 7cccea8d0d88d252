//! CREATE VIEW and ALTER VIEW.

use highkey_table::{CheckOption, ViewAlgorithm};

use super::ast::*;
use super::parser::{Parser, Result};

/// What may stand before VIEW.
#[derive(Default)]
pub(super) struct ViewAttributes {
    pub algorithm: Option<ViewAlgorithm>,
    pub definer: Option<UserName>,
    /// SQL SECURITY: INVOKER or DEFINER.
    pub invoker: Option<bool>,
}

impl ViewAttributes {
    pub fn is_written(&self) -> bool {
        self.algorithm.is_some() || self.definer.is_some() || self.invoker.is_some()
    }
}

impl Parser<'_> {
    /// `[ALGORITHM = …] [DEFINER = …] [SQL SECURITY …]`.
    pub(super) fn view_attributes(&mut self) -> Result<ViewAttributes> {
        let mut attributes = ViewAttributes::default();
        if self.kw("ALGORITHM") {
            self.expect_sym("=")?;
            attributes.algorithm = Some(match self.any_kw(&["UNDEFINED", "MERGE", "TEMPTABLE"]) {
                Some("UNDEFINED") => ViewAlgorithm::Undefined,
                Some("MERGE") => ViewAlgorithm::Merge,
                Some(_) => ViewAlgorithm::TempTable,
                None => return self.fail(),
            });
        }
        if self.kw("DEFINER") {
            self.expect_sym("=")?;
            attributes.definer = Some(self.user_name()?);
        }
        if self.kws(&["SQL", "SECURITY"]) {
            let word = self.any_kw(&["DEFINER", "INVOKER"]).ok_or_else(|| self.error())?;
            attributes.invoker = Some(word == "INVOKER");
        }
        Ok(attributes)
    }

    /// From VIEW on.
    pub(super) fn view(&mut self, attributes: ViewAttributes, replace: bool, alter: bool) -> Result<Statement> {
        self.expect_kw("VIEW")?;
        let name = self.object_name()?;
        let columns = if self.is_sym("(") { self.parenthesised_list(Self::ident)? } else { Vec::new() };
        self.expect_kw("AS")?;
        let query = Box::new(self.query()?);
        if query.into.is_some() {
            return self.fail();
        }
        let mut check = CheckOption::None;
        if self.kw("WITH") {
            check = if self.any_kw(&["CASCADED", "LOCAL"]) == Some("LOCAL") { CheckOption::Local } else { CheckOption::Cascaded };
            self.expect_kw("CHECK")?;
            self.expect_kw("OPTION")?;
        }
        Ok(Statement::CreateView(Box::new(CreateView {
            alter,
            replace,
            algorithm: attributes.algorithm.unwrap_or(ViewAlgorithm::Undefined),
            definer: attributes.definer,
            invoker: attributes.invoker,
            name,
            columns,
            query,
            check,
        })))
    }
}
