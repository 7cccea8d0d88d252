//! Character sets of one byte a character whose lower half is ASCII, and their letters' cases, which MySQL has a table of each for.

use std::sync::LazyLock;

/// One of them.
pub(crate) struct SingleByte {
    /// The characters of the bytes 0x80 to 0xFF. `None` for a byte that stands for no character.
    chars: [Option<char>; 128],
    /// Each character with its byte, by character.
    bytes: Vec<(char, u8)>,
    upper: &'static [u8],
    lower: &'static [u8],
    /// ASCII letters are each other's cases, as they are in ASCII.
    pub(crate) has_ascii_cases: bool,
}

impl SingleByte {
    /// From what `tools/record_collations.py` wrote.
    fn load(file: &'static [u8; 768]) -> SingleByte {
        let (codes, cases) = file.split_at(256);
        let (upper, lower) = cases.split_at(256);
        let mut chars = [None; 128];
        let mut bytes = Vec::new();
        for (index, pair) in codes.chunks_exact(2).enumerate() {
            let code = u32::from(u16::from_le_bytes([pair[0], pair[1]]));
            if let Some(c) = char::from_u32(code).filter(|_| code != 0) {
                chars[index] = Some(c);
                bytes.push((c, 0x80 + index as u8));
            }
        }
        bytes.sort_unstable();
        let has_ascii_cases = (0..0x80u8).all(|byte| upper[usize::from(byte)] == byte.to_ascii_uppercase() && lower[usize::from(byte)] == byte.to_ascii_lowercase());
        SingleByte { chars, bytes, upper, lower, has_ascii_cases }
    }

    /// The character of a byte.
    pub(crate) fn char_of(&self, byte: u8) -> Option<char> {
        match byte {
            0..0x80 => Some(char::from(byte)),
            _ => self.chars[usize::from(byte - 0x80)],
        }
    }

    /// The byte of a character.
    pub(crate) fn byte_of(&self, c: char) -> Option<u8> {
        match c as u32 {
            code @ 0..0x80 => Some(code as u8),
            // Most of these sets have the upper half of ISO 8859-1 where Unicode has it.
            code @ 0x80..0x100 if self.chars[code as usize - 0x80] == Some(c) => Some(code as u8),
            _ => self.bytes.binary_search_by_key(&c, |(known, _)| *known).ok().map(|at| self.bytes[at].1),
        }
    }

    /// A character in upper case, as it is if it has none here.
    pub(crate) fn upper(&self, c: char) -> char {
        self.in_case(c, self.upper)
    }

    /// A character in lower case, as it is if it has none here.
    pub(crate) fn lower(&self, c: char) -> char {
        self.in_case(c, self.lower)
    }

    fn in_case(&self, c: char, case: &[u8]) -> char {
        self.byte_of(c).and_then(|byte| self.char_of(case[usize::from(byte)])).unwrap_or(c)
    }
}

macro_rules! tables {
    ($($name:ident $file:literal)*) => {
        $(pub(super) static $name: LazyLock<SingleByte> = LazyLock::new(|| SingleByte::load(include_bytes!(concat!("tables/", $file, ".bin"))));)*
    };
}

tables! {
    ARMSCII8 "armscii8"
    ASCII "ascii"
    CP1250 "cp1250"
    CP1251 "cp1251"
    CP1256 "cp1256"
    CP1257 "cp1257"
    CP850 "cp850"
    CP852 "cp852"
    CP866 "cp866"
    DEC8 "dec8"
    GEOSTD8 "geostd8"
    GREEK "greek"
    HEBREW "hebrew"
    HP8 "hp8"
    KEYBCS2 "keybcs2"
    KOI8R "koi8r"
    KOI8U "koi8u"
    LATIN1 "latin1"
    LATIN2 "latin2"
    LATIN5 "latin5"
    LATIN7 "latin7"
    MACCE "macce"
    MACROMAN "macroman"
}
