//! The feed of changes as most ask for it: all of it, by the same document. Its frames are written
//! once for all who may know the same, and each socket only adds the name of its operation.
//!
//! Any other document, and the older protocol, are answered field by field as everything is. What
//! comes of it is the same.

use std::any::TypeId;
use std::sync::Arc;

use async_graphql::{Request, Response};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use serde::Serialize;
use tokio::sync::mpsc;
use wharf_views::{ChangeQuery, ChangeTexts};
use wharf_vocab::{Verb, WorldId};
use wharf_wire::rest_v1::{Change, Changes};

use crate::access::CallerSession;
use crate::error::response;

/// The document, with one space wherever there may be any.
pub(crate) const QUERY: &str =
    "subscription { changes { reset items { kind world id seq status } } }";

/// The name that a peer gave an operation.
#[derive(Debug)]
pub(crate) struct OperationId(pub(super) String);

/// Where texts go that are whole messages already.
pub(crate) type Texts = mpsc::Sender<String>;

/// The name of an operation that asks for all changes and for nothing else.
pub(crate) fn asked(request: &Request) -> Option<String> {
    let words = request.query.split_ascii_whitespace();
    let is_it = words.eq(QUERY.split_ascii_whitespace())
        && request.operation_name.is_none()
        && request.variables.is_empty()
        && request.extensions.is_empty();
    let id = request.data.get(&TypeId::of::<OperationId>())?.downcast_ref::<OperationId>()?;
    is_it.then(|| id.0.clone())
}

/// Tells what changes until the reader may not know it any more; then it is told why.
pub(crate) fn tell(
    session: CallerSession,
    written: Arc<ChangeTexts>,
    recheck: std::time::Duration,
    (id, texts): (String, Texts),
) -> BoxStream<'static, Response> {
    let told = async move {
        if let Err(fault) = session.verb(Verb::Read) {
            return Some(response(&fault));
        }
        let id = serde_json::to_string(&id).ok()?;
        let mut feed = session.handle.changes();
        let mut tick = tokio::time::interval(recheck);
        let all = ChangeQuery::default();
        loop {
            let frame = tokio::select! {
                frame = feed.next() => Some(frame?),
                _ = tick.tick() => None,
            };
            if let Err(fault) = session.current() {
                return Some(response(&fault));
            }
            let text = frame.and_then(|frame| written.of(&frame, &all, &session.caller));
            let Some(text) = text else { continue };
            let message =
                format!(r#"{{"type":"next","id":{id},"payload":{{"data":{{"changes":{text}}}}}}}"#);
            // Without a socket nobody reads it.
            texts.send(message).await.ok()?;
        }
    };
    stream::once(told).filter_map(std::future::ready).boxed()
}

/// A frame as GraphQL shows it: amounts are texts, and what is absent is null.
#[derive(Serialize)]
struct Frame<'a> {
    reset: bool,
    items: Vec<Item<'a>>,
}

#[derive(Serialize)]
struct Item<'a> {
    kind: &'static str,
    world: Option<&'a str>,
    id: &'a str,
    seq: String,
    status: &'a str,
}

fn item(change: &Change) -> Item<'_> {
    let Change { kind, world, id, seq, status } = change;
    let world = world.as_ref().map(WorldId::as_str);
    Item { kind: kind.as_str(), world, id, seq: seq.to_string(), status }
}

/// The text of a frame.
pub(crate) fn write(shown: &Changes) -> Option<String> {
    let items = shown.items.iter().map(item).collect();
    serde_json::to_string(&Frame { reset: shown.reset, items }).ok()
}
