//! The API document, made from the routes and the message types. What other edges serve on the same
//! listener they describe themselves.

mod rules;

use serde_json::Value;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Components, OpenApi as Document, SecurityRequirement};
use utoipa::{Modify, OpenApi};
use wharf_wire::operator_v1 as operator;
use wharf_wire::rest_v1 as wire;

use crate::options::Mount;
use crate::routes::Route;

const TOKEN: &str = "token";

/// What stands in the document besides the paths.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Wharf",
        description = "Starts tools, follows their runs, answers what they ask. Every error has \
                       the shape of `ErrorBody` and a stable code. Times are RFC 3339 in UTC.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    components(schemas(
        wire::MarkEvent, wire::AttemptEvent, wire::LogEvent, wire::TextEvent, wire::PartialEvent,
        wire::ProgressEvent, wire::AskEvent, wire::DecidedEvent, wire::GapEvent,
        wire::FinishedEvent, wire::AgentLogLine, wire::Operative,
        operator::NewSeat, operator::SeatMade, operator::Seat, operator::SeatList,
        operator::SeatWait,
        operator::NewTask, operator::WorkerProgress, operator::WorkerDegradation,
        operator::TaskHooks, operator::TaskStarted, operator::WorkerPrompt,
        operator::WorkerResult,
    )),
    tags(
        (name = "runs", description = "Running tools and following them."),
        (name = "tools", description = "The tools that can be run."),
        (name = "agents", description = "Programs that the core launches and that offer tools."),
        (name = "mcp", description = "Servers of MCP whose tools can be run."),
        (name = "providers", description = "Whoever executes tools, of every kind."),
        (name = "search", description = "Looking for anything."),
        (name = "asks", description = "Questions and approvals that runs wait for."),
        (name = "worlds", description = "Spaces with files and a budget of their own."),
        (name = "files", description = "What runs read and write, and where it came from."),
        (name = "schedules", description = "Runs that the core starts by the clock."),
        (name = "triggers", description = "Runs that somebody outside starts by calling a hook."),
        (name = "notifications", description = "Who outside is told of what."),
        (name = "tokens", description = "Tokens and what they permit."),
        (name = "console", description = "Browsers that are signed in at the console."),
        (name = "secrets", description = "Secrets that providers get by name."),
        (name = "audit", description = "Who did what."),
        (name = "system", description = "Health, metrics and this document."),
    ),
    modifiers(&TokenScheme),
)]
struct Api;

struct TokenScheme;

impl Modify for TokenScheme {
    fn modify(&self, document: &mut Document) {
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        let components = document.components.get_or_insert_with(Components::new);
        components.add_security_scheme(TOKEN, SecurityScheme::Http(bearer));
        document.security = Some(vec![SecurityRequirement::new(TOKEN, [""; 0])]);
    }
}

/// The document of a core with these mounts, as JSON text.
pub(crate) fn text(routes: &[Route], mounts: &[Mount]) -> String {
    let mut document = Api::openapi();
    let components = document.components.get_or_insert_with(Components::new);
    let mut schemas = Vec::new();
    routes.iter().flat_map(|route| &route.schemas).for_each(|write| write(&mut schemas));
    components.schemas.extend(schemas);
    let written = serde_json::to_value(&document).and_then(|mut document| {
        for Route { access, operation, .. } in routes {
            // The document knows no parameter that spans slashes.
            let path = access.path.replace("{*", "{");
            let method = access.method.as_str().to_ascii_lowercase();
            document["paths"][path][method] = operation.clone();
        }
        for mount in mounts {
            add(&mut document, serde_json::from_str(mount.document)?);
        }
        rules::finish(&mut document);
        serde_json::to_string_pretty(&document)
    });
    written.unwrap_or_else(|error| {
        tracing::error!(%error, "the API document cannot be written");
        "{}".to_owned()
    })
}

/// Adds paths, tags and schemas of another edge.
fn add(document: &mut Value, more: Value) {
    match (document, more) {
        (Value::Object(document), Value::Object(more)) => {
            for (name, value) in more {
                add(document.entry(name).or_insert(Value::Null), value);
            }
        }
        (Value::Array(all), Value::Array(more)) => all.extend(more),
        (place, more) => *place = more,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{Need, RouteAccess};
    use crate::routes;
    use serde_json::json;
    use std::collections::BTreeSet;

    #[test]
    fn every_route_and_method_stands_in_the_document_with_what_it_needs() {
        let routes = routes::all();
        let document: Value = serde_json::from_str(&text(&routes, &[])).expect("JSON");
        let paths = document["paths"].as_object().expect("paths");
        let described: BTreeSet<_> = paths
            .iter()
            .flat_map(|(path, methods)| {
                let methods = methods.as_object().expect("methods").keys();
                methods.map(move |method| (path.clone(), method.to_uppercase()))
            })
            .collect();
        assert_eq!(routes.len(), described.len(), "each is told once");
        for RouteAccess { path, method, need, .. } in routes.iter().map(|route| &route.access) {
            // The document knows no parameter that spans slashes.
            let path = path.replace("{*", "{");
            let is_open = paths[&path][method.as_str().to_lowercase()]["security"] == json!([{}]);
            assert_eq!(is_open, *need == Need::Nothing, "{method} {path}");
            assert!(described.contains(&(path, method.to_string())));
        }
    }
}
