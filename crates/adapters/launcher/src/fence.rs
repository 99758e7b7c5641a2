//! How firmly a program can be fenced in on this machine, and what is ordered for one launch.
//!
//! What a machine can do is found out by doing it once, the whole way but for the program. So
//! what is promised afterwards is what was seen to work.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use tokio::time::timeout;
use wharf_domain::provider::Usage;
use wharf_ports::launcher::{Fence, FenceReport};
use wharf_vocab::limits::LAUNCH_START_MS;
use wharf_vocab::{Keeping, SandboxLevel};

use crate::error::{Error, reason};
use crate::group::Groups;
use crate::shim::handover::Handover;
use crate::shim::message::{
    FenceOrder, InboundOrder, Layers, Order, ShimInbox, ShimReport, StartFailure, StartStep,
};
use crate::spawner::{Shim, ShimKind, Spawner};

/// A folder that every Linux has, for a trial to stand in.
const TRIAL_FOLDER: &str = "/usr";
/// The first version of Landlock that knows TCP ports.
const LANDLOCK_WITH_PORTS: i32 = 4;

/// What this machine can do.
#[derive(Debug, Clone)]
pub(crate) struct Ability {
    layers: Layers,
    /// The firmest level, if all layers are there.
    firmest: SandboxLevel,
    landlock: i32,
    /// Whether the kernel counts process ids in each namespace.
    ids_apart: bool,
    /// Why there is not more, one sentence each.
    reasons: Vec<String>,
}

impl Ability {
    /// Tries it out, with the most first. Layers in `missing` fail as if they were not there.
    pub(crate) async fn find_out(spawner: &Arc<Spawner>, missing: Layers) -> Self {
        let mut reasons = Vec::new();
        if !cfg!(target_os = "linux") {
            reasons.push("Only Linux can fence a program in any further.".to_owned());
            return Self::none(reasons);
        }
        let mut layers = Layers::ALL;
        let mut firmest = SandboxLevel::Strict;
        while layers != Layers::NONE {
            let failure = match trial(spawner, layers, firmest, missing).await {
                Ok((landlock, ids_apart)) => {
                    return Self { layers, firmest, landlock, ids_apart, reasons };
                }
                Err(failure) => failure,
            };
            if failure.step == StartStep::Files && firmest == SandboxLevel::Strict {
                firmest = SandboxLevel::Standard;
                continue;
            }
            let what = match failure.step {
                StartStep::Landlock => {
                    layers.landlock = false;
                    "Landlock is not available"
                }
                StartStep::Seccomp => {
                    layers.seccomp = false;
                    "System calls cannot be filtered"
                }
                StartStep::Namespaces | StartStep::Files | StartStep::Network
                    if layers.namespaces =>
                {
                    layers.namespaces = false;
                    "Namespaces cannot be made"
                }
                _ => {
                    layers = Layers::NONE;
                    "Fencing a program in failed"
                }
            };
            reasons
                .push(format!("{what}: {}.", reason(failure.errno.map(Errno::from_raw_os_error))));
        }
        Self::none(reasons)
    }

    fn none(reasons: Vec<String>) -> Self {
        let (layers, firmest) = (Layers::NONE, SandboxLevel::Basic);
        Self { layers, firmest, landlock: 0, ids_apart: false, reasons }
    }

    /// Of a machine that nobody asked.
    pub(crate) fn unknown() -> Self {
        Self::none(Vec::new())
    }

    fn level(&self) -> SandboxLevel {
        if self.layers == Layers::ALL { self.firmest } else { SandboxLevel::Basic }
    }

    /// The most that can be had.
    pub(crate) fn achieved(&self, groups: Option<&Groups>) -> FenceReport {
        let mut notes = self.reasons.clone();
        if self.layers.landlock {
            notes.push(format!("Landlock is there in version {}.", self.landlock));
        }
        if groups.is_none() && cfg!(target_os = "linux") {
            notes.push(NO_GROUPS.to_owned());
        }
        let level = self.level();
        FenceReport { level, notes, limits: kept(level, groups).into() }
    }

    /// What is ordered for a launch, or why it must not be.
    pub(crate) fn order(
        &self,
        fence: &Fence,
        groups: Option<&Groups>,
    ) -> Result<(FenceReport, FenceOrder), Error> {
        let mut notes = Vec::new();
        let (level, layers) = if fence.level <= SandboxLevel::Basic {
            (fence.level, Layers::NONE)
        } else {
            let level = self.level().min(fence.level);
            if level < fence.level {
                notes.extend(self.reasons.iter().cloned());
            }
            (self.with_ports(level, fence, &mut notes), self.layers)
        };
        if level < SandboxLevel::Standard && layers != Layers::NONE {
            notes.push(partial(layers).to_owned());
        }
        notes.extend(namespace_notes(fence, layers));
        if fence.egress.is_some() && layers.landlock && !layers.namespaces {
            notes.push("No host can be reached, because that takes namespaces.".to_owned());
        }
        notes.extend(usage_notes(&fence.usage, layers, groups));
        if level < fence.minimum {
            return Err(Error::Sandbox { level, minimum: fence.minimum, notes });
        }
        let order = FenceOrder {
            level,
            layers,
            trial: false,
            missing: Layers::NONE,
            read: fence.read.clone(),
            write: fence.write.clone(),
            sockets: fence.sockets.clone(),
            egress: fence.egress.clone(),
            tcp_port: fence.tcp_port,
            inbound: fence
                .inbound
                .as_ref()
                .map(|inbound| InboundOrder { socket: inbound.socket.clone(), port: inbound.port }),
            artifacts: fence.artifacts.clone().filter(|_| layers.namespaces),
            usage: fence.usage.clone(),
            ids: fence.usage.processes.filter(|_| self.ids_apart).map(ids_for),
            group: None,
            homes: std::env::home_dir().into_iter().collect(),
            hidden: fence.hidden.clone(),
        };
        let mut limits = BTreeMap::from(kept(level, groups));
        limits.retain(|name, _| is_set(&fence.usage, name));
        Ok((FenceReport { level, notes, limits }, order))
    }

    /// The level that is left if the program shares the machine's network.
    fn with_ports(
        &self,
        level: SandboxLevel,
        fence: &Fence,
        notes: &mut Vec<String>,
    ) -> SandboxLevel {
        let Some(port) = fence.tcp_port.filter(|_| level >= SandboxLevel::Standard) else {
            return level;
        };
        if self.landlock < LANDLOCK_WITH_PORTS {
            notes.push("It shares the machine's network, which Landlock here cannot limit.".into());
            return SandboxLevel::Basic;
        }
        notes.push(format!(
            "It shares the machine's network, because it reaches the core by TCP; it may connect \
             only to port {port}."
        ));
        level.min(SandboxLevel::Standard)
    }
}

const NO_GROUPS: &str = "No control group of version 2 that counts memory and processes may be \
                         used here, so both are measured.";

/// How each limit is kept, by its name in an API.
fn kept(level: SandboxLevel, groups: Option<&Groups>) -> [(&'static str, Keeping); 6] {
    use Keeping::{Kernel, Measured, Unkept};
    let is_linux = cfg!(target_os = "linux");
    let if_so = |holds: bool, how| if holds && is_linux { how } else { Unkept };
    let counted = if groups.is_some() { Kernel } else { if_so(true, Measured) };
    [
        ("memory_bytes", counted),
        ("cpu_ms", if_so(true, Measured)),
        ("cpu_millicores", if_so(groups.is_some_and(Groups::shares_processors), Kernel)),
        ("processes", counted),
        ("open_files", if_so(level > SandboxLevel::None, Kernel)),
        ("disk_bytes", if_so(true, Measured)),
    ]
}

/// Whether a limit is set.
fn is_set(usage: &Usage, name: &str) -> bool {
    let limit = match name {
        "memory_bytes" => usage.memory_bytes,
        "cpu_ms" => usage.cpu_ms,
        "cpu_millicores" => usage.cpu_millicores,
        "processes" => usage.processes,
        "open_files" => usage.open_files,
        _ => usage.disk_bytes,
    };
    limit.is_some()
}

fn partial(layers: Layers) -> &'static str {
    match (layers.namespaces, layers.landlock, layers.seccomp) {
        (false, true, true) => "Landlock and a filter of system calls are used all the same.",
        (false, true, false) => "Landlock is used all the same.",
        (false, false, _) => "A filter of system calls is used all the same.",
        _ => "The layers that are there are used all the same.",
    }
}

/// What of a fence is done in another way, or not at all, for want of namespaces.
fn namespace_notes(fence: &Fence, layers: Layers) -> Vec<String> {
    let mut notes = Vec::new();
    let shares_network = !layers.namespaces || fence.tcp_port.is_some();
    if let Some(inbound) = fence.inbound.as_ref().filter(|_| shares_network) {
        let port = inbound.port;
        notes.push(format!(
            "It listens on port {port} of the machine, where others can connect to it, too."
        ));
    }
    if fence.artifacts.is_some() && !layers.namespaces {
        notes.push("Nothing is shown at /artifacts, because that takes namespaces.".to_owned());
    }
    notes
}

fn usage_notes(usage: &Usage, layers: Layers, groups: Option<&Groups>) -> Vec<String> {
    let mut notes = Vec::new();
    let (is_counted, limits_memory) = (groups.is_some(), usage.memory_bytes.is_some());
    if !is_counted && usage.cpu_ms.is_some() {
        notes.push("Processor time of children that nobody waits for is estimated.".to_owned());
    }
    if !is_counted && limits_memory {
        notes.push("Memory that only the kernel knows of is not counted.".to_owned());
    }
    let is_seen = usage.disk_bytes.is_some() || (limits_memory && !is_counted);
    if is_seen && !layers.namespaces {
        let hides = "Without namespaces a program that wants to can hide from what is measured.";
        notes.push(hides.to_owned());
    }
    if usage.cpu_millicores.is_some() && !groups.is_some_and(Groups::shares_processors) {
        notes.push("A share of processors cannot be kept here.".to_owned());
    }
    notes
}

/// Fences nothing in; answers with the kernel's version of Landlock and whether process ids are
/// counted apart, or with what failed.
async fn trial(
    spawner: &Arc<Spawner>,
    layers: Layers,
    level: SandboxLevel,
    missing: Layers,
) -> Result<(i32, bool), StartFailure> {
    let lost = StartFailure { step: StartStep::Prepare, errno: None, program_exists: false };
    let order = trial_order(layers, level, missing);
    let handover =
        Handover::seal(&order).map_err(|error| StartFailure::new(StartStep::Prepare, &error))?;
    let Ok(shim) = spawner.spawn(ShimKind::of(layers), handover).await else { return Err(lost) };
    let Shim { mut child, control, stdout, stderr, .. } = shim;
    let (inbox, control) = control.into_split();
    let mut inbox = ShimInbox::new(inbox);
    let report = timeout(Duration::from_millis(LAUNCH_START_MS), inbox.next::<ShimReport>()).await;
    // To the shim this is the core's death.
    drop((control, inbox));
    let _ = child.wait().await;
    drop((stdout, stderr));
    match report {
        Ok(Some(ShimReport::Tried { landlock, ids_apart })) => Ok((landlock, ids_apart)),
        Ok(Some(ShimReport::Failed(failure))) => Err(failure),
        _ => Err(lost),
    }
}

#[cfg(target_os = "linux")]
fn ids_for(processes: u64) -> u64 {
    crate::sandbox::limits::ids_for(processes)
}

#[cfg(target_os = "linux")]
fn trial_ids() -> Option<u64> {
    crate::sandbox::limits::ids_may_be_apart().then_some(crate::sandbox::limits::TRIAL_IDS)
}

#[cfg(not(target_os = "linux"))]
fn ids_for(processes: u64) -> u64 {
    processes
}

#[cfg(not(target_os = "linux"))]
fn trial_ids() -> Option<u64> {
    None
}

fn trial_order(layers: Layers, level: SandboxLevel, missing: Layers) -> Order {
    Order {
        program: "true".into(),
        args: Vec::new(),
        cwd: TRIAL_FOLDER.into(),
        env: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
        grace_ms: 0,
        private_dirs: Vec::new(),
        given_dirs: Vec::new(),
        starts: Vec::new(),
        secrets: [].into(),
        secrets_dir: None,
        fence: FenceOrder {
            level,
            layers,
            trial: true,
            missing,
            read: Vec::new(),
            write: Vec::new(),
            sockets: Vec::new(),
            egress: None,
            tcp_port: None,
            inbound: None,
            artifacts: None,
            usage: Usage::default(),
            ids: trial_ids(),
            group: None,
            homes: Vec::new(),
            hidden: Vec::new(),
        },
    }
}
