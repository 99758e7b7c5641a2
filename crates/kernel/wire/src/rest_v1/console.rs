//! Signing a browser in at the console, what it is told of changes, and addresses of single files.

use serde::{Deserialize, Serialize};
use serde_with_macros::skip_serializing_none;
use utoipa::ToSchema;
use wharf_vocab::{ChangeKind, DateTime, GrantId, Verb, WorldId};

/// A link that signs one browser in, once and soon.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConsoleLink {
    /// What the page exchanges for a session.
    pub code: String,
    /// The address to open, with the code in its fragment.
    pub url: String,
    /// When it expires.
    pub expires_at: DateTime,
}

impl std::fmt::Debug for ConsoleLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConsoleLink").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

/// `POST /v1/console/session`: exactly one of the two.
#[skip_serializing_none]
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BeginConsole {
    /// The code of a link.
    pub link: Option<String>,
    /// A token that somebody pasted.
    pub token: Option<String>,
}

impl std::fmt::Debug for BeginConsole {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BeginConsole").finish_non_exhaustive()
    }
}

/// Who a page acts for, and which core it talks to.
#[skip_serializing_none]
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConsoleSession {
    /// The session's id; absent when a token asks.
    pub session_id: Option<GrantId>,
    /// The half of the session that the page keeps and sends as `Wharf-Session`; only in the
    /// response that signs in.
    pub key: Option<String>,
    /// The token it stands for.
    pub grant: GrantId,
    /// What people call that token.
    pub label: Option<String>,
    /// Whether it is a person's own.
    pub person: bool,
    /// What it permits.
    pub verbs: Vec<Verb>,
    /// The worlds it covers; all when absent.
    pub worlds: Option<Vec<WorldId>>,
    /// The tools it covers, as patterns; all when absent.
    pub tools: Option<Vec<String>>,
    /// When the browser signed in.
    pub created_at: Option<DateTime>,
    /// When it ends unless it is used before.
    pub expires_at: Option<DateTime>,
    /// When it ends at the latest.
    pub ends_at: Option<DateTime>,
    /// The core's version.
    pub version: String,
    /// What tells the core's home from others.
    pub home_id: String,
    /// The core's name among those of one Wharf.
    pub node: Option<String>,
}

/// Shows everything but the key.
impl std::fmt::Debug for ConsoleSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConsoleSession").field("grant", &self.grant).finish_non_exhaustive()
    }
}

/// Something that changed. What it is now is to be read where it is shown.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Change {
    /// What it is.
    pub kind: ChangeKind,
    /// Its world, if it has one.
    pub world: Option<WorldId>,
    /// Its id.
    pub id: String,
    /// Grows with every change of the same thing.
    pub seq: u64,
    /// How it stands now.
    pub status: String,
}

/// What changed since the frame before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Changes {
    /// Whether something may have been missed: what is shown must be read again.
    pub reset: bool,
    /// What changed, each thing once.
    pub items: Vec<Change>,
}

/// `POST /v1/worlds/{world}/tickets`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateFileTicket {
    /// The file's path.
    pub path: String,
}

/// An address of one version of one file, which needs no token.
#[skip_serializing_none]
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileTicket {
    /// The address, below the core's own.
    pub url: String,
    /// When it expires.
    pub expires_at: DateTime,
    /// The type that the file is sent with.
    pub media_type: String,
    /// The file's size.
    pub bytes: u64,
    /// The file's BLAKE3 hash, if it is known.
    pub b3: Option<String>,
}

impl std::fmt::Debug for FileTicket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileTicket").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::survives;
    use super::*;
    use crate::rest_v1::{CoreLog, System, SystemSeries};

    #[test]
    fn c044_every_message_of_the_console_survives_its_text_form() {
        let examples = include_str!("../../testdata/rest_v1/console.ndjson");
        let mut names = std::collections::BTreeSet::new();
        for line in examples.lines() {
            let (name, data) = line.split_once(' ').expect("name and data");
            names.insert(name);
            match name {
                "ConsoleLink" => survives::<ConsoleLink>(data),
                "BeginConsole" => survives::<BeginConsole>(data),
                "ConsoleSession" => survives::<ConsoleSession>(data),
                "Changes" => survives::<Changes>(data),
                "CreateFileTicket" => survives::<CreateFileTicket>(data),
                "FileTicket" => survives::<FileTicket>(data),
                "CoreLog" => survives::<CoreLog>(data),
                "System" => survives::<System>(data),
                "SystemSeries" => survives::<SystemSeries>(data),
                other => panic!("{other} is read by nobody"),
            }
        }
        assert_eq!(names.len(), 9);
    }

    #[test]
    fn what_lets_somebody_in_is_not_shown() {
        let link = ConsoleLink {
            code: "c4nary".into(),
            url: "http://h/#link=c4nary".into(),
            expires_at: DateTime(wharf_vocab::Timestamp(0)),
        };
        let begin = BeginConsole { link: Some("c4nary".into()), token: Some("c4nary".into()) };
        for shown in [format!("{link:?}"), format!("{begin:?}")] {
            assert!(!shown.contains("c4nary"), "{shown}");
        }
    }
}
