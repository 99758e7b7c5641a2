//! Worlds and their files.

use std::time::Duration;

use reqwest::Method;
use wharf_wire::rest_v1::{
    Collected, CorrectWorld, CreateWorld, SetBudget, SetWorld, Trace, Usage, World,
};

use crate::call::{Call, List};
use crate::client::Client;
use crate::files::{Download, FileFilter, FileListing, RemoteFile, Upload};

/// Removing a world, or clearing it, may mean to remove millions of files.
const LONG_TIMEOUT: Duration = Duration::from_secs(60 * 60);
const REMOVE_TIMEOUT: Duration = Duration::from_secs(60);

/// Worlds, as [`Client::worlds`] gives them.
#[derive(Debug, Clone, Copy)]
pub struct Worlds<'a>(pub(super) &'a Client);

impl<'a> Worlds<'a> {
    /// All worlds this token may see.
    pub fn list(&self) -> List<World> {
        List::new(self.0, &["v1", "worlds"])
    }

    /// One world.
    pub fn get(&self, world: &str) -> Call<World> {
        self.0.read_at(&["v1", "worlds", world])
    }

    /// Creates a world.
    pub fn create(&self, world: &CreateWorld) -> Call<World> {
        self.0.post_to(&["v1", "worlds"]).body(world)
    }

    /// Changes a world's settings.
    pub fn set(&self, world: &str, settings: &SetWorld) -> Call<World> {
        Call::new(self.0, Method::PATCH, &["v1", "worlds", world]).body(settings)
    }

    /// Sets a world's budget.
    pub fn set_budget(&self, world: &str, budget: &SetBudget) -> Call<World> {
        Call::new(self.0, Method::PUT, &["v1", "worlds", world, "budget"]).body(budget)
    }

    /// Corrects what a world's account says was spent.
    pub fn correct(&self, world: &str, correction: &CorrectWorld) -> Call<World> {
        self.0.post_to(&["v1", "worlds", world, "corrections"]).body(correction)
    }

    /// Removes a world; with `force`, even if it holds files.
    pub fn remove(&self, world: &str, force: bool) -> Call<()> {
        let call = self.0.delete_at(&["v1", "worlds", world]);
        call.query("force", force.then_some("true")).timeout(LONG_TIMEOUT)
    }

    /// Removes a world as [`remove`](Self::remove) does, and its runs in the background.
    pub fn remove_with_runs(&self, world: &str, force: bool) -> Call<()> {
        self.remove(world, force).query("purge_runs", Some("true"))
    }

    /// How many files and bytes a world holds.
    pub fn usage(&self, world: &str) -> Call<Usage> {
        self.0.read_at(&["v1", "worlds", world, "usage"])
    }

    /// Removes what the world no longer keeps; with `dry`, only says what that would be.
    pub fn collect(&self, world: &str, dry: bool) -> Call<Collected> {
        let call = self.0.post_to(&["v1", "worlds", world, "collect"]);
        call.query("dry", dry.then_some("true")).timeout(LONG_TIMEOUT)
    }

    /// Which runs wrote and read a file.
    pub fn trace(&self, world: &str, path: &str) -> Call<Trace> {
        self.0.read_at(&["v1", "worlds", world, "trace"]).query("path", Some(path))
    }

    /// A world's files, in the order of their paths.
    #[must_use]
    pub fn files(&self, filter: FileFilter) -> FileListing<'a> {
        FileListing::new(self.0, filter)
    }

    /// Sends a file into a world.
    #[must_use]
    pub fn upload(&self, to: &'a RemoteFile) -> Upload<'a> {
        Upload::new(self.0.clone(), to)
    }

    /// Fetches a file out of a world.
    pub fn download(&self, from: &'a RemoteFile) -> Download<'a> {
        Download::new(self.0.clone(), from)
    }

    /// Removes a file from a world.
    pub fn remove_file(&self, file: &RemoteFile) -> Call<()> {
        self.0.delete_at(&file.segments()).timeout(REMOVE_TIMEOUT)
    }
}
