//! Asks: what a run waits for. A question asks for information, an approval for permission.
//!
//! An ask is resolved exactly once. Who may resolve it is decided here and nowhere else.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with_macros::skip_serializing_none;
use wharf_vocab::{AskId, AskKind, AskOutcome, Code, Digest, Fault, RunKey, Timestamp, ToolId};

use crate::run::TaskRef;
use crate::scope::ReadObject;
use crate::{Actor, Audience, Caller, CallerKind, CallerRef};

/// What is asked, by which run, of whom and until when.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AskSpec {
    /// The ask's id.
    pub ask_id: AskId,
    /// Information or permission.
    pub kind: AskKind,
    /// The run that waits.
    pub run: RunKey,
    /// The tool of that run.
    pub tool: ToolId,
    /// The asker's own name for the ask; the same key in one run is the same ask.
    pub key: String,
    /// What is asked, in one line.
    pub title: String,
    /// What a decision is about, as far as the title cannot say it: what a provider proposes, as
    /// an object, or why the core asks, as text.
    pub detail: Option<Value>,
    /// JSON Schema of the answer to a question.
    pub schema: Option<Value>,
    /// Digest of the arguments an approval is for.
    pub args_digest: Option<Digest>,
    /// Hash of the tool definition an approval is for.
    pub tool_hash: Option<Digest>,
    /// The files an approval is for, by the names of the inputs: these and no others are read.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, ReadObject>,
    /// Who may decide.
    pub audience: Audience,
    /// Whose run it is; a token that is not a person's may not decide about its own run.
    pub caller: CallerRef,
    /// When the ask expires.
    pub deadline: Timestamp,
    /// When a seat's time is over and others are asked.
    pub escalates: Option<Timestamp>,
    /// Whether only a person is asked then, and not everybody who may answer asks of the world.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub then_person: bool,
    /// The attempt that asks, or that waits to begin; older asks do not say.
    pub task: Option<TaskRef>,
}

impl AskSpec {
    /// The number of the attempt that asks, or that waits to begin.
    pub fn attempt(&self) -> u32 {
        self.task.as_ref().map_or(1, |task| task.attempt)
    }

    /// Who may decide at a moment.
    pub fn audience_at(&self, now: Timestamp) -> Audience {
        match (&self.audience, self.escalates) {
            (Audience::Seat(_), Some(at)) if now >= at => self.after_seat(),
            (audience, _) => audience.clone(),
        }
    }

    /// Who may decide when the seat that was named does not.
    fn after_seat(&self) -> Audience {
        if self.then_person { Audience::Person } else { Audience::Any }
    }

    /// Whether the caller stands in the chain of the run, or executes it. A seat that the launch
    /// of a person named is asked for that person, also if the same person made it.
    fn is_own(&self, caller: &Caller) -> bool {
        let run = &self.caller;
        let named = match &self.audience {
            Audience::Seat(seat) => !self.then_person && caller.sits_on(seat),
            Audience::Person | Audience::Any => false,
        };
        let own = run.links();
        caller.links.iter().any(|link| {
            let of_person = (run.person && *link == run.grant) || Some(link) == run.root.as_ref();
            own.contains(link) || (*link == run.grant && !run.person) || (of_person && !named)
        })
    }

    /// Whether an MCP client is asked by the run that it started itself, or by one below it: a
    /// question for anybody, which whoever uses the client answers. It is the one thing that a
    /// token may say about a run in its own chain.
    fn is_asked_back(&self, caller: &Caller, now: Timestamp) -> bool {
        let run = &self.caller;
        let links = run.links();
        // Who executes the run stands in its chain as well, behind the grant that started it.
        let started = links.iter().position(|link| *link == run.grant);
        let started = started.map_or(&[][..], |at| &links[..=at]);
        caller.kind == CallerKind::Mcp
            && self.kind == AskKind::Question
            && self.audience_at(now) == Audience::Any
            && !run.person
            && (caller.grant == run.grant || started.contains(&caller.grant))
    }
}

/// By which way in somebody decided, where that says something about who it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Via {
    /// A client of MCP, for whoever uses it.
    Mcp,
}

impl Via {
    /// The way in of a caller.
    pub(crate) fn of(caller: &Caller) -> Option<Self> {
        (caller.kind == CallerKind::Mcp).then_some(Self::Mcp)
    }

    /// The word for it in the audit.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mcp => "mcp",
        }
    }
}

/// How an ask ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Resolution {
    /// Permission was given.
    Allow {
        /// How far it reaches.
        #[serde(default, skip_serializing_if = "Scope::is_run")]
        scope: Scope,
    },
    /// Permission was not given.
    Deny {
        /// Why.
        reason: String,
    },
    /// A valid answer was given.
    Answered {
        /// The answer.
        value: Value,
    },
    /// Whoever was asked does not want to answer.
    Declined,
    /// Whoever was asked broke off.
    Cancelled,
    /// The answer is free text that does not fit the question.
    OffScript {
        /// The text.
        text: String,
    },
    /// The deadline passed.
    Expired,
    /// The run ended first.
    Withdrawn,
}

/// How far a permission reaches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Only the attempt that is about to begin; the next one is asked about again.
    Attempt,
    /// Only the run that waits.
    #[default]
    Run,
    /// Also later runs of the same tool that the same caller starts within the same parent run.
    Parent,
}

impl Scope {
    fn is_run(&self) -> bool {
        *self == Self::Run
    }
}

impl Resolution {
    /// Permission for the run that waits, and nothing else.
    pub const ALLOW: Self = Self::Allow { scope: Scope::Run };

    /// How the ask ended, without what was said.
    pub fn outcome(&self) -> AskOutcome {
        match self {
            Self::Allow { .. } => AskOutcome::Allow,
            Self::Deny { .. } => AskOutcome::Deny,
            Self::Answered { .. } => AskOutcome::Answered,
            Self::Declined => AskOutcome::Declined,
            Self::Cancelled => AskOutcome::Cancelled,
            Self::OffScript { .. } => AskOutcome::OffScript,
            Self::Expired => AskOutcome::Expired,
            Self::Withdrawn => AskOutcome::Withdrawn,
        }
    }

    /// The word for it in every API.
    pub fn as_str(&self) -> &'static str {
        self.outcome().as_str()
    }

    fn fits(&self, kind: AskKind) -> bool {
        match self {
            Self::Allow { .. } | Self::Deny { .. } => kind == AskKind::Approval,
            Self::Answered { .. } | Self::Declined | Self::Cancelled | Self::OffScript { .. } => {
                kind == AskKind::Question
            }
            // Only the core says these, and it need not ask whether it may.
            Self::Expired | Self::Withdrawn => false,
        }
    }
}

/// What is written about an ask.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum AskEntry {
    /// It was raised.
    Raised(Box<AskSpec>),
    /// It ended.
    Resolved {
        /// How.
        resolution: Resolution,
        /// By whom: a grant, or the core itself.
        by: Actor,
    },
}

/// An ask and whether it is still open.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// What is asked.
    pub spec: AskSpec,
    /// When it was raised.
    pub created_at: Timestamp,
    /// How it ended and who ended it.
    pub resolved: Option<(Resolution, Actor)>,
    /// When it ended.
    pub resolved_at: Option<Timestamp>,
}

impl Ask {
    /// An ask that was raised just now.
    pub fn raised(spec: AskSpec, created_at: Timestamp) -> Self {
        Self { spec, created_at, resolved: None, resolved_at: None }
    }

    /// Reads an ask back from its stream.
    pub fn replay(entries: impl IntoIterator<Item = (Timestamp, AskEntry)>) -> Option<Self> {
        let mut ask: Option<Self> = None;
        for (at, entry) in entries {
            match (entry, &mut ask) {
                (AskEntry::Raised(spec), None) => ask = Some(Self::raised(*spec, at)),
                (AskEntry::Resolved { resolution, by }, Some(ask)) => {
                    ask.resolved = Some((resolution, by));
                    ask.resolved_at = Some(at);
                }
                (AskEntry::Raised(_), Some(_)) | (AskEntry::Resolved { .. }, None) => return None,
            }
        }
        ask
    }

    /// Whether nobody has decided yet.
    pub fn is_open(&self) -> bool {
        self.resolved.is_none()
    }

    /// Whether `caller` may end the ask this way now.
    pub fn may_resolve(
        &self,
        caller: &Caller,
        resolution: &Resolution,
        now: Timestamp,
    ) -> Result<(), Fault> {
        let spec = &self.spec;
        if !self.is_open() {
            let mut fault = Fault::new(Code::AskDecided, "This ask has been decided already.");
            if let Some((resolution, by)) = &self.resolved {
                fault = fault.with("decision", resolution.as_str()).with("decided_by", by.as_str());
            }
            return Err(fault);
        }
        if !resolution.fits(spec.kind) {
            let message = match spec.kind {
                AskKind::Question => "This is a question: answer it instead of allowing it.",
                AskKind::Approval => "This is an approval: allow or deny it.",
            };
            return Err(Fault::new(Code::AskAnswerInvalid, message));
        }
        if !caller.person && spec.is_own(caller) && !spec.is_asked_back(caller, now) {
            let message = "A token cannot decide about a run in its own chain.";
            return Err(Fault::new(Code::PermissionDenied, message));
        }
        if caller.kind == CallerKind::Mcp && spec.kind == AskKind::Approval {
            let message = "An MCP client may answer questions but not decide approvals.";
            return Err(Fault::new(Code::PermissionDenied, message));
        }
        match spec.audience_at(now) {
            Audience::Person if !caller.person => {
                Err(Fault::new(Code::PermissionDenied, "Only a person may decide this ask."))
            }
            Audience::Seat(seat)
                if !caller.person
                    && !caller.sits_on(&seat)
                    && (caller.stands_in.as_ref() != Some(&seat) || spec.then_person) =>
            {
                Err(Fault::new(
                    Code::PermissionDenied,
                    format!("Only the seat {seat} or a person may decide this ask."),
                ))
            }
            Audience::Person | Audience::Seat(_) | Audience::Any => Ok(()),
        }
    }
}
