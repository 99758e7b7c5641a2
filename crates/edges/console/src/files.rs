//! Where the page's files come from.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};

/// The page itself.
pub(crate) const PAGE: &str = "index.html";
/// How the name of a file's packed form ends.
pub(crate) const PACKED: &str = ".gz";
/// Largest file that is read from a folder.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Longest name of a file below the folder.
const NAME_BYTES_MAX: usize = 256;

/// What was in `console/dist` when the program was built.
static CARRIED: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/dist.rs"));

/// The page's files.
#[derive(Debug)]
pub(crate) enum Files {
    /// A part of the program, in the order of their names.
    Carried(&'static [(&'static str, &'static [u8])]),
    /// Below a folder that was opened once: its place may change, it itself does not.
    Folder(Arc<OwnedFd>),
}

/// A file as it is sent.
pub(crate) struct ServedFile {
    pub(crate) bytes: Bytes,
    /// Whether this is its packed form.
    pub(crate) is_packed: bool,
}

impl Files {
    pub(crate) fn carried() -> Self {
        Self::Carried(CARRIED)
    }

    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self::Folder(Arc::new(openat(CWD, folder, flags, Mode::empty())?)))
    }

    /// A file, packed if that is wanted and there.
    pub(crate) async fn read(&self, name: String, packed: bool) -> Option<ServedFile> {
        let folder = match self {
            Self::Carried(files) => return carried(files, &name, packed),
            Self::Folder(folder) => Arc::clone(folder),
        };
        let read = move || {
            let form = if packed { read_below(&folder, &format!("{name}{PACKED}")) } else { None };
            match form {
                Some(bytes) => Some(ServedFile { bytes, is_packed: true }),
                None => {
                    read_below(&folder, &name).map(|bytes| ServedFile { bytes, is_packed: false })
                }
            }
        };
        tokio::task::spawn_blocking(read).await.ok().flatten()
    }
}

fn carried(
    files: &'static [(&'static str, &'static [u8])],
    name: &str,
    packed: bool,
) -> Option<ServedFile> {
    let form = packed.then(|| find(files, &format!("{name}{PACKED}"))).flatten();
    match form {
        Some(bytes) => Some(ServedFile { bytes: Bytes::from_static(bytes), is_packed: true }),
        None => find(files, name)
            .map(|bytes| ServedFile { bytes: Bytes::from_static(bytes), is_packed: false }),
    }
}

fn find(files: &'static [(&'static str, &'static [u8])], name: &str) -> Option<&'static [u8]> {
    let at = files.binary_search_by(|(known, _)| (*known).cmp(name)).ok()?;
    files.get(at).map(|(_, bytes)| *bytes)
}

/// Whether a name leads to a file below the folder and nowhere else.
pub(crate) fn is_name(name: &str) -> bool {
    let is_part = |part: &str| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        !part.is_empty() && !part.starts_with('.') && part.bytes().all(fits)
    };
    name.len() <= NAME_BYTES_MAX && name.split('/').all(is_part)
}

/// Reads a file below a folder, part by part, through no link.
fn read_below(folder: &OwnedFd, name: &str) -> Option<Bytes> {
    let common = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let (folders, file) = name.rsplit_once('/').unwrap_or(("", name));
    let mut at: Option<OwnedFd> = None;
    for part in folders.split('/').filter(|part| !part.is_empty()) {
        let here = at.as_ref().map_or_else(|| folder.as_fd(), AsFd::as_fd);
        at = Some(openat(here, part, common | OFlags::DIRECTORY, Mode::empty()).ok()?);
    }
    let here = at.as_ref().map_or_else(|| folder.as_fd(), AsFd::as_fd);
    let opened = openat(here, file, common, Mode::empty()).ok()?;
    let stat = fstat(&opened).ok()?;
    let size = u64::try_from(stat.st_size).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || size > FILE_BYTES_MAX {
        return None;
    }
    let mut bytes = Vec::new();
    let limited = io::Read::take(std::fs::File::from(opened), FILE_BYTES_MAX);
    io::Read::read_to_end(&mut { limited }, &mut bytes).ok()?;
    Some(Bytes::from(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c002_names_lead_nowhere_else() {
        for good in ["index.html", "assets/a-1b2c3d4e.js", "assets/x/y.css", "a"] {
            assert!(is_name(good), "{good}");
        }
        for bad in [
            "",
            "/",
            "..",
            "../x",
            "a/../b",
            "a//b",
            "/etc/passwd",
            "a/",
            ".env",
            "assets/.x",
            "a\\b",
            "a%2e",
            "a b",
            "a\0b",
            "ä",
            "C:x",
        ] {
            assert!(!is_name(bad), "{bad:?}");
        }
        assert!(!is_name(&"a".repeat(NAME_BYTES_MAX + 1)));
    }

    #[test]
    fn what_the_program_carries_is_in_order() {
        assert!(CARRIED.is_sorted_by_key(|(name, _)| *name));
    }
}
