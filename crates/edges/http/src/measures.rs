//! What is measured when somebody asks for metrics, rather than counted when it happens: money of
//! worlds, open asks, states of providers, sizes.
//!
//! A label that was told once is told again as 0 when what it named is gone, so that no graph goes
//! on with what was.

use std::collections::BTreeSet;

use metrics::gauge;
use parking_lot::Mutex;
use wharf_domain::Caller;
use wharf_engine::{Handle, ProviderRuns, provider_label, world_label};
use wharf_vocab::{Fault, ProviderId, ProviderState};

use crate::app::App;

/// Worlds and providers that were told of before.
static TOLD: Mutex<Told> = Mutex::new(Told {
    worlds: BTreeSet::new(),
    providers: BTreeSet::new(),
    lines: BTreeSet::new(),
});

struct Told {
    worlds: BTreeSet<String>,
    providers: BTreeSet<(String, String)>,
    lines: BTreeSet<String>,
}

/// The gauges of one world.
const OF_WORLD: [&str; 5] = [
    "wharf_world_limit_micro",
    "wharf_world_spent_micro",
    "wharf_world_held_micro",
    "wharf_world_files",
    "wharf_world_bytes",
];

/// Measures all of it. What cannot be read is left as it was told last.
pub(crate) async fn take(app: &App) {
    let handle = &app.handle;
    for (what, measured) in [
        ("worlds", worlds(handle).await),
        ("asks", asks(handle).await),
        ("store", store(handle).await),
    ] {
        if let Err(fault) = measured {
            tracing::debug!(what, code = %fault.code, "not measured");
        }
    }
    providers(app);
    lines(handle);
    let (waiting, _) = handle.messages_waiting();
    number("wharf_inputs_waiting", waiting as u64);
    number("wharf_attempts_running", handle.run_lists().running_count() as u64);
}

/// The money and the files of worlds. Those that share a label are added up; of these, a limit is
/// known only if all have one.
async fn worlds(handle: &Handle) -> Result<(), Fault> {
    let mut sums = std::collections::BTreeMap::<String, [Option<u64>; 5]>::new();
    for view in handle.worlds().list().await? {
        let id = &view.world.id;
        let size = handle.files().usage(&Caller::owner(), id).await.unwrap_or_default();
        let values = [
            view.world.settings.limit_micro,
            Some(view.account.spent),
            Some(view.account.held),
            Some(size.files),
            Some(size.bytes),
        ];
        match sums.entry(world_label(id)) {
            std::collections::btree_map::Entry::Vacant(entry) => drop(entry.insert(values)),
            std::collections::btree_map::Entry::Occupied(mut entry) => {
                for (sum, value) in entry.get_mut().iter_mut().zip(values) {
                    *sum = sum.zip(value).map(|(sum, value)| sum.saturating_add(value));
                }
            }
        }
    }
    let mut told = TOLD.lock();
    told.worlds.extend(sums.keys().cloned());
    for world in &told.worlds {
        let values = sums.get(world).copied().unwrap_or([Some(0); 5]);
        for (name, value) in OF_WORLD.into_iter().zip(values) {
            // A world without a limit may spend whatever it likes.
            let value = value.map_or(f64::INFINITY, precise);
            gauge!(name, "world" => world.clone()).set(value);
        }
    }
    Ok(())
}

/// How many asks are open, and how long the oldest has been.
async fn asks(handle: &Handle) -> Result<(), Fault> {
    number("wharf_asks_open", handle.asks().open_count() as u64);
    let oldest = handle.asks().inbox(None, 1).await?;
    let ms = oldest.first().map_or(0, |view| handle.now().ms_since(view.ask.created_at));
    gauge!("wharf_ask_oldest_seconds").set(std::time::Duration::from_millis(ms).as_secs_f64());
    Ok(())
}

async fn store(handle: &Handle) -> Result<(), Fault> {
    let size = handle.store_size().await?;
    number("wharf_store_bytes", size.bytes);
    number("wharf_store_free_bytes", size.free_bytes);
    number("wharf_store_log_bytes", size.log_bytes);
    Ok(())
}

/// One for the state a provider is in, 0 for all others, and how many of its processes run.
fn providers(app: &App) {
    let options = &app.options;
    let controls = [&options.agents, &options.tools, &options.mcp].into_iter().flatten();
    let views: Vec<_> = controls.flat_map(|control| control.list()).collect();
    let all = wharf_views::all_providers(&app.handle, &views);
    let mut states =
        std::collections::BTreeMap::<(String, String), (Vec<ProviderState>, u64)>::new();
    for provider in all {
        let label = ProviderId::new(provider.provider_id.as_str())
            .map_or_else(|_| provider.provider_id.clone(), |id| provider_label(&id));
        let (in_states, instances) = states.entry((label, provider.kind)).or_default();
        in_states.push(provider.state);
        *instances += provider.instances;
    }
    let mut told = TOLD.lock();
    told.providers.extend(states.keys().cloned());
    for key in &told.providers {
        let (provider, kind) = key;
        let known = states.get(key);
        for state in ProviderState::ALL {
            let count = known.map_or(0, |(all, _)| all.iter().filter(|it| *it == state).count());
            gauge!("wharf_provider_state", "provider" => provider.clone(), "kind" => kind.clone(),
                "state" => state.as_str())
            .set(precise(count as u64));
        }
        let instances = known.map_or(0, |(_, instances)| *instances);
        gauge!("wharf_provider_processes", "provider" => provider.clone(), "kind" => kind.clone())
            .set(precise(instances));
    }
}

/// How many runs under way each provider has; those that share a label are added up.
fn lines(handle: &Handle) {
    let mut sums = std::collections::BTreeMap::<String, ProviderRuns>::new();
    for (provider, runs) in handle.run_lists().by_provider() {
        let sum = sums.entry(provider_label(&provider)).or_default();
        sum.queued += runs.queued;
        sum.waiting += runs.waiting;
        sum.running += runs.running;
    }
    let mut told = TOLD.lock();
    told.lines.extend(sums.keys().cloned());
    for provider in &told.lines {
        let ProviderRuns { queued, waiting, running } =
            sums.get(provider).copied().unwrap_or_default();
        for (state, count) in [("queued", queued), ("waiting", waiting), ("running", running)] {
            gauge!("wharf_provider_runs", "provider" => provider.clone(), "state" => state)
                .set(precise(count));
        }
    }
}

fn number(name: &'static str, value: u64) {
    gauge!(name).set(precise(value));
}

#[expect(clippy::cast_precision_loss, reason = "metrics are no accounts")]
fn precise(value: u64) -> f64 {
    value as f64
}
