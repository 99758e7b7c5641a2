//! The `wharf` program as its users meet it: real processes, real sockets, a real database.

mod agents;
mod author;
mod backups;
mod canary;
mod children;
mod completions;
mod console;
mod costs;
mod data_faults;
mod deploy;
mod echoes;
mod elsewhere;
mod everyday;
mod examples;
mod faces;
mod faults;
mod flow_documents;
mod flows;
mod graphql;
#[cfg(target_os = "linux")]
mod hostile;
mod mcp;
mod new_projects;
mod notifications;
mod openapi;
mod operatives;
mod operators;
mod page;
mod postgres;
mod processes;
mod promises;
mod purge;
mod python_sdk;
mod quickstart;
mod readme;
mod rust_client;
mod rust_sdk;
mod schedules;
#[cfg(target_os = "linux")]
mod security_page;
mod service;
mod steps;
mod support;
mod tls;
mod tokens;
mod tool_servers;
#[cfg(target_os = "linux")]
mod torture;
mod traces;
mod trust;
mod typescript_sdk;
mod typescript_tools;
mod withheld;
mod worlds;

#[cfg(target_os = "linux")]
#[path = "mcp/surface.rs"]
mod mcp_surface;
