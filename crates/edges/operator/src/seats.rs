//! Seats: made, taken up, given up, and looked after while nobody sits there.

use std::sync::Arc;
use std::time::Duration;

use wharf_domain::run::AttemptError;
use wharf_domain::{Availability, Caller, NewSeat, Seat, ToolDef};
use wharf_vocab::{Code, Digest, Executed, Fault, ProviderId, SeatId};
use wharf_wire::operator_v1::{self, close as codes};

use crate::desk::{Desk, DeskOrder};
use crate::shared::SeatHub;
use crate::sink::SeatSink;
use crate::{asks, notices};

/// How often seats that are away are looked at.
const SWEEP: Duration = Duration::from_secs(60);
/// How long an operator may take to hear that its seat was given up.
const LEAVE: Duration = Duration::from_millis(500);
/// Why a seat is given up whose maker is gone.
const MAKER_GONE: &str = "the token that made the seat is not good any more";

/// Makes a seat; its token is told this once.
pub(crate) async fn create(
    shared: &Arc<SeatHub>,
    caller: &Caller,
    new: operator_v1::NewSeat,
    tools: impl FnOnce(&SeatId) -> Result<Vec<ToolDef>, Fault>,
) -> Result<(Seat, String), Fault> {
    if shared.desks().len() >= shared.options.seats_max {
        let message = "There are too many seats; give some up first.";
        return Err(Fault::new(Code::CoreBusy, message));
    }
    let id = SeatId::new(format!("S-{}", random_hex(16)?))
        .map_err(|_| Fault::new(Code::CoreInternal, "The seat could not be named."))?;
    let token = random_hex(32)?;
    let new = NewSeat {
        desc: new.desc.unwrap_or_default(),
        token: Digest::of(&[token.as_bytes()]),
        roles: new.roles.unwrap_or_default(),
        tools: tools(&id)?,
        person: new.person.unwrap_or(false),
    };
    let seat = shared.options.handle.seats().create(caller, id, new).await?;
    take_up(shared, seat.clone()).await?;
    asks::look_again(shared).await;
    Ok((seat, token))
}

/// Gives a seat its desk, and its tools a place in the catalog.
pub(crate) async fn take_up(shared: &Arc<SeatHub>, seat: Seat) -> Result<(), Fault> {
    let handle = &shared.options.handle;
    let provider = provider(&seat.id)?;
    let (id, tools) = (seat.id.clone(), seat.tools.clone());
    let desk = Arc::new(Desk::new(seat, handle.now()));
    shared.desks.write().insert(id.clone(), desk);
    handle
        .providers()
        .register(provider.clone(), tools, Arc::new(SeatSink::new(shared, id)))
        .await?;
    // A seat that is away takes attempts, too: they wait for it until their deadline.
    handle.providers().set_availability(provider, Availability::Up).await
}

/// Lets a seat execute one more tool.
pub(crate) async fn add_tool(shared: &SeatHub, seat: &SeatId, def: ToolDef) -> Result<(), Fault> {
    let known = shared.options.handle.seats().get(seat)?;
    if known.tools.iter().any(|tool| tool.tool == def.tool) {
        return Ok(());
    }
    // Nor does it execute what whoever made it may not use.
    Caller::seat(&known).rights.check_tool(&def.tool)?;
    let mut tools = known.tools;
    tools.push(def);
    let seat = shared.options.handle.seats().set_tools(seat, tools).await?;
    shared.options.handle.providers().set_tools(&provider(&seat.id)?, seat.tools)
}

/// Gives a seat up: its connection ends, its tasks fail, and asks that were for it alone go to
/// all others who may answer asks of the world.
pub(crate) async fn close(
    shared: &Arc<SeatHub>,
    caller: &Caller,
    id: &SeatId,
    (code, reason): (u16, &str),
) -> Result<(), Fault> {
    shared.options.handle.seats().close(caller, id, reason.to_owned()).await?;
    let desk = shared.desks.write().remove(id);
    let Some(desk) = desk else { return Ok(()) };
    desk.drain();
    notices::forgive(shared, &desk).await;
    desk.tell(DeskOrder::Close { code, reason: reason.to_owned() });
    shared.background.spawn(async move {
        tokio::time::sleep(LEAVE).await;
        desk.gone.cancel();
    });
    for task in shared.tasks.of_seat(id) {
        let message = format!("The seat that worked on it was given up: {reason}.");
        let fault = Fault::new(Code::ToolUnavailable, message);
        let failed = AttemptError::Failed(fault, Executed::Maybe);
        if let Err(fault) = task.fail(failed).await {
            tracing::warn!(task = %task.id, code = %fault.code, "a task's end was not kept");
        }
        shared.tasks.over(&shared.options.handle, &task);
    }
    asks::look_again(shared).await;
    shared.options.handle.providers().remove(provider(id)?).await
}

/// Text that nobody can guess: so many random bytes in hexadecimal.
pub(crate) fn random_hex(bytes: usize) -> Result<String, Fault> {
    let mut random = vec![0; bytes];
    getrandom::fill(&mut random).map_err(|_| {
        Fault::new(Code::CoreInternal, "The operating system gives no random numbers.")
    })?;
    Ok(hex::encode(random))
}

/// The name under which a seat's tools stand in the catalog.
pub(crate) fn provider(seat: &SeatId) -> Result<ProviderId, Fault> {
    ProviderId::new(seat.as_str())
        .map_err(|_| Fault::new(Code::CoreInternal, "The seat's name does not fit."))
}

/// Gives up seats that have been away for too long.
pub(crate) async fn sweep(shared: Arc<SeatHub>) {
    loop {
        tokio::select! {
            () = shared.stop.cancelled() => return,
            () = tokio::time::sleep(SWEEP.min(shared.options.away_max)) => {}
        }
        let now = shared.options.handle.now();
        for desk in shared.desks() {
            let away = |seen| u128::from(now.ms_since(seen)) >= shared.options.away_max.as_millis();
            if desk.is_taken() || !desk.last_seen().is_some_and(away) {
                continue;
            }
            give_up(&shared, &desk, (codes::NORMAL, "nobody sat there for too long")).await;
        }
    }
}

/// Gives up seats whose makers' tokens were revoked or have expired: whoever sits there has no
/// rights any more, and nothing waits for them.
pub(crate) async fn recheck(shared: Arc<SeatHub>) {
    let mut look = tokio::time::interval(shared.options.recheck);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = shared.stop.cancelled() => return,
            _ = look.tick() => {}
        }
        for desk in shared.desks() {
            if shared.options.handle.trust().check_current(&desk.caller).is_ok() {
                continue;
            }
            give_up(&shared, &desk, (codes::POLICY, MAKER_GONE)).await;
        }
    }
}

async fn give_up(shared: &Arc<SeatHub>, desk: &Desk, why: (u16, &str)) {
    let id = &desk.seat.id;
    if let Err(fault) = close(shared, &Caller::core(), id, why).await {
        tracing::warn!(seat = %id, code = %fault.code, "a seat could not be given up");
    }
}
