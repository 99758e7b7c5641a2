//! How the edge is set up, and what an operator is told with every spawn.

use std::time::Duration;

use wharf_engine::Handle;
use wharf_protocol::operator::SeatLimits;
use wharf_vocab::limits::RECHECK_MS;

/// How the edge is set up.
#[derive(Debug, Clone)]
pub struct OperatorEdgeOptions {
    /// The engine.
    pub handle: Handle,
    /// The address under which workers reach the core.
    pub base_url: String,
    /// What an operator is told with every spawn.
    pub directive: String,
    /// Limits and times of a seat's connection.
    pub limits: SeatLimits,
    /// How long a seat may be away before it is given up.
    pub away_max: Duration,
    /// Seats at once.
    pub seats_max: usize,
    /// How often it is looked whether the tokens that seats were made with are still good.
    pub recheck: Duration,
}

impl OperatorEdgeOptions {
    /// The usual.
    pub fn new(handle: Handle, base_url: impl Into<String>) -> Self {
        Self {
            handle,
            base_url: base_url.into(),
            directive: USUAL_DIRECTIVE.to_owned(),
            limits: SeatLimits::default(),
            away_max: Duration::from_secs(24 * 60 * 60),
            seats_max: 4_096,
            recheck: Duration::from_millis(RECHECK_MS),
        }
    }
}

/// What an operator is usually told, for a model that reads it. Words in braces stand for what is known of the task.
const USUAL_DIRECTIVE: &str = "\
Start one worker now and hand it exactly these four lines, unchanged:
agent: {agent}
worker_handle: {worker_handle}
base_url: {base_url}
task_id: {task_id}
The worker fetches its prompt with GET {base_url}/v1/worker/prompt?task_id={task_id} and posts \
its result with POST {base_url}/v1/worker/submit?task_id={task_id}, both with the header \
`Authorization: Bearer {worker_handle}`. Do not fetch the prompt yourself and do not do the work \
yourself. When the worker has ended, answer this request with an empty spawn_ack.";

/// What stands for a task in a text.
pub(crate) struct Facts<'a> {
    pub(crate) agent: &'a str,
    pub(crate) worker_handle: &'a str,
    pub(crate) base_url: &'a str,
    pub(crate) task_id: &'a str,
}

/// The text for a task. Each place is filled once, so what is filled in cannot add places.
pub(crate) fn fill(template: &str, facts: &Facts<'_>) -> String {
    let mut text = String::with_capacity(template.len() + 256);
    let mut rest = template;
    while let Some(at) = rest.find('{') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let places = [
            ("{agent}", facts.agent),
            ("{worker_handle}", facts.worker_handle),
            ("{base_url}", facts.base_url),
            ("{task_id}", facts.task_id),
        ];
        match places.iter().find(|(place, _)| rest.starts_with(place)) {
            Some((place, value)) => {
                text.push_str(value);
                rest = &rest[place.len()..];
            }
            None => {
                text.push('{');
                rest = &rest[1..];
            }
        }
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o017_the_text_names_agent_handle_address_and_task() {
        let facts = Facts {
            agent: "{task_id}",
            worker_handle: "wh-1",
            base_url: "http://127.0.0.1:7420",
            task_id: "ST-1",
        };
        let text = fill(USUAL_DIRECTIVE, &facts);
        assert!(text.contains("agent: {task_id}\n"), "what is filled in stays as it is");
        assert!(text.contains("worker_handle: wh-1\n"));
        assert!(text.contains("GET http://127.0.0.1:7420/v1/worker/prompt?task_id=ST-1 "));
        assert_eq!(fill("{x} {agent} {", &facts), "{x} {task_id} {");
    }
}
