//! Closed choices, written as in every other API.

use async_graphql::Enum;

macro_rules! choice {
    ($(#[$doc:meta])* $name:ident of $of:path { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
        pub(crate) enum $name {
            $($(#[$vdoc])* #[graphql(name = $text)] $variant),+
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(match self { $(Self::$variant => $text),+ })
            }
        }

        impl super::view::View<$of> for $name {
            fn view(of: $of) -> Self {
                of.into()
            }
        }

        impl From<$of> for $name {
            fn from(it: $of) -> Self {
                match it { $(<$of>::$variant => Self::$variant),+ }
            }
        }

        impl From<$name> for $of {
            fn from(it: $name) -> Self {
                match it { $($name::$variant => <$of>::$variant),+ }
            }
        }
    };
}

choice! {
    /// Where a run stands.
    RunStatus of wharf_vocab::RunStatus {
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
    /// Whether a run acts on the world or pretends to.
    Mode of wharf_vocab::Mode {
        /// Acts.
        Real = "real",
        /// Pretends.
        Mock = "mock",
    }
}

choice! {
    /// How an export of runs is written.
    ExportFormat of wharf_views::ExportFormat {
        /// A line of JSON for each run.
        Lines = "jsonl",
        /// CSV, with a line of names before.
        Csv = "csv",
    }
}

choice! {
    /// Whether a run is written down.
    Durability of wharf_vocab::Durability {
        /// Every step is committed before it is shown.
        Journal = "journal",
        /// Nothing is stored; the run is gone after a restart.
        Memory = "memory",
    }
}

choice! {
    /// When the outputs of a world's runs can be seen.
    Publish of wharf_vocab::Publish {
        /// As soon as each is written.
        Direct = "direct",
        /// All together, when the run has succeeded.
        Staged = "staged",
    }
}

choice! {
    /// What is kept of the values of a run that is over.
    Retain of wharf_vocab::Retain {
        /// All of them.
        Full = "full",
        /// Their hashes and sizes.
        Digest = "digest",
    }
}

choice! {
    /// What is booked for an attempt whose provider never gave a last account of its cost.
    UnknownCost of wharf_vocab::UnknownCost {
        /// What it had reported.
        Reported = "reported",
        /// What was held for it, or what it had reported if that is more.
        Held = "held",
    }
}

choice! {
    /// Which way a file went.
    Direction of wharf_vocab::Direction {
        /// A run read it.
        In = "in",
        /// It was written.
        Out = "out",
    }
}

choice! {
    /// What an ask asks for.
    AskKind of wharf_vocab::AskKind {
        /// Information.
        Question = "question",
        /// Permission.
        Approval = "approval",
    }
}

choice! {
    /// How far an allowance reaches.
    AllowScope of wharf_vocab::AllowScope {
        /// This run only.
        Run = "run",
        /// Also later runs of the same tool and caller within the same parent run.
        Parent = "parent",
    }
}

choice! {
    /// What makes a row of costs.
    CostBy of wharf_engine::CostBy {
        /// A tool.
        Tool = "tool",
        /// A world.
        World = "world",
        /// A provider of tools.
        Agent = "agent",
        /// A day in UTC.
        Day = "day",
        /// An hour in UTC.
        Hour = "hour",
        /// Whoever called for the runs.
        Caller = "caller",
    }
}

choice! {
    /// What makes a row of counts.
    StatsBy of wharf_engine::StatsBy {
        /// A status.
        Status = "status",
        /// A tool.
        Tool = "tool",
        /// A world.
        World = "world",
    }
}

choice! {
    /// What a change is about.
    ChangeKind of wharf_vocab::ChangeKind {
        /// A run.
        Run = "run",
        /// An ask.
        Ask = "ask",
        /// A provider.
        Provider = "provider",
        /// A world.
        World = "world",
        /// A token.
        Token = "token",
    }
}
