//! From the bytes of a statement to text.
//!
//! Statements are text in `character_set_client`, but clients put raw bytes into string literals (`_binary'…'` of dumps and of
//! PyMySQL). A literal whose bytes are not text becomes a hexadecimal literal, which means the same bytes; so does one behind an introducer, which
//! says what its bytes are, where text in `character_set_client` has other bytes than here. The second byte of a character of gbk or sjis may be a
//! backslash or a backtick, which then is none (`Charset::char_len`). A byte of armscii8 stands for an apostrophe, two of sjis and ujis for a
//! backslash: nor are those any (`Charset::is_ascii_again`).

use std::borrow::Cow;

use highkey_types::{Charset, MySqlError};

use super::error::err;

/// The statement as UTF-8.
pub fn statement(bytes: &[u8], charset: Charset, backslash_escapes: bool) -> Result<Cow<'_, str>, MySqlError> {
    if let Ok(text) = std::str::from_utf8(bytes)
        && (!charset.is_recoded() || text.is_ascii())
    {
        return Ok(Cow::Borrowed(text));
    }
    let mut text = String::with_capacity(bytes.len() + 16);
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        match bytes[at] {
            b'\'' | b'"' => {
                let Some(end) = literal_end(bytes, at, charset, backslash_escapes) else {
                    // Nor has it one for the parser, which says so.
                    text.push(char::from(bytes[at]));
                    text.extend(charset.decode_lossy(&bytes[at + 1..]).chars().filter(|c| !matches!(c, '\'' | '"')));
                    break;
                };
                let literal = &bytes[at..end];
                at = end;
                if charset.is_recoded() && !ends_with_introducer(&text) {
                    push_literal(literal, charset, backslash_escapes, &mut text);
                    continue;
                }
                // All pieces of a string are of the introducer's character set: `_utf8mb4'…' '…'`.
                let mut pieces = vec![literal];
                while charset.is_recoded()
                    && let Some(next) = next_literal(bytes, at)
                    && let Some(end) = literal_end(bytes, next, charset, backslash_escapes)
                {
                    pieces.push(&bytes[next..end]);
                    at = end;
                }
                match std::str::from_utf8(&bytes[start..at]) {
                    // Text as it stands, if it is the same in both character sets.
                    Ok(t) if !charset.is_recoded() || t.is_ascii() => text.push_str(t),
                    _ => {
                        // The blank keeps an introducer (`_binary'…'`) a word of its own.
                        text.push_str(" x'");
                        for byte in pieces.into_iter().flat_map(|piece| unescape(piece, charset, backslash_escapes)) {
                            text.push_str(&format!("{byte:02x}"));
                        }
                        text.push('\'');
                    }
                }
            }
            b'`' => {
                at = past(bytes, at + 1, charset, |b| b == b'`').map_or(bytes.len(), |end| end + 1);
                text.push_str(&charset.decode_lossy(&bytes[start..at]));
            }
            _ => {
                at = code_end(bytes, at, charset);
                let piece = &bytes[start..at];
                match charset.decode(piece) {
                    Ok(_) if charset.repeats_ascii() => push_code(piece, charset, &mut text),
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

/// Where what begins at `at` ends, which is no literal and no quoted name: quotes in comments are none.
fn code_end(bytes: &[u8], mut at: usize, charset: Charset) -> usize {
    let end_of_line = |at: usize| bytes[at..].iter().position(|b| *b == b'\n').map_or(bytes.len(), |found| at + found);
    while at < bytes.len() {
        at = match &bytes[at..] {
            [b'\'' | b'"' | b'`', ..] => return at,
            [b'#', ..] | [b'-', b'-'] | [b'-', b'-', 0..=b' ', ..] => end_of_line(at),
            [b'/', b'*', b'!', ..] => at + 3,
            [b'/', b'*', rest @ ..] => rest.windows(2).position(|pair| pair == b"*/").map_or(bytes.len(), |found| at + found + 4),
            rest => at + charset.char_len(rest),
        };
    }
    at
}

/// Appends code of a character set that has some of ASCII's characters again: as code these mean nothing.
fn push_code(mut code: &[u8], charset: Charset, text: &mut String) {
    while !code.is_empty() {
        let (c, rest) = code.split_at(charset.char_len(code));
        match charset.is_ascii_again(c) {
            true => text.push(char::REPLACEMENT_CHARACTER),
            false => text.push_str(&charset.decode_lossy(c)),
        }
        code = rest;
    }
}

/// Where the first character from `at` on is that `wanted` wants.
fn past(bytes: &[u8], mut at: usize, charset: Charset, wanted: impl Fn(u8) -> bool) -> Option<usize> {
    while at < bytes.len() {
        if wanted(bytes[at]) {
            return Some(at);
        }
        at += charset.char_len(&bytes[at..]);
    }
    None
}

/// Appends a literal of the client's character set as text, escapes and all. Bytes that mean something within a literal are ASCII's: 0x815F of sjis, a
/// backslash, escapes nothing, and 0xFF of armscii8, an apostrophe, ends nothing. A backslash escapes one byte: where that is the first of a character,
/// the others stand for themselves. A literal with any of this is made anew.
fn push_literal(literal: &[u8], charset: Charset, backslash_escapes: bool, text: &mut String) {
    if !is_to_be_made_anew(literal, charset, backslash_escapes) {
        return text.push_str(&charset.decode_lossy(literal));
    }
    let quote = char::from(literal[0]);
    text.push(quote);
    for c in charset.decode_lossy(&unescape(literal, charset, backslash_escapes)).chars() {
        text.extend((c == quote || c == '\\' && backslash_escapes).then_some(c));
        text.push(c);
    }
    text.push(quote);
}

/// Whether other characters of a literal's text than of its bytes would be quotes or backslashes.
fn is_to_be_made_anew(literal: &[u8], charset: Charset, backslash_escapes: bool) -> bool {
    if charset.max_bytes() == 1 && !charset.repeats_ascii() {
        return false;
    }
    let mut at = 0;
    while at < literal.len() {
        match literal[at] {
            b'\\' if backslash_escapes && literal.get(at + 1).is_some_and(|next| *next >= 0x80) => return true,
            b'\\' if backslash_escapes => at += 2,
            _ => {
                let length = charset.char_len(&literal[at..]);
                if charset.is_ascii_again(&literal[at..at + length]) {
                    return true;
                }
                at += length;
            }
        }
    }
    false
}

/// The last word is `_` and the name of a character set.
fn ends_with_introducer(text: &str) -> bool {
    let word = text.trim_end().rsplit(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$'))).next();
    word.and_then(|word| word.strip_prefix('_')).is_some_and(|name| Charset::by_name(name).is_some())
}

/// Where the literal begins that only blanks separate from `at`.
fn next_literal(bytes: &[u8], at: usize) -> Option<usize> {
    let next = at + bytes[at..].iter().take_while(|b| b.is_ascii_whitespace()).count();
    matches!(bytes.get(next), Some(b'\'' | b'"')).then_some(next)
}

/// One past the closing quote. `None`: there is none.
fn literal_end(bytes: &[u8], start: usize, charset: Charset, backslash_escapes: bool) -> Option<usize> {
    let quote = bytes[start];
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if backslash_escapes => at += 2,
            b if b == quote => {
                if bytes.get(at + 1) == Some(&quote) {
                    at += 2;
                } else {
                    return Some(at + 1);
                }
            }
            _ => at += charset.char_len(&bytes[at..]),
        }
    }
    None
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

fn unescape(literal: &[u8], charset: Charset, backslash_escapes: bool) -> Vec<u8> {
    let quote = literal[0];
    let inner = &literal[1..literal.len() - 1];
    let mut out = Vec::with_capacity(inner.len());
    let mut at = 0;
    while at < inner.len() {
        match inner[at] {
            b'\\' if backslash_escapes && at + 1 < inner.len() => {
                // Before a wildcard of LIKE it stays.
                if matches!(inner[at + 1], b'%' | b'_') {
                    out.push(b'\\');
                }
                out.push(escaped(inner[at + 1]));
                at += 2;
            }
            b if b == quote => {
                out.push(b);
                at += 2;
            }
            _ => {
                let length = charset.char_len(&inner[at..]);
                out.extend_from_slice(&inner[at..at + length]);
                at += length;
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
    fn clients_of_one_byte_a_character_are_decoded() {
        let text = statement(b"select '\xcf\xf0', _utf16'\xcf', `\xff`", Charset::Cp1251, true).unwrap();
        assert_eq!(text, "select 'Пр', _utf16 x'cf', `я`");
        assert_eq!(statement(b"select \x98", Charset::Cp1251, true).unwrap_err().code, 1300);
    }

    /// The second byte of 表 is a backslash in cp932, of 誠 one in gbk; of 繾 a backtick.
    #[test]
    fn second_bytes_are_no_backslashes() {
        let read = |sql: &[u8], charset| statement(sql, charset, true).unwrap().into_owned();
        assert_eq!(read(b"select '\x95\x5C', 'a'", Charset::Cp932), "select '表', 'a'");
        assert_eq!(read(b"select '\xD5\x5C\\'b', '\xC0\x60'", Charset::Gbk), "select '誠\\'b', '繾'");
        assert_eq!(read(b"select `\xC0\x60a`, '\xD5\x5C'", Charset::Gbk), "select `繾a`, '誠'");
        assert_eq!(read(b"select _gbk'\xD5\x5C', 'b'", Charset::Gbk), "select _gbk x'd55c', 'b'");
        assert_eq!(read(b"select '\x81\x5F', 'b'", Charset::Sjis), "select '\\\\', 'b'");
        // As addslashes makes them of 0xBF27: a character, and the quote that ends the literal.
        assert_eq!(read(b"select '\xBF\x5C'", Charset::Gbk), "select '縗'");
        // The backslash takes the first byte, and the second one escapes the quote.
        assert_eq!(read(b"select '\\\x95\x5C'b'", Charset::Cp932), "select '?''b'");
    }

    /// 0xFF of armscii8 is an apostrophe, 0x815F of sjis and 0xA1C0 of ujis a backslash.
    #[test]
    fn what_is_ascii_again_ends_and_escapes_nothing() {
        let read = |sql: &[u8], charset, escapes| statement(sql, charset, escapes).unwrap().into_owned();
        assert_eq!(read(b"select 'a\xFF or 1 -- '", Charset::Armscii8, true), "select 'a'' or 1 -- '");
        assert_eq!(read(b"select 'a\xFF or 1 -- '", Charset::Armscii8, false), "select 'a'' or 1 -- '");
        assert_eq!(read(b"select 1\xFF, \"\xB2\xFF\"", Charset::Armscii8, true), "select 1\u{FFFD}, \"\u{531}'\"");
        assert_eq!(read(b"select '\x81\x5F'", Charset::Sjis, false), "select '\\'");
        assert_eq!(read(b"select '\xA1\xC0', 'b'", Charset::Ujis, true), "select '\\\\', 'b'");
        // The backslash takes one byte, and the rest are two characters, of which the second has no end.
        assert_eq!(read(b"select '\\\xA1\xA1\xA1\xA1\xC0', 'b'", Charset::Ujis, true), "select '\u{3000}\u{3000}?', 'b'");
    }

    /// As clients escape text that knows nothing of SQL, in every character set: it stays within its literal, and is what it was.
    #[test]
    fn escaped_text_ends_no_literal() {
        for charset in Charset::ALL.into_iter().filter(|charset| charset.is_recoded() && charset.min_bytes() == 1) {
            for (lead, trail, escapes) in (0x80..=u8::MAX).flat_map(|lead| b"'\"\\`|_0a\x80\xA1\xC0\xFF".map(|trail| (lead, trail))).flat_map(|(l, t)| [(l, t, true), (l, t, false)]) {
                let text = [lead, trail, lead, b'\'', b'\\', lead, b'\\', b'\''];
                let mut sent = vec![b'\''];
                let mut at = 0;
                while at < text.len() {
                    let length = charset.char_len(&text[at..]);
                    // What is half a character must not take the backslash behind it, and has one itself.
                    let half = length == 1 && charset.hides_ascii(text[at]);
                    match text[at] {
                        b'\'' if !escapes => sent.push(b'\''),
                        b'\'' | b'\\' if escapes => sent.push(b'\\'),
                        _ if half && escapes => sent.push(b'\\'),
                        _ => {}
                    }
                    sent.extend_from_slice(&text[at..at + length]);
                    at += length;
                }
                sent.push(b'\'');
                let read = statement(&sent, charset, escapes).unwrap();
                assert_eq!(literal_end(read.as_bytes(), 0, Charset::Utf8mb4, escapes), Some(read.len()), "{charset:?} {sent:X?}: {read}");
                let value = unescape(read.as_bytes(), Charset::Utf8mb4, escapes);
                assert_eq!(String::from_utf8(value).unwrap(), charset.decode_lossy(&text), "{charset:?} {sent:X?}: {read}");
            }
        }
    }

    #[test]
    fn a_literal_without_an_end_has_none_as_text() {
        assert_eq!(statement(b"select 'a\xFF", Charset::Armscii8, true).unwrap(), "select 'a");
        assert_eq!(statement(b"select 'a\xE9''b\\", Charset::Latin1, true).unwrap(), "select 'a\u{E9}b\\");
        assert_eq!(statement(b"select _binary'a\xFF", Charset::Utf8mb4, true).unwrap(), "select _binary'a?");
        assert_eq!(statement(b"select \xE9 '", Charset::Latin1, true).unwrap(), "select \u{E9} '");
    }

    #[test]
    fn quotes_in_comments_begin_nothing() {
        let read = |sql: &[u8], charset| statement(sql, charset, true).unwrap().into_owned();
        assert_eq!(read(b"/* it's */ select '\x95\x5C'", Charset::Cp932), "/* it's */ select '\u{8868}'");
        assert_eq!(read(b"select 1 # it's\n, '\x95\x5C' -- it's\n", Charset::Cp932), "select 1 # it's\n, '\u{8868}' -- it's\n");
        assert_eq!(read(b"select 1--'\xB1', /*!40000 '\x95\x5C' */ 2", Charset::Cp932), "select 1--'\u{FF71}', /*!40000 '\u{8868}' */ 2");
        assert_eq!(read(b"select '\xB1' /*", Charset::Cp932), "select '\u{FF71}' /*");
    }

    /// `\%` and `\_` are for LIKE, as they are where the parser reads the literal.
    #[test]
    fn wildcards_keep_their_backslashes() {
        assert_eq!(statement(b"select '\\\xB1\\%\\n'", Charset::Cp932, true).unwrap(), "select '\u{FF71}\\\\%\n'");
        assert_eq!(statement(b"select _binary'\xFF\\_'", Charset::Utf8mb4, true).unwrap(), "select _binary x'ff5c5f'");
    }

    #[test]
    fn literals_behind_introducers_keep_their_bytes() {
        let latin1 = |sql: &[u8]| statement(sql, Charset::Latin1, true).unwrap().into_owned();
        assert_eq!(latin1(b"select _utf8mb4'\xc3\xa4', '\xe4', _x '\xe4'"), "select _utf8mb4 x'c3a4', 'ä', _x 'ä'");
        assert_eq!(latin1(b"select _LATIN1 'a' \"\xe4\"\"\", '\xe4'"), "select _LATIN1  x'61e422', 'ä'");
        assert_eq!(latin1(b"select _utf8'a', '\xe4'"), "select _utf8'a', 'ä'");
    }

    #[test]
    fn bytes_outside_of_literals_must_be_text() {
        assert_eq!(statement(b"select \xff", Charset::Utf8mb4, true).unwrap_err().code, 1300);
    }
}
