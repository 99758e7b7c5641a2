//! Small closed choices that appear in every layer.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$vdoc])* #[serde(rename = $text)] $variant),+
        }

        impl $name {
            /// Every choice there is.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The choice as it is written in every API.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// Reads the choice as it is written in every API.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)+ _ => None }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

choice! {
    /// Where a run stands.
    RunStatus {
        /// Accepted; no attempt is under way.
        Queued = "queued",
        /// An ask is open.
        Waiting = "waiting",
        /// An attempt is under way.
        Running = "running",
        /// Ended well.
        Succeeded = "succeeded",
        /// Ended with an error.
        Failed = "failed",
        /// Ended because somebody or some rule said no.
        Refused = "refused",
        /// Ended because it was canceled.
        Canceled = "canceled",
    }
}

impl RunStatus {
    /// Whether the run is over. Terminal states are final.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Refused | Self::Canceled)
    }
}

choice! {
    /// Whether a run acts on the world or pretends to.
    Mode {
        /// Acts.
        Real = "real",
        /// Pretends.
        Mock = "mock",
    }
}

choice! {
    /// Whether a run is written down.
    Durability {
        /// Every step is committed before it is shown.
        Journal = "journal",
        /// Nothing is stored; the run is gone after a restart.
        Memory = "memory",
    }
}

choice! {
    /// What an ask asks for.
    AskKind {
        /// Information.
        Question = "question",
        /// Permission.
        Approval = "approval",
    }
}
