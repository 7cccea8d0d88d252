//! The plain values of variable columns: text and bytes.

use crate::{Charset, ColumnType, TypeKind};

#[derive(Clone, Copy, Debug)]
pub(super) enum StringForm {
    /// CHAR and VARCHAR of so many characters.
    Characters { limit: usize, charset: Charset, trim: bool },
    /// The TEXT types, of so many bytes in `charset`.
    Text { limit: u64, charset: Charset },
    /// VARBINARY and the BLOB types.
    Bytes { limit: usize },
    /// BINARY.
    Padded { length: usize },
}

impl StringForm {
    /// `None` for JSON, which is normalised, for geometries, which are checked, and for text whose character set is not ASCII where its bytes are.
    pub(super) fn of(ty: &ColumnType) -> Option<StringForm> {
        use TypeKind::*;
        let charset = ty.charset();
        if charset.min_bytes() > 1 {
            return None;
        }
        Some(match ty.kind {
            Char(limit) => StringForm::Characters { limit: limit as usize, charset, trim: true },
            VarChar(limit) => StringForm::Characters { limit: limit as usize, charset, trim: false },
            Binary(length) => StringForm::Padded { length: length as usize },
            Geometry(_) => return None,
            _ if ty.is_text() => StringForm::Text { limit: ty.max_bytes(), charset },
            _ if ty.is_binary() => StringForm::Bytes { limit: ty.max_bytes() as usize },
            _ => return None,
        })
    }

    /// Appends the stored form of `text`; `None`, with any of it appended, if it has none that is plain.
    #[inline]
    pub(super) fn append(&self, text: &[u8], file: Charset, out: &mut Vec<u8>) -> Option<()> {
        let fits = match self {
            StringForm::Characters { limit, charset, trim } => {
                let text = if *trim { trim_spaces(text) } else { text };
                append_text(text, file, *charset, out)?.characters <= *limit
            }
            StringForm::Text { limit, charset } => {
                let start = out.len();
                let length = append_text(text, file, *charset, out)?;
                let bytes = match charset.max_bytes() {
                    _ if *charset == Charset::Binary => length.bytes,
                    1 => length.characters,
                    _ if charset.is_recoded() => charset.encoded_len(std::str::from_utf8(&out[start..]).ok()?),
                    _ => length.bytes,
                };
                bytes as u64 <= *limit
            }
            StringForm::Bytes { limit } => {
                out.extend_from_slice(text);
                text.len() <= *limit
            }
            StringForm::Padded { length } => {
                let end = out.len() + length;
                out.extend_from_slice(text);
                if text.len() <= *length {
                    out.resize(end, 0);
                }
                text.len() <= *length
            }
        };
        fits.then_some(())
    }
}

fn trim_spaces(mut text: &[u8]) -> &[u8] {
    while let [rest @ .., b' '] = text {
        text = rest;
    }
    text
}

struct TextLength {
    characters: usize,
    /// Of UTF-8.
    bytes: usize,
}

/// Appends `text`, in the file's character set, as UTF-8.  `None` if it is not valid in both character sets.
#[inline]
fn append_text(text: &[u8], file: Charset, column: Charset, out: &mut Vec<u8>) -> Option<TextLength> {
    if !text.is_ascii() {
        return append_decoded(text, file, column, out);
    }
    match text {
        // A flag, for which a call to copy would be long.
        [byte] => out.push(*byte),
        _ => out.extend_from_slice(text),
    }
    Some(TextLength { characters: text.len(), bytes: text.len() })
}

fn append_decoded(text: &[u8], file: Charset, column: Charset, out: &mut Vec<u8>) -> Option<TextLength> {
    // Bytes of no character set are read in the column's.
    let file = if file == Charset::Binary { column } else { file };
    if let Some(table) = file.single_byte() {
        let start = out.len();
        for byte in text {
            let c = table.char_of(*byte).filter(|c| column.can_encode(*c))?;
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
        return Some(TextLength { characters: text.len(), bytes: out.len() - start });
    }
    let text = file.decode(text).ok()?;
    if column.first_invalid(&text).is_some() {
        return None;
    }
    out.extend_from_slice(text.as_bytes());
    Some(TextLength { characters: text.chars().count(), bytes: text.len() })
}
