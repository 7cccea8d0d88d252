//! WKB: a byte for the order of bytes, four for the kind, then positions and counts of four bytes. A part has a header of its own, a ring has none.

use super::{Coord, Geometry, MAX_DEPTH, Shape};

/// The value of the server.
pub fn to_stored(srid: u32, geometry: &Geometry) -> Vec<u8> {
    let mut out = srid.to_le_bytes().to_vec();
    push(geometry, &mut out);
    out
}

/// Little-endian WKB.
pub fn to_wkb(geometry: &Geometry) -> Vec<u8> {
    let mut out = Vec::new();
    push(geometry, &mut out);
    out
}

/// A value of the server: its SRID and geometry; none if the bytes are none.
pub fn of_stored(bytes: &[u8]) -> Option<(u32, Geometry)> {
    let (srid, wkb) = bytes.split_first_chunk::<4>()?;
    let mut reader = Reader { bytes: wkb, stored: true };
    let geometry = reader.geometry(0)?;
    reader.bytes.is_empty().then_some((u32::from_le_bytes(*srid), geometry))
}

/// WKB of either order of bytes.
pub fn of_wkb(bytes: &[u8]) -> Option<Geometry> {
    let mut reader = Reader { bytes, stored: false };
    let geometry = reader.geometry(0)?;
    reader.bytes.is_empty().then_some(geometry)
}

struct Reader<'a> {
    bytes: &'a [u8],
    /// Little-endian throughout, and rings may be open.
    stored: bool,
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.bytes.split_first_chunk::<N>()?;
        self.bytes = rest;
        Some(*taken)
    }

    fn u32(&mut self, little: bool) -> Option<u32> {
        let bytes = self.take::<4>()?;
        Some(if little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    }

    /// A count of what takes at least `width` bytes each, so that no more is set aside than there are bytes.
    fn count(&mut self, little: bool, width: usize) -> Option<usize> {
        let count = self.u32(little)? as usize;
        (count <= self.bytes.len() / width).then_some(count)
    }

    fn f64(&mut self, little: bool) -> Option<f64> {
        let bytes = self.take::<8>()?;
        Some(if little { f64::from_le_bytes(bytes) } else { f64::from_be_bytes(bytes) })
    }

    fn coord(&mut self, little: bool) -> Option<Coord> {
        Some(Coord { x: self.f64(little)?, y: self.f64(little)? })
    }

    fn coords(&mut self, little: bool, least: usize) -> Option<Vec<Coord>> {
        let count = self.count(little, 16)?;
        if count < least {
            return None;
        }
        (0..count).map(|_| self.coord(little)).collect()
    }

    fn rings(&mut self, little: bool) -> Option<Vec<Vec<Coord>>> {
        let count = self.count(little, 4)?;
        if count == 0 {
            return None;
        }
        (0..count).map(|_| self.ring(little)).collect()
    }

    fn ring(&mut self, little: bool) -> Option<Vec<Coord>> {
        let ring = self.coords(little, 4)?;
        // MySQL stores bytes with open rings, and makes none itself.
        (self.stored || ring.first() == ring.last()).then_some(ring)
    }

    /// The order of bytes and the kind.
    fn header(&mut self) -> Option<(bool, Shape)> {
        let little = match self.take::<1>()? {
            [0] if !self.stored => false,
            [1] => true,
            _ => return None,
        };
        Some((little, Shape::of_code(self.u32(little)?)?))
    }

    fn part<T>(&mut self, shape: Shape, body: impl FnOnce(&mut Self, bool) -> Option<T>) -> Option<T> {
        let (little, found) = self.header()?;
        if found != shape {
            return None;
        }
        body(self, little)
    }

    fn parts<T>(&mut self, little: bool, shape: Shape, body: impl Fn(&mut Self, bool) -> Option<T>) -> Option<Vec<T>> {
        let count = self.count(little, 9)?;
        if count == 0 {
            return None;
        }
        (0..count).map(|_| self.part(shape, &body)).collect()
    }

    fn geometry(&mut self, depth: usize) -> Option<Geometry> {
        if depth > MAX_DEPTH {
            return None;
        }
        let (little, shape) = self.header()?;
        Some(match shape {
            Shape::Geometry => return None,
            Shape::Point => Geometry::Point(self.coord(little)?),
            Shape::LineString => Geometry::LineString(self.coords(little, 2)?),
            Shape::Polygon => Geometry::Polygon(self.rings(little)?),
            Shape::MultiPoint => Geometry::MultiPoint(self.parts(little, Shape::Point, |reader, little| reader.coord(little))?),
            Shape::MultiLineString => Geometry::MultiLineString(self.parts(little, Shape::LineString, |reader, little| reader.coords(little, 2))?),
            Shape::MultiPolygon => Geometry::MultiPolygon(self.parts(little, Shape::Polygon, |reader, little| reader.rings(little))?),
            Shape::Collection => {
                let count = self.count(little, 9)?;
                Geometry::Collection((0..count).map(|_| self.geometry(depth + 1)).collect::<Option<_>>()?)
            }
        })
    }
}

fn push(geometry: &Geometry, out: &mut Vec<u8>) {
    push_header(geometry.shape(), out);
    match geometry {
        Geometry::Point(at) => push_coord(*at, out),
        Geometry::LineString(points) => push_coords(points, out),
        Geometry::Polygon(rings) => push_rings(rings, out),
        Geometry::MultiPoint(points) => {
            push_count(points.len(), out);
            for point in points {
                push_header(Shape::Point, out);
                push_coord(*point, out);
            }
        }
        Geometry::MultiLineString(lines) => {
            push_count(lines.len(), out);
            for line in lines {
                push_header(Shape::LineString, out);
                push_coords(line, out);
            }
        }
        Geometry::MultiPolygon(polygons) => {
            push_count(polygons.len(), out);
            for polygon in polygons {
                push_header(Shape::Polygon, out);
                push_rings(polygon, out);
            }
        }
        Geometry::Collection(parts) => {
            push_count(parts.len(), out);
            parts.iter().for_each(|part| push(part, out));
        }
    }
}

fn push_header(shape: Shape, out: &mut Vec<u8>) {
    out.push(1);
    out.extend_from_slice(&u32::from(shape.code()).to_le_bytes());
}

fn push_count(count: usize, out: &mut Vec<u8>) {
    // Each takes bytes of a value, which has less than 2^32 of them.
    out.extend_from_slice(&(count as u32).to_le_bytes());
}

fn push_coord(at: Coord, out: &mut Vec<u8>) {
    out.extend_from_slice(&at.x.to_le_bytes());
    out.extend_from_slice(&at.y.to_le_bytes());
}

fn push_coords(points: &[Coord], out: &mut Vec<u8>) {
    push_count(points.len(), out);
    points.iter().for_each(|at| push_coord(*at, out));
}

fn push_rings(rings: &[Vec<Coord>], out: &mut Vec<u8>) {
    push_count(rings.len(), out);
    rings.iter().for_each(|ring| push_coords(ring, out));
}
