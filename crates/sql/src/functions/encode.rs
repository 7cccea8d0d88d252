//! FORMAT, HEX, BASE64.

use highkey_types::{Level, TypeKind, Value, errors};

use super::FuncId;
use super::call::{Result, Types};
use super::string::encoded;
use crate::expr::EvalContext;
use crate::expr::convert::{to_bytes, to_decimal, to_f64, to_i64, to_text};

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(super) fn function(func: FuncId, args: &[Value], types: &Types<'_>, cx: &mut dyn EvalContext) -> Result<Value> {
    use FuncId as F;
    Ok(match func {
        F::Hex => match &args[0] {
            Value::Int(_) | Value::UInt(_) | Value::Double(_) | Value::Float(_) | Value::Decimal(_) => {
                // What is no integer becomes a signed one.
                let n = to_i64(&args[0], cx).unwrap_or(0) as u64;
                Value::from(format!("{n:X}"))
            }
            value => Value::from(hex(&encoded(value, types.arg(0)))),
        },
        F::Unhex => {
            let text = to_bytes(&args[0]).unwrap_or_default();
            unhex(&text).map_or(Value::Null, Value::Bytes)
        }
        F::ToBase64 => Value::from(to_base64(&encoded(&args[0], types.arg(0)))),
        F::FromBase64 => from_base64(&to_bytes(&args[0]).unwrap_or_default(), false).map_or(Value::Null, Value::Bytes),
        _ => format_number(args, types, cx),
    })
}

pub(super) fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        for nibble in [byte >> 4, byte & 15] {
            out.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0').to_ascii_uppercase());
        }
    }
    out
}

fn unhex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |b: u8| (b as char).to_digit(16).map(|d| d as u8);
    let mut digits = text.iter().map(|b| digit(*b)).collect::<Option<Vec<u8>>>()?;
    if digits.len() % 2 == 1 {
        digits.insert(0, 0);
    }
    Some(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// Lines of 76 characters, as MySQL breaks them.
pub(crate) fn to_base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() / 3 * 4 + bytes.len() / 57 + 4);
    let mut column = 0;
    for chunk in bytes.chunks(3) {
        if column == 76 {
            out.push('\n');
            column = 0;
        }
        let group = chunk.iter().fold(0u32, |n, b| n << 8 | u32::from(*b)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            out.push(if i <= chunk.len() { BASE64[(group >> (18 - 6 * i) & 63) as usize] as char } else { '=' });
        }
        column += 4;
    }
    out
}

/// `several`: texts behind each other, each with its own padding. `None`: it is no base64.
pub(crate) fn from_base64(text: &[u8], several: bool) -> Option<Vec<u8>> {
    let digit = |b: u8| match b {
        b'A'..=b'Z' => Some(b - b'A'),
        b'a'..=b'z' => Some(b - b'a' + 26),
        b'0'..=b'9' => Some(b - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let significant: Vec<u8> = text.iter().copied().filter(|b| !b.is_ascii_whitespace()).collect();
    if significant.len() % 4 != 0 {
        return None;
    }
    let mut out = Vec::with_capacity(significant.len() / 4 * 3);
    let groups = significant.len() / 4;
    for (i, chunk) in significant.chunks(4).enumerate() {
        let padding = chunk.iter().rev().take_while(|b| **b == b'=').count();
        if padding > 2 || (padding > 0 && i + 1 != groups && !several) {
            return None;
        }
        let mut group = 0u32;
        for b in &chunk[..4 - padding] {
            group = group << 6 | u32::from(digit(*b)?);
        }
        group <<= 6 * padding;
        out.extend_from_slice(&group.to_be_bytes()[1..4 - padding]);
    }
    Some(out)
}

/// How numbers look in some locales.
struct Separators {
    /// Between groups of digits, from the point on of three.
    group: &'static str,
    point: &'static str,
    /// The groups behind the first have two digits.
    pairs: bool,
    locales: &'static str,
}

/// MySQL's locales; the first is what others count as.
const LOCALES: &[Separators] = &[
    Separators {
        group: ",",
        point: ".",
        pairs: false,
        locales: "en_US ar_AE ar_BH ar_DZ ar_EG ar_IN ar_IQ ar_JO ar_KW ar_LB ar_LY ar_MA ar_OM ar_QA ar_SD ar_SY ar_TN ar_YE en_AU en_CA en_GB en_NZ en_PH en_ZA en_ZW es_US gu_IN he_IL hi_IN ja_JP ko_KR ms_MY th_TH ur_PK zh_CN zh_HK zh_TW",
    },
    Separators { group: "", point: ".", pairs: false, locales: "ar_SA es_CR es_DO es_GT es_HN es_MX es_NI es_PA es_PE es_PR es_SV sr_RS" },
    Separators {
        group: ".",
        point: ",",
        pairs: false,
        locales: "be_BY da_DK de_BE de_DE de_LU es_AR fo_FO hu_HU id_ID is_IS lt_LT mn_MN nb_NO no_NO ro_RO ru_UA sq_AL tr_TR uk_UA vi_VN",
    },
    Separators { group: "\0", point: ",", pairs: false, locales: "bg_BG" },
    Separators {
        group: "",
        point: ",",
        pairs: false,
        locales: "ca_ES de_AT el_GR es_BO es_CL es_CO es_EC es_ES es_PY es_UY es_VE eu_ES fr_BE fr_CA fr_CH fr_FR fr_LU gl_ES hr_HR it_IT nl_BE nl_NL pl_PL pt_BR pt_PT sl_SI",
    },
    Separators { group: " ", point: ",", pairs: false, locales: "cs_CZ et_EE fi_FI lv_LV mk_MK ru_RU sk_SK sv_FI sv_SE" },
    Separators { group: "'", point: ".", pairs: false, locales: "de_CH" },
    Separators { group: "'", point: ",", pairs: false, locales: "it_CH rm_CH" },
    Separators { group: ",", point: ".", pairs: true, locales: "en_IN ta_IN te_IN" },
];

/// Those of a locale; a name that is none is en_US with warning 1649.
fn separators(locale: &Value, cx: &mut dyn EvalContext) -> &'static Separators {
    let name = to_text(locale).unwrap_or("NULL".into());
    let known = LOCALES.iter().find(|s| s.locales.split(' ').any(|known| known.eq_ignore_ascii_case(&name)));
    known.unwrap_or_else(|| {
        cx.warn(errors::unknown_locale(&name).into_warning(Level::Warning));
        &LOCALES[0]
    })
}

/// FORMAT(number, digits): rounded, with commas between thousands.
fn format_number(args: &[Value], types: &Types<'_>, cx: &mut dyn EvalContext) -> Value {
    if args[0].is_null() || args[1].is_null() {
        return Value::Null;
    }
    let digits = to_i64(&args[1], cx).unwrap_or(0).clamp(0, 30) as i32;
    let exact = matches!(types.arg(0).ty.kind, TypeKind::Decimal { .. }) || types.arg(0).ty.is_integer() || matches!(args[0], Value::Decimal(_) | Value::Int(_) | Value::UInt(_));
    let text = if exact {
        let Some(d) = to_decimal(&args[0], cx) else { return Value::Null };
        let rounded = d.round(digits);
        rounded.rescale(digits as u8).unwrap_or(rounded).to_string()
    } else {
        let n = to_f64(&args[0], cx).unwrap_or(0.0);
        let scaled = n * 10f64.powi(digits);
        let rounded = if scaled.is_finite() { scaled.round_ties_even() / 10f64.powi(digits) } else { n };
        highkey_types::double_to_fixed(rounded, digits as usize)
    };
    let (sign, number) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.as_str()),
    };
    let (int, fraction) = number.split_once('.').unwrap_or((number, ""));
    let Separators { group, point, pairs, .. } = args.get(2).map_or(&LOCALES[0], |locale| separators(locale, cx));
    let mut out = String::from(sign);
    for (i, c) in int.chars().enumerate() {
        let behind = int.len() - i;
        let at_end = if *pairs { behind == 3 || (behind > 3 && behind % 2 == 1) } else { behind % 3 == 0 };
        if i > 0 && at_end {
            out.push_str(group);
        }
        out.push(c);
    }
    if !fraction.is_empty() {
        out.push_str(point);
        out.push_str(fraction);
    }
    Value::from(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_round_trip() {
        for text in ["", "a", "ab", "abc", &"x".repeat(200)] {
            assert_eq!(from_base64(to_base64(text.as_bytes()).as_bytes(), false).unwrap(), text.as_bytes());
        }
        assert_eq!(to_base64(b"abc"), "YWJj");
        assert!(from_base64(b"abc", false).is_none());
        assert_eq!(from_base64(b"YWJj\nZA==\nZWY=\n", true).as_deref(), Some(&b"abcdef"[..]));
        assert!(from_base64(b"ZA==ZWY=", false).is_none());
        for wrong in ["YWJ", "YW=j", "====", "ä"] {
            assert!(from_base64(wrong.as_bytes(), true).is_none(), "{wrong}");
        }
    }
}
