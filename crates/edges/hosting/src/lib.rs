//! Launching providers and looking after them, whatever wire they speak.
//!
//! Two edges launch programs: the one that faces agents and the one that faces tool servers. All
//! that is the same for both lives here: what an owner approved and whether it is still so, the
//! fence that is made of it, folders, secrets and the way out, one supervisor per provider, one
//! task per process, and which attempt goes to which process. What is different stands in one
//! trait, [`HostedKind`], which an edge implements.

mod control;
mod cpu;
mod errand;
mod fence;
mod files;
mod host;
mod instance;
mod kind;
mod launch;
mod live;
mod manifest;
mod meter;
mod options;
pub mod packages;
mod places;
mod remove;
mod sink;
mod sockets;
mod supervisor;
mod tasks;
mod throttle;
mod transfer;
mod usage;
mod work;
mod workdir;

pub use control::Control;
pub use cpu::CpuMeter;
pub use errand::{Errand, ErrandEnd, run_errand, run_errand_for};
pub use fence::{reach, real};
pub use files::{FolderRules, IGNORE_FILE, ManifestFile, ReadFolder, ReadManifest, open_plain};
pub use host::{Host, random_hex};
pub use kind::{HostedKind, LaunchGuard, Process, with_last_error};
pub use launch::{PATH, secret};
pub use live::{
    Assignment, ConnectionEnd, ConnectionGuard, Inbox, InboxCommand, Live, Permit, ProcessPhase,
    Upkeep,
};
pub use manifest::{LIST_ITEMS_MAX, ManifestFields, positive_ms, rate, read_bounded, toml_table};
pub use options::HostingOptions;
pub use places::Places;
pub use remove::{FOLDER, put_away};
pub use sink::canceled_unsent;
pub use sockets::{Sockets, bind_unix};
pub use tasks::{Tasks, blocking};
pub use throttle::limits;
pub use transfer::{
    FILES_MAX, WrittenFiles, copy_in, copy_out, invalid_output, ordinary, unless_over,
};
pub use work::OpenAttempts;
pub use workdir::{
    CallFolder, CallFolders, discard, folder_in, is_plain_name, no_room, unnameable,
};
