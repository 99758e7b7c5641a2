//! How the core fares, as far as it can tell itself.

use std::sync::Arc;

use axum::extract::State;
use wharf_engine::RunQuery;
use wharf_ports::providers::{ProviderControl, ProviderState, ProviderView};
use wharf_vocab::Verdict;
use wharf_wire::rest_v1::{Diagnosis, Finding, Fix};

use super::table::{get, routes};
use crate::access::Need;
use crate::answer::{self, Answer};
use crate::app::App;

/// Providers that one finding says something of.
const FIXES_MAX: usize = 5;

routes! {
    "system";
    /// Checks the core: whether it accepts runs, its database, its disk, and which providers have
    /// problems. `wharf doctor` on the core's machine checks more.
    doctor => get("/v1/doctor", Need::READ, diagnose)
        .gives::<Diagnosis>(200, "The checks and what each found.");
}

async fn diagnose(State(app): State<Arc<App>>) -> Answer {
    let mut checks = vec![core(&app), database(&app).await];
    checks.push(providers("agents", "wharf agents", app.options.agents.as_deref()));
    checks.push(providers("tool servers", "wharf tools", app.options.tools.as_deref()));
    checks.push(providers("MCP servers", "wharf mcp", app.options.mcp.as_deref()));
    if let Some(doctor) = app.options.doctor.clone() {
        // It looks at files, which may take a while.
        let seen = tokio::task::spawn_blocking(move || (doctor.0)()).await;
        checks.extend(seen.unwrap_or_default());
    }
    let worst = checks.iter().map(|it| it.verdict).max();
    let diagnosis = Diagnosis {
        status: worst.unwrap_or(Verdict::Ok),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        checks,
    };
    answer::ok(&diagnosis)
}

fn core(app: &App) -> Finding {
    if app.handle.is_stopping() || app.stops.draining.is_cancelled() {
        return finding("core", Verdict::Fail, "the core is stopping and takes no new runs");
    }
    finding(
        "core",
        Verdict::Ok,
        format!("takes runs; {} are under way", app.handle.run_lists().open_count()),
    )
}

/// Whether the database answers; runs are read from it.
async fn database(app: &App) -> Finding {
    match app.handle.run_lists().list(RunQuery { limit: 1, ..RunQuery::default() }).await {
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
