//! What the console shows at a glance.

use super::RunSummary;
use super::view::view;
use crate::scalars::Int64;

view! {
    /// An account of the budget tree.
    Account of Account {
        /// The account: `world:W`, or `token:G` of a token with a budget.
        account: String,
        /// The account above it.
        parent: Option<String>,
        /// The world it belongs to.
        world: String,
        /// The most that may be set aside and spent on it, in micro-dollars.
        limit_micro: Option<Int64>,
        /// What was spent, in micro-dollars.
        spent_micro: Int64,
        /// What is set aside, in micro-dollars.
        held_micro: Int64,
        /// By how much more is spent and set aside than the limit allows.
        over_micro: Option<Int64>,
        /// How long what is left lasts at the pace of late, where enough runs have cost something.
        lasts: Option<Lasts>,
    }
}

view! {
    /// How long what is left of a limit lasts, at the paces of the last 24 hours and of seven days.
    Lasts of Lasts {
        /// At the faster pace, in milliseconds.
        min_ms: Int64,
        /// At the slower pace, in milliseconds.
        max_ms: Int64,
    }
}

view! {
    /// What a search found, a few of each.
    Search of Search {
        /// Runs whose id begins so, newest first.
        runs: Vec<RunSummary>,
        /// Tools whose id or description has the text.
        tools: Vec<FoundTool>,
        /// Providers whose id has the text.
        providers: Vec<FoundProvider>,
        /// Worlds whose id has the text.
        worlds: Vec<FoundWorld>,
        /// Flows whose name has the text, with the tool that each is.
        flows: Vec<FoundName>,
        /// Schedules whose name has the text, with the tool that each runs.
        schedules: Vec<FoundName>,
        /// Triggers whose name has the text, with the tool that each runs.
        triggers: Vec<FoundName>,
    }
}

view! {
    /// Something with a name that was found.
    FoundName of FoundName {
        /// Its name.
        name: String,
        /// The tool that it is or runs.
        tool_id: String,
    }
}

view! {
    /// A tool that was found.
    FoundTool of FoundTool {
        /// The tool.
        tool_id: String,
        /// What it does.
        description: String,
        /// Whether it can be called.
        state: String,
    }
}

view! {
    /// A provider that was found.
    FoundProvider of FoundProvider {
        /// The provider.
        provider_id: String,
        /// What it is.
        kind: String,
    }
}

view! {
    /// A world that was found.
    FoundWorld of FoundWorld {
        /// The world.
        world: String,
    }
}
