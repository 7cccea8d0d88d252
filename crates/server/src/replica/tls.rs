//! TLS to the source: whose certificate it may have, by which versions and ciphers.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::{self, CertificateError, CipherSuite, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use super::settings::Settings;
use super::source::{Result, SourceError};
use crate::connection::Stream;

/// Goes on under TLS. Error 2026, as in MySQL, whatever keeps it from that.
pub async fn secured(stream: Box<dyn Stream>, settings: &Settings) -> Result<Box<dyn Stream>> {
    let config = config(settings).map_err(failed)?;
    let name = ServerName::try_from(settings.host.clone()).map_err(|e| failed(of(&settings.host, e)))?;
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.map_err(failed)?;
    Ok(Box::new(stream))
}

fn failed(e: io::Error) -> SourceError {
    SourceError::Server(2026, format!("SSL connection error: {e}"))
}

/// What is wrong with a file, a directory or a name.
fn of(what: impl AsRef<Path>, e: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!("{}: {e}", what.as_ref().display()))
}

fn config(settings: &Settings) -> io::Result<ClientConfig> {
    let provider = Arc::new(provider(settings)?);
    let verifier = Arc::new(Verifier { issued: issued(settings, &provider)?, named: settings.ssl_verify, provider: provider.clone() });
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(io::Error::other)?;
    let config = config.dangerous().with_custom_certificate_verifier(verifier);
    // As in MySQL one file may have both.
    let (certificate, key) = match (settings.ssl_cert.as_str(), settings.ssl_key.as_str()) {
        ("", "") => return Ok(config.with_no_client_auth()),
        ("", both) | (both, "") => (both, both),
        two => two,
    };
    let private = PrivateKeyDer::from_pem_file(key).map_err(|e| of(key, e))?;
    config.with_client_auth_cert(in_file(certificate)?, private).map_err(|e| of(certificate, e))
}

/// With the ciphers that SOURCE_TLS_VERSION, SOURCE_SSL_CIPHER (TLS 1.2) and SOURCE_TLS_CIPHERSUITES (TLS 1.3) leave; with all ciphers of a version goes the version.
/// An option that leaves nothing of what it is about is an error.
fn provider(settings: &Settings) -> io::Result<CryptoProvider> {
    let versions = names(&settings.tls_version);
    if !versions.is_empty() && !["TLSv1.2", "TLSv1.3"].iter().any(|known| includes(&versions, known)) {
        return Err(io::Error::other("TLS version is invalid: SOURCE_TLS_VERSION names neither TLSv1.2 nor TLSv1.3"));
    }
    let mut provider = ring::default_provider();
    let ciphers = names(&settings.ssl_cipher);
    let ciphersuites = settings.tls_ciphersuites.as_deref().map(names);
    for (option, listed) in [("SOURCE_SSL_CIPHER", &ciphers), ("SOURCE_TLS_CIPHERSUITES", ciphersuites.as_ref().unwrap_or(&Vec::new()))] {
        if !listed.is_empty() && !provider.cipher_suites.iter().any(|suite| listed.contains(&openssl_name(suite.suite()))) {
            return Err(io::Error::other(format!("Failed to set ciphers to use: {option} names none that Highkey has")));
        }
    }
    provider.cipher_suites.retain(|suite| {
        let name = openssl_name(suite.suite());
        match suite.tls13() {
            Some(_) => (versions.is_empty() || includes(&versions, "TLSv1.3")) && ciphersuites.as_ref().is_none_or(|listed| listed.contains(&name)),
            None => (versions.is_empty() || includes(&versions, "TLSv1.2")) && (ciphers.is_empty() || ciphers.contains(&name)),
        }
    });
    if provider.cipher_suites.is_empty() {
        return Err(io::Error::other("Failed to set ciphers to use: SOURCE_TLS_VERSION, SOURCE_SSL_CIPHER and SOURCE_TLS_CIPHERSUITES leave none that Highkey has"));
    }
    Ok(provider)
}

fn names(list: &str) -> Vec<&str> {
    list.split([',', ':', ' ']).filter(|name| !name.is_empty()).collect()
}

fn includes(versions: &[&str], version: &str) -> bool {
    versions.iter().any(|listed| listed.eq_ignore_ascii_case(version))
}

/// What OpenSSL calls it, and with it the options of MySQL.
fn openssl_name(suite: CipherSuite) -> &'static str {
    match suite {
        CipherSuite::TLS13_AES_256_GCM_SHA384 => "TLS_AES_256_GCM_SHA384",
        CipherSuite::TLS13_AES_128_GCM_SHA256 => "TLS_AES_128_GCM_SHA256",
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => "TLS_CHACHA20_POLY1305_SHA256",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 => "ECDHE-ECDSA-AES256-GCM-SHA384",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 => "ECDHE-ECDSA-AES128-GCM-SHA256",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 => "ECDHE-ECDSA-CHACHA20-POLY1305",
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 => "ECDHE-RSA-AES256-GCM-SHA384",
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => "ECDHE-RSA-AES128-GCM-SHA256",
        CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => "ECDHE-RSA-CHACHA20-POLY1305",
        _ => "",
    }
}

/// Knows who may have issued the source's certificate, and which ones are revoked. `None`: nobody asks, as in MySQL.
fn issued(settings: &Settings, provider: &Arc<CryptoProvider>) -> io::Result<Option<Arc<WebPkiServerVerifier>>> {
    let Settings { ssl_ca, ssl_capath, ssl_crl, ssl_crlpath, .. } = settings;
    if ssl_ca.is_empty() && ssl_capath.is_empty() {
        let needing = [("SOURCE_SSL_VERIFY_SERVER_CERT", settings.ssl_verify), ("SOURCE_SSL_CRL", !ssl_crl.is_empty()), ("SOURCE_SSL_CRLPATH", !ssl_crlpath.is_empty())];
        return match needing.into_iter().find(|(_, given)| *given) {
            Some((option, _)) => Err(io::Error::other(format!("CA certificate is required if {option} is set"))),
            None => Ok(None),
        };
    }
    let mut roots = RootCertStore::empty();
    if !ssl_ca.is_empty() {
        for certificate in in_file(ssl_ca)? {
            roots.add(certificate).map_err(|e| of(ssl_ca, e))?;
        }
    }
    if !ssl_capath.is_empty() {
        for file in rehashed(ssl_capath, ".")? {
            // Those that a system collects are not all for today's rules.
            roots.add_parsable_certificates(in_file::<CertificateDer<'static>>(file)?);
        }
    }
    let mut crls: Vec<CertificateRevocationListDer<'static>> = Vec::new();
    if !ssl_crl.is_empty() {
        crls.append(&mut in_file(ssl_crl)?);
    }
    if !ssl_crlpath.is_empty() {
        for file in rehashed(ssl_crlpath, ".r")? {
            crls.append(&mut in_file(file)?);
        }
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).with_crls(crls).enforce_revocation_expiration();
    verifier.build().map(Some).map_err(io::Error::other)
}

/// What a file has, in PEM or as one in DER.
fn in_file<T: PemObject + From<Vec<u8>>>(file: impl AsRef<Path>) -> io::Result<Vec<T>> {
    let bytes = fs::read(&file).map_err(|e| of(&file, e))?;
    let read: Result<Vec<T>, _> = T::pem_slice_iter(&bytes).collect();
    let read = read.map_err(|e| of(&file, e))?;
    Ok(if read.is_empty() { vec![bytes.into()] } else { read })
}

/// The files of a directory that `openssl rehash` has named: eight hexadecimal digits, `infix` and a number. OpenSSL reads no others, and others may be of
/// certificates that nobody meant to trust.
fn rehashed(directory: &str, infix: &str) -> io::Result<Vec<PathBuf>> {
    let is_named = |name: &str| match name.split_once(infix) {
        Some((hash, number)) => hash.len() == 8 && hash.bytes().all(|b| b.is_ascii_hexdigit()) && number.parse::<u32>().is_ok(),
        None => false,
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(|e| of(directory, e))? {
        let entry = entry.map_err(|e| of(directory, e))?;
        if entry.file_name().to_str().is_some_and(is_named) {
            files.push(entry.path());
        }
    }
    match files.is_empty() {
        true => Err(of(directory, "it has no files as `openssl rehash` names them")),
        false => Ok(files),
    }
}

/// Looks at the source's certificate as far as the options want it.
#[derive(Debug)]
struct Verifier {
    /// `None`: not at all.
    issued: Option<Arc<WebPkiServerVerifier>>,
    /// It has to be for the host that was connected to.
    named: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        use CertificateError::{NotValidForName, NotValidForNameContext};
        let Some(issued) = &self.issued else { return Ok(ServerCertVerified::assertion()) };
        match issued.verify_server_cert(certificate, between, name, ocsp, now) {
            Err(rustls::Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. })) if !self.named => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(&self, message: &[u8], certificate: &CertificateDer<'_>, signed: &DigitallySignedStruct) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(&self, message: &[u8], certificate: &CertificateDer<'_>, signed: &DigitallySignedStruct) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{
        BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DnType, IsCa, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams,
        SerialNumber, date_time_ymd,
    };
    use tempfile::TempDir;
    use tokio_rustls::TlsAcceptor;
    use tokio_rustls::rustls::ServerConfig;

    use super::*;

    type Authority = CertifiedIssuer<'static, KeyPair>;

    fn named(name: &str) -> CertificateParams {
        let mut params = CertificateParams::new(vec!["localhost".to_string()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params
    }

    impl Stream for tokio::io::DuplexStream {
        fn is_closed_by_peer(&self) -> bool {
            false
        }
    }

    fn authority(name: &str) -> Authority {
        let mut params = named(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
    }

    /// The list, in PEM, that revokes one certificate and is good until the end of a year.
    fn revocation(authority: &Authority, serial: u64, until: i32) -> String {
        let revoked = RevokedCertParams { serial_number: SerialNumber::from(serial), revocation_time: date_time_ymd(2020, 1, 1), reason_code: None, invalidity_date: None };
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2020, 1, 1),
            next_update: date_time_ymd(until, 12, 31),
            crl_number: SerialNumber::from(1u64),
            issuing_distribution_point: None,
            revoked_certs: vec![revoked],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        list.signed_by(authority).unwrap().pem().unwrap()
    }

    fn settings(change: impl FnOnce(&mut Settings)) -> Settings {
        let mut settings = Settings { host: "localhost".into(), ssl: true, ..Settings::default() };
        change(&mut settings);
        settings
    }

    fn file(dir: &TempDir, name: &str, text: &str) -> String {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().into()
    }

    /// The cipher agreed on with a source that has a certificate of this serial number, or the message of error 2026.
    async fn handshake(authority: &Authority, serial: u64, settings: &Settings) -> Result<&'static str, String> {
        let key = KeyPair::generate().unwrap();
        let mut params = named("source");
        params.serial_number = Some(SerialNumber::from(serial));
        let certificate = params.signed_by(&key, authority).unwrap();
        let private = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider())).with_safe_default_protocol_versions().unwrap();
        let config = config.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], private).unwrap();
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        let (replica, source) = tokio::join!(secured(Box::new(ours), settings), TlsAcceptor::from(Arc::new(config)).accept(theirs));
        match replica {
            Ok(_) => Ok(openssl_name(source.unwrap().get_ref().1.negotiated_cipher_suite().unwrap().suite())),
            Err(SourceError::Server(2026, message)) => Err(message),
            Err(e) => panic!("{e:?}"),
        }
    }

    #[track_caller]
    fn says(outcome: Result<&'static str, String>, what: &str) {
        assert!(matches!(&outcome, Err(message) if message.starts_with("SSL connection error: ") && message.contains(what)), "{outcome:?}, not {what}");
    }

    #[tokio::test]
    async fn authorities_may_be_in_a_file_or_in_a_rehashed_directory() {
        let (ours, other) = (authority("ours"), authority("other"));
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().to_str().unwrap().to_string();
        let ca = file(&dir, "ca.pem", &ours.pem());
        let by_file = settings(|s| s.ssl_ca = ca);
        handshake(&ours, 1, &by_file).await.unwrap();
        says(handshake(&other, 1, &by_file).await, "invalid peer certificate");

        let by_path = settings(|s| s.ssl_capath = path);
        says(handshake(&ours, 1, &by_path).await, "openssl rehash");
        file(&dir, "0a1b2c3d.0", &other.pem());
        says(handshake(&ours, 1, &by_path).await, "invalid peer certificate");
        file(&dir, "0a1b2c3d.1", &ours.pem());
        handshake(&ours, 1, &by_path).await.unwrap();
        says(handshake(&ours, 1, &settings(|s| s.ssl_capath = "/nonexistent".into())).await, "/nonexistent: ");
        // The host that was connected to.
        let elsewhere = |verify| settings(|s| (s.host, s.ssl_verify, s.ssl_ca) = ("127.0.0.1".to_string(), verify, by_file.ssl_ca.clone()));
        handshake(&ours, 1, &elsewhere(false)).await.unwrap();
        says(handshake(&ours, 1, &elsewhere(true)).await, "invalid peer certificate");
    }

    #[tokio::test]
    async fn a_revoked_certificate_is_refused() {
        let (ours, other) = (authority("ours"), authority("other"));
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().to_str().unwrap().to_string();
        let ca = file(&dir, "ca.pem", &ours.pem());
        let with_list = |list: String| settings(|s| (s.ssl_ca, s.ssl_crl) = (ca.clone(), list));
        let list = with_list(file(&dir, "crl.pem", &revocation(&ours, 2, 2099)));
        handshake(&ours, 1, &list).await.unwrap();
        says(handshake(&ours, 2, &list).await, "Revoked");
        // Nobody says of the certificate whether it is revoked: as in MySQL that is not enough.
        says(handshake(&ours, 1, &with_list(file(&dir, "others.pem", &revocation(&other, 2, 2099)))).await, "UnknownRevocationStatus");
        says(handshake(&ours, 1, &with_list(file(&dir, "expired.pem", &revocation(&ours, 2, 2021)))).await, "list expired");
        says(handshake(&ours, 1, &with_list(file(&dir, "broken.pem", "no list"))).await, "");
        says(handshake(&ours, 1, &with_list(path.clone())).await, &path);

        let by_path = settings(|s| (s.ssl_ca, s.ssl_crlpath) = (ca.clone(), path));
        says(handshake(&ours, 1, &by_path).await, "openssl rehash");
        file(&dir, "0a1b2c3d.r0", &revocation(&ours, 2, 2099));
        handshake(&ours, 1, &by_path).await.unwrap();
        says(handshake(&ours, 2, &by_path).await, "Revoked");
        for (unchecked, option) in [
            (settings(|s| s.ssl_crl = list.ssl_crl.clone()), "SOURCE_SSL_CRL "),
            (settings(|s| s.ssl_crlpath = by_path.ssl_crlpath.clone()), "SOURCE_SSL_CRLPATH "),
            (settings(|s| s.ssl_verify = true), "SOURCE_SSL_VERIFY_SERVER_CERT "),
        ] {
            says(handshake(&ours, 1, &unchecked).await, option);
        }
    }

    #[tokio::test]
    async fn versions_and_ciphers_are_those_asked_for() {
        let ours = authority("ours");
        let by = |version: &str, cipher: &str, ciphersuites: Option<&str>| {
            settings(|s| (s.tls_version, s.ssl_cipher, s.tls_ciphersuites) = (version.to_string(), cipher.to_string(), ciphersuites.map(str::to_string)))
        };
        let in_1_2 = "ECDHE-ECDSA-AES128-GCM-SHA256";
        for (settings, cipher) in [
            (by("TLSv1.1,tlsv1.2", "", None), "ECDHE-ECDSA-"),
            (by("TLSv1.2", "AES128-SHA:ECDHE-ECDSA-AES128-GCM-SHA256", None), in_1_2),
            (by("", in_1_2, Some("")), in_1_2),
            (by("", in_1_2, None), "TLS_"),
            (by("TLSv1.2,TLSv1.3", in_1_2, Some("TLS_AES_128_GCM_SHA256:TLS_AES_128_CCM_SHA256")), "TLS_AES_128_GCM_SHA256"),
        ] {
            let agreed = handshake(&ours, 1, &settings).await.unwrap();
            assert!(agreed.starts_with(cipher), "{agreed}, not {cipher}");
        }
        says(handshake(&ours, 1, &by("TLSv1,TLSv1.1", "", None)).await, "TLS version is invalid");
        says(handshake(&ours, 1, &by("", "HIGH:!aNULL", None)).await, "SOURCE_SSL_CIPHER");
        says(handshake(&ours, 1, &by("", "", Some("TLS_AES_128_CCM_SHA256"))).await, "SOURCE_TLS_CIPHERSUITES");
        says(handshake(&ours, 1, &by("TLSv1.3", "", Some(""))).await, "leave none");
    }
}
