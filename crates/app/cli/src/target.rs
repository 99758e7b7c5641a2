//! Where a file goes that is fetched: into a file, or into what takes bytes as they come.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use wharf_client::{Download, Downloaded, RemoteFile};

use crate::failure::{CliError, Result};
use crate::output::Output;

/// How many links may lead on to others, as on Linux.
const LINKS_MAX: usize = 40;

/// Where a file goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileTarget {
    /// Standard output.
    Stdout,
    /// A pipe or a device, which must not be replaced.
    Stream(PathBuf),
    /// A file that is there when it is whole; links have been followed.
    File(PathBuf),
}

impl FileTarget {
    /// Looks at what was typed as the target of this file.
    pub(crate) fn of(typed: &Path, from: &RemoteFile) -> Result<Self> {
        if ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|out| typed == *out) {
            return Ok(Self::Stdout);
        }
        let shown = typed.display();
        let kind = match std::fs::metadata(typed) {
            Ok(facts) => Some(facts.file_type()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(CliError::usage(format!("cannot write to {shown}: {error}"))),
        };
        let Some(kind) = kind else { return to_file(typed) };
        if kind.is_dir() {
            let example = typed.join(from.name());
            let message =
                format!("{shown} is a folder; name the file, such as {}", example.display());
            return Err(CliError::usage(message));
        }
        if kind.is_block_device() || kind.is_socket() {
            let what = if kind.is_socket() { "a socket" } else { "a disk" };
            let message = format!("{shown} is {what}; name a file, or pass the bytes on with -");
            return Err(CliError::usage(message));
        }
        if kind.is_file() && !is_descriptor(typed) {
            to_file(typed)
        } else {
            Ok(Self::Stream(typed.to_owned()))
        }
    }

    /// Fetches to where it is wanted.
    pub(crate) async fn fetch(&self, download: Download<'_>, output: Output) -> Result<Downloaded> {
        let fetched = match self {
            Self::Stdout => download.to_writer(output.bytes(), "standard output").await,
            Self::Stream(path) => {
                // Before the core is asked, so that whoever reads a pipe sees its end in any case.
                let out = open_stream(path.clone()).await?;
                download.to_writer(out, &path.display().to_string()).await
            }
            Self::File(path) => return Ok(download.to_file(path).await?),
        };
        fetched.map_err(|error| match error.io_kind() {
            Some(io::ErrorKind::BrokenPipe) => CliError::ReaderGone,
            _ => error.into(),
        })
    }
}

/// Opens a device, or a pipe, which waits until somebody reads it.
async fn open_stream(path: PathBuf) -> Result<File> {
    let shown = path.display().to_string();
    let opened = tokio::task::spawn_blocking(move || File::options().append(true).open(path));
    let opened = opened.await.unwrap_or_else(|gone| Err(io::Error::other(gone)));
    opened.map_err(|error| CliError::unwritable(shown, &error))
}

/// Whether the path stands for something that is open already.
fn is_descriptor(path: &Path) -> bool {
    path == "/dev/stderr" || path.starts_with("/dev/fd") || path.starts_with("/proc/self/fd")
}

fn to_file(typed: &Path) -> Result<FileTarget> {
    let missing =
        |folder: &Path| CliError::usage(format!("there is no folder {}", folder.display()));
    if typed.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Err(missing(typed));
    }
    let mut path = typed.to_owned();
    for _ in 0..LINKS_MAX {
        // A link may lead to a file that is not there yet.
        let Ok(link) = std::fs::read_link(&path) else {
            let folder = folder_of(&path);
            return if folder.is_dir() { Ok(FileTarget::File(path)) } else { Err(missing(folder)) };
        };
        path = folder_of(&path).join(link);
    }
    Err(CliError::usage(format!("{} is a link that leads nowhere", typed.display())))
}

/// The folder a file lies in.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use wharf_client::{Client, Locator};
    use wharf_testkit::scripted::{Reply, Scripted};

    use super::*;

    fn of(path: &Path) -> Result<FileTarget> {
        FileTarget::of(path, &RemoteFile::new("lab", "/out/a.txt").expect("a path"))
    }

    #[test]
    fn what_is_no_file_is_written_to_and_never_replaced() {
        for out in ["-", "/dev/stdout", "/dev/fd/1"] {
            assert_eq!(of(Path::new(out)), Ok(FileTarget::Stdout));
        }
        for device in ["/dev/null", "/dev/full"] {
            assert_eq!(of(Path::new(device)), Ok(FileTarget::Stream(device.into())));
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
        assert_eq!(of(&at("second")), Ok(FileTarget::File(at("d/new"))), "it is not there yet");
        std::fs::write(at("d/new"), "x").expect("written");
        assert_eq!(of(&at("second")), Ok(FileTarget::File(at("d/new"))));
        symlink("/dev/null", at("nothing")).expect("made");
        assert_eq!(of(&at("nothing")), Ok(FileTarget::Stream(at("nothing"))));
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

    const TEXT: &[u8] = b"what was written is what is read";

    async fn fetch(scripted: &Scripted, target: &Path) -> Result<Downloaded> {
        let file = RemoteFile::new("lab", "/out/a b.txt").expect("a path");
        let client = Client::new(Locator::of_home(scripted.home())).expect("a client");
        let download = client.worlds().download(&file);
        FileTarget::of(target, &file)?.fetch(download, Output::new(true)).await
    }

    #[tokio::test]
    async fn a_folder_is_not_overwritten_and_nothing_is_asked_for() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut scripted = Scripted::new();
        scripted.start(|_| Reply::Break).await;
        let failure = fetch(&scripted, dir.path()).await.expect_err("a folder");
        assert!(failure.message().ends_with("/a b.txt"), "{failure:?}");
        assert!(scripted.seen().is_empty());
    }

    #[tokio::test]
    async fn a_link_stays_and_what_it_names_is_replaced() {
        let dir = tempfile::tempdir().expect("a folder");
        let (target, link) = (dir.path().join("a.txt"), dir.path().join("link"));
        std::fs::write(&target, "old").expect("written");
        std::os::unix::fs::symlink("a.txt", &link).expect("made");
        let mut scripted = Scripted::new();
        scripted.start(|_| Reply::Bytes(200, String::new(), TEXT.to_vec(), TEXT.len())).await;
        fetch(&scripted, &link).await.expect("fetched");
        assert_eq!(std::fs::read_link(&link).expect("a link"), Path::new("a.txt"));
        assert_eq!(std::fs::read(&target).expect("there"), TEXT);
    }
}
