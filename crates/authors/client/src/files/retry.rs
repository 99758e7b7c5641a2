//! Tries again what failed because the core or its store was away for a moment.

use std::time::Duration;

use wharf_vocab::Code;

use super::{Progress, Transfer};
use crate::client::Client;
use crate::error::{Error, Result};

const PAUSE: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(8);
/// Pauses between tries add up to somewhat more than half a minute.
const TRIES_MAX: u32 = 8;

/// Counts how often something was tried. A core that never answered is not waited for.
#[derive(Debug)]
pub(super) struct RetryCounter {
    client: Client,
    heard: bool,
    failed: u32,
}

impl RetryCounter {
    /// Nothing has failed yet.
    pub(super) fn new(client: Client) -> Self {
        Self { client, heard: false, failed: 0 }
    }

    /// The core to ask.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Something worked, so the next failure counts as the first.
    pub(super) fn worked(&mut self) {
        self.heard = true;
        self.failed = 0;
    }

    /// Asks until it works, or there is no use in asking again.
    pub(super) async fn until_done<T>(
        &mut self,
        progress: &Progress,
        mut ask: impl AsyncFnMut(&Client) -> Result<T>,
    ) -> Result<T> {
        loop {
            match ask(&self.client).await {
                Ok(done) => {
                    self.worked();
                    return Ok(done);
                }
                Err(error) => self.after(error, progress).await?,
            }
        }
    }

    /// Waits before the next try; gives the error back if there is no use in one.
    pub(super) async fn after(&mut self, error: Error, progress: &Progress) -> Result<()> {
        let passing = error.is_outage()
            || error.is(Code::StorageUnavailable)
            || error.is(Code::RequestTimeout);
        self.heard |= error.may_have_executed() || !error.is(Code::CoreUnreachable);
        self.failed += 1;
        if !passing || !self.heard || self.failed >= TRIES_MAX {
            return Err(error);
        }
        if self.failed == 1 {
            progress.tell(Transfer::Retrying(&error));
        }
        tokio::time::sleep(pause(self.failed)).await;
        // A core that came back may have another port, and one that did not is asked as before.
        if let Ok(client) = self.client.found_again() {
            self.client = client;
        }
        Ok(())
    }
}

fn pause(failed: u32) -> Duration {
    PAUSE.saturating_mul(1 << failed.saturating_sub(1).min(8)).min(PAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_stay_bearable() {
        let pauses: Vec<_> = (1..=7).map(|failed| pause(failed).as_millis()).collect();
        assert_eq!(pauses, [500, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000]);
    }
}
