//! Looks now and then at what the processes of providers use, and writes it down.

use std::sync::{Arc, Weak};
use std::time::Duration;

use wharf_ports::launcher::Launched;

use crate::kind::HostedKind;
use crate::live::Live;
use crate::tasks::blocking;

/// How often processes are looked at.
const LOOK: Duration = Duration::from_secs(2);

/// Looks at the processes of all providers of a kind for as long as its edge is there.
pub(crate) fn start(kind: &Arc<dyn HostedKind>) {
    let watched = Arc::downgrade(kind);
    let tasks = kind.host().tasks();
    tasks.spawn_until_end("looking at what providers use", async move {
        loop {
            tokio::time::sleep(LOOK).await;
            if !look(&watched).await {
                return;
            }
        }
    });
}

/// Looks once; whether there is anything left to look at.
async fn look(kind: &Weak<dyn HostedKind>) -> bool {
    let Some(kind) = kind.upgrade() else { return false };
    let lives: Vec<Arc<Live>> =
        kind.host().with(|all| all.values().map(|entry| Arc::clone(&entry.live)).collect());
    let now = kind.host().options().handle.now();
    drop(kind);
    // The system answers from memory, but there may be many to ask for.
    let looked = blocking(move || {
        for live in lives {
            let processes: Vec<Arc<dyn Launched>> = live.processes();
            let used = processes.iter().filter_map(|it| Some((it.id().clone(), it.usage()?)));
            let used = used.collect();
            live.usage().record(now, used);
        }
        Ok(())
    });
    looked.await.is_ok()
}
