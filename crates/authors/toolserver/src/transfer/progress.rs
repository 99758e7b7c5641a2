//! Telling how far large transfers are.

use std::time::Duration;

use futures::FutureExt as _;
use parking_lot::Mutex;
use tokio::time::Instant;
use wharf_wire::run_v1::LogLevel;

use super::trouble::Subject;
use crate::{Report, Reporter};

/// What is so small that nobody waits for it.
const SMALL_BYTES: u64 = 8 * 1024 * 1024;
/// How often something is said at most.
const PERIOD: Duration = Duration::from_secs(1);

/// How far one transfer is.
#[derive(Debug)]
pub(super) struct TransferProgress {
    subject: Subject,
    report: Reporter,
    state: Mutex<LastReport>,
}

#[derive(Debug)]
struct LastReport {
    bytes: u64,
    said_at: Instant,
}

impl TransferProgress {
    /// A transfer that begins now.
    pub(super) fn new(subject: Subject, report: Reporter) -> Self {
        let state = LastReport { bytes: 0, said_at: Instant::now() };
        Self { subject, report, state: Mutex::new(state) }
    }

    /// So many bytes more have moved, of this many if that is known. Says so now and then; when
    /// the log is behind it is left out, so that a transfer never waits for it.
    pub(super) fn moved(&self, bytes: usize, total: Option<u64>) {
        let mut state = self.state.lock();
        state.bytes += bytes as u64;
        if state.bytes.max(total.unwrap_or(0)) <= SMALL_BYTES || state.said_at.elapsed() < PERIOD {
            return;
        }
        state.said_at = Instant::now();
        let text = self.subject.progress(state.bytes, total);
        let _ =
            self.report.say(Report::Log { level: LogLevel::Info, text, at: None }).now_or_never();
    }

    /// It begins anew.
    pub(super) fn restart(&self) {
        self.state.lock().bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn t029_large_transfers_report_once_a_second_and_never_wait() {
        let (sender, mut reports) = mpsc::channel(2);
        let progress = TransferProgress::new(Subject::input("video"), Reporter::new(sender));
        let mebibyte = 1024 * 1024;
        for _ in 0..16 {
            progress.moved(mebibyte, Some(64 << 20));
        }
        assert!(reports.try_recv().is_err(), "not within the first second");
        for _ in 0..3 {
            tokio::time::advance(PERIOD).await;
            progress.moved(mebibyte, Some(64 << 20));
            progress.moved(mebibyte, Some(64 << 20));
        }
        let mut said = Vec::new();
        while let Ok(Report::Log { text, .. }) = reports.try_recv() {
            said.push(text);
        }
        let expected = ["Fetching \"video\": 17 of 64 MiB.", "Fetching \"video\": 19 of 64 MiB."];
        assert_eq!(said, expected, "the third found the queue full");
    }

    #[tokio::test(start_paused = true)]
    async fn t029_small_transfers_say_nothing() {
        let (sender, mut reports) = mpsc::channel(2);
        let progress = TransferProgress::new(Subject::output("text"), Reporter::new(sender));
        tokio::time::advance(PERIOD * 2).await;
        progress.moved(4096, Some(4096));
        progress.moved(4096, None);
        assert!(reports.try_recv().is_err());
    }
}
