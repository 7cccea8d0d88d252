//! MySQL's errors: one constructor function per error, named as MySQL's symbol without `ER_`
//! (`ER_BAD_FIELD_ERROR` is [`bad_field_error`]).
//!
//! Arguments are cut to the lengths that MySQL cuts them to.  [`table`](self) is the only place that knows a message.

use std::fmt;

macro_rules! errors {
    ($($name:ident($($argument:ident),*) $code:literal $sqlstate:literal $template:tt;)*) => {
        /// Every error, by ascending code.
        pub static TABLE: &[super::ErrorKind] = &[
            $(super::ErrorKind { code: $code, name: stringify!($name), sqlstate: $sqlstate, template: $template },)*
        ];
        $(
            #[doc = concat!(stringify!($code), " (", $sqlstate, "): ", $template)]
            #[allow(clippy::too_many_arguments, clippy::useless_format)]
            pub fn $name($($argument: impl std::fmt::Display),*) -> super::MySqlError {
                super::MySqlError { code: $code, sqlstate: super::SqlState::new($sqlstate), message: format!($template) }
            }
        )*
    };
}
mod table;

pub use table::*;

/// An error as the client sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MySqlError {
    pub code: u16,
    pub sqlstate: SqlState,
    pub message: String,
}

/// Five digits and capital letters; the first two are its class.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SqlState([u8; 5]);

impl SqlState {
    /// Of a text that is one.
    pub const fn new(text: &str) -> SqlState {
        let bytes = text.as_bytes();
        assert!(bytes.len() == 5, "an SQLSTATE has five characters");
        SqlState([bytes[0], bytes[1], bytes[2], bytes[3], bytes[4]])
    }

    /// None if the text is no SQLSTATE.
    pub fn parse(text: &str) -> Option<SqlState> {
        let bytes: [u8; 5] = text.as_bytes().try_into().ok()?;
        bytes.iter().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase()).then_some(SqlState(bytes))
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("HY000")
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Class 00.
    pub fn is_success(self) -> bool {
        self.0.starts_with(b"00")
    }

    /// Class 01.
    pub fn is_warning(self) -> bool {
        self.0.starts_with(b"01")
    }

    /// Class 02.
    pub fn is_not_found(self) -> bool {
        self.0.starts_with(b"02")
    }

    /// Any other class.
    pub fn is_exception(self) -> bool {
        !self.is_success() && !self.is_warning() && !self.is_not_found()
    }
}

impl fmt::Display for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The `Level` column of SHOW WARNINGS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    Note,
    Warning,
    Error,
}

/// One row of SHOW WARNINGS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    pub level: Level,
    pub code: u16,
    pub message: String,
}

/// A row of the error table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorKind {
    pub code: u16,
    /// The constructor's name: MySQL's symbol in lower case without `ER_`.
    pub name: &'static str,
    pub sqlstate: &'static str,
    /// The message with `{argument}` places.
    pub template: &'static str,
}

impl Level {
    pub fn name(self) -> &'static str {
        match self {
            Level::Note => "Note",
            Level::Warning => "Warning",
            Level::Error => "Error",
        }
    }
}

impl MySqlError {
    /// An error with a ready message; the SQLSTATE comes from the table, `HY000` for a code that is not in it.
    pub fn with_message(code: u16, message: impl Into<String>) -> MySqlError {
        MySqlError { code, sqlstate: sqlstate(code), message: message.into() }
    }

    /// This error as a row of SHOW WARNINGS.
    pub fn into_warning(self, level: Level) -> Warning {
        Warning { level, code: self.code, message: self.message }
    }
}

impl Warning {
    /// A warning from the error that it would have been.
    #[allow(clippy::self_named_constructors)]
    pub fn warning(error: MySqlError) -> Warning {
        error.into_warning(Level::Warning)
    }

    /// A note from an error of the table.
    pub fn note(error: MySqlError) -> Warning {
        error.into_warning(Level::Note)
    }
}

impl fmt::Display for MySqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ERROR {} ({}): {}", self.code, self.sqlstate, self.message)
    }
}

impl std::error::Error for MySqlError {}

/// The SQLSTATE of a code, `HY000` if the table does not have it.
pub fn sqlstate(code: u16) -> SqlState {
    SqlState::new(TABLE.binary_search_by_key(&code, |kind| kind.code).map_or("HY000", |at| TABLE[at].sqlstate))
}

/// 1064 with the sentence that MySQL's parser says.
pub fn syntax_error_near(near: &str, line: usize) -> MySqlError {
    parse_error(syntax_error().message, near, line)
}

/// 1292 in its form for columns: `Incorrect datetime value: 'x' for column 'c' at row 1`.
pub fn wrong_value_for_column(kind: &str, value: &str, column: &str, row: u64) -> MySqlError {
    MySqlError::with_message(1292, format!("Incorrect {kind:.32} value: '{value:.128}' for column '{column:.192}' at row {row}"))
}

/// 1292 in its form for temporal expressions: `Incorrect datetime value: 'x'`.
pub fn wrong_temporal_value(kind: &str, value: &str) -> MySqlError {
    MySqlError::with_message(1292, format!("Incorrect {kind:.32} value: '{value:.128}'"))
}


#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_sorted_and_complete() {
        assert!(TABLE.windows(2).all(|pair| pair[0].code < pair[1].code));
        for code in [1062, 1064, 1146, 1054, 1205, 1213, 1317, 3572, 1114, 1030, 1292, 1264, 1366, 1406, 3024, 3819] {
            assert!(TABLE.iter().any(|kind| kind.code == code), "{code}");
        }
        assert!(TABLE.iter().all(|kind| kind.sqlstate.len() == 5));
    }

    #[test]
    fn messages_are_mysqls() {
        assert_eq!(dup_entry("1", "t.PRIMARY").to_string(), "ERROR 1062 (23000): Duplicate entry '1' for key 't.PRIMARY'");
        assert_eq!(
            syntax_error_near("SELEC 1", 1).message,
            "You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version for the \
             right syntax to use near 'SELEC 1' at line 1"
        );
        let near = "x".repeat(100);
        assert!(syntax_error_near(&near, 2).message.ends_with(&format!("'{}' at line 2", "x".repeat(80))));
        assert_eq!(no_such_table("db", "t").message, "Table 'db.t' doesn't exist");
    }
}
