//! Every kind of thing that is stored, and the version of its shape that is written now.

use wharf_vocab::text_enum;

macro_rules! kinds {
    ($($variant:ident = $text:literal, $newest:literal;)+) => {
        text_enum! {
            /// A kind of entry or of progress; the text is the name it is stored under.
            Kind { $(#[doc = concat!("`", $text, "`")] $variant = $text),+ }
        }

        impl Kind {
            /// The version that is written now; versions begin at 1.
            pub fn newest(self) -> u32 {
                match self { $(Self::$variant => $newest),+ }
            }

            /// What a row writes before the data.
            pub(crate) fn opening(self) -> &'static str {
                match self { $(Self::$variant => concat!("[\"", $text, "\",", $newest, ",")),+ }
            }
        }
    };
}

impl Kind {
    /// Whether what it says of a flow's steps is in every later fold.
    pub(crate) fn is_folded(self) -> bool {
        matches!(
            self,
            Self::RunFlowBegan
                | Self::RunStepStarted
                | Self::RunStepFinished
                | Self::RunEvaluated
                | Self::RunWoke
                | Self::RunSignaled
                | Self::RunFlowExpired
                | Self::RunFlowFolded
        )
    }
}

kinds! {
    RunCreated = "run.created", 2;
    RunProviderAwaited = "run.provider_awaited", 1;
    RunRoomAwaited = "run.room_awaited", 1;
    RunAttemptStarted = "run.attempt_started", 1;
    RunCostReported = "run.cost_reported", 1;
    RunAttemptNoted = "run.attempt_noted", 1;
    RunAttemptFailed = "run.attempt_failed", 1;
    RunAskRaised = "run.ask_raised", 1;
    RunAskResolved = "run.ask_resolved", 1;
    RunChildrenAllowed = "run.children_allowed", 1;
    RunCancelRequested = "run.cancel_requested", 1;
    RunPublishing = "run.publishing", 1;
    RunEnded = "run.ended", 1;
    RunFlowBegan = "run.flow_began", 1;
    RunStepStarted = "run.step_started", 1;
    RunStepFinished = "run.step_finished", 1;
    RunEvaluated = "run.evaluated", 1;
    RunWoke = "run.woke", 1;
    RunSignaled = "run.signaled", 1;
    RunFlowExpired = "run.flow_expired", 1;
    RunFlowFolded = "run.flow_folded", 1;
    RunStepAsked = "run.step_asked", 1;
    RunStepAnswered = "run.step_answered", 1;
    RunLocalKept = "run.local_kept", 1;
    AskRaised = "ask.raised", 1;
    AskResolved = "ask.resolved", 1;
    WorldCreated = "world.created", 1;
    WorldChanged = "world.changed", 1;
    WorldToolAllowed = "world.tool_allowed", 1;
    WorldCorrected = "world.corrected", 1;
    WorldRemoved = "world.removed", 1;
    WorldPurgeOrdered = "world.purge_ordered", 1;
    WorldPurgeAdvanced = "world.purge_advanced", 1;
    AgentAdded = "agent.added", 2;
    AgentApproved = "agent.approved", 2;
    AgentWanted = "agent.wanted", 1;
    AgentStopped = "agent.stopped", 1;
    AgentToolsOffered = "agent.tools_offered", 1;
    AgentRevoked = "agent.revoked", 1;
    AgentDrifted = "agent.drifted", 1;
    AgentToolsApproved = "agent.tools_approved", 1;
    AgentRemoved = "agent.removed", 1;
    SeatCreated = "seat.created", 1;
    SeatToolsOffered = "seat.tools_offered", 1;
    SeatClosed = "seat.closed", 1;
    GrantMade = "grant.made", 1;
    GrantRevoked = "grant.revoked", 1;
    ConsoleBegun = "console.begun", 1;
    ConsoleSeen = "console.seen", 1;
    NoticeOwed = "notice.owed", 1;
    NoticeOver = "notice.over", 1;
    ScheduleAdded = "schedule.added", 1;
    ScheduleFired = "schedule.fired", 1;
    ScheduleSettled = "schedule.settled", 1;
    SchedulePaused = "schedule.paused", 1;
    ScheduleResumed = "schedule.resumed", 1;
    ScheduleRemoved = "schedule.removed", 1;
    ReceiverAdded = "receiver.added", 1;
    ReceiverPaused = "receiver.paused", 1;
    ReceiverResumed = "receiver.resumed", 1;
    ReceiverTold = "receiver.told", 1;
    ReceiverRemoved = "receiver.removed", 1;
    NotificationOwed = "notification.owed", 1;
    NotificationOver = "notification.over", 1;
    TriggerAdded = "trigger.added", 2;
    TriggerFired = "trigger.fired", 1;
    TriggerPaused = "trigger.paused", 1;
    TriggerResumed = "trigger.resumed", 1;
    TriggerRemoved = "trigger.removed", 1;
    FiringOwed = "firing.owed", 1;
    FiringOver = "firing.over", 1;
    FlowAdded = "flow.added", 1;
    FlowRemoved = "flow.removed", 1;
    ProgressText = "progress.text", 1;
    ProgressLog = "progress.log", 1;
    ProgressPartial = "progress.partial", 1;
    ProgressPhase = "progress.phase", 1;
    ProgressGap = "progress.gap", 1;
    ProgressWithheld = "progress.withheld", 1;
}
