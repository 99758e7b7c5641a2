//! What waits in pipes, sockets and connections for somebody to read it.

use std::fs;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

/// What may wait in a socket that something waits in.
const SOCKET_BYTES: u64 = 256 * 1_024;
/// Descriptors that the kernel lets go along with one message.
const TOGETHER_MAX: usize = 253;
/// How long what waits in connections is not asked for again.
const CONNECTIONS_PAUSE: Duration = Duration::from_secs(2);

/// What waits in connections by TCP. The kernel looks through those of all to tell those of one, so
/// it is asked less often, and only of a program that ever had any.
#[derive(Debug, Default)]
pub(super) struct Connections {
    pub(super) are_used: bool,
    asked_at: Option<Instant>,
    bytes: u64,
}

impl Connections {
    /// What waits in a process's network, which is nobody else's.
    pub(super) fn bytes_of(&mut self, process: &Path) -> u64 {
        let is_time = self.asked_at.is_none_or(|asked_at| asked_at.elapsed() > CONNECTIONS_PAUSE);
        if self.are_used && is_time {
            self.bytes = in_connections(process);
            self.asked_at = Some(Instant::now());
        }
        self.bytes
    }
}

/// What a pipe may hold, if it holds anything: a page for each little bit.
pub(super) fn in_pipe(pipe: &OwnedFd) -> u64 {
    match rustix::io::ioctl_fionread(pipe) {
        Ok(waiting) if waiting > 0 => {
            rustix::pipe::fcntl_getpipe_size(pipe).map_or(0, |size| size as u64)
        }
        _ => 0,
    }
}

pub(super) fn in_socket(socket: &OwnedFd) -> u64 {
    if rustix::io::ioctl_fionread(socket).is_ok_and(|waiting| waiting > 0) {
        SOCKET_BYTES
    } else {
        0
    }
}

/// How many descriptors wait in a socket; none if it is not one in which they can.
pub(super) fn on_their_way(about: &Path) -> Option<u32> {
    let text = fs::read_to_string(about).ok()?;
    text.lines().find_map(|line| line.strip_prefix("scm_fds:")?.trim().parse().ok())
}

/// Copies of the descriptors that come with the next message of a socket, which stays there.
pub(super) fn first_of(socket: &OwnedFd) -> io::Result<Vec<OwnedFd>> {
    const SPACE: usize = rustix::cmsg_space!(ScmRights(TOGETHER_MAX), ScmCredentials(1));
    let mut space = [MaybeUninit::uninit(); SPACE];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let mut byte = [0];
    recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, flags)?;
    let mut descriptors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(some) = message {
            descriptors.extend(some);
        }
    }
    Ok(descriptors)
}

/// What waits in connections by TCP, whoever has them, of a process's network.
fn in_connections(process: &Path) -> u64 {
    let waiting = |line: &str| {
        let (sent, received) = line.split_ascii_whitespace().nth(4)?.split_once(':')?;
        let hex = |text| u64::from_str_radix(text, 16).ok();
        // One that listens says there how many may wait for it.
        let is_open = line.split_ascii_whitespace().nth(3) != Some("0A");
        is_open.then(|| hex(sent)?.checked_add(hex(received)?)).flatten()
    };
    let of = |name| fs::read_to_string(process.join("net").join(name)).unwrap_or_default();
    let sum = |text: String| text.lines().skip(1).filter_map(waiting).sum::<u64>();
    sum(of("tcp")) + sum(of("tcp6"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_of_a_socket_is_understood() {
        let dir = tempfile::tempdir().expect("a directory");
        let about = dir.path().join("about");
        for (text, expect) in [("pos:\t0\nscm_fds: 3\n", Some(3)), ("pos:\t0\n", None)] {
            fs::write(&about, text).expect("writes");
            assert_eq!(on_their_way(&about), expect);
        }
        fs::create_dir(dir.path().join("net")).expect("makes it");
        let text = "  sl  local rem st tx_queue:rx_queue\n\
            0: 0100007F:1F90 00000000:0000 0A 00000000:00000080 00:00000000 0 0 0 1\n\
            1: 0100007F:1F90 0100007F:9999 01 00001000:00000010 00:00000000 0 0 0 2\n";
        fs::write(dir.path().join("net/tcp"), text).expect("writes");
        assert_eq!(in_connections(dir.path()), 0x1010);
    }
}
