//! How far a replica has got in its source's binary log.

use serde::{Deserialize, Serialize};

use super::gtid::Gtids;

/// The end of a transaction in the source's files, and the identifiers of the transactions up to there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Empty: the first file that the source has.
    pub file: String,
    pub offset: u64,
    pub gtids: Gtids,
    /// Counts the transactions and statements that have set it: of several records the one with the highest number holds.
    pub number: u64,
}

/// The catalog's record of it.
#[derive(Serialize, Deserialize)]
struct PositionRecord {
    file: String,
    offset: u64,
    gtids: String,
    number: u64,
}

/// Where the first event of a file is.
pub const FIRST_OFFSET: u64 = 4;

impl Position {
    /// The start of the first file that the source has.
    pub fn start() -> Position {
        Position { offset: FIRST_OFFSET, ..Position::default() }
    }

    pub fn encode(&self) -> Vec<u8> {
        let record = PositionRecord { file: self.file.clone(), offset: self.offset, gtids: self.gtids.to_string(), number: self.number };
        serde_json::to_vec(&record).expect("a position has string keys only")
    }

    pub fn decode(bytes: &[u8]) -> Result<Position, String> {
        let record: PositionRecord = serde_json::from_slice(bytes).map_err(|e| format!("a replica's position does not decode: {e}"))?;
        let gtids = Gtids::parse(&record.gtids).ok_or_else(|| format!("a replica's position has wrong GTIDs: {}", record.gtids))?;
        Ok(Position { file: record.file, offset: record.offset, gtids, number: record.number })
    }
}
