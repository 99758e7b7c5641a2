//! Closed choices, written as in every other API.

use async_graphql::Enum;

macro_rules! choice {
    ($(#[$doc:meta])* $name:ident of $of:path { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
        pub(crate) enum $name {
            $($(#[$vdoc])* #[graphql(name = $text)] $variant),+
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
    }
}

/// What an event of a run tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
#[graphql(rename_items = "snake_case")]
pub(crate) enum EventType {
    /// The run was accepted.
    Queued,
    /// The first attempt began.
    Started,
    /// A further attempt began.
    Attempt,
    /// A line for the log.
    Log,
    /// Text that was added to a channel.
    Text,
    /// A value that is not final yet.
    Partial,
    /// How far the run is.
    Progress,
    /// A question was raised.
    Question,
    /// An approval was asked for.
    Approval,
    /// An ask was decided.
    Decided,
    /// Something is missing in the provider's stream.
    Gap,
    /// The run is over.
    Finished,
}
