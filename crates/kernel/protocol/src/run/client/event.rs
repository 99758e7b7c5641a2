//! What a session tells its owner.

use std::collections::BTreeMap;
use std::fmt;

use wharf_vocab::{Micro, Object};
use wharf_wire::run_v1::{LogLevel, Phase, Written};

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
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

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Closed {
    /// The server closed it and said why.
    With {
        /// The code.
        code: u16,
        /// The server's words.
        reason: String,
    },
    /// It broke.
    Broken(String),
    /// The server did not answer the request.
    NoAck,
    /// The server gave no sign of life.
    Silent,
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::With { code, reason } if reason.is_empty() => {
                write!(f, "it closed the connection with code {code} and without a result")
            }
            Self::With { code, reason } => {
                write!(f, "it closed the connection with code {code} ({reason})")
            }
            Self::Broken(how) => write!(f, "the connection broke ({how})"),
            Self::NoAck => f.write_str("it did not acknowledge the request in time"),
            Self::Silent => f.write_str("it gave no sign of life any more"),
        }
    }
}

/// Something to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outgoing {
    /// A message.
    Text(String),
    /// A ping.
    Ping,
    /// A close, after which the connection is dropped.
    Close {
        /// The code.
        code: u16,
    },
}
