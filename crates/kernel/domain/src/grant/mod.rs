//! Grants: scoped, expiring rights that a token carries.
//!
//! A grant is made by somebody who has at least as many rights, is remembered so that it can be
//! listed and revoked, and can be narrowed by its bearer without asking anybody.

pub mod console;
pub mod owner;
mod rights;
pub mod stamp;
pub mod token;
pub mod worker;

use serde::{Deserialize, Serialize};
use wharf_vocab::{AccountId, Code, Fault, GrantId, Micro, Timestamp};

pub use console::{ConsoleBegun, ConsoleHalves, ConsoleSeen};
pub use owner::OwnerKey;
pub use rights::{Narrowing, Rights};
pub use stamp::StampKind;
pub use token::{Bearer, Keyring, Token};
pub use worker::{WorkerGrant, WorkerScope};

use crate::{AuditEvent, AuditRecord, Caller, CallerRef, LedgerOp};

/// Longest label of a grant.
pub const LABEL_BYTES_MAX: usize = 200;
/// Most that the rights of a grant may take up as JSON, so that its token has room to be narrowed.
pub const RIGHTS_BYTES_MAX: usize = token::TOKEN_BYTES_MAX / 2;

/// A grant that is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Its id.
    pub id: GrantId,
    /// When it was made.
    pub made_at: Timestamp,
    /// Who made it.
    pub by: CallerRef,
    /// What it is for, in its maker's words.
    pub label: String,
    /// What it gives.
    pub rights: Rights,
    /// Whether its bearer is a person.
    pub person: bool,
    /// The most its runs may cost; then it has an account of its own.
    pub budget_micro: Option<Micro>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// What it is known by, if it is a browser's session at the console and no token.
    pub console: Option<Box<ConsoleHalves>>,
    /// When it was last used, as far as that is written down.
    pub seen_at: Timestamp,
}

/// What is written about a grant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum GrantEntry {
    /// It was made.
    Made(GrantMade),
    /// It was revoked.
    Revoked(GrantRevoked),
    /// A browser signed in at the console.
    Begun(Box<ConsoleBegun>),
    /// A console session was used.
    Seen(ConsoleSeen),
}

/// A grant was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantMade {
    /// What it is for.
    pub label: String,
    /// What it gives.
    pub rights: Rights,
    /// Whether its bearer is a person.
    pub person: bool,
    /// The most its runs may cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_micro: Option<Micro>,
    /// Who made it.
    pub by: CallerRef,
}

/// A grant was revoked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantRevoked {
    /// Who revoked it.
    pub by: CallerRef,
}

/// What can be asked of a grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantInput {
    /// Make it.
    Make(Box<NewGrant>),
    /// Let it be worth nothing from now on.
    Revoke,
    /// Sign a browser in.
    Begin(Box<ConsoleHalves>),
    /// A console session is used.
    Seen {
        /// When.
        at: Timestamp,
    },
}

/// What is decided about a grant: an entry, what becomes of accounts, and what the audit is told.
pub type GrantDecision = (GrantEntry, Vec<LedgerOp>, Option<AuditRecord>);

/// A grant that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewGrant {
    /// What it is for.
    pub label: String,
    /// What it gives.
    pub rights: Rights,
    /// Whether its bearer is a person.
    pub person: bool,
    /// The most its runs may cost.
    pub budget_micro: Option<Micro>,
}

impl NewGrant {
    /// Whether `caller` may make it: nobody gives more than they have, neither rights nor money,
    /// only people make tokens for people, and a budget lies in exactly one world.
    pub fn check(&self, caller: &Caller) -> Result<(), Fault> {
        let denied = |message: &str| Err(Fault::new(Code::PermissionDenied, message));
        if !caller.rights.covers(&self.rights) {
            return denied("A token cannot give more rights than the token it is made with.");
        }
        if self.person && !caller.person {
            return denied("Only a person can make a token for a person.");
        }
        // The new grant would not spend from the account of the old one.
        if caller.account.is_some() {
            return denied("A token with a budget cannot make tokens; narrow it instead.");
        }
        self.check_size()?;
        if self.budget_micro.is_some() && self.rights.only_world().is_none() {
            let message = "A token with a budget must name exactly one world.";
            return Err(Fault::new(Code::RequestInvalid, message));
        }
        Ok(())
    }

    fn check_size(&self) -> Result<(), Fault> {
        let invalid = |message: &str| Err(Fault::new(Code::RequestInvalid, message));
        if self.label.len() > LABEL_BYTES_MAX || self.label.chars().any(char::is_control) {
            return invalid("The label of a token is one line of at most 200 bytes.");
        }
        let bytes = serde_json::to_vec(&self.rights).map_or(usize::MAX, |json| json.len());
        if bytes > RIGHTS_BYTES_MAX {
            return invalid("A token cannot name that many worlds and tools.");
        }
        Ok(())
    }
}

impl Grant {
    /// Decides about an input; `grant` is `None` while it is not known.
    pub fn decide(
        grant: Option<&Self>,
        id: &GrantId,
        input: &GrantInput,
        by: &CallerRef,
    ) -> Result<Option<GrantDecision>, Fault> {
        let record = |event| AuditRecord::new(event, &by.grant, id);
        match (input, grant) {
            (GrantInput::Make(_) | GrantInput::Begin(_), Some(_)) => {
                Err(Fault::new(Code::RequestInvalid, format!("The grant {id} exists already.")))
            }
            (GrantInput::Make(new), None) => {
                let open = new.budget_micro.zip(new.rights.only_world()).map(|(limit, world)| {
                    LedgerOp::Open {
                        account: AccountId::of_grant(id),
                        parent: Some(AccountId::of_world(world)),
                        limit: Some(limit),
                    }
                });
                let record = record(AuditEvent::GRANT_MADE).fact("person", new.person);
                let made = GrantMade {
                    label: new.label.clone(),
                    rights: new.rights.clone(),
                    person: new.person,
                    budget_micro: new.budget_micro,
                    by: by.clone(),
                };
                Ok(Some((GrantEntry::Made(made), open.into_iter().collect(), Some(record))))
            }
            (GrantInput::Begin(halves), None) => {
                let begun = ConsoleBegun { halves: ConsoleHalves::clone(halves), by: by.clone() };
                let record = record(AuditEvent::CONSOLE_SIGNED_IN).fact("person", by.person);
                Ok(Some((GrantEntry::Begun(Box::new(begun)), Vec::new(), Some(record))))
            }
            (GrantInput::Seen { at }, Some(grant)) => {
                let is_due = grant.console.is_some()
                    && grant.is_good(*at)
                    && *at >= grant.seen_at.plus_ms(console::CONSOLE_SEEN_STEP_MS);
                Ok(is_due.then(|| (GrantEntry::Seen(ConsoleSeen {}), Vec::new(), None)))
            }
            (GrantInput::Revoke | GrantInput::Seen { .. }, None) => {
                Err(Fault::new(Code::GrantNotFound, format!("There is no grant {id}.")))
            }
            (GrantInput::Revoke, Some(grant)) if grant.revoked_at.is_some() => Ok(None),
            (GrantInput::Revoke, Some(grant)) => {
                let entry = GrantEntry::Revoked(GrantRevoked { by: by.clone() });
                let event = match grant.console {
                    Some(_) => AuditEvent::CONSOLE_SIGNED_OUT,
                    None => AuditEvent::GRANT_REVOKED,
                };
                Ok(Some((entry, Vec::new(), Some(record(event)))))
            }
        }
    }

    /// The grant after an entry; `None` if the entry cannot follow.
    pub fn apply(
        grant: Option<Self>,
        id: &GrantId,
        at: Timestamp,
        entry: &GrantEntry,
    ) -> Option<Self> {
        match (entry, grant) {
            (GrantEntry::Made(made), None) => Some(Self {
                id: id.clone(),
                made_at: at,
                by: made.by.clone(),
                label: made.label.clone(),
                rights: made.rights.clone(),
                person: made.person,
                budget_micro: made.budget_micro,
                revoked_at: None,
                console: None,
                seen_at: at,
            }),
            (GrantEntry::Begun(begun), None) => Some(Self::console(id, at, begun)),
            (GrantEntry::Revoked(_), Some(grant)) => Some(Self { revoked_at: Some(at), ..grant }),
            (GrantEntry::Seen(_), Some(grant)) => Some(Self { seen_at: at, ..grant }),
            (GrantEntry::Made(_) | GrantEntry::Begun(_), Some(_))
            | (GrantEntry::Revoked(_) | GrantEntry::Seen(_), None) => None,
        }
    }

    /// Every grant its rights come from that is not a person's own, but for itself: whoever made
    /// it with a token that is not a person's stands in the chain of all that it starts.
    pub fn makers(&self) -> Vec<GrantId> {
        self.by.links()
    }

    /// The account its runs are paid from, when it has one.
    pub fn account(&self) -> Option<AccountId> {
        self.budget_micro.map(|_| AccountId::of_grant(&self.id))
    }
}
