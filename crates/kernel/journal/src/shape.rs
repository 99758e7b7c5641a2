//! The stored shape of what the domain keeps inside enum variants.
//!
//! Each is generic over what it holds, so that one definition writes from references and reads
//! owned values. Field names are part of the stored form.

use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
pub(crate) struct Resolved<R, B> {
    pub(crate) resolution: R,
    pub(crate) by: B,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct WorldSet<S, B> {
    pub(crate) settings: S,
    pub(crate) by: B,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct ToolAllowed<T, A, B> {
    pub(crate) tool: T,
    pub(crate) allowance: A,
    pub(crate) by: B,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct WorldCorrected<R, B> {
    pub(crate) by_micro: i64,
    pub(crate) reason: R,
    pub(crate) by: B,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct WorldGone<B> {
    pub(crate) by: B,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) purge_runs: bool,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Text<S> {
    pub(crate) channel: S,
    pub(crate) text: S,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Log<L, S> {
    pub(crate) level: L,
    pub(crate) text: S,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Partial<S, V> {
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<S>,
    pub(crate) value: V,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct PhaseShape<S> {
    pub(crate) phase: S,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fraction: Option<f64>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Gap {
    pub(crate) from: u64,
    pub(crate) to: u64,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Nothing {}

/// `Option::default` would ask for `S: Default`.
fn none<S>() -> Option<S> {
    None
}
