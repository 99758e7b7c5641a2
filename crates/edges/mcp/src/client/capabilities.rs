//! What the core tells servers that it can do.

use wharf_domain::Provider;
use wharf_domain::provider::{McpDetails, McpSampling};
use wharf_domain::run::McpTerms;
use wharf_vocab::Object;
use wharf_wire::mcp_v1::{
    McpClientCapabilities, McpElicitationModes, McpListSupport, McpSamplingSupport, TASKS_EXTENSION,
};

use super::McpServers;
use super::sampling::{self, SampleSource};

/// What can be done whoever calls.
const ANYBODY: McpTerms = McpTerms {
    form: true,
    url: true,
    sampling: false,
    sampling_tools: false,
    roots: true,
    inbox_off: false,
    task_ttl_ms: None,
};

/// What a connection to a server declares: whatever somebody behind the core may be able to do.
pub(crate) fn declared(servers: &McpServers, details: &McpDetails) -> McpClientCapabilities {
    let sampling = details.sampling.unwrap_or(servers.options.sampling);
    of_terms(&McpTerms { sampling: sampling != McpSampling::Refuse, ..ANYBODY })
}

/// What one call declares to a modern server: what its caller can do where nobody else is asked,
/// else what somebody can do.
pub(crate) fn of_call(
    servers: &McpServers,
    agent: &Provider,
    terms: Option<McpTerms>,
) -> McpClientCapabilities {
    if let Some(terms) = terms.filter(|terms| terms.inbox_off) {
        return of_terms(&terms);
    }
    let source = sampling::source(servers, agent, terms);
    let is_callers = source == Some(SampleSource::Caller);
    let tools = is_callers && terms.is_some_and(|terms| terms.sampling_tools);
    of_terms(&McpTerms { sampling: source.is_some(), sampling_tools: tools, ..ANYBODY })
}

fn of_terms(terms: &McpTerms) -> McpClientCapabilities {
    let some = |can: bool| can.then(Object::new);
    let modes = McpElicitationModes { form: some(terms.form), url: some(terms.url) };
    let asks = terms.form || terms.url;
    let sampling = McpSamplingSupport { context: None, tools: some(terms.sampling_tools) };
    McpClientCapabilities {
        roots: terms.roots.then(|| McpListSupport::default().into()),
        sampling: terms.sampling.then(|| sampling.into()),
        elicitation: asks.then(|| modes.into()),
        tasks: None,
        extensions: Some([(TASKS_EXTENSION.to_owned(), Object::new())].into()),
        experimental: None,
    }
}
