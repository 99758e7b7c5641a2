//! `wharf runs watch`: what `wharf run` shows, from another terminal or after the fact.

use serde_json::{Value, json};
use wharf_vocab::RunStatus;

use crate::client::Client;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::follow::{Follower, News};
use crate::render::Renderer;

/// What `wharf runs watch` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf runs watch 0197a1c2-5d3e-7f00-8000-000000000001
  wharf runs watch nightly --after 12     only what came after event 12
  wharf runs watch nightly --json         one event per line

Ctrl-C stops watching and leaves the run alone. The exit code is that of wharf run.")]
pub(crate) struct Args {
    /// The run's id
    run: String,
    /// The run's world
    #[arg(long)]
    world: Option<String>,
    /// Begin after the event with this number
    #[arg(long, value_name = "N", default_value_t = 0)]
    after: u64,
}

/// Follows a run to its end.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    // A core that is away is waited for once it has been heard of, but not from the start.
    let query = [("world", args.world.as_deref())];
    let _: Value = client.get(&["v1", "runs", &args.run], &query).await?;
    let follower =
        |client: Client| Follower::new(client, &args.run, args.world.as_deref(), args.after);
    if context.output.is_json() {
        return print(follower(client), context).await;
    }
    let mut renderer = Renderer::new(context.output);
    let end = show(follower(client), &mut renderer).await;
    renderer.finish();
    let (status, run) = end?;
    match context.output.json(&run) {
        Ok(()) | Err(Failure::ReaderGone) => Ok(Exit::of_run(status)),
        Err(failure) => Err(failure),
    }
}

async fn show(
    mut follower: Follower,
    renderer: &mut Renderer<std::io::Stderr>,
) -> Result<(RunStatus, Value)> {
    loop {
        let news = follower.next().await?;
        renderer.show(&news);
        if let News::Event(happened) = &news
            && let Some((run, raw)) = happened.end()
        {
            return Ok((run.status, raw));
        }
    }
}

/// Prints each event on a line of its own.
async fn print(mut follower: Follower, context: &Context) -> Result<Exit> {
    loop {
        let news = follower.next().await?;
        if let Some(text) = news.of_connection() {
            context.output.note(text);
        }
        if let News::Event(happened) = news {
            let end = happened.end().map(|(run, _)| run.status);
            context.output.json_line(&json!({"event": happened.name, "data": happened.data}))?;
            if let Some(status) = end {
                return Ok(Exit::of_run(status));
            }
        }
    }
}
