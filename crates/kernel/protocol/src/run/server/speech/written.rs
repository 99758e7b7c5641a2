//! What a run has said, as the texts of frames.

use serde_json::Value;
use wharf_vocab::Object;
use wharf_wire::run_v1::{
    Control, EventData, EventMessage, Frame, Log, Phase, Response, ResponseControl, TokenContent,
    TokenMessage,
};

use super::{Body, Profile, Speech, SpeechPiece};

/// The output that text without a name belongs to.
const TEXT: &str = "text";

impl Speech {
    /// The texts of the frame at an index: the frame itself, and what the dialect puts beside it.
    pub(in super::super) fn written(&self, index: usize) -> Vec<String> {
        let Some(kept) = self.frames.get(index) else { return Vec::new() };
        let seq = Some(index as u64 + 1);
        let control = || Control { seq, ..Control::of(&self.run_id) };
        let partial = |outputs: Object| {
            let control = ResponseControl {
                run_id: Some(self.run_id.clone()),
                seq,
                ..ResponseControl::default()
            };
            Frame::Response(Response { control, outputs, error: None })
        };
        // Whoever reads both the response and what stands beside it knows by the number that it
        // is the same.
        let token = |text: &str| {
            let content = TokenContent { text: text.to_owned() };
            Frame::Token(TokenMessage { control: control(), content })
        };
        let frame = match &kept.body {
            Body::Log(data) => Frame::Log(Log { control: control(), data: data.clone() }),
            Body::Event(data) => {
                Frame::Event(EventMessage { control: control(), data: data.clone() })
            }
            Body::Cost(cost) => Frame::Event(EventMessage {
                control: Control { cost_micro: Some(Value::from(*cost)), ..control() },
                data: EventData::new(Phase::Checkpoint, None),
            }),
            Body::Text(new) => match self.profile {
                Profile::Upstream => token(self.text.get(new.clone()).unwrap_or_default()),
                Profile::Default => {
                    let whole = self.text.get(..new.end).unwrap_or_default();
                    partial(Object::from_iter([(TEXT.to_owned(), Value::from(whole))]))
                }
            },
            Body::Other(frame) => return vec![with_control(frame, &control())],
            Body::Final(response) => {
                let mut response = Response::clone(response);
                response.control.run_id = Some(self.run_id.clone());
                response.control.seq = seq;
                Frame::Response(response)
            }
            Body::Partial(pieces) => {
                partial(pieces.iter().map(|(key, piece)| self.whole(key, piece)).collect())
            }
        };
        let mut texts = vec![self.profile.encode(&frame)];
        if let (Profile::Upstream, Body::Partial(pieces)) = (self.profile, &kept.body) {
            let deltas = pieces.iter().filter_map(|(key, piece)| self.delta(key, piece));
            texts.extend(deltas.map(|delta| self.profile.encode(&token(delta))));
        }
        texts
    }

    fn whole(&self, key: &str, piece: &SpeechPiece) -> (String, Value) {
        let value = match piece {
            SpeechPiece::Value(value) => value.clone(),
            SpeechPiece::Text { version, end, .. } => {
                Value::from(self.text_of(key, *version, 0, *end))
            }
        };
        (key.to_owned(), value)
    }

    fn delta(&self, key: &str, piece: &SpeechPiece) -> Option<&str> {
        match piece {
            SpeechPiece::Text { version, start, end } if start < end => {
                Some(self.text_of(key, *version, *start, *end))
            }
            SpeechPiece::Text { .. } | SpeechPiece::Value(_) => None,
        }
    }

    fn text_of(&self, key: &str, version: usize, start: usize, end: usize) -> &str {
        let text = self.texts.get(key).and_then(|versions| versions.get(version));
        text.and_then(|text| text.get(start..end)).unwrap_or_default()
    }
}

/// A frame as it came, with what every frame of a run has.
fn with_control(frame: &Object, control: &Control) -> String {
    let mut frame = frame.clone();
    let mut said = match frame.remove("control") {
        Some(Value::Object(said)) => said,
        _ => Object::new(),
    };
    if let Ok(Value::Object(own)) = serde_json::to_value(control) {
        said.extend(own);
    }
    frame.insert("control".to_owned(), said.into());
    Value::Object(frame).to_string()
}
