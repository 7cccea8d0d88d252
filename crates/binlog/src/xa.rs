//! Transactions in two phases: their names, and the event that prepares one.
//!
//! In the log such a transaction is `XA START xid` in the place of `BEGIN`, its rows, `XA END xid`, and the event of this module in the place of the
//! XID. `XA COMMIT xid` or `XA ROLLBACK xid`, a query event, is another transaction with a GTID of its own.

use std::fmt;

use crate::event::{EventType, Stamp, close, open};

/// The name of a transaction in two phases.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Xid {
    pub format: i64,
    /// The global transaction's, at most 64 bytes.
    pub gtrid: Vec<u8>,
    /// The branch's, at most 64 bytes.
    pub bqual: Vec<u8>,
}

impl Xid {
    /// Longer parts are refused.
    pub const PART_LEN_MAX: usize = 64;
}

/// As MySQL writes it in statements: `X'67',X'62',1`.
impl fmt::Display for Xid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in [&self.gtrid, &self.bqual] {
            f.write_str("X'")?;
            part.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
            f.write_str("',")?;
        }
        write!(f, "{}", self.format)
    }
}

/// Appends a raw XA_PREPARE_LOG_EVENT: the transaction is prepared, or committed in one phase. The event has 32 bits for the format.
pub fn prepare(stamp: Stamp, xid: &Xid, one_phase: bool, out: &mut Vec<u8>) {
    let start = open(out, stamp, EventType::XA_PREPARE, 0);
    out.push(u8::from(one_phase));
    out.extend_from_slice(&(xid.format as i32).to_le_bytes());
    out.extend_from_slice(&(xid.gtrid.len() as u32).to_le_bytes());
    out.extend_from_slice(&(xid.bqual.len() as u32).to_le_bytes());
    out.extend_from_slice(&xid.gtrid);
    out.extend_from_slice(&xid.bqual);
    close(out, start);
}

/// The body of such an event: the name, and whether it is a commit in one phase. `None`: it is none.
pub fn decode_prepare(body: &[u8]) -> Option<(Xid, bool)> {
    let (head, names) = body.split_at_checked(13)?;
    let number = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("4 bytes"));
    let (gtrid, bqual) = names.split_at_checked(number(5) as usize)?;
    let fits = bqual.len() == number(9) as usize && gtrid.len().max(bqual.len()) <= Xid::PART_LEN_MAX;
    let xid = Xid { format: i64::from(number(1) as i32), gtrid: gtrid.to_vec(), bqual: bqual.to_vec() };
    fits.then_some((xid, head[0] != 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Header;

    /// Bodies that MySQL 8.0.12 wrote.
    #[test]
    fn events_are_mysqls() {
        for (body, xid, one_phase) in [
            ("000700000001000000010000004142", "X'41',X'42',7", false),
            ("01010000000300000000000000726f31", "X'726f31',X'',1", true),
        ] {
            let bytes: Vec<u8> = (0..body.len()).step_by(2).map(|at| u8::from_str_radix(&body[at..at + 2], 16).unwrap()).collect();
            let (found, phase) = decode_prepare(&bytes).unwrap();
            assert_eq!((found.to_string().as_str(), phase), (xid, one_phase));
            let mut raw = Vec::new();
            prepare(Stamp { timestamp: 1, server_id: 2 }, &found, one_phase, &mut raw);
            assert_eq!(raw[Header::LEN..], bytes);
            assert!((0..bytes.len()).all(|len| decode_prepare(&bytes[..len]).is_none()));
        }
    }
}
