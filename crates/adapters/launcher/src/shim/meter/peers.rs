//! The program's processes as descriptors, by which descriptors of theirs can be had.
//!
//! In a namespace processes have other ids than outside, where we are.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use super::processes::ProcessUsage;

/// A process by its id where it is and the time of its start.
pub(super) type Id = (i32, u64);

#[derive(Debug, Default)]
pub(super) struct Peers {
    /// The namespace in which they are, as the kernel names it.
    namespace: Option<OsString>,
    known: HashMap<Id, OwnedFd>,
    /// Whether those outside were looked through since it was last asked who is there.
    is_fresh: bool,
}

impl Peers {
    /// Processes that our children are among; they are in a namespace of their own.
    pub(super) fn of_children() -> Self {
        let namespace = fs::read_link("/proc/self/ns/pid_for_children").ok();
        Self { namespace: namespace.map(Into::into), ..Self::default() }
    }

    /// Forgets who is not among these any more.
    pub(super) fn retain(&mut self, folder: &Path, pids: &[i32]) {
        self.is_fresh = false;
        let is_there = |(pid, started): &Id| {
            pids.contains(pid)
                && ProcessUsage::read(folder, *pid).is_some_and(|now| now.started == *started)
        };
        self.known.retain(|id, _| is_there(id));
    }

    /// A descriptor of a process's own. It is held only as long as it must be.
    pub(super) fn take(&mut self, folder: &Path, id: Id, number: i32) -> io::Result<OwnedFd> {
        if !self.known.contains_key(&id) {
            self.find(folder, id)?;
        }
        let process = self.known.get(&id).ok_or(Errno::PERM)?;
        Ok(pidfd_getfd(process, number, PidfdGetfdFlags::empty())?)
    }

    fn find(&mut self, folder: &Path, id: Id) -> io::Result<()> {
        let Some(namespace) = &self.namespace else {
            let pid = Pid::from_raw(id.0).ok_or(Errno::SRCH)?;
            self.known.insert(id, pidfd_open(pid, PidfdFlags::empty())?);
            return Ok(());
        };
        if self.is_fresh {
            return Err(Errno::PERM.into());
        }
        self.is_fresh = true;
        for outside in fs::read_dir("/proc")?.flatten() {
            let Some(id) = outside.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let is_inside = || {
                fs::read_link(outside.path().join("ns/pid")).is_ok_and(|own| *own == **namespace)
            };
            if !is_inside() {
                continue;
            }
            let Ok(process) =
                pidfd_open(Pid::from_raw(id).ok_or(Errno::SRCH)?, PidfdFlags::empty())
            else {
                continue;
            };
            let inside = id_inside(&outside.path());
            let inside = inside.and_then(|inside| ProcessUsage::read(folder, inside));
            // Its id may have become another's before it was opened, but not after.
            if let Some(inside) = inside.filter(|_| is_inside()) {
                self.known.insert((inside.pid, inside.started), process);
            }
        }
        Ok(())
    }
}

/// The id that a process has in its own namespace.
fn id_inside(process: &Path) -> Option<i32> {
    let status = fs::read_to_string(process.join("status")).ok()?;
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    ids.split_ascii_whitespace().last()?.parse().ok()
}
