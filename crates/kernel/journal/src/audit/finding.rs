//! What can be found wrong with an audit, in words for whoever looks after it.

use std::fmt;

use serde::Serialize;
use wharf_vocab::ShardId;

/// What looking through an audit has shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ChainReport {
    /// How many records were looked at.
    pub records: u64,
    /// How many chains they belong to.
    pub chains: u64,
    /// What is wrong, by shard; at most [`ChainReport::FINDINGS_MAX`] of them.
    pub findings: Vec<Finding>,
    /// How many more there are.
    pub findings_left_out: u64,
}

impl ChainReport {
    /// How many findings a report keeps.
    pub const FINDINGS_MAX: usize = 1_000;

    /// Whether nothing is wrong.
    pub fn is_whole(&self) -> bool {
        self.findings.is_empty()
    }
}

/// One thing that is wrong with one chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The chain.
    pub shard: ShardId,
    /// What is wrong.
    pub trouble: Trouble,
}

/// What is wrong with a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Trouble {
    /// Records do not match their seals.
    Changed {
        /// The first of them.
        first: u64,
        /// The last of them.
        last: u64,
    },
    /// Records are not there.
    Missing {
        /// The first of them.
        first: u64,
        /// The last of them.
        last: u64,
    },
    /// A record stands where it does not belong, or twice.
    Misplaced {
        /// Its place.
        n: u64,
    },
    /// The end of the chain is not there.
    Cut {
        /// The last record that is there.
        last: u64,
        /// The last record there was.
        head: u64,
    },
    /// Records stand behind the signed head.
    Beyond {
        /// The last record that is there.
        last: u64,
        /// The last record the head knows.
        head: u64,
    },
    /// The last record is not the one the head was signed for.
    HeadDiffers {
        /// The place of the record.
        n: u64,
    },
    /// The head's signature is wrong.
    HeadForged,
    /// There is no head.
    HeadMissing,
    /// The chain ends before an anchor.
    AnchorCut {
        /// The last record that is there.
        last: u64,
        /// The last record when the anchor was written.
        anchor: u64,
    },
    /// A record is not the one an anchor was written for.
    AnchorDiffers {
        /// The place of the record.
        n: u64,
    },
    /// An anchor's signature is wrong.
    AnchorForged {
        /// The place the anchor speaks of.
        n: u64,
    },
}

impl Trouble {
    /// Where in the chain it is; what has no place comes last.
    pub(super) fn place(&self) -> u64 {
        match *self {
            Self::Changed { first: n, .. }
            | Self::Missing { first: n, .. }
            | Self::Misplaced { n }
            | Self::Cut { last: n, .. }
            | Self::Beyond { head: n, .. }
            | Self::HeadDiffers { n }
            | Self::AnchorCut { last: n, .. }
            | Self::AnchorDiffers { n }
            | Self::AnchorForged { n } => n,
            Self::HeadForged | Self::HeadMissing => u64::MAX,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shard = self.shard;
        match self.trouble {
            Trouble::Changed { first, last } if first == last => write!(
                f,
                "Record {first} of shard {shard} does not match its seal: it was edited or \
                 inserted, or sealed again without the key."
            ),
            Trouble::Changed { first, last } => write!(
                f,
                "Records {first} to {last} of shard {shard} do not match their seals: they were \
                 edited or inserted, or sealed again without the key."
            ),
            Trouble::Missing { first, last } if first == last => {
                write!(f, "Record {first} of shard {shard} was removed.")
            }
            Trouble::Missing { first, last } => {
                write!(f, "Records {first} to {last} of shard {shard} were removed.")
            }
            Trouble::Misplaced { n } => write!(
                f,
                "Record {n} of shard {shard} stands out of order or twice: it was moved or \
                 inserted."
            ),
            Trouble::Cut { last, head } => write!(
                f,
                "The end of shard {shard} was cut off: there were {head} records and only \
                 {last} are left."
            ),
            Trouble::Beyond { last, head } => write!(
                f,
                "Shard {shard} has {last} records but its signed head knows {head}: records \
                 were added, or the head was set back."
            ),
            Trouble::HeadDiffers { n } => write!(
                f,
                "The signed head of shard {shard} does not fit record {n}: the record was \
                 replaced, or the head was set back."
            ),
            Trouble::HeadForged => {
                write!(f, "The head of shard {shard} was changed or signed without the key.")
            }
            Trouble::HeadMissing => {
                write!(f, "Shard {shard} has records but its signed head was removed.")
            }
            Trouble::AnchorCut { last, anchor } => write!(
                f,
                "Shard {shard} had {anchor} records when an anchor was written and has {last} \
                 now: its end was cut off, or an older copy of the database was put in its place."
            ),
            Trouble::AnchorDiffers { n } => write!(
                f,
                "Record {n} of shard {shard} is not the one an anchor was written for: the chain \
                 was replaced."
            ),
            Trouble::AnchorForged { n } => write!(
                f,
                "The anchor of shard {shard} at record {n} was changed or signed without the key."
            ),
        }
    }
}
