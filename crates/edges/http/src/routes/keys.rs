//! The keys that tokens are sealed with.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use wharf_domain::{AuditEvent, AuditRecord, Caller, Subject};
use wharf_vocab::StreamId;
use wharf_wire::rest_v1::{ErrorBody, Keys, RotateKeys};

use super::secrets::vault;
use super::to_its_end;
use crate::answer::{self, Answer};
use crate::app::App;
use crate::body::OptionalJsonBody;

/// Creates a new key to sign tokens with. Tokens signed with older keys remain valid unless those
/// keys are dropped.
#[utoipa::path(
    post, path = "/v1/tokens/rotate", tag = "tokens",
    operation_id = "rotate_keys",
    request_body = Option<RotateKeys>,
    responses(
        (status = 200, description = "The names of the valid keys.", body = Keys),
        (status = "default", description = "Any error.", body = ErrorBody),
    )
)]
pub(super) async fn rotate(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    OptionalJsonBody(request): OptionalJsonBody<RotateKeys>,
) -> Answer {
    let drop_old = request.and_then(|request| request.drop_old).unwrap_or(false);
    let (vault, handle) = (vault(&app)?, app.handle.clone());
    // A key that was written must also count, whether or not somebody still listens.
    let keys = to_its_end(async move {
        let keyring = vault.rotate(drop_old).await?;
        let keys =
            Keys { current: keyring.current.clone(), keys: keyring.keys.keys().cloned().collect() };
        handle.trust().set_keyring(keyring);
        let record = AuditRecord::new(AuditEvent::GRANT_KEYS_ROTATED, &caller.grant, Subject::CORE)
            .fact("key", keys.current.as_str())
            .fact("drop_old", drop_old);
        handle.audit().record(&StreamId::Grant(caller.grant), record).await?;
        Ok(keys)
    })
    .await?;
    Ok(answer::json(StatusCode::OK, &keys))
}
