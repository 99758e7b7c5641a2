//! What a server offers, as tools of the catalog.
//!
//! All its lists are read, made definitions and offered under its record, which says what of it
//! was approved: what changed, and what is new where new things wait, is quarantined before it can
//! be seen. Prompts, templates and instructions are definitions as well, which no list shows.
//! A reading that fails leaves the catalog as it was.

mod define;
mod lists;
mod schema;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use wharf_domain::{Caller, ProviderInput, ToolDef};
use wharf_hosting::{Process, blocking};
use wharf_vocab::{Fault, ProviderId};
use wharf_wire::mcp_v1::McpEra;

use self::define::{Offer, OfferTerms};
use self::lists::ServerLists;
use super::upstream::Upstream;
use super::{McpServers, details_of};

/// After how much time a catalog is read again, whatever was said.
pub(crate) const READ_EVERY: Duration = Duration::from_secs(600);
/// How long a server may say at most that its lists are good.
const GOOD_MAX: Duration = Duration::from_secs(24 * 3600);
/// Lines about what was left out that one reading writes to the log.
const NOTES_MAX: usize = 20;

/// What was offered last by each server. One reading at a time is written down.
#[derive(Debug, Default)]
pub(crate) struct CatalogMemory(Mutex<HashMap<ProviderId, Arc<LastOffer>>>);

type LastOffer = tokio::sync::Mutex<Option<blake3::Hash>>;

impl CatalogMemory {
    fn of(&self, provider: &ProviderId) -> Arc<LastOffer> {
        Arc::clone(self.0.lock().entry(provider.clone()).or_default())
    }

    /// A server was removed.
    pub(crate) fn forget(&self, provider: &ProviderId) {
        self.0.lock().remove(provider);
    }
}

/// Reads what a server offers and makes it its tools; when it is to be read again.
pub(crate) async fn refresh(
    servers: &McpServers,
    process: &Process,
    upstream: &Upstream,
) -> Result<Duration, Fault> {
    let lists = ServerLists::read(upstream).await?;
    let good_for = lists.good_for.clamp(READ_EVERY, GOOD_MAX);
    let id = &process.agent.id;
    let terms = terms(process, upstream)?;
    let last = servers.offers.of(id);
    let mut last = last.lock().await;
    let now = fingerprint(&terms, &lists);
    if *last == Some(now) {
        // The record has it already; an approval that is newer takes it on.
        let tools = servers.handle().providers().get(id)?.tools;
        offer(servers, id, &tools).await?;
        return Ok(good_for);
    }
    let Offer { tools, notes } = blocking(move || Ok(define::definitions(&terms, lists))).await?;
    if let Some(launched) = &process.launched {
        notes.iter().take(NOTES_MAX).for_each(|note| launched.note(note));
    }
    let providers = servers.handle().providers();
    if providers.get(id)?.tools != tools {
        // A server that changes its mind faster than may be written down waits.
        while let Err(wait) = providers.may_offer(id.as_str()) {
            tokio::time::sleep(wait).await;
        }
    }
    // What changed is set apart before it can be seen.
    offer(servers, id, &tools).await?;
    providers.set_tools(id, tools)?;
    *last = Some(now);
    Ok(good_for)
}

/// Tells apart what is offered, and how it is taken on.
fn fingerprint(terms: &OfferTerms, lists: &ServerLists) -> blake3::Hash {
    let mut hash = blake3::Hasher::new();
    hash.update(format!("{terms:?}").as_bytes());
    // Nothing in lists has keys that are no texts, so writing them does not fail.
    let _ = serde_json::to_writer(&mut hash, lists);
    hash.finalize()
}

/// Offers tools under the record of their server, and sets apart what was not approved.
async fn offer(servers: &McpServers, id: &ProviderId, tools: &[ToolDef]) -> Result<(), Fault> {
    let offer = ProviderInput::Offer { tools: tools.to_vec() };
    let known = servers.handle().providers().change(&Caller::core(), id, offer).await?;
    servers.host.quarantine(&known);
    Ok(())
}

fn terms(process: &Process, upstream: &Upstream) -> Result<OfferTerms, Fault> {
    let details = details_of(&process.agent)?;
    let is_launched = details.how.is_launched();
    Ok(OfferTerms {
        provider: process.agent.id.clone(),
        trust_annotations: details.trust_annotations,
        has_headers: !is_launched && upstream.era() == McpEra::Modern,
        reattach: !is_launched,
        timeout_ms: process.agent.manifest.limits.call_ms,
        retain: details.retain,
    })
}
