//! The two authentication methods, as functions over byte strings: what travels. What is stored for a password is the SQL layer's, which CREATE USER is.
//!
//! `mysql_native_password`: the server stores `'*' || HEX(SHA1(SHA1(password)))`; the client proves the password with
//! `SHA1(password) XOR SHA1(nonce || SHA1(SHA1(password)))`.
//!
//! `caching_sha2_password`: the server stores `$A$005$` + 20 salt characters + 43 characters of SHA-256 crypt with 5000
//! rounds (Ulrich Drepper, "Unix crypt using SHA-256 and SHA-512"). The client first sends
//! `SHA256(password) XOR SHA256(SHA256(SHA256(password)) || nonce)`, which is enough when the server has
//! `SHA256(SHA256(password))` cached from an earlier full exchange; otherwise it sends the password over TLS, a local
//! socket, or encrypted with the server's RSA key.

use sha1::{Digest, Sha1};
use sha2::Sha256;

/// Length of the nonce of the handshake, in bytes.
pub const NONCE_LENGTH: usize = 20;

/// `SHA256(SHA256(password))`, kept in memory only, after a full exchange has proved the password.
pub type CachingSha2Digest = [u8; 32];

/// A supported authentication method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthPlugin {
    Native,
    CachingSha2,
}

impl AuthPlugin {
    /// The name on the wire and in `CREATE USER … IDENTIFIED WITH`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "mysql_native_password",
            Self::CachingSha2 => "caching_sha2_password",
        }
    }

    /// The plugin of that name, if it is supported.
    pub fn by_name(name: &str) -> Option<Self> {
        [Self::Native, Self::CachingSha2].into_iter().find(|plugin| plugin.name() == name)
    }
}

/// `mysql_native_password`.
pub mod native {
    use super::*;

    /// Whether `response` proves the password behind `stored` for `nonce`.
    pub fn check(stored: &str, nonce: &[u8], response: &[u8]) -> bool {
        if stored.is_empty() || response.is_empty() {
            return stored.is_empty() && response.is_empty();
        }
        let Some(stage2) = stored.strip_prefix('*').and_then(decode_hex::<20>) else { return false };
        let Ok(response): Result<[u8; 20], _> = response.try_into() else { return false };
        let mask = Sha1::new().chain_update(nonce).chain_update(stage2).finalize();
        let mut stage1 = response;
        stage1.iter_mut().zip(mask).for_each(|(a, b)| *a ^= b);
        constant_time_eq(&Sha1::digest(stage1), &stage2)
    }

    fn decode_hex<const N: usize>(hex: &str) -> Option<[u8; N]> {
        let mut out = [0; N];
        if hex.len() != 2 * N || !hex.is_ascii() {
            return None;
        }
        for (i, byte) in out.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).ok()?;
        }
        Some(out)
    }
}

/// The digest to cache after a full exchange.
pub fn caching_sha2_digest(password: &[u8]) -> CachingSha2Digest {
    Sha256::digest(Sha256::digest(password)).into()
}

/// The check of the fast path against a cached digest.
pub fn caching_sha2_fast_check(digest: &CachingSha2Digest, nonce: &[u8], response: &[u8]) -> bool {
    let Ok(response): Result<[u8; 32], _> = response.try_into() else { return false };
    let mask = Sha256::new().chain_update(digest).chain_update(nonce).finalize();
    let mut once = response;
    once.iter_mut().zip(mask).for_each(|(a, b)| *a ^= b);
    constant_time_eq(&Sha256::digest(once), digest)
}

/// Undoes the obfuscation under which the password travels inside RSA: XOR with the nonce, NUL-terminated.
pub fn xor_with_nonce(data: &[u8], nonce: &[u8]) -> Vec<u8> {
    data.iter().zip(nonce.iter().cycle()).map(|(a, b)| a ^ b).collect()
}

fn constant_time_eq(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |acc, (x, y)| acc | (x ^ y)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn native_password_round_trip() {
        // SELECT authentication_string of IDENTIFIED WITH mysql_native_password BY 'secret' in MySQL 8.0.
        let stored = "*14E65567ABDB5135D0CFD9A70B3032C179A49EE7";
        let nonce = [7u8; 20];
        let response = mysql_common::auth::plugins::mysql_native_password::scramble_native(&nonce, b"secret").unwrap();
        let other = mysql_common::auth::plugins::mysql_native_password::scramble_native(&nonce, b"Secret").unwrap();
        assert!(native::check(stored, &nonce, &response));
        assert!(!native::check(stored, &nonce, &other));
        assert!(!native::check(stored, &[8u8; 20], &response));
        assert!(!native::check(stored, &nonce, b""));
        assert!(native::check("", &nonce, b""));
    }

    #[test]
    fn caching_sha2_fast() {
        let nonce = [9u8; 20];
        let response = mysql_common::auth::plugins::caching_sha2_password::scramble_sha256(&nonce, b"secret").unwrap();
        assert!(caching_sha2_fast_check(&caching_sha2_digest(b"secret"), &nonce, &response));
        assert!(!caching_sha2_fast_check(&caching_sha2_digest(b"other"), &nonce, &response));
    }
}
