//! Follows a run to its end, and cancels it on Ctrl-C.

use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use wharf_vocab::RunStatus;
use wharf_wire::rest_v1::CancelRun;

use crate::client::Client;
use crate::failure::Result;
use crate::follow::{Follower, News};
use crate::plain;
use crate::render::Renderer;

/// How long a cancel is tried while the core is away.
const CANCEL_MAX: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(500);

/// The run that is followed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Followed<'a> {
    /// Its id.
    pub(super) run: &'a str,
    /// Its world, unless it is the default one.
    pub(super) world: Option<&'a str>,
}

/// Follows the run until it ends; `None` if the caller left before that.
pub(super) async fn to_end(
    client: Client,
    followed: Followed<'_>,
    mut renderer: Option<&mut Renderer<std::io::Stderr>>,
) -> Result<Option<(RunStatus, Value)>> {
    let mut follower = Follower::new(client.clone(), followed.run, followed.world, 0);
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
            news = follower.next() => {
                let news = news?;
                if let Some(renderer) = &mut renderer {
                    renderer.show(&news);
                }
                if let News::Event(happened) = &news
                    && let Some((run, raw)) = happened.end()
                {
                    return Ok(Some((run.status, raw)));
                }
            }
            _ = &mut interrupt => {
                if asked {
                    let text = format!("left; see how it ends with: wharf runs watch {}", followed.run);
                    say(&mut renderer, &text);
                    return Ok(None);
                }
                asked = true;
                interrupt = Box::pin(tokio::signal::ctrl_c());
                say(&mut renderer, "canceling; press Ctrl-C again to leave at once");
                let (run, world) = (followed.run.to_owned(), followed.world.map(str::to_owned));
                canceling = Some(tokio::spawn(cancel(client.clone(), run, world)));
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

/// Asks for the cancel until the core has heard it.
async fn cancel(client: Client, run: String, world: Option<String>) -> Result<()> {
    let since = Instant::now();
    let body = CancelRun { reason: Some("interrupted at the terminal".to_owned()) };
    loop {
        let path = ["v1", "runs", &run, "cancel"];
        let query = [("world", world.as_deref())];
        let asked = match client.found_again() {
            Ok(client) => client.post(&path, &query, &body).await,
            Err(failure) => Err(failure),
        };
        match asked {
            Err(failure) if failure.is_outage() && since.elapsed() < CANCEL_MAX => {
                tokio::time::sleep(PAUSE).await;
            }
            asked => return asked,
        }
    }
}
