//! Triggers: making, pausing, showing and removing them, and starting what a call asks for.

use uuid::Uuid;
use wharf_domain::schedule::{PauseCause, SettledHow};
use wharf_domain::trace::TraceHeaders;
use wharf_domain::trigger::{HookCall, TriggerFired, TriggerSpec, unknown};
use wharf_domain::{Caller, Entry, Trigger, TriggerEntry, TriggerInput};
use wharf_vocab::{Code, Durability, Fault, Object, RunKey, StreamId, Timestamp, TriggerId, Verb};

use super::TriggerCalls;
use super::firing::{evaluated, is_nobodys};
use super::names::NameKind;
use super::request::NewRun;

/// Firings that the history of a trigger shows at most.
const HISTORY_MAX: usize = 1_000;

/// What a trigger asks for with one run.
pub(super) struct NewFiring {
    /// The run's inputs.
    pub(super) inputs: Object,
    /// How many triggers stand behind it.
    pub(super) depth: u32,
    /// The trace that it is a part of.
    pub(super) trace: TraceHeaders,
}

/// What came of a call of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallResult {
    /// It started a run.
    Started,
    /// The same delivery had started one.
    Repeated,
    /// Its run was refused.
    Refused,
    /// The trigger is paused.
    Paused,
    /// It did not prove that it may.
    Unproved,
}

impl CallResult {
    /// Counts it.
    pub fn count(self) {
        let result = match self {
            Self::Started => "started",
            Self::Repeated => "repeated",
            Self::Refused => "refused",
            Self::Paused => "paused",
            Self::Unproved => "unproved",
        };
        metrics::counter!("wharf_trigger_calls_total", "result" => result).increment(1);
    }
}

impl TriggerCalls<'_> {
    /// Makes a trigger. Its runs act with a part of what its maker may do, and no longer than that.
    pub async fn add(
        self,
        caller: &Caller,
        id: TriggerId,
        spec: TriggerSpec,
    ) -> Result<Trigger, Fault> {
        self.0.trust().authorise(caller, Verb::Run, &spec.world)?;
        caller.rights.check_tool(&spec.tool)?;
        self.0.worlds().get(&spec.world).await?;
        self.0.providers().tool(&spec.tool)?;
        let checked = spec.clone();
        evaluated(move || checked.check_expressions()).await?;
        let whose = |trigger: &Trigger| (!trigger.removed).then(|| trigger.by.share());
        let shares = self.0.inner.records.triggers.find(whose).into_iter();
        let _place = self.0.inner.names.take(NameKind::Triggers, caller, shares)?;
        let input = TriggerInput::Add { spec: Box::new(spec), account: caller.account.clone() };
        self.0.change(caller, id, input).await
    }

    /// A trigger that is there.
    pub fn get(self, id: &TriggerId) -> Result<Trigger, Fault> {
        let known = self.0.inner.records.triggers.get(id);
        known.filter(|trigger| !trigger.removed).ok_or_else(|| unknown(id))
    }

    /// All triggers, by name.
    pub fn list(self) -> Vec<Trigger> {
        let mut triggers = self.0.inner.records.triggers.all();
        triggers.retain(|trigger| !trigger.removed);
        triggers
    }

    /// The trigger with this hook.
    pub fn of_hook(self, hook: &str) -> Option<Trigger> {
        let fits = |it: &Trigger| {
            (!it.removed && it.spec.hook().is_some_and(|it| it.id == hook)).then(|| it.id.clone())
        };
        let id = self.0.inner.records.triggers.find(fits).into_iter().next()?;
        self.get(&id).ok()
    }

    /// Lets a trigger start nothing until it is resumed.
    pub async fn pause(self, caller: &Caller, id: &TriggerId) -> Result<Trigger, Fault> {
        self.may_change(caller, id)?;
        self.0.change(caller, id.clone(), TriggerInput::Pause(PauseCause::Asked)).await
    }

    /// Lets a trigger go on.
    pub async fn resume(self, caller: &Caller, id: &TriggerId) -> Result<Trigger, Fault> {
        let trigger = self.may_change(caller, id)?;
        self.0.trust().check_current(&Caller::trigger(&trigger))?;
        self.0.change(caller, id.clone(), TriggerInput::Resume).await
    }

    /// Removes a trigger. Its runs stay.
    pub async fn remove(self, caller: &Caller, id: &TriggerId) -> Result<Trigger, Fault> {
        self.may_change(caller, id)?;
        self.0.change(caller, id.clone(), TriggerInput::Remove).await
    }

    /// What came of what was to start a trigger's runs, newest first.
    pub async fn history(self, id: &TriggerId) -> Result<Vec<(Timestamp, TriggerFired)>, Fault> {
        let trigger = self.get(id)?;
        let stream = StreamId::Trigger(id.clone());
        let stored = self.0.inner.store.load(stream).await?.ok_or_else(|| unknown(id))?;
        let fired = stored.entries.iter().filter_map(|(at, entry)| match entry {
            // Not those of a trigger of the same name that was removed.
            Entry::Trigger(TriggerEntry::Fired(fired)) if *at >= trigger.made_at => {
                Some((*at, fired.clone()))
            }
            _ => None,
        });
        let mut fired: Vec<_> = fired.collect();
        fired.reverse();
        fired.truncate(HISTORY_MAX);
        Ok(fired)
    }

    /// The inputs that a call of this trigger's hook would give its run.
    pub async fn inputs(self, trigger: &Trigger, call: HookCall) -> Result<Object, Fault> {
        let spec = trigger.spec.clone();
        evaluated(move || spec.inputs_of_call(&call)).await
    }

    /// Starts a run as a call of the hook would, asked for by somebody who may.
    pub async fn test(
        self,
        caller: &Caller,
        id: &TriggerId,
        call: HookCall,
    ) -> Result<RunKey, Fault> {
        let trigger = self.may_change(caller, id)?;
        self.start(&trigger, &format!("test-{}", Uuid::now_v7()), call).await
    }

    /// Starts the run of a delivery, as a part of the trace that it came with, or says which it
    /// started. It is committed when this answers.
    pub async fn start(
        self,
        trigger: &Trigger,
        delivery: &str,
        call: HookCall,
    ) -> Result<RunKey, Fault> {
        let (result, started) = match self.try_start(trigger, delivery, call).await {
            Ok((key, true)) => (CallResult::Started, Ok(key)),
            Ok((key, false)) => (CallResult::Repeated, Ok(key)),
            Err(fault) if fault.is(Code::TriggerPaused) => (CallResult::Paused, Err(fault)),
            Err(fault) => (CallResult::Refused, Err(fault)),
        };
        result.count();
        started
    }

    /// Starts the run of a delivery; says whether it is a new one.
    async fn try_start(
        self,
        trigger: &Trigger,
        delivery: &str,
        call: HookCall,
    ) -> Result<(RunKey, bool), Fault> {
        self.may_start(trigger).await?;
        let run = trigger.run_id(delivery);
        let key = RunKey { world: trigger.spec.world.clone(), run };
        if self.0.runs().get(&key).await.is_ok() {
            // Whatever it says now: what came first counts.
            return Ok((key, false));
        }
        let trace = call.trace.clone();
        let started = match self.inputs(trigger, call).await {
            Ok(inputs) => self.create(trigger, &key, NewFiring { inputs, depth: 1, trace }).await,
            Err(fault) => Err(fault),
        };
        match started {
            Ok(false) => Ok((key, false)),
            Ok(true) => {
                self.fired(trigger, delivery, SettledHow::Started(key.run.clone())).await;
                Ok((key, true))
            }
            Err(fault) if is_nobodys(&fault) => Err(fault),
            Err(fault) => {
                let told = Fault { details: Object::new(), ..fault.clone() };
                self.fired(trigger, delivery, SettledHow::Refused(told)).await;
                Err(fault)
            }
        }
    }

    /// Whether a trigger may start anything now; one whose rights have ended is paused.
    pub(super) async fn may_start(self, trigger: &Trigger) -> Result<(), Fault> {
        if trigger.paused.is_some() {
            let message = "This trigger is paused; it starts nothing for now.";
            return Err(Fault::new(Code::TriggerPaused, message));
        }
        if self.0.trust().check_current(&Caller::trigger(trigger)).is_ok() {
            return Ok(());
        }
        self.pause_by_itself(&trigger.id, PauseCause::RightsEnded).await?;
        let message = "The rights of this trigger have ended; it is paused.";
        Err(Fault::new(Code::TriggerPaused, message))
    }

    /// The core pauses a trigger.
    pub(super) async fn pause_by_itself(
        self,
        id: &TriggerId,
        cause: PauseCause,
    ) -> Result<(), Fault> {
        let pause = TriggerInput::Pause(cause);
        match self.0.change::<Trigger>(&Caller::core(), id.clone(), pause).await {
            Err(fault) if !fault.is(Code::TriggerNotFound) => Err(fault),
            _ => Ok(()),
        }
    }

    /// Asks for a trigger's run; says whether it is a new one.
    pub(super) async fn create(
        self,
        trigger: &Trigger,
        key: &RunKey,
        NewFiring { inputs, depth, trace }: NewFiring,
    ) -> Result<bool, Fault> {
        let spec = &trigger.spec;
        let new = NewRun {
            run_id: Some(key.run.clone()),
            budget_micro: spec.budget_micro,
            correlation_id: Some(format!("trigger:{}", trigger.id)),
            // A run that is forgotten would be started again when the same comes twice.
            durability: Some(Durability::Journal),
            trigger_depth: depth,
            traceparent: trace.traceparent,
            tracestate: trace.tracestate,
            ..NewRun::new(spec.tool.clone(), inputs, spec.world.clone())
        };
        match self.0.runs().create(&Caller::trigger(trigger), new).await {
            Ok(accepted) => Ok(!accepted.repeated),
            // The same once more, with other inputs.
            Err(fault) if fault.is(Code::RunConflict) => Ok(false),
            Err(fault) => Err(fault),
        }
    }

    /// Writes down what came of something. That it cannot be written down changes nothing of it.
    pub(super) async fn fired(self, trigger: &Trigger, about: &str, how: SettledHow) {
        let fired = TriggerFired { about: about.to_owned(), how };
        let fired = TriggerInput::Fired(fired);
        let written = self.0.change::<Trigger>(&Caller::core(), trigger.id.clone(), fired).await;
        if let Err(fault) = written {
            tracing::debug!(code = %fault.code, "what a trigger started is not in its history");
        }
    }

    /// Whether a caller may change a trigger: whoever made it, or whose rights it comes from, and
    /// whoever may operate in its world.
    fn may_change(self, caller: &Caller, id: &TriggerId) -> Result<Trigger, Fault> {
        let trigger = self.get(id)?;
        let world = &trigger.spec.world;
        let may = || {
            self.0.trust().authorise(caller, Verb::Run, world)?;
            caller.rights.check_tool(&trigger.spec.tool)?;
            if caller.owns(&Caller::trigger(&trigger).to_ref()) {
                return Ok(());
            }
            caller.rights.check(Verb::Operate, world)
        };
        self.0.audited(caller, world, may())?;
        Ok(trigger)
    }
}
