//! Geohashes: longitude and latitude halved in turn, five bits a character.

use super::Coord;

const ALPHABET: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
/// Decimal digits that a double always has.
const DIGITS: i32 = 15;

/// The geohash of that many characters of a longitude and a latitude in range.
pub fn geohash(at: Coord, length: usize) -> String {
    let mut ranges = [(-180.0, 180.0), (-90.0, 90.0)];
    let values = [at.x, at.y];
    let mut which = 0;
    let mut character = || {
        let mut bits = 0;
        for _ in 0..5 {
            let (low, high) = &mut ranges[which];
            let middle = (*low + *high) / 2.0;
            let upper = values[which] >= middle;
            bits = bits << 1 | usize::from(upper);
            *(if upper { low } else { high }) = middle;
            which = 1 - which;
        }
        char::from(ALPHABET[bits])
    };
    (0..length).map(|_| character()).collect()
}

/// The middle of what a geohash covers, with as many digits as say it; none if it is none.
pub fn of_geohash(text: &str) -> Option<Coord> {
    if text.is_empty() {
        return None;
    }
    let mut ranges = [(-180.0, 180.0), (-90.0, 90.0)];
    let mut which = 0;
    for byte in text.bytes() {
        let bits = ALPHABET.iter().position(|of| *of == byte.to_ascii_lowercase())?;
        for bit in (0..5).rev() {
            let (low, high) = &mut ranges[which];
            let middle = (*low + *high) / 2.0;
            *(if bits >> bit & 1 == 1 { low } else { high }) = middle;
            which = 1 - which;
        }
    }
    Some(Coord { x: rounded(ranges[0]), y: rounded(ranges[1]) })
}

fn rounded((low, high): (f64, f64)) -> f64 {
    let middle = (low + high) / 2.0;
    let mut width: f64 = high - low;
    if width == 0.0 {
        return middle;
    }
    let mut decimals = 0;
    while width <= 0.1 && decimals <= DIGITS {
        decimals += 1;
        width *= 10.0;
    }
    loop {
        let power = 10f64.powi(decimals);
        // No negative zero.
        let value = (middle * power).round_ties_even() / power + 0.0;
        decimals += 1;
        if (low..=high).contains(&value) {
            return value;
        }
        if decimals > DIGITS {
            return middle;
        }
    }
}
