//! Patterns of text: `*` and `?` stand for characters but the separator, `**` for whole segments.
//!
//! A pattern is a list of steps, and each place in the list is a state. Matching follows all
//! states at once, so that no pattern makes it slow. Whether one pattern lies within another is
//! decided by following both at once over every text that the narrow one fits.

use std::collections::{BTreeMap, BTreeSet};

use super::PERMISSION_BYTES_MAX;

/// What stands between segments, in paths and in tools.
pub(super) const SEPARATOR: char = '/';
/// How much work is done to find out whether a pattern lies within another. Patterns that people
/// write take a few hundred; what takes more than this counts as not within.
const INCLUSION_MOVES_MAX: usize = 20_000;

/// A pattern that is ready to be matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    /// What every text begins with, but for a separator at the end of that. So what comes after
    /// the prefix, or after it and a separator, is never the same in all texts.
    prefix: String,
    /// How it goes on. There are fewer than [`States`] can hold.
    steps: Vec<Step>,
}

/// One step of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// This character.
    Literal(char),
    /// One character but the separator.
    One,
    /// Any characters but the separator. All steps since `segment` keep to the same segment.
    Star { segment: usize },
    /// A separator, and then the loop that follows; or neither.
    Enter,
    /// Any characters.
    Loop,
}

impl Step {
    fn takes(self, c: char) -> bool {
        match self {
            Self::Literal(literal) => literal == c,
            Self::One | Self::Star { .. } => c != SEPARATOR,
            Self::Enter => c == SEPARATOR,
            Self::Loop => true,
        }
    }

    fn literal(self) -> Option<char> {
        match self {
            Self::Literal(c) => Some(c),
            Self::One | Self::Star { .. } | Self::Enter | Self::Loop => None,
        }
    }

    /// How many states further it leads when it takes a character.
    fn advance(self) -> usize {
        usize::from(!matches!(self, Self::Star { .. } | Self::Loop))
    }

    /// How many states further it leads without any character, if it can.
    fn skip(self) -> Option<usize> {
        match self {
            Self::Literal(_) | Self::One => None,
            Self::Star { .. } | Self::Loop => Some(1),
            Self::Enter => Some(2),
        }
    }
}

impl Pattern {
    /// Reads a pattern with `*`, `?` and, as a whole segment that is not the first, `**`, which
    /// takes the separator before it along: `/x/**` fits `/x` too. `literal` stands before it as
    /// it is. The text must not be longer than a permission may be.
    pub(super) fn path(literal: &str, text: &str) -> Self {
        Self::read(literal, text, true)
    }

    /// Reads a pattern in which only `*` is special. The text must not be longer than a
    /// permission may be.
    pub(super) fn words(text: &str) -> Self {
        Self::read("", text, false)
    }

    fn read(literal: &str, text: &str, path: bool) -> Self {
        assert!(text.len() <= PERMISSION_BYTES_MAX, "the length is checked before");
        let mut pattern = Self { prefix: literal.to_owned(), steps: Vec::new() };
        let mut segment = 0;
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let deep = rest.strip_prefix("/**").filter(|_| path);
            if let Some(after) = deep.filter(|after| after.is_empty() || after.starts_with('/')) {
                pattern.steps.extend([Step::Enter, Step::Loop]);
                segment = pattern.steps.len();
                rest = after;
                continue;
            }
            let wild = c == '*' || (c == '?' && path);
            if wild && pattern.steps.is_empty() && pattern.prefix.ends_with(SEPARATOR) {
                pattern.prefix.pop();
                pattern.steps.push(Step::Literal(SEPARATOR));
                segment = 1;
            }
            match c {
                '*' => pattern.steps.push(Step::Star { segment }),
                _ if wild => pattern.steps.push(Step::One),
                _ if pattern.steps.is_empty() => pattern.prefix.push(c),
                _ => pattern.steps.push(Step::Literal(c)),
            }
            if c == SEPARATOR {
                segment = pattern.steps.len();
            }
            rest = &rest[c.len_utf8()..];
        }
        pattern
    }

    /// What every text begins with, but for a separator at the end of that.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Whether it fits one text only.
    pub(super) fn is_exact(&self) -> bool {
        self.steps.is_empty()
    }

    /// Whether a new segment begins right after the prefix.
    pub(super) fn is_folder(&self) -> bool {
        matches!(self.steps.first(), Some(Step::Enter | Step::Literal(SEPARATOR)))
    }

    /// Whether it fits its prefix and everything below, and nothing else.
    pub(super) fn is_tree(&self) -> bool {
        self.steps == [Step::Enter, Step::Loop]
    }

    /// Whether it fits a text.
    pub(super) fn matches(&self, text: &str) -> bool {
        let Some(rest) = text.strip_prefix(self.prefix.as_str()) else {
            return false;
        };
        if self.is_exact() {
            return rest.is_empty();
        }
        if self.is_tree() {
            return rest.is_empty() || rest.starts_with(SEPARATOR);
        }
        let mut states = self.start();
        for c in rest.chars() {
            states = self.after(&states, c);
            if states.is_empty() {
                return false;
            }
        }
        states.has(self.steps.len())
    }

    /// Whether every text without empty segments that `narrow` fits is fit by this one too.
    /// `false` also when that cannot be found out with reasonable work.
    pub(super) fn covers(&self, narrow: &Self) -> bool {
        if self == narrow {
            return true;
        }
        // After its prefix the narrow one goes on in many ways, a longer prefix in one only.
        let Some(rest) = narrow.prefix.strip_prefix(self.prefix.as_str()) else {
            return false;
        };
        Inclusion::new(self, narrow, rest).holds(INCLUSION_MOVES_MAX)
    }

    fn start(&self) -> States {
        let mut states = States::default();
        self.reach(&mut states, 0);
        self.prune(&mut states);
        states
    }

    /// The states after one more character.
    fn after(&self, states: &States, c: char) -> States {
        let mut next = States::default();
        for state in states.iter() {
            if let Some(step) = self.steps.get(state).filter(|step| step.takes(c)) {
                self.reach(&mut next, state + step.advance());
            }
        }
        self.prune(&mut next);
        next
    }

    /// Adds a state and all that follow from it without a character.
    fn reach(&self, states: &mut States, mut state: usize) {
        while states.add(state) {
            match self.steps.get(state).and_then(|step| step.skip()) {
                Some(skip) => state += skip,
                None => return,
            }
        }
    }

    /// Drops states from which nothing fits that does not fit from a later state too: those
    /// before a loop, and those before a star in its segment.
    fn prune(&self, states: &mut States) {
        let mut end = self.steps.len();
        while let Some(state) = states.last_before(end) {
            end = state;
            match self.steps[state] {
                Step::Loop => return states.drop_range(0, state),
                Step::Star { segment } => {
                    states.drop_range(segment, state);
                    end = segment;
                }
                Step::Literal(_) | Step::One | Step::Enter => {}
            }
        }
    }
}

const WORDS: usize = PERMISSION_BYTES_MAX / 64 + 1;

/// A set of states; the one after the last step is the end of the pattern.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct States([u64; WORDS]);

impl States {
    /// Adds a state; whether it was not there.
    fn add(&mut self, state: usize) -> bool {
        let (word, bit) = (state / 64, 1 << (state % 64));
        let new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        new
    }

    fn has(&self, state: usize) -> bool {
        self.0[state / 64] & (1 << (state % 64)) != 0
    }

    fn is_empty(&self) -> bool {
        self.0 == [0; WORDS]
    }

    fn is_within(&self, other: &Self) -> bool {
        self.0.iter().zip(other.0).all(|(own, other)| own & !other == 0)
    }

    fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().flat_map(|(word, bits)| {
            let mut bits = *bits;
            std::iter::from_fn(move || {
                let bit = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
                bits &= bits - 1;
                Some(word * 64 + bit)
            })
        })
    }

    fn last_before(&self, end: usize) -> Option<usize> {
        (0..=end / 64).rev().find_map(|word| {
            let below = if word == end / 64 { (1 << (end % 64)) - 1 } else { u64::MAX };
            let bits = self.0[word] & below;
            (bits != 0).then(|| word * 64 + 63 - bits.leading_zeros() as usize)
        })
    }

    fn drop_range(&mut self, from: usize, to: usize) {
        for state in from..to {
            self.0[state / 64] &= !(1 << (state % 64));
        }
    }
}

/// Where a text stands that has no empty segments, but for the one before a leading separator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum GlobPosition {
    Start,
    Separator,
    Segment,
}

impl GlobPosition {
    fn after(self, c: char) -> Option<Self> {
        match self {
            _ if c != SEPARATOR => Some(Self::Segment),
            Self::Start | Self::Segment => Some(Self::Separator),
            Self::Separator => None,
        }
    }

    fn may_end(self) -> bool {
        self != Self::Separator
    }
}

/// The search for a text that the narrow pattern fits and the wide one does not.
struct Inclusion<'a> {
    wide: &'a Pattern,
    narrow: Vec<Step>,
    /// A character that no literal of the wide pattern stands for.
    other: char,
    /// Where the wide pattern has been when the narrow one was at a step and the text at a place.
    /// What holds for some states holds for more, so only the smallest sets are kept.
    seen: BTreeMap<(usize, GlobPosition), Vec<States>>,
    open: Vec<(usize, GlobPosition, States)>,
    moves: usize,
}

impl<'a> Inclusion<'a> {
    /// `rest` is what the narrow pattern's prefix has more than the wide one's.
    fn new(wide: &'a Pattern, narrow: &Pattern, rest: &str) -> Self {
        let literals: BTreeSet<char> =
            wide.steps.iter().filter_map(|step| step.literal()).collect();
        let other =
            (char::MIN..=char::MAX).rev().find(|c| !literals.contains(c) && *c != SEPARATOR);
        let narrow = rest.chars().map(Step::Literal).chain(narrow.steps.iter().copied());
        Self {
            wide,
            narrow: narrow.collect(),
            other: other.expect("a pattern is shorter than the alphabet"),
            seen: BTreeMap::new(),
            open: Vec::new(),
            moves: 0,
        }
    }

    fn holds(mut self, moves_max: usize) -> bool {
        let mut prefix = self.wide.prefix.chars();
        let Some(place) = prefix.try_fold(GlobPosition::Start, GlobPosition::after) else {
            return false;
        };
        self.visit(0, place, self.wide.start());
        while let Some((at, place, states)) = self.open.pop() {
            let Some(step) = self.narrow.get(at).copied() else {
                if place.may_end() && !states.has(self.wide.steps.len()) {
                    return false;
                }
                continue;
            };
            // Every pattern can be brought to an end, and then the wide one does not fit.
            if states.is_empty() || self.moves > moves_max {
                return false;
            }
            if let Some(skip) = step.skip() {
                self.visit(at + skip, place, states.clone());
            }
            // Whatever the wide pattern does with a character that it does not name, it does with
            // any other too; so where the narrow one leaves the choice, that one is the hardest.
            let choices = [SEPARATOR, self.other];
            let literal = step.literal();
            for c in literal.iter().chain(choices.iter().filter(|_| literal.is_none())) {
                if let Some(place) = place.after(*c).filter(|_| step.takes(*c)) {
                    self.visit(at + step.advance(), place, self.wide.after(&states, *c));
                }
            }
        }
        true
    }

    fn visit(&mut self, at: usize, place: GlobPosition, states: States) {
        self.moves += 1;
        let seen = self.seen.entry((at, place)).or_default();
        if !seen.iter().any(|fewer| fewer.is_within(&states)) {
            seen.retain(|more| !states.is_within(more));
            seen.push(states.clone());
            self.open.push((at, place, states));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_too_much_work_is_not_covered() {
        let (wide, narrow) = (Pattern::path("", "/**/a*"), Pattern::path("", "/b/**/a?"));
        let within = |moves_max| Inclusion::new(&wide, &narrow, "/b").holds(moves_max);
        assert!(within(100) && !within(10));
    }
}
