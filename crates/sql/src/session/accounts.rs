//! Accounts: which of them a client is, and what stored passwords look like.

use std::sync::Arc;

use highkey_table::{Database, UserDef};
use highkey_types::MySqlError;
use sha1::Digest as _;

use super::error;
use super::instance::Account;

fn account(user: &UserDef) -> Account {
    Account {
        user: user.user.clone(),
        host: user.host.clone(),
        plugin: user.plugin.clone(),
        authentication_string: user.authentication_string.clone().into_bytes(),
        password_expired: user.password_expired,
        locked: user.account_locked,
    }
}

/// The account with the most specific host that matches; a named user before the anonymous one.
pub fn find(database: &Arc<Database>, user: &str, host: &str) -> Option<Account> {
    let users = database.catalog().users();
    users
        .iter()
        .filter(|u| (u.user == user || u.user.is_empty()) && host_matches(&u.host, host))
        .min_by_key(|u| (specificity(&u.host), u.user.is_empty()))
        .map(|u| account(u))
}

/// The account that a user at a client host acts as by PROXY, which goes by the user's name, whatever account of that name has logged in. It must be there, and its host match the
/// client too; of several the one with the most specific host. As MySQL has it, where of equals the one counts that was granted first: here the first by name.
pub fn find_proxied(database: &Arc<Database>, user: &str, host: &str) -> Option<Account> {
    if user.is_empty() {
        return None;
    }
    let users = database.catalog().users();
    let holders = users.iter().filter(|holder| holder.user == user && host_matches(&holder.host, host));
    holders
        .flat_map(|holder| holder.grants.proxied.iter().map(move |proxied| (specificity(&holder.host), proxied)))
        .filter(|(_, proxied)| !proxied.user.is_empty() && host_matches(&proxied.host, host))
        .filter_map(|(rank, proxied)| {
            let found = users.iter().find(|other| other.user == proxied.user && other.host.eq_ignore_ascii_case(&proxied.host))?;
            Some((rank, specificity(&found.host), found))
        })
        .min_by(|(a, b, found), (c, d, other)| (a, b, &found.user).cmp(&(c, d, &other.user)))
        .map(|(_, _, found)| account(found))
}

/// Literal hosts first, then patterns by where their first wildcard is, `%` last.
fn specificity(host: &str) -> usize {
    match host.find(['%', '_']) {
        None => 0,
        Some(at) => usize::MAX - at,
    }
}

/// `localhost` is the Unix socket and the loopback addresses, which a pattern of addresses matches as 127.0.0.1.
fn host_matches(pattern: &str, host: &str) -> bool {
    let loopback = |h: &str| matches!(h, "localhost" | "127.0.0.1" | "::1" | "::ffff:127.0.0.1");
    if pattern.eq_ignore_ascii_case(host) || (pattern.eq_ignore_ascii_case("localhost") && loopback(host)) || (pattern == "127.0.0.1" && loopback(host)) {
        return true;
    }
    let address = if loopback(host) { "127.0.0.1" } else { host };
    if let Some((network, mask)) = pattern.split_once('/') {
        let parse = |t: &str| t.parse::<std::net::Ipv4Addr>().ok().map(u32::from);
        if let (Some(network), Some(mask), Some(address)) = (parse(network), parse(mask), parse(address)) {
            return address & mask == network;
        }
    }
    let pattern = pattern.to_ascii_lowercase();
    [host, address].into_iter().any(|text| like(pattern.as_bytes(), text.to_ascii_lowercase().as_bytes()))
}

/// `%` and `_` without escapes, as host patterns have them.
fn like(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // What is behind the last `%`, and up to where that has matched: those before it need no other try.
    let mut last: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'%') => {
                p += 1;
                last = Some((p, t));
            }
            Some(&c) if c == b'_' || c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match &mut last {
                Some((behind, upto)) => {
                    *upto += 1;
                    (p, t) = (*behind, *upto);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&c| c == b'%')
}

/// Makes `root`@`localhost` where there are no accounts. True: root has no password.
pub async fn bootstrap_root(database: &Arc<Database>) -> Result<bool, MySqlError> {
    let users = database.catalog().users();
    if !users.is_empty() {
        return Ok(users.iter().any(|u| u.user == "root" && u.authentication_string.is_empty()));
    }
    database.create_user(&highkey_table::DdlContext::default(), UserDef::root()).await?;
    Ok(true)
}

/// What a plugin stores for a password; empty for an empty one. Error 1524 for a plugin that is not ours.
pub fn authentication_string(plugin: &str, password: &str) -> Result<String, MySqlError> {
    if password.is_empty() {
        check_plugin(plugin)?;
        return Ok(String::new());
    }
    match plugin {
        "mysql_native_password" => {
            let once = sha1::Sha1::digest(password.as_bytes());
            let twice = sha1::Sha1::digest(once);
            Ok(format!("*{}", twice.iter().map(|b| format!("{b:02X}")).collect::<String>()))
        }
        "caching_sha2_password" => {
            let salt: String = (0..20).map(|_| SALT[rand::random_range(0..SALT.len())] as char).collect();
            Ok(format!("$A$005${salt}{}", sha256_crypt(password.as_bytes(), salt.as_bytes(), 5000)))
        }
        _ => Err(error::plugin_not_loaded(plugin)),
    }
}

pub fn check_plugin(plugin: &str) -> Result<(), MySqlError> {
    match plugin {
        "mysql_native_password" | "caching_sha2_password" => Ok(()),
        _ => Err(error::plugin_not_loaded(plugin)),
    }
}

/// crypt(3)'s alphabet: salts survive dumps and CREATE USER … AS.
const SALT: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Whether `password` is the one of a caching_sha2_password string (full authentication).
pub fn verify_caching_sha2(stored: &[u8], password: &[u8]) -> bool {
    let Some(rest) = stored.strip_prefix(b"$A$") else { return false };
    // Rounds in thousands as three hex digits, `$`, 20 bytes of salt, 43 characters of digest.
    if rest.len() != 3 + 1 + 20 + 43 || rest[3] != b'$' {
        return false;
    }
    let rounds = std::str::from_utf8(&rest[..3]).ok().and_then(|t| u32::from_str_radix(t, 16).ok()).unwrap_or(0) * 1000;
    let digest = sha256_crypt(password, &rest[4..24], rounds.max(1000));
    let (a, b) = (digest.as_bytes(), &rest[24..]);
    a.len() == b.len() && a.iter().zip(b).fold(0, |difference, (x, y)| difference | (x ^ y)) == 0
}

/// SHA-crypt with SHA-256 (Drepper 2008) with MySQL's salt of 20 bytes: the digest in crypt's base 64.
fn sha256_crypt(password: &[u8], salt: &[u8], rounds: u32) -> String {
    use sha2::Sha256;
    let alternate = Sha256::new().chain_update(password).chain_update(salt).chain_update(password).finalize();
    let mut a = Sha256::new().chain_update(password).chain_update(salt);
    let mut left = password.len();
    while left > 0 {
        let n = left.min(32);
        a.update(&alternate[..n]);
        left -= n;
    }
    let mut n = password.len();
    while n > 0 {
        if n & 1 == 1 {
            a.update(alternate);
        } else {
            a.update(password);
        }
        n >>= 1;
    }
    let mut digest = a.finalize();
    let mut p = Sha256::new();
    for _ in 0..password.len() {
        p.update(password);
    }
    let p_digest = p.finalize();
    let p: Vec<u8> = p_digest.iter().copied().cycle().take(password.len()).collect();
    let mut s = Sha256::new();
    for _ in 0..16 + usize::from(digest[0]) {
        s.update(salt);
    }
    let s_digest = s.finalize();
    let s: Vec<u8> = s_digest.iter().copied().cycle().take(salt.len()).collect();
    for round in 0..rounds {
        let mut c = Sha256::new();
        if round & 1 == 1 {
            c.update(&p);
        } else {
            c.update(digest);
        }
        if round % 3 != 0 {
            c.update(&s);
        }
        if round % 7 != 0 {
            c.update(&p);
        }
        if round & 1 == 1 {
            c.update(digest);
        } else {
            c.update(&p);
        }
        digest = c.finalize();
    }
    let mut text = String::with_capacity(43);
    let mut put = |b2: u8, b1: u8, b0: u8, n: usize| {
        let mut word = u32::from(b2) << 16 | u32::from(b1) << 8 | u32::from(b0);
        for _ in 0..n {
            text.push(SALT[(word & 63) as usize] as char);
            word >>= 6;
        }
    };
    let order = [(0, 10, 20), (21, 1, 11), (12, 22, 2), (3, 13, 23), (24, 4, 14), (15, 25, 5), (6, 16, 26), (27, 7, 17), (18, 28, 8), (9, 19, 29)];
    for (x, y, z) in order {
        put(digest[x], digest[y], digest[z], 4);
    }
    put(0, digest[31], digest[30], 3);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_stored_as_mysql_stores_them() {
        assert_eq!(authentication_string("mysql_native_password", "password").unwrap(), "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19");
        let stored = authentication_string("caching_sha2_password", "secret").unwrap();
        assert_eq!(stored.len(), 70);
        assert!(verify_caching_sha2(stored.as_bytes(), b"secret"));
        assert!(!verify_caching_sha2(stored.as_bytes(), b"Secret"));
        assert_eq!(authentication_string("sha256_password", "x").unwrap_err().code, 1524);
    }

    #[test]
    fn the_digest_is_that_of_sha_crypt() {
        // As `openssl passwd -5 -salt saltstring` prints it: 5000 rounds.
        assert_eq!(sha256_crypt(b"Hello world!", b"saltstring", 5000), "5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5");
    }

    #[test]
    fn hosts_match_by_the_most_specific_pattern() {
        assert!(host_matches("localhost", "127.0.0.1"));
        assert!(host_matches("%", "10.0.0.1"));
        assert!(host_matches("10.0.%", "10.0.0.1"));
        assert!(!host_matches("10.1.%", "10.0.0.1"));
        assert!(host_matches("%.a_%.org%", "x.y.ab.example.org") && host_matches("%a%b_", "aabbbc") && !host_matches("%.org", "a.org.net") && !host_matches("_", ""));
        // Every `%` may stand for many things: it is enough to look at one after the other.
        assert!(!host_matches(&"%a".repeat(60), &format!("{}b", "a".repeat(200))));
        assert!(host_matches("10.0.0.0/255.255.255.0", "10.0.0.77"));
        // Whoever comes over the loopback device has that name, and the address.
        for pattern in ["127.0.0.%", "127.%", "127.0.0.0/255.255.255.0", "LOCAL%", "%"] {
            assert!(host_matches(pattern, "localhost") && host_matches(pattern, "127.0.0.1") != (pattern == "LOCAL%"), "{pattern}");
        }
        assert!(!host_matches("10.%", "localhost") && !host_matches("127.1.0.0/255.255.0.0", "localhost"));
        assert!(specificity("localhost") < specificity("10.0.0.%") && specificity("10.0.0.%") < specificity("10.%") && specificity("10.%") < specificity("%"));
    }
}
