//! All tools, who executes them, and the compiled schemas that guard them.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::RwLock;
use serde_json::Value;
use tokio::sync::watch;
use wharf_domain::flow::Flow;
use wharf_domain::{Availability, ToolDef};
use wharf_ports::ProviderSink;
use wharf_vocab::{Code, Digest, Fault, FlowId, Object, ProviderId, ToolId};

use crate::schema::Schema;

/// Regular expressions in all schemas of one provider; each takes memory for as long as it is known.
pub const PROVIDER_PATTERNS_MAX: u64 = 1_024;

/// A tool of the catalog.
#[derive(Debug, Clone)]
pub struct CatalogTool {
    /// Its definition.
    pub def: Arc<ToolDef>,
    /// The definition's hash.
    pub hash: Digest,
    /// Whether its provider can take attempts.
    pub availability: Availability,
    /// Why it may not be called, although its provider offers it.
    pub quarantine: Option<String>,
}

/// All tools and providers.
#[derive(Default)]
pub(crate) struct Catalog {
    inner: RwLock<CatalogState>,
    /// How often something of it has changed.
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct CatalogState {
    tools: BTreeMap<ToolId, Arc<CatalogEntry>>,
    providers: BTreeMap<ProviderId, Provider>,
    /// The versions of flows, which have no provider.
    flows: BTreeMap<FlowId, CatalogFlow>,
}

struct CatalogFlow {
    versions: BTreeMap<u32, Arc<CatalogEntry>>,
    /// Whether it came with a request, so that no list shows it.
    inline: bool,
}

struct CatalogEntry {
    def: Arc<ToolDef>,
    hash: Digest,
    input: Arc<Schema>,
    output: Option<Arc<Schema>>,
}

struct Provider {
    availability: Availability,
    sink: Arc<dyn ProviderSink>,
    quarantine: BTreeMap<ToolId, String>,
}

impl Catalog {
    fn read<T>(&self, look: impl FnOnce(&CatalogState) -> T) -> T {
        look(&self.inner.read())
    }

    fn write<T>(&self, change: impl FnOnce(&mut CatalogState) -> T) -> T {
        let changed = change(&mut self.inner.write());
        self.changes.send_modify(|count| *count += 1);
        changed
    }

    /// How often something has changed: tools, who may be called, who can take attempts.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Adds a provider and its tools; nothing is added if one of them is not right, or if there
    /// is a provider of that name: nobody takes over what somebody else has registered.
    pub(crate) fn register(
        &self,
        provider: &ProviderId,
        tools: Vec<ToolDef>,
        sink: Arc<dyn ProviderSink>,
    ) -> Result<(), Fault> {
        let known = compile_all(provider, tools)?;
        self.write(|inner| {
            let Entry::Vacant(place) = inner.providers.entry(provider.clone()) else {
                let message = format!("There is a provider {provider} already.");
                return Err(Fault::new(Code::ToolConflict, message));
            };
            let quarantine = BTreeMap::new();
            place.insert(Provider { availability: Availability::Coming, sink, quarantine });
            inner.set_tools(provider, known);
            Ok(())
        })
    }

    /// Makes these the tools of a provider, and no others.
    pub(crate) fn set_tools(
        &self,
        provider: &ProviderId,
        tools: Vec<ToolDef>,
    ) -> Result<(), Fault> {
        let known = compile_all(provider, tools)?;
        self.write(|inner| inner.set_tools(provider, known));
        Ok(())
    }

    /// Marks which tools of a provider may not be called, and why.
    pub(crate) fn set_quarantine(&self, provider: &ProviderId, tools: Vec<(ToolId, String)>) {
        let tools: BTreeMap<ToolId, String> = tools.into_iter().collect();
        let same = |found: &Provider| found.quarantine == tools;
        if self.read(|inner| inner.providers.get(provider).is_none_or(same)) {
            return;
        }
        self.write(|inner| {
            if let Some(provider) = inner.providers.get_mut(provider) {
                provider.quarantine = tools;
            }
        });
    }

    /// Makes the versions of a flow the ones that stand on its record.
    pub(crate) fn set_flow(&self, flow: &Flow) {
        let known = flow.versions.values().filter_map(|version| {
            // Its schemas were looked at when it was added.
            let compiled = entry(version.tool(&flow.id));
            let compiled = compiled.inspect_err(|fault| {
                tracing::warn!(flow = %flow.id, version = version.number, %fault, "left out");
            });
            Some((version.number, Arc::new(compiled.ok()?.0)))
        });
        let (versions, inline) = (known.collect::<BTreeMap<_, _>>(), flow.is_inline());
        self.write(|inner| match versions.is_empty() {
            true => drop(inner.flows.remove(&flow.id)),
            false => drop(inner.flows.insert(flow.id.clone(), CatalogFlow { versions, inline })),
        });
    }

    /// Forgets a provider and its tools.
    pub(crate) fn remove(&self, provider: &ProviderId) {
        self.write(|inner| {
            inner.set_tools(provider, Vec::new());
            inner.providers.remove(provider);
        });
    }

    pub(crate) fn set_availability(&self, provider: &ProviderId, availability: Availability) {
        if self.availability(provider).is_none_or(|known| known == availability) {
            return;
        }
        self.write(|inner| {
            if let Some(provider) = inner.providers.get_mut(provider) {
                provider.availability = availability;
            }
        });
    }

    pub(crate) fn availability(&self, provider: &ProviderId) -> Option<Availability> {
        self.read(|inner| inner.providers.get(provider).map(|found| found.availability.clone()))
    }

    pub(crate) fn sink(&self, provider: &ProviderId) -> Option<Arc<dyn ProviderSink>> {
        self.read(|inner| inner.providers.get(provider).map(|found| Arc::clone(&found.sink)))
    }

    pub(crate) fn tools(&self) -> Vec<CatalogTool> {
        self.read(|inner| {
            let listed = inner.flows.values().filter(|flow| !flow.inline);
            let newest = listed.filter_map(|flow| flow.versions.values().next_back());
            let mut tools: Vec<CatalogTool> =
                inner.tools.values().chain(newest).map(|known| inner.shown(known)).collect();
            tools.sort_by(|one, other| one.def.tool.cmp(&other.def.tool));
            tools
        })
    }

    /// Whether a provider has any tool.
    pub(crate) fn has_tools_of(&self, provider: &ProviderId) -> bool {
        self.read(|inner| inner.tools.keys().any(|tool| tool.provider() == *provider))
    }

    pub(crate) fn tool(&self, id: &ToolId) -> Option<CatalogTool> {
        self.read(|inner| inner.find(id).map(|known| inner.shown(known)))
    }

    /// Checks inputs against the tool's schema; the error names the place that does not fit.
    pub(crate) async fn check_inputs(&self, id: &ToolId, inputs: &Object) -> Result<(), Fault> {
        let schema = self.read(|inner| inner.find(id).map(|known| Arc::clone(&known.input)));
        let schema = schema.ok_or_else(|| not_found(id))?;
        let checked = schema.check(Value::Object(inputs.clone())).await;
        checked.map_err(|e| e.told(Code::ToolInvalidInput, "The inputs do not fit the tool"))
    }

    /// Checks outputs against the tool's schema, except those under these names.
    pub(crate) async fn check_outputs(
        &self,
        id: &ToolId,
        outputs: &Object,
        except: BTreeSet<String>,
    ) -> Result<(), Fault> {
        let schema = self.read(|inner| inner.find(id).and_then(|known| known.output.clone()));
        let Some(schema) = schema else { return Ok(()) };
        let checked = schema.check_but(Value::Object(outputs.clone()), except).await;
        checked.map_err(|e| e.told(Code::ToolInvalidOutput, "The outputs do not fit the tool"))
    }
}

impl CatalogState {
    fn set_tools(&mut self, provider: &ProviderId, known: Vec<CatalogEntry>) {
        self.tools.retain(|id, _| id.provider() != *provider);
        self.tools.extend(known.into_iter().map(|tool| (tool.def.tool.clone(), Arc::new(tool))));
    }

    /// A tool; of a flow without a version the newest one.
    fn find(&self, id: &ToolId) -> Option<&Arc<CatalogEntry>> {
        let Some((name, version)) = id.flow() else { return self.tools.get(id) };
        let versions = &self.flows.get(&name)?.versions;
        match version {
            Some(version) => versions.get(&version),
            None => versions.values().next_back(),
        }
    }

    fn shown(&self, known: &CatalogEntry) -> CatalogTool {
        if known.def.tool.is_flow() {
            let (def, hash) = (Arc::clone(&known.def), known.hash.clone());
            return CatalogTool { def, hash, availability: Availability::Up, quarantine: None };
        }
        let provider = self.providers.get(&known.def.tool.provider());
        CatalogTool {
            def: Arc::clone(&known.def),
            hash: known.hash.clone(),
            quarantine: provider.and_then(|found| found.quarantine.get(&known.def.tool).cloned()),
            availability: provider.map_or(Availability::down("its provider is gone"), |provider| {
                provider.availability.clone()
            }),
        }
    }
}

pub(crate) fn not_found(id: &ToolId) -> Fault {
    Fault::new(Code::ToolNotFound, format!("There is no tool {id}."))
}

/// Compiles the schemas of all tools; one that is not right refuses all.
fn compile_all(provider: &ProviderId, tools: Vec<ToolDef>) -> Result<Vec<CatalogEntry>, Fault> {
    let mut known = Vec::with_capacity(tools.len());
    let mut patterns = 0;
    for def in tools {
        if def.tool.provider() != *provider {
            let message = format!("The tool {} does not belong to {provider}.", def.tool);
            return Err(Fault::new(Code::RequestInvalid, message));
        }
        let (compiled, own) = entry(def)?;
        patterns += own;
        if patterns > PROVIDER_PATTERNS_MAX {
            let message =
                format!("{provider} has more than {PROVIDER_PATTERNS_MAX} regular expressions.");
            return Err(Fault::new(Code::RequestInvalid, message));
        }
        known.push(compiled);
    }
    Ok(known)
}

/// A tool with its compiled schemas, and how many regular expressions they have.
fn entry(def: ToolDef) -> Result<(CatalogEntry, u64), Fault> {
    let input = compile(&def.tool, &def.input_schema)?;
    let output = match &def.output_schema {
        Some(schema) => Some(compile(&def.tool, schema)?),
        None => None,
    };
    let patterns = input.patterns() + output.as_ref().map_or(0, |schema| schema.patterns());
    let known = CatalogEntry { hash: def.hash(), def: Arc::new(def), input, output };
    Ok((known, patterns))
}

fn compile(tool: &ToolId, schema: &Value) -> Result<Arc<Schema>, Fault> {
    let whose = || format!("A schema of {tool}");
    Schema::compile(schema).map(Arc::new).map_err(|flaw| flaw.told(Code::RequestInvalid, &whose()))
}

/// Checks an answer against the schema of its question. A question that was asked with a schema
/// that would not be taken today has any answer.
pub(crate) async fn check_answer(schema: &Value, value: &Value) -> Result<(), Fault> {
    let Ok(schema) = Schema::compile(schema) else { return Ok(()) };
    let checked = Arc::new(schema).check(value.clone()).await;
    checked.map_err(|e| e.told(Code::AskAnswerInvalid, "The answer does not fit the question"))
}
