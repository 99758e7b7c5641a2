//! Streams of messages.

use std::time::Duration;

use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use serde::Deserialize;
use serde::de::IgnoredAny;
use wharf_protocol::sse::{Parser, TooLarge};
use wharf_wire::mcp_v1::McpId;
use wharf_wire::mcp_v1::limits::FROM_SERVER_BYTES_MAX;

/// Bytes of a line and a field's name beside the message in it.
const FRAMING_BYTES: usize = 64;
/// How long the end of a stream may take when its answer has come, so that the connection can be
/// used again.
const DRAIN: Duration = Duration::from_millis(500);

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum BodyKind {
    /// As one message.
    Json,
    /// As a stream of messages.
    Events,
    /// As nothing that is known, or not at all.
    Other,
}

/// How this answer is written.
pub(in super::super) fn kind_of(answer: &Response) -> BodyKind {
    let kind = answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("text/event-stream") {
        BodyKind::Events
    } else if kind.eq_ignore_ascii_case("application/json") {
        BodyKind::Json
    } else {
        BodyKind::Other
    }
}

/// A stream of messages that is read.
pub(in super::super) struct EventStream {
    answer: Response,
    parser: Parser,
    /// Whether anything came but comments.
    pub(in super::super) is_fruitful: bool,
    /// Where it was to go on when it was opened.
    from: Option<String>,
}

impl EventStream {
    /// The stream that an answer is, perhaps one that goes on after this id.
    pub(in super::super) fn new(answer: Response, from: Option<String>) -> Self {
        let parser = Parser::new(FROM_SERVER_BYTES_MAX + FRAMING_BYTES);
        Self { answer, parser, is_fruitful: false, from }
    }

    /// The next message; `None` when the stream is over, whatever ended it. What carries no
    /// message is passed over.
    pub(in super::super) async fn next(&mut self) -> Result<Option<String>, TooLarge> {
        loop {
            while let Some(message) = self.parser.pop() {
                self.is_fruitful = true;
                if message.event == "message" && !message.data.is_empty() {
                    return Ok(Some(message.data));
                }
            }
            match self.answer.chunk().await {
                Ok(Some(piece)) => self.parser.push(&piece)?,
                Ok(None) | Err(_) => return Ok(None),
            }
        }
    }

    /// The next message of any name, with its name.
    pub(in super::super) async fn next_named(
        &mut self,
    ) -> Result<Option<(String, String)>, TooLarge> {
        loop {
            if let Some(message) = self.parser.pop() {
                self.is_fruitful = true;
                return Ok(Some((message.event, message.data)));
            }
            match self.answer.chunk().await {
                Ok(Some(piece)) => self.parser.push(&piece)?,
                Ok(None) | Err(_) => return Ok(None),
            }
        }
    }

    /// Where the stream goes on.
    pub(in super::super) fn last_id(&self) -> Option<String> {
        self.parser.last_id().map(str::to_owned).or_else(|| self.from.clone())
    }

    /// How long the server wants to be left alone before that.
    pub(in super::super) fn retry(&self) -> Option<Duration> {
        self.parser.retry_ms().map(Duration::from_millis)
    }

    /// Reads on to the end, if it comes soon.
    pub(in super::super) async fn drain(mut self) {
        let rest = async { while let Ok(Some(_)) = self.answer.chunk().await {} };
        let _ = tokio::time::timeout(DRAIN, rest).await;
    }
}

/// Whether a message answers this request.
pub(in super::super) fn answers(text: &str, id: &McpId) -> bool {
    #[derive(Deserialize)]
    struct AnswerPeek {
        id: Option<McpId>,
        method: Option<IgnoredAny>,
    }
    let peek = serde_json::from_str::<AnswerPeek>(text);
    peek.is_ok_and(|peek| peek.method.is_none() && peek.id.as_ref() == Some(id))
}
