//! Tokens: what is sealed cannot be changed, and what is narrowed stays narrow.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use wharf_domain::grant::token::{BLOCKS_MAX, TOKEN_BYTES_MAX, TokenError, mint, narrow, verify};
use wharf_domain::grant::{Keyring, Narrowing};
use wharf_domain::permission::ToolPattern;
use wharf_domain::{Caller, Grant, Rights};
use wharf_vocab::{GrantId, Timestamp, ToolId, Verb, WorldId};

pub(crate) fn id(text: &str) -> GrantId {
    GrantId::new(text).expect("valid")
}

fn world(text: &str) -> WorldId {
    WorldId::new(text).expect("valid")
}

fn tool(text: &str) -> ToolId {
    ToolId::new(text).expect("valid")
}

fn pattern(text: &str) -> ToolPattern {
    ToolPattern::parse(text).expect("valid")
}

pub(crate) fn keyring(current: &str, names: &[&str]) -> Keyring {
    let key = |name: &&str| {
        let digest = wharf_vocab::Digest::of_bytes(name.as_bytes());
        let bytes = digest.as_str().as_bytes()[..32].try_into().expect("32 bytes");
        ((*name).to_owned(), bytes)
    };
    Keyring { current: current.to_owned(), keys: names.iter().map(key).collect() }
}

pub(crate) fn grant(name: &str, person: bool) -> Grant {
    let rights = Rights {
        verbs: [Verb::Run, Verb::Read, Verb::Approve].into(),
        worlds: Some([world("a"), world("b")].into()),
        tools: vec![vec![pattern("llm/*"), pattern("wharf/echo")]],
        until: Some(Timestamp(1_000)),
    };
    Grant {
        id: id(name),
        made_at: Timestamp(1),
        by: Caller::owner().to_ref(),
        label: "for tests".into(),
        rights,
        person,
        budget_micro: None,
        revoked_at: None,
        console: None,
        seen_at: Timestamp(0),
    }
}

fn narrowing() -> Narrowing {
    Narrowing {
        verbs: Some([Verb::Run, Verb::Admin].into()),
        worlds: Some([world("b"), world("c")].into()),
        tools: Some(vec![pattern("*/echo")]),
        until: Some(Timestamp(2_000)),
    }
}

#[test]
fn a_token_gives_what_its_grant_gives() {
    let ring = keyring("k1", &["k1"]);
    for person in [true, false] {
        let grant = grant("g-1", person);
        let bearer = verify(&ring, mint(&ring, &grant).expose()).expect("good");
        assert_eq!((bearer.person, bearer.root_person), (person, person));
        assert_eq!(bearer.rights, grant.rights);
        assert_eq!(bearer.chain, [id("g-1")]);
        assert_eq!(bearer.root, id("g-1"));
    }
}

#[test]
fn a_narrowed_token_has_less_and_is_never_a_persons() {
    let ring = keyring("k1", &["k1"]);
    let token = mint(&ring, &grant("g-1", true));
    let narrowed = narrow(token.expose(), &id("ci"), &narrowing()).expect("narrowed");
    let bearer = verify(&ring, narrowed.expose()).expect("good");
    assert!(!bearer.person && bearer.root_person);
    assert_eq!(bearer.chain, [id("g-1"), id("g-1.ci")]);
    assert_eq!(bearer.root, id("g-1"));
    let rights = &bearer.rights;
    assert_eq!(rights.verbs, [Verb::Run].into(), "admin was not there to be kept");
    assert_eq!(rights.worlds, Some([world("b")].into()));
    assert_eq!(rights.until, Some(Timestamp(1_000)), "a later end is no narrowing");
    assert!(rights.check_tool(&tool("wharf/echo")).is_ok());
    for outside in ["wharf/other", "llm/chat", "else/echo"] {
        assert!(rights.check_tool(&tool(outside)).is_err(), "{outside}");
    }
    assert!(grant("g-1", true).rights.covers(rights));

    let same = narrow(token.expose(), &id("same"), &Narrowing::default()).expect("narrowed");
    let bearer = verify(&ring, same.expose()).expect("good");
    assert!(!bearer.person, "also when nothing was taken away");
    assert_eq!(bearer.rights, grant("g-1", true).rights);
}

#[test]
fn a_narrowing_cannot_take_the_name_of_another_grant() {
    let ring = keyring("k1", &["k1"]);
    let token = mint(&ring, &grant("g-1", false));
    let one = narrow(token.expose(), &id("owner"), &Narrowing::default()).expect("narrowed");
    let two = narrow(one.expose(), &id("x"), &Narrowing::default()).expect("narrowed");
    let chain = verify(&ring, two.expose()).expect("good").chain;
    assert_eq!(chain, [id("g-1"), id("g-1.owner"), id("g-1.owner.x")]);
    // With a dot, `a.b` from one token would pass for `b` from another.
    let dotted = narrow(token.expose(), &id("a.b"), &Narrowing::default());
    assert_eq!(dotted, Err(TokenError::Malformed));
}

#[test]
fn tokens_are_good_until_their_key_is_dropped() {
    let before = keyring("k1", &["k1"]);
    let old = mint(&before, &grant("g-1", true));
    let after = keyring("k2", &["k1", "k2"]);
    assert!(verify(&after, old.expose()).is_ok());
    let new = mint(&after, &grant("g-1", true));
    assert!(new.expose().starts_with("whf1.k2."));
    assert_eq!(verify(&before, new.expose()), Err(TokenError::Seal));
    let dropped = keyring("k2", &["k2"]);
    assert_eq!(verify(&dropped, old.expose()), Err(TokenError::Seal));
    assert!(verify(&dropped, new.expose()).is_ok());
}

#[test]
fn without_a_key_no_token_is_good() {
    for ring in [Keyring::none(), keyring("gone", &["k1"]), keyring("a.b", &["a.b"])] {
        let token = mint(&ring, &grant("g-1", true));
        assert!(verify(&ring, token.expose()).is_err());
    }
    // The name of the key is sealed too: the same bytes under another name are another key.
    let mut ring = keyring("k1", &["k1"]);
    ring.keys.insert("k2".into(), ring.keys["k1"]);
    let token = mint(&ring, &grant("g-1", true));
    let renamed = token.expose().replace("whf1.k1.", "whf1.k2.");
    assert_eq!(verify(&ring, &renamed), Err(TokenError::Seal));
}

#[test]
fn blocks_cannot_be_taken_off_swapped_repeated_or_added() {
    let ring = keyring("k1", &["k1"]);
    let root = mint(&ring, &grant("g-1", true));
    let one = narrow(root.expose(), &id("one"), &narrowing()).expect("narrowed");
    let two = narrow(one.expose(), &id("two"), &Narrowing::default()).expect("narrowed");
    let parts: Vec<&str> = two.expose().split('.').collect();
    let [form, kid, first, second, third, seal] = parts[..] else { panic!("{parts:?}") };
    let seal_of = |token: &str| token.rsplit('.').next().expect("a seal").to_owned();
    let (root_seal, one_seal) = (seal_of(root.expose()), seal_of(one.expose()));
    for (blocks, seal) in [
        (vec![first], seal),
        (vec![first, second], seal),
        (vec![first, third], seal),
        (vec![first, third, second], seal),
        (vec![second, first, third], seal),
        (vec![first, second, second, third], seal),
        (vec![first, second, third, third], seal),
        (vec![second, third], seal),
        (vec![first, second, third], &one_seal),
        (vec![first, second], &root_seal),
        (vec![first], &one_seal),
    ] {
        let text = format!("{form}.{kid}.{}.{seal}", blocks.join("."));
        assert_eq!(verify(&ring, &text), Err(TokenError::Seal), "{text}");
    }
    // What a narrowed token shows does not hold the seals it was made with.
    for (token, hidden) in [(&two, &one_seal), (&two, &root_seal), (&one, &root_seal)] {
        assert!(!token.expose().contains(hidden.as_str()));
    }
}

#[test]
fn only_the_one_written_form_is_a_token() {
    let ring = keyring("k1", &["k1"]);
    let token = mint(&ring, &grant("g-1", true));
    let text = token.expose();
    let (front, seal) = text.rsplit_once('.').expect("parts");
    let (_, block) = front.rsplit_once('.').expect("parts");
    let without_last = &text[..text.len() - 1];
    // The seal's 32 bytes leave two bits over in its last character; they must be zero.
    const ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let last = ALPHABET.find(&text[text.len() - 1..]).expect("base64url");
    let over = (1..4).map(|bits| format!("{without_last}{}", &ALPHABET[last + bits..=last + bits]));
    let mut bad: Vec<String> = vec![
        String::new(),
        "whf1".into(),
        "whf1.k1".into(),
        format!("whf1.k1.{seal}"),
        format!("whf1.k1..{seal}"),
        format!("whf2.k1.{block}.{seal}"),
        format!("WHF1.k1.{block}.{seal}"),
        format!("whf1..{block}.{seal}"),
        format!("whf1.{}.{block}.{seal}", "k".repeat(65)),
        format!("{text}."),
        format!(".{text}"),
        format!("{text}="),
        format!("{text} "),
        format!(" {text}"),
        format!("{text}\n"),
        format!("whf1.k1.{block}=.{seal}"),
        format!("whf1.k1.{block}.{seal}AAAA"),
        format!("whf1.k1.{block}.{}", &seal[..40]),
        format!("whf1.k1.{block}.+{}", &seal[1..]),
        without_last.to_owned(),
    ];
    bad.extend(over);
    for text in &bad {
        assert!(verify(&ring, text).is_err(), "{text:?}");
        let narrowed = narrow(text, &id("x"), &Narrowing::default());
        assert_eq!(narrowed, Err(TokenError::Malformed), "{text:?}");
    }
}

/// A bearer holds the last seal, so it can seal any bytes as a further block.
fn sealed_by_bearer(text: &str, block: &str) -> String {
    use hmac::{Hmac, KeyInit, Mac};
    let (front, seal) = text.rsplit_once('.').expect("parts");
    let seal = URL_SAFE_NO_PAD.decode(seal).expect("base64");
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(&seal).expect("any length");
    mac.update(b"wharf.token.narrowed.1\0");
    mac.update(block.as_bytes());
    let seal = URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes());
    format!("{front}.{}.{seal}", URL_SAFE_NO_PAD.encode(block))
}

#[test]
fn a_bearer_cannot_seal_a_block_that_is_not_a_plain_narrowing() {
    let ring = keyring("k1", &["k1"]);
    let text = mint(&ring, &grant("g-1", true)).expose().to_owned();
    let good = sealed_by_bearer(&text, r#"{"id":"x","narrowing":{"verbs":["run"]}}"#);
    assert!(verify(&ring, &good).is_ok(), "the forger knows how to seal");
    for block in [
        "",
        "{}",
        "null",
        r#"{"id":"x"}"#,
        r#"{"id":"x","narrowing":null}"#,
        r#"{"id":"x","narrowing":{"verbs":["run"]}} "#,
        r#" {"id":"x","narrowing":{"verbs":["run"]}}"#,
        r#"{"narrowing":{"verbs":["run"]},"id":"x"}"#,
        r#"{"id":"x","id":"x","narrowing":{}}"#,
        r#"{"id":"x","narrowing":{},"narrowing":{}}"#,
        r#"{"id":"x","narrowing":{"verbs":["run"],"verbs":["run"]}}"#,
        r#"{"id":"x","narrowing":{"verbs":["run","run"]}}"#,
        r#"{"id":"x","narrowing":{"verbs":null}}"#,
        r#"{"id":"x","narrowing":{"person":true}}"#,
        r#"{"id":"x","person":true,"narrowing":{}}"#,
        r#"{"id":"x","rights":{"verbs":["admin"]},"narrowing":{}}"#,
        r#"{"id":"x","person":true,"rights":{"verbs":["admin"]}}"#,
        r#"{"id":"x","narrowing":{"until":1e3}}"#,
        r#"{"id":"x","narrowing":{"until":-1}}"#,
        r#"{"id":"\u0078","narrowing":{}}"#,
        r#"{"id":"x/y","narrowing":{}}"#,
        r#"{"id":"x.y","narrowing":{}}"#,
        r#"{"id":"x","narrowing":{"tools":["*"]}}"#,
    ] {
        let text = sealed_by_bearer(&text, block);
        assert_eq!(verify(&ring, &text), Err(TokenError::Malformed), "{block}");
    }
}

#[test]
fn tokens_are_bounded() {
    let ring = keyring("k1", &["k1"]);
    let mut token = mint(&ring, &grant("g-1", true));
    for n in 1..BLOCKS_MAX {
        token = narrow(token.expose(), &id(&format!("n{n}")), &Narrowing::default()).expect("fits");
    }
    let bearer = verify(&ring, token.expose()).expect("good");
    assert_eq!(bearer.chain.len(), BLOCKS_MAX);
    let more = narrow(token.expose(), &id("more"), &Narrowing::default());
    assert_eq!(more, Err(TokenError::TooLong));
    let forged = sealed_by_bearer(token.expose(), r#"{"id":"x","narrowing":{}}"#);
    assert_eq!(verify(&ring, &forged), Err(TokenError::TooLong));
    let dots = format!("whf1.k1{}", ".AA".repeat(2_000));
    assert_eq!(verify(&ring, &dots), Err(TokenError::TooLong));

    let root = mint(&ring, &grant("g-1", true));
    let worlds = (0..400).map(|n| world(&format!("world-with-a-long-name-{n}"))).collect();
    let large = Narrowing { worlds: Some(worlds), ..Narrowing::default() };
    assert_eq!(narrow(root.expose(), &id("large"), &large), Err(TokenError::TooLong));
    let endless = "a".repeat(TOKEN_BYTES_MAX + 1);
    assert_eq!(verify(&ring, &endless), Err(TokenError::Malformed));
    let named = narrow(root.expose(), &id(&"n".repeat(128)), &Narrowing::default());
    assert_eq!(named, Err(TokenError::TooLong), "the whole name must be an id");
}

#[test]
fn nothing_shows_a_token_or_a_key() {
    let ring = keyring("k1", &["k1"]);
    let token = mint(&ring, &grant("g-1", true));
    let shown = format!("{token:?} {ring:?} {:?}", verify(&ring, token.expose()));
    let (_, seal) = token.expose().rsplit_once('.').expect("parts");
    assert!(!shown.contains(seal) && !shown.contains("whf1"), "{shown}");
    let key = ring.keys["k1"];
    assert!(!shown.contains(&format!("{}, {}", key[0], key[1])), "{shown}");
    assert!(!shown.contains(std::str::from_utf8(&key).expect("hex")), "{shown}");
}
