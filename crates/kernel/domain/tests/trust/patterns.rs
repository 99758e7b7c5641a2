//! What each kind of pattern accepts, fits and covers, by example.

use wharf_domain::permission::{HostPattern, PathGlob, ToolPattern};
use wharf_vocab::ToolId;

fn path(text: &str) -> PathGlob {
    PathGlob::parse(text).unwrap_or_else(|error| panic!("{text} {error}"))
}

fn host(text: &str) -> HostPattern {
    HostPattern::parse(text).unwrap_or_else(|error| panic!("{text} {error}"))
}

fn tool(text: &str) -> ToolPattern {
    ToolPattern::parse(text).unwrap_or_else(|error| panic!("{text} {error}"))
}

#[test]
fn paths_are_refused_with_the_reason() {
    for (text, why) in [
        ("", "from / or ~/"),
        ("notes", "from / or ~/"),
        ("~", "from / or ~/"),
        ("~root/x", "from / or ~/"),
        ("**", "from / or ~/"),
        ("/", "write /**"),
        ("~/", "empty segment"),
        ("/a/", "empty segment"),
        ("//a", "empty segment"),
        ("/a//b", "empty segment"),
        ("/a/./b", "segment . or .."),
        ("/a/../b", "segment . or .."),
        ("~/..", "segment . or .."),
        ("/a**", "** inside a segment"),
        ("/**a/b", "** inside a segment"),
        ("/***", "** inside a segment"),
        ("/a\0b", "control"),
        ("/a\u{202e}b", "cannot be seen"),
    ] {
        let error = PathGlob::parse(text).expect_err(text);
        assert!(error.0.contains(why), "{text:?}: {error}");
    }
    assert!(PathGlob::parse(&format!("/{}", "a".repeat(300))).is_err());
    for text in ["/...", "/.hidden", "/a/..b", "/[a]/{b}", "/**", "~/**", "/**/**", "/ä/?"] {
        path(text);
    }
}

#[test]
fn paths_fit() {
    for (pattern, fits, not) in [
        ("/a/b", &["/a/b"][..], &["/a", "/a/b/c", "/a/bc", "/A/b"][..]),
        ("/a/**", &["/a", "/a/b", "/a/b/c", "/a/.b"], &["/", "/ab", "/b/a", "/ab/c"]),
        ("/a/*", &["/a/b", "/a/.b", "/a/*"], &["/a", "/a/b/c", "/b"]),
        ("/*", &["/a"], &["/", "/a/b"]),
        ("/a/*.md", &["/a/x.md", "/a/.md"], &["/a/x.mdx", "/a/b/x.md", "/a/x"]),
        ("/a/**/x", &["/a/x", "/a/b/x", "/a/b/c/x"], &["/a", "/ax", "/a/b/xx", "/a/bx"]),
        ("/**/x", &["/x", "/a/x", "/a/b/x"], &["/ax", "/x/a"]),
        ("/**/*.rs", &["/a.rs", "/a/b.rs"], &["/a.rs/b", "/a"]),
        ("/**", &["/", "/a", "/a/b"], &[]),
        ("/a/?", &["/a/b", "/a/ä", "/a/日"], &["/a", "/a/bb", "/a/b/c"]),
        ("/a/*b*/c", &["/a/b/c", "/a/xbx/c", "/a/bb/c"], &["/a/x/c", "/a/b/x/c"]),
        ("/a/**/b/**/c", &["/a/b/c", "/a/x/b/y/c", "/a/b/b/c"], &["/a/c", "/a/b", "/b/c"]),
        ("/[a]", &["/[a]"], &["/a"]),
        // Only what is canonical and absolute can be fit.
        ("/a/**", &[], &["", "a", "a/b", "/a/", "/a//b", "/a/../b", "/a/./b", "/a/..", "/a/b\0"]),
        ("~/a", &[], &["~/a", "/a", "/~/a"]),
    ] {
        for text in fits {
            assert!(path(pattern).matches(text), "{pattern} fits {text}");
        }
        for text in not {
            assert!(!path(pattern).matches(text), "{pattern} does not fit {text}");
        }
    }
}

#[test]
fn paths_cover_what_is_narrower() {
    for (wide, narrow) in [
        ("/**", "/a/b"),
        ("/**", "/a/**/*.md"),
        ("/a/**", "/a"),
        ("/a/**", "/a/*"),
        ("/a/**", "/a/b/**"),
        ("/a/**", "/a/*/b?c"),
        ("/a/**", "/a/**/*"),
        ("/a/*/**", "/a/**/*"),
        ("/a/**/*", "/a/*/**"),
        ("/a/**/**", "/a/**"),
        ("/a/**", "/a/**/**"),
        ("/a/*", "/a/?*"),
        ("/?*", "/*"),
        ("/**/*", "/*"),
        ("/a/?*", "/a/*"),
        ("/a/*", "/a/*.md"),
        ("/a/*b*", "/a/*bb*"),
        ("/a/*b*", "/a/abc"),
        ("/**/x", "/**/a/x"),
        ("/**/x", "/a/**/x"),
        ("/a/*/c", "/a/b/c"),
        ("/a/*?", "/a/?*?*"),
        ("~/notes/**", "~/notes/2024/*.md"),
    ] {
        assert!(path(wide).covers(&path(narrow)), "{wide} covers {narrow}");
    }
    for (wide, narrow) in [
        ("/a/b", "/a/b/**"),
        ("/a/*", "/a/**"),
        ("/a/*", "/a"),
        ("/a/**", "/**"),
        ("/a/**", "/ab"),
        ("/a/**", "/ab/**"),
        ("/a/**", "/*/b"),
        ("/a/**/*", "/a/**"),
        ("/**/*", "/**"),
        ("/*/**", "/**"),
        ("/a/*.md", "/a/*"),
        ("/a/*bb*", "/a/*b*"),
        ("/a/?", "/a/*"),
        ("/**/a/x", "/**/x"),
        ("/a/*/c", "/a/**/c"),
        ("/a/*b", "/a/b*"),
        ("/a/??*", "/a/?*"),
        ("/**", "~/x"),
        ("~/**", "/home/me/x"),
    ] {
        assert!(!path(wide).covers(&path(narrow)), "{wide} does not cover {narrow}");
    }
}

#[test]
fn a_home_is_taken_as_it_is() {
    let notes = path("~/notes/*.md");
    let mine = notes.at_home("/home/me/");
    assert_eq!(mine.to_string(), "/home/me/notes/*.md");
    assert_eq!(mine, path("/home/me/notes/*.md"));
    assert!(mine.matches("/home/me/notes/a.md"));
    assert!(path("/home/**").covers(&mine) && path("~/**").at_home("/home/me").covers(&mine));
    assert_eq!(path("/x/**").at_home("/home/me"), path("/x/**"));
    assert_eq!(path("~/**").at_home("/"), path("/**"));

    let odd = notes.at_home("/home/*");
    assert!(odd.matches("/home/*/notes/a.md") && !odd.matches("/home/me/notes/a.md"));
    assert!(!odd.covers(&mine) && odd.covers(&odd));
    for home in ["me", "/home/../me", "/home//me", "~", "/a/."] {
        assert_eq!(notes.at_home(home), notes, "{home}");
    }
    let long = format!("/{}", ["home"; 200].join("/"));
    let far = path("~/a*/**").at_home(&long);
    assert!(far.matches(&format!("{long}/ab/c")));
    assert!(far.covers(&path("~/ab/*").at_home(&long)));
}

#[test]
fn the_root_of_a_path_says_whether_the_system_can_keep_it_exactly() {
    for (pattern, root, exact, tree) in [
        ("/a/b", "/a/b", true, false),
        ("/a/b/**", "/a/b", true, true),
        ("/**", "/", true, true),
        ("~/**", "~", true, true),
        ("/*", "/", false, false),
        ("/a/*", "/a", false, false),
        ("/a/b*", "/a", false, false),
        ("/a/b?/c", "/a", false, false),
        ("/a/*/**", "/a", false, false),
        ("/a/**/b", "/a", false, false),
        ("/a/**/**", "/a", false, false),
        ("/**/b", "/", false, false),
        ("/a*", "/", false, false),
        ("~/*.md", "~", false, false),
        ("~/a/x*", "~/a", false, false),
    ] {
        let glob = path(pattern);
        assert_eq!((glob.root(), glob.is_tree()), ((root, exact), tree), "{pattern}");
    }
}

#[test]
fn hosts_are_refused_with_the_reason() {
    for (text, why) in [
        ("", "does not name a host"),
        (".", "does not name a host"),
        (":80", "does not name a host"),
        ("a..b", "does not name a host"),
        (".a", "does not name a host"),
        ("a..", "does not name a host"),
        ("-a.b", "does not name a host"),
        ("a-.b", "does not name a host"),
        ("a/b", "does not name a host"),
        ("user@a", "does not name a host"),
        ("https://a", "port"),
        ("a:", "port"),
        ("a:0", "port"),
        ("a:080", "port"),
        ("a:+80", "port"),
        ("a:65536", "port"),
        ("a:http", "port"),
        ("[::1]:0", "port"),
        ("[::1", "never closed"),
        ("[::1]80", "brackets"),
        ("[127.0.0.1]:80", "brackets"),
        ("[a]:80", "brackets"),
        ("::g", "does not name a host"),
        ("fe80::1%eth0", "does not name a host"),
        ("bücher.example", "xn--"),
        ("a.*.b", "*"),
        ("a*.b", "*"),
        ("*a.b", "*"),
        ("*.*.b", "*"),
        ("**", "*"),
        ("*.127.0.0.1", "not a name"),
        ("*.::1", "not a name"),
        ("127.1", "four plain numbers"),
        ("0x7f.1", "four plain numbers"),
        ("0x7f000001", "four plain numbers"),
        ("2130706433", "four plain numbers"),
        ("0177.0.0.1", "four plain numbers"),
        ("127.0.0.01", "four plain numbers"),
        ("127.0.0.1.", "four plain numbers"),
        ("1.2.3.4.5", "four plain numbers"),
        ("256.0.0.1", "four plain numbers"),
        ("a.0X7F", "four plain numbers"),
    ] {
        let error = HostPattern::parse(text).expect_err(text);
        assert!(error.0.contains(why), "{text:?}: {error}");
    }
    for name in ["a".repeat(64), format!("{}a", "a.".repeat(127))] {
        assert!(HostPattern::parse(&name).is_err(), "{name}");
    }
}

#[test]
fn hosts_fit() {
    for (pattern, fits, not) in [
        (
            "API.Example.com",
            &["api.example.com", "API.EXAMPLE.COM."][..],
            &["x.api.example.com"][..],
        ),
        ("a.b.", &["a.b", "a.b."], &["a.b.."]),
        ("*.b.c", &["a.b.c", "x.a.b.c."], &["b.c", "ab.c", "xb.c", "a.b.c.d", "1.2.3.4"]),
        ("*", &["a", "127.0.0.1", "::1", "[::1]"], &["", "*", "127.1", "0x7f.1", "2130706433"]),
        ("127.0.0.1", &["127.0.0.1", "::ffff:127.0.0.1"], &["127.1", "2130706433", "localhost"]),
        ("::1", &["::1", "[::1]", "0:0:0:0:0:0:0:1"], &["::2", "[::1", "1", "127.0.0.1"]),
        ("::ffff:10.0.0.1", &["10.0.0.1", "[::ffff:a00:1]"], &["10.0.0.2"]),
        ("xn--bcher-kva.example", &["xn--bcher-kva.example"], &["bücher.example"]),
    ] {
        for text in fits {
            assert!(host(pattern).matches(text, 443), "{pattern} fits {text}");
        }
        for text in not {
            assert!(!host(pattern).matches(text, 443), "{pattern} does not fit {text}");
        }
    }
    let bound = host("[::1]:8080");
    assert!(bound.matches("::1", 8080) && !bound.matches("::1", 80));
    assert!(!host("*").matches("a", 0));
    assert!(host("::1").is_literal() && host("LOCALHOST.:80").is_literal());
    assert!(!host("*").is_literal() && !host("*.localhost").is_literal());
    for (text, shown) in [("::1", "[::1]"), ("A.B.:80", "a.b:80"), ("::ffff:1.2.3.4", "1.2.3.4")] {
        assert_eq!(host(text).to_string(), shown);
    }
}

#[test]
fn hosts_cover_what_is_narrower() {
    for (wide, narrow) in [
        ("*", "a:80"),
        ("*", "*.a"),
        ("*:80", "[::1]:80"),
        ("*.a.b", "x.a.b:443"),
        ("*.a.b", "*.x.a.b"),
        ("*.a.b", "*.A.b.:443"),
        ("a:80", "A:80"),
    ] {
        assert!(host(wide).covers(&host(narrow)), "{wide} covers {narrow}");
    }
    for (wide, narrow) in [
        ("a", "*"),
        ("a:80", "a"),
        ("a:80", "a:81"),
        ("*:80", "a"),
        ("*.a.b", "a.b"),
        ("*.a.b", "*.b"),
        ("*.a.b", "xa.b"),
        ("*.a.b", "*.xa.b"),
        ("a", "b.a"),
        ("127.0.0.1", "::1"),
    ] {
        assert!(!host(wide).covers(&host(narrow)), "{wide} does not cover {narrow}");
    }
}

#[test]
fn tools_fit_and_cover() {
    for text in
        ["", "a", "a/", "/a", "a/b/c", "a b/c", "a/b@", "a/b@x", "a@1/b", "-a/b", "a/?", "**"]
    {
        assert!(ToolPattern::parse(text).is_err(), "{text}");
    }
    assert!(ToolPattern::parse(&format!("a/{}", "a".repeat(300))).is_err());
    assert_eq!(tool("*"), ToolPattern::any());
    for (pattern, fits, not) in [
        ("*", &["a/b", "a/b@1"][..], &[][..]),
        ("llm/*", &["llm/chat", "llm/chat@2"], &["llmx/chat", "x/llm"]),
        ("*/echo", &["a/echo", "b/echo"], &["a/echo2", "a/echo@1"]),
        ("a.*/b*c", &["a.x/bc", "a.x.y/bxc"], &["a/bc", "a.x/bcd"]),
        ("llm/chat@*", &["llm/chat@1"], &["llm/chat"]),
        ("llm/chat", &["llm/chat"], &["llm/chat@1", "llm/Chat"]),
    ] {
        for text in fits {
            let id = ToolId::new(text).expect("valid");
            assert!(tool(pattern).matches(&id), "{pattern} fits {text}");
        }
        for text in not {
            let id = ToolId::new(text).expect("valid");
            assert!(!tool(pattern).matches(&id), "{pattern} does not fit {text}");
        }
    }
    for (wide, narrow) in [("*", "a/b"), ("*/*", "*/b*"), ("a/*", "a/b*c"), ("a*/*", "ab*/c")] {
        assert!(tool(wide).covers(&tool(narrow)), "{wide} covers {narrow}");
        assert!(!tool(narrow).covers(&tool(wide)), "{narrow} does not cover {wide}");
    }
    assert!(!tool("a/*").covers(&tool("*/a")) && !tool("a/b").covers(&tool("a/b@1")));
    assert!(tool("*/*").covers(&tool("**/*")) && tool("**/*").covers(&tool("*")));
}

/// A matcher that tries every way takes longer than the universe has existed for these.
#[test]
fn no_pattern_is_slow() {
    let stars = format!("/{}", "*a".repeat(149));
    let text = format!("/{}", "a".repeat(4_000));
    assert!(path(&stars).matches(&text));
    assert!(!path(&stars).matches(&format!("{text}b")));
    let deep = format!("{}/x", "/**/a".repeat(59));
    let text = "/a".repeat(2_000);
    assert!(!path(&deep).matches(&text));
    assert!(path(&deep).matches(&format!("{text}/x")));

    let marks = format!("/*a{}", "?".repeat(290));
    let more = format!("/*a{}", "?".repeat(289));
    assert!(path(&marks).covers(&path(&marks)));
    assert!(!path(&marks).covers(&path(&more)));
    assert!(path("/**").covers(&path(&marks)));
    assert!(path(&stars).covers(&path(&format!("/{}a", "a*".repeat(148)))));
    assert!(!path(&format!("/{}b", "*a".repeat(149))).covers(&path(&stars)));
    assert!(path("/**/a/x").covers(&path(&deep)));
}
