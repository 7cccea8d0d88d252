//! The connection phase: greeting, the client's answer, TLS request, authentication switches.

use mysql_common::constants::{CapabilityFlags, StatusFlags};
use mysql_common::io::ParseBuf;
use mysql_common::packets::{HandshakePacket, HandshakeResponse};
use mysql_common::proto::{MyDeserialize, MySerialize};

/// What this server can do; TLS and compression are added by the server when they are available.
pub const SERVER_CAPABILITIES: CapabilityFlags = CapabilityFlags::CLIENT_LONG_PASSWORD
    .union(CapabilityFlags::CLIENT_FOUND_ROWS)
    .union(CapabilityFlags::CLIENT_LONG_FLAG)
    .union(CapabilityFlags::CLIENT_CONNECT_WITH_DB)
    .union(CapabilityFlags::CLIENT_NO_SCHEMA)
    .union(CapabilityFlags::CLIENT_ODBC)
    .union(CapabilityFlags::CLIENT_LOCAL_FILES)
    .union(CapabilityFlags::CLIENT_IGNORE_SPACE)
    .union(CapabilityFlags::CLIENT_PROTOCOL_41)
    .union(CapabilityFlags::CLIENT_INTERACTIVE)
    .union(CapabilityFlags::CLIENT_IGNORE_SIGPIPE)
    .union(CapabilityFlags::CLIENT_TRANSACTIONS)
    .union(CapabilityFlags::CLIENT_RESERVED)
    .union(CapabilityFlags::CLIENT_SECURE_CONNECTION)
    .union(CapabilityFlags::CLIENT_MULTI_STATEMENTS)
    .union(CapabilityFlags::CLIENT_MULTI_RESULTS)
    .union(CapabilityFlags::CLIENT_PS_MULTI_RESULTS)
    .union(CapabilityFlags::CLIENT_PLUGIN_AUTH)
    .union(CapabilityFlags::CLIENT_CONNECT_ATTRS)
    .union(CapabilityFlags::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA)
    .union(CapabilityFlags::CLIENT_CAN_HANDLE_EXPIRED_PASSWORDS)
    .union(CapabilityFlags::CLIENT_DEPRECATE_EOF);

/// The server's first packet.
pub struct Greeting<'a> {
    pub server_version: &'a str,
    pub connection_id: u32,
    /// 20 bytes, none of them NUL.
    pub nonce: &'a [u8; super::NONCE_LENGTH],
    pub capabilities: CapabilityFlags,
    /// Low byte of the default collation's id.
    pub collation: u8,
    pub auth_plugin: &'a str,
}

impl Greeting<'_> {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let (first, second) = self.nonce.split_at(8);
        let mut rest = second.to_vec();
        rest.push(0);
        HandshakePacket::new(
            10,
            self.server_version.as_bytes(),
            self.connection_id,
            first.try_into().expect("8 bytes"),
            Some(rest),
            self.capabilities,
            self.collation,
            StatusFlags::SERVER_STATUS_AUTOCOMMIT,
            Some(self.auth_plugin.as_bytes()),
        )
        .serialize(out);
    }
}

/// The client's answer to the greeting, or a COM_CHANGE_USER.
#[derive(Debug, Default)]
pub struct ClientHello {
    pub capabilities: CapabilityFlags,
    /// Collation id; only its low byte travels in the handshake response.
    pub collation: u16,
    pub user: String,
    pub auth_response: Vec<u8>,
    pub database: Option<String>,
    pub auth_plugin: Option<String>,
    pub attributes: Vec<(String, String)>,
}

impl ClientHello {
    /// Whether the client takes progress reports ([`crate::encode_progress`]). MariaDB's command line sets the bit on a terminal, to any
    /// server; its library takes the reports whoever the server is, with or without somebody listening. To every other library a report
    /// is an error, and MySQL keeps the bit for something else: so both the bit and the library's name are asked for.
    pub fn takes_progress(&self) -> bool {
        let library = self.attributes.iter().any(|(name, value)| name == "_client_name" && value == "libmariadb");
        library && self.capabilities.contains(CapabilityFlags::CLIENT_PROGRESS_OBSOLETE)
    }
}

/// Whether this first answer is only a request for TLS (32 bytes: the fixed head of the answer with CLIENT_SSL set).
pub fn is_ssl_request(payload: &[u8]) -> bool {
    payload.len() == 32
        && CapabilityFlags::from_bits_retain(u32::from_le_bytes([payload[0], payload[1], payload[2], payload[3]]))
            .contains(CapabilityFlags::CLIENT_SSL)
}

/// Parses the answer to the greeting; `None` if it is malformed (error 1043).
pub fn parse_client_hello(payload: &[u8]) -> Option<ClientHello> {
    // mysql_common asks for protocol 4.1, as this server does.
    let head = payload.get(..4)?;
    let capabilities = CapabilityFlags::from_bits_retain(u32::from_le_bytes(head.try_into().ok()?));
    if !capabilities.contains(CapabilityFlags::CLIENT_PROTOCOL_41) {
        return None;
    }
    let response = HandshakeResponse::deserialize((), &mut ParseBuf(payload)).ok()?;
    Some(ClientHello {
        capabilities,
        collation: u16::from(response.collation()),
        user: String::from_utf8_lossy(response.user()).into_owned(),
        auth_response: response.scramble_buf().to_vec(),
        database: response.db_name().filter(|name| !name.is_empty()).map(|name| String::from_utf8_lossy(name).into_owned()),
        auth_plugin: response.auth_plugin().map(|plugin| String::from_utf8_lossy(plugin.as_bytes()).into_owned()),
        attributes: response.connect_attributes().map(|all| all.into_iter().collect()).unwrap_or_default(),
    })
}

/// Parses COM_CHANGE_USER (without its command byte); `None` if it is malformed.
pub fn parse_change_user(payload: &[u8], capabilities: CapabilityFlags) -> Option<ClientHello> {
    let mut rest = payload;
    let user = take_null_string(&mut rest)?;
    let (&length, after) = rest.split_first()?;
    let auth_response = after.get(..usize::from(length))?.to_vec();
    rest = &after[usize::from(length)..];
    let database = take_null_string(&mut rest)?;
    let mut hello = ClientHello {
        capabilities,
        user,
        auth_response,
        database: Some(database).filter(|name| !name.is_empty()),
        ..ClientHello::default()
    };
    if rest.len() >= 2 {
        hello.collation = u16::from_le_bytes([rest[0], rest[1]]);
        rest = &rest[2..];
        if capabilities.contains(CapabilityFlags::CLIENT_PLUGIN_AUTH) && !rest.is_empty() {
            hello.auth_plugin = take_null_string(&mut rest);
        }
    }
    Some(hello)
}

fn take_null_string(rest: &mut &[u8]) -> Option<String> {
    let end = rest.iter().position(|&b| b == 0)?;
    let text = String::from_utf8_lossy(&rest[..end]).into_owned();
    *rest = &rest[end + 1..];
    Some(text)
}

/// Asks the client to authenticate by another method.
pub fn auth_switch_request(plugin: &str, nonce: &[u8], out: &mut Vec<u8>) {
    out.push(0xFE);
    out.extend_from_slice(plugin.as_bytes());
    out.push(0);
    out.extend_from_slice(nonce);
    out.push(0);
}

/// Extra data of an authentication exchange.
pub fn auth_more_data(data: &[u8], out: &mut Vec<u8>) {
    out.push(0x01);
    out.extend_from_slice(data);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_library_reads_the_greeting() {
        let nonce = *b"abcdefghijklmnopqrst";
        let greeting = Greeting {
            server_version: "8.0.99-test",
            connection_id: 7,
            nonce: &nonce,
            capabilities: SERVER_CAPABILITIES,
            collation: 255,
            auth_plugin: "caching_sha2_password",
        };
        let mut out = Vec::new();
        greeting.encode(&mut out);
        let parsed = HandshakePacket::deserialize((), &mut ParseBuf(&out)).unwrap();
        assert_eq!(parsed.connection_id(), 7);
        assert_eq!(parsed.nonce()[..20], nonce);
        assert_eq!(parsed.auth_plugin_name_ref(), Some(&b"caching_sha2_password"[..]));
    }

    #[test]
    fn progress_goes_to_those_who_say_that_they_know_it() {
        let hello = |capabilities, library: &str| ClientHello {
            capabilities,
            attributes: vec![("_os".into(), "Linux".into()), ("_client_name".into(), library.into())],
            ..ClientHello::default()
        };
        let bit = SERVER_CAPABILITIES | CapabilityFlags::CLIENT_PROGRESS_OBSOLETE;
        assert!(hello(bit, "libmariadb").takes_progress());
        assert!(!hello(bit, "libmysql").takes_progress());
        assert!(!hello(SERVER_CAPABILITIES, "libmariadb").takes_progress());
        assert!(!ClientHello { capabilities: bit, ..ClientHello::default() }.takes_progress());
    }

    #[test]
    fn malformed_answers_are_refused() {
        let mut good = Vec::new();
        good.extend_from_slice(&SERVER_CAPABILITIES.bits().to_le_bytes());
        good.extend_from_slice(&[0; 28]);
        assert!(!is_ssl_request(&good));
        for cut in 0..good.len() {
            assert!(parse_client_hello(&good[..cut]).is_none(), "cut at {cut}");
        }
        assert!(parse_change_user(b"root", SERVER_CAPABILITIES).is_none());
        let hello = parse_change_user(b"root\0\x02abdb\0\x2d\0plug\0", SERVER_CAPABILITIES).unwrap();
        assert_eq!((hello.user.as_str(), hello.auth_response.as_slice(), hello.collation), ("root", &b"ab"[..], 45));
        assert_eq!((hello.database.as_deref(), hello.auth_plugin.as_deref()), (Some("db"), Some("plug")));
    }
}
