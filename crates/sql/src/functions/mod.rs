//! The scalar functions and operators of MySQL: one table that says what each is called, takes, returns and does.
//!
//! One implementation serves both ways to run a statement. See `README.md` of `expr`.

mod table;
mod typing;

pub use table::FuncId;
pub(crate) use typing::{Typing, result_type};
