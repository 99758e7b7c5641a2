//! `wharf inbox`: what waits for an answer or an approval.

pub(crate) mod about;
mod exec;
mod show;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use clap::Subcommand;
use serde_json::Value;
use wharf_client::Client;
use wharf_vocab::{AskId, AskKind, Object};
use wharf_wire::rest_v1::Ask;

use self::exec::AskHook;
use crate::commands::runs::named;
use crate::commands::{Context, Exit, Output, Poll, Result, Table};
use crate::{moment, output, plain};

const REFRESH: Duration = Duration::from_secs(2);
/// Approvals whose arguments are looked up; for others there is `wharf inbox show`.
const LOOKED_UP_MAX: usize = 20;

/// The arguments of the runs that wait for an approval, as far as they are known.
type Arguments = BTreeMap<AskId, Object>;

/// What `wharf inbox` takes.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[group(skip)]
#[command(after_help = "\
Examples:
  wharf inbox
  wharf inbox show c3            all about one of them
  wharf inbox --watch
  wharf inbox --watch --json     one line for each new ask
  wharf inbox --watch --exec 'notify-send \"$WHARF_ASK_TITLE\"'
  wharf inbox --watch --exec 'curl -s -d @- https://chat.example.dev/hook'

The command of --exec is run by the shell for each ask that is open and not yet told of, one after
the other. It finds the ask as JSON on its standard input, and WHARF_ASK_ID, WHARF_ASK_KIND,
WHARF_ASK_TITLE, WHARF_ASK_TOOL and WHARF_ASK_WORLD in its environment.")]
pub(crate) struct InboxArgs {
    #[command(subcommand)]
    command: Option<InboxCommand>,
    /// Keep watching and show changes
    #[arg(long, short)]
    watch: bool,
    /// Run this command for each new ask, such as one that sends a message
    #[arg(long, value_name = "CMD", requires = "watch")]
    exec: Option<String>,
}

#[derive(Debug, Subcommand)]
enum InboxCommand {
    /// Show one ask with all that helps to decide it
    Show(show::InboxShowArgs),
}

/// Shows the open asks.
pub(crate) async fn run(args: InboxArgs, context: &Context) -> Result<Exit> {
    if let Some(InboxCommand::Show(args)) = &args.command {
        return show::run(args, context).await;
    }
    let output = context.output;
    let client = context.client()?;
    let items = open_asks(&client).await?;
    if args.watch {
        let hook = args.exec.map(AskHook::new);
        return watch(client, output, items, hook).await;
    }
    if output.is_json() {
        output.json(&items)?;
    } else {
        print(output, &client, items).await?;
    }
    Ok(Exit::Done)
}

/// The arguments of those that ask for an approval. What cannot be looked up is left out.
async fn arguments(client: &Client, asks: &[Ask]) -> Arguments {
    let approvals = asks.iter().filter(|ask| ask.kind == AskKind::Approval);
    let mut found = Arguments::new();
    for ask in approvals.take(LOOKED_UP_MAX) {
        if let Ok(detail) = client.inbox().get(&ask.ask_id).await {
            found.insert(ask.ask_id.clone(), detail.inputs);
        }
    }
    found
}

async fn open_asks(client: &Client) -> wharf_client::Result<Vec<Value>> {
    client.inbox().list().raw().all().await
}

/// Shows the inbox again and again. A core that is away for a while does not end it.
async fn watch(
    client: Client,
    output: Output,
    items: Vec<Value>,
    mut hook: Option<AskHook>,
) -> Result<Exit> {
    let (mut poll, mut items, mut seen) =
        (Poll::new(client, REFRESH), Some(items), BTreeSet::new());
    loop {
        if let Some(items) = items {
            if let Some(hook) = &mut hook {
                hook.tell(&items, output).await;
            }
            if output.out_is_terminal() && !output.is_json() {
                output.clear()?;
                print(output, &poll.client, items).await?;
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

async fn print(output: Output, client: &Client, items: Vec<Value>) -> Result<()> {
    let asks: Vec<Ask> = output::rows(items)?;
    let arguments = arguments(client, &asks).await;
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
        text.push_str(&described(ask, arguments.get(&ask.ask_id), output));
    }
    output.text(&text)
}

/// What an approval is about, for whoever must decide it; nothing more is said of a question.
fn described(ask: &Ask, arguments: Option<&Object>, output: Output) -> String {
    if ask.kind != AskKind::Approval && ask.detail.is_none() {
        return String::new();
    }
    let mut table = Table::bare(output);
    if let Some(caller) = &ask.caller {
        table.row(["  asked by", caller]);
    }
    match (arguments, &ask.args_digest) {
        (Some(arguments), _) if arguments.is_empty() => table.row(["  arguments", "none"]),
        (Some(arguments), _) => {
            // A name is the caller's own word, and must not pass for one of ours.
            for (name, value) in arguments {
                let name = format!("  argument {}", plain::cut(name, 40));
                table.row([&name, &about::short(value)]);
            }
        }
        (None, Some(digest)) => {
            table.row(["  arguments", digest.get(..16).unwrap_or(digest)]);
        }
        (None, None) => {}
    }
    about::files_and_detail(&mut table, ask, "  ");
    table.row(["  more", &format!("wharf inbox show {}", ask.ask_id)]);
    table.row(["  its run", &format!("wharf runs show {}", named(&ask.run_id, &ask.world))]);
    let head = output.out_paint().strong(&plain::line(&ask.ask_id));
    format!("\n{head} {}\n{}", plain::line(&ask.title), table.text())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ask(kind: &str, detail: &Value) -> Ask {
        serde_json::from_value(json!({"ask_id": "c3a1", "kind": kind, "run_id": "r1",
            "tool": "mail/send", "world": "lab", "title": "Send it?", "detail": detail,
            "args_digest": "0123456789abcdef0123", "caller": "g-1", "audience": "person",
            "deadline": "2026-11-15T09:00:00.000Z", "created_at": "2026-11-15T09:00:00.000Z"}))
        .expect("an ask")
    }

    #[test]
    fn whoever_decides_is_told_what_about() {
        let output = Output::new(false);
        let proposed = json!({"to": "ops@example.dev", "lines": 3, "odd": "\u{1b}[2Jx"});
        let text = described(&ask("approval", &proposed), None, output);
        for part in [
            "c3a1 Send it?",
            "g-1",
            "0123456789abcdef\n",
            "ops@example.dev",
            "3\n",
            "wharf inbox show c3a1\n",
            "wharf runs show r1 --world lab\n",
        ] {
            assert!(text.contains(part), "{part:?} is missing in {text}");
        }
        assert!(!text.contains('\u{1b}'), "{text}");
        let text = described(&ask("approval", &json!("The policy is strict.")), None, output);
        assert!(text.contains("because") && text.contains("The policy is strict."), "{text}");
        assert_eq!(described(&ask("question", &Value::Null), None, output), "");
    }

    #[test]
    fn arguments_take_the_place_of_their_digest() {
        let output = Output::new(false);
        let Value::Object(arguments) = json!({"to": "ada", "text": "x".repeat(500)}) else {
            panic!("an object")
        };
        let text = described(&ask("approval", &Value::Null), Some(&arguments), output);
        assert!(text.contains("  argument to    \"ada\"\n") && text.contains('…'), "{text}");
        assert!(!text.contains("0123456789abcdef"), "{text}");
        let none = described(&ask("approval", &Value::Null), Some(&Object::new()), output);
        assert!(none.contains("arguments") && none.contains("none\n"), "{none}");
    }
}
