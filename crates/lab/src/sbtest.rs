//! The rows of sources 001 and 003: sysbench's tables, by INSERT or as a file in any order, and what they add up to.

use bytes::Bytes;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use crate::server::{Result, Server, run as execute};

/// What is sent at once.
const BLOCK_BYTES: usize = 1 << 20;

/// k is below this, so that updates can add to it.
const K_END: u64 = 1_000_000_000;

/// A file for LOAD DATA, in memory, and its sums.
pub struct File {
    pub blocks: Vec<Bytes>,
    pub sums: Sums,
}

/// What the table must hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    pub rows: u64,
    pub ids: u64,
    pub ks: u64,
    /// CRC-32 of each row's `id,k,c,pad`, added.
    pub checksums: u64,
}

impl File {
    /// Rows 1 to `rows`, in the order of their ids or shuffled, tab-separated.
    pub fn new(rows: u32, shuffled: bool) -> File {
        let mut ids: Vec<u32> = (1..=rows).collect();
        if shuffled {
            ids.shuffle(&mut StdRng::seed_from_u64(3));
        }
        let mut file = File { blocks: Vec::new(), sums: Sums::default() };
        let mut block = Vec::with_capacity(BLOCK_BYTES + 256);
        for id in ids {
            let k = mix(u64::from(id)) % K_END;
            let (c, pad) = (digits(id, 1, 10), digits(id, 2, 5));
            file.sums.rows += 1;
            file.sums.ids += u64::from(id);
            file.sums.ks += k;
            file.sums.checksums += u64::from(crc32(format!("{id},{k},{c},{pad}").as_bytes()));
            block.extend_from_slice(format!("{id}\t{k}\t{c}\t{pad}\n").as_bytes());
            if block.len() >= BLOCK_BYTES {
                file.blocks.push(Bytes::from(std::mem::take(&mut block)));
            }
        }
        file.blocks.push(Bytes::from(block));
        file
    }

    /// The same rows as INSERTs of `batch` rows each.
    pub fn inserts(&self, batch: usize) -> Vec<String> {
        let rows = self.blocks.iter().flat_map(|block| block.split(|b| *b == b'\n')).filter(|line| !line.is_empty());
        let row = |line| String::from_utf8_lossy(line).replacen('\t', ",", 1).replacen('\t', ",'", 1).replace('\t', "','");
        let rows: Vec<String> = rows.map(|line| format!("({}')", row(line))).collect();
        rows.chunks(batch).map(|rows| format!("INSERT INTO sb_order (id, k, c, pad) VALUES {}", rows.join(","))).collect()
    }
}

/// The source's own DDL, with the secondary index of its first listing or without, as in its load test.
pub fn ddl(secondary: bool) -> String {
    format!(
        "CREATE TABLE sb_order (id int(10) unsigned NOT NULL AUTO_INCREMENT, k int(10) unsigned NOT NULL DEFAULT '0', \
         c char(120) NOT NULL DEFAULT '', pad char(60) NOT NULL DEFAULT '', PRIMARY KEY (id){}) ENGINE=InnoDB DEFAULT CHARSET=utf8",
        if secondary { ", KEY k (k)" } else { "" }
    )
}

/// What the table holds, by reading all of it.
pub async fn found(connection: &mut Conn) -> Result<Sums> {
    let sums: Option<(u64, u64, u64, u64)> = connection
        .query_first(
            "SELECT COUNT(*), CAST(SUM(id) AS UNSIGNED), CAST(SUM(k) AS UNSIGNED), \
             CAST(SUM(CRC32(CONCAT_WS(',', id, k, c, pad))) AS UNSIGNED) FROM sb_order",
        )
        .await?;
    let (rows, ids, ks, checksums) = sums.ok_or("no sums")?;
    Ok(Sums { rows, ids, ks, checksums })
}

/// An error that names the server if the table does not hold what it must.
pub fn compare(server: &Server, what: &str, found: Sums, expected: Sums) -> Result<()> {
    if found == expected { Ok(()) } else { Err(format!("{}: {what}: found {found:?}, not {expected:?}", server.name).into()) }
}

/// Groups of eleven digits, as sysbench fills c and pad.
fn digits(id: u32, salt: u64, groups: u64) -> String {
    let group = |n| format!("{:011}", mix(u64::from(id) << 8 | salt << 4 | n) % 100_000_000_000);
    (0..groups).map(group).collect::<Vec<_>>().join("-")
}

/// `sbtest1` and so on.
pub fn name(number: u32) -> String {
    format!("sbtest{number}")
}

/// One of the tables that sysbench's own scripts fill, of source 001: k is between 1 and the number of rows.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// From 1.
    pub number: u32,
    pub rows: u32,
}

impl Table {
    /// Rows of an INSERT.
    const BATCH: u32 = 1000;

    /// Creates and fills it, then indexes k, as sysbench does.
    pub async fn create(self, connection: &mut Conn) -> Result<()> {
        execute(connection, &self.ddl()).await?;
        for insert in self.inserts() {
            execute(connection, &insert).await?;
        }
        execute(connection, &format!("CREATE INDEX k_{} ON {} (k)", self.number, name(self.number))).await
    }

    fn ddl(self) -> String {
        format!(
            "CREATE TABLE {} (id int NOT NULL AUTO_INCREMENT, k int DEFAULT '0' NOT NULL, c char(120) DEFAULT '' NOT NULL, \
             pad char(60) DEFAULT '' NOT NULL, PRIMARY KEY (id)) ENGINE=InnoDB",
            name(self.number)
        )
    }

    /// The statements that fill it.
    fn inserts(self) -> impl Iterator<Item = String> {
        (1..=self.rows).step_by(Table::BATCH as usize).map(move |first| {
            let last = self.rows.min(first + (Table::BATCH - 1));
            let row = |id| format!("({id}, {}, '{}', '{}')", self.k(id), digits(id, 1, 10), digits(id, 2, 5));
            format!("INSERT INTO {} (id, k, c, pad) VALUES {}", name(self.number), (first..=last).map(row).collect::<Vec<_>>().join(", "))
        })
    }

    /// The sum of k when it has been filled.
    pub fn sum_of_k(self) -> u64 {
        (1..=self.rows).map(|id| self.k(id)).sum()
    }

    fn k(self, id: u32) -> u64 {
        1 + mix(u64::from(self.number) << 32 | u64::from(id)) % u64::from(self.rows)
    }
}

/// The finaliser of SplitMix64: every bit of the result depends on every bit of `n`.
fn mix(n: u64) -> u64 {
    let n = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ n >> 31
}

/// CRC-32 as MySQL's CRC32() computes it.
fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            let mut crc = byte as u32;
            let mut bit = 0;
            while bit < 8 {
                crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
                bit += 1;
            }
            table[byte] = crc;
            byte += 1;
        }
        table
    };
    !bytes.iter().fold(!0, |crc, &byte| crc >> 8 ^ TABLE[(crc as u8 ^ byte) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc32_is_mysqls() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b"MySQL"), 3_259_397_556);
    }

    #[test]
    fn inserts_hold_every_row_once() {
        let table = Table { number: 2, rows: 2001 };
        let inserts: Vec<String> = table.inserts().collect();
        assert_eq!(inserts.len(), 3);
        assert!(inserts.iter().all(|sql| sql.starts_with("INSERT INTO sbtest2 (id, k, c, pad) VALUES (")));
        let rows = inserts.iter().flat_map(|sql| sql.split(" VALUES ").nth(1).unwrap().split("), "));
        let numbers = rows.map(|row| row.trim_matches(['(', ')']).split(", ").map(str::to_string).collect::<Vec<_>>());
        let numbers: Vec<(u64, u64)> = numbers.map(|row| (row[0].parse().unwrap(), row[1].parse().unwrap())).collect();
        assert!(numbers.iter().map(|n| n.0).eq(1..=2001));
        assert!(numbers.iter().all(|n| (1..=2001).contains(&n.1)));
        assert_eq!(numbers.iter().map(|n| n.1).sum::<u64>(), table.sum_of_k());
    }

    #[test]
    fn both_orders_hold_the_same_rows() {
        let text = |file: &File| String::from_utf8(file.blocks.concat()).unwrap();
        let (ordered, shuffled) = (File::new(10_000, false), File::new(10_000, true));
        assert_eq!(ordered.sums, shuffled.sums);
        assert_eq!((ordered.sums.rows, ordered.sums.ids), (10_000, 50_005_000));
        let (a, b) = (text(&ordered), text(&shuffled));
        assert_ne!(a, b);
        let lines = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
            lines.sort_unstable();
            lines
        };
        assert_eq!(lines(&a), lines(&b));
        let inserts = ordered.inserts(3000);
        assert_eq!(inserts.iter().map(|sql| sql.matches("')").count()).collect::<Vec<_>>(), [3000, 3000, 3000, 1000]);
        let first = a.lines().next().unwrap().split('\t').collect::<Vec<_>>();
        assert!(inserts[0].starts_with(&format!("INSERT INTO sb_order (id, k, c, pad) VALUES (1,{},'{}','{}'),(2,", first[1], first[2], first[3])));
        let columns: Vec<&str> = a.lines().nth(41).unwrap().split('\t').collect();
        assert_eq!((columns.len(), columns[0], columns[2].len(), columns[3].len()), (4, "42", 119, 59));
    }
}
