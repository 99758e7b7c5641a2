//! What the fuzz targets of all wires share: seeded dice, a stock of valid messages that are
//! spoilt one by one, and a count of what became of them. Beside it, a flood of pings for those
//! that have sockets.
//!
//! A target is a test named `fuzz_<wire>`. It shakes hands, hands every frame to a session that is
//! alive, shakes hands again when that was cut, and checks after each frame what must always hold.
//! So every frame that is counted was looked at after a handshake. `cargo test` tries a tenth of
//! what `make fuzz FRAMES=1000000` tries; the same seed makes the same frames.

mod dice;
mod flood;
mod stock;

use std::fmt;
use std::io::Write as _;

pub use dice::Dice;
pub use flood::flood_pings;
pub use stock::Stock;

/// Frames for each wire when nothing else is said: a tenth of a million.
const TENTH: u64 = 100_000;

/// What became of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Met {
    /// It was taken, or passed over as the wire allows.
    Taken,
    /// It was refused, and the connection goes on.
    Refused,
    /// It ended the connection; the next frame comes after another handshake.
    Cut,
}

/// One target's work.
#[derive(Debug)]
pub struct Fuzz {
    wire: &'static str,
    seed: u64,
    frames: u64,
}

impl Fuzz {
    /// The target of a wire.
    #[must_use]
    pub fn new(wire: &'static str) -> Self {
        Self::slow(wire, 1)
    }

    /// The target of a wire whose frames each take long: without being told otherwise it tries
    /// only one of so many.
    #[must_use]
    pub fn slow(wire: &'static str, fewer: u64) -> Self {
        let frames = number("WHARF_FUZZ_FRAMES").unwrap_or(TENTH / fewer);
        Self { wire, seed: number("WHARF_FUZZ_SEED").unwrap_or(1), frames }
    }

    /// The dice of this target.
    #[must_use]
    pub fn dice(&self) -> Dice {
        // Wires differ in their dice, not only in their stock.
        let name = self
            .wire
            .bytes()
            .fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
        Dice::new(self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ name)
    }

    /// Hands one spoilt message after another to `meet` and counts what became of them.
    ///
    /// # Panics
    /// If too few were taken or none was refused: then the target tests less than it says.
    pub fn run(&self, stock: &Stock, mut meet: impl FnMut(&mut Dice, &[u8]) -> Met) -> Tally {
        let mut dice = self.dice();
        let mut tally = Tally::new(self);
        for _ in 0..self.frames {
            let frame = stock.spoil(&mut dice);
            tally.count(meet(&mut dice, &frame));
        }
        tally.tell();
        tally
    }

    /// How many frames are to be tried.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.frames
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// What became of all frames.
#[derive(Debug)]
pub struct Tally {
    wire: &'static str,
    seed: u64,
    taken: u64,
    refused: u64,
    cut: u64,
}

impl Tally {
    /// Nothing was tried yet.
    #[must_use]
    pub fn new(fuzz: &Fuzz) -> Self {
        Self { wire: fuzz.wire, seed: fuzz.seed, taken: 0, refused: 0, cut: 0 }
    }

    /// Counts a frame.
    pub fn count(&mut self, met: Met) {
        match met {
            Met::Taken => self.taken += 1,
            Met::Refused => self.refused += 1,
            Met::Cut => self.cut += 1,
        }
    }

    /// Says how many there were, and that it was a fair mixture.
    ///
    /// # Panics
    /// If it was none.
    pub fn tell(&self) {
        // Nothing is left to do if even standard error is gone.
        let _ = writeln!(std::io::stderr(), "{self}");
        let frames = self.taken + self.refused + self.cut;
        let wrong = self.refused + self.cut;
        assert!(self.taken * 20 >= frames && wrong * 20 >= frames, "not a fair mixture: {self}");
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { wire, seed, taken, refused, cut } = self;
        let frames = taken + refused + cut;
        write!(
            f,
            "fuzz {wire}: seed {seed}, {frames} frames after a handshake: {taken} taken, \
             {refused} refused, {cut} cut the connection"
        )
    }
}
