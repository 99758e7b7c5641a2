//! MCP in both directions with unmodified programs of others: their clients, their servers, and the
//! official referee.

mod clients;
mod hostile;
mod kills;
mod player;
mod referee;
mod rust;
mod servers;
mod stage;
mod walks;
