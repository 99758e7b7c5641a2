//! `_meta`, what travels beside parameters and results. It is kept as it came: a value that is not
//! what its key promises is nobody's until somebody asks for it.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wharf_vocab::Object;

use super::{McpClientCapabilities, McpError, McpId, McpImplementation, McpOpen};

/// Keys with a meaning.
pub mod key {
    /// Where all of them stand.
    pub const META: &str = "_meta";
    /// Names the progress of a request, and asks for it.
    pub const PROGRESS_TOKEN: &str = "progressToken";
    /// Version of a modern request.
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// Who sends a modern request.
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// What the sender of a modern request can do.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// From which level on a modern request wants logs.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// Who sends a modern result.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// The `subscriptions/listen` that a notification belongs to.
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    /// The task of 2025-11-25 that a message belongs to.
    pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
    /// The trace that a request belongs to.
    pub const TRACEPARENT: &str = "traceparent";
    /// What vendors add to the trace.
    pub const TRACESTATE: &str = "tracestate";
    /// What Wharf says of a run, or is told of one to start.
    pub const WHARF_RUN: &str = "dev.wharf/run";
    /// What Wharf says of a tool.
    pub const WHARF_TOOL: &str = "dev.wharf/tool";
    /// What Wharf says of a file.
    pub const WHARF_FILE: &str = "dev.wharf/file";
}

/// Levels of logs, least urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum McpLogLevel {
    /// For whoever debugs.
    Debug,
    /// What is done.
    Info,
    /// Normal, but worth a look.
    Notice,
    /// It may go wrong.
    Warning,
    /// It went wrong.
    Error,
    /// A part does not work.
    Critical,
    /// Somebody has to act at once.
    Alert,
    /// Nothing works.
    Emergency,
}

/// The object below `_meta`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct McpMeta(pub Object);

impl McpMeta {
    /// That of parameters or of a result, if they have one.
    #[must_use]
    pub fn of(object: Option<&Object>) -> Option<Self> {
        let meta = object?.get(key::META)?.as_object()?;
        Some(Self(meta.clone()))
    }

    /// The same with this under a key.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Serialize) -> Self {
        self.set(key, value);
        self
    }

    /// Puts this under a key.
    pub fn set(&mut self, key: &str, value: impl Serialize) {
        if let Ok(value) = serde_json::to_value(value) {
            self.0.insert(key.to_owned(), value);
        }
    }

    /// What names the progress of this request.
    pub fn progress_token(&self) -> Result<Option<McpId>, McpError> {
        self.get(key::PROGRESS_TOKEN)
    }

    /// The version of a modern request.
    pub fn protocol_version(&self) -> Result<Option<String>, McpError> {
        self.get(key::PROTOCOL_VERSION)
    }

    /// What the sender of a modern request can do.
    pub fn client_capabilities(&self) -> Result<Option<McpOpen<McpClientCapabilities>>, McpError> {
        self.get(key::CLIENT_CAPABILITIES)
    }

    /// Who sends a modern request.
    pub fn client_info(&self) -> Result<Option<McpOpen<McpImplementation>>, McpError> {
        self.get(key::CLIENT_INFO)
    }

    /// Who sends a modern result.
    pub fn server_info(&self) -> Result<Option<McpOpen<McpImplementation>>, McpError> {
        self.get(key::SERVER_INFO)
    }

    /// From which level on a modern request wants logs.
    pub fn log_level(&self) -> Result<Option<McpLogLevel>, McpError> {
        self.get(key::LOG_LEVEL)
    }

    /// The `subscriptions/listen` that a notification belongs to.
    pub fn subscription_id(&self) -> Result<Option<McpId>, McpError> {
        self.get(key::SUBSCRIPTION_ID)
    }

    /// The task of 2025-11-25 that a message belongs to.
    #[must_use]
    pub fn related_task(&self) -> Option<&str> {
        self.0.get(key::RELATED_TASK)?.get("taskId")?.as_str()
    }

    /// The trace that a request belongs to.
    #[must_use]
    pub fn traceparent(&self) -> Option<&str> {
        self.0.get(key::TRACEPARENT)?.as_str()
    }

    /// What tracing systems add to that for each other.
    #[must_use]
    pub fn tracestate(&self) -> Option<&str> {
        self.0.get(key::TRACESTATE)?.as_str()
    }

    /// What stands below one of Wharf's own keys.
    #[must_use]
    pub fn wharf(&self, key: &str) -> Option<&Object> {
        self.0.get(key)?.as_object()
    }

    fn get<T: for<'de> Deserialize<'de>>(&self, key: &str) -> Result<Option<T>, McpError> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => T::deserialize(value).map(Some).map_err(|_| {
                McpError::params(format!("The field `_meta[\"{key}\"]` is not what it must be."))
            }),
        }
    }
}
