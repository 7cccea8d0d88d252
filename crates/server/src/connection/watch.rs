//! Looks whether the clients of running queries are still there: nobody else would see that one has left before there is something to send.
//!
//! A task of its own does, because a statement may keep its thread busy. It asks what is known of a socket and reads nothing: what the client has sent
//! already, and it may have sent the next commands, stays where it is.

use std::sync::Arc;
use std::time::Duration;

use highkey_sql::Instance;

use super::wire::Wire;

/// How long a query runs before its client is looked for, and until it is looked for again.
const INTERVAL: Duration = Duration::from_secs(1);

/// Ends queries whose clients have left. Until it is aborted.
pub async fn watch_clients(instance: Arc<Instance>) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        instance.processes().end_left(INTERVAL);
    }
}

/// What tells whether the client of a connection has left.
pub fn has_left(wire: &Wire) -> Box<dyn Fn() -> bool + Send + Sync> {
    let stream = Arc::downgrade(&wire.stream());
    // Whoever has the stream reads or writes, and sees for itself.
    Box::new(move || stream.upgrade().is_some_and(|stream| stream.try_lock().is_ok_and(|open| open.is_closed_by_peer())))
}
