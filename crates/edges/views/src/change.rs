//! What changed, as both APIs tell it.
//!
//! A frame is written once for all who may know the same of it, however many read it: a thousand
//! pages that an owner has open cost little more than one.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use wharf_domain::{Caller, Rights};
use wharf_engine::{Change, ChangeFrame};
use wharf_vocab::{ChangeKind, Verb, WorldId};
use wharf_wire::rest_v1 as wire;

/// What a reader wants to know of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangeQuery {
    /// Only changes of these kinds; of all when there is none.
    pub kinds: Vec<ChangeKind>,
    /// Only changes in this world.
    pub world: Option<WorldId>,
}

impl ChangeQuery {
    fn wants(&self, change: &Change) -> bool {
        let kind = self.kinds.is_empty() || self.kinds.contains(&change.kind);
        // What has no world lies in none of them.
        let world = self.world.as_ref().is_none_or(|world| change.world.as_ref() == Some(world));
        kind && world
    }
}

/// A frame as a reader sees it who wants this and may know of what `knows` says; none if nothing
/// is left of it.
pub fn changes(
    frame: &ChangeFrame,
    query: &ChangeQuery,
    knows: impl Fn(&Change) -> bool,
) -> Option<wire::Changes> {
    let items = frame.items.iter().filter(|change| query.wants(change) && knows(change));
    let items: Vec<wire::Change> = items.map(change).collect();
    (frame.reset || !items.is_empty()).then_some(wire::Changes { reset: frame.reset, items })
}

/// Frames whose texts are kept: readers are about as far as each other.
const FRAMES_KEPT: usize = 4;
/// Kinds of readers for whom a frame is kept; it is written anew for further ones.
const CLASSES_MAX: usize = 64;

/// The texts of the latest frames, one for all readers who may know the same.
pub struct ChangeTexts {
    write: fn(&wire::Changes) -> Option<String>,
    frames: Mutex<VecDeque<FrameTexts>>,
}

/// The texts of one frame; none where nothing is left of it.
struct FrameTexts {
    frame: Arc<ChangeFrame>,
    texts: Vec<(ReaderClass, Option<Arc<str>>)>,
}

/// What decides what somebody sees of a frame.
struct ReaderClass {
    rights: Arc<Rights>,
    query: ChangeQuery,
}

impl ReaderClass {
    /// Whether another reader sees the same. Until when rights hold is looked at elsewhere.
    fn fits(&self, rights: &Arc<Rights>, query: &ChangeQuery) -> bool {
        let own = &self.rights;
        let administers = |rights: &Rights| rights.check_verb(Verb::Admin).is_ok();
        let sees_the_same = || {
            own.worlds == rights.worlds
                && own.tools == rights.tools
                && administers(own) == administers(rights)
        };
        self.query == *query && (Arc::ptr_eq(own, rights) || sees_the_same())
    }
}

impl std::fmt::Debug for ChangeTexts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChangeTexts").finish_non_exhaustive()
    }
}

impl ChangeTexts {
    /// Begins with nothing; `write` makes the text of what is shown.
    #[must_use]
    pub fn new(write: fn(&wire::Changes) -> Option<String>) -> Self {
        Self { write, frames: Mutex::default() }
    }

    /// The text of a frame for a reader; none if nothing is left of it.
    pub fn of(
        &self,
        frame: &Arc<ChangeFrame>,
        query: &ChangeQuery,
        caller: &Caller,
    ) -> Option<Arc<str>> {
        let text = || {
            let shown = changes(frame, query, |change| change.is_known_to(caller))?;
            Some(Arc::from((self.write)(&shown)?))
        };
        if frame.items.is_empty() {
            // Every reader has a first frame of its own.
            return text();
        }
        let mut frames = self.frames.lock();
        let at = frames.iter().position(|kept| Arc::ptr_eq(&kept.frame, frame));
        let at = at.unwrap_or_else(|| {
            if frames.len() >= FRAMES_KEPT {
                frames.pop_front();
            }
            frames.push_back(FrameTexts { frame: Arc::clone(frame), texts: Vec::new() });
            frames.len() - 1
        });
        let texts = &mut frames[at].texts;
        if let Some((_, text)) = texts.iter().find(|(class, _)| class.fits(&caller.rights, query)) {
            return text.clone();
        }
        // Whoever needs the same text meanwhile waits for it.
        let text = text();
        if texts.len() < CLASSES_MAX {
            let class = ReaderClass { rights: Arc::clone(&caller.rights), query: query.clone() };
            texts.push((class, text.clone()));
        }
        text
    }
}

fn change(change: &Change) -> wire::Change {
    wire::Change {
        kind: change.kind,
        world: change.world.clone(),
        id: change.id.clone(),
        seq: change.seq,
        status: change.status.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_domain::grant::Narrowing;

    fn frame(ids: &[&str]) -> Arc<ChangeFrame> {
        let item = |id: &&str| Change {
            kind: ChangeKind::World,
            world: WorldId::new(*id).ok(),
            id: (*id).to_owned(),
            seq: 1,
            status: "present",
            tool: None,
        };
        Arc::new(ChangeFrame { reset: false, items: ids.iter().map(item).collect() })
    }

    fn only(world: &str) -> Caller {
        let worlds = Some([WorldId::new(world).expect("valid")].into());
        let narrowing = Narrowing { worlds, ..Narrowing::default() };
        let owner = Caller::owner();
        Caller { rights: Arc::new(owner.rights.narrowed(&narrowing)), ..owner }
    }

    #[test]
    fn c005_a_frame_is_written_once_for_all_who_may_know_the_same() {
        let texts = ChangeTexts::new(|shown| serde_json::to_string(shown).ok());
        let (one, all) = (frame(&["a", "b"]), ChangeQuery::default());
        let text = |of: &Arc<ChangeFrame>, caller: &Caller| texts.of(of, &all, caller);
        let first = text(&one, &Caller::owner()).expect("all of it");
        let again = text(&one, &Caller::owner()).expect("all of it");
        assert!(Arc::ptr_eq(&first, &again), "written once");
        let less = text(&one, &only("b")).expect("a part");
        assert!(first.contains("\"a\"") && !less.contains("\"a\""), "{less}");
        assert!(Arc::ptr_eq(&less, &text(&one, &only("b")).expect("a part")), "by what they may");
        assert_eq!(text(&one, &only("c")), None, "nothing is left");
        let kinds = ChangeQuery { kinds: vec![ChangeKind::Run], world: None };
        assert_eq!(texts.of(&one, &kinds, &Caller::owner()), None, "another question");
        // Only the latest frames are kept, and a frame with the same content is another one.
        for _ in 0..2 * FRAMES_KEPT {
            assert!(!Arc::ptr_eq(
                &first,
                &text(&frame(&["a", "b"]), &Caller::owner()).expect("it")
            ));
        }
        assert_eq!(texts.frames.lock().len(), FRAMES_KEPT);
    }
}
