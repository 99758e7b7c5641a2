//! Addresses that are good for one thing, one key and some time, and what they are signed with.

use std::fmt;
use std::io;
use std::time::Duration;

use rusty_s3::{Bucket, S3Action as _};
use wharf_ports::Method;

use crate::random_hex;

/// The longest lifetime that S3 lets an address have.
const LIFETIME_S_MAX: u64 = 7 * 24 * 60 * 60;

/// The part of an address that names a version, as every S3 knows it.
pub(crate) const VERSION: &str = "versionId";
/// The part of an address that names who may read by it. Only the embedded endpoint looks at it.
pub(crate) const HOLDER: &str = "x-wharf-holder";

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
        let key_id = format!("WHARF{}", random_hex::<8>()?.to_uppercase());
        Ok(Self { key_id, secret: random_hex::<32>()? })
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("key_id", &self.key_id).finish_non_exhaustive()
    }
}

/// Makes addresses. Only the host is signed with them, so that a plain client may send a media
/// type of its own.
pub(crate) struct Presigner {
    bucket: Bucket,
    credentials: rusty_s3::Credentials,
}

impl Presigner {
    /// Makes addresses in this bucket.
    pub(crate) fn new(bucket: Bucket, credentials: rusty_s3::Credentials) -> Self {
        Self { bucket, credentials }
    }

    /// An address for a key.
    pub(crate) fn presign(&self, method: Method, key: &str, lifetime_s: u64) -> String {
        let lifetime = Duration::from_secs(lifetime_s.clamp(1, LIFETIME_S_MAX));
        let credentials = Some(&self.credentials);
        let url = match method {
            Method::Get => self.bucket.get_object(credentials, key).sign(lifetime),
            Method::Put => self.bucket.put_object(credentials, key).sign(lifetime),
        };
        url.into()
    }

    /// An address to read one version of a key. The holder is whoever it was made for; it is
    /// signed with the rest, so nobody can put another name there.
    pub(crate) fn presign_version(
        &self,
        key: &str,
        version: Option<&str>,
        holder: Option<&str>,
        lifetime_s: u64,
    ) -> String {
        let lifetime = Duration::from_secs(lifetime_s.clamp(1, LIFETIME_S_MAX));
        let mut get = self.bucket.get_object(Some(&self.credentials), key);
        for (name, value) in [(VERSION, version), (HOLDER, holder)] {
            if let Some(value) = value {
                get.query_mut().insert(name, value);
            }
        }
        get.sign(lifetime).into()
    }

    /// Where the addresses lead.
    pub(crate) fn origin(&self) -> String {
        self.bucket.object_url("").origin().ascii_serialization()
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
