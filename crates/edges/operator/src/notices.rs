//! What seats are told of attempts that they let pass.
//!
//! A notice is kept by the engine until a connection of its seat has taken it; here it waits in
//! memory for that. What was read from the store after a start may have been sent before.

use std::sync::Arc;

use wharf_domain::{Notice, NoticeEnd, Run};
use wharf_vocab::AskId;
use wharf_wire::operator_v1::CoreMessage;

use crate::desk::{Desk, OwedNotice};
use crate::request::RequestId;
use crate::shared::SeatHub;
use crate::to_wire;

/// What a frame has besides the result.
const ENVELOPE_BYTES: usize = 4 * 1024;

/// Reads what is owed to seats.
pub(crate) async fn look_again(shared: &Arc<SeatHub>) {
    let notices = match shared.options.handle.asks().notices().await {
        Ok(notices) => notices,
        Err(fault) => {
            tracing::warn!(code = %fault.code, "the notices could not be read");
            return;
        }
    };
    for notice in notices {
        let owed = OwedNotice { notice: Arc::new(notice), sent: true };
        match message(shared, &owed).await {
            Some(message) => add(shared, owed, message).await,
            None => end(shared, &owed.notice.ask_id, NoticeEnd::Dropped).await,
        }
    }
}

/// An attempt ended that a seat had let pass.
pub(crate) async fn owe(shared: &Arc<SeatHub>, notice: Notice, run: &Run) {
    let owed = OwedNotice { notice: Arc::new(notice), sent: false };
    let message = written(shared, &owed, run);
    add(shared, owed, message).await;
}

async fn add(shared: &Arc<SeatHub>, owed: OwedNotice, message: CoreMessage) {
    let Some(desk) = shared.desk(&owed.notice.seat) else {
        // A seat that is there and could not be taken up is told after the next start.
        if shared.options.handle.seats().get(&owed.notice.seat).is_err() {
            end(shared, &owed.notice.ask_id, NoticeEnd::Dropped).await;
        }
        return;
    };
    if let Some(oldest) = desk.owe(owed, message) {
        end(shared, &oldest.ask_id, NoticeEnd::Dropped).await;
    }
}

/// A notice as it is sent; `None` if its run is gone.
pub(crate) async fn message(shared: &Arc<SeatHub>, owed: &OwedNotice) -> Option<CoreMessage> {
    let run = shared.options.handle.runs().get(&owed.notice.run).await.ok()?;
    Some(written(shared, owed, &run))
}

fn written(shared: &SeatHub, owed: &OwedNotice, run: &Run) -> CoreMessage {
    let (handle, limits) = (&shared.options.handle, &shared.options.limits);
    let agent = to_wire::agent(handle, &owed.notice.tool);
    let bytes_max = limits.frame_bytes_max.saturating_sub(ENVELOPE_BYTES);
    to_wire::hook_after(&owed.notice, run, agent, owed.sent, bytes_max)
}

/// A connection of a seat has taken a notice.
pub(crate) async fn taken(shared: &Arc<SeatHub>, desk: &Desk, req_id: &str) {
    if let Some(RequestId::Notice(id)) = RequestId::read(req_id)
        && desk.paid(&id)
    {
        end(shared, &id, NoticeEnd::Taken).await;
    }
}

/// A seat was given up: nobody is left to be told.
pub(crate) async fn forgive(shared: &Arc<SeatHub>, desk: &Desk) {
    for notice in desk.forgive() {
        end(shared, &notice.ask_id, NoticeEnd::Dropped).await;
    }
}

async fn end(shared: &Arc<SeatHub>, id: &AskId, how: NoticeEnd) {
    if let Err(fault) = shared.options.handle.asks().end_notice(id, how).await {
        tracing::warn!(ask = %id, code = %fault.code, "a notice's end was not kept");
    }
}
