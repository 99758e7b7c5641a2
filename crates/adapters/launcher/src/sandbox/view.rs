//! Which files a program sees, worked out from its order and the machine's files as they are.
//!
//! What the system brings is followed link by link, and every link on the way is part of the
//! view: whoever names a file by any of its names finds it. What was granted is not: somebody who
//! may write beside it could otherwise move the fence with a link. Those paths, and all that is
//! opened later, are opened with [`open`], which no link leads astray. Nothing is mounted here.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use wharf_vocab::SandboxLevel;

use super::programs;
use super::{ARTIFACTS_DIR, SECRETS_DIR};
use crate::shim::message::{AtStep, Order, StartFailure, StartStep};

/// What the system itself brings; under `standard` all of it is there to read.
const SYSTEM: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/// What any program of the system needs to begin; under `strict` no more than this.
const LIBRARIES: [&str; 8] =
    ["/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32", "/lib", "/lib32", "/lib64", "/libx32"];
/// Certificates of the authorities that vouch for hosts; never the machine's own keys.
const CERTIFICATES: [&str; 4] = [
    "/etc/ssl/certs",
    "/etc/pki/tls/certs",
    "/etc/pki/ca-trust/extracted",
    "/etc/ca-certificates/extracted",
];
/// What the view has of its own, or has nothing of; no folder of the machine is shown around it.
const OWN: [&str; 3] = ["/proc", "/dev/shm", SECRETS_DIR];
/// More links than this on one way are a loop.
const LINKS_MAX: usize = 40;

/// What may be done with a file or everything in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Grant {
    /// Read and execute.
    Read,
    /// Also change.
    Write,
}

/// Which files a program sees.
#[derive(Debug, Default)]
pub(crate) struct View {
    /// Files and folders under their real paths.
    shown: BTreeMap<PathBuf, Grant>,
    /// Links on the way to them, and where they lead.
    links: BTreeMap<PathBuf, PathBuf>,
    /// Sockets under their real paths.
    sockets: Vec<PathBuf>,
    /// Folders that only the sandbox has.
    own: Vec<(PathBuf, Grant)>,
    /// The folder that also appears as `/tmp`.
    tmp: Option<PathBuf>,
    /// The folder that appears as `/artifacts` and nowhere else.
    artifacts: Option<PathBuf>,
    /// What is never shown, nor anything it lies in.
    hidden: Vec<PathBuf>,
}

impl View {
    /// The view that an order describes. Only the working directory must exist.
    pub(crate) fn of(order: &Order) -> Result<Self, StartFailure> {
        let fence = &order.fence;
        let mut view = Self { hidden: real_and_named(&fence.hidden), ..Self::default() };
        let strict = fence.level == SandboxLevel::Strict;
        let system = if strict { &LIBRARIES[..] } else { &SYSTEM[..] };
        view.show_all(system.iter().map(Path::new), Grant::Read).at(StartStep::Files)?;
        if !strict || fence.egress.is_some() {
            view.show_all(CERTIFICATES.iter().map(Path::new), Grant::Read).at(StartStep::Files)?;
        }
        if !strict {
            view.show_all([Path::new("/etc/alternatives")], Grant::Read).at(StartStep::Files)?;
        }
        view.show_own(&order.cwd, Grant::Read).at(StartStep::Cwd)?;
        for path in &order.private_dirs {
            view.show_own(path, Grant::Write).at(StartStep::Files)?;
        }
        for path in &order.given_dirs {
            view.show_own(path, Grant::Read).at(StartStep::Files)?;
        }
        for path in &fence.read {
            view.grant(path, Grant::Read).at(StartStep::Files)?;
        }
        for path in &fence.write {
            view.grant(path, Grant::Write).at(StartStep::Files)?;
        }
        for path in &fence.sockets {
            match open(path) {
                Err(error) if is_absent(&error) => {}
                opened => {
                    opened.at(StartStep::Files)?;
                    view.sockets.push(path.clone());
                }
            }
        }
        for path in programs::needed(order, &order.cwd, |path| view.covers(path)) {
            view.show_all([path.as_path()], Grant::Read).at(StartStep::Files)?;
        }
        view.add_own(order);
        Ok(view)
    }

    fn add_own(&mut self, order: &Order) {
        let tmp = order.env.get("TMPDIR").map(Path::new);
        self.tmp =
            tmp.filter(|tmp| order.private_dirs.iter().any(|dir| dir == tmp)).map(Path::to_owned);
        if order.fence.layers.namespaces {
            self.own.push(("/dev/shm".into(), Grant::Write));
            self.own.push((SECRETS_DIR.into(), Grant::Read));
            self.artifacts.clone_from(&order.fence.artifacts);
            if self.artifacts.is_some() {
                self.own.push((ARTIFACTS_DIR.into(), Grant::Write));
            }
        } else if let Some(dir) = &order.secrets_dir {
            self.own.push((dir.clone(), Grant::Read));
        }
    }

    /// Adds those that exist.
    fn show_all<'a>(
        &mut self,
        paths: impl IntoIterator<Item = &'a Path>,
        grant: Grant,
    ) -> io::Result<()> {
        for path in paths {
            match self.show(path, grant) {
                Err(error) if is_absent(&error) || is_refused(&error) => {}
                shown => drop(shown?),
            }
        }
        Ok(())
    }

    /// Adds a file or folder and the links on the way to it.
    fn show(&mut self, path: &Path, grant: Grant) -> io::Result<()> {
        let mut links = BTreeMap::new();
        let real = resolve(path, &mut links)?;
        self.check_not_in_hidden(&real)?;
        self.add(real, grant)?;
        self.links.append(&mut links);
        Ok(())
    }

    /// Adds what was granted, if it is there, is not hidden, and no link lies on its way.
    fn grant(&mut self, path: &Path, grant: Grant) -> io::Result<()> {
        let added = open(path)
            .and_then(|_| self.check_not_in_hidden(path))
            .and_then(|()| self.add(path.to_owned(), grant));
        match added {
            Err(error) if is_absent(&error) || is_refused(&error) => Ok(()),
            added => added,
        }
    }

    /// Adds a folder of the program's own, which may lie in one that is hidden. No link may lie
    /// on its way.
    fn show_own(&mut self, path: &Path, grant: Grant) -> io::Result<()> {
        open(path)?;
        self.add(path.to_owned(), grant)
    }

    fn check_not_in_hidden(&self, real: &Path) -> io::Result<()> {
        let is_hidden = self.hidden.iter().any(|hidden| real.starts_with(hidden));
        if is_hidden { Err(Errno::ACCESS.into()) } else { Ok(()) }
    }

    fn add(&mut self, real: PathBuf, grant: Grant) -> io::Result<()> {
        let mut around = self.hidden.iter().map(PathBuf::as_path).chain(OWN.iter().map(Path::new));
        if around.any(|inner| inner.starts_with(&real)) || real.starts_with("/proc") {
            return Err(Errno::ACCESS.into());
        }
        let now = self.shown.entry(real).or_insert(grant);
        *now = grant.max(*now);
        Ok(())
    }
    /// What is shown, parents first; what a parent grants already is left out.
    pub(crate) fn mounts(&self) -> Vec<(&Path, Grant)> {
        let mut kept: Vec<(&Path, Grant)> = Vec::new();
        for (path, grant) in &self.shown {
            let parent = kept.iter().rev().find(|(parent, _)| path.starts_with(parent));
            if parent.is_none_or(|(_, granted)| granted < grant) {
                kept.push((path, *grant));
            }
        }
        kept
    }

    /// The links that do not appear together with a folder that holds them.
    pub(crate) fn links(&self) -> impl Iterator<Item = (&Path, &Path)> {
        self.links
            .iter()
            .filter(|(link, _)| !self.covers(link))
            .map(|(link, target)| (link.as_path(), target.as_path()))
    }

    /// The sockets that do not appear together with a folder that holds them.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = &Path> {
        self.sockets.iter().map(PathBuf::as_path).filter(|socket| !self.covers(socket))
    }

    pub(crate) fn tmp(&self) -> Option<&Path> {
        self.tmp.as_deref()
    }

    pub(crate) fn artifacts(&self) -> Option<&Path> {
        self.artifacts.as_deref()
    }

    /// Everything with what may be done there.
    pub(crate) fn grants(&self) -> impl Iterator<Item = (&Path, Grant)> {
        let own = self.own.iter().map(|(path, grant)| (path.as_path(), *grant));
        self.mounts().into_iter().chain(own)
    }

    fn covers(&self, path: &Path) -> bool {
        path.ancestors().any(|parent| self.shown.contains_key(parent))
    }
}

fn parts(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            _ => None,
        })
        .collect()
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Opens a file or folder that no link leads to: not at its end, not on its way.
pub(crate) fn open(path: &Path) -> io::Result<OwnedFd> {
    let is_plain = |part| matches!(part, Component::RootDir | Component::Normal(_));
    // Text is compared with what is hidden, so there must be only one way to write it.
    if !path.is_absolute() || !path.components().all(is_plain) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // Not with "do not follow" besides, for then a link at the end is opened itself.
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(rustix::fs::openat2(CWD, path, flags, Mode::empty(), resolve)?)
}

/// Follows a path to its end and notes the links on the way.
fn resolve(path: &Path, links: &mut BTreeMap<PathBuf, PathBuf>) -> io::Result<PathBuf> {
    let mut left = parts(path);
    let mut at = PathBuf::from("/");
    let mut followed = 0;
    while let Some(part) = left.pop_front() {
        if part == ".." {
            at.pop();
            continue;
        }
        at.push(part);
        if !at.symlink_metadata()?.is_symlink() {
            continue;
        }
        followed += 1;
        if followed > LINKS_MAX {
            return Err(Errno::LOOP.into());
        }
        let target = at.read_link()?;
        let link = at.clone();
        if target.is_absolute() {
            at = PathBuf::from("/");
        } else {
            at.pop();
        }
        let mut ahead = parts(&target);
        ahead.append(&mut left);
        left = ahead;
        links.insert(link, target);
    }
    Ok(at)
}

/// Whether it must not be shown.
fn is_refused(error: &io::Error) -> bool {
    [Errno::ACCESS, Errno::LOOP].iter().any(|no| error.raw_os_error() == Some(no.raw_os_error()))
}

/// Each path as it is written and as it is without links.
fn real_and_named(paths: &[PathBuf]) -> Vec<PathBuf> {
    paths.iter().flat_map(|path| [Some(path.clone()), path.canonicalize().ok()]).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_on_the_way_are_part_of_the_view() {
        let dir = tempfile::tempdir().expect("a directory");
        let dir = dir.path().canonicalize().expect("exists");
        fs::create_dir_all(dir.join("real/inner")).expect("makes it");
        symlink("real", dir.join("link")).expect("links");
        symlink(dir.join("link/inner"), dir.join("far")).expect("links");
        let mut view = View::default();
        view.show(&dir.join("far/../inner"), Grant::Read).expect("shows");
        assert!(view.shown.contains_key(&dir.join("real/inner")), "{view:?}");
        let links: Vec<_> = view.links().map(|(link, _)| link.to_owned()).collect();
        assert_eq!(links, [dir.join("far"), dir.join("link")]);
    }

    #[test]
    fn a_loop_of_links_ends() {
        let dir = tempfile::tempdir().expect("a directory");
        symlink("b", dir.path().join("a")).expect("links");
        symlink("a", dir.path().join("b")).expect("links");
        assert!(View::default().show(&dir.path().join("a"), Grant::Read).is_err());
    }

    #[test]
    fn what_was_granted_is_shown_only_if_no_link_leads_there() {
        let dir = tempfile::tempdir().expect("a directory");
        let dir = dir.path().canonicalize().expect("exists");
        fs::create_dir_all(dir.join("real/inner")).expect("makes it");
        fs::create_dir_all(dir.join("core/run")).expect("makes it");
        symlink("real", dir.join("link")).expect("links");
        let mut view = View { hidden: vec![dir.join("core")], ..View::default() };
        let refused = ["link", "link/inner", "core", "core/run", ".", "none", "real/none"];
        for path in refused.map(|path| dir.join(path)).iter().chain([&PathBuf::from("/run")]) {
            view.grant(path, Grant::Write).expect("is left out");
            assert!(view.shown.is_empty(), "{}", path.display());
        }
        assert!(view.grant(&dir.join("real/../core"), Grant::Read).is_err());
        assert!(view.show_own(&dir.join("link"), Grant::Read).is_err());
        assert!(view.show_own(&dir.join("core"), Grant::Read).is_err());
        assert!(view.show(&dir.join("core/run"), Grant::Read).is_err());
        view.show_own(&dir.join("core/run"), Grant::Write).expect("is its own");
        view.grant(&dir.join("real/inner"), Grant::Read).expect("is granted");
        assert_eq!(view.shown.len(), 2);
    }

    #[test]
    fn the_whole_machine_and_its_processes_are_never_shown() {
        for path in ["/", "/proc", "/proc/self", "/usr/..", "/tmp/../.."] {
            assert!(View::default().show(Path::new(path), Grant::Read).is_err(), "{path}");
        }
    }

    #[test]
    fn a_parent_that_grants_enough_is_enough() {
        let shown = [("/a", Grant::Read), ("/a/b", Grant::Write), ("/a/b/c", Grant::Read)];
        let shown = shown.into_iter().map(|(path, grant)| (path.into(), grant)).collect();
        let view = View { shown, ..View::default() };
        let expect = [(Path::new("/a"), Grant::Read), (Path::new("/a/b"), Grant::Write)];
        assert_eq!(view.mounts(), expect);
    }
}
