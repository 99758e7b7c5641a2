//! What a service manager is told of a core: that it is ready, that it is alive, that it stops.
//!
//! It is the protocol of systemd: datagrams with `NAME=value` to the socket that the environment
//! names. Without one nothing is said. A manager may also have made the socket that the core is to
//! listen on.

use std::io;
use std::net::TcpListener;
use std::os::fd::AsFd as _;
#[cfg(target_os = "linux")]
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::net::sockopt::socket_acceptconn;
use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};
use wharf_engine::Handle;
use wharf_vocab::{Code, Fault, RunId, RunKey, WorldId};

use crate::core::internal;

/// How often at most a manager is told that the core is alive.
const SIGN_MIN: Duration = Duration::from_millis(10);

/// The number of the first socket that a manager hands over.
const FIRST_SOCKET: i32 = 3;

/// Whoever started the core and wants to hear of it.
#[derive(Debug)]
pub(crate) struct ServiceManager {
    socket: Option<(UnixDatagram, SocketAddr)>,
    /// How long it waits for a sign of life.
    patience: Option<Duration>,
}

impl ServiceManager {
    /// The one that the environment names.
    pub(crate) fn from_env() -> Self {
        Self::of(|name| std::env::var(name).ok())
    }

    fn of(var: impl Fn(&str) -> Option<String>) -> Self {
        let named = var("NOTIFY_SOCKET").filter(|text| !text.is_empty());
        let socket = named.and_then(|name| match open(&name) {
            Ok(socket) => Some(socket),
            Err(error) => {
                tracing::warn!(%error, "the socket in NOTIFY_SOCKET cannot be used");
                None
            }
        });
        // A process that inherited the variables without being meant is not asked.
        let is_meant = var("WATCHDOG_PID")
            .is_none_or(|pid| pid.parse().is_ok_and(|pid: u32| pid == std::process::id()));
        let micros = var("WATCHDOG_USEC").and_then(|text| text.parse().ok());
        let patience = micros.filter(|micros| *micros > 0 && is_meant).map(Duration::from_micros);
        Self { socket, patience }
    }

    /// The core can be used.
    pub(crate) fn ready(&self, url: &str) {
        self.tell(&format!("READY=1\nSTATUS=ready at {url}"));
    }

    /// The core has begun to stop.
    pub(crate) fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=finishing what is under way");
    }

    /// Tells the manager that the core is alive for as long as its engine answers, if it wants to
    /// know. What is returned ends it.
    pub(crate) fn watch(&self, handle: Handle) -> Result<LifeSigns, Fault> {
        let Some((patience, (socket, address))) = self.patience.zip(self.socket.as_ref()) else {
            return Ok(LifeSigns(None));
        };
        let socket = socket.try_clone().map_err(|_| internal())?;
        let address = address.clone();
        let key = nobody()?;
        let signs = tokio::spawn(async move {
            // Half of the time, as the protocol advises, so that one late sign is no harm.
            let period = (patience / 2).max(SIGN_MIN);
            let mut ticks = interval(period);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                // Any answer will do, also that there is no such run.
                match timeout(period, handle.runs().get(&key)).await {
                    Ok(_) => send(&socket, &address, "WATCHDOG=1"),
                    Err(_) => tracing::warn!("the engine does not answer"),
                }
            }
        });
        Ok(LifeSigns(Some(signs.abort_handle())))
    }

    fn tell(&self, text: &str) {
        if let Some((socket, address)) = &self.socket {
            send(socket, address, text);
        }
    }
}

/// Ends the signs of life when it is dropped.
#[derive(Debug)]
pub(crate) struct LifeSigns(Option<AbortHandle>);

impl Drop for LifeSigns {
    fn drop(&mut self) {
        if let Some(signs) = &self.0 {
            signs.abort();
        }
    }
}

/// The socket that a manager has made for this process to listen on, if there is one.
pub(crate) fn handed_over() -> Result<Option<TcpListener>, Fault> {
    match sockets(|name| std::env::var(name).ok()) {
        0 => Ok(None),
        1 => receive().map(Some).map_err(|error| {
            let message = format!("The socket that was handed over cannot be used: {error}.");
            Fault::new(Code::ConfigInvalid, message)
        }),
        several => {
            let message = format!(
                "{several} sockets were handed over, and a core listens on one; name one address \
                 in the socket's unit."
            );
            Err(Fault::new(Code::ConfigInvalid, message))
        }
    }
}

/// How many sockets this process was given.
fn sockets(var: impl Fn(&str) -> Option<String>) -> u32 {
    let number = |name| var(name).and_then(|text| text.parse::<u32>().ok());
    let is_meant = number("LISTEN_PID") == Some(std::process::id());
    number("LISTEN_FDS").filter(|_| is_meant).unwrap_or_default()
}

fn receive() -> io::Result<TcpListener> {
    let lent = wharf_socket::lend(FIRST_SOCKET)?;
    // Nothing that is started from here inherits it.
    fcntl_setfd(&lent, FdFlags::CLOEXEC)?;
    if !socket_acceptconn(&lent)? {
        return Err(io::Error::other("it does not listen"));
    }
    let listener = TcpListener::from(fcntl_dupfd_cloexec(lent.as_fd(), FIRST_SOCKET)?);
    // One of another family has no address of this kind.
    listener.local_addr()?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// A run that nobody makes.
fn nobody() -> Result<RunKey, Fault> {
    let world = WorldId::new("default").map_err(|_| internal())?;
    let run = RunId::new("sign-of-life").map_err(|_| internal())?;
    Ok(RunKey { world, run })
}

fn open(name: &str) -> io::Result<(UnixDatagram, SocketAddr)> {
    let address = match name.strip_prefix('@') {
        #[cfg(target_os = "linux")]
        Some(name) => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    // A manager that does not read must not hold the core up.
    socket.set_nonblocking(true)?;
    Ok((socket, address))
}

fn send(socket: &UnixDatagram, address: &SocketAddr, text: &str) {
    if let Err(error) = socket.send_to_addr(text.as_bytes(), address) {
        tracing::debug!(%error, "the service manager could not be told");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(vars: &[(&str, &str)]) -> ServiceManager {
        let known = |name: &str| {
            vars.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        ServiceManager::of(known)
    }

    #[test]
    fn it_is_told_by_a_path_or_by_an_abstract_name() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("notify");
        let abstract_name = format!("wharf-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&abstract_name).expect("a name");
        for (socket, name) in [
            (UnixDatagram::bind(&path), path.display().to_string()),
            (UnixDatagram::bind_addr(&address), format!("@{abstract_name}")),
        ] {
            let socket = socket.expect("bound");
            let manager = of(&[("NOTIFY_SOCKET", &name)]);
            manager.ready("http://h");
            manager.stopping();
            let mut heard = [0; 256];
            let mut next = || {
                let count = socket.recv(&mut heard).expect("heard");
                String::from_utf8_lossy(&heard[..count]).into_owned()
            };
            assert_eq!(next(), "READY=1\nSTATUS=ready at http://h");
            assert!(next().starts_with("STOPPING=1\n"));
        }
    }

    #[test]
    fn without_a_manager_nothing_is_said_and_nobody_waits_for_signs() {
        let silent = of(&[]);
        silent.ready("http://h");
        assert!(silent.socket.is_none() && silent.patience.is_none());
        assert!(of(&[("NOTIFY_SOCKET", "")]).socket.is_none());
        of(&[("NOTIFY_SOCKET", "/nowhere/at/all")]).ready("http://h");
    }

    #[test]
    fn sockets_are_for_the_process_that_is_meant() {
        let own = std::process::id().to_string();
        let count = |pid: &str, fds: &str| {
            sockets(|name| match name {
                "LISTEN_PID" => Some(pid.to_owned()),
                "LISTEN_FDS" => Some(fds.to_owned()),
                _ => None,
            })
        };
        assert_eq!(count(&own, "1"), 1);
        assert_eq!(count(&own, "3"), 3);
        assert_eq!(count("1", "1"), 0);
        assert_eq!(count("", "1"), 0);
        assert_eq!(count(&own, "x"), 0);
        assert_eq!(sockets(|_| None), 0);
    }

    #[test]
    fn signs_of_life_are_for_the_process_that_is_meant() {
        let own = std::process::id().to_string();
        let wait = |pid: &[(&str, &str)], usec| {
            of(&[pid, &[("WATCHDOG_USEC", usec)]].concat()).patience.map(|wait| wait.as_millis())
        };
        assert_eq!(wait(&[], "3000000"), Some(3000));
        assert_eq!(wait(&[("WATCHDOG_PID", &own)], "3000000"), Some(3000));
        assert_eq!(wait(&[("WATCHDOG_PID", "1")], "3000000"), None);
        for wrong in ["", "0", "-1", "soon"] {
            assert_eq!(wait(&[], wrong), None, "{wrong}");
        }
    }
}
