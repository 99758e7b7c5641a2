//! Tokens: making, listing, revoking, and the keys they are sealed with.

use axum::http::StatusCode;
use wharf_domain::{AuditEvent, AuditRecord, Subject};
use wharf_vocab::{Code, Fault, StreamId, Verb};
use wharf_wire::rest_v1::{CreateToken, Keys, RotateKeys, Token};

use super::secrets::vault;
use super::table::{ApiCall, delete, get, post, routes};
use super::to_its_end;
use crate::access::Need;
use crate::answer::{self, Answer, FaultResponse};
use crate::body::{JsonBody, OptionalJsonBody};
use crate::params::{Params, Segments};
use crate::{access, from_wire, page};

routes! {
    "tokens";
    /// Lists tokens, oldest first, without their text. A token limited to some worlds sees only tokens
    /// limited to the same or fewer.
    list_tokens => get("/v1/tokens", Need::ADMIN, list)
        .query::<String>("world", "Only tokens that cover this world.")
        .page::<Token>("A page of tokens.");
    /// Creates a token. Only this response ever shows it.
    create_token => post("/v1/tokens", Need::ADMIN, create)
        .takes::<CreateToken>()
        .gives::<Token>(201, "The token.")
        .fails(403, "The new token would have more rights than this one.");
    /// Creates a new key to sign tokens with. Tokens signed with older keys remain valid unless those
    /// keys are dropped.
    rotate_keys => post("/v1/tokens/rotate", Need::ADMIN_EVERYWHERE, rotate)
        .may_take::<RotateKeys>()
        .gives::<Keys>(200, "The names of the valid keys.");
    /// Revokes a token and every token made with it, with immediate effect.
    revoke_token => delete("/v1/tokens/{token_id}", Need::ADMIN, revoke)
        .says(204, "The token was revoked.")
        .missing("token");
}

async fn create(
    ApiCall { app, caller }: ApiCall,
    JsonBody(request): JsonBody<CreateToken>,
) -> Answer {
    let now = app.handle.now();
    let new = from_wire::new_grant(request, now)?;
    let (grant, token) =
        app.handle.trust().make_grant(&caller, new).await.map_err(FaultResponse::denied)?;
    let shown = Token { token: Some(token.expose().to_owned()), ..wharf_views::token(&grant, now) };
    Ok(answer::json(StatusCode::CREATED, &shown))
}

async fn list(ApiCall { app, caller }: ApiCall, params: Params) -> Answer {
    let now = app.handle.now();
    let mut grants = app.handle.trust().grants();
    let world = params.world()?;
    if let Some(world) = &world {
        access::world(&caller, Verb::Admin, world)?;
    }
    grants.retain(|grant| {
        access::knows(&caller, grant) && world.as_ref().is_none_or(|it| grant.rights.in_world(it))
    });
    // Ids begin with the time they were made at, so this is oldest first.
    page::by_name(
        &params,
        page::TOKENS,
        grants,
        |grant| grant.id.as_str(),
        |grant| wharf_views::token(grant, now),
    )
}

async fn revoke(ApiCall { app, caller }: ApiCall, segments: Segments) -> Answer {
    let id = wharf_views::id("token_id", segments.get("token_id"))?;
    let known = app.handle.trust().grants().into_iter().find(|grant| grant.id == id);
    let reached = known.as_ref().is_some_and(|grant| access::knows(&caller, grant));
    if caller.rights.worlds.is_some() && !reached {
        let message = "This token is not for all worlds of that token, or there is none such.";
        let fault = Fault::new(Code::PermissionDenied, message).with("world", "*");
        return Err(FaultResponse::denied(fault));
    }
    app.handle.trust().revoke_grant(&caller, id).await?;
    answer::done()
}

async fn rotate(
    ApiCall { app, caller }: ApiCall,
    OptionalJsonBody(request): OptionalJsonBody<RotateKeys>,
) -> Answer {
    let drop_old = request.and_then(|request| request.drop_old).unwrap_or(false);
    let (vault, handle) = (vault(&app)?, app.handle.clone());
    // A key that was written must also count, whether or not somebody still listens.
    let keys = to_its_end(async move {
        let keyring = vault.rotate(drop_old).await?;
        let keys =
            Keys { current: keyring.current.clone(), keys: keyring.keys.keys().cloned().collect() };
        handle.seals().set_keyring(keyring);
        let record = AuditRecord::new(AuditEvent::GRANT_KEYS_ROTATED, &caller.grant, Subject::CORE)
            .fact("key", keys.current.as_str())
            .fact("drop_old", drop_old);
        handle.audit().record(&StreamId::Grant(caller.grant), record).await?;
        Ok(keys)
    })
    .await?;
    answer::ok(&keys)
}
