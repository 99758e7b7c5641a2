//! What a session tells its owner.

use std::collections::BTreeMap;

use wharf_vocab::{Micro, Object};
use wharf_wire::run_v1::{LogLevel, Phase, StepMessage, Written};

use crate::Closed;

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum RunClientEvent {
    /// The server knows the attempt; comes once for each connection.
    Accepted {
        /// Whether the server said so; if not, its first message counts as saying it.
        acked: bool,
    },
    /// A line for people.
    Log {
        /// How grave it is.
        level: LogLevel,
        /// The line.
        text: String,
    },
    /// How far it is. Signs of life that say nothing else do not come here.
    Phase {
        /// The phase.
        phase: Phase,
        /// From 0 to 1.
        progress: Option<f64>,
    },
    /// Partial outputs, each as a whole.
    Partial(Object),
    /// A piece of text that follows on those before it.
    Text(String),
    /// The attempt's code asks for a step; [`RunClient::answer_step`](super::RunClient::answer_step)
    /// answers. The server asks again on each connection for as long as it has no answer.
    Step(Box<StepMessage>),
    /// What the attempt has cost so far, in micro-dollars; only ever more than before.
    Cost(Micro),
    /// Messages that the server has sent and nobody has got.
    Gap {
        /// The first.
        from: u64,
        /// The last.
        to: u64,
    },
    /// The session has given up a connection; the attempt goes on.
    Dropped(Closed),
    /// The attempt is over. Comes once and last.
    Ended(Ended),
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    /// Well.
    Succeeded {
        /// The outputs, with places in the stead of what was written.
        outputs: Object,
        /// What was written, by output.
        written: BTreeMap<String, Written>,
        /// Micro-dollars.
        cost_micro: Micro,
    },
    /// The server says that it failed.
    Failed {
        /// The server's code.
        code: String,
        /// The server's words.
        message: String,
        /// Micro-dollars.
        cost_micro: Micro,
    },
    /// The server answered in a way it may not.
    Broken {
        /// One of the protocol's codes, such as `ERR_PROTOCOL`.
        code: &'static str,
        /// What is wrong, in one sentence.
        message: String,
    },
    /// The server would not have the request.
    Refused {
        /// The code it closed the connection with.
        close: u16,
        /// Its words.
        reason: String,
        /// Whether it may have begun with the attempt before.
        begun: bool,
    },
    /// The server is gone, and what became of the attempt is not known.
    Lost {
        /// Why.
        cause: String,
        /// Whether a request may have reached the server.
        asked: bool,
    },
}
