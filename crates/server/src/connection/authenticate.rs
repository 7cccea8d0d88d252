//! The connection phase: greeting, TLS, who is it, is it true.

use std::collections::HashMap;
use std::io;

use highkey_protocol::{
    AuthPlugin, CachingSha2Digest, CapabilityFlags, ClientHello, Greeting, NONCE_LENGTH, SERVER_CAPABILITIES, auth_more_data,
    auth_switch_request, caching_sha2_digest, caching_sha2_fast_check, is_ssl_request, native, parse_client_hello, xor_with_nonce,
};
use highkey_sql::{Account, ClientFlags, ClientInfo, Session, StatusCounter, verify_caching_sha2};
use highkey_types::{Collation, MySqlError, errors};
use parking_lot::Mutex;
use rand::Rng;

use super::{Peer, Room, Wire, packet_error, plain_ok, refuse};
use crate::listen::Server;

const FAST_OK: &[u8] = &[3];
const SEND_PASSWORD: &[u8] = &[4];
const WANT_PUBLIC_KEY: &[u8] = &[2];

/// Digests of passwords proved once, by account; an entry counts only while the stored hash is the one it was proved against.
#[derive(Default)]
pub struct DigestCache(Mutex<HashMap<(String, String), (Vec<u8>, CachingSha2Digest)>>);

impl DigestCache {
    fn get(&self, account: &Account) -> Option<CachingSha2Digest> {
        let cache = self.0.lock();
        let (stored, digest) = cache.get(&(account.user.clone(), account.host.clone()))?;
        (*stored == account.authentication_string).then_some(*digest)
    }

    fn put(&self, account: &Account, digest: CachingSha2Digest) {
        let key = (account.user.clone(), account.host.clone());
        self.0.lock().insert(key, (account.authentication_string.clone(), digest));
    }
}

/// Takes a fresh connection to a session that is ready for commands. The capabilities are those that both sides have; CLIENT_PROGRESS_OBSOLETE
/// is among them exactly if the client takes progress reports.
pub async fn connect(server: &Server, mut wire: Wire, peer: &Peer, room: Room) -> io::Result<(Wire, Session, CapabilityFlags)> {
    let connection_id = server.instance.next_connection_id();
    let nonce = new_nonce();
    let mut offered = SERVER_CAPABILITIES;
    if server.tls.is_some() && !peer.local_socket {
        offered |= CapabilityFlags::CLIENT_SSL;
    }
    let greeting = Greeting {
        server_version: &server.instance.global_text("version"),
        connection_id: connection_id as u32,
        nonce: &nonce,
        capabilities: offered,
        collation: 255,
        auth_plugin: AuthPlugin::CachingSha2.name(),
    };
    wire.writer.packet(|out| greeting.encode(out));
    wire.flush().await?;

    let mut reply = wire.receive_reply().await?;
    if let (Ok(payload), Some(acceptor)) = (&reply, &server.tls)
        && is_ssl_request(payload)
    {
        wire = wire.start_tls(acceptor).await?;
        reply = wire.receive_reply().await?;
    }
    let payload = match reply {
        Ok(payload) => payload,
        Err(e) => return fail(&mut wire, CapabilityFlags::empty(), packet_error(&e)).await,
    };
    let Some(hello) = parse_client_hello(&payload) else {
        return fail(&mut wire, CapabilityFlags::empty(), errors::handshake_error()).await;
    };
    // As they came over the wire: each string behind its length.
    let bytes = |text: &str| text.len() + if text.len() < 251 { 1 } else { 3 };
    server.instance.note_connect_attributes(hello.attributes.iter().map(|(name, value)| bytes(name) + bytes(value)).sum::<usize>() as u64);
    let mut capabilities = hello.capabilities & offered;
    if hello.takes_progress() {
        capabilities |= CapabilityFlags::CLIENT_PROGRESS_OBSOLETE;
    }
    let client = match identify(server, &mut wire, peer, &hello, &nonce, capabilities, connection_id).await? {
        Ok(client) => client,
        Err(e) => return fail(&mut wire, capabilities, e).await,
    };
    let mut session = Session::new(server.instance.clone(), client);
    if room == Room::Kept && !session.administers_connections() {
        server.instance.count(StatusCounter::ConnectionErrorsMaxConnections, 1);
        return fail(&mut wire, capabilities, errors::con_count_error()).await;
    }
    session.process().set_attributes(hello.attributes);
    wire.process = Some(session.process().clone());
    if let Some(database) = &hello.database
        && let Err(e) = session.init_db(database)
    {
        return fail(&mut wire, capabilities, e).await;
    }
    if let Err(e) = session.run_init_connect().await {
        return fail(&mut wire, capabilities, e).await;
    }
    plain_ok(&mut wire, &session).await?;
    Ok((wire, session, capabilities))
}

async fn fail<T>(wire: &mut Wire, capabilities: CapabilityFlags, error: MySqlError) -> io::Result<T> {
    refuse(wire, capabilities, &error).await?;
    wire.shutdown().await;
    Err(io::Error::other(error.message))
}

/// 20 bytes without NUL and `$`, as clients take them for a string.
pub fn new_nonce() -> [u8; NONCE_LENGTH] {
    let mut rng = rand::rng();
    std::array::from_fn(|_| loop {
        let byte = rng.random_range(1..=127);
        if byte != b'$' {
            return byte;
        }
    })
}

/// Checks who a client says it is; also COM_CHANGE_USER's work. The outer error is a broken connection.
pub async fn identify(
    server: &Server,
    wire: &mut Wire,
    peer: &Peer,
    hello: &ClientHello,
    nonce: &[u8; NONCE_LENGTH],
    capabilities: CapabilityFlags,
    connection_id: u64,
) -> io::Result<Result<ClientInfo, MySqlError>> {
    let account = server.instance.account(&hello.user, &peer.host);
    let denied = |used: bool| errors::access_denied_error(&hello.user, &peer.host, if used { "YES" } else { "NO" });
    let plugin = account.as_ref().map_or(Some(AuthPlugin::CachingSha2), |a| AuthPlugin::by_name(&a.plugin));
    let Some(plugin) = plugin else { return Ok(Err(denied(true))) };
    let mut response = hello.auth_response.clone();
    let asked = hello.auth_plugin.as_deref();
    if capabilities.contains(CapabilityFlags::CLIENT_PLUGIN_AUTH) {
        // A client whose plugin is not the one the greeting was for says nothing yet, and waits for data for its own.
        let waits = response.is_empty() && account.as_ref().is_none_or(|a| !a.authentication_string.is_empty());
        if asked != Some(plugin.name()) || waits {
            wire.writer.packet(|out| auth_switch_request(plugin.name(), nonce, out));
            wire.flush().await?;
            response = match wire.receive_reply().await? {
                Ok(reply) => reply,
                Err(e) => return Ok(Err(packet_error(&e))),
            };
        }
    } else if plugin != AuthPlugin::Native {
        return Ok(Err(errors::not_supported_auth_mode()));
    }
    let used_password = response.iter().any(|&b| b != 0);
    let Some(account) = account else { return Ok(Err(denied(used_password))) };
    let stored = String::from_utf8_lossy(&account.authentication_string).into_owned();
    let proved = match plugin {
        AuthPlugin::Native => native::check(&stored, nonce, &response),
        AuthPlugin::CachingSha2 => caching_sha2_exchange(server, wire, peer, &account, &stored, nonce, &response).await?,
    };
    if !proved {
        return Ok(Err(denied(used_password)));
    }
    // Only who knows the password is told.
    if account.locked {
        return Ok(Err(errors::account_has_been_locked(&hello.user, &peer.host)));
    }
    if account.password_expired && !capabilities.contains(CapabilityFlags::CLIENT_CAN_HANDLE_EXPIRED_PASSWORDS) {
        return Ok(Err(errors::must_change_password_login()));
    }
    // What has been asked of the login is asked of nobody else.
    let password_expired = account.password_expired;
    let proxied = server.instance.proxied_account(&account, &peer.host);
    let proxy_user = proxied.as_ref().map(|_| format!("'{}'@'{}'", account.user, account.host));
    let account = proxied.unwrap_or(account);
    let collation = if Collation::by_id(hello.collation).is_some() { hello.collation } else { 255 };
    Ok(Ok(ClientInfo {
        connection_id,
        user: hello.user.clone(),
        client_host: peer.host.clone(),
        client_address: peer.address.clone(),
        account_user: account.user.clone(),
        account_host: account.host.clone(),
        proxy_user,
        unrestricted: false,
        password_expired,
        flags: ClientFlags {
            found_rows: capabilities.contains(CapabilityFlags::CLIENT_FOUND_ROWS),
            interactive: capabilities.contains(CapabilityFlags::CLIENT_INTERACTIVE),
            multi_statements: capabilities.contains(CapabilityFlags::CLIENT_MULTI_STATEMENTS),
            local_files: capabilities.contains(CapabilityFlags::CLIENT_LOCAL_FILES),
            multi_results: capabilities.contains(CapabilityFlags::CLIENT_MULTI_RESULTS) || capabilities.contains(CapabilityFlags::CLIENT_MULTI_STATEMENTS),
            ps_multi_results: capabilities.contains(CapabilityFlags::CLIENT_PS_MULTI_RESULTS),
        },
        collation,
        tls_cipher: wire.tls.as_ref().map(|tls| tls.cipher.clone()),
        tls_version: wire.tls.as_ref().map(|tls| tls.version.clone()),
    }))
}

async fn caching_sha2_exchange(
    server: &Server,
    wire: &mut Wire,
    peer: &Peer,
    account: &Account,
    stored: &str,
    nonce: &[u8; NONCE_LENGTH],
    response: &[u8],
) -> io::Result<bool> {
    // An empty password travels as nothing, or as its terminating NUL.
    if response.is_empty() || response == [0] {
        return Ok(stored.is_empty());
    }
    if stored.is_empty() {
        return Ok(false);
    }
    if let Some(digest) = server.digests.get(account)
        && caching_sha2_fast_check(&digest, nonce, response)
    {
        wire.writer.packet(|out| auth_more_data(FAST_OK, out));
        return Ok(true);
    }
    wire.writer.packet(|out| auth_more_data(SEND_PASSWORD, out));
    wire.flush().await?;
    let Ok(mut reply) = wire.receive_reply().await? else { return Ok(false) };
    let password = if wire.tls.is_some() || peer.local_socket {
        reply
    } else {
        if reply == WANT_PUBLIC_KEY {
            let pem = tokio::task::block_in_place(|| server.password_key.public_pem())?;
            server.instance.set_password_key(&pem);
            wire.writer.packet(|out| auth_more_data(pem.as_bytes(), out));
            wire.flush().await?;
            let Ok(encrypted) = wire.receive_reply().await? else { return Ok(false) };
            reply = encrypted;
        }
        match tokio::task::block_in_place(|| server.password_key.decrypt(&reply)) {
            Some(data) => xor_with_nonce(&data, nonce),
            None => return Ok(false),
        }
    };
    let password = password.strip_suffix(&[0]).unwrap_or(&password);
    let proved = tokio::task::block_in_place(|| (stored.is_empty() && password.is_empty()) || verify_caching_sha2(stored.as_bytes(), password));
    if proved {
        server.digests.put(account, caching_sha2_digest(password));
    }
    Ok(proved)
}


