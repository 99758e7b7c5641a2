//! The end that asks: the core, or any other client of a tool server.
