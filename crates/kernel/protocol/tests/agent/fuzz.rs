//! Hostile bytes: nothing panics, nothing hangs, nothing grows.
//!
//! The first targets draw bytes and run for a bounded time as plain tests; a fuzzing engine can
//! drive them for longer. The last two mutate the examples of the wire, a million times together,
//! and feed what comes out to the decoder and to live sessions; their dice are seeded, so that a
//! failure is found again.

use std::path::Path;

use wharf_protocol::agent::{Additions, AgentSession, AnySchema, CoreSession};
use wharf_wire::agent_v1::limits::FRAME_BYTES_MAX;
use wharf_wire::agent_v1::{
    AgentMessage, CoreMessage, DecodeError, FrameDecoder, Message, decode, encode,
};

use super::stage::{agent_config, core_config, frame, hello, moment, request, tool, welcome};

const ITERATIONS: usize = 100_000;
const MUTATIONS: u32 = 1_000_000;

#[test]
fn r156_bytes_as_frames() {
    bolero::check!().with_iterations(ITERATIONS).for_each(|bytes: &[u8]| {
        let mut decoder = FrameDecoder::new(512);
        let mut pushed = 0;
        let mut given = 0;
        for piece in bytes.chunks(7) {
            decoder.push(piece);
            pushed += piece.len();
            while let Ok(Some(frame)) = decoder.next_frame() {
                assert!((1..=512).contains(&frame.len()));
                given += frame.len() + 4;
            }
            assert_eq!(decoder.held_bytes() + given, pushed);
        }
    });
}

/// What can be read can be written, and reads the same again.
fn check_body<M: Message + PartialEq + std::fmt::Debug>(body: &[u8]) {
    if let Ok(envelope) = decode::<M>(body) {
        let written = encode(&envelope, FRAME_BYTES_MAX).expect("no larger than what was read");
        assert_eq!(decode::<M>(&written[4..]).as_ref(), Ok(&envelope));
    }
}

#[test]
fn r156_bytes_as_envelopes() {
    bolero::check!().with_iterations(ITERATIONS).for_each(|bytes: &[u8]| {
        check_body::<AgentMessage>(bytes);
        check_body::<CoreMessage>(bytes);
    });
}

/// A small generator of numbers, good enough to spoil messages with.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.roll() % end.max(1) as u64).expect("below a usize")
    }
}

/// Pieces that a message can be spoilt with.
const TOKENS: &[&str] = &[
    "null",
    "true",
    "-1",
    "0",
    "1.5",
    "1e999",
    "18446744073709551616",
    "\"\"",
    "[]",
    "{}",
    "[[[[",
    "\\ud800",
    "\\u0000",
    "\u{feff}",
    "\"call_id\":\"c-1\"",
    "\"seq\":1",
    "{\"",
    "}}",
    ",",
    ":",
];

fn mutate(dice: &mut Dice, examples: &[Vec<u8>]) -> Vec<u8> {
    let mut body = examples[dice.below(examples.len())].clone();
    for _ in 0..=dice.below(3) {
        let at = dice.below(body.len() + 1);
        match dice.below(7) {
            0 if at < body.len() => body[at] ^= 1 << dice.below(8),
            1 if at < body.len() => drop(body.remove(at)),
            2 => body.insert(at, u8::try_from(dice.below(256)).expect("a byte")),
            3 => drop(body.splice(at..at, TOKENS[dice.below(TOKENS.len())].bytes())),
            4 => body.truncate(at),
            5 => {
                let other = &examples[dice.below(examples.len())];
                let from = dice.below(other.len());
                body.truncate(at);
                body.extend_from_slice(&other[from..]);
            }
            _ => {
                let end = (at + dice.below(32)).min(body.len());
                let piece = body[at..end].to_vec();
                drop(body.splice(at..at, piece));
            }
        }
    }
    body
}

/// The examples of one direction, as short as they can be written.
fn examples(prefix: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wire/testdata/agent_v1");
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .expect("the examples are there")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    names.sort();
    names
        .iter()
        .filter(|path| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(prefix)))
        .map(|path| {
            let text = std::fs::read_to_string(path).expect("readable");
            let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            value.to_string().replace("9b1a2c3d-4e5f-6789-abcd-ef0123456789", "c-1").into_bytes()
        })
        .collect()
}

fn message(kind: &str, payload: &serde_json::Value) -> Vec<u8> {
    let message = serde_json::json!({"v": 1, "type": kind, "id": "x", "payload": payload,
        "ts": "2026-01-16T12:00:00Z"});
    frame(message.to_string().as_bytes())
}

fn core() -> CoreSession {
    let mut core = CoreSession::new(moment(0), core_config(), AnySchema);
    core.receive(moment(0), &message("agent.hello", &hello()));
    core.accept(moment(0), Additions::ALL).expect("a hello waits");
    let tools = serde_json::json!({"tools": [tool("say"), tool("wait")]});
    core.receive(moment(0), &message("agent.tools.register", &tools));
    core.call(moment(0), request("c-1")).expect("taken");
    core
}

fn agent() -> AgentSession {
    let mut agent = AgentSession::new(moment(0), agent_config());
    agent.receive(moment(0), &message("core.welcome", &welcome()));
    let registered = serde_json::json!({"registered": ["dev.example.hello/say"]});
    agent.receive(moment(0), &message("core.tools.registered", &registered));
    agent
}

/// How many malformed frames there are for each that is given to a session: making a new session
/// is dear, and what is malformed has been refused by the decoder already.
const MALFORMED_SAMPLE: u32 = 200;
/// Time between two frames, long enough that violations alone do not end a session.
const PACE_MS: u64 = 7_000;

/// Spoils examples and gives `play` what is worth playing: all that a session has to think about,
/// and a sample of what it has to end at. Returns how many that were.
fn mutations<M: Message>(seed: u64, examples: &[Vec<u8>], mut play: impl FnMut(u64, &[u8])) -> u32 {
    let mut dice = Dice(seed);
    let mut frames = FrameDecoder::new(FRAME_BYTES_MAX);
    let mut played = 0;
    for n in 0..MUTATIONS / 2 {
        let body = mutate(&mut dice, examples);
        if body.is_empty() {
            continue;
        }
        let framed = frame(&body);
        frames.push(&framed[..framed.len() / 3]);
        frames.push(&framed[framed.len() / 3..]);
        let got = frames.next_frame().expect("not empty, not too large").expect("complete");
        assert_eq!(got, body);
        let malformed = matches!(decode::<M>(got), Err(DecodeError::Malformed(_)));
        assert_eq!(frames.held_bytes(), 0, "nothing is kept");
        if !malformed || n % MALFORMED_SAMPLE == 0 {
            played += 1;
            play(u64::from(n) * PACE_MS, &framed);
        }
    }
    played
}

#[test]
fn r156_half_a_million_mutated_frames_against_a_core() {
    let (mut session, mut ended) = (core(), 0);
    let played = mutations::<AgentMessage>(156, &examples("agent."), |now, bytes| {
        session.receive(moment(now), bytes);
        while session.poll_event().is_some() {}
        while session.poll_transmit().is_some() {}
        assert!(session.open_calls().count() <= 1);
        if session.is_closed() {
            session = core();
            ended += 1;
        }
    });
    assert!(played > 50_000 && ended > 2_000, "{played} played, {ended} ended a session");
}

#[test]
fn r156_half_a_million_mutated_frames_against_an_agent() {
    let (mut session, mut ended) = (agent(), 0);
    let played = mutations::<CoreMessage>(651, &examples("core."), |now, bytes| {
        session.receive(moment(now), bytes);
        while session.poll_event().is_some() {}
        while session.poll_transmit().is_some() {}
        assert!(session.open_calls().count() <= 256);
        if session.is_closed() {
            session = agent();
            ended += 1;
        }
    });
    assert!(played > 50_000 && ended > 2_000, "{played} played, {ended} ended a session");
}
