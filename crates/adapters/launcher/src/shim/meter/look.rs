//! One look at what processes hold: every descriptor they have, what lies in their pipes and
//! sockets, descriptors on their way included, what they map without having it open, and what the
//! kernel keeps for them.
//!
//! A process that let itself be made invisible is looked at with the privileges that we have over
//! its namespace. Without a namespace we have none, and what cannot be looked at is not counted;
//! with one it counts as too much.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FileType, Stat, fstat, fstatfs};
use rustix::io::Errno;
use wharf_vocab::Resource;

use super::DESCRIPTORS_MAX;
use super::held::Held;
use super::maps::{FileLocation, MappedFiles};
use super::peers::{Id, Peers};
use super::processes::{ProcessSource, ProcessUsage, face};
use super::waiting::{Connections, first_of, in_pipe, in_socket, on_their_way};
use crate::sandbox::ARTIFACTS_DIR;
use crate::shim::message::Order;

/// What cannot be looked at may be so for this long: a process ends, a descriptor is received.
const UNSEEN_MAX: Duration = Duration::from_millis(600);
/// What the kernel keeps for a descriptor, a mapping and a thread, about.
const DESCRIPTOR_BYTES: u64 = 1_024;
const MAPPING_BYTES: u64 = 256;
const THREAD_BYTES: u64 = 16 * 1_024;
/// What a set of Landlock's rules may take.
const RULES_BYTES: u64 = 8 * 1_024 * 1_024;
const RULES: &str = "anon_inode:[landlock-ruleset]";
/// A file that is only mapped counts at least as this part of the limit: nobody tells its size.
const MAPPED_SHARE: u64 = 16;
/// Sockets on their way in sockets on their way.
const DEPTH_MAX: u32 = 8;
/// The kernel's numbers for the file systems that lie in no device.
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x9584_58f6];

/// Where to look, and what was not to be seen.
#[derive(Debug)]
pub(super) struct Look {
    source: ProcessSource,
    /// Devices on which the program's folders lie.
    disks: Vec<u64>,
    /// Folders that it can write to, as it sees them.
    folders: Vec<PathBuf>,
    /// What may lie on disk.
    disk_most: Option<u64>,
    /// Whether the program's network is nobody else's.
    own_network: bool,
    peers: Peers,
    /// Since when each look has missed something.
    unseen_since: Option<Instant>,
    connections: Connections,
}

/// Why a look goes no further.
enum LookStop {
    /// There are more descriptors than can be looked at.
    TooMany,
    /// It may not be looked at.
    Unseen,
}

#[derive(Default)]
struct Sum {
    held: Held,
    descriptors: u64,
    /// What was counted by a descriptor: in memory, on disk, and the rest.
    in_memory: HashSet<(u64, u64)>,
    on_disk: HashSet<u64>,
    others: HashSet<(u64, u64)>,
    unseen: bool,
}

impl Look {
    /// A look at the processes of an order.
    pub(super) fn of(
        order: &Order,
        folders: Vec<PathBuf>,
        source: ProcessSource,
        disks: Vec<u64>,
    ) -> Self {
        let in_namespaces = order.fence.layers.namespaces;
        // As the program sees them: some under another name.
        let others = ["/tmp", ARTIFACTS_DIR].map(PathBuf::from);
        let others = others.into_iter().filter(|_| in_namespaces);
        let folders = folders.into_iter().chain(order.fence.write.iter().cloned());
        let peers = match source {
            ProcessSource::Namespace(_) => Peers::of_children(),
            ProcessSource::Below => Peers::default(),
        };
        Self {
            disks,
            folders: folders.chain(others).collect(),
            disk_most: order.fence.usage.disk_bytes,
            own_network: in_namespaces && order.fence.tcp_port.is_none(),
            peers,
            source,
            unseen_since: None,
            connections: Connections::default(),
        }
    }

    /// Looks at these processes.
    pub(super) fn at(&mut self, pids: &[i32]) -> Held {
        let folder = self.source.folder();
        self.peers.retain(&folder, pids);
        let theirs: Vec<i32> =
            pids.iter().copied().filter(|pid| !self.source.is_ours(*pid)).collect();
        let (mut sum, mut mapped) = (Sum::default(), MappedFiles::default());
        for pid in &theirs {
            let Some(face) = face(&folder, *pid) else { continue };
            match self.process(*pid, &face, &mut sum, &mut mapped) {
                Ok(()) => {}
                Err(LookStop::TooMany) => {
                    return Held { verdict: Some(Resource::OpenFiles), ..sum.held };
                }
                Err(LookStop::Unseen) => sum.unseen |= is_there(&folder, *pid),
            }
        }
        if self.own_network
            && let Some(pid) = theirs.first()
        {
            sum.held.kernel += self.connections.bytes_of(&folder.join(pid.to_string()));
        }
        self.add_mapped(&mut sum, &mapped);
        self.judge(&mut sum);
        sum.held
    }

    fn process(
        &mut self,
        pid: i32,
        face: &Path,
        sum: &mut Sum,
        mapped: &mut MappedFiles,
    ) -> Result<(), LookStop> {
        let Some(spent) = ProcessUsage::read(&self.source.folder(), pid) else { return Ok(()) };
        let id = (pid, spent.started);
        let by_name = fs::read_dir(face.join("fd"));
        let is_open = by_name.is_ok();
        let listed = by_name.or_else(|_| fs::read_dir(face.join("fdinfo"))).map_err(unseen)?;
        for entry in listed.flatten() {
            let Some(number) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            sum.count()?;
            let by_name = is_open.then(|| entry.path());
            self.descriptor((id, number), face, by_name.as_deref(), sum)?;
        }
        sum.held.kernel += kept(face).map_err(unseen)?;
        mapped.add(face, &self.folders).map_err(unseen)
    }

    fn descriptor(
        &mut self,
        (id, number): (Id, i32),
        face: &Path,
        by_name: Option<&Path>,
        sum: &mut Sum,
    ) -> Result<(), LookStop> {
        let folder = self.source.folder();
        let mut take = || match self.peers.take(&folder, id, number) {
            Ok(own) => Ok(Some(own)),
            // It was closed meanwhile, or its process is gone.
            Err(error) if is(&error, Errno::BADF) || is(&error, Errno::SRCH) => Ok(None),
            Err(_) => Err(LookStop::Unseen),
        };
        let Some(path) = by_name else {
            let Some(own) = take()? else { return Ok(()) };
            return self.own(&own, sum, 0);
        };
        let Ok(data) = rustix::fs::stat(path) else { return Ok(()) };
        match FileType::from_raw_mode(data.st_mode) {
            FileType::RegularFile => {
                if let Some(bytes) = nameless(&data) {
                    let kind = rustix::fs::statfs(path).map(|system| system.f_type);
                    self.file(&data, bytes, kind, sum);
                }
            }
            FileType::Fifo if sum.is_new(&data) => {
                // Where no descriptor can be had from others, pipes are what the kernel bounds.
                if let Ok(Some(own)) = take() {
                    sum.held.kernel += in_pipe(&own);
                }
            }
            FileType::Socket if sum.is_new(&data) => {
                match on_their_way(&face.join("fdinfo").join(number.to_string())) {
                    // It is not one of files; others can take long to close.
                    None => self.connections.are_used = true,
                    Some(0) => {
                        if let Ok(Some(own)) = take() {
                            sum.held.kernel += in_socket(&own);
                        }
                    }
                    Some(count) => {
                        if let Some(own) = take()? {
                            self.socket(&own, count, sum, 0)?;
                        }
                    }
                }
            }
            FileType::Unknown => sum.held.kernel += of_rules(path),
            _ => {}
        }
        Ok(())
    }

    /// Looks at a descriptor that was taken or received.
    fn own(&mut self, own: &OwnedFd, sum: &mut Sum, depth: u32) -> Result<(), LookStop> {
        let Ok(data) = fstat(own) else { return Ok(()) };
        match FileType::from_raw_mode(data.st_mode) {
            FileType::RegularFile => {
                if let Some(bytes) = nameless(&data) {
                    let kind = fstatfs(own).map(|system| system.f_type);
                    self.file(&data, bytes, kind, sum);
                }
            }
            FileType::Fifo if sum.is_new(&data) => sum.held.kernel += in_pipe(own),
            FileType::Socket if sum.is_new(&data) => {
                let about = format!("/proc/self/fdinfo/{}", own.as_raw_fd());
                match on_their_way(Path::new(&about)) {
                    Some(count) => self.socket(own, count, sum, depth)?,
                    None => self.connections.are_used = true,
                }
            }
            FileType::Unknown => {
                let link = format!("/proc/self/fd/{}", own.as_raw_fd());
                sum.held.kernel += of_rules(Path::new(&link));
            }
            _ => {}
        }
        Ok(())
    }

    /// Looks at what waits in a socket, of which so many are descriptors. Only those that come
    /// first can be seen.
    fn socket(
        &mut self,
        socket: &OwnedFd,
        count: u32,
        sum: &mut Sum,
        depth: u32,
    ) -> Result<(), LookStop> {
        sum.held.kernel += in_socket(socket);
        if count == 0 {
            return Ok(());
        }
        let first = first_of(socket).unwrap_or_default();
        let seen = u32::try_from(first.len()).unwrap_or(u32::MAX);
        sum.unseen |= seen < count || depth >= DEPTH_MAX;
        if depth >= DEPTH_MAX {
            return Ok(());
        }
        for own in first {
            sum.count()?;
            self.own(&own, sum, depth + 1)?;
        }
        Ok(())
    }

    /// Counts a file without a name where it lies.
    fn file<K: TryInto<u64>>(
        &self,
        data: &Stat,
        bytes: u64,
        kind: rustix::io::Result<K>,
        sum: &mut Sum,
    ) {
        if self.disks.contains(&data.st_dev) {
            if sum.on_disk.insert(data.st_ino) {
                sum.held.disk += bytes;
            }
            return;
        }
        let kind = kind.ok().and_then(|kind| kind.try_into().ok());
        if kind.is_some_and(|kind| IN_MEMORY.contains(&kind))
            && sum.in_memory.insert((data.st_dev, data.st_ino))
        {
            sum.held.files += bytes;
        }
    }

    /// Adds files that are mapped and that nobody has open.
    fn add_mapped(&self, sum: &mut Sum, mapped: &MappedFiles) {
        sum.held.kernel += mapped.count * MAPPING_BYTES;
        for ((place, number), bytes) in &mapped.files {
            match place {
                FileLocation::Memory(device) if !sum.in_memory.contains(&(*device, *number)) => {
                    sum.held.files = sum.held.files.saturating_add(*bytes);
                }
                FileLocation::Disk if !sum.on_disk.contains(number) => {
                    let least = self.disk_most.unwrap_or(0) / MAPPED_SHARE;
                    sum.held.disk = sum.held.disk.saturating_add(least.max(*bytes));
                }
                _ => {}
            }
        }
    }

    /// What could not be seen for too long is too much, if we are the ones who should see it.
    fn judge(&mut self, sum: &mut Sum) {
        if !(sum.unseen && matches!(self.source, ProcessSource::Namespace(_))) {
            self.unseen_since = None;
            return;
        }
        let since = self.unseen_since.get_or_insert_with(Instant::now);
        if since.elapsed() > UNSEEN_MAX {
            sum.held.verdict = Some(Resource::Hidden);
        }
    }
}

impl Sum {
    fn count(&mut self) -> Result<(), LookStop> {
        self.descriptors += 1;
        self.held.kernel += DESCRIPTOR_BYTES;
        if self.descriptors > DESCRIPTORS_MAX { Err(LookStop::TooMany) } else { Ok(()) }
    }

    fn is_new(&mut self, data: &Stat) -> bool {
        self.others.insert((data.st_dev, data.st_ino))
    }
}

fn is(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}

fn unseen(_: io::Error) -> LookStop {
    LookStop::Unseen
}

/// Whether a process is still there and lives.
fn is_there(folder: &Path, pid: i32) -> bool {
    face(folder, pid).is_some()
}

/// What a file takes, if it has no name any more.
fn nameless(data: &Stat) -> Option<u64> {
    (data.st_nlink == 0).then(|| u64::try_from(data.st_blocks).unwrap_or(0) * 512)
}

/// What the kernel keeps for a process, and what it has put aside for it.
fn kept(face: &Path) -> io::Result<u64> {
    let status = fs::read_to_string(face.join("status"))?;
    let number = |name: &str| {
        let rest = status.lines().find_map(|line| line.strip_prefix(name))?;
        rest.trim_end_matches("kB").trim().parse::<u64>().ok()
    };
    let pages = ["VmPTE:", "VmSwap:", "HugetlbPages:"];
    let bytes: u64 = pages.iter().filter_map(|name| number(name)).sum::<u64>() * 1_024;
    Ok(bytes + number("Threads:").unwrap_or(0) * THREAD_BYTES)
}

fn of_rules(link: &Path) -> u64 {
    if fs::read_link(link).is_ok_and(|name| name == Path::new(RULES)) { RULES_BYTES } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::own_pid;
    use rustix::fs::{MemfdFlags, memfd_create};
    use std::io::Write;
    use std::os::unix::fs::MetadataExt;

    fn look(disks: Vec<u64>) -> Look {
        Look {
            source: ProcessSource::Below,
            disks,
            folders: Vec::new(),
            disk_most: None,
            own_network: false,
            peers: Peers::default(),
            unseen_since: None,
            connections: Connections::default(),
        }
    }

    #[test]
    fn f6_what_has_no_name_is_counted_once_and_where_it_lies() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut look = look(vec![dir.path().metadata().expect("is there").dev()]);
        let mut memory =
            fs::File::from(memfd_create("held", MemfdFlags::CLOEXEC).expect("creates"));
        memory.write_all(&vec![1; 3 << 20]).expect("writes");
        let copies = [memory.try_clone().expect("copies"), memory.try_clone().expect("copies")];
        let mut file = fs::File::create(dir.path().join("file")).expect("creates");
        file.write_all(&vec![1; 1 << 20]).expect("writes");
        let named = look.at(&[own_pid()]);
        fs::remove_file(dir.path().join("file")).expect("removes");
        let held = look.at(&[own_pid()]);
        // Other tests hold a little for a moment, but nothing of this size.
        assert!((3 << 20..4 << 20).contains(&held.files), "{held:?}");
        assert!(named.disk < 1 << 20 && held.disk >= 1 << 20, "{named:?} {held:?}");
        assert!(held.kernel > 0 && held.verdict.is_none(), "{held:?}");
        drop(copies);
    }
}
