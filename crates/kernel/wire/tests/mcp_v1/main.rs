//! MCP: examples of every message in every revision, hostile input, and the headers of HTTP.

mod envelopes;
mod examples;
mod headers;
