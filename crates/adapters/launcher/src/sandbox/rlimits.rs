//! Limits that the kernel keeps for each process by itself.

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
