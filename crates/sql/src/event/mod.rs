//! Events. See `README.md`.

mod define;
mod schedule;
mod scheduler;
mod show;

pub use scheduler::run_events;
pub use show::{create_event, rows, status};
