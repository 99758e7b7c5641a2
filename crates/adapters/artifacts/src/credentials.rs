//! What addresses are signed with.

use std::fmt;
use std::io;

use crate::chance;

/// An access key of an S3 endpoint and its secret. Whoever has both can make addresses.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The public half, which every address names.
    pub key_id: String,
    /// The secret half.
    pub secret: String,
}

impl Credentials {
    /// New credentials that nobody can guess.
    pub fn generate() -> io::Result<Self> {
        let key_id = format!("WHARF{}", chance::hex::<8>()?.to_uppercase());
        Ok(Self { key_id, secret: chance::hex::<32>()? })
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("key_id", &self.key_id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_long_new_and_never_shown() {
        let one = Credentials::generate().expect("made");
        let other = Credentials::generate().expect("made");
        assert_eq!(one.secret.len(), 64);
        assert_ne!(one.secret, other.secret);
        assert_ne!(one.key_id, other.key_id);
        assert!(!format!("{one:?}").contains(&one.secret));
    }
}
