//! A browser signed in at the console: a grant of its own that stands for the token it was made
//! with, known by two halves of which the core keeps hashes only.
//!
//! It has exactly the rights, the end and the person of that token, and it ends with it. One that is
//! not used ends after half a day, and none lasts longer than a week.

use serde::{Deserialize, Serialize};
use serde_with_macros::skip_serializing_none;
use wharf_vocab::{AccountId, Code, Digest, Fault, GrantId, Timestamp};

use super::{Grant, Keyring, Rights};
use crate::{Caller, CallerKind, CallerRef};

/// How long a console session lasts after it was last used.
pub const CONSOLE_IDLE_MS: u64 = 12 * 60 * 60 * 1000;
/// How long a console session lasts at most.
pub const CONSOLE_AGE_MS_MAX: u64 = 7 * 24 * 60 * 60 * 1000;
/// How much later a use must be than the last one on record to be written down.
pub const CONSOLE_SEEN_STEP_MS: u64 = 15 * 60 * 1000;

const COOKIE: &[u8] = b"wharf.console.cookie.1";
const KEY: &[u8] = b"wharf.console.key.1";
const SEALED: &[u8] = b"wharf.console.sealed.1";

/// What a console session is known by.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsoleHalves {
    /// The hash of what the cookie carries.
    pub cookie: Digest,
    /// The hash of what the page sends.
    pub key: Digest,
    /// A fingerprint of the key that sealed the token it was made with: with that key, it ends.
    pub sealed_by: Digest,
    /// The account the token spends from, when it has one.
    pub account: Option<AccountId>,
}

impl ConsoleHalves {
    /// What is kept of two halves.
    pub fn of(cookie: &str, key: &str, sealed_by: Digest, account: Option<AccountId>) -> Self {
        let (cookie, key) = (hash(COOKIE, cookie), hash(KEY, key));
        Self { cookie, key, sealed_by, account }
    }

    /// Whether these are the halves. Both are looked at in any case, and how long it takes tells
    /// nothing about them.
    pub fn are(&self, cookie: &str, key: &str) -> bool {
        let cookie = same(&self.cookie, &hash(COOKIE, cookie));
        let key = same(&self.key, &hash(KEY, key));
        std::hint::black_box(cookie & key)
    }
}

/// A browser signed in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsoleBegun {
    /// What it is known by.
    pub halves: ConsoleHalves,
    /// Whoever bears the token it was made with.
    pub by: CallerRef,
}

/// A console session was used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsoleSeen {}

/// A fingerprint of a key that seals tokens. The key cannot be told from it.
pub fn fingerprint(name: &str, key: &[u8]) -> Digest {
    Digest::of(&[SEALED, name.as_bytes(), key])
}

/// A fingerprint of the key that sealed a token, if the keyring has it.
pub fn sealed_by(keyring: &Keyring, token: &str) -> Option<Digest> {
    let name = super::token::key_name(token)?;
    keyring.keys.get(name).map(|key| fingerprint(name, key))
}

/// Whether the key of this fingerprint still seals tokens.
pub fn seals(keyring: &Keyring, sealed_by: &Digest) -> bool {
    keyring.keys.iter().any(|(name, key)| same(sealed_by, &fingerprint(name, key)))
}

impl Grant {
    /// A console session that begins.
    pub(super) fn console(id: &GrantId, at: Timestamp, begun: &ConsoleBegun) -> Self {
        Self {
            id: id.clone(),
            made_at: at,
            by: begun.by.clone(),
            label: "Console".to_owned(),
            rights: Rights::clone(&begun.by.rights()),
            person: begun.by.person,
            budget_micro: None,
            revoked_at: None,
            console: Some(Box::new(begun.halves.clone())),
            seen_at: at,
        }
    }

    /// Until when it is good if it is not used again; for ever when absent.
    pub fn good_until(&self) -> Option<Timestamp> {
        match self.console {
            None => self.rights.until,
            Some(_) => {
                let idle = self.seen_at.plus_ms(CONSOLE_IDLE_MS);
                self.ends_at().map(|end| end.min(idle))
            }
        }
    }

    /// Until when it can be good at most; for ever when absent.
    pub fn ends_at(&self) -> Option<Timestamp> {
        match (&self.console, self.rights.until) {
            (None, until) => until,
            (Some(_), until) => {
                let oldest = self.made_at.plus_ms(CONSOLE_AGE_MS_MAX);
                Some(until.map_or(oldest, |until| until.min(oldest)))
            }
        }
    }

    /// Whether it is in time and not revoked.
    pub fn is_good(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.good_until().is_none_or(|until| until > now)
    }

    /// Who acts with a console session: whoever bears the token that it was made with.
    pub fn console_caller(&self) -> Option<Caller> {
        let halves = self.console.as_ref()?;
        Some(Caller {
            grant: self.by.grant.clone(),
            links: self.by.links(),
            root: self.by.root.clone(),
            person: self.by.person,
            kind: CallerKind::Client,
            account: halves.account.clone(),
            rights: self.by.rights(),
            stands_in: None,
            console: Some(self.id.clone()),
        })
    }
}

/// Whether a caller may sign a browser in: a program or a person with a token, and neither a
/// browser that is signed in already nor anybody who acts by the word of another.
pub fn check_begin(caller: &Caller) -> Result<(), Fault> {
    if caller.console.is_none() && caller.kind == CallerKind::Client && caller.stands_in.is_none() {
        return Ok(());
    }
    let message = "A browser is signed in with a token, not from a session that it has already.";
    Err(Fault::new(Code::PermissionDenied, message))
}

fn hash(what: &[u8], text: &str) -> Digest {
    Digest::of(&[what, text.as_bytes()])
}

fn same(one: &Digest, other: &Digest) -> bool {
    let pairs = one.as_str().bytes().zip(other.as_str().bytes());
    let difference = pairs.fold(0, |difference, (a, b)| difference | (a ^ b));
    one.as_str().len() == other.as_str().len() && std::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GrantInput;
    use wharf_vocab::Verb;

    const HOUR: u64 = 60 * 60 * 1000;

    fn begun(by: &Caller) -> Grant {
        let halves = ConsoleHalves::of("c", "k", Digest::of(&[b"s"]), None);
        let begun = ConsoleBegun { halves, by: by.to_ref() };
        Grant::console(&GrantId::new("c-1").expect("an id"), Timestamp(HOUR), &begun)
    }

    fn seen(grant: Grant, at: u64) -> Option<Grant> {
        let (id, entry) = (grant.id.clone(), super::super::GrantEntry::Seen(ConsoleSeen {}));
        Grant::apply(Some(grant), &id, Timestamp(at), &entry)
    }

    #[test]
    fn c007_a_half_alone_is_worth_nothing() {
        let halves = ConsoleHalves::of("c", "k", Digest::of(&[b"s"]), None);
        assert!(halves.are("c", "k"));
        for (cookie, key) in [("c", ""), ("", "k"), ("k", "c"), ("c", "c"), ("", ""), ("c", "K")] {
            assert!(!halves.are(cookie, key), "{cookie:?} {key:?}");
        }
        // Neither half can be told from what is kept, and the same text twice is not the same hash.
        let twins = ConsoleHalves::of("x", "x", Digest::of(&[b"s"]), None);
        assert_ne!(twins.cookie, twins.key);
    }

    #[test]
    fn c008_a_session_slides_for_half_a_day_and_lasts_a_week_at_most() {
        let grant = begun(&Caller::owner());
        assert_eq!(grant.good_until(), Some(Timestamp(13 * HOUR)));
        assert!(grant.is_good(Timestamp(13 * HOUR - 1)) && !grant.is_good(Timestamp(13 * HOUR)));
        let grant = seen(grant, 10 * HOUR).expect("follows");
        assert_eq!(grant.good_until(), Some(Timestamp(22 * HOUR)));
        let grant = seen(grant, (7 * 24 - 1) * HOUR).expect("follows");
        assert_eq!(grant.good_until(), Some(Timestamp((7 * 24 + 1) * HOUR)));
        assert_eq!(grant.ends_at(), Some(Timestamp((7 * 24 + 1) * HOUR)));
    }

    #[test]
    fn c008_a_session_has_the_rights_the_end_and_the_person_of_its_token() {
        let rights = Rights {
            verbs: [Verb::Read].into(),
            until: Some(Timestamp(2 * HOUR)),
            ..Rights::all()
        };
        let token = Caller::token("g-1", rights);
        let grant = begun(&token);
        assert_eq!(grant.good_until(), Some(Timestamp(2 * HOUR)));
        let acts = grant.console_caller().expect("a session");
        assert_eq!(acts, Caller { console: Some(grant.id.clone()), ..token });
        let owner = begun(&Caller::owner()).console_caller().expect("a session");
        assert!(owner.person && owner.links.is_empty() && *owner.rights == Rights::all());
        assert!(check_begin(&owner).is_err_and(|fault| fault.is(Code::PermissionDenied)));
        assert!(check_begin(&Caller::owner()).is_ok());
    }

    #[test]
    fn c008_only_uses_that_are_worth_it_are_written_down() {
        let grant = begun(&Caller::owner());
        let (id, by) = (grant.id.clone(), Caller::owner().to_ref());
        let decided = |at| {
            let input = GrantInput::Seen { at: Timestamp(at) };
            Grant::decide(Some(&grant), &id, &input, &by).expect("decided").is_some()
        };
        assert!(!decided(HOUR + CONSOLE_SEEN_STEP_MS - 1));
        assert!(decided(HOUR + CONSOLE_SEEN_STEP_MS));
        assert!(!decided(14 * HOUR), "what is over does not come back");
    }

    #[test]
    fn c008_a_session_ends_with_the_key_of_its_token() {
        let keys = |kid: &str, byte| Keyring {
            current: kid.to_owned(),
            keys: [(kid.to_owned(), [byte; 32])].into(),
        };
        let made = sealed_by(&keys("k1", 1), "whf1.k1.x.y").expect("known");
        assert!(seals(&keys("k1", 1), &made));
        assert!(!seals(&keys("k2", 1), &made) && !seals(&keys("k1", 2), &made));
        assert_eq!(sealed_by(&keys("k2", 1), "whf1.k1.x.y"), None);
    }
}
