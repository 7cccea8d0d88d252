//! The distance of two geometries in the plane.

use super::measure::cartesian;
use super::{Coord, Geometry};

/// The least distance of their points, 0 where they meet; none if one has no points.
pub fn distance(a: &Geometry, b: &Geometry) -> Option<f64> {
    let (left, right) = (a.simple_parts(), b.simple_parts());
    let pairs = left.iter().flat_map(|a| right.iter().map(move |b| simple_distance(a, b)));
    pairs.min_by(f64::total_cmp)
}

fn simple_distance(a: &Geometry, b: &Geometry) -> f64 {
    if inside(first(a), b) || inside(first(b), a) {
        return 0.0;
    }
    // An outline that does not meet the other's is on one side of it, which the first point has told.
    let others = segments(b);
    let pairs = segments(a).into_iter().flat_map(|one| others.iter().map(move |other| segment_distance(one, *other)));
    pairs.min_by(f64::total_cmp).unwrap_or(f64::INFINITY)
}

fn first(geometry: &Geometry) -> Option<Coord> {
    let mut first = None;
    geometry.all_coords(&mut |at| {
        first = Some(at);
        false
    });
    first
}

/// Lines and rings by their segments, a point as one of no length.
fn segments(geometry: &Geometry) -> Vec<(Coord, Coord)> {
    let line = |points: &Vec<Coord>| points.windows(2).map(|pair| (pair[0], pair[1])).collect::<Vec<_>>();
    match geometry {
        Geometry::Point(at) => vec![(*at, *at)],
        Geometry::LineString(points) => line(points),
        Geometry::Polygon(rings) => rings.iter().flat_map(line).collect(),
        _ => Vec::new(),
    }
}

/// The point is within the outer ring and in no hole. On a ring either may be answered: the distance to the ring is 0 then.
fn inside(at: Option<Coord>, geometry: &Geometry) -> bool {
    let (Some(at), Geometry::Polygon(rings)) = (at, geometry) else { return false };
    let crossings = |ring: &Vec<Coord>| {
        let crosses = |pair: &[Coord]| {
            let (a, b) = (pair[0], pair[1]);
            (a.y > at.y) != (b.y > at.y) && at.x < (b.x - a.x) * (at.y - a.y) / (b.y - a.y) + a.x
        };
        ring.windows(2).filter(|pair| crosses(pair)).count()
    };
    rings.iter().map(crossings).sum::<usize>() % 2 == 1
}

fn segment_distance(one: (Coord, Coord), other: (Coord, Coord)) -> f64 {
    if cross(one, other) {
        return 0.0;
    }
    let ends = [point_distance(one.0, other), point_distance(one.1, other), point_distance(other.0, one), point_distance(other.1, one)];
    ends.into_iter().fold(f64::INFINITY, f64::min)
}

/// The inner points of both meet in one.
fn cross((a, b): (Coord, Coord), (c, d): (Coord, Coord)) -> bool {
    let side = |p: Coord, q: Coord, r: Coord| (q.x - p.x) * (r.y - p.y) - (q.y - p.y) * (r.x - p.x);
    let (abc, abd, cda, cdb) = (side(a, b, c), side(a, b, d), side(c, d, a), side(c, d, b));
    ((abc > 0.0 && abd < 0.0) || (abc < 0.0 && abd > 0.0)) && ((cda > 0.0 && cdb < 0.0) || (cda < 0.0 && cdb > 0.0))
}

fn point_distance(at: Coord, (a, b): (Coord, Coord)) -> f64 {
    let (v, w) = (Coord { x: b.x - a.x, y: b.y - a.y }, Coord { x: at.x - a.x, y: at.y - a.y });
    let along = w.x * v.x + w.y * v.y;
    if along <= 0.0 {
        return cartesian(at, a);
    }
    let whole = v.x * v.x + v.y * v.y;
    if whole <= along {
        return cartesian(at, b);
    }
    let share = along / whole;
    cartesian(at, Coord { x: a.x + share * v.x, y: a.y + share * v.y })
}
