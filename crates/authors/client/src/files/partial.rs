//! What has arrived of a file so far, beside the file it becomes.

use std::ffi::OsString;
use std::fs::{File, Metadata, Permissions, TryLockError};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

use blake3::Hasher;
use wharf_vocab::Code;

use crate::error::{Error, Result};

/// Names that are longer leave no room for what a part's name has beside them.
const NAME_BYTES_MAX: usize = 200;
/// How many characters say which version of a file a part is of; as many as a hash is cut to, or
/// as a name has that comes only once.
const VERSION_CHARS: [usize; 2] = [12, 32];

/// What is there of one version of a file.
#[derive(Debug)]
pub(super) struct Partial {
    target: PathBuf,
    path: PathBuf,
    file: File,
}

impl Partial {
    /// Opens the part of this version of the file, and nobody else does meanwhile.
    pub(super) fn open(target: &Path, etag: Option<&str>) -> Result<Self> {
        let path = partial_path(target, etag)?;
        let unwritable = |error: io::Error| {
            Error::unwritable(format!("the folder {}", folder_of(target).display()), &error)
        };
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        if let Ok(facts) = std::fs::metadata(target) {
            // What others may not read later they may not read meanwhile either.
            options.mode(facts.mode() & 0o777 | 0o600);
        }
        loop {
            let file = options.open(&path).map_err(unwritable)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let message =
                        format!("{} is being downloaded by another process", target.display());
                    return Err(Error::failed(Code::RequestInvalid, message));
                }
                Err(TryLockError::Error(error)) => return Err(unwritable(error)),
            }
            // Whoever held it before may have taken the name away with it.
            if is_at(&file, &path) {
                return Ok(Self { target: target.to_owned(), path, file });
            }
        }
    }

    /// What is there, hashed, with the place to write on; nothing if it cannot be a part of so
    /// many bytes.
    pub(super) fn resume(&self, bytes: Option<u64>) -> Result<(File, Hasher)> {
        let unreadable = |error: io::Error| Error::unreadable(self.path.display(), &error);
        let mut file = self.file.try_clone().map_err(unreadable)?;
        let here = file.metadata().map_err(unreadable)?.len();
        let mut hasher = Hasher::new();
        if bytes.is_none_or(|bytes| here > bytes) {
            file.set_len(0).map_err(unreadable)?;
            return Ok((file, hasher));
        }
        let mut piece = vec![0; 1024 * 1024];
        loop {
            match file.read(&mut piece).map_err(unreadable)? {
                0 => return Ok((file, hasher)),
                count => hasher.update(&piece[..count]),
            };
        }
    }

    /// Removes parts of other versions of the same file that nobody writes to any more; nobody
    /// will ever go on with them.
    pub(super) fn remove_older(&self) {
        let Ok(entries) = std::fs::read_dir(folder_of(&self.target)) else { return };
        let Some(start) = start_of_name(&self.target) else { return };
        for entry in entries.flatten() {
            let path = entry.path();
            let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
            if !is_file || path == self.path || !is_part(&entry.file_name(), &start) {
                continue;
            }
            // What cannot be removed stays, which harms nobody.
            if let Ok(file) = File::open(&path)
                && file.try_lock().is_ok()
                && is_at(&file, &path)
            {
                let _ = std::fs::remove_file(&path);
            }
        }
    }

    /// Puts the whole file into its place. A file that was there leaves its owner and its
    /// permissions to it.
    pub(super) fn become_target(&self) -> Result<()> {
        let inherited = match std::fs::metadata(&self.target) {
            Ok(facts) => self.inherit(&facts),
            Err(_) => Ok(()),
        };
        inherited
            .and_then(|()| self.file.sync_all())
            .and_then(|()| std::fs::rename(&self.path, &self.target))
            .map_err(|error| Error::unwritable(self.target.display(), &error))
    }

    fn inherit(&self, facts: &Metadata) -> io::Result<()> {
        let own = self.file.metadata()?;
        if (own.uid(), own.gid()) != (facts.uid(), facts.gid()) {
            // Only an administrator may give a file away; to others it is theirs as any new one.
            let _ = fchown(&self.file, Some(facts.uid()), Some(facts.gid()));
        }
        self.file.set_permissions(Permissions::from_mode(facts.mode() & 0o777))
    }

    /// Throws the part away.
    pub(super) fn remove(&self) {
        // A part that cannot be removed is found damaged again.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The folder a file lies in.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether this is still the file of this name.
fn is_at(file: &File, path: &Path) -> bool {
    let id = |facts: Metadata| (facts.dev(), facts.ino());
    let (held, named) = (file.metadata().map(id), std::fs::symlink_metadata(path).map(id));
    matches!((held, named), (Ok(held), Ok(named)) if held == named)
}

/// Beside the target, under a name that says which version of the file it is a part of.
pub(super) fn partial_path(target: &Path, etag: Option<&str>) -> Result<PathBuf> {
    let Some(mut name) = start_of_name(target) else {
        return Err(Error::usage(format!("{} does not name a file", target.display())));
    };
    // Without a version nothing can be gone on with, so the name is one that comes only once.
    let version = match etag {
        Some(etag) => blake3::hash(etag.as_bytes()).to_hex()[..VERSION_CHARS[0]].to_owned(),
        None => uuid::Uuid::now_v7().simple().to_string(),
    };
    name.push(format!("{version}.part"));
    Ok(target.with_file_name(name))
}

/// What the names of all parts of a file begin with.
fn start_of_name(target: &Path) -> Option<OsString> {
    let name = target.file_name()?;
    let mut start = OsString::from(".");
    match name.len() {
        0..=NAME_BYTES_MAX => start.push(name),
        _ => start.push(blake3::hash(name.as_encoded_bytes()).to_hex().as_str()),
    }
    start.push(".");
    Some(start)
}

fn is_part(name: &std::ffi::OsStr, start: &OsString) -> bool {
    let name = name.as_encoded_bytes();
    let version = name.strip_prefix(start.as_encoded_bytes());
    version.and_then(|rest| rest.strip_suffix(b".part")).is_some_and(|version| {
        VERSION_CHARS.contains(&version.len()) && version.iter().all(u8::is_ascii_hexdigit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_commands_do_not_write_one_file() {
        let dir = tempfile::tempdir().expect("a folder");
        let target = dir.path().join("a.txt");
        let first = Partial::open(&target, Some("x")).expect("opened");
        let error = Partial::open(&target, Some("x")).map(|_| ()).expect_err("locked");
        assert!(error.message().contains("another process"), "{error:?}");
        drop(first);
        assert!(Partial::open(&target, Some("x")).is_ok());
    }

    #[test]
    fn only_parts_of_the_same_file_that_nobody_holds_are_removed() {
        let dir = tempfile::tempdir().expect("a folder");
        let target = dir.path().join("a");
        let held = Partial::open(&target, Some("held")).expect("opened");
        let old = partial_path(&target, Some("old")).expect("a name");
        let once = partial_path(&target, None).expect("a name");
        let theirs = partial_path(&dir.path().join("a.txt"), Some("x")).expect("a name");
        let kept = [theirs, dir.path().join(".a.mine.part"), dir.path().join(".a.0123456789ab")];
        for path in kept.iter().chain([&old, &once]) {
            std::fs::write(path, "x").expect("written");
        }
        Partial::open(&target, Some("new")).expect("opened").remove_older();
        assert!(!old.exists() && !once.exists());
        assert!(held.path.exists() && kept.iter().all(|path| path.exists()));
    }

    #[test]
    fn a_part_is_as_secret_as_the_file_it_becomes() {
        let dir = tempfile::tempdir().expect("a folder");
        let target = dir.path().join("a");
        let mode = |path: &Path| std::fs::metadata(path).expect("there").mode() & 0o7777;
        for (before, meanwhile) in [(0o600, 0o600), (0o400, 0o600)] {
            std::fs::write(&target, "old").expect("written");
            std::fs::set_permissions(&target, Permissions::from_mode(before)).expect("set");
            let partial = Partial::open(&target, Some("x")).expect("opened");
            assert_eq!(mode(&partial.path), meanwhile);
            partial.become_target().expect("replaced");
            assert_eq!((mode(&target), std::fs::read(&target).expect("read")), (before, vec![]));
            std::fs::remove_file(&target).expect("removed");
        }
    }

    #[test]
    fn a_long_name_leaves_room_for_its_part() {
        let dir = tempfile::tempdir().expect("a folder");
        let target = dir.path().join("n".repeat(255));
        let partial = Partial::open(&target, None).expect("opened");
        partial.become_target().expect("named");
        assert!(target.exists());
    }
}
