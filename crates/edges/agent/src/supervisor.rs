//! One agent's process: started, watched, started again, stopped.
//!
//! The supervisor is a task that lives as long as the agent is known. It is told what is wanted
//! and answers once that is so; in between it keeps the process up as the restart policy says.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use wharf_domain::{Agent, AgentInput, AuditRecord, Availability, Caller, Severity};
use wharf_engine::launcher::{Backoff, Exit, LaunchSpec, Launched, LogSpec, Verdict};
use wharf_protocol::agent::CoreClose;
use wharf_vocab::{AgentId, Code, Digest, Fault, LaunchId, StreamId};

use crate::conn::{Command as ConnCommand, provider};
use crate::control::Shared;
use crate::live::{Live, Phase};
use crate::tokens::random_hex;

/// What is wanted of a supervisor; each is answered when it is so.
#[derive(Debug)]
pub(crate) enum Order {
    /// Keep the process up.
    Start(oneshot::Sender<()>),
    /// End the process.
    Stop(oneshot::Sender<()>),
}

/// Where an agent's own folders lie.
pub(crate) struct Places {
    pub(crate) home: PathBuf,
    pub(crate) tmp: PathBuf,
    pub(crate) data: PathBuf,
    pub(crate) log: PathBuf,
}

impl Places {
    /// Short names, since ids may be long and socket paths may not.
    pub(crate) fn of(agents_dir: &Path, id: &AgentId) -> Self {
        let digest = Digest::of(&[id.as_str().as_bytes()]);
        let folder = agents_dir.join(&digest.as_str()[..16]);
        Self {
            home: folder.join("home"),
            tmp: folder.join("tmp"),
            data: folder.join("data"),
            log: folder.join("log"),
        }
    }
}

pub(crate) struct Supervisor {
    shared: Arc<Shared>,
    id: AgentId,
    live: Arc<Live>,
    orders: mpsc::Receiver<Order>,
    backoff: Backoff,
}

/// How a launch came to its end.
enum Ended {
    /// The process ended, or never began.
    ByItself(String),
    /// It was stopped on order.
    OnOrder(oneshot::Sender<()>),
    /// The core is going.
    Orphaned,
}

impl Supervisor {
    pub(crate) fn spawn(shared: &Arc<Shared>, id: AgentId, live: Arc<Live>) -> mpsc::Sender<Order> {
        let (sender, orders) = mpsc::channel(16);
        let backoff = Backoff::new(shared.options.restart);
        let supervisor = Self { shared: Arc::clone(shared), id, live, orders, backoff };
        tokio::spawn(supervisor.run());
        sender
    }

    async fn run(mut self) {
        while let Some(order) = self.orders.recv().await {
            match order {
                // Nothing runs, so there is nothing to stop.
                Order::Stop(done) => answer(done),
                Order::Start(done) => {
                    answer(done);
                    self.backoff.forget();
                    match self.keep_up().await {
                        Ended::OnOrder(done) => answer(done),
                        Ended::ByItself(_) => {}
                        Ended::Orphaned => return,
                    }
                }
            }
        }
    }

    /// Launches again and again until it is told to stop or gives up.
    async fn keep_up(&mut self) -> Ended {
        loop {
            let why = match self.one_launch().await {
                Ended::ByItself(why) => why,
                other => {
                    self.live.ended(Phase::Idle, None);
                    self.down("it was stopped").await;
                    return other;
                }
            };
            let random = random_hex(8).ok().and_then(|hex| u64::from_str_radix(&hex, 16).ok());
            let now = self.shared.options.handle.now();
            match self.backoff.crashed(now, &why, random.unwrap_or(0)) {
                Verdict::Restart { pause_ms } => {
                    self.audit("agent.run_crashed", Severity::Warn, |r| {
                        r.fact("restart_ms", pause_ms)
                    })
                    .await;
                    self.live.ended(Phase::BackingOff, Some(why));
                    self.available(Availability::Coming).await;
                    if let Some(ended) = self.pause(Duration::from_millis(pause_ms)).await {
                        return ended;
                    }
                }
                Verdict::GiveUp { reason } => {
                    self.audit("agent.run_crashed", Severity::Error, |r| r.fact("gave_up", true))
                        .await;
                    self.live.ended(Phase::Idle, None);
                    self.down(&reason).await;
                    let input = AgentInput::Stop { reason: Some(reason.clone()) };
                    self.change(input).await;
                    return Ended::ByItself(reason);
                }
            }
        }
    }

    /// Waits before the next launch; an order ends the wait.
    async fn pause(&mut self, pause: Duration) -> Option<Ended> {
        let until = tokio::time::Instant::now() + pause;
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(until) => return None,
                order = self.orders.recv() => match order {
                    Some(Order::Start(done)) => answer(done),
                    Some(Order::Stop(done)) => {
                        self.live.ended(Phase::Idle, None);
                        self.down("it was stopped").await;
                        return Some(Ended::OnOrder(done));
                    }
                    None => return Some(Ended::Orphaned),
                }
            }
        }
    }

    /// One process from its start to its end.
    async fn one_launch(&mut self) -> Ended {
        let launched = match self.launch().await {
            Ok(launched) => launched,
            Err(fault) => return Ended::ByItself(fault.message),
        };
        self.backoff.started(self.shared.options.handle.now());
        self.audit("agent.run_started", Severity::Info, |r| r.fact("pid", launched.pid())).await;
        let grace = self.shared.options.stop_grace;
        let hello_by = tokio::time::Instant::now() + self.shared.options.token_life;
        let mut exited = launched.exited();
        let ended = loop {
            tokio::select! {
                exit = &mut exited => break Ended::ByItself(exit.to_string()),
                () = self.live.disconnected.notified() => {
                    // The word of an earlier launch's end may have waited until now.
                    if self.live.closed().is_none() {
                        continue;
                    }
                    let exit = self.after_disconnect(&*launched, grace).await;
                    break Ended::ByItself(exit);
                }
                () = tokio::time::sleep_until(hello_by), if self.live.conn().is_none() => {
                    // It may have connected while this was waiting.
                    if self.live.conn().is_some() {
                        continue;
                    }
                    launched.kill().await;
                    break Ended::ByItself("it did not connect in time".to_owned());
                }
                order = self.orders.recv() => match order {
                    Some(Order::Start(done)) => answer(done),
                    Some(Order::Stop(done)) => {
                        self.end_in_order(&*launched, grace).await;
                        break Ended::OnOrder(done);
                    }
                    None => {
                        self.end_in_order(&*launched, grace).await;
                        break Ended::Orphaned;
                    }
                }
            }
        };
        self.shared.tokens.revoke(launched.id());
        self.audit("agent.run_stopped", Severity::Info, |record| record).await;
        ended
    }

    /// A launch lives as long as its connection: when that is gone, the process goes too.
    async fn after_disconnect(&self, launched: &dyn Launched, grace: Duration) -> String {
        let why = self.live.closed();
        let exit = match why {
            Some(CoreClose::HeartbeatsLost | CoreClose::NotReading) => launched.kill().await,
            _ => launched.stop(grace).await,
        };
        match why {
            Some(CoreClose::HeartbeatsLost) => "it gave no sign of life".to_owned(),
            Some(CoreClose::Violation(_) | CoreClose::TooManyViolations) => {
                "it broke the protocol".to_owned()
            }
            Some(CoreClose::NotReading) => "it did not read what it was sent".to_owned(),
            _ => exit.to_string(),
        }
    }

    /// Says goodbye, lets calls finish, then ends the process.
    async fn end_in_order(&self, launched: &dyn Launched, grace: Duration) -> Exit {
        self.available(Availability::Coming).await;
        if let Some(conn) = self.live.conn() {
            let drain_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
            let goodbye = ConnCommand::Goodbye { reason: "core.stop", drain_ms };
            if conn.commands.send(goodbye).await.is_ok() {
                // A peer that does not end by itself is ended below.
                let _ = tokio::time::timeout(grace, self.live.disconnected.notified()).await;
            }
        }
        launched.stop(grace).await
    }

    async fn launch(&self) -> Result<Arc<dyn Launched>, Fault> {
        let agent = self.shared.options.handle.agent(&self.id)?;
        if !agent.is_approved() {
            let message = format!("The agent {} is not approved.", self.id);
            return Err(Fault::new(Code::AgentNotApproved, message));
        }
        let launch = LaunchId::new(random_hex(16)?)
            .map_err(|error| Fault::new(Code::CoreInternal, format!("{error}.")))?;
        self.live.starting(&launch);
        self.available(Availability::Coming).await;
        let token = self.shared.tokens.issue(&self.id, &launch, self.shared.options.token_life)?;
        let spec = self.spec(&agent, &launch, token);
        let launched = self.shared.options.launcher.launch(spec).await;
        match &launched {
            Ok(launched) => self.live.launched(Arc::clone(launched)),
            Err(_) => self.shared.tokens.revoke(&launch),
        }
        launched
    }

    fn spec(&self, agent: &Agent, launch: &LaunchId, token: String) -> LaunchSpec {
        let places = Places::of(&self.shared.options.agents_dir, &self.id);
        let entrypoint = &agent.manifest.entrypoint;
        let mut spec = LaunchSpec::new(
            launch.clone(),
            &entrypoint.program,
            &agent.folder,
            LogSpec::at(&places.log),
        );
        spec.args.clone_from(&entrypoint.args);
        spec.env = self.environment(launch, &token, &places);
        spec.private_dirs = vec![places.home, places.tmp, places.data];
        spec.secrets = vec![token];
        spec.stop_grace = self.shared.options.stop_grace;
        spec
    }

    /// Exactly this, and nothing of the core's own environment.
    fn environment(
        &self,
        launch: &LaunchId,
        token: &str,
        places: &Places,
    ) -> BTreeMap<String, String> {
        let interval = self.shared.options.limits.heartbeat_interval_ms.to_string();
        let zone = std::env::var("TZ").unwrap_or_else(|_| "UTC".to_owned());
        [
            ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned()),
            ("HOME", places.home.display().to_string()),
            ("TMPDIR", places.tmp.display().to_string()),
            ("LANG", "C.UTF-8".to_owned()),
            ("TZ", zone),
            ("OPENSENTIENCE_SOCKET", self.shared.address.clone()),
            ("OPENSENTIENCE_SESSION_TOKEN", token.to_owned()),
            ("OPENSENTIENCE_AGENT_ID", self.id.to_string()),
            ("OPENSENTIENCE_RUN_ID", launch.to_string()),
            ("OPENSENTIENCE_PROTOCOL_VERSIONS", "1".to_owned()),
            ("OPENSENTIENCE_HEARTBEAT_INTERVAL_MS", interval),
            ("OPENSENTIENCE_HOME", places.data.display().to_string()),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
    }

    async fn down(&self, reason: &str) {
        self.available(Availability::Down { reason: reason.to_owned() }).await;
    }

    async fn available(&self, availability: Availability) {
        if let Ok(provider) = provider(&self.id) {
            // When the engine is gone nobody needs to know.
            let _ = self.shared.options.handle.set_availability(provider, availability).await;
        }
    }

    async fn change(&self, input: AgentInput) {
        let changed =
            self.shared.options.handle.change_agent(&Caller::core(), &self.id, input).await;
        if let Err(fault) = changed {
            tracing::warn!(agent = %self.id, code = %fault.code, "an agent's end was not recorded");
        }
    }

    async fn audit(
        &self,
        event: &str,
        severity: Severity,
        facts: impl FnOnce(AuditRecord) -> AuditRecord,
    ) {
        let record =
            AuditRecord::new(event, "core", format!("agent:{}", self.id)).severity(severity);
        let stream = StreamId::Agent(self.id.clone());
        // When the engine is gone nothing can be written any more.
        let _ = self.shared.options.handle.record(&stream, facts(record)).await;
    }
}

fn answer(done: oneshot::Sender<()>) {
    // Whoever asked may have left.
    let _ = done.send(());
}
