//! Tokens: making, listing, revoking.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use wharf_domain::Caller;
use wharf_vocab::{Code, Fault};
use wharf_wire::rest_v1::{CreateToken, ErrorBody, Page, Token};

use crate::answer::{self, Answer, Refused};
use crate::app::App;
use crate::body::JsonBody;
use crate::page::List;
use crate::params::{Params, Segments};
use crate::{access, from_wire, page};

/// Creates a token. Only this response ever shows it.
#[utoipa::path(
    post, path = "/v1/tokens", tag = "tokens",
    operation_id = "create_token",
    request_body = CreateToken,
    responses(
        (status = 201, description = "The token.", body = Token),
        (status = 403, description = "The new token would have more rights than this one.", body = ErrorBody),
        (status = "default", description = "Any other error.", body = ErrorBody),
    )
)]
pub(super) async fn create(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    JsonBody(request): JsonBody<CreateToken>,
) -> Answer {
    let now = app.handle.now();
    let new = from_wire::new_grant(request, now)?;
    let (grant, token) =
        app.handle.trust().make_grant(&caller, new).await.map_err(Refused::denied)?;
    let shown = Token { token: Some(token.expose().to_owned()), ..wharf_views::token(&grant, now) };
    Ok(answer::json(StatusCode::CREATED, &shown))
}

/// Lists tokens, oldest first, without their text. A token limited to some worlds sees only tokens
/// limited to the same or fewer.
#[utoipa::path(
    get, path = "/v1/tokens", tag = "tokens",
    operation_id = "list_tokens",
    params(
        ("limit" = Option<u32>, Query, description = "Items on a page, 1 to 200."),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the previous page."),
    ),
    responses(
        (status = 200, description = "A page of tokens.", body = Page<Token>),
        (status = "default", description = "Any error.", body = ErrorBody),
    )
)]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    params: Params,
) -> Answer {
    let now = app.handle.now();
    let mut grants = app.handle.trust().grants();
    grants.retain(|grant| access::knows(&caller, grant));
    // Ids begin with the time they were made at, so this is oldest first.
    page::by_name(
        &params,
        List::Tokens,
        grants,
        |grant| grant.id.as_str(),
        |grant| wharf_views::token(grant, now),
    )
}

/// Revokes a token and every token made with it, with immediate effect.
#[utoipa::path(
    delete, path = "/v1/tokens/{token_id}", tag = "tokens",
    operation_id = "revoke_token",
    params(("token_id" = String, Path, description = "The token's id.")),
    responses(
        (status = 204, description = "The token was revoked."),
        (status = 404, description = "There is no such token.", body = ErrorBody),
        (status = "default", description = "Any other error.", body = ErrorBody),
    )
)]
pub(super) async fn revoke(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    segments: Segments,
) -> Answer {
    let id = from_wire::grant_id(segments.get("token_id"))?;
    let known = app.handle.trust().grants().into_iter().find(|grant| grant.id == id);
    let reached = known.as_ref().is_some_and(|grant| access::knows(&caller, grant));
    if caller.rights.worlds.is_some() && !reached {
        let message = "This token is not for all worlds of that token, or there is none such.";
        let fault = Fault::new(Code::PermissionDenied, message).with("world", "*");
        return Err(Refused::denied(fault));
    }
    app.handle.trust().revoke_grant(&caller, id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
