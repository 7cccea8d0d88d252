//! The functions of geometries: from texts and bytes and back ([`construct`]), of one geometry ([`accessor`]), of two ([`relation`]).
//!
//! The model, the formats and the arithmetic are in `highkey_types::geometry`; how geometries lie to each other in the plane is the crate geo's work. Names in
//! messages are those that MySQL 8.0.12 prints. A geographic system is refused (3618) wherever the answer depends on lines between points, but for
//! ST_LENGTH: MySQL computes with geodesics there, and an answer of the plane would be another one.

mod accessor;
mod construct;
mod planar;
mod relation;

use highkey_types::geometry::srs::{self, Geographic, Srs};
use highkey_types::geometry::{self, Coord, Geometry};
use highkey_types::{ColumnType, GeometryType, MySqlError, Shape, TypeKind, Value, Warning, errors};

use super::FuncId;
use super::call::{Result, Types};
use super::string::too_long;
use crate::expr::EvalContext;
use crate::expr::convert::{to_f64, to_i64};
use crate::plan::{Coercibility, Expr, ExprType};

/// The type of `func(args)`. `own`: text of the connection's collation.
pub(super) fn result_type(func: FuncId, args: &[Expr], own: impl Fn(u32) -> ExprType) -> ExprType {
    use FuncId as F;
    let integer = |width: u8| {
        let mut ty = ExprType::bigint(true);
        ty.ty.width = width;
        ty
    };
    let of = |shape: Shape| ExprType::column(ColumnType::new(TypeKind::Geometry(GeometryType::new(shape))), true);
    match func {
        F::StAsText => own(u32::MAX),
        F::StAsBinary => ExprType::new(ColumnType::new(TypeKind::LongBlob)),
        F::StAsGeoJson => ExprType::new(ColumnType::new(TypeKind::Json)).with_coercibility(Coercibility::Implicit),
        F::StGeometryType => own(15),
        F::StGeoHash => own(100),
        F::StX | F::StY | F::StLatitude | F::StLongitude if args.len() == 1 => ExprType::double(true),
        F::StLatFromGeoHash | F::StLongFromGeoHash | F::StLength | F::StArea | F::StDistance | F::StDistanceSphere => ExprType::double(true),
        F::StSrid if args.len() == 1 => integer(10),
        F::StDimension | F::StNumPoints | F::StNumInteriorRings | F::StNumGeometries => integer(10),
        F::StIsValid => integer(1),
        F::StIsEmpty | F::StIsSimple | F::StIsClosed => ExprType::boolean(true),
        F::Point | F::StPointFromGeoHash | F::StCentroid => of(Shape::Point),
        F::StMakeEnvelope => of(Shape::Polygon),
        func if relation::is_predicate(func) => ExprType::boolean(true),
        _ => of(Shape::Geometry),
    }
}

/// Its arguments are geometries, told by their types.
pub(crate) fn wants_geometries(func: FuncId) -> bool {
    use FuncId::*;
    matches!(func, LineString | Polygon | MultiPoint | MultiLineString | MultiPolygon | GeometryCollection)
}

pub(super) fn function(func: FuncId, args: &[Value], types: &Types<'_>, cx: &mut dyn EvalContext) -> Result<Value> {
    debug_assert!(func.is_spatial(), "{} is a function of geometries", func.name());
    let call = Call { func, name: func.name().to_ascii_lowercase(), args };
    if relation::is_predicate(func) || matches!(func, FuncId::StDistance | FuncId::StDistanceSphere | FuncId::StMakeEnvelope) {
        return relation::function(&call, cx);
    }
    let value = match construct::function(&call, types, cx)? {
        Some(value) => value,
        None => accessor::function(&call, cx)?,
    };
    let length = match &value {
        Value::Bytes(bytes) => bytes.len(),
        Value::Text(text) | Value::Json(text) => text.len(),
        _ => 0,
    };
    Ok(if length > cx.max_allowed_packet() { too_long(func, cx) } else { value })
}

/// A call with what its messages need.
struct Call<'a> {
    func: FuncId,
    name: String,
    args: &'a [Value],
}

impl Call<'_> {
    fn invalid(&self) -> MySqlError {
        errors::gis_invalid_data(&self.name)
    }

    fn wrong_arguments(&self) -> MySqlError {
        errors::wrong_arguments(&self.name)
    }

    /// The bytes of a geometry: error 3037 for what is none.
    fn stored(&self, i: usize) -> Result<(u32, Geometry)> {
        let Value::Bytes(bytes) = &self.args[i] else { return Err(self.invalid()) };
        geometry::of_stored(bytes).filter(|(_, geometry)| geometry.is_finite()).ok_or_else(|| self.invalid())
    }

    /// A geometry in a system that is known: error 3548 for another.
    fn geometry(&self, i: usize) -> Result<(&'static Srs, Geometry)> {
        let (srid, geometry) = self.stored(i)?;
        Ok((known(srid)?, geometry))
    }

    /// An argument that is an SRID, of a system that is known.
    fn srid(&self, i: usize, cx: &mut dyn EvalContext) -> Result<&'static Srs> {
        let srid = to_i64(&self.args[i], cx).unwrap_or_default();
        let negative_unsigned = matches!(self.args[i], Value::UInt(_)) && srid < 0;
        match u32::try_from(srid) {
            Ok(srid) if !negative_unsigned => known(srid),
            _ => Err(errors::data_out_of_range("SRID", &self.name)),
        }
    }

    fn integer(&self, i: usize, cx: &mut dyn EvalContext) -> i64 {
        to_i64(&self.args[i], cx).unwrap_or_default()
    }

    fn double(&self, i: usize, cx: &mut dyn EvalContext) -> f64 {
        to_f64(&self.args[i], cx).unwrap_or_default()
    }

    /// Error 3618 for a system whose coordinates are degrees. `rest` is what follows the kind in the message.
    fn only_cartesian(&self, srs: &Srs, of: &Geometry, rest: &str) -> Result<()> {
        match srs.geographic {
            Some(_) => Err(errors::not_implemented_for_geographic_srs(format!("{}({}{rest})", self.name, of.shape().name()))),
            None => Ok(()),
        }
    }
}

fn known(srid: u32) -> Result<&'static Srs> {
    srs::find(srid).ok_or_else(|| errors::srs_not_found(srid))
}

fn stored(srs: &Srs, geometry: &Geometry) -> Value {
    Value::Bytes(geometry::to_stored(srs.id, geometry))
}

fn warn(cx: &mut dyn EvalContext, warning: MySqlError) {
    cx.warn(Warning::warning(warning));
}

/// Where degrees are out of range.
enum Outside {
    Longitude(f64),
    Latitude(f64),
}

fn outside(at: Coord) -> Option<Outside> {
    if !(at.x > -180.0 && at.x <= 180.0) {
        Some(Outside::Longitude(at.x))
    } else if !(-90.0..=90.0).contains(&at.y) {
        Some(Outside::Latitude(at.y))
    } else {
        None
    }
}

/// Errors 3616 and 3617 for what is made of numbers out of range.
fn check_range(geometry: &Geometry, geographic: &Option<Geographic>, function: &str) -> Result<()> {
    match first_outside(geometry, geographic) {
        None => Ok(()),
        Some(Outside::Longitude(degrees)) => Err(errors::longitude_out_of_range(six(degrees), function, six(-180.0), six(180.0))),
        Some(Outside::Latitude(degrees)) => Err(errors::latitude_out_of_range(six(degrees), function, six(-90.0), six(90.0))),
    }
}

fn first_outside(geometry: &Geometry, geographic: &Option<Geographic>) -> Option<Outside> {
    geographic.as_ref()?;
    let mut found = None;
    geometry.all_coords(&mut |at| {
        found = outside(at);
        found.is_none()
    });
    found
}

/// As messages have degrees.
fn six(degrees: f64) -> String {
    format!("{degrees:.6}")
}
