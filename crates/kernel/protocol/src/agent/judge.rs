//! What is to be done with what arrived, the same at both ends.

use wharf_vocab::{Code, Fault};
use wharf_wire::agent_v1::{DecodeError, Envelope, Header, Rejected, VERSION};

use super::violation::Breach;

/// What is to be done with a frame that is not delivered.
pub(super) enum Verdict {
    /// It is a message from the future that wants no answer.
    Ignore,
    /// It is a message from the future that wants an answer.
    Unknown(Box<Header>),
    /// A field is wrong: answer, drop, go on.
    Reject(Box<Rejected>),
    /// The connection cannot go on.
    Fatal {
        /// Why.
        breach: Breach,
        /// What could be read of it.
        header: Option<Box<Header>>,
    },
}

/// Judges a frame of a session that has begun.
pub(super) fn judge<M>(
    decoded: Result<Envelope<M>, DecodeError>,
    close_on_unknown: bool,
) -> Result<Envelope<M>, Verdict> {
    match decoded {
        Ok(envelope) if envelope.v == VERSION => Ok(envelope),
        Ok(envelope) => {
            let header = Header {
                v: Some(envelope.v),
                id: Some(envelope.id),
                is_error: envelope.error.is_some(),
                echo: envelope.echo,
                ..Header::default()
            };
            let header = Some(Box::new(header));
            Err(Verdict::Fatal { breach: Breach::WrongVersion, header })
        }
        Err(error) => Err(judge_error(error, close_on_unknown)),
    }
}

fn judge_error(error: DecodeError, close_on_unknown: bool) -> Verdict {
    // A message of another version may look like anything, so its version is judged first.
    let wrong_version =
        error.header().and_then(|header| header.v).is_some_and(|version| version != VERSION);
    match error {
        DecodeError::Malformed(why) => {
            Verdict::Fatal { breach: Breach::Malformed(why), header: None }
        }
        DecodeError::Rejected(rejected) if wrong_version => {
            let header = Some(Box::new(rejected.header));
            Verdict::Fatal { breach: Breach::WrongVersion, header }
        }
        DecodeError::UnknownType(header) | DecodeError::WrongDirection(header) if wrong_version => {
            Verdict::Fatal { breach: Breach::WrongVersion, header: Some(header) }
        }
        DecodeError::Rejected(rejected) => Verdict::Reject(rejected),
        DecodeError::WrongDirection(header) => {
            Verdict::Fatal { breach: Breach::WrongDirection, header: Some(header) }
        }
        DecodeError::UnknownType(header) if close_on_unknown => {
            Verdict::Fatal { breach: Breach::UnknownType, header: Some(header) }
        }
        DecodeError::UnknownType(header) if header.expects_reply() => Verdict::Unknown(header),
        DecodeError::UnknownType(_) => Verdict::Ignore,
    }
}

/// What a peer is told about a message with a wrong field.
pub(super) fn rejection(rejected: &Rejected) -> Fault {
    Fault::new(
        Code::ProtocolInvalidEnvelope,
        format!("The field `{}` is missing or has the wrong form.", rejected.field),
    )
}

/// What a peer is told about a message of an unknown type that wanted an answer.
pub(super) fn unknown_type() -> Fault {
    Fault::new(Code::ProtocolUnknownType, "This end does not know the type of the message.")
}
