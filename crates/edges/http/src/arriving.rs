//! Bodies that are passed on while they arrive, and never held.
//!
//! Such a body may take as long as it needs, but its sender may not be silent for long. Nothing is
//! read before whoever takes it asks for more.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::http::HeaderMap;
use futures::StreamExt;
use futures::future::poll_fn;
use futures::stream;
use wharf_engine::{ByteStream, ObjectError, ObjectErrorKind};
use wharf_vocab::{Code, Fault};

use crate::body::announced;

/// What a body may be like.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// How many bytes it may have.
    pub(crate) bytes_max: u64,
    /// How long its sender may be silent.
    pub(crate) silence: Duration,
}

/// Why a body did not arrive, once that is known.
#[derive(Debug, Clone, Default)]
pub(crate) struct BodyFailure(Arc<OnceLock<Fault>>);

impl BodyFailure {
    /// The reason to tell: this one if it is known, else what came of it.
    pub(crate) fn or(&self, fault: Fault) -> Fault {
        self.0.get().cloned().unwrap_or(fault)
    }

    /// Remembers why; whoever takes the bytes only learns that they end.
    fn because(&self, fault: Fault) -> ObjectError {
        let message = fault.message.clone();
        let _ = self.0.set(fault);
        ObjectError::new(ObjectErrorKind::Interrupted, message)
    }
}

/// How many bytes a request says that its body has. More than there may be are refused at once.
pub(crate) fn length(headers: &HeaderMap, bounds: Bounds) -> Result<Option<u64>, Fault> {
    let announced = announced(headers);
    match announced {
        Some(bytes) if bytes > bounds.bytes_max => Err(too_large(bounds.bytes_max)),
        announced => Ok(announced),
    }
}

/// The bytes of a body as they arrive.
pub(crate) fn arriving(body: Body, bounds: Bounds) -> (ByteStream, BodyFailure) {
    let broken = BodyFailure::default();
    let state = Some((body, 0, broken.clone()));
    let pieces = stream::unfold(state, move |state| async move {
        let (mut body, before, broken) = state?;
        loop {
            let frame = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx));
            let fault = match tokio::time::timeout(bounds.silence, frame).await {
                Ok(None) => return None,
                Ok(Some(Ok(frame))) => {
                    let Ok(data) = frame.into_data() else { continue };
                    let bytes = before + data.len() as u64;
                    if bytes <= bounds.bytes_max {
                        return Some((Ok(data), Some((body, bytes, broken))));
                    }
                    too_large(bounds.bytes_max)
                }
                Ok(Some(Err(_))) => broken_off(),
                Err(_) => silent(bounds.silence),
            };
            return Some((Err(broken.because(fault)), None));
        }
    });
    (pieces.boxed(), broken)
}

fn too_large(max: u64) -> Fault {
    let message = format!("The file is larger than {max} bytes, the most that it may have.");
    Fault::new(Code::RequestTooLarge, message).with("max_bytes", max)
}

fn broken_off() -> Fault {
    let message = "The body broke off before its end; send it again.";
    Fault::new(Code::RequestInvalid, message)
}

fn silent(silence: Duration) -> Fault {
    let seconds = silence.as_secs_f64();
    let message = format!("Nothing of the body arrived for {seconds} s; send it again.");
    Fault::new(Code::RequestTimeout, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use futures::TryStreamExt;

    fn bounds(bytes_max: u64) -> Bounds {
        Bounds { bytes_max, silence: Duration::from_secs(30) }
    }

    fn body(pieces: &[&'static str]) -> Body {
        let pieces: Vec<_> = pieces.iter().map(|piece| Ok::<_, ObjectError>(*piece)).collect();
        Body::from_stream(stream::iter(pieces))
    }

    fn other() -> Fault {
        Fault::new(Code::CoreInternal, "Something else.")
    }

    #[tokio::test]
    async fn a_body_is_passed_on_piece_by_piece_up_to_its_limit() {
        let (pieces, broken) = arriving(body(&["ab", "c"]), bounds(3));
        let pieces: Vec<Bytes> = pieces.try_collect().await.expect("all of it");
        assert_eq!(pieces, ["ab", "c"]);
        assert!(broken.or(other()).is(Code::CoreInternal));

        let (mut pieces, broken) = arriving(body(&["ab", "cd", "e"]), bounds(3));
        assert_eq!(pieces.try_next().await, Ok(Some(Bytes::from("ab"))));
        assert!(pieces.try_next().await.is_err());
        assert_eq!(pieces.try_next().await, Ok(None), "nothing comes after an error");
        assert!(broken.or(other()).is(Code::RequestTooLarge));
    }

    #[tokio::test]
    async fn silence_of_the_sender_ends_it_but_not_of_the_taker() {
        let silence = Duration::from_millis(50);
        let sent = stream::iter(["a", "b", "c"]).map(Ok::<_, ObjectError>);
        let body = Body::from_stream(sent.chain(stream::pending()));
        let (mut pieces, broken) = arriving(body, Bounds { bytes_max: 100, silence });
        for _ in 0..3 {
            assert!(pieces.try_next().await.expect("in time").is_some());
            tokio::time::sleep(silence * 2).await;
        }
        assert!(pieces.try_next().await.is_err());
        assert!(broken.or(other()).is(Code::RequestTimeout));
    }
}
