//! What all requests of clients share.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wharf_engine::Handle;
use wharf_wire::mcp_v1::McpImplementation;

use super::calls::ClientCalls;
use super::changes::Changes;
use super::oauth::McpOauth;
use super::pages::ToolPages;
use super::questions::WrongAnswers;
use super::session::LiveSessions;
use super::shares::McpShares;
use super::tasks::NewTasks;
use super::tools::ToolNames;
use crate::names::NAME_CHARS_MAX;
use crate::news::McpNews;

/// What can be set on the server half.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServerSettings {
    /// After what time a client without tasks is answered while its run goes on; never when absent.
    pub patience: Option<Duration>,
    /// After what time a run becomes a task, for clients that take tasks.
    pub task_after: Duration,
    /// Whether a client may answer the questions of its own runs.
    pub own_questions: bool,
    /// Longest name of a tool.
    pub name_chars_max: usize,
}

impl Default for McpServerSettings {
    fn default() -> Self {
        Self {
            patience: None,
            task_after: Duration::from_secs(1),
            own_questions: true,
            name_chars_max: NAME_CHARS_MAX,
        }
    }
}

/// What all requests of clients share.
pub(crate) struct ServerShared {
    pub(crate) handle: Handle,
    pub(crate) settings: McpServerSettings,
    /// What looks at tokens of an authorization server elsewhere, if one is set.
    pub(crate) oauth: Option<Arc<McpOauth>>,
    /// What servers behind say, and what is wanted of them.
    pub(crate) news: McpNews,
    /// What one grant may hold at once.
    pub(crate) shares: McpShares,
    /// The little of legacy sessions that is in memory.
    pub(crate) sessions: LiveSessions,
    /// What clients are told of changes.
    pub(crate) changes: Changes,
    /// What tools are called at the door of all.
    pub(crate) names: ToolNames,
    /// Pages of tools that were made lately.
    pub(crate) pages: ToolPages,
    /// Calls of legacy clients, while their runs are open.
    pub(crate) calls: ClientCalls,
    /// What clients answered that does not fit.
    pub(crate) wrong_answers: WrongAnswers,
    /// Tasks of 2025-11-25 as they begin.
    pub(crate) new_tasks: NewTasks,
    /// What goes on beside requests.
    pub(crate) tasks: TaskTracker,
    /// Ends with the core.
    pub(crate) stop: CancellationToken,
    /// Tells this start of a core from all others.
    pub(crate) core: u64,
}

impl ServerShared {
    pub(crate) fn new(handle: Handle, settings: McpServerSettings, news: McpNews) -> Self {
        let unique = blake3::hash(handle.runs().new_session().as_bytes());
        let mut core = [0; 8];
        core.copy_from_slice(&unique.as_bytes()[..8]);
        Self {
            handle,
            settings,
            oauth: None,
            news,
            shares: McpShares::default(),
            sessions: LiveSessions::default(),
            changes: Changes::default(),
            names: ToolNames::default(),
            pages: ToolPages::default(),
            calls: ClientCalls::default(),
            wrong_answers: WrongAnswers::default(),
            new_tasks: NewTasks::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            core: u64::from_be_bytes(core),
        }
    }

    /// Who clients are told that they talk to.
    pub(crate) fn implementation(&self) -> McpImplementation {
        McpImplementation {
            name: "wharf".to_owned(),
            title: Some("Wharf".to_owned()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..McpImplementation::default()
        }
    }
}
