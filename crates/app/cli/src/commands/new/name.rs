//! What a new project is called.

use wharf_vocab::ToolId;

use crate::commands::{CliError, Result};

/// Longest name.
const NAME_BYTES_MAX: usize = 64;
/// The namespace of agents and tools that were given none.
const AGENT_SPACE: &str = "dev.example";
const TOOL_SPACE: &str = "example";

/// What is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ProjectKind {
    /// A process that the core starts and fences in, with any number of tools
    Agent,
    /// A tool that is served one run at a time
    Tool,
    /// A program that offers tools while it is connected
    Operative,
}

impl ProjectKind {
    /// The word for it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Tool => "tool",
            Self::Operative => "operative",
        }
    }
}

/// A checked name and what follows from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    /// The last word: folder, package, program.
    pub(super) short: String,
    /// The agent's id, the tool's reference or the operative's name.
    pub(super) id: String,
}

impl Name {
    /// Checks a name as it was typed.
    pub(super) fn read(kind: ProjectKind, typed: &str) -> Result<Self> {
        match kind {
            ProjectKind::Agent => agent(typed),
            ProjectKind::Tool => tool(typed),
            ProjectKind::Operative => {
                let short = word(typed, typed)?;
                Ok(Self { id: short.clone(), short })
            }
        }
    }

    /// The name as people read it: `my-agent` is "My agent".
    pub(super) fn title(&self) -> String {
        let plain = self.short.replace(['-', '_'], " ");
        let mut letters = plain.chars();
        letters
            .next()
            .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
    }

    /// The name as codes of errors begin with it.
    pub(super) fn code(&self) -> String {
        self.short.replace('-', "_")
    }
}

/// `greeter`, or an id such as `dev.acme.greeter`.
fn agent(typed: &str) -> Result<Name> {
    let words: Vec<&str> = typed.split('.').collect();
    let short = word(words.last().copied().unwrap_or_default(), typed)?;
    for space in &words[..words.len() - 1] {
        word(space, typed)?;
    }
    let id = if words.len() == 1 { format!("{AGENT_SPACE}.{short}") } else { typed.to_owned() };
    match id.len() <= NAME_BYTES_MAX {
        true => Ok(Name { short, id }),
        false => Err(wrong(typed, "it is too long")),
    }
}

/// `shout`, `acme/shout`, or a reference such as `acme/shout@2`.
fn tool(typed: &str) -> Result<Name> {
    let (place, version) = typed.split_once('@').unwrap_or((typed, "1"));
    let (space, last) = place.split_once('/').unwrap_or((TOOL_SPACE, place));
    let short = word(last, typed)?;
    let space = word(space, typed)?;
    let id = format!("{space}/{short}@{version}");
    let fits = ToolId::new(&id).is_ok_and(|id| id.is_reference());
    match fits && space != "wharf" {
        true => Ok(Name { short, id }),
        false if space == "wharf" => Err(wrong(typed, "wharf/ is the core's own")),
        false => Err(wrong(typed, "a version is a number, as in acme/shout@2")),
    }
}

/// One word of a name.
fn word(text: &str, typed: &str) -> Result<String> {
    let letters = text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if text.is_empty() || text.len() > NAME_BYTES_MAX {
        return Err(wrong(typed, "a word of it is empty or too long"));
    }
    if !letters
        || !text.starts_with(|first: char| first.is_ascii_lowercase())
        || text.ends_with('-')
    {
        let rule =
            "it has small letters, digits and dashes and begins with a letter, as in my-tool";
        return Err(wrong(typed, rule));
    }
    if RESERVED.contains(&text) {
        return Err(wrong(typed, "that word means something else already"));
    }
    Ok(text.to_owned())
}

/// Words that are no name of a package or program in one of the languages, or the core's own.
const RESERVED: &[&str] = &[
    "wharf",
    "wharf-sdk",
    "agent",
    "operative",
    "handler",
    "test",
    "std",
    "core",
    "alloc",
    "proc-macro",
    "tokio",
    "serde",
    "serde-json",
    "schemars",
    "typescript",
    "build",
    "deps",
    "examples",
    "incremental",
    "node",
    "crate",
    "self",
    "super",
    "fn",
    "mod",
    "use",
    "let",
    "type",
    "match",
    "async",
    "await",
    "dyn",
];

fn wrong(typed: &str, why: &str) -> CliError {
    CliError::usage(format!("{typed:?} cannot be its name: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k034_a_name_says_folder_and_id() {
        for (kind, typed, short, id) in [
            (ProjectKind::Agent, "greeter", "greeter", "dev.example.greeter"),
            (ProjectKind::Agent, "dev.acme.my-agent", "my-agent", "dev.acme.my-agent"),
            (ProjectKind::Tool, "shout", "shout", "example/shout@1"),
            (ProjectKind::Tool, "acme/shout", "shout", "acme/shout@1"),
            (ProjectKind::Tool, "acme/shout@12", "shout", "acme/shout@12"),
            (ProjectKind::Operative, "desk-2", "desk-2", "desk-2"),
        ] {
            let name = Name::read(kind, typed).expect(typed);
            assert_eq!((name.short.as_str(), name.id.as_str()), (short, id));
        }
        let name = Name::read(ProjectKind::Agent, "my-agent").expect("fits");
        assert_eq!((name.title().as_str(), name.code().as_str()), ("My agent", "my_agent"));
    }

    #[test]
    fn k034_what_cannot_be_a_name_is_told_why() {
        for (kind, typed, why) in [
            (ProjectKind::Agent, "", "empty"),
            (ProjectKind::Agent, "My Agent", "small letters"),
            (ProjectKind::Agent, "../x", "small letters"),
            (ProjectKind::Agent, "a..b", "empty"),
            (ProjectKind::Agent, "2nd", "begins with a letter"),
            (ProjectKind::Agent, "x-", "small letters"),
            (ProjectKind::Agent, "wharf", "something else"),
            (ProjectKind::Tool, "a/b/c", "small letters"),
            (ProjectKind::Tool, "a/b@x", "a version is a number"),
            (ProjectKind::Tool, "wharf/x", "something else"),
            (ProjectKind::Operative, "a.b", "small letters"),
            (ProjectKind::Operative, "Ä", "small letters"),
        ] {
            let failure = Name::read(kind, typed).expect_err(typed);
            assert!(failure.message().contains(why), "{typed}: {}", failure.message());
        }
        assert!(Name::read(ProjectKind::Agent, &"x".repeat(65)).is_err());
        assert!(Name::read(ProjectKind::Agent, &"x.".repeat(40)).is_err());
    }
}
