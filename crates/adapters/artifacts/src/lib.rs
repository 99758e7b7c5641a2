//! Where artifacts are kept: in files of the core, served as S3, or in any S3.
//!
//! What there is, in the order in which it is put together:
//!
//! - `Credentials { key_id, secret }`, `Credentials::generate()`: what addresses are signed with.
//! - `FileObjects::open(folder) -> io::Result<Arc<FileObjects>>`: objects in a folder that no
//!   other process may have open. It takes and gives bytes, and has no address.
//! - `ObjectFolder::at(folder)`: the same folder without the store, to read it beside a core or
//!   to fill it before one starts.
//! - `EndpointOptions::new(listen, credentials)` with the public fields `public_url`, `tls`
//!   (`CertFiles { cert, key }`, PEM) and limits; `Endpoint::bind(files, options).await ->
//!   io::Result<Endpoint>`; `endpoint.addr()`; `endpoint.objects() -> Arc<EmbeddedObjects>`, an
//!   [`ObjectStore`](wharf_ports::ObjectStore) whose addresses lead to the endpoint;
//!   `endpoint.set_gate(gate)`, an [`AddressGate`](wharf_ports::AddressGate) that ends
//!   addresses with their attempts; `endpoint.serve() -> RunningEndpoint`; `serving.addr()`; `serving.stop().await`.
//! - `S3Options { endpoint, region, bucket, style, key_id, secret, session_token, ca_file,
//!   public_url, prefix }` with `S3Options::new(endpoint, bucket, key_id, secret)`;
//!   `S3Objects::open(&options) -> Result<Arc<S3Objects>, ObjectError>`, an
//!   [`ObjectStore`](wharf_ports::ObjectStore); `objects.check().await` says whether the bucket
//!   can be reached and used.

mod embedded;
mod endpoint;
mod error;
mod files;
mod presign;
mod rolling;
mod s3;

pub use embedded::EmbeddedObjects;
pub use endpoint::{CertFiles, Endpoint, EndpointOptions, RunningEndpoint};
pub use files::{FileObjects, ObjectFolder, StoredObject};
pub use presign::Credentials;
pub use s3::{S3Objects, S3Options, Style};

/// So many random bytes in hex, which nobody can guess.
fn random_hex<const BYTES: usize>() -> std::io::Result<String> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(|_| std::io::Error::other("no random numbers"))?;
    Ok(hex::encode(bytes))
}
