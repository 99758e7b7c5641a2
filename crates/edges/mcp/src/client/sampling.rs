//! A server's wish for a model's words.
//!
//! The client whose call it is may have a model: then the wish is an ask of the run that carries
//! the whole request. The core's own model is a child run of `wharf/sample`, which the server
//! needs the permission for and whose cost counts as the run's.

use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use wharf_domain::permission::Permission;
use wharf_domain::provider::McpSampling;
use wharf_domain::run::McpTerms;
use wharf_domain::{Outcome, Provider, Resolution, Run};
use wharf_engine::{FollowEvent, NewRun};
use wharf_vocab::{Code, Fault, Object, ToolId};
use wharf_wire::mcp_v1::{
    McpContent, McpError, McpOpen, McpRole, McpSample, McpSampleContent, McpSampleMessage,
    McpSampleResult, code, read_result,
};

use super::asks::{AskName, question, unasked};
use super::attempt::AskContext;
use super::{McpServers, details_of};
use crate::asked::AskedRequest;
use crate::shown;

/// The tool that asks the core's own model.
const TOOL: &str = "wharf/sample";
/// What a client answers whose user does not want it.
const DECLINED: i64 = -1;

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SampleSource {
    /// The client whose call it is.
    Caller,
    /// The core's own model.
    Model,
}

/// Who answers what a server asks of a model in a run with these terms, if anybody does.
pub(crate) fn source(
    servers: &McpServers,
    agent: &Provider,
    terms: Option<McpTerms>,
) -> Option<SampleSource> {
    let said = details_of(agent).ok().and_then(|details| details.sampling);
    let may_call = || tool().is_some_and(|tool| may_call(agent, &tool));
    choose(said.unwrap_or(servers.options.sampling), terms.unwrap_or_default(), may_call)
}

fn choose(
    wish: McpSampling,
    terms: McpTerms,
    may_call: impl FnOnce() -> bool,
) -> Option<SampleSource> {
    let caller = || terms.sampling.then_some(SampleSource::Caller);
    let model = || (!terms.inbox_off && may_call()).then_some(SampleSource::Model);
    match wish {
        McpSampling::Auto => caller().or_else(model),
        McpSampling::Caller => caller(),
        McpSampling::Model => model(),
        McpSampling::Refuse => None,
    }
}

fn tool() -> Option<ToolId> {
    ToolId::new(TOOL).ok()
}

fn may_call(agent: &Provider, tool: &ToolId) -> bool {
    agent.permissions().iter().any(|permission| permission.allows_tool(tool))
}

/// Answers what a server asks of a model.
pub(crate) async fn asked(
    context: &AskContext,
    name: AskName,
    sample: McpOpen<McpSample>,
) -> Result<Object, McpError> {
    let terms = context.attempt.dispatch().spec.mcp;
    match source(&context.servers, &context.agent, terms) {
        Some(SampleSource::Caller) => of_caller(context, name, &sample).await,
        Some(SampleSource::Model) => of_model(context, name, &sample).await,
        None if context.only_caller().is_some() => {
            Err(McpError::missing_capability(&json!({"sampling": {}})))
        }
        None => Err(McpError::new(DECLINED, "There is no model that may be asked.")),
    }
}

// ---- the caller

async fn of_caller(
    context: &AskContext,
    name: AskName,
    sample: &McpOpen<McpSample>,
) -> Result<Object, McpError> {
    let mut params = sample.to_object();
    params.remove("_meta");
    params.remove("task");
    let last = sample.messages.iter().rev().flat_map(|message| message.content.blocks());
    let words = last.filter_map(text).next().map(shown::words).unwrap_or_default();
    let title = format!("The MCP server {} asks a model: {words}", context.agent.id);
    let method = "sampling/createMessage".to_owned();
    let in_task = name.in_task;
    let asked = AskedRequest { key: name.named, method, params: Some(params), in_task };
    let ask = question(context, name.key, title, Some(answer_schema()), asked.to_detail());
    match context.ask(ask).await.map_err(unasked)? {
        Resolution::Answered { value: Value::Object(answer) } => {
            read_result::<McpSampleResult>(answer.clone())?;
            Ok(answer)
        }
        _ => Err(McpError::new(DECLINED, "The request was declined.")),
    }
}

/// What an answer looks like, for whoever gives it.
fn answer_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "role": {"enum": ["assistant", "user"]},
            "content": {"type": ["object", "array"]},
            "model": {"type": "string"},
            "stopReason": {"type": "string"},
        },
        "required": ["role", "content", "model"],
    })
}

// ---- the core's own model

async fn of_model(
    context: &AskContext,
    name: AskName,
    sample: &McpOpen<McpSample>,
) -> Result<Object, McpError> {
    let tool = tool().ok_or_else(McpError::method_not_found)?;
    let dispatch = context.attempt.dispatch();
    let mut new = NewRun::new(tool, inputs(sample)?, dispatch.run.world.clone());
    new.mode = dispatch.spec.mode;
    new.correlation_id.clone_from(&dispatch.spec.correlation_id);
    // Asked again after a restart of the core, it is the same wish.
    new.idempotency_key = Some(format!("{}:{}", dispatch.run.run, name.key));
    let run = complete(context, new).await.map_err(|fault| refused(&fault))?;
    match &run.outcome {
        Some(Outcome::Succeeded { outputs }) => Ok(result(outputs)),
        outcome => {
            let lost = || Fault::new(Code::ToolFailed, "The model gave no answer.");
            let fault = outcome.as_ref().and_then(Outcome::error).cloned();
            Err(refused(&fault.unwrap_or_else(lost)))
        }
    }
}

/// Starts a child run and waits for its end. If nobody waits any more it is canceled.
async fn complete(context: &AskContext, new: NewRun) -> Result<std::sync::Arc<Run>, Fault> {
    let agent = context.servers.handle().providers().get(&context.agent.id)?;
    let tools = agent.permissions().into_iter().filter_map(|permission| match permission {
        Permission::Invoke(pattern) => Some(pattern),
        _ => None,
    });
    let caller = context.attempt.caller(tools.collect());
    let accepted = context.attempt.invoke(&caller, new).await?;
    let stop = CancellationToken::new();
    let _unwanted = stop.clone().drop_guard();
    let handle = context.servers.handle().clone();
    let (tell, told) = oneshot::channel();
    let key = accepted.run.key.clone();
    context.servers.host.tasks().spawn("following a child", async move {
        let ended = async {
            let mut follow = handle.run_events().follow(caller, &key, stop).await?;
            loop {
                if let FollowEvent::Ended(run) = follow.next().await? {
                    return Ok::<_, Fault>(run);
                }
            }
        };
        // Whoever waited may have left.
        let _ = tell.send(ended.await);
    });
    let lost = || Fault::new(Code::CoreInternal, "The model's answer was lost.");
    told.await.unwrap_or_else(|_| Err(lost()))
}

fn refused(fault: &Fault) -> McpError {
    let message = format!("{}: {}", fault.code, fault.message);
    McpError::new(code::INTERNAL, message)
}

/// What the tool is given.
fn inputs(sample: &McpOpen<McpSample>) -> Result<Object, McpError> {
    if sample.tools.as_ref().is_some_and(|tools| !tools.is_empty()) {
        return Err(McpError::params("The model cannot use tools."));
    }
    let system = sample.system_prompt.iter().map(|text| json!({"role": "system", "content": text}));
    let said = sample.messages.iter().map(|message| said(message));
    let messages = system.map(Ok).chain(said).collect::<Result<Vec<_>, _>>()?;
    let mut inputs = Object::new();
    inputs.insert("prompt".to_owned(), messages.into());
    let max_tokens = sample.max_tokens.as_f64().filter(|tokens| *tokens >= 1.0);
    inputs.insert("maxTokens".to_owned(), json!(max_tokens.map(|tokens| tokens.trunc() as u64)));
    inputs.extend(sample.temperature.clone().map(|it| ("temperature".to_owned(), it.into())));
    inputs.extend(sample.stop_sequences.clone().map(|it| ("stop".to_owned(), it.into())));
    inputs.retain(|_, value| !value.is_null());
    Ok(inputs)
}

fn said(message: &McpSampleMessage) -> Result<Value, McpError> {
    let role = match message.role {
        McpRole::User => "user",
        McpRole::Assistant => "assistant",
    };
    let blocks = message.content.blocks();
    let texts = blocks.iter().map(text).collect::<Option<Vec<_>>>();
    let content: Value = match texts {
        Some(texts) => texts.join("\n").into(),
        None => blocks.iter().map(part).collect::<Result<Vec<_>, _>>()?.into(),
    };
    Ok(json!({"role": role, "content": content}))
}

fn text(block: &McpContent) -> Option<&str> {
    match block {
        McpContent::Text(text) => Some(&text.text),
        _ => None,
    }
}

/// A block as models take it.
fn part(block: &McpContent) -> Result<Value, McpError> {
    match block {
        McpContent::Text(text) => Ok(json!({"type": "text", "text": text.text})),
        McpContent::Image(image) => {
            let url = format!("data:{};base64,{}", image.mime_type, image.data);
            Ok(json!({"type": "image_url", "image_url": {"url": url}}))
        }
        _ => Err(McpError::params("The model takes words and pictures only.")),
    }
}

/// What the tool gave, as a server is answered.
fn result(outputs: &Object) -> Object {
    let given = |name: &str| outputs.get(name).and_then(Value::as_str);
    let stop = given("finishReason").map(|reason| match reason {
        "stop" => "endTurn",
        "length" => "maxTokens",
        "stop_sequence" => "stopSequence",
        other => other,
    });
    let result = McpSampleResult {
        role: McpRole::Assistant,
        content: McpSampleContent::One(Box::new(McpContent::text(given("text").unwrap_or("")))),
        model: given("model").unwrap_or("unknown").to_owned(),
        stop_reason: stop.map(str::to_owned),
        meta: None,
    };
    McpOpen::from(result).to_object()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(value: Value) -> McpOpen<McpSample> {
        serde_json::from_value(value).expect("a sample")
    }

    #[test]
    fn m067_the_caller_is_asked_before_the_model_and_nobody_at_last() {
        use McpSampling::{Auto, Caller, Model, Refuse};
        let able = McpTerms { sampling: true, ..McpTerms::default() };
        let alone = McpTerms { inbox_off: true, ..McpTerms::default() };
        let unable = McpTerms::default();
        for (wish, terms, may_call, source) in [
            (Auto, able, true, Some(SampleSource::Caller)),
            (Auto, unable, true, Some(SampleSource::Model)),
            (Auto, unable, false, None),
            (Auto, alone, true, None),
            (Caller, able, false, Some(SampleSource::Caller)),
            (Caller, unable, true, None),
            (Model, able, true, Some(SampleSource::Model)),
            (Model, able, false, None),
            (Refuse, able, true, None),
        ] {
            assert_eq!(choose(wish, terms, || may_call), source, "{wish:?} {terms:?} {may_call}");
        }
    }

    #[test]
    fn m067_a_model_is_given_what_the_server_says() {
        let given = inputs(&sample(json!({
            "messages": [
                {"role": "user", "content": {"type": "text", "text": "Hi"}},
                {"role": "assistant", "content": [
                    {"type": "text", "text": "Look:"},
                    {"type": "image", "data": "AAAA", "mimeType": "image/png"},
                ]},
            ],
            "systemPrompt": "Be short.", "maxTokens": 100.0, "temperature": 0.5,
            "stopSequences": ["END"], "modelPreferences": {"hints": [{"name": "x"}]},
        })));
        let expected = json!({
            "prompt": [
                {"role": "system", "content": "Be short."},
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": [
                    {"type": "text", "text": "Look:"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                ]},
            ],
            "maxTokens": 100, "temperature": 0.5, "stop": ["END"],
        });
        assert_eq!(Value::Object(given.expect("fits")), expected);
        let sound = json!({"messages": [{"role": "user",
            "content": {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}}],
            "maxTokens": 1});
        assert_eq!(inputs(&sample(sound)).expect_err("no sound").code, code::INVALID_PARAMS);
    }

    #[test]
    fn m067_a_server_is_told_what_the_model_said() {
        let outputs = json!({"text": "Hello", "model": "m", "finishReason": "length"});
        let told = Value::Object(result(outputs.as_object().expect("an object")));
        let content = json!({"type": "text", "text": "Hello"});
        let expected = json!({"role": "assistant", "content": content, "model": "m",
            "stopReason": "maxTokens"});
        assert_eq!(told, expected);
    }
}
