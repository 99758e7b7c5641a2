//! What starts runs by itself and tells of them: flows, schedules, triggers and receivers.

use wharf_wire::rest_v1::{
    AddFlow, CheckFlow, CreateReceiver, CreateSchedule, CreateTrigger, Delivery, Firing, Flow,
    FlowCheck, Receiver, Schedule, TestNotification, TestTrigger, TestedTrigger, Trigger,
    TriggerFiring,
};

use crate::call::{Call, List};
use crate::client::Client;

/// Flows, as [`Client::flows`] gives them.
#[derive(Debug, Clone, Copy)]
pub struct Flows<'a>(pub(super) &'a Client);

impl Flows<'_> {
    /// All flows, each with its newest version.
    pub fn list(&self) -> List<Flow> {
        List::new(self.0, &["v1", "flows"])
    }

    /// A flow with its document: a version of it, or the newest one.
    pub fn get(&self, name: &str, version: Option<u32>) -> Call<Flow> {
        match version {
            None => self.0.read_at(&["v1", "flows", name]),
            Some(number) => self.0.read_at(&["v1", "flows", name, "versions", &number.to_string()]),
        }
    }

    /// Adds a version of a flow.
    pub fn add(&self, flow: &AddFlow) -> Call<Flow> {
        self.0.post_to(&["v1", "flows"]).body(flow)
    }

    /// Checks a document.
    pub fn check(&self, document: &CheckFlow) -> Call<FlowCheck> {
        self.0.post_to(&["v1", "flows", "check"]).body(document)
    }

    /// Removes a version of a flow.
    pub fn remove(&self, name: &str, version: u32) -> Call<()> {
        self.0.delete_at(&["v1", "flows", name, "versions", &version.to_string()])
    }
}

/// Schedules, as [`Client::schedules`] gives them.
#[derive(Debug, Clone, Copy)]
pub struct Schedules<'a>(pub(super) &'a Client);

impl Schedules<'_> {
    /// The schedules of a world that this token may see, or of all, by name.
    pub fn list(&self, world: Option<&str>) -> List<Schedule> {
        List::new(self.0, &["v1", "schedules"]).query("world", world)
    }

    /// One schedule.
    pub fn get(&self, name: &str) -> Call<Schedule> {
        self.0.read_at(&["v1", "schedules", name])
    }

    /// Creates a schedule.
    pub fn create(&self, schedule: &CreateSchedule) -> Call<Schedule> {
        self.0.post_to(&["v1", "schedules"]).body(schedule)
    }

    /// Lets a schedule start nothing until it is resumed.
    pub fn pause(&self, name: &str) -> Call<Schedule> {
        self.0.post_to(&["v1", "schedules", name, "pause"])
    }

    /// Lets a schedule go on.
    pub fn resume(&self, name: &str) -> Call<Schedule> {
        self.0.post_to(&["v1", "schedules", name, "resume"])
    }

    /// Starts a run of a schedule now.
    pub fn trigger(&self, name: &str) -> Call<Schedule> {
        self.0.post_to(&["v1", "schedules", name, "trigger"])
    }

    /// Removes a schedule; its runs stay.
    pub fn remove(&self, name: &str) -> Call<()> {
        self.0.delete_at(&["v1", "schedules", name])
    }

    /// What became of a schedule's times, newest first.
    pub fn history(&self, name: &str) -> List<Firing> {
        List::new(self.0, &["v1", "schedules", name, "history"])
    }
}

/// Triggers, as [`Client::triggers`] gives them.
#[derive(Debug, Clone, Copy)]
pub struct Triggers<'a>(pub(super) &'a Client);

impl Triggers<'_> {
    /// The triggers of a world that this token may see, or of all, by name.
    pub fn list(&self, world: Option<&str>) -> List<Trigger> {
        List::new(self.0, &["v1", "triggers"]).query("world", world)
    }

    /// One trigger.
    pub fn get(&self, name: &str) -> Call<Trigger> {
        self.0.read_at(&["v1", "triggers", name])
    }

    /// Creates a trigger; the answer alone shows a secret that the core made.
    pub fn create(&self, trigger: &CreateTrigger) -> Call<Trigger> {
        self.0.post_to(&["v1", "triggers"]).body(trigger)
    }

    /// Refuses calls of a trigger's hook until it is resumed.
    pub fn pause(&self, name: &str) -> Call<Trigger> {
        self.0.post_to(&["v1", "triggers", name, "pause"])
    }

    /// Lets a trigger go on.
    pub fn resume(&self, name: &str) -> Call<Trigger> {
        self.0.post_to(&["v1", "triggers", name, "resume"])
    }

    /// Calls a trigger's hook without a proof, or says what the inputs of its run would be.
    pub fn test(&self, name: &str, call: &TestTrigger) -> Call<TestedTrigger> {
        self.0.post_to(&["v1", "triggers", name, "test"]).body(call)
    }

    /// What came of what was to start a trigger's runs, newest first.
    pub fn history(&self, name: &str) -> List<TriggerFiring> {
        List::new(self.0, &["v1", "triggers", name, "history"])
    }

    /// Removes a trigger and its secret; its runs stay.
    pub fn remove(&self, name: &str) -> Call<()> {
        self.0.delete_at(&["v1", "triggers", name])
    }
}

/// Receivers of notifications, as [`Client::receivers`] gives them.
#[derive(Debug, Clone, Copy)]
pub struct Receivers<'a>(pub(super) &'a Client);

impl Receivers<'_> {
    /// All receivers this token reaches, by name.
    pub fn list(&self) -> List<Receiver> {
        List::new(self.0, &["v1", "receivers"])
    }

    /// One receiver.
    pub fn get(&self, name: &str) -> Call<Receiver> {
        self.0.read_at(&["v1", "receivers", name])
    }

    /// Adds a receiver; the answer alone shows the key that it checks signatures with.
    pub fn create(&self, receiver: &CreateReceiver) -> Call<Receiver> {
        self.0.post_to(&["v1", "receivers"]).body(receiver)
    }

    /// Tells a receiver nothing until it is resumed.
    pub fn pause(&self, name: &str) -> Call<Receiver> {
        self.0.post_to(&["v1", "receivers", name, "pause"])
    }

    /// Tells a receiver again what happens.
    pub fn resume(&self, name: &str) -> Call<Receiver> {
        self.0.post_to(&["v1", "receivers", name, "resume"])
    }

    /// Sends a receiver a notification that tells nothing.
    pub fn test(&self, name: &str) -> Call<TestNotification> {
        self.0.post_to(&["v1", "receivers", name, "test"])
    }

    /// Removes a receiver, its address and its key.
    pub fn remove(&self, name: &str) -> Call<()> {
        self.0.delete_at(&["v1", "receivers", name])
    }

    /// What became of a receiver's notifications, newest first.
    pub fn history(&self, name: &str) -> List<Delivery> {
        List::new(self.0, &["v1", "receivers", name, "history"])
    }
}
