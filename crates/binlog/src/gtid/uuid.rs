//! `server_uuid`.

use std::fmt;
use std::str::FromStr;

use super::GtidError;

/// A server's 128-bit identifier, in the byte order of its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    /// Characters of the text form.
    pub const TEXT_LEN: usize = 36;
}

/// Bytes before which a dash stands in the usual form.
const DASHES: [usize; 4] = [4, 6, 8, 10];

impl FromStr for Uuid {
    type Err = GtidError;

    /// As MySQL reads it: 32 hexadecimal digits of any case, with the four dashes or with none, in braces or not (braces only around
    /// dashes).
    fn from_str(text: &str) -> Result<Uuid, GtidError> {
        let (inner, offset) = match text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            Some(inner) if inner.len() == Uuid::TEXT_LEN => (inner, 1),
            _ => (text, 0),
        };
        let wrong = |at: usize| GtidError { reason: "not a UUID", at: at + offset };
        let dashed = match inner.len() {
            Uuid::TEXT_LEN => true,
            32 => false,
            _ => return Err(wrong(0)),
        };
        let (bytes, mut at) = (inner.as_bytes(), 0);
        let mut uuid = [0; 16];
        for (i, byte) in uuid.iter_mut().enumerate() {
            if dashed && DASHES.contains(&i) {
                if bytes[at] != b'-' {
                    return Err(wrong(at));
                }
                at += 1;
            }
            for _ in 0..2 {
                let digit = char::from(bytes[at]).to_digit(16).ok_or_else(|| wrong(at))?;
                *byte = *byte << 4 | digit as u8;
                at += 1;
            }
        }
        Ok(Uuid(uuid))
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            if DASHES.contains(&i) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        let text = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
        let uuid: Uuid = text.parse().unwrap();
        assert_eq!(uuid.to_string(), text);
        assert_eq!(text.to_uppercase().parse(), Ok(uuid));
        assert_eq!(text.replace('-', "").parse(), Ok(uuid));
        assert_eq!(format!("{{{text}}}").parse(), Ok(uuid));
        assert_eq!(uuid.0[..3], [0x3E, 0x11, 0xFA]);
        let (short, mark) = ("3e11fa47-71ca-11e1-9e33-c80aa942956", "3e11fa47x71ca-11e1-9e33-c80aa9429562");
        for wrong in ["", short, mark, "{3e11fa4771ca11e19e33c80aa9429562}"] {
            assert!(wrong.parse::<Uuid>().is_err(), "{wrong}");
        }
        assert_eq!("3e11fa47-71ca-11e1-9e33-c80aa942956g".parse::<Uuid>().unwrap_err().at, 35);
        assert!("3e11fa47-71ca-11e1-9e33-c80aa94295é".parse::<Uuid>().is_err());
    }
}
