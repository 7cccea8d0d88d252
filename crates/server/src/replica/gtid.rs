//! Global transaction identifiers: MySQL's `uuid:number`, of which sets are kept, and MariaDB's `domain-server-sequence`, of which the last of each domain is.

use std::collections::BTreeMap;
use std::fmt;

use highkey_binlog::{GtidSet, Uuid};

/// The identifier of one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gtid {
    MySql { source: [u8; 16], number: u64 },
    MariaDb { domain: u32, server: u32, sequence: u64 },
}

impl fmt::Display for Gtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Gtid::MySql { source, number } => write!(f, "{}:{number}", Uuid(*source)),
            Gtid::MariaDb { domain, server, sequence } => write!(f, "{domain}-{server}-{sequence}"),
        }
    }
}

/// The transactions of a source that are done. A source is of one kind, so that one of the two is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gtids {
    mysql: GtidSet,
    /// By domain: server and sequence number.
    mariadb: BTreeMap<u32, (u32, u64)>,
}

impl From<GtidSet> for Gtids {
    fn from(mysql: GtidSet) -> Gtids {
        Gtids { mysql, mariadb: BTreeMap::new() }
    }
}

impl Gtids {
    /// Either kind of text; empty is empty. None: neither.
    pub fn parse(text: &str) -> Option<Gtids> {
        if text.contains(':') {
            return text.parse().ok().map(GtidSet::into);
        }
        let mut mariadb = BTreeMap::new();
        for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let mut parts = item.split('-');
            let (domain, server, sequence) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
            if parts.next().is_some() || mariadb.insert(domain, (server, sequence)).is_some() {
                return None;
            }
        }
        Some(Gtids { mysql: GtidSet::new(), mariadb })
    }

    pub fn add(&mut self, gtid: &Gtid) {
        match *gtid {
            Gtid::MySql { source, number } => self.mysql.add(Uuid(source), number),
            Gtid::MariaDb { domain, server, sequence } => {
                self.mariadb.insert(domain, (server, sequence));
            }
        }
    }

    /// Adds all of a set.
    pub fn union(&mut self, set: &Gtids) {
        self.mysql.union(&set.mysql);
        self.mariadb.extend(&set.mariadb);
    }

    /// Whether the transaction is among them. MariaDB's are in order within a domain, but who is ahead of whom is the source's to say: never.
    pub fn contains(&self, gtid: &Gtid) -> bool {
        matches!(gtid, Gtid::MySql { source, number } if self.mysql.contains(Uuid(*source), *number))
    }

    /// Whether all transactions of a set are among them.
    pub fn contains_all(&self, set: &Gtids) -> bool {
        set.mysql.is_subset(&self.mysql)
            && set.mariadb.iter().all(|(domain, (_, sequence))| self.mariadb.get(domain).is_some_and(|(_, done)| done >= sequence))
    }

    /// MySQL's part: inclusive intervals by source.
    pub fn mysql_intervals(&self) -> impl Iterator<Item = (Uuid, &[(u64, u64)])> {
        self.mysql.iter()
    }
}

impl fmt::Display for Gtids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.mysql)?;
        for (n, (domain, (server, sequence))) in self.mariadb.iter().enumerate() {
            write!(f, "{}{domain}-{server}-{sequence}", if n > 0 { "," } else { "" })?;
        }
        Ok(())
    }
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
            ("0-1-100, 7-2-3", "0-1-100,7-2-3"),
        ] {
            let set = Gtids::parse(&text.replace('@', A)).unwrap();
            assert_eq!(set.to_string(), written.replace('@', A), "{text}");
        }
        for wrong in ["@", "@:0", "@:x", "12:1", "1-2", "0-1-2,0-1-3", "@:1,0-1-2"] {
            assert_eq!(Gtids::parse(&wrong.replace('@', A)), None, "{wrong}");
        }
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
