//! Language models as tools of the core: `llm/chat@1` talks to any server that offers chat as
//! OpenAI or Anthropic do, `llm/models@1` says which providers, models and prices are known.
//!
//! Keys are secrets of the vault: they are read for each call, go to the provider they are for and
//! to nobody else. A call is made again only where the provider provably did nothing with it, since
//! what it answers costs money. Without a network and without a key the tool can pretend.

mod answer;
mod anthropic;
mod chat;
mod dial;
mod input;
mod known;
mod meter;
mod openai;
mod prices;
mod providers;

use std::sync::Arc;
use std::time::Duration;

use wharf_engine::Handle;
use wharf_ports::vault::Vault;
use wharf_vocab::{Fault, ProviderId};

pub use prices::{Price, PriceTable, UnfitPrice};
pub use providers::{Api, ModelProvider, ModelProviders, UnfitProvider};

/// The tool that chats.
pub const CHAT: &str = "llm/chat@1";
/// The tool that says what is known.
pub const MODELS: &str = "llm/models@1";
/// The most tokens of an answer unless the caller or the owner says otherwise.
pub const MAX_TOKENS: u64 = 4096;
/// How long a provider may be silent unless the owner says otherwise.
pub const SILENCE: Duration = Duration::from_secs(120);

/// What is set about models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelOptions {
    /// Who can be asked.
    pub providers: ModelProviders,
    /// What their models cost.
    pub prices: PriceTable,
    /// The most tokens of an answer when a caller does not say.
    pub max_tokens: u64,
    /// How long a provider may be silent.
    pub silence: Duration,
}

impl Default for ModelOptions {
    fn default() -> Self {
        Self {
            providers: ModelProviders::default(),
            prices: PriceTable::default(),
            max_tokens: MAX_TOKENS,
            silence: SILENCE,
        }
    }
}

/// Adds the tools to an engine. A tool server of the owner's that has one of their names keeps it.
pub async fn register(
    handle: &Handle,
    vault: Arc<dyn Vault>,
    options: ModelOptions,
) -> Result<(), Fault> {
    let models = Arc::new(chat::Models::new(vault, options)?);
    for tool in [chat::provider(&models)?, known::provider(&models)?] {
        let (id, provider) = tool;
        if handle.providers().get(&id).is_ok() {
            tracing::info!(provider = %id, "a tool server of this name takes the place of the core's");
            continue;
        }
        provider.register(handle).await?;
    }
    Ok(())
}

/// A provider of the core's own, and its name.
type NamedProvider = (ProviderId, wharf_engine::in_process::InProcess);
