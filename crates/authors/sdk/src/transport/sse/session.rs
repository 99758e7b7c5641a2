//! A session at the side that is connected to: messages that were posted, events that are read.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use serde::Deserialize;
use tokio::sync::mpsc;
use tokio::time::{Sleep, sleep};

use super::listener::Sessions;
use super::outlet::Outlet;
use crate::transport::link::{Frames, LinkBroken};

/// The frames of a session.
pub(super) struct SseSession {
    key: String,
    sessions: Arc<Sessions>,
    outlet: Arc<Outlet>,
    posts: mpsc::Receiver<String>,
    unread_max: Duration,
    /// When a session that nobody reads ends.
    unread: Option<Pin<Box<Sleep>>>,
}

/// What tells what a message is about.
#[derive(Deserialize)]
struct MessageHead {
    #[serde(rename = "type")]
    what: Option<String>,
    id: Option<String>,
    kind: Option<String>,
}

impl SseSession {
    pub(super) fn new(
        key: String,
        sessions: Arc<Sessions>,
        outlet: Arc<Outlet>,
        posts: mpsc::Receiver<String>,
        unread_max: Duration,
    ) -> Self {
        Self { key, sessions, outlet, posts, unread_max, unread: None }
    }

    /// Whether nobody has read for too long.
    fn poll_unread(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.outlet.watch_readers(cx);
        if self.outlet.readers() > 0 {
            self.unread = None;
            return Poll::Pending;
        }
        let wait = self.unread_max;
        self.unread.get_or_insert_with(|| Box::pin(sleep(wait))).as_mut().poll(cx)
    }
}

impl Frames for SseSession {
    type Text = String;

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<String>> {
        if let Poll::Ready(post) = self.posts.poll_recv(cx) {
            let head: Option<MessageHead> =
                post.as_ref().and_then(|it| serde_json::from_str(it).ok());
            return Poll::Ready(match head {
                // One of several readers leaves the others behind.
                Some(MessageHead { what: Some(what), kind: None, .. })
                    if what == "closed" && self.outlet.readers() <= 1 =>
                {
                    None
                }
                Some(MessageHead { what: Some(what), id: Some(id), .. }) if what == "response" => {
                    self.outlet.over(&id);
                    post
                }
                _ => post,
            });
        }
        self.poll_unread(cx).map(|()| None)
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkBroken>> {
        self.outlet.poll_ready(cx).map(Ok)
    }

    fn send(&mut self, frame: String) -> Result<(), LinkBroken> {
        let head: Option<MessageHead> = serde_json::from_str(&frame).ok();
        let request = match head {
            Some(MessageHead { kind: Some(_), id, .. }) => id,
            Some(MessageHead { what: Some(what), id: Some(id), .. }) if what == "cancel" => {
                self.outlet.over(&id);
                None
            }
            _ => None,
        };
        self.outlet.push(&frame, request);
        Ok(())
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkBroken>> {
        self.outlet.poll_read(cx).map(Ok)
    }

    fn poll_close(&mut self, _cx: &mut Context<'_>) -> Poll<bool> {
        Poll::Ready(false)
    }
}

impl Drop for SseSession {
    fn drop(&mut self) {
        self.sessions.remove(&self.key, &self.outlet);
        let told = serde_json::json!({"type": "closed", "code": 1000, "reason": "closed"});
        self.outlet.push(&told.to_string(), None);
        self.outlet.end();
    }
}
