//! Follows a run from any of its events to its end.
//!
//! The connection may drop and the core may restart in between: every event is given out exactly
//! once and in order, because each carries its number and the stream is resumed after the last
//! one seen.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use reqwest::Method;
use serde_json::Value;
use tokio::time::Instant;
use wharf_protocol::sse;
use wharf_vocab::Code;
use wharf_wire::rest_v1::{Event, Run};

use crate::client::{Client, MESSAGE_BYTES_MAX};
use crate::error::{Error, Result};

/// How long a core may be away before the command gives up on it.
const OUTAGE_MAX: Duration = Duration::from_secs(60);
/// How long a stream may say nothing at all, keep-alives included, before it counts as dropped.
const SILENCE_MAX: Duration = Duration::from_secs(60);
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);

type ByteStream = Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send>>;

/// What a follower reports.
#[derive(Debug)]
pub enum Update {
    /// Something event in the run.
    Event(Box<RunEvent>),
    /// The core is away; the follower tries to reach it again.
    Disconnected,
    /// The core is back.
    Reconnected,
}

/// One event, as the core sent it and as this version understands it.
#[derive(Debug)]
pub struct RunEvent {
    /// The event's name.
    pub name: String,
    /// The event's data as the core sent it.
    pub data: Value,
    /// The event, unless this version does not know its name.
    pub event: Option<Event>,
}

impl RunEvent {
    /// If this event ends the run: the run, and the same as the core sent it.
    #[must_use]
    pub fn end(&self) -> Option<(&Run, Value)> {
        let Some(Event::Finished(finished)) = &self.event else { return None };
        let mut run = self.data.clone();
        if let Value::Object(fields) = &mut run {
            // The event's own number and time are no part of the run.
            fields.remove("seq");
            fields.remove("at");
        }
        Some((&finished.run, run))
    }
}

/// A run that is followed.
pub struct Follower {
    client: Client,
    run: String,
    world: Option<String>,
    after: u64,
    parser: sse::Parser,
    pieces: Option<ByteStream>,
    pause: Duration,
    outage: Option<Outage>,
}

struct Outage {
    since: Instant,
    reported: bool,
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower").field("run", &self.run).field("after", &self.after).finish()
    }
}

impl Follower {
    /// Follows `run` from the event after number `after`.
    pub(crate) fn new(client: Client, run: &str, world: Option<&str>, after: u64) -> Self {
        Self {
            client,
            run: run.to_owned(),
            world: world.map(str::to_owned),
            after,
            parser: sse::Parser::new(MESSAGE_BYTES_MAX),
            pieces: None,
            pause: Duration::ZERO,
            outage: None,
        }
    }

    /// Follows the run to its end.
    pub async fn end(mut self) -> Result<Run> {
        loop {
            if let Update::Event(event) = self.next().await?
                && let Some((run, _)) = event.end()
            {
                return Ok(run.clone());
            }
        }
    }

    /// Waits for the next update. The future may be dropped and `next` called again without loss.
    pub async fn next(&mut self) -> Result<Update> {
        loop {
            if let Some(message) = self.parser.pop() {
                match self.understand(&message)? {
                    Some(event) => return Ok(Update::Event(Box::new(event))),
                    None => continue,
                }
            }
            match &mut self.pieces {
                Some(pieces) => {
                    let piece = tokio::time::timeout(SILENCE_MAX, pieces.next()).await;
                    match piece {
                        Ok(Some(Ok(piece))) => {
                            self.parser.push(&piece).map_err(|_| unreadable())?
                        }
                        // The stream ended without the run's end, broke, or fell silent.
                        _ => self.drop_connection(),
                    }
                }
                None => {
                    if let Some(update) = self.connect().await? {
                        return Ok(update);
                    }
                }
            }
        }
    }

    fn understand(&mut self, message: &sse::SseMessage) -> Result<Option<RunEvent>> {
        let data: Value = serde_json::from_str(&message.data).map_err(|_| unreadable())?;
        let seq = data.get("seq").and_then(Value::as_u64);
        if seq.is_some_and(|seq| seq <= self.after) {
            return Ok(None);
        }
        self.after = seq.unwrap_or(self.after);
        self.pause = Duration::ZERO;
        let event = Event::parse(&message.event, &message.data).map_err(|_| unreadable())?;
        Ok(Some(RunEvent { name: message.event.clone(), data, event }))
    }

    fn drop_connection(&mut self) {
        self.pieces = None;
        // A message that was cut in the middle comes again after the reconnect.
        self.parser = sse::Parser::new(MESSAGE_BYTES_MAX);
    }

    async fn connect(&mut self) -> Result<Option<Update>> {
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).clamp(PAUSE_MIN, PAUSE_MAX);
        match self.open().await {
            Ok(pieces) => {
                self.pieces = Some(pieces);
                let reported = self.outage.take().is_some_and(|outage| outage.reported);
                Ok(reported.then_some(Update::Reconnected))
            }
            Err(error) if error.is_outage() => self.wait_on(&error),
            Err(error) => Err(error),
        }
    }

    async fn open(&mut self) -> Result<ByteStream> {
        self.client = self.client.found_again()?;
        let after = self.after.to_string();
        let path = ["v1", "runs", &self.run, "events"];
        let mut request = self.client.request(Method::GET, &path);
        if let Some(world) = &self.world {
            request = request.query(&[("world", world)]);
        }
        Ok(Box::pin(self.client.stream(request.query(&[("after", after)])).await?))
    }

    fn wait_on(&mut self, error: &Error) -> Result<Option<Update>> {
        let outage =
            self.outage.get_or_insert_with(|| Outage { since: Instant::now(), reported: false });
        if outage.since.elapsed() > OUTAGE_MAX {
            let message = format!(
                "{}; nothing is lost; once it is back, follow the run with: wharf runs watch {}",
                error.message(),
                self.run
            );
            return Err(Error::new(Code::CoreUnreachable, message));
        }
        let first = !std::mem::replace(&mut outage.reported, true);
        Ok(first.then_some(Update::Disconnected))
    }
}

fn unreadable() -> Error {
    Error::new(Code::CoreInternal, "the core sent an event that cannot be read")
}

#[cfg(test)]
mod tests;
