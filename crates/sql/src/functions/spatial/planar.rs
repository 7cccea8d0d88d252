//! What the crate geo computes in the plane.

use geo::relate::IntersectionMatrix;
use geo::{Relate, Validation};
use highkey_types::geometry::{self, Coord, Geometry, Mbr};
use highkey_types::{MySqlError, errors};

use super::Call;
use crate::expr::{EvalContext, Turn};
use crate::functions::call::Result;

/// Steps that geo may take at most, which nothing interrupts: seconds.
const MOST_STEPS: u64 = 1 << 30;
/// Points whose lines may all meet each other.
const FEW_POINTS: usize = 1024;

fn coord(at: &Coord) -> geo::Coord<f64> {
    geo::Coord { x: at.x, y: at.y }
}

fn line(points: &[Coord]) -> geo::LineString<f64> {
    geo::LineString::new(points.iter().map(coord).collect())
}

fn polygon(rings: &[Vec<Coord>]) -> geo::Polygon<f64> {
    let mut rings = rings.iter().map(|ring| line(ring));
    let outer = rings.next().unwrap_or_else(|| line(&[]));
    geo::Polygon::new(outer, rings.collect())
}

fn to_geo(geometry: &Geometry) -> geo::Geometry<f64> {
    match geometry {
        Geometry::Point(at) => geo::Geometry::Point(geo::Point(coord(at))),
        Geometry::LineString(points) => geo::Geometry::LineString(line(points)),
        Geometry::Polygon(rings) => geo::Geometry::Polygon(polygon(rings)),
        Geometry::MultiPoint(points) => geo::Geometry::MultiPoint(geo::MultiPoint::new(points.iter().map(|at| geo::Point(coord(at))).collect())),
        Geometry::MultiLineString(lines) => geo::Geometry::MultiLineString(geo::MultiLineString::new(lines.iter().map(|points| line(points)).collect())),
        Geometry::MultiPolygon(polygons) => geo::Geometry::MultiPolygon(geo::MultiPolygon::new(polygons.iter().map(|rings| polygon(rings)).collect())),
        Geometry::Collection(parts) => geo::Geometry::GeometryCollection(geo::GeometryCollection(parts.iter().map(to_geo).collect())),
    }
}

/// The DE-9IM matrix of two geometries.
pub(super) fn relate(a: &Geometry, b: &Geometry) -> IntersectionMatrix {
    to_geo(a).relate(&to_geo(b))
}

/// By the rules of OGC: rings do not cross, holes are inside, a line has two points that differ.
pub(super) fn is_valid(geometry: &Geometry) -> bool {
    match geometry {
        Geometry::Point(_) | Geometry::MultiPoint(_) => true,
        Geometry::LineString(points) => points.iter().any(|at| Some(at) != points.first()),
        Geometry::MultiLineString(lines) => lines.iter().all(|points| points.iter().any(|at| Some(at) != points.first())),
        Geometry::Polygon(rings) => polygon(rings).is_valid(),
        Geometry::MultiPolygon(_) => to_geo(geometry).is_valid(),
        Geometry::Collection(parts) => parts.iter().all(is_valid),
    }
}

/// The lines and rings of a geometry, and its points one by one.
fn outlines<'a>(geometry: &'a Geometry, out: &mut Vec<&'a [Coord]>) {
    match geometry {
        Geometry::Point(at) => out.push(std::slice::from_ref(at)),
        Geometry::LineString(points) => out.push(points),
        Geometry::MultiPoint(points) => out.extend(points.chunks(1)),
        Geometry::Polygon(lines) | Geometry::MultiLineString(lines) => out.extend(lines.iter().map(Vec::as_slice)),
        Geometry::MultiPolygon(polygons) => out.extend(polygons.iter().flatten().map(Vec::as_slice)),
        Geometry::Collection(parts) => parts.iter().for_each(|part| outlines(part, out)),
    }
}

fn points(outlines: &[&[Coord]]) -> usize {
    outlines.iter().map(|points| points.len()).sum()
}

fn too_many(call: &Call<'_>) -> MySqlError {
    errors::not_supported_yet(format!("{} of so many points", call.name.to_ascii_uppercase()))
}

/// Error 1235 where lines come so close to so many others that geo's memory of where they meet would have no bound. Neighbours and lines that lie on each
/// other are no such ones.
fn check_crowd(call: &Call<'_>, outlines: &[&[Coord]], cx: &mut dyn EvalContext) -> Result<()> {
    let points = points(outlines);
    if points <= FEW_POINTS {
        return Ok(());
    }
    let mut boxes: Vec<(Coord, Coord)> = Vec::with_capacity(points);
    for pair in outlines.iter().flat_map(|points| points.windows(2)) {
        let (a, b) = (pair[0], pair[1]);
        boxes.push((Coord { x: a.x.min(b.x), y: a.y.min(b.y) }, Coord { x: a.x.max(b.x), y: a.y.max(b.y) }));
    }
    boxes.sort_by(|a, b| a.0.x.total_cmp(&b.0.x));
    let (mut turn, mut meet) = (Turn::begin(), 0);
    for (i, (min, max)) in boxes.iter().enumerate() {
        turn.pass(cx)?;
        let beside = boxes[i + 1..].iter().take_while(|other| other.0.x <= max.x);
        meet += beside.filter(|other| other.0.y <= max.y && min.y <= other.1.y).count();
        if meet > 8 * points + (1 << 20) {
            return Err(too_many(call));
        }
    }
    Ok(())
}

/// Error 1235 for two geometries that geo would compare for too long.
pub(super) fn check_related(call: &Call<'_>, a: &Geometry, b: &Geometry, cx: &mut dyn EvalContext) -> Result<()> {
    if !Mbr::of(a).zip(Mbr::of(b)).is_some_and(|(a, b)| a.intersects(b)) {
        return Ok(());
    }
    let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
    outlines(a, &mut of_a);
    outlines(b, &mut of_b);
    // What meets nothing is looked for among all points of the other.
    let steps = of_a.len() as u64 * points(&of_b) as u64 + of_b.len() as u64 * points(&of_a) as u64;
    if steps > MOST_STEPS {
        return Err(too_many(call));
    }
    of_a.append(&mut of_b);
    check_crowd(call, &of_a, cx)
}

/// Error 1235 for areas that geo would check for too long: every line of a ring with every other one, and rings in pairs.
pub(super) fn check_valid(call: &Call<'_>, geometry: &Geometry, cx: &mut dyn EvalContext) -> Result<()> {
    if geometry.dimension() != Some(2) {
        return Ok(());
    }
    let mut rings = Vec::new();
    outlines(geometry, &mut rings);
    let steps = rings.iter().map(|ring| ring.len() as u64 * ring.len() as u64).sum::<u64>() + rings.len() as u64 * points(&rings) as u64;
    if steps > MOST_STEPS {
        return Err(too_many(call));
    }
    check_crowd(call, &rings, cx)
}

/// Lines without the points that are no farther than `distance` from what is left. Rings are refused: MySQL simplifies them otherwise.
pub(super) fn simplify(geometry: Geometry, distance: f64, pass: &mut dyn FnMut() -> Result<()>) -> Result<Geometry> {
    match geometry {
        Geometry::LineString(points) => Ok(Geometry::LineString(geometry::simplified(&points, distance, pass)?)),
        Geometry::MultiLineString(mut lines) => {
            for line in &mut lines {
                *line = geometry::simplified(line, distance, pass)?;
            }
            Ok(Geometry::MultiLineString(lines))
        }
        Geometry::Polygon(_) | Geometry::MultiPolygon(_) => Err(errors::not_supported_yet("ST_SIMPLIFY of polygons")),
        Geometry::Collection(mut parts) => {
            for part in &mut parts {
                let whole = std::mem::replace(part, Geometry::Collection(Vec::new()));
                *part = simplify(whole, distance, pass)?;
            }
            Ok(Geometry::Collection(parts))
        }
        points => Ok(points),
    }
}
