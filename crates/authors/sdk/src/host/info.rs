//! What is known of a call beside its input.

use std::path::PathBuf;
use std::time::Duration;

use wharf_vocab::Mode;
use wharf_wire::agent_v1::{Actor, Caller};

/// What is known of a call beside its input, by [`Cx::info`](crate::Cx::info). What a way of
/// serving does not know is absent.
#[derive(Clone, PartialEq)]
pub struct CallInfo {
    /// Whether the call is real. In mode `mock` a tool makes something up and acts on nothing.
    pub mode: Mode,
    /// The id of the call, or of the run that a tool server executes.
    pub call_id: String,
    /// Which attempt of the run this is, from 1.
    pub attempt: u32,
    /// The logical request that the call belongs to; the same when it is tried again.
    pub request_id: Option<String>,
    /// The session, workflow or mission that the call belongs to.
    pub correlation_id: Option<String>,
    /// What immediately caused the call: an approval, or the run that made the call.
    pub causation_id: Option<String>,
    /// The trace the call belongs to, as W3C Trace Context writes it.
    pub traceparent: Option<String>,
    /// The key under which the call is to act once.
    pub idempotency_key: Option<String>,
    /// The approval that the call runs under, if it needed one. A tool that asked for it by
    /// [`directive_required`](crate::directive_required) may act now.
    pub approval: Option<String>,
    /// How long the call may take, counted from its arrival.
    pub timeout: Option<Duration>,
    /// Who is behind the call: for display, never to decide what is allowed.
    pub actor: Option<Actor>,
    /// Who calls: for display, never to decide what is allowed.
    pub caller: Option<Caller>,
    /// The root of the project that the call is about, if the caller named one and it is allowed.
    pub project_root: Option<String>,
    /// The folder with files that the call is given, if the core made one.
    pub inputs_dir: Option<PathBuf>,
    /// The folder for files that the call gives, if the core made one.
    pub outputs_dir: Option<PathBuf>,
}

impl Default for CallInfo {
    fn default() -> Self {
        Self {
            mode: Mode::Real,
            call_id: String::new(),
            attempt: 1,
            request_id: None,
            correlation_id: None,
            causation_id: None,
            traceparent: None,
            idempotency_key: None,
            approval: None,
            timeout: None,
            actor: None,
            caller: None,
            project_root: None,
            inputs_dir: None,
            outputs_dir: None,
        }
    }
}

debug_only!(CallInfo: call_id);
