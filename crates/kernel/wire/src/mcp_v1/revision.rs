//! Revisions of the protocol, and the two eras they belong to.

use std::fmt;

use super::key;
use super::{McpMeta, code};

/// How version and capabilities are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum McpEra {
    /// Once, in a handshake that begins a session.
    Legacy,
    /// With every request, which stands alone.
    Modern,
}

/// A revision, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum McpRevision {
    /// 2024-11-05
    V2024_11_05,
    /// 2025-03-26
    V2025_03_26,
    /// 2025-06-18
    V2025_06_18,
    /// 2025-11-25
    V2025_11_25,
    /// 2026-07-28
    V2026_07_28,
}

impl McpRevision {
    /// All that are known, oldest first.
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];
    /// Those that are spoken by their own rules, newest first, as an error lists them.
    pub const SUPPORTED: [Self; 3] = [Self::V2026_07_28, Self::V2025_11_25, Self::V2025_06_18];
    /// The newest with a handshake.
    pub const LEGACY_NEWEST: Self = Self::V2025_11_25;
    /// The newest of all.
    pub const MODERN_NEWEST: Self = Self::V2026_07_28;

    /// As messages and headers have it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The revision of this name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == text)
    }

    /// The era it belongs to.
    #[must_use]
    pub fn era(self) -> McpEra {
        if self >= Self::V2026_07_28 { McpEra::Modern } else { McpEra::Legacy }
    }

    /// What a server agrees to in a handshake: what was asked if it is legacy and known, else the
    /// newest that is.
    #[must_use]
    pub fn agreed(asked: &str) -> Self {
        Self::parse(asked).filter(|it| it.era() == McpEra::Legacy).unwrap_or(Self::LEGACY_NEWEST)
    }

    /// The revision whose rules hold: older ones are served by those of 2025-06-18.
    #[must_use]
    pub fn rules(self) -> Self {
        self.max(Self::V2025_06_18)
    }

    /// Whether arguments that do not fit are an error of the protocol, and not of the tool.
    #[must_use]
    pub fn bad_arguments_are_errors(self) -> bool {
        self.rules() == Self::V2025_06_18
    }

    /// Whether tasks are part of the protocol itself.
    #[must_use]
    pub fn has_core_tasks(self) -> bool {
        self == Self::V2025_11_25
    }

    /// The code that says that there is no such resource.
    #[must_use]
    pub fn resource_missing(self) -> i64 {
        match self.era() {
            McpEra::Legacy => code::RESOURCE_NOT_FOUND,
            McpEra::Modern => code::INVALID_PARAMS,
        }
    }
}

impl fmt::Display for McpRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl McpEra {
    /// The era of one request: modern if its `_meta` says a version, or a header names the first
    /// modern revision or a later one.
    #[must_use]
    pub fn of(meta: Option<&McpMeta>, version_header: Option<&str>) -> Self {
        let says_version = meta.is_some_and(|meta| meta.0.contains_key(key::PROTOCOL_VERSION));
        // Versions are dates, so their order is that of their texts.
        let names_modern = version_header.is_some_and(|version| {
            is_date(version) && version >= McpRevision::V2026_07_28.as_str()
        });
        if says_version || names_modern { Self::Modern } else { Self::Legacy }
    }
}

fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 10
        && bytes.iter().enumerate().all(|(at, byte)| match at {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn m009_a_handshake_agrees_to_what_is_known() {
        for (asked, agreed) in [
            ("2025-06-18", "2025-06-18"),
            ("2025-11-25", "2025-11-25"),
            ("2025-03-26", "2025-03-26"),
            ("2024-11-05", "2024-11-05"),
            ("2026-07-28", "2025-11-25"),
            ("1900-01-01", "2025-11-25"),
            ("", "2025-11-25"),
        ] {
            assert_eq!(McpRevision::agreed(asked).as_str(), agreed, "{asked}");
        }
        assert_eq!(McpRevision::V2024_11_05.rules(), McpRevision::V2025_06_18);
        assert_eq!(McpRevision::V2025_11_25.rules(), McpRevision::V2025_11_25);
    }

    #[test]
    fn m006_the_era_is_told_by_meta_or_header() {
        let modern = json!({ key::PROTOCOL_VERSION: "2026-07-28" });
        let modern = McpMeta(modern.as_object().expect("an object").clone());
        let plain = McpMeta::default();
        for (meta, header, era) in [
            (Some(&modern), None, McpEra::Modern),
            (Some(&modern), Some("2025-11-25"), McpEra::Modern),
            (Some(&plain), Some("2026-07-28"), McpEra::Modern),
            (None, Some("2027-01-01"), McpEra::Modern),
            (None, Some("2025-11-25"), McpEra::Legacy),
            (None, Some("zzzz"), McpEra::Legacy),
            (Some(&plain), None, McpEra::Legacy),
            (None, None, McpEra::Legacy),
        ] {
            assert_eq!(McpEra::of(meta, header), era, "{header:?}");
        }
    }
}
