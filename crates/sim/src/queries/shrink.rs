//! Makes a query that fails smaller: parts are left out, and parentheses become what is in them or a constant, as long as it still fails.

use std::time::{Duration, Instant};

use super::select::Query;
use super::{Order, Runner, compare};
use crate::Result;

/// Queries to try.
const TRIES: usize = 250;
/// Time for all of them, and of one on a server: without its conditions a join is a large one.
const TIME: Duration = Duration::from_secs(20);
const LIMIT_MS: u32 = 500;
/// MySQL's error of syntax.
const SYNTAX: u16 = 1064;

/// The smaller query's text and what differs; `None` if nothing can be left out.
pub async fn shrink(
    query: Query,
    error: Option<u16>,
    runners: &mut [Runner],
    mut mysql: Option<&mut Runner>,
) -> Result<Option<(String, String)>> {
    for runner in runners.iter_mut().chain(mysql.as_deref_mut()) {
        runner.limit(LIMIT_MS).await?;
    }
    let smaller = smaller(query, error, runners, &mut mysql).await;
    for runner in runners.iter_mut().chain(mysql) {
        runner.limit(super::LIMIT_MS).await?;
    }
    smaller
}

async fn smaller(
    query: Query,
    error: Option<u16>,
    runners: &mut [Runner],
    mysql: &mut Option<&mut Runner>,
) -> Result<Option<(String, String)>> {
    let (start, mut tries) = (Instant::now(), TRIES);
    let mut best: Option<(String, String)> = None;
    let mut query = query;
    'again: loop {
        for smaller in without_a_part(&query) {
            if tries == 0 || start.elapsed() > TIME {
                break 'again;
            }
            tries -= 1;
            let sql = smaller.sql();
            if let Some(difference) = fails(error, runners, mysql, &sql, Order::of(&smaller)).await? {
                best = Some((sql, difference));
                query = smaller;
                continue 'again;
            }
        }
        break;
    }
    let mut sql = query.sql();
    // Here text is cut: what is no SQL then would fail as well.
    if error == Some(SYNTAX) {
        return Ok(best);
    }
    'again: loop {
        for smaller in without_parentheses(&sql) {
            if tries == 0 || start.elapsed() > TIME {
                break 'again;
            }
            tries -= 1;
            if let Some(difference) = fails(error, runners, mysql, &smaller, Order::of(&query)).await? {
                best = Some((smaller.clone(), difference));
                sql = smaller;
                continue 'again;
            }
        }
        break;
    }
    Ok(best)
}

/// What differs, if it is of the same kind: what has been left out must not be a new error.
async fn fails(
    error: Option<u16>,
    runners: &mut [Runner],
    mysql: &mut Option<&mut Runner>,
    sql: &str,
    order: Order,
) -> Result<Option<String>> {
    Ok(compare(runners, mysql.as_deref_mut(), sql, order).await?.difference.filter(|d| d.error == error).map(|d| d.text))
}

/// Each part left out once. ORDER BY goes only when LIMIT has gone: what a LIMIT leaves depends on it.
fn without_a_part(query: &Query) -> Vec<Query> {
    let mut all = Vec::new();
    let mut push = |change: &dyn Fn(&mut Query)| {
        let mut smaller = query.clone();
        change(&mut smaller);
        all.push(smaller);
    };
    if query.selects.len() > 1 {
        (0..query.selects.len()).for_each(|at| {
            push(&|q| {
                q.selects.remove(at);
                q.selects[0].0.clear();
            })
        });
    }
    (0..query.with.len()).for_each(|at| push(&|q| drop(q.with.remove(at))));
    if query.limit.is_some() {
        push(&|q| q.limit = None);
    } else if !query.order.is_empty() {
        push(&|q| {
            q.order.clear();
            q.total = false;
        });
    }
    for (number, (_, select)) in query.selects.iter().enumerate() {
        (0..select.joins.len()).for_each(|at| push(&|q| drop(q.selects[number].1.joins.remove(at))));
        (0..select.conditions.len()).for_each(|at| push(&|q| drop(q.selects[number].1.conditions.remove(at))));
        (0..select.having.len()).for_each(|at| push(&|q| drop(q.selects[number].1.having.remove(at))));
        if select.items.len() > 1 {
            (0..select.items.len()).for_each(|at| push(&|q| drop(q.selects[number].1.items.remove(at))));
        }
        (0..select.group.len()).for_each(|at| push(&|q| drop(q.selects[number].1.group.remove(at))));
        if select.rollup {
            push(&|q| q.selects[number].1.rollup = false);
        }
    }
    all
}

/// Each pair of parentheses, with the word before it, replaced by NULL or 1, or by what is in it.
fn without_parentheses(sql: &str) -> Vec<String> {
    let bytes = sql.as_bytes();
    let (mut open, mut pairs, mut quoted) = (Vec::new(), Vec::new(), false);
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'\'' => quoted = !quoted,
            b'(' if !quoted => open.push(at),
            b')' if !quoted => pairs.extend(open.pop().map(|start| (start, at))),
            _ => {}
        }
    }
    // The outermost first: they take most away.
    pairs.sort_by_key(|&(start, end)| std::cmp::Reverse(end - start));
    let mut all = Vec::new();
    for (start, end) in pairs {
        let name = sql[..start].bytes().rev().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        let (before, inside, after) = (&sql[..start - name], &sql[start + 1..end], &sql[end + 1..]);
        all.extend([" NULL ", " 1 "].map(|constant| format!("{before}{constant}{after}")));
        if !inside.starts_with("SELECT") && !inside.contains(", ") {
            let (first, rest) = inside.split_once([' ']).unwrap_or((inside, ""));
            // An operand of an operation stands for it.
            let last = rest.rsplit_once(' ').map(|r| r.1);
            all.extend(
                [Some(first), last]
                    .into_iter()
                    .flatten()
                    .filter(|part| part.matches('(').count() == part.matches(')').count())
                    .map(|part| format!("{before}{part}{after}")),
            );
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::select::Select;
    use super::*;

    #[test]
    fn parts_are_left_out_one_at_a_time() {
        let select =
            Select { items: vec!["a".into(), "b".into()], from: "t s".into(), conditions: vec!["(a = 1)".into()], ..Select::default() };
        let query = Query {
            selects: vec![(String::new(), select)],
            order: vec!["a".into()],
            limit: Some("1".into()),
            total: true,
            ..Query::default()
        };
        let texts: Vec<String> = without_a_part(&query).iter().map(Query::sql).collect();
        assert_eq!(
            texts,
            [
                "SELECT a, b FROM t s WHERE (a = 1) ORDER BY a",
                "SELECT a, b FROM t s ORDER BY a LIMIT 1",
                "SELECT b FROM t s WHERE (a = 1) ORDER BY a LIMIT 1",
                "SELECT a FROM t s WHERE (a = 1) ORDER BY a LIMIT 1",
            ]
        );
    }

    #[test]
    fn parentheses_become_constants_or_operands() {
        let texts = without_parentheses("SELECT ABS((a + b)) FROM t WHERE c = '('");
        assert!(texts.contains(&"SELECT  NULL  FROM t WHERE c = '('".to_string()), "{texts:?}");
        assert!(texts.contains(&"SELECT ABS(a) FROM t WHERE c = '('".to_string()), "{texts:?}");
        assert!(texts.contains(&"SELECT ABS(b) FROM t WHERE c = '('".to_string()), "{texts:?}");
    }
}
