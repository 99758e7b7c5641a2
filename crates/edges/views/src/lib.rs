//! What REST and GraphQL have in common: what is shown of each thing, and how requests are read.
//!
//! A thing is shown by one function that makes REST's message of it. GraphQL shows that message
//! field by field, so the two cannot say different things. A request of either is REST's message
//! too, and is checked here once; each check and each sentence about what is wrong exists once.
//!
//! Nothing here decides who may see or ask: that is for the edges, before they call.

mod accounts;
mod agent;
mod asks;
mod change;
mod doctor;
mod event;
mod export;
mod file;
mod flow;
mod inbox;
mod log;
mod mcp;
mod provider;
mod receiver;
mod request;
mod run;
mod runs;
mod schedule;
mod search;
mod steering;
mod system;
mod tool;
mod tool_server;
mod trigger;
mod trust;
mod with_secrets;
mod world;

pub use accounts::accounts;
pub use agent::{agent, found_agents, log_line};
pub use asks::{AskState, DecidedQuery, ask_detail};
pub use change::{ChangeQuery, ChangeTexts, changes};
pub use doctor::{Doctor, diagnosis};
pub use event::{EventWindow, TracedEvent, event, run_trace};
pub use export::{ExportFormat, RunExport};
pub use file::{
    FolderPage, collected, file, folder_page, trace, trace_depth, upload, upload_part, usage,
};
pub use flow::{flow, flow_check, flow_listed, new_rerun, new_signal, run_step};
pub use inbox::{InboxQuery, ask_position};
pub use log::LogRing;
pub use mcp::{mcp_server, without_internals};
pub use provider::{all_providers, provider};
pub use receiver::{delivery, receiver};
pub use request::{
    DEFAULT_WORLD, answer, ask_id, decision, id, is_absolute, new_run, same_as_shown, world_patch,
};
pub use run::{accepted, ask, run, summary};
pub use runs::{
    COUNT_MAX, RunFilter, STATS_PIECES_MAX, TreeQuery, again, cancel_filter, cancel_runs, go_on,
    lineage, listed, order_purge, purge, purge_filter, purge_runs, purges, run_count, run_in_full,
    run_stats, run_tree, runs_within,
};
pub use schedule::{firing, new_schedule, schedule};
pub use search::search;
pub use steering::{ProviderFilter, Steering, seen_by};
pub use system::{CoreStatus, LookAtVitals, Vitals};
pub use tool::{ToolFilter, tool, tool_diff};
pub use tool_server::{served_tool, tool_server};
pub use trigger::{HOOKS, new_trigger, trigger, trigger_firing, world_of};
pub use trust::{secret, token};
pub use with_secrets::{
    SecretVault, create_receiver, create_trigger, random, remove_receiver, remove_trigger,
    test_trigger,
};
pub use world::{audit, costs, world};
