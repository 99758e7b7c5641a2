//! A route, told once: its method and path, who answers, what a request needs, and what the API
//! document says of it.
//!
//! A file of routes lists its own with [`routes!`]: the text of a route's comment is its text in
//! the document, and what all routes have in common is added here.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::handler::Handler;
use axum::http::Method;
use axum::http::request::Parts;
use axum::routing::{MethodFilter, MethodRouter, on};
use serde_json::{Value, json};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};
use wharf_domain::Caller;
use wharf_web::answer::{FaultResponse, internal};
use wharf_wire::rest_v1::{ErrorBody, Page};

use crate::access::{Need, RouteAccess};
use crate::app::App;

/// The kind of content of files.
const BYTES: &str = "application/octet-stream";
const PART: &str = "The part's number, 1 to 10000.";

/// The function `routes` of a file, from its routes by tag of the document.
macro_rules! routes {
    ($($tag:literal; $($(#[doc = $line:literal])+ $name:ident => $route:expr;)+)+) => {
        pub(super) fn routes() -> Vec<$crate::routes::table::Route> {
            vec![$($($route.named($tag, stringify!($name), &[$($line),+])),+),+]
        }
    };
}
pub(super) use routes;

/// A request whose sender is known.
pub(super) struct ApiCall {
    pub(super) app: Arc<App>,
    pub(super) caller: Caller,
}

impl FromRequestParts<Arc<App>> for ApiCall {
    type Rejection = FaultResponse;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, FaultResponse> {
        let caller = parts.extensions.get::<Caller>().cloned().ok_or_else(internal)?;
        Ok(Self { app: Arc::clone(app), caller })
    }
}

/// Writes messages of the document, by their names.
type SchemaWriter = fn(&mut Vec<(String, RefOr<Schema>)>);

/// A method of a path and what there is to know of it.
pub(crate) struct Route {
    pub(crate) access: RouteAccess,
    pub(crate) handler: MethodRouter<Arc<App>>,
    /// What the document says, in its own words.
    pub(crate) operation: Value,
    /// What writes the messages that the document names there.
    pub(crate) schemas: Vec<SchemaWriter>,
    parameters: Vec<Value>,
    /// Whether the document has own words for errors that it does not name.
    has_default: bool,
}

macro_rules! methods {
    ($($name:ident $method:ident)+) => {$(
        pub(super) fn $name<T: 'static>(
            path: &'static str,
            need: Need,
            handler: impl Handler<T, Arc<App>>,
        ) -> Route {
            Route::new(Method::$method, path, need, on(MethodFilter::$method, handler))
        }
    )+};
}

methods!(get GET post POST put PUT patch PATCH delete DELETE);

impl Route {
    fn new(
        method: Method,
        path: &'static str,
        need: Need,
        handler: MethodRouter<Arc<App>>,
    ) -> Self {
        let operation = match need {
            Need::Nothing => json!({ "security": [{}] }),
            _ => json!({}),
        };
        let access = RouteAccess { path, method, need, streams: false };
        let (schemas, parameters) = (Vec::new(), Vec::new());
        let route = Self { access, handler, operation, schemas, parameters, has_default: true };
        let segments = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        segments.fold(route, |route, name| {
            let name = name.trim_start_matches('*');
            let said = match name {
                "part" => return route.parameter::<u32>("path", name, PART).required(),
                "path" => "The file's path, with its slashes.".to_owned(),
                "provider" => "The part of the tool's id before the slash.".to_owned(),
                "name" if path.contains("{provider}") => {
                    "The part after the slash, version included.".to_owned()
                }
                "name" => "The secret's name.".to_owned(),
                "server_id" => "The MCP server's id.".to_owned(),
                id => format!("The {}'s id.", id.trim_end_matches("_id")),
            };
            route.parameter::<String>("path", name, &said).required()
        })
    }

    /// Its tag, its id and its text in the document; said last, when all else is known.
    pub(super) fn named(mut self, tag: &str, id: &str, text: &[&str]) -> Self {
        if self.has_default {
            let answers = self.operation["responses"].as_object().into_iter().flatten();
            let has_errors = answers.map(|(status, _)| status.as_str()).any(|it| it >= "400");
            let said = if has_errors { "Any other error." } else { "Any error." };
            self = self.answer::<ErrorBody>("default", said);
        }
        let text: Vec<&str> = text.iter().map(|line| line.trim()).collect();
        let mut paragraphs = text.split(|line| line.is_empty()).map(|lines| lines.join("\n"));
        self.operation["tags"] = json!([tag]);
        self.operation["operationId"] = id.into();
        self.operation["summary"] = paragraphs.next().into();
        if let Some(description) = paragraphs.next() {
            self.operation["description"] = description.into();
        }
        if !self.parameters.is_empty() {
            self.operation["parameters"] = std::mem::take(&mut self.parameters).into();
        }
        self
    }

    /// Its GET opens a stream of events, for which a browser sends no header.
    pub(super) fn streams(mut self) -> Self {
        self.access.streams = true;
        self
    }

    pub(super) fn query<T: PartialSchema>(self, name: &str, description: &str) -> Self {
        self.parameter::<T>("query", name, description)
    }

    pub(super) fn header<T: PartialSchema>(self, name: &str, description: &str) -> Self {
        self.parameter::<T>("header", name, description)
    }

    /// Its path names a run, of a world that a parameter names.
    pub(super) fn of_run(self) -> Self {
        self.query::<String>("world", "The run's world; `default` when absent.")
    }

    /// What every request for a run may say beside its body.
    pub(super) fn starts_a_run(self) -> Self {
        self.query::<String>(
            "wait",
            "How long to wait for the run to end, such as `500ms`, `30s` or `2m`.",
        )
        .header::<String>(
            "traceparent",
            "The trace the run belongs to, in the format of W3C Trace Context.",
        )
        .header::<String>(
            "tracestate",
            "What tracing systems add to the traceparent for each other, up to 512 bytes.",
        )
    }

    /// Only runs that fit.
    pub(super) fn of_runs(self) -> Self {
        self.query::<String>("world", "Only runs of this world.")
            .query::<String>("tool", "Only runs of this tool.")
            .query::<String>(
                "status",
                "Only runs in this status, or in one of several: `failed,refused`.",
            )
            .query::<String>("caller", "Only runs that this token started.")
            .query::<String>("parent", "Only runs that this run started, `world/run_id`.")
            .query::<String>("correlation_id", "Only runs that are part of this.")
            .query::<String>(
                "id_prefix",
                "Only runs whose id begins so; of very many, 1,000 with the greatest ids.",
            )
            .query::<bool>(
                "over_hold",
                "Only runs that have cost more than was set aside for them.",
            )
            .query::<String>(
                "error",
                "Only runs that did not succeed with this code; `tool.*` stands for all that begin \
                 so.",
            )
            .query::<String>(
                "error_text",
                "Only runs whose error's message contains this text, whatever the case of its \
                 letters.",
            )
            .query::<String>(
                "text",
                "Only runs whose world, id, tool, correlation id or error (code and message) \
                 contains this text, whatever the case of its letters. Inputs and outputs are not \
                 searched.",
            )
            .of_time()
    }

    /// Only runs of a time.
    pub(super) fn of_time(self) -> Self {
        let since = "Only runs accepted at or after this time: an RFC 3339 time, or an age such as \
                     `7d` or `24h`.";
        let until = "Only runs accepted before this time, written like `since`.";
        self.query::<String>("since", since).query::<String>("until", until)
    }

    /// The parameter that was told last must be there.
    pub(super) fn required(mut self) -> Self {
        self.parameters.last_mut().into_iter().for_each(|last| last["required"] = true.into());
        self
    }

    /// The parameter that was told last is not what it usually is.
    pub(super) fn described(mut self, as_this: &str) -> Self {
        let last = self.parameters.last_mut().into_iter();
        last.for_each(|last| last["description"] = as_this.into());
        self
    }

    pub(super) fn takes<T: ToSchema>(mut self) -> Self {
        self = self.may_take::<T>();
        self.operation["requestBody"]["required"] = true.into();
        self
    }

    /// Takes a message or nothing.
    pub(super) fn may_take<T: ToSchema>(mut self) -> Self {
        let schema = self.schema::<T>();
        self.operation["requestBody"]["content"]["application/json"]["schema"] = schema;
        self
    }

    pub(super) fn takes_bytes(mut self) -> Self {
        let content = json!({ BYTES: { "schema": { "type": "string", "format": "binary" } } });
        self.operation["requestBody"] = json!({ "required": true, "content": content });
        self
    }

    /// What the body is, where that needs a word.
    pub(super) fn body(mut self, description: &str) -> Self {
        self.operation["requestBody"]["description"] = description.into();
        self
    }

    /// A good answer without a message.
    pub(super) fn says(mut self, status: u16, description: &str) -> Self {
        self.operation["responses"][status.to_string()]["description"] = description.into();
        self
    }

    pub(super) fn gives<T: ToSchema>(self, status: u16, description: &str) -> Self {
        self.answer::<T>(&status.to_string(), description)
    }

    /// A list that is not given in pages.
    pub(super) fn lists<T: ToSchema>(mut self, description: &str) -> Self
    where
        Page<T>: ToSchema,
    {
        self.schema::<T>();
        self.schemas.push(|schemas| {
            Page::<T>::schemas(schemas);
            schemas.push((page_name::<T>(), Page::<T>::schema()));
        });
        self.content("200", description, "application/json", reference(&page_name::<T>()))
    }

    /// A list in pages, with the parameters that all such lists have.
    pub(super) fn page<T: ToSchema>(self, description: &str) -> Self
    where
        Page<T>: ToSchema,
    {
        self.query::<u32>("limit", "Items on a page, 1 to 200.")
            .query::<String>("cursor", "`next_cursor` of the previous page.")
            .lists::<T>(description)
    }

    /// An answer that is no JSON.
    pub(super) fn sends(self, status: u16, kind: &str, description: &str) -> Self {
        let schema = match kind {
            BYTES => json!({ "type": "string", "format": "binary" }),
            _ => json!({ "type": "string" }),
        };
        self.content(&status.to_string(), description, kind, schema)
    }

    /// A stream of events whose data are these messages.
    pub(super) fn sends_events<T: ToSchema>(mut self, description: &str) -> Self {
        let schema = self.schema::<T>();
        self.content("200", description, "text/event-stream", schema)
    }

    /// Other events of the stream that was told last have these messages.
    pub(super) fn or_events<T: ToSchema>(mut self) -> Self {
        let schema = self.schema::<T>();
        let events = &mut self.operation["responses"]["200"]["content"]["text/event-stream"];
        let told = &mut events["schema"];
        // To index for writing would put a null where there is nothing.
        match told.get_mut("anyOf").and_then(Value::as_array_mut) {
            Some(all) => all.push(schema),
            None => *told = json!({ "anyOf": [told.take(), schema] }),
        }
        self
    }

    pub(super) fn fails(self, status: u16, description: &str) -> Self {
        self.answer::<ErrorBody>(&status.to_string(), description)
    }

    /// What it is about may not be there.
    pub(super) fn missing(self, thing: &str) -> Self {
        self.fails(404, &format!("There is no such {thing}."))
    }

    /// The document says of other errors what it says of them everywhere.
    pub(super) fn common_errors(self) -> Self {
        Self { has_default: false, ..self }
    }

    fn parameter<T: PartialSchema>(mut self, place: &str, name: &str, description: &str) -> Self {
        self.parameters.push(json!({ "name": name, "in": place, "required": false,
            "description": description, "schema": T::schema() }));
        self
    }

    fn answer<T: ToSchema>(mut self, status: &str, description: &str) -> Self {
        let schema = self.schema::<T>();
        self.content(status, description, "application/json", schema)
    }

    fn content(mut self, status: &str, description: &str, kind: &str, schema: Value) -> Self {
        let answer = &mut self.operation["responses"][status];
        answer["description"] = description.into();
        answer["content"][kind]["schema"] = schema;
        self
    }

    /// A reference to a message, which the document then has.
    fn schema<T: ToSchema>(&mut self) -> Value {
        self.schemas.push(|schemas| {
            T::schemas(schemas);
            schemas.push((T::name().into_owned(), T::schema()));
        });
        reference(&T::name())
    }
}

fn page_name<T: ToSchema>() -> String {
    format!("Page_{}", T::name())
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}
