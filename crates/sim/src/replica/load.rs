//! The load.

use std::time::{Duration, Instant};

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use super::{LoadOptions, connect_patiently};
use crate::Result;

/// Of what every server has: the default of MySQL 8.0 stops a replica that is MariaDB 10.11.
const COLLATION: &str = "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci";

/// Ids of the tables with keys.
const IDS: u32 = 400;

/// A table with every type, values at their limits included.
const TYPES: &str = "CREATE TABLE IF NOT EXISTS types (
    id INT PRIMARY KEY, ti TINYINT, tu TINYINT UNSIGNED, si SMALLINT, su SMALLINT UNSIGNED, mi MEDIUMINT, mu MEDIUMINT UNSIGNED, i INT, iu INT UNSIGNED,
    bi BIGINT, bu BIGINT UNSIGNED, y YEAR, b1 BIT(1), b33 BIT(33), b64 BIT(64), d1 DECIMAL(5,2), d2 DECIMAL(65,30), d3 DECIMAL(18,0) UNSIGNED, d4 DECIMAL(9,9),
    f FLOAT, db DOUBLE, da DATE, t0 TIME, t3 TIME(3), t6 TIME(6), dt0 DATETIME, dt1 DATETIME(1), dt6 DATETIME(6), ts0 TIMESTAMP NULL, ts4 TIMESTAMP(4) NULL,
    c CHAR(10), cl CHAR(200) CHARACTER SET latin1, cm CHAR(255), v VARCHAR(20), vl VARCHAR(300) CHARACTER SET latin1, v3 VARCHAR(100) CHARACTER SET utf8,
    bn BINARY(8), vb VARBINARY(300), tt TINYTEXT, tx TEXT, mt MEDIUMTEXT CHARACTER SET latin1, lt LONGTEXT, tb TINYBLOB, bl BLOB, mb MEDIUMBLOB, lb LONGBLOB,
    e ENUM('one','two','drei','äöü'), s SET('a','b','c','d','e','f','g','h','i'), j JSON,
    g1 INT AS (i DIV 2) STORED, KEY (i), KEY (v, d1))";

const TABLES: [&str; 6] = [
    TYPES,
    "CREATE TABLE IF NOT EXISTS nokey (a INT, b VARCHAR(30), c DATETIME(2))",
    "CREATE TABLE IF NOT EXISTS narrowed (a INT, b VARCHAR(30), c TEXT, KEY (a))",
    "CREATE TABLE IF NOT EXISTS uniquely (a INT NOT NULL, b CHAR(8) NOT NULL, c DOUBLE, UNIQUE KEY (a, b), UNIQUE KEY (c))",
    "CREATE TABLE IF NOT EXISTS numbered (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, worker INT, note VARCHAR(200) CHARACTER SET latin1, KEY (worker))",
    "CREATE TABLE IF NOT EXISTS big (id INT PRIMARY KEY, pad VARCHAR(500), large LONGBLOB)",
];

pub async fn run(options: LoadOptions) -> Result<()> {
    println!("load: seed {}", options.seed);
    let mut first = connect_patiently(&options.url).await?;
    first.query_drop(COLLATION).await?;
    // What a server takes for its own may be a character set without most of what is written.
    first.query_drop("CREATE DATABASE IF NOT EXISTS load_a CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci").await?;
    first.query_drop("CREATE DATABASE IF NOT EXISTS load_b CHARACTER SET latin1").await?;
    first.query_drop("USE load_a").await?;
    for table in TABLES {
        first.query_drop(table).await?;
    }
    let mut rng = StdRng::seed_from_u64(options.seed);
    let until = Instant::now() + Duration::from_secs(options.seconds);
    let pause = Duration::from_millis(options.pause_ms);
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..options.clients {
        let (url, seed, large) = (options.url.clone(), rng.random(), options.large_rows);
        clients.spawn(async move { client_loop(&url, until, pause, seed, |rng| rows(rng, client, large)).await });
    }
    if !options.rows_only {
        let (url, seed, defaults) = (options.url.clone(), rng.random(), options.defaults);
        clients.spawn(async move { client_loop(&url, until, pause, seed, |rng| if defaults && rng.random_bool(0.3) { unsaid(rng) } else { definitions(rng) }).await });
    }
    let mut statements = 0;
    while let Some(done) = clients.join_next().await {
        statements += done??;
    }
    println!("load: {statements} statements");
    Ok(())
}

/// Runs lists of statements until the time is over, with a pause behind each; a list ends at its first error, which is rolled back. Returns how many statements
/// succeeded.
async fn client_loop(url: &str, until: Instant, pause: Duration, seed: u64, make: impl Fn(&mut StdRng) -> Vec<String>) -> Result<u64> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut connection: Option<Conn> = None;
    let mut statements = 0;
    while Instant::now() < until {
        let mut present = match connection.take() {
            Some(present) => present,
            None => {
                let mut fresh = connect_patiently(url).await?;
                if fresh.query_drop(COLLATION).await.is_err() || fresh.query_drop("USE load_a").await.is_err() {
                    continue;
                }
                fresh
            }
        };
        let mut broken = false;
        for statement in make(&mut rng) {
            match present.query_drop(&statement).await {
                Ok(()) => statements += 1,
                // The statement is refused: a duplicate, a deadlock, a table of that name.
                Err(mysql_async::Error::Server(e)) if e.code == 1064 => return Err(format!("{e}: {statement}").into()),
                Err(mysql_async::Error::Server(_)) => {
                    broken = present.query_drop("ROLLBACK").await.is_err();
                    break;
                }
                Err(_) => {
                    broken = true;
                    break;
                }
            }
        }
        if !broken {
            connection = Some(present);
        }
        tokio::time::sleep(pause).await;
    }
    Ok(statements)
}

/// One transaction, or a statement by itself.
fn rows(rng: &mut StdRng, client: u64, large_rows: u64) -> Vec<String> {
    let choice = rng.random_range(0..100);
    if choice == 0 {
        return large(rng, client, large_rows);
    }
    let count = if choice < 40 { 1 } else { rng.random_range(2..8) };
    let mut statements: Vec<String> = Vec::new();
    for i in 0..count {
        if count > 1 && i == count / 2 && rng.random_bool(0.1) {
            statements.push("SAVEPOINT middle".into());
            statements.push(change(rng, client));
            statements.push("ROLLBACK TO middle".into());
        }
        statements.push(change(rng, client));
    }
    if count > 1 {
        statements.insert(0, "BEGIN".into());
        statements.push(if rng.random_bool(0.1) { "ROLLBACK" } else { "COMMIT" }.into());
    }
    statements
}

fn change(rng: &mut StdRng, client: u64) -> String {
    let id = rng.random_range(0..IDS);
    let n = rng.random_range(0..30);
    match rng.random_range(0..17) {
        0..=4 => format!("REPLACE INTO types ({}) VALUES ({})", TYPES_COLUMNS, types_row(rng, id)),
        5 => {
            let rows: Vec<String> = (0..4).map(|_| format!("({})", types_row(rng, rng.clone().random_range(0..IDS)))).collect();
            format!("REPLACE INTO types ({TYPES_COLUMNS}) VALUES {}", rows.join(","))
        }
        6 => format!("UPDATE types SET i = i + 1, v = {}, dt6 = NOW(6), ts4 = NOW(4), j = {} WHERE id BETWEEN {id} AND {}", text(rng, 20), json(rng), id + 3),
        7 => format!("UPDATE types SET id = id + {IDS} WHERE id = {id}"),
        8 => format!("DELETE FROM types WHERE id IN ({id}, {})", id + IDS),
        9 => format!("INSERT INTO nokey VALUES ({n}, {}, NOW(2)), ({n}, 'same', NULL), ({n}, 'same', NULL)", text(rng, 30)),
        10 => format!("UPDATE nokey SET b = {} WHERE a = {n}", text(rng, 30)),
        11 => format!("DELETE FROM nokey WHERE a = {n} LIMIT 3"),
        12 => match rng.random_range(0..3) {
            0 => format!("INSERT INTO narrowed VALUES ({n}, {}, {})", text(rng, 30), text(rng, 200)),
            1 => format!("UPDATE narrowed SET c = CONCAT(c, 'x'), a = a + 1 WHERE a = {n}"),
            _ => format!("DELETE FROM narrowed WHERE a = {n}"),
        },
        13 => match rng.random_range(0..3) {
            0 => format!("INSERT IGNORE INTO uniquely VALUES ({n}, {}, RAND())", text(rng, 3)),
            1 => format!("UPDATE uniquely SET c = RAND() WHERE a = {n}"),
            _ => format!("DELETE FROM uniquely WHERE a = {n} LIMIT 2"),
        },
        14 => format!("INSERT INTO numbered (worker, note) VALUES ({client}, {}), ({client}, {})", latin(rng), latin(rng)),
        15 => format!("DELETE FROM numbered WHERE worker = {client} ORDER BY id LIMIT 1"),
        _ => format!("UPDATE numbered SET note = {} WHERE worker = {client} ORDER BY id DESC LIMIT 5", latin(rng)),
    }
}

/// A transaction of many events.
fn large(rng: &mut StdRng, client: u64, rows: u64) -> Vec<String> {
    let base = client * 1_000_000;
    let values: Vec<String> = (0..rows).map(|i| format!("({}, REPEAT('{}', {}), NULL)", base + i, rng.random_range(0..9), rng.random_range(0..300))).collect();
    let mut statements = vec!["BEGIN".into(), format!("DELETE FROM big WHERE id >= {base} AND id < {}", base + 1_000_000)];
    statements.extend(values.chunks(500).map(|chunk| format!("INSERT INTO big VALUES {}", chunk.join(","))));
    statements.push(format!("UPDATE big SET pad = CONCAT(pad, '!') WHERE id >= {base} AND id < {}", base + rows / 2));
    statements.push(format!("UPDATE big SET large = REPEAT(UNHEX('00FF8041'), {}) WHERE id = {base}", rng.random_range(1..300_000)));
    statements.push("COMMIT".into());
    statements
}

const TYPES_COLUMNS: &str = "id,ti,tu,si,su,mi,mu,i,iu,bi,bu,y,b1,b33,b64,d1,d2,d3,d4,f,db,da,t0,t3,t6,dt0,dt1,dt6,ts0,ts4,c,cl,cm,v,vl,v3,bn,vb,tt,tx,mt,lt,tb,bl,mb,lb,e,s,j";

fn types_row(rng: &mut StdRng, id: u32) -> String {
    let mut values = vec![id.to_string()];
    for (low, high) in [(-128, 127), (0, 255), (-32768, 32767), (0, 65535), (-8_388_608, 8_388_607), (0, 16_777_215), (-2_147_483_648, 2_147_483_647_i128), (0, 4_294_967_295)] {
        values.push(edge(rng, low, high));
    }
    values.push(edge(rng, i64::MIN.into(), i64::MAX.into()));
    values.push(edge(rng, 0, u64::MAX.into()));
    values.push(pick(rng, &["0", "1901", "2155", "2026", "NULL"]));
    values.push(pick(rng, &["b'0'", "b'1'", "NULL"]));
    values.push(edge(rng, 0, (1 << 33) - 1));
    values.push(edge(rng, 0, u64::MAX.into()));
    values.push(pick(rng, &["999.99", "-999.99", "0", "0.01", "-1.5", "NULL"]));
    values.push(pick(
        rng,
        &["12345678901234567890123456789012345.123456789012345678901234567890", "-0.000000000000000000000000000001", "99999999999999999999999999999999999", "0", "NULL"],
    ));
    values.push(edge(rng, 0, 999_999_999_999_999_999));
    values.push(pick(rng, &["0.123456789", "-0.999999999", "0", "NULL"]));
    values.push(pick(rng, &["0", "1.5", "-3.25e10", "3.4e38", "1e-30", "0.1", "NULL"]));
    values.push(pick(rng, &["0", "1.5", "-1.7976931348623157e308", "2.2e-308", "0.1", "123456.789", "NULL"]));
    values.push(pick(rng, &["'1000-01-01'", "'9999-12-31'", "'2026-02-28'", "'0001-01-01'", "NULL"]));
    values.push(pick(rng, &["'838:59:59'", "'-838:59:59'", "'00:00:00'", "'-00:00:01'", "'12:34:56'", "NULL"]));
    values.push(pick(rng, &["'-00:00:00.001'", "'838:59:58.999'", "'-12:34:56.789'", "'01:02:03.456'", "NULL"]));
    values.push(pick(rng, &["'-00:00:00.000001'", "'-838:59:58.999999'", "'01:02:03.456789'", "NULL"]));
    values.push(pick(rng, &["'1000-01-01 00:00:00'", "'9999-12-31 23:59:59'", "'2026-03-29 02:30:00'", "NULL"]));
    values.push(pick(rng, &["'2026-03-29 02:30:00.5'", "'9999-12-31 23:59:59.9'", "NULL"]));
    values.push(pick(rng, &["'2026-03-29 02:30:00.123456'", "'1000-01-01 00:00:00.000001'", "NULL"]));
    values.push(pick(rng, &["'1970-01-02 00:00:01'", "'2038-01-18 03:14:07'", "'2026-03-29 12:30:00'", "NULL"]));
    values.push(pick(rng, &["'1970-01-02 00:00:01.0001'", "'2038-01-18 03:14:07.9999'", "'2026-10-25 12:30:00.5'", "NULL"]));
    values.push(text(rng, 10));
    values.push(latin(rng));
    values.push(text(rng, 255));
    values.push(text(rng, 20));
    values.push(latin(rng));
    values.push(pick(rng, &["'ÄÖÜ€ß'", "''", "'中文字符'", "'plain'", "NULL"]));
    values.push(pick(rng, &["x'0000000000000000'", "x'FF00'", "x'0102030405060708'", "''", "NULL"]));
    values.push(pick(rng, &["x'00'", "x'20'", "''", "REPEAT(x'80', 300)", "NULL"]));
    values.push(text(rng, 60));
    values.push(text(rng, 1000));
    values.push(latin(rng));
    values.push(text(rng, 3000));
    for length in [200, 1000, 70_000, 5000] {
        values.push(if rng.random_bool(0.2) { "NULL".into() } else { format!("REPEAT(x'{:02X}00FF', {})", rng.random_range(0..256), rng.random_range(0..length / 3)) });
    }
    values.push(pick(rng, &["'one'", "'drei'", "'äöü'", "NULL"]));
    values.push(pick(rng, &["''", "'a'", "'a,c,i'", "'a,b,c,d,e,f,g,h,i'", "NULL"]));
    values.push(json(rng));
    values.join(",")
}

/// A number of the range, often one of its ends, or NULL.
fn edge(rng: &mut StdRng, low: i128, high: i128) -> String {
    match rng.random_range(0..6) {
        0 => low.to_string(),
        1 => high.to_string(),
        2 => "NULL".into(),
        3 => low.max(0).min(high).to_string(),
        _ => rng.random_range(low..=high).to_string(),
    }
}

fn pick(rng: &mut StdRng, values: &[&str]) -> String {
    values.choose(rng).expect("there are some").to_string()
}

/// Text of one to four bytes a character, NULL at times.
fn text(rng: &mut StdRng, characters_max: usize) -> String {
    if rng.random_bool(0.1) {
        return "NULL".into();
    }
    let alphabet: Vec<char> = "abc xyzäß€中𝄞\\\\'' ".replace("\\\\", "").replace("''", "").chars().collect();
    let length = rng.random_range(0..=characters_max);
    let text: String = (0..length).map(|_| *alphabet.choose(rng).expect("letters")).collect();
    format!("'{text}'")
}

/// Text of latin1.
fn latin(rng: &mut StdRng) -> String {
    pick(rng, &["'plain'", "'Äpfel, Öl, Übung'", "'€uro'", "''", "'trailing  '", "REPEAT('é', 150)", "NULL"])
}

fn json(rng: &mut StdRng) -> String {
    pick(
        rng,
        &[
            "NULL",
            "'null'",
            "'{}'",
            "'[]'",
            "'\"text\"'",
            "'{\"b\": 1, \"a\": [true, false, null, -1, 32768, 65536, 4294967296, 18446744073709551615, 1.5, 1e100], \"ab\": {\"ä\": \"€\"}}'",
            "'[1, -129, 255, -32769, 2147483648, 3.0]'",
            "JSON_ARRAY(REPEAT('x', 70000), 1, 70000, 'y')",
            "JSON_OBJECT('long', REPEAT('ab', 100), 'n', 7)",
            "'-7'",
            "'3.25'",
        ],
    )
}

/// A table whose collations and TIMESTAMP columns are what the source's variables say, and rows that tell collations apart: those that have two of them
/// for equal leave one out.
fn unsaid(rng: &mut StdRng) -> Vec<String> {
    let mut statements: Vec<String> = Vec::new();
    if rng.random_bool(0.2) {
        statements.push("DROP TABLE IF EXISTS load_a.unsaid".into());
    }
    statements.push("CREATE TABLE IF NOT EXISTS load_a.unsaid (a VARCHAR(9) UNIQUE, b VARCHAR(9) CHARACTER SET utf8mb4 UNIQUE, at TIMESTAMP, later TIMESTAMP NULL) CHARSET utf8mb4".into());
    for _ in 0..rng.random_range(1..4) {
        let mut word = || pick(rng, &["'ß'", "'ss'", "'SS'", "'s'", "'a'", "'Ä'", "'a '", "'b'"]);
        statements.push(format!("INSERT IGNORE INTO load_a.unsaid (a, b) VALUES ({}, {})", word(), word()));
        statements.push(format!("UPDATE IGNORE load_a.unsaid SET a = {} WHERE b = {}", word(), word()));
    }
    statements.push("DELETE FROM load_a.unsaid ORDER BY a, b LIMIT 2".into());
    statements
}

/// Definitions over a few names, so that they meet each other.
fn definitions(rng: &mut StdRng) -> Vec<String> {
    let n = rng.random_range(0..5);
    let table = format!("{}.defined_{n}", pick(rng, &["load_a", "load_b"]));
    let other = format!("load_b.moved_{}", rng.random_range(0..3));
    let one = match rng.random_range(0..14) {
        0..=2 => format!("CREATE TABLE {table} (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(40) NOT NULL DEFAULT 'x', b INT, at TIMESTAMP(3) DEFAULT CURRENT_TIMESTAMP(3))"),
        3 => format!("CREATE TABLE IF NOT EXISTS {table} (id INT PRIMARY KEY, t TEXT)"),
        4 => format!("DROP TABLE IF EXISTS {table}, {other}"),
        5 => format!("ALTER TABLE {table} ADD COLUMN c{} DECIMAL(10,3) DEFAULT 1.25", rng.random_range(0..3)),
        6 => format!("ALTER TABLE {table} DROP COLUMN c{}, ADD COLUMN d INT FIRST", rng.random_range(0..3)),
        7 => format!("ALTER TABLE {table} MODIFY a VARCHAR(60) CHARACTER SET latin1"),
        8 => format!("CREATE INDEX by_b ON {table} (b)"),
        9 => format!("DROP INDEX by_b ON {table}"),
        10 => format!("TRUNCATE TABLE {table}"),
        11 => format!("RENAME TABLE {table} TO {other}"),
        12 => format!("CREATE DATABASE IF NOT EXISTS load_c{}", rng.random_range(0..2)),
        _ => format!("DROP DATABASE IF EXISTS load_c{}", rng.random_range(0..2)),
    };
    let insert = format!("INSERT INTO {table} (a, b) VALUES ({}, {}), ('y', 2)", latin(rng), rng.random_range(0..100));
    let update = format!("UPDATE {table} SET b = b + 1");
    vec![one, insert, update]
}
