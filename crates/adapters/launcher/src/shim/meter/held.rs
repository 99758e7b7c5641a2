//! What processes hold beside the memory that they touch: by descriptors, by mappings, in the
//! kernel.
//!
//! It is looked at in a thread of its own. To look at a descriptor is to hold it for a moment, and
//! who closes it in this moment leaves its end to us, which can take as long as a program likes.
//! So whoever keeps a look from coming to its end has hidden from it, and that counts as too much.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use tokio::time::Instant;
use wharf_vocab::Resource;

use super::look::Look;

/// The shortest and the longest pause between two looks, unless looks take long themselves.
const PAUSE: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_millis(400);
/// In between, a pause is this many times as long as the look before it.
const IDLE_SHARE: u32 = 20;
/// It is at least so many times as long, up to this.
const IDLE_SHARE_MIN: u32 = 4;
const PAUSE_OF_SLOW_MAX: Duration = Duration::from_secs(1);
/// No look takes longer, unless somebody holds it up.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is held, in bytes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held {
    /// Memory in files that lie on no disk. What is mapped of it belongs to processes as well.
    pub(super) files: u64,
    /// Memory of the kernel, and what it has swapped out.
    pub(super) kernel: u64,
    /// Files on disk that have no name any more.
    pub(super) disk: u64,
    /// What there is too much of to be counted.
    pub(super) verdict: Option<Resource>,
}

/// What the thread is told.
#[derive(Debug)]
enum LookRequest {
    Begin(Box<Look>),
    See(Vec<i32>),
}

/// Looks again and again.
#[derive(Debug)]
pub(in crate::shim) struct HeldMeter {
    held: Held,
    look_at: Instant,
    asked_at: Option<Instant>,
    questions: Sender<LookRequest>,
    /// With how long it took.
    answers: Receiver<(Held, Duration)>,
}

impl HeldMeter {
    /// Makes the thread. It waits to be told where to look.
    pub(in crate::shim) fn open() -> Self {
        let (questions, asked) = channel();
        let (answer, answers) = channel();
        let looking = move || {
            let mut look: Option<Box<Look>> = None;
            while let Ok(question) = asked.recv() {
                match question {
                    LookRequest::Begin(where_to) => look = Some(where_to),
                    LookRequest::See(pids) => {
                        let began = Instant::now();
                        let held = look.as_mut().map(|look| look.at(&pids)).unwrap_or_default();
                        if answer.send((held, began.elapsed())).is_err() {
                            return;
                        }
                    }
                }
            }
        };
        // If there is no thread, there is no answer either, and that is noticed.
        let _ = thread::Builder::new().name("wharf-eye".into()).spawn(looking);
        Self { held: Held::default(), look_at: Instant::now(), asked_at: None, questions, answers }
    }

    /// Says where to look.
    pub(super) fn begin(&mut self, look: Look) {
        // Nobody there to be told is the same as no answer.
        let _ = self.questions.send(LookRequest::Begin(Box::new(look)));
    }

    /// Whether it is looked at now.
    pub(super) fn is_looking(&self) -> bool {
        self.asked_at.is_some()
    }

    /// What was held when it was last looked at. It does not wait.
    pub(super) fn see(&mut self, pids: &[i32]) -> Held {
        let now = Instant::now();
        match self.asked_at {
            None if now >= self.look_at => {
                self.asked_at = Some(now);
                let _ = self.questions.send(LookRequest::See(pids.to_vec()));
            }
            None => {}
            Some(asked_at) => match self.answers.try_recv() {
                Ok((held, took)) => {
                    self.held = held;
                    self.asked_at = None;
                    self.look_at = now + pause_after(took);
                }
                Err(_) if now - asked_at > PATIENCE => {
                    self.held.verdict = Some(Resource::Hidden);
                }
                Err(_) => {}
            },
        }
        self.held
    }
}

fn pause_after(took: Duration) -> Duration {
    let usual = (took * IDLE_SHARE).clamp(PAUSE, PAUSE_MAX);
    usual.max((took * IDLE_SHARE_MIN).min(PAUSE_OF_SLOW_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_take_a_small_part_of_the_time_and_are_never_far_apart() {
        let pause = |ms| pause_after(Duration::from_millis(ms)).as_millis();
        assert_eq!([0, 15, 50, 200, 9_000].map(pause), [200, 300, 400, 800, 1_000]);
    }
}
