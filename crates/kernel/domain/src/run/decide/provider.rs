//! The provider's availability changed while the run waits for it.

use super::Draft;
use crate::Availability;
use crate::run::Pause;

pub(super) fn decide(draft: &mut Draft<'_, '_>) {
    let gone = matches!(draft.cx.provider, Availability::Down { .. });
    match draft.run.pause {
        Some(Pause::Provider(_)) => draft.proceed(),
        // There will be no room where nobody is.
        Some(Pause::Room(_)) if gone => draft.proceed(),
        _ => {}
    }
}
