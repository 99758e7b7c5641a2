//! The example files: every message of every revision is read, understood and written equal.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use wharf_vocab::Object;
use wharf_wire::mcp_v1::{
    McpCallResult, McpCompleteResult, McpContent, McpDiscoverResult, McpElicitResult,
    McpEmptyResult, McpEra, McpFieldKind, McpId, McpInitializeResult, McpInputRequired, McpMessage,
    McpMeta, McpNotification, McpPromptResult, McpPromptsPage, McpReadResult, McpRequest,
    McpResourcesPage, McpResultType, McpRevision, McpRootsResult, McpSampleResult, McpTask,
    McpTaskBegun, McpTaskOf11, McpTasksPage, McpTemplatesPage, McpToolsPage, code, key,
    read_result,
};

const REVISIONS: [&str; 3] = ["2025-06-18", "2025-11-25", "2026-07-28"];

pub(crate) fn examples(revision: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/mcp_v1").join(revision);
    let mut examples: Vec<_> = std::fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("readable").path())
        .map(|path| {
            let name = path.file_stem().expect("named").to_string_lossy().into_owned();
            (name, std::fs::read_to_string(&path).expect("readable"))
        })
        .collect();
    examples.sort();
    examples
}

fn all() -> impl Iterator<Item = (String, String, Value)> {
    REVISIONS.into_iter().flat_map(|revision| {
        examples(revision).into_iter().map(move |(name, text)| {
            let value = serde_json::from_str(&text).expect("JSON");
            (format!("{revision}/{name}"), text, value)
        })
    })
}

fn example(name: &str) -> McpMessage {
    let (_, text, _) = all().find(|(it, _, _)| it == name).expect("it is there");
    McpMessage::read(text.as_bytes()).expect("a message")
}

fn value(message: &McpMessage) -> Value {
    let written = message.write();
    assert!(!written.contains('\n'), "one line");
    serde_json::from_str(&written).expect("JSON")
}

/// Reads a result as what it is, and gives back what would be written.
fn understood(name: &str, result: Object) -> Object {
    fn through<T: DeserializeOwned + Serialize>(name: &str, result: Object) -> Object {
        let read = read_result::<T>(result).unwrap_or_else(|error| panic!("{name}: {error}"));
        for unknown in read.rest.keys() {
            assert!(unknown.starts_with("x-"), "{name}: {unknown} is not understood");
        }
        read.to_object()
    }
    let kind = McpResultType::of(&result);
    let modern = name.starts_with("2026");
    let method = name.split_once(".result.").expect("of a result").1;
    if kind == McpResultType::InputRequired {
        return through::<McpInputRequired>(name, result);
    }
    match method.trim_end_matches(".first") {
        "initialize" => through::<McpInitializeResult>(name, result),
        "server.discover" => through::<McpDiscoverResult>(name, result),
        it if it.starts_with("tools.list") => through::<McpToolsPage>(name, result),
        it if it.starts_with("resources.list") => through::<McpResourcesPage>(name, result),
        it if it.starts_with("resources.templates") => through::<McpTemplatesPage>(name, result),
        it if it.starts_with("prompts.list") => through::<McpPromptsPage>(name, result),
        "tools.call.task" if modern => through::<McpTask>(name, result),
        "tools.call.task" => through::<McpTaskBegun>(name, result),
        it if it.starts_with("tools.call") => through::<McpCallResult>(name, result),
        "resources.read" => through::<McpReadResult>(name, result),
        "prompts.get" => through::<McpPromptResult>(name, result),
        "completion.complete" => through::<McpCompleteResult>(name, result),
        it if it.starts_with("elicitation") => through::<McpElicitResult>(name, result),
        "sampling.createMessage" => through::<McpSampleResult>(name, result),
        "roots.list" => through::<McpRootsResult>(name, result),
        "tasks.list" => through::<McpTasksPage>(name, result),
        "tasks.result" => through::<McpCallResult>(name, result),
        it if it.starts_with("tasks.get") && modern => through::<McpTask>(name, result),
        "tasks.get" => through::<McpTaskOf11>(name, result),
        "tasks.cancel" if !modern => through::<McpTaskOf11>(name, result),
        "ping"
        | "resources.subscribe"
        | "resources.unsubscribe"
        | "logging.setLevel"
        | "tasks.update"
        | "tasks.cancel"
        | "subscriptions.listen" => through::<McpEmptyResult>(name, result),
        _ => panic!("{name} is no result that anybody reads"),
    }
}

#[test]
fn m001_every_message_of_every_revision_is_understood_and_written_equal() {
    let mut count = 0;
    for (name, text, expected) in all() {
        let message = McpMessage::read(text.as_bytes()).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        assert_eq!(value(&message), expected, "{name}");
        let again = match message {
            McpMessage::Request { id, method, params } => {
                let request = McpRequest::read(&method, params)
                    .unwrap_or_else(|error| panic!("{name}: {error}"));
                assert!(!matches!(request, McpRequest::Other { .. }), "{name}");
                let (method, params) = (request.method().to_owned(), request.params());
                McpMessage::Request { id, method, params }
            }
            McpMessage::Notification { method, params } => {
                let told = McpNotification::read(&method, params)
                    .unwrap_or_else(|error| panic!("{name}: {error}"));
                assert!(!matches!(told, McpNotification::Other { .. }), "{name}");
                let (method, params) = (told.method().to_owned(), told.params());
                McpMessage::Notification { method, params }
            }
            McpMessage::Result { id, result } => {
                McpMessage::Result { id, result: understood(&name, result) }
            }
            error @ McpMessage::Error { .. } => error,
        };
        assert_eq!(value(&again), expected, "{name} was understood otherwise");
        count += 1;
    }
    assert!(count > 180, "{count}");
}

#[test]
fn m001_every_method_has_an_example_in_each_revision_that_has_it() {
    for revision in REVISIONS {
        let spoken = McpRevision::parse(revision).expect("known");
        let mut requests = BTreeSet::new();
        for (name, text) in examples(revision) {
            let message = McpMessage::read(text.as_bytes()).expect("a message");
            let McpMessage::Request { method, params, .. } = message else { continue };
            let request = McpRequest::read(&method, params).expect("fits");
            let from_client = name.starts_with("client.");
            assert_eq!(request.is_for_servers(spoken), from_client || method == "ping", "{name}");
            let era = McpEra::of(request.meta(), None);
            assert!(era == spoken.era() || !from_client, "{name}");
            requests.insert(method);
        }
        let expected = match revision {
            "2025-06-18" => 16,
            "2025-11-25" => 20,
            _ => 13,
        };
        assert_eq!(requests.len(), expected, "{revision}: {requests:?}");
    }
}

#[test]
fn m001_what_travels_beside_a_request_is_read() {
    let McpMessage::Request { id, method, params } =
        example("2026-07-28/client.request.tools.call")
    else {
        panic!("no request")
    };
    assert_eq!(id, McpId::from(4));
    let meta = McpMeta::of(params.as_ref()).expect("it is there");
    assert_eq!(meta.progress_token(), Ok(Some(McpId::from("tok-1"))));
    assert_eq!(meta.protocol_version(), Ok(Some("2026-07-28".to_owned())));
    assert_eq!(meta.client_info().expect("fits").expect("there").name, "desk");
    let capabilities = meta.client_capabilities().expect("fits").expect("there");
    assert!(capabilities.elicits_forms() && capabilities.elicits_urls());
    assert!(capabilities.has_tasks_extension());
    assert!(meta.traceparent().is_some_and(|trace| trace.starts_with("00-")));
    let run = meta.wharf(key::WHARF_RUN).expect("ours");
    assert_eq!(run["idempotency_key"], "k1");
    let McpRequest::ToolsCall(call) = McpRequest::read(&method, params).expect("fits") else {
        panic!("no call")
    };
    assert_eq!((call.name.as_str(), call.rest.len()), ("weigh", 1));
    let odd = McpMeta::default().with(key::PROGRESS_TOKEN, [1]).with(key::LOG_LEVEL, "loud");
    assert_eq!(odd.progress_token().expect_err("odd").code, code::INVALID_PARAMS);
    assert_eq!(odd.log_level().expect_err("odd").code, code::INVALID_PARAMS);
    let McpMessage::Request { params, .. } =
        example("2025-11-25/server.request.elicitation.create")
    else {
        panic!("no request")
    };
    assert_eq!(McpMeta::of(params.as_ref()).expect("there").related_task(), Some("t-1"));
}

#[test]
fn m001_forms_say_what_is_filled_in() {
    let McpMessage::Request { method, params, .. } =
        example("2025-11-25/server.request.elicitation.create")
    else {
        panic!("no request")
    };
    let McpRequest::Elicit(elicit) = McpRequest::read(&method, params).expect("fits") else {
        panic!("no elicitation")
    };
    assert_eq!(elicit.address(), None);
    let form = elicit.form().expect("a form");
    let kind = |name: &str| form.properties[name].field_kind().expect("known");
    let pairs = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect::<Vec<_>>()
    };
    assert_eq!(kind("name"), McpFieldKind::Text);
    assert_eq!(kind("age"), McpFieldKind::Integer);
    assert_eq!(kind("weight"), McpFieldKind::Number);
    assert_eq!(kind("sure"), McpFieldKind::Boolean);
    assert_eq!(kind("size"), McpFieldKind::One(pairs(&[("s", "Small"), ("l", "Large")])));
    assert_eq!(kind("color"), McpFieldKind::One(pairs(&[("r", "Red"), ("g", "Green")])));
    assert_eq!(kind("days"), McpFieldKind::Some(pairs(&[("mon", "mon"), ("tue", "tue")])));
    let ports = McpFieldKind::Some(pairs(&[("h", "Hamburg"), ("r", "Rotterdam")]));
    assert_eq!(kind("ports"), ports);
}

#[test]
fn m001_errors_that_carry_facts_are_read() {
    let error = |name: &str| match example(name) {
        McpMessage::Error { error, .. } => error,
        other => panic!("{other:?}"),
    };
    let version = error("2026-07-28/server.error.version");
    assert_eq!(version.supported_versions(), McpRevision::SUPPORTED);
    assert!(code::is_modern(version.code));
    let url = error("2025-11-25/server.error.url");
    assert_eq!(url.url_elicitations()[0].address(), Some("https://example.com/in"));
    assert!(!code::is_modern(url.code));
}

#[test]
fn m054_a_tool_that_does_not_fit_hides_no_other() {
    let McpMessage::Result { mut result, .. } = example("2025-11-25/server.result.tools.list")
    else {
        panic!("no result")
    };
    let tools = result["tools"].as_array_mut().expect("a list");
    tools.insert(0, serde_json::json!({"name": "broken", "inputSchema": "c4nary"}));
    tools.push(serde_json::json!(7));
    assert!(read_result::<McpToolsPage>(result.clone()).is_err());
    let (page, unfit) = McpToolsPage::read_fitting(result).expect("a page");
    assert_eq!((page.tools.len(), page.next_cursor.as_deref()), (1, Some("page-3")));
    let unfit: Vec<_> = unfit.iter().map(|it| (it.name.as_deref(), it.why.as_str())).collect();
    let why = "The field `inputSchema` must be a JSON object.";
    assert_eq!(unfit, [(Some("broken"), why), (None, "It is no JSON object.")]);
    assert!(McpToolsPage::read_fitting(Object::new()).is_err(), "a page without a list is none");
}

#[test]
fn m001_blocks_of_unknown_kinds_stay_as_they_are() {
    let McpMessage::Result { result, .. } = example("2025-06-18/server.result.tools.call") else {
        panic!("no result")
    };
    let result = read_result::<McpCallResult>(result).expect("fits");
    let kinds: Vec<bool> =
        result.content.iter().map(|block| matches!(block, McpContent::Other(_))).collect();
    assert_eq!(kinds, [false, false, false, false, false, false, true]);
    for bad in [r#"{"type":"text"}"#, r#"{"text":"c4nary"}"#, r#"{"type":"image","data":1}"#] {
        let error = serde_json::from_str::<McpContent>(bad).expect_err("unfit").to_string();
        assert!(!error.contains("c4nary"), "{error}");
    }
}
