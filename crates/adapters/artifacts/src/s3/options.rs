//! Which S3 is to be used, and how.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// How a bucket is named in addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Style {
    /// In the path: `https://host/bucket/key`.
    #[default]
    Path,
    /// In the host: `https://bucket.host/key`.
    VirtualHost,
}

/// Which S3 is to be used, and how.
#[derive(Clone)]
pub struct S3Options {
    /// Scheme, host and port of the server, without the bucket.
    pub endpoint: String,
    /// The region that requests are signed for.
    pub region: String,
    /// The bucket, which must be there.
    pub bucket: String,
    /// How the bucket is named in addresses.
    pub style: Style,
    /// The access key.
    pub key_id: String,
    /// Its secret.
    pub secret: String,
    /// The token of temporary credentials.
    pub session_token: Option<String>,
    /// A PEM file of certificates to trust beyond those of the system.
    pub ca_file: Option<PathBuf>,
    /// What presigned addresses use in place of `endpoint`.
    pub public_url: Option<String>,
    /// What all keys begin with, so that one bucket can serve several cores.
    pub prefix: Option<String>,
    /// The largest object that the server copies in one request; larger ones are copied in parts.
    pub copy_bytes_max: u64,
    /// How long to wait for the next byte, and for a connection.
    pub byte_timeout: Duration,
    /// How often a request is made in all before it is given up.
    pub tries: u32,
    /// The first pause before a request is made again; it doubles with each.
    pub pause: Duration,
}

impl S3Options {
    /// The usual options: path style, region `us-east-1`, no prefix.
    #[must_use]
    pub fn new(
        endpoint: impl Into<String>,
        bucket: impl Into<String>,
        key_id: impl Into<String>,
        secret: impl Into<String>,
    ) -> Self {
        Self {
            endpoint: endpoint.into(),
            region: "us-east-1".to_owned(),
            bucket: bucket.into(),
            style: Style::Path,
            key_id: key_id.into(),
            secret: secret.into(),
            session_token: None,
            ca_file: None,
            public_url: None,
            prefix: None,
            copy_bytes_max: 5 * 1024 * 1024 * 1024,
            byte_timeout: Duration::from_secs(30),
            tries: 5,
            pause: Duration::from_millis(200),
        }
    }
}

impl fmt::Debug for S3Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("S3Options")
            .field("endpoint", &self.endpoint)
            .field("region", &self.region)
            .field("bucket", &self.bucket)
            .field("style", &self.style)
            .field("key_id", &self.key_id)
            .field("public_url", &self.public_url)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}
