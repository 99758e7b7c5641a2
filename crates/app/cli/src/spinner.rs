//! Shows on a terminal that something is under way.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::Output;

const TICK: Duration = Duration::from_millis(120);

/// A line on standard error that moves, and disappears when it is dropped. Off a terminal and
/// for programs there is none.
pub(crate) struct Spinner(Option<ProgressBar>);

impl Spinner {
    /// Shows `text`, which must be safe for a terminal already.
    pub(crate) fn new(output: Output, text: &str) -> Self {
        let shows = output.err_is_terminal() && !output.is_json();
        Self(shows.then(|| {
            let style = ProgressStyle::with_template("{spinner:.cyan} {elapsed:.dim} {wide_msg}")
                .unwrap_or_else(|_| ProgressStyle::default_spinner());
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())
                .with_style(style)
                .with_message(text.to_owned());
            bar.enable_steady_tick(TICK);
            bar
        }))
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

impl Drop for Spinner {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
