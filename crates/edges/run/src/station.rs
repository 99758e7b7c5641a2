//! One start of a tool server: waits until it is well, hands it attempts, lets it go.

mod work;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use wharf_domain::Provider;
use wharf_domain::provider::{Serving, ToolServer};
use wharf_engine::{Handle, Reach};
use wharf_hosting::{
    Assignment, ConnectionEnd, ConnectionGuard, Inbox, InboxCommand, OpenAttempts, Process,
    ProcessPhase, Tasks, with_last_error,
};
use wharf_ports::launcher::Launched;
use wharf_vocab::{Code, Executed, Fault};

use crate::doors::LaunchEndpoint;
use crate::equip;
use crate::folder::LaunchFolder;
use crate::link::{Health, Reachable, ServerEndpoint, ServerLink, Settings, StopSignal};
use crate::tools::{LaunchRoute, ToolServers, server_of};
use work::AttemptWork;

/// Attempts that a server works on at once when its manifest does not say.
const CALLS_DEFAULT: u32 = 64;
/// How long a server that is not well yet is left alone.
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// One start of a tool server.
pub(crate) struct ServerLaunch {
    tools: Arc<ToolServers>,
    process: Process,
    /// Ends the launch with this, however that goes.
    _tie: ConnectionGuard,
    doors: Arc<LaunchEndpoint>,
    server: ServerLink,
    /// The folder it shares with the core, if it cannot use addresses.
    shelf: Option<Arc<LaunchFolder>>,
    /// What the files of a run may have together.
    bytes_max: u64,
    /// Attempts that it works on at once.
    calls_max: usize,
    /// Attempts under way, and what tells each to stop.
    open: OpenAttempts<StopSignal>,
}

/// How a server is left.
enum LeaveReason {
    /// It is gone, or cannot be used.
    Lost(String),
    /// It is to end; attempts may go on so long.
    Goodbye(Duration),
}

impl ServerLaunch {
    /// Looks after a start in a task of its own.
    pub(crate) fn open(tools: Arc<ToolServers>, process: Process) {
        let tasks = tools.host.tasks().clone();
        tasks.spawn("looking after a tool server", async move {
            let (live, launch) = (Arc::clone(&process.live), process.launch.clone());
            match Self::new(tools, process) {
                Ok(station) => station.run().await,
                Err(fault) => {
                    live.disconnect(&launch, ConnectionEnd::Because(sentence(&fault)));
                }
            }
        });
    }

    fn new(tools: Arc<ToolServers>, process: Process) -> Result<Self, Fault> {
        let agent = &process.agent;
        let server = server_of(agent)?;
        let endpoint = endpoint(&tools, &process, server)?;
        let doors = Arc::new(LaunchEndpoint::new(
            Arc::clone(&tools),
            agent.id.clone(),
            endpoint,
            server.token_secret.clone(),
        ));
        let limits = wharf_hosting::limits(agent, &tools.options.hosting.limits);
        let said = [limits.calls_max, server.calls_max].into_iter().flatten().min();
        let calls_max = said.unwrap_or(CALLS_DEFAULT).max(1);
        let calls_max = usize::try_from(calls_max).unwrap_or(usize::MAX);
        let settings = settings(server, tools.host.tasks());
        let link = ServerLink::new(handle(&tools).clone(), Arc::clone(&doors) as _, settings);
        Ok(Self {
            shelf: shelf(&tools, &process, agent, server)?,
            server: link,
            doors,
            bytes_max: limits.usage.disk_bytes.unwrap_or(u64::MAX),
            calls_max,
            open: OpenAttempts::default(),
            _tie: ConnectionGuard::new(&process.live, &process.launch),
            tools,
            process,
        })
    }

    async fn run(mut self) {
        if let Err(why) = self.until_well().await {
            return self.process.live.disconnect(&self.process.launch, ConnectionEnd::Because(why));
        }
        let connected = self.process.live.connect(&self.process.launch, handle(&self.tools));
        let Some(mut inbox) = connected else { return };
        self.process.live.limit_calls_of(&self.process.launch, self.calls_max);
        self.fares(ProcessPhase::Running).await;
        match self.serve(&mut inbox).await {
            LeaveReason::Lost(why) => self.doors.close(why),
            LeaveReason::Goodbye(patience) => {
                self.drain(&mut inbox, patience).await;
                self.doors.close("it was ended".to_owned());
            }
        }
        self.process.live.disconnect(&self.process.launch, ConnectionEnd::Over);
        self.announce().await;
        while self.open.one_over().await.is_some() {}
    }

    /// Waits until a launched server says that it is well. One elsewhere is taken as it is: what
    /// keeps it from an attempt is told with that attempt.
    async fn until_well(&self) -> Result<(), String> {
        let Some(launched) = &self.process.launched else { return Ok(()) };
        let within = self.tools.options.healthy_within;
        let wait = async {
            loop {
                match self.server.health().await {
                    Ok(health) if health.ok => return health,
                    _ => tokio::time::sleep(LOOK_PAUSE).await,
                }
            }
        };
        tokio::select! {
            // Whoever looks after the process says how it ended.
            () = exited(&**launched) => Err("it ended before it was well".to_owned()),
            well = tokio::time::timeout(within, wait) => match well {
                Ok(health) => {
                    self.note(&health);
                    Ok(())
                }
                Err(_) => Err(self.unwell(&**launched, within).await),
            },
        }
    }

    fn note(&self, health: &Health) {
        let digest = health.digest.as_deref().unwrap_or("none");
        tracing::info!(provider = %self.process.agent.id, %digest, "a tool server is well");
    }

    /// Why a server that did not get well in time may not have: the last it wrote as an error.
    async fn unwell(&self, launched: &dyn Launched, within: Duration) -> String {
        let seconds = within.as_secs_f64();
        let why = format!("it did not answer under /healthz within {seconds} s");
        with_last_error(why, launched).await
    }

    /// Hands over attempts until the server is to end, or has ended.
    async fn serve(&mut self, inbox: &mut Inbox) -> LeaveReason {
        let launched = self.process.launched.clone();
        let mut gone = std::pin::pin!(async move {
            match launched {
                Some(launched) => launched.exited().await.to_string(),
                None => std::future::pending().await,
            }
        });
        let mut reachable = Reachable::Yes;
        loop {
            tokio::select! {
                why = &mut gone => return LeaveReason::Lost(why),
                Some(()) = self.open.one_over() => {}
                now = self.server.reachable_changed(&reachable) => {
                    reachable = now;
                    let well = reachable == Reachable::Yes;
                    self.fares(if well { ProcessPhase::Running } else { ProcessPhase::Unhealthy }).await;
                }
                command = inbox.recv() => match command {
                    Some(InboxCommand::Goodbye { drain_ms, .. }) => {
                        return LeaveReason::Goodbye(Duration::from_millis(drain_ms));
                    }
                    Some(command) => self.command(command).await,
                    None => return LeaveReason::Goodbye(Duration::ZERO),
                }
            }
        }
    }

    async fn command(&mut self, command: InboxCommand) {
        match command {
            InboxCommand::Call(assignment) => self.arrive(*assignment).await,
            InboxCommand::Cancel { attempt_id, grace_ms, .. } => {
                if let Some(stop) = self.open.get(&attempt_id) {
                    stop.now(Duration::from_millis(grace_ms));
                }
            }
            // A tool server asks nothing.
            InboxCommand::Answer { .. } | InboxCommand::Goodbye { .. } => {}
        }
    }

    async fn arrive(&mut self, Assignment { attempt, permit }: Assignment) {
        if attempt.dispatch().reattach && self.process.launched.is_some() {
            // Whoever worked on it went with the core that launched it.
            let message = "The tool server was ended while it worked on the run.";
            let fault = Fault::new(Code::ToolWorkerLost, message);
            drop(permit);
            // When the engine is gone there is nobody left to tell.
            let _ = attempt.failed(fault, Executed::Maybe).await;
            return;
        }
        let id = attempt.dispatch().attempt_id.clone();
        let stop = StopSignal::default();
        let work = AttemptWork {
            handle: handle(&self.tools).clone(),
            attempt,
            server: self.server.clone(),
            shelf: self.shelf.clone(),
            launched: self.process.launched.clone(),
            // The launch's folders must not go while something is written there.
            _places: Arc::clone(&self.process.places),
            bytes_max: self.bytes_max,
            permit,
            stop: stop.clone(),
        };
        self.open.start(id, stop, work.run());
    }

    /// Lets attempts go on for a while. None is taken any more; stopping one is still possible.
    async fn drain(&mut self, inbox: &mut Inbox, patience: Duration) {
        let until = Instant::now() + patience;
        while !self.open.is_empty() {
            tokio::select! {
                () = tokio::time::sleep_until(until) => return,
                Some(()) = self.open.one_over() => {}
                Some(command) = inbox.recv() => self.command(command).await,
            }
        }
    }

    async fn fares(&self, phase: ProcessPhase) {
        self.process.live.set_phase(&self.process.launch, phase);
        self.announce().await;
    }

    async fn announce(&self) {
        self.process.live.announce(handle(&self.tools), &self.process.agent.id).await;
    }
}

fn handle(tools: &ToolServers) -> &Handle {
    &tools.options.hosting.handle
}

async fn exited(launched: &dyn Launched) {
    drop(launched.exited().await);
}

/// Where a start of a server is.
fn endpoint(
    tools: &ToolServers,
    process: &Process,
    server: &ToolServer,
) -> Result<ServerEndpoint, Fault> {
    if let Serving::Remote { url } = &server.how {
        return ServerEndpoint::parse(url);
    }
    let gone = || Fault::new(Code::ToolWorkerLost, "The tool server went away.");
    let LaunchRoute { address, secret } = tools.way(&process.launch).ok_or_else(gone)?;
    Ok(ServerEndpoint::new(address).with_bearer(secret).of_life(tools.next_life()))
}

fn settings(server: &ToolServer, tasks: &Tasks) -> Settings {
    Settings {
        tasks: tasks.clone(),
        // The core's own program numbers its messages; of others it has to be learned.
        replays: matches!(server.how, Serving::Handler { .. }),
        required: server.required_outputs.clone(),
        tool: Some(equip::tool_name(server)),
        ..Settings::default()
    }
}

/// The folder that a server shares with the core, if it cannot use addresses.
fn shelf(
    tools: &ToolServers,
    process: &Process,
    agent: &Provider,
    server: &ToolServer,
) -> Result<Option<Arc<LaunchFolder>>, Fault> {
    if process.launched.is_none() || equip::reach(&tools.options, agent, server)? == Reach::Storage
    {
        return Ok(None);
    }
    LaunchFolder::open(&process.places).map(|shelf| Some(Arc::new(shelf))).map_err(|error| {
        let message = format!("No folder for files can be made: {error}.");
        Fault::new(Code::AgentStartFailed, message)
    })
}

fn sentence(fault: &Fault) -> String {
    fault.message.trim_end_matches('.').to_owned()
}
