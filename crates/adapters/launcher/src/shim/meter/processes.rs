//! The program's processes and what each of them uses.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::tree::{self, own_pid};

/// Where the processes are found.
#[derive(Debug, Clone)]
pub(super) enum ProcessSource {
    /// In a `/proc` that knows no others.
    Namespace(Arc<OwnedFd>),
    /// Below this process.
    Below,
}

impl ProcessSource {
    pub(super) fn folder(&self) -> PathBuf {
        match self {
            Self::Namespace(folder) => format!("/proc/self/fd/{}", folder.as_raw_fd()).into(),
            Self::Below => "/proc".into(),
        }
    }

    /// Who there is now.
    pub(super) fn pids(&self) -> Vec<i32> {
        match self {
            Self::Namespace(_) => fs::read_dir(self.folder())
                .into_iter()
                .flatten()
                .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
                .collect(),
            Self::Below => tree::below(own_pid()).into_iter().map(|process| process.pid).collect(),
        }
    }

    /// How many of them are the program's.
    pub(super) fn count(&self, pids: &[i32]) -> u64 {
        let theirs = pids.iter().filter(|pid| !self.is_ours(**pid)).count();
        u64::try_from(theirs).unwrap_or(u64::MAX)
    }

    /// The first process of a namespace is ours. Its time counts, for it works for the program.
    pub(super) fn is_ours(&self, pid: i32) -> bool {
        pid == 1 && matches!(self, Self::Namespace(_))
    }

    /// What they use.
    pub(super) fn look(&self, pids: &[i32]) -> Vec<ProcessUsage> {
        let folder = self.folder();
        pids.iter()
            .filter_map(|pid| {
                let spent = ProcessUsage::read(&folder, *pid)?;
                Some(if self.is_ours(*pid) { spent.of_time_only() } else { spent })
            })
            .collect()
    }

    /// How many descriptors they have together. Newer kernels tell it as the size of a folder, older
    /// ones say 0.
    pub(super) fn open_files(&self, pids: &[i32]) -> u64 {
        let folder = self.folder();
        let theirs = pids.iter().filter(|pid| !self.is_ours(**pid));
        let size = |pid: &i32| fs::metadata(folder.join(pid.to_string()).join("fd"));
        theirs.filter_map(|pid| Some(size(pid).ok()?.len())).sum()
    }

    /// Time of processes that were buried here.
    pub(super) fn others_ticks(&self) -> u64 {
        match self {
            Self::Namespace(_) => 0,
            Self::Below => ProcessUsage::read(Path::new("/proc"), own_pid())
                .map_or(0, |own| own.children_ticks),
        }
    }

    /// What lies in the folder for files in memory that only the program has.
    pub(super) fn shared_files_bytes(&self) -> u64 {
        match self {
            Self::Namespace(_) => rustix::fs::statvfs(self.folder().join("1/root/dev/shm"))
                .map_or(0, |system| (system.f_blocks - system.f_bfree) * system.f_frsize),
            Self::Below => 0,
        }
    }
}

/// What one process uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProcessUsage {
    pub(super) pid: i32,
    pub(super) started: u64,
    pub(super) own_ticks: u64,
    /// Of children that it buried.
    pub(super) children_ticks: u64,
    pub(super) threads: u64,
    pub(super) pages: u64,
    /// Whether it was on a processor, or waited for one.
    pub(super) is_busy: bool,
    /// Whether its first thread has ended.
    pub(super) is_headless: bool,
}

/// Where the kernel tells of a process that lives: usually its own folder. If its first thread has
/// ended, that one tells of nothing any more, and another must.
pub(super) fn face(folder: &Path, pid: i32) -> Option<PathBuf> {
    let own = folder.join(pid.to_string());
    let spent = ProcessUsage::read_in(&own, pid)?;
    if !spent.is_headless {
        return Some(own);
    }
    living_thread(&own)
}

fn living_thread(process: &Path) -> Option<PathBuf> {
    fs::read_dir(process.join("task"))
        .ok()?
        .flatten()
        .map(|thread| thread.path())
        .find(|thread| ProcessUsage::read_in(thread, 0).is_some_and(|thread| !thread.is_headless))
}

/// A process's fair share of the memory it uses, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) own: u64,
    pub(super) of_files_in_memory: u64,
}

impl ProcessUsage {
    pub(super) fn read(folder: &Path, pid: i32) -> Option<Self> {
        let own = folder.join(pid.to_string());
        let spent = Self::read_in(&own, pid)?;
        if !(spent.is_headless && spent.threads > 1) {
            return Some(spent);
        }
        let thread = living_thread(&own).and_then(|thread| Self::read_in(&thread, pid));
        Some(Self { pages: thread.map_or(0, |thread| thread.pages), ..spent })
    }

    fn read_in(folder: &Path, pid: i32) -> Option<Self> {
        let stat = fs::read(folder.join("stat")).ok()?;
        Self::parse(pid, &String::from_utf8_lossy(&stat))
    }

    fn parse(pid: i32, stat: &str) -> Option<Self> {
        let (_, fields) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        Some(Self {
            pid,
            started: number(19)?,
            own_ticks: number(11)? + number(12)?,
            children_ticks: number(13)? + number(14)?,
            threads: number(17)?,
            pages: number(21)?,
            is_busy: fields.first() == Some(&"R"),
            is_headless: matches!(fields.first(), Some(&("Z" | "X"))),
        })
    }

    fn of_time_only(self) -> Self {
        Self { threads: 0, pages: 0, ..self }
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        self.pages * u64::try_from(rustix::param::page_size()).unwrap_or(4096)
    }

    pub(super) fn share(&self, folder: &Path) -> io::Result<Share> {
        let face = face(folder, self.pid).ok_or(io::ErrorKind::NotFound)?;
        let text = fs::read_to_string(face.join("smaps_rollup"))?;
        let bytes = |name: &str| {
            text.lines().find_map(|line| {
                let rest = line.strip_prefix(name)?.trim();
                Some(rest.strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
            })
        };
        let all = bytes("Pss:").ok_or(io::ErrorKind::InvalidData)?;
        let of_files_in_memory = bytes("Pss_Shmem:").unwrap_or(0);
        Ok(Share { own: all.saturating_sub(of_files_in_memory), of_files_in_memory })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_uses_is_read_by_the_kernels_order_of_fields() {
        let stat = "42 (a) b) R 1 2 3 0 -1 4194560 1 2 3 4 50 60 7 8 20 0 9 0 12345 99 77 1";
        let expect = ProcessUsage {
            pid: 42,
            started: 12_345,
            own_ticks: 110,
            children_ticks: 15,
            threads: 9,
            pages: 77,
            is_busy: true,
            is_headless: false,
        };
        assert_eq!(ProcessUsage::parse(42, stat), Some(expect));
        assert_eq!(ProcessUsage::parse(42, "42 (cut) S 1"), None);
    }

    #[test]
    fn we_can_be_looked_at() {
        let own = ProcessUsage::read(Path::new("/proc"), own_pid()).expect("we live");
        assert!(own.threads >= 1 && own.pages > 0, "{own:?}");
        assert!(own.share(Path::new("/proc")).expect("reads").own > 0);
    }
}
