//! The home: the one folder in which a core keeps everything.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use wharf_http::CoreInfo;
use wharf_vocab::{Code, Fault};

use crate::files;
use crate::lock::{self, Holder};

/// The folder in which a core keeps everything. Naming one creates nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    path: PathBuf,
}

impl Home {
    /// The home that was named, else the one of `WHARF_HOME`, else `wharf` in the platform's
    /// data directory.
    pub fn resolve(dir: Option<PathBuf>) -> Result<Self, Fault> {
        let named = dir.or_else(|| var("WHARF_HOME").map(PathBuf::from));
        let path = match named {
            Some(path) => path,
            None => data_directory()?.join("wharf"),
        };
        let path = std::path::absolute(&path).map_err(|error| {
            let message = format!("The home {} cannot be used: {error}.", path.display());
            Fault::new(Code::ConfigInvalid, message)
        })?;
        Ok(Self { path })
    }

    /// Where the home lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the core that uses this home says about itself, if one does. What a core that was
    /// killed has left behind does not count.
    pub fn read_core(&self) -> Result<Option<CoreInfo>, Fault> {
        let path = self.core_file();
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(&path, &error)),
        };
        if lock::holder(self) == Holder::Nobody {
            return Ok(None);
        }
        let info = serde_json::from_slice(&text).map_err(|_| {
            let message = format!(
                "{} cannot be understood; stop the core and start it again.",
                path.display()
            );
            Fault::new(Code::CoreUnreachable, message)
        })?;
        Ok(Some(info))
    }

    /// The owner's token.
    pub fn read_owner_token(&self) -> Result<String, Fault> {
        let path = self.owner_token_file();
        match fs::read_to_string(&path) {
            Ok(text) => Ok(text.trim().to_owned()),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let message = format!(
                    "There is no owner token in {}; start the core once with: wharf up",
                    self.path.display()
                );
                Err(Fault::new(Code::AuthRequired, message))
            }
            Err(error) => Err(unreadable(&path, &error)),
        }
    }

    /// A home of its own for a test; it is gone with the folder.
    #[cfg(test)]
    pub(crate) fn in_a_test() -> (tempfile::TempDir, Self) {
        let dir = tempfile::tempdir().expect("a folder");
        let home = Self::resolve(Some(dir.path().to_owned())).expect("a home");
        home.make().expect("made");
        (dir, home)
    }

    /// Makes the folders of the home, for their owner's eyes only.
    pub(crate) fn make(&self) -> Result<(), Fault> {
        crate::backup::refuse_half_restored(self)?;
        // Somebody else may have made the home itself and use its folder for more than this.
        files::make_folder(&self.path).map_err(|error| self.unwritable(&error))?;
        for folder in [self.run_folder(), self.secrets_folder()] {
            files::make_folder(&folder)
                .and_then(|()| files::make_private(&folder, 0o700))
                .map_err(|error| self.unwritable(&error))?;
        }
        Ok(())
    }

    /// A file of the home could not be written.
    pub(crate) fn unwritable(&self, error: &std::io::Error) -> Fault {
        let path = self.path.display();
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                let message = format!("The disk that holds the home {path} is full; make room.");
                Fault::new(Code::StoreFull, message)
            }
            _ => {
                let message = format!(
                    "The home {path} cannot be written ({error}); choose another with --home."
                );
                Fault::new(Code::HomeUnwritable, message)
            }
        }
    }

    pub(crate) fn run_folder(&self) -> PathBuf {
        self.path.join("run")
    }

    pub(crate) fn secrets_folder(&self) -> PathBuf {
        self.path.join("secrets")
    }

    pub(crate) fn objects_folder(&self) -> PathBuf {
        self.path.join("objects")
    }

    pub(crate) fn storage_port_file(&self) -> PathBuf {
        self.run_folder().join("storage.port")
    }

    pub(crate) fn storage_key_file(&self) -> PathBuf {
        self.secrets_folder().join("storage.key")
    }

    pub(crate) fn config_file(&self) -> PathBuf {
        self.path.join("wharf.toml")
    }

    pub(crate) fn core_file(&self) -> PathBuf {
        self.run_folder().join("core.json")
    }

    pub(crate) fn lock_file(&self) -> PathBuf {
        self.run_folder().join("lock")
    }

    pub(crate) fn owner_token_file(&self) -> PathBuf {
        self.run_folder().join("owner.token")
    }

    pub(crate) fn node_file(&self) -> PathBuf {
        self.run_folder().join("node.id")
    }

    pub(crate) fn anchors_file(&self) -> PathBuf {
        self.run_folder().join("audit.anchors")
    }

    pub(crate) fn audit_key_file(&self) -> PathBuf {
        self.secrets_folder().join("audit.key")
    }
}

pub(crate) fn unreadable(path: &Path, error: &std::io::Error) -> Fault {
    let message = format!("{} cannot be read: {error}.", path.display());
    Fault::new(Code::PermissionDenied, message)
}

/// A variable of the environment, unless it is empty.
fn var(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

fn data_directory() -> Result<PathBuf, Fault> {
    // The base directory specification wants relative values ignored.
    let given = var("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(path) = given {
        return Ok(path);
    }
    match var("HOME") {
        Some(home) => Ok(PathBuf::from(home).join(".local/share")),
        None => {
            let message = "HOME is not set, so there is no place for a home; set WHARF_HOME.";
            Err(Fault::new(Code::ConfigInvalid, message))
        }
    }
}
