//! Seats: the durable place of an operator.

use serde::{Deserialize, Serialize};
use serde_with_macros::skip_serializing_none;
use wharf_vocab::{Code, Digest, Fault, SeatId, Timestamp, Verb, shown};

use crate::{AuditEvent, AuditRecord, CallerRef, ToolDef};

/// Longest text that says what a seat is for.
pub const SEAT_TEXT_BYTES_MAX: usize = 2_000;
/// Most roles of a seat.
pub const SEAT_ROLES_MAX: usize = 32;
/// Most tools that a seat executes.
pub const SEAT_TOOLS_MAX: usize = 256;
/// Most bytes of the tools that a seat executes, with their schemas, as JSON text.
pub const SEAT_TOOLS_BYTES_MAX: usize = 1024 * 1024;

/// What is written about a seat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum SeatEntry {
    /// It was made.
    Created(Box<SeatCreated>),
    /// It executes these tools, and no others.
    Offered(SeatOffered),
    /// It was given up.
    Closed(SeatClosed),
}

/// A seat executes tools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeatOffered {
    /// All of them.
    pub tools: Vec<ToolDef>,
    /// Digest of them, when a later entry has taken its place and nothing else of it is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<Digest>,
}

impl SeatEntry {
    /// What is kept of an entry when a later one takes its place; `None` if it stays as it is.
    pub fn replaced(&self) -> Option<Self> {
        match self {
            Self::Offered(SeatOffered { tools, replaced: None }) => {
                let replaced = Some(ToolDef::digest_of(tools));
                Some(Self::Offered(SeatOffered { tools: Vec::new(), replaced }))
            }
            _ => None,
        }
    }
}

/// A seat was made.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeatCreated {
    /// What it is for.
    pub desc: String,
    /// Digest of the token that opens it.
    pub token: Digest,
    /// The roles it takes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// The tools it executes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolDef>,
    /// Who made it; older seats do not know.
    pub by: Option<CallerRef>,
    /// Whether a person sits there; older seats do not say.
    pub person: Option<bool>,
}

/// A seat was given up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeatClosed {
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// What can be asked of a seat.
#[derive(Debug, Clone, PartialEq)]
pub enum SeatInput {
    /// Make it.
    Create(Box<NewSeat>),
    /// Let it execute these tools, and no others.
    Offer {
        /// All of them.
        tools: Vec<ToolDef>,
    },
    /// Give it up.
    Close {
        /// Why.
        reason: String,
    },
}

/// A seat that is to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct NewSeat {
    /// What it is for.
    pub desc: String,
    /// Digest of the token that opens it.
    pub token: Digest,
    /// The roles it takes.
    pub roles: Vec<String>,
    /// The tools it executes, under its own id.
    pub tools: Vec<ToolDef>,
    /// Whether a person sits there, who decides what is left to people.
    pub person: bool,
}

/// A seat as its journal tells it.
#[derive(Debug, Clone, PartialEq)]
pub struct Seat {
    /// Its id.
    pub id: SeatId,
    /// When it was made.
    pub made_at: Timestamp,
    /// What it is for.
    pub desc: String,
    /// Digest of the token that opens it.
    pub token: Digest,
    /// The roles it takes.
    pub roles: Vec<String>,
    /// The tools it executes.
    pub tools: Vec<ToolDef>,
    /// Who made it.
    pub by: Option<CallerRef>,
    /// Whether a person sits there. Seats of older cores do not say; they are asked about runs of
    /// the person who made them, and about nothing that is left to people.
    pub person: Option<bool>,
    /// Why it was given up, once it was.
    pub closed: Option<String>,
}

impl Seat {
    /// Whether it can still be taken.
    pub fn is_open(&self) -> bool {
        self.closed.is_none()
    }

    /// Decides about an input; `seat` is `None` while it is not known.
    pub fn decide(
        seat: Option<&Self>,
        id: &SeatId,
        input: &SeatInput,
        by: &CallerRef,
    ) -> Result<Option<(SeatEntry, AuditRecord)>, Fault> {
        let record = |event| AuditRecord::new(event, &by.grant, id);
        match (input, seat) {
            (SeatInput::Create(_), Some(_)) => {
                Err(Fault::new(Code::RequestInvalid, format!("The seat {id} exists already.")))
            }
            (SeatInput::Create(new), None) => {
                new.check()?;
                by.rights().check_verb(Verb::Operate)?;
                if new.person && !by.person {
                    let message = "Only a person can make a seat for a person.";
                    return Err(Fault::new(Code::PermissionDenied, message));
                }
                let created = SeatCreated {
                    desc: new.desc.clone(),
                    token: new.token.clone(),
                    roles: new.roles.clone(),
                    tools: new.tools.clone(),
                    by: Some(by.clone()),
                    person: Some(new.person),
                };
                let record = record(AuditEvent::SEAT_CREATED)
                    .fact("roles", new.roles.len())
                    .fact("person", new.person);
                Ok(Some((SeatEntry::Created(Box::new(created)), record)))
            }
            (SeatInput::Offer { .. } | SeatInput::Close { .. }, None) => Err(unknown(id)),
            (SeatInput::Offer { .. }, Some(seat)) if !seat.is_open() => Err(unknown(id)),
            (SeatInput::Offer { tools }, Some(seat)) if seat.tools == *tools => Ok(None),
            (SeatInput::Offer { tools }, Some(_)) => {
                check_tools(tools)?;
                let record = record(AuditEvent::SEAT_TOOLS_OFFERED).fact("tools", tools.len());
                let offered = SeatOffered { tools: tools.clone(), replaced: None };
                Ok(Some((SeatEntry::Offered(offered), record)))
            }
            (SeatInput::Close { .. }, Some(seat)) if !seat.is_open() => Ok(None),
            (SeatInput::Close { reason }, Some(_)) => {
                let closed = SeatClosed { reason: reason.clone() };
                Ok(Some((SeatEntry::Closed(closed), record(AuditEvent::SEAT_CLOSED))))
            }
        }
    }

    /// The seat after an entry; `None` if the entry cannot follow.
    pub fn apply(
        seat: Option<Self>,
        id: &SeatId,
        at: Timestamp,
        entry: &SeatEntry,
    ) -> Option<Self> {
        match (seat, entry) {
            (None, SeatEntry::Created(created)) => Some(Self {
                id: id.clone(),
                made_at: at,
                desc: created.desc.clone(),
                token: created.token.clone(),
                roles: created.roles.clone(),
                tools: created.tools.clone(),
                by: created.by.clone(),
                person: created.person,
                closed: None,
            }),
            // A later entry says all that this one did.
            (Some(seat), SeatEntry::Offered(SeatOffered { replaced: Some(_), .. })) => Some(seat),
            (Some(seat), SeatEntry::Offered(offered)) if seat.is_open() => {
                Some(Self { tools: offered.tools.clone(), ..seat })
            }
            (Some(seat), SeatEntry::Closed(closed)) if seat.is_open() => {
                Some(Self { closed: Some(closed.reason.clone()), ..seat })
            }
            _ => None,
        }
    }
}

impl NewSeat {
    fn check(&self) -> Result<(), Fault> {
        let invalid = |message: String| Err(Fault::new(Code::RequestInvalid, message));
        if self.desc.len() > SEAT_TEXT_BYTES_MAX {
            return invalid(format!("`desc` may have {SEAT_TEXT_BYTES_MAX} bytes."));
        }
        let is_role =
            |role: &String| (1..=128).contains(&role.len()) && !role.chars().any(char::is_control);
        if self.roles.len() > SEAT_ROLES_MAX || !self.roles.iter().all(is_role) {
            return invalid(format!(
                "`roles` may have {SEAT_ROLES_MAX} items of 1 to 128 bytes without control \
                 characters."
            ));
        }
        check_tools(&self.tools)
    }
}

/// All tools are written down whenever one of them changes.
fn check_tools(tools: &[ToolDef]) -> Result<(), Fault> {
    let bytes = || serde_json::to_vec(tools).map_or(usize::MAX, |text| text.len());
    if tools.len() > SEAT_TOOLS_MAX || bytes() > SEAT_TOOLS_BYTES_MAX {
        let message = format!(
            "A seat may execute {SEAT_TOOLS_MAX} tools, of {SEAT_TOOLS_BYTES_MAX} bytes in all."
        );
        return Err(Fault::new(Code::RequestInvalid, message));
    }
    Ok(())
}

/// There is no such seat, and the name could not even be one.
pub fn unknown_text(text: &str) -> Fault {
    let shown = shown(text, 60);
    Fault::new(Code::SeatNotFound, format!("There is no seat {shown}."))
}

/// There is no such seat.
pub fn unknown(id: &SeatId) -> Fault {
    Fault::new(Code::SeatNotFound, format!("There is no seat {id}."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Caller;

    fn new() -> SeatInput {
        SeatInput::Create(Box::new(NewSeat {
            desc: "night shift".into(),
            token: Digest::of(&[b"t"]),
            roles: vec!["senior".into()],
            tools: Vec::new(),
            person: false,
        }))
    }

    #[test]
    fn a_seat_is_made_once_and_closed_once() {
        let id = SeatId::new("S-1").expect("valid");
        let by = Caller::owner().to_ref();
        let decide = |seat: Option<&Seat>, input: &SeatInput| Seat::decide(seat, &id, input, &by);
        let (created, record) = decide(None, &new()).expect("may").expect("changes");
        assert_eq!(record.event, "seat.created");
        let seat = Seat::apply(None, &id, Timestamp(7), &created);
        assert_eq!(Seat::apply(seat.clone(), &id, Timestamp(8), &created), None);
        assert!(decide(seat.as_ref(), &new()).is_err());
        let close = SeatInput::Close { reason: "over".into() };
        let (entry, _) = decide(seat.as_ref(), &close).expect("may").expect("changes");
        let closed = Seat::apply(seat, &id, Timestamp(9), &entry);
        assert!(!closed.as_ref().expect("closed").is_open());
        assert_eq!(decide(closed.as_ref(), &close).expect("may"), None);
        assert!(decide(None, &close).expect_err("unknown").is(Code::SeatNotFound));
    }

    #[test]
    fn o001_only_whoever_may_operate_makes_a_seat() {
        let id = SeatId::new("S-1").expect("valid");
        let mut rights = crate::grant::Rights::all();
        rights.verbs.remove(&Verb::Operate);
        let by = Caller::token("g-1", rights).to_ref();
        let refused = Seat::decide(None, &id, &new(), &by).expect_err("refused");
        assert!(refused.is(Code::PermissionDenied));
    }

    #[test]
    fn o001_what_a_seat_executes_is_bounded_in_bytes() {
        let id = SeatId::new("S-1").expect("valid");
        let with = |bytes: usize| {
            let SeatInput::Create(mut seat) = new() else { panic!("a new seat") };
            let schema = serde_json::json!({ "description": "x".repeat(bytes) });
            seat.tools = vec![ToolDef::new("S-1/a".parse().expect("valid"), "", schema)];
            Seat::decide(None, &id, &SeatInput::Create(seat), &Caller::owner().to_ref())
        };
        assert!(with(SEAT_TOOLS_BYTES_MAX / 2).is_ok());
        let refused = with(SEAT_TOOLS_BYTES_MAX).expect_err("too much");
        assert!(refused.is(Code::RequestInvalid), "{refused}");
    }

    #[test]
    fn o001_only_a_person_makes_a_seat_for_a_person() {
        let id = SeatId::new("S-1").expect("valid");
        let SeatInput::Create(mut seat) = new() else { panic!("a new seat") };
        seat.person = true;
        let made =
            |by: &Caller| Seat::decide(None, &id, &SeatInput::Create(seat.clone()), &by.to_ref());
        let token = Caller::token("g-1", crate::grant::Rights::all());
        assert!(made(&token).expect_err("refused").is(Code::PermissionDenied));
        let (entry, _) = made(&Caller::owner()).expect("may").expect("changes");
        let seat = Seat::apply(None, &id, Timestamp(7), &entry).expect("a seat");
        assert!(Caller::seat(&seat).person);
    }
}
