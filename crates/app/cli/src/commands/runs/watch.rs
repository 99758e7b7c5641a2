//! `wharf runs watch`: what `wharf run` shows, from another terminal or after the fact.

use serde_json::{Value, json};
use wharf_client::{Follower, Update};
use wharf_vocab::RunStatus;

use crate::commands::run::print_outcome;
use crate::commands::{Context, Exit, Result};
use crate::render::{Renderer, connection};

/// What `wharf runs watch` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf runs watch 0197a1c2-5d3e-7f00-8000-000000000001
  wharf runs watch nightly --after 12     only what came after event 12
  wharf runs watch nightly --json         one event per line

Ctrl-C stops watching and leaves the run alone. The exit code is that of wharf run.")]
pub(crate) struct RunsWatchArgs {
    /// The run's id, or the beginning of it
    run: String,
    /// The run's world [default: whichever has it]
    #[arg(long)]
    world: Option<String>,
    /// Begin after the event with this number
    #[arg(long, value_name = "N", default_value_t = 0)]
    after: u64,
}

/// Follows a run to its end.
pub(crate) async fn run(args: RunsWatchArgs, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    // A core that is away is waited for once it has been heard of, but not from the start.
    let found = super::find(&client, &args.run, args.world.as_deref()).await?;
    let follower = client.runs().follow(&found.run_id, found.world.as_deref(), args.after);
    if context.output.is_json() {
        return print(follower, context).await;
    }
    let mut renderer = Renderer::new(context.output);
    let end = show(follower, &mut renderer).await;
    renderer.finish();
    print_outcome(end?, Some(&renderer), context.output)
}

async fn show(
    mut follower: Follower,
    renderer: &mut Renderer<std::io::Stderr>,
) -> Result<(RunStatus, Value)> {
    loop {
        let update = follower.next().await?;
        renderer.show(&update);
        if let Update::Event(event) = &update
            && let Some((run, raw)) = event.end()
        {
            return Ok((run.status, raw));
        }
    }
}

/// Prints each event on a line of its own.
async fn print(mut follower: Follower, context: &Context) -> Result<Exit> {
    loop {
        let update = follower.next().await?;
        if let Some(text) = connection(&update) {
            context.output.note(text);
        }
        if let Update::Event(event) = update {
            let end = event.end().map(|(run, _)| run.status);
            context.output.json_line(&json!({"event": event.name, "data": event.data}))?;
            if let Some(status) = end {
                return Ok(Exit::of_run(status));
            }
        }
    }
}
