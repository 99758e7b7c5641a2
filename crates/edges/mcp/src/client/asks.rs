//! Questions of a server.
//!
//! What a server wants to know of a person becomes a question of the run: its caller is asked if
//! it is an MCP client that can, and so is everybody who looks after the inbox; the first answer
//! counts. An address is shown and never opened.

use serde_json::{Value, json};
use url::Url;
use wharf_domain::run::{McpTerms, NewAsk};
use wharf_domain::{Audience, Resolution};
use wharf_vocab::{AskKind, Code, Fault, Object};
use wharf_wire::mcp_v1::{
    McpElicit, McpElicitAction, McpElicitResult, McpError, McpMeta, McpOpen, McpRequest, code,
};

use super::attempt::{AskContext, ServerAsk};
use super::{roots, sampling};
use crate::asked::{self, AskedRequest};
use crate::shown;

/// Longest message of a question that is taken.
const MESSAGE_BYTES_MAX: usize = 16 * 1024;
/// Longest address that is shown.
const ADDRESS_BYTES_MAX: usize = 4 * 1024;

/// Answers what a server asks while it works on a call.
pub(crate) async fn asked(context: &AskContext, ask: ServerAsk) -> Result<Object, McpError> {
    let ServerAsk { key, named, request, in_task } = ask;
    let named = named.or_else(|| request.meta().and_then(name_of));
    let in_task = in_task || request.meta().is_some_and(|meta| meta.related_task().is_some());
    let name = AskName { key, named, in_task };
    match request {
        McpRequest::Elicit(elicit) => elicited(context, name, *elicit).await,
        McpRequest::Sample(sample) => sampling::asked(context, name, *sample).await,
        McpRequest::RootsList(_) => roots::asked(context, name).await,
        _ => Err(McpError::method_not_found()),
    }
}

/// What something that a server asks is called.
#[derive(Debug)]
pub(crate) struct AskName {
    /// Within the run.
    pub(crate) key: String,
    /// By the server.
    pub(crate) named: Option<String>,
    /// Whether it is asked in a task.
    pub(crate) in_task: bool,
}

/// The server's own name for what it asks, where the protocol has none.
fn name_of(meta: &McpMeta) -> Option<String> {
    meta.0.get(asked::NAME).and_then(Value::as_str).map(str::to_owned)
}

/// What a person is asked.
#[derive(Debug, PartialEq)]
struct Question {
    title: String,
    schema: Option<Value>,
    /// The details, where title and schema do not say all.
    params: Option<Object>,
    /// The address that is shown.
    address: Option<String>,
}

impl Question {
    fn of(elicit: &McpOpen<McpElicit>) -> Result<Self, McpError> {
        if elicit.message.len() > MESSAGE_BYTES_MAX {
            return Err(McpError::params("The message is too long."));
        }
        let title = shown::line(&elicit.message);
        if let Some(form) = elicit.form() {
            let whole = || [("message".to_owned(), elicit.message.clone().into())];
            let params = (title != elicit.message).then(|| whole().into_iter().collect());
            let schema = Some(Value::Object(form.to_object()));
            return Ok(Self { title, schema, params, address: None });
        }
        let address = elicit.address().ok_or_else(|| McpError::params("There is no form."))?;
        let address = checked(address)?;
        let mut params = elicit.to_object();
        params.remove("_meta");
        params.remove("task");
        let title = format!("{title} (open {address} and say when that is done)");
        Ok(Self { title, schema: None, params: Some(params), address: Some(address) })
    }

    fn into_ask(self, context: &AskContext, name: AskName) -> NewAsk {
        let method = "elicitation/create".to_owned();
        let in_task = name.in_task;
        let asked = AskedRequest { key: name.named, method, params: self.params, in_task };
        let mut detail = asked.to_detail();
        if let (Some(address), Value::Object(detail)) = (self.address, &mut detail) {
            detail.insert("url".to_owned(), address.into());
        }
        question(context, name.key, self.title, self.schema, detail)
    }

    fn is_within(&self, terms: McpTerms) -> bool {
        match self.address {
            Some(_) => terms.url,
            None => terms.form,
        }
    }
}

/// A question to anybody.
pub(crate) fn question(
    context: &AskContext,
    key: String,
    title: String,
    schema: Option<Value>,
    detail: Value,
) -> NewAsk {
    NewAsk {
        attempt_id: context.attempt.dispatch().attempt_id.clone(),
        kind: AskKind::Question,
        key,
        title,
        schema,
        audience: Audience::Any,
        deadline: None,
        escalates: None,
        detail: Some(detail),
        by: Vec::new(),
    }
}

/// An address that a person may be led to, as it is shown: one that says which host it leads to
/// and that nobody on the way can change.
fn checked(address: &str) -> Result<String, McpError> {
    let fits = |url: &Url| {
        url.scheme() == "https"
            && url.host_str().is_some_and(|host| !host.is_empty())
            && url.username().is_empty()
            && url.password().is_none()
    };
    let url = Url::parse(address).ok().filter(fits).map(String::from);
    url.filter(|url| url.len() <= ADDRESS_BYTES_MAX).ok_or_else(|| {
        McpError::params("Only addresses of https without a user's name are shown to people.")
    })
}

async fn elicited(
    context: &AskContext,
    name: AskName,
    elicit: McpOpen<McpElicit>,
) -> Result<Object, McpError> {
    let question = Question::of(&elicit)?;
    let is_address = question.address.is_some();
    if context.only_caller().is_some_and(|terms| !question.is_within(terms)) {
        return Err(McpError::missing_capability(&json!({"elicitation": mode(is_address)})));
    }
    let schema = question.schema.clone();
    let ended = context.ask(question.into_ask(context, name)).await.map_err(unasked)?;
    let mut result = answer(ended, is_address);
    if let (Some(content), Some(schema)) = (&mut result.content, &schema) {
        fill_defaults(content, schema);
    }
    Ok(McpOpen::from(result).to_object())
}

/// What a form has a value for, and an answer leaves out, has that value.
fn fill_defaults(content: &mut Object, schema: &Value) {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        if let Some(default) = property.get("default") {
            content.entry(name.clone()).or_insert_with(|| default.clone());
        }
    }
}

fn mode(is_address: bool) -> Value {
    if is_address { json!({"url": {}}) } else { json!({"form": {}}) }
}

/// Why something could not be asked.
pub(crate) fn unasked(fault: Fault) -> McpError {
    let theirs = [Code::ToolSchemaInvalid, Code::ToolSchemaTooLarge, Code::RequestInvalid];
    let is_theirs = theirs.into_iter().any(|code| fault.is(code));
    let number = if is_theirs { code::INVALID_PARAMS } else { code::INTERNAL };
    McpError::new(number, fault.message)
}

/// What a server is answered.
fn answer(ended: Resolution, is_address: bool) -> McpElicitResult {
    use McpElicitAction::{Accept, Cancel, Decline};
    let (action, content) = match ended {
        // Whoever opened an address says so with whatever is not a no.
        Resolution::Answered { value: Value::Bool(false) } if is_address => (Decline, None),
        Resolution::Answered { .. } if is_address => (Accept, None),
        Resolution::Answered { value: Value::Object(content) } => (Accept, Some(content)),
        Resolution::Declined | Resolution::Deny { .. } => (Decline, None),
        Resolution::Answered { .. }
        | Resolution::Allow { .. }
        | Resolution::Cancelled
        | Resolution::OffScript { .. }
        | Resolution::Expired
        | Resolution::Withdrawn => (Cancel, None),
    };
    McpElicitResult { action, content, meta: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elicit(value: Value) -> McpOpen<McpElicit> {
        serde_json::from_value(value).expect("an elicitation")
    }

    #[test]
    fn m066_a_form_is_asked_by_title_and_schema() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}, "x-y": 1});
        let form = json!({"message": "Which?", "requestedSchema": schema, "_meta": {"a": 1}});
        let question = Question::of(&elicit(form)).expect("fits");
        assert_eq!(question.title, "Which?");
        assert_eq!(
            (question.schema, question.params, question.address),
            (Some(schema), None, None)
        );
    }

    #[test]
    fn m066_only_addresses_that_lead_where_they_say_are_shown() {
        for (address, shown) in [
            ("https://example.com/a?b=c", Some("https://example.com/a?b=c")),
            ("HTTPS://EXAMPLE.com", Some("https://example.com/")),
            ("https://ex\u{0430}mple.com/", Some("https://xn--exmple-4nf.com/")),
            ("http://example.com", None),
            ("https://user@example.com", None),
            ("https://:secret@example.com", None),
            ("javascript:alert(1)", None),
            ("example.com", None),
            ("", None),
        ] {
            assert_eq!(checked(address).ok().as_deref(), shown, "{address}");
        }
        let long = format!("https://example.com/{}", "a".repeat(ADDRESS_BYTES_MAX));
        checked(&long).expect_err("too long");
    }

    #[test]
    fn m066_what_is_neither_form_nor_address_is_refused() {
        for value in [
            json!({"message": "?"}),
            json!({"mode": "url", "message": "?"}),
            json!({"mode": "form", "message": "?", "url": "https://example.com"}),
            json!({"message": "x".repeat(MESSAGE_BYTES_MAX + 1),
                "requestedSchema": {"type": "object", "properties": {}}}),
        ] {
            let error = Question::of(&elicit(value)).expect_err("refused");
            assert_eq!(error.code, code::INVALID_PARAMS);
        }
    }

    #[test]
    fn m066_what_an_answer_leaves_out_is_as_the_form_has_it() {
        let schema = json!({"properties": {"a": {"default": 1}, "b": {"default": true}, "c": {}}});
        let mut content = json!({"b": false}).as_object().cloned().expect("an object");
        fill_defaults(&mut content, &schema);
        assert_eq!(Value::Object(content), json!({"a": 1, "b": false}));
    }

    #[test]
    fn m066_a_server_is_answered_in_its_own_words() {
        use McpElicitAction::{Accept, Cancel, Decline};
        let answered = |value| Resolution::Answered { value };
        for (ended, is_address, action) in [
            (answered(json!({"a": 1})), false, Accept),
            (answered(json!("text")), false, Cancel),
            (answered(Value::Null), true, Accept),
            (answered(json!({})), true, Accept),
            (answered(json!(false)), true, Decline),
            (Resolution::Declined, true, Decline),
            (Resolution::Cancelled, false, Cancel),
            (Resolution::Expired, false, Cancel),
            (Resolution::Withdrawn, true, Cancel),
        ] {
            assert_eq!(answer(ended.clone(), is_address).action, action, "{ended:?}");
        }
        let content = answer(answered(json!({"a": 1})), false).content;
        assert_eq!(content.map(Value::Object), Some(json!({"a": 1})));
    }
}
