//! `sql_mode`: names, bits (MySQL's values, so that numeric settings mean the same) and the combination modes.

use highkey_types::{MySqlError, SqlMode};

use crate::session::error;

const MODES: &[(&str, u64)] = &[
    ("REAL_AS_FLOAT", 1),
    ("PIPES_AS_CONCAT", 2),
    ("ANSI_QUOTES", 4),
    ("IGNORE_SPACE", 8),
    ("ONLY_FULL_GROUP_BY", 32),
    ("NO_UNSIGNED_SUBTRACTION", 64),
    ("NO_DIR_IN_CREATE", 128),
    ("ANSI", 1 << 18),
    ("NO_AUTO_VALUE_ON_ZERO", 1 << 19),
    ("NO_BACKSLASH_ESCAPES", 1 << 20),
    ("STRICT_TRANS_TABLES", 1 << 21),
    ("STRICT_ALL_TABLES", 1 << 22),
    ("NO_ZERO_IN_DATE", 1 << 23),
    ("NO_ZERO_DATE", 1 << 24),
    ("ALLOW_INVALID_DATES", 1 << 25),
    ("ERROR_FOR_DIVISION_BY_ZERO", 1 << 26),
    ("TRADITIONAL", 1 << 27),
    ("HIGH_NOT_PRECEDENCE", 1 << 29),
    ("NO_ENGINE_SUBSTITUTION", 1 << 30),
    ("PAD_CHAR_TO_FULL_LENGTH", 1 << 31),
    ("TIME_TRUNCATE_FRACTIONAL", 1 << 32),
];

/// Modes that older clients and dumps still set; MySQL 8.0 refuses some of them, dumps of 5.7 need them.
const GONE: &[&str] = &["NO_AUTO_CREATE_USER", "NO_KEY_OPTIONS", "NO_TABLE_OPTIONS", "NO_FIELD_OPTIONS", "MYSQL323", "MYSQL40", "POSTGRESQL", "ORACLE", "MSSQL", "DB2", "MAXDB"];

/// The modes in effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SqlModes(pub u64);

impl SqlModes {
    pub const PIPES_AS_CONCAT: u64 = 2;
    pub const ANSI_QUOTES: u64 = 4;
    pub const ONLY_FULL_GROUP_BY: u64 = 32;
    pub const NO_UNSIGNED_SUBTRACTION: u64 = 64;
    pub const NO_AUTO_VALUE_ON_ZERO: u64 = 1 << 19;
    pub const NO_BACKSLASH_ESCAPES: u64 = 1 << 20;
    pub const STRICT: u64 = (1 << 21) | (1 << 22);
    pub const NO_ZERO_IN_DATE: u64 = 1 << 23;
    pub const NO_ZERO_DATE: u64 = 1 << 24;
    pub const ALLOW_INVALID_DATES: u64 = 1 << 25;
    pub const ERROR_FOR_DIVISION_BY_ZERO: u64 = 1 << 26;
    pub const PAD_CHAR_TO_FULL_LENGTH: u64 = 1 << 31;
    pub const TIME_TRUNCATE_FRACTIONAL: u64 = 1 << 32;
    pub const NO_ENGINE_SUBSTITUTION: u64 = 1 << 30;

    /// It is strict and not about dates and divisions by zero, or the other way round: error 3135 warns of it.
    pub fn is_strict_in_part(self) -> bool {
        const WITH_STRICT: u64 = SqlModes::NO_ZERO_IN_DATE | SqlModes::NO_ZERO_DATE | SqlModes::ERROR_FOR_DIVISION_BY_ZERO;
        if self.has(SqlModes::STRICT) { self.0 & WITH_STRICT != WITH_STRICT } else { self.has(WITH_STRICT) }
    }

    pub fn has(self, bit: u64) -> bool {
        self.0 & bit != 0
    }

    /// The bits that conversions look at.
    pub fn conversions(self) -> SqlMode {
        SqlMode {
            no_zero_date: self.has(SqlModes::NO_ZERO_DATE),
            no_zero_in_date: self.has(SqlModes::NO_ZERO_IN_DATE),
            allow_invalid_dates: self.has(SqlModes::ALLOW_INVALID_DATES),
            pad_char_to_full_length: self.has(SqlModes::PAD_CHAR_TO_FULL_LENGTH),
            time_truncate_fractional: self.has(SqlModes::TIME_TRUNCATE_FRACTIONAL),
            error_for_division_by_zero: self.has(SqlModes::ERROR_FOR_DIVISION_BY_ZERO),
            no_unsigned_subtraction: self.has(SqlModes::NO_UNSIGNED_SUBTRACTION),
        }
    }

    pub fn parse(text: &str) -> Result<SqlModes, MySqlError> {
        let mut bits = 0;
        for word in text.split(',').map(str::trim).filter(|w| !w.is_empty()) {
            let upper = word.to_ascii_uppercase();
            match MODES.iter().find(|(name, _)| *name == upper) {
                Some((_, bit)) => bits |= bit,
                None if GONE.contains(&upper.as_str()) => {}
                None => return Err(error::wrong_value_for_var("sql_mode", word)),
            }
        }
        Ok(SqlModes(expand(bits)))
    }

    /// The bits that are modes here; a source of another version has others too.
    pub fn of_known_bits(bits: u64) -> SqlModes {
        SqlModes(bits & MODES.iter().fold(0, |all, (_, bit)| all | bit))
    }

    pub fn from_bits(bits: u64) -> Result<SqlModes, MySqlError> {
        let known = MODES.iter().fold(0, |all, (_, bit)| all | bit);
        if bits & !known != 0 {
            return Err(error::wrong_value_for_var("sql_mode", &bits.to_string()));
        }
        Ok(SqlModes(expand(bits)))
    }
}

/// ANSI and TRADITIONAL stand for several modes and stay visible beside them.
fn expand(bits: u64) -> u64 {
    let mut bits = bits;
    if bits & (1 << 18) != 0 {
        bits |= 1 | 2 | 4 | 8 | 32;
    }
    if bits & (1 << 27) != 0 {
        bits |= (1 << 21) | (1 << 22) | (1 << 23) | (1 << 24) | (1 << 26) | (1 << 30);
    }
    bits
}

impl std::fmt::Display for SqlModes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut first = true;
        for (name, _) in MODES.iter().filter(|(_, bit)| self.0 & bit != 0) {
            if !first {
                f.write_str(",")?;
            }
            first = false;
            f.write_str(name)?;
        }
        Ok(())
    }
}
