//! What a session tells, and what the core makes of it.

use tokio::time::Instant;
use wharf_domain::{AuditRecord, Caller, ProviderEvent, ProviderInput, Severity};
use wharf_engine::{AttemptRef, Reach};
use wharf_hosting::{ConnectionEnd, HostedKind as _, Inbox, ProcessPhase};
use wharf_protocol::Session as _;
use wharf_protocol::agent::{
    Additions, AdmissionRefusal, Breach, CallOutcome, CoreClose, CoreEvent, HandshakeFailure,
    Health, HelloReceived, InvokeReceived,
};
use wharf_socket::Owner as _;
use wharf_vocab::{Code, Fault, ProviderId};
use wharf_wire::agent_v1::{
    AgentNotice, AnswerStatus, QuestionAnswer, QuestionAsk, StepLocal, ToolDefinition,
};

use super::{AgentConnection, AgentPeer};
use crate::admit::{AdmittedAgent, admit};
use crate::from_wire;
use crate::invoke::{ChildUpdate, ChildUpdateKind, KeptLocal, Tidings};
use crate::shared::AgentBounds;

impl AgentConnection {
    pub(super) async fn event(&mut self, event: CoreEvent) {
        match event {
            CoreEvent::Hello(hello) => self.hello(&hello).await,
            CoreEvent::ToolsRegistered { added, removed, .. } => {
                self.tools_changed(added, &removed);
            }
            CoreEvent::ToolsUnregistered { removed } => {
                self.tools_changed(Vec::new(), &removed);
            }
            CoreEvent::Chunk { call_id, gap, chunk, .. } => {
                if let Some(call) = self.calls.get(&call_id) {
                    // When the engine is gone there is nobody left to tell.
                    let _ = call.attempt.progress(from_wire::chunk(gap, chunk)).await;
                }
            }
            CoreEvent::Cost { call_id, so_far_micro } => self.cost(&call_id, so_far_micro).await,
            CoreEvent::CallEnded { call_id, end } => self.call_ended(&call_id, *end).await,
            CoreEvent::Heartbeat { uptime_ms, inflight_calls, status, details } => {
                let handle = &self.shared.handle;
                let health =
                    from_wire::health(handle, status, (uptime_ms, inflight_calls), details);
                if let Some(peer) = &self.peer {
                    peer.live.heartbeat(&peer.launch, handle.now(), health);
                }
            }
            CoreEvent::HeartbeatMissed { silent_ms } => {
                let record = |record: AuditRecord| record.fact("silent_ms", silent_ms);
                self.audit(ProviderEvent::HeartbeatMissed, Severity::Warn, record).await;
            }
            CoreEvent::HealthChanged(health) => self.health(health).await,
            CoreEvent::Question(question) => self.question(&question).await,
            CoreEvent::Notice(notice) => self.notice(notice).await,
            CoreEvent::Invoke(received) => self.invoke(*received),
            CoreEvent::InvokeCanceled { invoke_id } => self.invokes.stop(&invoke_id),
            CoreEvent::StepLocal(local) => self.step_local(*local),
            CoreEvent::Violation(violation) => {
                let name = violation.breach.name();
                metrics::counter!("wharf_agent_violations_total", "breach" => name).increment(1);
                let fatal = self.session.is_closed();
                let severity = if fatal { Severity::Error } else { Severity::Warn };
                let record = |record: AuditRecord| breach_of(record, violation.breach);
                self.audit(ProviderEvent::ProtocolViolation, severity, record).await;
            }
            CoreEvent::Closed(why) => self.closed(why).await,
            CoreEvent::LateResult { call_id, cost_micro } => {
                metrics::counter!("wharf_agent_late_results_total").increment(1);
                self.cost(&call_id, cost_micro).await;
            }
            CoreEvent::Goodbye { .. } => {
                if let Some(peer) = &self.peer {
                    peer.live.retire(&peer.launch);
                }
                self.announce().await;
            }
            CoreEvent::CancelAcknowledged { .. }
            | CoreEvent::PingLost
            | CoreEvent::Pong { .. }
            | CoreEvent::QuestionWithdrawn { .. }
            | CoreEvent::PeerError { .. } => {}
        }
    }

    async fn hello(&mut self, hello: &HelloReceived) {
        let now = self.now();
        let refused = match self.admit(hello).await {
            Ok((peer, inbox)) => {
                self.session.set_rules(self.shared.options.session_rules(&peer.agent));
                (self.peer, self.inbox) = (Some(peer), Some(inbox));
                let granted = Additions::ALL;
                // The session waits for exactly this answer.
                let _ = self.session.accept(now, granted);
                let semver = hello.agent_version_is_semver;
                let severity = if semver { Severity::Info } else { Severity::Warn };
                let version = |record: AuditRecord| record.fact("version_is_semver", semver);
                return self.audit(ProviderEvent::Connected, severity, version).await;
            }
            Err(refused) => refused,
        };
        let (refusal, check) = refused;
        let _ = self.session.refuse(now, refusal);
        let subject = ProviderId::new(&hello.agent_id).ok();
        let event = match refusal {
            AdmissionRefusal::ManifestDrift => ProviderEvent::ManifestDriftDetected,
            AdmissionRefusal::Unauthorized | AdmissionRefusal::Conflict => {
                ProviderEvent::HandshakeFailed
            }
        };
        self.audit_about(subject, event, Severity::Security, |record| record.fact("check", check))
            .await;
    }

    async fn admit(
        &self,
        hello: &HelloReceived,
    ) -> Result<(AgentPeer, Inbox), (AdmissionRefusal, &'static str)> {
        let AdmittedAgent { agent, launch, live, places, inbox } =
            admit(&self.shared, &self.origin, hello).await?;
        let bounds = AgentBounds::read(&self.shared, &agent);
        bounds.announce(&self.shared, &agent, &live);
        let keys = hello.idempotency;
        let origin = self.shared.options.storage_origin.as_deref();
        let reach = self
            .shared
            .handle
            .providers()
            .get(&agent)
            .map(|agent| wharf_hosting::reach(&agent, origin));
        let reach = reach.unwrap_or(Reach::Folder);
        let process = live.process_of(&launch);
        let rooms = None;
        let peer = AgentPeer { agent, launch, live, keys, bounds, reach, places, rooms, process };
        Ok((peer, inbox))
    }

    /// The agent's tools are now others; they keep their place when it goes away.
    fn tools_changed(&mut self, added: Vec<ToolDefinition>, removed: &[String]) {
        self.offered.retain(|known| {
            !removed.contains(&known.tool_id)
                && !added.iter().any(|new| new.tool_id == known.tool_id)
        });
        self.offered.extend(added);
        self.offer_at.get_or_insert_with(Instant::now);
    }

    /// Writes down what the agent offers now. One that changes its tools faster than may be
    /// written is not asked to wait: what it offers in the end is what counts.
    pub(super) async fn offer(&mut self) {
        self.offer_at = None;
        let Some(peer) = &self.peer else { return };
        let keys = peer.keys;
        let tools: Vec<_> =
            self.offered.iter().filter_map(|tool| from_wire::tool(tool, keys)).collect();
        let handle = &self.shared.handle;
        let agent = peer.agent.clone();
        if handle.providers().get(&agent).is_ok_and(|known| known.tools != tools)
            && let Err(wait) = handle.providers().may_offer(agent.as_str())
        {
            self.offer_at = Some(Instant::now() + wait);
            return;
        }
        let offered = async {
            let input = ProviderInput::Offer { tools: tools.clone() };
            let known = handle.providers().change(&Caller::core(), &agent, input).await?;
            // What changed is set apart before it can be seen.
            self.shared.host.quarantine(&known);
            handle.providers().set_tools(&agent, tools)
        };
        if let Err(fault) = offered.await {
            tracing::warn!(provider = %agent, code = %fault.code, "the tools of an agent were not taken");
            return;
        }
        self.fares(ProcessPhase::Running).await;
    }

    /// Starts a child run on behalf of a call, with the tools that the agent may call now.
    fn invoke(&mut self, received: InvokeReceived) {
        let now = self.now();
        let call = self.calls.get(&received.parent_call_id);
        let (Some(peer), Some(call)) = (&self.peer, call) else {
            let fault = Fault::new(Code::PermissionDenied, "The call it belongs to is over.");
            // An agent that has gone needs no result.
            let _ =
                self.session.invoke_result(now, &received.invoke_id, CallOutcome::Failed(fault));
            return;
        };
        let handle = self.shared.handle.clone();
        let agent = handle.providers().get(&peer.agent);
        let attempt = AttemptRef::clone(&call.attempt);
        let caller = attempt.caller(agent.map(|agent| agent.callable()).unwrap_or_default());
        self.invokes.start(handle, &self.shared.options.limits, attempt, caller, received);
    }

    /// Keeps a value of a call's durable code, or says which is kept.
    fn step_local(&mut self, local: StepLocal) {
        let Some(call) = self.calls.get(&local.call_id) else {
            let fault = Fault::new(Code::PermissionDenied, "The call it belongs to is over.");
            // An agent that has gone needs no answer.
            let _ = self.session.step_kept(self.now(), &local.call_id, &local.step, Err(fault));
            return;
        };
        self.invokes.keep(AttemptRef::clone(&call.attempt), local);
    }

    /// Passes on what a child has to tell. An agent that does not wait for it any more, or reads
    /// nothing, misses output but never the end.
    pub(super) fn tell(&mut self, told: Tidings) {
        let now = self.now();
        let ChildUpdate { invoke_id, what } = match told {
            Tidings::Child(update) => update,
            Tidings::Kept(KeptLocal { call_id, step, kept }) => {
                // A session that is over needs no answer.
                let _ = self.session.step_kept(now, &call_id, &step, kept);
                return;
            }
        };
        match what {
            ChildUpdateKind::Chunk(chunk) => {
                let _ = self.session.invoke_chunk(now, &invoke_id, chunk);
            }
            ChildUpdateKind::Ended(outcome) => {
                self.invokes.ended(&invoke_id);
                let _ = self.session.invoke_result(now, &invoke_id, outcome);
            }
        }
    }

    async fn health(&mut self, health: Health) {
        match health {
            Health::Healthy | Health::Degraded => self.fares(ProcessPhase::Running).await,
            Health::Unhealthy => {
                self.fares(ProcessPhase::Unhealthy).await;
                self.audit(ProviderEvent::MarkedUnhealthy, Severity::Warn, |record| record).await;
            }
        }
    }

    async fn question(&mut self, question: &QuestionAsk) {
        let now = self.now();
        let Some(call) = self.calls.get(&question.call_id) else { return };
        let attempt = &call.attempt;
        let attempt_id = attempt.dispatch().attempt_id.clone();
        let ask = from_wire::question(attempt_id, question, now.at);
        if attempt.raise(ask).await.is_err() {
            let (ask_id, status) = (question.ask_id.clone(), AnswerStatus::Denied);
            let answer = QuestionAnswer { ask_id, status, value: None, text: None };
            // A question whose call has ended meanwhile needs no answer.
            let _ = self.session.answer(now, answer);
        }
    }

    async fn notice(&mut self, notice: AgentNotice) {
        let call = notice.call_id.as_ref().and_then(|call_id| self.calls.get(call_id));
        if let Some(call) = call {
            // When the engine is gone there is nobody left to tell.
            let _ = call.attempt.progress(vec![from_wire::notice(notice)]).await;
        }
    }

    async fn closed(&mut self, why: CoreClose) {
        match why {
            CoreClose::Handshake(HandshakeFailure::Refused(_)) => {}
            CoreClose::Handshake(failure) => {
                let facts = |record: AuditRecord| match failure {
                    HandshakeFailure::Breach(breach) => breach_of(record, breach),
                    failure => record.fact("code", failure.code().as_str()),
                };
                self.audit_about(None, ProviderEvent::HandshakeFailed, Severity::Security, facts)
                    .await;
            }
            // The violation itself was written down.
            CoreClose::Violation(_) => {}
            other => {
                let why = close_name(other);
                let facts = |record: AuditRecord| record.fact("why", why);
                self.audit(ProviderEvent::Disconnected, Severity::Info, facts).await;
            }
        }
        if let Some(peer) = &self.peer {
            peer.live.disconnect(&peer.launch, closed_for(why));
            self.announce().await;
        }
    }

    /// The process fares like this now.
    async fn fares(&self, phase: ProcessPhase) {
        let Some(peer) = &self.peer else { return };
        peer.live.set_phase(&peer.launch, phase);
        self.announce().await;
    }

    /// Lets the catalog know whether the agent can take calls now.
    async fn announce(&self) {
        if let Some(peer) = &self.peer {
            peer.live.announce(&self.shared.handle, &peer.agent).await;
        }
    }

    async fn audit(
        &self,
        event: ProviderEvent,
        severity: Severity,
        facts: impl FnOnce(AuditRecord) -> AuditRecord,
    ) {
        let agent = self.peer.as_ref().map(|peer| peer.agent.clone());
        self.audit_about(agent, event, severity, facts).await;
    }

    async fn audit_about(
        &self,
        agent: Option<ProviderId>,
        event: ProviderEvent,
        severity: Severity,
        facts: impl FnOnce(AuditRecord) -> AuditRecord,
    ) {
        let agent = agent.unwrap_or_else(|| ProviderId::new("unknown").expect("a valid id"));
        let mut record = self.shared.record(&agent, event).severity(severity);
        if let Some(peer) = &self.peer {
            record = record.fact("launch_id", peer.launch.as_str());
        }
        self.shared.host.audit(&agent, facts(record)).await;
    }
}

/// What a peer did wrong, as the audit has it: never with anything of what it sent.
fn breach_of(record: AuditRecord, breach: Breach) -> AuditRecord {
    let record = record.fact("breach", breach.name()).fact("code", breach.code().as_str());
    match breach {
        Breach::FrameTooLarge { announced, limit } => {
            record.fact("frame_bytes", announced).fact("limit_bytes", limit)
        }
        _ => record,
    }
}

fn close_name(why: CoreClose) -> &'static str {
    match why {
        CoreClose::Handshake(_) => "handshake",
        CoreClose::Goodbye => "goodbye",
        CoreClose::AgentGoodbye => "goodbye of the agent",
        CoreClose::Disconnected { inside_frame: true } => "connection lost inside a frame",
        CoreClose::Disconnected { inside_frame: false } => "connection lost",
        CoreClose::Violation(_) => "violation",
        CoreClose::TooManyViolations => "too many violations",
        CoreClose::HeartbeatsLost => "no sign of life",
        CoreClose::NotReading => "it does not read",
    }
}

/// What others need to know of how a session ended.
fn closed_for(why: CoreClose) -> ConnectionEnd {
    match why {
        CoreClose::HeartbeatsLost => {
            ConnectionEnd::Unresponsive("it gave no sign of life".to_owned())
        }
        CoreClose::NotReading => {
            ConnectionEnd::Unresponsive("it did not read what it was sent".to_owned())
        }
        CoreClose::Violation(_) | CoreClose::TooManyViolations => {
            ConnectionEnd::Because("it broke the protocol".to_owned())
        }
        CoreClose::Handshake(_)
        | CoreClose::Goodbye
        | CoreClose::AgentGoodbye
        | CoreClose::Disconnected { .. } => ConnectionEnd::Over,
    }
}
