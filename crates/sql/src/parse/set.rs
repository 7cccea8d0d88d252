//! SET in all its forms.

use super::ast::*;
use super::lexer::Tok;
use super::parser::{Parser, Result, unsupported};

impl Parser<'_> {
    pub(super) fn set(&mut self) -> Result<Statement> {
        self.expect_kw("SET")?;
        if self.is_kw("PASSWORD") && (self.is_sym_at(1, "=") || self.is_kw_at(1, "FOR") || self.is_sym_at(1, ":=") || self.is_kw_at(1, "TO")) {
            return self.set_password();
        }
        if self.is_kw("ROLE") && !(self.is_sym_at(1, "=") || self.is_sym_at(1, ":=")) {
            self.advance();
            return Ok(Statement::SetRole(self.role_choice(false)?));
        }
        if self.kws(&["DEFAULT", "ROLE"]) {
            let roles = self.role_choice(true)?;
            self.expect_kw("TO")?;
            return Ok(Statement::SetDefaultRole { roles, users: self.list(Self::role_name)? });
        }
        if self.is_kw("RESOURCE") && self.is_kw_at(1, "GROUP") {
            return unsupported("resource groups");
        }
        let mut items = Vec::new();
        // A scope written once holds for what follows until the next one.
        let mut inherited = None;
        loop {
            items.push(self.set_item(&mut inherited)?);
            if !self.sym(",") {
                return Ok(Statement::Set(items));
            }
        }
    }

    fn set_password(&mut self) -> Result<Statement> {
        self.advance();
        let user = if self.kw("FOR") { Some(self.user_name()?) } else { None };
        if self.kws(&["TO", "RANDOM"]) {
            return unsupported("SET PASSWORD TO RANDOM");
        }
        if !self.sym("=") {
            self.expect_sym(":=")?;
        }
        let password = if self.kw("PASSWORD") {
            self.expect_sym("(")?;
            let text = self.string()?;
            self.expect_sym(")")?;
            text
        } else {
            self.string()?
        };
        Ok(Statement::SetPassword { user, password })
    }

    pub(super) fn set_item(&mut self, inherited: &mut Option<VariableScope>) -> Result<SetItem> {
        if let Tok::UserVar(name) = self.peek().clone() {
            self.advance();
            self.assign_sign()?;
            return Ok(SetItem::User { name: name.to_lowercase(), value: self.expr()? });
        }
        if *self.peek() == Tok::AtAt {
            let (scope, name) = self.system_variable()?;
            self.assign_sign()?;
            return Ok(SetItem::System { scope, name, value: self.set_value()? });
        }
        if self.is_kw("NAMES") && !self.is_sym_at(1, "=") {
            self.advance();
            if self.kw("DEFAULT") {
                return Ok(SetItem::Names { charset: None, collation: None });
            }
            let charset = Some(self.name_or_string()?);
            let collation = if self.kw("COLLATE") { Some(self.name_or_string()?) } else { None };
            return Ok(SetItem::Names { charset, collation });
        }
        if self.kws(&["CHARACTER", "SET"]) || self.kws(&["CHAR", "SET"]) || (self.is_kw("CHARSET") && !self.is_sym_at(1, "=") && self.kw("CHARSET")) {
            if self.kw("DEFAULT") {
                return Ok(SetItem::CharacterSet(None));
            }
            return Ok(SetItem::CharacterSet(Some(self.name_or_string()?)));
        }
        let mut scope = None;
        if !self.is_sym_at(1, "=") && !self.is_sym_at(1, ":=") && !self.is_sym_at(1, ".") {
            scope = match self.any_kw(&["GLOBAL", "SESSION", "LOCAL", "PERSIST", "PERSIST_ONLY"]) {
                Some("GLOBAL") => Some(VariableScope::Global),
                Some("SESSION" | "LOCAL") => Some(VariableScope::Session),
                Some("PERSIST") => Some(VariableScope::Persist),
                Some(_) => Some(VariableScope::PersistOnly),
                None => None,
            };
        }
        if scope.is_some() {
            *inherited = scope;
        }
        if self.is_kw("TRANSACTION") && !self.is_sym_at(1, "=") {
            self.advance();
            return self.set_transaction(scope);
        }
        let mut name = self.ident_after_dot()?.to_ascii_lowercase();
        while self.sym(".") {
            name.push('.');
            name.push_str(&self.ident_after_dot()?.to_ascii_lowercase());
        }
        self.assign_sign()?;
        Ok(SetItem::System { scope: scope.or(*inherited), name, value: self.set_value()? })
    }

    fn assign_sign(&mut self) -> Result<()> {
        if self.sym("=") { Ok(()) } else { self.expect_sym(":=") }
    }

    fn set_value(&mut self) -> Result<SetValue> {
        if self.kw("DEFAULT") {
            return Ok(SetValue::Default);
        }
        let alone = matches!(self.peek_at(1), Tok::End | Tok::Sym(",")) && self.local().is_none();
        if let (true, Some(word)) = (alone, self.word())
            && !["NULL", "TRUE", "FALSE", "CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME", "CURRENT_USER"].iter().any(|k| word.eq_ignore_ascii_case(k))
        {
            self.advance();
            return Ok(SetValue::Word(word.to_string()));
        }
        Ok(SetValue::Expr(self.expr()?))
    }

    fn set_transaction(&mut self, scope: Option<VariableScope>) -> Result<SetItem> {
        let (mut isolation, mut access) = (None, None);
        loop {
            if self.kws(&["ISOLATION", "LEVEL"]) {
                isolation = Some(if self.kws(&["READ", "UNCOMMITTED"]) {
                    IsolationLevel::ReadUncommitted
                } else if self.kws(&["READ", "COMMITTED"]) {
                    IsolationLevel::ReadCommitted
                } else if self.kws(&["REPEATABLE", "READ"]) {
                    IsolationLevel::RepeatableRead
                } else if self.kw("SERIALIZABLE") {
                    IsolationLevel::Serializable
                } else {
                    return self.fail();
                });
            } else if let Some(mode) = self.access_mode() {
                access = Some(mode);
            } else {
                return self.fail();
            }
            if !self.sym(",") {
                return Ok(SetItem::Transaction { scope, isolation, access });
            }
        }
    }
}
