//! Builds the root that a program in namespaces sees, and moves into it.
//!
//! It is a small file system in memory. Folders of the machine appear in it under their own
//! paths, mounted by descriptors that no link led to; small files that programs look for are copied, because a copy is cheaper than a mount
//! and shows nothing that is written later. What was mounted below a folder that is shown only to
//! be read keeps its own mode; there Landlock is the bound.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, StatVfsMountFlags, fstat, fstatvfs};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount,
    mount_change, mount_remount, move_mount, open_tree, unmount,
};
use wharf_vocab::SandboxLevel;

use super::view::{self, Grant, View};
use super::{ARTIFACTS_DIR, SECRETS_DIR};
use crate::shim::message::Order;

/// Where the new root is built. Nothing that is shown ever lies below it.
const SITE: &str = "/proc";
/// Files that are copied if they exist, each at most this large.
const COPIED: [&str; 5] = [
    "/etc/ld.so.cache",
    "/etc/nsswitch.conf",
    "/etc/hosts",
    "/etc/localtime",
    "/etc/ssl/openssl.cnf",
];
const COPIED_BYTES_MAX: u64 = 1024 * 1024;
const COPIED_BYTES_USUAL: usize = 64 * 1024;
const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];
const KERNEL_FILES: [&str; 3] = ["/proc/cmdline", "/proc/keys", "/proc/key-users"];
const KERNEL_FILES_OF_FIRST: [&str; 5] = [
    "/proc/timer_list",
    "/proc/vmallocinfo",
    "/proc/slabinfo",
    "/proc/pagetypeinfo",
    "/proc/config.gz",
];
/// Links that programs expect beside the devices.
const DEVICE_LINKS: [(&str, &str); 4] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
];

/// Builds the root and moves this process into it. Afterwards nothing else of the machine's files
/// can be reached from here. Answers with the new `/proc`.
pub(crate) fn build(view: &View, order: &Order) -> io::Result<OwnedFd> {
    // Nothing that is mounted here shall appear elsewhere.
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    // Mounts are changed by way of their descriptors; the site is about to cover their names.
    rustix::process::chdir("/proc/self/fd")?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", SITE, "tmpfs", flags, c"mode=0755,size=16m,nr_inodes=8192")?;
    let mut site = Site::default();
    for (path, grant) in view.mounts() {
        site.show(path, grant)?;
    }
    for path in view.sockets() {
        site.show(path, Grant::Read)?;
    }
    for (link, target) in view.links() {
        site.link(link, target)?;
    }
    site.copy_files()?;
    site.add_accounts()?;
    site.add_devices()?;
    site.add_tmp(view)?;
    if let Some(artifacts) = view.artifacts() {
        site.show_as(artifacts, Path::new(ARTIFACTS_DIR), Grant::Write)?;
    }
    site.add_secrets(order)?;
    let processes = site.add_processes(order)?;
    site.enter()?;
    Ok(processes)
}

/// The place where the root is built.
#[derive(Default)]
struct Site {
    /// Folders that were made.
    there: HashSet<PathBuf>,
    /// Folders of the machine that are shown. Others may change what is in them.
    shown: HashSet<PathBuf>,
}

impl Site {
    /// Where a path of the new root lies as long as it is being built.
    fn at(path: &Path) -> PathBuf {
        Path::new(SITE).join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Whether it lies in a folder of the machine that is shown.
    fn is_covered(&self, path: &Path) -> bool {
        path.ancestors().skip(1).any(|parent| self.shown.contains(parent))
    }

    /// Makes a folder and those above it. None of them lies in one that is shown.
    fn make(&mut self, path: &Path) -> io::Result<()> {
        if path == Path::new("/") || self.there.contains(path) {
            return Ok(());
        }
        if let Some(parent) = path.parent() {
            self.make(parent)?;
        }
        match DirBuilder::new().mode(0o755).create(Self::at(path)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        self.there.insert(path.to_owned());
        Ok(())
    }

    fn make_parent(&mut self, path: &Path) -> io::Result<()> {
        path.parent().map_or(Ok(()), |parent| self.make(parent))
    }

    /// Shows a file or folder of the machine under its own path.
    fn show(&mut self, path: &Path, grant: Grant) -> io::Result<()> {
        self.show_as(path, path, grant)
    }

    fn show_as(&mut self, path: &Path, name: &Path, grant: Grant) -> io::Result<()> {
        let mut flags = MountFlags::NOSUID;
        if !path.starts_with("/dev") {
            flags |= MountFlags::NODEV;
        }
        if grant == Grant::Read {
            flags |= MountFlags::RDONLY;
        }
        self.attach(&view::open(path)?, name, flags)
    }

    /// Mounts what a descriptor stands for.
    fn attach(&mut self, source: &OwnedFd, name: &Path, flags: MountFlags) -> io::Result<()> {
        let is_folder = FileType::from_raw_mode(fstat(source)?.st_mode) == FileType::Directory;
        let place = Self::at(name);
        if self.is_covered(name) {
            // It appears together with its folder.
        } else if is_folder {
            self.make(name)?;
        } else {
            self.make_parent(name)?;
            let _ = File::options().write(true).create_new(true).open(&place);
        }
        let copy = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let whole = OpenTreeFlags::AT_EMPTY_PATH | OpenTreeFlags::AT_RECURSIVE;
        let tree = open_tree(source, c"", copy | whole)?;
        let by_descriptors =
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        move_mount(&tree, c"", view::open(&place)?, c"", by_descriptors)?;
        let flags = MountFlags::BIND | flags | kept_flags(&tree)?;
        mount_remount(tree.as_raw_fd().to_string(), flags, c"")?;
        if is_folder {
            self.shown.insert(name.to_owned());
        }
        Ok(())
    }

    fn link(&mut self, link: &Path, target: &Path) -> io::Result<()> {
        self.make_parent(link)?;
        symlink(target, Self::at(link))
    }

    fn copy_files(&mut self) -> io::Result<()> {
        for path in COPIED.iter().map(Path::new) {
            if self.is_covered(path) {
                continue;
            }
            let Ok(file) = File::open(path) else { continue };
            let mut bytes = Vec::with_capacity(COPIED_BYTES_USUAL);
            file.take(COPIED_BYTES_MAX).read_to_end(&mut bytes)?;
            self.make_parent(path)?;
            fs::write(Self::at(path), bytes)?;
        }
        Ok(())
    }

    /// Names for the accounts that the program can meet. Those of the machine are nobody's business.
    fn add_accounts(&mut self) -> io::Result<()> {
        let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
        let mut users = String::from("root:x:0:0:root:/tmp:/usr/sbin/nologin\n");
        let mut groups = String::from("root:x:0:\n");
        if !user.is_root() {
            let (user, group) = (user.as_raw(), group.as_raw());
            users.push_str(&format!("agent:x:{user}:{group}:agent:/tmp:/usr/sbin/nologin\n"));
        }
        if !group.is_root() {
            groups.push_str(&format!("agent:x:{}:\n", group.as_raw()));
        }
        users.push_str("nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n");
        groups.push_str("nogroup:x:65534:\n");
        for (path, text) in [("/etc/passwd", users), ("/etc/group", groups)] {
            let path = Path::new(path);
            if !self.is_covered(path) {
                self.make_parent(path)?;
                fs::write(Self::at(path), text)?;
            }
        }
        Ok(())
    }

    fn add_devices(&mut self) -> io::Result<()> {
        // They can be written to all the same; only their owner and mode can not be changed.
        let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NOEXEC;
        for device in DEVICES {
            let path = Path::new("/dev").join(device);
            self.attach(&view::open(&path)?, &path, flags)?;
        }
        for (link, target) in DEVICE_LINKS {
            symlink(target, Self::at(Path::new(link)))?;
        }
        let memory = Path::new("/dev/shm");
        self.make(memory)?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        Ok(mount("tmpfs", Self::at(memory), "tmpfs", flags, c"mode=0700,size=64m,nr_inodes=4096")?)
    }

    /// Programs that know nothing of `TMPDIR` find the same folder.
    fn add_tmp(&mut self, view: &View) -> io::Result<()> {
        match view.tmp() {
            Some(tmp) if view.mounts().iter().all(|(path, _)| !path.starts_with("/tmp")) => {
                self.show_as(tmp, Path::new("/tmp"), Grant::Write)
            }
            _ => Ok(()),
        }
    }

    fn add_secrets(&mut self, order: &Order) -> io::Result<()> {
        if order.secrets.is_empty() {
            return Ok(());
        }
        let folder = Path::new(SECRETS_DIR);
        self.make_parent(folder)?;
        DirBuilder::new().mode(0o700).create(Self::at(folder))?;
        for (name, bytes) in &order.secrets {
            let path = Self::at(folder).join(name);
            let mut options = File::options();
            options.write(true).create_new(true).mode(0o400).open(path)?.write_all(bytes)?;
        }
        Ok(())
    }

    /// A `/proc` that knows only the processes in this namespace.
    fn add_processes(&mut self, order: &Order) -> io::Result<OwnedFd> {
        let path = Path::new("/proc");
        self.make(path)?;
        let target = Self::at(path);
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        let strict = order.fence.level == SandboxLevel::Strict;
        mount("proc", &target, "proc", flags, strict.then_some(c"subset=pid"))?;
        if !strict {
            self.cover_kernel()?;
        }
        // The settings of the machine are files of its first user, which the program may be.
        mount_remount(&target, flags | MountFlags::BIND | MountFlags::RDONLY, c"")?;
        let open = OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::open(&target, open, Mode::empty())?)
    }

    /// Puts nothing over files that tell of the kernel and of others rather than of processes.
    fn cover_kernel(&mut self) -> io::Result<()> {
        let nothing = view::open(Path::new("/dev/null"))?;
        let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NOEXEC;
        // Only the first user can read the others.
        let is_first = rustix::process::geteuid().is_root();
        let first = KERNEL_FILES_OF_FIRST.iter().filter(|_| is_first);
        for path in KERNEL_FILES.iter().chain(first).map(Path::new) {
            if Self::at(path).exists() {
                self.attach(&nothing, path, flags)?;
            }
        }
        Ok(())
    }

    /// Makes the site the root and lets go of everything else.
    fn enter(self) -> io::Result<()> {
        rustix::process::chdir(SITE)?;
        // The old root ends up on top of the new one, and is taken off from there.
        rustix::process::pivot_root(".", ".")?;
        unmount(".", UnmountFlags::DETACH)?;
        rustix::process::chdir("/")?;
        let flags = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
        Ok(mount_remount("/", flags, c"")?)
    }
}

/// The flags of a mount that only the machine's own administrator may take away.
fn kept_flags(tree: &OwnedFd) -> io::Result<MountFlags> {
    let now = fstatvfs(tree)?.f_flag;
    let pairs = [
        (StatVfsMountFlags::RDONLY, MountFlags::RDONLY),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ];
    let kept = pairs.into_iter().filter(|(flag, _)| now.contains(*flag)).map(|(_, kept)| kept);
    Ok(kept.fold(MountFlags::empty(), |all, one| all | one))
}
