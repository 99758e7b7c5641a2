//! `wharf mcp login`: a person logs in to a server elsewhere.
//!
//! The core finds the place and keeps what comes of it. Here the page is opened, and where it leads
//! back to is listened for on this machine, for one answer with the right state.

use std::time::Duration;

use reqwest::Url;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use wharf_client::Client;
use wharf_vocab::Code;
use wharf_wire::rest_v1::{BeginMcpLogin, EndMcpLogin, McpLoginPage};

use crate::amount;
use crate::commands::{CliError, Context, Exit, Output, Result};
use crate::plain;
use crate::progress::Spinner;

use super::McpSelector;

/// How long the core may take to find the place where one logs in, and to get tokens there.
const CORE_MAX: Duration = Duration::from_secs(120);
/// The port that is listened on if it is free, so that the core need not be registered again.
const PORT: u16 = 7423;
/// The path that pages lead back to.
const PATH: &str = "/callback";
/// Largest head of a request.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// How long one may take to arrive.
const HEAD_MAX: Duration = Duration::from_secs(10);
/// Connections at once; browsers open some that they do not use.
const CONNECTIONS_MAX: usize = 16;

/// What `wharf mcp login` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf mcp login tracker
  wharf mcp login tracker --device      type a code on a page of any machine
  wharf mcp login tracker --no-browser  print the page instead of opening it
  wharf mcp login tracker --forget      log out

The core keeps what the login brings with the secrets, renews it, and sends it to that server only.
Runs that wait for a login go on. The page is opened with $BROWSER if that is set.")]
pub(crate) struct McpLoginArgs {
    #[command(flatten)]
    which: McpSelector,
    /// Type a code on a page of any machine, where this one has no browser
    #[arg(long, conflicts_with = "forget")]
    device: bool,
    /// Only print the page
    #[arg(long)]
    no_browser: bool,
    /// Forget the login
    #[arg(long)]
    forget: bool,
    /// How long to wait for the page, such as 30s or 5m
    #[arg(long, value_name = "DURATION", value_parser = amount::duration, default_value = "10m")]
    timeout: Duration,
}

/// Logs in, or out.
pub(super) async fn run(args: &McpLoginArgs, context: &Context) -> Result<Exit> {
    let (client, id) = args.which.find(context).await?;
    let shown = plain::line(&id);
    if args.forget {
        client.mcp_servers().forget_login(&id).await?;
        let done = json!({ "server_id": id, "done": "logged out" });
        return context.output.done(&done, &format!("logged out of {shown}"));
    }
    let logging_in = async {
        match args.device {
            true => by_code(&client, &id, args, context.output).await,
            false => by_page(&client, &id, args, context.output).await,
        }
    };
    let Ok(ended) = tokio::time::timeout(args.timeout, logging_in).await else {
        let message = format!("nobody logged in to {shown} in time");
        return Err(CliError::failed(Code::McpLoginFailed, message));
    };
    ended?;
    let done = json!({ "server_id": id, "done": "logged in" });
    context.output.done(&done, &format!("logged in to {shown}"))
}

/// With a code that is typed somewhere.
async fn by_code(client: &Client, id: &str, args: &McpLoginArgs, output: Output) -> Result<()> {
    let begin = BeginMcpLogin { redirect_uri: None, device: true };
    let page: McpLoginPage = client.mcp_servers().login(id, &begin).timeout(CORE_MAX).await?;
    let code = page.user_code.as_deref().unwrap_or_default();
    let url = plain::line(&page.url);
    output.note(&format!("open {url}\nand type {}", output.err_paint().strong(&plain::line(code))));
    if !args.no_browser {
        open(&page.url);
    }
    let _spinner = Spinner::new(output, "waiting for the code to be typed");
    let end = EndMcpLogin { state: page.state, ..EndMcpLogin::default() };
    loop {
        if client.mcp_servers().finish_login(id, &end).timeout(CORE_MAX).await?.done {
            return Ok(());
        }
    }
}

/// With a page that leads back to this machine.
async fn by_page(client: &Client, id: &str, args: &McpLoginArgs, output: Output) -> Result<()> {
    let unheard = |error: std::io::Error| {
        let message = format!("this machine cannot be led back to: {}", error.kind());
        CliError::failed(Code::McpLoginFailed, message)
    };
    let listener = match TcpListener::bind(("127.0.0.1", PORT)).await {
        Ok(listener) => listener,
        Err(_) => TcpListener::bind(("127.0.0.1", 0)).await.map_err(unheard)?,
    };
    let port = listener.local_addr().map_err(unheard)?.port();
    let begin = BeginMcpLogin {
        redirect_uri: Some(format!("http://127.0.0.1:{port}{PATH}")),
        device: false,
    };
    let page: McpLoginPage = client.mcp_servers().login(id, &begin).timeout(CORE_MAX).await?;
    output.note(&format!("open {}", plain::line(&page.url)));
    if !args.no_browser {
        open(&page.url);
    }
    let spinner = Spinner::new(output, "waiting for the page to lead back");
    let end = led_back(&listener, &page.state).await.map_err(unheard)?;
    spinner.set("getting a token");
    match client.mcp_servers().finish_login(id, &end).timeout(CORE_MAX).await?.done {
        true => Ok(()),
        false => Err(CliError::failed(Code::McpLoginFailed, "the login is not done")),
    }
}

/// Shows a page in a browser, if there is one. Whoever has none reads the address.
fn open(url: &str) {
    if Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https")) {
        crate::commands::console::open_browser(url);
    }
}

/// What the page led back with: the first request with the right state.
async fn led_back(listener: &TcpListener, state: &str) -> std::io::Result<EndMcpLogin> {
    let (tell, mut told) = mpsc::channel(1);
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            Some(end) = told.recv() => return Ok(end),
            Some(_) = open.join_next() => {}
            accepted = listener.accept(), if open.len() < CONNECTIONS_MAX => {
                let (stream, _) = accepted?;
                let (tell, state) = (tell.clone(), state.to_owned());
                open.spawn(async move {
                    let answered = answer(stream, &state);
                    if let Ok(Some(end)) = tokio::time::timeout(HEAD_MAX, answered).await {
                        let _ = tell.send(end).await;
                    }
                });
            }
        }
    }
}

/// Answers one request; what it brought if it is the one that is waited for.
async fn answer(mut stream: TcpStream, state: &str) -> Option<EndMcpLogin> {
    let mut head = Vec::new();
    let mut piece = [0; 4096];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = stream.read(&mut piece).await.ok().filter(|count| *count > 0)?;
        head.extend_from_slice(&piece[..count]);
        if head.len() > HEAD_BYTES_MAX {
            return None;
        }
    }
    let brought = brought(&head, state);
    let (status, text) = match &brought {
        Some(EndMcpLogin { error: None, .. }) => {
            ("200 OK", "You can close this page; the command says whether it worked.")
        }
        Some(_) => ("200 OK", "It did not work; the command says why. You can close this page."),
        None => ("404 Not Found", "There is nothing here."),
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\n\
         cache-control: no-store\r\nreferrer-policy: no-referrer\r\nconnection: close\r\n\r\n{text}",
        text.len()
    );
    // A browser that has left has brought it all the same.
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
    brought
}

/// What a request brings, if it has the right state.
fn brought(head: &[u8], state: &str) -> Option<EndMcpLogin> {
    let line = std::str::from_utf8(head).ok()?.lines().next()?;
    let target = line.strip_prefix("GET ")?.split(' ').next()?;
    let url = Url::parse("http://127.0.0.1/").ok()?.join(target).ok()?;
    let value = |key: &str| {
        let mut all = url.query_pairs().filter(|(name, _)| name == key);
        let first = all.next().map(|(_, value)| value.into_owned());
        // What stands twice may mean two things.
        first.filter(|_| all.next().is_none())
    };
    let is_it = url.path() == PATH && value("state").as_deref() == Some(state);
    is_it.then(|| EndMcpLogin {
        state: state.to_owned(),
        code: value("code"),
        iss: value("iss"),
        error: value("error"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m071_only_the_right_state_is_heard() {
        let read = |line: &str| brought(format!("{line}\r\nhost: x\r\n\r\n").as_bytes(), "s1");
        let end = read("GET /callback?code=a%2Bb&state=s1&iss=https%3A%2F%2Fi.example HTTP/1.1");
        let end = end.expect("heard");
        assert_eq!((end.code.as_deref(), end.error), (Some("a+b"), None));
        assert_eq!(end.iss.as_deref(), Some("https://i.example"));
        let declined = read("GET /callback?error=access_denied&state=s1 HTTP/1.1").expect("heard");
        assert_eq!(declined.error.as_deref(), Some("access_denied"));
        for other in [
            "GET /callback?code=a&state=s2 HTTP/1.1",
            "GET /callback?code=a HTTP/1.1",
            "GET /callback?code=a&state=s1&state=s2 HTTP/1.1",
            "GET /other?code=a&state=s1 HTTP/1.1",
            "POST /callback?code=a&state=s1 HTTP/1.1",
            "GET",
            "",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
        let twice = read("GET /callback?code=a&code=b&state=s1 HTTP/1.1").expect("heard");
        assert_eq!(twice.code, None);
    }

    #[tokio::test]
    async fn m071_others_on_the_port_do_not_get_in_the_way() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let heard = tokio::spawn(async move { led_back(&listener, "s1").await });
        let _silent = TcpStream::connect(address).await.expect("connects");
        let ask = async |text: String| {
            let mut stream = TcpStream::connect(address).await.expect("connects");
            stream.write_all(text.as_bytes()).await.expect("writes");
            let mut answer = String::new();
            // Whoever sends too much is cut off.
            let _ = stream.read_to_string(&mut answer).await;
            answer
        };
        let answer = ask("GET /favicon.ico HTTP/1.1\r\n\r\n".to_owned()).await;
        assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
        assert_eq!(ask("x".repeat(HEAD_BYTES_MAX + 1)).await, "");
        let answer = ask("GET /callback?code=c&state=s1 HTTP/1.1\r\n\r\n".to_owned()).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let end = heard.await.expect("ends").expect("heard");
        assert_eq!(end.code.as_deref(), Some("c"));
    }
}
