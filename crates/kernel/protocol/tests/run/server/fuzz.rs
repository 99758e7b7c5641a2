//! Hostile text: nothing panics, and what can be read can be written and reads the same again.

use std::path::Path;

use wharf_protocol::run::server::{Limits, Profile, RunServer};
use wharf_wire::run_v1::{
    FirstFrame, Frame, FromServer, LaterFrame, RunRequest, decode_first, decode_from_server,
    decode_later, encode, limits,
};

use super::{Heard, at, hears_text};

const ITERATIONS: usize = 100_000;
const MUTATIONS: u32 = 300_000;

/// Whether the numbers of a text survive being written; very long ones lose their last digit.
fn survives(text: &str) -> bool {
    let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
    let value = read(text);
    value.as_ref().is_none_or(|value| read(&value.to_string()).as_ref() == Some(value))
}

fn check(text: &str) {
    if !survives(text) {
        return;
    }
    if let Ok(FirstFrame::Request(request)) = decode_first(text, limits::FRAME_BYTES_MAX) {
        check_request(request);
    }
    if let Ok(LaterFrame::Cancel(cancel)) = decode_later(text, limits::FRAME_BYTES_MAX) {
        let written = encode(&Frame::Cancel(cancel.clone()));
        assert_eq!(decode_later(&written, written.len()), Ok(LaterFrame::Cancel(cancel)));
    }
    if let Ok(read) = decode_from_server(text) {
        let frame = match read.clone() {
            FromServer::Ack(ack) => Frame::Ack(ack),
            FromServer::Log(log) => Frame::Log(log),
            FromServer::Event(event) => Frame::Event(event),
            FromServer::Token(token) => Frame::Token(token),
            FromServer::Step(step) => Frame::Step(*step),
            FromServer::Response(response) => Frame::Response(response),
            FromServer::Unknown => return,
        };
        assert_eq!(decode_from_server(&encode(&frame)), Ok(read), "{text}");
    }
}

fn check_request(request: Box<RunRequest>) {
    let written = encode(&Frame::Request(RunRequest::clone(&request)));
    assert_eq!(decode_first(&written, usize::MAX), Ok(FirstFrame::Request(request)));
}

#[test]
fn t005_bytes_as_frames() {
    bolero::check!().with_iterations(ITERATIONS).for_each(|bytes: &[u8]| {
        check(&String::from_utf8_lossy(bytes));
    });
}

/// A small generator of numbers, good enough to spoil messages with.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % below as u64).expect("small")
    }
}

fn examples() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wire/testdata/run_v1");
    let mut texts = Vec::new();
    for folder in [folder.clone(), folder.join("seed")] {
        for entry in std::fs::read_dir(folder).expect("the folder is there") {
            let path = entry.expect("readable").path();
            if path.is_file() {
                texts.push(std::fs::read_to_string(path).expect("readable"));
            }
        }
    }
    assert!(texts.len() > 20);
    texts.sort();
    texts
}

fn spoilt(dice: &mut Dice, examples: &[String]) -> String {
    const PIECES: [&[u8]; 14] = [
        b"{",
        b"}",
        b"[",
        b"]",
        b"\"",
        b":",
        b",",
        b"null",
        b"1e9",
        b"-1",
        b"true",
        b"\\ud83d",
        b"\"kind\":\"Request\"",
        b"\0",
    ];
    let mut bytes = examples[dice.roll(examples.len())].clone().into_bytes();
    for _ in 0..=dice.roll(4) {
        let from = dice.roll(bytes.len() + 1);
        let to = (from + dice.roll(6)).min(bytes.len());
        let piece = PIECES[dice.roll(PIECES.len())];
        match dice.roll(3) {
            0 => drop(bytes.splice(from..to, piece.iter().copied())),
            1 => drop(bytes.drain(from..to)),
            _ => {
                if let Some(byte) = bytes.get_mut(from) {
                    *byte = u8::try_from(dice.roll(256)).expect("a byte");
                }
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn t005_spoilt_examples_never_confuse_a_session() {
    let examples = examples();
    let mut dice = Dice(1);
    for round in 0..MUTATIONS {
        let text = spoilt(&mut dice, &examples);
        check(&text);
        let mut session = RunServer::new(at(0), &Limits::default(), Profile::Default);
        for _ in 0..2 {
            match hears_text(&mut session, at(u64::from(round)), &text) {
                Heard::Request(request) => assert!(!request.control.run_id.is_empty()),
                Heard::Close { code, reason } => {
                    assert!((1000..=1013).contains(&code));
                    assert!(reason.len() <= 120, "fits into a close frame");
                }
                Heard::Unfit(unfit) => assert!(!unfit.run_id.is_empty()),
                Heard::Cancel | Heard::Stepped(_) | Heard::Nothing => {}
            }
        }
    }
}
