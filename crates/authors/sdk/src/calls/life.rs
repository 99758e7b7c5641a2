//! A scope as everything in it holds it, and how it ends.
//!
//! Invariants:
//! - A scope is marked as closed before what it holds is looked at, and whatever is added looks at
//!   the mark under the same lock. So closing misses nothing.
//! - What belongs to others (layers, implementations, work) is dropped outside of locks.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::{Mutex, RwLock};
use slab::Slab;
use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::job::{Stoppable, discard};
use super::tables::{ChainCache, Tables};

/// Which agent a scope belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) name: &'static str,
    /// Two agents may have the same name by chance.
    pub(crate) config: TypeId,
}

/// A scope as everything in it holds it.
pub(crate) struct ScopeState {
    pub(crate) parent: Option<Arc<ScopeState>>,
    /// The agent whose scope this is.
    pub(crate) agent: Option<Identity>,
    /// Rises with every change here or above, so that nothing stale is used.
    pub(crate) version: AtomicU64,
    pub(crate) tables: RwLock<Tables>,
    pub(crate) known: RwLock<ChainCache>,
    config: Option<Arc<dyn Any + Send + Sync>>,
    closed: AtomicBool,
    going: Mutex<ActiveWork>,
    /// Told when the scope is closed, and when nothing goes on in it any more.
    told: Notify,
    children: Mutex<HashMap<u64, Weak<ScopeState>>>,
    /// Tells it from every other scope of the program.
    number: u64,
}

/// What goes on in a scope.
#[derive(Default)]
struct ActiveWork {
    jobs: Slab<Arc<dyn Stoppable>>,
    /// Tasks that do what was to be done at the end of calls.
    ending: usize,
}

impl ActiveWork {
    fn is_empty(&self) -> bool {
        self.ending == 0 && self.jobs.is_empty()
    }
}

/// Numbers of scopes.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

impl ScopeState {
    pub(crate) fn below(
        parent: Option<&Arc<Self>>,
        agent: Option<Identity>,
        config: Option<Arc<dyn Any + Send + Sync>>,
    ) -> Arc<Self> {
        let inner = Arc::new(Self {
            parent: parent.cloned(),
            agent,
            version: AtomicU64::new(0),
            tables: RwLock::default(),
            known: RwLock::default(),
            config,
            closed: AtomicBool::new(false),
            going: Mutex::default(),
            told: Notify::new(),
            children: Mutex::default(),
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
        });
        if let Some(parent) = parent {
            let mut children = parent.children.lock();
            children.insert(inner.number, Arc::downgrade(&inner));
            // Looked at under the lock, so that closing misses no child.
            inner.closed.store(parent.is_closed(), Ordering::SeqCst);
        }
        inner
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// This scope and those above it.
    pub(crate) fn lineage(self: &Arc<Self>) -> impl Iterator<Item = &Arc<Self>> {
        std::iter::successors(Some(self), |scope| scope.parent.as_ref())
    }

    /// This scope and all below it, each after its parent.
    fn tree(self: &Arc<Self>, visit: impl Fn(&Self)) -> Vec<Arc<Self>> {
        let mut found = vec![Arc::clone(self)];
        let mut at = 0;
        while let Some(scope) = found.get(at).cloned() {
            visit(&scope);
            let children = scope.children.lock();
            found.extend(children.values().filter_map(Weak::upgrade));
            at += 1;
        }
        found
    }

    /// Something was changed here, which concerns all below.
    pub(crate) fn changed(self: &Arc<Self>) {
        self.tree(|scope| {
            scope.version.fetch_add(1, Ordering::AcqRel);
        });
    }

    /// Closes this scope and all below it without waiting.
    pub(crate) fn signal(self: &Arc<Self>) {
        if self.is_closed() {
            return;
        }
        let scopes = self.tree(|scope| {
            scope.closed.store(true, Ordering::SeqCst);
            scope.told.notify_waiters();
        });
        // What is inside ends before what is around it.
        for scope in scopes.iter().rev() {
            let jobs: Vec<_> =
                scope.going.lock().jobs.iter().map(|(_, job)| Arc::clone(job)).collect();
            jobs.iter().for_each(|job| job.halt());
            let tables = std::mem::take(&mut *scope.tables.write());
            let known = std::mem::take(&mut *scope.known.write());
            discard((tables, known));
            scope.tell_if_idle(&scope.going.lock());
        }
    }

    /// Waits until nothing goes on here and below any more.
    pub(crate) async fn settled(self: &Arc<Self>) {
        for scope in self.tree(|_| {}) {
            scope.until(|| scope.going.lock().is_empty()).await;
        }
    }

    /// Waits until the scope is closed.
    #[cfg(feature = "ws")]
    pub(crate) async fn ended(&self) {
        self.until(|| self.is_closed()).await;
    }

    /// Waits until something is so of which this scope tells.
    async fn until(&self, is_so: impl Fn() -> bool) {
        loop {
            let told = self.told.notified();
            tokio::pin!(told);
            told.as_mut().enable();
            if is_so() {
                return;
            }
            told.await;
        }
    }

    fn tell_if_idle(&self, going: &ActiveWork) {
        if going.is_empty() && self.is_closed() {
            self.told.notify_waiters();
        }
    }

    /// Remembers a job; `false` if the scope is closed.
    pub(crate) fn add(&self, job: Arc<dyn Stoppable>) -> bool {
        let mut going = self.going.lock();
        // Looked at under the lock, so that closing misses no job.
        if self.is_closed() {
            return false;
        }
        let place = going.jobs.vacant_entry();
        job.number().store(place.key(), Ordering::Relaxed);
        place.insert(job);
        true
    }

    /// A job is over.
    pub(crate) fn over(&self, number: usize) {
        let mut going = self.going.lock();
        let job = going.jobs.try_remove(number);
        self.tell_if_idle(&going);
        drop(going);
        drop(job);
    }

    /// Does what was to be done at the end of a call, the last first. Without a runtime nobody
    /// can.
    pub(crate) fn clean_up(
        self: &Arc<Self>,
        work: Vec<BoxFuture<'static, ()>>,
        runtime: Option<Handle>,
    ) {
        let Some(runtime) = runtime.or_else(|| Handle::try_current().ok()) else { return };
        self.going.lock().ending += 1;
        let ending = Ending(Arc::clone(self));
        runtime.spawn(async move {
            let _ending = ending;
            for work in work.into_iter().rev() {
                // A panic concerns only itself.
                let _ = AssertUnwindSafe(work).catch_unwind().await;
            }
        });
    }

    /// The configuration of the nearest agent that has one of this type.
    pub(crate) fn config<C: Send + Sync + 'static>(self: &Arc<Self>) -> Option<Arc<C>> {
        self.lineage().find_map(|scope| Arc::downcast(scope.config.clone()?).ok())
    }

    /// The number of the nearest scope that is an agent's.
    pub(crate) fn instance(self: &Arc<Self>) -> Option<u64> {
        self.lineage().find(|scope| scope.agent.is_some()).map(|scope| scope.number)
    }
}

/// A task that does what was to be done at the end of a call.
struct Ending(Arc<ScopeState>);

impl Drop for Ending {
    fn drop(&mut self) {
        let mut going = self.0.going.lock();
        going.ending -= 1;
        self.0.tell_if_idle(&going);
    }
}

impl Drop for ScopeState {
    fn drop(&mut self) {
        // A long line of scopes must not end in a long line of frames on the stack.
        let mut number = self.number;
        let mut next = self.parent.take();
        while let Some(parent) = next {
            parent.children.lock().remove(&number);
            number = parent.number;
            next = Arc::into_inner(parent).and_then(|mut parent| parent.parent.take());
        }
    }
}
