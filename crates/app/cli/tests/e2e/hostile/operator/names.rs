//! It takes all names there are.

use serde_json::json;

use crate::hostile::peers::{RawSocket, Stage};
use crate::security_page::{Peer, tried};

#[test]
fn an_operator_takes_all_seats() {
    let stage = Stage::up();
    let greedy = stage.caller(&["--verb", "operate"]);
    let make = || greedy.ask("POST", "/v1/operators", &json!({"desc": "mine"}));
    let mut made = 0;
    let refused = loop {
        let (status, answer) = make();
        if status != 200 {
            break answer;
        }
        made += 1;
        assert!(made <= 256, "there is no end");
    };
    let code = refused["error"]["code"].as_str().expect("a code");
    assert_eq!(code, "grant.limit", "{refused}");
    let other = stage.caller(&["--verb", "operate"]);
    assert_eq!(other.ask("POST", "/v1/operators", &json!({})).0, 200, "others have their share");
    tried(Peer::Operator, "takes all seats there may be", "a share of names for each token", code);
}

#[test]
fn an_operative_takes_all_names() {
    let stage = Stage::up();
    let token = stage.token(&["--verb", "serve"]);
    let open = |name: &str, token: &str| {
        let path = format!("/v1/tool/ws?role=operative&provider={name}");
        RawSocket::open(&stage.core, &path, "wharf.tool.v1", token)
    };
    let refused = (0..=128).find_map(|n| open(&format!("n{n}"), &token).err());
    assert_eq!(refused, Some(429));
    let other = stage.token(&["--verb", "serve"]);
    assert!(open("other", &other).is_ok(), "others have their share");
    tried(
        Peer::Operator,
        "takes, as an operative, all names there may be",
        "a share of names for each token",
        "HTTP 429",
    );
}
