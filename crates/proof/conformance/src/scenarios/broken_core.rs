//! A core that sends what no core may send, or goes away.

use std::time::Duration;

use serde_json::json;

use crate::Error;
use crate::findings::Findings;
use crate::launch::Setup;
use crate::session::Session;

/// How long an agent may take to give up.
const EXIT_TIME_MAX: Duration = Duration::from_secs(5);
/// A limit on frames that an agent has to notice.
const SMALL_FRAME_BYTES: u32 = 16 * 1024;

pub(super) async fn all(setup: &Setup) -> Result<Findings, Error> {
    let mut findings = Findings::default();
    for (number, bytes, why) in MALFORMED {
        malformed(setup, &mut findings, (*number, bytes, why)).await?;
    }
    half_a_frame(setup, &mut findings).await?;
    end_of_stream(setup, &mut findings).await?;
    small_frames(setup, &mut findings).await?;
    Ok(findings)
}

/// Bytes after which an agent has to close, the requirement, and what it means not to.
const MALFORMED: &[(u16, &[u8], &str)] = &[
    (3, b"\0\0\0\x02[]", "The agent went on after a frame with a JSON array."),
    (3, b"\0\0\0\x05{\"v\":", "The agent went on after a frame that is not JSON."),
    (4, b"\0\0\0\x0a{\"v\":\"\xff\xfe\"}", "The agent went on after a frame that is not UTF-8."),
    (5, b"\0\0\0\0", "The agent went on after an empty frame."),
    (9, b"\xff\xff\xff\xff", "The agent waited for a frame of 4 GiB."),
];

async fn malformed(
    setup: &Setup,
    findings: &mut Findings,
    (number, bytes, why): (u16, &[u8], &str),
) -> Result<(), Error> {
    let Some(mut session) = Session::open(setup, findings).await? else { return Ok(()) };
    session.link.send_garbage(bytes).await;
    let closed = session.link.closed(EXIT_TIME_MAX + setup.options.slack).await;
    findings.check(number, closed, why);
    session.finish(findings).await;
    Ok(())
}

/// The connection ends inside a call: nothing of it is answered, and the agent ends.
async fn half_a_frame(setup: &Setup, findings: &mut Findings) -> Result<(), Error> {
    let Some(mut session) = Session::open(setup, findings).await? else { return Ok(()) };
    let call = session.call_of_nothing();
    let body = call.to_string();
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes();
    session.link.send_garbage(&[&length, &body.as_bytes()[..body.len() - 1]].concat()).await;
    session.link.close().await;
    let ended = session.launch.exit(EXIT_TIME_MAX + setup.options.slack).await.is_some();
    let acted = session.result_within(&call, Duration::ZERO).await.is_some();
    findings.check(7, ended && !acted, "The agent acted on half a frame or did not end after it.");
    session.finish(findings).await;
    Ok(())
}

async fn end_of_stream(setup: &Setup, findings: &mut Findings) -> Result<(), Error> {
    let Some(mut session) = Session::open(setup, findings).await? else { return Ok(()) };
    session.link.close().await;
    let ended = session.launch.exit(EXIT_TIME_MAX + setup.options.slack).await;
    let why = "The agent did not exit within 5 seconds of the end of the connection.";
    findings.check(64, ended.is_some(), why);
    session.finish(findings).await;
    Ok(())
}

/// The welcome allows small frames only: a large output must not become a larger one.
async fn small_frames(setup: &Setup, findings: &mut Findings) -> Result<(), Error> {
    let opened = Session::open_with(setup, SMALL_FRAME_BYTES, findings).await?;
    let Some(mut session) = opened else { return Ok(()) };
    let (name, input) = if session.offers("large_output") {
        ("large_output", json!({ "bytes": 1_000_000 }))
    } else {
        ("wharf_conformance_no_such_tool", json!({}))
    };
    let call = session.call(name, input);
    let answered = session.ask(call).await.is_some();
    findings.check(12, answered, "With small frames a call got no result.");
    session.finish(findings).await;
    Ok(())
}
