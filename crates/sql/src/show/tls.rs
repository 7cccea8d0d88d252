//! What SHOW STATUS tells of TLS and of the key of passwords.

use highkey_types::DateTime;

use crate::session::{ServerTls, SessionState};

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// As OpenSSL prints a certificate's times: `Nov  2 14:21:10 2036 GMT`.
fn certificate_time(seconds: i64) -> String {
    let Some(at) = DateTime::from_micros(seconds.saturating_mul(1_000_000)) else { return String::new() };
    let month = MONTHS[usize::from(at.date.month.clamp(1, 12)) - 1];
    format!("{month} {:2} {:02}:{:02}:{:02} {} GMT", at.date.day, at.hour, at.minute, at.second, at.date.year)
}

/// Name and value; those of the connection are empty where it has no TLS, those of the server where the server has none.
pub(super) fn rows(state: &SessionState) -> Vec<(String, String)> {
    let server = state.instance.tls();
    let time = |of: fn(&ServerTls) -> i64| server.map_or_else(String::new, |tls| certificate_time(of(tls)));
    let ciphers = server.filter(|_| state.client.tls_cipher.is_some()).map_or_else(String::new, |tls| tls.cipher_suites.clone());
    let key = state.instance.password_key().unwrap_or_default();
    let rows = [
        ("Caching_sha2_password_rsa_public_key", key.to_owned()),
        ("Rsa_public_key", key.to_owned()),
        ("Ssl_cipher", state.client.tls_cipher.clone().unwrap_or_default()),
        ("Ssl_cipher_list", ciphers),
        ("Ssl_server_not_after", time(|tls| tls.not_after)),
        ("Ssl_server_not_before", time(|tls| tls.not_before)),
        ("Ssl_session_cache_mode", if server.is_some() { "SERVER" } else { "NONE" }.to_owned()),
        ("Ssl_session_cache_size", server.map_or(0, |tls| tls.session_cache_size).to_string()),
        ("Ssl_version", state.client.tls_version.clone().unwrap_or_default()),
    ];
    rows.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::certificate_time;

    #[test]
    fn times_are_as_openssl_prints_them() {
        assert_eq!(certificate_time(0), "Jan  1 00:00:00 1970 GMT");
        assert_eq!(certificate_time(2_110_717_270), "Nov 19 14:21:10 2036 GMT");
    }
}
