//! `wharf notify`: who outside is told of what.

use std::io::Read as _;

use clap::Subcommand;
use serde_json::json;
use wharf_vocab::{NotifyFormat, NotifyInclude, NotifyOn, RunStatus};
use wharf_wire::rest_v1::{CreateReceiver, Delivery, Receiver, TestNotification};

use crate::commands::run::{id, optional};
use crate::commands::{CliError, Context, Exit, Output, Result, Table, word};
use crate::{moment, output, plain};

/// Longest address that is read from standard input.
const URL_BYTES_MAX: u64 = 4 * 1024;

/// What `wharf notify` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf notify add phone --webhook https://hooks.example/T0/B0/x --slack --on ask
  wharf notify add ci --webhook - --on run --status failed,refused < url.txt
  wharf notify test phone
  wharf notify history phone
  wharf notify list")]
pub(crate) struct NotifyArgs {
    #[command(subcommand)]
    command: Option<NotifyCommand>,
}

#[derive(Debug, Subcommand)]
enum NotifyCommand {
    /// List receivers; their addresses are not shown
    #[command(after_help = "Examples:\n  wharf notify\n  wharf notify list --json")]
    List,
    /// Add a receiver and print its signing key
    Add(NotifyAddArgs),
    /// Show a receiver
    #[command(after_help = "Examples:\n  wharf notify show phone")]
    Show(ReceiverNameArgs),
    /// Send a receiver a test notification
    #[command(after_help = "\
Examples:
  wharf notify test phone

See the outcome with: wharf notify history phone")]
    Test(ReceiverNameArgs),
    /// Show the outcome of a receiver's notifications, newest first
    #[command(
        after_help = "Examples:\n  wharf notify history phone\n  wharf notify history phone --json"
    )]
    History(ReceiverNameArgs),
    /// Pause a receiver until it is resumed
    #[command(after_help = "\
Examples:
  wharf notify pause phone

It is not notified later of what happens meanwhile.")]
    Pause(ReceiverNameArgs),
    /// Resume a paused receiver
    #[command(after_help = "Examples:\n  wharf notify resume phone")]
    Resume(ReceiverNameArgs),
    /// Remove a receiver, its address and its key
    #[command(after_help = "Examples:\n  wharf notify remove phone")]
    Remove(ReceiverNameArgs),
}

#[derive(Debug, clap::Args)]
struct ReceiverNameArgs {
    /// The receiver's name
    #[arg(value_name = "RECEIVER")]
    name: String,
}

/// What `wharf notify add` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf notify add phone --webhook https://hooks.example/T0/B0/x --slack --on ask
  wharf notify add ci --webhook - --on run --status failed,refused < url.txt
  wharf notify add desk --webhook http://192.168.1.7:8080/w --allow-private --on ask,agent,budget
  wharf notify add mail --webhook - --on run --when 'tool.startsWith(\"acme/\")' --include outputs

The address is stored as the secret notify.NAME.url and never shown. Notifications contain ids, titles
and statuses, and inputs and outputs only with --include. The notification of an ask links to the console, where a
person decides. The signing key is printed once: with it receivers verify the headers webhook-id,
webhook-timestamp and webhook-signature, according to Standard Webhooks.")]
struct NotifyAddArgs {
    /// The receiver's name
    name: String,
    /// The address that notifications are posted to; - reads it from standard input
    #[arg(long, value_name = "URL|-")]
    webhook: String,
    /// The events it is notified of
    #[arg(long, required = true, value_delimiter = ',', value_parser = word::<NotifyOn>())]
    on: Vec<NotifyOn>,
    /// Only runs that ended in one of these statuses; for --on run
    #[arg(long, value_delimiter = ',', value_parser = word::<RunStatus>())]
    status: Vec<RunStatus>,
    /// Only if this expression holds over event, world, tool, status, code, title, …
    #[arg(long, value_name = "EXPR")]
    when: Option<String>,
    /// Values of the run that go with a notification, scrubbed; JSON only
    #[arg(long, value_delimiter = ',', value_parser = word::<NotifyInclude>())]
    include: Vec<NotifyInclude>,
    /// Only events of this world [default: all worlds]
    #[arg(long)]
    world: Option<String>,
    /// Send messages for a Slack incoming webhook instead of JSON
    #[arg(long)]
    slack: bool,
    /// Allow http:// and addresses on this machine or in a private network
    #[arg(long)]
    allow_private: bool,
}

/// Does what the subcommand says; lists receivers when there is none.
pub(crate) async fn run(args: NotifyArgs, context: &Context) -> Result<Exit> {
    let (output, client) = (context.output, context.client()?);
    let receivers = client.receivers();
    match args.command.unwrap_or(NotifyCommand::List) {
        NotifyCommand::List => {
            let empty = "no receivers; add one with: wharf notify add NAME --webhook URL --on ask";
            super::list(receivers.list(), empty, output, table_of).await
        }
        NotifyCommand::Add(args) => add(args, context).await,
        NotifyCommand::Show(ReceiverNameArgs { name }) => {
            let raw = receivers.get(&name).raw().await?;
            output.answer(raw, |receiver: Receiver| text_of(&receiver, output))
        }
        NotifyCommand::Test(ReceiverNameArgs { name }) => {
            let sent: TestNotification = receivers.test(&name).await?;
            let sentence = format!("a test is on its way; see: wharf notify history {name}");
            output.done(&sent, &plain::line(&sentence))
        }
        NotifyCommand::History(ReceiverNameArgs { name }) => {
            let empty = "no notifications have been sent or given up yet";
            super::list(receivers.history(&name), empty, output, history_of).await
        }
        NotifyCommand::Pause(ReceiverNameArgs { name }) => {
            let paused = receivers.pause(&name).await?;
            output.done(&paused, &plain::line(&format!("{name} is paused")))
        }
        NotifyCommand::Resume(ReceiverNameArgs { name }) => {
            let resumed = receivers.resume(&name).await?;
            output.done(&resumed, &plain::line(&format!("{name} is resumed")))
        }
        NotifyCommand::Remove(ReceiverNameArgs { name }) => {
            receivers.remove(&name).await?;
            let sentence = plain::line(&format!("removed {name}, its address and its key"));
            output.done(&json!({"name": name, "state": "removed"}), &sentence)
        }
    }
}

/// Adds the receiver.
async fn add(args: NotifyAddArgs, context: &Context) -> Result<Exit> {
    let output = context.output;
    let request = CreateReceiver {
        name: id("name", &args.name)?,
        url: if args.webhook == "-" { read_url()? } else { args.webhook },
        on: args.on,
        world: optional("world", args.world.as_deref())?,
        statuses: (!args.status.is_empty()).then_some(args.status),
        when: args.when,
        include: (!args.include.is_empty()).then_some(args.include),
        format: args.slack.then_some(NotifyFormat::Slack),
        allow_private: args.allow_private.then_some(true),
    };
    let raw = context.client()?.receivers().create(&request).raw().await?;
    if output.is_json() {
        output.json(&raw)?;
        return Ok(Exit::Done);
    }
    let made: Receiver = output::typed(raw)?;
    output.note(&text_of(&made, output));
    output.note("The key to verify signatures with, shown only now:");
    output.line(&plain::line(made.signing_key.as_deref().unwrap_or_default()))?;
    Ok(Exit::Done)
}

fn read_url() -> Result<String> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(URL_BYTES_MAX).read_to_string(&mut text);
    read.map_err(|error| CliError::unreadable("standard input", &error))?;
    Ok(text.trim().to_owned())
}

/// What a receiver is told of, in a few words.
fn told_of(receiver: &Receiver) -> String {
    let statuses: Vec<&str> = receiver.statuses.iter().map(|it| it.as_str()).collect();
    let one = |on: &NotifyOn| match on {
        NotifyOn::Run if !statuses.is_empty() => format!("run ({})", statuses.join(", ")),
        on => on.to_string(),
    };
    receiver.on.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn words(values: &[NotifyInclude]) -> String {
    values.iter().map(|it| it.as_str()).collect::<Vec<_>>().join(", ")
}

fn table_of(receivers: &[Receiver], output: Output) -> Table {
    let headings = ["RECEIVER", "STATE", "ON", "WORLD", "FORMAT", "SENT", "PARKED", "LAST"];
    let mut table = Table::new(output, &headings).keep_whole(&[0, 1]).leave_out(3, "all");
    for receiver in receivers {
        let last = receiver
            .last
            .as_ref()
            .map(|last| format!("{} {}", last.state, moment::relative_to_now(last.ended_at)));
        let cells = [
            receiver.name.as_str(),
            receiver.state.as_str(),
            &told_of(receiver),
            receiver.world.as_ref().map_or("all", |world| world.as_str()),
            receiver.format.as_str(),
            &receiver.sent.to_string(),
            &receiver.parked.to_string(),
            &last.unwrap_or_default(),
        ];
        table.row_with_state(cells, 1);
    }
    table
}

fn text_of(receiver: &Receiver, output: Output) -> String {
    let mut table = Table::bare(output);
    let private = receiver.allow_private.then(|| "may be private".to_owned());
    table.facts([
        ("receiver", Some(receiver.name.to_string())),
        ("state", Some(receiver.state.to_string())),
        ("told of", Some(told_of(receiver))),
        ("world", receiver.world.as_ref().map(ToString::to_string)),
        ("only if", receiver.when.clone()),
        ("with values", (!receiver.include.is_empty()).then(|| words(&receiver.include))),
        ("format", Some(receiver.format.to_string())),
        ("address", private),
        ("address kept as", Some(receiver.url_secret.to_string())),
        ("key kept as", Some(receiver.key_secret.to_string())),
        ("sent", Some(receiver.sent.to_string())),
        ("given up", (receiver.parked > 0).then(|| receiver.parked.to_string())),
        ("created", Some(moment::shown(receiver.created_at))),
    ]);
    table.text()
}

fn history_of(deliveries: &[Delivery], output: Output) -> Table {
    let headings = ["ENDED", "STATE", "EVENT", "ABOUT", "TRIES", "STATUS", "WHY"];
    let mut table = Table::new(output, &headings).keep_whole(&[0, 1, 2]).leave_out(6, "");
    for delivery in deliveries {
        let status = delivery.status.map(|status| status.to_string()).unwrap_or_default();
        let cells = [
            &moment::clock(delivery.ended_at),
            delivery.state.as_str(),
            &delivery.event,
            &delivery.about,
            &delivery.tries.to_string(),
            &status,
            delivery.why.as_deref().unwrap_or_default(),
        ];
        table.row_with_state(cells, 1);
    }
    table
}
