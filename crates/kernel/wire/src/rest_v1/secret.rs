//! Secrets, of which nothing but the name is ever shown.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A secret as `GET /v1/secrets` lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Secret {
    /// Its name.
    pub name: String,
    /// When it was set.
    pub set_at: String,
}
