//! Typed tools, scopes, layers, agents and built-ins, as authors meet them.

mod agents;
mod builtins;
mod calls;
mod compile_fail;
mod definitions;
mod examples;
mod lanes;
mod layers;
mod macros;
mod progress;
mod ready_made;
mod remote;
mod scopes;
mod support;
mod trace;
mod trial;
mod volume;
