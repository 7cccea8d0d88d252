//! What the crate geo computes in the plane.

use geo::relate::IntersectionMatrix;
use geo::{Relate, Simplify, Validation};
use highkey_types::geometry::{Coord, Geometry};
use highkey_types::{MySqlError, errors};

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

/// Lines without the points that are no farther than `distance` from what is left (Douglas and Peucker). Rings are refused: MySQL simplifies them otherwise.
pub(super) fn simplify(geometry: Geometry, distance: f64) -> Result<Geometry, MySqlError> {
    let simple = |points: &Vec<Coord>| line(points).simplify(distance).0.into_iter().map(|at| Coord { x: at.x, y: at.y }).collect::<Vec<_>>();
    match geometry {
        Geometry::LineString(points) => Ok(Geometry::LineString(simple(&points))),
        Geometry::MultiLineString(lines) => Ok(Geometry::MultiLineString(lines.iter().map(simple).collect())),
        Geometry::Polygon(_) | Geometry::MultiPolygon(_) => Err(errors::not_supported_yet("ST_SIMPLIFY of polygons")),
        Geometry::Collection(parts) => Ok(Geometry::Collection(parts.into_iter().map(|part| simplify(part, distance)).collect::<Result<_, _>>()?)),
        points => Ok(points),
    }
}
