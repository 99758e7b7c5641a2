//! What a run has said so far, in an order that every reader sees alike.
//!
//! Streamed text is cumulative on the wire: each frame repeats what came before. Here a text is
//! kept once, and a frame remembers how far it reaches, so that a long answer costs its own
//! length and not its square.

mod written;

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::Value;
use wharf_vocab::json::json_bytes;
use wharf_vocab::{Micro, Object};
use wharf_wire::run_v1::{EventData, LogData, LogLevel, Phase, Response};

use super::{Limits, Profile};
use crate::Moment;

/// Something that a run says before its end.
#[derive(Debug, Clone, PartialEq)]
pub enum RunReport {
    /// A line for people.
    Log {
        /// How grave it is.
        level: LogLevel,
        /// The line.
        text: String,
        /// Unix seconds; now when absent.
        at: Option<f64>,
    },
    /// How far it is.
    Event {
        /// The phase.
        phase: Phase,
        /// From 0 to 1; clamped.
        progress: Option<f64>,
    },
    /// Partial outputs, cumulative by key.
    Partial(Object),
    /// A piece of text that follows on those before it.
    Text(String),
    /// What it has cost so far, in micro-dollars; only more than before is told.
    Cost(Micro),
    /// A frame of a kind that the protocol does not have; only some peers want it.
    Other(Object),
}

/// A run gave more than it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("The outputs are larger than a run may give.")]
pub struct Overflow;

/// A frame costs at least this much, whatever is in it.
const FRAME_OVERHEAD: usize = 160;
/// Longest line.
const LINE_BYTES_MAX: usize = 16 * 1024;
/// Text that grows is shown piece by piece up to this length, then in steps of a part of it: each
/// step repeats all of it, so that smaller ones would cost far more than they show.
const SHOWN_AT_ONCE: usize = 8 * 1024;
/// Which part of a long text such a step is.
const STEP: usize = 32;
/// When a run has said too much, its cost is still told when it grew by such a part.
const COST_STEP: Micro = 8;

#[derive(Debug)]
pub(super) struct Speech {
    run_id: String,
    profile: Profile,
    frames: Vec<SpeechEntry>,
    texts: BTreeMap<String, Vec<String>>,
    output_bytes: usize,
    log_bytes: usize,
    is_cut: bool,
    /// The text without a name, and how much of it was shown.
    text: String,
    text_shown: usize,
    /// The most that was reported as cost, and the most of it that was told.
    cost_micro: Micro,
    cost_told: Micro,
}

#[derive(Debug)]
struct SpeechEntry {
    body: Body,
    /// About what it takes here; what it repeats of a text is kept once.
    bytes: usize,
}

#[derive(Debug)]
enum Body {
    Log(LogData),
    Event(EventData),
    Partial(Vec<(String, SpeechPiece)>),
    /// A part of the text without a name.
    Text(Range<usize>),
    /// What it has cost so far.
    Cost(Micro),
    Other(Object),
    Final(Box<Response>),
}

#[derive(Debug)]
enum SpeechPiece {
    /// A text up to some length, and how much of it was new.
    Text {
        version: usize,
        start: usize,
        end: usize,
    },
    Value(Value),
}

impl Speech {
    pub(super) fn new(run_id: String, profile: Profile) -> Self {
        Self {
            run_id,
            profile,
            frames: Vec::new(),
            texts: BTreeMap::new(),
            output_bytes: 0,
            log_bytes: 0,
            is_cut: false,
            text: String::new(),
            text_shown: 0,
            cost_micro: 0,
            cost_told: 0,
        }
    }

    /// The most that was reported as cost so far.
    pub(super) fn cost_micro(&self) -> Micro {
        self.cost_micro
    }

    /// Keeps a cost that is told with the end.
    pub(super) fn note_cost(&mut self, cost: Micro) {
        self.cost_micro = self.cost_micro.max(cost);
    }

    /// How many frames there are; the last one has this number.
    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }

    /// What is held in memory for it, roughly.
    pub(super) fn bytes(&self) -> usize {
        let overhead = self.frames.len() * FRAME_OVERHEAD;
        self.run_id.len() + self.output_bytes + self.log_bytes + overhead + 2 * FRAME_OVERHEAD
    }

    /// About how much the frame at an index takes here.
    pub(super) fn frame_bytes(&self, index: usize) -> usize {
        self.frames.get(index).map_or(0, |kept| kept.bytes)
    }

    /// Takes something that the run says.
    pub(super) fn say(
        &mut self,
        now: Moment,
        limits: &Limits,
        said: RunReport,
    ) -> Result<(), Overflow> {
        match said {
            RunReport::Log { level, text, at } => self.log(now, limits, level, text, at),
            RunReport::Event { phase, progress } => self.event(now, limits, phase, progress),
            RunReport::Partial(outputs) => return self.partial(limits, outputs),
            RunReport::Text(text) => return self.text_grows(limits, &text),
            RunReport::Cost(cost) => self.cost(limits, cost),
            RunReport::Other(frame) => self.other(now, limits, frame),
        }
        Ok(())
    }

    /// Takes the final response.
    pub(super) fn conclude(&mut self, response: Response) {
        self.show_text();
        let bytes = json_bytes(&response.outputs);
        self.output_bytes += bytes;
        self.push(Body::Final(Box::new(response)), bytes);
    }

    /// Takes an event whatever was said before it.
    pub(super) fn mark(&mut self, phase: Phase) {
        self.push(Body::Event(EventData::new(phase, None)), 0);
    }

    /// Takes a line whatever was said before it.
    pub(super) fn warn(&mut self, now: Moment, text: String) {
        let data = LogData { msg: text, level: LogLevel::Warn, timestamp: Some(seconds(now)) };
        self.push_log(data);
    }

    fn log(
        &mut self,
        now: Moment,
        limits: &Limits,
        level: LogLevel,
        text: String,
        at: Option<f64>,
    ) {
        if !self.has_room_for_lines(now, limits) {
            return;
        }
        let at = at.filter(|at| at.is_finite()).unwrap_or_else(|| seconds(now));
        self.push_log(LogData { msg: shortened(text), level, timestamp: Some(at) });
    }

    fn event(&mut self, now: Moment, limits: &Limits, phase: Phase, progress: Option<f64>) {
        if !self.has_room_for_lines(now, limits) {
            return;
        }
        let clamped = progress.map(|progress| match progress {
            progress if progress.is_nan() => 0.0,
            progress => progress.clamp(0.0, 1.0),
        });
        if clamped != progress {
            self.warn(now, "The progress was not between 0 and 1 and was set right.".to_owned());
        }
        let data = EventData::new(phase, clamped);
        self.log_bytes += FRAME_OVERHEAD + data.text.as_ref().map_or(0, String::len);
        self.push(Body::Event(data), 0);
    }

    fn has_room_for_lines(&mut self, now: Moment, limits: &Limits) -> bool {
        if self.log_bytes < limits.log_bytes_max {
            return true;
        }
        if !std::mem::replace(&mut self.is_cut, true) {
            self.warn(now, "The run said too much; further lines are left out.".to_owned());
        }
        false
    }

    fn push_log(&mut self, data: LogData) {
        let bytes = data.msg.len();
        self.log_bytes += bytes + FRAME_OVERHEAD;
        self.push(Body::Log(data), bytes);
    }

    fn partial(&mut self, limits: &Limits, outputs: Object) -> Result<(), Overflow> {
        // Everything is measured before anything is kept, so that a refusal changes nothing.
        let whole = json_bytes(&outputs) + FRAME_OVERHEAD;
        let new: usize = outputs.iter().map(|(key, value)| self.new_bytes(key, value)).sum();
        let total = self.output_bytes.saturating_add(new).saturating_add(FRAME_OVERHEAD);
        if whole > limits.frame_bytes_max || total > limits.output_bytes_max {
            return Err(Overflow);
        }
        self.output_bytes = total;
        let pieces = outputs.into_iter().map(|(key, value)| self.keep(key, value)).collect();
        self.push(Body::Partial(pieces), new);
        Ok(())
    }

    /// Adds to the text without a name. Peers of the half-migrated wire get it piece by piece,
    /// others as an output that grows.
    fn text_grows(&mut self, limits: &Limits, piece: &str) -> Result<(), Overflow> {
        let length = self.text.len() + piece.len();
        let total = self.output_bytes.saturating_add(piece.len()).saturating_add(FRAME_OVERHEAD);
        // Half of a frame is room enough for a text whose characters all have to be escaped once.
        if length > limits.frame_bytes_max / 2 || total > limits.output_bytes_max {
            return Err(Overflow);
        }
        self.text.push_str(piece);
        self.output_bytes += piece.len();
        let new = length - self.text_shown;
        if self.profile == Profile::Upstream || length <= SHOWN_AT_ONCE || new * STEP >= length {
            self.show_text();
        }
        Ok(())
    }

    /// Shows what of the text was not shown yet.
    fn show_text(&mut self) {
        let new = self.text_shown..self.text.len();
        if !new.is_empty() {
            self.text_shown = new.end;
            self.output_bytes += FRAME_OVERHEAD;
            let bytes = new.len();
            self.push(Body::Text(new), bytes);
        }
    }

    /// Takes what the run has cost so far. Who has said too much is heard when it is much more.
    fn cost(&mut self, limits: &Limits, cost: Micro) {
        let more = cost.saturating_sub(self.cost_told);
        let has_room = self.log_bytes < limits.log_bytes_max;
        if more > 0 && (has_room || more > self.cost_told / COST_STEP) {
            self.cost_told = cost;
            self.log_bytes += FRAME_OVERHEAD;
            self.push(Body::Cost(cost), 0);
        }
        self.note_cost(cost);
    }

    fn other(&mut self, now: Moment, limits: &Limits, frame: Object) {
        let bytes = json_bytes(&frame);
        let fits = self.profile == Profile::Upstream && bytes <= limits.frame_bytes_max / 2;
        if fits && self.has_room_for_lines(now, limits) {
            self.log_bytes += bytes.saturating_add(FRAME_OVERHEAD);
            self.push(Body::Other(frame), bytes);
        }
    }

    fn new_bytes(&self, key: &str, value: &Value) -> usize {
        match value {
            Value::String(text) => match self.latest(key).and_then(|old| text.strip_prefix(old)) {
                Some(delta) => key.len() + delta.len(),
                None => key.len() + text.len(),
            },
            other => key.len() + json_bytes(other),
        }
    }

    fn latest(&self, key: &str) -> Option<&str> {
        self.texts.get(key)?.last().map(String::as_str)
    }

    fn keep(&mut self, key: String, value: Value) -> (String, SpeechPiece) {
        let Value::String(text) = value else { return (key, SpeechPiece::Value(value)) };
        let versions = self.texts.entry(key.clone()).or_default();
        let end = text.len();
        let start = match versions.last_mut() {
            Some(old) if text.starts_with(old.as_str()) => {
                let start = old.len();
                old.push_str(&text[start..]);
                start
            }
            _ => {
                versions.push(text);
                0
            }
        };
        (key, SpeechPiece::Text { version: versions.len() - 1, start, end })
    }

    fn push(&mut self, body: Body, bytes: usize) {
        self.frames.push(SpeechEntry { body, bytes: bytes + FRAME_OVERHEAD });
    }
}

fn seconds(now: Moment) -> f64 {
    now.at.0 as f64 / 1000.0
}

/// A line of bearable length.
fn shortened(mut text: String) -> String {
    if text.len() > LINE_BYTES_MAX {
        text.truncate(text.floor_char_boundary(LINE_BYTES_MAX));
        text.push('…');
    }
    text
}
