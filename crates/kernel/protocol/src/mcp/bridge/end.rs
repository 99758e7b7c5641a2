//! The client leaves.

use super::exchange::{ExchangeKind, ExchangeState};
use super::{McpBridge, McpBridgeOut};

/// How long what is left to do may take.
const END_MS: u64 = 3_000;

impl McpBridge {
    /// Nothing more comes from the client. What it started is canceled, unless it is to go on;
    /// what only wants to know something may still be answered.
    pub fn end(&mut self, now_ms: u64) {
        if self.ends_at.is_some() {
            return;
        }
        self.ends_at = Some(now_ms.saturating_add(END_MS));
        self.stop_listening();
        for number in self.exchanges.keys().copied().collect::<Vec<_>>() {
            let Some(exchange) = self.exchanges.get(&number) else { continue };
            let ExchangeKind::Request(request) = &exchange.kind else { continue };
            let goes_on = self.config.detach || request.goes_on;
            match request.is_call() {
                true if goes_on && exchange.state == ExchangeState::Sent => {
                    self.forget(number);
                }
                true => self.cancel(number, Some("The client has left.".to_owned())),
                false if request.is_listen() => {
                    self.forget(number);
                }
                false => {}
            }
        }
        if !self.config.detach {
            for run in std::mem::take(&mut self.suspended).into_values() {
                self.cancel_run(run);
            }
        }
        self.pump();
    }

    /// Ends what has nothing left to do.
    pub(super) fn part(&mut self) {
        if self.ends_at.is_none() || self.ended || !self.exchanges.is_empty() {
            return;
        }
        if !self.say_goodbye() {
            self.ended = true;
        }
    }

    /// Ends whatever is left to do.
    pub(super) fn finish(&mut self) {
        for (exchange, left) in std::mem::take(&mut self.exchanges) {
            if left.state == ExchangeState::Sent {
                self.outs.push_back(McpBridgeOut::Close { exchange });
            }
        }
        self.open.clear();
        self.queue.clear();
        self.barrier = None;
        self.ended = true;
    }
}
