//! The numbered requirements of one protocol page: lines such as `- R12 [M·A] The agent …`.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

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
    /// Numbers that the page says belong to nothing.
    free: Vec<RangeInclusive<u16>>,
}

/// What begins a line with numbers that belong to nothing: `Left free: C21–C29, C34–C39.`
const FREE: &str = "Left free: ";

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
        let free = text.lines().filter_map(|line| line.strip_prefix(FREE)).flat_map(ranges);
        Ok(Self { path: path.to_owned(), letter, numbers, free: free.collect() })
    }

    /// The page's name without folder and ending.
    pub(super) fn name(&self) -> &str {
        let file = self.path.rsplit('/').next().unwrap_or(&self.path);
        file.trim_end_matches(".md")
    }

    /// Numbers that stand twice, and holes.
    pub(super) fn findings(&self) -> Vec<String> {
        let Self { path, letter, numbers, free } = self;
        let mut findings = Vec::new();
        for (number, times) in numbers {
            if *times > 1 {
                findings.push(format!("{path}: {letter}{number} stands {times} times"));
            }
        }
        let last = numbers.keys().next_back().copied().unwrap_or(0);
        let is_free = |number: &u16| free.iter().any(|range| range.contains(number));
        for number in (1..=last).filter(|number| !numbers.contains_key(number) && !is_free(number))
        {
            findings.push(format!("{path}: {letter}{number} is missing; numbers are never reused"));
        }
        findings
    }
}

/// Reads `C21–C29, C34–C39.`
fn ranges(list: &str) -> Vec<RangeInclusive<u16>> {
    let number = |text: &str| text.trim_matches(|c: char| !c.is_ascii_digit()).parse().ok();
    let range = |part: &str| {
        let (first, last) = part.split_once('–')?;
        Some(number(first)?..=number(last)?)
    };
    list.split(',').filter_map(range).collect()
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
    fn numbers_that_are_left_free_are_no_holes() {
        let page = "Left free: C2–C3, C5–C5.\n- C1 a\n- C4 b\n- C7 c\n";
        let findings = Protocol::parse("c.md", page).expect("parses").findings();
        assert_eq!(findings, ["c.md: C6 is missing; numbers are never reused"]);
    }

    #[test]
    fn a_page_without_or_with_mixed_numbers_is_refused() {
        assert!(Protocol::parse("a.md", "nothing").is_err());
        assert!(Protocol::parse("a.md", "- R1 a\n- T1 b\n").is_err());
    }
}
