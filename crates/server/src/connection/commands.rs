//! The command phase.

use std::collections::HashMap;
use std::io;

use futures::FutureExt;
use highkey_protocol::{
    CapabilityFlags, Command, OkInfo, ParameterType, StatusFlags, encode_column, encode_eof, encode_error, encode_ok_eof, encode_prepare_ok,
    execute_statement_id, parse_change_user, parse_command, parse_execute,
};
use highkey_sql::{Column, Session, StatusCounter};
use highkey_types::{MySqlError, Value, errors};

use super::authenticate::{identify, new_nonce};
use super::dump;
use super::idle::IdleTimer;
use super::sink::{PacketSink, RowFormat, column_definition, put_column_and_value};
use super::{Peer, Wire, connect_timeout, packet_error, plain_ok, refuse};
use crate::listen::Server;

/// What the protocol keeps of a prepared statement; the rest is the session's.
#[derive(Default)]
struct Bound {
    types: Vec<ParameterType>,
    long_data: Vec<(u16, Vec<u8>)>,
    /// What was wrong with long data, which has no answer of its own: told by the next execution.
    long_data_error: Option<MySqlError>,
    /// Of the open cursor's rows.
    format: RowFormat,
}

impl Bound {
    /// Keeps a piece of a parameter, up to `limit` bytes (`max_allowed_packet`) of a statement with `count` parameters.
    fn add_long_data(&mut self, parameter: u16, data: &[u8], count: usize, limit: usize) {
        if usize::from(parameter) >= count {
            self.long_data_error = Some(errors::wrong_arguments("mysqld_stmt_send_long_data"));
            return;
        }
        let at = self.long_data.iter().position(|(at, _)| *at == parameter).unwrap_or_else(|| {
            self.long_data.push((parameter, Vec::new()));
            self.long_data.len() - 1
        });
        let so_far = &mut self.long_data[at].1;
        if so_far.len() + data.len() > limit {
            let text = "Parameter of prepared statement which is set through mysql_send_long_data() is longer than 'max_allowed_packet' bytes";
            self.long_data_error = Some(errors::unknown_error(text));
            return;
        }
        so_far.extend_from_slice(data);
    }

    fn clear_long_data(&mut self) {
        self.long_data.clear();
        self.long_data_error = None;
    }
}

/// Serves commands until the client quits (`Ok`) or the connection breaks.
pub async fn serve(
    server: &Server,
    wire: &mut Wire,
    session: &mut Session,
    peer: &Peer,
    mut capabilities: CapabilityFlags,
) -> io::Result<()> {
    let mut bound: HashMap<u32, Bound> = HashMap::new();
    let mut idle = IdleTimer::new();
    loop {
        // The command before may have changed them.
        wire.reader.set_max_allowed(session.max_allowed_packet() as usize);
        wire.write_timeout = session.net_write_timeout();
        let Some(packet) = next_packet(wire, session, &mut idle, capabilities).await? else { return Ok(()) };
        let Some(command) = parse_command(&packet) else {
            refuse(wire, capabilities, &errors::malformed_packet()).await?;
            continue;
        };
        let refused = session.must_change_password()
            && !matches!(command, Command::Query(_) | Command::StmtSendLongData { .. } | Command::StmtClose(_) | Command::Ping | Command::Quit);
        let done = match command {
            Command::Quit => return Ok(()),
            _ if refused => Err(errors::must_change_password()),
            Command::Query(sql) => {
                let mut sink = PacketSink::new(wire, capabilities, false).reporting(session);
                session.execute(sql, &mut sink).await?;
                Ok(())
            }
            Command::StmtPrepare(sql) => prepare(wire, session, capabilities, sql).await,
            Command::StmtExecute(request) => execute(wire, session, capabilities, &mut bound, request).await?,
            Command::StmtSendLongData { statement, parameter, data } => {
                session.process().status().add(StatusCounter::ComStmtSendLongData, 1);
                // Data for no statement is dropped, as by MySQL: nobody would ever ask for it.
                if let Some(count) = session.prepared_params(statement) {
                    let limit = session.max_allowed_packet() as usize;
                    bound.entry(statement).or_default().add_long_data(parameter, data, count, limit);
                }
                continue; // No answer by design of the protocol.
            }
            Command::StmtClose(id) => {
                bound.remove(&id);
                session.close_prepared(id);
                continue; // No answer either.
            }
            Command::StmtReset(id) => {
                if let Some(bound) = bound.get_mut(&id) {
                    bound.clear_long_data();
                }
                let done = session.reset_prepared(id);
                ok_of(wire, session, done).await?
            }
            Command::StmtFetch { statement, rows } => {
                let format = bound.get(&statement).map(|b| b.format.clone()).unwrap_or_default();
                let mut sink = PacketSink::new(wire, capabilities, true).fetching(format);
                session.fetch(statement, rows as usize, &mut sink).await?;
                Ok(())
            }
            Command::InitDb(name) => {
                let done = session.init_db(&String::from_utf8_lossy(name));
                ok_of(wire, session, done).await?
            }
            Command::FieldList(request) => {
                // The table, NUL, what the names are like.
                let mut parts = request.splitn(2, |&b| b == 0).map(String::from_utf8_lossy);
                let (table, wild) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
                match session.field_list(&table, wild.trim_end_matches('\0')).await {
                    Ok(columns) => {
                        for (column, value) in &columns {
                            wire.writer.packet(|out| put_column_and_value(out, column, value));
                        }
                        put_end(wire, capabilities, status(session));
                        Ok(())
                    }
                    Err(e) => Err(e),
                }
            }
            Command::Ping => {
                session.note_command();
                ok_of(wire, session, Ok(())).await?
            }
            Command::ResetConnection => {
                bound.clear();
                let done = session.reset().await;
                ok_of(wire, session, done).await?
            }
            Command::SetOption(option) => match option {
                0 | 1 => {
                    session.set_multi_statements(option == 0);
                    put_end(wire, capabilities, status(session));
                    Ok(())
                }
                _ => Err(errors::unknown_com_error()),
            },
            Command::Statistics => {
                session.note_command();
                let text = format!(
                    "Uptime: {}  Threads: {}  Questions: {}",
                    server.instance.uptime_seconds(),
                    server.instance.processes().len(),
                    server.instance.counted(StatusCounter::Questions),
                );
                wire.writer.packet(|out| out.extend_from_slice(text.as_bytes()));
                Ok(())
            }
            Command::ProcessInfo | Command::ProcessKill(_) => {
                let sql = match command {
                    Command::ProcessKill(id) => format!("KILL {id}"),
                    _ => "SHOW PROCESSLIST".to_string(),
                };
                session.execute(sql.as_bytes(), &mut PacketSink::new(wire, capabilities, false)).await?;
                Ok(())
            }
            Command::Debug => {
                put_end(wire, capabilities, status(session));
                Ok(())
            }
            Command::ChangeUser(request) => {
                bound.clear();
                match change_user(server, wire, session, peer, capabilities, request).await? {
                    Ok(now) => {
                        capabilities = now;
                        ok_of(wire, session, Ok(())).await?
                    }
                    Err(e) => {
                        // A failed change leaves no identity to go on with.
                        refuse(wire, capabilities, &e).await?;
                        return Ok(());
                    }
                }
            }
            Command::RegisterReplica(replica) => {
                let done = session.check_follows();
                if done.is_ok() {
                    let host = String::from_utf8_lossy(replica.host).into_owned();
                    session.register_replica(replica.server_id, host, replica.port);
                }
                ok_of(wire, session, done).await?
            }
            Command::BinlogDump(request) => match dump::serve(server, wire, session, &request).boxed().await? {
                // The stream ended as the replica had asked for.
                Ok(()) => {
                    wire.writer.packet(|out| encode_eof(out, status(session), 0));
                    Ok(())
                }
                Err(e) => {
                    refuse(wire, capabilities, &e).await?;
                    return Ok(());
                }
            },
            Command::Unsupported(_) => Err(errors::unknown_com_error()),
        };
        if let Err(e) = done {
            wire.writer.packet(|out| encode_error(out, &e, capabilities));
        }
        wire.flush().await?;
        if session.wants_close() || session.process().is_connection_killed() {
            return Ok(());
        }
    }
}

/// The packet of the next command; `None`: the client has gone, or the connection was killed. An error ends the connection; the client has been told.
async fn next_packet(wire: &mut Wire, session: &Session, idle: &mut IdleTimer, capabilities: CapabilityFlags) -> io::Result<Option<Vec<u8>>> {
    wire.reader.reset_sequence();
    let process = session.process().clone();
    idle.begin(session.idle_timeout());
    let packet = tokio::select! {
        biased;
        packet = wire.receive() => packet?,
        () = process.connection_killed() => {
            wire.writer.set_sequence(0);
            refuse(wire, capabilities, &errors::server_shutdown()).await?;
            return Ok(None);
        }
        () = idle.ended() => {
            wire.writer.set_sequence(0);
            refuse(wire, capabilities, &errors::client_interaction_timeout()).await?;
            return Err(io::ErrorKind::TimedOut.into());
        }
    };
    let Some(packet) = packet else { return Ok(None) };
    wire.writer.set_sequence(wire.reader.sequence());
    match packet {
        Ok(packet) => Ok(Some(packet)),
        Err(e) => {
            wire.writer.set_sequence(1);
            refuse(wire, capabilities, &packet_error(&e)).await?;
            Err(io::Error::other(packet_error(&e).message))
        }
    }
}

/// Sends an OK with nothing to tell if what was asked for is done.
async fn ok_of(wire: &mut Wire, session: &Session, done: Result<(), MySqlError>) -> io::Result<Result<(), MySqlError>> {
    match done {
        Ok(()) => plain_ok(wire, session).await.map(Ok),
        Err(e) => Ok(Err(e)),
    }
}

fn status(session: &Session) -> StatusFlags {
    StatusFlags::from_bits_retain(session.status_flags().0)
}

/// The end of an answer, be there anything before it or not: one that takes no EOF gets an OK in its place.
fn put_end(wire: &mut Wire, capabilities: CapabilityFlags, status: StatusFlags) {
    wire.writer.packet(|out| match capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF) {
        true => encode_ok_eof(out, &OkInfo { affected_rows: 0, last_insert_id: 0, status, warnings: 0, info: "" }),
        false => encode_eof(out, status, 0),
    });
}

fn put_columns(wire: &mut Wire, columns: &[Column], end: Option<StatusFlags>) {
    for column in columns {
        wire.writer.packet(|out| encode_column(out, &column_definition(column)));
    }
    if let Some(status) = end {
        wire.writer.packet(|out| encode_eof(out, status, 0));
    }
}

async fn prepare(wire: &mut Wire, session: &mut Session, capabilities: CapabilityFlags, sql: &[u8]) -> Result<(), MySqlError> {
    let info = session.prepare(sql).await?;
    let end = (!capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF)).then(|| status(session));
    wire.writer.packet(|out| encode_prepare_ok(out, info.id, info.columns.len() as u16, info.params as u16, info.warnings));
    if info.params > 0 {
        let parameter = highkey_protocol::ColumnDefinition {
            schema: "",
            table: "",
            org_table: "",
            name: "?",
            org_name: "",
            collation: 63,
            length: 0,
            wire_type: 253,
            flags: 128,
            decimals: 0,
        };
        for _ in 0..info.params {
            wire.writer.packet(|out| encode_column(out, &parameter));
        }
        if let Some(status) = end {
            wire.writer.packet(|out| encode_eof(out, status, 0));
        }
    }
    if !info.columns.is_empty() {
        put_columns(wire, &info.columns, end);
    }
    Ok(())
}

async fn execute(
    wire: &mut Wire,
    session: &mut Session,
    capabilities: CapabilityFlags,
    bound: &mut HashMap<u32, Bound>,
    request: &[u8],
) -> io::Result<Result<(), MySqlError>> {
    let Some(id) = execute_statement_id(request) else { return Ok(Err(errors::malformed_packet())) };
    let Some(count) = session.prepared_params(id) else {
        return Ok(Err(errors::unknown_stmt_handler(&id.to_string(), "mysqld_stmt_execute")));
    };
    let bound = bound.entry(id).or_default();
    if let Some(error) = bound.long_data_error.take() {
        bound.clear_long_data();
        return Ok(Err(error));
    }
    let charset = session.client_charset();
    let text = |bytes: &[u8]| match charset.decode(bytes) {
        Ok(text) => Value::Text(text.as_ref().into()),
        Err(_) => Value::Bytes(bytes.to_vec()),
    };
    let parsed = parse_execute(request, count, &mut bound.types, &bound.long_data, text);
    bound.clear_long_data();
    let Some(parsed) = parsed else { return Ok(Err(errors::malformed_packet())) };
    let cursor = parsed.cursor != 0 && session.opens_cursor(id);
    let mut sink = PacketSink::new(wire, capabilities, true).opening_cursor(cursor).reporting(session);
    session.execute_prepared(id, &parsed.parameters, cursor, &mut sink).await?;
    bound.format = sink.into_format();
    Ok(Ok(()))
}

async fn change_user(
    server: &Server,
    wire: &mut Wire,
    session: &mut Session,
    peer: &Peer,
    capabilities: CapabilityFlags,
    request: &[u8],
) -> io::Result<Result<CapabilityFlags, MySqlError>> {
    let Some(mut hello) = parse_change_user(request, capabilities) else { return Ok(Err(errors::malformed_packet())) };
    // The response was made with the first handshake's nonce, which is spent: a fresh one is asked for.
    let nonce = new_nonce();
    hello.auth_plugin = None;
    let id = session.client().connection_id;
    // As in MySQL the transaction ends first, with its locks: the client may take its time, or never say who it is.
    session.close().await;
    let process = session.process().clone();
    let identified = tokio::select! {
        identified = tokio::time::timeout(connect_timeout(server), identify(server, wire, peer, &hello, &nonce, capabilities, id).boxed()) => identified,
        () = process.connection_killed() => return Ok(Err(errors::server_shutdown())),
    };
    let client = match identified {
        Ok(Ok(Ok(client))) => client,
        Ok(Ok(Err(e))) => return Ok(Err(e)),
        Ok(Err(e)) => return Err(e),
        Err(_) => return Err(io::ErrorKind::TimedOut.into()),
    };
    let mut changed = session.change_user(client).await;
    if let (Ok(()), Some(database)) = (&changed, &hello.database) {
        changed = session.init_db(database);
    }
    Ok(changed.map(|()| capabilities))
}
