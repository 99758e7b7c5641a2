//! Calling the tools of a core.

use crate::Error;
use crate::transport::{Address, Link, Options, ws};

/// Connects to a core to call its tools in a world, and to ask, tell and sample there.
///
/// A tool goes by the id that its definition [says](crate::Tool::at) or, if no other tool has it, by
/// its name; [`Link::named`] gives another name that is known only when the program runs. What was
/// begun is called off when the connection ends.
///
/// ```no_run
/// use wharf_sdk::{Scope, Tool, principal};
///
/// const GET_LOCATION: Tool<(), String> =
///     Tool::new("get-location", "Where the user is.").at("browser/get-location");
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let token = std::env::var("TOKEN")?;
/// let core = principal::connect("http://localhost:4200", Some(&token), "default").await?;
/// let scope = Scope::root().with_transport(core);
/// println!("{}", GET_LOCATION.call(&scope, ()).await?);
/// # Ok(()) }
/// ```
pub async fn connect(core: &str, token: Option<&str>, world: &str) -> Result<Link, Error> {
    let options = Options { token: token.map(str::to_owned), ..Options::default() };
    connect_with(core, world, &options).await
}

/// The same with choices about the connection.
pub async fn connect_with(core: &str, world: &str, options: &Options) -> Result<Link, Error> {
    let address = Address::parse(core)?.at("/v1/tool/ws");
    let address = address.with("role", "principal").with("world", world);
    Ok(ws::connect_to(&address, options).await?.of_core())
}
