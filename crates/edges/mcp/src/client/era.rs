//! Which era a server speaks, and the connection that comes of it.
//!
//! A server whose era is not known is asked for it, and for nothing else: some legacy servers
//! answer other requests before they were greeted. One elsewhere that refuses both ways of
//! streamable HTTP may be of 2024-11-05. What a server turned out to speak is remembered with it
//! as long as its manifest is the same and connections come about.

use std::collections::HashMap;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use wharf_domain::Provider;
use wharf_domain::provider::{McpDetails, McpEraChoice, McpServing};
use wharf_hosting::Process;
use wharf_protocol::mcp::{McpClientConfig, McpClientSession, McpLimits, McpOpenError, McpStart};
use wharf_vocab::{Code, Digest, Executed, Fault, ProviderId};
use wharf_wire::mcp_v1::{McpEra, McpImplementation};

use super::link::address::UpstreamAddress;
use super::link::dial::UpstreamDial;
use super::link::rights::UpstreamHttp;
use super::link::{UpstreamLink, http, old_sse, stdio};
use super::report::ProviderLog;
use super::station::{CALLS_MAX, OpenFailure, Opened, Pump, PumpClock, PumpParts};
use super::upstream::{Upstream, UpstreamParts};
use super::{McpServers, capabilities, details_of, roots};

/// Calls that the core makes by itself besides those of attempts: lists, subscriptions, pings.
const OWN_CALLS_MAX: usize = 16;

/// What is known of how a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KnownEra {
    /// Each request by itself.
    Modern,
    /// With a handshake.
    Legacy,
    /// With a handshake, over the HTTP of 2024-11-05.
    OldSse,
}

/// What servers turned out to speak, each under the manifest it had then.
#[derive(Debug, Default)]
pub(crate) struct EraMemory(Mutex<HashMap<ProviderId, (Digest, KnownEra)>>);

impl EraMemory {
    /// What is known of a server.
    fn known(&self, provider: &Provider) -> Option<KnownEra> {
        let eras = self.0.lock();
        let (manifest, era) = eras.get(&provider.id)?;
        (*manifest == provider.manifest_hash).then_some(*era)
    }

    fn learn(&self, provider: &Provider, era: KnownEra) {
        self.0.lock().insert(provider.id.clone(), (provider.manifest_hash.clone(), era));
    }

    /// A connection did not come about: it is found out anew next time.
    fn forget(&self, provider: &ProviderId) {
        self.0.lock().remove(provider);
    }
}

/// Opens the connection to a launch, or to a server elsewhere. The error says why there is none.
pub(crate) async fn open(
    servers: &Arc<McpServers>,
    process: &Process,
    log: ProviderLog,
) -> Result<Upstream, Fault> {
    let details = details_of(&process.agent)?;
    let opener = Opener { servers, process, details, log };
    match &details.how {
        McpServing::Command => {
            let ours = servers.way(&process.launch).ok_or_else(|| away("has no connection"))?;
            opener.over_stdio(ours).await
        }
        McpServing::Url { url, allow_private } => {
            let address = UpstreamAddress::read(url, *allow_private)
                .map_err(|why| Fault::new(Code::AgentManifestInvalid, format!("{why}.")))?;
            let dial = UpstreamDial::new(address)?;
            let rights = servers.rights(&process.agent, details, &dial)?;
            opener.over_http(UpstreamHttp::new(dial, rights)).await
        }
    }
}

/// What it takes to open a connection.
struct Opener<'a> {
    servers: &'a Arc<McpServers>,
    process: &'a Process,
    details: &'a McpDetails,
    log: ProviderLog,
}

impl Opener<'_> {
    fn known(&self) -> Option<KnownEra> {
        match self.details.era {
            McpEraChoice::Auto => self.servers.eras.known(&self.process.agent),
            McpEraChoice::Legacy => Some(KnownEra::Legacy),
            McpEraChoice::Modern => Some(KnownEra::Modern),
        }
    }

    async fn over_stdio(&self, ours: StdUnixStream) -> Result<Upstream, Fault> {
        let tasks = self.servers.host.tasks();
        let link = stdio::open(tasks, ours)
            .map_err(|error| away(&format!("has no connection: {}", error.kind())))?;
        let opened = self.try_link(link, start_of(self.known())).await;
        if let Err(OpenFailure { why: McpOpenError::EndedOnProbe, .. }) = &opened {
            // The next process is greeted at once.
            self.servers.eras.learn(&self.process.agent, KnownEra::Legacy);
            return Err(away("ended when it was asked for its era; it is started again"));
        }
        self.settled(opened)
    }

    async fn over_http(&self, server: UpstreamHttp) -> Result<Upstream, Fault> {
        let tasks = self.servers.host.tasks();
        let known = self.known();
        if known == Some(KnownEra::OldSse) {
            return self.over_old_sse(server).await;
        }
        let link = http::open(tasks, server.clone());
        let opened = self.try_link(link, start_of(known)).await;
        match opened {
            Err(OpenFailure { why: McpOpenError::HttpRefused(400 | 404 | 405), .. })
                if known != Some(KnownEra::Modern) =>
            {
                self.over_old_sse(server).await
            }
            opened => self.settled(opened),
        }
    }

    async fn over_old_sse(&self, server: UpstreamHttp) -> Result<Upstream, Fault> {
        let link = old_sse::open(self.servers.host.tasks(), server);
        let opened = self.try_link(link, McpStart::Legacy).await;
        let upstream = self.settled(opened)?;
        self.servers.eras.learn(&self.process.agent, KnownEra::OldSse);
        Ok(upstream)
    }

    /// Remembers what came of it.
    fn settled(&self, opened: Result<Upstream, OpenFailure>) -> Result<Upstream, Fault> {
        let agent = &self.process.agent;
        match opened {
            Ok(upstream) => {
                let era = match upstream.era() {
                    McpEra::Modern => KnownEra::Modern,
                    McpEra::Legacy => KnownEra::Legacy,
                };
                self.servers.eras.learn(agent, era);
                Ok(upstream)
            }
            Err(OpenFailure { why, fault }) => {
                self.servers.eras.forget(&agent.id);
                let unusable = || away(&format!("cannot be used: {why}"));
                Err(fault.map_or_else(unusable, |fault| *fault))
            }
        }
    }

    /// Begins a session on a link, and lets a task talk over it once that is done.
    async fn try_link(&self, link: UpstreamLink, start: McpStart) -> Result<Upstream, OpenFailure> {
        let clock = PumpClock::start();
        let session = McpClientSession::new(clock.now(), self.config(), start);
        let (parts, end) = UpstreamParts::new();
        let (tell, opened) = oneshot::channel::<Opened>();
        let home = self.servers.options.hosting.user_home.as_deref();
        let pump = PumpParts {
            provider: self.process.agent.id.clone(),
            roots: roots::of_approval(&self.process.agent, home),
            link,
            end,
            opened: tell,
            news: self.servers.options.news.clone(),
            log: self.log.clone(),
        };
        let pump = Pump::new(pump, session, clock);
        self.servers.host.tasks().spawn("talking to an MCP server", pump.run());
        let lost = || Err(OpenFailure { why: McpOpenError::Ended, fault: None });
        opened.await.unwrap_or_else(|_| lost()).map(|peer| parts.ready(peer))
    }

    fn config(&self) -> McpClientConfig {
        let info = McpImplementation {
            name: "wharf".to_owned(),
            title: Some("Wharf".to_owned()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..McpImplementation::default()
        };
        let mut config =
            McpClientConfig::new(info, capabilities::declared(self.servers, self.details));
        config.limits = McpLimits { calls_max: CALLS_MAX + OWN_CALLS_MAX, ..McpLimits::OF_CLIENT };
        config
    }
}

fn start_of(known: Option<KnownEra>) -> McpStart {
    match known {
        None => McpStart::Probe,
        Some(KnownEra::Modern) => McpStart::Modern,
        Some(KnownEra::Legacy | KnownEra::OldSse) => McpStart::Legacy,
    }
}

/// That a server is not there; `why` is the end of a sentence that begins with it.
pub(crate) fn away(why: &str) -> Fault {
    Fault::new(Code::ToolUnavailable, format!("The MCP server {why}.")).executed(Executed::No)
}
