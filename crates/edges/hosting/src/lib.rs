//! Launching providers and looking after them, whatever wire they speak.
//!
//! Two edges launch programs: the one that faces agents and the one that faces tool servers. All
//! that is the same for both lives here: what an owner approved and whether it is still so, the
//! fence that is made of it, folders, secrets and the way out, one supervisor per provider, one
//! task per process, and which attempt goes to which process. What is different stands in one
//! trait, [`Kind`], which an edge implements.

mod control;
mod cpu;
mod fence;
mod files;
mod host;
mod inbox;
mod instance;
mod kind;
mod launch;
mod live;
mod options;
mod places;
mod plain;
mod pool;
mod remove;
mod sink;
mod storage;
mod supervisor;
mod tasks;
mod throttle;
mod transfer;
mod workdir;

pub use control::Control;
pub use cpu::Meter;
pub use fence::real;
pub use host::{Host, blocking, random_hex};
pub use inbox::{Assignment, Closed, Command, Inbox, Permit, Tie};
pub use kind::{Kept, Kind, ManifestFile, Process, ReadManifest, Upkeep};
pub use launch::{Sockets, bind_unix, secret};
pub use live::Live;
pub use options::Options;
pub use places::Places;
pub use plain::open_plain;
pub use pool::Phase;
pub use storage::reach;
pub use tasks::Tasks;
pub use throttle::limits;
pub use transfer::{PIECE_BYTES, copy_in, copy_out, over, unwanted};
pub use workdir::{
    FILES_MAX, Room, Rooms, discard, invalid_output, is_plain_name, no_room, put_away, unnameable,
};
