//! Seats: making, closing and looking at them, and news of asks for whoever sits there.

use std::sync::Arc;

use tokio::sync::broadcast::{self, error::RecvError};
use wharf_domain::seat::unknown;
use wharf_domain::{
    Caller, CallerRef, Entry, NewSeat, Notice, NoticeEnd, Run, Seat, SeatInput, ToolDef,
};
use wharf_ports::Stored;
use wharf_vocab::limits::OFFER_BYTES_MAX;
use wharf_vocab::{
    AskId, Code, Digest, Fault, ProviderId, RunKey, SeatId, ShardId, StreamId, StreamKind, ToolId,
    Verb, WorldId,
};

use super::names::Named;
use super::{Handle, misfit};
pub use crate::hub::AskNews;
use crate::shard::{Input, RecordInput};

/// How long a seat that was given up counts among those of whoever made it.
const SEAT_COUNTS_MS: u64 = 60_000;

/// A reader of what happens to asks.
#[derive(Debug)]
pub struct AskFeed(broadcast::Receiver<AskNews>);

impl AskFeed {
    /// What happens next; `None` once the engine has ended. A reader that was too slow learns that
    /// it missed something, and looks at the inbox again.
    pub async fn next(&mut self) -> Option<AskNews> {
        match self.0.recv().await {
            Ok(news) => Some(news),
            Err(RecvError::Lagged(_)) => Some(AskNews::Missed),
            Err(RecvError::Closed) => None,
        }
    }
}

impl Handle {
    /// Makes a seat under an id that nobody can guess.
    pub async fn create_seat(
        &self,
        caller: &Caller,
        id: SeatId,
        new: NewSeat,
    ) -> Result<Seat, Fault> {
        caller.rights.check_verb(Verb::Operate)?;
        new.tools.iter().try_for_each(|def| caller.rights.check_tool(&def.tool))?;
        let now = self.now();
        // Each one is written down for good, so there are not many in a short time either.
        let counts = |seat: &Seat| seat.is_open() || now.ms_since(seat.made_at) < SEAT_COUNTS_MS;
        let whose = |seat: &Seat| seat.by.as_ref().and_then(CallerRef::share);
        let shares =
            self.inner.records.seats.find(|seat| counts(seat).then(|| whose(seat))).into_iter();
        let _place = self.inner.names.take(Named::Seats, caller, shares)?;
        self.change_seat(caller, id, SeatInput::Create(Box::new(new))).await
    }

    /// Whether a seat may be given work of a world, or of a tool, now: whoever made it still could
    /// be.
    pub fn check_seat(&self, seat: &Seat, world: &WorldId, tool: &ToolId) -> Result<(), Fault> {
        let caller = Caller::seat(seat);
        self.check_current(&caller)?;
        caller.rights.check(Verb::Operate, world)?;
        caller.rights.check_tool(tool)
    }

    /// Gives a seat up. A seat may be given up by whoever made it or sits on it, or by an
    /// administrator.
    pub async fn close_seat(
        &self,
        caller: &Caller,
        id: &SeatId,
        reason: String,
    ) -> Result<Seat, Fault> {
        let seat = self.seat(id)?;
        let made = seat.by.as_ref().is_some_and(|by| by.grant == caller.grant);
        if !made && !caller.sits_on(id) {
            caller.rights.check_verb(Verb::Admin)?;
        }
        self.change_seat(caller, id.clone(), SeatInput::Close { reason }).await
    }

    /// Lets a seat execute these tools, and no others.
    pub async fn set_seat_tools(&self, id: &SeatId, tools: Vec<ToolDef>) -> Result<Seat, Fault> {
        let seat = self.seat(id)?;
        if seat.tools == tools {
            return Ok(seat);
        }
        if serde_json::to_string(&tools).is_ok_and(|text| text.len() > OFFER_BYTES_MAX) {
            let message = format!("An offer has {OFFER_BYTES_MAX} bytes at most.");
            return Err(Fault::new(Code::RequestInvalid, message));
        }
        if let Err(wait) = self.may_offer(&format!("seat:{id}")) {
            let message = "The tools of this seat change too often; try again in a moment.";
            let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            return Err(Fault::new(Code::CoreBusy, message).with("retry_after_ms", wait_ms));
        }
        self.change_seat(&Caller::core(), id.clone(), SeatInput::Offer { tools }).await
    }

    /// A seat that can be taken.
    pub fn seat(&self, id: &SeatId) -> Result<Seat, Fault> {
        self.inner.records.seats.get(id).filter(Seat::is_open).ok_or_else(|| unknown(id))
    }

    /// All seats that can be taken, oldest first.
    #[must_use]
    pub fn seats(&self) -> Vec<Seat> {
        let mut seats = self.inner.records.seats.all();
        seats.retain(Seat::is_open);
        seats.sort_by_key(|seat| seat.made_at);
        seats
    }

    /// Who opens a seat with its token. Neither its maker's grant nor those it comes from may
    /// have been revoked since.
    pub fn authenticate_seat(&self, id: &SeatId, token: &str) -> Result<Caller, Fault> {
        let seat = self.seat(id)?;
        let invalid = || Fault::new(Code::AuthInvalid, "This token does not open the seat.");
        // Digests are compared, so how long it takes says nothing about the token.
        if Digest::of(&[token.as_bytes()]) != seat.token {
            return Err(invalid());
        }
        let caller = Caller::seat(&seat);
        self.check_current(&caller).map_err(|_| invalid())?;
        Ok(caller)
    }

    /// Whether the token that a seat was made with is still good. Of a seat that was given up there
    /// is nothing to say.
    pub fn check_seat_current(&self, id: &SeatId) -> Result<(), Fault> {
        match self.seat(id) {
            Ok(seat) => self.check_current(&Caller::seat(&seat)),
            Err(_) => Ok(()),
        }
    }

    /// A run that is under way, as it was last committed.
    #[must_use]
    pub fn live_run(&self, key: &RunKey) -> Option<Arc<Run>> {
        self.inner.hub.run(key)
    }

    /// What happens to asks from now on.
    #[must_use]
    pub fn ask_news(&self) -> AskFeed {
        AskFeed(self.inner.hub.ask_news())
    }

    /// Notices that are owed to seats, in no particular order.
    pub async fn notices(&self) -> Result<Vec<Notice>, Fault> {
        let all = ShardId::all().collect();
        let stored = self.inner.store.load_open(StreamKind::Notice, all).await;
        let stored = stored.map_err(|error| error.to_fault())?;
        let read = |(_, stored): (StreamId, Stored)| {
            let entries = stored.entries.iter().filter_map(|(_, entry)| match entry {
                Entry::Notice(entry) => Some(entry),
                _ => None,
            });
            Notice::replay(entries)
        };
        Ok(stored.into_iter().filter_map(read).collect())
    }

    /// A notice is owed no more.
    pub async fn end_notice(&self, id: &AskId, how: NoticeEnd) -> Result<(), Fault> {
        self.tell(id.shard(), Input::Notice { id: id.clone(), how }).await
    }

    /// Whether a provider is a seat, or was one.
    #[must_use]
    pub fn is_seat(&self, provider: &ProviderId) -> bool {
        SeatId::new(provider.as_str())
            .is_ok_and(|id| self.inner.records.seats.look(&id, |_| ()).is_some())
    }

    async fn change_seat(
        &self,
        caller: &Caller,
        id: SeatId,
        input: SeatInput,
    ) -> Result<Seat, Fault> {
        let changed = self.change(caller, RecordInput::Seat(id, input)).await?;
        changed.into_seat().ok_or_else(misfit)
    }
}
