//! What a server asks while it works on a call, and how answers come back.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::oneshot;
use wharf_domain::run::{McpTerms, NewAsk};
use wharf_domain::{Caller, Provider, Resolution};
use wharf_engine::AttemptRef;
use wharf_vocab::{Code, Digest, Executed, Fault};
use wharf_wire::mcp_v1::{McpError, McpRequest, key};

use super::super::{McpServers, asks, result};
use super::{AttemptWork, Broken, failed};
use crate::shown;

/// Addresses of one refusal that a person is led to.
const ADDRESSES_MAX: usize = 8;
/// Different questions of one attempt that are told apart from those asked again.
const NAMES_MAX: usize = 1_024;
/// How much of a digest names something within a run.
const NAME_CHARS: usize = 16;

/// What it takes to answer what a server asks.
#[derive(Clone)]
pub(crate) struct AskContext {
    /// All servers.
    pub(crate) servers: Arc<McpServers>,
    /// The server's record as it was when it was started.
    pub(crate) agent: Arc<Provider>,
    /// The attempt whose call it is.
    pub(crate) attempt: AttemptRef,
    /// Where answers arrive.
    pub(crate) answers: Arc<AskAnswers>,
}

/// Something that a server asks.
#[derive(Debug)]
pub(crate) struct ServerAsk {
    /// Names it within the run, the same when it is asked again after a restart of the core.
    pub(crate) key: String,
    /// The server's own name for it, if it has one.
    pub(crate) named: Option<String>,
    /// What it asks: `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub(crate) request: McpRequest,
    /// Whether it is known to belong to a task; of tasks of 2025-11-25 the request says so.
    pub(crate) in_task: bool,
}

/// The answers to what one attempt asks, on their way to whoever waits for them.
#[derive(Debug, Default)]
pub(crate) struct AskAnswers {
    waiting: Mutex<HashMap<String, oneshot::Sender<Resolution>>>,
    /// How often each question was asked in the middle of a call. A run can only ask so much.
    asked: Mutex<HashMap<Digest, u32>>,
}

impl AskAnswers {
    /// How an ask ended, for whoever waits for it.
    pub(crate) fn resolved(&self, key: &str, resolution: Resolution) {
        if let Some(waiting) = self.waiting.lock().remove(key) {
            // Whoever asked may have left.
            let _ = waiting.send(resolution);
        }
    }

    /// A name for what is asked in the middle of a call. A server that is asked for its task again
    /// after a restart of the core asks the same again, and so gets the answer that was given.
    pub(super) fn name(&self, attempt: u32, request: &McpRequest) -> String {
        let params = request.params().map(|mut params| {
            params.remove(key::META);
            Value::Object(params).to_string()
        });
        let params = params.unwrap_or_default();
        let digest = Digest::of(&[request.method().as_bytes(), params.as_bytes()]);
        let mut asked = self.asked.lock();
        if asked.len() >= NAMES_MAX && !asked.contains_key(&digest) {
            asked.clear();
        }
        let times = asked.entry(digest.clone()).or_default();
        *times += 1;
        format!("mcp-{attempt}-{}-{times}", short(&digest))
    }

    fn expect(self: &Arc<Self>, key: String) -> ExpectedAnswer {
        let (tell, told) = oneshot::channel();
        self.waiting.lock().insert(key.clone(), tell);
        ExpectedAnswer { answers: Arc::clone(self), key, told }
    }
}

/// An answer that somebody waits for. Nothing of it is kept once nobody does.
struct ExpectedAnswer {
    answers: Arc<AskAnswers>,
    key: String,
    told: oneshot::Receiver<Resolution>,
}

impl Drop for ExpectedAnswer {
    fn drop(&mut self) {
        self.answers.waiting.lock().remove(&self.key);
    }
}

/// A name within a run for what a server calls so.
pub(super) fn short_name(attempt: u32, round: &str, named: &str) -> String {
    format!("mcp-{attempt}-{round}-{}", short(&Digest::of(&[named.as_bytes()])))
}

fn short(digest: &Digest) -> &str {
    &digest.as_str()[..NAME_CHARS]
}

impl AskContext {
    /// What the client whose call it is can do, where nobody else is asked.
    pub(crate) fn only_caller(&self) -> Option<McpTerms> {
        self.attempt.dispatch().spec.mcp.filter(|terms| terms.inbox_off)
    }

    /// Takes back what was asked under a key, if it is open: the server does not want to know any
    /// more.
    pub(super) async fn take_back(&self, key: &str) {
        let handle = self.servers.handle();
        let Some(run) = handle.runs().live(&self.attempt.dispatch().run) else { return };
        let mut open = run.open_asks().map(|raised| &raised.ask.spec);
        let Some(ask) = open.find(|spec| spec.key == key) else { return };
        let core = Caller::core();
        let ended = handle.asks().resolve(&core, &ask.ask_id, Resolution::Cancelled).await;
        if let Err(fault) = ended
            && !fault.is(Code::AskDecided)
        {
            tracing::debug!(code = %fault.code, "a question could not be taken back");
        }
    }

    /// Raises an ask and waits for its end.
    pub(crate) async fn ask(&self, ask: NewAsk) -> Result<Resolution, Fault> {
        let mut answer = self.answers.expect(ask.key.clone());
        self.attempt.raise(ask).await?;
        let gone = |_| Fault::new(Code::ToolCanceled, "The question was withdrawn.");
        (&mut answer.told).await.map_err(gone)
    }
}

impl AttemptWork {
    /// What it takes to answer what the server asks.
    pub(crate) fn asking(&self) -> AskContext {
        AskContext {
            servers: Arc::clone(&self.servers),
            agent: Arc::clone(&self.agent),
            attempt: AttemptRef::clone(&self.attempt),
            answers: Arc::clone(&self.answers),
        }
    }
}

/// Leads a person to the addresses that a server of 2025-11-25 names instead of an answer. The
/// call did not run; it is made again as another attempt.
pub(super) async fn open_addresses(work: &AttemptWork, error: &McpError) -> Broken {
    let attempt = work.attempt.dispatch().attempt;
    let context = work.asking();
    let named = error.url_elicitations();
    let mut opened = !named.is_empty() && named.len() <= ADDRESSES_MAX;
    for (at, elicit) in named.into_iter().take(ADDRESSES_MAX).enumerate() {
        let ask = ServerAsk {
            key: format!("mcp-{attempt}-address-{at}"),
            named: elicit.elicitation_id.clone(),
            request: McpRequest::Elicit(Box::new(elicit)),
            in_task: false,
        };
        let asked = tokio::select! {
            order = work.stop.wanted() => return Broken::Stopped(order),
            asked = asks::asked(&context, ask) => asked,
        };
        match asked {
            Ok(answer) => opened &= answer.get("action").is_some_and(|it| it == "accept"),
            Err(error) => return failed(result::unanswered(&error), Executed::No),
        }
        if !opened {
            break;
        }
    }
    let words = shown::words(&error.message);
    let message = format!("A person has to open an address first: {words}");
    let fault = Fault::new(Code::ToolFailed, message).with("code", error.code);
    failed(Fault { retryable: opened, ..fault }, Executed::No)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn elicit(message: &str, meta: &Value) -> McpRequest {
        let schema = json!({"type": "object", "properties": {}});
        let params = json!({"message": message, "requestedSchema": schema, "_meta": meta});
        McpRequest::read("elicitation/create", params.as_object().cloned()).expect("fits")
    }

    #[test]
    fn m062_the_same_question_has_the_same_name_in_the_next_core() {
        let (first, second) = (AskAnswers::default(), AskAnswers::default());
        let name = first.name(1, &elicit("a", &json!({"progressToken": 1})));
        assert_eq!(second.name(1, &elicit("a", &json!({"progressToken": 2}))), name);
        assert_ne!(second.name(1, &elicit("a", &json!({}))), name, "asked twice, it is another");
        assert_ne!(second.name(1, &elicit("b", &json!({}))), name);
        assert_ne!(AskAnswers::default().name(2, &elicit("a", &json!({}))), name);
    }

    #[test]
    fn m085_nothing_is_kept_of_a_question_that_nobody_waits_for() {
        let answers = Arc::<AskAnswers>::default();
        let expected = answers.expect("a".to_owned());
        assert_eq!(answers.waiting.lock().len(), 1);
        drop(expected);
        assert!(answers.waiting.lock().is_empty());
    }

    #[test]
    fn m085_names_of_questions_are_bounded() {
        let answers = AskAnswers::default();
        for number in 0..(3 * NAMES_MAX) {
            answers.name(1, &elicit(&number.to_string(), &json!({})));
        }
        assert!(answers.asked.lock().len() <= NAMES_MAX);
    }
}
