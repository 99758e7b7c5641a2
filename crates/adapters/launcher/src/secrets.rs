//! Secrets as files, for programs that have no files of their own to see them in.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use wharf_ports::launcher::Secret;
use wharf_vocab::SecretName;

/// A folder in memory that most systems have.
const IN_MEMORY: &str = "/dev/shm";

/// A folder with secrets, for this user only. It is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct SecretFiles {
    folder: PathBuf,
}

impl SecretFiles {
    /// Writes the secrets to a new folder, in memory if possible, else in `fallback`.
    pub(crate) fn write(
        secrets: &BTreeMap<SecretName, Secret>,
        fallback: &Path,
    ) -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // The time keeps apart what a core that had the same id has left.
        let since = jiff::Timestamp::now().as_nanosecond();
        let name = format!("wharf-secrets-{}-{number}-{since}", std::process::id());
        let new = |parent: &Path| {
            let folder = parent.join(&name);
            DirBuilder::new().mode(0o700).create(&folder).map(|()| Self { folder })
        };
        let files = new(Path::new(IN_MEMORY)).or_else(|_| new(fallback))?;
        for (name, secret) in secrets {
            let path = files.folder.join(name.as_str());
            let mut options = File::options();
            let mut file = options.write(true).create_new(true).mode(0o400).open(path)?;
            file.write_all(secret.expose())?;
        }
        Ok(files)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for SecretFiles {
    fn drop(&mut self) {
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let folder = self.folder.display();
                tracing::error!(%folder, %error, "a folder with secrets cannot be removed");
            }
            _ => {}
        }
    }
}
