//! Threads that let others go first.

/// Sessions' threads go before this one and those that it starts. A system that refuses leaves it as it is.
pub fn lower_priority() {
    // On Linux, process 0 is the calling thread.
    let _ = rustix::process::setpriority_process(None, 5);
}
