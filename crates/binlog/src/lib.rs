//! MySQL's binary log: events, files, index and GTID sets. It knows neither storage nor network: the commit order
//! (`crates/table/README.md`) hands it bytes. Nothing is here yet; the transactions' event bytes already travel through
//! the WAL's commit records (`Transaction::commit_with`).
#![forbid(unsafe_code)]
