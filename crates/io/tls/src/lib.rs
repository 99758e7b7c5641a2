//! TLS for everything in Wharf that listens: a certificate and its key from PEM files, and
//! connections that are encrypted with them.
//!
//! - What cannot be used is refused with the file and the reason, before anybody listens.
//! - Files that change are taken on while connections go on; files that are worse than what is in
//!   use are not ([`Acceptor::follow`]).
//! - A handshake has an end in time ([`Acceptor::accept`]).

mod acceptor;
mod certificate;
mod error;
mod validity;

pub use acceptor::{Acceptor, TlsStream};
pub use certificate::{CertFiles, Certificate};
pub use error::Error;
