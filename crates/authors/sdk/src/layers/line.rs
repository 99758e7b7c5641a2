//! A line in which calls wait for their turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many may wait in a line when nothing else is said.
pub(super) const WAITING_MAX: usize = 1_024;

/// Counts those who wait, so that a line has an end.
#[derive(Debug, Clone)]
pub(super) struct Line {
    waiting: Arc<AtomicUsize>,
    pub(super) waiting_max: usize,
}

impl Line {
    pub(super) fn new() -> Self {
        Self { waiting: Arc::default(), waiting_max: WAITING_MAX }
    }

    /// A place in the line, unless it is full.
    pub(super) fn join(&self) -> Option<Waiting> {
        let before = self.waiting.fetch_add(1, Ordering::AcqRel);
        let waiting = Waiting(Arc::clone(&self.waiting));
        (before < self.waiting_max).then_some(waiting)
    }
}

/// A place in a line, until it is dropped.
#[derive(Debug)]
pub(super) struct Waiting(Arc<AtomicUsize>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
