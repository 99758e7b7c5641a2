//! One provider's processes: started, watched, started again, stopped.
//!
//! The supervisor is a task that lives as long as the provider is known. It is told what is wanted
//! and answers once that is so; in between it keeps as many processes up as are needed, as the
//! restart policy says.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use wharf_domain::{
    Actor, AuditEvent, AuditRecord, Caller, ProviderEvent, ProviderInput, Severity, Subject,
};
use wharf_engine::Handle;
use wharf_ports::launcher::{RestartVerdict, Restarts};
use wharf_ports::{Trouble, TroubleOver};
use wharf_vocab::{Code, Fault, Isolation, LaunchId, ProviderId};

use crate::files::FileWatch;
use crate::host::{SupervisorOrder, random_hex};
use crate::instance::{Instance, InstanceEnd};
use crate::kind::HostedKind;
use crate::live::{IdleState, Live, PoolPolicy, PoolSlot, ProcessStop, gone, not_running};
use crate::sink::{compare, fail};
use crate::tasks::blocking;

/// How long no process may have ended by itself for that to be over.
const CALM: Duration = Duration::from_secs(60);

pub(crate) struct Supervisor {
    kind: Arc<dyn HostedKind>,
    id: ProviderId,
    live: Arc<Live>,
    orders: mpsc::Receiver<SupervisorOrder>,
    restarts: Restarts,
    /// Whether processes are to be kept up.
    up: bool,
    /// No process is started before.
    not_before: Option<Instant>,
    instances: JoinSet<InstanceEnd>,
    /// Which launch each of them is about, however it ends.
    launches: HashMap<tokio::task::Id, LaunchId>,
    /// Why the processes end once they have nothing left to do, and who waits for that.
    drain: Option<(Fault, Vec<oneshot::Sender<()>>)>,
    /// Processes that ended by themselves, as the log tells of them.
    trouble: Trouble,
    /// When that counts as over, unless another one ends so before.
    calm_at: Option<Instant>,
}

impl Supervisor {
    pub(crate) fn spawn(
        kind: &Arc<dyn HostedKind>,
        id: ProviderId,
        live: Arc<Live>,
    ) -> mpsc::Sender<SupervisorOrder> {
        let (sender, orders) = mpsc::channel(16);
        let supervisor = Self {
            restarts: Restarts::new(kind.restart(&id)),
            kind: Arc::clone(kind),
            id,
            live,
            orders,
            up: false,
            not_before: None,
            instances: JoinSet::new(),
            launches: HashMap::new(),
            drain: None,
            trouble: Trouble::default(),
            calm_at: None,
        };
        kind.host().tasks().spawn("looking after a provider", supervisor.run());
        sender
    }

    async fn run(mut self) {
        loop {
            self.compare_files();
            self.end_if_drained().await;
            let wake = [self.keep_up().await, self.calm()].into_iter().flatten().min();
            tokio::select! {
                order = self.orders.recv() => match order {
                    Some(SupervisorOrder::Start(done)) => {
                        self.start().await;
                        answer(done);
                    }
                    Some(SupervisorOrder::Replace(done)) => {
                        self.replace().await;
                        answer(done);
                    }
                    Some(SupervisorOrder::Stop { why, again, done }) => {
                        self.stop(&why, if again { ProcessStop::Again } else { ProcessStop::Stop }).await;
                        answer(done);
                    }
                    Some(SupervisorOrder::Drain { why, done }) => {
                        self.begin_drain(why, done).await;
                    }
                    None => {
                        let why = Fault::new(Code::ToolUnavailable, "the core stops");
                        return self.stop(&why, ProcessStop::Stop).await;
                    }
                },
                Some(joined) = self.instances.join_next_with_id() => {
                    let end = self.joined(joined).await;
                    self.ended(end).await;
                }
                () = self.live.changed.notified() => {}
                () = until(wake) => {}
            }
        }
    }

    /// Lets files be compared that look different to whoever speaks with a process.
    fn compare_files(&self) {
        let Some(placed) = self.live.pool().compare() else { return };
        let (kind, id, live) = (Arc::clone(&self.kind), self.id.clone(), Arc::clone(&self.live));
        let tasks = self.kind.host().tasks();
        tasks.spawn("comparing files", compare(kind, id, live, placed));
    }

    /// Says that crashes are over when there was none for a while; when to look again.
    fn calm(&mut self) -> Option<Instant> {
        let at = self.calm_at?;
        let now = Instant::now();
        if now < at {
            return Some(at);
        }
        let is_well = {
            let pool = self.live.pool();
            pool.slots.is_empty() || pool.slots.iter().any(PoolSlot::is_usable)
        };
        if self.up && !is_well {
            self.calm_at = Some(now + CALM);
            return self.calm_at;
        }
        self.calm_at = None;
        if let Some(TroubleOver { failed, seconds }) = self.trouble.over()
            && self.up
        {
            tracing::info!(provider = %self.id, crashes = failed, seconds, "a provider runs again");
        }
        None
    }

    /// Starts what is missing and ends what nobody needs; when to look again.
    async fn keep_up(&mut self) -> Option<Instant> {
        if !self.up {
            return None;
        }
        let stranded = self.live.pool().take_stranded();
        fail(self.handle(), stranded, &gone(self.kind.word())).await;
        let now = Instant::now();
        let idle = self.live.pool().end_idle(now);
        if let Some(not_before) = self.not_before.filter(|not_before| *not_before > now) {
            return Some(idle.map_or(not_before, |idle| idle.min(not_before)));
        }
        if self.not_before.take().is_some() {
            self.live.rested();
        }
        let missing = self.live.pool().missing();
        for _ in 0..missing {
            let Ok(launch) = random_hex(16).map(LaunchId::new) else { break };
            let Ok(launch) = launch else { break };
            self.restarts.started(self.handle().now());
            let instance = Instance {
                channels: self.live.begin(&launch),
                kind: Arc::clone(&self.kind),
                id: self.id.clone(),
                live: Arc::clone(&self.live),
                launch,
            };
            let launch = instance.launch.clone();
            self.launches.insert(self.instances.spawn(instance.run()).id(), launch);
        }
        self.announce().await;
        idle
    }

    /// Takes nothing new from now on.
    async fn begin_drain(&mut self, why: Fault, done: oneshot::Sender<()>) {
        if !self.up && self.instances.is_empty() {
            self.live.pool().draining = false;
            return answer(done);
        }
        self.live.pool().draining = true;
        let (_, waiting) = self.drain.get_or_insert_with(|| (why, Vec::new()));
        waiting.push(done);
        self.announce().await;
    }

    /// Ends the processes if they are drained and have finished what they had.
    async fn end_if_drained(&mut self) {
        if !self.live.pool().is_drained() {
            return;
        }
        let Some((why, waiting)) = self.drain.take() else { return };
        self.stop(&why, ProcessStop::Stop).await;
        waiting.into_iter().for_each(answer);
    }

    /// Nobody drains it any more: it goes on, or was ended in another way.
    fn forget_drain(&mut self) {
        self.live.pool().draining = false;
        let waiting = self.drain.take().map(|(_, waiting)| waiting);
        waiting.into_iter().flatten().for_each(answer);
    }

    async fn start(&mut self) {
        if self.up {
            self.forget_drain();
            return self.announce().await;
        }
        self.begin(false).await;
    }

    /// Lets the processes end their calls, and starts others under the terms that hold now.
    async fn replace(&mut self) {
        self.forget_drain();
        let mut leaving = 0_usize;
        for slot in self.live.pool().slots.iter_mut().filter(|slot| !slot.leaving) {
            slot.quit(ProcessStop::Replace);
            leaving += 1;
        }
        tracing::info!(provider = %self.id, leaving, "the processes of a provider are replaced");
        // Where one was at hand, the next call finds one at hand, too.
        self.begin(leaving > 0).await;
    }

    /// Processes are kept up from now on, as the record says how; one is started at once where
    /// that is wanted.
    async fn begin(&mut self, at_once: bool) {
        let Ok(agent) = self.handle().providers().get(&self.id) else { return };
        let isolation = agent.approval.as_ref().map(|approval| approval.terms.isolation);
        // Looked at before the files are compared, so that no change falls in between.
        let (file, upkeep) = (self.kind.manifest_file(), self.kind.upkeep(&agent));
        let looks_first = at_once || self.kind.looks_first(&agent);
        let Ok(watch) = blocking(move || Ok(FileWatch::of(file, &agent))).await else { return };
        let isolation = isolation.unwrap_or(Isolation::Shared);
        let word = self.kind.word();
        let spare = self.kind.keeps_spare();
        self.live.prepare(PoolPolicy { isolation, upkeep, looks_first, spare, word }, watch);
        self.live.rest(IdleState::Coming, None);
        self.restarts.forget();
        self.not_before = None;
        self.up = true;
    }

    /// Ends all processes and waits until they are gone.
    async fn stop(&mut self, why: &Fault, how: ProcessStop) {
        if !self.up && self.instances.is_empty() {
            return self.forget_drain();
        }
        self.up = false;
        self.live.pool().slots.iter_mut().for_each(|slot| slot.quit(how));
        while let Some(joined) = self.instances.join_next_with_id().await {
            self.joined(joined).await;
        }
        self.live.rest(IdleState::Down(why.clone()), None);
        self.announce().await;
        let what = format!("The {} {} is not running", self.kind.word(), self.id);
        let fault = not_running(&what, why);
        let waiting = self.live.pool().take_all();
        fail(self.handle(), waiting, &fault).await;
        self.forget_drain();
    }

    /// Whoever looked after a launch is done, also by a panic: then the launch is ended here.
    async fn joined(
        &mut self,
        joined: Result<(tokio::task::Id, InstanceEnd), JoinError>,
    ) -> InstanceEnd {
        let (task, end) = match joined {
            Ok(joined) => joined,
            Err(error) => {
                tracing::error!(provider = %self.id, %error, "whoever looked after a process is lost");
                let why = "the core lost sight of it".to_owned();
                (error.id(), InstanceEnd::Crashed { why, limit: None })
            }
        };
        let Some(launch) = self.launches.remove(&task) else { return end };
        if let Some(launched) = self.live.started(&launch) {
            // It has ended already, unless nobody was left to end it.
            launched.kill().await;
        }
        self.kind.over(&launch);
        self.live.pool().end(&launch);
        end
    }

    async fn ended(&mut self, end: InstanceEnd) {
        let (why, refused) = match end {
            InstanceEnd::OnPurpose => return self.announce().await,
            _ if !self.up => return,
            InstanceEnd::Crashed { why, .. } => (why, None),
            InstanceEnd::Refused(fault) => (fault.message.clone(), Some(fault)),
            InstanceEnd::Hopeless(fault) => {
                let crashed = self.kind.record(&self.id, ProviderEvent::RunCrashed);
                let crashed = crashed.severity(Severity::Error).fact("gave_up", true);
                self.kind.host().audit(&self.id, crashed).await;
                // Whoever waits learns why in its own words, and that trying again is no use.
                let waiting = self.live.pool().take_all();
                fail(self.handle(), waiting, &fault).await;
                let reason = fault.message.trim_end_matches('.').to_owned();
                return self.give_up(reason, &fault).await;
            }
        };
        if let Some(fault) = refused {
            let subject = Subject::provider(self.kind.of(), &self.id);
            let denied = AuditRecord::new(AuditEvent::SECURITY_DENIED, Actor::CORE, subject);
            let denied = denied.severity(Severity::Security).fact("code", fault.code.as_str());
            self.kind.host().audit(&self.id, denied).await;
            return self.give_up(why, &fault).await;
        }
        let random = random_hex(8).ok().and_then(|hex| u64::from_str_radix(&hex, 16).ok());
        let provider = wharf_engine::provider_label(&self.id);
        metrics::counter!("wharf_provider_crashes_total", "provider" => provider).increment(1);
        let crashed = self.kind.record(&self.id, ProviderEvent::RunCrashed);
        let now = self.handle().now();
        match self.restarts.crashed(now, &why, random.unwrap_or(0)) {
            RestartVerdict::Restart { pause_ms } => {
                let crashed = crashed.severity(Severity::Warn).fact("restart_ms", pause_ms);
                self.kind.host().audit(&self.id, crashed).await;
                let not_before = Instant::now() + Duration::from_millis(pause_ms);
                self.not_before = Some(not_before);
                self.calm_at = Some(not_before + CALM);
                // What it wrote last is left out: it may quote what it was asked.
                if let Some(crashes) = self.trouble.failed() {
                    tracing::warn!(provider = %self.id, crashes, pause_ms, "a process ended by itself");
                }
                let has_usable = self.live.pool().slots.iter().any(PoolSlot::is_usable);
                if !has_usable {
                    self.live.rest(IdleState::BackingOff, Some(why));
                }
                self.announce().await;
            }
            RestartVerdict::GiveUp { reason } => {
                let crashed = crashed.severity(Severity::Error).fact("gave_up", true);
                self.kind.host().audit(&self.id, crashed).await;
                let fault = Fault::new(Code::AgentStartFailed, reason.clone());
                self.give_up(reason, &fault).await;
            }
        }
    }

    /// The provider runs no more until somebody starts it by hand.
    async fn give_up(&mut self, reason: String, fault: &Fault) {
        tracing::error!(provider = %self.id, code = %fault.code, "a provider runs no more");
        self.trouble = Trouble::default();
        self.calm_at = None;
        let says_all = fault.is(Code::AgentDrifted) || fault.is(Code::ToolHandlerInvalid);
        let why = match says_all {
            true => fault.clone(),
            false => Fault::new(Code::ToolUnavailable, reason.as_str()),
        };
        self.stop(&why, ProcessStop::Stop).await;
        // Drift is written down already, and says more than a reason could.
        let reason = (!fault.is(Code::AgentDrifted)).then_some(reason);
        let input = ProviderInput::Stop { reason };
        let changed = self.handle().providers().change(&Caller::core(), &self.id, input).await;
        if let Err(fault) = changed {
            tracing::warn!(provider = %self.id, code = %fault.code, "a provider's end was not recorded");
        }
    }

    fn handle(&self) -> &Handle {
        &self.kind.host().options().handle
    }

    async fn announce(&self) {
        self.live.announce(self.handle(), &self.id).await;
    }
}

async fn until(wake: Option<Instant>) {
    match wake {
        Some(wake) => tokio::time::sleep_until(wake).await,
        None => std::future::pending().await,
    }
}

fn answer(done: oneshot::Sender<()>) {
    // Whoever asked may have left.
    let _ = done.send(());
}
