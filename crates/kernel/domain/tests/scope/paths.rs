//! Paths: one text for each file, and no text that leads out.

use serde_json::json;
use wharf_domain::scope::{PathError, WorldPath};
use wharf_vocab::limits::{ID_BYTES_MAX, PATH_BYTES_MAX, PATH_SEGMENT_BYTES_MAX};
use wharf_vocab::{AttemptId, Code, RunId, WorldId};

use crate::{assert_refused, resolved, world};

/// Every way to write something that is no path, and why it is none.
const REFUSED: &[(&str, PathError)] = &[
    ("", PathError::Relative),
    ("a", PathError::Relative),
    ("../a", PathError::Relative),
    (" /a", PathError::Relative),
    ("%2Fa", PathError::Character),
    ("/", PathError::EmptySegment),
    ("//", PathError::EmptySegment),
    ("//a", PathError::EmptySegment),
    ("/a//b", PathError::EmptySegment),
    ("/a/", PathError::EmptySegment),
    ("/.", PathError::DotSegment),
    ("/..", PathError::DotSegment),
    ("/../a", PathError::DotSegment),
    ("/a/..", PathError::DotSegment),
    ("/a/../../b", PathError::DotSegment),
    ("/a/./b", PathError::DotSegment),
    ("/%2e", PathError::DotSegment),
    ("/%2e%2e/a", PathError::DotSegment),
    ("/%2E./a", PathError::DotSegment),
    ("/a/.%2e/b", PathError::DotSegment),
    // Full-width and other dots are dots to whoever simplifies text.
    ("/\u{ff0e}\u{ff0e}/a", PathError::DotSegment),
    ("/.\u{ff0e}/a", PathError::DotSegment),
    ("/%ef%bc%8e%ef%bc%8e/a", PathError::DotSegment),
    ("/\u{fe52}", PathError::DotSegment),
    ("/\u{2024}\u{2024}/a", PathError::DotSegment),
    ("/\u{2025}/a", PathError::DotSegment),
    // Slashes that are written differently.
    ("/a%2fb", PathError::Character),
    ("/..%2fa", PathError::Character),
    ("/%2e%2e%2fa", PathError::Character),
    ("/a\u{ff0f}b", PathError::Character),
    ("/a\\b", PathError::Character),
    ("/..\\a", PathError::Character),
    ("/a%5Cb", PathError::Character),
    ("/a\u{ff3c}b", PathError::Character),
    ("/a\u{fe68}b", PathError::Character),
    // Encoded twice, thrice, badly, or too long for what it is.
    ("/%252e%252e/a", PathError::Character),
    ("/a%252fb", PathError::Character),
    ("/%25252e", PathError::Character),
    ("/100%", PathError::Character),
    ("/a%2", PathError::Character),
    ("/a%zz", PathError::Character),
    ("/a%+2", PathError::Character),
    ("/a%u002e", PathError::Character),
    ("/a%25", PathError::Character),
    ("/%c0%ae%c0%ae/a", PathError::Character),
    ("/%c0%af", PathError::Character),
    ("/%e0%80%ae", PathError::Character),
    ("/%f0%80%80%af", PathError::Character),
    ("/%ff", PathError::Character),
    ("/%ed%a0%80", PathError::Character),
    // Characters that end or hide a name, or turn it around.
    ("/a\0", PathError::Character),
    ("/a%00.png", PathError::Character),
    ("/a\nb", PathError::Character),
    ("/a%0d%0ab", PathError::Character),
    ("/a\tb", PathError::Character),
    ("/a\u{7f}", PathError::Character),
    ("/a\u{85}b", PathError::Character),
    ("/a\u{61c}b", PathError::Character),
    ("/a\u{200b}b", PathError::Character),
    ("/a\u{200e}b", PathError::Character),
    ("/a\u{200f}b", PathError::Character),
    ("/a\u{2028}b", PathError::Character),
    ("/a\u{2029}b", PathError::Character),
    ("/gnp.\u{202e}exe", PathError::Character),
    ("/a%e2%80%aeb", PathError::Character),
    ("/a\u{2060}b", PathError::Character),
    ("/a\u{2066}b", PathError::Character),
    ("/a\u{2069}b", PathError::Character),
    ("/a\u{feff}b", PathError::Character),
    ("/a\u{ffff}b", PathError::Character),
    // Text that has a composed form.
    ("/cafe\u{301}", PathError::NotComposed),
    ("/%65%cc%81", PathError::NotComposed),
    ("/\u{212b}ngstrom", PathError::NotComposed),
    ("/\u{1100}\u{1161}", PathError::NotComposed),
    // What belongs to the core.
    ("/@r1/a", PathError::Reserved),
    ("/%40r1/a", PathError::Reserved),
    ("/@", PathError::Reserved),
    ("/@r1", PathError::Reserved),
];

#[test]
fn t031_what_is_no_path_is_refused_in_every_spelling() {
    for (text, error) in REFUSED {
        assert_eq!(WorldPath::parse(text), Err(*error), "{text:?}");
        let said = error.to_string();
        assert!(said.split_whitespace().count() > 2, "{said}");
    }
}

#[test]
fn t031_dot_segments_are_refused() {
    for key in ["x.world", "x.local"] {
        for path in ["/..", "/a/../b", "/%2e%2e/b", "/./b"] {
            let refused = resolved(json!({ key: path }), json!({}), None);
            assert_refused(refused, Code::ScopePathInvalid, key);
            let refused = resolved(json!({}), json!({ key: path }), None);
            assert_refused(refused, Code::ScopePathInvalid, key);
        }
    }
}

#[test]
fn t031_every_refusal_has_the_code_and_names_the_key_for_inputs_and_outputs_alike() {
    for (path, error) in REFUSED {
        // A local path may name a run.
        let keys =
            if *error == PathError::Reserved { &["x.world"][..] } else { &["x.world", "x.local"] };
        for key in keys {
            let refused = resolved(json!({ *key: path }), json!({}), Some("r1"));
            assert_refused(refused, Code::ScopePathInvalid, key);
            let refused = resolved(json!({}), json!({ *key: path }), None);
            assert_refused(refused, Code::ScopePathInvalid, key);
        }
    }
}

#[test]
fn t031_paths_are_decoded_once_and_then_stay_as_they_are() {
    let cases = [
        ("/a", "/a"),
        ("/chat/turn1.txt", "/chat/turn1.txt"),
        ("/my file.txt", "/my file.txt"),
        ("/my%20file.txt", "/my file.txt"),
        ("/%61%62", "/ab"),
        ("/caf%C3%A9", "/café"),
        ("/café", "/café"),
        ("/日本語/ファイル.txt", "/日本語/ファイル.txt"),
        ("/👩\u{200d}🚀.png", "/👩\u{200d}🚀.png"),
        ("/...", "/..."),
        ("/a..b/..c/d..", "/a..b/..c/d.."),
        ("/.hidden", "/.hidden"),
        ("/-rf", "/-rf"),
        ("/a/@b", "/a/@b"),
        ("/a@b", "/a@b"),
        ("/a?b#c&d=e", "/a?b#c&d=e"),
        ("/a:b|c*d", "/a:b|c*d"),
        ("/wait\u{2026}", "/wait\u{2026}"),
        ("/~", "/~"),
    ];
    for (text, wanted) in cases {
        let path = WorldPath::parse(text).expect(text);
        assert_eq!(path.as_str(), wanted);
        assert_eq!(WorldPath::parse(path.as_str()), Ok(path));
    }
}

#[test]
fn t031_lengths_are_bounded_in_bytes() {
    let segment = |bytes: usize| format!("/{}", "a".repeat(bytes));
    assert!(WorldPath::parse(&segment(PATH_SEGMENT_BYTES_MAX)).is_ok());
    let long = segment(PATH_SEGMENT_BYTES_MAX + 1);
    assert_eq!(WorldPath::parse(&long), Err(PathError::SegmentTooLong));
    // 128 characters of two bytes each are 256 bytes.
    let wide = format!("/{}", "é".repeat(128));
    assert_eq!(WorldPath::parse(&wide), Err(PathError::SegmentTooLong));
    assert_eq!(
        WorldPath::parse(&format!("/{}", "%61".repeat(256))),
        Err(PathError::SegmentTooLong)
    );

    let longest = segment(127).repeat(8);
    assert_eq!(longest.len(), PATH_BYTES_MAX);
    assert!(WorldPath::parse(&longest).is_ok());
    assert_eq!(WorldPath::parse(&format!("{longest}a")), Err(PathError::TooLong));
    let encoded = format!("/{}", "%61".repeat(127)).repeat(8);
    assert_eq!(WorldPath::parse(&encoded), WorldPath::parse(&longest));
    assert_eq!(WorldPath::parse(&"/a".repeat(1_000_000)), Err(PathError::TooLong));
}

#[test]
fn t032_the_key_is_exactly_the_world_and_the_path() {
    let path = WorldPath::parse("/chat/turn 1.txt").expect("a path");
    assert_eq!(path.key(&world()), "w/chat/turn 1.txt");
    let other = WorldId::new("a.b-c_d").expect("a world id");
    assert_eq!(path.key(&other), "a.b-c_d/chat/turn 1.txt");
    let run = RunId::new("r1").expect("a run id");
    let local = path.local_to(&run).expect("not local yet");
    assert_eq!(local.key(&world()), "w/@r1/chat/turn 1.txt");
}

#[test]
fn t033_local_and_staged_files_of_a_run_lie_where_no_chosen_path_leads() {
    let run = RunId::new("r1").expect("a run id");
    let attempt = AttemptId::new("a1").expect("an attempt id");
    let path = WorldPath::parse("/state.json").expect("a path");
    let local = path.local_to(&run).expect("not local yet");
    let staged = WorldPath::staged(&run, &attempt, 0);
    assert_eq!((local.run(), local.within()), (Some("r1"), "/state.json"));
    assert_eq!((path.run(), path.within()), (None, "/state.json"));
    assert_eq!((staged.run(), staged.within()), (Some("r1"), "/@a1/0"));
    assert_eq!([path.is_staged(), local.is_staged(), staged.is_staged()], [false, false, true]);
    // What is local to one run cannot be made local to another: that would look like staged.
    assert_eq!(local.local_to(&run), None);
    assert_eq!(staged.local_to(&run), None);

    assert_eq!(WorldPath::parse_any("/@r1/state.json"), Ok(local));
    assert_eq!(WorldPath::parse_any("/state.json"), Ok(path));
    let refused = [
        (staged.as_str(), PathError::Reserved),
        ("/@r1/%40a1/0", PathError::Reserved),
        ("/@r1/../x", PathError::DotSegment),
        ("/@r1/x/../../@r2/y", PathError::DotSegment),
        ("/@r1//x", PathError::EmptySegment),
        ("/@r1/", PathError::EmptySegment),
        ("/@r1", PathError::NoRun),
        ("/@/x", PathError::NoRun),
        ("/@../x", PathError::NoRun),
        ("/@r 1/x", PathError::NoRun),
        ("/@@r1/x", PathError::NoRun),
    ];
    for (text, error) in refused {
        assert_eq!(WorldPath::parse_any(text), Err(error), "{text}");
    }
}

#[test]
fn t033_the_run_comes_on_top_of_the_longest_path_and_is_read_back() {
    let longest = WorldPath::parse(&format!("/{}", "a".repeat(127)).repeat(8)).expect("a path");
    let run = RunId::new("r".repeat(ID_BYTES_MAX)).expect("a run id");
    let local = longest.local_to(&run).expect("not local yet");
    assert_eq!(local.as_str().len(), PATH_BYTES_MAX + "/@".len() + ID_BYTES_MAX);
    assert_eq!(WorldPath::parse_any(local.as_str()), Ok(local.clone()));
    let stored = serde_json::to_string(&local).expect("JSON");
    assert_eq!(serde_json::from_str::<WorldPath>(&stored).expect("read back"), local);
    let longer = format!("{local}a");
    assert_eq!(WorldPath::parse_any(&longer), Err(PathError::TooLong));
}

#[test]
fn t031_a_stored_path_is_checked_like_any_other() {
    let read = |text: &str| WorldPath::try_from(text.to_owned());
    for good in ["/a", "/a b/c", "/@r1/a", "/@r1/@a1/0", "/@r1/@a1/255", "/@r.1/@a-1/10"] {
        let path = read(good).expect(good);
        assert_eq!(path.as_str(), good);
        assert_eq!(String::from(path), good);
    }
    for (text, error) in REFUSED {
        if *error != PathError::Reserved {
            assert!(read(text).is_err(), "{text:?}");
        }
    }
    let spoilt = [
        // Nothing is decoded a second time.
        "/my%20file",
        "/@r1/my%20file",
        // Staged files have exactly one form.
        "/@r1/@a1",
        "/@r1/@a1/",
        "/@r1/@a1/x",
        "/@r1/@a1/-1",
        "/@r1/@a1/+1",
        "/@r1/@a1/01",
        "/@r1/@a1/1/2",
        "/@r1/@a1/../../../other/secret",
        "/@r1/@a1/..",
        "/@r1/@../0",
        "/@../@a1/0",
        "/@/@a1/0",
        "/@r1/@/0",
        "/@r1/x/@a1/../0",
        "/@r1/../@a1/0",
        "/@r1/@a1/@a2/0",
        "/@r1/@r2/x",
        "/@r1/@a1/99999999999999999999999999",
        "/a/@b/../..",
    ];
    for text in spoilt {
        assert!(read(text).is_err(), "{text}");
        let json = serde_json::to_string(text).expect("JSON");
        assert!(serde_json::from_str::<WorldPath>(&json).is_err(), "{text}");
    }
}
