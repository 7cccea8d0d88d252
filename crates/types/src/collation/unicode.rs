//! Weight tables of the Unicode collations and the codes of their sort keys.

use std::sync::LazyLock;

/// Which rule gives the weights of code points that the table leaves out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Implicit {
    /// UCA 9.0.0: Hangul by its jamo, Tangut, Han, then everything else.
    Uca9,
    /// UCA 5.2.0: Han of the basic plane, then everything else.
    Uca520,
    /// UCA 4.0.0: the same; 0xFFFD past the basic plane.
    Uca4,
    /// The code point itself; 0xFFFD past the basic plane.
    General,
    /// The same for all, of each jamo of a Hangul syllable: levels behind the first.
    Same(u16),
}

/// One collation's weights.  A text's weights are its characters' weights in a row: MySQL has no contractions here.
pub(super) struct UnicodeWeights {
    implicit: Implicit,
    pages: Vec<u16>,
    entries: Vec<u16>,
    expansion_offsets: Vec<u16>,
    expansions: Vec<u16>,
    codes: Codes,
}

pub(super) static UCA_0900: LazyLock<UnicodeWeights> =
    LazyLock::new(|| UnicodeWeights::load(include_bytes!("tables/utf8mb4_0900_ai_ci.bin"), Implicit::Uca9, false));
pub(super) static UCA_0520: LazyLock<UnicodeWeights> =
    LazyLock::new(|| UnicodeWeights::load(include_bytes!("tables/utf8mb4_unicode_520_ci.bin"), Implicit::Uca520, true));
pub(super) static UCA_0400: LazyLock<UnicodeWeights> =
    LazyLock::new(|| UnicodeWeights::load(include_bytes!("tables/utf8mb4_unicode_ci.bin"), Implicit::Uca4, true));
pub(super) static GENERAL: LazyLock<UnicodeWeights> =
    LazyLock::new(|| UnicodeWeights::load(include_bytes!("tables/utf8mb4_general_ci.bin"), Implicit::General, true));

/// The secondary weights of UCA 9.0.0: accents.
pub(super) static SECONDARY_0900: LazyLock<UnicodeWeights> =
    LazyLock::new(|| UnicodeWeights::load(include_bytes!("tables/uca_0900_secondary.bin"), Implicit::Same(0x20), false));
/// The tertiary weights of UCA 9.0.0: case and variants.
pub(super) static TERTIARY_0900: LazyLock<UnicodeWeights> =
    LazyLock::new(|| UnicodeWeights::load(include_bytes!("tables/uca_0900_tertiary.bin"), Implicit::Same(2), false));

macro_rules! tailored {
    ($($name:ident $file:literal)*) => {
        $(pub(super) static $name: LazyLock<UnicodeWeights> = LazyLock::new(|| UnicodeWeights::tailored(include_bytes!(concat!("tables/uca_0400_", $file, ".bin"))));)*
    };
}

// UCA 4.0.0 with the letters of a language elsewhere.
tailored! {
    ESPERANTO "esperanto"
    ESTONIAN "estonian"
    GERMAN2 "german2"
    HUNGARIAN "hungarian"
    ICELANDIC "icelandic"
    LATVIAN "latvian"
    PERSIAN "persian"
    POLISH "polish"
    ROMAN "roman"
    ROMANIAN "romanian"
    SINHALA "sinhala"
    SLOVENIAN "slovenian"
    SPANISH "spanish"
    SWEDISH "swedish"
    TURKISH "turkish"
    VIETNAMESE "vietnamese"
}

/// A character's weights.
#[derive(Clone, Copy)]
pub(super) struct Units {
    pub(super) units: [u16; 8],
    pub(super) len: u8,
}

impl Units {
    fn new(units: &[u16]) -> Units {
        let mut all = [0; 8];
        all[..units.len()].copy_from_slice(units);
        Units { units: all, len: units.len() as u8 }
    }

    pub(super) fn as_slice(&self) -> &[u16] {
        &self.units[..usize::from(self.len)]
    }
}

/// Sort key codes: one byte for each weight that an ASCII character has, and for every other weight the code of the gap
/// that it lies in followed by the weight itself.  Codes ascend with weights, and no code is a prefix of another.
struct Codes {
    /// Weights of ASCII characters, ascending, each with its code.
    singles: Vec<(u16, u8)>,
    /// `gaps[i]` is the code of weights between `singles[i - 1]` and `singles[i]`.
    gaps: Vec<u8>,
    /// ASCII byte to code; 0 if the byte is ignorable.
    ascii: [u8; 128],
    /// The weight of a space in a PAD SPACE collation.
    space: Option<u16>,
    /// The code that ends a key: 0, or between a space that is followed by something smaller (`end - 1`) and one that
    /// is followed by something larger (`end + 1`).
    end: u8,
}

/// What the sort key of a text ends with, and how spaces before the end are written.
#[derive(Clone, Copy)]
pub(super) struct Padding {
    pub(super) end: u8,
    pub(super) is_padded: bool,
}

impl UnicodeWeights {
    fn load(file: &[u8], implicit: Implicit, pad: bool) -> UnicodeWeights {
        const PAGES: usize = 0x1100;
        let words: Vec<u16> = file.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
        let pages = words[..PAGES].to_vec();
        let page_count = pages.iter().filter(|page| **page != 0xFFFF).count();
        let (entries, rest) = words[PAGES..].split_at(page_count * 256);
        let offsets = usize::from(rest[0]) + 1;
        let mut weights = UnicodeWeights {
            implicit,
            pages,
            entries: entries.to_vec(),
            expansion_offsets: rest[1..1 + offsets].to_vec(),
            expansions: rest[1 + offsets..].to_vec(),
            codes: Codes { singles: Vec::new(), gaps: Vec::new(), ascii: [0; 128], space: None, end: 0 },
        };
        weights.assign_codes(pad);
        weights
    }

    /// The weights of UCA 4.0.0 but for those in `file`: code point, number of weights, weights.
    fn tailored(file: &[u8]) -> UnicodeWeights {
        let base = &*UCA_0400;
        let mut weights = UnicodeWeights {
            implicit: base.implicit,
            pages: base.pages.clone(),
            entries: base.entries.clone(),
            expansion_offsets: base.expansion_offsets.clone(),
            expansions: base.expansions.clone(),
            codes: Codes { singles: Vec::new(), gaps: Vec::new(), ascii: [0; 128], space: None, end: 0 },
        };
        let mut words = file.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
        while let (Some(c), Some(count)) = (words.next(), words.next()) {
            let units: Vec<u16> = words.by_ref().take(usize::from(count)).collect();
            weights.set(c, &units);
        }
        weights.assign_codes(true);
        weights
    }

    fn set(&mut self, c: u16, units: &[u16]) {
        let page = usize::from(c >> 8);
        if self.pages[page] == 0xFFFF {
            self.pages[page] = (self.entries.len() / 256) as u16;
            self.entries.resize(self.entries.len() + 256, 0xFFFF);
        }
        let entry = match *units {
            [] => 0,
            [weight @ 1..0x8000] => weight,
            _ => {
                self.expansions.extend_from_slice(units);
                self.expansion_offsets.push(self.expansions.len() as u16);
                0x8000 + (self.expansion_offsets.len() - 2) as u16
            }
        };
        self.entries[usize::from(self.pages[page]) * 256 + usize::from(c & 0xFF)] = entry;
    }

    fn assign_codes(&mut self, pad: bool) {
        let space = self.weights(0x20).units[0];
        let mut ascii: Vec<u16> = (0..128).filter_map(|c| self.weights(c).as_slice().first().copied()).collect();
        ascii.sort_unstable();
        ascii.dedup();
        let mut codes = Codes { singles: Vec::new(), gaps: Vec::new(), ascii: [0; 128], space: pad.then_some(space), end: 0 };
        let mut next = 1u8;
        let mut previous = None;
        for weight in ascii {
            if previous.map_or(weight > 0, |previous: u16| weight > previous + 1) {
                codes.gaps.push(next);
                next += 1;
            } else {
                codes.gaps.push(0);
            }
            if pad && weight == space {
                codes.end = next + 1;
                next += 2;
            }
            codes.singles.push((weight, if pad && weight == space { codes.end } else { next }));
            next = next.checked_add(1).expect("fewer than 255 sort key codes");
            previous = Some(weight);
        }
        codes.gaps.push(next);
        for byte in 0..128u8 {
            if let Some(weight) = self.weights(u32::from(byte)).as_slice().first() {
                let at = codes.singles.partition_point(|(single, _)| single < weight);
                codes.ascii[usize::from(byte)] = codes.singles[at].1;
            }
        }
        self.codes = codes;
    }

    /// Order of ASCII bytes: the larger, the later; 0 for an ignorable byte.
    pub(super) fn ascii(&self) -> &[u8; 128] {
        &self.codes.ascii
    }

    pub(super) fn padding(&self) -> Padding {
        Padding { end: self.codes.end, is_padded: self.codes.space.is_some() }
    }

    pub(super) fn space(&self) -> Option<u16> {
        self.codes.space
    }

    /// Appends the code of one weight.
    pub(super) fn push_code(&self, weight: u16, out: &mut Vec<u8>) {
        let at = self.codes.singles.partition_point(|(single, _)| *single < weight);
        match self.codes.singles.get(at) {
            Some((single, code)) if *single == weight => out.push(*code),
            _ => out.extend_from_slice(&[self.codes.gaps[at], (weight >> 8) as u8, weight as u8]),
        }
    }

    /// A code that begins with this byte has the weight behind it.
    pub(super) fn is_long_code(&self, byte: u8) -> bool {
        byte != 0 && self.codes.gaps.contains(&byte)
    }

    /// The weights of a code point; none if it is ignorable.
    pub(super) fn weights(&self, c: u32) -> Units {
        let page = self.pages[(c >> 8) as usize];
        if page != 0xFFFF {
            match self.entries[usize::from(page) * 256 + (c & 0xFF) as usize] {
                0 => return Units::new(&[]),
                0xFFFF => {}
                expansion @ 0x8000.. => {
                    let at = usize::from(expansion - 0x8000);
                    let range = usize::from(self.expansion_offsets[at])..usize::from(self.expansion_offsets[at + 1]);
                    return Units::new(&self.expansions[range]);
                }
                weight => return Units::new(&[weight]),
            }
        }
        self.implicit_weights(c)
    }

    fn implicit_weights(&self, c: u32) -> Units {
        let pair = |base: u32| Units::new(&[(base + (c >> 15)) as u16, (c & 0x7FFF | 0x8000) as u16]);
        match (self.implicit, c) {
            (Implicit::General, 0..=0xFFFF) => Units::new(&[c as u16]),
            (Implicit::General | Implicit::Uca4, 0x1_0000..) => Units::new(&[0xFFFD]),
            (Implicit::Uca4 | Implicit::Uca520, 0x3400..=0x4DB5) => pair(0xFB80),
            (Implicit::Uca4 | Implicit::Uca520, 0x4E00..=0x9FA5) => pair(0xFB40),
            (Implicit::Uca9 | Implicit::Same(_), 0xAC00..=0xD7A3) => self.hangul(c - 0xAC00),
            (Implicit::Same(weight), _) => Units::new(&[weight]),
            (Implicit::Uca9, 0x1_7000..=0x1_8AFF) => Units::new(&[0xFB00, ((c - 0x1_7000) | 0x8000) as u16]),
            (
                Implicit::Uca9,
                0x3400..=0x4DB5 | 0x2_0000..=0x2_A6D6 | 0x2_A700..=0x2_B734 | 0x2_B740..=0x2_B81D | 0x2_B820..=0x2_CEA1,
            ) => pair(0xFB80),
            (Implicit::Uca9, 0x4E00..=0x9FD5 | 0xFA0E..=0xFA29) => pair(0xFB40),
            _ => pair(0xFBC0),
        }
    }

    /// A Hangul syllable has the weights of its two or three jamo.
    fn hangul(&self, syllable: u32) -> Units {
        let mut units = Units::new(&[]);
        let trail = syllable % 28;
        let jamo = [0x1100 + syllable / 588, 0x1161 + syllable % 588 / 28, 0x11A7 + trail];
        for jamo in &jamo[..if trail == 0 { 2 } else { 3 }] {
            for unit in self.weights(*jamo).as_slice() {
                units.units[usize::from(units.len)] = *unit;
                units.len += 1;
            }
        }
        units
    }
}
