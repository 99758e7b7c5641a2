//! What holds for all texts.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::json;
use unicode_normalization::UnicodeNormalization;
use wharf_domain::scope::{InputSource, Target, WorldPath, is_uri, without_secrets};
use wharf_vocab::{AttemptId, RunId, WorldId};

use crate::{resolved, world};

/// The same cases in every run of the suite, and nothing written beside the sources.
fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 4_000,
        rng_seed: RngSeed::Fixed(0x57_68_61_72_66),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Pieces that paths and tricks are made of.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "/",
        "//",
        ".",
        "..",
        "/../",
        "%2e",
        "%2E%2e",
        "%2f",
        "%5c",
        "%25",
        "%00",
        "%c0%ae",
        "\\",
        "\0",
        "@",
        "/@",
        "@r1",
        "@r2",
        "/@r1/@a1/0",
        "%40",
        "a",
        "b",
        "file.txt",
        " ",
        "%20",
        "é",
        "e\u{301}",
        "\u{ff0e}",
        "\u{ff0f}",
        "\u{202e}",
        "?",
        "#",
        "&",
        ":",
        "world://w",
        "w",
        "~",
        "日",
        "\u{2025}",
        "%",
        "%zz",
        "%e6%97%a5",
    ]);
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// Texts of every sort, most of them beginning like paths.
fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => pieces().prop_map(|text| format!("/{text}")),
        1 => pieces(),
        1 => any::<String>(),
        1 => any::<String>().prop_map(|text| format!("/{text}")),
    ]
}

/// Paths that are good.
fn paths() -> impl Strategy<Value = WorldPath> {
    let segment = prop::sample::select(vec!["a", "b", "a b", "é", "日本", "x.txt", "a?b", "..."]);
    prop::collection::vec(segment, 1..5)
        .prop_map(|segments| WorldPath::parse(&format!("/{}", segments.join("/"))).expect("a path"))
}

fn ids() -> impl Strategy<Value = String> {
    prop_oneof![Just("w".to_owned()), "[A-Za-z0-9][A-Za-z0-9._-]{0,8}"]
}

/// Where a path leads can be taken apart in one way only.
fn assert_inside(key: &str, world: &WorldId) {
    let below = key.strip_prefix(&format!("{world}/")).expect("inside the world");
    for segment in below.split('/') {
        assert!(!segment.is_empty(), "{key:?}");
        let plain: String = segment.nfkc().collect();
        assert!(plain != "." && plain != "..", "{key:?}");
        assert!(!plain.contains(['\\', '\0']), "{key:?}");
    }
    assert!(!key.contains('%'), "{key:?}");
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn t031_every_key_lies_in_the_world(text in texts(), world in ids()) {
        let world = WorldId::new(world).expect("a world id");
        let stored = WorldPath::try_from(text.clone());
        let read = [WorldPath::parse(&text), WorldPath::parse_any(&text), stored];
        for path in read.into_iter().flatten() {
            assert_inside(&path.key(&world), &world);
        }
    }

    #[test]
    fn t031_canonical_paths_stay_as_they_are(text in texts()) {
        if let Ok(path) = WorldPath::parse(&text) {
            prop_assert_eq!(&WorldPath::parse(path.as_str()).expect("still a path"), &path);
            prop_assert_eq!(&WorldPath::parse_any(path.as_str()).expect("still a path"), &path);
        }
        if let Ok(path) = WorldPath::parse_any(&text) {
            prop_assert_eq!(&WorldPath::parse_any(path.as_str()).expect("still a path"), &path);
            prop_assert_eq!(&WorldPath::try_from(path.as_str().to_owned()).expect("stored"), &path);
        }
    }

    #[test]
    fn t031_whatever_a_request_says_it_stays_in_its_world(
        texts in prop::collection::btree_map(
            prop::sample::select(vec!["a", "a.world", "b.world", "b.local", "c.local", "d..world", "e"]),
            texts(),
            0..4,
        ),
        chained in any::<bool>(),
    ) {
        let continues = chained.then_some("r1");
        if let Ok(plan) = resolved(json!(texts), json!({}), continues) {
            for source in plan.reads.values() {
                match source {
                    InputSource::Object(path) | InputSource::Chain(path) => assert_inside(&path.key(&world()), &world()),
                    InputSource::Uri => {}
                }
            }
        }
        if let Ok(plan) = resolved(json!({}), json!(texts), continues) {
            for target in plan.writes.values() {
                if let Target::Object { path } = target {
                    assert_inside(&path.key(&world()), &world());
                    prop_assert!(path.run().is_none_or(|run| run == "r2"), "only its own");
                    prop_assert!(!path.is_staged());
                }
            }
        }
    }

    #[test]
    fn t032_different_paths_and_worlds_have_different_keys(
        (one, other) in (texts(), texts()), (here, there) in (ids(), ids()),
    ) {
        let (here, there) = (WorldId::new(here).expect("an id"), WorldId::new(there).expect("an id"));
        if let (Ok(one), Ok(other)) = (WorldPath::parse_any(&one), WorldPath::parse_any(&other)) {
            prop_assert_eq!(one.key(&here) == other.key(&here), one == other);
            prop_assert_eq!(one.key(&here) == one.key(&there), here == there);
            if here != there {
                prop_assert_ne!(one.key(&here), other.key(&there));
            }
        }
    }

    #[test]
    fn t033_files_of_the_world_of_runs_and_of_attempts_never_meet(
        (one, other) in (paths(), paths()), (run, attempt) in (ids(), ids()), number in 0..1_000_usize,
    ) {
        let run = RunId::new(run).expect("a run id");
        let attempt = AttemptId::new(attempt).expect("an attempt id");
        let local = other.local_to(&run).expect("not local yet");
        let staged = WorldPath::staged(&run, &attempt, number);
        prop_assert_ne!(&one, &local);
        prop_assert_ne!(&one, &staged);
        prop_assert_ne!(&local, &staged);
        prop_assert_eq!(&WorldPath::try_from(staged.as_str().to_owned()).expect("stored"), &staged);
        prop_assert!(WorldPath::parse_any(staged.as_str()).is_err(), "nobody can name it");
        prop_assert_eq!(local.run(), Some(run.as_str()));
        prop_assert_eq!(local.within(), other.as_str());
    }

    #[test]
    fn t033_no_text_is_both_chosen_and_staged(text in texts()) {
        if let Ok(path) = WorldPath::parse(&text) {
            prop_assert!(path.run().is_none() && !path.is_staged());
        }
        if let Ok(path) = WorldPath::parse_any(&text) {
            prop_assert!(!path.is_staged());
        }
    }

    #[test]
    fn t035_what_a_record_says_leads_back(text in texts()) {
        if let Ok(path) = WorldPath::parse_any(&text) {
            let uri = path.uri(&world());
            prop_assert!(is_uri(&uri));
            let plan = resolved(json!({ "x": uri }), json!({}), None).expect("a file");
            prop_assert_eq!(plan.reads, BTreeMap::from([("x".to_owned(), InputSource::Object(path))]));
        }
    }

    #[test]
    fn t035_what_is_kept_of_an_address_has_no_secret_part(text in any::<String>(), host in "[a-z]{1,8}") {
        for uri in [format!("https://{host}{text}"), format!("https://{text}@{host}/x"), text] {
            let kept = without_secrets(&uri);
            prop_assert!(!kept.contains(['?', '#']), "{}", kept);
            prop_assert_eq!(without_secrets(&kept), kept.clone());
            if let Some((_, rest)) = kept.split_once("://") {
                let authority = rest.split('/').next().unwrap_or_default();
                prop_assert!(!authority.contains('@'), "{}", kept);
            }
        }
    }

    #[test]
    fn t034_names_are_never_lost_and_never_doubled(
        keys in prop::collection::btree_set("[ab.]{0,3}(\\.world|\\.local|)", 0..5),
    ) {
        let inputs: serde_json::Map<_, _> =
            keys.iter().map(|key| (key.clone(), json!("/x"))).collect();
        if let Ok(plan) = resolved(inputs.into(), json!({}), None) {
            prop_assert_eq!(plan.inputs.len(), keys.len());
            prop_assert!(plan.reads.keys().all(|name| plan.inputs.contains_key(name)));
        }
    }
}
