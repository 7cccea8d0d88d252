//! GeoJSON (RFC 7946), as ST_ASGEOJSON writes it and ST_GEOMFROMGEOJSON reads it.

use super::{Coord, Geometry, MAX_DEPTH, Mbr};
use crate::json::Json;

/// What is wrong with a document.
#[derive(Debug, PartialEq)]
pub enum GeoJsonError {
    /// Error 3070.
    Missing(&'static str),
    /// Error 3071: a member and the type that it must have.
    WrongType(&'static str, &'static str),
    /// Error 3072.
    Invalid,
    /// Error 3073: positions of so many coordinates.
    Dimensions(usize),
}

type Result<T> = std::result::Result<T, GeoJsonError>;

/// The document of a geometry: with `decimals` digits if they are given, `bbox` and the name of the coordinates' system.
pub fn to_geojson(geometry: &Geometry, decimals: Option<u32>, bbox: bool, crs: Option<String>) -> Json {
    let mut members = Vec::new();
    if let Some(name) = crs {
        let properties = object(vec![("name", Json::String(name))]);
        members.push(("crs", object(vec![("type", Json::String("name".into())), ("properties", properties)])));
    }
    if bbox && let Some(mbr) = Mbr::of(geometry) {
        let corners = [mbr.min.x, mbr.min.y, mbr.max.x, mbr.max.y];
        members.push(("bbox", Json::Array(corners.into_iter().map(|of| Json::Double(rounded(of, decimals))).collect())));
    }
    let name = match geometry {
        Geometry::Point(_) => "Point",
        Geometry::LineString(_) => "LineString",
        Geometry::Polygon(_) => "Polygon",
        Geometry::MultiPoint(_) => "MultiPoint",
        Geometry::MultiLineString(_) => "MultiLineString",
        Geometry::MultiPolygon(_) => "MultiPolygon",
        Geometry::Collection(_) => "GeometryCollection",
    };
    members.push(("type", Json::String(name.into())));
    let position = |at: &Coord| Json::Array(vec![Json::Double(rounded(at.x, decimals)), Json::Double(rounded(at.y, decimals))]);
    let line = |points: &Vec<Coord>| Json::Array(points.iter().map(position).collect());
    let lines = |lines: &Vec<Vec<Coord>>| Json::Array(lines.iter().map(line).collect());
    members.push(match geometry {
        Geometry::Point(at) => ("coordinates", position(at)),
        Geometry::LineString(points) | Geometry::MultiPoint(points) => ("coordinates", line(points)),
        Geometry::Polygon(parts) | Geometry::MultiLineString(parts) => ("coordinates", lines(parts)),
        Geometry::MultiPolygon(polygons) => ("coordinates", Json::Array(polygons.iter().map(lines).collect())),
        Geometry::Collection(parts) => ("geometries", Json::Array(parts.iter().map(|part| to_geojson(part, decimals, bbox, None)).collect())),
    });
    object(members)
}

fn object(members: Vec<(&str, Json)>) -> Json {
    Json::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn rounded(value: f64, decimals: Option<u32>) -> f64 {
    let Some(decimals) = decimals.filter(|decimals| *decimals < 300) else { return value };
    let power = 10f64.powi(decimals as i32);
    let scaled = value * power;
    if scaled.is_finite() { scaled.round_ties_even() / power } else { value }
}

/// The geometry of a document, none if it says null, and the SRID that it names. `more`: positions may have more than two coordinates, of which two are taken.
pub fn of_geojson(document: &Json, more: bool) -> Result<(Option<Geometry>, Option<u32>)> {
    let mut reader = Reader { more, srid: None };
    let geometry = if *document == Json::Null { None } else { reader.object(document, 0)? };
    Ok((geometry, reader.srid))
}

struct Reader {
    more: bool,
    srid: Option<u32>,
}

impl Reader {
    fn object(&mut self, json: &Json, depth: usize) -> Result<Option<Geometry>> {
        let Json::Object(members) = json else { return Err(GeoJsonError::Invalid) };
        if depth > MAX_DEPTH {
            return Err(GeoJsonError::Invalid);
        }
        let member = |name: &'static str| members.get(name).ok_or(GeoJsonError::Missing(name));
        let Json::String(kind) = member("type")? else { return Err(GeoJsonError::WrongType("type", "string")) };
        if let Some(crs) = members.get("crs") {
            self.crs(crs)?;
        }
        let array = |name: &'static str| match member(name)? {
            Json::Array(items) => Ok(items),
            _ => Err(GeoJsonError::WrongType(name, "array")),
        };
        Ok(Some(match kind.as_str() {
            "Feature" => {
                match member("properties")? {
                    Json::Object(_) | Json::Null => {}
                    _ => return Err(GeoJsonError::WrongType("properties", "object")),
                }
                return match member("geometry")? {
                    Json::Null => Ok(None),
                    geometry @ Json::Object(_) => self.object(geometry, depth + 1),
                    _ => Err(GeoJsonError::WrongType("geometry", "object")),
                };
            }
            "FeatureCollection" => Geometry::Collection(self.objects(array("features")?, "features", depth)?),
            "GeometryCollection" => Geometry::Collection(self.objects(array("geometries")?, "geometries", depth)?),
            "Point" => Geometry::Point(self.position(array("coordinates")?)?),
            "LineString" => Geometry::LineString(self.line(array("coordinates")?)?),
            "Polygon" => Geometry::Polygon(self.polygon(array("coordinates")?)?),
            "MultiPoint" => Geometry::MultiPoint(self.several(array("coordinates")?, Self::position)?),
            "MultiLineString" => Geometry::MultiLineString(self.several(array("coordinates")?, Self::line)?),
            "MultiPolygon" => Geometry::MultiPolygon(self.several(array("coordinates")?, Self::polygon)?),
            _ => return Err(GeoJsonError::Invalid),
        }))
    }

    fn objects(&mut self, items: &[Json], name: &'static str, depth: usize) -> Result<Vec<Geometry>> {
        let mut parts = Vec::new();
        for item in items {
            if !matches!(item, Json::Object(_)) {
                return Err(GeoJsonError::WrongType(name, "object array"));
            }
            parts.extend(self.object(item, depth + 1)?);
        }
        Ok(parts)
    }

    fn several<T>(&self, items: &[Json], one: impl Fn(&Self, &[Json]) -> Result<T>) -> Result<Vec<T>> {
        if items.is_empty() {
            return Err(GeoJsonError::Invalid);
        }
        let item = |item: &Json| match item {
            Json::Array(inner) => one(self, inner),
            _ => Err(GeoJsonError::Invalid),
        };
        items.iter().map(item).collect()
    }

    fn position(&self, items: &[Json]) -> Result<Coord> {
        let number = |json: &Json| match json {
            Json::Int(number) => Ok(*number as f64),
            Json::UInt(number) => Ok(*number as f64),
            Json::Double(number) => Ok(*number),
            Json::Decimal(number) => Ok(number.to_f64()),
            _ => Err(GeoJsonError::WrongType("array coordinate", "number")),
        };
        match items {
            [] | [_] => Err(GeoJsonError::Invalid),
            [_, _, _, ..] if !self.more => Err(GeoJsonError::Dimensions(items.len())),
            [x, y, ..] => Ok(Coord { x: number(x)?, y: number(y)? }),
        }
    }

    fn line(&self, items: &[Json]) -> Result<Vec<Coord>> {
        let points = self.several(items, Self::position)?;
        if points.len() < 2 { Err(GeoJsonError::Invalid) } else { Ok(points) }
    }

    fn polygon(&self, items: &[Json]) -> Result<Vec<Vec<Coord>>> {
        self.several(items, |reader, ring| {
            let ring = reader.several(ring, Self::position)?;
            if ring.len() < 4 || ring.first() != ring.last() { Err(GeoJsonError::Invalid) } else { Ok(ring) }
        })
    }

    /// The old member that names the system of coordinates.
    fn crs(&mut self, crs: &Json) -> Result<()> {
        let members = match crs {
            Json::Null => return Ok(()),
            Json::Object(members) => members,
            _ => return Err(GeoJsonError::WrongType("crs", "object")),
        };
        let Json::String(kind) = members.get("type").ok_or(GeoJsonError::Missing("type"))? else { return Err(GeoJsonError::WrongType("type", "string")) };
        let properties = match members.get("properties").ok_or(GeoJsonError::Missing("properties"))? {
            Json::Object(properties) => properties,
            _ => return Err(GeoJsonError::WrongType("properties", "object")),
        };
        if kind != "name" {
            return Err(GeoJsonError::Invalid);
        }
        let Json::String(name) = properties.get("name").ok_or(GeoJsonError::Missing("name"))? else { return Err(GeoJsonError::WrongType("name", "string")) };
        const OF_EPSG: [&str; 2] = ["urn:ogc:def:crs:EPSG::", "EPSG:"];
        let srid = match name.as_str() {
            "urn:ogc:def:crs:OGC:1.3:CRS84" => 4326,
            name => OF_EPSG.iter().find_map(|prefix| name.strip_prefix(prefix)).and_then(|id| id.parse().ok()).ok_or(GeoJsonError::Invalid)?,
        };
        match self.srid {
            Some(other) if other != srid => Err(GeoJsonError::Invalid),
            _ => {
                self.srid = Some(srid);
                Ok(())
            }
        }
    }
}
