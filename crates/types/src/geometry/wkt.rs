//! WKT, as MySQL reads and prints it.

use super::{Coord, Geometry, MAX_DEPTH};
use crate::double_to_string;

/// What a text says; none where MySQL calls it invalid.
pub fn of_wkt(text: &str) -> Option<Geometry> {
    let mut reader = Reader { rest: text };
    let geometry = reader.geometry(0)?;
    reader.skip_blanks();
    reader.rest.is_empty().then_some(geometry)
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
    }

    fn word(&mut self) -> &'a str {
        self.skip_blanks();
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    /// Takes the character if it comes next.
    fn takes(&mut self, wanted: char) -> bool {
        self.skip_blanks();
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, wanted: char) -> Option<()> {
        self.takes(wanted).then_some(())
    }

    fn number(&mut self) -> Option<f64> {
        self.skip_blanks();
        let bytes = self.rest.as_bytes();
        let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let mut end = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
        let whole = digits(end);
        end += whole;
        let mut fraction = 0;
        if bytes.get(end) == Some(&b'.') {
            fraction = digits(end + 1);
            end += 1 + fraction;
        }
        if whole + fraction == 0 {
            return None;
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            let exponent = digits(end + 1 + sign);
            if exponent > 0 {
                end += 1 + sign + exponent;
            }
        }
        let (number, rest) = self.rest.split_at(end);
        self.rest = rest;
        number.parse::<f64>().ok().filter(|number| number.is_finite())
    }

    fn coord(&mut self) -> Option<Coord> {
        Some(Coord { x: self.number()?, y: self.number()? })
    }

    /// `(item,item…)`.
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        self.expect('(')?;
        let mut items = vec![item(self)?];
        while self.takes(',') {
            items.push(item(self)?);
        }
        self.expect(')')?;
        Some(items)
    }

    fn line(&mut self) -> Option<Vec<Coord>> {
        self.list(Self::coord).filter(|points| points.len() >= 2)
    }

    fn ring(&mut self) -> Option<Vec<Coord>> {
        self.list(Self::coord).filter(|points| points.len() >= 4 && points.first() == points.last())
    }

    fn polygon(&mut self) -> Option<Vec<Vec<Coord>>> {
        self.list(Self::ring)
    }

    /// The points have parentheses of their own, all or none.
    fn points(&mut self) -> Option<Vec<Coord>> {
        let mut inside = Reader { rest: self.rest };
        let parentheses = inside.takes('(') && inside.takes('(');
        self.list(|reader| {
            if !parentheses {
                return reader.coord();
            }
            reader.expect('(')?;
            let at = reader.coord()?;
            reader.expect(')')?;
            Some(at)
        })
    }

    fn parts(&mut self, depth: usize) -> Option<Vec<Geometry>> {
        let mut ahead = Reader { rest: self.rest };
        if ahead.word().eq_ignore_ascii_case("EMPTY") || (ahead.takes('(') && ahead.takes(')')) {
            self.rest = ahead.rest;
            return Some(Vec::new());
        }
        self.list(|reader| reader.geometry(depth + 1))
    }

    fn geometry(&mut self, depth: usize) -> Option<Geometry> {
        if depth > MAX_DEPTH {
            return None;
        }
        Some(match self.word().to_ascii_uppercase().as_str() {
            "POINT" => {
                self.expect('(')?;
                let at = self.coord()?;
                self.expect(')')?;
                Geometry::Point(at)
            }
            "LINESTRING" => Geometry::LineString(self.line()?),
            "POLYGON" => Geometry::Polygon(self.polygon()?),
            "MULTIPOINT" => Geometry::MultiPoint(self.points()?),
            "MULTILINESTRING" => Geometry::MultiLineString(self.list(Self::line)?),
            "MULTIPOLYGON" => Geometry::MultiPolygon(self.list(Self::polygon)?),
            "GEOMETRYCOLLECTION" => Geometry::Collection(self.parts(depth)?),
            _ => return None,
        })
    }
}

/// As ST_ASTEXT prints it.
pub fn to_wkt(geometry: &Geometry) -> String {
    let mut out = String::new();
    push(geometry, &mut out);
    out
}

fn push(geometry: &Geometry, out: &mut String) {
    match geometry {
        Geometry::Point(at) => {
            out.push_str("POINT");
            push_list(&[*at], out, push_coord);
        }
        Geometry::LineString(points) => {
            out.push_str("LINESTRING");
            push_list(points, out, push_coord);
        }
        Geometry::Polygon(rings) => {
            out.push_str("POLYGON");
            push_list(rings, out, |ring, out| push_list(ring, out, push_coord));
        }
        Geometry::MultiPoint(points) => {
            out.push_str("MULTIPOINT");
            push_list(points, out, |at, out| push_list(std::slice::from_ref(at), out, push_coord));
        }
        Geometry::MultiLineString(lines) => {
            out.push_str("MULTILINESTRING");
            push_list(lines, out, |line, out| push_list(line, out, push_coord));
        }
        Geometry::MultiPolygon(polygons) => {
            out.push_str("MULTIPOLYGON");
            push_list(polygons, out, |rings, out| push_list(rings, out, |ring, out| push_list(ring, out, push_coord)));
        }
        Geometry::Collection(parts) if parts.is_empty() => out.push_str("GEOMETRYCOLLECTION EMPTY"),
        Geometry::Collection(parts) => {
            out.push_str("GEOMETRYCOLLECTION");
            push_list(parts, out, push);
        }
    }
}

fn push_list<T>(items: &[T], out: &mut String, push: impl Fn(&T, &mut String)) {
    out.push('(');
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        push(item, out);
    }
    out.push(')');
}

fn push_coord(at: &Coord, out: &mut String) {
    out.push_str(&double_to_string(at.x));
    out.push(' ');
    out.push_str(&double_to_string(at.y));
}
