//! Why a certificate or its key cannot be used, as sentences for whoever set them.

use std::io::{self, ErrorKind};
use std::path::PathBuf;

use jiff::Timestamp;

/// Why a certificate or its key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("{} cannot be read: {source}{}", path.display(), hint(source))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// There is no certificate in a file.
    #[error("{} holds no certificate; it must be a PEM file that begins with BEGIN CERTIFICATE, the server's own certificate first", .0.display())]
    NoCertificate(PathBuf),
    /// There is no key in a file.
    #[error("{} holds no private key; it must be a PEM file with a key that is not encrypted", .0.display())]
    NoKey(PathBuf),
    /// A file is not what it seems to be.
    #[error("{} is damaged or of a kind that is not supported: {why}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The key belongs to another certificate.
    #[error("the key in {} does not belong to the certificate in {}; use the pair that was made together", key.display(), cert.display())]
    OtherKey {
        /// The certificate's file.
        cert: PathBuf,
        /// The key's file.
        key: PathBuf,
    },
    /// The certificate is not good any more.
    #[error("the certificate in {} ended on {until}; renew it", path.display())]
    Expired {
        /// The certificate's file.
        path: PathBuf,
        /// When it ended.
        until: Timestamp,
    },
    /// The certificate is not good yet.
    #[error("the certificate in {} is not good before {from}; is the clock of this machine right?", path.display())]
    NotYet {
        /// The certificate's file.
        path: PathBuf,
        /// When it begins.
        from: Timestamp,
    },
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::PermissionDenied => {
            "; let the account that this program runs as read the file and enter its folders"
        }
        _ => "",
    }
}
