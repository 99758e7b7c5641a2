//! T2, T3 and T22: who is let in, and with which subprotocol.

use reqwest::Method;
use wharf_wire::run_v1::{RUN_PATH, SUBPROTOCOL};

use crate::findings::Findings;
use crate::run::rules::how;
use crate::run::server::{Credential, Opening, Server};
use crate::run::session::End;

/// With which a wrong subprotocol may be refused.
const REFUSALS: [u16; 3] = [400, 403, 426];

pub(super) async fn check(server: &Server, findings: &mut Findings) {
    for offered in [None, Some("theory.run.v2"), Some("theory.run.v10"), Some("THEORY.RUN.V1")] {
        let named = offered.unwrap_or("no subprotocol");
        match server.open(offered, Credential::Right).await {
            Opening::Refused(status) => {
                let wrong = format!("A handshake with {named} was refused with {status}.");
                findings.check(2, REFUSALS.contains(&status), wrong);
            }
            Opening::Open(..) => {
                findings.fail(2, format!("A handshake with {named} was accepted."));
            }
            Opening::Failed(why) => findings.fail(2, format!("With {named}: {why}")),
        }
    }
    let list = format!("other.v9 ,  {SUBPROTOCOL} , another");
    for offered in [SUBPROTOCOL, &list, &format!("other,{SUBPROTOCOL}")] {
        match server.open(Some(offered), Credential::Right).await {
            Opening::Open(_, echoed) => {
                let right = echoed.as_deref() == Some(SUBPROTOCOL);
                let wrong = format!("{offered:?} was answered with the subprotocol {echoed:?}.");
                findings.check(2, right, wrong);
            }
            Opening::Refused(status) => {
                findings.fail(2, format!("{offered:?} was refused with {status}."));
            }
            Opening::Failed(why) => findings.fail(2, why),
        }
    }
    match server.ask(Method::GET, RUN_PATH).await {
        Ok(answer) => {
            let status = answer.status;
            let wrong = format!("GET {RUN_PATH} without an upgrade gave {status}.");
            findings.check(2, (400..500).contains(&status), wrong);
        }
        Err(why) => findings.fail(2, why),
    }
    if server.is_full() {
        token(server, findings).await;
        silence(server, findings).await;
    }
}

/// T22: a missing or wrong token is refused with 401.
async fn token(server: &Server, findings: &mut Findings) {
    let Some(token) = &server.options.token else {
        findings.not_applicable(22, "No token was given.");
        return;
    };
    let longer = format!("Bearer {token}x");
    let shorter = format!("Bearer {}", &token[..token.len().min(1)]);
    let basic = format!("Basic {token}");
    let credentials = [
        ("no token", Credential::Missing),
        ("a longer token", Credential::Header(&longer)),
        ("another token", Credential::Header(&shorter)),
        ("another scheme", Credential::Header(&basic)),
    ];
    for (named, credential) in credentials {
        match server.open(Some(SUBPROTOCOL), credential).await {
            Opening::Refused(401) => findings.pass(22),
            Opening::Refused(status) => {
                findings.fail(22, format!("With {named} the handshake gave {status}, not 401."));
            }
            Opening::Open(..) => findings.fail(22, format!("With {named} it was accepted.")),
            Opening::Failed(why) => findings.fail(22, why),
        }
    }
}

/// T3: a connection that says nothing is closed.
async fn silence(server: &Server, findings: &mut Findings) {
    if !server.options.slow {
        findings.not_applicable(3, "It takes seconds; ask for it with --slow.");
        return;
    }
    let Ok(mut session) = server.dial().await else { return };
    session.read_to_end(server.options.first_frame + server.options.slack * 4).await;
    let seen = session.finish();
    let right = matches!(seen.end, Some(End::Closed { code: 1008, .. })) && seen.frames.is_empty();
    let wrong = format!("A connection that said nothing {}, not closed with 1008.", how(&seen));
    findings.check(3, right, wrong);
}
