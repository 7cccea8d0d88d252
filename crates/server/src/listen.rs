//! Start, accept, stop.

use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use highkey_sql::{Instance, Settings, StatusCounter};
use highkey_table::Database;
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::signal::unix::{SignalKind, signal};
use tokio_rustls::TlsAcceptor;
use tracing::{error, info, warn};

use crate::cli::ServeOptions;
use crate::connection::{self, Peer, Wire};
use crate::keys::{self, PasswordKey};
use crate::replica::Replica;

/// How long connections may take to notice a shutdown before it goes on without them.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);

/// How many threads may block beside the workers. A session that waits in SLEEP, GET_LOCK or for a replica's position holds one (README.md of
/// sql/src/session, "Waits that hold a thread"), and were there none left nobody could end what it waits for: so as many as `max_connections` can be
/// set to, and some for the server itself. They are made when they are needed and end when they are idle.
const BLOCKING_THREADS_MAX: usize = 100_000 + 1_000;

/// What every connection needs.
pub struct Server {
    pub instance: Arc<Instance>,
    pub tls: Option<TlsAcceptor>,
    pub password_key: PasswordKey,
    pub digests: connection::DigestCache,
    pub dumps: connection::Dumps,
    connected: AtomicU64,
}

/// Connections, tables and batches that are spilled have a file each: as many as the system allows, not as it begins with.
fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(e) = setrlimit(Resource::Nofile, limit) {
        warn!("the limit of open files stays as it is: {e}");
    }
}

/// Runs the server; returns when it has shut down.
pub fn serve(options: ServeOptions) -> ExitCode {
    tracing_subscriber::fmt()
        .with_writer(io::stderr)
        // Colours are for a terminal; a log file is read by other programs.
        .with_ansi(io::stderr().is_terminal())
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_env("HIGHKEY_LOG").unwrap_or_else(|_| "info,datafusion=warn".into()),
        )
        .init();
    for warning in options.settings.warnings() {
        warn!("{warning}");
    }
    raise_file_limit();
    let cores = std::thread::available_parallelism().map_or(2, |n| n.get());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // As many as can run, and one for those that read a page from disk.
        .worker_threads(cores + 1)
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .thread_name("highkey-worker")
        .thread_stack_size(8 << 20)
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(e) => {
            error!("cannot start: {e}");
            return ExitCode::FAILURE;
        }
    };
    let result = runtime.block_on(run(&options));
    runtime.shutdown_timeout(Duration::from_secs(1));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            error!("{message}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: &ServeOptions) -> Result<(), String> {
    let datadir = &options.datadir;
    std::fs::create_dir_all(datadir).map_err(|e| format!("cannot create {}: {e}", datadir.display()))?;
    let database = Database::open_with(datadir, engine_options(&options.settings), highkey_sql::binlog_options(&options.settings)).map_err(|e| format!("cannot open {}: {e}", datadir.display()))?;
    let tls = keys::tls_acceptor(datadir, &options.settings.text("ssl_cert"), &options.settings.text("ssl_key"));
    let tls = tls.inspect_err(|e| warn!("no TLS: {e}")).ok();
    let instance = Instance::new(database.clone(), &options.settings).map_err(|e| e.to_string())?;
    let tls = tls.map(|(acceptor, told)| {
        instance.set_tls(told);
        acceptor
    });
    if let Ok(pem) = std::fs::read_to_string(datadir.join("public_key.pem")) {
        instance.set_password_key(&pem);
    }
    if instance.bootstrap_root().await.map_err(|e| e.message)? {
        warn!("root@localhost has no password; set one: ALTER USER root@localhost IDENTIFIED BY '…'");
    }
    let replica = Replica::open(instance.clone()).map_err(|e| format!("cannot open {}: {e}", datadir.display()))?;
    instance.set_replica(replica.clone());
    let server = Arc::new(Server {
        instance: instance.clone(),
        tls,
        password_key: PasswordKey::new(datadir),
        digests: connection::DigestCache::default(),
        dumps: connection::Dumps::default(),
        connected: AtomicU64::new(0),
    });

    let address = SocketAddr::new(options.bind, options.port);
    let tcp = listen_tcp(address).map_err(|e| format!("cannot listen on {address}: {e}"))?;
    let local = match &options.socket {
        Some(path) => Some(listen_unix(path).map_err(|e| format!("cannot listen on {}: {e}", path.display()))?),
        None => None,
    };
    let bound = tcp.local_addr().map_err(|e| e.to_string())?;
    info!("ready for connections on {bound}{}", options.socket.as_ref().map_or(String::new(), |s| format!(" and {}", s.display())));

    replica.start_with_server().await;
    let clients = tokio::spawn(connection::watch_clients(instance.clone()));
    let (stop_events, stopped) = tokio::sync::watch::channel(false);
    let events = tokio::spawn(highkey_sql::run_events(instance.clone(), stopped));
    accept_until_shutdown(&server, tcp, local).await?;
    clients.abort();
    if let Some(binlog) = server.instance.database().binlog() {
        // Nobody waits for replicas any more.
        binlog.semi_sync().stop();
    }

    info!("shutting down");
    replica.shut_down().await;
    stop_events.send_replace(true);
    for process in instance.processes().all() {
        process.interrupt(highkey_sql::Interruption::Connection);
    }
    let deadline = tokio::time::Instant::now() + SHUTDOWN_GRACE;
    while server.connected.load(Ordering::Acquire) > 0 && tokio::time::Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let _ = tokio::time::timeout_at(deadline, events).await;
    if let Some(path) = &options.socket {
        let _ = std::fs::remove_file(path);
    }
    let stopped = tokio::task::spawn_blocking(move || database.shutdown()).await;
    match stopped {
        Ok(Ok(())) => info!("stopped cleanly"),
        Ok(Err(e)) => return Err(format!("shutdown: {e}")),
        Err(e) => return Err(format!("shutdown: {e}")),
    }
    Ok(())
}

/// What the engine needs of the system variables.
pub fn engine_options(settings: &Settings) -> highkey_table::Options {
    highkey_table::Options {
        buffer_pool_bytes: settings.u64("innodb_buffer_pool_size"),
        redo_log_capacity: settings.u64("innodb_redo_log_capacity"),
        log_buffer_bytes: settings.u64("innodb_log_buffer_size") as usize,
        flush_log_at_commit: settings.u64("innodb_flush_log_at_trx_commit") as u8,
        doublewrite: settings.bool("innodb_doublewrite"),
        lock_wait_timeout: Duration::from_secs(settings.u64("innodb_lock_wait_timeout")),
        deadlock_detect: settings.bool("innodb_deadlock_detect"),
        fill_factor: settings.u64("innodb_fill_factor") as u8,
        io_capacity: settings.u64("innodb_io_capacity").min(u32::MAX.into()) as u32,
        ..highkey_table::Options::default()
    }
}

fn listen_tcp(address: SocketAddr) -> io::Result<TcpListener> {
    let domain = if address.is_ipv6() { socket2::Domain::IPV6 } else { socket2::Domain::IPV4 };
    let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(1500)?;
    TcpListener::from_std(socket.into())
}

fn listen_unix(path: &Path) -> io::Result<UnixListener> {
    // A socket file of a server that is gone; the data directory's lock says that it is not ours.
    if std::fs::symlink_metadata(path).is_ok_and(|m| m.file_type().is_socket()) && std::os::unix::net::UnixStream::connect(path).is_err() {
        std::fs::remove_file(path)?;
    }
    UnixListener::bind(path)
}

async fn accept_until_shutdown(server: &Arc<Server>, tcp: TcpListener, local: Option<UnixListener>) -> Result<(), String> {
    let mut terminate = signal(SignalKind::terminate()).map_err(|e| e.to_string())?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|e| e.to_string())?;
    let mut requested = server.instance.shutdown_requested();
    loop {
        tokio::select! {
            accepted = tcp.accept() => match accepted {
                Ok((stream, address)) => accept_tcp(server, stream, address),
                Err(e) => pause_after_accept_error(server, &e).await,
            },
            accepted = async { local.as_ref().expect("guarded").accept().await }, if local.is_some() => match accepted {
                Ok((stream, _)) => spawn(server, Wire::new(Box::new(stream), server.instance.clone()), Peer::local()),
                Err(e) => pause_after_accept_error(server, &e).await,
            },
            _ = terminate.recv() => return Ok(()),
            _ = interrupt.recv() => return Ok(()),
            _ = requested.wait_for(|wanted| *wanted) => return Ok(()),
        }
    }
}

/// Out of file descriptors: the connections that exist go on.
async fn pause_after_accept_error(server: &Server, e: &io::Error) {
    server.instance.count(StatusCounter::ConnectionErrorsAccept, 1);
    warn!("accept: {e}");
    tokio::time::sleep(Duration::from_millis(100)).await;
}

/// A client that says nothing for so long is asked by the system whether it is there still.
const KEEPALIVE: Duration = Duration::from_secs(120);

fn accept_tcp(server: &Arc<Server>, stream: TcpStream, address: SocketAddr) {
    let _ = stream.set_nodelay(true);
    let _ = socket2::SockRef::from(&stream).set_tcp_keepalive(&socket2::TcpKeepalive::new().with_time(KEEPALIVE));
    spawn(server, Wire::new(Box::new(stream), server.instance.clone()), Peer::tcp(address));
}

fn spawn(server: &Arc<Server>, wire: Wire, peer: Peer) {
    let server = server.clone();
    let connected = server.connected.fetch_add(1, Ordering::AcqRel) + 1;
    server.instance.count(StatusCounter::Connections, 1);
    let room = connection::Room::of(connected, server.instance.global_u64("max_connections").max(1));
    tokio::spawn(async move {
        let counted = Counted(server.clone());
        connection::run(&server, wire, peer, room).await;
        drop(counted);
    });
}

/// Counts a connection down however its task ends.
struct Counted(Arc<Server>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.connected.fetch_sub(1, Ordering::AcqRel);
    }
}
