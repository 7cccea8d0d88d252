//! The applier on a database, with events made by hand; scripts/replica.sh has the real ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use highkey_types::{Collation, ColumnType, Str, TypeKind};

use super::*;
use crate::session::tests::{Answer, Client, Server, table, text};

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.chars().filter_map(|c| c.to_digit(16)).map(|d| d as u8).collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// Decodes an image as a table map's type, metadata and our type say, and shows it.
fn decoded(code: u8, meta: &[u8], ty: &ColumnType, image: &str) -> String {
    let column = SourceColumn::new(code, meta).unwrap();
    assert!(column.fits(ty), "{column:?} for {ty}");
    let bytes = hex(image);
    let mut rest = &bytes[..];
    let value = column.decode(ty, &mut rest).unwrap();
    assert!(rest.is_empty(), "{} bytes are left of {image}", rest.len());
    // Every shorter image is an error and no panic.
    for end in 0..bytes.len() {
        assert!(column.decode(ty, &mut &bytes[..end]).is_err(), "{end} bytes of {image}");
    }
    let mut text = Vec::new();
    if value.to_text(ty, &mut text) { String::from_utf8_lossy(&text).into_owned() } else { "NULL".into() }
}

/// Table maps and images that MySQL 8.0.12 wrote for a column and a value.
#[test]
fn images_of_every_type_are_what_mysql_meant() {
    use TypeKind::*;
    let plain = ColumnType::new;
    let utf8mb4 = |kind| ColumnType::with_collation(kind, Collation::utf8mb4());
    let latin1 = |kind| ColumnType::with_collation(kind, Collation::by_name("latin1_swedish_ci").unwrap());
    let decimal = ColumnType::decimal;
    let members: Arc<[Str]> = ["a", "b", "c"].map(Str::from).into();
    for (code, meta, ty, image, text) in [
        (1, &[][..], plain(TinyInt), "80", "-128"),
        (1, &[], plain(TinyInt).unsigned(), "80", "128"),
        (2, &[], plain(SmallInt), "FFFF", "-1"),
        (9, &[], plain(MediumInt), "000080", "-8388608"),
        (9, &[], plain(MediumInt).unsigned(), "000080", "8388608"),
        (3, &[], plain(Int), "FFFFFF7F", "2147483647"),
        (8, &[], plain(BigInt), "0000000000000080", "-9223372036854775808"),
        (8, &[], plain(BigInt).unsigned(), "FFFFFFFFFFFFFFFF", "18446744073709551615"),
        (4, &[4], plain(Float), "0000C03F", "1.5"),
        (5, &[8], plain(Double), "9A9999999999B93F", "0.1"),
        (246, &[5, 2], decimal(5, 2), "83E763", "999.99"),
        (246, &[5, 2], decimal(5, 2), "7C189C", "-999.99"),
        (246, &[14, 4], decimal(14, 4), "810DFB38D204D2", "1234567890.1234"),
        (246, &[9, 9], decimal(9, 9), "875BCD15", "0.123456789"),
        (246, &[20, 0], decimal(20, 0), "73EB655BCAF204C72D", "-12345678901234567890"),
        (16, &[1, 4], plain(Bit(33)), "0100420041", "\u{1}\0B\0A"),
        (16, &[5, 0], plain(Bit(5)), "E0", "\u{1F}"),
        (16, &[0, 1], plain(Bit(8)), "41", "A"),
        (16, &[4, 1], plain(Bit(12)), "F241", "\u{2}A"),
        (16, &[7, 7], plain(Bit(63)), "8000000000000041", "\0\0\0\0\0\0\0A"),
        (16, &[0, 8], plain(Bit(64)), "0000000000000041", "\0\0\0\0\0\0\0A"),
        (13, &[], plain(Year), "7E", "2026"),
        (13, &[], plain(Year), "00", "0000"),
        (10, &[], plain(Date), "5CD40F", "2026-02-28"),
        (19, &[0], plain(Time(0)), "80C8B8", "12:34:56"),
        (19, &[3], plain(Time(3)), "7F3747E12E", "-12:34:56.789"),
        (19, &[2], plain(Time(2)), "7FFFFECE", "-00:00:01.50"),
        (19, &[6], plain(Time(6)), "7FFFFFFFFFFF", "-00:00:00.000001"),
        (19, &[6], plain(Time(6)), "B46EFB000000", "838:59:59.000000"),
        (18, &[0], plain(DateTime(0)), "99B97A2780", "2026-03-29 02:30:00"),
        (18, &[6], plain(DateTime(6)), "99B97A278001E240", "2026-03-29 02:30:00.123456"),
        (18, &[1], plain(DateTime(1)), "99B97A278032", "2026-03-29 02:30:00.5"),
        (18, &[3], plain(DateTime(3)), "80000000000000", "0000-00-00 00:00:00.000"),
        (17, &[0], plain(Timestamp(0)), "00000000", "0000-00-00 00:00:00"),
        (17, &[4], plain(Timestamp(4)), "7FFFFFFF270F", "2038-01-19 03:14:07.9999"),
        (15, &[80, 0], utf8mb4(VarChar(20)), "02C3A4", "ä"),
        (15, &[44, 1], latin1(VarChar(300)), "0100E4", "ä"),
        (254, &[254, 40], utf8mb4(Char(10)), "0161", "a"),
        // CHAR(255) of four bytes a character: the length's upper bits are in the type, inverted.
        (254, &[206, 252], utf8mb4(Char(255)), "010062", "b"),
        (254, &[254, 4], plain(Binary(4)), "024241", "BA\0\0"),
        (252, &[1], plain(TinyBlob), "024241", "BA"),
        (252, &[2], utf8mb4(Text), "0200C3A4", "ä"),
        (252, &[4], latin1(LongText), "01000000E4", "ä"),
        (254, &[247, 1], plain(Enum(members.clone())), "02", "b"),
        (254, &[247, 1], plain(Enum(members.clone())), "00", ""),
        (254, &[248, 1], plain(Set(members.clone())), "05", "a,c"),
        (245, &[4], plain(Json), "0300000005F9FF", "-7"),
        (245, &[4], plain(Json), "050000000200000400", "[]"),
        (255, &[4], plain(Geometry(highkey_types::GeometryType::new(highkey_types::Shape::Geometry))), "0D00000000000000010700000000000000", "\0\0\0\0\u{1}\u{7}\0\0\0\0\0\0\0"),
        // A source before 8.0, or of another system, sends JSON as text.
        (252, &[4], plain(Json), "090000007B2261223A315D7D20", ""),
    ] {
        match text {
            "" if code == 252 => assert!(SourceColumn::new(code, meta).unwrap().decode(&ty, &mut &hex(image)[..]).unwrap_err().contains("no JSON")),
            _ => assert_eq!(decoded(code, meta, &ty, image), text, "{ty} from {image}"),
        }
    }
    let text = utf8mb4(Text);
    let column = SourceColumn::new(252, &[2]).unwrap();
    assert!(column.decode(&text, &mut &hex("020068C3")[..]).unwrap_err().contains("not utf8mb4"));
    // A source's own character set is converted, and what the column cannot hold is refused.
    let of_latin1 = SourceColumn { collation: Some(8), ..column };
    assert_eq!(of_latin1.decode(&text, &mut &hex("020068E4")[..]).unwrap().as_str(), Some("hä"));
    let ascii = ColumnType::with_collation(Text, Collation::by_name("ascii_general_ci").unwrap());
    assert!(of_latin1.decode(&ascii, &mut &hex("020068E4")[..]).is_err());
    // Types and sizes that are others do not fit.
    for (code, meta, ty) in [(3, &[][..], plain(BigInt)), (246, &[5, 2], decimal(6, 2)), (15, &[80, 0], utf8mb4(VarChar(21))), (19, &[0], plain(Time(1))), (252, &[1], utf8mb4(Text)), (254, &[247, 1], utf8mb4(Char(1)))] {
        assert!(!SourceColumn::new(code, meta).unwrap().fits(&ty), "{code} {ty}");
    }
    assert!(SourceColumn::new(255, &[4]).is_some_and(|column| column.meta == 4), "geometry");
}

/// Documents that MySQL 8.0.12 wrote, without their length, and what it shows of them.
#[test]
fn binary_json_reads_as_mysql_shows_it() {
    for (document, text) in [
        ("", "null"),
        ("0401", "true"),
        ("05F9FF", "-7"),
        ("0C 04 C3A4220A", "\"ä\\\"\\n\""),
        ("000200210012000100130002000215000C1F0061626302000A000501000400000178", "{\"a\": [1, null], \"bc\": \"x\"}"),
        (
            "020B005A00050100057FFF0725000729000A2D000A35000B3D000B45000B4D000401000C550000800000000001000000000001000000FFFFFFFFFFFFFFFF000000000000F83F00000000000008407DC39425AD49B25404C3A4220A",
            "[1, -129, 32768, 65536, 4294967296, 18446744073709551615, 1.5, 3.0, 1e100, true, \"ä\\\"\\n\"]",
        ),
        (
            "02040037000F10000F19000F23000F2D00F6070A018000000C050A08000000000078B9190B08E05EF8FFEFFFFFFF0C08000000831078B919",
            "[12.5, \"2026-03-28\", \"-01:00:00.500000\", \"2026-03-28 01:02:03.000000\"]",
        ),
        ("0201000B000F07000F020102", "[\"base64:type15:AQI=\"]"),
        ("0200000400", "[]"),
    ] {
        let bytes = hex(document);
        assert_eq!(jsonb::text(&bytes).as_deref(), Ok(text), "{document}");
        for end in 1..bytes.len() {
            assert!(jsonb::text(&bytes[..end]).is_err(), "{end} bytes of {document}");
        }
    }
    // No number, and arrays of which each has the next one twice: what no server has written.
    for number in ["0B000000000000F87F", "0B000000000000F07F"] {
        assert!(jsonb::text(&hex(number)).is_err());
    }
    let levels = 60;
    let mut nested = vec![2];
    for level in 0..levels {
        let left = (levels - level) * 10 + 4;
        nested.extend([2, 0, left as u8, (left >> 8) as u8]);
        (0..2).for_each(|_| nested.extend([2, 10, 0]));
    }
    nested.extend([0, 0, 4, 0]);
    assert!(jsonb::text(&nested).is_err());
    // Each of them once is a document.
    let once: Vec<u8> = hex("02 0100 0B00 02 0700 0000 0400");
    assert_eq!(jsonb::text(&once).as_deref(), Ok("[[]]"));
    // A count beyond the size, members outside of it, an array that is its own member, an unknown type.
    for damaged in ["00 FFFF 0400", "02 0100 0700 0C FFFF", "02 0100 0700 02 0000", "10 00", "04 03"] {
        assert!(jsonb::text(&hex(damaged)).is_err(), "{damaged}");
    }
}

/// `(id INT, name VARCHAR(10))` of utf8mb4, on the source.
fn source(name: &str) -> Arc<SourceTable> {
    let columns = vec![SourceColumn::new(3, &[]).unwrap(), SourceColumn::new(15, &[40, 0]).unwrap()];
    Arc::new(SourceTable { schema: "d".into(), table: name.into(), columns })
}

/// The image of a row of those columns.
fn image(id: i32, name: Option<&str>) -> Vec<u8> {
    let mut bytes = vec![if name.is_none() { 2 } else { 0 }];
    bytes.extend(id.to_le_bytes());
    if let Some(name) = name {
        bytes.push(name.len() as u8);
        bytes.extend(name.as_bytes());
    }
    bytes
}

const WHOLE: &[u8] = &[3];

fn change<'a>(kind: RowsKind, table: &'a Arc<SourceTable>, images: &'a [u8]) -> RowsChange<'a> {
    let (before, after): (&[u8], &[u8]) = match kind {
        RowsKind::Write => (&[], WHOLE),
        RowsKind::Update => (WHOLE, WHOLE),
        RowsKind::Delete => (WHOLE, &[]),
    };
    RowsChange { kind, table, before, after, images, no_foreign_key_checks: false }
}

async fn setup() -> (Server, Client, Applier) {
    let server = Server::new();
    let mut client = server.client().await;
    client.ok("CREATE TABLE keyed (id INT PRIMARY KEY, name VARCHAR(10))").await;
    client.ok("CREATE TABLE keyless (id INT, name VARCHAR(10))").await;
    client.ok("CREATE TABLE narrowed (id INT, name VARCHAR(10), KEY (id))").await;
    client.ok("CREATE TABLE uniquely (id INT NOT NULL, name VARCHAR(10), UNIQUE KEY (id), UNIQUE KEY (name))").await;
    let applier = Applier::new(server.instance.clone());
    (server, client, applier)
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_found_by_key_by_index_or_by_what_they_hold() {
    let (_server, mut client, mut applier) = setup().await;
    for name in ["keyed", "keyless", "narrowed", "uniquely"] {
        let table_map = source(name);
        applier.begin().await.unwrap();
        let rows: Vec<u8> = [image(1, Some("a")), image(2, None), image(3, Some("c")), image(4, Some("d"))].concat();
        applier.rows(&change(RowsKind::Write, &table_map, &rows), 1_700_000_000).await.unwrap();
        let updates = [image(2, None), image(2, Some("b")), image(3, Some("c")), image(30, Some("cc"))].concat();
        applier.rows(&change(RowsKind::Update, &table_map, &updates), 1_700_000_000).await.unwrap();
        applier.rows(&change(RowsKind::Delete, &table_map, &[image(1, Some("a")), image(4, Some("d"))].concat()), 1_700_000_000).await.unwrap();
        let mut appended = false;
        applier.commit(b"position", name.into(), || appended = true).await.unwrap();
        assert!(appended);
        assert_eq!(client.rows(&format!("SELECT * FROM {name} ORDER BY id")).await, table("2 b|30 cc"), "{name}");
        client.ok(&format!("INSERT INTO {name} VALUES (5, 'e')")).await;

        // What is not there is error 1032, and nothing of the transaction stays.
        applier.begin().await.unwrap();
        applier.rows(&change(RowsKind::Write, &table_map, &image(77, Some("x"))), 1_700_000_000).await.unwrap();
        let e = applier.rows(&change(RowsKind::Delete, &table_map, &image(9, Some("e"))), 1_700_000_000).await.unwrap_err();
        assert_eq!((e.code, e.message), (1032, format!("Can't find record in '{name}'")));
        applier.rollback().await.unwrap();
        assert_eq!(client.value(&format!("SELECT COUNT(*) FROM {name}")).await, "3");
    }
    let e = applier.rows(&change(RowsKind::Write, &source("keyed"), &image(2, Some("x"))), 1_700_000_000).await.unwrap_err();
    assert_eq!((e.code, e.message.as_str()), (1062, "Duplicate entry '2' for key 'PRIMARY'"));
    applier.rollback().await.unwrap();
    // What an event has changed it may change again; here is a row, besides, that it is then as good as.
    for name in ["keyless", "narrowed"] {
        client.ok(&format!("DELETE FROM {name}")).await;
        client.ok(&format!("INSERT INTO {name} VALUES (1, 'x'), (3, 'x')")).await;
        let updates: Vec<u8> = (1..4).flat_map(|id| [image(id, Some("x")), image(id + 1, Some("x"))]).flatten().collect();
        applier.rows(&change(RowsKind::Update, &source(name), &updates), 1_700_000_000).await.unwrap();
        applier.commit(b"position", Vec::new(), || ()).await.unwrap();
        assert_eq!(client.rows(&format!("SELECT * FROM {name} ORDER BY id")).await, table("3 x|4 x"), "{name}");
        let more = [image(4, Some("x")), image(1, Some("x")), image(1, Some("x")), image(2, Some("x")), image(4, Some("x")), image(5, Some("x"))].concat();
        assert_eq!(applier.rows(&change(RowsKind::Update, &source(name), &more), 1_700_000_000).await.unwrap_err().code, 1032);
        applier.rollback().await.unwrap();
    }
    client.ok("DELETE FROM keyless").await;
    // Of rows that are equal, as many go as were meant.
    client.ok("INSERT INTO keyless VALUES (7, 'same'), (7, 'same'), (7, 'same')").await;
    applier.rows(&change(RowsKind::Delete, &source("keyless"), &[image(7, Some("same")), image(7, Some("same"))].concat()), 1_700_000_000).await.unwrap();
    applier.commit(b"position", Vec::new(), || ()).await.unwrap();
    assert_eq!(client.value("SELECT COUNT(*) FROM keyless WHERE id = 7").await, "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_are_not_as_on_the_source_may_be_passed_over() {
    let (_server, mut client, mut applier) = setup().await;
    let strict = "SET GLOBAL slave_exec_mode = STRICT";
    for name in ["keyed", "keyless", "narrowed", "uniquely"] {
        let table_map = source(name);
        client.ok(&format!("INSERT INTO {name} VALUES (1, 'old'), (2, 'b')")).await;
        client.ok("SET GLOBAL replica_exec_mode = IDEMPOTENT").await;
        applier.announce(None);
        applier.begin().await.unwrap();
        if !matches!(name, "keyless" | "narrowed") {
            let rows = [image(1, Some("new")), image(5, Some("e"))].concat();
            applier.rows(&change(RowsKind::Write, &table_map, &rows), 1_700_000_000).await.unwrap();
        }
        // The first is not there, the second is.
        let updates = [image(9, Some("x")), image(10, Some("y")), image(2, Some("b")), image(2, Some("bb"))].concat();
        applier.rows(&change(RowsKind::Update, &table_map, &updates), 1_700_000_000).await.unwrap();
        applier.rows(&change(RowsKind::Delete, &table_map, &image(9, Some("x"))), 1_700_000_000).await.unwrap();
        applier.commit(b"position", Vec::new(), || ()).await.unwrap();
        let expected = if matches!(name, "keyless" | "narrowed") { "1 old|2 bb" } else { "1 new|2 bb|5 e" };
        assert_eq!(client.rows(&format!("SELECT * FROM {name} ORDER BY id")).await, table(expected), "{name}");
        client.ok(strict).await;
        applier.announce(None);
        let e = applier.rows(&change(RowsKind::Delete, &table_map, &image(9, Some("x"))), 1_700_000_000).await.unwrap_err();
        assert_eq!(e.code, 1032);
        applier.rollback().await.unwrap();
    }
    assert_eq!(client.rows("SHOW VARIABLES LIKE 'slave\\_exec\\_mode'").await, table("slave_exec_mode STRICT"));
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_of_a_list_are_passed_over_row_by_row() {
    let server = Server::with(|settings| {
        settings.set("slave_skip_errors", Some("1062,1050")).unwrap();
    });
    let mut client = server.client().await;
    client.ok("CREATE TABLE uniquely (id INT NOT NULL, name VARCHAR(10), UNIQUE KEY (id), UNIQUE KEY (name))").await;
    client.ok("INSERT INTO uniquely VALUES (1, 'a'), (2, 'b')").await;
    let mut applier = Applier::new(server.instance.clone());
    let table_map = source("uniquely");
    applier.begin().await.unwrap();
    let rows = [image(3, Some("c")), image(4, Some("a")), image(2, Some("d")), image(5, Some("e"))].concat();
    applier.rows(&change(RowsKind::Write, &table_map, &rows), 1_700_000_000).await.unwrap();
    let updates = [image(1, Some("a")), image(2, Some("aa")), image(3, Some("c")), image(3, Some("cc"))].concat();
    applier.rows(&change(RowsKind::Update, &table_map, &updates), 1_700_000_000).await.unwrap();
    assert_eq!(applier.rows(&change(RowsKind::Delete, &table_map, &image(9, Some("x"))), 1_700_000_000).await.unwrap_err().code, 1032);
    applier.commit(b"position", Vec::new(), || ()).await.unwrap();
    assert_eq!(client.rows("SELECT * FROM uniquely ORDER BY id").await, table("1 a|2 b|3 cc|5 e"));
    assert_eq!(client.rows("CHECK TABLE uniquely").await, table("d.uniquely check status OK"));
    assert!(applier.skips(1050) && applier.skips(1062) && !applier.skips(1032));
}

#[tokio::test(flavor = "multi_thread")]
async fn images_of_some_columns_change_those() {
    let (_server, mut client, mut applier) = setup().await;
    client.ok("CREATE TABLE more (id INT PRIMARY KEY, name VARCHAR(10), extra INT DEFAULT 5, sum INT AS (id + extra) STORED)").await;
    let more = source("more");
    // The replica has columns that the source has not: they get their defaults.
    applier.rows(&change(RowsKind::Write, &more, &[image(1, Some("a")), image(2, Some("b"))].concat()), 1_700_000_000).await.unwrap();
    // binlog_row_image = MINIMAL: the key before, the change after. One image of `id`, one of `name`.
    let minimal = [vec![0], 1i32.to_le_bytes().to_vec(), vec![0, 2], b"AA".to_vec()].concat();
    applier.rows(&RowsChange { kind: RowsKind::Update, table: &more, before: &[1], after: &[2], images: &minimal, no_foreign_key_checks: false }, 1_700_000_000).await.unwrap();
    applier.rows(&RowsChange { kind: RowsKind::Delete, table: &more, before: &[1], after: &[], images: &[&[0][..], &2i32.to_le_bytes()].concat(), no_foreign_key_checks: false }, 1_700_000_000).await.unwrap();
    applier.commit(b"position", Vec::new(), || ()).await.unwrap();
    assert_eq!(client.rows("SELECT * FROM more").await, table("1 AA 5 6"));
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_keys_act_here_as_their_changes_are_not_in_the_log() {
    let (_server, mut client, mut applier) = setup().await;
    client.ok("CREATE TABLE child (id INT PRIMARY KEY, k INT, twice INT AS (k * 2) STORED, FOREIGN KEY (k) REFERENCES keyed (id) ON UPDATE RESTRICT)").await;
    client.ok("CREATE TABLE cascaded (id INT PRIMARY KEY, k INT, twice INT AS (k * 2) VIRTUAL, FOREIGN KEY (k) REFERENCES keyed (id) ON UPDATE CASCADE ON DELETE CASCADE)").await;
    client.ok("INSERT INTO keyed VALUES (1, 'a'), (2, 'b'), (3, 'c')").await;
    client.ok("INSERT INTO cascaded (id, k) VALUES (1, 1), (2, 2), (3, 3)").await;
    let keyed = source("keyed");
    applier.begin().await.unwrap();
    applier.rows(&change(RowsKind::Update, &keyed, &[image(1, Some("a")), image(10, Some("a"))].concat()), 1_700_000_000).await.unwrap();
    applier.rows(&change(RowsKind::Delete, &keyed, &image(2, Some("b"))), 1_700_000_000).await.unwrap();
    applier.commit(b"position", Vec::new(), || ()).await.unwrap();
    assert_eq!(client.rows("SELECT * FROM cascaded ORDER BY id").await, table("1 10 20|3 3 6"));
    client.ok("INSERT INTO child (id, k) VALUES (1, 3)").await;
    let gone = image(3, Some("c"));
    let deletes = change(RowsKind::Delete, &keyed, &gone);
    assert_eq!(applier.rows(&deletes, 1_700_000_000).await.unwrap_err().code, 1451);
    applier.rollback().await.unwrap();
    // The source had foreign_key_checks = 0.
    applier.rows(&RowsChange { no_foreign_key_checks: true, ..deletes }, 1_700_000_000).await.unwrap();
    applier.commit(b"position", Vec::new(), || ()).await.unwrap();
    assert_eq!(client.rows("SELECT * FROM cascaded ORDER BY id").await, table("1 10 20|3 3 6"));
    let unchecked = StatementContext { schema: "d".into(), no_foreign_key_checks: true, ..StatementContext::default() };
    let awaits = b"CREATE TABLE awaits (a INT, FOREIGN KEY (a) REFERENCES later (id))";
    let checked = StatementContext { no_foreign_key_checks: false, ..unchecked.clone() };
    assert_eq!(applier.statement(&checked, awaits, None).await.unwrap_err().code, 1824);
    applier.statement(&unchecked, awaits, None).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_is_another_here_is_refused() {
    let (_server, mut client, mut applier) = setup().await;
    client.ok("CREATE TABLE wider (id BIGINT, name VARCHAR(10))").await;
    for (name, code, message) in [
        ("missing", 1146, "Table 'd.missing' doesn't exist"),
        ("wider", 1677, "Column 0 of table 'd.wider' cannot be converted from type 'int' to type 'bigint'"),
    ] {
        let e = applier.rows(&change(RowsKind::Write, &source(name), &image(1, None)), 1_700_000_000).await.unwrap_err();
        assert_eq!((e.code, e.message.as_str()), (code, message));
        applier.rollback().await.unwrap();
    }
    // MySQL converts what it is told to; columns that we have not are left out.
    client.ok("CREATE TABLE fewer (id SMALLINT)").await;
    assert_eq!(applier.rows(&change(RowsKind::Write, &source("fewer"), &image(1, None)), 1_700_000_000).await.unwrap_err().code, 1677);
    applier.rollback().await.unwrap();
    assert_eq!(client.error("SET GLOBAL slave_type_conversions = 'ALL_LOSSY,SOME'").await.0, 1231);
    client.ok("SET GLOBAL replica_type_conversions = 'all_non_lossy,ALL_LOSSY'").await;
    assert_eq!(client.value("SELECT @@slave_type_conversions").await, "ALL_LOSSY,ALL_NON_LOSSY");
    let fewer = source("fewer");
    applier.rows(&change(RowsKind::Write, &fewer, &[image(1, Some("left out")), image(70_000, None)].concat()), 1_700_000_000).await.unwrap();
    applier.rows(&change(RowsKind::Update, &fewer, &[image(70_000, Some("x")), image(-70_000, None)].concat()), 1_700_000_000).await.unwrap();
    applier.rows(&change(RowsKind::Write, &source("wider"), &image(-1, Some("wide"))), 1_700_000_000).await.unwrap();
    applier.commit(b"position", Vec::new(), || ()).await.unwrap();
    assert_eq!(client.rows("SELECT * FROM fewer ORDER BY id").await, table("-32768|1"));
    assert_eq!(client.rows("SELECT * FROM wider").await, table("-1 wide"));
    // An image of columns only that we have not means no row.
    let unknown = [0_u8, 2, b'A', b'A'];
    let gone = RowsChange { kind: RowsKind::Delete, table: &fewer, before: &[2], after: &[], images: &unknown, no_foreign_key_checks: false };
    assert_eq!(applier.rows(&gone, 1_700_000_000).await.unwrap_err().code, 1032);
    applier.rollback().await.unwrap();
    client.ok("SET GLOBAL slave_type_conversions = DEFAULT").await;
    let e = applier.rows(&change(RowsKind::Write, &fewer, &image(2, None)), 1_700_000_000).await.unwrap_err();
    assert_eq!((e.code, e.message.as_str()), (1677, "Column 0 of table 'd.fewer' cannot be converted from type 'int' to type 'smallint'"));
    applier.rollback().await.unwrap();
    // The definition changes between two transactions.
    let keyed = source("keyed");
    applier.rows(&change(RowsKind::Write, &keyed, &image(1, None)), 1_700_000_000).await.unwrap();
    applier.commit(b"position", Vec::new(), || ()).await.unwrap();
    client.ok("ALTER TABLE keyed MODIFY name VARCHAR(11)").await;
    assert_eq!(applier.rows(&change(RowsKind::Write, &keyed, &image(2, None)), 1_700_000_000).await.unwrap_err().code, 1677);
    applier.rollback().await.unwrap();
    client.ok("ALTER TABLE keyed MODIFY name VARCHAR(10) DEFAULT 'z'").await;
    let e = applier.rows(&change(RowsKind::Write, &keyed, &[0x02, 2, 0, 0, 0, 9]), 1_700_000_000).await.unwrap_err();
    assert_eq!(e.code, 1594, "a damaged image: {}", e.message);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_position_is_the_transactions_own() {
    let (server, mut client, mut applier) = setup().await;
    let record = || server.instance.database().replica_records().unwrap().into_iter().map(|(_, value)| String::from_utf8(value).unwrap()).collect::<Vec<_>>();
    let keyed = source("keyed");
    applier.begin().await.unwrap();
    applier.rows(&change(RowsKind::Write, &keyed, &image(1, None)), 1_700_000_000).await.unwrap();
    assert!(record().is_empty());
    applier.commit(b"position", "one".into(), || ()).await.unwrap();
    assert_eq!(record(), ["one"]);
    // A definition writes it with its own change; one that fails does not.
    let cx = StatementContext { schema: "d".into(), ..StatementContext::default() };
    applier.statement(&cx, b"CREATE TABLE made (id INT)", Some((b"position", "two".into()))).await.unwrap();
    assert_eq!(record(), ["two"]);
    let e = applier.statement(&cx, b"CREATE TABLE made (id INT)", Some((b"position", "three".into()))).await.unwrap_err();
    assert_eq!((e.code, record()), (1050, vec!["two".to_string()]));
    // Accounts leave it to the commit that follows.
    applier.statement(&cx, b"CREATE USER a, b", Some((b"position", "three".into()))).await.unwrap();
    assert_eq!(record(), ["two"]);
    applier.commit(b"position", "three".into(), || ()).await.unwrap();
    assert_eq!(record(), ["three"]);
    // What has been done for one of them before is done for the other.
    applier.statement(&cx, b"GRANT SELECT ON d.* TO a, b", None).await.unwrap();
    client.ok("REVOKE SELECT ON d.* FROM a").await;
    assert_eq!(applier.statement(&cx, b"REVOKE SELECT ON d.* FROM a, b", None).await.unwrap_err().code, 1141);
    assert_eq!(client.rows("SHOW GRANTS FOR b").await.concat(), ["GRANT USAGE ON *.* TO `b`@`%`"]);
    applier.commit(b"position", "three".into(), || ()).await.unwrap();
    let users = "SELECT GROUP_CONCAT(user ORDER BY user) FROM mysql.user WHERE host = '%'";
    for (sql, left) in [
        ("CREATE USER b, c", "a,b,c"),
        ("RENAME USER d TO e, b TO d", "a,c,d"),
        ("CREATE ROLE c, r", "a,c,d,r"),
        ("DROP ROLE nobody, r", "a,c,d"),
        ("ALTER USER nobody, c ACCOUNT LOCK", "a,c,d"),
        ("DROP USER nobody, c, d", "a"),
        ("CREATE USER a, b", "a,b"),
    ] {
        assert_eq!(applier.statement(&cx, sql.as_bytes(), None).await.unwrap_err().code, 1396, "{sql}");
        assert_eq!(client.value(users).await, left, "{sql}");
        if sql.starts_with("ALTER") {
            assert_eq!(client.value("SELECT account_locked FROM mysql.user WHERE user = 'c'").await, "Y");
        }
    }
    applier.commit(b"position", "three".into(), || ()).await.unwrap();
    // Dynamic privileges of later versions are the account's, whoever may give them.
    applier.statement(&cx, b"GRANT SYSTEM_USER, XA_RECOVER_ADMIN ON *.* TO a", None).await.unwrap();
    applier.statement(&cx, b"GRANT SHOW_ROUTINE ON *.* TO a WITH GRANT OPTION", None).await.unwrap();
    assert_eq!(applier.statement(&cx, b"GRANT NONSENSE ON *.* TO a", None).await.unwrap_err().code, 1149);
    assert_eq!(client.error("GRANT SYSTEM_USER ON *.* TO b").await.0, 1149);
    let shown = client.rows("SHOW GRANTS FOR a").await.concat();
    assert_eq!(shown[1..], ["GRANT SYSTEM_USER,XA_RECOVER_ADMIN ON *.* TO `a`@`%`", "GRANT SHOW_ROUTINE ON *.* TO `a`@`%` WITH GRANT OPTION"]);
    applier.statement(&cx, b"REVOKE SYSTEM_USER, SHOW_ROUTINE ON *.* FROM a", None).await.unwrap();
    assert_eq!(client.rows("SHOW GRANTS FOR a").await.concat()[1..], ["GRANT XA_RECOVER_ADMIN ON *.* TO `a`@`%`"]);
    applier.commit(b"position", "three".into(), || ()).await.unwrap();
    // A server that refuses writes takes the source's.
    client.ok("SET GLOBAL super_read_only = ON").await;
    assert_eq!(client.error("DELETE FROM keyed").await.0, 1290);
    applier.statement(&cx, b"DELETE FROM keyed", None).await.unwrap();
    applier.commit(b"position", "four".into(), || ()).await.unwrap();
    assert_eq!((client.value("SELECT COUNT(*) FROM keyed").await, record()), ("0".into(), vec!["four".to_string()]));
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_run_as_they_ran_on_the_source() {
    let (_server, mut client, mut applier) = setup().await;
    client.ok("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, at TIMESTAMP(6), name VARCHAR(10))").await;
    let cx = StatementContext {
        schema: "d".into(),
        sql_mode: Some(1 << 40 | 4 | 2),
        // latin1 text in a connection of latin1.
        charsets: Some((8, 8, 255)),
        time_zone: Some("+05:00".into()),
        auto_increment: Some((10, 3)),
        timestamp_micros: 1_700_000_000_123_456,
        insert_id: Some(43),
        last_insert_id: None,
        no_foreign_key_checks: false,
        utf8mb4_collation: Some(255),
        explicit_defaults_for_timestamp: Some(true),
    };
    applier.statement(&cx, b"INSERT INTO \"t\" (at, name) VALUES (NOW(6), 'h\xE4' || 'x'), ('2023-11-15 03:13:20.5', 'y')", None).await.unwrap();
    applier.commit(b"position", Vec::new(), || ()).await.unwrap();
    client.ok("SET time_zone = '+00:00'").await;
    assert_eq!(client.rows("SELECT id, CAST(UNIX_TIMESTAMP(at) AS CHAR), name FROM t ORDER BY id").await, table("43 1700000000.123456 häx|53 1700000000.500000 y"));
    // The default database need not be there: CREATE DATABASE names its own.
    let own = StatementContext { schema: "new".into(), ..StatementContext::default() };
    applier.statement(&own, b"CREATE DATABASE new", None).await.unwrap();
    applier.statement(&own, b"CREATE TABLE u (id INT) ENGINE=Aria", None).await.unwrap();
    assert_eq!(client.value("SELECT COUNT(*) FROM new.u").await, "0");
    let wrong = StatementContext { charsets: Some((18, 18, 18)), ..own };
    assert_eq!(applier.statement(&wrong, b"DROP DATABASE new", None).await.unwrap_err().code, 1115);
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_name_their_tables() {
    let (_server, _client, mut applier) = setup().await;
    let cx = StatementContext { schema: "d".into(), ..StatementContext::default() };
    for (sql, tables) in [
        ("CREATE TABLE a (id INT)", "d.a"),
        ("DROP TABLE IF EXISTS x.b, c", "x.b d.c"),
        ("RENAME TABLE a TO x.b", "d.a x.b"),
        ("ALTER TABLE `a` ADD b INT", "d.a"),
        ("CREATE UNIQUE INDEX i ON a (id)", "d.a"),
        ("DROP INDEX i ON x.a", "x.a"),
        ("TRUNCATE a", "d.a"),
        ("CREATE TRIGGER g BEFORE INSERT ON x.a FOR EACH ROW SET @a = 1", "x.a"),
        ("DROP TRIGGER nothing", ""),
        ("OPTIMIZE TABLE a, x.b", "d.a x.b"),
        ("ANALYZE TABLE a UPDATE HISTOGRAM ON id", "d.a"),
        ("GRANT SELECT ON d.a TO u", "d.a"),
        ("REVOKE SELECT ON x.* FROM u", ""),
        ("CREATE DATABASE x", ""),
        ("no statement", ""),
    ] {
        let named = applier.tables_of(&cx, sql.as_bytes()).unwrap();
        assert_eq!(named.iter().map(|(schema, table)| format!("{schema}.{table}")).collect::<Vec<_>>().join(" "), tables, "{sql}");
    }
    // Temporary tables are the source's own.
    applier.statement(&cx, b"DROP TEMPORARY TABLE IF EXISTS `keyed`", None).await.unwrap();
    applier.rows(&change(RowsKind::Write, &source("keyed"), &image(1, None)), 1_700_000_000).await.unwrap();
}

/// The events of the newest file of our own log, those of one kind.
fn logged(server: &Server, kind: u8) -> Vec<Event> {
    let binlog = server.instance.database().binlog().unwrap();
    binlog.catch_up().unwrap();
    let (name, _) = binlog.files().pop().unwrap();
    let mut reader = highkey_binlog::FileReader::new(binlog.read_file(&name, 0).unwrap().unwrap());
    let mut events = Vec::new();
    while let Some(event) = reader.next_event().unwrap() {
        if event.header.event_type == kind {
            events.push(Event { timestamp: event.header.timestamp, kind, server_id: event.header.server_id, log_pos: event.header.log_pos, body: event.body().to_vec() });
        }
    }
    events
}

/// Our own log says of definitions what they depend on.
#[tokio::test(flavor = "multi_thread")]
async fn definitions_are_logged_with_what_they_depend_on() {
    let (server, mut c, _applier) = logging("ON").await;
    c.ok("SET default_collation_for_utf8mb4 = utf8mb4_general_ci, explicit_defaults_for_timestamp = OFF, sql_mode = ''").await;
    c.ok("CREATE TABLE stamps (a TIMESTAMP, b TIMESTAMP)").await;
    c.ok("CREATE TABLE plain (a INT)").await;
    let told = |event: &Event| {
        let context = event.query().unwrap().context;
        (context.utf8mb4_collation, context.explicit_defaults_for_timestamp)
    };
    let told: Vec<_> = logged(&server, event_kind::QUERY).iter().map(told).collect();
    assert_eq!(told, [(Some(45), Some(false)), (Some(45), None)]);
}

/// Which columns find a row under binlog_row_image = MINIMAL: those that MySQL 8.0.12 writes.
#[tokio::test(flavor = "multi_thread")]
async fn a_unique_key_without_nulls_is_as_good_as_a_primary_one() {
    let (server, mut c, _applier) = logging("ON").await;
    c.ok("SET binlog_row_image = MINIMAL, sql_mode = ''").await;
    for (columns, found_by) in [
        ("a INT, b INT NOT NULL, c TEXT, UNIQUE (a), UNIQUE (b)", 0b010),
        ("a INT NOT NULL, b INT NOT NULL, c VARCHAR(20) NOT NULL, UNIQUE k1 (c(5)), UNIQUE k2 (a, b)", 0b011),
        ("a INT, b INT, c TEXT, KEY (a)", 0b111),
        ("a INT, b INT AS (a + 1) VIRTUAL NOT NULL, c TEXT, UNIQUE (b)", 0b111),
    ] {
        c.ok(&format!("CREATE TABLE u ({columns})")).await;
        c.ok("INSERT INTO u (a, c) VALUES (1, 'x')").await;
        c.ok("DELETE FROM u").await;
        let deletes = logged(&server, event_kind::DELETE_ROWS);
        assert_eq!(deletes.last().unwrap().rows().unwrap().before[0] & 0b111, found_by, "{columns}");
        c.ok("DROP TABLE u").await;
    }
}

/// Transactions of GTIDs that a client has executed a moment ago, by which an error is passed over.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_client_has_just_executed_is_left_out() {
    let (_server, mut client, mut applier) = logging("ON").await;
    for number in 1..20 {
        let next = format!("SET gtid_next = '{SOURCE}:{number}'");
        for sql in [next.as_str(), "BEGIN", "COMMIT", "SET gtid_next = 'AUTOMATIC'"] {
            client.ok(sql).await;
        }
        assert!(!applier.announce(announced(number)) && applier.announce(announced(number + 1)), "{number}");
    }
}

/// What utf8mb4 alone means and what TIMESTAMP columns without attributes are is the source's.
#[tokio::test(flavor = "multi_thread")]
async fn definitions_mean_what_they_meant_on_the_source() {
    let (_server, mut client, mut applier) = setup().await;
    let old = StatementContext { schema: "d".into(), sql_mode: Some(0), ..StatementContext::default() };
    let new = StatementContext { utf8mb4_collation: Some(255), ..old.clone() };
    let implicit = StatementContext { explicit_defaults_for_timestamp: Some(false), ..old.clone() };
    for (cx, sql) in [
        (&old, "CREATE TABLE old (a VARCHAR(9) UNIQUE) CHARSET utf8mb4"),
        (&new, "CREATE TABLE new (a VARCHAR(9) UNIQUE) CHARSET utf8mb4"),
        (&old, "ALTER TABLE new ADD b VARCHAR(9) CHARSET utf8mb4"),
        (&implicit, "CREATE TABLE stamps (a TIMESTAMP, b TIMESTAMP)"),
        (&old, "CREATE TABLE nulls (a TIMESTAMP, b TIMESTAMP)"),
    ] {
        applier.statement(cx, sql.as_bytes(), None).await.unwrap();
    }
    let columns = "SELECT table_name, column_name, collation_name FROM information_schema.columns WHERE table_name IN ('old', 'new') ORDER BY 1, 2";
    assert_eq!(client.rows(columns).await, table("new a utf8mb4_0900_ai_ci|new b utf8mb4_general_ci|old a utf8mb4_general_ci"));
    client.ok("INSERT INTO old VALUES ('ß'), ('ss')").await;
    let columns = "SELECT table_name, column_name, is_nullable FROM information_schema.columns WHERE table_name IN ('stamps', 'nulls') ORDER BY 1, 2";
    assert_eq!(client.rows(columns).await, table("nulls a YES|nulls b YES|stamps a NO|stamps b NO"));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_server_there_is_no_replica() {
    let server = Server::new();
    let mut client = server.client().await;
    assert_eq!(client.error("START REPLICA").await.0, 1235);
    assert!(client.rows("SHOW REPLICA STATUS").await.is_empty());
    assert_eq!(client.error("SHOW SLAVE STATUS FOR CHANNEL 'x'").await, (3074, "Slave channel 'x' does not exist.".into()));
    assert!(client.rows("SELECT * FROM performance_schema.replication_connection_status").await.is_empty());
}

/// A replica that shows what it was asked.
struct Recorder(parking_lot::Mutex<Vec<String>>);

#[async_trait::async_trait]
impl ReplicaControl for Recorder {
    async fn execute(&self, statement: &ReplicaStatement) -> Result<Vec<highkey_types::Warning>, highkey_types::MySqlError> {
        self.0.lock().push(format!("{:?}", statement.action));
        Ok(vec![highkey_types::Warning { level: highkey_types::Level::Note, code: 3083, message: "noted".into() }])
    }

    fn status(&self) -> Option<ReplicaStatus> {
        let failure = ReplicaFailure { number: 1062, message: "Duplicate".into(), at_micros: 1_700_000_000_000_000 };
        Some(ReplicaStatus { host: "h".into(), port: 3307, applier_failure: failure, receiver: ThreadState::Yes, applied_position: 99, heartbeat_period: 2.5, workers: vec![ReplicaWorker::default(); 2], ..ReplicaStatus::default() })
    }

    fn filters(&self) -> Vec<ReplicaFilter> {
        Vec::new()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_see_the_replica_by_mysqls_names() {
    let server = Server::new();
    let recorder = Arc::new(Recorder(Default::default()));
    server.instance.set_replica(recorder.clone());
    let mut client = server.client().await;
    client.ok("SET time_zone = '+00:00'").await;
    for sql in [
        "CHANGE MASTER TO MASTER_HOST='h', MASTER_PORT=3307, MASTER_HEARTBEAT_PERIOD=2.5, IGNORE_SERVER_IDS=(1, 2), GET_MASTER_PUBLIC_KEY=1, MASTER_USE_GTID=slave_pos",
        "CHANGE REPLICATION FILTER REPLICATE_DO_DB=(a, b), REPLICATE_WILD_DO_TABLE=('a.%'), REPLICATE_REWRITE_DB=((a, b)), REPLICATE_DO_TABLE=()",
        "START SLAVE SQL_THREAD UNTIL MASTER_LOG_FILE='f', MASTER_LOG_POS=4 FOR CHANNEL ''",
        "START REPLICA USER='u' PASSWORD='p'",
        "STOP REPLICA IO_THREAD, SQL_THREAD",
        "RESET SLAVE ALL",
    ] {
        assert_eq!(client.ok(sql).await.warnings, 1, "{sql}");
    }
    let asked = recorder.0.lock().join("\n");
    assert_eq!(
        asked,
        r#"ChangeSource([("SOURCE_HOST", Text("h")), ("SOURCE_PORT", Number("3307")), ("SOURCE_HEARTBEAT_PERIOD", Number("2.5")), ("IGNORE_SERVER_IDS", List([1, 2])), ("GET_SOURCE_PUBLIC_KEY", Number("1")), ("SOURCE_USE_GTID", Word("slave_pos"))])
ChangeFilter([("REPLICATE_DO_DB", ["a", "b"]), ("REPLICATE_WILD_DO_TABLE", ["a.%"]), ("REPLICATE_REWRITE_DB", ["a->b"]), ("REPLICATE_DO_TABLE", [])])
Start { threads: ReplicaThreads { io: false, sql: true }, until: [("SOURCE_LOG_FILE", Text("f")), ("SOURCE_LOG_POS", Number("4"))], login: [] }
Start { threads: ReplicaThreads { io: true, sql: true }, until: [], login: [("USER", Text("u")), ("PASSWORD", Text("p"))] }
Stop(ReplicaThreads { io: true, sql: true })
Reset { all: true }"#
    );
    for wrong in ["CHANGE MASTER TO", "CHANGE MASTER TO MASTER_HOST", "START SLAVE FOO", "CHANGE REPLICATION FILTER REPLICATE_DO_TABLE=(t)", "STOP SLAVE IO_THREAD,", "CHANGE x"] {
        assert_eq!(client.error(wrong).await.0, 1064, "{wrong}");
    }
    let status = client.run("SHOW SLAVE STATUS").await;
    let Answer::Rows { columns, rows, .. } = &status else { panic!("{status:?}") };
    let cells = text(columns, rows).remove(0);
    let cell = |name: &str| cells[columns.iter().position(|c| c.name == name).unwrap_or_else(|| panic!("no column {name}"))].clone();
    for (name, value) in [
        ("Master_Host", "h"),
        ("Slave_IO_Running", "Yes"),
        ("Slave_SQL_Running", "No"),
        ("Exec_Master_Log_Pos", "99"),
        ("Last_Errno", "1062"),
        ("Last_SQL_Error", "Duplicate"),
        ("Last_SQL_Error_Timestamp", "231114 22:13:20"),
        ("Last_IO_Error_Timestamp", ""),
        ("Seconds_Behind_Master", "NULL"),
        ("Get_master_public_key", "0"),
    ] {
        assert_eq!(cell(name), value, "{name}");
    }
    assert_eq!(columns.len(), 59, "as in 8.0.12");
    let new = client.run("SHOW REPLICA STATUS").await;
    let Answer::Rows { columns, .. } = &new else { panic!("{new:?}") };
    assert!(columns.iter().all(|c| !c.name.contains("Master") && !c.name.contains("Slave")));
    let configuration = "SELECT HOST, PORT, HEARTBEAT_INTERVAL, AUTO_POSITION FROM performance_schema.replication_connection_configuration WHERE CHANNEL_NAME = ''";
    assert_eq!(client.rows(configuration).await, table("h 3307 2.5 0"));
    let errors = "SELECT SERVICE_STATE, LAST_ERROR_NUMBER, LAST_ERROR_TIMESTAMP FROM performance_schema.replication_applier_status_by_worker";
    assert_eq!(client.rows(errors).await, vec![["OFF", "1062", "2023-11-14 22:13:20.000000"].map(str::to_string).to_vec(); 2]);
    for name in ["replication_connection_status", "replication_applier_configuration", "replication_applier_status"] {
        assert_eq!(client.rows(&format!("SELECT * FROM performance_schema.{name}")).await.len(), 1, "{name}");
    }
}

const SOURCE: &str = "11111111-1111-1111-1111-111111111111";

fn announced(number: u64) -> Option<SourceTransaction> {
    let gtid = Some((SOURCE.parse().unwrap(), number));
    Some(SourceTransaction { server_id: 9, gtid, committed_micros: Some(1_600_000_000_000_000), server_version: Some(80_014) })
}

/// A replica with a binary log, and a client of it.
async fn logging(log_replica_updates: &str) -> (Server, Client, Applier) {
    let server = Server::with(|settings| {
        for (name, value) in [("log_bin", "ON"), ("gtid_mode", "ON"), ("server_id", "7"), ("log_replica_updates", log_replica_updates)] {
            settings.set(name, Some(value)).unwrap();
        }
    });
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(10))").await;
    c.ok("RESET MASTER").await;
    let applier = Applier::new(server.instance.clone());
    (server, c, applier)
}

/// The binary log's events behind the first two of the file: server id and text, GTIDs by their numbers, rows without their table's.
async fn told(c: &mut Client) -> Vec<String> {
    let rows = c.rows("SHOW BINLOG EVENTS").await;
    let event = |row: &Vec<String>| match row[2].as_str() {
        "Gtid" => format!("{} gtid {}", row[3], row[5].trim_end_matches('\'').rsplit('\'').next().unwrap().rsplit(':').next().unwrap()),
        "Query" => format!("{} {}", row[3], row[5]),
        kind => format!("{} {kind}", row[3]),
    };
    rows[2..].iter().map(event).collect()
}

/// What is applied is in our own binary log, under the source's GTID and server id; and every GTID is, whatever became of its transaction.
#[tokio::test]
async fn what_is_applied_is_logged_as_the_sources() {
    let (server, mut c, mut applier) = logging("ON").await;
    let cx = StatementContext { schema: "d".into(), timestamp_micros: 1_600_000_000_000_000, ..StatementContext::default() };
    let t = source("t");
    let mut position = 0_u8;
    let mut next = || {
        position += 1;
        vec![position]
    };
    // Rows.
    assert!(applier.announce(announced(1)));
    applier.begin().await.unwrap();
    applier.rows(&change(RowsKind::Write, &t, &[image(1, Some("a")), image(2, None)].concat()), 1_600_000_000).await.unwrap();
    applier.rows(&change(RowsKind::Update, &t, &[image(1, Some("a")), image(1, Some("b"))].concat()), 1_600_000_000).await.unwrap();
    applier.commit(b"p", next(), || {}).await.unwrap();
    // A definition, and one that changes nothing here.
    for (number, sql) in [(2, "CREATE TABLE u (id INT PRIMARY KEY)"), (3, "CREATE TABLE IF NOT EXISTS u (id INT PRIMARY KEY)"), (4, "CREATE USER one@localhost, two@localhost")] {
        assert!(applier.announce(announced(number)));
        applier.begin().await.unwrap();
        let value = next();
        applier.statement(&cx, sql.as_bytes(), Some((b"p", value.clone()))).await.unwrap();
        applier.is_one_statement();
        applier.commit(b"p", value, || {}).await.unwrap();
    }
    // Nothing of it was for us.
    assert!(applier.announce(announced(5)));
    applier.begin().await.unwrap();
    applier.commit(b"p", next(), || {}).await.unwrap();
    // Both phases.
    let xid = highkey_table::Xid { format: 1, gtrid: b"x".to_vec(), bqual: Vec::new() };
    assert!(applier.announce(announced(6)));
    assert!(applier.begin_branch(&xid).await.unwrap());
    applier.rows(&change(RowsKind::Delete, &t, &image(2, None)), 1_600_000_000).await.unwrap();
    applier.finish_branch(&xid).unwrap();
    applier.prepare_branch(&xid, b"p", next(), || {}).await.unwrap();
    assert!(applier.announce(announced(7)));
    applier.end_branch(&xid, true, b"p", next()).await.unwrap();
    // One that is undone and comes again.
    assert!(applier.announce(announced(8)));
    for again in [false, true] {
        applier.begin().await.unwrap();
        applier.rows(&change(RowsKind::Write, &t, &image(3, None)), 1_600_000_000).await.unwrap();
        match again {
            false => applier.rollback().await.unwrap(),
            true => applier.commit(b"p", next(), || {}).await.unwrap(),
        }
    }
    // Without a GTID it gets one of ours; if nothing of it is left it is not told.
    for rows in [true, false] {
        assert!(applier.announce(Some(SourceTransaction { server_id: 9, gtid: None, committed_micros: None, server_version: None })));
        applier.begin().await.unwrap();
        if rows {
            applier.rows(&change(RowsKind::Write, &t, &image(4, None)), 1_600_000_000).await.unwrap();
        }
        applier.commit(b"p", next(), || {}).await.unwrap();
    }
    let expected = "9 gtid 1; 9 BEGIN; 9 Table_map; 9 Write_rows; 9 Table_map; 9 Update_rows; 9 Xid; 9 gtid 2; 9 use `d`; CREATE TABLE u (id INT PRIMARY KEY); \
         9 gtid 3; 9 use `d`; CREATE TABLE IF NOT EXISTS u (id INT PRIMARY KEY); 9 gtid 4; 9 use `d`; CREATE USER one@localhost, two@localhost; 9 gtid 5; 9 BEGIN; 9 COMMIT; \
         9 gtid 6; 9 XA START X'78',X'',1; 9 Table_map; 9 Delete_rows; 9 XA END X'78',X'',1; 9 XA_prepare; 9 gtid 7; 9 XA COMMIT X'78',X'',1; \
         9 gtid 8; 9 BEGIN; 9 Table_map; 9 Write_rows; 9 Xid; 9 gtid 1; 9 BEGIN; 9 Table_map; 9 Write_rows; 9 Xid";
    assert_eq!(told(&mut c).await.join("; "), expected);
    let own = server.instance.database().server_uuid();
    assert_eq!(c.value("SELECT @@gtid_executed").await.replace('\n', ""), [format!("{SOURCE}:1-8"), format!("{own}:1")].iter().map(String::as_str).collect::<std::collections::BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(","));
    assert_eq!(c.rows("SELECT id, name FROM t ORDER BY id").await, table("1 b|3 NULL|4 NULL"));
    // What has been executed, by whomever, is left out.
    assert!(!applier.announce(announced(8)));
    c.ok(&format!("SET gtid_next = '{SOURCE}:9'")).await;
    c.ok("BEGIN").await;
    c.ok("COMMIT").await;
    c.value("SELECT @@global.gtid_executed").await;
    assert!(!applier.announce(announced(9)) && applier.announce(announced(10)));
    applier.close().await;
}

/// As the source's log has it: done here, too, and told on.
#[tokio::test]
async fn what_a_source_does_for_tables_is_done_again() {
    let (_server, mut c, mut applier) = logging("ON").await;
    c.ok("CREATE TABLE p (id INT) PARTITION BY HASH (id) PARTITIONS 2").await;
    c.ok("INSERT INTO t VALUES (1, 'a')").await;
    c.ok("RESET MASTER").await;
    let cx = StatementContext { schema: "d".into(), ..StatementContext::default() };
    let mut expected = Vec::new();
    for (number, sql) in [(1, "ANALYZE TABLE t UPDATE HISTOGRAM ON name"), (2, "ALTER TABLE p ANALYZE PARTITION p0")] {
        assert!(applier.announce(announced(number)));
        applier.begin().await.unwrap();
        let value = vec![number as u8];
        applier.statement(&cx, sql.as_bytes(), Some((b"p", value.clone()))).await.unwrap();
        applier.is_one_statement();
        applier.commit(b"p", value, || {}).await.unwrap();
        expected.push(format!("9 gtid {number}; 9 use `d`; {sql}"));
    }
    assert_eq!(told(&mut c).await.join("; "), expected.join("; "));
    assert_eq!(c.value("SELECT column_name FROM information_schema.column_statistics WHERE table_name = 't'").await, "name");
    applier.close().await;
}

/// A crash comes between a rollback of what is prepared and the position: the GTID is told once.
#[tokio::test]
async fn the_end_of_what_is_prepared_is_told_once() {
    let (_server, mut c, mut applier) = logging("ON").await;
    let xid = highkey_table::Xid { format: 1, gtrid: b"x".to_vec(), bqual: Vec::new() };
    let t = source("t");
    applier.announce(announced(1));
    applier.begin_branch(&xid).await.unwrap();
    applier.rows(&change(RowsKind::Write, &t, &image(1, None)), 1_600_000_000).await.unwrap();
    applier.finish_branch(&xid).unwrap();
    applier.prepare_branch(&xid, b"p", vec![1], || {}).await.unwrap();
    for _ in 0..2 {
        // The second time `gtid_executed` is a step behind, as after a start.
        applier.announce(announced(2));
        applier.end_branch(&xid, false, b"p", vec![2]).await.unwrap();
    }
    let ends = told(&mut c).await;
    assert_eq!(ends.iter().filter(|event| event.contains("gtid 2")).count(), 1, "{ends:?}");
    // Of what is prepared and holds nothing, both GTIDs are told.
    let empty = highkey_table::Xid { format: 1, gtrid: b"y".to_vec(), bqual: Vec::new() };
    applier.announce(announced(3));
    applier.begin_branch(&empty).await.unwrap();
    applier.finish_branch(&empty).unwrap();
    applier.prepare_branch(&empty, b"p", vec![3], || {}).await.unwrap();
    applier.announce(announced(4));
    applier.end_branch(&empty, true, b"p", vec![4]).await.unwrap();
    assert_eq!(c.value("SELECT @@gtid_executed").await, format!("{SOURCE}:1-4"));
    applier.close().await;
}

#[tokio::test]
async fn without_log_replica_updates_nothing_is_logged() {
    let (_server, mut c, mut applier) = logging("OFF").await;
    assert_eq!(c.rows("SELECT @@log_replica_updates, @@log_slave_updates").await, table("0 0"));
    let t = source("t");
    assert!(applier.announce(announced(1)));
    applier.begin().await.unwrap();
    applier.rows(&change(RowsKind::Write, &t, &image(1, None)), 1_600_000_000).await.unwrap();
    applier.commit(b"p", vec![1], || {}).await.unwrap();
    assert!(told(&mut c).await.is_empty());
    assert_eq!(c.rows("SELECT id FROM t").await, table("1"));
    applier.close().await;
}

/// A replica whose applier is somewhere in the source's second file; at 0 it has stopped.
struct Applying(AtomicU64);

#[async_trait::async_trait]
impl ReplicaControl for Applying {
    async fn execute(&self, _: &ReplicaStatement) -> Result<Vec<highkey_types::Warning>, highkey_types::MySqlError> {
        Ok(Vec::new())
    }

    fn status(&self) -> Option<ReplicaStatus> {
        let at = self.0.load(Ordering::SeqCst);
        let applier = if at == 0 { ThreadState::No } else { ThreadState::Yes };
        Some(ReplicaStatus { applier, applied_file: "log.000002".into(), applied_position: at, ..ReplicaStatus::default() })
    }

    fn filters(&self) -> Vec<ReplicaFilter> {
        Vec::new()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_waits_for_a_position_of_the_source() {
    let server = Server::new();
    let applying = Arc::new(Applying(AtomicU64::new(100)));
    server.instance.set_replica(applying.clone());
    let mut client = server.client().await;
    for (arguments, answer) in [
        ("'log.000002', 100", "0"),
        ("'log.000001', 5000", "0"),
        ("'log.000002', 101, 0.02", "-1"),
        ("'log.000003', 4, 0.02", "-1"),
        ("'log', 4", "NULL"),
        ("'log.000001', 4, 1, 'other'", "NULL"),
        ("'log.000001', NULL", "NULL"),
    ] {
        assert_eq!(client.value(&format!("SELECT MASTER_POS_WAIT({arguments})")).await, answer, "{arguments}");
    }
    assert_eq!(client.error("SELECT MASTER_POS_WAIT('log.000001', 4, -1)").await.0, 1210);
    for (stops_at, answer) in [(200, "1"), (0, "NULL")] {
        applying.0.store(100, Ordering::SeqCst);
        let mut waiting = server.client().await;
        let waiter = tokio::spawn(async move { waiting.value("SELECT SOURCE_POS_WAIT('log.000002', 200, 0, '')").await });
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        assert!(!waiter.is_finished());
        applying.0.store(stops_at, Ordering::SeqCst);
        assert_eq!(waiter.await.unwrap(), answer);
    }
}

/// A replica in the middle of a transaction, if it has a source.
struct Busy {
    has_source: bool,
}

#[async_trait::async_trait]
impl ReplicaControl for Busy {
    async fn execute(&self, _: &ReplicaStatement) -> Result<Vec<highkey_types::Warning>, highkey_types::MySqlError> {
        Ok(Vec::new())
    }

    fn status(&self) -> Option<ReplicaStatus> {
        let transaction = |gtid: &str, from: i64| ReplicaTransaction {
            gtid: gtid.into(),
            original_commit_micros: from * 1_000_000,
            immediate_commit_micros: from * 1_000_000 + 1,
            started_micros: from * 1_000_000 + 2,
            ended_micros: 0,
        };
        let mut read = transaction("u:1", 60);
        let last_queued = read.end(60_000_003);
        assert_eq!(read.gtid, "");
        let worker = ReplicaWorker { thread: 5, applying: transaction("u:3", 120), last_applied: ReplicaTransaction::default() };
        let processing = transaction("u:4", 180);
        self.has_source.then(|| ReplicaStatus { applier: ThreadState::Yes, last_queued, queueing: read, workers: vec![worker], processing, ..ReplicaStatus::default() })
    }

    fn filters(&self) -> Vec<ReplicaFilter> {
        vec![
            ReplicaFilter { name: "REPLICATE_DO_DB", rule: "a,b".into(), by_option: true, since_micros: 1_000_000 },
            ReplicaFilter { name: "REPLICATE_DO_TABLE", rule: String::new(), by_option: false, since_micros: 0 },
        ]
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_replication_does_is_in_performance_schema() {
    for has_source in [false, true] {
        let server = Server::new();
        server.instance.set_replica(Arc::new(Busy { has_source }));
        let mut client = server.client().await;
        client.ok("SET time_zone = '+00:00'").await;
        let mut rows = async |table: &str, columns: &str| {
            let rows = client.rows(&format!("SELECT CONCAT_WS(' ', {columns}) FROM performance_schema.replication_{table}")).await;
            rows.into_iter().flatten().collect::<Vec<String>>()
        };
        let set = "REPLICATE_DO_DB a,b STARTUP_OPTIONS 1970-01-01 00:00:01.000000";
        let unset = "REPLICATE_DO_TABLE  CHANGE_REPLICATION_FILTER 0000-00-00 00:00:00.000000";
        assert_eq!(rows("applier_global_filters", "filter_name, filter_rule, configured_by, active_since").await, [set, unset]);
        let of_channel = rows("applier_filters", "filter_name, filter_rule, configured_by, active_since").await;
        let queued = "last_queued_transaction, last_queued_transaction_original_commit_timestamp, last_queued_transaction_immediate_commit_timestamp, last_queued_transaction_start_queue_timestamp, last_queued_transaction_end_queue_timestamp, queueing_transaction, queueing_transaction_start_queue_timestamp";
        let queued = rows("connection_status", queued).await;
        let applying = rows("applier_status_by_worker", "last_applied_transaction, last_applied_transaction_end_apply_timestamp, applying_transaction, applying_transaction_original_commit_timestamp, applying_transaction_start_apply_timestamp").await;
        let processing = rows("applier_status_by_coordinator", "service_state, last_processed_transaction, processing_transaction, processing_transaction_immediate_commit_timestamp").await;
        if !has_source {
            assert!(of_channel.is_empty() && queued.is_empty() && applying.is_empty() && processing.is_empty());
            continue;
        }
        assert_eq!(of_channel, [set, unset]);
        assert_eq!(queued, ["u:1 1970-01-01 00:01:00.000000 1970-01-01 00:01:00.000001 1970-01-01 00:01:00.000002 1970-01-01 00:01:00.000003  0000-00-00 00:00:00.000000"]);
        assert_eq!(applying, [" 0000-00-00 00:00:00.000000 u:3 1970-01-01 00:02:00.000000 1970-01-01 00:02:00.000002"]);
        assert_eq!(processing, ["ON  u:4 1970-01-01 00:03:00.000001"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_the_source_do_not_run_here() {
    let (_server, mut client, mut applier) = setup().await;
    let cx = StatementContext { schema: "d".into(), timestamp_micros: 1_700_000_000_000_000, time_zone: Some("+02:00".into()), ..StatementContext::default() };
    applier.statement(&cx, b"CREATE DEFINER=`u`@`h` EVENT e ON SCHEDULE EVERY 1 DAY DO DO 1", None).await.unwrap();
    let shown = "SELECT DEFINER, STATUS, TIME_ZONE, STARTS, EVENT_COMMENT FROM information_schema.EVENTS";
    assert_eq!(client.rows(shown).await.concat(), ["u@h", "SLAVESIDE_DISABLED", "+02:00", "2023-11-15 00:13:20", ""]);
    // The statement does not say who alters it.
    applier.statement(&cx, b"ALTER EVENT e ENABLE COMMENT 'x'", None).await.unwrap();
    assert_eq!(client.rows(shown).await.concat(), ["u@h", "SLAVESIDE_DISABLED", "+02:00", "2023-11-15 00:13:20", "x"]);
    client.ok("ALTER EVENT e ENABLE").await;
    assert_eq!(client.rows(shown).await.concat()[..2], ["root@localhost", "ENABLED"]);
    applier.statement(&cx, b"DROP EVENT e", None).await.unwrap();
    assert!(client.rows(shown).await.is_empty());
}
