//! How much lies in the program's own folders, found out some steps at a time.
//!
//! Folders are opened from the one above them, so that no path is too long to be looked at.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat};
use tokio::time::Instant;

/// The shortest and the longest pause between two walks.
const PAUSE: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// A pause is this many times as long as the walk before it.
const IDLE_SHARE: u32 = 20;
/// Entries that are looked at in one step.
const ENTRIES_AT_ONCE: u32 = 4_000;
/// More entries than this are too many, whatever they hold: a walk must come to its end.
const ENTRIES_MAX: u32 = 250_000;
/// So are folders in folders beyond this; each of them is open while those in it are looked at.
const DEPTH_MAX: usize = 200;
/// What an empty file takes at least.
const ENTRY_BYTES: u64 = 256;

/// A walk through some folders, over and over.
#[derive(Debug)]
pub(super) struct Walk {
    roots: Vec<PathBuf>,
    most: u64,
    /// Roots that this walk has not been to.
    left: Vec<PathBuf>,
    /// The way to where it is.
    open: Vec<Dir>,
    bytes: u64,
    entries: u32,
    spent: Duration,
    begin_at: Instant,
    /// What the last whole walk found.
    pub(super) found: u64,
}

impl Walk {
    pub(super) fn new(roots: Vec<PathBuf>, most: u64) -> Self {
        Self {
            roots,
            most,
            left: Vec::new(),
            open: Vec::new(),
            bytes: 0,
            entries: 0,
            spent: Duration::ZERO,
            begin_at: Instant::now(),
            found: 0,
        }
    }

    /// Whether a walk has begun and not come to its end.
    pub(super) fn is_on_its_way(&self) -> bool {
        !(self.left.is_empty() && self.open.is_empty())
    }

    /// Goes on; says whether more was found than there may be, together with `others`.
    pub(super) fn step(&mut self, others: u64) -> bool {
        let began = Instant::now();
        if !self.is_on_its_way() {
            if began < self.begin_at {
                return self.found.saturating_add(others) > self.most;
            }
            self.left.clone_from(&self.roots);
            (self.bytes, self.entries, self.spent) = (0, 0, Duration::ZERO);
        }
        for _ in 0..ENTRIES_AT_ONCE {
            if !self.next() {
                break;
            }
            let is_too_much = self.bytes.saturating_add(others) > self.most;
            if is_too_much || self.entries > ENTRIES_MAX || self.open.len() > DEPTH_MAX {
                return true;
            }
        }
        let now = Instant::now();
        self.spent += now - began;
        if !self.is_on_its_way() {
            self.found = self.bytes;
            self.begin_at = now + (self.spent * IDLE_SHARE).clamp(PAUSE, PAUSE_MAX);
        }
        false
    }

    /// Looks at one more entry; says whether there was one.
    fn next(&mut self) -> bool {
        loop {
            let Some(dir) = self.open.last_mut() else {
                let Some(root) = self.left.pop() else { return false };
                self.open.extend(open_folder(CWD, &root));
                continue;
            };
            let Some(Ok(entry)) = dir.read() else {
                self.open.pop();
                continue;
            };
            if matches!(entry.file_name().to_bytes(), b"." | b"..") {
                continue;
            }
            self.entries += 1;
            let Ok(folder) = dir.fd() else { continue };
            let Ok(data) = statat(folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            let blocks = u64::try_from(data.st_blocks).unwrap_or(0);
            self.bytes = self.bytes.saturating_add((blocks * 512).max(ENTRY_BYTES));
            if FileType::from_raw_mode(data.st_mode) == FileType::Directory {
                let inner = open_folder(folder, entry.file_name());
                self.open.extend(inner);
            }
            return true;
        }
    }

    /// The devices on which the folders lie.
    pub(super) fn devices(&self) -> Vec<u64> {
        use std::os::unix::fs::MetadataExt;
        let device = |root: &PathBuf| Some(Path::new(root).metadata().ok()?.dev());
        self.roots.iter().filter_map(device).collect()
    }
}

fn open_folder(at: impl std::os::fd::AsFd, name: impl rustix::path::Arg) -> Option<Dir> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder: OwnedFd = openat(at, name, flags, Mode::empty()).ok()?;
    Dir::new(folder).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Walks until it has seen everything once, or too much.
    fn whole(walk: &mut Walk, others: u64) -> bool {
        walk.begin_at = Instant::now();
        loop {
            if walk.step(others) {
                return true;
            }
            if !walk.is_on_its_way() {
                return false;
            }
        }
    }

    #[test]
    fn a_walk_counts_files_below_and_starts_over() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::create_dir_all(dir.path().join("a/b")).expect("makes it");
        let mut walk = Walk::new(vec![dir.path().to_owned()], 256 * 1024);
        assert!(!whole(&mut walk, 0));
        assert!(!whole(&mut walk, 0));
        assert!(whole(&mut walk, 300 * 1024), "others count as well");
        walk.open.clear();
        fs::write(dir.path().join("a/b/large"), vec![1; 512 * 1024]).expect("writes");
        assert!(whole(&mut walk, 0));
    }

    #[test]
    fn f6_a_walk_goes_where_no_path_leads() {
        let dir = tempfile::tempdir().expect("a directory");
        let name = "d".repeat(200);
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut at = openat(CWD, dir.path(), flags, Mode::empty()).expect("opens");
        for _ in 0..25 {
            rustix::fs::mkdirat(&at, &name, Mode::RWXU).expect("makes it");
            at = openat(&at, &name, flags, Mode::empty()).expect("opens");
        }
        let flags = OFlags::CREATE | OFlags::WRONLY;
        let file = openat(&at, "large", flags, Mode::RWXU).expect("creates");
        std::io::Write::write_all(&mut fs::File::from(file), &[1; 512 * 1024]).expect("writes");
        let mut walk = Walk::new(vec![dir.path().to_owned()], 400 * 1024);
        assert!(whole(&mut walk, 0));
    }

    #[test]
    fn f6_folders_without_end_are_too_much() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::create_dir_all(dir.path().join("d/".repeat(DEPTH_MAX + 2))).expect("makes it");
        assert!(whole(&mut Walk::new(vec![dir.path().to_owned()], u64::MAX), 0));
    }
}
