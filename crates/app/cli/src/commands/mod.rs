//! One file per command: what it takes, and what it does.

pub(crate) mod agents;
pub(crate) mod answer;
pub(crate) mod artifacts;
mod asks;
pub(crate) mod audit;
pub(crate) mod backup;
mod choices;
pub(crate) mod conformance;
pub(crate) mod costs;
pub(crate) mod decide;
pub(crate) mod doctor;
pub(crate) mod inbox;
pub(crate) mod migrate;
pub(crate) mod new;
pub(crate) mod operatives;
pub(crate) mod operator;
mod providers;
pub(crate) mod restore;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod secret;
pub(crate) mod token;
pub(crate) mod tool;
pub(crate) mod tools;
pub(crate) mod up;
pub(crate) mod worlds;
