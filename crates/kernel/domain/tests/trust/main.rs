//! Who may do what: tokens and grants, permissions and their patterns, approvals of agents, rules.

mod fuzz;
mod patterns;
mod permissions;
mod properties;
mod tokens;
