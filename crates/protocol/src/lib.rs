//! The MySQL client/server protocol as pure functions between bytes and packets.
//!
//! There are no sockets here: [`PacketReader`] is fed bytes and hands out payloads, the `encode_*` functions append
//! payloads to a [`PacketWriter`], and the authentication exchange is a set of functions over byte strings. The server
//! crate owns the connection. Layouts follow MySQL's "Client/Server Protocol" manual; constants and the handshake
//! codecs come from `mysql_common`.
#![forbid(unsafe_code)]

mod auth;
mod command;
mod handshake;
mod packet;
mod result;

pub use auth::{
    AuthPlugin, CachingSha2Digest, NONCE_LENGTH, caching_sha2_digest, caching_sha2_fast_check, native, xor_with_nonce,
};
pub use command::{Command, DumpRequest, ExecuteRequest, ParameterType, ReplicaRegistration, execute_statement_id, parse_command, parse_execute};
pub use handshake::{
    ClientHello, Greeting, SERVER_CAPABILITIES, auth_more_data, auth_switch_request, parse_change_user, parse_client_hello,
    is_ssl_request,
};
pub use mysql_common::constants::{CapabilityFlags, StatusFlags};
pub use packet::{MAX_PAYLOAD, PacketError, PacketReader, PacketWriter};
pub use result::{
    ColumnDefinition, OkInfo, encode_binary_row, encode_column, encode_eof, encode_error, encode_local_infile, encode_ok,
    encode_ok_eof, encode_prepare_ok, encode_progress, encode_text_row, put_lenenc_bytes, put_lenenc_int,
};
