//! `wharf/notify`: a one-way message that is kept as a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wharf_domain::{Level, Progress};
use wharf_engine::in_process::LocalCx;
use wharf_vocab::Fault;

/// What is told.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct NotifyInput {
    /// The message.
    #[schemars(length(max = 16_384), extend("x-wharf-literal" = true))]
    message: String,
    /// How much it matters.
    #[serde(default)]
    level: Matters,
    /// How much of something is done, 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    progress: Option<f64>,
    /// Whatever the sender notes; it stands in the run's inputs.
    #[serde(default, rename = "meta")]
    _meta: Value,
}

/// How much a message matters.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Matters {
    Debug,
    #[default]
    Info,
    Warn,
    Error,
}

/// That it was told.
#[derive(Serialize, JsonSchema)]
pub(crate) struct NotifyOutput {
    /// Always true.
    ok: bool,
}

pub(crate) async fn notify(input: NotifyInput, cx: LocalCx) -> Result<(NotifyOutput, u64), Fault> {
    let level = match input.level {
        Matters::Debug => Level::Debug,
        Matters::Info => Level::Info,
        Matters::Warn => Level::Warn,
        Matters::Error => Level::Error,
    };
    let mut pieces = vec![Progress::Log { level, text: input.message.clone() }];
    if let Some(fraction) = input.progress {
        pieces.push(Progress::Phase { phase: input.message, fraction: Some(fraction) });
    }
    cx.progress(pieces).await?;
    Ok((NotifyOutput { ok: true }, 0))
}
