//! One process of an agent, from its start to its end.

use std::sync::Arc;
use std::time::Duration;

use wharf_domain::{AuditRecord, Severity};
use wharf_engine::launcher::{Exit, ExitHow, Launched};
use wharf_protocol::agent::CoreClose;
use wharf_vocab::{AgentId, Fault, LaunchId, Resource, StreamId};

use crate::conn::Command;
use crate::control::Shared;
use crate::launch::{self, Running};
use crate::live::Live;
use crate::pool::{Begun, Quit};

/// How long calls of others may take to end on a process that is being replaced.
const DRAIN: Duration = Duration::from_secs(60);

/// How a process came to its end.
#[derive(Debug)]
pub(crate) enum End {
    /// It was told to.
    OnPurpose,
    /// It could not be started, or ended by itself.
    Crashed { why: String, limit: Option<Resource> },
    /// It must not be started.
    Refused(Fault),
}

/// A process and whoever looks after it.
pub(crate) struct Instance {
    pub(crate) shared: Arc<Shared>,
    pub(crate) id: AgentId,
    pub(crate) live: Arc<Live>,
    pub(crate) launch: LaunchId,
    pub(crate) begun: Begun,
}

impl Instance {
    /// Starts the process and looks after it until it and all it started are gone.
    pub(crate) async fn run(mut self) -> (LaunchId, End) {
        let started = launch::start(&self.shared, &self.live, &self.id, &self.launch).await;
        let end = match started {
            Ok(running) => self.attend(running).await,
            Err(fault) if is_final(&fault) => End::Refused(fault),
            Err(fault) => End::Crashed { why: fault.message, limit: None },
        };
        self.shared.tokens.revoke(&self.launch);
        (self.launch, end)
    }

    async fn attend(&mut self, running: Running) -> End {
        let launched = Arc::clone(&running.launched);
        let achieved = launched.fence();
        let notes = achieved.notes.len() + running.notes.len();
        for note in &running.notes {
            tracing::info!(agent = %self.id, "{note}");
        }
        let level = achieved.level.as_str();
        self.audit("agent.run_started", Severity::Info, |record| {
            record.fact("pid", launched.pid()).fact("sandbox", level).fact("notes", notes)
        })
        .await;
        let grace = self.shared.options.stop_grace;
        let hello_by = tokio::time::Instant::now() + self.shared.options.token_life;
        let mut exited = launched.exited();
        let end = loop {
            tokio::select! {
                exit = &mut exited => break crashed(&exit),
                () = self.begun.wake.notified() => break self.after_disconnect(&*launched, grace).await,
                () = tokio::time::sleep_until(hello_by), if !self.live.connection(&self.launch).0 => {
                    // It may have connected while this was waiting.
                    if self.live.connection(&self.launch) != (false, None) {
                        continue;
                    }
                    launched.kill().await;
                    break End::Crashed { why: "it did not connect in time".to_owned(), limit: None };
                }
                quit = self.begun.quits.recv() => {
                    self.wind_down(&*launched, quit.unwrap_or(Quit::Stop), grace).await;
                    break End::OnPurpose;
                }
            }
        };
        drop(running);
        let exceeded = match &end {
            End::Crashed { limit, .. } => *limit,
            _ => None,
        };
        if let Some(resource) = exceeded {
            self.audit("agent.resource_exceeded", Severity::Error, |record| {
                record.fact("resource", resource.as_str())
            })
            .await;
        }
        self.audit("agent.run_stopped", Severity::Info, |record| record).await;
        end
    }

    /// A launch lives as long as its connection: when that is gone, the process goes too.
    async fn after_disconnect(&self, launched: &dyn Launched, grace: Duration) -> End {
        let why = self.live.connection(&self.launch).1;
        let exit = match why {
            Some(CoreClose::HeartbeatsLost | CoreClose::NotReading) => launched.kill().await,
            _ => launched.stop(grace).await,
        };
        let why = match why {
            _ if matches!(exit.how, ExitHow::Limit(_)) => return crashed(&exit),
            Some(CoreClose::HeartbeatsLost) => "it gave no sign of life".to_owned(),
            Some(CoreClose::Violation(_) | CoreClose::TooManyViolations) => {
                "it broke the protocol".to_owned()
            }
            Some(CoreClose::NotReading) => "it did not read what it was sent".to_owned(),
            _ => exit.to_string(),
        };
        End::Crashed { why, limit: None }
    }

    /// Says goodbye, lets calls finish, then ends the process. A sterner order may come meanwhile.
    async fn wind_down(&mut self, launched: &dyn Launched, quit: Quit, grace: Duration) -> Exit {
        self.live.announce(&self.shared.options.handle, &self.id).await;
        let mut patience = match quit {
            Quit::Kill => return launched.kill().await,
            Quit::Stop => grace,
            Quit::Drain => DRAIN,
        };
        if let Some(commands) = self.live.commands(&self.launch) {
            let drain_ms = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
            let reason = if quit == Quit::Drain { "core.replaced" } else { "core.stop" };
            if commands.send(Command::Goodbye { reason, drain_ms }).await.is_err() {
                return launched.stop(grace).await;
            }
            loop {
                let until = tokio::time::Instant::now() + patience;
                tokio::select! {
                    () = self.begun.wake.notified() => break,
                    // A peer that does not end by itself is ended below.
                    () = tokio::time::sleep_until(until) => break,
                    exit = launched.exited() => return exit,
                    sterner = self.begun.quits.recv() => match sterner {
                        Some(Quit::Drain) => {}
                        Some(Quit::Kill) => return launched.kill().await,
                        Some(Quit::Stop) | None => patience = grace,
                    }
                }
            }
        }
        launched.stop(grace).await
    }

    async fn audit(
        &self,
        event: &str,
        severity: Severity,
        facts: impl FnOnce(AuditRecord) -> AuditRecord,
    ) {
        let record = AuditRecord::new(event, "core", format!("agent:{}", self.id))
            .severity(severity)
            .fact("launch_id", self.launch.as_str());
        let stream = StreamId::Agent(self.id.clone());
        // When the engine is gone nothing can be written any more.
        let _ = self.shared.options.handle.record(&stream, facts(record)).await;
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

fn crashed(exit: &Exit) -> End {
    let limit = match exit.how {
        ExitHow::Limit(resource) => Some(resource),
        _ => None,
    };
    End::Crashed { why: exit.to_string(), limit }
}
