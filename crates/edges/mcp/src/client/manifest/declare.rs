//! Servers that are declared instead of added by their folder: the core keeps a folder with the
//! manifest for each.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use wharf_hosting::HostingOptions;
use wharf_ports::providers::DeclaredProvider;
use wharf_vocab::{Code, Fault, ProviderId};

use super::{FILE_NAME, Surroundings, own_program, settle, write};

/// The name of the folder with a folder for each server, beside the one of the host.
const FOLDER: &str = "mcp-servers";

/// Writes the manifest of a server; the folder it lies in. It blocks.
pub(crate) fn declare(
    options: &HostingOptions,
    declared: DeclaredProvider,
) -> Result<PathBuf, Fault> {
    let DeclaredProvider { id, mut manifest, cwd, search } = declared;
    let package = manifest.mcp().and_then(|details| details.package.as_ref());
    if let Some(package) = package.filter(|_| manifest.entrypoint.program.is_empty()) {
        manifest.entrypoint.program = own_program(package);
    }
    let (user_home, hidden) = (options.user_home.clone(), options.hidden.clone());
    settle(&mut manifest, &Surroundings { cwd, search, user_home, hidden })?;
    let text = write(&id, &manifest)?;
    let folder = folder(options, &id);
    keep(&folder, &text).map_err(|error| {
        let message = format!("The manifest cannot be written to {}: {error}.", folder.display());
        Fault::new(Code::CoreInternal, message)
    })?;
    Ok(folder)
}

/// Removes the folder of a server, if it is one of the core's own. It blocks.
pub(crate) fn forget(options: &HostingOptions, id: &ProviderId, of: &str) {
    let folder = folder(options, id);
    if folder != Path::new(of) {
        return;
    }
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(provider = %id, %error, "the folder of a server was not removed");
        }
        _ => {}
    }
}

fn folder(options: &HostingOptions, id: &ProviderId) -> PathBuf {
    options.folder.with_file_name(FOLDER).join(id.as_str())
}

/// Puts a manifest in its folder, whole or not at all.
fn keep(folder: &Path, text: &str) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let new = folder.join(format!(".{FILE_NAME}.new"));
    fs::write(&new, text)?;
    fs::rename(&new, folder.join(FILE_NAME))
}
