//! Names that nobody can guess.

use std::io;

/// So many random bytes in hex.
pub(crate) fn hex<const BYTES: usize>() -> io::Result<String> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(|_| io::Error::other("no random numbers"))?;
    Ok(hex::encode(bytes))
}
