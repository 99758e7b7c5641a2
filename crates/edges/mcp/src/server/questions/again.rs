//! Answers that do not fit, and asking again.
//!
//! What a client answered wrong is in memory only: after a restart it is asked as for the first
//! time. Each time it is asked under another id, because an id that was answered is used up.

use std::collections::{HashMap, VecDeque};
use std::fmt;

use parking_lot::Mutex;
use tokio::sync::broadcast;
use wharf_vocab::AskId;

/// How often a client is asked again.
const AGAIN_MAX: u32 = 3;
/// Questions with wrong answers that are remembered; the oldest are forgotten first.
const REMEMBERED_MAX: usize = 4_096;
/// Questions to ask again that may wait for one stream.
const NEWS_MAX: usize = 256;
/// What stands between the id of an ask and the number of the time; ids do not have it.
const TIMES: char = '~';

/// An ask, and for which time a client is asked it, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AskTry {
    pub(super) ask: AskId,
    pub(super) number: u32,
}

impl AskTry {
    /// The ask as a client is asked it next.
    pub(super) fn next(wrong: &WrongAnswers, ask: &AskId) -> Self {
        let number = wrong.of(ask).map_or(1, |wrong| wrong.times.saturating_add(1));
        Self { ask: ask.clone(), number }
    }

    /// What an id says.
    pub(super) fn read(id: &str) -> Option<Self> {
        let (ask, number) = match id.split_once(TIMES) {
            Some((ask, number)) => (ask, number.parse().ok().filter(|number| *number > 1)?),
            None => (id, 1),
        };
        Some(Self { ask: AskId::new(ask).ok()?, number })
    }
}

impl fmt::Display for AskTry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            0 | 1 => write!(f, "{}", self.ask),
            number => write!(f, "{}{TIMES}{number}", self.ask),
        }
    }
}

/// How a client answered wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WrongAnswer {
    /// How often.
    pub(super) times: u32,
    /// What was wrong the last time, for people.
    pub(super) reason: String,
}

impl WrongAnswer {
    /// Whether the client is not asked again.
    pub(super) fn is_last(&self) -> bool {
        self.times > AGAIN_MAX
    }
}

/// What clients answered wrong, and news for the streams on which they are asked again.
#[derive(Debug)]
pub(crate) struct WrongAnswers {
    known: Mutex<WrongState>,
    news: broadcast::Sender<AskId>,
}

#[derive(Debug, Default)]
struct WrongState {
    wrong: HashMap<AskId, WrongAnswer>,
    /// The oldest first.
    order: VecDeque<AskId>,
}

impl Default for WrongAnswers {
    fn default() -> Self {
        Self { known: Mutex::default(), news: broadcast::channel(NEWS_MAX).0 }
    }
}

impl WrongAnswers {
    /// How a question was answered wrong, if it was.
    pub(super) fn of(&self, ask: &AskId) -> Option<WrongAnswer> {
        self.known.lock().wrong.get(ask).cloned()
    }

    /// A question was answered wrong.
    pub(super) fn add(&self, ask: &AskId, reason: &str) -> WrongAnswer {
        self.change(ask, reason, |times| times.saturating_add(1))
    }

    /// The client is not asked a question again.
    pub(super) fn give_up(&self, ask: &AskId) {
        self.change(ask, "", |_| AGAIN_MAX + 1);
    }

    fn change(&self, ask: &AskId, reason: &str, times: impl Fn(u32) -> u32) -> WrongAnswer {
        let mut known = self.known.lock();
        if !known.wrong.contains_key(ask) {
            if known.order.len() >= REMEMBERED_MAX {
                let oldest = known.order.pop_front();
                oldest.map(|oldest| known.wrong.remove(&oldest));
            }
            known.order.push_back(ask.clone());
        }
        let new = WrongAnswer { times: 0, reason: String::new() };
        let wrong = known.wrong.entry(ask.clone()).or_insert(new);
        wrong.times = times(wrong.times);
        reason.clone_into(&mut wrong.reason);
        let wrong = wrong.clone();
        drop(known);
        // Without streams there is nobody to tell.
        let _ = self.news.send(ask.clone());
        wrong
    }

    /// A question is over.
    pub(super) fn forget(&self, ask: &AskId) {
        let mut known = self.known.lock();
        if known.wrong.remove(ask).is_some() {
            known.order.retain(|kept| kept != ask);
        }
    }

    /// Questions that are answered wrong from now on.
    pub(crate) fn news(&self) -> broadcast::Receiver<AskId> {
        self.news.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(name: &str) -> AskId {
        AskId::new(name).expect("an id")
    }

    #[test]
    fn m032_every_time_has_an_id_of_its_own() {
        let wrong = WrongAnswers::default();
        let id = ask("0aq");
        for expected in ["0aq", "0aq~2", "0aq~3", "0aq~4"] {
            let next = AskTry::next(&wrong, &id);
            assert_eq!(next.to_string(), expected);
            assert_eq!(AskTry::read(expected), Some(next));
            assert_eq!(wrong.add(&id, "Why not.").is_last(), expected == "0aq~4", "{expected}");
        }
        for bad in ["", "a~", "a~1", "a~0", "a~x", "~2", "a~2~3", "a b"] {
            assert_eq!(AskTry::read(bad), None, "{bad}");
        }
        wrong.forget(&id);
        assert_eq!(AskTry::next(&wrong, &id).number, 1);
    }

    #[test]
    fn m032_what_is_remembered_of_wrong_answers_is_bounded() {
        let wrong = WrongAnswers::default();
        for number in 0..REMEMBERED_MAX + 10 {
            wrong.add(&ask(&format!("a{number}")), "");
        }
        let known = wrong.known.lock();
        assert_eq!((known.wrong.len(), known.order.len()), (REMEMBERED_MAX, REMEMBERED_MAX));
        assert!(!known.wrong.contains_key(&ask("a0")), "the oldest goes first");
    }
}
