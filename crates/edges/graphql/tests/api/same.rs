//! REST and GraphQL show the same things, field by field. What only one of them shows is named
//! here with the reason, so that nothing is left out by accident.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::support::{OWNER, Stage};

/// A thing that both show: GraphQL's type, REST's message, what only REST has, what only GraphQL.
type Pair = (&'static str, &'static str, &'static [&'static str], &'static [&'static str]);

const PAIRS: &[Pair] = &[
    // GraphQL shows every open ask, REST the oldest.
    ("Run", "Run", &["ask"], &["asks"]),
    (
        "RunSummary",
        "Run",
        // Lists leave them out, in REST by leaving them empty.
        &[
            "artifacts",
            "ask",
            "attempts",
            "budgetMicro",
            "continues",
            "flow",
            "heldMicro",
            "holdMicro",
            "inputs",
            "kept",
            "outputs",
            "receipt",
            "timeoutMs",
            "transfers",
            "wouldCostMicro",
        ],
        &[],
    ),
    ("WaitingFor", "WaitingFor", &[], &[]),
    ("RunAttempt", "RunAttempt", &[], &[]),
    ("RunTransfer", "RunTransfer", &[], &[]),
    ("RunFlow", "RunFlow", &[], &[]),
    ("RunCount", "RunCount", &[], &[]),
    ("RunStats", "RunStats", &[], &[]),
    ("RunStatsItem", "RunStatsItem", &[], &[]),
    ("CanceledRuns", "CanceledRuns", &[], &[]),
    ("PurgedRuns", "PurgedRuns", &[], &[]),
    ("RunTree", "RunTree", &[], &[]),
    ("RunNode", "RunNode", &[], &[]),
    ("RunLineage", "RunLineage", &[], &[]),
    ("AskDetail", "AskDetail", &[], &[]),
    ("AskLink", "AskLink", &[], &[]),
    ("SimilarRun", "SimilarRun", &[], &[]),
    ("ToolDefinition", "ToolDefinition", &[], &[]),
    ("Account", "Account", &[], &[]),
    ("Lasts", "Lasts", &[], &[]),
    ("Search", "Search", &[], &[]),
    ("FoundTool", "FoundTool", &[], &[]),
    ("FoundProvider", "FoundProvider", &[], &[]),
    ("FoundWorld", "FoundWorld", &[], &[]),
    ("FoundName", "FoundName", &[], &[]),
    ("Receipt", "Receipt", &[], &[]),
    ("Error", "ErrorInfo", &[], &[]),
    ("McpServer", "McpServer", &[], &[]),
    ("McpOauth", "McpOauth", &[], &[]),
    ("AgentPermission", "AgentPermission", &[], &[]),
    ("AgentWish", "AgentWish", &[], &[]),
    ("AgentLimits", "AgentLimits", &[], &[]),
    ("Rate", "Rate", &[], &[]),
    ("Ask", "Ask", &[], &[]),
    ("AskFile", "AskFile", &[], &[]),
    // Who steers servers is known to the HTTP edge.
    ("Tool", "Tool", &["server"], &["durability"]),
    ("World", "World", &[], &["usage"]),
    ("PolicyRule", "PolicyRule", &[], &[]),
    ("Usage", "Usage", &[], &[]),
    ("Artifact", "Artifact", &[], &["uri"]),
    ("Trace", "Trace", &[], &[]),
    ("TraceStep", "TraceStep", &[], &[]),
    ("TraceRun", "TraceRun", &[], &[]),
    // REST sums up the costs alone and has a page of one.
    ("Purge", "Purge", &[], &[]),
    ("KeptValues", "KeptValues", &[], &[]),
    ("ValueDigest", "ValueDigest", &[], &[]),
    ("Costs", "Costs", &["nextCursor", "saturated", "totalMicro"], &["total"]),
    ("CostItem", "CostItem", &[], &[]),
    ("Changes", "Changes", &[], &[]),
    ("Change", "Change", &[], &[]),
    ("System", "System", &[], &[]),
    ("SystemQueue", "SystemQueue", &[], &[]),
    ("SystemLimit", "SystemLimit", &[], &[]),
    ("SystemSeries", "SystemSeries", &[], &[]),
    ("SystemPoint", "SystemPoint", &[], &[]),
    ("EndedRuns", "EndedRuns", &[], &[]),
    ("Schedule", "Schedule", &[], &[]),
    ("Firing", "Firing", &[], &[]),
    // The key stands beside the receiver in the answer that adds it.
    ("Receiver", "Receiver", &["signingKey"], &[]),
    ("Delivery", "Delivery", &[], &[]),
    // The secret stands beside the trigger in the answer that adds it.
    ("Trigger", "Trigger", &["secret"], &[]),
    ("TriggerFiring", "TriggerFiring", &[], &[]),
    ("TestedTrigger", "TestedTrigger", &[], &[]),
    ("Flow", "Flow", &[], &[]),
    ("FlowFinding", "FlowFinding", &[], &[]),
    ("FlowCheck", "FlowCheck", &[], &[]),
    ("RunStep", "RunStep", &[], &[]),
    ("Provider", "Provider", &[], &[]),
    ("AgentHealth", "AgentHealth", &[], &[]),
    ("ProviderLaunch", "ProviderLaunch", &[], &[]),
    ("ProviderUsage", "ProviderUsage", &[], &[]),
    ("ProviderUsagePoint", "ProviderUsagePoint", &[], &[]),
    ("Folder", "Folder", &[], &[]),
    ("Operator", "Seat", &[], &[]),
    ("OperatorWait", "SeatWait", &[], &[]),
    ("Diagnosis", "Diagnosis", &[], &[]),
    ("Finding", "Finding", &[], &[]),
    ("Fix", "Fix", &[], &[]),
];

/// Requests that both take, in the same way.
const INPUTS: &[Pair] = &[
    ("CreateRunInput", "CreateRun", &[], &[]),
    ("RunContextInput", "RunContext", &[], &[]),
    ("RunOperatorInput", "RunOperator", &[], &[]),
    ("WorldSettingsInput", "SetWorld", &[], &[]),
    ("PolicyRuleInput", "PolicyRule", &[], &[]),
    ("CancelRunsInput", "CancelRuns", &[], &[]),
    ("PurgeRunsInput", "PurgeRuns", &[], &[]),
    ("RunAgainInput", "RunAgain", &[], &[]),
    ("CreateScheduleInput", "CreateSchedule", &[], &[]),
    ("CreateTriggerInput", "CreateTrigger", &[], &[]),
    ("TestTriggerInput", "TestTrigger", &[], &[]),
    ("CreateReceiverInput", "CreateReceiver", &[], &[]),
];

/// Answers of REST that GraphQL has no type for.
const ONLY_REST: &[&str] = &[
    // Events of adding a tool.
    "AddFailed",
    "AddStep",
    // A test of a receiver; GraphQL gives its id.
    "TestNotification",
    // Whoever calls a hook speaks no GraphQL.
    "HookAccepted",
    // Who administers a core does so over REST.
    "AuditRecord",
    // Browsers sign in over REST, and files are bytes.
    "ConsoleLink",
    "ConsoleSession",
    "FileTicket",
    "AuditVerdict",
    "Collected",
    "CoreLog",
    "CoreLogLine",
    "Keys",
    "McpLoginPage",
    "McpLoginState",
    "Secret",
    "Ticket",
    "Token",
    // Steering agents and tool servers, and their logs. GraphQL's `Agent` is what the journal knows
    // of one, and its `Provider` all else.
    "Agent",
    "AgentLogLine",
    "FoundAgent",
    "FoundAgents",
    "Operative",
    "ToolServer",
    // What the interpreter of a handler has concerns whoever approves it.
    "ToolEnvironment",
    "LockedPackage",
    "ToolDiff",
    // Bytes of files go over plain HTTP.
    "Upload",
    "UploadPart",
    // Pages of lists: GraphQL's have edges.
    "ArtifactPage",
    "SeatList",
    // The token of a seat is shown once.
    "SeatMade",
    // Shapes of answers and of events, whose data GraphQL shows as they are.
    "ErrorBody",
    "Event",
    "RunAccepted",
];

fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |all, word| {
        let (initial, rest) = word.split_at(1);
        all + &initial.to_uppercase() + rest
    })
}

/// The fields of a message in GraphQL's spelling, each with its kind.
fn rest_fields(document: &Value, message: &str) -> BTreeMap<String, &'static str> {
    let schemas = &document["components"]["schemas"];
    let fields = schemas[message]["properties"].as_object();
    let fields = fields.unwrap_or_else(|| panic!("there is no {message}")).iter();
    fields.map(|(name, schema)| (camel(name), rest_kind(schemas, schema))).collect()
}

fn rest_kind(schemas: &Value, schema: &Value) -> &'static str {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap_or_default();
        return rest_kind(schemas, &schemas[name]);
    }
    if let Some(either) = schema["oneOf"].as_array() {
        let some = either.iter().find(|it| it["type"] != "null");
        return some.map_or("any", |some| rest_kind(schemas, some));
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    match types.into_iter().find(|it| *it != "null") {
        Some("string") => "text",
        Some("integer" | "number") => "number",
        Some("boolean") => "flag",
        Some("array") => "list",
        // An object of its own, or any JSON.
        _ => "any",
    }
}

/// The fields of a type, each with its kind.
pub(crate) async fn graphql_fields(stage: &Stage, name: &str) -> BTreeMap<String, &'static str> {
    let part = "{ name type { kind name ofType { kind name ofType { kind name } } } }";
    let query = format!("{{ __type(name: \"{name}\") {{ fields {part} inputFields {part} }} }}");
    let shown = stage.ask(&query).await.data()["__type"].clone();
    let fields = shown["fields"].as_array().or(shown["inputFields"].as_array());
    let fields = fields.unwrap_or_else(|| panic!("there is no {name}")).iter();
    let name = |field: &Value| field["name"].as_str().expect("a name").to_owned();
    fields.map(|field| (name(field), graphql_kind(&field["type"]))).collect()
}

fn graphql_kind(kind: &Value) -> &'static str {
    match (kind["kind"].as_str(), kind["name"].as_str()) {
        (Some("NON_NULL"), _) => graphql_kind(&kind["ofType"]),
        (Some("LIST"), _) => "list",
        (Some("ENUM"), _) | (_, Some("String" | "DateTime")) => "text",
        (_, Some("Int" | "Int64" | "Float")) => "number",
        (_, Some("Boolean")) => "flag",
        _ => "any",
    }
}

#[tokio::test]
async fn t045_rest_and_graphql_have_the_same_fields() {
    let stage = Stage::start().await;
    let document = stage.call(OWNER, "GET", "/openapi.json", None).await.body;
    for (ours, message, only_rest, only_graphql) in PAIRS.iter().chain(INPUTS) {
        let mut rest = rest_fields(&document, message);
        let mut graphql = graphql_fields(&stage, ours).await;
        for name in *only_rest {
            assert!(rest.remove(*name).is_some(), "{message} of REST has no {name}");
        }
        for name in *only_graphql {
            assert!(graphql.remove(*name).is_some(), "{ours} of GraphQL has no {name}");
        }
        assert_eq!(rest, graphql, "{message} of REST and {ours} of GraphQL");
    }
}

#[tokio::test]
async fn t045_every_answer_of_rest_is_in_graphql_or_left_out_on_purpose() {
    let stage = Stage::start().await;
    let document = stage.call(OWNER, "GET", "/openapi.json", None).await.body;
    let mut answers = BTreeSet::new();
    for (_, methods) in document["paths"].as_object().expect("paths") {
        for (_, operation) in methods.as_object().expect("methods") {
            collect(&document, &operation["responses"], &mut answers);
        }
    }
    let known: BTreeSet<&str> =
        PAIRS.iter().map(|pair| pair.1).chain(ONLY_REST.iter().copied()).collect();
    let schemas = &document["components"]["schemas"];
    let is_object = |name: &&String| schemas[*name]["properties"].is_object();
    let is_part = |name: &&String| name.starts_with("Page_") || name.ends_with("Event");
    let new: Vec<_> = answers
        .iter()
        .filter(is_object)
        .filter(|name| !is_part(name) && !known.contains(name.as_str()))
        .collect();
    assert_eq!(new, [&""; 0], "name them in PAIRS or ONLY_REST");
}

/// The names of all messages that a part of the document leads to.
fn collect(document: &Value, part: &Value, names: &mut BTreeSet<String>) {
    match part {
        Value::Object(fields) => {
            if let Some(name) = part["$ref"].as_str().and_then(|it| it.rsplit('/').next())
                && names.insert(name.to_owned())
            {
                collect(document, &document["components"]["schemas"][name], names);
            }
            fields.values().for_each(|value| collect(document, value, names));
        }
        Value::Array(items) => items.iter().for_each(|value| collect(document, value, names)),
        _ => {}
    }
}

/// Compares what both say of one thing, field by field: names differ in spelling, large numbers
/// are text in GraphQL, and what REST leaves out is null.
#[track_caller]
pub(crate) fn assert_same(rest: &Value, graphql: &Value) {
    match (rest, graphql) {
        (Value::Object(rest), Value::Object(graphql)) => {
            for (name, ours) in graphql {
                let theirs = rest.iter().find(|(theirs, _)| camel(theirs) == *name);
                let theirs = theirs.map_or(&Value::Null, |(_, value)| value);
                assert_same(theirs, ours);
            }
        }
        (Value::Array(rest), Value::Array(graphql)) => {
            assert_eq!(rest.len(), graphql.len());
            rest.iter().zip(graphql).for_each(|(rest, graphql)| assert_same(rest, graphql));
        }
        (Value::Number(number), Value::String(text)) => assert_eq!(number.to_string(), *text),
        (Value::Null, Value::Array(none)) => assert!(none.is_empty()),
        (Value::Null, Value::String(nothing)) => assert_eq!(nothing, "0"),
        (Value::Null, Value::Bool(flag)) => assert!(!flag),
        (Value::Null, Value::Object(nothing)) => {
            nothing.values().for_each(|value| assert_same(&Value::Null, value));
        }
        (rest, graphql) => assert_eq!(rest, graphql),
    }
}

#[tokio::test]
async fn t045_rest_and_graphql_say_the_same_of_one_thing() {
    let stage = Stage::start().await;
    let run = stage.finished("wharf/echo", json!({"text": "hello"})).await;
    for (path, field, query) in [
        (
            format!("/v1/runs/{run}"),
            "run",
            format!(
                "{{ run(id: \"{run}\") {{ runId tool world status mode durability attempt costMicro \
                 createdAt startedAt endedAt error {{ code }} correlationId parent inputs outputs \
                 continues wouldCostMicro holdMicro heldMicro timeoutMs budgetMicro waitingFor {{ kind }} \
                 receipt {{ costMicro wallMs cpuMs bytesIn bytesOut overHold incomplete capped }} }} }}"
            ),
        ),
        (
            "/v1/tools/wharf/echo".to_owned(),
            "tool",
            "{ tool(id: \"wharf/echo\") { toolId name provider description inputSchema outputSchema \
             sideEffects requiresDirective mock capabilities tags state stateReason } }"
                .to_owned(),
        ),
        (
            "/v1/worlds/default".to_owned(),
            "world",
            "{ world(id: \"default\") { world createdAt limitMicro heldMicro spentMicro overMicro \
             defaultHoldMicro unknownCost publish retentionDays runRetentionDays \
             policy { tool when approve audience patienceMs } } }"
                .to_owned(),
        ),
    ] {
        let rest = stage.call(OWNER, "GET", &path, None).await.body;
        let graphql = stage.ask(&query).await.data()[field].clone();
        assert!(rest.is_object() && graphql.is_object(), "{path}: {rest} {graphql}");
        assert_same(&rest, &graphql);
    }
}
