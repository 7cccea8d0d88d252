//! One client's connection: handshake, authentication, then command after command until it leaves.

mod authenticate;
mod commands;
mod dump;
mod idle;
mod progress;
mod sink;
mod watch;
mod wire;

use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use highkey_protocol::{CapabilityFlags, OkInfo, PacketError, StatusFlags, encode_error, encode_ok};
use highkey_sql::{Session, StatusCounter};
use highkey_types::{MySqlError, errors};
use tracing::{debug, error, info};

pub use authenticate::DigestCache;
pub use dump::Dumps;
pub use watch::watch_clients;
pub use wire::{Stream, Wire, iana_name};

use crate::listen::Server;

const MIN_CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a client may take to say and prove who it is (`connect_timeout`).
fn connect_timeout(server: &Server) -> Duration {
    Duration::from_secs(server.instance.global_u64("connect_timeout")).max(MIN_CONNECT_TIMEOUT)
}

/// Where a client comes from.
pub struct Peer {
    /// For accounts and USER(): loopback and local sockets are `localhost`.
    pub host: String,
    /// For SHOW PROCESSLIST.
    pub address: String,
    /// A local socket: passwords may travel in the clear.
    pub local_socket: bool,
}

impl Peer {
    pub fn tcp(address: SocketAddr) -> Self {
        let ip = address.ip().to_canonical();
        let host = if ip.is_loopback() { "localhost".to_string() } else { ip.to_string() };
        Self { address: format!("{host}:{}", address.port()), host, local_socket: false }
    }

    pub fn local() -> Self {
        Self { host: "localhost".into(), address: "localhost".into(), local_socket: true }
    }
}

/// Whether there is room for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// For everybody.
    Free,
    /// `max_connections` are there: one more may come, of an account that can end others.
    Kept,
    None,
}

impl Room {
    /// For the last of `connected`.
    pub fn of(connected: u64, max_connections: u64) -> Room {
        match connected.saturating_sub(max_connections) {
            0 => Room::Free,
            1 => Room::Kept,
            _ => Room::None,
        }
    }
}

/// Serves one connection to its end.
pub async fn run(server: &Server, mut wire: Wire, peer: Peer, room: Room) {
    if room == Room::None {
        server.instance.count(StatusCounter::ConnectionErrorsMaxConnections, 1);
        let _ = refuse(&mut wire, CapabilityFlags::empty(), &errors::con_count_error()).await;
        return;
    }
    // Boxed, here and below: the compiler cannot show otherwise that these long futures are Send.
    let connected = tokio::time::timeout(connect_timeout(server), authenticate::connect(server, wire, &peer, room).boxed()).await;
    let (mut wire, mut session, capabilities) = match connected {
        Ok(Ok(connected)) => connected,
        Ok(Err(e)) => {
            server.instance.count(StatusCounter::AbortedConnects, 1);
            debug!("connection from {} failed: {e}", peer.address);
            return;
        }
        Err(_) => {
            server.instance.count(StatusCounter::AbortedConnects, 1);
            return;
        }
    };
    session.process().set_client(watch::has_left(&wire));
    let served = commands::serve(server, &mut wire, &mut session, &peer, capabilities).boxed();
    match AssertUnwindSafe(served).catch_unwind().await {
        Ok(Ok(())) => {}
        Ok(Err(e)) => {
            server.instance.count(StatusCounter::AbortedClients, 1);
            info!("connection {} from {} ended: {e}", session.client().connection_id, peer.address);
        }
        // A defect of ours ends this connection, whose state nobody can vouch for, and no other.
        Err(_) => {
            server.instance.count(StatusCounter::AbortedClients, 1);
            error!("connection {} from {} ended by a panic", session.client().connection_id, peer.address);
            wire.writer.clear();
            let _ = refuse(&mut wire, capabilities, &errors::unknown_error("Internal error; the connection is closed. See the server log.")).await;
        }
    }
    session.close().await;
    wire.shutdown().await;
}

/// Sends an error outside any statement.
async fn refuse(wire: &mut Wire, capabilities: CapabilityFlags, error: &MySqlError) -> std::io::Result<()> {
    wire.writer.packet(|out| encode_error(out, error, capabilities));
    wire.flush().await
}

/// Sends an OK with nothing to tell but the session's state.
async fn plain_ok(wire: &mut Wire, session: &Session) -> std::io::Result<()> {
    let status = StatusFlags::from_bits_retain(session.status_flags().0);
    wire.writer.packet(|out| encode_ok(out, &OkInfo { affected_rows: 0, last_insert_id: 0, status, warnings: 0, info: "" }));
    wire.flush().await
}

/// The error a broken packet stream ends with.
fn packet_error(error: &PacketError) -> MySqlError {
    match error {
        PacketError::TooLarge => errors::net_packet_too_large(),
        PacketError::OutOfOrder => errors::net_packets_out_of_order(),
    }
}
