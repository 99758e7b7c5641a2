//! The console on the listener of the HTTP edge, and what tells this core's home from others.

use std::path::PathBuf;

use wharf_http::Mount;
use wharf_vocab::{Code, Digest, Fault, NodeId};

/// How much of the digest makes an id.
const ID_CHARS: usize = 16;

/// The console's page, for everybody: what it shows it asks of the API.
pub(crate) fn mount(folder: Option<PathBuf>) -> Result<Mount, Fault> {
    let named = folder.clone().unwrap_or_default();
    let router = wharf_console::router(folder).map_err(|error| {
        let folder = named.display();
        let message = format!("The console's folder {folder} cannot be opened: {error}.");
        Fault::new(Code::ConfigInvalid, message)
    })?;
    Ok(Mount { public: true, routes: wharf_console::ROUTES, ..Mount::new("/", router) })
}

/// What tells a home from others: it stays the same as long as the core's name does, and does not
/// tell that name.
pub(crate) fn home_id(node: &NodeId) -> String {
    let digest = Digest::of(&[b"wharf.home.1", node.as_str().as_bytes()]);
    digest.as_str().chars().take(ID_CHARS).collect()
}
