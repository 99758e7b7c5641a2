//! Steps that wait for people and for messages.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use wharf_vocab::{AskId, Code, Fault, Timestamp};

use super::super::StepValue;
use super::super::machine::Machine;
use super::{End, Next, over};
use crate::Resolution;
use crate::flow::{OnTimeout, SignalStep, StepKind};

/// A question or a request for permission.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in super::super) enum AskFrame {
    /// It is about to be raised.
    Ready {
        /// What is asked.
        title: String,
    },
    /// It waits for an answer.
    Open(AskId),
}

pub(super) enum AskNext {
    Next(Next),
    /// Nobody answered in time: the answer that the document has for that is wanted.
    OtherAnswer,
}

impl AskFrame {
    pub(super) fn go_on(
        &mut self,
        m: &mut Machine<'_, '_>,
        kind: &StepKind,
        path: &str,
        canceling: bool,
    ) -> AskNext {
        let next = match self {
            // An open ask is withdrawn by whoever sees that nobody waits for it.
            _ if canceling => over(End::Canceled),
            Self::Ready { .. } => match m.raised(path) {
                Some(id) => {
                    *self = Self::Open(id);
                    Next::Again
                }
                None => match m.may_not_ask(path) {
                    Some(fault) => over(End::Failed(fault)),
                    None => Next::Wait,
                },
            },
            Self::Open(id) => match m.resolved(id) {
                None => Next::Wait,
                Some(Resolution::Expired) if has_other(kind) => return AskNext::OtherAnswer,
                Some(resolution) => over(end_of(resolution)),
            },
        };
        AskNext::Next(next)
    }
}

fn has_other(kind: &StepKind) -> bool {
    matches!(kind, StepKind::Ask(ask) if matches!(ask.on_timeout, OnTimeout::Answer(_)))
}

fn end_of(resolution: Resolution) -> End {
    let failed = |code, message: &str| End::Failed(Fault::new(code, message));
    let done = |value: Value| End::Done(StepValue::Here(Arc::new(value)));
    match resolution {
        Resolution::Allow { .. } => done(json!({ "allowed": true })),
        Resolution::Deny { reason } if reason.is_empty() => {
            failed(Code::AskDenied, "The step was not approved.")
        }
        Resolution::Deny { reason } => {
            failed(Code::AskDenied, &format!("The step was not approved: {reason}"))
        }
        Resolution::Answered { value } => done(value),
        Resolution::OffScript { text } => done(text.into()),
        Resolution::Declined | Resolution::Cancelled => {
            failed(Code::AskDenied, "Whoever was asked did not want to answer.")
        }
        Resolution::Expired => failed(Code::AskExpired, "Nobody answered in time."),
        Resolution::Withdrawn => failed(Code::AskDenied, "The question was withdrawn."),
    }
}

/// A step that waits for a message takes the oldest one of its name.
pub(super) fn signal(
    m: &mut Machine<'_, '_>,
    def: &SignalStep,
    path: &str,
    until: Option<Timestamp>,
    canceling: bool,
) -> Next {
    if canceling {
        return over(End::Canceled);
    }
    if let Some(value) = m.signal(&def.name) {
        return over(End::Done(StepValue::Here(value)));
    }
    if until.is_some() && m.woke(path) {
        let message = format!("No signal {} came in time.", def.name);
        return over(End::Failed(Fault::new(Code::FlowSignalExpired, message)));
    }
    Next::Wait
}
