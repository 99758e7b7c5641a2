//! What changes, told thinly to whoever shows it.

use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use wharf_domain::Caller;
use wharf_views::ChangeQuery;
use wharf_vocab::{ChangeKind, Fault, Verb};
use wharf_wire::rest_v1::Changes;

use super::table::{ApiCall, get, routes};
use crate::access::{self, Need};
use crate::answer::{Answer, invalid};
use crate::app::App;
use crate::params::Params;

routes! {
    "system";
    /// Streams what changes, as events named `changes` with a `Changes` each, at most four a second. A
    /// change names what changed and how it stands; there is no history. The first event, and one after
    /// something was missed, has `reset`: then whatever is shown must be read again.
    changes => get("/v1/changes", Need::READ, stream)
        .streams()
        .query::<String>("kinds", "Only these kinds, separated by commas: `run`, `ask`, `provider`, \
            `world`, `token`.")
        .query::<String>("world", "Only changes in this world.")
        .sends_events::<Changes>("The changes.");
}

async fn stream(ApiCall { app, caller }: ApiCall, params: Params) -> Answer {
    let world = params.world()?;
    if let Some(world) = &world {
        access::world(&caller, Verb::Read, world)?;
    }
    let kinds = params.text("kinds").map(kinds).transpose()?.unwrap_or_default();
    let query = ChangeQuery { kinds, world };
    let (handle, reader) = (app.handle.clone(), caller.clone());
    let allowed = Box::new(move || handle.trust().check_current(&reader).is_ok());
    let source = events(Arc::clone(&app), query, caller);
    Ok(app.stream(source, allowed, "the core is stopping; come back"))
}

fn kinds(text: &str) -> Result<Vec<ChangeKind>, Fault> {
    let kind = |word: &str| {
        let message = "`kinds` takes run, ask, provider, world and token, separated by commas.";
        ChangeKind::parse(word.trim()).ok_or_else(|| invalid("kinds", message))
    };
    text.split(',').map(kind).collect()
}

fn events(app: Arc<App>, query: ChangeQuery, caller: Caller) -> BoxStream<'static, String> {
    let feed = app.handle.changes();
    stream::unfold((feed, app, query, caller), |(mut feed, app, query, caller)| async move {
        let frame = feed.next().await?;
        let text = app.changes.of(&frame, &query, &caller);
        let text = text.map(|text| text.as_ref().to_owned()).unwrap_or_default();
        Some((text, (feed, app, query, caller)))
    })
    .boxed()
}
