//! Reads a home: the folder in which a core keeps everything, and where it says how to reach it.
//!
//! Nothing is created or changed here; the core itself writes these files.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use wharf_vocab::{Code, Fault};
use wharf_wire::rest_v1::CoreInfo;

use crate::trust::{self, Trust};

/// A home on this machine. Naming one creates nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    path: PathBuf,
}

/// Who holds the lock on a home.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// No core does.
    Nobody,
    /// A core does.
    Somebody,
    /// The lock cannot be looked at; in a new home there is none yet.
    Unknown,
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

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the core that uses this home says about itself; none if no core runs. What a core
    /// that was killed has left in the home does not count.
    pub fn core(&self) -> Result<Option<CoreInfo>, Fault> {
        let path = self.core_file();
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(&path, &error)),
        };
        if self.holder() == Holder::Nobody {
            return Ok(None);
        }
        let info = serde_json::from_slice(&text).map_err(|_| {
            let message =
                format!("{} is damaged; stop the core and start it again.", path.display());
            Fault::new(Code::CoreUnreachable, message)
        })?;
        Ok(Some(info))
    }

    /// The owner's token.
    pub fn owner_token(&self) -> Result<String, Fault> {
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

    /// Who holds the lock on this home. Looking changes nothing.
    #[must_use]
    pub fn holder(&self) -> Holder {
        let Ok(file) = File::open(self.lock_file()) else { return Holder::Unknown };
        match file.try_lock_shared() {
            Ok(()) => Holder::Nobody,
            Err(TryLockError::WouldBlock) => Holder::Somebody,
            Err(TryLockError::Error(_)) => Holder::Unknown,
        }
    }

    /// The file in which a core says how to reach it.
    #[must_use]
    pub fn core_file(&self) -> PathBuf {
        self.path.join("run/core.json")
    }

    /// The file with the owner's token.
    #[must_use]
    pub fn owner_token_file(&self) -> PathBuf {
        self.path.join("run/owner.token")
    }

    /// The file with the certificate of the core that uses this home, if it speaks TLS.
    #[must_use]
    pub fn certificate_file(&self) -> PathBuf {
        self.path.join("run/core.pem")
    }

    /// What TLS to the core that uses this home takes: its own certificate and no other.
    pub fn tls_config(&self) -> crate::Result<rustls::ClientConfig> {
        trust::config(&Trust::read(&self.certificate_file())?)
    }

    /// The file that the core which uses this home keeps locked.
    #[must_use]
    pub fn lock_file(&self) -> PathBuf {
        self.path.join("run/lock")
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> Fault {
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
            let message = "HOME is not set, so there is no default home; set WHARF_HOME.";
            Err(Fault::new(Code::ConfigInvalid, message))
        }
    }
}
