//! Seats: the durable place of an operator.

use serde::{Deserialize, Serialize};
use wharf_vocab::{Digest, SeatId};

/// What is written about a seat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SeatEntry {
    /// It was made.
    Created {
        /// What it is for.
        desc: String,
        /// Digest of the token that opens it.
        token: Digest,
    },
    /// It was given up.
    Closed,
}

/// A seat as its journal tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seat {
    /// Its id.
    pub id: SeatId,
    /// What it is for.
    pub desc: String,
    /// Digest of the token that opens it.
    pub token: Digest,
    /// Whether it can still be taken.
    pub open: bool,
}

impl Seat {
    /// The seat after an entry; `None` if the entry cannot follow.
    #[must_use]
    pub fn apply(seat: Option<Self>, id: &SeatId, entry: &SeatEntry) -> Option<Self> {
        match (seat, entry) {
            (None, SeatEntry::Created { desc, token }) => {
                Some(Self { id: id.clone(), desc: desc.clone(), token: token.clone(), open: true })
            }
            (Some(seat), SeatEntry::Closed) if seat.open => Some(Self { open: false, ..seat }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seat_is_made_once_and_closed_once() {
        let id = SeatId::new("S-1").expect("valid");
        let created = SeatEntry::Created { desc: "night shift".into(), token: Digest::of(&[b"t"]) };
        let seat = Seat::apply(None, &id, &created);
        assert_eq!(Seat::apply(seat.clone(), &id, &created), None);
        let closed = Seat::apply(seat, &id, &SeatEntry::Closed);
        assert!(!closed.as_ref().expect("closed").open);
        assert_eq!(Seat::apply(closed, &id, &SeatEntry::Closed), None);
    }
}
