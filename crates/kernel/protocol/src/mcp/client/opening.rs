//! How a connection begins: `server/discover` tells modern servers from legacy ones, which are then
//! asked to shake hands. No other request is ever used to find out, because some legacy servers
//! answer those before a handshake.

use wharf_vocab::Object;
use wharf_wire::mcp_v1::{
    McpDiscoverResult, McpEra, McpError, McpId, McpInitialize, McpInitializeResult, McpMeta,
    McpNotification, McpOpen, McpRequest, McpRevision, code, read_result,
};

use super::{McpClientSession, McpStart};
use crate::Moment;
use crate::mcp::{McpAnswer, McpClientEvent, McpOpenError, McpPeer};

/// Where the beginning is.
#[derive(Debug)]
pub(super) enum McpHandshake {
    /// Asked to discover.
    Discovering {
        call: McpId,
        /// What was known before; a server that is known to be modern is not asked to shake hands.
        start: McpStart,
    },
    /// Asked to shake hands.
    Initializing {
        call: McpId,
        /// Whether the server was silent before, and may have heard the question since.
        was_silent: bool,
    },
    /// Calls can be made.
    Ready(McpRevision),
    /// Calls can never be made.
    Failed,
}

impl McpHandshake {
    /// The session's own call that the beginning waits for.
    pub(super) fn call(&self) -> Option<&McpId> {
        match self {
            Self::Discovering { call, .. } | Self::Initializing { call, .. } => Some(call),
            Self::Ready(_) | Self::Failed => None,
        }
    }
}

impl McpClientSession {
    pub(super) fn discover(&mut self, now: Moment, start: McpStart) {
        let wait_ms = match start {
            McpStart::Probe => self.config.probe_ms,
            McpStart::Legacy | McpStart::Modern => self.config.initialize_ms,
        };
        let request = McpRequest::Discover(Box::default());
        let deadline_ms = Some(now.ms.saturating_add(wait_ms));
        let revision = McpRevision::MODERN_NEWEST;
        match self.send(revision, &request, McpMeta::default(), deadline_ms) {
            Ok(call) => self.opening = McpHandshake::Discovering { call, start },
            Err(_) => self.fail(McpOpenError::Unreadable),
        }
    }

    pub(super) fn initialize(&mut self, now: Moment, revision: McpRevision) {
        let mut capabilities = self.config.capabilities.clone();
        // Extensions came with the modern era.
        capabilities.extensions = None;
        let params = McpInitialize {
            protocol_version: revision.as_str().to_owned(),
            capabilities: capabilities.into(),
            client_info: self.config.info.clone().into(),
            meta: None,
        };
        let request = McpRequest::Initialize(McpOpen::boxed(params));
        let deadline_ms = Some(now.ms.saturating_add(self.config.initialize_ms));
        match self.send(revision, &request, McpMeta::default(), deadline_ms) {
            Ok(call) => self.opening = McpHandshake::Initializing { call, was_silent: false },
            Err(_) => self.fail(McpOpenError::Unreadable),
        }
    }

    /// The beginning's own call is over.
    pub(super) fn opened(&mut self, now: Moment, answer: McpAnswer) {
        match std::mem::replace(&mut self.opening, McpHandshake::Failed) {
            McpHandshake::Discovering { start, .. } => self.discovered(now, start, answer),
            McpHandshake::Initializing { was_silent, .. } => {
                self.initialized(now, was_silent, answer);
            }
            McpHandshake::Ready(_) | McpHandshake::Failed => {}
        }
    }

    fn discovered(&mut self, now: Moment, start: McpStart, answer: McpAnswer) {
        match answer {
            McpAnswer::Result { result, .. } => match modern_peer(result) {
                Some(peer) => self.ready(peer),
                // A legacy server may answer anything to a method that it does not know.
                None => self.not_modern(now, start, McpOpenError::Unreadable),
            },
            McpAnswer::Error(error) if code::is_modern(error.code) => {
                self.modern_error(now, start, error);
            }
            McpAnswer::Error(error) => self.not_modern(now, start, McpOpenError::Refused(error)),
            McpAnswer::Refused(status @ 400..=499) => {
                self.not_modern(now, start, McpOpenError::HttpRefused(status));
            }
            McpAnswer::Refused(status) => self.fail(McpOpenError::HttpRefused(status)),
            McpAnswer::TimedOut => self.not_modern(now, start, McpOpenError::Silent),
            McpAnswer::Violation(_) => self.not_modern(now, start, McpOpenError::Unreadable),
            McpAnswer::Lost | McpAnswer::Canceled if start == McpStart::Probe => {
                self.fail(McpOpenError::EndedOnProbe);
            }
            McpAnswer::Lost | McpAnswer::Canceled => self.fail(McpOpenError::Ended),
        }
    }

    /// The server knows of the modern era, but does not want to speak as it was spoken to.
    fn modern_error(&mut self, now: Moment, start: McpStart, error: McpError) {
        // A server that names the very version it was asked in is asked in it once more.
        if start == McpStart::Probe && turns_modern(&error) {
            return self.discover(now, McpStart::Modern);
        }
        // Only the newest modern version was asked for, and no other is known: what both sides
        // speak can only be legacy, if the server says that it speaks that too.
        let legacy = error.supported_versions().into_iter().filter(|it| it.era() == McpEra::Legacy);
        match legacy.max() {
            Some(revision) if error.code == code::UNSUPPORTED_VERSION => {
                self.initialize(now, revision);
            }
            None if error.code == code::UNSUPPORTED_VERSION => self.fail(McpOpenError::Version),
            _ => self.fail(McpOpenError::Refused(error)),
        }
    }

    fn not_modern(&mut self, now: Moment, start: McpStart, why: McpOpenError) {
        match start {
            McpStart::Probe => {
                self.initialize(now, McpRevision::LEGACY_NEWEST);
                if let McpHandshake::Initializing { was_silent, .. } = &mut self.opening {
                    *was_silent = why == McpOpenError::Silent;
                }
            }
            McpStart::Legacy | McpStart::Modern => self.fail(why),
        }
    }

    fn initialized(&mut self, now: Moment, was_silent: bool, answer: McpAnswer) {
        match answer {
            McpAnswer::Result { result, .. } => match read_result::<McpInitializeResult>(result) {
                Ok(result) => self.agreed(result.known),
                Err(_) => self.fail(McpOpenError::Unreadable),
            },
            // A server that took long to start has heard the first question after all, and holds to
            // the era it was asked in.
            McpAnswer::Error(error) if was_silent && turns_modern(&error) => {
                self.discover(now, McpStart::Modern);
            }
            McpAnswer::Error(error) => self.fail(McpOpenError::Refused(error)),
            McpAnswer::Refused(status) => self.fail(McpOpenError::HttpRefused(status)),
            McpAnswer::TimedOut => self.fail(McpOpenError::Silent),
            McpAnswer::Violation(_) => self.fail(McpOpenError::Unreadable),
            McpAnswer::Lost | McpAnswer::Canceled => self.fail(McpOpenError::Ended),
        }
    }

    fn agreed(&mut self, result: McpInitializeResult) {
        let revision = McpRevision::parse(&result.protocol_version);
        let Some(revision) = revision.filter(|it| it.era() == McpEra::Legacy) else {
            return self.fail(McpOpenError::Version);
        };
        let mut capabilities = result.capabilities;
        if !revision.has_core_tasks() {
            // Some servers declare what the agreed revision does not have.
            capabilities.tasks = None;
        }
        self.core.notify(None, &McpNotification::Initialized(Box::default()));
        self.ready(McpPeer {
            revision,
            capabilities,
            info: Some(result.server_info),
            instructions: result.instructions,
        });
    }

    fn ready(&mut self, peer: McpPeer) {
        self.opening = McpHandshake::Ready(peer.revision);
        self.events.push_back(McpClientEvent::Ready(Box::new(peer)));
    }
}

/// Whether a server refuses something for its version and offers a modern one.
fn turns_modern(error: &McpError) -> bool {
    let modern = |it: &McpRevision| it.era() == McpEra::Modern;
    error.code == code::UNSUPPORTED_VERSION && error.supported_versions().iter().any(modern)
}

/// The server that a result of `server/discover` tells of; `None` if it is none.
fn modern_peer(result: Object) -> Option<McpPeer> {
    let result = read_result::<McpDiscoverResult>(result).ok()?.known;
    let versions = result.supported_versions.iter();
    let revision = versions
        .filter_map(|version| McpRevision::parse(version))
        .filter(|revision| revision.era() == McpEra::Modern)
        .max()?;
    let info = result.meta.as_ref().and_then(|meta| meta.server_info().ok().flatten());
    let (capabilities, instructions) = (result.capabilities, result.instructions);
    Some(McpPeer { revision, capabilities, info, instructions })
}
