//! How far back something goes that is kept in memory, step by step.

/// How far back a series goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeriesRange {
    /// An hour, by ten seconds.
    Hour,
    /// A day, by minutes.
    Day,
}

impl SeriesRange {
    /// Reads `1h` or `24h`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Hour, Self::Day].into_iter().find(|range| range.as_str() == text)
    }

    /// The range as text.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hour => "1h",
            Self::Day => "24h",
        }
    }

    /// How long a step is.
    #[must_use]
    pub fn step_ms(self) -> u64 {
        match self {
            Self::Hour => 10_000,
            Self::Day => 60_000,
        }
    }

    /// How many steps are kept.
    #[must_use]
    pub fn points_max(self) -> usize {
        match self {
            Self::Hour => 360,
            Self::Day => 1_440,
        }
    }
}
