//! Short names for entries and effects, so that a test can say what it expects.

use wharf_domain::RunEntry;
use wharf_domain::run::RunEffect;

/// The kinds of entries, in order.
pub(crate) fn kinds(entries: &[RunEntry]) -> Vec<&'static str> {
    let kind = |entry: &RunEntry| match entry {
        RunEntry::Created(_) => "created",
        RunEntry::ProviderAwaited(_) => "provider_awaited",
        RunEntry::RoomAwaited(_) => "room_awaited",
        RunEntry::AttemptStarted(_) => "attempt_started",
        RunEntry::CostReported(_) => "cost_reported",
        RunEntry::AttemptNoted(_) => "attempt_noted",
        RunEntry::AttemptFailed(_) => "attempt_failed",
        RunEntry::AskRaised(_) => "ask_raised",
        RunEntry::AskResolved(_) => "ask_resolved",
        RunEntry::ChildrenAllowed(_) => "children_allowed",
        RunEntry::CancelRequested(_) => "cancel_requested",
        RunEntry::Publishing(_) => "publishing",
        RunEntry::Flow(_) => "flow",
        RunEntry::Step(_) => "step",
        RunEntry::Ended(_) => "ended",
    };
    entries.iter().map(kind).collect()
}

/// The kinds of effects, in order.
pub(crate) fn effects(effects: &[RunEffect]) -> Vec<&'static str> {
    let kind = |effect: &RunEffect| match effect {
        RunEffect::Dispatch { reattach: false, .. } => "dispatch",
        RunEffect::Dispatch { reattach: true, .. } => "reattach",
        RunEffect::Publish { .. } => "publish",
        RunEffect::Queue { .. } => "queue",
        RunEffect::LeaveQueue => "leave_queue",
        RunEffect::CancelAttempt { .. } => "cancel",
        RunEffect::Answer { .. } => "answer",
        RunEffect::AllowChildren { .. } => "allow_children",
        RunEffect::AllowTool { .. } => "allow_tool",
        RunEffect::Flow(_) => "flow",
    };
    effects.iter().map(kind).collect()
}
