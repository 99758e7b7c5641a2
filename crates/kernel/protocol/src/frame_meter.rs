//! How much of a message has arrived that is not whole.
//!
//! Libraries for WebSockets keep a message until its last byte is there, and say nothing of it
//! before. Whoever carries the bytes can count along: this reads the heads of frames and nothing
//! else. It judges nothing; what is no frame is the library's to refuse.

/// Longest head of a frame: two bytes, a length of eight and a mask of four.
const HEAD_BYTES_MAX: usize = 14;

/// Counts along with the frames of one direction.
#[derive(Debug, Clone, Default)]
pub struct FrameMeter {
    head: [u8; HEAD_BYTES_MAX],
    /// How much of a head is there.
    head_bytes: usize,
    /// What is still to come of the frame.
    left: u64,
    kind: FrameKind,
    /// What is there of the message.
    held: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum FrameKind {
    /// A ping, a pong or a close, which may stand between the frames of a message.
    #[default]
    Control,
    /// A part of a message that goes on.
    Part,
    /// The last part of a message.
    Last,
}

impl FrameMeter {
    /// Bytes of the message that has begun and is not whole; 0 between messages.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.held
    }

    /// Counts what has arrived.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.left > 0 {
                let count = bytes.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
                self.payload(count as u64);
                bytes = &bytes[count..];
            } else {
                self.head[self.head_bytes] = bytes[0];
                self.head_bytes += 1;
                bytes = &bytes[1..];
                if self.head_bytes == head_length(&self.head[..self.head_bytes]) {
                    self.begin();
                }
            }
        }
    }

    fn begin(&mut self) {
        let (first, second) = (self.head[0], self.head[1]);
        self.kind = match (first & 0x08, first & 0x80) {
            (0, 0) => FrameKind::Part,
            (0, _) => FrameKind::Last,
            _ => FrameKind::Control,
        };
        let number = |bytes: &[u8]| bytes.iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
        self.left = match second & 0x7f {
            126 => number(&self.head[2..4]),
            127 => number(&self.head[2..10]),
            length => u64::from(length),
        };
        self.head_bytes = 0;
        if self.left == 0 {
            self.end();
        }
    }

    fn payload(&mut self, count: u64) {
        self.left -= count;
        if self.kind != FrameKind::Control {
            self.held = self.held.saturating_add(count);
        }
        if self.left == 0 {
            self.end();
        }
    }

    fn end(&mut self) {
        if self.kind == FrameKind::Last {
            self.held = 0;
        }
    }
}

/// How long a head is that begins like this; longer than what is there while that is not known.
fn head_length(head: &[u8]) -> usize {
    let Some(second) = head.get(1) else { return 2 };
    let length = match second & 0x7f {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    let mask = if second & 0x80 == 0 { 0 } else { 4 };
    2 + length + mask
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame(first: u8, masked: bool, payload: usize) -> Vec<u8> {
        let mask = if masked { 0x80 } else { 0 };
        let mut frame = vec![first];
        match payload {
            0..126 => frame.push(mask | payload as u8),
            126..65_536 => {
                frame.push(mask | 126);
                frame.extend((payload as u16).to_be_bytes());
            }
            _ => {
                frame.push(mask | 127);
                frame.extend((payload as u64).to_be_bytes());
            }
        }
        frame.extend(std::iter::repeat_n(0, if masked { 4 } else { 0 }));
        frame.extend(std::iter::repeat_n(b'x', payload));
        frame
    }

    #[test]
    fn a_message_counts_until_it_is_whole() {
        for masked in [false, true] {
            let mut meter = FrameMeter::default();
            for (first, payload, held) in [
                (0x81, 5, 0),
                (0x82, 70_000, 0),
                (0x01, 300, 300),
                (0x89, 125, 300),
                (0x00, 0, 300),
                (0x00, 70_000, 70_300),
                (0x80, 1, 0),
                (0x01, 10, 10),
                (0x80, 0, 0),
            ] {
                meter.feed(&frame(first, masked, payload));
                assert_eq!(meter.held(), held, "{first:x} {payload}");
            }
            let whole = frame(0x81, masked, 1_000);
            meter.feed(&whole[..whole.len() - 1]);
            assert_eq!(meter.held(), 999);
            meter.feed(&whole[whole.len() - 1..]);
            assert_eq!(meter.held(), 0);
        }
    }

    proptest! {
        #[test]
        fn a_cut_anywhere_changes_nothing(
            frames in proptest::collection::vec((any::<u8>(), any::<bool>(), 0_usize..400), 1..8),
            cuts in proptest::collection::vec(0_usize..2_000, 0..6),
        ) {
            let bytes: Vec<u8> =
                frames.iter().flat_map(|(first, masked, n)| frame(*first, *masked, *n)).collect();
            let mut whole = FrameMeter::default();
            whole.feed(&bytes);
            let mut pieces = FrameMeter::default();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|at| at.min(bytes.len())).collect();
            cuts.push(bytes.len());
            cuts.sort_unstable();
            let mut from = 0;
            for at in cuts {
                pieces.feed(&bytes[from..at]);
                from = at;
            }
            prop_assert_eq!(pieces.held(), whole.held());
        }

        #[test]
        fn nothing_that_arrives_breaks_it(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let mut meter = FrameMeter::default();
            meter.feed(&bytes);
            prop_assert!(meter.held() <= bytes.len() as u64);
        }
    }
}
