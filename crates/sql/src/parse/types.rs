//! Column types as written.

use highkey_types::Shape;
use highkey_types::errors::invalid_year_column_length;

use super::ast::*;
use super::parser::{Parser, Result};

impl Parser<'_> {
    /// A column's type with its attributes (UNSIGNED, CHARACTER SET, COLLATE …).
    pub(super) fn data_type(&mut self) -> Result<DataType> {
        let mut ty = DataType { kind: DataTypeKind::Int, unsigned: false, zerofill: false, width: None, charset: None, collation: None, binary: false, srid: None };
        let Some(word) = self.word() else { return self.fail() };
        let word = word.to_ascii_uppercase();
        self.advance();
        use DataTypeKind as K;
        ty.kind = match word.as_str() {
            "TINYINT" | "INT1" => self.integer_type(K::TinyInt, &mut ty)?,
            "SMALLINT" | "INT2" => self.integer_type(K::SmallInt, &mut ty)?,
            "MEDIUMINT" | "INT3" | "MIDDLEINT" => self.integer_type(K::MediumInt, &mut ty)?,
            "INT" | "INTEGER" | "INT4" => self.integer_type(K::Int, &mut ty)?,
            "BIGINT" | "INT8" => self.integer_type(K::BigInt, &mut ty)?,
            "BOOL" | "BOOLEAN" => K::Bool,
            "SERIAL" => K::Serial,
            "DECIMAL" | "DEC" | "NUMERIC" | "FIXED" => {
                let (precision, scale) = self.precision_scale()?;
                K::Decimal { precision, scale }
            }
            "FLOAT" | "FLOAT4" => {
                let (precision, scale) = self.precision_scale()?;
                K::Float { precision, scale }
            }
            "DOUBLE" | "FLOAT8" | "REAL" => {
                if word == "DOUBLE" {
                    self.kw("PRECISION");
                }
                let (precision, scale) = self.precision_scale()?;
                if word == "REAL" && self.options.real_as_float { K::Float { precision, scale } } else { K::Double { precision, scale } }
            }
            "BIT" => K::Bit(self.parenthesised_integer()?),
            "CHAR" | "CHARACTER" => {
                if self.kw("VARYING") {
                    K::VarChar(self.parenthesised_integer()?)
                } else if self.kw("BYTE") {
                    K::Binary(self.parenthesised_integer()?)
                } else {
                    K::Char(self.parenthesised_integer()?)
                }
            }
            "VARCHAR" | "VARCHARACTER" => K::VarChar(self.parenthesised_integer()?),
            "NCHAR" | "NATIONAL" | "NVARCHAR" => {
                ty.charset = Some("utf8".to_string());
                let mut varying = word == "NVARCHAR";
                if word == "NATIONAL" {
                    varying |= self.any_kw(&["CHAR", "CHARACTER", "VARCHAR"]).ok_or_else(|| self.error())? == "VARCHAR";
                }
                varying |= self.any_kw(&["VARYING", "VARCHAR"]).is_some();
                let length = self.parenthesised_integer()?;
                if varying { K::VarChar(length) } else { K::Char(length) }
            }
            "TEXT" => K::Text(self.parenthesised_integer()?),
            "TINYTEXT" => K::TinyText,
            "MEDIUMTEXT" => K::MediumText,
            "LONGTEXT" => K::LongText,
            "LONG" => {
                if self.kw("VARBINARY") {
                    K::MediumBlob
                } else {
                    let _ = self.kws(&["CHAR", "VARYING"]) || self.any_kw(&["VARCHAR", "VARCHARACTER"]).is_some();
                    K::MediumText
                }
            }
            "BINARY" => K::Binary(self.parenthesised_integer()?),
            "VARBINARY" => K::VarBinary(self.parenthesised_integer()?),
            "BLOB" => K::Blob(self.parenthesised_integer()?),
            "TINYBLOB" => K::TinyBlob,
            "MEDIUMBLOB" => K::MediumBlob,
            "LONGBLOB" => K::LongBlob,
            "DATE" => K::Date,
            "DATETIME" => K::DateTime(self.parenthesised_integer()?.unwrap_or(0)),
            "TIMESTAMP" => K::Timestamp(self.parenthesised_integer()?.unwrap_or(0)),
            "TIME" => K::Time(self.parenthesised_integer()?.unwrap_or(0)),
            "YEAR" => {
                if self.parenthesised_integer()?.is_some_and(|digits| digits != 4) {
                    return Err(invalid_year_column_length());
                }
                K::Year
            }
            "ENUM" => K::Enum(self.parenthesised_list(Self::string)?),
            "SET" => K::Set(self.parenthesised_list(Self::string)?),
            "JSON" => K::Json,
            "GEOMETRYCOLLECTION" => K::Geometry(Shape::Collection),
            "VECTOR" => K::Unsupported(word),
            name => match Shape::ALL.into_iter().find(|shape| shape.name() == name) {
                Some(shape) => K::Geometry(shape),
                None => {
                    self.rewind(self.position() - 1);
                    return self.fail();
                }
            },
        };
        self.type_attributes(&mut ty)?;
        Ok(ty)
    }

    /// An integer type and its display width, which shows only with ZEROFILL and in `tinyint(1)`.
    fn integer_type(&mut self, kind: DataTypeKind, ty: &mut DataType) -> Result<DataTypeKind> {
        ty.width = self.parenthesised_integer()?;
        match ty.width {
            Some(1) if kind == DataTypeKind::TinyInt => Ok(DataTypeKind::Bool),
            _ => Ok(kind),
        }
    }

    fn precision_scale(&mut self) -> Result<(Option<u32>, Option<u32>)> {
        if !self.sym("(") {
            return Ok((None, None));
        }
        let precision = self.integer()? as u32;
        let scale = if self.sym(",") { Some(self.integer()? as u32) } else { None };
        self.expect_sym(")")?;
        Ok((Some(precision), scale))
    }

    fn type_attributes(&mut self, ty: &mut DataType) -> Result<()> {
        loop {
            if self.kw("UNSIGNED") {
                ty.unsigned = true;
            } else if self.kw("SIGNED") {
            } else if self.kw("ZEROFILL") {
                ty.zerofill = true;
                ty.unsigned = true;
            } else if self.is_kw("CHARACTER") || self.is_kw("CHARSET") || (self.is_kw("CHAR") && self.is_kw_at(1, "SET")) {
                ty.charset = Some(self.charset_clause()?.ok_or_else(|| self.error())?);
            } else if self.kw("ASCII") {
                ty.charset = Some("latin1".to_string());
            } else if self.kw("UNICODE") {
                ty.charset = Some("ucs2".to_string());
            } else if self.kw("BINARY") {
                ty.binary = true;
            } else if self.kw("COLLATE") {
                ty.collation = Some(self.name_or_string()?);
            } else {
                return Ok(());
            }
        }
    }
}
