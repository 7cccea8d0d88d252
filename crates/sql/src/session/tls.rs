//! What the server tells of its keys: the status variables `Ssl_…` and `Rsa_public_key`.

/// The server's side of TLS, for status variables.
#[derive(Clone, Debug, Default)]
pub struct ServerTls {
    /// Names of the cipher suites, with colons between.
    pub cipher_suites: String,
    /// Until when and since when its certificate is valid: seconds since 1970 UTC.
    pub not_after: i64,
    pub not_before: i64,
    /// Sessions that may be resumed, at most.
    pub session_cache_size: u64,
}
