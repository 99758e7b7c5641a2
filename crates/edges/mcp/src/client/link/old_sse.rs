//! A server elsewhere that speaks HTTP with server-sent events of 2024-11-05.
//!
//! One stream carries all that the server says. It begins by naming the address that messages are
//! posted to, which has to be of the same origin. There is no way to take a stream up again: when
//! it ends, everything is lost.

use std::time::Duration;

use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use url::Url;
use wharf_hosting::Tasks;
use wharf_vocab::{Code, Executed, Fault};
use wharf_wire::mcp_v1::{McpId, McpMessage};

use super::dial::DialRequest;
use super::http::events::{BodyKind, EventStream, kind_of};
use super::rights::{HttpFailure, UpstreamHttp};
use super::{LinkEnd, LinkNews, LinkOrder, UpstreamLink};

/// How long a server may take to name the address for messages.
const ENDPOINT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a server may take to acknowledge a message.
const POST_TIMEOUT: Duration = Duration::from_secs(60);
/// Messages that may be on their way at once; the sessions allow fewer.
const POSTS_MAX: usize = 256;

/// A way to a server of 2024-11-05. It ends when its stream or the other end does.
pub(crate) fn open(tasks: &Tasks, server: UpstreamHttp) -> UpstreamLink {
    let (link, LinkEnd { orders, news }) = UpstreamLink::new();
    tasks.spawn("talking to a server by its stream", async move {
        let why = drive(&server, orders, &news).await;
        // Whoever drove the session may be gone.
        let _ = news.send(LinkNews::Ended(why)).await;
    });
    link
}

async fn drive(
    server: &UpstreamHttp,
    mut orders: mpsc::Receiver<LinkOrder>,
    news: &mpsc::Sender<LinkNews>,
) -> String {
    let begun = tokio::select! {
        () = news.closed() => return String::new(),
        begun = tokio::time::timeout(ENDPOINT_TIMEOUT, begin(server)) => begun,
    };
    let (mut events, endpoint) = match begun {
        Ok(Ok(begun)) => begun,
        Ok(Err(why)) => return why,
        Err(_) => return "did not name the address for messages in time".to_owned(),
    };
    let mut posts = JoinSet::new();
    loop {
        tokio::select! {
            order = orders.recv(), if posts.len() < POSTS_MAX => match order {
                Some(LinkOrder::Send(send)) => {
                    let (server, endpoint, news) = (server.clone(), endpoint.clone(), news.clone());
                    posts.spawn(post(server, endpoint, send.message, news));
                }
                // What nobody waits for is not told from the rest of the stream.
                Some(LinkOrder::Forget(_) | LinkOrder::Agreed(_)) => {}
                None => return "is not talked to any more".to_owned(),
            },
            Some(_) = posts.join_next() => {}
            text = events.next() => match text {
                Ok(Some(text)) => {
                    if news.send(LinkNews::Message { of: None, text }).await.is_err() {
                        return String::new();
                    }
                }
                Ok(None) => return "closed its stream".to_owned(),
                Err(_) => return "sent a message that is too large to be kept".to_owned(),
            },
            () = news.closed() => return String::new(),
        }
    }
}

/// Opens the stream and reads the address that messages are posted to.
async fn begin(server: &UpstreamHttp) -> Result<(EventStream, Url), String> {
    let request = DialRequest::new(Method::GET, server.address().url().clone())
        .header(ACCEPT, HeaderValue::from_static("text/event-stream"));
    let answer = match server.send(request).await {
        Ok(answer) => answer,
        Err(HttpFailure::Dial(failure)) => return Err(format!("does not answer: {}", failure.why)),
        Err(HttpFailure::Rights(fault)) => return Err(format!("lets nobody in: {fault}")),
    };
    if !answer.status().is_success() || kind_of(&answer) != BodyKind::Events {
        return Err(format!("opens no stream (HTTP {})", answer.status().as_u16()));
    }
    let mut events = EventStream::new(answer, None);
    loop {
        match events.next_named().await {
            Ok(Some((name, place))) if name == "endpoint" => {
                let url = server.address().named(&place).ok();
                let url = url.filter(|url| server.address().is_origin_of(url));
                let url = url.ok_or("names an address for messages that is not its own")?;
                return Ok((events, url));
            }
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => return Err("names no address for messages".to_owned()),
        }
    }
}

async fn post(server: UpstreamHttp, to: Url, message: McpMessage, news: mpsc::Sender<LinkNews>) {
    let request = DialRequest::new(Method::POST, to)
        .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
        .body(message.write());
    let sent = tokio::time::timeout(POST_TIMEOUT, server.send(request)).await;
    let McpMessage::Request { id, .. } = message else { return };
    let told = match sent {
        Ok(Ok(answer)) if answer.status().is_success() => return,
        Ok(Ok(answer)) => LinkNews::Refused { id, status: answer.status().as_u16(), error: None },
        Ok(Err(HttpFailure::Rights(fault))) => LinkNews::Failed { id, fault },
        Ok(Err(HttpFailure::Dial(failure))) if failure.executed == Executed::No => {
            unreached(id, failure.why)
        }
        Ok(Err(HttpFailure::Dial(_))) | Err(_) => LinkNews::Lost { id },
    };
    let _ = news.send(told).await;
}

/// The server was not reached with a request, which did not run.
pub(super) fn unreached(id: McpId, why: &str) -> LinkNews {
    let message = format!("The MCP server does not answer: {why}.");
    let fault = Fault::new(Code::ToolUnavailable, message).executed(Executed::No);
    LinkNews::Failed { id, fault }
}
