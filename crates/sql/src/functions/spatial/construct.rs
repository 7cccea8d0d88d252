//! Geometries of texts, WKB, GeoJSON, geohashes and other geometries, and back to texts and bytes.

use highkey_types::geometry::{self, Coord, GeoJsonError, Geometry, srs};
use highkey_types::json::{self, Json};
use highkey_types::{MySqlError, Shape, Str, Value, errors};

use super::{Call, check_range, stored, warn};
use crate::expr::EvalContext;
use crate::expr::convert::{to_f64, to_text};
use crate::functions::FuncId;
use crate::functions::call::{Result, Types};

/// None: the function is no such one.
pub(super) fn function(call: &Call<'_>, types: &Types<'_>, cx: &mut dyn EvalContext) -> Result<Option<Value>> {
    use FuncId as F;
    if let Some((wanted, wkb)) = read_kind(call.func) {
        return read(call, wanted, wkb, cx).map(Some);
    }
    Ok(Some(match call.func {
        F::StAsText | F::StAsBinary => written(call, cx)?,
        F::StGeomFromGeoJson => of_geojson(call, cx)?,
        F::StAsGeoJson => to_geojson(call, types, cx)?,
        F::StGeoHash => geohash(call, types, cx)?,
        F::StLatFromGeoHash => Value::Double(of_geohash(call, types, "ST_LATFROMGEOHASH")?.y),
        F::StLongFromGeoHash => Value::Double(of_geohash(call, types, "ST_LONGFROMGEOHASH")?.x),
        F::StPointFromGeoHash => {
            let at = of_geohash(call, types, "st_pointfromgeohash")?;
            stored(call.srid(1, cx)?, &Geometry::Point(at))
        }
        F::Point => {
            let (Some(x), Some(y)) = (to_f64(&call.args[0], cx), to_f64(&call.args[1], cx)) else { return Ok(Some(Value::Null)) };
            Value::Bytes(geometry::to_stored(0, &Geometry::Point(Coord { x, y })))
        }
        F::LineString | F::Polygon | F::MultiPoint | F::MultiLineString | F::MultiPolygon | F::GeometryCollection => {
            Value::Bytes(geometry::to_stored(0, &composed(call)?))
        }
        _ => return Ok(None),
    }))
}

/// The kind that a function reads, and whether from WKB; none of another function.
fn read_kind(func: FuncId) -> Option<(Shape, bool)> {
    use FuncId as F;
    Some(match func {
        F::StGeomFromText | F::StGeometryFromText => (Shape::Geometry, false),
        F::StPointFromText => (Shape::Point, false),
        F::StLineFromText | F::StLineStringFromText => (Shape::LineString, false),
        F::StPolyFromText | F::StPolygonFromText => (Shape::Polygon, false),
        F::StMPointFromText | F::StMultiPointFromText => (Shape::MultiPoint, false),
        F::StMLineFromText | F::StMultiLineStringFromText => (Shape::MultiLineString, false),
        F::StMPolyFromText | F::StMultiPolygonFromText => (Shape::MultiPolygon, false),
        F::StGeomCollFromText | F::StGeometryCollectionFromText | F::StGeomCollFromTxt => (Shape::Collection, false),
        F::StGeomFromWkb | F::StGeometryFromWkb => (Shape::Geometry, true),
        F::StPointFromWkb => (Shape::Point, true),
        F::StLineFromWkb | F::StLineStringFromWkb => (Shape::LineString, true),
        F::StPolyFromWkb | F::StPolygonFromWkb => (Shape::Polygon, true),
        F::StMPointFromWkb | F::StMultiPointFromWkb => (Shape::MultiPoint, true),
        F::StMLineFromWkb | F::StMultiLineStringFromWkb => (Shape::MultiLineString, true),
        F::StMPolyFromWkb | F::StMultiPolygonFromWkb => (Shape::MultiPolygon, true),
        F::StGeomCollFromWkb | F::StGeometryCollectionFromWkb => (Shape::Collection, true),
        _ => return None,
    })
}

fn read(call: &Call<'_>, wanted: Shape, wkb: bool, cx: &mut dyn EvalContext) -> Result<Value> {
    let srs = match call.args.len() {
        1 => super::known(0)?,
        _ => call.srid(1, cx)?,
    };
    let swaps = latitude_first(call, 2)?;
    let read = match (&call.args[0], wkb) {
        (Value::Bytes(bytes), true) => geometry::of_wkb(bytes),
        (text @ Value::Text(_), true) => to_text(text).and_then(|text| geometry::of_wkb(text.as_bytes())),
        (_, true) => None,
        (value, false) => to_text(value).and_then(|text| geometry::of_wkt(&text)),
    };
    let geometry = read.ok_or_else(|| call.invalid())?;
    if !geometry.is_finite() {
        return Ok(Value::Null);
    }
    if wanted != Shape::Geometry && wanted != geometry.shape() {
        return Err(errors::unexpected_geometry_type(if wkb { "WKB" } else { "WKT" }, geometry.shape().name(), &call.name));
    }
    let geometry = if srs.geographic.is_some() && swaps { geometry.swapped() } else { geometry };
    check_range(&geometry, &srs.geographic, &call.name)?;
    Ok(stored(srs, &geometry))
}

fn written(call: &Call<'_>, cx: &mut dyn EvalContext) -> Result<Value> {
    let (srid, geometry) = match &call.args[0] {
        // Numbers that are none have no text, which is no error.
        Value::Bytes(bytes) => geometry::of_stored(bytes).ok_or_else(|| call.invalid())?,
        _ => return Err(call.invalid()),
    };
    let swaps = latitude_first(call, 1)?;
    if !geometry.is_finite() {
        return Ok(Value::Null);
    }
    let geographic = match srs::find(srid) {
        Some(srs) => srs.geographic.is_some(),
        None => {
            warn(cx, errors::warn_srs_not_found_axis_order(srid));
            false
        }
    };
    let geometry = if geographic && swaps { geometry.swapped() } else { geometry };
    Ok(match call.func {
        FuncId::StAsText => Value::from(geometry::to_wkt(&geometry)),
        _ => Value::Bytes(geometry::to_wkb(&geometry)),
    })
}

/// The option axis-order of the argument `i`, if there is one: whether texts in a geographic system begin with the latitude.
fn latitude_first(call: &Call<'_>, i: usize) -> Result<bool> {
    let Some(options) = call.args.get(i).and_then(to_text) else { return Ok(true) };
    let options = options.trim();
    if options.is_empty() {
        return Ok(true);
    }
    let of = &call.name;
    if let Some(last) = options.chars().next_back().filter(|last| matches!(last, ',' | '=')) {
        return Err(errors::invalid_option_end_character(of, last));
    }
    if let Some(pair) = [",,", "==", ",=", "=,"].into_iter().find(|pair| options.contains(pair)) {
        return Err(errors::invalid_option_characters(of, pair));
    }
    let mut found = None;
    for option in options.split(',') {
        let option = option.trim();
        let Some((key, value)) = option.split_once('=') else { return Err(errors::invalid_option_key_value_pair(option, '=', of)) };
        let (key, value) = (key.trim(), value.trim());
        if !key.eq_ignore_ascii_case("axis-order") {
            return Err(errors::invalid_option_key(key, of));
        }
        if found.is_some() {
            return Err(errors::duplicate_option_key(key, of));
        }
        found = Some(match value.to_ascii_lowercase().as_str() {
            // All systems that are known have the latitude first.
            "lat-long" | "srid-defined" => true,
            "long-lat" => false,
            _ => return Err(errors::invalid_option_value(value, key, of)),
        });
    }
    Ok(found.unwrap_or(true))
}

/// A geometry of the parts that the arguments are.
fn composed(call: &Call<'_>) -> Result<Geometry> {
    use FuncId as F;
    let parts = (0..call.args.len()).map(|i| call.stored(i).map(|(_, part)| part)).collect::<Result<Vec<Geometry>>>()?;
    let wrong = || call.wrong_arguments();
    let point = |part: Geometry| if let Geometry::Point(at) = part { Ok(at) } else { Err(wrong()) };
    let line = |part: Geometry| if let Geometry::LineString(points) = part { Ok(points) } else { Err(wrong()) };
    Ok(match call.func {
        F::LineString => {
            let points = parts.into_iter().map(point).collect::<Result<Vec<_>>>()?;
            if points.len() < 2 {
                return Err(call.invalid());
            }
            Geometry::LineString(points)
        }
        F::Polygon => {
            let rings = parts.into_iter().map(line).collect::<Result<Vec<_>>>()?;
            if rings.iter().any(|ring| ring.len() < 4 || ring.first() != ring.last()) {
                return Err(call.invalid());
            }
            Geometry::Polygon(rings)
        }
        F::MultiPoint => Geometry::MultiPoint(parts.into_iter().map(point).collect::<Result<_>>()?),
        F::MultiLineString => Geometry::MultiLineString(parts.into_iter().map(line).collect::<Result<_>>()?),
        F::MultiPolygon => {
            let polygon = |part: Geometry| if let Geometry::Polygon(rings) = part { Ok(rings) } else { Err(wrong()) };
            Geometry::MultiPolygon(parts.into_iter().map(polygon).collect::<Result<_>>()?)
        }
        _ => Geometry::Collection(parts),
    })
}

fn to_geojson(call: &Call<'_>, types: &Types<'_>, cx: &mut dyn EvalContext) -> Result<Value> {
    let geometry = match &call.args[0] {
        Value::Bytes(bytes) if types.arg(0).ty.is_binary() => geometry::of_stored(bytes),
        _ => return Err(errors::incorrect_type("geometry", &call.name)),
    };
    let (srid, geometry) = geometry.filter(|(_, geometry)| geometry.is_finite()).ok_or_else(|| call.invalid())?;
    let decimals = match call.args.len() {
        1 => None,
        _ => {
            let decimals = call.integer(1, cx);
            Some(u32::try_from(decimals).map_err(|_| errors::wrong_value_for_type("max decimal digits", decimals, &call.name))?)
        }
    };
    let options = if call.args.len() > 2 { call.integer(2, cx) } else { 0 };
    if !(0..=7).contains(&options) {
        return Err(errors::wrong_value_for_type("options", options, &call.name));
    }
    let crs = match options {
        _ if srid == 0 => None,
        long if long & 4 != 0 => Some(format!("urn:ogc:def:crs:EPSG::{srid}")),
        short if short & 2 != 0 => Some(format!("EPSG:{srid}")),
        _ => None,
    };
    let document = geometry::to_geojson(&geometry, decimals, options & 1 != 0, crs);
    Ok(Value::Json(Str::from(json::to_text(&document))))
}

fn of_geojson(call: &Call<'_>, cx: &mut dyn EvalContext) -> Result<Value> {
    let name = &call.name;
    let document = match &call.args[0] {
        Value::Json(text) => Json::of_normal(text),
        Value::Text(text) => json::parse(text).map_err(|reason| crate::functions::invalid_json(reason, 1, name))?,
        _ => return Err(errors::incorrect_type("geojson", name)),
    };
    let dimensions = if call.args.len() > 1 { call.integer(1, cx) } else { 1 };
    if !(1..=4).contains(&dimensions) {
        return Err(errors::wrong_value_for_type("option", dimensions, name));
    }
    let given = if call.args.len() > 2 { Some(call.srid(2, cx)?) } else { None };
    let wrong = |error: GeoJsonError| -> MySqlError {
        match error {
            GeoJsonError::Missing(member) => errors::invalid_geojson_missing_member(name, member),
            GeoJsonError::WrongType(member, wanted) => errors::invalid_geojson_wrong_type(name, member, wanted),
            GeoJsonError::Invalid => errors::invalid_geojson_unspecified(name),
            GeoJsonError::Dimensions(found) => errors::dimension_unsupported(name, found, 2),
        }
    };
    let (geometry, srid) = geometry::of_geojson(&document, dimensions > 1).map_err(wrong)?;
    let Some(geometry) = geometry else { return Ok(Value::Null) };
    let srs = match given {
        Some(srs) => srs,
        None => super::known(srid.unwrap_or(4326))?,
    };
    check_range(&geometry, &srs.geographic, name)?;
    Ok(stored(srs, &geometry))
}

/// Of a point, or of a longitude and a latitude.
fn geohash(call: &Call<'_>, types: &Types<'_>, cx: &mut dyn EvalContext) -> Result<Value> {
    let at = match call.args.len() {
        2 => {
            let point = match &call.args[0] {
                Value::Bytes(bytes) if types.arg(0).ty.is_binary() => geometry::of_stored(bytes),
                _ => None,
            };
            let Some((_, Geometry::Point(at))) = point else { return Err(errors::incorrect_type("point", &call.name)) };
            at
        }
        _ => Coord { x: call.double(0, cx), y: call.double(1, cx) },
    };
    if !(-180.0..=180.0).contains(&at.x) {
        return Err(errors::data_out_of_range("longitude", &call.name));
    }
    if !(-90.0..=90.0).contains(&at.y) {
        return Err(errors::data_out_of_range("latitude", &call.name));
    }
    match call.integer(call.args.len() - 1, cx) {
        length @ 1..=100 => Ok(Value::from(geometry::geohash(at, length as usize))),
        _ => Err(errors::data_out_of_range("max geohash length", &call.name)),
    }
}

fn of_geohash(call: &Call<'_>, types: &Types<'_>, name: &str) -> Result<Coord> {
    if !types.arg(0).ty.is_string() {
        return Err(errors::incorrect_type("geohash", name));
    }
    let text = to_text(&call.args[0]).unwrap_or_default();
    geometry::of_geohash(&text).ok_or_else(|| errors::wrong_value_for_type("geohash", text, name))
}
