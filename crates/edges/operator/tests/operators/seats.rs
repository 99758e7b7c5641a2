//! Seats: who may sit, and what a new connection finds.

use crate::stage::{OWNER, SeatKey, Stage, eventually, word};
use serde_json::{Value, json};
use std::time::Duration;
use wharf_domain::Policy;

#[tokio::test]
async fn o001_a_seat_has_an_id_and_a_token_nobody_can_guess() {
    let stage = Stage::start().await;
    let request = json!({ "desc": "d", "roles": ["senior"], "whatever": 1 });
    let answer = stage.call("POST /v1/operators", &request).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.body["roles"], json!(["senior"]));
    assert!(word(&answer.body, "sid").starts_with("S-") && word(&answer.body, "sid").len() >= 34);
    assert!(word(&answer.body, "token").len() >= 64);
    let reader = stage.token(json!({ "verbs": ["read"] })).await;
    let refused = stage.call_as(&reader, "POST /v1/operators", &request).await;
    assert_eq!(refused.refused(), (403, "permission.denied"));
    let nobody = stage.call_as("", "POST /v1/operators", &request).await;
    assert_eq!(nobody.refused(), (401, "auth.required"));
    // Whoever sends a token is told what is wrong with it.
    let own = word(&answer.body, "token");
    let seated = stage.call_as(own, "POST /v1/operators", &request).await;
    assert_eq!(seated.refused(), (403, "permission.denied"));
    let wrong = stage.call_as("wrong", "POST /v1/operators", &request).await;
    assert_eq!(wrong.refused(), (401, "auth.invalid"));
}

#[tokio::test]
async fn o001_a_role_held_by_a_live_seat_is_a_conflict_only_if_it_is_wanted_alone() {
    let stage = Stage::start().await;
    let key = stage.seat(json!({ "roles": ["senior"] })).await;
    let _seat = stage.open(&key).await;
    stage.seat(json!({ "roles": ["senior"] })).await;
    let wanted = json!({ "roles": ["senior", "junior"], "exclusive_roles": true });
    let answer = stage.call("POST /v1/operators", &wanted).await;
    assert_eq!(answer.refused(), (409, "seat.role_taken"));
    assert_eq!(answer.body["conflicts"], json!(["senior"]));
}

#[tokio::test]
async fn o002_only_the_seats_own_token_opens_its_socket() {
    let stage = Stage::start().await;
    let (one, other) = (stage.seat(json!({})).await, stage.seat(json!({})).await);
    let refused = [
        (one.sid.as_str(), "", 401),
        (&one.sid, "wrong", 401),
        (&one.sid, &other.token, 401),
        (&one.sid, OWNER, 401),
        ("S-nothing", &one.token, 404),
        ("%20", &one.token, 404),
    ];
    for (sid, token, status) in refused {
        assert_eq!(stage.connect(sid, token, "").await.err(), Some(status), "{sid} {token}");
    }
    let mut seat = stage.open(&one).await;
    seat.is_quiet().await;
}

#[tokio::test]
async fn o002_a_browser_carries_its_token_among_the_subprotocols() {
    let stage = Stage::start().await;
    let key = stage.seat(json!({})).await;
    let offers = format!("wharf.v1, wharf.bearer.{}", key.token);
    let mut seat = stage.connect(&key.sid, "", &offers).await.expect("opens");
    assert_eq!(seat.protocol, "wharf.v1", "the token is never echoed");
    seat.is_quiet().await;
    let refused = stage.connect(&key.sid, "", "wharf.v1, wharf.bearer.wrong").await;
    assert_eq!(refused.err(), Some(401));
    let refused = stage.connect(&key.sid, "", "wharf.v1, wharf.bearer.").await;
    assert_eq!(refused.err(), Some(401));
}

#[tokio::test]
async fn o002_a_seat_whose_makers_grant_is_over_opens_no_more() {
    let stage = Stage::start().await;
    let made = stage.call("POST /v1/tokens", &json!({ "verbs": ["operate"] })).await;
    let token = word(&made.body, "token");
    let seat = stage.call_as(token, "POST /v1/operators", &json!({})).await;
    let (sid, own) = (word(&seat.body, "sid"), word(&seat.body, "token"));
    stage.connect(sid, own, "").await.expect("opens");
    let id = word(&made.body, "token_id");
    assert_eq!(stage.call(&format!("DELETE /v1/tokens/{id}"), &Value::Null).await.status, 204);
    assert_eq!(stage.connect(sid, own, "").await.err(), Some(401));
}

#[tokio::test]
async fn o003_a_seat_sees_itself_and_others_need_a_grant() {
    let stage = Stage::start().await;
    let (key, _seat) = stage.sit().await;
    let other = stage.seat(json!({})).await;
    let line = format!("GET /v1/operators/{}", key.sid);
    for token in [key.token.as_str(), OWNER] {
        let shown = stage.call_as(token, &line, &Value::Null).await.body;
        assert_eq!((&shown["sid"], &shown["connected"]), (&json!(key.sid), &json!(true)));
        assert_eq!((&shown["desc"], &shown["pending"]), (&json!("night shift"), &json!([])));
        assert!(shown["last_seen"].is_string(), "{shown}");
    }
    let foreign = stage.call_as(&other.token, &line, &Value::Null).await;
    assert_eq!(foreign.status, 401, "{foreign:?}");
    let operator = stage.token(json!({ "verbs": ["operate"] })).await;
    let seen = stage.call_as(&operator, "GET /v1/operators", &Value::Null).await.body;
    assert_eq!(seen["items"], json!([]), "who made none sees none");
    let all = stage.call("GET /v1/operators", &Value::Null).await.body;
    assert_eq!(all["items"].as_array().map(Vec::len), Some(2), "{all}");
    let own = stage.call_as(&key.token, "GET /v1/operators", &Value::Null).await.body;
    assert_eq!(own["items"].as_array().map(Vec::len), Some(1), "a seat sees itself: {own}");
    assert_eq!((&own["items"][0]["sid"], &own["total"]), (&json!(key.sid), &json!(1)));
    assert_eq!(own["operators"], own["items"], "under the name that older peers know, too");
    let wrong = stage.call_as("nobody's", "GET /v1/operators", &Value::Null).await;
    assert_eq!(wrong.refused(), (401, "auth.invalid"));
    let denied = stage.call_as(&operator, &line, &Value::Null).await;
    assert_eq!(denied.refused(), (403, "permission.denied"));
}

#[tokio::test]
async fn c018_a_seat_shows_what_waits_for_it() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    let run = stage.task(&key.sid, json!({})).await;
    let spawn = seat.hear("spawn").await;
    let line = format!("GET /v1/operators/{}", key.sid);
    let shown = stage.call(&line, &Value::Null).await.body;
    let waiting = &shown["waiting"][0];
    assert_eq!((&waiting["kind"], &waiting["run_id"]), (&json!("task"), &json!(run)), "{shown}");
    assert_eq!((&waiting["req_id"], &waiting["taken"]), (&spawn["req_id"], &json!(false)));
    assert_eq!(shown["waiting"].as_array().map(Vec::len), Some(1));
    let all = stage.call("GET /v1/operators", &Value::Null).await.body;
    assert_eq!(all["items"][0].get("waiting"), None, "lists leave it out");
}

#[tokio::test]
async fn o003_giving_a_seat_up_closes_its_socket_and_fails_what_waited() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    let run = stage.task(&key.sid, json!({})).await;
    seat.hear("spawn").await;
    let line = format!("DELETE /v1/operators/{}", key.sid);
    assert_eq!(stage.call_as(&key.token, &line, &Value::Null).await.status, 204);
    let (code, reason) = seat.closed().await;
    assert_eq!((code, reason.is_empty()), (1000, false));
    let run = stage.until(&run, "failed").await;
    assert_eq!(run["error"]["code"], "tool.unavailable", "{run}");
    assert_eq!(stage.connect(&key.sid, &key.token, "").await.err(), Some(404));
    assert_eq!(stage.call(&line, &Value::Null).await.refused(), (404, "seat.not_found"));
}

#[tokio::test]
async fn o004_a_new_connection_takes_over_and_the_old_ones_replies_do_not_count() {
    let stage = Stage::start().await;
    let (key, mut old) = stage.sit().await;
    let run = stage.task(&key.sid, json!({})).await;
    let spawn = old.hear("spawn").await;
    let mut new = stage.open(&key).await;
    // The old one may still speak; nobody listens.
    let _ = futures::SinkExt::send(
        &mut old.stream,
        tokio_tungstenite::tungstenite::Message::Text(
            json!({ "type": "spawn_ack", "req_id": spawn["req_id"], "value": { "from": "old" } })
                .to_string()
                .into(),
        ),
    )
    .await;
    let (code, reason) = old.closed().await;
    assert_eq!((code, reason.as_str()), (1000, "another connection took the seat"));
    let again = new.hear("spawn").await;
    assert_eq!((&again["req_id"], &again["redelivered"]), (&spawn["req_id"], &json!(true)));
    new.say(json!({ "type": "spawn_ack", "req_id": spawn["req_id"], "value": { "from": "new" } }))
        .await;
    assert_eq!(stage.until(&run, "succeeded").await["outputs"]["from"], "new");
}

#[tokio::test]
async fn o005_whatever_is_unanswered_is_sent_again_on_connect_in_order() {
    let stage = Stage::start().await;
    let key = stage.seat(json!({})).await;
    let mut wanted = Vec::new();
    for number in 0..20 {
        wanted.push(stage.task(&key.sid, json!({ "input": format!("{number}") })).await);
    }
    let mut seat = stage.open(&key).await;
    let mut first = Vec::new();
    for _ in 0..20 {
        let spawn = seat.hear("spawn").await;
        assert_eq!(spawn.get("redelivered"), None, "it was never sent: {spawn}");
        first.push(spawn);
    }
    drop(seat);
    let mut seat = stage.open(&key).await;
    for spawn in &first {
        let again = seat.hear("spawn").await;
        assert_eq!(again["req_id"], spawn["req_id"]);
        assert_eq!(again["worker_handle"], spawn["worker_handle"]);
        assert_eq!(again["redelivered"], true);
        assert_eq!(stage.submit(&again, "done").await.status, 204);
    }
    for run in &wanted {
        stage.until(run, "succeeded").await;
    }
}

#[tokio::test]
async fn o005_an_equal_reply_is_ignored_and_a_different_one_is_an_error() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    let run = stage.task(&key.sid, json!({})).await;
    let spawn = seat.hear("spawn").await;
    let ack = json!({ "type": "spawn_ack", "req_id": spawn["req_id"], "value": { "n": 1 } });
    for _ in 0..3 {
        seat.say(ack.clone()).await;
    }
    seat.is_quiet().await;
    let other = json!({ "type": "spawn_ack", "req_id": spawn["req_id"], "value": { "n": 2 } });
    seat.say(other).await;
    let error = seat.hear("error").await;
    assert_eq!(
        (&error["code"], &error["req_id"]),
        (&json!("operator.already_answered"), &spawn["req_id"])
    );
    assert_eq!(stage.until(&run, "succeeded").await["outputs"]["n"], 1);
}

#[tokio::test]
async fn o006_a_silent_seat_counts_as_away_and_one_that_is_pinged_and_answers_does_not() {
    let stage = Stage::with(Policy::default(), |options| {
        options.limits.ping_ms = 20;
        options.limits.silence_ms = 200;
    })
    .await;
    let (key, mut seat) = stage.sit().await;
    // Whoever does not read does not answer pings.
    let connected = async || {
        let shown = stage.call(&format!("GET /v1/operators/{}", key.sid), &Value::Null).await;
        (shown.body["connected"] == false).then_some(())
    };
    eventually(connected).await;
    seat.closed().await;
    let mut seat = stage.open(&key).await;
    let reading = tokio::time::timeout(Duration::from_millis(600), seat.next()).await;
    assert!(reading.is_err(), "it is still open: {reading:?}");
}

#[tokio::test]
async fn o006_a_seat_that_is_away_for_too_long_is_given_up_with_all_that_waits() {
    let stage =
        Stage::with(Policy::default(), |options| options.away_max = Duration::from_millis(300))
            .await;
    let (key, seat) = stage.sit().await;
    let run = stage.task(&key.sid, json!({})).await;
    drop(seat);
    let run = stage.until(&run, "failed").await;
    assert_eq!(run["error"]["code"], "tool.unavailable", "{run}");
    let gone = SeatKey { ..key };
    let refused = async || stage.connect(&gone.sid, &gone.token, "").await.err();
    assert_eq!(eventually(refused).await, 404);
}

#[tokio::test]
async fn o002_a_ticket_of_the_seat_opens_its_socket_and_nothing_else() {
    let stage = Stage::start().await;
    let (one, other) = (stage.seat(json!({})).await, stage.seat(json!({})).await);
    let ticket = async |key: &SeatKey| {
        let request = json!({ "seat": key.sid });
        let answer = stage.call_as(&key.token, "POST /v1/tickets", &request).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        word(&answer.body, "ticket").to_owned()
    };
    // What a page knows: an address, and nothing that goes with it.
    let open = async |sid: &str, ticket: &str| {
        stage.connect(&format!("{sid}/ws?ticket={ticket}&rest="), "", "").await
    };
    let good = ticket(&one).await;
    let mut seat = open(&one.sid, &good).await.expect("opens");
    seat.is_quiet().await;
    assert_eq!(open(&one.sid, &good).await.err(), Some(401), "a ticket is good once");
    assert_eq!(open(&one.sid, &ticket(&other).await).await.err(), Some(401));
    let line = format!("GET /v1/runs/none/events?ticket={}", ticket(&one).await);
    assert_eq!(stage.call_as("", &line, &Value::Null).await.refused(), (401, "auth.invalid"));
    // Others make no tickets for a seat, and nobody a ticket for a seat with a token of another.
    let request = json!({ "seat": one.sid });
    for (token, status) in [(OWNER, 403), (other.token.as_str(), 401), ("", 401)] {
        let refused = stage.call_as(token, "POST /v1/tickets", &request).await;
        assert_eq!(refused.status, status, "{refused:?}");
    }
}
