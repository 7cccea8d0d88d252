//! Functions of two geometries: how they lie, and how far apart.

use highkey_types::geometry::srs::Srs;
use highkey_types::geometry::{self, Coord, Geometry, Mbr};
use highkey_types::{Value, errors};

use super::{Call, check_range, planar, stored};
use crate::expr::{EvalContext, Turn};
use crate::functions::FuncId;
use crate::functions::call::Result;

/// The radius of the Earth that ST_DISTANCE_SPHERE takes for coordinates in the plane, in metres.
const RADIUS: f64 = 6_370_986.0;

/// Its answer is true or false.
pub(super) fn is_predicate(func: FuncId) -> bool {
    use FuncId::*;
    of_rectangles(func)
        || matches!(func, StContains | StWithin | StIntersects | StDisjoint | StEquals | StTouches | StCrosses | StOverlaps)
}

fn of_rectangles(func: FuncId) -> bool {
    use FuncId::*;
    matches!(
        func,
        MbrContains | MbrWithin | MbrCovers | MbrCoveredBy | MbrIntersects | MbrDisjoint | MbrEquals | MbrTouches | MbrOverlaps
    )
}

pub(super) fn function(call: &Call<'_>, cx: &mut dyn EvalContext) -> Result<Value> {
    let ((srid, a), (other, b)) = (call.stored(0)?, call.stored(1)?);
    if srid != other {
        return Err(errors::gis_different_srids(&call.name, srid, other));
    }
    let srs = super::known(srid)?;
    match call.func {
        FuncId::StDistance => distance(call, srs, &a, &b, cx),
        FuncId::StDistanceSphere => sphere_distance(call, srs, &a, &b, cx),
        FuncId::StMakeEnvelope => {
            let (Geometry::Point(a), Geometry::Point(b)) = (&a, &b) else { return Err(call.wrong_arguments()) };
            only_cartesian(call, srs, &Geometry::Point(*a), &Geometry::Point(*b))?;
            let both = Geometry::MultiPoint(vec![*a, *b]);
            Ok(Mbr::of(&both).map_or(Value::Null, |mbr| stored(srs, &mbr.geometry())))
        }
        func => {
            // Between points a line is none.
            if !(are_points(&a) && are_points(&b)) {
                only_cartesian(call, srs, &a, &b)?;
            }
            let answer = if of_rectangles(func) { rectangles(func, &a, &b) } else { related(call, &a, &b, cx)? };
            Ok(answer.map_or(Value::Null, Value::bool))
        }
    }
}

/// Error 3618 for a system whose coordinates are degrees.
fn only_cartesian(call: &Call<'_>, srs: &Srs, a: &Geometry, b: &Geometry) -> Result<()> {
    call.only_cartesian(srs, a, &format!(", {}", b.shape().name()))
}

fn are_points(geometry: &Geometry) -> bool {
    matches!(geometry, Geometry::Point(_) | Geometry::MultiPoint(_))
}

/// How the minimum bounding rectangles lie; none without points.
fn rectangles(func: FuncId, a: &Geometry, b: &Geometry) -> Option<bool> {
    use FuncId as F;
    let (a, b) = (Mbr::of(a)?, Mbr::of(b)?);
    Some(match func {
        F::MbrContains => a.contains(b),
        F::MbrWithin => b.contains(a),
        F::MbrCovers => a.covers(b),
        F::MbrCoveredBy => b.covers(a),
        F::MbrIntersects => a.intersects(b),
        F::MbrDisjoint => !a.intersects(b),
        F::MbrEquals => a == b,
        F::MbrTouches => a.touches(b),
        _ => a.overlaps(b),
    })
}

/// How the geometries lie; none without points, and where the question makes no sense for their dimensions.
fn related(call: &Call<'_>, a: &Geometry, b: &Geometry, cx: &mut dyn EvalContext) -> Result<Option<bool>> {
    use FuncId as F;
    let func = call.func;
    if a.is_empty() || b.is_empty() {
        return Ok((func == F::StEquals).then(|| a.is_empty() && b.is_empty()));
    }
    let (Some(dimension_a), Some(dimension_b)) = (a.dimension(), b.dimension()) else { return Ok(None) };
    let makes_sense = match func {
        F::StTouches => dimension_a > 0 || dimension_b > 0,
        F::StCrosses => dimension_a < 2 && dimension_b > 0,
        F::StOverlaps => dimension_a == dimension_b,
        _ => true,
    };
    if !makes_sense {
        return Ok(None);
    }
    planar::check_related(call, a, b, cx)?;
    let matrix = planar::relate(a, b);
    Ok(Some(match func {
        F::StContains => matrix.is_contains(),
        F::StWithin => matrix.is_within(),
        F::StIntersects => matrix.is_intersects(),
        F::StDisjoint => matrix.is_disjoint(),
        F::StEquals => matrix.is_equal_topo(),
        F::StTouches => matrix.is_touches(),
        F::StCrosses => matrix.is_crosses(),
        _ => matrix.is_overlaps(),
    }))
}

fn distance(call: &Call<'_>, srs: &Srs, a: &Geometry, b: &Geometry, cx: &mut dyn EvalContext) -> Result<Value> {
    match (&srs.geographic, a, b) {
        (Some(on), Geometry::Point(a), Geometry::Point(b)) => Ok(Value::Double(geometry::geographic_distance(*a, *b, on))),
        (Some(_), ..) => {
            only_cartesian(call, srs, a, b)?;
            Ok(Value::Null)
        }
        (None, ..) => {
            let mut turn = Turn::begin();
            match geometry::distance(a, b, &mut || turn.pass(cx))? {
                Some(distance) if !distance.is_finite() => Err(call.invalid()),
                distance => Ok(distance.map_or(Value::Null, Value::Double)),
            }
        }
    }
}

/// The least distance of two points or sets of points on a sphere.
fn sphere_distance(call: &Call<'_>, srs: &Srs, a: &Geometry, b: &Geometry, cx: &mut dyn EvalContext) -> Result<Value> {
    let points = |geometry: &Geometry| -> Option<Vec<Coord>> {
        match geometry {
            Geometry::Point(at) => Some(vec![*at]),
            Geometry::MultiPoint(points) => Some(points.clone()),
            _ => None,
        }
    };
    let (Some(left), Some(right)) = (points(a), points(b)) else {
        only_cartesian(call, srs, a, b)?;
        return Err(errors::not_implemented_for_cartesian_srs(format!("{}({}, {})", call.name, a.shape().name(), b.shape().name())));
    };
    let (degree, mean) = match &srs.geographic {
        Some(on) => (on.degree, on.mean_radius()),
        None => (std::f64::consts::PI / 180.0, RADIUS),
    };
    let radius = if call.args.len() > 2 { call.double(2, cx) } else { mean };
    if radius.is_nan() || radius <= 0.0 {
        return Err(errors::nonpositive_radius(&call.name));
    }
    if srs.geographic.is_none() {
        // The numbers are degrees here too.
        let degrees = super::known(4326)?;
        check_range(a, &degrees.geographic, &call.name)?;
        check_range(b, &degrees.geographic, &call.name)?;
    }
    let (mut turn, mut least) = (Turn::begin(), None::<f64>);
    for a in &left {
        turn.pass(cx)?;
        for b in &right {
            let next = geometry::sphere_distance(*a, *b, degree, radius);
            least = Some(least.map_or(next, |least| least.min(next)));
        }
    }
    match least {
        Some(distance) if !distance.is_finite() => Err(errors::std_overflow_error("INFINITY", &call.name)),
        distance => Ok(distance.map_or(Value::Null, Value::Double)),
    }
}
