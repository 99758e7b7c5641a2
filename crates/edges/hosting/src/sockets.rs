//! Where processes find the core: a folder of its own for the sockets of each launch.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tokio::net::UnixListener;
use wharf_vocab::{Code, Digest, Fault, LaunchId};

use crate::options::HostingOptions;
use crate::places::{FOLDER_NAME_CHARS, short};
use crate::{fence, remove};

/// Longest path of a socket that every system takes.
const SOCKET_BYTES_MAX: usize = 103;

/// The folder for the sockets of one launch. It is made when it is first needed, and goes when
/// this is dropped.
#[derive(Debug)]
pub struct Sockets {
    base: PathBuf,
    name: String,
    word: &'static str,
    is_made: bool,
}

impl Sockets {
    pub(crate) fn new(options: &HostingOptions, word: &'static str, launch: &LaunchId) -> Self {
        Self { base: sockets_dir(options), name: short(launch), word, is_made: false }
    }

    /// The folder.
    pub fn folder(&mut self) -> Result<PathBuf, Fault> {
        let folder = self.base.join(&self.name);
        if self.is_made {
            return Ok(folder);
        }
        let mut builder = std::fs::DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(&self.base);
        made.and_then(|()| check_ours(&self.base))
            .and_then(|()| std::fs::DirBuilder::new().mode(0o700).create(&folder))
            .map_err(|error| self.unusable(&error))?;
        self.is_made = true;
        Ok(folder)
    }

    /// What is said when a launch cannot be connected.
    #[must_use]
    pub fn unusable(&self, error: &io::Error) -> Fault {
        let message = format!("The {} cannot be given a way to the core: {error}.", self.word);
        Fault::new(Code::AgentStartFailed, message)
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        if self.is_made {
            // Sockets only; if they are gone already, all the better.
            let _ = remove::entry(&self.base, OsStr::new(&self.name));
        }
    }
}

/// Binds a socket of the owner's alone, in a folder of the owner's alone.
pub fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))?;
    }
    // Only the core that holds the lock on the home comes here, so a socket that is left over
    // belongs to nobody.
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Removes what launches of an earlier core have left that was killed. Only a core that has the
/// home for itself comes here.
pub(crate) fn sweep(options: &HostingOptions) {
    let sockets = sockets_dir(options);
    let is_left = |name: &str| {
        let is_short = name.len() == FOLDER_NAME_CHARS;
        is_short && name.bytes().all(|b| b.is_ascii_hexdigit()) || remove::is_on_its_way(name)
    };
    let Ok(entries) = std::fs::read_dir(&sockets) else { return };
    for entry in entries.flatten() {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && entry.file_name().to_str().is_some_and(is_left) {
            remove::later(&entry.path());
        }
    }
}

/// A folder that others can change is no place for sockets.
fn check_ours(folder: &Path) -> io::Result<()> {
    let found = std::fs::symlink_metadata(folder)?;
    let ours = found.uid() == rustix::process::geteuid().as_raw();
    if found.is_dir() && ours && found.mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(io::Error::other(format!("{} is not a folder of ours alone", folder.display())))
}

/// Where sockets of launches lie: where the edge wants them, or where paths are short. It is the
/// real path, since a launcher follows no link.
fn sockets_dir(options: &HostingOptions) -> PathBuf {
    let wanted = options.sockets_dir.as_deref().map(fence::real);
    let name_bytes = FOLDER_NAME_CHARS + "//s".len();
    wanted.filter(|dir| dir.as_os_str().len() + name_bytes <= SOCKET_BYTES_MAX).unwrap_or_else(
        || {
            let digest = Digest::of(&[options.folder.as_os_str().as_encoded_bytes()]);
            let user = rustix::process::getuid().as_raw();
            let name = format!("wharf-{user}-{}", &digest.as_str()[..16]);
            fence::real(&std::env::temp_dir()).join(name)
        },
    )
}
