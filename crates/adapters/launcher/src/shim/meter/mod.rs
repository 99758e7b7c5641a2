//! Watches what a program and everything it started use up, by looking at them again and again.
//!
//! Where the kernel counts for a whole group of processes this is not needed; most machines do not
//! let an ordinary user have that. A program can go over a limit between two looks, but it cannot
//! stay there; and however much there is to look at, the next look is not far. One that rests is
//! looked at less often.
//!
//! What looking cannot find: memory that several share and have let go of in part, and pages that
//! were lent to a pipe or a socket. Processor time of children that nobody waits for is estimated.
//! A control group knows all of it.

mod held;
#[cfg(target_os = "linux")]
mod look;
#[cfg(target_os = "linux")]
mod maps;
#[cfg(target_os = "linux")]
mod peers;
mod processes;
mod rest;
mod time;
#[cfg(target_os = "linux")]
mod waiting;
mod walk;

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use wharf_domain::provider::Usage;
use wharf_vocab::Resource;

use self::held::Held;
pub(super) use self::held::HeldMeter;
use self::look::Look;
use self::processes::{ProcessSource, ProcessUsage};
use self::rest::Rest;
use self::time::Time;
use self::walk::Walk;
use super::message::Order;
use crate::group;

/// The shortest and the longest pause between two looks at processes.
const PAUSE: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_millis(100);
/// In between, a pause is this many times as long as the look before it.
const IDLE_SHARE: u32 = 20;
/// Descriptors of all processes together, also those on their way. To look at more takes too long.
const DESCRIPTORS_MAX: u64 = 50_000;
/// A little before most others, so that a program with many processes cannot keep it from looking.
const PRIORITY: i32 = -5;

/// Watches one launch.
#[derive(Debug)]
pub(super) struct Meter {
    usage: Usage,
    source: ProcessSource,
    time: Time,
    rest: Rest,
    walk: Option<Walk>,
    /// Sees what they hold otherwise, if memory or disk are limited.
    eye: Option<HeldMeter>,
    group: Option<PathBuf>,
    look_at: Instant,
}

impl Meter {
    /// A meter for a program that runs; none if nothing is limited.
    pub(super) fn new(
        order: &Order,
        processes: Option<OwnedFd>,
        mut eye: Option<HeldMeter>,
    ) -> Option<Self> {
        let usage = order.fence.usage.clone();
        let walk = usage.disk_bytes.map(|most| Walk::new(own_folders(order), most));
        let needed = usage.memory_bytes.is_some()
            || usage.cpu_ms.is_some()
            || usage.processes.is_some()
            || walk.is_some();
        if !needed {
            return None;
        }
        // Only the first user may; the program has begun and keeps its own.
        let _ = rustix::process::setpriority_process(None, PRIORITY);
        let source = processes
            .map_or(ProcessSource::Below, |folder| ProcessSource::Namespace(Arc::new(folder)));
        let disks = walk.as_ref().map(Walk::devices).unwrap_or_default();
        if let Some(eye) = &mut eye {
            eye.begin(Look::of(order, own_folders(order), source.clone(), disks));
        }
        Some(Self {
            time: Time::default(),
            rest: Rest::default(),
            eye,
            source,
            walk,
            group: order.fence.group.clone(),
            look_at: Instant::now(),
            usage,
        })
    }

    /// Waits until the program has used too much. Giving up the future loses nothing.
    pub(super) async fn over(&mut self) -> Resource {
        loop {
            sleep_until(self.look_at).await;
            let began = Instant::now();
            let over = self.look();
            let now = Instant::now();
            let pause = ((now - began) * IDLE_SHARE).clamp(PAUSE, PAUSE_MAX);
            self.look_at =
                now + if self.is_looking() { pause } else { self.rest.pause(now, pause) };
            if let Some(resource) = over {
                return resource;
            }
        }
    }

    fn look(&mut self) -> Option<Resource> {
        let pids = self.source.pids();
        let most = self.usage.processes;
        // To count them is quick; if there are too many, nothing else matters.
        if most.is_some_and(|most| self.source.count(&pids) > most) {
            return Some(Resource::Processes);
        }
        let processes = self.source.look(&pids);
        let threads: u64 = processes.iter().map(|process| process.threads).sum();
        // The kernel refuses one more than there may be; that it did is what counts.
        let refused = || self.group.as_deref().is_some_and(group::has_refused_processes);
        if most.is_some_and(|most| threads > most) || refused() {
            return Some(Resource::Processes);
        }
        let needs_close_look = self.rest.needs_close_look(&processes, Instant::now());
        if !needs_close_look && !self.is_looking() {
            return None;
        }
        if self.eye.is_some() && self.source.open_files(&pids) > DESCRIPTORS_MAX {
            return Some(Resource::OpenFiles);
        }
        let held = self.eye.as_mut().map(|eye| eye.see(&pids)).unwrap_or_default();
        let memory = |most: &u64| self.memory_bytes(&processes, held, *most) > *most;
        // Who counts every page need not be helped by an estimate.
        let is_over = match self.group.as_deref() {
            Some(group) => group::is_out_of_memory(group),
            None => self.usage.memory_bytes.as_ref().is_some_and(memory),
        };
        if is_over {
            return Some(Resource::Memory);
        }
        let seen_ms = self.time.spent_ms(&processes, self.source.others_ticks());
        let counted_us = |group: &PathBuf| group::count(group, "cpu.stat", "usage_usec ");
        let spent_ms = self.group.as_ref().map_or(seen_ms, |group| counted_us(group) / 1_000);
        if self.usage.cpu_ms.is_some_and(|most| spent_ms > most) {
            return Some(Resource::Cpu);
        }
        let full = self.walk.as_mut().is_some_and(|walk| walk.step(held.disk));
        // What is known to be too much has the clearer name.
        full.then_some(Resource::Disk).or(held.verdict)
    }

    /// Whether a look has begun that takes several steps.
    fn is_looking(&self) -> bool {
        self.walk.as_ref().is_some_and(Walk::is_on_its_way)
            || self.eye.as_ref().is_some_and(HeldMeter::is_looking)
    }

    /// Memory of all. Pages that several share count once for each at first, which is cheap; if
    /// that is too much, they are shared out.
    fn memory_bytes(&self, processes: &[ProcessUsage], held: Held, most: u64) -> u64 {
        let kernel = held.kernel;
        let held = held.files.saturating_add(self.source.shared_files_bytes());
        let touched = processes.iter().map(ProcessUsage::memory_bytes).sum::<u64>();
        let total = held.saturating_add(kernel).saturating_add(touched);
        if total <= most {
            return total;
        }
        let folder = self.source.folder();
        let (mut own, mut of_files) = (0, 0);
        for process in processes.iter().filter(|process| process.pages > 0) {
            match process.share(&folder) {
                Ok(share) => {
                    own += share.own;
                    of_files += share.of_files_in_memory;
                }
                Err(_) => own += process.memory_bytes(),
            }
        }
        // What is held may be mapped as well; it is there only once.
        own.saturating_add(kernel).saturating_add(of_files.max(held))
    }
}

/// Every folder of the machine in which the program has a place of its own to write, whoever
/// shows it: those that lie in another are seen with that one.
fn own_folders(order: &Order) -> Vec<PathBuf> {
    let all: Vec<&PathBuf> = order.private_dirs.iter().chain(&order.fence.artifacts).collect();
    let is_within = |inner: &Path, outer: &Path| inner != outer && inner.starts_with(outer);
    let mut kept: Vec<PathBuf> = Vec::new();
    for folder in &all {
        if !kept.contains(folder) && !all.iter().any(|outer| is_within(folder, outer)) {
            kept.push((*folder).clone());
        }
    }
    kept
}

/// Whether it must be seen what a program holds beside the memory that it touches.
pub(super) fn needs_eye(order: &Order) -> bool {
    let (usage, is_counted) = (&order.fence.usage, order.fence.group.is_some());
    let is_seen = usage.disk_bytes.is_some() || (usage.memory_bytes.is_some() && !is_counted);
    cfg!(target_os = "linux") && is_seen
}

/// Where nothing can be looked at.
#[cfg(not(target_os = "linux"))]
mod look {
    use std::path::PathBuf;

    use super::held::Held;
    use super::processes::ProcessSource;
    use crate::shim::message::Order;

    pub(super) struct Look;

    impl Look {
        pub(super) fn of(
            _order: &Order,
            _folders: Vec<PathBuf>,
            _source: ProcessSource,
            _disks: Vec<u64>,
        ) -> Self {
            Self
        }

        pub(super) fn at(&mut self, _pids: &[i32]) -> Held {
            Held::default()
        }
    }
}
