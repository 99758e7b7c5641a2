//! Watches what a program and everything it started use up, by looking at them again and again.
//!
//! Where the kernel counts for a whole group of processes this is not needed; most machines do not
//! let an ordinary user have that. A program can go over a limit between two looks, but it cannot
//! stay there; and however much there is to look at, the next look is not far.
//!
//! What looking cannot find: memory that is only mapped and was never touched, or that is only on
//! its way in a socket. Processor time of children that nobody waits for is estimated. A control
//! group knows both.

mod held;
mod processes;
mod time;
mod walk;

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use wharf_domain::agent::Usage;
use wharf_vocab::Resource;

use self::held::Held;
use self::processes::{Source, Spent};
use self::time::Time;
use self::walk::Walk;
use super::message::Order;
use crate::group;

/// The shortest and the longest pause between two looks at processes.
const PAUSE: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_millis(100);
/// The longest pause between two looks at descriptors.
const HELD_PAUSE_MAX: Duration = Duration::from_millis(500);
/// In between, a pause is this many times as long as the look before it.
const IDLE_SHARE: u32 = 20;
/// A little before most others, so that a program with many processes cannot keep it from looking.
const PRIORITY: i32 = -5;

/// Watches one launch.
#[derive(Debug)]
pub(super) struct Meter {
    usage: Usage,
    source: Source,
    time: Time,
    walk: Option<Walk>,
    disks: Vec<u64>,
    held: Held,
    look_at_held: Instant,
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
        if !needed {
            return None;
        }
        // Only the first user may; the program has begun and keeps its own.
        let _ = rustix::process::setpriority_process(None, PRIORITY);
        let now = Instant::now();
        Some(Self {
            source: processes.map_or(Source::Below, Source::Namespace),
            time: Time::default(),
            disks: walk.as_ref().map(Walk::devices).unwrap_or_default(),
            walk,
            held: Held::default(),
            look_at_held: now,
            group: order.fence.group.clone(),
            look_at: now,
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
            self.look_at = now + ((now - began) * IDLE_SHARE).clamp(PAUSE, PAUSE_MAX);
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
        let refused = |group: &PathBuf| group::count(group, "pids.events", "max ") > 0;
        if most.is_some_and(|most| threads > most) || self.group.as_ref().is_some_and(refused) {
            return Some(Resource::Processes);
        }
        self.look_at_held(&pids);
        if self.usage.memory_bytes.is_some_and(|most| self.memory_bytes(&processes, most) > most) {
            return Some(Resource::Memory);
        }
        let seen_ms = self.time.spent_ms(&processes, self.source.others_ticks());
        let counted_us = |group: &PathBuf| group::count(group, "cpu.stat", "usage_usec ");
        let spent_ms = self.group.as_ref().map_or(seen_ms, |group| counted_us(group) / 1_000);
        if self.usage.cpu_ms.is_some_and(|most| spent_ms > most) {
            return Some(Resource::Cpu);
        }
        let removed = self.held.disk;
        let full = self.walk.as_mut().is_some_and(|walk| walk.step(removed));
        full.then_some(Resource::Disk)
    }

    /// Looks at descriptors if it is time to.
    fn look_at_held(&mut self, pids: &[i32]) {
        let is_limited = self.usage.memory_bytes.is_some() || self.walk.is_some();
        let began = Instant::now();
        if !is_limited || began < self.look_at_held {
            return;
        }
        self.held = Held::look(&self.source.folder(), pids, &self.disks);
        let now = Instant::now();
        self.look_at_held = now + ((now - began) * IDLE_SHARE).min(HELD_PAUSE_MAX);
    }

    /// Memory of all. Pages that several share count once for each at first, which is cheap; if
    /// that is too much, they are shared out.
    fn memory_bytes(&self, processes: &[Spent], most: u64) -> u64 {
        let held = self.held.memory + self.source.shared_files_bytes();
        let total = held + processes.iter().map(Spent::memory_bytes).sum::<u64>();
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
        own + of_files.max(held)
    }
}
