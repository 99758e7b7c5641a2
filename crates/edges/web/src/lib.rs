//! What edges that speak HTTP share: how they refuse, what they read from a request, and how they
//! stream events.
//!
//! It knows no engine and no caller: who may do what is each edge's own business.

pub mod answer;
pub mod cursor;
pub mod outbound;
pub mod params;
pub mod sse;
pub mod token;
