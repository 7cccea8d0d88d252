//! What later releases of MySQL 8.0 have of JSON and the recorded answers cannot: their manual says it.

use super::Server;

#[tokio::test]
async fn json_schema_valid_and_its_report() {
    let server = Server::new();
    let mut c = server.client().await;
    let schema = r#"{"properties": {"latitude": {"type": "number", "minimum": -90, "maximum": 90}}, "required": ["latitude"]}"#;
    assert_eq!(c.value(&format!("SELECT JSON_SCHEMA_VALID('{schema}', '{{\"latitude\": 63.4}}')")).await, "1");
    assert_eq!(c.value(&format!("SELECT JSON_SCHEMA_VALID('{schema}', '{{}}')")).await, "0");
    assert_eq!(c.value(&format!("SELECT JSON_SCHEMA_VALIDATION_REPORT('{schema}', '{{\"latitude\": 63.4}}')")).await, r#"{"valid": true}"#);
    assert_eq!(
        c.value(&format!("SELECT JSON_SCHEMA_VALIDATION_REPORT('{schema}', '{{\"latitude\": 91}}')")).await,
        r##"{"valid": false, "reason": "The JSON document location '#/latitude' failed requirement 'maximum' at JSON Schema location '#/properties/latitude'", "schema-location": "#/properties/latitude", "document-location": "#/latitude", "schema-failed-keyword": "maximum"}"##
    );
    assert_eq!(c.value("SELECT JSON_SCHEMA_VALID(NULL, '{}') IS NULL AND JSON_SCHEMA_VALID('{}', NULL) IS NULL").await, "1");
    assert_eq!(c.error("SELECT JSON_SCHEMA_VALID('[]', '{}')").await.0, 3853);
    assert_eq!(c.error("SELECT JSON_SCHEMA_VALID('{', '{}')").await.0, 3141);
    assert_eq!(c.error("SELECT JSON_SCHEMA_VALID('{\"$ref\": \"x.json\"}', '{}')").await.0, 1235);
    c.ok(&format!("CREATE TABLE places (p JSON, CHECK (JSON_SCHEMA_VALID('{schema}', p)))")).await;
    c.ok(r#"INSERT INTO places VALUES ('{"latitude": 1}')"#).await;
    assert_eq!(c.error(r#"INSERT INTO places VALUES ('{"latitude": 100}')"#).await.0, 3819);
}

#[tokio::test]
async fn json_value_returns_a_type_and_says_what_else() {
    let server = Server::new();
    let mut c = server.client().await;
    let document = r#"{"name": "Evgen", "price": 123.45, "n": "12", "none": null, "list": [1, 2], "on": "2020-01-02", "word": "asdf"}"#;
    let answers = [
        ("'$.name'", "Evgen"),
        ("'$.price'", "123.45"),
        ("'$.none'", "NULL"),
        ("'$.list'", "NULL"),
        ("'$.list[1]'", "2"),
        ("'$.list[*]'", "NULL"),
        ("'$.missing'", "NULL"),
        ("'$.price' RETURNING DECIMAL(5,1)", "123.5"),
        ("'$.price' RETURNING SIGNED", "123"),
        ("'$.n' RETURNING UNSIGNED", "12"),
        ("'$.on' RETURNING DATE", "2020-01-02"),
        ("'$.list' RETURNING JSON", "[1, 2]"),
        ("'$.none' RETURNING JSON", "null"),
        ("'$.name' RETURNING CHAR(5)", "Evgen"),
        ("'$.name' RETURNING CHAR(4)", "NULL"),
        ("'$.name' RETURNING CHAR(4) DEFAULT 'long' ON ERROR", "long"),
        ("'$.word' RETURNING SIGNED", "NULL"),
        ("'$.word' RETURNING SIGNED DEFAULT -1 ON EMPTY DEFAULT -2 ON ERROR", "-2"),
        ("'$.missing' RETURNING SIGNED DEFAULT -1 ON EMPTY DEFAULT -2 ON ERROR", "-1"),
        ("'$.missing' NULL ON EMPTY ERROR ON ERROR", "NULL"),
        ("'$.list' DEFAULT 'several' ON ERROR", "several"),
    ];
    c.ok("CREATE TABLE j (id INT PRIMARY KEY, d JSON)").await;
    c.ok(&format!("INSERT INTO j VALUES (1, '{document}')")).await;
    for (rest, answer) in answers {
        assert_eq!(c.value(&format!("SELECT JSON_VALUE('{document}', {rest})")).await, answer, "{rest}");
        assert_eq!(c.value(&format!("SELECT JSON_VALUE(d, {rest}) FROM j")).await, answer, "{rest} of a column");
        assert_eq!(c.value(&format!("SELECT v FROM (SELECT JSON_VALUE(d, {rest}) AS v FROM j LIMIT 1) s")).await, answer, "{rest} in a derived table");
    }
    let errors = [
        ("'$.missing' ERROR ON EMPTY", 3966),
        ("'$.list[*]' ERROR ON ERROR", 3967),
        ("'$.list' ERROR ON ERROR", 3156),
        ("'$.word' RETURNING SIGNED ERROR ON ERROR", 3156),
        ("'$.name' RETURNING CHAR(4) ERROR ON ERROR", 1406),
        ("'$.' NULL ON ERROR", 3143),
        ("'$.a' NULL ON ERROR NULL ON EMPTY", 1064),
    ];
    for (rest, code) in errors {
        assert_eq!(c.error(&format!("SELECT JSON_VALUE(d, {rest}) FROM j")).await.0, code, "{rest}");
    }
    assert_eq!(c.error("SELECT JSON_VALUE('{', '$.a' NULL ON ERROR)").await.0, 3141);
    assert_eq!(c.value("SELECT JSON_VALUE(NULL, '$.a' ERROR ON EMPTY ERROR ON ERROR)").await, "NULL");
    c.rows("SELECT JSON_VALUE(d, '$.word' RETURNING SIGNED) FROM j").await;
    assert_eq!(c.rows("SHOW WARNINGS").await[0][2], "Invalid JSON value for CAST to INTEGER from column json_value at row 1");
}
