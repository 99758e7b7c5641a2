//! Answers that nobody has read yet.
//!
//! An answer is whole before its first byte is sent, and its peer takes as long as it likes for the
//! next. So what waits is counted, in all and for each token, until the system has taken it.
//! An answer for which there is no room is given up and its peer told to come back. Streams are not
//! counted: they make no more than their readers take.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, HttpBody};
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;
use wharf_vocab::{Code, Fault};

use crate::answer::refusal;

/// Answers up to this size are sent without counting.
const SMALL_BYTES: usize = 16 * 1024;

/// What waits to be read.
#[derive(Debug)]
pub(crate) struct UnreadAnswers {
    waiting: Mutex<UnreadCounts>,
    /// Most bytes in all.
    bytes_max: usize,
    /// Most bytes of one token.
    each_max: usize,
}

#[derive(Debug, Default)]
struct UnreadCounts {
    all: usize,
    each: HashMap<String, usize>,
}

impl UnreadAnswers {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { waiting: Mutex::default(), bytes_max, each_max: bytes_max / 2 }
    }

    /// An answer to `who` that counts until it was sent; or one that says that there is no room.
    pub(crate) fn count(self: &Arc<Self>, who: &str, answer: Response) -> Response {
        let bytes = answer.body().size_hint().exact().and_then(|it| usize::try_from(it).ok());
        let Some(bytes) = bytes.filter(|bytes| *bytes > SMALL_BYTES) else { return answer };
        match self.hold(who, bytes) {
            Some(held) => {
                let held = Arc::new(held);
                answer.map(|body| Body::new(CountedBody { body, held }))
            }
            None => {
                let message = "Too many answers wait to be read; read them, or try again later.";
                refusal(&Fault::new(Code::CoreBusy, message))
            }
        }
    }

    fn hold(self: &Arc<Self>, who: &str, bytes: usize) -> Option<UnreadBytes> {
        let mut waiting = self.waiting.lock();
        let each = waiting.each.get(who).copied().unwrap_or(0);
        if waiting.all + bytes > self.bytes_max || each + bytes > self.each_max {
            return None;
        }
        waiting.all += bytes;
        waiting.each.insert(who.to_owned(), each + bytes);
        Some(UnreadBytes { unread: Arc::clone(self), who: who.to_owned(), bytes })
    }
}

/// Bytes that wait to be read; dropped, they wait no more.
#[derive(Debug)]
struct UnreadBytes {
    unread: Arc<UnreadAnswers>,
    who: String,
    bytes: usize,
}

impl Drop for UnreadBytes {
    fn drop(&mut self) {
        let mut waiting = self.unread.waiting.lock();
        waiting.all -= self.bytes;
        if let Some(each) = waiting.each.get_mut(&self.who) {
            *each -= self.bytes;
            if *each == 0 {
                waiting.each.remove(&self.who);
            }
        }
    }
}

/// A body whose pieces are counted until the last of them is gone: they outlive the body.
#[derive(Debug)]
struct CountedBody {
    body: Body,
    held: Arc<UnreadBytes>,
}

/// A piece of a body.
struct BodyPiece {
    bytes: Bytes,
    _held: Arc<UnreadBytes>,
}

impl AsRef<[u8]> for BodyPiece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let counted = |bytes| Bytes::from_owner(BodyPiece { bytes, _held: Arc::clone(&self.held) });
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(counted))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::response::IntoResponse as _;

    fn answer(bytes: usize) -> Response {
        vec![b'x'; bytes].into_response()
    }

    #[tokio::test]
    async fn what_is_not_read_counts_until_its_last_piece_is_gone() {
        let unread = Arc::new(UnreadAnswers::new(200_000));
        let first = unread.count("a", answer(60_000));
        assert_eq!(unread.count("a", answer(60_000)).status(), 503, "one token has a half");
        let second = unread.count("b", answer(60_000));
        assert_eq!(second.status(), 200, "another has its own");
        let third = unread.count("c", answer(90_000));
        assert_eq!(third.status(), 503, "and all have a bound");
        assert_eq!(unread.count("a", answer(1_000)).status(), 200, "small ones always go");
        let mut body = first.into_body();
        let piece = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await;
        drop(body);
        assert_eq!(unread.count("a", answer(60_000)).status(), 503, "the piece is still there");
        drop(piece);
        assert_eq!(unread.count("a", answer(60_000)).status(), 200);
        drop(second);
        let waiting = unread.waiting.lock();
        assert_eq!((waiting.all, waiting.each.len()), (0, 0));
    }
}
