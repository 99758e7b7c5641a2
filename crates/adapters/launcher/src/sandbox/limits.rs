//! Limits that the kernel keeps by itself: for each process, and of processes in a namespace.

use std::fs;
use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use wharf_domain::provider::Usage;

/// Open files of a program that nobody gave a number.
const OPEN_FILES: u64 = 1_024;
/// No program starts with fewer open files.
const OPEN_FILES_MIN: u64 = 16;
/// Processes beyond the limit: those of ours, and some to see that there are too many.
const PROCESSES_SPARE: u64 = 48;
/// Processor time beyond the limit after which a process ends even if nobody watches it.
const CPU_SPARE_SECONDS: u64 = 2;

/// Takes on the limits; `apart` says whether the kernel counts this program's processes apart
/// from the user's others.
pub(crate) fn apply(usage: &Usage, apart: bool) -> io::Result<()> {
    // A core dump would hold the program's secrets.
    lower(Resource::Core, 0)?;
    if let Some(bytes) = usage.disk_bytes {
        lower(Resource::Fsize, bytes)?;
    }
    if let Some(ms) = usage.cpu_ms {
        lower(Resource::Cpu, ms.div_ceil(1_000) + CPU_SPARE_SECONDS)?;
    }
    // So high that only a program reaches it which the watcher is about to stop; it shall be
    // stopped for it and not merely be refused one more. The first user is exempt.
    if let Some(processes) = usage.processes.filter(|_| apart) {
        lower(Resource::Nproc, processes.saturating_add(PROCESSES_SPARE))?;
    }
    Ok(())
}

/// Takes on the limit of open files. Whoever has passed that many descriptors on that nobody took
/// yet, together with all of the same user, can pass none on; so this comes last, and programs
/// get far fewer than the core has.
pub(crate) fn apply_to_files(usage: &Usage) -> io::Result<()> {
    lower(Resource::Nofile, usage.open_files.unwrap_or(OPEN_FILES).max(OPEN_FILES_MIN))
}

/// Lowers both limits; what is lower already stays.
fn lower(resource: Resource, most: u64) -> io::Result<()> {
    let maximum = getrlimit(resource).maximum.map_or(most, |now| now.min(most));
    Ok(setrlimit(resource, Rlimit { current: Some(maximum), maximum: Some(maximum) })?)
}

/// How many processes there can be in a namespace, where the kernel counts their ids apart. On
/// older kernels the same setting is the whole machine's. So it is written only on kernels that
/// are new enough, and for launches only after a trial in which the machine's own number stayed
/// what it was.
const SETTING: &str = "/proc/sys/kernel/pid_max";
/// The first kernel that has one for each namespace.
const SINCE: (u32, u32) = (6, 14);
/// The kernel keeps so many ids for itself once it has used up the others.
const RESERVED: u64 = 300;
/// Ids for ourselves, and for groups and sessions whose first process is gone.
const SPARE: u64 = 128;
/// What is set in a trial; no machine has so few.
pub(crate) const TRIAL_IDS: u64 = 1_000;

/// The number of ids that leaves room for so many processes. It is no exact bound: who watches
/// the program shall see that there are too many.
pub(crate) fn ids_for(processes: u64) -> u64 {
    processes.saturating_mul(2).saturating_add(RESERVED + SPARE)
}

/// Whether this kernel may count ids apart.
pub(crate) fn ids_may_be_apart() -> bool {
    let system = rustix::system::uname();
    let mut numbers = system.release().to_str().unwrap_or_default().split(['.', '-']);
    let mut next = || numbers.next()?.parse::<u32>().ok();
    matches!((next(), next()), (Some(major), Some(minor)) if (major, minor) >= SINCE)
}

/// The number that holds for whoever asks.
pub(crate) fn ids_most() -> Option<u64> {
    fs::read_to_string(SETTING).ok()?.trim().parse().ok()
}

/// Sets the number of the namespace that this process is in.
pub(crate) fn limit_ids(ids: u64) -> io::Result<()> {
    if !ids_may_be_apart() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    fs::write(SETTING, ids.to_string())
}
