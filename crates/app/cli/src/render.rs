//! Shows a run to a person while it goes on, on standard error.
//!
//! On a terminal there is a progress bar below the text; elsewhere there is only the text. What
//! the tool wrote is made safe first when a terminal reads it. The outcome itself is not written
//! here.

mod bar;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use wharf_client::Update;
use wharf_vocab::AskId;
use wharf_wire::rest_v1::{Event, ProgressEvent, TextEvent};

use crate::output::{Output, Paint};
use crate::plain::{self, Cleaner};
use bar::Bar;

/// Channels whose text is shown as it is; that of others is marked with the channel's name.
const PLAIN_CHANNELS: [&str; 2] = ["stdout", "stderr"];

/// Channels that are remembered.
const CHANNELS_MAX: usize = 1_000;

/// Shows one run.
pub(crate) struct Renderer<W> {
    out: W,
    paint: Paint,
    /// The reader is a terminal, which must not see control characters.
    terminal: bool,
    bar: Option<Bar>,
    cleaners: BTreeMap<String, Cleaner>,
    /// The channel that has written part of a line.
    open_line: Option<String>,
    /// The run is over, so the bar stays away.
    finished: bool,
    /// Channels on which text came.
    streamed: BTreeSet<String>,
    /// The asks the run waits for, oldest first, and what the bar says meanwhile.
    waiting: Vec<(AskId, &'static str)>,
}

/// What to say about the connection, if that is what the update is about.
pub(crate) fn connection(update: &Update) -> Option<&'static str> {
    match update {
        Update::Event(_) => None,
        Update::Disconnected => {
            Some("lost the core; waiting for it to come back (wharf up starts it)")
        }
        Update::Reconnected => Some("the core is back"),
    }
}

impl Renderer<std::io::Stderr> {
    /// Shows a run on standard error.
    pub(crate) fn new(output: Output) -> Self {
        let terminal = output.err_is_terminal();
        Self::on(std::io::stderr(), output.err_paint(), terminal, terminal.then(Bar::new))
    }
}

impl<W: Write> Renderer<W> {
    fn on(out: W, paint: Paint, terminal: bool, bar: Option<Bar>) -> Self {
        Self {
            out,
            paint,
            terminal,
            bar,
            cleaners: BTreeMap::new(),
            open_line: None,
            finished: false,
            streamed: BTreeSet::new(),
            waiting: Vec::new(),
        }
    }

    /// Shows what happened.
    pub(crate) fn show(&mut self, update: &Update) {
        if let Update::Event(happened) = update
            && let Some(event) = &happened.event
        {
            self.event(event);
        }
        if let Some(text) = connection(update) {
            self.say(&self.paint.attention(text));
        }
    }

    /// Whether text came on this channel.
    pub(crate) fn has_streamed(&self, channel: &str) -> bool {
        self.streamed.contains(channel)
    }

    /// Says something beside what the run itself says.
    pub(crate) fn say(&mut self, text: &str) {
        self.close_line();
        self.write(&format!("{text}\n"));
    }

    /// Takes the bar away; nothing is shown after it.
    pub(crate) fn finish(&mut self) {
        self.close_line();
        self.finished = true;
        if let Some(bar) = &mut self.bar {
            bar.hold();
        }
    }

    fn event(&mut self, event: &Event) {
        match event {
            Event::Queued(event) => match &event.reason {
                Some(reason) => self.phase(&format!("queued: {}", plain::line(reason))),
                None => self.phase("queued"),
            },
            Event::Started(_) => self.phase("running"),
            Event::Text(event) => self.text(event),
            Event::Progress(event) => self.progress(event),
            Event::Partial(event) => {
                if let Some(bar) = &mut self.bar {
                    bar.set_detail(&words::partial(event));
                }
            }
            Event::Finished(event) => {
                self.finish();
                let text = words::finished(&event.run, self.paint);
                self.say(&text);
            }
            Event::Question(event) | Event::Approval(event) => {
                self.waiting.push((event.ask.ask_id.clone(), words::waiting(&event.ask)));
                self.go_on();
                let text = words::ask(&event.ask, self.paint);
                self.say(&text);
            }
            Event::Decided(event) => {
                self.waiting.retain(|(ask, _)| *ask != event.ask_id);
                self.go_on();
                self.say(&words::decided(event, self.paint));
            }
            Event::Attempt(event) => {
                self.go_on();
                self.say(&self.paint.attention(&words::attempt(event)));
            }
            Event::Log(event) => {
                let text = self.safe(&event.text);
                self.say(&words::log(event.level, text.trim_end(), self.paint));
            }
            Event::Gap(event) => self.say(&self.paint.attention(&words::gap(event))),
        }
    }

    /// What the run does now: it waits for what is still open, or runs.
    fn go_on(&mut self) {
        let phase = self.waiting.first().map_or("running", |(_, waiting)| waiting);
        self.phase(phase);
    }

    fn phase(&mut self, phase: &str) {
        if let Some(bar) = &mut self.bar {
            bar.set_phase(phase, None);
        }
    }

    fn progress(&mut self, event: &ProgressEvent) {
        if let Some(bar) = &mut self.bar {
            bar.set_phase(&plain::cut(&event.phase, 60), event.fraction);
        }
    }

    fn text(&mut self, event: &TextEvent) {
        if event.channel == "status"
            && let Some(bar) = &mut self.bar
        {
            bar.set_detail(&plain::cut(&event.text, 60));
            return;
        }
        let text = self.safe_piece(&event.channel, &event.text);
        if text.is_empty() {
            return;
        }
        if self.streamed.len() < CHANNELS_MAX && !self.streamed.contains(&event.channel) {
            self.streamed.insert(event.channel.clone());
        }
        if self.open_line.as_ref().is_some_and(|channel| *channel != event.channel) {
            self.close_line();
        }
        let shown = self.marked(&event.channel, &text);
        self.open_line = (!text.ends_with('\n')).then(|| event.channel.clone());
        self.write(&shown);
    }

    /// Puts the channel's name before each line that begins in `text`.
    fn marked(&self, channel: &str, text: &str) -> String {
        if PLAIN_CHANNELS.contains(&channel) {
            return text.to_owned();
        }
        let mark = self.paint.faint(&format!("{} | ", plain::cut(channel, 20)));
        let mut begins = self.open_line.is_none();
        let mut shown = String::with_capacity(text.len() + mark.len());
        for line in text.split_inclusive('\n') {
            if std::mem::replace(&mut begins, true) {
                shown.push_str(&mark);
            }
            shown.push_str(line);
        }
        shown
    }

    /// A piece of a channel's text; a sequence that began in an earlier piece is still known.
    fn safe_piece(&mut self, channel: &str, text: &str) -> String {
        if !self.terminal {
            return text.to_owned();
        }
        let mut clean = String::with_capacity(text.len());
        self.cleaners.entry(channel.to_owned()).or_default().push(text, &mut clean);
        clean
    }

    fn safe(&self, text: &str) -> String {
        if self.terminal { plain::text(text) } else { text.to_owned() }
    }

    fn close_line(&mut self) {
        if self.open_line.take().is_some() {
            self.write("\n");
        }
    }

    /// Writes above the bar, or in place of it while a line stays open.
    fn write(&mut self, text: &str) {
        let out = &mut self.out;
        // A reader of standard error that has gone is no reason to leave the run alone.
        let mut write = || {
            let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        };
        match &mut self.bar {
            Some(bar) if self.open_line.is_some() => {
                bar.hold();
                write();
            }
            Some(bar) => {
                bar.around(write);
                if !self.finished {
                    bar.release();
                }
            }
            None => write(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_client::RunEvent;

    fn shown(terminal: bool, events: &[(&str, serde_json::Value)]) -> String {
        let mut renderer = Renderer::on(Vec::new(), Paint::off(), terminal, None);
        for (name, data) in events {
            let event = Event::parse(name, &data.to_string()).expect("readable");
            let happened = RunEvent { name: (*name).to_owned(), data: data.clone(), event };
            renderer.show(&Update::Event(Box::new(happened)));
        }
        renderer.finish();
        String::from_utf8(renderer.out).expect("text")
    }

    fn text(channel: &str, text: &str) -> (&'static str, serde_json::Value) {
        let data = serde_json::json!(
            {"seq": 1, "run_id": "r", "at": "2026-11-15T09:00:00.000Z", "channel": channel, "text": text}
        );
        ("text", data)
    }

    #[test]
    fn text_streams_as_it_comes() {
        let events = [text("stdout", "one "), text("stdout", "two\nth"), text("stdout", "ree\n")];
        assert_eq!(shown(false, &events), "one two\nthree\n");
    }

    #[test]
    fn channels_do_not_share_a_line() {
        let events = [text("stdout", "half"), text("answer", "Hel"), text("answer", "lo\nyou")];
        assert_eq!(shown(false, &events), "half\nanswer | Hello\nanswer | you\n");
    }

    #[test]
    fn a_terminal_sees_no_escape_even_when_it_is_cut() {
        let events = [text("stdout", "a\u{1b}"), text("stdout", "[31mb\u{7}\n")];
        assert_eq!(shown(true, &events), "ab\n");
        assert_eq!(shown(false, &events), "a\u{1b}[31mb\u{7}\n");
    }

    #[test]
    fn every_kind_of_event_can_be_shown() {
        let examples = include_str!("../../../kernel/wire/testdata/rest_v1/events.ndjson").lines();
        let events: Vec<_> = examples
            .map(|line| {
                let (name, data) = line.split_once(' ').expect("name and data");
                (name, serde_json::from_str(data).expect("json"))
            })
            .collect();
        let shown = shown(true, &events);
        for part in [
            "retry: attempt 2",
            "hello",
            "1\n",
            "waiting for an answer: Which color?",
            "wharf answer c3q1",
            "wharf approve c3q2",
            "answered by owner",
            "succeeded",
        ] {
            assert!(shown.contains(part), "{part:?} is missing in {shown}");
        }
    }
}
