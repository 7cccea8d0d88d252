//! Minimum bounding rectangles, and how two of them lie.

use super::{Coord, Geometry};

/// A rectangle; without width and height it is a point, without one of them a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mbr {
    pub min: Coord,
    pub max: Coord,
}

impl Mbr {
    /// None of a geometry without points.
    pub fn of(geometry: &Geometry) -> Option<Mbr> {
        let mut found: Option<Mbr> = None;
        geometry.all_coords(&mut |at| {
            let mbr = found.get_or_insert(Mbr { min: at, max: at });
            mbr.min = Coord { x: mbr.min.x.min(at.x), y: mbr.min.y.min(at.y) };
            mbr.max = Coord { x: mbr.max.x.max(at.x), y: mbr.max.y.max(at.y) };
            true
        });
        found
    }

    /// A point, a line, or a ring that begins at the least corner and goes on along x.
    pub fn geometry(self) -> Geometry {
        let (min, max) = (self.min, self.max);
        match self.dimension() {
            0 => Geometry::Point(min),
            1 => Geometry::LineString(vec![min, max]),
            _ => Geometry::Polygon(vec![vec![min, Coord { x: max.x, y: min.y }, max, Coord { x: min.x, y: max.y }, min]]),
        }
    }

    fn dimension(self) -> u8 {
        u8::from(self.min.x < self.max.x) + u8::from(self.min.y < self.max.y)
    }

    pub fn intersects(self, other: Mbr) -> bool {
        self.min.x <= other.max.x && other.min.x <= self.max.x && self.min.y <= other.max.y && other.min.y <= self.max.y
    }

    pub fn covers(self, other: Mbr) -> bool {
        self.min.x <= other.min.x && other.max.x <= self.max.x && self.min.y <= other.min.y && other.max.y <= self.max.y
    }

    pub fn contains(self, other: Mbr) -> bool {
        self.covers(other) && self.interiors_meet(other)
    }

    pub fn touches(self, other: Mbr) -> bool {
        self.intersects(other) && !self.interiors_meet(other)
    }

    /// Both have points of their own and inner ones that they share; to MySQL their dimensions do not matter.
    pub fn overlaps(self, other: Mbr) -> bool {
        self.interiors_meet(other) && !self.covers(other) && !other.covers(self)
    }

    /// The interior of a line is without its ends, that of a point is the point.
    fn interiors_meet(self, other: Mbr) -> bool {
        interiors_meet((self.min.x, self.max.x), (other.min.x, other.max.x)) && interiors_meet((self.min.y, self.max.y), (other.min.y, other.max.y))
    }
}

fn interiors_meet(a: (f64, f64), b: (f64, f64)) -> bool {
    match (a.0 < a.1, b.0 < b.1) {
        (true, true) => a.0 < b.1 && b.0 < a.1,
        (true, false) => a.0 < b.0 && b.0 < a.1,
        (false, true) => b.0 < a.0 && a.0 < b.1,
        (false, false) => a.0 == b.0,
    }
}
