//! What is only mapped: files whose last name and last descriptor are gone, and which are there
//! all the same until nothing maps them any more.
//!
//! The kernel tells how much of such a file is mapped, and to nobody but the machine's first user
//! how large it is.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

/// The end of the kernel's name for what has none any more.
const REMOVED: &str = " (deleted)";
/// How the names of what lies in memory begin: made for it, shared by a family, and by key.
const IN_MEMORY: [&str; 3] = ["/memfd:", "/dev/zero (deleted)", "/SYSV"];

/// Where a mapped file lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum FileLocation {
    /// In memory, with its device.
    Memory(u64),
    /// In a folder that the program can write to.
    Disk,
}

/// Files without a name that are mapped, by place and number, with how far into them.
#[derive(Debug, Default)]
pub(super) struct MappedFiles {
    pub(super) files: HashMap<(FileLocation, u64), u64>,
    /// All mappings.
    pub(super) count: u64,
}

impl MappedFiles {
    /// Adds what one process maps. Its folders are as it sees them.
    pub(super) fn add(&mut self, process: &Path, folders: &[PathBuf]) -> io::Result<()> {
        let mut maps = BufReader::new(std::fs::File::open(process.join("maps"))?);
        let mut line = Vec::new();
        while maps.read_until(b'\n', &mut line)? > 0 {
            self.count += 1;
            if let Some((place, number, end)) = parse(&String::from_utf8_lossy(&line), folders) {
                let largest = self.files.entry((place, number)).or_default();
                *largest = end.max(*largest);
            }
            line.clear();
        }
        Ok(())
    }
}

/// Reads a line like `7f00-7f02 rw-s 00001000 fd:01 42    /home/file (deleted)`.
fn parse(line: &str, folders: &[PathBuf]) -> Option<(FileLocation, u64, u64)> {
    let (range, rest) = line.split_once(' ')?;
    let mut fields = rest.splitn(5, ' ');
    let (_mode, offset, device) = (fields.next()?, fields.next()?, fields.next()?);
    let number = fields.next()?.parse().ok().filter(|number| *number != 0)?;
    let path = fields.next()?.trim_start().trim_end_matches('\n');
    if !path.ends_with(REMOVED) {
        return None;
    }
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let place = if IN_MEMORY.iter().any(|name| path.starts_with(name)) {
        let (major, minor) = device.split_once(':')?;
        let major = u32::from_str_radix(major, 16).ok()?;
        FileLocation::Memory(rustix::fs::makedev(major, u32::from_str_radix(minor, 16).ok()?))
    } else if folders.iter().any(|folder| Path::new(path).starts_with(folder)) {
        FileLocation::Disk
    } else {
        return None;
    };
    let (from, to) = range.split_once('-')?;
    let length = hex(to)?.saturating_sub(hex(from)?);
    Some((place, number, hex(offset)?.saturating_add(length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_no_name_and_is_the_programs_own_is_told() {
        let folders = [PathBuf::from("/own/home")];
        let told = |line: &str| parse(line, &folders);
        let range = "7f0000000000-7f0000002000 rw-s 00001000 fd:01";
        let file = |path: &str| told(&format!("{range} 42                 {path}\n"));
        assert_eq!(file("/own/home/a b (deleted)"), Some((FileLocation::Disk, 42, 0x3000)));
        assert_eq!(file("/own/home/a"), None, "it has a name");
        assert_eq!(file("/own/homes/a (deleted)"), None, "it is somebody else's");
        assert_eq!(file("/usr/lib/libc.so.6 (deleted)"), None, "the system was renewed");
        assert_eq!(told("7f00-7f01 rw-p 00000000 00:00 0 \n"), None, "it is no file");
        let memory = Some((FileLocation::Memory(rustix::fs::makedev(0xfd, 1)), 42, 0x3000));
        assert_eq!(file("/memfd:x (deleted)"), memory);
        assert_eq!(file("/dev/zero (deleted)"), memory);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_we_map_ourselves_is_read() {
        let mut mapped = MappedFiles::default();
        mapped.add(Path::new("/proc/self"), &[]).expect("reads");
        assert!(mapped.count > 10, "{mapped:?}");
    }
}
