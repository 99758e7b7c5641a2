//! Requests to storage: only to allowed origins, with patience that ends.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use reqwest::header::LOCATION;
use reqwest::{
    Certificate, Client, ClientBuilder, Method, Proxy, RequestBuilder, Response, StatusCode, Url,
};
use wharf_wire::run_v1::code;

use super::names::{self, FORBIDDEN, Names};
use super::origin::{self, Origins};
use super::pulse::StallWatch;
use super::{Policy, Resolve, TransferTrouble};
use crate::Failure;

/// How many redirects are followed.
const REDIRECTS_MAX: usize = 5;
/// How much of an answer that says no is read.
const REFUSAL_BYTES_MAX: usize = 16 * 1024;
/// The longest pause between tries.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// How long a connection may take to be there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The way to storage.
#[derive(Debug)]
pub(super) struct StorageClient {
    pub(super) origins: Origins,
    client: Client,
    names: Names,
    byte_timeout: Duration,
    tries: u32,
    pause: Duration,
}

impl StorageClient {
    /// Gets ready; nothing is sent yet.
    pub(super) fn new(policy: &Policy, resolve: Arc<dyn Resolve>) -> Result<Self, Failure> {
        let names = Names::new(resolve, policy.private_names, policy.proxy.is_some());
        Ok(Self {
            origins: Origins::new(policy)?,
            client: client(policy, names.clone())?,
            names,
            byte_timeout: policy.byte_timeout,
            tries: policy.tries.max(1),
            pause: policy.pause,
        })
    }

    /// Says before anything is sent whether an address may be reached.
    pub(super) async fn check(&self, url: &Url) -> Result<(), TransferTrouble> {
        self.origins.check(url)?;
        match origin::name(url) {
            Some(name) => self.names.check(name).await,
            None => Ok(()),
        }
    }

    /// Patience for one request.
    pub(super) fn pulse(&self) -> StallWatch {
        StallWatch::new(self.byte_timeout)
    }

    /// Makes a request and takes the head of its answer, which is one that says yes. Redirects
    /// are followed within the origin.
    pub(super) async fn request(
        &self,
        method: Method,
        url: &Url,
        pulse: &StallWatch,
        complete: impl Fn(RequestBuilder) -> RequestBuilder,
    ) -> Result<Response, TransferTrouble> {
        let mut target = url.clone();
        for _ in 0..=REDIRECTS_MAX {
            self.origins.check(&target)?;
            let request = complete(self.client.request(method.clone(), target.clone()));
            let answer = match pulse.watch(request.send()).await {
                Some(Ok(answer)) => answer,
                Some(Err(error)) => return Err(lost(error)),
                None => return Err(TransferTrouble::passing("storage did not move on in time")),
            };
            if answer.status().is_success() {
                return Ok(answer);
            }
            target = match redirected(&answer, &method) {
                Some(location) => {
                    let next = target.join(&location);
                    let next =
                        next.map_err(|_| TransferTrouble::egress("its storage leads nowhere"))?;
                    if next.origin() != target.origin() {
                        return Err(TransferTrouble::egress("its storage leads to another origin"));
                    }
                    if !next.username().is_empty() || next.password().is_some() {
                        return Err(TransferTrouble::egress(
                            "its storage leads to an address with a user",
                        ));
                    }
                    next
                }
                None => return Err(self.refused(answer, url).await),
            };
        }
        Err(TransferTrouble::egress("its storage leads in circles"))
    }

    /// Whether to try once more after so many tries without progress; waits first.
    pub(super) async fn again(
        &self,
        trouble: TransferTrouble,
        tried: u32,
        url: &Url,
    ) -> Result<(), TransferTrouble> {
        if !trouble.may_pass || tried >= self.tries {
            return Err(trouble);
        }
        let pause = self.pause_after(tried);
        if is_over(url, pause) {
            return Err(TransferTrouble::new(
                code::STORAGE_EXPIRED,
                "its address was good no more",
            ));
        }
        tokio::time::sleep(pause).await;
        Ok(())
    }

    /// The next pause. Chance keeps many servers from trying at one moment.
    fn pause_after(&self, tried: u32) -> Duration {
        let longest = self.pause.saturating_mul(1 << tried.saturating_sub(1).min(10));
        let longest = longest.min(PAUSE_MAX);
        let mut chance = [0_u8];
        // Without chance the pause is merely the shortest.
        let _ = getrandom::fill(&mut chance);
        longest / 2 + longest * u32::from(chance[0]) / 512
    }

    /// What an answer that says no means.
    async fn refused(&self, mut answer: Response, url: &Url) -> TransferTrouble {
        let status = answer.status();
        let pulse = self.pulse();
        let mut said = Vec::new();
        while let Some(Ok(Some(piece))) = pulse.watch(answer.chunk()).await {
            let room = REFUSAL_BYTES_MAX - said.len();
            said.extend_from_slice(&piece[..piece.len().min(room)]);
            if said.len() == REFUSAL_BYTES_MAX {
                break;
            }
            pulse.beat(Duration::ZERO);
        }
        refusal(status, &String::from_utf8_lossy(&said), is_over(url, Duration::ZERO))
    }
}

/// What a status and the text with it mean.
fn refusal(status: StatusCode, said: &str, is_over: bool) -> TransferTrouble {
    let element = |name: &str| {
        let (_, rest) = said.split_once(&format!("<{name}>"))?;
        Some(rest.split_once("</")?.0)
    };
    let error = element("Code").unwrap_or_default();
    let message = element("Message").unwrap_or_default().to_ascii_lowercase();
    let is_expired = matches!(error, "ExpiredToken" | "RequestExpired" | "ExpiredPresignRequest")
        || message.contains("expired");
    match status.as_u16() {
        400 | 401 | 403 if is_expired || (is_over && status != StatusCode::BAD_REQUEST) => {
            TransferTrouble::new(code::STORAGE_EXPIRED, "its address is good no more")
        }
        401 | 403 => TransferTrouble::new(code::STORAGE_DENIED, "storage refused its address"),
        404 | 410 => TransferTrouble::new(code::NOT_FOUND, "storage has nothing there"),
        400 if error == "RequestTimeout" => TransferTrouble::passing("storage lost patience"),
        408 | 425 | 429 | 500 | 502 | 503 | 504 => {
            TransferTrouble::passing("storage is in trouble or overloaded")
        }
        507 => TransferTrouble::new(code::STORAGE, "storage is full"),
        _ => TransferTrouble::new(code::STORAGE, "storage refused the request"),
    }
}

/// Where an answer sends whoever asked, if it keeps the method.
fn redirected(answer: &Response, method: &Method) -> Option<String> {
    let keeps_method = match answer.status().as_u16() {
        307 | 308 => true,
        301 | 302 => *method == Method::GET,
        _ => false,
    };
    let location = answer.headers().get(LOCATION)?.to_str().ok()?;
    keeps_method.then(|| location.to_owned())
}

/// What it means that no answer came.
pub(super) fn lost(error: reqwest::Error) -> TransferTrouble {
    if names::is_forbidden(&error) {
        return FORBIDDEN;
    }
    // The address is a capability, so it leaves the error before anybody reads it.
    let error = error.without_url();
    tracing::debug!(error = &error as &dyn std::error::Error, "storage was lost");
    if error.is_connect() {
        TransferTrouble::passing("storage cannot be reached")
    } else {
        TransferTrouble::passing("the connection to storage broke off")
    }
}

/// The client, which trusts the authorities of this machine. Where a sandbox shows none of them, it
/// trusts those that were given to it and no others, and whatever is not encrypted can be reached.
fn client(policy: &Policy, names: Names) -> Result<Client, Failure> {
    // Whoever comes second finds it installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let trusted = trusted(policy)?;
    let made = builder(policy, names.clone())?.tls_certs_merge(trusted.clone()).build();
    made.or_else(|error| {
        tracing::debug!(error = &error as &dyn std::error::Error, "no authorities can be read");
        builder(policy, names)
            .and_then(|it| it.tls_certs_only(trusted).build().map_err(|_| unfit("no client works")))
    })
}

fn builder(policy: &Policy, names: Names) -> Result<ClientBuilder, Failure> {
    let client = Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .tcp_nodelay(true)
        .connect_timeout(CONNECT_TIMEOUT.min(policy.byte_timeout))
        .dns_resolver(Arc::new(names));
    let Some(proxy) = &policy.proxy else { return Ok(client) };
    let proxy = Proxy::all(proxy).map_err(|_| unfit("the address of the way out is none"))?;
    Ok(client.proxy(proxy))
}

/// The certificates that are trusted besides.
fn trusted(policy: &Policy) -> Result<Vec<Certificate>, Failure> {
    let Some(path) = &policy.trusted else { return Ok(Vec::new()) };
    let pem = std::fs::read(path).map_err(|_| unfit("the trusted certificates are not there"))?;
    Certificate::from_pem_bundle(&pem).map_err(|_| unfit("the trusted certificates are none"))
}

fn unfit(why: &str) -> Failure {
    Failure::new(code::EGRESS, format!("Storage cannot be used: {why}."))
}

/// When an address ends, if it says so.
fn ends_at(url: &Url) -> Option<SystemTime> {
    let field = |wanted: &str| {
        let mut fields = url.query_pairs();
        fields.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value)
    };
    let lifetime_s: u64 = field("X-Amz-Expires")?.parse().ok()?;
    let date = DateTime::strptime("%Y%m%dT%H%M%SZ", field("X-Amz-Date")?.as_ref()).ok()?;
    let signed = date.to_zoned(TimeZone::UTC).ok()?;
    let since_epoch = u64::try_from(signed.timestamp().as_second()).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(since_epoch.checked_add(lifetime_s)?))
}

/// Whether an address is good no more, as far as it says so.
fn is_over(url: &Url, after: Duration) -> bool {
    ends_at(url).is_some_and(|end| SystemTime::now() + after >= end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t029_what_storage_says_becomes_a_code() {
        let xml = |code: &str, message: &str| {
            format!("<?xml?><Error><Code>{code}</Code><Message>{message}</Message></Error>")
        };
        for (status, said, is_over, expected, may_pass) in [
            (403, xml("AccessDenied", "Access Denied"), false, code::STORAGE_DENIED, false),
            (403, xml("AccessDenied", "Request has expired"), false, code::STORAGE_EXPIRED, false),
            (400, xml("ExpiredToken", "No more."), false, code::STORAGE_EXPIRED, false),
            (403, xml("SignatureDoesNotMatch", ""), true, code::STORAGE_EXPIRED, false),
            (403, String::new(), false, code::STORAGE_DENIED, false),
            (401, "<Code>".to_owned(), false, code::STORAGE_DENIED, false),
            (404, xml("NoSuchKey", ""), true, code::NOT_FOUND, false),
            (500, xml("InternalError", ""), false, code::STORAGE, true),
            (503, xml("SlowDown", ""), false, code::STORAGE, true),
            (400, xml("RequestTimeout", ""), false, code::STORAGE, true),
            (400, xml("EntityTooLarge", ""), true, code::STORAGE, false),
            (412, String::new(), false, code::STORAGE, false),
            (304, String::new(), false, code::STORAGE, false),
        ] {
            let status = StatusCode::from_u16(status).expect("a status");
            let trouble = refusal(status, &said, is_over);
            assert_eq!((trouble.code, trouble.may_pass), (expected, may_pass), "{status} {said}");
        }
    }

    #[test]
    fn t029_the_lifetime_of_an_address_is_read_from_it() {
        let at = |query: &str| {
            let url = Url::parse(&format!("https://s3.example/x?{query}")).expect("an address");
            let end = ends_at(&url)?;
            Some(end.duration_since(SystemTime::UNIX_EPOCH).expect("later").as_secs())
        };
        let signed = "X-Amz-Date=20260102T030405Z&X-Amz-Expires=3600";
        assert_eq!(at(signed), Some(1_767_323_045 + 3_600));
        assert_eq!(at("x-amz-expires=60&x-amz-date=19700101T000000Z"), Some(60));
        for none in [
            "",
            "X-Amz-Expires=3600",
            "X-Amz-Date=20260102T030405Z",
            "X-Amz-Date=yesterday&X-Amz-Expires=1",
            "X-Amz-Date=20261302T030405Z&X-Amz-Expires=1",
            "X-Amz-Date=20260102T030405Z&X-Amz-Expires=-1",
            "X-Amz-Date=20260102T030405Z&X-Amz-Expires=99999999999999999999",
            "X-Amz-Date=20260102T030405Z&X-Amz-Expires=18446744073709551615",
        ] {
            assert_eq!(at(none), None, "{none}");
        }
    }
}
