//! The tables of TPC-C with those that CH-benCHmark adds (nation, region, supplier), and their rows.
//!
//! As in the specifications, but every order line has an amount (TPC-C leaves those of delivered orders at 0), so that sums over them are of something.

use std::fmt::Write as _;
use std::io;

use bytes::Bytes;
use mysql_async::Conn;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

use crate::load_data::{self, BLOCK_BYTES, Give};
use crate::server::{Result, run as execute};

pub const DISTRICTS: u32 = 10;
/// Of a district; as many orders are there at first.
pub const CUSTOMERS: u32 = 3000;
pub const ITEMS: u32 = 100_000;
/// Orders from here on are not delivered at first.
const UNDELIVERED: u32 = 2101;
const SUPPLIERS: u32 = 10_000;

/// Name, columns and keys, and the maker of rows.
struct Table {
    name: &'static str,
    columns: &'static str,
    rows: fn(u32, &mut dyn FnMut(String) -> io::Result<()>) -> io::Result<()>,
}

const ADDRESS: &str = "street_1 varchar(20), street_2 varchar(20), city varchar(20), state char(2), zip char(9)";

const TABLES: [Table; 12] = [
    Table {
        name: "warehouse",
        columns: "w_id int NOT NULL, w_name varchar(10), ADDRESS(w_), w_tax decimal(4,4), w_ytd decimal(12,2), PRIMARY KEY (w_id)",
        rows: warehouse,
    },
    Table {
        name: "district",
        columns: "d_w_id int NOT NULL, d_id int NOT NULL, d_name varchar(10), ADDRESS(d_), d_tax decimal(4,4), d_ytd decimal(12,2), \
                  d_next_o_id int, PRIMARY KEY (d_w_id, d_id)",
        rows: district,
    },
    Table {
        name: "customer",
        columns: "c_w_id int NOT NULL, c_d_id int NOT NULL, c_id int NOT NULL, c_first varchar(16), c_middle char(2), c_last varchar(16), ADDRESS(c_), \
                  c_phone char(16), c_since datetime, c_credit char(2), c_credit_lim decimal(12,2), c_discount decimal(4,4), c_balance decimal(12,2), \
                  c_ytd_payment decimal(12,2), c_payment_cnt int, c_delivery_cnt int, c_data varchar(500), PRIMARY KEY (c_w_id, c_d_id, c_id), \
                  KEY (c_w_id, c_d_id, c_last, c_first)",
        rows: customer,
    },
    Table {
        name: "history",
        columns: "h_c_id int, h_c_d_id int, h_c_w_id int, h_d_id int, h_w_id int, h_date datetime, h_amount decimal(6,2), h_data varchar(24)",
        rows: history,
    },
    Table {
        name: "orders",
        columns: "o_w_id int NOT NULL, o_d_id int NOT NULL, o_id int NOT NULL, o_c_id int, o_entry_d datetime, o_carrier_id int, o_ol_cnt int, \
                  o_all_local int, PRIMARY KEY (o_w_id, o_d_id, o_id), KEY (o_w_id, o_d_id, o_c_id, o_id)",
        rows: orders,
    },
    Table {
        name: "new_order",
        columns: "no_w_id int NOT NULL, no_d_id int NOT NULL, no_o_id int NOT NULL, PRIMARY KEY (no_w_id, no_d_id, no_o_id)",
        rows: new_order,
    },
    Table {
        name: "order_line",
        columns: "ol_w_id int NOT NULL, ol_d_id int NOT NULL, ol_o_id int NOT NULL, ol_number int NOT NULL, ol_i_id int, ol_supply_w_id int, \
                  ol_delivery_d datetime, ol_quantity int, ol_amount decimal(6,2), ol_dist_info char(24), \
                  PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number), KEY (ol_i_id, ol_supply_w_id)",
        rows: order_line,
    },
    Table {
        name: "item",
        columns: "i_id int NOT NULL, i_im_id int, i_name varchar(24), i_price decimal(5,2), i_data varchar(50), PRIMARY KEY (i_id)",
        rows: item,
    },
    Table {
        name: "stock",
        columns: "s_w_id int NOT NULL, s_i_id int NOT NULL, s_quantity int, s_dist_01 char(24), s_dist_02 char(24), s_dist_03 char(24), \
                  s_dist_04 char(24), s_dist_05 char(24), s_dist_06 char(24), s_dist_07 char(24), s_dist_08 char(24), s_dist_09 char(24), \
                  s_dist_10 char(24), s_ytd int, s_order_cnt int, s_remote_cnt int, s_data varchar(50), PRIMARY KEY (s_w_id, s_i_id), KEY (s_i_id)",
        rows: stock,
    },
    Table {
        name: "region",
        columns: "r_regionkey int NOT NULL, r_name char(55), r_comment char(152), PRIMARY KEY (r_regionkey)",
        rows: region,
    },
    Table {
        name: "nation",
        columns: "n_nationkey int NOT NULL, n_name char(25), n_regionkey int NOT NULL, n_comment char(152), PRIMARY KEY (n_nationkey)",
        rows: nation,
    },
    Table {
        name: "supplier",
        columns: "su_suppkey int NOT NULL, su_name char(25), su_address varchar(40), su_nationkey int NOT NULL, su_phone char(15), \
                  su_acctbal decimal(12,2), su_comment varchar(101), PRIMARY KEY (su_suppkey), KEY (su_nationkey)",
        rows: supplier,
    },
];

/// Creates, loads and analyses all tables.
pub async fn load(connection: &mut Conn, warehouses: u32) -> Result<()> {
    load_data::allow(connection).await;
    for table in &TABLES {
        execute(connection, &ddl(table)).await?;
        let rows = table.rows;
        let make = move |give: Give| {
            let mut block = String::with_capacity(BLOCK_BYTES + 1024);
            rows(warehouses, &mut |row| {
                let _ = writeln!(block, "{row}");
                if block.len() < BLOCK_BYTES {
                    return Ok(());
                }
                give(Bytes::from(std::mem::replace(&mut block, String::with_capacity(BLOCK_BYTES + 1024))))
            })?;
            give(Bytes::from(block))
        };
        load_data::stream(connection, table.name, "FIELDS TERMINATED BY '|'", make).await?;
        execute(connection, &format!("ANALYZE TABLE {}", table.name)).await?;
    }
    Ok(())
}

fn ddl(table: &Table) -> String {
    let mut columns = table.columns.to_string();
    if let Some(at) = columns.find("ADDRESS(") {
        let prefix = columns[at + "ADDRESS(".len()..].split(')').next().unwrap_or_default().to_string();
        let address: Vec<String> = ADDRESS.split(", ").map(|column| format!("{prefix}{column}")).collect();
        columns = columns.replace(&format!("ADDRESS({prefix})"), &address.join(", "));
    }
    format!("CREATE TABLE {} ({columns}) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4", table.name)
}

/// Takes a row.
type Row<'a> = &'a mut dyn FnMut(String) -> io::Result<()>;

const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz";
/// The first letter of a state is the key of a nation.
const NATIONS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const REGIONS: [&str; 5] = ["Africa", "America", "Asia", "Europe", "Oceania"];

fn letters(rng: &mut StdRng, low: usize, high: usize) -> String {
    (0..rng.random_range(low..=high)).map(|_| char::from(LETTERS[rng.random_range(0..LETTERS.len())])).collect()
}

/// A tenth has a word in it.
fn data(rng: &mut StdRng) -> String {
    let text = letters(rng, 26, 50);
    if rng.random_range(0..10) == 0 { format!("{}ORIGINAL{}", &text[..8], &text[16..]) } else { text }
}

fn address(rng: &mut StdRng) -> String {
    let state = |rng: &mut StdRng| char::from(NATIONS[rng.random_range(0..NATIONS.len())]);
    format!(
        "{}|{}|{}|{}{}|{:04}11111",
        letters(rng, 10, 20),
        letters(rng, 10, 20),
        letters(rng, 10, 20),
        state(rng),
        state(rng),
        rng.random_range(0..10_000)
    )
}

/// TPC-C's last names: three syllables, by a number below 1000.
pub fn last_name(number: u32) -> String {
    const SYLLABLES: [&str; 10] = ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
    [number / 100 % 10, number / 10 % 10, number % 10].map(|s| SYLLABLES[s as usize]).concat()
}

/// TPC-C's non-uniform random numbers.
pub fn non_uniform(rng: &mut StdRng, a: u32, low: u32, high: u32) -> u32 {
    const C: u32 = 123;
    ((rng.random_range(0..=a) | rng.random_range(low..=high)) + C) % (high - low + 1) + low
}

fn warehouse(warehouses: u32, row: Row) -> io::Result<()> {
    let rng = &mut StdRng::seed_from_u64(1);
    (1..=warehouses)
        .try_for_each(|w| row(format!("{w}|{}|{}|0.{:04}|300000.00", letters(rng, 6, 10), address(rng), rng.random_range(0..2000))))
}

fn district(warehouses: u32, row: Row) -> io::Result<()> {
    let rng = &mut StdRng::seed_from_u64(2);
    each_district(warehouses, &mut |w, d| {
        let next = CUSTOMERS + 1;
        row(format!("{w}|{d}|{}|{}|0.{:04}|30000.00|{next}", letters(rng, 6, 10), address(rng), rng.random_range(0..2000)))
    })
}

fn each_district(warehouses: u32, f: &mut dyn FnMut(u32, u32) -> io::Result<()>) -> io::Result<()> {
    (1..=warehouses).try_for_each(|w| (1..=DISTRICTS).try_for_each(|d| f(w, d)))
}

fn customer(warehouses: u32, row: Row) -> io::Result<()> {
    let rng = &mut StdRng::seed_from_u64(3);
    each_district(warehouses, &mut |w, d| {
        (1..=CUSTOMERS).try_for_each(|c| {
            let last = last_name(if c <= 1000 { c - 1 } else { non_uniform(rng, 255, 0, 999) });
            let credit = if rng.random_range(0..10) == 0 { "BC" } else { "GC" };
            let phone: String = (0..16).map(|_| char::from(b'0' + rng.random_range(0..10))).collect();
            row(format!(
                "{w}|{d}|{c}|{}|OE|{last}|{}|{phone}|2024-01-01 00:00:00|{credit}|50000.00|0.{:04}|-10.00|10.00|1|0|{}",
                letters(rng, 8, 16),
                address(rng),
                rng.random_range(0..5000),
                letters(rng, 300, 500)
            ))
        })
    })
}

fn history(warehouses: u32, row: Row) -> io::Result<()> {
    let rng = &mut StdRng::seed_from_u64(4);
    each_district(warehouses, &mut |w, d| {
        (1..=CUSTOMERS).try_for_each(|c| row(format!("{c}|{d}|{w}|{d}|{w}|2024-01-01 00:00:00|10.00|{}", letters(rng, 12, 24))))
    })
}

/// What orders and their lines agree on: customers in a random order, when, and how many lines.
fn each_order(warehouses: u32, f: &mut dyn FnMut(u32, u32, u32, u32, &str, u32) -> io::Result<()>) -> io::Result<()> {
    each_district(warehouses, &mut |w, d| {
        let rng = &mut StdRng::seed_from_u64(u64::from(w) << 8 | u64::from(d));
        let mut customers: Vec<u32> = (1..=CUSTOMERS).collect();
        customers.shuffle(rng);
        (1..=CUSTOMERS).try_for_each(|o| {
            let entry = format!("2024-{:02}-{:02} {:02}:00:00", o * 12 / (CUSTOMERS + 1) + 1, o % 28 + 1, o % 24);
            f(w, d, o, customers[o as usize - 1], &entry, rng.random_range(5..=15))
        })
    })
}

fn orders(warehouses: u32, row: Row) -> io::Result<()> {
    let rng = &mut StdRng::seed_from_u64(5);
    each_order(warehouses, &mut |w, d, o, c, entry, lines| {
        let carrier = if o < UNDELIVERED { rng.random_range(1..=10).to_string() } else { "\\N".into() };
        row(format!("{w}|{d}|{o}|{c}|{entry}|{carrier}|{lines}|1"))
    })
}

fn new_order(warehouses: u32, row: Row) -> io::Result<()> {
    each_district(warehouses, &mut |w, d| (UNDELIVERED..=CUSTOMERS).try_for_each(|o| row(format!("{w}|{d}|{o}"))))
}

fn order_line(warehouses: u32, row: Row) -> io::Result<()> {
    let rng = &mut StdRng::seed_from_u64(6);
    each_order(warehouses, &mut |w, d, o, _, entry, lines| {
        (1..=lines).try_for_each(|line| {
            let delivered = if o < UNDELIVERED { entry } else { "\\N" };
            let (item, cents) = (rng.random_range(1..=ITEMS), rng.random_range(1..=999_999));
            row(format!("{w}|{d}|{o}|{line}|{item}|{w}|{delivered}|5|{}.{:02}|{}", cents / 100, cents % 100, letters(rng, 24, 24)))
        })
    })
}

fn item(_: u32, row: Row) -> io::Result<()> {
    let rng = &mut StdRng::seed_from_u64(7);
    (1..=ITEMS).try_for_each(|i| {
        let price = rng.random_range(100..=9999);
        row(format!("{i}|{}|{}|{}.{:02}|{}", rng.random_range(1..=10_000), letters(rng, 14, 24), price / 100, price % 100, data(rng)))
    })
}

fn stock(warehouses: u32, row: Row) -> io::Result<()> {
    let rng = &mut StdRng::seed_from_u64(8);
    (1..=warehouses).try_for_each(|w| {
        (1..=ITEMS).try_for_each(|i| {
            let districts: Vec<String> = (0..10).map(|_| letters(rng, 24, 24)).collect();
            row(format!("{w}|{i}|{}|{}|0|0|0|{}", rng.random_range(10..=100), districts.join("|"), data(rng)))
        })
    })
}

fn region(_: u32, row: Row) -> io::Result<()> {
    REGIONS.iter().enumerate().try_for_each(|(key, name)| row(format!("{key}|{name}|a region")))
}

fn nation(_: u32, row: Row) -> io::Result<()> {
    NATIONS.iter().enumerate().try_for_each(|(at, key)| {
        let name = match key {
            b'C' => "Cambodia".to_string(),
            b'G' => "Germany".to_string(),
            key => format!("Nation {}", *key as char),
        };
        // The two with names are of Asia and Europe.
        let region = if *key == b'C' {
            2
        } else if *key == b'G' {
            3
        } else {
            at % REGIONS.len()
        };
        row(format!("{key}|{name}|{region}|a nation"))
    })
}

fn supplier(_: u32, row: Row) -> io::Result<()> {
    let rng = &mut StdRng::seed_from_u64(9);
    (0..SUPPLIERS).try_for_each(|s| {
        let nation = NATIONS[rng.random_range(0..NATIONS.len())];
        let comment = if rng.random_range(0..100) == 0 { "often bad, they say".to_string() } else { letters(rng, 25, 100) };
        row(format!(
            "{s}|Supplier#{s:09}|{}|{nation}|{:010}|{}.00|{comment}",
            letters(rng, 10, 40),
            rng.random_range(0..1_000_000_000_u64),
            rng.random_range(-999..9999)
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_fit_the_columns() {
        let counts = [1, 10, 30_000, 30_000, 30_000, 9_000, 0, 100_000, 100_000, 5, 62, 10_000];
        let (mut lines, mut lines_of_orders) = (0, 0);
        for (table, expected) in TABLES.iter().zip(counts) {
            let ddl = ddl(table);
            let columns = ddl.split_once(" (").unwrap().1.split(", PRIMARY KEY").next().unwrap().split(", ").count();
            let mut count = 0;
            (table.rows)(1, &mut |row| {
                count += 1;
                assert_eq!(row.split('|').count(), columns, "{}: {row}", table.name);
                if table.name == "orders" {
                    lines_of_orders += row.split('|').nth(6).unwrap().parse::<u32>().unwrap();
                }
                Ok(())
            })
            .unwrap();
            match table.name {
                "order_line" => lines = count,
                name => assert_eq!(count, expected, "{name}"),
            }
        }
        assert_eq!(lines, lines_of_orders);
    }

    #[test]
    fn names_and_numbers_of_tpc_c() {
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        let rng = &mut StdRng::seed_from_u64(1);
        assert!((0..10_000).map(|_| non_uniform(rng, 1023, 1, CUSTOMERS)).all(|n| (1..=CUSTOMERS).contains(&n)));
    }
}
