//! What a transaction's commit record carries of the binary log.
//!
//! ```text
//! version u8 · flags u8 (1: it has no GTID, 2: it has the one that follows, 16: it was first committed elsewhere, 32: by a server of another version) · released u64
//! commit time in microseconds u64 · server id u32 · [ server's uuid 16 bytes · number u64 ] · [ its first commit's time u64 ] · [ that server's version u32 ]
//! groups u16 · { statement u8 · events u32 · bytes u64 }*
//! parts u32 · { lsn u64 · bytes u32 }*
//! raw events
//! ```
//! The raw events of the parts, each as far as it says, then those of the record itself, are the groups' events one after the other; a group
//! becomes one transaction of the binary log. An event lies in one part whole.
//!
//! Of no transaction, but of one of this server's own numbers (flags 4: taken, 8: free again): `version u8 · flags u8 · number u64`.

use highkey_binlog::Uuid;
use highkey_storage::{Error, Lsn, Result};

const VERSION: u8 = 1;
const ANONYMOUS: u8 = 1;
const ASSIGNED: u8 = 2;
const TAKEN: u8 = 4;
const FREE: u8 = 8;
const REPLICATED: u8 = 16;
const OTHER_VERSION: u8 = 32;

/// What a record without events says of a number of this server's own GTIDs. It is in the log, so that the numbers that follow come out the same after
/// a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberNote {
    /// A session owns it (`gtid_next`): no other transaction gets it.
    Taken(u64),
    /// Its owner has given it up, or used it.
    Free(u64),
}

impl NumberNote {
    pub fn encode(&self) -> Vec<u8> {
        let (flags, number) = match self {
            NumberNote::Taken(number) => (TAKEN, number),
            NumberNote::Free(number) => (FREE, number),
        };
        [&[VERSION, flags], &number.to_le_bytes()[..]].concat()
    }

    /// `None`: the record is a transaction's.
    pub fn decode(bytes: &[u8]) -> Option<NumberNote> {
        let number = u64::from_le_bytes(bytes.get(2..)?.try_into().ok()?);
        match bytes[..2] {
            [VERSION, TAKEN] => Some(NumberNote::Taken(number)),
            [VERSION, FREE] => Some(NumberNote::Free(number)),
            _ => None,
        }
    }
}

/// One transaction of the binary log: a BEGIN … Xid, or a DDL statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventGroup {
    /// It has a statement as text, not rows only.
    pub statement: bool,
    pub events: u32,
    /// Of the raw events, which have no checksums.
    pub bytes: u64,
}

/// Events that were logged before the commit (`Txn::log_events`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub lsn: Lsn,
    /// How much of it counts: a rollback to a savepoint leaves the beginning.
    pub bytes: u32,
}

/// Which GTID a transaction gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GtidChoice {
    /// This server's next one.
    #[default]
    Automatic,
    /// None: `gtid_mode=OFF`.
    Anonymous,
    /// This one: `gtid_next`. Nobody else has it: see `Binlog::own`.
    Assigned(Uuid, u64),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Payload {
    /// Every commit behind this held all its locks when this transaction had all of its own.
    pub released: Lsn,
    /// Microseconds since 1970.
    pub commit_time: u64,
    /// When it was committed where it comes from; `None`: here.
    pub original_commit_time: Option<u64>,
    /// The version of the server that it comes from; `None`: ours.
    pub original_version: Option<u32>,
    pub server_id: u32,
    pub gtid: GtidChoice,
    pub groups: Vec<EventGroup>,
    pub parts: Vec<Part>,
}

impl Payload {
    /// The record's events follow what this appends.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(VERSION);
        let gtid = match self.gtid {
            GtidChoice::Automatic => 0,
            GtidChoice::Anonymous => ANONYMOUS,
            GtidChoice::Assigned(..) => ASSIGNED,
        };
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        out.push(gtid | flag(self.original_commit_time.is_some(), REPLICATED) | flag(self.original_version.is_some(), OTHER_VERSION));
        out.extend_from_slice(&self.released.0.to_le_bytes());
        out.extend_from_slice(&self.commit_time.to_le_bytes());
        out.extend_from_slice(&self.server_id.to_le_bytes());
        if let GtidChoice::Assigned(uuid, number) = self.gtid {
            out.extend_from_slice(&uuid.0);
            out.extend_from_slice(&number.to_le_bytes());
        }
        if let Some(time) = self.original_commit_time {
            out.extend_from_slice(&time.to_le_bytes());
        }
        if let Some(version) = self.original_version {
            out.extend_from_slice(&version.to_le_bytes());
        }
        out.extend_from_slice(&(self.groups.len() as u16).to_le_bytes());
        for group in &self.groups {
            out.push(u8::from(group.statement));
            out.extend_from_slice(&group.events.to_le_bytes());
            out.extend_from_slice(&group.bytes.to_le_bytes());
        }
        out.extend_from_slice(&(self.parts.len() as u32).to_le_bytes());
        for part in &self.parts {
            out.extend_from_slice(&part.lsn.0.to_le_bytes());
            out.extend_from_slice(&part.bytes.to_le_bytes());
        }
    }

    /// The payload and the record's own raw events.
    pub fn decode(bytes: &[u8]) -> Result<(Payload, &[u8])> {
        decode(bytes).ok_or_else(|| Error::corrupt_file("a commit's binary log events do not decode"))
    }
}

fn decode(bytes: &[u8]) -> Option<(Payload, &[u8])> {
    let mut rest = bytes;
    let [version, flags] = take(&mut rest)?;
    let gtid = flags & !(REPLICATED | OTHER_VERSION);
    if version != VERSION || gtid > ASSIGNED {
        return None;
    }
    let released = Lsn(u64::from_le_bytes(take(&mut rest)?));
    let commit_time = u64::from_le_bytes(take(&mut rest)?);
    let server_id = u32::from_le_bytes(take(&mut rest)?);
    let gtid = match gtid {
        ANONYMOUS => GtidChoice::Anonymous,
        ASSIGNED => GtidChoice::Assigned(Uuid(take(&mut rest)?), u64::from_le_bytes(take(&mut rest)?)),
        _ => GtidChoice::Automatic,
    };
    let original_commit_time = if flags & REPLICATED != 0 { Some(u64::from_le_bytes(take(&mut rest)?)) } else { None };
    let original_version = if flags & OTHER_VERSION != 0 { Some(u32::from_le_bytes(take(&mut rest)?)) } else { None };
    let groups = u16::from_le_bytes(take(&mut rest)?);
    let groups = (0..groups)
        .map(|_| {
            let [statement] = take(&mut rest)?;
            let (events, bytes) = (u32::from_le_bytes(take(&mut rest)?), u64::from_le_bytes(take(&mut rest)?));
            Some(EventGroup { statement: statement != 0, events, bytes })
        })
        .collect::<Option<_>>()?;
    let parts = u32::from_le_bytes(take(&mut rest)?);
    let parts = (0..parts)
        .map(|_| Some(Part { lsn: Lsn(u64::from_le_bytes(take(&mut rest)?)), bytes: u32::from_le_bytes(take(&mut rest)?) }))
        .collect::<Option<_>>()?;
    Some((Payload { released, commit_time, original_commit_time, original_version, server_id, gtid, groups, parts }, rest))
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(*head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded_and_nothing_shorter() {
        let payloads = [
            Payload::default(),
            Payload { gtid: GtidChoice::Anonymous, ..Payload::default() },
            Payload { gtid: GtidChoice::Assigned(Uuid([7; 16]), 5), ..Payload::default() },
            Payload { gtid: GtidChoice::Assigned(Uuid([7; 16]), 5), original_commit_time: Some(1 << 50), ..Payload::default() },
            Payload {
                original_commit_time: Some(7),
                original_version: Some(80_012),
                released: Lsn(5),
                commit_time: 1 << 50,
                server_id: 9,
                gtid: GtidChoice::Automatic,
                groups: vec![EventGroup { statement: false, events: 4, bytes: 1 << 40 }, EventGroup { statement: true, events: 1, bytes: 99 }],
                parts: vec![Part { lsn: Lsn(70), bytes: 80 }, Part { lsn: Lsn(90), bytes: 1 }],
            },
        ];
        for payload in payloads {
            let mut bytes = Vec::new();
            payload.encode(&mut bytes);
            let header = bytes.len();
            assert_eq!(NumberNote::decode(&bytes), None);
            bytes.extend_from_slice(b"raw events");
            assert_eq!(Payload::decode(&bytes).unwrap(), (payload, &b"raw events"[..]));
            for len in 0..header {
                assert!(Payload::decode(&bytes[..len]).is_err(), "cut at {len}");
            }
        }
        for note in [NumberNote::Taken(1 << 40), NumberNote::Free(7)] {
            assert_eq!(NumberNote::decode(&note.encode()), Some(note));
            assert!(Payload::decode(&note.encode()).is_err());
        }
    }
}
