//! Weights and answers that MySQL was asked for, and properties of sort keys.

use proptest::prelude::*;

use super::*;

fn key(collation: &Collation, text: &str) -> Vec<u8> {
    let mut key = Vec::new();
    collation.sort_key(text.as_bytes(), &mut key);
    key
}

/// Every code point's weights are the recorded ones: the same checksum as tools/record_collations.py computed.
#[test]
fn weights_are_mysqls() {
    for line in include_str!("tables/checksums.txt").lines() {
        let (name, recorded) = line.split_once(' ').unwrap();
        let weights = match (name, Collation::by_name(name).map(|collation| collation.rule)) {
            ("uca_0900_secondary", _) => &unicode::SECONDARY_0900,
            ("uca_0900_tertiary", _) => &unicode::TERTIARY_0900,
            (_, Some(Rule::Unicode(weights))) => weights,
            _ => panic!("{name}"),
        };
        let mut hash = 0xCBF2_9CE4_8422_2325u64;
        let mut add = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3);
        for c in (0..0x11_0000).filter(|c| !(0xD800..0xE000).contains(c)) {
            let units = weights.weights(c);
            add(units.len * 2);
            units.as_slice().iter().flat_map(|unit| unit.to_be_bytes()).for_each(&mut add);
        }
        assert_eq!(format!("{hash:016x}"), recorded, "{name}");
    }
}

/// Comparisons and LIKEs recorded from MySQL: collation, operation, left, right (hexadecimal UTF-8), answer.
#[test]
fn answers_are_mysqls() {
    let bytes = |hex: &str| (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect::<Vec<u8>>();
    let mut count = 0;
    for line in include_str!("../../testdata/collation.tsv").lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let collation = Collation::by_name(fields[0]).unwrap();
        let (a, b) = (bytes(fields[2]), bytes(fields[3]));
        let answer: i64 = fields[4].parse().unwrap();
        let (x, y) = (String::from_utf8_lossy(&a), String::from_utf8_lossy(&b));
        match fields[1] {
            "cmp" => {
                assert_eq!(collation.compare(&a, &b) as i64, answer, "{} {x:?} {y:?}", fields[0]);
                let keys = (key(collation, &x), key(collation, &y));
                assert_eq!(keys.0.cmp(&keys.1) as i64, answer, "key {} {x:?} {y:?}", fields[0]);
            }
            _ => assert_eq!(i64::from(collation.like(&a, &b, Some('\\'))), answer, "{} {x:?} LIKE {y:?}", fields[0]),
        }
        count += 1;
    }
    assert!(count > 1000);
}

#[test]
fn names_and_numbers() {
    for collation in Collation::all() {
        assert_eq!(Collation::by_id(collation.id), Some(collation));
        assert_eq!(Collation::by_name(&collation.name.to_uppercase()), Some(collation));
    }
    assert_eq!(Collation::by_name("utf8mb3_general_ci").unwrap().id, 33);
    assert!(Collation::by_name("utf8mb4_klingon_ci").is_none());
    assert!(Collation::all().is_sorted_by_key(|c| c.name));
}

#[test]
fn keys_are_short_for_ascii() {
    assert_eq!(key(Collation::utf8mb4(), "Hello, world").len(), 13);
    assert_eq!(key(Collation::utf8mb4(), "HELLO, WORLD"), key(Collation::utf8mb4(), "hello, world"));
    assert_eq!(key(Collation::by_name("utf8mb4_general_ci").unwrap(), "a  ").len(), 2);
}

#[test]
fn find_and_case() {
    assert_eq!(Collation::utf8mb4().find("Grüße".as_bytes(), "USS".as_bytes()), None);
    assert_eq!(Collation::utf8mb4().find("Grüße".as_bytes(), "RU".as_bytes()), None);
    assert_eq!(Collation::utf8mb4().find("Grüße".as_bytes(), "RÜ".as_bytes()), Some(1..4));
    assert_eq!(Collation::utf8mb4().find("Straße".as_bytes(), b"SS"), Some(4..6));
    assert_eq!(Collation::utf8mb4().find("äpfel".as_bytes(), b"a"), None);
    assert_eq!(Collation::by_name("latin1_swedish_ci").unwrap().find("xé".as_bytes(), b"E"), Some(1..3));
    assert_eq!(Collation::utf8mb4().find(b"abc", b""), Some(0..0));
    assert_eq!(BINARY.find(b"abc", b"B"), None);
    assert_eq!(Collation::utf8mb4().upper("straße é"), "STRAßE É");
    assert_eq!(Collation::utf8mb4().lower("İÉ"), "ié");
    let turkish = Collation::by_name("utf8mb4_turkish_ci").unwrap();
    assert_eq!((turkish.upper("iı"), turkish.lower("Iİ")), ("İI".to_owned(), "ıi".to_owned()));
    let cp850 = Collation::by_name("cp850_general_ci").unwrap();
    assert_eq!((cp850.upper("aéñ"), cp850.lower("AÁÑ")), ("AÉÑ".to_owned(), "aÁñ".to_owned()));
}

fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-cA-C \t!~]{0,3}",
        Just("é".to_owned()),
        Just("ß".to_owned()),
        Just("\u{1}".to_owned()),
        Just("\u{0}".to_owned()),
        Just("中".to_owned()),
        Just("😀".to_owned()),
        Just("\u{A0}".to_owned()),
        Just("가".to_owned()),
    ];
    proptest::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn keys_order_as_compare(a in texts(), b in texts()) {
        for collation in Collation::all() {
            let (x, y) = (key(collation, &a), key(collation, &b));
            let order = collation.compare(a.as_bytes(), b.as_bytes());
            prop_assert_eq!(x.cmp(&y), order, "{} {:?} {:?}", collation.name, a, b);
            prop_assert_eq!(order.reverse(), collation.compare(b.as_bytes(), a.as_bytes()));
            if order.is_ne() {
                prop_assert!(!x.starts_with(&y) && !y.starts_with(&x));
            } else {
                prop_assert_eq!(collation.hash_text(a.as_bytes()), collation.hash_text(b.as_bytes()));
            }
        }
    }
}
