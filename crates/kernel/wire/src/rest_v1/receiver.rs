//! Receivers of notifications.

use serde::{Deserialize, Serialize};
use serde_with_macros::skip_serializing_none;
use utoipa::ToSchema;
use wharf_vocab::{
    DateTime, GrantId, NotificationId, NotificationState, NotifyFormat, NotifyInclude, NotifyOn,
    ReceiverId, ReceiverState, RunStatus, SecretName, WorldId,
};

/// `POST /v1/receivers`.
#[skip_serializing_none]
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateReceiver {
    /// The receiver's name.
    pub name: ReceiverId,
    /// Where notifications are posted to. It is kept as a secret and never shown again.
    pub url: String,
    /// What it is told of.
    pub on: Vec<NotifyOn>,
    /// Only what happens in this world; everything the token may know when absent.
    pub world: Option<WorldId>,
    /// Only runs that ended in one of these statuses.
    pub statuses: Option<Vec<RunStatus>>,
    /// Only if this expression holds over `event`, `world`, `run_id`, `ask_id`, `tool`, `status`,
    /// `code`, `title`, and `inputs` and `outputs` where they are included.
    pub when: Option<String>,
    /// Values of the run that go with a notification, scrubbed, as far as they are kept; JSON only.
    pub include: Option<Vec<NotifyInclude>>,
    /// How notifications are written; `json` when absent.
    pub format: Option<NotifyFormat>,
    /// Whether the address may lie on this machine or in a private network.
    pub allow_private: Option<bool>,
}

/// Shows everything but the address.
impl std::fmt::Debug for CreateReceiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CreateReceiver").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A receiver of notifications.
#[skip_serializing_none]
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Receiver {
    /// Its name.
    pub name: ReceiverId,
    /// Where it stands.
    pub state: ReceiverState,
    /// What it is told of.
    pub on: Vec<NotifyOn>,
    /// Only what happens in this world.
    pub world: Option<WorldId>,
    /// Only runs that ended in one of these statuses.
    pub statuses: Vec<RunStatus>,
    /// Only if this expression holds.
    pub when: Option<String>,
    /// Values of the run that go with a notification.
    pub include: Vec<NotifyInclude>,
    /// How notifications are written.
    pub format: NotifyFormat,
    /// Whether its address may lie on this machine or in a private network.
    pub allow_private: bool,
    /// The name of the secret that holds its address.
    pub url_secret: SecretName,
    /// The name of the secret that signs what it is sent.
    pub key_secret: SecretName,
    /// The key that it checks signatures with; only in the response that creates it.
    pub signing_key: Option<String>,
    /// How many notifications it took.
    pub sent: u64,
    /// How many were given up.
    pub parked: u64,
    /// What became of the last one.
    pub last: Option<Delivery>,
    /// When it was created.
    pub created_at: DateTime,
    /// The token it was created with.
    pub created_by: GrantId,
}

/// Shows everything but the key.
impl std::fmt::Debug for Receiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Receiver").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What became of a notification.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Delivery {
    /// Its id, which the receiver was told as `webhook-id`.
    pub notification_id: NotificationId,
    /// What it told, such as `ask.raised`.
    pub event: String,
    /// The ask, run or provider that it was about.
    pub about: String,
    /// When that happened.
    pub happened_at: DateTime,
    /// When it was taken or given up.
    pub ended_at: DateTime,
    /// What became of it.
    pub state: NotificationState,
    /// How often it was tried since the core started.
    pub tries: u32,
    /// The last HTTP status the receiver answered with.
    pub status: Option<u16>,
    /// Why it was not taken.
    pub why: Option<String>,
}

/// A test notification that is on its way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TestNotification {
    /// Its id.
    pub notification_id: NotificationId,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f036_an_address_and_a_key_are_not_shown_by_accident() {
        let line = r#"{"name":"desk","url":"https://hooks.example/c4nary","on":["ask"]}"#;
        let request: CreateReceiver = serde_json::from_str(line).expect("readable");
        assert!(!format!("{request:?}").contains("c4nary"));
    }
}
