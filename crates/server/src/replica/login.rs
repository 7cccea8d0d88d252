//! The login at the source, by methods that do not hand the password to whoever asks for it.

use std::fs;

use mysql_common::auth::plugins::{AuthProc, ChallengeResponsePlugin, Context, Response};
use mysql_common::packets::AuthPlugin;
use tokio_rustls::rustls::pki_types::SubjectPublicKeyInfoDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tracing::warn;

use super::settings::Settings;
use super::source::{Result, SourceError, lost};

/// Bytes of the greeting's nonce that the methods of a first answer take.
const NONCE: usize = 20;

/// A login under way.
pub struct Login<'a> {
    settings: &'a Settings,
    /// The source's key as SOURCE_PUBLIC_KEY_PATH has it, in PEM.
    public_key: Option<Vec<u8>>,
    plugin: AuthPlugin<'static>,
    method: AuthProc,
    nonce: Vec<u8>,
}

impl<'a> Login<'a> {
    /// Answers a greeting that offers a method. An account that has another one is asked again.
    pub fn begin(settings: &'a Settings, offered: Option<AuthPlugin<'_>>, mut nonce: Vec<u8>) -> Result<(Login<'a>, Vec<u8>)> {
        let plugin = match offered {
            Some(AuthPlugin::CachingSha2Password) => AuthPlugin::CachingSha2Password,
            _ => AuthPlugin::MysqlNativePassword,
        };
        nonce.truncate(NONCE);
        let method = start(&plugin)?;
        let mut login = Login { settings, public_key: public_key(settings), plugin, method, nonce: nonce.clone() };
        let answer = login.answer(&nonce)?.unwrap_or_default();
        Ok((login, answer))
    }

    /// The method of the last answer.
    pub fn plugin(&self) -> AuthPlugin<'static> {
        self.plugin.clone()
    }

    /// The source's account has another method than the answer was of. Error 2059 for one that we have not.
    pub fn switch(&mut self, plugin: AuthPlugin<'_>, nonce: &[u8]) -> Result<Option<Vec<u8>>> {
        if !is_wanted(&plugin) {
            let name = String::from_utf8_lossy(plugin.as_bytes()).into_owned();
            return Err(SourceError::Server(2059, format!("Authentication plugin '{name}' cannot be loaded: a replica logs in by caching_sha2_password, sha256_password, mysql_native_password or client_ed25519")));
        }
        self.method = start(&plugin)?;
        self.plugin = plugin.into_owned();
        self.nonce = nonce.to_vec();
        self.answer(nonce)
    }

    /// What is to be sent, if anything. Error 2061 where the password would go under a key that nobody vouches for.
    pub fn answer(&mut self, challenge: &[u8]) -> Result<Option<Vec<u8>>> {
        let known = Known { password: self.settings.password.as_bytes(), tls: self.settings.ssl, nonce: &self.nonce, public_key: self.public_key.as_deref() };
        let response = self.method.run(known, challenge).map_err(|e| lost(format!("the login failed: {e}")))?;
        if asks_for_key(&self.method, &response) && !self.settings.get_public_key {
            let name = String::from_utf8_lossy(self.plugin.as_bytes()).into_owned();
            return Err(SourceError::Server(2061, format!("Authentication plugin '{name}' reported error: Authentication requires secure connection.")));
        }
        Ok(response.data().map(<[u8]>::to_vec))
    }
}

fn is_wanted(plugin: &AuthPlugin<'_>) -> bool {
    matches!(plugin, AuthPlugin::CachingSha2Password | AuthPlugin::Sha256Password | AuthPlugin::MysqlNativePassword | AuthPlugin::Ed25519)
}

fn start(plugin: &AuthPlugin<'_>) -> Result<AuthProc> {
    plugin.init().map_err(|e| lost(e.to_string()))
}

/// The answer is a request for the source's key. Whoever is between us and the source could send his own.
fn asks_for_key(method: &AuthProc, answer: &Response) -> bool {
    matches!((method, answer.data()), (AuthProc::CachingSha2Password(_), Some([2])) | (AuthProc::Sha256Password(_), Some([1])))
}

/// The key of SOURCE_PUBLIC_KEY_PATH. Without one that can be read it goes on as if none were named, as in MySQL.
fn public_key(settings: &Settings) -> Option<Vec<u8>> {
    let file = &settings.public_key_path;
    if file.is_empty() {
        return None;
    }
    match fs::read(file) {
        Ok(pem) if SubjectPublicKeyInfoDer::from_pem_slice(&pem).is_ok() => return Some(pem),
        Ok(_) => warn!("replica: Public key is not in PEM format: '{file}'"),
        Err(e) => warn!("replica: Can't locate server public key '{file}': {e}"),
    }
    None
}

/// What the methods ask about the connection.
struct Known<'a> {
    password: &'a [u8],
    tls: bool,
    nonce: &'a [u8],
    public_key: Option<&'a [u8]>,
}

impl Context for Known<'_> {
    fn pass(&self) -> &[u8] {
        self.password
    }

    fn is_ipc_transport(&self) -> bool {
        false
    }

    fn is_tls_transport(&self) -> bool {
        self.tls
    }

    fn scramble(&self) -> &[u8] {
        self.nonce
    }

    fn server_key_pem(&self) -> Option<&[u8]> {
        self.public_key
    }
}

#[cfg(test)]
mod tests {
    use rsa::pkcs8::{EncodePublicKey, LineEnding};
    use rsa::{Oaep, RsaPrivateKey};

    use super::*;

    const NONCE_OF_SOURCE: [u8; NONCE] = [7; NONCE];

    fn settings(change: impl FnOnce(&mut Settings)) -> Settings {
        let mut settings = Settings { password: "secret".into(), ..Settings::default() };
        change(&mut settings);
        settings
    }

    /// What a source gets that has not seen the password yet.
    fn to_a_source_that_wants_the_password(settings: &Settings) -> Result<Option<Vec<u8>>> {
        let (mut login, first) = Login::begin(settings, Some(AuthPlugin::CachingSha2Password), NONCE_OF_SOURCE.to_vec())?;
        assert_eq!(first.len(), 32);
        login.answer(&[4])
    }

    fn after_switch(settings: &Settings, plugin: AuthPlugin<'_>, nonce: &[u8]) -> Result<Option<Vec<u8>>> {
        let (mut login, first) = Login::begin(settings, None, NONCE_OF_SOURCE.to_vec())?;
        assert_eq!((first.len(), login.plugin()), (20, AuthPlugin::MysqlNativePassword));
        login.switch(plugin, nonce)
    }

    #[track_caller]
    fn refused(answer: Result<Option<Vec<u8>>>, name: &str) {
        let Err(SourceError::Server(2061, message)) = &answer else { panic!("{answer:?}") };
        assert_eq!(*message, format!("Authentication plugin '{name}' reported error: Authentication requires secure connection."));
    }

    #[test]
    fn the_sources_own_key_is_believed_only_on_request() {
        refused(to_a_source_that_wants_the_password(&settings(|_| {})), "caching_sha2_password");
        refused(after_switch(&settings(|_| {}), AuthPlugin::Sha256Password, &NONCE_OF_SOURCE), "sha256_password");
        refused(to_a_source_that_wants_the_password(&settings(|s| s.public_key_path = "/nonexistent/key".into())), "caching_sha2_password");
        let believing = settings(|s| s.get_public_key = true);
        assert_eq!(to_a_source_that_wants_the_password(&believing).unwrap(), Some(vec![2]));
        assert_eq!(after_switch(&believing, AuthPlugin::Sha256Password, &NONCE_OF_SOURCE).unwrap(), Some(vec![1]));
        let under_tls = settings(|s| s.ssl = true);
        assert_eq!(to_a_source_that_wants_the_password(&under_tls).unwrap(), Some(b"secret\0".to_vec()));
    }

    #[test]
    fn a_key_that_the_replica_has_is_used() {
        let key = RsaPrivateKey::new(&mut rsa::rand_core::OsRng, 1024).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("public_key.pem");
        fs::write(&file, key.to_public_key().to_public_key_pem(LineEnding::LF).unwrap()).unwrap();
        // It comes before one that the source would send.
        let settings = settings(|s| (s.public_key_path, s.get_public_key) = (file.to_str().unwrap().into(), true));
        for answer in [to_a_source_that_wants_the_password(&settings), after_switch(&settings, AuthPlugin::Sha256Password, &NONCE_OF_SOURCE)] {
            let password = key.decrypt(Oaep::new::<sha1::Sha1>(), &answer.unwrap().unwrap()).unwrap();
            assert_eq!(password, b"secret\0".map(|byte| byte ^ 7));
        }
    }

    /// A password of 32 bytes is a key as RFC 8032 has it: what `openssl pkeyutl -sign` says with it.
    #[test]
    fn mariadbs_ed25519_signs_the_nonce() {
        let answer = after_switch(&settings(|s| s.password = "correct horse battery staple 123".into()), AuthPlugin::from_bytes(b"client_ed25519"), &[7; 32]);
        let signature: String = answer.unwrap().unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(signature, "f77a1f0fd62c3d3b26da8bc086aa43289a6751384ebf042616636b1c3e734c0dcbb67d827bce8fbaa3862d9d885d103e38c194b99a6bd504663cec69162c0d03");
    }

    #[test]
    fn a_password_is_not_handed_out() {
        for plugin in [AuthPlugin::MysqlClearPassword, AuthPlugin::MysqlOldPassword, AuthPlugin::from_bytes(b"parsec"), AuthPlugin::from_bytes(b"dialog")] {
            let name = String::from_utf8_lossy(plugin.as_bytes()).into_owned();
            let answer = after_switch(&settings(|s| (s.ssl, s.get_public_key) = (true, true)), plugin, &NONCE_OF_SOURCE);
            assert!(matches!(&answer, Err(SourceError::Server(2059, message)) if message.contains(&format!("'{name}' cannot be loaded"))), "{answer:?}");
        }
    }
}
