//! What a call has cost so far, also one that nobody waits for any more.

use wharf_engine::AttemptRef;
use wharf_vocab::Micro;

use crate::answer::{PartialAnswer, TokenUsage};
use crate::prices::Price;

/// Counts what a call costs from the moment that its request may have arrived. When the call is
/// dropped before it has ended, because it was canceled or took too long, what it has cost until
/// then is reported all the same.
pub(crate) struct Meter {
    attempt: AttemptRef,
    price: Option<Price>,
    input_bytes: u64,
    cost_micro: Micro,
    is_over: bool,
}

impl Meter {
    pub(crate) fn new(attempt: AttemptRef, price: Option<Price>, input_bytes: u64) -> Self {
        Self { attempt, price, input_bytes, cost_micro: 0, is_over: false }
    }

    /// The request may have arrived.
    pub(crate) fn sent(&mut self) {
        self.count(TokenUsage::estimated(self.input_bytes, 0));
    }

    /// The request provably came to nothing.
    pub(crate) fn unsent(&mut self) {
        self.cost_micro = 0;
    }

    /// More of the answer has come.
    pub(crate) fn heard(&mut self, answer: &PartialAnswer) {
        self.count(self.usage(answer));
    }

    /// What was used: as the provider counts it, or about so much. A provider that has counted the
    /// input only is believed in that.
    pub(crate) fn usage(&self, answer: &PartialAnswer) -> TokenUsage {
        let estimate = TokenUsage::estimated(self.input_bytes, answer.bytes());
        match answer.usage {
            Some(counted) if answer.finish_reason.is_some() => counted,
            Some(counted) => {
                let output = counted.output_tokens.max(estimate.output_tokens);
                let total_tokens = counted.input_tokens.saturating_add(output);
                let estimated = output > counted.output_tokens;
                TokenUsage { output_tokens: output, total_tokens, estimated, ..counted }
            }
            None => estimate,
        }
    }

    /// Nothing more comes; what it has cost.
    pub(crate) fn end(&mut self) -> Micro {
        self.is_over = true;
        self.cost_micro
    }

    fn count(&mut self, usage: TokenUsage) {
        if let Some(price) = &self.price {
            self.cost_micro = price.of(&usage);
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if self.is_over || self.cost_micro == 0 {
            return;
        }
        let (attempt, cost) = (self.attempt.clone(), self.cost_micro);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            // When the engine is gone there is nobody left to tell.
            let _ = attempt.report_cost(cost).await;
        });
    }
}
