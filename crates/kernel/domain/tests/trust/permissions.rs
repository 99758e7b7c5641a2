//! Permissions as texts: how they are read, what they say to people, how a list is hashed.

use wharf_domain::Permission;
use wharf_domain::permission::permissions_hash;
use wharf_vocab::{Digest, ToolId};

fn permission(text: &str) -> Permission {
    Permission::parse(text).unwrap_or_else(|error| panic!("{text} {error}"))
}

#[test]
fn permissions_are_told_in_plain_words() {
    for (text, words) in [
        ("filesystem:read:~/notes/**", "Read files below ~/notes"),
        ("filesystem:read:/etc/hosts", "Read /etc/hosts"),
        ("filesystem:read:/**", "Read every file"),
        ("filesystem:write:~/out/*.md", "Read and change files that match ~/out/*.md"),
        ("filesystem:write:~/**", "Read and change files below ~"),
        ("network:egress:api.example.com:443", "Connect to api.example.com on port 443"),
        ("network:egress:*.example.com", "Connect to any host below example.com on any port"),
        ("network:egress:*", "Connect to any host on any port"),
        ("network:egress:[::1]:80", "Connect to ::1 on port 80"),
        ("tool:invoke:llm/*", "Call any tool of llm"),
        ("tool:invoke:*", "Call any tool"),
        ("tool:invoke:*/echo", "Call the tool echo of any provider"),
        ("tool:invoke:llm/chat@1", "Call the tool llm/chat@1"),
        ("tool:invoke:llm*/c*", "Call tools that match llm*/c*"),
        ("secret:use:OPENAI_KEY", "Use the secret OPENAI_KEY"),
        ("env:read:LANG", "See the variable LANG"),
        (
            "database:rw:main",
            "database:rw:main is not something Wharf can give; approving it has no effect",
        ),
    ] {
        assert_eq!(permission(text).describe(), words);
    }
}

#[test]
fn texts_that_are_no_permissions_are_refused() {
    for text in [
        "",
        "filesystem",
        ":read:/a",
        "filesystem::/a",
        "filesystem:read",
        "filesystem:read:",
        "filesystem:execute:/a",
        "filesystem:read:a",
        "filesystem:read:/a b",
        "filesystem:read:/a\n",
        " filesystem:read:/a",
        "filesystem:read:/a\u{200b}",
        "network:egress:127.1",
        "tool:invoke:llm",
        "secret:use:a/b",
        "env:read:1A",
        "env:read:A-B",
        "env:read:*",
        "database:rw:\u{202e}x",
    ] {
        assert!(Permission::parse(text).is_err(), "{text:?}");
    }
    assert!(Permission::parse(&format!("x:y:{}", "z".repeat(297))).is_err());
    assert!(Permission::parse(&format!("x:y:{}", "z".repeat(296))).is_ok());
}

#[test]
fn a_permission_covers_only_its_own_kind() {
    let write = permission("filesystem:write:/a/**");
    assert!(write.covers(&permission("filesystem:read:/a/b")), "writing lets read");
    assert!(!permission("filesystem:read:/a/**").covers(&permission("filesystem:write:/a/b")));
    assert!(!permission("network:egress:*").covers(&permission("tool:invoke:*")));
    assert!(!permission("secret:use:A").covers(&permission("secret:use:B")));
    assert!(!permission("secret:use:A").covers(&permission("env:read:A")));
    assert!(!permission("x:y:*").covers(&permission("x:y:a")), "nothing is known of it");
    assert!(permission("x:y:*").covers(&permission("x:y:*")));
}

#[test]
fn a_permission_allows_only_what_it_names() {
    let (read, write) = (permission("filesystem:read:/a/**"), permission("filesystem:write:/b/*"));
    assert!(read.allows_read("/a/x") && !read.allows_write("/a/x") && !read.allows_read("/b"));
    assert!(write.allows_read("/b/x") && write.allows_write("/b/x") && !write.allows_write("/b"));
    assert!(!read.allows_read("/a/../b/x") && !write.allows_host("b", 80));
    let echo = ToolId::new("wharf/echo").expect("valid");
    assert!(permission("tool:invoke:wharf/*").allows_tool(&echo) && !read.allows_tool(&echo));
    let nothing = permission("graph:read:**");
    assert!(!nothing.allows_tool(&echo) && !nothing.allows_host("a", 1));
    assert!(!nothing.allows_read("/") && !nothing.allows_write("/"));
}

#[test]
fn a_list_is_hashed_trimmed_sorted_and_without_repeats() {
    let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let hash = permissions_hash(&list(&["b:c:d", " a:b:\"c ", "b:c:d"]));
    assert_eq!(hash, Digest::of_bytes(br#"["a:b:\"c","b:c:d"]"#));
    assert_eq!(hash, permissions_hash(&list(&["a:b:\"c", "b:c:d\t"])));
    assert_ne!(hash, permissions_hash(&list(&["a:b:\"c"])));
    assert_eq!(permissions_hash(&[]), Digest::of_bytes(b"[]"));
}
