//! Character sets of one byte a character whose lower half is ASCII.

use std::sync::LazyLock;

/// The characters of the bytes 0x80 to 0xFF.
pub(crate) struct SingleByte {
    /// `None` for a byte that stands for no character.
    chars: [Option<char>; 128],
    /// Each character with its byte, by character.
    bytes: Vec<(char, u8)>,
}

impl SingleByte {
    /// From the code points that `tools/record_collations.py` wrote; 0 stands for no character.
    fn load(file: &[u8; 256]) -> SingleByte {
        let mut chars = [None; 128];
        let mut bytes = Vec::new();
        for (index, pair) in file.chunks_exact(2).enumerate() {
            let code = u32::from(u16::from_le_bytes([pair[0], pair[1]]));
            if let Some(c) = char::from_u32(code).filter(|_| code != 0) {
                chars[index] = Some(c);
                bytes.push((c, 0x80 + index as u8));
            }
        }
        bytes.sort_unstable();
        SingleByte { chars, bytes }
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
}

macro_rules! tables {
    ($($name:ident $file:literal)*) => {
        $(pub(super) static $name: LazyLock<SingleByte> = LazyLock::new(|| SingleByte::load(include_bytes!(concat!("tables/", $file, ".bin"))));)*
    };
}

tables! {
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

/// ASCII: the upper half is empty.
pub(super) static ASCII: LazyLock<SingleByte> = LazyLock::new(|| SingleByte::load(&[0; 256]));
