//! Follows a run to its end, and cancels it on Ctrl-C.

use serde_json::Value;
use tokio::task::JoinHandle;
use wharf_client::{Client, Update};
use wharf_vocab::RunStatus;

use crate::commands::Result;
use crate::plain;
use crate::render::Renderer;

/// Follows the run until it ends; `None` if the caller left before that.
pub(crate) async fn to_end(
    client: Client,
    run: &str,
    world: Option<&str>,
    mut renderer: Option<&mut Renderer<std::io::Stderr>>,
) -> Result<Option<(RunStatus, Value)>> {
    let mut follower = client.runs().follow(run, world, 0);
    let mut interrupt = Box::pin(tokio::signal::ctrl_c());
    let mut canceling: Option<JoinHandle<Result<()>>> = None;
    let mut asked = false;
    let say = |renderer: &mut Option<&mut Renderer<_>>, text: &str| {
        if let Some(renderer) = renderer {
            renderer.say(text);
        }
    };
    loop {
        tokio::select! {
            update = follower.next() => {
                let update = update?;
                if let Some(renderer) = &mut renderer {
                    renderer.show(&update);
                }
                if let Update::Event(event) = &update
                    && let Some((run, raw)) = event.end()
                {
                    return Ok(Some((run.status, raw)));
                }
            }
            _ = &mut interrupt => {
                if asked {
                    let text = format!("left; see how it ends with: wharf runs watch {run}");
                    say(&mut renderer, &text);
                    return Ok(None);
                }
                asked = true;
                interrupt = Box::pin(tokio::signal::ctrl_c());
                say(&mut renderer, "canceling; press Ctrl-C again to leave at once");
                let (run, world) = (run.to_owned(), world.map(str::to_owned));
                let client = client.clone();
                canceling = Some(tokio::spawn(async move {
                    let reason = "interrupted at the terminal";
                    client.runs().cancel_surely(&run, world.as_deref(), reason).await?;
                    Ok(())
                }));
            }
            ended = joined(&mut canceling) => {
                canceling = None;
                if let Err(failure) = ended {
                    let text = format!("cannot cancel: {}", plain::line(failure.message()));
                    say(&mut renderer, &text);
                }
            }
        }
    }
}

/// What became of the cancel; it never comes while there is none.
async fn joined(canceling: &mut Option<JoinHandle<Result<()>>>) -> Result<()> {
    match canceling {
        Some(task) => task.await.unwrap_or(Ok(())),
        None => std::future::pending().await,
    }
}
