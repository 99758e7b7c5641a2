//! Between a client on standard streams and the MCP endpoint of a core.
//!
//! Lines of the client go in, HTTP requests come out; what the core answers goes in, lines come
//! out. The bridge keeps what the client waits for while the core is away: a legacy stream goes on
//! after the last event that arrived, a call is repeated under a key that makes the core join the
//! run that it started, and everything else is asked again. After [`McpBridgeConfig::away_ms`] the
//! client gets an error.
//!
//! What the bridge does not do: it moves no bytes, looks at no clock, and knows no token. A request
//! that was taken from the client is answered exactly once, unless the client canceled it or left.

mod calls;
mod client;
mod end;
mod exchange;
mod replies;
mod session;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use wharf_wire::mcp_v1::headers::McpMirror;
use wharf_wire::mcp_v1::{McpError, McpId, McpMessage, code};

use exchange::{Exchange, ExchangeKind, ExchangeState};
use session::BridgeSession;

/// Requests of a client that may be open at once.
const OPEN_MAX: usize = 256;
/// Bytes of open requests that are kept to be repeated.
const HELD_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Lines that may wait for the client before nothing more is read from it.
const LINES_MAX: usize = 64;
/// Questions of the core, and calls that wait for an answer of the client, that are remembered.
pub(super) const REMEMBERED_MAX: usize = 256;

/// What a bridge is told when it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpBridgeConfig {
    /// A text of letters, digits and `-` that no other bridge has: keys and ids of the runs that
    /// it starts begin with it.
    pub name: String,
    /// How long a core may be away before the client gets an error.
    pub away_ms: u64,
    /// Whether what the client started goes on when the client leaves.
    pub detach: bool,
}

/// Something for whoever speaks HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpBridgeOut {
    /// Make this request. All that comes of it is told under the number of the exchange.
    Send {
        /// The number.
        exchange: u64,
        /// The request.
        request: McpBridgeRequest,
    },
    /// Close the connection of this exchange; nothing more of it counts.
    Close {
        /// The number.
        exchange: u64,
    },
}

/// A request to the core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpBridgeRequest {
    /// A message to the endpoint.
    Post {
        /// Headers, beside those that every message has.
        headers: Vec<(String, String)>,
        /// The message.
        body: String,
    },
    /// A stream of the endpoint.
    Get {
        /// Headers, beside those that every stream has.
        headers: Vec<(String, String)>,
    },
    /// The session is over.
    Delete {
        /// The headers.
        headers: Vec<(String, String)>,
    },
    /// Cancel this run through the core's own API.
    CancelRun {
        /// The run.
        run_id: String,
    },
}

/// How the body of an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpBridgeBody {
    /// As one JSON text.
    Json,
    /// As server-sent events.
    Events,
    /// In another way, or not at all.
    Other,
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpBridgeNews {
    /// The head of the answer.
    Head {
        /// The status.
        status: u16,
        /// How the body is written.
        body: McpBridgeBody,
        /// The session that the core gave.
        session: Option<String>,
        /// When the core wants to be asked again.
        retry_after_ms: Option<u64>,
    },
    /// A piece of the body.
    Bytes(Vec<u8>),
    /// The body is whole.
    End,
    /// The connection broke. The core may have got the request.
    Broke,
    /// The core was not reached; why, in one sentence.
    Unreached(String),
}

/// One client and one core.
#[derive(Debug)]
pub struct McpBridge {
    config: McpBridgeConfig,
    session: BridgeSession,
    exchanges: BTreeMap<u64, Exchange>,
    next_exchange: u64,
    next_call: u64,
    /// The exchange of each request that the client waits for.
    open: BTreeMap<McpId, u64>,
    held_bytes: usize,
    /// What legacy clients say that waits for its turn.
    queue: VecDeque<u64>,
    /// The exchange that everything legacy waits for.
    barrier: Option<u64>,
    /// Questions that the client has got and not answered.
    asked: BTreeSet<McpId>,
    /// Runs that wait for the client to repeat its request, by what it repeats it with.
    suspended: BTreeMap<String, String>,
    /// Headers that tools want, as far as lists have told.
    mirrors: BTreeMap<String, Vec<McpMirror>>,
    lines: VecDeque<String>,
    outs: VecDeque<McpBridgeOut>,
    /// When an end that has begun must be over.
    ends_at: Option<u64>,
    ended: bool,
}

impl McpBridge {
    /// A bridge on which nothing has happened.
    #[must_use]
    pub fn new(config: McpBridgeConfig) -> Self {
        Self {
            config,
            session: BridgeSession::default(),
            exchanges: BTreeMap::new(),
            next_exchange: 0,
            next_call: 0,
            open: BTreeMap::new(),
            held_bytes: 0,
            queue: VecDeque::new(),
            barrier: None,
            asked: BTreeSet::new(),
            suspended: BTreeMap::new(),
            mirrors: BTreeMap::new(),
            lines: VecDeque::new(),
            outs: VecDeque::new(),
            ends_at: None,
            ended: false,
        }
    }

    /// The next line for the client, without its end.
    pub fn poll_line(&mut self) -> Option<String> {
        self.lines.pop_front()
    }

    /// The next thing to do for whoever speaks HTTP.
    pub fn poll_out(&mut self) -> Option<McpBridgeOut> {
        self.outs.pop_front()
    }

    /// When [`McpBridge::tick`] is due.
    #[must_use]
    pub fn deadline(&self) -> Option<u64> {
        let away_ms = self.config.away_ms;
        let of = |exchange: &Exchange| {
            let due = match exchange.state {
                ExchangeState::Due(at) => Some(at),
                _ => None,
            };
            let gives_up = exchange.gives_up_at(away_ms);
            due.into_iter().chain(gives_up).min()
        };
        self.exchanges.values().filter_map(of).chain(self.ends_at.filter(|_| !self.ended)).min()
    }

    /// Whether the owner should go on reading the client's lines.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        self.ends_at.is_none() && self.lines.len() < LINES_MAX
    }

    /// Whether the bridge is of no use any more, but for what still waits to be written or closed.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.ended
    }

    /// Requests that wait for the core at this moment.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.open.len()
    }

    /// Does what is due.
    pub fn tick(&mut self, now_ms: u64) {
        let away_ms = self.config.away_ms;
        let numbers: Vec<u64> = self.exchanges.keys().copied().collect();
        for number in numbers {
            let Some(exchange) = self.exchanges.get(&number) else { continue };
            if exchange.gives_up_at(away_ms).is_some_and(|at| at <= now_ms) {
                self.give_up(number);
            } else if let ExchangeState::Due(at) = exchange.state
                && at <= now_ms
            {
                self.send(number);
            }
        }
        self.pump();
        if self.ends_at.is_some_and(|at| at <= now_ms) {
            self.finish();
        }
    }

    /// Takes an exchange out of the book. Whoever speaks HTTP is told if it may still be at it.
    fn forget(&mut self, number: u64) -> Option<Exchange> {
        let exchange = self.exchanges.remove(&number)?;
        if exchange.state == ExchangeState::Sent {
            self.outs.push_back(McpBridgeOut::Close { exchange: number });
        }
        if let ExchangeKind::Request(request) = &exchange.kind {
            self.open.remove(&request.id);
        }
        self.held_bytes = self.held_bytes.saturating_sub(exchange.body.len());
        self.queue.retain(|queued| *queued != number);
        if self.barrier == Some(number) {
            self.barrier = None;
        }
        Some(exchange)
    }

    fn tell(&mut self, message: &McpMessage) {
        self.lines.push_back(message.write());
    }

    fn refuse(&mut self, id: Option<McpId>, error: McpError) {
        self.tell(&McpMessage::Error { id, error });
    }
}

/// What a client is told when the core does not answer.
fn away(why: Option<&str>) -> McpError {
    let default = "The Wharf core does not answer; start it with: wharf up";
    let message = match why {
        Some(why) if why.contains("wharf up") => why.to_owned(),
        Some(why) => format!("{why}; start it with: wharf up"),
        None => default.to_owned(),
    };
    let data = serde_json::json!({"code": wharf_vocab::Code::CoreUnreachable.as_str()});
    McpError { data: Some(data), ..McpError::new(code::INTERNAL, message) }
}
