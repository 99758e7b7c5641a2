//! Follows a run from any place in its stream to its end.
//!
//! The connection may drop and the core may restart in between: every event is given out exactly
//! once and in order, because each carries its number and the stream is resumed after the last
//! one seen. Nothing is printed here.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use serde_json::Value;
use tokio::time::Instant;
use wharf_vocab::Code;
use wharf_wire::rest_v1::{Event, Run};

use crate::client::Client;
use crate::failure::{Failure, Result};
use crate::sse;

/// How long a core may be away before the command gives up on it.
const OUTAGE_MAX: Duration = Duration::from_secs(60);
/// How long a stream may say nothing at all, keep-alives included, before it counts as dropped.
const SILENCE_MAX: Duration = Duration::from_secs(60);
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);

type Pieces = Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send>>;

/// What there is to tell about a run that is followed.
#[derive(Debug)]
pub(crate) enum News {
    /// Something happened in the run.
    Event(Box<Happened>),
    /// The core is away; it is tried again and again.
    Lost,
    /// The core is back.
    Back,
}

impl News {
    /// What to say about the connection, if that is what the news is about.
    pub(crate) fn of_connection(&self) -> Option<&'static str> {
        match self {
            Self::Event(_) => None,
            Self::Lost => Some("lost the core; waiting for it to come back (wharf up starts it)"),
            Self::Back => Some("the core is back"),
        }
    }
}

/// One event, as it came and as it was understood.
#[derive(Debug)]
pub(crate) struct Happened {
    /// The event's name.
    pub(crate) name: String,
    /// The event's data as the core sent it.
    pub(crate) data: Value,
    /// The event, unless this version does not know its name.
    pub(crate) event: Option<Event>,
}

impl Happened {
    /// The run as it ended, both typed and as the core sent it, if this event is its end.
    pub(crate) fn end(&self) -> Option<(&Run, Value)> {
        let Some(Event::Finished(finished)) = &self.event else { return None };
        let mut run = self.data.clone();
        if let Value::Object(fields) = &mut run {
            // The event's own place and time are no part of the run.
            fields.remove("seq");
            fields.remove("at");
        }
        Some((&finished.run, run))
    }
}

/// A run that is followed.
pub(crate) struct Follower {
    client: Client,
    run: String,
    world: Option<String>,
    after: u64,
    parser: sse::Parser,
    pieces: Option<Pieces>,
    pause: Duration,
    outage: Option<Outage>,
}

struct Outage {
    since: Instant,
    told: bool,
}

impl Follower {
    /// Follows `run` from the event after number `after`.
    pub(crate) fn new(client: Client, run: &str, world: Option<&str>, after: u64) -> Self {
        Self {
            client,
            run: run.to_owned(),
            world: world.map(str::to_owned),
            after,
            parser: sse::Parser::default(),
            pieces: None,
            pause: Duration::ZERO,
            outage: None,
        }
    }

    /// Waits for the next news. It may be dropped while it waits and called again without loss.
    pub(crate) async fn next(&mut self) -> Result<News> {
        loop {
            if let Some(message) = self.parser.pop() {
                match self.understand(&message)? {
                    Some(happened) => return Ok(News::Event(Box::new(happened))),
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
                    if let Some(news) = self.connect().await? {
                        return Ok(news);
                    }
                }
            }
        }
    }

    fn understand(&mut self, message: &sse::Message) -> Result<Option<Happened>> {
        let data: Value = serde_json::from_str(&message.data).map_err(|_| unreadable())?;
        let seq = data.get("seq").and_then(Value::as_u64);
        if seq.is_some_and(|seq| seq <= self.after) {
            return Ok(None);
        }
        self.after = seq.unwrap_or(self.after);
        self.pause = Duration::ZERO;
        let event = Event::parse(&message.event, &message.data).map_err(|_| unreadable())?;
        Ok(Some(Happened { name: message.event.clone(), data, event }))
    }

    fn drop_connection(&mut self) {
        self.pieces = None;
        // A message that was cut in the middle comes again after the reconnect.
        self.parser = sse::Parser::default();
    }

    async fn connect(&mut self) -> Result<Option<News>> {
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).clamp(PAUSE_MIN, PAUSE_MAX);
        match self.open().await {
            Ok(pieces) => {
                self.pieces = Some(pieces);
                let told = self.outage.take().is_some_and(|outage| outage.told);
                Ok(told.then_some(News::Back))
            }
            Err(failure) if failure.is_outage() => self.wait_on(&failure),
            Err(failure) => Err(failure),
        }
    }

    async fn open(&mut self) -> Result<Pieces> {
        self.client = self.client.found_again()?;
        let after = self.after.to_string();
        let path = ["v1", "runs", &self.run, "events"];
        let query = [("world", self.world.as_deref()), ("after", Some(after.as_str()))];
        Ok(Box::pin(self.client.stream(&path, &query).await?))
    }

    fn wait_on(&mut self, failure: &Failure) -> Result<Option<News>> {
        let outage =
            self.outage.get_or_insert_with(|| Outage { since: Instant::now(), told: false });
        if outage.since.elapsed() > OUTAGE_MAX {
            let message = format!(
                "{}; nothing is lost, so then follow the run again with: wharf runs watch {}",
                failure.message(),
                self.run
            );
            return Err(Failure::new(Code::CoreUnreachable, message));
        }
        let first = !std::mem::replace(&mut outage.told, true);
        Ok(first.then_some(News::Lost))
    }
}

fn unreadable() -> Failure {
    Failure::new(Code::CoreInternal, "the core sent an event that cannot be read")
}

#[cfg(test)]
mod tests;
