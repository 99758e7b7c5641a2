//! Where to export, and as whom.

use std::fmt;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use url::Url;
use wharf_domain::trace::Sampling;

/// What is behind the address of a collector when that names the collector alone.
const TRACES_PATH: &str = "v1/traces";

/// How traces are exported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TelemetryOptions {
    /// The collector.
    pub endpoint: CollectorEndpoint,
    /// What the core is called among services.
    pub service_name: String,
    /// What else is said of it.
    pub resource: Vec<(String, String)>,
    /// Which traces are recorded that begin here.
    pub sampling: Sampling,
    /// How long the collector may take to answer.
    pub timeout: Duration,
}

/// Where traces are posted to, and what proves who posts them.
#[derive(Clone, PartialEq, Eq)]
pub struct CollectorEndpoint {
    url: Url,
    headers: HeaderMap,
}

/// Why an address or a header cannot be used; in words that hold no secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnfitEndpoint(pub &'static str);

impl fmt::Debug for CollectorEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CollectorEndpoint").field(&self.shown()).finish()
    }
}

impl CollectorEndpoint {
    /// A collector by its address, such as `http://127.0.0.1:4318`.
    pub fn of_collector(text: &str) -> Result<Self, UnfitEndpoint> {
        let mut endpoint = Self::of_traces(text)?;
        let path = endpoint.url.path().trim_end_matches('/');
        let path = format!("{path}/{TRACES_PATH}");
        endpoint.url.set_path(&path);
        Ok(endpoint)
    }

    /// An address that takes traces as it stands.
    pub fn of_traces(text: &str) -> Result<Self, UnfitEndpoint> {
        let unfit = UnfitEndpoint("must be an address such as http://127.0.0.1:4318");
        let url = Url::parse(text).map_err(|_| unfit)?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(unfit);
        }
        if !url.username().is_empty() || url.password().is_some() {
            let why = "must not hold a password; set it in OTEL_EXPORTER_OTLP_HEADERS";
            return Err(UnfitEndpoint(why));
        }
        Ok(Self { url, headers: HeaderMap::new() })
    }

    /// The same with one more header of each request.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, UnfitEndpoint> {
        let unfit = UnfitEndpoint("must be pairs such as authorization=Bearer%20TOKEN");
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unfit)?;
        let mut value = HeaderValue::from_str(value).map_err(|_| unfit)?;
        value.set_sensitive(true);
        self.headers.insert(name, value);
        Ok(self)
    }

    /// The address as people read it: without a query, which may hold a key.
    #[must_use]
    pub fn shown(&self) -> String {
        let mut shown = self.url.clone();
        shown.set_query(None);
        shown.set_fragment(None);
        shown.to_string()
    }

    pub(crate) fn url(&self) -> Url {
        self.url.clone()
    }

    pub(crate) fn headers(&self) -> HeaderMap {
        self.headers.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_completed_and_shown_without_secrets() {
        for (text, shown) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces"),
            ("https://otel.example/in/?key=s3cret", "https://otel.example/in/v1/traces"),
        ] {
            let endpoint = CollectorEndpoint::of_collector(text).expect(text);
            let endpoint = endpoint.with_header("x-key", "s3cret").expect("a header");
            assert_eq!(endpoint.shown(), shown);
            assert!(!format!("{endpoint:?}").contains("s3cret"), "{endpoint:?}");
        }
        let plain = CollectorEndpoint::of_traces("http://h:1/own").expect("an address");
        assert_eq!(plain.shown(), "http://h:1/own");
        for wrong in ["", "127.0.0.1:4318", "grpc://h:4317", "http://", "http://u:p@h:1", "unix:/x"]
        {
            assert!(CollectorEndpoint::of_collector(wrong).is_err(), "{wrong}");
        }
        assert!(plain.with_header("a b", "c").is_err());
    }
}
