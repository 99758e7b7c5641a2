//! It hides what it takes from its limits.
