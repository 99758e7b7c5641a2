//! How many processes there can be in a namespace, where the kernel counts their ids apart.
//!
//! On older kernels the same setting is the whole machine's. So it is written only on kernels that
//! are new enough, and for launches only after a trial in which the machine's own number stayed
//! what it was.

use std::fs;
use std::io;

const SETTING: &str = "/proc/sys/kernel/pid_max";
/// The first kernel that has one for each namespace.
const SINCE: (u32, u32) = (6, 14);
/// The kernel keeps so many ids for itself once it has used up the others.
const RESERVED: u64 = 300;
/// Ids for ourselves, and for groups and sessions whose first process is gone.
const SPARE: u64 = 128;
/// What is set in a trial; no machine has so few.
pub(crate) const TRIAL: u64 = 1_000;

/// The number of ids that leaves room for so many processes. It is no exact bound: who watches
/// the program shall see that there are too many.
pub(crate) fn ids_for(processes: u64) -> u64 {
    processes.saturating_mul(2).saturating_add(RESERVED + SPARE)
}

/// Whether this kernel may count ids apart.
pub(crate) fn may_be_apart() -> bool {
    let system = rustix::system::uname();
    let mut numbers = system.release().to_str().unwrap_or_default().split(['.', '-']);
    let mut next = || numbers.next()?.parse::<u32>().ok();
    matches!((next(), next()), (Some(major), Some(minor)) if (major, minor) >= SINCE)
}

/// The number that holds for whoever asks.
pub(crate) fn most() -> Option<u64> {
    fs::read_to_string(SETTING).ok()?.trim().parse().ok()
}

/// Sets the number of the namespace that this process is in.
pub(crate) fn limit(ids: u64) -> io::Result<()> {
    if !may_be_apart() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    fs::write(SETTING, ids.to_string())
}
