//! Random statements and expressions: anything but a panic is a good answer. `SEED=n` repeats a run.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::functions::FuncId;

/// Where panics happened, each with the first text that led there.
fn survive(found: &mut std::collections::BTreeMap<String, String>, text: &str, f: impl FnOnce()) {
    thread_local! {
        static PLACE: std::cell::RefCell<String> = const { std::cell::RefCell::new(String::new()) };
    }
    std::panic::set_hook(Box::new(|info| PLACE.with_borrow_mut(|place| *place = info.to_string().replace('\n', " "))));
    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).is_err() {
        found.entry(PLACE.with_borrow(Clone::clone)).or_insert_with(|| text.to_string());
    }
    let _ = std::panic::take_hook();
}

fn seeded() -> StdRng {
    let seed: u64 = std::env::var("SEED").ok().and_then(|s| s.parse().ok()).unwrap_or_else(rand::random);
    println!("SEED={seed}");
    StdRng::seed_from_u64(seed)
}

const OPERANDS: &[&str] = &[
    "NULL", "0", "1", "-1", "2.5", "-0.5", "1e300", "9223372036854775807", "18446744073709551615", "-9223372036854775808", "''", "'a'", "'12abc'", "'é€😀'",
    "x'00ff41'", "x'c3'", "date'2020-02-29'", "time'-838:59:59'", "timestamp'9999-12-31 23:59:59.999999'", "'2020-00-00'", "'0000-00-00'", "true", "b'101'",
    "99999999999999999999999999999999999.999999999999999999999999999999", "'{\"a\": [1, null]}'", "cast('[1]' as json)", "'%Y-%m-%d %H:%i:%s.%f %X%V%W'", "'$.a[0]'",
    "_latin1'abc'", "'a' collate utf8mb4_bin", "cast(5 as unsigned)",
];

const OPERATORS: &[&str] = &[
    "+", "-", "*", "/", "DIV", "%", "&", "|", "^", "<<", ">>", "=", "<=>", "<>", "<", ">=", "AND", "OR", "XOR", "LIKE", "REGEXP", "NOT LIKE",
];

fn expression(rng: &mut StdRng, depth: usize) -> String {
    if depth == 0 || rng.random_bool(0.2) {
        return OPERANDS[rng.random_range(0..OPERANDS.len())].to_string();
    }
    let operand = |rng: &mut StdRng| expression(rng, depth - 1);
    match rng.random_range(0..10) {
        0..4 => {
            let func = FuncId::ALL[rng.random_range(0..FuncId::ALL.len())];
            let (least, most) = func.arity();
            let slow = matches!(func, FuncId::Sleep | FuncId::Benchmark | FuncId::GetLock | FuncId::WaitForExecutedGtidSet);
            if !func.is_named() || slow || matches!(func, FuncId::GetFormat | FuncId::WeightString) {
                return operand(rng);
            }
            let count = rng.random_range(least..=most.min(least + 2));
            let args: Vec<String> = (0..count).map(|_| operand(rng)).collect();
            format!("{}({})", func.name(), args.join(", "))
        }
        4..7 => format!("({} {} {})", operand(rng), OPERATORS[rng.random_range(0..OPERATORS.len())], operand(rng)),
        7 => {
            let types = ["signed", "unsigned", "decimal(10,3)", "char(3)", "binary(5)", "date", "datetime(3)", "time(6)", "json", "double", "char charset latin1"];
            format!("cast({} as {})", operand(rng), types[rng.random_range(0..types.len())])
        }
        8 => {
            let units = ["MICROSECOND", "SECOND", "DAY", "MONTH", "YEAR", "DAY_MICROSECOND", "YEAR_MONTH", "WEEK", "MINUTE_SECOND"];
            let unit = units[rng.random_range(0..units.len())];
            match rng.random_range(0..3) {
                0 => format!("({} + INTERVAL {} {unit})", operand(rng), operand(rng)),
                1 => format!("EXTRACT({unit} FROM {})", operand(rng)),
                _ => format!("TIMESTAMPDIFF({}, {}, {})", if unit.contains('_') { "DAY" } else { unit }, operand(rng), operand(rng)),
            }
        }
        _ => match rng.random_range(0..4) {
            0 => format!("CASE WHEN {} THEN {} ELSE {} END", operand(rng), operand(rng), operand(rng)),
            1 => format!("({} IN ({}, {}))", operand(rng), operand(rng), operand(rng)),
            2 => format!("({} BETWEEN {} AND {})", operand(rng), operand(rng), operand(rng)),
            _ => format!("({} IS {}NULL)", operand(rng), if rng.random_bool(0.5) { "NOT " } else { "" }),
        },
    }
}

#[test]
fn random_expressions_evaluate() {
    let mut rng = seeded();
    let mut found = std::collections::BTreeMap::new();
    for _ in 0..3_000 {
        let text = expression(&mut rng, 3);
        let mut session = TestSession::without_tables();
        survive(&mut found, &text, || {
            if let Ok(expr) = bind_one(&session, &text)
                && let Ok(value) = eval(&expr, &[], &mut session)
            {
                shown(&value, &expr.ty);
            }
        });
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn damaged_statements_bind_or_fail() {
    let mut rng = seeded();
    let session = TestSession::with_tables();
    let corpus: Vec<&str> = include_str!("../../parse/accepted.sql").split(";\n").chain(super::plans::QUERIES.iter().copied()).collect();
    let mut found = std::collections::BTreeMap::new();
    let words: Vec<&str> = corpus.iter().flat_map(|s| s.split(' ')).collect();
    for _ in 0..3_000 {
        let mut text: Vec<&str> = corpus[rng.random_range(0..corpus.len())].split(' ').collect();
        for _ in 0..rng.random_range(0..4) {
            let at = rng.random_range(0..text.len());
            match rng.random_range(0..3) {
                0 => text[at] = ["t", "u", "a", "b", "id", "t.a", "u.name", "*", "1", "NULL", "count(*)", "(SELECT max(a) FROM t)"][rng.random_range(0..12)],
                1 => text[at] = words[rng.random_range(0..words.len())],
                _ => text.insert(at, words[rng.random_range(0..words.len())]),
            }
        }
        let text = text.join(" ");
        survive(&mut found, &text, || {
            let Ok(parsed) = parse::parse_single(&text, ParseOptions::default()) else { return };
            match parsed.statement {
                ast::Statement::Query(query) => {
                    if let Ok(bound) = bind_query(&query, &session) {
                        crate::plan::describe_rel(&bound.rel);
                        let mut leftovers = 0;
                        bound.rel.for_each_expr(&mut |e, _| {
                            leftovers += usize::from(matches!(e.kind, crate::plan::ExprKind::AggregateRef(_) | crate::plan::ExprKind::WindowRef(_)));
                        });
                        assert_eq!(leftovers, 0, "B1: finished plans hold no binder references");
                    }
                }
                ast::Statement::Insert(insert) => drop(bind_insert(&insert, &session)),
                ast::Statement::Update(update) => drop(bind_update(&update, &session)),
                ast::Statement::Delete(delete) => drop(bind_delete(&delete, &session)),
                ast::Statement::LoadData(load) => drop(bind_load(&load, &session)),
                _ => {}
            }
        });
    }
    assert!(found.is_empty(), "{found:#?}");
}
