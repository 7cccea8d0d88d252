//! GTID sets against a model, and their forms.

use std::collections::BTreeSet;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::{GtidSet, Uuid};

const A: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
const B: &str = "4e11fa47-71ca-11e1-9e33-c80aa9429562";

fn set(text: &str) -> GtidSet {
    text.replace('A', A).replace('B', B).parse().unwrap()
}

fn short(set: &GtidSet) -> String {
    set.to_string().replace(A, "A").replace(B, "B")
}

#[test]
fn text_is_normalised() {
    for (text, normal) in [
        ("", ""),
        (" , ,", ""),
        ("A:1", "A:1"),
        ("A:1-5:3-9", "A:1-9"),
        ("A:7:1-3:4", "A:1-4:7"),
        (" B : 2 - 3 , A:1 , B:4 ", "A:1,\nB:2-4"),
        ("A:5-4", ""),
        ("A:5-0:9", "A:9"),
        ("A:1-9223372036854775806", "A:1-9223372036854775806"),
    ] {
        assert_eq!(short(&set(text)), normal, "{text}");
    }
    for (wrong, at) in [("x:1", 0), ("A:", 37), ("A:0", 37), ("A:1:", 39), ("A:9223372036854775807", 37), ("A:1;", 38), ("A:1 B:1", 39)] {
        let text = wrong.replace('A', A).replace('B', B);
        assert_eq!(text.parse::<GtidSet>().unwrap_err().at, at, "{wrong}");
    }
}

/// GTID_SUBTRACT and GTID_SUBSET of MySQL 8.0.12 (tools/record.py).
#[test]
fn answers_recorded_from_mysql() {
    let unescaped = |text: &str| text.replace("\\t", "\t").replace("\\n", "\n");
    let mut errors = 0;
    for line in include_str!("../../testdata/gtid.tsv").lines() {
        let fields: Vec<_> = line.split('\t').map(unescaped).collect();
        let [function, a, b, expected] = &fields[..] else { panic!("{line}") };
        let answer = a.parse::<GtidSet>().and_then(|mut a| {
            let b = b.parse()?;
            if function == "gtid_subset" {
                return Ok(u8::from(a.is_subset(&b)).to_string());
            }
            a.subtract(&b);
            Ok(a.to_string())
        });
        errors += usize::from(answer.is_err());
        assert_eq!(answer.unwrap_or_else(|_| "E1772".to_owned()), *expected, "{line}");
    }
    assert!(errors > 30);
}

#[test]
fn bytes_round_trip_and_are_not_trusted() {
    let whole = set("A:1-5:7:9-12,B:3");
    let mut bytes = Vec::new();
    whole.encode(&mut bytes);
    assert_eq!(bytes.len(), 8 + 2 * 24 + 4 * 16);
    assert_eq!(GtidSet::decode(&bytes).unwrap(), whole);
    for len in 0..bytes.len() {
        assert!(GtidSet::decode(&bytes[..len]).is_err(), "cut to {len} bytes");
    }
    bytes.push(0);
    assert_eq!(GtidSet::decode(&bytes).unwrap_err().at, bytes.len() - 1);
    bytes.pop();
    // An empty interval, one that touches the one before, and a count beyond the bytes.
    for (at, byte) in [(40, 1), (48, 6), (24, 200)] {
        let mut wrong = bytes.clone();
        wrong[at] = byte;
        assert!(GtidSet::decode(&wrong).is_err(), "byte {at}");
    }
    assert_eq!(GtidSet::decode(&[0; 8]), Ok(GtidSet::new()));
}

#[test]
fn arithmetic_agrees_with_a_model() {
    type Model = BTreeSet<(Uuid, u64)>;
    let sids: [Uuid; 2] = [A.parse().unwrap(), B.parse().unwrap()];
    let mut rng = StdRng::seed_from_u64(8_012);
    let make = |rng: &mut StdRng| {
        let (mut set, mut model) = (GtidSet::new(), Model::new());
        for _ in 0..rng.random_range(0..8) {
            let sid = sids[rng.random_range(0..2)];
            let first = rng.random_range(1..30);
            let last = first + rng.random_range(0..6);
            set.add_interval(sid, first, last);
            model.extend((first..=last).map(|gno| (sid, gno)));
        }
        (set, model)
    };
    let check = |set: &GtidSet, model: &Model, what: &str| {
        assert_eq!(set.count(), model.len() as u64, "{what}: {set}");
        assert_eq!(set.is_empty(), model.is_empty(), "{what}");
        for sid in sids {
            assert!(set.intervals_of(sid).windows(2).all(|pair| pair[0].1 + 1 < pair[1].0), "{what}: gaps in {set}");
            assert!((1..40).all(|gno| set.contains(sid, gno) == model.contains(&(sid, gno))), "{what}: {set}");
            for after in 0..36 {
                let free = (after + 1..).find(|gno| !model.contains(&(sid, *gno)));
                assert_eq!(Some(set.next_free(sid, after)), free, "{what}: {set} after {after}");
            }
        }
        assert_eq!(set.to_string().parse().as_ref(), Ok(set), "{what}");
        let mut bytes = Vec::new();
        set.encode(&mut bytes);
        assert_eq!(GtidSet::decode(&bytes).as_ref(), Ok(set), "{what}");
    };
    for round in 0..2_000 {
        let ((a, model_a), (b, model_b)) = (make(&mut rng), make(&mut rng));
        check(&a, &model_a, "made");
        let (mut union, mut difference, mut common) = (a.clone(), a.clone(), a.clone());
        union.union(&b);
        difference.subtract(&b);
        common.intersect(&b);
        check(&union, &model_a.union(&model_b).copied().collect(), "union");
        check(&difference, &model_a.difference(&model_b).copied().collect(), "difference");
        check(&common, &model_a.intersection(&model_b).copied().collect(), "common");
        assert_eq!(a.is_subset(&b), model_a.is_subset(&model_b), "round {round}: {a} in {b}");
        assert!(common.is_subset(&a) && a.is_subset(&union), "round {round}");
    }
}
