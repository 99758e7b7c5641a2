//! The payloads, one file per concern with both ends of it.

mod call;
mod invoke;
mod question;
mod session;
mod step;
mod stream;
mod tools;

pub use call::{CallContext, CallStatus, Caller, CancelAck, ToolCall, ToolCancel, ToolResult};
pub use invoke::{InvokeResult, InvokeStream, ToolInvoke, ToolInvokeCancel};
pub use question::{AgentNotice, AnswerStatus, NoticeLevel, QuestionAnswer, QuestionAsk};
pub use session::{
    AgentError, AgentGoodbye, CoreError, CoreGoodbye, HealthStatus, Heartbeat, Hello,
    IdempotencyKept, IdempotencyPromise, Ping, Pong, ProtocolOffer, Sdk, Server, SessionToken,
    Welcome, WelcomeReply,
};
pub use step::{StepKept, StepLocal};
pub use stream::{Chunk, TextChannel, ToolStream};
pub use tools::{
    RejectedTool, ToolDefinition, ToolEntry, ToolsRegister, ToolsRegistered, ToolsUnregister,
    ToolsUnregistered, UnreadableTool,
};
