//! Whole cores on real homes: SQLite below, sockets above.

mod admin;
mod canary;
mod document;
mod homes;
mod restarts;
mod storage;
mod support;
