//! One process of a provider, from its start to its end.

use std::sync::Arc;
use std::time::Duration;

use wharf_domain::{AuditRecord, ProviderEvent, Severity};
use wharf_ports::launcher::{Exit, ExitHow, Launched};
use wharf_vocab::{Fault, LaunchId, ProviderId, Resource};

use crate::kind::HostedKind;
use crate::launch::{self, RunningProcess};
use crate::live::{ConnectionEnd, InboxCommand, InstanceChannels, Live, ProcessStop};

/// How long calls of others may take to end on a process that is being replaced.
const DRAIN: Duration = Duration::from_secs(60);
/// How long calls may take to end on a process that its owner replaces: as long as a call of a
/// tool server may take that does not say.
const REPLACED: Duration = Duration::from_millis(wharf_domain::provider::ToolServer::TIMEOUT_MS);

/// How a process came to its end.
#[derive(Debug)]
pub(crate) enum InstanceEnd {
    /// It was told to.
    OnPurpose,
    /// It could not be started, or ended by itself.
    Crashed { why: String, limit: Option<Resource> },
    /// It must not be started.
    Refused(Fault),
    /// It ended by itself, and every other one would.
    Hopeless(Fault),
}

/// A process and whoever looks after it.
pub(crate) struct Instance {
    pub(crate) kind: Arc<dyn HostedKind>,
    pub(crate) id: ProviderId,
    pub(crate) live: Arc<Live>,
    pub(crate) launch: LaunchId,
    pub(crate) channels: InstanceChannels,
}

impl Instance {
    /// Starts the process and looks after it until it and all it started are gone.
    pub(crate) async fn run(mut self) -> InstanceEnd {
        let started = launch::start(&self.kind, &self.live, &self.id, &self.launch).await;
        match started {
            Ok(running) => self.attend(running).await,
            Err(fault) if is_final(&fault) => InstanceEnd::Refused(fault),
            Err(fault) => InstanceEnd::Crashed { why: fault.message, limit: None },
        }
    }

    async fn attend(&mut self, running: RunningProcess) -> InstanceEnd {
        let RunningProcess { process, notes, around } = running;
        let (launched, agent) = (process.launched.clone(), process.agent.clone());
        Arc::clone(&self.kind).launched(process);
        let Some(launched) = launched else { return self.attend_elsewhere().await };
        let achieved = launched.fence();
        for note in &notes {
            tracing::info!(provider = %self.id, "{note}");
        }
        let (level, pid) = (achieved.level, launched.pid());
        tracing::info!(provider = %self.id, launch = %self.launch, pid, %level, "a process started");
        let provider = wharf_engine::provider_label(&self.id);
        metrics::counter!("wharf_provider_launches_total", "provider" => provider).increment(1);
        let started = self.record(ProviderEvent::RunStarted).fact("pid", launched.pid());
        let started = started.fact("sandbox", achieved.level.as_str());
        self.audit(started.fact("notes", achieved.notes.len() + notes.len())).await;
        let mut end = self.watch(&*launched).await;
        drop(around);
        if matches!(end, InstanceEnd::Crashed { .. })
            && let Some(fault) = self.kind.is_hopeless(&agent, &launched.exited().await)
        {
            end = InstanceEnd::Hopeless(fault);
        }
        if let InstanceEnd::Crashed { limit: Some(resource), .. } = &end {
            let exceeded = self.record(ProviderEvent::ResourceExceeded).severity(Severity::Error);
            self.audit(exceeded.fact("resource", resource.as_str())).await;
        }
        self.audit(self.record(ProviderEvent::RunStopped)).await;
        end
    }

    async fn watch(&mut self, launched: &dyn Launched) -> InstanceEnd {
        let options = self.kind.host().options();
        let grace = options.stop_grace;
        let connected_by = tokio::time::Instant::now() + options.connect_within;
        let mut exited = launched.exited();
        loop {
            tokio::select! {
                exit = &mut exited => return crashed(&exit),
                () = self.channels.wake.notified() => {
                    return self.after_disconnect(launched, grace).await;
                }
                () = tokio::time::sleep_until(connected_by),
                    if !self.live.connection(&self.launch).0 =>
                {
                    // It may have connected while this was waiting.
                    if self.live.connection(&self.launch) != (false, None) {
                        continue;
                    }
                    launched.kill().await;
                    let why = "it did not connect in time".to_owned();
                    return InstanceEnd::Crashed { why, limit: None };
                }
                quit = self.channels.quits.recv() => {
                    self.wind_down(launched, quit.unwrap_or(ProcessStop::Stop), grace).await;
                    return InstanceEnd::OnPurpose;
                }
            }
        }
    }

    /// Looks after a connection to something that runs elsewhere.
    async fn attend_elsewhere(&mut self) -> InstanceEnd {
        let grace = self.kind.host().options().stop_grace;
        tokio::select! {
            () = self.channels.wake.notified() => {
                let why = match self.live.connection(&self.launch).1 {
                    Some(ConnectionEnd::Because(why) | ConnectionEnd::Unresponsive(why)) => why,
                    Some(ConnectionEnd::Over) | None => "the connection was lost".to_owned(),
                };
                InstanceEnd::Crashed { why, limit: None }
            }
            quit = self.channels.quits.recv() => {
                self.announce().await;
                // Without a process there is nothing to end besides the connection.
                self.say_goodbye(None, quit.unwrap_or(ProcessStop::Stop), grace).await;
                InstanceEnd::OnPurpose
            }
        }
    }

    /// A launch lives as long as its connection: when that is gone, the process goes too.
    async fn after_disconnect(&mut self, launched: &dyn Launched, grace: Duration) -> InstanceEnd {
        let why = self.live.connection(&self.launch).1;
        let exit = match why {
            Some(ConnectionEnd::Unresponsive(_)) => launched.kill().await,
            _ => self.end_by_itself(launched, grace).await,
        };
        let why = match why {
            _ if matches!(exit.how, ExitHow::Limit(_)) => return crashed(&exit),
            Some(ConnectionEnd::Because(why) | ConnectionEnd::Unresponsive(why)) => why,
            Some(ConnectionEnd::Over) | None => exit.to_string(),
        };
        InstanceEnd::Crashed { why, limit: None }
    }

    /// Says goodbye, lets calls finish, then ends the process. A sterner order may come meanwhile.
    async fn wind_down(&mut self, launched: &dyn Launched, quit: ProcessStop, grace: Duration) {
        self.announce().await;
        if quit == ProcessStop::Kill
            || self.say_goodbye(Some(launched), quit, grace).await == ProcessStop::Kill
        {
            launched.kill().await;
        } else {
            self.end_by_itself(launched, grace).await;
        }
    }

    /// Ends a process whose connection is closed: it has a while to notice that, where its kind
    /// says so, then a signal tells it.
    async fn end_by_itself(&mut self, launched: &dyn Launched, grace: Duration) -> Exit {
        let until = tokio::time::Instant::now() + self.kind.farewell();
        loop {
            tokio::select! {
                exit = launched.exited() => return exit,
                () = tokio::time::sleep_until(until) => return launched.stop(grace).await,
                sterner = self.channels.quits.recv() => match sterner {
                    Some(ProcessStop::Kill) => return launched.kill().await,
                    Some(_) => {}
                    None => return launched.stop(grace).await,
                },
            }
        }
    }

    /// Says goodbye and waits until calls have ended, or for as long as they may take; how the
    /// process is to end then.
    async fn say_goodbye(
        &mut self,
        launched: Option<&dyn Launched>,
        quit: ProcessStop,
        grace: Duration,
    ) -> ProcessStop {
        let mut patience = match quit {
            ProcessStop::Drain => DRAIN,
            ProcessStop::Replace => REPLACED,
            ProcessStop::Stop | ProcessStop::Again | ProcessStop::Kill => grace,
        };
        let commands = self.live.pool().slot(&self.launch).and_then(|slot| slot.conn.clone());
        let Some(commands) = commands else { return ProcessStop::Stop };
        let drain_ms = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        let (reason, again) = match quit {
            ProcessStop::Drain | ProcessStop::Replace => ("core.replaced", true),
            ProcessStop::Again => ("core.restart", true),
            ProcessStop::Stop | ProcessStop::Kill => ("core.stop", false),
        };
        if commands.send(InboxCommand::Goodbye { reason, drain_ms, again }).await.is_err() {
            return ProcessStop::Stop;
        }
        loop {
            let until = tokio::time::Instant::now() + patience;
            tokio::select! {
                () = self.channels.wake.notified() => return ProcessStop::Stop,
                // A peer that does not end by itself is ended by whoever asked for this.
                () = tokio::time::sleep_until(until) => return ProcessStop::Stop,
                () = exited(launched) => return ProcessStop::Stop,
                sterner = self.channels.quits.recv() => match sterner {
                    Some(ProcessStop::Drain | ProcessStop::Replace) => {}
                    Some(ProcessStop::Kill) => return ProcessStop::Kill,
                    Some(ProcessStop::Stop | ProcessStop::Again) | None => patience = grace,
                }
            }
        }
    }

    async fn announce(&self) {
        self.live.announce(&self.kind.host().options().handle, &self.id).await;
    }

    fn record(&self, event: ProviderEvent) -> AuditRecord {
        self.kind.record(&self.id, event).fact("launch_id", self.launch.as_str())
    }

    async fn audit(&self, record: AuditRecord) {
        self.kind.host().audit(&self.id, record).await;
    }
}

async fn exited(launched: Option<&dyn Launched>) {
    match launched {
        Some(launched) => drop(launched.exited().await),
        None => std::future::pending().await,
    }
}

/// What another start would not mend.
fn is_final(fault: &Fault) -> bool {
    use wharf_vocab::Code;
    [
        Code::AgentDrifted,
        Code::AgentNotApproved,
        Code::AgentNotFound,
        Code::AgentSandboxUnavailable,
        Code::SecretNotFound,
    ]
    .iter()
    .any(|code| fault.is(*code))
}

fn crashed(exit: &Exit) -> InstanceEnd {
    let limit = match exit.how {
        ExitHow::Limit(resource) => Some(resource),
        _ => None,
    };
    InstanceEnd::Crashed { why: exit.to_string(), limit }
}
