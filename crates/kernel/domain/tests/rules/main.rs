//! The rules of runs, asks and money, told as tests.
//!
//! Scenarios and random sequences drive real runs through one stage, which checks every
//! invariant after every decision; a theme has a file.

mod allowances;
mod asks;
mod audit;
mod cancel;
mod cast;
mod deciders;
mod files;
mod flow_folds;
mod flow_limits;
mod flows;
mod gates;
mod invariants;
mod ledger;
mod legal;
mod life;
mod money;
mod names;
mod notes;
mod proposals;
mod publishing;
mod recovery;
mod retries;
mod room;
mod sequences;
mod spending;
mod stage;
mod steps;
mod timeouts;
mod worlds;
