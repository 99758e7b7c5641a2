//! Logs of providers: their last lines, and new ones as they come.

use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;
use serde_json::Value;
use wharf_vocab::{Code, limits};
use wharf_wire::rest_v1::{AgentLogLine, Page};

use crate::client::Client;
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::paint::Paint;
use crate::{moment, plain, sse, table};

/// How long a log may say nothing at all, keep-alives included, before the core counts as lost.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Which lines of a log.
#[derive(Debug, clap::Args)]
pub(crate) struct LogArgs {
    /// How many of the last lines
    #[arg(short = 'n', long = "lines", value_name = "N")]
    #[arg(default_value_t = limits::LOG_LINES_SHOWN_DEFAULT as u64)]
    #[arg(value_parser = clap::value_parser!(u64).range(0..=limits::LOG_LINES_SHOWN_MAX as u64))]
    lines: u64,
    /// Stay and show new lines as they come, until the process ends
    #[arg(short, long)]
    pub(crate) follow: bool,
}

/// Prints the log at a path of the core; one that is followed, to its end.
pub(crate) async fn show(
    client: &Client,
    path: &[&str],
    args: &LogArgs,
    output: Output,
) -> Result<()> {
    let lines = args.lines.to_string();
    if args.follow {
        return follow(client, path, &lines, |line| print(output, line)).await;
    }
    let page: Page<Value> = client.get(path, &[("lines", Some(lines.as_str()))]).await?;
    if output.is_json() {
        return output.json(&page.items);
    }
    page.items.into_iter().try_for_each(|line| print(output, line))
}

/// Gives out the last lines and then new ones, until there can be no more.
async fn follow(
    client: &Client,
    path: &[&str],
    lines: &str,
    mut give: impl FnMut(Value) -> Result<()>,
) -> Result<()> {
    let query = [("lines", Some(lines)), ("follow", Some("true"))];
    let mut pieces = pin!(client.stream(path, &query).await?);
    let mut parser = sse::Parser::default();
    loop {
        let piece = match tokio::time::timeout(SILENCE_MAX, pieces.next()).await {
            Ok(None) => return Ok(()),
            Ok(Some(Ok(piece))) => piece,
            Ok(Some(Err(_))) | Err(_) => return Err(lost()),
        };
        parser.push(&piece).map_err(|_| unreadable())?;
        while let Some(message) = parser.pop() {
            // Events of later versions are skipped.
            if message.event == "log" {
                give(serde_json::from_str(&message.data).map_err(|_| unreadable())?)?;
            }
        }
    }
}

fn print(output: Output, line: Value) -> Result<()> {
    if output.is_json() {
        return output.json_line(&line);
    }
    let line: AgentLogLine = table::typed(line)?;
    output.line(&line_of(&line, output.out_paint(), output.out_is_terminal()))
}

fn line_of(line: &AgentLogLine, paint: Paint, terminal: bool) -> String {
    let mark = match line.source.as_str() {
        "stdout" => paint.faint("out"),
        "stderr" => paint.attention("err"),
        "launcher" => paint.faint("log"),
        other => plain::cut(other, 10),
    };
    let text = if terminal { plain::line(&line.text) } else { line.text.clone() };
    format!("{} {mark} {text}", paint.faint(&moment::clock(&line.at)))
}

fn lost() -> Failure {
    let message = "the core broke off the log; see what there is without -f";
    Failure::new(Code::CoreUnreachable, message)
}

fn unreadable() -> Failure {
    Failure::new(Code::CoreInternal, "the core sent a line that cannot be read")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::{Reply, Scripted};
    use serde_json::json;

    fn line(source: &str, text: &str) -> AgentLogLine {
        AgentLogLine { at: "soon".into(), source: source.into(), text: text.into() }
    }

    #[test]
    fn a_terminal_sees_no_control_characters_and_a_file_sees_all() {
        let raw = "a\u{1b}[31mb\rc\u{7}";
        assert_eq!(line_of(&line("stdout", raw), Paint::off(), true), "soon out ab c");
        assert_eq!(line_of(&line("stderr", raw), Paint::off(), false), format!("soon err {raw}"));
        assert_eq!(line_of(&line("launcher", "x"), Paint::off(), true), "soon log x");
        assert_eq!(line_of(&line("\u{1b}[2Jnew", "x"), Paint::off(), false), "soon new x");
    }

    async fn followed(reply: Reply) -> (Vec<String>, Result<()>) {
        let mut scripted = Scripted::new();
        let mut reply = Some(reply);
        scripted.start(move |_| reply.take().unwrap_or(Reply::Break)).await;
        let mut texts = Vec::new();
        let give = |line: Value| {
            texts.push(line["text"].as_str().expect("text").to_owned());
            Ok(())
        };
        let ended =
            follow(&scripted.client(), &["v1", "agents", "dev.wharf.hello", "logs"], "5", give)
                .await;
        let asked = scripted.seen().remove(0).line;
        assert_eq!(asked, "GET /v1/agents/dev.wharf.hello/logs?lines=5&follow=true");
        (texts, ended)
    }

    #[tokio::test]
    async fn a_log_is_followed_to_its_end() {
        let one = json!({"at": "t", "source": "stdout", "text": "one"});
        let two = json!({"at": "t", "source": "stderr", "text": "two"});
        let text = format!(
            "event: log\ndata: {one}\n\n: still here\n\nevent: telepathy\ndata: 7\n\n\
             event: log\ndata: {two}\n\n"
        );
        assert_eq!(followed(Reply::Events(text)).await, (vec!["one".into(), "two".into()], Ok(())));
    }

    #[tokio::test]
    async fn a_log_that_cannot_be_followed_says_why() {
        let error = json!({"code": "agent.not_found", "message": "no", "retryable": false});
        let (_, ended) = followed(Reply::Json(404, json!({"error": error}))).await;
        assert!(ended.expect_err("refused").is(Code::AgentNotFound));
        let (_, ended) = followed(Reply::Events("event: log\ndata: {\n\n".into())).await;
        assert!(ended.expect_err("unreadable").is(Code::CoreInternal));
    }
}
