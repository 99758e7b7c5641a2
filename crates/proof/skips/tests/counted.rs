//! What is left out is written down, by the name of the test.

use std::process::Command;

/// Is left out. It only matters when the test below starts it with a file of its own.
#[test]
fn is_left_out_when_it_is_asked_to() {
    if std::env::var_os("WHARF_TEST_SKIPS").is_some() {
        wharf_skips::skip("there is no\nwater");
        assert!(wharf_skips::lacks("a-program-that-nobody-has"));
    }
}

#[test]
fn a_test_that_is_left_out_is_counted_by_its_name() {
    let path = std::env::temp_dir().join(format!("wharf-skips-{}", std::process::id()));
    for _ in 0..2 {
        let status = Command::new(std::env::current_exe().expect("a program"))
            .args(["--exact", "is_left_out_when_it_is_asked_to"])
            .env("WHARF_TEST_SKIPS", "1")
            .env(wharf_skips::FILE, &path)
            .status();
        assert!(status.expect("starts").success());
    }
    let text = std::fs::read_to_string(&path).expect("written");
    std::fs::remove_file(&path).expect("removed");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert_eq!(lines[0], "counted is_left_out_when_it_is_asked_to: there is no water");
    assert!(lines[1].ends_with("a-program-that-nobody-has is not installed"), "{text}");
}

#[test]
fn what_is_there_is_not_left_out() {
    assert!(!wharf_skips::lacks("cargo"));
}
