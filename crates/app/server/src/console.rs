//! The console on the listener of the HTTP edge, what tells this core's home from others, and what
//! is to be seen of its process and disk.

use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::statvfs;
use wharf_http::{Mount, Vitals};
use wharf_vocab::{Code, Digest, Fault, NodeId};

use crate::Home;
use crate::database::StoreAdmin;

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

/// Looks at the process, the database and the disk.
pub(crate) fn vitals(
    home: Home,
    store: Arc<dyn StoreAdmin>,
) -> Arc<dyn Fn() -> Vitals + Send + Sync> {
    Arc::new(move || {
        let disk = statvfs(home.path()).ok();
        Vitals {
            memory_bytes: memory(),
            database_bytes: store.known_bytes(),
            disk_free_bytes: disk.as_ref().map(|room| room.f_bavail.saturating_mul(room.f_frsize)),
            disk_total_bytes: disk.as_ref().map(|room| room.f_blocks.saturating_mul(room.f_frsize)),
        }
    })
}

/// The memory of this process that is not swapped out, where the system tells.
fn memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages.saturating_mul(rustix::param::page_size() as u64))
}
