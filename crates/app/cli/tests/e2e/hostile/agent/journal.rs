//! It makes the core write without end.
