//! Control groups, where the kernel counts for all processes of a launch together.
//!
//! They are used if an administrator, or the system's own manager, has let this user make groups
//! that count memory and processes: in the group this process is in, or beside it. What was left
//! to this user and is not counted yet is switched on; it can be only where no process is in the
//! group itself. Elsewhere limits are kept by looking again and again.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{Access, access};
use wharf_domain::provider::Usage;

/// What a group must be able to count.
const NEEDED: [&str; 2] = ["memory", "pids"];
/// How the kernel measures a share of processors: so many microseconds in this many.
const PERIOD_US: u64 = 100_000;

/// A place where groups can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Groups {
    folder: PathBuf,
}

impl Groups {
    /// Looks for a place, in our own group first.
    pub(crate) fn find() -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = own_folder(&mounts, &own)?;
        [Some(own.as_path()), own.parent()].into_iter().flatten().find_map(Self::at)
    }

    pub(crate) fn at(folder: &Path) -> Option<Self> {
        let writable = |path: &Path| access(path, Access::WRITE_OK).is_ok();
        let groups = Self { folder: folder.to_owned() };
        if !(writable(folder) && writable(&folder.join("cgroup.procs"))) {
            return None;
        }
        if !groups.counts() {
            groups.count_more();
        }
        groups.counts().then_some(groups)
    }

    /// Whether groups made here can count what they must.
    fn counts(&self) -> bool {
        let counted = words_of(&self.folder.join("cgroup.subtree_control"));
        NEEDED.iter().all(|needed| counted.iter().any(|word| word == needed))
    }

    /// Switches on what may be counted here. It is not for the first group of all, which is
    /// everybody's.
    fn count_more(&self) {
        let is_first = !self.folder.join("cgroup.type").exists();
        let to_have = words_of(&self.folder.join("cgroup.controllers"));
        for name in ["memory", "pids", "cpu"].iter().filter(|_| !is_first) {
            if to_have.iter().any(|word| word == name) {
                let control = self.folder.join("cgroup.subtree_control");
                let _ = fs::OpenOptions::new()
                    .append(true)
                    .open(control)
                    .and_then(|mut control| write!(control, "+{name} "));
            }
        }
    }

    /// Makes a group with these limits; `extra` processes are ours.
    pub(crate) fn make(&self, usage: &Usage, extra: u64) -> io::Result<Group> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = self.folder.join(format!("wharf-{}-{number}", std::process::id()));
        fs::create_dir(&folder)?;
        let group = Group { folder };
        if let Some(bytes) = usage.memory_bytes {
            group.set("memory.max", &bytes.to_string())?;
            // Without these the rest would go on, and slowly; older kernels do not know them.
            let _ = group.set("memory.oom.group", "1");
            let _ = group.set("memory.swap.max", "0");
        }
        if let Some(processes) = usage.processes {
            group.set("pids.max", &(processes + extra).to_string())?;
        }
        if let Some(millicores) = usage.cpu_millicores.filter(|_| self.shares_processors()) {
            let share = millicores.saturating_mul(PERIOD_US) / 1_000;
            group.set("cpu.max", &format!("{share} {PERIOD_US}"))?;
        }
        Ok(group)
    }

    /// Whether a share of processors can be kept.
    pub(crate) fn shares_processors(&self) -> bool {
        words_of(&self.folder.join("cgroup.subtree_control")).iter().any(|word| word == "cpu")
    }
}

/// The words in one of the kernel's files. What was just asked for has a sign before it until the
/// kernel has answered.
fn words_of(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_ascii_whitespace().map(|word| word.trim_start_matches('+').to_owned()).collect()
}

/// The folder of the group that a process is in.
fn own_folder(mounts: &str, own: &str) -> Option<PathBuf> {
    let mount = mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        // The root that is mounted, then where.
        let mut fields = place.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        (kind.starts_with("cgroup2 ") && root == "/").then(|| PathBuf::from(point))
    })?;
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(mount.join(path))
}

/// The group of one launch. When it is dropped, all in it is killed and it is removed.
#[derive(Debug)]
pub(crate) struct Group {
    folder: PathBuf,
}

impl Group {
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn set(&self, name: &str, value: &str) -> io::Result<()> {
        fs::write(self.folder.join(name), value)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        remove(&self.folder);
    }
}

/// Kills what is in a group and removes it, if it is still there.
pub(crate) fn remove(folder: &Path) {
    let _ = fs::write(folder.join("cgroup.kill"), "1");
    let _ = fs::remove_dir(folder);
}

/// Moves this process into a group.
pub(crate) fn join(folder: &Path) -> io::Result<()> {
    fs::write(folder.join("cgroup.procs"), "0")
}

/// Whether one more process was refused in a group.
pub(crate) fn has_refused_processes(folder: &Path) -> bool {
    count(folder, "pids.events", "max ") > 0
}

/// Whether a group had no memory left and the kernel killed in it.
pub(crate) fn is_out_of_memory(folder: &Path) -> bool {
    count(folder, "memory.events", "oom_kill ") > 0
}

/// How often something happened in a group, by the kernel's file and its name there.
pub(crate) fn count(folder: &Path, file: &str, name: &str) -> u64 {
    let text = fs::read_to_string(folder.join(file)).unwrap_or_default();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    value.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_group_is_found_where_the_newer_kind_is_mounted() {
        let mounts = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
                      41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
        let own = "4:memory:/a\n0::/user.slice/wharf.service\n";
        let expect = "/sys/fs/cgroup/unified/user.slice/wharf.service";
        assert_eq!(own_folder(mounts, own), Some(expect.into()));
        assert_eq!(own_folder(mounts, "4:memory:/a\n"), None);
        assert_eq!(own_folder("31 23 0:28 / /x rw - cgroup cgroup rw,memory\n", own), None);
    }

    #[test]
    fn a_place_that_does_not_count_is_not_used() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join("cgroup.procs"), "").expect("writes");
        for (counted, usable) in [("", false), ("memory cpu", false), ("cpu memory pids", true)] {
            fs::write(dir.path().join("cgroup.subtree_control"), counted).expect("writes");
            assert_eq!(Groups::at(dir.path()).is_some(), usable, "{counted}");
        }
        assert!(Groups::at(&dir.path().join("missing")).is_none());
    }

    #[test]
    fn what_was_left_to_us_and_is_not_counted_yet_is_switched_on() {
        let dir = tempfile::tempdir().expect("a directory");
        let write =
            |name: &str, text: &str| fs::write(dir.path().join(name), text).expect("writes");
        write("cgroup.procs", "");
        write("cgroup.subtree_control", "");
        write("cgroup.controllers", "cpu io memory pids\n");
        assert!(Groups::at(dir.path()).is_none(), "the first group is everybody's");
        write("cgroup.type", "domain\n");
        let groups = Groups::at(dir.path()).expect("it counts");
        assert!(groups.shares_processors());
        let asked =
            fs::read_to_string(dir.path().join("cgroup.subtree_control")).expect("is there");
        assert_eq!(asked, "+memory +pids +cpu ", "and nothing else");
        write("cgroup.controllers", "cpu io\n");
        write("cgroup.subtree_control", "");
        assert!(Groups::at(dir.path()).is_none(), "memory was not left to us");
    }

    #[test]
    fn limits_are_written_as_the_kernel_reads_them() {
        let dir = tempfile::tempdir().expect("a directory");
        let groups = Groups { folder: dir.path().to_owned() };
        fs::write(dir.path().join("cgroup.subtree_control"), "cpu memory pids").expect("writes");
        let usage = Usage {
            memory_bytes: Some(1_000_000),
            processes: Some(20),
            cpu_millicores: Some(1_500),
            ..Usage::default()
        };
        let group = groups.make(&usage, 1).expect("makes it");
        let read = |name: &str| fs::read_to_string(group.folder().join(name)).expect("is set");
        assert_eq!(read("memory.max"), "1000000");
        assert_eq!(read("memory.oom.group"), "1");
        assert_eq!(read("pids.max"), "21");
        assert_eq!(read("cpu.max"), "150000 100000");
    }

    #[test]
    fn what_happened_is_counted_by_its_whole_name() {
        let dir = tempfile::tempdir().expect("a directory");
        let text = "low 0\nmax 7\noom 1\noom_kill 3\n";
        fs::write(dir.path().join("memory.events"), text).expect("writes");
        assert_eq!(count(dir.path(), "memory.events", "oom_kill "), 3);
        assert_eq!(count(dir.path(), "memory.events", "max "), 7);
        assert_eq!(count(dir.path(), "missing", "max "), 0);
    }
}
