//! Who asks for something, and who may decide about it.

use serde::{Deserialize, Serialize};
use wharf_vocab::{AccountId, GrantId, IdError, SeatId};

/// Who asks for something: the bearer of a grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The grant the caller's token carries.
    pub grant: GrantId,
    /// Whether the token is a person's own.
    pub person: bool,
    /// The account the grant spends from, when it has one of its own.
    pub account: Option<AccountId>,
}

impl Caller {
    /// The owner of this Wharf, a person with every right.
    #[must_use]
    pub fn owner() -> Self {
        Self { grant: GrantId::new("owner").expect("a valid id"), person: true, account: None }
    }

    /// The core itself, which may decide nothing that is left to people.
    #[must_use]
    pub fn core() -> Self {
        Self { grant: GrantId::new("core").expect("a valid id"), person: false, account: None }
    }

    /// What a run remembers of its caller.
    #[must_use]
    pub fn to_ref(&self) -> CallerRef {
        CallerRef { grant: self.grant.clone(), person: self.person }
    }
}

/// What a run remembers of whoever started it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallerRef {
    /// The grant it was started with.
    pub grant: GrantId,
    /// Whether that was a person's own.
    pub person: bool,
}

/// Who may decide an ask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Audience {
    /// Only a person.
    Person,
    /// Only the holder of this seat.
    Seat(SeatId),
    /// Whoever may answer asks of the world.
    Any,
}

impl std::fmt::Display for Audience {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Person => f.write_str("person"),
            Self::Seat(seat) => write!(f, "seat:{seat}"),
            Self::Any => f.write_str("any"),
        }
    }
}

impl From<Audience> for String {
    fn from(audience: Audience) -> String {
        audience.to_string()
    }
}

impl TryFrom<String> for Audience {
    type Error = IdError;
    fn try_from(text: String) -> Result<Self, IdError> {
        match text.as_str() {
            "person" => Ok(Self::Person),
            "any" => Ok(Self::Any),
            other => match other.strip_prefix("seat:") {
                Some(seat) => Ok(Self::Seat(SeatId::new(seat)?)),
                None => Err(IdError { what: "an audience" }),
            },
        }
    }
}
