//! `wharf inbox`: what waits for an answer or an approval.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use wharf_client::Client;
use wharf_vocab::AskKind;
use wharf_wire::rest_v1::Ask;

use crate::commands::{Context, Exit, Output, Poll, Result, Table};
use crate::shape::plain_text;
use crate::{moment, output, plain};

const REFRESH: Duration = Duration::from_secs(2);

/// What `wharf inbox` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf inbox
  wharf inbox --watch
  wharf inbox --watch --json     one line for each new ask")]
pub(crate) struct InboxArgs {
    /// Keep watching and show changes
    #[arg(long, short)]
    watch: bool,
}

/// Shows the open asks.
pub(crate) async fn run(args: InboxArgs, context: &Context) -> Result<Exit> {
    let output = context.output;
    let client = context.client()?;
    let items = open_asks(&client).await?;
    if args.watch {
        return watch(client, output, items).await;
    }
    if output.is_json() {
        output.json(&items)?;
    } else {
        print(output, items)?;
    }
    Ok(Exit::Done)
}

async fn open_asks(client: &Client) -> wharf_client::Result<Vec<Value>> {
    client.inbox().list().raw().all().await
}

/// Shows the inbox again and again. A core that is away for a while does not end it.
async fn watch(client: Client, output: Output, items: Vec<Value>) -> Result<Exit> {
    let (mut poll, mut items, mut seen) =
        (Poll::new(client, REFRESH), Some(items), BTreeSet::new());
    loop {
        if let Some(items) = items {
            if output.out_is_terminal() && !output.is_json() {
                output.clear()?;
                print(output, items)?;
                output.note("Ctrl-C leaves");
            } else {
                print_new(output, items, &mut seen)?;
            }
        }
        items = poll.next(output, open_asks).await?;
    }
}

/// Where nothing can be drawn over, only what is new is printed.
fn print_new(output: Output, items: Vec<Value>, seen: &mut BTreeSet<String>) -> Result<()> {
    let id = |item: &Value| item.get("ask_id").and_then(Value::as_str).map(str::to_owned);
    let open: BTreeSet<String> = items.iter().filter_map(id).collect();
    for item in items {
        if id(&item).is_some_and(|id| seen.contains(&id)) {
            continue;
        }
        if output.is_json() {
            output.json_line(&item)?;
        } else {
            let ask: Ask = output::typed(item)?;
            output.line(&format!(
                "{} {} {} {}",
                plain::line(&ask.ask_id),
                ask.kind,
                plain::line(&ask.tool),
                plain::line(&ask.title),
            ))?;
        }
    }
    *seen = open;
    Ok(())
}

fn print(output: Output, items: Vec<Value>) -> Result<()> {
    let asks: Vec<Ask> = output::rows(items)?;
    if asks.is_empty() {
        return output.line("nothing is waiting for you");
    }
    let headings = ["ASK", "KIND", "TITLE", "TOOL", "SINCE", "EXPIRES", "WORLD"];
    let mut table =
        Table::new(output, &headings).keep_whole(&[0, 1, 3]).leave_out(6, "default").spare(&[5, 3]);
    for ask in &asks {
        let cells = [
            ask.ask_id.as_str(),
            ask.kind.as_str(),
            &plain::cut(&ask.title, 80),
            &ask.tool,
            &moment::shown(ask.created_at),
            &moment::relative_to_now(ask.deadline),
            &ask.world,
        ];
        table.row_with_state(cells, 1);
    }
    let mut text = table.text();
    for ask in &asks {
        text.push_str(&about(ask, output));
    }
    output.text(&text)
}

/// What an approval is about, for whoever must decide it; nothing more is said of a question.
fn about(ask: &Ask, output: Output) -> String {
    if ask.kind != AskKind::Approval && ask.detail.is_none() {
        return String::new();
    }
    let mut table = Table::bare(output);
    let short = |digest: &str| plain::line(digest.get(..16).unwrap_or(digest));
    if let Some(caller) = &ask.caller {
        table.row(["  asked by", caller]);
    }
    if let Some(digest) = &ask.args_digest {
        table.row(["  arguments", &short(digest)]);
    }
    for file in &ask.files {
        let b3 = file.b3.as_deref().unwrap_or("not known");
        let said = format!("{} ({} bytes, b3 {b3})", file.path, file.bytes);
        table.row([&format!("  reads {}", file.name), &said]);
    }
    match &ask.detail {
        Some(Value::String(reason)) => table.row(["  because", reason]),
        Some(Value::Object(proposal)) => {
            for (name, value) in proposal {
                table.row([&format!("  {name}"), &plain_text(value)]);
            }
        }
        Some(other) => table.row(["  about", &other.to_string()]),
        None => {}
    }
    let head = output.out_paint().strong(&plain::line(&ask.ask_id));
    let see = format!("wharf runs show {}", plain::line(&ask.run_id));
    format!("\n{head} {}\n{}  see its inputs with: {see}\n", plain::line(&ask.title), table.text())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ask(kind: &str, detail: &Value) -> Ask {
        serde_json::from_value(json!({"ask_id": "c3a1", "kind": kind, "run_id": "r1",
            "tool": "mail/send", "world": "default", "title": "Send it?", "detail": detail,
            "args_digest": "0123456789abcdef0123", "caller": "g-1", "audience": "person",
            "deadline": "2026-11-15T09:00:00.000Z", "created_at": "2026-11-15T09:00:00.000Z"}))
        .expect("an ask")
    }

    #[test]
    fn whoever_decides_is_told_what_about() {
        let output = Output::new(false);
        let proposed = json!({"to": "ops@example.dev", "lines": 3, "odd": "\u{1b}[2Jx"});
        let text = about(&ask("approval", &proposed), output);
        for part in ["c3a1 Send it?", "g-1", "0123456789abcdef\n", "ops@example.dev", "3\n"] {
            assert!(text.contains(part), "{part:?} is missing in {text}");
        }
        assert!(!text.contains('\u{1b}'), "{text}");
        let text = about(&ask("approval", &json!("The policy is strict.")), output);
        assert!(text.contains("because") && text.contains("The policy is strict."), "{text}");
        assert_eq!(about(&ask("question", &Value::Null), output), "");
    }
}
