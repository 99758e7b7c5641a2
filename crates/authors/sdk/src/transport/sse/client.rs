//! The side that connects: it reads events and posts messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures::task::AtomicWaker;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::{CancellationToken, PollSender};
use wharf_protocol::sse::{Parser, SseMessage};
use wharf_vocab::Backoff;

use crate::transport::dial::dial;
use crate::transport::link::{Frames, LinkBroken};
use crate::transport::{Address, Error, Options};

/// Frames that may wait in one direction.
const WAITING_MAX: usize = 64;
/// Silences of a stream that may follow each other before it is taken for broken.
const SILENT_MAX: u32 = 3;
/// Bytes of an answer that are read.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// The first wait before something is tried again.
const AGAIN: Duration = Duration::from_millis(50);

/// What is said last, so that nobody waits for another reader. Peers that do not know it ignore it.
const FAREWELL: &str = r#"{"type":"closed","code":1000,"reason":"closed"}"#;

type Sender = SendRequest<Full<Bytes>>;

/// Frames over server-sent events and POST.
pub(super) struct Client {
    events: mpsc::Receiver<String>,
    posts: PollSender<String>,
    sent: u64,
    posted: Arc<PostCount>,
    /// The farewell was taken over.
    leaving: bool,
    /// They end with this.
    _tasks: JoinSet<()>,
}

/// How many messages were posted.
#[derive(Default)]
struct PostCount {
    count: AtomicU64,
    task: AtomicWaker,
}

/// Where and how requests go.
#[derive(Clone)]
struct RequestTarget {
    address: Address,
    options: Options,
    bearer: Option<HeaderValue>,
}

impl Client {
    /// Opens the stream of events.
    pub(super) async fn connect(address: Address, options: &Options) -> Result<Self, Error> {
        let bearer = options.token.as_ref().map(|token| {
            let mut bearer = HeaderValue::from_str(&format!("Bearer {token}"))?;
            bearer.set_sensitive(true);
            Ok(bearer)
        });
        let unfit = |_: hyper::header::InvalidHeaderValue| Error::Address {
            address: address.to_string(),
            why: "the token cannot be sent",
        };
        let bearer = bearer.transpose().map_err(unfit)?;
        let target = RequestTarget { address, options: options.clone(), bearer };
        let stream = target.open(None).await?;
        let (events_in, events) = mpsc::channel(WAITING_MAX);
        let (posts, posts_out) = mpsc::channel(WAITING_MAX);
        let posted = Arc::new(PostCount::default());
        let reader = SseEventReader {
            target: target.clone(),
            parser: Parser::new(options.limits.frame_bytes_max + 1024),
            last: None,
            events: events_in,
            posted: Arc::clone(&posted),
        };
        let poster = Poster { target, sender: None, posted: Arc::clone(&posted) };
        // Either is of no use without the other.
        let broken = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(until(broken.clone(), reader.run(stream)));
        tasks.spawn(until(broken, poster.run(posts_out)));
        let posts = PollSender::new(posts);
        Ok(Self { events, posts, sent: 0, posted, leaving: false, _tasks: tasks })
    }
}

impl Frames for Client {
    type Text = String;

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<String>> {
        self.events.poll_recv(cx)
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkBroken>> {
        self.posts.poll_reserve(cx).map_err(|_| LinkBroken)
    }

    fn send(&mut self, frame: String) -> Result<(), LinkBroken> {
        self.sent += 1;
        self.posts.send_item(frame).map_err(|_| LinkBroken)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkBroken>> {
        self.posted.task.register(cx.waker());
        if self.posted.count.load(Ordering::Acquire) == self.sent {
            return Poll::Ready(Ok(()));
        }
        Poll::Pending
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        if !self.leaving {
            if ready!(self.poll_ready(cx)).and_then(|()| self.send(FAREWELL.to_owned())).is_err() {
                return Poll::Ready(false);
            }
            self.leaving = true;
        }
        self.poll_flush(cx).map(|_| false)
    }
}

/// Does something until it ends or something else has; either way the other ends, too.
async fn until(broken: CancellationToken, work: impl Future<Output = ()>) {
    let _broken = broken.clone().drop_guard();
    broken.run_until_cancelled(work).await;
}

impl RequestTarget {
    /// A connection for requests.
    async fn dial(&self) -> Result<Sender, Error> {
        let io = dial(&self.address, &self.options).await?;
        let broken = |error: hyper::Error| Error::Protocol { why: error.to_string() };
        let (sender, connection) = http1::handshake(TokioIo::new(io)).await.map_err(broken)?;
        // It ends when nobody can send on it any more.
        tokio::spawn(connection);
        Ok(sender)
    }

    fn request(&self, method: Method, body: Bytes) -> Result<Request<Full<Bytes>>, Error> {
        let mut request = Request::builder()
            .method(method)
            .uri(self.address.target())
            .header(HOST, self.address.authority());
        if let Some(bearer) = &self.bearer {
            request = request.header(AUTHORIZATION, bearer);
        }
        let unfit =
            |_| Error::Address { address: self.address.to_string(), why: "it cannot be asked for" };
        request.body(Full::new(body)).map_err(unfit)
    }

    /// Opens the stream of events behind the last that was seen.
    async fn open(&self, last: Option<u64>) -> Result<Incoming, Error> {
        let mut request = self.request(Method::GET, Bytes::new())?;
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(last) = last {
            headers.insert("last-event-id", HeaderValue::from(last));
        }
        let mut sender = self.dial().await?;
        let late = |_| Error::Timeout { address: self.address.authority() };
        let broken = |error: hyper::Error| Error::Protocol { why: error.to_string() };
        let sent = timeout(self.options.connect_max, sender.send_request(request)).await;
        let response = sent.map_err(late)?.map_err(broken)?;
        if response.status() != StatusCode::OK {
            let status = response.status().as_u16();
            let message = crate::transport::dial::refusal(&answer_of(response).await);
            return Err(Error::Refused { status, message });
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if !kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
            return Err(Error::Protocol { why: "it sends no events".to_owned() });
        }
        Ok(response.into_body())
    }
}

async fn answer_of(response: Response<Incoming>) -> Bytes {
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
    body.map(|body| body.to_bytes()).unwrap_or_default()
}

/// Whoever reads events.
struct SseEventReader {
    target: RequestTarget,
    parser: Parser,
    /// The number of the last event.
    last: Option<u64>,
    events: mpsc::Sender<String>,
    posted: Arc<PostCount>,
}

/// How a stream ended.
enum StreamEnd {
    /// It broke off and can be resumed.
    Broke,
    /// The session is over.
    Over,
}

impl SseEventReader {
    async fn run(mut self, mut stream: Incoming) {
        loop {
            if let StreamEnd::Over = self.read(stream).await {
                return;
            }
            // Without a number to go on from, something may have been missed that is waited for.
            if self.last.is_none() && self.posted.count.load(Ordering::Acquire) > 0 {
                return;
            }
            let Some(resumed) = self.resume().await else { return };
            stream = resumed;
        }
    }

    /// Reads a stream to its end.
    async fn read(&mut self, mut stream: Incoming) -> StreamEnd {
        // What was half read when a stream broke off comes again in whole.
        self.parser = Parser::new(self.target.options.limits.frame_bytes_max + 1024);
        loop {
            let silence = self.target.options.keep_alive * SILENT_MAX;
            let Ok(Some(Ok(frame))) = timeout(silence, stream.frame()).await else {
                return StreamEnd::Broke;
            };
            let Some(bytes) = frame.data_ref() else { continue };
            if self.parser.push(bytes).is_err() {
                return StreamEnd::Over;
            }
            while let Some(event) = self.parser.pop() {
                if !self.pass(event).await {
                    return StreamEnd::Over;
                }
            }
        }
    }

    /// Passes an event on; `false` if there is nothing more to come.
    async fn pass(&mut self, SseMessage { id, data, .. }: SseMessage) -> bool {
        let number = id.and_then(|id| id.parse().ok());
        if number.is_some() && number <= self.last {
            // It was seen before the stream broke off.
            return true;
        }
        self.last = number.or(self.last);
        // A farewell, or events that are lost for good.
        if is_end(&data) {
            return false;
        }
        self.events.send(data).await.is_ok()
    }

    /// Opens the stream again, as long as the session may still be there.
    async fn resume(&self) -> Option<Incoming> {
        let until = Instant::now() + self.target.options.unread_max;
        let mut backoff = Backoff::new(AGAIN, Duration::from_secs(2));
        loop {
            match self.target.open(self.last).await {
                Ok(stream) => return Some(stream),
                Err(error) if error.is_passing() || matches!(error, Error::Protocol { .. }) => {}
                Err(_) => return None,
            }
            let pause = backoff.pause();
            if Instant::now() + pause > until {
                return None;
            }
            sleep(pause).await;
        }
    }
}

/// Whether a frame says that the session is over, however its keys are ordered.
fn is_end(data: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct EventHead<'a> {
        #[serde(rename = "type", borrow)]
        what: Option<std::borrow::Cow<'a, str>>,
        kind: Option<serde::de::IgnoredAny>,
    }
    // Only short frames can be one, and only those are worth a second look.
    data.len() < 1024
        && serde_json::from_str(data).is_ok_and(|head: EventHead<'_>| {
            head.kind.is_none() && head.what.is_some_and(|what| what == "closed" || what == "gap")
        })
}

/// Whoever posts messages, one after the other so that they stay in order.
struct Poster {
    target: RequestTarget,
    sender: Option<Sender>,
    posted: Arc<PostCount>,
}

impl Poster {
    async fn run(mut self, mut posts: mpsc::Receiver<String>) {
        while let Some(message) = posts.recv().await {
            if self.post(Bytes::from(message)).await.is_err() {
                break;
            }
            self.posted.count.fetch_add(1, Ordering::AcqRel);
            self.posted.task.wake();
        }
        drop(posts);
        self.posted.task.wake();
    }

    /// Posts a message. It is sent again only if it certainly was not taken.
    async fn post(&mut self, message: Bytes) -> Result<(), LinkBroken> {
        let until = Instant::now() + self.target.options.unread_max;
        let mut backoff = Backoff::new(AGAIN, Duration::from_secs(1));
        while Instant::now() < until {
            match self.attempt(message.clone()).await? {
                Some(status) if status.is_success() => return Ok(()),
                Some(StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) | None => {}
                Some(_) => return Err(LinkBroken),
            }
            sleep(backoff.pause()).await;
        }
        Err(LinkBroken)
    }

    /// Tries once; `None` if nothing was sent, `Err` if nobody knows.
    async fn attempt(&mut self, message: Bytes) -> Result<Option<StatusCode>, LinkBroken> {
        let mut request = self.target.request(Method::POST, message).map_err(|_| LinkBroken)?;
        let json = HeaderValue::from_static("application/json");
        request.headers_mut().insert(CONTENT_TYPE, json);
        if let Some(sender) = &mut self.sender
            && sender.ready().await.is_err()
        {
            self.sender = None;
        }
        let sender = match &mut self.sender {
            Some(sender) => sender,
            None => match self.target.dial().await {
                Ok(sender) => self.sender.insert(sender),
                Err(_) => return Ok(None),
            },
        };
        let response = match sender.try_send_request(request).await {
            Ok(response) => response,
            Err(mut error) => {
                self.sender = None;
                return if error.take_message().is_some() { Ok(None) } else { Err(LinkBroken) };
            }
        };
        let status = response.status();
        // The connection is good for the next message once this answer was read.
        answer_of(response).await;
        Ok(Some(status))
    }
}
