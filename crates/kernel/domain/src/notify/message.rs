//! One notification: what it tells, and how long it is owed.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with_macros::skip_serializing_none;
use wharf_vocab::{
    AskId, Fault, NotificationId, NotifyOn, Object, ReceiverId, RunId, RunStatus, ToolId, WorldId,
    shown,
};

use crate::flow::{self, NameScope};

/// Longest title that leaves the core.
const TITLE_CHARS_MAX: usize = 200;

/// What a receiver's condition can see.
pub(super) const SEEN: [&str; 10] =
    ["event", "world", "run_id", "ask_id", "tool", "status", "code", "title", "inputs", "outputs"];

/// Something that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Happening<'a> {
    /// What kind of thing.
    pub on: NotifyOn,
    /// Its name, such as `run.ended`.
    pub event: &'static str,
    /// The world, if it concerns one.
    pub world: Option<&'a WorldId>,
    /// The run, if it is about one.
    pub run: Option<&'a RunId>,
    /// The ask, if it is about one.
    pub ask: Option<&'a AskId>,
    /// The tool, if it is about one.
    pub tool: Option<&'a ToolId>,
    /// How the run stands.
    pub status: Option<RunStatus>,
    /// The code of an error.
    pub code: Option<&'a str>,
    /// What it is about in its own words: the title of an ask, the id of a provider.
    pub title: Option<&'a str>,
}

/// What a receiver is owed.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notification {
    /// Its id.
    pub id: NotificationId,
    /// Who is to have it.
    pub receiver: ReceiverId,
    /// What happened, such as `run.ended`.
    pub event: String,
    /// In which world.
    pub world: Option<WorldId>,
    /// To which run.
    pub run: Option<RunId>,
    /// The ask that waits.
    pub ask: Option<AskId>,
    /// The tool.
    pub tool: Option<ToolId>,
    /// How the run stands.
    pub status: Option<RunStatus>,
    /// The code of an error.
    pub code: Option<String>,
    /// What it is about in its own words.
    pub title: Option<String>,
}

/// Values of a run that a receiver is told, scrubbed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IncludedValues {
    /// What the run was given, if it is to be told and is kept.
    pub inputs: Option<Object>,
    /// What it gave, if it is to be told and is kept.
    pub outputs: Option<Object>,
}

/// What is written about a notification.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum NotificationEntry {
    /// It is owed.
    Owed(Box<Notification>),
    /// It is owed no more; the receiver's stream says what became of it.
    Over(NotificationEnd),
}

/// A notification is owed no more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotificationEnd {}

impl Happening<'_> {
    /// What a receiver is told of it.
    pub fn told(&self, id: NotificationId, receiver: ReceiverId) -> Notification {
        Notification {
            id,
            receiver,
            event: self.event.to_owned(),
            world: self.world.cloned(),
            run: self.run.cloned(),
            ask: self.ask.cloned(),
            tool: self.tool.cloned(),
            status: self.status,
            code: self.code.map(str::to_owned),
            title: self.title.map(|title| shown(title, TITLE_CHARS_MAX)),
        }
    }
}

impl Notification {
    /// Whether a receiver's condition holds for it, with the values that the receiver may see;
    /// takes a while.
    pub fn fits(&self, when: &str, values: &IncludedValues) -> Result<bool, Fault> {
        let text = |text: Option<String>| text.map_or(Value::Null, Value::String);
        let object = |object: &Option<Object>| object.clone().map_or(Value::Null, Value::Object);
        let seen = [
            ("event", Value::String(self.event.clone())),
            ("world", text(self.world.as_ref().map(ToString::to_string))),
            ("run_id", text(self.run.as_ref().map(ToString::to_string))),
            ("ask_id", text(self.ask.as_ref().map(ToString::to_string))),
            ("tool", text(self.tool.as_ref().map(ToString::to_string))),
            ("status", text(self.status.as_ref().map(ToString::to_string))),
            ("code", text(self.code.clone())),
            ("title", text(self.title.clone())),
            ("inputs", object(&values.inputs)),
            ("outputs", object(&values.outputs)),
        ];
        let mut scope = NameScope::default();
        for (name, value) in seen {
            scope.set(&[name], Cow::Owned(value));
        }
        flow::holds(when, &scope)
    }

    /// What it is about, in one word.
    pub fn about(&self) -> String {
        let ask = self.ask.as_ref().map(ToString::to_string);
        let run = self.run.as_ref().map(ToString::to_string);
        ask.or(run).or_else(|| self.title.clone()).unwrap_or_default()
    }

    /// Reads a notification back from its stream; `None` once it is owed no more.
    pub fn replay<'a>(entries: impl IntoIterator<Item = &'a NotificationEntry>) -> Option<Self> {
        entries.into_iter().fold(None, |_, entry| match entry {
            NotificationEntry::Owed(owed) => Some(Self::clone(owed)),
            NotificationEntry::Over(_) => None,
        })
    }
}
