//! Areas, lengths, centroids, and distances of two points on the Earth. The formulas, and the order of their terms, are those of Boost.Geometry 1.65, which
//! MySQL 8.0.12 computes with: the last digits agree.

use std::ops::Add;

use super::srs::Geographic;
use super::{Coord, Geometry};

/// The Cartesian area; 0 of points and lines. (`sum` of nothing is -0.)
pub fn area(geometry: &Geometry) -> f64 {
    match geometry {
        Geometry::Polygon(rings) => polygon_area(rings),
        Geometry::MultiPolygon(polygons) => polygons.iter().map(|rings| polygon_area(rings)).fold(0.0, Add::add),
        Geometry::Collection(parts) => parts.iter().map(area).fold(0.0, Add::add),
        _ => 0.0,
    }
}

/// Of the outer ring without those of the holes, whatever direction they have.
fn polygon_area(rings: &[Vec<Coord>]) -> f64 {
    let mut areas = rings.iter().map(|ring| ring_area(ring).abs());
    areas.next().unwrap_or(0.0) - areas.sum::<f64>()
}

fn ring_area(ring: &[Coord]) -> f64 {
    segments(ring).map(|(a, b)| b.x * a.y - a.x * b.y).sum::<f64>() / 2.0
}

fn segments(points: &[Coord]) -> impl Iterator<Item = (Coord, Coord)> {
    points.iter().copied().zip(points.iter().copied().skip(1))
}

/// The length of lines, in the plane or on an ellipsoid; none of what is no line.
pub fn length(geometry: &Geometry, on: Option<&Geographic>) -> Option<f64> {
    let line = |points: &[Coord]| -> f64 {
        segments(points)
            .map(|(a, b)| match on {
                Some(on) => geographic_distance(a, b, on),
                None => cartesian(a, b),
            })
            .fold(0.0, Add::add)
    };
    match geometry {
        Geometry::LineString(points) => Some(line(points)),
        Geometry::MultiLineString(lines) => Some(lines.iter().map(|points| line(points)).fold(0.0, Add::add)),
        _ => None,
    }
}

pub(super) fn cartesian(a: Coord, b: Coord) -> f64 {
    ((a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y)).sqrt()
}

/// The centroid of the parts of the highest dimension; none without parts, or of a part without extent.
pub fn centroid(geometry: &Geometry) -> Option<Coord> {
    let dimension = geometry.dimension()?;
    let parts = geometry.simple_parts();
    let parts = parts.iter().filter(|part| part.dimension() == Some(dimension));
    let at = match dimension {
        0 => {
            let (mut count, mut sum) = (0.0, Coord { x: 0.0, y: 0.0 });
            for part in parts {
                part.all_coords(&mut |at| {
                    count += 1.0;
                    sum = Coord { x: sum.x + at.x, y: sum.y + at.y };
                    true
                });
            }
            Coord { x: sum.x / count, y: sum.y / count }
        }
        1 => {
            let (mut length, mut sum) = (0.0, Coord { x: 0.0, y: 0.0 });
            for part in parts {
                let Geometry::LineString(points) = part else { continue };
                for (a, b) in segments(points) {
                    let distance = cartesian(a, b);
                    length += distance;
                    let half = distance * 0.5;
                    sum = Coord { x: sum.x + half * (a.x + b.x), y: sum.y + half * (a.y + b.y) };
                }
            }
            Coord { x: sum.x / length, y: sum.y / length }
        }
        _ => {
            // Relative to the first point, for digits.
            let mut origin: Option<Coord> = None;
            let (mut area, mut sum) = (0.0, Coord { x: 0.0, y: 0.0 });
            for part in parts {
                let Geometry::Polygon(rings) = part else { continue };
                for (i, ring) in rings.iter().enumerate() {
                    let Some(first) = ring.first() else { continue };
                    let origin = *origin.get_or_insert(*first);
                    // The outer ring counts, holes count against it.
                    let against = (ring_area(ring) < 0.0) != (i > 0);
                    for (a, b) in segments(ring) {
                        let (a, b) = (Coord { x: a.x - origin.x, y: a.y - origin.y }, Coord { x: b.x - origin.x, y: b.y - origin.y });
                        let doubled = a.x * b.y - b.x * a.y;
                        let doubled = if against { -doubled } else { doubled };
                        area += doubled;
                        sum = Coord { x: sum.x + doubled * (a.x + b.x), y: sum.y + doubled * (a.y + b.y) };
                    }
                }
            }
            let (origin, tripled) = (origin?, 3.0 * area);
            Coord { x: sum.x / tripled + origin.x, y: sum.y / tripled + origin.y }
        }
    };
    (at.x.is_finite() && at.y.is_finite()).then_some(at)
}

/// Metres between two points on an ellipsoid, by Andoyer's first-order formula. Degrees.
pub fn geographic_distance(a: Coord, b: Coord, on: &Geographic) -> f64 {
    let radians = |degrees: f64| degrees * on.degree;
    let (lon1, lat1, lon2, lat2) = (radians(a.x), radians(a.y), radians(b.x), radians(b.y));
    let (sin1, sin2) = (lat1.sin(), lat2.sin());
    let cos_d = (sin1 * sin2 + lat1.cos() * lat2.cos() * (lon2 - lon1).cos()).clamp(-1.0, 1.0);
    let d = cos_d.acos();
    let three_sin_d = 3.0 * d.sin();
    let (k, l) = ((sin1 - sin2) * (sin1 - sin2), (sin1 + sin2) * (sin1 + sin2));
    let (one_minus, one_plus) = (1.0 - cos_d, 1.0 + cos_d);
    let h = if one_minus == 0.0 { 0.0 } else { (d + three_sin_d) / one_minus };
    let g = if one_plus == 0.0 { 0.0 } else { (d - three_sin_d) / one_plus };
    let correction = -(1.0 / on.inverse_flattening / 4.0) * (h * k + g * l);
    on.semi_major_axis * (d + correction)
}

/// Distance of two points on a sphere, by haversines. `degree`: a degree in radians.
pub fn sphere_distance(a: Coord, b: Coord, degree: f64, radius: f64) -> f64 {
    let haversine = |angle: f64| (angle / 2.0).sin() * (angle / 2.0).sin();
    let (lon1, lat1, lon2, lat2) = (a.x * degree, a.y * degree, b.x * degree, b.y * degree);
    let h = haversine(lat2 - lat1) + lat1.cos() * lat2.cos() * haversine(lon2 - lon1);
    radius * (2.0 * h.sqrt().asin())
}
