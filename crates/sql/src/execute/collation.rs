//! Character sets and collations as options of tables and schemas name them. (Column types: `bind::resolve_type`.)

use highkey_types::{Charset, Collation, MySqlError};

use crate::session::error;

/// The default character set and collation that options name, `None` if they name neither. `utf8mb4`: what utf8mb4 alone means.
pub fn collation_of(charset: Option<&str>, collation: Option<&str>, utf8mb4: &'static Collation) -> Result<Option<&'static Collation>, MySqlError> {
    let charset = match charset {
        Some(name) => Some(Charset::by_name(name).ok_or_else(|| error::unknown_character_set(name))?),
        None => None,
    };
    match (charset, collation) {
        (None, None) => Ok(None),
        (Some(charset), None) => Ok(Some(Collation::default_among(charset, utf8mb4))),
        (charset, Some(name)) => {
            let collation = Collation::by_name(name).ok_or_else(|| error::unknown_collation(name))?;
            match charset {
                Some(charset) if charset != collation.charset => Err(error::collation_charset_mismatch(name, charset.name())),
                _ => Ok(Some(collation)),
            }
        }
    }
}
