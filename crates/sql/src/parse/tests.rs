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
    for sql in [
        "CREATE FUNCTION f RETURNS INT SONAME 'f.so'",
        "CREATE TABLE t (a INT) PARTITION BY HASH (a) PARTITIONS 2 SUBPARTITION BY HASH (a)",
    ] {
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
fn options_of_accounts_are_those_that_mysql_has() {
    for (options, code, end) in [
        ("IDENTIFIED BY 'x' FOO", 1064, "to use near 'FOO' at line 1"),
        ("IDENTIFIED BY 'x' REPLACE 'y'", 1064, "near 'REPLACE 'y'' at line 1"),
        ("IDENTIFIED BY 'x' AS 'y'", 1064, "near 'AS 'y'' at line 1"),
        ("REQUIRE", 1064, "near '' at line 1"),
        ("REQUIRE NONE SSL", 1064, "near 'SSL' at line 1"),
        ("REQUIRE SSL AND X509", 1064, "near 'AND X509' at line 1"),
        ("REQUIRE CIPHER 'a' AND", 1064, "near '' at line 1"),
        ("REQUIRE SUBJECT 'a' AND SUBJECT 'b'", 1225, "Option 'SUBJECT' used twice in statement"),
        ("WITH", 1064, "near '' at line 1"),
        ("WITH GRANT OPTION", 1064, "near 'GRANT OPTION' at line 1"),
        ("WITH MAX_QUERIES_PER_HOUR -1", 1064, "near '-1' at line 1"),
        ("WITH MAX_QUERIES_PER_HOUR '1'", 1064, "near ''1'' at line 1"),
        ("ACCOUNT LOCK REQUIRE SSL", 1064, "near 'REQUIRE SSL' at line 1"),
        ("ACCOUNT LOCK, v", 1064, "near ', v' at line 1"),
        ("ACCOUNT", 1064, "near '' at line 1"),
        ("PASSWORD", 1064, "near '' at line 1"),
        ("PASSWORD EXPIRE INTERVAL 3 MONTH", 1064, "near 'MONTH' at line 1"),
        ("PASSWORD EXPIRE INTERVAL 0 DAY", 1525, "Incorrect DAY value: '0'"),
        ("PASSWORD EXPIRE INTERVAL 65536 DAY", 1525, "Incorrect DAY value: '65536'"),
        ("PASSWORD EXPIRE INTERVAL 1.5 DAY", 1064, "Only integers allowed as number here near '1.5 DAY' at line 1"),
        ("PASSWORD REUSE INTERVAL 5", 1064, "near '' at line 1"),
        ("REQUIRE NONE DEFAULT ROLE r", 1064, "near 'DEFAULT ROLE r' at line 1"),
    ] {
        let e = error(&format!("CREATE USER u {options}"));
        assert_eq!(e.code, code, "{options}");
        assert!(e.message.ends_with(end), "{options}: {}", e.message);
    }
    for sql in ["ALTER USER USER()", "ALTER USER USER() ACCOUNT UNLOCK", "ALTER USER USER() IDENTIFIED BY '', u ACCOUNT LOCK", "ALTER USER u IDENTIFIED BY 'x' DEFAULT ROLE r"] {
        assert_eq!(error(sql).code, 1064, "{sql}");
    }
    let options = |sql: &str| match one(sql) {
        Statement::CreateUser { options, .. } => options,
        _ => panic!("{sql}"),
    };
    let expired = ["PASSWORD EXPIRE", "PASSWORD EXPIRE NEVER PASSWORD EXPIRE", "PASSWORD EXPIRE ACCOUNT LOCK PASSWORD EXPIRE NEVER ACCOUNT UNLOCK"]
        .map(|text| options(&format!("CREATE USER u {text}")).password_expire);
    assert_eq!(expired, [true, true, false]);
    let written = options("CREATE USER u require issuer 'I' and Subject 's' with max_user_connections 1.5 MAX_USER_CONNECTIONS 0x10 Comment 'c'");
    assert_eq!(written.require.join(" "), "ISSUER 'I' AND SUBJECT 's'");
    assert_eq!(written.other.join(" "), "WITH MAX_USER_CONNECTIONS 1.5 MAX_USER_CONNECTIONS 0x10 COMMENT 'c'");
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

/// As MySQL 8.0.12 does it.
#[test]
fn texts_name_columns_up_to_255_bytes() {
    for (text, bytes) in [(format!("LENGTH('{}')", "x".repeat(300)), 255), (format!("'{}'", "€".repeat(300)), 255), (format!("'{}'", "é".repeat(128)), 254), (format!("'{}'", "y".repeat(255)), 255)] {
        let Statement::Query(query) = one(&format!("SELECT {text}")) else { panic!() };
        let QueryBody::Select(select) = query.body else { panic!() };
        let Some(SelectItem::Expr { name, .. }) = select.items.first() else { panic!() };
        assert!(name.len() == bytes && text.trim_start_matches('\'').starts_with(name), "{name}");
    }
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
fn operators_in_a_row_are_as_many_levels() {
    let chain = |first: &str, next: &str, count: usize| format!("SELECT {first}{}", next.repeat(count));
    let nexts = [" + a", " - 1", " * a", " | a", " = a", " IS NULL", " IS NOT TRUE", " XOR a", " + INTERVAL 1 DAY", " COLLATE utf8mb4_bin", "->'$.a'"];
    for next in nexts {
        one(&chain("a", next, 990));
        for count in [1010, 300_000] {
            assert_eq!(error(&chain("a", next, count)).code, 1436, "{next} {count} times");
        }
    }
    for (open, close) in [("-", ""), ("NOT ", ""), ("!", ""), ("INTERVAL 1 DAY + ", ""), ("a + (", ")"), ("f(", ")"), ("CASE WHEN ", " THEN 1 END")] {
        one(&format!("SELECT {}a{}", open.repeat(300), close.repeat(300)));
        for count in [1010, 100_000] {
            assert_eq!(error(&format!("SELECT {}a{}", open.repeat(count), close.repeat(count))).code, 1436, "{open} {count} times");
        }
    }
    // Each level of parentheses alone would do.
    let mut nested = String::from("a");
    for _ in 0..10 {
        nested = format!("({nested}{})", " + a".repeat(200));
    }
    assert_eq!(error(&format!("SELECT {nested}")).code, 1436);
    let concat = ParseOptions { pipes_as_concat: true, ..Default::default() };
    assert_eq!(parse_single(&chain("a", " || a", 100_000), concat).unwrap_err().code, 1436);
}

#[test]
fn what_stands_beside_each_other_is_no_level() {
    for text in [" OR a = 1", " AND a = b + 1", " OR (a = 1 AND b < 2)", ", a + 1", " OR a LIKE 'x' OR a BETWEEN 1 AND 2 + 3", " OR a IN (1, 2, 3)"] {
        one(&format!("SELECT 1 FROM t WHERE f(a, a{})", text.repeat(20_000)));
    }
    one(&format!("SELECT 1 FROM t WHERE a IN (0{})", ", 1".repeat(100_000)));
    one(&format!("INSERT INTO t VALUES (1, -1, NOW() + 1){}", ", (1, -1, NOW() + 1)".repeat(20_000)));
    one(&format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(5000)));
}

#[test]
fn what_is_printed_with_its_parentheses_is_read_again() {
    let printed = format!("{}a{}", "(".repeat(3000), ")".repeat(3000));
    parse_expr(&printed).unwrap();
    parse_query(&format!("select {printed} AS `x`")).unwrap();
}

#[test]
fn selects_and_tables_are_as_many_as_mysql_takes() {
    let selects = |count: usize| format!("SELECT {}1{}", "(SELECT ".repeat(count), ")".repeat(count));
    one(&selects(63));
    assert_eq!(error(&selects(64)).code, 1473);
    one(&format!("SELECT 1{}", " EXCEPT SELECT 2".repeat(60)));
    assert_eq!(error(&format!("SELECT 1{}", " EXCEPT SELECT 2".repeat(5000))).code, 1473);
    let tables = |with: &str, count: usize| format!("SELECT 1 FROM t{}", with.repeat(count));
    for with in [", t", " JOIN t", " NATURAL JOIN t", " JOIN (SELECT 1) AS d", " LEFT JOIN t ON 1"] {
        one(&tables(with, 60));
        let e = error(&tables(with, 61));
        assert_eq!((e.code, e.message.as_str()), (1116, "Too many tables; MySQL can only use 61 tables in a join"), "{with}");
    }
    assert_eq!(error(&format!("SELECT 1 FROM t{}{}", " LEFT JOIN t".repeat(3000), " ON 1".repeat(3000))).code, 1116);
    assert_eq!(error(&format!("DELETE t FROM t{} WHERE 1", ", t".repeat(61))).code, 1116);
    // Each FROM has its own.
    one(&format!("SELECT (SELECT 1 FROM t{}) FROM t{}", ", t".repeat(60), ", t".repeat(60)));
}

#[test]
fn parentheses_before_a_subquery() {
    let kind = |text: &str| {
        let Statement::Query(query) = one(&format!("SELECT {text}")) else { panic!() };
        let QueryBody::Select(select) = query.body else { panic!() };
        let Some(SelectItem::Expr { expr, .. }) = select.items.into_iter().next() else { panic!() };
        format!("{:?}", expr.kind).split([' ', '(']).next().unwrap().to_owned()
    };
    for text in ["(SELECT 1)", "((SELECT 1))", "((SELECT 1) UNION (SELECT 2))", "(((SELECT 1) LIMIT 1) ORDER BY 1)", "((SELECT (1)) UNION SELECT 2)"] {
        assert_eq!(kind(text), "Subquery", "{text}");
    }
    for text in ["((SELECT 1) + 1)", "(((SELECT 1)) + 1)", "(((SELECT 1) + 1) + 1)"] {
        assert_eq!(kind(text), "Binary", "{text}");
    }
    assert_eq!(kind("((SELECT 1), 2)"), "Row");
    // Parameters are counted once, and the time does not double with each level.
    assert_eq!(parse_single("SELECT ((SELECT ?) + ?)", ParseOptions::default()).unwrap().params, 2);
    one(&format!("SELECT {}1{}", "((SELECT ".repeat(40), ") + 1)".repeat(40)));
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

fn program(body: &str) -> Program {
    match one(&format!("CREATE PROCEDURE p(a INT, OUT b INT) {body}")) {
        Statement::CreateRoutine(create) => create.program,
        other => panic!("{body}: {other:?}"),
    }
}

/// The steps of a body, each as its kind and where it leads.
fn steps(body: &str) -> Vec<String> {
    let step = |step: Step| match step.instruction {
        Instruction::Run(run) => format!("run {}", run.text),
        Instruction::SelectInto { query, into } => format!("{} into {into:?}", query.text),
        Instruction::Set { variable, value, .. } => format!("set {variable} from {:?}", value.locals),
        Instruction::JumpUnless { to, resume, .. } => format!("unless {to} or {resume}"),
        Instruction::Return(value) => format!("return from {:?}", value.locals),
        Instruction::Jump(to) => format!("jump {to}"),
        Instruction::Declare { handler, after } => format!("declare {handler} to {after}"),
        Instruction::EndHandler { to } => format!("handled {to:?}"),
        Instruction::Leave { handlers, cursors } => format!("leave {handlers:?} {cursors:?}"),
        Instruction::Open(cursor) => format!("open {cursor}"),
        Instruction::Fetch { cursor, into } => format!("fetch {cursor} {into:?}"),
        Instruction::Close(cursor) => format!("close {cursor}"),
        Instruction::CaseNotFound => "no case".to_string(),
    };
    program(body).steps.into_iter().map(step).collect()
}

#[test]
fn bodies_become_steps() {
    assert_eq!(steps("SELECT a, b"), ["run SELECT a, b"]);
    assert_eq!(steps("IF a THEN DO 1; ELSEIF b THEN DO 2; ELSE DO 3; END IF"), ["unless 3 or 7", "run DO 1", "jump 7", "unless 6 or 7", "run DO 2", "jump 7", "run DO 3"]);
    assert_eq!(steps("WHILE a DO DO 1; END WHILE"), ["unless 3 or 3", "run DO 1", "jump 0"]);
    assert_eq!(steps("REPEAT DO 1; UNTIL a END REPEAT"), ["run DO 1", "unless 0 or 2"]);
    assert_eq!(steps("l: LOOP IF a THEN LEAVE l; END IF; ITERATE l; END LOOP l"), ["unless 2 or 2", "jump 4", "jump 0", "jump 0"]);
    assert_eq!(steps("CASE a WHEN 1 THEN DO 1; END CASE"), ["set 2 from [0]", "unless 4 or 5", "run DO 1", "jump 5", "no case"]);
    assert_eq!(
        steps("BEGIN DECLARE c CURSOR FOR SELECT 1; DECLARE EXIT HANDLER FOR 1062 DO 1; OPEN c; FETCH c INTO a, b; CLOSE c; END"),
        ["declare 0 to 3", "run DO 1", "handled Some(6)", "open 0", "fetch 0 [0, 1]", "close 0", "leave 0..1 0..1"]
    );
    assert_eq!(steps("l: BEGIN DECLARE x INT DEFAULT a; DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END; LEAVE l; END"), [
        "set 2 from [0]",
        "declare 0 to 3",
        "handled None",
        "leave 0..1 0..0",
        "jump 6",
        "leave 0..1 0..0",
    ]);
    assert_eq!(steps("SELECT 1, 2 INTO b, @x"), [r#"SELECT 1, 2 INTO b, @x into [Local(1), User("x")]"#]);
    assert_eq!(steps("SET @x = a, b = a + @x"), ["run SET @x = a", "set 1 from [0]"]);
}

#[test]
fn functions_return() {
    let Statement::CreateRoutine(create) = one("CREATE FUNCTION f(a INT, in_b INT) RETURNS VARCHAR(3) CHARSET latin1 NO SQL RETURN a") else { panic!() };
    assert_eq!((create.returns.as_str(), create.parameters.as_str(), create.body.as_str()), ("VARCHAR(3) CHARSET latin1", "a INT, in_b INT", "RETURN a"));
    assert!(matches!(&create.program.steps[..], [Step { instruction: Instruction::Return(value), .. }] if value.locals == [0]));
    let refused = |body: &str| error(&format!("CREATE FUNCTION f() RETURNS INT BEGIN {body}; RETURN 1; END")).code;
    assert_eq!(["SELECT 1", "COMMIT", "EXECUTE s", "FLUSH TABLES", "SET autocommit = 1", "SAVEPOINT s", "SET TRANSACTION READ ONLY"].map(refused), [1415, 1422, 1336, 1336, 1445, 1235, 1235]);
    let in_session = |body: &str| match one(&format!("CREATE FUNCTION f(x INT) RETURNS INT BEGIN {body}; RETURN 1; END")) {
        Statement::CreateRoutine(create) => create.program.in_session,
        _ => panic!("{body}"),
    };
    for body in ["DELETE FROM t", "CALL p()", "SET sql_mode = ''", "SET NAMES utf8", "SELECT a INTO x FROM t LIMIT x"] {
        assert!(in_session(body), "{body}");
    }
    for body in ["SET x = 1, @y = 2", "DO 1", "SELECT a INTO x FROM t LIMIT 1", "SELECT a INTO @y FROM t"] {
        assert!(!in_session(body), "{body}");
    }
    assert_eq!(error("CREATE PROCEDURE p() RETURN 1").code, 1313);
    assert_eq!(error("CREATE FUNCTION f(OUT a INT) RETURNS INT RETURN 1").code, 1064);
    assert_eq!(error("ALTER FUNCTION f DETERMINISTIC").code, 1064);
}

#[test]
fn variables_come_before_columns() {
    let Instruction::Run(run) = program("UPDATE t SET b = a + t.b, c = B WHERE a = `b` LIMIT a").steps.remove(0).instruction else { panic!() };
    assert_eq!(run.locals, [0, 1, 0, 1, 0]);
    let inner = program("BEGIN DECLARE a INT; SELECT a; END").steps.remove(1).instruction;
    assert!(matches!(inner, Instruction::Run(run) if run.locals == [2]));
}

#[test]
fn columns_of_a_triggers_row_are_variables() {
    let sql = "CREATE TRIGGER g BEFORE UPDATE ON s.t FOR EACH ROW FOLLOWS f BEGIN SET NEW.a = OLD.a + new.A; UPDATE u SET b = NEW.b WHERE u.c = OLD.a; END";
    let Statement::CreateTrigger(create) = one(sql) else { panic!() };
    let columns: Vec<_> = create.program.row_columns.iter().map(|column| (column.variable, column.new, column.column.as_str(), column.assignable)).collect();
    assert_eq!(columns, [(0, true, "a", true), (1, false, "a", false), (2, true, "b", true)]);
    let Instruction::Set { variable, value, .. } = &create.program.steps[0].instruction else { panic!() };
    assert_eq!((*variable, value.locals.as_slice()), (0, [1, 0].as_slice()));
    let Instruction::Run(run) = &create.program.steps[1].instruction else { panic!() };
    assert_eq!(run.locals, [2, 1]);
    let code = |change: &str, body: &str| error(&format!("CREATE TRIGGER g {change} ON t FOR EACH ROW {body}")).code;
    assert_eq!(code("BEFORE INSERT", "SET @a = OLD.a"), 1363);
    assert_eq!(code("BEFORE DELETE", "SET NEW.a = 1"), 1363);
    assert_eq!(code("AFTER INSERT", "SET NEW.a = 1"), 1362);
    assert_eq!(code("BEFORE UPDATE", "SET OLD.a = 1"), 1362);
    let dumped = "/*!50003 CREATE*/ /*!50017 DEFINER=`u`@`h`*/ /*!50003 TRIGGER `g` BEFORE INSERT ON `t` FOR EACH ROW BEGIN\n  SET NEW.a = 1;\nEND */";
    assert!(matches!(one(dumped), Statement::CreateTrigger(create) if create.body == "BEGIN\n  SET NEW.a = 1;\nEND"));
}

#[test]
fn a_routine_ends_where_its_body_does() {
    let sql = "CREATE DEFINER=`u`@`h` PROCEDURE p( IN a INT ) COMMENT 'x' BEGIN SELECT 1; SELECT 2; END ; SELECT 3";
    let first = parse(sql, 0, ParseOptions::default()).unwrap();
    assert_eq!(&sql[first.next.unwrap()..], " SELECT 3");
    let Statement::CreateRoutine(create) = first.statement else { panic!() };
    assert_eq!((create.parameters.as_str(), create.body.as_str()), (" IN a INT ", "BEGIN SELECT 1; SELECT 2; END"));
    assert_eq!((first.params, create.characteristics.comment.as_deref()), (0, Some("x")));
    let dumped = "/*!50003 CREATE*/ /*!50020 DEFINER=`u`@`h`*/ /*!50003 PROCEDURE `p`()\nBEGIN\n  SELECT 1;\nEND */";
    assert!(matches!(one(dumped), Statement::CreateRoutine(_)));
    assert_eq!(error("CREATE PROCEDURE p() BEGIN SELECT 1").code, 1064);
    // What looks ahead for a parenthesis ends where the text is no text any more.
    for cut in ["SELECT ((1 '", "SELECT INTERVAL(1 '", "SELECT 1 FROM ((t '", "`"] {
        assert_eq!(error(&format!("CREATE PROCEDURE p() BEGIN SELECT 1; {cut}")).code, 1064, "{cut}");
    }
}

#[test]
fn an_event_ends_where_its_body_does() {
    let dumped = "/*!50106 CREATE*/ /*!50117 DEFINER=`u`@`h`*/ /*!50106 EVENT `e` ON SCHEDULE EVERY 1 DAY STARTS '2037-01-01 00:00:00' ON COMPLETION NOT PRESERVE ENABLE DO BEGIN SELECT 1; SELECT 2; END */ ; SELECT 3";
    let first = parse(dumped, 0, ParseOptions::default()).unwrap();
    assert!(dumped[first.next.unwrap()..].contains("SELECT 3"));
    let Statement::CreateEvent(create) = first.statement else { panic!() };
    assert_eq!(create.clauses.body.as_deref(), Some("BEGIN SELECT 1; SELECT 2; END"));
    let altered = "ALTER DEFINER=u@h EVENT e DO BEGIN SELECT 1; SELECT 2; END; SELECT 3";
    let first = parse(altered, 0, ParseOptions::default()).unwrap();
    assert!(matches!(first.statement, Statement::AlterEvent(_)) && altered[first.next.unwrap()..].trim() == "SELECT 3");
    for cut in ["ON SCHEDULE", "ON SCHEDULE AT", "ON SCHEDULE EVERY 1", "ON SCHEDULE EVERY 1 DAY DO", "ON SCHEDULE EVERY 1 DAY DO BEGIN SELECT 1;", "ON COMPLETION"] {
        assert_eq!(error(&format!("CREATE EVENT e {cut}")).code, 1064, "{cut}");
        assert_eq!(error(&format!("ALTER EVENT e {cut}")).code, 1064, "{cut}");
    }
}

/// They would be too long for the binary log, whose names have 255 bytes.
#[test]
fn names_have_no_characters_beyond_the_basic_plane() {
    let Statement::CreateDatabase { name, .. } = one("CREATE DATABASE `a\u{1f600}中`") else { panic!() };
    assert_eq!(name, "a?中");
    let Statement::DropDatabase { name, .. } = one("DROP DATABASE \u{1f600}") else { panic!() };
    assert_eq!(name, "?");
}
