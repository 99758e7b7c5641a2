//! Names of tools, prompts and addresses, as clients see them and as the catalog keeps them.
//!
//! Clients bound names to a few characters, the catalog bounds ids to others, and servers bound
//! nothing. All three ways are pure: what a name becomes depends on what is in the catalog and on
//! nothing else, so it is the same after a restart and at another core.

use std::collections::BTreeMap;

use wharf_vocab::ToolId;
use wharf_vocab::limits::ID_BYTES_MAX;

/// Longest name that every client takes.
pub(crate) const NAME_CHARS_MAX: usize = 60;
/// Characters of a hash in a name.
const HASH_CHARS: usize = 6;
/// What stands between a provider and the name of its tool.
const BETWEEN: &str = "__";
/// Shortest bound on names that leaves room for a letter of each part and a hash.
const NAME_CHARS_MIN: usize = HASH_CHARS + 1 + BETWEEN.len() + 2;

/// The hidden tool that reads a resource of a server.
pub(crate) const RESOURCES_READ: &str = "resources.read";
/// The hidden tool that lists the resources of a server: `{"cursor"?}`.
pub(crate) const RESOURCES_LIST: &str = "resources.list";
/// The hidden tool that completes an argument: the parameters of `completion/complete`.
pub(crate) const COMPLETE: &str = "completion.complete";
/// The hidden tool that gets a prompt of a server.
pub(crate) const PROMPTS_GET: &str = "prompts.get";
/// What stands for the instructions of a server.
pub(crate) const INSTRUCTIONS: &str = "instructions";
/// What the ids of prompts begin with, behind their provider.
pub(crate) const PROMPT: &str = "prompt.";
/// What the ids of templates begin with, behind their provider.
pub(crate) const TEMPLATE: &str = "template.";
/// What an encoded name begins with.
const ENCODED: &str = "x-";
/// Characters of an encoded name that are there to be read.
const ENCODED_CHARS: usize = 64;
/// Characters of the hash that tells encoded names apart.
const ENCODED_HASH_CHARS: usize = 16;
/// The scheme of a resource of a server, where resources of many are listed together.
const UPSTREAM: &str = "wharf+mcp://";

/// Something to name: where it is from, and what it is called there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct McpNamed<'a> {
    /// What it is in the catalog.
    pub(crate) id: &'a ToolId,
    /// What its provider calls it.
    pub(crate) name: &'a str,
}

impl<'a> McpNamed<'a> {
    /// A tool under the name it has in its id.
    #[cfg(test)]
    fn tool(id: &'a ToolId) -> Self {
        Self { id, name: id.name() }
    }

    /// The name it has unless that is too long, or another has it already.
    fn plain(&self) -> (String, String) {
        let provider = self.id.as_str().split_once('/').map_or("", |(provider, _)| provider);
        (spelled(provider), spelled(self.name))
    }
}

/// The names of everything in the catalog, both ways.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct McpNames {
    ids: BTreeMap<String, ToolId>,
    names: BTreeMap<ToolId, String>,
}

impl McpNames {
    /// Names these, the oldest first: of two that would have one name, the first keeps it. No name
    /// is longer than `chars_max`.
    pub(crate) fn new<'a>(all: impl IntoIterator<Item = McpNamed<'a>>, chars_max: usize) -> Self {
        let chars_max = chars_max.clamp(NAME_CHARS_MIN, ID_BYTES_MAX);
        let mut made = Self::default();
        for named in all {
            if made.names.contains_key(named.id) {
                continue;
            }
            let name = made.free(&named, chars_max);
            made.ids.insert(name.clone(), named.id.clone());
            made.names.insert(named.id.clone(), name);
        }
        made
    }

    /// What has this name.
    pub(crate) fn id(&self, name: &str) -> Option<&ToolId> {
        self.ids.get(name)
    }

    /// The name of this.
    pub(crate) fn name(&self, id: &ToolId) -> Option<&str> {
        self.names.get(id).map(String::as_str)
    }

    fn free(&self, named: &McpNamed<'_>, chars_max: usize) -> String {
        let (provider, name) = named.plain();
        let plain = format!("{provider}{BETWEEN}{name}");
        if plain.len() <= chars_max && !self.ids.contains_key(&plain) {
            return plain;
        }
        let room = chars_max - HASH_CHARS - 1 - BETWEEN.len();
        // What the tool is called says more than whose it is.
        let name_chars = name.len().min(room - 1);
        let provider = &provider[..provider.len().min(room - name_chars)];
        let (name, id) = (&name[..name_chars], named.id.as_str());
        let hashed = (0_u32..).map(|n| {
            let hash = hash_of(&[id.as_bytes(), &n.to_be_bytes()], HASH_CHARS);
            format!("{provider}{BETWEEN}{name}_{hash}")
        });
        let mut free = hashed.filter(|name| !self.ids.contains_key(name));
        free.next().unwrap_or(plain)
    }
}

/// A text with the characters that names have: others become `_`, and a version `@1` becomes `_v1`.
/// Nothing but one byte for each character comes out.
fn spelled(text: &str) -> String {
    let mut spelled = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        match c {
            '@' => spelled.push_str("_v"),
            c if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') => spelled.push(c),
            _ => spelled.push('_'),
        }
    }
    if spelled.is_empty() { "_".to_owned() } else { spelled }
}

fn hash_of(parts: &[&[u8]], chars: usize) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().to_hex()[..chars].to_owned()
}

/// What a server's tool is called in the catalog: its own name, unless that is no id or stands for
/// something else there. What was encoded is not decoded: the catalog has the original beside it.
pub(crate) fn tool_part(name: &str) -> String {
    let hidden = [RESOURCES_READ, RESOURCES_LIST, PROMPTS_GET, COMPLETE, INSTRUCTIONS];
    let taken =
        hidden.contains(&name) || [PROMPT, TEMPLATE].iter().any(|prefix| name.starts_with(prefix));
    part("", name, taken)
}

/// What a server's prompt is called in the catalog.
pub(crate) fn prompt_part(name: &str) -> String {
    part(PROMPT, name, false)
}

/// What a server's template is called in the catalog.
pub(crate) fn template_part(uri: &str) -> String {
    part(TEMPLATE, uri, false)
}

fn part(prefix: &str, name: &str, taken: bool) -> String {
    let whole = format!("{prefix}{name}");
    let is_id = !name.is_empty()
        && whole.len() <= ID_BYTES_MAX
        && whole.as_bytes()[0].is_ascii_alphanumeric()
        && whole.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    if is_id && !taken && !name.starts_with(ENCODED) {
        return whole;
    }
    let mut read = spelled(name);
    read.truncate(ENCODED_CHARS);
    let hash = hash_of(&[name.as_bytes()], ENCODED_HASH_CHARS);
    format!("{prefix}{ENCODED}{read}-{hash}")
}

/// The address of a server's resource among those of others.
pub(crate) fn upstream_uri(provider: &str, uri: &str) -> String {
    format!("{UPSTREAM}{provider}/{}", escaped(uri, ""))
}

/// The template of a server's resources among those of others. Its gaps stay gaps: what fills them
/// is escaped by whoever fills them, so they become gaps that take anything.
pub(crate) fn upstream_template(provider: &str, template: &str) -> String {
    let mut uri = format!("{UPSTREAM}{provider}/");
    let mut rest = template;
    while let Some(begin) = rest.find('{') {
        let Some(length) = rest[begin..].find('}') else { break };
        uri.push_str(&escaped(&rest[..begin], ""));
        uri.push_str(&rest[begin..=begin + length]);
        rest = &rest[begin + length + 1..];
    }
    uri.push_str(&escaped(rest, ""));
    uri
}

/// Whose resource an address among those of others names, and what its server calls it.
pub(crate) fn read_upstream_uri(uri: &str) -> Option<(String, String)> {
    let (provider, own) = uri.strip_prefix(UPSTREAM)?.split_once('/')?;
    Some((provider.to_owned(), unescaped(own)?))
}

/// A text in which everything that could mean something in an address is written with percent
/// signs, but for what is `kept`.
pub(crate) fn escaped(text: &str, kept: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        let plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        if plain || kept.as_bytes().contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = behind;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let hex = std::str::from_utf8(behind.get(..2)?).ok()?;
        // A sign would be taken for part of a number.
        hex.bytes().all(|b| b.is_ascii_hexdigit()).then_some(())?;
        bytes.push(u8::from_str_radix(hex, 16).ok()?);
        rest = behind.get(2..)?;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn id(text: &str) -> ToolId {
        ToolId::new(text).expect("an id")
    }

    fn names(ids: &[&str]) -> Vec<String> {
        let ids: Vec<ToolId> = ids.iter().map(|text| id(text)).collect();
        let names = McpNames::new(ids.iter().map(McpNamed::tool), NAME_CHARS_MAX);
        ids.iter().map(|id| names.name(id).expect("named").to_owned()).collect()
    }

    #[test]
    fn m016_names_are_spelled_for_every_client() {
        let long = format!("{}/{}", "p".repeat(80), "n".repeat(40));
        let both = format!("{}/{}", "p".repeat(80), "n".repeat(100));
        let ids = ["wharf/echo", "llm/litellm@1", "dev.example.hello/say-it.now", &long, &both];
        let made = names(&ids);
        assert_eq!(made[..2], ["wharf__echo", "llm__litellm_v1"]);
        assert_eq!(made[2], "dev_example_hello__say-it_now");
        let expected = format!("{}__{}_", "p".repeat(11), "n".repeat(40));
        assert_eq!(made[3][..54], expected);
        assert_eq!((made[3].len(), made[4].len()), (60, 60));
        assert!(made[4].starts_with(&format!("p__{}", "n".repeat(50))));
    }

    #[test]
    fn m016_the_older_one_keeps_its_name() {
        let made = names(&["a.b/c", "a_b/c", "a-b/c"]);
        assert_eq!((made[0].as_str(), made[2].as_str()), ("a_b__c", "a-b__c"));
        assert!(made[1].starts_with("a_b__c_") && made[1].len() == "a_b__c_".len() + 6);
        assert_eq!(names(&["a_b/c"])[0], "a_b__c", "a name is kept as long as nobody older has it");
    }

    fn word() -> impl Strategy<Value = String> {
        // Few letters, so that names meet, and lengths on both sides of the bound.
        prop_oneof!["[ab._-]{0,4}", "[a._]{50,100}"].prop_map(|rest| format!("a{rest}"))
    }

    proptest! {
        #[test]
        fn m016_names_are_short_stable_and_never_collide(
            parts in proptest::collection::vec((word(), word()), 1..60),
            chars_max in 20_usize..80,
        ) {
            let ids: BTreeSet<ToolId> =
                parts.iter().map(|(provider, name)| id(&format!("{provider}/{name}"))).collect();
            let made = McpNames::new(ids.iter().map(McpNamed::tool), chars_max);
            let distinct: BTreeSet<&str> = ids.iter().filter_map(|id| made.name(id)).collect();
            prop_assert_eq!(distinct.len(), ids.len());
            for id in &ids {
                let name = made.name(id).expect("named");
                prop_assert!(name.len() <= chars_max);
                prop_assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)));
                prop_assert_eq!(made.id(name), Some(id));
            }
            // Whoever comes later takes nobody's name.
            let newer = ToolId::new("zz.newer/tool").expect("an id");
            let more = ids.iter().chain([&newer]);
            let after = McpNames::new(more.map(McpNamed::tool), chars_max);
            for id in &ids {
                prop_assert_eq!(after.name(id), made.name(id));
            }
        }

        #[test]
        fn m054_whatever_a_server_calls_a_tool_becomes_an_id_of_its_own(
            names in proptest::collection::btree_set(".{0,140}", 1..20),
        ) {
            let mut ids = BTreeSet::new();
            for name in &names {
                for part in [tool_part(name), prompt_part(name), template_part(name)] {
                    let id = ToolId::new(format!("srv/{part}"));
                    prop_assert!(id.is_ok(), "{part}");
                    prop_assert!(ids.insert(part));
                }
            }
        }

        #[test]
        fn m040_an_address_among_others_is_read_back(uri in ".{0,200}") {
            let among = upstream_uri("my-server", &uri);
            prop_assert_eq!(read_upstream_uri(&among), Some(("my-server".to_owned(), uri)));
            prop_assert!(among.bytes().all(|b| b.is_ascii_graphic()));
        }
    }

    #[test]
    fn m054_names_that_stand_for_something_else_are_encoded() {
        assert_eq!(tool_part("get-sum"), "get-sum");
        assert_eq!(prompt_part("greet"), "prompt.greet");
        for taken in ["resources.read", "prompts.get", "instructions", "prompt.a", "template.a"] {
            assert!(tool_part(taken).starts_with("x-"), "{taken}");
        }
        let encoded = tool_part("get weather");
        assert!(encoded.starts_with("x-get_weather-"));
        assert_ne!(tool_part(&encoded), encoded, "nobody can call a tool like an encoded one");
    }

    #[test]
    fn m040_templates_keep_their_gaps() {
        let among = upstream_template("srv", "test://template/{id}/data{?q}");
        assert_eq!(among, "wharf+mcp://srv/test%3A%2F%2Ftemplate%2F{id}%2Fdata{?q}");
        let uri = among.replace("{id}", "7").replace("{?q}", "");
        let read = read_upstream_uri(&uri);
        assert_eq!(read, Some(("srv".to_owned(), "test://template/7/data".to_owned())));
        for bad in ["wharf+mcp://srv", "wharf+mcp:/x", "wharf+mcp://s/%", "wharf+mcp://s/%+1"] {
            assert_eq!(read_upstream_uri(bad), None, "{bad}");
        }
    }
}
