//! Sessions and streams with nothing to do: what each costs the core in memory.

use std::time::Duration;

use super::client::McpClient;
use super::era::Era;
use super::stage::Stage;
use crate::Scale;
use crate::idle::raise_open_files;
use crate::process::resident_mib;
use crate::report::Report;

/// How long memory is given to come to rest.
const REST: Duration = Duration::from_secs(2);

// bench: M86
pub(super) async fn measure(
    scale: Scale,
    stage: &Stage,
    provider: &str,
    report: &mut Report,
) -> anyhow::Result<()> {
    raise_open_files();
    let count = 2 * scale.readers;
    let mut client = McpClient::connect(&stage.endpoint(provider, Era::Legacy)).await?;
    // The first half fills what is taken once for all sessions.
    let mut before = 0.0;
    for _ in 0..2 {
        before = resident(stage).await?;
        for _ in 0..count {
            client.begin().await?;
        }
    }
    let each = (resident(stage).await? - before) * 1024.0 * 1024.0 / count as f64;
    report.figure(&format!("{count} idle MCP sessions: memory each"), each, "bytes", None, "0");

    for era in Era::ALL {
        let count = scale.readers / 2;
        let before = resident(stage).await?;
        let mut streams = Vec::with_capacity(count);
        for _ in 0..count {
            let mut client = McpClient::connect(&stage.endpoint(provider, era)).await?;
            client.listen().await?;
            streams.push(client);
        }
        let each = (resident(stage).await? - before) * 1024.0 / count as f64;
        let title = format!("{count} idle MCP streams, {}: memory each", era.name());
        report.figure(&title, each, "KiB", None, "≤ 40 KiB");
    }
    Ok(())
}

async fn resident(stage: &Stage) -> anyhow::Result<f64> {
    tokio::time::sleep(REST).await;
    resident_mib(stage.pid())
}
