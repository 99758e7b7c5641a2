//! What peers see, one file per thing. The words are those of REST; names follow GraphQL's custom.

mod agent;
mod ask;
mod choice;
mod console;
mod cost;
mod event;
mod file;
mod flow;
mod mcp;
mod operator;
pub(crate) mod page;
mod provider;
mod receiver;
mod run;
mod runs;
mod schedule;
mod system;
mod tool;
mod trigger;
pub(crate) mod view;
mod world;

pub(crate) use agent::Agent;
pub(crate) use ask::{Ask, AskDetail};
pub(crate) use choice::{
    AllowScope, AskKind, ChangeKind, CostBy, Direction, Durability, ExportFormat, Mode, Publish,
    Retain, RunStatus, StatsBy, UnknownCost,
};
pub(crate) use console::{Account, Search};
pub(crate) use cost::Costs;
pub(crate) use event::{Changes, EventType, RunEvent};
pub(crate) use file::{Artifact, Artifacts, Trace, TraceStep, Usage};
pub(crate) use flow::{Flow, FlowCheck, RunStep};
pub(crate) use mcp::McpServer;
pub(crate) use operator::Seat;
pub(crate) use page::{Connection, Edge, by_name, limit, list_cost};
pub(crate) use provider::{Diagnosis, Provider, ProviderLaunch, ProviderUsage};
pub(crate) use receiver::{CreateReceiverInput, CreatedReceiver, Delivery, Receiver};
pub(crate) use run::{Run, RunSummary};
pub(crate) use runs::{
    CancelRunsInput, CanceledRuns, Purge, PurgeRunsInput, PurgedRuns, RunAgainInput, RunCount,
    RunFilterInput, RunLineage, RunStats, RunTree,
};
pub(crate) use schedule::{CreateScheduleInput, Firing, Schedule};
pub(crate) use system::{System, SystemSeries};
pub(crate) use tool::Tool;
pub(crate) use trigger::{
    CreateTriggerInput, CreatedTrigger, TestTriggerInput, TestedTrigger, Trigger, TriggerFiring,
};
pub(crate) use world::World;
