//! What events mean for a replica: where transactions of the source begin and end, and what it says of them. What is in an event is
//! `highkey_sql::replica::Event`.

use highkey_sql::replica::{BodyReader, Event, ReplicaTransaction, event_kind as kind};

use super::gtid::Gtid;
use super::order::Clock;

/// What a GTID event says of the transaction that it starts.
#[derive(Default)]
pub struct TransactionStart {
    /// None: anonymous.
    pub gtid: Option<Gtid>,
    /// MariaDB: the event is a BEGIN as well.
    pub begins: bool,
    pub clock: Clock,
    /// When the server that ran it first committed it, in microseconds since 1970; MySQL 8.0 says so.
    pub committed_micros: Option<u64>,
    /// When the source did.
    pub source_micros: Option<u64>,
    /// The version of the server that ran it first, as a number; MySQL says so since 8.0.14.
    pub server_version: Option<u32>,
}

impl TransactionStart {
    /// As the tables of performance_schema show it, begun now by one of the replica's threads.
    pub fn shown(&self, now_micros: i64) -> ReplicaTransaction {
        let micros = |time: Option<u64>| time.map_or(0, |micros| micros as i64);
        ReplicaTransaction {
            gtid: self.gtid.as_ref().map_or("ANONYMOUS".into(), Gtid::to_string),
            original_commit_micros: micros(self.committed_micros),
            immediate_commit_micros: micros(self.source_micros),
            started_micros: now_micros,
            ended_micros: 0,
        }
    }
}

/// What a GTID event says. An error: it is too short.
pub fn transaction_start(event: &Event) -> Result<TransactionStart, String> {
    let mut body = BodyReader(&event.body);
    if event.kind == kind::MARIADB_GTID {
        let (sequence, domain, flags) = (body.number(8)?, body.number(4)? as u32, body.number(1)?);
        const STANDALONE: u64 = 1;
        const GROUP_COMMIT: u64 = 2;
        let clock = match flags & GROUP_COMMIT {
            0 => Clock::Unknown,
            _ => Clock::Group { domain, commit: body.number(8)? },
        };
        return Ok(TransactionStart { gtid: Some(Gtid::MariaDb { domain, server: event.server_id, sequence }), begins: flags & STANDALONE == 0, clock, ..TransactionStart::default() });
    }
    body.number(1)?;
    let source = body.bytes(16)?.try_into().expect("16 bytes were taken");
    let number = body.number(8)?;
    let gtid = (event.kind == kind::GTID).then_some(Gtid::MySql { source, number });
    // Since 5.7.
    const LOGICAL: u64 = 2;
    let clock = match body.number(1) {
        Ok(LOGICAL) => Clock::Logical { last_committed: body.number(8)?, number: body.number(8)? },
        _ => Clock::Unknown,
    };
    // The commit's time here, and where it differs there, in 7 bytes each.
    const HAS_ORIGINAL: u64 = 1 << 55;
    let (committed_micros, source_micros) = match (&clock, body.number(7)) {
        (Clock::Logical { .. }, Ok(time)) if time & HAS_ORIGINAL != 0 => (Some(body.number(7)?), Some(time & !HAS_ORIGINAL)),
        (Clock::Logical { .. }, Ok(time)) => (Some(time), Some(time)),
        _ => (None, None),
    };
    // Behind the length of the transaction the version here, and where it differs there.
    const HAS_ORIGINAL_VERSION: u64 = 1 << 31;
    let server_version = match committed_micros.is_some().then(|| body.length().and_then(|_| body.number(4))) {
        Some(Ok(version)) if version & HAS_ORIGINAL_VERSION != 0 => Some(body.number(4)? as u32),
        Some(Ok(version)) => Some(version as u32),
        _ => None,
    };
    Ok(TransactionStart { gtid, begins: false, clock, committed_micros, source_micros, server_version })
}

/// What an event is within the transactions of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// About the log itself.
    Log,
    /// The GTID before a transaction.
    Start,
    /// BEGIN.
    Begin,
    /// A row event, a table map, a statement between BEGIN and COMMIT, a variable of the statement to come.
    Inside,
    /// A statement that is a transaction by itself.
    Alone,
    Commit,
    Rollback,
}

impl Part {
    /// True of the last event of a transaction.
    pub fn ends(self) -> bool {
        matches!(self, Part::Alone | Part::Commit | Part::Rollback)
    }
}

/// Tells the parts of transactions apart.
#[derive(Default)]
pub struct Grouping {
    begun: bool,
}

impl Grouping {
    pub fn part(&mut self, event: &Event) -> Result<Part, String> {
        let part = match event.kind {
            kind::GTID | kind::ANONYMOUS_GTID => {
                self.begun = false;
                Part::Start
            }
            kind::MARIADB_GTID => {
                self.begun = transaction_start(event)?.begins;
                Part::Start
            }
            kind::QUERY => {
                let query = event.query()?;
                match self.begun {
                    false if query.is("BEGIN") || query.begins_branch() => {
                        self.begun = true;
                        Part::Begin
                    }
                    false => Part::Alone,
                    true if query.is("COMMIT") => Part::Commit,
                    true if query.is("ROLLBACK") => Part::Rollback,
                    true => Part::Inside,
                }
            }
            kind::XID | kind::XA_PREPARE => Part::Commit,
            kind::INTVAR
            | kind::RAND
            | kind::USER_VAR
            | kind::TABLE_MAP
            | kind::WRITE_ROWS..=kind::DELETE_ROWS
            | kind::WRITE_ROWS_V1..=kind::DELETE_ROWS_V1
            | kind::PARTIAL_UPDATE_ROWS
            | kind::APPEND_BLOCK
            | kind::BEGIN_LOAD_QUERY
            | kind::EXECUTE_LOAD_QUERY => Part::Inside,
            kind if kind::MARIADB_COMPRESSED.contains(&kind) => Part::Inside,
            _ => Part::Log,
        };
        if part.ends() {
            self.begun = false;
        }
        Ok(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: u8, body: &str) -> Event {
        let digits: Vec<u8> = body.chars().filter_map(|c| c.to_digit(16)).map(|d| d as u8).collect();
        Event { timestamp: 1_700_000_000, kind, server_id: 9, log_pos: 500, body: digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect() }
    }

    /// MariaDB 10.11 wrote it.
    const MARIADB_GTID: &str = "02000000000000000000000029000000000000";

    #[test]
    fn transactions_are_told_apart() {
        let query = |sql: &str| {
            let text: String = sql.bytes().map(|b| format!("{b:02x}")).collect();
            event(kind::QUERY, &format!("0000000000000000 00 0000 0000 00 {text}"))
        };
        let uuid = "00112233445566778899aabbccddeeff";
        let gtid = event(kind::GTID, &format!("00 {uuid} 0500000000000000"));
        let start = transaction_start(&gtid).unwrap();
        assert_eq!((start.gtid.unwrap().to_string().as_str(), start.clock), ("00112233-4455-6677-8899-aabbccddeeff:5", Clock::Unknown));
        // MySQL 8.0.12's, anonymous, and MariaDB's of a group commit.
        let anonymous = event(kind::ANONYMOUS_GTID, "010000000000000000000000000000000000000000000000000201000000000000000200000000000000cd915bf6d46006ca");
        let start = transaction_start(&anonymous).unwrap();
        assert_eq!((start.gtid, start.clock), (None, Clock::Logical { last_committed: 1, number: 2 }));
        let grouped = event(kind::MARIADB_GTID, "0300000000000000010000000e2900000000000000");
        assert_eq!(transaction_start(&grouped).unwrap().clock, Clock::Group { domain: 1, commit: 41 });
        let plain = |kind| event(kind, "0000000000000000");
        let mut grouping = Grouping::default();
        let mut parts = |events: Vec<Event>| events.iter().map(|e| grouping.part(e).unwrap()).collect::<Vec<_>>();
        use Part::*;
        assert_eq!(parts(vec![gtid.clone(), query("BEGIN"), plain(kind::TABLE_MAP), plain(kind::XID)]), [Start, Begin, Inside, Commit]);
        assert_eq!(parts(vec![gtid.clone(), query("CREATE TABLE t (a INT)"), plain(kind::ROTATE)]), [Start, Alone, Log]);
        // Without GTIDs, with a table that knows no transactions.
        assert_eq!(parts(vec![query("begin"), query("SAVEPOINT a"), query("ROLLBACK TO a"), query("COMMIT"), query("DROP TABLE t")]), [Begin, Inside, Inside, Commit, Alone]);
        assert_eq!(parts(vec![gtid.clone(), query("XA START X'61',X'',1"), plain(kind::TABLE_MAP), query("XA END X'61',X'',1"), plain(kind::XA_PREPARE)]), [Start, Begin, Inside, Inside, Commit]);
        assert_eq!(parts(vec![gtid.clone(), query("XA COMMIT X'61',X'',1")]), [Start, Alone]);
        // MariaDB's GTID is a BEGIN unless it says standalone.
        let begins = event(kind::MARIADB_GTID, "0300000000000000000000000c000000000000");
        assert_eq!(transaction_start(&begins).unwrap().gtid.unwrap().to_string(), "0-9-3");
        assert_eq!(parts(vec![event(kind::MARIADB_GTID, MARIADB_GTID), query("create table t (a int)")]), [Start, Alone]);
        assert_eq!(parts(vec![begins, query("CREATE TABLE t (a INT)"), plain(kind::WRITE_ROWS_V1), query("ROLLBACK")]), [Start, Inside, Inside, Rollback]);
    }

    #[test]
    fn times_of_commits_are_told() {
        // The source's time, and behind it, where the first bit says so, that of the server before it.
        let relayed = "010000000000000000000000000000000000000000000000000201000000000000000200000000000000 01000000000080 02000000000000";
        let shown = transaction_start(&event(kind::ANONYMOUS_GTID, relayed)).unwrap().shown(9);
        assert_eq!((shown.gtid.as_str(), shown.original_commit_micros, shown.immediate_commit_micros, shown.started_micros, shown.ended_micros), ("ANONYMOUS", 2, 1, 9, 0));
        let own = relayed.replace("80 02", "00 02");
        let shown = transaction_start(&event(kind::ANONYMOUS_GTID, &own)).unwrap().shown(9);
        assert_eq!((shown.original_commit_micros, shown.immediate_commit_micros), (1, 1));
        // Then the transaction's length, and in the same way the versions.
        let version = |body: &str| transaction_start(&event(kind::ANONYMOUS_GTID, body)).unwrap().server_version;
        let own = own.strip_suffix(" 02000000000000").unwrap();
        assert_eq!((version(own), version(&format!("{own} fc3412 44380100")), version(&format!("{own} 50 44380180 3f420f00"))), (None, Some(79_940), Some(999_999)));
    }

    #[test]
    fn a_start_that_is_cut_off_is_an_error() {
        let whole = event(kind::MARIADB_GTID, MARIADB_GTID);
        assert!(transaction_start(&whole).is_ok());
        for end in 0..10 {
            let cut = Event { body: whole.body[..end].to_vec(), ..whole.clone() };
            assert!(transaction_start(&cut).is_err(), "{end} bytes");
        }
    }
}
