//! The named segments of a path.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;

use crate::answer::{Refused, invalid};

/// The named segments of a path, decoded.
#[derive(Debug)]
pub(super) struct Segments(RawPathParams);

impl<S: Send + Sync> FromRequestParts<S> for Segments {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refused> {
        let found = RawPathParams::from_request_parts(parts, state).await;
        let found = found.map_err(|_| invalid("path", "The path is not valid UTF-8."))?;
        Ok(Self(found))
    }
}

impl Segments {
    /// A segment by its name in the route.
    pub(super) fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(key, _)| *key == name).map_or("", |(_, value)| value)
    }
}
