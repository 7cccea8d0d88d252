//! COMPRESS and its inverse: zlib behind four bytes that tell the length.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use highkey_types::{Value, errors};

use super::FuncId;
use super::call::{Result, Types};
use super::string::encoded;
use crate::expr::EvalContext;
use crate::expr::convert::warn;

/// Of the four bytes the length has 30 bits.
const LENGTH: u32 = (1 << 30) - 1;

pub(super) fn function(func: FuncId, args: &[Value], types: &Types<'_>, cx: &mut dyn EvalContext) -> Result<Value> {
    let bytes = encoded(&args[0], types.arg(0));
    let (answer, without) = match func {
        FuncId::Compress => return Ok(Value::Bytes(compress(&bytes))),
        FuncId::UncompressedLength => (length(&bytes).map(|length| Value::Int(i64::from(length))), Value::Int(0)),
        _ => (uncompress(&bytes, cx.max_allowed_packet()).map(Value::Bytes), Value::Null),
    };
    Ok(answer.unwrap_or_else(|error| {
        warn(cx, error.code, error.message);
        without
    }))
}

fn compress(bytes: &[u8]) -> Vec<u8> {
    if bytes.is_empty() {
        return Vec::new();
    }
    let length = (bytes.len() as u32 & LENGTH).to_le_bytes();
    let mut encoder = ZlibEncoder::new(length.to_vec(), Compression::default());
    encoder.write_all(bytes).expect("memory takes all of it");
    let mut out = encoder.finish().expect("memory takes all of it");
    if out.last() == Some(&b' ') {
        // CHAR would lose the space.
        out.push(b'.');
    }
    out
}

/// What the length bytes say. Error 1259 for fewer bytes than that.
fn length(bytes: &[u8]) -> Result<u32> {
    match bytes {
        [] => Ok(0),
        [a, b, c, d, _, ..] => Ok(u32::from_le_bytes([*a, *b, *c, *d]) & LENGTH),
        _ => Err(errors::zlib_z_data_error()),
    }
}

/// Errors 1256, 1258 and 1259 for what COMPRESS has not made.
fn uncompress(bytes: &[u8], limit: usize) -> Result<Vec<u8>> {
    let length = length(bytes)? as usize;
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    if length > limit {
        return Err(errors::too_big_for_uncompress(limit));
    }
    let mut out = Vec::new();
    // One byte more tells that there are too many.
    let mut decoder = ZlibDecoder::new(&bytes[4..]).take(length as u64 + 1);
    decoder.read_to_end(&mut out).map_err(|_| errors::zlib_z_data_error())?;
    if out.len() > length { Err(errors::zlib_z_buf_error()) } else { Ok(out) }
}
