//! Migrations, the check of the audit, and the doctor.

use serde_json::json;
use wharf_server::doctor::{self, Verdict};
use wharf_server::{audit, migrate};
use wharf_vocab::Code;

use crate::support::{Place, get, run};

#[tokio::test]
async fn t038_migrations_go_down_and_up_with_the_data() {
    let place = Place::new();
    let home = place.home();
    assert!(migrate::status(&home).is_err_and(|fault| fault.message.contains("wharf up")));
    let core = place.start().await;
    let kept = run(&core, "wharf/echo", json!({"text": "kept"})).await;
    let status = migrate::status(&home).expect("readable while a core is up");
    assert_eq!(status.current, status.newest);
    assert_eq!(status.applied.len(), usize::try_from(status.newest).expect("small"));
    assert!(status.pending.is_empty());
    for refused in [migrate::down(&home, 1), migrate::up(&home)] {
        assert!(refused.is_err_and(|fault| fault.is(Code::HomeLocked)), "not under a core");
    }
    core.stop().await.expect("stops");

    let down = migrate::down(&home, 1).expect("goes down");
    assert_eq!((down.current, down.applied.len()), (1, 1));
    assert!(!down.pending.is_empty());
    assert!(migrate::down(&home, down.newest).is_err(), "down is not up");
    let refused = migrate::down(&home, 0).expect_err("every run would be gone");
    assert!(refused.is(Code::RequestInvalid) && !refused.retryable, "{refused}");
    let up = migrate::up(&home).expect("goes up");
    assert_eq!(up, status);
    migrate::down(&home, 1).expect("goes down");
    let core = place.start().await;
    let path = format!("/v1/runs/{}", kept["run_id"].as_str().expect("an id"));
    assert_eq!(get(&core, &path).await, kept, "a start brings it up, too");
    core.stop().await.expect("stops");
}

#[tokio::test]
async fn the_audit_is_whole_until_somebody_touches_it() {
    let place = Place::new();
    let home = place.home();
    assert!(audit::verify(&home).is_err());
    let core = place.start().await;
    run(&core, "wharf/echo", json!({})).await;
    let report = audit::verify(&home).expect("readable while a core is up");
    assert!(report.records > 0 && report.chains > 0 && report.findings.is_empty(), "{report:?}");
    core.stop().await.expect("stops");

    // An older copy of the whole database is given away by the anchors.
    let database = place.path().join("wharf.db");
    let old = std::fs::read(&database).expect("there");
    let core = place.start().await;
    run(&core, "wharf/echo", json!({})).await;
    core.stop().await.expect("stops");
    assert_eq!(audit::verify(&home).expect("readable").findings, [""; 0]);
    let new = std::fs::read(&database).expect("there");
    std::fs::write(&database, &old).expect("written");
    let found = audit::verify(&home).expect("readable");
    assert!(!found.findings.is_empty());
    // A core that starts on it does not wipe that away, nor does more work.
    let core = place.start().await;
    for _ in 0..3 {
        run(&core, "wharf/echo", json!({})).await;
    }
    core.stop().await.expect("stops");
    assert!(!audit::verify(&home).expect("readable").findings.is_empty());
    std::fs::write(&database, &new).expect("written");

    std::fs::write(place.path().join("run/audit.anchors"), "{").expect("written");
    let found = audit::verify(&home).expect("readable");
    assert!(found.findings.iter().any(|text| text.contains("anchors")), "{found:?}");
    std::fs::remove_file(place.path().join("secrets/audit.key")).expect("removed");
    assert!(audit::verify(&home).is_err_and(|fault| fault.message.contains("audit.key")));
}

#[track_caller]
fn verdict(place: &Place, name: &str, expect: Verdict, text: &str) {
    let checks = doctor::check(&place.home(), true);
    let check = checks.iter().find(|check| check.name == name);
    let check = check.unwrap_or_else(|| panic!("{name} was not looked at: {checks:?}"));
    assert_eq!(check.verdict, expect, "{check:?}");
    assert!(check.text.contains(text), "{check:?} lacks {text:?}");
}

#[tokio::test]
async fn the_doctor_finds_a_healthy_home_healthy() {
    let place = Place::new();
    verdict(&place, "home", Verdict::Warn, "wharf up");
    assert!(!place.path().exists(), "looking makes nothing");
    let core = place.start().await;
    run(&core, "wharf/echo", json!({})).await;
    // The doctor blocks, and the core it asks runs on this runtime.
    let home = place.home();
    let checks =
        tokio::task::spawn_blocking(move || doctor::check(&home, true)).await.expect("done");
    let bad: Vec<_> = checks.iter().filter(|check| check.verdict != Verdict::Ok).collect();
    assert!(bad.is_empty(), "{bad:?}");
    for name in ["home", "permissions", "disk", "configuration", "database", "migrations"] {
        assert!(checks.iter().any(|check| check.name == name), "{name} is missing");
    }
    for name in ["audit", "files", "leftovers", "core", "version", "token"] {
        assert!(checks.iter().any(|check| check.name == name), "{name} is missing");
    }
    core.stop().await.expect("stops");
    verdict(&place, "core", Verdict::Ok, "wharf up");
}

#[tokio::test]
async fn the_doctor_finds_what_is_wrong() {
    let place = Place::new();
    place.start().await.stop().await.expect("stops");
    let open = |name: &str, mode| {
        use std::os::unix::fs::PermissionsExt;
        let path = place.path().join(name);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("set");
    };
    open("run/owner.token", 0o644);
    verdict(&place, "permissions", Verdict::Fail, "owner.token");
    open("run/owner.token", 0o600);
    open("", 0o755);
    verdict(&place, "permissions", Verdict::Warn, "chmod");
    open("", 0o700);
    verdict(&place, "permissions", Verdict::Ok, "");

    place.write("wharf.toml", "[log]\nlevel = \"lo=ud=er\"\n");
    verdict(&place, "configuration", Verdict::Fail, "level");
    place.write("wharf.toml", "[lug]\n");
    verdict(&place, "configuration", Verdict::Fail, "`lug`");
    std::fs::remove_file(place.path().join("wharf.toml")).expect("removed");

    migrate::down(&place.home(), 1).expect("goes down");
    verdict(&place, "migrations", Verdict::Warn, "wharf up");
    migrate::up(&place.home()).expect("goes up");

    let database = place.path().join("wharf.db");
    let mut bytes = std::fs::read(&database).expect("there");
    // The first bytes of a page say what it holds; most of the others may be unused.
    let pages = (bytes.len() / 2).next_multiple_of(4096)..bytes.len();
    pages.step_by(4096).for_each(|page| bytes[page..page + 8].fill(0xff));
    std::fs::write(&database, bytes).expect("written");
    verdict(&place, "database", Verdict::Fail, "");
    std::fs::write(&database, "this is no database, but long enough to be looked at").expect("ok");
    verdict(&place, "migrations", Verdict::Fail, "");
}
