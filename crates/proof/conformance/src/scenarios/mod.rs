//! What is done with an agent, one file per kind of core it meets.

mod broken_core;
mod ordinary;
mod refusing_core;
mod tools;
mod tools_cancel;
mod tools_invoke;

use crate::Error;
use crate::findings::Findings;
use crate::launch::Setup;

/// Every scenario. The long ones run side by side, the short ones one after the other.
pub(crate) async fn all(setup: &Setup) -> Result<Findings, Error> {
    let short = async {
        let mut findings = refusing_core::all(setup).await?;
        findings.merge(broken_core::all(setup).await?);
        Ok::<_, Error>(findings)
    };
    let (ordinary, tools, short) =
        tokio::join!(Box::pin(ordinary::all(setup)), Box::pin(tools::all(setup)), Box::pin(short));
    let mut findings = ordinary?;
    findings.merge(tools?);
    findings.merge(short?);
    Ok(findings)
}
