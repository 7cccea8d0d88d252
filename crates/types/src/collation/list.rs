//! The collations that there are. Of MySQL's others, whose weights depend on neighbours or that write several weights for a byte, none is known here:
//! their names are error 1273.

use std::sync::LazyLock;

use super::codes::{BIG5_CHINESE, CODES, EUCKR_KOREAN, FOLDED, GB18030_CHINESE, GB2312_CHINESE, GBK_CHINESE};
use super::unicode::{
    ESPERANTO, ESTONIAN, GENERAL, GERMAN2, HUNGARIAN, ICELANDIC, LATVIAN, PERSIAN, POLISH, ROMAN, ROMANIAN, SECONDARY_0900, SINHALA, SLOVENIAN, SPANISH, SWEDISH,
    TERTIARY_0900, TURKISH, UCA_0400, UCA_0520, UCA_0900, UnicodeWeights, VIETNAMESE,
};
use super::{Collation, Rule};
use crate::Charset;

const fn collation(id: u16, name: &'static str, charset: Charset, pad_space: bool, is_default: bool, rule: Rule) -> Collation {
    Collation { id, name, charset, pad_space, is_default, rule }
}

macro_rules! weights {
    ($name:literal) => {
        Rule::SingleByte(include_bytes!(concat!("tables/", $name, ".bin")))
    };
}

static BYTES: [u8; 256] = {
    let mut weights = [0; 256];
    let mut byte = 0;
    while byte < weights.len() {
        weights[byte] = byte as u8;
        byte += 1;
    }
    weights
};

/// `_bin`: a byte weighs what it is.
const IDENTITY: Rule = Rule::SingleByte(&BYTES);

static ACCENTS: [&LazyLock<UnicodeWeights>; 2] = [&UCA_0900, &SECONDARY_0900];
static ACCENTS_AND_CASE: [&LazyLock<UnicodeWeights>; 3] = [&UCA_0900, &SECONDARY_0900, &TERTIARY_0900];

/// Every collation, by name.
pub(super) static ALL: [Collation; 187] = [
    collation(64, "armscii8_bin", Charset::Armscii8, true, false, IDENTITY),
    collation(32, "armscii8_general_ci", Charset::Armscii8, true, true, weights!("armscii8_general_ci")),
    collation(65, "ascii_bin", Charset::Ascii, true, false, IDENTITY),
    collation(11, "ascii_general_ci", Charset::Ascii, true, true, weights!("ascii_general_ci")),
    collation(84, "big5_bin", Charset::Big5, true, false, Rule::Codes(&CODES)),
    collation(1, "big5_chinese_ci", Charset::Big5, true, true, Rule::Codes(&BIG5_CHINESE)),
    collation(63, "binary", Charset::Binary, false, true, Rule::Bytes),
    collation(66, "cp1250_bin", Charset::Cp1250, true, false, IDENTITY),
    collation(44, "cp1250_croatian_ci", Charset::Cp1250, true, false, weights!("cp1250_croatian_ci")),
    collation(26, "cp1250_general_ci", Charset::Cp1250, true, true, weights!("cp1250_general_ci")),
    collation(99, "cp1250_polish_ci", Charset::Cp1250, true, false, weights!("cp1250_polish_ci")),
    collation(50, "cp1251_bin", Charset::Cp1251, true, false, IDENTITY),
    collation(14, "cp1251_bulgarian_ci", Charset::Cp1251, true, false, weights!("cp1251_bulgarian_ci")),
    collation(51, "cp1251_general_ci", Charset::Cp1251, true, true, weights!("cp1251_general_ci")),
    collation(52, "cp1251_general_cs", Charset::Cp1251, true, false, weights!("cp1251_general_cs")),
    collation(23, "cp1251_ukrainian_ci", Charset::Cp1251, true, false, weights!("cp1251_ukrainian_ci")),
    collation(67, "cp1256_bin", Charset::Cp1256, true, false, IDENTITY),
    collation(57, "cp1256_general_ci", Charset::Cp1256, true, true, weights!("cp1256_general_ci")),
    collation(58, "cp1257_bin", Charset::Cp1257, true, false, IDENTITY),
    collation(59, "cp1257_general_ci", Charset::Cp1257, true, true, weights!("cp1257_general_ci")),
    collation(29, "cp1257_lithuanian_ci", Charset::Cp1257, true, false, weights!("cp1257_lithuanian_ci")),
    collation(80, "cp850_bin", Charset::Cp850, true, false, IDENTITY),
    collation(4, "cp850_general_ci", Charset::Cp850, true, true, weights!("cp850_general_ci")),
    collation(81, "cp852_bin", Charset::Cp852, true, false, IDENTITY),
    collation(40, "cp852_general_ci", Charset::Cp852, true, true, weights!("cp852_general_ci")),
    collation(68, "cp866_bin", Charset::Cp866, true, false, IDENTITY),
    collation(36, "cp866_general_ci", Charset::Cp866, true, true, weights!("cp866_general_ci")),
    collation(96, "cp932_bin", Charset::Cp932, true, false, Rule::Codes(&CODES)),
    collation(95, "cp932_japanese_ci", Charset::Cp932, true, true, Rule::Codes(&FOLDED)),
    collation(69, "dec8_bin", Charset::Dec8, true, false, IDENTITY),
    collation(3, "dec8_swedish_ci", Charset::Dec8, true, true, weights!("dec8_swedish_ci")),
    collation(98, "eucjpms_bin", Charset::Eucjpms, true, false, Rule::Codes(&CODES)),
    collation(97, "eucjpms_japanese_ci", Charset::Eucjpms, true, true, Rule::Codes(&FOLDED)),
    collation(85, "euckr_bin", Charset::Euckr, true, false, Rule::Codes(&CODES)),
    collation(19, "euckr_korean_ci", Charset::Euckr, true, true, Rule::Codes(&EUCKR_KOREAN)),
    collation(249, "gb18030_bin", Charset::Gb18030, true, false, Rule::Codes(&CODES)),
    collation(248, "gb18030_chinese_ci", Charset::Gb18030, true, true, Rule::Codes(&GB18030_CHINESE)),
    collation(250, "gb18030_unicode_520_ci", Charset::Gb18030, true, false, Rule::Unicode(&UCA_0520)),
    collation(86, "gb2312_bin", Charset::Gb2312, true, false, Rule::Codes(&CODES)),
    collation(24, "gb2312_chinese_ci", Charset::Gb2312, true, true, Rule::Codes(&GB2312_CHINESE)),
    collation(87, "gbk_bin", Charset::Gbk, true, false, Rule::Codes(&CODES)),
    collation(28, "gbk_chinese_ci", Charset::Gbk, true, true, Rule::Codes(&GBK_CHINESE)),
    collation(93, "geostd8_bin", Charset::Geostd8, true, false, IDENTITY),
    collation(92, "geostd8_general_ci", Charset::Geostd8, true, true, weights!("geostd8_general_ci")),
    collation(70, "greek_bin", Charset::Greek, true, false, IDENTITY),
    collation(25, "greek_general_ci", Charset::Greek, true, true, weights!("greek_general_ci")),
    collation(71, "hebrew_bin", Charset::Hebrew, true, false, IDENTITY),
    collation(16, "hebrew_general_ci", Charset::Hebrew, true, true, weights!("hebrew_general_ci")),
    collation(72, "hp8_bin", Charset::Hp8, true, false, IDENTITY),
    collation(6, "hp8_english_ci", Charset::Hp8, true, true, weights!("hp8_english_ci")),
    collation(73, "keybcs2_bin", Charset::Keybcs2, true, false, IDENTITY),
    collation(37, "keybcs2_general_ci", Charset::Keybcs2, true, true, weights!("keybcs2_general_ci")),
    collation(74, "koi8r_bin", Charset::Koi8r, true, false, IDENTITY),
    collation(7, "koi8r_general_ci", Charset::Koi8r, true, true, weights!("koi8r_general_ci")),
    collation(75, "koi8u_bin", Charset::Koi8u, true, false, IDENTITY),
    collation(22, "koi8u_general_ci", Charset::Koi8u, true, true, weights!("koi8u_general_ci")),
    collation(47, "latin1_bin", Charset::Latin1, true, false, IDENTITY),
    collation(15, "latin1_danish_ci", Charset::Latin1, true, false, weights!("latin1_danish_ci")),
    collation(48, "latin1_general_ci", Charset::Latin1, true, false, weights!("latin1_general_ci")),
    collation(49, "latin1_general_cs", Charset::Latin1, true, false, weights!("latin1_general_cs")),
    collation(5, "latin1_german1_ci", Charset::Latin1, true, false, weights!("latin1_german1_ci")),
    collation(94, "latin1_spanish_ci", Charset::Latin1, true, false, weights!("latin1_spanish_ci")),
    collation(8, "latin1_swedish_ci", Charset::Latin1, true, true, weights!("latin1_swedish_ci")),
    collation(77, "latin2_bin", Charset::Latin2, true, false, IDENTITY),
    collation(27, "latin2_croatian_ci", Charset::Latin2, true, false, weights!("latin2_croatian_ci")),
    collation(9, "latin2_general_ci", Charset::Latin2, true, true, weights!("latin2_general_ci")),
    collation(21, "latin2_hungarian_ci", Charset::Latin2, true, false, weights!("latin2_hungarian_ci")),
    collation(78, "latin5_bin", Charset::Latin5, true, false, IDENTITY),
    collation(30, "latin5_turkish_ci", Charset::Latin5, true, true, weights!("latin5_turkish_ci")),
    collation(79, "latin7_bin", Charset::Latin7, true, false, IDENTITY),
    collation(20, "latin7_estonian_cs", Charset::Latin7, true, false, weights!("latin7_estonian_cs")),
    collation(41, "latin7_general_ci", Charset::Latin7, true, true, weights!("latin7_general_ci")),
    collation(42, "latin7_general_cs", Charset::Latin7, true, false, weights!("latin7_general_cs")),
    collation(43, "macce_bin", Charset::Macce, true, false, IDENTITY),
    collation(38, "macce_general_ci", Charset::Macce, true, true, weights!("macce_general_ci")),
    collation(53, "macroman_bin", Charset::Macroman, true, false, IDENTITY),
    collation(39, "macroman_general_ci", Charset::Macroman, true, true, weights!("macroman_general_ci")),
    collation(88, "sjis_bin", Charset::Sjis, true, false, Rule::Codes(&CODES)),
    collation(13, "sjis_japanese_ci", Charset::Sjis, true, true, Rule::Codes(&FOLDED)),
    collation(90, "ucs2_bin", Charset::Ucs2, true, false, Rule::CodePoints),
    collation(145, "ucs2_esperanto_ci", Charset::Ucs2, true, false, Rule::Unicode(&ESPERANTO)),
    collation(134, "ucs2_estonian_ci", Charset::Ucs2, true, false, Rule::Unicode(&ESTONIAN)),
    collation(35, "ucs2_general_ci", Charset::Ucs2, true, true, Rule::Unicode(&GENERAL)),
    collation(148, "ucs2_german2_ci", Charset::Ucs2, true, false, Rule::Unicode(&GERMAN2)),
    collation(146, "ucs2_hungarian_ci", Charset::Ucs2, true, false, Rule::Unicode(&HUNGARIAN)),
    collation(129, "ucs2_icelandic_ci", Charset::Ucs2, true, false, Rule::Unicode(&ICELANDIC)),
    collation(130, "ucs2_latvian_ci", Charset::Ucs2, true, false, Rule::Unicode(&LATVIAN)),
    collation(144, "ucs2_persian_ci", Charset::Ucs2, true, false, Rule::Unicode(&PERSIAN)),
    collation(133, "ucs2_polish_ci", Charset::Ucs2, true, false, Rule::Unicode(&POLISH)),
    collation(143, "ucs2_roman_ci", Charset::Ucs2, true, false, Rule::Unicode(&ROMAN)),
    collation(131, "ucs2_romanian_ci", Charset::Ucs2, true, false, Rule::Unicode(&ROMANIAN)),
    collation(147, "ucs2_sinhala_ci", Charset::Ucs2, true, false, Rule::Unicode(&SINHALA)),
    collation(132, "ucs2_slovenian_ci", Charset::Ucs2, true, false, Rule::Unicode(&SLOVENIAN)),
    collation(135, "ucs2_spanish_ci", Charset::Ucs2, true, false, Rule::Unicode(&SPANISH)),
    collation(136, "ucs2_swedish_ci", Charset::Ucs2, true, false, Rule::Unicode(&SWEDISH)),
    collation(137, "ucs2_turkish_ci", Charset::Ucs2, true, false, Rule::Unicode(&TURKISH)),
    collation(150, "ucs2_unicode_520_ci", Charset::Ucs2, true, false, Rule::Unicode(&UCA_0520)),
    collation(128, "ucs2_unicode_ci", Charset::Ucs2, true, false, Rule::Unicode(&UCA_0400)),
    collation(151, "ucs2_vietnamese_ci", Charset::Ucs2, true, false, Rule::Unicode(&VIETNAMESE)),
    collation(91, "ujis_bin", Charset::Ujis, true, false, Rule::Codes(&CODES)),
    collation(12, "ujis_japanese_ci", Charset::Ujis, true, true, Rule::Codes(&FOLDED)),
    collation(55, "utf16_bin", Charset::Utf16, true, false, Rule::CodePoints),
    collation(118, "utf16_esperanto_ci", Charset::Utf16, true, false, Rule::Unicode(&ESPERANTO)),
    collation(107, "utf16_estonian_ci", Charset::Utf16, true, false, Rule::Unicode(&ESTONIAN)),
    collation(54, "utf16_general_ci", Charset::Utf16, true, true, Rule::Unicode(&GENERAL)),
    collation(121, "utf16_german2_ci", Charset::Utf16, true, false, Rule::Unicode(&GERMAN2)),
    collation(119, "utf16_hungarian_ci", Charset::Utf16, true, false, Rule::Unicode(&HUNGARIAN)),
    collation(102, "utf16_icelandic_ci", Charset::Utf16, true, false, Rule::Unicode(&ICELANDIC)),
    collation(103, "utf16_latvian_ci", Charset::Utf16, true, false, Rule::Unicode(&LATVIAN)),
    collation(117, "utf16_persian_ci", Charset::Utf16, true, false, Rule::Unicode(&PERSIAN)),
    collation(106, "utf16_polish_ci", Charset::Utf16, true, false, Rule::Unicode(&POLISH)),
    collation(116, "utf16_roman_ci", Charset::Utf16, true, false, Rule::Unicode(&ROMAN)),
    collation(104, "utf16_romanian_ci", Charset::Utf16, true, false, Rule::Unicode(&ROMANIAN)),
    collation(120, "utf16_sinhala_ci", Charset::Utf16, true, false, Rule::Unicode(&SINHALA)),
    collation(105, "utf16_slovenian_ci", Charset::Utf16, true, false, Rule::Unicode(&SLOVENIAN)),
    collation(108, "utf16_spanish_ci", Charset::Utf16, true, false, Rule::Unicode(&SPANISH)),
    collation(109, "utf16_swedish_ci", Charset::Utf16, true, false, Rule::Unicode(&SWEDISH)),
    collation(110, "utf16_turkish_ci", Charset::Utf16, true, false, Rule::Unicode(&TURKISH)),
    collation(123, "utf16_unicode_520_ci", Charset::Utf16, true, false, Rule::Unicode(&UCA_0520)),
    collation(101, "utf16_unicode_ci", Charset::Utf16, true, false, Rule::Unicode(&UCA_0400)),
    collation(124, "utf16_vietnamese_ci", Charset::Utf16, true, false, Rule::Unicode(&VIETNAMESE)),
    collation(62, "utf16le_bin", Charset::Utf16le, true, false, Rule::CodePoints),
    collation(56, "utf16le_general_ci", Charset::Utf16le, true, true, Rule::Unicode(&GENERAL)),
    collation(61, "utf32_bin", Charset::Utf32, true, false, Rule::CodePoints),
    collation(177, "utf32_esperanto_ci", Charset::Utf32, true, false, Rule::Unicode(&ESPERANTO)),
    collation(166, "utf32_estonian_ci", Charset::Utf32, true, false, Rule::Unicode(&ESTONIAN)),
    collation(60, "utf32_general_ci", Charset::Utf32, true, true, Rule::Unicode(&GENERAL)),
    collation(180, "utf32_german2_ci", Charset::Utf32, true, false, Rule::Unicode(&GERMAN2)),
    collation(178, "utf32_hungarian_ci", Charset::Utf32, true, false, Rule::Unicode(&HUNGARIAN)),
    collation(161, "utf32_icelandic_ci", Charset::Utf32, true, false, Rule::Unicode(&ICELANDIC)),
    collation(162, "utf32_latvian_ci", Charset::Utf32, true, false, Rule::Unicode(&LATVIAN)),
    collation(176, "utf32_persian_ci", Charset::Utf32, true, false, Rule::Unicode(&PERSIAN)),
    collation(165, "utf32_polish_ci", Charset::Utf32, true, false, Rule::Unicode(&POLISH)),
    collation(175, "utf32_roman_ci", Charset::Utf32, true, false, Rule::Unicode(&ROMAN)),
    collation(163, "utf32_romanian_ci", Charset::Utf32, true, false, Rule::Unicode(&ROMANIAN)),
    collation(179, "utf32_sinhala_ci", Charset::Utf32, true, false, Rule::Unicode(&SINHALA)),
    collation(164, "utf32_slovenian_ci", Charset::Utf32, true, false, Rule::Unicode(&SLOVENIAN)),
    collation(167, "utf32_spanish_ci", Charset::Utf32, true, false, Rule::Unicode(&SPANISH)),
    collation(168, "utf32_swedish_ci", Charset::Utf32, true, false, Rule::Unicode(&SWEDISH)),
    collation(169, "utf32_turkish_ci", Charset::Utf32, true, false, Rule::Unicode(&TURKISH)),
    collation(182, "utf32_unicode_520_ci", Charset::Utf32, true, false, Rule::Unicode(&UCA_0520)),
    collation(160, "utf32_unicode_ci", Charset::Utf32, true, false, Rule::Unicode(&UCA_0400)),
    collation(183, "utf32_vietnamese_ci", Charset::Utf32, true, false, Rule::Unicode(&VIETNAMESE)),
    collation(83, "utf8_bin", Charset::Utf8mb3, true, false, Rule::CodePoints),
    collation(209, "utf8_esperanto_ci", Charset::Utf8mb3, true, false, Rule::Unicode(&ESPERANTO)),
    collation(198, "utf8_estonian_ci", Charset::Utf8mb3, true, false, Rule::Unicode(&ESTONIAN)),
    collation(33, "utf8_general_ci", Charset::Utf8mb3, true, true, Rule::Unicode(&GENERAL)),
    collation(212, "utf8_german2_ci", Charset::Utf8mb3, true, false, Rule::Unicode(&GERMAN2)),
    collation(210, "utf8_hungarian_ci", Charset::Utf8mb3, true, false, Rule::Unicode(&HUNGARIAN)),
    collation(193, "utf8_icelandic_ci", Charset::Utf8mb3, true, false, Rule::Unicode(&ICELANDIC)),
    collation(194, "utf8_latvian_ci", Charset::Utf8mb3, true, false, Rule::Unicode(&LATVIAN)),
    collation(208, "utf8_persian_ci", Charset::Utf8mb3, true, false, Rule::Unicode(&PERSIAN)),
    collation(197, "utf8_polish_ci", Charset::Utf8mb3, true, false, Rule::Unicode(&POLISH)),
    collation(207, "utf8_roman_ci", Charset::Utf8mb3, true, false, Rule::Unicode(&ROMAN)),
    collation(195, "utf8_romanian_ci", Charset::Utf8mb3, true, false, Rule::Unicode(&ROMANIAN)),
    collation(211, "utf8_sinhala_ci", Charset::Utf8mb3, true, false, Rule::Unicode(&SINHALA)),
    collation(196, "utf8_slovenian_ci", Charset::Utf8mb3, true, false, Rule::Unicode(&SLOVENIAN)),
    collation(199, "utf8_spanish_ci", Charset::Utf8mb3, true, false, Rule::Unicode(&SPANISH)),
    collation(200, "utf8_swedish_ci", Charset::Utf8mb3, true, false, Rule::Unicode(&SWEDISH)),
    collation(201, "utf8_turkish_ci", Charset::Utf8mb3, true, false, Rule::Unicode(&TURKISH)),
    collation(214, "utf8_unicode_520_ci", Charset::Utf8mb3, true, false, Rule::Unicode(&UCA_0520)),
    collation(192, "utf8_unicode_ci", Charset::Utf8mb3, true, false, Rule::Unicode(&UCA_0400)),
    collation(215, "utf8_vietnamese_ci", Charset::Utf8mb3, true, false, Rule::Unicode(&VIETNAMESE)),
    collation(255, "utf8mb4_0900_ai_ci", Charset::Utf8mb4, false, true, Rule::Unicode(&UCA_0900)),
    collation(305, "utf8mb4_0900_as_ci", Charset::Utf8mb4, false, false, Rule::Levels(&ACCENTS)),
    collation(278, "utf8mb4_0900_as_cs", Charset::Utf8mb4, false, false, Rule::Levels(&ACCENTS_AND_CASE)),
    collation(309, "utf8mb4_0900_bin", Charset::Utf8mb4, false, false, Rule::CodePoints),
    collation(46, "utf8mb4_bin", Charset::Utf8mb4, true, false, Rule::CodePoints),
    collation(241, "utf8mb4_esperanto_ci", Charset::Utf8mb4, true, false, Rule::Unicode(&ESPERANTO)),
    collation(230, "utf8mb4_estonian_ci", Charset::Utf8mb4, true, false, Rule::Unicode(&ESTONIAN)),
    collation(45, "utf8mb4_general_ci", Charset::Utf8mb4, true, false, Rule::Unicode(&GENERAL)),
    collation(244, "utf8mb4_german2_ci", Charset::Utf8mb4, true, false, Rule::Unicode(&GERMAN2)),
    collation(242, "utf8mb4_hungarian_ci", Charset::Utf8mb4, true, false, Rule::Unicode(&HUNGARIAN)),
    collation(225, "utf8mb4_icelandic_ci", Charset::Utf8mb4, true, false, Rule::Unicode(&ICELANDIC)),
    collation(226, "utf8mb4_latvian_ci", Charset::Utf8mb4, true, false, Rule::Unicode(&LATVIAN)),
    collation(240, "utf8mb4_persian_ci", Charset::Utf8mb4, true, false, Rule::Unicode(&PERSIAN)),
    collation(229, "utf8mb4_polish_ci", Charset::Utf8mb4, true, false, Rule::Unicode(&POLISH)),
    collation(239, "utf8mb4_roman_ci", Charset::Utf8mb4, true, false, Rule::Unicode(&ROMAN)),
    collation(227, "utf8mb4_romanian_ci", Charset::Utf8mb4, true, false, Rule::Unicode(&ROMANIAN)),
    collation(243, "utf8mb4_sinhala_ci", Charset::Utf8mb4, true, false, Rule::Unicode(&SINHALA)),
    collation(228, "utf8mb4_slovenian_ci", Charset::Utf8mb4, true, false, Rule::Unicode(&SLOVENIAN)),
    collation(231, "utf8mb4_spanish_ci", Charset::Utf8mb4, true, false, Rule::Unicode(&SPANISH)),
    collation(232, "utf8mb4_swedish_ci", Charset::Utf8mb4, true, false, Rule::Unicode(&SWEDISH)),
    collation(233, "utf8mb4_turkish_ci", Charset::Utf8mb4, true, false, Rule::Unicode(&TURKISH)),
    collation(246, "utf8mb4_unicode_520_ci", Charset::Utf8mb4, true, false, Rule::Unicode(&UCA_0520)),
    collation(224, "utf8mb4_unicode_ci", Charset::Utf8mb4, true, false, Rule::Unicode(&UCA_0400)),
    collation(247, "utf8mb4_vietnamese_ci", Charset::Utf8mb4, true, false, Rule::Unicode(&VIETNAMESE)),
];

const fn with_id(id: u16) -> &'static Collation {
    let mut at = 0;
    while ALL[at].id != id {
        at += 1;
    }
    &ALL[at]
}

pub(super) static BINARY: &Collation = with_id(63);
pub(super) static UTF8MB4_0900_AI_CI: &Collation = with_id(255);
