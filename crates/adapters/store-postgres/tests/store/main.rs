//! The PostgreSQL store through its public face, on a real server.

mod contract;
mod ledger;
mod months;
mod proxy;
mod rewound;
mod same_as_memory;
mod support;
mod tls;
mod trouble;
mod two_cores;
