//! What goes over HTTP: seats, tasks, and what a worker fetches and posts.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};
use serde_with_macros::skip_serializing_none;
use utoipa::ToSchema;
use wharf_vocab::Object;

/// `POST /v1/operators`
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NewSeat {
    /// What the seat is for.
    pub desc: Option<String>,
    /// Roles it takes.
    pub roles: Option<Vec<String>>,
    /// Whether no other living seat may hold one of the roles.
    pub exclusive_roles: Option<bool>,
    /// What it can do: tools it executes by name, with schemas.
    pub capability_manifest: Option<Value>,
    /// Whether a person sits there, who decides what is left to people and about runs of whoever
    /// made the seat. Only a person's own token makes such a seat.
    pub person: Option<bool>,
}

/// The answer to [`NewSeat`]; the token is shown this once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SeatMade {
    /// The seat.
    pub sid: String,
    /// What opens its socket.
    pub token: String,
    /// Its roles, when some were given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roles: Option<Vec<String>>,
}

/// A seat as others see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Seat {
    /// The seat.
    pub sid: String,
    /// What it is for.
    pub desc: String,
    /// Its roles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// Whether somebody sits there now.
    pub connected: bool,
    /// When somebody last did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen: Option<String>,
    /// Requests that wait for an answer.
    pub pending: Vec<String>,
    /// Whether a person sits there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub person: bool,
    /// What waits for the seat, oldest first; only where one seat is shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<SeatWait>,
}

/// Something that waits for a seat.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SeatWait {
    /// The request.
    pub req_id: String,
    /// What it is: `question`, `approval` or `task`.
    pub kind: String,
    /// The ask, if it is one.
    pub ask_id: Option<String>,
    /// The run it is about.
    pub run_id: String,
    /// The run's world.
    pub world: String,
    /// The run's tool.
    pub tool: String,
    /// What is asked, in one line.
    pub title: Option<String>,
    /// Whether the operator has taken it, so that only its worker is waited for.
    pub taken: bool,
}

/// `POST /v1/tasks`
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NewTask {
    /// What is to be executed.
    pub agent: Option<String>,
    /// Another name for the same.
    #[schema(value_type = Option<Value>)]
    pub blueprint: Option<Blueprint>,
    /// What it is given: text, or an object.
    pub input: Option<Value>,
    /// Another name for the same.
    pub init_ctx: Option<Value>,
    /// The seat that executes it.
    pub operator_sid: Option<String>,
    /// Seats that gate it and that are asked when it fails.
    pub operator: Option<TaskHooks>,
    /// How long its credentials are good, in seconds.
    pub ttl_secs: Option<u64>,
    /// How long an attempt may take, in seconds.
    pub timeout_secs: Option<u64>,
    /// Whether to answer before the end.
    pub detach: Option<bool>,
    /// An addition: the world.
    pub world: Option<String>,
    /// An addition: the caller's own id for the run.
    pub run_id: Option<String>,
    /// An addition: `journal` or `memory`.
    pub durability: Option<String>,
}

/// What is to be executed, as older peers name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blueprint {
    /// By its name alone.
    Name(String),
    /// `{"kind": "id", "id": …}`.
    Id(String),
    /// Anything else; a core that has no such thing says so.
    Other(Value),
}

impl Blueprint {
    /// The name, if it is one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Name(name) | Self::Id(name) => Some(name),
            Self::Other(_) => None,
        }
    }
}

impl<'de> Deserialize<'de> for Blueprint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let id = || match (value.get("kind")?.as_str()?, value.get("id")?.as_str()?) {
            ("id", id) => Some(id.to_owned()),
            _ => None,
        };
        Ok(match (&value, id()) {
            (Value::String(name), _) => Self::Name(name.clone()),
            (_, Some(id)) => Self::Id(id),
            _ => Self::Other(value),
        })
    }
}

impl Serialize for Blueprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Name(name) => serializer.serialize_str(name),
            Self::Id(id) => json!({ "kind": "id", "id": id }).serialize(serializer),
            Self::Other(value) => value.serialize(serializer),
        }
    }
}

/// Seats that have a say in a task.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskHooks {
    /// The seat that lets it pass.
    pub spawn_hook_id: Option<String>,
    /// The seat that is asked when a worker fails.
    pub senior_bridge_id: Option<String>,
    /// An addition: how long the first is waited for before others are asked, in milliseconds.
    pub deadline_ms: Option<u64>,
}

/// The answer to a task that goes on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TaskStarted {
    /// The task as it was launched.
    pub task_id: String,
    /// The run.
    pub run_id: String,
    /// How it stands.
    pub status: String,
    /// The outputs of one that succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub result: Option<Object>,
}

/// `GET /v1/worker/prompt`
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WorkerPrompt {
    /// The attempt's task.
    pub task_id: String,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// What is executed.
    pub agent: String,
    /// What the worker is, when the request says so.
    pub system: Option<String>,
    /// What it is to do.
    pub prompt: String,
    /// What else it may know.
    pub context: Option<Value>,
    /// All inputs.
    #[schema(value_type = Option<Object>)]
    pub inputs: Option<Object>,
    /// Where outputs go.
    #[schema(value_type = Option<Object>)]
    pub outputs: Option<Object>,
}

/// `POST /v1/worker/result`
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WorkerResult {
    /// The attempt's task.
    pub task_id: String,
    /// The result.
    pub value: Value,
    /// Whether it went well.
    #[serde(default = "yes")]
    pub ok: bool,
    /// Which attempt it is of.
    pub attempt: Option<u32>,
    /// An addition: what the attempt has cost in all, in micro-dollars.
    pub cost_micro: Option<u64>,
}

/// `POST /v1/worker/progress`
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WorkerProgress {
    /// Text for whoever watches.
    pub text: Option<String>,
    /// The channel of the text.
    pub channel: Option<String>,
    /// What it does now.
    pub phase: Option<String>,
    /// How much of it is done, from 0 to 1.
    pub fraction: Option<f64>,
    /// What the attempt has cost so far, in micro-dollars.
    pub cost_micro: Option<u64>,
}

/// `POST /v1/worker/degradation`: something did not work as the worker wanted, and it helped
/// itself in another way.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkerDegradation {
    /// What it wanted to use.
    pub tool: String,
    /// What went wrong.
    pub error: String,
    /// What it did instead.
    pub fallback: String,
    /// What else it wants to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// `GET /v1/operators`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SeatList {
    /// The seats.
    pub items: Vec<Seat>,
    /// Where the next page begins; all seats are on one.
    pub next_cursor: Option<String>,
    /// The seats again, under the name that older peers know.
    pub operators: Vec<Seat>,
    /// How many there are.
    pub total: usize,
}

fn yes() -> bool {
    true
}
