//! The vault on real files.

mod crash;
mod guarded;
mod keys;
mod secrets;

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use wharf_ports::vault::Secret;
use wharf_vault::FileVault;
use wharf_vocab::SecretName;

/// A folder for a vault, and the vault in it.
fn vault() -> (TempDir, FileVault) {
    let dir = tempfile::tempdir().expect("a folder");
    let vault = open(dir.path());
    (dir, vault)
}

fn open(home: &Path) -> FileVault {
    FileVault::open(home.join("secrets")).expect("opens")
}

fn name(text: &str) -> SecretName {
    SecretName::new(text).expect("a name")
}

fn secret(text: &str) -> Secret {
    Secret::new(text.as_bytes())
}

/// The file of a secret whose name is in lower case.
fn file(home: &TempDir, name: &str) -> PathBuf {
    home.path().join("secrets").join(format!("{name}.0.secret"))
}
