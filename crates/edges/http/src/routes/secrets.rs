//! Secrets: setting, listing their names, removing. What was set never comes out here.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use wharf_domain::{AuditEvent, AuditRecord, Caller};
use wharf_ports::launcher::Secret;
use wharf_ports::vault::Vault;
use wharf_vocab::{Code, Fault, SecretName, StreamId};
use wharf_wire::rest_v1::{self as wire, ErrorBody, Page};

use super::to_its_end;
use crate::answer::{Answer, invalid};
use crate::app::App;
use crate::body::SecretBody;
use crate::page::List;
use crate::params::{Params, Segments};
use crate::{from_wire, page};

/// Stores the request body as a secret, replacing an older one with this name.
#[utoipa::path(
    put, path = "/v1/secrets/{name}", tag = "secrets",
    operation_id = "set_secret",
    params(("name" = String, Path, description = "The secret's name.")),
    request_body(content = Vec<u8>, content_type = "application/octet-stream",
        description = "The secret itself, 1 byte to 64 KiB."),
    responses(
        (status = 204, description = "The secret was stored."),
        (status = 413, description = "The file is too large.", body = ErrorBody),
        (status = "default", description = "Any other error.", body = ErrorBody),
    )
)]
pub(super) async fn set(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    segments: Segments,
    SecretBody(bytes): SecretBody,
) -> Answer {
    let name = from_wire::secret_name(segments.get("name"))?;
    let vault = vault(&app)?;
    if bytes.is_empty() {
        return Err(invalid("body", "A secret has at least one byte.").into());
    }
    let work = async move {
        vault.set(name.clone(), Secret::new(bytes)).await?;
        audit(&app, &caller, AuditEvent::SECRET_SET, &name).await
    };
    to_its_end(work).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Lists the names of secrets.
#[utoipa::path(
    get, path = "/v1/secrets", tag = "secrets",
    operation_id = "list_secrets",
    params(
        ("limit" = Option<u32>, Query, description = "Items on a page, 1 to 200."),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the previous page."),
    ),
    responses(
        (status = 200, description = "A page of names.", body = Page<wire::Secret>),
        (status = "default", description = "Any error.", body = ErrorBody),
    )
)]
pub(super) async fn list(State(app): State<Arc<App>>, params: Params) -> Answer {
    let kept = vault(&app)?.list().await?;
    page::by_name(&params, List::Secrets, kept, |secret| secret.name.as_str(), wharf_views::secret)
}

/// Removes a secret. Providers that already have it keep it until they end.
#[utoipa::path(
    delete, path = "/v1/secrets/{name}", tag = "secrets",
    operation_id = "remove_secret",
    params(("name" = String, Path, description = "The secret's name.")),
    responses(
        (status = 204, description = "The secret was removed."),
        (status = 404, description = "There is no such secret.", body = ErrorBody),
        (status = "default", description = "Any other error.", body = ErrorBody),
    )
)]
pub(super) async fn remove(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    segments: Segments,
) -> Answer {
    let name = from_wire::secret_name(segments.get("name"))?;
    let vault = vault(&app)?;
    let work = async move {
        vault.remove(name.clone()).await?;
        audit(&app, &caller, AuditEvent::SECRET_REMOVED, &name).await
    };
    to_its_end(work).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Who keeps secrets.
pub(super) fn vault(app: &App) -> Result<Arc<dyn Vault>, Fault> {
    let none = || Fault::new(Code::SecretNotFound, "This core has no secrets and takes none.");
    app.vault.clone().ok_or_else(none)
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
