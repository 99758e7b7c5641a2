//! From the first byte to the welcome.
//!
//! Before the welcome a peer is a stranger: it gets little room, little time, and no answer to
//! anything but a hello. What it sends behind its hello stays unread until the owner has decided.

use wharf_vocab::{Code, Fault};
use wharf_wire::agent_v1::{
    AgentMessage, CoreMessage, DecodeError, Envelope, Hello, MessageId, Server, VERSION, Welcome,
    WelcomeReply,
};

use super::{
    Additions, AdmissionRefusal, CoreClose, CoreEvent, CoreSession, HandshakeFailure,
    HelloReceived, SessionRules,
};
use crate::Moment;
use crate::agent::judge::rejection;
use crate::agent::outbox::{Draft, SendError};
use crate::agent::outcome::error_of;
use crate::agent::violation::Breach;

/// Where a session stands.
#[derive(Debug)]
pub(super) enum CoreEndPhase {
    /// Nothing complete has arrived.
    Hello { deadline_ms: u64 },
    /// The owner has a hello to decide on.
    Deciding(PendingHello),
    /// The agent is in.
    Live(Peer),
    /// It is over.
    Closed,
}

/// A hello that waits for the owner's decision.
#[derive(Debug)]
pub(super) struct PendingHello {
    hello_id: MessageId,
    agent_id: String,
    declared: Additions,
}

/// An agent that was let in.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) agent_id: String,
    pub(super) granted: Additions,
}

impl CoreSession {
    /// Lets the agent in. `granted` says which of the additions it declared it may use.
    pub fn accept(&mut self, now: Moment, granted: Additions) -> Result<(), SendError> {
        let CoreEndPhase::Deciding(pending) = &self.phase else {
            return Err(SendError::NotLive);
        };
        let granted = pending.declared.and(granted);
        let welcome = Welcome {
            accepted_version: VERSION,
            session_id: self.config.session_id.clone(),
            heartbeat_interval_ms: self.limits().heartbeat_interval_ms,
            max_frame_bytes: self.limits().frame_bytes_max,
            server: Server {
                core_version: self.config.core_version.clone(),
                instance_id: self.config.instance_id.clone(),
            },
            capabilities: granted.names(),
        };
        let draft = Draft::new(WelcomeReply::Accepted(welcome)).reply_to(&pending.hello_id);
        let agent_id = pending.agent_id.clone();
        self.send(now, draft)?;
        self.phase = CoreEndPhase::Live(Peer { agent_id, granted });
        self.frames.set_limit(self.limits().frame_bytes_max);
        self.health.begin(now);
        self.read_frames(now);
        Ok(())
    }

    /// Says what holds for this agent, before it is let in.
    pub fn set_rules(&mut self, rules: SessionRules) {
        let SessionRules { frame_bytes_max, calls_open_max, oversize, close_on_unknown_type } =
            rules;
        self.config.limits.frame_bytes_max = frame_bytes_max;
        self.config.limits.calls_open_max = calls_open_max;
        self.config.oversize = oversize;
        self.config.close_on_unknown_type = close_on_unknown_type;
        self.outbox.set_frame_bytes_max(frame_bytes_max);
    }

    /// Keeps the agent out: it is told so, and the session is over.
    pub fn refuse(&mut self, now: Moment, refusal: AdmissionRefusal) -> Result<(), SendError> {
        let CoreEndPhase::Deciding(pending) = &self.phase else {
            return Err(SendError::NotLive);
        };
        let fault = match refusal {
            AdmissionRefusal::Unauthorized => unauthorized(),
            AdmissionRefusal::Conflict => Fault::new(
                Code::ProtocolSessionConflict,
                "An agent with this id is connected already.",
            ),
            AdmissionRefusal::ManifestDrift => Fault::new(
                Code::ProtocolUnauthorized,
                "The manifest has changed since it was approved; approve the agent again.",
            ),
        };
        let hello_id = pending.hello_id.clone();
        self.turn_away(now, Some(&hello_id), &fault, HandshakeFailure::Refused(refusal));
        Ok(())
    }

    /// Ends a handshake that has taken too long, however much has trickled in.
    pub(super) fn check_handshake_deadline(&mut self, now: Moment) {
        if matches!(self.phase, CoreEndPhase::Hello { deadline_ms } if deadline_ms <= now.ms) {
            self.close(CoreClose::Handshake(HandshakeFailure::Timeout));
        }
    }

    /// Ends a session whose peer sends on and on while the owner decides.
    pub(super) fn check_held_bytes(&mut self) {
        let held_max = 2 * self.limits().hello_frame_bytes_max as usize;
        if matches!(self.phase, CoreEndPhase::Deciding(_)) && self.frames.held_bytes() > held_max {
            self.close(CoreClose::Handshake(HandshakeFailure::Flood));
        }
    }

    /// Takes the first frame of a connection.
    pub(super) fn on_first(
        &mut self,
        now: Moment,
        decoded: Result<Envelope<AgentMessage>, DecodeError>,
    ) {
        match decoded {
            Ok(Envelope { v, id, message: AgentMessage::Hello(hello), .. }) => {
                self.on_hello(now, v, id, hello);
            }
            Ok(_) => self.close(CoreClose::Handshake(HandshakeFailure::NotHello)),
            Err(DecodeError::Rejected(rejected))
                if rejected.header.type_name.as_deref() == Some("agent.hello") =>
            {
                let id = rejected.header.id.as_ref();
                if rejected.header.v.is_some_and(|version| version != VERSION) {
                    self.turn_away(now, id, &no_common_version(), HandshakeFailure::Version);
                } else {
                    let failure = HandshakeFailure::InvalidHello;
                    self.turn_away(now, id, &rejection(&rejected), failure);
                }
            }
            Err(DecodeError::Malformed(why)) => {
                let failure = HandshakeFailure::Breach(Breach::Malformed(why));
                self.close(CoreClose::Handshake(failure));
            }
            Err(_) => self.close(CoreClose::Handshake(HandshakeFailure::NotHello)),
        }
    }

    fn on_hello(&mut self, now: Moment, v: i64, id: MessageId, hello: Hello) {
        if hello.session_token.is_empty() {
            self.turn_away(now, Some(&id), &unauthorized(), HandshakeFailure::NoToken);
            return;
        }
        if v != VERSION || !hello.protocol.supported_versions.contains(&VERSION) {
            self.turn_away(now, Some(&id), &no_common_version(), HandshakeFailure::Version);
            return;
        }
        let declared = Additions::declared(&hello.protocol.capabilities);
        let agent_id = hello.agent_id.clone();
        self.phase = CoreEndPhase::Deciding(PendingHello { hello_id: id, agent_id, declared });
        let remembers = hello.protocol.capabilities.iter().any(|name| name == "idempotency");
        self.tell(CoreEvent::Hello(Box::new(HelloReceived {
            token: hello.session_token,
            agent_id: hello.agent_id,
            agent_version_is_semver: is_semver(&hello.agent_version),
            agent_version: hello.agent_version,
            manifest_hash: hello.manifest_hash,
            additions: declared,
            idempotency: hello.protocol.idempotency.filter(|_| remembers),
            capabilities: hello.protocol.capabilities,
            sdk: hello.sdk,
        })));
    }

    /// Answers a hello with an error and ends the session.
    fn turn_away(
        &mut self,
        now: Moment,
        hello_id: Option<&MessageId>,
        fault: &Fault,
        failure: HandshakeFailure,
    ) {
        let mut draft = Draft::<CoreMessage>::new(WelcomeReply::Refused).error(error_of(fault));
        if let Some(id) = hello_id {
            draft = draft.reply_to(id);
        }
        self.reply(now, draft);
        self.close(CoreClose::Handshake(failure));
    }
}

fn is_semver(version: &str) -> bool {
    semver::Version::parse(version).is_ok()
}

/// The one answer to every doubt about who connects.
fn unauthorized() -> Fault {
    Fault::new(
        Code::ProtocolUnauthorized,
        "The session was refused; start the agent through the core and use the token it was given.",
    )
}

fn no_common_version() -> Fault {
    Fault::new(
        Code::ProtocolUnsupportedVersion,
        "This core speaks version 1 of the agent protocol and the agent does not offer it.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_three_numbers_and_optional_tails() {
        for good in ["0.1.0", "1.0.0-alpha.1", "1.2.3+build.01", "1.0.0-a-b+x-y", "10.20.30"] {
            assert!(is_semver(good), "{good}");
        }
        for bad in ["", "1", "1.0", "1.0.0.0", "01.0.0", "1.0.x", "v1.0.0", "1.0.0-", "1.0.0-01"] {
            assert!(!is_semver(bad), "{bad}");
        }
    }
}
