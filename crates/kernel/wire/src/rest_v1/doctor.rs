//! What a core says of its own health.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `GET /v1/doctor`: what was looked at, and what was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Diagnosis {
    /// The worst of the checks: `ok`, `warn` or `fail`.
    pub status: String,
    /// The core's version.
    pub version: String,
    /// What was looked at.
    pub checks: Vec<Finding>,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Finding {
    /// What was looked at.
    pub name: String,
    /// `ok`, `warn` (it works, but somebody should look) or `fail`.
    pub verdict: String,
    /// What was seen.
    pub text: String,
}
