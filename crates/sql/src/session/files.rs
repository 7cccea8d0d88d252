//! Files that statements name: where `secure_file_priv` lets them be.

use std::path::{Path, PathBuf};

use highkey_types::MySqlError;

use super::error;
use super::state::SessionState;

/// The path of a file that LOAD DATA, INTO OUTFILE or LOAD_FILE names. Relative paths start in the data directory.
/// NULL in `secure_file_priv` refuses all, a directory all outside of it (1290), an empty value none.
pub fn resolve(state: &SessionState, name: &str) -> Result<PathBuf, MySqlError> {
    let globals = state.instance.globals();
    let refuse = || error::option_prevents("--secure-file-priv");
    if globals.is_null("secure_file_priv") {
        return Err(refuse());
    }
    let datadir = PathBuf::from(globals.text("datadir"));
    let allowed = globals.text("secure_file_priv");
    if allowed.is_empty() {
        return Ok(datadir.join(name));
    }
    let allowed = datadir.join(&allowed);
    let path = allowed.join(name);
    // The directory must exist; the file need not. Links out of the directory do not count as inside.
    let parent = path.parent().and_then(|p| p.canonicalize().ok()).ok_or_else(refuse)?;
    let inside = allowed.canonicalize().is_ok_and(|root| parent.starts_with(root));
    let file = path.file_name().ok_or_else(refuse)?;
    let real = parent.join(file);
    let linked_out = real.canonicalize().is_ok_and(|r| !r.starts_with(Path::new(&allowed).canonicalize().unwrap_or_default()));
    if !inside || linked_out {
        return Err(refuse());
    }
    Ok(real)
}
