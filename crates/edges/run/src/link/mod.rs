//! The way to one tool server: a connection per attempt, taken up again when it breaks.
