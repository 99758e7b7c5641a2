//! Addresses of single files: how a page shows a picture or downloads a file without sending a
//! header. Each stands for one version of one file, for five minutes, and can be read as often as
//! needed meanwhile, in parts too.
//!
//! They are kept in memory, by their digest: a core that starts anew knows none.

use std::collections::HashMap;

use parking_lot::Mutex;
use wharf_domain::Caller;
use wharf_domain::scope::WorldPath;
use wharf_vocab::{B3, Code, Digest, Fault, Timestamp, WorldId};

use crate::answer::internal;

/// How long an address is good.
const GOOD_MS: u64 = 5 * 60_000;
/// Addresses that are good at once.
const TICKETS_MAX: usize = 16_384;
/// Addresses of one token that are good at once.
const TICKETS_OF_ONE_MAX: usize = 2_048;

/// Types that browsers are told of, since nothing in such files can act: pictures made of dots, sound
/// and film. All others are bytes.
const TYPES: [&str; 17] = [
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
    "image/avif",
    "image/bmp",
    "audio/mpeg",
    "audio/ogg",
    "audio/wav",
    "audio/flac",
    "audio/aac",
    "audio/mp4",
    "audio/webm",
    "video/mp4",
    "video/webm",
    "video/ogg",
    "video/quicktime",
];

/// The addresses that are good.
#[derive(Debug, Default)]
pub(crate) struct FileTickets(Mutex<HashMap<Digest, Kept>>);

/// One version of one file, and who may read it.
#[derive(Debug, Clone)]
pub(crate) struct IssuedFile {
    pub(crate) caller: Caller,
    pub(crate) world: WorldId,
    pub(crate) path: WorldPath,
    pub(crate) bytes: u64,
    pub(crate) b3: Option<B3>,
    /// The type it is sent with.
    pub(crate) media_type: &'static str,
}

#[derive(Debug)]
struct Kept {
    file: IssuedFile,
    until: Timestamp,
}

impl FileTickets {
    /// Makes an address and says until when it is good.
    pub(crate) fn make(
        &self,
        file: IssuedFile,
        now: Timestamp,
    ) -> Result<(String, Timestamp), Fault> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|_| internal())?;
        let (text, until) = (hex::encode(bytes), now.plus_ms(GOOD_MS));
        let mut kept = self.0.lock();
        if kept.len() >= TICKETS_OF_ONE_MAX {
            kept.retain(|_, ticket| ticket.until > now);
        }
        let of_one = |ticket: &&Kept| ticket.file.caller.grant == file.caller.grant;
        if kept.len() >= TICKETS_MAX || kept.values().filter(of_one).count() >= TICKETS_OF_ONE_MAX {
            let message = "Too many addresses of files are good; each is gone after 5 minutes.";
            return Err(Fault::new(Code::CoreBusy, message));
        }
        kept.insert(Digest::of(&[text.as_bytes()]), Kept { file, until });
        Ok((text, until))
    }

    /// The file of an address, if it is good in this world.
    pub(crate) fn find(&self, text: &str, world: &WorldId, now: Timestamp) -> Option<IssuedFile> {
        let kept = self.0.lock();
        let found = kept.get(&Digest::of(&[text.as_bytes()]))?;
        (found.until > now && found.file.world == *world).then(|| found.file.clone())
    }
}

/// The type that a file is sent with.
pub(crate) fn media_type(said: &str) -> &'static str {
    let said = said.split(';').next().unwrap_or_default().trim();
    let known = TYPES.iter().find(|known| known.eq_ignore_ascii_case(said));
    known.copied().unwrap_or(wharf_vocab::media::UNKNOWN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_domain::Rights;

    fn file(grant: &str) -> IssuedFile {
        IssuedFile {
            caller: Caller::token(grant, Rights::all()),
            world: WorldId::new("a").expect("valid"),
            path: WorldPath::parse("/x.png").expect("valid"),
            bytes: 1,
            b3: None,
            media_type: "image/png",
        }
    }

    #[test]
    fn c004_an_address_is_good_for_five_minutes_in_its_world() {
        let tickets = FileTickets::default();
        let (text, until) = tickets.make(file("g-1"), Timestamp(0)).expect("made");
        assert_eq!(until, Timestamp(GOOD_MS));
        let world = |name: &str| WorldId::new(name).expect("valid");
        assert!(tickets.find(&text, &world("a"), Timestamp(1)).is_some());
        assert!(tickets.find(&text, &world("a"), Timestamp(2)).is_some(), "again");
        assert!(tickets.find(&text, &world("b"), Timestamp(1)).is_none());
        assert!(tickets.find("", &world("a"), Timestamp(1)).is_none());
        assert!(tickets.find(&text, &world("a"), Timestamp(GOOD_MS)).is_none());
    }

    #[test]
    fn c004_nobody_can_have_all_the_addresses() {
        let tickets = FileTickets::default();
        for _ in 0..TICKETS_OF_ONE_MAX {
            tickets.make(file("greedy"), Timestamp(0)).expect("made");
        }
        assert!(tickets.make(file("greedy"), Timestamp(0)).is_err());
        tickets.make(file("other"), Timestamp(0)).expect("others may");
        tickets.make(file("greedy"), Timestamp(GOOD_MS)).expect("the old ones are gone");
        assert_eq!(tickets.0.lock().len(), 1);
    }

    #[test]
    fn c004_only_what_cannot_act_has_a_type() {
        assert_eq!(media_type("image/png"), "image/png");
        assert_eq!(media_type("Video/MP4; codecs=x"), "video/mp4");
        for acting in
            ["text/html", "image/svg+xml", "application/pdf", "text/plain", "", "image/pngx"]
        {
            assert_eq!(media_type(acting), "application/octet-stream", "{acting}");
        }
    }
}
