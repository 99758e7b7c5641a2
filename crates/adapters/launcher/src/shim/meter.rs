//! Watches what a program and everything it started use up, by looking at them again and again.
//!
//! Where the kernel counts for a whole group of processes this is not needed; most machines do not
//! let an ordinary user have that. Looking costs a few percent of one processor at most: the more
//! there is to look at, the longer the pauses. A program can go over a limit between two looks,
//! but it cannot stay there.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use wharf_domain::agent::Usage;
use wharf_vocab::Resource;

use super::message::Order;
use crate::group;
use crate::tree::{self, own_pid};

/// The shortest pause between two looks at processes.
const PAUSE: Duration = Duration::from_millis(50);
/// The shortest pause between two walks through folders.
const WALK_PAUSE: Duration = Duration::from_millis(250);
/// A pause is this many times as long as the look before it.
const IDLE_SHARE: u32 = 20;
/// Entries of folders that are looked at between two looks at processes.
const ENTRIES_AT_ONCE: u32 = 4_000;
/// What an empty file takes at least.
const ENTRY_BYTES: u64 = 256;

/// Watches one launch.
#[derive(Debug)]
pub(super) struct Meter {
    usage: Usage,
    source: Source,
    time: Time,
    walk: Option<Walk>,
    group: Option<PathBuf>,
    look_at: Instant,
}

impl Meter {
    /// A meter for a program that runs; none if nothing is limited.
    pub(super) fn new(order: &Order, processes: Option<OwnedFd>) -> Option<Self> {
        let usage = order.fence.usage.clone();
        let walk = usage.disk_bytes.map(|most| Walk::new(order.private_dirs.clone(), most));
        let needed = usage.memory_bytes.is_some()
            || usage.cpu_ms.is_some()
            || usage.processes.is_some()
            || walk.is_some();
        let source = processes.map_or(Source::Below, Source::Namespace);
        let look_at = Instant::now();
        let (time, group) = (Time::default(), order.fence.group.clone());
        needed.then(|| Self { usage, source, time, walk, group, look_at })
    }

    /// Waits until the program has used too much. Giving up the future loses nothing.
    pub(super) async fn over(&mut self) -> Resource {
        loop {
            sleep_until(self.look_at).await;
            let began = Instant::now();
            let over = self.look();
            let now = Instant::now();
            self.look_at = now + PAUSE.max((now - began) * IDLE_SHARE);
            if let Some(resource) = over {
                return resource;
            }
        }
    }

    fn look(&mut self) -> Option<Resource> {
        let processes = self.source.look();
        let threads: u64 = processes.iter().map(|process| process.threads).sum();
        // The kernel refuses one more than there may be; that it did is what counts.
        let refused = |group: &PathBuf| group::count(group, "pids.events", "max ") > 0;
        if self.usage.processes.is_some_and(|most| threads > most)
            || self.group.as_ref().is_some_and(refused)
        {
            return Some(Resource::Processes);
        }
        if let Some(most) = self.usage.memory_bytes
            && self.source.memory_bytes(&processes, most) > most
        {
            return Some(Resource::Memory);
        }
        let spent_ms = self.time.spent_ms(&processes, self.source.others_ticks());
        if self.usage.cpu_ms.is_some_and(|most| spent_ms > most) {
            return Some(Resource::Cpu);
        }
        let full = self.walk.as_mut().is_some_and(Walk::step);
        full.then_some(Resource::Disk)
    }
}

/// Where the processes are found.
#[derive(Debug)]
enum Source {
    /// In a `/proc` that knows no others.
    Namespace(OwnedFd),
    /// Below this process.
    Below,
}

impl Source {
    fn folder(&self) -> PathBuf {
        match self {
            Self::Namespace(folder) => format!("/proc/self/fd/{}", folder.as_raw_fd()).into(),
            Self::Below => "/proc".into(),
        }
    }

    /// The program's processes as they are now.
    fn look(&self) -> Vec<Spent> {
        let folder = self.folder();
        let pids: Vec<i32> = match self {
            Self::Namespace(_) => match fs::read_dir(&folder) {
                Ok(entries) => entries
                    .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
                    .collect(),
                Err(_) => Vec::new(),
            },
            Self::Below => tree::below(own_pid()).into_iter().map(|process| process.pid).collect(),
        };
        // The first process of a namespace is ours; what it buried counts, itself does not.
        let is_ours = |pid: i32| pid == 1 && matches!(self, Self::Namespace(_));
        pids.into_iter()
            .filter_map(|pid| {
                let spent = Spent::read(&folder, pid)?;
                Some(if is_ours(pid) { spent.of_children_only() } else { spent })
            })
            .collect()
    }

    /// Time of processes that were buried here.
    fn others_ticks(&self) -> u64 {
        match self {
            Self::Namespace(_) => 0,
            Self::Below => {
                Spent::read(Path::new("/proc"), own_pid()).map_or(0, |own| own.children_ticks)
            }
        }
    }

    /// Memory of all. Pages that several share count once for each at first, which is cheap; if
    /// that is too much, they are shared out.
    fn memory_bytes(&self, processes: &[Spent], most: u64) -> u64 {
        let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
        let simple = |process: &Spent| process.pages * page;
        let total: u64 = processes.iter().map(simple).sum();
        if total <= most {
            return total;
        }
        let folder = self.folder();
        let shared =
            |process: &Spent| share_bytes(&folder, process.pid).unwrap_or_else(|_| simple(process));
        processes.iter().map(shared).sum()
    }
}

/// A process's fair share of the memory it uses.
fn share_bytes(folder: &Path, pid: i32) -> io::Result<u64> {
    let text = fs::read_to_string(folder.join(pid.to_string()).join("smaps_rollup"))?;
    let kilobytes = text.lines().find_map(|line| {
        line.strip_prefix("Pss:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    });
    kilobytes.map(|kilobytes| kilobytes * 1024).ok_or(io::ErrorKind::InvalidData.into())
}

/// What one process uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Spent {
    pid: i32,
    started: u64,
    own_ticks: u64,
    /// Of children that it buried.
    children_ticks: u64,
    threads: u64,
    pages: u64,
}

impl Spent {
    fn read(folder: &Path, pid: i32) -> Option<Self> {
        let stat = fs::read(folder.join(pid.to_string()).join("stat")).ok()?;
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
        })
    }

    fn of_children_only(self) -> Self {
        Self { own_ticks: 0, threads: 0, pages: 0, ..self }
    }
}

/// Adds up processor time. A parent that ignores its children's end does not inherit their time,
/// and a child may end between two looks; so it is added up in two ways, and the larger counts.
#[derive(Debug, Default)]
struct Time {
    seen: HashMap<(i32, u64), u64>,
    gone_ticks: u64,
}

impl Time {
    fn spent_ms(&mut self, processes: &[Spent], others_ticks: u64) -> u64 {
        let now: HashMap<(i32, u64), u64> = processes
            .iter()
            .map(|process| ((process.pid, process.started), process.own_ticks))
            .collect();
        let gone = self.seen.iter().filter(|(process, _)| !now.contains_key(*process));
        self.gone_ticks += gone.map(|(_, ticks)| ticks).sum::<u64>();
        let own: u64 = now.values().sum();
        let inherited: u64 = processes.iter().map(|process| process.children_ticks).sum();
        self.seen = now;
        let ticks = own + self.gone_ticks.max(inherited + others_ticks);
        ticks * 1_000 / rustix::param::clock_ticks_per_second().max(1)
    }
}

/// A walk through the program's own folders, some steps at a time.
#[derive(Debug)]
struct Walk {
    roots: Vec<PathBuf>,
    most: u64,
    left: Vec<PathBuf>,
    bytes: u64,
    spent: Duration,
    begin_at: Instant,
}

impl Walk {
    fn new(roots: Vec<PathBuf>, most: u64) -> Self {
        let begin_at = Instant::now();
        Self { roots, most, left: Vec::new(), bytes: 0, spent: Duration::ZERO, begin_at }
    }

    /// Goes on; says whether more was found than there may be.
    fn step(&mut self) -> bool {
        let began = Instant::now();
        if self.left.is_empty() {
            if began < self.begin_at {
                return false;
            }
            self.left.clone_from(&self.roots);
            (self.bytes, self.spent) = (0, Duration::ZERO);
        }
        let mut entries_left = ENTRIES_AT_ONCE;
        while let Some(folder) = self.left.pop() {
            let Ok(entries) = fs::read_dir(folder) else { continue };
            for entry in entries.flatten() {
                self.add(&entry);
                entries_left = entries_left.saturating_sub(1);
                if self.bytes > self.most {
                    return true;
                }
            }
            if entries_left == 0 {
                break;
            }
        }
        let now = Instant::now();
        self.spent += now - began;
        self.begin_at = now + WALK_PAUSE.max(self.spent * IDLE_SHARE);
        false
    }

    fn add(&mut self, entry: &fs::DirEntry) {
        let Ok(data) = entry.metadata() else { return };
        self.bytes += (data.blocks() * 512).max(ENTRY_BYTES);
        if data.is_dir() {
            self.left.push(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, own_ticks: u64, children_ticks: u64) -> Spent {
        Spent { pid, started: 1, own_ticks, children_ticks, threads: 1, pages: 0 }
    }

    #[test]
    fn what_a_process_uses_is_read_by_the_kernels_order_of_fields() {
        let stat = "42 (a) b) S 1 2 3 0 -1 4194560 1 2 3 4 50 60 7 8 20 0 9 0 12345 99 77 1";
        let expect = Spent {
            pid: 42,
            started: 12_345,
            own_ticks: 110,
            children_ticks: 15,
            threads: 9,
            pages: 77,
        };
        assert_eq!(Spent::parse(42, stat), Some(expect));
        assert_eq!(Spent::parse(42, "42 (cut) S 1"), None);
    }

    #[test]
    fn time_of_children_that_nobody_inherited_is_not_forgotten() {
        let second = rustix::param::clock_ticks_per_second();
        let mut time = Time::default();
        assert_eq!(time.spent_ms(&[process(1, second, 0), process(2, second, 0)], 0), 2_000);
        assert_eq!(time.spent_ms(&[process(1, second, 0)], 0), 2_000, "it went without heirs");
        assert_eq!(time.spent_ms(&[process(1, second, 3 * second)], 0), 4_000, "heirs know more");
        assert_eq!(time.spent_ms(&[process(1, second, 0)], 3 * second), 4_000, "so do we");
    }

    #[test]
    fn a_walk_counts_files_below_and_starts_over() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::create_dir_all(dir.path().join("a/b")).expect("makes it");
        let mut walk = Walk::new(vec![dir.path().to_owned()], 256 * 1024);
        assert!(!walk.step());
        fs::write(dir.path().join("a/b/large"), vec![1; 512 * 1024]).expect("writes");
        walk.begin_at = Instant::now();
        assert!(walk.step());
    }

    #[test]
    fn we_can_be_looked_at() {
        let own = Spent::read(Path::new("/proc"), own_pid()).expect("we live");
        assert!(own.threads >= 1 && own.pages > 0, "{own:?}");
        assert!(share_bytes(Path::new("/proc"), own_pid()).expect("reads") > 0);
    }
}
