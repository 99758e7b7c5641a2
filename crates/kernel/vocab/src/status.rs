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

choice! {
    /// How firmly a launched provider is fenced in, from not at all to most.
    SandboxLevel {
        /// Not at all, beyond a process of its own.
        None = "none",
        /// No new privileges, limits, a clean environment, nothing outlives it.
        Basic = "basic",
        /// Also its own view of files and processes, and no network but what was approved.
        Standard = "standard",
        /// Also a network of its own and no shared files beyond what its interpreter needs.
        Strict = "strict",
    }
}

choice! {
    /// Which runs share a process of a launched provider.
    Isolation {
        /// All of them.
        Shared = "shared",
        /// Those of one world.
        World = "world",
        /// None: each run has its own.
        Run = "run",
    }
}

choice! {
    /// What a grant lets its bearer do.
    Verb {
        /// Start and cancel runs.
        Run = "run",
        /// Look at runs, tools, agents, worlds and asks.
        Read = "read",
        /// Answer questions.
        Answer = "answer",
        /// Decide approvals.
        Approve = "approve",
        /// Start and stop providers and read their logs.
        Operate = "operate",
        /// Offer tools as an operative, under names that the grant's tools cover.
        Serve = "serve",
        /// Change worlds, agents, tokens and secrets, and read the audit.
        Admin = "admin",
    }
}

choice! {
    /// What a launched process can have too much of.
    Resource {
        /// Memory.
        Memory = "memory",
        /// Processor time.
        Cpu = "cpu",
        /// Processes and threads.
        Processes = "processes",
        /// Bytes in its own folders.
        Disk = "disk",
        /// Lines of output.
        Log = "log",
        /// Open files of all its processes together.
        OpenFiles = "open_files",
        /// What it keeps where nobody can count it.
        Hidden = "hidden",
    }
}

choice! {
    /// How a limit of a launched process is kept.
    Keeping {
        /// The kernel refuses more, or ends the process at once.
        Kernel = "kernel",
        /// It is looked at many times a second, and whoever is over it is ended.
        Measured = "measured",
        /// Nobody can keep it here.
        Unkept = "unkept",
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
    /// Which way a file went.
    Direction {
        /// A run read it.
        In = "in",
        /// It was written.
        Out = "out",
    }
}

choice! {
    /// When the outputs of a world's runs can be seen.
    Publish {
        /// As soon as each is written.
        Direct = "direct",
        /// All together, when the run has succeeded.
        Staged = "staged",
    }
}

choice! {
    /// What is booked for an attempt whose provider never gave a last account of its cost.
    #[derive(Default)]
    UnknownCost {
        /// What it had reported.
        #[default]
        Reported = "reported",
        /// What was held for it, or what it had reported if that is more.
        Held = "held",
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
