//! From the bytes of a statement to text.
//!
//! Statements are text in `character_set_client`, but clients put raw bytes into string literals (`_binary'…'` of dumps and of
//! PyMySQL). A literal whose bytes are not text becomes a hexadecimal literal, which means the same bytes.

use std::borrow::Cow;

use highkey_types::{Charset, MySqlError};

use super::error::err;

/// The statement as UTF-8.
pub fn statement(bytes: &[u8], charset: Charset, backslash_escapes: bool) -> Result<Cow<'_, str>, MySqlError> {
    if let Ok(text) = std::str::from_utf8(bytes)
        && matches!(charset, Charset::Utf8mb4 | Charset::Utf8mb3 | Charset::Binary | Charset::Ascii)
    {
        return Ok(Cow::Borrowed(text));
    }
    if charset == Charset::Latin1 && !contains(bytes, b"_binary") {
        return Ok(Cow::Owned(charset.decode_lossy(bytes).into_owned()));
    }
    let mut text = String::with_capacity(bytes.len() + 16);
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        match bytes[at] {
            quote @ (b'\'' | b'"') => {
                let end = literal_end(bytes, at, backslash_escapes);
                let literal = &bytes[at..end];
                match std::str::from_utf8(literal) {
                    Ok(t) if charset != Charset::Latin1 => text.push_str(t),
                    _ if charset == Charset::Latin1 && !text.trim_end().to_ascii_lowercase().ends_with("_binary") => text.push_str(&charset.decode_lossy(literal)),
                    _ => {
                        // The blank keeps an introducer (`_binary'…'`) a word of its own.
                        text.push_str(" x'");
                        for byte in unescape(literal, quote, backslash_escapes) {
                            text.push_str(&format!("{byte:02x}"));
                        }
                        text.push('\'');
                    }
                }
                at = end;
            }
            b'`' => {
                at += 1 + bytes[at + 1..].iter().position(|b| *b == b'`').map_or(bytes.len() - at - 1, |p| p + 1);
                text.push_str(&charset.decode_lossy(&bytes[start..at]));
            }
            _ => {
                while at < bytes.len() && !matches!(bytes[at], b'\'' | b'"' | b'`') {
                    at += 1;
                }
                let piece = &bytes[start..at];
                match charset.decode(piece) {
                    Ok(t) => text.push_str(&t),
                    Err(bad) => {
                        let shown: String = piece[bad..].iter().take(6).map(|b| format!("\\x{b:02X}")).collect();
                        return Err(err(1300, format!("Invalid {} character string: '{shown}'", charset.name())));
                    }
                }
            }
        }
    }
    Ok(Cow::Owned(text))
}

fn contains(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|w| w.eq_ignore_ascii_case(word))
}

/// One past the closing quote.
fn literal_end(bytes: &[u8], start: usize, backslash_escapes: bool) -> usize {
    let quote = bytes[start];
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if backslash_escapes => at += 2,
            b if b == quote => {
                if bytes.get(at + 1) == Some(&quote) {
                    at += 2;
                } else {
                    return at + 1;
                }
            }
            _ => at += 1,
        }
    }
    bytes.len()
}

/// What a character after a backslash stands for, in literals and in files of LOAD DATA.
pub fn escaped(byte: u8) -> u8 {
    match byte {
        b'0' => 0,
        b'b' => 8,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'Z' => 26,
        other => other,
    }
}

fn unescape(literal: &[u8], quote: u8, backslash_escapes: bool) -> Vec<u8> {
    let inner = &literal[1..literal.len().max(2) - 1];
    let mut out = Vec::with_capacity(inner.len());
    let mut at = 0;
    while at < inner.len() {
        match inner[at] {
            b'\\' if backslash_escapes && at + 1 < inner.len() => {
                out.push(escaped(inner[at + 1]));
                at += 2;
            }
            b if b == quote => {
                out.push(b);
                at += 2;
            }
            b => {
                out.push(b);
                at += 1;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_bytes_in_a_literal_become_hexadecimal() {
        let text = statement(b"INSERT INTO t VALUES (_binary'\xff\\0\\'a''b', 'x')", Charset::Utf8mb4, true).unwrap();
        assert_eq!(text, "INSERT INTO t VALUES (_binary x'ff0027612762', 'x')");
    }

    #[test]
    fn latin1_clients_are_decoded() {
        assert_eq!(statement(b"select '\xe9'", Charset::Latin1, true).unwrap(), "select 'é'");
    }

    #[test]
    fn bytes_outside_of_literals_must_be_text() {
        assert_eq!(statement(b"select \xff", Charset::Utf8mb4, true).unwrap_err().code, 1300);
    }
}
