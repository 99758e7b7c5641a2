//! Hello and welcome.

use wharf_wire::agent_v1::{
    AgentMessage, CoreMessage, DecodeError, Envelope, Hello, IdempotencyPromise, ProtocolOffer,
    SessionId, VERSION, Welcome, WelcomeReply,
};

use super::{AgentClose, AgentConfig, AgentEvent, AgentSession};
use crate::Moment;
use crate::agent::core_end::Additions;
use crate::agent::outbox::Draft;
use crate::agent::outcome::fault_of;

/// Where a session stands.
#[derive(Debug)]
pub(super) enum AgentEndPhase {
    /// The hello was sent.
    Greeting { deadline_ms: u64 },
    /// The core let the agent in.
    Live(CorePeer),
    /// It is over.
    Closed,
}

/// The core that let the agent in.
#[derive(Debug)]
pub(super) struct CorePeer {
    pub(super) session_id: SessionId,
    pub(super) heartbeat_interval_ms: u64,
    pub(super) heartbeat_due_ms: u64,
    pub(super) granted: Additions,
}

impl AgentSession {
    pub(super) fn say_hello(&mut self, now: Moment, config: AgentConfig) {
        let mut capabilities = config.capabilities;
        let idempotency = config.idempotency.map(|offer| {
            if !capabilities.iter().any(|name| name == "idempotency") {
                capabilities.push("idempotency".to_owned());
            }
            IdempotencyPromise::from(offer)
        });
        let hello = Hello {
            session_token: config.token,
            agent_id: config.agent_id,
            agent_version: config.agent_version,
            manifest_hash: config.manifest_hash,
            protocol: ProtocolOffer {
                supported_versions: vec![VERSION],
                capabilities,
                idempotency,
            },
            sdk: config.sdk,
        };
        let sent = self.outbox.send(now, Draft::<AgentMessage>::new(hello));
        if sent.is_err() {
            self.close(AgentClose::BadWelcome);
        }
    }

    /// Takes the first frame, which has to be the welcome.
    pub(super) fn on_first(
        &mut self,
        now: Moment,
        decoded: Result<Envelope<CoreMessage>, DecodeError>,
    ) {
        match decoded {
            Ok(Envelope { error, message: CoreMessage::Welcome(reply), .. }) => {
                match (reply, error) {
                    (WelcomeReply::Accepted(welcome), None) if is_usable(&welcome) => {
                        self.on_welcome(now, welcome);
                    }
                    (_, Some(error)) => self.close(AgentClose::Refused(fault_of(&error))),
                    _ => self.close(AgentClose::BadWelcome),
                }
            }
            _ => self.close(AgentClose::BadWelcome),
        }
    }

    fn on_welcome(&mut self, now: Moment, welcome: Welcome) {
        let granted = Additions::declared(&welcome.capabilities);
        self.frames.set_limit(welcome.max_frame_bytes);
        self.outbox.set_frame_bytes_max(welcome.max_frame_bytes);
        self.phase = AgentEndPhase::Live(CorePeer {
            session_id: welcome.session_id.clone(),
            heartbeat_interval_ms: welcome.heartbeat_interval_ms,
            heartbeat_due_ms: now.ms,
            granted,
        });
        // The first sign of life does not wait for an interval to pass.
        self.check_heartbeat(now);
        self.tell(AgentEvent::Welcomed {
            session_id: welcome.session_id,
            server: welcome.server,
            granted,
        });
    }
}

/// Whether the welcome names a version that was offered, and limits one can live with.
fn is_usable(welcome: &Welcome) -> bool {
    welcome.accepted_version == VERSION
        && welcome.heartbeat_interval_ms > 0
        && welcome.max_frame_bytes > 0
}
