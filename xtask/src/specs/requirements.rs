//! The numbered requirements of one protocol page: lines such as `- R12 [M·A] The agent …`.

use std::collections::BTreeMap;

use anyhow::{Result, bail};

/// One protocol and its numbers.
#[derive(Debug)]
pub(crate) struct Protocol {
    /// The page, relative to the root.
    pub(crate) path: String,
    /// The letter before each number.
    pub(crate) letter: char,
    /// Each number and how often it stands on the page.
    pub(crate) numbers: BTreeMap<u16, u32>,
}

impl Protocol {
    /// Reads a page.
    pub(super) fn parse(path: &str, text: &str) -> Result<Self> {
        let mut letter = None;
        let mut numbers = BTreeMap::new();
        for (found, number) in text.lines().filter_map(requirement) {
            match letter {
                None => letter = Some(found),
                Some(first) if first == found => {}
                Some(first) => bail!("{path} mixes the letters {first} and {found}"),
            }
            *numbers.entry(number).or_insert(0) += 1;
        }
        let Some(letter) = letter else {
            bail!("{path} has no numbered requirements");
        };
        Ok(Self { path: path.to_owned(), letter, numbers })
    }

    /// The page's name without folder and ending.
    pub(super) fn name(&self) -> &str {
        let file = self.path.rsplit('/').next().unwrap_or(&self.path);
        file.trim_end_matches(".md")
    }

    /// Numbers that stand twice, and holes.
    pub(super) fn findings(&self) -> Vec<String> {
        let Self { path, letter, numbers } = self;
        let mut findings = Vec::new();
        for (number, times) in numbers {
            if *times > 1 {
                findings.push(format!("{path}: {letter}{number} stands {times} times"));
            }
        }
        let last = numbers.keys().next_back().copied().unwrap_or(0);
        for number in (1..=last).filter(|number| !numbers.contains_key(number)) {
            findings.push(format!("{path}: {letter}{number} is missing; numbers are never reused"));
        }
        findings
    }
}

fn requirement(line: &str) -> Option<(char, u16)> {
    let rest = line.strip_prefix("- ")?;
    let letter = rest.chars().next().filter(char::is_ascii_uppercase)?;
    let (digits, _) = rest[1..].split_once(' ')?;
    Some((letter, digits.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_are_told_from_other_lines() {
        assert_eq!(requirement("- R12 [M·A] The agent"), Some(('R', 12)));
        assert_eq!(requirement("- T3 The first frame"), Some(('T', 3)));
        for other in ["- R12", "R12 x", "  - R12 x", "- RFC 3339 x", "- r12 x", "- **R12** x"] {
            assert_eq!(requirement(other), None, "{other}");
        }
    }

    #[test]
    fn holes_and_doubles_are_found() {
        let page = "- O1 a\n- O2 b\n- O2 b\n- O4 d\n";
        let protocol = Protocol::parse("docs/protocols/operator.md", page).expect("parses");
        assert_eq!(protocol.name(), "operator");
        let findings = protocol.findings();
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert!(findings[0].contains("O2 stands 2 times"));
        assert!(findings[1].contains("O3 is missing"));
    }

    #[test]
    fn a_page_without_or_with_mixed_numbers_is_refused() {
        assert!(Protocol::parse("a.md", "nothing").is_err());
        assert!(Protocol::parse("a.md", "- R1 a\n- T1 b\n").is_err());
    }
}
