//! One server, as the core deals with it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};
use rustls::ClientConfig;
use tokio::sync::watch;
use tokio::time::Instant;
use wharf_domain::run::AttemptError;
use wharf_engine::{Attempt, AttemptEnd, Handle};
use wharf_hosting::canceled_unsent;
use wharf_protocol::Moment;
use wharf_socket::Clock;
use wharf_vocab::{Code, Executed, Fault};

use super::breaker::Breaker;
use super::dial::{self, DialError, ServerSocket};
use super::drive::Drive;
use super::{Health, ServerEndpoint, Settings, health};

/// Gives the endpoint of a server.
pub trait EndpointSource: Send + Sync + 'static {
    /// Where the server is now; asked for each connection. An error means that the server is gone
    /// for good, as far as attempts under way are concerned, and says why.
    fn endpoint(&self) -> BoxFuture<'_, Result<ServerEndpoint, Fault>>;
}

impl EndpointSource for ServerEndpoint {
    fn endpoint(&self) -> BoxFuture<'_, Result<ServerEndpoint, Fault>> {
        Box::pin(std::future::ready(Ok(self.clone())))
    }
}

/// How a server gets at the files of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileAccess {
    /// It is given addresses of storage.
    Addresses,
    /// It is given paths of files that the caller has put there, or will take from there. What is
    /// not named here is an address.
    Paths {
        /// Inputs, by name.
        inputs: BTreeMap<String, String>,
        /// Outputs, by name.
        outputs: BTreeMap<String, String>,
    },
}

/// Whether a server can be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reachable {
    /// As far as is known.
    Yes,
    /// It is left alone for the moment, and tried again from time to time.
    No {
        /// Why.
        why: String,
    },
}

/// One server, shared by all attempts that it works on.
#[derive(Clone)]
pub struct ServerLink(Arc<ServerState>);

struct ServerState {
    handle: Handle,
    doors: Arc<dyn EndpointSource>,
    settings: Settings,
    breaker: Mutex<Breaker>,
    reachable: watch::Sender<Reachable>,
    replays: AtomicBool,
    /// Whether it was noted that the server does not acknowledge requests.
    no_ack: AtomicBool,
    tls: OnceLock<Arc<ClientConfig>>,
    clock: Clock,
}

impl ServerLink {
    /// A server behind these doors.
    #[must_use]
    pub fn new(handle: Handle, doors: Arc<dyn EndpointSource>, settings: Settings) -> Self {
        Self(Arc::new(ServerState {
            handle,
            doors,
            breaker: Mutex::new(Breaker::new(settings.failures_max, settings.rest)),
            reachable: watch::Sender::new(Reachable::Yes),
            replays: AtomicBool::new(settings.replays),
            no_ack: AtomicBool::new(false),
            tls: OnceLock::new(),
            clock: Clock::start(),
            settings,
        }))
    }

    /// Whether the server can be reached, as far as is known.
    #[must_use]
    pub fn reachable(&self) -> Reachable {
        self.0.reachable.borrow().clone()
    }

    /// Waits until that is not what it was; what it is then.
    pub async fn reachable_changed(&self, before: &Reachable) -> Reachable {
        let mut reachable = self.0.reachable.subscribe();
        // This value holds the sender, so it is not gone.
        reachable.wait_for(|now| now != before).await.map_or(before.clone(), |now| now.clone())
    }

    /// How the server is, in its own words.
    pub async fn health(&self) -> Result<Health, Fault> {
        let endpoint = self.0.doors.endpoint().await?;
        let asked = async {
            let wire = dial::reach(&endpoint, self.settings(), || self.tls()).await?;
            health::ask(&endpoint, wire).await
        };
        let slow = Err(DialError("it does not say how it is".to_owned()));
        let patience = self.settings().connect + self.settings().handshake;
        tokio::time::timeout(patience, asked).await.unwrap_or(slow).map_err(|why| away(&why.0))
    }

    /// Takes an attempt to its end. Dropping the future leaves the server alone with it; it can
    /// be taken up again, as after a restart of the core.
    pub async fn drive(
        &self,
        attempt: &Attempt,
        files: &FileAccess,
        stop: &StopSignal,
    ) -> AttemptEnd {
        if stop.is_wanted() {
            return AttemptEnd::new(Err(canceled_unsent("run")), 0);
        }
        let driven = async {
            attempt.handed_over();
            let drive = Drive::begin(self, attempt, files, stop).await?;
            Ok(drive.run().await)
        };
        // An attempt that is to be taken up again may well have begun before.
        let reattach = attempt.dispatch().reattach;
        let executed = if reattach { Executed::Maybe } else { Executed::No };
        driven.await.unwrap_or_else(|fault: Fault| {
            AttemptEnd::new(Err(AttemptError::Failed(fault, executed)), 0)
        })
    }

    pub(super) fn handle(&self) -> &Handle {
        &self.0.handle
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.0.settings
    }

    pub(super) async fn endpoint(&self) -> Result<ServerEndpoint, Fault> {
        self.0.doors.endpoint().await
    }

    pub(super) fn now(&self) -> Moment {
        self.0.clock.moment(self.0.handle.now())
    }

    pub(super) fn replays(&self) -> bool {
        self.0.replays.load(Ordering::Relaxed)
    }

    pub(super) fn learn_replays(&self) {
        self.0.replays.store(true, Ordering::Relaxed);
    }

    /// Notes, once for each server, that it does not acknowledge requests.
    pub(super) fn note_no_ack(&self) {
        if !self.0.no_ack.swap(true, Ordering::Relaxed) {
            let tool = self.tool_name();
            tracing::info!(tool, "a tool server sends no Ack; its first message counts as one");
        }
    }

    /// The tool that is served, as the log names it.
    fn tool_name(&self) -> Option<&str> {
        self.settings().tool.as_ref().map(|tool| tool.reference.as_str())
    }

    /// Why nobody may try to reach the server now.
    pub(super) fn refuses(&self) -> Option<Fault> {
        self.breaker().refuses(Instant::now()).map(|why| away(&why))
    }

    /// Makes a connection for a run, and remembers whether it worked.
    pub(super) async fn dial(&self, endpoint: &ServerEndpoint) -> Result<ServerSocket, DialError> {
        let dialed = async {
            let wire = dial::reach(endpoint, self.settings(), || self.tls()).await?;
            dial::open(endpoint, wire, self.settings()).await
        };
        let dialed = dialed.await;
        match &dialed {
            Ok(_) => {
                if self.breaker().succeeded() {
                    tracing::info!(tool = self.tool_name(), "a tool server can be reached again");
                    self.0.reachable.send_replace(Reachable::Yes);
                }
            }
            Err(why) => {
                if self.breaker().failed(Instant::now(), &why.0) {
                    let why = why.0.clone();
                    let tool = self.tool_name();
                    tracing::warn!(tool, %why, "a tool server cannot be reached and is left alone");
                    self.0.reachable.send_replace(Reachable::No { why });
                    let looking = look_again(Arc::downgrade(&self.0));
                    self.settings().tasks.spawn_until_end("looking for a tool server", looking);
                }
            }
        }
        dialed
    }

    fn tls(&self) -> Result<Arc<ClientConfig>, DialError> {
        if let Some(config) = self.0.tls.get() {
            return Ok(Arc::clone(config));
        }
        let config = dial::tls_config(&self.0.settings.roots).map_err(|error| {
            DialError(format!("this machine's certificates cannot be used ({error})"))
        })?;
        Ok(Arc::clone(self.0.tls.get_or_init(|| Arc::new(config))))
    }

    fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.0.breaker.lock()
    }
}

/// Tells one attempt to stop, from anywhere.
#[derive(Clone, Default)]
pub struct StopSignal(watch::Sender<Option<Duration>>);

impl StopSignal {
    /// The attempt is to stop, and may take so long. Saying it again changes nothing.
    pub fn now(&self, grace: Duration) {
        self.0.send_if_modified(|wanted| {
            let first = wanted.is_none();
            wanted.get_or_insert(grace);
            first
        });
    }

    fn is_wanted(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Waits until the attempt is to stop; how long it may take.
    pub(crate) async fn wanted(&self) -> Duration {
        let mut receiver = self.0.subscribe();
        match receiver.wait_for(Option::is_some).await.map(|wanted| *wanted) {
            Ok(Some(grace)) => grace,
            // This value holds a sender, so it never comes to this.
            _ => std::future::pending().await,
        }
    }
}

/// Tries a server that is left alone from time to time, until it is there again or nobody wants
/// it any more.
fn look_again(inner: Weak<ServerState>) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        loop {
            let Some(rest) = inner.upgrade().map(|inner| inner.settings.rest) else { return };
            tokio::time::sleep(rest).await;
            let Some(server) = inner.upgrade().map(ServerLink) else { return };
            if server.reachable() == Reachable::Yes {
                return;
            }
            if let Ok(endpoint) = server.endpoint().await
                && let Ok(mut socket) = server.dial(&endpoint).await
            {
                // It is there, and nothing was asked of it.
                let _ = tokio::time::timeout(rest, socket.close(None)).await;
                return;
            }
        }
    })
}

/// A server that is not there for new attempts.
pub(super) fn away(why: &str) -> Fault {
    let message = format!("The tool server cannot be reached: {why}.");
    Fault::new(Code::ToolUnavailable, message)
}
