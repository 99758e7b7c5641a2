//! Where a file goes that is fetched: into a file, or into what takes bytes as they come.

use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use super::place::{Place, file_name};
use crate::failure::{Failure, Result};

/// How many links may lead on to others, as on Linux.
const LINKS_MAX: usize = 40;

/// Where a file goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// Standard output.
    Stdout,
    /// A pipe or a device, which must not be replaced.
    Stream(PathBuf),
    /// A file that is there when it is whole; links have been followed.
    File(PathBuf),
}

impl Target {
    /// Looks at what was typed for the file of this place.
    pub(crate) fn of(typed: &Path, place: &Place) -> Result<Self> {
        if ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|out| typed == *out) {
            return Ok(Self::Stdout);
        }
        let shown = typed.display();
        let kind = match std::fs::metadata(typed) {
            Ok(facts) => Some(facts.file_type()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(Failure::usage(format!("cannot write to {shown}: {error}"))),
        };
        let Some(kind) = kind else { return to_file(typed) };
        if kind.is_dir() {
            let example = typed.join(file_name(&place.path));
            let message =
                format!("{shown} is a folder; name the file, such as {}", example.display());
            return Err(Failure::usage(message));
        }
        if kind.is_block_device() || kind.is_socket() {
            let what = if kind.is_socket() { "a socket" } else { "a disk" };
            let message = format!("{shown} is {what}; name a file, or pass the bytes on with -");
            return Err(Failure::usage(message));
        }
        if kind.is_file() && !is_descriptor(typed) {
            to_file(typed)
        } else {
            Ok(Self::Stream(typed.to_owned()))
        }
    }
}

/// Whether the path stands for something that is open already.
fn is_descriptor(path: &Path) -> bool {
    path == "/dev/stderr" || path.starts_with("/dev/fd") || path.starts_with("/proc/self/fd")
}

fn to_file(typed: &Path) -> Result<Target> {
    let missing =
        |folder: &Path| Failure::usage(format!("there is no folder {}", folder.display()));
    if typed.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Err(missing(typed));
    }
    let mut path = typed.to_owned();
    for _ in 0..LINKS_MAX {
        // A link may lead to a file that is not there yet.
        let Ok(link) = std::fs::read_link(&path) else {
            let folder = folder_of(&path);
            return if folder.is_dir() { Ok(Target::File(path)) } else { Err(missing(folder)) };
        };
        path = folder_of(&path).join(link);
    }
    Err(Failure::usage(format!("{} is a link that leads nowhere", typed.display())))
}

/// The folder a file lies in.
pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn of(path: &Path) -> Result<Target> {
        Target::of(path, &Place::new("lab", "/out/a.txt").expect("a place"))
    }

    #[test]
    fn what_is_no_file_is_written_to_and_never_replaced() {
        for out in ["-", "/dev/stdout", "/dev/fd/1"] {
            assert_eq!(of(Path::new(out)), Ok(Target::Stdout));
        }
        for device in ["/dev/null", "/dev/full"] {
            assert_eq!(of(Path::new(device)), Ok(Target::Stream(device.into())));
        }
        let dir = tempfile::tempdir().expect("a folder");
        let socket = dir.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("bound");
        let failure = of(&socket).expect_err("a socket");
        assert!(failure.message().contains("is a socket"), "{failure:?}");
        assert_eq!(failure.exit().number(), 2);
    }

    #[test]
    fn links_are_followed_to_what_they_name() {
        let dir = tempfile::tempdir().expect("a folder");
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir(at("d")).expect("made");
        symlink("d/new", at("first")).expect("made");
        symlink("first", at("second")).expect("made");
        assert_eq!(of(&at("second")), Ok(Target::File(at("d/new"))), "it is not there yet");
        std::fs::write(at("d/new"), "x").expect("written");
        assert_eq!(of(&at("second")), Ok(Target::File(at("d/new"))));
        symlink("/dev/null", at("nothing")).expect("made");
        assert_eq!(of(&at("nothing")), Ok(Target::Stream(at("nothing"))));
        symlink("round", at("round")).expect("made");
        symlink("gone/file", at("astray")).expect("made");
        assert!(of(&at("round")).is_err());
        let failure = of(&at("astray")).expect_err("no folder");
        assert!(failure.message().ends_with("/gone"), "{failure:?}");
    }

    #[test]
    fn a_missing_folder_is_wrong_usage_and_named() {
        let dir = tempfile::tempdir().expect("a folder");
        for (typed, named) in [("no/a.txt", "no"), ("no/", "no/")] {
            let failure = of(&dir.path().join(typed)).expect_err(typed);
            let expect = format!("there is no folder {}", dir.path().join(named).display());
            assert_eq!((failure.message(), failure.exit().number()), (expect.as_str(), 2));
        }
        let failure = of(dir.path()).expect_err("a folder");
        assert!(failure.message().ends_with("/a.txt"), "{failure:?}");
    }
}
