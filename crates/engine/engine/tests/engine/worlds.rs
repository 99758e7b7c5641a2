//! Worlds: made, removed, and made again.

use crate::peer::{Peer, succeed, tool};
use crate::support::{
    Bench, default_world, new, new_file, object, owner, removal, stream, upload_of,
};
use serde_json::json;
use wharf_domain::permission::ToolPattern;
use wharf_domain::{Audience, Rule, When, WorldSettings};
use wharf_engine::{FileQuery, NewRun};
use wharf_ports::{Method, ObjectStore as _};
use wharf_vocab::{Code, RunStatus, WorldId};

fn world() -> WorldId {
    WorldId::new("w").expect("valid")
}

async fn with_world(settings: WorldSettings) -> (Bench, Peer) {
    let bench = Bench::new().await;
    bench.handle.worlds().create(&owner(), world(), settings).await.expect("made");
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/work")]).await;
    (bench, peer)
}

fn request() -> NewRun {
    NewRun { world: world(), ..new("acme/work", json!({})) }
}

#[tokio::test]
async fn a_world_with_files_or_runs_stays_and_force_takes_the_files_only() {
    let (bench, peer) = with_world(WorldSettings::default()).await;
    let handle = &bench.handle;
    bench.put("/other", "x").await;
    handle.files().put(&owner(), new_file(world(), "/a"), stream("abc")).await.expect("put");
    let fault =
        handle.worlds().remove(&owner(), &world(), removal(false)).await.expect_err("a file");
    assert!(fault.is(Code::WorldNotEmpty), "{fault}");
    assert_eq!((&fault.details["files"], &fault.details["bytes"]), (&json!(1), &json!(3)));

    let outputs = object(json!({"l.local": "/l"}));
    let run =
        handle.runs().create(&owner(), NewRun { outputs, ..request() }).await.expect("taken").run;
    let attempt = peer.next().await;
    for force in [false, true] {
        let fault =
            handle.worlds().remove(&owner(), &world(), removal(force)).await.expect_err("a run");
        assert!(fault.is(Code::WorldNotEmpty), "{fault}");
        assert_eq!(fault.details["runs"], 1);
    }
    attempt.succeeded(object(json!({"l": "local"})), 0).await.expect("told");
    bench.end_of(&run.key).await;
    handle.worlds().remove(&owner(), &world(), removal(true)).await.expect("removed");
    assert_eq!(bench.objects.keys(), ["default/other"]);
    assert!(handle.worlds().get(&world()).await.expect_err("gone").is(Code::WorldNotFound));
    assert!(
        handle.runs().create(&owner(), request()).await.expect_err("gone").is(Code::WorldNotFound)
    );
    let fault = handle.files().list(&owner(), FileQuery::new(world(), 1)).await.expect_err("gone");
    assert!(fault.is(Code::WorldNotFound));
    assert_eq!(handle.worlds().list().await.expect("lists").len(), 1);
    assert!(handle.runs().get(&run.key).await.is_ok(), "what its runs did stays on record");
    bench.audited(|record| record.event == "world.removed").await;

    let bench = bench.killed().await;
    assert!(bench.handle.worlds().get(&world()).await.expect_err("gone").is(Code::WorldNotFound));
}

#[tokio::test]
async fn the_default_world_stays_and_only_admins_remove() {
    let (bench, _peer) = with_world(WorldSettings::default()).await;
    let fault = bench.handle.worlds().remove(&owner(), &default_world(), removal(true)).await;
    assert!(fault.expect_err("it stays").is(Code::RequestInvalid));
    let rights = wharf_domain::Rights::all().narrowed(&wharf_domain::grant::Narrowing {
        verbs: Some([wharf_vocab::Verb::Run, wharf_vocab::Verb::Operate].into_iter().collect()),
        ..Default::default()
    });
    let caller = wharf_domain::Caller::token("t", rights);
    let fault = bench
        .handle
        .worlds()
        .remove(&caller, &world(), removal(false))
        .await
        .expect_err("no right");
    assert!(fault.is(Code::PermissionDenied), "{fault}");
}

#[tokio::test]
async fn a_world_made_again_is_empty_and_remembers_what_was_spent() {
    let (bench, peer) = with_world(WorldSettings::budget(Some(10), 1)).await;
    let handle = &bench.handle;
    let run = handle.runs().create(&owner(), request()).await.expect("accepted").run;
    succeed(&peer.next().await, 1).await;
    bench.end_of(&run.key).await;
    handle.worlds().remove(&owner(), &world(), removal(false)).await.expect("empty");
    let made = handle.worlds().create(&owner(), world(), WorldSettings::budget(Some(2), 1)).await;
    let account = made.expect("made again").account;
    assert_eq!((account.limit, account.spent, account.available()), (Some(2), 1, Some(1)));
    let run = handle.runs().create(&owner(), request()).await.expect("one is left").run;
    let fault = handle.runs().create(&owner(), request()).await.expect_err("held already");
    assert!(fault.is(Code::BudgetExceeded), "{fault}");
    succeed(&peer.next().await, 0).await;
    bench.end_of(&run.key).await;
    let bench = bench.killed().await;
    let view = bench.handle.worlds().get(&world()).await.expect("there");
    assert_eq!((view.account.limit, view.account.spent), (Some(2), 1));
}

#[tokio::test]
async fn t040_a_world_made_again_gets_nothing_of_the_one_before() {
    let (bench, _peer) = with_world(WorldSettings::default()).await;
    let handle = &bench.handle;
    let file = new_file(world(), "/big");
    let upload = handle.uploads().begin_upload(&owner(), file.clone()).await.expect("begun").id;
    let place = upload_of(&file, &upload);
    handle.uploads().put_part(&owner(), &place, 1, 3, stream("old")).await.expect("taken");
    let late = bench.objects.presign(Method::Put, "w/late", 60);
    let early = bench.objects.presign(Method::Put, "default/late", 60);
    handle.worlds().remove(&owner(), &world(), removal(false)).await.expect("empty");
    bench.objects.put_at(&late, "old").expect("good for a while");
    bench.objects.put_at(&early, "x").expect("good for a while");

    handle.worlds().create(&owner(), world(), WorldSettings::default()).await.expect("made again");
    assert_eq!(bench.objects.keys(), ["default/late"], "only its own leftovers");
    for gone in [
        handle.uploads().put_part(&owner(), &place, 2, 1, stream("x")).await.map(drop),
        handle.uploads().complete_upload(&owner(), file.clone(), &upload).await.map(drop),
        handle.uploads().upload(&owner(), &place).await.map(drop),
        handle.uploads().abort_upload(&owner(), &place).await,
    ] {
        let fault = gone.expect_err("of the world before");
        assert!(fault.is(Code::UploadNotFound), "{fault}");
    }
    assert_eq!(bench.objects.keys(), ["default/late"]);
    let upload = handle.uploads().begin_upload(&owner(), file.clone()).await.expect("begun").id;
    let place = upload_of(&file, &upload);
    handle.uploads().put_part(&owner(), &place, 1, 3, stream("new")).await.expect("ok");

    // The next start of the core knows them apart, too.
    let bench = bench.killed().await;
    bench.handle.uploads().complete_upload(&owner(), file, &upload).await.expect("its own");
    assert_eq!(bench.objects.keys(), ["default/late", "w/big"]);
    let fault = bench.handle.worlds().create(&owner(), world(), WorldSettings::default()).await;
    assert!(fault.expect_err("it is there").is(Code::WorldExists));
    assert_eq!(bench.objects.keys(), ["default/late", "w/big"], "nothing of it went");
}

#[tokio::test]
async fn a_worlds_own_rules_ask_for_approvals() {
    let rule = Rule {
        tool: ToolPattern::parse("acme/*").expect("valid"),
        when: When::Always,
        approve: true,
        audience: Audience::Person,
        patience_ms: None,
    };
    let settings = WorldSettings { policy: vec![rule], ..WorldSettings::default() };
    let (bench, peer) = with_world(settings).await;
    let run = bench.handle.runs().create(&owner(), request()).await.expect("accepted").run;
    assert_eq!(run.status(), RunStatus::Waiting);
    let elsewhere = bench.start("acme/work", json!({})).await.expect("accepted");
    assert_eq!(elsewhere.status(), RunStatus::Running);
    succeed(&peer.next().await, 0).await;
}
