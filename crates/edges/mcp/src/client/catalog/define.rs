//! What a server lists, as definitions of the catalog.
//!
//! All that somebody approves of a tool stands in its definition, so that its hash changes with
//! any of it. What cannot be used is there as well, with the reason, so that it is seen and is not
//! called. Nothing here asks anybody.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use wharf_domain::ToolDef;
use wharf_domain::provider::McpOrigin;
use wharf_engine::PROVIDER_PATTERNS_MAX;
use wharf_vocab::json::json_bytes;
use wharf_vocab::{Durability, Object, ProviderId, Retain, ToolId};
use wharf_wire::mcp_v1::{McpOpen, McpPrompt, McpTemplate, McpTool, headers};

use super::lists::ServerLists;
use super::schema::{self, FitSchema};
use crate::hidden::HiddenTool;
use crate::names::{INSTRUCTIONS, prompt_part, template_part, tool_part};
use crate::shown;

/// Largest description, prompt, template or instructions that are kept.
const TEXT_BYTES_MAX: usize = 64 * 1024;
/// What definitions may take together in memory. Those that were approved before and are not
/// offered any more have as much room.
const OFFER_BYTES_MAX: u64 = wharf_vocab::limits::OFFERS_KEPT_BYTES_MAX / 2;

/// How the tools of a server are taken on.
#[derive(Debug, Clone)]
pub(super) struct OfferTerms {
    /// The server.
    pub(super) provider: ProviderId,
    /// Whether what it says about effects counts.
    pub(super) trust_annotations: bool,
    /// Whether arguments are repeated in headers of its requests.
    pub(super) has_headers: bool,
    /// Whether a call can be asked about after a restart of the core.
    pub(super) reattach: bool,
    /// Longest running time of a call, if its manifest says so.
    pub(super) timeout_ms: Option<u64>,
    /// What is kept of the values of its tools' runs when they are over.
    pub(super) retain: Retain,
}

/// What a server offers.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Offer {
    /// By their ids.
    pub(super) tools: Vec<ToolDef>,
    /// What was left out, one sentence each.
    pub(super) notes: Vec<String>,
}

/// Makes definitions of what a server lists.
pub(super) fn definitions(terms: &OfferTerms, lists: ServerLists) -> Offer {
    let mut maker = OfferMaker {
        terms,
        tools: BTreeMap::new(),
        names: BTreeSet::new(),
        notes: lists.notes,
        patterns_left: PROVIDER_PATTERNS_MAX,
        bytes_left: OFFER_BYTES_MAX,
    };
    maker.hidden(lists.has_resources, &[HiddenTool::ResourcesRead, HiddenTool::ResourcesList]);
    maker.hidden(lists.has_prompts, &[HiddenTool::PromptsGet]);
    maker.hidden(lists.completes, &[HiddenTool::Complete]);
    if let Some(text) = lists.instructions.filter(|text| !text.is_empty()) {
        maker.pinned(INSTRUCTIONS.to_owned(), origin(INSTRUCTIONS, None), text.into());
    }
    for tool in lists.tools {
        maker.tool(&tool);
    }
    for (name, why) in lists.unfit {
        let why = format!("its definition cannot be read: {}", why.trim_end_matches('.'));
        maker.unfit(&name, &json!({"name": name}), &why);
    }
    for prompt in lists.prompts {
        maker.prompt(&prompt);
    }
    for template in lists.templates {
        maker.template(&template);
    }
    Offer { tools: maker.tools.into_values().collect(), notes: maker.notes }
}

struct OfferMaker<'a> {
    terms: &'a OfferTerms,
    tools: BTreeMap<ToolId, ToolDef>,
    /// Names of tools that were seen.
    names: BTreeSet<String>,
    notes: Vec<String>,
    patterns_left: u64,
    bytes_left: u64,
}

impl OfferMaker<'_> {
    fn hidden(&mut self, has: bool, tools: &[HiddenTool]) {
        let defs = tools.iter().filter(|_| has).filter_map(|tool| tool.def(&self.terms.provider));
        for def in defs.collect::<Vec<_>>() {
            self.add(def);
        }
    }

    fn tool(&mut self, tool: &McpOpen<McpTool>) {
        if let Err(why) = self.fitting(tool) {
            let whole = Value::Object(tool.to_object());
            self.unfit(&tool.name, &whole, &why);
        }
    }

    /// Adds a tool that can be called. What is wrong with it is the end of a sentence.
    fn fitting(&mut self, tool: &McpTool) -> Result<(), String> {
        let input = schema::arguments(&tool.input_schema)?;
        let output = schema::outputs(tool.output_schema.as_ref())?;
        if self.terms.has_headers {
            headers::mirrors(&tool.input_schema).map_err(|error| error.to_string())?;
        }
        let description = tool.description.clone().unwrap_or_default();
        if description.len() > TEXT_BYTES_MAX {
            return Err(format!("its description has more than {TEXT_BYTES_MAX} bytes"));
        }
        let patterns = input.patterns + output.patterns;
        self.patterns_left = self.patterns_left.checked_sub(patterns).ok_or_else(|| {
            format!("its server has more than {PROVIDER_PATTERNS_MAX} regular expressions")
        })?;
        let Some(id) = self.id(&tool.name, tool_part(&tool.name)) else { return Ok(()) };
        let def = self.definition(id, tool, description, (input, output));
        self.add(def);
        Ok(())
    }

    fn definition(
        &self,
        id: ToolId,
        tool: &McpTool,
        description: String,
        (input, output): (FitSchema, FitSchema),
    ) -> ToolDef {
        let object = |object: &Object| Value::Object(object.clone());
        let own = object(&tool.input_schema);
        let annotations = tool.annotations.as_ref();
        let says = |hint: fn(&McpTool) -> Option<bool>| {
            self.terms.trust_annotations && hint(tool) == Some(true)
        };
        let reads_only = says(|tool| tool.annotations.as_ref()?.read_only_hint);
        // A warning is taken from anybody, the word that there is nothing to fear is not.
        let destructive = annotations.and_then(|it| it.destructive_hint);
        let destructive = destructive.filter(|hint| *hint || self.terms.trust_annotations);
        let origin = McpOrigin {
            title: tool.title.clone(),
            annotations: annotations.map(|it| it.to_object().into()),
            execution: tool.execution.as_ref().map(|it| it.to_object().into()),
            input_schema: (own != input.schema).then_some(own),
            output_schema: tool.output_schema.as_ref().map(object),
            ..origin(&tool.name, None)
        };
        ToolDef {
            output_schema: Some(output.schema),
            side_effects: reads_only.then_some(false),
            destructive,
            idempotency: says(|tool| tool.annotations.as_ref()?.idempotent_hint),
            // MCP has no word for a cost: what a call costs here is what its child runs cost. A tool
            // that may cost something is asked of the books at each attempt, which is a commit.
            free: true,
            reattach: self.terms.reattach,
            timeout_ms: self.terms.timeout_ms,
            retain: self.terms.retain,
            mcp: Some(Box::new(origin)),
            ..ToolDef::new(id, description, input.schema)
        }
    }

    /// Adds a tool that cannot be called. Of its definition there is only the hash: it may be of
    /// any size.
    fn unfit(&mut self, name: &str, whole: &Value, why: &str) {
        let Some(id) = self.id(name, tool_part(name)) else { return };
        let hash = blake3::hash(whole.to_string().as_bytes()).to_hex();
        let origin = McpOrigin {
            pinned: Some(json!({"blake3": hash.as_str()})),
            unfit: Some(why.to_owned()),
            ..origin(name, None)
        };
        self.add(ToolDef { mcp: Some(Box::new(origin)), ..empty(id) });
    }

    fn prompt(&mut self, prompt: &McpOpen<McpPrompt>) {
        let origin = origin(&prompt.name, prompt.title.clone());
        self.pinned(prompt_part(&prompt.name), origin, prompt.to_object().into());
    }

    fn template(&mut self, template: &McpOpen<McpTemplate>) {
        let origin = origin(&template.uri_template, template.title.clone());
        self.pinned(template_part(&template.uri_template), origin, template.to_object().into());
    }

    /// Adds what is there to be seen and compared, and not to be called.
    fn pinned(&mut self, part: String, origin: McpOrigin, pinned: Value) {
        let bytes = json_bytes(&pinned);
        if bytes > TEXT_BYTES_MAX {
            let name = shown::words(&origin.name);
            self.notes.push(format!("{name:?} is left out: it has {bytes} bytes."));
            return;
        }
        let name = origin.name.clone();
        let Some(id) = self.id(&name, part) else { return };
        let origin = McpOrigin { pinned: Some(pinned), ..origin };
        self.add(ToolDef {
            side_effects: Some(false),
            free: true,
            durability: Durability::Memory,
            hidden: true,
            mcp: Some(Box::new(origin)),
            ..empty(id)
        });
    }

    /// The id of something, if nothing else has it: of two with one name the first counts.
    fn id(&mut self, name: &str, part: String) -> Option<ToolId> {
        let id = ToolId::new(format!("{}/{part}", self.terms.provider)).ok()?;
        let is_new = self.names.insert(part);
        if !is_new {
            let name = shown::words(name);
            self.notes.push(format!("{name:?} is there twice; the first one counts."));
        }
        is_new.then_some(id)
    }

    fn add(&mut self, def: ToolDef) {
        match self.bytes_left.checked_sub(def.weight()) {
            Some(left) => {
                self.bytes_left = left;
                self.tools.insert(def.tool.clone(), def);
            }
            None => {
                self.notes.push(format!("{} is left out: its server offers too much.", def.tool));
            }
        }
    }
}

fn origin(name: &str, title: Option<String>) -> McpOrigin {
    McpOrigin { name: name.to_owned(), title, ..McpOrigin::default() }
}

fn empty(id: ToolId) -> ToolDef {
    ToolDef::new(id, "", json!({"type": "object"}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms() -> OfferTerms {
        OfferTerms {
            provider: ProviderId::new("srv").expect("an id"),
            trust_annotations: true,
            has_headers: true,
            reattach: false,
            timeout_ms: None,
            retain: Retain::Full,
        }
    }

    fn read<T: serde::de::DeserializeOwned>(items: Value) -> Vec<McpOpen<T>> {
        serde_json::from_value(items).expect("fits")
    }

    fn tools(items: Value) -> Offer {
        definitions(&terms(), ServerLists { tools: read(items), ..ServerLists::default() })
    }

    fn only(items: Value) -> ToolDef {
        let mut offer = tools(items);
        assert_eq!(offer.tools.len(), 1, "{offer:?}");
        offer.tools.remove(0)
    }

    fn unfit(tool: &Value) -> String {
        let def = only(json!([tool]));
        def.mcp.and_then(|origin| origin.unfit).expect("unfit")
    }

    #[test]
    fn m054_a_tool_keeps_its_name_and_one_that_is_no_id_is_encoded() {
        let def = only(json!([{"name": "add", "title": "Add", "description": "Adds.",
                               "inputSchema": {"type": "object"}}]));
        assert_eq!((def.tool.as_str(), def.description.as_str()), ("srv/add", "Adds."));
        assert_eq!((def.side_effects, def.idempotency, def.hidden), (None, false, false));
        let origin = def.mcp.expect("described");
        assert_eq!((origin.name.as_str(), origin.title.as_deref()), ("add", Some("Add")));
        assert_eq!((origin.input_schema, origin.unfit), (None, None));
        let def = only(json!([{"name": "get wéather", "inputSchema": {"type": "object"}}]));
        assert!(def.tool.as_str().starts_with("srv/x-get_w_ather-"), "{}", def.tool);
        assert_eq!(def.mcp.expect("described").name, "get wéather", "what the server is asked for");
    }

    #[test]
    fn m017_a_tool_costs_nothing_since_no_server_can_say_what_it_costs() {
        assert!(only(json!([{"name": "add", "inputSchema": {"type": "object"}}])).free);
    }

    #[test]
    fn m054_of_two_tools_with_one_name_the_first_counts() {
        let offer = tools(json!([
            {"name": "a", "description": "one", "inputSchema": {"type": "object"}},
            {"name": "a", "description": "two", "inputSchema": {"type": "object"}},
        ]));
        assert_eq!((offer.tools.len(), offer.tools[0].description.as_str()), (1, "one"));
        assert_eq!(offer.notes.len(), 1);
    }

    #[test]
    fn m054_what_cannot_be_called_is_there_with_the_reason_and_hides_no_other() {
        let lists = ServerLists {
            tools: read(json!([
                {"name": "good", "inputSchema": {"type": "object"}},
                {"name": "far", "inputSchema": {"type": "object",
                    "properties": {"a": {"$ref": "http://127.0.0.1:9/canary"}}}},
                {"name": "old", "inputSchema": {"type": "object"},
                    "outputSchema": {"$schema": "http://json-schema.org/draft-04/schema#"}},
            ])),
            unfit: vec![("bad".to_owned(), "It lacks the field `inputSchema`.".to_owned())],
            ..ServerLists::default()
        };
        let offer = definitions(&terms(), lists);
        let reasons = offer.tools.iter().map(|def| {
            let reason = def.mcp.as_ref().and_then(|origin| origin.unfit.clone());
            (def.tool.name().to_owned(), reason.unwrap_or_default())
        });
        let reasons = reasons.collect::<BTreeMap<_, _>>();
        assert_eq!(reasons["good"], "");
        assert_eq!(reasons["far"], "its input schema refers to something outside of itself");
        assert!(reasons["old"].starts_with("its output schema is of neither"), "{reasons:?}");
        assert!(reasons["bad"].starts_with("its definition cannot be read: It lacks"));
        for def in &offer.tools {
            wharf_engine::check_schema(&def.input_schema).expect("the catalog takes all of them");
        }
    }

    #[test]
    fn m053_a_tool_with_an_annotation_that_is_no_header_is_left_out_over_http() {
        let tool = json!({"name": "a", "inputSchema": {"type": "object",
            "properties": {"q": {"type": "string", "x-mcp-header": "not a header"}}}});
        assert!(unfit(&tool).contains("x-mcp-header"));
        let terms = OfferTerms { has_headers: false, ..terms() };
        let lists = ServerLists { tools: read(json!([tool])), ..ServerLists::default() };
        let offer = definitions(&terms, lists);
        assert_eq!(offer.tools[0].mcp.as_ref().expect("described").unfit, None);
    }

    #[test]
    fn m055_every_part_of_a_definition_is_part_of_its_hash() {
        let hash = |more: Value| {
            let mut tool = json!({"name": "a", "description": "d", "inputSchema": {"type": "object"},
                "outputSchema": {"type": "object"}, "annotations": {"title": "t"},
                "execution": {"taskSupport": "optional"}});
            if let (Value::Object(tool), Value::Object(more)) = (&mut tool, more) {
                tool.extend(more);
            }
            only(json!([tool])).hash()
        };
        let same = hash(json!({"_meta": {"at": 1}, "icons": []}));
        assert_eq!(hash(json!({})), same, "what is beside a definition is none of it");
        let mut hashes: Vec<_> = [
            json!({}),
            json!({"title": "T"}),
            json!({"description": "D"}),
            json!({"inputSchema": {"type": "object", "description": "x"}}),
            json!({"outputSchema": {"type": "object", "description": "x"}}),
            json!({"annotations": {"title": "t", "destructiveHint": true}}),
            json!({"annotations": {"title": "t", "vendor": 1}}),
            json!({"execution": {"taskSupport": "required"}}),
            json!({"inputSchema": {"type": "object", "$schema": "odd"}}),
            json!({"inputSchema": {"type": "object", "$schema": "odd", "description": "x"}}),
        ]
        .into_iter()
        .map(|more| hash(more).as_str().to_owned())
        .collect();
        let all = hashes.len();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), all);
    }

    #[test]
    fn m055_prompts_templates_and_instructions_are_pinned_and_not_called() {
        let lists = ServerLists {
            has_prompts: true,
            prompts: read(json!([{"name": "greet", "arguments": [{"name": "who"}], "x": 1}])),
            has_resources: true,
            templates: read(json!([{"uriTemplate": "a:/{b}", "name": "t"}])),
            completes: true,
            instructions: Some("Be kind.".to_owned()),
            ..ServerLists::default()
        };
        let offer = definitions(&terms(), lists);
        assert!(offer.tools.iter().all(|def| def.hidden && def.free));
        let pinned = |name: &str| {
            let def = offer.tools.iter().find(|def| def.tool.name() == name).expect("there");
            def.mcp.as_ref().and_then(|origin| origin.pinned.clone())
        };
        let prompt = json!({"name": "greet", "arguments": [{"name": "who"}], "x": 1});
        assert_eq!(pinned("prompt.greet"), Some(prompt));
        assert_eq!(pinned("instructions"), Some("Be kind.".into()));
        for tool in HiddenTool::ALL {
            assert_eq!(pinned(tool.part()), None);
        }
        let template = offer.tools.iter().find(|def| def.tool.name().starts_with("template."));
        let origin = template.and_then(|def| def.mcp.clone()).expect("there");
        assert_eq!(origin.name, "a:/{b}");
    }

    #[test]
    fn m056_annotations_count_where_they_are_trusted() {
        let tool = |annotations: Value| json!([{"name": "a", "inputSchema": {"type": "object"}, "annotations": annotations}]);
        let says = |trust: bool, annotations: Value| {
            let terms = OfferTerms { trust_annotations: trust, ..terms() };
            let lists = ServerLists { tools: read(tool(annotations)), ..ServerLists::default() };
            let def = definitions(&terms, lists).tools.remove(0);
            (def.side_effects, def.idempotency)
        };
        let both = json!({"readOnlyHint": true, "idempotentHint": true});
        assert_eq!(says(true, both.clone()), (Some(false), true));
        assert_eq!(says(false, both), (None, false));
        assert_eq!(says(true, json!({"readOnlyHint": false})), (None, false));
        assert_eq!(says(true, json!({"destructiveHint": false})), (None, false));
    }

    #[test]
    fn m056_a_warning_is_believed_and_a_reassurance_only_where_it_is_trusted() {
        let destructive = |trust: bool, annotations: Value| {
            let terms = OfferTerms { trust_annotations: trust, ..terms() };
            let tool = json!([{"name": "a", "inputSchema": {"type": "object"}, "annotations": annotations}]);
            let lists = ServerLists { tools: read(tool), ..ServerLists::default() };
            let def = definitions(&terms, lists).tools.remove(0);
            (def.destructive, def.may_destroy())
        };
        for trust in [true, false] {
            assert_eq!(destructive(trust, json!({"destructiveHint": true})), (Some(true), true));
            assert_eq!(destructive(trust, json!({})), (None, true));
        }
        assert_eq!(destructive(true, json!({"destructiveHint": false})), (Some(false), false));
        assert_eq!(destructive(false, json!({"destructiveHint": false})), (None, true));
        assert_eq!(destructive(true, json!({"readOnlyHint": true})), (None, false));
    }

    #[test]
    fn m054_more_than_there_is_room_for_is_left_out() {
        let long = "x".repeat(60_000);
        let many = (0..ITEMS).map(|n| {
            json!({"name": format!("t{n}"), "description": long, "inputSchema": {"type": "object"}})
        });
        let offer = tools(many.collect());
        assert!((100..ITEMS).contains(&offer.tools.len()), "{}", offer.tools.len());
        assert_eq!(offer.tools.len() + offer.notes.len(), ITEMS);
        let patterns = (0..200).map(|n| {
            let fields =
                (0..8).map(|m| (format!("f{m}"), json!({"pattern": format!("^{n}-{m}$")})));
            json!({"name": format!("t{n}"), "inputSchema": {"type": "object",
                   "properties": fields.collect::<Object>()}})
        });
        let offer = tools(patterns.collect());
        let unfit = offer
            .tools
            .iter()
            .filter(|def| def.mcp.as_ref().is_some_and(|origin| origin.unfit.is_some()));
        assert_eq!((offer.tools.len(), unfit.count()), (200, 72));
    }

    const ITEMS: usize = 400;
}
