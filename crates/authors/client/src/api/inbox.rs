//! Questions, approvals, and the seats that operators answer them from.

use wharf_wire::operator_v1::{NewSeat, Seat, SeatMade};
use wharf_wire::rest_v1::{AnswerQuestion, Ask, AskDetail, DecideApproval};

use crate::call::{Call, List};
use crate::client::Client;

/// The inbox, as [`Client::inbox`] gives it.
#[derive(Debug, Clone, Copy)]
pub struct Inbox<'a>(pub(super) &'a Client);

impl Inbox<'_> {
    /// What is open and may be answered with this token.
    pub fn list(&self) -> List<Ask> {
        List::new(self.0, &["v1", "inbox"])
    }

    /// Those that were decided, expired or were needed no more, the newest first.
    pub fn decided(&self) -> List<Ask> {
        List::new(self.0, &["v1", "asks"]).query("state", Some("decided"))
    }

    /// One ask with all that helps to decide it.
    pub fn get(&self, ask: &str) -> Call<AskDetail> {
        self.0.read_at(&["v1", "asks", ask])
    }

    /// Answers a question, or declines to.
    pub fn answer(&self, ask: &str, answer: &AnswerQuestion) -> Call<()> {
        self.0.post_to(&["v1", "questions", ask, "answer"]).body(answer)
    }

    /// Approves or denies what an approval asks for.
    pub fn decide(&self, ask: &str, decision: &DecideApproval) -> Call<()> {
        self.0.post_to(&["v1", "approvals", ask, "decide"]).body(decision)
    }
}

/// Seats of operators, as [`Client::seats`] gives them.
#[derive(Debug, Clone, Copy)]
pub struct Seats<'a>(pub(super) &'a Client);

impl Seats<'_> {
    /// Creates a seat; the answer alone shows its token.
    pub fn create(&self, seat: &NewSeat) -> Call<SeatMade> {
        self.0.post_to(&["v1", "operators"]).body(seat)
    }

    /// All seats this token may see.
    pub fn list(&self) -> List<Seat> {
        List::new(self.0, &["v1", "operators"])
    }

    /// One seat.
    pub fn get(&self, seat: &str) -> Call<Seat> {
        self.0.read_at(&["v1", "operators", seat])
    }

    /// Removes a seat.
    pub fn remove(&self, seat: &str) -> Call<()> {
        self.0.delete_at(&["v1", "operators", seat])
    }
}
