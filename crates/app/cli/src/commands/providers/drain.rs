//! Letting a provider finish what is under way before it is stopped.

use std::time::Duration;

use wharf_client::Client;
use wharf_vocab::{Code, ProviderState};
use wharf_wire::rest_v1::Provider;

use crate::commands::{CliError, Output, Result};
use crate::plain;
use crate::progress::Spinner;

const POLL: Duration = Duration::from_millis(200);

/// How a provider is stopped.
#[derive(Debug, clap::Args)]
pub(crate) struct DrainArgs {
    /// Let it finish what is under way first; it takes nothing new meanwhile
    #[arg(long)]
    pub(crate) drain: bool,
}

impl DrainArgs {
    /// Waits until a provider has finished what it has, if that is wanted. Whoever stops waiting
    /// leaves it draining: it stops all the same.
    pub(crate) async fn finish(&self, client: &Client, id: &str, output: Output) -> Result<()> {
        if !self.drain {
            return Ok(());
        }
        let doing = format!("draining {}; it finishes what is under way", plain::line(id));
        let _spinner = Spinner::new(output, &doing);
        let mut provider: Provider = client.providers().drain(id).await?;
        while provider.state == ProviderState::Draining {
            tokio::time::sleep(POLL).await;
            provider = client.providers().get(id).await?;
        }
        match provider.enabled {
            Some(true) => {
                let message = format!("{} was started again meanwhile", plain::line(id));
                Err(CliError::new(Code::AgentRunning, message))
            }
            _ => Ok(()),
        }
    }
}
