//! Schedules: how they are shown, and how requests for them are read.

use wharf_domain::ScheduleSpec;
use wharf_domain::permission::ToolPattern;
use wharf_domain::schedule::{self, SchedulePlan};
use wharf_domain::{Caller, Schedule};
use wharf_vocab::{CatchUp, DateTime, Fault, Mode, Overlap, ScheduleId};
use wharf_wire::rest_v1 as wire;

use crate::request::{DEFAULT_WORLD, id, object};

/// Times to come that are shown.
const NEXT: usize = 3;
/// The zone of a request that names none.
const UTC: &str = "UTC";

/// A schedule as it stands.
#[must_use]
pub fn schedule(schedule: &Schedule) -> wire::Schedule {
    let spec = &schedule.spec;
    let (cron, every_ms, at) = match &spec.plan {
        SchedulePlan::Cron { pattern, .. } => (Some(pattern.clone()), None, None),
        SchedulePlan::Every { ms } => (None, Some(*ms), None),
        SchedulePlan::At { at, .. } => (None, None, Some(DateTime(*at))),
    };
    let rights = Caller::schedule(schedule).rights;
    wire::Schedule {
        name: schedule.id.clone(),
        state: schedule.state(),
        pause_cause: schedule.paused.as_ref().map(|pause| pause.cause.as_str().to_owned()),
        cron,
        every_ms,
        at,
        tz: spec.plan.tz().to_owned(),
        next: next(schedule),
        tool: spec.tool.clone(),
        inputs: spec.inputs.clone(),
        outputs: spec.outputs.clone(),
        world: spec.world.clone(),
        mode: spec.mode,
        timeout_ms: spec.timeout_ms,
        budget_micro: spec.budget_micro,
        durability: spec.durability,
        catch_up: spec.catch_up,
        overlap: spec.overlap,
        allow: spec.allow.iter().map(ToString::to_string).collect(),
        fired: schedule.fired,
        last: schedule.due.last().or(schedule.last.as_ref()).map(firing),
        created_at: DateTime(schedule.made_at),
        created_by: schedule.by.grant.clone(),
        expires_at: rights.until.map(DateTime),
    }
}

/// The times to come.
fn next(schedule: &Schedule) -> Vec<String> {
    let Ok(planner) = schedule.planner() else { return Vec::new() };
    let mut at = schedule.next();
    let mut times = Vec::new();
    while let Some(time) = at.filter(|_| times.len() < NEXT) {
        times.push(schedule.spec.plan.shown(time));
        at = planner.next(time);
    }
    times
}

/// One time of a schedule, and what became of it.
#[must_use]
pub fn firing(firing: &schedule::Firing) -> wire::Firing {
    wire::Firing {
        n: firing.n,
        planned_at: DateTime(firing.planned),
        fired_at: DateTime(firing.at),
        by_hand: firing.by_hand,
        missed: firing.missed,
        state: firing.state,
        run_id: firing.run.clone(),
        error: firing.error.as_ref().map(wire::ErrorInfo::from),
    }
}

/// A request for a schedule.
pub fn new_schedule(request: wire::CreateSchedule) -> Result<(ScheduleId, ScheduleSpec), Fault> {
    let tz = request.tz.unwrap_or_else(|| UTC.to_owned());
    let plan = match (request.cron, request.every_ms, request.at) {
        (Some(pattern), None, None) => SchedulePlan::Cron { pattern, tz },
        (None, Some(ms), None) => SchedulePlan::Every { ms },
        (None, None, Some(text)) => SchedulePlan::At { at: SchedulePlan::moment(&text, &tz)?, tz },
        _ => {
            let message = "Say when: send exactly one of `cron`, `every_ms` and `at`.";
            return Err(Fault::invalid("cron", message));
        }
    };
    let needs_object =
        |field: &str| Fault::invalid(field, format!("The field `{field}` must be a JSON object."));
    let pattern = |text: &String| {
        ToolPattern::parse(text).map_err(|_| {
            let message = "The field `allow` must be patterns of tools such as llm/* or acme/mail.";
            Fault::invalid("allow", message)
        })
    };
    let spec = ScheduleSpec {
        plan,
        tool: request.tool,
        world: request.world.map_or_else(|| id("world", DEFAULT_WORLD), Ok)?,
        inputs: object(request.inputs).ok_or_else(|| needs_object("inputs"))?,
        outputs: object(request.outputs).ok_or_else(|| needs_object("outputs"))?,
        mode: request.mode.unwrap_or(Mode::Real),
        timeout_ms: request.timeout_ms,
        budget_micro: request.budget_micro,
        durability: request.durability,
        catch_up: request.catch_up.unwrap_or(CatchUp::Last),
        overlap: request.overlap.unwrap_or(Overlap::Skip),
        allow: request.allow.unwrap_or_default().iter().map(pattern).collect::<Result<_, _>>()?,
    };
    Ok((request.name, spec))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(body: Value) -> Result<(ScheduleId, ScheduleSpec), Fault> {
        new_schedule(wharf_vocab::json::fit(body, "The body")?)
    }

    #[test]
    fn f030_a_schedule_says_when_in_exactly_one_way() {
        let base = json!({"name": "n", "tool": "wharf/echo"});
        let with = |more: Value| {
            let mut body = base.clone();
            let more = more.as_object().cloned().expect("an object");
            body.as_object_mut().expect("an object").extend(more);
            read(body)
        };
        for good in [
            json!({"cron": "0 3 * * *"}),
            json!({"every_ms": 60_000}),
            json!({"at": "2026-12-24T18:00", "tz": "Europe/Berlin"}),
        ] {
            with(good).expect("fits");
        }
        for (wrong, field) in [
            (json!({}), "cron"),
            (json!({"cron": "0 3 * * *", "every_ms": 60_000}), "cron"),
            (json!({"at": "soon"}), "at"),
            (json!({"every_ms": 1_000, "inputs": []}), "inputs"),
            (json!({"every_ms": 1_000, "allow": ["a b"]}), "allow"),
        ] {
            let fault = with(wrong.clone()).expect_err("refused");
            assert_eq!(fault.details["field"], field, "{wrong}");
        }
    }
}
