//! What the core has now, what it did lately, and what it logged.

use std::sync::Arc;

use axum::extract::State;
use wharf_views::CoreStatus;
use wharf_vocab::{Code, Fault, SeriesRange, Verb};
use wharf_wire::rest_v1::{CoreLog, System, SystemSeries};

use super::table::{get, routes};
use crate::access::Need;
use crate::answer::{self, Answer, internal, invalid};
use crate::app::App;
use crate::params::Params;

routes! {
    "system";
    /// Shows what the core is and has: version, uptime, queues, limits and sizes.
    show_system => get("/v1/system", Need::Everywhere(Verb::Read), show)
        .gives::<System>(200, "The core.");
    /// Shows what the core did lately, step by step: an hour by ten seconds, or a day by minutes. It is
    /// kept in memory, so there is nothing from before the core's start.
    system_series => get("/v1/system/series", Need::Everywhere(Verb::Read), series)
        .query::<String>("range", "`1h` or `24h`; `1h` when absent.")
        .gives::<SystemSeries>(200, "The steps, oldest first.");
    /// Shows the newest lines of the core's own log that it keeps in memory, oldest first.
    system_log => get("/v1/system/logs", Need::ADMIN_EVERYWHERE, log)
        .query::<u64>("after", "Only lines after this number.")
        .query::<u32>("limit", "The most lines, 1 to 200.")
        .gives::<CoreLog>(200, "The lines.");
}

async fn show(State(app): State<Arc<App>>) -> Answer {
    let status = Arc::clone(status(&app)?);
    // It looks at files, which may take a while.
    let seen = tokio::task::spawn_blocking(move || status.now()).await.map_err(|_| internal())?;
    answer::ok(&seen)
}

async fn series(State(app): State<Arc<App>>, params: Params) -> Answer {
    answer::ok(&status(&app)?.series(range(&params)?))
}

/// How far back a series goes.
pub(super) fn range(params: &Params) -> Result<SeriesRange, Fault> {
    let range = SeriesRange::parse(params.text("range").unwrap_or("1h"));
    range.ok_or_else(|| invalid("range", "`range` is 1h or 24h."))
}

async fn log(State(app): State<Arc<App>>, params: Params) -> Answer {
    let (after, limit) = (params.number("after")?.unwrap_or(0), params.limit()?);
    let empty = CoreLog { items: Vec::new(), next_after: 0 };
    answer::ok(&app.options.log.as_ref().map_or(empty, |log| log.after(after, limit)))
}

fn status(app: &App) -> Result<&Arc<CoreStatus>, Fault> {
    let message = "This core does not watch itself.";
    app.options.status.as_ref().ok_or_else(|| Fault::new(Code::ToolUnavailable, message))
}
