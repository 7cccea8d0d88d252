//! Weights of the collations of the character sets of several bytes a character: those of a text are bytes, most often the character set's own.

use std::sync::LazyLock;

use crate::charset::{MultiByte, code_len, linear_number};

/// Which bytes a character weighs.
pub(super) struct CodeWeights {
    ascii: [u8; 128],
    others: Others,
}

/// The weights of characters beyond ASCII.
enum Others {
    /// Their codes.
    Codes,
    /// Their codes, any byte of which that is an ASCII letter counts as an upper one: MySQL compares euckr so, and shows other weights.
    Folded,
    /// Their codes; what MySQL shows are the first characters with as many strokes, by place.
    Strokes(Vec<u16>),
    /// A table by place.
    Table(Vec<u16>),
    /// The place in the order of pinyin behind all else, otherwise the code of the upper case, four bytes by their number.
    Pinyin(Pinyin),
}

/// Places in an order.
struct Pinyin {
    /// Runs of characters: the first, how many, where their places begin.
    runs: Vec<(u32, u32, usize)>,
    places: Vec<u16>,
}

pub(super) static CODES: LazyLock<CodeWeights> = LazyLock::new(|| CodeWeights { ascii: std::array::from_fn(|byte| byte as u8), others: Others::Codes });
pub(super) static FOLDED: LazyLock<CodeWeights> = LazyLock::new(|| CodeWeights { ascii: upper_ascii(), others: Others::Codes });
pub(super) static EUCKR_KOREAN: LazyLock<CodeWeights> = LazyLock::new(|| CodeWeights { ascii: upper_ascii(), others: Others::Folded });
pub(super) static GB2312_CHINESE: LazyLock<CodeWeights> =
    LazyLock::new(|| CodeWeights { ascii: *include_bytes!("tables/gb2312_chinese_ci.bin"), others: Others::Codes });
pub(super) static GBK_CHINESE: LazyLock<CodeWeights> = LazyLock::new(|| {
    let (ascii, rest) = ascii_and_words(include_bytes!("tables/gbk_chinese_ci.bin"));
    CodeWeights { ascii, others: Others::Table(rest) }
});
pub(super) static BIG5_CHINESE: LazyLock<CodeWeights> = LazyLock::new(|| {
    let (ascii, rest) = ascii_and_words(include_bytes!("tables/big5_chinese_ci.bin"));
    let strokes = rest.chunks_exact(2).flat_map(|run| std::iter::repeat_n(run[1], usize::from(run[0]))).collect();
    CodeWeights { ascii, others: Others::Strokes(strokes) }
});
pub(super) static GB18030_CHINESE: LazyLock<CodeWeights> =
    LazyLock::new(|| CodeWeights { ascii: upper_ascii(), others: Others::Pinyin(Pinyin::load(include_bytes!("tables/gb18030_chinese_ci.bin"))) });

/// What gb18030 puts before a place in the order of pinyin, and before the number of four bytes.
const PINYIN: u32 = 0xFFA0_0000;
const FOUR_BYTES: u32 = 0xFF00_0000;

impl CodeWeights {
    /// What a character weighs, as a big-endian number.
    pub(super) fn weight(&self, table: &MultiByte, c: char) -> u32 {
        let code = table.code_of(c).unwrap_or(u32::from(b'?'));
        if code < 0x80 {
            return u32::from(self.ascii[code as usize]);
        }
        match &self.others {
            Others::Codes | Others::Folded | Others::Strokes(_) => code,
            Others::Table(weights) => table.place(code).map_or(code, |place| u32::from(weights[place])),
            Others::Pinyin(pinyin) => match pinyin.place(c as u32) {
                Some(place) => PINYIN + u32::from(place),
                None => match table.code_of(table.upper(c)) {
                    Some(upper @ 0x100_0000..) => FOUR_BYTES + linear_number(upper),
                    upper => upper.unwrap_or(code),
                },
            },
        }
    }

    /// What WEIGHT_STRING shows of a character.
    fn shown(&self, table: &MultiByte, c: char) -> u32 {
        match (&self.others, table.code_of(c)) {
            (Others::Strokes(strokes), Some(code @ 0x100..)) => table.place(code).map_or(code, |place| u32::from(strokes[place])),
            _ => self.weight(table, c),
        }
    }

    /// The weight of an ASCII byte.
    pub(super) fn ascii(&self, byte: u8) -> u8 {
        self.ascii[usize::from(byte & 0x7F)]
    }

    /// The bytes that a text is compared by.
    pub(super) fn bytes<'a>(&'a self, table: &'static MultiByte, text: &'a [u8]) -> WeightBytes<'a> {
        WeightBytes { weights: self, table, rest: text, current: [0; 4], next: 4 }
    }

    /// WEIGHT_STRING()'s bytes.
    pub(super) fn weight_string(&self, table: &MultiByte, text: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(text.len());
        for c in super::chars(text) {
            let weight = self.shown(table, char::from_u32(c).unwrap_or('?'));
            out.extend_from_slice(&weight.to_be_bytes()[4 - code_len(weight)..]);
        }
        out
    }
}

impl Pinyin {
    /// From what `tools/record_multi_byte.py` wrote.
    fn load(file: &[u8]) -> Pinyin {
        let words = words(file);
        let (runs, places) = words[1..].split_at(2 * usize::from(words[0]));
        let (mut end, mut at) = (0, 0);
        let mut all = Vec::with_capacity(runs.len() / 2);
        for run in runs.chunks_exact(2) {
            let (first, count) = (end + u32::from(run[0]), u32::from(run[1]));
            all.push((first, count, at));
            (end, at) = (first + count, at + usize::from(run[1]));
        }
        Pinyin { runs: all, places: places.to_vec() }
    }

    fn place(&self, c: u32) -> Option<u16> {
        let (first, count, at) = *self.runs.get(self.runs.partition_point(|(first, ..)| *first <= c).checked_sub(1)?)?;
        let behind = c - first;
        if behind >= count {
            return None;
        }
        Some(self.places[at + behind as usize]).filter(|place| *place != 0)
    }
}

/// The weights of a text, byte by byte.
pub(super) struct WeightBytes<'a> {
    weights: &'a CodeWeights,
    table: &'static MultiByte,
    rest: &'a [u8],
    current: [u8; 4],
    next: usize,
}

impl Iterator for WeightBytes<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        if self.next == 4 {
            let lead = *self.rest.first()?;
            if lead < 0x80 {
                self.rest = &self.rest[1..];
                return Some(self.weights.ascii(lead));
            }
            let (c, length) = super::decode(self.rest);
            self.rest = &self.rest[length..];
            let weight = self.weights.weight(self.table, char::from_u32(c).unwrap_or('?'));
            self.current = weight.to_be_bytes();
            self.next = 4 - code_len(weight);
        }
        let byte = self.current[self.next];
        self.next += 1;
        Some(if let Others::Folded = self.weights.others { byte.to_ascii_uppercase() } else { byte })
    }
}

fn upper_ascii() -> [u8; 128] {
    std::array::from_fn(|byte| (byte as u8).to_ascii_uppercase())
}

fn words(file: &[u8]) -> Vec<u16> {
    file.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect()
}

/// The weights of ASCII, and the words behind them.
fn ascii_and_words(file: &[u8]) -> ([u8; 128], Vec<u16>) {
    let mut ascii = [0; 128];
    ascii.copy_from_slice(&file[..128]);
    (ascii, words(&file[128..]))
}
