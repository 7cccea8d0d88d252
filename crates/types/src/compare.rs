//! MySQL's comparison rules.
use crate::{Collation, Value, cast::CastContext};
use std::cmp::Ordering;
/// `None` if either is NULL.
pub fn compare(_a: &Value, _b: &Value, _collation: &Collation, _cx: &mut CastContext) -> Option<Ordering> { unimplemented!() }
/// `<=>`.
pub fn null_safe_eq(_a: &Value, _b: &Value, _collation: &Collation, _cx: &mut CastContext) -> bool { unimplemented!() }
