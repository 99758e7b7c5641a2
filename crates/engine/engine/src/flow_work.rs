//! Who does what flows want, beside the task that steps the shards.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use wharf_domain::Run;
use wharf_domain::run::flow::{FlowInput, FlowWork};
use wharf_vocab::RunKey;

use crate::handle::{EngineState, Handle};

/// Does what flows want, each thing once at a time.
#[derive(Clone, Default)]
pub(crate) struct FlowWorker(Arc<FlowWorkerState>);

#[derive(Default)]
struct FlowWorkerState {
    /// Who does it; the engine itself, once it is there.
    engine: OnceLock<Weak<EngineState>>,
    /// What is being done.
    under_way: Mutex<BTreeSet<WorkKey>>,
}

/// What tells one thing to be done from another.
type WorkKey = (RunKey, String, u32, bool);

/// Says that something is not being done any more when it goes.
struct UnderWay(FlowWorker, WorkKey);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.0.under_way.lock().remove(&self.1);
    }
}

impl FlowWorker {
    /// Says who does it from now on.
    pub(crate) fn set(&self, engine: Weak<EngineState>) {
        // It is said once, when the engine starts.
        let _ = self.0.engine.set(engine);
    }

    /// Whether there is anybody to do it.
    pub(crate) fn is_there(&self) -> bool {
        self.0.engine.get().is_some()
    }

    /// Begins to do something, unless it is being done already or the engine is gone.
    pub(crate) fn begin(
        &self,
        run: Arc<Run>,
        work: FlowWork,
    ) -> Option<impl Future<Output = Option<FlowInput>> + Send + use<>> {
        let handle = Handle::of(self.0.engine.get()?.upgrade()?);
        let key = key_of(&run.key, &work);
        if !self.0.under_way.lock().insert(key.clone()) {
            return None;
        }
        let under_way = UnderWay(self.clone(), key);
        let done = tokio::spawn(async move {
            let done = handle.flows().work(&run, work).await;
            drop(under_way);
            done
        });
        Some(async move { done.await.ok().flatten() })
    }
}

fn key_of(run: &RunKey, work: &FlowWork) -> WorkKey {
    match work {
        FlowWork::Evaluate(it) => (run.clone(), it.path.clone(), it.turn, false),
        FlowWork::Begin(it) => (run.clone(), it.path.clone(), it.number, true),
        FlowWork::Restart(it) => (run.clone(), it.run.to_string(), 1, false),
        FlowWork::Cancel(child) => (run.clone(), child.to_string(), 0, false),
    }
}
