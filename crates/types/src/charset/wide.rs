//! Character sets of two-byte and four-byte units.

/// How the units are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wide {
    /// Two bytes, big-endian, a character each: the basic plane.
    Ucs2,
    /// Two bytes, big-endian.
    Utf16,
    /// Two bytes, little-endian.
    Utf16le,
    /// Four bytes, big-endian.
    Utf32,
}

impl Wide {
    /// Bytes of a unit.
    pub(super) fn unit(self) -> usize {
        if self == Wide::Utf32 { 4 } else { 2 }
    }

    pub(super) fn can_encode(self, c: char) -> bool {
        self != Wide::Ucs2 || (c as u32) < 0x1_0000
    }

    /// Bytes of a character that it can hold.
    pub(super) fn encoded_len(self, c: char) -> usize {
        match self {
            Wide::Ucs2 => 2,
            Wide::Utf16 | Wide::Utf16le => 2 * c.len_utf16(),
            Wide::Utf32 => 4,
        }
    }

    /// Appends a character that it can hold.
    pub(super) fn push(self, c: char, out: &mut Vec<u8>) {
        if self == Wide::Utf32 {
            return out.extend_from_slice(&(c as u32).to_be_bytes());
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            out.extend_from_slice(&if self == Wide::Utf16le { unit.to_le_bytes() } else { unit.to_be_bytes() });
        }
    }

    /// Takes the first character of `bytes` and how many bytes it has; `None` if there is none.
    fn first(self, bytes: &[u8]) -> Option<(char, usize)> {
        let unit = |at: usize| -> Option<u32> {
            let pair: [u8; 2] = bytes.get(at..at + 2)?.try_into().ok()?;
            Some(u32::from(if self == Wide::Utf16le { u16::from_le_bytes(pair) } else { u16::from_be_bytes(pair) }))
        };
        if self == Wide::Utf32 {
            let code = u32::from_be_bytes(bytes.get(..4)?.try_into().ok()?);
            return Some((char::from_u32(code)?, 4));
        }
        match (unit(0)?, unit(2)) {
            (high @ 0xD800..0xDC00, Some(low @ 0xDC00..0xE000)) if self != Wide::Ucs2 => {
                Some((char::from_u32(0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00))?, 4))
            }
            (code, _) => Some((char::from_u32(code)?, 2)),
        }
    }

    /// The characters of whole units, `None` for a unit that is none, each with its offset.
    pub(super) fn chars(self, bytes: &[u8]) -> impl Iterator<Item = (usize, Option<char>)> {
        let mut at = 0;
        std::iter::from_fn(move || {
            if at >= bytes.len() {
                return None;
            }
            let start = at;
            let first = self.first(&bytes[at..]);
            at += first.map_or(self.unit(), |(_, length)| length);
            Some((start, first.map(|(c, _)| c)))
        })
    }
}
