//! Receivers of notifications: how they are shown.

use wharf_domain::Receiver;
use wharf_domain::notify::NotificationResult;
use wharf_vocab::{DateTime, Timestamp};
use wharf_wire::rest_v1 as wire;

/// A receiver as it stands; never its address.
#[must_use]
pub fn receiver(receiver: &Receiver) -> wire::Receiver {
    let spec = &receiver.spec;
    wire::Receiver {
        name: receiver.id.clone(),
        state: receiver.state(),
        on: spec.on.iter().copied().collect(),
        world: spec.world.clone(),
        statuses: spec.statuses.iter().copied().collect(),
        when: spec.when.clone(),
        include: spec.include.iter().copied().collect(),
        format: spec.format,
        allow_private: spec.allow_private,
        url_secret: spec.url.clone(),
        key_secret: spec.key.clone(),
        signing_key: None,
        sent: receiver.sent,
        parked: receiver.parked,
        last: receiver.last.as_ref().map(|(at, told)| delivery(*at, told)),
        created_at: DateTime(receiver.made_at),
        created_by: receiver.by.grant.clone(),
    }
}

/// What became of a notification.
#[must_use]
pub fn delivery(at: Timestamp, told: &NotificationResult) -> wire::Delivery {
    wire::Delivery {
        notification_id: told.id.clone(),
        event: told.event.clone(),
        about: told.about.clone(),
        happened_at: DateTime(told.happened_at),
        ended_at: DateTime(at),
        state: told.state,
        tries: told.tries,
        status: told.status,
        why: told.why.clone(),
    }
}
