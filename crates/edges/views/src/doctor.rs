//! How the core fares, as far as it can tell itself.

use std::sync::Arc;

use wharf_engine::{Handle, RunQuery};
use wharf_ports::providers::{ProviderControl, ProviderState, ProviderView};
use wharf_vocab::Verdict;
use wharf_wire::rest_v1::{Diagnosis, Finding, Fix};

use crate::Steering;

/// Providers that one finding says something of.
const FIXES_MAX: usize = 5;

/// Looks at what only the program around the edges can see, such as the disk.
#[derive(Clone)]
pub struct Doctor(pub Arc<dyn Fn() -> Vec<Finding> + Send + Sync>);

/// Checks the core: whether it accepts runs, its database, its providers, and what `doctor` sees.
pub async fn diagnosis(
    handle: &Handle,
    steering: &Steering,
    doctor: Option<Doctor>,
    ends: bool,
) -> Diagnosis {
    let mut checks = vec![core(handle, ends), database(handle).await];
    checks.push(providers("agents", "wharf agents", steering.agents.as_deref()));
    checks.push(providers("tool servers", "wharf tools", steering.tools.as_deref()));
    checks.push(providers("MCP servers", "wharf mcp", steering.mcp.as_deref()));
    if let Some(doctor) = doctor {
        // It looks at files, which may take a while.
        let seen = tokio::task::spawn_blocking(move || (doctor.0)()).await;
        checks.extend(seen.unwrap_or_default());
    }
    let worst = checks.iter().map(|it| it.verdict).max();
    Diagnosis {
        status: worst.unwrap_or(Verdict::Ok),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        checks,
    }
}

fn core(handle: &Handle, ends: bool) -> Finding {
    if ends || handle.is_stopping() {
        return finding("core", Verdict::Fail, "the core is stopping and takes no new runs");
    }
    let open = handle.run_lists().open_count();
    finding("core", Verdict::Ok, format!("takes runs; {open} are under way"))
}

/// Whether the database answers; runs are read from it.
async fn database(handle: &Handle) -> Finding {
    match handle.run_lists().list(RunQuery { limit: 1, ..RunQuery::default() }).await {
        Ok(_) => finding("database", Verdict::Ok, "answers"),
        Err(fault) => finding("database", Verdict::Fail, fault.code.as_str()),
    }
}

/// Which of the providers that should be up are not well.
fn providers(name: &str, command: &str, control: Option<&dyn ProviderControl>) -> Finding {
    let known = control.map_or_else(Vec::new, ProviderControl::list);
    let ill = |state: ProviderState| {
        use ProviderState::{BackingOff, Crashed, Drifted, Unhealthy};
        matches!(state, BackingOff | Crashed | Drifted | Unhealthy)
    };
    let ill: Vec<&ProviderView> = known.iter().filter(|view| ill(view.state)).collect();
    if ill.is_empty() {
        return finding(name, Verdict::Ok, format!("{}, all well", known.len()));
    }
    let said: Vec<String> =
        ill.iter().map(|view| format!("{} is {}", view.provider.id, view.state.as_str())).collect();
    let fixes = ill.iter().take(FIXES_MAX).map(|view| fix(command, view)).collect();
    Finding { fixes, ..finding(name, Verdict::Warn, said.join("; ")) }
}

/// What helps a provider that is not well.
fn fix(command: &str, view: &ProviderView) -> Fix {
    let id = &view.provider.id;
    let (text, command) = match view.state {
        ProviderState::Drifted => (
            format!("The files of {id} were changed. See how; then add and approve it again."),
            format!("{command} show {id}"),
        ),
        ProviderState::Crashed => (
            format!("{id} ended too often. See what it said, mend it, and start it again."),
            format!("{command} logs {id}"),
        ),
        _ => (format!("See what {id} said."), format!("{command} logs {id}")),
    };
    Fix { text, command: Some(command) }
}

fn finding(name: &str, verdict: Verdict, text: impl Into<String>) -> Finding {
    Finding { name: name.to_owned(), verdict, text: text.into(), fixes: Vec::new() }
}
