//! The progress bar: what the run is doing, how far it is, for how long.

use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::progress::{TICK, styled};

const STEPS: u64 = 1_000;

/// A bar at the bottom of the terminal that makes room for text.
pub(super) struct Bar {
    /// The bar while it is shown.
    drawn: Option<ProgressBar>,
    /// The cursor stands within a line of text, where no bar may be drawn.
    held: bool,
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
            held: false,
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

    /// Takes the bar away until it is released.
    pub(super) fn hold(&mut self) {
        self.held = true;
        if let Some(drawn) = self.drawn.take() {
            drawn.finish_and_clear();
        }
    }

    /// Puts the bar back; the cursor must stand at the beginning of a line.
    pub(super) fn release(&mut self) {
        self.held = false;
        self.refresh();
    }

    /// Does something with the bar out of the way, and puts it back.
    pub(super) fn around(&mut self, write: impl FnOnce()) {
        match &self.drawn {
            Some(drawn) => drawn.suspend(write),
            None => write(),
        }
    }

    fn refresh(&mut self) {
        if self.held || self.phase.is_empty() {
            return;
        }
        let (style, message, position) = (self.style(), self.message(), self.position());
        if let Some(drawn) = &self.drawn {
            drawn.set_style(style);
            drawn.set_message(message);
            drawn.set_position(position);
        } else {
            let drawn = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr())
                .with_elapsed(self.begun.elapsed())
                .with_style(style)
                .with_message(message)
                .with_position(position);
            drawn.enable_steady_tick(TICK);
            self.drawn = Some(drawn);
        }
    }

    fn style(&self) -> ProgressStyle {
        styled(match self.fraction {
            Some(_) => {
                "{spinner:.cyan} [{bar:24.cyan/dim}] {percent:>3}% {elapsed:.dim} {wide_msg}"
            }
            None => "{spinner:.cyan} {elapsed:.dim} {wide_msg}",
        })
    }

    fn message(&self) -> String {
        if self.detail.is_empty() {
            self.phase.clone()
        } else {
            format!("{}: {}", self.phase, self.detail)
        }
    }

    fn position(&self) -> u64 {
        position(self.fraction.unwrap_or(0.0).clamp(0.0, 1.0))
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
