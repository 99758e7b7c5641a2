//! MCP, the protocol of tool servers and of the clients that use them: one set of types for the
//! union of the revisions 2025-06-18, 2025-11-25 and 2026-07-28, and for the Tasks extension.
//!
//! Reading goes in steps. [`McpMessage::read`] takes an envelope apart and judges only the
//! envelope; [`McpRequest`] and [`McpNotification`] know the parameters of every method; results
//! are read with [`read_result`] by whoever knows what was asked. Fields that nobody here knows are
//! kept beside the known ones ([`McpOpen`]) and written again as they came.
//!
//! What this module does not do: it holds no state, and which message may come when is decided by
//! the sessions in `wharf-protocol`.

mod capability;
mod content;
mod elicit;
mod envelope;
mod error;
pub mod headers;
mod id;
mod meta;
mod method;
mod open;
mod page;
mod params;
mod results;
mod revision;
mod sampling;
mod task;

pub use capability::{
    McpClientCapabilities, McpElicitationModes, McpFeatures, McpIcon, McpImplementation,
    McpListSupport, McpResourceSupport, McpSamplingSupport, McpServerCapabilities, McpTaskSupport,
    TASKS_EXTENSION,
};
pub use content::{
    McpAnnotations, McpContent, McpEmbedded, McpMedia, McpResourceContents, McpRole, McpText,
    McpToolResult, McpToolUse,
};
pub use elicit::{
    McpChoice, McpElicit, McpElicitAction, McpElicitMode, McpElicitResult, McpField, McpFieldItems,
    McpFieldKind, McpForm,
};
pub use envelope::{McpMessage, McpUnreadable, McpUnreadableKind};
pub use error::{McpError, code};
pub use id::{McpId, McpIdError};
pub use meta::{McpLogLevel, McpMeta, key};
pub use method::{McpNotification, McpRequest};
pub use open::{McpOpen, read_result};
pub use page::{
    McpPrompt, McpPromptArgument, McpPromptsPage, McpResource, McpResourcesPage, McpRoot,
    McpTemplate, McpTemplatesPage, McpTool, McpToolAnnotations, McpToolExecution, McpToolTasks,
    McpToolsPage, McpUnfit,
};
pub use params::{
    McpCanceled, McpComplete, McpCompleteArgument, McpCompleteContext, McpCompleteRef, McpCursor,
    McpElicitationDone, McpFilter, McpInitialize, McpListen, McpListened, McpLog, McpNoParams,
    McpProgress, McpPromptGet, McpResourceRead, McpResourceUri, McpSetLevel, McpTaskWish,
    McpToolCall,
};
pub use results::{
    McpCacheScope, McpCallResult, McpCompleteResult, McpCompletion, McpDiscoverResult,
    McpEmptyResult, McpInitializeResult, McpInputRequest, McpInputRequired, McpPromptMessage,
    McpPromptResult, McpReadResult, McpResultType, McpRootsResult,
};
pub use revision::{McpEra, McpRevision};
pub use sampling::{
    McpModelHint, McpModelPreferences, McpSample, McpSampleContent, McpSampleMessage,
    McpSampleResult, McpToolChoice,
};
pub use task::{
    McpMs, McpTask, McpTaskBegun, McpTaskOf11, McpTaskRef, McpTaskStatus, McpTaskTtl,
    McpTaskUpdate, McpTasksPage,
};

/// What bounds messages.
pub mod limits {
    /// Largest message that a client may send.
    pub const FROM_CLIENT_BYTES_MAX: usize = 4 * 1024 * 1024;
    /// Largest message that a server may send.
    pub const FROM_SERVER_BYTES_MAX: usize = 16 * 1024 * 1024;
    /// Deepest nesting of a message.
    pub const NESTING_MAX: usize = wharf_vocab::limits::JSON_DEPTH_MAX;
    /// Longest id and longest progress token.
    pub const ID_BYTES_MAX: usize = 1024;
    /// Longest name of a method.
    pub const METHOD_BYTES_MAX: usize = 256;
}
