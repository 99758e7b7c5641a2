//! Handlers in other languages: a process for each run.
