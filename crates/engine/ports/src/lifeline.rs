//! What ties an attempt to whoever works on it.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use wharf_vocab::Executed;

/// Held by everybody who works on an attempt. When the last one lets go of it and nobody has told
/// how the attempt ended, whoever made it is told that the attempt is lost: after a panic, with a
/// task that was dropped, or when somebody simply forgot it.
#[derive(Clone, Default)]
pub struct Lifeline(Option<Arc<LifelineState>>);

/// A lifeline that keeps nothing alive.
#[derive(Clone, Default)]
pub struct WeakLifeline(Weak<LifelineState>);

struct LifelineState {
    begun: AtomicBool,
    told: AtomicBool,
    lost: Box<dyn Fn(Executed) + Send + Sync>,
}

impl Lifeline {
    /// A lifeline; `lost` is told whether the attempt may have acted when it is lost.
    pub fn new(lost: impl Fn(Executed) + Send + Sync + 'static) -> Self {
        let (begun, told) = (AtomicBool::new(false), AtomicBool::new(false));
        Self(Some(Arc::new(LifelineState { begun, told, lost: Box::new(lost) })))
    }

    /// The attempt is in the hands of whoever executes it, and may act from now on.
    pub fn begun(&self) {
        if let Some(line) = &self.0 {
            line.begun.store(true, Ordering::Release);
        }
    }

    /// How the attempt ended has been told, so it cannot be lost any more.
    pub fn told(&self) {
        if let Some(line) = &self.0 {
            line.told.store(true, Ordering::Release);
        }
    }

    /// The same, without keeping the attempt alive.
    #[must_use]
    pub fn downgrade(&self) -> WeakLifeline {
        WeakLifeline(self.0.as_ref().map(Arc::downgrade).unwrap_or_default())
    }
}

impl WeakLifeline {
    /// The lifeline, if somebody still works on the attempt.
    #[must_use]
    pub fn upgrade(&self) -> Option<Lifeline> {
        self.0.upgrade().map(|line| Lifeline(Some(line)))
    }
}

impl Drop for LifelineState {
    fn drop(&mut self) {
        if !*self.told.get_mut() {
            let begun = *self.begun.get_mut();
            (self.lost)(if begun { Executed::Maybe } else { Executed::No });
        }
    }
}

/// Who works on an attempt makes it no other attempt.
impl PartialEq for Lifeline {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Lifeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lifeline").field("tied", &self.0.is_some()).finish()
    }
}

impl fmt::Debug for WeakLifeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakLifeline").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    fn line() -> (Lifeline, Arc<Mutex<Vec<Executed>>>) {
        let lost = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&lost);
        (Lifeline::new(move |executed| seen.lock().expect("whole").push(executed)), lost)
    }

    #[test]
    fn whoever_lets_go_last_without_a_word_has_lost_the_attempt() {
        let (first, lost) = line();
        let second = first.clone();
        drop(first);
        assert!(lost.lock().expect("whole").is_empty(), "somebody still has it");
        drop(second);
        assert_eq!(*lost.lock().expect("whole"), [Executed::No]);

        let (begun, lost) = line();
        begun.begun();
        drop(begun);
        assert_eq!(*lost.lock().expect("whole"), [Executed::Maybe]);
    }

    #[test]
    fn an_end_that_was_told_is_not_lost_and_nothing_is_kept_alive_by_looking() {
        let (line, lost) = line();
        let weak = line.downgrade();
        weak.upgrade().expect("somebody has it").told();
        drop(line);
        assert!(weak.upgrade().is_none());
        assert!(lost.lock().expect("whole").is_empty());
    }

    #[test]
    fn a_panic_loses_the_attempt() {
        let (line, lost) = line();
        let task = std::thread::spawn(move || {
            line.begun();
            panic!("in the middle of it");
        });
        task.join().expect_err("it panics");
        assert_eq!(*lost.lock().expect("whole"), [Executed::Maybe]);
    }
}
