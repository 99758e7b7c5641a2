//! One request to a provider, and its answer piece by piece.
//!
//! A request is made again only when the provider said that it did nothing with it. Whatever else
//! goes wrong is told with whether the provider may have done something, which costs money.

use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response};
use serde_json::Value;
use wharf_domain::Level;
use wharf_domain::trace::TraceHeaders;
use wharf_engine::in_process::LocalCx;
use wharf_ports::vault::Secret;
use wharf_protocol::sse;
use wharf_vocab::{Code, Executed, Fault};

use crate::answer::{AnswerFlaw, PartialAnswer, with_full_stop};
use crate::meter::Meter;
use crate::providers::{Api, ModelProvider};
use crate::{anthropic, openai};

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a request is made in one attempt; each time but the first because the provider asked
/// for it.
const TRIES_MAX: u32 = 3;
/// A provider that wants to be left alone for longer is not waited for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);
/// Largest event of a stream.
const EVENT_BYTES_MAX: usize = 1024 * 1024;
/// What a stream may have, with all that stands around an answer.
pub(crate) const STREAM_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Largest refusal that is read.
const REFUSAL_BYTES_MAX: usize = 64 * 1024;
/// What is passed on of a provider's own words.
const WORDS_CHARS_MAX: usize = 300;

/// How a call failed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CallFailure {
    pub(crate) fault: Fault,
    pub(crate) executed: Executed,
}

impl CallFailure {
    fn new(code: Code, message: impl Into<String>, executed: Executed) -> Self {
        Self { fault: Fault::new(code, message), executed }
    }

    /// Nothing was asked of anybody.
    pub(crate) fn before(fault: Fault) -> Self {
        Self { fault, executed: Executed::No }
    }
}

/// A call that is ready to be made.
pub(crate) struct Call<'a> {
    pub(crate) provider: &'a ModelProvider,
    pub(crate) key: Option<Secret>,
    pub(crate) body: Value,
    /// How long the provider may be silent.
    pub(crate) silence: Duration,
    /// What goes along, so that a server that records traces joins the caller's.
    pub(crate) trace: TraceHeaders,
}

/// Makes connections straight from the core, by ring and the system's certificates.
pub(crate) fn client() -> Result<Client, Fault> {
    // Whoever comes second finds it installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let built = Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .tcp_nodelay(true)
        .connect_timeout(CONNECT_TIMEOUT)
        .user_agent(concat!("wharf/", env!("CARGO_PKG_VERSION")))
        .build();
    built.map_err(|error| {
        tracing::warn!(error = &error as &dyn std::error::Error, "no HTTP client");
        let why = "No HTTP client can be made; there may be no certificates here.";
        Fault::new(Code::CoreInternal, why)
    })
}

impl Call<'_> {
    /// Asks, and gives the answer's head back once it has come.
    pub(crate) async fn open(
        &self,
        client: &Client,
        cx: &LocalCx,
        meter: &mut Meter,
    ) -> Result<Response, CallFailure> {
        let headers = self.headers()?;
        let mut tries = 1;
        loop {
            meter.sent();
            let refusal = match self.send(client, headers.clone()).await {
                Ok(answer) if answer.status().is_success() => return Ok(answer),
                Ok(answer) => ModelRefusal::read(answer, self.key.as_ref()).await,
                Err(failure) => {
                    if failure.executed == Executed::No {
                        meter.unsent();
                    }
                    return Err(failure);
                }
            };
            // A provider that refuses asks no money for it.
            meter.unsent();
            let Some(pause) = refusal.pause().filter(|_| tries < TRIES_MAX) else {
                return Err(refusal.failure(&self.provider.name, self.key.is_some()));
            };
            tries += 1;
            let line = format!(
                "The provider {} answered {}. It is asked again in {:.1} s, as it wishes.",
                self.provider.name,
                refusal.status,
                pause.as_secs_f64()
            );
            cx.log(Level::Warn, line).await.map_err(CallFailure::before)?;
            tokio::time::sleep(pause).await;
        }
    }

    async fn send(&self, client: &Client, headers: HeaderMap) -> Result<Response, CallFailure> {
        let path = match self.provider.api {
            Api::OpenAi => "chat/completions",
            Api::Anthropic => "messages",
        };
        let request = client.post(self.provider.url(path)).headers(headers).json(&self.body).send();
        let name = &self.provider.name;
        match tokio::time::timeout(self.silence, request).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => {
                let is_connect = error.is_connect();
                // An address is nobody's business, so it leaves the error before it is read.
                let error = error.without_url();
                tracing::debug!(error = &error as &dyn std::error::Error, "no answer of a model");
                Err(match is_connect {
                    true => CallFailure::new(
                        Code::LlmUnreachable,
                        format!("The provider {name} cannot be reached from this machine."),
                        Executed::No,
                    ),
                    false => CallFailure::new(
                        Code::LlmUnavailable,
                        format!("The connection to the provider {name} broke before it answered."),
                        Executed::Maybe,
                    ),
                })
            }
            Err(_) => Err(CallFailure::new(
                Code::LlmUnavailable,
                format!(
                    "The provider {name} did not begin to answer within {} s.",
                    self.silence.as_secs()
                ),
                Executed::Maybe,
            )),
        }
    }

    fn headers(&self) -> Result<HeaderMap, CallFailure> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.provider.api == Api::Anthropic {
            let version = HeaderValue::from_static(anthropic::VERSION);
            headers.insert("anthropic-version", version);
        }
        let TraceHeaders { traceparent, tracestate } = &self.trace;
        for (name, value) in [("traceparent", traceparent), ("tracestate", tracestate)] {
            if let Some(value) = value.as_deref().and_then(|it| HeaderValue::from_str(it).ok()) {
                headers.insert(name, value);
            }
        }
        let Some(key) = &self.key else { return Ok(headers) };
        let key = key.expose().trim_ascii();
        let (name, value) = match self.provider.api {
            Api::OpenAi => (AUTHORIZATION.as_str(), [b"Bearer ", key].concat()),
            Api::Anthropic => ("x-api-key", key.to_vec()),
        };
        let Ok(mut value) = HeaderValue::from_bytes(&value) else {
            let message = "The key of the provider holds what a key cannot; set it again with \
                           `wharf secret set`.";
            return Err(CallFailure::new(Code::LlmUnauthorized, message, Executed::No));
        };
        value.set_sensitive(true);
        headers.insert(name, value);
        Ok(headers)
    }

    /// Reads the answer to its end and passes its text on as it comes.
    pub(crate) async fn read(
        &self,
        mut response: Response,
        cx: &LocalCx,
        meter: &mut Meter,
        answer: &mut PartialAnswer,
    ) -> Result<(), CallFailure> {
        let flawed = |answer: &PartialAnswer, flaw: AnswerFlaw| {
            let flaw = match flaw {
                AnswerFlaw::Error(said) => {
                    AnswerFlaw::Error(said.and_then(|said| words(&said, self.key.as_ref())))
                }
                other => other,
            };
            let (fault, executed) = answer.fault(flaw);
            CallFailure { fault, executed }
        };
        if !is_stream(&response) {
            return Err(flawed(answer, AnswerFlaw::Unreadable));
        }
        let (mut parser, mut bytes) = (sse::Parser::new(EVENT_BYTES_MAX), 0);
        while !answer.is_whole {
            let piece = match tokio::time::timeout(self.silence, response.chunk()).await {
                Ok(Ok(Some(piece))) => piece,
                Ok(Ok(None)) => break,
                Ok(Err(_)) => return Err(self.cut(answer, "broke off its answer")),
                Err(_) => return Err(self.cut(answer, "fell silent within its answer")),
            };
            bytes += piece.len();
            let fits = bytes <= STREAM_BYTES_MAX && parser.push(&piece).is_ok();
            let (added, taken) = self.take(&mut parser, answer);
            meter.heard(answer);
            if !added.is_empty() {
                let told = cx.text("text", added).await;
                told.map_err(|fault| CallFailure { fault, executed: Executed::Yes })?;
            }
            let whole = if fits { Ok(()) } else { Err(AnswerFlaw::TooLarge) };
            taken.and(whole).map_err(|flaw| flawed(answer, flaw))?;
        }
        match answer.is_whole || answer.finish_reason.is_some() {
            true => Ok(()),
            false => Err(self.cut(answer, "broke off its answer")),
        }
    }

    /// Takes the events that are whole: what they add to the text, until one cannot be read.
    fn take(
        &self,
        parser: &mut sse::Parser,
        answer: &mut PartialAnswer,
    ) -> (String, Result<(), AnswerFlaw>) {
        let mut added = String::new();
        while let Some(event) = parser.pop() {
            let taken = match self.provider.api {
                Api::OpenAi => openai::take(answer, &event),
                Api::Anthropic => anthropic::take(answer, &event),
            };
            match taken {
                Ok(text) => added.push_str(&text),
                Err(flaw) => return (added, Err(flaw)),
            }
        }
        (added, Ok(()))
    }

    fn cut(&self, answer: &PartialAnswer, how: &str) -> CallFailure {
        let message = format!("The provider {} {how}; it may be paid for.", self.provider.name);
        let executed = if answer.has_begun() { Executed::Yes } else { Executed::Maybe };
        CallFailure::new(Code::LlmStreamCut, message, executed)
    }
}

fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.to_ascii_lowercase().starts_with("text/event-stream"))
}

/// An answer that is none.
struct ModelRefusal {
    status: u16,
    retry_after: Option<Duration>,
    /// The provider's own words, without the key.
    said: Option<String>,
    /// There is no money left at the provider, which no waiting helps.
    is_out_of_credit: bool,
}

impl ModelRefusal {
    async fn read(mut answer: Response, key: Option<&Secret>) -> Self {
        let status = answer.status().as_u16();
        let header = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let seconds = header.and_then(|text| text.trim().parse::<f64>().ok());
        let retry_after = seconds.and_then(|s| Duration::try_from_secs_f64(s.max(0.0)).ok());
        let mut body = Vec::new();
        let reading = async {
            while let Ok(Some(piece)) = answer.chunk().await {
                if body.len() + piece.len() > REFUSAL_BYTES_MAX {
                    break;
                }
                body.extend_from_slice(&piece);
            }
        };
        // Whoever refuses slowly is not waited for: the status says enough.
        let _ = tokio::time::timeout(CONNECT_TIMEOUT, reading).await;
        let error = serde_json::from_slice::<Value>(&body).unwrap_or_default()["error"].take();
        let said = error["message"].as_str().and_then(|said| words(said, key));
        let is_out_of_credit =
            [&error["code"], &error["type"]].into_iter().any(|it| it == "insufficient_quota");
        Self { status, retry_after, said, is_out_of_credit }
    }

    /// Whether the provider says that it did nothing, and may do so later.
    fn is_not_now(&self) -> bool {
        matches!(self.status, 429 | 503 | 529) && !self.is_out_of_credit
    }

    /// How long to wait before the same is asked again, if the provider wishes that.
    fn pause(&self) -> Option<Duration> {
        self.retry_after.filter(|pause| self.is_not_now() && *pause <= RETRY_AFTER_MAX)
    }

    fn failure(self, name: &str, has_key: bool) -> CallFailure {
        let said = |else_say: String| with_full_stop(self.said.clone().unwrap_or(else_say));
        let (code, message, executed) = match self.status {
            429 if self.is_out_of_credit => {
                let words = said("there is no credit left".to_owned());
                (Code::LlmRefused, format!("The provider {name} refused: {words}"), Executed::No)
            }
            429 => {
                let message = format!("The provider {name} is asked too often; try again later.");
                (Code::LlmRateLimited, message, Executed::No)
            }
            503 | 529 => {
                let message = format!("The provider {name} has too much to do; try again later.");
                (Code::LlmUnavailable, message, Executed::No)
            }
            408 | 500.. => {
                let message =
                    format!("The provider {name} failed with the status {}.", self.status);
                (Code::LlmUnavailable, message, Executed::Maybe)
            }
            // What is said here tells parts of the key.
            401 | 403 if has_key => {
                let message = format!(
                    "The provider {name} did not take the key; set another with \
                     `wharf secret set`."
                );
                (Code::LlmUnauthorized, message, Executed::No)
            }
            401 | 403 => {
                let message = format!(
                    "The provider {name} wants a key; name its secret as `key` of the provider \
                     in wharf.toml."
                );
                (Code::LlmUnauthorized, message, Executed::No)
            }
            status => {
                let words = said(format!("it answered {status}"));
                (Code::LlmRefused, format!("The provider {name} refused: {words}"), Executed::No)
            }
        };
        let mut failure = CallFailure::new(code, message, executed);
        failure.fault = failure.fault.with("status", self.status);
        if let Some(pause) = self.retry_after.filter(|_| self.is_not_now()) {
            // The core's own pauses are shorter than what the provider wishes.
            failure.fault.retryable = false;
            failure.fault = failure.fault.with("retry_after_s", pause.as_secs());
        }
        failure
    }
}

/// A provider's own words in one line, unless they hold the key.
fn words(said: &str, key: Option<&Secret>) -> Option<String> {
    let key = key.map(|key| String::from_utf8_lossy(key.expose().trim_ascii()).into_owned());
    if key.is_some_and(|key| !key.is_empty() && said.contains(&key)) {
        return None;
    }
    let line = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut: String = line.chars().filter(|c| !c.is_control()).take(WORDS_CHARS_MAX).collect();
    (!cut.is_empty()).then_some(cut)
}
