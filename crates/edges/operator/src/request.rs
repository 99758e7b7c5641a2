//! What a request to a seat is called. The text is the wire's; inside it is a type.

use std::fmt;

use wharf_domain::Ask;
use wharf_vocab::{AskId, AskKind};

/// What the name of a task begins with; the rest is the same in the name of its offer.
const TASK_PREFIX: &str = "ST-";

/// What names a request on the wire. It stays the same for as long as what it is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum RequestId {
    Question(AskId),
    Approval(AskId),
    /// What came of an attempt that was let pass, by the approval that it follows.
    Notice(AskId),
    /// The offer of a task, by the name of the task without its prefix.
    Offer(String),
}

impl RequestId {
    pub(crate) fn of_ask(ask: &Ask) -> Self {
        match ask.spec.kind {
            AskKind::Question => Self::Question(ask.spec.ask_id.clone()),
            AskKind::Approval => Self::Approval(ask.spec.ask_id.clone()),
        }
    }

    pub(crate) fn of_task(task_id: &str) -> Self {
        Self::Offer(task_id.strip_prefix(TASK_PREFIX).unwrap_or(task_id).to_owned())
    }

    /// Reads what a peer named; `None` if no request was ever called so.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once('-')?;
        let ask = || AskId::new(rest).ok();
        match kind {
            "q" => ask().map(Self::Question),
            "h" => ask().map(Self::Approval),
            "n" => ask().map(Self::Notice),
            "sp" => Some(Self::Offer(rest.to_owned())),
            _ => None,
        }
    }

    /// The name of the task that an offer is about.
    pub(crate) fn task_id(&self) -> Option<String> {
        match self {
            Self::Offer(rest) => Some(format!("{TASK_PREFIX}{rest}")),
            Self::Question(_) | Self::Approval(_) | Self::Notice(_) => None,
        }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Question(ask) => write!(f, "q-{ask}"),
            Self::Approval(ask) => write!(f, "h-{ask}"),
            Self::Notice(ask) => write!(f, "n-{ask}"),
            Self::Offer(task) => write!(f, "sp-{task}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for text in ["q-5eask-1", "h-5eask-1", "n-5eask-1", "sp-5f1c2b0a"] {
            let id = RequestId::read(text).expect(text);
            assert_eq!(id.to_string(), text);
        }
        for other in ["", "q", "x-5eask-1", "ST-5f1c2b0a", "q-"] {
            assert_eq!(RequestId::read(other), None, "{other}");
        }
    }

    #[test]
    fn an_offer_is_called_like_its_task() {
        let offer = RequestId::of_task("ST-5f1c");
        assert_eq!(offer.to_string(), "sp-5f1c");
        assert_eq!(offer.task_id().as_deref(), Some("ST-5f1c"));
    }
}
