//! Choices about what starts runs by itself and tells of them: schedules, triggers, receivers.

use serde::{Deserialize, Serialize};

use crate::status::{Choice, choices};
use crate::text_enum;

choices! {
    /// What becomes of a schedule's times that passed while nobody could start anything.
    CatchUp {
        /// They are left out.
        None = "none",
        /// The last of them is made up for.
        Last = "last",
    }

    /// What becomes of a time that comes while the run of the one before goes on.
    Overlap {
        /// It is left out.
        Skip = "skip",
        /// Another run goes on beside it.
        Parallel = "parallel",
        /// The run of the one before is asked to stop.
        CancelPrevious = "cancel_previous",
    }

    /// Where a schedule stands.
    ScheduleState {
        /// It starts runs.
        Active = "active",
        /// It starts nothing until it is resumed.
        Paused = "paused",
        /// It has no time left.
        Over = "over",
    }

    /// What became of one time of a schedule.
    FiringState {
        /// Its run is about to be started.
        Due = "due",
        /// Its run was started.
        Started = "started",
        /// The run of the time before still went on.
        Skipped = "skipped",
        /// It was too late when somebody could have started something.
        Missed = "missed",
        /// Its run was refused.
        Refused = "refused",
    }

    /// How whoever calls a hook proves that it may.
    HookProof {
        /// By a signature as GitHub makes it, over the body.
        Github = "github",
        /// By a signature as Stripe makes it, over a time and the body.
        Stripe = "stripe",
        /// By a signature as Standard Webhooks make it, over an id, a time and the body.
        Standard = "standard",
        /// By a token in the header `authorization`.
        Token = "token",
    }

    /// Where a trigger stands.
    TriggerState {
        /// It starts runs.
        Active = "active",
        /// It starts nothing until it is resumed.
        Paused = "paused",
    }

    /// What a receiver is told of.
    NotifyOn {
        /// A question or an approval waits.
        Ask = "ask",
        /// A run has ended.
        Run = "run",
        /// A provider crashed, does not answer or has changed.
        Agent = "agent",
        /// A run was refused for want of money.
        Budget = "budget",
        /// A schedule was paused because its rights have ended.
        Schedule = "schedule",
    }

    /// How a notification is written.
    NotifyFormat {
        /// As a JSON object.
        Json = "json",
        /// As Slack's incoming webhooks take it.
        Slack = "slack",
    }

    /// Values of a run that a receiver is told beside ids and titles.
    NotifyInclude {
        /// What the run was given.
        Inputs = "inputs",
        /// What it gave.
        Outputs = "outputs",
    }

    /// Where a receiver stands.
    ReceiverState {
        /// It is told what happens.
        Active = "active",
        /// What happens is not kept for it.
        Paused = "paused",
    }

    /// What became of a notification.
    NotificationState {
        /// The receiver took it.
        Sent = "sent",
        /// It was given up.
        Parked = "parked",
    }
}
