//! ST_GEOMETRY_COLUMNS and ST_SPATIAL_REFERENCE_SYSTEMS.

use highkey_types::geometry::srs::{self, Srs};
use highkey_types::{ColumnType, Shape, TypeKind, Value};

use super::rows::{t, u};

/// SRS_ID of a column.
pub(super) fn srid(ty: &ColumnType) -> Option<u32> {
    if let TypeKind::Geometry(ty) = &ty.kind { ty.srid } else { None }
}

/// Of the rows of COLUMNS those of geometries.
pub(super) fn geometry_columns(columns: Vec<Vec<Value>>) -> Vec<Vec<Value>> {
    columns.into_iter().filter_map(geometry_column).collect()
}

fn geometry_column(column: Vec<Value>) -> Option<Vec<Value>> {
    let [catalog, schema, table, name, _, _, _, data_type, .., srid] = column.as_slice() else { return None };
    let is_geometry = data_type.as_str().is_some_and(|name| Shape::ALL.iter().any(|shape| shape.type_name() == name));
    let srs_name = match srid {
        Value::UInt(srid) => u32::try_from(*srid).ok().and_then(srs::find).map_or(Value::Null, |srs| t(srs.name)),
        _ => Value::Null,
    };
    is_geometry.then(|| vec![catalog.clone(), schema.clone(), table.clone(), name.clone(), srs_name, srid.clone(), data_type.clone()])
}

/// The systems that are known, which are few of MySQL's.
pub(super) fn reference_systems() -> Vec<Vec<Value>> {
    srs::KNOWN.iter().map(reference_system).collect()
}

fn reference_system(srs: &Srs) -> Vec<Value> {
    // SRID 0 is nobody's.
    let (organization, id) = if srs.id == 0 { (Value::Null, Value::Null) } else { (t("EPSG"), u(srs.id)) };
    vec![t(srs.name), u(srs.id), organization, id, t(srs.definition), Value::Null]
}
