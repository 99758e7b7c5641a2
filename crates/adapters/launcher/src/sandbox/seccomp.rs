//! A filter of system calls: what no agent needs and what would widen the kernel's surface.
//!
//! It is a list of what is denied, so that interpreters with their many calls just work. Denied
//! calls fail with "not permitted"; `clone3` fails as if the kernel were older, because its flags
//! lie in memory where no filter sees them, and libraries then use `clone`.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

/// Denied whatever their arguments.
const DENIED: &[i64] = &[
    // Looking into and steering other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Mounting.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    OPEN_TREE_ATTR,
    // Namespaces.
    libc::SYS_unshare,
    libc::SYS_setns,
    // Large and often faulty parts of the kernel.
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_fanotify_init,
    libc::SYS_lookup_dcookie,
    // Keys of the kernel, which no namespace parts.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Files by number instead of by path.
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    // The machine.
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_nfsservctl,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    // Its clock.
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
];

/// Denied where they exist.
#[cfg(target_arch = "x86_64")]
const DENIED_HERE: &[i64] = &[
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS__sysctl,
    libc::SYS_sysfs,
];
#[cfg(not(target_arch = "x86_64"))]
const DENIED_HERE: &[i64] = &[];

/// `open_tree_attr`, which is newer than the table of names; its number is the same everywhere.
const OPEN_TREE_ATTR: i64 = 467;

/// On this architecture every call has a second number that the filter must know as well.
#[cfg(target_arch = "x86_64")]
const SECOND_NUMBERS: Option<i64> = Some(0x4000_0000);
#[cfg(not(target_arch = "x86_64"))]
const SECOND_NUMBERS: Option<i64> = None;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: Option<TargetArch> = Some(TargetArch::x86_64);
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: Option<TargetArch> = Some(TargetArch::aarch64);
#[cfg(target_arch = "riscv64")]
const ARCHITECTURE: Option<TargetArch> = Some(TargetArch::riscv64);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
const ARCHITECTURE: Option<TargetArch> = None;

/// Filters, ready to be put on.
pub(crate) struct Filters([BpfProgram; 2]);

impl Filters {
    pub(crate) fn new() -> io::Result<Self> {
        let denied = denied().map_err(io::Error::other)?;
        let newer = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
        Ok(Self([compile(denied, libc::EPERM)?, compile(newer, libc::ENOSYS)?]))
    }

    /// Puts them on this thread and all it starts.
    pub(crate) fn apply(&self) -> io::Result<()> {
        self.0.iter().try_for_each(|filter| {
            apply_filter(filter).map_err(|error| match error {
                seccompiler::Error::Prctl(error) | seccompiler::Error::Seccomp(error) => error,
                error => io::Error::other(error),
            })
        })
    }
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;
type Built<T> = Result<T, seccompiler::BackendError>;

fn compile(mut rules: Rules, errno: i32) -> io::Result<BpfProgram> {
    let architecture = ARCHITECTURE.ok_or(io::ErrorKind::Unsupported)?;
    if let Some(offset) = SECOND_NUMBERS {
        let second: Vec<_> =
            rules.iter().map(|(number, rules)| (number + offset, rules.clone())).collect();
        rules.extend(second);
    }
    let refused = SeccompAction::Errno(errno.unsigned_abs());
    SeccompFilter::new(rules, SeccompAction::Allow, refused, architecture)
        .and_then(BpfProgram::try_from)
        .map_err(io::Error::other)
}

fn denied() -> Built<Rules> {
    let mut rules: Rules =
        DENIED.iter().chain(DENIED_HERE).map(|number| (*number, Vec::new())).collect();
    rules.insert(libc::SYS_socket, sockets()?);
    rules.insert(libc::SYS_clone, namespace_clones()?);
    rules.insert(libc::SYS_ioctl, terminal_tricks()?);
    rules.insert(libc::SYS_personality, vec![odd_personality()?]);
    Ok(rules)
}

/// All sockets but those of files and of TCP. The others would pass by the proxy.
fn sockets() -> Built<Vec<SeccompRule>> {
    let domain = |op, value: i32| argument(0, op, u64::from(value.unsigned_abs()));
    let mut rules = vec![SeccompRule::new(vec![
        domain(SeccompCmpOp::Ne, libc::AF_UNIX)?,
        domain(SeccompCmpOp::Ne, libc::AF_INET)?,
        domain(SeccompCmpOp::Ne, libc::AF_INET6)?,
    ])?];
    for internet in [libc::AF_INET, libc::AF_INET6] {
        // The type is a stream if of its four bits only the lowest is set.
        for (bit, set) in [(1, 0), (2, 2), (4, 4), (8, 8)] {
            let kind = argument(1, SeccompCmpOp::MaskedEq(bit), set)?;
            rules.push(SeccompRule::new(vec![domain(SeccompCmpOp::Eq, internet)?, kind])?);
        }
        // Other protocols have streams, too, which Landlock does not know.
        rules.push(SeccompRule::new(vec![
            domain(SeccompCmpOp::Eq, internet)?,
            argument(2, SeccompCmpOp::Ne, 0)?,
            argument(2, SeccompCmpOp::Ne, u64::from(libc::IPPROTO_TCP.unsigned_abs()))?,
        ])?);
    }
    Ok(rules)
}

fn namespace_clones() -> Built<Vec<SeccompRule>> {
    let flags = [
        libc::CLONE_NEWNS,
        libc::CLONE_NEWCGROUP,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
    ];
    flags
        .into_iter()
        .map(|flag| {
            let flag = u64::from(flag.cast_unsigned());
            SeccompRule::new(vec![argument(0, SeccompCmpOp::MaskedEq(flag), flag)?])
        })
        .collect()
}

/// Typing on behalf of whoever owns the terminal.
fn terminal_tricks() -> Built<Vec<SeccompRule>> {
    [libc::TIOCSTI, libc::TIOCLINUX]
        .into_iter()
        .map(|request| SeccompRule::new(vec![argument(1, SeccompCmpOp::Eq, request)?]))
        .collect()
}

/// Anything but the usual one and the question which it is.
fn odd_personality() -> Built<SeccompRule> {
    SeccompRule::new(vec![
        argument(0, SeccompCmpOp::Ne, 0)?,
        argument(0, SeccompCmpOp::Ne, 0xffff_ffff)?,
    ])
}

fn argument(index: u8, op: SeccompCmpOp, value: u64) -> Built<SeccompCondition> {
    SeccompCondition::new(index, SeccompCmpArgLen::Dword, op, value)
}
