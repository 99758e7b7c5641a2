//! Which processes there are, who is below whom, and how to kill exactly those.
//!
//! A process id may be given to a stranger as soon as its process is gone. So a process is known
//! by its id and its start time, and a signal goes through a descriptor that was opened before
//! the start time was read again: it reaches the process that was meant, or nobody.

use std::collections::HashSet;
use std::fs;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid, kill_process};

/// One process, as the kernel described it a moment ago.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// Whether it is dead and only waits for its parent to take note.
    pub(crate) is_zombie: bool,
    started: u64,
}

impl Process {
    /// The process that has this id now.
    pub(crate) fn find(pid: i32) -> Option<Self> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        Self::parse(pid, &String::from_utf8_lossy(&stat))
    }

    /// The name in the second field may hold anything, brackets and spaces included.
    fn parse(pid: i32, stat: &str) -> Option<Self> {
        let (_, fields) = stat.rsplit_once(')')?;
        let mut fields = fields.split_ascii_whitespace();
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        let session = fields.next()?.parse().ok()?;
        let started = fields.nth(15)?.parse().ok()?;
        Some(Self { pid, parent, group, session, is_zombie: matches!(state, "Z" | "X"), started })
    }

    /// Kills the process if it is still the same one. Whatever went wrong before, it spares
    /// ourselves and the machine's first process.
    pub(crate) fn kill(&self) {
        if self.pid > 1 && self.pid != own_pid() {
            self.signal(Signal::KILL);
        }
    }

    fn signal(&self, signal: Signal) {
        let Some(pid) = Pid::from_raw(self.pid) else { return };
        let sent = self.signal_by_descriptor(pid, signal);
        // An old kernel has no such descriptors; then the moment between two calls must do.
        if matches!(sent, Err(Errno::NOSYS | Errno::MFILE | Errno::NFILE)) && self.is_same() {
            let _ = kill_process(pid, signal);
        }
    }

    #[cfg(target_os = "linux")]
    fn signal_by_descriptor(&self, pid: Pid, signal: Signal) -> Result<(), Errno> {
        use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
        let descriptor = pidfd_open(pid, PidfdFlags::empty())?;
        if self.is_same() { pidfd_send_signal(descriptor, signal) } else { Ok(()) }
    }

    #[cfg(not(target_os = "linux"))]
    fn signal_by_descriptor(&self, _pid: Pid, _signal: Signal) -> Result<(), Errno> {
        Err(Errno::NOSYS)
    }

    fn is_same(&self) -> bool {
        Self::find(self.pid).is_some_and(|now| now.started == self.started)
    }
}

/// Every process this user can see. Empty where the system has no `/proc`.
fn all() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(Process::find)
        .collect()
}

/// Everything below `root`, itself not included.
pub(crate) fn below(root: i32) -> Vec<Process> {
    with_descendants(&all(), |process| process.parent == root)
}

/// Everything in the session that `leader` leads or led, and everything below it; the leader
/// itself not included. It answers with nothing when we are in there ourselves: then `leader` is
/// not the leader of a session that we let somebody make, and killing it would hit strangers.
pub(crate) fn in_session(leader: i32) -> Vec<Process> {
    if leader <= 1 {
        return Vec::new();
    }
    let mut found = with_descendants(&all(), |process| process.session == leader);
    if found.iter().any(|process| process.pid == own_pid()) {
        return Vec::new();
    }
    found.retain(|process| process.pid != leader);
    found
}

/// The ids of everything below `root`, itself not included, up to so many. The kernel says for
/// each process whom it started, so that not all processes of the machine must be looked at.
pub(crate) fn children_of(root: i32, at_most: usize) -> Vec<i32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(pid) = found.get(next).copied().filter(|_| found.len() <= at_most) {
        next += 1;
        let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        for thread in threads {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            let children = children.split_ascii_whitespace().filter_map(|pid| pid.parse().ok());
            found.extend(children.filter(|child: &i32| *child != root));
        }
    }
    found.remove(0);
    found.truncate(at_most);
    found
}

/// Our own process id.
pub(crate) fn own_pid() -> i32 {
    getpid().as_raw_nonzero().get()
}

/// Whether `pid` is `root` or below it.
pub(crate) fn is_below(pid: i32, root: i32) -> bool {
    /// Deeper trees than this are loops made by ids that changed hands while we looked.
    const DEPTH_MAX: usize = 1_000;
    let parent = |pid: &i32| Process::find(*pid).map(|process| process.parent);
    std::iter::successors(Some(pid), parent).take(DEPTH_MAX).any(|ancestor| ancestor == root)
}

fn with_descendants(all: &[Process], is_root: impl Fn(&Process) -> bool) -> Vec<Process> {
    let mut found: Vec<Process> = all.iter().filter(|process| is_root(process)).copied().collect();
    let mut known: HashSet<i32> = found.iter().map(|process| process.pid).collect();
    let mut next = 0;
    while next < found.len() {
        let parent = found[next].pid;
        for process in all.iter().filter(|process| process.parent == parent) {
            if known.insert(process.pid) {
                found.push(*process);
            }
        }
        next += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_confuse_the_fields() {
        let stat = "42 (a) S 1 (b) Z 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 12345 99";
        let process = Process::parse(42, stat).expect("parses");
        let expect =
            Process { pid: 42, parent: 7, group: 8, session: 9, is_zombie: true, started: 12_345 };
        assert_eq!(process, expect);
        assert_eq!(Process::parse(42, "42 (cut) S 1"), None);
    }

    #[test]
    fn we_find_ourselves_and_our_ancestors() {
        let me = own_pid();
        let process = Process::find(me).expect("we live");
        assert!(process.is_same());
        assert!(is_below(me, process.parent));
        assert!(!is_below(process.parent, me));
        assert!(below(process.parent).iter().any(|below| below.pid == me));
    }

    #[test]
    fn a_session_that_is_not_below_us_is_nobodys_business() {
        let me = Process::find(own_pid()).expect("we live");
        for leader in [-1, 0, 1, me.session] {
            assert_eq!(in_session(leader), [], "{leader}");
        }
    }

    #[test]
    fn a_process_with_the_same_id_and_another_start_is_a_stranger() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("starts");
        let pid = i32::try_from(child.id()).expect("fits");
        let process = Process::find(pid).expect("lives");
        let stranger = Process { started: process.started + 1, ..process };
        assert!(process.is_same());
        assert!(!stranger.is_same());
        stranger.kill();
        process.kill();
        assert!(!child.wait().expect("waits").success());
    }
}
