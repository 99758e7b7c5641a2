//! Addresses that are good for one thing, one key and some time.

use std::fmt;
use std::time::Duration;

use rusty_s3::{Bucket, S3Action as _};
use wharf_ports::Method;

/// The longest lifetime that S3 lets an address have.
const LIFETIME_S_MAX: u64 = 7 * 24 * 60 * 60;

/// The part of an address that names a version, as every S3 knows it.
pub(crate) const VERSION: &str = "versionId";
/// The part of an address that names who may read by it. Only the embedded endpoint looks at it.
pub(crate) const HOLDER: &str = "x-wharf-holder";

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

impl fmt::Debug for Presigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Presigner").field("origin", &self.origin()).finish_non_exhaustive()
    }
}
