//! Worlds: settings, money, removing.

use serde_json::json;

use crate::support::Edge;

#[tokio::test]
async fn a_worlds_settings_are_made_changed_and_kept() {
    let edge = Edge::start().await;
    let rule = json!({"tool": "acme/*", "when": "cost>500", "approve": true, "audience": "any"});
    let body = json!({"world": "lab", "limit_micro": 100, "default_hold_micro": 60,
        "publish": "staged", "retention_days": 30, "policy": [rule]});
    let answer = edge.post("/v1/worlds", body.clone()).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    let made = answer.json();
    for (name, value) in body.as_object().expect("an object") {
        assert_eq!(&made[name], value, "{name}");
    }
    let patch = |body| edge.call("PATCH", "/v1/worlds/lab").json(&body).send();
    assert_eq!(patch(json!({})).await.json(), made, "nothing named, nothing changed");
    let changed = patch(json!({"limit_micro": null, "retention_days": 7})).await.json();
    assert_eq!(changed.get("limit_micro"), None, "null takes a limit away");
    assert_eq!(changed["retention_days"], 7);
    assert_eq!((&changed["publish"], &changed["policy"]), (&json!("staged"), &json!([rule])));
    assert_eq!(edge.get("/v1/worlds/lab").await.json(), changed);

    // The older way to set a budget leaves all else as it is.
    let budget = edge.call("PUT", "/v1/worlds/lab/budget").json(&json!({"limit_micro": 5}));
    let budget = budget.send().await.json();
    assert_eq!((&budget["limit_micro"], &budget["default_hold_micro"]), (&json!(5), &json!(0)));
    assert_eq!((&budget["retention_days"], &budget["publish"]), (&json!(7), &json!("staged")));
    let short = patch(json!({"policy": [{"tool": "mail/*"}]})).await.json();
    let whole = json!({"tool": "mail/*", "when": "always", "approve": true, "audience": "person"});
    assert_eq!(short["policy"], json!([whole]), "what is left out is as in wharf.toml");
    let plain = patch(json!({"policy": [], "publish": "direct", "retention_days": null})).await;
    let plain = plain.json();
    assert_eq!((&plain["policy"], &plain["publish"]), (&json!([]), &json!("direct")));
    assert_eq!(plain.get("retention_days"), None);
}

#[tokio::test]
async fn a_setting_that_does_not_fit_is_named_and_nothing_changes() {
    let edge = Edge::start().await;
    let before = edge.get("/v1/worlds/default").await.json();
    let rule = |field: &str, value| {
        let mut rule = json!({"tool": "acme/*", "approve": true});
        rule[field] = value;
        json!({"policy": [rule]})
    };
    for (body, field) in [
        (rule("tool", json!("acme")), "policy[0].tool"),
        (rule("when", json!("often")), "policy[0].when"),
        (rule("audience", json!("me")), "policy[0].audience"),
        (rule("approve", json!("yes")), "policy[0].approve"),
        (rule("patience_ms", json!(0)), "policy[0].patience_ms"),
        (rule("patience_ms", json!(u64::MAX)), "policy[0].patience_ms"),
        (json!({"retention_days": 0}), "retention_days"),
        (json!({"retention_days": -1}), "retention_days"),
        (json!({"limit_micro": -1}), "limit_micro"),
        (json!({"limit_micro": 1.5}), "limit_micro"),
        (json!({"publish": "later"}), "publish"),
        (json!({"default_hold_micro": null}), "default_hold_micro"),
        (json!({"publish": null}), "publish"),
        (json!({"policy": null}), "policy"),
        (json!({"color": "red"}), "color"),
    ] {
        let answer = edge.call("PATCH", "/v1/worlds/default").json(&body).send().await;
        let error = answer.refused(400, "request.invalid");
        assert_eq!(error["details"]["field"], field, "{body}");
    }
    assert_eq!(edge.get("/v1/worlds/default").await.json(), before);
    let answer = edge.call("PATCH", "/v1/worlds/none").json(&json!({})).send().await;
    answer.refused(404, "world.not_found");
}

#[tokio::test]
async fn a_number_that_does_not_fit_is_described_in_plain_words() {
    let edge = Edge::start().await;
    let number = "must be a whole number from 0 to 18446744073709551615";
    for (value, message) in [
        (json!(-1), number),
        (json!("many"), number),
        (json!(1.5), number),
        (json!(null), "must be a value that is not null"),
    ] {
        let body = json!({"default_hold_micro": value});
        let answer = edge.call("PATCH", "/v1/worlds/default").json(&body).send().await;
        let error = answer.refused(400, "request.invalid");
        let message = format!("The field `default_hold_micro` {message}.");
        assert_eq!(error["message"], message, "{body}");
    }
}

#[tokio::test]
async fn t041_two_who_change_different_settings_at_once_both_have_their_way() {
    let edge = Edge::start().await;
    let patch = |body| edge.call("PATCH", "/v1/worlds/default").json(&body).send();
    let budget = |body| edge.call("PUT", "/v1/worlds/default/budget").json(&body).send();
    for round in 1..=20 {
        let (limit, days, publish) = tokio::join!(
            budget(json!({"limit_micro": round, "default_hold_micro": round})),
            patch(json!({"retention_days": round})),
            patch(json!({"publish": if round % 2 == 0 { "direct" } else { "staged" }})),
        );
        for answer in [limit, days, publish] {
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
        let world = edge.get("/v1/worlds/default").await.json();
        for name in ["limit_micro", "default_hold_micro", "retention_days"] {
            assert_eq!(world[name], round, "{name}: {world}");
        }
        assert_eq!(world["publish"] == "direct", round % 2 == 0, "{world}");
    }
}

#[tokio::test]
async fn only_an_empty_world_goes_unless_that_is_forced() {
    let edge = Edge::start().await;
    let remove = |path: &str| edge.call("DELETE", path).send();
    edge.post("/v1/worlds", json!({"world": "lab"})).await;
    let put = edge.call("PUT", "/v1/worlds/lab/files/a").bytes(b"hello".to_vec());
    assert_eq!(put.send().await.status, 201);
    let error = remove("/v1/worlds/lab").await.refused(409, "world.not_empty");
    assert_eq!((&error["details"]["files"], &error["details"]["bytes"]), (&json!(1), &json!(5)));
    let error = remove("/v1/worlds/lab?force=perhaps").await.refused(400, "request.invalid");
    assert_eq!(error["details"]["field"], "force");

    let body = json!({"tool": "wharf/sleep", "inputs": {"ms": 60_000}, "world": "lab",
        "run_id": "r1"});
    assert_eq!(edge.post("/v1/runs", body).await.status, 202);
    remove("/v1/worlds/lab?force=true").await.refused(409, "world.not_empty");
    edge.post("/v1/runs/r1/cancel?world=lab", json!({})).await;
    edge.handle
        .runs()
        .wait(
            &wharf_vocab::RunKey {
                world: wharf_vocab::WorldId::new("lab").expect("valid"),
                run: wharf_vocab::RunId::new("r1").expect("valid"),
            },
            crate::support::PATIENCE,
        )
        .await
        .expect("over");

    let answer = remove("/v1/worlds/lab?force=true").await;
    assert_eq!(answer.status, 204, "{}", answer.text());
    assert_eq!(edge.objects.keys(), [""; 0]);
    edge.get("/v1/worlds/lab").await.refused(404, "world.not_found");
    remove("/v1/worlds/lab").await.refused(404, "world.not_found");
    remove("/v1/worlds/default").await.refused(400, "request.invalid");
}

#[tokio::test]
async fn t041_a_budget_that_is_short_names_what_is_missing() {
    let edge = Edge::start().await;
    let body = json!({"world": "lab", "limit_micro": 100, "default_hold_micro": 60});
    assert_eq!(edge.post("/v1/worlds", body).await.status, 201);
    let run = |cost: u64| {
        let body = json!({"tool": "wharf/sleep", "world": "lab",
            "inputs": {"ms": 1, "cost_micro": cost}});
        edge.post("/v1/runs?wait=20s", body)
    };
    let first = run(50).await.json();
    assert_eq!((&first["cost_micro"], &first["hold_micro"]), (&json!(50), &json!(60)), "{first}");
    assert_eq!(first["receipt"]["over_hold"], false);
    let error = run(50).await.refused(402, "budget.exceeded");
    assert_eq!(error["details"]["missing_micro"], 10);
    assert_eq!(error["details"]["account"], "world:lab");
    let patched = edge.call("PATCH", "/v1/worlds/lab").json(&json!({"limit_micro": 110}));
    assert_eq!(patched.send().await.status, 200);
    let dear = run(75).await.json();
    assert_eq!((&dear["cost_micro"], &dear["receipt"]["over_hold"]), (&json!(75), &json!(true)));
    let costs = edge.get("/v1/costs?world=lab&by=world").await.json();
    assert_eq!(costs["total_micro"], 125);
    let world = edge.get("/v1/worlds/lab").await.json();
    assert_eq!((&world["spent_micro"], &world["held_micro"]), (&json!(125), &json!(0)));
    let error = run(0).await.refused(402, "budget.exceeded");
    assert_eq!(error["details"]["missing_micro"], 90, "75 to hold, and 15 were overspent");
    assert_eq!(world["over_micro"], 15);
}

#[tokio::test]
async fn t041_an_account_is_corrected_with_a_reason_by_whoever_may() {
    let edge = Edge::start().await;
    let body = json!({"world": "lab", "limit_micro": 40, "unknown_cost": "held"});
    assert_eq!(edge.post("/v1/worlds", body).await.json()["unknown_cost"], "held");
    let run = json!({"tool": "wharf/sleep", "world": "lab", "inputs": {"ms": 1, "cost_micro": 50}});
    let run = edge.post("/v1/runs?wait=20s", run).await.json();
    assert_eq!(run["receipt"]["over_hold"], true);
    let correct = |by: i64, reason: &str| {
        let body = json!({"by_micro": by, "reason": reason});
        edge.post("/v1/worlds/lab/corrections", body)
    };
    assert_eq!(edge.get("/v1/worlds/lab").await.json()["over_micro"], 10);
    let world = correct(-20, "given back").await.json();
    assert_eq!((&world["spent_micro"], world.get("over_micro")), (&json!(30), None));
    correct(-31, "too much").await.refused(400, "request.invalid");
    correct(5, "").await.refused(400, "request.invalid");
    correct(0, "nothing").await.refused(400, "request.invalid");
    let none = edge.post("/v1/worlds/none/corrections", json!({"by_micro": 1, "reason": "x"}));
    none.await.refused(404, "world.not_found");
    let patched = edge.call("PATCH", "/v1/worlds/lab").json(&json!({"unknown_cost": "reported"}));
    assert_eq!(patched.send().await.json()["unknown_cost"], "reported");
}
