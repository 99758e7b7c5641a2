//! From a message to a frame.

use serde::{Serialize, Serializer};
use serde_with_macros::skip_serializing_none;

use super::direction::EndMessage;
use super::envelope::Envelope;
use super::frame::FrameError;
use super::{Actor, ErrorObject, MessageId, Rfc3339};

/// Bytes of the length in front of a frame.
const PREFIX_BYTES: usize = 4;

/// Writes a message as one frame, its length in front.
///
/// A message that would be larger than `limit` is not written: the receiver would close the
/// connection at its first four bytes.
pub fn encode<M: EndMessage>(envelope: &Envelope<M>, limit: u32) -> Result<Vec<u8>, FrameError> {
    let mut frame = vec![0; PREFIX_BYTES];
    serde_json::to_writer(&mut frame, &EnvelopeFields::from(envelope))
        .expect("writing to memory cannot fail, and every key of a message is text");
    let announced = (frame.len() - PREFIX_BYTES) as u64;
    match u32::try_from(announced).ok().filter(|length| *length <= limit) {
        Some(length) => {
            frame[..PREFIX_BYTES].copy_from_slice(&length.to_be_bytes());
            Ok(frame)
        }
        None => Err(FrameError::TooLarge { announced, limit }),
    }
}

/// The envelope in the order in which it is written.
#[skip_serializing_none]
#[derive(Serialize)]
#[serde(bound = "")]
struct EnvelopeFields<'a, M: EndMessage> {
    v: i64,
    #[serde(rename = "type")]
    type_name: &'static str,
    id: &'a MessageId,
    ts: &'a Rfc3339,
    in_reply_to: Option<&'a MessageId>,
    request_id: Option<&'a str>,
    correlation_id: Option<&'a str>,
    causation_id: Option<&'a str>,
    traceparent: Option<&'a str>,
    actor: Option<&'a Actor>,
    error: Option<&'a ErrorObject>,
    #[serde(serialize_with = "write_payload")]
    payload: &'a M,
}

impl<'a, M: EndMessage> From<&'a Envelope<M>> for EnvelopeFields<'a, M> {
    fn from(envelope: &'a Envelope<M>) -> Self {
        let echo = &envelope.echo;
        Self {
            v: envelope.v,
            type_name: envelope.message.type_name(),
            id: &envelope.id,
            ts: &envelope.ts,
            in_reply_to: envelope.in_reply_to.as_ref(),
            request_id: echo.request_id.as_deref(),
            correlation_id: echo.correlation_id.as_deref(),
            causation_id: echo.causation_id.as_deref(),
            traceparent: echo.traceparent.as_deref(),
            actor: envelope.actor.as_ref(),
            error: envelope.error.as_ref(),
            payload: &envelope.message,
        }
    }
}

fn write_payload<M: EndMessage, S: Serializer>(
    message: &&M,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    message.write(serializer)
}
