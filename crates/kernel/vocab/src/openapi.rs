//! The words as they stand in an OpenAPI document, so that messages made of them have the right
//! schemas without saying so field by field.

use utoipa::openapi::{ObjectBuilder, RefOr, Schema, SchemaFormat, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::{
    AskId, DateTime, FlowId, GrantId, LaunchId, NotificationId, ProviderId, ReceiverId, RunId,
    ScheduleId, SeatId, SecretName, ToolId, TriggerId, WorldId,
};

/// Most ids.
const ID: &str = "^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$";
const FLOW: &str = "^[a-z0-9_-]{1,64}$";
const ASK: &str = "^[0-9A-Fa-f]{2}[A-Za-z0-9._-]{0,126}$";
const PROVIDER: &str =
    "^([A-Za-z0-9][A-Za-z0-9._-]{0,127}|[a-z0-9_-]{1,128}/[a-z0-9_-]{1,128}@[0-9]{1,9})$";
const TOOL: &str = "^([A-Za-z0-9][A-Za-z0-9._-]{0,127}/[A-Za-z0-9][A-Za-z0-9._-]{0,127}|\
                    [a-z0-9_-]{1,128}/[a-z0-9_-]{1,128}@[0-9]{1,9})$";

/// Text that is one of these words.
pub(crate) fn one_of<const N: usize>(words: [&str; N]) -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).into()
}

macro_rules! ids {
    ($($name:ident, $pattern:expr, $description:literal;)+) => {$(
        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let text = ObjectBuilder::new().schema_type(Type::String);
                text.pattern(Some($pattern)).description(Some($description)).into()
            }
        }

        impl ToSchema for $name {}
    )+};
}

ids! {
    RunId, ID, "The id of a run, unique within its world.";
    WorldId, ID, "The id of a world.";
    AskId, ASK, "The id of an ask.";
    ToolId, TOOL, "The id of a tool: `provider/name`, or `namespace/name@version` for a tool with a server of its own.";
    ProviderId, PROVIDER, "The id of a provider of tools: an agent, an operative or a tool server.";
    LaunchId, ID, "The id of one start of a provider's process.";
    SeatId, ID, "The id of an operator's seat.";
    ScheduleId, ID, "The name of a schedule.";
    TriggerId, ID, "The name of a trigger.";
    ReceiverId, ID, "The name of a receiver of notifications.";
    NotificationId, ASK, "The id of a notification.";
    GrantId, ID, "The id of a token; never the token itself.";
    FlowId, FLOW, "The name of a flow.";
    SecretName, ID, "The name of a secret; never the secret itself.";
}

impl PartialSchema for DateTime {
    fn schema() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(utoipa::openapi::KnownFormat::DateTime);
        let text = ObjectBuilder::new().schema_type(Type::String).format(Some(format));
        text.description(Some("An RFC 3339 time. The core writes UTC with milliseconds.")).into()
    }
}

impl ToSchema for DateTime {}
