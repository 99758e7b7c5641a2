//! Secrets: setting, listing their names, removing. What was set never comes out here.

use std::sync::Arc;

use axum::extract::State;
use wharf_domain::{AuditEvent, AuditRecord, Caller};
use wharf_ports::vault::{Secret, Vault};
use wharf_vocab::{Code, Fault, SecretName, StreamId};
use wharf_wire::rest_v1 as wire;

use super::table::{ApiCall, delete, get, put, routes};
use super::to_its_end;
use crate::access::Need;
use crate::answer::{self, Answer, invalid};
use crate::app::App;
use crate::body::SecretBody;
use crate::page;
use crate::params::{Params, Segments};

routes! {
    "secrets";
    /// Lists the names of secrets.
    list_secrets => get("/v1/secrets", Need::ADMIN_EVERYWHERE, list)
        .page::<wire::Secret>("A page of names.");
    /// Stores the request body as a secret, replacing an older one with this name.
    set_secret => put("/v1/secrets/{name}", Need::ADMIN_EVERYWHERE, set)
        .takes_bytes()
        .body("The secret itself, 1 byte to 64 KiB.")
        .says(204, "The secret was stored.")
        .fails(413, "The file is too large.");
    /// Removes a secret. Providers that already have it keep it until they end.
    remove_secret => delete("/v1/secrets/{name}", Need::ADMIN_EVERYWHERE, remove)
        .says(204, "The secret was removed.")
        .missing("secret");
}

async fn set(
    ApiCall { app, caller }: ApiCall,
    segments: Segments,
    SecretBody(bytes): SecretBody,
) -> Answer {
    let name: SecretName = wharf_views::id("name", segments.get("name"))?;
    let vault = vault(&app)?;
    if bytes.is_empty() {
        return Err(invalid("body", "A secret has at least one byte.").into());
    }
    let work = async move {
        vault.set(name.clone(), Secret::new(bytes)).await?;
        audit(&app, &caller, AuditEvent::SECRET_SET, &name).await
    };
    to_its_end(work).await?;
    answer::done()
}

async fn list(State(app): State<Arc<App>>, params: Params) -> Answer {
    let kept = vault(&app)?.list().await?;
    page::by_name(&params, page::SECRETS, kept, |secret| secret.name.as_str(), wharf_views::secret)
}

async fn remove(ApiCall { app, caller }: ApiCall, segments: Segments) -> Answer {
    let name: SecretName = wharf_views::id("name", segments.get("name"))?;
    let vault = vault(&app)?;
    let work = async move {
        vault.remove(name.clone()).await?;
        audit(&app, &caller, AuditEvent::SECRET_REMOVED, &name).await
    };
    to_its_end(work).await?;
    answer::done()
}

/// Who keeps secrets.
pub(super) fn vault(app: &App) -> Result<Arc<dyn Vault>, Fault> {
    let none = || Fault::new(Code::SecretNotFound, "This core has no secrets and takes none.");
    app.options.vault.clone().ok_or_else(none)
}

async fn audit(
    app: &App,
    caller: &Caller,
    event: AuditEvent,
    name: &SecretName,
) -> Result<(), Fault> {
    let record = AuditRecord::new(event, &caller.grant, name);
    app.handle.audit().record(&StreamId::Grant(caller.grant.clone()), record).await
}
