//! The documents of flows: checking, adding, showing, removing.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use wharf_domain::Caller;
use wharf_domain::flow::{
    Document, Flow, FlowFinding, FlowRecordInput, FlowVersion, check, is_inline, no_flow, not_taken,
};
use wharf_ports::RunQuery;
use wharf_vocab::json::json_bytes;
use wharf_vocab::limits::{FLOWS_KEPT_BYTES_MAX, FLOWS_MAX};
use wharf_vocab::{Code, Digest, Fault, FlowId, ToolId, Verb};

use super::FlowCalls;
use crate::schema::Schema;

/// How long a document that came with a request stays although it has no run.
const INLINE_YOUNG_MS: u64 = 60 * 60 * 1000;

/// A document to be added.
#[derive(Debug, Clone)]
pub struct NewFlow {
    /// The document, as it was read from its text.
    pub document: Value,
    /// Whether it goes only with its tools as they are defined now.
    pub pin: bool,
}

/// What was found about a document.
#[derive(Debug, Clone)]
pub struct FlowChecked {
    /// The document, if it could be read.
    pub document: Option<Arc<Document>>,
    /// What is wrong with it.
    pub findings: Vec<FlowFinding>,
}

impl FlowChecked {
    /// The document, if nothing speaks against it.
    pub fn taken(self) -> Result<Arc<Document>, Fault> {
        match self.document {
            Some(document) if !self.findings.iter().any(FlowFinding::is_error) => Ok(document),
            _ => Err(not_taken(&self.findings)),
        }
    }
}

impl FlowCalls<'_> {
    /// Checks a document, with the tools that are there now.
    pub fn check(self, document: &Value) -> FlowChecked {
        let document = match Document::read(document) {
            Ok(document) => document,
            Err(findings) => return FlowChecked { document: None, findings },
        };
        let mut findings = check(&document, &|tool| self.is_tool(tool), &schema_flaw);
        if let Ok(id) = FlowId::new(&document.name)
            && is_inline(&id)
        {
            let text = "Names that begin so belong to documents that come with a request.";
            findings.push(FlowFinding::error("name", text));
        }
        FlowChecked { document: Some(Arc::new(document)), findings }
    }

    fn is_tool(self, tool: &ToolId) -> bool {
        self.0.inner.catalog.tool(tool).is_some()
    }

    /// Adds a version of a flow; one that says what the newest one says is that one. Needs the
    /// verb `flow:write` and the right to use the flow as a tool.
    pub async fn add(
        self,
        caller: &Caller,
        new: NewFlow,
    ) -> Result<(Flow, FlowVersion, Vec<FlowFinding>), Fault> {
        let checked = self.check(&new.document);
        let findings = checked.findings.clone();
        let document = checked.taken()?;
        let id = FlowId::new(&document.name).map_err(|_| not_taken(&findings))?;
        self.may_write(caller, &id)?;
        let pins = if new.pin { self.pins(&document)? } else { BTreeMap::new() };
        let (flow, version) = self.put(caller, id, document, pins).await?;
        Ok((flow, version, findings))
    }

    /// Adds a document that came with a request under a name made of its hash. It is not listed.
    pub async fn add_inline(self, caller: &Caller, document: &Value) -> Result<ToolId, Fault> {
        let document = self.check(document).taken()?;
        let id = Flow::inline_id(&document);
        self.may_write(caller, &id)?;
        let (_, version) = self.put(caller, id.clone(), document, BTreeMap::new()).await?;
        Ok(version.tool(&id).tool)
    }

    fn may_write(self, caller: &Caller, id: &FlowId) -> Result<(), Fault> {
        caller.rights.check_verb(Verb::WriteFlow)?;
        let tool = format!("{}/{id}", Document::NAMESPACE);
        let tool = ToolId::new(tool).map_err(|_| no_flow(id, None))?;
        caller.rights.check_tool(&tool)
    }

    async fn put(
        self,
        caller: &Caller,
        id: FlowId,
        document: Arc<Document>,
        pins: BTreeMap<ToolId, Digest>,
    ) -> Result<(Flow, FlowVersion), Fault> {
        self.has_room(&id, &document)?;
        let input = FlowRecordInput::Add { document, pins };
        let flow = self.0.change::<Flow>(caller, id.clone(), input).await?;
        let version = flow.newest().cloned().ok_or_else(|| no_flow(&id, None))?;
        Ok((flow, version))
    }

    /// Whether one more document fits beside those that are there.
    fn has_room(self, id: &FlowId, document: &Document) -> Result<(), Fault> {
        let flows = &self.0.inner.records.flows;
        let size = |flow: &Flow| {
            let versions = flow.versions.values();
            let bytes: usize = versions.map(|version| json_bytes(&*version.document)).sum();
            (!flow.versions.is_empty()).then_some((flow.id != *id, bytes))
        };
        let sizes = flows.find(size);
        let others = sizes.iter().filter(|(other, _)| *other).count();
        let bytes: usize = sizes.iter().map(|(_, bytes)| bytes).sum();
        if others >= FLOWS_MAX || bytes + json_bytes(document) > FLOWS_KEPT_BYTES_MAX {
            let message = "There is no room for one more flow; remove old versions first.";
            return Err(Fault::new(Code::FlowLimit, message));
        }
        Ok(())
    }

    /// How the tools of a document are defined now.
    fn pins(self, document: &Document) -> Result<BTreeMap<ToolId, Digest>, Fault> {
        let mut pins = BTreeMap::new();
        for tool in document.tools() {
            let known = self.0.providers().tool(&tool)?;
            pins.insert(tool, known.hash);
        }
        Ok(pins)
    }

    /// All flows that were added, by their names.
    pub fn list(self) -> Vec<Flow> {
        let shown = |flow: &Flow| !flow.is_inline() && !flow.versions.is_empty();
        self.0.inner.records.flows.find(|flow| shown(flow).then(|| flow.clone()))
    }

    /// One flow and a version of it, the newest one unless it is named.
    pub fn get(self, id: &FlowId, number: Option<u32>) -> Result<(Flow, FlowVersion), Fault> {
        let flow = self.0.inner.records.flows.get(id).ok_or_else(|| no_flow(id, number))?;
        let version = flow.version(number).cloned().ok_or_else(|| no_flow(id, number))?;
        Ok((flow, version))
    }

    /// A version of a flow, or the newest one.
    pub fn version(self, id: &FlowId, number: Option<u32>) -> Result<FlowVersion, Fault> {
        let look = |flow: &Flow| flow.version(number).cloned();
        let version = self.0.inner.records.flows.look(id, look).flatten();
        version.ok_or_else(|| no_flow(id, number))
    }

    /// The version that a tool's id stands for, if it is a flow's.
    pub fn of_tool(self, tool: &ToolId) -> Option<FlowVersion> {
        let (id, number) = tool.flow()?;
        self.version(&id, number).ok()
    }

    /// Removes a version, unless runs of it are under way. Needs the verb `flow:write`.
    pub async fn remove(self, caller: &Caller, id: &FlowId, number: u32) -> Result<(), Fault> {
        self.may_write(caller, id)?;
        let version = self.version(id, Some(number))?;
        let runs = self.0.inner.hub.open_of(&version.tool(id).tool);
        if runs > 0 {
            let message =
                format!("Version {number} of the flow {id} has runs under way; cancel them first.");
            return Err(Fault::new(Code::FlowInUse, message).with("runs", runs as u64));
        }
        let input = FlowRecordInput::Remove { version: number };
        self.0.change::<Flow>(caller, id.clone(), input).await.map(|_| ())
    }
}

impl FlowCalls<'_> {
    /// Removes documents that came with requests and whose last run is gone; says how many went. A
    /// young one may be about to have its first run.
    pub async fn forget_inline(self) -> Result<u64, Fault> {
        let now = self.0.now();
        let old = |flow: &Flow| {
            let version = flow.newest().filter(|_| flow.is_inline())?;
            (now.ms_since(version.added_at) >= INLINE_YOUNG_MS)
                .then(|| (flow.id.clone(), version.number, version.tool(&flow.id).tool))
        };
        let mut gone = 0;
        for (id, version, tool) in self.0.inner.records.flows.find(old) {
            let one = RunQuery { tool: Some(tool), limit: 1, ..RunQuery::default() };
            if !self.0.run_lists().list(one).await?.runs.is_empty() {
                continue;
            }
            let input = FlowRecordInput::Remove { version };
            match self.0.change::<Flow>(&Caller::owner(), id, input).await {
                Ok(_) => gone += 1,
                // Somebody else was faster.
                Err(fault) if fault.is(Code::FlowNotFound) => {}
                Err(fault) => return Err(fault),
            }
        }
        Ok(gone)
    }
}

/// What is wrong with a schema, if anything is.
fn schema_flaw(schema: &Value) -> Option<String> {
    let flaw = Schema::compile(schema).err()?;
    Some(flaw.told(Code::FlowInvalid, "It").message)
}
