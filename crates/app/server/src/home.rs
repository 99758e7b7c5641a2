//! The home: the one folder in which a core keeps everything.

use std::io::{self, ErrorKind};
use std::ops::Deref;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use wharf_http::CoreInfo;
use wharf_vocab::{Code, Fault};

use crate::files;

/// The folder in which a core keeps everything. Naming one creates nothing. It is read as clients
/// read it, and written only here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    readable: wharf_client::Home,
}

impl Home {
    /// The home that was named, else the one of `WHARF_HOME`, else `wharf` in the platform's
    /// data directory.
    pub fn resolve(dir: Option<PathBuf>) -> Result<Self, Fault> {
        Ok(Self { readable: wharf_client::Home::resolve(dir)? })
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
        if self.is_half_restored() {
            let message = format!(
                "The home {} was not restored to the end; remove it and restore the backup again.",
                self.path().display()
            );
            return Err(Fault::new(Code::BackupIncomplete, message));
        }
        // Somebody else may have made the home itself and use its folder for more than this.
        files::make_folder(self.path()).map_err(|error| self.unwritable(&error))?;
        for folder in [self.run_folder(), self.secrets_folder()] {
            files::make_private_folder(&folder).map_err(|error| self.unwritable(&error))?;
        }
        Ok(())
    }

    /// Whether it holds half of a backup; then it is not started.
    pub(crate) fn is_half_restored(&self) -> bool {
        self.restoring_file().exists()
    }

    /// Says that the home is not restored to the end.
    pub(crate) fn restoring_file(&self) -> PathBuf {
        self.path().join("restore.incomplete")
    }

    /// A file of the home could not be written.
    pub(crate) fn unwritable(&self, error: &std::io::Error) -> Fault {
        let path = self.path().display();
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
        self.path().join("run")
    }

    pub(crate) fn secrets_folder(&self) -> PathBuf {
        self.path().join("secrets")
    }

    pub(crate) fn objects_folder(&self) -> PathBuf {
        self.path().join("objects")
    }

    pub(crate) fn environments_folder(&self) -> PathBuf {
        self.path().join("envs")
    }

    pub(crate) fn storage_port_file(&self) -> PathBuf {
        self.run_folder().join("storage.port")
    }

    pub(crate) fn storage_key_file(&self) -> PathBuf {
        self.secrets_folder().join("storage.key")
    }

    pub(crate) fn config_file(&self) -> PathBuf {
        self.path().join("wharf.toml")
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

impl Deref for Home {
    type Target = wharf_client::Home;

    fn deref(&self) -> &wharf_client::Home {
        &self.readable
    }
}

pub(crate) fn unreadable(path: &Path, error: &std::io::Error) -> Fault {
    let message = format!("{} cannot be read: {error}.", path.display());
    Fault::new(Code::PermissionDenied, message)
}

// `run/core.json` belongs to the core that wrote it, and another one removes it only when that
// core is gone.

/// Removes what a core left behind that was killed. What a core that is still there says stays:
/// this one may not come up, and then nobody could find the other.
pub(crate) fn clear_announcement(home: &Home) -> io::Result<()> {
    let known = files::read(&home.core_file())?;
    let known = known.and_then(|text| serde_json::from_slice::<CoreInfo>(&text).ok());
    if known.is_some_and(|known| is_there(known.pid)) {
        return Ok(());
    }
    files::remove(&home.core_file())
}

/// Removes what this core said, if it still stands there.
pub(crate) fn withdraw_announcement(home: &Home, own: &CoreInfo) -> io::Result<()> {
    let text = serde_json::to_vec(own).unwrap_or_default();
    match files::read(&home.core_file())? {
        Some(found) if found == text => files::remove(&home.core_file()),
        _ => Ok(()),
    }
}

/// Whether there is another process of this number. One that has it by chance does no harm: what
/// stands there is written over when this core is up.
fn is_there(pid: u32) -> bool {
    if pid == std::process::id() {
        return false;
    }
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| !matches!(test_kill_process(pid), Err(Errno::SRCH)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(pid: u32) -> CoreInfo {
        CoreInfo {
            http: "http://127.0.0.1:1".into(),
            storage: None,
            agents: None,
            pid,
            version: "0".into(),
        }
    }

    fn write(home: &Home, info: &CoreInfo) {
        let text = serde_json::to_vec(info).expect("written");
        files::replace(&home.core_file(), &text).expect("written");
    }

    #[test]
    fn only_what_a_core_left_behind_that_is_gone_is_cleared() {
        let (_dir, home) = Home::in_a_test();
        clear_announcement(&home).expect("nothing is there");
        // The process that runs the tests was started by one that is still there.
        let other = std::os::unix::process::parent_id();
        write(&home, &info(other));
        clear_announcement(&home).expect("looked at");
        assert!(home.core_file().exists(), "another core may stand behind it");
        for gone in [std::process::id(), i32::MAX as u32] {
            write(&home, &info(gone));
            clear_announcement(&home).expect("cleared");
            assert!(!home.core_file().exists());
        }
        files::replace(&home.core_file(), b"{").expect("written");
        clear_announcement(&home).expect("cleared");
        assert!(!home.core_file().exists(), "nobody could read it");
    }

    #[test]
    fn a_core_takes_back_only_its_own_word() {
        let (_dir, home) = Home::in_a_test();
        write(&home, &info(7));
        withdraw_announcement(&home, &info(8)).expect("looked at");
        assert!(home.core_file().exists());
        withdraw_announcement(&home, &info(7)).expect("removed");
        assert!(!home.core_file().exists());
        withdraw_announcement(&home, &info(7)).expect("it is gone already");
    }
}
