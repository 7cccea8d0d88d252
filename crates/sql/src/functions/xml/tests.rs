//! Messages of MySQL 8.0.12.

use super::document::Document;
use super::parse::parse;

/// What the error shows of the expression.
#[test]
fn wrong_expressions() {
    for (path, message) in [
        ("", "XPATH syntax error: ''"),
        ("/a[", "XPATH syntax error: ''"),
        ("/a/", "XPATH syntax error: ''"),
        ("/a[1]]", "XPATH syntax error: ']'"),
        ("1 2 3", "XPATH syntax error: '2 3'"),
        ("foo()", "XPATH syntax error: '()'"),
        ("foo::a", "XPATH syntax error: ':a'"),
        ("/child :: a", "XPATH syntax error: ': a'"),
        ("/a:*", "XPATH syntax error: ''"),
        ("*:a", "XPATH syntax error: ':a'"),
        (".5", "XPATH syntax error: '5'"),
        ("1++1", "XPATH syntax error: '+1'"),
        ("/a[|]", "XPATH syntax error: '|]'"),
        ("1 | /a", "XPATH syntax error: '/a'"),
        ("/a | 1", "XPATH syntax error: ''"),
        ("(1)|(2)", "XPATH syntax error: '(2)'"),
        ("(/a)[1]", "XPATH syntax error: '[1]'"),
        ("concat(\"a\")", "XPATH syntax error: ')'"),
        ("contains(\"a\",\"b\",\"c\")", "XPATH syntax error: '\"c\")'"),
        ("true(1)", "XPATH syntax error: '1)'"),
        ("count(1)", "XPATH syntax error: ''"),
        ("last()", "XPATH syntax error: ''"),
        ("count (/a)", "XPATH syntax error: '(/a)'"),
        ("\"a", "XPATH syntax error: '\"a'"),
        ("/a/$x", "XPATH syntax error: '$x'"),
        ("$x", "Unknown XPATH variable at: '$x'"),
        ("/a=/b", "XPATH error: comparison of two nodesets is not supported: '=/b'"),
        ("aaaa bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", "XPATH syntax error: 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb'"),
    ] {
        let error = parse(path).expect_err(path);
        assert_eq!((error.code, error.message.as_str()), (1105, message), "{path}");
    }
    for path in ["/", "/child::", "div div div", "a-b", "/-a", "1div 2", "/a[last( )]", "//.", "- -3", "text()", "(a)/b"] {
        assert!(parse(path).is_ok(), "{path}");
    }
    assert_eq!(parse(&"(".repeat(5000)).expect_err("too deep").code, 1436);
}

#[test]
fn wrong_documents() {
    for (xml, message) in [
        ("<a", "parse error at line 1 pos 3: END-OF-INPUT unexpected ('>' wanted)"),
        ("<a>1", "parse error at line 1 pos 5: unexpected END-OF-INPUT"),
        ("<a>1</bb>", "parse error at line 1 pos 9: '</bb>' unexpected ('</>' wanted)"),
        ("<a><b>1</ccc></a>", "parse error at line 1 pos 13: '</ccc>' unexpected ('</b>' wanted)"),
        ("</a>", "parse error at line 1 pos 4: '</a>' unexpected (END-OF-INPUT wanted)"),
        ("<>", "parse error at line 1 pos 3: '>' unexpected (ident or '/' wanted)"),
        ("<a b=1>1</a>", "parse error at line 1 pos 6: unknown token unexpected (ident or string wanted)"),
        ("<a b=\"1>1</a>", "parse error at line 1 pos 14: END-OF-INPUT unexpected ('>' wanted)"),
        ("<a/b>", "parse error at line 1 pos 5: IDENT unexpected ('>' wanted)"),
        ("<a>1</", "parse error at line 1 pos 7: END-OF-INPUT unexpected (ident wanted)"),
        ("<?xml", "parse error at line 1 pos 6: END-OF-INPUT unexpected ('?' wanted)"),
        ("<a>1</a>\n<b", "parse error at line 2 pos 4: END-OF-INPUT unexpected ('>' wanted)"),
        ("<a \"x\">1</a>", "parse error at line 1 pos 7: STRING unexpected ('>' wanted)"),
        ("<a b c=\"1\">t</a>", "parse error at line 1 pos 8: '=' unexpected ('>' wanted)"),
    ] {
        assert_eq!(Document::parse(xml).expect_err(xml), message, "{xml}");
    }
    for xml in ["", "abc", "<a>1</b>", "<!-- x", "<a b>1</a>", "<a / >1", "<?x y=\"1\"?><a>1</a>", "<!DOCTYPE a \"b\"><a/>", "<a>></a>", "<a><![CDATA[<]]></a>"] {
        assert!(Document::parse(xml).is_ok(), "{xml}");
    }
}

/// 254 elements may be open, and the innermost has no attributes.
#[test]
fn deep_documents() {
    assert!(Document::parse(&format!("{}x{}", "<a>".repeat(254), "</a>".repeat(254))).is_ok());
    assert_eq!(Document::parse(&"<a>".repeat(255)).expect_err("too deep"), "parse error at line 1 pos 765: ");
    assert_eq!(Document::parse(&format!("{}<a b=\"1\">", "<a>".repeat(253))).expect_err("too deep"), "parse error at line 1 pos 768: ");
}
