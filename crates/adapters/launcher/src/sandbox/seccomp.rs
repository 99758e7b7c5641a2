//! A filter of system calls: what no agent needs and what would widen the kernel's surface.
//!
//! It is a list of what is denied, so that interpreters with their many calls just work. Denied
//! calls fail with "not permitted"; `clone3` and `openat2` fail as if the kernel were older,
//! because their flags lie in memory where no filter sees them, and libraries then use `clone`
//! and `openat`.
//!
//! There are two filters. One denies calls by their numbers. It is put together here, because the
//! kernel looks at a filter once for each call there is when it is put on, and one instruction
//! for each number keeps a start short. The other looks at arguments and is compiled.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter, sock_filter,
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
    // Memory that belongs to no process, or to a pipe, which therefore nobody counts.
    libc::SYS_shmget,
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_memfd_secret,
    libc::SYS_vmsplice,
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

/// Denied as if they did not exist.
const UNKNOWN: [i64; 2] = [libc::SYS_clone3, libc::SYS_openat2];

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

/// The architecture by its two names, and from which number on calls are for a second one that
/// shares its name.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: Option<(TargetArch, u32, u32)> =
    Some((TargetArch::x86_64, 0xc000_003e, 0x4000_0000));
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: Option<(TargetArch, u32, u32)> =
    Some((TargetArch::aarch64, 0xc000_00b7, u32::MAX));
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHITECTURE: Option<(TargetArch, u32, u32)> = None;

/// Filters, ready to be put on.
pub(crate) struct Filters([BpfProgram; 2]);

impl Filters {
    /// What a program must not hide from us depends on whether we could see it all the same: we
    /// can if it is in a namespace of ours.
    pub(crate) fn new(in_namespaces: bool) -> io::Result<Self> {
        let (architecture, name, second) = ARCHITECTURE.ok_or(io::ErrorKind::Unsupported)?;
        let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
        let by_arguments = by_arguments(in_namespaces)
            .and_then(|rules| {
                SeccompFilter::new(rules, SeccompAction::Allow, refused, architecture)
            })
            .and_then(BpfProgram::try_from)
            .map_err(io::Error::other)?;
        Ok(Self([by_arguments, by_numbers(name, second)]))
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

type SeccompRules = BTreeMap<i64, Vec<SeccompRule>>;
type SeccompResult<T> = Result<T, seccompiler::BackendError>;

/// Denies calls whatever their arguments.
fn by_numbers(architecture: u32, second: u32) -> BpfProgram {
    /// Load a word of the call's description; jump if equal; jump if not below; answer.
    const LOAD: u16 = 0x20;
    const IF_EQUAL: u16 = 0x15;
    const IF_NOT_BELOW: u16 = 0x35;
    const ANSWER: u16 = 0x06;
    let numbers: Vec<u32> =
        DENIED.iter().chain(DENIED_HERE).filter_map(|number| u32::try_from(*number).ok()).collect();
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    // From each place so many steps are left until the first of the answers below.
    let left = |after: usize| u8::try_from(numbers.len() - after).unwrap_or(u8::MAX);
    let mut filter = vec![
        step(LOAD, 0, 0, 4),
        step(IF_EQUAL, 1, 0, architecture),
        step(ANSWER, 0, 0, KILL),
        step(LOAD, 0, 0, 0),
        step(IF_NOT_BELOW, left(0) + 3, 0, second),
        step(IF_EQUAL, left(0) + 3, 0, UNKNOWN[0].try_into().unwrap_or(u32::MAX)),
        step(IF_EQUAL, left(0) + 2, 0, UNKNOWN[1].try_into().unwrap_or(u32::MAX)),
    ];
    for (index, number) in numbers.iter().enumerate() {
        filter.push(step(IF_EQUAL, left(index + 1) + 1, 0, *number));
    }
    filter.push(step(ANSWER, 0, 0, ALLOW));
    filter.push(step(ANSWER, 0, 0, ERROR | libc::EPERM.unsigned_abs()));
    filter.push(step(ANSWER, 0, 0, ERROR | libc::ENOSYS.unsigned_abs()));
    filter
}

/// The kernel's numbers for its answers.
const ALLOW: u32 = 0x7fff_0000;
const ERROR: u32 = 0x0005_0000;
const KILL: u32 = 0x8000_0000;

/// Denies calls with certain arguments.
fn by_arguments(in_namespaces: bool) -> SeccompResult<SeccompRules> {
    let mut rules = BTreeMap::from([
        (libc::SYS_socket, sockets()?),
        (libc::SYS_clone, odd_clones()?),
        (libc::SYS_close_range, vec![own_table()?]),
        (libc::SYS_ioctl, terminal_tricks()?),
        (libc::SYS_personality, vec![odd_personality()?]),
        (libc::SYS_openat, odd_creations(2, 3)?),
    ]);
    for (number, mode) in MODES.iter().chain(MODES_HERE) {
        rules.insert(*number, odd_modes(*mode)?);
    }
    #[cfg(target_arch = "x86_64")]
    rules.insert(libc::SYS_open, odd_creations(1, 2)?);
    if !in_namespaces {
        rules.insert(libc::SYS_prctl, vec![invisible()?]);
    }
    Ok(rules)
}

/// Calls that set a file's mode, and which of their arguments that is.
const MODES: &[(i64, u8)] =
    &[(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (FCHMODAT2, 2), (libc::SYS_mknodat, 2)];
#[cfg(target_arch = "x86_64")]
const MODES_HERE: &[(i64, u8)] =
    &[(libc::SYS_chmod, 1), (libc::SYS_mknod, 1), (libc::SYS_creat, 1)];
#[cfg(not(target_arch = "x86_64"))]
const MODES_HERE: &[(i64, u8)] = &[];
/// `fchmodat2`, whose number is the same everywhere.
const FCHMODAT2: i64 = 452;

/// The bits of a mode by which a program runs as the file's user or group. Outside the fence the
/// file would still have them.
const AS_ANOTHER: [u64; 2] = [0o4000, 0o2000];

fn odd_modes(mode: u8) -> SeccompResult<Vec<SeccompRule>> {
    let bit = |bit| SeccompRule::new(vec![argument(mode, SeccompCmpOp::MaskedEq(bit), bit)?]);
    AS_ANOTHER.into_iter().map(bit).collect()
}

/// The mode counts only if a file is made; otherwise anything may stand there.
fn odd_creations(flags: u8, mode: u8) -> SeccompResult<Vec<SeccompRule>> {
    /// Of the two flags that a file without a name takes, the one that is not also for folders.
    const UNNAMED: u64 = (libc::O_TMPFILE & !libc::O_DIRECTORY).unsigned_abs() as u64;
    let mut rules = Vec::new();
    for making in [u64::from(libc::O_CREAT.unsigned_abs()), UNNAMED] {
        for bit in AS_ANOTHER {
            rules.push(SeccompRule::new(vec![
                argument(flags, SeccompCmpOp::MaskedEq(making), making)?,
                argument(mode, SeccompCmpOp::MaskedEq(bit), bit)?,
            ])?);
        }
    }
    Ok(rules)
}

/// All sockets but those of files and of TCP. The others would pass by the proxy.
fn sockets() -> SeccompResult<Vec<SeccompRule>> {
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

/// Namespaces, and threads whose descriptors are not those of their process, for nobody would look
/// for them there.
fn odd_clones() -> SeccompResult<Vec<SeccompRule>> {
    let flags = [
        libc::CLONE_NEWNS,
        libc::CLONE_NEWCGROUP,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
    ];
    let bits = |flag: i32| u64::from(flag.cast_unsigned());
    let has = |flag: i32| argument(0, SeccompCmpOp::MaskedEq(bits(flag)), bits(flag));
    let has_not = |flag: i32| argument(0, SeccompCmpOp::MaskedEq(bits(flag)), 0);
    let mut rules: Vec<SeccompRule> = flags
        .into_iter()
        .map(|flag| SeccompRule::new(vec![has(flag)?]))
        .collect::<SeccompResult<_>>()?;
    let apart = vec![has(libc::CLONE_THREAD)?, has_not(libc::CLONE_FILES)?];
    rules.push(SeccompRule::new(apart)?);
    Ok(rules)
}

/// Closing descriptors after having taken a copy of the table that holds them.
fn own_table() -> SeccompResult<SeccompRule> {
    let flag = u64::from(libc::CLOSE_RANGE_UNSHARE);
    SeccompRule::new(vec![argument(2, SeccompCmpOp::MaskedEq(flag), flag)?])
}

/// Becoming a process that others of the same user cannot look at.
fn invisible() -> SeccompResult<SeccompRule> {
    let option = u64::from(libc::PR_SET_DUMPABLE.unsigned_abs());
    let is_off = argument(1, SeccompCmpOp::Eq, 0)?;
    SeccompRule::new(vec![argument(0, SeccompCmpOp::Eq, option)?, is_off])
}

/// Typing on behalf of whoever owns the terminal.
fn terminal_tricks() -> SeccompResult<Vec<SeccompRule>> {
    [libc::TIOCSTI, libc::TIOCLINUX]
        .into_iter()
        .map(|request| SeccompRule::new(vec![argument(1, SeccompCmpOp::Eq, request)?]))
        .collect()
}

/// Anything but the usual one and the question which it is.
fn odd_personality() -> SeccompResult<SeccompRule> {
    SeccompRule::new(vec![
        argument(0, SeccompCmpOp::Ne, 0)?,
        argument(0, SeccompCmpOp::Ne, 0xffff_ffff)?,
    ])
}

fn argument(index: u8, op: SeccompCmpOp, value: u64) -> SeccompResult<SeccompCondition> {
    SeccompCondition::new(index, SeccompCmpArgLen::Dword, op, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goes through the filter as the kernel does.
    fn answer(filter: &[sock_filter], architecture: u32, number: u32) -> u32 {
        let (mut at, mut word) = (0, 0);
        loop {
            let step = &filter[at];
            let jump = |holds: bool| usize::from(if holds { step.jt } else { step.jf });
            at += 1 + match step.code {
                0x20 => {
                    word = if step.k == 4 { architecture } else { number };
                    0
                }
                0x15 => jump(word == step.k),
                0x35 => jump(word >= step.k),
                0x06 => return step.k,
                other => panic!("unknown step {other}"),
            };
        }
    }

    #[test]
    fn exactly_the_denied_numbers_are_denied() {
        let filter = by_numbers(7, 0x4000_0000);
        let denied: Vec<u32> = DENIED
            .iter()
            .chain(DENIED_HERE)
            .map(|number| u32::try_from(*number).expect("fits"))
            .collect();
        assert!(denied.len() < 200, "jumps are short");
        let newer = UNKNOWN.map(|number| u32::try_from(number).expect("fits"));
        for number in 0..600 {
            let expect = match number {
                number if denied.contains(&number) => ERROR | 1,
                number if newer.contains(&number) => ERROR | 38,
                _ => ALLOW,
            };
            assert_eq!(answer(&filter, 7, number), expect, "{number}");
            assert_eq!(answer(&filter, 7, number | 0x4000_0000), ERROR | 1, "{number}");
            assert_eq!(answer(&filter, 8, number), KILL, "{number}");
        }
    }

    #[test]
    fn the_filters_can_be_made_here() {
        for in_namespaces in [true, false] {
            let filters = Filters::new(in_namespaces).expect("compiles");
            let lengths = filters.0.each_ref().map(Vec::len);
            assert!(lengths.iter().all(|length| *length < 400), "they are short: {lengths:?}");
        }
    }
}
