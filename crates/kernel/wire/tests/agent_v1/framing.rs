//! Bytes to frames.

use wharf_wire::agent_v1::limits::FRAME_BYTES_MAX;
use wharf_wire::agent_v1::{AgentMessage, Envelope, FrameDecoder, FrameError, decode, encode};

use super::heartbeat;

fn frame(body: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(body.len()).expect("small").to_be_bytes().to_vec();
    frame.extend_from_slice(body);
    frame
}

/// All frames that come out when the bytes arrive in pieces.
fn cut(bytes: &[u8], piece: usize) -> Vec<Vec<u8>> {
    let mut decoder = FrameDecoder::new(FRAME_BYTES_MAX);
    let mut frames = Vec::new();
    for piece in bytes.chunks(piece) {
        decoder.push(piece);
        while let Some(frame) = decoder.next_frame().expect("well framed") {
            frames.push(frame.to_vec());
        }
    }
    decoder.finish().expect("no remainder");
    frames
}

#[test]
fn r001_a_frame_is_a_big_endian_length_and_that_many_bytes() {
    let message: Envelope<AgentMessage> =
        decode(heartbeat().to_string().as_bytes()).expect("reads");
    let bytes = encode(&message, FRAME_BYTES_MAX).expect("fits");
    let length = u32::from_be_bytes(*bytes.first_chunk().expect("a prefix")) as usize;
    assert_eq!(length, bytes.len() - 4);
    assert_eq!(decode::<AgentMessage>(&bytes[4..]), Ok(message));
}

#[test]
fn r002_the_length_counts_utf8_bytes() {
    let mut value = heartbeat();
    value["id"] = "é世😀".into();
    let message: Envelope<AgentMessage> = decode(value.to_string().as_bytes()).expect("reads");
    let bytes = encode(&message, FRAME_BYTES_MAX).expect("fits");
    let frames = cut(&bytes, 3);
    assert_eq!(frames.len(), 1);
    let back: Envelope<AgentMessage> = decode(&frames[0]).expect("reads");
    assert_eq!(back.id.as_str(), "é世😀");
}

#[test]
fn r005_an_empty_frame_is_refused() {
    let mut decoder = FrameDecoder::new(FRAME_BYTES_MAX);
    decoder.push(&[0, 0, 0, 0]);
    assert_eq!(decoder.next_frame(), Err(FrameError::Empty));
}

#[test]
fn r006_how_bytes_are_cut_makes_no_difference() {
    let mut bytes = Vec::new();
    let bodies: Vec<Vec<u8>> = (1..200_usize).map(|n| vec![b'x'; n * 7 % 300 + 1]).collect();
    for body in &bodies {
        bytes.extend(frame(body));
    }
    for piece in [1, 2, 3, 4, 5, 7, 64, 1000, bytes.len()] {
        assert_eq!(cut(&bytes, piece), bodies, "pieces of {piece}");
    }
}

#[test]
fn r007_an_end_inside_a_frame_is_noticed_wherever_it_is() {
    let bytes = frame(b"{}");
    for end in 1..bytes.len() {
        let mut decoder = FrameDecoder::new(FRAME_BYTES_MAX);
        decoder.push(&bytes[..end]);
        assert_eq!(decoder.next_frame(), Ok(None), "{end} bytes");
        assert_eq!(decoder.finish(), Err(FrameError::Truncated), "{end} bytes");
    }
}

#[test]
fn r008_the_largest_frame_passes_and_one_byte_more_does_not() {
    assert_eq!(FRAME_BYTES_MAX, 4_194_304);
    let mut decoder = FrameDecoder::new(FRAME_BYTES_MAX);
    decoder.push(&frame(&vec![b' '; FRAME_BYTES_MAX as usize]));
    let got = decoder.next_frame().expect("fits").expect("complete");
    assert_eq!(got.len(), FRAME_BYTES_MAX as usize);

    decoder.push(&(FRAME_BYTES_MAX + 1).to_be_bytes());
    let announced = u64::from(FRAME_BYTES_MAX) + 1;
    assert_eq!(
        decoder.next_frame(),
        Err(FrameError::TooLarge { announced, limit: FRAME_BYTES_MAX })
    );
}

#[test]
fn r009_an_oversize_frame_is_refused_from_its_prefix() {
    let mut decoder = FrameDecoder::new(FRAME_BYTES_MAX);
    decoder.push(&[0xff, 0xff, 0xff]);
    assert_eq!(decoder.next_frame(), Ok(None));
    decoder.push(&[0xff]);
    let announced = u64::from(u32::MAX);
    let refused = Err(FrameError::TooLarge { announced, limit: FRAME_BYTES_MAX });
    assert_eq!(decoder.next_frame(), refused);
    assert_eq!(decoder.next_frame(), refused, "the error stays");
    assert_eq!(decoder.held_bytes(), 4);
}

#[test]
fn r011_a_refused_frame_can_be_let_go_by_without_being_kept() {
    let mut decoder = FrameDecoder::new(100);
    decoder.push(&1_000_u32.to_be_bytes());
    decoder.push(&[b'x'; 300]);
    assert!(decoder.next_frame().is_err());
    decoder.skip_frame();
    for _ in 0..7 {
        decoder.push(&[b'x'; 100]);
        assert_eq!(decoder.held_bytes(), 0);
    }
    assert_eq!(decoder.finish(), Ok(()));
    decoder.push(&frame(b"next"));
    assert_eq!(decoder.next_frame(), Ok(Some(b"next".as_slice())));
}

#[test]
fn r012_a_message_above_the_limit_is_not_written() {
    let message: Envelope<AgentMessage> =
        decode(heartbeat().to_string().as_bytes()).expect("reads");
    let size = u32::try_from(encode(&message, FRAME_BYTES_MAX).expect("fits").len() - 4);
    let size = size.expect("small");
    assert!(encode(&message, size).is_ok());
    assert_eq!(
        encode(&message, size - 1),
        Err(FrameError::TooLarge { announced: u64::from(size), limit: size - 1 })
    );
}

#[test]
fn r052_what_a_decoder_holds_is_not_shown() {
    let mut decoder = FrameDecoder::new(FRAME_BYTES_MAX);
    decoder.push(b"\0\0\0\xffcanary");
    let shown = format!("{decoder:?}");
    assert!(!shown.contains("canary") && !shown.contains("99, 97, 110"), "{shown}");
}
