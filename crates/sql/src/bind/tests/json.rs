//! JSON beyond MySQL 8.0.12: what the manual says of later releases. The rest is recorded in `tests/golden/json*.sql`.

use super::*;

fn value(text: &str) -> String {
    let mut session = TestSession::without_tables();
    let expr = bind_one(&session, text).unwrap_or_else(|e| panic!("{text}: {e:?}"));
    let value = eval(&expr, &[], &mut session).unwrap_or_else(|e| panic!("{text}: {e:?}"));
    shown(&value, &expr.ty)
}

#[test]
fn member_of() {
    for (expression, expected) in [
        (r#"17 MEMBER OF('[23, "abc", 17, "ab", 10]')"#, "1"),
        (r#"'ab' MEMBER OF('[23, "abc", 17, "ab", 10]')"#, "1"),
        (r#"7 MEMBER OF('[23, "abc", 17, "ab", 10]')"#, "0"),
        (r#"'a' MEMBER OF('[23, "abc", 17, "ab", 10]')"#, "0"),
        (r#"17 MEMBER OF('[23, "abc", "17", "ab", 10]')"#, "0"),
        (r#"'17' MEMBER OF('[23, "abc", 17, "ab", 10]')"#, "0"),
        ("CAST('[4,5]' AS JSON) MEMBER OF('[[3,4],[4,5]]')", "1"),
        ("JSON_ARRAY(4,5) MEMBER OF('[[3,4],[4,5]]')", "1"),
        ("'[4,5]' MEMBER OF('[[3,4],[4,5]]')", "0"),
        // No part of an element is a member, and a scalar is the only one of itself.
        ("4 MEMBER OF('[[3,4],[4,5]]')", "0"),
        ("5 MEMBER OF('5')", "1"),
        ("true MEMBER OF('[1, true]')", "1"),
        ("true MEMBER OF('[1]')", "0"),
        ("NULL MEMBER OF('[null]')", "\\N"),
        ("1 MEMBER OF(NULL)", "\\N"),
    ] {
        assert_eq!(value(expression), expected, "{expression}");
    }
}

#[test]
fn overlaps() {
    for (expression, expected) in [
        (r#"JSON_OVERLAPS("[1,3,5,7]", "[2,5,7]")"#, "1"),
        (r#"JSON_OVERLAPS("[1,3,5,7]", "[2,6,8]")"#, "0"),
        (r#"JSON_OVERLAPS("[[1,2],[3,4],5]", "[1,[2,3],[4,5]]")"#, "0"),
        (r#"JSON_OVERLAPS('{"a":1,"b":10,"d":10}', '{"c":1,"e":10,"f":1,"d":10}')"#, "1"),
        (r#"JSON_OVERLAPS('{"a":1,"b":10,"d":10}', '{"a":5,"e":10,"f":1,"d":20}')"#, "0"),
        ("JSON_OVERLAPS('5', '5')", "1"),
        ("JSON_OVERLAPS('5', '6')", "0"),
        ("JSON_OVERLAPS('[4,5,6,7]', '6')", "1"),
        (r#"JSON_OVERLAPS('[4,5,"6",7]', '6')"#, "0"),
        ("JSON_OVERLAPS(NULL, '6')", "\\N"),
    ] {
        assert_eq!(value(expression), expected, "{expression}");
    }
}
