//! Functions of one geometry.

use highkey_types::geometry::{self, Coord, Geometry, Mbr, srs};
use highkey_types::{MySqlError, Value, errors};

use super::{Call, Outside, check_range, first_outside, planar, six, stored, warn};
use crate::expr::{EvalContext, Turn};
use crate::functions::FuncId;
use crate::functions::call::Result;

pub(super) fn function(call: &Call<'_>, cx: &mut dyn EvalContext) -> Result<Value> {
    use FuncId as F;
    if matches!(call.func, F::StSrid) {
        return srid(call, cx);
    }
    let (srs, geometry) = call.geometry(0)?;
    let count = |count: usize| Value::Int(count as i64);
    let or_null = |value: Option<Value>| value.unwrap_or_default();
    let made = |geometry: Option<Geometry>| geometry.map_or(Value::Null, |geometry| stored(srs, &geometry));
    Ok(match call.func {
        F::StX | F::StY | F::StLatitude | F::StLongitude => return coordinate(call, cx),
        F::StGeometryType => Value::from(geometry.shape().name()),
        F::StDimension => or_null(geometry.dimension().map(|dimension| Value::Int(i64::from(dimension)))),
        F::StEnvelope => {
            call.only_cartesian(srs, &geometry, "")?;
            made(Some(Mbr::of(&geometry).map_or(Geometry::Collection(Vec::new()), Mbr::geometry)))
        }
        F::StIsEmpty => Value::bool(geometry.is_empty()),
        F::StIsSimple => {
            if geometry.dimension() == Some(1) {
                call.only_cartesian(srs, &geometry, "")?;
            }
            let mut turn = Turn::begin();
            Value::bool(geometry::is_simple(&geometry, &mut || turn.pass(cx))?)
        }
        F::StIsValid => {
            if geometry.dimension() == Some(2) {
                call.only_cartesian(srs, &geometry, "")?;
            }
            planar::check_valid(call, &geometry, cx)?;
            Value::bool(planar::is_valid(&geometry))
        }
        F::StValidate => {
            call.only_cartesian(srs, &geometry, "")?;
            planar::check_valid(call, &geometry, cx)?;
            made(planar::is_valid(&geometry).then(|| geometry::oriented(geometry)))
        }
        F::StIsClosed => or_null(geometry::is_closed(&geometry).map(Value::bool)),
        F::StNumPoints => match &geometry {
            Geometry::LineString(points) => count(points.len()),
            _ => Value::Null,
        },
        F::StPointN => {
            let n = call.integer(1, cx);
            made(line(&geometry).and_then(|points| nth(points, n)).map(|at| Geometry::Point(*at)))
        }
        F::StStartPoint => made(line(&geometry).and_then(|points| points.first()).map(|at| Geometry::Point(*at))),
        F::StEndPoint => made(line(&geometry).and_then(|points| points.last()).map(|at| Geometry::Point(*at))),
        F::StLength => match geometry::length(&geometry, srs.geographic.as_ref()) {
            Some(length) if !length.is_finite() => return Err(errors::data_out_of_range("Length", &call.name)),
            length => or_null(length.map(Value::Double)),
        },
        F::StArea => {
            call.only_cartesian(srs, &geometry, "")?;
            match geometry::area(&geometry) {
                area if area.is_finite() => Value::Double(area),
                _ => return Err(call.invalid()),
            }
        }
        F::StCentroid => {
            call.only_cartesian(srs, &geometry, "")?;
            made(geometry::centroid(&geometry).map(Geometry::Point))
        }
        F::StConvexHull => {
            call.only_cartesian(srs, &geometry, "")?;
            made(geometry::convex_hull(&geometry))
        }
        F::StExteriorRing => made(rings(&geometry).and_then(|rings| rings.first()).map(|ring| Geometry::LineString(ring.clone()))),
        F::StInteriorRingN => {
            let n = call.integer(1, cx);
            let holes = rings(&geometry).and_then(|rings| rings.get(1..)).unwrap_or_default();
            made(nth(holes, n).map(|ring| Geometry::LineString(ring.clone())))
        }
        F::StNumInteriorRings => rings(&geometry).map_or(Value::Null, |rings| count(rings.len().saturating_sub(1))),
        F::StNumGeometries => parts(&geometry).map_or(Value::Null, |parts| count(parts.len())),
        F::StGeometryN => {
            let n = call.integer(1, cx);
            made(parts(&geometry).and_then(|parts| nth(&parts, n).cloned()))
        }
        F::StSwapXy => made(Some(geometry.swapped())),
        F::StSimplify => {
            let distance = call.double(1, cx);
            if distance.is_nan() || distance <= 0.0 {
                return Err(call.wrong_arguments());
            }
            call.only_cartesian(srs, &geometry, ", ...")?;
            let mut turn = Turn::begin();
            made(Some(planar::simplify(geometry, distance, &mut || turn.pass(cx))?))
        }
        _ => return Err(call.invalid()),
    })
}

/// The n-th, from 1.
fn nth<T>(items: &[T], n: i64) -> Option<&T> {
    items.get(usize::try_from(n).ok()?.checked_sub(1)?)
}

fn line(geometry: &Geometry) -> Option<&[Coord]> {
    if let Geometry::LineString(points) = geometry { Some(points) } else { None }
}

fn rings(geometry: &Geometry) -> Option<&[Vec<Coord>]> {
    if let Geometry::Polygon(rings) = geometry { Some(rings) } else { None }
}

/// The geometries that one of several parts has.
fn parts(geometry: &Geometry) -> Option<Vec<Geometry>> {
    match geometry {
        Geometry::Point(_) | Geometry::LineString(_) | Geometry::Polygon(_) => None,
        Geometry::Collection(parts) => Some(parts.clone()),
        several => Some(several.simple_parts()),
    }
}

/// ST_SRID(g) and ST_SRID(g, srid).
fn srid(call: &Call<'_>, cx: &mut dyn EvalContext) -> Result<Value> {
    let (srid, geometry) = call.stored(0)?;
    if call.args.len() == 1 {
        if srs::find(srid).is_none() {
            warn(cx, errors::warn_srs_not_found(srid));
        }
        return Ok(Value::Int(i64::from(srid)));
    }
    let srs = call.srid(1, cx)?;
    let wrong = |outside: Outside| -> MySqlError {
        match outside {
            Outside::Longitude(degrees) => errors::geometry_param_longitude_out_of_range(six(degrees), &call.name, six(-180.0), six(180.0)),
            Outside::Latitude(degrees) => errors::geometry_param_latitude_out_of_range(six(degrees), &call.name, six(-90.0), six(90.0)),
        }
    };
    match first_outside(&geometry, &srs.geographic) {
        Some(outside) => Err(wrong(outside)),
        None => Ok(stored(srs, &geometry)),
    }
}

/// A coordinate of a point, or the point with another one. ST_X is the first of the system's axes, which is the latitude of a geographic one.
fn coordinate(call: &Call<'_>, cx: &mut dyn EvalContext) -> Result<Value> {
    use FuncId as F;
    let (srs, geometry) = call.geometry(0)?;
    let Geometry::Point(mut at) = geometry else {
        return Err(errors::unexpected_geometry_type("POINT", geometry.shape().name(), &call.name));
    };
    if matches!(call.func, F::StLatitude | F::StLongitude) && srs.geographic.is_none() {
        return Err(errors::srs_not_geographic(&call.name, srs.id));
    }
    let is_y = match call.func {
        F::StLatitude => true,
        F::StLongitude => false,
        F::StX => srs.geographic.is_some(),
        _ => srs.geographic.is_none(),
    };
    let of = if is_y { &mut at.y } else { &mut at.x };
    if call.args.len() == 1 {
        return Ok(Value::Double(*of));
    }
    *of = call.double(1, cx);
    let changed = Geometry::Point(at);
    check_range(&changed, &srs.geographic, &call.name)?;
    Ok(stored(srs, &changed))
}
