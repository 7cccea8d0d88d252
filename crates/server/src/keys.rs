//! The server's keys, kept in the data directory under MySQL's file names: `server-cert.pem` and `server-key.pem` for TLS
//! (self-signed at first start), `private_key.pem` and `public_key.pem` for passwords sent over plain connections.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use highkey_sql::ServerTls;
use parking_lot::Mutex;
use rsa::pkcs8::der::asn1::{AnyRef, GeneralizedTime, UtcTime};
use rsa::pkcs8::der::{Decode, Reader, SliceReader, Tag, Tagged};
use rsa::pkcs8::{DecodePrivateKey, EncodePrivateKey, EncodePublicKey, LineEnding};
use rsa::{Oaep, RsaPrivateKey};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::server::ServerSessionMemoryCache;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::connection::iana_name;

/// Sessions that clients may resume.
const SESSION_CACHE_SIZE: usize = 256;

/// Loads the certificate and key (`ssl_cert`, `ssl_key`; by default those of the data directory, made if missing).
/// Beside it what status variables tell of it.
pub fn tls_acceptor(datadir: &Path, cert: &str, key: &str) -> io::Result<(TlsAcceptor, ServerTls)> {
    let in_datadir = |given: &str, default: &str| -> PathBuf { datadir.join(if given.is_empty() { default } else { given }) };
    let cert_file = in_datadir(cert, "server-cert.pem");
    let key_file = in_datadir(key, "server-key.pem");
    if !cert_file.exists() && !key_file.exists() && cert.is_empty() {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_string()]).map_err(io::Error::other)?;
        write_private(&key_file, made.signing_key.serialize_pem().as_bytes())?;
        fs::write(&cert_file, made.cert.pem())?;
    }
    let shown = |file: &Path, e: &dyn std::fmt::Display| io::Error::other(format!("{}: {e}", file.display()));
    let certificates = CertificateDer::pem_file_iter(&cert_file)
        .and_then(|all| all.collect::<Result<Vec<_>, _>>())
        .map_err(|e| shown(&cert_file, &e))?;
    let (not_before, not_after) = certificates.first().and_then(validity).unwrap_or_default();
    let private = PrivateKeyDer::from_pem_file(&key_file).map_err(|e| shown(&key_file, &e))?;
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let suites: Vec<String> = provider.cipher_suites.iter().map(|suite| iana_name(suite.suite())).collect();
    let told = ServerTls { cipher_suites: suites.join(":"), not_after, not_before, session_cache_size: SESSION_CACHE_SIZE as u64 };
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(certificates, private)
        .map_err(|e| shown(&cert_file, &e))?;
    config.session_storage = ServerSessionMemoryCache::new(SESSION_CACHE_SIZE);
    Ok((TlsAcceptor::from(Arc::new(config)), told))
}

/// Since when and until when a certificate is valid: seconds since 1970 UTC. `None` where it cannot be read; TLS libraries say more then.
/// A certificate is a sequence of a sequence, in which, behind the version (if there is one), serial number, signature and issuer, there are two times (RFC 5280, 4.1).
fn validity(certificate: &CertificateDer<'_>) -> Option<(i64, i64)> {
    fn inside<'a>(any: AnyRef<'a>) -> Option<SliceReader<'a>> {
        SliceReader::new(any.value()).ok()
    }
    let signed: AnyRef<'_> = inside(AnyRef::from_der(certificate.as_ref()).ok()?)?.decode().ok()?;
    let mut fields = inside(signed)?;
    let first: AnyRef<'_> = fields.decode().ok()?;
    for _ in 0..if first.tag().is_context_specific() { 3 } else { 2 } {
        let _: AnyRef<'_> = fields.decode().ok()?;
    }
    let mut times = inside(fields.decode().ok()?)?;
    let mut time = || -> Option<i64> {
        let time: AnyRef<'_> = times.decode().ok()?;
        let since_1970 = match time.tag() {
            Tag::UtcTime => time.decode_as::<UtcTime>().ok()?.to_unix_duration(),
            _ => time.decode_as::<GeneralizedTime>().ok()?.to_unix_duration(),
        };
        i64::try_from(since_1970.as_secs()).ok()
    };
    Some((time()?, time()?))
}

/// The RSA key of `caching_sha2_password`, made when the first client asks for it.
pub struct PasswordKey {
    datadir: PathBuf,
    key: Mutex<Option<Arc<RsaPrivateKey>>>,
}

impl PasswordKey {
    pub fn new(datadir: &Path) -> Self {
        Self { datadir: datadir.to_path_buf(), key: Mutex::new(None) }
    }

    /// The key; takes up to a second the first time ever, so call it where blocking is allowed.
    fn key(&self) -> io::Result<Arc<RsaPrivateKey>> {
        let mut slot = self.key.lock();
        if let Some(key) = &*slot {
            return Ok(key.clone());
        }
        let file = self.datadir.join("private_key.pem");
        let key = if file.exists() {
            RsaPrivateKey::from_pkcs8_pem(&fs::read_to_string(&file)?).map_err(io::Error::other)?
        } else {
            let key = RsaPrivateKey::new(&mut rsa::rand_core::OsRng, 2048).map_err(io::Error::other)?;
            let pem = key.to_pkcs8_pem(LineEnding::LF).map_err(io::Error::other)?;
            write_private(&file, pem.as_bytes())?;
            fs::write(self.datadir.join("public_key.pem"), public_pem(&key)?)?;
            key
        };
        Ok(slot.insert(Arc::new(key)).clone())
    }

    /// The public key in PEM, as the client asks for it.
    pub fn public_pem(&self) -> io::Result<String> {
        public_pem(&*self.key()?)
    }

    /// Decrypts what the client encrypted (RSA with OAEP and SHA-1, as MySQL); `None` if it is not.
    pub fn decrypt(&self, data: &[u8]) -> Option<Vec<u8>> {
        self.key().ok()?.decrypt(Oaep::new::<sha1::Sha1>(), data).ok()
    }
}

fn public_pem(key: &RsaPrivateKey) -> io::Result<String> {
    key.to_public_key().to_public_key_pem(LineEnding::LF).map_err(io::Error::other)
}

fn write_private(file: &Path, bytes: &[u8]) -> io::Result<()> {
    fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_tells_how_long_it_is_valid() {
        let mut parameters = rcgen::CertificateParams::new(vec!["localhost".to_string()]).unwrap();
        parameters.not_before = rcgen::date_time_ymd(2020, 2, 29);
        // Beyond 2049 times are written another way.
        parameters.not_after = rcgen::date_time_ymd(2077, 1, 2);
        let made = parameters.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap();
        assert_eq!(validity(made.der()), Some((1_582_934_400, 3_376_771_200)));
        assert_eq!(validity(&CertificateDer::from(&made.der()[..50])), None);
    }
}
