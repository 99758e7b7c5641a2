//! What processes hold by descriptors alone: memory in files without a name, and files on disk
//! that were removed and are still open.
//!
//! What is only mapped, or only on its way in a socket, is not found like this.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Descriptors that are looked at each time; processes have no more than that in all but rarely.
const DESCRIPTORS_MAX: u32 = 50_000;

/// What is held, in bytes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) memory: u64,
    pub(super) disk: u64,
}

impl Held {
    /// Looks at processes in a `/proc`. What lies on one of these devices is on disk.
    pub(super) fn look(processes: &Path, pids: &[i32], disks: &[u64]) -> Self {
        let mut held = Self::default();
        let mut seen = HashSet::new();
        let mut left = DESCRIPTORS_MAX;
        for pid in pids {
            // Where this is not allowed, nothing is known of them.
            let descriptors = fs::read_dir(processes.join(pid.to_string()).join("fd"));
            for descriptor in descriptors.into_iter().flatten().flatten() {
                if left == 0 {
                    return held;
                }
                left -= 1;
                let Ok(data) = fs::metadata(descriptor.path()) else { continue };
                let is_nameless = data.is_file() && data.nlink() == 0;
                if !is_nameless || !seen.insert((data.dev(), data.ino())) {
                    continue;
                }
                let bytes = data.blocks() * 512;
                if disks.contains(&data.dev()) {
                    held.disk += bytes;
                } else if is_memory(&descriptor.path()) {
                    held.memory += bytes;
                }
            }
        }
        held
    }
}

/// Whether a file lies in no device at all.
#[cfg(target_os = "linux")]
fn is_memory(path: &Path) -> bool {
    /// The kernel's numbers for the two file systems that do.
    const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x9584_58f6];
    rustix::fs::statfs(path)
        .is_ok_and(|system| IN_MEMORY.iter().any(|kind| u64::try_from(system.f_type) == Ok(*kind)))
}

#[cfg(not(target_os = "linux"))]
fn is_memory(_path: &Path) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::tree::own_pid;
    use rustix::fs::{MemfdFlags, memfd_create};
    use std::io::Write;

    #[test]
    fn f6_what_has_no_name_is_counted_once_and_where_it_lies() {
        let dir = tempfile::tempdir().expect("a directory");
        let disks = [dir.path().metadata().expect("is there").dev()];
        let look = || Held::look(Path::new("/proc"), &[own_pid()], &disks);
        let mut memory =
            fs::File::from(memfd_create("held", MemfdFlags::CLOEXEC).expect("creates"));
        memory.write_all(&vec![1; 3 << 20]).expect("writes");
        let copies = [memory.try_clone().expect("copies"), memory.try_clone().expect("copies")];
        let mut file = fs::File::create(dir.path().join("file")).expect("creates");
        file.write_all(&vec![1; 1 << 20]).expect("writes");
        let named = look();
        fs::remove_file(dir.path().join("file")).expect("removes");
        let held = look();
        // Other tests hold a little for a moment, but nothing of this size.
        assert!((3 << 20..4 << 20).contains(&held.memory), "{held:?}");
        assert!(named.disk < 1 << 20 && held.disk >= 1 << 20, "{named:?} {held:?}");
        drop(copies);
    }
}
