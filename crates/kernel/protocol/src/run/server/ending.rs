//! How a run ends: from what a handler left behind to the final response.

use std::collections::BTreeMap;

use serde_json::Value;
use wharf_vocab::json::json_bytes;
use wharf_vocab::{Micro, Object};
use wharf_wire::run_v1::{
    Failure, Frame, Response, ResponseControl, Status, UnfitRequest, Written, code,
};

use super::{Limits, Profile};
use crate::run::judge_cost;

/// What a run left behind.
#[derive(Debug, Clone, PartialEq)]
pub struct Ending {
    /// Outputs with places in the stead of what was written, or what went wrong.
    pub result: Result<Object, Failure>,
    /// The cost as it was reported.
    pub cost: Option<Value>,
    /// What was written, by output key.
    pub written: BTreeMap<String, Written>,
    /// Outputs that were asked for and not produced.
    pub missing: Vec<String>,
}

impl Ending {
    /// An ending without outputs.
    pub fn failed(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            result: Err(Failure { code: code.into(), message: message.into() }),
            cost: None,
            written: BTreeMap::new(),
            missing: Vec::new(),
        }
    }

    /// The final response and the warnings that go before it. What was reported before the end
    /// counts, whatever the end says. That a handler reports no cost is said once: of one that
    /// costs nothing it would be said of every run.
    pub(super) fn judged(
        self,
        limits: &Limits,
        reported: Micro,
        costless_told: &mut bool,
    ) -> (Response, Vec<String>) {
        let mut warnings = Vec::new();
        let mut result = self.result;
        if result.is_ok() {
            for key in &self.missing {
                warnings.push(format!("The output `{key}` was asked for and not produced."));
            }
        }
        let at_end: Micro = match self.cost.as_ref().filter(|cost| !cost.is_null()) {
            None => {
                let is_costless = result.is_ok() && reported == 0;
                if is_costless && !std::mem::replace(costless_told, true) {
                    warnings.push("The handler reported no cost; it counts as 0.".to_owned());
                }
                0
            }
            Some(said) => judge_cost(said).unwrap_or_else(|why| {
                if result.is_ok() {
                    result = Err(failure(code::COST, &why.to_string()));
                } else {
                    warnings.push(format!("{why} It counts as {reported}."));
                }
                0
            }),
        };
        let cost = at_end.max(reported);
        if result.as_ref().is_ok_and(|outputs| json_bytes(outputs) > room(limits)) {
            result = Err(failure(code::LIMIT, "The outputs are larger than a run may give."));
        }
        (response(result, cost, self.written), warnings)
    }

    /// Whether it was stopped.
    pub(super) fn is_canceled(&self) -> bool {
        self.result.as_ref().is_err_and(|failure| failure.code == code::CANCELED)
    }
}

/// What outputs may take in one frame, with room for what stands beside them.
fn room(limits: &Limits) -> usize {
    limits.output_bytes_max.min(limits.frame_bytes_max.saturating_sub(64 * 1024))
}

fn response(
    result: Result<Object, Failure>,
    cost: Micro,
    written: BTreeMap<String, Written>,
) -> Response {
    let status = if result.is_ok() { Status::Success } else { Status::Error };
    let (outputs, error) = match result {
        Ok(outputs) => (outputs, None),
        Err(failure) => (Object::new(), Some(safe(failure))),
    };
    let control = ResponseControl {
        status: Some(status),
        cost_micro: Some(Value::from(cost)),
        is_final: true,
        written,
        ..ResponseControl::default()
    };
    Response { control, outputs, error }
}

/// The final response to a request that no run came of.
#[must_use]
pub fn answer(profile: Profile, unfit: &UnfitRequest) -> String {
    let failure = failure(unfit.code, unfit.message);
    let mut response = response(Err(failure), 0, BTreeMap::new());
    response.control.run_id = Some(unfit.run_id.clone());
    profile.encode(&Frame::Response(response))
}

fn failure(code: &str, message: &str) -> Failure {
    Failure { code: code.to_owned(), message: message.to_owned() }
}

/// Longest text of a failure, in characters.
const MESSAGE_CHARS_MAX: usize = 500;

/// A failure that can be shown: a code of the usual form, and one line of bearable length.
fn safe(failure: Failure) -> Failure {
    let is_code = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let fits = (1..=64).contains(&failure.code.len()) && failure.code.chars().all(is_code);
    let code = if fits { failure.code } else { code::UNKNOWN.to_owned() };
    let line = failure.message.lines().map(str::trim).find(|line| !line.is_empty());
    let plain = line.unwrap_or("The run failed.").chars().filter(|c| !c.is_control());
    Failure { code, message: plain.take(MESSAGE_CHARS_MAX).collect() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ending(result: Result<Object, Failure>, cost: Option<Value>) -> Ending {
        Ending { result, cost, written: BTreeMap::new(), missing: Vec::new() }
    }

    #[test]
    fn t011_a_wrong_cost_fails_a_run_that_went_well() {
        let (response, warnings) =
            ending(Ok(Object::new()), Some(json!(-1))).judged(&Limits::default(), 0, &mut false);
        assert_eq!(response.error.expect("failed").code, code::COST);
        assert_eq!(response.control.cost_micro, Some(json!(0)));
        assert!(warnings.is_empty());
        let lost = failure(code::WORKER, "Gone.");
        let (response, warnings) =
            ending(Err(lost), Some(json!(0.5))).judged(&Limits::default(), 0, &mut false);
        assert_eq!(response.error.expect("failed").code, code::WORKER);
        assert_eq!((response.control.cost_micro, warnings.len()), (Some(json!(0)), 1));
    }

    #[test]
    fn t011_no_cost_counts_as_nothing_and_is_said_once() {
        let mut told = false;
        for expect in [1, 0, 0] {
            let costless = ending(Ok(Object::new()), None);
            let (response, warnings) = costless.judged(&Limits::default(), 0, &mut told);
            assert_eq!(response.control.cost_micro, Some(json!(0)));
            assert_eq!(warnings.len(), expect, "said once");
        }
        let (response, _) =
            ending(Ok(Object::new()), Some(json!(3.0))).judged(&Limits::default(), 0, &mut false);
        assert_eq!(response.control.cost_micro, Some(json!(3)));
    }

    #[test]
    fn t011_what_was_reported_before_the_end_counts_whatever_the_end_says() {
        for (result, said, expect) in [
            (Ok(Object::new()), None, 40),
            (Ok(Object::new()), Some(json!(7)), 40),
            (Ok(Object::new()), Some(json!(70)), 70),
            (Ok(Object::new()), Some(json!(-1)), 40),
            (Err(failure(code::WORKER, "Gone.")), None, 40),
            (Err(failure(code::CANCELED, "Stopped.")), Some(json!(41)), 41),
        ] {
            let (response, warnings) =
                ending(result, said).judged(&Limits::default(), 40, &mut false);
            assert_eq!(response.control.cost_micro, Some(json!(expect)));
            assert!(warnings.is_empty(), "{warnings:?}");
        }
    }

    #[test]
    fn t014_a_failure_is_one_plain_line() {
        let long = "x".repeat(10_000);
        for (code, message, expect) in [
            ("my.code", "One.\nTraceback (most recent call last)", ("my.code", "One.")),
            ("", "", ("UNKNOWN", "The run failed.")),
            ("bad code", "\u{1b}[31mred", ("UNKNOWN", "[31mred")),
            ("A", &long, ("A", &long[..500])),
        ] {
            let safe = safe(failure(code, message));
            assert_eq!((safe.code.as_str(), safe.message.as_str()), expect);
        }
    }

    #[test]
    fn t020_outputs_over_the_limit_fail_the_run() {
        let limits = Limits { output_bytes_max: 100, ..Limits::default() };
        let outputs = json!({"a": "x".repeat(101)}).as_object().expect("an object").clone();
        let (response, _) = ending(Ok(outputs), Some(json!(7))).judged(&limits, 0, &mut false);
        assert_eq!(response.error.expect("failed").code, code::LIMIT);
        assert_eq!(response.control.cost_micro, Some(json!(7)));
        assert!(response.outputs.is_empty());
    }
}
