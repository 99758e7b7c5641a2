//! Tries again what failed because the core or its store was away for a moment.

use std::time::Duration;

use wharf_vocab::Code;

use super::meter::Meter;
use crate::client::Client;
use crate::failure::{Failure, Result};
use crate::plain;

const PAUSE: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(8);
/// Pauses between tries add up to somewhat more than half a minute.
const TRIES_MAX: u32 = 8;

/// How often something is tried. A core that was never heard of is not waited for.
#[derive(Debug)]
pub(crate) struct Patience {
    client: Client,
    heard: bool,
    failed: u32,
}

impl Patience {
    /// Nothing has failed yet.
    pub(crate) fn new(client: Client) -> Self {
        Self { client, heard: false, failed: 0 }
    }

    /// The core to ask.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Something worked, so that the next trouble is a new one.
    pub(crate) fn worked(&mut self) {
        self.heard = true;
        self.failed = 0;
    }

    /// Waits before the next try; gives the failure back if there is no use in one.
    pub(crate) async fn after(&mut self, failure: Failure, meter: &Meter) -> Result<()> {
        let passing = failure.is_outage()
            || failure.is(Code::StorageUnavailable)
            || failure.is(Code::RequestTimeout);
        self.heard |= failure.may_have_executed() || !failure.is(Code::CoreUnreachable);
        self.failed += 1;
        if !passing || !self.heard || self.failed >= TRIES_MAX {
            return Err(failure);
        }
        if self.failed == 1 {
            let text = plain::line(failure.message());
            meter.note(&format!("{}; trying again", text.trim_end_matches('.')));
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
