//! AES_ENCRYPT and AES_DECRYPT: the block cipher in the modes of block_encryption_mode.

use ::aes::cipher::{BlockDecrypt, BlockEncrypt, KeyInit};
use ::aes::{Aes128, Aes192, Aes256, Block};
use highkey_types::{Level, Value, errors};

use super::FuncId;
use super::call::{Result, Types};
use super::string::encoded;
use crate::expr::EvalContext;
use crate::expr::convert::to_text;

/// Bytes of a block, whatever the key's length is; also those of the vector that most modes begin with.
const BLOCK: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Ecb,
    Cbc,
    /// Feedback of one bit.
    Cfb1,
    /// Feedback of one byte.
    Cfb8,
    /// Feedback of one block.
    Cfb128,
    Ofb,
}

enum Key {
    Aes128(Aes128),
    Aes192(Aes192),
    Aes256(Aes256),
}

impl Key {
    /// MySQL's key of `bits`: the bytes of `text` exclusive-ored over each other.
    fn new(text: &[u8], bits: usize) -> Key {
        let mut bytes = vec![0; bits / 8];
        for (i, byte) in text.iter().enumerate() {
            bytes[i % (bits / 8)] ^= byte;
        }
        let fits = "the key is as long as the cipher's";
        match bits {
            128 => Key::Aes128(Aes128::new_from_slice(&bytes).expect(fits)),
            192 => Key::Aes192(Aes192::new_from_slice(&bytes).expect(fits)),
            _ => Key::Aes256(Aes256::new_from_slice(&bytes).expect(fits)),
        }
    }

    fn encrypt(&self, block: [u8; BLOCK]) -> [u8; BLOCK] {
        let mut block = Block::from(block);
        match self {
            Key::Aes128(key) => key.encrypt_block(&mut block),
            Key::Aes192(key) => key.encrypt_block(&mut block),
            Key::Aes256(key) => key.encrypt_block(&mut block),
        }
        block.into()
    }

    fn decrypt(&self, block: [u8; BLOCK]) -> [u8; BLOCK] {
        let mut block = Block::from(block);
        match self {
            Key::Aes128(key) => key.decrypt_block(&mut block),
            Key::Aes192(key) => key.decrypt_block(&mut block),
            Key::Aes256(key) => key.decrypt_block(&mut block),
        }
        block.into()
    }
}

/// `aes-256-cbc`: bits of the key, and the mode.
fn cipher(name: &str) -> Option<(usize, Mode)> {
    let mut parts = name.split('-').skip(1);
    let bits = parts.next()?.parse().ok()?;
    let mode = match parts.next()? {
        "ecb" => Mode::Ecb,
        "cbc" => Mode::Cbc,
        "cfb1" => Mode::Cfb1,
        "cfb8" => Mode::Cfb8,
        "cfb128" => Mode::Cfb128,
        "ofb" => Mode::Ofb,
        _ => return None,
    };
    Some((bits, mode))
}

/// Errors 1582 and 1882 for a mode that needs a vector and has none, or one that is too short.
pub(super) fn function(func: FuncId, args: &[Value], types: &Types<'_>, cx: &mut dyn EvalContext) -> Result<Value> {
    if args[0].is_null() || args[1].is_null() {
        return Ok(Value::Null);
    }
    let name = func.name().to_ascii_lowercase();
    let chosen = cx.system_var(None, "block_encryption_mode")?;
    let (bits, mode) = cipher(&to_text(&chosen).unwrap_or_default()).unwrap_or((128, Mode::Ecb));
    let vector = match args.get(2) {
        Some(_) if mode == Mode::Ecb => {
            cx.warn(errors::warn_option_ignored("IV").into_warning(Level::Warning));
            [0; BLOCK]
        }
        None if mode == Mode::Ecb => [0; BLOCK],
        None => return Err(errors::wrong_paramcount_to_native_fct(name)),
        Some(vector) => encoded(vector, types.arg(2)).first_chunk().copied().ok_or_else(|| errors::aes_invalid_iv(name, BLOCK))?,
    };
    let bytes = encoded(&args[0], types.arg(0));
    let key = Key::new(&encoded(&args[1], types.arg(1)), bits);
    Ok(match func {
        FuncId::AesEncrypt => Value::Bytes(encrypt(&key, mode, vector, &bytes)),
        _ => decrypt(&key, mode, vector, &bytes).map_or(Value::Null, Value::Bytes),
    })
}

fn encrypt(key: &Key, mode: Mode, vector: [u8; BLOCK], bytes: &[u8]) -> Vec<u8> {
    match mode {
        Mode::Ecb => padded(bytes).flat_map(|block| key.encrypt(block)).collect(),
        Mode::Cbc => {
            let mut before = vector;
            let chained = padded(bytes).flat_map(|block| {
                before = key.encrypt(xor(block, before));
                before
            });
            chained.collect()
        }
        _ => stream(key, mode, vector, bytes, true),
    }
}

/// `None` for what is no encryption under this key: whole blocks of which the last ends with its padding.
fn decrypt(key: &Key, mode: Mode, vector: [u8; BLOCK], bytes: &[u8]) -> Option<Vec<u8>> {
    if !matches!(mode, Mode::Ecb | Mode::Cbc) {
        return Some(stream(key, mode, vector, bytes, false));
    }
    let (blocks, []) = bytes.as_chunks::<BLOCK>() else { return None };
    let mut out = Vec::with_capacity(bytes.len());
    let mut before = vector;
    for block in blocks {
        let plain = key.decrypt(*block);
        out.extend(if mode == Mode::Cbc { xor(plain, before) } else { plain });
        before = *block;
    }
    let padding = usize::from(*out.last()?);
    let whole = (1..=BLOCK).contains(&padding) && out[out.len() - padding..].iter().all(|byte| usize::from(*byte) == padding);
    out.truncate(out.len() - padding.min(out.len()));
    whole.then_some(out)
}

/// Blocks of which the last is filled with the number of bytes that it lacks; one that lacks all if the bytes fill the others.
fn padded(bytes: &[u8]) -> impl Iterator<Item = [u8; BLOCK]> {
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    let mut last = [(BLOCK - rest.len()) as u8; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    blocks.iter().copied().chain([last])
}

fn xor(a: [u8; BLOCK], b: [u8; BLOCK]) -> [u8; BLOCK] {
    (u128::from_be_bytes(a) ^ u128::from_be_bytes(b)).to_be_bytes()
}

/// The modes that make a stream of the cipher (NIST SP 800-38A): as many bytes come out as go in.
fn stream(key: &Key, mode: Mode, vector: [u8; BLOCK], bytes: &[u8], encrypts: bool) -> Vec<u8> {
    // What the cipher is applied to next: of what was encrypted before, the last 128 bits.
    let mut register = vector;
    let mut out = Vec::with_capacity(bytes.len());
    if mode == Mode::Cfb1 {
        for byte in bytes {
            let mut made = 0;
            for place in (0..8).rev() {
                let bit = byte >> place & 1;
                let new = key.encrypt(register)[0] >> 7 ^ bit;
                let fed_back = if encrypts { new } else { bit };
                register = (u128::from_be_bytes(register) << 1 | u128::from(fed_back)).to_be_bytes();
                made = made << 1 | new;
            }
            out.push(made);
        }
        return out;
    }
    let step = if mode == Mode::Cfb8 { 1 } else { BLOCK };
    for chunk in bytes.chunks(step) {
        let mask = key.encrypt(register);
        let from = out.len();
        out.extend(chunk.iter().zip(mask).map(|(byte, mask)| byte ^ mask));
        let fed_back: &[u8] = match mode {
            Mode::Ofb => &mask,
            _ if encrypts => &out[from..],
            _ => chunk,
        };
        // Only the last chunk may be shorter than a step.
        if fed_back.len() >= step {
            register.rotate_left(step);
            register[BLOCK - step..].copy_from_slice(fed_back);
        }
    }
    out
}
