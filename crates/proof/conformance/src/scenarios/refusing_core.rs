//! A core that does not want the agent, or not in this way.

use std::time::Duration;

use serde_json::json;
use wharf_wire::agent_v1::limits::FRAME_BYTES_MAX;

use crate::Error;
use crate::findings::Findings;
use crate::launch::Setup;
use crate::session::Session;

/// How long an agent may take to give up.
const EXIT_TIME_MAX: Duration = Duration::from_secs(5);

pub(super) async fn all(setup: &Setup) -> Result<Findings, Error> {
    let mut findings = Findings::default();
    refused(setup, &mut findings).await?;
    other_version(setup, &mut findings).await?;
    Ok(findings)
}

/// The welcome says no: the agent ends for good and keeps the token to itself.
async fn refused(setup: &Setup, findings: &mut Findings) -> Result<(), Error> {
    let Some(mut session) = Session::start(setup, FRAME_BYTES_MAX, findings).await? else {
        return Ok(());
    };
    let mut welcome = session.welcome();
    welcome["payload"] = json!({});
    welcome["error"] = json!({
        "code": "protocol.unauthorized",
        "message": "The session token is not valid.",
        "retryable": false,
    });
    session.link.send(welcome).await;
    session.link.close().await;
    let within = EXIT_TIME_MAX + setup.options.slack;
    if session.launch.accept(within).await.is_some() {
        findings.fail(61, "The agent connected again after it was refused.");
    }
    let status = session.launch.exit(within).await;
    let said_no = status.is_some_and(|status| !status.success());
    findings.check(61, said_no, "The agent did not exit with an error after it was refused.");
    let mut own = Findings::default();
    session.finish(&mut own).await;
    if let Some(crate::Verdict::Fail(why)) = own.take(52) {
        findings.fail(61, why.clone());
        findings.fail(52, why);
    }
    findings.merge(own);
    Ok(())
}

/// The welcome names a version that the agent never offered.
async fn other_version(setup: &Setup, findings: &mut Findings) -> Result<(), Error> {
    let Some(mut session) = Session::start(setup, FRAME_BYTES_MAX, findings).await? else {
        return Ok(());
    };
    let mut welcome = session.welcome();
    welcome["payload"]["accepted_version"] = json!(99);
    session.link.send(welcome).await;
    let closed = session.link.closed(EXIT_TIME_MAX + setup.options.slack).await;
    findings.check(62, closed, "The agent went on with a version that it had not offered.");
    session.finish(findings).await;
    Ok(())
}
