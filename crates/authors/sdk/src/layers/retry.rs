//! Calls that are made again when they fail.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use wharf_vocab::Fault;

use crate::{Data, Layer, Next};

/// Makes a call again when it fails in a way that may pass, and waits longer each time.
///
/// It makes up to three attempts. It waits about 100 ms before the second, twice as long before
/// each further one, at most ten seconds, and each time a little less by chance, so that those
/// who failed together do not come back together. Faults that are not retryable are given back at
/// once. Whether a failed attempt acted on the world is a fact of the fault (`executed`): use
/// [`when`](Self::when) for tools that must not act twice.
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use wharf_sdk::layers::Retry;
/// use wharf_sdk::{Code, Fault, Lane, Scope, Tool};
///
/// const FLAKY: Tool<(), u32> = Tool::new("flaky", "Works the second time.");
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let scope = Scope::root();
/// let calls = AtomicU32::new(0);
/// scope.provide(&FLAKY, move |_, _cx| {
///     let call = calls.fetch_add(1, Ordering::Relaxed);
///     async move {
///         match call {
///             0 => Err(Fault::new(Code::ToolBusy, "Not now.")),
///             _ => Ok(call),
///         }
///     }
/// })?;
/// scope.layer(Lane::Outer, &FLAKY, Retry::new());
/// assert_eq!(FLAKY.call(&scope, ()).await?, 1);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Retry {
    attempts: u32,
    first: Duration,
    longest: Duration,
    when: Arc<dyn Fn(&Fault) -> bool + Send + Sync>,
}

impl Default for Retry {
    fn default() -> Self {
        Self::new()
    }
}

impl Retry {
    /// Up to three attempts, when a fault is retryable.
    #[must_use]
    pub fn new() -> Self {
        Self {
            attempts: 3,
            first: Duration::from_millis(100),
            longest: Duration::from_secs(10),
            when: Arc::new(|fault| fault.retryable),
        }
    }

    /// So many attempts in all; there is always one.
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts.max(1);
        self
    }

    /// How long to wait before the second attempt, and at most before any.
    #[must_use]
    pub fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        self.first = first;
        self.longest = longest;
        self
    }

    /// Which faults are worth another attempt.
    #[must_use]
    pub fn when(mut self, when: impl Fn(&Fault) -> bool + Send + Sync + 'static) -> Self {
        self.when = Arc::new(when);
        self
    }

    /// How long to wait after so many attempts: half of it is certain, half is chance.
    fn pause(&self, attempts: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(attempts.saturating_sub(1));
        let whole = self.first.saturating_mul(doubled).min(self.longest);
        // Hashers are seeded by chance, which is enough to scatter callers.
        let chance = RandomState::new().hash_one(attempts) % 1_000;
        whole / 2 + (whole / 2).mul_f64(chance as f64 / 1_000.0)
    }
}

impl<I: Data + Clone, O: Data, P: Data> Layer<I, O, P> for Retry {
    fn call(&self, input: I, next: Next<I, O, P>) -> BoxFuture<'static, Result<O, Fault>> {
        let retry = self.clone();
        Box::pin(async move {
            for attempt in 1..retry.attempts {
                match next.run(input.clone()).await {
                    Err(fault) if (retry.when)(&fault) => {
                        tokio::time::sleep(retry.pause(attempt)).await;
                    }
                    ended => return ended,
                }
            }
            next.run(input).await
        })
    }
}

debug_only!(Retry: attempts);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k013_pauses_double_up_to_the_longest_and_vary_by_half() {
        let retry = Retry::new().backoff(Duration::from_millis(100), Duration::from_secs(1));
        for (attempts, whole) in [(1, 100), (2, 200), (3, 400), (4, 800), (5, 1_000), (99, 1_000)] {
            for _ in 0..50 {
                let pause = retry.pause(attempts);
                assert!(pause >= Duration::from_millis(whole / 2), "{attempts}: {pause:?}");
                assert!(pause <= Duration::from_millis(whole), "{attempts}: {pause:?}");
            }
        }
        let pauses: Vec<_> = (0..50).map(|_| retry.pause(1)).collect();
        assert!(pauses.iter().any(|pause| *pause != pauses[0]), "all pauses are the same");
    }
}
