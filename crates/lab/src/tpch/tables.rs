//! The eight tables of TPC-H: their definitions and their rows, generated (crate `tpchgen`, dbgen's rows to the byte) or read from `.tbl`
//! files.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use bytes::Bytes;
use clap::ValueEnum;
use mysql_async::Conn;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator, RegionGenerator,
    SupplierGenerator,
};

use crate::load_data::{self, BLOCK_BYTES, Give};
use crate::server::{Result, run as execute};

/// A table: its columns and primary key, and an index for each foreign key that the primary key does not serve.
pub struct Table {
    pub name: &'static str,
    columns: &'static str,
    indexes: &'static [&'static str],
}

pub const TABLES: [Table; 8] = [
    Table {
        name: "region",
        columns: "r_regionkey int NOT NULL, r_name char(25) NOT NULL, r_comment varchar(152), PRIMARY KEY (r_regionkey)",
        indexes: &[],
    },
    Table {
        name: "nation",
        columns: "n_nationkey int NOT NULL, n_name char(25) NOT NULL, n_regionkey int NOT NULL, n_comment varchar(152), PRIMARY KEY (n_nationkey)",
        indexes: &["(n_regionkey)"],
    },
    Table {
        name: "part",
        columns: "p_partkey int NOT NULL, p_name varchar(55) NOT NULL, p_mfgr char(25) NOT NULL, p_brand char(10) NOT NULL, p_type varchar(25) NOT NULL, \
                  p_size int NOT NULL, p_container char(10) NOT NULL, p_retailprice decimal(15,2) NOT NULL, p_comment varchar(23) NOT NULL, \
                  PRIMARY KEY (p_partkey)",
        indexes: &[],
    },
    Table {
        name: "supplier",
        columns: "s_suppkey int NOT NULL, s_name char(25) NOT NULL, s_address varchar(40) NOT NULL, s_nationkey int NOT NULL, s_phone char(15) NOT NULL, \
                  s_acctbal decimal(15,2) NOT NULL, s_comment varchar(101) NOT NULL, PRIMARY KEY (s_suppkey)",
        indexes: &["(s_nationkey)"],
    },
    Table {
        name: "partsupp",
        columns: "ps_partkey int NOT NULL, ps_suppkey int NOT NULL, ps_availqty int NOT NULL, ps_supplycost decimal(15,2) NOT NULL, \
                  ps_comment varchar(199) NOT NULL, PRIMARY KEY (ps_partkey, ps_suppkey)",
        indexes: &["(ps_suppkey)"],
    },
    Table {
        name: "customer",
        columns: "c_custkey int NOT NULL, c_name varchar(25) NOT NULL, c_address varchar(40) NOT NULL, c_nationkey int NOT NULL, c_phone char(15) NOT NULL, \
                  c_acctbal decimal(15,2) NOT NULL, c_mktsegment char(10) NOT NULL, c_comment varchar(117) NOT NULL, PRIMARY KEY (c_custkey)",
        indexes: &["(c_nationkey)"],
    },
    Table {
        name: "orders",
        columns: "o_orderkey bigint NOT NULL, o_custkey int NOT NULL, o_orderstatus char(1) NOT NULL, o_totalprice decimal(15,2) NOT NULL, \
                  o_orderdate date NOT NULL, o_orderpriority char(15) NOT NULL, o_clerk char(15) NOT NULL, o_shippriority int NOT NULL, \
                  o_comment varchar(79) NOT NULL, PRIMARY KEY (o_orderkey)",
        indexes: &["(o_custkey)"],
    },
    Table {
        name: "lineitem",
        columns: "l_orderkey bigint NOT NULL, l_partkey int NOT NULL, l_suppkey int NOT NULL, l_linenumber int NOT NULL, l_quantity decimal(15,2) NOT NULL, \
                  l_extendedprice decimal(15,2) NOT NULL, l_discount decimal(15,2) NOT NULL, l_tax decimal(15,2) NOT NULL, l_returnflag char(1) NOT NULL, \
                  l_linestatus char(1) NOT NULL, l_shipdate date NOT NULL, l_commitdate date NOT NULL, l_receiptdate date NOT NULL, \
                  l_shipinstruct char(25) NOT NULL, l_shipmode char(10) NOT NULL, l_comment varchar(44) NOT NULL, PRIMARY KEY (l_orderkey, l_linenumber)",
        indexes: &["(l_partkey, l_suppkey)", "(l_suppkey)"],
    },
];

/// When a server builds the secondary indexes: some load faster with them, others without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Indexes {
    /// They are there when the rows come.
    Before,
    /// One ALTER TABLE when the rows are there.
    After,
}

/// Where rows come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// They are generated while they are sent.
    Scale(f64),
    /// `NAME.tbl` files in this folder, as [`write_files`] writes them.
    Files(PathBuf),
}

/// Creates the tables in the connection's database, loads and analyses them. Seconds of all, and the rows.
pub async fn load(connection: &mut Conn, source: &Source, indexes: Indexes) -> Result<(f64, u64)> {
    load_data::allow(connection).await;
    let (start, mut rows) = (Instant::now(), 0);
    for table in &TABLES {
        let (name, keys) = (table.name, table.indexes);
        let keys_of = |prefix: &str| keys.iter().map(|key| format!("{prefix}KEY {key}")).collect::<Vec<_>>();
        let with = if indexes == Indexes::Before { keys_of(", ").concat() } else { String::new() };
        execute(connection, &format!("CREATE TABLE {name} ({}{with}) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4", table.columns)).await?;
        let begin = Instant::now();
        rows += send(connection, name, source).await?;
        if indexes == Indexes::After && !keys.is_empty() {
            execute(connection, &format!("ALTER TABLE {name} {}", keys_of("ADD ").join(", "))).await?;
        }
        execute(connection, &format!("ANALYZE TABLE {name}")).await?;
        eprintln!("{name}: loaded in {:.1} s", begin.elapsed().as_secs_f64());
    }
    Ok((start.elapsed().as_secs_f64(), rows))
}

/// LOAD DATA LOCAL of one table. The rows that the server says it has taken.
async fn send(connection: &mut Conn, table: &'static str, source: &Source) -> Result<u64> {
    let source = source.clone();
    load_data::stream(connection, table, "FIELDS TERMINATED BY '|'", move |give| match source {
        Source::Scale(scale) => generate(table, scale, give),
        Source::Files(folder) => read(&file(&folder, table), give),
    })
    .await
}

fn generate(table: &str, scale: f64, give: Give) -> io::Result<()> {
    match table {
        "region" => lines(RegionGenerator::new(scale, 1, 1).iter(), give),
        "nation" => lines(NationGenerator::new(scale, 1, 1).iter(), give),
        "part" => lines(PartGenerator::new(scale, 1, 1).iter(), give),
        "supplier" => lines(SupplierGenerator::new(scale, 1, 1).iter(), give),
        "partsupp" => lines(PartSuppGenerator::new(scale, 1, 1).iter(), give),
        "customer" => lines(CustomerGenerator::new(scale, 1, 1).iter(), give),
        "orders" => lines(OrderGenerator::new(scale, 1, 1).iter(), give),
        "lineitem" => lines(LineItemGenerator::new(scale, 1, 1).iter(), give),
        _ => unreachable!("the tables are those of TABLES"),
    }
}

fn lines(rows: impl Iterator<Item = impl Display>, give: Give) -> io::Result<()> {
    let mut block = Vec::with_capacity(BLOCK_BYTES + 512);
    for row in rows {
        write!(block, "{row}")?;
        // A field ends with it, also the last one; without it the last field ends with the line, as LOAD DATA has it.
        if block.last() == Some(&b'|') {
            block.pop();
        }
        block.push(b'\n');
        if block.len() >= BLOCK_BYTES {
            give(Bytes::from(std::mem::replace(&mut block, Vec::with_capacity(BLOCK_BYTES + 512))))?;
        }
    }
    give(Bytes::from(block))
}

fn read(path: &Path, give: Give) -> io::Result<()> {
    let with_path = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", path.display()));
    let mut file = std::fs::File::open(path).map_err(with_path)?;
    loop {
        let mut block = vec![0; BLOCK_BYTES];
        match io::Read::read(&mut file, &mut block).map_err(with_path)? {
            0 => return Ok(()),
            length => block.truncate(length),
        }
        give(Bytes::from(block))?;
    }
}

fn file(folder: &Path, table: &str) -> PathBuf {
    folder.join(format!("{table}.tbl"))
}

/// Writes all tables as dbgen does, without its `|` at the end of a line.
pub fn write_files(scale: f64, folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    for table in &TABLES {
        let mut file = std::fs::File::create(file(folder, table.name))?;
        generate(table.name, scale, &mut |block| file.write_all(&block))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_rows_fit_the_columns_and_files_hold_the_same() {
        let folder = std::env::temp_dir().join(format!("highkey-lab-tpch-{}", std::process::id()));
        write_files(0.01, &folder).unwrap();
        for (table, rows) in TABLES.iter().zip([5, 25, 2000, 100, 8000, 1500, 15_000, 60_175]) {
            let mut generated = Vec::new();
            generate(table.name, 0.01, &mut |block| generated.write_all(&block)).unwrap();
            let mut from_file = Vec::new();
            read(&file(&folder, table.name), &mut |block| from_file.write_all(&block)).unwrap();
            assert!(generated == from_file, "{}", table.name);
            let text = String::from_utf8(generated).unwrap();
            assert_eq!(text.lines().count(), rows, "{}", table.name);
            let columns = table.columns.split(", PRIMARY KEY").next().unwrap().split(", ").count();
            assert!(text.lines().all(|line| line.split('|').count() == columns), "{}", table.name);
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
