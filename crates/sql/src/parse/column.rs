//! Column definitions and their defaults.

use super::ast::*;
use super::lexer::Tok;
use super::parser::{Parser, Result};

impl Parser<'_> {
    /// A column's type and attributes; the name is taken already.
    pub(super) fn column_def(&mut self, name: String) -> Result<ColumnDef> {
        let ty = self.data_type()?;
        let serial = ty.kind == DataTypeKind::Serial;
        let mut column = ColumnDef {
            name,
            ty,
            nullable: serial.then_some(false),
            default: None,
            on_update: None,
            auto_increment: serial,
            invisible: None,
            generated: None,
            unique: serial,
            primary: false,
            comment: None,
            checks: Vec::new(),
        };
        loop {
            if self.kws(&["NOT", "NULL"]) {
                column.nullable = Some(false);
            } else if self.kw("NULL") {
                column.nullable = Some(true);
            } else if self.kw("DEFAULT") {
                column.default = Some(self.column_default()?);
            } else if self.is_kw("ON") && self.is_kw_at(1, "UPDATE") {
                self.advance();
                self.advance();
                column.on_update = Some(self.now_default()?.ok_or_else(|| self.error())?);
            } else if self.kw("AUTO_INCREMENT") {
                column.auto_increment = true;
            } else if self.kws(&["SERIAL", "DEFAULT", "VALUE"]) {
                (column.auto_increment, column.unique, column.nullable) = (true, true, Some(false));
            } else if self.kw("INVISIBLE") {
                column.invisible = Some(true);
            } else if self.kw("VISIBLE") {
                column.invisible = Some(false);
            } else if self.kws(&["GENERATED", "ALWAYS"]) || self.is_kw("AS") {
                self.expect_kw("AS")?;
                let expr = self.expr_text()?;
                let stored = self.kw("STORED") || self.kw("PERSISTENT");
                if !stored {
                    self.kw("VIRTUAL");
                }
                column.generated = Some(Generated { expr, stored });
            } else if self.kw("UNIQUE") {
                self.kw("KEY");
                column.unique = true;
            } else if self.kws(&["PRIMARY", "KEY"]) || self.kw("KEY") {
                column.primary = true;
            } else if self.kw("SRID") {
                column.ty.srid = Some(self.integer()?);
            } else if self.kw("COMMENT") {
                column.comment = Some(self.string()?);
            } else if self.kw("COLLATE") {
                column.ty.collation = Some(self.name_or_string()?);
            } else if self.any_kw(&["COLUMN_FORMAT", "STORAGE"]).is_some() {
                if self.any_kw(&["FIXED", "DYNAMIC", "DEFAULT", "DISK", "MEMORY"]).is_none() {
                    return self.fail();
                }
            } else if self.is_kw("CHECK") {
                column.checks.push(self.check_def(None)?);
            } else if self.is_kw("CONSTRAINT") && (self.is_kw_at(1, "CHECK") || self.is_kw_at(2, "CHECK")) {
                self.advance();
                let name = if self.is_kw("CHECK") { None } else { Some(self.ident()?) };
                column.checks.push(self.check_def(name)?);
            } else if self.is_kw("REFERENCES") {
                // Read and ignored, as in MySQL.
                self.references()?;
            } else {
                return Ok(column);
            }
        }
    }

    /// `CURRENT_TIMESTAMP[(n)]`, NOW([n]) and their synonyms: the fractional digits.
    fn now_default(&mut self) -> Result<Option<u32>> {
        let keyword = self.any_kw(&["CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"]);
        if keyword.is_none() && !(self.is_kw("NOW") && self.is_sym_at(1, "(")) {
            return Ok(None);
        }
        if keyword.is_none() {
            self.advance();
        }
        let mut fsp = 0;
        if self.sym("(") && !self.sym(")") {
            fsp = self.integer()? as u32;
            self.expect_sym(")")?;
        }
        Ok(Some(fsp))
    }

    /// What follows DEFAULT.
    pub(super) fn column_default(&mut self) -> Result<ColumnDefault> {
        if self.is_sym("(") {
            return Ok(ColumnDefault::Expr(self.expr_text()?));
        }
        if let Some(fsp) = self.now_default()? {
            return Ok(ColumnDefault::CurrentTimestamp(fsp));
        }
        let start = self.start();
        let sign = match self.peek() {
            Tok::Sym("-") => Some(UnaryOp::Minus),
            Tok::Sym("+") => Some(UnaryOp::Plus),
            _ => None,
        };
        if sign.is_some() {
            self.advance();
        }
        let literal = self.literal()?;
        let expr = match sign {
            Some(op) => Expr { kind: ExprKind::Unary { op, expr: Box::new(literal) }, span: self.span_from(start) },
            None => literal,
        };
        Ok(ColumnDefault::Literal(expr))
    }

    /// A literal and nothing more: what may follow must not be read as an operator.
    fn literal(&mut self) -> Result<Expr> {
        let start = self.start();
        let kind = match self.peek().clone() {
            Tok::Int(n) => Literal::Int(n),
            Tok::Decimal => Literal::Decimal(self.token_text()),
            Tok::Float => Literal::Float(self.token_text()),
            Tok::Hex(value) => Literal::Hex { value, introducer: None },
            Tok::Bit(value) => Literal::Bit(value),
            Tok::Str { .. } => {
                let value = self.text()?;
                return Ok(Expr { kind: ExprKind::Literal(Literal::String { value, introducer: None }), span: self.span_from(start) });
            }
            Tok::Word { .. } => {
                let word = self.word().unwrap_or_default().to_ascii_uppercase();
                let text_next = matches!(self.peek_at(1), Tok::Str { .. });
                let bytes_next = matches!(self.peek_at(1), Tok::Hex(_) | Tok::Bit(_));
                match word.as_str() {
                    "NULL" => Literal::Null,
                    "TRUE" | "FALSE" => Literal::Bool(word == "TRUE"),
                    "DATE" | "TIME" | "TIMESTAMP" if text_next => {
                        self.advance();
                        let value = self.string()?;
                        let literal = match word.as_str() {
                            "DATE" => Literal::Date(value),
                            "TIME" => Literal::Time(value),
                            _ => Literal::Timestamp(value),
                        };
                        return Ok(Expr { kind: ExprKind::Literal(literal), span: self.span_from(start) });
                    }
                    _ if word.starts_with('_') && text_next => {
                        self.advance();
                        let value = self.text()?;
                        let introducer = Some(word[1..].to_ascii_lowercase());
                        return Ok(Expr { kind: ExprKind::Literal(Literal::String { value, introducer }), span: self.span_from(start) });
                    }
                    _ if word.starts_with('_') && bytes_next => {
                        self.advance();
                        let introducer = Some(word[1..].to_ascii_lowercase());
                        match self.peek().clone() {
                            Tok::Hex(value) | Tok::Bit(value) => Literal::Hex { value, introducer },
                            _ => return self.fail(),
                        }
                    }
                    _ => return self.fail(),
                }
            }
            _ => return self.fail(),
        };
        self.advance();
        Ok(Expr { kind: ExprKind::Literal(kind), span: self.span_from(start) })
    }

    fn token_text(&self) -> String {
        let start = self.start();
        let length = self.sql[start..].find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '-'))).unwrap_or(self.sql.len() - start);
        self.sql[start..start + length].to_string()
    }
}
