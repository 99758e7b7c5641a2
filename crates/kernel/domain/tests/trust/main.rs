//! Who may do what: tokens and grants, permissions and their patterns, approvals of agents, rules.

mod agents;
mod fuzz;
mod grants;
mod limits;
mod patterns;
mod permissions;
mod policy;
mod properties;
mod tokens;
