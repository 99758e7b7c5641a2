//! Which of the known words somebody may have meant who typed another one.

/// How many letters a word has for each one that may be wrong.
const LETTERS_PER_SLIP: usize = 4;

/// The word that comes nearest, if one is near enough to be meant.
pub(crate) fn word<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typed = typed.to_lowercase();
    let slips = |known: &str| strsim::damerau_levenshtein(&typed, &known.to_lowercase());
    let nearest = known.into_iter().map(|known| (slips(known), known)).min()?;
    let allowed = (typed.chars().count() / LETTERS_PER_SLIP).max(1);
    (nearest.0 <= allowed).then_some(nearest.1)
}

/// The tool that may be meant: one with a version that was left out, one whose provider was, or the
/// one that is spelled most alike.
pub(crate) fn tool<'a>(typed: &str, known: &[&'a str]) -> Option<&'a str> {
    let base = |id: &'a str| id.split_once('@').map_or(id, |(base, _)| base);
    let mut versions = known.iter().filter(|id| **id != typed && base(id) == typed);
    if let Some(first) = versions.next() {
        // Of several the one with the greatest version is the usual choice.
        let number = |id: &&&str| {
            id.split_once('@').and_then(|(_, version)| version.parse::<u64>().ok()).unwrap_or(0)
        };
        return std::iter::once(first).chain(versions).max_by_key(number).copied();
    }
    let name = |id: &'a str| base(id).split_once('/').map_or(id, |(_, name)| name);
    let typed_name = typed.split_once('/').map_or(typed, |(_, name)| name);
    let mut namesakes = known.iter().filter(|id| name(id) == typed_name);
    match (namesakes.next(), namesakes.next()) {
        (Some(only), None) => Some(only),
        _ => word(typed, known.iter().copied()).or_else(|| {
            let near = word(typed, known.iter().map(|id| base(id)))?;
            known.iter().find(|id| base(id) == near).copied()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_understood_and_another_word_is_not() {
        let known = ["runs", "tools", "tool.quarantined", "tool.timeout"];
        assert_eq!(word("rusn", known), Some("runs"));
        assert_eq!(word("tool.quarantned", known), Some("tool.quarantined"));
        assert_eq!(word("TOOL.TIMEOUT", known), Some("tool.timeout"));
        assert_eq!(word("secrets", known), None);
        assert_eq!(word("", known), None);
        assert_eq!(word("x", []), None);
    }

    #[test]
    fn a_tool_is_found_without_its_version_or_its_provider() {
        let known = ["wharf/count", "wharf/echo", "text/shout@1", "text/shout@10", "mail/send"];
        for (typed, expect) in [
            ("wharf/cout", Some("wharf/count")),
            ("text/shout", Some("text/shout@10")),
            ("text/shuot", Some("text/shout@1")),
            ("count", Some("wharf/count")),
            ("post/send", Some("mail/send")),
            ("nothing/like-it", None),
        ] {
            assert_eq!(tool(typed, &known), expect, "{typed}");
        }
    }
}
