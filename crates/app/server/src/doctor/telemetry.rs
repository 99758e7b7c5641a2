//! Where traces are exported, if they are: whether somebody takes them there.

use std::time::Duration;

use super::Check;
use crate::settings::Settings;

/// How long a collector may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);

pub(super) fn check(settings: &Settings) -> Option<Check> {
    let mut options = settings.telemetry.clone()?;
    options.timeout = options.timeout.min(PATIENCE);
    let (name, shown) = ("telemetry", options.endpoint.shown());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let asked = match runtime {
        Ok(runtime) => runtime.block_on(wharf_telemetry::probe(options)),
        Err(error) => Err(error.to_string()),
    };
    Some(match asked {
        Ok(()) => Check::ok(name, format!("traces are taken at {shown}")),
        // Runs go on without it, so it is no failure.
        Err(why) => Check::warn(
            name,
            format!("traces are not taken at {shown}: {why}; they are lost until they are"),
        ),
    })
}
