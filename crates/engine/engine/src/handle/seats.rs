//! Seats: making, closing and looking at them.

use wharf_domain::seat::unknown;
use wharf_domain::{Caller, CallerRef, NewSeat, Seat, SeatInput, ToolDef};
use wharf_vocab::limits::OFFER_BYTES_MAX;
use wharf_vocab::{Code, Digest, Fault, ProviderId, SeatId, ToolId, Verb, WorldId};

use super::SeatCalls;
use super::names::NameKind;

/// How long a seat that was given up counts among those of whoever made it.
const SEAT_COUNTS_MS: u64 = 60_000;

impl SeatCalls<'_> {
    /// Makes a seat under an id that nobody can guess.
    pub async fn create(self, caller: &Caller, id: SeatId, new: NewSeat) -> Result<Seat, Fault> {
        caller.rights.check_verb(Verb::Operate)?;
        new.tools.iter().try_for_each(|def| caller.rights.check_tool(&def.tool))?;
        let now = self.0.now();
        // Each one is written down for good, so there are not many in a short time either.
        let counts = |seat: &Seat| seat.is_open() || now.ms_since(seat.made_at) < SEAT_COUNTS_MS;
        let whose = |seat: &Seat| seat.by.as_ref().and_then(CallerRef::share);
        let shares =
            self.0.inner.records.seats.find(|seat| counts(seat).then(|| whose(seat))).into_iter();
        let _place = self.0.inner.names.take(NameKind::Seats, caller, shares)?;
        self.0.change(caller, id, SeatInput::Create(Box::new(new))).await
    }

    /// Whether a seat may be given work of a world, or of a tool, now: whoever made it still could
    /// be.
    pub fn check(self, seat: &Seat, world: &WorldId, tool: &ToolId) -> Result<(), Fault> {
        let caller = Caller::seat(seat);
        self.0.trust().check_current(&caller)?;
        caller.rights.check(Verb::Operate, world)?;
        caller.rights.check_tool(tool)
    }

    /// Gives a seat up. A seat may be given up by whoever made it or sits on it, or by an
    /// administrator.
    pub async fn close(self, caller: &Caller, id: &SeatId, reason: String) -> Result<Seat, Fault> {
        let seat = self.get(id)?;
        let made = seat.by.as_ref().is_some_and(|by| by.grant == caller.grant);
        if !made && !caller.sits_on(id) {
            caller.rights.check_verb(Verb::Admin)?;
        }
        self.0.change(caller, id.clone(), SeatInput::Close { reason }).await
    }

    /// Lets a seat execute these tools, and no others.
    pub async fn set_tools(self, id: &SeatId, tools: Vec<ToolDef>) -> Result<Seat, Fault> {
        let seat = self.get(id)?;
        if seat.tools == tools {
            return Ok(seat);
        }
        if serde_json::to_string(&tools).is_ok_and(|text| text.len() > OFFER_BYTES_MAX) {
            let message = format!("An offer has {OFFER_BYTES_MAX} bytes at most.");
            return Err(Fault::new(Code::RequestInvalid, message));
        }
        if let Err(wait) = self.0.providers().may_offer(&format!("seat:{id}")) {
            let message = "The tools of this seat change too often; try again in a moment.";
            let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            return Err(Fault::new(Code::CoreBusy, message).with("retry_after_ms", wait_ms));
        }
        self.0.change(&Caller::core(), id.clone(), SeatInput::Offer { tools }).await
    }

    /// A seat that can be taken.
    pub fn get(self, id: &SeatId) -> Result<Seat, Fault> {
        self.0.inner.records.seats.get(id).filter(Seat::is_open).ok_or_else(|| unknown(id))
    }

    /// All seats that can be taken, oldest first.
    pub fn list(self) -> Vec<Seat> {
        let mut seats = self.0.inner.records.seats.all();
        seats.retain(Seat::is_open);
        seats.sort_by_key(|seat| seat.made_at);
        seats
    }

    /// Who opens a seat with its token. Neither its maker's grant nor those it comes from may
    /// have been revoked since.
    pub fn authenticate(self, id: &SeatId, token: &str) -> Result<Caller, Fault> {
        let seat = self.get(id)?;
        let invalid = || Fault::new(Code::AuthInvalid, "This token does not open the seat.");
        // Digests are compared, so how long it takes says nothing about the token.
        if Digest::of(&[token.as_bytes()]) != seat.token {
            return Err(invalid());
        }
        let caller = Caller::seat(&seat);
        self.0.trust().check_current(&caller).map_err(|_| invalid())?;
        Ok(caller)
    }

    /// Whether the token that a seat was made with is still good. Of a seat that was given up there
    /// is nothing to say.
    pub fn check_current(self, id: &SeatId) -> Result<(), Fault> {
        match self.get(id) {
            Ok(seat) => self.0.trust().check_current(&Caller::seat(&seat)),
            Err(_) => Ok(()),
        }
    }

    /// Whether a provider is a seat, or was one.
    pub fn is_seat(self, provider: &ProviderId) -> bool {
        SeatId::new(provider.as_str())
            .is_ok_and(|id| self.0.inner.records.seats.look(&id, |_| ()).is_some())
    }
}
