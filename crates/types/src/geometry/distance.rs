//! The distance of two geometries in the plane, and lines without what is near them.

use super::measure::cartesian;
use super::{Coord, Geometry};

/// The least distance of their points, 0 where they meet; none if one has no points. `pass` is asked again and again whether to go on.
pub fn distance<E>(a: &Geometry, b: &Geometry, pass: &mut dyn FnMut() -> Result<(), E>) -> Result<Option<f64>, E> {
    let (left, right) = (a.simple_parts(), b.simple_parts());
    let mut least: Option<f64> = None;
    for a in &left {
        for b in &right {
            let next = simple_distance(a, b, pass)?;
            least = Some(least.map_or(next, |least| least.min(next)));
        }
    }
    Ok(least)
}

fn simple_distance<E>(a: &Geometry, b: &Geometry, pass: &mut dyn FnMut() -> Result<(), E>) -> Result<f64, E> {
    if inside(first(a), b) || inside(first(b), a) {
        return Ok(0.0);
    }
    // An outline that does not meet the other's is on one side of it, which the first point has told.
    let others = segments(b);
    let mut least = f64::INFINITY;
    for one in segments(a) {
        pass()?;
        for other in &others {
            least = least.min(segment_distance(one, *other));
        }
    }
    Ok(least)
}

/// A line without the points that are no farther than `distance` from what is left (Douglas and Peucker). Of points that are equally far Boost.Geometry
/// keeps the first.
pub fn simplified<E>(points: &[Coord], distance: f64, pass: &mut dyn FnMut() -> Result<(), E>) -> Result<Vec<Coord>, E> {
    let Some(last) = points.len().checked_sub(1) else { return Ok(Vec::new()) };
    let mut kept = vec![false; points.len()];
    kept[0] = true;
    kept[last] = true;
    // As many levels as there are points may be nested: no recursion.
    let mut open = vec![(0, last)];
    while let Some((from, to)) = open.pop() {
        pass()?;
        let mut farthest = (from, -1.0);
        for (at, point) in points.iter().enumerate().take(to).skip(from + 1) {
            let away = point_distance(*point, (points[from], points[to]));
            if away > farthest.1 {
                farthest = (at, away);
            }
        }
        if farthest.1 > distance {
            kept[farthest.0] = true;
            open.push((from, farthest.0));
            open.push((farthest.0, to));
        }
    }
    Ok(points.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(at, _)| *at).collect())
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
