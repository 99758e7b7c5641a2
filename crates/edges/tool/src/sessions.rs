//! Sessions over server-sent events and POST, and what their clients post.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use wharf_domain::Caller;
use wharf_vocab::{Code, Fault, GrantId};

use crate::outlet::Outlet;
use crate::query::Role;

/// Messages of one session that may wait to be taken.
const POSTS_MAX: usize = 64;

/// What a session is known by: whose it is, what for, and the name that the client chose.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct SessionKey {
    grant: GrantId,
    what: String,
    name: Option<String>,
}

impl SessionKey {
    pub(crate) fn new(caller: &Caller, role: &Role, name: Option<String>) -> Self {
        let what = match role {
            Role::Principal { world, .. } => format!("principal:{world}"),
            Role::Operative { provider, .. } => format!("operative:{provider}"),
        };
        Self { grant: caller.grant.clone(), what, name }
    }
}

/// All sessions.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<HashMap<SessionKey, SseEntry>>);

/// The way to a session.
#[derive(Clone)]
pub(crate) struct SseEntry {
    pub(crate) outlet: Arc<Outlet>,
    pub(crate) posts: mpsc::Sender<Post>,
}

/// What reaches a session from its client.
pub(crate) enum Post {
    /// A message, and the room that it takes until it was read.
    Message(String, Option<OwnedSemaphorePermit>),
    /// The client says that it will not come back.
    Leaves,
    /// Somebody wants to read: which requests are open?
    Joins(oneshot::Sender<HashSet<String>>),
}

impl Sessions {
    pub(crate) fn find(&self, key: &SessionKey) -> Option<SseEntry> {
        self.0.lock().get(key).filter(|entry| !entry.posts.is_closed()).cloned()
    }

    /// The session of this key, or a new one with what its client posts.
    pub(crate) fn find_or_begin(
        &self,
        key: &SessionKey,
        outlet: impl FnOnce() -> Outlet,
    ) -> (SseEntry, Option<mpsc::Receiver<Post>>) {
        let mut sessions = self.0.lock();
        if let Some(entry) = sessions.get(key).filter(|entry| !entry.posts.is_closed()) {
            return (entry.clone(), None);
        }
        let (sender, posts) = mpsc::channel(POSTS_MAX);
        let entry = SseEntry { outlet: Arc::new(outlet()), posts: sender };
        sessions.insert(key.clone(), entry.clone());
        (entry, Some(posts))
    }

    pub(crate) fn remove(&self, key: &SessionKey, outlet: &Arc<Outlet>) {
        let mut sessions = self.0.lock();
        if sessions.get(key).is_some_and(|entry| Arc::ptr_eq(&entry.outlet, outlet)) {
            sessions.remove(key);
        }
    }
}

impl SseEntry {
    /// Takes a message; it is handed on once the answer has been written.
    pub(crate) async fn post(&self, patience: Duration, post: Post) -> Result<Response, Fault> {
        let room = self.posts.clone().reserve_owned();
        let room = match tokio::time::timeout(patience, room).await {
            Ok(room) => room.map_err(|_| ended())?,
            Err(_) => {
                let message = "Too many messages of this session wait; try again in a moment.";
                return Err(Fault::new(Code::CoreBusy, message));
            }
        };
        let message = PostOnDrop(Some((room, post)));
        let body = futures::stream::unfold(Some((false, message)), |state| async move {
            match state? {
                (false, message) => {
                    let piece: Result<Bytes, std::convert::Infallible> = Ok("{}".into());
                    Some((piece, Some((true, message))))
                }
                // Now the answer has been taken over, and the message goes.
                (true, _) => None,
            }
        });
        let kind = [(CONTENT_TYPE, "application/json")];
        Ok((StatusCode::ACCEPTED, kind, Body::from_stream(body)).into_response())
    }
}

fn ended() -> Fault {
    Fault::new(Code::TransportLost, "The session has ended; begin a new one.")
}

/// A message that is handed on when this is dropped.
struct PostOnDrop(Option<(mpsc::OwnedPermit<Post>, Post)>);

impl Drop for PostOnDrop {
    fn drop(&mut self) {
        if let Some((room, post)) = self.0.take() {
            room.send(post);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;

    use super::*;
    use crate::outlet::OutletLimits;

    #[tokio::test]
    async fn k029_a_message_is_handed_on_once_its_answer_was_taken() {
        let (sender, mut posts) = mpsc::channel(1);
        let entry = SseEntry {
            outlet: Arc::new(Outlet::new(OutletLimits::of(1, 1), Arc::default())),
            posts: sender,
        };
        let patience = Duration::from_millis(10);
        let answer =
            entry.post(patience, Post::Message("hello".to_owned(), None)).await.expect("room");
        assert_eq!(answer.status(), StatusCode::ACCEPTED);
        let mut body = answer.into_body().into_data_stream();
        assert_eq!(body.next().await.expect("a piece").expect("bytes"), "{}");
        assert!(posts.try_recv().is_err(), "the answer is not written yet");
        assert!(body.next().await.is_none());
        assert!(matches!(posts.try_recv(), Ok(Post::Message(text, None)) if text == "hello"));
        // One whose reader went away in between is handed on as well.
        drop(entry.post(patience, Post::Message("again".to_owned(), None)).await.expect("room"));
        let full = entry.post(patience, Post::Leaves).await.expect_err("full");
        assert!(full.is(Code::CoreBusy), "{full}");
        assert!(matches!(posts.try_recv(), Ok(Post::Message(text, None)) if text == "again"));
        drop(posts);
        let gone = entry.post(patience, Post::Leaves).await.expect_err("gone");
        assert!(gone.is(Code::TransportLost), "{gone}");
    }
}
