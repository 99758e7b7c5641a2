//! Shows on a terminal that something is under way: what it is, how much of a file has gone by, how
//! fast, and how long the rest takes.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};

use wharf_client::{Progress, Transfer};

use crate::output::Output;
use crate::{amount, plain};

/// How often a bar moves.
pub(crate) const TICK: Duration = Duration::from_millis(120);

const BUSY: &str = "{spinner:.cyan} {elapsed:.dim} {wide_msg}";
const KNOWN: &str = "{spinner:.cyan} [{bar:24.cyan/dim}] {percent:>3}% \
                     {binary_bytes:>10}/{binary_total_bytes} {binary_bytes_per_sec:>12} \
                     {eta:>4.dim} {wide_msg}";
const UNKNOWN: &str = "{spinner:.cyan} {binary_bytes:>10} {binary_bytes_per_sec:>12} \
                       {elapsed:.dim} {wide_msg}";
const WAITING: &str = "{spinner:.cyan} {binary_bytes:>10} {wide_msg}";

/// A bar on standard error for the bytes of a file.
#[derive(Debug, Clone)]
pub(crate) struct TransferBar {
    output: Output,
    bar: Option<ProgressBar>,
}

impl TransferBar {
    /// A bar for so many bytes, if that is known; `text` must be safe for a terminal already.
    pub(crate) fn new(output: Output, text: &str, total: Option<u64>) -> Self {
        Self { output, bar: bar(output, style(total), total, text) }
    }

    /// A bar that shows what happens to a file; `verb` says what became of resumed bytes.
    pub(crate) fn watch(&self, path: &str, verb: &'static str) -> Progress {
        let (meter, path) = (self.clone(), plain::line(path));
        Progress::new(move |step| match step {
            Transfer::Started(total) => meter.start(total),
            Transfer::Resumed(bytes) => {
                meter.note(&format!("resuming: {} {verb}", amount::about(bytes)));
                meter.jump(bytes);
            }
            Transfer::Moved(bytes) => meter.add(bytes),
            Transfer::Position(bytes) => meter.jump(bytes),
            Transfer::Retrying(error) => {
                let text = plain::line(error.message());
                meter.note(&format!("{}; trying again", text.trim_end_matches('.')));
            }
            Transfer::Assembling => {
                meter.wait_for(&format!("all sent; the core is assembling {path}"));
            }
        })
    }

    /// So many bytes are to come, if that is known.
    fn start(&self, total: Option<u64>) {
        if let Some(bar) = &self.bar {
            bar.set_style(style(total));
            if let Some(total) = total {
                bar.set_length(total);
            }
            bar.reset();
        }
    }

    /// So many bytes more have gone by.
    pub(crate) fn add(&self, bytes: u64) {
        if let Some(bar) = &self.bar {
            bar.inc(bytes);
        }
    }

    /// So many bytes have gone by in all, however that came about; the rate begins anew.
    fn jump(&self, bytes: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(bytes);
            bar.reset_eta();
        }
    }

    /// Says something above the bar; the text must be safe for a terminal already.
    fn note(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| self.output.note(text)),
            None => self.output.note(text),
        }
    }

    /// All bytes have gone by, and what is left takes a time that nobody knows; the text must be
    /// safe for a terminal already.
    fn wait_for(&self, text: &str) {
        if let Some(bar) = &self.bar {
            bar.set_style(styled(WAITING));
            bar.set_message(text.to_owned());
        }
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A line on standard error that moves, and disappears when it is dropped.
pub(crate) struct Spinner(Option<ProgressBar>);

impl Spinner {
    /// Shows `text`, which must be safe for a terminal already.
    pub(crate) fn new(output: Output, text: &str) -> Self {
        Self(bar(output, styled(BUSY), None, text))
    }

    /// Shows another text.
    pub(crate) fn set(&self, text: &str) {
        if let Some(bar) = &self.0 {
            bar.set_message(text.to_owned());
        }
    }

    /// Makes room while something else is written to standard error.
    pub(crate) fn aside(&self, write: impl FnOnce()) {
        match &self.0 {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }
}

/// A bar that moves and disappears when it is dropped; off a terminal and for programs there is
/// none.
fn bar(
    output: Output,
    style: ProgressStyle,
    total: Option<u64>,
    text: &str,
) -> Option<ProgressBar> {
    (output.err_is_terminal() && !output.is_json()).then(|| {
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr())
            .with_style(style)
            .with_message(text.to_owned())
            .with_finish(ProgressFinish::AndClear);
        bar.enable_steady_tick(TICK);
        bar
    })
}

fn style(total: Option<u64>) -> ProgressStyle {
    styled(if total.is_some() { KNOWN } else { UNKNOWN })
}

/// A style with the usual signs.
pub(crate) fn styled(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_templates_can_be_read() {
        for template in [BUSY, KNOWN, UNKNOWN, WAITING] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
