//! What the shape of lines and rings alone tells: closed, simple, which way round, and hulls.

use super::{Coord, Geometry};

/// Lines: they end where they begin, every one. None of what is no line.
pub fn is_closed(geometry: &Geometry) -> Option<bool> {
    let closed = |points: &Vec<Coord>| points.first() == points.last();
    match geometry {
        Geometry::LineString(points) => Some(closed(points)),
        Geometry::MultiLineString(lines) => Some(lines.iter().all(closed)),
        _ => None,
    }
}

/// No point twice, no line that crosses or touches itself but where its ends meet, no lines that meet but at ends of both. `pass` is asked again and again
/// whether to go on.
pub fn is_simple<E>(geometry: &Geometry, pass: &mut dyn FnMut() -> Result<(), E>) -> Result<bool, E> {
    match geometry {
        Geometry::Point(_) | Geometry::Polygon(_) | Geometry::MultiPolygon(_) => {}
        Geometry::MultiPoint(points) => {
            let mut sorted = points.clone();
            sorted.sort_by(order);
            return Ok(sorted.windows(2).all(|pair| pair[0] != pair[1]));
        }
        Geometry::LineString(points) => return is_simple_line(points, pass),
        Geometry::MultiLineString(lines) => {
            for (i, line) in lines.iter().enumerate() {
                if !is_simple_line(line, pass)? {
                    return Ok(false);
                }
                for other in &lines[i + 1..] {
                    if !meet_at_ends(line, other, pass)? {
                        return Ok(false);
                    }
                }
            }
        }
        Geometry::Collection(parts) => {
            for part in parts {
                if !is_simple(part, pass)? {
                    return Ok(false);
                }
            }
        }
    }
    Ok(true)
}

fn order(a: &Coord, b: &Coord) -> std::cmp::Ordering {
    a.x.total_cmp(&b.x).then(a.y.total_cmp(&b.y))
}

fn is_simple_line<E>(points: &[Coord], pass: &mut dyn FnMut() -> Result<(), E>) -> Result<bool, E> {
    if points.windows(2).any(|pair| pair[0] == pair[1]) {
        return Ok(false);
    }
    let closed = points.first() == points.last();
    let segments: Vec<(Coord, Coord)> = points.windows(2).map(|pair| (pair[0], pair[1])).collect();
    let last = segments.len().saturating_sub(1);
    for (i, a) in segments.iter().enumerate() {
        pass()?;
        for (j, b) in segments.iter().enumerate().skip(i + 1) {
            let shared = if j == i + 1 { Some(a.1) } else { None };
            let around = if closed && i == 0 && j == last { Some(a.0) } else { None };
            if !meet_only_at(*a, *b, &[shared, around]) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Whatever the lines share is an end of both, and neither is closed there.
fn meet_at_ends<E>(a: &[Coord], b: &[Coord], pass: &mut dyn FnMut() -> Result<(), E>) -> Result<bool, E> {
    let ends = |points: &[Coord]| match (points.first(), points.last()) {
        (Some(first), Some(last)) if first != last => vec![*first, *last],
        _ => Vec::new(),
    };
    let of_b = ends(b);
    let shared: Vec<Option<Coord>> = ends(a).into_iter().filter(|end| of_b.contains(end)).map(Some).collect();
    for one in a.windows(2) {
        pass()?;
        if !b.windows(2).all(|other| meet_only_at((one[0], one[1]), (other[0], other[1]), &shared)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The segments share no point but these.
fn meet_only_at(one: (Coord, Coord), other: (Coord, Coord), allowed: &[Option<Coord>]) -> bool {
    let is_allowed = |at: Coord| allowed.contains(&Some(at));
    let (abc, abd) = (side(one.0, one.1, other.0), side(one.0, one.1, other.1));
    let (cda, cdb) = (side(other.0, other.1, one.0), side(other.0, other.1, one.1));
    if abc * abd < 0.0 && cda * cdb < 0.0 {
        return false;
    }
    // What is left that they could share is an end of one upon the other, or two of them and all between.
    let touches = [(other.0, one, abc), (other.1, one, abd), (one.0, other, cda), (one.1, other, cdb)];
    let shared: Vec<Coord> = touches.into_iter().filter(|(at, on, side)| *side == 0.0 && in_box(*at, *on)).map(|(at, ..)| at).collect();
    shared.iter().all(|at| is_allowed(*at) && *at == shared[0])
}

fn in_box(at: Coord, (a, b): (Coord, Coord)) -> bool {
    at.x >= a.x.min(b.x) && at.x <= a.x.max(b.x) && at.y >= a.y.min(b.y) && at.y <= a.y.max(b.y)
}

/// Positive where r is left of the way from p to q.
fn side(p: Coord, q: Coord, r: Coord) -> f64 {
    (q.x - p.x) * (r.y - p.y) - (q.y - p.y) * (r.x - p.x)
}

/// With outer rings counterclockwise and holes clockwise, as MySQL writes what it has checked.
pub fn oriented(geometry: Geometry) -> Geometry {
    let polygon = |rings: Vec<Vec<Coord>>| rings.into_iter().enumerate().map(|(i, ring)| turned(ring, i > 0)).collect::<Vec<_>>();
    match geometry {
        Geometry::Polygon(rings) => Geometry::Polygon(polygon(rings)),
        Geometry::MultiPolygon(polygons) => Geometry::MultiPolygon(polygons.into_iter().map(polygon).collect()),
        Geometry::Collection(parts) => Geometry::Collection(parts.into_iter().map(oriented).collect()),
        other => other,
    }
}

fn turned(mut ring: Vec<Coord>, clockwise: bool) -> Vec<Coord> {
    let doubled: f64 = ring.windows(2).map(|pair| pair[0].x * pair[1].y - pair[1].x * pair[0].y).sum();
    if (doubled < 0.0) != clockwise {
        ring.reverse();
    }
    ring
}

/// The convex hull: a ring counterclockwise from its least point, a line if all points are on one, a point if there is one. None without points.
pub fn convex_hull(geometry: &Geometry) -> Option<Geometry> {
    let mut points = Vec::new();
    geometry.all_coords(&mut |at| {
        points.push(at);
        true
    });
    points.sort_by(order);
    points.dedup();
    let (first, last) = (*points.first()?, *points.last()?);
    if points.len() == 1 {
        return Some(Geometry::Point(first));
    }
    let chain = |points: &mut dyn Iterator<Item = Coord>| {
        let mut chain: Vec<Coord> = Vec::new();
        for at in points {
            while let [.., p, q] = chain.as_slice()
                && side(*p, *q, at) <= 0.0
            {
                chain.pop();
            }
            chain.push(at);
        }
        chain
    };
    let mut ring = chain(&mut points.iter().copied());
    let upper = chain(&mut points.iter().rev().copied());
    if ring.len() == 2 && upper.len() == 2 {
        return Some(Geometry::LineString(vec![first, last]));
    }
    ring.extend_from_slice(&upper[1..]);
    Some(Geometry::Polygon(vec![ring]))
}
