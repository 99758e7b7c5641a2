//! Receivers of notifications.

use async_graphql::{InputObject, SimpleObject};
use serde::Serialize;
use serde_with_macros::skip_serializing_none;
use wharf_vocab::Fault;
use wharf_wire::rest_v1::CreateReceiver;

use super::view::view;
use crate::error::in_camel_case;
use crate::input::message;
use crate::scalars::{DateTime, Int64};

view! {
    /// A receiver of notifications: who outside is told of what.
    Receiver of Receiver {
        /// Its name.
        name: String,
        /// Where it stands: `active` or `paused`.
        state: String,
        /// What it is told of: `ask`, `run`, `agent`, `budget`, `schedule`.
        on: Vec<String>,
        /// Only what happens in this world.
        world: Option<String>,
        /// Only runs that ended in one of these statuses.
        statuses: Vec<String>,
        /// Only if this expression holds.
        when: Option<String>,
        /// Values of the run that go with a notification: `inputs`, `outputs`.
        include: Vec<String>,
        /// How notifications are written: `json` or `slack`.
        format: String,
        /// Whether its address may lie on this machine or in a private network.
        allow_private: bool,
        /// The name of the secret that holds its address.
        url_secret: String,
        /// The name of the secret that signs what it is sent.
        key_secret: String,
        /// How many notifications it took.
        sent: Int64,
        /// How many were given up.
        parked: Int64,
        /// What became of the last one.
        last: Option<Delivery>,
        /// When it was created.
        created_at: DateTime,
        /// The token it was created with.
        created_by: String,
    } without { signing_key }
}

view! {
    /// What became of a notification.
    Delivery of Delivery {
        /// Its id, which the receiver was told as `webhook-id`.
        notification_id: String,
        /// What it told, such as `ask.raised`.
        event: String,
        /// The ask, run or provider that it was about.
        about: String,
        /// When that happened.
        happened_at: DateTime,
        /// When it was taken or given up.
        ended_at: DateTime,
        /// What became of it: `sent` or `parked`.
        state: String,
        /// How often it was tried since the core started.
        tries: u32,
        /// The last HTTP status the receiver answered with.
        status: Option<u32>,
        /// Why it was not taken.
        why: Option<String>,
    }
}

/// A request for a receiver.
#[skip_serializing_none]
#[derive(Debug, InputObject, Serialize)]
pub(crate) struct CreateReceiverInput {
    /// The receiver's name.
    name: String,
    /// Where notifications are posted to. It is kept as a secret and never shown again.
    #[graphql(secret)]
    url: String,
    /// What it is told of: `ask`, `run`, `agent`, `budget`, `schedule`.
    on: Vec<String>,
    /// Only what happens in this world; everything the token may know when absent.
    world: Option<String>,
    /// Only runs that ended in one of these statuses.
    statuses: Option<Vec<String>>,
    /// Only if this expression holds over `event`, `world`, `run_id`, `ask_id`, `tool`, `status`,
    /// `code`, `title`, and `inputs` and `outputs` where they are included.
    when: Option<String>,
    /// Values of the run that go with a notification, scrubbed: `inputs`, `outputs`.
    include: Option<Vec<String>>,
    /// How notifications are written: `slack`, or `json`, which is meant when absent.
    format: Option<String>,
    /// Whether the address may lie on this machine or in a private network.
    allow_private: Option<bool>,
}

impl CreateReceiverInput {
    /// The request as REST has it.
    pub(crate) fn read(&self) -> Result<CreateReceiver, Fault> {
        message(self).map_err(in_camel_case)
    }
}

/// A receiver that was made.
#[derive(Debug, SimpleObject)]
pub(crate) struct CreatedReceiver {
    /// The receiver.
    pub(crate) receiver: Receiver,
    /// The key that it checks signatures with. It is not shown again.
    pub(crate) signing_key: String,
}
