//! Statements that must parse, and errors as MySQL shapes them.

use super::ast::*;
use super::*;

fn one(sql: &str) -> Statement {
    parse_single(sql, ParseOptions::default()).unwrap_or_else(|e| panic!("{sql}: {e}")).statement
}

fn error(sql: &str) -> MySqlError {
    parse_single(sql, ParseOptions::default()).err().unwrap_or_else(|| panic!("{sql} parsed"))
}

#[test]
fn every_form_parses() {
    for sql in include_str!("accepted.sql").split(";\n").map(str::trim).filter(|s| !s.is_empty()) {
        one(sql);
    }
}

#[test]
fn what_is_not_built_says_so() {
    for sql in ["CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET @a = 1", "CALL p()", "SELECT MATCH(a) AGAINST('x')", "LOAD DATA INFILE 'f' INTO TABLE t PARTITION (p)"] {
        assert_eq!(error(sql).code, 1235, "{sql}");
    }
}

#[test]
fn syntax_errors_name_the_place() {
    let e = error("SELECT 1\nFROM t WHER x = 1");
    assert_eq!(e.code, 1064);
    assert!(e.message.ends_with("near 'x = 1' at line 2"), "{}", e.message);
    assert!(error("SELECT * FROM").message.ends_with("near '' at line 1"));
    assert!(error("SELEC 1").message.ends_with("near 'SELEC 1' at line 1"));
}

#[test]
fn several_statements() {
    let sql = "SELECT 1; SELECT ';' /* ; */ ; ";
    let first = parse(sql, 0, ParseOptions::default()).unwrap();
    assert_eq!(&sql[first.text.clone()], "SELECT 1");
    let second = parse(sql, first.next.unwrap(), ParseOptions::default()).unwrap();
    assert!(second.next.is_none());
}

#[test]
fn names_of_result_columns() {
    let Statement::Query(query) = one("SELECT 1+1, a.b, 'x' 'y', @a, count( * ), NULL as n, (1), null, tRue, _utf8mb4'z', ((1+1)), -1") else { panic!() };
    let QueryBody::Select(select) = query.body else { panic!() };
    let names: Vec<_> = select.items.iter().map(|i| if let SelectItem::Expr { name, .. } = i { name.as_str() } else { "*" }).collect();
    assert_eq!(names, ["1+1", "b", "x", "@a", "count( * )", "n", "1", "NULL", "TRUE", "z", "((1+1))", "-1"]);
}

#[test]
fn precedence() {
    let tree = |sql: &str| format!("{:?}", parse_expr(sql).unwrap().kind).replace(char::is_whitespace, "");
    let top = |sql: &str| match parse_expr(sql).unwrap().kind {
        ExprKind::Binary { op, .. } => op,
        other => panic!("{sql}: {other:?}"),
    };
    assert_eq!(top("a or b and c"), BinaryOp::Or);
    assert_eq!(top("1 + 2 * 3"), BinaryOp::Add);
    assert_eq!(top("1 | 2 & 3"), BinaryOp::BitOr);
    assert_eq!(top("a = b xor c"), BinaryOp::Xor);
    assert_eq!(top("1 - 2 - 3 = x"), BinaryOp::Eq);
    assert!(tree("not a = b").starts_with("Unary"));
    assert!(tree("a + interval 1 day").starts_with("DateArith"));
    assert!(tree("a between 1 and 2 and b").starts_with("Binary"));
}

#[test]
fn deep_nesting_is_an_error_not_a_crash() {
    let sql = format!("SELECT {}1{}", "(".repeat(5000), ")".repeat(5000));
    assert_eq!(error(&sql).code, 1436);
}

#[test]
fn sql_mode_changes_quotes_and_pipes() {
    let options = ParseOptions { ansi_quotes: true, pipes_as_concat: true, ..Default::default() };
    let Statement::Query(query) = parse_single("SELECT \"a\" || 'b'", options).unwrap().statement else { panic!() };
    let QueryBody::Select(select) = query.body else { panic!() };
    let SelectItem::Expr { expr, .. } = &select.items[0] else { panic!() };
    assert!(matches!(&expr.kind, ExprKind::Binary { op: BinaryOp::Concat, left, .. } if matches!(left.kind, ExprKind::Column(_))));
}

#[test]
fn damaged_statements_are_errors_not_panics() {
    use rand::{Rng, SeedableRng};
    let seed: u64 = std::env::var("SEED").ok().and_then(|s| s.parse().ok()).unwrap_or_else(rand::random);
    println!("SEED={seed}");
    let mut rng = rand::rngs::StdRng::seed_from_u64(seed);
    let statements: Vec<&str> = include_str!("accepted.sql").split(";\n").collect();
    let pieces = ["(", ")", "'", "`", "/*", "*/", "é", "SELECT", ",", ".", "@", "@@", "0x", "1e", "-- ", "\\", "NOT", "\u{1f600}", "/*!", "/*+ PQ('"];
    for _ in 0..20_000 {
        let mut chars: Vec<char> = statements[rng.random_range(0..statements.len())].chars().collect();
        for _ in 0..rng.random_range(1..4) {
            let at = rng.random_range(0..=chars.len());
            if rng.random_bool(0.5) && at < chars.len() {
                let end = (at + rng.random_range(1..8)).min(chars.len());
                chars.drain(at..end);
            } else {
                chars.splice(at..at, pieces[rng.random_range(0..pieces.len())].chars());
            }
        }
        let text: String = chars.into_iter().collect();
        let _ = parse(&text, 0, ParseOptions::default());
    }
}
