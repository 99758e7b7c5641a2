//! The progress bar: what the run is doing, how far it is, for how long.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

const STEPS: u64 = 1_000;
const TICK: Duration = Duration::from_millis(120);

/// A bar at the bottom of the terminal that can be taken away and put back.
pub(super) struct Bar {
    /// The bar while it is shown.
    drawn: Option<ProgressBar>,
    begun: Instant,
    phase: String,
    fraction: Option<f64>,
    detail: String,
}

impl Bar {
    /// A bar that is not shown until there is something to show.
    pub(super) fn new() -> Self {
        Self {
            drawn: None,
            begun: Instant::now(),
            phase: String::new(),
            fraction: None,
            detail: String::new(),
        }
    }

    /// Says what the run is doing and how much of it is done.
    pub(super) fn set_phase(&mut self, phase: &str, fraction: Option<f64>) {
        phase.clone_into(&mut self.phase);
        self.fraction = fraction.filter(|fraction| fraction.is_finite());
        self.refresh();
    }

    /// Adds a few words to it.
    pub(super) fn set_detail(&mut self, detail: &str) {
        detail.trim().clone_into(&mut self.detail);
        self.refresh();
    }

    fn refresh(&mut self) {
        match &self.drawn {
            Some(drawn) => self.fill(drawn),
            None => self.show(),
        }
    }

    /// Puts the bar at the cursor, which must stand at the beginning of a line.
    pub(super) fn show(&mut self) {
        if self.drawn.is_none() {
            let drawn = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr())
                .with_elapsed(self.begun.elapsed());
            self.fill(&drawn);
            drawn.enable_steady_tick(TICK);
            self.drawn = Some(drawn);
        }
    }

    /// Whether the bar is shown.
    pub(super) fn is_shown(&self) -> bool {
        self.drawn.is_some()
    }

    /// Takes the bar away.
    pub(super) fn hide(&mut self) {
        if let Some(drawn) = self.drawn.take() {
            drawn.finish_and_clear();
        }
    }

    /// Does something with the bar out of the way, and puts it back.
    pub(super) fn around(&mut self, write: impl FnOnce()) {
        match &self.drawn {
            Some(drawn) => drawn.suspend(write),
            None => write(),
        }
    }

    fn fill(&self, drawn: &ProgressBar) {
        let template = match self.fraction {
            Some(_) => {
                "{spinner:.cyan} [{bar:24.cyan/dim}] {percent:>3}% {elapsed:.dim} {wide_msg}"
            }
            None => "{spinner:.cyan} {elapsed:.dim} {wide_msg}",
        };
        // The templates are constant; a mistake in one would only cost the bar its looks.
        if let Ok(style) = ProgressStyle::with_template(template) {
            drawn.set_style(style.progress_chars("=> "));
        }
        let message = if self.detail.is_empty() {
            self.phase.clone()
        } else {
            format!("{}: {}", self.phase, self.detail)
        };
        drawn.set_message(message);
        let fraction = self.fraction.unwrap_or(0.0).clamp(0.0, 1.0);
        drawn.set_position(position(fraction));
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a fraction between 0 and 1 times a thousand fits"
)]
fn position(fraction: f64) -> u64 {
    (fraction * STEPS as f64) as u64
}
