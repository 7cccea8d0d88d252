//! ALTER of tables, schemas and users.

use highkey_table::RoutineKind;

use super::ast::*;
use super::ddl::Element;
use super::parser::{Parser, Result, unsupported};

impl Parser<'_> {
    pub(super) fn alter(&mut self) -> Result<Statement> {
        self.expect_kw("ALTER")?;
        let attributes = self.view_attributes()?;
        if self.is_kw("VIEW") {
            return self.view(attributes, false, true);
        }
        if attributes.is_written() && !self.is_kw("EVENT") {
            return self.fail();
        }
        match self.word().unwrap_or_default().to_ascii_uppercase().as_str() {
            "TABLE" => {
                self.advance();
                self.alter_table()
            }
            "DATABASE" | "SCHEMA" => {
                self.advance();
                let named = self.is_ident() && !self.is_any_kw(&["CHARSET", "ENCRYPTION"]);
                let name = if named { Some(self.ident()?) } else { None };
                Ok(Statement::AlterDatabase { name, options: self.database_options()? })
            }
            "USER" => {
                self.advance();
                self.alter_user()
            }
            "PROCEDURE" | "FUNCTION" => {
                let kind = if self.is_kw("PROCEDURE") { RoutineKind::Procedure } else { RoutineKind::Function };
                self.advance();
                let name = self.object_name()?;
                Ok(Statement::AlterRoutine { kind, name, characteristics: self.characteristics(false)? })
            }
            "EVENT" if attributes.algorithm.is_none() && attributes.invoker.is_none() => self.alter_event(attributes.definer),
            "INSTANCE" => unsupported("ALTER INSTANCE"),
            "SERVER" | "TABLESPACE" | "UNDO" | "LOGFILE" | "RESOURCE" => unsupported("ALTER TABLESPACE"),
            _ => self.fail(),
        }
    }

    fn alter_table(&mut self) -> Result<Statement> {
        let name = self.object_name()?;
        let mut alter = AlterTable { name, actions: Vec::new(), algorithm: None, lock: None };
        while !self.at_end() {
            if self.is_kw("ALGORITHM") || (self.is_kw("LOCK") && (self.is_sym_at(1, "=") || !self.is_sym_at(1, "."))) {
                let (algorithm, lock) = self.algorithm_and_lock()?;
                alter.algorithm = algorithm.or(alter.algorithm);
                alter.lock = lock.or(alter.lock);
            } else if self.kws(&["WITH", "VALIDATION"]) || self.kws(&["WITHOUT", "VALIDATION"]) {
            } else if self.table_option_at(0) {
                alter.actions.push(AlterAction::Options(self.table_options()?));
            } else {
                self.alter_action(&mut alter.actions)?;
            }
            if !self.sym(",") && !self.at_end() && !self.table_option_at(0) && !self.is_any_kw(&["PARTITION", "REMOVE"]) {
                return self.fail();
            }
        }
        Ok(Statement::AlterTable(Box::new(alter)))
    }

    fn alter_action(&mut self, actions: &mut Vec<AlterAction>) -> Result<()> {
        let word = self.word().unwrap_or_default().to_ascii_uppercase();
        if let Some(action) = self.partition_action(&word)? {
            actions.push(action);
            return Ok(());
        }
        let action = match word.as_str() {
            "ADD" => {
                self.advance();
                return self.alter_add(actions);
            }
            "DROP" => {
                self.advance();
                self.alter_drop()?
            }
            "MODIFY" => {
                self.advance();
                self.kw("COLUMN");
                let old = self.ident()?;
                let def = Box::new(self.column_def(old.clone())?);
                AlterAction::ChangeColumn { old, def, position: self.column_position()? }
            }
            "CHANGE" => {
                self.advance();
                self.kw("COLUMN");
                let old = self.ident()?;
                let new = self.ident()?;
                let def = Box::new(self.column_def(new)?);
                AlterAction::ChangeColumn { old, def, position: self.column_position()? }
            }
            "RENAME" => {
                self.advance();
                self.alter_rename()?
            }
            "ALTER" => {
                self.advance();
                self.alter_alter()?
            }
            "CONVERT" => {
                self.advance();
                self.expect_kw("TO")?;
                let Some(charset) = self.charset_clause()? else { return self.fail() };
                let charset = (!charset.eq_ignore_ascii_case("default")).then_some(charset);
                let collation = if self.kw("COLLATE") {
                    self.sym("=");
                    Some(self.name_or_string()?)
                } else {
                    None
                };
                AlterAction::ConvertCharset { charset, collation }
            }
            "ORDER" => {
                self.advance();
                self.expect_kw("BY")?;
                AlterAction::OrderBy(self.list(|p| {
                    let column = p.column_ref()?.column;
                    p.any_kw(&["ASC", "DESC"]);
                    Ok(column)
                })?)
            }
            "FORCE" => {
                self.advance();
                AlterAction::Force
            }
            "ENABLE" | "DISABLE" => {
                self.advance();
                self.expect_kw("KEYS")?;
                AlterAction::EnableKeys
            }
            "DISCARD" | "IMPORT" => return unsupported("tablespace import and discard"),
            "SECONDARY_LOAD" | "SECONDARY_UNLOAD" => return unsupported("secondary engines"),
            _ => return self.fail(),
        };
        actions.push(action);
        Ok(())
    }

    fn alter_add(&mut self, actions: &mut Vec<AlterAction>) -> Result<()> {
        if !self.is_kw("COLUMN")
            && let Some(element) = self.constraint_element()?
        {
            actions.push(match element {
                Element::Index(index) => AlterAction::AddIndex(index),
                Element::Check(check) => AlterAction::AddCheck(check),
                Element::ForeignKey(key) => AlterAction::AddForeignKey(key),
            });
            return Ok(());
        }
        self.kw("COLUMN");
        if self.sym("(") {
            loop {
                match self.constraint_element()? {
                    Some(Element::Index(index)) => actions.push(AlterAction::AddIndex(index)),
                    Some(Element::Check(check)) => actions.push(AlterAction::AddCheck(check)),
                    Some(Element::ForeignKey(key)) => actions.push(AlterAction::AddForeignKey(key)),
                    None => {
                        let name = self.ident()?;
                        actions.push(AlterAction::AddColumn(Box::new(self.column_def(name)?), ColumnPosition::Last));
                    }
                }
                if !self.sym(",") {
                    break;
                }
            }
            return self.expect_sym(")");
        }
        let name = self.ident()?;
        let def = self.column_def(name)?;
        let position = self.column_position()?.unwrap_or(ColumnPosition::Last);
        actions.push(AlterAction::AddColumn(Box::new(def), position));
        Ok(())
    }

    fn column_position(&mut self) -> Result<Option<ColumnPosition>> {
        if self.kw("FIRST") {
            return Ok(Some(ColumnPosition::First));
        }
        if self.kw("AFTER") {
            return Ok(Some(ColumnPosition::After(self.ident()?)));
        }
        Ok(None)
    }

    fn alter_drop(&mut self) -> Result<AlterAction> {
        if self.kws(&["PRIMARY", "KEY"]) {
            return Ok(AlterAction::DropPrimaryKey);
        }
        if self.kws(&["FOREIGN", "KEY"]) {
            return Ok(AlterAction::DropForeignKey(self.ident()?));
        }
        if self.is_any_kw(&["INDEX", "KEY"]) {
            self.advance();
            return Ok(AlterAction::DropIndex(self.ident()?));
        }
        if self.kw("CHECK") {
            return Ok(AlterAction::DropCheck(self.ident()?));
        }
        if self.kw("CONSTRAINT") {
            return Ok(AlterAction::DropConstraint(self.ident()?));
        }
        self.kw("COLUMN");
        let column = self.ident()?;
        self.any_kw(&["RESTRICT", "CASCADE"]);
        Ok(AlterAction::DropColumn(column))
    }

    fn alter_rename(&mut self) -> Result<AlterAction> {
        if self.kw("COLUMN") {
            let old = self.ident()?;
            self.expect_kw("TO")?;
            return Ok(AlterAction::RenameColumn { old, new: self.ident()? });
        }
        if self.any_kw(&["INDEX", "KEY"]).is_some() {
            let old = self.ident()?;
            self.expect_kw("TO")?;
            return Ok(AlterAction::RenameIndex { old, new: self.ident()? });
        }
        if self.any_kw(&["TO", "AS"]).is_none() {
            self.sym("=");
        }
        Ok(AlterAction::RenameTable(self.object_name()?))
    }

    fn alter_alter(&mut self) -> Result<AlterAction> {
        if self.kw("INDEX") {
            let name = self.ident()?;
            let visible = self.any_kw(&["VISIBLE", "INVISIBLE"]).ok_or_else(|| self.error())? == "VISIBLE";
            return Ok(AlterAction::AlterIndexVisible { name, visible });
        }
        if self.any_kw(&["CHECK", "CONSTRAINT"]).is_some() {
            let name = self.ident()?;
            let enforced = !self.kw("NOT");
            self.expect_kw("ENFORCED")?;
            return Ok(AlterAction::AlterCheck { name, enforced });
        }
        self.kw("COLUMN");
        let column = self.ident()?;
        if self.kws(&["DROP", "DEFAULT"]) {
            return Ok(AlterAction::SetDefault { column, default: None });
        }
        self.expect_kw("SET")?;
        if let Some(word) = self.any_kw(&["VISIBLE", "INVISIBLE"]) {
            return Ok(AlterAction::SetVisible { column, visible: word == "VISIBLE" });
        }
        self.expect_kw("DEFAULT")?;
        Ok(AlterAction::SetDefault { column, default: Some(self.column_default()?) })
    }
}
