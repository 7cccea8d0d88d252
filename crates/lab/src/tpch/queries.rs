//! The 22 queries, with the substitution parameters of the specification's validation run. Their text is that of the SQL crate's own tests.

/// Queries are numbered from 1.
pub const COUNT: usize = 22;

/// Text of all, query 1 first.
pub fn texts() -> Vec<&'static str> {
    include_str!("../../../sql/src/df/tests/tpch.sql").split(';').map(str::trim).filter(|q| !q.is_empty()).collect()
}

/// The columns of the answer, from 0, that ORDER BY names.
pub fn order(query: usize) -> &'static [usize] {
    match query {
        1 | 9 => &[0, 1],
        2 => &[0, 2, 1, 3],
        3 => &[1, 2],
        4 | 8 | 12 | 15 | 20 | 22 => &[0],
        5 | 11 => &[1],
        7 => &[0, 1, 2],
        10 => &[2],
        13 | 21 => &[1, 0],
        16 => &[3, 0, 1, 2],
        18 => &[4, 3],
        _ => &[],
    }
}

/// The query with an optimizer hint behind its outermost SELECT.
pub fn hinted(text: &str, hint: &str) -> String {
    let mut depth = 0;
    let outermost = text.char_indices().find(|&(at, c)| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth == 0 && text[at..].starts_with("select")
    });
    let (at, _) = outermost.expect("a query has a SELECT");
    let (before, after) = text.split_at(at + "select".len());
    format!("{before} /*+ {hint} */{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_there_and_order_names_their_columns() {
        let texts = texts();
        assert_eq!(texts.len(), COUNT);
        for (i, text) in texts.iter().enumerate() {
            let by = text.rsplit_once("order by ").map_or("", |(_, by)| by).split(" limit ").next().unwrap();
            let named = if by.is_empty() { 0 } else { by.split(", ").count() };
            assert_eq!(order(i + 1).len(), named, "query {}", i + 1);
        }
    }

    #[test]
    fn a_hint_stands_behind_the_outermost_select() {
        assert_eq!(hinted("select a from b", "PQ"), "select /*+ PQ */ a from b");
        let query = "with c as (select 1 as d) select d from c where d in (select 1)";
        assert_eq!(hinted(query, "PQ(4)"), "with c as (select 1 as d) select /*+ PQ(4) */ d from c where d in (select 1)");
    }
}
