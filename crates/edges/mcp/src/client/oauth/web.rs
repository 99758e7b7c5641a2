//! Requests to a server and to whoever it names, within a time and a size.

use std::time::Duration;

use reqwest::Method;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use url::Url;
use url::form_urlencoded::Serializer;

use super::super::link::address::UpstreamAddress;
use super::super::link::dial::{DialRequest, SecretHeaders, UpstreamDial, read_body};
use super::super::link::rights::RightsRefusal;
use super::LoginFailure;
use super::challenge::Challenge;

/// Largest document.
pub(super) const DOCUMENT_BYTES_MAX: usize = 128 * 1024;

/// Reaches the server and whoever it names.
#[derive(Debug, Clone)]
pub(super) struct LoginWeb {
    dial: UpstreamDial,
    /// How long one request may take, the reading of its answer included.
    patience: Duration,
}

/// An answer that was read whole.
pub(super) struct WebAnswer {
    pub(super) status: u16,
    body: Vec<u8>,
}

impl WebAnswer {
    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// What it says; an error that names what was expected.
    pub(super) fn read<T: DeserializeOwned>(&self, what: &str) -> Result<T, LoginFailure> {
        serde_json::from_slice(&self.body)
            .map_err(|_| LoginFailure::new(format!("{what} cannot be read")))
    }
}

impl LoginWeb {
    pub(super) fn new(dial: UpstreamDial, patience: Duration) -> Self {
        Self { dial, patience }
    }

    /// The server's address.
    pub(super) fn server(&self) -> &UpstreamAddress {
        self.dial.address()
    }

    /// An address that somebody named for something, if it may be reached.
    pub(super) fn named(&self, text: &str, what: &str) -> Result<Url, LoginFailure> {
        let judged = self.server().elsewhere(text);
        judged.map_err(|why| LoginFailure::new(format!("{what} cannot be used: {why}")))
    }

    /// A document; `None` if there is none.
    pub(super) async fn document<T: DeserializeOwned>(
        &self,
        url: Url,
        what: &str,
    ) -> Result<Option<T>, LoginFailure> {
        let answer = self.send(DialRequest::new(Method::GET, url), what).await?;
        match answer.status {
            200..300 => answer.read(what).map(Some),
            300..500 => Ok(None),
            status => Err(LoginFailure::new(format!("{what} was answered with {status}"))),
        }
    }

    /// Posts a form.
    pub(super) async fn form(
        &self,
        url: Url,
        form: &[(&str, &str)],
        authorization: Option<HeaderValue>,
        what: &str,
    ) -> Result<WebAnswer, LoginFailure> {
        let body = Serializer::new(String::new()).extend_pairs(form).finish();
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        let request = DialRequest::new(Method::POST, url).header(CONTENT_TYPE, kind).body(body);
        let request = match authorization {
            Some(value) => request.header(AUTHORIZATION, value),
            None => request,
        };
        self.send(request, what).await
    }

    /// Posts JSON.
    pub(super) async fn json(
        &self,
        url: Url,
        body: &Value,
        what: &str,
    ) -> Result<WebAnswer, LoginFailure> {
        let kind = HeaderValue::from_static("application/json");
        let request = DialRequest::new(Method::POST, url).header(CONTENT_TYPE, kind);
        self.send(request.body(body.to_string()), what).await
    }

    /// What the server says to somebody without a token.
    pub(super) async fn challenge(&self) -> Challenge {
        let url = self.server().url().clone();
        let both = HeaderValue::from_static("application/json, text/event-stream");
        let kind = HeaderValue::from_static("application/json");
        let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
        let request = DialRequest::new(Method::POST, url)
            .header(ACCEPT, both)
            .header(CONTENT_TYPE, kind)
            .body(ping.to_string());
        let nobody = SecretHeaders::default();
        let sending = self.dial.send(request, &nobody);
        // Whoever says nothing of use has its documents at the known places.
        let Ok(Ok(answer)) = tokio::time::timeout(self.patience, sending).await else {
            return Challenge::default();
        };
        let refusal = RightsRefusal::of(&answer);
        refusal.and_then(|refusal| Challenge::of(&refusal)).unwrap_or_default()
    }

    async fn send(&self, request: DialRequest, what: &str) -> Result<WebAnswer, LoginFailure> {
        let request = match request.headers.contains_key(ACCEPT) {
            true => request,
            false => request.header(ACCEPT, HeaderValue::from_static("application/json")),
        };
        let nobody = SecretHeaders::default();
        let sending = async {
            let answer = self.dial.send(request, &nobody).await.map_err(|failure| failure.why)?;
            let status = answer.status().as_u16();
            let body = read_body(answer, DOCUMENT_BYTES_MAX).await;
            let body = body.ok_or("the answer is too large or broke off")?;
            Ok(WebAnswer { status, body })
        };
        let answered = tokio::time::timeout(self.patience, sending).await;
        answered
            .unwrap_or(Err("the answer takes too long"))
            .map_err(|why: &str| LoginFailure::new(format!("{what} did not arrive: {why}")))
    }
}
