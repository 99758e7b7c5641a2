//! Calls over server-sent events and POST, for where nothing but plain HTTP gets through.
//!
//! The side that connects reads a stream of events and posts what it has to say, one message
//! each. A stream that breaks off is resumed without losing or doubling an event.

mod client;
mod listener;
mod outlet;
mod session;

use super::{Address, Error, Link, Options};
use client::Client;
pub use listener::Listener;
use wharf_wire::tool_v1::SUBPROTOCOL;

/// Connects to whoever listens at an address: `http://`, or `https://` with the feature `tls`. A
/// token goes in the header, never in the address.
///
/// Whoever listens is taken for a peer that knows the additions to the protocol, unless the
/// options say `plain`.
///
/// ```no_run
/// use wharf_sdk::transport::{Options, sse};
/// use wharf_sdk::Scope;
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let link = sse::connect("http://localhost:7000/tools", &Options::default()).await?;
/// let scope = Scope::root().with_transport(link);
/// # Ok(()) }
/// ```
pub async fn connect(address: &str, options: &Options) -> Result<Link, Error> {
    connect_to(&Address::parse(address)?, options).await
}

/// The same with an address that was read already.
pub async fn connect_to(address: &Address, options: &Options) -> Result<Link, Error> {
    let mut address = address.clone().with("session", &session_name()?);
    if !options.plain {
        address = address.with("protocol", SUBPROTOCOL);
    }
    let client = Client::connect(address, options).await?;
    Ok(Link::new(client, !options.plain, true, options))
}

/// A name that nobody can guess, under which events and messages belong together.
fn session_name() -> Result<String, Error> {
    let mut bytes = [0; 16];
    let none = |_| Error::Protocol { why: "there is no randomness".to_owned() };
    getrandom::fill(&mut bytes).map_err(none)?;
    Ok(hex::encode(bytes))
}
