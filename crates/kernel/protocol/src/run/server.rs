//! The end that works: a tool server.
