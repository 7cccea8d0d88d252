//! Spatial reference systems that are known: the Cartesian plane without a unit (SRID 0) and some of EPSG's. MySQL has 5152.

/// A spatial reference system.
#[derive(Debug)]
pub struct Srs {
    pub id: u32,
    pub name: &'static str,
    /// Of a geographic one; none: coordinates are in a plane.
    pub geographic: Option<Geographic>,
    /// As information_schema tells it, in MySQL's WKT.
    pub definition: &'static str,
}

/// An ellipsoid with coordinates in degrees, latitude first in texts.
#[derive(Debug)]
pub struct Geographic {
    /// Metres.
    pub semi_major_axis: f64,
    pub inverse_flattening: f64,
    /// A degree in radians, as the definition has it.
    pub degree: f64,
}

impl Geographic {
    /// Metres: two thirds of the one axis and a third of the other.
    pub fn mean_radius(&self) -> f64 {
        let semi_minor_axis = self.semi_major_axis * (1.0 - 1.0 / self.inverse_flattening);
        (2.0 * self.semi_major_axis + semi_minor_axis) / 3.0
    }
}

const DEGREE: f64 = 0.017453292519943278;

/// By ascending SRID.
pub static KNOWN: &[Srs] = &[
    Srs { id: 0, name: "", geographic: None, definition: "" },
    Srs {
        id: 3857,
        name: "WGS 84 / Pseudo-Mercator",
        geographic: None,
        definition: r#"PROJCS["WGS 84 / Pseudo-Mercator",GEOGCS["WGS 84",DATUM["World Geodetic System 1984",SPHEROID["WGS 84",6378137,298.257223563,AUTHORITY["EPSG","7030"]],AUTHORITY["EPSG","6326"]],PRIMEM["Greenwich",0,AUTHORITY["EPSG","8901"]],UNIT["degree",0.017453292519943278,AUTHORITY["EPSG","9122"]],AXIS["Lat",NORTH],AXIS["Lon",EAST],AUTHORITY["EPSG","4326"]],PROJECTION["Popular Visualisation Pseudo Mercator",AUTHORITY["EPSG","1024"]],PARAMETER["Latitude of natural origin",0,AUTHORITY["EPSG","8801"]],PARAMETER["Longitude of natural origin",0,AUTHORITY["EPSG","8802"]],PARAMETER["False easting",0,AUTHORITY["EPSG","8806"]],PARAMETER["False northing",0,AUTHORITY["EPSG","8807"]],UNIT["metre",1,AUTHORITY["EPSG","9001"]],AXIS["X",EAST],AXIS["Y",NORTH],AUTHORITY["EPSG","3857"]]"#,
    },
    Srs {
        id: 4258,
        name: "ETRS89",
        geographic: Some(Geographic { semi_major_axis: 6378137.0, inverse_flattening: 298.257222101, degree: DEGREE }),
        definition: r#"GEOGCS["ETRS89",DATUM["European Terrestrial Reference System 1989",SPHEROID["GRS 1980",6378137,298.257222101,AUTHORITY["EPSG","7019"]],TOWGS84[0,0,0,0,0,0,0],AUTHORITY["EPSG","6258"]],PRIMEM["Greenwich",0,AUTHORITY["EPSG","8901"]],UNIT["degree",0.017453292519943278,AUTHORITY["EPSG","9122"]],AXIS["Lat",NORTH],AXIS["Lon",EAST],AUTHORITY["EPSG","4258"]]"#,
    },
    Srs {
        id: 4269,
        name: "NAD83",
        geographic: Some(Geographic { semi_major_axis: 6378137.0, inverse_flattening: 298.257222101, degree: DEGREE }),
        definition: r#"GEOGCS["NAD83",DATUM["North American Datum 1983",SPHEROID["GRS 1980",6378137,298.257222101,AUTHORITY["EPSG","7019"]],TOWGS84[1,1,-1,0,0,0,0],AUTHORITY["EPSG","6269"]],PRIMEM["Greenwich",0,AUTHORITY["EPSG","8901"]],UNIT["degree",0.017453292519943278,AUTHORITY["EPSG","9122"]],AXIS["Lat",NORTH],AXIS["Lon",EAST],AUTHORITY["EPSG","4269"]]"#,
    },
    Srs {
        id: 4326,
        name: "WGS 84",
        geographic: Some(Geographic { semi_major_axis: 6378137.0, inverse_flattening: 298.257223563, degree: DEGREE }),
        definition: r#"GEOGCS["WGS 84",DATUM["World Geodetic System 1984",SPHEROID["WGS 84",6378137,298.257223563,AUTHORITY["EPSG","7030"]],AUTHORITY["EPSG","6326"]],PRIMEM["Greenwich",0,AUTHORITY["EPSG","8901"]],UNIT["degree",0.017453292519943278,AUTHORITY["EPSG","9122"]],AXIS["Lat",NORTH],AXIS["Lon",EAST],AUTHORITY["EPSG","4326"]]"#,
    },
];

/// The system of an SRID; none: error 3548.
pub fn find(id: u32) -> Option<&'static Srs> {
    KNOWN.binary_search_by_key(&id, |srs| srs.id).ok().map(|at| &KNOWN[at])
}
