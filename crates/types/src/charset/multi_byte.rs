//! Character sets of several bytes a character whose lower half is ASCII: those of Chinese, Japanese and Korean. What a character's bytes look like is
//! told by a shape; which character two bytes are is a table (`tools/record_multi_byte.py`).

use std::sync::LazyLock;

/// Which bytes are a character, whether it stands for something or not.
#[derive(Clone, Copy)]
struct Shape {
    /// First bytes of two.
    leads: &'static [(u8, u8)],
    /// Second bytes of two.
    trails: &'static [(u8, u8)],
    katakana: Katakana,
    /// Four bytes as in gb18030, with a digit at every other place.
    four_bytes: bool,
}

/// Where the half-width katakana are, which are 0xA1 to 0xDF.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Katakana {
    Nowhere,
    /// One byte each.
    Alone,
    /// Behind 0x8E, as more kanji are behind 0x8F.
    Shifted,
}

const GBK_SHAPE: Shape = Shape { leads: &[(0x81, 0xFE)], trails: &[(0x40, 0x7E), (0x80, 0xFE)], katakana: Katakana::Nowhere, four_bytes: false };
const GB18030_SHAPE: Shape = Shape { four_bytes: true, ..GBK_SHAPE };
const GB2312_SHAPE: Shape = Shape { leads: &[(0xA1, 0xF7)], trails: &[(0xA1, 0xFE)], ..GBK_SHAPE };
const BIG5_SHAPE: Shape = Shape { leads: &[(0xA1, 0xF9)], trails: &[(0x40, 0x7E), (0xA1, 0xFE)], ..GBK_SHAPE };
const EUCKR_SHAPE: Shape = Shape { trails: &[(0x41, 0x5A), (0x61, 0x7A), (0x81, 0xFE)], ..GBK_SHAPE };
const SJIS_SHAPE: Shape = Shape { leads: &[(0x81, 0x9F), (0xE0, 0xFC)], trails: &[(0x40, 0x7E), (0x80, 0xFC)], katakana: Katakana::Alone, four_bytes: false };
const UJIS_SHAPE: Shape = Shape { leads: &[(0xA1, 0xFE)], trails: &[(0xA1, 0xFE)], katakana: Katakana::Shifted, four_bytes: false };

/// Half-width katakana: U+FF61, which is 0xA1, and those behind it.
const KATAKANA: u32 = 0xFF61 - 0xA1;

/// Of gb18030's four bytes, the first so many are the rest of the basic plane.
const LINEAR_BASIC: u32 = 39_420;
/// And those from here on the other planes.
const LINEAR_OTHERS: u32 = 189_000;

/// One of them. A code is the bytes of a character as a big-endian number.
pub(crate) struct MultiByte {
    shape: Shape,
    /// The character of each two bytes of the shape, then of those behind 0x8F; 0 for none.
    chars: Vec<u16>,
    /// By character of the basic plane, its code with two bytes; without the highest bit of the last one if it is behind 0x8F. 0 for none.
    codes: Box<[u16]>,
    /// Runs of characters that have four bytes: the first, and its number among all of four bytes.
    four_byte_runs: Vec<(u16, u32)>,
    upper: Vec<(u32, u32)>,
    lower: Vec<(u32, u32)>,
}

impl MultiByte {
    /// From what `tools/record_multi_byte.py` wrote.
    fn load(file: &[u8], shape: Shape) -> MultiByte {
        let mut words = file.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
        let planes = if shape.katakana == Katakana::Shifted { 2 } else { 1 };
        let plane = size(shape.leads) * size(shape.trails);
        let chars: Vec<u16> = words.by_ref().take(plane * planes).collect();
        let mut set = MultiByte { shape, chars, codes: vec![0; 0x1_0000].into(), four_byte_runs: Vec::new(), upper: Vec::new(), lower: Vec::new() };
        for at in 0..set.chars.len() {
            let c = usize::from(set.chars[at]);
            if c >= 0x80 && set.codes[c] == 0 {
                set.codes[c] = set.two_bytes_at(at);
            }
        }
        let preferred = words.next().unwrap_or_default();
        for _ in 0..preferred {
            let code = words.next().unwrap_or_default();
            if let Some(at) = set.cell(code) {
                set.codes[usize::from(set.chars[at])] = code;
            }
        }
        let mut cases = || {
            let mut pairs = Vec::new();
            for _ in 0..words.next().unwrap_or_default() {
                let mut word = || u32::from(words.next().unwrap_or_default());
                let (first, add) = (word() | word() << 16, word() | word() << 16);
                let (count, step) = (word(), word());
                pairs.extend((0..count).map(|i| (first + i * step, (first + i * step).wrapping_add(add))));
            }
            pairs.sort_unstable();
            pairs
        };
        (set.upper, set.lower) = (cases(), cases());
        if shape.four_bytes {
            set.number_four_bytes();
        }
        set
    }

    /// Characters without two bytes have four, numbered in their order.
    fn number_four_bytes(&mut self) {
        let mut number = 0;
        let mut in_run = false;
        for c in 0x80..=u16::MAX {
            let has_four = self.codes[usize::from(c)] == 0 && !(0xD800..0xE000).contains(&c) && c != MOVED.0;
            if has_four && !in_run {
                self.four_byte_runs.push((c, number));
            }
            in_run = has_four;
            // The moved character has the number of one that has two bytes.
            number += u32::from(has_four || c == MOVED.1);
        }
    }

    /// The two bytes of a place in `chars`, as `codes` has them.
    fn two_bytes_at(&self, at: usize) -> u16 {
        let (leads, trails) = (size(self.shape.leads), size(self.shape.trails));
        let (plane, at) = (at / (leads * trails), at % (leads * trails));
        let code = u16::from_be_bytes([byte_at(self.shape.leads, at / trails), byte_at(self.shape.trails, at % trails)]);
        if plane == 0 { code } else { code & 0xFF7F }
    }

    /// The place in `chars` of two bytes as `codes` has them.
    fn cell(&self, code: u16) -> Option<usize> {
        let [lead, trail] = code.to_be_bytes();
        let behind_8f = self.shape.katakana == Katakana::Shifted && trail < 0x80;
        let trail = if behind_8f { trail | 0x80 } else { trail };
        let plane = if behind_8f { self.chars.len() / 2 } else { 0 };
        Some(plane + place(self.shape.leads, lead)? * size(self.shape.trails) + place(self.shape.trails, trail)?)
    }

    /// The place of a code of two bytes among all of them, first bytes first.
    pub(crate) fn place(&self, code: u32) -> Option<usize> {
        self.cell(u16::try_from(code).ok()?)
    }

    /// How many bytes the character has that `bytes` begins with. `None`: its bytes are none.
    pub(crate) fn first_len(&self, bytes: &[u8]) -> Option<usize> {
        let is_pair = |lead, trail| place(self.shape.leads, lead).is_some() && place(self.shape.trails, trail).is_some();
        match (bytes, self.shape.katakana) {
            ([0..=0x7F, ..], _) | ([0xA1..=0xDF, ..], Katakana::Alone) => Some(1),
            ([0x8E, 0xA1..=0xDF, ..], Katakana::Shifted) => Some(2),
            ([0x8F, lead, trail, ..], Katakana::Shifted) if is_pair(*lead, *trail) => Some(3),
            ([lead, trail, ..], _) if is_pair(*lead, *trail) => Some(2),
            ([0x81..=0xFE, b'0'..=b'9', 0x81..=0xFE, b'0'..=b'9', ..], _) if self.shape.four_bytes => Some(4),
            _ => None,
        }
    }

    /// The character of the bytes of one. `None`: they stand for nothing.
    pub(crate) fn char_of(&self, bytes: &[u8]) -> Option<char> {
        let cell = |code: [u8; 2]| Some(u32::from(self.chars[self.cell(u16::from_be_bytes(code))?]));
        let code = match (bytes, self.shape.katakana) {
            ([byte @ 0..0x80], _) => return Some(char::from(*byte)),
            ([byte], Katakana::Alone) | ([0x8E, byte], Katakana::Shifted) => KATAKANA + u32::from(*byte),
            ([lead, trail], _) => cell([*lead, *trail])?,
            ([_, lead, trail], _) => cell([*lead, trail & 0x7F])?,
            ([_, _, _, _], _) => self.four_byte_char(linear_number(u32::from_be_bytes(bytes.try_into().ok()?)))?,
            _ => return None,
        };
        char::from_u32(code).filter(|_| code != 0)
    }

    fn four_byte_char(&self, number: u32) -> Option<u32> {
        match number {
            0..LINEAR_BASIC => {
                let run = self.four_byte_runs.partition_point(|(_, first)| *first <= number).checked_sub(1)?;
                let (c, first) = self.four_byte_runs[run];
                let c = u32::from(c) + number - first;
                Some(if c == u32::from(MOVED.1) { u32::from(MOVED.0) } else { c })
            }
            LINEAR_OTHERS.. => Some(number - LINEAR_OTHERS + 0x1_0000),
            _ => None,
        }
    }

    /// The code of a character.
    pub(crate) fn code_of(&self, c: char) -> Option<u32> {
        let c = c as u32;
        if c < 0x80 {
            return Some(c);
        }
        let basic = u16::try_from(c).ok();
        match (basic.map(|c| self.codes[usize::from(c)]), self.shape.katakana) {
            (None | Some(0), _) if self.shape.four_bytes => {
                let number = match basic {
                    None => LINEAR_OTHERS + c - 0x1_0000,
                    Some(c) => {
                        let c = if c == MOVED.0 { MOVED.1 } else { c };
                        let run = self.four_byte_runs.partition_point(|(first, _)| *first <= c).checked_sub(1)?;
                        let (first, number) = self.four_byte_runs[run];
                        number + u32::from(c - first)
                    }
                };
                let (tens, last) = (number / 10, number % 10);
                Some(u32::from_be_bytes([0x81 + (tens / 1260) as u8, b'0' + (tens / 126 % 10) as u8, 0x81 + (tens % 126) as u8, b'0' + last as u8]))
            }
            (Some(0), Katakana::Alone) if (0xFF61..0xFFA0).contains(&c) => Some(c - KATAKANA),
            (Some(0), Katakana::Shifted) if (0xFF61..0xFFA0).contains(&c) => Some(0x8E00 | c - KATAKANA),
            (None | Some(0), _) => None,
            (Some(code), Katakana::Shifted) if code & 0x80 == 0 => Some(0x8F_0080 | u32::from(code)),
            (Some(code), _) => Some(u32::from(code)),
        }
    }

    /// A character in upper case, as it is if it has none here.
    pub(crate) fn upper(&self, c: char) -> char {
        in_case(c, &self.upper)
    }

    /// A character in lower case, as it is if it has none here.
    pub(crate) fn lower(&self, c: char) -> char {
        in_case(c, &self.lower)
    }

    /// The characters of `bytes`, each with its offset; `None` for one that stands for nothing and for each byte that is none.
    pub(super) fn chars(&self, bytes: &[u8]) -> impl Iterator<Item = (usize, Option<char>)> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let rest = bytes.get(at..).filter(|rest| !rest.is_empty())?;
            let (start, length) = (at, self.first_len(rest));
            at += length.unwrap_or(1);
            Some((start, length.and_then(|length| self.char_of(&rest[..length]))))
        })
    }
}

/// The number of gb18030's four bytes that U+1E3F would have is U+E7C7's.
const MOVED: (u16, u16) = (0xE7C7, 0x1E3F);

/// Bytes of a code.
pub(crate) fn code_len(code: u32) -> usize {
    match code {
        ..0x100 => 1,
        0x100..0x1_0000 => 2,
        0x1_0000..0x100_0000 => 3,
        _ => 4,
    }
}

/// The number of a code of gb18030's four bytes.
pub(crate) fn linear_number(code: u32) -> u32 {
    let [a, b, c, d] = code.to_be_bytes().map(u32::from);
    (((a - 0x81) * 10 + b - 0x30) * 126 + c - 0x81) * 10 + d - 0x30
}

fn in_case(c: char, pairs: &[(u32, u32)]) -> char {
    let found = pairs.binary_search_by_key(&(c as u32), |(from, _)| *from).ok();
    found.and_then(|at| char::from_u32(pairs[at].1)).unwrap_or(c)
}

/// How many bytes are in ranges.
fn size(ranges: &[(u8, u8)]) -> usize {
    ranges.iter().map(|(first, last)| usize::from(last - first) + 1).sum()
}

/// Which of the bytes in ranges this one is.
fn place(ranges: &[(u8, u8)], byte: u8) -> Option<usize> {
    let mut before = 0;
    for (first, last) in ranges {
        if (*first..=*last).contains(&byte) {
            return Some(before + usize::from(byte - first));
        }
        before += usize::from(last - first) + 1;
    }
    None
}

fn byte_at(ranges: &[(u8, u8)], mut place: usize) -> u8 {
    for (first, last) in ranges {
        let count = usize::from(last - first) + 1;
        if place < count {
            return first + place as u8;
        }
        place -= count;
    }
    0
}

macro_rules! tables {
    ($($name:ident $file:literal $shape:ident)*) => {
        $(pub(super) static $name: LazyLock<MultiByte> = LazyLock::new(|| MultiByte::load(include_bytes!(concat!("tables/", $file, ".bin")), $shape));)*
    };
}

tables! {
    BIG5 "big5" BIG5_SHAPE
    CP932 "cp932" SJIS_SHAPE
    EUCJPMS "eucjpms" UJIS_SHAPE
    EUCKR "euckr" EUCKR_SHAPE
    GB18030 "gb18030" GB18030_SHAPE
    GB2312 "gb2312" GB2312_SHAPE
    GBK "gbk" GBK_SHAPE
    SJIS "sjis" SJIS_SHAPE
    UJIS "ujis" UJIS_SHAPE
}
