//! The two authentication methods, as functions over byte strings.
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

    /// What is stored for a password: empty for an empty one.
    pub fn stored(password: &[u8]) -> String {
        if password.is_empty() {
            return String::new();
        }
        let mut out = String::from("*");
        for byte in Sha1::digest(Sha1::digest(password)) {
            out.push_str(&format!("{byte:02X}"));
        }
        out
    }

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

/// `caching_sha2_password`.
pub mod caching_sha2 {
    use super::*;

    /// Salt length of MySQL's stored form, in bytes.
    pub const SALT_LENGTH: usize = 20;
    const ROUNDS: usize = 5000;

    /// What is stored for a password with a salt of ASCII characters other than `$` and NUL: empty for an empty password.
    pub fn stored(password: &[u8], salt: &[u8; SALT_LENGTH]) -> String {
        if password.is_empty() {
            return String::new();
        }
        let salt_text: String = salt.iter().map(|&b| char::from(b & 0x7F)).collect();
        format!("$A$005${salt_text}{}", sha256_crypt(password, salt_text.as_bytes(), ROUNDS))
    }

    /// Whether `password` is the one behind `stored`.
    pub fn check_password(stored: &str, password: &[u8]) -> bool {
        if stored.is_empty() || password.is_empty() {
            return stored.is_empty() && password.is_empty();
        }
        let Some(rest) = stored.strip_prefix("$A$") else { return false };
        let Some((rounds, rest)) = rest.split_once('$') else { return false };
        let Ok(thousands) = usize::from_str_radix(rounds, 16) else { return false };
        if rest.len() != SALT_LENGTH + 43 || !rest.is_ascii() || !(1..=0xFFF).contains(&thousands) {
            return false;
        }
        let (salt, hash) = rest.split_at(SALT_LENGTH);
        constant_time_eq(sha256_crypt(password, salt.as_bytes(), thousands * 1000).as_bytes(), hash.as_bytes())
    }

    /// The digest to cache after a full exchange.
    pub fn digest(password: &[u8]) -> CachingSha2Digest {
        Sha256::digest(Sha256::digest(password)).into()
    }

    /// SHA-256 crypt, in the 43 characters of its own base 64.
    fn sha256_crypt(password: &[u8], salt: &[u8], rounds: usize) -> String {
        let b = Sha256::new().chain_update(password).chain_update(salt).chain_update(password).finalize();
        let mut a = Sha256::new().chain_update(password).chain_update(salt);
        let repeat = |digest: &[u8], length: usize| -> Vec<u8> { digest.iter().copied().cycle().take(length).collect() };
        a.update(repeat(&b, password.len()));
        let mut bits = password.len();
        while bits > 0 {
            if bits & 1 == 1 { a.update(b) } else { a.update(password) }
            bits >>= 1;
        }
        let a = a.finalize();
        let mut dp = Sha256::new();
        (0..password.len()).for_each(|_| dp.update(password));
        let p = repeat(&dp.finalize(), password.len());
        let mut ds = Sha256::new();
        (0..16 + usize::from(a[0])).for_each(|_| ds.update(salt));
        let s = repeat(&ds.finalize(), salt.len());
        let mut c = a;
        for round in 0..rounds {
            let mut next = Sha256::new();
            if round % 2 == 1 { next.update(&p) } else { next.update(c) }
            if round % 3 != 0 {
                next.update(&s);
            }
            if round % 7 != 0 {
                next.update(&p);
            }
            if round % 2 == 1 { next.update(c) } else { next.update(&p) }
            c = next.finalize();
        }
        const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let mut out = String::with_capacity(43);
        let mut put = |bytes: [u8; 3], characters: usize| {
            let mut word = u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]);
            for _ in 0..characters {
                out.push(char::from(ALPHABET[(word & 63) as usize]));
                word >>= 6;
            }
        };
        // The byte order of the published algorithm: each triple is the one before, rotated by one third of the digest.
        let (mut i, mut j, mut k) = (0, 10, 20);
        for _ in 0..10 {
            put([c[i], c[j], c[k]], 4);
            (i, j, k) = (k + 1, i + 1, j + 1);
        }
        put([0, c[31], c[30]], 3);
        out
    }
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
    fn native_password_round_trip_and_known_hash() {
        // SELECT authentication_string of IDENTIFIED WITH mysql_native_password BY 'secret' in MySQL 8.0.
        assert_eq!(native::stored(b"secret"), "*14E65567ABDB5135D0CFD9A70B3032C179A49EE7");
        let nonce = [7u8; 20];
        let response = mysql_common::auth::plugins::mysql_native_password::scramble_native(&nonce, b"secret").unwrap();
        assert!(native::check(&native::stored(b"secret"), &nonce, &response));
        assert!(!native::check(&native::stored(b"Secret"), &nonce, &response));
        assert!(!native::check(&native::stored(b"secret"), &[8u8; 20], &response));
        assert!(!native::check(&native::stored(b"secret"), &nonce, b""));
        assert!(native::check("", &nonce, b""));
    }

    #[test]
    fn caching_sha2_fast_and_full() {
        let nonce = [9u8; 20];
        let response = mysql_common::auth::plugins::caching_sha2_password::scramble_sha256(&nonce, b"secret").unwrap();
        assert!(caching_sha2_fast_check(&caching_sha2::digest(b"secret"), &nonce, &response));
        assert!(!caching_sha2_fast_check(&caching_sha2::digest(b"other"), &nonce, &response));
        let stored = caching_sha2::stored(b"secret", b"abcdefghijklmnopqrst");
        assert!(caching_sha2::check_password(&stored, b"secret"));
        assert!(!caching_sha2::check_password(&stored, b"secreT"));
        assert!(!caching_sha2::check_password("$A$005$short", b"secret"));
    }
}
