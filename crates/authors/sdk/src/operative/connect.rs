//! Tools that are offered to a core, for as long as the program wants.

use std::time::{Duration, SystemTime};

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use wharf_vocab::Backoff;

use super::{Options, Serving, catalog, serve_with};
use crate::transport::{self, Address, Link, ws};
use crate::{Error, Place, Within};

/// How tools are offered to a core.
///
/// ```
/// use wharf_sdk::operative::Connect;
///
/// let connect = Connect { token: Some("wharf_t_secret".to_owned()), ..Connect::new("browser") };
/// assert_eq!(connect.provider, "browser");
/// assert!(!format!("{connect:?}").contains("secret"), "a token is never shown");
/// ```
#[derive(Clone)]
pub struct Connect {
    /// The name under which the tools stand in the catalog: `NAME/tool`. The token must allow it.
    pub provider: String,
    /// The token, which must have the right to serve.
    pub token: Option<String>,
    /// Whether to wait for a core that cannot be reached yet. Without it the first connection has
    /// to succeed.
    pub patient: bool,
    /// How long to wait before connecting again; it doubles with each failure, up to the maximum.
    pub backoff: Duration,
    /// The longest wait.
    pub backoff_max: Duration,
    /// How tools are served.
    pub serving: Options,
    /// Everything else about the connection; its token is not used.
    pub transport: transport::Options,
}

impl Connect {
    /// The defaults for a name.
    #[must_use]
    pub fn new(provider: impl Into<String>) -> Self {
        Self {
            provider: provider.into(),
            token: None,
            patient: false,
            backoff: Duration::from_millis(200),
            backoff_max: Duration::from_secs(15),
            serving: Options::default(),
            transport: transport::Options::default(),
        }
    }
}

debug_only!(Connect: provider, patient);

/// Tools that a core can call, as long as this is held.
#[derive(Debug)]
pub struct Operative {
    stop: DropGuard,
    task: JoinHandle<()>,
    state: watch::Receiver<OperativeState>,
}

/// How it stands with the connection.
#[derive(Debug, Clone, Default)]
struct OperativeState {
    /// The ids of the tools, while there is a connection.
    tools: Option<Vec<String>>,
    /// Why there is none.
    problem: Option<String>,
}

/// Connects to a core, offers everything that a scope or an agent provides, and serves it. When
/// the connection is lost it is made again, until the result is stopped or dropped or the scope is
/// closed.
///
/// ```no_run
/// use wharf_sdk::operative::{self, Connect};
/// use wharf_sdk::{Scope, Tool};
///
/// const GET_LOCATION: Tool<(), String> = Tool::new("get-location", "Where the user is.");
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let scope = Scope::root();
/// scope.provide(&GET_LOCATION, |(), _cx| async { Ok("here".to_owned()) })?;
/// let connect = Connect { token: std::env::var("TOKEN").ok(), ..Connect::new("desktop") };
/// let operative = operative::connect(&scope, "http://localhost:4200", connect).await?;
/// println!("{:?}", operative.tools()); // ["desktop/get-location"]
/// operative.stop().await;
/// # Ok(()) }
/// ```
pub async fn connect(
    within: &impl Within,
    core: &str,
    options: Connect,
) -> Result<Operative, Error> {
    let address = Address::parse(core)?.at("/v1/tool/ws");
    let address = address.with("role", "operative").with("provider", &options.provider);
    let keeper = Keeper::new(within.place(), address, options);
    let (state, watched) = watch::channel(OperativeState::default());
    let first = match keeper.once().await {
        Ok(first) => Some(first),
        Err(error) if keeper.options.patient && error.is_passing() => None,
        Err(error) => return Err(error),
    };
    if let Some(first) = &first {
        state.send_replace(OperativeState { tools: Some(first.tools.clone()), problem: None });
    }
    let stop = keeper.stop.clone().drop_guard();
    let task = tokio::spawn(keeper.keep(first, state));
    Ok(Operative { stop, task, state: watched })
}

impl Operative {
    /// The ids under which the core knows the tools; empty while there is no connection.
    #[must_use]
    pub fn tools(&self) -> Vec<String> {
        self.state.borrow().tools.clone().unwrap_or_default()
    }

    /// Whether there is a connection now.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.state.borrow().tools.is_some()
    }

    /// Why there is no connection, if there is none.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        self.state.borrow().problem.clone()
    }

    /// Waits until there is a connection, or, with `false`, until there is none. `false` is given
    /// back if there never will be one again.
    pub async fn connected(&mut self, wanted: bool) -> bool {
        self.state.wait_for(|state| state.tools.is_some() == wanted).await.is_ok()
    }

    /// Ends in good order: calls that are under way may end, then the connection is closed.
    pub async fn stop(self) {
        drop(self.stop);
        // It ends because it was told to.
        let _ = self.task.await;
    }

    /// Waits until it ends by itself, because its scope was closed.
    pub async fn ended(&mut self) {
        // As above.
        let _ = (&mut self.task).await;
    }
}

/// One connection on which the tools are served.
struct OperativeConnection {
    link: Link,
    serving: Serving,
    tools: Vec<String>,
}

/// Whoever keeps the tools connected.
struct Keeper {
    place: Place,
    address: Address,
    options: Connect,
    stop: CancellationToken,
}

impl Keeper {
    fn new(place: Place, address: Address, mut options: Connect) -> Self {
        options.transport.token = options.token.take();
        Self { place, address, options, stop: CancellationToken::new() }
    }

    /// Connects, offers and serves, once.
    async fn once(&self) -> Result<OperativeConnection, Error> {
        let link = ws::connect_to(&self.address, &self.options.transport).await?.of_core();
        let serving = serve_with(&self.place, &link, self.options.serving.clone());
        let wait = self.options.transport.connect_max;
        let offered = tokio::time::timeout(wait, link.offer(catalog::offer(&self.place))).await;
        let address = || self.address.authority();
        let tools = offered.map_err(|_| Error::Timeout { address: address() })??;
        Ok(OperativeConnection { link, serving, tools })
    }

    async fn keep(self, first: Option<OperativeConnection>, state: watch::Sender<OperativeState>) {
        let mut connection = first;
        while !self.stop.is_cancelled() && !self.place.0.is_closed() {
            let current = match connection.take() {
                Some(current) => Some(current),
                None => self.again(&state).await,
            };
            let Some(OperativeConnection { link, mut serving, tools }) = current else { return };
            state.send_replace(OperativeState { tools: Some(tools), problem: None });
            tokio::select! {
                () = &mut serving => {}
                () = self.stop.cancelled() => {
                    serving.stop().await;
                    link.close().await;
                    return;
                }
                () = self.place.0.ended() => {
                    link.close().await;
                    return;
                }
            }
            let problem = Some("the connection was lost".to_owned());
            state.send_replace(OperativeState { tools: None, problem });
        }
    }

    /// Connects again, however often it takes; `None` when told to stop.
    async fn again(&self, state: &watch::Sender<OperativeState>) -> Option<OperativeConnection> {
        let mut backoff = Backoff::new(self.options.backoff, self.options.backoff_max);
        loop {
            tokio::select! {
                () = tokio::time::sleep(scattered(backoff.pause())) => {}
                () = self.stop.cancelled() => return None,
                () = self.place.0.ended() => return None,
            }
            match self.once().await {
                Ok(connection) => return Some(connection),
                Err(error) => {
                    let problem = Some(error.to_string());
                    state.send_replace(OperativeState { tools: None, problem });
                }
            }
        }
    }
}

/// A wait that differs from that of others who lost the same core.
fn scattered(wait: Duration) -> Duration {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let share = now.subsec_nanos() % 500;
    wait.mul_f64(0.75 + f64::from(share) / 1_000.0)
}
