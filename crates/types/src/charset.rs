//! Character sets: what a column admits and how its text looks on the wire.

use std::borrow::Cow;

/// A character set.  Text inside the server is UTF-8 in all of them but `Binary`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Charset {
    Utf8mb4,
    Utf8mb3,
    /// MySQL's latin1, which is Windows code page 1252.
    Latin1,
    Ascii,
    Binary,
}

impl Charset {
    pub const ALL: [Charset; 5] = [Charset::Utf8mb4, Charset::Utf8mb3, Charset::Latin1, Charset::Ascii, Charset::Binary];

    /// By MySQL's name, `utf8` meaning utf8mb3; any case.
    pub fn by_name(name: &str) -> Option<Charset> {
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        Some(match () {
            _ if is("utf8mb4") => Charset::Utf8mb4,
            _ if is("utf8") || is("utf8mb3") => Charset::Utf8mb3,
            _ if is("latin1") => Charset::Latin1,
            _ if is("ascii") => Charset::Ascii,
            _ if is("binary") => Charset::Binary,
            _ => return None,
        })
    }

    pub fn name(self) -> &'static str {
        match self {
            Charset::Utf8mb4 => "utf8mb4",
            Charset::Utf8mb3 => "utf8",
            Charset::Latin1 => "latin1",
            Charset::Ascii => "ascii",
            Charset::Binary => "binary",
        }
    }

    /// `Description` of SHOW CHARACTER SET.
    pub fn description(self) -> &'static str {
        match self {
            Charset::Utf8mb4 | Charset::Utf8mb3 => "UTF-8 Unicode",
            Charset::Latin1 => "cp1252 West European",
            Charset::Ascii => "US ASCII",
            Charset::Binary => "Binary pseudo charset",
        }
    }

    /// `Maxlen`: the most bytes of one character.
    pub fn max_bytes(self) -> usize {
        match self {
            Charset::Utf8mb4 => 4,
            Charset::Utf8mb3 => 3,
            _ => 1,
        }
    }

    /// True if the character set can hold `c`.
    pub fn can_encode(self, c: char) -> bool {
        match self {
            Charset::Utf8mb4 | Charset::Binary => true,
            Charset::Utf8mb3 => (c as u32) < 0x1_0000,
            Charset::Latin1 => char_to_latin1(c).is_some(),
            Charset::Ascii => c.is_ascii(),
        }
    }

    /// The byte offset of the first character that this character set cannot hold.
    pub fn first_invalid(self, text: &str) -> Option<usize> {
        if text.is_ascii() || matches!(self, Charset::Utf8mb4 | Charset::Binary) {
            return None;
        }
        text.char_indices().find(|(_, c)| !self.can_encode(*c)).map(|(at, _)| at)
    }

    /// UTF-8 text to this character set's bytes; `?` for what it cannot hold.
    pub fn encode(self, text: &str) -> Cow<'_, [u8]> {
        if text.is_ascii() || self.first_invalid(text).is_none() && self.max_bytes() > 1 || self == Charset::Binary {
            return Cow::Borrowed(text.as_bytes());
        }
        let mut bytes = Vec::with_capacity(text.len());
        self.encode_into(text, &mut bytes);
        Cow::Owned(bytes)
    }

    /// [`encode`](Charset::encode), appended to `out`.
    pub fn encode_into(self, text: &str, out: &mut Vec<u8>) {
        match self {
            Charset::Utf8mb4 | Charset::Binary => out.extend_from_slice(text.as_bytes()),
            _ if text.is_ascii() => out.extend_from_slice(text.as_bytes()),
            Charset::Latin1 => out.extend(text.chars().map(|c| char_to_latin1(c).unwrap_or(b'?'))),
            Charset::Ascii => out.extend(text.chars().map(|c| if c.is_ascii() { c as u8 } else { b'?' })),
            Charset::Utf8mb3 => {
                for c in text.chars() {
                    let c = if self.can_encode(c) { c } else { '?' };
                    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                }
            }
        }
    }

    /// Length in this character set's bytes, as LENGTH() answers.
    pub fn encoded_len(self, text: &str) -> usize {
        match self {
            Charset::Latin1 | Charset::Ascii if !text.is_ascii() => text.chars().count(),
            _ => text.len(),
        }
    }

    /// Bytes in this character set to UTF-8; `Err` with the offset of the first byte that is not valid in it.
    /// Binary bytes must be UTF-8 to be text.
    pub fn decode(self, bytes: &[u8]) -> Result<Cow<'_, str>, usize> {
        match self {
            Charset::Latin1 if bytes.is_ascii() => Ok(Cow::Borrowed(std::str::from_utf8(bytes).unwrap_or_default())),
            Charset::Latin1 => Ok(Cow::Owned(bytes.iter().map(|b| latin1_to_char(*b)).collect())),
            Charset::Ascii => match bytes.iter().position(|b| !b.is_ascii()) {
                Some(at) => Err(at),
                None => Ok(Cow::Borrowed(std::str::from_utf8(bytes).unwrap_or_default())),
            },
            Charset::Utf8mb4 | Charset::Utf8mb3 | Charset::Binary => {
                let text = std::str::from_utf8(bytes).map_err(|e| e.valid_up_to())?;
                match self.first_invalid(text) {
                    Some(at) => Err(at),
                    None => Ok(Cow::Borrowed(text)),
                }
            }
        }
    }

    /// Like [`decode`](Charset::decode) with `?` for every byte that is not valid.
    pub fn decode_lossy(self, bytes: &[u8]) -> Cow<'_, str> {
        match self.decode(bytes) {
            Ok(text) => text,
            Err(_) => {
                let mut text = String::with_capacity(bytes.len());
                for chunk in bytes.utf8_chunks() {
                    text.extend(chunk.valid().chars().map(|c| if self.can_encode(c) { c } else { '?' }));
                    text.extend(chunk.invalid().iter().map(|_| '?'));
                }
                Cow::Owned(text)
            }
        }
    }
}

/// Code page 1252 from 0x80 to 0x9F; the five unassigned bytes stand for the C1 controls, as in MySQL's latin1.
const CP1252_HIGH: [char; 32] = [
    '\u{20AC}', '\u{81}', '\u{201A}', '\u{192}', '\u{201E}', '\u{2026}', '\u{2020}', '\u{2021}', '\u{2C6}', '\u{2030}',
    '\u{160}', '\u{2039}', '\u{152}', '\u{8D}', '\u{17D}', '\u{8F}', '\u{90}', '\u{2018}', '\u{2019}', '\u{201C}',
    '\u{201D}', '\u{2022}', '\u{2013}', '\u{2014}', '\u{2DC}', '\u{2122}', '\u{161}', '\u{203A}', '\u{153}', '\u{9D}',
    '\u{17E}', '\u{178}',
];

/// The character of a latin1 byte.
pub(crate) fn latin1_to_char(byte: u8) -> char {
    match byte {
        0x80..=0x9F => CP1252_HIGH[usize::from(byte - 0x80)],
        _ => char::from(byte),
    }
}

/// The latin1 byte of a character.
pub(crate) fn char_to_latin1(c: char) -> Option<u8> {
    match c as u32 {
        code @ (0..=0x7F | 0xA0..=0xFF) => Some(code as u8),
        _ => CP1252_HIGH.iter().position(|high| *high == c).map(|at| 0x80 + at as u8),
    }
}
