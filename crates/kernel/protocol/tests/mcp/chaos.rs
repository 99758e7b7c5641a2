//! Both ends on a wire that loses, doubles and swaps what it carries: whatever happens, everything
//! that was begun ends once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::json;
use wharf_protocol::mcp::{
    McpCallOptions, McpClientEvent, McpClientSession, McpDoor, McpServerEvent, McpServerSession,
    McpStart,
};
use wharf_protocol::{Closed, Incoming, Moment, Outgoing, Session as _};
use wharf_wire::mcp_v1::{McpError, McpId, McpRequest};

use crate::stage::{at, call_tool, client, object, request, server};

const SEEDS: u64 = 400;
const STEPS: usize = 300;

struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % below.max(1) as u64).expect("small")
    }

    fn pick<T: Clone>(&mut self, of: impl ExactSizeIterator<Item = T>) -> Option<T> {
        let mut of = of;
        let at = self.roll(of.len());
        of.nth(at)
    }
}

struct Chaos {
    dice: Dice,
    now: Moment,
    client: McpClientSession,
    server: McpServerSession,
    to_server: VecDeque<String>,
    to_client: VecDeque<String>,
    /// What was begun, and how often it ended.
    calls: BTreeMap<McpId, u32>,
    asks: BTreeMap<McpId, u32>,
    served: BTreeSet<McpId>,
    asked: BTreeSet<McpId>,
    ready: bool,
}

impl Chaos {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let start = [McpStart::Probe, McpStart::Legacy, McpStart::Modern][dice.roll(3)];
        Self {
            dice,
            now: at(0),
            client: client(at(0), start),
            server: server(McpDoor::Both),
            to_server: VecDeque::new(),
            to_client: VecDeque::new(),
            calls: BTreeMap::new(),
            asks: BTreeMap::new(),
            served: BTreeSet::new(),
            asked: BTreeSet::new(),
            ready: false,
        }
    }

    fn step(&mut self) {
        match self.dice.roll(12) {
            0 | 1 => self.call(),
            2 => {
                if let Some(id) =
                    self.dice.pick(self.calls.keys().cloned().collect::<Vec<_>>().into_iter())
                {
                    self.client.cancel(&id, "chaos");
                }
            }
            3 | 4 => self.serve(),
            5 => self.ask(),
            6 => {
                if let Some(id) = self.dice.pick(self.asked.clone().into_iter()) {
                    assert!(self.client.answer(&id, Ok(object(&json!({"action": "decline"})))));
                    self.asked.remove(&id);
                }
            }
            7 => {
                self.now = at(self.now.ms + self.dice.roll(3_000) as u64);
                self.client.tick(self.now);
                self.server.tick(self.now);
            }
            _ => self.carry(),
        }
        self.collect();
    }

    fn call(&mut self) {
        let options = McpCallOptions {
            timeout_ms: (self.dice.roll(2) == 0).then_some(2_000),
            progress: true,
        };
        if let Ok(id) = self.client.call(self.now, &call_tool("lift"), options) {
            assert_eq!(self.calls.insert(id, 0), None, "ids are new");
        }
    }

    fn serve(&mut self) {
        let Some(id) = self.dice.pick(self.served.clone().into_iter()) else { return };
        let step = self.dice.roll(100) as u64;
        self.server.progress(&id, step.into(), None, None);
        if self.dice.roll(2) == 0 {
            self.served.remove(&id);
            let answer = match self.dice.roll(2) {
                0 => Ok(object(&json!({"content": []}))),
                _ => Err(McpError::params("?")),
            };
            assert!(self.server.answer(&id, answer));
        }
    }

    fn ask(&mut self) {
        let id = McpId::Text(format!("ask-{}", self.asks.len()));
        let elicit = request("elicitation/create", &json!({"message": "?"}));
        let options = McpCallOptions { timeout_ms: Some(4_000), progress: false };
        if self.server.ask(self.now, id.clone(), None, &elicit, options).is_ok() {
            self.asks.insert(id, 0);
        } else if let Some(id) =
            self.dice.pick(self.asks.keys().cloned().collect::<Vec<_>>().into_iter())
        {
            self.server.take_back(&id, "chaos");
        }
    }

    /// Carries one message, or loses, doubles or delays it. Until both are ready all arrives, in
    /// order: a handshake that is lost is no handshake.
    fn carry(&mut self) {
        let harm = if self.ready { self.dice.roll(12) } else { 11 };
        let to_server = self.dice.roll(2) == 0;
        let queue = if to_server { &mut self.to_server } else { &mut self.to_client };
        let Some(message) = queue.pop_front() else { return };
        match harm {
            0 => return,
            1 => queue.push_back(message.clone()),
            2 => return queue.push_back(message),
            _ => {}
        }
        match to_server {
            true => self.server.receive(self.now, Incoming::Text(&message)),
            false => self.client.receive(self.now, Incoming::Text(&message)),
        }
    }

    fn collect(&mut self) {
        while let Some(Outgoing::Text(text)) = self.client.poll_send() {
            self.to_server.push_back(text);
        }
        while let Some(Outgoing::Text(text)) = self.server.poll_send() {
            self.to_client.push_back(text);
        }
        while let Some(event) = self.client.poll_event() {
            match event {
                McpClientEvent::Ready(_) => self.ready = true,
                McpClientEvent::Answered { id, .. } => *self.calls.get_mut(&id).expect("made") += 1,
                McpClientEvent::Progress { id, .. } => {
                    assert_eq!(self.calls[&id], 0, "{id} is over")
                }
                McpClientEvent::Asked { id, .. } => assert!(self.asked.insert(id)),
                McpClientEvent::AskCanceled { id, .. } => assert!(self.asked.remove(&id)),
                _ => {}
            }
        }
        while let Some(event) = self.server.poll_event() {
            match event {
                McpServerEvent::Request { id, request, .. } => self.begin(id, &request),
                McpServerEvent::Canceled { id, .. } => assert!(self.served.remove(&id)),
                McpServerEvent::Answered { id, .. } => *self.asks.get_mut(&id).expect("asked") += 1,
                _ => {}
            }
        }
    }

    fn begin(&mut self, id: McpId, request: &McpRequest) {
        let info = json!({"name": "s", "version": "1"});
        let answer = match request {
            McpRequest::Initialize(_) => json!({"capabilities": {}, "serverInfo": info}),
            McpRequest::Discover(_) => {
                json!({"supportedVersions": ["2026-07-28"], "capabilities": {}})
            }
            _ => {
                assert!(self.served.insert(id));
                return;
            }
        };
        assert!(self.server.answer(&id, Ok(object(&answer))));
    }

    fn finish(mut self) -> usize {
        self.client.end(self.now, Closed::ended());
        self.server.end(self.now, Closed::ended());
        self.collect();
        assert!(self.served.is_empty() && self.asked.is_empty(), "all is told to be over");
        for (id, times) in self.calls.iter().chain(&self.asks) {
            assert_eq!(*times, 1, "{id} ended {times} times");
        }
        assert_eq!(self.client.calls_waiting() + self.server.asks_waiting(), 0);
        self.calls.len() + self.asks.len()
    }
}

#[test]
fn m084_whatever_the_wire_does_everything_ends_once() {
    let mut ended = 0;
    for seed in 0..SEEDS {
        let mut chaos = Chaos::new(seed);
        for _ in 0..STEPS {
            chaos.step();
        }
        ended += chaos.finish();
    }
    assert!(ended > 10_000, "only {ended} were tried");
}
