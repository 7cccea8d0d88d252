//! Random tables: every common type, NULLs, single and composite primary keys, secondary indexes.

use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};

/// What may be compared with what, and which functions take it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Int,
    Unsigned,
    /// Compared with years only.
    Year,
    Decimal,
    /// Multiples of a quarter, so that no sum depends on its order.
    Double,
    Text(Collation),
    Binary,
    Date,
    DateTime,
    Time,
    Enum,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collation {
    /// utf8mb4_0900_ai_ci, the default.
    Default,
    /// utf8mb4_bin.
    Bin,
    /// utf8mb4_general_ci.
    General,
    /// latin1_swedish_ci.
    Latin,
}

/// A column's type and values.
struct Type {
    sql: &'static str,
    class: Class,
    /// Values that are equal are the same bytes.
    exact: bool,
    literal: Literal,
}

const TYPES: [Type; 24] = [
    Type { sql: "INT", class: Class::Int, exact: true, literal: |r| r.random_range(-20..20).to_string() },
    Type { sql: "INT", class: Class::Int, exact: true, literal: |r| r.random_range(-1_000_000..1_000_000).to_string() },
    Type { sql: "TINYINT", class: Class::Int, exact: true, literal: |r| r.random_range(-4..5).to_string() },
    Type { sql: "SMALLINT", class: Class::Int, exact: true, literal: |r| r.random_range(0..400).to_string() },
    Type { sql: "BIGINT", class: Class::Int, exact: true, literal: |r| (r.random_range(-50..50_i64) * 10_000_000_000).to_string() },
    Type { sql: "INT UNSIGNED", class: Class::Unsigned, exact: true, literal: |r| (r.random_range(0..30_u32) * 100_000_000).to_string() },
    Type { sql: "YEAR", class: Class::Year, exact: true, literal: |r| r.random_range(1995..2005).to_string() },
    Type {
        sql: "DECIMAL(10,2)",
        class: Class::Decimal,
        exact: true,
        literal: |r| format!("{}.{:02}", r.random_range(-30..30), r.random_range(0..4) * 25),
    },
    Type {
        sql: "DECIMAL(20,6)",
        class: Class::Decimal,
        exact: true,
        literal: |r| format!("{}.{:06}", r.random_range(-999_999..999_999), r.random_range(0..1_000_000)),
    },
    Type {
        sql: "DECIMAL(5,1)",
        class: Class::Decimal,
        exact: true,
        literal: |r| format!("{}.{}", r.random_range(-5..6), r.random_range(0..10)),
    },
    Type {
        sql: "DOUBLE",
        class: Class::Double,
        exact: true,
        literal: |r| format!("{}e0", f64::from(r.random_range(-80..80)) * 0.25 + 0.0),
    },
    Type { sql: "FLOAT", class: Class::Double, exact: true, literal: |r| format!("{}e0", f64::from(r.random_range(-20..20)) * 0.25 + 0.0) },
    Type { sql: "VARCHAR(20)", class: Class::Text(Collation::Default), exact: false, literal: |r| quoted(MIXED, r) },
    Type { sql: "VARCHAR(20)", class: Class::Text(Collation::Default), exact: true, literal: |r| quoted(PLAIN, r) },
    Type {
        sql: "TEXT",
        class: Class::Text(Collation::Default),
        exact: true,
        literal: |r| format!("'{}{}'", word(PLAIN, r), r.random_range(0..3)),
    },
    Type { sql: "VARCHAR(30) COLLATE utf8mb4_bin", class: Class::Text(Collation::Bin), exact: true, literal: |r| quoted(CASED, r) },
    Type { sql: "CHAR(8) COLLATE utf8mb4_general_ci", class: Class::Text(Collation::General), exact: false, literal: |r| quoted(MIXED, r) },
    Type { sql: "VARCHAR(12) CHARACTER SET latin1", class: Class::Text(Collation::Latin), exact: false, literal: |r| quoted(MIXED, r) },
    Type { sql: "VARBINARY(10)", class: Class::Binary, exact: true, literal: |r| format!("X'{:04X}'", r.random_range(0..60) * 999) },
    Type { sql: "DATE", class: Class::Date, exact: true, literal: |r| format!("'{}'", date(r)) },
    Type { sql: "DATETIME", class: Class::DateTime, exact: true, literal: |r| format!("'{} {:02}:00:00'", date(r), r.random_range(0..24)) },
    Type {
        sql: "DATETIME(3)",
        class: Class::DateTime,
        exact: true,
        literal: |r| format!("'{} 10:20:30.{:03}'", date(r), r.random_range(0..4) * 125),
    },
    Type {
        sql: "TIME",
        class: Class::Time,
        exact: true,
        literal: |r| format!("'{:02}:{:02}:00'", r.random_range(-30..30), r.random_range(0..4) * 15),
    },
    Type { sql: "ENUM('red','green','blue')", class: Class::Enum, exact: true, literal: |r| quoted(&["red", "green", "blue"], r) },
];

/// Different in bytes where collations differ; nothing that latin1 lacks.
const MIXED: &[&str] =
    &["apple", "Apple", "APPLE", "äpfel", "Apfel", "b", "B", "é", "e", "", "straße", "strasse", "zoo", "ZOO", "a b", "a_b", "a%b"];
/// The same in every collation.
const PLAIN: &[&str] = &["ant", "bee", "cat", "cow", "dog", "eel", "fox", "gnu", "hen", "owl", "pig", "rat", "yak"];
const CASED: &[&str] = &["ant", "Ant", "ANT", "bee", "Bee", "é", "e", "cat", "Zoo", ""];

fn word<'a>(words: &[&'a str], rng: &mut StdRng) -> &'a str {
    words.choose(rng).expect("words")
}

fn quoted(words: &[&str], rng: &mut StdRng) -> String {
    format!("'{}'", word(words, rng))
}

fn date(rng: &mut StdRng) -> String {
    format!("{}-{:02}-{:02}", rng.random_range(1999..2003), rng.random_range(1..13), rng.random_range(1..29))
}

/// A literal that is likely to be in a column of this class.
pub fn literal(class: Class, rng: &mut StdRng) -> String {
    let of_class: Vec<&Type> = TYPES.iter().filter(|t| t.class == class).collect();
    let plain = match (class, of_class.choose(rng)) {
        (Class::Text(Collation::Bin), Some(ty)) => (ty.literal)(rng),
        // One spelling a value.
        (Class::Text(_), _) => quoted(PLAIN, rng),
        (_, Some(ty)) => (ty.literal)(rng),
        (_, None) => "NULL".into(),
    };
    typed(class, &plain)
}

/// A literal of the class itself: what INSERT takes as a text is a date only with the word before it.
pub fn typed(class: Class, plain: &str) -> String {
    let word = match class {
        Class::Date => "DATE",
        Class::DateTime => "TIMESTAMP",
        Class::Time => "TIME",
        _ => "",
    };
    format!("{word}{plain}")
}

/// Writes a value.
pub type Literal = fn(&mut StdRng) -> String;

/// A column as queries see it.
#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    pub class: Class,
    pub exact: bool,
    /// A literal as its values are, where that is known.
    pub literal: Option<Literal>,
}

pub struct Table {
    pub name: String,
    pub columns: Vec<Column>,
    /// Names of the primary key's columns.
    pub key: Vec<String>,
    pub rows: usize,
    create: String,
    /// The same without secondary indexes.
    create_unindexed: String,
    /// INSERTs, ANALYZE.
    fill: Vec<String>,
}

impl Table {
    /// The statements that make it and its rows.
    pub fn setup(&self, indexed: bool) -> impl Iterator<Item = &String> {
        std::iter::once(if indexed { &self.create } else { &self.create_unindexed }).chain(&self.fill)
    }
}

/// One set of tables in this many has large ones.
const LARGE_EVERY: u64 = 8;

/// Four tables, most of them small, tiny or empty; in some sets two are cut for parallel workers as large tables are. (The others are cut
/// only where `parallel_cost_threshold` is 0.)
pub fn tables(seed: u64) -> Vec<Table> {
    let rng = &mut StdRng::seed_from_u64(seed);
    let large: &[&[usize]] = &[&[30_000, 60_000], &[18_000, 40_000]];
    let small: &[&[usize]] = &[&[500, 1500, 4000], &[100, 300]];
    let of = if seed.is_multiple_of(LARGE_EVERY) { large } else { small };
    let mut sizes: Vec<usize> = of.iter().map(|sizes| *sizes.choose(rng).expect("sizes")).collect();
    sizes.extend((0..2).map(|_| *[0, 1, 7, 30, 30, 60, 60].choose(rng).expect("sizes")));
    sizes.into_iter().enumerate().map(|(number, rows)| table(number, rows, rng)).collect()
}

fn table(number: usize, rows: usize, rng: &mut StdRng) -> Table {
    let name = format!("t{number}");
    // The key's columns, and their values in the row of a number.
    type Key = (&'static [(&'static str, &'static str, Class, Literal)], fn(usize) -> Vec<String>);
    const KEYS: [Key; 5] = [
        (&[("id", "INT", Class::Int, |r| r.random_range(0..100).to_string())], |n| vec![n.to_string()]),
        (&[("id", "BIGINT", Class::Int, |r| (5_000 - 7 * r.random_range(0..100)).to_string())], |n| {
            vec![(5_000 - 7 * n as i64).to_string()]
        }),
        (
            &[
                ("a", "INT", Class::Int, |r| r.random_range(0..20).to_string()),
                ("b", "DATE", Class::Date, |r| format!("'2001-03-{:02}'", r.random_range(1..6))),
            ],
            |n| vec![(n / 5).to_string(), format!("'2001-03-{:02}'", n % 5 + 1)],
        ),
        (
            &[
                ("a", "VARCHAR(10) COLLATE utf8mb4_bin", Class::Text(Collation::Bin), |r| format!("'k{}'", r.random_range(0..9))),
                ("b", "SMALLINT", Class::Int, |r| r.random_range(0..20).to_string()),
            ],
            |n| vec![format!("'k{}'", n % 9), (n / 9).to_string()],
        ),
        (
            &[
                ("a", "DECIMAL(8,2)", Class::Decimal, |r| format!("{}.50", r.random_range(0..3))),
                ("b", "INT", Class::Int, |r| r.random_range(0..10).to_string()),
                ("c", "INT UNSIGNED", Class::Unsigned, |r| r.random_range(0..10).to_string()),
            ],
            |n| vec![format!("{}.50", n % 3), (n / 30).to_string(), (n / 3 % 10).to_string()],
        ),
    ];
    let (key, key_values) = KEYS.choose(rng).expect("keys");
    let mut columns: Vec<Column> =
        key.iter().map(|&(name, _, class, literal)| Column { name: name.into(), class, exact: true, literal: Some(literal) }).collect();
    let mut parts: Vec<String> = key.iter().map(|(name, sql, ..)| format!("{name} {sql} NOT NULL")).collect();
    let mut types = Vec::new();
    // Numbers and default texts in every table, so that tables can be joined; then anything.
    let mut chosen = vec![0, 7, 13];
    chosen.extend((0..rng.random_range(3..8)).map(|_| rng.random_range(0..TYPES.len())));
    for (at, ty) in chosen.into_iter().enumerate() {
        let (ty, nulls) = (&TYPES[ty], *[0.0, 0.1, 0.3, 0.9].choose(rng).expect("shares"));
        // Half of a skewed column is one value.
        let common = rng.random_bool(0.3).then(|| (ty.literal)(rng));
        let column = format!("c{at}");
        parts.push(format!("{column} {}{}", ty.sql, if nulls == 0.0 { " NOT NULL" } else { "" }));
        columns.push(Column { name: column, class: ty.class, exact: ty.exact, literal: Some(ty.literal) });
        types.push((ty, nulls, common));
    }
    parts.push(format!("PRIMARY KEY ({})", key.iter().map(|k| k.0).collect::<Vec<_>>().join(", ")));
    let create_unindexed = format!("CREATE TABLE {name} ({})", parts.join(", "));
    let text_type = |c: &Column| {
        let (ty, ..) = types.get(c.name.strip_prefix('c')?.parse::<usize>().ok()?)?;
        matches!(ty.class, Class::Text(_) | Class::Binary).then_some(ty.sql)
    };
    for _ in 0..rng.random_range(0..4) {
        let length = *[1, 1, 2, 3].choose(rng).expect("lengths");
        let mut of: Vec<&Column> = columns.choose_multiple(rng, length).collect();
        of.shuffle(rng);
        let part = |c: &&Column| {
            let prefix = match text_type(c) {
                // It needs one.
                Some("TEXT") => "(3)",
                Some(_) => *["", "", "(1)", "(2)"].choose(rng).expect("prefixes"),
                None => "",
            };
            format!("{}{prefix}{}", c.name, if rng.random_bool(0.2) { " DESC" } else { "" })
        };
        let of: Vec<String> = of.iter().map(part).collect();
        parts.push(format!("KEY ({})", of.join(", ")));
    }
    let create = format!("CREATE TABLE {name} ({})", parts.join(", "));
    let mut fill = Vec::new();
    let mut numbers: Vec<usize> = (0..rows).collect();
    numbers.shuffle(rng);
    for some in numbers.chunks(1000) {
        let row = |&number: &usize| {
            let mut values = key_values(number);
            values.extend(types.iter().map(|(ty, nulls, common)| match common {
                _ if rng.random_bool(*nulls) => "NULL".into(),
                Some(common) if rng.random_bool(0.5) => common.clone(),
                _ => (ty.literal)(rng),
            }));
            format!("({})", values.join(", "))
        };
        fill.push(format!("INSERT INTO {name} VALUES {}", some.iter().map(row).collect::<Vec<_>>().join(", ")));
    }
    fill.push(format!("ANALYZE TABLE {name}"));
    Table { name, columns, key: key.iter().map(|k| k.0.to_string()).collect(), rows, create, create_unindexed, fill }
}
