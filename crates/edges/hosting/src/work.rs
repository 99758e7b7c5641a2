//! Attempts that tasks of a launch work on.

use std::collections::HashMap;

use tokio::task::{self, JoinSet};
use wharf_vocab::AttemptId;

/// Attempts under way, each with what reaches the task that works on it.
#[derive(Debug)]
pub struct OpenAttempts<T> {
    open: HashMap<AttemptId, T>,
    tasks: JoinSet<()>,
    /// Which attempt a task works on.
    at_work: HashMap<task::Id, AttemptId>,
}

impl<T> Default for OpenAttempts<T> {
    fn default() -> Self {
        Self { open: HashMap::new(), tasks: JoinSet::new(), at_work: HashMap::new() }
    }
}

impl<T> OpenAttempts<T> {
    /// Works on an attempt in a task of its own.
    pub fn start(
        &mut self,
        id: AttemptId,
        reached_by: T,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        self.open.insert(id.clone(), reached_by);
        let task = self.tasks.spawn(work);
        self.at_work.insert(task.id(), id);
    }

    /// What reaches the work on an attempt that is not over.
    pub fn get(&self, id: &AttemptId) -> Option<&T> {
        self.open.get(id)
    }

    /// What reaches all work that is not over.
    pub fn all(&self) -> impl Iterator<Item = &T> {
        self.open.values()
    }

    /// Whether all work is over.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Waits until a piece of work is over, also by a panic: then its attempt was lost with it.
    /// Nothing if there is none. It may be dropped before it is ready, and then loses nothing.
    pub async fn one_over(&mut self) -> Option<()> {
        let ended = self.tasks.join_next_with_id().await?;
        let task = ended.map_or_else(|error| error.id(), |(task, ())| task);
        if let Some(id) = self.at_work.remove(&task) {
            self.open.remove(&id);
        }
        Some(())
    }
}
