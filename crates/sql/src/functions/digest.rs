//! MD5, SHA1, SHA2 and random bytes; the digests of statements.

use highkey_types::{MySqlError, Value};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use super::FuncId;
use super::call::{Result, Types};
use super::encode::hex;
use super::string::encoded;
use crate::expr::EvalContext;
use crate::expr::convert::{to_i64, to_str};
use crate::parse;
use crate::session::digest_hash;

fn digest<D: Digest>(bytes: &[u8]) -> Value {
    Value::from(hex(&D::digest(bytes)).to_ascii_lowercase())
}

pub(super) fn function(func: FuncId, args: &[Value], types: &Types<'_>, cx: &mut dyn EvalContext) -> Result<Value> {
    if func == FuncId::RandomBytes {
        let length = to_i64(&args[0], cx).unwrap_or(0);
        if !(1..=1024).contains(&length) {
            return Err(MySqlError::with_message(1690, "length value is out of range in 'random_bytes'"));
        }
        return Ok(Value::Bytes((0..length).map(|_| rand::random::<u8>()).collect()));
    }
    if func == FuncId::ValidatePasswordStrength {
        // There are no rules that a password could meet.
        return Ok(Value::Int(0));
    }
    if let FuncId::StatementDigest | FuncId::StatementDigestText = func {
        let Some(statement) = to_str(&args[0]) else { return Ok(Value::Null) };
        let parsed = parse::parse_single(&statement, cx.parse_options())
            .map_err(|e| MySqlError::with_message(3676, format!("Could not parse argument to digest function: \"{}\".", e.message)))?;
        return Ok(Value::text(if func == FuncId::StatementDigest { digest_hash(&parsed.digest) } else { parsed.digest.into() }));
    }
    let bytes = encoded(&args[0], types.arg(0));
    Ok(match func {
        FuncId::Md5 => digest::<Md5>(&bytes),
        FuncId::Sha1 => digest::<Sha1>(&bytes),
        _ => match to_i64(&args[1], cx) {
            Some(224) => digest::<Sha224>(&bytes),
            Some(0 | 256) => digest::<Sha256>(&bytes),
            Some(384) => digest::<Sha384>(&bytes),
            Some(512) => digest::<Sha512>(&bytes),
            _ => Value::Null,
        },
    })
}
