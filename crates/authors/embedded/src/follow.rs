//! A run that comes of a call, followed from its start to its end.

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use wharf_domain::{Caller, Outcome, Progress, Run};
use wharf_engine::{AcceptedRun, Follow, FollowEvent, Handle};
use wharf_sdk::{Chunk, TextChannel};
use wharf_vocab::{Code, Fault, Object};

/// Follows the run that `begun` begins, and gives its outputs. Whoever drops this calls the run
/// off, also while it is only being begun.
pub(crate) async fn followed(
    handle: Handle,
    caller: Caller,
    begun: impl Future<Output = Result<AcceptedRun, Fault>> + Send + 'static,
    told: mpsc::Sender<Chunk>,
) -> Result<Object, Fault> {
    let stop = CancellationToken::new();
    let _dropped = stop.clone().drop_guard();
    let (sender, ended) = oneshot::channel();
    tokio::spawn(async move {
        let result = async {
            let key = begun.await?.run.key.clone();
            watched(handle.run_events().follow(caller, &key, stop).await?, &told).await
        };
        let result = result.await;
        drop(told);
        // Whoever called may have stopped waiting.
        let _ = sender.send(result);
    });
    ended.await.unwrap_or_else(|_| Err(lost()))
}

async fn watched(mut follow: Follow, told: &mpsc::Sender<Chunk>) -> Result<Object, Fault> {
    loop {
        match follow.next().await? {
            FollowEvent::Progress(piece) => {
                if let Some(piece) = shown(piece) {
                    follow.unless_stopped(told.send(piece)).await;
                }
            }
            FollowEvent::Cost(_) => {}
            FollowEvent::Canceled => return Err(lost()),
            FollowEvent::Ended(run) => return outputs(&run),
        }
    }
}

/// What a run that is over gave.
pub(crate) fn outputs(run: &Run) -> Result<Object, Fault> {
    match &run.outcome {
        Some(Outcome::Succeeded { outputs }) => Ok(outputs.clone()),
        Some(outcome) => Err(outcome.error().cloned().unwrap_or_else(lost)),
        None => Err(lost()),
    }
}

/// A piece of progress as whoever called is shown it. One that a tool gave stands as it is.
fn shown(piece: Progress) -> Option<Chunk> {
    let json = match piece {
        Progress::Partial { key: None, value: Value::Object(json) } => json,
        Progress::Partial { key: None, value } => pairs([("value", value)]),
        Progress::Partial { key: Some(key), value } => {
            pairs([("key", key.into()), ("value", value)])
        }
        Progress::Log { level, text } => {
            pairs([("level", level.as_str().into()), ("text", text.into())])
        }
        Progress::Text { channel, text } => {
            let channel = match channel.as_str() {
                "stdout" => TextChannel::Stdout,
                "stderr" => TextChannel::Stderr,
                _ => TextChannel::Log,
            };
            return Some(Chunk::Text { channel, text });
        }
        Progress::Phase { phase, fraction } => {
            return Some(Chunk::Status { text: phase, fraction });
        }
        Progress::Gap { .. } | Progress::Withheld => return None,
    };
    Some(Chunk::Partial { json })
}

fn pairs<const N: usize>(pairs: [(&str, Value); N]) -> Object {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn lost() -> Fault {
    Fault::new(Code::CoreInternal, "The end of the run could not be read.")
}
