//! What a query answered, kept as a file, and whether two answers are the same.

use std::fmt::Write as _;
use std::path::Path;

use mysql_async::consts::ColumnType;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row, Value};

use crate::server::Result;

/// How a column's cells are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Integers and decimals: exactly, `1.50` being `1.5`.
    Number,
    /// Floating point: nearly.
    Double,
    /// To the byte; dates too.
    Text,
}

const KINDS: [(&str, Kind); 3] = [("number", Kind::Number), ("double", Kind::Double), ("text", Kind::Text)];

/// Rows as text; `None` is NULL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub kinds: Vec<Kind>,
    pub rows: Vec<Vec<Option<String>>>,
}

/// How NULL is written in a file.
const NULL: &str = "\\N";

impl Answer {
    /// Runs a query by the text protocol.
    pub async fn ask(connection: &mut Conn, sql: &str) -> mysql_async::Result<Answer> {
        let mut result = connection.query_iter(sql).await?;
        let columns = result.columns().unwrap_or_default();
        let rows: Vec<Row> = result.collect().await?;
        result.drop_result().await?;
        let kind = |ty| match ty {
            ColumnType::MYSQL_TYPE_FLOAT | ColumnType::MYSQL_TYPE_DOUBLE => Kind::Double,
            ColumnType::MYSQL_TYPE_DECIMAL
            | ColumnType::MYSQL_TYPE_NEWDECIMAL
            | ColumnType::MYSQL_TYPE_TINY
            | ColumnType::MYSQL_TYPE_SHORT
            | ColumnType::MYSQL_TYPE_INT24
            | ColumnType::MYSQL_TYPE_LONG
            | ColumnType::MYSQL_TYPE_LONGLONG
            | ColumnType::MYSQL_TYPE_YEAR => Kind::Number,
            _ => Kind::Text,
        };
        let cell = |value| match value {
            Value::NULL => None,
            Value::Bytes(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            other => Some(other.as_sql(false)),
        };
        Ok(Answer {
            kinds: columns.iter().map(|c| kind(c.column_type())).collect(),
            rows: rows.into_iter().map(|row| row.unwrap().into_iter().map(cell).collect()).collect(),
        })
    }

    /// Tab-separated, the kinds of the columns first. No text of TPC-H has a tab.
    pub fn write(&self, file: &Path) -> Result<()> {
        let name = |kind| KINDS.iter().find(|k| k.1 == kind).map_or("", |k| k.0);
        let mut out = self.kinds.iter().map(|&k| name(k)).collect::<Vec<_>>().join("\t");
        for row in &self.rows {
            let cells: Vec<&str> = row.iter().map(|cell| cell.as_deref().unwrap_or(NULL)).collect();
            let _ = write!(out, "\n{}", cells.join("\t"));
        }
        out.push('\n');
        Ok(std::fs::write(file, out)?)
    }

    /// Reads what [`Answer::write`] or the script for DuckDB wrote.
    pub fn read(file: &Path) -> Result<Answer> {
        let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
        let mut lines = text.lines();
        let kind = |name: &str| KINDS.iter().find(|k| k.0 == name).map(|k| k.1).ok_or(format!("{}: no kind {name}", file.display()));
        let kinds = lines.next().unwrap_or_default().split('\t').map(kind).collect::<std::result::Result<_, _>>()?;
        let cell = |cell: &str| (cell != NULL).then(|| cell.to_string());
        Ok(Answer { kinds, rows: lines.map(|line| line.split('\t').map(cell).collect()).collect() })
    }

    /// The first difference to another answer, for people; `None` if there is none. Rows that are equal in the columns of `order` may come
    /// in any order.
    pub fn difference(&self, other: &Answer, order: &[usize]) -> Option<String> {
        if (self.kinds.len(), self.rows.len()) != (other.kinds.len(), other.rows.len()) {
            let size = |a: &Answer| format!("{} rows of {} columns", a.rows.len(), a.kinds.len());
            return Some(format!("{}, not {}", size(self), size(other)));
        }
        let kind = |column: usize| match (self.kinds[column], other.kinds[column]) {
            (Kind::Double, _) | (_, Kind::Double) => Kind::Double,
            (Kind::Number, Kind::Number) => Kind::Number,
            _ => Kind::Text,
        };
        let differs = |(mine, theirs): &(&Vec<Option<String>>, &Vec<Option<String>>), column: usize| {
            !same(&mine[column], &theirs[column], kind(column))
        };
        let tell = |what: &str, at: usize, (mine, theirs): (&Vec<Option<String>>, &Vec<Option<String>>)| {
            let line = |row: &Vec<Option<String>>| row.iter().map(|c| c.as_deref().unwrap_or("NULL")).collect::<Vec<_>>().join(" | ");
            Some(format!("{what} {}: {}\n    not {}", at + 1, line(mine), line(theirs)))
        };
        let pairs = self.rows.iter().zip(&other.rows).enumerate();
        if let Some((at, pair)) = pairs.clone().find(|(_, pair)| order.iter().any(|&column| differs(pair, column))) {
            return tell("in the order, row", at, pair);
        }
        // The others as sets: by all that is exact.
        let sorted = |rows: &'_ [Vec<Option<String>>]| {
            let exact = |row: &Vec<Option<String>>| -> Vec<Option<String>> {
                let columns = (0..row.len()).filter(|&column| kind(column) != Kind::Double);
                columns
                    .map(|column| {
                        row[column].as_deref().map(|c| if kind(column) == Kind::Number { number(c).to_string() } else { c.into() })
                    })
                    .collect()
            };
            let mut rows = rows.to_vec();
            rows.sort_by_cached_key(exact);
            rows
        };
        let (mine, theirs) = (sorted(&self.rows), sorted(&other.rows));
        let mut pairs = mine.iter().zip(&theirs).enumerate();
        pairs
            .find(|(_, pair)| (0..self.kinds.len()).any(|column| differs(pair, column)))
            .and_then(|(at, pair)| tell("of the sorted rows, row", at, pair))
    }
}

fn same(a: &Option<String>, b: &Option<String>, kind: Kind) -> bool {
    match (a, b, kind) {
        (Some(a), Some(b), Kind::Number) => number(a) == number(b),
        (Some(a), Some(b), Kind::Double) => near(a, b),
        (a, b, _) => a == b,
    }
}

/// Without zeros behind the point.
fn number(text: &str) -> &str {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    }
}

/// Equal but for the last digits of a double and what the shorter text has rounded: MySQL's division is of decimals, DuckDB's of doubles.
fn near(a: &str, b: &str) -> bool {
    let (Ok(x), Ok(y)) = (a.parse::<f64>(), b.parse::<f64>()) else { return a == b };
    let places =
        |text: &str| if text.contains(['e', 'E']) { i32::MAX } else { text.split_once('.').map_or(0, |(_, digits)| digits.len() as i32) };
    let rounding = 0.5 * 10f64.powi(-places(a).min(places(b)).min(300));
    // A double that is whole is written without digits behind the point or with one: nothing has been rounded.
    let rounding = if rounding > 0.001 { 0.0 } else { rounding };
    (x - y).abs() <= rounding * 1.000_001 + x.abs().max(y.abs()) * 1e-9
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(kinds: &[Kind], rows: &[&[&str]]) -> Answer {
        let row = |row: &&[&str]| row.iter().map(|c| (*c != "NULL").then(|| c.to_string())).collect();
        Answer { kinds: kinds.to_vec(), rows: rows.iter().map(row).collect() }
    }

    #[test]
    fn numbers_exactly_doubles_nearly() {
        let mine = answer(&[Kind::Number, Kind::Number, Kind::Text], &[&["1.50", "0.333333", "x"], &["NULL", "100", "x"]]);
        let theirs = |cells: [&str; 3]| answer(&[Kind::Number, Kind::Double, Kind::Text], &[&cells, &["NULL", "100.0", "x"]]);
        assert_eq!(mine.difference(&theirs(["1.5", "0.33333333333333331", "x"]), &[]), None);
        for wrong in [["1.51", "0.333333", "x"], ["1.5", "0.3333345", "x"], ["1.5", "0.333333", "X"], ["NULL", "0.333333", "x"]] {
            assert!(mine.difference(&theirs(wrong), &[]).is_some(), "{wrong:?}");
        }
        assert!(mine.difference(&answer(&mine.kinds, &[]), &[]).is_some());
    }

    #[test]
    fn only_the_order_of_order_by_counts() {
        let kinds = [Kind::Number, Kind::Text];
        let mine = answer(&kinds, &[&["1", "a"], &["1", "b"], &["2", "c"]]);
        let ties = answer(&kinds, &[&["1", "b"], &["1.0", "a"], &["2", "c"]]);
        assert_eq!(mine.difference(&ties, &[0]), None);
        assert!(mine.difference(&ties, &[0, 1]).is_some());
        assert!(mine.difference(&answer(&kinds, &[&["2", "c"], &["1", "b"], &["1", "a"]]), &[0]).is_some());
        assert!(mine.difference(&answer(&kinds, &[&["1", "a"], &["1", "a"], &["2", "c"]]), &[0]).is_some());
    }

    #[test]
    fn files_hold_answers() {
        let file = std::env::temp_dir().join(format!("highkey-lab-answer-{}", std::process::id()));
        let written = answer(&[Kind::Number, Kind::Double, Kind::Text], &[&["1", "0.5", ""], &["NULL", "NULL", "a b"]]);
        written.write(&file).unwrap();
        assert_eq!(Answer::read(&file).unwrap(), written);
        std::fs::remove_file(&file).unwrap();
    }
}
