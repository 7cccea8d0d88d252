//! Global transaction identifiers: MySQL's `uuid:number`, of which sets are kept, and MariaDB's `domain-server-sequence`, of which the last of each domain is.

use std::collections::BTreeMap;
use std::fmt;

/// The identifier of one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gtid {
    MySql { source: [u8; 16], number: u64 },
    MariaDb { domain: u32, server: u32, sequence: u64 },
}

impl fmt::Display for Gtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Gtid::MySql { source, number } => write!(f, "{}:{number}", Uuid(source)),
            Gtid::MariaDb { domain, server, sequence } => write!(f, "{domain}-{server}-{sequence}"),
        }
    }
}

/// The transactions of a source that are done. A source is of one kind, so that one of the two is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gtids {
    /// Inclusive intervals in ascending order, no two of which touch.
    mysql: BTreeMap<[u8; 16], Vec<(u64, u64)>>,
    /// By domain: server and sequence number.
    mariadb: BTreeMap<u32, (u32, u64)>,
}

impl Gtids {
    /// Either kind of text; empty is empty. None: neither.
    pub fn parse(text: &str) -> Option<Gtids> {
        let mut gtids = Gtids::default();
        for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            match item.split_once(':') {
                Some((uuid, intervals)) => {
                    let source = parse_uuid(uuid.trim())?;
                    for interval in intervals.split(':').map(str::trim) {
                        let (first, last) = interval.split_once('-').unwrap_or((interval, interval));
                        let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
                        if first == 0 || last < first || last > i64::MAX as u64 {
                            return None;
                        }
                        gtids.add_interval(source, first, last);
                    }
                }
                None => {
                    let mut parts = item.split('-');
                    let (domain, server, sequence) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
                    if parts.next().is_some() || gtids.mariadb.insert(domain, (server, sequence)).is_some() {
                        return None;
                    }
                }
            }
        }
        (gtids.mysql.is_empty() || gtids.mariadb.is_empty()).then_some(gtids)
    }

    pub fn add(&mut self, gtid: &Gtid) {
        match *gtid {
            Gtid::MySql { source, number } => self.add_interval(source, number, number),
            Gtid::MariaDb { domain, server, sequence } => {
                self.mariadb.insert(domain, (server, sequence));
            }
        }
    }

    fn add_interval(&mut self, source: [u8; 16], mut first: u64, mut last: u64) {
        let intervals = self.mysql.entry(source).or_default();
        // Nearly always the next number of the last interval.
        let from = intervals.partition_point(|(_, end)| *end + 1 < first);
        let to = intervals.partition_point(|(start, _)| *start <= last + 1);
        if from < to {
            first = first.min(intervals[from].0);
            last = last.max(intervals[to - 1].1);
        }
        intervals.splice(from..to.max(from), [(first, last)]);
    }

    /// Adds all of a set.
    pub fn union(&mut self, set: &Gtids) {
        for (source, intervals) in &set.mysql {
            for (first, last) in intervals {
                self.add_interval(*source, *first, *last);
            }
        }
        self.mariadb.extend(&set.mariadb);
    }

    /// Whether the transaction is among them. MariaDB's are in order within a domain, but who is ahead of whom is the source's to say: never.
    pub fn contains(&self, gtid: &Gtid) -> bool {
        let Gtid::MySql { source, number } = gtid else { return false };
        self.mysql.get(source).is_some_and(|intervals| {
            let at = intervals.partition_point(|(_, end)| end < number);
            intervals.get(at).is_some_and(|(start, _)| start <= number)
        })
    }

    /// Whether all transactions of a set are among them.
    pub fn contains_all(&self, set: &Gtids) -> bool {
        let holds = |source: &[u8; 16], first: u64, last: u64| self.mysql.get(source).is_some_and(|all| all.iter().any(|(start, end)| *start <= first && last <= *end));
        set.mysql.iter().all(|(source, intervals)| intervals.iter().all(|(first, last)| holds(source, *first, *last)))
            && set.mariadb.iter().all(|(domain, (_, sequence))| self.mariadb.get(domain).is_some_and(|(_, done)| done >= sequence))
    }

    /// MySQL's part: inclusive intervals by source.
    pub fn mysql_intervals(&self) -> impl Iterator<Item = (&[u8; 16], &[(u64, u64)])> {
        self.mysql.iter().map(|(source, intervals)| (source, intervals.as_slice()))
    }
}

impl fmt::Display for Gtids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (source, intervals) in &self.mysql {
            write!(f, "{separator}{}{}", Uuid(source), Intervals(intervals))?;
            separator = ",\n";
        }
        for (domain, (server, sequence)) in &self.mariadb {
            write!(f, "{separator}{domain}-{server}-{sequence}")?;
            separator = ",";
        }
        Ok(())
    }
}

struct Uuid<'a>(&'a [u8; 16]);

impl fmt::Display for Uuid<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

struct Intervals<'a>(&'a [(u64, u64)]);

impl fmt::Display for Intervals<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (first, last) in self.0 {
            match first == last {
                true => write!(f, ":{first}")?,
                false => write!(f, ":{first}-{last}")?,
            }
        }
        Ok(())
    }
}

/// 32 hexadecimal digits, with or without dashes and braces.
fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let digits: Vec<u8> = text.chars().filter(|c| !matches!(c, '-' | '{' | '}')).map(|c| c.to_digit(16).map(|d| d as u8)).collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    if digits.len() == 32 { bytes.try_into().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

    #[test]
    fn sets_are_read_and_written_as_mysql_writes_them() {
        for (text, written) in [
            ("", ""),
            ("3E11FA47-71CA-11E1-9E33-C80AA9429562:1-3", "@:1-3"),
            ("@: 5 : 1-3 :4", "@:1-5"),
            ("@:10-12:1:3", "@:1:3:10-12"),
            ("@:1, @:2", "@:1-2"),
            ("0-1-100, 7-2-3", "0-1-100,7-2-3"),
        ] {
            let set = Gtids::parse(&text.replace('@', A)).unwrap();
            assert_eq!(set.to_string(), written.replace('@', A), "{text}");
        }
        for wrong in ["@", "@:0", "@:3-2", "@:x", "12:1", "1-2", "0-1-2,0-1-3", "@:1,0-1-2"] {
            assert_eq!(Gtids::parse(&wrong.replace('@', A)), None, "{wrong}");
        }
    }

    #[test]
    fn a_set_knows_what_was_added_in_any_order() {
        let source = parse_uuid(A).unwrap();
        let gtid = |number| Gtid::MySql { source, number };
        let mut set = Gtids::default();
        // Every number of 1 to 60 that 7 does not divide, in a shuffled order.
        for step in 0..61u64 {
            let number = step * 17 % 61;
            if number > 0 && number % 7 != 0 {
                set.add(&gtid(number));
            }
        }
        for number in 1..=70 {
            assert_eq!(set.contains(&gtid(number)), number <= 60 && number % 7 != 0, "{number}");
        }
        assert_eq!(set.to_string(), format!("{A}:1-6:8-13:15-20:22-27:29-34:36-41:43-48:50-55:57-60"));
        assert_eq!(Gtids::parse(&set.to_string()), Some(set.clone()));
        set.union(&Gtids::parse(&format!("{A}:7:14-21:63")).unwrap());
        assert_eq!(set.to_string(), format!("{A}:1-27:29-34:36-41:43-48:50-55:57-60:63"));
    }

    #[test]
    fn mariadbs_position_is_the_last_of_each_domain() {
        let mut set = Gtids::parse("0-1-5").unwrap();
        set.add(&Gtid::MariaDb { domain: 0, server: 2, sequence: 6 });
        set.add(&Gtid::MariaDb { domain: 3, server: 1, sequence: 1 });
        assert_eq!(set.to_string(), "0-2-6,3-1-1");
        assert!(!set.contains(&Gtid::MariaDb { domain: 0, server: 2, sequence: 6 }));
    }
}
