//! Internet addresses and UUIDs.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};

use highkey_types::{MySqlError, Value};

use super::FuncId;
use super::call::Result;
use super::encode::hex;
use crate::expr::EvalContext;
use crate::expr::convert::{to_bytes, to_text, to_u64, truth, warn};

/// The last UUID's time in 100 ns: two in one moment differ.
static LAST_UUID: AtomicU64 = AtomicU64::new(0);
static LAST_SHORT: AtomicU64 = AtomicU64::new(0);

/// 1582-10-15 to 1970-01-01 in 100 ns.
const GREGORIAN: u64 = 0x01B2_1DD2_1381_4000;

pub(super) fn function(func: FuncId, args: &[Value], cx: &mut dyn EvalContext) -> Result<Value> {
    use FuncId as F;
    Ok(match func {
        F::Uuid => Value::from(uuid(cx)),
        F::UuidShort => {
            let start = (cx.now_micros() / 1_000_000) as u64;
            let _ = LAST_SHORT.compare_exchange(0, (1 << 56) | (start & 0xFFFF_FFFF) << 24, Ordering::Relaxed, Ordering::Relaxed);
            Value::UInt(LAST_SHORT.fetch_add(1, Ordering::Relaxed))
        }
        F::InetAton => match inet_aton(&to_text(&args[0]).unwrap_or_default()) {
            Some(n) => Value::UInt(n),
            None => {
                warn(cx, 1411, format!("Incorrect string value: '{}' for function inet_aton", to_text(&args[0]).unwrap_or_default()));
                Value::Null
            }
        },
        F::InetNtoa => match to_u64(&args[0], cx).and_then(|n| u32::try_from(n).ok()) {
            Some(n) => Value::from(Ipv4Addr::from(n).to_string()),
            None => Value::Null,
        },
        F::Inet6Aton => {
            let text = to_text(&args[0]).unwrap_or_default();
            match (text.parse::<Ipv4Addr>(), text.parse::<Ipv6Addr>()) {
                (Ok(v4), _) => Value::Bytes(v4.octets().to_vec()),
                (_, Ok(v6)) => Value::Bytes(v6.octets().to_vec()),
                _ => {
                    warn(cx, 1411, format!("Incorrect string value: '{text}' for function inet6_aton"));
                    Value::Null
                }
            }
        }
        F::Inet6Ntoa => {
            let bytes = to_bytes(&args[0]).unwrap_or_default();
            match (<[u8; 4]>::try_from(&bytes[..]), <[u8; 16]>::try_from(&bytes[..])) {
                (Ok(v4), _) => Value::from(Ipv4Addr::from(v4).to_string()),
                (_, Ok(v6)) => Value::from(Ipv6Addr::from(v6).to_string()),
                _ => Value::Null,
            }
        }
        F::IsIpv4 => Value::bool(to_text(&args[0]).is_some_and(|t| t.parse::<Ipv4Addr>().is_ok())),
        F::IsIpv6 => Value::bool(to_text(&args[0]).is_some_and(|t| t.parse::<Ipv6Addr>().is_ok())),
        F::IsIpv4Compat | F::IsIpv4Mapped => {
            let bytes = to_bytes(&args[0]).unwrap_or_default();
            let prefix: &[u8] = if func == F::IsIpv4Compat { &[0; 12] } else { &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255] };
            let matches = bytes.len() == 16 && bytes.starts_with(prefix);
            let trivial = func == F::IsIpv4Compat && matches && bytes[12..15] == [0, 0, 0] && bytes[15] <= 1;
            Value::bool(matches && !trivial)
        }
        F::IsUuid => Value::bool(parse_uuid(&to_text(&args[0]).unwrap_or_default()).is_some()),
        F::UuidToBin => {
            if args[0].is_null() {
                return Ok(Value::Null);
            }
            let text = to_text(&args[0]).unwrap_or_default();
            let bytes = parse_uuid(&text)
                .ok_or_else(|| MySqlError::with_message(1411, format!("Incorrect string value: '{text}' for function uuid_to_bin")))?;
            let swapped = args.get(1).is_some_and(|a| truth(a, cx) == Some(true));
            Value::Bytes(if swapped { [&bytes[6..8], &bytes[4..6], &bytes[..4], &bytes[8..]].concat() } else { bytes.to_vec() })
        }
        _ => {
            let Some(bytes) = to_bytes(&args[0]) else { return Ok(Value::Null) };
            if bytes.len() != 16 {
                let shown = String::from_utf8_lossy(&bytes).into_owned();
                return Err(MySqlError::with_message(1411, format!("Incorrect string value: '{shown}' for function bin_to_uuid")));
            }
            let swapped = args.get(1).is_some_and(|a| truth(a, cx) == Some(true));
            let bytes = if swapped { [&bytes[4..8], &bytes[2..4], &bytes[..2], &bytes[8..]].concat() } else { bytes.to_vec() };
            let digits = hex(&bytes).to_ascii_lowercase();
            Value::from(format!("{}-{}-{}-{}-{}", &digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]))
        }
    })
}

/// `a.b.c.d`, also with fewer parts: the last one goes to the low byte.
fn inet_aton(text: &str) -> Option<u64> {
    let parts: Vec<&str> = text.split('.').collect();
    let numbers = parts.iter().map(|p| p.parse::<u8>().ok()).collect::<Option<Vec<u8>>>()?;
    match numbers.as_slice() {
        [a] => Some(u64::from(*a)),
        [a, d] => Some(u64::from(*a) << 24 | u64::from(*d)),
        [a, b, d] => Some(u64::from(*a) << 24 | u64::from(*b) << 16 | u64::from(*d)),
        [a, b, c, d] => Some(u64::from(u32::from_be_bytes([*a, *b, *c, *d]))),
        _ => None,
    }
}

/// The three forms: with dashes, without, and in braces.
fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let inner = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')).unwrap_or(text);
    let dashed = inner.len() == 36;
    if dashed && [8, 13, 18, 23].iter().any(|i| inner.as_bytes()[*i] != b'-') || (!dashed && inner.len() != 32) || (inner.len() != text.len() && !dashed) {
        return None;
    }
    let digits: Vec<u8> = inner.bytes().filter(|b| *b != b'-').map(|b| (b as char).to_digit(16).map(|d| d as u8)).collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits.chunks(2).map(|pair| pair[0] << 4 | pair.get(1).copied().unwrap_or(0)).collect();
    bytes.try_into().ok()
}

/// A version 1 UUID.
fn uuid(cx: &mut dyn EvalContext) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| (d.as_nanos() / 100) as u64) + GREGORIAN;
    let last = LAST_UUID.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(now.max(last + 1))).unwrap_or(now);
    let time = now.max(last + 1);
    let node = cx.node_id();
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{}",
        time & 0xFFFF_FFFF,
        time >> 32 & 0xFFFF,
        time >> 48 & 0x0FFF | 0x1000,
        0x8000 | u16::from_be_bytes([node[4], node[5]]) & 0x3FFF,
        hex(&node).to_ascii_lowercase()
    )
}
