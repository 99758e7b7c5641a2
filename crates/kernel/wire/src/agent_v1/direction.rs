//! One enum per direction: what a core may send, and what an agent may send.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::messages::{
    AgentError, AgentGoodbye, AgentNotice, CancelAck, CoreError, CoreGoodbye, Heartbeat, Hello,
    InvokeResult, InvokeStream, Ping, Pong, QuestionAnswer, QuestionAsk, StepKept, StepLocal,
    ToolCall, ToolCancel, ToolInvoke, ToolInvokeCancel, ToolResult, ToolStream, ToolsRegister,
    ToolsRegistered, ToolsUnregister, ToolsUnregistered, WelcomeReply,
};
use super::read::{ReadError, read_object};

/// All messages that one end may send.
pub trait EndMessage: Readable {
    /// The types of all messages of this direction.
    const TYPES: &'static [&'static str];
    /// How the types of the other direction begin.
    const FOREIGN_PREFIX: &'static str;

    /// The message's type as the wire has it.
    fn type_name(&self) -> &'static str;
}

/// The half of [`EndMessage`] that only this module needs; being private, it also keeps the list of
/// directions closed.
pub trait Readable: Sized {
    /// Reads the payload of a type, if this direction has such a type.
    fn read(type_name: &str, payload: &str, has_error: bool) -> Option<Result<Self, ReadError>>;

    /// Writes the payload.
    fn write<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error>;
}

/// How one payload is read. Only the welcome depends on whether the envelope has an error.
trait Payload: Sized {
    fn read_payload(payload: &str, has_error: bool) -> Result<Self, ReadError>;
}

impl<T: DeserializeOwned> Payload for T {
    fn read_payload(payload: &str, _has_error: bool) -> Result<Self, ReadError> {
        read_object(payload)
    }
}

impl Payload for WelcomeReply {
    fn read_payload(payload: &str, has_error: bool) -> Result<Self, ReadError> {
        if has_error { Ok(Self::Refused) } else { read_object(payload).map(Self::Accepted) }
    }
}

macro_rules! direction {
    ($(#[$doc:meta])* $name:ident, other end $foreign:literal, {
        $($(#[$vdoc:meta])* $variant:ident($payload:ty) = $type:literal),+ $(,)?
    }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub enum $name {
            $($(#[$vdoc])* $variant($payload)),+
        }

        impl EndMessage for $name {
            const TYPES: &'static [&'static str] = &[$($type),+];
            const FOREIGN_PREFIX: &'static str = $foreign;

            fn type_name(&self) -> &'static str {
                match self { $(Self::$variant(_) => $type),+ }
            }
        }

        impl Readable for $name {
            fn read(
                type_name: &str,
                payload: &str,
                has_error: bool,
            ) -> Option<Result<Self, ReadError>> {
                Some(match type_name {
                    $($type => Payload::read_payload(payload, has_error).map(Self::$variant),)+
                    _ => return None,
                })
            }

            fn write<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self { $(Self::$variant(payload) => payload.serialize(serializer)),+ }
            }
        }

        $(impl From<$payload> for $name {
            fn from(payload: $payload) -> Self {
                Self::$variant(payload)
            }
        })+
    };
}

direction! {
    /// What a core may send.
    CoreMessage, other end "agent.", {
        /// The answer to a hello.
        Welcome(WelcomeReply) = "core.welcome",
        /// The core is about to close the connection.
        Goodbye(CoreGoodbye) = "core.goodbye",
        /// Which tools were taken.
        ToolsRegistered(ToolsRegistered) = "core.tools.registered",
        /// Which tools were removed.
        ToolsUnregistered(ToolsUnregistered) = "core.tools.unregistered",
        /// Execute a tool.
        ToolCall(ToolCall) = "core.tool.call",
        /// Stop executing a tool.
        ToolCancel(ToolCancel) = "core.tool.cancel",
        /// Show that you are there.
        Ping(Ping) = "core.ping",
        /// Something the agent sent was wrong.
        Error(CoreError) = "core.error",
        /// Progress of a call that the agent made.
        InvokeStream(InvokeStream) = "core.tool.invoke_stream",
        /// The end of a call that the agent made.
        InvokeResult(InvokeResult) = "core.tool.invoke_result",
        /// The answer to a question that the agent asked.
        QuestionAnswer(QuestionAnswer) = "core.question.answer",
        /// What is kept of a call's local code.
        StepKept(StepKept) = "core.step.kept",
    }
}

direction! {
    /// What an agent may send.
    AgentMessage, other end "core.", {
        /// The first message of a connection.
        Hello(Hello) = "agent.hello",
        /// The agent is about to end.
        Goodbye(AgentGoodbye) = "agent.goodbye",
        /// The tools the agent offers.
        ToolsRegister(ToolsRegister) = "agent.tools.register",
        /// Tools the agent no longer offers.
        ToolsUnregister(ToolsUnregister) = "agent.tools.unregister",
        /// A piece of a call's output.
        ToolStream(ToolStream) = "agent.tool.stream",
        /// The end of a call.
        ToolResult(ToolResult) = "agent.tool.result",
        /// The cancel was received.
        CancelAck(CancelAck) = "agent.tool.cancel_ack",
        /// The agent is alive.
        Heartbeat(Heartbeat) = "agent.heartbeat",
        /// The answer to a ping.
        Pong(Pong) = "agent.pong",
        /// Something the core sent was wrong.
        Error(AgentError) = "agent.error",
        /// Call a tool through the core.
        ToolInvoke(ToolInvoke) = "agent.tool.invoke",
        /// Stop a call that the agent made.
        ToolInvokeCancel(ToolInvokeCancel) = "agent.tool.invoke_cancel",
        /// Ask a person or a seat for information.
        QuestionAsk(QuestionAsk) = "agent.question.ask",
        /// Keep what a call's local code gave.
        StepLocal(StepLocal) = "agent.step.local",
        /// Tell something, without an answer.
        Notice(AgentNotice) = "agent.notice",
    }
}
