//! Sessions over server-sent events and POST, as they are served.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use bytes::Bytes;
use futures::Stream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use wharf_domain::Caller;
use wharf_protocol::tool::{NextEvents, ToolSession};
use wharf_protocol::{Closed, Incoming, Moment, Outgoing};
use wharf_socket::{Owner, Patience, Sink, Source, SourceEvent, pump};
use wharf_vocab::{Code, Fault};
use wharf_web::sse::respond;
use wharf_wire::tool_v1::close;

use crate::outlet::{Cursor, Outlet, OutletLimits, ReadRefusal};
use crate::peer::{NewPeer, Peer, PeerClose, PeerCommand};
use crate::sessions::{Post, SessionKey, SseEntry};
use crate::shared::PeerHub;
use crate::shares::SharePermit;

/// The session of this key, which is begun if there is none.
pub(crate) fn find_or_begin(
    shared: &Arc<PeerHub>,
    key: &SessionKey,
    opening: NewPeer,
    place: SharePermit,
) -> SseEntry {
    let options = &shared.options;
    let room = OutletLimits {
        events_max: options.events_max,
        bytes_max: options.events_bytes_max,
        share_bytes_max: options.events_bytes_each_max,
    };
    let outlet = || Outlet::new(room, Arc::clone(&place.share));
    let (entry, posts) = shared.sessions.find_or_begin(key, outlet);
    let Some(posts) = posts else { return entry };
    let (shared, key, outlet) = (Arc::clone(shared), key.clone(), Arc::clone(&entry.outlet));
    let tasks = shared.background.clone();
    tasks.spawn(async move {
        let PeerClose { code, reason } = serve(&shared, opening, Arc::clone(&outlet), posts).await;
        shared.sessions.remove(&key, &outlet);
        let told = serde_json::json!({"type": "closed", "code": code, "reason": reason});
        outlet.push(&told.to_string());
        outlet.end();
        drop(place);
    });
    entry
}

async fn serve(
    shared: &Arc<PeerHub>,
    opening: NewPeer,
    outlet: Arc<Outlet>,
    posts: mpsc::Receiver<Post>,
) -> PeerClose {
    let peer = match Peer::begin(shared, opening).await {
        Ok(peer) => peer,
        Err(closing) => return closing,
    };
    let unread_max = shared.options.unread;
    let mut sink = Events { outlet: Arc::clone(&outlet), closing: None };
    let mut posted = PostedSession { peer, posts, outlet, read_at: Instant::now(), unread_max };
    let patience = Patience { write: None, close: Duration::ZERO, lingers: false };
    pump(&mut NoSource, &mut sink, &mut posted, patience).await;
    posted.peer.end().await;
    sink.closing.unwrap_or_else(PeerClose::stop)
}

/// A session whose frames are posted one by one.
struct PostedSession {
    peer: Peer,
    posts: mpsc::Receiver<Post>,
    outlet: Arc<Outlet>,
    /// When somebody was last seen to read.
    read_at: Instant,
    unread_max: Duration,
}

impl PostedSession {
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

impl Owner for PostedSession {
    type Session = ToolSession;
    type Command = (Option<Post>, Option<PeerCommand>);

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
        if matches!(command, PeerCommand::Look) && self.read_at.elapsed() >= self.unread_max {
            self.close("nobody reads the events");
        }
        self.peer.obey(command).await;
    }
}

/// Frames do not come over the connection that events go out on.
struct NoSource;

impl Source for NoSource {
    async fn next(&mut self) -> SourceEvent<'_> {
        std::future::pending().await
    }
}

/// Frames go out as events that are kept for whoever reads them.
struct Events {
    outlet: Arc<Outlet>,
    /// Why there are no more; told once nobody can find the session any more.
    closing: Option<PeerClose>,
}

impl Sink for Events {
    fn is_ready(&mut self) -> Result<bool, Closed> {
        Ok(true)
    }

    fn start(&mut self, frame: Outgoing) -> Result<(), Closed> {
        match frame {
            Outgoing::Text(text) => self.outlet.push(&text),
            Outgoing::Close { code, reason } => self.closing = Some(PeerClose { code, reason }),
            Outgoing::Bytes(_) | Outgoing::Ping => {}
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Closed> {
        Ok(())
    }
}

/// The events behind a number as a stream.
pub(crate) async fn events(
    shared: &Arc<PeerHub>,
    entry: &SseEntry,
    caller: Caller,
    after: Option<u64>,
) -> Result<Response, Fault> {
    let (answer, open) = oneshot::channel();
    let open = match entry.posts.send(Post::Joins(answer)).await {
        Ok(()) => open.await.unwrap_or_default(),
        // It has ended; what it still has to tell can be read.
        Err(_) => HashSet::new(),
    };
    let cursor = entry.outlet.read(after, &open).map_err(|unread| match unread {
        ReadRefusal::TooMany => {
            let message = "Too many read the events of this session already.";
            Fault::new(Code::CoreBusy, message)
        }
        ReadRefusal::Gone => gone(),
    })?;
    Ok(respond(stream(Arc::clone(shared), cursor, caller)))
}

/// There is no such session to be read on.
pub(crate) fn gone() -> Fault {
    let message = "The session has ended; begin a new one, without Last-Event-ID.";
    Fault::new(Code::TransportLost, message)
}

/// Events as they come, and a sign of life when none do.
fn stream(
    shared: Arc<PeerHub>,
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
