//! Which tools an agent offers.
//!
//! Each definition is judged by itself, so that one bad tool does not cost the others. The session
//! remembers a digest of each definition, not the definition: a thousand schemas belong into the
//! owner's catalog.

use std::collections::{BTreeMap, BTreeSet};

use wharf_vocab::json::json_bytes;
use wharf_vocab::{Code, Digest, Fault, ToolId};
use wharf_wire::agent_v1::{
    ErrorObject, RejectedTool, ToolDefinition, ToolEntry, ToolsRegister, ToolsRegistered,
    ToolsUnregister, ToolsUnregistered,
};

use super::handshake::CoreEndPhase;
use super::{CoreEvent, CoreSession, schema};
use crate::Moment;
use crate::agent::outbox::{Draft, Origin};
use crate::agent::outcome::error_of;

/// Rejections that are listed one by one; what is beyond is summed up.
const REJECTIONS_LISTED_MAX: usize = 2_048;
/// What is repeated of a rejected id.
const REJECTED_ID_CHARS_MAX: usize = 256;

/// The tools of a session, by id.
#[derive(Default)]
pub(super) struct ToolRegister(BTreeMap<String, DefinitionDigest>);

/// What is remembered of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
struct DefinitionDigest {
    digest: Digest,
    /// How much it takes as JSON text.
    bytes: usize,
}

impl DefinitionDigest {
    fn of(tool: &ToolDefinition) -> Self {
        Self { digest: digest(tool), bytes: json_bytes(tool) }
    }
}

impl ToolRegister {
    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub(super) fn has(&self, tool_id: &str) -> bool {
        self.0.contains_key(tool_id)
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// What came of a registration.
#[derive(Default)]
struct Registration {
    /// The tools from now on.
    table: BTreeMap<String, DefinitionDigest>,
    /// What they take together.
    bytes: usize,
    /// Every id that was taken in this message.
    named: BTreeSet<String>,
    registered: Vec<String>,
    added: Vec<ToolDefinition>,
    rejected: Vec<(String, Fault)>,
    omitted: usize,
}

impl Registration {
    fn reject(&mut self, tool_id: &str, fault: Fault) {
        if self.rejected.len() < REJECTIONS_LISTED_MAX {
            let tool_id = tool_id.chars().take(REJECTED_ID_CHARS_MAX).collect();
            self.rejected.push((tool_id, fault));
        } else {
            self.omitted += 1;
        }
    }
}

impl CoreSession {
    pub(super) fn on_register(&mut self, now: Moment, origin: &Origin, register: ToolsRegister) {
        let before = std::mem::take(&mut self.tools.0);
        let table = if register.replace { BTreeMap::new() } else { before.clone() };
        let bytes = table.values().map(|known| known.bytes).sum();
        let mut outcome = Registration { table, bytes, ..Registration::default() };
        for entry in register.tools {
            match entry {
                ToolEntry::Readable(tool) => self.register_one(*tool, &mut outcome),
                ToolEntry::Unreadable(tool) => {
                    let fault = invalid("The tool's definition has a field of the wrong type.");
                    outcome.reject(&tool.tool_id, fault);
                }
            }
        }
        self.tools.0 = std::mem::take(&mut outcome.table);
        self.answer_registration(now, origin, &outcome);
        let Registration { mut added, rejected, .. } = outcome;
        // A replacement names again what stays as it was; only what differs is news.
        added.retain(|tool| before.get(&tool.tool_id) != self.tools.0.get(&tool.tool_id));
        let removed = before.into_keys().filter(|id| !self.tools.has(id)).collect();
        self.tell(CoreEvent::ToolsRegistered { added, removed, rejected });
    }

    fn register_one(&self, tool: ToolDefinition, outcome: &mut Registration) {
        if let Err(fault) = self.check_definition(&tool) {
            return outcome.reject(&tool.tool_id, fault);
        }
        if !outcome.named.insert(tool.tool_id.clone()) {
            let message = "The tool stands twice in one registration.";
            return outcome.reject(&tool.tool_id, Fault::new(Code::ToolConflict, message));
        }
        let new = DefinitionDigest::of(&tool);
        match outcome.table.get(&tool.tool_id) {
            Some(known) if *known == new => outcome.registered.push(tool.tool_id),
            Some(_) => {
                let message =
                    "Another definition of this tool is registered; set `replace` to change it.";
                outcome.reject(&tool.tool_id, Fault::new(Code::ToolConflict, message));
            }
            None if outcome.table.len() >= self.limits().tools_max => {
                let message = format!("A session may register {} tools.", self.limits().tools_max);
                outcome.reject(&tool.tool_id, Fault::new(Code::ToolLimit, message));
            }
            None if outcome.bytes + new.bytes > self.limits().offer_bytes_max => {
                let max = self.limits().offer_bytes_max;
                let message = format!("The tools of a session may take {max} bytes together.");
                outcome.reject(&tool.tool_id, Fault::new(Code::ToolLimit, message));
            }
            None => {
                outcome.bytes += new.bytes;
                outcome.table.insert(tool.tool_id.clone(), new);
                outcome.registered.push(tool.tool_id.clone());
                outcome.added.push(tool);
            }
        }
    }

    /// What can be wrong with one definition by itself.
    fn check_definition(&self, tool: &ToolDefinition) -> Result<(), Fault> {
        let CoreEndPhase::Live(peer) = &self.phase else {
            return Err(invalid("The session is over."));
        };
        let Some((owner, name)) = tool.tool_id.split_once('/') else {
            return Err(invalid("A tool id is the agent's id, a slash and the tool's name."));
        };
        if owner != peer.agent_id {
            let message = "An agent may register only tools under its own id.";
            return Err(Fault::new(Code::PermissionDenied, message));
        }
        if name != tool.name {
            return Err(invalid("A tool id is the agent's id, a slash and the tool's `name`."));
        }
        if name.contains('@') || ToolId::new(&tool.tool_id).is_err() {
            return Err(invalid(
                "A tool's name has 1 to 128 letters, digits, dots, dashes or underscores and \
                 begins with a letter or digit.",
            ));
        }
        schema::check(&tool.input_schema, self.limits(), &*self.schemas)?;
        match &tool.output_schema {
            Some(output) => schema::check(output, self.limits(), &*self.schemas),
            None => Ok(()),
        }
    }

    fn answer_registration(&mut self, now: Moment, origin: &Origin, outcome: &Registration) {
        let rejected: Vec<RejectedTool> = outcome
            .rejected
            .iter()
            .map(|(tool_id, fault)| RejectedTool {
                tool_id: tool_id.clone(),
                error: error_of(fault),
            })
            .collect();
        let answer = |rejected: Vec<RejectedTool>, error: Option<ErrorObject>| {
            let registered = outcome.registered.clone();
            let draft = Draft::new(ToolsRegistered { registered, rejected }).answers(origin);
            match error {
                Some(error) => draft.error(error),
                None => draft,
            }
        };
        let unlisted = |count: usize| {
            let message = format!("{count} more tools were not taken.");
            error_of(&Fault::new(Code::ToolLimit, message))
        };
        let listed = rejected.len();
        let error = (outcome.omitted > 0).then(|| unlisted(outcome.omitted));
        // With a very small frame limit the list of rejections may not fit; then its length must
        // do, because every registration is answered.
        if !self.reply(now, answer(rejected, error)) {
            self.reply(now, answer(Vec::new(), Some(unlisted(listed + outcome.omitted))));
        }
    }

    pub(super) fn on_unregister(&mut self, now: Moment, origin: &Origin, list: ToolsUnregister) {
        let mut removed = list.tool_ids;
        removed.retain(|tool_id| self.tools.0.remove(tool_id).is_some());
        let unregistered = removed.clone();
        self.reply(now, Draft::new(ToolsUnregistered { unregistered }).answers(origin));
        if !removed.is_empty() {
            self.tell(CoreEvent::ToolsUnregistered { removed });
        }
    }
}

fn invalid(message: &str) -> Fault {
    Fault::new(Code::ToolSchemaInvalid, message)
}

/// The digest of everything a definition says.
fn digest(tool: &ToolDefinition) -> Digest {
    match serde_json::to_value(tool) {
        Ok(serde_json::Value::Object(object)) => Digest::of_object(&object),
        // A definition is always an object of text keys; the id alone would still be stable.
        _ => Digest::of(&[tool.tool_id.as_bytes()]),
    }
}
