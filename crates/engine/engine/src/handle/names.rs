//! Quotas: how many names one token may take, so that none leaves nothing to others.

use parking_lot::Mutex;
use wharf_domain::Caller;
use wharf_vocab::limits::{
    GRANT_OPERATIVES_MAX, GRANT_SCHEDULES_MAX, GRANT_SEATS_MAX, GRANT_TOKENS_MAX,
    GRANT_TRIGGERS_MAX, GRANT_WORLDS_MAX, SCHEDULES_MAX, TOKENS_MAX, TRIGGERS_MAX, WORLDS_MAX,
};
use wharf_vocab::{Code, Fault, GrantId};

/// How many there may be of what is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameLimit {
    /// In all.
    pub all: usize,
    /// Made with one token and those that were made or narrowed from it. A person's own token may
    /// have all.
    pub each: usize,
}

/// How many names there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameLimits {
    /// Seats that are open or were made within the last minute. How many there are in all is the
    /// business of whoever keeps their desks.
    pub seats: NameLimit,
    /// Names that operatives serve. How many there are in all is their edge's business.
    pub operatives: NameLimit,
    /// Worlds.
    pub worlds: NameLimit,
    /// Tokens that are good, or would be.
    pub tokens: NameLimit,
    /// Schedules.
    pub schedules: NameLimit,
    /// Triggers.
    pub triggers: NameLimit,
}

impl Default for NameLimits {
    fn default() -> Self {
        Self {
            seats: NameLimit { all: usize::MAX, each: GRANT_SEATS_MAX },
            operatives: NameLimit { all: usize::MAX, each: GRANT_OPERATIVES_MAX },
            worlds: NameLimit { all: WORLDS_MAX, each: GRANT_WORLDS_MAX },
            tokens: NameLimit { all: TOKENS_MAX, each: GRANT_TOKENS_MAX },
            schedules: NameLimit { all: SCHEDULES_MAX, each: GRANT_SCHEDULES_MAX },
            triggers: NameLimit { all: TRIGGERS_MAX, each: GRANT_TRIGGERS_MAX },
        }
    }
}

/// What is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameKind {
    Seats,
    Operatives,
    Worlds,
    Tokens,
    Schedules,
    Triggers,
}

impl NameKind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Seats => "seats",
            Self::Operatives => "operatives",
            Self::Worlds => "worlds",
            Self::Tokens => "tokens",
            Self::Schedules => "schedules",
            Self::Triggers => "triggers",
        }
    }
}

/// Names that are being made and stand on no record yet.
#[derive(Debug)]
pub(super) struct Names {
    pub(super) limits: NameLimits,
    making: Mutex<Vec<PendingName>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct PendingName {
    what: NameKind,
    share: Option<GrantId>,
}

/// A name that is being made; dropped when it stands on record, or will not.
#[derive(Debug)]
pub(super) struct NameReservation<'a> {
    names: &'a Names,
    making: PendingName,
}

impl Drop for NameReservation<'_> {
    fn drop(&mut self) {
        let mut making = self.names.making.lock();
        if let Some(at) = making.iter().position(|it| *it == self.making) {
            making.swap_remove(at);
        }
    }
}

impl Names {
    pub(super) fn new(limits: NameLimits) -> Self {
        Self { limits, making: Mutex::default() }
    }

    /// Takes a name for a caller; `taken` are the shares of those that stand on record.
    pub(super) fn take(
        &self,
        what: NameKind,
        caller: &Caller,
        taken: impl Iterator<Item = Option<GrantId>>,
    ) -> Result<NameReservation<'_>, Fault> {
        let limit = match what {
            NameKind::Seats => self.limits.seats,
            NameKind::Operatives => self.limits.operatives,
            NameKind::Worlds => self.limits.worlds,
            NameKind::Tokens => self.limits.tokens,
            NameKind::Schedules => self.limits.schedules,
            NameKind::Triggers => self.limits.triggers,
        };
        let share = caller.share().cloned();
        let mut making = self.making.lock();
        let coming = making.iter().filter(|it| it.what == what).map(|it| it.share.clone());
        let (mut all, mut own) = (0, 0);
        for other in taken.chain(coming) {
            all += 1;
            own += usize::from(share.is_some() && other == share);
        }
        let words = what.as_str();
        if all >= limit.all {
            let message = format!("There are too many {words}; give some up first.");
            return Err(Fault::new(Code::CoreBusy, message).with("max", limit.all));
        }
        if own >= limit.each {
            let message = format!(
                "One token, with those made from it, may have {} {words}; give some up first.",
                limit.each
            );
            return Err(Fault::new(Code::GrantLimit, message).with("max", limit.each));
        }
        let place = PendingName { what, share };
        making.push(place.clone());
        Ok(NameReservation { names: self, making: place })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_domain::grant::Rights;

    #[test]
    fn names_that_are_being_made_count_and_a_person_may_have_all_there_are() {
        let two = NameLimit { all: 5, each: 2 };
        let names = Names::new(NameLimits { worlds: two, ..NameLimits::default() });
        let (one, other) =
            (Caller::token("g-1", Rights::all()), Caller::token("g-2", Rights::all()));
        let take = |caller: &Caller| names.take(NameKind::Worlds, caller, std::iter::empty());
        let held = [take(&one).expect("free"), take(&one).expect("free")];
        let refused = take(&one).expect_err("its share is used up");
        assert!(refused.is(Code::GrantLimit), "{refused}");
        let _other = take(&other).expect("another token has its own share");
        let people = [take(&Caller::owner()).expect("may"), take(&Caller::owner()).expect("may")];
        let full = take(&Caller::owner()).expect_err("there are no more");
        assert!(full.is(Code::CoreBusy), "{full}");
        drop((held, people));
        take(&one).expect("given back");
        let recorded = vec![Some(one.grant.clone()); 2].into_iter();
        let refused = names.take(NameKind::Worlds, &one, recorded).expect_err("on record");
        assert!(refused.is(Code::GrantLimit), "{refused}");
        assert!(
            names.take(NameKind::Seats, &one, std::iter::empty()).is_ok(),
            "a share of each kind"
        );
    }
}
