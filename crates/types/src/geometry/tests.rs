//! What MySQL 8.0.12 answers.

use super::*;

fn wkt(text: &str) -> Geometry {
    of_wkt(text).unwrap_or_else(|| panic!("{text} is a geometry"))
}

/// Nobody ends what takes long.
fn patient() -> Result<(), &'static str> {
    Ok(())
}

#[test]
fn texts_are_read_and_printed() {
    for text in [
        "POINT(1 2)",
        "POINT(-0.5 1e20)",
        "LINESTRING(1 2,3 4)",
        "POLYGON((0 0,1 0,1 1,0 0),(0 0,1 1,1 0,0 0))",
        "MULTIPOINT((1 2),(3 4))",
        "MULTILINESTRING((1 2,3 4))",
        "MULTIPOLYGON(((0 0,1 0,1 1,0 0)))",
        "GEOMETRYCOLLECTION(POINT(1 2),GEOMETRYCOLLECTION EMPTY)",
        "GEOMETRYCOLLECTION EMPTY",
    ] {
        assert_eq!(to_wkt(&wkt(text)), text);
        let stored = to_stored(4326, &wkt(text));
        assert_eq!(of_stored(&stored), Some((4326, wkt(text))), "{text}");
        assert_eq!(of_wkb(&stored[4..]), Some(wkt(text)), "{text}");
        for cut in 0..stored.len() {
            assert_eq!(of_stored(&stored[..cut]), None, "{text} cut to {cut} bytes");
        }
    }
    assert_eq!(to_wkt(&wkt(" point ( 1 \t +2.50e-3 ) ")), "POINT(1 0.0025)");
    assert_eq!(to_wkt(&wkt("POINT(1-5)")), "POINT(1 -5)");
    assert_eq!(to_wkt(&wkt("MULTIPOINT(1 2,3 4)")), "MULTIPOINT((1 2),(3 4))");
    assert_eq!(to_wkt(&wkt("GEOMETRYCOLLECTION( )")), "GEOMETRYCOLLECTION EMPTY");
    for text in [
        "", "POINT(1 2", "POINT(1 2)x", "POINT(1,2)", "POINT EMPTY", "POINT(1 5e)", "POINT(1e400 3)", "POINT(nan 1)", "LINESTRING(1 2)", "POLYGON((0 0,1 0,0 0))",
        "POLYGON((0 0,1 0,1 1,0 1))", "MULTIPOINT((1 2),3 4)", "GEOMCOLLECTION EMPTY", "GEOMETRYCOLLECTIONEMPTY", "GEOMETRYCOLLECTION(POINT(1 1)",
    ] {
        assert_eq!(of_wkt(text), None, "{text}");
    }
    let deep = format!("{}POINT(1 1){}", "GEOMETRYCOLLECTION(".repeat(100_000), ")".repeat(100_000));
    assert_eq!(of_wkt(&deep), None);
}

#[test]
fn bytes_are_never_trusted() {
    // A count beyond the bytes, a part of another kind, an order of bytes that is none.
    for bytes in [&b"\x01\x02\0\0\0\xff\xff\xff\xff"[..], b"\x01\x04\0\0\0\x01\0\0\0\x01\x02\0\0\0\0\0\0\0", b"\x02\x01\0\0\0", b"\x01\x08\0\0\0\0\0\0\0", b"\x01\x04\0\0\0\0\0\0\0"] {
        assert_eq!(of_wkb(bytes), None, "{bytes:?}");
    }
    let nested = [b"\x01\x07\0\0\0\x01\0\0\0".repeat(100_000), b"\x01\x07\0\0\0\0\0\0\0".to_vec()].concat();
    assert_eq!(of_wkb(&nested), None);
    let open = [&b"\0\0\0\0"[..], &to_wkb(&Geometry::Polygon(vec![vec![Coord { x: 0.0, y: 0.0 }, Coord { x: 1.0, y: 0.0 }, Coord { x: 1.0, y: 1.0 }, Coord { x: 0.0, y: 2.0 }]]))].concat();
    assert!(of_stored(&open).is_some(), "an open ring is stored");
    assert_eq!(of_wkb(&open[4..]), None);
    assert_eq!(of_wkb(b"\0\0\0\0\x01\x3f\xf0\0\0\0\0\0\0\x40\0\0\0\0\0\0\0"), Some(wkt("POINT(1 2)")));
}

#[test]
fn columns_admit_their_kind() {
    let stored = |srid, text| Value::Bytes(to_stored(srid, &wkt(text)));
    let store = |value, shape, srid| super::store(value, &GeometryType { shape, srid }, "c").map_err(|e| e.code);
    assert_eq!(store(stored(0, "POINT(1 2)"), Shape::Geometry, None), Ok(stored(0, "POINT(1 2)")));
    assert_eq!(store(stored(0, "POINT(1 2)"), Shape::Point, Some(0)), Ok(stored(0, "POINT(1 2)")));
    assert_eq!(store(stored(0, "MULTIPOINT((1 2))"), Shape::Collection, None), Ok(stored(0, "MULTIPOINT((1 2))")));
    assert_eq!(store(stored(0, "POINT(1 2)"), Shape::Collection, None), Err(1416));
    assert_eq!(store(stored(0, "POINT(1 2)"), Shape::MultiPoint, None), Err(1416));
    assert_eq!(store(stored(0, "POINT(1 2)"), Shape::Point, Some(4326)), Err(3643));
    assert_eq!(store("POINT(1 2)".into(), Shape::Point, None), Err(1416));
    assert_eq!(store(Value::Int(1), Shape::Geometry, None), Err(1416));
}

#[test]
fn measures_have_the_digits_of_mysql() {
    assert_eq!(area(&wkt("POLYGON((0 0,10 0,10 10,0 10,0 0),(2 2,2 4,4 4,4 2,2 2))")), 96.0);
    assert_eq!(area(&wkt("POLYGON((0 0,1 1,1 0,0 0))")), 0.5);
    assert_eq!(length(&wkt("LINESTRING(0 0,1 1)"), None), Some(std::f64::consts::SQRT_2));
    assert_eq!(length(&wkt("POINT(0 0)"), None), None);
    let text = |text: &str| centroid(&wkt(text)).map(|at| to_wkt(&Geometry::Point(at)));
    assert_eq!(text("POLYGON((0 0,1 1,1 0,0 0))").as_deref(), Some("POINT(0.6666666666666666 0.3333333333333333)"));
    assert_eq!(text("LINESTRING(1 2,5 4,6 6)").as_deref(), Some("POINT(3.8333333333333335 3.6666666666666665)"));
    assert_eq!(text("MULTIPOINT(1 2,2 2,7 1)").as_deref(), Some("POINT(3.3333333333333335 1.6666666666666667)"));
    assert_eq!(text("GEOMETRYCOLLECTION(POINT(1 2),LINESTRING(1 1,2 2),POLYGON((0 0,4 0,4 4,0 4,0 0)))").as_deref(), Some("POINT(2 2)"));
    assert_eq!(text("GEOMETRYCOLLECTION EMPTY"), None);
    let wgs84 = srs::find(4326).and_then(|srs| srs.geographic.as_ref()).expect("it is geographic");
    let (zero, one) = (Coord { x: 0.0, y: 0.0 }, Coord { x: 1.0, y: 1.0 });
    assert_eq!(geographic_distance(zero, one, wgs84), 156897.79947260793);
    assert_eq!(geographic_distance(Coord { x: -74.0, y: 40.7 }, Coord { x: -0.12, y: 51.5 }, wgs84), 5586494.047172752);
    assert_eq!(sphere_distance(zero, one, wgs84.degree, wgs84.mean_radius()), 157249.59776850493);
    assert_eq!(sphere_distance(zero, one, std::f64::consts::PI / 180.0, 6_370_986.0), 157249.0357231545);
    assert_eq!(sphere_distance(Coord { x: -74.0, y: 40.7 }, Coord { x: -0.12, y: 51.5 }, wgs84.degree, wgs84.mean_radius()), 5571498.4426361015);
}

#[test]
fn distances_are_between_the_nearest_points() {
    let of = |a: &str, b: &str| distance(&wkt(a), &wkt(b), &mut patient).expect("nobody ended it");
    assert_eq!(of("POINT(0 0)", "POINT(3 4)"), Some(5.0));
    assert_eq!(of("POINT(0 0)", "LINESTRING(1 -1,1 1)"), Some(1.0));
    assert_eq!(of("POLYGON((0 0,1 1,1 0,0 0))", "POINT(0.7 0.5)"), Some(0.0));
    assert_eq!(of("POLYGON((0 0,1 1,1 0,0 0))", "POLYGON((5 5,6 6,6 5,5 5))"), Some(5.656854249492381));
    assert_eq!(of("LINESTRING(0 0,2 2)", "LINESTRING(0 2,2 0)"), Some(0.0));
    assert_eq!(of("POLYGON((0 0,9 0,9 9,0 9,0 0),(1 1,8 1,8 8,1 8,1 1))", "POINT(4 3)"), Some(2.0));
    assert_eq!(of("GEOMETRYCOLLECTION EMPTY", "POINT(0 0)"), None);
}

#[test]
fn geohashes_are_those_of_mysql() {
    for (x, y, length, hash) in [
        (180.0, 0.0, 10, "xbpbpbpbpb"),
        (-180.0, -90.0, 15, "000000000000000"),
        (10.40744, 57.64911, 11, "u4pruydqqvj"),
        (45.0, 22.5, 3, "th0"),
        (90.0, 0.0, 20, "w0000000000000000000"),
        (180.0, 90.0, 3, "zzz"),
    ] {
        assert_eq!(geohash(Coord { x, y }, length), hash);
    }
    for (hash, x, y) in [("u4pruydqqvj", 10.40744, 57.64911), ("S", 22.0, 22.0), ("0", -158.0, -68.0), ("zzzzzzzz", 180.0, 90.0), ("ezs42", -5.6, 42.6)] {
        assert_eq!(of_geohash(hash), Some(Coord { x, y }), "{hash}");
    }
    assert_eq!((of_geohash(""), of_geohash("a"), of_geohash("b!")), (None, None, None));
}

#[test]
fn geojson_is_read_and_written() {
    let text = |geometry: &str, decimals, bbox| crate::json::to_text(&to_geojson(&wkt(geometry), decimals, bbox, None));
    assert_eq!(text("POINT(1.23456789 2)", Some(3), false), r#"{"type": "Point", "coordinates": [1.235, 2.0]}"#);
    assert_eq!(text("LINESTRING(1 2,3 1)", None, true), r#"{"bbox": [1.0, 1.0, 3.0, 2.0], "type": "LineString", "coordinates": [[1.0, 2.0], [3.0, 1.0]]}"#);
    let read = |text: &str, more| of_geojson(&crate::json::parse(text).expect("it is JSON"), more);
    assert_eq!(read(r#"{"type":"Point","coordinates":[1,2]}"#, false), Ok((Some(wkt("POINT(1 2)")), None)));
    assert_eq!(read(r#"{"type":"Point","coordinates":[1,2,3]}"#, true), Ok((Some(wkt("POINT(1 2)")), None)));
    assert_eq!(read(r#"{"type":"Point","coordinates":[1,2,3]}"#, false), Err(GeoJsonError::Dimensions(3)));
    assert_eq!(read(r#"{"type":"Point","coordinates":[1,2],"crs":{"type":"name","properties":{"name":"EPSG:3857"}}}"#, false), Ok((Some(wkt("POINT(1 2)")), Some(3857))));
    assert_eq!(read(r#"{"type":"Feature","geometry":null,"properties":null}"#, false), Ok((None, None)));
    assert_eq!(read(r#"{"type":"Feature","geometry":null}"#, false), Err(GeoJsonError::Missing("properties")));
    assert_eq!(read(r#"{"type":"GeometryCollection","geometries":[5]}"#, false), Err(GeoJsonError::WrongType("geometries", "object array")));
    assert_eq!(read("[1]", false), Err(GeoJsonError::Invalid));
}

#[test]
fn simple_lines_meet_at_their_ends_only() {
    for (text, simple) in [
        ("LINESTRING(0 0,1 1,0 1,1 0)", false),
        ("LINESTRING(0 0,1 1)", true),
        ("LINESTRING(0 0,0 0)", false),
        ("LINESTRING(0 0,1 1,1 1)", false),
        ("LINESTRING(0 0,1 0,1 1,0 0)", true),
        ("LINESTRING(0 0,1 0,0 0)", false),
        ("MULTIPOINT(0 0,0 0)", false),
        ("MULTILINESTRING((0 0,1 1),(0 1,1 0))", false),
        ("MULTILINESTRING((0 0,1 1),(1 1,2 0))", true),
        ("GEOMETRYCOLLECTION EMPTY", true),
    ] {
        assert_eq!(is_simple(&wkt(text), &mut patient), Ok(simple), "{text}");
    }
}

#[test]
fn hulls_and_rings_have_the_order_of_mysql() {
    let hull = |text: &str| convex_hull(&wkt(text)).map(|hull| to_wkt(&hull));
    assert_eq!(hull("MULTIPOINT(1 1,0 0,2 0,2 2,0 2)").as_deref(), Some("POLYGON((0 0,2 0,2 2,0 2,0 0))"));
    assert_eq!(hull("LINESTRING(0 0,1 1,2 2)").as_deref(), Some("LINESTRING(0 0,2 2)"));
    assert_eq!(hull("MULTIPOINT(1 1,1 1)").as_deref(), Some("POINT(1 1)"));
    assert_eq!(hull("GEOMETRYCOLLECTION EMPTY"), None);
    assert_eq!(to_wkt(&oriented(wkt("POLYGON((0 0,1 1,1 0,0 0))"))), "POLYGON((0 0,1 0,1 1,0 0))");
}

#[test]
fn rectangles_touch_at_their_edges() {
    let of = |text: &str| Mbr::of(&wkt(text)).expect("it has points");
    let (square, edge, corner) = (of("LINESTRING(0 0,2 2)"), of("LINESTRING(2 0,2 2)"), of("POINT(2 2)"));
    assert!(square.covers(edge) && square.touches(edge) && !square.contains(edge));
    assert!(square.touches(corner) && corner.contains(corner) && !corner.touches(corner));
    assert!(of("LINESTRING(-1 1,3 1)").overlaps(of("LINESTRING(1 -1,1 3)")), "lines that cross");
    assert!(square.overlaps(of("LINESTRING(1 1,3 3)")) && !square.overlaps(of("POINT(1 1)")) && !square.overlaps(square));
    assert_eq!(to_wkt(&square.geometry()), "POLYGON((0 0,2 0,2 2,0 2,0 0))");
    assert_eq!(to_wkt(&edge.geometry()), "LINESTRING(2 0,2 2)");
    assert_eq!(Mbr::of(&wkt("GEOMETRYCOLLECTION EMPTY")), None);
}

/// A line whose farthest point is next to an end each time: as many levels as points.
#[test]
fn lines_are_simplified_without_recursion_and_can_be_ended() {
    let at = |x: f64, y: f64| Coord { x, y };
    let line = [at(0.0, 0.0), at(0.0, 1.0), at(1.0, 1.0), at(1.0, 2.0), at(2.0, 2.0)];
    assert_eq!(simplified(&line, 0.5, &mut patient), Ok(vec![line[0], line[1], line[4]]), "the first of points that are equally far");
    assert_eq!(simplified(&line, 2.0, &mut patient), Ok(vec![line[0], line[4]]));
    assert_eq!(simplified(&[], 1.0, &mut patient), Ok(Vec::new()));
    let zigzag: Vec<Coord> = (0..2000).map(|i| at(f64::from(i), f64::from(i % 2))).collect();
    let mut turns = 0;
    let mut pass = || {
        turns += 1;
        if turns < 100 { Ok(()) } else { Err("killed") }
    };
    assert_eq!(simplified(&zigzag, 0.1, &mut pass), Err("killed"));
    assert_eq!(is_simple(&Geometry::LineString(zigzag.clone()), &mut || Err("killed")), Err("killed"));
    assert_eq!(distance(&Geometry::LineString(zigzag), &wkt("POINT(0 9)"), &mut || Err("killed")), Err("killed"));
}
