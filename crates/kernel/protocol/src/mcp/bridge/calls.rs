//! Calls of tools: the key that lets one be repeated, and the headers that a tool wants.

use serde_json::Value;
use wharf_vocab::Object;
use wharf_wire::mcp_v1::headers::mirrors;
use wharf_wire::mcp_v1::{
    McpEra, McpId, McpInputRequired, McpMessage, McpMeta, McpResultType, McpToolsPage, key,
    read_result,
};

use super::client::{list_request, object_below};
use super::exchange::{Exchange, ExchangeKind, ExchangeState, OpenRequest};
use super::{McpBridge, REMEMBERED_MAX};

/// Tools whose headers are remembered.
const MIRRORED_MAX: usize = 2_000;
/// Pages of tools that are read for the sake of headers.
const PAGES_MAX: u64 = 50;

impl McpBridge {
    /// Gives a call a key, so that the core joins its run when it is repeated; a modern one also
    /// the run's id and the wish that it goes on when the connection breaks, because then it can
    /// only be canceled by its id.
    pub(super) fn mark_call(&mut self, request: &mut OpenRequest, params: &mut Option<Object>) {
        let params = params.get_or_insert_default();
        let is_modern = request.era == McpEra::Modern;
        if let Some(state) = params.get("requestState").and_then(Value::as_str) {
            // It joins a run that is there already.
            request.run = self.suspended.remove(state);
            if request.run.is_some()
                && let Some(run) = run_wishes(params)
            {
                run.entry("detach").or_insert(Value::Bool(true));
            }
            return;
        }
        self.next_call += 1;
        let name = format!("{}-{}", self.config.name, self.next_call);
        let detach = self.config.detach;
        let Some(run) = run_wishes(params) else { return };
        if run.get("durability").and_then(Value::as_str) == Some("memory") {
            // Nothing is kept of it that a repeated call could join.
            request.repeatable = false;
            return;
        }
        let has_key = run.contains_key("idempotency_key");
        if !has_key {
            run.insert("idempotency_key".to_owned(), name.clone().into());
        }
        if !is_modern {
            return;
        }
        request.goes_on = run.get("detach").and_then(Value::as_bool) == Some(true);
        if !has_key {
            run.entry("run_id").or_insert_with(|| name.into());
        }
        request.run = run.get("run_id").and_then(Value::as_str).map(str::to_owned);
        // A run whose id is not known here is canceled by closing its connection.
        if request.run.is_some() || detach {
            run.entry("detach").or_insert(Value::Bool(true));
        }
    }

    /// A call ended with questions: its run waits until the client repeats it.
    pub(super) fn suspend(&mut self, request: &OpenRequest, result: &Object) {
        let kind = result.get(McpResultType::FIELD).and_then(Value::as_str);
        let Some(run) = request.run.clone() else { return };
        if kind != Some(McpResultType::InputRequired.as_str())
            || self.suspended.len() >= REMEMBERED_MAX
        {
            return;
        }
        let read = read_result::<McpInputRequired>(result.clone());
        if let Some(state) = read.ok().and_then(|read| read.known.request_state) {
            self.suspended.insert(state, run);
        }
    }

    /// Remembers what headers the tools of a list want.
    pub(super) fn learn_mirrors(&mut self, result: &Object) -> Option<String> {
        let page = read_result::<McpToolsPage>(result.clone()).ok()?;
        for tool in &page.known.tools {
            let wanted = mirrors(&tool.input_schema).unwrap_or_default();
            if wanted.is_empty() {
                self.mirrors.remove(&tool.name);
            } else if self.mirrors.len() < MIRRORED_MAX {
                self.mirrors.insert(tool.name.clone(), wanted);
            }
        }
        page.known.next_cursor.clone()
    }

    /// The core says that headers of a call are missing: the tools are listed, and the call is
    /// made again.
    pub(super) fn list_for(&mut self, call: u64, cursor: Option<&str>, page: u64) {
        let Some(exchange) = self.exchanges.get_mut(&call) else { return };
        exchange.state = ExchangeState::Held;
        exchange.head = None;
        exchange.answer = Vec::new();
        let Ok(McpMessage::Request { params, .. }) = McpMessage::read(exchange.body.as_bytes())
        else {
            return;
        };
        let meta = McpMeta::of(params.as_ref()).unwrap_or_default();
        let version = meta.protocol_version().ok().flatten().unwrap_or_default();
        let id = McpId::Text(format!("{}-list-{call}-{page}", self.config.name));
        let message = list_request(&id, &meta, cursor);
        let McpMessage::Request { method, params, .. } = &message else { return };
        let mirrored = self.mirrored(&version, method, params.as_ref());
        let kind = ExchangeKind::Mirrors { call, id };
        let number = self.enter(Exchange::new(kind, message.write()).mirroring(mirrored));
        self.send(number);
    }

    /// A page of that list.
    pub(super) fn listed_for(&mut self, number: u64, call: u64, id: &McpId, answer: McpMessage) {
        self.forget(number);
        if let McpMessage::Result { result, .. } = answer
            && let Some(cursor) = self.learn_mirrors(&result)
        {
            let McpId::Text(text) = id else { return };
            let page = text.rsplit('-').next().and_then(|page| page.parse::<u64>().ok());
            let page = page.unwrap_or(PAGES_MAX) + 1;
            if page < PAGES_MAX {
                return self.list_for(call, Some(&cursor), page);
            }
        }
        let Some(exchange) = self.exchanges.get(&call) else { return };
        let Ok(McpMessage::Request { method, params, .. }) =
            McpMessage::read(exchange.body.as_bytes())
        else {
            return;
        };
        let meta = McpMeta::of(params.as_ref()).unwrap_or_default();
        let version = meta.protocol_version().ok().flatten().unwrap_or_default();
        let mirrored = self.mirrored(&version, &method, params.as_ref());
        if let Some(exchange) = self.exchanges.get_mut(&call) {
            exchange.mirrored = mirrored;
        }
        self.send(call);
    }
}

/// What a call says about its run.
fn run_wishes(params: &mut Object) -> Option<&mut Object> {
    object_below(object_below(params, key::META)?, key::WHARF_RUN)
}
