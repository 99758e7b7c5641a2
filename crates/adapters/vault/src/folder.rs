//! The vault's folder: files that only their owner may read, and that are whole or not there.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};
use wharf_vocab::{Code, Fault, SecretName};
use zeroize::Zeroizing;

use crate::seal::{self, Damage, KEY_BYTES, Sealer};

/// The file of the key that everything else is encrypted with.
pub(crate) const KEY_FILE: &str = "vault.key";
/// The file of the keys tokens are sealed with.
pub(crate) const KEYRING_FILE: &str = "grant.keys";

/// How the names of files begin that are being written. No secret's file begins so.
const UNFINISHED: &str = ".new-";

/// The vault's folder.
pub(crate) struct Folder {
    path: PathBuf,
}

/// The folder while nobody else, here or in another process, may change it.
pub(crate) struct LockedFolder<'a> {
    folder: &'a Folder,
    /// The lock ends when this is closed.
    handle: File,
}

/// Content that is safely on the disk but not yet in its place.
#[must_use]
struct StagedFile<'a> {
    locked: &'a LockedFolder<'a>,
    at: PathBuf,
}

impl Folder {
    /// Opens a folder, makes it if it is not there, closes it to others, and removes what a crash
    /// has left half-written.
    pub(crate) fn open(path: PathBuf) -> Result<Self, Fault> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.map_err(|error| unwritable(&path, &error))?;
        let found = fs::symlink_metadata(&path).map_err(|e| unreadable(&path, &e))?;
        if !found.is_dir() {
            return Err(unfit(&path, "must be a folder of its own, not a link to one."));
        }
        if found.uid() != rustix::process::geteuid().as_raw() {
            return Err(unfit(&path, "belongs to another account; give it to this one."));
        }
        if found.permissions().mode() & 0o077 != 0 {
            let closed = fs::set_permissions(&path, Permissions::from_mode(0o700));
            closed.map_err(|error| unwritable(&path, &error))?;
        }
        let folder = Self { path };
        folder.lock()?.sweep()?;
        Ok(folder)
    }

    /// The cipher of the folder's key, which is made the first time.
    pub(crate) fn sealer(&self) -> Result<Sealer, Fault> {
        let locked = self.lock()?;
        let key = match self.key()? {
            Some(key) => key,
            None => {
                self.check_nothing_needs_a_key()?;
                let key = Zeroizing::new(seal::random::<KEY_BYTES>()?);
                locked.replace(KEY_FILE, key.as_slice())?;
                key
            }
        };
        Ok(Sealer::new(&key))
    }

    /// Waits until nobody else changes the folder.
    pub(crate) fn lock(&self) -> Result<LockedFolder<'_>, Fault> {
        let lock = || {
            let handle = File::open(&self.path)?;
            while let Err(error) = flock(&handle, FlockOperation::LockExclusive) {
                if error != rustix::io::Errno::INTR {
                    return Err(error.into());
                }
            }
            Ok(handle)
        };
        let handle = lock().map_err(|error| unwritable(&self.path, &error))?;
        Ok(LockedFolder { folder: self, handle })
    }

    /// Reads a file of at most so many bytes; none if it is not there.
    pub(crate) fn read(&self, name: &str, bytes_max: usize) -> Result<Option<Vec<u8>>, Fault> {
        let Some(file) = self.open_file(name)? else { return Ok(None) };
        let path = self.path.join(name);
        // One byte more than there may be tells a file that is too long.
        let most = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
        let mut content = Vec::new();
        let read = file.take(most).read_to_end(&mut content);
        read.map_err(|error| unreadable(&path, &error))?;
        if content.len() > bytes_max {
            return Err(self.damaged(name, Damage::Form));
        }
        Ok(Some(content))
    }

    /// The names of all files that are not hidden.
    pub(crate) fn files(&self) -> Result<Vec<String>, Fault> {
        let list = || {
            let mut names = Vec::new();
            for entry in fs::read_dir(&self.path)? {
                // What is not text was not written by a vault.
                if let Ok(name) = entry?.file_name().into_string() {
                    names.push(name);
                }
            }
            Ok(names)
        };
        list().map_err(|error| unreadable(&self.path, &error))
    }

    /// What is said about a file that cannot be opened with the key.
    pub(crate) fn damaged(&self, name: &str, damage: Damage) -> Fault {
        let why = match damage {
            Damage::Form => "is not a file of this vault",
            Damage::Name => "has a name that no vault gives",
            Damage::Seal => {
                "was changed, put in place of another file, or encrypted with another vault.key"
            }
        };
        let path = self.path.join(name);
        let message = format!("{} {why}; put back the original or remove it.", path.display());
        Fault::new(Code::StoreCorrupt, message)
    }

    /// The key; none if there is none yet.
    fn key(&self) -> Result<Option<Zeroizing<[u8; KEY_BYTES]>>, Fault> {
        let Some(mut file) = self.open_file(KEY_FILE)? else { return Ok(None) };
        let path = self.path.join(KEY_FILE);
        let unreadable = |error| unreadable(&path, &error);
        let found = file.metadata().map_err(unreadable)?;
        if found.permissions().mode() & 0o077 != 0 {
            let why = "can be read or written by others; close it with chmod 600, and think of \
                       the secrets as known if somebody had access.";
            return Err(unfit(&path, why));
        }
        if found.uid() != rustix::process::geteuid().as_raw() {
            return Err(unfit(&path, "belongs to another account; give it to this one."));
        }
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        let whole = found.len() == KEY_BYTES as u64;
        if whole {
            file.read_exact(key.as_mut_slice()).map_err(unreadable)?;
        }
        // A file that lost its blocks in a crash reads as zeros.
        if !whole || key.iter().all(|byte| *byte == 0) {
            let why = "is not the key that was made; put back the original. Without it the \
                       secrets are lost.";
            return Err(unfit(&path, why));
        }
        Ok(Some(key))
    }

    /// A new key would make what an older one sealed worthless without a word.
    fn check_nothing_needs_a_key(&self) -> Result<(), Fault> {
        let sealed = |name: &String| name == KEYRING_FILE || is_secret(name);
        let Some(needs) = self.files()?.into_iter().find(sealed) else { return Ok(()) };
        let why = format!(
            "is gone, but {needs} was encrypted with it; put it back, or remove the files of the \
             folder to begin anew."
        );
        Err(unfit(&self.path.join(KEY_FILE), &why))
    }

    /// Opens a file that is one, and not a link, a pipe or a folder.
    fn open_file(&self, name: &str) -> Result<Option<File>, Fault> {
        let path = self.path.join(name);
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let flags = i32::try_from(flags.bits()).unwrap_or(0);
        let file = match OpenOptions::new().read(true).custom_flags(flags).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) if is_link(&error) => return Err(not_a_file(&path)),
            Err(error) => return Err(unreadable(&path, &error)),
        };
        let found = file.metadata().map_err(|error| unreadable(&path, &error))?;
        if found.is_file() { Ok(Some(file)) } else { Err(not_a_file(&path)) }
    }
}

impl LockedFolder<'_> {
    /// Replaces a file as a whole: readers see the old one or the new one, also after a crash.
    pub(crate) fn replace(&self, name: &str, content: &[u8]) -> Result<(), Fault> {
        let path = self.folder.path.join(name);
        let replaced = self.stage(name, content).and_then(|staged| staged.publish(name));
        replaced.map_err(|error| unwritable(&path, &error))
    }

    /// Removes a file, and says whether it was there.
    pub(crate) fn remove(&self, name: &str) -> Result<bool, Fault> {
        let path = self.folder.path.join(name);
        let remove = || match fs::remove_file(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            done => done.and_then(|()| self.handle.sync_all()).map(|()| true),
        };
        remove().map_err(|error| unwritable(&path, &error))
    }

    fn stage(&self, name: &str, content: &[u8]) -> io::Result<StagedFile<'_>> {
        let at = self.folder.path.join(format!("{UNFINISHED}{name}"));
        // One that a crash has left behind may have any content.
        match fs::remove_file(&at) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&at)?;
        // From here on, what does not get into its place is removed.
        let staged = StagedFile { locked: self, at };
        file.write_all(content)?;
        file.sync_all()?;
        Ok(staged)
    }

    /// Removes what was being written when a process ended.
    fn sweep(&self) -> Result<(), Fault> {
        for name in self.folder.files()?.iter().filter(|name| name.starts_with(UNFINISHED)) {
            self.remove(name)?;
        }
        Ok(())
    }
}

impl StagedFile<'_> {
    fn publish(self, name: &str) -> io::Result<()> {
        fs::rename(&self.at, self.locked.folder.path.join(name))?;
        self.locked.handle.sync_all()
    }
}

impl Drop for StagedFile<'_> {
    /// After it was put in its place there is nothing left to remove.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.at);
    }
}

/// Whether a file was not opened because it is a link.
fn is_link(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

fn not_a_file(path: &Path) -> Fault {
    unfit(path, "must be a plain file, not a link or anything else.")
}

/// Names tell upper case from lower case, and some file systems do not. So a file's name is the
/// secret's in lower case, then a number whose bits say which letters are upper case: `API_key` is
/// kept in `api_key.7.secret`. The ending keeps clear of the vault's own files.
const ENDING: &str = ".secret";

/// The file of a secret.
pub(crate) fn file_of(name: &SecretName) -> String {
    let name = name.as_str();
    let upper = name
        .bytes()
        .enumerate()
        .fold(0_u128, |bits, (at, byte)| bits | (u128::from(byte.is_ascii_uppercase()) << at));
    format!("{}.{upper:x}{ENDING}", name.to_ascii_lowercase())
}

/// Whether a file is one of a secret.
pub(crate) fn is_secret(file: &str) -> bool {
    file.ends_with(ENDING) && !file.starts_with('.')
}

/// The secret whose file it is; none if no secret's file is called so.
pub(crate) fn name_of(file: &str) -> Option<SecretName> {
    let (lower, upper) = file.strip_suffix(ENDING)?.rsplit_once('.')?;
    let upper = u128::from_str_radix(upper, 16).ok()?;
    let bytes = lower.char_indices().map(|(at, letter)| {
        let is_upper =
            u32::try_from(at).is_ok_and(|at| upper.checked_shr(at).unwrap_or(0) & 1 == 1);
        if is_upper { letter.to_ascii_uppercase() } else { letter }
    });
    let name = SecretName::new(bytes.collect::<String>()).ok()?;
    // One secret has one file: other spellings of the same are nobody's.
    (file_of(&name) == file).then_some(name)
}

/// A file could not be written.
fn unwritable(path: &Path, error: &io::Error) -> Fault {
    if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) {
        let message = "The disk that holds the secrets has no room left; free some and try again.";
        return Fault::new(Code::StoreFull, message);
    }
    let message = format!("{} cannot be written: {error}.", path.display());
    Fault::new(Code::StoreUnavailable, message)
}

/// A file could not be read.
fn unreadable(path: &Path, error: &io::Error) -> Fault {
    Fault::new(Code::StoreUnavailable, format!("{} cannot be read: {error}.", path.display()))
}

/// A file or folder must be mended by its owner before the vault is used.
fn unfit(path: &Path, why: &str) -> Fault {
    Fault::new(Code::ConfigInvalid, format!("{} {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a process does that is killed before its file is in place.
    #[test]
    fn what_is_staged_and_never_published_changes_nothing_and_is_swept() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(dir.path().to_owned()).expect("opens");
        let locked = folder.lock().expect("locked");
        locked.replace("x", b"old").expect("written");
        std::mem::forget(locked.stage("x", b"new").expect("staged"));
        drop(locked);
        let staged = dir.path().join(".new-x");
        assert_eq!(fs::read(&staged).expect("there"), b"new");
        assert_eq!(folder.read("x", 10).expect("read"), Some(b"old".to_vec()));
        let folder = Folder::open(dir.path().to_owned()).expect("opens");
        assert!(!staged.exists(), "it was left behind");
        assert_eq!(folder.read("x", 10).expect("read"), Some(b"old".to_vec()));
    }

    #[test]
    fn what_cannot_be_published_leaves_nothing_behind() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(dir.path().to_owned()).expect("opens");
        fs::create_dir(dir.path().join("x")).expect("made");
        let refused = folder.lock().expect("locked").replace("x", b"new");
        assert!(refused.is_err_and(|fault| fault.is(Code::StoreUnavailable)));
        assert!(!dir.path().join(".new-x").exists());
    }

    #[test]
    fn each_name_has_one_file_also_where_case_does_not_count() {
        let longest = "Z".repeat(128);
        let names =
            ["a", "A", "api.key", "API.key", "api.KEY", "vault.key", "grant.keys", &longest];
        let mut seen = std::collections::BTreeSet::new();
        for name in names {
            let name = SecretName::new(name).expect("a name");
            let file = file_of(&name);
            assert!(seen.insert(file.to_lowercase()), "{file} stands for two names");
            assert!(file.len() <= 255, "{file} is too long for a file system");
            assert!(is_secret(&file));
            assert_eq!(name_of(&file), Some(name));
        }
        assert_eq!(file_of(&SecretName::new("API_key").expect("a name")), "api_key.7.secret");
    }

    #[test]
    fn other_spellings_are_nobodys() {
        for file in ["a.secret", "A.1.secret", "a.01.secret", "a.2.secret", "a.x.secret", "a.0"] {
            assert_eq!(name_of(file), None, "{file}");
        }
        assert!(!is_secret("vault.key") && !is_secret("grant.keys") && !is_secret(".x.0.secret"));
    }
}
