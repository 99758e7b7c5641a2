//! Hostile bytes: nothing panics, nothing hangs, nothing grows.
//!
//! The targets draw bytes and run for a bounded time as plain tests; a fuzzing engine can drive
//! them for longer. Spoilt messages against live sessions are tried in `proof/fuzz`.

use wharf_wire::agent_v1::limits::FRAME_BYTES_MAX;
use wharf_wire::agent_v1::{AgentMessage, CoreMessage, EndMessage, FrameDecoder, decode, encode};

const ITERATIONS: usize = 100_000;

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
fn check_body<M: EndMessage + PartialEq + std::fmt::Debug>(body: &[u8]) {
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
