//! Geometries: the model, MySQL's stored form, WKB, WKT, GeoJSON, geohashes, spatial reference systems, and what needs no more than arithmetic.
//!
//! A value of the server is bytes: the SRID in four bytes, little-endian, then WKB, little-endian. Coordinates are always x, y; of a geographic system x is the
//! longitude and y the latitude, whatever order its texts have.

mod distance;
mod geohash;
mod geojson;
mod mbr;
mod measure;
mod shape;
pub mod srs;
mod wkb;
mod wkt;

use crate::errors::{self, MySqlError};
use crate::{Value, cast};

pub use distance::{distance, simplified};
pub use geohash::{geohash, of_geohash};
pub use geojson::{GeoJsonError, of_geojson, to_geojson};
pub use mbr::Mbr;
pub use measure::{area, centroid, geographic_distance, length, sphere_distance};
pub use shape::{convex_hull, is_closed, is_simple, oriented};
pub use wkb::{of_stored, of_wkb, to_stored, to_wkb};
pub use wkt::{of_wkt, to_wkt};

/// Nesting of collections that is read.
const MAX_DEPTH: usize = 100;

/// The kinds of geometries, in the order of their numbers in WKB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Shape {
    /// Of a column: any of them.
    Geometry = 0,
    Point = 1,
    LineString = 2,
    Polygon = 3,
    MultiPoint = 4,
    MultiLineString = 5,
    MultiPolygon = 6,
    Collection = 7,
}

impl Shape {
    pub const ALL: [Shape; 8] = [
        Shape::Geometry,
        Shape::Point,
        Shape::LineString,
        Shape::Polygon,
        Shape::MultiPoint,
        Shape::MultiLineString,
        Shape::MultiPolygon,
        Shape::Collection,
    ];

    /// The number in WKB; 0 is any geometry.
    pub fn code(self) -> u8 {
        self as u8
    }

    pub fn of_code(code: u32) -> Option<Shape> {
        Shape::ALL.get(usize::try_from(code).ok()?).copied()
    }

    /// The name of a column's type.
    pub fn type_name(self) -> &'static str {
        match self {
            Shape::Geometry => "geometry",
            Shape::Point => "point",
            Shape::LineString => "linestring",
            Shape::Polygon => "polygon",
            Shape::MultiPoint => "multipoint",
            Shape::MultiLineString => "multilinestring",
            Shape::MultiPolygon => "multipolygon",
            Shape::Collection => "geomcollection",
        }
    }

    /// The name that ST_GEOMETRYTYPE and messages have.
    pub fn name(self) -> &'static str {
        match self {
            Shape::Geometry => "GEOMETRY",
            Shape::Point => "POINT",
            Shape::LineString => "LINESTRING",
            Shape::Polygon => "POLYGON",
            Shape::MultiPoint => "MULTIPOINT",
            Shape::MultiLineString => "MULTILINESTRING",
            Shape::MultiPolygon => "MULTIPOLYGON",
            Shape::Collection => "GEOMCOLLECTION",
        }
    }

    /// A column of this kind takes geometries of that one: GEOMETRY takes all, a collection those of several parts.
    pub fn admits(self, other: Shape) -> bool {
        self == Shape::Geometry || self == other || self == Shape::Collection && other > Shape::Polygon
    }
}

/// What a column of geometries admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GeometryType {
    pub shape: Shape,
    /// The only SRID; none: any.
    pub srid: Option<u32>,
}

impl GeometryType {
    /// Of any SRID.
    pub fn new(shape: Shape) -> GeometryType {
        GeometryType { shape, srid: None }
    }
}

/// A position. Of a geographic system in degrees, x the longitude.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coord {
    pub x: f64,
    pub y: f64,
}

/// A geometry without its SRID. Rings are closed where MySQL made them; what was stored as bytes may have open ones.
#[derive(Clone, Debug, PartialEq)]
pub enum Geometry {
    Point(Coord),
    LineString(Vec<Coord>),
    /// The outer ring, then holes.
    Polygon(Vec<Vec<Coord>>),
    MultiPoint(Vec<Coord>),
    MultiLineString(Vec<Vec<Coord>>),
    MultiPolygon(Vec<Vec<Vec<Coord>>>),
    Collection(Vec<Geometry>),
}

impl Geometry {
    pub fn shape(&self) -> Shape {
        match self {
            Geometry::Point(_) => Shape::Point,
            Geometry::LineString(_) => Shape::LineString,
            Geometry::Polygon(_) => Shape::Polygon,
            Geometry::MultiPoint(_) => Shape::MultiPoint,
            Geometry::MultiLineString(_) => Shape::MultiLineString,
            Geometry::MultiPolygon(_) => Shape::MultiPolygon,
            Geometry::Collection(_) => Shape::Collection,
        }
    }

    /// It has no point.
    pub fn is_empty(&self) -> bool {
        match self {
            Geometry::Point(_) => false,
            Geometry::LineString(points) | Geometry::MultiPoint(points) => points.is_empty(),
            Geometry::Polygon(rings) | Geometry::MultiLineString(rings) => rings.iter().all(Vec::is_empty),
            Geometry::MultiPolygon(polygons) => polygons.iter().flatten().all(Vec::is_empty),
            Geometry::Collection(parts) => parts.iter().all(Geometry::is_empty),
        }
    }

    /// 0 of points, 1 of lines, 2 of areas, the largest of a collection's; none of one without parts.
    pub fn dimension(&self) -> Option<u8> {
        match self {
            Geometry::Point(_) | Geometry::MultiPoint(_) => Some(0),
            Geometry::LineString(_) | Geometry::MultiLineString(_) => Some(1),
            Geometry::Polygon(_) | Geometry::MultiPolygon(_) => Some(2),
            Geometry::Collection(parts) => parts.iter().filter_map(Geometry::dimension).max(),
        }
    }

    /// Calls `f` with every position, in order; false ends it.
    pub fn all_coords(&self, f: &mut dyn FnMut(Coord) -> bool) -> bool {
        match self {
            Geometry::Point(at) => f(*at),
            Geometry::LineString(points) | Geometry::MultiPoint(points) => points.iter().all(|at| f(*at)),
            Geometry::Polygon(lines) | Geometry::MultiLineString(lines) => lines.iter().flatten().all(|at| f(*at)),
            Geometry::MultiPolygon(polygons) => polygons.iter().flatten().flatten().all(|at| f(*at)),
            Geometry::Collection(parts) => parts.iter().all(|part| part.all_coords(f)),
        }
    }

    /// Changes every position.
    pub fn change_coords(&mut self, f: &mut dyn FnMut(&mut Coord)) {
        match self {
            Geometry::Point(at) => f(at),
            Geometry::LineString(points) | Geometry::MultiPoint(points) => points.iter_mut().for_each(f),
            Geometry::Polygon(lines) | Geometry::MultiLineString(lines) => lines.iter_mut().flatten().for_each(f),
            Geometry::MultiPolygon(polygons) => polygons.iter_mut().flatten().flatten().for_each(f),
            Geometry::Collection(parts) => parts.iter_mut().for_each(|part| part.change_coords(f)),
        }
    }

    /// With x and y exchanged.
    pub fn swapped(mut self) -> Geometry {
        self.change_coords(&mut |at| std::mem::swap(&mut at.x, &mut at.y));
        self
    }

    /// No coordinate is infinite or not a number.
    pub fn is_finite(&self) -> bool {
        self.all_coords(&mut |at| at.x.is_finite() && at.y.is_finite())
    }

    /// The simple geometries that it consists of: collections are taken apart, and what has several parts too.
    pub fn simple_parts(&self) -> Vec<Geometry> {
        match self {
            Geometry::MultiPoint(points) => points.iter().copied().map(Geometry::Point).collect(),
            Geometry::MultiLineString(lines) => lines.iter().cloned().map(Geometry::LineString).collect(),
            Geometry::MultiPolygon(polygons) => polygons.iter().cloned().map(Geometry::Polygon).collect(),
            Geometry::Collection(parts) => parts.iter().flat_map(Geometry::simple_parts).collect(),
            simple => vec![simple.clone()],
        }
    }
}

/// What a column stores: error 1416 for what is no geometry or of another kind, in every mode, 3643 for another SRID.
pub(crate) fn store(value: Value, ty: &GeometryType, column: &str) -> Result<Value, MySqlError> {
    let bytes = match value {
        Value::Bytes(bytes) => bytes,
        other => cast::to_bytes(&other).unwrap_or_default(),
    };
    let Some((srid, _)) = of_stored(&bytes).filter(|(_, geometry)| ty.shape.admits(geometry.shape())) else {
        return Err(errors::cant_create_geometry_object());
    };
    match ty.srid {
        Some(wanted) if wanted != srid => Err(errors::wrong_srid_for_column(column, srid, wanted)),
        _ => Ok(Value::Bytes(bytes)),
    }
}

#[cfg(test)]
mod tests;
