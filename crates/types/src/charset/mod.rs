//! Character sets: what a column admits and how its text looks on the wire. Single-byte sets are tables recorded from MySQL
//! (`tools/record_collations.py`), as are those of Chinese, Japanese and Korean (`tools/record_multi_byte.py`).

mod multi_byte;
mod single_byte;
mod wide;

use std::borrow::Cow;
use std::sync::LazyLock;

pub(crate) use multi_byte::{MultiByte, code_len, linear_number};
pub(crate) use single_byte::SingleByte;
use wide::Wide;

/// A character set.  Text inside the server is UTF-8 in all of them but `Binary`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Charset {
    Utf8mb4,
    Utf8mb3,
    /// MySQL's latin1, which is Windows code page 1252.
    Latin1,
    Ascii,
    Binary,
    Armscii8,
    Cp1250,
    Cp1251,
    Cp1256,
    Cp1257,
    Cp850,
    Cp852,
    Cp866,
    Dec8,
    Geostd8,
    Greek,
    Hebrew,
    Hp8,
    Keybcs2,
    Koi8r,
    Koi8u,
    Latin2,
    Latin5,
    Latin7,
    Macce,
    Macroman,
    Ucs2,
    Utf16,
    Utf16le,
    Utf32,
    Big5,
    Cp932,
    Eucjpms,
    Euckr,
    Gb18030,
    Gb2312,
    Gbk,
    Sjis,
    Ujis,
}

impl Charset {
    pub const ALL: [Charset; 39] = [
        Charset::Utf8mb4,
        Charset::Utf8mb3,
        Charset::Latin1,
        Charset::Ascii,
        Charset::Binary,
        Charset::Armscii8,
        Charset::Cp1250,
        Charset::Cp1251,
        Charset::Cp1256,
        Charset::Cp1257,
        Charset::Cp850,
        Charset::Cp852,
        Charset::Cp866,
        Charset::Dec8,
        Charset::Geostd8,
        Charset::Greek,
        Charset::Hebrew,
        Charset::Hp8,
        Charset::Keybcs2,
        Charset::Koi8r,
        Charset::Koi8u,
        Charset::Latin2,
        Charset::Latin5,
        Charset::Latin7,
        Charset::Macce,
        Charset::Macroman,
        Charset::Ucs2,
        Charset::Utf16,
        Charset::Utf16le,
        Charset::Utf32,
        Charset::Big5,
        Charset::Cp932,
        Charset::Eucjpms,
        Charset::Euckr,
        Charset::Gb18030,
        Charset::Gb2312,
        Charset::Gbk,
        Charset::Sjis,
        Charset::Ujis,
    ];

    /// By MySQL's name, `utf8mb3` meaning utf8; any case.
    pub fn by_name(name: &str) -> Option<Charset> {
        let name = if name.eq_ignore_ascii_case("utf8mb3") { Charset::Utf8mb3.name() } else { name };
        Charset::ALL.into_iter().find(|charset| charset.name().eq_ignore_ascii_case(name))
    }

    pub fn name(self) -> &'static str {
        self.words().0
    }

    /// `Description` of SHOW CHARACTER SET.
    pub fn description(self) -> &'static str {
        self.words().1
    }

    fn words(self) -> (&'static str, &'static str) {
        match self {
            Charset::Utf8mb4 => ("utf8mb4", "UTF-8 Unicode"),
            Charset::Utf8mb3 => ("utf8", "UTF-8 Unicode"),
            Charset::Latin1 => ("latin1", "cp1252 West European"),
            Charset::Ascii => ("ascii", "US ASCII"),
            Charset::Binary => ("binary", "Binary pseudo charset"),
            Charset::Armscii8 => ("armscii8", "ARMSCII-8 Armenian"),
            Charset::Cp1250 => ("cp1250", "Windows Central European"),
            Charset::Cp1251 => ("cp1251", "Windows Cyrillic"),
            Charset::Cp1256 => ("cp1256", "Windows Arabic"),
            Charset::Cp1257 => ("cp1257", "Windows Baltic"),
            Charset::Cp850 => ("cp850", "DOS West European"),
            Charset::Cp852 => ("cp852", "DOS Central European"),
            Charset::Cp866 => ("cp866", "DOS Russian"),
            Charset::Dec8 => ("dec8", "DEC West European"),
            Charset::Geostd8 => ("geostd8", "GEOSTD8 Georgian"),
            Charset::Greek => ("greek", "ISO 8859-7 Greek"),
            Charset::Hebrew => ("hebrew", "ISO 8859-8 Hebrew"),
            Charset::Hp8 => ("hp8", "HP West European"),
            Charset::Keybcs2 => ("keybcs2", "DOS Kamenicky Czech-Slovak"),
            Charset::Koi8r => ("koi8r", "KOI8-R Relcom Russian"),
            Charset::Koi8u => ("koi8u", "KOI8-U Ukrainian"),
            Charset::Latin2 => ("latin2", "ISO 8859-2 Central European"),
            Charset::Latin5 => ("latin5", "ISO 8859-9 Turkish"),
            Charset::Latin7 => ("latin7", "ISO 8859-13 Baltic"),
            Charset::Macce => ("macce", "Mac Central European"),
            Charset::Macroman => ("macroman", "Mac West European"),
            Charset::Ucs2 => ("ucs2", "UCS-2 Unicode"),
            Charset::Utf16 => ("utf16", "UTF-16 Unicode"),
            Charset::Utf16le => ("utf16le", "UTF-16LE Unicode"),
            Charset::Utf32 => ("utf32", "UTF-32 Unicode"),
            Charset::Big5 => ("big5", "Big5 Traditional Chinese"),
            Charset::Cp932 => ("cp932", "SJIS for Windows Japanese"),
            Charset::Eucjpms => ("eucjpms", "UJIS for Windows Japanese"),
            Charset::Euckr => ("euckr", "EUC-KR Korean"),
            Charset::Gb18030 => ("gb18030", "China National Standard GB18030"),
            Charset::Gb2312 => ("gb2312", "GB2312 Simplified Chinese"),
            Charset::Gbk => ("gbk", "GBK Simplified Chinese"),
            Charset::Sjis => ("sjis", "Shift-JIS Japanese"),
            Charset::Ujis => ("ujis", "EUC-JP Japanese"),
        }
    }

    /// `Maxlen`: the most bytes of one character.
    pub fn max_bytes(self) -> usize {
        match self {
            Charset::Utf8mb4 | Charset::Utf16 | Charset::Utf16le | Charset::Utf32 | Charset::Gb18030 => 4,
            Charset::Utf8mb3 | Charset::Eucjpms | Charset::Ujis => 3,
            Charset::Ucs2 | Charset::Big5 | Charset::Cp932 | Charset::Euckr | Charset::Gb2312 | Charset::Gbk | Charset::Sjis => 2,
            _ => 1,
        }
    }

    /// The fewest bytes of one character. No client can talk in a character set of more than one.
    pub fn min_bytes(self) -> usize {
        self.wide().map_or(1, Wide::unit)
    }

    /// One of Unicode, so that it can hold what most others can.
    pub fn is_unicode(self) -> bool {
        self.is_utf8() || self.wide().is_some()
    }

    /// Text has the bytes that it has inside the server.
    pub fn is_utf8(self) -> bool {
        matches!(self, Charset::Utf8mb4 | Charset::Utf8mb3)
    }

    /// Some text that it can hold has other bytes than inside the server.
    pub fn is_recoded(self) -> bool {
        !self.is_utf8() && !matches!(self, Charset::Ascii | Charset::Binary)
    }

    /// `text` has the bytes that it has inside the server.
    fn keeps(self, text: &str) -> bool {
        match self {
            Charset::Utf8mb4 | Charset::Binary => true,
            Charset::Utf8mb3 => self.first_invalid(text).is_none(),
            _ => text.is_ascii() && self.wide().is_none(),
        }
    }

    fn wide(self) -> Option<Wide> {
        Some(match self {
            Charset::Ucs2 => Wide::Ucs2,
            Charset::Utf16 => Wide::Utf16,
            Charset::Utf16le => Wide::Utf16le,
            Charset::Utf32 => Wide::Utf32,
            _ => return None,
        })
    }

    /// The table of a character set of several bytes a character that is none of Unicode's.
    pub(crate) fn multi_byte(self) -> Option<&'static MultiByte> {
        Some(LazyLock::force(match self {
            Charset::Big5 => &multi_byte::BIG5,
            Charset::Cp932 => &multi_byte::CP932,
            Charset::Eucjpms => &multi_byte::EUCJPMS,
            Charset::Euckr => &multi_byte::EUCKR,
            Charset::Gb18030 => &multi_byte::GB18030,
            Charset::Gb2312 => &multi_byte::GB2312,
            Charset::Gbk => &multi_byte::GBK,
            Charset::Sjis => &multi_byte::SJIS,
            Charset::Ujis => &multi_byte::UJIS,
            _ => return None,
        }))
    }

    /// The table of a character set with one byte a character.
    pub(crate) fn single_byte(self) -> Option<&'static SingleByte> {
        let table = match self {
            Charset::Utf8mb4 | Charset::Utf8mb3 | Charset::Binary | Charset::Ucs2 | Charset::Utf16 | Charset::Utf16le | Charset::Utf32 => return None,
            Charset::Big5 | Charset::Cp932 | Charset::Eucjpms | Charset::Euckr | Charset::Gb18030 => return None,
            Charset::Gb2312 | Charset::Gbk | Charset::Sjis | Charset::Ujis => return None,
            Charset::Latin1 => &single_byte::LATIN1,
            Charset::Armscii8 => &single_byte::ARMSCII8,
            Charset::Ascii => &single_byte::ASCII,
            Charset::Cp1250 => &single_byte::CP1250,
            Charset::Cp1251 => &single_byte::CP1251,
            Charset::Cp1256 => &single_byte::CP1256,
            Charset::Cp1257 => &single_byte::CP1257,
            Charset::Cp850 => &single_byte::CP850,
            Charset::Cp852 => &single_byte::CP852,
            Charset::Cp866 => &single_byte::CP866,
            Charset::Dec8 => &single_byte::DEC8,
            Charset::Geostd8 => &single_byte::GEOSTD8,
            Charset::Greek => &single_byte::GREEK,
            Charset::Hebrew => &single_byte::HEBREW,
            Charset::Hp8 => &single_byte::HP8,
            Charset::Keybcs2 => &single_byte::KEYBCS2,
            Charset::Koi8r => &single_byte::KOI8R,
            Charset::Koi8u => &single_byte::KOI8U,
            Charset::Latin2 => &single_byte::LATIN2,
            Charset::Latin5 => &single_byte::LATIN5,
            Charset::Latin7 => &single_byte::LATIN7,
            Charset::Macce => &single_byte::MACCE,
            Charset::Macroman => &single_byte::MACROMAN,
        };
        Some(LazyLock::force(table))
    }

    /// True if the character set can hold `c`.
    pub fn can_encode(self, c: char) -> bool {
        match (self, self.single_byte(), self.wide()) {
            (Charset::Utf8mb3, ..) => (c as u32) < 0x1_0000,
            (_, Some(table), _) => table.byte_of(c).is_some(),
            (_, _, Some(wide)) => wide.can_encode(c),
            _ => self.multi_byte().is_none_or(|table| table.code_of(c).is_some()),
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
        if self.keeps(text) {
            return Cow::Borrowed(text.as_bytes());
        }
        let mut bytes = Vec::with_capacity(text.len() * self.min_bytes());
        self.encode_into(text, &mut bytes);
        Cow::Owned(bytes)
    }

    /// [`encode`](Charset::encode), appended to `out`.
    pub fn encode_into(self, text: &str, out: &mut Vec<u8>) {
        if self.keeps(text) {
            out.extend_from_slice(text.as_bytes());
        } else if let Some(table) = self.single_byte() {
            out.extend(text.chars().map(|c| table.byte_of(c).unwrap_or(b'?')));
        } else if let Some(table) = self.multi_byte() {
            for code in text.chars().map(|c| table.code_of(c).unwrap_or(u32::from(b'?'))) {
                out.extend_from_slice(&code.to_be_bytes()[4 - code_len(code)..]);
            }
        } else {
            for c in text.chars().map(|c| if self.can_encode(c) { c } else { '?' }) {
                match self.wide() {
                    Some(wide) => wide.push(c, out),
                    None => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
                }
            }
        }
    }

    /// Length in this character set's bytes, as LENGTH() answers.
    pub fn encoded_len(self, text: &str) -> usize {
        match self.wide() {
            Some(wide) => text.chars().map(|c| wide.encoded_len(if wide.can_encode(c) { c } else { '?' })).sum(),
            None if text.is_ascii() => text.len(),
            None if self.single_byte().is_some() => text.chars().count(),
            None => match self.multi_byte() {
                Some(table) => text.chars().map(|c| table.code_of(c).map_or(1, code_len)).sum(),
                None => text.len(),
            },
        }
    }

    /// How many bytes the character has that `bytes` begins with, where such bytes may look like ASCII; else one, as it is for bytes that are none.
    pub fn char_len(self, bytes: &[u8]) -> usize {
        match bytes.first() {
            Some(0x80..) => self.multi_byte().and_then(|table| table.first_len(bytes)).unwrap_or(1),
            _ => 1,
        }
    }

    /// Whether `byte`, as the first of a character, may have others behind it that look like ASCII. 0xFF: whether any may.
    pub fn hides_ascii(self, byte: u8) -> bool {
        byte >= 0x80 && matches!(self, Charset::Big5 | Charset::Cp932 | Charset::Euckr | Charset::Gb18030 | Charset::Gbk | Charset::Sjis)
    }

    /// Some bytes beyond ASCII's stand for characters of ASCII.
    pub fn repeats_ascii(self) -> bool {
        matches!(self, Charset::Armscii8 | Charset::Sjis | Charset::Ujis)
    }

    /// `bytes`, which are of one character, stand for one of ASCII, but are not its byte.
    pub fn is_ascii_again(self, bytes: &[u8]) -> bool {
        self.repeats_ascii() && matches!(bytes, [0x80..=0xFF, ..]) && self.decode(bytes).is_ok_and(|text| text.is_ascii())
    }

    /// All of `bytes` are characters of this character set, though they may stand for nothing.
    pub fn is_well_formed(self, bytes: &[u8]) -> bool {
        match self.multi_byte() {
            Some(table) => {
                let mut rest = bytes;
                while let Some(length) = table.first_len(rest) {
                    rest = &rest[length..];
                }
                rest.is_empty()
            }
            None => self.max_bytes() == 1 || self.decode(bytes).is_ok(),
        }
    }

    /// Bytes in this character set to UTF-8; `Err` with the offset of the first byte that is not valid in it.
    /// Binary bytes must be UTF-8 to be text. Where characters have several bytes at least, zeros fill up the first one.
    pub fn decode(self, bytes: &[u8]) -> Result<Cow<'_, str>, usize> {
        if let Some(wide) = self.wide() {
            let (whole, added) = whole_units(bytes, wide.unit());
            let text: Result<String, usize> = wide.chars(&whole).map(|(at, c)| c.ok_or(at.saturating_sub(added))).collect();
            return text.map(Cow::Owned);
        }
        if let Some(table) = self.multi_byte().filter(|_| !bytes.is_ascii()) {
            let text: Result<String, usize> = table.chars(bytes).map(|(at, c)| c.ok_or(at)).collect();
            return text.map(Cow::Owned);
        }
        match self.single_byte() {
            Some(_) if bytes.is_ascii() => Ok(Cow::Borrowed(std::str::from_utf8(bytes).unwrap_or_default())),
            Some(table) => {
                let text: Result<String, usize> = bytes.iter().enumerate().map(|(at, byte)| table.char_of(*byte).ok_or(at)).collect();
                text.map(Cow::Owned)
            }
            None => {
                let text = std::str::from_utf8(bytes).map_err(|e| e.valid_up_to())?;
                match self.first_invalid(text) {
                    Some(at) => Err(at),
                    None => Ok(Cow::Borrowed(text)),
                }
            }
        }
    }

    /// Like [`decode`](Charset::decode) with `?` for every byte, unit of several, or character that stands for nothing, that is not valid.
    pub fn decode_lossy(self, bytes: &[u8]) -> Cow<'_, str> {
        if let Ok(text) = self.decode(bytes) {
            return text;
        }
        if let Some(wide) = self.wide() {
            return Cow::Owned(wide.chars(&whole_units(bytes, wide.unit()).0).map(|(_, c)| c.unwrap_or('?')).collect());
        }
        if let Some(table) = self.single_byte() {
            return Cow::Owned(bytes.iter().map(|byte| table.char_of(*byte).unwrap_or('?')).collect());
        }
        if let Some(table) = self.multi_byte() {
            return Cow::Owned(table.chars(bytes).map(|(_, c)| c.unwrap_or('?')).collect());
        }
        let mut text = String::with_capacity(bytes.len());
        for chunk in bytes.utf8_chunks() {
            text.extend(chunk.valid().chars().map(|c| if self.can_encode(c) { c } else { '?' }));
            text.extend(chunk.invalid().iter().map(|_| '?'));
        }
        Cow::Owned(text)
    }
}

/// `bytes` behind so many zeros, which come with them, that they are whole units.
fn whole_units(bytes: &[u8], unit: usize) -> (Cow<'_, [u8]>, usize) {
    match (unit - bytes.len() % unit) % unit {
        0 => (Cow::Borrowed(bytes), 0),
        added => (Cow::Owned([&[0; 4][..added], bytes].concat()), added),
    }
}

#[cfg(test)]
mod tests;
