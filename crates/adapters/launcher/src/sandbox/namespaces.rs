//! Namespaces and the privileges that building in them takes.
//!
//! The warden makes a user and a process namespace. Its child is the first process in the latter
//! and makes the others. Privileges exist in the user namespace only; the child needs some to
//! build, and gives them all up before the program starts.

use std::fs;
use std::io;

use rustix::process::{getegid, geteuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, UnshareFlags, capabilities, clear_ambient_capability_set,
    configure_capability_in_ambient_set, remove_capability_from_bounding_set, set_capabilities,
};

/// What the child needs: to mount and to name the host, to give up privileges for good, and to
/// switch its loopback device on.
const LENT: [CapabilitySet; 3] =
    [CapabilitySet::SYS_ADMIN, CapabilitySet::SETPCAP, CapabilitySet::NET_ADMIN];

/// What the owner has only so many of, and how many of them one program may have.
const SHARES: [(&str, &str); 3] = [
    ("max_inotify_instances", "16"),
    ("max_inotify_watches", "16384"),
    ("max_user_namespaces", "0"),
];

/// Moves this process into a user namespace. The user and the group keep their numbers and are the
/// only ones there. No thread may run yet.
pub(crate) fn leave_users() -> io::Result<()> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    unshare(UnshareFlags::NEWUSER)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    for (name, most) in SHARES {
        // These are the new namespace's own numbers. An old kernel has not all of them.
        let _ = fs::write(format!("/proc/sys/user/{name}"), most);
    }
    Ok(())
}

/// Moves the children of this thread into a process namespace. No thread can be made any more.
pub(crate) fn leave_processes() -> io::Result<()> {
    unshare(UnshareFlags::NEWPID)?;
    lend()
}

/// Moves this process into namespaces for files and for the host's name.
pub(crate) fn leave_files() -> io::Result<()> {
    unshare(UnshareFlags::NEWNS | UnshareFlags::NEWUTS)?;
    Ok(rustix::system::sethostname(b"wharf")?)
}

/// Moves this thread into a namespace for messages between processes and, if it shall have one of
/// its own, into a network without any device but loopback, which is off.
pub(crate) fn leave_others(network: bool) -> io::Result<()> {
    let network = if network { UnshareFlags::NEWNET } else { UnshareFlags::empty() };
    unshare(UnshareFlags::NEWIPC | network)
}

#[expect(
    deprecated,
    reason = "its only danger is a table of descriptors that threads no longer share, which no \
              caller asks for; the other way needs unsafe code"
)]
fn unshare(flags: UnshareFlags) -> io::Result<()> {
    Ok(rustix::thread::unshare(flags)?)
}

/// Lets a child keep some privileges although it begins a new program.
fn lend() -> io::Result<()> {
    let own = capabilities(None)?;
    let inheritable = LENT.into_iter().fold(CapabilitySet::empty(), |all, one| all | one);
    set_capabilities(None, CapabilitySets { inheritable, ..own })?;
    for one in LENT {
        configure_capability_in_ambient_set(one, true)?;
    }
    Ok(())
}

/// Gives up every privilege of this thread for good, also those that a program of the first user
/// would get when it begins.
pub(crate) fn give_up_privileges() -> io::Result<()> {
    clear_ambient_capability_set()?;
    // The kernel's last one is not known; each number it has no use for is an error.
    for number in 0..u64::BITS {
        let one = CapabilitySet::from_bits_retain(1 << number);
        if remove_capability_from_bounding_set(one).is_err() {
            if number == 0 {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
            break;
        }
    }
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, sets)?;
    Ok(rustix::thread::set_no_new_privs(true)?)
}
