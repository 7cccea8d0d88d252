//! Functions whose arguments are not a plain list: CAST, EXTRACT, TRIM …, aggregates and window functions.

use super::ast::*;
use super::lexer::Tok;
use super::parser::{Parser, Result, unsupported};

impl Parser<'_> {
    /// Functions whose arguments are not a plain list. The current token is the name, an opening parenthesis follows.
    pub(super) fn special_function(&mut self, word: &str, start: usize) -> Result<Option<Expr>> {
        if AGGREGATES.contains(&word) || WINDOW_FUNCTIONS.contains(&word) {
            return self.aggregate(word, start).map(Some);
        }
        let open = |p: &mut Self| {
            p.advance();
            p.advance();
        };
        let kind = match word {
            "CAST" => {
                open(self);
                let expr = Box::new(self.expr()?);
                self.expect_kw("AS")?;
                let ty = self.cast_type()?;
                if self.kw("ARRAY") {
                    return unsupported("CAST(... AS ... ARRAY)");
                }
                ExprKind::Cast { expr, ty }
            }
            "CONVERT" => {
                open(self);
                let expr = Box::new(self.expr()?);
                if self.kw("USING") {
                    ExprKind::ConvertUsing { expr, charset: self.name_or_string()? }
                } else {
                    self.expect_sym(",")?;
                    ExprKind::Cast { expr, ty: self.cast_type()? }
                }
            }
            "DATE_ADD" | "DATE_SUB" | "ADDDATE" | "SUBDATE" => {
                open(self);
                let subtract = word.contains("SUB");
                let date = Box::new(self.expr()?);
                self.expect_sym(",")?;
                let (value, unit) = if self.is_kw("INTERVAL") && !self.interval_is_function() {
                    self.interval()?
                } else if word.ends_with("DATE") {
                    (self.expr()?, IntervalUnit::Day)
                } else {
                    return self.fail();
                };
                ExprKind::DateArith { date, value: Box::new(value), unit, subtract }
            }
            "TIMESTAMPADD" => {
                open(self);
                let unit = self.interval_unit()?;
                self.expect_sym(",")?;
                let value = Box::new(self.expr()?);
                self.expect_sym(",")?;
                ExprKind::DateArith { date: Box::new(self.expr()?), value, unit, subtract: false }
            }
            "TIMESTAMPDIFF" => {
                open(self);
                let unit = self.interval_unit()?;
                self.expect_sym(",")?;
                let from = Box::new(self.expr()?);
                self.expect_sym(",")?;
                ExprKind::TimestampDiff { unit, from, to: Box::new(self.expr()?) }
            }
            "EXTRACT" => {
                open(self);
                let unit = self.interval_unit()?;
                self.expect_kw("FROM")?;
                ExprKind::Extract { unit, date: Box::new(self.expr()?) }
            }
            "TRIM" => {
                open(self);
                let side = self.any_kw(&["BOTH", "LEADING", "TRAILING"]);
                let first = if side.is_some() && self.is_kw("FROM") { None } else { Some(Box::new(self.expr()?)) };
                let (what, text) = if self.kw("FROM") {
                    (first, Box::new(self.expr()?))
                } else if side.is_some() {
                    return self.fail();
                } else {
                    (None, first.ok_or_else(|| self.error())?)
                };
                let side = match side {
                    Some("LEADING") => TrimSide::Leading,
                    Some("TRAILING") => TrimSide::Trailing,
                    _ => TrimSide::Both,
                };
                ExprKind::Trim { side, what, text }
            }
            "SUBSTRING" | "SUBSTR" | "MID" => {
                open(self);
                let mut args = vec![self.expr()?];
                if self.kw("FROM") {
                    args.push(self.expr()?);
                    if self.kw("FOR") {
                        args.push(self.expr()?);
                    }
                } else {
                    while self.sym(",") {
                        args.push(self.expr()?);
                    }
                }
                ExprKind::Function(FunctionCall { name: ObjectName { schema: None, name: "SUBSTRING".into() }, args })
            }
            "POSITION" => {
                open(self);
                let what = self.bit_expr(0)?;
                self.expect_kw("IN")?;
                let args = vec![what, self.expr()?];
                ExprKind::Function(FunctionCall { name: ObjectName { schema: None, name: "LOCATE".into() }, args })
            }
            "CHAR" => {
                open(self);
                let args = self.list(Self::expr)?;
                let charset = if self.kw("USING") { Some(self.name_or_string()?) } else { None };
                ExprKind::Char { args, charset }
            }
            "WEIGHT_STRING" => {
                open(self);
                let expr = Box::new(self.expr()?);
                let cast = if self.kw("AS") { Some(self.cast_type()?) } else { None };
                ExprKind::WeightString { expr, cast }
            }
            "GET_FORMAT" => {
                open(self);
                let kind = self.any_kw(&["DATETIME", "TIMESTAMP", "DATE", "TIME"]).ok_or_else(|| self.error())?.to_string();
                self.expect_sym(",")?;
                ExprKind::GetFormat { kind, style: Box::new(self.expr()?) }
            }
            "JSON_VALUE" => {
                open(self);
                ExprKind::JsonValue(Box::new(self.json_value()?))
            }
            _ => return Ok(None),
        };
        self.expect_sym(")")?;
        Ok(Some(self.make(kind, start)))
    }

    /// What JSON_VALUE has between its parentheses.
    fn json_value(&mut self) -> Result<JsonValueCall> {
        let document = self.expr()?;
        self.expect_sym(",")?;
        let path = self.expr()?;
        let returning = if self.kw("RETURNING") { Some(self.cast_type()?) } else { None };
        if matches!(returning, Some(CastType::Binary(_))) {
            return unsupported("JSON_VALUE(... RETURNING BINARY)");
        }
        let mut call = JsonValueCall { document, path, returning, on_empty: JsonOtherwise::Null, on_error: JsonOtherwise::Null };
        let mut first = self.json_otherwise()?;
        if first.is_some() && self.kw("EMPTY") {
            call.on_empty = first.take().unwrap_or(JsonOtherwise::Null);
            first = self.json_otherwise()?;
        }
        if let Some(otherwise) = first {
            self.expect_kw("ERROR")?;
            call.on_error = otherwise;
        }
        Ok(call)
    }

    /// `NULL ON`, `ERROR ON`, `DEFAULT value ON`.
    fn json_otherwise(&mut self) -> Result<Option<JsonOtherwise>> {
        let otherwise = match self.any_kw(&["NULL", "ERROR", "DEFAULT"]) {
            Some("NULL") => JsonOtherwise::Null,
            Some("ERROR") => JsonOtherwise::Error,
            Some(_) => JsonOtherwise::Default(self.expr()?),
            None => return Ok(None),
        };
        self.expect_kw("ON")?;
        Ok(Some(otherwise))
    }

    /// SEPARATOR's text, which may be written in digits.
    fn separator(&mut self) -> Result<String> {
        let text = match self.peek() {
            Tok::Str { value, national: false } => value.to_string(),
            Tok::Hex(bytes) | Tok::Bit(bytes) => match String::from_utf8(bytes.clone()) {
                Ok(text) => text,
                Err(_) => return self.fail(),
            },
            _ => return self.fail(),
        };
        self.advance();
        Ok(text)
    }

    /// What a function that needs OVER has between its parentheses.
    fn window_arguments(&mut self, word: &str) -> Result<Vec<Expr>> {
        let mut args = Vec::new();
        match word {
            "NTILE" => args.push(self.unary()?),
            "FIRST_VALUE" | "LAST_VALUE" => args.push(self.expr()?),
            "NTH_VALUE" => {
                args.push(self.expr()?);
                self.expect_sym(",")?;
                args.push(self.unary()?);
            }
            "LAG" | "LEAD" => {
                args.push(self.expr()?);
                if self.sym(",") {
                    args.push(self.window_count()?);
                    if self.sym(",") {
                        args.push(self.expr()?);
                    }
                }
            }
            _ => {}
        }
        Ok(args)
    }

    /// A number as it is written, a parameter or a variable of a routine: how far LAG and LEAD look, and where a frame ends.
    pub(super) fn window_count(&mut self) -> Result<Expr> {
        let position = self.position();
        let count = self.primary()?;
        if matches!(count.kind, ExprKind::Param(_) | ExprKind::Literal(Literal::Int(_) | Literal::Decimal(_) | Literal::Float(_))) {
            return Ok(count);
        }
        self.rewind(position);
        self.fail()
    }

    fn aggregate(&mut self, word: &str, start: usize) -> Result<Expr> {
        self.advance();
        self.advance();
        let name = match word {
            "STD" | "STDDEV" => "STDDEV_POP",
            "VARIANCE" => "VAR_POP",
            other => other,
        };
        let mut call = AggregateCall {
            name: name.to_string(),
            distinct: false,
            star: false,
            args: Vec::new(),
            order_by: Vec::new(),
            separator: None,
            over: None,
        };
        if self.kw("DISTINCT") {
            call.distinct = true;
        } else {
            self.kw("ALL");
        }
        if word == "COUNT" && self.sym("*") {
            call.star = true;
        } else if WINDOW_FUNCTIONS.contains(&word) {
            call.args = self.window_arguments(word)?;
        } else if !self.is_sym(")") {
            call.args = self.list(Self::expr)?;
        } else if AGGREGATES.contains(&word) {
            return self.fail();
        }
        if word == "GROUP_CONCAT" {
            if self.kws(&["ORDER", "BY"]) {
                call.order_by = self.order_items()?;
            }
            if self.kw("SEPARATOR") {
                call.separator = Some(self.separator()?);
            }
        }
        self.expect_sym(")")?;
        if WINDOW_FUNCTIONS.contains(&word) {
            if word == "NTH_VALUE" && self.kws(&["FROM", "LAST"]) {
                return unsupported("FROM LAST");
            }
            if word == "NTH_VALUE" {
                self.kws(&["FROM", "FIRST"]);
            }
            if self.kws(&["IGNORE", "NULLS"]) {
                return unsupported("IGNORE NULLS");
            }
            self.kws(&["RESPECT", "NULLS"]);
        }
        if word != "ANY_VALUE" && self.kw("OVER") {
            call.over = Some(if self.is_sym("(") { Over::Spec(self.window_spec()?) } else { Over::Named(self.ident()?) });
        } else if WINDOW_FUNCTIONS.contains(&word) {
            return self.fail();
        }
        Ok(self.make(ExprKind::Aggregate(Box::new(call)), start))
    }

    /// The target type of CAST and CONVERT.
    fn cast_type(&mut self) -> Result<CastType> {
        let word = self.word().unwrap_or_default().to_ascii_uppercase();
        self.advance();
        Ok(match word.as_str() {
            "SIGNED" | "UNSIGNED" => {
                if self.any_kw(&["INTEGER", "INT"]).is_none() {}
                if word == "SIGNED" { CastType::Signed } else { CastType::Unsigned }
            }
            "BINARY" => CastType::Binary(self.parenthesised_integer()?),
            "CHAR" | "CHARACTER" | "NCHAR" => {
                let length = self.parenthesised_integer()?;
                let mut charset = (word == "NCHAR").then(|| "utf8".to_string());
                if self.kws(&["CHARACTER", "SET"]) || self.kws(&["CHAR", "SET"]) || self.kw("CHARSET") {
                    charset = Some(self.name_or_string()?);
                } else if self.kw("ASCII") {
                    charset = Some("latin1".to_string());
                } else if self.kw("UNICODE") {
                    return unsupported("ucs2");
                } else if self.kw("BINARY") {
                    charset = None;
                }
                if charset.as_deref().is_some_and(|name| name.eq_ignore_ascii_case("binary")) {
                    return Ok(CastType::Binary(length));
                }
                CastType::Char { length, charset }
            }
            "DATE" => CastType::Date,
            "DATETIME" | "TIME" => {
                let fsp = self.parenthesised_integer()?.unwrap_or(0);
                if fsp > 6 {
                    return Err(highkey_types::MySqlError::with_message(1426, format!("Too-big precision {fsp} specified for 'CAST'. Maximum is 6.")));
                }
                if word == "TIME" { CastType::Time(fsp as u8) } else { CastType::DateTime(fsp as u8) }
            }
            "YEAR" => CastType::Year,
            "DECIMAL" | "DEC" | "NUMERIC" | "FIXED" => {
                let (mut precision, mut scale) = (None, None);
                if self.sym("(") {
                    precision = Some(self.integer()? as u32);
                    if self.sym(",") {
                        scale = Some(self.integer()? as u32);
                    }
                    self.expect_sym(")")?;
                }
                CastType::Decimal { precision, scale }
            }
            "FLOAT" => {
                self.parenthesised_integer()?;
                CastType::Float
            }
            "DOUBLE" => {
                self.kw("PRECISION");
                CastType::Double
            }
            "REAL" => CastType::Double,
            "JSON" => CastType::Json,
            _ => {
                self.rewind(self.position().saturating_sub(1));
                return self.fail();
            }
        })
    }
}

/// Aggregates; each may have OVER.
const AGGREGATES: &[&str] = &[
    "COUNT", "SUM", "AVG", "MIN", "MAX", "BIT_AND", "BIT_OR", "BIT_XOR", "STD", "STDDEV", "STDDEV_POP", "STDDEV_SAMP", "VARIANCE", "VAR_POP", "VAR_SAMP",
    "GROUP_CONCAT", "JSON_ARRAYAGG", "JSON_OBJECTAGG", "ANY_VALUE",
];

/// Functions that need OVER.
const WINDOW_FUNCTIONS: &[&str] =
    &["ROW_NUMBER", "RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST", "NTILE", "LAG", "LEAD", "FIRST_VALUE", "LAST_VALUE", "NTH_VALUE"];
