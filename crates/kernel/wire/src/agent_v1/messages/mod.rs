//! The payloads, one file per concern with both ends of it.

mod call;
mod cancel;
mod chunk;
mod error;
mod handshake;
mod health;
mod invoke;
mod notice;
mod question;
mod result;
mod stream;
mod tools;

pub use call::{CallContext, Caller, ToolCall};
pub use cancel::{CancelAck, ToolCancel};
pub use chunk::{Chunk, TextChannel};
pub use error::{AgentError, CoreError};
pub use handshake::{
    AgentGoodbye, CoreGoodbye, Hello, IdempotencyKept, IdempotencyPromise, ProtocolOffer, Sdk,
    Server, SessionToken, Welcome, WelcomeReply,
};
pub use health::{HealthStatus, Heartbeat, Ping, Pong};
pub use invoke::{InvokeResult, InvokeStream, ToolInvoke, ToolInvokeCancel};
pub use notice::{Notice, NoticeLevel};
pub use question::{AnswerStatus, QuestionAnswer, QuestionAsk};
pub use result::{CallStatus, ToolResult};
pub use stream::ToolStream;
pub use tools::{
    RejectedTool, ToolDefinition, ToolEntry, ToolsRegister, ToolsRegistered, ToolsUnregister,
    ToolsUnregistered, UnreadableTool,
};
