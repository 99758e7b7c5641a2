//! Receivers of notifications: making, pausing, showing and removing them, and what they are owed.

use std::collections::HashMap;

use uuid::Uuid;
use wharf_domain::notify::{NotificationEnd, NotificationResult, ReceiverSpec, unknown};
use wharf_domain::{Caller, Entry, Notification, NotificationEntry, Receiver, ReceiverInput};
use wharf_ports::History;
use wharf_vocab::limits::RECEIVERS_MAX;
use wharf_vocab::{
    Code, Fault, NotificationId, ReceiverId, ShardId, StreamId, StreamKind, Timestamp, Verb,
};

use super::ReceiverCalls;
use super::firing::evaluated;
use crate::shard::Input;

/// Notifications that the history of a receiver shows at most.
const HISTORY_MAX: usize = 1_000;

impl ReceiverCalls<'_> {
    /// Makes a receiver. It is told what its maker may know, for as long as they may.
    pub async fn add(
        self,
        caller: &Caller,
        id: ReceiverId,
        spec: ReceiverSpec,
    ) -> Result<Receiver, Fault> {
        self.may_change(caller, spec.world.as_ref())?;
        if self.list().len() >= RECEIVERS_MAX {
            let message = format!("There are {RECEIVERS_MAX} receivers; remove one first.");
            return Err(Fault::new(Code::CoreBusy, message));
        }
        let checked = spec.clone();
        evaluated(move || checked.check_expressions()).await?;
        self.0.change(caller, id, ReceiverInput::Add(Box::new(spec))).await
    }

    /// A receiver that is there.
    pub fn get(self, id: &ReceiverId) -> Result<Receiver, Fault> {
        let known = self.0.inner.records.receivers.get(id);
        known.filter(|receiver| !receiver.removed).ok_or_else(|| unknown(id))
    }

    /// All receivers, by name.
    pub fn list(self) -> Vec<Receiver> {
        let mut receivers = self.0.inner.records.receivers.all();
        receivers.retain(|receiver| !receiver.removed);
        receivers
    }

    /// Tells a receiver nothing until it is resumed; what happens meanwhile is not kept for it.
    pub async fn pause(self, caller: &Caller, id: &ReceiverId) -> Result<Receiver, Fault> {
        self.known_to(caller, id)?;
        self.0.change(caller, id.clone(), ReceiverInput::Pause).await
    }

    /// Tells a receiver again what happens.
    pub async fn resume(self, caller: &Caller, id: &ReceiverId) -> Result<Receiver, Fault> {
        let receiver = self.known_to(caller, id)?;
        self.0.trust().check_current(&Caller::receiver(&receiver))?;
        self.0.change(caller, id.clone(), ReceiverInput::Resume).await
    }

    /// Tells a receiver nothing any more. What it was owed is dropped.
    pub async fn remove(self, caller: &Caller, id: &ReceiverId) -> Result<Receiver, Fault> {
        self.known_to(caller, id)?;
        self.0.change(caller, id.clone(), ReceiverInput::Remove).await
    }

    /// The rights that a receiver was made with have ended: it is told nothing for now.
    pub async fn rights_ended(self, id: &ReceiverId) -> Result<Receiver, Fault> {
        self.0.change(&Caller::core(), id.clone(), ReceiverInput::Pause).await
    }

    /// Owes a receiver a notification that tells nothing; gives its id.
    pub async fn test(self, caller: &Caller, id: &ReceiverId) -> Result<NotificationId, Fault> {
        let receiver = self.known_to(caller, id)?;
        let shard = StreamId::Receiver(id.clone()).shard();
        let test = NotificationId::in_shard(shard, &format!("-{}", Uuid::now_v7().simple()));
        let owed = Notification {
            id: test.clone(),
            receiver: receiver.id,
            event: "test".to_owned(),
            world: None,
            run: None,
            ask: None,
            tool: None,
            status: None,
            code: None,
            title: None,
        };
        let entry = NotificationEntry::Owed(Box::new(owed));
        self.0.tell(shard, Input::Notification { id: test.clone(), entry }).await?;
        Ok(test)
    }

    /// What became of a receiver's notifications, newest first.
    pub async fn history(
        self,
        id: &ReceiverId,
    ) -> Result<Vec<(Timestamp, NotificationResult)>, Fault> {
        let receiver = self.get(id)?;
        let stream = StreamId::Receiver(id.clone());
        let stored = self.0.inner.store.load(stream).await?.ok_or_else(|| unknown(id))?;
        let told = stored.entries.iter().filter_map(|(at, entry)| match entry {
            Entry::Receiver(entry) => match &**entry {
                // Not those of a receiver of the same name that was removed.
                wharf_domain::ReceiverEntry::Told(told) if *at >= receiver.made_at => {
                    Some((*at, told.clone()))
                }
                _ => None,
            },
            _ => None,
        });
        let mut told: Vec<_> = told.collect();
        told.reverse();
        told.truncate(HISTORY_MAX);
        Ok(told)
    }

    /// Waits until something may be owed.
    pub async fn owes(self) {
        self.0.inner.records.outbox.rung().await;
    }

    /// All that is owed, each with when it happened.
    pub async fn owed(self) -> Result<Vec<(Timestamp, Notification)>, Fault> {
        let all = ShardId::all().collect();
        let stored = self.0.inner.store.load_open(StreamKind::Notification, all).await?;
        let read = |(_, stored): (StreamId, History)| {
            let at = stored.entries.first()?.0;
            let entries = stored.entries.iter().filter_map(|(_, entry)| match entry {
                Entry::Notification(entry) => Some(entry),
                _ => None,
            });
            Some((at, Notification::replay(entries)?))
        };
        let owed: Vec<_> = stored.into_iter().filter_map(read).collect();
        let mut counts: HashMap<ReceiverId, usize> = HashMap::new();
        for (_, it) in &owed {
            *counts.entry(it.receiver.clone()).or_default() += 1;
        }
        self.0.inner.records.outbox.count(counts);
        Ok(owed)
    }

    /// A notification is owed no more, and its receiver's history says what became of it.
    pub async fn settle(
        self,
        it: &Notification,
        told: Option<NotificationResult>,
    ) -> Result<(), Fault> {
        if let Some(told) = told {
            let input = ReceiverInput::Told(told);
            let core = Caller::core();
            match self.0.change::<Receiver>(&core, it.receiver.clone(), input).await {
                Err(fault) if !fault.is(Code::ReceiverNotFound) => return Err(fault),
                _ => {}
            }
        }
        let entry = NotificationEntry::Over(NotificationEnd {});
        self.0.tell(it.id.shard(), Input::Notification { id: it.id.clone(), entry }).await
    }

    fn known_to(self, caller: &Caller, id: &ReceiverId) -> Result<Receiver, Fault> {
        let receiver = self.get(id)?;
        self.may_change(caller, receiver.spec.world.as_ref())?;
        Ok(receiver)
    }

    /// Whether a caller may send out what happens in a world, or in all of them.
    fn may_change(
        self,
        caller: &Caller,
        world: Option<&wharf_vocab::WorldId>,
    ) -> Result<(), Fault> {
        let may = || {
            self.0.trust().check_current(caller)?;
            match world {
                Some(world) => caller.rights.check(Verb::Admin, world),
                None => {
                    caller.rights.check_verb(Verb::Admin)?;
                    if caller.rights.worlds.is_none() {
                        return Ok(());
                    }
                    let message = "This concerns all worlds, and this token is only for some.";
                    Err(Fault::new(Code::PermissionDenied, message).with("world", "*"))
                }
            }
        };
        self.0.audited(caller, wharf_domain::Subject::CORE, may())
    }
}
