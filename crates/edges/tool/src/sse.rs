//! Sessions over server-sent events and POST.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::Stream;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::time::Instant;
use wharf_domain::Caller;
use wharf_protocol::tool::{NextEvents, ToolSession};
use wharf_protocol::{Closed, Incoming, Moment, Outgoing};
use wharf_socket::{Owner, Patience, Received, Sink, Source, pump};
use wharf_vocab::{Code, Fault, GrantId};
use wharf_web::sse::respond;
use wharf_wire::tool_v1::close;

use crate::edge::Shared;
use crate::outlet::{Cursor, Outlet, Room, Unread};
use crate::peer::{Closing, Command, Opening, Peer};
use crate::query::Role;
use crate::shares::Place;

/// Messages of one session that may wait to be taken.
const POSTS_MAX: usize = 64;

/// What a session is known by: whose it is, what for, and the name that the client chose.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    grant: GrantId,
    what: String,
    name: Option<String>,
}

impl Key {
    pub(crate) fn new(caller: &Caller, role: &Role, name: Option<String>) -> Self {
        let what = match role {
            Role::Principal { world, .. } => format!("principal:{world}"),
            Role::Operative { provider, .. } => format!("operative:{provider}"),
        };
        Self { grant: caller.grant.clone(), what, name }
    }
}

/// All sessions.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<HashMap<Key, Entry>>);

/// The way to a session.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    outlet: Arc<Outlet>,
    posts: mpsc::Sender<Post>,
}

/// What reaches a session from its client.
#[derive(Debug)]
pub(crate) enum Post {
    /// A message, and the room that it takes until it was read.
    Message(String, Option<OwnedSemaphorePermit>),
    /// The client says that it will not come back.
    Leaves,
    /// Somebody wants to read: which requests are open?
    Joins(oneshot::Sender<HashSet<String>>),
}

impl Sessions {
    pub(crate) fn find(&self, key: &Key) -> Option<Entry> {
        self.0.lock().get(key).filter(|entry| !entry.posts.is_closed()).cloned()
    }

    fn remove(&self, key: &Key, outlet: &Arc<Outlet>) {
        let mut sessions = self.0.lock();
        if sessions.get(key).is_some_and(|entry| Arc::ptr_eq(&entry.outlet, outlet)) {
            sessions.remove(key);
        }
    }
}

/// The session of this key, which is begun if there is none.
pub(crate) fn find_or_begin(
    shared: &Arc<Shared>,
    key: &Key,
    opening: Opening,
    place: Place,
) -> Entry {
    let mut sessions = shared.sessions.0.lock();
    if let Some(entry) = sessions.get(key).filter(|entry| !entry.posts.is_closed()) {
        return entry.clone();
    }
    let options = &shared.options;
    let room = Room {
        events_max: options.events_max,
        bytes_max: options.events_bytes_max,
        share_bytes_max: options.events_bytes_each_max,
    };
    let outlet = Arc::new(Outlet::new(room, Arc::clone(&place.share)));
    let (sender, posts) = mpsc::channel(POSTS_MAX);
    let entry = Entry { outlet: Arc::clone(&outlet), posts: sender };
    sessions.insert(key.clone(), entry.clone());
    drop(sessions);
    let (shared, key) = (Arc::clone(shared), key.clone());
    tokio::spawn(async move {
        let closing = serve(&shared, opening, Arc::clone(&outlet), posts).await;
        shared.sessions.remove(&key, &outlet);
        let Closing { code, reason } = closing;
        let told = serde_json::json!({"type": "closed", "code": code, "reason": reason});
        outlet.push(&told.to_string());
        outlet.end();
        drop(place);
    });
    entry
}

async fn serve(
    shared: &Arc<Shared>,
    opening: Opening,
    outlet: Arc<Outlet>,
    posts: mpsc::Receiver<Post>,
) -> Closing {
    let peer = match Peer::begin(shared, opening).await {
        Ok(peer) => peer,
        Err(closing) => return closing,
    };
    let unread_max = shared.options.unread;
    let mut sink = Events { outlet: Arc::clone(&outlet), closing: None };
    let mut posted = Posted { peer, posts, outlet, read_at: Instant::now(), unread_max };
    let patience = Patience { write: None, close: Duration::ZERO, lingers: false };
    pump(&mut NoSource, &mut sink, &mut posted, patience).await;
    posted.peer.end().await;
    sink.closing.unwrap_or_else(Closing::stop)
}

/// A session whose frames are posted one by one.
struct Posted {
    peer: Peer,
    posts: mpsc::Receiver<Post>,
    outlet: Arc<Outlet>,
    /// When somebody was last seen to read.
    read_at: Instant,
    unread_max: Duration,
}

impl Posted {
    fn close(&mut self, reason: &str) {
        self.peer.session().close(close::NORMAL, reason);
    }

    fn post(&mut self, post: Post) {
        match post {
            Post::Message(text, _room) => self.peer.receive(Incoming::Text(&text)),
            // Others who read the same session stay.
            Post::Leaves if self.outlet.readers() > 1 => {}
            Post::Leaves => self.close("the client left"),
            // A reader that has gone again need not know.
            Post::Joins(answer) => drop(answer.send(self.peer.open_calls())),
        }
    }
}

impl Owner for Posted {
    type Session = ToolSession;
    type Command = (Option<Post>, Option<Command>);

    fn session(&mut self) -> &mut ToolSession {
        self.peer.session()
    }

    fn now(&self) -> Moment {
        self.peer.now()
    }

    async fn work(&mut self) -> ControlFlow<()> {
        self.peer.work().await
    }

    async fn next(&mut self) -> Self::Command {
        tokio::select! {
            Some(post) = self.posts.recv() => (Some(post), None),
            command = self.peer.next() => (None, Some(command)),
        }
    }

    async fn obey(&mut self, (post, command): Self::Command) {
        if let Some(post) = post {
            self.post(post);
        }
        let Some(command) = command else { return };
        if self.outlet.readers() > 0 {
            self.read_at = Instant::now();
        }
        if matches!(command, Command::Look) && self.read_at.elapsed() >= self.unread_max {
            self.close("nobody reads the events");
        }
        self.peer.obey(command).await;
    }
}

/// Frames do not come over the connection that events go out on.
struct NoSource;

impl Source for NoSource {
    async fn next(&mut self) -> Received<'_> {
        std::future::pending().await
    }
}

/// Frames go out as events that are kept for whoever reads them.
struct Events {
    outlet: Arc<Outlet>,
    /// Why there are no more; told once nobody can find the session any more.
    closing: Option<Closing>,
}

impl Sink for Events {
    fn is_ready(&mut self) -> Result<bool, Closed> {
        Ok(true)
    }

    fn start(&mut self, frame: Outgoing) -> Result<(), Closed> {
        match frame {
            Outgoing::Text(text) => self.outlet.push(&text),
            Outgoing::Close { code, reason } => self.closing = Some(Closing { code, reason }),
            Outgoing::Bytes(_) | Outgoing::Ping => {}
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Closed> {
        Ok(())
    }
}

impl Entry {
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
        let message = Handed(Some((room, post)));
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

    /// The events behind a number as a stream.
    pub(crate) async fn events(
        &self,
        shared: &Arc<Shared>,
        reader: Reader,
    ) -> Result<Response, Fault> {
        let (answer, open) = oneshot::channel();
        let open = match self.posts.send(Post::Joins(answer)).await {
            Ok(()) => open.await.unwrap_or_default(),
            // It has ended; what it still has to tell can be read.
            Err(_) => HashSet::new(),
        };
        let cursor = self.outlet.read(reader.after, &open).map_err(|unread| match unread {
            Unread::TooMany => {
                let message = "Too many read the events of this session already.";
                Fault::new(Code::CoreBusy, message)
            }
            Unread::Gone => gone(),
        })?;
        Ok(respond(stream(Arc::clone(shared), cursor, reader.caller)))
    }
}

/// There is no such session to be read on.
pub(crate) fn gone() -> Fault {
    let message = "The session has ended; begin a new one, without Last-Event-ID.";
    Fault::new(Code::TransportLost, message)
}

fn ended() -> Fault {
    Fault::new(Code::TransportLost, "The session has ended; begin a new one.")
}

/// Who reads, and from where.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) caller: Caller,
    pub(crate) after: Option<u64>,
}

/// A message that is handed on when this is dropped.
struct Handed(Option<(mpsc::OwnedPermit<Post>, Post)>);

impl Drop for Handed {
    fn drop(&mut self) {
        if let Some((room, post)) = self.0.take() {
            room.send(post);
        }
    }
}

/// Events as they come, and a sign of life when none do.
fn stream(
    shared: Arc<Shared>,
    cursor: Cursor,
    caller: Caller,
) -> impl Stream<Item = Result<Bytes, std::convert::Infallible>> {
    // The first line tells the reader at once that it is connected.
    let first = Some(": connected\n\n".to_owned());
    futures::stream::unfold(Some((cursor, first)), move |state| {
        let (shared, caller) = (Arc::clone(&shared), caller.clone());
        async move {
            let (mut cursor, first) = state?;
            if let Some(first) = first {
                return Some((Ok(first.into()), Some((cursor, None))));
            }
            let quiet_until = Instant::now() + shared.options.keep_alive;
            loop {
                if shared.options.handle.trust().check_current(&caller).is_err() {
                    return Some((Ok(": the token is not good any more\n\n".into()), None));
                }
                match cursor.take() {
                    NextEvents::Text(text) if text.is_empty() => continue,
                    NextEvents::Text(text) => return Some((Ok(text.into()), Some((cursor, None)))),
                    NextEvents::End => return None,
                    NextEvents::Nothing => {}
                }
                let look = (Instant::now() + shared.options.recheck).min(quiet_until);
                tokio::select! {
                    () = cursor.changed() => {}
                    () = tokio::time::sleep_until(look) => {
                        if Instant::now() >= quiet_until {
                            return Some((Ok(": keep-alive\n\n".into()), Some((cursor, None))));
                        }
                    }
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::StreamExt;

    #[tokio::test]
    async fn k029_a_message_is_handed_on_once_its_answer_was_taken() {
        let (sender, mut posts) = mpsc::channel(1);
        let entry =
            Entry { outlet: Arc::new(Outlet::new(Room::of(1, 1), Arc::default())), posts: sender };
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
