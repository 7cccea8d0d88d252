//! LOAD DATA LOCAL of rows that are made while they are sent.

use std::io;

use bytes::Bytes;
use futures::StreamExt;
use mysql_async::Conn;
use tokio::sync::mpsc;

use crate::server::{Result, run as execute};

/// What is sent, or written, at once.
pub const BLOCK_BYTES: usize = 1 << 20;

/// Takes a block of whole lines.
pub type Give<'a> = &'a mut dyn FnMut(Bytes) -> io::Result<()>;

/// Loads what `make` gives, on a thread of its own, into a table. `format` is the statement's end. The rows that the server says it has taken.
pub async fn stream(
    connection: &mut Conn,
    table: &str,
    format: &str,
    make: impl FnOnce(Give) -> io::Result<()> + Send + 'static,
) -> Result<u64> {
    let (sender, receiver) = mpsc::channel::<io::Result<Bytes>>(4);
    tokio::task::spawn_blocking(move || {
        // A receiver that has gone has told its own error.
        let mut give = |block| sender.blocking_send(Ok(block)).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe));
        if let Err(e) = make(&mut give) {
            let _ = sender.blocking_send(Err(e));
        }
    });
    let blocks = futures::stream::unfold(receiver, async |mut receiver| receiver.recv().await.map(|block| (block, receiver)));
    connection.set_infile_handler(async move { Ok(blocks.boxed()) });
    execute(connection, &format!("LOAD DATA LOCAL INFILE '{table}' INTO TABLE {table} {format}")).await?;
    Ok(connection.affected_rows())
}

/// Allows LOAD DATA LOCAL, which MySQL does not by default; a server without the variable says so at the LOAD.
pub async fn allow(connection: &mut Conn) {
    let _ = execute(connection, "SET GLOBAL local_infile = ON").await;
}
