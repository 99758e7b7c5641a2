//! What a run prints: each line becomes a line of its log, within bounds.

use std::pin::pin;
use std::time::Instant;

use tokio::io::AsyncRead;
use wharf_wire::run_v1::LogLevel;

use super::lines::{LineReader, NextLine};
use super::settings::WorkerSettings;
use crate::Reporter;

/// How many lines may pass. It is refilled as time goes by.
#[derive(Debug)]
struct Allowance {
    lines: f64,
    burst: f64,
    per_second: f64,
    at: Instant,
    noticed: bool,
}

impl Allowance {
    fn new(settings: &WorkerSettings) -> Self {
        let burst = f64::from(settings.log_lines_burst);
        let per_second = f64::from(settings.log_lines_per_second);
        Self { lines: burst, burst, per_second, at: Instant::now(), noticed: false }
    }

    fn take(&mut self) -> bool {
        let now = Instant::now();
        let grown = self.lines + now.duration_since(self.at).as_secs_f64() * self.per_second;
        (self.lines, self.at) = (grown.min(self.burst), now);
        let allowed = self.lines >= 1.0;
        if allowed {
            self.lines -= 1.0;
        }
        allowed
    }
}

/// Passes on what a run prints until both streams end. Who prints more than is kept loses lines,
/// and is told so once; it never has to wait for that.
pub(super) async fn pass_on(
    out: impl AsyncRead + Unpin,
    err: impl AsyncRead + Unpin,
    report: &Reporter,
    settings: &WorkerSettings,
) {
    let mut out = LineReader::new(out, settings.log_line_bytes_max);
    let mut err = LineReader::new(err, settings.log_line_bytes_max);
    let (mut out_ended, mut err_ended) = (false, false);
    let mut allowance = Allowance::new(settings);
    while !(out_ended && err_ended) {
        let (level, line) = {
            let next_out = pin!(out.next());
            let next_err = pin!(err.next());
            tokio::select! {
                line = next_out, if !out_ended => (LogLevel::Info, line),
                line = next_err, if !err_ended => (LogLevel::Warn, line),
            }
        };
        let (bytes, end) = match line {
            NextLine::End if level == LogLevel::Info => {
                out_ended = true;
                continue;
            }
            NextLine::End => {
                err_ended = true;
                continue;
            }
            NextLine::Whole(bytes) => (bytes, ""),
            NextLine::Cut(bytes) => (bytes, " … (cut)"),
        };
        if allowance.take() {
            let text = String::from_utf8_lossy(&bytes);
            report.log(level, format!("{}{end}", text.trim_end_matches('\r'))).await;
        } else if !std::mem::replace(&mut allowance.noticed, true) {
            let text = "The handler prints faster than is kept; some lines are left out.";
            report.log(LogLevel::Warn, text).await;
        }
    }
}
