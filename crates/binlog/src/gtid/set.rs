//! Sets of GTIDs: text, bytes, and set arithmetic.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::{GtidError, Uuid};

/// First and last number, both in it.
type Interval = (u64, u64);

/// A set of GTIDs: for each server, intervals of transaction numbers, sorted, with gaps between them.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct GtidSet {
    intervals: BTreeMap<Uuid, Vec<Interval>>,
}

impl GtidSet {
    /// The greatest transaction number.
    pub const MAX_GNO: u64 = i64::MAX as u64 - 1;

    pub fn new() -> GtidSet {
        GtidSet::default()
    }

    pub fn is_empty(&self) -> bool {
        self.intervals.is_empty()
    }

    /// How many GTIDs it holds.
    pub fn count(&self) -> u64 {
        self.intervals.values().flatten().map(|(first, last)| last - first + 1).sum()
    }

    /// The servers with their intervals (first and last number, both in the set), both sorted.
    pub fn iter(&self) -> impl Iterator<Item = (Uuid, &[(u64, u64)])> {
        self.intervals.iter().map(|(sid, intervals)| (*sid, intervals.as_slice()))
    }

    /// The intervals of one server, sorted.
    pub fn intervals_of(&self, sid: Uuid) -> &[(u64, u64)] {
        self.intervals.get(&sid).map_or(&[], Vec::as_slice)
    }

    /// The smallest number above `after` that the set lacks for `sid`: the next transaction's number.
    pub fn next_free(&self, sid: Uuid, after: u64) -> u64 {
        let candidate = after + 1;
        let intervals = self.intervals_of(sid);
        let at = intervals.partition_point(|(_, last)| *last < candidate);
        match intervals.get(at) {
            Some((first, last)) if *first <= candidate => last + 1,
            _ => candidate,
        }
    }

    /// Adds one GTID; `gno` from 1.
    pub fn add(&mut self, sid: Uuid, gno: u64) {
        self.add_interval(sid, gno, gno);
    }

    /// Adds the numbers `first` to `last`, both included; nothing if `first > last`.
    pub fn add_interval(&mut self, sid: Uuid, first: u64, last: u64) {
        if first > last {
            return;
        }
        let intervals = self.intervals.entry(sid).or_default();
        // The usual case: the next transaction of the server.
        if let Some(tail) = intervals.last_mut()
            && first == tail.1 + 1
        {
            tail.1 = last;
            return;
        }
        let from = intervals.partition_point(|interval| interval.1 + 1 < first);
        let to = intervals.partition_point(|interval| interval.0 <= last + 1);
        let merged = match intervals.get(from..to) {
            Some([head, .., tail]) => (head.0.min(first), tail.1.max(last)),
            Some([one]) => (one.0.min(first), one.1.max(last)),
            _ => (first, last),
        };
        intervals.splice(from..to, [merged]);
    }

    /// True if it holds `sid:gno`.
    pub fn contains(&self, sid: Uuid, gno: u64) -> bool {
        let intervals = self.intervals_of(sid);
        let at = intervals.partition_point(|(_, last)| *last < gno);
        intervals.get(at).is_some_and(|(first, _)| *first <= gno)
    }

    /// Adds all of `other`.
    pub fn union(&mut self, other: &GtidSet) {
        for (sid, intervals) in &other.intervals {
            for (first, last) in intervals {
                self.add_interval(*sid, *first, *last);
            }
        }
    }

    /// Takes all of `other` away.
    pub fn subtract(&mut self, other: &GtidSet) {
        self.intervals.retain(|sid, intervals| {
            let taken = other.intervals_of(*sid);
            if !taken.is_empty() {
                *intervals = difference(intervals, taken);
            }
            !intervals.is_empty()
        });
    }

    /// Keeps what is in `other` too.
    pub fn intersect(&mut self, other: &GtidSet) {
        self.intervals.retain(|sid, intervals| {
            *intervals = common(intervals, other.intervals_of(*sid));
            !intervals.is_empty()
        });
    }

    /// True if `other` holds all of this set.
    pub fn is_subset(&self, other: &GtidSet) -> bool {
        self.intervals.iter().all(|(sid, intervals)| {
            let theirs = other.intervals_of(*sid);
            intervals.iter().all(|(first, last)| {
                let at = theirs.partition_point(|(_, their_last)| their_last < first);
                theirs.get(at).is_some_and(|(their_first, their_last)| their_first <= first && last <= their_last)
            })
        })
    }

    /// Appends the binary form of Previous_gtids events and COM_BINLOG_DUMP_GTID:
    ///
    /// ```text
    /// count of servers u64 { uuid 16 bytes, count of intervals u64 { first u64, last + 1 u64 } }
    /// ```
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.intervals.len() as u64).to_le_bytes());
        for (sid, intervals) in &self.intervals {
            out.extend_from_slice(&sid.0);
            out.extend_from_slice(&(intervals.len() as u64).to_le_bytes());
            for (first, last) in intervals {
                out.extend_from_slice(&first.to_le_bytes());
                out.extend_from_slice(&(last + 1).to_le_bytes());
            }
        }
    }

    /// Reads the whole of `bytes` as [`encode`](GtidSet::encode) writes it; refuses what is cut short, too long, or out of order.
    pub fn decode(bytes: &[u8]) -> Result<GtidSet, GtidError> {
        let mut at = 0;
        let mut take = |len: usize| {
            let error = GtidError { reason: "the GTID set is cut short", at };
            at += len;
            bytes.get(at - len..at).ok_or(error)
        };
        let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
        let mut set = GtidSet::new();
        let mut end = 8;
        for _ in 0..number(take(8)?) {
            let mut sid = Uuid::default();
            sid.0.copy_from_slice(take(16)?);
            let count = number(take(8)?);
            end += 24;
            let mut least = 1;
            for _ in 0..count {
                let (first, behind) = (number(take(8)?), number(take(8)?));
                if first < least || behind <= first || behind > GtidSet::MAX_GNO + 1 {
                    return Err(GtidError { reason: "the GTID set has a wrong interval", at: end });
                }
                end += 16;
                set.add_interval(sid, first, behind - 1);
                least = behind + 1;
            }
        }
        if end == bytes.len() { Ok(set) } else { Err(GtidError { reason: "the GTID set has bytes behind it", at: end }) }
    }
}

/// `ours` without `theirs`; both sorted.
fn difference(ours: &[Interval], theirs: &[Interval]) -> Vec<Interval> {
    let mut left = Vec::with_capacity(ours.len());
    let mut at = 0;
    for (first, last) in ours {
        let mut first = *first;
        while let Some((their_first, their_last)) = theirs.get(at).filter(|(their_first, _)| their_first <= last) {
            if *their_first > first {
                left.push((first, their_first - 1));
            }
            first = first.max(their_last + 1);
            if their_last > last {
                break;
            }
            at += 1;
        }
        if first <= *last {
            left.push((first, *last));
        }
    }
    left
}

/// What is in both; both sorted.
fn common(ours: &[Interval], theirs: &[Interval]) -> Vec<Interval> {
    let (mut left, mut i, mut j) = (Vec::new(), 0, 0);
    while let (Some(a), Some(b)) = (ours.get(i), theirs.get(j)) {
        let (first, last) = (a.0.max(b.0), a.1.min(b.1));
        if first <= last {
            left.push((first, last));
        }
        if a.1 < b.1 { i += 1 } else { j += 1 }
    }
    left
}

/// MySQL's text: `uuid:1-5:7,` and a line break between servers.
impl fmt::Display for GtidSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (sid, intervals)) in self.intervals.iter().enumerate() {
            write!(f, "{}{sid}", if i > 0 { ",\n" } else { "" })?;
            for (first, last) in intervals {
                write!(f, ":{first}")?;
                if last > first {
                    write!(f, "-{last}")?;
                }
            }
        }
        Ok(())
    }
}

impl FromStr for GtidSet {
    type Err = GtidError;

    /// As MySQL reads it: servers (36 characters each) separated by commas, of which there may be too many; spaces anywhere between the
    /// parts; intervals in any order and overlapping. A server without intervals adds nothing, nor does an interval whose end is before
    /// its start or not there (`7-`).
    fn from_str(text: &str) -> Result<GtidSet, GtidError> {
        let mut parser = Parser { text: text.as_bytes(), at: 0 };
        let mut set = GtidSet::new();
        loop {
            while parser.space_then(b',') {}
            if parser.at == text.len() {
                return Ok(set);
            }
            let sid = parser.uuid()?;
            while parser.space_then(b':') {
                let start = parser.at;
                let first = parser.number()?;
                if first == 0 {
                    return Err(GtidError { reason: "expected a transaction number from 1", at: start });
                }
                let last = if parser.space_then(b'-') { parser.number()? } else { first };
                set.add_interval(sid, first, last);
            }
            if parser.at < text.len() && parser.text[parser.at] != b',' {
                return Err(GtidError { reason: "expected ','", at: parser.at });
            }
        }
    }
}

struct Parser<'t> {
    text: &'t [u8],
    at: usize,
}

impl Parser<'_> {
    fn space(&mut self) {
        while self.text.get(self.at).is_some_and(|byte| byte.is_ascii_whitespace() || *byte == 0x0B) {
            self.at += 1;
        }
    }

    /// Skips spaces; then `byte`, the spaces behind it, and says so if it was there.
    fn space_then(&mut self, byte: u8) -> bool {
        self.space();
        let found = self.text.get(self.at) == Some(&byte);
        if found {
            self.at += 1;
            self.space();
        }
        found
    }

    fn uuid(&mut self) -> Result<Uuid, GtidError> {
        let start = self.at;
        let text = self.text.get(start..start + Uuid::TEXT_LEN).and_then(|bytes| std::str::from_utf8(bytes).ok());
        self.at += Uuid::TEXT_LEN;
        text.unwrap_or_default().parse().map_err(|e: GtidError| GtidError { at: start + e.at, ..e })
    }

    /// Digits, after a plus sign perhaps; 0 if there are none.
    fn number(&mut self) -> Result<u64, GtidError> {
        let start = self.at;
        self.at += usize::from(self.text.get(start) == Some(&b'+'));
        let mut n = 0u64;
        while let Some(digit) = self.text.get(self.at).filter(|byte| byte.is_ascii_digit()) {
            n = n.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
            self.at += 1;
        }
        if n > GtidSet::MAX_GNO {
            return Err(GtidError { reason: "the transaction number is too great", at: start });
        }
        Ok(n)
    }
}
